// Goal: a binding is attempted once, and what became of an attempt of unknown fate is read. Method:
// the test plays the API server.
#include "control/binder.h"

#include <gtest/gtest.h>

#include "testing/hashes.h"

namespace berth::control {
namespace {

class Rig {
 public:
  explicit Rig(bool planted = false, int64_t window = 128)
      : binder(planted), client({.calls_in_flight_max = window}) {}

  void Bind(const std::string& name, const std::string& node) {
    binder.Bind(now,
                {.pod = {.namespace_name = "ns", .name = name, .uid = "uid-" + name},
                 .scheduler_name = "default-scheduler",
                 .node = node,
                 .devices = {.mask = 0b101, .milli_each = 1000}},
                client, out);
  }
  // Answers the request; what it meant to the binder is kept in `result`.
  void Answer(const env::Input& input) {
    std::vector<client::Event> events;
    client.Handle(now, input, out, events);
    result.reset();
    for (const client::Event& event : events) {
      result = binder.OnCallDone(now, std::get<client::CallDone>(event), client, out);
    }
  }
  void Answer(size_t request, int status, std::string body = "") {
    Answer(env::Response{
        .call = sent(request).call,
        .response = {.status = status, .headers = {}, .body = Bytes(std::move(body))}});
  }
  [[nodiscard]] const env::SendRequest& sent(size_t index) const {
    return std::get<env::SendRequest>(out[index]);
  }

  Instant now = Instant::FromSeconds(1);
  Binder binder;
  client::Client client;
  env::Outbox out;
  std::optional<Binder::Result> result;
};

TEST(Binder, NamesTheDevices) {
  EXPECT_EQ(GpuIndexText({.mask = 0b1000'0000'0000'0101, .milli_each = 1000}), "0,2,15");
  EXPECT_EQ(GpuIndexText({}), "");
}

TEST(Binder, ABindingThatIsAcceptedIsDone) {
  Rig rig;
  rig.Bind("p", "n1");
  EXPECT_NE(rig.sent(0).request.body.view().find(R"("annotations":{"berth.dev/gpu-index":"0,2"})"),
            std::string_view::npos);
  rig.Answer(0, 201);
  ASSERT_TRUE(rig.result && rig.result->outcome);
  EXPECT_EQ(rig.result->outcome->outcome, model::WriteOutcome::kDone);
  EXPECT_EQ(rig.binder.size(), 0u);
  EXPECT_EQ(rig.out.size(), 1u);
}

// D01, D04: 409, 404, 5xx and silence all lead to one read and to no second binding.
TEST(Binder, WhatIsNotCertainIsRead) {
  for (const int status : {409, 404, 500, 504, 0}) {
    Rig rig;
    rig.Bind("p", "n1");
    if (status == 0) {
      rig.Answer(env::CallFailed{.call = rig.sent(0).call, .failure = env::CallFailure::kTimeout});
    } else {
      rig.Answer(0, status);
    }
    ASSERT_TRUE(rig.result && rig.result->outcome);
    EXPECT_NE(rig.result->outcome->outcome, model::WriteOutcome::kDone);
    ASSERT_EQ(rig.out.size(), 2u) << status;
    EXPECT_EQ(rig.sent(1).request.method, env::Method::kGet);
    EXPECT_EQ(rig.sent(1).request.target, "/api/v1/namespaces/ns/pods/p");
    EXPECT_TRUE(rig.binder.busy("uid-p"));
    rig.Answer(1, 200, "the pod");
    ASSERT_TRUE(rig.result);
    EXPECT_TRUE(rig.result->read);
    EXPECT_EQ(rig.result->object.view(), "the pod");
    EXPECT_FALSE(rig.binder.busy("uid-p"));
    EXPECT_EQ(rig.out.size(), 2u);
  }
}

TEST(Binder, ARefusalIsFinal) {
  Rig rig;
  rig.Bind("p", "n1");
  rig.Answer(0, 422, R"({"kind":"Status","message":"no","code":422})");
  ASSERT_TRUE(rig.result && rig.result->outcome);
  EXPECT_EQ(rig.result->outcome->outcome, model::WriteOutcome::kRefused);
  EXPECT_EQ(rig.result->outcome->code, 422);
  EXPECT_EQ(rig.result->status.message, "no");
  EXPECT_EQ(rig.out.size(), 1u);
}

TEST(Binder, AReadThatFailsIsReadAgain) {
  Rig rig;
  rig.Bind("p", "n1");
  rig.Answer(0, 409);
  rig.Answer(1, 403);
  EXPECT_FALSE(rig.result->read);
  // Not in a loop: after a second, then after two.
  for (const int64_t seconds : {1, 2}) {
    const size_t sent = rig.out.size();
    EXPECT_TRUE(rig.binder.busy("uid-p"));
    EXPECT_FALSE(rig.binder.Withdraw("uid-p", rig.client).has_value());
    EXPECT_EQ(rig.binder.wake_at(), rig.now + Duration::Seconds(seconds));
    rig.now = rig.binder.wake_at();
    rig.binder.Pump(rig.now, rig.client, rig.out);
    ASSERT_EQ(rig.out.size(), sent + 1);
    if (seconds == 1) rig.Answer(sent, 403);
  }
  EXPECT_EQ(rig.binder.wake_at(), Instant::Never());
  rig.Answer(rig.out.size() - 1, 404);
  EXPECT_TRUE(rig.result->read);
  EXPECT_TRUE(rig.result->object.empty());
}

TEST(Binder, WhatIsNotSentYetCanBeTakenBack) {
  Rig rig(false, 1);
  rig.Bind("p", "n1");
  rig.Bind("q", "n2");
  rig.Bind("r", "n2");
  EXPECT_FALSE(rig.binder.Withdraw("uid-p", rig.client).has_value());
  EXPECT_FALSE(rig.binder.Withdraw("uid-x", rig.client).has_value());
  ASSERT_EQ(rig.binder.WithdrawNode("n2", rig.client).size(), 2u);
  rig.Answer(0, 201);
  EXPECT_EQ(rig.out.size(), 1u);
  EXPECT_EQ(rig.binder.size(), 0u);
}

TEST(Binder, ThePlantedRepetitionSendsTwice) {
  Rig rig(true);
  rig.Bind("p", "n1");
  rig.Answer(0, 500);
  ASSERT_EQ(rig.out.size(), 2u);
  EXPECT_EQ(rig.sent(1).request.method, env::Method::kPost);
}

// Goal: two binders of equal hash do the same from here on. Method: attempts that differ in one
// member each.
TEST(Binder, ItsHashHoldsTheWholeAttempt) {
  testing::HashesApart<Binder::Attempt> apart(
      [](const Binder::Attempt& attempt) {
        client::Client client({});
        Binder binder;
        env::Outbox out;
        binder.Bind({}, attempt, client, out);
        return testing::StateHash(binder);
      },
      {.pod = {.namespace_name = "ns", .name = "p", .uid = "u", .resource_version = "1"},
       .scheduler_name = "berth",
       .node = "n1",
       .devices = {.mask = 1, .milli_each = 500}});
  apart.With("namespace", [](Binder::Attempt& a) { a.pod.namespace_name = "ns2"; });
  apart.With("name", [](Binder::Attempt& a) { a.pod.name = "q"; });
  apart.With("uid", [](Binder::Attempt& a) { a.pod.uid = "v"; });
  apart.With("scheduler", [](Binder::Attempt& a) { a.scheduler_name = "other"; });
  apart.With("node", [](Binder::Attempt& a) { a.node = "n2"; });
  apart.With("mask", [](Binder::Attempt& a) { a.devices.mask = 2; });
  apart.With("milli each", [](Binder::Attempt& a) { a.devices.milli_each = 250; });
}

}  // namespace
}  // namespace berth::control
