#include "api/validate_network.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <string_view>

#include "api/object.h"
#include "api/validate_workloads.h"

namespace berth::api::rules {
namespace {

constexpr std::array<std::string_view, 3> kProtocols = {"SCTP", "TCP", "UDP"};
constexpr std::string_view kNoIp = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";

void Refuse(FieldErrors& errors, const Path& path, std::string_view value, std::string_view why) {
  AddInvalid(errors, path, value, Messages{std::string(why)});
}

}  // namespace

void CheckReachable(FieldErrors& errors, const Path& path, std::string_view ip) {
  const std::string text(ip);
  in_addr four{};
  in6_addr six{};
  bool unspecified = false;
  bool loopback = false;
  bool local = false;
  bool multicast = false;
  if (inet_pton(AF_INET, text.c_str(), &four) == 1) {
    const uint32_t bits = ntohl(four.s_addr);
    unspecified = bits == 0;
    loopback = bits >> 24 == 127;
    local = bits >> 16 == 0xa9fe;
    multicast = bits >> 8 == 0xe00000;
  } else if (inet_pton(AF_INET6, text.c_str(), &six) == 1) {
    unspecified = IN6_IS_ADDR_UNSPECIFIED(&six);
    loopback = IN6_IS_ADDR_LOOPBACK(&six);
    local = IN6_IS_ADDR_LINKLOCAL(&six);
    multicast = IN6_IS_ADDR_MC_LINKLOCAL(&six);
  }
  if (unspecified) Refuse(errors, path, ip, fmt::format("may not be unspecified ({})", ip));
  if (loopback) {
    Refuse(errors, path, ip, "may not be in the loopback range (127.0.0.0/8, ::1/128)");
  }
  if (local) {
    Refuse(errors, path, ip, "may not be in the link-local range (169.254.0.0/16, fe80::/10)");
  }
  if (multicast) {
    Refuse(errors, path, ip,
           "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)");
  }
}

namespace {

// ---- Endpoints ---------------------------------------------------------------------------------

void CheckNodeName(FieldErrors& errors, const Path& path, const Json& owner) {
  const Json* node = FindMember(owner, "nodeName");
  if (node != nullptr)
    AddInvalid(errors, path, TextOf(*node), CheckDns1123Subdomain(TextOf(*node)));
}

void CheckEndpointAddress(FieldErrors& errors, const Path& path, const Json& address) {
  const std::string_view ip = TextAt(address, "ip");
  const bool fine = FamilyOf(ip) != IpFamily::kNone;
  if (!fine) Refuse(errors, path.At("ip"), ip, kNoIp);
  const std::string_view host = TextAt(address, "hostname");
  if (!host.empty()) AddInvalid(errors, path.At("hostname"), host, CheckDns1123Label(host));
  CheckNodeName(errors, path.At("nodeName"), address);
  if (fine) {
    CheckReachable(errors, path.At("ip"), ip);
  } else {
    Refuse(errors, path.At("ip"), ip, "must be a valid IP address");
  }
}

void CheckEndpointPort(FieldErrors& errors, const Path& path, const Json& port, bool named) {
  const std::string_view name = TextAt(port, "name");
  if (named && name.empty()) AddRequired(errors, path.At("name"));
  if (!name.empty()) AddInvalid(errors, path.At("name"), name, CheckDns1123Label(name));
  CheckPort(errors, path.At("port"), IntegerAt(port, "port"));
  CheckRequiredEnum(errors, path.At("protocol"), TextAt(port, "protocol"), kProtocols);
  if (FindMember(port, "appProtocol") != nullptr) {
    CheckLabelName(errors, path.At("appProtocol"), TextAt(port, "appProtocol"));
  }
}

void CheckSubsets(FieldErrors& errors, const JsonArray& subsets) {
  const Path list("subsets");
  for (size_t i = 0; i < subsets.size(); ++i) {
    const Path path = list.Item(i);
    const JsonArray& ready = ArrayAt(subsets[i], "addresses");
    const JsonArray& others = ArrayAt(subsets[i], "notReadyAddresses");
    if (ready.empty() && others.empty()) {
      AddRequired(errors, path, "must specify `addresses` or `notReadyAddresses`");
    }
    for (size_t j = 0; j < ready.size(); ++j) {
      CheckEndpointAddress(errors, path.At("addresses", j), ready[j]);
    }
    for (size_t j = 0; j < others.size(); ++j) {
      CheckEndpointAddress(errors, path.At("notReadyAddresses", j), others[j]);
    }
    const JsonArray& ports = ArrayAt(subsets[i], "ports");
    for (size_t j = 0; j < ports.size(); ++j) {
      CheckEndpointPort(errors, path.At("ports", j), ports[j], ports.size() > 1);
    }
  }
}

void CheckSliceAddress(FieldErrors& errors, const Path& path, size_t index, std::string_view type,
                       std::string_view address) {
  const Path item = path.Item(index);
  if (type == "FQDN") {
    const std::string_view bare =
        address.ends_with('.') ? address.substr(0, address.size() - 1) : address;
    if (address.empty()) {
      AddRequired(errors, item);
    } else if (const Messages why = CheckDns1123Subdomain(bare); !why.empty()) {
      AddInvalid(errors, item, address, why);
    } else if (!bare.contains('.')) {
      Refuse(errors, item, address,
             "should be a domain with at least two segments separated by dots");
    }
    return;
  }
  if (type != "IPv4" && type != "IPv6") return;
  const IpFamily family = FamilyOf(address);
  if (family == IpFamily::kNone) {
    Refuse(errors, item, address, kNoIp);
    return;
  }
  const bool fits = (family == IpFamily::kV6) == (type == "IPv6");
  if (!fits) Refuse(errors, path, address, fmt::format("must be an {} address", type));
  CheckReachable(errors, item, address);
}

// For whom an endpoint is: zones, and nodes.
void CheckHints(FieldErrors& errors, const Path& path, const Json& hints) {
  constexpr size_t kMost = 8;
  struct List {
    std::string_view member;
    NameCheck check;
  };
  for (const List& list :
       {List{"forZones", CheckLabelValue}, List{"forNodes", CheckDns1123Subdomain}}) {
    const JsonArray& items = ArrayAt(hints, list.member);
    if (items.size() > kMost) {
      errors.push_back(
          TooManyField(path.At(list.member).text(), static_cast<int64_t>(items.size()), kMost));
      return;
    }
    std::set<std::string_view> names;
    for (size_t i = 0; i < items.size(); ++i) {
      const Path item = path.At(list.member, i);
      const std::string_view name = TextAt(items[i], "name");
      if (!names.insert(name).second) {
        errors.push_back(DuplicateField(item.At("name").text(), name));
      }
      AddInvalid(errors, item.At("name"), name, list.check(name));
    }
  }
}

void CheckSliceEndpoints(FieldErrors& errors, const JsonArray& endpoints, std::string_view type) {
  constexpr size_t kMost = 1000;
  constexpr size_t kAddressesMost = 100;
  const Path list("endpoints");
  if (endpoints.size() > kMost) {
    errors.push_back(TooManyField(list.text(), static_cast<int64_t>(endpoints.size()), kMost));
    return;
  }
  for (size_t i = 0; i < endpoints.size(); ++i) {
    const Path path = list.Item(i);
    const Path at = path.At("addresses");
    const JsonArray& addresses = ArrayAt(endpoints[i], "addresses");
    if (addresses.empty()) {
      AddRequired(errors, at, "must contain at least 1 address");
    } else if (addresses.size() > kAddressesMost) {
      errors.push_back(
          TooManyField(at.text(), static_cast<int64_t>(addresses.size()), kAddressesMost));
    }
    for (size_t j = 0; j < addresses.size(); ++j) {
      CheckSliceAddress(errors, at, j, type, TextOf(addresses[j]));
    }
    CheckNodeName(errors, path.At("nodeName"), endpoints[i]);
    if (const Json* host = FindMember(endpoints[i], "hostname"); host != nullptr) {
      AddInvalid(errors, path.At("hostname"), TextOf(*host), CheckDns1123Label(TextOf(*host)));
    }
    if (const Json* hints = FindMember(endpoints[i], "hints"); hints != nullptr) {
      CheckHints(errors, path.At("hints"), *hints);
    }
  }
}

void CheckSlicePorts(FieldErrors& errors, const JsonArray& ports) {
  const Path list("ports");
  std::set<std::string_view> names;
  for (size_t i = 0; i < ports.size(); ++i) {
    const Path path = list.Item(i);
    const std::string_view name = TextAt(ports[i], "name");
    if (!name.empty()) AddInvalid(errors, path.At("name"), name, CheckDns1123Label(name));
    if (!names.insert(name).second) {
      errors.push_back(DuplicateField(path.At("name").text(), name));
    }
    CheckEnum(errors, path.At("protocol"), TextAt(ports[i], "protocol"), kProtocols);
    if (FindMember(ports[i], "appProtocol") != nullptr) {
      CheckLabelName(errors, path.At("appProtocol"), TextAt(ports[i], "appProtocol"));
    }
  }
}

// ---- NetworkPolicies ---------------------------------------------------------------------------

void CheckPolicyPort(FieldErrors& errors, const Path& path, const Json& port) {
  constexpr std::array<std::string_view, 3> kOrdered = {"TCP", "UDP", "SCTP"};
  if (FindMember(port, "protocol") != nullptr) {
    CheckEnum(errors, path.At("protocol"), TextAt(port, "protocol"), kOrdered);
  }
  const Json* number = FindMember(port, "port");
  const Json* end = FindMember(port, "endPort");
  const Path end_path = path.At("endPort");
  if (number == nullptr) {
    if (end != nullptr) {
      AddInvalid(errors, end_path, *end, "may not be specified when `port` is not specified");
    }
    return;
  }
  if (number->is_string()) {
    if (end != nullptr) {
      AddInvalid(errors, end_path, *end, "may not be specified when `port` is non-numeric");
    }
    CheckPortOrName(errors, path.At("port"), number);
    return;
  }
  CheckPortOrName(errors, path.At("port"), number);
  if (end == nullptr) return;
  if (IntegerAt(port, "endPort") < IntegerAt(port, "port")) {
    AddInvalid(errors, end_path, *number, "must be greater than or equal to `port`");
  }
  CheckPort(errors, end_path, IntegerAt(port, "endPort"));
}

void CheckIpBlock(FieldErrors& errors, const Path& path, const Json& block) {
  const std::string_view range = TextAt(block, "cidr");
  if (range.empty()) {
    AddRequired(errors, path.At("cidr"));
    return;
  }
  CheckCidr(errors, path.At("cidr"), range);
  const std::optional<CidrRange> whole = ParseCidr(range);
  if (!whole) return;
  const JsonArray& parts = ArrayAt(block, "except");
  for (size_t i = 0; i < parts.size(); ++i) {
    const std::string_view part = TextOf(parts[i]);
    const Path at = path.At("except", i);
    CheckCidr(errors, at, part);
    const std::optional<CidrRange> except = ParseCidr(part);
    if (except && !whole->ContainsStrictly(*except)) {
      Refuse(errors, at, part, "must be a strict subset of `cidr`");
    }
  }
}

void CheckPeer(FieldErrors& errors, const Path& path, const Json& peer) {
  int count = 0;
  for (const std::string_view member : {"podSelector", "namespaceSelector"}) {
    const Json* selector = FindMember(peer, member);
    if (selector == nullptr) continue;
    ++count;
    CheckLabelSelector(errors, path.At(member), *selector);
  }
  const Json* block = FindMember(peer, "ipBlock");
  if (block != nullptr) {
    const Path at = path.At("ipBlock");
    CheckIpBlock(errors, at, *block);
    ++count;
  }
  if (count == 0) AddRequired(errors, path, "must specify a peer");
  if (count > 1 && block != nullptr) {
    AddForbidden(errors, path, "may not specify both ipBlock and another peer");
  }
}

struct Direction {
  std::string_view rules;
  std::string_view peers;
};
constexpr std::array<Direction, 2> kDirections = {{{"ingress", "from"}, {"egress", "to"}}};

void CheckPolicySpec(FieldErrors& errors, const Json& spec) {
  const Path path("spec");
  CheckLabelSelector(errors, path.At("podSelector"),
                     OrEmptyObject(FindMember(spec, "podSelector")));
  for (const Direction& direction : kDirections) {
    const JsonArray& rules = ArrayAt(spec, direction.rules);
    for (size_t i = 0; i < rules.size(); ++i) {
      const Path rule = path.At(direction.rules, i);
      const JsonArray& ports = ArrayAt(rules[i], "ports");
      for (size_t j = 0; j < ports.size(); ++j) {
        CheckPolicyPort(errors, rule.At("ports", j), ports[j]);
      }
      const JsonArray& peers = ArrayAt(rules[i], direction.peers);
      for (size_t j = 0; j < peers.size(); ++j) {
        CheckPeer(errors, rule.At(direction.peers, j), peers[j]);
      }
    }
  }
  constexpr std::array<std::string_view, 2> kTypes = {"Ingress", "Egress"};
  const JsonArray& types = ArrayAt(spec, "policyTypes");
  if (types.size() > kTypes.size()) {
    AddInvalid(errors, path.At("policyTypes"), Json(types),
               "may not specify more than two policyTypes");
    return;
  }
  for (size_t i = 0; i < types.size(); ++i) {
    CheckEnum(errors, path.At("policyTypes", i), TextOf(types[i]), kTypes);
  }
}

// ---- Ingresses ---------------------------------------------------------------------------------

void CheckBackendService(FieldErrors& errors, const Path& path, const Json& service) {
  const Path at = path.At("service");
  const std::string_view name = TextAt(service, "name");
  CheckRequired(errors, at.At("name"), name, CheckDns1123Label(name));
  const Path port = at.At("port");
  const std::string_view port_name = TextAt(service, "port.name");
  const int64_t number = IntegerAt(service, "port.number");
  if (!port_name.empty() && number != 0) {
    Refuse(errors, path, "", "cannot set both port name & port number");
  } else if (!port_name.empty()) {
    AddInvalid(errors, port.At("name"), port_name, CheckPortName(port_name));
  } else if (number != 0) {
    CheckPort(errors, port.At("number"), number);
  } else {
    AddRequired(errors, path, "port name or number is required");
  }
}

void CheckBackend(FieldErrors& errors, const Path& path, const Json& backend) {
  const Json* resource = FindMember(backend, "resource");
  const Json* service = FindMember(backend, "service");
  if (resource != nullptr && service != nullptr) {
    Refuse(errors, path, "", "cannot set both resource and service backends");
  } else if (resource != nullptr) {
    const Path at = path.At("resource");
    if (FindMember(*resource, "apiGroup") != nullptr) {
      const std::string_view group = TextAt(*resource, "apiGroup");
      AddInvalid(errors, at.At("apiGroup"), group, CheckDns1123Subdomain(group));
    }
    for (const std::string_view member : {"kind", "name"}) {
      const std::string_view text = TextAt(*resource, member);
      if (text.empty()) AddRequired(errors, at.At(member));
      if (!text.empty()) AddInvalid(errors, at.At(member), text, CheckPathSegment(text));
    }
  } else if (service != nullptr) {
    CheckBackendService(errors, path, *service);
  } else {
    Refuse(errors, path, "", "resource or service backend is required");
  }
}

void CheckIngressPath(FieldErrors& errors, const Path& at, const Json& rule) {
  if (FindMember(rule, "pathType") == nullptr) {
    AddRequired(errors, at.At("pathType"), "pathType must be specified");
    return;
  }
  const std::string_view type = TextAt(rule, "pathType");
  const std::string_view path = TextAt(rule, "path");
  const Path path_at = at.At("path");
  const bool exact = type == "Exact" || type == "Prefix";
  if (exact || type == "ImplementationSpecific") {
    if (!path.starts_with('/') && (exact || !path.empty())) {
      Refuse(errors, path_at, path, "must be an absolute path");
    }
  } else {
    constexpr std::array<std::string_view, 3> kTypes = {"Exact", "ImplementationSpecific",
                                                        "Prefix"};
    CheckEnum(errors, at.At("pathType"), type, kTypes);
  }
  if (exact) {
    for (const std::string_view part : {"//", "/./", "/../", "%2f", "%2F"}) {
      if (path.contains(part)) {
        Refuse(errors, path_at, path, fmt::format("must not contain '{}'", part));
      }
    }
    for (const std::string_view end : {"/..", "/."}) {
      if (path.ends_with(end)) {
        Refuse(errors, path_at, path, fmt::format("cannot end with '{}'", end));
      }
    }
  }
  CheckBackend(errors, at.At("backend"), OrEmptyObject(FindMember(rule, "backend")));
}

// A host may begin with a label that stands for any.
void CheckHost(FieldErrors& errors, const Path& path, std::string_view host) {
  if (!host.contains('*')) {
    AddInvalid(errors, path, host, CheckDns1123Subdomain(host));
    return;
  }
  if (host.starts_with("*.") && IsDns1123Subdomain(host.substr(2))) return;
  Refuse(errors, path, host,
         "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, "
         "which must consist of lower case alphanumeric characters, '-' or '.' and end with an "
         "alphanumeric character (e.g. '*.example.com', regex used for validation is "
         "'\\*\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')");
}

void CheckIngressRules(FieldErrors& errors, const Path& spec, const JsonArray& rules) {
  for (size_t i = 0; i < rules.size(); ++i) {
    const Path rule = spec.At("rules", i);
    if (const std::string_view host = TextAt(rules[i], "host"); !host.empty()) {
      if (FamilyOf(host) != IpFamily::kNone) {
        Refuse(errors, rule.At("host"), host, "must be a DNS name, not an IP address");
      }
      CheckHost(errors, rule.At("host"), host);
    }
    if (FindMember(rules[i], "http") == nullptr) continue;
    const Path http = rule.At("http");
    const JsonArray& paths = ArrayAt(rules[i], "http.paths");
    if (paths.empty()) AddRequired(errors, http.At("paths"));
    for (size_t j = 0; j < paths.size(); ++j) {
      CheckIngressPath(errors, http.At("paths", j), paths[j]);
    }
  }
}

void CheckIngressSpec(FieldErrors& errors, const Json& ingress) {
  const Path path("spec");
  const JsonArray& rules = ArrayAt(ingress, "spec.rules");
  const Json* backend = FindPath(ingress, "spec.defaultBackend");
  if (rules.empty() && backend == nullptr) {
    const Json* sent = FindPath(ingress, "spec.rules");
    AddInvalid(errors, path, sent == nullptr ? Json() : *sent,
               "either `defaultBackend` or `rules` must be specified");
  }
  if (backend != nullptr) CheckBackend(errors, path.At("defaultBackend"), *backend);
  CheckIngressRules(errors, path, rules);
  const JsonArray& secured = ArrayAt(ingress, "spec.tls");
  for (size_t i = 0; i < secured.size(); ++i) {
    const Path at = path.At("tls", i);
    const JsonArray& hosts = ArrayAt(secured[i], "hosts");
    for (size_t j = 0; j < hosts.size(); ++j) {
      CheckHost(errors, at.At("hosts", j), TextOf(hosts[j]));
    }
    const std::string_view secret = TextAt(secured[i], "secretName");
    if (!secret.empty())
      AddInvalid(errors, at.At("secretName"), secret, CheckDns1123Subdomain(secret));
  }
  if (FindPath(ingress, "spec.ingressClassName") != nullptr) {
    const std::string_view name = TextAt(ingress, "spec.ingressClassName");
    AddInvalid(errors, path.At("ingressClassName"), name, CheckDns1123Subdomain(name));
  }
}

void CheckClassAnnotation(FieldErrors& errors, const Json& ingress) {
  constexpr std::string_view kClass = "kubernetes.io/ingress.class";
  const Json* annotation = FindMember(ObjectAt(ingress, "metadata.annotations"), kClass);
  const Json* name = FindPath(ingress, "spec.ingressClassName");
  if (annotation == nullptr || name == nullptr || TextOf(*annotation) == TextOf(*name)) return;
  const Path path("annotations");
  Refuse(errors, path.At(kClass), TextOf(*annotation),
         "must match `ingressClassName` when both are specified");
}

// What a class leaves to somebody's own object.
void CheckParameters(FieldErrors& errors, const Path& path, const Json& parameters) {
  if (FindMember(parameters, "apiGroup") != nullptr) {
    const std::string_view group = TextAt(parameters, "apiGroup");
    AddInvalid(errors, path.At("apiGroup"), group, CheckDns1123Subdomain(group));
  }
  for (const std::string_view member : {"kind", "name"}) {
    const std::string_view text = TextAt(parameters, member);
    if (text.empty()) {
      AddRequired(errors, path.At(member));
    } else {
      AddInvalid(errors, path.At(member), text, CheckPathSegment(text));
    }
  }
  if (FindMember(parameters, "scope") == nullptr) return AddRequired(errors, path.At("scope"));
  constexpr std::array<std::string_view, 2> kScopes = {"Cluster", "Namespace"};
  const std::string_view scope = TextAt(parameters, "scope");
  const Json* space = FindMember(parameters, "namespace");
  CheckEnum(errors, path.At("scope"), scope, kScopes);
  if (scope == "Namespace" && space == nullptr) {
    AddRequired(errors, path.At("namespace"), "`parameters.scope` is set to 'Namespace'");
  } else if (scope == "Namespace") {
    AddInvalid(errors, path.At("namespace"), TextOf(*space), CheckDns1123Label(TextOf(*space)));
  } else if (scope == "Cluster" && space != nullptr) {
    AddForbidden(errors, path.At("namespace"), "`parameters.scope` is set to 'Cluster'");
  }
}

}  // namespace

void CheckIngressClass(FieldErrors& errors, const Json* old, const Json& object) {
  constexpr int64_t kControllerCharactersMax = 250;
  const Path spec("spec");
  const Path path = spec.At("controller");
  const std::string_view controller = TextAt(object, "spec.controller");
  if (old != nullptr) {
    CheckMetaUpdate(errors, *old, object);
    if (TextAt(*old, "spec.controller") != controller) Refuse(errors, path, controller, kImmutable);
  }
  CheckMeta(errors, object, false, CheckDns1123Subdomain);
  if (static_cast<int64_t>(controller.size()) > kControllerCharactersMax)
    errors.push_back(TooLongField(path.text(), kControllerCharactersMax));
  CheckDomainPath(errors, path, controller);
  if (const Json* parameters = FindPath(object, "spec.parameters"))
    CheckParameters(errors, spec.At("parameters"), *parameters);
}

void CheckEndpoints(FieldErrors& errors, const Json* old, const Json& object) {
  if (old != nullptr) CheckMetaUpdate(errors, *old, object);
  CheckMeta(errors, object, true, CheckDns1123Subdomain);
  // What was let in before stays.
  const JsonArray& subsets = ArrayAt(object, "subsets");
  if (old != nullptr && SameJson(Json(ArrayAt(*old, "subsets")), Json(subsets))) return;
  CheckSubsets(errors, subsets);
}

void CheckEndpointSlice(FieldErrors& errors, const Json* old, const Json& object) {
  constexpr std::array<std::string_view, 3> kTypes = {"FQDN", "IPv4", "IPv6"};
  CheckMeta(errors, object, true, CheckDns1123Subdomain);
  const std::string_view type = TextAt(object, "addressType");
  CheckRequiredEnum(errors, Path("addressType"), type, kTypes);
  CheckSlicePorts(errors, ArrayAt(object, "ports"));
  const JsonArray& endpoints = ArrayAt(object, "endpoints");
  if (old == nullptr || !SameJson(Json(ArrayAt(*old, "endpoints")), Json(endpoints))) {
    CheckSliceEndpoints(errors, endpoints, type);
  }
  if (old != nullptr && TextAt(*old, "addressType") != type) {
    Refuse(errors, Path("addressType"), type, kImmutable);
  }
}

void CheckNetworkPolicy(FieldErrors& errors, const Json* old, const Json& object) {
  if (old != nullptr) {
    CheckMetaUpdate(errors, *old, object);
  } else {
    CheckMeta(errors, object, true, CheckDns1123Subdomain);
  }
  CheckPolicySpec(errors, OrEmptyObject(FindMember(object, "spec")));
}

void CheckIngress(FieldErrors& errors, const Json* old, const Json& object) {
  if (old != nullptr) CheckMetaUpdate(errors, *old, object);
  CheckMeta(errors, object, true, CheckDns1123Subdomain);
  CheckIngressSpec(errors, object);
  if (old == nullptr) CheckClassAnnotation(errors, object);
}

void CheckBalancerIp(FieldErrors& errors, const Path& path, const JsonArray& before,
                     const Json& place) {
  const std::string_view address = TextAt(place, "ip");
  const bool known = std::ranges::any_of(
      before, [&](const Json& other) { return TextAt(other, "ip") == address; });
  if (!address.empty() && !known) CheckIp(errors, path.At("ip"), address);
}

void CheckBalancerHost(FieldErrors& errors, const Path& path, const Json& place) {
  const std::string_view host = TextAt(place, "hostname");
  if (host.empty()) return;
  AddInvalid(errors, path.At("hostname"), host, CheckDns1123Subdomain(host));
  if (FamilyOf(host) != IpFamily::kNone)
    Refuse(errors, path.At("hostname"), host, "must be a DNS name, not an IP address");
}

void CheckIngressStatus(FieldErrors& errors, const Json& old, const Json& object) {
  constexpr JsonPath kPlaces("status.loadBalancer.ingress");
  const JsonArray& places = ArrayAt(object, kPlaces);
  const Path status("status");
  const Path balancer = status.At("loadBalancer");
  for (size_t i = 0; i < places.size(); ++i) {
    const Path path = balancer.At("ingress", i);
    CheckBalancerIp(errors, path, ArrayAt(old, kPlaces), places[i]);
    CheckBalancerHost(errors, path, places[i]);
  }
}

}  // namespace berth::api::rules
