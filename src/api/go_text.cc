#include "api/go_text.h"

#include <array>
#include <boost/json/serialize.hpp>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <system_error>

#include "base/check.h"

namespace berth::api {

namespace {

std::string Digits(double number, std::chars_format format) {
  std::array<char, 512> buffer{};
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), number, format);
  CHECK(end.ec == std::errc());
  return {buffer.data(), end.ptr};
}

void AppendText(std::string_view text, std::string& out) {
  for (const char c : boost::json::serialize(boost::json::string_view(text))) {
    switch (c) {
      case '<':
        out += "\\u003c";
        break;
      case '>':
        out += "\\u003e";
        break;
      case '&':
        out += "\\u0026";
        break;
      default:
        out += c;
    }
  }
}

void AppendNumber(double number, std::string& out) {
  const double size = std::fabs(number);
  if (size == 0 || (size >= 1e-6 && size < 1e21)) {
    out += Digits(number, std::chars_format::fixed);
    return;
  }
  std::string text = Digits(number, std::chars_format::scientific);
  // Go's encoder writes 1e-9.
  if (const size_t zero = text.find("e-0"); zero != std::string::npos) text.erase(zero + 2, 1);
  out += text;
}

void Append(const Json& value, std::string& out) {
  if (value.is_string()) {
    AppendText(value.get_string(), out);
  } else if (value.is_double()) {
    AppendNumber(value.get_double(), out);
  } else if (value.is_array()) {
    out += '[';
    for (const Json& item : value.get_array()) {
      if (out.back() != '[') out += ',';
      Append(item, out);
    }
    out += ']';
  } else if (value.is_object()) {
    out += '{';
    for (const auto& [key, member] : value.get_object()) {
      if (out.back() != '{') out += ',';
      AppendText(key, out);
      out += ':';
      Append(member, out);
    }
    out += '}';
  } else {
    out += boost::json::serialize(value);
  }
}

}  // namespace

std::string PrintGoNumber(double number) {
  std::string text = Digits(number, std::chars_format::scientific);
  const size_t sign = text.find('e') + 1;
  int exponent = 0;
  std::from_chars(text.data() + sign + 1, text.data() + text.size(), exponent);
  const bool plain = text[sign] == '-' ? exponent <= 4 : exponent <= 5;
  return plain ? Digits(number, std::chars_format::fixed) : text;
}

std::string PrintGoJson(const Json& value) {
  std::string out;
  Append(value, out);
  return out;
}

std::string_view GoTypeOf(const Json& value) {
  if (value.is_null()) return "<nil>";
  if (value.is_bool()) return "bool";
  if (value.is_int64()) return "int64";
  if (value.is_string()) return "string";
  if (value.is_array()) return "[]interface {}";
  return value.is_object() ? "map[string]interface {}" : "float64";
}

}  // namespace berth::api
