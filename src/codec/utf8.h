#pragma once

#include <cstdint>
#include <string>

namespace berth::codec {

// Appends one character as UTF-8. REQUIRES: no surrogate, at most 0x10ffff.
inline void AppendUtf8(uint32_t code, std::string& out) {
  if (code < 0x80) {
    out += static_cast<char>(code);
    return;
  }
  if (code < 0x800) {
    out += static_cast<char>(0xc0 | (code >> 6));
  } else if (code < 0x10000) {
    out += static_cast<char>(0xe0 | (code >> 12));
    out += static_cast<char>(0x80 | ((code >> 6) & 0x3f));
  } else {
    out += static_cast<char>(0xf0 | (code >> 18));
    out += static_cast<char>(0x80 | ((code >> 12) & 0x3f));
    out += static_cast<char>(0x80 | ((code >> 6) & 0x3f));
  }
  out += static_cast<char>(0x80 | (code & 0x3f));
}

}  // namespace berth::codec
