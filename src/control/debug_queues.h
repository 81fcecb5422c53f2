#pragma once

#include "api/json.h"

namespace berth::control {

class Scheduler;

// The tree of queues, for GET /debug/queues; a parent comes before its children, which are in the
// order of their names:
//   {"queues":[{"kind","name","parent","exists","active","inactive":{"reason","message"},
//               "strict","stopped","deleting",
//               "quotas":[{"flavor","flavorMissing","resource","nominal","borrowingLimit",
//                          "lendingLimit","has","used","leaving","promised","borrowed","lent",
//                          "left"}],
//               "waitingCount","waiting":[{"workload","priority","since","reason","message",
//                                          "waitsFor","notBefore"}]}]}
// with the members that apply. `inactive` says why nobody gets quota there, and what to change;
// `deleting`: that is since it is being deleted.
// Of Volcano's queues (kind Queue) a quota is {"resource","deserved","guarantee","has","used",
// "leaving","promised","left"}, where `has` is the capability and what has
// no bound is left out, and who waits is a "group". Amounts are quantities. `has` is the nominal
// quota and what those below it lend; `used` is used now, of which `leaving` is given back by those
// that are evicted; `promised` is for who waits for that; `borrowed` is what is used beyond what it
// has, `lent` what it has, does not use and can't get, since others use it; `left` what it may use
// besides.
// `waiting` is in the order in which they are looked at, at most kWaitingShown of each queue; those
// that are not tried come last, with `waitsFor` or `notBefore`.
// O(accounts x resources x levels + workloads that wait).
[[nodiscard]] api::JsonObject QueuesJson(const Scheduler& scheduler);

inline constexpr size_t kWaitingShown = 20;

}  // namespace berth::control
