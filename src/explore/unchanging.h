#pragma once

#include <functional>
#include <set>
#include <string>

#include "explore/scenario.h"

namespace berth::explore {

// Of which kinds, by their plurals, nothing is made, changed or deleted once users act, whoever
// acts: neither users, owners, kubelets nor the scheduler. When a list of one is read decides
// nothing.
[[nodiscard]] std::set<std::string, std::less<>> UnchangingKinds(const Scenario& scenario);

}  // namespace berth::explore
