// Goal: pods of Volcano's scheduler get a group, the same one for all of a controller's, which says
// what they and their controller ask, and goes when they do; and whatever is late, lost or done by
// others, no live group is lost to the past of its name. Method: plans on objects made by hand, the
// writes printed; then the actor against a small API server in the test, the scheduler and the
// kubelet being the test.
#include "controllers/pod_groups.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "client/fake_api.h"
#include "controllers/controllers.h"
#include "controllers/seen_objects.h"

namespace berth::controllers {
namespace {

using client::FakeApi;
using env::Method;

std::string Lines(const Plan& plan) {
  std::string text;
  for (const Write& write : plan.writes) text += ToString(write) + "\n";
  return text;
}

// ---- Plans -----------------------------------------------------------------------------------

struct PodOptions {
  std::string owner;  // A ReplicaSet's name; its uid is "u-" and its name.
  std::string owner_kind = R"("apiVersion":"apps/v1","kind":"ReplicaSet")";
  std::string scheduler = "volcano";
  std::string annotations;
  std::string labels;
  std::string metadata;
  std::string spec;
  std::string status;
  int age = 0;  // Seconds before the newest.
};

class Situation : public SeenObjects {
 public:
  Situation() : SeenObjects(10) {}
  void SeePod(const std::string& name, const PodOptions& options) {
    std::string metadata = options.metadata;
    metadata += fmt::format(R"(,"creationTimestamp":"2026-01-01T00:01:{:02}Z")", 59 - options.age);
    metadata += fmt::format(R"(,"annotations":{{{}}},"labels":{{{}}})", options.annotations,
                            options.labels);
    if (!options.owner.empty()) {
      metadata +=
          fmt::format(R"(,"ownerReferences":[{{{},"name":"{}","uid":"u-{}","controller":true}}])",
                      options.owner_kind, options.owner, options.owner);
    }
    See(api::KindId::kPod, name, metadata,
        fmt::format(R"(,"spec":{{"schedulerName":"{}"{}}},"status":{{{}}})", options.scheduler,
                    options.spec, options.status));
  }
  void SeeSet(const std::string& name, int replicas, const std::string& annotations = "") {
    See(api::KindId::kReplicaSet, name, fmt::format(R"(,"annotations":{{{}}})", annotations),
        fmt::format(R"(,"spec":{{"replicas":{}}})", replicas));
  }
  // The object that is made for a ReplicaSet "web", or one whose owner is said.
  void SeeGroup(const std::string& spec = R"("minMember":1,"minResources":{"pods":"1"})",
                const std::string& owner = "u-web", const std::string& metadata = "") {
    See(api::KindId::kPodGroup, "podgroup-u-web",
        fmt::format(R"(,"ownerReferences":[{{"apiVersion":"apps/v1","kind":"ReplicaSet",)"
                    R"("name":"web","uid":"{}","controller":true}}]{})",
                    owner, metadata),
        fmt::format(R"(,"spec":{{{}}})", spec));
  }
  // `read`: the version of the group since which its owner was read.
  [[nodiscard]] std::string Says(const std::string& owner = "u-web",
                                 const std::string& read = "") const {
    return Lines(PlanPodGroup(objects, GroupId("d", owner), read));
  }
};

const std::string kAnnotated = R"("scheduling.k8s.io/group-name":"podgroup-u-web")";
const std::string kWebReference =
    R"("ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"web","uid":"u-web","controller":true}])";
const std::string kAnnotate =
    R"( metadata{"annotations":{"scheduling.k8s.io/group-name":"podgroup-u-web"}})"
    "\n";

TEST(PodGroupPlan, PodsOfAControllerGetOneGroupAndNameIt) {
  Situation situation;
  situation.SeeSet("web", 2);
  situation.SeePod("a", {.owner = "web"});
  situation.SeePod("b", {.owner = "web"});
  EXPECT_EQ(
      situation.Says(),
      "create PodGroup d/podgroup-u-web metadata{" + kWebReference + "}" +
          R"( "spec":{"minMember":1,"minResources":{"pods":"1"}},"status":{"phase":"Pending"})" +
          "\npatch Pod d/a u-a@12" + kAnnotate + "patch Pod d/b u-b@13" + kAnnotate);
  // One that comes later names it as well.
  situation.SeeGroup();
  situation.SeePod("a", {.owner = "web", .annotations = kAnnotated});
  situation.SeePod("b", {.owner = "web", .annotations = kAnnotated});
  EXPECT_EQ(situation.Says(), "");
  situation.SeePod("c", {.owner = "web"});
  EXPECT_EQ(situation.Says(), "patch Pod d/c u-c@17" + kAnnotate);
}

TEST(PodGroupPlan, APodWithoutAControllerGetsItsOwn) {
  Situation situation;
  situation.SeePod("a", {});
  EXPECT_EQ(
      situation.Says("u-a"),
      R"(create PodGroup d/podgroup-u-a metadata{"ownerReferences":[{"apiVersion":"v1","kind":"Pod",)"
      R"("name":"a","uid":"u-a","controller":true,"blockOwnerDeletion":true}]})"
      R"( "spec":{"minMember":1,"minResources":{"pods":"1"}},"status":{"phase":"Pending"})"
      "\n"
      R"(patch Pod d/a u-a@11 metadata{"annotations":{"scheduling.k8s.io/group-name":"podgroup-u-a"}})"
      "\n");
}

// Goal: a Job that waits for quota has its group before it has pods, for whether these could start
// decides whether it gets any; and no Job without one. Method: what the template says, and the queue.
TEST(PodGroupPlan, AJobInAQueueHasItsGroupBeforeItsPods) {
  struct Case {
    std::string what;
    std::string labels = R"("kueue.x-k8s.io/queue-name":"q")";
    std::string annotations;  // Of the template.
    std::string scheduler = "volcano";
    std::string spec = R"("suspend":true)";
    std::string status;
    bool made = false;
  };
  for (const Case& c : {
           Case{.what = "suspended", .made = true},
           Case{.what = "runs, and its pods are to come",
                .spec = R"("suspend":false)",
                .made = true},
           Case{.what = "in no queue", .labels = ""},
           Case{.what = "names one", .annotations = R"(,"scheduling.k8s.io/group-name":"g")"},
           Case{.what = "another's pods", .scheduler = "default-scheduler"},
           Case{.what = "over", .status = R"("conditions":[{"type":"Failed","status":"True"}])"},
       }) {
    Situation situation;
    situation.See(
        api::KindId::kJob, "web",
        fmt::format(R"(,"labels":{{{}}},"annotations":{{"scheduling.volcano.sh/group-min-member":)"
                    R"("2"}})",
                    c.labels),
        fmt::format(
            R"(,"spec":{{{},"template":{{"metadata":{{"annotations":{{)"
            R"("scheduling.volcano.sh/queue-name":"team"{}}}}},"spec":{{"schedulerName":"{}",)"
            R"("containers":[{{"name":"c","resources":{{"requests":{{"cpu":"500m"}}}}}}]}}}}}},)"
            R"("status":{{{}}})",
            c.spec, c.annotations, c.scheduler, c.status));
    const std::string made =
        R"(create PodGroup d/podgroup-u-web metadata{"ownerReferences":[{"apiVersion":"batch/v1",)"
        R"("kind":"Job","name":"web","uid":"u-web","controller":true,"blockOwnerDeletion":true}]})"
        R"( "spec":{"minMember":2,"minResources":{"cpu":"1","pods":"2"},"queue":"team"},)"
        R"("status":{"phase":"Pending"})"
        "\n";
    EXPECT_EQ(situation.Says(), c.made ? made : "") << c.what;
  }
}

// Goal: a group that was made ahead goes when its Job wants it no more, and nobody is in it. Method:
// the Job leaves its queue, or names another; read first, as with ReplicaSets.
TEST(PodGroupPlan, AGroupMadeAheadGoesWhenItsJobWantsNone) {
  const auto see_job = [](Situation& s, const std::string& labels, const std::string& annotations,
                          const std::string& spec = R"("suspend":true)") {
    s.See(api::KindId::kJob, "web", fmt::format(R"(,"labels":{{{}}})", labels),
          fmt::format(R"(,"spec":{{{},"template":{{"metadata":{{"annotations":{{{}}}}},)"
                      R"("spec":{{"schedulerName":"volcano"}}}}}})",
                      spec, annotations));
  };
  const std::string queued = R"("kueue.x-k8s.io/queue-name":"q")";
  const std::string named = R"("scheduling.k8s.io/group-name":"g")";
  Situation situation;
  situation.SeeGroup();
  see_job(situation, queued, "");
  EXPECT_EQ(situation.Says(), "");
  see_job(situation, queued, named, R"("suspend":false)");
  EXPECT_EQ(situation.Says(), "") << "it may have pods";
  for (const bool left : {false, true}) {
    see_job(situation, left ? "" : queued, named);
    EXPECT_EQ(situation.Says(), "read Job d/web u-web@11\n");
    EXPECT_EQ(situation.Says("u-web", "11"),
              "delete PodGroup d/podgroup-u-web u-podgroup-u-web@11\n");
  }
  situation.SeePod(
      "a", {.scheduler = "other", .annotations = kAnnotated, .status = R"("phase":"Succeeded")"});
  EXPECT_EQ(situation.Says("u-web", "11"), "") << "it tells what became of that";
}

// Goal: a group goes with the last that is in it, though its owner was deleted and left it behind;
// nobody's else. Method: what --cascade=orphan leaves, and what looks like it.
TEST(PodGroupPlan, OneThatItsOwnerLeftGoesWithTheLastThatIsInIt) {
  const std::string uid = "1b4f07a5-ab3d-4e9c-a9e8-c95fda61b6df";
  const std::string name = "podgroup-" + uid;
  Situation situation;
  situation.See(api::KindId::kPodGroup, name, "", R"(,"spec":{"minMember":1})");
  situation.SeePod("a", {.annotations = R"("scheduling.k8s.io/group-name":")" + name + "\"",
                         .status = R"("phase":"Succeeded")"});
  EXPECT_EQ(situation.Says(uid), "") << "what is told of it is kept as long as its pod";
  situation.SeePod("a", {.annotations = R"("scheduling.k8s.io/group-name":"mine")"});
  EXPECT_EQ(situation.Says(uid), "delete PodGroup d/" + name + " u-" + name + "@11\n");
  // Its owner is there all the same.
  situation.See(api::KindId::kReplicaSet, "web", R"(,"uid":")" + uid + "\"",
                R"(,"spec":{"replicas":0})");
  EXPECT_EQ(situation.Says(uid), "");
  // A user's own, or one of an owner that the collector looks for.
  Situation other;
  other.See(api::KindId::kPodGroup, "podgroup-web", "", R"(,"spec":{"minMember":1})");
  EXPECT_EQ(other.Says("web"), "");
  other.SeeGroup();
  EXPECT_EQ(other.Says(), "");
}

// P23 of docs/REGRESSIONS.md: whose scheduler is another, or who names a group already, gets none.
TEST(PodGroupPlan, OthersGetNone) {
  for (const PodOptions& other : {
           PodOptions{.owner = "web", .scheduler = "default-scheduler"},
           PodOptions{.owner = "web", .scheduler = ""},
           PodOptions{.owner = "web", .scheduler = "default-scheduler", .annotations = kAnnotated},
           PodOptions{.owner = "web", .annotations = R"("scheduling.k8s.io/group-name":"mine")"},
           PodOptions{.owner = "web",
                      .annotations = R"("scheduling.volcano.sh/group-name":"mine")"},
           // Of another controller, but with an annotation that was copied.
           PodOptions{.owner = "other", .annotations = kAnnotated},
           PodOptions{.annotations = kAnnotated},
           // Over, or leaving: nothing more is to be placed.
           PodOptions{.owner = "web", .status = R"("phase":"Failed")"},
           PodOptions{.owner = "web", .metadata = R"(,"deletionTimestamp":"2026-01-01T00:00:00Z")"},
       }) {
    Situation situation;
    situation.SeeSet("web", 1);
    situation.SeePod("a", other);
    EXPECT_EQ(situation.Says(), "") << other.annotations << other.scheduler << other.metadata;
    EXPECT_EQ(situation.Says("u-a"), "");
  }
}

TEST(PodGroupPlan, TheGroupSaysWhatPodAndOwnerAsk) {
  const std::string requests =
      R"(,"priorityClassName":"high","containers":[{"name":"c","resources":{"requests":)"
      R"({"cpu":"250m","memory":"200Ki","nvidia.com/gpu":"2"}}}],)"
      R"("initContainers":[{"name":"i","resources":{"requests":{"cpu":"1500m"}}}])";
  Situation situation;
  situation.SeeSet("web", 4,
                   R"("scheduling.volcano.sh/group-min-member":"3","volcano.sh/a":"1",)"
                   R"("volcano.sh/preemptable":"false","else":"x")");
  situation.SeePod(
      "a",
      {.owner = "web",
       .annotations = R"("scheduling.volcano.sh/queue-name":"q","volcano.sh/preemptable":"true",)"
                      R"("volcano.sh/other":"x","volcano.sh/network-topology-mode":"soft",)"
                      R"("volcano.sh/network-topology-highest-tier":"2")",
       .labels = R"("volcano.sh/cooldown-time":"60s","volcano.sh/revocable-zone":"*")",
       .spec = requests});
  const std::string says = situation.Says();
  EXPECT_EQ(
      says.substr(0, says.find('\n')),
      "create PodGroup d/podgroup-u-web metadata{" + kWebReference +
          R"(,"annotations":{"volcano.sh/a":"1","volcano.sh/preemptable":"true"},)"
          R"("labels":{"volcano.sh/cooldown-time":"60s"}} )"
          R"("spec":{"minMember":3,"minResources":{"cpu":"4500m","memory":"600Ki",)"
          R"("nvidia.com/gpu":"6","pods":"3"},"queue":"q","priorityClassName":"high",)"
          R"("networkTopology":{"mode":"soft","highestTierAllowed":2}},"status":{"phase":"Pending"})");
}

TEST(PodGroupPlan, ACountIsANumberThatIsNotNegative) {
  struct Row {
    std::string annotation;
    int count;
    bool complained;
  };
  for (const Row& row : {Row{"0", 0, false}, Row{"7", 7, false}, Row{"-1", 1, true},
                         Row{"2.0", 1, true}, Row{"", 1, true}, Row{"99999999999", 1, true}}) {
    Situation situation;
    situation.SeeSet("web", 9,
                     R"("scheduling.volcano.sh/group-min-member":")" + row.annotation + "\"");
    situation.SeePod("a", {.owner = "web"});
    const Plan plan = PlanPodGroup(situation.objects, GroupId("d", "u-web"), "");
    EXPECT_NE(Lines(plan).find(fmt::format(R"("minMember":{},)", row.count)), std::string::npos)
        << row.annotation << Lines(plan);
    EXPECT_EQ(!plan.writes.at(0).told.empty(), row.complained) << row.annotation;
    for (const Told& told : plan.writes.at(0).told) EXPECT_EQ(told.about, "u-web");
  }
}

// P22: what the owner or its youngest pod asks now stands in the group; what nobody asks for stays
// as somebody else wrote it.
TEST(PodGroupPlan, TheGroupFollowsItsOwnerAndItsYoungestPod) {
  const auto cpu = [](const std::string& amount) {
    return R"(,"containers":[{"name":"c","resources":{"requests":{"cpu":")" + amount + R"("}}}])";
  };
  Situation situation;
  situation.SeeSet("web", 2, R"("scheduling.volcano.sh/group-min-member":"2")");
  situation.SeePod("old", {.owner = "web", .annotations = kAnnotated, .spec = cpu("1"), .age = 9});
  situation.SeePod("new", {.owner = "web", .annotations = kAnnotated, .spec = cpu("2")});
  situation.SeeGroup(
      R"("minMember":1,"queue":"theirs","minResources":{"cpu":4,"pods":"1","gone":"1"})");
  EXPECT_EQ(
      situation.Says(),
      R"(patch PodGroup d/podgroup-u-web u-podgroup-u-web@14 "spec":{"minMember":2,"minResources":{"pods":"2","gone":null}})"
      "\n");
  // 4000m are 4.
  situation.SeeGroup(
      R"("minMember":2,"queue":"theirs","priorityClassName":"theirs","minResources":{"cpu":"4000m","pods":2})");
  EXPECT_EQ(situation.Says(), "");
  // With its uid, but made by somebody else: left alone.
  situation.SeeGroup(R"("minMember":1)", "u-other");
  EXPECT_EQ(situation.Says(), "");
}

TEST(PodGroupPlan, AmountsThatManyPodsRequestAreHeldInBounds) {
  Situation situation;
  situation.SeeSet("web", 2, R"("scheduling.volcano.sh/group-min-member":"2000000000")");
  situation.SeePod(
      "a", {.owner = "web",
            .spec = R"(,"containers":[{"name":"c","resources":{"requests":{"memory":"64Pi"}}}])"});
  EXPECT_NE(situation.Says().find(R"("memory":"128Pi")"), std::string::npos) << situation.Says();
}

// How many are placed together is their controller's to say: until it is seen a group of one would
// let the first of them start alone.
TEST(PodGroupPlan, PodsThatComeBeforeTheirControllerWaitForIt) {
  Situation situation;
  situation.SeePod("a", {.owner = "web"});
  EXPECT_EQ(situation.Says(), "");
  situation.SeeSet("web", 2, R"("scheduling.volcano.sh/group-min-member":"2")");
  EXPECT_NE(situation.Says().find(R"("minMember":2)"), std::string::npos);
  // Of a kind that is not served there will never be one.
  Situation foreign;
  foreign.SeePod("a", {.owner = "web", .owner_kind = R"("apiVersion":"x/v1","kind":"Tree")"});
  EXPECT_NE(foreign.Says().find(R"("minMember":1)"), std::string::npos);
}

// P05: a pod that names its group is enough to have it made again.
TEST(PodGroupPlan, AGroupThatIsMissedIsMadeAgain) {
  Situation situation;
  situation.SeeSet("web", 1);
  situation.SeePod("a", {.owner = "web", .annotations = kAnnotated});
  EXPECT_TRUE(situation.Says().starts_with("create PodGroup d/podgroup-u-web "))
      << situation.Says();
}

// P01, P04, P07: it goes with its last member when nothing more is to come, as its owner says that
// was read after it was seen.
TEST(PodGroupPlan, AGroupGoesWhenNobodyIsInItAndNobodyIsToCome) {
  struct Row {
    std::string what;
    void (*see)(Situation&);
    bool gone;
  };
  for (const Row& row : {
           Row{"no replicas", [](Situation& s) { s.SeeSet("web", 0); }, true},
           Row{"a replica to come", [](Situation& s) { s.SeeSet("web", 1); }, false},
           Row{"owner not seen", [](Situation&) {}, false},
           Row{"a pod runs",
               [](Situation& s) {
                 s.SeeSet("web", 0);
                 s.SeePod("a", {.owner = "web", .annotations = kAnnotated});
               },
               false},
           Row{"a pod does not name it yet",
               [](Situation& s) {
                 s.SeeSet("web", 0);
                 s.SeePod("a", {.owner = "web",
                                .metadata = R"(,"deletionTimestamp":"2026-01-01T00:00:00Z")"});
               },
               false},
           Row{"a pod is leaving",
               [](Situation& s) {
                 s.SeeSet("web", 0);
                 s.SeePod("a", {.owner = "web",
                                .annotations = kAnnotated,
                                .metadata = R"(,"deletionTimestamp":"2026-01-01T00:00:00Z")"});
               },
               false},
           Row{"a pod was released",
               [](Situation& s) {
                 s.SeeSet("web", 0);
                 s.SeePod("a", {.annotations = kAnnotated});
               },
               false},
           Row{"a pod is over",
               [](Situation& s) {
                 s.SeeSet("web", 0);
                 s.SeePod(
                     "a",
                     {.owner = "web", .annotations = kAnnotated, .status = R"("phase":"Failed")"});
               },
               true},
           Row{"made by somebody else",
               [](Situation& s) {
                 s.SeeSet("web", 0);
                 s.SeeGroup("", "u-other");
               },
               false},
           Row{"going already",
               [](Situation& s) {
                 s.SeeSet("web", 0);
                 s.SeeGroup("", "u-web", R"(,"deletionTimestamp":"2026-01-01T00:00:00Z")");
               },
               false},
       }) {
    Situation situation;
    situation.SeeGroup();
    row.see(situation);
    const std::string read = row.gone ? "read ReplicaSet d/web u-web@11\n" : "";
    EXPECT_EQ(situation.Says(), read) << row.what;
    // Of an older version than the one that is seen now.
    EXPECT_EQ(situation.Says("u-web", "10"), read) << row.what;
    EXPECT_EQ(situation.Says("u-web", "11"),
              row.gone ? "delete PodGroup d/podgroup-u-web u-podgroup-u-web@11\n" : "")
        << row.what;
  }
}

// ---- The actor -------------------------------------------------------------------------------

const std::string kPods = "/api/v1/namespaces/d/pods";
const std::string kSets = "/apis/apps/v1/namespaces/d/replicasets";
const std::string kGroups = "/apis/scheduling.volcano.sh/v1beta1/namespaces/d/podgroups";

class PodGroups : public ::testing::Test {
 protected:
  PodGroups() {
    Make("/api/v1/namespaces", R"({"metadata":{"name":"d"},"spec":{"finalizers":["kubernetes"]}})");
    Settle();
  }
  void Make(const std::string& collection, const std::string& body) {
    const auto response = api_.Do(Method::kPost, collection, body);
    EXPECT_EQ(response.status, 201) << response.body.view();
  }
  void MakeSet(int replicas, const std::string& annotations = "") {
    Make(kSets,
         fmt::format(R"({{"metadata":{{"name":"web","annotations":{{{}}}}},)"
                     R"("spec":{{"replicas":{},"selector":{{"matchLabels":{{"app":"web"}}}},)"
                     R"("template":{{"metadata":{{"labels":{{"app":"web"}}}},)"
                     R"("spec":{{"schedulerName":"volcano"}}}}}}}})",
                     annotations, replicas));
  }
  void Patch(const std::string& path, const std::string& body) {
    const auto response = api_.Do(Method::kPatch, path, body);
    EXPECT_EQ(response.status, 200) << response.body.view();
  }
  void Scale(int replicas) {
    Patch(kSets + "/web", fmt::format(R"({{"spec":{{"replicas":{}}}}})", replicas));
  }
  void Settle() { api_.Settle(controllers_); }
  void Pass(int64_t seconds) { api_.Pass(controllers_, Duration::Seconds(seconds)); }
  std::string Text(const std::string& path, const std::string& pointer) {
    return api_.Text(path, pointer);
  }
  std::vector<std::string> Paths(const std::string& part) { return api_.Paths(part); }
  std::string GroupPath() { return kGroups + "/podgroup-" + Text(kSets + "/web", "/metadata/uid"); }
  std::string GroupUid() { return Text(GroupPath(), "/metadata/uid"); }
  // Every pod names the group, which is there.
  void ExpectOneGroup() {
    ASSERT_EQ(Paths("/podgroups/"), std::vector<std::string>{GroupPath()});
    for (const std::string& pod : Paths("/pods/")) {
      EXPECT_EQ(kGroups + "/" + Text(pod, "/metadata/annotations/scheduling.k8s.io~1group-name"),
                GroupPath());
    }
  }
  int64_t Writes(const std::string& part) {
    return std::ranges::count_if(
        api_.log, [&](const std::string& line) { return line.find(part) != std::string::npos; });
  }
  void ExpectAtRest() {
    const size_t before = api_.log.size();
    Pass(30);
    EXPECT_EQ(api_.log.size(), before) << api_.log.back();
  }

  FakeApi api_;
  Controllers controllers_{Options{}};
};

TEST_F(PodGroups, OneGroupLivesAsLongAsItsReplicaSetWantsPods) {
  MakeSet(3, R"("scheduling.volcano.sh/group-min-member":"2")");
  Pass(1);
  EXPECT_EQ(Paths("/pods/").size(), 3u);
  ExpectOneGroup();
  EXPECT_EQ(Text(GroupPath(), "/spec/minMember"), "2");
  ExpectAtRest();
  Scale(5);
  Pass(1);
  EXPECT_EQ(Paths("/pods/").size(), 5u);
  ExpectOneGroup();
  EXPECT_EQ(Writes("POST " + kGroups), 1);
  Patch(kSets + "/web",
        R"({"metadata":{"annotations":{"scheduling.volcano.sh/group-min-member":"4"}}})");
  Pass(1);
  EXPECT_EQ(Text(GroupPath(), "/spec/minMember"), "4");
  Scale(0);
  Pass(1);
  EXPECT_EQ(Paths("/podgroups/").size(), 0u);
  ExpectAtRest();
}

// The collector ends the group of an owner that is gone (P27).
TEST_F(PodGroups, AGroupGoesWithItsOwner) {
  MakeSet(1);
  Pass(1);
  ExpectOneGroup();
  api_.Do(Method::kDelete, kSets + "/web");
  Pass(5);
  EXPECT_EQ(Paths("/podgroups/").size(), 0u);
  Make(kPods, R"({"metadata":{"name":"alone"},"spec":{"schedulerName":"volcano"}})");
  Pass(1);
  EXPECT_EQ(Paths("/podgroups/").size(), 1u);
  api_.Do(Method::kDelete, kPods + "/alone");
  Pass(5);
  EXPECT_EQ(Paths("/podgroups/").size(), 0u);
  ExpectAtRest();
}

// P01, P04: off and on, however late the watches tell of either: the pod that is there has its
// group.
TEST_F(PodGroups, ASetToggledOffAndOnHasItsGroup) {
  MakeSet(1);
  Pass(1);
  for (int i = 0; i < 8; ++i) {
    if (i % 4 > 1) api_.HoldWatches(true);
    Scale(0);
    if (i % 2 == 0) Pass(1);
    Scale(1);
    api_.HoldWatches(false);
    Pass(2);
    EXPECT_EQ(Paths("/pods/").size(), 1u) << i;
    ExpectOneGroup();
  }
  ExpectAtRest();
}

// P01: a deletion that was decided on arrives when a group of the same name is another one, whose
// pods are to come.
TEST_F(PodGroups, ADeletionThatComesLateTouchesNoOtherOfItsName) {
  MakeSet(1);
  Pass(1);
  const std::string group = GroupPath();
  const std::string first = GroupUid();
  std::string second;
  api_.fault = [&](const env::HttpRequest& request) {
    if (request.method != Method::kDelete || request.target != group || !second.empty())
      return FakeApi::Fault::kNone;
    second = "none";
    api_.HoldWatches(true);
    EXPECT_EQ(api_.Do(Method::kDelete, group).status, 200);
    Make(kGroups,
         fmt::format(R"({{"metadata":{{"name":"{}","ownerReferences":[{{"apiVersion":"apps/v1",)"
                     R"("kind":"ReplicaSet","name":"web","uid":"{}","controller":true}}]}},)"
                     R"("spec":{{"minMember":1,"minResources":{{"pods":"1"}}}}}})",
                     group.substr(group.rfind('/') + 1), Text(kSets + "/web", "/metadata/uid")));
    second = GroupUid();
    Scale(1);
    return FakeApi::Fault::kNone;
  };
  Scale(0);
  Pass(5);
  EXPECT_NE(second, first);
  EXPECT_EQ(GroupUid(), second);
  api_.HoldWatches(false);
  Pass(5);
  EXPECT_EQ(GroupUid(), second);
  ExpectOneGroup();
  ExpectAtRest();
}

// P04: the watch has told of no replicas, and of the group that is there now, but not of the
// replica that is wanted again.
TEST_F(PodGroups, AnOwnerThatIsSeenLateCostsNoGroup) {
  MakeSet(1);
  Pass(1);
  const std::string uid = GroupUid();
  // The pod takes its time to go.
  const std::string pod = Paths("/pods/").at(0);
  Patch(pod, R"({"metadata":{"finalizers":["x/y"]}})");
  Scale(0);
  Pass(1);
  EXPECT_EQ(GroupUid(), uid);
  api_.HoldWatches(true, "replicasets");
  Scale(1);
  Patch(pod, R"({"metadata":{"finalizers":null}})");
  EXPECT_EQ(Paths("/pods/").size(), 0u);
  Pass(1);
  EXPECT_EQ(GroupUid(), uid);
  api_.HoldWatches(false);
  Pass(1);
  ExpectOneGroup();
  EXPECT_EQ(GroupUid(), uid);
  ExpectAtRest();
}

// P05: whoever takes a group away from under its pods, they get it again.
TEST_F(PodGroups, AGroupThatSomebodyTookAwayComesBack) {
  MakeSet(2);
  Pass(1);
  for (int i = 0; i < 3; ++i) {
    const std::string before = GroupUid();
    if (i == 1) api_.HoldWatches(true);
    EXPECT_EQ(api_.Do(Method::kDelete, GroupPath()).status, 200);
    if (i == 2) Scale(3);
    api_.HoldWatches(false);
    Pass(1);
    ExpectOneGroup();
    EXPECT_NE(GroupUid(), before);
  }
  ExpectAtRest();
}

// P22: whoever changes what follows from owner and pods, the group says it again, and so it does when
// these change.
TEST_F(PodGroups, AGroupFollowsWhatItIsMadeOf) {
  MakeSet(1, R"("volcano.sh/x":"y")");
  Pass(1);
  const std::string pod = Paths("/pods/").at(0);
  Patch(pod, R"({"metadata":{"annotations":{"scheduling.volcano.sh/queue-name":"q"},)"
             R"("labels":{"volcano.sh/preemptable":"true"}},"spec":{"priorityClassName":"high"}})");
  Pass(1);
  const auto says = [&] {
    return Text(GroupPath(), "/spec") + Text(GroupPath(), "/metadata/labels") +
           Text(GroupPath(), "/metadata/annotations");
  };
  const std::string before = says();
  EXPECT_EQ(before,
            R"({"minMember":1,"minResources":{"pods":"1"},"queue":"q","priorityClassName":"high"})"
            R"({"volcano.sh/preemptable":"true"}{"volcano.sh/x":"y"})");
  for (const std::string change :
       {R"({"spec":{"minMember":5}})", R"({"spec":{"minResources":{"cpu":1}}})",
        R"({"spec":{"queue":"other"}})", R"({"spec":{"priorityClassName":"other"}})",
        R"({"metadata":{"labels":{"volcano.sh/preemptable":"no"}}})",
        R"({"metadata":{"annotations":{"volcano.sh/x":"no"}}})"}) {
    Patch(GroupPath(), change);
    EXPECT_NE(says(), before);
    Pass(1);
    EXPECT_EQ(says(), before) << change;
  }
  Patch(pod, R"({"metadata":{"annotations":{"scheduling.volcano.sh/queue-name":"p"}}})");
  Pass(1);
  EXPECT_EQ(Text(GroupPath(), "/spec/queue"), "p");
  ExpectAtRest();
}

TEST_F(PodGroups, AGroupOfAJobFollowsIt) {
  const std::string jobs = "/apis/batch/v1/namespaces/d/jobs";
  Make(jobs,
       R"({"metadata":{"name":"j","annotations":{"scheduling.volcano.sh/group-min-member":"2"}},
    "spec":{"parallelism":3,"completions":3,"selector":{"matchLabels":{"a":"b"}},"template":{
    "metadata":{"labels":{"a":"b"}},"spec":{"schedulerName":"volcano","restartPolicy":"Never"}}}})");
  Pass(1);
  const std::string group = kGroups + "/podgroup-" + Text(jobs + "/j", "/metadata/uid");
  EXPECT_EQ(Paths("/pods/").size(), 3u);
  EXPECT_EQ(Text(group, "/spec/minMember"), "2");
  Patch(jobs + "/j",
        R"({"metadata":{"annotations":{"scheduling.volcano.sh/group-min-member":"3"}}})");
  Pass(1);
  EXPECT_EQ(Text(group, "/spec/minMember"), "3");
  ExpectAtRest();
}

TEST_F(PodGroups, AGroupMadeAheadOfPodsFollowsItsJob) {
  const std::string jobs = "/apis/batch/v1/namespaces/d/jobs";
  const std::string queue = R"("kueue.x-k8s.io/queue-name":)";
  Make(jobs, R"({"metadata":{"name":"j","labels":{)" + queue + R"("q"}},
    "spec":{"suspend":true,"selector":{"matchLabels":{"a":"b"}},"template":{
    "metadata":{"labels":{"a":"b"}},"spec":{"schedulerName":"volcano","restartPolicy":"Never"}}}})");
  Pass(1);
  const std::string group = kGroups + "/podgroup-" + Text(jobs + "/j", "/metadata/uid");
  EXPECT_EQ(Text(group, "/spec/minMember"), "1");
  EXPECT_EQ(Paths("/pods/").size(), 0u);
  const auto annotate = [&](const std::string& with) {
    Patch(jobs + "/j", R"({"spec":{"template":{"metadata":{"annotations":{)" + with + R"(}}}}})");
    Pass(1);
  };
  annotate(R"("scheduling.volcano.sh/queue-name":"team")");
  EXPECT_EQ(Text(group, "/spec/queue"), "team");
  annotate(R"("scheduling.k8s.io/group-name":"g")");
  EXPECT_EQ(Paths("/podgroups/").size(), 0u);
  annotate(R"("scheduling.k8s.io/group-name":null)");
  EXPECT_EQ(Text(group, "/spec/queue"), "team");
  Patch(jobs + "/j", R"({"metadata":{"labels":{)" + queue + "null}}}");
  Pass(1);
  EXPECT_EQ(Paths("/podgroups/").size(), 0u);
  ExpectAtRest();
}

// Whatever comes last: the owner that wants none, the end of a member, its going over to another
// group.
TEST_F(PodGroups, AGroupThatNobodyIsInGoesWhateverCameLast) {
  const auto stay = [&] {
    MakeSet(1);
    Pass(1);
    ExpectOneGroup();
    Patch(Paths("/pods/").at(0), R"({"metadata":{"finalizers":["x/y"]}})");
    Scale(0);
    Pass(1);
    EXPECT_EQ(Paths("/podgroups/").size(), 1u);
  };
  const auto gone = [&] {
    Pass(1);
    EXPECT_EQ(Paths("/podgroups/").size(), 0u);
    api_.Do(Method::kDelete, kSets + "/web");
    for (const std::string& pod : Paths("/pods/"))
      Patch(pod, R"({"metadata":{"finalizers":null}})");
    Pass(5);
    ExpectAtRest();
  };
  stay();
  Patch(Paths("/pods/").at(0) + "/status", R"({"status":{"phase":"Failed"}})");
  gone();
  stay();
  Patch(Paths("/pods/").at(0),
        R"({"metadata":{"annotations":{"scheduling.k8s.io/group-name":"podgroup-"}}})");
  gone();
  stay();
  // As many are wanted as can't be made.
  api_.fault = [&](const env::HttpRequest& request) {
    const bool pod = request.method == Method::kPost && request.target == kPods;
    return pod ? FakeApi::Fault::kRefuse : FakeApi::Fault::kNone;
  };
  Scale(1);
  Patch(Paths("/pods/").at(0), R"({"metadata":{"finalizers":null}})");
  Pass(10);
  EXPECT_EQ(Paths("/pods/").size(), 0u);
  EXPECT_EQ(Paths("/podgroups/").size(), 1u);
  Scale(0);
  gone();
}

// The watch tells of pods before it tells of their controller.
TEST_F(PodGroups, PodsThatComeFirstGetTheirGroupWithTheirController) {
  api_.HoldWatches(true, "replicasets");
  MakeSet(1, R"("scheduling.volcano.sh/group-min-member":"0")");
  Make(
      kPods,
      fmt::format(
          R"({{"metadata":{{"name":"a","labels":{{"app":"web"}},"ownerReferences":[{{)"
          R"("apiVersion":"apps/v1","kind":"ReplicaSet","name":"web","uid":"{}","controller":true}}]}},)"
          R"("spec":{{"schedulerName":"volcano"}}}})",
          Text(kSets + "/web", "/metadata/uid")));
  // The collector misses the owner, and reads it.
  Pass(1);
  EXPECT_EQ(Paths("/pods/").size(), 1u);
  ExpectOneGroup();
  EXPECT_EQ(Text(GroupPath(), "/spec/minMember"), "0");
}

// A pod that names it is adopted.
TEST_F(PodGroups, AnAdoptedPodGetsTheGroupThatItNames) {
  MakeSet(0);
  Pass(1);
  Make(kPods, fmt::format(R"({{"metadata":{{"name":"a","annotations":{{)"
                          R"("scheduling.k8s.io/group-name":"podgroup-{}"}}}},)"
                          R"("spec":{{"schedulerName":"volcano"}}}})",
                          Text(kSets + "/web", "/metadata/uid")));
  Pass(1);
  EXPECT_EQ(Paths("/podgroups/").size(), 0u);
  Scale(1);
  // Before it makes one of its own: at the same instant.
  Patch(kPods + "/a", R"({"metadata":{"labels":{"app":"web"}}})");
  Pass(1);
  EXPECT_EQ(Text(kPods + "/a", "/metadata/ownerReferences/0/name"), "web");
  ExpectOneGroup();
}

// What waits to be sent is judged anew when the owner changes.
TEST_F(PodGroups, ADeletionThatIsNotSentYetIsDroppedWhenItsReasonGoes) {
  MakeSet(1);
  Pass(1);
  const std::string uid = GroupUid();
  const std::string group = GroupPath();
  api_.fault = [&](const env::HttpRequest& request) {
    const bool its = request.method == Method::kDelete && request.target == group;
    return its ? FakeApi::Fault::kThrottle : FakeApi::Fault::kNone;
  };
  Scale(0);
  Pass(1);
  EXPECT_EQ(Paths("/pods/").size(), 0u);
  Scale(1);
  Pass(1);
  api_.fault = nullptr;
  Pass(40);
  EXPECT_EQ(GroupUid(), uid);
  EXPECT_EQ(Writes("DELETE " + group), 0);
  ExpectOneGroup();
}

// P06: an owner that is made again under its name is another, and so is its group.
TEST_F(PodGroups, AnOwnerMadeAgainUnderItsNameHasAGroupOfItsOwn) {
  MakeSet(1);
  Pass(1);
  const std::string first = GroupPath();
  api_.HoldWatches(true);
  api_.Do(Method::kDelete, kSets + "/web");
  MakeSet(1, R"("scheduling.volcano.sh/group-min-member":"0")");
  api_.HoldWatches(false);
  Pass(5);
  EXPECT_NE(GroupPath(), first);
  ExpectOneGroup();
  EXPECT_EQ(Text(GroupPath(), "/metadata/ownerReferences/0/uid"),
            Text(kSets + "/web", "/metadata/uid"));
  EXPECT_EQ(Text(GroupPath(), "/spec/minMember"), "0");
  ExpectAtRest();
}

// Lost answers, lost requests and restarts: one group, and every pod names it.
TEST_F(PodGroups, LostWritesAndRestartsMakeOneGroup) {
  for (const auto fault : {FakeApi::Fault::kLoseAnswer, FakeApi::Fault::kLoseRequest}) {
    int count = 0;
    api_.fault = [&](const env::HttpRequest&) {
      return ++count % 3 == 0 ? fault : FakeApi::Fault::kNone;
    };
    MakeSet(4);
    for (int i = 0; i < 20; ++i) {
      api_.HoldWatches(i % 2 == 0);
      Pass(2);
    }
    api_.fault = nullptr;
    Pass(90);
    EXPECT_EQ(Paths("/pods/").size(), 4u);
    ExpectOneGroup();
    controllers_ = Controllers(Options{});
    Pass(1);
    ExpectOneGroup();
    ExpectAtRest();
    api_.Do(Method::kDelete, kSets + "/web");
    Pass(90);
    EXPECT_EQ(Paths("/podgroups/").size(), 0u);
  }
}

// Who annotates a pod at the same time is not written over.
TEST_F(PodGroups, APodThatNamesAnotherGroupMeanwhileKeepsIt) {
  const std::string theirs =
      R"({"metadata":{"annotations":{"scheduling.k8s.io/group-name":"theirs"}}})";
  Make(kPods, R"({"metadata":{"name":"alone"},"spec":{"schedulerName":"volcano"}})");
  bool done = false;
  api_.fault = [&](const env::HttpRequest& request) {
    if (request.method == Method::kPatch && request.target == kPods + "/alone" && !done) {
      done = true;
      Patch(kPods + "/alone", theirs);
    }
    return FakeApi::Fault::kNone;
  };
  Pass(5);
  EXPECT_TRUE(done);
  EXPECT_EQ(Text(kPods + "/alone", "/metadata/annotations/scheduling.k8s.io~1group-name"),
            "theirs");
}

// The counts of a queue's status follow its groups, and one that is closed is so once they are gone.
TEST_F(PodGroups, AQueueSaysWhatIsInItAndWhetherItIsClosed) {
  const std::string queue = "/apis/scheduling.volcano.sh/v1beta1/queues/default";
  Make(queue.substr(0, queue.rfind('/')), R"({"metadata":{"name":"default"},"spec":{}})");
  Pass(2);
  EXPECT_EQ(Text(queue, "/status/state"), "Open");
  MakeSet(2);
  Pass(2);
  EXPECT_EQ(Text(queue, "/status/pending"), "1");
  Patch(GroupPath() + "/status", R"({"status":{"phase":"Running"}})");
  Pass(2);
  EXPECT_EQ(Text(queue, "/status/pending") + Text(queue, "/status/running"), "01");
  Patch(queue + "/status", R"({"status":{"state":"Closed"}})");
  Pass(2);
  EXPECT_EQ(Text(queue, "/status/state"), "Closing");
  Scale(0);
  Pass(40);
  EXPECT_EQ(Text(queue, "/status/state"), "Closed");
  EXPECT_EQ(Text(queue, "/status/running"), "0");
  ExpectAtRest();
}

// What a group's owner says wrongly is told of where its user looks.
// A Queue that is missing or closed takes no group: the server refuses it, and the user is told
// where the pods come from. When the Queue changes it is tried again at once.
TEST_F(PodGroups, OneThatIsRefusedIsToldOfAtTheOwnerAndFollowsTheQueues) {
  bool open = false;
  api_.fault = [&](const env::HttpRequest& request) {
    const bool group = request.method == Method::kPost && request.target == kGroups;
    return group && !open ? FakeApi::Fault::kRefuse : FakeApi::Fault::kNone;
  };
  MakeSet(1);
  Pass(600);
  EXPECT_EQ(Paths("/podgroups/").size(), 0u);
  std::set<std::string> told;
  for (const std::string& event : Paths("/events/")) {
    if (Text(event, "/reason") != "FailedCreate") continue;
    EXPECT_EQ(Text(event, "/involvedObject/name"), "web");
    EXPECT_EQ(Text(event, "/source/component"), "podgroup-controller");
    told.insert(Text(event, "/message").substr(0, 33));
  }
  EXPECT_EQ(told, std::set<std::string>{"Error creating PodGroup podgroup-"});
  open = true;
  Make("/apis/scheduling.volcano.sh/v1beta1/queues", R"({"metadata":{"name":"q"}})");
  Pass(2);
  ExpectOneGroup();
}

TEST_F(PodGroups, ACountThatIsNoneIsToldOfAtTheOwner) {
  MakeSet(1, R"("scheduling.volcano.sh/group-min-member":"two")");
  Pass(5);
  int64_t told = 0;
  for (const std::string& event : Paths("/events/")) {
    if (Text(event, "/reason") != "InvalidGroupMinMember") continue;
    ++told;
    EXPECT_EQ(Text(event, "/involvedObject/name"), "web");
    EXPECT_EQ(Text(event, "/source/component"), "podgroup-controller");
    EXPECT_EQ(
        Text(event, "/message"),
        R"(scheduling.volcano.sh/group-min-member is "two", no count: its pods are placed one by one)");
  }
  EXPECT_EQ(told, 1);
}

}  // namespace
}  // namespace berth::controllers
