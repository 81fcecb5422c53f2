#include "codec/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <optional>
#include <utility>

#include "base/check.h"
#include "codec/json_parsers.h"
#include "codec/utf8.h"

namespace berth::codec {
namespace {

using api::Json;
using api::JsonArray;
using api::JsonObject;

constexpr uint64_t kOnes = 0x0101010101010101;
constexpr uint64_t kHighs = 0x8080808080808080;

// Sets the high bit of the bytes that don't stand for themselves in a JSON string: a quote, a
// backslash, a control character, a byte over 0x7f. By the usual borrow tricks, which find
// something exactly if there is something, but may lead astray in the bytes above the lowest; other
// bits are noise.
uint64_t Unusual(uint64_t word) {
  const auto zeros = [](uint64_t x) { return (x - kOnes) & ~x; };
  return ((word - kOnes * 0x20) & ~word) | zeros(word ^ (kOnes * '"')) |
         zeros(word ^ (kOnes * '\\')) | word;
}

// How many characters from `from` on stand for themselves in a JSON string. Eight bytes at a time.
size_t PlainEnd(std::string_view text, size_t from) {
  size_t at = from;
  if constexpr (std::endian::native == std::endian::little) {
    for (; at + 8 <= text.size(); at += 8) {
      uint64_t word = 0;
      std::memcpy(&word, text.data() + at, 8);
      const uint64_t found = Unusual(word) & kHighs;
      // The lowest one found is right; borrows can only lead astray above it.
      if (found != 0) return at + static_cast<size_t>(std::countr_zero(found)) / 8;
    }
  }
  for (; at < text.size(); ++at) {
    const auto byte = static_cast<unsigned char>(text[at]);
    if (byte < 0x20 || byte == '"' || byte == '\\' || byte >= 0x80) break;
  }
  return at;
}

// Appends the character at `at`, U+FFFD for a byte that begins none. Returns where the next begins.
size_t CopyCharacter(std::string_view text, size_t at, std::string& out) {
  const auto byte = static_cast<unsigned char>(text[at]);
  const size_t length = byte < 0x80 ? 1 : byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : 4;
  const std::string_view character = text.substr(at, length);
  if (ValidUtf8Prefix(character) != length) {
    out.append("\xEF\xBF\xBD");
    return at + 1;
  }
  out.append(character);
  return at + length;
}

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// A character as Go's encoding/json names it in errors.
std::string QuoteCharacter(std::string_view text, size_t at) {
  const char c = text[at];
  if (c == '\'') return R"('\'')";
  if (c == '"') return R"('"')";
  if (c == '\\') return R"('\\')";
  if (c == '\n') return R"('\n')";
  if (c == '\r') return R"('\r')";
  if (c == '\t') return R"('\t')";
  const auto byte = static_cast<unsigned char>(c);
  if (byte < 0x20 || byte >= 0x7f) return fmt::format("'\\x{:02x}'", byte);
  return fmt::format("'{}'", c);
}

class Parser {
 public:
  Parser(std::string_view text, JsonOptions options, api::JsonMemory memory)
      : text_(text), options_(options), memory_(std::move(memory)) {}

  Result<ParsedJson> Run() {
    ParsedJson parsed{.value = Json(memory_), .duplicates = {}};
    SkipBlanks();
    parsed.value = ParseValue(0);
    if (!failure_) {
      SkipBlanks();
      if (at_ != text_.size()) FailAt(at_, "after top-level value");
    }
    if (failure_) return std::unexpected(*failure_);
    parsed.duplicates = std::move(duplicates_);
    return parsed;
  }

 private:
  [[nodiscard]] bool AtEnd() const { return at_ >= text_.size(); }

  void SkipBlanks() {
    while (!AtEnd() &&
           (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t' || text_[at_] == '\r')) {
      ++at_;
    }
  }

  void Fail(size_t offset, ErrorCode code, std::string_view message) {
    if (failure_) return;
    size_t line = 1;
    size_t line_start = 0;
    for (size_t i = 0; i < offset && i < text_.size(); ++i) {
      if (text_[i] != '\n') continue;
      ++line;
      line_start = i + 1;
    }
    failure_ = Error{code, fmt::format("{} (line {}, column {}, offset {})", message, line,
                                       offset - line_start + 1, offset)};
  }

  // The text ends, or has a character that can't stand there.
  void FailAt(size_t offset, std::string_view where) {
    if (offset >= text_.size()) {
      Fail(text_.size(), ErrorCode::kInvalid, "unexpected end of JSON input");
      return;
    }
    Fail(offset, ErrorCode::kInvalid,
         fmt::format("invalid character {} {}", QuoteCharacter(text_, offset), where));
  }

  Json ParseValue(int64_t depth) {
    if (AtEnd()) {
      FailAt(at_, "");
      return nullptr;
    }
    switch (text_[at_]) {
      case '{':
      case '[':
        if (depth >= options_.nesting_max) {
          Fail(at_, ErrorCode::kTooLarge,
               fmt::format("exceeded max depth: more than {} nested arrays and objects",
                           options_.nesting_max));
          return nullptr;
        }
        return text_[at_] == '{' ? ParseObject(depth) : ParseArray(depth);
      case '"': {
        std::string scratch;
        return Json(boost::json::string(ParseString(scratch), memory_));
      }
      case 't':
        return ParseLiteral("true", true);
      case 'f':
        return ParseLiteral("false", false);
      case 'n':
        return ParseLiteral("null", nullptr);
      default:
        return ParseNumber();
    }
  }

  Json ParseLiteral(std::string_view word, Json value) {
    for (size_t i = 1; i < word.size(); ++i) {
      if (at_ + i >= text_.size() || text_[at_ + i] != word[i]) {
        FailAt(at_ + i, fmt::format("in literal {} (expecting '{}')", word, word[i]));
        return nullptr;
      }
    }
    at_ += word.size();
    return value;
  }

  bool SkipDigits(std::string_view where) {
    if (AtEnd() || !IsDigit(text_[at_])) {
      FailAt(at_, where);
      return false;
    }
    while (!AtEnd() && IsDigit(text_[at_])) ++at_;
    return true;
  }

  Json ParseNumber() {
    const size_t start = at_;
    const bool negative = text_[at_] == '-';
    if (negative) ++at_;
    if (AtEnd() || !IsDigit(text_[at_])) {
      FailAt(at_, negative ? "in numeric literal" : "looking for beginning of value");
      return nullptr;
    }
    if (text_[at_] == '0') {
      ++at_;
    } else if (!SkipDigits("in numeric literal")) {
      return nullptr;
    }
    bool whole = true;
    if (!AtEnd() && text_[at_] == '.') {
      whole = false;
      ++at_;
      if (!SkipDigits("after decimal point in numeric literal")) return nullptr;
    }
    if (!AtEnd() && (text_[at_] == 'e' || text_[at_] == 'E')) {
      whole = false;
      ++at_;
      if (!AtEnd() && (text_[at_] == '+' || text_[at_] == '-')) ++at_;
      if (!SkipDigits("in exponent of numeric literal")) return nullptr;
    }
    return ToNumber(text_.substr(start, at_ - start), whole, start);
  }

  Json ToNumber(std::string_view digits, bool whole, size_t start) {
    const char* const begin = digits.data();
    const char* const end = begin + digits.size();
    if (whole) {
      int64_t number = 0;
      if (std::from_chars(begin, end, number).ec == std::errc()) return number;
      uint64_t large = 0;
      if (digits[0] != '-' && std::from_chars(begin, end, large).ec == std::errc()) {
        return large;
      }
    }
    double number = 0;
    const auto [stop, error] = std::from_chars(begin, end, number);
    if (error == std::errc::result_out_of_range && !std::isfinite(number)) number = HUGE_VAL;
    if (error != std::errc() && !IsTiny(digits)) {
      Fail(start, ErrorCode::kInvalid,
           fmt::format("cannot unmarshal number {} into a value of type float64", digits));
      return nullptr;
    }
    CHECK(stop == end);
    return error == std::errc() ? number : 0.0;
  }

  // Whether a number that from_chars calls out of range is too small rather than too large.
  static bool IsTiny(std::string_view digits) {
    const size_t exponent = digits.find_first_of("eE");
    return exponent != std::string_view::npos && exponent + 1 < digits.size() &&
           digits[exponent + 1] == '-';
  }

  Json ParseArray(int64_t depth) {
    JsonArray array(memory_);
    ++at_;
    SkipBlanks();
    if (!AtEnd() && text_[at_] == ']') {
      ++at_;
      return array;
    }
    while (true) {
      path_.push_back({.key = {}, .index = array.size()});
      SkipBlanks();
      array.push_back(ParseValue(depth + 1));
      path_.pop_back();
      if (failure_) return nullptr;
      SkipBlanks();
      if (!AtEnd() && text_[at_] == ',') {
        ++at_;
        continue;
      }
      if (!AtEnd() && text_[at_] == ']') {
        ++at_;
        return array;
      }
      FailAt(at_, "after array element");
      return nullptr;
    }
  }

  Json ParseObject(int64_t depth) {
    JsonObject object(memory_);
    ++at_;
    SkipBlanks();
    if (!AtEnd() && text_[at_] == '}') {
      ++at_;
      return object;
    }
    std::string scratch;
    while (true) {
      SkipBlanks();
      if (AtEnd() || text_[at_] != '"') {
        FailAt(at_, "looking for beginning of object key string");
        return nullptr;
      }
      // The key is copied into the object before its value can reuse the scratch buffer.
      const std::string_view key = ParseString(scratch);
      if (failure_) return nullptr;
      SkipBlanks();
      if (AtEnd() || text_[at_] != ':') {
        FailAt(at_, "after object key");
        return nullptr;
      }
      ++at_;
      SkipBlanks();
      const auto [member, inserted] = object.emplace(key, nullptr);
      const size_t place = static_cast<size_t>(member - object.begin());
      path_.push_back({.key = member->key(), .index = 0});
      if (!inserted && duplicates_.size() < kDuplicatesMax) duplicates_.push_back(PathText());
      Json value = ParseValue(depth + 1);
      path_.pop_back();
      if (failure_) return nullptr;
      Put((object.begin() + static_cast<std::ptrdiff_t>(place))->value(), std::move(value));
      SkipBlanks();
      if (!AtEnd() && text_[at_] == ',') {
        ++at_;
        continue;
      }
      if (!AtEnd() && text_[at_] == '}') {
        ++at_;
        return object;
      }
      FailAt(at_, "after object key:value pair");
      return nullptr;
    }
  }

  // Where Go decodes into structs, a duplicate key goes into what the first one left: objects
  // merge, everything else is replaced.
  void Put(Json& place, Json value) const {
    if (!options_.merges_duplicates || !place.is_object() || !value.is_object()) {
      place = std::move(value);
      return;
    }
    for (auto& [key, member] : value.get_object()) {
      Put(place.get_object()[key], std::move(member));
    }
  }

  // The string at the cursor, in the text itself when nothing is escaped, else in `scratch`.
  std::string_view ParseString(std::string& scratch) {
    const size_t start = ++at_;
    at_ = PlainEnd(text_, at_);
    if (!AtEnd() && text_[at_] == '"') {
      const std::string_view raw = text_.substr(start, at_ - start);
      ++at_;
      return raw;
    }
    scratch.assign(text_.substr(start, at_ - start));
    while (true) {
      if (AtEnd()) {
        FailAt(at_, "");
        return {};
      }
      const char c = text_[at_];
      if (c == '"') {
        ++at_;
        return scratch;
      }
      if (c == '\\') {
        if (!ParseEscape(scratch)) return {};
      } else if (static_cast<unsigned char>(c) < 0x20) {
        FailAt(at_, "in string literal");
        return {};
      } else {
        at_ = CopyCharacter(text_, at_, scratch);
      }
    }
  }

  bool ParseEscape(std::string& out) {
    ++at_;
    if (AtEnd()) {
      FailAt(at_, "");
      return false;
    }
    const char c = text_[at_++];
    switch (c) {
      case '"':
        out += '"';
        return true;
      case '\\':
        out += '\\';
        return true;
      case '/':
        out += '/';
        return true;
      case 'b':
        out += '\b';
        return true;
      case 'f':
        out += '\f';
        return true;
      case 'n':
        out += '\n';
        return true;
      case 'r':
        out += '\r';
        return true;
      case 't':
        out += '\t';
        return true;
      case 'u':
        return ParseUnicodeEscape(out);
      default:
        FailAt(at_ - 1, "in string escape code");
        return false;
    }
  }

  std::optional<uint32_t> ParseHex4() {
    uint32_t code = 0;
    for (int i = 0; i < 4; ++i, ++at_) {
      const char c = AtEnd() ? '\0' : text_[at_];
      uint32_t digit = 0;
      if (IsDigit(c)) {
        digit = static_cast<uint32_t>(c - '0');
      } else if ((c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F')) {
        digit = static_cast<uint32_t>((c | 0x20) - 'a' + 10);
      } else {
        FailAt(at_, "in \\u hexadecimal character escape");
        return std::nullopt;
      }
      code = code * 16 + digit;
    }
    return code;
  }

  // A lone surrogate can't be written as UTF-8; it becomes U+FFFD, as Go's decoder has it.
  bool ParseUnicodeEscape(std::string& out) {
    const std::optional<uint32_t> first = ParseHex4();
    if (!first) return false;
    uint32_t code = *first;
    if (code >= 0xd800 && code < 0xdc00 && text_.substr(at_, 2) == "\\u") {
      const size_t before = at_;
      at_ += 2;
      const std::optional<uint32_t> second = ParseHex4();
      if (!second) return false;
      if (*second >= 0xdc00 && *second < 0xe000) {
        code = 0x10000 + ((code - 0xd800) << 10) + (*second - 0xdc00);
      } else {
        at_ = before;
      }
    }
    if (code >= 0xd800 && code < 0xe000) code = 0xfffd;
    AppendUtf8(code, out);
    return true;
  }

  [[nodiscard]] std::string PathText() const {
    std::string path;
    for (const Step& step : path_) {
      if (step.key.empty() && &step != &path_.back()) {
        path += fmt::format("[{}]", step.index);
        continue;
      }
      if (!path.empty()) path += '.';
      path += step.key;
    }
    return path;
  }

  struct Step {
    std::string_view key;  // Of the member itself, which stays; empty for an array element.
    size_t index;
  };
  // A hostile document could otherwise make the report quadratic in its size.
  static constexpr size_t kDuplicatesMax = 100;

  const std::string_view text_;
  const JsonOptions options_;
  const api::JsonMemory memory_;
  size_t at_ = 0;
  std::vector<Step> path_;
  std::vector<std::string> duplicates_;
  std::optional<Error> failure_;
};

// As Go prints a float64: the shortest digits that read back the same, as plain decimals for
// moderate exponents, else d.ddde+xx.
void AppendDouble(double number, std::string& out) {
  if (!std::isfinite(number)) {
    out += "null";
    return;
  }
  std::array<char, 32> buffer{};
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), number,
                                 std::chars_format::scientific);
  CHECK(end.ec == std::errc());
  const std::string_view text(buffer.data(), end.ptr);
  const double size = std::fabs(number);
  if (size == 0) {  // Also -0, which would be read back as the integer 0.
    out += '0';
    return;
  }
  const size_t e = text.find('e');
  if (size < 1e-6 || size >= 1e21) {
    const bool padded = text.substr(e).starts_with("e-0");
    out += text.substr(0, padded ? e + 2 : text.size());
    if (padded) out += text.substr(e + 3);
    return;
  }
  const bool negative = text[0] == '-';
  std::string digits(text.substr(negative ? 1 : 0, 1));
  const size_t point = text.find('.');
  if (point != std::string_view::npos) digits += text.substr(point + 1, e - point - 1);
  int exponent = 0;
  const size_t exponent_at = e + (text[e + 1] == '+' ? 2 : 1);
  std::from_chars(text.data() + exponent_at, text.data() + text.size(), exponent);
  if (negative) out += '-';
  if (exponent < 0) {
    out += "0.";
    out.append(static_cast<size_t>(-exponent - 1), '0');
    out += digits;
    return;
  }
  const auto whole = static_cast<size_t>(exponent) + 1;
  if (digits.size() <= whole) {
    out += digits;
    out.append(whole - digits.size(), '0');
    return;
  }
  out += digits.substr(0, whole) + "." + digits.substr(whole);
}

// Anything but strings, arrays and objects.
void AppendScalar(const Json& value, std::string& out) {
  if (value.is_bool()) {
    out += value.get_bool() ? "true" : "false";
  } else if (value.is_int64()) {
    out += fmt::format_int(value.get_int64()).c_str();
  } else if (value.is_uint64()) {
    out += fmt::format_int(value.get_uint64()).c_str();
  } else if (value.is_double()) {
    AppendDouble(value.get_double(), out);
  } else {
    out += "null";
  }
}

// Prints compact JSON at the end of a string, which is longer than its content until Finish.
class Printer {
 public:
  explicit Printer(std::string& out) : out_(out), start_(out.size()), size_(out.size()) {}

  void Value(const Json& value) {
    switch (value.kind()) {
      case boost::json::kind::string:
        String(value.get_string());
        return;
      case boost::json::kind::array: {
        Put('[');
        for (const Json& item : value.get_array()) {
          Value(item);
          Put(',');
        }
        Close('[', ']');
        return;
      }
      case boost::json::kind::object: {
        Put('{');
        for (const auto& [key, member] : value.get_object()) {
          String(key);
          Put(':');
          Value(member);
          Put(',');
        }
        Close('{', '}');
        return;
      }
      default:
        scratch_.clear();
        AppendScalar(value, scratch_);
        Raw(scratch_);
        return;
    }
  }

  void Finish() { out_.resize(size_); }

 private:
  static constexpr size_t kWordBytes = sizeof(uint64_t);
  static constexpr size_t kGrowthMin = 1024;
  static constexpr size_t kGrowthMax = 65'536;

  // Room for `bytes` more.
  char* Room(size_t bytes) {
    if (out_.size() - size_ < bytes) {
      const size_t growth = std::clamp(size_ - start_, kGrowthMin, kGrowthMax);
      out_.resize(size_ + std::max(bytes, growth));
    }
    return out_.data() + size_;
  }

  void Put(char c) {
    *Room(1) = c;
    ++size_;
  }

  // The closing bracket takes the place of the last comma.
  void Close(char open, char close) {
    if (out_[size_ - 1] == open) {
      Put(close);
    } else {
      out_[size_ - 1] = close;
    }
  }

  // Copied and looked at in the same whole words; of the last one, what is in the one before it is
  // copied twice.
  void String(std::string_view text) {
    char* const to = Room(text.size() + 2);
    to[0] = '"';
    uint64_t found = 0;
    const auto copy = [&](size_t at) {
      uint64_t word = 0;
      std::memcpy(&word, text.data() + at, kWordBytes);
      std::memcpy(to + 1 + at, &word, kWordBytes);
      found |= Unusual(word);
    };
    if (text.size() >= kWordBytes) {
      for (size_t at = 0; at + kWordBytes < text.size(); at += kWordBytes) copy(at);
      copy(text.size() - kWordBytes);
    } else {
      uint64_t word = kOnes * ' ';
      for (size_t at = 0; at < text.size(); ++at) {
        to[1 + at] = text[at];
        word = word << 8 | static_cast<unsigned char>(text[at]);
      }
      found = Unusual(word);
    }
    if ((found & kHighs) != 0) {
      scratch_.clear();
      AppendJsonString(text, scratch_);
      Raw(scratch_);
      return;
    }
    to[1 + text.size()] = '"';
    size_ += text.size() + 2;
  }

  void Raw(std::string_view text) {
    std::ranges::copy(text, Room(text.size()));
    size_ += text.size();
  }

  std::string& out_;
  const size_t start_;
  size_t size_;  // Of the content.
  std::string scratch_;
};

void AppendPretty(const Json& value, int indent, size_t column, std::string& out) {
  const size_t inner = column + static_cast<size_t>(indent);
  if (const JsonObject* object = value.if_object(); object != nullptr && !object->empty()) {
    out += "{\n";
    bool first = true;
    for (const auto& [key, member] : *object) {
      if (!first) out += ",\n";
      first = false;
      out.append(inner, ' ');
      AppendJsonString(key, out);
      out += ": ";
      AppendPretty(member, indent, inner, out);
    }
    out += '\n';
    out.append(column, ' ');
    out += '}';
    return;
  }
  if (const JsonArray* array = value.if_array(); array != nullptr && !array->empty()) {
    out += "[\n";
    for (size_t i = 0; i < array->size(); ++i) {
      if (i > 0) out += ",\n";
      out.append(inner, ' ');
      AppendPretty((*array)[i], indent, inner, out);
    }
    out += '\n';
    out.append(column, ' ');
    out += ']';
    return;
  }
  AppendJson(value, out);
}

}  // namespace

Result<ParsedJson> ParseAnyJson(std::string_view text, JsonOptions options,
                                api::JsonMemory memory) {
  return Parser(text, options, std::move(memory)).Run();
}

Result<ParsedJson> ParseJsonReporting(std::string_view text, JsonOptions options,
                                      api::JsonMemory memory) {
  if (std::optional<Json> plain = ParsePlainJson(text, options.nesting_max, memory)) {
    return ParsedJson{.value = std::move(*plain), .duplicates = {}};
  }
  return ParseAnyJson(text, options, std::move(memory));
}

Result<Json> ParseJson(std::string_view text, JsonOptions options, api::JsonMemory memory) {
  Result<ParsedJson> parsed = ParseJsonReporting(text, options, std::move(memory));
  if (!parsed) return std::unexpected(parsed.error());
  return std::move(parsed->value);
}

void AppendJsonString(std::string_view text, std::string& out) {
  out += '"';
  for (size_t at = 0;;) {
    const size_t end = PlainEnd(text, at);
    out.append(text.substr(at, end - at));
    at = end;
    if (at >= text.size()) break;
    const char c = text[at];
    if (static_cast<unsigned char>(c) >= 0x80) {
      at = CopyCharacter(text, at, out);
      continue;
    }
    ++at;
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
      case '\b':
        out += "\\b";
        break;
      case '\f':
        out += "\\f";
        break;
      default:
        out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
        break;
    }
  }
  out += '"';
}

void AppendJson(const Json& value, std::string& out) {
  Printer printer(out);
  printer.Value(value);
  printer.Finish();
}

std::string PrintJson(const Json& value) {
  // What most documents fit in; the result is kept for long, so it gives back what it doesn't need.
  constexpr size_t kUsualBytes = 4096;
  std::string out;
  out.reserve(kUsualBytes);
  AppendJson(value, out);
  out.shrink_to_fit();
  return out;
}

std::string PrintJsonPretty(const Json& value, int indent) {
  CHECK(indent >= 0);
  std::string out;
  AppendPretty(value, indent, 0, out);
  return out;
}

size_t ValidUtf8Prefix(std::string_view text) {
  size_t i = 0;
  const auto byte = [&](size_t at) { return static_cast<unsigned char>(text[at]); };
  const auto continues = [&](size_t at) { return at < text.size() && (byte(at) & 0xc0) == 0x80; };
  while (i < text.size()) {
    const unsigned char lead = byte(i);
    if (lead < 0x80) {
      ++i;
      continue;
    }
    size_t length = 0;
    if (lead >= 0xc2 && lead < 0xe0) length = 2;
    if (lead >= 0xe0 && lead < 0xf0) length = 3;
    if (lead >= 0xf0 && lead < 0xf5) length = 4;
    if (length == 0) return i;
    for (size_t k = 1; k < length; ++k) {
      if (!continues(i + k)) return i;
    }
    const unsigned char second = byte(i + 1);
    const bool overlong = (lead == 0xe0 && second < 0xa0) || (lead == 0xf0 && second < 0x90);
    const bool surrogate = lead == 0xed && second >= 0xa0;
    const bool beyond = lead == 0xf4 && second >= 0x90;
    if (overlong || surrogate || beyond) return i;
    i += length;
  }
  return i;
}

}  // namespace berth::codec
