#pragma once

#include <expected>
#include <functional>
#include <string>

#include "apiserver/authorizer.h"
#include "apiserver/problem.h"
#include "apiserver/request.h"
#include "apiserver/service_tokens.h"
#include "apiserver/writes.h"
#include "env/http.h"

// The reviews of authorization.k8s.io and authentication.k8s.io: who may do what, and who somebody
// is (https://kubernetes.io/docs/reference/access-authn-authz/authorization/).
namespace berth::apiserver {

// Whom a bearer token stands for; as ServiceTokens::Verify.
using VerifyToken =
    std::function<std::expected<ServiceTokens::Verified, std::string>(const ServiceTokens::Asked&)>;

// Answers a review. Of webhooks as HandleWrite. REQUIRES: request.kind->posted, request.requester.
[[nodiscard]] Outcome<env::HttpResponse> Review(const WriteTools& tools,
                                                const ResourceRequest& request,
                                                const VerifyToken& verify);

}  // namespace berth::apiserver
