#pragma once

#include <cstdint>
#include <vector>

#include "base/hash.h"
#include "model/ids.h"

namespace berth::model {

// What happened to a node, as a set of bits. Each kind names what it can lift (cycle/wake.h).
using TouchKinds = uint16_t;
// Amounts or devices came back, or a reservation ended.
inline constexpr TouchKinds kTouchFreed = 1 << 0;
// Amounts or devices were charged, or capacity shrank.
inline constexpr TouchKinds kTouchTaken = 1 << 1;
// The node came to exist (or another of its name did).
inline constexpr TouchKinds kTouchAdded = 1 << 2;
inline constexpr TouchKinds kTouchRemoved = 1 << 3;
inline constexpr TouchKinds kTouchLabels = 1 << 4;
inline constexpr TouchKinds kTouchTaints = 1 << 5;
inline constexpr TouchKinds kTouchUnschedulable = 1 << 6;
inline constexpr TouchKinds kTouchFeatures = 1 << 7;
inline constexpr TouchKinds kTouchDevices = 1 << 8;  // Device count or model.
// Something is tried there, or no longer: nobody has more room than there was before.
inline constexpr TouchKinds kTouchTried = 1 << 9;
// Its kubelet says that it is ready, or no longer: filters go by taints, topologies by this.
inline constexpr TouchKinds kTouchReady = 1 << 10;
// Who was promised room there has it: who could not evict a promise may evict its holder.
inline constexpr TouchKinds kTouchKept = 1 << 11;
// What is attached there, or may be, is another, as objects say.
inline constexpr TouchKinds kTouchVolumes = 1 << 12;
// Whom evictions there may take are others: one is spared, or no longer.
inline constexpr TouchKinds kTouchEvictable = 1 << 13;
inline constexpr uint32_t kTouchKindsCount = 14;

struct Touch {
  NodeId node;
  uint32_t kinds = 0;
  bool operator==(const Touch&) const = default;
};

// The order in which nodes were touched, append-only, with a moving start. Readers keep a position
// and catch up: what is derived from a node is current once every touch up to end() was looked at.
// A reader that fell behind begin() starts over.
class TouchLog {
 public:
  void Add(NodeId node, TouchKinds kinds) {
    entries_.push_back(Touch{.node = node, .kinds = kinds});
    if (node.value >= last_.size()) last_.resize(node.value + 1);
    last_[node.value] = end();
  }
  [[nodiscard]] uint64_t begin() const { return begin_; }
  [[nodiscard]] uint64_t end() const { return begin_ + entries_.size(); }
  // REQUIRES: begin() <= position < end().
  [[nodiscard]] const Touch& at(uint64_t position) const { return entries_[position - begin_]; }
  // Whether the entry at `position` is its node's latest; an earlier one need not be looked at.
  [[nodiscard]] bool latest(uint64_t position) const {
    return last_[at(position).node.value] == position + 1;
  }
  // Forgets the older half once there are more than `entries_max`. Amortised O(1) per entry.
  void Trim(size_t entries_max) {
    if (entries_.size() <= entries_max) return;
    const size_t drop = entries_.size() - entries_max / 2;
    entries_.erase(entries_.begin(), entries_.begin() + static_cast<std::ptrdiff_t>(drop));
    begin_ += drop;
  }
  // What a reader that stands at `position` will look at, for a hash that merges.
  void AddRest(Hasher& hasher, uint64_t position) const {
    hasher.Add(end() - position);
    for (uint64_t at = position < begin_ ? begin_ : position; at < end(); ++at) {
      hasher.Add(entries_[at - begin_].node.value).Add(entries_[at - begin_].kinds);
    }
  }
  // last_ is left out: latest() says what the entries say.
  void AddTo(Hasher& hasher) const {
    hasher.Add(begin_).Add(entries_.size());
    for (const Touch& touch : entries_) hasher.Add(touch.node.value).Add(touch.kinds);
  }

 private:
  std::vector<Touch> entries_;
  std::vector<uint64_t> last_;  // By node: one past the position of its latest entry.
  uint64_t begin_ = 0;
};

}  // namespace berth::model
