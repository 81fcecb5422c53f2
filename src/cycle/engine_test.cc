#include "cycle/engine.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "cycle/test_cluster.h"
#include "cycle/test_examples.h"
#include "cycle/test_naive.h"
#include "cycle/test_volumes.h"
#include "cycle/why.h"
#include "model/audit.h"
#include "place/volumes.h"

namespace berth::cycle {
namespace {

using model::NodeId;
using model::PodId;
using model::PodStage;

// ---- Random histories --------------------------------------------------------------------------

class History {
 public:
  explicit History(const Engine::Options& options) : engine(options), options_(options) {}

  Engine engine;
  Instant now = Instant::FromSeconds(1000);

  void Step() {
    const int action = Draw(0, 18);
    if (action < 4) return ApplyNode();
    if (action < 9) return ApplyPod();
    if (action == 9) return engine.Apply(model::PodRemove{.uid = PodUid(PodIndex())});
    if (action == 10 && OneIn(3)) return engine.Apply(model::NodeRemove{.name = NodeName()});
    if (action == 11) return ApplyOutcome();
    if (action > 15) return engine.Apply(DrawStorage(engine.vocabulary(), Draw));
    RunCycle();
  }

  void RunCycle() {
    now = now + Duration::Milliseconds(Draw(0, 4000));
    model::State before = engine.state();
    // Error backoffs that are over end in the cycle.
    before.SortNames();
    Engine fork = engine;
    const model::Plan plan = engine.Cycle(now);
    if (options_.preemption) {
      CheckPromises(engine.state(), plan, now, evicted_for_);
    } else {
      CheckPlan(before, options_, plan, now);
    }
    // Caches are derived data: a copy that starts cold decides the same.
    const model::Plan again = fork.Cycle(now);
    RC_ASSERT(plan.binds == again.binds);
    RC_ASSERT(plan.refused == again.refused);
    RC_ASSERT(plan.refusals == again.refusals);
    RC_ASSERT(plan.preemptions == again.preemptions);
    RC_ASSERT(plan.nominations == again.nominations);
    RC_ASSERT(Hash(engine) == Hash(fork));
    for (const model::PodRefused& refused : plan.refused) {
      told_[std::string(engine.state().UidOf(refused.pod_uid))] = plan.refusals[refused.refusal];
    }
    RC_ASSERT(engine.CountMissedWakes() == 0u);
    if (!plan.more) RC_ASSERT(engine.CheckWakes(now) == 0u);
    RC_ASSERT(engine.counters().missed_wakes == 0u);
  }

  // Lets time pass until nothing is due. What every waiting pod was told last is then so.
  void Settle() {
    RunCycle();
    for (int i = 0; engine.wake_at() != Instant::Never(); ++i) {
      RC_ASSERT(i < 200);
      now = std::max(now, engine.wake_at());
      RunCycle();
    }
    // Promises tell pods of one line apart, which are told as one.
    for (uint32_t i = 0; i < engine.state().nodes().size(); ++i) {
      if (engine.state().ledger().nodes().has_reserved(i)) return;
    }
    for (uint32_t i = 0; i < engine.state().pods().size(); ++i) {
      if (!engine.lines().contains(PodId{i})) continue;
      const model::OwnerId uid = engine.state().pods().at(PodId{i}).uid;
      const auto told = told_.find(std::string(engine.state().UidOf(uid)));
      RC_ASSERT(told != told_.end());
      RC_ASSERT(Told(told->second) ==
                Told(WhyNot(engine.state(), engine.evaluator(), PodId{i}).refusal));
    }
  }

  static uint64_t Hash(const Engine& engine) {
    Hasher hasher;
    engine.AddTo(hasher);
    return hasher.value();
  }

 private:
  // Uniform whatever rapidcheck's size is: a history is as rich in the first run as in the last.
  static int Draw(int low, int high) { return *rc::gen::resize(100, rc::gen::inRange(low, high)); }
  static bool OneIn(int n) { return Draw(0, n) == 0; }
  static int PodIndex() { return Draw(0, 12); }
  static std::string NodeName() { return "n" + std::to_string(Draw(0, 5)); }
  // Of a refusal, what users see; of preemption pods of a line are told what its head was.
  [[nodiscard]] std::tuple<model::ClassId, model::NameId, uint32_t, std::vector<model::Reason>>
  Told(const model::Refusal& refusal) const {
    std::vector<model::Reason> reasons = refusal.reasons;
    for (model::Reason& reason : reasons) {
      reason.deficit = 0;
      reason.unresolvable = false;
    }
    return {engine.state().vocabulary().classes.plain(refusal.class_id), refusal.pinned_to,
            refusal.nodes_count, std::move(reasons)};
  }
  std::string PodUid(int i) {
    return "p" + std::to_string(i) + "-" + std::to_string(generation_[i]);
  }

  // A node is new, or changes in one respect, or is replaced by another of its name.
  void ApplyNode() {
    TestNode& node = nodes_[NodeName()];
    if (node.uid.empty()) {
      node = {.name = node.name, .uid = "u0", .cpu = 2000, .memory = 5000, .pods = 8};
      for (auto& [name, known] : nodes_) known.name = name;
    }
    switch (Draw(0, 13)) {
      case 0:
        node.cpu = 500 * Draw(0, 7);
        break;
      case 1:
        node.memory = 1000 * Draw(0, 4);
        break;
      case 2:
        node.pods = Draw(1, 9);
        break;
      case 3:
        node.gpus = Draw(0, 4);
        break;
      case 4:
        node.model = OneIn(2) ? "a100" : "t4";
        break;
      case 5:
        node.labels.clear();
        if (OneIn(2)) node.labels.emplace_back("zone", OneIn(2) ? "a" : "b");
        if (OneIn(2)) node.labels.emplace_back("disk", "ssd");
        if (!OneIn(4)) node.labels.emplace_back(kHostname, OneIn(6) ? "shared" : node.name);
        break;
      case 6:
        node.taints.clear();
        if (OneIn(3)) node.taints.push_back({.key = "team"});
        if (OneIn(2))
          node.taints.push_back({.key = "old", .effect = model::TaintEffect::kPreferNoSchedule});
        break;
      case 7:
        node.unschedulable = OneIn(4);
        break;
      case 8:
      case 9:
      case 10:
      case 11:
        node.images.clear();
        if (OneIn(2)) node.images.emplace_back("big", OneIn(3) ? 900 : 700);
        if (OneIn(2)) node.images.emplace_back("small", 200);
        break;
      default:
        node.uid = "u" + std::to_string(Draw(0, 2));
    }
    engine.Apply(FactsOf(engine.vocabulary(), node));
  }

  std::string DrawKey() { return OneIn(3) ? kHostname : OneIn(2) ? "zone" : "disk"; }

  // What places a pod, of few kinds a history, so that classes are met again.
  TestPod DrawKind() {
    TestPod pod{.cpu = OneIn(3) ? 1200 : 200 * Draw(0, 4)};
    if (OneIn(3)) pod.memory = 700;
    if (OneIn(3)) pod.gpu_milli = OneIn(2) ? 300 : 1000;
    if (OneIn(8)) pod.models = {"a100"};
    if (OneIn(5)) pod.selector = {{"zone", "a"}};
    if (OneIn(3)) pod.prefers.push_back({.key = "disk", .value = "ssd", .weight = 3});
    if (OneIn(3)) pod.prefers.push_back({.key = "zone", .value = "b", .weight = 2});
    if (OneIn(3)) pod.tolerates = {"team"};
    if (OneIn(4)) pod.host_port = 80;
    pod.labels = {{"app", OneIn(2) ? "a" : "b"}};
    while (OneIn(3)) {
      pod.spread.push_back({.key = DrawKey(),
                            .app = OneIn(2) ? "a" : "b",
                            .max_skew = static_cast<uint32_t>(Draw(1, 3)),
                            .hard = !OneIn(3),
                            .min_domains = static_cast<uint32_t>(Draw(1, 3)),
                            .honors_taints = OneIn(2)});
    }
    if (pod.spread.empty() && OneIn(4)) {
      for (const char* key : {"zone", kHostname})
        pod.spread.push_back(
            {.key = key, .app = "a", .max_skew = 3, .hard = false, .by_default = true});
    }
    while (OneIn(3)) {
      pod.affinity.push_back({.kind = static_cast<model::AffinityKind>(Draw(0, 4)),
                              .key = DrawKey(),
                              .app = OneIn(2) ? "a" : "b",
                              .team = OneIn(4) ? "red" : "",
                              .weight = static_cast<uint32_t>(Draw(1, 101))});
    }
    if (!OneIn(3)) pod.images.push_back(OneIn(2) ? "big" : "small");
    if (OneIn(3)) pod.images.push_back("big");
    if (OneIn(5)) pod.disks = {"d"};
    if (OneIn(3)) pod.claims.push_back("c" + std::to_string(Draw(0, 3)));
    if (OneIn(5)) pod.claims.push_back("c" + std::to_string(Draw(0, 3)));
    if (!options_.profiles.empty()) {
      pod.profile = OneIn(3) ? "" : OneIn(2) ? "packing" : "careless";
      pod.careless = pod.profile == "careless";
    }
    return pod;
  }

  void DrawPod(int i) {
    while (kinds_.size() < 3) kinds_.push_back(DrawKind());
    TestPod pod = kinds_[static_cast<size_t>(Draw(0, 3))];
    if (OneIn(4)) pod.images = {"big"};  // Waits in one line with those of its kind.
    pod.name = "p" + std::to_string(i);
    pod.uid = PodUid(i);
    pod.priority = Draw(0, 3);
    pod.created = generation_[i] * 100 + Draw(0, 3);
    if (OneIn(8)) pod.pin = NodeName();
    pod.foreign = OneIn(12);
    pods_[i] = pod;
  }

  // A pod is new under a new uid, or changes in one respect.
  void ApplyPod() {
    const int i = PodIndex();
    if (!pods_.contains(i) || OneIn(2)) {
      ++generation_[i];
      DrawPod(i);
    }
    TestPod& pod = pods_[i];
    switch (Draw(0, 12)) {
      case 0:
        pod.node = NodeName();
        break;
      case 1:
      case 2:
        pod.nominated = OneIn(2) ? NodeName() : "";
        break;
      case 3:
        pod.gated = OneIn(3);
        break;
      case 4:
        pod.terminating = OneIn(2);
        pod.marked = OneIn(3);
        break;
      case 5:
        pod.finished = OneIn(3);
        break;
      case 6:
        pod.priority = Draw(0, 3);
        break;
      case 7:
        pod.never = OneIn(3);
        break;
      default:
        break;
    }
    if (pod.terminating && pod.deadline == 0) pod.deadline = now.seconds() + Draw(0, 40);
    engine.Apply(FactsOf(engine.vocabulary(), pod));
  }

  void ApplyOutcome() {
    const std::string uid = PodUid(PodIndex());
    if (OneIn(3)) return engine.Apply(model::BindRead{.uid = uid, .at = now});
    if (options_.preemption && OneIn(4))
      return engine.Apply(model::EvictionRefused{.uid = uid, .code = 429, .at = now});
    engine.Apply(model::BindOutcome{.uid = uid,
                                    .outcome = static_cast<model::WriteOutcome>(Draw(0, 5)),
                                    .code = 422,
                                    .at = now});
  }

  Engine::Options options_;
  std::vector<TestPod> kinds_;
  std::map<std::string, TestNode> nodes_;
  std::map<int, TestPod> pods_;
  std::map<int, int> generation_;
  std::map<std::string, std::string> evicted_for_;  // By uid.
  std::map<std::string, model::Refusal> told_;      // By uid, as ids are given again: the last.
};

void RunHistory(Engine::Options options) {
  const auto few = [] { return *rc::gen::inRange(0u, 4u); };
  options.likeness = {.values_max = few(),
                      .kinds_max = few() * few(),
                      .volume_tries_max = few(),
                      .scans_min = few() / 2,
                      .scans_max = 1 + few()};
  History history(options);
  const int steps = *rc::gen::inRange(0, 400);
  for (int i = 0; i < steps; ++i) {
    history.Step();
    const auto found = model::Audit(history.engine.state());
    if (!found.empty()) RC_FAIL(found.front());
  }
  history.Settle();
}

// Goal: the fast path is the naive path, always: same node, same score, same order, nobody
// forgotten; a fork with cold caches decides the same; the ledger passes its audit; what users were
// told last is so. Method: random histories of nodes, pods, nominations, outcomes and cycles; every
// decision is compared with the plain evaluation of every node, and at the end of a cycle every
// waiting pod is.
RC_GTEST_PROP(EngineTest, EveryDecisionIsWhatTheNaiveSchedulerWouldDo, ()) { RunHistory({}); }

RC_GTEST_PROP(EngineTest, AlsoWhenPackingByBestFit, ()) {
  RunHistory({.evaluator = place::Evaluator(model::Policy::kBestFit)});
}

// The typical pods of the histories; models by the order of `names`.
Engine::Options Fgd() {
  const std::vector<place::TypicalPod> typical = {
      {.cpu_milli = 200, .gpu = {.share_milli = 300}, .count = 5},
      {.cpu_milli = 1200, .gpu = {.devices_count = 1}, .models = {model::NameId{0}}, .count = 3},
      {.cpu_milli = 400, .count = 4}};
  return {.evaluator = place::Evaluator(model::Policy::kFgd, place::FragmentTable(typical)),
          .names = {"a100", "t4"}};
}

RC_GTEST_PROP(EngineTest, AlsoWhenFragmentingLeast, ()) { RunHistory(Fgd()); }

RC_GTEST_PROP(EngineTest, AlsoAtRandom, ()) {
  RunHistory({.evaluator = place::Evaluator(model::Policy::kRandom), .seed = 7});
}

RC_GTEST_PROP(EngineTest, AlsoWhenASaltEndsTies, ()) {
  RunHistory({.evaluator = place::Evaluator(model::Policy::kBestFit), .salt = 42});
}

// Goal: promises and evictions keep the ledger sound, wake whom they can help, and evict nobody for
// nobody. Method: the histories with preemption: audit, forks, missed wake-ups (of evictions that
// would help, too) and the plain evaluation of all that waits.
RC_GTEST_PROP(EngineTest, AlsoWhenPreempting, ()) { RunHistory({.preemption = true}); }

// Goal: pods of several profiles are each placed by theirs, and those that don't ask whether there
// is room keep the ledger sound. Method: the histories above, with pods of three profiles.
RC_GTEST_PROP(EngineTest, AlsoByProfiles, ()) { RunHistory({.profiles = TwoProfiles()}); }

RC_GTEST_PROP(EngineTest, AlsoWhenPreemptingAsUpstream, ()) {
  RunHistory({.preemption = true, .compat = true});
}

RC_GTEST_PROP(EngineTest, AlsoWhenPreemptingByProfiles, ()) {
  RunHistory({.preemption = true, .profiles = TwoProfiles()});
}

// Goal: the bounds change when things are decided, not what. Method: two attempts per cycle, and
// caches of the least size.
RC_GTEST_PROP(EngineTest, AlsoWhenBoundedAndShortOfMemory, ()) {
  RunHistory({.attempts_per_cycle_max = 2, .cache_bytes_max = 1});
}

// ---- By example ---------------------------------------------------------------------------------

// Goal: a fixed point: after a cycle that is done, more cycles do nothing and none is asked for.
// C05, C16: what can't be placed makes no work.
TEST_F(Examples, NothingIsDoneWithoutAnEvent) {
  Node({.name = "n1", .cpu = 1000});
  Pod({.name = "a", .cpu = 600});
  Pod({.name = "b", .cpu = 600});
  EXPECT_EQ(Cycle().binds.size(), 1u);
  const uint64_t attempts = engine.counters().attempts;
  for (int i = 1; i < 6; ++i) {
    EXPECT_EQ(engine.wake_at(), Instant::Never());
    EXPECT_TRUE(Cycle(i * 60'000).empty());
  }
  EXPECT_EQ(engine.counters().attempts, attempts);
}

// Goal: work is per class. Method: a thousand equal pods that don't fit cost one attempt, and are
// each told once.
TEST_F(Examples, PodsOfOneClassAreRefusedAsOne) {
  Node({.name = "n1", .cpu = 100});
  for (int i = 0; i < 1000; ++i) Pod({.name = "p" + std::to_string(i), .cpu = 600});
  const model::Plan plan = Cycle();
  EXPECT_EQ(engine.counters().attempts, 1u);
  EXPECT_EQ(plan.refused.size(), 1000u);
  EXPECT_EQ(plan.refusals.size(), 1u);
  EXPECT_TRUE(Cycle(1).refused.empty());
}

// Goal: waking is limited to as many as fit. Method: one pod leaves, one of 1,000 waiting goes; two
// attempts are made.
TEST_F(Examples, AFreedPlaceWakesAsManyAsFit) {
  Node({.name = "n1", .cpu = 600});
  Pod({.name = "first", .cpu = 600, .node = "n1"});
  for (int i = 0; i < 1000; ++i) Pod({.name = "p" + std::to_string(i), .cpu = 600, .created = i});
  EXPECT_EQ(Cycle().binds.size(), 0u);
  engine.Apply(model::PodRemove{.uid = "uid-first"});
  EXPECT_EQ(engine.wake_at(), Instant{});
  const uint64_t attempts = engine.counters().attempts;
  EXPECT_EQ(Printed(20'000).substr(0, 21), "bind default/p0 -> n1");
  EXPECT_EQ(engine.counters().attempts, attempts + 2);
}

// Goal: C10: the end of a pod costs nothing by those whom it does not help, however many are gated
// or wait. Method: a thousand of each, of fifty kinds; pods end where none of them may go, and then
// one where one of a hundred fits: who was tried, woken, and how many nodes were looked at.
TEST_F(Examples, TheEndOfAPodCostsNobodyWhomItDoesNotHelp) {
  Node({.name = "n1", .cpu = 10'000, .taints = {{.key = "team"}}});
  Node({.name = "n2", .cpu = 1000});
  for (int i = 0; i < 50; ++i) {
    Pod({.name = "there" + std::to_string(i), .cpu = 200, .node = "n1"});
    for (int j = 0; j < 20; ++j) {
      const std::string name = std::to_string(i) + "-" + std::to_string(j);
      Pod({.name = "gated" + name, .cpu = 100 + i, .gated = true});
      Pod({.name = "waits" + name, .cpu = 1100 + i});
    }
  }
  Pod({.name = "on2", .cpu = 500, .node = "n2"});
  Pod({.name = "helped", .cpu = 600});
  EXPECT_TRUE(Cycle().binds.empty());
  EXPECT_EQ(engine.counters().attempts, 51u) << "one of each kind, of those that are not gated";
  while (engine.wake_at() <= Instant{}) Cycle();
  const Counters before = engine.counters();
  for (int i = 0; i < 50; ++i) {
    engine.Apply(model::PodRemove{.uid = "uid-there" + std::to_string(i)});
    EXPECT_TRUE(Cycle(60'000 + i).binds.empty());
  }
  EXPECT_EQ(engine.counters().attempts, before.attempts);
  EXPECT_EQ(engine.counters().wakes, before.wakes);
  EXPECT_EQ(engine.counters().nodes_evaluated, before.nodes_evaluated);
  engine.Apply(model::PodRemove{.uid = "uid-on2"});
  EXPECT_EQ(Printed(120'000).substr(0, 25), "bind default/helped -> n2");
  EXPECT_EQ(engine.counters().attempts, before.attempts + 1);
  EXPECT_EQ(engine.CountMissedWakes(), 0u);
}

// Goal: who asks for more than a node has is not looked at when room comes back there, and is when
// the node grows. Method: a pod of more cpu than one node has and a taint of the other keep it
// waiting; in turn a pod leaves, the one node grows but not enough, and the other; the taint goes.
TEST_F(Examples, ATooLargePodIsWokenByTheNodeThatGrows) {
  TestNode tainted{.name = "n2", .cpu = 1000, .taints = {{.key = "k"}}};
  Node({.name = "n1", .cpu = 1000});
  Node(tainted);
  Pod({.name = "small", .cpu = 600, .node = "n1"});
  Pod({.name = "large", .cpu = 2000});
  EXPECT_EQ(Cycle().binds.size(), 0u);
  engine.Apply(model::PodRemove{.uid = "uid-small"});
  EXPECT_EQ(Cycle(1).binds.size(), 0u);
  EXPECT_EQ(engine.counters().wakes, 0u);
  tainted.cpu = 3000;
  Node(tainted);
  EXPECT_EQ(Cycle(2).binds.size(), 0u);
  tainted.taints.clear();
  Node(tainted);
  EXPECT_EQ(Printed(20'000).substr(0, 24), "bind default/large -> n2");
  Pod({.name = "larger", .cpu = 4000});
  EXPECT_EQ(Cycle(20'001).binds.size(), 0u);
  Node({.name = "n1", .cpu = 3999});
  EXPECT_EQ(Cycle(40'000).binds.size(), 0u);
  Node({.name = "n1", .cpu = 4000});
  EXPECT_EQ(Printed(60'000).substr(0, 25), "bind default/larger -> n1");
}

// Goal: who asks for no cpu is woken where there is less than none. Method: somebody else has put
// more on the node than it has; a pod of those leaves that were too many.
TEST_F(Examples, WhoAsksForNoCpuNeedsNone) {
  Node({.name = "n1", .cpu = 1000, .pods = 2});
  Pod({.name = "foreign", .cpu = 2000, .node = "n1"});
  Pod({.name = "other", .cpu = 100, .node = "n1"});
  Pod({.name = "idle", .cpu = 0});
  EXPECT_EQ(Cycle().binds.size(), 0u);
  engine.Apply(model::PodRemove{.uid = "uid-other"});
  EXPECT_EQ(Printed(20'000).substr(0, 24), "bind default/idle -> n1 ");
}

// Goal: C14, C15: an event between the attempt and the parking is not lost. Method: the plan is out,
// its outcomes are not in, and room appears: another node, or one that is ready again.
TEST_F(Examples, RoomThatAppearsWhileWritesAreOnTheirWayIsUsed) {
  Node({.name = "n1", .cpu = 1000});
  Pod({.name = "a", .cpu = 600});
  Pod({.name = "b", .cpu = 600});
  EXPECT_EQ(Cycle().binds.size(), 1u);
  Node({.name = "n2", .cpu = 1000});
  EXPECT_EQ(Cycle(1).binds.size(), 1u);
  TestNode third{.name = "n3", .cpu = 1000, .taints = {{.key = "not-ready"}}};
  Node(third);
  Pod({.name = "c", .cpu = 600});
  EXPECT_EQ(Cycle(2).refused.size(), 1u);
  third.taints.clear();
  Node(third);
  EXPECT_EQ(Cycle(3).binds.size(), 1u);
}

// Goal: C03: an event between two looks at the log is not lost when the log is cut, however much
// comes before and behind it. Method: room appears between thousands of other touches.
TEST_F(Examples, AnEventAmongManyIsNotCutOff) {
  Node({.name = "n1", .cpu = 100});
  Node({.name = "n2", .cpu = 100});
  Pod({.name = "p", .cpu = 600});
  EXPECT_EQ(Cycle().refused.size(), 1u);
  for (int i = 0; i < 12'000; ++i) {
    if (i == 5'000) Node({.name = "n2", .cpu = 1000});
    Node({.name = "n1", .cpu = 100, .labels = {{"a", std::to_string(i % 2)}}});
    if (i == 3'999) {
      EXPECT_TRUE(Cycle(i).binds.empty());
    }
  }
  EXPECT_EQ(Cycle(20'000).binds.size(), 1u);
}

// Goal: D01: after a conflict or an unknown fate the pod is not tried again until
// it was read.
TEST_F(Examples, AWriteOfUnknownFateIsNotRepeated) {
  Node({.name = "n1"});
  TestPod pod{.name = "a"};
  Pod(pod);
  EXPECT_EQ(Cycle().binds.size(), 1u);
  engine.Apply(model::BindOutcome{.uid = "uid-a", .outcome = model::WriteOutcome::kUnknown});
  Pod(pod);  // A late echo of the unbound pod says nothing.
  EXPECT_TRUE(Cycle(20'000).empty());
  engine.Apply(model::BindRead{.uid = "uid-a", .at = Instant::FromSeconds(30)});
  EXPECT_TRUE(Cycle(30'500).empty());
  EXPECT_EQ(engine.wake_at(), Instant::FromSeconds(31));
  EXPECT_EQ(Cycle(31'000).binds.size(), 1u);
}

// Goal: error backoff doubles from 1 s to 10 s and ends with a success (reference section 3).
TEST_F(Examples, RefusedWritesBackOff) {
  Node({.name = "n1"});
  Pod({.name = "a"});
  Instant now = Instant::FromSeconds(100);
  for (const int64_t seconds : {1, 2, 4, 8, 10, 10}) {
    EXPECT_EQ(engine.Cycle(now).binds.size(), 1u);
    engine.Apply(model::BindOutcome{
        .uid = "uid-a", .outcome = model::WriteOutcome::kRefused, .code = 403, .at = now});
    EXPECT_TRUE(engine.Cycle(now).empty());
    EXPECT_EQ(engine.wake_at(), now + Duration::Seconds(seconds));
    now = engine.wake_at();
  }
}

// Goal: C11: whatever changes of a pod, its error backoff is neither skipped nor without end.
// Method: updates of its labels, requests, priority and gate while it waits; each time it is tried
// when the backoff is over, and not before.
TEST_F(Examples, AnUpdateDuringAnErrorBackoffNeitherEndsNorLosesIt) {
  Node({.name = "n1"});
  const TestPod pod{.name = "a"};
  TestPod larger = pod;
  larger.cpu = 200;
  TestPod higher = pod;
  higher.priority = 9;
  TestPod labelled = pod;
  labelled.labels = {{"app", "web"}};
  TestPod gated = pod;
  gated.gated = true;
  const std::vector<std::vector<TestPod>> rows = {{labelled}, {larger}, {higher}, {gated, pod}};
  for (const std::vector<TestPod>& updates : rows) {
    engine = Engine();
    Node({.name = "n1"});
    Pod(pod);
    EXPECT_EQ(Cycle().binds.size(), 1u);
    engine.Apply(model::BindOutcome{
        .uid = "uid-a", .outcome = model::WriteOutcome::kRefused, .code = 403, .at = Instant{}});
    for (const TestPod& update : updates) {
      Pod(update);
      EXPECT_TRUE(Cycle(500).binds.empty());
    }
    EXPECT_EQ(engine.wake_at(), Instant::FromSeconds(1));
    EXPECT_EQ(Cycle(1'000).binds.size(), 1u);
  }
}

// Goal: what is observed during an error backoff piles up nothing. Method: the same fact again and
// again leaves the very same engine.
TEST_F(Examples, ARepeatedFactLeavesAnErrorBackoffAsItIs) {
  Node({.name = "n1"});
  Pod({.name = "a"});
  EXPECT_EQ(Cycle().binds.size(), 1u);
  engine.Apply(model::BindOutcome{
      .uid = "uid-a", .outcome = model::WriteOutcome::kRefused, .code = 403, .at = Instant{}});
  EXPECT_TRUE(Cycle().empty());
  const uint64_t hash = History::Hash(engine);
  for (int i = 0; i < 3; ++i) Pod({.name = "a"});
  EXPECT_EQ(History::Hash(engine), hash);
  EXPECT_EQ(Cycle(1'000).binds.size(), 1u);
}

// Goal: a pod that failed a moment ago lets others go first, but goes at once when none is left
// (KEP-5142). C12: nobody sleeps while somebody in backoff could go: a cycle is wanted now, though
// nobody else waits.
TEST_F(Examples, UnschedulableBackoffOnlyChangesTheOrder) {
  Node({.name = "n1", .cpu = 100});
  Pod({.name = "high", .cpu = 300, .priority = 9});
  EXPECT_TRUE(Cycle(0).binds.empty());
  const Engine before = engine;
  Pod({.name = "low", .cpu = 200});
  Node({.name = "n1", .cpu = 500});
  EXPECT_EQ(Cycle(10).binds.size(), 2u);
  engine = before;
  EXPECT_EQ(engine.wake_at(), Instant::Never());
  Node({.name = "n1", .cpu = 500});
  EXPECT_EQ(engine.wake_at(), Instant{});
  EXPECT_EQ(Cycle(10).binds.size(), 1u);
}

TEST_F(Examples, AfterItsBackoffTheHigherPriorityGoesFirst) {
  Node({.name = "n1", .cpu = 100});
  Pod({.name = "high", .cpu = 300, .priority = 9});
  EXPECT_TRUE(Cycle(0).binds.empty());
  Pod({.name = "low", .cpu = 200});
  Node({.name = "n1", .cpu = 300});
  EXPECT_EQ(Printed(5'000).substr(0, 23), "bind default/high -> n1");
}

// Goal: A05, deleting a pod with a nomination in the middle leaves no phantom; the holder goes
// before higher ones of no promise.
TEST_F(Examples, HoldersOfReservationsGoFirst) {
  Node({.name = "n1", .cpu = 1000});
  Pod({.name = "holder", .cpu = 800, .priority = 5, .nominated = "n1"});
  Pod({.name = "equal", .cpu = 600, .priority = 5, .created = -10});
  const model::Plan plan = Cycle();
  ASSERT_EQ(plan.binds.size(), 1u);
  EXPECT_EQ(engine.state().KeyOf(engine.state().pods().at(plan.binds[0].pod).key),
            "default/holder");
}

TEST_F(Examples, APromiseHoldsAgainstEqualsAndYieldsToHigher) {
  Node({.name = "n1", .cpu = 1000});
  Pod({.name = "victim", .cpu = 600, .node = "n1", .terminating = true});
  Pod({.name = "holder", .cpu = 800, .priority = 5, .nominated = "n1"});
  Pod({.name = "equal", .cpu = 400, .priority = 5});
  EXPECT_TRUE(Cycle().binds.empty());  // A04: the small one does not take the hole while the victim
                                       // terminates.
  Pod({.name = "higher", .cpu = 400, .priority = 6});
  EXPECT_EQ(Cycle(1).binds.size(), 1u);
  engine.Apply(model::PodRemove{.uid = "uid-holder"});
  engine.Apply(model::PodRemove{.uid = "uid-victim"});
  EXPECT_EQ(Cycle(2).binds.size(), 1u);  // A05: no phantom of the holder.
}

// Goal: what is kept per class says nothing of reservations, which depend on who asks. Method:
// another scheduler's nomination holds n1 for priority 5; pods of one class come one at a time, so
// that scanning, grouping and catching up are all met.
TEST_F(Examples, ReservedNodesAreAskedAgainForEachPod) {
  Node({.name = "n1", .cpu = 8000});
  Node({.name = "n2", .cpu = 900});
  Pod({.name = "foreign", .cpu = 7900, .priority = 5, .nominated = "n1", .foreign = true});
  std::string placed;
  for (int i = 0; i < 6; ++i) {
    Pod({.name = std::to_string(i), .cpu = 300, .priority = i % 2 == 0 ? 5 : 6, .created = i});
    for (const model::BindDecision& b : Cycle(i).binds)
      placed += engine.state().NameOf(b.node_name);
  }
  EXPECT_EQ(placed, "n2n1n2n1n2n1");
  Pod({.name = "last", .cpu = 300, .priority = 5});
  EXPECT_EQ(Printed(10), "wait default/last  0/2, 2 insufficient cpu (at least 300 short)\n");
}

// Goal: C09: a gated pod is neither tried nor charged, and un-gating leads to an attempt.
TEST_F(Examples, GatedPodsWaitUntilTheGateGoes) {
  Node({.name = "n1"});
  Pod({.name = "a", .gated = true});
  EXPECT_EQ(engine.wake_at() == Instant{} ? Cycle().binds.size() : 0u, 0u);
  Pod({.name = "a"});
  EXPECT_EQ(Cycle(1).binds.size(), 1u);
}

// Goal: the place that a holder leaves when it finds another is offered in order. Method: its node
// comes together with somebody of lower priority who fits where it was promised.
TEST_F(Examples, APlaceThatAHolderLeavesGoesToTheFirstInOrder) {
  Node({.name = "n1", .cpu = 500, .labels = {{"zone", "a"}}});
  Pod({.name = "first", .cpu = 500, .priority = 1, .selector = {{"zone", "a"}}});
  Pod({.name = "holder", .cpu = 600, .priority = 1, .created = 1, .nominated = "n1"});
  EXPECT_TRUE(Cycle().binds.empty());
  Node({.name = "n2", .cpu = 600, .labels = {{"zone", "b"}}});
  Pod({.name = "low", .cpu = 100});
  std::string bound;
  for (bool more = true; more;) {
    const model::Plan plan = Cycle(20'000);
    for (const model::BindDecision& bind : plan.binds) {
      bound += std::string(engine.state().UidOf(bind.pod_uid)) + " ";
    }
    more = plan.more;
  }
  EXPECT_EQ(bound, "uid-holder uid-first ");
}

// Goal: a pod that may look past a promise is tried, whatever failed before the promise was made.
// Method: one of higher priority fails on a small node and goes; the node grows, and is promised to
// another; one of the priority between comes.
TEST_F(Examples, APriorityBetweenIsTriedWhereTheLowOneWasRefused) {
  Node({.name = "n1", .cpu = 100});
  Pod({.name = "high", .cpu = 500, .priority = 2});
  Pod({.name = "low", .cpu = 500});
  EXPECT_TRUE(Cycle().binds.empty());
  engine.Apply(model::PodRemove{.uid = "uid-high"});
  Pod({.name = "holder", .cpu = 500, .nominated = "n1", .foreign = true});
  Node({.name = "n1", .cpu = 500});
  EXPECT_TRUE(Cycle(20'000).binds.empty());
  Pod({.name = "between", .cpu = 500, .priority = 1});
  EXPECT_EQ(Cycle(20'000).binds.size(), 1u);
  EXPECT_EQ(engine.CheckWakes(Instant::FromSeconds(20)), 0u);
}

// Goal: an update of a line's only pod does not make what it was told look current. Method: it is
// updated while a second node refuses, and another pod goes before it in line.
TEST_F(Examples, AnUpdatedPodIsToldWhatItsNewHeadIsTold) {
  Node({.name = "n1", .cpu = 100});
  Pod({.name = "a", .cpu = 600});
  EXPECT_EQ(Printed(), "wait default/a  0/1, 1 insufficient cpu (at least 500 short)!\n");
  Node({.name = "n2", .cpu = 100});
  Pod({.name = "a", .cpu = 600, .created = 1});
  Pod({.name = "b", .cpu = 600, .priority = 1});
  std::string told;
  for (Instant at = Instant::FromSeconds(20); engine.wake_at() <= at;) {
    told += Print(engine.Cycle(at), engine.state());
  }
  EXPECT_NE(told.find("wait default/a  0/2"), std::string::npos) << told;
}

// Goal: the salt changes ties only, and without one the name decides, not arrival.
TEST_F(Examples, TiesEndInTheNameOfTheNode) {
  for (const char* name : {"n3", "n1", "n2"}) Node({.name = name});
  Pod({.name = "a"});
  EXPECT_EQ(Printed().substr(0, 20), "bind default/a -> n1");
}

TEST(EngineRandomTest, TheSeedDecidesAndNotTheOrderOfArrival) {
  const auto run = [](uint64_t seed, const std::vector<std::string>& nodes) {
    Engine engine({.evaluator = place::Evaluator(model::Policy::kRandom), .seed = seed});
    for (const std::string& name : nodes)
      engine.Apply(FactsOf(engine.vocabulary(), TestNode{.name = name}));
    for (int i = 0; i < 20; ++i)
      engine.Apply(FactsOf(engine.vocabulary(), TestPod{.name = std::to_string(i)}));
    std::string text;
    for (const model::BindDecision& b : engine.Cycle({}).binds)
      text += engine.state().NameOf(b.node_name);
    return text;
  };
  EXPECT_EQ(run(1, {"a", "b", "c"}), run(1, {"c", "a", "b"}));
  EXPECT_NE(run(1, {"a", "b", "c"}), run(2, {"a", "b", "c"}));
}

TEST_F(Examples, ExplainSaysWhyItWaitsAndWhyItIsThere) {
  Node({.name = "n1", .cpu = 1000, .taints = {{.key = "team"}}});
  Node({.name = "n2", .cpu = 100});
  Pod({.name = "a", .cpu = 700});
  EXPECT_TRUE(Cycle().binds.empty());
  const PodId a = engine.state().FindPod("uid-a");
  Explanation e = engine.Explain(a);
  ASSERT_EQ(e.refusal.reasons.size(), 2u);
  EXPECT_EQ(e.refusal.reasons[0].kind, model::ReasonKind::kTaint);
  EXPECT_EQ(e.refusal.reasons[1].kind, model::ReasonKind::kInsufficient);
  EXPECT_EQ(e.refusal.reasons[1].deficit, 600);
  EXPECT_FALSE(e.would_fit);
  Node({.name = "n2", .cpu = 800});
  EXPECT_TRUE(engine.Explain(a).would_fit);
  EXPECT_EQ(Cycle(5'000).binds.size(), 1u);
  e = engine.Explain(a);
  EXPECT_TRUE(e.decided_here);
  EXPECT_EQ(e.stage, PodStage::kInFlight);
  EXPECT_EQ(engine.state().NameOf(e.node), "n2");
}

// Goal: a decision is told of the pod and the node that it was about. Method: by whom the pod is
// bound in the end, with ids that are given again.
class DecidedHere : public Examples {
 protected:
  void SetUp() override {
    Node({.name = "n1"});
    Node({.name = "n2"});
    Pod({.name = "a"});
    ASSERT_EQ(Printed().substr(0, 20), "bind default/a -> n1");
    first = engine.state().FindPod("uid-a");
  }
  bool Here(const char* uid) { return engine.Explain(engine.state().FindPod(uid)).decided_here; }
  PodId first;
};

TEST_F(DecidedHere, StaysTrueWhenTheBindingIsObserved) {
  EXPECT_TRUE(Here("uid-a"));
  engine.Apply(model::BindOutcome{.uid = "uid-a"});
  Pod({.name = "a", .node = "n1"});
  EXPECT_TRUE(Here("uid-a"));
  Pod({.name = "a", .node = "n1", .terminating = true});
  EXPECT_TRUE(Here("uid-a"));
}

TEST_F(DecidedHere, IsNotSaidOfThePodThatComesNext) {
  engine.Apply(model::PodRemove{.uid = "uid-a"});
  Pod({.name = "b", .node = "n1"});
  ASSERT_EQ(engine.state().FindPod("uid-b"), first);
  EXPECT_FALSE(Here("uid-b"));
}

TEST_F(DecidedHere, IsNotSaidOfAnotherOfItsName) {
  Pod({.name = "a", .uid = "uid-2", .created = 1, .node = "n1"});
  EXPECT_FALSE(Here("uid-2"));
}

TEST_F(DecidedHere, IsNotSaidOfWhatAnotherDecided) {
  Pod({.name = "a", .node = "n2"});
  EXPECT_FALSE(Here("uid-a"));
}

TEST_F(DecidedHere, IsNotSaidOfADecisionThatWasTakenBack) {
  engine.Apply(model::BindOutcome{
      .uid = "uid-a", .outcome = model::WriteOutcome::kRefused, .code = 403, .at = Instant{}});
  Pod({.name = "a", .node = "n1"});
  EXPECT_FALSE(Here("uid-a"));
}

// Goal: who was told is the pod, not its row. Method: one of two that were told is replaced by
// another of its name, whose predecessor's removal is not seen.
TEST_F(Examples, APodThatReplacesAnotherOfItsNameIsToldWhyItWaits) {
  Node({.name = "n1", .cpu = 100});
  Pod({.name = "a", .cpu = 600});
  Pod({.name = "b", .cpu = 600});
  EXPECT_EQ(Cycle().refused.size(), 2u);
  Pod({.name = "a", .uid = "uid-2", .cpu = 600, .created = 1});
  EXPECT_EQ(Printed(1), "wait default/a  0/1, 1 insufficient cpu (at least 500 short)!\n");
}

}  // namespace
}  // namespace berth::cycle
