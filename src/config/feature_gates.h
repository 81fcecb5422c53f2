#pragma once

#include <cstdint>
#include <expected>
#include <map>
#include <string>
#include <string_view>
#include <vector>

// Kubernetes' feature gates, as its programs take them from their command lines.
namespace berth::config {

enum class GateStage : uint8_t { kAlpha, kBeta, kStable, kDeprecated };

struct Gate {
  std::string_view name;
  bool on;     // Without being asked for.
  bool fixed;  // It can't be switched any more.
  GateStage stage;
};

// Null: there is none of that name in Kubernetes 1.36.
[[nodiscard]] const Gate* FindGate(std::string_view name);

// Which gates are on. A value.
class FeatureGates {
 public:
  // Of values of --feature-gates, the last one counts: `A=true,B=false`, also with `kube:` before a
  // name; AllAlpha and AllBeta stand for all of that stage. Errors, all at once and in upstream's
  // words: a gate that there isn't, no value, one that is fixed.
  [[nodiscard]] static std::expected<FeatureGates, std::vector<std::string>> Parse(
      const std::vector<std::string>& values);

  // REQUIRES: there is such a gate.
  [[nodiscard]] bool on(std::string_view name) const;
  // Those that were switched, with what to.
  [[nodiscard]] const std::map<std::string, bool, std::less<>>& switched() const {
    return switched_;
  }
  bool operator==(const FeatureGates&) const = default;

 private:
  std::map<std::string, bool, std::less<>> switched_;
};

}  // namespace berth::config
