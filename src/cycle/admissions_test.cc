// Goal: workloads get quota in the order of their queues, all of it or none, and whoever could have
// it is not left waiting. Method: plans of small worlds, printed; and random histories, after each
// step of which the audit, the watchdog and a count of what is left are asked.
#include "cycle/admissions.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "cycle/engine.h"
#include "cycle/test_cluster.h"
#include "model/audit.h"

namespace berth::cycle {
namespace {

struct QueueSpec {
  std::string name;
  std::string cohort;
  std::vector<std::pair<std::string, int64_t>> flavors = {{"spot", 4000}};  // And their cpu.
  bool strict = false;
  bool stopped = false;
};

struct WorkloadSpec {
  std::string name;
  std::string queue = "q";  // The LocalQueue, which is called as its ClusterQueue.
  uint32_t count = 1;
  int64_t cpu = 1000;
  int32_t priority = 0;
  int64_t created = 0;
  int64_t requeue_at = 0;
};

// An engine and the API of queues and workloads, as far as quota sees it.
class QuotaWorld {
 public:
  void Put(const QueueSpec& queue) {
    model::Vocabulary& v = engine.vocabulary();
    model::QueueUpsert facts{.name = queue.name,
                             .uid = "u-" + queue.name,
                             .parent = queue.cohort,
                             .strict_fifo = queue.strict,
                             .stopped = queue.stopped};
    std::vector<model::NameId> flavors;
    for (const auto& [flavor, cpu] : queue.flavors) {
      engine.Apply(model::FlavorUpsert{.name = flavor, .uid = "u-" + flavor});
      flavors.push_back(v.names.Intern(flavor));
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
                                .priority = w.priority};
    facts.status.created = Instant::FromSeconds(w.created);
    facts.status.requeue_at = Instant::FromSeconds(w.requeue_at);
    facts.slots = {{.name = v.names.Intern("main"),
                    .class_id = ClassOf(v, TestPod{.cpu = w.cpu}),
                    .count = w.count}};
    return facts;
  }
  void Put(const WorkloadSpec& w) { engine.Apply(FactsOf(w)); }
  // Its reservation is written and observed.
  void ComesTrue(const WorkloadSpec& w) {
    model::WorkloadUpsert facts = FactsOf(w);
    const model::Workload& row = state().workloads().at(state().FindWorkload(facts.uid));
    facts.status.reserved = facts.status.admitted = true;
    facts.reserved = row.decided;
    engine.Apply(facts);
    engine.Apply(model::ReservationOutcome{
        .uid = facts.uid, .outcome = model::WriteOutcome::kDone, .at = now});
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
      text += "; ";
    }
    for (const model::WorkloadId w : plan.workloads)
      text += fmt::format("{} {}; ", state().KeyOf(state().workloads().at(w).key), Why(w));
    for (const std::string& line : model::Audit(state())) text += line;
    if (engine.CountMissedWakes() > 0) text += "missed wakes";
    return text;
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
      case model::QueueBar::kBehind:
        return fmt::format("behind {}", state().KeyOf(why->behind));
      case model::QueueBar::kFull:
        return "full";
    }
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

TEST(AdmissionsTest, TheFirstInOrderGetsWhatIsLeft) {
  QuotaWorld world;
  world.Put(QueueSpec{.name = "q"});
  world.Put(WorkloadSpec{.name = "young", .count = 3, .created = 20});
  world.Put(WorkloadSpec{.name = "old", .count = 2, .created = 10});
  world.Put(WorkloadSpec{.name = "dear", .count = 1, .priority = 5, .created = 30});
  EXPECT_EQ(world.Cycle(),
            "default/dear: q spot 1000; default/old: q spot 2000; default/young lacks 2000; ");
  EXPECT_EQ(world.Cycle(), "");
  EXPECT_EQ(world.engine.wake_at(), Instant::Never());
  world.Remove("old");
  EXPECT_EQ(world.Cycle(), "default/young: q spot 3000; ");
}

TEST(AdmissionsTest, WhoFindsNoQuotaLetsOthersPass) {
  QuotaWorld world;
  world.Put(QueueSpec{.name = "q"});
  world.Put(WorkloadSpec{.name = "large", .count = 5, .created = 1});
  world.Put(WorkloadSpec{.name = "small", .count = 1, .created = 2});
  EXPECT_EQ(world.Cycle(), "default/small: q spot 1000; default/large wants 5000 of 4000; ");
}

TEST(AdmissionsTest, NobodyPassesInAStrictQueue) {
  QuotaWorld world;
  world.Put(QueueSpec{.name = "q", .strict = true});
  world.Put(WorkloadSpec{.name = "running", .count = 2});
  EXPECT_EQ(world.Cycle(), "default/running: q spot 2000; ");
  world.Put(WorkloadSpec{.name = "first", .count = 3, .created = 1});
  world.Put(WorkloadSpec{.name = "second", .count = 1, .created = 2});
  EXPECT_EQ(world.Cycle(), "default/first lacks 1000; default/second behind default/first; ");
  world.Put(WorkloadSpec{.name = "third", .count = 1, .created = 3});
  EXPECT_EQ(world.Cycle(), "default/third behind default/first; ");
  world.Put(WorkloadSpec{.name = "dear", .count = 1, .priority = 1, .created = 4});
  EXPECT_EQ(world.Cycle(), "default/dear: q spot 1000; ");
  world.Remove("first");
  EXPECT_EQ(world.Cycle(), "default/second: q spot 1000; default/third lacks 1000; ");
}

TEST(AdmissionsTest, QueuesOfACohortAreServedTogether) {
  QuotaWorld world;
  world.Put(QueueSpec{.name = "a", .cohort = "all", .flavors = {{"spot", 2000}}});
  world.Put(QueueSpec{.name = "b", .cohort = "all", .flavors = {{"spot", 2000}}});
  world.Put(WorkloadSpec{.name = "borrows", .queue = "a", .count = 3, .priority = 9, .created = 1});
  world.Put(WorkloadSpec{.name = "owns", .queue = "b", .count = 2, .created = 2});
  EXPECT_EQ(world.Cycle(), "default/owns: b spot 2000; default/borrows lacks 1000; ")
      << "who borrows nothing comes before who is more important";
  world.ComesTrue({.name = "owns", .queue = "b", .count = 2, .created = 2});
  EXPECT_EQ(world.Cycle(), "");
  world.Remove("owns");
  EXPECT_EQ(world.Cycle(), "default/borrows: a spot 3000; ") << "freed in another queue";
}

TEST(AdmissionsTest, TheSecondFlavorIsTakenWhenTheFirstIsUsedUp) {
  QuotaWorld world;
  world.Put(QueueSpec{.name = "q", .flavors = {{"reserved", 1000}, {"spot", 3000}}});
  world.Put(WorkloadSpec{.name = "a", .created = 1});
  world.Put(WorkloadSpec{.name = "b", .created = 2});
  EXPECT_EQ(world.Cycle(), "default/a: q reserved 1000; default/b: q spot 1000; ");
}

TEST(AdmissionsTest, WhatBarsAWorkloadIsToldOnce) {
  QuotaWorld world;
  world.Put(WorkloadSpec{.name = "w"});
  EXPECT_EQ(world.Cycle(), "default/w has no local queue; ");
  world.engine.Apply(model::LocalQueueUpsert{.uid = "u-1",
                                             .key = "default/q",
                                             .cluster_queue = "q",
                                             .bar = model::LocalQueueBar::kStopped});
  EXPECT_EQ(world.Cycle(), "default/w local queue stopped; ");
  world.engine.Apply(model::LocalQueueUpsert{.uid = "u-1",
                                             .key = "default/q",
                                             .cluster_queue = "q",
                                             .bar = model::LocalQueueBar::kNamespace});
  EXPECT_EQ(world.Cycle(), "default/w namespace; ");
  world.engine.Apply(
      model::LocalQueueUpsert{.uid = "u-1", .key = "default/q", .cluster_queue = "q"});
  EXPECT_EQ(world.Cycle(), "default/w has no cluster queue; ");
  world.Put(QueueSpec{.name = "q", .stopped = true});
  EXPECT_EQ(world.Cycle(), "default/w cluster queue stopped; ");
  world.Put(QueueSpec{.name = "q", .cohort = "c"});
  model::QueueUpsert cycle{.kind = model::QueueKind::kCohort, .name = "c", .uid = "u-c"};
  cycle.parent = "c";
  world.engine.Apply(cycle);
  EXPECT_EQ(world.Cycle(), "default/w cycle; ");
  EXPECT_EQ(world.Cycle(), "");
  world.engine.Apply(model::FlavorRemove{.name = "spot"});
  cycle.parent = "";
  world.engine.Apply(cycle);
  EXPECT_EQ(world.Cycle(), "default/w reason 1; ") << "its flavor is not there";
  world.engine.Apply(model::FlavorUpsert{.name = "spot", .uid = "u-again"});
  EXPECT_EQ(world.Cycle(), "default/w: q spot 1000; ");
}

// K063 of docs/REGRESSIONS.md.
TEST(AdmissionsTest, WhoAsksForNothingIsServedWhereTooMuchIsUsed) {
  QuotaWorld world;
  world.Put(QueueSpec{.name = "q"});
  world.Put(WorkloadSpec{.name = "a", .count = 4});
  EXPECT_EQ(world.Cycle(), "default/a: q spot 4000; ");
  world.Put(QueueSpec{.name = "q", .flavors = {{"spot", 1000}}});
  world.Put(WorkloadSpec{.name = "none", .count = 0, .created = 1});
  world.Put(WorkloadSpec{.name = "b", .count = 1, .created = 2});
  EXPECT_EQ(world.Cycle(), "default/none: q; default/b lacks 1000; ");
}

TEST(AdmissionsTest, WhatACohortHeldBackIsToBeHadWhenItGoes) {
  QuotaWorld world;
  const auto cohort = [&](const std::string& name, const std::string& parent) {
    model::QueueUpsert facts{.kind = model::QueueKind::kCohort, .name = name, .uid = "u-" + name};
    facts.parent = parent;
    world.engine.Apply(facts);
  };
  cohort("root", "");
  cohort("mid", "root");
  world.Put(QueueSpec{.name = "c", .cohort = "mid", .flavors = {{"spot", 2000}}});
  world.Put(QueueSpec{.name = "d", .cohort = "root", .flavors = {{"spot", 2000}}});
  world.Put(WorkloadSpec{.name = "borrows", .queue = "d", .count = 4});
  EXPECT_EQ(world.Cycle(), "default/borrows: d spot 4000; ");
  world.Put(WorkloadSpec{.name = "owns", .queue = "c", .count = 2});
  EXPECT_EQ(world.Cycle(), "default/owns lacks 2000; ");
  world.engine.Apply(
      model::QueueRemove{.kind = model::QueueKind::kCohort, .name = "mid", .uid = "u-mid"});
  EXPECT_EQ(world.Cycle(), "default/owns: c spot 2000; ");
  world.engine.Apply(model::QueueRemove{.name = "d", .uid = "u-d"});
  world.Put(WorkloadSpec{.name = "late", .queue = "d"});
  EXPECT_EQ(world.Cycle(), "default/late has no cluster queue; ");
}

TEST(AdmissionsTest, ABackoffIsWaitedFor) {
  QuotaWorld world;
  world.Put(QueueSpec{.name = "q"});
  world.Put(WorkloadSpec{.name = "w", .requeue_at = 1010});
  EXPECT_EQ(world.Cycle(), "");
  EXPECT_EQ(world.engine.wake_at(), Instant::FromSeconds(1010));
  world.now = Instant::FromSeconds(1010);
  EXPECT_EQ(world.Cycle(), "default/w: q spot 1000; ");
}

TEST(AdmissionsTest, ARefusedWriteIsTriedAgainLater) {
  QuotaWorld world;
  world.Put(QueueSpec{.name = "q"});
  world.Put(WorkloadSpec{.name = "w", .count = 4, .created = 1});
  world.Put(WorkloadSpec{.name = "next", .count = 4, .created = 2});
  EXPECT_EQ(world.Cycle(), "default/w: q spot 4000; default/next lacks 4000; ");
  world.engine.Apply(model::ReservationOutcome{
      .uid = "u-w", .outcome = model::WriteOutcome::kRefused, .at = world.now});
  EXPECT_EQ(world.Cycle(), "default/next: q spot 4000; ") << "what was taken back is to be had";
  EXPECT_EQ(world.engine.wake_at(), world.now + Duration::Seconds(1));
  world.now = world.now + Duration::Seconds(1);
  EXPECT_EQ(world.Cycle(), "default/w lacks 4000; ");
}

TEST(AdmissionsTest, ACopyDecidesTheSame) {
  QuotaWorld world;
  world.Put(QueueSpec{.name = "q"});
  for (int i = 0; i < 6; ++i) world.Put(WorkloadSpec{.name = fmt::format("w{}", i), .created = i});
  Engine copy(world.engine);
  const model::Plan plan = copy.Cycle(world.now);
  EXPECT_EQ(model::Print(plan, copy.state()),
            model::Print(world.engine.Cycle(world.now), world.state()));
  EXPECT_EQ(plan.reservations.size(), 4u);
}

// Histories of queues in two cohorts and of their workloads.
class History {
 public:
  void Step() {
    switch (*rc::gen::inRange(0, 9)) {
      case 0:
        return PutQueue();
      case 8:
        return RemoveQueue();
      case 1:
      case 2:
      case 3:
        return PutWorkload();
      case 4:
      case 5:
        return RemoveWorkload();
      case 6:
        return EndWrites(*rc::gen::inRange(0, 4));
      default:
        world_.now = world_.now + Duration::Seconds(*rc::gen::inRange(0, 20));
    }
  }
  void Check() {
    for (int i = 0; i < 20 && world_.engine.wake_at() <= world_.now; ++i)
      world_.engine.Cycle(world_.now);
    RC_ASSERT(world_.engine.wake_at() > world_.now);
    RC_ASSERT(model::Audit(world_.state()).empty());
    RC_ASSERT(world_.engine.CountMissedWakes() == 0u);
    CheckNobodyCouldStart();
    CheckOrder();
  }

 private:
  void PutQueue() {
    const int i = *rc::gen::inRange(0, 3);
    QueueSpec queue{.name = fmt::format("q{}", i)};
    queue.cohort = *rc::gen::element<std::string>("", "x", "x");
    queue.flavors = {{"spot", *rc::gen::inRange(0, 5) * 1000}};
    queue.strict = *rc::gen::arbitrary<bool>();
    queue.stopped = *rc::gen::inRange(0, 5) == 0;
    world_.Put(queue);
    queues_[queue.name] = queue;
  }
  void RemoveQueue() {
    const std::string name = fmt::format("q{}", *rc::gen::inRange(0, 3));
    if (queues_.erase(name) > 0) world_.engine.Apply(model::QueueRemove{.name = name});
  }
  void PutWorkload() {
    WorkloadSpec w{.name = fmt::format("w{}", *rc::gen::inRange(0, 12))};
    if (specs_.contains(w.name)) return;
    w.queue = fmt::format("q{}", *rc::gen::inRange(0, 3));
    w.count = static_cast<uint32_t>(*rc::gen::inRange(0, 4));
    w.priority = *rc::gen::inRange(0, 2);
    w.created = *rc::gen::inRange(0, 5);
    w.requeue_at = *rc::gen::inRange(0, 4) == 0 ? 1010 : 0;
    world_.Put(w);
    specs_[w.name] = w;
  }
  void RemoveWorkload() {
    const std::string name = fmt::format("w{}", *rc::gen::inRange(0, 12));
    world_.Remove(name);
    specs_.erase(name);
  }
  // Those that are under way come true, or not.
  void EndWrites(int how) {
    for (const auto& [name, spec] : specs_) {
      const model::WorkloadId id = world_.state().FindWorkload("u-" + name);
      if (world_.state().workloads().at(id).write == model::WriteStage::kNone) continue;
      if (how == 0) {
        world_.ComesTrue(spec);
        continue;
      }
      constexpr model::WriteOutcome kHow[] = {model::WriteOutcome::kRefused,
                                              model::WriteOutcome::kNotSent,
                                              model::WriteOutcome::kConflict};
      world_.engine.Apply(model::ReservationOutcome{
          .uid = "u-" + name, .outcome = kHow[how - 1], .at = world_.now});
      if (how == 3) world_.engine.Apply(model::ReservationRead{.uid = "u-" + name});
    }
  }
  [[nodiscard]] const model::Workload& RowOf(const std::string& name) const {
    return world_.state().workloads().at(world_.state().FindWorkload("u-" + name));
  }
  // By hand: what nobody uses of a queue and its cohort, whose quota has no limits but its sum.
  [[nodiscard]] int64_t Unused(const std::string& queue) const {
    const QueueSpec& of = queues_.at(queue);
    int64_t left = 0;
    for (const auto& [name, q] : queues_) {
      if (name == queue || (!of.cohort.empty() && q.cohort == of.cohort))
        left += q.flavors.front().second;
    }
    for (const auto& [name, spec] : specs_) {
      const auto home = queues_.find(spec.queue);
      if (home == queues_.end() || ChargedTo(RowOf(name)).charges.empty()) continue;
      if (spec.queue == queue || (!of.cohort.empty() && home->second.cohort == of.cohort))
        left -= spec.count * spec.cpu;
    }
    return left;
  }
  [[nodiscard]] bool MayBeTried(const std::string& name) const {
    const auto queue = queues_.find(specs_.at(name).queue);
    return queue != queues_.end() && !queue->second.stopped && WaitsFrom(RowOf(name)) <= world_.now;
  }
  [[nodiscard]] bool IsFirst(const std::string& name) const {
    const WorkloadSpec& spec = specs_.at(name);
    return std::ranges::none_of(specs_, [&](const auto& other) {
      const WorkloadSpec& o = other.second;
      if (o.queue != spec.queue || !MayBeTried(o.name)) return false;
      return std::tuple(-o.priority, o.created, o.name) <
             std::tuple(-spec.priority, spec.created, spec.name);
    });
  }
  void CheckNobodyCouldStart() {
    for (const auto& [name, spec] : specs_) {
      if (!MayBeTried(name)) continue;
      if (queues_.at(spec.queue).strict && !IsFirst(name)) continue;
      RC_ASSERT(spec.count > 0);
      RC_ASSERT(Unused(spec.queue) < static_cast<int64_t>(spec.count) * spec.cpu);
    }
  }
  // Whoever waits in a line that is tried knows why.
  void CheckOrder() {
    for (const auto& [name, spec] : specs_) {
      if (WaitsFrom(RowOf(name)) > world_.now) continue;
      RC_ASSERT(world_.engine.admissions()
                    .WhyWaits(world_.state().FindWorkload("u-" + name))
                    .has_value());
    }
  }

  QuotaWorld world_;
  std::map<std::string, QueueSpec> queues_;
  std::map<std::string, WorkloadSpec> specs_;
};

RC_GTEST_PROP(AdmissionsProperty, WhoCouldHaveQuotaDoesNotWait, ()) {
  History history;
  const int steps = *rc::gen::inRange(1, 60);
  for (int i = 0; i < steps; ++i) {
    history.Step();
    history.Check();
  }
}

}  // namespace
}  // namespace berth::cycle
