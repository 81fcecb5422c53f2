#include "cycle/class_cache.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
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

// Keeps the better of two candidates: higher total, then smaller rank, which is only read on a tie.
struct Leader {
  NodeId node;
  int64_t total = 0;
  void Offer(const model::State& state, NodeId n, int64_t its_total) {
    if (node.valid()) {
      if (its_total < total) return;
      if (its_total == total && state.nodes().rank(n) > state.nodes().rank(node)) return;
    }
    node = n;
    total = its_total;
  }
};

void Widen(place::Extremes& extremes, const model::NodeScore& score) {
  extremes.taints_max = std::max(extremes.taints_max, score.taints_raw);
  extremes.affinity_max = std::max(extremes.affinity_max, score.affinity_raw);
}

}  // namespace

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
  for (; position_ < log.end(); ++position_) {
    if (!log.latest(position_)) continue;
    Update(state, evaluator, log.at(position_).node);
    ++evaluated;
  }
  if (!grouped_) Group(state);
  return evaluated;
}

void ClassCache::Rebuild(const model::State& state, const place::Evaluator& evaluator) {
  evaluator.EvaluateAll(state, class_id_, evaluation_);
  images_ = evaluator.SeenImages(state, class_id_);
  CHECK_EQ(evaluation_.kinds.size(), size_t{state.nodes().size()});
  position_ = state.touches().end();
  current_ = whole_ = true;
  grouped_ = false;
  // A class that is used once, or again only after most nodes changed, is cheaper to scan than to
  // group.
  if (uses_ > 1) Group(state);
}

void ClassCache::Group(const model::State& state) {
  for (Bucket& bucket : buckets_) {
    bucket.count = 0;
    bucket.heap.clear();
  }
  reserved_.clear();
  const uint32_t rows_count = state.nodes().size();
  bucket_of_.assign(rows_count, kNoBucket);
  for (uint32_t row = 0; row < rows_count; ++row) {
    if (evaluation_.kinds[row] != ReasonKind::kNone) continue;
    const NodeId n{row};
    if (HasReserved(state, n)) {
      reserved_.push_back(n);
      continue;
    }
    const uint32_t b = BucketOf(evaluation_.scores[row]);
    bucket_of_[row] = b;
    ++buckets_[b].count;
    buckets_[b].heap.push_back(
        {.local = evaluation_.scores[row].local, .rank = state.nodes().rank(n), .node = n});
  }
  for (Bucket& bucket : buckets_) std::ranges::make_heap(bucket.heap, Worse());
  order_epoch_ = state.nodes().order_epoch();
  grouped_ = true;
}

uint32_t ClassCache::BucketOf(const model::NodeScore& score) {
  size_t vacant = buckets_.size();
  for (size_t b = 0; b < buckets_.size(); ++b) {
    if (buckets_[b].taints_raw == score.taints_raw &&
        buckets_[b].affinity_raw == score.affinity_raw) {
      return static_cast<uint32_t>(b);
    }
    if (buckets_[b].count == 0) vacant = b;
  }
  if (vacant == buckets_.size()) {
    CHECK_LT(vacant, size_t{kNoBucket});
    buckets_.emplace_back();
  }
  buckets_[vacant].taints_raw = score.taints_raw;
  buckets_[vacant].affinity_raw = score.affinity_raw;
  buckets_[vacant].heap.clear();
  return static_cast<uint32_t>(vacant);
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
  if (const uint32_t b = std::exchange(bucket_of_[n.value], kNoBucket); b != kNoBucket) {
    --buckets_[b].count;
  } else if (!reserved_.empty()) {
    std::erase(reserved_, n);
  }
}

void ClassCache::Insert(const model::State& state, NodeId n) {
  if (HasReserved(state, n)) {
    reserved_.push_back(n);
    return;
  }
  const uint32_t b = BucketOf(evaluation_.scores[n.value]);
  bucket_of_[n.value] = b;
  Bucket& bucket = buckets_[b];
  ++bucket.count;
  bucket.heap.push_back(
      {.local = evaluation_.scores[n.value].local, .rank = state.nodes().rank(n), .node = n});
  std::ranges::push_heap(bucket.heap, Worse());
  if (bucket.heap.size() <= size_t{bucket.count} * 2 + 64) return;
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
  if (model::LooksBeyond(state.vocabulary().classes.at(class_id_)) || pin.volumes.valid())
    return ScanEach(state, evaluator, viewer, pin);
  if (!grouped_) return ScanForBest(state, evaluator, viewer);
  const model::ScoreWeights& weights = state.RulesOf(class_id_).weights;
  place::Extremes extremes;
  uint32_t feasible_count = 0;
  for (const Bucket& bucket : buckets_) {
    if (bucket.count == 0) continue;
    feasible_count += bucket.count;
    Widen(extremes, {.taints_raw = bucket.taints_raw, .affinity_raw = bucket.affinity_raw});
  }
  std::vector<NodeId> reserved_fitting;
  for (const NodeId n : reserved_) {
    if (!evaluator.Filter(state, class_id_, n, &viewer).fits()) continue;
    reserved_fitting.push_back(n);
    Widen(extremes, evaluation_.scores[n.value]);
    ++feasible_count;
  }
  Leader leader;
  for (size_t b = 0; b < buckets_.size(); ++b) {
    if (buckets_[b].count == 0) continue;
    const Entry* top = Top(static_cast<uint32_t>(b));
    CHECK(top != nullptr);
    leader.Offer(state, top->node,
                 evaluator.Total(weights, evaluation_.scores[top->node.value], extremes));
  }
  for (const NodeId n : reserved_fitting) {
    leader.Offer(state, n, evaluator.Total(weights, evaluation_.scores[n.value], extremes));
  }
  return {.node = leader.node, .score = leader.total, .feasible_count = feasible_count};
}

ClassCache::Best ClassCache::ScanForBest(const model::State& state,
                                         const place::Evaluator& evaluator,
                                         const model::Viewer& viewer) const {
  const std::span<const model::ClaimId> reserved = state.ledger().nodes().first_reserved_column();
  const model::ScoreWeights& weights = state.RulesOf(class_id_).weights;
  const bool any_reserved =
      std::ranges::any_of(reserved, [](model::ClaimId id) { return id.valid(); });
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
    return !reserved[row].valid() ||
           evaluator.Filter(state, class_id_, NodeId{row}, &viewer).fits();
  };
  place::Extremes extremes;
  uint32_t feasible_count = 0;
  Leader by_local;
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
  Leader leader;
  for (uint32_t row = 0; row < rows(); ++row) {
    if (!fits_viewer(row)) continue;
    leader.Offer(state, NodeId{row}, evaluator.Total(weights, evaluation_.scores[row], extremes));
  }
  return {.node = leader.node, .score = leader.total, .feasible_count = feasible_count};
}

ClassCache::Best ClassCache::ScanEach(const model::State& state, const place::Evaluator& evaluator,
                                      const model::Viewer& viewer, const model::Pin& pin) const {
  const std::span<const model::ClaimId> reserved = state.ledger().nodes().first_reserved_column();
  const place::SpreadQuery spread(state, class_id_, &viewer);
  const place::AffinityQuery affinity(state, class_id_, &viewer);
  const place::VolumeQuery volumes(state, pin.volumes, &viewer, state.RulesOf(class_id_));
  if (!volumes.bar().fits()) return {};
  std::vector<uint8_t> refused(rows());
  for (uint32_t row = 0; row < rows(); ++row) refused[row] = fits(NodeId{row}) ? 0 : 1;
  spread.FilterAll(refused);
  affinity.FilterAll(refused);
  std::vector<NodeId> fitting;
  fitting.reserve(rows());
  place::Extremes extremes;
  for (uint32_t row = 0; row < rows(); ++row) {
    const NodeId n{row};
    if (reserved[row].valid() && fits(n))
      refused[row] = evaluator.Filter(state, class_id_, n, &viewer).fits() ? 0 : 1;
    if (refused[row] != 0 || (volumes.any() && !volumes.Filter(n).fits())) continue;
    fitting.push_back(n);
    Widen(extremes, evaluation_.scores[row]);
  }
  std::vector<int64_t> others;
  evaluator.ScoreByOthers(state, class_id_, fitting, others);
  others.resize(fitting.size());
  const model::ScoreWeights& weights = state.RulesOf(class_id_).weights;
  // Without anything to normalise the local score is the total, but for what all have.
  const bool plain = extremes == place::Extremes{};
  const int64_t of_all = evaluator.Total(weights, {}, extremes);
  Leader leader;
  for (size_t i = 0; i < fitting.size(); ++i) {
    const model::NodeScore& score = evaluation_.scores[fitting[i].value];
    leader.Offer(
        state, fitting[i],
        (plain ? of_all + score.local : evaluator.Total(weights, score, extremes)) + others[i]);
  }
  return {.node = leader.node,
          .score = leader.total,
          .feasible_count = static_cast<uint32_t>(fitting.size())};
}

// ---- All classes -----------------------------------------------------------------------------

ClassCaches& ClassCaches::operator=(const ClassCaches& other) {
  if (this == &other) return *this;
  *this = ClassCaches(other.bytes_max_);
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
  // Kind, scores, bucket and two heap entries a node.
  const size_t bytes_each = size_t{nodes_count} * (1 + sizeof(model::NodeScore) + 4 + 32) + 256;
  const size_t slots_max = std::max<size_t>(bytes_max_ / bytes_each, 4);
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
    slots_.emplace_back();
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
