#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "base/hash.h"
#include "base/result.h"
#include "model/ids.h"
#include "model/intern.h"

namespace berth::model {

// The resources that every node has, at fixed ids; extended resources and huge pages follow as they
// are met.
inline constexpr ResourceId kCpu{0};               // Milli-cores.
inline constexpr ResourceId kMemory{1};            // Bytes.
inline constexpr ResourceId kEphemeralStorage{2};  // Bytes.
inline constexpr ResourceId kPods{3};              // Pods; a pod asks for 1.
inline constexpr ResourceId kGpuMilli{4};          // berth.dev/gpu-milli: thousandths of devices.
inline constexpr uint32_t kFixedResourcesCount = 5;

// One requested or offered amount.
struct ResourceAmount {
  ResourceId resource;
  Amount amount = 0;
  auto operator<=>(const ResourceAmount&) const = default;
};

// A port of a node that a pod takes for itself: of every IP where that is invalid.
struct HostPort {
  uint32_t port = 0;
  NameId protocol;
  NameId ip;
  auto operator<=>(const HostPort&) const = default;
};
// Whether no node can give both away.
[[nodiscard]] constexpr bool Conflict(const HostPort& a, const HostPort& b) {
  return a.port == b.port && a.protocol == b.protocol &&
         (!a.ip.valid() || !b.ip.valid() || a.ip == b.ip);
}
// How many pairs of one of each conflict. O(product of the two), which are a few.
[[nodiscard]] uint32_t CountConflicts(std::span<const HostPort> some,
                                      std::span<const HostPort> others);

class ResourceTable {
 public:
  ResourceTable();
  // Fails with kTooLarge when the cluster has more than
  // limits::kResourceKindsMax kinds of resource.
  Result<ResourceId> Intern(std::string_view name);
  [[nodiscard]] ResourceId Find(std::string_view name) const { return names_.Find(name); }
  [[nodiscard]] std::string_view Name(ResourceId id) const { return names_.View(id); }
  [[nodiscard]] uint32_t size() const { return names_.size(); }
  void AddTo(Hasher& hasher) const { names_.AddTo(hasher); }

 private:
  StringTable<ResourceId> names_;
};

// Interned request vectors: sorted by resource, one amount each, no zeros; and the host ports that
// go with them, so that whoever is charged the one has the other.
//
// A profile may have pods placed that ask for less than they are charged: of such a bundle another
// one is what is asked for, and what is charged beyond it may be more than a node has.
class BundleTable {
 public:
  // Sums repeated resources, drops zeros and repeated ports. REQUIRES: amounts within [0,
  // limits::kAmountMax]; `asked`, if it is valid, is what is asked for.
  BundleId Intern(std::span<const ResourceAmount> amounts, std::span<const HostPort> ports = {},
                  BundleId asked = {});
  // What filters look at, and decisions may not give away twice; nearly always the bundle itself.
  [[nodiscard]] BundleId Asked(BundleId id) const {
    return id.value < asked_.size() && asked_[id.value].valid() ? asked_[id.value] : id;
  }
  // Valid until the next Intern. An invalid id is the empty bundle.
  [[nodiscard]] std::span<const ResourceAmount> View(BundleId id) const {
    if (!id.valid()) return {};
    CHECK_LT(id.value + 1, offsets_.size());
    const uint32_t first = offsets_[id.value];
    return std::span<const ResourceAmount>(amounts_).subspan(first, offsets_[id.value + 1] - first);
  }
  [[nodiscard]] Amount AmountOf(BundleId id, ResourceId resource) const;
  // Valid until the next Intern; of an invalid id none.
  [[nodiscard]] std::span<const HostPort> Ports(BundleId id) const {
    // Nearly always nobody has any.
    return ports_.empty() || !id.valid() ? std::span<const HostPort>() : PortsOf(id);
  }
  [[nodiscard]] uint32_t size() const { return table_.size(); }
  void AddTo(Hasher& hasher) const { table_.AddTo(hasher); }

 private:
  // ResourceAmount without padding; or a HostPort, where `resource` is below 0; or what is asked
  // for, at the end.
  struct Packed {
    int64_t resource = 0;
    Amount amount = 0;
    bool operator==(const Packed&) const = default;
  };
  [[nodiscard]] std::span<const HostPort> PortsOf(BundleId id) const;
  InternTable<Packed, BundleId> table_;
  // View's storage: the same content as ResourceAmounts, in order of ids.
  std::vector<ResourceAmount> amounts_;
  std::vector<uint32_t> offsets_ = {0};
  // Likewise the ports.
  std::vector<HostPort> ports_;
  std::vector<uint32_t> port_offsets_ = {0};
  std::vector<BundleId> asked_;  // By id; as long as the last one that is another's.
};

// One column of amounts per resource over growing rows, in one allocation: Column(r)[row].
class AmountMatrix {
 public:
  // Makes room; new amounts are zero. Amortised O(1) per row and resource.
  void Resize(uint32_t resources_count, uint32_t rows_count);
  [[nodiscard]] uint32_t rows() const { return rows_; }
  [[nodiscard]] uint32_t resources() const { return resources_; }
  [[nodiscard]] std::span<const Amount> Column(ResourceId r) const {
    return std::span<const Amount>(data_).subspan(size_t{r.value} * stride_, rows_);
  }
  [[nodiscard]] Amount at(ResourceId r, uint32_t row) const {
    return data_[size_t{r.value} * stride_ + row];
  }
  Amount& at(ResourceId r, uint32_t row) { return data_[size_t{r.value} * stride_ + row]; }
  void AddTo(Hasher& hasher) const;

 private:
  std::vector<Amount> data_;
  uint32_t resources_ = 0;
  uint32_t rows_ = 0;
  uint32_t stride_ = 0;
};

}  // namespace berth::model
