#include "api/base64.h"

namespace berth::api {
namespace {

bool IsBase64(char c) {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '+' ||
         c == '/';
}

struct Scan {
  int64_t size = 0;
  int64_t error = -1;  // Offset, or -1.
};

Scan Run(std::string_view text) {
  int64_t characters = 0;
  int64_t padding = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '\n' || c == '\r') continue;
    const bool pads = c == '=' && (characters % 4 == 2 || characters % 4 == 3 || padding > 0);
    if (pads && (characters + padding) % 4 != 0) {
      ++padding;
      continue;
    }
    if (!IsBase64(c) || padding > 0) return {0, static_cast<int64_t>(i)};
    ++characters;
  }
  // Go tells where the incomplete group begins.
  const int64_t open = characters % 4;
  if ((characters + padding) % 4 != 0) {
    return {0, static_cast<int64_t>(text.size()) - (padding > 0 ? 0 : open)};
  }
  return {(characters + padding) / 4 * 3 - padding, -1};
}

}  // namespace

std::optional<int64_t> Base64Size(std::string_view text) {
  const Scan scan = Run(text);
  if (scan.error >= 0) return std::nullopt;
  return scan.size;
}

int64_t Base64ErrorOffset(std::string_view text) { return Run(text).error; }

std::optional<std::string> DecodeBase64(std::string_view text) {
  const std::optional<int64_t> size = Base64Size(text);
  if (!size) return std::nullopt;
  std::string bytes;
  bytes.reserve(static_cast<size_t>(*size));
  uint32_t bits = 0;
  int count = 0;
  for (const char c : text) {
    if (!IsBase64(c)) continue;  // Line breaks and padding.
    const uint32_t digit = c >= 'a'   ? static_cast<uint32_t>(c - 'a') + 26
                           : c >= 'A' ? static_cast<uint32_t>(c - 'A')
                           : c == '+' ? 62U
                           : c == '/' ? 63U
                                      : static_cast<uint32_t>(c - '0') + 52;
    bits = bits << 6 | digit;
    count += 6;
    if (count < 8) continue;
    count -= 8;
    bytes += static_cast<char>(bits >> count & 0xff);
  }
  return bytes;
}

std::string EncodeBase64(std::string_view bytes) {
  constexpr std::string_view kAlphabet =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const std::string_view group = bytes.substr(i, 3);
    uint32_t bits = 0;
    for (size_t k = 0; k < 3; ++k) {
      bits = bits << 8 | (k < group.size() ? static_cast<unsigned char>(group[k]) : 0U);
    }
    for (size_t k = 0; k < 4; ++k) {
      out += k <= group.size() ? kAlphabet[bits >> (18 - 6 * k) & 63] : '=';
    }
  }
  return out;
}

}  // namespace berth::api
