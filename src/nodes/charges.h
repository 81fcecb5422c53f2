#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "api/types.h"
#include "base/hash.h"

// The node's own truth of what its pods take, kept apart from the scheduler's: what does not fit is
// refused whoever bound it.
namespace berth::nodes {

// Why a node refuses a pod, as the kubelet words it.
struct Misfit {
  std::string reason;  // e.g. "OutOfcpu".
  std::string message;
};

// A copyable value. Every operation is O(resources) but Allocate, O(pods of the network / 64).
class NodeCharges {
 public:
  // Replaces what the node offers; what is charged stays.
  void SetAllocatable(api::ResourceList allocatable) { allocatable_ = std::move(allocatable); }

  // The first resource that is short, pods before the others, those by name; nothing when the pod
  // fits. Extended resources that the node does not know are not checked, as by the kubelet.
  [[nodiscard]] std::optional<Misfit> Check(const api::ResourceList& requests) const;

  void Charge(const api::ResourceList& requests);
  // REQUIRES: the same requests were charged.
  void Release(const api::ResourceList& requests);
  [[nodiscard]] int64_t pods() const { return pods_; }
  [[nodiscard]] int64_t used(std::string_view resource) const;

  // The lowest free offset of a network of `size` addresses, taken; 0 when there is none. The
  // first address and the node's own (1) are never given.
  uint32_t AllocateAddress(uint32_t size);
  // Takes an offset that is known to be in use; false when it was taken before.
  bool TakeAddress(uint32_t offset);
  void FreeAddress(uint32_t offset);

  void AddTo(Hasher& hasher) const;

 private:
  api::ResourceList allocatable_;
  api::ResourceList used_;
  int64_t pods_ = 0;
  std::vector<uint64_t> addresses_;  // A bit per taken offset.
};

}  // namespace berth::nodes
