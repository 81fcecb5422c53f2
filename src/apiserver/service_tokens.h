#pragma once

#include <expected>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apiserver/problem.h"
#include "apiserver/request.h"
#include "apiserver/writes.h"
#include "base/time.h"
#include "env/http.h"
#include "store/store.h"

namespace berth::apiserver {

// The key that tokens are signed with by RS256 (RFC 7518). Its functions may be called from the
// server's thread at any time; a signature follows from the key and the text alone.
struct TokenKey {
  // Its public half as bytes, and what it is called by.
  struct Public {
    std::string id;
    std::string modulus;
    std::string exponent;
  };
  std::function<Public()> public_half;
  // Empty when it can't sign.
  std::function<std::string(std::string_view text)> sign;
  std::function<bool(std::string_view text, std::string_view signature)> verify;
};

// Tokens of ServiceAccounts (https://kubernetes.io/docs/reference/access-authn-authz/
// service-accounts-admin/). Immutable; without a key none are given or taken. Source:
// k8s.io/kubernetes pkg/serviceaccount and pkg/registry/core/serviceaccount/storage/token.go.
class ServiceTokens {
 public:
  // Who gives them out, and whom they are for unless they say otherwise.
  static constexpr std::string_view kIssuer = "https://kubernetes.default.svc";

  // `host` is where clients reach the server: an address and a port.
  ServiceTokens(std::shared_ptr<const TokenKey> key, std::string host)
      : key_(std::move(key)), host_(std::move(host)) {}

  // Answers serviceaccounts/token. Of webhooks as HandleWrite. Problems: in upstream's words.
  [[nodiscard]] Outcome<env::HttpResponse> Create(const WriteTools& tools,
                                                  const ResourceRequest& request) const;

  struct Verified {
    Identity identity;
    std::vector<std::string> audiences;  // Those of the token that were asked for.
  };
  struct Asked {
    std::string_view token;
    std::vector<std::string> audiences;  // Empty: the server's own.
  };
  // Whom a token stands for. The error is what upstream's says of it, empty when the token is none
  // of ours.
  [[nodiscard]] std::expected<Verified, std::string> Verify(Instant now, const store::Store& store,
                                                            const Asked& asked) const;

  // Answers the documents of OpenID Connect Discovery: how others verify tokens.
  [[nodiscard]] std::optional<Outcome<env::HttpResponse>> Answer(
      const Target& target, const env::HttpRequest& http) const;

 private:
  // Fills in a request of a token.
  [[nodiscard]] Outcome<void> Give(WriteContext& context, api::Json& asked) const;

  std::shared_ptr<const TokenKey> key_;
  std::string host_;
};

}  // namespace berth::apiserver
