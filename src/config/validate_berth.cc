#include <fmt/format.h>

#include <array>
#include <string>
#include <string_view>

#include "config/complete.h"
#include "config/print.h"

namespace berth::config {
namespace {

constexpr std::array<std::string_view, 2> kPlacements = {"joint", "separate"};
constexpr std::array<std::string_view, 2> kTimestamps = {"Creation", "Eviction"};

void CheckRequeuing(const RequeuingStrategy& of, const std::string& at, api::FieldErrors& errors) {
  if (of.timestamp != "Eviction" && of.timestamp != "Creation") {
    errors.push_back(api::NotSupportedField(at + ".timestamp", of.timestamp, kTimestamps));
  }
  const auto above_zero = [&](std::string_view field, int32_t value) {
    if (value < 1) {
      errors.push_back(
          api::InvalidField(fmt::format("{}.{}", at, field), value, "must be at least 1"));
    }
  };
  above_zero("backoffBaseSeconds", of.backoff_base_seconds);
  above_zero("backoffMaxSeconds", of.backoff_max_seconds);
  if (of.backoff_limit_count.value_or(0) < 0) {
    errors.push_back(api::InvalidField(at + ".backoffLimitCount", *of.backoff_limit_count,
                                       "must not be negative"));
  }
}

}  // namespace

api::FieldErrors Validate(const BerthConfiguration& configuration) {
  api::FieldErrors errors;
  const std::string placement = configuration.placement.value_or("joint");
  if (placement != "joint" && placement != "separate")
    errors.push_back(api::NotSupportedField("placement", placement, kPlacements));
  if (!configuration.wait_for_pods_ready) return errors;
  const WaitForPodsReady& ready = *configuration.wait_for_pods_ready;
  const auto above_zero = [&](const char* field, Duration time) {
    if (time <= Duration{}) {
      errors.push_back(api::InvalidField(fmt::format("waitForPodsReady.{}", field), GoText(time),
                                         "must be greater than zero"));
    }
  };
  above_zero("timeout", ready.timeout);
  above_zero("recoveryTimeout", ready.recovery_timeout.value_or(Duration::Seconds(1)));
  CheckRequeuing(ready.requeuing_strategy, "waitForPodsReady.requeuingStrategy", errors);
  return errors;
}

}  // namespace berth::config
