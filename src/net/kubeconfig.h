#pragma once

#include <string>
#include <string_view>

namespace berth::net {

// What a kubeconfig tells kubectl. All names in it are "berth".
struct KubeconfigFacts {
  std::string server;  // https://HOST:PORT
  std::string authority_pem;
  std::string token;            // Empty: none.
  std::string certificate_pem;  // Empty: none; with key_pem.
  std::string key_pem;
};

// The text of a kubeconfig of one cluster, one user and one context, which is the current one.
std::string KubeconfigText(const KubeconfigFacts& facts);

// Standard base64 (RFC 4648 section 4), padded.
std::string Base64(std::string_view bytes);

}  // namespace berth::net
