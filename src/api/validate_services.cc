#include "api/validate_services.h"

#include <fmt/format.h>

#include <array>
#include <boost/json/serialize.hpp>
#include <set>
#include <string>
#include <utility>

#include "api/object.h"

namespace berth::api::rules {
namespace {

constexpr std::array<std::string_view, 4> kTypes = {"ClusterIP", "ExternalName", "LoadBalancer",
                                                    "NodePort"};
constexpr std::array<std::string_view, 3> kProtocols = {"SCTP", "TCP", "UDP"};
constexpr std::array<std::string_view, 2> kAffinities = {"ClientIP", "None"};
constexpr std::array<std::string_view, 2> kTrafficPolicies = {"Cluster", "Local"};
constexpr int64_t kAffinitySecondsMax = 86'400;

bool IsIp(std::string_view text) { return FamilyOf(text) != IpFamily::kNone; }

class Checker {
 public:
  Checker(FieldErrors& errors, const Json& service)
      : errors_(errors), service_(service), type_(TextAt(service, "spec.type")) {}

  void Run() {
    Ports();
    CheckEnum(errors_, spec_.At("type"), type_, kTypes);
    Addresses();
    if (type_ == "ExternalName") ExternalName();
    Affinity();
    Traffic();
    CheckLabels(errors_, spec_.At("selector"), ObjectAt(service_, "spec.selector"));
    Lists();
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
    std::set<std::string_view> names;
    std::set<std::pair<int64_t, std::string_view>> numbers;
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
      const int64_t number = IntegerAt(port, "port");
      CheckPort(errors_, path.At("port"), number);
      const std::string_view protocol = TextAt(port, "protocol");
      CheckRequiredEnum(errors_, path.At("protocol"), protocol, kProtocols);
      CheckPortOrName(errors_, path.At("targetPort"), FindMember(port, "targetPort"));
      const int64_t node_port = IntegerAt(port, "nodePort");
      if (node_port != 0 && type_ != "NodePort" && type_ != "LoadBalancer") {
        AddForbidden(errors_, path.At("nodePort"),
                     fmt::format("may not be used when `type` is '{}'", type_));
      }
      if (!numbers.emplace(number, protocol).second) {
        const Json shown =
            JsonObject{{"Name", ""},     {"Protocol", protocol}, {"AppProtocol", nullptr},
                       {"Port", number}, {"TargetPort", 0},      {"NodePort", 0}};
        errors_.push_back(DuplicateJsonField(path.text(), shown));
      }
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
    const Path item = spec_.At("clusterIPs", 0);
    if (headless() && (type_ == "NodePort" || type_ == "LoadBalancer")) {
      AddInvalid(errors_, item, "None",
                 fmt::format("may not be set to 'None' for {} services", type_));
    } else if (!first.empty() && first != "None" && !IsIp(first)) {
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

  void ExternalName() {
    const std::string_view name = TextAt(service_, "spec.externalName");
    const Path path = spec_.At("externalName");
    if (name.empty()) return AddRequired(errors_, path);
    const std::string_view bare = name.ends_with('.') ? name.substr(0, name.size() - 1) : name;
    AddInvalid(errors_, path, name, CheckDns1123Subdomain(bare));
  }

  void Affinity() {
    const std::string_view affinity = TextAt(service_, "spec.sessionAffinity");
    CheckRequiredEnum(errors_, spec_.At("sessionAffinity"), affinity, kAffinities);
    if (affinity != "ClientIP") return;
    const int64_t seconds =
        IntegerAt(service_, "spec.sessionAffinityConfig.clientIP.timeoutSeconds");
    if (seconds > 0 && seconds <= kAffinitySecondsMax) return;
    const Path config = spec_.At("sessionAffinityConfig");
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
    const std::string_view inside = TextAt(service_, "spec.internalTrafficPolicy");
    if (!inside.empty())
      CheckEnum(errors_, spec_.At("internalTrafficPolicy"), inside, kTrafficPolicies);
  }

  void Lists() {
    const JsonArray& ips = ArrayAt(service_, "spec.externalIPs");
    for (size_t i = 0; i < ips.size(); ++i) {
      const std::string_view ip = TextOf(ips[i]);
      if (IsIp(ip)) continue;
      Refuse(spec_.At("externalIPs", i), ip,
             "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)");
    }
    const JsonArray& ranges = ArrayAt(service_, "spec.loadBalancerSourceRanges");
    for (size_t i = 0; i < ranges.size(); ++i) {
      const std::string_view range = TextOf(ranges[i]);
      // Upstream writes the field so.
      CheckCidr(errors_, spec_.At("LoadBalancerSourceRanges", i), range);
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

}  // namespace

void CheckService(FieldErrors& errors, const Json* old, const Json& service) {
  if (old != nullptr) CheckAddressStays(errors, *old, service);
  Checker(errors, service).Run();
}

}  // namespace berth::api::rules
