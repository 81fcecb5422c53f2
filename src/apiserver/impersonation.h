#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apiserver/problem.h"
#include "apiserver/rbac.h"
#include "apiserver/request.h"
#include "base/hash.h"
#include "env/http.h"

namespace berth::apiserver {

// Which way of impersonating was the last that a user was allowed: it is tried first, and a refusal
// tells of it. A copyable value.
class LastModes {
 public:
  // Upstream's. Beyond it all are forgotten, which costs a look more each.
  static constexpr size_t kUsersMax = 10'000;

  [[nodiscard]] std::optional<size_t> Find(std::string_view user) const;
  void Set(std::string_view user, size_t mode);
  void AddTo(Hasher& hasher) const;

 private:
  std::map<std::string, size_t, std::less<>> modes_;
};

// Whom a request wants to be taken for, by its Impersonate- headers; nothing when it wants nobody
// else. Who asks must be allowed that: by the verb `impersonate`, or for this very request by
// `impersonate:<mode>` and `impersonate-on:<mode>:<verb>`. Problems: 403, 400 for headers without a
// user. Source: k8s.io/apiserver pkg/endpoints/filters/impersonation.
[[nodiscard]] Outcome<std::optional<Identity>> Impersonate(const Requester& requester,
                                                           const Attributes& wanted,
                                                           const env::HttpRequest& http,
                                                           LastModes& last);

// A ServiceAccount as upstream's users are called, and its groups.
[[nodiscard]] std::string AccountUser(std::string_view namespace_name, std::string_view name);
[[nodiscard]] std::vector<std::string> AccountGroups(std::string_view namespace_name);

}  // namespace berth::apiserver
