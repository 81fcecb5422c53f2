#include "apiserver/impersonation.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/field_error.h"
#include "api/names.h"
#include "apiserver/authorizer.h"

namespace berth::apiserver {

namespace {

constexpr std::string_view kAccountPrefix = "system:serviceaccount:";
constexpr std::string_view kNodePrefix = "system:node:";
constexpr std::string_view kExtraPrefix = "impersonate-extra-";
constexpr std::string_view kAuthentication = "authentication.k8s.io";
// So many of one kind may be asked for at once.
constexpr size_t kManyChecks = 4;

struct AccountName {
  std::string_view namespace_name;
  std::string_view name;
};

std::optional<AccountName> ParseAccount(std::string_view user) {
  if (!user.starts_with(kAccountPrefix)) return std::nullopt;
  user.remove_prefix(kAccountPrefix.size());
  const size_t colon = user.find(':');
  if (colon == std::string_view::npos) return std::nullopt;
  const AccountName account{.namespace_name = user.substr(0, colon),
                            .name = user.substr(colon + 1)};
  if (!api::IsDns1123Label(account.namespace_name) || !api::IsDns1123Subdomain(account.name))
    return std::nullopt;
  return account;
}

std::optional<std::string_view> ParseNode(std::string_view user) {
  if (!user.starts_with(kNodePrefix)) return std::nullopt;
  user.remove_prefix(kNodePrefix.size());
  if (!api::IsDns1123Subdomain(user)) return std::nullopt;
  return user;
}

std::string Quoted(const std::vector<std::string>& texts) {
  std::vector<std::string> quoted;
  for (const std::string& text : texts) quoted.push_back(api::QuoteGo(text));
  return fmt::format("{}", fmt::join(quoted, ", "));
}

// As Go prints the wanted user, whose name is missing.
std::string Shown(const Identity& wanted) {
  std::string groups = "[]string(nil)";
  if (!wanted.groups.empty()) groups = fmt::format("[]string{{{}}}", Quoted(wanted.groups));
  std::string extra = "map[string][]string(nil)";
  if (!wanted.extra.empty()) {
    std::vector<std::string> items;
    for (const auto& [key, values] : wanted.extra) {
      items.push_back(fmt::format("{}:[]string{{{}}}", api::QuoteGo(key), Quoted(values)));
    }
    extra = fmt::format("map[string][]string{{{}}}", fmt::join(items, ", "));
  }
  return fmt::format("&user.DefaultInfo{{Name:\"\", UID:{}, Groups:{}, Extra:{}}}",
                     api::QuoteGo(wanted.uid), groups, extra);
}

// What the headers say; nothing without any.
Outcome<std::optional<Identity>> ParseHeaders(const env::HttpRequest& http) {
  Identity wanted;
  bool any = false;
  for (const auto& [name, value] : http.headers) {
    if (!name.starts_with("impersonate-")) continue;
    if (name == "impersonate-user" && wanted.user.empty()) {
      wanted.user = value;
    } else if (name == "impersonate-uid" && wanted.uid.empty()) {
      wanted.uid = value;
    } else if (name == "impersonate-group") {
      wanted.groups.push_back(value);
    } else if (name.starts_with(kExtraPrefix)) {
      wanted.extra[PercentDecode(name.substr(kExtraPrefix.size()))].push_back(value);
    } else {
      continue;
    }
    any = any || !value.empty() || name == "impersonate-group" || name.starts_with(kExtraPrefix);
  }
  if (!any) return std::nullopt;
  if (!wanted.user.empty()) return wanted;
  return BadRequest(fmt::format("requested {} without impersonating a user name", Shown(wanted)));
}

void AddGroup(Identity& identity, std::string_view group) {
  if (std::ranges::find(identity.groups, group) == identity.groups.end())
    identity.groups.emplace_back(group);
}

// A way to impersonate. All but the last allow it for single verbs.
class Mode {
 public:
  Mode(std::string_view name, const Requester& requester) : name_(name), requester_(requester) {}

  [[nodiscard]] bool AppliesTo(const Identity& wanted) const {
    if (!constrained()) return true;
    const bool user_only = wanted.uid.empty() && wanted.groups.empty() && wanted.extra.empty();
    const bool node = ParseNode(wanted.user).has_value();
    const bool account = ParseAccount(wanted.user).has_value();
    if (name_ == "user-info") return !node && !account;
    return user_only && (name_ == "serviceaccount" ? account : node);
  }

  // REQUIRES: AppliesTo(wanted).
  [[nodiscard]] Outcome<Identity> Check(const Identity& wanted, const Attributes& request) const {
    if (constrained()) {
      Attributes on = request;
      on.verb = fmt::format("impersonate-on:{}:{}", name_, request.verb);
      if (Outcome<void> fine = requester_.authorizer.Check(requester_.identity, on); !fine)
        return std::unexpected(std::move(fine.error()));
    }
    Outcome<Identity> actual = CheckUser(wanted);
    if (!actual) return actual;
    if (!wanted.uid.empty()) {
      if (Outcome<void> fine = Allowed(kAuthentication, "uids", wanted.uid); !fine)
        return std::unexpected(std::move(fine.error()));
    }
    if (Outcome<void> fine = CheckGroups(wanted.groups); !fine)
      return std::unexpected(std::move(fine.error()));
    if (Outcome<void> fine = CheckExtra(wanted); !fine)
      return std::unexpected(std::move(fine.error()));
    if (actual->user == "system:anonymous") {
      AddGroup(*actual, "system:unauthenticated");
    } else if (std::ranges::find(actual->groups, "system:unauthenticated") ==
               actual->groups.end()) {
      AddGroup(*actual, "system:authenticated");
    }
    return actual;
  }

 private:
  [[nodiscard]] bool constrained() const { return !name_.empty(); }
  [[nodiscard]] std::string_view group() const { return constrained() ? kAuthentication : ""; }

  [[nodiscard]] Attributes Wanted(std::string_view group, std::string_view resource,
                                  std::string_view name) const {
    return {.verb = constrained() ? fmt::format("impersonate:{}", name_) : "impersonate",
            .group = std::string(group),
            .resource = std::string(resource),
            .subresource = {},
            .namespace_name = {},
            .name = std::string(name),
            .path = {}};
  }

  [[nodiscard]] Outcome<void> Allowed(std::string_view group, std::string_view resource,
                                      std::string_view name) const {
    return requester_.authorizer.Check(requester_.identity, Wanted(group, resource, name));
  }

  [[nodiscard]] Outcome<Identity> CheckUser(const Identity& wanted) const {
    Identity actual = wanted;
    Attributes user = Wanted(group(), "users", wanted.user);
    if (const auto node = ParseNode(wanted.user); node && constrained()) {
      user.resource = "nodes";
      user.name = *node;
      actual.groups = {"system:nodes"};
    } else if (const auto account = ParseAccount(wanted.user)) {
      user.resource = "serviceaccounts";
      user.namespace_name = account->namespace_name;
      user.name = account->name;
      if (wanted.groups.empty()) actual.groups = AccountGroups(account->namespace_name);
    }
    if (Outcome<void> fine = requester_.authorizer.Check(requester_.identity, user); !fine)
      return std::unexpected(std::move(fine.error()));
    return actual;
  }

  [[nodiscard]] Outcome<void> CheckGroups(const std::vector<std::string>& groups) const {
    const Attributes none = Wanted(group(), "groups", "");
    if (constrained() && std::ranges::find(groups, "") != groups.end()) {
      return NotAllowed(requester_.identity, none,
                        "impersonating the empty string group is not allowed");
    }
    if (constrained() && std::ranges::find(groups, "system:masters") != groups.end()) {
      Attributes masters = none;
      masters.name = "system:masters";
      return NotAllowed(requester_.identity, masters,
                        "impersonating the system:masters group is not allowed");
    }
    if (constrained() && groups.size() >= kManyChecks && Allowed(group(), "groups", "*")) return {};
    for (const std::string& one : groups) {
      if (Outcome<void> fine = Allowed(group(), "groups", one); !fine) return fine;
    }
    return {};
  }

  [[nodiscard]] Outcome<void> CheckExtra(const Identity& wanted) const {
    for (const auto& [key, values] : wanted.extra) {
      for (const std::string& value : values) {
        Attributes extra = Wanted(kAuthentication, "userextras", value);
        extra.subresource = key;
        if (Outcome<void> fine = requester_.authorizer.Check(requester_.identity, extra); !fine)
          return fine;
      }
    }
    return {};
  }

  std::string_view name_;  // Empty: without constraints.
  const Requester& requester_;
};

}  // namespace

std::string AccountUser(std::string_view namespace_name, std::string_view name) {
  return fmt::format("{}{}:{}", kAccountPrefix, namespace_name, name);
}

std::vector<std::string> AccountGroups(std::string_view namespace_name) {
  return {"system:serviceaccounts", fmt::format("system:serviceaccounts:{}", namespace_name)};
}

std::optional<size_t> LastModes::Find(std::string_view user) const {
  const auto at = modes_.find(user);
  return at == modes_.end() ? std::nullopt : std::optional(at->second);
}

void LastModes::Set(std::string_view user, size_t mode) {
  if (modes_.size() >= kUsersMax && !modes_.contains(user)) modes_.clear();
  modes_[std::string(user)] = mode;
}

void LastModes::AddTo(Hasher& hasher) const {
  hasher.Add(modes_.size());
  for (const auto& [user, mode] : modes_) hasher.Add(user).Add(mode);
}

Outcome<std::optional<Identity>> Impersonate(const Requester& requester, const Attributes& wanted,
                                             const env::HttpRequest& http, LastModes& last) {
  Outcome<std::optional<Identity>> user = ParseHeaders(http);
  if (!user || !*user) return user;
  // Without constraints last.
  constexpr std::array<std::string_view, 4> kModes = {"arbitrary-node", "serviceaccount",
                                                      "user-info", ""};
  std::vector<size_t> order;
  const std::optional<size_t> before = last.Find(requester.identity.user);
  if (before) order.push_back(*before);
  for (size_t i = 0; i < kModes.size(); ++i) {
    if (i != before) order.push_back(i);
  }
  // What is told is why the first way was none.
  std::optional<Problem> first;
  for (const size_t index : order) {
    const Mode mode(kModes[index], requester);
    if (!mode.AppliesTo(**user)) continue;
    Outcome<Identity> actual = mode.Check(**user, wanted);
    if (actual) {
      last.Set(requester.identity.user, index);
      return std::optional<Identity>(std::move(*actual));
    }
    if (!first) first = std::move(actual.error());
  }
  return std::unexpected(std::move(*first));
}

}  // namespace berth::apiserver
