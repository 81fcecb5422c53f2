// Goal: calls do what their headers say, whatever the server does, and a client is a value. Method: a
// scripted server; the test looks at every request and every event.
#include "client/client.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <set>

#include "client/test_rig.h"
#include "testing/hashes.h"

namespace berth::client {
namespace {

using testing::StateHash;

const Resource kPodResource{.group = "", .version = "v1", .plural = "pods"};
const ObjectRef kPod{.namespace_name = "ns", .name = "p", .uid = "u-1", .resource_version = "5"};

TEST(Calls, SayWhyTheyFailed) {
  Rig rig;
  const auto why_of_last = [&rig] { return WhyOf(std::get<CallDone>(rig.events.back())); };
  Request request = Bind(kPod, "n1", {});
  request.patience = Duration{};
  rig.Call(request);
  rig.Fail(env::CallFailure::kTimeout, "context deadline exceeded");
  EXPECT_EQ(why_of_last(), "no answer in time: context deadline exceeded");
  rig.Call(request);
  rig.Answer(403, R"({"kind":"Status","message":"pods is forbidden","code":403})");
  EXPECT_EQ(why_of_last(), "pods is forbidden");
  rig.Call(request);
  rig.Answer(502, "<html>");
  EXPECT_EQ(why_of_last(), "the API server answers 502");
}

TEST(Calls, EveryStatusHasAnOutcome) {
  const std::vector<std::pair<int, std::string>> table = {
      {200, "Done"},    {201, "Done"},    {400, "Refused"},  {401, "Refused"},
      {403, "Refused"}, {404, "Gone"},    {409, "Conflict"}, {410, "Gone"},
      {422, "Refused"}, {500, "Unknown"}, {503, "Unknown"},  {504, "Unknown"}};
  for (const auto& [status, outcome] : table) {
    Rig rig;
    rig.Call(Bind(kPod, "n1", {}));
    rig.Answer(status, "");
    EXPECT_EQ(rig.Told(), "call1=" + outcome + " ") << status;
  }
}

TEST(Calls, AWriteOfUnknownFateIsNotRepeated) {
  for (const env::CallFailure failure : {env::CallFailure::kLost, env::CallFailure::kTimeout}) {
    Rig rig;
    rig.Call(Bind(kPod, "n1", {}));
    rig.Fail(failure);
    EXPECT_EQ(rig.Told(), "call1=Unknown! ");
    EXPECT_EQ(rig.requests.size(), 1u);
    EXPECT_EQ(rig.client.wake_at(), Instant::Never());
  }
}

TEST(Calls, AReadIsRepeatedUntilItsPatienceEnds) {
  Rig rig;
  rig.Call(Get(kPodResource, {.namespace_name = "ns", .name = "p", .subresource = {}}));
  rig.Fail(env::CallFailure::kTimeout);
  rig.Wake();
  rig.Answer(500, "");
  rig.Wake();
  EXPECT_EQ(rig.requests.size(), 3u);
  while (rig.Told().empty()) {
    rig.Answer(503, "");
    if (rig.client.calls_queued() > 0) rig.Wake();
    ASSERT_LT(rig.requests.size(), 100u);
  }
  EXPECT_LE(rig.now, Instant{1'000'000'000} + Duration::Seconds(60));
}

// D06: a throttled binding is neither lost nor sent twice.
TEST(Calls, ThrottlingHoldsEverythingForAsLongAsTheServerAsks) {
  Rig rig;
  rig.Call(Bind(kPod, "n1", {}));
  rig.Answer(429, "", {{"retry-after", "3"}});
  EXPECT_EQ(rig.Told(), "");
  rig.Call(Bind(kPod, "n2", {}));
  EXPECT_EQ(rig.requests.size(), 1u);
  EXPECT_EQ(rig.client.wake_at(), rig.now + Duration::Seconds(3));
  rig.Wake();
  ASSERT_EQ(rig.requests.size(), 3u);
  EXPECT_EQ(rig.requests[1].call.value, 1u);
}

// The numbers of the classes of which a call leaves at once.
std::string LeaveAtOnce(Rig& rig, Request request) {
  std::string left;
  for (const Priority priority : {Priority::kLow, Priority::kNormal, Priority::kHigh}) {
    request.priority = priority;
    const size_t before = rig.requests.size();
    rig.Call(request);
    if (rig.requests.size() > before)
      left.insert(0, 1, static_cast<char>('0' + static_cast<int>(priority)));
  }
  return left;
}

// Goal: a server that is busy is left alone. Method: a call of one class is throttled in plain text;
// which classes leave at once, and that all do in the end.
TEST(Calls, ThrottlingHoldsTheClassOfTheCallAndThoseBelowIt) {
  struct Row {
    Priority throttled;
    std::string retry_after;
    std::string leave;
  };
  const std::vector<Row> table = {{Priority::kLow, "", "01"},   {Priority::kNormal, "", "0"},
                                  {Priority::kHigh, "", ""},    {Priority::kLow, "3", ""},
                                  {Priority::kNormal, "3", ""}, {Priority::kHigh, "3", ""},
                                  {Priority::kLow, "0", "01"},  {Priority::kLow, "Monday", "01"}};
  for (const Row& row : table) {
    SCOPED_TRACE(fmt::format("{} \"{}\"", static_cast<int>(row.throttled), row.retry_after));
    Rig rig;
    Request request = Bind(kPod, "n1", {});
    request.priority = row.throttled;
    rig.Call(request);
    std::vector<env::Header> headers;
    if (!row.retry_after.empty()) headers.push_back({"retry-after", row.retry_after});
    rig.Answer(429, "", headers);
    EXPECT_EQ(LeaveAtOnce(rig, request), row.leave);
    if (row.leave != "012") {
      EXPECT_GT(rig.client.wake_at(), rig.now);
    }
    for (int i = 0; i < 10 && rig.client.calls_queued() > 0; ++i) rig.Wake();
    EXPECT_EQ(rig.requests.size(), 5u);
    EXPECT_LE(rig.now, Instant{1'000'000'000} + Duration::Seconds(3));
    EXPECT_EQ(rig.client.wake_at(), Instant::Never());
  }
}

// Goal: what a webhook says of one write delays no other, whatever time it asks for, and ends with
// the patience of its own; a limit of events may be of all of them. Method: a call of one class is
// refused by a Status; which classes leave at once.
TEST(Calls, AStatusThatThrottlesIsAboutItsCallAlone) {
  struct Row {
    Priority throttled;
    std::string retry_after;
    std::string leave;
    std::string told = {};
  };
  for (const Row& row : std::initializer_list<Row>{
           {Priority::kLow, "", "01"},
           {Priority::kLow, "3", "01"},
           {Priority::kLow, "3600", "01", "call1=Refused "},
           {Priority::kNormal, "", "012"},
           {Priority::kNormal, "3", "012"},
           {Priority::kHigh, "0", "012"},
           {Priority::kHigh, "3", "012"},
           {Priority::kHigh, "99999999999999999999", "012", "call1=Refused "}}) {
    SCOPED_TRACE(fmt::format("{} \"{}\"", static_cast<int>(row.throttled), row.retry_after));
    Rig rig;
    Request request = Bind(kPod, "n1", {});
    request.priority = row.throttled;
    rig.Call(request);
    rig.Answer(429, R"({"kind":"Status","code":429,"message":"admission webhook denied"})",
               {{"retry-after", row.retry_after}});
    EXPECT_EQ(rig.Told(), row.told);
    EXPECT_EQ(LeaveAtOnce(rig, request), row.leave);
    const Instant refused = rig.now;
    for (int i = 0; i < 10 && rig.client.calls_queued() > 0; ++i) rig.Wake();
    EXPECT_EQ(rig.requests.size(), row.told.empty() ? 5u : 4u);
    EXPECT_LE(rig.now, refused + Duration::Seconds(32));
    if (row.told.empty()) {
      EXPECT_GT(rig.now, refused);
    }
  }
}

// The server's own patience has an end, too: what asks for more speaks for somebody else.
TEST(Calls, ThrottlingHoldsOthersForABoundedTime) {
  Rig rig;
  rig.Call(Bind(kPod, "n1", {}));
  rig.Answer(429, "Too many requests", {{"retry-after", "3600"}});
  EXPECT_EQ(rig.Told(), "call1=Refused ");
  rig.Call(Bind(kPod, "n2", {}));
  EXPECT_EQ(rig.requests.size(), 1u);
  EXPECT_EQ(rig.client.wake_at(), rig.now + Duration::Seconds(32));
}

// "Retry-After: 0" is no leave to ask again and again.
TEST(Calls, ThrottlingForNoTimeIsARefusalToBackOffFrom) {
  Rig rig;
  rig.Call(Bind(kPod, "n1", {}));
  while (rig.Told().empty()) {
    rig.Answer(429, "{}", {{"retry-after", "0"}});
    if (rig.client.calls_queued() > 0) rig.Wake();
    ASSERT_LT(rig.requests.size(), 20u);
  }
  EXPECT_LE(rig.now, Instant{1'000'000'000} + Duration::Seconds(60));
}

// The longer an event has been refused, the longer events wait; bindings don't.
TEST(Calls, EventsThatAreThrottledForLongDelayNoBinding) {
  Rig rig;
  const env::CallId event = rig.Call(CreateEvent({.regarding = kPod}));
  for (int i = 0; i < 6; ++i) {
    ASSERT_EQ(rig.requests.back().call, event);
    rig.Answer(429, "");
    rig.Call(Bind(kPod, "n1", {}));
    EXPECT_TRUE(rig.target().ends_with("/binding")) << i;
    rig.Answer(201, "");
    rig.Wake();
  }
  EXPECT_GE(rig.now, Instant{1'000'000'000} + Duration::Seconds(6));
}

// A connection that goes and comes meanwhile is no reason to ask a busy server again.
TEST(Calls, ThrottlingOutlastsAConnectionThatIsLost) {
  Rig rig;
  for (int i = 0; i < 3; ++i) rig.Call(Bind(kPod, "n1", {}));
  const auto answer = [](uint64_t call, int status) {
    return env::Response{
        .call = {call},
        .response = {.status = status, .headers = {{"retry-after", "3"}}, .body = {}}};
  };
  rig.Step(answer(1, 429));
  rig.Step(env::CallFailed{.call = {2}, .failure = env::CallFailure::kNotSent});
  rig.Step(answer(3, 201));
  const Instant until = rig.now + Duration::Seconds(3);
  while (rig.requests.size() == 3) rig.Wake();
  EXPECT_EQ(rig.now, until);
}

TEST(Calls, AnEvictionsRefusalByABudgetIsAnAnswer) {
  Rig rig;
  rig.Call(Evict(kPod));
  rig.Answer(429, "");
  EXPECT_EQ(rig.Told(), "call1=Refused ");
}

TEST(Calls, WithoutAConnectionOneCallProbesAndAllGoOnWhenItIsBack) {
  Rig rig;
  for (int i = 0; i < 5; ++i) rig.Call(Bind(kPod, "n1", {}));
  for (uint64_t i = 1; i <= 5; ++i) {
    rig.Step(env::CallFailed{.call = {i}, .failure = env::CallFailure::kNotSent});
  }
  rig.Wake();
  while (rig.requests.size() == 5) rig.Wake();
  EXPECT_EQ(rig.requests.size(), 6u);
  rig.Answer(201, "");
  while (rig.requests.size() < 10) rig.Wake();
  EXPECT_EQ(rig.client.calls_queued(), 0u);
}

TEST(Calls, AWriteThatFoundNoConnectionInItsPatienceIsRefused) {
  Rig rig;
  rig.Call(Bind(kPod, "n1", {}));
  for (int i = 0; i < 100 && rig.told.empty(); ++i) {
    rig.Fail(env::CallFailure::kNotSent);
    const size_t sent = rig.requests.size();
    while (rig.told.empty() && rig.requests.size() == sent) rig.Wake();
  }
  EXPECT_EQ(rig.Told(), "call1=Refused! ");
}

TEST(Calls, BindingsGoBeforeEventsAndEventsLeaveThemRoom) {
  Rig rig({.calls_in_flight_max = 4});
  Request event = Get(kPodResource, {.namespace_name = "ns", .name = "low", .subresource = {}});
  event.priority = Priority::kLow;
  for (int i = 0; i < 10; ++i) rig.Call(event);
  EXPECT_EQ(rig.requests.size(), 2u);
  EXPECT_EQ(rig.client.wake_at(), Instant::Never());
  for (int i = 0; i < 3; ++i) rig.Call(Bind(kPod, "n1", {}));
  EXPECT_EQ(rig.requests.size(), 4u);
  rig.Answer(201, "");
  ASSERT_EQ(rig.requests.size(), 5u);
  EXPECT_TRUE(rig.target().ends_with("/binding"));
}

TEST(Calls, AFullQueueRefuses) {
  Rig rig({.calls_in_flight_max = 1, .calls_queued_max = 1});
  for (int i = 0; i < 3; ++i) rig.Call(Bind(kPod, "n1", {}));
  EXPECT_EQ(rig.client.wake_at(), Instant{0});
  rig.Step(env::Tick{});
  EXPECT_EQ(rig.Told(), "call3=Refused! ");
  EXPECT_EQ(rig.client.wake_at(), Instant::Never());
}

TEST(Calls, AQueuedCallCanBeForgotten) {
  Rig rig({.calls_in_flight_max = 1});
  rig.Call(Bind(kPod, "n1", {}));
  const env::CallId second = rig.Call(Bind(kPod, "n2", {}));
  EXPECT_FALSE(rig.client.CancelQueued({1}));
  EXPECT_TRUE(rig.client.CancelQueued(second));
  EXPECT_FALSE(rig.client.CancelQueued(second));
  rig.Answer(201, "");
  EXPECT_EQ(rig.requests.size(), 1u);
}

// Nothing came of a write that is repeated: it may as well not be.
TEST(Calls, ACallThatIsToBeRepeatedCanBeForgotten) {
  Rig rig;
  const env::CallId call = rig.Call(Bind(kPod, "n1", {}));
  rig.Step(env::CallFailed{.call = call, .failure = env::CallFailure::kNotSent});
  EXPECT_EQ(rig.client.calls_queued(), 1u);
  EXPECT_TRUE(rig.client.CancelQueued(call));
  EXPECT_EQ(rig.client.calls_queued(), 0u);
  EXPECT_EQ(rig.client.wake_at(), Instant::Never());
  EXPECT_FALSE(rig.client.CancelQueued(call));
}

// What the owner hears together with the room for a call may end what the call is for.
TEST(Calls, ACallThatWaitsForATickCanBeForgottenWhenThereIsRoom) {
  for (const bool waits : {true, false}) {
    Rig rig({.calls_in_flight_max = 1});
    Request request = Bind(kPod, "n1", {});
    rig.Call(request);
    request.waits_for_tick = waits;
    const env::CallId second = rig.Call(request);
    const env::CallId third = rig.Call(Bind(kPod, "n2", {}));
    rig.Answer(201, "");
    EXPECT_EQ(rig.client.CancelQueued(second), waits);
    EXPECT_EQ(rig.client.wake_at() <= rig.now, waits);
    EXPECT_EQ(rig.requests.size(), waits ? 1u : 2u);
    if (waits) rig.Wake();
    ASSERT_EQ(rig.requests.size(), 2u);
    EXPECT_EQ(rig.requests[1].call, waits ? third : second);
  }
}

TEST(Calls, ACallThatWaitsForATickLeavesAtOnceWhereNothingWaits) {
  Rig rig;
  Request request = Bind(kPod, "n1", {});
  request.waits_for_tick = true;
  rig.Call(request);
  EXPECT_EQ(rig.requests.size(), 1u);
}

// The server asks everybody to slow down, whoever repeats what.
TEST(Calls, ThrottlingHoldsEverythingThoughTheCallIsNotRepeated) {
  Rig rig;
  Request request = Bind(kPod, "n1", {});
  request.patience = Duration{};
  rig.Call(request);
  rig.Answer(429, "", {{"retry-after", "3"}});
  EXPECT_EQ(rig.Told(), "call1=Refused ");
  rig.Call(Bind(kPod, "n2", {}));
  EXPECT_EQ(rig.requests.size(), 1u);
  EXPECT_EQ(rig.client.wake_at(), rig.now + Duration::Seconds(3));
}

TEST(Calls, ACallUnderWayCanBeTheLastAttempt) {
  Rig rig;
  rig.Call(Bind(kPod, "n1", {}));
  Client copy = rig.client;
  rig.client.DontRepeat({1});
  EXPECT_NE(StateHash(copy), StateHash(rig.client));
  rig.Answer(429, "");
  EXPECT_EQ(rig.Told(), "call1=Refused ");
  EXPECT_EQ(rig.client.calls_queued(), 0u);
}

// D12: who may not write any more withdraws what waits, repeats nothing, and hears of what has left.
TEST(Calls, StoppedWritesEndUnsentAndReadsGoOn) {
  Rig rig({.calls_in_flight_max = 2});
  rig.Call(Bind(kPod, "n1", {}));
  rig.Call(Bind(kPod, "n2", {}));
  rig.Call(Bind(kPod, "n3", {}));
  // The second waits to be repeated.
  rig.Step(env::Response{.call = {2}, .response = {.status = 429, .headers = {}, .body = {}}});
  Request read = Get(kPodResource, {.namespace_name = "ns", .name = "p"});
  read.priority = Priority::kHigh;
  EXPECT_EQ(rig.client.StopWrites(), 1u);
  EXPECT_EQ(rig.client.writes_in_flight(), 1u);
  EXPECT_EQ(rig.client.calls_queued(), 0u);
  rig.Call(Bind(kPod, "n4", {}));
  rig.Call(read);
  rig.Wake();
  EXPECT_EQ(rig.Told(), "call2=Refused! call3=Refused! call4=Refused! ");
  while (rig.requests.size() == 2) rig.Wake();
  EXPECT_EQ(rig.requests.back().request.method, env::Method::kGet);
  // What is under way is the last attempt, whatever comes of it.
  rig.Step(env::CallFailed{.call = {1}, .failure = env::CallFailure::kNotSent});
  EXPECT_EQ(rig.Told(), "call1=Refused! ");
  EXPECT_EQ(rig.client.writes_in_flight(), 0u);
  rig.client.AllowWrites();
  rig.Answer(200, "{}");
  rig.Call(Bind(kPod, "n5", {}));
  while (rig.requests.back().request.method == env::Method::kGet) rig.Wake();
  EXPECT_EQ(rig.requests.size(), 4u);
}

// D12: what has been handed over may wait for a connection for as long as its time-out; past the
// lease it must not leave any more. Reads may.
TEST(Calls, WritesSayUntilWhenTheyMayLeave) {
  Rig rig;
  const Instant until = rig.now + Duration::Seconds(10);
  rig.Call(Bind(kPod, "n1", {}));
  EXPECT_EQ(rig.requests.back().not_after, Instant::Never());
  rig.client.LetWritesLeaveUntil(until);
  rig.Call(Bind(kPod, "n2", {}));
  EXPECT_EQ(rig.requests.back().not_after, until);
  rig.Call(Get(kPodResource, {.namespace_name = "ns", .name = "p"}));
  EXPECT_EQ(rig.requests.back().not_after, Instant::Never());
  // One that was too late is sent again by the new lease.
  rig.client.LetWritesLeaveUntil(until + Duration::Seconds(2));
  rig.Step(env::CallFailed{.call = {2}, .failure = env::CallFailure::kNotSent});
  while (rig.requests.size() == 3) rig.Wake();
  EXPECT_EQ(rig.requests.back().call.value, 2u);
  EXPECT_EQ(rig.requests.back().not_after, until + Duration::Seconds(2));
}

TEST(Client, ACopyBehavesAsTheOriginal) {
  Rig rig;
  Sync(rig);
  rig.Call(Bind(kPod, "n1", {}));
  Client copy = rig.client;
  EXPECT_EQ(StateHash(copy), StateHash(rig.client));
  env::Outbox out;
  std::vector<Event> events;
  const env::Input input = env::CallFailed{.call = {3}, .failure = env::CallFailure::kLost};
  copy.Handle(rig.now, input, out, events);
  EXPECT_NE(StateHash(copy), StateHash(rig.client));
  rig.Step(input);
  EXPECT_EQ(StateHash(copy), StateHash(rig.client));
}

// Goal: two clients of equal hash do the same from here on. Method: a call that waits differs in
// one member each; a list-watch is told one thing more.
TEST(Client, ItsHashHoldsTheWholeRequest) {
  testing::HashesApart<Request> apart(
      [](const Request& request) {
        Rig rig({.calls_in_flight_max = 1});
        rig.Call(Get(kPods.resource, {.namespace_name = "ns", .name = "first"}));
        rig.Call(request);
        return StateHash(rig.client);
      },
      {.method = env::Method::kPatch, .target = "/a", .content_type = "x", .body = Bytes("{}")});
  apart.With("method", [](Request& r) { r.method = env::Method::kPost; });
  apart.With("target", [](Request& r) { r.target = "/b"; });
  apart.With("content type", [](Request& r) { r.content_type = "y"; });
  apart.With("body", [](Request& r) { r.body = Bytes("[]"); });
  apart.With("priority", [](Request& r) { r.priority = Priority::kLow; });
  apart.With("timeout", [](Request& r) { r.timeout = Duration::Seconds(1); });
  apart.With("patience", [](Request& r) { r.patience = Duration::Seconds(1); });
  apart.With("throttling", [](Request& r) { r.retry_throttled = false; });
  apart.With("waiting", [](Request& r) { r.waits_for_tick = true; });
}

TEST(Client, ItsHashHoldsWhichClassesAreThrottled) {
  const auto hash_of = [](Priority priority) {
    Rig rig;
    Request request = Bind(kPod, "n1", {});
    request.priority = priority;
    request.patience = Duration{};
    rig.Call(request);
    rig.Answer(429, "");
    EXPECT_EQ(rig.Told(), "call1=Refused ");
    return StateHash(rig.client);
  };
  EXPECT_NE(hash_of(Priority::kHigh), hash_of(Priority::kNormal));
  EXPECT_NE(hash_of(Priority::kNormal), hash_of(Priority::kLow));
}

// Whether a page did not come is known by how many objects are asked for next.
TEST(Client, ItsHashHoldsHowLargePagesAre) {
  const auto hash_of = [](env::CallFailure failure) {
    Rig rig;
    rig.client.Watch(kPods);
    rig.Wake();
    rig.Fail(failure);
    return StateHash(rig.client);
  };
  EXPECT_EQ(hash_of(env::CallFailure::kTimeout), hash_of(env::CallFailure::kLost));
  EXPECT_NE(hash_of(env::CallFailure::kTimeout), hash_of(env::CallFailure::kNotSent));
}

TEST(Client, ItsHashHoldsWhatItsWatchesKnow) {
  Rig rig;
  std::set<uint64_t> hashes;
  const auto expect_new = [&](std::string_view what) {
    EXPECT_TRUE(hashes.insert(StateHash(rig.client)).second) << what;
  };
  expect_new("nothing");
  rig.client.Watch(kPods);
  expect_new("a watch");
  rig.Wake();
  expect_new("its list is sent");
  rig.Answer(200, List(10, {Object("a", "u1", 5)}));
  expect_new("a list");
  rig.Answer(200, "");
  expect_new("its stream is open");
  rig.Data(Frame("MODIFIED", Object("a", "u1", 11)).substr(0, 20));
  expect_new("a begun line");
  const Client begun = rig.client;
  rig.Data(Frame("MODIFIED", Object("a", "u1", 11)).substr(20));
  expect_new("an event");
  // However it was torn, it is told by now.
  const uint64_t told = StateHash(rig.client);
  rig.client = begun;
  rig.Data(Frame("MODIFIED", Object("a", "u1", 11)).substr(20, 10));
  rig.Data(Frame("MODIFIED", Object("a", "u1", 11)).substr(30));
  EXPECT_EQ(StateHash(rig.client), told);
  rig.Data(Frame("MODIFIED", Object("a", "u2", 12)));
  expect_new("another uid");
  rig.Data(Bookmark(20));
  expect_new("a bookmark");
  rig.End();
  expect_new("the end");
  rig.Wake();
  rig.Answer(410, "");
  rig.Wake();
  expect_new("a relist is sent");
  const Client sent = rig.client;
  rig.Answer(200, List(30, {Object("b", "u3", 25)}, "t1"));
  expect_new("its first page");
  rig.client = sent;
  rig.requests.pop_back();
  rig.Answer(200, List(30, {Object("b", "u4", 25)}, "t1"));
  expect_new("another first page");
}

TEST(Client, EveryRequestSaysWhoAsks) {
  Rig rig({.user_agent = "berth-test", .base_path = "/k8s"});
  rig.Call(Bind(kPod, "n1", {{"berth.dev/gpu-index", "0,1"}}));
  const env::HttpRequest& request = rig.requests.back().request;
  EXPECT_EQ(request.target, "/k8s/api/v1/namespaces/ns/pods/p/binding");
  EXPECT_EQ(env::FindHeader(request.headers, "user-agent"), "berth-test");
  EXPECT_EQ(env::FindHeader(request.headers, "content-type"), "application/json");
  EXPECT_EQ(
      request.body.view(),
      R"({"kind":"Binding","apiVersion":"v1","metadata":{"name":"p","namespace":"ns","uid":"u-1",)"
      R"("annotations":{"berth.dev/gpu-index":"0,1"}},"target":{"apiVersion":"v1","kind":"Node","name":"n1"}})");
}

}  // namespace
}  // namespace berth::client
