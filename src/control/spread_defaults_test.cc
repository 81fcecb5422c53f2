// Goal: pods are spread by their Services and owners, and kept apart by labels of namespaces, as
// these are when they are placed. Method: the scheduler with a scripted API server.
#include "control/spread_defaults.h"

#include <gtest/gtest.h>

#include <string>

#include "control/test_rig.h"

namespace berth::control {
namespace {

std::string Node(std::string_view name, int64_t cpu_milli) {
  std::string node = NodeJson(name, 101, cpu_milli);
  const std::string_view uid = R"("uid":)";
  node.insert(node.find(uid), fmt::format(R"("labels":{{"kubernetes.io/hostname":"{}"}},)", name));
  return node;
}

std::string Web(const std::string& name, int version, const std::string& node = "",
                const std::string& spec = "") {
  return PodJson({.name = name,
                  .uid = "u-" + name,
                  .version = version,
                  .node = node,
                  .cpu_milli = 100,
                  .extra_meta =
                      R"(,"labels":{"app":"web"},"ownerReferences":[{"apiVersion":"apps/v1",)"
                      R"("kind":"ReplicaSet","name":"web","uid":"u-web","controller":true}])",
                  .extra_spec = spec});
}

std::string ReplicaSet(int version) {
  return fmt::format(
      R"({{"metadata":{{"name":"web","namespace":"ns","uid":"u-web","resourceVersion":"{}"}},)"
      R"("spec":{{"selector":{{"matchLabels":{{"app":"web"}}}},"template":{{}}}}}})",
      version);
}

std::string NodeOf(const env::SendRequest& binding) {
  const std::string body(binding.request.body.view());
  const size_t at = body.find("\"name\":\"n");
  return at == std::string::npos ? "" : body.substr(at + 8, 2);
}

class SpreadDefaultsTest : public ::testing::Test {
 protected:
  static SchedulerOptions Options() {
    SchedulerOptions options;
    options.spread_defaults = true;
    options.namespaces = true;
    return options;
  }
  SpreadDefaultsTest() : rig_(Options()) {
    // By what they have free, all go to n1.
    rig_.Start({Web("there", 100, "n1")}, {Node("n1", 64'000), Node("n2", 4'000)});
  }

  Rig rig_;
};

TEST_F(SpreadDefaultsTest, TheOwnersPodsAreSpreadOverHosts) {
  rig_.Event("replicasets", "ADDED", ReplicaSet(110));
  rig_.Event("pods", "ADDED", Web("p", 111));
  EXPECT_EQ(NodeOf(rig_.TakeBinding()), "n2");
}

TEST_F(SpreadDefaultsTest, AnOwnerThatIsNotSeenSpreadsNobody) {
  rig_.Event("pods", "ADDED", Web("p", 111));
  EXPECT_EQ(NodeOf(rig_.TakeBinding()), "n1");
}

// The pod waits for its gate when what selects it comes.
TEST_F(SpreadDefaultsTest, WhoWaitsIsReadAgainWhenWhatSelectsItComes) {
  rig_.Event("pods", "ADDED", Web("p", 111, "", R"(,"schedulingGates":[{"name":"g"}])"));
  rig_.Event("services", "ADDED",
             R"({"metadata":{"name":"s","namespace":"ns","uid":"u-s","resourceVersion":"112"},)"
             R"("spec":{"selector":{"app":"web"}}})");
  const auto& state = rig_.scheduler.engine().state();
  const auto spread_of = [&](const char* uid) {
    return state.vocabulary().classes.at(state.pods().at(state.FindPod(uid)).class_id).spread;
  };
  EXPECT_TRUE(spread_of("u-p").valid());
  EXPECT_FALSE(spread_of("u-there").valid());
  rig_.Event("services", "DELETED",
             R"({"metadata":{"name":"s","namespace":"ns","uid":"u-s","resourceVersion":"113"}})");
  EXPECT_FALSE(spread_of("u-p").valid());
}

TEST_F(SpreadDefaultsTest, OwnConstraintsStandAlone) {
  rig_.Event("replicasets", "ADDED", ReplicaSet(110));
  rig_.Event("pods", "ADDED",
             Web("p", 111, "",
                 R"(,"topologySpreadConstraints":[{"maxSkew":1,"topologyKey":"zone",)"
                 R"("whenUnsatisfiable":"ScheduleAnyway","labelSelector":{}}])"));
  EXPECT_EQ(NodeOf(rig_.TakeBinding()), "n1");
}

TEST_F(SpreadDefaultsTest, LabelsOfNamespacesKeepPodsApart) {
  rig_.Event("namespaces", "ADDED",
             R"({"metadata":{"name":"ns","uid":"u-ns","resourceVersion":"110",)"
             R"("labels":{"team":"red"}}})");
  rig_.Event("pods", "ADDED",
             Web("p", 111, "",
                 R"(,"affinity":{"podAntiAffinity":{)"
                 R"("requiredDuringSchedulingIgnoredDuringExecution":[{)"
                 R"("topologyKey":"kubernetes.io/hostname","labelSelector":{},)"
                 R"("namespaceSelector":{"matchLabels":{"team":"red"}}}]}})"));
  EXPECT_EQ(NodeOf(rig_.TakeBinding()), "n2");
}

}  // namespace
}  // namespace berth::control
