#include "model/pod_labels.h"

#include <algorithm>

#include "base/check.h"

namespace berth::model {
namespace {

constexpr char kEnd = '\0';  // In no name, label or value.

std::string_view TakePart(std::string_view& text) {
  const size_t end = text.find(kEnd);
  const std::string_view part = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return part;
}

void AddPart(std::string& text, std::string_view part) { text.append(part).push_back(kEnd); }

// `labels`: keys and values one after another.
bool Meets(const PodRequirement& r, std::string_view labels) {
  bool present = false;
  std::string_view value;
  while (!labels.empty() && !present) {
    present = TakePart(labels) == r.key;
    value = TakePart(labels);
  }
  const bool listed = present && std::ranges::find(r.values, value) != r.values.end();
  switch (r.op) {
    case SelectorOp::kIn:
      return listed;
    case SelectorOp::kNotIn:
      return !listed;
    case SelectorOp::kExists:
      return present;
    case SelectorOp::kDoesNotExist:
      return !present;
    case SelectorOp::kGt:
    case SelectorOp::kLt:
      break;
  }
  return false;
}

}  // namespace

std::string PodLabelsText(std::string_view namespace_name,
                          std::span<const std::pair<std::string, std::string>> labels) {
  size_t size = namespace_name.size() + 1;
  for (const auto& [key, value] : labels) size += key.size() + value.size() + 2;
  std::string text;
  text.reserve(size);
  AddPart(text, namespace_name);
  for (const auto& [key, value] : labels) {
    AddPart(text, key);
    AddPart(text, value);
  }
  return text;
}

std::string_view NamespaceOfPodLabels(std::string_view labels_text) {
  return TakePart(labels_text);
}

bool MeetsAll(std::span<const PodRequirement> requirements, std::string_view labels_text) {
  TakePart(labels_text);
  return std::ranges::all_of(requirements,
                             [&](const PodRequirement& r) { return Meets(r, labels_text); });
}

bool PodSelector::Selects(std::string_view labels_text) const {
  return NamespaceOfPodLabels(labels_text) == namespace_name && MeetsAll(requirements, labels_text);
}

// Namespace, then of each requirement its key, its operator as a digit with a "+" for each value,
// and the values.
std::string PodSelectorText(const PodSelector& selector) {
  std::string text;
  AddPart(text, selector.namespace_name);
  for (const PodRequirement& r : selector.requirements) {
    AddPart(text, r.key);
    text.push_back(static_cast<char>('0' + static_cast<int>(r.op)));
    AddPart(text, std::string(r.values.size(), '+'));
    for (const std::string& value : r.values) AddPart(text, value);
  }
  return text;
}

PodSelector ParsePodSelector(std::string_view text) {
  PodSelector selector{.namespace_name = std::string(TakePart(text)), .requirements = {}};
  while (!text.empty()) {
    PodRequirement& r = selector.requirements.emplace_back();
    r.key = TakePart(text);
    const std::string_view head = TakePart(text);
    CHECK(!head.empty());
    r.op = static_cast<SelectorOp>(head.front() - '0');
    for (size_t i = 1; i < head.size(); ++i) r.values.emplace_back(TakePart(text));
  }
  return selector;
}

}  // namespace berth::model
