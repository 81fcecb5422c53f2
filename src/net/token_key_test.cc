// Goal: tokens are signed as RS256 says, always alike, and nothing else passes for a signature.
// Method: keys made and read again; signatures and texts with bits turned.
#include "net/token_key.h"

#include <gtest/gtest.h>

#include <string>

#include "net/certificates.h"

namespace berth::net {
namespace {

TEST(TokenKey, SignaturesAreOfOneTextAndOneKey) {
  const Result<TokenKey> key = TokenKey::Make();
  const Result<TokenKey> other = TokenKey::Make();
  ASSERT_TRUE(key.has_value());
  ASSERT_TRUE(other.has_value());
  const std::string signature = key->Sign("text");
  EXPECT_EQ(signature.size(), 256U);
  EXPECT_EQ(signature, key->Sign("text"));
  EXPECT_TRUE(key->Verify("text", signature));
  EXPECT_FALSE(key->Verify("texT", signature));
  EXPECT_FALSE(other->Verify("text", signature));
  EXPECT_FALSE(key->Verify("text", ""));
  EXPECT_FALSE(key->Verify("text", signature + "x"));
  for (const size_t at : {size_t{0}, size_t{100}, signature.size() - 1}) {
    std::string turned = signature;
    turned[at] = static_cast<char>(turned[at] ^ 1);
    EXPECT_FALSE(key->Verify("text", turned)) << at;
  }
}

TEST(TokenKey, IsTheSameWhenItIsReadAgain) {
  const Result<TokenKey> key = TokenKey::Make();
  ASSERT_TRUE(key.has_value());
  const Result<TokenKey> again = TokenKey::Parse(key->pem());
  ASSERT_TRUE(again.has_value());
  EXPECT_EQ(key->public_half().id, again->public_half().id);
  EXPECT_EQ(key->public_half().id.size(), 32U);
  EXPECT_EQ(key->public_half().modulus.size(), 256U);
  EXPECT_EQ(key->public_half().exponent, std::string("\x01\x00\x01", 3));
  EXPECT_EQ(key->Sign("text"), again->Sign("text"));
}

TEST(TokenKey, OtherKeysAreRefused) {
  EXPECT_FALSE(TokenKey::Parse("").has_value());
  EXPECT_FALSE(TokenKey::Parse("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"));
  // One that servers have.
  const Result<KeyPair> authority = MakeAuthority("a", Instant::FromSeconds(1'800'000'000));
  ASSERT_TRUE(authority.has_value());
  const Result<TokenKey> elliptic = TokenKey::Parse(authority->key_pem);
  ASSERT_FALSE(elliptic.has_value());
  EXPECT_EQ(elliptic.error().message, "not an RSA key of 2048 bits or more");
}

}  // namespace
}  // namespace berth::net
