#include "nodes/charges.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "base/check.h"

namespace berth::nodes {
namespace {

Misfit Short(std::string_view resource, int64_t requested, int64_t used, int64_t capacity) {
  return {.reason = fmt::format("OutOf{}", resource),
          .message = fmt::format("Pod was rejected: Node didn't have enough resource: {}, "
                                 "requested: {}, used: {}, capacity: {}",
                                 resource, requested, used, capacity)};
}

bool IsNative(std::string_view resource) {
  return resource.find('/') == std::string_view::npos ||
         resource.find("kubernetes.io/") != std::string_view::npos;
}

}  // namespace

int64_t NodeCharges::used(std::string_view resource) const {
  return api::Find(used_, resource).value_or(0);
}

std::optional<Misfit> NodeCharges::Check(const api::ResourceList& requests) const {
  const int64_t pods_max = api::Find(allocatable_, "pods").value_or(0);
  if (pods_ + 1 > pods_max) return Short("pods", 1, pods_, pods_max);
  for (const api::ResourceAmount& request : requests) {
    const std::optional<int64_t> capacity = api::Find(allocatable_, request.name);
    if (request.amount == 0 || (!capacity.has_value() && !IsNative(request.name))) continue;
    const int64_t taken = used(request.name);
    if (request.amount > capacity.value_or(0) - taken) {
      return Short(request.name, request.amount, taken, capacity.value_or(0));
    }
  }
  return std::nullopt;
}

void NodeCharges::Charge(const api::ResourceList& requests) {
  ++pods_;
  for (const api::ResourceAmount& request : requests) {
    const auto at = std::ranges::lower_bound(used_, request.name, {}, &api::ResourceAmount::name);
    if (at != used_.end() && at->name == request.name) {
      at->amount += request.amount;
    } else {
      used_.insert(at, request);
    }
  }
}

void NodeCharges::Release(const api::ResourceList& requests) {
  CHECK(pods_ > 0);
  --pods_;
  for (const api::ResourceAmount& request : requests) {
    const auto at = std::ranges::lower_bound(used_, request.name, {}, &api::ResourceAmount::name);
    CHECK(at != used_.end());
    CHECK(at->name == request.name);
    CHECK(at->amount >= request.amount);
    at->amount -= request.amount;
  }
}

uint32_t NodeCharges::AllocateAddress(uint32_t size) {
  if (addresses_.empty()) addresses_.push_back(3);
  for (size_t word = 0; word < size / 64 + 1; ++word) {
    if (word == addresses_.size()) addresses_.push_back(0);
    if (addresses_[word] == ~uint64_t{0}) continue;
    const auto offset =
        static_cast<uint32_t>(word * 64) + static_cast<uint32_t>(std::countr_one(addresses_[word]));
    // The last address is the network's broadcast.
    if (offset + 1 >= size) return 0;
    CHECK(TakeAddress(offset));
    return offset;
  }
  return 0;
}

bool NodeCharges::TakeAddress(uint32_t offset) {
  const size_t word = offset / 64;
  if (addresses_.empty()) addresses_.push_back(3);
  if (word >= addresses_.size()) addresses_.resize(word + 1);
  const uint64_t bit = uint64_t{1} << (offset % 64);
  if ((addresses_[word] & bit) != 0) return false;
  addresses_[word] |= bit;
  return true;
}

void NodeCharges::FreeAddress(uint32_t offset) {
  CHECK(offset / 64 < addresses_.size());
  const uint64_t bit = uint64_t{1} << (offset % 64);
  CHECK((addresses_[offset / 64] & bit) != 0);
  addresses_[offset / 64] &= ~bit;
}

void NodeCharges::AddTo(Hasher& hasher) const {
  hasher.Add(pods_).Add(allocatable_.size());
  for (const auto& amount : allocatable_) hasher.Add(amount.name).Add(amount.amount);
  hasher.Add(used_.size());
  for (const auto& amount : used_) hasher.Add(amount.name).Add(amount.amount);
  hasher.Add(addresses_.size());
  for (const uint64_t word : addresses_) hasher.Add(word);
}

}  // namespace berth::nodes
