#pragma once

#include <cstdint>
#include <string>

#include "cycle/test_joint.h"
#include "gang/readiness.h"

// Test code: workloads whose pods are gangs of a queue.
namespace berth::cycle {

// With a queue of groups, `team`.
class TeamWorld : public JointWorld {
 public:
  using JointWorld::JointWorld;
  using JointWorld::Put;
  void Team(int64_t cpu) { engine.Apply(QueueOfGroups("team", cpu)); }
  void PutGroup(const std::string& name, int32_t minimum = 2) {
    model::GroupUpsert facts =
        cycle::FactsOf(engine.vocabulary(), TestGroup{.name = name, .min_member = minimum});
    facts.queue = "team";
    engine.Apply(facts);
  }
  // A workload whose pods are of a group of its name in `team`.
  WorkloadSpec Gang(WorkloadSpec spec, int32_t minimum = 2) {
    PutGroup(spec.name, minimum);
    spec.gang = spec.name;
    Put(spec);
    return spec;
  }
  // Its object says that it was let in, and is to keep so much.
  void LetIn(const std::string& name, int32_t minimum, int64_t cpu) {
    model::Vocabulary& v = engine.vocabulary();
    model::GroupUpsert facts = cycle::FactsOf(v, TestGroup{.name = name, .min_member = minimum});
    facts.queue = "team";
    facts.phase = model::GroupPhase::kInqueue;
    const model::ResourceAmount asked{.resource = model::kCpu, .amount = cpu};
    facts.min_resources = v.bundles.Intern({&asked, 1});
    engine.Apply(facts);
  }
  // Members that are promised a place.
  [[nodiscard]] uint32_t PromisedCount() const {
    uint32_t count = 0;
    for (uint32_t i = 0; i < state().groups().size(); ++i)
      count += gang::PromisedOf(state(), model::GroupId{i});
    return count;
  }
};

}  // namespace berth::cycle
