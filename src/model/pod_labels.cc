#include "model/pod_labels.h"

#include <algorithm>
#include <functional>

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

// How many there are, then of each its key, its operator as a digit with a "+" for each value, and
// the values.
void AddRequirements(std::string& text, std::span<const PodRequirement> requirements) {
  AddPart(text, std::string(requirements.size(), '+'));
  for (const PodRequirement& r : requirements) {
    AddPart(text, r.key);
    text.push_back(static_cast<char>('0' + static_cast<int>(r.op)));
    AddPart(text, std::string(r.values.size(), '+'));
    for (const std::string& value : r.values) AddPart(text, value);
  }
}

std::vector<PodRequirement> TakeRequirements(std::string_view& text) {
  std::vector<PodRequirement> requirements(TakePart(text).size());
  for (PodRequirement& r : requirements) {
    r.key = TakePart(text);
    const std::string_view head = TakePart(text);
    CHECK(!head.empty());
    r.op = static_cast<SelectorOp>(head.front() - '0');
    for (size_t i = 1; i < head.size(); ++i) r.values.emplace_back(TakePart(text));
  }
  return requirements;
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

bool PodSelector::Selects(std::string_view labels_text, std::string_view namespace_text) const {
  const std::string_view of = NamespaceOfPodLabels(labels_text);
  const bool there = std::ranges::binary_search(namespaces, of, std::less<>()) ||
                     (of_namespace.has_value() && MeetsAll(*of_namespace, namespace_text));
  return there && MeetsAll(requirements, labels_text) &&
         std::ranges::all_of(also, [&](const PodSelector& other) {
           return other.Selects(labels_text, namespace_text);
         });
}

bool PodSelector::asks_of_namespaces() const {
  return of_namespace.has_value() || std::ranges::any_of(also, &PodSelector::asks_of_namespaces);
}

// Namespaces, behind a "+" for each; requirements of these, if any are asked for; requirements;
// then the others alike.
std::string PodSelectorText(const PodSelector& selector) {
  std::string text;
  const auto add = [&](const PodSelector& one) {
    AddPart(text, std::string(one.namespaces.size(), '+'));
    for (const std::string& name : one.namespaces) AddPart(text, name);
    AddPart(text, one.of_namespace.has_value() ? "*" : "");
    if (one.of_namespace.has_value()) AddRequirements(text, *one.of_namespace);
    AddRequirements(text, one.requirements);
  };
  add(selector);
  for (const PodSelector& other : selector.also) add(other);
  return text;
}

PodSelector ParsePodSelector(std::string_view text) {
  const auto take = [&](PodSelector& one) {
    const size_t count = TakePart(text).size();
    for (size_t i = 0; i < count; ++i) one.namespaces.emplace_back(TakePart(text));
    if (!TakePart(text).empty()) one.of_namespace = TakeRequirements(text);
    one.requirements = TakeRequirements(text);
  };
  PodSelector selector;
  take(selector);
  while (!text.empty()) take(selector.also.emplace_back());
  return selector;
}

}  // namespace berth::model
