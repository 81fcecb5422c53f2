// Goal: whatever becomes of nodes, failures, checks, groups and writes, second passes leave no place
// had twice, nobody who should be looked at unseen, and nobody admitted without the members that its
// group needs. Method: random histories, after each step of which the audit and the watchdog are
// asked, and those that are admitted are counted.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "cycle/test_mates.h"
#include "cycle/test_topology.h"

namespace berth::cycle {
namespace {

class RandomTopology {
 public:
  // `groups`: of some workloads the pods are gangs.
  explicit RandomTopology(bool groups)
      : world(groups || *rc::gen::arbitrary<bool>()), groups_(groups) {
    world.PutQueue(*rc::gen::element(3000, 6000), kEvicts);
  }
  void Step() {
    const std::string node = "n" + std::to_string(*rc::gen::inRange(0, 5));
    const std::string rack = node < "n3" ? "a" : "b";
    const std::string name = "w" + std::to_string(*rc::gen::inRange(0, 4));
    if (groups_ && *rc::gen::inRange(0, 5) == 0) return ChangeGroup();
    switch (*rc::gen::inRange(0, 15)) {
      case 0:
      case 1:
        return world.Node(node, rack, *rc::gen::element(1000, 2000), *rc::gen::inRange(0, 4) > 0);
      case 2:
        world.NodeGone(node);
        return Report(name);
      case 3:
      case 4:
        return PutWorkload(name);
      case 5:
        return world.AskFor(*rc::gen::arbitrary<bool>() ? "c" : "");
      case 6:
        return ChangeChecks(name);
      case 7:
        return Report(name);
      case 8:
        return End(name);
      case 9:
        return ChangeTopology();
      case 10:
        return PutStranger(name);
      default:
        return PutPod(name);
    }
  }
  void Check() {
    for (int i = 0; i < 10; ++i) {
      const model::Plan plan = world.engine.Cycle(world.now);
      RC_ASSERT(model::Audit(world.state()) == std::vector<std::string>{});
      RC_ASSERT(world.engine.CountMissedWakes() == 0u);
      for (const model::PassDecision& pass : plan.passes) {
        const model::Workload& row = world.state().workloads().at(pass.workload);
        const model::WorkloadStage stage = StageOf(row.status);
        RC_ASSERT(stage == model::WorkloadStage::kReserved ||
                  stage == model::WorkloadStage::kAdmitted);
        RC_ASSERT(decided_.insert(pass.uid.value).second);
        RC_ASSERT(pass.pass != model::Pass::kPlace || pass.evicts() ||
                  HasItsMates(world.state(), pass.workload));
      }
      for (const model::ReserveDecision& r : plan.reservations) {
        RC_ASSERT(HasItsMates(world.state(), r.workload));
      }
      CarryOut(plan);
      RC_ASSERT(model::Audit(world.state()) == std::vector<std::string>{});
      if (!plan.more) break;
    }
    world.now = world.now + Duration::Seconds(*rc::gen::inRange(0, 15));
  }

  TopologyWorld world;

 private:
  bool IsThere(const std::string& name) { return world.objects.contains(name); }
  void PutWorkload(const std::string& name) {
    if (IsThere(name)) return;
    world.Put({.name = name,
               .count = *rc::gen::inRange<uint32_t>(1, 4),
               .priority = *rc::gen::inRange(0, 2),
               .created = ++created_,
               .gang = groups_ && name != "w0" ? "g" : ""},
              *rc::gen::element<std::string>("", "rack", kHost));
  }
  void ChangeGroup() {
    decided_.clear();
    if (*rc::gen::inRange(0, 5) == 0) return world.engine.Apply(model::GroupRemove{.uid = "uid-g"});
    world.engine.Apply(cycle::FactsOf(
        world.engine.vocabulary(), TestGroup{.name = "g", .min_member = *rc::gen::inRange(1, 7)}));
  }
  void ChangeChecks(const std::string& name) {
    if (!IsThere(name)) return;
    model::WorkloadUpsert& o = world.objects.at(name);
    const int state = *rc::gen::inRange(0, 3);
    o.checks = {};
    if (state == 0) o.checks = {world.Name("c")};
    o.checks_pending = state == 1;
    o.status.checks_ready = state == 0;
    News(name);
  }
  // It goes, it comes, or the flavor names it no more.
  void ChangeTopology() {
    const int what = *rc::gen::inRange(0, 4);
    if (what == 0) return world.engine.Apply(model::TopologyRemove{.name = "t", .uid = ""});
    world.engine.Apply(model::TopologyUpsert{.name = "t",
                                             .uid = "u-t",
                                             .levels = {world.Name("rack"), world.Name(kHost)},
                                             .by_node = true});
    world.engine.Apply(
        model::FlavorUpsert{.name = "spot", .uid = "u-spot", .topology = what == 1 ? "" : "t"});
  }
  // Which nodes of its places are not there, or not ready.
  void Report(const std::string& name) {
    if (!IsThere(name)) return;
    model::WorkloadUpsert& o = world.objects.at(name);
    o.unhealthy.clear();
    for (const model::TopologyPlaces& places : o.reserved.topologies) {
      for (const model::TopologyShare& share : places.shares) {
        const model::NodeId node = world.state().nodes().Find(share.values.back());
        if (!node.valid() || !world.state().nodes().present(node) ||
            !world.state().nodes().ready(node))
          o.unhealthy.push_back(share.values.back());
      }
    }
    News(name);
  }
  void End(const std::string& name) {
    if (!IsThere(name)) return;
    model::WorkloadUpsert& o = world.objects.at(name);
    const int how = *rc::gen::inRange(0, 4);
    if (how == 0) {
      decided_.clear();  // What its uid was known by is given again.
      world.Remove(name);
      world.objects.erase(name);
      return;
    }
    if (how == 1) o.status.finished = true;
    if (how == 2 && o.status.reserved) o.status.evicted_for = model::EvictedFor::kOther;
    if (how == 3 && o.status.evicted_for != model::EvictedFor::kNothing) {
      o.status.reserved = o.status.admitted = false;
      o.status.evicted_for = model::EvictedFor::kNothing;
      o.reserved = {};
      o.unhealthy.clear();
    }
    News(name);
  }
  // A new version.
  void News(const std::string& name) {
    decided_.clear();
    world.Tell(name);
  }
  void PutPod(const std::string& name) {
    const std::string pod = name + "-" + std::to_string(*rc::gen::inRange(0, 3));
    if (*rc::gen::inRange(0, 3) == 0)
      return world.engine.Apply(model::PodRemove{.uid = "uid-" + pod});
    const model::PodId there = world.state().FindPod("uid-" + pod);
    if (!IsThere(name) || (there.valid() && world.state().pods().at(there).node.valid())) return;
    for (const model::Slot& slot : world.objects.at(name).reserved.slots) {
      if (*rc::gen::arbitrary<bool>()) continue;
      return world.Pod(name, pod, std::string(world.state().NameOf(slot.node)),
                       /*bound=*/*rc::gen::arbitrary<bool>());
    }
  }
  // Another scheduler's, where a place of the workload is.
  void PutStranger(const std::string& name) {
    world.engine.Apply(model::PodRemove{.uid = "uid-s"});
    if (!IsThere(name) || world.objects.at(name).reserved.slots.empty()) return;
    const std::vector<model::Slot>& slots = world.objects.at(name).reserved.slots;
    const auto at = *rc::gen::inRange<size_t>(0, slots.size());
    const std::string node(world.state().NameOf(slots[at].node));
    const TestPod stranger{.name = "s", .cpu = 1000, .priority = 9, .node = node, .foreign = true};
    world.engine.Apply(cycle::FactsOf(world.engine.vocabulary(), stranger));
  }
  bool Fails(const std::string& name) {
    if (*rc::gen::inRange(0, 5) > 0) return false;
    decided_.clear();
    const auto outcome =
        *rc::gen::element(model::WriteOutcome::kRefused, model::WriteOutcome::kConflict,
                          model::WriteOutcome::kNotSent);
    world.engine.Apply(
        model::ReservationOutcome{.uid = "u-" + name, .outcome = outcome, .at = world.now});
    if (outcome == model::WriteOutcome::kConflict)
      world.engine.Apply(model::ReservationRead{.uid = "u-" + name});
    return true;
  }
  void CarryOut(const model::Plan& plan) {
    std::vector<std::string> reserved;
    for (const model::ReserveDecision& r : plan.reservations)
      reserved.emplace_back(world.state().UidOf(r.uid).substr(2));
    for (const model::PassDecision& pass : plan.passes) {
      const std::string name(world.state().UidOf(pass.uid).substr(2));
      if (*rc::gen::inRange(0, 5) == 0) continue;  // On its way still.
      if (Fails(name)) continue;
      decided_.clear();
      world.Passed(pass);
    }
    for (const std::string& name : reserved) {
      if (Fails(name)) continue;
      const model::Workload& row = world.RowOf(name);
      const model::WorkloadId id = world.state().FindWorkload("u-" + name);
      world.Reserved(name, /*admitted=*/!row.decided.slots.empty() &&
                               world.state().PassedChecks(id, row.decided));
    }
  }

  std::set<uint32_t> decided_;  // Of this version of something.
  const bool groups_;
  int64_t created_ = 0;
};

void PlaySecondPasses(bool groups) {
  RandomTopology histories(groups);
  for (int i = *rc::gen::inRange(1, 60); i > 0; --i) {
    histories.Step();
    histories.Check();
  }
}

RC_GTEST_PROP(SecondPassTest, RandomHistories, ()) { PlaySecondPasses(/*groups=*/false); }

RC_GTEST_PROP(SecondPassTest, RandomHistoriesOfGroups, ()) { PlaySecondPasses(/*groups=*/true); }

}  // namespace
}  // namespace berth::cycle
