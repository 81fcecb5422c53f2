// Goal: one of nodes that are alike stands for all, also where how many they are matters to scores,
// where constraints don't count nodes that fit, and where most have pods that count. Method: many
// nodes with hostnames, few classes with constraints and terms of all kinds, also of a profile
// without the filters that make it so, and pods that leave; each decision beside the plain
// evaluation.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "cycle/engine.h"
#include "cycle/test_cluster.h"
#include "cycle/test_naive.h"

namespace berth::cycle {
namespace {

using enum model::AffinityKind;

RC_GTEST_PROP(EngineAlikeTest, AmongManyNodesThatAreAlikeToo, ()) {
  const auto draw = [](int high) { return *rc::gen::inRange(0, high); };
  Engine::Options options{.profiles = TwoProfiles()};
  options.likeness.scans_min = 0;
  options.likeness.values_max = draw(2) == 0 ? 1 : 256;
  if (draw(4) == 0) options.likeness.kinds_max = 1;
  Engine engine(options);
  const int nodes = 20 + draw(40);
  const int share = 2 + draw(8);  // Of zone a, of a few nodes: there hosts fill up first.
  for (int i = 0; i < nodes; ++i) {
    TestNode node{.name = "n" + std::to_string(i), .cpu = 10'000};
    if (draw(8) != 0) node.labels.emplace_back("zone", draw(share) == 0 ? "a" : "b");
    if (draw(8) != 0) node.labels.emplace_back(kHostname, node.name);
    if (draw(4) == 0) node.taints.push_back({.key = "team"});
    engine.Apply(FactsOf(engine.vocabulary(), node));
  }
  std::vector<TestPod> kinds;
  for (int k = 0; k < 2; ++k) {
    TestPod pod{.cpu = 100, .labels = {{"app", "a"}}};
    if (draw(2) == 0) pod.profile = "careless";
    for (const char* key : {kHostname, "zone"}) {
      if (draw(4) == 0) continue;
      pod.spread.push_back({.key = key,
                            .app = "a",
                            .max_skew = static_cast<uint32_t>(1 + draw(4)),
                            .hard = draw(3) == 0,
                            .honors_taints = draw(2) == 0});
    }
    for (const model::AffinityKind kind : {kRequiredAnti, kPreferredAnti, kPreferred}) {
      if (draw(4) == 0)
        pod.affinity.push_back({.kind = kind,
                                .key = draw(3) == 0 ? "zone" : kHostname,
                                .app = draw(2) == 0 ? "a" : "b",
                                .weight = static_cast<uint32_t>(1 + draw(2))});
    }
    pod.labels = {{"app", draw(3) == 0 ? "b" : "a"}};
    kinds.push_back(std::move(pod));
  }
  for (int i = 0; i < 40; ++i) {
    if (draw(4) == 0) engine.Apply(model::PodRemove{.uid = "uid-p" + std::to_string(draw(40))});
    TestPod pod = kinds[static_cast<size_t>(draw(2))];
    pod.name = "p" + std::to_string(i);
    pod.created = i;
    engine.Apply(FactsOf(engine.vocabulary(), pod));
    const Instant now = Instant::FromSeconds(1'000 + i);
    model::State before = engine.state();
    CheckPlan(before, options, engine.Cycle(now), now);
  }
}

}  // namespace
}  // namespace berth::cycle
