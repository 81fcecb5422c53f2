#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/json.h"
#include "api/types.h"

// What the controllers read of Services, Endpoints and EndpointSlices, and how the latter two are
// written. Pure. Cost: linear in the object. What is malformed is read as far as it goes: the
// server checked it.
namespace berth::controllers {

struct ServicePort {
  std::string name;
  std::string protocol;
  std::optional<std::string> app_protocol;
  int64_t target = 0;
  std::string target_name;  // Instead of the number when not empty.
  bool operator==(const ServicePort&) const = default;
};

struct ServiceFacts {
  bool selects = false;  // Has a selector; without one its endpoints are somebody else's to keep.
  bool external = false;
  bool portless = false;  // Headless ("None"), so that it needs no ports.
  bool headless = false;  // Has no address.
  bool publishes_unready = false;
  std::string traffic_distribution;
  std::vector<std::string> families;  // "IPv4", "IPv6": never empty.
  std::vector<ServicePort> ports;
  api::StringMap selector;
  api::StringMap annotations;
  bool operator==(const ServiceFacts&) const = default;
};

// Of Endpoints and EndpointSlices.
struct EndpointPort {
  std::optional<std::string> name;
  std::optional<int64_t> port;
  std::string protocol;
  std::optional<std::string> app_protocol;
  auto operator<=>(const EndpointPort&) const = default;
};

struct ObjectTarget {
  std::string kind;
  std::string namespace_name;
  std::string name;
  std::string uid;
  auto operator<=>(const ObjectTarget&) const = default;
};

// One of an EndpointSlice.
struct Endpoint {
  std::vector<std::string> addresses;
  std::optional<bool> ready;
  std::optional<bool> serving;
  std::optional<bool> terminating;
  std::string hostname;
  std::optional<ObjectTarget> target;
  std::string node;
  std::string zone;
  // Hints.
  std::vector<std::string> for_zones;
  std::vector<std::string> for_nodes;
  bool operator==(const Endpoint&) const = default;
};

struct SliceFacts {
  std::string address_type;
  std::vector<EndpointPort> ports;
  std::vector<Endpoint> endpoints;
  api::StringMap annotations;
};

// One of Endpoints.
struct EndpointAddress {
  std::string ip;
  std::string hostname;
  std::string node;
  std::optional<ObjectTarget> target;
  bool operator==(const EndpointAddress&) const = default;
};

struct EndpointSubset {
  std::vector<EndpointAddress> ready;
  std::vector<EndpointAddress> unready;
  std::vector<EndpointPort> ports;
  bool operator==(const EndpointSubset&) const = default;
};

struct EndpointsFacts {
  std::vector<EndpointSubset> subsets;
  api::StringMap annotations;
};

[[nodiscard]] ServiceFacts ReadService(const api::Json& service);
[[nodiscard]] SliceFacts ReadSlice(const api::Json& slice);
[[nodiscard]] EndpointsFacts ReadEndpoints(const api::Json& endpoints);

[[nodiscard]] bool IsIpv6(std::string_view address);

// `[{"name":"","port":80,"protocol":"TCP"}]`
[[nodiscard]] std::string PortsText(const std::vector<EndpointPort>& ports);
[[nodiscard]] std::string EndpointsText(const std::vector<Endpoint>& endpoints);
[[nodiscard]] std::string SubsetsText(const std::vector<EndpointSubset>& subsets);

}  // namespace berth::controllers
