#include <fmt/format.h>

#include <array>
#include <charconv>
#include <set>
#include <string>
#include <string_view>

#include "api/defaults.h"
#include "api/fields.h"
#include "api/names.h"
#include "api/object.h"
#include "api/validate.h"
#include "config/complete.h"
#include "config/print.h"

namespace berth::config {
namespace {

using api::FieldErrors;

struct Checking {
  const std::string& path;  // Of the arguments.
  const FeatureGates& gates;
  FieldErrors& errors;

  [[nodiscard]] std::string At(std::string_view name) const {
    return fmt::format("{}.{}", path, name);
  }
};

void CheckShape(const std::vector<ShapePoint>& shape, const std::string& path,
                FieldErrors& errors) {
  if (shape.empty()) {
    errors.push_back(api::RequiredField(path, "at least one point must be specified"));
    return;
  }
  for (size_t i = 1; i < shape.size(); ++i) {
    if (shape[i - 1].utilization < shape[i].utilization) continue;
    errors.push_back(api::InvalidField(fmt::format("{}[{}].utilization", path, i),
                                       shape[i].utilization,
                                       "values must be sorted in increasing order"));
    break;
  }
  for (size_t i = 0; i < shape.size(); ++i) {
    const ShapePoint& point = shape[i];
    if (point.utilization < 0 || point.utilization > 100) {
      errors.push_back(api::InvalidField(fmt::format("{}[{}].utilization", path, i),
                                         point.utilization, "not in valid range [0, 100]"));
    }
    if (point.score < 0 || point.score > 10) {
      errors.push_back(api::InvalidField(fmt::format("{}[{}].score", path, i), point.score,
                                         "not in valid range [0, 10]"));
    }
  }
}

void CheckLabelName(const std::string& field, std::string_view name, FieldErrors& errors) {
  for (const std::string& message : api::CheckQualifiedName(name))
    errors.push_back(api::InvalidField(field, name, message));
}

void Check(const std::monostate& /*args*/, const Checking& /*in*/) {}

void Check(const DefaultPreemptionArgs& args, const Checking& in) {
  const int32_t percentage = args.min_candidate_nodes_percentage;
  const int32_t absolute = args.min_candidate_nodes_absolute;
  const std::string percentage_field = in.At("minCandidateNodesPercentage");
  const std::string absolute_field = in.At("minCandidateNodesAbsolute");
  if (percentage < 0 || percentage > 100)
    in.errors.push_back(
        api::InvalidField(percentage_field, percentage, "not in valid range [0, 100]"));
  if (absolute < 0)
    in.errors.push_back(api::InvalidField(absolute_field, absolute, "not in valid range [0, inf)"));
  if (percentage == 0 && absolute == 0) {
    in.errors.push_back(
        api::InvalidField(percentage_field, percentage,
                          "cannot be zero at the same time as minCandidateNodesAbsolute"));
    in.errors.push_back(
        api::InvalidField(absolute_field, absolute,
                          "cannot be zero at the same time as minCandidateNodesPercentage"));
  }
}

void Check(const InterPodAffinityArgs& args, const Checking& in) {
  const int32_t weight = args.hard_pod_affinity_weight;
  if (weight < 0 || weight > 100) {
    in.errors.push_back(
        api::InvalidField(in.At("hardPodAffinityWeight"), weight, "not in valid range [0, 100]"));
  }
}

// A pod's term that compares with what is no integer is found out when it is matched, a profile's
// at the start.
void CheckBounds(const api::Json& term, const std::string& at, const Checking& in) {
  const api::JsonArray& expressions = api::ArrayAt(term, "matchExpressions");
  for (size_t i = 0; i < expressions.size(); ++i) {
    const std::string_view op = api::TextAt(expressions[i], "operator");
    const api::JsonArray& values = api::ArrayAt(expressions[i], "values");
    if ((op != "Gt" && op != "Lt") || values.size() != 1) continue;
    const std::string_view text = api::TextOf(values[0]);
    int64_t number = 0;
    const auto [end, error] = std::from_chars(text.begin(), text.end(), number);
    if (error == std::errc() && end == text.end()) continue;
    in.errors.push_back(api::InvalidField(fmt::format("{}.matchExpressions[{}].values[0]", at, i),
                                          text,
                                          "must be an integer when `operator` is 'Lt' or 'Gt'"));
  }
}

void CheckBoundsOfAll(const api::Json& affinity, const std::string& here, const Checking& in) {
  const api::JsonArray& required =
      api::ArrayAt(affinity, "requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms");
  for (size_t i = 0; i < required.size(); ++i) {
    CheckBounds(required[i],
                fmt::format("{}.requiredDuringSchedulingIgnoredDuringExecution."
                            "nodeSelectorTerms[{}]",
                            here, i),
                in);
  }
  const api::JsonArray& preferred =
      api::ArrayAt(affinity, "preferredDuringSchedulingIgnoredDuringExecution");
  for (size_t i = 0; i < preferred.size(); ++i) {
    CheckBounds(
        api::OrEmptyObject(api::FindMember(preferred[i], "preference")),
        fmt::format("{}.preferredDuringSchedulingIgnoredDuringExecution[{}].preference", here, i),
        in);
  }
}

// A pod that would have the affinity is asked whether it may.
void Check(const NodeAffinityArgs& args, const Checking& in) {
  if (args.added_affinity.is_null()) return;
  constexpr std::string_view kThere = "spec.affinity.nodeAffinity";
  const std::string here = in.At("addedAffinity");
  if (!args.added_affinity.is_object()) {
    in.errors.push_back(api::InvalidJsonField(here, args.added_affinity, "must be an object"));
    return;
  }
  api::Json pod = {{"apiVersion", "v1"},
                   {"kind", "Pod"},
                   {"metadata", {{"name", "p"}, {"namespace", "n"}}},
                   {"spec",
                    {{"containers", api::JsonArray{{{"name", "c"}, {"image", "i"}}}},
                     {"affinity", {{"nodeAffinity", args.added_affinity}}}}}};
  const Result<std::vector<std::string>> strict = api::Conform(api::KindId::kPod, pod);
  if (!strict) {
    in.errors.push_back(api::InvalidJsonField(here, args.added_affinity, strict.error().message));
    return;
  }
  for (const std::string& problem : *strict) {
    std::string text = problem;
    if (const size_t at = text.find(kThere); at != std::string::npos)
      text.replace(at, kThere.size(), here);
    in.errors.push_back(api::ForbiddenField(here, text));
  }
  for (api::FieldError error : api::ValidateCreate(api::KindId::kPod, pod)) {
    if (!error.field.starts_with(kThere)) continue;
    error.field.replace(0, kThere.size(), here);
    in.errors.push_back(std::move(error));
  }
  CheckBoundsOfAll(args.added_affinity, here, in);
}

void Check(const NodeResourcesBalancedAllocationArgs& args, const Checking& in) {
  std::set<std::string_view> seen;
  for (size_t i = 0; i < args.resources.size(); ++i) {
    const ResourceSpec& resource = args.resources[i];
    const std::string at = fmt::format("{}[{}]", in.At("resources"), i);
    if (!seen.insert(resource.name).second)
      in.errors.push_back(api::DuplicateField(fmt::format("{}.name", at), resource.name));
    if (resource.weight != 1)
      in.errors.push_back(
          api::InvalidField(fmt::format("{}.weight", at), resource.weight, "must be 1"));
  }
}

void CheckStrategy(const ScoringStrategy& strategy, const std::string& path, FieldErrors& errors) {
  constexpr std::string_view kRatio = "RequestedToCapacityRatio";
  constexpr std::array<std::string_view, 3> kTypes = {"LeastAllocated", "MostAllocated", kRatio};
  const std::string& type = strategy.type;
  if (type != kTypes[0] && type != kTypes[1] && type != kTypes[2])
    errors.push_back(api::NotSupportedField(fmt::format("{}.type", path), type, kTypes));
  for (size_t i = 0; i < strategy.resources.size(); ++i) {
    const ResourceSpec& resource = strategy.resources[i];
    if (resource.weight > 0 && resource.weight <= 100) continue;
    errors.push_back(api::InvalidField(
        fmt::format("{}.resources[{}].weight", path, i), resource.weight,
        fmt::format("resource weight of {} not in valid range (0, 100]", resource.name)));
  }
  const std::string ratio_field = fmt::format("{}.requestedToCapacityRatio", path);
  const auto& ratio = strategy.requested_to_capacity_ratio;
  if (type == kRatio && !ratio) {
    errors.push_back(
        api::RequiredField(ratio_field, "must be specified when type is RequestedToCapacityRatio"));
  } else if (type == kRatio) {
    CheckShape(ratio->shape, fmt::format("{}.shape", ratio_field), errors);
  } else if (ratio) {
    errors.push_back(
        api::ForbiddenField(ratio_field, "must be nil when type is not RequestedToCapacityRatio"));
  }
}

void Check(const NodeResourcesFitArgs& args, const Checking& in) {
  for (size_t i = 0; i < args.ignored_resources.size(); ++i) {
    CheckLabelName(fmt::format("{}[{}]", in.At("ignoredResources"), i), args.ignored_resources[i],
                   in.errors);
  }
  for (size_t i = 0; i < args.ignored_resource_groups.size(); ++i) {
    const std::string& group = args.ignored_resource_groups[i];
    const std::string field = fmt::format("{}[{}]", in.At("ignoredResourceGroups"), i);
    if (group.contains('/')) {
      in.errors.push_back(api::InvalidField(field, group, "resource group name can't contain '/'"));
    }
    CheckLabelName(field, group, in.errors);
  }
  CheckStrategy(*args.scoring_strategy, in.At("scoringStrategy"), in.errors);
}

void CheckConstraint(const SpreadConstraint& of, const std::string& path, FieldErrors& errors) {
  constexpr std::array<std::string_view, 2> kActions = {"DoNotSchedule", "ScheduleAnyway"};
  if (of.max_skew <= 0) {
    errors.push_back(api::InvalidField(fmt::format("{}.maxSkew", path), of.max_skew,
                                       "not in valid range (0, inf)"));
  }
  const std::string key_field = fmt::format("{}.topologyKey", path);
  if (of.topology_key.empty()) {
    errors.push_back(api::RequiredField(key_field, "can not be empty"));
  } else {
    CheckLabelName(key_field, of.topology_key, errors);
  }
  const std::string action_field = fmt::format("{}.whenUnsatisfiable", path);
  if (of.when_unsatisfiable.empty()) {
    errors.push_back(api::RequiredField(action_field, "can not be empty"));
  } else if (of.when_unsatisfiable != kActions[0] && of.when_unsatisfiable != kActions[1]) {
    errors.push_back(api::NotSupportedField(action_field, of.when_unsatisfiable, kActions));
  }
  if (!of.label_selector.is_null()) {
    errors.push_back(
        api::ForbiddenField(fmt::format("{}.labelSelector", path),
                            "constraint must not define a selector, as they deduced for each pod"));
  }
}

void Check(const PodTopologySpreadArgs& args, const Checking& in) {
  constexpr std::array<std::string_view, 2> kTypes = {"List", "System"};
  const std::string& type = args.defaulting_type;
  if (type != kTypes[0] && type != kTypes[1]) {
    in.errors.push_back(api::NotSupportedField(in.At("defaultingType"), type, kTypes));
  } else if (type == "System" && !args.default_constraints.empty()) {
    in.errors.push_back(
        api::InvalidField(in.At("defaultingType"), type, "when .defaultConstraints are not empty"));
  }
  std::set<std::pair<std::string_view, std::string_view>> seen;
  for (size_t i = 0; i < args.default_constraints.size(); ++i) {
    const SpreadConstraint& of = args.default_constraints[i];
    const std::string path = fmt::format("{}[{}]", in.At("defaultConstraints"), i);
    CheckConstraint(of, path, in.errors);
    if (!seen.emplace(of.topology_key, of.when_unsatisfiable).second) {
      in.errors.push_back(api::DuplicateField(
          path, fmt::format("{{{}, {}}}", of.topology_key, of.when_unsatisfiable)));
    }
  }
}

void Check(const VolumeBindingArgs& args, const Checking& in) {
  if (args.bind_timeout_seconds < 0) {
    in.errors.push_back(
        api::InvalidField(in.At("bindTimeoutSeconds"), args.bind_timeout_seconds,
                          "invalid BindTimeoutSeconds, should not be a negative value"));
  }
  if (in.gates.on("StorageCapacityScoring")) {
    CheckShape(args.shape.value_or(std::vector<ShapePoint>()), in.At("shape"), in.errors);
  } else if (args.shape) {
    in.errors.push_back(api::ForbiddenField(
        in.At("shape"),
        "unexpected field, remove it or turn on the feature gate StorageCapacityScoring"));
  }
}

void Check(const DynamicResourcesArgs& args, const Checking& in) {
  if (args.filter_timeout && !in.gates.on("DRASchedulerFilterTimeout")) {
    in.errors.push_back(api::ForbiddenField(in.At("filterTimeout"),
                                            "DRASchedulerFilterTimeout feature gate is disabled"));
  } else if (args.filter_timeout && *args.filter_timeout < Duration{}) {
    in.errors.push_back(api::InvalidField(in.At("filterTimeout"), GoText(*args.filter_timeout),
                                          "must be zero or positive"));
  }
  if (!args.binding_timeout) return;
  if (!in.gates.on("DRADeviceBindingConditions") || !in.gates.on("DRAResourceClaimDeviceStatus")) {
    in.errors.push_back(api::ForbiddenField(
        in.At("bindingTimeout"),
        "DRADeviceBindingConditions or DRAResourceClaimDeviceStatus feature gate is disabled"));
  } else if (*args.binding_timeout < Duration::Seconds(1)) {
    in.errors.push_back(api::InvalidField(in.At("bindingTimeout"), GoText(*args.binding_timeout),
                                          "must be at least 1 second"));
  }
}

}  // namespace

void ValidateArgs(const PluginArgs& args, const std::string& path, const FeatureGates& gates,
                  FieldErrors& errors) {
  const Checking in = {.path = path, .gates = gates, .errors = errors};
  std::visit([&](const auto& of) { Check(of, in); }, args);
}

}  // namespace berth::config
