// Goal: whatever happens to nodes, workloads, pods, groups and checks, a place is never lost or had
// twice, and nobody is admitted without the members that its group needs. Method: random histories
// with refused writes, after each step of which the audit and the watchdog are asked, and those that
// are admitted are counted.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "cycle/test_joint.h"
#include "cycle/test_mates.h"
#include "model/audit.h"

namespace berth::cycle {
namespace {

// What happens to a cluster in which two queues' workloads run, whose pods a Job makes as it should,
// late, or too often.
class RandomJoint {
 public:
  // `groups`: of some workloads the pods are gangs, of groups in a queue of Volcano's. `checks`: those
  // of one queue are to pass some.
  RandomJoint(bool groups, bool checks)
      : world({.preemption = *rc::gen::arbitrary<bool>(),
               .joint_placement = true,
               .second_pass_delay = {}}),
        groups_(groups),
        checks_(checks) {
    for (const char* name : {"q", "r"}) {
      world.Put(QueueSpec{.name = name,
                          .cohort = "all",
                          .flavors = {{"red", 3000}, {"blue", 2000}},
                          .preemption = kEvicts});
    }
    if (checks) Ask(true);
    world.Label("red", "red");
    world.Label("blue", "blue");
  }

  void Step() {
    const auto n = *rc::gen::inRange(0, 4);
    const std::string node = "n" + std::to_string(n);
    if (groups_ && *rc::gen::inRange(0, 4) == 0) return ChangeGroups();
    if (checks_ && *rc::gen::inRange(0, 4) == 0) return ChangeChecks();
    switch (*rc::gen::inRange(0, 12)) {
      case 0:
        return world.Put(TestNode{.name = node,
                                  .uid = "u" + std::to_string(*rc::gen::inRange(0, 2)) + node,
                                  .cpu = *rc::gen::element(1000, 2000, 3000),
                                  .labels = {{"pool", n % 2 == 0 ? "red" : "blue"}},
                                  .unschedulable = *rc::gen::inRange(0, 4) == 0});
      case 1:
        return world.engine.Apply(model::NodeRemove{.name = node, .uid = ""});
      case 2:
      case 3:
        return PutWorkload();
      case 4:
        return ChangeWorkload();
      case 5:
        return PutStranger();
      case 6: {
        const std::string name = "s" + std::to_string(*rc::gen::inRange(0, 3));
        if (const auto at = pods_.find(name);
            at != pods_.end() && !at->second.terminating && *rc::gen::arbitrary<bool>()) {
          at->second.terminating = true;
          return world.Put(at->second);
        }
        pods_.erase(name);
        return world.Gone(name);
      }
      default:
        return ChangePod();
    }
  }

  // What was decided comes true, or does not.
  void CarryOut(const model::Plan& plan) {
    for (const model::ReserveDecision& r : plan.reservations) {
      const std::string uid(world.state().UidOf(r.uid));
      if (*rc::gen::inRange(0, 5) == 0) {
        world.engine.Apply(model::ReservationOutcome{
            .uid = uid, .outcome = model::WriteOutcome::kRefused, .at = world.now});
      } else {
        Reserved(specs_.at(uid.substr(2)));
      }
    }
    for (const model::PassDecision& pass : plan.passes) {
      const std::string uid(world.state().UidOf(pass.uid));
      if (*rc::gen::arbitrary<bool>()) {
        world.engine.Apply(model::ReservationOutcome{
            .uid = uid, .outcome = model::WriteOutcome::kRefused, .at = world.now});
      } else if (pass.evicts()) {
        world.IsTold(specs_.at(uid.substr(2)));
      } else {
        world.ComesTrue(specs_.at(uid.substr(2)));
      }
    }
    for (const model::PodId pod : plan.evicted) {
      const std::string uid(world.state().UidOf(world.state().pods().at(pod).uid));
      if (*rc::gen::inRange(0, 3) == 0) {
        world.engine.Apply(model::EvictionRefused{.uid = uid, .code = 429, .at = world.now});
      } else if (const auto at = pods_.find(uid.substr(4));
                 at != pods_.end() && !at->second.node.empty() && *rc::gen::arbitrary<bool>()) {
        at->second.terminating = true;
        world.Put(at->second, at->first[0] == 's' ? "" : at->first.substr(0, at->first.find('-')));
      }
    }
    for (const model::BindDecision& b : plan.binds) {
      const std::string name(world.state().UidOf(b.pod_uid).substr(4));
      const std::string node(world.state().NameOf(b.node_name));
      if (!pods_.contains(name) || *rc::gen::inRange(0, 5) == 0) {
        world.engine.Apply(model::BindOutcome{.uid = "uid-" + name,
                                              .outcome = model::WriteOutcome::kRefused,
                                              .code = 500,
                                              .at = world.now});
      } else {
        pods_.at(name).node = node;
        world.Put(pods_.at(name), name[0] == 's' ? "" : name.substr(0, name.find('-')));
      }
    }
  }

  JointWorld world;

 private:
  // With its places it is admitted.
  void Reserved(const WorkloadSpec& spec) {
    const model::Workload& row = world.RowOf(spec.name);
    if (!row.decided.slots.empty()) return world.ComesTrue(spec);
    model::WorkloadUpsert facts = world.FactsOf(spec);
    facts.status.reserved = true;
    facts.status.reserved_at = world.now;
    facts.reserved = row.decided;
    world.engine.Apply(facts);
  }
  void Ask(bool asks) {
    model::Vocabulary& v = world.engine.vocabulary();
    const model::Queue& row = world.state().queues().at(
        world.state().queues().Find(model::QueueKind::kClusterQueue, v.names.Intern("r")));
    model::QueueUpsert facts{
        .name = "r", .uid = "u-r", .parent = "all", .preemption = row.preemption};
    facts.groups = row.groups;
    for (const auto& [flavor, cpu] : {std::pair("red", 3000), std::pair("blue", 2000)}) {
      facts.quotas.push_back(
          {.flavor = v.names.Intern(flavor), .resource = model::kCpu, .quota = {.nominal = cpu}});
    }
    if (asks) facts.checks = {{.name = v.names.Intern("c"), .flavors = {}}};
    world.engine.Apply(facts);
  }
  // The queue asks for one, or no more; one of those that have quota passed it, or did not.
  void ChangeChecks() {
    if (*rc::gen::inRange(0, 6) == 0) return Ask(*rc::gen::arbitrary<bool>());
    const std::string name = "w" + std::to_string(*rc::gen::inRange(0, 5));
    const auto at = specs_.find(name);
    if (at == specs_.end()) return;
    const model::Workload& row = world.RowOf(name);
    if (!row.status.reserved || row.write != model::WriteStage::kNone) return;
    model::WorkloadUpsert facts = world.FactsOf(at->second);
    facts.status = row.status;
    facts.reserved = row.reserved;
    const bool passed = *rc::gen::inRange(0, 3) > 0;
    if (passed) facts.checks = {world.engine.vocabulary().names.Intern("c")};
    facts.status.checks_ready = passed;
    facts.checks_pending = !passed && *rc::gen::arbitrary<bool>();
    world.engine.Apply(facts);
  }
  void ChangeGroups() {
    const std::string name = "g" + std::to_string(*rc::gen::inRange(0, 2));
    switch (*rc::gen::inRange(0, 4)) {
      case 0:
        return world.engine.Apply(QueueOfGroups("team", *rc::gen::inRange(1, 7) * 1000));
      case 1:
        if (*rc::gen::inRange(0, 3) == 0)
          return world.engine.Apply(model::GroupRemove{.uid = "uid-" + name});
        [[fallthrough]];
      default:
        model::Vocabulary& v = world.engine.vocabulary();
        model::GroupUpsert facts = FactsOf(
            v, TestGroup{.name = name, .min_member = *rc::gen::inRange(1, 4), .created = 1});
        facts.queue = *rc::gen::element<std::string>("team", "team", "default");
        const model::ResourceAmount asked{.resource = model::kCpu,
                                          .amount = *rc::gen::inRange(0, 4) * 1000};
        facts.min_resources = v.bundles.Intern({&asked, 1});
        world.engine.Apply(facts);
    }
  }
  // Of two workloads that may be of one job one group, of another another.
  [[nodiscard]] std::string GroupOf(const std::string& workload) const {
    if (!groups_ || workload == "w0" || workload == "w4") return "";
    return workload == "w1" ? "g1" : "g0";
  }
  void PutStranger() {
    const std::string name = "s" + std::to_string(*rc::gen::inRange(0, 3));
    if (pods_.contains(name)) return;
    pods_[name] = {.name = name,
                   .uid = "uid-" + name,
                   .cpu = *rc::gen::element(500, 1000, 2000),
                   .priority = *rc::gen::inRange(0, 3),
                   .created = ++created_,
                   .host_port = *rc::gen::element(0u, 0u, 80u)};
    world.Put(pods_.at(name));
  }
  void PutWorkload() {
    const std::string name = "w" + std::to_string(*rc::gen::inRange(0, 5));
    if (specs_.contains(name)) return;
    specs_[name] = {.name = name,
                    .queue = *rc::gen::element<std::string>("q", "r"),
                    .count = *rc::gen::inRange<uint32_t>(1, 4),
                    .cpu = *rc::gen::element(500, 1000, 2000),
                    .priority = *rc::gen::inRange(0, 4),
                    .created = ++created_,
                    .job = name == "w4" ? "w3" : "",
                    .preempts = *rc::gen::arbitrary<bool>(),
                    .gang = GroupOf(name),
                    .host_port = *rc::gen::element(0u, 0u, 0u, 80u)};
    world.Put(specs_.at(name));
  }
  void ChangeWorkload() {
    if (specs_.empty()) return;
    const auto at =
        std::next(specs_.begin(), *rc::gen::inRange<int>(0, static_cast<int>(specs_.size())));
    const model::Workload& row = world.RowOf(at->first);
    if (*rc::gen::inRange(0, 3) == 0) {
      world.Remove(at->first);
      specs_.erase(at);
    } else if (row.status.reserved && row.status.evicted_for == model::EvictedFor::kNothing) {
      world.IsTold(at->second);
    } else if (row.write == model::WriteStage::kNone) {
      world.Put(at->second);
    }
  }
  void ChangePod() {
    const std::string of = "w" + std::to_string(*rc::gen::inRange(0, 5));
    const std::string name = of + "-" + std::to_string(*rc::gen::inRange(0, 4));
    const auto at = pods_.find(name);
    if (at == pods_.end()) {
      pods_[name] = {.name = name,
                     .uid = "uid-" + name,
                     .cpu = specs_.contains(of) ? specs_.at(of).cpu : 500,
                     .priority = *rc::gen::inRange(0, 3),
                     .created = ++created_,
                     .gated = *rc::gen::inRange(0, 5) == 0,
                     .group = GroupOf(of),
                     .host_port = specs_.contains(of) ? specs_.at(of).host_port : 0};
      return world.Put(pods_.at(name), of);
    }
    TestPod& pod = at->second;
    switch (*rc::gen::inRange(0, 4)) {
      case 0:
        world.Gone(name);
        pods_.erase(at);
        return;
      case 1:
        pod.terminating = true;
        break;
      case 2:
        pod.finished = true;
        break;
      default:
        pod.gated = false;
    }
    world.Put(pod, of);
  }

  std::map<std::string, WorkloadSpec> specs_;
  std::map<std::string, TestPod> pods_;
  int64_t created_ = 0;
  const bool groups_;
  const bool checks_;
};

void PlayJoint(bool groups, bool checks) {
  RandomJoint histories(groups, checks);
  JointWorld& world = histories.world;
  for (int i = *rc::gen::inRange(5, 60); i > 0; --i) {
    histories.Step();
    RC_ASSERT(model::Audit(world.state()) == std::vector<std::string>{});
    world.now = world.now + Duration::Seconds(*rc::gen::inRange(0, 15));
    const model::Plan plan = world.engine.Cycle(world.now);
    RC_ASSERT(model::Audit(world.state()) == std::vector<std::string>{});
    RC_ASSERT(world.engine.CountMissedWakes() == 0u);
    for (const model::ReserveDecision& r : plan.reservations) {
      const model::Workload& row = world.state().workloads().at(r.workload);
      const bool put_off = row.decided.slots.empty() && (checks || row.slots.front().gang.valid());
      RC_ASSERT(put_off || row.decided.slots.size() == size_t{row.slots.front().count});
      RC_ASSERT(HasItsMates(world.state(), r.workload));
    }
    for (const model::PassDecision& pass : plan.passes)
      RC_ASSERT(pass.evicts() || HasItsMates(world.state(), pass.workload));
    histories.CarryOut(plan);
    RC_ASSERT(model::Audit(world.state()) == std::vector<std::string>{});
  }
}

RC_GTEST_PROP(SlotsProp, APlaceIsNeverLostOrHadTwice, ()) {
  PlayJoint(/*groups=*/false, /*checks=*/false);
}

RC_GTEST_PROP(SlotsProp, APlaceOfAGangIsNeverLostOrHadTwice, ()) {
  PlayJoint(/*groups=*/true, /*checks=*/false);
}

RC_GTEST_PROP(SlotsProp, NobodyOfAGangIsAdmittedBeforeItsMatesPassedTheirChecks, ()) {
  PlayJoint(/*groups=*/true, /*checks=*/true);
}

}  // namespace
}  // namespace berth::cycle
