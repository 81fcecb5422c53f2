// Goal: groups of pods get their places together or not at all, are promised places to come
// together or not at all, and wait for nothing that is there, whatever happens to them. Method:
// random histories of nodes, groups and members, whose members are equal within a group, and of
// pods that take their time to leave, by themselves or evicted, and of queues that come, close and
// have more or less; after every step the audit, the watchdog and, of what waits, a count of places
// and of quota that knows nothing of the engine.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "cycle/engine.h"
#include "cycle/test_cluster.h"
#include "model/audit.h"

namespace berth::cycle {
namespace {

constexpr int64_t kNodeCpu = 1000;

// A cluster and its API, as far as groups see it: bindings come true at once, or are refused.
class GangWorld {
 public:
  explicit GangWorld(bool preemption) : engine_({.preemption = preemption}) {}

  void Step() {
    switch (*rc::gen::inRange(0, 12)) {
      case 0:
      case 1:
        return AddNode();
      case 2:
        return RemoveNode();
      case 3:
      case 4:
        return AddGroup();
      case 5:
        return AddMember();
      case 6:
        return RemoveMember();
      case 7:
        return RemoveGroup();
      case 8:
        return BeginDeletion();
      case 9:
        return PutQueue();
      case 10:
        return RemoveQueue();
      default:
        return AddPod();
    }
  }

  void Settle() {
    for (int i = 0; i < 40; ++i) {
      now_ = now_ + Duration::Seconds(20);
      const model::Plan plan = engine_.Cycle(now_);
      CheckWhole(plan);
      for (const model::BindDecision& bind : plan.binds) Bind(bind);
      for (const model::PodId pod : plan.released) Delete(pod);
      for (const model::PreemptDecision& preemption : plan.preemptions) Evict(preemption);
      if (plan.empty() && !leaving_.empty()) EndDeletion();
      RC_ASSERT(model::Audit(engine_.state()) == std::vector<std::string>());
      if (engine_.wake_at() == Instant::Never() && leaving_.empty()) break;
    }
    RC_ASSERT(engine_.CountMissedWakes() == 0u);
    RC_ASSERT(leaving_.empty());
    for (uint32_t row = 0; row < engine_.state().nodes().size(); ++row)
      RC_ASSERT(!engine_.state().ledger().nodes().has_reserved(row));
    for (const auto& [name, group] : groups_) CheckAtRest(name, group);
  }

 private:
  struct Group {
    int32_t min_member = 1;
    int64_t cpu = 100;
    int64_t created = 0;
    int32_t priority = 0;
    bool ran = false;  // As many as it needs had nodes once.
    std::string queue = "default";
    int64_t kept = 0;  // What it asks its queue to keep for it.
  };
  struct Queue {
    int64_t cpu = 0;
    bool closed = false;
    bool below = false;  // The other queue.
  };
  struct Member {
    std::string group;  // Empty: alone.
    std::string node;
    int64_t cpu = 0;
    int32_t priority = 0;
  };

  void AddNode() {
    const std::string name = fmt::format("n{}", *rc::gen::inRange(0, 4));
    nodes_.insert(name);
    engine_.Apply(FactsOf(engine_.vocabulary(), TestNode{.name = name, .cpu = kNodeCpu}));
  }
  // With its pods.
  void RemoveNode() {
    if (nodes_.empty()) return;
    const std::string name = *nodes_.begin();
    nodes_.erase(nodes_.begin());
    engine_.Apply(model::NodeRemove{.name = name});
    std::erase_if(pods_, [&](const auto& pod) {
      if (pod.second.node != name) return false;
      engine_.Apply(model::PodRemove{.uid = "uid-" + pod.first});
      leaving_.erase(pod.first);
      return true;
    });
  }
  void AddGroup() {
    const std::string name = fmt::format("g{}", *rc::gen::inRange(0, 3));
    Group& group = groups_[name];
    group = {.min_member = *rc::gen::inRange(0, 5),
             .cpu = *rc::gen::element<int64_t>(100, 300, 500),
             .created = ++clock_,
             .priority = *rc::gen::element<int32_t>(0, 0, 10),
             .queue = *rc::gen::element<std::string>("default", "q0", "q1")};
    if (*rc::gen::arbitrary<bool>()) group.kept = group.min_member * group.cpu;
    TellGroup(name, group);
    NoteRuns();
  }
  void RemoveGroup() {
    if (groups_.empty()) return;
    const auto at = groups_.begin();
    engine_.Apply(model::GroupRemove{.uid = fmt::format("{}-{}", at->first, at->second.created)});
    groups_.erase(at);
  }
  void PutQueue() {
    const std::string name = *rc::gen::element<std::string>("q0", "q1");
    queues_[name] = {.cpu = *rc::gen::element<int64_t>(200, 500, 900, 1500),
                     .closed = *rc::gen::inRange(0, 4) == 0,
                     .below = name == "q1" && *rc::gen::arbitrary<bool>()};
    const Queue& queue = queues_[name];
    engine_.Apply(model::QueueUpsert{
        .kind = model::QueueKind::kQueue,
        .name = name,
        .uid = name,
        .parent = queue.below ? "q0" : "root",
        .quotas = {{.flavor = {},
                    .resource = model::kCpu,
                    .quota = {.borrowing_limit = queue.cpu, .lending_limit = 0}}},
        .stopped = queue.closed});
  }
  void RemoveQueue() {
    const std::string name = *rc::gen::element<std::string>("q0", "q1");
    if (queues_.erase(name) == 0) return;
    engine_.Apply(model::QueueRemove{.kind = model::QueueKind::kQueue, .name = name});
  }
  void AddMember() {
    const std::string name = fmt::format("g{}", *rc::gen::inRange(0, 3));
    const auto group = groups_.find(name);
    if (group == groups_.end()) return Put({.group = name, .cpu = 200});
    Put({.group = name, .cpu = group->second.cpu, .priority = group->second.priority});
  }
  void AddPod() {
    Put({.cpu = *rc::gen::element<int64_t>(100, 400, 900),
         .priority = *rc::gen::element<int32_t>(0, 5)});
  }
  void Put(const Member& member) {
    const std::string name = fmt::format("p{}", ++clock_);
    pods_[name] = member;
    Tell(name);
  }
  void Tell(const std::string& name) {
    const Member& member = pods_.at(name);
    engine_.Apply(FactsOf(engine_.vocabulary(), TestPod{.name = name,
                                                        .cpu = member.cpu,
                                                        .priority = member.priority,
                                                        .created = std::stoll(name.substr(1)),
                                                        .node = member.node,
                                                        .terminating = leaving_.contains(name),
                                                        .group = member.group}));
  }
  void BeginDeletion() {
    const auto at = std::ranges::find_if(pods_, [&](const auto& pod) {
      return !pod.second.node.empty() && !leaving_.contains(pod.first);
    });
    if (at == pods_.end()) return;
    leaving_.insert(at->first);
    Tell(at->first);
  }
  void EndDeletion() {
    const std::string name = *leaving_.begin();
    leaving_.erase(name);
    if (pods_.erase(name) > 0) engine_.Apply(model::PodRemove{.uid = "uid-" + name});
  }
  // Some evictions are refused.
  void Evict(const model::PreemptDecision& preemption) {
    for (const model::PreemptDecision::Victim& victim : preemption.victims) {
      const std::string uid(engine_.state().UidOf(victim.uid));
      if (*rc::gen::inRange(0, 8) == 0) {
        engine_.Apply(model::EvictionRefused{.uid = uid, .code = 403, .at = now_});
      } else if (const std::string name = uid.substr(4);
                 pods_.contains(name) && !pods_.at(name).node.empty()) {
        leaving_.insert(name);
        Tell(name);
      }
    }
  }
  void RemoveMember() {
    if (pods_.empty()) return;
    const auto at = pods_.begin();
    leaving_.erase(at->first);
    engine_.Apply(model::PodRemove{.uid = "uid-" + at->first});
    pods_.erase(at);
  }
  void Bind(const model::BindDecision& bind) {
    const std::string uid(engine_.state().UidOf(bind.pod_uid));
    if (*rc::gen::inRange(0, 12) == 0) {
      return engine_.Apply(model::BindOutcome{
          .uid = uid, .outcome = model::WriteOutcome::kRefused, .code = 403, .at = now_});
    }
    const std::string name = uid.substr(4);
    pods_.at(name).node = std::string(engine_.state().NameOf(bind.node_name));
    CheckQueues(pods_.at(name).group);
    engine_.Apply(model::BindOutcome{.uid = uid, .outcome = model::WriteOutcome::kDone});
    Tell(name);
    NoteRuns();
  }

  [[nodiscard]] int64_t Placed(const std::string& group) const {
    return std::ranges::count_if(pods_, [&](const auto& pod) {
      return pod.second.group == group && !pod.second.node.empty();
    });
  }

  void Delete(model::PodId pod) {
    const std::string uid(engine_.state().UidOf(engine_.state().pods().at(pod).uid));
    pods_.erase(uid.substr(4));
    leaving_.erase(uid.substr(4));
    engine_.Apply(model::PodRemove{.uid = uid});
  }
  // Their objects say what has become of them.
  void NoteRuns() {
    for (auto& [name, group] : groups_) {
      const int64_t placed = Placed(name);
      group.ran = group.ran || (placed > 0 && placed >= group.min_member);
      if (group.ran) TellGroup(name, group);
    }
  }
  void TellGroup(const std::string& name, const Group& group) {
    model::GroupUpsert facts =
        FactsOf(engine_.vocabulary(), TestGroup{.name = name,
                                                .uid = fmt::format("{}-{}", name, group.created),
                                                .min_member = group.min_member,
                                                .created = group.created});
    if (group.ran) facts.phase = model::GroupPhase::kRunning;
    facts.queue = group.queue;
    if (group.kept > 0) {
      const model::ResourceAmount kept{model::kCpu, group.kept};
      facts.min_resources = engine_.vocabulary().bundles.Intern(std::span(&kept, 1));
    }
    engine_.Apply(facts);
  }

  // What of a queue, with those below it, members on nodes have.
  [[nodiscard]] int64_t UsedOf(const std::string& queue) const {
    int64_t used = 0;
    for (const auto& [name, pod] : pods_) {
      if (!pod.node.empty() && groups_.contains(pod.group) &&
          IsIn(groups_.at(pod.group).queue, queue)) {
        used += pod.cpu;
      }
    }
    return used;
  }
  // Of what groups ask to be kept, what none of their members has; of those that have run nothing.
  [[nodiscard]] int64_t KeptOf(const std::string& queue, const std::string& but_for) const {
    int64_t kept = 0;
    for (const auto& [name, group] : groups_) {
      if (name == but_for || group.ran || !IsIn(group.queue, queue)) continue;
      kept += std::max<int64_t>(0, group.kept - Placed(name) * group.cpu);
    }
    return kept;
  }
  [[nodiscard]] bool IsIn(const std::string& queue, const std::string& above) const {
    if (!queues_.contains(queue)) return false;
    return queue == above || (queues_.at(queue).below && above == "q0");
  }
  // A binding takes no more than there is.
  void CheckQueues(const std::string& group) const {
    if (!groups_.contains(group)) return;
    for (const auto& [name, queue] : queues_) {
      if (IsIn(groups_.at(group).queue, name)) RC_ASSERT(UsedOf(name) <= queue.cpu);
    }
  }
  // Whether its queue surely has so much for it.
  [[nodiscard]] bool HasQuota(const std::string& name, const Group& group, int64_t cpu) const {
    if (group.queue == "default") return true;
    if (!queues_.contains(group.queue)) return false;
    if (queues_.at(group.queue).below && !queues_.contains("q0")) return false;
    for (const auto& [above, queue] : queues_) {
      if (!IsIn(group.queue, above)) continue;
      if (queue.closed || queue.cpu - UsedOf(above) - KeptOf(above, name) < cpu) return false;
    }
    return true;
  }

  // Who waits and is promised a place.
  [[nodiscard]] int64_t Promised(const std::string& group) const {
    return std::ranges::count_if(pods_, [&](const auto& pod) {
      const model::PodId id = engine_.state().FindPod("uid-" + pod.first);
      return pod.second.group == group && pod.second.node.empty() &&
             engine_.state().PromiseOf(id).valid();
    });
  }

  // Of what a plan binds of a group, no part is below its minimum, and once it has no more to do
  // none of it is promised less, unless it has nodes.
  void CheckWhole(const model::Plan& plan) const {
    for (const auto& [name, group] : groups_) {
      const int64_t promised = Promised(name);
      const bool none = Placed(name) == 0 && plan.binds.empty();
      if (!plan.more && none && promised > 0) RC_ASSERT(promised >= group.min_member);
    }
    std::map<std::string, int64_t> bound;
    for (const model::BindDecision& bind : plan.binds)
      ++bound[pods_.at(std::string(engine_.state().UidOf(bind.pod_uid)).substr(4)).group];
    for (const auto& [name, group] : groups_) {
      if (bound.contains(name)) RC_ASSERT(bound.at(name) + Placed(name) >= group.min_member);
    }
  }

  // Who waits although all that it needs is there could not be placed, and who never ran holds
  // nothing.
  void CheckAtRest(const std::string& name, const Group& group) const {
    const int64_t placed = Placed(name);
    RC_ASSERT(group.ran || placed == 0 || placed >= group.min_member);
    std::vector<int64_t> waiting;
    for (const auto& [pod, member] : pods_) {
      if (member.group == name && member.node.empty()) waiting.push_back(member.cpu);
    }
    const int64_t needed = group.min_member - placed;
    const bool equal = std::set<int64_t>(waiting.begin(), waiting.end()).size() == 1;
    if (needed <= 0 || std::ssize(waiting) < needed || !equal) return;
    int64_t places = 0;
    for (const std::string& node : nodes_) {
      int64_t free = kNodeCpu;
      for (const auto& [pod, member] : pods_) free -= member.node == node ? member.cpu : 0;
      places += std::max<int64_t>(free, 0) / waiting.front();
    }
    const int64_t asked = std::max(needed * waiting.front(), group.kept - placed * group.cpu);
    RC_ASSERT(places < needed || !HasQuota(name, group, asked));
  }

  Engine engine_;
  Instant now_;
  int64_t clock_ = 0;
  std::set<std::string> nodes_;
  std::map<std::string, Group> groups_;
  std::map<std::string, Queue> queues_;
  std::map<std::string, Member> pods_;
  std::set<std::string> leaving_;  // Those that are being deleted.
};

// A PodGroup that is deleted and made again does not cost those who run their nodes.
TEST(Gang, NobodyIsReleasedWhoRanBeforeItsGroupCame) {
  for (const int64_t start : {5, 15}) {
    Engine engine;
    engine.Apply(FactsOf(engine.vocabulary(), TestNode{.name = "n1", .cpu = 1000}));
    engine.Apply(FactsOf(engine.vocabulary(),
                         TestGroup{.name = "g", .uid = "g", .min_member = 2, .created = 10}));
    model::PodUpsert pod =
        FactsOf(engine.vocabulary(), TestPod{.name = "p", .cpu = 100, .node = "n1", .group = "g"});
    pod.start = Instant::FromSeconds(start);
    engine.Apply(pod);
    EXPECT_TRUE(engine.Cycle(Instant::FromSeconds(20)).released.empty());
    EXPECT_EQ(engine.Cycle(Instant::FromSeconds(90)).released.size(), start == 5 ? 0u : 1u);
  }
}

// Who runs waits for no queue, though its own lets nobody in; who waits in it does.
TEST(Gang, WhoRunsDoesNotWaitForAClosedQueue) {
  Engine engine(Engine::Options{});
  engine.Apply(FactsOf(engine.vocabulary(), TestNode{.name = "n1", .cpu = 1000}));
  engine.Apply(model::QueueUpsert{.kind = model::QueueKind::kQueue,
                                  .name = "q",
                                  .uid = "q",
                                  .parent = "root",
                                  .stopped = true});
  model::GroupUpsert group = FactsOf(engine.vocabulary(), TestGroup{.name = "g"});
  group.queue = "q";
  group.phase = model::GroupPhase::kRunning;
  engine.Apply(group);
  const model::GroupId id = engine.state().FindGroup("uid-g");
  const TestPod pod{.name = "p", .cpu = 500, .group = "g"};
  engine.Apply(FactsOf(engine.vocabulary(), pod));
  EXPECT_TRUE(engine.WhyGroupWaits(id).has_value());
  TestPod bound = pod;
  bound.node = "n1";
  engine.Apply(FactsOf(engine.vocabulary(), bound));
  EXPECT_FALSE(engine.WhyGroupWaits(id).has_value());
}

// The watchdog looks past gangs whose queue has nothing for them, and finds the one that has.
TEST(Gang, WhoWaitsForQuotaThatIsThereIsMissed) {
  for (const bool forgotten : {false, true}) {
    Engine engine({.faults = {.forget_quota_waiters = forgotten}});
    engine.Apply(FactsOf(engine.vocabulary(), TestNode{.name = "n1", .cpu = 100'000}));
    for (const std::string queue : {"q0", "q1"}) {
      engine.Apply(QueueOfGroups(queue, 1000));
      // What is kept for one without members is all that there is.
      const model::ResourceAmount all{model::kCpu, 1000};
      model::GroupUpsert kept = FactsOf(engine.vocabulary(), TestGroup{.name = "a" + queue});
      kept.queue = queue;
      kept.phase = model::GroupPhase::kInqueue;
      kept.min_resources = engine.vocabulary().bundles.Intern(std::span(&all, 1));
      engine.Apply(kept);
      model::GroupUpsert gang =
          FactsOf(engine.vocabulary(), TestGroup{.name = "b" + queue, .min_member = 2});
      gang.queue = queue;
      engine.Apply(gang);
      for (const char* name : {"1", "2"}) {
        engine.Apply(FactsOf(engine.vocabulary(),
                             TestPod{.name = queue + name, .cpu = 500, .group = "b" + queue}));
      }
    }
    EXPECT_TRUE(engine.Cycle(Instant::FromSeconds(1)).binds.empty());
    engine.Apply(model::GroupRemove{.uid = "uid-aq0"});
    EXPECT_EQ(engine.Cycle(Instant::FromSeconds(20)).binds.size(), forgotten ? 0u : 2u);
    EXPECT_EQ(engine.CountMissedWakes(), forgotten ? 1u : 0u);
  }
}

// A group that runs and has more members than its queue has room for.
class LooseMembers {
 public:
  LooseMembers() {
    engine_.Apply(FactsOf(engine_.vocabulary(), TestNode{.name = "n1", .cpu = 100'000}));
    engine_.Apply(QueueOfGroups("q", 1000));
    model::GroupUpsert group = FactsOf(engine_.vocabulary(), TestGroup{.name = "g"});
    group.queue = "q";
    group.phase = model::GroupPhase::kRunning;
    engine_.Apply(group);
  }
  void Put(const std::string& name, int64_t created, int64_t memory, const std::string& node) {
    engine_.Apply(FactsOf(engine_.vocabulary(), TestPod{.name = name,
                                                        .cpu = 500,
                                                        .memory = memory,
                                                        .created = created,
                                                        .node = node,
                                                        .group = "g"}));
  }
  // Whom it binds until it has no more to do.
  std::vector<std::string> Settle() {
    std::vector<std::string> bound;
    for (int i = 0; i < 10; ++i) {
      now_ = now_ + Duration::Seconds(1);
      for (const model::BindDecision& bind : engine_.Cycle(now_).binds)
        bound.emplace_back(engine_.state().UidOf(bind.pod_uid));
      EXPECT_EQ(model::Audit(engine_.state()), std::vector<std::string>());
      if (engine_.wake_at() > now_) break;
    }
    EXPECT_EQ(engine_.CountMissedWakes(), 0u);
    return bound;
  }
  Engine engine_;

 private:
  Instant now_;
};

TEST(Gang, QuotaThatIsGivenBackWakesNoMoreMembersThanItIsEnoughFor) {
  LooseMembers world;
  world.Put("a", 1, 0, "n1");
  world.Put("b", 2, 0, "n1");
  for (int i = 0; i < 60; ++i) world.Put(fmt::format("w{}", i), 100 - i, 0, "");
  EXPECT_TRUE(world.Settle().empty());
  const uint64_t before = world.engine_.counters().attempts;
  world.engine_.Apply(model::PodRemove{.uid = "uid-a"});
  EXPECT_EQ(world.Settle(), std::vector<std::string>{"uid-w59"}) << "the oldest";
  EXPECT_EQ(world.engine_.counters().attempts - before, 1u);
}

// Quota that is left by whoever finds no node goes to those behind, at once.
TEST(Gang, WhoIsWokenForQuotaAndFindsNoNodeKeepsItFromNobody) {
  LooseMembers world;
  world.Put("a", 1, 0, "n1");
  world.Put("b", 2, 0, "n1");
  for (int i = 0; i < 20; ++i)
    world.Put(fmt::format("large{}", i), 3, (int64_t{20 + i % 4}) << 30, "");
  for (int i = 0; i < 20; ++i) world.Put(fmt::format("w{}", i), 100 - i, 0, "");
  EXPECT_TRUE(world.Settle().empty());
  const uint64_t before = world.engine_.counters().attempts;
  world.engine_.Apply(model::PodRemove{.uid = "uid-a"});
  EXPECT_EQ(world.Settle(), std::vector<std::string>{"uid-w19"});
  EXPECT_EQ(world.engine_.counters().attempts - before, 5u) << "four kinds, and one that fits";
}

// A gang that is too large for the nodes, whatever leaves them, keeps no quota from others, though
// its object says that it was let in; once there is a node for it, it is placed as far as there is
// quota, which it waits for else.
TEST(Gang, WhoCanHaveNoPlacesKeepsNoQuotaFromOthers) {
  for (const bool equal : {true, false}) {
    Engine engine;
    Instant now;
    const auto settle = [&] {
      std::vector<std::string> bound;
      do {
        now = now + Duration::Seconds(20);
        for (const model::BindDecision& bind : engine.Cycle(now).binds)
          bound.emplace_back(engine.state().UidOf(bind.pod_uid));
        EXPECT_EQ(model::Audit(engine.state()), std::vector<std::string>());
      } while (engine.wake_at() <= now);
      EXPECT_EQ(engine.CountMissedWakes(), 0u);
      return bound;
    };
    const auto put = [&](const std::string& name, int64_t cpu, int64_t created) {
      const model::ResourceAmount asked{model::kCpu, cpu * 2};
      model::GroupUpsert gang = FactsOf(
          engine.vocabulary(), TestGroup{.name = name, .min_member = 2, .created = created});
      gang.queue = "q";
      gang.min_resources = engine.vocabulary().bundles.Intern(std::span(&asked, 1));
      engine.Apply(gang);
      for (const int i : {1, 2}) {
        engine.Apply(FactsOf(engine.vocabulary(), TestPod{.name = fmt::format("{}{}", name, i),
                                                          .cpu = cpu,
                                                          .memory = equal ? 0 : i,
                                                          .group = name}));
      }
      return gang;
    };
    engine.Apply(FactsOf(engine.vocabulary(), TestNode{.name = "n1", .cpu = 1500}));
    engine.Apply(QueueOfGroups("q", 4000));
    model::GroupUpsert large = put("large", 2000, 1);
    // Small comes beside it, or once its object says that it was let in.
    if (equal) {
      EXPECT_TRUE(settle().empty());
    }
    large.phase = equal ? model::GroupPhase::kInqueue : model::GroupPhase::kPending;
    engine.Apply(large);
    put("small", 500, 2);
    EXPECT_EQ(settle().size(), 2u) << "small is let in, and placed";
    large.phase = model::GroupPhase::kInqueue;
    engine.Apply(large);
    engine.Apply(FactsOf(engine.vocabulary(), TestNode{.name = "n2", .cpu = 9000}));
    EXPECT_TRUE(settle().empty()) << "there is quota for 3000 of 4000";
    for (const char* uid : {"uid-small1", "uid-small2"}) engine.Apply(model::PodRemove{.uid = uid});
    engine.Apply(model::GroupRemove{.uid = "uid-small"});
    EXPECT_EQ(settle().size(), 2u) << "large";
  }
}

RC_GTEST_PROP(Gang, IsPlacedWholeAndWaitsForNothingThatIsThere, ()) {
  GangWorld world(*rc::gen::arbitrary<bool>());
  const int steps = *rc::gen::inRange(5, 60);
  for (int i = 0; i < steps; ++i) {
    world.Step();
    if (*rc::gen::inRange(0, 3) == 0) world.Settle();
  }
  world.Settle();
}

}  // namespace
}  // namespace berth::cycle
