#pragma once

#include "env/actor.h"

namespace berth::control {

class Scheduler;

// What kube-scheduler's cache debugger tells on SIGUSR2: of each node what it has and who is
// charged there and how, of each pod that has no node where it stands, what is promised, and what
// an audit of the ledger finds. A line of the log each, with keys; at most kDumpLinesMax of nodes'
// claims and as many of pods, and how many more there are. O(claims + pods x log pods).
inline constexpr size_t kDumpLinesMax = 100'000;
void Dump(const Scheduler& scheduler, env::Outbox& out);

}  // namespace berth::control
