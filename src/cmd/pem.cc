#include "cmd/pem.h"

#include <fmt/format.h>

#include "net/certificates.h"

namespace berth::cmd {

Result<std::string> ReadPem(std::string_view flag, const std::string& path) {
  Result<std::string> text = net::ReadFile(path);
  if (!text) return Fail(text.error().code, fmt::format("{}: {}", flag, text.error().message));
  if (text->find("-----BEGIN ") == std::string::npos)
    return Fail(ErrorCode::kInvalid, fmt::format("{}: {}: holds no PEM", flag, path));
  return text;
}

}  // namespace berth::cmd
