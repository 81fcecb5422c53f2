#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "api/object.h"
#include "api/table_forms.h"

// The tables of Services and what belongs to the network.
namespace berth::api {
namespace {

constexpr std::array kServiceColumns = {kName,
                                        TextColumn("Type"),
                                        TextColumn("Cluster-IP"),
                                        TextColumn("External-IP"),
                                        TextColumn("Port(s)"),
                                        kAge,
                                        TextColumn("Selector", 1)};
constexpr std::array kEndpointsColumns = {kName, TextColumn("Endpoints"), kAge};
constexpr std::array kEndpointSliceColumns = {kName, TextColumn("AddressType"), TextColumn("Ports"),
                                              TextColumn("Endpoints"), kAge};
constexpr std::array kIngressColumns = {
    kName, TextColumn("Class"), TextColumn("Hosts"), TextColumn("Address"), TextColumn("Ports"),
    kAge};
constexpr std::array kIngressClassColumns = {kName, TextColumn("Controller"),
                                             TextColumn("Parameters"), kAge};
constexpr std::array kNetworkPolicyColumns = {kName, TextColumn("Pod-Selector"), kAge};

// Up to three texts, and how many more there are.
std::string Shortened(const std::vector<std::string>& texts) {
  constexpr size_t kShown = 3;
  std::string shown;
  for (size_t i = 0; i < std::min(texts.size(), kShown); ++i) {
    shown += fmt::format("{}{}", i == 0 ? "" : ",", texts[i]);
  }
  if (texts.size() <= kShown) return shown;
  return fmt::format("{} + {} more...", shown, texts.size() - kShown);
}

// Where a load balancer answers, each once, in order.
std::string BalancerText(const Json& object) {
  std::vector<std::string> places;
  for (const Json& place : ArrayAt(object, "status.loadBalancer.ingress")) {
    const std::string_view ip = TextAt(place, "ip");
    const std::string_view text = ip.empty() ? TextAt(place, "hostname") : ip;
    if (!text.empty()) places.emplace_back(text);
  }
  std::ranges::sort(places);
  places.erase(std::ranges::unique(places).begin(), places.end());
  std::string joined;
  for (const std::string& place : places) joined += (joined.empty() ? "" : ",") + place;
  // As wide as upstream shows without -o wide, which it can't tell from a request for all columns.
  constexpr size_t kWidth = 16;
  if (joined.size() > kWidth) joined = joined.substr(0, kWidth - 3) + "...";
  return joined;
}

std::string ExternalText(const Json& object) {
  const std::string_view type = TextAt(object, "spec.type");
  if (type == "ExternalName") return std::string(TextAt(object, "spec.externalName"));
  std::string own = Joined(ArrayAt(object, "spec.externalIPs"));
  if (type == "ClusterIP" || type == "NodePort") return OrNone(own);
  if (type != "LoadBalancer") return "<unknown>";
  std::string text = BalancerText(object);
  if (text.empty() && own.empty()) return "<pending>";
  if (text.empty()) return own;
  if (!own.empty()) text += "," + own;
  return text;
}

std::string ServicePorts(const Json& object) {
  std::string text;
  for (const Json& port : ArrayAt(object, "spec.ports")) {
    if (!text.empty()) text += ',';
    text += std::to_string(IntegerAt(port, "port"));
    if (const int64_t node_port = IntegerAt(port, "nodePort"); node_port > 0) {
      text += fmt::format(":{}", node_port);
    }
    text += fmt::format("/{}", TextAt(port, "protocol"));
  }
  return OrNone(text);
}

JsonArray ServiceCells(const Json& object, Instant now) {
  const JsonArray& ips = ArrayAt(object, "spec.clusterIPs");
  const bool has_ip = !ips.empty() && ips[0].is_string();
  return {NameCell(object),
          Json(TextAt(object, "spec.type")),
          has_ip ? ips[0] : Json("<none>"),
          Json(ExternalText(object)),
          Json(ServicePorts(object)),
          Json(AgeOf(object, now)),
          Json(LabelsText(object, "spec.selector"))};
}

JsonArray EndpointsCells(const Json& object, Instant now) {
  std::vector<std::string> places;
  for (const Json& subset : ArrayAt(object, "subsets")) {
    const JsonArray& addresses = ArrayAt(subset, "addresses");
    const JsonArray& ports = ArrayAt(subset, "ports");
    if (ports.empty()) {
      for (const Json& address : addresses) places.emplace_back(TextAt(address, "ip"));
    }
    for (const Json& port : ports) {
      for (const Json& address : addresses) {
        const std::string_view ip = TextAt(address, "ip");
        places.push_back(ip.contains(':') ? fmt::format("[{}]:{}", ip, IntegerAt(port, "port"))
                                          : fmt::format("{}:{}", ip, IntegerAt(port, "port")));
      }
    }
  }
  return {NameCell(object), Json(OrNone(Shortened(places))), Json(AgeOf(object, now))};
}

JsonArray EndpointSliceCells(const Json& object, Instant now) {
  std::vector<std::string> ports;
  for (const Json& port : ArrayAt(object, "ports")) {
    if (FindMember(port, "port") != nullptr) {
      ports.push_back(std::to_string(IntegerAt(port, "port")));
    } else {
      ports.emplace_back(FindMember(port, "name") == nullptr ? "*" : TextAt(port, "name"));
    }
  }
  std::vector<std::string> addresses;
  for (const Json& endpoint : ArrayAt(object, "endpoints")) {
    for (const Json& address : ArrayAt(endpoint, "addresses")) {
      if (address.is_string()) addresses.emplace_back(address.get_string());
    }
  }
  return {NameCell(object), Json(TextAt(object, "addressType")),
          Json(ports.empty() ? "<unset>" : Shortened(ports)),
          Json(addresses.empty() ? "<unset>" : Shortened(addresses)), Json(AgeOf(object, now))};
}

std::string HostsText(const Json& ingress) {
  constexpr size_t kShown = 3;
  const JsonArray& rules = ArrayAt(ingress, "spec.rules");
  std::vector<std::string> hosts;
  bool more = false;
  for (const Json& rule : rules) {
    if (hosts.size() == kShown) more = true;
    const std::string_view host = TextAt(rule, "host");
    if (!more && !host.empty()) hosts.emplace_back(host);
  }
  if (hosts.empty()) return "*";
  std::string text = Shortened(hosts);
  if (more) text += fmt::format(" + {} more...", rules.size() - kShown);
  return text;
}

JsonArray IngressCells(const Json& object, Instant now) {
  const bool encrypted = !ArrayAt(object, "spec.tls").empty();
  return {NameCell(object),
          Json(OrNone(TextAt(object, "spec.ingressClassName"))),
          Json(HostsText(object)),
          Json(BalancerText(object)),
          Json(encrypted ? "80, 443" : "80"),
          Json(AgeOf(object, now))};
}

JsonArray IngressClassCells(const Json& object, Instant now) {
  std::string parameters;
  if (FindPath(object, "spec.parameters") != nullptr) {
    parameters = TextAt(object, "spec.parameters.kind");
    const std::string_view group = TextAt(object, "spec.parameters.apiGroup");
    if (!group.empty()) parameters += fmt::format(".{}", group);
    parameters += fmt::format("/{}", TextAt(object, "spec.parameters.name"));
  }
  return {ClassNameCell(object, "ingressclass.kubernetes.io/is-default-class"),
          Json(TextAt(object, "spec.controller")), Json(OrNone(parameters)),
          Json(AgeOf(object, now))};
}

JsonArray NetworkPolicyCells(const Json& object, Instant now) {
  return {NameCell(object), Json(SelectorText(object, "spec.podSelector")),
          Json(AgeOf(object, now))};
}

constexpr std::array<TableForm, 6> kForms = {{
    {KindId::kService, kServiceColumns, &ServiceCells},
    {KindId::kEndpoints, kEndpointsColumns, &EndpointsCells},
    {KindId::kEndpointSlice, kEndpointSliceColumns, &EndpointSliceCells},
    {KindId::kIngress, kIngressColumns, &IngressCells},
    {KindId::kIngressClass, kIngressClassColumns, &IngressClassCells},
    {KindId::kNetworkPolicy, kNetworkPolicyColumns, &NetworkPolicyCells},
}};

}  // namespace

std::span<const TableForm> ServiceForms() { return kForms; }

}  // namespace berth::api
