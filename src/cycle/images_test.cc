#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "cycle/engine.h"
#include "cycle/test_cluster.h"
#include "cycle/test_examples.h"

// What images cost the cycle, and what it must not miss of them. EngineTest's histories have images,
// too.
namespace berth::cycle {
namespace {

class ImagesTest : public Examples {};

// Goal: images that are nowhere cost nothing. Method: pods that differ in their images alone wait in
// one line and are placed by one look at the nodes, as if they had none.
TEST_F(ImagesTest, ThoseThatAreNowhereMakeNoClasses) {
  for (int i = 0; i < 40; ++i) Node({.name = "n" + std::to_string(i), .cpu = 1000});
  const auto evaluated = [&](bool images) {
    Engine fork = engine;
    for (int i = 0; i < 30; ++i) {
      TestPod pod{.name = "p" + std::to_string(i), .cpu = 600};
      if (images) pod.images = {"image" + std::to_string(i)};
      fork.Apply(FactsOf(fork.vocabulary(), pod));
    }
    EXPECT_EQ(fork.Cycle(Instant{}).binds.size(), 30u);
    return fork.counters().nodes_evaluated;
  };
  EXPECT_EQ(evaluated(true), evaluated(false));

  for (int i = 0; i < 1000; ++i)
    Pod({.name = "large" + std::to_string(i), .cpu = 6000, .images = {"i" + std::to_string(i)}});
  const model::Plan plan = Cycle();
  EXPECT_EQ(engine.counters().attempts, 1u);
  EXPECT_EQ(plan.refused.size(), 1000u);
  EXPECT_EQ(plan.refusals.size(), 1u);
}

// Goal: what an image adds on a node hangs on how many others have it, and how many there are; a
// class that was cached heeds it. Method: nodes that stay as they are beside others that change, and
// one more pod of the class each time.
TEST_F(ImagesTest, ScoresHeedOtherNodes) {
  int pods = 0;
  const auto chosen = [&] {
    Pod({.name = "p" + std::to_string(++pods), .cpu = 0, .images = {"x", "y"}});
    const model::Plan plan = Cycle(pods);
    return plan.binds.empty() ? "" : engine.state().NameOf(plan.binds[0].node_name);
  };
  TestNode node{.cpu = 1'000'000, .memory = int64_t{1} << 40, .pods = 1000};
  const auto put = [&](const std::string& name, decltype(node.images) images) {
    node.name = name;
    node.images = std::move(images);
    node.unschedulable = name != "a" && name != "b";
    Node(node);
  };
  for (const char* name : {"a", "b", "c", "d"}) put(name, {});
  EXPECT_EQ(chosen(), "a");  // By name.
  put("a", {{"x", 500}});
  put("b", {{"y", 600}});
  EXPECT_EQ(chosen(), "b");  // 600 / 4 is more than 500 / 4.
  put("c", {{"x", 500}});
  EXPECT_EQ(chosen(), "a");  // 500 x 2 / 4 is more than 600 / 4.
  put("c", {{"y", 600}});
  EXPECT_EQ(chosen(), "b");
  // Of 64 nodes too few have them to count.
  for (int i = 0; i < 60; ++i) put("more" + std::to_string(i), {});
  EXPECT_EQ(chosen(), "a");
  for (int i = 0; i < 60; ++i)
    engine.Apply(model::NodeRemove{.name = "more" + std::to_string(i), .uid = ""});
  EXPECT_EQ(chosen(), "b");
}

}  // namespace
}  // namespace berth::cycle
