#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "model/state.h"

// What the tests of this folder share.
namespace berth::model {

// A state with one class of 500m, and facts in short.
class Cluster {
 public:
  explicit Cluster(const Faults& faults = {}, uint32_t pods_max = limits::kPodsMax)
      : state(State::Options{.pods_max = pods_max, .faults = faults}) {
    const BundleId requests =
        state.vocabulary().bundles.Intern(std::vector<ResourceAmount>{{kCpu, 500}, {kPods, 1}});
    class_id =
        state.vocabulary().classes.Intern(ClassSpec{.requests = requests, .scoring = requests});
  }
  void Node(const std::string& name, const std::string& uid, Amount cpu = 2000) {
    state.Apply(NodeUpsert{.name = name, .uid = uid, .allocatable = {{kCpu, cpu}, {kPods, 10}}});
  }
  PodUpsert Pod(const std::string& uid, const std::string& key = "default/a") const {
    return PodUpsert{.uid = uid, .key = key, .class_id = class_id};
  }
  Amount Free(const std::string& node) const {
    const NodeId n = state.FindNode(node);
    return n.valid() ? state.ledger().nodes().free(kCpu, n.value) : -1;
  }
  uint64_t Ended(Cause cause) const {
    return state.ledger().ended_by_cause()[static_cast<size_t>(cause)];
  }

  State state;
  ClassId class_id;
};

// What a node has for a viewer once all is gone that is releasing there, to be added to.
class Amounts {
 public:
  Amounts(const Cluster& c, NodeId node, const Viewer& viewer)
      : bundles_(c.state.vocabulary().bundles) {
    for (uint32_t r = 0; r < c.state.vocabulary().resources.size(); ++r) {
      left_[r] = c.state.ledger().Future(AccountId::OfNode(node), ResourceId{r}, viewer, bundles_);
    }
  }
  void Add(BundleId bundle) {
    for (const ResourceAmount& a : bundles_.View(bundle)) left_[a.resource.value] += a.amount;
  }
  [[nodiscard]] bool Hold(BundleId bundle) const {
    for (const ResourceAmount& a : bundles_.View(bundle)) {
      if (left_.at(a.resource.value) < a.amount) return false;
    }
    return true;
  }

 private:
  const BundleTable& bundles_;
  std::map<uint32_t, Amount> left_;
};

}  // namespace berth::model
