#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "cycle/engine.h"
#include "cycle/test_cluster.h"
#include "model/audit.h"

// Test code: short ways to say facts of queues and workloads, and to print what is decided.
namespace berth::cycle {

struct QueueSpec {
  std::string name;
  std::string cohort;
  std::vector<std::pair<std::string, int64_t>> flavors = {{"spot", 4000}};  // And their cpu.
  bool strict = false;
  bool stopped = false;
  bool lacks_checks = false;
  model::QueuePreemption preemption = {};
};

// Whoever is of lower priority in the queue, and whoever uses what is the queue's.
inline constexpr model::QueuePreemption kEvicts = {
    .within_queue = model::EvictionPolicy::kLowerPriority, .reclaim = model::EvictionPolicy::kAny};

struct WorkloadSpec {
  std::string name;
  std::string queue = "q";  // The LocalQueue, which is called as its ClusterQueue.
  uint32_t count = 1;
  int64_t cpu = 1000;
  int32_t priority = 0;
  int64_t created = 0;
  int64_t requeue_at = 0;
  std::string job = {};   // The name of its Job; empty: its own.
  bool preempts = false;  // So may its pods, which are of its priority.
  std::string gang = {};  // The group that its pods name; empty: none.
  uint32_t host_port = 0;
  std::string profile = {};  // Its pods' scheduler's name.
};

// An engine and the API of queues and workloads, as far as quota sees it.
class QuotaWorld {
 public:
  QuotaWorld() = default;
  explicit QuotaWorld(const Engine::Options& options) : engine(options) {}

  void Put(const QueueSpec& queue) {
    model::Vocabulary& v = engine.vocabulary();
    model::QueueUpsert facts{.name = queue.name,
                             .uid = "u-" + queue.name,
                             .parent = queue.cohort,
                             .preemption = queue.preemption,
                             .strict_fifo = queue.strict,
                             .stopped = queue.stopped,
                             .lacks_checks = queue.lacks_checks};
    std::vector<model::NameId> flavors;
    for (const auto& [flavor, cpu] : queue.flavors) {
      flavors.push_back(v.names.Intern(flavor));
      if (state().flavors().Find(flavors.back()) == nullptr)
        engine.Apply(model::FlavorUpsert{.name = flavor, .uid = "u-" + flavor});
      facts.quotas.push_back(
          {.flavor = flavors.back(), .resource = model::kCpu, .quota = {.nominal = cpu}});
    }
    const std::vector<model::ResourceId> resources = {model::kCpu};
    const std::vector<model::ResourceGroup> groups = {{.resources = resources, .flavors = flavors}};
    facts.groups = v.resource_groups.Intern(groups);
    engine.Apply(facts);
    engine.Apply(model::LocalQueueUpsert{
        .uid = "u-lq-" + queue.name, .key = "default/" + queue.name, .cluster_queue = queue.name});
  }
  [[nodiscard]] model::WorkloadUpsert FactsOf(const WorkloadSpec& w) {
    model::Vocabulary& v = engine.vocabulary();
    model::WorkloadUpsert facts{.uid = "u-" + w.name,
                                .key = "default/" + w.name,
                                .local_queue = "default/" + w.queue,
                                .job = "u-job-" + (w.job.empty() ? w.name : w.job),
                                .priority = w.priority};
    facts.status.created = Instant::FromSeconds(w.created);
    facts.status.requeue_at = Instant::FromSeconds(w.requeue_at);
    facts.slots = {{.name = v.names.Intern("main"),
                    .class_id = ClassOf(
                        v, TestPod{.cpu = w.cpu, .host_port = w.host_port, .profile = w.profile}),
                    .count = w.count,
                    .priority = w.priority,
                    .preempts = w.preempts}};
    if (!w.gang.empty()) facts.slots[0].gang = v.names.Intern("default/" + w.gang);
    return facts;
  }
  void Put(const WorkloadSpec& w) { engine.Apply(FactsOf(w)); }
  // Its reservation is written and observed.
  void ComesTrue(const WorkloadSpec& w) {
    model::WorkloadUpsert facts = FactsOf(w);
    const model::Workload& row = state().workloads().at(state().FindWorkload(facts.uid));
    facts.status.reserved = facts.status.admitted = true;
    facts.status.reserved_at = now;
    facts.reserved = row.decided;
    engine.Apply(facts);
    engine.Apply(model::ReservationOutcome{
        .uid = facts.uid, .outcome = model::WriteOutcome::kDone, .at = now});
  }
  // A version of who runs.
  void Observe(const WorkloadSpec& w) {
    model::WorkloadUpsert facts = FactsOf(w);
    const model::Workload& row = state().workloads().at(state().FindWorkload(facts.uid));
    facts.status = row.status;
    facts.reserved = row.reserved;
    engine.Apply(facts);
  }
  // Its object says that it is evicted.
  void IsTold(const WorkloadSpec& w) {
    model::WorkloadUpsert facts = FactsOf(w);
    const model::Workload& row = state().workloads().at(state().FindWorkload(facts.uid));
    facts.status.reserved = facts.status.admitted = true;
    facts.status.evicted_for = model::EvictedFor::kOther;
    facts.status.evicted_at = now;
    facts.reserved = row.reserved;
    engine.Apply(facts);
  }
  // It holds quota and runs.
  void Starts(const WorkloadSpec& w) {
    Put(w);
    engine.Cycle(now);
    ComesTrue(w);
  }
  [[nodiscard]] const model::Workload& RowOf(const std::string& name) const {
    return state().workloads().at(state().FindWorkload("u-" + name));
  }
  void Remove(const std::string& name) { engine.Apply(model::WorkloadRemove{.uid = "u-" + name}); }

  // What a cycle decides: who gets what, and who waits, why.
  std::string Cycle() {
    const model::Plan plan = engine.Cycle(now);
    std::string text;
    for (const model::ReserveDecision& r : plan.reservations) {
      const model::Workload& row = state().workloads().at(r.workload);
      text +=
          fmt::format("{}: {}", state().KeyOf(row.key), state().NameOf(row.decided.cluster_queue));
      for (const model::QuotaCharge& charge : row.decided.charges) {
        text += fmt::format(
            " {} {}", state().NameOf(charge.flavor),
            charge.count * state().vocabulary().bundles.AmountOf(charge.amounts, model::kCpu));
      }
      for (const model::Slot& slot : row.decided.slots)
        text += fmt::format(" {}", state().NameOf(slot.node));
      text += "; ";
    }
    for (const model::EvictDecision& e : plan.evictions) {
      const model::Workload& row = state().workloads().at(e.workload);
      text += fmt::format("evict {} for {}; ", state().KeyOf(row.key),
                          state().KeyOf(state().workloads().at(row.claimant).key));
    }
    for (const model::PodId pod : plan.evicted) {
      const model::OwnerId preemptor = state().pods().at(pod).evicted_for;
      const model::Workload& row = state().workloads().at(state().workloads().FindUid(preemptor));
      text += fmt::format("evict pod {} for {}; ", state().KeyOf(state().pods().at(pod).key),
                          state().KeyOf(row.key));
    }
    for (const model::PassDecision& p : plan.passes) text += TextOf(p);
    for (const model::BindDecision& b : plan.binds) {
      text += fmt::format("{} on {}; ", state().KeyOf(state().pods().at(b.pod).key),
                          state().NameOf(b.node_name));
    }
    for (const model::WorkloadId w : plan.workloads)
      text += fmt::format("{} {}; ", state().KeyOf(state().workloads().at(w).key), Why(w));
    for (const std::string& line : model::Audit(state())) text += line;
    if (engine.CountMissedWakes() > 0) text += "missed wakes";
    return text;
  }
  // "default/a without n1: n2 n2; ", or "default/a gives up for n1; "
  [[nodiscard]] std::string TextOf(const model::PassDecision& pass) const {
    const model::Workload& row = state().workloads().at(pass.workload);
    std::string text(state().KeyOf(row.key));
    text += pass.evicts() ? " gives up" : "";
    for (const model::NameId node : pass.failed)
      text += fmt::format(" {} {}", pass.evicts() ? "for" : "without", state().NameOf(node));
    if (!pass.evicts()) text += ":";
    for (const model::Slot& slot : row.decided.slots)
      text += fmt::format(" {}", state().NameOf(slot.node));
    return text + "; ";
  }
  [[nodiscard]] std::string Why(model::WorkloadId w) const {
    const auto why = engine.admissions().WhyWaits(w);
    if (!why) return "has no reason";
    switch (why->bar) {
      case model::QueueBar::kNone:
        break;
      case model::QueueBar::kNoLocalQueue:
        return "has no local queue";
      case model::QueueBar::kLocalQueueStopped:
        return "local queue stopped";
      case model::QueueBar::kNamespace:
        return "namespace";
      case model::QueueBar::kNoClusterQueue:
        return "has no cluster queue";
      case model::QueueBar::kClusterQueueStopped:
        return "cluster queue stopped";
      case model::QueueBar::kCohortCycle:
        return "cycle";
      case model::QueueBar::kInactive:
        return "inactive";
      case model::QueueBar::kBehind:
        return fmt::format("behind {}", state().KeyOf(why->behind));
      case model::QueueBar::kFull:
        return "full";
      case model::QueueBar::kUnsupported:
        return "unsupported";
      case model::QueueBar::kTooMany:
        return "too many";
      case model::QueueBar::kGang:
        if (!why->gang) return "has no group";
        if (why->gang->gang->bar != model::GroupBar::kNone) return "has a group that is kept out";
        if (why->gang->reasons.front().kind == model::ReasonKind::kQuotaShort)
          return fmt::format("has a group that lacks {}", why->gang->reasons.front().deficit);
        return fmt::format(
            "is {} of a group that needs {}{}", why->gang->gang->found, why->gang->gang->needed,
            why->behind.valid() ? fmt::format(" without {}", state().KeyOf(why->behind)) : "");
    }
    if (!why->places.empty()) {
      const model::PlacesRefusal& first = why->places.front();
      if (first.topology && first.topology->fills.empty())
        return fmt::format("finds no domain ({})", static_cast<int>(first.topology->kind));
      if (first.topology) {
        const model::TopologyFill& fill = first.topology->fills.front();
        return fmt::format("finds {} of {} in {}", fill.fits, fill.wanted,
                           state().NameOf(first.topology->level));
      }
      return fmt::format("finds nodes for {} of {}{}", first.found, first.needed,
                         why->promised ? ", promised" : "");
    }
    if (why->fault != model::TopologyFault::kNone)
      return fmt::format("topology fault {}", static_cast<int>(why->fault));
    if (why->promised && why->shared) return "waits for who leaves for others";
    if (why->promised) return fmt::format("waits for {} to leave", why->victims_count);
    if (why->reasons.empty()) return "lacks nothing";
    const model::FlavorReason& first = why->reasons.front();
    if (first.kind == model::FlavorReasonKind::kShort) return fmt::format("lacks {}", first.amount);
    if (first.kind == model::FlavorReasonKind::kExceedsMost)
      return fmt::format("wants {} of {}", first.amount, first.most);
    return fmt::format("reason {}", static_cast<int>(first.kind));
  }
  [[nodiscard]] const model::State& state() const { return engine.state(); }

  Engine engine;
  Instant now = Instant::FromSeconds(1000);
};

}  // namespace berth::cycle
