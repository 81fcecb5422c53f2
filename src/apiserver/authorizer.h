#pragma once

#include <compare>
#include <expected>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "apiserver/problem.h"
#include "apiserver/rbac.h"
#include "apiserver/request.h"
#include "store/store.h"

namespace berth::apiserver {

// Whether somebody is of system:masters, whose members may do all. O(groups).
[[nodiscard]] bool IsMaster(const Identity& identity);

// Upstream's text of several errors: each once, in brackets when they are several; "" for none.
[[nodiscard]] std::string AggregateErrors(const std::vector<std::string>& errors);

// 403 in upstream's words; `reason` may be empty.
[[nodiscard]] std::unexpected<Problem> NotAllowed(const Identity& identity,
                                                  const Attributes& wanted,
                                                  std::string_view reason);

// Who may do what: the durable roles and their bindings, by subject. Source: k8s.io/kubernetes
// pkg/registry/rbac/validation and plugin/pkg/auth/authorizer/rbac.
//
// A copyable value that shares what doesn't change; it follows from the store. Not thread-safe.
class Authorizer {
 public:
  struct Decision {
    bool allowed = false;
    // By which binding it is allowed, or which roles were not found; may be empty.
    std::string reason = {};
  };
  // All rules that somebody has in a namespace, and over the cluster. Views of the authoriser.
  struct Held {
    std::vector<const Rule*> rules;
    std::vector<std::string> missing_names;  // Roles that were not found,
    std::string missing;                     // and what upstream's authoriser says of them, or "".
  };

  // Takes over what is durable. O(roles and bindings).
  void Recover(const store::Store& store);
  // Learns of what has become visible.
  void Observe(store::RevisionRange visible, const store::Store& store);

  // Cost: O(groups) for system:masters, else the bindings of the user and its groups over the
  // cluster and in the namespace, and their rules.
  [[nodiscard]] Decision Authorize(const Identity& identity, const Attributes& wanted) const;
  // Authorize's refusal as an answer.
  [[nodiscard]] Outcome<void> Check(const Identity& identity, const Attributes& wanted) const;
  [[nodiscard]] Held RulesOf(const Identity& identity, std::string_view namespace_name) const;
  // The rules of a role, null when there is none. `namespace_name` is empty for a ClusterRole.
  [[nodiscard]] const std::vector<Rule>* FindRole(std::string_view namespace_name,
                                                  std::string_view name) const;

 private:
  struct Key {
    std::string namespace_name;  // Empty for what is of the cluster.
    std::string name;
    auto operator<=>(const Key&) const = default;
  };
  struct Subject {
    std::string key;   // See UserKey and GroupKey in the source.
    std::string told;  // As upstream describes it.
  };
  struct Binding {
    Key role;
    std::vector<Subject> subjects;
    std::string told;  // What it binds, as upstream describes it.
  };

  void Put(const store::StoredObject& object);
  void Remove(store::Table table, const Key& key);
  [[nodiscard]] std::vector<Key> BindingsOf(const std::vector<std::string>& subjects,
                                            std::string_view namespace_name) const;
  // Calls visit(binding, told of the subject, rules or null) until it says false.
  template <typename Visit>
  void VisitBindings(const Identity& identity, std::string_view namespace_name,
                     const Visit& visit) const;

  std::map<Key, std::shared_ptr<const std::vector<Rule>>> roles_;
  std::map<Key, std::shared_ptr<const Binding>> bindings_;
  std::map<std::string, std::set<Key>, std::less<>> by_subject_;
};

}  // namespace berth::apiserver
