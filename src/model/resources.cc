#include "model/resources.h"

#include <algorithm>
#include <limits>

#include "base/check.h"
#include "base/limits.h"

namespace berth::model {

ResourceTable::ResourceTable() {
  CHECK(names_.Intern("cpu") == kCpu);
  CHECK(names_.Intern("memory") == kMemory);
  CHECK(names_.Intern("ephemeral-storage") == kEphemeralStorage);
  CHECK(names_.Intern("pods") == kPods);
  CHECK(names_.Intern("berth.dev/gpu-milli") == kGpuMilli);
}

Result<ResourceId> ResourceTable::Intern(std::string_view name) {
  if (const ResourceId found = names_.Find(name); found.valid()) return found;
  if (names_.size() >= limits::kResourceKindsMax) {
    return Fail(ErrorCode::kTooLarge,
                "resource " + std::string(name) + ": the cluster has more than " +
                    std::to_string(limits::kResourceKindsMax) + " kinds of resources");
  }
  return names_.Intern(name);
}

uint32_t CountConflicts(std::span<const HostPort> some, std::span<const HostPort> others) {
  uint32_t count = 0;
  for (const HostPort& a : some) {
    for (const HostPort& b : others) count += Conflict(a, b) ? 1 : 0;
  }
  return count;
}

BundleId BundleTable::Intern(std::span<const ResourceAmount> amounts,
                             std::span<const HostPort> ports, BundleId asked) {
  std::vector<Packed> packed;
  packed.reserve(amounts.size() + 1);
  for (const ResourceAmount& a : amounts) {
    CHECK_GE(a.amount, 0);
    CHECK_LE(a.amount, limits::kAmountMax);
    if (a.amount != 0) packed.push_back(Packed{.resource = a.resource.value, .amount = a.amount});
  }
  std::ranges::sort(packed, {}, &Packed::resource);
  size_t kept = 0;
  for (const Packed& p : packed) {
    if (kept > 0 && packed[kept - 1].resource == p.resource) {
      packed[kept - 1].amount = std::min(packed[kept - 1].amount + p.amount, limits::kAmountMax);
    } else {
      packed[kept++] = p;
    }
  }
  packed.resize(kept);
  std::vector<HostPort> sorted(ports.begin(), ports.end());
  std::ranges::sort(sorted);
  const auto repeated = std::ranges::unique(sorted);
  sorted.erase(repeated.begin(), repeated.end());
  for (const HostPort& port : sorted) {
    packed.push_back(
        {.resource = -1 - int64_t{port.port},
         .amount = static_cast<Amount>(uint64_t{port.protocol.value} << 32 | port.ip.value)});
  }
  constexpr int64_t kAskedMark = std::numeric_limits<int64_t>::min();
  if (asked.valid()) packed.push_back({.resource = kAskedMark, .amount = asked.value});
  const BundleId id = table_.Intern(packed);
  if (asked.valid() && id.value >= asked_.size()) {
    asked_.resize(id.value + 1);
    asked_[id.value] = asked;
  }
  if (id.value + 1 == offsets_.size()) {
    for (const Packed& p : std::span(packed).first(kept)) {
      amounts_.push_back(
          {.resource = ResourceId{static_cast<uint32_t>(p.resource)}, .amount = p.amount});
    }
    offsets_.push_back(static_cast<uint32_t>(amounts_.size()));
    ports_.insert(ports_.end(), sorted.begin(), sorted.end());
    port_offsets_.push_back(static_cast<uint32_t>(ports_.size()));
  }
  return id;
}

std::span<const HostPort> BundleTable::PortsOf(BundleId id) const {
  CHECK_LT(id.value + 1, port_offsets_.size());
  return std::span<const HostPort>(ports_).subspan(
      port_offsets_[id.value], port_offsets_[id.value + 1] - port_offsets_[id.value]);
}

Amount BundleTable::AmountOf(BundleId id, ResourceId resource) const {
  for (const ResourceAmount& a : View(id)) {
    if (a.resource == resource) return a.amount;
  }
  return 0;
}

void AmountMatrix::Resize(uint32_t resources_count, uint32_t rows_count) {
  CHECK_GE(rows_count, rows_);
  CHECK_GE(resources_count, resources_);
  if (rows_count > stride_) {
    const uint32_t stride = std::max({rows_count, stride_ * 2, 8u});
    std::vector<Amount> wider(size_t{resources_count} * stride);
    for (uint32_t r = 0; r < resources_; ++r) {
      std::copy_n(data_.begin() + std::ptrdiff_t{r} * stride_, rows_,
                  wider.begin() + std::ptrdiff_t{r} * stride);
    }
    data_ = std::move(wider);
    stride_ = stride;
  } else if (resources_count > resources_) {
    data_.resize(size_t{resources_count} * stride_);
  }
  resources_ = resources_count;
  rows_ = rows_count;
}

void AmountMatrix::AddTo(Hasher& hasher) const {
  hasher.Add(resources_).Add(rows_);
  for (uint32_t r = 0; r < resources_; ++r) {
    const std::span<const Amount> column = Column(ResourceId{r});
    hasher.Add(std::string_view(reinterpret_cast<const char*>(column.data()), column.size_bytes()));
  }
}

}  // namespace berth::model
