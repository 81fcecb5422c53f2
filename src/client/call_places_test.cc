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

constexpr size_t kWindow = 8;

Request BindIn(std::string_view namespace_name) {
  return Bind({.namespace_name = std::string(namespace_name), .name = "p", .uid = "u"}, "n1", {});
}

struct HangingRig : Rig {
  HangingRig() : Rig({.calls_in_flight_max = kWindow}) {}
  void Bindings(std::string_view namespace_name, size_t count) {
    for (size_t i = 0; i < count; ++i) Call(BindIn(namespace_name));
  }
  // How many of them have left.
  [[nodiscard]] size_t Left(std::string_view namespace_name) const {
    return static_cast<size_t>(std::ranges::count_if(requests, [&](const env::SendRequest& sent) {
      return sent.request.target.starts_with(fmt::format("/api/v1/namespaces/{}/", namespace_name));
    }));
  }
  void AnswerCall(env::CallId call) {
    Step(env::Response{.call = call, .response = {.status = 201, .headers = {}, .body = {}}});
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
  rig.Bindings("sick", 200);
  rig.Bindings("well", 1);
  EXPECT_EQ(rig.Left("sick"), kWindow);
  EXPECT_EQ(rig.Left("well"), 0u);
  EXPECT_EQ(rig.client.wake_at(), rig.now + CallPlaces::kHangsAfter);
  rig.Wake();
  EXPECT_EQ(rig.Left("sick"), CallPlaces::kApartOfFlowMax);
  EXPECT_EQ(rig.Left("well"), 1u);
  EXPECT_EQ(rig.client.wake_at(), Instant::Never());
  // From then on at once, by whole windows.
  rig.AnswerCall(rig.requests.back().call);
  for (int i = 0; i < 3; ++i) {
    const size_t before = rig.requests.size();
    rig.Bindings("well", kWindow);
    ASSERT_EQ(rig.requests.size(), before + kWindow);
    for (size_t one = before; one < before + kWindow; ++one) rig.AnswerCall(rig.requests[one].call);
  }
  EXPECT_EQ(rig.Left("sick"), CallPlaces::kApartOfFlowMax);
  EXPECT_EQ(rig.client.calls_queued(), 200 - CallPlaces::kApartOfFlowMax);
  EXPECT_EQ(rig.client.calls_queued(Priority::kHigh), 0u);
}

// It is the bindings that hang; what is told about the pods goes its way, and in their namespace.
TEST(CallsThatHang, KeepNoOtherKindOfCallWaiting) {
  HangingRig rig;
  rig.Bindings("sick", 100);
  rig.Wake();
  const size_t left = rig.requests.size();
  const ObjectRef pod{.namespace_name = "sick", .name = "p", .uid = "u"};
  rig.Call(PatchStatus(Pods(), pod, "{}"));
  rig.Call(CreateEvent({.regarding = pod}));
  EXPECT_EQ(rig.requests.size(), left + 2);
}

TEST(CallsThatHang, LeaveOneByOneAsTheirsEndAndAllAtOnceWhenNoneHangs) {
  HangingRig rig;
  rig.Bindings("sick", 200);
  rig.Wake();
  const std::vector<env::SendRequest> hang(rig.requests.begin(), rig.requests.begin() + kWindow);
  for (size_t i = 0; i + 1 < hang.size(); ++i) {
    rig.AnswerCall(hang[i].call);
    EXPECT_EQ(rig.Left("sick"), CallPlaces::kApartOfFlowMax + i + 1);
  }
  // Those that left meanwhile answer within a second: with the last that hung the flow is as any.
  for (size_t i = kWindow; i < rig.requests.size(); ++i) {
    if (rig.client.calls_queued() == 0) break;
    rig.AnswerCall(rig.requests[i].call);
  }
  EXPECT_EQ(rig.client.calls_queued(), 0u);
  rig.AnswerCall(hang.back().call);
  EXPECT_EQ(rig.Left("sick"), 200u);
  for (const env::SendRequest& sent : std::vector(rig.requests)) rig.AnswerCall(sent.call);
  EXPECT_EQ(rig.client.calls_in_flight(), 0u);
  rig.Bindings("sick", kWindow + 1);
  EXPECT_EQ(rig.Left("sick"), 200 + kWindow) << "the window, and no more";
}

TEST(CallsThatHang, AreBoundedTogether) {
  HangingRig rig;
  for (const std::string_view one : {"a", "b", "c"}) {
    rig.Bindings(one, 100);
    rig.Wake();
  }
  EXPECT_EQ(rig.Left("a"), CallPlaces::kApartOfFlowMax);
  EXPECT_EQ(rig.Left("a") + rig.Left("b"), CallPlaces::kApartMax);
  // No place is left apart: these keep the window, as long as they hang.
  EXPECT_EQ(rig.Left("c"), kWindow);
  // One that ends makes room for whoever waits, of whichever flow.
  rig.AnswerCall(rig.requests.front().call);
  EXPECT_EQ(rig.client.calls_in_flight(), CallPlaces::kApartMax + kWindow);
}

TEST(CallsThatHang, MayBeForgottenWhileTheyWait) {
  HangingRig rig;
  rig.Bindings("sick", CallPlaces::kApartOfFlowMax);
  const env::CallId waits = rig.Call(BindIn("sick"));
  rig.Wake();
  EXPECT_EQ(rig.client.calls_queued(), 1u);
  EXPECT_TRUE(rig.client.CancelQueued(waits));
  EXPECT_FALSE(rig.client.CancelQueued(waits));
  EXPECT_EQ(rig.client.calls_queued(), 0u);
  rig.Call(BindIn("sick"));
  rig.Call(BindIn("sick"));
  EXPECT_EQ(rig.client.StopWrites(), CallPlaces::kApartOfFlowMax);
  rig.Wake();
  EXPECT_EQ(rig.Told(), "call66=Refused! call67=Refused! ");
}

TEST(CallsThatHang, ThatAreTooManyAreRefusedAndOthersAreNot) {
  HangingRig rig;
  rig.client = Client({.calls_in_flight_max = kWindow, .calls_queued_max = 100});
  rig.Bindings("sick", kWindow);
  rig.now = rig.now + CallPlaces::kHangsAfter;
  rig.Step(env::Tick{});
  rig.Bindings("sick", CallPlaces::kApartOfFlowMax - kWindow + 100);
  EXPECT_EQ(rig.client.wake_at(), Instant::Never());
  rig.Bindings("sick", 1);
  rig.Bindings("well", kWindow + 1);
  rig.Wake();
  EXPECT_EQ(rig.Told(), "call165=Refused! ");
  EXPECT_EQ(rig.Left("well"), kWindow);
}

TEST(CallsThatHang, AreInTheHash) {
  HangingRig rig;
  rig.Bindings("sick", 100);
  Client before = rig.client;
  rig.now = rig.now + CallPlaces::kHangsAfter;
  rig.Step(env::Tick{});
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
    while (rig.client.wake_at() <= rig.now) {
      rig.Step(env::Tick{});
      take();
    }
    RC_ASSERT(rig.client.calls_in_flight() == open.size());
    RC_ASSERT(open.size() <= kWindow + CallPlaces::kApartMax);
  }
  for (int round = 0; round < 10'000 && ended.size() < called; ++round) {
    if (!open.empty()) {
      end(*open.begin(), 2);
    } else {
      RC_ASSERT(rig.client.wake_at() != Instant::Never());
    }
    if (open.empty() && ended.size() < called) {
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
