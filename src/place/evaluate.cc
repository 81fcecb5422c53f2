#include "place/evaluate.h"

#include <algorithm>
#include <array>
#include <bit>
#include <span>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "place/affinity.h"
#include "place/columns.h"
#include "place/formulas.h"
#include "place/packing.h"
#include "place/resource_scores.h"
#include "place/spread.h"
#include "place/volumes.h"

namespace berth::place {
namespace {

using model::Amount;
using model::kCpu;
using model::kMemory;
using model::NodeId;
using model::OptionalFilter;
using model::ReasonKind;
using model::ResourceAmount;
using model::Verdict;

// The taint that stands for spec.unschedulable
// (https://kubernetes.io/docs/concepts/scheduling-eviction/taint-and-toleration/).
constexpr std::string_view kUnschedulableTaint = "node.kubernetes.io/unschedulable";

constexpr Verdict Never(ReasonKind kind, uint32_t detail = 0) {
  return Verdict{.kind = kind, .unresolvable = true, .detail = detail};
}

// The rows of lists that may be absent.
template <typename Table, typename Id>
auto ListOf(const Table& table, Id id) {
  return id.valid() ? table.View(id) : decltype(table.View(id)){};
}

bool Contains(std::span<const model::NameId> sorted, model::NameId name) {
  return std::ranges::binary_search(sorted, name);
}

// What one class's tolerations make of one list of taints.
struct TaintAnswer {
  bool refused = false;
  uint32_t first_refusing = 0;  // Index of the first NoSchedule or NoExecute taint not tolerated.
  int32_t prefer_count = 0;     // PreferNoSchedule taints not tolerated.
};

// What filters look at: the node alone, or pods of other nodes, too.
enum class Reach : uint8_t { kNode, kCluster };

// A class as filters and scores see it, resolved once. Good until the state changes.
class Query {
 public:
  Query(const model::State& state, model::ClassId c, const model::Viewer* viewer,
        model::VolumeListId volumes = {})
      : state_(state),
        nodes_(state.nodes()),
        accounts_(state.ledger().nodes()),
        viewer_(viewer),
        spec_(state.vocabulary().classes.at(c)),
        rules_(state.RulesOf(c)),
        asked_(state.vocabulary().bundles.Asked(spec_.requests)),
        requests_(state.vocabulary().bundles.View(asked_)),
        ports_(state.vocabulary().bundles.Ports(asked_)),
        tolerations_(ListOf(state.vocabulary().tolerations, spec_.tolerations)),
        spread_(state, c, viewer),
        affinity_(state, c, viewer),
        volumes_(state, volumes, viewer, rules_) {}

  [[nodiscard]] const model::ClassSpec& spec() const { return spec_; }
  [[nodiscard]] std::span<const ResourceAmount> requests() const { return requests_; }

  // Whether amounts, taints, cordons and a selector whose nodes are known are all that can refuse.
  [[nodiscard]] bool is_plain() const {
    return !spec_.names.valid() && !spec_.added.valid() && !spec_.features.valid() &&
           !spec_.models.valid() && spec_.gpu.none() && ports_.empty() &&
           (!spec_.selector.valid() || state_.vocabulary().selectors.materialised(spec_.selector));
  }
  // The nodes that may have it by its selector, a bit each; empty: all.
  // REQUIRES: is_plain.
  [[nodiscard]] std::span<const uint64_t> selected() const {
    if (!spec_.selector.valid() || !rules_.filters(OptionalFilter::kNodeAffinity)) return {};
    return state_.vocabulary().selectors.Bits(spec_.selector);
  }

  // Bit i: the i-th amount does not fit.
  [[nodiscard]] uint64_t Lacking(NodeId n) const {
    uint64_t lacking = 0;
    for (size_t i = 0; i < requests_.size(); ++i) {
      lacking |= uint64_t{requests_[i].amount > FreeNow(n, requests_[i].resource)} << i;
    }
    return lacking;
  }

  [[nodiscard]] TaintAnswer Taints(model::TaintListId taints) const {
    TaintAnswer answer;
    const auto list = ListOf(state_.vocabulary().taints, taints);
    for (uint32_t i = 0; i < list.size(); ++i) {
      if (std::ranges::any_of(tolerations_,
                              [&](const auto& t) { return model::Tolerates(t, list[i]); })) {
        continue;
      }
      if (list[i].effect == model::TaintEffect::kPreferNoSchedule) {
        ++answer.prefer_count;
      } else if (rules_.filters(OptionalFilter::kTaintToleration) &&
                 !std::exchange(answer.refused, true)) {
        answer.first_refusing = i;
      }
    }
    return answer;
  }

  // All filters, in order. `taints` is what Taints says of the node's, `lacking` what Lacking says.
  [[nodiscard]] Verdict Filter(NodeId n, const model::Pin& pin, const TaintAnswer& taints,
                               uint64_t lacking, Reach reach) const {
    if (const Verdict verdict = BeforeAmounts(n, pin, taints); !verdict.fits()) return verdict;
    if (PortsTaken(n)) return {.kind = ReasonKind::kPorts};
    if (lacking != 0) return Insufficient(n, lacking);
    if (volumes_.any()) {
      if (const Verdict verdict = volumes_.Filter(n); !verdict.fits()) return verdict;
    }
    if (reach == Reach::kCluster) {
      if (const Verdict verdict = spread_.Filter(n); !verdict.fits()) return verdict;
      if (const Verdict verdict = affinity_.Filter(n); !verdict.fits()) return verdict;
    }
    if (const ReasonKind kind = BehindAmounts(n); kind != ReasonKind::kNone) return Never(kind);
    const Verdict verdict = Devices(n);
    return verdict.fits() && pin.asker.valid() ? Extenders(n, pin) : verdict;
  }

  [[nodiscard]] FixedRefusal Fixed(NodeId n, const model::Pin& pin,
                                   const TaintAnswer& taints) const {
    if (const Verdict verdict = BeforeAmounts(n, pin, taints); !verdict.fits())
      return {.kind = verdict.kind};
    if (std::ranges::any_of(requests_, [&](const ResourceAmount& r) { return ExceedsNode(r, n); }))
      return {.kind = ReasonKind::kInsufficient, .behind = Behind::kPorts};
    Behind behind = spread_.hard() ? Behind::kPortsAmountsAndSpread : Behind::kPortsAndAmounts;
    if (volumes_.any()) {
      if (const Verdict verdict = volumes_.Storage(n); !verdict.fits())
        return {
            .kind = verdict.kind, .behind = Behind::kPortsAndAmounts, .lacking = verdict.lacking};
    }
    if (!spread_.Labelled(n)) return {.kind = ReasonKind::kSpreadLabel, .behind = behind};
    if (!affinity_.Labelled(n)) return {.kind = ReasonKind::kPodAffinity, .behind = behind};
    if (affinity_.any()) behind = Behind::kPortsAmountsAndPods;
    if (const ReasonKind kind = BehindAmounts(n); kind != ReasonKind::kNone)
      return {.kind = kind, .behind = behind};
    if (!spec_.gpu.none() && nodes_.devices_count(n) < DevicesNeeded())
      return {.kind = ReasonKind::kDevices, .behind = behind};
    if (!pin.asker.valid()) return {};
    const Verdict verdict = Extenders(n, pin);
    if (verdict.fits()) return {};
    return {.kind = verdict.kind, .behind = behind, .unresolvable = verdict.unresolvable};
  }

  [[nodiscard]] bool Selected(model::SelectorId selector, NodeId n) const {
    const model::Vocabulary& v = state_.vocabulary();
    if (v.selectors.materialised(selector)) return v.selectors.Test(selector, n);
    return v.selectors.Matches(selector, state_.labels().View(nodes_.labels(n)), nodes_.name(n),
                               v.names);
  }

  [[nodiscard]] std::span<const model::NameId> images() const {
    return ListOf(state_.vocabulary().name_lists, spec_.images);
  }

  // ImageLocality of a node that has all the images which a node of `has` has.
  [[nodiscard]] int64_t ImagesOf(const auto& has) const {
    int64_t sum = 0;
    for (const model::NameId name : images()) {
      const model::ImageTable::Image image = state_.images().At(name);
      if (image.nodes_count == 0 || !has(name, image)) continue;
      sum += SpreadImage(image.size, image.nodes_count, nodes_.present_count());
    }
    return ImageScore(sum, spec_.containers_count);
  }

  // REQUIRES: the class has images.
  [[nodiscard]] int64_t Images(NodeId n) const {
    return ImagesOf([&](model::NameId name, const auto&) { return state_.images().Has(n, name); });
  }

  // No node can come to more.
  [[nodiscard]] int64_t ImagesMost() const {
    return ImagesOf(
        [](model::NameId, const model::ImageTable::Image& image) { return image.size > 0; });
  }

  [[nodiscard]] int32_t PreferredWeight(NodeId n) const {
    int64_t weight = 0;
    for (const model::Preference& p : ListOf(state_.vocabulary().preferences, spec_.preferences)) {
      if (Selected(p.term, n)) weight += p.weight;
    }
    return static_cast<int32_t>(weight);
  }

 private:
  [[nodiscard]] Amount FreeNow(NodeId n, model::ResourceId r) const {
    if (r.value >= accounts_.resources()) return 0;  // No node has offered it yet.
    if (viewer_ == nullptr || !accounts_.has_reserved(n.value)) return accounts_.free(r, n.value);
    return state_.ledger().Now(model::AccountId::OfNode(n), r, *viewer_,
                               state_.vocabulary().bundles);
  }

  [[nodiscard]] Verdict BeforeAmounts(NodeId n, const model::Pin& pin,
                                      const TaintAnswer& taints) const {
    if (!nodes_.used(n) || !nodes_.present(n)) return Never(ReasonKind::kNodeMissing);
    const bool elsewhere = pin.kind != model::PinKind::kNone && pin.node != nodes_.name(n);
    const bool by_affinity = rules_.filters(OptionalFilter::kNodeAffinity);
    if (spec_.names.valid() && by_affinity) {
      const auto names = state_.vocabulary().name_lists.View(spec_.names);
      if (names.empty()) return Never(ReasonKind::kAffinityConflict);
      if (!volumes_.bar().fits()) return volumes_.bar();
      if (!Contains(names, nodes_.name(n))) return Never(ReasonKind::kNotNamed);
    }
    if (!volumes_.bar().fits()) return volumes_.bar();
    if (elsewhere && pin.kind == model::PinKind::kAffinity) return Never(ReasonKind::kNotNamed);
    if (nodes_.unschedulable(n) && rules_.filters(OptionalFilter::kNodeUnschedulable) &&
        !ToleratesUnschedulable()) {
      return Never(ReasonKind::kUnschedulable);
    }
    if (elsewhere) return Never(ReasonKind::kNodeName);
    if (taints.refused) return Never(ReasonKind::kTaint, taints.first_refusing);
    if (!by_affinity) return {};
    if (spec_.added.valid() && !Selected(spec_.added, n)) return Never(ReasonKind::kAddedAffinity);
    if (spec_.selector.valid() && !Selected(spec_.selector, n)) return Never(ReasonKind::kAffinity);
    return {};
  }

  [[nodiscard]] bool PortsTaken(NodeId n) const {
    return !ports_.empty() &&
           state_.ledger().PortConflicts(model::Ledger::PortView::kNow, n, ports_, viewer_,
                                         state_.vocabulary().bundles) != 0;
  }

  // Devices in use aside.
  [[nodiscard]] ReasonKind BehindAmounts(NodeId n) const {
    for (const model::NameId feature : ListOf(state_.vocabulary().name_lists, spec_.features)) {
      if (!Contains(ListOf(state_.vocabulary().name_lists, nodes_.features(n)), feature)) {
        return ReasonKind::kFeatures;
      }
    }
    if (spec_.models.valid() &&
        !Contains(state_.vocabulary().name_lists.View(spec_.models), nodes_.gpu_model(n))) {
      return ReasonKind::kGpuModel;
    }
    return ReasonKind::kNone;
  }

  [[nodiscard]] uint32_t DevicesNeeded() const { return std::max(spec_.gpu.devices_count, 1u); }

  [[nodiscard]] bool ToleratesUnschedulable() const {
    // Names that nobody interned are in no toleration; an invalid key must not look like "any key".
    const model::NameId key = state_.vocabulary().names.Find(kUnschedulableTaint);
    const model::NameId empty = state_.vocabulary().names.Find("");
    return std::ranges::any_of(tolerations_, [&](const model::Toleration& t) {
      if (t.key.valid() && !key.valid()) return false;
      if (t.op == model::TolerationOp::kEqual && !empty.valid()) return false;
      return model::Tolerates(t, {.key = key, .value = empty});
    });
  }

  // Whether the empty node has too little; the number of pods never counts as such.
  [[nodiscard]] bool ExceedsNode(const ResourceAmount& request, NodeId n) const {
    if (request.resource == model::kPods) return false;
    return request.resource.value >= accounts_.resources() ||
           request.amount > accounts_.capacity(request.resource, n.value);
  }

  // Unresolvable as soon as one amount that lacks exceeds the empty node.
  [[nodiscard]] Verdict Insufficient(NodeId n, uint64_t lacking) const {
    Verdict verdict{.kind = ReasonKind::kInsufficient, .lacking = lacking};
    for (uint64_t rest = lacking; rest != 0; rest &= rest - 1) {
      if (ExceedsNode(requests_[static_cast<size_t>(std::countr_zero(rest))], n))
        verdict.unresolvable = true;
    }
    return verdict;
  }

  [[nodiscard]] Verdict Devices(NodeId n) const {
    if (spec_.gpu.none()) return {};
    const uint32_t needed = DevicesNeeded();
    const int32_t each = spec_.gpu.share_milli > 0 ? static_cast<int32_t>(spec_.gpu.share_milli)
                                                   : model::kDeviceMilli;
    uint32_t good = 0;
    for (uint32_t d = 0; d < nodes_.devices_count(n); ++d) {
      good += DeviceNow(state_, n, d, viewer_) >= each ? 1 : 0;
    }
    if (good >= needed) return {};
    return {.kind = ReasonKind::kDevices, .unresolvable = nodes_.devices_count(n) < needed};
  }

  [[nodiscard]] Verdict Extenders(NodeId n, const model::Pin& pin) const {
    const model::NodeVerdict* said = state_.verdicts().Of(pin.asker, nodes_.name(n));
    if (said == nullptr || said->permitted) return {};
    return {.kind = ReasonKind::kExternalVerdict,
            .unresolvable = said->unresolvable,
            .name = said->why};
  }

  const model::State& state_;
  const model::NodeTable& nodes_;
  const model::AccountTable& accounts_;
  const model::Viewer* viewer_;
  const model::ClassSpec& spec_;
  const model::ProfileRules& rules_;
  const model::BundleId asked_;
  const std::span<const ResourceAmount> requests_;
  const std::span<const model::HostPort> ports_;
  const std::span<const model::Toleration> tolerations_;
  const SpreadQuery spread_;
  const AffinityQuery affinity_;
  const VolumeQuery volumes_;
};

SpreadColumns ColumnsOf(const model::State& state, const model::ClassSpec& spec,
                        model::ResourceId r) {
  const model::AccountTable& accounts = state.ledger().nodes();
  return {.capacity = accounts.capacity_column(r).data(),
          .free = accounts.free_column(r).data(),
          .scored = accounts.scored_column(r).data(),
          .request = state.vocabulary().bundles.AmountOf(spec.requests, r),
          .scoring = state.vocabulary().bundles.AmountOf(spec.scoring, r)};
}

SpreadParts PartsOf(const SpreadColumns& cpu, const SpreadColumns& memory, uint32_t row) {
  SpreadParts parts;
  parts.fit = LeastAllocated({cpu.capacity[row], cpu.scored[row] + cpu.scoring},
                             {memory.capacity[row], memory.scored[row] + memory.scoring});
  parts.balanced_counts = cpu.request != 0 || memory.request != 0;
  if (!parts.balanced_counts) return parts;
  const Amount cpu_used = cpu.capacity[row] - cpu.free[row];
  const Amount memory_used = memory.capacity[row] - memory.free[row];
  const int64_t with = Evenness({cpu.capacity[row], cpu_used + cpu.request},
                                {memory.capacity[row], memory_used + memory.request});
  const int64_t without =
      Evenness({cpu.capacity[row], cpu_used}, {memory.capacity[row], memory_used});
  parts.balanced = Balanced(with, without);
  return parts;
}

int64_t Weighted(const model::ScoreWeights& weights, const SpreadParts& parts) {
  return weights.images * parts.images + weights.fit * parts.fit +
         weights.balanced * parts.balanced;
}

// In place of what the default profile says of rows first to first + count, what another does.
void ScoreOwn(const ResourceScores& own, uint32_t first, uint32_t count, SpreadBlock& block) {
  if (!own.usual_fit()) {
    for (uint32_t i = 0; i < count; ++i) block.fit[i] = static_cast<int32_t>(own.Fit(first + i));
  }
  if (own.usual_balanced()) return;
  for (uint32_t i = 0; i < count; ++i)
    block.balanced[i] = static_cast<int32_t>(own.Balanced(first + i));
}

// Remembers what a class makes of the taint lists met last; nodes share few.
class TaintMemo {
 public:
  explicit TaintMemo(const Query& query) : query_(query) {}

  const TaintAnswer& Of(model::TaintListId taints) {
    if (!taints.valid()) return none_;
    Slot& slot = slots_[taints.value % slots_.size()];
    if (slot.taints != taints) [[unlikely]] {
      slot = {.taints = taints, .answer = query_.Taints(taints)};
    }
    return slot.answer;
  }

 private:
  struct Slot {
    model::TaintListId taints;
    TaintAnswer answer;
  };
  const Query& query_;
  const TaintAnswer none_;
  std::array<Slot, 64> slots_{};
};

// Keeps what an Evaluation says of the rows that fit, as they come by.
class Tally {
 public:
  explicit Tally(std::span<const uint32_t> ranks) : ranks_(ranks) {}

  void Add(uint32_t row, const model::NodeScore& score) {
    extremes_.taints_max = std::max(extremes_.taints_max, score.taints_raw);
    extremes_.affinity_max = std::max(extremes_.affinity_max, score.affinity_raw);
    if (count_++ > 0 &&
        (score.local < local_max_ || (score.local == local_max_ && ranks_[row] > ranks_[best_]))) {
      return;
    }
    best_ = row;
    local_max_ = score.local;
  }
  void Tell(Evaluation& out) const {
    out.fitting_count = count_;
    out.extremes = extremes_;
    out.best = best_;
  }

 private:
  const std::span<const uint32_t> ranks_;
  uint32_t count_ = 0;
  uint32_t best_ = 0;
  int64_t local_max_ = 0;
  Extremes extremes_;
};

// The columns that a class's requests are compared with. A bundle has few amounts; the array holds
// the most there can be.
class RequestColumns {
 public:
  RequestColumns(const model::AccountTable& accounts, std::span<const ResourceAmount> requests)
      : size_(requests.size()) {
    CHECK_LE(size_, columns_.size());
    for (size_t k = 0; k < size_; ++k) {
      const bool there = requests[k].resource.value < accounts.resources();
      columns_[k] = {.free = there ? accounts.free_column(requests[k].resource).data() : nullptr,
                     .amount = requests[k].amount};
    }
  }
  [[nodiscard]] std::span<const RequestColumn> view() const {
    return std::span(columns_).first(size_);
  }

 private:
  std::array<RequestColumn, model::kBundleAmountsMax> columns_;
  size_t size_;
};

// What FilterAlone says of rows of nodes, a block at a time.
class BlockFilter {
 public:
  BlockFilter(const model::State& state, const Query& query)
      : query_(query),
        nodes_(state.nodes()),
        requests_(state.ledger().nodes(), query.requests()),
        plain_(query.is_plain()),
        selected_(plain_ ? query.selected() : std::span<const uint64_t>()),
        memo_(query) {}

  // The kinds of the rows from `first` on, and how many PreferNoSchedule taints of each the class
  // doesn't tolerate. REQUIRES: both of one size, kBlock at most.
  void Run(uint32_t first, std::span<ReasonKind> kinds, std::span<int32_t> taints_raw) {
    std::array<uint64_t, kBlock> lacking;
    LackingBlock(requests_.view(), first, std::span(lacking).first(kinds.size()));
    const std::span<const uint8_t> present = nodes_.present_column();
    const std::span<const uint8_t> unschedulable = nodes_.unschedulable_column();
    const std::span<const model::TaintListId> taint_lists = nodes_.taints_column();
    for (uint32_t i = 0; i < kinds.size(); ++i) {
      const uint32_t row = first + i;
      const TaintAnswer& taints = memo_.Of(taint_lists[row]);
      taints_raw[i] = taints.prefer_count;
      kinds[i] = plain_ && present[row] != 0 && unschedulable[row] == 0
                     ? PlainKind(row, taints, lacking[i])
                     : query_.Filter(NodeId{row}, {}, taints, lacking[i], Reach::kNode).kind;
    }
  }

 private:
  // Of a node that is there and not cordoned, for a class that is plain.
  [[nodiscard]] ReasonKind PlainKind(uint32_t row, const TaintAnswer& taints,
                                     uint64_t lacking) const {
    if (taints.refused) return ReasonKind::kTaint;
    if (!selected_.empty() && ((selected_[row / 64] >> (row % 64)) & 1) == 0)
      return ReasonKind::kAffinity;
    return lacking != 0 ? ReasonKind::kInsufficient : ReasonKind::kNone;
  }
  const Query& query_;
  const model::NodeTable& nodes_;
  const RequestColumns requests_;
  const bool plain_;
  const std::span<const uint64_t> selected_;
  TaintMemo memo_;
};

// Score of kSpread of rows of nodes, a block at a time.
class BlockScores {
 public:
  BlockScores(const model::State& state, model::ClassId c, const Query& query)
      : query_(query),
        cpu_(ColumnsOf(state, query.spec(), kCpu)),
        memory_(ColumnsOf(state, query.spec(), kMemory)),
        own_(state, query.spec(), state.ProfileOf(c)),
        weights_(state.RulesOf(c).weights),
        balances_(own_.usual_balanced() ? cpu_.request != 0 || memory_.request != 0
                                        : own_.balanced_counts()),
        images_(query.spec().images.valid() && weights_.images != 0),
        preferences_(query.spec().preferences.valid()) {}

  // The scores of the rows from `first` on; of those that don't fit they mean nothing.
  // REQUIRES: all of one size, kBlock at most.
  void Run(uint32_t first, std::span<const ReasonKind> kinds, std::span<const int32_t> taints_raw,
           std::span<model::NodeScore> scores) const {
    SpreadBlock block;
    const auto count = static_cast<uint32_t>(scores.size());
    ScoreBlock(cpu_, memory_, first, count, block);
    ScoreOwn(own_, first, count, block);
    const int64_t fit_weight = weights_.fit;
    const int64_t balanced_weight = balances_ ? weights_.balanced : 0;
    for (uint32_t i = 0; i < count; ++i) {
      scores[i] = {.local = fit_weight * block.fit[i] + balanced_weight * block.balanced[i],
                   .taints_raw = taints_raw[i]};
    }
    if (!images_ && !preferences_) return;
    for (uint32_t i = 0; i < count; ++i) {
      if (kinds[i] != ReasonKind::kNone) continue;
      const NodeId n{first + i};
      if (images_) scores[i].local += weights_.images * query_.Images(n);
      if (preferences_) scores[i].affinity_raw = query_.PreferredWeight(n);
    }
  }

 private:
  const Query& query_;
  const SpreadColumns cpu_;
  const SpreadColumns memory_;
  const ResourceScores own_;
  const model::ScoreWeights weights_;
  const bool balances_;
  const bool images_;
  const bool preferences_;
};

}  // namespace

Evaluator::Evaluator(model::Policy policy, FragmentTable fragments)
    : policy_(policy), fragments_(std::move(fragments)) {}

model::Verdict Evaluator::Filter(const model::State& state, model::ClassId c, NodeId n,
                                 const model::Viewer* viewer, const model::Pin& pin) const {
  const Query query(state, c, viewer, pin.volumes);
  return query.Filter(n, pin, query.Taints(state.nodes().taints(n)), query.Lacking(n),
                      Reach::kCluster);
}

model::Verdict Evaluator::FilterAlone(const model::State& state, model::ClassId c, NodeId n,
                                      const model::Viewer* viewer, const model::Pin& pin) const {
  const Query query(state, c, viewer, pin.volumes);
  return query.Filter(n, pin, query.Taints(state.nodes().taints(n)), query.Lacking(n),
                      Reach::kNode);
}

FixedRefusal Evaluator::FixedRefusalOn(const model::State& state, model::ClassId c, NodeId n,
                                       const model::Pin& pin) const {
  const Query query(state, c, nullptr, pin.volumes);
  return query.Fixed(n, pin, query.Taints(state.nodes().taints(n)));
}

void Evaluator::FixedRefusals(const model::State& state, model::ClassId c, const model::Pin& pin,
                              std::vector<FixedRefusal>& out) const {
  const Query query(state, c, nullptr, pin.volumes);
  const std::span<const model::TaintListId> taint_lists = state.nodes().taints_column();
  TaintMemo memo(query);
  out.resize(state.nodes().size());
  for (uint32_t row = 0; row < out.size(); ++row)
    out[row] = query.Fixed(NodeId{row}, pin, memo.Of(taint_lists[row]));
}

model::NodeScore Evaluator::Score(const model::State& state, model::ClassId c, NodeId n) const {
  switch (policy_) {
    case model::Policy::kRandom:
      return {};
    case model::Policy::kBestFit:
      return {.local = BestFitScore(state, c, n)};
    case model::Policy::kFgd: {
      // Equal fragmentation scores, of which there are many, go to the best fit.
      const int64_t score = LeastFragmenting(state, c, n, fragments_, nullptr).score;
      return {.local = (score << 40) + BestFitScore(state, c, n)};
    }
    case model::Policy::kSpread:
      break;
  }
  const Query query(state, c, nullptr);
  return {.local = Weighted(state.RulesOf(c).weights, Parts(state, c, n)),
          .taints_raw = query.Taints(state.nodes().taints(n)).prefer_count,
          .affinity_raw = query.PreferredWeight(n)};
}

SpreadParts Evaluator::Parts(const model::State& state, model::ClassId c, NodeId n) const {
  const model::ClassSpec& spec = state.vocabulary().classes.at(c);
  SpreadParts parts =
      PartsOf(ColumnsOf(state, spec, kCpu), ColumnsOf(state, spec, kMemory), n.value);
  const ResourceScores scores(state, spec, state.ProfileOf(c));
  if (!scores.usual_fit()) parts.fit = scores.Fit(n.value);
  if (!scores.usual_balanced()) {
    parts.balanced_counts = scores.balanced_counts();
    parts.balanced = parts.balanced_counts ? scores.Balanced(n.value) : 0;
  }
  if (spec.images.valid()) parts.images = Query(state, c, nullptr).Images(n);
  return parts;
}

ImagesSeen Evaluator::SeenImages(const model::State& state, model::ClassId c) const {
  const model::ClassSpec& spec = state.vocabulary().classes.at(c);
  if (policy_ != model::Policy::kSpread || !spec.images.valid() ||
      state.RulesOf(c).weights.images == 0) {
    return {};
  }
  ImagesSeen seen{.nodes_count = state.nodes().present_count()};
  for (const model::NameId name : state.vocabulary().name_lists.View(spec.images))
    seen.stamp = std::max(seen.stamp, state.images().stamp(name));
  return seen;
}

model::ClassId Evaluator::ScoredAs(const model::State& state, model::ClassId c) const {
  const model::ClassId plain = state.vocabulary().classes.plain(c);
  if (plain == c || policy_ != model::Policy::kSpread || state.RulesOf(c).weights.images == 0)
    return plain;
  return Query(state, c, nullptr).ImagesMost() > 0 ? c : plain;
}

void Evaluator::EvaluateAll(const model::State& state, model::ClassId c, Evaluation& out) const {
  const model::NodeTable& nodes = state.nodes();
  out.kinds.resize(nodes.size());
  out.scores.resize(nodes.size());
  const Query query(state, c, nullptr);
  BlockFilter filter(state, query);
  const BlockScores spread(state, c, query);
  std::array<int32_t, kBlock> taints_raw;
  Tally tally(nodes.rank_column());
  for (uint32_t first = 0; first < nodes.size(); first += kBlock) {
    const uint32_t count = std::min(kBlock, nodes.size() - first);
    const std::span<ReasonKind> kinds = std::span(out.kinds).subspan(first, count);
    const std::span<model::NodeScore> scores = std::span(out.scores).subspan(first, count);
    filter.Run(first, kinds, std::span(taints_raw).first(count));
    if (policy_ == model::Policy::kSpread) {
      spread.Run(first, kinds, taints_raw, scores);
    } else {
      for (uint32_t i = 0; i < count; ++i) {
        if (kinds[i] == ReasonKind::kNone) scores[i] = Score(state, c, NodeId{first + i});
      }
    }
    for (uint32_t i = 0; i < count; ++i) {
      if (kinds[i] == ReasonKind::kNone) tally.Add(first + i, scores[i]);
    }
  }
  tally.Tell(out);
}

model::DeviceSlots Evaluator::ChooseDevices(const model::State& state, model::ClassId c, NodeId n,
                                            const model::Viewer* viewer, uint64_t draw) const {
  const model::GpuDemand& gpu = state.vocabulary().classes.at(c).gpu;
  if (gpu.none()) return {};
  if (gpu.share_milli == 0) {
    const uint16_t mask = LowestIdleDevices(state, n, gpu.devices_count, viewer);
    CHECK_EQ(std::popcount(mask), static_cast<int>(gpu.devices_count));
    return {.mask = mask, .milli_each = model::kDeviceMilli};
  }
  const auto share = static_cast<uint16_t>(gpu.share_milli);
  uint16_t mask = 0;
  if (policy_ == model::Policy::kFgd) {
    mask = LeastFragmenting(state, c, n, fragments_, viewer).mask;
  } else if (policy_ == model::Policy::kRandom) {
    mask = AnyDevice(state, n, share, viewer, draw);
  } else {
    mask = FullestDevice(state, n, share, viewer);
  }
  CHECK_NE(mask, 0);
  return {.mask = mask, .milli_each = share};
}

int64_t Evaluator::Total(const model::ScoreWeights& weights, const model::NodeScore& score,
                         const Extremes& extremes) const {
  if (policy_ != model::Policy::kSpread) return score.local;
  return score.local + weights.taints * NormalTaints(score.taints_raw, extremes.taints_max) +
         weights.affinity * NormalAffinity(score.affinity_raw, extremes.affinity_max);
}

void Evaluator::ScoreByOthers(const model::State& state, model::ClassId c,
                              std::span<const NodeId> fitting, std::span<const uint32_t> alike,
                              std::vector<int64_t>& out) const {
  out.clear();
  if (policy_ != model::Policy::kSpread) return;
  const model::ScoreWeights& weights = state.RulesOf(c).weights;
  std::vector<int32_t> scores;
  const auto add = [&](int64_t weight) {
    if (scores.empty()) return;
    out.resize(fitting.size());
    for (size_t i = 0; i < scores.size(); ++i) out[i] += weight * scores[i];
  };
  if (weights.spread != 0) {
    ScoreSpread(state, c, fitting, alike, scores);
    add(weights.spread);
  }
  if (weights.pod_affinity != 0) {
    ScoreAffinity(state, c, fitting, scores);
    add(weights.pod_affinity);
  }
}

void Evaluator::AddTo(Hasher& hasher) const {
  hasher.Add(policy_);
  fragments_.AddTo(hasher);
}

}  // namespace berth::place
