#include <string>
#include <string_view>
#include <utility>

#include "api/defaults_kinds.h"
#include "api/object.h"

namespace berth::api {
namespace {

bool HasItems(const JsonObject& object, std::string_view member) {
  const Json* list = FindMember(object, member);
  return list != nullptr && list->is_array() && !list->get_array().empty();
}

bool IsEmpty(const JsonObject& object, std::string_view key) {
  const Json* member = FindMember(object, key);
  if (member == nullptr) return true;
  if (member->is_string()) return member->get_string().empty();
  return member->is_array() && member->get_array().empty();
}

bool IsZero(const Json* value) {
  if (value == nullptr) return true;
  if (value->is_int64()) return value->get_int64() == 0;
  return value->is_string() && value->get_string().empty();
}

void DefaultServiceSpec(JsonObject& spec) {
  constexpr int64_t kAffinitySeconds = 10800;
  SetText(spec, "sessionAffinity", "None");
  if (spec["sessionAffinity"] == "None") RemoveMember(spec, "sessionAffinityConfig");
  if (spec["sessionAffinity"] == "ClientIP") {
    JsonObject& config = MemberObject(MemberObject(spec, "sessionAffinityConfig"), "clientIP");
    SetDefault(config, "timeoutSeconds", kAffinitySeconds);
  }
  SetText(spec, "type", "ClusterIP");
  const bool balanced = spec["type"] == "LoadBalancer";
  const bool outside = balanced || spec["type"] == "NodePort";
  ForEachIn(spec, "ports", [](JsonObject& port) {
    SetText(port, "protocol", "TCP");
    if (IsZero(FindMember(std::as_const(port), "targetPort"))) {
      const Json* number = FindMember(std::as_const(port), "port");
      port["targetPort"] = number == nullptr ? Json(0) : Json(*number);
    }
  });
  const bool by_address = spec["type"] == "ClusterIP" && HasItems(spec, "externalIPs");
  if (outside || by_address) SetText(spec, "externalTrafficPolicy", "Cluster");
  if (outside || spec["type"] == "ClusterIP") {
    SetDefault(spec, "internalTrafficPolicy", "Cluster");
  }
  if (balanced) SetDefault(spec, "allocateLoadBalancerNodePorts", true);
}

void DefaultNetworkPolicy(JsonObject& spec) {
  for (const std::string_view list : {"ingress", "egress"}) {
    ForEachIn(spec, list, [](JsonObject& rule) {
      ForEachIn(rule, "ports", [](JsonObject& port) { SetText(port, "protocol", "TCP"); });
    });
  }
  if (!IsEmpty(spec, "policyTypes")) return;
  JsonArray types;
  types.emplace_back("Ingress");
  if (!IsEmpty(spec, "egress")) types.emplace_back("Egress");
  spec["policyTypes"] = std::move(types);
}

// What reaches a balancer's address goes to the address.
void DefaultServiceStatus(JsonObject& service) {
  if (MemberObject(service, "spec")["type"] != "LoadBalancer") return;
  Json* status = service.if_contains("status");
  Json* balancer = status == nullptr ? nullptr : FindMember(*status, "loadBalancer");
  if (balancer == nullptr || !balancer->is_object()) return;
  ForEachIn(balancer->get_object(), "ingress", [](JsonObject& place) {
    if (!IsEmpty(place, "ip")) SetDefault(place, "ipMode", "VIP");
  });
}

}  // namespace

void DefaultService(KindId kind, JsonObject& object) {
  switch (kind) {
    case KindId::kService:
      DefaultServiceSpec(MemberObject(object, "spec"));
      DefaultServiceStatus(object);
      return;
    case KindId::kIngressClass: {
      Json* spec = object.if_contains("spec");
      Json* parameters = spec == nullptr ? nullptr : FindMember(*spec, "parameters");
      if (parameters != nullptr && parameters->is_object())
        SetDefault(parameters->get_object(), "scope", "Cluster");
      return;
    }
    case KindId::kEndpoints:
      ForEachIn(object, "subsets", [](JsonObject& subset) {
        ForEachIn(subset, "ports", [](JsonObject& port) { SetText(port, "protocol", "TCP"); });
      });
      return;
    case KindId::kEndpointSlice:
      ForEachIn(object, "ports", [](JsonObject& port) {
        SetDefault(port, "name", "");
        SetDefault(port, "protocol", "TCP");
      });
      return;
    case KindId::kNetworkPolicy:
      DefaultNetworkPolicy(MemberObject(object, "spec"));
      return;
    default:
      return;
  }
}

}  // namespace berth::api
