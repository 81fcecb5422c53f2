#include "apiserver/services.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/field_error.h"
#include "api/object.h"
#include "apiserver/objects.h"

namespace berth::apiserver {

namespace {

using api::Json;
using api::JsonArray;
using api::JsonObject;
using api::KindId;

constexpr std::string_view kNone = "None";
// Those that users ask for by number come from the first of a range, what is given from the rest.
constexpr uint32_t kAskedAddresses = 256;
constexpr int64_t kAskedPorts = 86;

bool IsExternalName(const Json& service) {
  return api::TextAt(service, "spec.type") == "ExternalName";
}
bool HasNodePorts(const Json& service) {
  const std::string_view type = api::TextAt(service, "spec.type");
  return type == "NodePort" || type == "LoadBalancer";
}
// Whether its ports are to get one each.
bool WantsNodePorts(const Json& service) {
  const std::string_view type = api::TextAt(service, "spec.type");
  const Json* wish = api::FindPath(service, "spec.allocateLoadBalancerNodePorts");
  const bool declined = wish != nullptr && wish->is_bool() && !wish->get_bool();
  return type == "NodePort" || (type == "LoadBalancer" && !declined);
}
// A load balancer that keeps the clients' addresses asks nodes whether they have pods.
bool WantsHealthPort(const Json& service) {
  return api::TextAt(service, "spec.type") == "LoadBalancer" &&
         api::TextAt(service, "spec.externalTrafficPolicy") == "Local";
}

// The number of an address within the network; nothing for others.
std::optional<uint32_t> AddressOf(std::string_view text) {
  uint32_t address = 0;
  for (int part = 0; part < 4; ++part) {
    uint32_t byte = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), byte);
    if (error != std::errc() || byte > 255) return std::nullopt;
    text.remove_prefix(static_cast<size_t>(end - text.data()));
    address = address << 8 | byte;
    if (part == 3) break;
    if (!text.starts_with('.')) return std::nullopt;
    text.remove_prefix(1);
  }
  if (!text.empty() || address <= kServiceNetwork) return std::nullopt;
  const uint32_t number = address - kServiceNetwork;
  return number < kServiceAddresses - 1 ? std::optional(number) : std::nullopt;
}

std::string TextOf(uint32_t number) {
  const uint32_t address = kServiceNetwork + number;
  return fmt::format("{}.{}.{}.{}", address >> 24, address >> 16 & 0xff, address >> 8 & 0xff,
                     address & 0xff);
}

// What the other Services have.
struct Taken {
  std::set<std::string, std::less<>> addresses;
  std::set<int64_t> ports;
};

void TakePorts(const Json& service, std::set<int64_t>& ports) {
  for (const Json& port : api::ArrayAt(service, "spec.ports")) {
    if (const int64_t number = api::IntegerAt(port, "nodePort"); number != 0) ports.insert(number);
  }
  if (const int64_t health = api::IntegerAt(service, "spec.healthCheckNodePort"); health != 0)
    ports.insert(health);
}

Taken TakenByOthers(const store::Store& store, const Json& service) {
  const std::string_view name = api::TextAt(service, "metadata.name");
  const std::string_view space = api::TextAt(service, "metadata.namespace");
  const std::vector<std::string_view> names = api::SelectableNames(KindId::kService);
  const auto field = [&](const store::StoredObject& object, std::string_view of) {
    const auto at = static_cast<size_t>(std::ranges::find(names, of) - names.begin());
    return at < object.fields.size() ? std::string_view(object.fields[at]) : std::string_view();
  };
  Taken taken;
  store.WalkHead({.table = static_cast<store::Table>(KindId::kService)},
                 [&](const store::ObjectRef& object) {
                   if (object->name == name && object->namespace_name == space) return true;
                   taken.addresses.emplace(field(*object, "spec.clusterIP"));
                   const std::string_view type = field(*object, "spec.type");
                   if (type == "NodePort" || type == "LoadBalancer")
                     TakePorts(Load(*object), taken.ports);
                   return true;
                 });
  return taken;
}

class Allocator {
 public:
  Allocator(const store::Store& store, Prng& prng, Json& service)
      : taken_(TakenByOthers(store, service)), prng_(prng), service_(service) {}

  api::FieldErrors Run() {
    Address();
    if (errors_.empty() && HasNodePorts(service_)) Ports();
    return std::move(errors_);
  }

 private:
  void Address() {
    const std::string wanted(api::TextAt(service_, "spec.clusterIP"));
    if (wanted == kNone) return;
    if (wanted.empty()) {
      const std::optional<std::string> address = FreeAddress();
      if (!address) {
        return Refuse("spec.clusterIPs", Json(JsonArray()), "failed to allocate IP: range is full");
      }
      return SetAddress(*address);
    }
    const Json shown(JsonArray({Json(wanted)}));
    if (!AddressOf(wanted)) {
      return Refuse("spec.clusterIPs", shown,
                    fmt::format("failed to allocate IP {}: the provided network does not match the "
                                "current range",
                                wanted));
    }
    if (taken_.addresses.contains(wanted)) {
      Refuse("spec.clusterIPs", shown,
             fmt::format("failed to allocate IP {}: provided IP is already allocated", wanted));
    }
  }

  std::optional<std::string> FreeAddress() {
    constexpr uint32_t kGiven = kServiceAddresses - 1 - kAskedAddresses;
    const auto start = static_cast<uint32_t>(prng_.Below(kGiven));
    for (uint32_t i = 0; i < kGiven; ++i) {
      std::string text = TextOf(kAskedAddresses + (start + i) % kGiven);
      if (!taken_.addresses.contains(text)) return text;
    }
    for (uint32_t number = 1; number < kAskedAddresses; ++number) {
      std::string text = TextOf(number);
      if (!taken_.addresses.contains(text)) return text;
    }
    return std::nullopt;
  }

  void SetAddress(const std::string& address) {
    JsonObject& spec = api::MemberObject(service_.get_object(), "spec");
    spec["clusterIP"] = address;
    spec["clusterIPs"] = JsonArray({Json(address)});
  }

  void Ports() {
    Json* ports = api::FindPath(service_, "spec.ports");
    JsonArray* list = ports == nullptr ? nullptr : ports->if_array();
    // Two protocols of one Service may share a number.
    std::set<std::pair<int64_t, std::string>> own;
    for (size_t i = 0; list != nullptr && i < list->size(); ++i) {
      const Json& port = (*list)[i];
      const int64_t wanted = api::IntegerAt(port, "nodePort");
      if (wanted == 0) continue;
      std::string field = fmt::format("spec.ports[{}].nodePort", i);
      if (wanted < kNodePortMin || wanted > kNodePortMax) {
        return Refuse(std::move(field), Json(wanted),
                      fmt::format("provided port is not in the valid range. The range of valid "
                                  "ports is {}-{}",
                                  kNodePortMin, kNodePortMax));
      }
      const bool again = !own.emplace(wanted, api::TextAt(port, "protocol")).second;
      if (again || taken_.ports.contains(wanted)) {
        return Refuse(std::move(field), Json(wanted), "provided port is already allocated");
      }
    }
    for (const auto& [number, protocol] : own) taken_.ports.insert(number);
    const bool all = WantsNodePorts(service_);
    for (size_t i = 0; all && list != nullptr && i < list->size(); ++i) {
      if (!(*list)[i].is_object() || api::IntegerAt((*list)[i], "nodePort") != 0) continue;
      const std::optional<int64_t> port = FreePort();
      if (!port) {
        return Refuse(fmt::format("spec.ports[{}].nodePort", i), Json(0), "range is full");
      }
      (*list)[i].get_object()["nodePort"] = *port;
    }
    if (!WantsHealthPort(service_)) return;
    if (api::IntegerAt(service_, "spec.healthCheckNodePort") != 0) return;
    if (const std::optional<int64_t> port = FreePort())
      api::SetPath(service_, "spec.healthCheckNodePort", *port);
  }

  std::optional<int64_t> FreePort() {
    constexpr int64_t kCount = kNodePortMax - kNodePortMin + 1;
    constexpr int64_t kGiven = kCount - kAskedPorts;
    const int64_t start = prng_.Between(0, kGiven - 1);
    for (int64_t i = 0; i < kCount; ++i) {
      const int64_t number = i < kGiven ? kAskedPorts + (start + i) % kGiven : i - kGiven;
      if (taken_.ports.insert(kNodePortMin + number).second) return kNodePortMin + number;
    }
    return std::nullopt;
  }

  void Refuse(std::string field, const Json& value, std::string why) {
    errors_.push_back(api::InvalidJsonField(std::move(field), value, std::move(why)));
  }

  Taken taken_;
  Prng& prng_;
  Json& service_;
  api::FieldErrors errors_;
};

// The first of clusterIPs is clusterIP, whichever stands.
void PairAddresses(JsonObject& spec) {
  const Json* one = api::FindMember(std::as_const(spec), "clusterIP");
  const Json* all = api::FindMember(std::as_const(spec), "clusterIPs");
  const bool has_one = one != nullptr && one->is_string() && !one->get_string().empty();
  const bool has_all = all != nullptr && all->is_array() && !all->get_array().empty();
  if (has_one && !has_all) {
    Json copy = *one;
    spec["clusterIPs"] = JsonArray({std::move(copy)});
  } else if (has_all && !has_one) {
    Json copy = all->get_array()[0];
    spec["clusterIP"] = std::move(copy);
  }
}

// There is IPv4 alone. Who has no selector and no address says nothing of what it is of.
void SetFamilies(Json& service) {
  JsonObject& spec = api::MemberObject(service.get_object(), "spec");
  const bool open = api::TextAt(service, "spec.clusterIP") == kNone &&
                    api::ObjectAt(service, "spec.selector").empty();
  const bool unsaid = api::FindMember(std::as_const(spec), "ipFamilyPolicy") == nullptr;
  if (unsaid) spec["ipFamilyPolicy"] = open ? "RequireDualStack" : "SingleStack";
  if (!api::ArrayAt(service, "spec.ipFamilies").empty()) return;
  JsonArray families = {Json("IPv4")};
  if (open && spec["ipFamilyPolicy"] != "SingleStack") families.emplace_back("IPv6");
  spec["ipFamilies"] = std::move(families);
}

// Takes a member of the old spec where the new one says nothing.
void Keep(const Json& old, JsonObject& spec, std::string_view member) {
  const Json* kept = api::FindMember(old, member);
  const Json* said = api::FindMember(std::as_const(spec), member);
  const bool unsaid = said == nullptr || (said->is_string() && said->get_string().empty()) ||
                      (said->is_array() && said->get_array().empty());
  if (kept != nullptr && unsaid) spec[member] = *kept;
}

// Drops a member that is as it was.
void DropKept(const Json& old, JsonObject& spec, std::string_view member) {
  const Json* had = api::FindMember(old, member);
  const Json* has = api::FindMember(std::as_const(spec), member);
  if (has != nullptr && had != nullptr && api::SameJson(*had, *has))
    api::RemoveMember(spec, member);
}

// The node ports of the old ports of the same number and protocol, where there is none.
void KeepNodePorts(const JsonArray& old, JsonArray& ports) {
  std::set<int64_t> used;
  for (const Json& port : ports) used.insert(api::IntegerAt(port, "nodePort"));
  for (Json& port : ports) {
    if (!port.is_object() || api::IntegerAt(port, "nodePort") != 0) continue;
    for (const Json& before : old) {
      const int64_t number = api::IntegerAt(before, "nodePort");
      if (number == 0 || used.contains(number) ||
          api::IntegerAt(before, "port") != api::IntegerAt(port, "port") ||
          api::TextAt(before, "protocol") != api::TextAt(port, "protocol")) {
        continue;
      }
      port.get_object()["nodePort"] = number;
      used.insert(number);
      break;
    }
  }
}

void DropNodePorts(const JsonArray& old, JsonArray& ports) {
  std::set<int64_t> had;
  for (const Json& port : old) had.insert(api::IntegerAt(port, "nodePort"));
  for (Json& port : ports) {
    if (port.is_object() && had.contains(api::IntegerAt(port, "nodePort")))
      api::RemoveMember(port.get_object(), "nodePort");
  }
}

}  // namespace

void KeepAllocated(const Json& old, Json& service) {
  if (!service.is_object()) return;
  const Json& before = api::OrEmptyObject(api::FindMember(old, "spec"));
  JsonObject& spec = api::MemberObject(service.get_object(), "spec");
  // Found anew each time: adding and removing members moves it.
  const auto ports = [&]() -> JsonArray* {
    Json* found = spec.if_contains("ports");
    return found == nullptr ? nullptr : found->if_array();
  };
  const JsonArray& old_ports = api::ArrayAt(before, "ports");
  if (!IsExternalName(old) && !IsExternalName(service)) {
    for (const std::string_view member :
         {"clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"})
      Keep(before, spec, member);
  }
  if (HasNodePorts(old) && HasNodePorts(service) && ports() != nullptr)
    KeepNodePorts(old_ports, *ports());
  if (WantsHealthPort(old) && WantsHealthPort(service)) Keep(before, spec, "healthCheckNodePort");
  PairAddresses(spec);
  // What the old type had of its own goes with it, unless it was asked for anew.
  if (!IsExternalName(old) && IsExternalName(service)) {
    for (const std::string_view member :
         {"clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"})
      DropKept(before, spec, member);
  }
  if (HasNodePorts(old) && !HasNodePorts(service)) {
    if (ports() != nullptr) DropNodePorts(old_ports, *ports());
    DropKept(before, spec, "externalTrafficPolicy");
  }
  if (WantsHealthPort(old) && !WantsHealthPort(service)) {
    DropKept(before, spec, "healthCheckNodePort");
  }
  if (api::TextAt(old, "spec.type") == "LoadBalancer" &&
      api::TextAt(service, "spec.type") != "LoadBalancer") {
    DropKept(before, spec, "allocateLoadBalancerNodePorts");
    DropKept(before, spec, "loadBalancerClass");
  }
}

Outcome<void> AllocateService(const store::Store& store, Prng& prng, Subject subject,
                              Json& service) {
  if (IsExternalName(service)) {
    // Upstream keeps it, and tells nobody of it.
    api::RemovePath(service, "spec.internalTrafficPolicy");
    return {};
  }
  JsonObject& spec = api::MemberObject(service.get_object(), "spec");
  PairAddresses(spec);
  const api::FieldErrors errors = Allocator(store, prng, service).Run();
  if (!errors.empty()) return Invalid(subject, errors);
  SetFamilies(service);
  return {};
}

}  // namespace berth::apiserver
