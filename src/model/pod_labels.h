#pragma once

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

// Pods of one namespace that meet all of the requirements; without any, all of them.
struct PodSelector {
  std::string namespace_name;
  std::vector<PodRequirement> requirements;
  bool operator==(const PodSelector&) const = default;

  [[nodiscard]] bool Selects(std::string_view labels_text) const;
};

// As one string, so that it can be interned, and back. O(size).
[[nodiscard]] std::string PodSelectorText(const PodSelector& selector);
// REQUIRES: a text that PodSelectorText made.
[[nodiscard]] PodSelector ParsePodSelector(std::string_view text);

}  // namespace berth::model
