// Goal: on SIGUSR2 the log says what is charged where and who waits, and what differs from the
// objects is named, but for what changes meanwhile. Method: a scheduler with a scripted API server,
// whose lists say other things than its watches did.
#include "control/dump.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "control/object_comparison.h"
#include "control/operated_scheduler.h"
#include "control/test_rig.h"
#include "env/log_keys.h"

namespace berth::control {
namespace {

std::string Shown(std::string_view line) {
  const env::KeyedText split = env::SplitKeys(line);
  std::string out(split.text);
  for (const auto& [key, value] : split.keys) out += fmt::format(" {}={}", key, value);
  return out;
}

// A scheduler that knows of a pod on a node, one that fits nowhere, and one that is another
// scheduler's.
struct DumpRig {
  DumpRig() : actor({}, R"({"kind":"KubeSchedulerConfiguration"})") {
    Step(env::Tick{});
    while (!inbox.empty()) {
      const env::SendRequest request = std::move(inbox.front());
      inbox.pop_front();
      Answer(request, 200,
             request.stream                            ? ""
             : request.request.target.contains("pods") ? ListJson(pods)
                                                       : ListJson(nodes));
    }
    Settle();
    inbox.clear();
    logs.clear();
  }
  void Step(env::Input input) {
    env::Outbox out;
    actor.Step(now, std::move(input), out);
    for (env::Output& output : out) {
      if (auto* send = std::get_if<env::SendRequest>(&output)) inbox.push_back(std::move(*send));
      if (auto* log = std::get_if<env::Log>(&output)) logs.push_back(log->text);
      if (auto* respond = std::get_if<env::Respond>(&output)) response = respond->response;
    }
  }
  void Settle() {
    for (int i = 0; i < 100 && actor.wake_at() <= now; ++i) Step(env::Tick{});
    EXPECT_GT(actor.wake_at(), now);
  }
  void Pass(Duration duration) {
    const Instant end = now + duration;
    while (actor.wake_at() <= end) {
      now = std::max(now, actor.wake_at());
      Settle();
    }
    now = end;
  }
  void Answer(const env::SendRequest& request, int status, std::string body) {
    Step(env::Response{
        .call = request.call,
        .response = {.status = status, .headers = {}, .body = Bytes(std::move(body))}});
  }
  env::SendRequest Take(std::string_view target) {
    const auto found = std::ranges::find_if(
        inbox, [&](const env::SendRequest& sent) { return sent.request.target == target; });
    EXPECT_NE(found, inbox.end()) << target;
    if (found == inbox.end()) return {};
    env::SendRequest request = std::move(*found);
    inbox.erase(found);
    return request;
  }
  void Get(std::string target, env::ExchangeId exchange = {1}) {
    Step(env::RequestArrived{
        .exchange = exchange, .peer = {}, .request = {.target = std::move(target)}});
  }
  void Ask() {
    Get("/dump", kDumpExchange);
    Settle();
  }
  // Answers the comparison's lists.
  void List(const std::vector<std::string>& of_pods, const std::vector<std::string>& of_nodes) {
    Answer(Take("/api/v1/pods?limit=500"), 200, ListJson(of_pods));
    Settle();
    Answer(Take("/api/v1/nodes?limit=500"), 200, ListJson(of_nodes));
    Settle();
  }
  // What the comparison has told.
  std::vector<std::string> Compared() {
    std::vector<std::string> out;
    for (const std::string& line : logs) {
      if (const std::string shown = Shown(line); shown.starts_with("comparison"))
        out.push_back(shown.substr(29));
    }
    logs.clear();
    return out;
  }

  Instant now = Instant::FromSeconds(1'800'000'000);
  std::vector<std::string> pods = {PodJson({.name = "a", .uid = "u-a", .node = "n1"}),
                                   PodJson({.name = "big", .uid = "u-big", .cpu_milli = 9'000}),
                                   PodJson({.name = "x", .uid = "u-x", .scheduler = "other"})};
  std::vector<std::string> nodes = {NodeJson("n1", 1)};
  OperatedScheduler actor;
  std::deque<env::SendRequest> inbox;
  std::vector<std::string> logs;
  env::HttpResponse response;
};

TEST(Dump, TellsNodesClaimsAndWhoWaits) {
  DumpRig rig;
  rig.Ask();
  std::vector<std::string> shown;
  for (const std::string& line : rig.logs) shown.push_back(Shown(line));
  const std::vector<std::string> expected = {
      "dump: begins nodes=1 pods=3 claims=1 leads=true",
      ("dump: node node=n1 present=true schedulable=true "
       "free=cpu 500/1000, memory 68719476736/68719476736, pods 109/110"),
      "dump: claim node=n1 owner=ns/a uid=u-a state=held amounts=cpu 500, pods 1",
      "dump: pod pod=ns/big uid=u-big stage=pending priority=0 nominatedNode= note=",
      ("dump: pod pod=ns/x uid=u-x stage=foreign priority=0 nominatedNode= note=it is left to the "
       "scheduler that its spec.schedulerName names, \"other\""),
      "dump: ends findings=0"};
  EXPECT_EQ(shown, expected);
}

TEST(ObjectComparison, OfWhatIsAsTheObjectsSayTellsThatAlone) {
  DumpRig rig;
  rig.Ask();
  rig.Ask();  // One is under way.
  rig.List(rig.pods, rig.nodes);
  EXPECT_EQ(rig.Compared(), std::vector<std::string>{"ends pods=3 nodes=1 differences=0"});
  EXPECT_TRUE(rig.inbox.empty());
}

TEST(ObjectComparison, NamesEachDifferenceThatStands) {
  DumpRig rig;
  const std::vector<std::string> pods = {
      PodJson({.name = "a", .uid = "u-a", .node = "n2"}), PodJson({.name = "new", .uid = "u-new"}),
      PodJson({.name = "over", .uid = "u-over"}),
      PodJson({.name = "big", .uid = "u-big", .extra_status = R"(,"nominatedNodeName":"n1")"})};
  std::vector<std::string> with_ended = pods;
  with_ended[2].replace(with_ended[2].find("Pending"), 7, "Succeeded");
  const std::vector<std::string> nodes = {NodeJson("n1", 2, 2'000), NodeJson("n3", 3)};
  rig.Ask();
  rig.List(with_ended, nodes);
  EXPECT_TRUE(rig.Compared().empty()) << "it looks again";
  rig.Pass(ObjectComparison::kPause);
  rig.List(with_ended, nodes);
  EXPECT_EQ(
      rig.Compared(),
      (std::vector<std::string>{
          ("node n1 has cpu 2000, memory 68719476736, pods 110, and is known to have cpu 1000, "
           "memory 68719476736, pods 110"),
          "node n3 is not known", "pod ns/a (u-a) is on node \"n2\", and known on \"n1\"",
          "pod ns/big (u-big) is nominated to \"n1\", and known to be to \"\"",
          "pod ns/new (u-new) is not known", "pod ns/x (u-x) is known, and gone",
          "ends pods=4 nodes=2 differences=6"}));
}

// It is there: that it can't be read is not that it is gone.
TEST(ObjectComparison, OfNodesThatCannotBeReadNothingIsSaid) {
  DumpRig rig;
  const std::string unreadable =
      R"({"metadata":{"name":"n1","uid":"u-n1","resourceVersion":"2"},"spec":[]})";
  rig.Ask();
  rig.List(rig.pods, {unreadable});
  EXPECT_EQ(rig.Compared(), std::vector<std::string>{"ends pods=3 nodes=0 differences=0"});
}

TEST(ObjectComparison, WhatIsOverAtTheSecondLookIsNoDifference) {
  DumpRig rig;
  rig.Ask();
  rig.List({rig.pods[0], rig.pods[1]}, {});
  rig.Pass(ObjectComparison::kPause);
  rig.List({rig.pods[1], rig.pods[2]}, rig.nodes);
  EXPECT_EQ(rig.Compared(), std::vector<std::string>{"ends pods=2 nodes=1 differences=0"});
}

TEST(ObjectComparison, ReadsPageByPageAndEndsWithoutAResultWhenItCannot) {
  DumpRig rig;
  rig.Ask();
  rig.Answer(rig.Take("/api/v1/pods?limit=500"), 200, ListJson({rig.pods[0]}, "a b"));
  rig.Settle();
  rig.Answer(rig.Take("/api/v1/pods?limit=500&continue=a%20b"), 200,
             ListJson({rig.pods[1], rig.pods[2]}));
  rig.Settle();
  rig.Answer(rig.Take("/api/v1/nodes?limit=500"), 403,
             R"({"kind":"Status","code":403,"message":"no right"})");
  rig.Settle();
  EXPECT_EQ(rig.Compared(), std::vector<std::string>{"it ends without a result: no right"});
  rig.Ask();
  rig.List(rig.pods, rig.nodes);
  EXPECT_EQ(rig.Compared(), std::vector<std::string>{"ends pods=3 nodes=1 differences=0"});
}

TEST(Configz, IsWhatTheProcessSays) {
  DumpRig rig;
  rig.Get("/configz?x=y");
  EXPECT_EQ(rig.response.body.view(),
            R"({"componentconfig":{"kind":"KubeSchedulerConfiguration"}})");
  rig.Get("/configzz");
  EXPECT_EQ(rig.response.status, 404);
  rig.Get("/livez");
  EXPECT_EQ(rig.response.body.view(), "ok") << "all else is the scheduler's";
}

}  // namespace
}  // namespace berth::control
