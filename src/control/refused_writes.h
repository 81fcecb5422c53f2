#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "base/time.h"
#include "client/client.h"

namespace berth::control {

// Counts the writes that the API server refused, and those of unknown fate, by what they do to what
// ("create", "events"), and says when an operator is to be told: what a role lacks is in the
// server's message. There are as many kinds of write as a scheduler has. Nothing is decided by it.
class RefusedWrites {
 public:
  // The same kind of write is told of again after this, if it is refused still.
  static constexpr Duration kTellEvery = Duration::Minutes(10);

  struct Counts {
    uint64_t refused = 0;
    uint64_t unknown = 0;
  };
  // By verb and resource, as rules of roles have them: "patch", "pods/status".
  using Kind = std::pair<std::string, std::string>;

  // Notes a call that has ended. A line for the log where one is due. What was never sent, is
  // throttled or forbidden by a budget (429), in conflict, or about what is gone, is none of these;
  // one whose connection was lost is counted.
  std::optional<std::string> Note(Instant now, const client::CallDone& done);

  [[nodiscard]] const std::map<Kind, Counts>& counts() const { return counts_; }

 private:
  std::map<Kind, Counts> counts_;
  std::map<Kind, Instant> told_;
};

}  // namespace berth::control
