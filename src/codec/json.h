#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "api/json.h"
#include "base/limits.h"
#include "base/result.h"

// JSON text to api::Json and back (RFC 8259). Pure functions; safe from any thread.
namespace berth::codec {

struct JsonOptions {
  int64_t nesting_max = limits::kNestingMax;  // Arrays and objects open at once.
  // Two objects under one key merge, as where Go decodes into structs; else the last one stands, as
  // where it decodes into maps.
  bool merges_duplicates = true;
};

struct ParsedJson {
  api::Json value;
  // Paths of keys that an object holds more than once, in the order met, e.g.
  // `spec.containers[0].name`. The last one's value stands, as in Go's decoder.
  std::vector<std::string> duplicates;
};

// Parses exactly one document. Integers that fit int64 stay int64, those that fit only uint64 stay
// uint64, all other numbers are doubles; strings keep their bytes, and a byte that is no UTF-8
// becomes U+FFFD; a duplicate key's last value stands, and two objects merge if the options say so.
// Errors are worded as Go's encoding/json words them and name line, column (in bytes, from 1) and
// offset (in bytes, from 0). Cost: linear in the text.
[[nodiscard]] Result<ParsedJson> ParseJsonReporting(std::string_view text, JsonOptions options = {},
                                                    api::JsonMemory memory = {});
// The same for callers that don't ask about duplicates.
[[nodiscard]] Result<api::Json> ParseJson(std::string_view text, JsonOptions options = {},
                                          api::JsonMemory memory = {});

// Compact text: members in the object's own order, no blanks, integers as integers, doubles in the
// shortest form that reads back the same (as Go prints them), strings with only what RFC 8259
// demands escaped.
[[nodiscard]] std::string PrintJson(const api::Json& value);
void AppendJson(const api::Json& value, std::string& out);
// The same with line breaks and `indent` blanks a level, for people.
[[nodiscard]] std::string PrintJsonPretty(const api::Json& value, int indent = 2);

// Appends `text` as a JSON string with quotes. A byte that is no UTF-8 becomes U+FFFD.
void AppendJsonString(std::string_view text, std::string& out);

// Length of the longest prefix that is valid UTF-8 (no surrogates, no overlong forms).
[[nodiscard]] size_t ValidUtf8Prefix(std::string_view text);

}  // namespace berth::codec
