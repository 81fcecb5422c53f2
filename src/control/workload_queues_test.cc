// Goal: news of a queue reach those workloads that name it, and cost no more than those. Method:
// random histories of objects, told to one that looks them up and to one that asks everybody.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <array>
#include <string>
#include <tuple>
#include <utility>

#include "control/workloads.h"

namespace berth::control {
namespace {

api::Workload WorkloadOf(int i, int version, const std::string& queue,
                         const std::string& admitted_to) {
  api::Workload workload;
  workload.meta.name = fmt::format("w{}", i);
  workload.meta.namespace_name = "ns";
  workload.meta.uid = fmt::format("u{}", i);
  workload.meta.resource_version = fmt::format("{}", version);
  workload.queue = queue;
  if (admitted_to.empty()) {
    // It was evicted when one of its queues was stopped, and waits for that to go on.
    workload.conditions.push_back(
        {.type = "Requeued",
         .status = "False",
         .reason = version % 2 == 0 ? "ClusterQueueStopped" : "LocalQueueStopped"});
    return workload;
  }
  workload.admission = api::Admission{.cluster_queue = admitted_to,
                                      .pod_sets = {{.name = "main", .flavors = {{"cpu", "spot"}}}}};
  for (const char* type : {"QuotaReserved", "Admitted"})
    workload.conditions.push_back({.type = type, .status = "True", .reason = type});
  return workload;
}

class Twins {
 public:
  template <typename Do>
  void ForEach(Do act) {
    for (Workloads& workloads : both_) act(workloads);
  }
  // By when each is due, among others.
  [[nodiscard]] bool agree() const {
    std::array<uint64_t, 2> hashes = {};
    for (size_t i = 0; i < both_.size(); ++i) {
      Hasher hasher;
      both_[i].AddTo(hasher);
      hashes[i] = hasher.value();
    }
    return hashes[0] == hashes[1] && both_[0].wake_at() == both_[1].wake_at();
  }

 private:
  std::array<Workloads, 2> both_ = {Workloads(Workloads::Options{}),
                                    Workloads(Workloads::Options{.asks_everybody = true})};
};

RC_GTEST_PROP(WorkloadQueuesProperty, NewsOfAQueueReachThoseThatNameIt, ()) {
  Twins twins;
  const int steps = *rc::gen::inRange(1, 120);
  for (int step = 0; step < steps; ++step) {
    const int i = *rc::gen::inRange(0, 6);
    const std::string queue = fmt::format("cq{}", *rc::gen::inRange(0, 3));
    const std::string local = fmt::format("lq{}", *rc::gen::inRange(0, 3));
    const bool drains = *rc::gen::arbitrary<bool>();
    switch (*rc::gen::inRange(0, 8)) {
      case 0:
      case 1:
      case 2: {
        const bool admitted = *rc::gen::arbitrary<bool>();
        twins.ForEach([&](Workloads& of) {
          std::ignore = of.Observe(WorkloadOf(i, step, local, admitted ? queue : ""));
        });
        break;
      }
      case 3:
        twins.ForEach([&](Workloads& of) { of.Forget(fmt::format("u{}", i)); });
        break;
      case 4: {
        QueueRules rules{.flavors = {"spot"}, .drains = drains};
        if (*rc::gen::arbitrary<bool>()) rules.checks.push_back({.name = "c"});
        twins.ForEach([&](Workloads& of) { of.SetClusterQueue(queue, rules); });
        break;
      }
      case 5:
        twins.ForEach([&](Workloads& of) { of.DropClusterQueue(queue); });
        break;
      case 6:
        twins.ForEach([&](Workloads& of) { of.SetLocalQueue("ns/" + local, queue, drains); });
        break;
      default:
        twins.ForEach([&](Workloads& of) { of.DropLocalQueue("ns/" + local); });
    }
    RC_ASSERT(twins.agree());
  }
}

}  // namespace
}  // namespace berth::control
