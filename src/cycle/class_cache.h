#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "base/limits.h"
#include "cycle/node_likeness.h"
#include "model/ids.h"
#include "model/state.h"
#include "place/evaluate.h"
#include "place/volumes.h"

namespace berth::cycle {

// Feasible set and node-local scores of one class, kept current from the touch log: only touched
// nodes are evaluated again. But scores by images hang on other nodes, too: when what they hang on
// is another, all nodes are.
//
// What depends on the feasible set (normalisation) is worked out when a node is chosen: nodes are
// grouped in buckets of equal raw scores, each with a heap of (local score, node order), so
// choosing looks at one node per bucket. Nodes with reservations are kept aside: whether they fit
// depends on who asks.
//
// What hangs on pods of other nodes, or on the pod's volumes, is no node's own of a class, and is
// asked anew at each choice (place/spread.h, place/affinity.h, place/volumes.h): where it is known
// which nodes answer alike (NodeLikeness), they have a bucket of their own, and one of them is
// asked, else all nodes are. Of a bucket those are asked for volumes, the best first, until one can
// have them.
//
// Heaps are lazy: an entry that no longer says the truth is dropped when it surfaces. Cost: a
// touched node one evaluation and O(log nodes + log buckets); a choice O(buckets + nodes with
// reservations), amortised, where it is known who is alike, and O(nodes) where not.
class ClassCache {
 public:
  explicit ClassCache(const LikenessLimits& limits) : limits_(limits), likeness_(limits) {}

  // Brings it up to date with the state. Returns how many nodes were evaluated.
  uint32_t CatchUp(const model::State& state, const place::Evaluator& evaluator,
                   model::ClassId class_id);

  struct Best {
    model::NodeId node;  // Invalid: none fits.
    int64_t score = 0;
    uint32_t feasible_count = 0;  // Volumes aside.
  };
  // The best node for the viewer: highest total, ties by NodeTable::rank. REQUIRES: CatchUp since
  // the last change.
  Best Choose(const model::State& state, const place::Evaluator& evaluator,
              const model::Viewer& viewer, const model::Pin& pin = {});

  // Whether a row fits, reservations and other nodes' pods aside.
  [[nodiscard]] bool fits(model::NodeId n) const {
    return evaluation_.kinds[n.value] == model::ReasonKind::kNone;
  }
  [[nodiscard]] uint32_t rows() const { return static_cast<uint32_t>(evaluation_.kinds.size()); }
  [[nodiscard]] model::ClassId class_id() const { return class_id_; }
  void Reset(model::ClassId class_id);

 private:
  struct Entry {
    int64_t local = 0;
    uint32_t rank = 0;
    model::NodeId node;
  };
  // For max-heaps: a higher score, then a smaller rank, comes out first.
  struct Worse {
    bool operator()(const Entry& a, const Entry& b) const {
      return a.local != b.local ? a.local < b.local : a.rank > b.rank;
    }
  };
  struct BucketKey {
    int32_t taints_raw = 0;
    int32_t affinity_raw = 0;
    uint32_t likeness = 0;  // Of a class that looks beyond the node.
    auto operator<=>(const BucketKey&) const = default;
  };
  struct Bucket {
    BucketKey key;
    uint32_t count = 0;  // Nodes in it.
    std::vector<Entry> heap;
  };
  static constexpr uint32_t kNoBucket = 0xffffffff;
  static_assert(limits::kNodesMax < kNoBucket, "at worst every node has a bucket of its own");

  // Nodes that fit, of some that are alike the best alone. None of `alike`: each stands for itself.
  struct Candidates {
    std::vector<model::NodeId> nodes;
    std::vector<uint32_t> alike;
    uint32_t feasible_count = 0;
  };

  [[nodiscard]] bool LooksBeyond(const model::State& state) const;
  void Rebuild(const model::State& state, const place::Evaluator& evaluator);
  void Group(const model::State& state);
  void Update(const model::State& state, const place::Evaluator& evaluator, model::NodeId n);
  void Insert(const model::State& state, model::NodeId n);
  void Erase(model::NodeId n);
  [[nodiscard]] uint32_t LikenessOf(const model::State& state, model::NodeId n);
  uint32_t BucketOf(const BucketKey& key);
  [[nodiscard]] const Entry* Top(uint32_t bucket);
  [[nodiscard]] bool IsWorthGrouping(const model::State& state) const;
  void UpdateLikeness(const model::State& state, std::span<const model::NodeId> nodes);
  [[nodiscard]] model::NodeId TopWith(const place::VolumeQuery& volumes, uint32_t bucket,
                                      uint32_t& tries);
  [[nodiscard]] std::optional<Best> ChooseAmongAlike(const model::State& state,
                                                     const place::Evaluator& evaluator,
                                                     const model::Viewer& viewer,
                                                     const model::Pin& pin);
  [[nodiscard]] Best BestOf(const model::State& state, const place::Evaluator& evaluator,
                            const Candidates& candidates) const;
  Best ScanForBest(const model::State& state, const place::Evaluator& evaluator,
                   const model::Viewer& viewer) const;
  Best ScanEach(const model::State& state, const place::Evaluator& evaluator,
                const model::Viewer& viewer, const model::Pin& pin) const;

  model::ClassId class_id_;
  bool current_ = false;  // evaluation_ is that of class_id_ at position_.
  bool grouped_ = false;  // Buckets are built; on second use, because many classes are used once.
  uint32_t uses_ = 0;
  // Of all nodes, for what looks beyond them, since evaluation_ was made anew.
  uint32_t scans_ = 0;
  uint64_t position_ = 0;     // In the touch log.
  uint64_t order_epoch_ = 0;  // Of NodeTable's ranks when the heaps were built.
  place::Evaluation evaluation_;
  place::ImagesSeen images_;         // What evaluation_ saw of them.
  bool whole_ = false;               // evaluation_ is as EvaluateAll left it.
  std::vector<uint32_t> bucket_of_;  // By node.
  std::vector<Bucket> buckets_;
  size_t vacant_count_ = 0;  // Of these, those without nodes.
  std::map<BucketKey, uint32_t> bucket_by_key_;
  std::vector<model::NodeId> reserved_;  // Fit, and have reservations.
  LikenessLimits limits_;
  NodeLikeness likeness_;
};

// The caches of the classes used last. Copying copies none: they are derived, and a copy starts
// cold.
class ClassCaches {
 public:
  explicit ClassCaches(size_t bytes_max, const LikenessLimits& limits = {})
      : bytes_max_(bytes_max), limits_(limits), scratch_(limits) {}
  ClassCaches(const ClassCaches& other) : ClassCaches(other.bytes_max_, other.limits_) {}
  ClassCaches& operator=(const ClassCaches& other);
  ClassCaches(ClassCaches&&) = default;
  ClassCaches& operator=(ClassCaches&&) = default;

  // The cache of a class. Valid until the next call.
  //
  // A class that comes again within as many calls as there are slots keeps one, made of the least
  // recently used when memory is full. Any other gets the scratch: of many classes that are used
  // once each, none drives out one that is used often, and the memory that is written stays near
  // the processor.
  ClassCache& Get(model::ClassId class_id, uint32_t nodes_count);

 private:
  struct Slot {
    ClassCache cache;
    uint32_t newer = kNone;
    uint32_t older = kNone;
  };
  static constexpr uint32_t kNone = 0xffffffff;
  // However large they are: 200 MB of 100,000 nodes.
  static constexpr size_t kSlotsMin = 32;
  void Unlink(uint32_t slot);
  void PushNewest(uint32_t slot);

  size_t bytes_max_;
  LikenessLimits limits_;
  std::vector<Slot> slots_;
  std::vector<uint32_t> slot_of_;   // By class.
  std::vector<uint64_t> asked_at_;  // By class: the call that found no slot of it last; 0 for none.
  uint64_t calls_ = 0;
  ClassCache scratch_;
  uint32_t newest_ = kNone;
  uint32_t oldest_ = kNone;
};

}  // namespace berth::cycle
