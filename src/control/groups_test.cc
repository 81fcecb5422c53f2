// Goal: a PodGroup's members are bound together, and its status says what is so, once and fenced.
// Method: the test plays API server and watch, and looks at each request.
#include "control/groups.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

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

// Who has all that it needs at once: what each that waits besides is told is told of it, and a queue
// that is closed now is not what it waits for.
TEST(Groups, WhyIsToldOfMembersThatItDoesNotNeed) {
  Rig rig(Placing());
  const std::string running = R"({"phase":"Running"})";
  rig.Start({MemberJson("a", 10, "n1"), MemberJson("b", 11)}, {NodeJson("n1", 12, 500)});
  rig.Event("groups", "ADDED", GroupJson("g1", 112, 1, "", running));
  rig.Settle();
  const std::string why = rig.Get("/debug/why?podgroup=ns/g");
  EXPECT_NE(why.find(R"("member":"ns/b")"), std::string::npos) << why;
  EXPECT_NE(why.find(R"("wouldFit":false)"), std::string::npos) << why;
  EXPECT_NE(why.find("Insufficient cpu"), std::string::npos) << why;
}

// /debug/why of a group: how many it lacks, which nodes refuse why, and where its members stand.
TEST(Groups, WhyIsToldOfTheWholeGroup) {
  Rig rig(Placing());
  rig.Start({MemberJson("a", 10), MemberJson("b", 11)}, {NodeJson("n1", 12)});
  EXPECT_NE(rig.Get("/debug/why?podgroup=ns/g").find("podgroup \\\"ns/g\\\" is not known"),
            std::string::npos);
  rig.Event("groups", "ADDED", GroupJson("g1", 112, 3));
  rig.Settle();
  const std::string lacks = rig.Get("/debug/why?podgroup=ns/g");
  EXPECT_NE(lacks.find(R"("podgroup":"ns/g","uid":"g1","phase":"Inqueue","minMember":3)"),
            std::string::npos)
      << lacks;
  EXPECT_NE(lacks.find(R"("members":{"waiting":2})"), std::string::npos) << lacks;
  EXPECT_NE(lacks.find(R"("reasons":[])"), std::string::npos) << lacks;
  EXPECT_NE(lacks.find("PodGroup ns/g lacks members: it needs 3 more, and 2 wait; make more, or "
                       "lower its spec.minMember."),
            std::string::npos)
      << lacks;
  EXPECT_NE(lacks.find(R"("pods":[{"pod":"ns/a","state":"waiting"},{"pod":"ns/b")"),
            std::string::npos)
      << lacks;
}

// Whoever holds what it waits for is named, whether it may be evicted or not.
TEST(Groups, WhoHasWhatAGangWaitsForIsTold) {
  Rig rig(Placing());
  rig.Start({}, {NodeJson("n1", 11), NodeJson("n2", 12), NodeJson("small", 13, 100)});
  const auto stands = [&](const std::string& name, const std::string& node, int64_t cpu,
                          int32_t priority) {
    rig.Event("pods", "ADDED",
              PodJson({.name = name,
                       .uid = "u-" + name,
                       .version = 110,
                       .node = node,
                       .cpu_milli = cpu,
                       .priority = priority}));
  };
  stands("big", "n1", 900, 100);
  stands("other", "n2", 300, 100);
  stands("elsewhere", "small", 100, 100);
  rig.Event("groups", "ADDED", GroupJson("g1", 112, 2));
  rig.Event("pods", "ADDED", MemberJson("a", 113));
  rig.Event("pods", "ADDED", MemberJson("b", 114));
  constexpr std::string_view kHolders =
      R"("nodeHolders":[{"pod":"ns/big","amounts":{"cpu":"900m"},"nodes":1,"priority":100},)"
      R"({"pod":"ns/other","amounts":{"cpu":"300m"},"nodes":1,"priority":100}],)"
      R"("nodeHoldersCount":2)";
  for (const char* who : {"podgroup=ns/g", "pod=ns/a"}) {
    const std::string why = rig.Get(std::string("/debug/why?") + who);
    EXPECT_NE(why.find(kHolders), std::string::npos) << why;
  }
  // A pod of one, which even n2 has no room for.
  rig.Event("pods", "ADDED",
            PodJson({.name = "single", .uid = "u-single", .version = 115, .cpu_milli = 800}));
  const std::string single = rig.Get("/debug/why?pod=ns/single");
  EXPECT_NE(single.find(kHolders), std::string::npos) << single;
  // Pods of a group are told as one.
  rig.Event("pods", "DELETED",
            PodJson({.name = "big", .uid = "u-big", .version = 116, .node = "n1"}));
  rig.Answer(rig.TakeOf("/pods/a/binding"), 201, "{}");
  rig.Answer(rig.TakeOf("/pods/b/binding"), 201, "{}");
  const std::string again = rig.Get("/debug/why?pod=ns/single");
  EXPECT_NE(again.find(R"({"podgroup":"ns/g","amounts":{"cpu":"1"},"nodes":)"), std::string::npos)
      << again;
}

TEST(Groups, MembersAreBoundTogetherAndTheStatusFollows) {
  Rig rig(Placing());
  rig.Start({MemberJson("a", 10)}, {NodeJson("n1", 11)});
  // Its group is not there.
  EXPECT_TRUE(Says(rig.TakeOf("/pods/a/status"),
                   "PodGroup ns/g does not exist: create it, or let the pods name another."));
  EXPECT_EQ(rig.TakeBinding().call.value, 0u);

  rig.Event("groups", "ADDED", GroupJson("g1", 112, 2));
  const env::SendRequest waits = rig.TakeOf("/podgroups/g");
  EXPECT_EQ(
      BodyOf(waits),
      R"({"metadata":{"uid":"g1","resourceVersion":"112"},"status":{"phase":"Inqueue","running":0,"succeeded":0,"failed":0,)"
      R"("conditions":[{"type":"Unschedulable","status":"True","reason":"NotEnoughTasks",)"
      R"("message":"PodGroup ns/g lacks members: it needs 2 more, and 1 wait; make more, or lower its spec.minMember.","transitionID":"112",)"
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

// A member whose binding is refused keeps its place and is tried again; when that comes to nothing
// for a minute, the gang gives back what it has, and waits as a whole.
TEST(Groups, AGangThatIsNotCompletedGivesBackWhatItHas) {
  Rig rig(Placing());
  rig.Start({}, {NodeJson("n1", 11)});
  rig.Event("groups", "ADDED", GroupJson("g1", 112, 2));
  rig.Event("pods", "ADDED", MemberJson("a", 113));
  rig.Answer(rig.TakeOf("/pods/a/status"), 200, MemberJson("a", 114));
  rig.Event("pods", "ADDED", MemberJson("b", 115));
  rig.Answer(rig.TakeOf("/pods/a/binding"), 201, "{}");
  rig.Event("pods", "MODIFIED", MemberJson("a", 116, "n1"));
  rig.Answer(rig.TakeOf("/pods/b/binding"), 403, "{}");
  rig.Settle();
  EXPECT_TRUE(Says(rig.TakeOf("/pods/b/status"), R"("nominatedNodeName":"n1")"));
  EXPECT_EQ(rig.Held("n1"), 500);
  int tried = 0;
  env::SendRequest mark;
  for (int second = 0; second < 70 && mark.call.value == 0; ++second) {
    rig.Pass(Duration::Seconds(1));
    if (const env::SendRequest again = rig.TakeOf("/pods/b/binding"); again.call.value != 0) {
      ++tried;
      rig.Answer(again, 403, "{}");
      rig.Settle();
    }
    mark = rig.TakeOf("/pods/a/status");
  }
  EXPECT_GT(tried, 3);
  EXPECT_TRUE(Says(mark, R"("reason":"GangReleased")")) << BodyOf(mark);
  EXPECT_NE(
      rig.Get("/debug/why?pod=ns/a").find(R"("eviction":{"group":"ns/g","state":"to be evicted"})"),
      std::string::npos);
  rig.Answer(mark, 200, MemberJson("a", 130, "n1"));
  rig.Settle();
  const env::SendRequest deletion = rig.TakeOf("/pods/a");
  EXPECT_EQ(deletion.request.method, env::Method::kDelete);
  EXPECT_TRUE(Says(deletion, R"("uid":"u-a")")) << BodyOf(deletion);
  while (rig.TakeOf("/events").call.value != 0) {
  }
  rig.Answer(deletion, 200, "{}");
  EXPECT_TRUE(Says(rig.TakeOf("/events"), "PodGroup ns/g was not completed in time"));
  rig.Event("pods", "DELETED", MemberJson("a", 131, "n1"));
  EXPECT_EQ(rig.Held("n1"), 0);
  rig.Event("pods", "ADDED", MemberJson("c", 132));
  rig.Pass(Duration::Seconds(20));
  EXPECT_EQ(TargetOf(rig.TakeOf("/pods/b/binding")), "n1");
  EXPECT_EQ(TargetOf(rig.TakeOf("/pods/c/binding")), "n1");
}

// Of a gang that has a part of what it needs, what is told is what is so: its condition and those of
// its members say no older count for the minute until it gives that back, and the same while the
// bindings are tried again.
TEST(Groups, AGangThatHasAPartSaysWhatItLacks) {
  Rig rig(Placing());
  rig.Start({}, {NodeJson("n1", 11, 4'000)});
  rig.Event("groups", "ADDED", GroupJson("g1", 112, 3));
  for (const char* name : {"a", "b"}) rig.Event("pods", "ADDED", MemberJson(name, 113));
  std::string status = R"({"phase":"Inqueue"})";
  int version = 120;
  // Its condition as the object has it once nothing is due any more.
  const auto told = [&] {
    rig.Pass(Duration::Seconds(2));
    while (true) {
      const env::SendRequest write = rig.TakeOf("/podgroups/g");
      if (write.call.value == 0) break;
      const std::string_view body = BodyOf(write);
      status = body.substr(body.find(R"("status":)") + 9);
      status.pop_back();
      rig.Answer(write, 200, "{}");
      rig.Event("groups", "MODIFIED", GroupJson("g1", version++, 3, "", status));
      rig.Pass(Duration::Seconds(2));
    }
    const size_t at = status.find(R"("message":")") + 11;
    return status.substr(at, status.find('"', at) - at);
  };
  EXPECT_EQ(told(),
            "PodGroup ns/g lacks members: it needs 3 more, and 2 wait; make more, or lower its "
            "spec.minMember.");
  rig.Event("pods", "ADDED", MemberJson("c", 115));
  rig.Answer(rig.TakeOf("/pods/a/binding"), 201, "{}");
  rig.Event("pods", "MODIFIED", MemberJson("a", 116, "n1"));
  rig.Answer(rig.TakeOf("/pods/b/binding"), 403, "{}");
  rig.Answer(rig.TakeOf("/pods/c/binding"), 403, "{}");
  const std::string lacks =
      "PodGroup ns/g lacks 2 of the places that it needs at once: what was decided of 2 of its "
      "members was refused or failed, and is tried again.";
  EXPECT_NE(rig.Get("/debug/why?podgroup=ns/g").find(lacks), std::string::npos);
  EXPECT_EQ(told(), lacks);
  // The bindings are on their way again, and come to nothing again: nothing else is told.
  rig.Answer(rig.TakeOf("/pods/b/binding"), 403, "{}");
  EXPECT_EQ(rig.TakeOf("/podgroups/g").call.value, 0u);
  rig.Answer(rig.TakeOf("/pods/c/binding"), 403, "{}");
  rig.Pass(Duration::Seconds(1));
  EXPECT_EQ(rig.TakeOf("/podgroups/g").call.value, 0u);
  // One is bound.
  rig.Pass(Duration::Seconds(5));
  rig.Answer(rig.TakeOf("/pods/b/binding"), 201, "{}");
  rig.Event("pods", "MODIFIED", MemberJson("b", 117, "n1"));
  EXPECT_EQ(told(),
            "PodGroup ns/g lacks 1 of the places that it needs at once: what was decided of 1 of "
            "its members was refused or failed, and is tried again.");
}

// Whose group goes between the mark and the deletion stays.
TEST(Groups, NobodyIsReleasedForAGroupThatIsGone) {
  Rig rig(Placing());
  rig.Start({}, {NodeJson("n1", 11)});
  rig.Event("groups", "ADDED", GroupJson("g1", 112, 2));
  rig.Event("pods", "ADDED", MemberJson("a", 113, "n1"));
  rig.Pass(Duration::Seconds(61));
  const env::SendRequest mark = rig.TakeOf("/pods/a/status");
  EXPECT_TRUE(Says(mark, R"("reason":"GangReleased")")) << BodyOf(mark);
  rig.Event("groups", "DELETED", GroupJson("g1", 114, 2));
  rig.Answer(mark, 200, MemberJson("a", 115, "n1"));
  rig.Settle();
  EXPECT_EQ(rig.TakeOf("/pods/a").call.value, 0u);
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

// Volcano's scheduler places no pod before it has a group; its controller, or berth's, makes it.
// Which one it will be is known before the pod says so, and its annotation then changes nothing.
TEST(Groups, APodOfVolcanosSchedulerWaitsForTheGroupThatIsMadeForIt) {
  SchedulerOptions options = Placing();
  options.scheduler_names.emplace_back("volcano");
  Rig rig(std::move(options));
  const auto pod = [](int version, const std::string& meta) {
    return PodJson({.name = "a",
                    .uid = "u-a",
                    .version = version,
                    .scheduler = "volcano",
                    .extra_meta = meta});
  };
  rig.Start({pod(10, "")}, {NodeJson("n1", 11)});
  EXPECT_EQ(rig.TakeBinding().call.value, 0u);
  EXPECT_TRUE(
      Says(rig.TakeOf("/pods/a/status"),
           "PodGroup ns/podgroup-u-a, which berth controllers make for pods that name none, does "
           "not exist yet: an Event of the pods' controller, or of the pod, says if it can't be "
           "made."));
  rig.Event(
      "groups", "ADDED",
      R"({"kind":"PodGroup","metadata":{"name":"podgroup-u-a","namespace":"ns","uid":"g1","resourceVersion":"112"},"spec":{"minMember":1}})");
  const env::SendRequest binding = rig.TakeBinding();
  EXPECT_EQ(TargetOf(binding), "n1");
  rig.Event("pods", "MODIFIED",
            pod(113, R"(,"annotations":{"scheduling.k8s.io/group-name":"podgroup-u-a"})"));
  EXPECT_EQ(rig.TakeBinding().call.value, 0u);
  rig.Answer(binding, 201, "{}");
  const model::State& state = rig.scheduler.engine().state();
  EXPECT_EQ(state.groups().CountsOf(state.groups().at(state.FindGroup("g1")).key).ready(), 1u);
}

TEST(Groups, AWriteInConflictIsMadeOfTheNextVersionOrAgainLater) {
  Rig rig(Placing());
  rig.Start({}, {NodeJson("n1", 11)});
  rig.Event("groups", "ADDED", GroupJson("g1", 112, 1));
  rig.Answer(rig.TakeOf("/podgroups/g"), 409, "{}");
  EXPECT_EQ(rig.TakeOf("/podgroups/g").call.value, 0u);
  rig.Pass(Duration::Seconds(11));
  const env::SendRequest again = rig.TakeOf("/podgroups/g");
  EXPECT_TRUE(Says(again, R"("resourceVersion":"112")"));
  rig.Answer(again, 409, "{}");
  rig.Event("groups", "MODIFIED", GroupJson("g1", 117, 1));
  EXPECT_TRUE(Says(rig.TakeOf("/podgroups/g"), R"("resourceVersion":"117")"));
}

// Less and less often; after one that is done it begins anew.
TEST(Groups, AWriteThatWasRefusedIsTriedAgainLater) {
  Rig rig(Placing());
  rig.Start({}, {NodeJson("n1", 11)});
  rig.Event("groups", "ADDED", GroupJson("g1", 112, 1));
  env::SendRequest write = rig.TakeOf("/podgroups/g");
  const auto refuse = [&](const std::vector<int64_t>& waits) {
    for (const int64_t seconds : waits) {
      rig.Answer(write, 422, "{}");
      rig.Pass(Duration::Seconds(seconds - 1));
      EXPECT_EQ(rig.TakeOf("/podgroups/g").call.value, 0u);
      rig.Pass(Duration::Seconds(1));
      write = rig.TakeOf("/podgroups/g");
      EXPECT_NE(write.call.value, 0u) << "after " << seconds << " s";
    }
  };
  refuse({10, 20});
  EXPECT_TRUE(Says(write, R"("resourceVersion":"112")"));
  rig.Answer(write, 200, "{}");
  rig.Event("groups", "MODIFIED", GroupJson("g1", 117, 1));
  write = rig.TakeOf("/podgroups/g");
  EXPECT_TRUE(Says(write, R"("resourceVersion":"117")"));
  refuse({10, 20, 40, 80, 160, 300, 300});
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

// A group that asks for more than can be kept for it is told so, whether it waits or starts.
TEST(Groups, MoreThanCanBeKeptIsTold) {
  Rig rig(Placing());
  rig.Start({}, {NodeJson("n1", 11, 500)});
  for (const bool beyond : {false, true}) {
    const std::string spec =
        fmt::format(R"(,"minResources":{{"cpu":"1","memory":"{}"}})", beyond ? "20Ti" : "16Ti");
    const std::string note =
        "spec.minResources.memory: 20Ti is more than is kept for a PodGroup: it is let in where";
    const std::string uid = beyond ? "g2" : "g1";
    rig.Event("groups", "ADDED", GroupJson(uid, beyond ? 120 : 112, 1, spec));
    const env::SendRequest waits = rig.TakeOf("/podgroups/g");
    EXPECT_EQ(Says(waits, note), beyond) << BodyOf(waits);
    rig.Answer(waits, 200, "{}");
    EXPECT_EQ(rig.Get("/debug/why?podgroup=ns/g").contains(note), beyond);
  }
}

// Whoever waits for a class that is missing is told so, in whichever condition there is, until it
// comes: its priority is another than its user thinks.
TEST(Groups, AMissingPriorityClassIsTold) {
  Rig rig(Placing());
  rig.Start({}, {NodeJson("n1", 11, 500)});
  const std::string spec = R"(,"priorityClassName":"high")";
  const std::string note =
      "PriorityClass high doesn't exist, which spec.priorityClassName names: create it, or name "
      "another; until then the group has the priority of its most important pod that waits";
  rig.Event("groups", "ADDED", GroupJson("g1", 112, 1, spec));
  const env::SendRequest waits = rig.TakeOf("/podgroups/g");
  EXPECT_TRUE(
      Says(waits,
           R"("message":"PodGroup ns/g lacks members: it needs 1 more, and 0 wait of those whose )"
           R"(spec.schedulerName is served here; make more, or lower its spec.minMember. )" +
               note + R"(",)"))
      << BodyOf(waits);
  rig.Answer(waits, 200, "{}");
  EXPECT_NE(rig.Get("/debug/why?podgroup=ns/g").find(R"("note":")" + note + '"'),
            std::string::npos);
  rig.Event("pods", "ADDED", MemberJson("a", 113));
  rig.Answer(rig.TakeBinding(), 201, "{}");
  rig.Event("pods", "MODIFIED", MemberJson("a", 114, "n1"));
  rig.Pass(Duration::Seconds(2));
  rig.Event("groups", "MODIFIED", GroupJson("g1", 115, 1, spec, R"({"phase":"Inqueue"})"));
  rig.Pass(Duration::Seconds(2));
  const env::SendRequest runs = rig.TakeOf("/podgroups/g");
  EXPECT_TRUE(Says(runs, R"("phase":"Running")")) << BodyOf(runs);
  EXPECT_TRUE(Says(runs, R"("type":"Scheduled","status":"True",)"
                         R"("reason":"tasks in gang are ready to be scheduled","message":")" +
                             note))
      << BodyOf(runs);
  rig.Answer(runs, 200, "{}");
  const std::string told =
      R"({"phase":"Running","running":1,"conditions":[{"type":"Scheduled","status":"True",)"
      R"("reason":"tasks in gang are ready to be scheduled","message":")" +
      note + R"(","transitionID":"115"}]})";
  rig.Event("groups", "MODIFIED", GroupJson("g1", 116, 1, spec, told));
  rig.Pass(Duration::Seconds(2));
  EXPECT_EQ(rig.TakeOf("/podgroups/g").call.value, 0u);
  rig.Event(
      "classes", "ADDED",
      R"({"kind":"PriorityClass","apiVersion":"scheduling.k8s.io/v1","metadata":{"name":"high","uid":"c","resourceVersion":"117"},"value":1000})");
  rig.Pass(Duration::Seconds(2));
  const env::SendRequest mended = rig.TakeOf("/podgroups/g");
  EXPECT_TRUE(Says(mended, R"("message":"","transitionID":"115")")) << BodyOf(mended);
}

// What is listed first says nothing of what is not read yet: of members, and of classes.
TEST(Groups, NothingIsToldBeforeAllIsRead) {
  Rig rig(Placing());
  rig.Tick();
  std::vector<env::SendRequest> later;
  while (!rig.inbox.empty()) {
    const env::SendRequest request = rig.Take();
    const std::string kind = Rig::KindOf(request.request.target);
    if (kind == "pods" || kind == "classes") {
      later.push_back(request);
    } else if (request.stream) {
      rig.Answer(request, 200, "");
    } else {
      rig.Answer(request, 200,
                 ListJson(kind == "groups"
                              ? std::vector{GroupJson("g1", 12, 1, R"(,"priorityClassName":"high")",
                                                      R"({"phase":"Running","running":1})")}
                              : std::vector<std::string>{}));
    }
  }
  rig.Settle();
  rig.Pass(Duration::Seconds(2));
  EXPECT_EQ(rig.TakeOf("/podgroups/g").call.value, 0u);
}

// However many a group asks for, it is told that number, and when nobody could ever have so many.
TEST(Groups, AGangThatCanNeverBeIsToldItsNumbers) {
  Rig rig(Placing());
  rig.Start({}, {NodeJson("n1", 11)});
  rig.Event("groups", "ADDED", GroupJson("g1", 112, 2147483647));
  rig.Event("pods", "ADDED", MemberJson("a", 113));
  const std::string why = rig.Get("/debug/why?podgroup=ns/g");
  EXPECT_NE(why.find("it needs 2147483647 more, and 1 wait; so many pods there can never be: lower "
                     "its spec.minMember."),
            std::string::npos)
      << why;
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

std::string QueueJson(const std::string& name, int version, const std::string& spec = "",
                      const std::string& state = "Open") {
  return fmt::format(
      R"({{"kind":"Queue","apiVersion":"scheduling.volcano.sh/v1beta1","metadata":{{"name":"{0}","uid":"u-{0}",)"
      R"("resourceVersion":"{1}","creationTimestamp":"2026-01-01T00:00:00Z"}},"spec":{{{2}}},"status":{{"state":"{3}"}}}})",
      name, version, spec, state);
}

// A queue that is missing or closed says what to change; groups of others go on, and so do those of
// its own that run.
TEST(Groups, AQueueThatLetsNobodyStartSaysSo) {
  Rig rig(Placing());
  rig.Start({MemberJson("a", 10)}, {NodeJson("n1", 11)});
  rig.Event("groups", "ADDED", GroupJson("g1", 112, 1, R"(,"queue":"q")"));
  const env::SendRequest missing = rig.TakeOf("/podgroups/g");
  EXPECT_TRUE(Says(missing, R"("phase":"Pending")")) << BodyOf(missing);
  EXPECT_TRUE(Says(missing, R"("reason":"QueueNotFound","message":"PodGroup ns/g waits: queue q )"
                            R"(does not exist: create it, or name another in spec.queue.")"))
      << BodyOf(missing);
  rig.Answer(missing, 200, "{}");
  rig.Event("groups", "MODIFIED", GroupJson("g1", 113, 1, R"(,"queue":"q")"));
  const auto said = [](int version) {
    return MemberJson(
        "a", version, "",
        R"(,"conditions":[{"type":"PodScheduled","status":"False","reason":"Unschedulable","message":"before"}])");
  };
  rig.Answer(rig.TakeOf("/pods/a/status"), 200, said(110));
  rig.Event("pods", "MODIFIED", said(110));
  while (rig.TakeOf("/pods/a/status").call.value != 0) {
  }

  rig.Event("queues", "ADDED", QueueJson("q", 114, "", "Closed"));
  rig.Pass(Duration::Seconds(5));
  const env::SendRequest closed = rig.TakeOf("/podgroups/g");
  EXPECT_TRUE(Says(closed, R"("reason":"QueueClosed","message":"PodGroup ns/g waits: queue q is )"
                           R"(closed, or one above it: open it, or name another in spec.queue.")"))
      << BodyOf(closed);
  rig.Pass(Duration::Seconds(60));
  EXPECT_TRUE(Says(rig.TakeOf("/pods/a/status"), "queue q is closed"));
  EXPECT_NE(rig.Get("/debug/why?pod=ns/a").find("queue q is closed"), std::string::npos);
  EXPECT_EQ(rig.TakeBinding().call.value, 0u);

  rig.Event("queues", "MODIFIED", QueueJson("q", 115));
  EXPECT_EQ(TargetOf(rig.TakeOf("/pods/a/binding")), "n1");
  rig.Event("pods", "MODIFIED", MemberJson("a", 116, "n1"));
  rig.Event("queues", "MODIFIED", QueueJson("q", 117, "", "Closed"));
  rig.Pass(Duration::Seconds(5));
  EXPECT_EQ(rig.Held("n1"), 500) << "who runs goes on";
  rig.Event("pods", "ADDED", MemberJson("b", 118));
  EXPECT_EQ(rig.TakeBinding().call.value, 0u) << "nobody else starts";
}

TEST(Groups, WhoUsesTheQuotaThatAGangWaitsForIsTold) {
  Rig rig(Placing());
  rig.Start({}, {NodeJson("n1", 11, 9'000)});
  rig.Event("queues", "ADDED", QueueJson("q", 112, R"("capability":{"cpu":"1"})"));
  std::string other = GroupJson("g2", 113, 1, R"(,"queue":"q")", R"({"phase":"Running"})");
  other.replace(other.find(R"("name":"g")"), 10, R"("name":"h")");
  rig.Event("groups", "ADDED", other);
  rig.Event("pods", "ADDED",
            PodJson({.name = "x",
                     .uid = "u-x",
                     .version = 114,
                     .node = "n1",
                     .extra_meta = R"(,"annotations":{"scheduling.k8s.io/group-name":"h"})",
                     .priority = 3}));
  rig.Event("groups", "ADDED",
            GroupJson("g1", 115, 2, R"(,"queue":"q")", R"({"phase":"Inqueue"})"));
  rig.Event("pods", "ADDED", MemberJson("a", 116));
  rig.Event("pods", "ADDED", MemberJson("b", 117));
  for (const char* who : {"podgroup=ns/g", "pod=ns/a"}) {
    const std::string why = rig.Get(std::string("/debug/why?") + who);
    EXPECT_NE(
        why.find(R"("queueHolders":[{"podgroup":"ns/h","amounts":{"cpu":"500m"},"priority":)"),
        std::string::npos)
        << why;
    EXPECT_NE(why.find(R"("queueHoldersCount":1)"), std::string::npos) << why;
    EXPECT_EQ(why.find("preemption"), std::string::npos) << "no node was asked: " << why;
  }
}

// Each member would fit, and all together never will, whoever left the queue: they keep nothing of
// it from others.
TEST(Groups, WhatCanNeverFitItsQueueIsSaidAtOnce) {
  Rig rig(Placing());
  rig.Start({}, {NodeJson("n1", 11, 2'000)});
  rig.Event("queues", "ADDED", QueueJson("q", 112, R"("capability":{"cpu":"900m"})"));
  const std::string spec = R"(,"queue":"q","minResources":{"cpu":"500m"})";
  rig.Event("groups", "ADDED", GroupJson("g1", 113, 2, spec));
  rig.Answer(rig.TakeOf("/podgroups/g"), 200, "{}");
  // Nor has the node room for it now.
  rig.Event("pods", "ADDED",
            PodJson({.name = "x", .uid = "u-x", .version = 114, .node = "n1", .cpu_milli = 1'900}));
  rig.Event("groups", "MODIFIED", GroupJson("g1", 115, 2, spec, R"({"phase":"Inqueue"})"));
  rig.Event("pods", "ADDED", MemberJson("a", 116));
  rig.Event("pods", "ADDED", MemberJson("b", 118));
  constexpr std::string_view kNever =
      "queue resource quota insufficient: insufficient cpu: PodGroup ns/g needs 100m more than "
      "queue q has left, and more than it could ever have: raise its spec.capability, or ask for "
      "less.";
  rig.Pass(Duration::Seconds(5));
  EXPECT_TRUE(Says(rig.TakeOf("/podgroups/g"), kNever));
  EXPECT_NE(rig.Get("/debug/why?podgroup=ns/g").find(kNever), std::string::npos);
  EXPECT_EQ(rig.Get("/debug/why?podgroup=ns/g").find("preemption"), std::string::npos);
  rig.Pass(Duration::Seconds(60));
  const env::SendRequest told = rig.TakeOf("/pods/b/status");
  EXPECT_TRUE(Says(told, kNever)) << BodyOf(told);
  EXPECT_NE(rig.Get("/debug/why?pod=ns/a").find(kNever), std::string::npos);
  rig.Event("pods", "DELETED",
            PodJson({.name = "x", .uid = "u-x", .version = 119, .node = "n1", .cpu_milli = 1'900}));
  EXPECT_EQ(rig.TakeBinding().call.value, 0u);
  std::string other = GroupJson("g2", 120, 1, spec);
  other.replace(other.find(R"("name":"g")"), 10, R"("name":"h")");
  rig.Event("groups", "ADDED", other);
  rig.Event("pods", "ADDED",
            PodJson({.name = "y",
                     .uid = "u-y",
                     .version = 121,
                     .extra_meta = R"(,"annotations":{"scheduling.k8s.io/group-name":"h"})"}));
  EXPECT_EQ(TargetOf(rig.TakeOf("/pods/y/binding")), "n1");
  rig.Event("queues", "MODIFIED", QueueJson("q", 122, R"("capability":{"cpu":"1500m"})"));
  EXPECT_EQ(TargetOf(rig.TakeBinding()), "n1");
  EXPECT_EQ(TargetOf(rig.TakeBinding()), "n1");
}

// What a group asks to be kept is had by its queue first; and no more than the queue has is placed.
TEST(Groups, AQueueIsNotUsedBeyondItsCapability) {
  Rig rig(Placing());
  rig.Start({MemberJson("a", 10)}, {NodeJson("n1", 11, 4'000)});
  const std::string spec = R"(,"queue":"q","minResources":{"cpu":"1500m"})";
  rig.Event("queues", "ADDED", QueueJson("q", 112, R"("capability":{"cpu":"1"})"));
  rig.Event("groups", "ADDED", GroupJson("g1", 113, 1, spec));
  const env::SendRequest never = rig.TakeOf("/podgroups/g");
  EXPECT_TRUE(Says(never, R"("phase":"Pending")")) << BodyOf(never);
  EXPECT_TRUE(Says(never,
                   R"("reason":"NotEnoughResources","message":"queue resource quota insufficient: )"
                   R"(insufficient cpu: PodGroup ns/g needs 500m more than queue q has left, and )"
                   R"(more than it could ever have: raise its spec.capability, or ask for less.")"))
      << BodyOf(never);
  rig.Answer(never, 200, "{}");
  rig.Event("groups", "MODIFIED",
            GroupJson("g1", 114, 1, R"(,"queue":"q","minResources":{"cpu":"500m"})"));
  EXPECT_EQ(TargetOf(rig.TakeOf("/pods/a/binding")), "n1");
  rig.Event("pods", "MODIFIED", MemberJson("a", 115, "n1"));
  rig.Event("pods", "ADDED", MemberJson("b", 116));
  EXPECT_EQ(TargetOf(rig.TakeOf("/pods/b/binding")), "n1");
  rig.Event("pods", "MODIFIED", MemberJson("b", 117, "n1"));
  while (rig.TakeOf("/pods/b/status").call.value != 0) {
  }
  rig.Event("pods", "ADDED", MemberJson("c", 118));
  EXPECT_TRUE(Says(rig.TakeOf("/pods/c/status"),
                   "queue resource quota insufficient: insufficient cpu: PodGroup ns/g needs 500m "
                   "more than queue q has left."));
  EXPECT_EQ(rig.TakeBinding().call.value, 0u) << "the node has room";
  rig.Event("pods", "DELETED", MemberJson("a", 119, "n1"));
  EXPECT_EQ(TargetOf(rig.TakeOf("/pods/c/binding")), "n1");
}

}  // namespace
}  // namespace berth::control
