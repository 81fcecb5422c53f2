#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "env/actor.h"

// What requests and answers say, for the stories that the explorer tells.
namespace berth::explore {

// The text of the first member of that name in JSON, after the first `from`; empty when there is
// none.
[[nodiscard]] std::string MemberIn(std::string_view json, std::string_view name,
                                   std::string_view from = {});

// metadata.name of a JSON object; empty when it has none.
[[nodiscard]] std::string NameIn(std::string_view json);

// The value of a query's key as it stands in the target; empty when it is not there.
[[nodiscard]] std::string_view QueryValue(std::string_view target, std::string_view key);

// "binding of pod a to node n1", "list of pods".
[[nodiscard]] std::string Words(const env::HttpRequest& request);

// "1 node", "2 nodes".
[[nodiscard]] std::string Counted(uint64_t count, std::string_view one);

// "answer 201", "that pod a is MODIFIED".
[[nodiscard]] std::string Words(const env::Input& input);

}  // namespace berth::explore
