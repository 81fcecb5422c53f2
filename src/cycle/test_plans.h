#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "cycle/engine.h"
#include "cycle/test_cluster.h"
#include "cycle/why.h"

// Test code: an engine with preemption, asked for a plan at a time.
namespace berth::cycle {

class PlansTest : public ::testing::Test {
 protected:
  using Lines = std::vector<std::string>;

  void Put(TestPod pod, const std::string& node = "") {
    if (!node.empty()) pod.node = node;
    engine.Apply(FactsOf(engine.vocabulary(), pod));
  }
  void Remove(const std::string& pod) { engine.Apply(model::PodRemove{.uid = "uid-" + pod}); }
  void NodeOfZone(const std::string& name, const std::string& zone, int64_t cpu) {
    TestNode node{.name = name, .cpu = cpu};
    if (!zone.empty()) node.labels = {{"zone", zone}};
    engine.Apply(FactsOf(engine.vocabulary(), node));
  }
  // "pod node" of each decision.
  Lines Cycle() {
    now += Duration::Seconds(20).ns;
    plan = engine.Cycle(Instant{now});
    Lines binds;
    for (const model::BindDecision& bind : plan.binds) {
      const model::State& state = engine.state();
      binds.push_back(std::string(state.KeyOf(state.pods().at(bind.pod).key).substr(8)) + " " +
                      std::string(state.NameOf(bind.node_name)));
    }
    return binds;
  }
  // Why nodes refuse the pod.
  [[nodiscard]] std::vector<model::Reason> Reasons(const std::string& pod) const {
    const model::PodId id = engine.state().FindPod("uid-" + pod);
    return WhyNot(engine.state(), engine.evaluator(), id).refusal.reasons;
  }
  // How many nodes refuse the pod for that.
  [[nodiscard]] int64_t Refusing(const std::string& pod, model::ReasonKind kind) const {
    int64_t count = 0;
    for (const model::Reason& reason : Reasons(pod))
      count += reason.kind == kind ? reason.nodes_count : 0;
    return count;
  }

  Engine engine{{.preemption = true}};
  model::Plan plan;
  int64_t now = 0;
};

}  // namespace berth::cycle
