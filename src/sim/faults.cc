#include "sim/faults.h"

#include "base/check.h"

namespace berth::sim {
namespace {

struct MenuEntry {
  std::string_view name;
  // The strongest chance a run may draw, in a thousand. What fires once a message is rarer than
  // what fires once a request, so that a run still makes progress between faults.
  uint32_t per_mille_max = 0;
};

constexpr std::array<MenuEntry, kFaultsCount> kMenu = {{
    {"watch dropped", 4},
    {"watch delayed", 20},
    {"watch duplicated", 20},
    {"watch gone (410)", 200},
    {"conflict (409)", 30},
    {"throttled (429)", 30},
    {"server error (500)", 30},
    {"timeout, applied", 20},
    {"timeout, not applied", 20},
    {"scheduler crashed", 2},
    {"client crashed", 1},
    {"API server crashed", 1},
    {"node lost", 60},
    {"pod re-created", 120},
    {"node re-created", 60},
    {"Deployment re-created", 120},
    {"disk full (507)", 2},
}};

}  // namespace

std::string_view ToString(Fault fault) {
  const auto index = static_cast<size_t>(fault);
  CHECK_LT(index, kFaultsCount);
  return kMenu[index].name;
}

FaultPlan FaultPlan::Draw(Prng& prng) {
  FaultPlan plan;
  for (size_t i = 0; i < kFaultsCount; ++i) {
    const bool in = prng.Chance({1, 2});
    const auto part = static_cast<uint32_t>(prng.Between(1, kMenu[i].per_mille_max));
    if (in) plan.chance[i] = {.part = part, .whole = 1000};
  }
  return plan;
}

FaultCounts& FaultCounts::operator+=(const FaultCounts& other) {
  for (size_t i = 0; i < kFaultsCount; ++i) fired[i] += other.fired[i];
  return *this;
}

}  // namespace berth::sim
