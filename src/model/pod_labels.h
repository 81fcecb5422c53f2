#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/selectors.h"

// Labels of pods and what selects by them. They hold strings, because labels of pods come and go
// with their workloads, and names are kept for ever.
namespace berth::model {

// What is read of a pod, as one string: its namespace and labels. Interned, so that the pods of a
// workload share it.
[[nodiscard]] std::string PodLabelsText(
    std::string_view namespace_name, std::span<const std::pair<std::string, std::string>> labels);
[[nodiscard]] std::string_view NamespaceOfPodLabels(std::string_view labels_text);

// A requirement on a pod's label.
struct PodRequirement {
  std::string key;
  SelectorOp op = SelectorOp::kIn;  // No field, no kGt and kLt.
  std::vector<std::string> values;
  bool operator==(const PodRequirement&) const = default;
};

// Whether a pod with these labels meets all of them, whatever its namespace.
[[nodiscard]] bool MeetsAll(std::span<const PodRequirement> requirements,
                            std::string_view labels_text);

// Pods that meet all of the requirements (without any, all of them), where they are of a namespace
// that is named, or of one whose labels meet what is required of it; and that the others of `also`
// select, too.
struct PodSelector {
  std::vector<std::string> namespaces;  // Sorted.
  std::optional<std::vector<PodRequirement>> of_namespace;
  std::vector<PodRequirement> requirements;
  std::vector<PodSelector> also;  // One deep.
  bool operator==(const PodSelector&) const = default;

  // `namespace_text` is PodLabelsText of the pod's namespace and the labels of that; empty where
  // these are not known: then it has none.
  [[nodiscard]] bool Selects(std::string_view labels_text,
                             std::string_view namespace_text = {}) const;
  // Whether labels of namespaces decide.
  [[nodiscard]] bool asks_of_namespaces() const;
};

// As one string, so that it can be interned, and back. O(size).
[[nodiscard]] std::string PodSelectorText(const PodSelector& selector);
// REQUIRES: a text that PodSelectorText made.
[[nodiscard]] PodSelector ParsePodSelector(std::string_view text);

}  // namespace berth::model
