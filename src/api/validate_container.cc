#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "api/object.h"
#include "api/quantity.h"
#include "api/validate_claims.h"
#include "api/validate_env.h"
#include "api/validate_pod.h"
#include "api/validate_security.h"

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

std::set<std::string_view> NamesOf(const JsonArray& list) {
  std::set<std::string_view> names;
  for (const Json& item : list) names.insert(TextAt(item, "name"));
  return names;
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

constexpr const char* kHeaderMessage =
    "a valid HTTP header must consist of alphanumeric characters or '-' (e.g. 'X-Header-Name', "
    "regex used for validation is '[-A-Za-z0-9]+')";
bool IsHeaderName(std::string_view name) {
  return !name.empty() && std::ranges::all_of(name, [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '-';
  });
}

// Exactly one of the ways to act must stand.
void CheckHandler(FieldErrors& errors, const Path& path, const Json& handler,
                  std::optional<int64_t> grace_seconds) {
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
    for (const Json& header : ArrayAt(*http, "httpHeaders")) {
      const std::string_view name = TextAt(header, "name");
      if (!IsHeaderName(name)) AddInvalid(errors, at.At("httpHeaders"), name, {kHeaderMessage});
    }
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
  if (const Json* sleep = FindMember(handler, "sleep")) {
    ++count;
    const int64_t seconds = IntegerAt(*sleep, "seconds");
    if (grace_seconds && (seconds < 0 || seconds > *grace_seconds)) {
      errors.push_back(InvalidField(
          path.At("sleep").text(), seconds,
          fmt::format("must be non-negative and less than terminationGracePeriodSeconds ({})",
                      *grace_seconds)));
    }
  }
  if (count == 0) {
    AddRequired(errors, path, "must specify a handler type");
  } else if (count > 1) {
    AddForbidden(errors, path, "may not specify more than 1 handler type");
  }
}

enum class ProbeOf : uint8_t { kLife, kReadiness };

void CheckProbe(FieldErrors& errors, const Path& path, const Json* probe, ProbeOf what,
                std::optional<int64_t> grace_seconds) {
  if (probe == nullptr) return;
  CheckHandler(errors, path, *probe, grace_seconds);
  constexpr std::array<std::string_view, 5> kCounts = {"initialDelaySeconds", "timeoutSeconds",
                                                       "periodSeconds", "successThreshold",
                                                       "failureThreshold"};
  CheckNonnegative(errors, path, *probe, kCounts);
  const Json* grace = FindMember(*probe, "terminationGracePeriodSeconds");
  if (grace != nullptr && IntegerAt(*probe, "terminationGracePeriodSeconds") <= 0) {
    AddInvalid(errors, path.At("terminationGracePeriodSeconds"), *grace, "must be greater than 0");
  }
  const int64_t successes = IntegerAt(*probe, "successThreshold");
  if (what == ProbeOf::kLife && successes != 1) {
    errors.push_back(InvalidField(path.At("successThreshold").text(), successes, "must be 1"));
  }
  if (what == ProbeOf::kReadiness && grace != nullptr) {
    AddInvalid(errors, path.At("terminationGracePeriodSeconds"), *grace,
               "must not be set for readinessProbes");
  }
}

void CheckHooks(FieldErrors& errors, const Path& path, const Json& container,
                std::optional<int64_t> grace_seconds) {
  if (const Json* lifecycle = FindMember(container, "lifecycle")) {
    const Path at = path.At("lifecycle");
    for (const std::string_view hook : {"postStart", "preStop"}) {
      if (const Json* handler = FindMember(*lifecycle, hook)) {
        CheckHandler(errors, at.At(hook), *handler, grace_seconds);
      }
    }
  }
  for (const std::string_view probe : {"livenessProbe", "readinessProbe", "startupProbe"}) {
    CheckProbe(errors, path.At(probe), FindMember(container, probe),
               probe == "readinessProbe" ? ProbeOf::kReadiness : ProbeOf::kLife, grace_seconds);
  }
}

void CheckResizePolicies(FieldErrors& errors, const Path& container, const Json& body,
                         std::string_view pod_policy) {
  const JsonArray& policies = ArrayAt(body, "resizePolicy");
  // Upstream names the list where an item is wrong.
  const Path list = container.At("resizePolicy");
  std::set<std::string_view> resources;
  for (size_t i = 0; i < policies.size(); ++i) {
    const std::string_view resource = TextAt(policies[i], "resourceName");
    const std::string_view policy = TextAt(policies[i], "restartPolicy");
    if (!resources.insert(resource).second) {
      errors.push_back(DuplicateField(container.At("resizePolicy", i).text(), resource));
    }
    CheckRequiredEnum(errors, list, resource, kResizeResources);
    CheckRequiredEnum(errors, list, policy, kResizePolicies);
    if (pod_policy == "Never" && policy != "NotRequired") {
      AddInvalid(errors, list, policy,
                 {"must be 'NotRequired' when pod `restartPolicy` is 'Never'"});
    }
  }
}

// Of each container of a pod: what the pod says.
struct PodParts {
  const Json& spec;
  const PodVolumes& volumes;
  std::string_view restart_policy;
  bool host_users = true;
  std::optional<int64_t> grace_seconds;
};

PodParts PartsOf(const Json& spec, const PodVolumes& volumes) {
  PodParts parts{.spec = spec,
                 .volumes = volumes,
                 .restart_policy = TextAt(spec, "restartPolicy"),
                 .host_users = HasHostUsers(spec),
                 .grace_seconds = std::nullopt};
  if (FindMember(spec, "terminationGracePeriodSeconds") != nullptr) {
    parts.grace_seconds = IntegerAt(spec, "terminationGracePeriodSeconds");
  }
  return parts;
}

// A container's own policy, and the rules that go with one.
void CheckRestarts(FieldErrors& errors, const Path& path, const Json& body) {
  constexpr std::array<std::string_view, 3> kPolicies = {"Always", "Never", "OnFailure"};
  constexpr std::array<std::string_view, 2> kActions = {"Restart", "RestartAllContainers"};
  constexpr std::array<std::string_view, 2> kOperators = {"In", "NotIn"};
  constexpr int64_t kRulesMax = 20;
  constexpr int64_t kCodesMax = 255;
  const JsonArray& rules = ArrayAt(body, "restartPolicyRules");
  const Json* policy = FindMember(body, "restartPolicy");
  if (policy != nullptr) {
    CheckEnum(errors, path.At("restartPolicy"), TextOf(*policy), kPolicies);
  } else if (!rules.empty()) {
    AddRequired(errors, path.At("restartPolicy"),
                "must specify restartPolicy when restart rules are used");
  }
  if (std::ssize(rules) > kRulesMax) {
    errors.push_back(
        TooManyField(path.At("restartPolicyRules").text(), std::ssize(rules), kRulesMax));
  }
  for (size_t i = 0; i < rules.size(); ++i) {
    const Path rule = path.At("restartPolicyRules", i);
    CheckEnum(errors, rule.At("action"), TextAt(rules[i], "action"), kActions);
    const Json* codes = FindMember(rules[i], "exitCodes");
    const Path at = rule.At("exitCodes");
    if (codes == nullptr) {
      AddRequired(errors, at, "must be specified");
      continue;
    }
    CheckEnum(errors, at.At("operator"), TextAt(*codes, "operator"), kOperators);
    const int64_t count = std::ssize(ArrayAt(*codes, "values"));
    if (count > kCodesMax) {
      errors.push_back(TooManyField(at.At("values").text(), count, kCodesMax));
    }
  }
}

void CheckContainer(FieldErrors& errors, const Path& path, const Json& body, const PodParts& pod) {
  const std::string_view name = TextAt(body, "name");
  const std::string_view image = TextAt(body, "image");
  CheckRequired(errors, path.At("name"), name, CheckDns1123Label(name));
  if (image.empty()) AddRequired(errors, path.At("image"));
  CheckRequiredEnum(errors, path.At("terminationMessagePolicy"),
                    TextAt(body, "terminationMessagePolicy"), kMessagePolicies);
  CheckPorts(errors, path, ArrayAt(body, "ports"));
  CheckVariables(errors, path, body);
  CheckMounts(errors, path, body, pod.volumes);
  CheckRequiredEnum(errors, path.At("imagePullPolicy"), TextAt(body, "imagePullPolicy"),
                    kPullPolicies);
  const Path resources = path.At("resources");
  CheckRequirements(errors, resources,
                    {ObjectAt(body, "resources.limits"), ObjectAt(body, "resources.requests")});
  CheckUsedClaims(errors, resources, OrEmptyObject(FindMember(body, "resources")), pod.spec);
  CheckResizePolicies(errors, path, body, pod.restart_policy);
  CheckContainerSecurity(errors, path, body, pod.host_users);
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

void CheckImageSpace(FieldErrors& errors, const Path& container, const Json& body) {
  constexpr std::string_view kBlanks = " \t\r\n\v\f";
  const std::string_view image = TextAt(body, "image");
  if (image.empty()) return;
  if (!kBlanks.contains(image.front()) && !kBlanks.contains(image.back())) return;
  AddInvalid(errors, container.At("image"), image,
             {"must not have leading or trailing whitespace"});
}

void CheckInitContainer(FieldErrors& errors, const Path& path, const Json& body,
                        const PodParts& pod) {
  if (TextAt(body, "restartPolicy") == "Always") {
    CheckHooks(errors, path, body, pod.grace_seconds);
    return;
  }
  for (const std::string_view member :
       {"lifecycle", "livenessProbe", "readinessProbe", "startupProbe"}) {
    if (FindMember(body, member) == nullptr) continue;
    AddForbidden(errors, path.At(member),
                 "may not be set for init containers without restartPolicy=Always");
  }
  const JsonArray& policies = ArrayAt(body, "resizePolicy");
  for (size_t i = 0; i < policies.size(); ++i) {
    if (TextAt(policies[i], "restartPolicy") != "RestartContainer") continue;
    const Path at = path.At("resizePolicy", i);
    AddInvalid(errors, at.At("restartPolicy"), Json("RestartContainer"),
               {"must not be set to 'RestartContainer' for non-sidecar initContainers"});
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

void CheckContainers(FieldErrors& errors, const Path& spec_path, const Json& spec,
                     const PodVolumes& volumes) {
  const JsonArray& containers = ArrayAt(spec, "containers");
  const JsonArray& starters = ArrayAt(spec, "initContainers");
  const PodParts pod = PartsOf(spec, volumes);
  if (containers.empty()) AddRequired(errors, spec_path.At("containers"));
  std::set<std::string_view> names;
  for (size_t i = 0; i < containers.size(); ++i) {
    const Path path = spec_path.At("containers", i);
    CheckContainer(errors, path, containers[i], pod);
    CheckRestarts(errors, path, containers[i]);
    const std::string_view name = TextAt(containers[i], "name");
    if (!names.insert(name).second) errors.push_back(DuplicateField(path.At("name").text(), name));
    CheckHooks(errors, path, containers[i], pod.grace_seconds);
  }
  CheckHostPorts(errors, spec_path, "containers", containers);
  for (size_t i = 0; i < starters.size(); ++i) {
    const Path path = spec_path.At("initContainers", i);
    CheckContainer(errors, path, starters[i], pod);
    CheckRestarts(errors, path, starters[i]);
    const std::string_view name = TextAt(starters[i], "name");
    if (!names.insert(name).second && !name.empty()) {
      errors.push_back(DuplicateField(path.At("name").text(), name));
    }
    CheckInitContainer(errors, path, starters[i], pod);
  }
}

void CheckImages(FieldErrors& errors, const Path& spec_path, const Json& spec) {
  for (const std::string_view list : {"containers", "initContainers"}) {
    const JsonArray& containers = ArrayAt(spec, list);
    for (size_t i = 0; i < containers.size(); ++i) {
      CheckImageSpace(errors, spec_path.At(list, i), containers[i]);
    }
  }
}

void CheckEphemeralContainers(FieldErrors& errors, const Path& spec_path, const Json& spec,
                              const PodVolumes& volumes) {
  const JsonArray& debuggers = ArrayAt(spec, "ephemeralContainers");
  if (debuggers.empty()) return;
  const PodParts pod = PartsOf(spec, volumes);
  std::set<std::string_view> others = NamesOf(ArrayAt(spec, "containers"));
  others.merge(NamesOf(ArrayAt(spec, "initContainers")));
  std::set<std::string_view> names = others;
  for (size_t i = 0; i < debuggers.size(); ++i) {
    const Path path = spec_path.At("ephemeralContainers", i);
    const Json& body = debuggers[i];
    CheckContainer(errors, path, body, pod);
    CheckImageSpace(errors, path, body);
    const std::string_view name = TextAt(body, "name");
    if (!names.insert(name).second) errors.push_back(DuplicateField(path.At("name").text(), name));
    const std::string_view target = TextAt(body, "targetContainerName");
    if (!target.empty() && !others.contains(target)) {
      errors.push_back(NotFoundField(path.At("targetContainerName").text(), target));
    }
    CheckNoDebuggersUse(errors, path, body);
  }
}

void CheckOverhead(FieldErrors& errors, const Path& path, const JsonObject& overhead) {
  // Upstream takes it for limits.
  CheckOneList(errors, path.At("limits"), overhead, false);
}

void CheckPodResources(FieldErrors& errors, const Path& spec_path, const Json& spec) {
  if (FindMember(spec, "resources") == nullptr) return;
  const Path path = spec_path.At("resources");
  if (TextAt(spec, "os.name") == "windows") {
    AddForbidden(errors, path, "may not be set for a windows pod");
    return;
  }
  if (!ArrayAt(spec, "resources.claims").empty()) {
    AddForbidden(errors, path.At("claims"), "claims may not be set for Resources at pod-level");
  }
  const Requirements pod = {ObjectAt(spec, "resources.limits"),
                            ObjectAt(spec, "resources.requests"), true};
  CheckRequirements(errors, path, pod);
  CheckUsedClaims(errors, path, *FindMember(spec, "resources"), spec);
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
