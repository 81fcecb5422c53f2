#include "net/token_key.h"

#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/rsa.h>
#include <openssl/x509.h>

#include <utility>

#include "base/check.h"
#include "net/openssl.h"

namespace berth::net {
namespace {

constexpr int kBits = 2048;
constexpr size_t kDigestBytes = 32;
using DigestContext = std::unique_ptr<EVP_MD_CTX, OpensslFree<EVP_MD_CTX_free>>;

const unsigned char* BytesOf(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

std::string NumberOf(const EVP_PKEY* key, const char* name) {
  BIGNUM* number = nullptr;
  if (EVP_PKEY_get_bn_param(key, name, &number) != 1) return "";
  std::string bytes(static_cast<size_t>(BN_num_bytes(number)), '\0');
  BN_bn2bin(number, reinterpret_cast<unsigned char*>(bytes.data()));
  BN_free(number);
  return bytes;
}

std::string IdOf(const EVP_PKEY* key) {
  unsigned char* der = nullptr;
  const int size = i2d_PUBKEY(key, &der);
  if (size <= 0) return "";
  std::string digest(kDigestBytes, '\0');
  const bool fine =
      EVP_Digest(der, static_cast<size_t>(size), reinterpret_cast<unsigned char*>(digest.data()),
                 nullptr, EVP_sha256(), nullptr) == 1;
  OPENSSL_free(der);
  return fine ? digest : "";
}

}  // namespace

struct TokenKey::Impl {
  OpensslKey key;
  Public public_half;
};

TokenKey::TokenKey(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {
  impl_->public_half = {.id = IdOf(impl_->key.get()),
                        .modulus = NumberOf(impl_->key.get(), OSSL_PKEY_PARAM_RSA_N),
                        .exponent = NumberOf(impl_->key.get(), OSSL_PKEY_PARAM_RSA_E)};
  CHECK(!impl_->public_half.id.empty());
  CHECK(!impl_->public_half.modulus.empty());
}

TokenKey::~TokenKey() = default;
TokenKey::TokenKey(TokenKey&& other) noexcept = default;
TokenKey& TokenKey::operator=(TokenKey&& other) noexcept = default;

Result<TokenKey> TokenKey::Make() {
  auto impl = std::make_unique<Impl>();
  impl->key = OpensslKey(EVP_RSA_gen(kBits));
  if (impl->key == nullptr) return OpensslError("making a key for tokens");
  return TokenKey(std::move(impl));
}

Result<TokenKey> TokenKey::Parse(const std::string& pem) {
  Result<OpensslKey> key = ParseKey(pem);
  if (!key) return std::unexpected(key.error());
  if (EVP_PKEY_is_a(key->get(), "RSA") != 1 || EVP_PKEY_get_bits(key->get()) < kBits)
    return Fail(ErrorCode::kInvalid, fmt::format("not an RSA key of {} bits or more", kBits));
  auto impl = std::make_unique<Impl>();
  impl->key = std::move(*key);
  return TokenKey(std::move(impl));
}

std::string TokenKey::pem() const {
  const OpensslBio bio(BIO_new(BIO_s_mem()));
  CHECK(PEM_write_bio_PKCS8PrivateKey(bio.get(), impl_->key.get(), nullptr, nullptr, 0, nullptr,
                                      nullptr) == 1);
  return TextOf(bio);
}

TokenKey::Public TokenKey::public_half() const { return impl_->public_half; }

std::string TokenKey::Sign(std::string_view text) const {
  const DigestContext context(EVP_MD_CTX_new());
  size_t size = 0;
  // Padding of PKCS #1 v1.5 is what RSA keys have unless they are told otherwise.
  const bool ready =
      context != nullptr &&
      EVP_DigestSignInit(context.get(), nullptr, EVP_sha256(), nullptr, impl_->key.get()) == 1 &&
      EVP_DigestSign(context.get(), nullptr, &size, BytesOf(text), text.size()) == 1;
  std::string signature(size, '\0');
  if (!ready || EVP_DigestSign(context.get(), reinterpret_cast<unsigned char*>(signature.data()),
                               &size, BytesOf(text), text.size()) != 1) {
    ERR_clear_error();
    return "";
  }
  signature.resize(size);
  return signature;
}

bool TokenKey::Verify(std::string_view text, std::string_view signature) const {
  const DigestContext context(EVP_MD_CTX_new());
  const bool right =
      context != nullptr &&
      EVP_DigestVerifyInit(context.get(), nullptr, EVP_sha256(), nullptr, impl_->key.get()) == 1 &&
      EVP_DigestVerify(context.get(), BytesOf(signature), signature.size(), BytesOf(text),
                       text.size()) == 1;
  ERR_clear_error();
  return right;
}

}  // namespace berth::net
