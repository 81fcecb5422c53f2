#include "model/budgets.h"

#include <algorithm>
#include <ranges>

#include "base/check.h"

namespace berth::model {
namespace {

std::string_view NamespaceOf(std::string_view key) { return key.substr(0, key.find('/')); }

}  // namespace

bool BudgetTable::Budget::disrupted(std::string_view pod_name) const {
  return std::ranges::find(facts.disrupted, pod_name) != facts.disrupted.end();
}

// The first budget whose key is not before `key`.
size_t BudgetTable::PlaceOf(std::string_view key) const {
  const auto at = std::ranges::lower_bound(
      by_key_, key, {}, [&](BudgetId id) { return std::string_view(rows_[id.value].facts.key); });
  return static_cast<size_t>(at - by_key_.begin());
}

BudgetId BudgetTable::Find(std::string_view key) const {
  const size_t place = PlaceOf(key);
  if (place == by_key_.size() || at(by_key_[place]).facts.key != key) return {};
  return by_key_[place];
}

// As upstream: a budget without requirements covers nothing, and nothing covers a pod without
// labels.
bool BudgetTable::Covers(BudgetId id, std::string_view labels_text) const {
  const BudgetUpsert& facts = at(id).facts;
  const std::string_view namespace_name = NamespaceOfPodLabels(labels_text);
  if (facts.selector.empty() || labels_text.size() == namespace_name.size() + 1) return false;
  return namespace_name == NamespaceOf(facts.key) && MeetsAll(facts.selector, labels_text);
}

PodLabelsId BudgetTable::AcquireLabels(std::string_view text) {
  const PodLabelsId id = labels_.Acquire(text);
  if (!empty() && labels_.holders(id) == 1) CoverLabels(id);
  return id;
}

void BudgetTable::ReleaseLabels(PodLabelsId labels) {
  labels_.Release(labels);
  if (!labels_.contains(labels)) SetCovering(labels, {});
}

void BudgetTable::SetCovering(PodLabelsId labels, std::span<const BudgetId> list) {
  if (list.empty() && labels.value >= covering_.size()) return;
  if (labels.value >= covering_.size()) covering_.resize(labels_.size());
  BudgetListId& covering = covering_[labels.value];
  const BudgetListId before = covering;
  covering = list.empty() ? BudgetListId{} : lists_.Acquire(list);
  if (before.valid()) lists_.Release(before);
}

void BudgetTable::CoverLabels(PodLabelsId labels) {
  const std::string_view text = labels_.View(labels);
  const std::string of_namespace = std::string(NamespaceOfPodLabels(text)) + "/";
  std::vector<BudgetId> list;
  for (size_t i = PlaceOf(of_namespace); i < by_key_.size(); ++i) {
    if (!at(by_key_[i]).facts.key.starts_with(of_namespace)) break;
    if (Covers(by_key_[i], text)) list.push_back(by_key_[i]);
  }
  std::ranges::sort(list);
  SetCovering(labels, list);
}

void BudgetTable::CoverWith(BudgetId id) {
  std::vector<BudgetId> list;
  for (uint32_t i = 0; i < labels_.size(); ++i) {
    const PodLabelsId labels{i};
    if (!labels_.contains(labels)) continue;
    const bool covers = Covers(id, labels_.View(labels));
    const std::span<const BudgetId> known = Covering(labels);
    const auto place = std::ranges::lower_bound(known, id);
    const bool covered = place != known.end() && *place == id;
    if (covers == covered) continue;
    list.assign(known.begin(), place);
    if (covers) list.push_back(id);
    list.insert(list.end(), covered ? place + 1 : place, known.end());
    SetCovering(labels, list);
  }
}

void BudgetTable::Put(const BudgetUpsert& facts) {
  BudgetId id = Find(facts.key);
  const bool fresh = !id.valid();
  if (fresh) {
    id = BudgetId{size()};
    if (free_rows_.empty()) {
      rows_.emplace_back();
    } else {
      id = free_rows_.back();
      free_rows_.pop_back();
    }
    by_key_.insert(by_key_.begin() + static_cast<std::ptrdiff_t>(PlaceOf(facts.key)), id);
  }
  BudgetUpsert& known = rows_[id.value].facts;
  const bool other = fresh || known.selector != facts.selector;
  known = facts;
  if (other) CoverWith(id);
}

void BudgetTable::Remove(const BudgetRemove& facts) {
  const BudgetId id = Find(facts.key);
  if (!id.valid() || (!facts.uid.empty() && at(id).facts.uid != facts.uid)) return;
  by_key_.erase(by_key_.begin() + static_cast<std::ptrdiff_t>(PlaceOf(facts.key)));
  rows_[id.value].facts.selector.clear();  // Covers nothing.
  CoverWith(id);
  rows_[id.value] = Budget{};
  free_rows_.push_back(id);
}

void BudgetTable::Charge(PodId pod, PodLabelsId labels) {
  for (const BudgetId id : Covering(labels)) {
    std::vector<PodId>& charged = rows_[id.value].charged;
    if (std::ranges::find(charged, pod) == charged.end()) charged.push_back(pod);
  }
}

void BudgetTable::Uncharge(PodId pod) {
  for (const BudgetId id : by_key_) std::erase(rows_[id.value].charged, pod);
}

void TrialBudgets::Charge(PodId pod, PodLabelsId labels) {
  if (table_.empty()) return;
  table_.Charge(pod, labels);
  charged_.push_back(pod);
}

void TrialBudgets::Uncharge(PodId pod) {
  for (const BudgetId id : table_.by_key_) {
    std::vector<PodId>& charged = table_.rows_[id.value].charged;
    const auto at = std::ranges::find(charged, pod);
    if (at == charged.end()) continue;
    uncharged_.push_back(
        {.budget = id, .place = static_cast<size_t>(at - charged.begin()), .pod = pod});
    charged.erase(at);
  }
}

void TrialBudgets::End() {
  for (const PodId pod : charged_) table_.Uncharge(pod);
  charged_.clear();
  for (const Uncharged& one : uncharged_ | std::views::reverse) {
    std::vector<PodId>& charged = table_.rows_[one.budget.value].charged;
    charged.insert(charged.begin() + static_cast<std::ptrdiff_t>(one.place), one.pod);
  }
  uncharged_.clear();
}

void BudgetTable::AddTo(Hasher& hasher) const {
  labels_.AddTo(hasher);
  hasher.Add(rows_.size());
  for (const Budget& budget : rows_) {
    const BudgetUpsert& f = budget.facts;
    hasher.Add(std::string_view(f.key)).Add(std::string_view(f.uid)).Add(f.allowed);
    hasher.Add(f.selector.size());
    for (const PodRequirement& r : f.selector) {
      hasher.Add(std::string_view(r.key)).Add(r.op).Add(r.values.size());
      for (const std::string& value : r.values) hasher.Add(std::string_view(value));
    }
    hasher.Add(f.disrupted.size());
    for (const std::string& name : f.disrupted) hasher.Add(std::string_view(name));
    hasher.Add(budget.charged.size());
    for (const PodId pod : budget.charged) hasher.Add(pod.value);
  }
  hasher.Add(free_rows_.size());
  for (const BudgetId id : free_rows_) hasher.Add(id.value);
  // The rest follows from labels and selectors.
}

}  // namespace berth::model
