#include "api/node_match.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>

namespace berth::api {
namespace {

std::optional<int64_t> NumberOf(std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

bool Matches(const Requirement& requirement, std::optional<std::string_view> value) {
  const auto among = [&] {
    return value && std::ranges::find(requirement.values, *value) != requirement.values.end();
  };
  if (requirement.op == "In") return among();
  if (requirement.op == "NotIn") return !among();
  if (requirement.op == "Exists") return value.has_value();
  if (requirement.op == "DoesNotExist") return !value.has_value();
  if (!value || requirement.values.size() != 1) return false;
  const auto own = NumberOf(*value);
  const auto limit = NumberOf(requirement.values.front());
  if (!own || !limit) return false;
  if (requirement.op == "Gt") return *own > *limit;
  return requirement.op == "Lt" && *own < *limit;
}

bool Matches(const NodeSelectorTerm& term, const Node& node) {
  if (term.match_expressions.empty() && term.match_fields.empty()) return false;
  return std::ranges::all_of(term.match_expressions,
                             [&](const Requirement& requirement) {
                               return Matches(requirement, Find(node.meta.labels, requirement.key));
                             }) &&
         std::ranges::all_of(term.match_fields, [&](const Requirement& requirement) {
           return requirement.key == "metadata.name" && Matches(requirement, node.meta.name);
         });
}

bool Tolerates(const Toleration& toleration, const Taint& taint) {
  if (!toleration.effect.empty() && toleration.effect != taint.effect) return false;
  if (!toleration.key.empty() && toleration.key != taint.key) return false;
  if (toleration.op == "Exists") return true;
  return (toleration.op.empty() || toleration.op == "Equal") && toleration.value == taint.value;
}

}  // namespace

bool MatchesNode(const PodSpec& spec, const Node& node) {
  const bool selected = std::ranges::all_of(spec.node_selector, [&](const auto& wanted) {
    return Find(node.meta.labels, wanted.first) == std::string_view(wanted.second);
  });
  if (!selected || !spec.required_node_affinity) return selected;
  return MatchesAny(*spec.required_node_affinity, node);
}

bool MatchesAny(const std::vector<NodeSelectorTerm>& terms, const Node& node) {
  return std::ranges::any_of(terms, [&](const auto& term) { return Matches(term, node); });
}

bool ToleratesAll(const std::vector<Toleration>& tolerations, const Node& node,
                  std::string_view effect) {
  return std::ranges::all_of(node.taints, [&](const Taint& taint) {
    return taint.effect != effect || std::ranges::any_of(tolerations, [&](const auto& toleration) {
             return Tolerates(toleration, taint);
           });
  });
}

}  // namespace berth::api
