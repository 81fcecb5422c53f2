#include <limits>
#include <string_view>
#include <utility>

#include "api/defaults_kinds.h"
#include "api/defaults_pod.h"
#include "api/object.h"

namespace berth::api {
namespace {

void DefaultTemplate(JsonObject& spec) {
  Json* pods = FindMember(std::as_const(spec), "template") == nullptr ? nullptr : &spec["template"];
  if (pods == nullptr || !pods->is_object()) return;
  DefaultPodSpec(MemberObject(pods->get_object(), "spec"), false);
}

void DefaultDeployment(JsonObject& spec) {
  SetDefault(spec, "replicas", 1);
  JsonObject& strategy = MemberObject(spec, "strategy");
  if (strategy["type"].is_null()) strategy["type"] = "RollingUpdate";
  if (strategy["type"] == "RollingUpdate") {
    JsonObject& rolling = MemberObject(strategy, "rollingUpdate");
    SetDefault(rolling, "maxUnavailable", "25%");
    SetDefault(rolling, "maxSurge", "25%");
  }
  SetDefault(spec, "revisionHistoryLimit", 10);
  SetDefault(spec, "progressDeadlineSeconds", 600);
  DefaultTemplate(spec);
}

void DefaultJob(JsonObject& object, JsonObject& spec) {
  const auto missing = [&](std::string_view key) {
    return FindMember(std::as_const(spec), key) == nullptr;
  };
  if (missing("completions") && missing("parallelism")) spec["completions"] = 1;
  SetDefault(spec, "parallelism", 1);
  SetDefault(spec, "backoffLimit",
             missing("backoffLimitPerIndex") ? 6 : std::numeric_limits<int32_t>::max());
  SetDefault(spec, "completionMode", "NonIndexed");
  SetDefault(spec, "suspend", false);
  SetDefault(spec, "podReplacementPolicy",
             missing("podFailurePolicy") ? "TerminatingOrFailed" : "Failed");
  SetDefault(spec, "manualSelector", false);
  if (Json* policy = spec.if_contains("podFailurePolicy"); policy != nullptr) {
    if (Json* rules = FindMember(*policy, "rules"); rules != nullptr && rules->is_array()) {
      for (Json& rule : rules->get_array()) {
        Json* patterns = FindMember(rule, "onPodConditions");
        if (patterns == nullptr || !patterns->is_array()) continue;
        for (Json& pattern : patterns->get_array()) {
          if (pattern.is_object() && TextAt(pattern, "status").empty()) {
            pattern.get_object()["status"] = "True";
          }
        }
      }
    }
  }
  DefaultTemplate(spec);
  const Json* pods = FindMember(std::as_const(spec), "template");
  const Json* labels = pods == nullptr ? nullptr : FindPath(*pods, "metadata.labels");
  JsonObject& meta = MemberObject(object, "metadata");
  const Json* own = FindMember(std::as_const(meta), "labels");
  const bool unlabelled = own == nullptr || (own->is_object() && own->get_object().empty());
  if (labels != nullptr && unlabelled) meta["labels"] = Json(*labels);
}

void DefaultStatefulSet(JsonObject& spec) {
  SetDefault(spec, "podManagementPolicy", "OrderedReady");
  JsonObject& strategy = MemberObject(spec, "updateStrategy");
  const bool unsaid = TextIn(strategy, "type").empty();
  if (unsaid) strategy["type"] = "RollingUpdate";
  const bool rolls = strategy["type"] == "RollingUpdate";
  // Who names the strategy may leave out its numbers.
  if (rolls && (unsaid || FindMember(std::as_const(strategy), "rollingUpdate") != nullptr)) {
    SetDefault(MemberObject(strategy, "rollingUpdate"), "partition", 0);
  }
  JsonObject& retention = MemberObject(spec, "persistentVolumeClaimRetentionPolicy");
  SetText(retention, "whenDeleted", "Retain");
  SetText(retention, "whenScaled", "Retain");
  SetDefault(spec, "replicas", 1);
  SetDefault(spec, "revisionHistoryLimit", 10);
  ForEachIn(spec, "volumeClaimTemplates", [](JsonObject& claim) {
    claim["apiVersion"] = "v1";
    claim["kind"] = "PersistentVolumeClaim";
    DefaultClaim(claim);
  });
  DefaultTemplate(spec);
}

void DefaultDaemonSet(JsonObject& spec) {
  JsonObject& strategy = MemberObject(spec, "updateStrategy");
  SetText(strategy, "type", "RollingUpdate");
  if (strategy["type"] == "RollingUpdate") {
    JsonObject& rolling = MemberObject(strategy, "rollingUpdate");
    SetDefault(rolling, "maxUnavailable", 1);
    SetDefault(rolling, "maxSurge", 0);
  }
  SetDefault(spec, "revisionHistoryLimit", 10);
  DefaultTemplate(spec);
}

// A controller without a selector or labels takes those of its template.
void DefaultReplicationController(JsonObject& object, JsonObject& spec) {
  const Json* pods = FindMember(std::as_const(spec), "template");
  const Json* labels = pods == nullptr ? nullptr : FindPath(*pods, "metadata.labels");
  if (labels != nullptr && labels->is_object() && !labels->get_object().empty()) {
    const Json copy = *labels;
    if (MemberObject(spec, "selector").empty()) spec["selector"] = copy;
    JsonObject& meta = MemberObject(object, "metadata");
    if (MemberObject(meta, "labels").empty()) meta["labels"] = copy;
  }
  SetDefault(spec, "replicas", 1);
  DefaultTemplate(spec);
}

void DefaultCronJob(JsonObject& spec) {
  SetText(spec, "concurrencyPolicy", "Allow");
  SetDefault(spec, "suspend", false);
  SetDefault(spec, "successfulJobsHistoryLimit", 3);
  SetDefault(spec, "failedJobsHistoryLimit", 1);
  DefaultTemplate(MemberObject(MemberObject(spec, "jobTemplate"), "spec"));
}

}  // namespace

void DefaultWorkload(KindId kind, JsonObject& object) {
  switch (kind) {
    case KindId::kDeployment:
      DefaultDeployment(MemberObject(object, "spec"));
      return;
    case KindId::kReplicaSet: {
      JsonObject& spec = MemberObject(object, "spec");
      SetDefault(spec, "replicas", 1);
      DefaultTemplate(spec);
      return;
    }
    case KindId::kJob:
      DefaultJob(object, MemberObject(object, "spec"));
      return;
    case KindId::kStatefulSet:
      DefaultStatefulSet(MemberObject(object, "spec"));
      return;
    case KindId::kDaemonSet:
      DefaultDaemonSet(MemberObject(object, "spec"));
      return;
    case KindId::kReplicationController:
      DefaultReplicationController(object, MemberObject(object, "spec"));
      return;
    case KindId::kCronJob:
      DefaultCronJob(MemberObject(object, "spec"));
      return;
    case KindId::kPodTemplate:
      DefaultTemplate(object);
      return;
    default:
      return;
  }
}

}  // namespace berth::api
