#include "apiserver/mountable_secrets.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "api/object.h"
#include "apiserver/objects.h"

namespace berth::apiserver {

namespace {

using api::Json;
using api::JsonArray;

// As Go reads a flag.
bool IsTrueText(std::string_view text) {
  constexpr std::array<std::string_view, 6> kTrue = {"1", "t", "T", "true", "TRUE", "True"};
  return std::ranges::find(kTrue, text) != kTrue.end();
}

std::set<std::string_view> NamesIn(const Json& account, std::string_view list) {
  std::set<std::string_view> names;
  for (const Json& item : api::ArrayAt(account, list)) names.insert(api::TextAt(item, "name"));
  return names;
}

// The first Secret of a container's variables that is not among the mountable ones, and where it
// stands; empty for none.
std::string SecretOutside(const Json& container, const std::set<std::string_view>& mountable) {
  for (const Json& variable : api::ArrayAt(container, "env")) {
    if (api::FindPath(variable, "valueFrom.secretKeyRef") == nullptr) continue;
    const std::string_view name = api::TextAt(variable, "valueFrom.secretKeyRef.name");
    if (mountable.contains(name)) continue;
    return fmt::format("envVar {} referencing secret.secretName=\"{}\"",
                       api::TextAt(variable, "name"), name);
  }
  for (const Json& source : api::ArrayAt(container, "envFrom")) {
    if (api::FindMember(source, "secretRef") == nullptr) continue;
    const std::string_view name = api::TextAt(source, "secretRef.name");
    if (!mountable.contains(name))
      return fmt::format("envFrom referencing secret.secretName=\"{}\"", name);
  }
  return "";
}

}  // namespace

Outcome<void> CheckMountable(const store::StoredObject& account, Subject subject, const Json& pod) {
  constexpr std::string_view kEnforced = "kubernetes.io/enforce-mountable-secrets";
  // Most accounts don't ask for it, and are seen not to without parsing them.
  if (!account.json.view().contains(kEnforced)) return {};
  const Json document = Load(account);
  const Json* enforced =
      api::FindMember(api::ObjectAt(document, "metadata.annotations"), kEnforced);
  if (enforced == nullptr || !IsTrueText(api::TextOf(*enforced))) return {};
  const auto refuse = [&](const std::string& what, const char* kind) {
    return Forbidden(
        subject,
        fmt::format("{} is not allowed because service account {} does not reference that {}", what,
                    account.name, kind));
  };
  const std::set<std::string_view> mountable = NamesIn(document, "secrets");
  for (const Json& volume : api::ArrayAt(pod, "spec.volumes")) {
    if (api::FindMember(volume, "secret") == nullptr) continue;
    const std::string_view name = api::TextAt(volume, "secret.secretName");
    if (!mountable.contains(name))
      return refuse(fmt::format("volume with secret.secretName=\"{}\"", name), "secret");
  }
  using Words = std::pair<std::string_view, std::string_view>;  // The list, and an item of it.
  for (const auto& [list, word] :
       {Words("spec.initContainers", "init container"), Words("spec.containers", "container")}) {
    for (const Json& container : api::ArrayAt(pod, list)) {
      const std::string outside = SecretOutside(container, mountable);
      if (outside.empty()) continue;
      return refuse(fmt::format("{} {} with {}", word, api::TextAt(container, "name"), outside),
                    "secret");
    }
  }
  const std::set<std::string_view> of_pull = NamesIn(document, "imagePullSecrets");
  const JsonArray& used = api::ArrayAt(pod, "spec.imagePullSecrets");
  for (size_t i = 0; i < used.size(); ++i) {
    const std::string_view name = api::TextAt(used[i], "name");
    if (!of_pull.contains(name))
      return refuse(fmt::format("imagePullSecrets[{}].name=\"{}\"", i, name), "imagePullSecret");
  }
  return {};
}

}  // namespace berth::apiserver
