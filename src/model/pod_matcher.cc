#include "model/pod_matcher.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "model/ascending.h"

namespace berth::model {
uint32_t PodMatcher::RowOf(PodSelectorId selector) const {
  const auto at = row_of_.find(selector);
  return at == row_of_.end() ? kNone : at->second;
}

bool PodMatcher::Selects(uint32_t row, OwnerId pod) const {
  return row != kNone && std::ranges::binary_search(RowsOf(pod), row);
}

bool PodMatcher::Selects(uint32_t row, PodLabelsId labels) const {
  return row != kNone && std::ranges::binary_search(RowsOf(labels), row);
}

std::string_view PodMatcher::NamespaceText(std::string_view name) const {
  const auto at = namespaces_.find(name);
  return at == namespaces_.end() ? std::string_view() : at->second;
}

bool PodMatcher::Takes(uint32_t row, std::string_view labels_text) const {
  return rows_[row].selector.Selects(labels_text, NamespaceText(NamespaceOfPodLabels(labels_text)));
}

void PodMatcher::Match(PodLabelsId labels, std::string_view text) {
  Matches& matches = matches_[labels.value];
  matches.known = true;
  matches.rows.clear();
  const auto look = [&](const std::vector<uint32_t>& candidates) {
    for (const uint32_t row : candidates) {
      if (Takes(row, text)) matches.rows.push_back(row);
    }
  };
  if (const auto of_its = by_namespace_.find(NamespaceOfPodLabels(text));
      of_its != by_namespace_.end())
    look(of_its->second);
  look(of_any_namespace_);
  std::ranges::sort(matches.rows);
}

void PodMatcher::List(uint32_t row) {
  const PodSelector& selector = rows_[row].selector;
  if (selector.of_namespace.has_value()) return InsertAscending(of_any_namespace_, row);
  for (const std::string& name : selector.namespaces) InsertAscending(by_namespace_[name], row);
}

void PodMatcher::Unlist(uint32_t row) {
  const PodSelector& selector = rows_[row].selector;
  std::erase(of_any_namespace_, row);
  for (const std::string& name : selector.namespaces) {
    const auto at = by_namespace_.find(name);
    if (at == by_namespace_.end()) continue;
    std::erase(at->second, row);
    if (at->second.empty()) by_namespace_.erase(at);
  }
}

uint32_t PodMatcher::Acquire(PodSelectorId selector, const StringTable<PodSelectorId>& selectors,
                             const Texts& labels) {
  const auto [at, fresh] = row_of_.emplace(selector, static_cast<uint32_t>(rows_.size()));
  const uint32_t row = at->second;
  if (fresh) {
    rows_.push_back(
        {.id = selector, .selector = ParsePodSelector(selectors.View(selector)), .uses = 0});
  }
  if (rows_[row].uses++ > 0) return row;
  ++used_count_;
  asking_count_ += rows_[row].selector.asks_of_namespaces() ? 1 : 0;
  List(row);
  matches_.resize(std::max<size_t>(matches_.size(), labels.size()));
  for (uint32_t i = 0; i < labels.size(); ++i) {
    const PodLabelsId id{i};
    if (!labels.contains(id)) continue;
    if (!matches_[i].known) {
      Match(id, labels.View(id));
    } else if (Takes(row, labels.View(id))) {
      InsertAscending(matches_[i].rows, row);
    } else {
      // It may be there from before: the labels of a namespace changed meanwhile.
      std::erase(matches_[i].rows, row);
    }
  }
  return row;
}

void PodMatcher::Release(uint32_t row) {
  CHECK_GT(rows_[row].uses, 0u);
  if (--rows_[row].uses > 0) return;
  --used_count_;
  asking_count_ -= rows_[row].selector.asks_of_namespaces() ? 1 : 0;
  Unlist(row);
}

void PodMatcher::Meet(PodLabelsId labels, std::string_view text) {
  if (used_count_ == 0 || !labels.valid()) return;
  if (labels.value >= matches_.size()) matches_.resize(labels.value + 1);
  if (!matches_[labels.value].known) Match(labels, text);
}

void PodMatcher::SetLabels(OwnerId pod, PodLabelsId labels, std::string_view text) {
  if (pod.value >= labels_of_.size()) labels_of_.resize(pod.value + 1);
  labels_of_[pod.value] = labels;
  Meet(labels, text);
}

void PodMatcher::ForgetLabels(PodLabelsId labels) {
  if (labels.value < matches_.size()) matches_[labels.value] = {};
}

void PodMatcher::SetNamespace(std::string_view name, std::string text, const Texts& labels) {
  if (text.empty()) {
    if (const auto at = namespaces_.find(name); at != namespaces_.end()) namespaces_.erase(at);
  } else {
    namespaces_.insert_or_assign(std::string(name), std::move(text));
  }
  if (!asks_of_namespaces()) return;
  for (uint32_t i = 0; i < labels.size() && i < matches_.size(); ++i) {
    const PodLabelsId id{i};
    if (labels.contains(id) && matches_[i].known && NamespaceOfPodLabels(labels.View(id)) == name)
      Match(id, labels.View(id));
  }
}

// All else follows from pods and who asks.
void PodMatcher::AddTo(Hasher& hasher) const {
  hasher.Add(namespaces_.size());
  for (const auto& [name, text] : namespaces_) hasher.Add(name).Add(text);
}

}  // namespace berth::model
