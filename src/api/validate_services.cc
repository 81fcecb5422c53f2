#include "api/validate_services.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/json/serialize.hpp>
#include <set>
#include <string>
#include <utility>

#include "api/object.h"
#include "api/validate_network.h"

namespace berth::api::rules {
namespace {

constexpr std::array<std::string_view, 4> kTypes = {"ClusterIP", "ExternalName", "LoadBalancer",
                                                    "NodePort"};
constexpr std::array<std::string_view, 3> kProtocols = {"SCTP", "TCP", "UDP"};
constexpr std::array<std::string_view, 2> kAffinities = {"ClientIP", "None"};
constexpr std::array<std::string_view, 2> kTrafficPolicies = {"Cluster", "Local"};
constexpr int64_t kAffinitySecondsMax = 86'400;

std::string_view Trimmed(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\n\v\f";
  while (!text.empty() && kBlanks.contains(text.front())) text.remove_prefix(1);
  while (!text.empty() && kBlanks.contains(text.back())) text.remove_suffix(1);
  return text;
}

bool IsIp(std::string_view text) { return FamilyOf(text) != IpFamily::kNone; }

class Checker {
 public:
  Checker(FieldErrors& errors, const Json& service)
      : errors_(errors), service_(service), type_(TextAt(service, "spec.type")) {}

  // In upstream's order. `old` is null for a creation.
  void Run(const Json* old) {
    Ports();
    CheckLabels(errors_, spec_.At("selector"), ObjectAt(service_, "spec.selector"));
    Affinity();
    Addresses();
    ExternalIps(old);
    CheckEnum(errors_, spec_.At("type"), type_, kTypes);
    PortNumbers();
    SourceRanges(old);
    LoadBalancer();
    Traffic();
  }

 private:
  void Refuse(const Path& path, std::string_view value, std::string why) {
    AddInvalid(errors_, path, value, Messages{std::move(why)});
  }

  [[nodiscard]] bool headless() const { return TextAt(service_, "spec.clusterIP") == "None"; }

  void Ports() {
    const JsonArray& ports = ArrayAt(service_, "spec.ports");
    if (ports.empty() && !headless() && type_ != "ExternalName")
      AddRequired(errors_, spec_.At("ports"));
    if (headless() && (type_ == "NodePort" || type_ == "LoadBalancer")) {
      AddInvalid(errors_, spec_.At("clusterIPs", 0), "None",
                 fmt::format("may not be set to 'None' for {} services", type_));
    }
    if (type_ == "ExternalName") ExternalName();
    std::set<std::string_view> names;
    for (size_t i = 0; i < ports.size(); ++i) {
      const Json& port = ports[i];
      const Path path = spec_.At("ports", i);
      const std::string_view name = TextAt(port, "name");
      if (name.empty() && ports.size() > 1) AddRequired(errors_, path.At("name"));
      if (!name.empty()) {
        AddInvalid(errors_, path.At("name"), name, CheckDns1123Label(name));
        if (!names.insert(name).second)
          errors_.push_back(DuplicateField(path.At("name").text(), name));
      }
      CheckPort(errors_, path.At("port"), IntegerAt(port, "port"));
      CheckRequiredEnum(errors_, path.At("protocol"), TextAt(port, "protocol"), kProtocols);
      CheckPortOrName(errors_, path.At("targetPort"), FindMember(port, "targetPort"));
      if (FindMember(port, "appProtocol") != nullptr) {
        const std::string_view protocol = TextAt(port, "appProtocol");
        AddInvalid(errors_, path.At("appProtocol"), protocol, CheckQualifiedName(protocol));
      }
    }
  }

  // Ports that stand for the same: of nodes, and of the Service.
  void PortNumbers() {
    const JsonArray& ports = ArrayAt(service_, "spec.ports");
    std::set<std::pair<int64_t, std::string_view>> outside;
    std::set<std::pair<int64_t, std::string_view>> inside;
    for (size_t i = 0; i < ports.size() && type_ == "ClusterIP"; ++i) {
      if (IntegerAt(ports[i], "nodePort") == 0) continue;
      const Path path = spec_.At("ports", i);
      AddForbidden(errors_, path.At("nodePort"), "may not be used when `type` is 'ClusterIP'");
    }
    for (size_t i = 0; i < ports.size(); ++i) {
      const int64_t number = IntegerAt(ports[i], "nodePort");
      if (number == 0 || outside.emplace(number, TextAt(ports[i], "protocol")).second) continue;
      const Path path = spec_.At("ports", i);
      errors_.push_back(DuplicateJsonField(path.At("nodePort").text(), Json(number)));
    }
    for (size_t i = 0; i < ports.size(); ++i) {
      const int64_t number = IntegerAt(ports[i], "port");
      const std::string_view protocol = TextAt(ports[i], "protocol");
      if (inside.emplace(number, protocol).second) continue;
      const Json shown =
          JsonObject{{"Name", ""},     {"Protocol", protocol}, {"AppProtocol", nullptr},
                     {"Port", number}, {"TargetPort", 0},      {"NodePort", 0}};
      errors_.push_back(DuplicateJsonField(spec_.At("ports", i).text(), shown));
    }
  }

  void Addresses() {
    const JsonArray& list = ArrayAt(service_, "spec.clusterIPs");
    const std::string_view one = TextAt(service_, "spec.clusterIP");
    const Path path = spec_.At("clusterIPs");
    if (type_ == "ExternalName") {
      if (!one.empty() || !list.empty())
        AddForbidden(errors_, path, "may not be set for ExternalName services");
      return;
    }
    const std::string_view first =
        !list.empty() && list[0].is_string() ? std::string_view(list[0].get_string()) : one;
    Families();
    const Path item = spec_.At("clusterIPs", 0);
    const bool outside = type_ == "NodePort" || type_ == "LoadBalancer";
    if (!(headless() && outside) && !first.empty() && first != "None" && !IsIp(first)) {
      Refuse(item, first, "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)");
    }
    const bool open = headless() && ObjectAt(service_, "spec.selector").empty();
    if (TextAt(service_, "spec.ipFamilyPolicy") == "RequireDualStack" && !open) {
      Refuse(spec_.At("ipFamilyPolicy"), "RequireDualStack",
             "this cluster is not configured for dual-stack services");
    }
    const JsonArray& families = ArrayAt(service_, "spec.ipFamilies");
    for (size_t i = 0; i < families.size() && !open; ++i) {
      if (families[i] == "IPv6") {
        Refuse(spec_.At("ipFamilies", i), "IPv6", "not configured on this cluster");
      }
    }
  }

  void Families() {
    constexpr std::array<std::string_view, 2> kFamilies = {"IPv4", "IPv6"};
    constexpr std::array<std::string_view, 3> kPolicies = {"PreferDualStack", "RequireDualStack",
                                                           "SingleStack"};
    const JsonArray& families = ArrayAt(service_, "spec.ipFamilies");
    for (size_t i = 0; i < families.size(); ++i) {
      const std::string_view family = TextOf(families[i]);
      CheckEnum(errors_, spec_.At("ipFamilies", i), family, kFamilies);
      if (std::ranges::count(families.begin(), families.begin() + i, families[i]) > 0)
        errors_.push_back(DuplicateField(spec_.At("ipFamilies", i).text(), family));
    }
    const std::string_view policy = TextAt(service_, "spec.ipFamilyPolicy");
    if (!policy.empty()) CheckEnum(errors_, spec_.At("ipFamilyPolicy"), policy, kPolicies);
  }

  void ExternalName() {
    for (const std::string_view member : {"ipFamilies", "ipFamilyPolicy"}) {
      if (FindMember(OrEmptyObject(FindMember(service_, "spec")), member) != nullptr)
        AddForbidden(errors_, spec_.At(member), "may not be set for ExternalName services");
    }
    const std::string_view name = TextAt(service_, "spec.externalName");
    const Path path = spec_.At("externalName");
    if (name.empty()) return AddRequired(errors_, path);
    const std::string_view bare = name.ends_with('.') ? name.substr(0, name.size() - 1) : name;
    AddInvalid(errors_, path, name, CheckDns1123Subdomain(bare));
  }

  void Affinity() {
    const std::string_view affinity = TextAt(service_, "spec.sessionAffinity");
    CheckRequiredEnum(errors_, spec_.At("sessionAffinity"), affinity, kAffinities);
    const Json* given = FindPath(service_, "spec.sessionAffinityConfig");
    const Path config = spec_.At("sessionAffinityConfig");
    if (affinity == "None" && given != nullptr) {
      AddForbidden(errors_, config, "must not be set when session affinity is None");
    }
    if (affinity != "ClientIP") return;
    const int64_t seconds =
        IntegerAt(service_, "spec.sessionAffinityConfig.clientIP.timeoutSeconds");
    if (seconds > 0 && seconds <= kAffinitySecondsMax) return;
    const Path client = config.At("clientIP");
    AddInvalid(errors_, client.At("timeoutSeconds"), Json(seconds),
               fmt::format("must be greater than 0 and less than {}", kAffinitySecondsMax));
  }

  void Traffic() {
    const std::string_view policy = TextAt(service_, "spec.externalTrafficPolicy");
    const Path path = spec_.At("externalTrafficPolicy");
    const bool outside = type_ == "NodePort" || type_ == "LoadBalancer" ||
                         !ArrayAt(service_, "spec.externalIPs").empty();
    if (!policy.empty() && !outside) {
      Refuse(path, policy, "may only be set for externally-accessible services");
    } else if (!policy.empty()) {
      CheckEnum(errors_, path, policy, kTrafficPolicies);
    }
    const int64_t health = IntegerAt(service_, "spec.healthCheckNodePort");
    if (type_ == "LoadBalancer" && policy == "Local") {
      if (health != 0) CheckPort(errors_, spec_.At("healthCheckNodePort"), health);
    } else if (health != 0) {
      AddInvalid(errors_, spec_.At("healthCheckNodePort"), Json(health),
                 "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is "
                 "'Local'");
    }
    const std::string_view inside = TextAt(service_, "spec.internalTrafficPolicy");
    if (!inside.empty())
      CheckEnum(errors_, spec_.At("internalTrafficPolicy"), inside, kTrafficPolicies);
    constexpr std::array<std::string_view, 3> kDistributions = {"PreferClose", "PreferSameZone",
                                                                "PreferSameNode"};
    if (FindPath(service_, "spec.trafficDistribution") != nullptr) {
      CheckEnum(errors_, spec_.At("trafficDistribution"),
                TextAt(service_, "spec.trafficDistribution"), kDistributions);
    }
  }

  // What an older server let in stays.
  static bool WasThere(const Json* old, JsonPath list, std::string_view text) {
    if (old == nullptr) return false;
    return std::ranges::any_of(ArrayAt(*old, list),
                               [&](const Json& item) { return TextOf(item) == text; });
  }

  void ExternalIps(const Json* old) {
    const JsonArray& ips = ArrayAt(service_, "spec.externalIPs");
    for (size_t i = 0; i < ips.size(); ++i) {
      const std::string_view ip = TextOf(ips[i]);
      const Path path = spec_.At("externalIPs", i);
      const size_t before = errors_.size();
      if (!WasThere(old, "spec.externalIPs", ip)) CheckIp(errors_, path, ip);
      if (errors_.size() == before) CheckReachable(errors_, path, ip);
    }
  }

  void SourceRanges(const Json* old) {
    constexpr std::string_view kAnnotation =
        "service.beta.kubernetes.io/load-balancer-source-ranges";
    constexpr std::string_view kOnlyBalancers = "may only be used when `type` is 'LoadBalancer'";
    const JsonArray& ranges = ArrayAt(service_, "spec.loadBalancerSourceRanges");
    const Json* note = FindMember(ObjectAt(service_, "metadata.annotations"), kAnnotation);
    if (!ranges.empty()) {
      // Upstream writes the field so.
      const Path list = spec_.At("LoadBalancerSourceRanges");
      if (type_ != "LoadBalancer") AddForbidden(errors_, list, std::string(kOnlyBalancers));
      for (size_t i = 0; i < ranges.size(); ++i) {
        const std::string_view range = TextOf(ranges[i]);
        if (WasThere(old, "spec.loadBalancerSourceRanges", range)) continue;
        CheckCidr(errors_, spec_.At("LoadBalancerSourceRanges", i), Trimmed(range));
      }
    } else if (note != nullptr) {
      const Path meta("metadata");
      const Path annotations = meta.At("annotations");
      const Path path = annotations.Key(kAnnotation);
      if (type_ != "LoadBalancer") AddForbidden(errors_, path, std::string(kOnlyBalancers));
      const Json* had = old == nullptr
                            ? nullptr
                            : FindMember(ObjectAt(*old, "metadata.annotations"), kAnnotation);
      const std::string_view all = Trimmed(TextOf(*note));
      if (all.empty() || (had != nullptr && *had == *note)) return;
      for (size_t begin = 0; begin <= all.size();) {
        const size_t end = std::min(all.find(',', begin), all.size());
        CheckCidr(errors_, path, Trimmed(all.substr(begin, end - begin)));
        begin = end + 1;
      }
    }
  }

  void LoadBalancer() {
    constexpr std::string_view kOnlyBalancers = "may only be used when `type` is 'LoadBalancer'";
    const bool balances = type_ == "LoadBalancer";
    const Json& spec = OrEmptyObject(FindMember(service_, "spec"));
    if (FindMember(spec, "allocateLoadBalancerNodePorts") != nullptr && !balances) {
      AddForbidden(errors_, spec_.At("allocateLoadBalancerNodePorts"), std::string(kOnlyBalancers));
    }
    if (FindMember(spec, "loadBalancerClass") == nullptr) return;
    const Path path = spec_.At("loadBalancerClass");
    const std::string_view name = TextAt(spec, "loadBalancerClass");
    if (balances) {
      AddInvalid(errors_, path, name, CheckQualifiedName(name));
    } else {
      AddForbidden(errors_, path, std::string(kOnlyBalancers));
    }
  }

  FieldErrors& errors_;
  const Json& service_;
  const std::string_view type_;
  const Path spec_{"spec"};
};

// An address stays for as long as the Service has one.
void CheckAddressStays(FieldErrors& errors, const Json& old, const Json& service) {
  if (TextAt(old, "spec.type") == "ExternalName" || TextAt(service, "spec.type") == "ExternalName")
    return;
  const std::string_view before = TextAt(old, "spec.clusterIP");
  const std::string_view now = TextAt(service, "spec.clusterIP");
  if (before.empty() || before == now) return;
  const Path spec("spec");
  AddInvalid(errors, spec.At("clusterIPs", 0), Json(JsonArray({Json(now)})),
             "may not change once set");
}

// Who balances stays, too, for as long as somebody does.
void CheckClassStays(FieldErrors& errors, const Json& old, const Json& service) {
  if (TextAt(old, "spec.type") != "LoadBalancer" || TextAt(service, "spec.type") != "LoadBalancer")
    return;
  const Json* before = FindPath(old, "spec.loadBalancerClass");
  const Json* now = FindPath(service, "spec.loadBalancerClass");
  const bool same = before == nullptr || now == nullptr ? before == now : *before == *now;
  if (same) return;
  const Path spec("spec");
  AddInvalid(errors, spec.At("loadBalancerClass"), now == nullptr ? Json() : *now,
             "may not change once set");
}

}  // namespace

void CheckService(FieldErrors& errors, const Json* old, const Json& service) {
  if (old != nullptr) CheckAddressStays(errors, *old, service);
  if (old != nullptr) CheckClassStays(errors, *old, service);
  Checker(errors, service).Run(old);
}

void CheckServiceStatus(FieldErrors& errors, const Json& old, const Json& service) {
  constexpr std::array<std::string_view, 2> kModes = {"Proxy", "VIP"};
  const Path status("status");
  const Path balancer = status.At("loadBalancer");
  const JsonArray& ingress = ArrayAt(service, "status.loadBalancer.ingress");
  if (ingress.empty()) return;
  if (TextAt(service, "spec.type") != "LoadBalancer") {
    return AddForbidden(errors, balancer.At("ingress"),
                        "may only be used when `spec.type` is 'LoadBalancer'");
  }
  const JsonArray& before = ArrayAt(old, "status.loadBalancer.ingress");
  for (size_t i = 0; i < ingress.size(); ++i) {
    const Path at = balancer.At("ingress", i);
    const std::string_view ip = TextAt(ingress[i], "ip");
    CheckBalancerIp(errors, at, before, ingress[i]);
    const bool has_mode = FindMember(ingress[i], "ipMode") != nullptr;
    if (!has_mode && !ip.empty()) {
      AddRequired(errors, at.At("ipMode"), "must be specified when `ip` is set");
    } else if (has_mode && ip.empty()) {
      AddForbidden(errors, at.At("ipMode"), "may not be specified when `ip` is not set");
    } else if (has_mode) {
      CheckEnum(errors, at.At("ipMode"), TextAt(ingress[i], "ipMode"), kModes);
    }
    CheckBalancerHost(errors, at, ingress[i]);
  }
}

}  // namespace berth::api::rules
