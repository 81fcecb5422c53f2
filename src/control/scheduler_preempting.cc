// Of the scheduler, who is evicted for whom, and what becomes of that
// (docs/design/0007-preemption.md).
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "control/say.h"
#include "control/scheduler.h"

namespace berth::control {

client::ObjectRef Scheduler::RefOf(model::PodId pod) const {
  const model::State& state = engine_.state();
  const std::string_view key = state.KeyOf(state.pods().at(pod).key);
  const size_t slash = key.find('/');
  CHECK_NE(slash, std::string_view::npos);
  return {.namespace_name = std::string(key.substr(0, slash)),
          .name = std::string(key.substr(slash + 1)),
          .uid = std::string(state.UidOf(state.pods().at(pod).uid))};
}

std::string Scheduler::SchedulerOf(model::PodId pod) const {
  const model::State& state = engine_.state();
  const model::NameId profile =
      state.vocabulary().classes.at(state.pods().at(pod).class_id).profile;
  return profile.valid() ? std::string(state.NameOf(profile)) : options_.scheduler_names.front();
}

// What is to be written of promises follows from the pod's row, whatever changed it.
void Scheduler::FollowUp(model::PodId pod) {
  const model::State& state = engine_.state();
  if (!state.pods().used(pod)) return;
  const model::Pod& row = state.pods().at(pod);
  if (row.node.valid()) {
    if (row.terminating) return evictor_.Left(state.UidOf(row.uid));
    if (const model::PodId preemptor = state.pods().FindUid(row.evicted_for); preemptor.valid())
      EvictFor(preemptor);
    if (state.workloads().FindUid(row.evicted_for).valid()) EvictForWorkload(pod);
    if (row.released) EvictForGang(pod);
    return;
  }
  const std::optional<model::NameId> name = state.NominationToWrite(pod);
  std::optional<std::string_view> node;
  if (name) node = name->valid() ? state.NameOf(*name) : std::string_view();
  const std::string_view uid = state.UidOf(row.uid);
  status_.WantNomination(uid, node);
  // A promise that follows a withdrawal of the same node, whose write was not begun or came to
  // nothing: there is nothing to write.
  if (row.promised.valid() && row.promised == row.nominated && status_.NominationSettled(uid))
    return Apply(model::NominationStands{.uid = std::string(uid)});
  EvictFor(pod);
}

// The nomination stands in the object before the first victim is deleted. A victim that is not
// bound yet is deleted when it is.
void Scheduler::EvictFor(model::PodId pod) {
  const model::State& state = engine_.state();
  if (!state.pods().at(pod).ours || state.pods().at(pod).promised.valid()) return;
  for (const model::PodId victim : state.VictimsOf(pod)) {
    if (state.pods().at(victim).terminating || !state.pods().at(victim).node.valid()) continue;
    const model::NodeId node = state.ledger().claim(state.ClaimOf(victim)).account.node();
    evictor_.Evict({.pod = RefOf(victim),
                    .node = std::string(state.NameOf(state.nodes().name(node))),
                    .scheduler_name = SchedulerOf(pod),
                    .preemptor = RefOf(pod),
                    .marked = state.pods().at(victim).disrupted});
  }
}

// What a workload is promised no write tells: who has started anew promises it again, before less
// important pods are served.
void Scheduler::EvictForWorkload(model::PodId pod) {
  const model::State& state = engine_.state();
  const model::Pod& row = state.pods().at(pod);
  const model::Workload& preemptor =
      state.workloads().at(state.workloads().FindUid(row.evicted_for));
  const std::string_view key = state.KeyOf(preemptor.key);
  evictor_.Evict({.pod = RefOf(pod),
                  .node = std::string(state.NameOf(row.node)),
                  .scheduler_name = options_.scheduler_names.front(),
                  .preemptor = {.namespace_name = std::string(key.substr(0, key.find('/'))),
                                .name = std::string(key.substr(key.find('/') + 1)),
                                .uid = std::string(state.UidOf(preemptor.uid))},
                  .for_workload = true,
                  .marked = row.disrupted});
}

// Its gang was not completed in time.
void Scheduler::EvictForGang(model::PodId pod) {
  const model::State& state = engine_.state();
  const model::Pod& row = state.pods().at(pod);
  evictor_.Evict({.pod = RefOf(pod),
                  .node = std::string(state.NameOf(row.node)),
                  .scheduler_name = SchedulerOf(pod),
                  .preemptor = {},
                  .gang = std::string(state.KeyOf(row.group))});
}

bool Scheduler::Wanted(const Evictor::Victim& victim) const {
  const model::State& state = engine_.state();
  const model::PodId pod = state.FindPod(victim.pod.uid);
  if (!pod.valid()) return false;
  const model::Pod& row = state.pods().at(pod);
  if (row.terminating) return false;
  if (!victim.gang.empty()) return row.released;
  if (!row.evicted_for.valid()) return false;
  if (victim.for_workload) return state.UidOf(row.evicted_for) == victim.preemptor.uid;
  const model::PodId preemptor = state.pods().FindUid(row.evicted_for);
  return state.UidOf(row.evicted_for) == victim.preemptor.uid && preemptor.valid() &&
         !state.pods().at(preemptor).promised.valid();
}

void Scheduler::OnNomination(Instant now, const StatusWriter::Result& result, env::Outbox& out) {
  if (!result.nomination) return;
  if (!result.object.empty()) {
    Learn(now, result.object, out);
    if (!HasNomination(result)) OnRefusedNomination(now, result, out);
  } else if (result.refused != 0) {
    OnRefusedNomination(now, result, out);
  }
  FollowUp(engine_.state().FindPod(result.uid));
}

// Whether the pod has what was written. Whoever may change statuses on their way, as a webhook, may
// take it out again.
bool Scheduler::HasNomination(const StatusWriter::Result& result) const {
  const model::State& state = engine_.state();
  const model::PodId id = state.FindPod(result.uid);
  if (!id.valid()) return true;
  const model::Pod& pod = state.pods().at(id);
  if (pod.node.valid() || pod.terminal) return true;
  const std::string_view has =
      pod.nominated.valid() ? state.NameOf(pod.nominated) : std::string_view();
  return has == *result.nomination;
}

void Scheduler::OnRefusedNomination(Instant now, const StatusWriter::Result& result,
                                    env::Outbox& out) {
  ++counters_.errors;
  WakeWatchdog(now);
  const bool withdraws = result.nomination->empty();
  const model::State& state = engine_.state();
  const model::PodId pod = state.FindPod(result.uid);
  const std::string who = pod.valid() ? fmt::format("pod {}", state.KeyOf(state.pods().at(pod).key))
                                      : fmt::format("the pod of uid {}", result.uid);
  const std::string what = withdraws ? "the end of its nomination"
                                     : fmt::format("its nomination to node {}", *result.nomination);
  const std::string how =
      result.refused != 0
          ? fmt::format("was refused ({})", result.refused)
          : "was taken by the API server, and the pod does not have it: does a webhook change it?";
  Say(out, env::LogLevel::kWarning, fmt::format("{}: {} {}", who, what, how));
  if (result.refused == 0) status_.NominationLost(now, result.uid);
  // Of another promise than stands now it says nothing.
  if (PromisedTo(result.uid) == *result.nomination)
    Apply(model::PreemptionRefused{.uid = result.uid, .code = result.refused, .at = now});
}

// Empty for nothing, or a pod that is not known.
std::string_view Scheduler::PromisedTo(std::string_view uid) const {
  const model::State& state = engine_.state();
  const model::PodId pod = state.FindPod(uid);
  const model::NodeId node = pod.valid() ? state.PromisedNodeOf(pod) : model::NodeId{};
  if (!node.valid()) return {};
  return state.NameOf(state.nodes().name(node));
}

// Withdraws those that are not wanted any more and tells of those that came true.
void Scheduler::EndEvictions(Instant now) {
  evictor_.Withdraw([this](const Evictor::Victim& victim) { return Wanted(victim); }, client_);
  for (const Evictor::Victim& victim : evictor_.TakeEvicted()) {
    const StatusWriter::Placed was{
        .pod = victim.pod, .scheduler_name = victim.scheduler_name, .node = victim.node};
    if (victim.gang.empty()) {
      status_.Preempted(now, was, victim.preemptor, victim.for_workload);
    } else {
      status_.Released(now, was, victim.gang);
    }
  }
}

void Scheduler::OnEviction(Instant now, const Evictor::Result& result, env::Outbox& out) {
  const Evictor::Victim& victim = result.victim;
  if (result.end == Evictor::Result::End::kNone || options_.planted_keep_refused) return;
  Say(out, env::LogLevel::kWarning,
      fmt::format(
          "pod {}/{} on node {}: its eviction {} ({})", victim.pod.namespace_name, victim.pod.name,
          victim.node,
          result.end == Evictor::Result::End::kRefused ? "was refused" : "fails again and again",
          result.code));
  ++counters_.errors;
  WakeWatchdog(now);
  Apply(model::EvictionRefused{.uid = victim.pod.uid,
                               .code = result.code,
                               .failed = result.end == Evictor::Result::End::kFailed,
                               .at = now});
}

}  // namespace berth::control
