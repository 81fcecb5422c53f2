#include "cycle/class_cache.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "cycle/best_node.h"
#include "place/affinity.h"
#include "place/spread.h"
#include "place/volumes.h"

namespace berth::cycle {

using model::NodeId;
using model::ReasonKind;

namespace {

bool HasReserved(const model::State& state, NodeId n) {
  return state.ledger().nodes().has_reserved(n.value);
}

}  // namespace

// Who looks beyond nodes has others grouped for it, at more cost.
bool ClassCache::IsWorthGrouping(const model::State& state) const {
  return scans_ >= limits_.scans_min || !LooksBeyond(state);
}

bool ClassCache::LooksBeyond(const model::State& state) const {
  return model::LooksBeyond(state.vocabulary().classes.at(class_id_));
}

void ClassCache::Reset(model::ClassId class_id) {
  class_id_ = class_id;
  current_ = grouped_ = false;
  uses_ = 0;
}

uint32_t ClassCache::CatchUp(const model::State& state, const place::Evaluator& evaluator,
                             model::ClassId class_id) {
  if (class_id_ != class_id) Reset(class_id);
  ++uses_;
  const model::TouchLog& log = state.touches();
  const uint32_t rows_count = state.nodes().size();
  const bool rebuild = !current_ || position_ < log.begin() ||
                       log.end() - position_ > rows_count / 8 + 16 ||
                       evaluator.SeenImages(state, class_id) != images_;
  if (rebuild) {
    Rebuild(state, evaluator);
    return rows_count;
  }
  if (evaluation_.kinds.size() < rows_count) {
    evaluation_.kinds.resize(rows_count, ReasonKind::kNodeMissing);
    evaluation_.scores.resize(rows_count);
    bucket_of_.resize(rows_count, kNoBucket);
  }
  uint32_t evaluated = 0;
  if (grouped_ && order_epoch_ != state.nodes().order_epoch()) grouped_ = false;
  std::vector<NodeId> recounted;
  if (grouped_ && LooksBeyond(state) && !likeness_.CatchUp(state, recounted)) grouped_ = false;
  for (; position_ < log.end(); ++position_) {
    if (!log.latest(position_)) continue;
    Update(state, evaluator, log.at(position_).node);
    ++evaluated;
  }
  if (grouped_) UpdateLikeness(state, recounted);
  if (!grouped_ && IsWorthGrouping(state)) Group(state);
  return evaluated;
}

void ClassCache::Rebuild(const model::State& state, const place::Evaluator& evaluator) {
  evaluator.EvaluateAll(state, class_id_, evaluation_);
  images_ = evaluator.SeenImages(state, class_id_);
  CHECK_EQ(evaluation_.kinds.size(), size_t{state.nodes().size()});
  position_ = state.touches().end();
  current_ = whole_ = true;
  grouped_ = false;
  scans_ = 0;
  // A class that is used once, or again only after most nodes changed, is cheaper to scan than to
  // group.
  if (uses_ > 1 && IsWorthGrouping(state)) Group(state);
}

void ClassCache::Group(const model::State& state) {
  reserved_.clear();
  if (LooksBeyond(state)) {
    // Of kinds that there are no more; there may be many.
    buckets_.clear();
    bucket_by_key_.clear();
    likeness_.Begin(state, class_id_);
  }
  for (Bucket& bucket : buckets_) {
    bucket.count = 0;
    bucket.heap.clear();
  }
  vacant_count_ = buckets_.size();
  bucket_of_.assign(rows(), kNoBucket);
  for (uint32_t row = 0; row < rows(); ++row) {
    if (fits(NodeId{row})) Insert(state, NodeId{row});
  }
  if (LooksBeyond(state)) likeness_.Settle();
  order_epoch_ = state.nodes().order_epoch();
  grouped_ = true;
}

uint32_t ClassCache::BucketOf(const BucketKey& key) {
  // Most classes have one.
  if (!buckets_.empty() && buckets_.front().key == key) return 0;
  if (const auto at = bucket_by_key_.find(key); at != bucket_by_key_.end()) return at->second;
  // There may be a bucket for every other node.
  auto vacant =
      vacant_count_ > 0 ? std::ranges::find(buckets_, 0u, &Bucket::count) : buckets_.end();
  if (vacant == buckets_.end()) {
    CHECK_LT(buckets_.size(), size_t{kNoBucket});
    vacant = buckets_.emplace(vacant);
    ++vacant_count_;
  } else {
    bucket_by_key_.erase(vacant->key);
  }
  vacant->key = key;
  vacant->heap.clear();
  const auto b = static_cast<uint32_t>(vacant - buckets_.begin());
  bucket_by_key_.emplace(key, b);
  return b;
}

uint32_t ClassCache::LikenessOf(const model::State& state, NodeId n) {
  return LooksBeyond(state) && likeness_.works() ? likeness_.KindOf(state, n) : 0;
}

void ClassCache::UpdateLikeness(const model::State& state, std::span<const NodeId> nodes) {
  for (const NodeId n : nodes) {
    const uint32_t b = bucket_of_[n.value];
    if (b == kNoBucket || buckets_[b].key.likeness == LikenessOf(state, n)) continue;
    Erase(n);
    Insert(state, n);
  }
}

void ClassCache::Update(const model::State& state, const place::Evaluator& evaluator, NodeId n) {
  whole_ = false;
  if (grouped_) Erase(n);
  evaluation_.kinds[n.value] = evaluator.FilterAlone(state, class_id_, n, nullptr).kind;
  if (!fits(n)) return;
  evaluation_.scores[n.value] = evaluator.Score(state, class_id_, n);
  if (grouped_) Insert(state, n);
}

void ClassCache::Erase(NodeId n) {
  const uint32_t b = std::exchange(bucket_of_[n.value], kNoBucket);
  if (b != kNoBucket) {
    if (--buckets_[b].count == 0) ++vacant_count_;
  } else if (!reserved_.empty()) {
    std::erase(reserved_, n);
  }
}

void ClassCache::Insert(const model::State& state, NodeId n) {
  if (HasReserved(state, n)) {
    reserved_.push_back(n);
    return;
  }
  const model::NodeScore& score = evaluation_.scores[n.value];
  const uint32_t b = BucketOf({.taints_raw = score.taints_raw,
                               .affinity_raw = score.affinity_raw,
                               .likeness = LikenessOf(state, n)});
  bucket_of_[n.value] = b;
  Bucket& bucket = buckets_[b];
  if (bucket.count++ == 0) --vacant_count_;
  bucket.heap.push_back({.local = score.local, .rank = state.nodes().rank(n), .node = n});
  std::ranges::push_heap(bucket.heap, Worse());
  if (bucket.heap.size() <= size_t{bucket.count} * 2 + 8) return;
  // Drops the entries that no longer say the truth; each was pushed once, so this is O(1) amortised
  // per push.
  std::erase_if(bucket.heap, [&](const Entry& e) {
    return bucket_of_[e.node.value] != b || evaluation_.scores[e.node.value].local != e.local;
  });
  std::ranges::sort(bucket.heap, [](const Entry& x, const Entry& y) { return Worse()(y, x); });
  const auto repeated = std::ranges::unique(bucket.heap, {}, &Entry::node);
  bucket.heap.erase(repeated.begin(), repeated.end());
}

const ClassCache::Entry* ClassCache::Top(uint32_t b) {
  std::vector<Entry>& heap = buckets_[b].heap;
  while (!heap.empty()) {
    const Entry& top = heap.front();
    if (bucket_of_[top.node.value] == b && evaluation_.scores[top.node.value].local == top.local)
      return &top;
    std::ranges::pop_heap(heap, Worse());
    heap.pop_back();
  }
  return nullptr;
}

ClassCache::Best ClassCache::Choose(const model::State& state, const place::Evaluator& evaluator,
                                    const model::Viewer& viewer, const model::Pin& pin) {
  CHECK(current_);
  CHECK_EQ(position_, state.touches().end());
  if (LooksBeyond(state) || pin.volumes.valid()) {
    const std::optional<Best> best =
        grouped_ ? ChooseAmongAlike(state, evaluator, viewer, pin) : std::nullopt;
    if (best) return *best;
    if (++scans_ % limits_.scans_max == 0) grouped_ = false;
    return ScanEach(state, evaluator, viewer, pin);
  }
  if (!grouped_) return ScanForBest(state, evaluator, viewer);
  const model::ScoreWeights& weights = state.RulesOf(class_id_).weights;
  place::Extremes extremes;
  uint32_t feasible_count = 0;
  for (const Bucket& bucket : buckets_) {
    if (bucket.count == 0) continue;
    feasible_count += bucket.count;
    Widen(extremes, {.taints_raw = bucket.key.taints_raw, .affinity_raw = bucket.key.affinity_raw});
  }
  std::vector<NodeId> reserved_fitting;
  for (const NodeId n : reserved_) {
    if (!evaluator.Filter(state, class_id_, n, &viewer).fits()) continue;
    reserved_fitting.push_back(n);
    Widen(extremes, evaluation_.scores[n.value]);
    ++feasible_count;
  }
  BestNode best;
  for (size_t b = 0; b < buckets_.size(); ++b) {
    if (buckets_[b].count == 0) continue;
    const Entry* top = Top(static_cast<uint32_t>(b));
    CHECK(top != nullptr);
    best.Offer(state, top->node,
               evaluator.Total(weights, evaluation_.scores[top->node.value], extremes));
  }
  for (const NodeId n : reserved_fitting) {
    best.Offer(state, n, evaluator.Total(weights, evaluation_.scores[n.value], extremes));
  }
  return {.node = best.node, .score = best.total, .feasible_count = feasible_count};
}

ClassCache::Best ClassCache::ScanForBest(const model::State& state,
                                         const place::Evaluator& evaluator,
                                         const model::Viewer& viewer) const {
  const model::ScoreWeights& weights = state.RulesOf(class_id_).weights;
  const bool any_reserved = !state.ledger().nodes().rows_with_reserved().empty();
  if (whole_ && !any_reserved && evaluation_.extremes == place::Extremes{}) {
    // As below, found while the rows were evaluated.
    if (evaluation_.fitting_count == 0) return {};
    return {.node = NodeId{evaluation_.best},
            .score = evaluator.Total(weights, evaluation_.scores[evaluation_.best],
                                     evaluation_.extremes),
            .feasible_count = evaluation_.fitting_count};
  }
  const auto fits_viewer = [&](uint32_t row) {
    if (evaluation_.kinds[row] != ReasonKind::kNone) return false;
    return !HasReserved(state, NodeId{row}) ||
           evaluator.Filter(state, class_id_, NodeId{row}, &viewer).fits();
  };
  place::Extremes extremes;
  uint32_t feasible_count = 0;
  BestNode by_local;
  for (uint32_t row = 0; row < rows(); ++row) {
    if (!fits_viewer(row)) continue;
    const model::NodeScore& score = evaluation_.scores[row];
    ++feasible_count;
    Widen(extremes, score);
    by_local.Offer(state, NodeId{row}, score.local);
  }
  if (feasible_count == 0) return {};
  if (extremes == place::Extremes{}) {  // Nothing to normalise: the local score alone orders.
    return {.node = by_local.node,
            .score = evaluator.Total(weights, evaluation_.scores[by_local.node.value], extremes),
            .feasible_count = feasible_count};
  }
  BestNode best;
  for (uint32_t row = 0; row < rows(); ++row) {
    if (!fits_viewer(row)) continue;
    best.Offer(state, NodeId{row}, evaluator.Total(weights, evaluation_.scores[row], extremes));
  }
  return {.node = best.node, .score = best.total, .feasible_count = feasible_count};
}

ClassCache::Best ClassCache::ScanEach(const model::State& state, const place::Evaluator& evaluator,
                                      const model::Viewer& viewer, const model::Pin& pin) const {
  const place::SpreadQuery spread(state, class_id_, &viewer);
  const place::AffinityQuery affinity(state, class_id_, &viewer);
  const place::VolumeQuery volumes(state, pin.volumes, &viewer, state.RulesOf(class_id_));
  if (!volumes.bar().fits()) return {};
  std::vector<NodeId> nodes;
  nodes.reserve(rows());
  for (uint32_t row = 0; row < rows(); ++row) {
    if (fits(NodeId{row})) nodes.push_back(NodeId{row});
  }
  std::vector<uint8_t> refused(nodes.size());
  spread.FilterAll(nodes, refused);
  affinity.FilterAll(nodes, refused);
  Candidates found;
  found.nodes.reserve(nodes.size());
  for (size_t i = 0; i < nodes.size(); ++i) {
    const NodeId n = nodes[i];
    if (HasReserved(state, n))
      refused[i] = evaluator.Filter(state, class_id_, n, &viewer).fits() ? 0 : 1;
    if (refused[i] != 0) continue;
    ++found.feasible_count;
    if (!volumes.any() || volumes.Filter(n).fits()) found.nodes.push_back(n);
  }
  return BestOf(state, evaluator, found);
}

// The best of the bucket that can have the volumes; each that can't is one try less, down to none.
// Invalid: none can, or all tries were taken.
NodeId ClassCache::TopWith(const place::VolumeQuery& volumes, uint32_t b, uint32_t& tries) {
  std::vector<Entry>& heap = buckets_[b].heap;
  std::vector<Entry> passed;
  NodeId found;
  for (const Entry* top = Top(b); top != nullptr && tries > 0; top = Top(b)) {
    if (volumes.Filter(top->node).fits()) {
      found = top->node;
      break;
    }
    --tries;
    passed.push_back(*top);
    std::ranges::pop_heap(heap, Worse());
    heap.pop_back();
  }
  for (const Entry& entry : passed) {
    heap.push_back(entry);
    std::ranges::push_heap(heap, Worse());
  }
  return found;
}

// Nothing: all nodes are to be asked.
std::optional<ClassCache::Best> ClassCache::ChooseAmongAlike(const model::State& state,
                                                             const place::Evaluator& evaluator,
                                                             const model::Viewer& viewer,
                                                             const model::Pin& pin) {
  const bool beyond = LooksBeyond(state);
  // Scores of constraints may count all nodes that can have the volumes.
  if (pin.volumes.valid() && state.vocabulary().classes.at(class_id_).spread.valid())
    return std::nullopt;
  if (beyond && !likeness_.works()) return std::nullopt;
  const place::VolumeQuery volumes(state, pin.volumes, &viewer, state.RulesOf(class_id_));
  if (!volumes.bar().fits()) return Best{};
  std::vector<NodeId> nodes;
  nodes.reserve(buckets_.size());
  std::vector<uint32_t> bucket_of;
  for (uint32_t b = 0; b < buckets_.size(); ++b) {
    if (buckets_[b].count == 0) continue;
    const Entry* top = Top(b);
    CHECK(top != nullptr);
    nodes.push_back(top->node);
    bucket_of.push_back(b);
  }
  std::vector<uint8_t> refused(nodes.size());
  if (beyond) {
    place::SpreadQuery(state, class_id_, &viewer).FilterAll(nodes, refused);
    place::AffinityQuery(state, class_id_, &viewer).FilterAll(nodes, refused);
  }
  Candidates found;
  found.nodes.reserve(nodes.size() + reserved_.size());
  found.alike.reserve(nodes.size() + reserved_.size());
  const auto add = [&](NodeId n, uint32_t alike) {
    found.nodes.push_back(n);
    found.alike.push_back(alike);
  };
  uint32_t tries = limits_.volume_tries_max;
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (refused[i] != 0) continue;
    const uint32_t alike = buckets_[bucket_of[i]].count;
    found.feasible_count += alike;
    const NodeId n = volumes.any() ? TopWith(volumes, bucket_of[i], tries) : nodes[i];
    if (volumes.any() && tries == 0) return std::nullopt;
    if (n.valid()) add(n, alike);
  }
  for (const NodeId n : reserved_) {
    if (!evaluator.Filter(state, class_id_, n, &viewer).fits()) continue;
    ++found.feasible_count;
    if (!volumes.any() || volumes.Filter(n).fits()) add(n, 1);
  }
  return BestOf(state, evaluator, found);
}

ClassCache::Best ClassCache::BestOf(const model::State& state, const place::Evaluator& evaluator,
                                    const Candidates& candidates) const {
  const std::vector<NodeId>& fitting = candidates.nodes;
  if (fitting.empty()) return {};
  place::Extremes extremes;
  for (const NodeId n : fitting) Widen(extremes, evaluation_.scores[n.value]);
  std::vector<int64_t> others;
  evaluator.ScoreByOthers(state, class_id_, fitting, candidates.alike, others);
  others.resize(fitting.size());
  const model::ScoreWeights& weights = state.RulesOf(class_id_).weights;
  // Without anything to normalise the local score is the total, but for what all have.
  const bool plain = extremes == place::Extremes{};
  const int64_t of_all = evaluator.Total(weights, {}, extremes);
  BestNode best;
  for (size_t i = 0; i < fitting.size(); ++i) {
    const model::NodeScore& score = evaluation_.scores[fitting[i].value];
    best.Offer(
        state, fitting[i],
        (plain ? of_all + score.local : evaluator.Total(weights, score, extremes)) + others[i]);
  }
  return {.node = best.node, .score = best.total, .feasible_count = candidates.feasible_count};
}

// ---- All classes -----------------------------------------------------------------------------

ClassCaches& ClassCaches::operator=(const ClassCaches& other) {
  if (this == &other) return *this;
  *this = ClassCaches(other.bytes_max_, other.limits_);
  return *this;
}

void ClassCaches::Unlink(uint32_t slot) {
  Slot& s = slots_[slot];
  (s.newer == kNone ? newest_ : slots_[s.newer].older) = s.older;
  (s.older == kNone ? oldest_ : slots_[s.older].newer) = s.newer;
  s.newer = s.older = kNone;
}

void ClassCaches::PushNewest(uint32_t slot) {
  slots_[slot].older = newest_;
  (newest_ == kNone ? oldest_ : slots_[newest_].newer) = slot;
  newest_ = slot;
}

ClassCache& ClassCaches::Get(model::ClassId class_id, uint32_t nodes_count) {
  ++calls_;
  if (class_id.value >= slot_of_.size()) {
    slot_of_.resize(class_id.value + 1, kNone);
    asked_at_.resize(class_id.value + 1);
  }
  uint32_t slot = slot_of_[class_id.value];
  if (slot != kNone) {
    Unlink(slot);
    PushNewest(slot);
    return slots_[slot].cache;
  }
  // Kind, scores, bucket and two heap entries a node; kinds that are alike are few beside that.
  const size_t bytes_each = size_t{nodes_count} * (1 + sizeof(model::NodeScore) + 4 + 32) + 256;
  const size_t slots_max = std::max<size_t>(bytes_max_ / bytes_each, kSlotsMin);
  const uint64_t asked_at = std::exchange(asked_at_[class_id.value], calls_);
  const bool scratch_is_its = scratch_.class_id() == class_id;
  if (asked_at == 0 || calls_ - asked_at > slots_max) {
    if (!scratch_is_its) scratch_.Reset(class_id);
    return scratch_;
  }
  if (slots_.size() >= slots_max) {
    slot = oldest_;
    Unlink(slot);
    slot_of_[slots_[slot].cache.class_id().value] = kNone;
  } else {
    slot = static_cast<uint32_t>(slots_.size());
    slots_.push_back({.cache = ClassCache(limits_)});
  }
  slots_[slot].cache.Reset(class_id);
  if (scratch_is_its) {
    std::swap(slots_[slot].cache, scratch_);
    scratch_.Reset({});
  }
  slot_of_[class_id.value] = slot;
  PushNewest(slot);
  return slots_[slot].cache;
}

}  // namespace berth::cycle
