#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "api/object.h"
#include "api/quantity.h"
#include "api/validate_pod.h"

namespace berth::api::rules {
namespace {

constexpr std::array<std::string_view, 3> kPullPolicies = {"Always", "IfNotPresent", "Never"};
constexpr std::array<std::string_view, 2> kMessagePolicies = {"File", "FallbackToLogsOnError"};
constexpr std::array<std::string_view, 3> kProtocols = {"SCTP", "TCP", "UDP"};
constexpr std::array<std::string_view, 2> kSchemes = {"HTTP", "HTTPS"};
constexpr std::array<std::string_view, 2> kResizePolicies = {"NotRequired", "RestartContainer"};
constexpr std::array<std::string_view, 2> kResizeResources = {"cpu", "memory"};

void CheckPorts(FieldErrors& errors, const Path& container, const JsonArray& ports) {
  std::set<std::string_view> names;
  for (size_t i = 0; i < ports.size(); ++i) {
    const Path path = container.At("ports", i);
    const std::string_view name = TextAt(ports[i], "name");
    if (!name.empty()) {
      const Messages messages = CheckPortName(name);
      AddInvalid(errors, path.At("name"), name, messages);
      if (messages.empty() && !names.insert(name).second) {
        errors.push_back(DuplicateField(path.At("name").text(), name));
      }
    }
    const int64_t inside = IntegerAt(ports[i], "containerPort");
    if (inside == 0) {
      AddRequired(errors, path.At("containerPort"));
    } else {
      CheckPort(errors, path.At("containerPort"), inside);
    }
    const int64_t outside = IntegerAt(ports[i], "hostPort");
    if (outside != 0) CheckPort(errors, path.At("hostPort"), outside);
    CheckRequiredEnum(errors, path.At("protocol"), TextAt(ports[i], "protocol"), kProtocols);
  }
}

// pkg/apis/core/pods/helpers.go, and what of it a variable may have.
void CheckFieldPath(FieldErrors& errors, const Path& reference, std::string_view path) {
  constexpr std::array<std::string_view, 9> kForVariables = {"metadata.name",
                                                             "metadata.namespace",
                                                             "metadata.uid",
                                                             "spec.nodeName",
                                                             "spec.serviceAccountName",
                                                             "status.hostIP",
                                                             "status.hostIPs",
                                                             "status.podIP",
                                                             "status.podIPs"};
  constexpr std::array<std::string_view, 5> kForFiles = {"metadata.annotations", "metadata.labels",
                                                         "spec.restartPolicy", "spec.schedulerName",
                                                         "status.phase"};
  const Path at = reference.At("fieldPath");
  const size_t bracket = path.ends_with("']") ? path.find("['") : std::string_view::npos;
  if (bracket != std::string_view::npos) {
    const std::string_view map = path.substr(0, bracket);
    if (map != "metadata.annotations" && map != "metadata.labels") {
      AddInvalid(errors, at, path,
                 {fmt::format("error converting fieldPath: field label does not support subscript: "
                              "{}",
                              path)});
      return;
    }
    std::string key(path.substr(bracket + 2, path.size() - bracket - 4));
    if (map == "metadata.annotations") {
      std::ranges::transform(key, key.begin(), [](char c) {
        return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
      });
    }
    AddInvalid(errors, reference, key, CheckQualifiedName(key));
    return;
  }
  if (path == "spec.host") path = "spec.nodeName";
  if (std::ranges::find(kForVariables, path) != kForVariables.end()) return;
  if (std::ranges::find(kForFiles, path) != kForFiles.end()) {
    errors.push_back(NotSupportedField(at.text(), path, kForVariables));
    return;
  }
  AddInvalid(errors, at, path,
             {fmt::format("error converting fieldPath: field label not supported: {}", path)});
}

void CheckEnvSource(FieldErrors& errors, const Path& path, const Json& variable) {
  const JsonObject& source = ObjectAt(variable, "valueFrom");
  if (FindPath(variable, "valueFrom") == nullptr) return;
  if (source.empty()) {
    AddInvalid(errors, path, Json(""),
               "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, "
               "`secretKeyRef` or `fileKeyRef`");
  }
  if (!TextAt(variable, "value").empty() && !source.empty()) {
    AddInvalid(errors, path, Json(""), "may not be specified when `value` is not empty");
  } else if (source.size() > 1) {
    AddInvalid(errors, path, Json(""), "may not have more than one field specified at a time");
  }
  for (const std::string_view reference : {"configMapKeyRef", "secretKeyRef"}) {
    const Json* target = FindMember(source, reference);
    if (target == nullptr) continue;
    const Path at = path.At(reference);
    const std::string_view key = TextAt(*target, "key");
    if (key.empty()) {
      AddRequired(errors, at.At("key"));
    } else {
      AddInvalid(errors, at.At("key"), key, CheckConfigMapKey(key));
    }
  }
  if (const Json* field = FindMember(source, "fieldRef")) {
    const Path at = path.At("fieldRef");
    const std::string_view field_path = TextAt(*field, "fieldPath");
    if (field_path.empty()) {
      AddRequired(errors, at.At("fieldPath"));
    } else {
      CheckFieldPath(errors, at, field_path);
    }
  }
}

void CheckEnv(FieldErrors& errors, const Path& container, const JsonArray& variables) {
  for (size_t i = 0; i < variables.size(); ++i) {
    const Path path = container.At("env", i);
    const std::string_view name = TextAt(variables[i], "name");
    if (name.empty()) {
      AddRequired(errors, path.At("name"));
    } else {
      AddInvalid(errors, path.At("name"), name, CheckEnvVarName(name));
    }
    CheckEnvSource(errors, path.At("valueFrom"), variables[i]);
  }
}

std::set<std::string_view> NamesOf(const JsonArray& list) {
  std::set<std::string_view> names;
  for (const Json& item : list) names.insert(TextAt(item, "name"));
  return names;
}

// `volumes`: the names of the pod's.
void CheckMounts(FieldErrors& errors, const Path& container, const Json& body,
                 const std::set<std::string_view>& volumes) {
  const JsonArray& mounts = ArrayAt(body, "volumeMounts");
  std::set<std::string_view> paths;
  for (size_t i = 0; i < mounts.size(); ++i) {
    const Path path = container.At("volumeMounts", i);
    const std::string_view name = TextAt(mounts[i], "name");
    const std::string_view where = TextAt(mounts[i], "mountPath");
    if (name.empty()) AddRequired(errors, path.At("name"));
    if (!volumes.contains(name)) errors.push_back(NotFoundField(path.At("name").text(), name));
    if (where.empty()) AddRequired(errors, path.At("mountPath"));
    if (!paths.insert(where).second) {
      AddInvalid(errors, path.At("mountPath"), where, {"must be unique"});
    }
  }
}

void CheckResourceName(FieldErrors& errors, const Path& path, std::string_view name) {
  if (!IsQualifiedName(name)) {
    AddInvalid(errors, path, name, CheckQualifiedName(name));
    return;
  }
  const bool plain = name.find('/') == std::string_view::npos;
  const bool standard = name == "cpu" || name == "memory" || name == "ephemeral-storage";
  if (plain && !standard && !IsHugePages(name)) {
    constexpr std::array<std::string_view, 10> kCounted = {"pods",
                                                           "resourcequotas",
                                                           "services",
                                                           "replicationcontrollers",
                                                           "secrets",
                                                           "configmaps",
                                                           "persistentvolumeclaims",
                                                           "storage",
                                                           "services.nodeports",
                                                           "services.loadbalancers"};
    if (std::ranges::find(kCounted, name) == kCounted.end()) {
      AddInvalid(errors, path, name, {"must be a standard resource type or fully qualified"});
    }
    AddInvalid(errors, path, name, {"must be a standard resource for containers"});
  } else if (!plain && !IsNativeResource(name) && !IsExtendedResource(name)) {
    AddInvalid(errors, path, name, {"doesn't follow extended resource name standard"});
  }
}

std::optional<Quantity> AmountOf(const JsonObject& list, std::string_view name) {
  const Json* amount = FindMember(list, name);
  if (amount == nullptr || !amount->is_string()) return std::nullopt;
  const Result<Quantity> quantity = ParseQuantity(amount->get_string());
  return quantity ? std::optional(*quantity) : std::nullopt;
}

void CheckHugePages(FieldErrors& errors, const Path& path, std::string_view name,
                    const Json& amount) {
  if (!IsHugePages(name) || !amount.is_string()) return;
  const Result<Quantity> size = ParseQuantity(name.substr(std::string_view("hugepages-").size()));
  const Result<Quantity> quantity = ParseQuantity(amount.get_string());
  const bool fits = size && quantity && size->sign() > 0 && size->is_whole() &&
                    quantity->whole() % size->whole() == 0;
  if (fits) return;
  AddInvalid(errors, path, amount,
             fmt::format("{} is not positive integer multiple of {}",
                         std::string_view(amount.get_string()), name));
}

struct Requirements {
  const JsonObject& limits;
  const JsonObject& requests;
  bool pod_level = false;
};

void CheckOneList(FieldErrors& errors, const Path& path, const JsonObject& list, bool pod_level) {
  for (const auto& [name, amount] : list) {
    const Path at = path.Key(name);
    if (!pod_level) {
      CheckResourceName(errors, at, name);
    } else if (name != "cpu" && name != "memory" && !IsHugePages(name)) {
      constexpr std::array<std::string_view, 3> kSupported = {"cpu", "hugepages-", "memory"};
      CheckEnum(errors, at, name, kSupported);
    }
    CheckAmount(errors, at, name, amount);
    CheckHugePages(errors, at, name, amount);
  }
}

void CheckRequestsAgainstLimits(FieldErrors& errors, const Path& path, const Requirements& all) {
  const Path requests_path = path.At("requests");
  for (const auto& [name, amount] : all.requests) {
    const bool overcommits = IsNativeResource(name) && !IsHugePages(name);
    const Json* stated = FindMember(all.limits, name);
    if (stated == nullptr) {
      if (!overcommits) {
        AddRequired(errors, path.At("limits"),
                    "Limit must be set for non overcommitable resources");
      }
      continue;
    }
    const std::optional<Quantity> request = AmountOf(all.requests, name);
    const std::optional<Quantity> limit = AmountOf(all.limits, name);
    if (!request || !limit) continue;
    const auto order = Compare(*request, *limit);
    const std::string_view limit_text = stated->get_string();
    if (order != 0 && !overcommits) {
      AddInvalid(
          errors, requests_path, amount,
          fmt::format("must be equal to {} limit of {}", std::string_view(name), limit_text));
    } else if (order > 0) {
      AddInvalid(errors, requests_path, amount,
                 fmt::format("must be less than or equal to {} limit of {}", std::string_view(name),
                             limit_text));
    }
  }
}

void CheckRequirements(FieldErrors& errors, const Path& path, const Requirements& all) {
  CheckOneList(errors, path.At("limits"), all.limits, all.pod_level);
  CheckOneList(errors, path.At("requests"), all.requests, all.pod_level);
  CheckRequestsAgainstLimits(errors, path, all);
  bool huge = false;
  bool plain = false;
  for (const JsonObject* list : {&all.limits, &all.requests}) {
    for (const auto& [name, amount] : *list) {
      huge = huge || IsHugePages(name);
      plain = plain || name == "cpu" || name == "memory";
    }
  }
  if (huge && !plain) AddForbidden(errors, path, "HugePages require cpu or memory");
}

// Exactly one of the ways to act must stand.
void CheckHandler(FieldErrors& errors, const Path& path, const Json& handler) {
  int count = 0;
  if (const Json* exec = FindMember(handler, "exec")) {
    ++count;
    const Path at = path.At("exec");
    if (ArrayAt(*exec, "command").empty()) AddRequired(errors, at.At("command"));
  }
  if (const Json* http = FindMember(handler, "httpGet")) {
    ++count;
    const Path at = path.At("httpGet");
    if (TextAt(*http, "path").empty()) AddRequired(errors, at.At("path"));
    CheckPortOrName(errors, at.At("port"), FindMember(*http, "port"));
    CheckEnum(errors, at.At("scheme"), TextAt(*http, "scheme"), kSchemes);
  }
  if (const Json* tcp = FindMember(handler, "tcpSocket")) {
    ++count;
    const Path at = path.At("tcpSocket");
    CheckPortOrName(errors, at.At("port"), FindMember(*tcp, "port"));
  }
  if (const Json* grpc = FindMember(handler, "grpc")) {
    ++count;
    const Path at = path.At("grpc");
    CheckPort(errors, at.At("port"), IntegerAt(*grpc, "port"));
  }
  if (FindMember(handler, "sleep") != nullptr) ++count;
  if (count == 0) {
    AddRequired(errors, path, "must specify a handler type");
  } else if (count > 1) {
    AddForbidden(errors, path, "may not specify more than 1 handler type");
  }
}

void CheckProbe(FieldErrors& errors, const Path& path, const Json* probe, bool must_succeed_once) {
  if (probe == nullptr) return;
  CheckHandler(errors, path, *probe);
  constexpr std::array<std::string_view, 5> kCounts = {"initialDelaySeconds", "timeoutSeconds",
                                                       "periodSeconds", "successThreshold",
                                                       "failureThreshold"};
  CheckNonnegative(errors, path, *probe, kCounts);
  const Json* grace = FindMember(*probe, "terminationGracePeriodSeconds");
  if (grace != nullptr && IntegerAt(*probe, "terminationGracePeriodSeconds") <= 0) {
    AddInvalid(errors, path.At("terminationGracePeriodSeconds"), *grace, "must be greater than 0");
  }
  const int64_t successes = IntegerAt(*probe, "successThreshold");
  if (must_succeed_once && successes != 1) {
    errors.push_back(InvalidField(path.At("successThreshold").text(), successes, "must be 1"));
  }
}

void CheckHooks(FieldErrors& errors, const Path& path, const Json& container) {
  if (const Json* lifecycle = FindMember(container, "lifecycle")) {
    const Path at = path.At("lifecycle");
    for (const std::string_view hook : {"postStart", "preStop"}) {
      if (const Json* handler = FindMember(*lifecycle, hook)) {
        CheckHandler(errors, at.At(hook), *handler);
      }
    }
  }
  CheckProbe(errors, path.At("livenessProbe"), FindMember(container, "livenessProbe"), true);
  CheckProbe(errors, path.At("readinessProbe"), FindMember(container, "readinessProbe"), false);
  CheckProbe(errors, path.At("startupProbe"), FindMember(container, "startupProbe"), true);
}

void CheckSecurity(FieldErrors& errors, const Path& container, const Json& body) {
  const Json* security = FindMember(body, "securityContext");
  if (security == nullptr) return;
  const Path path = container.At("securityContext");
  for (const std::string_view id : {"runAsUser", "runAsGroup"}) {
    const int64_t value = IntegerAt(*security, id);
    if (value < 0 || value > INT32_MAX) {
      errors.push_back(InvalidField(path.At(id).text(), value, RangeMessage(0, INT32_MAX)));
    }
  }
  const Json* escalation = FindMember(*security, "allowPrivilegeEscalation");
  const bool denied = escalation != nullptr && *escalation == false;
  if (denied && FlagAt(*security, "privileged")) {
    AddInvalid(errors, path, *security,
               "cannot set `allowPrivilegeEscalation` to false and `privileged` to true");
  }
}

void CheckResizePolicies(FieldErrors& errors, const Path& container, const Json& body) {
  const JsonArray& policies = ArrayAt(body, "resizePolicy");
  for (size_t i = 0; i < policies.size(); ++i) {
    const Path path = container.At("resizePolicy", i);
    CheckRequiredEnum(errors, path.At("resourceName"), TextAt(policies[i], "resourceName"),
                      kResizeResources);
    CheckRequiredEnum(errors, path.At("restartPolicy"), TextAt(policies[i], "restartPolicy"),
                      kResizePolicies);
  }
}

void CheckContainer(FieldErrors& errors, const Path& path, const Json& body,
                    const std::set<std::string_view>& volumes) {
  const std::string_view name = TextAt(body, "name");
  const std::string_view image = TextAt(body, "image");
  if (name.empty()) {
    AddRequired(errors, path.At("name"));
  } else {
    AddInvalid(errors, path.At("name"), name, CheckDns1123Label(name));
  }
  if (image.empty()) AddRequired(errors, path.At("image"));
  CheckRequiredEnum(errors, path.At("terminationMessagePolicy"),
                    TextAt(body, "terminationMessagePolicy"), kMessagePolicies);
  CheckPorts(errors, path, ArrayAt(body, "ports"));
  CheckEnv(errors, path, ArrayAt(body, "env"));
  CheckMounts(errors, path, body, volumes);
  CheckRequiredEnum(errors, path.At("imagePullPolicy"), TextAt(body, "imagePullPolicy"),
                    kPullPolicies);
  CheckRequirements(errors, path.At("resources"),
                    {ObjectAt(body, "resources.limits"), ObjectAt(body, "resources.requests")});
  CheckResizePolicies(errors, path, body);
  CheckSecurity(errors, path, body);
}

void CheckHostPorts(FieldErrors& errors, const Path& spec_path, std::string_view list,
                    const JsonArray& containers) {
  std::set<std::string> seen;
  for (size_t i = 0; i < containers.size(); ++i) {
    const Path path = spec_path.At(list, i);
    const JsonArray& ports = ArrayAt(containers[i], "ports");
    for (size_t k = 0; k < ports.size(); ++k) {
      const int64_t port = IntegerAt(ports[k], "hostPort");
      if (port == 0) continue;
      std::string key =
          fmt::format("{}/{}/{}", TextAt(ports[k], "protocol"), TextAt(ports[k], "hostIP"), port);
      const Path at = path.At("ports", k);
      if (!seen.insert(key).second) errors.push_back(DuplicateField(at.At("hostPort").text(), key));
    }
  }
}

void CheckImageSpace(FieldErrors& errors, const Path& spec_path, std::string_view list,
                     const JsonArray& containers) {
  for (size_t i = 0; i < containers.size(); ++i) {
    const std::string_view image = TextAt(containers[i], "image");
    constexpr std::string_view kBlanks = " \t\r\n\v\f";
    if (image.empty()) continue;
    if (kBlanks.find(image.front()) == std::string_view::npos &&
        kBlanks.find(image.back()) == std::string_view::npos) {
      continue;
    }
    const Path path = spec_path.At(list, i);
    AddInvalid(errors, path.At("image"), image, {"must not have leading or trailing whitespace"});
  }
}

void CheckInitContainer(FieldErrors& errors, const Path& path, const Json& body) {
  const Json* policy = FindMember(body, "restartPolicy");
  const bool sidecar = TextAt(body, "restartPolicy") == "Always";
  if (policy != nullptr && !sidecar && ArrayAt(body, "restartPolicyRules").empty()) {
    constexpr std::array<std::string_view, 3> kPolicies = {"Always", "Never", "OnFailure"};
    CheckEnum(errors, path.At("restartPolicy"), TextAt(body, "restartPolicy"), kPolicies);
  }
  if (sidecar) {
    CheckHooks(errors, path, body);
    return;
  }
  for (const std::string_view member :
       {"lifecycle", "livenessProbe", "readinessProbe", "startupProbe"}) {
    if (FindMember(body, member) == nullptr) continue;
    AddForbidden(errors, path.At(member),
                 "may not be set for init containers without restartPolicy=Always");
  }
}

// What a container that is for looking into a pod, not of its work, may not have.
void CheckNoDebuggersUse(FieldErrors& errors, const Path& path, const Json& body) {
  constexpr std::string_view kWhy = "cannot be set for an Ephemeral Container";
  for (const std::string_view member :
       {"ports", "resources", "resizePolicy", "restartPolicy", "restartPolicyRules",
        "livenessProbe", "readinessProbe", "startupProbe", "lifecycle"}) {
    const Json* value = FindMember(body, member);
    if (value == nullptr) continue;
    // Every container has resources, if none.
    if (member == "resources" && ObjectAt(body, member).empty()) continue;
    AddForbidden(errors, path.At(member), std::string(kWhy));
  }
  const JsonArray& mounts = ArrayAt(body, "volumeMounts");
  for (size_t i = 0; i < mounts.size(); ++i) {
    const Path at = path.At("volumeMounts", i);
    for (const std::string_view member : {"subPath", "subPathExpr"}) {
      if (!TextAt(mounts[i], member).empty()) {
        AddForbidden(errors, at.At(member), std::string(kWhy));
      }
    }
  }
}

}  // namespace

void CheckContainers(FieldErrors& errors, const Path& spec_path, const PodNames& pod) {
  const JsonArray& containers = ArrayAt(pod.spec, "containers");
  const JsonArray& starters = ArrayAt(pod.spec, "initContainers");
  if (containers.empty()) AddRequired(errors, spec_path.At("containers"));
  const std::set<std::string_view> volumes = NamesOf(ArrayAt(pod.spec, "volumes"));
  std::set<std::string_view> names;
  for (size_t i = 0; i < containers.size(); ++i) {
    const Path path = spec_path.At("containers", i);
    CheckContainer(errors, path, containers[i], volumes);
    const std::string_view name = TextAt(containers[i], "name");
    if (!names.insert(name).second) errors.push_back(DuplicateField(path.At("name").text(), name));
    CheckHooks(errors, path, containers[i]);
  }
  CheckHostPorts(errors, spec_path, "containers", containers);
  for (size_t i = 0; i < starters.size(); ++i) {
    const Path path = spec_path.At("initContainers", i);
    CheckContainer(errors, path, starters[i], volumes);
    const std::string_view name = TextAt(starters[i], "name");
    if (!names.insert(name).second && !name.empty()) {
      errors.push_back(DuplicateField(path.At("name").text(), name));
    }
    CheckInitContainer(errors, path, starters[i]);
  }
  if (pod.is_template) return;
  CheckImageSpace(errors, spec_path, "containers", containers);
  CheckImageSpace(errors, spec_path, "initContainers", starters);
}

void CheckEphemeralContainers(FieldErrors& errors, const Path& spec_path, const Json& spec) {
  const JsonArray& debuggers = ArrayAt(spec, "ephemeralContainers");
  if (debuggers.empty()) return;
  const std::set<std::string_view> volumes = NamesOf(ArrayAt(spec, "volumes"));
  std::set<std::string_view> others = NamesOf(ArrayAt(spec, "containers"));
  others.merge(NamesOf(ArrayAt(spec, "initContainers")));
  std::set<std::string_view> names = others;
  for (size_t i = 0; i < debuggers.size(); ++i) {
    const Path path = spec_path.At("ephemeralContainers", i);
    const Json& body = debuggers[i];
    CheckContainer(errors, path, body, volumes);
    const std::string_view name = TextAt(body, "name");
    if (!names.insert(name).second) errors.push_back(DuplicateField(path.At("name").text(), name));
    const std::string_view target = TextAt(body, "targetContainerName");
    if (!target.empty() && !others.contains(target)) {
      errors.push_back(NotFoundField(path.At("targetContainerName").text(), target));
    }
    CheckNoDebuggersUse(errors, path, body);
  }
  CheckImageSpace(errors, spec_path, "ephemeralContainers", debuggers);
}

void CheckPodResources(FieldErrors& errors, const Path& spec_path, const Json& spec) {
  if (FindMember(spec, "resources") == nullptr) return;
  const Path path = spec_path.At("resources");
  const Requirements pod = {ObjectAt(spec, "resources.limits"),
                            ObjectAt(spec, "resources.requests"), true};
  CheckRequirements(errors, path, pod);
  const Path requests_path = path.At("requests");
  for (const auto& [name, amount] : pod.requests) {
    std::optional<Quantity> sum;
    const auto add = [&](const Json& container) {
      const auto part = AmountOf(ObjectAt(container, "resources.requests"), name);
      if (part) sum = sum ? Add(*sum, *part).value_or(*sum) : *part;
    };
    for (const Json& container : ArrayAt(spec, "containers")) add(container);
    for (const Json& container : ArrayAt(spec, "initContainers")) {
      if (TextAt(container, "restartPolicy") == "Always") add(container);
    }
    const std::optional<Quantity> stated = AmountOf(pod.requests, name);
    if (!sum || !stated || Compare(*sum, *stated) <= 0) continue;
    AddInvalid(errors, requests_path.Key(name), amount,
               fmt::format("must be greater than or equal to aggregate container requests of {}",
                           ToString(*sum)));
  }
}

}  // namespace berth::api::rules
