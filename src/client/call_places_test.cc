// Goal: calls that hang keep nobody else waiting, and no call is lost by it. Method: a scripted server
// that leaves a namespace's bindings unanswered; then random servers, after which everything must
// have ended once and nothing be kept.
#include "client/call_places.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "client/test_rig.h"
#include "testing/hashes.h"

namespace berth::client {
namespace {

using testing::StateHash;

// As `berth run` has them.
constexpr size_t kWindow = 96;
constexpr size_t kApart = 192;
constexpr size_t kApartHigh = 96;
constexpr size_t kApartOfFlow = 64;

Request BindIn(std::string_view namespace_name) {
  return Bind({.namespace_name = std::string(namespace_name), .name = "p", .uid = "u"}, "n1", {});
}

struct HangingRig : Rig {
  HangingRig() : Rig({.calls_in_flight_max = kWindow, .calls_apart_max = kApart}) {}
  void Bindings(std::string_view namespace_name, size_t count) {
    for (size_t i = 0; i < count; ++i) Call(BindIn(namespace_name));
  }
  // Those of them that have left, in their order.
  [[nodiscard]] std::vector<env::CallId> Of(std::string_view namespace_name) const {
    std::vector<env::CallId> calls;
    for (const env::SendRequest& sent : requests) {
      if (sent.request.target.starts_with(fmt::format("/api/v1/namespaces/{}/", namespace_name)))
        calls.push_back(sent.call);
    }
    return calls;
  }
  [[nodiscard]] size_t Left(std::string_view namespace_name) const {
    return Of(namespace_name).size();
  }
  void AnswerCall(env::CallId call, int status = 201) {
    Step(env::Response{.call = call, .response = {.status = status, .headers = {}, .body = {}}});
  }
  // A binding of the namespace leaves at once, and is answered.
  void ExpectNoWait(std::string_view namespace_name) {
    const size_t before = requests.size();
    Bindings(namespace_name, 1);
    ASSERT_EQ(requests.size(), before + 1) << namespace_name << " waits";
    AnswerCall(requests.back().call);
  }
  void Pass(Duration duration) {
    now = now + duration;
    Step(env::Tick{});
  }
};

TEST(Flow, IsWhatAWebhookMayHold) {
  const ObjectRef pod{.namespace_name = "ns", .name = "p", .uid = "u"};
  EXPECT_EQ(FlowOf(Bind(pod, "n", {})), "POST /api/v1/namespaces/ns/pods/binding");
  EXPECT_EQ(FlowOf(PatchStatus(Pods(), pod, "{}")), "PATCH /api/v1/namespaces/ns/pods/status");
  EXPECT_EQ(FlowOf(Delete(Pods(), pod)), "DELETE /api/v1/namespaces/ns/pods");
  EXPECT_EQ(FlowOf(CreateEvent({.regarding = pod})),
            "POST /apis/events.k8s.io/v1/namespaces/ns/events");
  EXPECT_EQ(FlowOf(Get({.plural = "nodes"}, {.name = "n"})), "GET /api/v1/nodes");
  EXPECT_EQ(FlowOf({.method = env::Method::kGet, .target = "/readyz?verbose"}), "GET /readyz");
}

// A webhook on pods/binding of one namespace that does not answer: found by running 600 such pods
// beside others, which waited for as long as its timeoutSeconds, several times over.
TEST(CallsThatHang, KeepOtherNamespacesWaitingForASecondAtMost) {
  HangingRig rig;
  rig.Bindings("sick", 600);
  rig.Bindings("well", 1);
  EXPECT_EQ(rig.Left("sick"), kWindow);
  EXPECT_EQ(rig.Left("well"), 0u);
  EXPECT_EQ(rig.client.wake_at(), rig.now + CallPlaces::kHangsAfter);
  rig.Wake();
  EXPECT_EQ(rig.Left("sick"), kWindow) << "no more than its places apart";
  EXPECT_EQ(rig.Left("well"), 1u);
  rig.AnswerCall(rig.Of("well").back());
  EXPECT_EQ(rig.client.calls_queued(), 600 - kWindow);
  EXPECT_EQ(rig.client.calls_queued(Priority::kHigh), 0u);
  // All that hang come to their time-out at once, and the next follow: nobody else waits for them.
  for (int round = 0; round < 5; ++round) {
    rig.ExpectNoWait("well");
    rig.Pass(Duration::Milliseconds(500));
    rig.ExpectNoWait("well");
    rig.Pass(Duration::Milliseconds(9'500));
    rig.ExpectNoWait("well");
    const size_t left = rig.Left("sick");
    for (const env::CallId call : rig.Of("sick")) rig.AnswerCall(call, 500);
    EXPECT_EQ(rig.Left("sick"), left + kApartOfFlow);
  }
}

TEST(CallsThatHang, OfTwoNamespacesKeepNoThirdWaiting) {
  HangingRig rig;
  for (int i = 0; i < 300; ++i) {
    rig.Bindings("a", 1);
    rig.Bindings("b", 1);
  }
  rig.Wake();
  for (int round = 0; round < 5; ++round) {
    EXPECT_EQ(rig.client.calls_in_flight(), kApartHigh);
    rig.ExpectNoWait("well");
    rig.Pass(Duration::Seconds(5));
    rig.ExpectNoWait("well");
    rig.Pass(Duration::Seconds(5));
    const std::vector<env::CallId> of_a = rig.Of("a");
    const std::vector<env::CallId> of_b = rig.Of("b");
    for (const env::CallId call : of_a) rig.AnswerCall(call, 500);
    for (const env::CallId call : of_b) rig.AnswerCall(call, 500);
    EXPECT_GT(rig.Left("a"), of_a.size());
    EXPECT_GT(rig.Left("b"), of_b.size());
  }
}

// It is the bindings that hang; what is told about the pods goes its way, and in their namespace.
TEST(CallsThatHang, KeepNoOtherKindOfCallWaiting) {
  HangingRig rig;
  rig.Bindings("sick", 300);
  rig.Wake();
  const size_t left = rig.requests.size();
  const ObjectRef pod{.namespace_name = "sick", .name = "p", .uid = "u"};
  rig.Call(PatchStatus(Pods(), pod, "{}"));
  rig.Call(CreateEvent({.regarding = pod}));
  EXPECT_EQ(rig.requests.size(), left + 2);
}

// A slow server makes conditions and events hang, too: each class has places apart of its own.
TEST(CallsThatHang, OfOneClassLeaveOthersTheirPlaces) {
  HangingRig rig;
  const ObjectRef pod{.namespace_name = "ns", .name = "p", .uid = "u"};
  for (int i = 0; i < 200; ++i) rig.Call(PatchStatus(Pods(), pod, "{}"));
  rig.Wake();
  // Three quarters of the window were theirs: 32 of these went apart.
  const size_t stuck = kWindow * 3 / 4 - 32;
  rig.Bindings("other", 200);
  EXPECT_EQ(rig.Left("other"), kWindow - stuck);
  rig.Pass(CallPlaces::kHangsAfter);
  rig.Bindings("third", kWindow);
  EXPECT_EQ(rig.Left("third"), kWindow - stuck) << "as many as went apart of the other";
}

// Found by review: with a webhook on bindings all places apart were theirs, always, and an event
// that hung once had its namespace's events wait for one of them.
TEST(CallsThatHang, OfALowerClassAreNotStarved) {
  HangingRig rig;
  const Request event = CreateEvent({.regarding = {.namespace_name = "w", .name = "p"}});
  rig.Call(event);
  rig.Bindings("sick", 600);
  rig.Bindings("sicker", 600);
  rig.Pass(CallPlaces::kHangsAfter);
  const size_t before = rig.requests.size();
  rig.Call(event);
  EXPECT_EQ(rig.requests.size(), before + 1);
}

// Found by review: a call that hangs would tell only at its time-out that the server is back.
TEST(CallsThatHang, AreNotWhatAllWaitForWhenTheServerIsBack) {
  for (const bool others : {true, false}) {
    HangingRig rig;
    rig.Bindings("sick", 300);
    rig.Wake();
    const std::vector<env::SendRequest> sent = rig.requests;
    for (const env::SendRequest& one : sent)
      rig.Step(env::CallFailed{.call = one.call, .failure = env::CallFailure::kNotSent});
    if (others) rig.Bindings("well", 1);
    while (rig.requests.size() == sent.size()) rig.Wake();
    ASSERT_EQ(rig.requests.size(), sent.size() + 1);
    EXPECT_EQ(rig.target().contains("/well/"), others);
    if (others) continue;
    rig.Bindings("well", 1);
    const Instant probed = rig.now;
    while (rig.requests.size() == sent.size() + 1) rig.Wake();
    EXPECT_TRUE(rig.target().contains("/well/")) << rig.target();
    EXPECT_EQ(rig.now, probed + CallPlaces::kHangsAfter);
  }
}

// Nor are they answered by a connection that fails.
TEST(CallsThatHang, HangAlsoWhenTheyAreNotSent) {
  HangingRig rig;
  rig.Bindings("sick", 300);
  rig.Wake();
  for (const env::CallId call : rig.Of("sick")) rig.AnswerCall(call, 500);
  rig.now = rig.now + CallPlaces::kHangsAfter - Duration{1};
  const env::CallId last = rig.Of("sick").back();
  rig.now = rig.now + Duration{1};
  rig.Step(env::CallFailed{.call = last, .failure = env::CallFailure::kNotSent});
  EXPECT_EQ(rig.client.calls_queued(Priority::kHigh), 0u);
}

// Nobody needs a Tick for it.
TEST(CallsThatHang, AreSeenToWhenTheyEnd) {
  HangingRig rig;
  rig.Bindings("sick", 1);
  rig.now = rig.now + Duration::Seconds(10);
  rig.AnswerCall(rig.Of("sick").back(), 500);
  rig.Bindings("sick", 300);
  EXPECT_EQ(rig.Left("sick"), 1 + kApartOfFlow);
}

TEST(CallsThatHang, AreAsAnyOnceASecondWentByInWhichNoneDid) {
  HangingRig rig;
  rig.Bindings("sick", 300);
  rig.Wake();
  for (const env::CallId call : rig.Of("sick")) rig.AnswerCall(call);
  ASSERT_EQ(rig.Left("sick"), kWindow + kApartOfFlow);
  // It answers again, but that may be chance: one goes for each that ends.
  size_t answered = kWindow;
  const auto answer = [&] { rig.AnswerCall(rig.Of("sick")[answered++]); };
  answer();
  rig.now = rig.now + CallPlaces::kHangsAfter - Duration{1};
  answer();
  EXPECT_EQ(rig.Left("sick"), answered + kApartOfFlow);
  // Those that left first hang by now, and are answered: the calm begins anew.
  rig.now = rig.now + Duration{1};
  rig.Step(env::Tick{});
  while (answered < kWindow + kApartOfFlow + 2) answer();
  EXPECT_EQ(rig.Left("sick"), answered + kApartOfFlow);
  rig.now = rig.now + CallPlaces::kHangsAfter - Duration{1};
  for (size_t i = 0; i < kApartOfFlow; ++i) answer();
  ASSERT_LT(rig.Left("sick"), 300u);
  rig.now = rig.now + Duration{1};
  answer();
  EXPECT_EQ(rig.Left("sick"), 300u) << "all that wait, in the window";
  while (answered < 300) answer();
  EXPECT_EQ(rig.client.calls_in_flight(), 0u);
  rig.Bindings("sick", kWindow + 1);
  EXPECT_EQ(rig.Left("sick"), 300 + kWindow);
}

// Those that failed are tried again after a while, all at once.
TEST(CallsThatHang, AreRememberedForAMinute) {
  for (const bool later : {false, true}) {
    HangingRig rig;
    rig.Bindings("sick", 10);
    rig.Pass(Duration::Seconds(10));
    for (const env::CallId call : rig.Of("sick")) rig.AnswerCall(call, 500);
    rig.Pass(CallPlaces::kKnownFor - Duration{later ? 0 : 1});
    rig.Bindings("sick", 300);
    EXPECT_EQ(rig.Left("sick"), 10 + (later ? kWindow : kApartOfFlow));
  }
}

// No place is left apart: the third keeps the window, until places of the others come free, which
// are its own then.
TEST(CallsThatHang, MoveApartAsPlacesComeFree) {
  HangingRig rig;
  for (const std::string_view one : {"a", "b", "c"}) {
    rig.Bindings(one, 300);
    rig.Wake();
  }
  EXPECT_EQ(rig.client.calls_in_flight(), kWindow + kApartHigh);
  rig.Bindings("well", 1);
  rig.Pass(Duration::Seconds(5));
  EXPECT_EQ(rig.Left("well"), 0u);
  rig.AnswerCall(rig.Of("a").front(), 500);
  EXPECT_EQ(rig.Left("well"), 1u);
}

TEST(CallsThatHang, MayBeForgottenWhileTheyWait) {
  HangingRig rig;
  rig.Bindings("sick", kWindow);
  const env::CallId waits = rig.Call(BindIn("sick"));
  rig.Wake();
  EXPECT_EQ(rig.client.calls_queued(), 1u);
  EXPECT_TRUE(rig.client.CancelQueued(waits));
  EXPECT_FALSE(rig.client.CancelQueued(waits));
  EXPECT_EQ(rig.client.calls_queued(), 0u);
  rig.Call(BindIn("sick"));
  rig.Call(BindIn("sick"));
  EXPECT_EQ(rig.client.StopWrites(), kWindow);
  rig.Wake();
  EXPECT_EQ(rig.Told(), "call98=Refused! call99=Refused! ");
}

TEST(CallsThatHang, HaveNoPlacesOfTheirOwnWhereNoneAreGiven) {
  HangingRig rig;
  rig.client = Client({.calls_in_flight_max = kWindow});
  rig.Bindings("sick", 100);
  EXPECT_EQ(rig.client.wake_at(), Instant::Never());
  rig.Pass(Duration::Seconds(5));
  EXPECT_EQ(rig.client.calls_queued(Priority::kHigh), 4u);
}

TEST(CallsThatHang, AreInTheHash) {
  HangingRig rig;
  rig.Bindings("sick", 100);
  Client before = rig.client;
  rig.Pass(CallPlaces::kHangsAfter);
  EXPECT_NE(StateHash(before), StateHash(rig.client));
  HangingRig later;
  later.now = later.now + Duration::Milliseconds(1);
  HangingRig sooner;
  for (HangingRig* one : {&later, &sooner}) {
    Request request = BindIn("sick");
    request.patience = Instant{5'000'000'000} - one->now;
    one->Call(request);
  }
  EXPECT_NE(StateHash(later.client), StateHash(sooner.client)) << "who hangs first";
}

// Whatever the server does, every call ends once; there are never more under way than there may
// be; nobody waits while there is room; and at the end nothing is kept.
RC_GTEST_PROP(CallsThatHangProp, LoseNothing, ()) {
  HangingRig rig;
  std::map<uint64_t, int> ended;
  std::set<uint64_t> open;
  size_t seen = 0;
  size_t called = 0;
  const auto take = [&] {
    for (; seen < rig.requests.size(); ++seen) open.insert(rig.requests[seen].call.value);
    for (const Event& event : rig.events) {
      if (const auto* done = std::get_if<CallDone>(&event)) ++ended[done->call.value];
    }
    rig.events.clear();
  };
  const auto end = [&](uint64_t call, int how) {
    open.erase(call);
    if (how == 0) {
      rig.Step(env::CallFailed{.call = {call}, .failure = env::CallFailure::kTimeout});
    } else if (how == 1) {
      rig.Step(env::Response{.call = {call}, .response = {.status = 429}});
    } else {
      rig.AnswerCall({call});
    }
    take();
  };
  const int steps = *rc::gen::inRange(0, 60);
  for (int step = 0; step < steps; ++step) {
    const int action = *rc::gen::inRange(0, 6);
    if (action <= 1) {
      const std::string in(1, static_cast<char>('a' + *rc::gen::inRange(0, 3)));
      const int count = *rc::gen::inRange(1, 90);
      for (int i = 0; i < count; ++i) {
        Request request = BindIn(in);
        request.waits_for_tick = i % 3 == 0;
        request.priority = static_cast<Priority>(i % 2);
        rig.Call(request);
        ++called;
      }
      take();
    } else if (action <= 3 && !open.empty()) {
      const auto from = static_cast<size_t>(*rc::gen::inRange(0, static_cast<int>(open.size())));
      const auto count = static_cast<size_t>(*rc::gen::inRange(1, 40));
      std::vector<uint64_t> some(std::next(open.begin(), static_cast<ptrdiff_t>(from)), open.end());
      if (some.size() > count) some.resize(count);
      const int how = *rc::gen::inRange(0, 4);
      for (const uint64_t call : some) end(call, how);
    } else if (action == 4) {
      rig.now = rig.now + Duration::Milliseconds(*rc::gen::inRange(1, 1'500));
    }
    for (int ticks = 0; rig.client.wake_at() <= rig.now; ++ticks) {
      RC_ASSERT(ticks < 100);
      rig.Step(env::Tick{});
      take();
    }
    RC_ASSERT(rig.client.calls_in_flight() == open.size());
    RC_ASSERT(open.size() <= kWindow + kApart);
  }
  for (int round = 0; round < 10'000 && ended.size() < called; ++round) {
    if (!open.empty()) {
      end(*open.begin(), 2);
    }
    if (open.empty() && ended.size() < called) {
      RC_ASSERT(rig.client.wake_at() != Instant::Never());
      rig.now = std::max(rig.now, rig.client.wake_at());
      rig.Step(env::Tick{});
      take();
    }
  }
  RC_ASSERT(ended.size() == called);
  RC_ASSERT(std::ranges::all_of(ended, [](const auto& one) { return one.second == 1; }));
  RC_ASSERT(rig.client.calls_in_flight() == 0u);
  RC_ASSERT(rig.client.calls_queued() == 0u);
  RC_ASSERT(rig.client.wake_at() == Instant::Never());
}

}  // namespace
}  // namespace berth::client
