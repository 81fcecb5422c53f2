#include "api/validate_workloads.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <string>
#include <utility>

#include "api/object.h"
#include "api/quota.h"
#include "api/topology_annotations.h"
#include "api/validate_job_policies.h"
#include "api/validate_job_status.h"
#include "api/validate_pod.h"
#include "api/well_known.h"

namespace berth::api::rules {
namespace {

constexpr std::string_view kMismatch = "`selector` does not match template `labels`";

// A percentage's number, or nothing.
std::optional<int64_t> PercentOf(std::string_view text) {
  if (!text.ends_with('%') || text.size() < 2) return std::nullopt;
  text.remove_suffix(1);
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  if (!std::ranges::all_of(text, is_digit)) return std::nullopt;
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() ? std::optional(number) : std::optional<int64_t>(INT32_MAX);
}

void CheckRolling(FieldErrors& errors, const Path& path, const Json& rolling) {
  const Json& unavailable = OrEmptyObject(FindMember(rolling, "maxUnavailable"));
  const Json& surge = OrEmptyObject(FindMember(rolling, "maxSurge"));
  CheckCountOrPercent(errors, path.At("maxUnavailable"), unavailable);
  CheckCountOrPercent(errors, path.At("maxSurge"), surge);
  if (IsZeroCount(unavailable) && IsZeroCount(surge)) {
    AddInvalid(errors, path.At("maxUnavailable"), unavailable, "may not be 0 when `maxSurge` is 0");
  }
  CheckShare(errors, path.At("maxUnavailable"), unavailable);
}

void CheckStrategy(FieldErrors& errors, const Path& spec_path, const Json& spec) {
  const Path path = spec_path.At("strategy");
  const Json& strategy = OrEmptyObject(FindMember(spec, "strategy"));
  const Json* rolling = FindMember(strategy, "rollingUpdate");
  const std::string_view type = TextAt(strategy, "type");
  if (type == "Recreate") {
    if (rolling != nullptr) {
      AddForbidden(errors, path.At("rollingUpdate"),
                   "may not be specified when strategy `type` is 'Recreate'");
    }
  } else if (type == "RollingUpdate") {
    if (rolling == nullptr) {
      AddRequired(errors, path.At("rollingUpdate"), "this should be defaulted and never be nil");
    } else {
      CheckRolling(errors, path.At("rollingUpdate"), *rolling);
    }
  } else {
    constexpr std::array<std::string_view, 2> kTypes = {"Recreate", "RollingUpdate"};
    FieldError error = NotSupportedField(path.text(), "", kTypes);
    error.value = InvalidJsonField("", strategy, "").value;
    errors.push_back(std::move(error));
  }
}

void CheckSelectorAndTemplate(FieldErrors& errors, const Path& path, const Json& spec) {
  const Json* selector = FindMember(spec, "selector");
  if (selector == nullptr) {
    AddRequired(errors, path.At("selector"));
  } else {
    CheckLabelSelector(errors, path.At("selector"), *selector);
    if (ObjectAt(*selector, "matchLabels").empty() &&
        ArrayAt(*selector, "matchExpressions").empty()) {
      AddInvalid(errors, path.At("selector"), *selector,
                 "empty selector is invalid for deployment");
    }
  }
  const Path pods_path = path.At("template");
  const Json& pods = OrEmptyObject(FindMember(spec, "template"));
  if (!Selects(selector, ObjectAt(pods, "metadata.labels"))) AddMismatch(errors, pods_path, pods);
  CheckTemplate(errors, pods_path, pods);
  CheckAlwaysRestarted(errors, pods_path, pods, "ReplicaSet");
}

void CheckDeploymentSpec(FieldErrors& errors, const Json& object) {
  const Path path("spec");
  const Json& spec = OrEmptyObject(FindMember(object, "spec"));
  constexpr std::array<std::string_view, 1> kReplicas = {"replicas"};
  constexpr std::array<std::string_view, 3> kCounts = {"minReadySeconds", "revisionHistoryLimit",
                                                       "progressDeadlineSeconds"};
  CheckNonnegative(errors, path, spec, kReplicas);
  CheckSelectorAndTemplate(errors, path, spec);
  CheckStrategy(errors, path, spec);
  CheckNonnegative(errors, path, spec, kCounts);
  const Json* deadline = FindMember(spec, "progressDeadlineSeconds");
  if (deadline != nullptr &&
      IntegerAt(spec, "progressDeadlineSeconds") <= IntegerAt(spec, "minReadySeconds")) {
    AddInvalid(errors, path.At("progressDeadlineSeconds"), *deadline,
               "must be greater than minReadySeconds");
  }
}

void CheckReplicaSetSpec(FieldErrors& errors, const Json& object) {
  const Path path("spec");
  const Json& spec = OrEmptyObject(FindMember(object, "spec"));
  constexpr std::array<std::string_view, 2> kCounts = {"replicas", "minReadySeconds"};
  CheckNonnegative(errors, path, spec, kCounts);
  CheckSelectorAndTemplate(errors, path, spec);
}

void CheckImmutableSelector(FieldErrors& errors, const Json& old, const Json& object) {
  const Path path("spec");
  CheckImmutable(errors, path, OrEmptyObject(FindMember(old, "spec")),
                 OrEmptyObject(FindMember(object, "spec")), "selector");
}

void CheckIndexed(FieldErrors& errors, const Path& path, const Json& spec) {
  constexpr int64_t kParallelismMax = 100'000;
  if (FindMember(spec, "completions") == nullptr) {
    AddRequired(errors, path.At("completions"), "when completion mode is Indexed");
  }
  const int64_t parallelism = IntegerAt(spec, "parallelism");
  if (parallelism > kParallelismMax) {
    errors.push_back(
        InvalidField(path.At("parallelism").text(), parallelism,
                     fmt::format("must be less than or equal to {} when completion mode is Indexed",
                                 kParallelismMax)));
  }
  CheckIndexLimits(errors, path, spec);
}

void CheckJobMode(FieldErrors& errors, const Path& path, const Json& spec) {
  constexpr std::array<std::string_view, 2> kModes = {"NonIndexed", "Indexed"};
  constexpr std::array<std::string_view, 2> kReplacement = {"Failed", "TerminatingOrFailed"};
  const std::string_view mode = TextAt(spec, "completionMode");
  if (FindMember(spec, "completionMode") != nullptr)
    CheckEnum(errors, path.At("completionMode"), mode, kModes);
  if (mode == "Indexed") {
    CheckIndexed(errors, path, spec);
  } else {
    for (const std::string_view member : {"backoffLimitPerIndex", "maxFailedIndexes"}) {
      if (const Json* value = FindMember(spec, member)) {
        AddInvalid(errors, path.At(member), *value, "requires indexed completion mode");
      }
    }
  }
  CheckJobPolicies(errors, path, spec);
  if (FindMember(spec, "podReplacementPolicy") == nullptr) return;
  const std::string_view replacement = TextAt(spec, "podReplacementPolicy");
  if (FindMember(spec, "podFailurePolicy") != nullptr) {
    constexpr std::array<std::string_view, 1> kFailed = {"Failed"};
    CheckEnum(errors, path.At("podReplacementPolicy"), replacement, kFailed);
  } else {
    CheckEnum(errors, path.At("podReplacementPolicy"), replacement, kReplacement);
  }
}

void CheckJobTemplate(FieldErrors& errors, const Path& path, const Json& spec) {
  const Path pods_path = path.At("template");
  const Json& pods = OrEmptyObject(FindMember(spec, "template"));
  CheckTemplate(errors, pods_path, pods);
  const Path pod_spec = pods_path.At("spec");
  const Path at = pod_spec.At("restartPolicy");
  const std::string_view policy = TextAt(pods, "spec.restartPolicy");
  if (policy.empty() || policy == "Always") {
    AddRequired(errors, at, "valid values: \"OnFailure\", \"Never\"");
  } else if (policy != "OnFailure" && policy != "Never") {
    constexpr std::array<std::string_view, 2> kPolicies = {"OnFailure", "Never"};
    CheckEnum(errors, at, policy, kPolicies);
  } else if (policy != "Never" && FindMember(spec, "podFailurePolicy") != nullptr) {
    AddInvalid(errors, at, policy,
               {"only \"Never\" is supported when podFailurePolicy is specified"});
  }
}

void CheckManagedBy(FieldErrors& errors, const Path& path, const Json& spec) {
  if (FindMember(spec, "managedBy") == nullptr) return;
  const std::string_view manager = TextAt(spec, "managedBy");
  const Path at = path.At("managedBy");
  CheckDomainPath(errors, at, manager);
  if (manager.size() > 63) errors.push_back(TooLongField(at.text(), 63));
}

}  // namespace

void CheckDomainPath(FieldErrors& errors, const Path& path, std::string_view text) {
  const size_t slash = text.find('/');
  if (text.empty()) {
    AddRequired(errors, path);
  } else if (slash == 0 || slash == std::string_view::npos || slash + 1 == text.size()) {
    AddInvalid(errors, path, text, {"must be a domain-prefixed path (such as \"acme.io/foo\")"});
  } else {
    AddInvalid(errors, path, text.substr(0, slash), CheckDns1123Subdomain(text.substr(0, slash)));
    const std::string_view rest = text.substr(slash + 1);
    const auto fits = [](char letter) {
      constexpr std::string_view kOthers = "/-._~%!$&'()*+,;=:";
      return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
             (letter >= '0' && letter <= '9') || kOthers.contains(letter);
    };
    if (std::ranges::all_of(rest, fits)) return;
    AddInvalid(errors, path, rest,
               {"Invalid path (regex used for validation is "
                "'[A-Za-z0-9/\\-._~%!$&'()*+,;=:]+')"});
  }
}

void CheckJobTemplateSpec(FieldErrors& errors, const Path& path, const Json& spec) {
  constexpr std::array<std::string_view, 7> kCounts = {"parallelism",
                                                       "completions",
                                                       "activeDeadlineSeconds",
                                                       "backoffLimit",
                                                       "ttlSecondsAfterFinished",
                                                       "backoffLimitPerIndex",
                                                       "maxFailedIndexes"};
  CheckNonnegative(errors, path, spec, kCounts);
  if (FindMember(spec, "maxFailedIndexes") != nullptr &&
      FindMember(spec, "backoffLimitPerIndex") == nullptr) {
    AddRequired(errors, path.At("backoffLimitPerIndex"), "when maxFailedIndexes is specified");
  }
  CheckManagedBy(errors, path, spec);
  CheckJobMode(errors, path, spec);
  CheckJobTemplate(errors, path, spec);
}

namespace {

void CheckJobSpec(FieldErrors& errors, const Json& object) {
  const Path path("spec");
  const Json& spec = OrEmptyObject(FindMember(object, "spec"));
  CheckJobTemplateSpec(errors, path, spec);
  const Json* selector = FindMember(spec, "selector");
  if (selector == nullptr) {
    AddRequired(errors, path.At("selector"));
  } else {
    CheckLabelSelector(errors, path.At("selector"), *selector);
  }
  const Json& pods = OrEmptyObject(FindMember(spec, "template"));
  if (Selects(selector, ObjectAt(pods, "metadata.labels"))) return;
  const Path pods_path = path.At("template");
  AddMismatch(errors, pods_path, pods);
}

void CheckHasLabel(FieldErrors& errors, const Path& labels_path, const JsonObject& labels,
                   std::string_view key, std::string_view expected) {
  const Json* label = FindMember(labels, key);
  if (label == nullptr) {
    AddRequired(errors, labels_path.Key(key), fmt::format("must be '{}'", expected));
  } else if (!label->is_string() || std::string_view(label->get_string()) != expected) {
    AddInvalid(errors, labels_path.Key(key), Json(labels), fmt::format("must be '{}'", expected));
  }
}

// Of a Job whose selector was its user's until now: the labels of old are asked for alone.
bool LacksPrefixedLabels(const Json* old) {
  if (old == nullptr) return false;
  const JsonObject& labels = ObjectAt(*old, "spec.template.metadata.labels");
  return !labels.contains("batch.kubernetes.io/job-name") ||
         !labels.contains("batch.kubernetes.io/controller-uid");
}

void CheckGeneratedSelector(FieldErrors& errors, const Json* old, const Json& job) {
  if (FlagAt(job, "spec.manualSelector") || FindPath(job, "spec.selector") == nullptr) return;
  const std::string_view uid = TextAt(job, "metadata.uid");
  const std::string_view name = TextAt(job, "metadata.name");
  const Path spec("spec");
  const Path pods = spec.At("template");
  const Path meta = pods.At("metadata");
  const Path labels_path = meta.At("labels");
  const JsonObject& labels = ObjectAt(job, "spec.template.metadata.labels");
  CheckHasLabel(errors, labels_path, labels, "controller-uid", uid);
  CheckHasLabel(errors, labels_path, labels, "job-name", name);
  JsonObject expected = {{"controller-uid", uid}, {"job-name", name}};
  if (!LacksPrefixedLabels(old)) {
    CheckHasLabel(errors, labels_path, labels, "batch.kubernetes.io/controller-uid", uid);
    CheckHasLabel(errors, labels_path, labels, "batch.kubernetes.io/job-name", name);
    expected.emplace("batch.kubernetes.io/controller-uid", uid);
    expected.emplace("batch.kubernetes.io/job-name", name);
  }
  const Json* selector = FindPath(job, "spec.selector");
  if (selector == nullptr || Selects(selector, expected)) return;
  AddInvalid(errors, spec.At("selector"), *selector, "`selector` not auto-generated");
}

void CheckIndexedName(FieldErrors& errors, const Json& job) {
  const int64_t completions = IntegerAt(job, "spec.completions");
  if (TextAt(job, "spec.completionMode") != "Indexed" || completions <= 0) return;
  const std::string_view name = TextAt(job, "metadata.name");
  const std::string host = fmt::format("{}-{}", name, completions - 1);
  if (IsDns1123Label(host)) return;
  const Path meta("metadata");
  AddInvalid(errors, meta.At("name"), name,
             {fmt::format("will not able to create pod with invalid DNS label: {}", host)});
}

// What a suspended Job that runs nothing may change of its template: where its pods run.
Json WithSchedulingOf(const Json& old_pods, const Json& pods) {
  Json munged = old_pods;
  for (const std::string_view path :
       {"spec.nodeSelector", "spec.tolerations", "spec.schedulingGates",
        "spec.affinity.nodeAffinity", "metadata.annotations", "metadata.labels"}) {
    RemovePath(munged, path);
    if (const Json* value = FindPath(pods, path)) SetPath(munged, path, *value);
  }
  if (ObjectAt(munged, "spec.affinity").empty()) {
    RemovePath(munged, "spec.affinity");
    if (const Json* affinity = FindPath(pods, "spec.affinity")) {
      if (affinity->is_object() && affinity->get_object().empty()) {
        SetPath(munged, "spec.affinity", *affinity);
      }
    }
  }
  return munged;
}

// And what its containers ask for, one by one, while they are as many.
void TakeResourcesOf(Json& munged, const Json& pods) {
  for (const std::string_view list : {"spec.containers", "spec.initContainers"}) {
    Json* containers = FindPath(munged, list);
    const JsonArray& others = ArrayAt(pods, list);
    if (containers == nullptr || !containers->is_array()) continue;
    JsonArray& own = containers->get_array();
    if (own.size() != others.size()) continue;
    for (size_t i = 0; i < own.size(); ++i) {
      if (TextAt(own[i], "name") != TextAt(others[i], "name")) continue;
      RemovePath(own[i], "resources");
      if (const Json* asked = FindPath(others[i], "resources"))
        SetPath(own[i], "resources", *asked);
    }
  }
}

// Whether it is suspended and runs nothing: it never started, or its controller says so.
bool IsMovable(const Json& job) {
  if (!FlagAt(job, "spec.suspend") || IntegerAt(job, "status.active") != 0) return false;
  return FindPath(job, "status.startTime") == nullptr ||
         std::ranges::any_of(ArrayAt(job, "status.conditions"), [](const Json& condition) {
           return TextAt(condition, "type") == "Suspended" && TextAt(condition, "status") == "True";
         });
}

void CheckJobTemplateUpdate(FieldErrors& errors, const Path& path, const Json& old,
                            const Json& object) {
  const Json& before = OrEmptyObject(FindPath(old, "spec.template"));
  const Json& after = OrEmptyObject(FindPath(object, "spec.template"));
  const Path pods = path.At("template");
  if (!IsMovable(old)) {
    if (!SameJson(before, after)) AddInvalid(errors, pods, after, "field is immutable");
    return;
  }
  Json munged = WithSchedulingOf(before, after);
  TakeResourcesOf(munged, after);
  const Json& spec = OrEmptyObject(FindPath(after, "spec"));
  if (!SameJson(OrEmptyObject(FindPath(munged, "spec")), spec))
    AddInvalid(errors, pods.At("spec"), spec, "field is immutable");
}

std::string_view QueueNameOf(const Json& job) {
  const Json* name = FindMember(ObjectAt(job, "metadata.labels"), kQueueNameLabel);
  return name != nullptr && name->is_string() ? std::string_view(name->get_string()) : "";
}

int64_t PodsCountOf(const Json& job) {
  const int64_t parallelism = IntegerAt(job, "spec.parallelism", 1);
  return std::min(parallelism, IntegerAt(job, "spec.completions", parallelism));
}

void CheckTopology(FieldErrors& errors, const Json& job) {
  StringMap annotations;
  for (const auto& [key, value] : ObjectAt(job, "spec.template.metadata.annotations")) {
    if (value.is_string()) annotations.emplace_back(key, value.get_string());
  }
  std::ranges::sort(annotations);
  for (FieldError& error : CheckTopologyAnnotations(annotations, PodsCountOf(job)))
    errors.push_back(std::move(error));
}

void CheckMinParallelism(FieldErrors& errors, const Json& job) {
  const Json* least = FindMember(ObjectAt(job, "metadata.annotations"), kMinParallelismAnnotation);
  if (least == nullptr || !least->is_string()) return;
  const std::string_view text = least->get_string();
  const int64_t most = PodsCountOf(job) - 1;
  int64_t count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  const bool is_number = error == std::errc() && end == text.data() + text.size();
  if (is_number && count > 0 && count <= most) return;
  const Path meta("metadata");
  const Path annotations = meta.At("annotations");
  AddInvalid(errors, annotations.Key(kMinParallelismAnnotation), text,
             {is_number ? fmt::format("should be between 0 and {}", most)
                        : std::string("is not a number")});
}

std::string_view MaxExecutionOf(const Json& job) {
  const Json* text = FindMember(ObjectAt(job, "metadata.labels"), kMaxExecutionLabel);
  return text != nullptr && text->is_string() ? std::string_view(text->get_string()) : "";
}

void CheckMaxExecution(FieldErrors& errors, const Json& job) {
  if (!ObjectAt(job, "metadata.labels").contains(kMaxExecutionLabel)) return;
  const std::string_view text = MaxExecutionOf(job);
  int32_t seconds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  const bool is_number = error == std::errc() && end == text.data() + text.size();
  if (is_number && seconds > 0) return;
  const Path meta("metadata");
  const Path labels = meta.At("labels");
  AddInvalid(errors, labels.Key(kMaxExecutionLabel), text,
             {is_number ? "should be greater than 0" : "is not a number"});
}

// What Kueue's webhook refuses of the Jobs of a queue.
void CheckQueuedJob(FieldErrors& errors, const Json& job) {
  const Path meta("metadata");
  const std::string_view queue = QueueNameOf(job);
  if (queue.empty()) return;
  const Path labels = meta.At("labels");
  AddInvalid(errors, labels.Key(kQueueNameLabel), queue, CheckDns1123Subdomain(queue));
  CheckTopology(errors, job);
  CheckMinParallelism(errors, job);
  CheckMaxExecution(errors, job);
}

// What was stored before it was refused may be changed elsewhere; and the write that lets a Job run
// says with how many pods.
void CheckQueuedJobUpdate(FieldErrors& errors, const Json& old, const Json& job) {
  constexpr std::string_view kTemplate = "spec.template.metadata.annotations";
  constexpr std::string_view kOwn = "metadata.annotations";
  if (QueueNameOf(job).empty() || !FlagAt(job, "spec.suspend")) return;
  const bool alike = !QueueNameOf(old).empty() && PodsCountOf(old) == PodsCountOf(job);
  if (!alike || !SameJson(ObjectAt(old, kTemplate), ObjectAt(job, kTemplate)))
    CheckTopology(errors, job);
  if (!alike || !SameJson(ObjectAt(old, kOwn), ObjectAt(job, kOwn)))
    CheckMinParallelism(errors, job);
  if (!alike || MaxExecutionOf(old) != MaxExecutionOf(job)) CheckMaxExecution(errors, job);
}

// A Job that may run holds the quota of the queue that let it, for as long as was said then.
void CheckQueueName(FieldErrors& errors, const Json& old, const Json& object) {
  if (FlagAt(object, "spec.suspend")) return;
  const Path meta("metadata");
  const Path labels = meta.At("labels");
  const std::string_view name = QueueNameOf(object);
  if (name != QueueNameOf(old))
    AddInvalid(errors, labels.Key(kQueueNameLabel), name, {"field is immutable"});
  if (!name.empty() && MaxExecutionOf(object) != MaxExecutionOf(old)) {
    AddInvalid(errors, labels.Key(kMaxExecutionLabel), MaxExecutionOf(object),
               {"field is immutable"});
  }
}

void CheckSums(FieldErrors& errors, const Path& path, const Json& status, bool is_deployment) {
  const int64_t replicas = IntegerAt(status, "replicas");
  const auto at_most = [&](std::string_view member, int64_t limit, std::string_view detail) {
    const int64_t value = IntegerAt(status, member);
    if (value > limit) {
      errors.push_back(InvalidField(path.At(member).text(), value, std::string(detail)));
    }
  };
  for (const std::string_view member :
       {"fullyLabeledReplicas", "updatedReplicas", "readyReplicas", "availableReplicas"}) {
    // Each has one that the other doesn't.
    if (member == (is_deployment ? "fullyLabeledReplicas" : "updatedReplicas")) continue;
    at_most(member, replicas, "cannot be greater than status.replicas");
  }
  at_most("availableReplicas", IntegerAt(status, "readyReplicas"),
          "cannot be greater than readyReplicas");
}

}  // namespace

void CheckCountOrPercent(FieldErrors& errors, const Path& path, const Json& value) {
  if (value.is_int64() && value.get_int64() < 0) {
    AddInvalid(errors, path, value, "must be greater than or equal to 0");
  }
  if (value.is_string() && !PercentOf(value.get_string())) {
    AddInvalid(errors, path, value,
               "a valid percent string must be a numeric string followed by an ending '%' (e.g. "
               "'1%',  or '93%', regex used for validation is '[0-9]+%')");
  }
}

void CheckShare(FieldErrors& errors, const Path& path, const Json& value) {
  if (value.is_string() && PercentOf(value.get_string()).value_or(0) > 100) {
    AddInvalid(errors, path, value, "must not be greater than 100%");
  }
}

bool IsZeroCount(const Json& value) {
  if (value.is_int64()) return value.get_int64() == 0;
  return value.is_string() && PercentOf(value.get_string()).value_or(0) == 0;
}

void CheckAlwaysRestarted(FieldErrors& errors, const Path& pods_path, const Json& pods,
                          std::string_view kind) {
  const Path pod_spec = pods_path.At("spec");
  const std::string_view policy = TextAt(pods, "spec.restartPolicy");
  if (policy != "Always") {
    constexpr std::array<std::string_view, 1> kAlways = {"Always"};
    CheckEnum(errors, pod_spec.At("restartPolicy"), policy, kAlways);
  }
  if (FindPath(pods, "spec.activeDeadlineSeconds") != nullptr) {
    AddForbidden(errors, pod_spec.At("activeDeadlineSeconds"),
                 fmt::format("activeDeadlineSeconds in {} is not Supported", kind));
  }
}

void AddMismatch(FieldErrors& errors, const Path& pods_path, const Json& pods) {
  const Json* labels = FindPath(pods, "metadata.labels");
  const Path meta = pods_path.At("metadata");
  AddInvalid(errors, meta.At("labels"), labels == nullptr ? Json() : *labels,
             std::string(kMismatch));
}

void CheckCountOrShare(FieldErrors& errors, const Path& path, const Json& value) {
  CheckCountOrPercent(errors, path, value);
  CheckShare(errors, path, value);
}

void CheckDeployment(FieldErrors& errors, const Json& object) {
  CheckMeta(errors, object, true, CheckDns1123Subdomain);
  CheckDeploymentSpec(errors, object);
}

void CheckDeploymentUpdate(FieldErrors& errors, const Json& old, const Json& object) {
  CheckMetaUpdate(errors, old, object);
  CheckDeploymentSpec(errors, object);
  CheckImmutableSelector(errors, old, object);
}

void CheckReplicaSet(FieldErrors& errors, const Json& object) {
  CheckMeta(errors, object, true, CheckDns1123Subdomain);
  CheckReplicaSetSpec(errors, object);
}

void CheckReplicaSetUpdate(FieldErrors& errors, const Json& old, const Json& object) {
  CheckMetaUpdate(errors, old, object);
  CheckReplicaSetSpec(errors, object);
  CheckImmutableSelector(errors, old, object);
}

void CheckReplicasStatus(FieldErrors& errors, const Json& old, const Json& object) {
  CheckMetaUpdate(errors, old, object);
  const Path path("status");
  const Json& status = OrEmptyObject(FindMember(object, "status"));
  constexpr std::array<std::string_view, 9> kCounts = {
      "observedGeneration", "replicas",          "fullyLabeledReplicas", "updatedReplicas",
      "readyReplicas",      "availableReplicas", "unavailableReplicas",  "terminatingReplicas",
      "collisionCount"};
  CheckNonnegative(errors, path, status, kCounts);
  CheckSums(errors, path, status, TextAt(object, "kind") == "Deployment");
  const int64_t collisions = IntegerAt(status, "collisionCount");
  if (collisions < IntegerAt(old, "status.collisionCount")) {
    errors.push_back(
        InvalidField(path.At("collisionCount").text(), collisions, "cannot be decremented"));
  }
}

void CheckJob(FieldErrors& errors, const Json& object) {
  CheckMeta(errors, object, true, CheckDns1123Subdomain);
  CheckGeneratedSelector(errors, nullptr, object);
  CheckJobSpec(errors, object);
  CheckIndexedName(errors, object);
  CheckQueuedJob(errors, object);
}

void CheckJobUpdate(FieldErrors& errors, const Json& old, const Json& object) {
  CheckMetaUpdate(errors, old, object);
  CheckQueueName(errors, old, object);
  CheckQueuedJobUpdate(errors, old, object);
  CheckGeneratedSelector(errors, &old, object);
  CheckJobSpec(errors, object);
  const Path path("spec");
  const Json& before = OrEmptyObject(FindMember(old, "spec"));
  const Json& after = OrEmptyObject(FindMember(object, "spec"));
  if (TextAt(after, "completionMode") != "Indexed") {
    CheckImmutable(errors, path, before, after, "completions");
  } else if (IntegerAt(after, "completions") != IntegerAt(before, "completions") &&
             IntegerAt(after, "completions") != IntegerAt(after, "parallelism")) {
    AddInvalid(errors, path.At("completions"), Json(IntegerAt(after, "completions")),
               "can only be modified in tandem with spec.parallelism");
  }
  CheckImmutable(errors, path, before, after, "selector");
  CheckJobTemplateUpdate(errors, path, old, object);
  for (const std::string_view member : {"completionMode", "podFailurePolicy",
                                        "backoffLimitPerIndex", "managedBy", "successPolicy"}) {
    CheckImmutable(errors, path, before, after, member);
  }
}

void CheckJobStatusUpdate(FieldErrors& errors, const Json& old, const Json& object) {
  CheckMetaUpdate(errors, old, object);
  CheckQueueName(errors, old, object);
  CheckJobStatus(errors, old, object);
}

}  // namespace berth::api::rules
