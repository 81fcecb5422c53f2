#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "api/fields.h"
#include "api/object.h"
#include "api/selector.h"
#include "api/timestamp.h"
#include "api/workloads.h"
#include "apiserver/webhook_calls.h"
#include "apiserver/writes.h"
#include "base/check.h"
#include "codec/decode.h"

// The eviction subresource of pods (pkg/registry/core/pod/storage/eviction.go): a deletion that the
// pod's PodDisruptionBudget allows. Whether it does, what it then has left, and the pod's mark are
// one step of the server, so that no two evictions spend the same disruption; and all that can be
// refused is refused before anything is spent.
namespace berth::apiserver {

namespace {

using api::Json;
using api::JsonObject;
using api::KindId;

// So many evictions that no controller has confirmed may be open with one budget.
constexpr size_t kDisruptedPodsMax = 2000;

constexpr std::string_view kViolates =
    "Cannot evict pod as it would violate the pod's disruption budget.";

// A budget as it is stored, and what of it counts.
struct Budget {
  store::ObjectRef object;
  api::PodDisruptionBudget view;
};

std::unexpected<Problem> Refuse(std::string message, int64_t retry_after_seconds) {
  auto problem = TooManyRequests(std::string(kViolates), retry_after_seconds);
  problem.error().causes.push_back(
      {.reason = "DisruptionBudget", .message = std::move(message), .field = ""});
  return problem;
}

// Why no disruption is allowed, for the user.
std::string WhyNoneAllowed(const api::PodDisruptionBudget& budget) {
  const std::string& name = budget.meta.name;
  const api::Condition* condition = api::Find(budget.conditions, "DisruptionAllowed");
  const bool explained =
      condition != nullptr && condition->status == "False" && !condition->message.empty();
  // What a failed sync left of the counts means nothing.
  if (explained && condition->reason == "SyncFailed") {
    return fmt::format(
        "The disruption budget {} does not allow evicting pods currently because it failed sync: "
        "{}",
        name, condition->message);
  }
  if (budget.current_healthy <= budget.desired_healthy) {
    return fmt::format("The disruption budget {} needs {} healthy pods and has {} currently", name,
                       budget.desired_healthy, budget.current_healthy);
  }
  if (explained) {
    return fmt::format("The disruption budget {} does not allow evicting pods currently ({}): {}",
                       name, condition->reason, condition->message);
  }
  return fmt::format("The disruption budget {} does not allow evicting pods currently", name);
}

bool IsTrue(const Json& pod, std::string_view type) {
  return std::ranges::any_of(api::ArrayAt(pod, "status.conditions"), [&](const Json& condition) {
    return api::TextAt(condition, "type") == type && api::TextAt(condition, "status") == "True";
  });
}

// Pods that disrupt nothing when they go, or go already.
bool NeedsNoBudget(const Json& pod) {
  const std::string_view phase = api::TextAt(pod, "status.phase");
  return phase == "Succeeded" || phase == "Failed" || phase == "Pending" ||
         !api::TextAt(pod, "metadata.deletionTimestamp").empty();
}

// The budget that guards the pod, or nothing. Costs a look at each budget of the namespace.
Outcome<std::optional<Budget>> FindBudget(const WriteContext& context,
                                          const store::StoredObject& pod) {
  std::optional<Budget> found;
  size_t count = 0;
  codec::Decoder decoder;
  context.store.WalkHead({.table = static_cast<store::Table>(KindId::kPodDisruptionBudget),
                          .namespace_name = pod.namespace_name},
                         [&](const store::ObjectRef& object) {
                           Result<api::PodDisruptionBudget> view =
                               decoder.PodDisruptionBudget(object->json.view());
                           CHECK(view.has_value());
                           if (!view->selector) return true;
                           const Result<api::LabelQuery> query = api::QueryOf(*view->selector);
                           if (!query || !query->Matches(pod.labels)) return true;
                           found = Budget{.object = object, .view = std::move(*view)};
                           ++count;
                           return true;
                         });
  if (count > 1) {
    return Unclassified(
        "This pod has more than one PodDisruptionBudget, which the eviction subresource does not "
        "support.");
  }
  return found;
}

// An unready pod counts for nothing, so its end may be free.
bool IsFree(const api::PodDisruptionBudget& budget, const Json& pod) {
  if (IsTrue(pod, "Ready")) return false;
  return budget.always_allow_unhealthy ||
         (budget.current_healthy >= budget.desired_healthy && budget.desired_healthy > 0);
}

// Whether the budget has a disruption left.
Outcome<void> CheckBudget(const api::PodDisruptionBudget& budget) {
  constexpr int64_t kRetrySeconds = 10;
  if (budget.observed_generation < budget.meta.generation) {
    return Refuse(fmt::format("The disruption budget {} is still being processed by the server.",
                              budget.meta.name),
                  kRetrySeconds);
  }
  if (budget.disrupted_pods.size() > kDisruptedPodsMax) {
    auto problem =
        Forbidden({.kind = api::KindOf(KindId::kPodDisruptionBudget), .name = budget.meta.name},
                  "DisruptedPods map too big - too many evictions not confirmed by PDB controller");
    return problem;
  }
  if (budget.disruptions_allowed <= 0) return Refuse(WhyNoneAllowed(budget), 0);
  return {};
}

void SetNoneAllowed(Json& status, int64_t generation, Instant now) {
  Json& conditions = api::Member(status.get_object(), "conditions");
  if (!conditions.is_array()) conditions.emplace_array();
  JsonObject set = {{"lastTransitionTime", api::PrintTimestamp(now)},
                    {"message", ""},
                    {"observedGeneration", generation},
                    {"reason", "InsufficientPods"},
                    {"status", "False"},
                    {"type", "DisruptionAllowed"}};
  for (Json& condition : conditions.get_array()) {
    if (api::TextAt(condition, "type") != "DisruptionAllowed") continue;
    if (api::TextAt(condition, "status") == "False") {
      set["lastTransitionTime"] = api::TextAt(condition, "lastTransitionTime");
    }
    condition = std::move(set);
    return;
  }
  conditions.get_array().push_back(std::move(set));
}

// Takes one disruption for the pod. The controller counts the pod out by its name until it sees it
// go.
void Spend(WriteContext& context, const Budget& budget, const std::string& pod) {
  Json document = Load(*budget.object, context.memory);
  api::MemberObject(document.get_object(), "status");
  Json& status = *api::FindMember(document, "status");
  api::MemberObject(status.get_object(), "disruptedPods")[pod] = api::PrintTimestamp(context.now);
  const int64_t left = budget.view.disruptions_allowed - 1;
  status.get_object()["disruptionsAllowed"] = left;
  if (left == 0) SetNoneAllowed(status, budget.view.observed_generation, context.now);
  CHECK(api::Conform(KindId::kPodDisruptionBudget, document).has_value());
  CommitPut(context, api::KindOf(KindId::kPodDisruptionBudget), std::move(document));
}

DeleteOptions OptionsOf(const Json& eviction) {
  DeleteOptions options;
  if (const Json* grace = api::FindPath(eviction, "deleteOptions.gracePeriodSeconds");
      grace != nullptr && grace->is_int64()) {
    options.grace_seconds = grace->get_int64();
  }
  options.uid = api::TextAt(eviction, "deleteOptions.preconditions.uid");
  options.resource_version = api::TextAt(eviction, "deleteOptions.preconditions.resourceVersion");
  options.propagation = api::TextAt(eviction, "deleteOptions.propagationPolicy");
  return options;
}

// Puts the condition that tells of the eviction, in a write of its own as upstream does. Returns
// the pod as it is then.
Outcome<store::ObjectRef> Announce(WriteContext& context, const store::ObjectRef& pod) {
  if (context.options.dry_run) return pod;
  Json document = Load(*pod, context.memory);
  SetCondition(document,
               {.type = "DisruptionTarget",
                .reason = "EvictionByEvictionAPI",
                .message = "Eviction API: evicting"},
               context.now);
  if (api::SameJson(Load(*pod, context.memory), document)) return pod;
  CommitPut(context, api::KindOf(KindId::kPod), std::move(document));
  return FindTarget(context);
}

}  // namespace

WriteResult Evict(WriteContext& context) {
  Outcome<Body> body = DecodeBody(context.request, api::KindOf(KindId::kEviction),
                                  context.options.validation, context.memory);
  if (!body) return std::unexpected(std::move(body.error()));
  context.warnings = std::move(body->warnings);
  const Json& eviction = body->object;
  if (api::TextAt(eviction, "metadata.name") != context.request.name) {
    return BadRequest("name in URL does not match name in Eviction object");
  }
  if (!api::ArrayAt(eviction, "deleteOptions.dryRun").empty()) context.options.dry_run = true;
  if (Outcome<void> fine =
          ReviewPart(context, api::KindOf(KindId::kEviction), context.request.name, body->object);
      !fine) {
    return std::unexpected(std::move(fine.error()));
  }
  const Outcome<store::ObjectRef> target = FindTarget(context);
  if (!target) return std::unexpected(target.error());
  const store::StoredObject& pod = **target;
  std::optional<Budget> spent;
  if (const Json document = Load(pod, context.memory); !NeedsNoBudget(document)) {
    Outcome<std::optional<Budget>> budget = FindBudget(context, pod);
    if (!budget) return std::unexpected(std::move(budget.error()));
    if (budget->has_value() && !IsFree((*budget)->view, document)) {
      if (Outcome<void> allowed = CheckBudget((*budget)->view); !allowed) {
        return std::unexpected(std::move(allowed.error()));
      }
      spent = std::move(*budget);
    }
  }
  const DeleteOptions options = OptionsOf(eviction);
  if (Outcome<void> holds = CheckDeletion(context, pod, options); !holds) {
    return std::unexpected(std::move(holds.error()));
  }
  // Whoever watches both sees the disruption spent before the pod goes.
  if (spent) Spend(context, *spent, pod.name);
  const Outcome<store::ObjectRef> marked = Announce(context, *target);
  if (!marked) return std::unexpected(marked.error());
  DeleteOptions rest = options;
  rest.resource_version.clear();  // It was of the pod before.
  const Outcome<Written> written = DeleteObject(context, *marked, rest);
  if (!written) return std::unexpected(written.error());
  return Answer(201, context.shape.syntax, SuccessJson("", 201));
}

}  // namespace berth::apiserver
