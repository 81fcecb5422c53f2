#include "apiserver/limit_ranges.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "api/object.h"
#include "api/quantity.h"
#include "api/usage.h"
#include "apiserver/objects.h"
#include "apiserver/writes.h"

namespace berth::apiserver {

namespace {

using api::Amounts;
using api::Json;
using api::JsonObject;
using api::KindId;
using api::Quantity;

constexpr std::string_view kAnnotation = "kubernetes.io/limit-ranger";
// Beyond it milli-units don't fit an int64.
constexpr int64_t kMilliMax = std::numeric_limits<int64_t>::max() / 1000;

// ---- Defaults ----------------------------------------------------------------------------------

// Adds what a list lacks. The names of what was added.
std::vector<std::string_view> Complete(JsonObject& resources, std::string_view list,
                                       const JsonObject& defaults) {
  std::vector<std::string_view> added;
  if (defaults.empty()) return added;
  JsonObject& amounts = api::MemberObject(resources, list);
  for (const auto& [name, amount] : defaults) {
    if (amounts.contains(name)) continue;
    amounts[name] = amount;
    added.push_back(name);
  }
  api::SortMembers(amounts);
  std::ranges::sort(added);
  return added;
}

struct Defaults {
  JsonObject requests;
  JsonObject limits;
};

Defaults DefaultsOf(const Json& range) {
  Defaults defaults;
  for (const Json& limit : api::ArrayAt(range, "spec.limits")) {
    if (api::TextAt(limit, "type") != "Container") continue;
    for (const auto& [name, amount] : api::ObjectAt(limit, "defaultRequest"))
      defaults.requests[name] = amount;
    for (const auto& [name, amount] : api::ObjectAt(limit, "default"))
      defaults.limits[name] = amount;
  }
  return defaults;
}

void CompleteContainer(JsonObject& container, std::string_view what, const Defaults& defaults,
                       std::vector<std::string>& notes) {
  JsonObject& resources = api::MemberObject(container, "resources");
  const auto requests = Complete(resources, "requests", defaults.requests);
  const auto limits = Complete(resources, "limits", defaults.limits);
  api::SortMembers(resources);
  const std::string name(api::TextAt(Json(container), "name"));
  if (!requests.empty())
    notes.push_back(fmt::format("{} request for {} {}", fmt::join(requests, ", "), what, name));
  if (!limits.empty())
    notes.push_back(fmt::format("{} limit for {} {}", fmt::join(limits, ", "), what, name));
}

void CompletePod(const Defaults& defaults, Json& pod) {
  if (defaults.requests.empty() && defaults.limits.empty()) return;
  std::vector<std::string> notes;
  for (const auto& [list, what] :
       {std::pair<std::string_view, std::string_view>{"spec.containers", "container"},
        {"spec.initContainers", "init container"}}) {
    Json* containers = api::FindPath(pod, list);
    if (containers == nullptr || !containers->is_array()) continue;
    for (Json& container : containers->get_array()) {
      if (container.is_object()) CompleteContainer(container.get_object(), what, defaults, notes);
    }
  }
  if (notes.empty()) return;
  JsonObject& meta = api::MemberObject(pod.get_object(), "metadata");
  JsonObject& annotations = api::MemberObject(meta, "annotations");
  annotations[kAnnotation] = fmt::format("LimitRanger plugin set: {}", fmt::join(notes, "; "));
  api::SortMembers(annotations);
}

// ---- Limits ------------------------------------------------------------------------------------

const Quantity* Find(const Amounts& amounts, std::string_view name) {
  const auto found = amounts.find(name);
  return found == amounts.end() ? nullptr : &found->second;
}

// In milli-units where all of them fit, else rounded up to whole ones, as upstream compares.
struct Values {
  int64_t request = 0;
  int64_t limit = 0;
  int64_t enforced = 0;
};
Values ValuesOf(const Quantity* request, const Quantity* limit, const Quantity& enforced) {
  const auto at = [&](int32_t scale) {
    return Values{.request = request == nullptr ? 0 : request->scaled(scale),
                  .limit = limit == nullptr ? 0 : limit->scaled(scale),
                  .enforced = enforced.scaled(scale)};
  };
  const Values whole = at(0);
  const bool small =
      whole.request <= kMilliMax && whole.limit <= kMilliMax && whole.enforced <= kMilliMax;
  return small ? at(-3) : whole;
}

// One limit of a LimitRange on one resource, and what is limited.
struct Rule {
  std::string_view type;
  std::string_view resource;
  const Quantity& enforced;
  const Quantity* request = nullptr;
  const Quantity* limit = nullptr;

  [[nodiscard]] std::string Says(std::string_view bound, std::string_view rest) const {
    return fmt::format("{} {} usage per {} is {}{}", bound, resource, type, ToString(enforced),
                       rest);
  }
};

std::string WhyUnderMinimum(const Rule& rule) {
  const Values values = ValuesOf(rule.request, rule.limit, rule.enforced);
  if (rule.request == nullptr) return rule.Says("minimum", ".  No request is specified");
  if (values.request < values.enforced)
    return rule.Says("minimum", fmt::format(", but request is {}", ToString(*rule.request)));
  if (rule.limit != nullptr && values.limit < values.enforced)
    return rule.Says("minimum", fmt::format(", but limit is {}", ToString(*rule.limit)));
  return "";
}

std::string WhyOverMaximum(const Rule& rule) {
  const Values values = ValuesOf(rule.request, rule.limit, rule.enforced);
  if (rule.limit == nullptr) return rule.Says("maximum", ".  No limit is specified");
  if (values.limit > values.enforced)
    return rule.Says("maximum", fmt::format(", but limit is {}", ToString(*rule.limit)));
  if (rule.request != nullptr && values.request > values.enforced)
    return rule.Says("maximum", fmt::format(", but request is {}", ToString(*rule.request)));
  return "";
}

// Of claims, which have no limits.
std::string WhyRequestOverMaximum(const Rule& rule) {
  const Values values = ValuesOf(rule.request, nullptr, rule.enforced);
  if (rule.request == nullptr) return rule.Says("maximum", ".  No request is specified");
  if (values.request <= values.enforced) return "";
  return rule.Says("maximum", fmt::format(", but request is {}", ToString(*rule.request)));
}

std::string WhyOverRatio(const Rule& rule) {
  const Values values = ValuesOf(rule.request, rule.limit, rule.enforced);
  const std::string head = fmt::format("{} max limit to request ratio per {} is {}", rule.resource,
                                       rule.type, ToString(rule.enforced));
  if (rule.request == nullptr || values.request == 0)
    return head + ", but no request is specified or request is 0";
  if (rule.limit == nullptr || values.limit == 0)
    return head + ", but no limit is specified or limit is 0";
  const double ratio = static_cast<double>(values.limit) / static_cast<double>(values.request);
  const bool fine_grained = rule.enforced.whole() <= kMilliMax;
  const double observed = fine_grained ? ratio * 1000 : ratio;
  const int64_t most = fine_grained ? rule.enforced.milli() : rule.enforced.whole();
  if (observed <= static_cast<double>(most)) return "";
  return fmt::format("{}, but provided ratio is {:f}", head, ratio);
}

using Judge = std::string (*)(const Rule& rule);

// What is limited, and where it stands.
struct Limited {
  const Amounts& requests;
  const Amounts& limits;
};

void CheckList(const Json& limit, std::string_view list, Judge judge, const Limited& limited,
               std::vector<std::string>& problems) {
  for (const auto& [name, enforced] : api::AmountsOf(api::ObjectAt(limit, list))) {
    std::string why = judge({.type = api::TextAt(limit, "type"),
                             .resource = name,
                             .enforced = enforced,
                             .request = Find(limited.requests, name),
                             .limit = Find(limited.limits, name)});
    // Equal ones are told once.
    if (!why.empty() && std::ranges::find(problems, why) == problems.end())
      problems.push_back(std::move(why));
  }
}

void CheckAll(const Json& limit, const Limited& limited, std::vector<std::string>& problems) {
  CheckList(limit, "min", &WhyUnderMinimum, limited, problems);
  CheckList(limit, "max", &WhyOverMaximum, limited, problems);
  CheckList(limit, "maxLimitRequestRatio", &WhyOverRatio, limited, problems);
}

void CheckPod(const Json& limit, const Json& pod, std::vector<std::string>& problems) {
  const std::string_view type = api::TextAt(limit, "type");
  if (type == "Container") {
    for (const std::string_view list : {"spec.containers", "spec.initContainers"}) {
      for (const Json& container : api::ArrayAt(pod, list)) {
        const Amounts requests = api::AmountsOf(api::ObjectAt(container, "resources.requests"));
        const Amounts limits = api::AmountsOf(api::ObjectAt(container, "resources.limits"));
        CheckAll(limit, {.requests = requests, .limits = limits}, problems);
      }
    }
  } else if (type == "Pod") {
    const Amounts requests = api::ContainerAmounts(pod, "requests");
    const Amounts limits = api::ContainerAmounts(pod, "limits");
    CheckAll(limit, {.requests = requests, .limits = limits}, problems);
  }
}

void CheckClaim(const Json& limit, const Json& claim, std::vector<std::string>& problems) {
  if (api::TextAt(limit, "type") != "PersistentVolumeClaim") return;
  const Amounts requests = api::AmountsOf(api::ObjectAt(claim, "spec.resources.requests"));
  const Limited limited{.requests = requests, .limits = {}};
  CheckList(limit, "min", &WhyUnderMinimum, limited, problems);
  CheckList(limit, "max", &WhyRequestOverMaximum, limited, problems);
}

}  // namespace

void ApplyLimitRanges(const store::Store& store, Json& pod) {
  const std::string_view space = api::TextAt(pod, "metadata.namespace");
  for (const store::ObjectRef& range : ObjectsIn(store, KindId::kLimitRange, space))
    CompletePod(DefaultsOf(Load(*range)), pod);
}

Outcome<void> CheckLimitRanges(const store::Store& store, Subject subject, const Json* old,
                               const Json& object) {
  if (old != nullptr && IsMarked(*old)) return {};
  const std::string_view space = api::TextAt(object, "metadata.namespace");
  for (const store::ObjectRef& stored : ObjectsIn(store, KindId::kLimitRange, space)) {
    const Json range = Load(*stored);
    std::vector<std::string> problems;
    for (const Json& limit : api::ArrayAt(range, "spec.limits")) {
      if (subject.kind.id == KindId::kPod) {
        CheckPod(limit, object, problems);
      } else {
        CheckClaim(limit, object, problems);
      }
    }
    if (problems.size() == 1) return Forbidden(subject, problems.front());
    if (!problems.empty())
      return Forbidden(subject, fmt::format("[{}]", fmt::join(problems, ", ")));
  }
  return {};
}

}  // namespace berth::apiserver
