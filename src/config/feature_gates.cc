#include "config/feature_gates.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <ranges>
#include <utility>

#include "base/check.h"

namespace berth::config {
namespace {

constexpr Gate kGates[] = {
#include "config/feature_gates.inc"
};
static_assert(std::ranges::is_sorted(kGates, {}, &Gate::name));

// Go's strconv.ParseBool.
std::optional<bool> ParseBool(std::string_view text) {
  for (const std::string_view word : {"1", "t", "T", "true", "TRUE", "True"}) {
    if (text == word) return true;
  }
  for (const std::string_view word : {"0", "f", "F", "false", "FALSE", "False"}) {
    if (text == word) return false;
  }
  return std::nullopt;
}

std::string_view Trim(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

std::optional<GateStage> StageOfAll(std::string_view name) {
  if (name == "AllAlpha") return GateStage::kAlpha;
  if (name == "AllBeta") return GateStage::kBeta;
  return std::nullopt;
}

// One `NAME=BOOL`; what is wrong with it, or nothing.
std::string Take(std::string_view part, std::map<std::string, bool, std::less<>>& named) {
  const size_t equals = part.find('=');
  const std::string_view key = Trim(part.substr(0, equals));
  if (equals == std::string_view::npos) return fmt::format("missing bool value for {}", key);
  const std::string_view text = Trim(part.substr(equals + 1));
  const std::optional<bool> value = ParseBool(text);
  if (!value) return fmt::format("invalid value of {}={}: not true or false", key, text);
  const std::string_view name = key.starts_with("kube:") ? key.substr(5) : key;
  const Gate* gate = FindGate(name);
  if (gate == nullptr && !StageOfAll(name))
    return fmt::format("unrecognized feature gate: {}", key);
  if (gate != nullptr && gate->fixed && gate->on != *value) {
    return fmt::format("cannot set feature gate {} to {}, feature is locked to {}", key, *value,
                       gate->on);
  }
  named.insert_or_assign(std::string(name), *value);
  return "";
}

}  // namespace

const Gate* FindGate(std::string_view name) {
  const auto* found = std::ranges::lower_bound(kGates, name, {}, &Gate::name);
  return found != std::end(kGates) && found->name == name ? found : nullptr;
}

std::expected<FeatureGates, std::vector<std::string>> FeatureGates::Parse(
    const std::vector<std::string>& values) {
  std::map<std::string, bool, std::less<>> named;
  std::vector<std::string> problems;
  for (const std::string_view value : values) {
    for (const auto range : std::views::split(value, ',')) {
      const std::string_view part = Trim(std::string_view(range.begin(), range.end()));
      if (part.empty()) continue;
      if (std::string problem = Take(part, named); !problem.empty())
        problems.push_back(std::move(problem));
    }
  }
  if (!problems.empty()) return std::unexpected(std::move(problems));
  FeatureGates out;
  for (const auto& [name, on] : named) {
    const std::optional<GateStage> stage = StageOfAll(name);
    if (!stage) continue;
    for (const Gate& gate : kGates) {
      if (gate.stage == *stage && !gate.fixed)
        out.switched_.insert_or_assign(std::string(gate.name), on);
    }
  }
  // Who is named has the last word.
  for (const auto& [name, on] : named) {
    if (!StageOfAll(name)) out.switched_.insert_or_assign(name, on);
  }
  return out;
}

bool FeatureGates::on(std::string_view name) const {
  const auto found = switched_.find(name);
  if (found != switched_.end()) return found->second;
  const Gate* gate = FindGate(name);
  CHECK(gate != nullptr);
  return gate->on;
}

}  // namespace berth::config
