#include "net/bearer_token.h"

#include <fmt/format.h>

#include <utility>

#include "net/certificates.h"

namespace berth::net {
namespace {

std::string Trim(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\n";
  const size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return "";
  return std::string(text.substr(first, text.find_last_not_of(kBlanks) + 1 - first));
}

}  // namespace

BearerToken::BearerToken(std::string_view token) : token_(Trim(token)) {}

BearerToken::BearerToken(std::string_view token, std::filesystem::path path, Duration every)
    : token_(Trim(token)),
      read_at_(std::chrono::steady_clock::now()),
      path_(std::move(path)),
      every_(every) {}

Result<std::shared_ptr<BearerToken>> BearerToken::FromFile(std::filesystem::path path,
                                                           Duration every) {
  const Result<std::string> text = ReadFile(path.string());
  if (!text) return std::unexpected(text.error());
  if (Trim(*text).empty()) {
    return Fail(ErrorCode::kInvalid, fmt::format("{}: holds no token", path.string()));
  }
  return std::shared_ptr<BearerToken>(new BearerToken(*text, std::move(path), every));
}

void BearerToken::Reread(SteadyTime now) {
  read_at_ = now;
  const Result<std::string> text = ReadFile(path_.string());
  if (!text) return;
  std::string token = Trim(*text);
  if (!token.empty()) token_ = std::move(token);
}

std::string BearerToken::Current() {
  const MutexLock lock(mutex_);
  const SteadyTime now = std::chrono::steady_clock::now();
  if (!path_.empty() && now - read_at_ >= std::chrono::nanoseconds(every_.ns)) Reread(now);
  return token_;
}

bool BearerToken::Renew(std::string_view refused) {
  const MutexLock lock(mutex_);
  if (path_.empty()) return false;
  if (token_ == refused) Reread(std::chrono::steady_clock::now());
  return token_ != refused;
}

}  // namespace berth::net
