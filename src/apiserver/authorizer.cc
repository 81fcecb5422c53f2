#include "apiserver/authorizer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <functional>
#include <utility>

#include "api/field_error.h"
#include "api/object.h"
#include "apiserver/objects.h"

namespace berth::apiserver {

namespace {

using api::Json;
using api::KindId;

constexpr auto kRoles = static_cast<store::Table>(KindId::kRole);
constexpr auto kClusterRoles = static_cast<store::Table>(KindId::kClusterRole);
constexpr auto kBindings = static_cast<store::Table>(KindId::kRoleBinding);
constexpr auto kClusterBindings = static_cast<store::Table>(KindId::kClusterRoleBinding);
constexpr std::array kTables = {kRoles, kClusterRoles, kBindings, kClusterBindings};

// What subjects are found by; a user and a group may have one name.
std::string UserKey(std::string_view name) { return fmt::format("u{}", name); }
std::string GroupKey(std::string_view name) { return fmt::format("g{}", name); }

std::vector<std::string> KeysOf(const Identity& identity) {
  std::vector<std::string> keys = {UserKey(identity.user)};
  for (const std::string& group : identity.groups) keys.push_back(GroupKey(group));
  return keys;
}

std::string NoRole(bool of_cluster, std::string_view name) {
  return fmt::format("{}.rbac.authorization.k8s.io {} not found",
                     of_cluster ? "clusterrole" : "role", api::QuoteGo(name));
}

// Upstream sees to it that no message looks like HTML.
std::string Harmless(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '&') {
      out += "&amp;";
    } else if (c == '<') {
      out += "&lt;";
    } else if (c == '>') {
      out += "&gt;";
    } else {
      out += c;
    }
  }
  return out;
}

// What is refused, in upstream's words.
std::string Told(const Identity& identity, const Attributes& wanted) {
  const std::string user = api::QuoteGo(identity.user);
  if (!wanted.of_resource) {
    return fmt::format("User {} cannot {} path {}", user, wanted.verb, api::QuoteGo(wanted.path));
  }
  const std::string resource = wanted.subresource.empty()
                                   ? wanted.resource
                                   : fmt::format("{}/{}", wanted.resource, wanted.subresource);
  return fmt::format("User {} cannot {} resource {} in API group {} {}", user, wanted.verb,
                     api::QuoteGo(resource), api::QuoteGo(wanted.group),
                     wanted.namespace_name.empty()
                         ? "at the cluster scope"
                         : "in the namespace " + api::QuoteGo(wanted.namespace_name));
}

// The resource with its group, as upstream prefixes messages with it; "" of what is none.
std::string ResourceOf(const Attributes& wanted) {
  if (!wanted.of_resource || wanted.group.empty()) return wanted.resource;
  return fmt::format("{}.{}", wanted.resource, wanted.group);
}

}  // namespace

std::string AggregateErrors(const std::vector<std::string>& errors) {
  std::vector<std::string> once;
  for (const std::string& error : errors) {
    if (std::ranges::find(once, error) == once.end()) once.push_back(error);
  }
  if (once.empty()) return "";
  if (once.size() == 1) return once.front();
  return fmt::format("[{}]", fmt::join(once, ", "));
}

std::unexpected<Problem> NotAllowed(const Identity& identity, const Attributes& wanted,
                                    std::string_view reason) {
  std::string message = Harmless(Told(identity, wanted));
  if (!reason.empty()) message += fmt::format(": {}", reason);
  const std::string resource = ResourceOf(wanted);
  std::string subject = resource;
  if (!resource.empty() && !wanted.name.empty())
    subject += fmt::format(" {}", api::QuoteGo(wanted.name));
  message = subject.empty() ? fmt::format("forbidden: {}", message)
                            : fmt::format("{} is forbidden: {}", subject, message);
  return std::unexpected(Problem{.code = 403,
                                 .reason = "Forbidden",
                                 .message = std::move(message),
                                 .name = wanted.name,
                                 .group = wanted.group,
                                 .kind = wanted.resource});
}

bool IsMaster(const Identity& identity) {
  return std::ranges::find(identity.groups, "system:masters") != identity.groups.end();
}

void Authorizer::Recover(const store::Store& store) {
  roles_.clear();
  bindings_.clear();
  by_subject_.clear();
  for (const store::Table table : kTables) {
    store.Walk({.table = table}, [&](const store::ObjectRef& object) {
      Put(*object);
      return true;
    });
  }
}

void Authorizer::Observe(store::RevisionRange visible, const store::Store& store) {
  // More at once than the log holds.
  if (visible.first <= store.compacted_revision()) return Recover(store);
  for (uint64_t revision = visible.first; revision <= visible.last; ++revision) {
    const store::Event& event = store.EventAt(revision);
    const store::StoredObject& object = *event.object;
    if (std::ranges::find(kTables, object.table) == kTables.end()) continue;
    Remove(object.table, {.namespace_name = object.namespace_name, .name = object.name});
    if (!event.deleted) Put(object);
  }
}

void Authorizer::Put(const store::StoredObject& object) {
  Key key{.namespace_name = object.namespace_name, .name = object.name};
  const Json document = Load(object);
  if (object.table == kRoles || object.table == kClusterRoles) {
    roles_[std::move(key)] = std::make_shared<const std::vector<Rule>>(ParseRules(document));
    return;
  }
  const bool of_cluster = object.table == kClusterBindings;
  const std::string_view role_kind = api::TextAt(document, "roleRef.kind");
  Binding binding;
  binding.role.name = api::TextAt(document, "roleRef.name");
  if (role_kind == "Role") binding.role.namespace_name = object.namespace_name;
  // Upstream names a RoleBinding so: first the name.
  const std::string name =
      of_cluster ? object.name : fmt::format("{}/{}", object.name, object.namespace_name);
  binding.told = fmt::format("{} {} of {} {}", of_cluster ? "ClusterRoleBinding" : "RoleBinding",
                             api::QuoteGo(name), role_kind, api::QuoteGo(binding.role.name));
  for (const Json& subject : api::ArrayAt(document, "subjects")) {
    const std::string_view kind = api::TextAt(subject, "kind");
    std::string subject_name(api::TextAt(subject, "name"));
    std::string subject_key;
    if (kind == "User") subject_key = UserKey(subject_name);
    if (kind == "Group") subject_key = GroupKey(subject_name);
    if (kind == "ServiceAccount") {
      std::string_view space = api::TextAt(subject, "namespace");
      if (space.empty()) space = object.namespace_name;
      // Nobody's: without a namespace it names no account.
      if (space.empty()) continue;
      subject_key = UserKey(fmt::format("system:serviceaccount:{}:{}", space, subject_name));
      subject_name += fmt::format("/{}", space);
    }
    by_subject_[subject_key].insert(key);
    binding.subjects.push_back({.key = std::move(subject_key),
                                .told = fmt::format("{} {}", kind, api::QuoteGo(subject_name))});
  }
  bindings_[std::move(key)] = std::make_shared<const Binding>(std::move(binding));
}

void Authorizer::Remove(store::Table table, const Key& key) {
  if (table == kRoles || table == kClusterRoles) {
    roles_.erase(key);
    return;
  }
  const auto found = bindings_.find(key);
  if (found == bindings_.end()) return;
  for (const Subject& subject : found->second->subjects) {
    const auto set = by_subject_.find(subject.key);
    if (set == by_subject_.end()) continue;
    set->second.erase(key);
    if (set->second.empty()) by_subject_.erase(set);
  }
  bindings_.erase(found);
}

// Those over the cluster, then those of the namespace, by name.
std::vector<Authorizer::Key> Authorizer::BindingsOf(const std::vector<std::string>& subjects,
                                                    std::string_view namespace_name) const {
  std::vector<Key> keys;
  const auto add = [&](const std::set<Key>& all, std::string_view space) {
    auto at = all.lower_bound({.namespace_name = std::string(space), .name = ""});
    for (; at != all.end() && at->namespace_name == space; ++at) keys.push_back(*at);
  };
  for (const std::string& subject : subjects) {
    const auto found = by_subject_.find(subject);
    if (found == by_subject_.end()) continue;
    add(found->second, "");
    if (!namespace_name.empty()) add(found->second, namespace_name);
  }
  std::ranges::sort(keys);
  keys.erase(std::ranges::unique(keys).begin(), keys.end());
  return keys;
}

template <typename Visit>
void Authorizer::VisitBindings(const Identity& identity, std::string_view namespace_name,
                               const Visit& visit) const {
  const std::vector<std::string> subjects = KeysOf(identity);
  for (const Key& key : BindingsOf(subjects, namespace_name)) {
    const Binding& binding = *bindings_.at(key);
    const auto subject = std::ranges::find_if(binding.subjects, [&](const Subject& one) {
      return std::ranges::find(subjects, one.key) != subjects.end();
    });
    const auto role = roles_.find(binding.role);
    if (!visit(binding, subject->told, role == roles_.end() ? nullptr : role->second.get())) return;
  }
}

Authorizer::Decision Authorizer::Authorize(const Identity& identity,
                                           const Attributes& wanted) const {
  if (IsMaster(identity)) return {.allowed = true};
  Decision decision;
  std::vector<std::string> missing;
  VisitBindings(
      identity, wanted.namespace_name,
      [&](const Binding& binding, const std::string& subject, const std::vector<Rule>* rules) {
        if (rules == nullptr) {
          missing.push_back(NoRole(binding.role.namespace_name.empty(), binding.role.name));
          return true;
        }
        decision.allowed =
            std::ranges::any_of(*rules, [&](const Rule& rule) { return Allows(rule, wanted); });
        if (!decision.allowed) return true;
        decision.reason = fmt::format("RBAC: allowed by {} to {}", binding.told, subject);
        return false;
      });
  if (!decision.allowed && !missing.empty())
    decision.reason = fmt::format("RBAC: {}", AggregateErrors(missing));
  return decision;
}

Outcome<void> Authorizer::Check(const Identity& identity, const Attributes& wanted) const {
  const Decision decision = Authorize(identity, wanted);
  if (decision.allowed) return {};
  return NotAllowed(identity, wanted, decision.reason);
}

Authorizer::Held Authorizer::RulesOf(const Identity& identity,
                                     std::string_view namespace_name) const {
  Held held;
  std::vector<std::string> missing;
  VisitBindings(
      identity, namespace_name,
      [&](const Binding& binding, const std::string& /*subject*/, const std::vector<Rule>* rules) {
        if (rules == nullptr) {
          missing.push_back(NoRole(binding.role.namespace_name.empty(), binding.role.name));
          held.missing_names.push_back(binding.role.name);
          return true;
        }
        for (const Rule& rule : *rules) held.rules.push_back(&rule);
        return true;
      });
  held.missing = AggregateErrors(missing);
  return held;
}

const std::vector<Rule>* Authorizer::FindRole(std::string_view namespace_name,
                                              std::string_view name) const {
  const auto found =
      roles_.find(Key{.namespace_name = std::string(namespace_name), .name = std::string(name)});
  return found == roles_.end() ? nullptr : found->second.get();
}

}  // namespace berth::apiserver
