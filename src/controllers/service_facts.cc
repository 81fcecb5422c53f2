#include "controllers/service_facts.h"

#include <fmt/format.h>

#include <algorithm>

#include "api/object.h"
#include "client/request.h"

namespace berth::controllers {
namespace {

using api::ArrayAt;
using api::FindMember;
using api::IntegerAt;
using api::Json;
using api::TextAt;
using client::AppendJsonString;

std::optional<std::string> OptionalText(const Json& object, std::string_view key) {
  const Json* value = FindMember(object, key);
  if (value == nullptr || !value->is_string()) return std::nullopt;
  return std::string(api::TextOf(*value));
}

std::optional<bool> OptionalFlag(const Json& object, std::string_view key) {
  const Json* value = FindMember(object, key);
  if (value == nullptr || !value->is_bool()) return std::nullopt;
  return value->as_bool();
}

std::optional<int64_t> OptionalNumber(const Json& object, std::string_view key) {
  const Json* value = FindMember(object, key);
  if (value == nullptr || !value->is_number()) return std::nullopt;
  return IntegerAt(object, {key});
}

std::optional<ObjectTarget> TargetOf(const Json& object) {
  const Json* target = FindMember(object, "targetRef");
  if (target == nullptr || !target->is_object()) return std::nullopt;
  return ObjectTarget{.kind = std::string(TextAt(*target, "kind")),
                      .namespace_name = std::string(TextAt(*target, "namespace")),
                      .name = std::string(TextAt(*target, "name")),
                      .uid = std::string(TextAt(*target, "uid"))};
}

std::vector<EndpointPort> PortsOf(const Json& object) {
  std::vector<EndpointPort> ports;
  for (const Json& port : ArrayAt(object, "ports")) {
    ports.push_back({.name = OptionalText(port, "name"),
                     .port = OptionalNumber(port, "port"),
                     .protocol = std::string(TextAt(port, "protocol")),
                     .app_protocol = OptionalText(port, "appProtocol")});
  }
  return ports;
}

std::vector<EndpointAddress> AddressesOf(const Json& subset, std::string_view key) {
  std::vector<EndpointAddress> addresses;
  const Json* list = FindMember(subset, key);
  if (list == nullptr || !list->is_array()) return addresses;
  for (const Json& address : list->as_array()) {
    addresses.push_back({.ip = std::string(TextAt(address, "ip")),
                         .hostname = std::string(TextAt(address, "hostname")),
                         .node = std::string(TextAt(address, "nodeName")),
                         .target = TargetOf(address)});
  }
  return addresses;
}

Endpoint EndpointOf(const Json& object) {
  const Json& conditions = api::OrEmptyObject(FindMember(object, "conditions"));
  Endpoint endpoint{.addresses = {},
                    .ready = OptionalFlag(conditions, "ready"),
                    .serving = OptionalFlag(conditions, "serving"),
                    .terminating = OptionalFlag(conditions, "terminating"),
                    .hostname = std::string(TextAt(object, "hostname")),
                    .target = TargetOf(object),
                    .node = std::string(TextAt(object, "nodeName")),
                    .zone = std::string(TextAt(object, "zone")),
                    .for_zones = {},
                    .for_nodes = {}};
  for (const Json& address : ArrayAt(object, "addresses"))
    endpoint.addresses.emplace_back(api::TextOf(address));
  for (const Json& zone : ArrayAt(object, "hints.forZones"))
    endpoint.for_zones.emplace_back(TextAt(zone, "name"));
  for (const Json& node : ArrayAt(object, "hints.forNodes"))
    endpoint.for_nodes.emplace_back(TextAt(node, "name"));
  return endpoint;
}

// Members with a value, one after the other.
class Members {
 public:
  explicit Members(std::string& out) : out_(out) { out_ += '{'; }
  Members(const Members&) = delete;
  Members& operator=(const Members&) = delete;
  ~Members() {
    if (out_.back() == ',') out_.pop_back();
    out_ += '}';
  }
  void Text(std::string_view key, std::string_view value) {
    Key(key);
    AppendJsonString(out_, value);
    out_ += ',';
  }
  void TextIfAny(std::string_view key, std::string_view value) {
    if (!value.empty()) Text(key, value);
  }
  void Raw(std::string_view key, std::string_view value) {
    Key(key);
    out_.append(value).append(",");
  }
  void Flag(std::string_view key, std::optional<bool> value) {
    if (value.has_value()) Raw(key, *value ? "true" : "false");
  }
  void Target(const std::optional<ObjectTarget>& target) {
    if (!target.has_value()) return;
    std::string text;
    {
      Members members(text);
      members.TextIfAny("kind", target->kind);
      members.TextIfAny("namespace", target->namespace_name);
      members.TextIfAny("name", target->name);
      members.TextIfAny("uid", target->uid);
    }
    Raw("targetRef", text);
  }

 private:
  void Key(std::string_view key) { out_.append("\"").append(key).append("\":"); }

  std::string& out_;
};

template <typename T>
std::string ListOf(const std::vector<T>& items, void (*append)(std::string&, const T&)) {
  std::string out = "[";
  for (const T& item : items) {
    append(out, item);
    out += ',';
  }
  if (out.back() == ',') out.pop_back();
  return out + "]";
}

void AppendName(std::string& out, const std::string& name) { Members(out).Text("name", name); }

void AppendText(std::string& out, const std::string& text) { AppendJsonString(out, text); }

void AppendPort(std::string& out, const EndpointPort& port) {
  Members members(out);
  if (port.name.has_value()) members.Text("name", *port.name);
  if (port.port.has_value()) members.Raw("port", fmt::format("{}", *port.port));
  members.TextIfAny("protocol", port.protocol);
  if (port.app_protocol.has_value()) members.Text("appProtocol", *port.app_protocol);
}

void AppendEndpoint(std::string& out, const Endpoint& endpoint) {
  Members members(out);
  members.Raw("addresses", ListOf(endpoint.addresses, &AppendText));
  std::string conditions;
  {
    Members parts(conditions);
    parts.Flag("ready", endpoint.ready);
    parts.Flag("serving", endpoint.serving);
    parts.Flag("terminating", endpoint.terminating);
  }
  members.Raw("conditions", conditions);
  members.TextIfAny("hostname", endpoint.hostname);
  members.Target(endpoint.target);
  members.TextIfAny("nodeName", endpoint.node);
  members.TextIfAny("zone", endpoint.zone);
  if (endpoint.for_zones.empty() && endpoint.for_nodes.empty()) return;
  std::string hints;
  {
    Members parts(hints);
    if (!endpoint.for_zones.empty()) parts.Raw("forZones", ListOf(endpoint.for_zones, &AppendName));
    if (!endpoint.for_nodes.empty()) parts.Raw("forNodes", ListOf(endpoint.for_nodes, &AppendName));
  }
  members.Raw("hints", hints);
}

void AppendAddress(std::string& out, const EndpointAddress& address) {
  Members members(out);
  members.Text("ip", address.ip);
  members.TextIfAny("hostname", address.hostname);
  members.TextIfAny("nodeName", address.node);
  members.Target(address.target);
}

void AppendSubset(std::string& out, const EndpointSubset& subset) {
  Members members(out);
  if (!subset.ready.empty()) members.Raw("addresses", ListOf(subset.ready, &AppendAddress));
  if (!subset.unready.empty())
    members.Raw("notReadyAddresses", ListOf(subset.unready, &AppendAddress));
  if (!subset.ports.empty()) members.Raw("ports", PortsText(subset.ports));
}

std::vector<std::string> FamiliesOf(const Json& service, std::string_view address) {
  std::vector<std::string> families;
  for (const Json& family : ArrayAt(service, "spec.ipFamilies"))
    families.emplace_back(api::TextOf(family));
  if (!families.empty()) return families;
  // Of a server that gives none: by its address, and both where it has none.
  if (!address.empty() && address != "None") return {IsIpv6(address) ? "IPv6" : "IPv4"};
  return {"IPv4", "IPv6"};
}

}  // namespace

bool IsIpv6(std::string_view address) { return address.contains(':'); }

ServiceFacts ReadService(const Json& service) {
  const std::string_view address = TextAt(service, "spec.clusterIP");
  ServiceFacts facts{
      .selects = !api::ObjectAt(service, "spec.selector").empty(),
      .external = TextAt(service, "spec.type") == "ExternalName",
      .portless = address == "None",
      .headless = address.empty() || address == "None",
      .publishes_unready = api::FlagAt(service, "spec.publishNotReadyAddresses"),
      .traffic_distribution = std::string(TextAt(service, "spec.trafficDistribution")),
      .families = FamiliesOf(service, address),
      .ports = {},
      .selector = api::StringMapAt(service, "spec.selector"),
      .annotations = api::StringMapAt(service, "metadata.annotations")};
  for (const Json& object : ArrayAt(service, "spec.ports")) {
    ServicePort& port =
        facts.ports.emplace_back(ServicePort{.name = std::string(TextAt(object, "name")),
                                             .protocol = std::string(TextAt(object, "protocol")),
                                             .app_protocol = OptionalText(object, "appProtocol")});
    port.target_name = TextAt(object, "targetPort");
    port.target = IntegerAt(object, "targetPort", IntegerAt(object, "port"));
  }
  return facts;
}

SliceFacts ReadSlice(const Json& slice) {
  SliceFacts facts{.address_type = std::string(TextAt(slice, "addressType")),
                   .ports = PortsOf(slice),
                   .endpoints = {},
                   .annotations = api::StringMapAt(slice, "metadata.annotations")};
  for (const Json& endpoint : ArrayAt(slice, "endpoints"))
    facts.endpoints.push_back(EndpointOf(endpoint));
  return facts;
}

EndpointsFacts ReadEndpoints(const Json& endpoints) {
  EndpointsFacts facts{.subsets = {},
                       .annotations = api::StringMapAt(endpoints, "metadata.annotations")};
  for (const Json& subset : ArrayAt(endpoints, "subsets")) {
    facts.subsets.push_back({.ready = AddressesOf(subset, "addresses"),
                             .unready = AddressesOf(subset, "notReadyAddresses"),
                             .ports = PortsOf(subset)});
  }
  return facts;
}

std::string PortsText(const std::vector<EndpointPort>& ports) { return ListOf(ports, &AppendPort); }

std::string EndpointsText(const std::vector<Endpoint>& endpoints) {
  return ListOf(endpoints, &AppendEndpoint);
}

std::string SubsetsText(const std::vector<EndpointSubset>& subsets) {
  return ListOf(subsets, &AppendSubset);
}

}  // namespace berth::controllers
