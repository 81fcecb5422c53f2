#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

namespace berth::net {

// An RSA key of 2048 bits that signs by RS256 (RFC 7518 section 3.3): equal texts get equal
// signatures. Immutable; thread-safe.
class TokenKey {
 public:
  // Takes a tenth of a second or more.
  static Result<TokenKey> Make();
  // kInvalid: no such key in PEM.
  static Result<TokenKey> Parse(const std::string& pem);
  ~TokenKey();
  TokenKey(TokenKey&& other) noexcept;
  TokenKey& operator=(TokenKey&& other) noexcept;

  [[nodiscard]] std::string pem() const;
  // Its public half, as bytes: what it is called by (the SHA-256 of its SubjectPublicKeyInfo, as
  // upstream), its modulus and its exponent, both with the highest byte first.
  struct Public {
    std::string id;
    std::string modulus;
    std::string exponent;
  };
  [[nodiscard]] Public public_half() const;
  // Empty when OpenSSL fails.
  [[nodiscard]] std::string Sign(std::string_view text) const;
  [[nodiscard]] bool Verify(std::string_view text, std::string_view signature) const;

 private:
  struct Impl;
  explicit TokenKey(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace berth::net
