#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace berth::api {

// How many bytes base64 text (RFC 4648 section 4, padded; line breaks are skipped) stands for, or
// nothing when it is none.
[[nodiscard]] std::optional<int64_t> Base64Size(std::string_view text);
// Where Go's decoder says that it stopped understanding. REQUIRES: Base64Size(text) is nothing.
[[nodiscard]] int64_t Base64ErrorOffset(std::string_view text);

// The bytes that base64 text stands for, or nothing when it is none.
[[nodiscard]] std::optional<std::string> DecodeBase64(std::string_view text);
[[nodiscard]] std::string EncodeBase64(std::string_view bytes);

}  // namespace berth::api
