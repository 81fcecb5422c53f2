// Goal: what the server refuses of a Job's start, its stop, its pods, and of its Workload's status
// is told where users look, and done once it may be. Method: the actor against a small API server
// that refuses one kind of write, and the Events that are there then.
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "controllers/workloads_fixture.h"

namespace berth::controllers {
namespace {

class Refusals : public Workloads {
 protected:
  // Of patches of what ends so, whose body says so.
  void Refuse(const std::string& end, const std::string& says,
              FakeApi::Fault fault = FakeApi::Fault::kRefuse) {
    api_.fault = [end, says, fault](const env::HttpRequest& request) {
      const bool its = request.method == Method::kPatch && request.target.ends_with(end) &&
                       request.body.view().contains(says);
      return its ? fault : FakeApi::Fault::kNone;
    };
  }
  void Allow() {
    api_.fault = nullptr;
    Pass(1001);
  }
  // "REASON about KIND: MESSAGE", of warnings.
  std::vector<std::string> Warnings() {
    std::vector<std::string> events;
    for (const std::string& path : Paths("/namespaces/d/events/")) {
      if (Text(path, "/type") != "Warning") continue;
      events.push_back(Text(path, "/reason") + " about " + Text(path, "/involvedObject/kind") +
                       ": " + Text(path, "/message"));
    }
    std::ranges::sort(events);
    return events;
  }
  using Texts = std::vector<std::string>;
};

TEST_F(Refusals, AStartIsToldOfTheJob) {
  MakeJob();
  Pass(1);
  Refuse("/jobs/j", R"("suspend":false)");
  api_.refusal = "no Jobs before noon";
  Admit();
  Pass(10);
  EXPECT_EQ(Stands().substr(0, 9), "suspended");
  EXPECT_EQ(Warnings(), Texts{"FailedStart about Job: Error starting: no Jobs before noon"});
  Allow();
  EXPECT_EQ(Stands(), kPlaced);
}

// A webhook that can't be asked is a 500, which may be of a write that was done: what is read then
// says that it was not.
TEST_F(Refusals, AStartThatFailsIsToldOnceItIsKnownNotToBeDone) {
  MakeJob();
  Pass(1);
  Refuse("/jobs/j", R"("suspend":false)", FakeApi::Fault::kFail);
  api_.refusal = "failed calling webhook";
  Admit();
  Pass(10);
  EXPECT_EQ(Warnings(), Texts{"FailedStart about Job: Error starting: failed calling webhook"});
  Allow();
  EXPECT_EQ(Stands(), kPlaced);
}

TEST_F(Refusals, AStopIsToldOfTheJob) {
  MakeJob();
  Pass(1);
  Admit();
  ASSERT_EQ(Stands(), kPlaced);
  Refuse("/jobs/j", R"("suspend":true)");
  Evict();
  Pass(10);
  EXPECT_EQ(Warnings(), Texts{"FailedStop about Job: Error stopping: Forbidden"});
  Allow();
  EXPECT_EQ(Text(kJob, "/spec/suspend"), "true");
}

TEST_F(Refusals, AnEndIsToldOfTheWorkload) {
  MakeJob();
  Pass(1);
  Admit();
  Refuse("/status", R"("Finished")");
  Patch(kJob + "/status",
        R"({"status":{"conditions":[{"type":"Complete","status":"True","reason":"R"}]}})");
  Pass(10);
  EXPECT_EQ(Condition("Finished"), "none");
  EXPECT_EQ(Warnings(), Texts{"FailedUpdate about Workload: Error updating its status: Forbidden"});
  Allow();
  EXPECT_TRUE(Condition("Finished").starts_with("True")) << Condition("Finished");
}

TEST_F(Refusals, ItsOwnStatusIsToldOfTheJob) {
  MakeJob();
  Pass(1);
  Refuse("/jobs/j/status", "");
  Admit();
  Pass(10);
  EXPECT_EQ(Warnings(), Texts{"FailedUpdate about Job: Error updating its status: Forbidden"});
}

}  // namespace
}  // namespace berth::controllers
