#include "client/scan.h"

#include <cstdint>
#include <cstring>
#include <utility>

namespace berth::client {
namespace {

size_t SkipSpace(std::string_view text, size_t at) {
  while (at < text.size()) {
    const char c = text[at];
    if (c != ' ' && c != '\n' && c != '\r' && c != '\t') break;
    ++at;
  }
  return at;
}

constexpr size_t kBroken = std::string_view::npos;

// Just behind the string literal that starts at `at`.
size_t SkipString(std::string_view text, size_t at) {
  ++at;
  while (at < text.size()) {
    const void* quote = std::memchr(text.data() + at, '"', text.size() - at);
    if (quote == nullptr) return kBroken;
    const size_t end = static_cast<size_t>(static_cast<const char*>(quote) - text.data());
    size_t slashes = 0;
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

size_t SkipValue(std::string_view text, size_t at) {
  if (at >= text.size()) return kBroken;
  if (text[at] == '"') return SkipString(text, at);
  if (text[at] == '{' || text[at] == '[') return SkipNested(text, at);
  const size_t start = at;
  while (at < text.size() && std::strchr(",]} \n\r\t", text[at]) == nullptr) ++at;
  return at == start ? kBroken : at;
}

void AppendUtf8(std::string& out, uint32_t code) {
  const auto put = [&](uint32_t byte) { out.push_back(static_cast<char>(byte)); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xC0 | (code >> 6));
    put(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    put(0xE0 | (code >> 12));
    put(0x80 | ((code >> 6) & 0x3F));
    put(0x80 | (code & 0x3F));
  } else {
    put(0xF0 | (code >> 18));
    put(0x80 | ((code >> 12) & 0x3F));
    put(0x80 | ((code >> 6) & 0x3F));
    put(0x80 | (code & 0x3F));
  }
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
    AppendUtf8(out, *code);
    return 4;
  }
  const bool high = *code < 0xDC00;
  if (high && text.size() >= 10 && text[4] == '\\' && text[5] == 'u') {
    const auto low = Hex4(text.substr(6));
    if (low && *low >= 0xDC00 && *low <= 0xDFFF) {
      AppendUtf8(out, 0x10000 + ((*code - 0xD800) << 10) + (*low - 0xDC00));
      return 10;
    }
  }
  AppendUtf8(out, 0xFFFD);
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
  at_ = text_.size();
  return false;
}

bool ObjectScanner::Next() {
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
  at_ = SkipSpace(text_, at_ + 1);
  const size_t value_end = SkipValue(text_, at_);
  if (value_end == kBroken) return Fail();
  value_ = text_.substr(at_, value_end - at_);
  at_ = value_end;
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

std::optional<Identity> ReadIdentity(std::string_view object) {
  const std::string_view metadata = Member(object, "metadata");
  if (metadata.empty()) return std::nullopt;
  Identity identity;
  ObjectScanner scanner(metadata);
  while (scanner.Next()) {
    std::string* field = nullptr;
    if (scanner.key() == "name") field = &identity.name;
    if (scanner.key() == "namespace") field = &identity.namespace_name;
    if (scanner.key() == "uid") field = &identity.uid;
    if (scanner.key() == "resourceVersion") field = &identity.resource_version;
    if (field == nullptr) continue;
    auto text = Unquote(scanner.value());
    if (!text) return std::nullopt;
    *field = std::move(*text);
  }
  if (scanner.failed() || identity.name.empty()) return std::nullopt;
  return identity;
}

}  // namespace berth::client
