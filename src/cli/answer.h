#pragma once

// Reading of the JSON answers that commands print: a field that is missing or of another type is
// empty, since an answer may come from another version of the program. Thread safety: pure
// functions.

#include <string>
#include <string_view>
#include <vector>

#include "api/json.h"
#include "base/result.h"

namespace berth::cli {

// What to do about an answer of nobody who schedules.
inline constexpr std::string_view kNoScheduler =
    "\n  no scheduler answers there: for a `berth run`, give --why-address HOST:PORT of its "
    "--secure-port and --why-ca the file of its --secure-ca";

// The object that a scheduler gave with this HTTP status. Fails with kInvalid, and says what to do,
// where it is none: whoever answered is no scheduler.
Result<api::JsonObject> ObjectAnswered(int status, std::string_view body);

// The field's string, or its JSON when it is none.
std::string Text(const api::JsonObject& object, std::string_view key);

// Null when the field is no object.
const api::JsonObject* Part(const api::JsonObject& object, std::string_view key);

// The objects of a list, in its order.
std::vector<const api::JsonObject*> ObjectsIn(const api::JsonObject& object, std::string_view key);

}  // namespace berth::cli
