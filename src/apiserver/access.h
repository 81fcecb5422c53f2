#pragma once

#include "apiserver/problem.h"
#include "apiserver/request.h"
#include "env/http.h"

// Who may do what, and the reviews of authorization.k8s.io that ask for it
// (https://kubernetes.io/docs/reference/access-authn-authz/authorization/).
//
// Everybody whom the server knows may do everything, but act as somebody else. Who is nobody may
// read public paths.
namespace berth::apiserver {

// Answers a review. REQUIRES: request.kind->posted.
[[nodiscard]] Outcome<env::HttpResponse> ReviewAccess(const ResourceRequest& request,
                                                      const Identity& identity);

}  // namespace berth::apiserver
