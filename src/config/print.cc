#include "config/print.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>
#include <variant>

#include "codec/yaml.h"
#include "config/profile.h"

namespace berth::config {

std::string GoText(Duration time) {
  if (time == Duration{}) return "0s";
  const bool negative = time < Duration{};
  // The least of all has no opposite.
  const uint64_t ns =
      negative ? ~static_cast<uint64_t>(time.ns) + 1 : static_cast<uint64_t>(time.ns);
  std::string out = negative ? "-" : "";
  const auto with_fraction = [&](uint64_t whole, uint64_t unit, std::string_view suffix) {
    std::string text = fmt::format("{}", whole / unit);
    if (uint64_t rest = whole % unit; rest != 0) {
      text += '.';
      for (uint64_t place = unit / 10; rest != 0; place /= 10) {
        text += static_cast<char>('0' + rest / place);
        rest %= place;
      }
    }
    out += text;
    out += suffix;
  };
  if (ns < 1'000) {
    with_fraction(ns, 1, "ns");
  } else if (ns < 1'000'000) {
    with_fraction(ns, 1'000, "µs");
  } else if (ns < 1'000'000'000) {
    with_fraction(ns, 1'000'000, "ms");
  } else {
    constexpr uint64_t kSecond = 1'000'000'000;
    const uint64_t hours = ns / (3600 * kSecond);
    const uint64_t minutes = ns / (60 * kSecond) % 60;
    if (hours > 0) out += fmt::format("{}h", hours);
    if (hours > 0 || minutes > 0) out += fmt::format("{}m", minutes);
    with_fraction(ns % (60 * kSecond), kSecond, "s");
  }
  return out;
}

api::Json ToJson(double& value) {
  const bool whole = std::trunc(value) == value && std::fabs(value) < 0x1p53;
  return whole ? api::Json(static_cast<int64_t>(value)) : api::Json(value);
}

api::Json ToJson(PluginConfig& value) {
  api::JsonObject out;
  out["name"] = value.name;
  std::visit(
      [&](auto& args) {
        if constexpr (!std::is_same_v<std::decay_t<decltype(args)>, std::monostate>) {
          api::Json said = ToJson(args);
          said.get_object()["apiVersion"] = kSchedulerVersion;
          said.get_object()["kind"] = fmt::format("{}Args", value.name);
          out["args"] = std::move(said);
        }
      },
      value.args);
  return out;
}

namespace {

std::string PrintAs(std::string_view version, std::string_view kind, api::Json document) {
  document.get_object()["apiVersion"] = version;
  document.get_object()["kind"] = kind;
  return codec::PrintYaml(document);
}

}  // namespace

std::string PrintSchedulerConfiguration(const SchedulerConfiguration& configuration,
                                        const FeatureGates& gates) {
  SchedulerConfiguration copy = configuration;
  for (Profile& profile : copy.profiles)
    profile.plugins.multi_point = MergedMultiPoint(profile.plugins, gates);
  return PrintAs(kSchedulerVersion, kSchedulerKind, ToJson(copy));
}

std::string PrintBerthConfiguration(const BerthConfiguration& configuration) {
  BerthConfiguration copy = configuration;
  copy.placement = copy.placement.value_or("joint");
  WaitForPodsReady& ready =
      copy.wait_for_pods_ready ? *copy.wait_for_pods_ready : copy.wait_for_pods_ready.emplace();
  ready.recovery_timeout = ready.recovery_timeout.value_or(ready.timeout);
  return PrintAs(kBerthVersion, kBerthKind, ToJson(copy));
}

}  // namespace berth::config
