#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "api/json.h"
#include "codec/json.h"

// The two parsers behind ParseJson: one for what nearly every text is, and one for the rest, which
// also words the errors. Of this folder alone.
namespace berth::codec {

// The same document as ParseAnyJson for less, of text with nothing unusual in it. Nothing
// when the text is faulty, nested deeper than `nesting_max`, or has what this parser leaves to the
// other: doubles, escapes in keys, the same key twice in an object. Cost: linear in the text;
// n log n in the keys of one object.
[[nodiscard]] std::optional<api::Json> ParsePlainJson(std::string_view text, int64_t nesting_max,
                                                      const api::JsonMemory& memory);

// All that ParseJsonReporting promises.
[[nodiscard]] Result<ParsedJson> ParseAnyJson(std::string_view text, JsonOptions options,
                                              api::JsonMemory memory);

}  // namespace berth::codec
