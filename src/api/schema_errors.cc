#include "api/schema_errors.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace berth::api::rules {

std::string_view FoundType(const Json& value) {
  switch (value.kind()) {
    case boost::json::kind::null:
      return "null";
    case boost::json::kind::bool_:
      return "boolean";
    case boost::json::kind::string:
      return "string";
    case boost::json::kind::array:
      return "array";
    case boost::json::kind::object:
      return "object";
    case boost::json::kind::int64:
      return "integer";
    case boost::json::kind::uint64:
    case boost::json::kind::double_:
      return "number";
  }
  return "";
}

void AddType(FieldErrors& errors, const Path& path, const Json& value, std::string_view wanted) {
  const std::string found = QuoteGo(FoundType(value));
  AddInvalidType(errors, path, found, fmt::format("must be of type {}: {}", wanted, found));
}

void AddInvalidType(FieldErrors& errors, const Path& path, std::string value,
                    std::string_view said) {
  errors.push_back({FieldErrorType::kTypeInvalid, path.text(), std::move(value),
                    fmt::format("{} in body {}", path.text(), said)});
}

void AddSaid(FieldErrors& errors, const Path& path, std::string value, std::string_view said) {
  errors.push_back({FieldErrorType::kInvalid, path.text(), std::move(value),
                    fmt::format("{} in body {}", path.text(), said)});
}

void AddNoField(FieldErrors& errors, std::string detail) {
  errors.push_back(InvalidField("<nil>", "", std::move(detail)));
}

}  // namespace berth::api::rules
