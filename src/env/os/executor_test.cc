// Goal: the executor carries what actors say to each other exactly as the contract of env/actor.h
// has it: answers, streams, ends, time-outs, cancellations, flow control, journal, ticks, and 429
// when an inbox is full. Method: a server actor that obeys its target ("/echo", "/stream/3",
// "/silent") and client actors that record what they get, on real threads.
#include "env/os/executor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <thread>

#include "base/mutex.h"
#include "env/os/sqlite_journal.h"
#include "env/os/watched_vfs.h"
#include "testing/files.h"

namespace berth::env::os {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// What an actor tells the test, from its thread.
class Record {
 public:
  void Add(std::string line) {
    MutexLock lock(mutex_);
    lines_.push_back(std::move(line));
    changed_.NotifyAll();
  }
  std::vector<std::string> Wait(size_t count) {
    MutexLock lock(mutex_);
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (lines_.size() < count && std::chrono::steady_clock::now() < deadline) {
      changed_.WaitFor(mutex_, std::chrono::milliseconds(10));
    }
    return lines_;
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  std::vector<std::string> lines_ GUARDED_BY(mutex_);
};

struct Script final : Actor {
  using Handler = std::function<void(Instant, Input&, Outbox&)>;
  explicit Script(Handler h) : handler(std::move(h)) {}
  void Step(Instant now, Input input, Outbox& out) override {
    if (std::holds_alternative<Tick>(input)) wake = Instant::Never();
    handler(now, input, out);
  }
  [[nodiscard]] Instant wake_at() const override { return wake; }
  void AddTo(Hasher&) const override {}
  Handler handler;
  Instant wake = Instant::Never();
};

SendRequest Get(uint64_t call, std::string target) {
  SendRequest send;
  send.call = {call};
  send.request.target = std::move(target);
  return send;
}

// Sends `sends` at its first tick and records what comes back.
std::unique_ptr<Script> Client(Record& record, const std::vector<SendRequest>& sends,
                               const std::vector<CallId>& cancels = {}) {
  auto client =
      std::make_unique<Script>([&record, sends, cancels](Instant, Input& input, Outbox& out) {
        if (std::holds_alternative<Tick>(input)) {
          for (const SendRequest& send : sends) out.emplace_back(send);
          for (const CallId call : cancels) out.emplace_back(CancelCall{call});
        } else if (const auto* response = std::get_if<Response>(&input)) {
          record.Add(std::to_string(response->call.value) + ": " +
                     std::to_string(response->response.status) + " " +
                     std::string(response->response.body.view()));
        } else if (const auto* data = std::get_if<StreamData>(&input)) {
          record.Add(std::to_string(data->call.value) + "< " + std::string(data->data.view()));
        } else if (const auto* end = std::get_if<StreamEnded>(&input)) {
          record.Add(std::to_string(end->call.value) + " ended");
        } else if (const auto* failed = std::get_if<CallFailed>(&input)) {
          record.Add(std::to_string(failed->call.value) + " failed " +
                     std::to_string(static_cast<int>(failed->failure)));
        }
      });
  client->wake = Instant();
  return client;
}

std::unique_ptr<Script> Server(Record& record) {
  return std::make_unique<Script>([&record](Instant, Input& input, Outbox& out) {
    if (const auto* request = std::get_if<RequestArrived>(&input)) {
      const std::string& target = request->request.target;
      const ExchangeId id = request->exchange;
      if (target.starts_with("/echo")) {
        out.emplace_back(Respond{id, {200, {}, Bytes(request->peer.user + target)}, false});
      } else if (target.starts_with("/stream") || target.starts_with("/cut")) {
        out.emplace_back(Respond{id, {200, {}, Bytes("head ")}, true});
        const Bytes shared(std::string("frame "));
        out.emplace_back(Frame{id, shared});
        out.emplace_back(Frame{id, shared});
        out.emplace_back(EndStream{id, target.starts_with("/cut")});
      } else if (target.starts_with("/open")) {
        out.emplace_back(Respond{id, {200, {}, Bytes()}, true});
        out.emplace_back(Frame{id, Bytes("first")});
      }
    } else if (std::holds_alternative<ExchangeAbandoned>(input)) {
      record.Add("abandoned");
    } else if (const auto* drained = std::get_if<StreamDrained>(&input)) {
      record.Add("drained " + std::to_string(drained->bytes));
    }
  });
}

struct World {
  explicit World(const std::vector<SendRequest>& sends, const std::vector<CallId>& cancels = {}) {
    server = executor.Add("server", {}, Server(served));
    const ActorId client =
        executor.Add("client", Peer{.user = "tester", .groups = {}}, Client(got, sends, cancels));
    executor.Connect(client, server);
    executor.Start();
  }
  Record served;
  Record got;
  Clock clock;
  Logger logger{LogLevel::kError};
  Executor executor{clock, logger};
  ActorId server;
};

TEST(Executor, AnswersCarryTheBodyAndTheServerSeesWhoAsks) {
  World world({Get(7, "/echo/a"), Get(8, "/echo/b")});
  EXPECT_THAT(world.got.Wait(2), ElementsAre("7: 200 tester/echo/a", "8: 200 tester/echo/b"));
}

TEST(Executor, AStreamIsAnsweredThenFedThenEndedAndItsBytesAreDrained) {
  SendRequest watch = Get(1, "/stream");
  watch.stream = true;
  World world({watch});
  EXPECT_THAT(world.got.Wait(5),
              ElementsAre("1: 200 ", "1< head ", "1< frame ", "1< frame ", "1 ended"));
  EXPECT_THAT(world.served.Wait(1), ElementsAre("drained 12"));
}

TEST(Executor, AStreamingAnswerToAnOrdinaryCallArrivesWhole) {
  World world({Get(1, "/stream"), Get(2, "/cut")});
  EXPECT_THAT(world.got.Wait(2), ElementsAre("1: 200 head frame frame ", "2 failed 1"));
}

TEST(Executor, AWholeAnswerToAStreamCallIsDataAndEnd) {
  SendRequest watch = Get(1, "/echo");
  watch.stream = true;
  World world({watch});
  EXPECT_THAT(world.got.Wait(3), ElementsAre("1: 200 ", "1< tester/echo", "1 ended"));
}

TEST(Executor, ACallWithoutAnswerTimesOutAndItsServerIsTold) {
  SendRequest silent = Get(1, "/silent");
  silent.timeout = Duration::Milliseconds(20);
  World world({silent, Get(2, "/echo")});
  EXPECT_THAT(world.got.Wait(2), ElementsAre("2: 200 tester/echo", "1 failed 2"));
  EXPECT_THAT(world.served.Wait(1), ElementsAre("abandoned"));
}

TEST(Executor, AnAnsweredStreamHasNoDeadline) {
  SendRequest open = Get(1, "/open");
  open.stream = true;
  open.timeout = Duration::Milliseconds(20);
  World world({open});
  EXPECT_THAT(world.got.Wait(2), ElementsAre("1: 200 ", "1< first"));
  std::this_thread::sleep_for(std::chrono::milliseconds(60));
  EXPECT_EQ(world.got.Wait(2).size(), 2U);
}

TEST(Executor, NothingIsReportedOfACancelledCall) {
  SendRequest open = Get(1, "/open");
  open.stream = true;
  World world({open, Get(2, "/echo")}, {CallId{1}});
  EXPECT_THAT(world.got.Wait(1), ElementsAre("2: 200 tester/echo"));
  EXPECT_THAT(world.served.Wait(1), ElementsAre("abandoned"));
}

TEST(Executor, WithoutAServerACallFailsAsNotSent) {
  Record got;
  Clock clock;
  Logger logger(LogLevel::kError);
  Executor executor(clock, logger);
  executor.Add("client", {}, Client(got, {Get(1, "/echo")}));
  executor.Start();
  EXPECT_THAT(got.Wait(1), ElementsAre("1 failed 0"));
}

TEST(Executor, WhatMustNotLeaveAnyMoreFailsAsNotSent) {
  SendRequest late = Get(1, "/echo");
  late.not_after = Instant{};
  SendRequest early = Get(2, "/echo");
  early.not_after = Clock().now() + Duration::Minutes(60);
  World world({late, early});
  EXPECT_THAT(world.got.Wait(2),
              ::testing::UnorderedElementsAre("1 failed 0", "2: 200 tester/echo"));
}

// Collects what goes to the network.
struct FakeNetwork final : OutputSink {
  void Take(std::vector<Output> batch) override {
    for (Output& output : batch) {
      if (auto* respond = std::get_if<Respond>(&output)) {
        record.Add(std::to_string(respond->response.status) + " " +
                   std::string(respond->response.body.view()));
      }
    }
  }
  Record record;
};

TEST(Executor, AnActorThatGivesWayIsNicerThanOthers) {
  Record record;
  const auto teller = [&record](const char* name) {
    auto actor = std::make_unique<Script>([&record, name](Instant, Input&, Outbox&) {
      const int own = getpriority(PRIO_PROCESS, static_cast<id_t>(gettid()));
      record.Add(std::string(name) + " " + std::to_string(own));
    });
    actor->wake = Instant{0};
    return actor;
  };
  const int usual = getpriority(PRIO_PROCESS, static_cast<id_t>(gettid()));
  Clock clock;
  Logger logger(LogLevel::kError);
  Executor executor(clock, logger);
  executor.Add("first", {}, teller("first"));
  executor.GiveWay(executor.Add("later", {}, teller("later")));
  executor.Start();
  EXPECT_THAT(record.Wait(2),
              ::testing::UnorderedElementsAre("first " + std::to_string(usual),
                                              "later " + std::to_string(std::min(usual + 10, 19))));
  executor.Stop();
}

TEST(Executor, AFullInboxAnswers429AndNothingIsLost) {
  FakeNetwork network;
  Clock clock;
  Logger logger(LogLevel::kError);
  Executor executor(clock, logger);
  Record served;
  const ActorId server = executor.Add("server", {}, Server(served));
  executor.SetNetwork(network);
  std::vector<Input> flood;
  for (uint64_t i = 1; i <= Executor::kInboxRequestsMax + 3; ++i) {
    RequestArrived arrived;
    arrived.exchange = {i};
    arrived.request.target = "/echo";
    flood.emplace_back(arrived);
  }
  executor.inbox(server).Post(std::move(flood));  // Nobody takes them before Start.
  const std::vector<std::string> refused = network.record.Wait(3);
  ASSERT_EQ(refused.size(), 3U);
  EXPECT_THAT(refused[0], HasSubstr("\"reason\":\"TooManyRequests\""));
  executor.Start();
  EXPECT_EQ(network.record.Wait(Executor::kInboxRequestsMax + 3).size(),
            static_cast<size_t>(Executor::kInboxRequestsMax) + 3);
}

TEST(Executor, ALargeAnswerIsHandedOverBeforeTheNextRequestIsLookedAt) {
  FakeNetwork network;
  Clock clock;
  Logger logger(LogLevel::kError);
  Executor executor(clock, logger);
  Record seen;
  auto actor = std::make_unique<Script>([&](Instant, Input& input, Outbox& out) {
    const auto* arrived = std::get_if<RequestArrived>(&input);
    if (arrived == nullptr) return;
    seen.Add(std::to_string(network.record.Wait(0).size()));
    out.emplace_back(Respond{.exchange = arrived->exchange,
                             .response = {.body = Bytes(std::string(2'000'000, 'x'))}});
  });
  const ActorId server = executor.Add("server", {}, std::move(actor));
  executor.SetNetwork(network);
  std::vector<Input> batch;
  for (uint64_t i = 1; i <= 3; ++i) batch.emplace_back(RequestArrived{.exchange = {i}});
  executor.inbox(server).Post(std::move(batch));
  executor.Start();
  EXPECT_THAT(seen.Wait(3), ElementsAre("0", "1", "2"));
}

TEST(Executor, TicksComeWhenTheyAreDueAndInputsDoNotStarveThem) {
  Clock clock;
  Logger logger(LogLevel::kError);
  Executor executor(clock, logger);
  Record record;
  const Instant start = clock.now();
  // Posts to itself for ever (an append without journal is acknowledged at once), so its inbox is
  // never empty.
  auto busy = std::make_unique<Script>([&record, start](Instant now, Input& input, Outbox& out) {
    if (std::holds_alternative<Tick>(input)) {
      record.Add(now - start >= Duration::Milliseconds(30) ? "tick" : "too early");
    } else {
      out.emplace_back(AppendJournal{});
      if (now - start > Duration::Seconds(3)) out.clear();
    }
  });
  busy->wake = start + Duration::Milliseconds(30);
  const ActorId id = executor.Add("busy", {}, std::move(busy));
  std::vector<Input> first;
  first.emplace_back(JournalAppended{});
  executor.inbox(id).Post(std::move(first));
  executor.Start();
  EXPECT_THAT(record.Wait(1), ElementsAre("tick"));
  executor.Stop();
}

// The journal of a test's folder; null, and a failed test, when it can't be opened.
std::unique_ptr<SqliteJournal> OpenJournal(const berth::testing::TempFolder& folder,
                                           Recovered& recovered) {
  auto journal = SqliteJournal::Open(folder.path() / "journal.db",
                                     {.durability = Durability::kProcess}, recovered);
  EXPECT_TRUE(journal.has_value()) << journal.error().message;
  return journal ? std::move(*journal) : nullptr;
}

TEST(Executor, AppendsAreAcknowledgedInOrderAndAreInTheFile) {
  const berth::testing::TempFolder folder("executor");
  Recovered recovered;
  {
    const auto journal = OpenJournal(folder, recovered);
    ASSERT_NE(journal, nullptr);
    Clock clock;
    Logger logger(LogLevel::kError);
    Executor executor(clock, logger);
    Record record;
    auto writer = std::make_unique<Script>([&record](Instant, Input& input, Outbox& out) {
      if (std::holds_alternative<Tick>(input)) {
        for (uint64_t i = 1; i <= 3; ++i) {
          out.emplace_back(AppendJournal{i, {{"key" + std::to_string(i), i, Bytes("value")}}});
        }
      } else if (const auto* done = std::get_if<JournalAppended>(&input)) {
        record.Add(std::to_string(done->sequence));
      }
    });
    writer->wake = Instant();
    const ActorId id = executor.Add("writer", {}, std::move(writer));
    executor.SetJournal(id, *journal);
    executor.Start();
    EXPECT_THAT(record.Wait(3), ElementsAre("1", "2", "3"));
    executor.Stop();
    EXPECT_EQ(executor.journal_stats().records_count, 3U);
  }
  ASSERT_NE(OpenJournal(folder, recovered), nullptr);
  EXPECT_EQ(recovered.records.size(), 3U);
  EXPECT_EQ(recovered.last_revision, 3U);
}

// Method: a disk without room for the second of three appends, one after the other.
TEST(Executor, AnAppendWithoutRoomIsToldAndTheNextIsTried) {
  const berth::testing::TempFolder folder("executor-full");
  WatchedVfs disk([](std::string_view, const std::string&) {});
  Recovered recovered;
  {
    const auto journal = OpenJournal(folder, recovered);
    ASSERT_NE(journal, nullptr);
    Clock clock;
    Logger logger(LogLevel::kError);
    Executor executor(clock, logger);
    Record record;
    const auto append = [](uint64_t number, Outbox& out) {
      out.emplace_back(
          AppendJournal{number, {{"key" + std::to_string(number), number, Bytes("value")}}});
    };
    auto writer = std::make_unique<Script>([&](Instant, Input& input, Outbox& out) {
      if (std::holds_alternative<Tick>(input)) {
        append(1, out);
      } else if (const auto* done = std::get_if<JournalAppended>(&input)) {
        record.Add("durable " + std::to_string(done->sequence));
        if (done->sequence > 1) return;
        disk.LimitWrites(0);
        append(2, out);
      } else if (const auto* refused = std::get_if<JournalRefused>(&input)) {
        record.Add("no room for " + std::to_string(refused->sequence));
        disk.LiftLimit();
        append(3, out);
      }
    });
    writer->wake = Instant();
    const ActorId id = executor.Add("writer", {}, std::move(writer));
    executor.SetJournal(id, *journal);
    executor.Start();
    EXPECT_THAT(record.Wait(3), ElementsAre("durable 1", "no room for 2", "durable 3"));
    executor.Stop();
  }
  ASSERT_NE(OpenJournal(folder, recovered), nullptr);
  EXPECT_EQ(recovered.records.size(), 2U);
}

// An actor with a long batch is told what its journal has done before the batch is over. Method: in
// the middle of the batch the actor waits until the journal has written.
TEST(Executor, AppendsAreAcknowledgedBetweenTheStepsOfABatch) {
  constexpr uint64_t kInputs = 1000;
  const berth::testing::TempFolder folder("executor-batch");
  Recovered recovered;
  const auto journal = OpenJournal(folder, recovered);
  ASSERT_NE(journal, nullptr);
  Clock clock;
  Logger logger(LogLevel::kError);
  Executor executor(clock, logger);
  Record record;
  uint64_t steps = 0;
  auto server = std::make_unique<Script>([&](Instant, Input& input, Outbox& out) {
    if (std::holds_alternative<JournalAppended>(input)) {
      record.Add(steps < kInputs ? "within" : "after");
      return;
    }
    ++steps;
    if (steps == 1) out.emplace_back(AppendJournal{1, {{"key", 1, Bytes("value")}}});
    while (steps == kInputs / 2 && executor.journal_stats().groups_count == 0) {
      std::this_thread::yield();
    }
  });
  const ActorId id = executor.Add("server", {}, std::move(server));
  executor.SetJournal(id, *journal);
  std::vector<Input> batch;
  for (uint64_t i = 1; i <= kInputs; ++i) batch.emplace_back(RequestArrived{.exchange = {i}});
  executor.inbox(id).Post(std::move(batch));
  executor.Start();
  EXPECT_THAT(record.Wait(1), ElementsAre("within"));
  executor.Stop();
}

TEST(Clock, NeverGoesBack) {
  const Clock clock;
  Instant last = clock.now();
  for (int i = 0; i < 1000; ++i) {
    const Instant now = clock.now();
    ASSERT_GE(now, last);
    last = now;
  }
  EXPECT_GT(last, Instant::FromSeconds(1'700'000'000));
}

}  // namespace
}  // namespace berth::env::os
