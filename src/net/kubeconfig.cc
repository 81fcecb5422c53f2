#include "net/kubeconfig.h"

#include <fmt/format.h>

namespace berth::net {

std::string Base64(std::string_view bytes) {
  static constexpr char kLetters[] =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const auto byte = [&](size_t at) {
      return at < bytes.size() ? static_cast<unsigned>(static_cast<unsigned char>(bytes[at])) : 0U;
    };
    const unsigned group = (byte(i) << 16) | (byte(i + 1) << 8) | byte(i + 2);
    text += kLetters[group >> 18];
    text += kLetters[(group >> 12) & 63];
    text += i + 1 < bytes.size() ? kLetters[(group >> 6) & 63] : '=';
    text += i + 2 < bytes.size() ? kLetters[group & 63] : '=';
  }
  return text;
}

std::string KubeconfigText(const KubeconfigFacts& facts) {
  std::string text = fmt::format(
      "apiVersion: v1\nkind: Config\ncurrent-context: berth\n"
      "clusters:\n- name: berth\n  cluster:\n    server: {}\n    certificate-authority-data: {}\n"
      "contexts:\n- name: berth\n  context:\n    cluster: berth\n    user: berth\n"
      "users:\n- name: berth\n  user:\n",
      facts.server, Base64(facts.authority_pem));
  if (!facts.token.empty()) text += fmt::format("    token: {}\n", facts.token);
  if (!facts.certificate_pem.empty()) {
    text += fmt::format("    client-certificate-data: {}\n    client-key-data: {}\n",
                        Base64(facts.certificate_pem), Base64(facts.key_pem));
  }
  return text;
}

}  // namespace berth::net
