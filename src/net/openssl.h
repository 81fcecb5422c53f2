#pragma once

#include <fmt/format.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>

#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

// Private to net/: owners of OpenSSL's objects and its errors.
namespace berth::net {

template <auto kFree>
struct OpensslFree {
  template <typename T>
  void operator()(T* pointer) const {
    kFree(pointer);
  }
};
using OpensslKey = std::unique_ptr<EVP_PKEY, OpensslFree<EVP_PKEY_free>>;
using OpensslBio = std::unique_ptr<BIO, OpensslFree<BIO_free_all>>;

inline std::unexpected<Error> OpensslError(std::string_view what) {
  char text[256] = "no detail";
  const unsigned long code = ERR_get_error();
  if (code != 0) ERR_error_string_n(code, text, sizeof(text));
  ERR_clear_error();
  return Fail(ErrorCode::kInvalid, fmt::format("{}: {}", what, text));
}

inline std::string TextOf(const OpensslBio& bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &data);
  return {data, static_cast<size_t>(size)};
}

inline Result<OpensslKey> ParseKey(const std::string& pem) {
  const OpensslBio bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  OpensslKey key(PEM_read_bio_PrivateKey(bio.get(), nullptr, nullptr, nullptr));
  if (key == nullptr) return OpensslError("not a private key in PEM");
  return key;
}

}  // namespace berth::net
