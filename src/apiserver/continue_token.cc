#include "apiserver/continue_token.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "api/object.h"
#include "codec/json.h"

namespace berth::apiserver {

namespace {

constexpr std::string_view kAlphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

// RFC 4648 section 5, without padding.
std::string EncodeBase64(std::string_view bytes) {
  std::string out;
  uint32_t bits = 0;
  int count = 0;
  for (const char c : bytes) {
    bits = (bits << 8) | static_cast<unsigned char>(c);
    count += 8;
    while (count >= 6) {
      count -= 6;
      out += kAlphabet[(bits >> count) & 63];
    }
  }
  if (count > 0) out += kAlphabet[(bits << (6 - count)) & 63];
  return out;
}

std::optional<std::string> DecodeBase64(std::string_view text) {
  std::string out;
  uint32_t bits = 0;
  int count = 0;
  for (const char c : text) {
    const size_t digit = kAlphabet.find(c);
    if (digit == std::string_view::npos) return std::nullopt;
    bits = (bits << 6) | static_cast<uint32_t>(digit);
    count += 6;
    if (count >= 8) {
      count -= 8;
      out += static_cast<char>((bits >> count) & 255);
    }
  }
  return out;
}

std::unexpected<Problem> BadToken(std::string_view why) {
  return BadRequest(fmt::format("invalid continue token: continue key is not valid: {}", why));
}

}  // namespace

std::string PrintContinueToken(const ContinueToken& token, std::string_view list_namespace) {
  std::string start;
  if (list_namespace.empty() && !token.after_namespace.empty()) {
    start = fmt::format("/{}/{}", token.after_namespace, token.after_name);
  } else {
    start = fmt::format("/{}", token.after_name);
  }
  return EncodeBase64(
      fmt::format(R"({{"v":"meta.k8s.io/v1","rv":{},"start":"{}\u0000"}})", token.revision, start));
}

Outcome<ContinueToken> ParseContinueToken(std::string_view text, std::string_view list_namespace) {
  const std::optional<std::string> decoded = DecodeBase64(text);
  if (!decoded) return BadToken("illegal base64 data");
  const Result<api::Json> parsed = codec::ParseJson(*decoded);
  if (!parsed) return BadToken(parsed.error().message);
  if (!parsed->is_object()) return BadToken("not an object");
  const std::string_view version = api::TextAt(*parsed, "v");
  if (version != "meta.k8s.io/v1") {
    return BadToken(fmt::format("server does not recognize this encoded version \"{}\"", version));
  }
  ContinueToken token{.revision = api::IntegerAt(*parsed, "rv"),
                      .after_namespace = std::string(list_namespace),
                      .after_name = {}};
  if (token.revision == 0 || token.revision < -1) {
    return BadToken("incorrect encoded start resourceVersion (version meta.k8s.io/v1)");
  }
  std::string_view start = api::TextAt(*parsed, "start");
  if (start.empty()) return BadToken("encoded start key empty (version meta.k8s.io/v1)");
  if (start.starts_with('/')) start.remove_prefix(1);
  if (start.ends_with('\0')) start.remove_suffix(1);
  const size_t slash = start.find('/');
  if (list_namespace.empty() && slash != std::string_view::npos) {
    token.after_namespace = start.substr(0, slash);
    start.remove_prefix(slash + 1);
  }
  token.after_name = start;
  return token;
}

}  // namespace berth::apiserver
