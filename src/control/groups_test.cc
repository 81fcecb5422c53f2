// Goal: a PodGroup's members are bound together, and its status says what is so, once and fenced.
// Method: the test plays API server and watch, and looks at each request.
#include "control/groups.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "control/test_rig.h"

namespace berth::control {
namespace {

SchedulerOptions Placing() {
  SchedulerOptions options;
  options.groups = true;
  return options;
}

std::string GroupJson(const std::string& uid, int version, int min, const std::string& spec = "",
                      const std::string& status = R"({"phase":"Pending"})") {
  return fmt::format(
      R"({{"kind":"PodGroup","apiVersion":"scheduling.volcano.sh/v1beta1","metadata":{{"name":"g","namespace":"ns","uid":"{}",)"
      R"("resourceVersion":"{}","creationTimestamp":"2026-01-01T00:00:00Z"}},"spec":{{"minMember":{}{}}},"status":{}}})",
      uid, version, min, spec, status);
}

std::string MemberJson(const std::string& name, int version, const std::string& node = "",
                       const std::string& status = "") {
  return PodJson({.name = name,
                  .uid = "u-" + name,
                  .version = version,
                  .node = node,
                  .extra_meta = R"(,"annotations":{"scheduling.k8s.io/group-name":"g"})",
                  .extra_status = status});
}

std::string_view BodyOf(const env::SendRequest& request) { return request.request.body.view(); }

bool Says(const env::SendRequest& request, std::string_view text) {
  return BodyOf(request).find(text) != std::string_view::npos;
}

TEST(Groups, MembersAreBoundTogetherAndTheStatusFollows) {
  Rig rig(Placing());
  rig.Start({MemberJson("a", 10)}, {NodeJson("n1", 11)});
  // Its group is not there.
  EXPECT_TRUE(Says(rig.TakeOf("/pods/a/status"), "PodGroup ns/g does not exist."));
  EXPECT_EQ(rig.TakeBinding().call.value, 0u);

  rig.Event("groups", "ADDED", GroupJson("g1", 112, 2));
  const env::SendRequest waits = rig.TakeOf("/podgroups/g");
  EXPECT_EQ(
      BodyOf(waits),
      R"({"metadata":{"uid":"g1","resourceVersion":"112"},"status":{"phase":"Inqueue","running":0,"succeeded":0,"failed":0,)"
      R"("conditions":[{"type":"Unschedulable","status":"True","reason":"NotEnoughTasks",)"
      R"("message":"PodGroup ns/g lacks members: it needs 2 more, and 1 wait.","transitionID":"112",)"
      R"("lastTransitionTime":"2027-01-15T08:00:00Z"}]}})");
  rig.Answer(waits, 200, "{}");
  EXPECT_EQ(rig.TakeBinding().call.value, 0u);

  rig.Event("pods", "ADDED", MemberJson("b", 113));
  const env::SendRequest first = rig.TakeBinding();
  const env::SendRequest second = rig.TakeBinding();
  EXPECT_EQ(TargetOf(first), "n1");
  EXPECT_EQ(TargetOf(second), "n1");

  // Nothing is running before it is observed; the next write waits for the version that the last
  // one made.
  EXPECT_EQ(rig.TakeOf("/podgroups/g").call.value, 0u);
  rig.Answer(first, 201, "{}");
  rig.Answer(second, 201, "{}");
  rig.Event("pods", "MODIFIED", MemberJson("a", 114, "n1"));
  rig.Event("pods", "MODIFIED", MemberJson("b", 115, "n1"));
  rig.Event("groups", "MODIFIED", GroupJson("g1", 116, 2, "", R"({"phase":"Inqueue"})"));
  const env::SendRequest runs = rig.TakeOf("/podgroups/g");
  EXPECT_TRUE(Says(runs, R"("resourceVersion":"116")")) << BodyOf(runs);
  EXPECT_TRUE(Says(runs, R"("phase":"Running","running":2)")) << BodyOf(runs);
  EXPECT_TRUE(Says(runs, R"("type":"Scheduled")")) << BodyOf(runs);
}

// P01 of docs/REGRESSIONS.md: the group of a name that is given again is another group, and what
// comes late of the old one is not about it.
TEST(Groups, ANameThatIsGivenAgainIsAnotherGroup) {
  Rig rig(Placing());
  rig.Start({}, {NodeJson("n1", 11)});
  rig.Event("groups", "ADDED", GroupJson("old", 112, 1));
  const env::SendRequest of_old = rig.TakeOf("/podgroups/g");
  EXPECT_TRUE(Says(of_old, R"("uid":"old")"));
  rig.Event("groups", "DELETED", GroupJson("old", 113, 1));
  rig.Event("groups", "ADDED", GroupJson("new", 114, 1));
  rig.Event("pods", "ADDED", MemberJson("b", 115));
  rig.Answer(of_old, 409, "{}");
  EXPECT_EQ(TargetOf(rig.TakeBinding()), "n1");
  EXPECT_TRUE(Says(rig.TakeOf("/podgroups/g"), R"("uid":"new","resourceVersion":"114")"));
}

TEST(Groups, AWriteInConflictWaitsForTheNextVersion) {
  Rig rig(Placing());
  rig.Start({}, {NodeJson("n1", 11)});
  rig.Event("groups", "ADDED", GroupJson("g1", 112, 1));
  rig.Answer(rig.TakeOf("/podgroups/g"), 409, "{}");
  rig.Pass(Duration::Minutes(1));
  EXPECT_EQ(rig.TakeOf("/podgroups/g").call.value, 0u);
  rig.Event("groups", "MODIFIED", GroupJson("g1", 117, 1));
  EXPECT_TRUE(Says(rig.TakeOf("/podgroups/g"), R"("resourceVersion":"117")"));
}

TEST(Groups, AWriteThatWasRefusedIsTriedAgainLater) {
  Rig rig(Placing());
  rig.Start({}, {NodeJson("n1", 11)});
  rig.Event("groups", "ADDED", GroupJson("g1", 112, 1));
  rig.Answer(rig.TakeOf("/podgroups/g"), 422, "{}");
  EXPECT_EQ(rig.TakeOf("/podgroups/g").call.value, 0u);
  rig.Pass(Duration::Seconds(11));
  EXPECT_TRUE(Says(rig.TakeOf("/podgroups/g"), R"("resourceVersion":"112")"));
}

// A group's class decides who goes first, whenever the class comes.
TEST(Groups, APriorityClassIsLookedUp) {
  Rig rig(Placing());
  rig.Start({}, {NodeJson("n1", 11, 500)});
  rig.Event("groups", "ADDED", GroupJson("g1", 112, 1, R"(,"priorityClassName":"high")"));
  const model::State& state = rig.scheduler.engine().state();
  EXPECT_EQ(state.groups().at(state.FindGroup("g1")).priority, std::nullopt);
  rig.Event(
      "classes", "ADDED",
      R"({"kind":"PriorityClass","apiVersion":"scheduling.k8s.io/v1","metadata":{"name":"high","uid":"c","resourceVersion":"113"},"value":1000})");
  EXPECT_EQ(state.groups().at(state.FindGroup("g1")).priority, 1000);
  rig.Event(
      "classes", "DELETED",
      R"({"kind":"PriorityClass","apiVersion":"scheduling.k8s.io/v1","metadata":{"name":"high","uid":"c","resourceVersion":"114"},"value":1000})");
  EXPECT_EQ(state.groups().at(state.FindGroup("g1")).priority, std::nullopt);
}

// The genuine API server has no PodGroups before somebody installs them.
TEST(Groups, AServerWithoutPodGroupsIsNoReasonToWait) {
  Rig rig(Placing());
  rig.Tick();
  while (!rig.inbox.empty()) {
    const env::SendRequest request = rig.Take();
    const bool groups = request.request.target.find("/podgroups") != std::string::npos;
    if (request.stream) {
      rig.Answer(request, 200, "");
    } else if (groups) {
      rig.Answer(request, 404, "404 page not found");
    } else {
      rig.Answer(request, 200,
                 request.request.target.find("/nodes") != std::string::npos
                     ? ListJson({NodeJson("n1", 11)})
                 : request.request.target.find("/pods") != std::string::npos
                     ? ListJson({PodJson({})})
                     : ListJson({}));
    }
  }
  rig.Settle();
  EXPECT_EQ(TargetOf(rig.TakeBinding()), "n1");
}

}  // namespace
}  // namespace berth::control
