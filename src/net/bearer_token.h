#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "base/mutex.h"
#include "base/result.h"
#include "base/time.h"

namespace berth::net {

// The token that a client shows to its server. One from a file rotates: whoever issues it writes a
// new one there before the old one ends, so the file is read again once in a while and whenever the
// server refuses what it had. A file that can't be read, or is empty, changes nothing.
//
// Thread-safe.
class BearerToken {
 public:
  // client-go reads again as often.
  static constexpr Duration kRereadEvery = Duration::Minutes(1);

  // A token that stays, without the blanks and line ends around it; empty: none.
  explicit BearerToken(std::string_view token = {});
  // Errors: the file can't be read, or holds no token.
  static Result<std::shared_ptr<BearerToken>> FromFile(std::filesystem::path path,
                                                       Duration every = kRereadEvery);

  [[nodiscard]] std::string Current();
  // After the server refused `token`: reads at once. True when there is another one now.
  [[nodiscard]] bool Renew(std::string_view refused);

 private:
  using SteadyTime = std::chrono::steady_clock::time_point;
  // Of the file `path`, which held `token`.
  BearerToken(std::string_view token, std::filesystem::path path, Duration every);
  void Reread(SteadyTime now) REQUIRES_LOCK(mutex_);

  Mutex mutex_;
  std::string token_ GUARDED_BY(mutex_);
  SteadyTime read_at_ GUARDED_BY(mutex_);
  // Immutable after construction.
  const std::filesystem::path path_;  // Empty: no file.
  const Duration every_ = kRereadEvery;
};

}  // namespace berth::net
