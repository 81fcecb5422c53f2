// Goal: what a PodTranslator remembers changes no fact, no refusal and nothing that is interned.
// Method: random pods of few shared specs, through it and through PodFacts() beside it, each with a
// vocabulary of its own.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/limits.h"
#include "base/prng.h"
#include "model/state.h"
#include "translate/facts.h"

namespace berth::translate {
namespace {

api::ResourceList DrawAmounts(Prng& prng, uint64_t kinds_max) {
  // Over a hundred names: more than pods may name together.
  api::ResourceList list;
  const uint64_t kinds = prng.Below(kinds_max);
  for (uint64_t i = 0; i < kinds; ++i) {
    list.push_back({"example.com/r" + std::to_string(1000 + i * 10 + prng.Below(10)), 5});
  }
  list.push_back({"memory", prng.Between(0, 3)});
  if (prng.Below(8) == 0) list.push_back({"z-gpu", 1});
  return list;
}

Shared<api::PodSpec> DrawSpec(Prng& prng) {
  api::PodSpec spec;
  spec.containers.resize(1);
  spec.containers[0].name = "c";
  spec.containers[0].requests = DrawAmounts(prng, prng.Below(2) == 0 ? 15 : 2);
  if (prng.Below(8) == 0) {
    spec.containers[0].requests.insert(spec.containers[0].requests.begin(),
                                       {std::string(kGpuMilliResource), prng.Between(0, 3) * 500});
  }
  spec.scheduler_name = prng.Below(2) == 0 ? "berth" : "other";
  spec.priority = prng.Between(-2, 2);
  if (prng.Below(4) == 0) spec.scheduling_gates = {"g"};
  if (prng.Below(4) == 0) {
    spec.required_node_affinity = std::vector<api::NodeSelectorTerm>{
        {.match_fields = {{.key = "metadata.name", .op = "In", .values = {"n1"}}}}};
  }
  if (prng.Below(8) == 0) spec.pod_requests = api::ResourceList{{"cpu", prng.Between(0, 9)}};
  return Shared(std::move(spec));
}

api::Pod DrawPod(Prng& prng, const std::vector<Shared<api::PodSpec>>& specs) {
  api::Pod pod;
  pod.meta.name = "p" + std::to_string(prng.Below(100));
  pod.meta.namespace_name = "ns";
  pod.meta.uid = pod.meta.name;
  pod.spec = specs[prng.Below(specs.size())];
  if (prng.Below(2) == 0) pod.node_name = "n" + std::to_string(prng.Below(3));
  if (prng.Below(2) == 0) pod.meta.annotations = {{std::string(kGpuIndexAnnotation), "0,2"}};
  if (prng.Below(4) == 0) pod.phase = "Succeeded";
  if (prng.Below(4) == 0) pod.nominated_node_name = "n1";
  if (prng.Below(4) == 0) pod.container_statuses = {{.name = "c"}};
  if (prng.Below(4) == 0)
    pod.container_statuses = {{.name = "c", .actual = api::ResourceList{{"memory", 7}}}};
  if (prng.Below(8) == 0) pod.pod_actual = api::ResourceList{{"cpu", 8}};
  return pod;
}

void ExpectSame(const model::PodUpsert& a, const model::PodUpsert& b) {
  EXPECT_EQ(a.uid, b.uid);
  EXPECT_EQ(a.key, b.key);
  EXPECT_EQ(a.class_id, b.class_id);
  EXPECT_EQ(a.charge, b.charge);
  EXPECT_EQ(a.charge_scoring, b.charge_scoring);
  EXPECT_EQ(a.pin, b.pin);
  EXPECT_EQ(a.node, b.node);
  EXPECT_EQ(a.nominated, b.nominated);
  EXPECT_EQ(a.creation, b.creation);
  EXPECT_EQ(a.priority, b.priority);
  EXPECT_EQ(a.devices, b.devices);
  EXPECT_EQ(a.gated, b.gated);
  EXPECT_EQ(a.terminating, b.terminating);
  EXPECT_EQ(a.terminal, b.terminal);
}

TEST(PodTranslator, TellsWhatPodFactsTells) {
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    Prng prng(seed);
    std::vector<Shared<api::PodSpec>> specs;
    // More than it remembers, in the later rounds.
    for (uint64_t i = 0; i < 100 * seed; ++i) specs.push_back(DrawSpec(prng));
    PodTranslator translator;
    model::Vocabulary mine;
    model::Vocabulary plain;
    size_t refused = 0;
    for (int i = 0; i < 2'000 && !::testing::Test::HasFailure(); ++i) {
      const api::Pod pod = DrawPod(prng, specs);
      std::vector<std::string> mine_out;
      std::vector<std::string> plain_out;
      const auto facts = translator.Facts(pod, mine, &mine_out);
      const auto wanted = PodFacts(pod, plain, &plain_out);
      ASSERT_EQ(facts.has_value(), wanted.has_value());
      EXPECT_EQ(mine_out, plain_out);
      if (wanted) {
        ExpectSame(*facts, *wanted);
      } else {
        EXPECT_EQ(facts.error().message, wanted.error().message);
        ++refused;
      }
    }
    EXPECT_GT(refused, 0u);
    Hasher a;
    Hasher b;
    mine.AddTo(a);
    plain.AddTo(b);
    EXPECT_EQ(a.value(), b.value());
  }
}

TEST(PodTranslator, ACopyMayHaveAnotherVocabulary) {
  Prng prng(1);
  const api::Pod pod = DrawPod(prng, {DrawSpec(prng)});
  PodTranslator translator;
  model::Vocabulary first;
  (void)first.names.Intern("moves every id");
  ASSERT_TRUE(translator.Facts(pod, first).has_value());
  PodTranslator copy(translator);
  PodTranslator assigned;
  ASSERT_TRUE(assigned.Facts(pod, first).has_value());
  assigned = translator;
  for (PodTranslator* one : {&copy, &assigned}) {
    model::Vocabulary fresh;
    (void)one->Facts(pod, fresh);
    EXPECT_GT(fresh.classes.size(), 0u) << "the class was interned anew";
  }
}

}  // namespace
}  // namespace berth::translate
