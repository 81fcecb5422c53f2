#include "api/field_error.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/serialize.hpp>
#include <set>
#include <utility>

#include "api/go_text.h"

namespace berth::api {
namespace {

std::string_view WordsOf(FieldErrorType type) {
  switch (type) {
    case FieldErrorType::kNotFound:
      return "Not found";
    case FieldErrorType::kRequired:
      return "Required value";
    case FieldErrorType::kDuplicate:
      return "Duplicate value";
    case FieldErrorType::kInvalid:
    case FieldErrorType::kTypeInvalid:
      return "Invalid value";
    case FieldErrorType::kNotSupported:
      return "Unsupported value";
    case FieldErrorType::kForbidden:
      return "Forbidden";
    case FieldErrorType::kTooLong:
      return "Too long";
    case FieldErrorType::kTooMany:
      return "Too many";
    case FieldErrorType::kInternal:
      return "Internal error";
  }
  return "";
}

bool ShowsValue(FieldErrorType type) {
  return type != FieldErrorType::kRequired && type != FieldErrorType::kForbidden &&
         type != FieldErrorType::kTooLong && type != FieldErrorType::kInternal;
}

std::string Show(const Json& value) {
  if (value.is_string()) return QuoteGo(value.get_string());
  if (value.is_double()) return PrintGoNumber(value.get_double());
  return PrintGoJson(value);
}

}  // namespace

std::string_view CauseOf(FieldErrorType type) {
  switch (type) {
    case FieldErrorType::kNotFound:
      return "FieldValueNotFound";
    case FieldErrorType::kRequired:
      return "FieldValueRequired";
    case FieldErrorType::kDuplicate:
      return "FieldValueDuplicate";
    case FieldErrorType::kInvalid:
      return "FieldValueInvalid";
    case FieldErrorType::kTypeInvalid:
      return "FieldValueTypeInvalid";
    case FieldErrorType::kNotSupported:
      return "FieldValueNotSupported";
    case FieldErrorType::kForbidden:
      return "FieldValueForbidden";
    case FieldErrorType::kTooLong:
      return "FieldValueTooLong";
    case FieldErrorType::kTooMany:
      return "FieldValueTooMany";
    case FieldErrorType::kInternal:
      return "InternalError";
  }
  return "";
}

size_t BytesOf(const FieldError& error) {
  return error.field.size() + error.value.size() + error.detail.size();
}

std::span<const FieldError> ListedOf(std::span<const FieldError> errors) {
  size_t count = 0;
  size_t bytes = 0;
  while (count < errors.size() && count < kFieldErrorsListedMax) {
    bytes += BytesOf(errors[count]);
    if (count > 0 && bytes > kFieldErrorsBytesMax) break;
    ++count;
  }
  return errors.first(count);
}

std::string BodyOf(const FieldError& error) {
  std::string body(WordsOf(error.type));
  if (ShowsValue(error.type) && !error.value.empty()) body += ": " + error.value;
  if (!error.detail.empty()) body += ": " + error.detail;
  return body;
}

std::string ToString(const FieldError& error) { return error.field + ": " + BodyOf(error); }

std::string InvalidMessage(std::string_view group_kind, std::string_view name,
                           std::span<const FieldError> errors) {
  const std::span<const FieldError> listed = ListedOf(errors);
  std::vector<std::string> texts;
  std::set<std::string_view> told;
  texts.reserve(listed.size() + 1);  // They are not moved.
  for (const FieldError& error : listed) {
    texts.push_back(ToString(error));
    if (!told.insert(texts.back()).second) texts.pop_back();
  }
  if (listed.size() < errors.size())
    texts.push_back(fmt::format("and {} or more others", errors.size() - listed.size()));
  std::string message = fmt::format("{} {} is invalid", group_kind, QuoteGo(name));
  if (texts.size() == 1) return message + ": " + texts[0];
  if (texts.size() > 1) return fmt::format("{}: [{}]", message, fmt::join(texts, ", "));
  return message;
}

std::string QuoteGo(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    switch (c) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\t':
        out += "\\t";
        break;
      case '\a':
        out += "\\a";
        break;
      case '\b':
        out += "\\b";
        break;
      case '\f':
        out += "\\f";
        break;
      case '\v':
        out += "\\v";
        break;
      default:
        if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
          out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
        } else {
          out += c;
        }
    }
  }
  return out + '"';
}

std::string PrintGo(const Json& value) {
  if (value.is_string()) return std::string(value.get_string());
  if (value.is_null()) return "<nil>";
  if (value.is_double()) return PrintGoNumber(value.get_double());
  std::string out;
  if (value.is_array()) {
    for (const Json& item : value.get_array()) out += ' ' + PrintGo(item);
    return fmt::format("[{}]", out.empty() ? std::string_view() : std::string_view(out).substr(1));
  }
  if (!value.is_object()) return boost::json::serialize(value);
  std::vector<std::pair<std::string_view, const Json*>> members;
  for (const auto& item : value.get_object()) members.emplace_back(item.key(), &item.value());
  std::ranges::sort(members);
  for (const auto& [name, member] : members) {
    out += fmt::format("{}{}:{}", out.empty() ? "" : " ", name, PrintGo(*member));
  }
  return fmt::format("map[{}]", out);
}

FieldError NotFoundField(std::string field, std::string_view value) {
  return {FieldErrorType::kNotFound, std::move(field), QuoteGo(value), ""};
}
FieldError RequiredField(std::string field, std::string detail) {
  return {FieldErrorType::kRequired, std::move(field), "", std::move(detail)};
}
FieldError DuplicateField(std::string field, std::string_view value) {
  return {FieldErrorType::kDuplicate, std::move(field), QuoteGo(value), ""};
}
FieldError DuplicateJsonField(std::string field, const Json& value) {
  return {FieldErrorType::kDuplicate, std::move(field), Show(value), ""};
}
FieldError InvalidField(std::string field, std::string_view value, std::string detail) {
  return {FieldErrorType::kInvalid, std::move(field), QuoteGo(value), std::move(detail)};
}
FieldError InvalidField(std::string field, int64_t value, std::string detail) {
  return {FieldErrorType::kInvalid, std::move(field), std::to_string(value), std::move(detail)};
}
FieldError InvalidJsonField(std::string field, const Json& value, std::string detail) {
  return {FieldErrorType::kInvalid, std::move(field), Show(value), std::move(detail)};
}
FieldError InvalidPointedField(std::string field, std::string_view value, std::string detail) {
  return {FieldErrorType::kInvalid, std::move(field), PrintGoJson(Json(value)), std::move(detail)};
}
FieldError NotSupportedField(std::string field, std::string_view value,
                             std::span<const std::string_view> supported) {
  std::string detail;
  for (const std::string_view word : supported) {
    detail += detail.empty() ? "supported values: " : ", ";
    detail += QuoteGo(word);
  }
  return {FieldErrorType::kNotSupported, std::move(field), QuoteGo(value), std::move(detail)};
}
FieldError ForbiddenField(std::string field, std::string detail) {
  return {FieldErrorType::kForbidden, std::move(field), "", std::move(detail)};
}
FieldError TooLongField(std::string field, int64_t bytes_max) {
  return {FieldErrorType::kTooLong, std::move(field), "",
          fmt::format("may not be more than {} byte{}", bytes_max, bytes_max == 1 ? "" : "s")};
}
FieldError TooManyField(std::string field, int64_t count, int64_t count_max) {
  return {FieldErrorType::kTooMany, std::move(field), std::to_string(count),
          fmt::format("must have at most {} item{}", count_max, count_max == 1 ? "" : "s")};
}

}  // namespace berth::api
