#pragma once

#include <optional>

#include "apiserver/problem.h"
#include "apiserver/rbac.h"
#include "apiserver/request.h"
#include "env/http.h"

namespace berth::apiserver {

// Whom a request wants to be taken for, by its Impersonate- headers; nothing when it wants nobody
// else. Who asks must be allowed that: by the verb `impersonate`, or for this very request by
// `impersonate:<mode>` and `impersonate-on:<mode>:<verb>`. Problems: 403, 400 for headers without a
// user. Source: k8s.io/apiserver pkg/endpoints/filters/impersonation.
[[nodiscard]] Outcome<std::optional<Identity>> Impersonate(const Requester& requester,
                                                           const Attributes& wanted,
                                                           const env::HttpRequest& http);

// A ServiceAccount as upstream's users are called, and its groups.
[[nodiscard]] std::string AccountUser(std::string_view namespace_name, std::string_view name);
[[nodiscard]] std::vector<std::string> AccountGroups(std::string_view namespace_name);

}  // namespace berth::apiserver
