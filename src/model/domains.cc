// Who stands in which domain: what topology spread constraints and pod affinity count
// (docs/design/0023-scheduler-plugins.md).
#include <algorithm>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/state.h"

namespace berth::model {

// ---- Topology spread -----------------------------------------------------------------------

// Of what domain the node is to each constraint of the class: it counts when it is there, has all
// keys that constraints of the same kind ask for, and is one that the constraint's policies take.
void State::SpreadOver(ClassId class_id, NodeId node) {
  const ClassSpec& spec = vocabulary_.classes.at(class_id);
  const std::span<const SpreadConstraint> constraints = vocabulary_.spreads.View(spec.spread);
  const bool there = nodes_.used(node) && nodes_.present(node);
  const auto value_of = [&](NameId key) { return there ? LabelOf(node, key) : NameId{}; };
  const auto has_keys = [&](uint32_t hard) {
    return std::ranges::all_of(constraints, [&](const SpreadConstraint& c) {
      return c.hard != hard || value_of(c.key).valid();
    });
  };
  const bool keys[] = {has_keys(0), has_keys(1)};
  const bool selected = there && Selects(spec, node);
  const bool tolerated = there && ToleratesAll(spec, node);
  for (size_t i = 0; i < constraints.size(); ++i) {
    const SpreadConstraint& c = constraints[i];
    const bool labelled = c.by_default != 0 ? value_of(c.key).valid() : keys[c.hard];
    const bool counts =
        labelled && (c.honors_affinity == 0 || selected) && (c.honors_taints == 0 || tolerated);
    ledger_.mutable_spreads().Put(class_id, i, node, counts ? value_of(c.key) : NameId{});
  }
}

void State::TrackSpread(ClassId imaged) {
  const ClassId class_id = vocabulary_.classes.plain(imaged);
  const SpreadListId spread = vocabulary_.classes.at(class_id).spread;
  if (!spread.valid() || ledger_.spreads().tracks(class_id)) return;
  ledger_.TrackSpread(class_id, vocabulary_.spreads.View(spread), vocabulary_.pod_selectors,
                      budgets_.labels());
  // Which nodes count may hang on its selector.
  MaterialiseSelector(vocabulary_.classes.at(class_id).selector);
  for (uint32_t row = 0; row < nodes_.size(); ++row) SpreadOver(class_id, NodeId{row});
}

// What is counted for the last pod of a class is forgotten with it: the classes of old revisions of
// a workload would be kept for ever.
void State::CountClass(ClassId imaged, int by) {
  if (!imaged.valid() || !vocabulary_.classes.at(imaged).spread.valid()) return;
  const ClassId class_id = vocabulary_.classes.plain(imaged);
  // Another of its name, the last of the class, may just have gone.
  if (by > 0) TrackSpread(class_id);
  uint32_t& pods = spread_pods_[class_id];
  pods += static_cast<uint32_t>(by);
  if (pods > 0) return;
  spread_pods_.erase(class_id);
  ledger_.mutable_spreads().Untrack(class_id, ledger_.mutable_matcher());
}

void State::SpreadOver(NodeId node) {
  if (ledger_.spreads().empty()) return;
  for (const ClassId class_id : ledger_.spreads().Tracked()) SpreadOver(class_id, node);
}

// By its selector and the names that it leaves in the race.
bool State::Selects(const ClassSpec& spec, NodeId node) const {
  if (spec.names.valid() &&
      !std::ranges::binary_search(vocabulary_.name_lists.View(spec.names), nodes_.name(node)))
    return false;
  return !spec.selector.valid() || vocabulary_.selectors.Test(spec.selector, node);
}

bool State::ToleratesAll(const ClassSpec& spec, NodeId node) const {
  if (!nodes_.taints(node).valid()) return true;
  return std::ranges::all_of(vocabulary_.taints.View(nodes_.taints(node)), [&](const Taint& taint) {
    return taint.effect == TaintEffect::kPreferNoSchedule ||
           (spec.tolerations.valid() &&
            std::ranges::any_of(vocabulary_.tolerations.View(spec.tolerations),
                                [&](const Toleration& t) { return model::Tolerates(t, taint); }));
  });
}

void State::ReleaseLabels(PodLabelsId labels) {
  budgets_.ReleaseLabels(labels);
  if (!budgets_.labels().contains(labels)) ledger_.mutable_matcher().ForgetLabels(labels);
}

// ---- Pod affinity --------------------------------------------------------------------------

// One pod more has the terms.
void State::AcquireAffinity(AffinityListId id, PodLabelsId own_labels) {
  if (!id.valid()) return;
  AffinityIndex& index = ledger_.mutable_affinities();
  const StringTable<PodLabelsId>& labels = budgets_.labels();
  const AffinityIndex::New fresh =
      index.Acquire(id, vocabulary_.affinities.View(id), [&](PodSelectorId selector) {
        return ledger_.mutable_matcher().Acquire(selector, vocabulary_.pod_selectors, labels);
      });
  for (const uint32_t key : fresh.keys) {
    for (uint32_t row = 0; row < nodes_.size(); ++row) PutInDomain(key, NodeId{row});
  }
  ledger_.CountAffinities(fresh.pairs);
  const bool others = std::ranges::any_of(fresh.rows, [&](uint32_t row) {
    // Classes that were told of it before may be of pods whose namespace has other labels now.
    const PodSelectorId selector = ledger_.matcher().SelectorOf(row);
    if (ParsePodSelector(vocabulary_.pod_selectors.View(selector)).asks_of_namespaces())
      return true;
    for (uint32_t i = 0; i < labels.size(); ++i) {
      const PodLabelsId list{i};
      if (labels.contains(list) && ledger_.matcher().Selects(row, list) &&
          (list != own_labels || labels.holders(list) > 1))
        return true;
    }
    return false;
  });
  if (others) SelectAgain([](const Pod&) { return true; });
}

// Those of the pod's class are one pod's less.
void State::ReleaseAffinity(ClassId class_id) {
  if (!class_id.valid()) return;
  if (const AffinityListId id = vocabulary_.classes.at(class_id).affinity; id.valid())
    ledger_.mutable_affinities().Release(id, ledger_.mutable_matcher());
}

void State::PutInDomain(uint32_t key, NodeId node) {
  // One that is not there has no labels.
  AffinityIndex& index = ledger_.mutable_affinities();
  index.Put(key, node, LabelOf(node, index.NameOfKey(key)));
}

void State::RelabelForAffinities(NodeId node) {
  if (ledger_.affinities().empty()) return;
  ledger_.RecountAffinities(node, [&] {
    for (const uint32_t key : ledger_.affinities().KeysInUse()) PutInDomain(key, node);
  });
}

// The class with the selectors of anybody's terms that select such a pod.
ClassId State::SelectedClass(ClassId class_id, PodLabelsId labels) {
  std::vector<PodSelectorId> selectors;
  if (!ledger_.affinities().empty()) {
    for (const uint32_t row : ledger_.matcher().RowsOf(labels)) {
      if (!ledger_.affinities().PairsOfRow(row).empty())
        selectors.push_back(ledger_.matcher().SelectorOf(row));
    }
  }
  std::ranges::sort(selectors);
  const PodSelectorListId list =
      selectors.empty() ? PodSelectorListId{} : vocabulary_.pod_selector_lists.Intern(selectors);
  ClassSpec spec = vocabulary_.classes.at(class_id);
  if (spec.selected_by == list) return class_id;
  spec.selected_by = list;
  return vocabulary_.classes.Intern(spec);
}

void State::SetClass(PodId id, const PodUpsert& facts) {
  Pod& pod = pods_.mutable_at(id);
  const ClassId before = pod.class_id;
  const PodLabelsId labels_before = std::exchange(pod.labels, budgets_.AcquireLabels(facts.labels));
  ledger_.mutable_matcher().Meet(pod.labels, facts.labels);
  const AffinityListId affinity = vocabulary_.classes.at(facts.class_id).affinity;
  const AffinityListId affinity_before =
      before.valid() ? vocabulary_.classes.at(before).affinity : AffinityListId{};
  if (affinity != affinity_before) AcquireAffinity(affinity, pod.labels);
  if (labels_before != pod.labels || affinity != affinity_before)
    ledger_.SetLabels(pod.uid, pod.labels, facts.labels, affinity);
  if (affinity != affinity_before) ReleaseAffinity(before);
  // It asks for something else than before, whoever selects it.
  const auto asks = [&](ClassId c) {
    ClassSpec spec = vocabulary_.classes.at(c);
    spec.selected_by = {};
    return spec;
  };
  if (before.valid() && before != facts.class_id && asks(before) != asks(facts.class_id))
    pod.attempts = 0;
  // Of one that has a node, it says what the pod has and nothing of where it may go.
  PutInClass(pod, facts.node.empty() ? SelectedClass(facts.class_id, pod.labels) : facts.class_id);
  if (labels_before.valid()) ReleaseLabels(labels_before);
}

void State::PutInClass(Pod& pod, ClassId class_id) {
  Materialise(class_id);
  const ClassId before = std::exchange(pod.class_id, class_id);
  if (before == class_id) return;
  CountClass(class_id, +1);
  CountClass(before, -1);
}

// Other terms than before may select those that wait, of whom that is asked.
void State::SelectAgain(const std::function<bool(const Pod&)>& asked) {
  for (uint32_t i = 0; i < pods_.size(); ++i) {
    const PodId id{i};
    if (!pods_.used(id)) continue;
    Pod& pod = pods_.mutable_at(id);
    if (!pod.class_id.valid() || pod.node.valid() || pod.terminal || !asked(pod)) continue;
    const ClassId class_id = SelectedClass(pod.class_id, pod.labels);
    if (class_id == pod.class_id) continue;
    PutInClass(pod, class_id);
    changed_pods_.push_back(id);
  }
}

void State::SetNamespace(std::string_view name, std::string text) {
  if (ledger_.matcher().NamespaceText(name) == text) return;
  const auto set = [&] {
    ledger_.mutable_matcher().SetNamespace(name, std::move(text), budgets_.labels());
  };
  if (!ledger_.matcher().asks_of_namespaces()) return set();
  ledger_.RecountAffinities(NodeId{}, set);
  ledger_.mutable_affinities().NoteAllMoved();
  SelectAgain([&](const Pod& pod) {
    return NamespaceOfPodLabels(budgets_.LabelsText(pod.labels)) == name;
  });
}

}  // namespace berth::model
