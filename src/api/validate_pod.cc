#include "api/validate_pod.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string>

#include "api/object.h"
#include "api/quantity.h"
#include "api/validate_claims.h"
#include "api/validate_common.h"
#include "api/validate_env.h"
#include "api/validate_security.h"
#include "api/validate_windows.h"

namespace berth::api::rules {
namespace {

constexpr std::array<std::string_view, 3> kRestartPolicies = {"Always", "OnFailure", "Never"};
constexpr std::array<std::string_view, 4> kDnsPolicies = {"ClusterFirstWithHostNet", "ClusterFirst",
                                                          "Default", "None"};
constexpr std::array<std::string_view, 2> kPreemptionPolicies = {"PreemptLowerPriority", "Never"};
constexpr std::array<std::string_view, 3> kEffects = {"NoSchedule", "PreferNoSchedule",
                                                      "NoExecute"};
constexpr std::array<std::string_view, 2> kTolerationOperators = {"Equal", "Exists"};

void CheckToleration(FieldErrors& errors, const Path& path, const Json& toleration) {
  const std::string_view key = TextAt(toleration, "key");
  const std::string_view op = TextAt(toleration, "operator");
  const std::string_view value = TextAt(toleration, "value");
  const std::string_view effect = TextAt(toleration, "effect");
  if (!key.empty()) CheckLabelName(errors, path.At("key"), key);
  if (key.empty() && op != "Exists") {
    AddInvalid(errors, path.At("operator"), op,
               {"operator must be Exists when `key` is empty, which means \"match all values and "
                "all keys\""});
  }
  if (FindMember(toleration, "tolerationSeconds") != nullptr && effect != "NoExecute") {
    AddInvalid(errors, path.At("effect"), effect,
               {"effect must be 'NoExecute' when `tolerationSeconds` is set"});
  }
  if (op.empty() || op == "Equal") {
    const Messages messages = CheckLabelValue(value);
    if (!messages.empty()) {
      AddInvalid(errors, path.At("operator"), value, {fmt::format("{}", fmt::join(messages, ";"))});
    }
  } else if (op == "Exists") {
    if (!value.empty()) {
      AddInvalid(errors, path.At("operator"), value,
                 {"value must be empty when `operator` is 'Exists'"});
    }
  } else if (op == "Lt" || op == "Gt") {
    constexpr std::array<std::string_view, 4> kAll = {"Equal", "Exists", "Lt", "Gt"};
    errors.push_back(NotSupportedField(path.At("operator").text(), op, kAll));
  } else {
    CheckEnum(errors, path.At("operator"), op, kTolerationOperators);
  }
  if (!effect.empty()) CheckEnum(errors, path.At("effect"), effect, kEffects);
}

void CheckNodeExpression(FieldErrors& errors, const Path& path, const Json& expression,
                         bool check_values) {
  const std::string_view op = TextAt(expression, "operator");
  const JsonArray& values = ArrayAt(expression, "values");
  const Path values_path = path.At("values");
  if (op == "In" || op == "NotIn") {
    if (values.empty()) {
      AddRequired(errors, values_path, "must be specified when `operator` is 'In' or 'NotIn'");
    }
  } else if (op == "Exists" || op == "DoesNotExist") {
    if (!values.empty()) {
      AddForbidden(errors, values_path,
                   "may not be specified when `operator` is 'Exists' or 'DoesNotExist'");
    }
  } else if (op == "Gt" || op == "Lt") {
    if (values.size() != 1) {
      AddRequired(errors, values_path,
                  "must be specified single value when `operator` is 'Lt' or 'Gt'");
    }
  } else {
    AddInvalid(errors, path.At("operator"), op, {"not a valid selector operator"});
  }
  CheckLabelName(errors, path.At("key"), TextAt(expression, "key"));
  if (!check_values) return;
  for (size_t i = 0; i < values.size(); ++i) {
    const std::string_view text = TextOf(values[i]);
    if (!IsLabelValue(text)) AddInvalid(errors, path.At("values", i), text, CheckLabelValue(text));
  }
}

void CheckNodeField(FieldErrors& errors, const Path& path, const Json& expression) {
  const std::string_view op = TextAt(expression, "operator");
  const JsonArray& values = ArrayAt(expression, "values");
  if (op != "In" && op != "NotIn") {
    AddInvalid(errors, path.At("operator"), op, {"not a valid selector operator"});
  } else if (values.size() != 1) {
    AddRequired(
        errors, path.At("values"),
        "must be only one value when `operator` is 'In' or 'NotIn' for node field selector");
  }
  const std::string_view key = TextAt(expression, "key");
  if (key != "metadata.name") {
    AddInvalid(errors, path.At("key"), key, {"not a valid field selector key"});
    return;
  }
  for (size_t i = 0; i < values.size(); ++i) {
    AddInvalid(errors, path.At("values", i), TextOf(values[i]),
               CheckDns1123Subdomain(TextOf(values[i])));
  }
}

void CheckNodeTerm(FieldErrors& errors, const Path& path, const Json& term, bool check_values) {
  const JsonArray& expressions = ArrayAt(term, "matchExpressions");
  for (size_t i = 0; i < expressions.size(); ++i) {
    CheckNodeExpression(errors, path.At("matchExpressions", i), expressions[i], check_values);
  }
  const JsonArray& fields = ArrayAt(term, "matchFields");
  for (size_t i = 0; i < fields.size(); ++i) {
    CheckNodeField(errors, path.At("matchFields", i), fields[i]);
  }
}

}  // namespace

void CheckNodeSelector(FieldErrors& errors, const Path& path, const Json& selector) {
  const JsonArray& terms = ArrayAt(selector, "nodeSelectorTerms");
  if (terms.empty()) {
    AddRequired(errors, path.At("nodeSelectorTerms"), "must have at least one node selector term");
  }
  for (size_t i = 0; i < terms.size(); ++i) {
    CheckNodeTerm(errors, path.At("nodeSelectorTerms", i), terms[i], true);
  }
}

namespace {

constexpr std::string_view kRequiredTerms = "requiredDuringSchedulingIgnoredDuringExecution";
constexpr std::string_view kPreferredTerms = "preferredDuringSchedulingIgnoredDuringExecution";

void CheckWeight(FieldErrors& errors, const Path& path, const Json& term) {
  const int64_t weight = IntegerAt(term, "weight");
  if (weight >= 1 && weight <= 100) return;
  errors.push_back(InvalidField(path.At("weight").text(), weight, "must be in the range 1-100"));
}

void CheckNodeAffinity(FieldErrors& errors, const Path& affinity_path, const Json& affinity) {
  const Json* node = FindMember(affinity, "nodeAffinity");
  if (node == nullptr) return;
  const Path path = affinity_path.At("nodeAffinity");
  if (const Json* required = FindMember(*node, kRequiredTerms)) {
    CheckNodeSelector(errors, path.At(kRequiredTerms), *required);
  }
  const JsonArray& preferred = ArrayAt(*node, kPreferredTerms);
  for (size_t i = 0; i < preferred.size(); ++i) {
    const Path at = path.At(kPreferredTerms, i);
    CheckWeight(errors, at, preferred[i]);
    const Json* term = FindMember(preferred[i], "preference");
    if (term != nullptr) CheckNodeTerm(errors, at.At("preference"), *term, false);
  }
}

// A key of the pod's labels is asked for by its value alone; a selector that has it in two ways has
// it by the pod's creation, and beside.
void CheckKeysOfSelector(FieldErrors& errors, const Path& path, const Json& term) {
  const Json* selector = FindMember(term, "labelSelector");
  const JsonArray& keys = ArrayAt(term, "matchLabelKeys");
  if (selector == nullptr || keys.empty()) return;
  std::map<std::string_view, size_t> places;
  for (size_t i = 0; i < keys.size(); ++i) places[TextOf(keys[i])] = i;
  std::set<std::string_view> seen;
  for (const auto& [key, value] : ObjectAt(*selector, "matchLabels")) seen.insert(key);
  for (const Json& expression : ArrayAt(*selector, "matchExpressions")) {
    const std::string_view key = TextAt(expression, "key");
    const auto place = places.find(key);
    if (!seen.insert(key).second && place != places.end()) {
      AddInvalid(errors, path.Item(place->second), key,
                 Messages{"exists in both matchLabelKeys and labelSelector"});
    }
  }
}

// Labels of the pod itself that the term asks for, or against, beside its selector.
void CheckLabelKeys(FieldErrors& errors, const Path& path, const Json& term) {
  for (const std::string_view member : {"matchLabelKeys", "mismatchLabelKeys"}) {
    const JsonArray& keys = ArrayAt(term, member);
    if (!keys.empty() && FindMember(term, "labelSelector") == nullptr) {
      AddForbidden(errors, path.At(member), "must not be specified when labelSelector is not set");
      continue;
    }
    for (size_t i = 0; i < keys.size(); ++i) {
      CheckLabelName(errors, path.At(member, i), TextOf(keys[i]));
    }
  }
  CheckKeysOfSelector(errors, path, term);
  const JsonArray& match = ArrayAt(term, "matchLabelKeys");
  const JsonArray& mismatch = ArrayAt(term, "mismatchLabelKeys");
  for (size_t i = 0; i < match.size(); ++i) {
    if (std::ranges::find(mismatch, match[i]) == mismatch.end()) continue;
    AddInvalid(errors, path.At("matchLabelKeys", i), TextOf(match[i]),
               Messages{"exists in both matchLabelKeys and mismatchLabelKeys"});
  }
}

void CheckPodTerm(FieldErrors& errors, const Path& path, const Json& term) {
  if (const Json* selector = FindMember(term, "labelSelector")) {
    CheckLabelSelector(errors, path.At("labelSelector"), *selector);
  }
  if (const Json* selector = FindMember(term, "namespaceSelector")) {
    CheckLabelSelector(errors, path.At("namespaceSelector"), *selector);
  }
  for (const Json& name : ArrayAt(term, "namespaces")) {
    AddInvalid(errors, path.At("namespace"), TextOf(name), CheckDns1123Label(TextOf(name)));
  }
  CheckLabelKeys(errors, path, term);
  const std::string_view key = TextAt(term, "topologyKey");
  if (key.empty()) AddRequired(errors, path.At("topologyKey"), "can not be empty");
  CheckLabelName(errors, path.At("topologyKey"), key);
}

void CheckPodAffinity(FieldErrors& errors, const Path& affinity_path, const Json& affinity,
                      std::string_view which) {
  const Json* terms = FindMember(affinity, which);
  if (terms == nullptr) return;
  const Path path = affinity_path.At(which);
  const JsonArray& required = ArrayAt(*terms, kRequiredTerms);
  for (size_t i = 0; i < required.size(); ++i) {
    CheckPodTerm(errors, path.At(kRequiredTerms, i), required[i]);
  }
  const JsonArray& preferred = ArrayAt(*terms, kPreferredTerms);
  for (size_t i = 0; i < preferred.size(); ++i) {
    const Path at = path.At(kPreferredTerms, i);
    CheckWeight(errors, at, preferred[i]);
    const Json* term = FindMember(preferred[i], "podAffinityTerm");
    CheckPodTerm(errors, at.At("podAffinityTerm"), OrEmptyObject(term));
  }
}

void CheckAffinity(FieldErrors& errors, const Path& spec_path, const Json& spec) {
  const Json* affinity = FindMember(spec, "affinity");
  if (affinity == nullptr) return;
  const Path path = spec_path.At("affinity");
  CheckNodeAffinity(errors, path, *affinity);
  CheckPodAffinity(errors, path, *affinity, "podAffinity");
  CheckPodAffinity(errors, path, *affinity, "podAntiAffinity");
}

void CheckSpread(FieldErrors& errors, const Path& spec_path, const Json& spec) {
  constexpr std::array<std::string_view, 2> kActions = {"DoNotSchedule", "ScheduleAnyway"};
  constexpr std::array<std::string_view, 2> kPolicies = {"Honor", "Ignore"};
  const JsonArray& constraints = ArrayAt(spec, "topologySpreadConstraints");
  const auto key_of = [](const Json& constraint) {
    return std::pair(TextAt(constraint, "topologyKey"), TextAt(constraint, "whenUnsatisfiable"));
  };
  std::map<std::pair<std::string_view, std::string_view>, size_t> last;
  for (size_t i = 0; i < constraints.size(); ++i) last[key_of(constraints[i])] = i;
  for (size_t i = 0; i < constraints.size(); ++i) {
    const Path path = spec_path.At("topologySpreadConstraints", i);
    const Json& constraint = constraints[i];
    const int64_t skew = IntegerAt(constraint, "maxSkew");
    if (skew <= 0) {
      errors.push_back(InvalidField(path.At("maxSkew").text(), skew, "must be greater than zero"));
    }
    const auto [key, action] = key_of(constraint);
    if (key.empty()) AddRequired(errors, path.At("topologyKey"), "can not be empty");
    CheckEnum(errors, path.At("whenUnsatisfiable"), action, kActions);
    if (last.at(key_of(constraint)) != i) {
      errors.push_back(DuplicateField(path.At("{topologyKey, whenUnsatisfiable}").text(),
                                      fmt::format("{{{}, {}}}", key, action)));
    }
    if (FindMember(constraint, "minDomains") != nullptr) {
      const int64_t domains = IntegerAt(constraint, "minDomains");
      if (domains <= 0) {
        errors.push_back(
            InvalidField(path.At("minDomains").text(), domains, "must be greater than zero"));
      }
      if (action != "DoNotSchedule") {
        errors.push_back(InvalidField(
            path.At("minDomains").text(), domains,
            fmt::format("can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {}",
                        action)));
      }
    }
    for (const std::string_view policy : {"nodeAffinityPolicy", "nodeTaintsPolicy"}) {
      if (FindMember(constraint, policy) != nullptr) {
        CheckEnum(errors, path.At(policy), TextAt(constraint, policy), kPolicies);
      }
    }
    CheckLabelKeys(errors, path, constraint);
    if (const Json* selector = FindMember(constraint, "labelSelector")) {
      CheckLabelSelector(errors, path.At("labelSelector"), *selector);
    }
  }
}

void CheckGates(FieldErrors& errors, const Path& spec_path, const Json& spec) {
  const JsonArray& readiness = ArrayAt(spec, "readinessGates");
  for (size_t i = 0; i < readiness.size(); ++i) {
    const Path path = spec_path.At("readinessGates", i);
    CheckLabelName(errors, path.At("conditionType"), TextAt(readiness[i], "conditionType"));
  }
  const JsonArray& gates = ArrayAt(spec, "schedulingGates");
  std::set<std::string_view> seen;
  for (size_t i = 0; i < gates.size(); ++i) {
    const Path path = spec_path.At("schedulingGates", i);
    const std::string_view name = TextAt(gates[i], "name");
    CheckLabelName(errors, path, name);
    if (!seen.insert(name).second) errors.push_back(DuplicateField(path.text(), name));
  }
}

void CheckHostNetwork(FieldErrors& errors, const Path& spec_path, const Json& spec,
                      bool is_template) {
  if (!FlagAt(spec, "hostNetwork")) return;
  const JsonArray& containers = ArrayAt(spec, "containers");
  for (size_t i = 0; i < containers.size(); ++i) {
    const Path path = spec_path.At("containers", i);
    const JsonArray& ports = ArrayAt(containers[i], "ports");
    for (size_t k = 0; k < ports.size(); ++k) {
      const int64_t host = IntegerAt(ports[k], "hostPort");
      if (host == IntegerAt(ports[k], "containerPort") || (is_template && host == 0)) continue;
      const Path at = path.At("ports", k);
      errors.push_back(InvalidField(at.At("hostPort").text(), host,
                                    "must match `containerPort` when `hostNetwork` is true"));
    }
  }
}

// Members that must be names, each in its own shape.
void CheckSpecNames(FieldErrors& errors, const Path& path, const Json& spec) {
  struct Rule {
    std::string_view member;
    NameCheck check;
  };
  constexpr std::array<Rule, 6> kRules = {{{"serviceAccountName", CheckDns1123Subdomain},
                                           {"nodeName", CheckDns1123Subdomain},
                                           {"hostname", CheckDns1123Label},
                                           {"subdomain", CheckDns1123Label},
                                           {"priorityClassName", CheckDns1123Subdomain},
                                           {"runtimeClassName", CheckDns1123Subdomain}}};
  for (const Rule& rule : kRules) {
    const std::string_view value = TextAt(spec, rule.member);
    if (!value.empty()) AddInvalid(errors, path.At(rule.member), value, rule.check(value));
  }
}

}  // namespace

void CheckPodSpec(FieldErrors& errors, const Path& path, const Json& spec, bool is_template,
                  std::string_view pod_name) {
  if (FindMember(spec, "terminationGracePeriodSeconds") == nullptr) {
    AddRequired(errors, path.At("terminationGracePeriodSeconds"));
  }
  const PodVolumes volumes = CheckPodVolumes(errors, path, spec, is_template, pod_name);
  CheckPodClaims(errors, path, spec);
  CheckContainers(errors, path, spec, volumes);
  CheckEphemeralContainers(errors, path, spec, volumes);
  CheckPodResources(errors, path, spec);
  CheckHostNetwork(errors, path, spec, is_template);
  CheckRequiredEnum(errors, path.At("restartPolicy"), TextAt(spec, "restartPolicy"),
                    kRestartPolicies);
  CheckRequiredEnum(errors, path.At("dnsPolicy"), TextAt(spec, "dnsPolicy"), kDnsPolicies);
  CheckLabels(errors, path.At("nodeSelector"), ObjectAt(spec, "nodeSelector"));
  CheckPodSecurity(errors, path, spec);
  CheckAffinity(errors, path, spec);
  CheckDns(errors, path, spec);
  CheckGates(errors, path, spec);
  CheckSpread(errors, path, spec);
  CheckHostProcesses(errors, path, spec);
  CheckOwnUsers(errors, path, spec);
  CheckHostnameOverride(errors, path, spec);
  CheckSpecNames(errors, path, spec);
  if (const Json* deadline = FindMember(spec, "activeDeadlineSeconds")) {
    const int64_t value = IntegerAt(spec, "activeDeadlineSeconds");
    if (value < 1 || value > INT32_MAX) {
      AddInvalid(errors, path.At("activeDeadlineSeconds"), *deadline, RangeMessage(1, INT32_MAX));
    }
  }
  CheckTolerations(errors, path, spec);
  CheckHostAliases(errors, path, spec);
  if (FindMember(spec, "preemptionPolicy") != nullptr) {
    CheckRequiredEnum(errors, path.At("preemptionPolicy"), TextAt(spec, "preemptionPolicy"),
                      kPreemptionPolicies);
  }
  CheckOverhead(errors, path.At("overhead"), ObjectAt(spec, "overhead"));
  CheckSystem(errors, path, spec);
  CheckVariableVolumes(errors, path, spec);
  if (!is_template) {
    CheckImages(errors, path, spec);
  } else if (!ArrayAt(spec, "ephemeralContainers").empty()) {
    AddForbidden(errors, path.At("ephemeralContainers"),
                 "ephemeral containers not allowed in pod template");
  }
}

void CheckTolerations(FieldErrors& errors, const Path& owner, const Json& object) {
  const JsonArray& tolerations = ArrayAt(object, "tolerations");
  for (size_t i = 0; i < tolerations.size(); ++i) {
    CheckToleration(errors, owner.At("tolerations", i), tolerations[i]);
  }
}

void CheckPodScheduling(FieldErrors& errors, const Path& path, const Json& spec) {
  CheckLabels(errors, path.At("nodeSelector"), ObjectAt(spec, "nodeSelector"));
  CheckAffinity(errors, path, spec);
  CheckGates(errors, path, spec);
  CheckSpread(errors, path, spec);
  CheckTolerations(errors, path, spec);
}

void CheckTemplate(FieldErrors& errors, const Path& path, const Json& pods) {
  CheckLabels(errors, path.At("labels"), ObjectAt(pods, "metadata.labels"));
  CheckAnnotations(errors, path.At("annotations"), ObjectAt(pods, "metadata.annotations"));
  const Json* spec = FindMember(pods, "spec");
  CheckPodSpec(errors, path.At("spec"), OrEmptyObject(spec), true);
}

void CheckPod(FieldErrors& errors, const Json& pod) {
  CheckMeta(errors, pod, true, CheckDns1123Subdomain);
  const Path path("spec");
  const Json* spec = FindMember(pod, "spec");
  CheckPodSpec(errors, path, OrEmptyObject(spec), false, TextAt(pod, "metadata.name"));
  if (!ArrayAt(pod, "spec.ephemeralContainers").empty()) {
    AddForbidden(errors, path.At("ephemeralContainers"), "cannot be set on create");
  }
  if (!TextAt(pod, "spec.nodeName").empty() && !ArrayAt(pod, "spec.schedulingGates").empty()) {
    AddForbidden(errors, path.At("nodeName"),
                 "cannot be set until all schedulingGates have been cleared");
  }
}

}  // namespace berth::api::rules
