// Goal: the status of a Queue of Volcano's says how many PodGroups of each phase are in it and
// whether it is open, and is written when that is another. Method: plans on objects made by hand;
// then the actor against a small API server in the test.
#include "controllers/group_queues.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

#include "client/fake_api.h"
#include "controllers/controllers.h"
#include "controllers/seen_objects.h"

namespace berth::controllers {
namespace {

class GroupQueues : public ::testing::Test, protected SeenObjects {
 protected:
  GroupQueues() : SeenObjects(10) {}
  void SeeQueue(const std::string& status) {
    See(api::KindId::kQueue, "q", "", fmt::format(R"(,"spec":{{}},"status":{{{}}})", status));
  }
  void SeeGroup(const std::string& name, const std::string& phase, const std::string& queue = "q") {
    See(api::KindId::kPodGroup, name, "",
        fmt::format(R"(,"spec":{{"minMember":1,"queue":"{}"}},"status":{{"phase":"{}"}})", queue,
                    phase));
  }
  // The status that is written; empty: none.
  std::string Writes() {
    const Plan plan = PlanGroupQueue(objects, objects.Find("u-q"));
    if (plan.writes.empty()) return "";
    EXPECT_EQ(plan.writes.front().verb, Verb::kPatchStatus);
    EXPECT_FALSE(plan.writes.front().resource_version.empty());
    return plan.writes.front().body;
  }
};

std::string Status(std::string_view state, int pending, int inqueue, int running) {
  return fmt::format(
      R"("state":"{}","pending":{},"inqueue":{},"running":{},"unknown":0,"completed":0)", state,
      pending, inqueue, running);
}
std::string Body(const std::string& status) { return R"("status":{)" + status + "}"; }

TEST_F(GroupQueues, SayWhoIsInThemByPhase) {
  SeeQueue("");
  EXPECT_EQ(Writes(), Body(Status("Open", 0, 0, 0)));
  SeeGroup("a", "");
  SeeGroup("b", "Inqueue");
  SeeGroup("c", "Running");
  SeeGroup("d", "Running", "other");
  EXPECT_EQ(Writes(), Body(Status("Open", 1, 1, 1)));
  SeeGroup("a", "Running");
  SeeGroup("b", "Inqueue", "other");
  EXPECT_EQ(Writes(), Body(Status("Open", 0, 0, 2)));
  objects.Remove("u-c");
  EXPECT_EQ(Writes(), Body(Status("Open", 0, 0, 1)));
  SeeQueue(Status("Open", 0, 0, 1));
  EXPECT_EQ(Writes(), "");
}

// reference: a closed queue is Closing while there are groups, and Closed once they are gone; a
// queue that is opened is open whatever is in it.
TEST_F(GroupQueues, AClosedQueueIsClosingUntilItsGroupsAreGone) {
  SeeGroup("a", "Running");
  SeeQueue(Status("Closed", 0, 0, 1));
  EXPECT_EQ(Writes(), Body(Status("Closing", 0, 0, 1)));
  SeeQueue(Status("Closing", 0, 0, 1));
  EXPECT_EQ(Writes(), "");
  objects.Remove("u-a");
  EXPECT_EQ(Writes(), Body(Status("Closed", 0, 0, 0)));
  EXPECT_EQ(QueueStateOf("Open", true), "Open");
  EXPECT_EQ(QueueStateOf("Unknown", false), "Unknown");
}

}  // namespace
}  // namespace berth::controllers
