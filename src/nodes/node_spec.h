#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "api/types.h"
#include "base/time.h"

// What a simulated node says of itself, and the documents that say it.
namespace berth::nodes {

struct NodeSpec {
  std::string name;
  api::StringMap labels;  // hostname, os and arch are added.
  api::StringMap annotations;
  std::vector<api::Taint> taints;
  api::StringMap capacity;     // Quantities as Kubernetes writes them, sorted by resource.
  api::StringMap allocatable;  // As capacity when empty.
};

// A row of equal nodes.
struct NodeTemplate {
  std::string prefix = "node-";
  int64_t first = 0;
  // Nodes are dealt to so many zones in turn; none without.
  int64_t zones = 3;
  api::StringMap labels;
  api::StringMap annotations;
  std::vector<api::Taint> taints;
  api::StringMap capacity = {
      {"cpu", "32"}, {"ephemeral-storage", "256Gi"}, {"memory", "128Gi"}, {"pods", "110"}};
  // With these, the nodes have the extended resource berth.dev/gpu-milli and the label
  // berth.dev/gpu-model.
  int64_t gpus = 0;
  std::string gpu_model = "A100";
};

// Nodes "node-0000", "node-0001", ...: names sort as they count.
[[nodiscard]] std::vector<NodeSpec> MakeNodes(const NodeTemplate& pattern, int64_t count);

// Where a node is: its own address and the network of its pods.
struct NodeNetwork {
  uint32_t host = 0;       // IPv4, host byte order.
  uint32_t pods = 0;       // First address of the pod network.
  uint32_t pods_bits = 8;  // The network holds 2^pods_bits addresses.
};

// Of 10.0.0.0/8, what is the Services': 10.96.0.0/16, as the server gives them addresses.
inline constexpr uint32_t kServicesSize = 1u << 16;

// The networks of the index-th node: 10.0.0.0/8 but for Services is dealt out to pods,
// 172.16.0.0/12 to nodes. REQUIRES: 2^pods_bits * nodes fit into it.
[[nodiscard]] NodeNetwork NetworkOf(uint32_t index, uint32_t pods_bits);

[[nodiscard]] std::string Ipv4(uint32_t address);
[[nodiscard]] std::string Cidr(const NodeNetwork& network);
// The first address and the bits of an IPv4 network like "10.0.3.0/24"; false when it is none.
[[nodiscard]] bool ParseCidr(std::string_view text, NodeNetwork& network);

// The Node object that registers the node, its status in it.
[[nodiscard]] std::string NodeDocument(const NodeSpec& spec, const NodeNetwork& network,
                                       std::string_view kubelet_version, Instant now);

// What others gave a node or took from it: of the extended resources that the spec does not name,
// allocatable is to be as capacity, as pkg/kubelet/nodestatus of Kubernetes 1.36 has it. The member
// "allocatable" of a patch that makes it so; empty when it is.
[[nodiscard]] std::string AllocatableChange(const NodeSpec& spec, const api::Node& node);

// The status member of a patch that says the node is ready. Capacity stays what it is: others may
// have added extended resources. `change` is an AllocatableChange.
[[nodiscard]] std::string ReadyStatus(const std::vector<api::NodeCondition>& known,
                                      std::string_view change, Instant now);

}  // namespace berth::nodes
