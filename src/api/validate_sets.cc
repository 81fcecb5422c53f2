#include "api/validate_sets.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>

#include "api/cron.h"
#include "api/object.h"
#include "api/validate_pod.h"
#include "api/validate_storage.h"
#include "api/validate_workloads.h"

namespace berth::api::rules {
namespace {

void CheckHead(FieldErrors& errors, const Json* old, const Json& object, NameCheck name) {
  if (old != nullptr) return CheckMetaUpdate(errors, *old, object);
  CheckMeta(errors, object, true, name);
}

void CheckCount(FieldErrors& errors, const Path& path, const Json& object,
                std::string_view member) {
  const std::array<std::string_view, 1> members = {member};
  CheckNonnegative(errors, path, object, members);
}

bool IsEmptySelector(const Json& selector) {
  return ObjectAt(selector, "matchLabels").empty() && ArrayAt(selector, "matchExpressions").empty();
}

// Counts that may not be more than `status.replicas`.
void CheckAtMostReplicas(FieldErrors& errors, const Path& path, const Json& status,
                         std::span<const std::string_view> members, std::string_view ready) {
  const int64_t replicas = IntegerAt(status, "replicas");
  for (const std::string_view member : members) {
    const int64_t value = IntegerAt(status, member);
    if (value > replicas) {
      errors.push_back(
          InvalidField(path.At(member).text(), value, "cannot be greater than status.replicas"));
    }
  }
  const int64_t available = IntegerAt(status, "availableReplicas");
  if (available > IntegerAt(status, "readyReplicas")) {
    errors.push_back(InvalidField(path.At("availableReplicas").text(), available,
                                  fmt::format("cannot be greater than {}", ready)));
  }
}

void CheckCollisions(FieldErrors& errors, const Path& path, const Json& old, const Json& status) {
  const int64_t collisions = IntegerAt(status, "collisionCount");
  if (collisions < IntegerAt(old, "status.collisionCount")) {
    errors.push_back(
        InvalidField(path.At("collisionCount").text(), collisions, "cannot be decremented"));
  }
}

// A strategy as upstream shows it: in the names of its own structs.
Json ShownStrategy(const Json& strategy, std::string_view second) {
  const auto shown = [](const Json* value) { return value == nullptr ? Json() : *value; };
  JsonObject result{{"Type", TextAt(strategy, "type")}, {"RollingUpdate", nullptr}};
  if (const Json* rolling = FindMember(strategy, "rollingUpdate")) {
    const Json unavailable = shown(FindMember(*rolling, "maxUnavailable"));
    if (second == "Partition") {
      result["RollingUpdate"] = JsonObject{{"Partition", IntegerAt(*rolling, "partition")},
                                           {"MaxUnavailable", unavailable}};
    } else {
      result["RollingUpdate"] = JsonObject{{"MaxUnavailable", unavailable},
                                           {"MaxSurge", shown(FindMember(*rolling, "maxSurge"))}};
    }
  }
  return result;
}

// ---- StatefulSet -----------------------------------------------------------------------------

void CheckStatefulStrategy(FieldErrors& errors, const Path& path, const Json& strategy) {
  const std::string_view type = TextAt(strategy, "type");
  const Json* rolling = FindMember(strategy, "rollingUpdate");
  const Path rolling_path = path.At("rollingUpdate");
  if (type.empty()) {
    AddRequired(errors, path);
  } else if (type == "OnDelete") {
    if (rolling != nullptr) {
      AddInvalid(errors, rolling_path,
                 ShownStrategy(strategy, "Partition").get_object().at("RollingUpdate"),
                 "only allowed for updateStrategy 'RollingUpdate'");
    }
  } else if (type != "RollingUpdate") {
    AddInvalid(errors, path, ShownStrategy(strategy, "Partition"),
               "must be 'RollingUpdate' or 'OnDelete'");
  } else if (rolling != nullptr) {
    CheckCount(errors, rolling_path, *rolling, "partition");
    const Json* unavailable = FindMember(*rolling, "maxUnavailable");
    if (unavailable == nullptr) return;
    const Path at = rolling_path.At("maxUnavailable");
    CheckCountOrPercent(errors, at, *unavailable);
    if (IsZeroCount(*unavailable)) AddInvalid(errors, at, *unavailable, "cannot be 0");
    CheckShare(errors, at, *unavailable);
  }
}

// The template as pods are made of it: without what the controller sets, with its volumes.
Json WithIdentity(const Json& spec, const Json& pods) {
  Json munged = pods;
  RemovePath(munged, "spec.subdomain");
  RemovePath(munged, "spec.hostname");
  const JsonArray& claims = ArrayAt(spec, "volumeClaimTemplates");
  if (claims.empty()) return munged;
  JsonArray volumes;
  for (const Json& claim : claims) {
    const std::string_view name = TextAt(claim, "metadata.name");
    volumes.push_back(
        JsonObject{{"name", name}, {"persistentVolumeClaim", JsonObject{{"claimName", name}}}});
  }
  for (const Json& volume : ArrayAt(pods, "spec.volumes")) {
    const bool claimed = std::ranges::any_of(claims, [&](const Json& claim) {
      return TextAt(claim, "metadata.name") == TextAt(volume, "name");
    });
    if (!claimed) volumes.push_back(volume);
  }
  SetPath(munged, "spec.volumes", std::move(volumes));
  return munged;
}

void CheckStatefulSpec(FieldErrors& errors, const Path& path, const Json& spec, bool is_new) {
  const std::string_view management = TextAt(spec, "podManagementPolicy");
  if (management.empty()) {
    AddRequired(errors, path.At("podManagementPolicy"));
  } else if (management != "OrderedReady" && management != "Parallel") {
    AddInvalid(errors, path.At("podManagementPolicy"), management,
               {"must be 'OrderedReady' or 'Parallel'"});
  }
  CheckStatefulStrategy(errors, path.At("updateStrategy"),
                        OrEmptyObject(FindMember(spec, "updateStrategy")));
  if (const Json* retention = FindMember(spec, "persistentVolumeClaimRetentionPolicy")) {
    constexpr std::array<std::string_view, 2> kPolicies = {"Retain", "Delete"};
    const Path at = path.At("persistentVolumeClaimRetentionPolicy");
    CheckEnum(errors, at.At("whenDeleted"), TextAt(*retention, "whenDeleted"), kPolicies);
    CheckEnum(errors, at.At("whenScaled"), TextAt(*retention, "whenScaled"), kPolicies);
  }
  // Later they can't be changed.
  const JsonArray& claims = ArrayAt(spec, "volumeClaimTemplates");
  for (size_t i = 0; is_new && i < claims.size(); ++i) {
    const Path at = path.At("volumeClaimTemplates", i);
    CheckClaimSpec(errors, at.At("spec"), OrEmptyObject(FindMember(claims[i], "spec")));
  }
  constexpr std::array<std::string_view, 2> kCounts = {"replicas", "minReadySeconds"};
  CheckNonnegative(errors, path, spec, kCounts);
  if (const Json* ordinals = FindMember(spec, "ordinals"))
    CheckCount(errors, path.At("ordinals"), *ordinals, "start");
  const std::string_view service = TextAt(spec, "serviceName");
  if (is_new && !service.empty())
    AddInvalid(errors, path.At("serviceName"), service, CheckDns1123Label(service));
  const Json* selector = FindMember(spec, "selector");
  if (selector == nullptr) {
    AddRequired(errors, path.At("selector"));
  } else {
    CheckLabelSelector(errors, path.At("selector"), *selector);
    if (IsEmptySelector(*selector)) {
      AddInvalid(errors, path.At("selector"), *selector,
                 "empty selector is invalid for statefulset");
    }
  }
  const Path pods_path = path.At("template");
  const Json& pods = OrEmptyObject(FindMember(spec, "template"));
  const bool selects = (selector != nullptr && IsEmptySelector(*selector)) ||
                       Selects(selector, ObjectAt(pods, "metadata.labels"));
  if (!selects) AddMismatch(errors, pods_path, pods);
  CheckTemplate(errors, pods_path, WithIdentity(spec, pods));
  CheckAlwaysRestarted(errors, pods_path, pods, "StatefulSet");
}

void CheckStatefulChange(FieldErrors& errors, const Path& path, const Json& before,
                         const Json& after) {
  Json munged = after;
  for (const std::string_view member :
       {"replicas", "template", "updateStrategy", "minReadySeconds", "ordinals",
        "revisionHistoryLimit", "persistentVolumeClaimRetentionPolicy"}) {
    RemovePath(munged, member);
    if (const Json* value = FindMember(before, member)) SetPath(munged, member, *value);
  }
  if (SameJson(munged, before)) return;
  AddForbidden(errors, path,
               "updates to statefulset spec for fields other than 'replicas', 'ordinals', "
               "'template', 'updateStrategy', 'revisionHistoryLimit', "
               "'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden");
}

// ---- DaemonSet -------------------------------------------------------------------------------

void CheckDaemonStrategy(FieldErrors& errors, const Path& path, const Json& strategy) {
  const std::string_view type = TextAt(strategy, "type");
  if (type == "OnDelete") return;
  if (type != "RollingUpdate") {
    constexpr std::array<std::string_view, 2> kTypes = {"RollingUpdate", "OnDelete"};
    FieldError error = NotSupportedField(path.text(), "", kTypes);
    error.value = InvalidJsonField("", ShownStrategy(strategy, "MaxSurge"), "").value;
    errors.push_back(std::move(error));
    return;
  }
  const Path at = path.At("rollingUpdate");
  const Json* rolling = FindMember(strategy, "rollingUpdate");
  if (rolling == nullptr) return AddRequired(errors, at);
  const Json* unavailable = FindMember(*rolling, "maxUnavailable");
  const Json* surge = FindMember(*rolling, "maxSurge");
  const Json zero(0);
  const auto given = [&](const Json* value) -> const Json& { return value ? *value : zero; };
  CheckCountOrPercent(errors, at.At("maxUnavailable"), given(unavailable));
  CheckCountOrPercent(errors, at.At("maxSurge"), given(surge));
  CheckShare(errors, at.At("maxUnavailable"), given(unavailable));
  CheckShare(errors, at.At("maxSurge"), given(surge));
  const bool has_unavailable = !IsZeroCount(given(unavailable));
  const bool has_surge = !IsZeroCount(given(surge));
  if (has_unavailable && has_surge) {
    AddInvalid(errors, at.At("maxSurge"), given(surge),
               "may not be set when maxUnavailable is non-zero");
  } else if (!has_unavailable && !has_surge) {
    AddRequired(errors, at.At("maxUnavailable"), "cannot be 0 when maxSurge is 0");
  }
}

void CheckDaemonSpec(FieldErrors& errors, const Path& path, const Json& spec) {
  const Json* selector = FindMember(spec, "selector");
  const Path pods_path = path.At("template");
  const Json& pods = OrEmptyObject(FindMember(spec, "template"));
  if (selector != nullptr) CheckLabelSelector(errors, path.At("selector"), *selector);
  if (!Selects(selector, ObjectAt(pods, "metadata.labels"))) AddMismatch(errors, pods_path, pods);
  if (selector != nullptr && IsEmptySelector(*selector)) {
    AddInvalid(errors, path.At("selector"), *selector, "empty selector is invalid for daemonset");
  }
  CheckTemplate(errors, pods_path, pods);
  CheckAlwaysRestarted(errors, pods_path, pods, "DaemonSet");
  CheckCount(errors, path, spec, "minReadySeconds");
  CheckDaemonStrategy(errors, path.At("updateStrategy"),
                      OrEmptyObject(FindMember(spec, "updateStrategy")));
  CheckCount(errors, path, spec, "revisionHistoryLimit");
}

// ---- CronJob ---------------------------------------------------------------------------------

bool IsZonePart(std::string_view part) {
  constexpr size_t kPartMax = 14;
  if (part.empty() || part.size() > kPartMax || part == "." || part == ".." || part[0] == '-')
    return false;
  return std::ranges::all_of(part, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '-' || c == '_' || c == '+';
  });
}

// Which names there are is not known here: see AddUnknownZone().
void CheckZone(FieldErrors& errors, const Path& path, std::string_view zone) {
  if (zone.empty()) {
    return AddInvalid(errors, path, zone, {"timeZone must be nil or non-empty string"});
  }
  std::string_view rest = zone;
  while (true) {
    const size_t slash = rest.find('/');
    if (!IsZonePart(rest.substr(0, slash)))
      return AddInvalid(errors, path, zone, {fmt::format("unknown time zone {}", zone)});
    if (slash == std::string_view::npos) break;
    rest.remove_prefix(slash + 1);
  }
  std::string lower(zone);
  std::ranges::transform(lower, lower.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  });
  if (lower == "local") {
    AddInvalid(errors, path, zone,
               {"timeZone must be an explicit time zone as defined in "
                "https://www.iana.org/time-zones"});
    if (zone != "Local")
      AddInvalid(errors, path, zone, {fmt::format("unknown time zone {}", zone)});
  }
}

void CheckSchedule(FieldErrors& errors, const Path& path, const Json* old, const Json& spec) {
  const std::string_view schedule = TextAt(spec, "schedule");
  if (schedule.empty()) return AddRequired(errors, path);
  const Result<CronSchedule> parsed = CronSchedule::Parse(schedule);
  if (!parsed) AddInvalid(errors, path, schedule, {parsed.error().message});
  if (schedule.find("TZ") == std::string_view::npos) return;
  const bool allowed =
      old != nullptr && TextAt(*old, "spec.schedule").find("TZ") != std::string_view::npos;
  if (!allowed) {
    AddInvalid(errors, path, schedule,
               {"cannot use TZ or CRON_TZ in schedule, use timeZone field instead"});
  } else if (FindMember(spec, "timeZone") != nullptr) {
    AddInvalid(errors, path, schedule,
               {"cannot use both timeZone field and TZ or CRON_TZ in schedule"});
  }
}

void CheckCronTemplate(FieldErrors& errors, const Path& path, const Json& spec) {
  CheckJobTemplateSpec(errors, path, spec);
  if (const Json* selector = FindMember(spec, "selector"))
    AddInvalid(errors, path.At("selector"), *selector, "`selector` will be auto-generated");
  if (FlagAt(spec, "manualSelector")) {
    constexpr std::array<std::string_view, 2> kValues = {"nil", "false"};
    FieldError error = NotSupportedField(path.At("manualSelector").text(), "", kValues);
    error.value = "true";
    errors.push_back(std::move(error));
  }
}

}  // namespace

void CheckReplicationController(FieldErrors& errors, const Json* old, const Json& object) {
  CheckHead(errors, old, object, CheckLongName);
  // Upstream looks at the name that comes of it alone.
  std::erase_if(errors,
                [](const FieldError& error) { return error.field == "metadata.generateName"; });
  const Path path("spec");
  const Json& spec = OrEmptyObject(FindMember(object, "spec"));
  CheckCount(errors, path, spec, "minReadySeconds");
  const JsonObject& selector = ObjectAt(spec, "selector");
  if (selector.empty()) AddRequired(errors, path.At("selector"));
  CheckCount(errors, path, spec, "replicas");
  const Path pods_path = path.At("template");
  const Json* pods = FindMember(spec, "template");
  if (pods == nullptr) return AddRequired(errors, pods_path);
  const JsonObject& labels = ObjectAt(*pods, "metadata.labels");
  const bool selects = std::ranges::all_of(selector, [&](const auto& entry) {
    const Json* label = FindMember(labels, entry.key());
    return label != nullptr && *label == entry.value();
  });
  if (!selects) AddMismatch(errors, pods_path, *pods);
  CheckTemplate(errors, pods_path, *pods);
  CheckAlwaysRestarted(errors, pods_path, *pods, "ReplicationController");
}

void CheckReplicationControllerStatus(FieldErrors& errors, const Json& old, const Json& object) {
  CheckMetaUpdate(errors, old, object);
  const Path path("status");
  const Json& status = OrEmptyObject(FindMember(object, "status"));
  constexpr std::array<std::string_view, 5> kCounts = {"replicas", "fullyLabeledReplicas",
                                                       "readyReplicas", "availableReplicas",
                                                       "observedGeneration"};
  constexpr std::array<std::string_view, 3> kBounded = {"fullyLabeledReplicas", "readyReplicas",
                                                        "availableReplicas"};
  CheckNonnegative(errors, path, status, kCounts);
  CheckAtMostReplicas(errors, path, status, kBounded, "readyReplicas");
}

void CheckStatefulSet(FieldErrors& errors, const Json* old, const Json& object) {
  CheckHead(errors, old, object, CheckDns1123Label);
  const Path path("spec");
  const Json& spec = OrEmptyObject(FindMember(object, "spec"));
  CheckStatefulSpec(errors, path, spec, old == nullptr);
  if (old != nullptr)
    CheckStatefulChange(errors, path, OrEmptyObject(FindMember(*old, "spec")), spec);
}

void CheckStatefulSetStatus(FieldErrors& errors, const Json& old, const Json& object) {
  const Path path("status");
  const Json& status = OrEmptyObject(FindMember(object, "status"));
  constexpr std::array<std::string_view, 7> kCounts = {
      "replicas",          "readyReplicas",      "currentReplicas", "updatedReplicas",
      "availableReplicas", "observedGeneration", "collisionCount"};
  constexpr std::array<std::string_view, 4> kBounded = {"readyReplicas", "currentReplicas",
                                                        "updatedReplicas", "availableReplicas"};
  CheckNonnegative(errors, path, status, kCounts);
  CheckAtMostReplicas(errors, path, status, kBounded, "status.readyReplicas");
  CheckMetaUpdate(errors, old, object);
  CheckCollisions(errors, path, old, status);
}

void CheckDaemonSet(FieldErrors& errors, const Json* old, const Json& object) {
  CheckHead(errors, old, object, CheckDns1123Subdomain);
  const Path path("spec");
  const Json& spec = OrEmptyObject(FindMember(object, "spec"));
  if (old != nullptr)
    CheckImmutable(errors, path, OrEmptyObject(FindMember(*old, "spec")), spec, "selector");
  CheckDaemonSpec(errors, path, spec);
}

void CheckDaemonSetStatus(FieldErrors& errors, const Json& old, const Json& object) {
  CheckMetaUpdate(errors, old, object);
  const Path path("status");
  const Json& status = OrEmptyObject(FindMember(object, "status"));
  constexpr std::array<std::string_view, 9> kCounts = {
      "currentNumberScheduled", "numberMisscheduled",
      "desiredNumberScheduled", "numberReady",
      "observedGeneration",     "updatedNumberScheduled",
      "numberAvailable",        "numberUnavailable",
      "collisionCount"};
  CheckNonnegative(errors, path, status, kCounts);
  CheckCollisions(errors, path, old, status);
}

void CheckControllerRevision(FieldErrors& errors, const Json* old, const Json& object) {
  if (old != nullptr) CheckMetaUpdate(errors, *old, object);
  CheckMeta(errors, object, true, CheckDns1123Subdomain);
  CheckCount(errors, Path(""), object, "revision");
  if (old != nullptr) {
    // Unlike other members it stands at the root.
    const auto data_of = [](const Json& revision) {
      const Json* found = FindMember(revision, "data");
      return found == nullptr ? Json() : *found;
    };
    const Json after = data_of(object);
    if (!SameJson(data_of(*old), after)) {
      AddInvalid(errors, Path("data"), after, "field is immutable");
    }
    return;
  }
  const Json* data = FindMember(object, "data");
  if (data == nullptr) {
    AddRequired(errors, Path("data"), "data is mandatory");
  } else if (!data->is_object()) {
    AddRequired(errors, Path("data"), "data must be a valid JSON object");
  }
}

void CheckCronJob(FieldErrors& errors, const Json* old, const Json& object) {
  constexpr size_t kNameMax = 52;
  CheckHead(errors, old, object, CheckDns1123Subdomain);
  const Path path("spec");
  const Json& spec = OrEmptyObject(FindMember(object, "spec"));
  CheckSchedule(errors, path.At("schedule"), old, spec);
  CheckCount(errors, path, spec, "startingDeadlineSeconds");
  const Json* zone = FindMember(spec, "timeZone");
  const Json* zone_before = old == nullptr ? nullptr : FindPath(*old, "spec.timeZone");
  if (zone != nullptr && (zone_before == nullptr || *zone_before != *zone))
    CheckZone(errors, path.At("timeZone"), TextAt(spec, "timeZone"));
  constexpr std::array<std::string_view, 3> kPolicies = {"Allow", "Forbid", "Replace"};
  const std::string_view policy = TextAt(spec, "concurrencyPolicy");
  CheckRequiredEnum(errors, path.At("concurrencyPolicy"), policy, kPolicies);
  const Path job_path = path.At("jobTemplate");
  CheckCronTemplate(errors, job_path.At("spec"), OrEmptyObject(FindPath(spec, "jobTemplate.spec")));
  CheckCount(errors, path, spec, "successfulJobsHistoryLimit");
  CheckCount(errors, path, spec, "failedJobsHistoryLimit");
  const std::string_view name = TextAt(object, "metadata.name");
  if (old == nullptr && name.size() > kNameMax) {
    const Path meta("metadata");
    AddInvalid(errors, meta.At("name"), name, {"must be no more than 52 characters"});
  }
}

}  // namespace berth::api::rules
