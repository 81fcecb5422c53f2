#include "codec/scan.h"

#include <bit>
#include <cstdint>
#include <cstring>
#include <utility>

#include "codec/utf8.h"

namespace berth::codec {
namespace {

size_t SkipSpace(std::string_view text, size_t at) {
  if (at < text.size() && text[at] > ' ') return at;  // As servers write.
  while (at < text.size()) {
    const char c = text[at];
    if (c != ' ' && c != '\n' && c != '\r' && c != '\t') break;
    ++at;
  }
  return at;
}

constexpr size_t kBroken = std::string_view::npos;

// The next quote, at `at` or behind. Most strings are a few bytes long, which memchr is slow for.
size_t FindQuote(std::string_view text, size_t at) {
  constexpr uint64_t kOnes = 0x0101010101010101;
  if constexpr (std::endian::native == std::endian::little) {
    for (; at + 8 <= text.size(); at += 8) {
      uint64_t word = 0;
      std::memcpy(&word, text.data() + at, 8);
      word ^= kOnes * '"';
      // The high bit of bytes that are 0 now. Borrows lead astray above the lowest one only.
      const uint64_t found = (word - kOnes) & ~word & (kOnes << 7);
      if (found != 0) return at + static_cast<size_t>(std::countr_zero(found)) / 8;
    }
  }
  return text.find('"', at);
}

// Just behind the string literal that starts at `at`.
size_t SkipString(std::string_view text, size_t at) {
  ++at;
  while (at < text.size()) {
    const size_t end = FindQuote(text, at);
    if (end == kBroken) return kBroken;
    if (end == at || text[end - 1] != '\\') return end + 1;
    size_t slashes = 1;
    while (end - slashes > at && text[end - slashes - 1] == '\\') ++slashes;
    if (slashes % 2 == 0) return end + 1;
    at = end + 1;
  }
  return kBroken;
}

// Just behind the object or array that starts at `at`.
size_t SkipNested(std::string_view text, size_t at) {
  size_t depth = 0;
  while (at < text.size()) {
    const char c = text[at];
    if (c == '"') {
      at = SkipString(text, at);
      if (at == kBroken) return kBroken;
      continue;
    }
    ++at;
    if (c == '{' || c == '[') ++depth;
    if (c == '}' || c == ']') {
      --depth;
      if (depth == 0) return at;
    }
  }
  return kBroken;
}

bool EndsScalar(char c) {
  return c == ',' || c == '}' || c == ']' || c == ' ' || c == '\n' || c == '\r' || c == '\t' ||
         c == '\0';
}

size_t SkipValue(std::string_view text, size_t at) {
  if (at >= text.size()) return kBroken;
  if (text[at] == '"') return SkipString(text, at);
  if (text[at] == '{' || text[at] == '[') return SkipNested(text, at);
  const size_t start = at;
  while (at < text.size() && !EndsScalar(text[at])) ++at;
  return at == start ? kBroken : at;
}

std::optional<uint32_t> Hex4(std::string_view text) {
  if (text.size() < 4) return std::nullopt;
  uint32_t code = 0;
  for (const char c : text.substr(0, 4)) {
    code <<= 4;
    if (c >= '0' && c <= '9') {
      code |= static_cast<uint32_t>(c - '0');
    } else if (c >= 'a' && c <= 'f') {
      code |= static_cast<uint32_t>(c - 'a' + 10);
    } else if (c >= 'A' && c <= 'F') {
      code |= static_cast<uint32_t>(c - 'A' + 10);
    } else {
      return std::nullopt;
    }
  }
  return code;
}

// Reads the hex digits behind "\u", and the second half of a surrogate pair. Returns the bytes
// used; 0 when damaged.
size_t UnescapeUnicode(std::string_view text, std::string& out) {
  const auto code = Hex4(text);
  if (!code) return 0;
  if (*code < 0xD800 || *code > 0xDFFF) {
    AppendUtf8(*code, out);
    return 4;
  }
  const bool high = *code < 0xDC00;
  if (high && text.size() >= 10 && text[4] == '\\' && text[5] == 'u') {
    const auto low = Hex4(text.substr(6));
    if (low && *low >= 0xDC00 && *low <= 0xDFFF) {
      AppendUtf8(0x10000 + ((*code - 0xD800) << 10) + (*low - 0xDC00), out);
      return 10;
    }
  }
  AppendUtf8(0xFFFD, out);
  return 4;
}

}  // namespace

ObjectScanner::ObjectScanner(std::string_view text) : text_(text) {
  at_ = SkipSpace(text_, 0);
  if (at_ >= text_.size() || text_[at_] != '{') {
    Fail();
    return;
  }
  ++at_;
}

bool ObjectScanner::Fail() {
  failed_ = true;
  pending_ = false;
  value_ = {};
  at_ = text_.size();
  return false;
}

std::string_view ObjectScanner::value() {
  if (!pending_) return value_;
  pending_ = false;
  const size_t end = SkipValue(text_, value_at_);
  if (end == kBroken) {
    Fail();
    return value_;
  }
  value_ = text_.substr(value_at_, end - value_at_);
  at_ = end;
  return value_;
}

bool ObjectScanner::Next() {
  if (pending_) (void)value();
  if (failed_) return false;
  at_ = SkipSpace(text_, at_);
  if (at_ >= text_.size()) return Fail();
  if (text_[at_] == '}') return false;
  if (!first_) {
    if (text_[at_] != ',') return Fail();
    at_ = SkipSpace(text_, at_ + 1);
  }
  first_ = false;
  if (at_ >= text_.size() || text_[at_] != '"') return Fail();
  const size_t key_end = SkipString(text_, at_);
  if (key_end == kBroken) return Fail();
  key_ = text_.substr(at_ + 1, key_end - at_ - 2);
  at_ = SkipSpace(text_, key_end);
  if (at_ >= text_.size() || text_[at_] != ':') return Fail();
  value_at_ = SkipSpace(text_, at_ + 1);
  pending_ = true;
  return true;
}

ArrayScanner::ArrayScanner(std::string_view text) : text_(text) {
  at_ = SkipSpace(text_, 0);
  if (at_ >= text_.size() || text_[at_] != '[') {
    Fail();
    return;
  }
  ++at_;
}

bool ArrayScanner::Fail() {
  failed_ = true;
  at_ = text_.size();
  return false;
}

bool ArrayScanner::Next() {
  if (failed_) return false;
  at_ = SkipSpace(text_, at_);
  if (at_ >= text_.size()) return Fail();
  if (text_[at_] == ']') return false;
  if (!first_) {
    if (text_[at_] != ',') return Fail();
    at_ = SkipSpace(text_, at_ + 1);
  }
  first_ = false;
  const size_t end = SkipValue(text_, at_);
  if (end == kBroken) return Fail();
  value_ = text_.substr(at_, end - at_);
  at_ = end;
  return true;
}

std::optional<std::string> Unquote(std::string_view literal) {
  if (literal.size() < 2 || literal.front() != '"' || literal.back() != '"') return std::nullopt;
  literal = literal.substr(1, literal.size() - 2);
  if (literal.find('\\') == std::string_view::npos) return std::string(literal);
  std::string out;
  out.reserve(literal.size());
  for (size_t i = 0; i < literal.size(); ++i) {
    if (literal[i] != '\\') {
      out.push_back(literal[i]);
      continue;
    }
    if (++i == literal.size()) return std::nullopt;
    constexpr std::string_view kFrom = "\"\\/bfnrt";
    constexpr std::string_view kTo = "\"\\/\b\f\n\r\t";
    if (const size_t index = kFrom.find(literal[i]); index != std::string_view::npos) {
      out.push_back(kTo[index]);
      continue;
    }
    if (literal[i] != 'u') return std::nullopt;
    const size_t used = UnescapeUnicode(literal.substr(i + 1), out);
    if (used == 0) return std::nullopt;
    i += used;
  }
  return out;
}

std::string_view Member(std::string_view object, std::string_view key) {
  ObjectScanner scanner(object);
  while (scanner.Next()) {
    if (scanner.key() == key) return scanner.value();
  }
  return {};
}

std::string_view Member(std::string_view object, std::string_view key, std::string_view inner) {
  const std::string_view outer = Member(object, key);
  return outer.empty() ? outer : Member(outer, inner);
}

std::string StringMember(std::string_view object, std::string_view key) {
  return Unquote(Member(object, key)).value_or(std::string());
}

}  // namespace berth::codec
