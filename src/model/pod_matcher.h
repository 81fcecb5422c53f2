#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/hash.h"
#include "model/ids.h"
#include "model/intern.h"
#include "model/pod_labels.h"

namespace berth::model {

// Which pods the selectors select that somebody asks about: topology spread constraints and pod
// affinity. Pods are matched by their labels, one list of which many share.
//
// A selector has a row, which it keeps. One that nobody asks about costs nothing, and rows of it
// may still be among those of pods that were matched before.
//
// Cost: a list of labels that is new O(selectors of its namespace that are asked about); a selector
// that is asked about first O(lists of labels); a namespace whose labels change O(lists of labels)
// where some selector asks for them.
class PodMatcher {
 public:
  static constexpr uint32_t kNone = 0xffffffff;
  using Texts = StringTable<PodLabelsId>;  // Of all labels that pods have.

  // One who asks more. Returns the selector's row.
  uint32_t Acquire(PodSelectorId selector, const StringTable<PodSelectorId>& selectors,
                   const Texts& labels);
  void Release(uint32_t row);

  // kNone: nobody ever asked about it.
  [[nodiscard]] uint32_t RowOf(PodSelectorId selector) const;
  [[nodiscard]] PodSelectorId SelectorOf(uint32_t row) const { return rows_[row].id; }
  // Whether a selector without requirements, which takes all pods of its namespaces.
  [[nodiscard]] bool takes_all(uint32_t row) const {
    return rows_[row].selector.requirements.empty();
  }

  // The rows that select pods with these labels, ascending.
  [[nodiscard]] std::span<const uint32_t> RowsOf(PodLabelsId labels) const {
    return labels.value < matches_.size() ? std::span(matches_[labels.value].rows)
                                          : std::span<const uint32_t>();
  }
  [[nodiscard]] std::span<const uint32_t> RowsOf(OwnerId pod) const {
    return pod.value < labels_of_.size() ? RowsOf(labels_of_[pod.value])
                                         : std::span<const uint32_t>();
  }
  [[nodiscard]] bool Selects(uint32_t row, OwnerId pod) const;
  [[nodiscard]] bool Selects(uint32_t row, PodLabelsId labels) const;

  // The pod's labels, of which `text` is PodLabelsText; invalid: it is gone.
  void SetLabels(OwnerId pod, PodLabelsId labels, std::string_view text);
  // Labels that are some pod's, or will be at once.
  void Meet(PodLabelsId labels, std::string_view text);
  // The list of labels is no pod's any more, and its id may be given again.
  void ForgetLabels(PodLabelsId labels);

  // PodLabelsText of the namespace; empty where it is not known.
  [[nodiscard]] std::string_view NamespaceText(std::string_view name) const;
  // Whether labels of namespaces decide about anything that is asked about.
  [[nodiscard]] bool asks_of_namespaces() const { return asking_count_ > 0; }
  // Labels of a namespace, as PodLabelsText; empty: it is gone. Pods of it may be selected by
  // others than before, if asks_of_namespaces().
  void SetNamespace(std::string_view name, std::string text, const Texts& labels);

  void AddTo(Hasher& hasher) const;

 private:
  struct Row {
    PodSelectorId id;
    PodSelector selector;
    uint32_t uses = 0;
  };
  struct Matches {
    bool known = false;
    std::vector<uint32_t> rows;
  };
  [[nodiscard]] bool Takes(uint32_t row, std::string_view labels_text) const;
  void Match(PodLabelsId labels, std::string_view text);
  void List(uint32_t row);
  void Unlist(uint32_t row);

  std::vector<Row> rows_;
  std::map<PodSelectorId, uint32_t> row_of_;
  // Rows that are asked about, by each namespace that they name; of those that take others, too.
  std::map<std::string, std::vector<uint32_t>, std::less<>> by_namespace_;
  std::vector<uint32_t> of_any_namespace_;
  std::map<std::string, std::string, std::less<>> namespaces_;  // Texts, by name.
  std::vector<PodLabelsId> labels_of_;                          // By owner.
  std::vector<Matches> matches_;                                // By labels.
  uint32_t used_count_ = 0;                                     // Of rows that are asked about, ...
  uint32_t asking_count_ = 0;  // ... and that ask for labels of namespaces.
};

}  // namespace berth::model
