#pragma once

#include <cstdint>
#include <string>

#include "cycle/test_quota.h"

// Test code: quota that is given out together with places on nodes.
namespace berth::cycle {

class JointWorld : public QuotaWorld {
 public:
  explicit JointWorld(bool preemption = false)
      : JointWorld(Engine::Options{.preemption = preemption, .joint_placement = true}) {}
  explicit JointWorld(const Engine::Options& options) : QuotaWorld(options) {}
  using QuotaWorld::Put;
  void Put(const TestNode& node) { engine.Apply(FactsOf(engine.vocabulary(), node)); }
  void Put(const TestPod& pod, const std::string& of = {}) {
    model::PodUpsert facts = cycle::FactsOf(engine.vocabulary(), pod);
    if (!of.empty()) facts.job = "u-job-" + of;
    engine.Apply(facts);
  }
  void Gone(const std::string& pod) { engine.Apply(model::PodRemove{.uid = "uid-" + pod}); }
  // The binding that was decided is seen.
  void Bound(TestPod pod, const std::string& of, const std::string& node) {
    pod.node = node;
    Put(pod, of);
  }
  void Label(const std::string& flavor, const std::string& value) {
    model::Vocabulary& v = engine.vocabulary();
    engine.Apply(model::FlavorUpsert{.name = flavor,
                                     .uid = "u-" + flavor,
                                     .labels = {{v.names.Intern("pool"), v.names.Intern(value)}}});
  }
  [[nodiscard]] int64_t FreeCpu(const std::string& node) const {
    return state().ledger().nodes().free(model::kCpu, state().FindNode(node).value);
  }

  using QuotaWorld::FactsOf;

 private:
  static model::NodeUpsert FactsOf(model::Vocabulary& v, const TestNode& node) {
    return cycle::FactsOf(v, node);
  }
};

}  // namespace berth::cycle
