#include "explore/unchanging.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace berth::explore {
namespace {

using Kind = Action::Kind;

struct Listed {
  std::string_view plural;
  Kind kind;
};
// All that a scheduler lists, but those that no line speaks of.
constexpr std::array kListed = {
    Listed{"pods", Kind::kPod},
    Listed{"nodes", Kind::kNode},
    Listed{"poddisruptionbudgets", Kind::kBudget},
    Listed{"priorityclasses", Kind::kClass},
    Listed{"podgroups", Kind::kGroup},
    Listed{"queues", Kind::kGroupQueue},
    Listed{"clusterqueues", Kind::kQueue},
    Listed{"localqueues", Kind::kLocalQueue},
    Listed{"cohorts", Kind::kCohort},
    Listed{"resourceflavors", Kind::kFlavor},
    Listed{"topologies", Kind::kTopology},
    Listed{"admissionchecks", Kind::kCheck},
    Listed{"workloads", Kind::kWorkload},
};

// Of what is there from the start, what others than users write.
bool IsWritten(Kind kind, const Scenario& scenario) {
  switch (kind) {
    case Kind::kPod:
    case Kind::kBudget:
    case Kind::kGroup:
    case Kind::kGroupQueue:
    case Kind::kWorkload:
      return std::ranges::find(scenario.set_up, kind, &Action::kind) != scenario.set_up.end();
    case Kind::kQueue:
    case Kind::kFlavor:
    case Kind::kTopology:
    case Kind::kCheck:
      return scenario.in_use;
    default:
      return false;
  }
}

// Whether an action on the one makes or writes the other.
bool Touches(Kind action, Kind kind) {
  if (action == kind) return true;
  if (kind == Kind::kLocalQueue) return action == Kind::kQueue;  // Made with it.
  return kind == Kind::kPod && action == Kind::kOwner;
}

bool Changes(Kind kind, const Scenario& scenario) {
  if (kind == Kind::kPod && (!scenario.owners.empty() || scenario.joint)) return true;
  return IsWritten(kind, scenario) || std::ranges::any_of(scenario.users, [&](const User& user) {
           return std::ranges::any_of(
               user.actions, [&](const Action& action) { return Touches(action.kind, kind); });
         });
}

}  // namespace

std::set<std::string, std::less<>> UnchangingKinds(const Scenario& scenario) {
  std::set<std::string, std::less<>> plurals = {"limitranges", "namespaces", "runtimeclasses"};
  for (const Listed& each : kListed) {
    if (!Changes(each.kind, scenario)) plurals.emplace(each.plural);
  }
  return plurals;
}

}  // namespace berth::explore
