#include "apiserver/runtime_classes.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "api/object.h"
#include "api/usage.h"
#include "apiserver/objects.h"

namespace berth::apiserver {
namespace {

using api::Json;
using api::JsonArray;
using api::JsonObject;

std::string_view OperatorOf(const Json& toleration) {
  const std::string_view text = api::TextAt(toleration, "operator");
  return text.empty() ? "Equal" : text;
}

// Whether a pod with `wide` tolerates whatever one with `narrow` does.
bool Covers(const Json& wide, const Json& narrow) {
  if (wide == narrow) return true;
  const auto text = [](const Json& of, std::string_view path) { return api::TextAt(of, path); };
  const std::string_view how = OperatorOf(wide);
  const std::string_view key = text(wide, "key");
  if (text(narrow, "key") != key && (!key.empty() || how != "Exists")) return false;
  const std::string_view effect = text(wide, "effect");
  if (text(narrow, "effect") != effect && !effect.empty()) return false;
  const Json* most = api::FindPath(wide, "tolerationSeconds");
  if (effect == "NoExecute" && most != nullptr) {
    const Json* asked = api::FindPath(narrow, "tolerationSeconds");
    if (asked == nullptr) return false;
    if (api::IntegerAt(narrow, "tolerationSeconds") > api::IntegerAt(wide, "tolerationSeconds"))
      return false;
  }
  return how == "Exists" ||
         (OperatorOf(narrow) == how && text(wide, "value") == text(narrow, "value"));
}

// Both, without those that another covers; of equal ones the first.
JsonArray MergeTolerations(const JsonArray& first, const JsonArray& second) {
  JsonArray all = first;
  for (const Json& toleration : second) all.push_back(toleration);
  JsonArray merged;
  for (size_t i = 0; i < all.size(); ++i) {
    const auto covers = [&](const Json& other) { return Covers(other, all[i]); };
    const auto covers_unequal = [&](const Json& other) { return other != all[i] && covers(other); };
    const auto later =
        std::ranges::subrange(all.begin() + static_cast<std::ptrdiff_t>(i), all.end());
    if (std::ranges::none_of(merged, covers) && std::ranges::none_of(later, covers_unequal))
      merged.push_back(all[i]);
  }
  return merged;
}

Outcome<void> SetScheduling(Subject subject, const Json& runtime_class, Json& spec) {
  const JsonObject& selector = api::ObjectAt(runtime_class, "scheduling.nodeSelector");
  for (const auto& [key, value] : selector) {
    const std::string_view wanted = value.get_string();
    const Json* own = api::FindMember(api::ObjectAt(std::as_const(spec), "nodeSelector"), key);
    if (own != nullptr && *own != value) {
      return Forbidden(subject, fmt::format("conflict: runtimeClass.scheduling.nodeSelector[{}] = "
                                            "{}; pod.spec.nodeSelector[{}] = {}",
                                            key, wanted, key, own->get_string()));
    }
    api::MemberObject(spec.get_object(), "nodeSelector")[key] = value;
  }
  const JsonArray& tolerations = api::ArrayAt(runtime_class, "scheduling.tolerations");
  if (tolerations.empty()) return {};
  spec.get_object()["tolerations"] =
      MergeTolerations(api::ArrayAt(std::as_const(spec), "tolerations"), tolerations);
  return {};
}

}  // namespace

std::unexpected<Problem> RefuseOverhead(Subject subject) {
  return Forbidden(subject,
                   "pod rejected: Pod Overhead set without corresponding RuntimeClass defined "
                   "Overhead");
}

Outcome<void> AdmitRuntimeClass(const store::Store& store, Subject subject, Json& pod) {
  const std::string name(api::TextAt(pod, "spec.runtimeClassName"));
  // Upstream's own question for it fails.
  if (name.empty() && api::FindPath(std::as_const(pod), "spec.runtimeClassName") != nullptr)
    return Unclassified("resource name may not be empty");
  const Json* sent = api::FindPath(std::as_const(pod), "spec.overhead");
  if (name.empty() && sent == nullptr) return {};
  Json runtime_class = JsonObject{};
  if (!name.empty()) {
    const auto table = static_cast<store::Table>(api::KindId::kRuntimeClass);
    const store::ObjectRef found = store.FindHead(table, {.namespace_name = "", .name = name});
    if (found == nullptr)
      return Forbidden(subject, fmt::format("pod rejected: RuntimeClass \"{}\" not found", name));
    runtime_class = Load(*found);
  }
  const Json* overhead = api::FindPath(runtime_class, "overhead");
  if (overhead == nullptr && sent != nullptr) return RefuseOverhead(subject);
  if (overhead != nullptr) {
    const JsonObject& fixed = api::ObjectAt(*overhead, "podFixed");
    if (sent != nullptr && sent->is_object() &&
        !api::SameAmounts(api::AmountsOf(sent->get_object()), api::AmountsOf(fixed))) {
      return Forbidden(
          subject, "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead");
    }
    if (!fixed.empty()) api::SetPath(pod, "spec.overhead", Json(fixed));
  }
  return SetScheduling(subject, runtime_class, pod.get_object().at("spec"));
}

}  // namespace berth::apiserver
