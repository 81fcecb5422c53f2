#include "nodes/node_spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <iterator>

#include "api/validate_common.h"
#include "base/check.h"
#include "base/hash.h"
#include "base/limits.h"
#include "client/request.h"

namespace berth::nodes {
namespace {

using client::AppendJsonString;

constexpr uint32_t kPodNetwork = 10u << 24;                    // 10.0.0.0
constexpr uint64_t kServicesOffset = 96u << 16;                // 10.96.0.0, within it.
constexpr uint32_t kHostNetwork = (172u << 24) | (16u << 16);  // 172.16.0.0
static_assert(limits::kNodesMax < (1 << 20) - 2, "172.16.0.0/12 holds an address for each node");

struct ConditionFacts {
  std::string_view type;
  std::string_view status;
  std::string_view reason;
  std::string_view message;
};
constexpr std::array<ConditionFacts, 4> kConditions{{
    {"MemoryPressure", "False", "KubeletHasSufficientMemory", "the node has memory to spare"},
    {"DiskPressure", "False", "KubeletHasNoDiskPressure", "the node has disk to spare"},
    {"PIDPressure", "False", "KubeletHasSufficientPID", "the node has process ids to spare"},
    {"Ready", "True", "KubeletReady", "the simulated kubelet runs"},
}};

void Set(api::StringMap& map, std::string key, std::string value) {
  const auto at =
      std::ranges::lower_bound(map, key, {}, &std::pair<std::string, std::string>::first);
  if (at != map.end() && at->first == key) {
    at->second = std::move(value);
  } else {
    map.insert(at, {std::move(key), std::move(value)});
  }
}

void AppendMap(std::string& out, std::string_view name, const api::StringMap& map) {
  AppendJsonString(out, name);
  out += ":{";
  for (const auto& [key, value] : map) {
    AppendJsonString(out, key);
    out += ':';
    AppendJsonString(out, value);
    out += ',';
  }
  if (out.back() == ',') out.pop_back();
  out += '}';
}

void AppendConditions(std::string& out, const std::vector<api::NodeCondition>& known, Instant now) {
  out += R"("conditions":[)";
  const std::string time = client::SecondsTime(now);
  for (const ConditionFacts& facts : kConditions) {
    const auto at = std::ranges::find(known, facts.type, &api::NodeCondition::type);
    const bool kept = at != known.end() && at->status == facts.status;
    fmt::format_to(std::back_inserter(out),
                   R"({{"type":"{}","status":"{}","reason":"{}","message":"{}",)"
                   R"("lastHeartbeatTime":"{}","lastTransitionTime":"{}"}},)",
                   facts.type, facts.status, facts.reason, facts.message, time,
                   kept ? client::SecondsTime(at->transition) : time);
  }
  out.back() = ']';
}

void AppendTaints(std::string& out, const std::vector<api::Taint>& taints) {
  if (taints.empty()) return;
  out += R"(,"taints":[)";
  for (const api::Taint& taint : taints) {
    out += R"({"key":)";
    AppendJsonString(out, taint.key);
    if (!taint.value.empty()) {
      out += R"(,"value":)";
      AppendJsonString(out, taint.value);
    }
    out += R"(,"effect":)";
    AppendJsonString(out, taint.effect);
    out += "},";
  }
  out.back() = ']';
}

}  // namespace

std::vector<NodeSpec> MakeNodes(const NodeTemplate& pattern, int64_t count) {
  CHECK(count >= 0);
  std::vector<NodeSpec> nodes;
  nodes.reserve(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    const int64_t number = pattern.first + i;
    NodeSpec node{.name = fmt::format("{}{:04}", pattern.prefix, number),
                  .labels = pattern.labels,
                  .annotations = pattern.annotations,
                  .taints = pattern.taints,
                  .capacity = pattern.capacity};
    if (pattern.zones > 0) {
      Set(node.labels, "topology.kubernetes.io/zone",
          fmt::format("zone-{}", number % pattern.zones));
    }
    if (pattern.gpus > 0) {
      Set(node.labels, "berth.dev/gpu-model", pattern.gpu_model);
      Set(node.capacity, "berth.dev/gpu-milli", std::to_string(pattern.gpus * 1000));
    }
    nodes.push_back(std::move(node));
  }
  return nodes;
}

NodeNetwork NetworkOf(uint32_t index, uint32_t pods_bits) {
  CHECK(pods_bits >= 2);
  CHECK(pods_bits <= 16);
  uint64_t offset = uint64_t{index} << pods_bits;
  if (offset >= kServicesOffset) offset += kServicesSize;
  CHECK(offset < (1u << 24));
  return {.host = kHostNetwork + 2 + index,
          .pods = kPodNetwork + static_cast<uint32_t>(offset),
          .pods_bits = pods_bits};
}

std::string Ipv4(uint32_t address) {
  return fmt::format("{}.{}.{}.{}", address >> 24, (address >> 16) & 255, (address >> 8) & 255,
                     address & 255);
}

std::string Cidr(const NodeNetwork& network) {
  return fmt::format("{}/{}", Ipv4(network.pods), 32 - network.pods_bits);
}

bool ParseCidr(std::string_view text, NodeNetwork& network) {
  std::array<uint32_t, 5> parts{};
  const char* at = text.data();
  const char* const end = text.data() + text.size();
  for (size_t i = 0; i < parts.size(); ++i) {
    const auto [next, error] = std::from_chars(at, end, parts[i]);
    if (error != std::errc() || parts[i] > (i == 4 ? 32u : 255u)) return false;
    if (i == 4) {
      if (next != end) return false;
      break;
    }
    if (next == end || *next != (i == 3 ? '/' : '.')) return false;
    at = next + 1;
  }
  const uint32_t bits = 32 - parts[4];
  if (bits < 2 || bits > 16) return false;
  network.pods = (parts[0] << 24) | (parts[1] << 16) | (parts[2] << 8) | parts[3];
  network.pods_bits = bits;
  return true;
}

std::string NodeDocument(const NodeSpec& spec, const NodeNetwork& network,
                         std::string_view kubelet_version, Instant now) {
  api::StringMap labels = spec.labels;
  Set(labels, "kubernetes.io/hostname", spec.name);
  Set(labels, "kubernetes.io/os", "linux");
  Set(labels, "kubernetes.io/arch", "amd64");
  Set(labels, "beta.kubernetes.io/os", "linux");
  Set(labels, "beta.kubernetes.io/arch", "amd64");
  std::string out = R"({"apiVersion":"v1","kind":"Node","metadata":{"name":)";
  AppendJsonString(out, spec.name);
  out += ',';
  AppendMap(out, "labels", labels);
  if (!spec.annotations.empty()) {
    out += ',';
    AppendMap(out, "annotations", spec.annotations);
  }
  fmt::format_to(std::back_inserter(out), R"(}},"spec":{{"podCIDR":"{0}","podCIDRs":["{0}"])",
                 Cidr(network));
  AppendTaints(out, spec.taints);
  out += R"(},"status":{)";
  AppendMap(out, "capacity", spec.capacity);
  out += ',';
  AppendMap(out, "allocatable", spec.allocatable.empty() ? spec.capacity : spec.allocatable);
  out += ',';
  AppendConditions(out, {}, now);
  fmt::format_to(std::back_inserter(out),
                 R"(,"addresses":[{{"type":"InternalIP","address":"{}"}},)"
                 R"({{"type":"Hostname","address":"{}"}}],)",
                 Ipv4(network.host), spec.name);
  const uint64_t identity = HashOf(spec.name);
  fmt::format_to(
      std::back_inserter(out),
      R"("daemonEndpoints":{{"kubeletEndpoint":{{"Port":10250}}}},"nodeInfo":{{"machineID":"{0:016x}",)"
      R"("systemUUID":"{0:016x}","bootID":"{0:016x}","kernelVersion":"simulated",)"
      R"("osImage":"berth simulated node","containerRuntimeVersion":"berth://simulated",)"
      R"("kubeletVersion":"{1}","kubeProxyVersion":"","operatingSystem":"linux",)"
      R"("architecture":"amd64"}}}}}})",
      identity, kubelet_version);
  return out;
}

std::string AllocatableChange(const NodeSpec& spec, const api::Node& node) {
  const auto is_others = [&](std::string_view name) {
    const auto names_it = [&](const api::StringMap& amounts) {
      return std::ranges::any_of(amounts, [&](const auto& amount) { return amount.first == name; });
    };
    return api::rules::IsExtendedResource(name) && !names_it(spec.capacity) &&
           !names_it(spec.allocatable);
  };
  std::string out;
  const auto add = [&](std::string_view name, std::string_view amount) {
    out += out.empty() ? R"("allocatable":{)" : ",";
    AppendJsonString(out, name);
    out += ':';
    out += amount;
  };
  for (const auto& amount : node.capacity) {
    if (is_others(amount.name) && api::Find(node.allocatable, amount.name) != amount.amount) {
      add(amount.name, fmt::format(R"("{}")", amount.amount));
    }
  }
  for (const auto& amount : node.allocatable) {
    if (is_others(amount.name) && !api::Find(node.capacity, amount.name)) add(amount.name, "null");
  }
  if (!out.empty()) out += '}';
  return out;
}

std::string ReadyStatus(const std::vector<api::NodeCondition>& known, std::string_view change,
                        Instant now) {
  std::string out = "{";
  if (!change.empty()) {
    out += change;
    out += ',';
  }
  AppendConditions(out, known, now);
  out += '}';
  return out;
}

}  // namespace berth::nodes
