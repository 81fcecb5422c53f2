#include "env/os/executor.h"

#include <pthread.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <deque>
#include <map>
#include <optional>
#include <thread>
#include <unordered_map>
#include <utility>

#include "base/check.h"
#include "base/mutex.h"
#include "env/os/sqlite_journal.h"

namespace berth::env::os {
namespace {

constexpr Duration kTickOverdueMax = Duration::Milliseconds(20);
// Outputs are handed over at least this often within a long batch, so that others can start on
// them.
constexpr int kStepsPerHandOver = 128;
// An answer so large is handed over at once: a batch of them would be all in memory before the
// first is sent, or cut for want of a client that takes it.
constexpr size_t kLargeAnswerBytes = 1024 * 1024;
constexpr size_t kGroupTimesKept = 4096;
constexpr int kExitJournalFailed = 74;  // EX_IOERR of sysexits.h.
constexpr int kGivesWayNice = 10;  // A tenth of what others get, while all want more than there is.
constexpr int kActorsMax = 255;    // One byte of an ExchangeId names the client; 0 is the network.

template <typename... Ts>
struct Overloaded : Ts... {
  using Ts::operator()...;
};

uint64_t ExchangeOf(int index, CallId call) {
  CHECK_LE(call.value, kExchangeNumberMax);
  return (static_cast<uint64_t>(index + 1) << kExchangeOriginShift) | call.value;
}

int ClientOf(ExchangeId exchange) {
  return static_cast<int>(exchange.value >> kExchangeOriginShift) - 1;
}

CallId CallOf(ExchangeId exchange) { return CallId{exchange.value & kExchangeNumberMax}; }

HttpResponse TooManyRequests() {
  static constexpr char kBody[] =
      R"({"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure",)"
      R"("message":"too many requests, please try again later","reason":"TooManyRequests",)"
      R"("details":{"retryAfterSeconds":1},"code":429})";
  return HttpResponse{.status = 429,
                      .headers = {{"content-type", "application/json"}, {"retry-after", "1"}},
                      .body = Bytes(std::string(kBody))};
}

Duration ThreadCpu(std::thread& thread) {
  clockid_t clock{};
  timespec time{};
  if (!thread.joinable() || pthread_getcpuclockid(thread.native_handle(), &clock) != 0) return {};
  if (clock_gettime(clock, &time) != 0) return {};
  return Duration::Seconds(time.tv_sec) + Duration::Nanoseconds(time.tv_nsec);
}

void NameThread(std::thread& thread, const std::string& name) {
  pthread_setname_np(thread.native_handle(), name.substr(0, 15).c_str());
}

// A call that an in-process client has on its way.
struct PendingCall {
  bool stream = false;
  bool streaming = false;  // Answered with 200: StreamData follows.
  // A streamed answer to a call that wanted it whole, until its end.
  std::optional<HttpResponse> collected;
  std::string body;
};

class ActorThread;

// The journal's queue and thread.
class JournalThread {
 public:
  JournalThread(const Clock& clock, Logger& logger, SqliteJournal& journal)
      : clock_(clock), logger_(logger), journal_(journal) {}

  void Take(ActorThread& from, std::vector<AppendJournal> appends);
  void Start() {
    thread_ = std::thread([this] { Run(); });
    NameThread(thread_, "journal");
  }
  void Stop();
  JournalStats stats();
  SqliteJournal& journal() { return journal_; }

 private:
  void Run();
  void Write(std::vector<std::pair<ActorThread*, AppendJournal>>& group);
  void TellRoom(bool refused);

  const Clock& clock_;
  Logger& logger_;
  SqliteJournal& journal_;
  std::thread thread_;
  bool full_ = false;  // The thread's own: the last append found no room.
  Mutex mutex_;
  CondVar wake_;
  std::vector<std::pair<ActorThread*, AppendJournal>> queue_ GUARDED_BY(mutex_);
  bool stop_ GUARDED_BY(mutex_) = false;
  JournalStats stats_ GUARDED_BY(mutex_);
  std::deque<int64_t> group_times_ns_ GUARDED_BY(mutex_);
};

}  // namespace

struct Executor::Impl {
  Impl(const Clock& c, Logger& l);
  ~Impl();
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  void Stop();

  const Clock& clock;
  Logger& logger;
  std::vector<std::unique_ptr<ActorThread>> actors;
  std::vector<std::unique_ptr<JournalThread>> journals;
  OutputSink* network = nullptr;
  bool running = false;
};

namespace {

// One actor, its inbox and its thread. What is not guarded belongs to the thread, once it runs.
class ActorThread final : public InputSink {
 public:
  ActorThread(Executor::Impl& owner, int index, std::string name, Peer peer)
      : owner_(owner), index_(index), name_(std::move(name)), peer_(std::move(peer)) {}

  void Post(std::vector<Input> batch) override;
  // What the journal has done. It is told between two steps of a batch, before what else waits:
  // the journal gets its next group, and those who wait their answers, while the batch goes on.
  void PostAppended(std::vector<Input> appended);
  // Answers of the in-process server.
  void PostAnswers(std::vector<Output> answers);

  void Start();
  void RequestStop();
  void Join() {
    if (thread_.joinable()) thread_.join();
  }
  ActorStats stats();

  // Set before Start.
  std::unique_ptr<Actor> actor;
  ActorThread* server = nullptr;
  OutputSink* transport = nullptr;
  JournalThread* journal = nullptr;
  bool gives_way = false;

 private:
  void Run();
  // Waits until there is work or `until`. False: stop.
  bool Fetch(Instant until);
  bool RunBatch();
  void TakeAppended();
  void Step(Input input);
  void Answer(Output output);
  void AnswerRespond(Respond respond);
  void AnswerFrame(Frame frame);
  void AnswerEnd(EndStream end);
  [[nodiscard]] bool HasLargeAnswer() const;
  void TickWhenDue(bool idle);
  void ExpireCalls();
  [[nodiscard]] Instant NextDeadline();
  void HandOver();
  void Send(SendRequest send);
  void Cancel(CancelCall cancel);
  void ToClient(ExchangeId exchange, Output output);

  // Immutable after construction.
  Executor::Impl& owner_;
  const int index_;
  const std::string name_;
  const Peer peer_;

  std::thread thread_;
  std::atomic<uint64_t> inputs_count_ = 0;
  std::atomic<uint64_t> ticks_count_ = 0;
  std::atomic<bool> appended_waits_ = false;  // A hint: appended_ is not empty.

  Mutex mutex_;
  CondVar wake_;
  std::vector<Input> inbox_ GUARDED_BY(mutex_);
  std::vector<Output> answers_ GUARDED_BY(mutex_);
  std::vector<Input> appended_ GUARDED_BY(mutex_);
  int requests_waiting_ GUARDED_BY(mutex_) = 0;
  bool waiting_ GUARDED_BY(mutex_) = false;
  bool stop_ GUARDED_BY(mutex_) = false;

  // The thread's own.
  std::vector<Input> batch_;
  std::vector<Output> answer_batch_;
  Outbox outbox_;
  std::optional<Instant> due_since_;
  std::unordered_map<uint64_t, PendingCall> calls_;
  // Per length of timeout the calls in the order they were sent, so that the first deadline of each
  // is in front.
  std::map<int64_t, std::deque<std::pair<Instant, CallId>>> deadlines_;
  std::vector<Input> to_server_;
  std::vector<Output> to_transport_;
  std::vector<Output> to_network_;
  std::vector<std::vector<Output>> to_clients_;
  std::vector<AppendJournal> to_journal_;
  std::vector<Input> to_self_;
};

void ActorThread::Post(std::vector<Input> batch) {
  if (batch.empty()) return;
  std::vector<ExchangeId> refused;
  {
    MutexLock lock(mutex_);
    for (Input& input : batch) {
      if (const auto* request = std::get_if<RequestArrived>(&input)) {
        if (requests_waiting_ >= Executor::kInboxRequestsMax) {
          refused.push_back(request->exchange);
          continue;
        }
        ++requests_waiting_;
      }
      inbox_.push_back(std::move(input));
    }
    if (waiting_) wake_.NotifyOne();
  }
  for (const ExchangeId exchange : refused) {
    std::vector<Output> answer;
    answer.emplace_back(Respond{.exchange = exchange, .response = TooManyRequests()});
    const int client = ClientOf(exchange);
    if (client >= 0) {
      owner_.actors[static_cast<size_t>(client)]->PostAnswers(std::move(answer));
    } else if (owner_.network != nullptr) {
      owner_.network->Take(std::move(answer));
    }
  }
}

void ActorThread::PostAppended(std::vector<Input> appended) {
  MutexLock lock(mutex_);
  appended_.insert(appended_.end(), std::make_move_iterator(appended.begin()),
                   std::make_move_iterator(appended.end()));
  appended_waits_.store(true, std::memory_order_relaxed);
  if (waiting_) wake_.NotifyOne();
}

void ActorThread::PostAnswers(std::vector<Output> answers) {
  MutexLock lock(mutex_);
  if (answers_.empty()) {
    answers_ = std::move(answers);
  } else {
    answers_.insert(answers_.end(), std::make_move_iterator(answers.begin()),
                    std::make_move_iterator(answers.end()));
  }
  if (waiting_) wake_.NotifyOne();
}

void ActorThread::Start() {
  to_clients_.resize(owner_.actors.size());
  thread_ = std::thread([this] { Run(); });
  NameThread(thread_, name_);
}

void ActorThread::RequestStop() {
  MutexLock lock(mutex_);
  stop_ = true;
  wake_.NotifyOne();
}

ActorStats ActorThread::stats() {
  return ActorStats{.name = name_,
                    .inputs_count = inputs_count_.load(std::memory_order_relaxed),
                    .ticks_count = ticks_count_.load(std::memory_order_relaxed),
                    .cpu = ThreadCpu(thread_)};
}

void ActorThread::Run() {
  if (gives_way) {
    // Linux keeps a niceness per thread. Without it the actor runs as the others do.
    const int own = getpriority(PRIO_PROCESS, static_cast<id_t>(gettid()));
    setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), own + kGivesWayNice);
  }
  while (Fetch(std::min(actor->wake_at(), NextDeadline()))) {
    const bool idle = RunBatch();
    ExpireCalls();
    TickWhenDue(idle);
    HandOver();
  }
}

bool ActorThread::Fetch(Instant until) {
  MutexLock lock(mutex_);
  while (!stop_ && inbox_.empty() && answers_.empty() && appended_.empty()) {
    const Duration left = until - owner_.clock.now();
    if (left <= Duration()) break;
    waiting_ = true;
    if (until == Instant::Never()) {
      wake_.Wait(mutex_);
    } else {
      wake_.WaitFor(mutex_, std::chrono::nanoseconds(left.ns));
    }
    waiting_ = false;
  }
  batch_.swap(inbox_);
  answer_batch_.swap(answers_);
  requests_waiting_ = 0;
  return !stop_;
}

// True when no input waits afterwards, as far as the last look at the inbox knows.
bool ActorThread::RunBatch() {
  int steps = 0;
  const auto after_step = [&] {
    TakeAppended();
    if (++steps % kStepsPerHandOver != 0 && !HasLargeAnswer()) return;
    TickWhenDue(/*idle=*/false);
    HandOver();
  };
  TakeAppended();
  const bool had_any = !batch_.empty() || !answer_batch_.empty();
  for (Output& answer : answer_batch_) {
    Answer(std::move(answer));
    after_step();
  }
  answer_batch_.clear();
  for (Input& input : batch_) {
    Step(std::move(input));
    after_step();
  }
  batch_.clear();
  if (!had_any) return true;
  HandOver();
  MutexLock lock(mutex_);
  return inbox_.empty() && answers_.empty();
}

// The last step's is the last output.
bool ActorThread::HasLargeAnswer() const {
  const auto* respond = outbox_.empty() ? nullptr : std::get_if<Respond>(&outbox_.back());
  return respond != nullptr && respond->response.body.size() >= kLargeAnswerBytes;
}

void ActorThread::TakeAppended() {
  if (!appended_waits_.load(std::memory_order_relaxed)) return;
  std::vector<Input> appended;
  {
    MutexLock lock(mutex_);
    appended.swap(appended_);
    appended_waits_.store(false, std::memory_order_relaxed);
  }
  for (Input& each : appended) Step(std::move(each));
  HandOver();
}

void ActorThread::Step(Input input) {
  inputs_count_.fetch_add(1, std::memory_order_relaxed);
  actor->Step(owner_.clock.now(), std::move(input), outbox_);
}

void ActorThread::TickWhenDue(bool idle) {
  const Instant now = owner_.clock.now();
  if (actor->wake_at() > now) {
    due_since_.reset();
    return;
  }
  if (!idle) {
    if (!due_since_) due_since_ = now;
    if (now - *due_since_ < kTickOverdueMax) return;
  }
  due_since_.reset();
  ticks_count_.fetch_add(1, std::memory_order_relaxed);
  actor->Step(now, Tick{}, outbox_);
}

void ActorThread::Answer(Output output) {
  std::visit(Overloaded{[this](Respond& respond) { AnswerRespond(std::move(respond)); },
                        [this](Frame& frame) { AnswerFrame(std::move(frame)); },
                        [this](EndStream& end) { AnswerEnd(end); }, [](auto&) { CHECK(false); }},
             output);
}

void ActorThread::AnswerRespond(Respond respond) {
  const CallId call = CallOf(respond.exchange);
  const auto found = calls_.find(call.value);
  if (found == calls_.end()) return;
  PendingCall& pending = found->second;
  if (pending.stream && respond.response.status == 200) {
    Bytes first = std::exchange(respond.response.body, Bytes());
    const bool more = respond.stream;
    pending.streaming = true;
    if (!more) calls_.erase(found);
    Step(Response{.call = call, .response = std::move(respond.response)});
    if (!first.empty()) Step(StreamData{.call = call, .data = std::move(first)});
    if (!more) Step(StreamEnded{.call = call});
    return;
  }
  if (respond.stream) {
    pending.body = respond.response.body.view();
    pending.collected = std::move(respond.response);
    return;
  }
  calls_.erase(found);
  Step(Response{.call = call, .response = std::move(respond.response)});
}

void ActorThread::AnswerFrame(Frame frame) {
  const CallId call = CallOf(frame.exchange);
  const auto found = calls_.find(call.value);
  if (found == calls_.end()) return;
  const uint64_t bytes = frame.data.size();
  if (found->second.streaming) {
    Step(StreamData{.call = call, .data = std::move(frame.data)});
  } else {
    found->second.body += frame.data.view();
  }
  if (!to_server_.empty()) {
    auto* last = std::get_if<StreamDrained>(&to_server_.back());
    if (last != nullptr && last->exchange == frame.exchange) {
      last->bytes += bytes;
      return;
    }
  }
  to_server_.emplace_back(StreamDrained{.exchange = frame.exchange, .bytes = bytes});
}

void ActorThread::AnswerEnd(EndStream end) {
  const CallId call = CallOf(end.exchange);
  const auto found = calls_.find(call.value);
  if (found == calls_.end()) return;
  PendingCall pending = std::move(found->second);
  calls_.erase(found);
  if (pending.streaming) {
    Step(StreamEnded{.call = call});
  } else if (end.abort || !pending.collected) {
    Step(CallFailed{.call = call, .failure = CallFailure::kLost});
  } else {
    pending.collected->body = Bytes(std::move(pending.body));
    Step(Response{.call = call, .response = std::move(*pending.collected)});
  }
}

Instant ActorThread::NextDeadline() {
  Instant next = Instant::Never();
  for (auto& [timeout, queue] : deadlines_) {
    while (!queue.empty()) {
      const auto found = calls_.find(queue.front().second.value);
      if (found != calls_.end() && !found->second.streaming) break;
      queue.pop_front();
    }
    if (!queue.empty()) next = std::min(next, queue.front().first);
  }
  return next;
}

void ActorThread::ExpireCalls() {
  const Instant now = owner_.clock.now();
  if (NextDeadline() > now) return;
  for (auto& [timeout, queue] : deadlines_) {
    while (!queue.empty() && queue.front().first <= now) {
      const CallId call = queue.front().second;
      queue.pop_front();
      const auto found = calls_.find(call.value);
      if (found == calls_.end() || found->second.streaming) continue;
      calls_.erase(found);
      to_server_.emplace_back(ExchangeAbandoned{{ExchangeOf(index_, call)}});
      Step(CallFailed{.call = call, .failure = CallFailure::kTimeout});
    }
  }
}

void ActorThread::Send(SendRequest send) {
  if (transport != nullptr) {
    to_transport_.emplace_back(std::move(send));
    return;
  }
  if (server == nullptr) {
    to_self_.emplace_back(CallFailed{.call = send.call, .failure = CallFailure::kNotSent});
    return;
  }
  const Instant now = owner_.clock.now();
  if (now >= send.not_after) {
    to_self_.emplace_back(CallFailed{.call = send.call, .failure = CallFailure::kNotSent});
    return;
  }
  const Instant deadline = now + send.timeout;
  const auto [pending, fresh] = calls_.try_emplace(send.call.value);
  CHECK(fresh);
  pending->second.stream = send.stream;
  deadlines_[send.timeout.ns].emplace_back(deadline, send.call);
  to_server_.emplace_back(RequestArrived{.exchange = {ExchangeOf(index_, send.call)},
                                         .peer = peer_,
                                         .request = std::move(send.request)});
}

void ActorThread::Cancel(CancelCall cancel) {
  if (transport != nullptr) {
    to_transport_.emplace_back(cancel);
    return;
  }
  if (calls_.erase(cancel.call.value) == 0) return;
  to_server_.emplace_back(ExchangeAbandoned{{ExchangeOf(index_, cancel.call)}});
}

void ActorThread::ToClient(ExchangeId exchange, Output output) {
  const int client = ClientOf(exchange);
  if (client < 0) {
    to_network_.push_back(std::move(output));
    return;
  }
  CHECK_LT(static_cast<size_t>(client), to_clients_.size());
  to_clients_[static_cast<size_t>(client)].push_back(std::move(output));
}

void ActorThread::HandOver() {
  for (Output& output : outbox_) {
    std::visit(Overloaded{[this](SendRequest& send) { Send(std::move(send)); },
                          [this](CancelCall& cancel) { Cancel(cancel); },
                          [this](Respond& respond) {
                            const ExchangeId exchange = respond.exchange;
                            ToClient(exchange, std::move(respond));
                          },
                          [this](Frame& frame) {
                            const ExchangeId exchange = frame.exchange;
                            ToClient(exchange, std::move(frame));
                          },
                          [this](EndStream& end) { ToClient(end.exchange, end); },
                          [this](AppendJournal& append) {
                            if (journal != nullptr) {
                              to_journal_.push_back(std::move(append));
                            } else {
                              to_self_.emplace_back(JournalAppended{append.sequence});
                            }
                          },
                          [this](Log& log) { owner_.logger.Write(log.level, name_, log.text); }},
               output);
  }
  outbox_.clear();
  if (!to_server_.empty()) server->Post(std::exchange(to_server_, {}));
  if (!to_transport_.empty()) transport->Take(std::exchange(to_transport_, {}));
  if (!to_journal_.empty()) journal->Take(*this, std::exchange(to_journal_, {}));
  if (!to_network_.empty()) {
    std::vector<Output> batch = std::exchange(to_network_, {});
    if (owner_.network != nullptr) owner_.network->Take(std::move(batch));
  }
  for (size_t i = 0; i < to_clients_.size(); ++i) {
    if (!to_clients_[i].empty()) owner_.actors[i]->PostAnswers(std::exchange(to_clients_[i], {}));
  }
  if (!to_self_.empty()) Post(std::exchange(to_self_, {}));
}

void JournalThread::Take(ActorThread& from, std::vector<AppendJournal> appends) {
  MutexLock lock(mutex_);
  for (AppendJournal& append : appends) queue_.emplace_back(&from, std::move(append));
  wake_.NotifyOne();
}

void JournalThread::Stop() {
  {
    MutexLock lock(mutex_);
    stop_ = true;
    wake_.NotifyOne();
  }
  if (thread_.joinable()) thread_.join();
}

void JournalThread::Run() {
  for (;;) {
    std::vector<std::pair<ActorThread*, AppendJournal>> group;
    {
      MutexLock lock(mutex_);
      while (queue_.empty() && !stop_) wake_.Wait(mutex_);
      if (queue_.empty()) return;
      group.swap(queue_);
    }
    Write(group);
  }
}

void JournalThread::Write(std::vector<std::pair<ActorThread*, AppendJournal>>& group) {
  const Instant start = clock_.now();
  std::vector<AppendJournal> appends;
  uint64_t records_count = 0;
  for (auto& [from, append] : group) {
    records_count += append.records.size();
    appends.push_back(std::move(append));
  }
  const Result<Appended> outcome = journal_.Append(appends);
  if (!outcome) {
    // What was acknowledged is in the file; going on would acknowledge what is not.
    logger_.Write(LogLevel::kError, "journal", outcome.error().message + "; berth ends");
    std::_Exit(kExitJournalFailed);
  }
  const bool refused = *outcome == Appended::kNoRoom;
  TellRoom(refused);
  // All of the group at once: woken by the first, the actor would take them one by one.
  for (size_t i = 0; i < group.size();) {
    ActorThread* const to = group[i].first;
    std::vector<Input> done;
    for (; i < group.size() && group[i].first == to; ++i) {
      const uint64_t sequence = appends[i].sequence;
      done.push_back(refused ? Input(JournalRefused{sequence}) : Input(JournalAppended{sequence}));
    }
    to->PostAppended(std::move(done));
  }
  MutexLock lock(mutex_);
  ++stats_.groups_count;
  stats_.records_count += records_count;
  group_times_ns_.push_back((clock_.now() - start).ns);
  if (group_times_ns_.size() > kGroupTimesKept) group_times_ns_.pop_front();
}

void JournalThread::TellRoom(bool refused) {
  if (refused == full_) return;
  full_ = refused;
  if (refused) {
    logger_.Write(LogLevel::kError, "journal",
                  "no space left on the disk: writes are refused until there is room");
  } else {
    logger_.Write(LogLevel::kInfo, "journal", "there is room on the disk again: writes go on");
  }
}

JournalStats JournalThread::stats() {
  MutexLock lock(mutex_);
  JournalStats stats = stats_;
  std::vector<int64_t> times(group_times_ns_.begin(), group_times_ns_.end());
  if (!times.empty()) {
    std::ranges::nth_element(times, times.begin() + static_cast<ptrdiff_t>(times.size() / 2));
    stats.group_p50 = Duration::Nanoseconds(times[times.size() / 2]);
  }
  stats.cpu = ThreadCpu(thread_);
  return stats;
}

}  // namespace

Executor::Impl::Impl(const Clock& c, Logger& l) : clock(c), logger(l) {}
Executor::Impl::~Impl() = default;

void Executor::Impl::Stop() {
  if (!running) return;
  running = false;
  for (const auto& actor : actors) actor->RequestStop();
  for (const auto& actor : actors) actor->Join();
  for (const auto& journal : journals) journal->Stop();
}

Executor::Executor(const Clock& clock, Logger& logger)
    : impl_(std::make_unique<Impl>(clock, logger)) {}
Executor::~Executor() { impl_->Stop(); }

ActorId Executor::Add(std::string name, Peer peer, std::unique_ptr<Actor> actor) {
  CHECK(!impl_->running);
  CHECK(actor != nullptr);
  const int index = static_cast<int>(impl_->actors.size());
  CHECK_LT(index, kActorsMax);
  impl_->actors.push_back(
      std::make_unique<ActorThread>(*impl_, index, std::move(name), std::move(peer)));
  impl_->actors.back()->actor = std::move(actor);
  return ActorId{index};
}

void Executor::Connect(ActorId client, ActorId server) {
  CHECK(!impl_->running);
  impl_->actors.at(static_cast<size_t>(client.index))->server =
      impl_->actors.at(static_cast<size_t>(server.index)).get();
}

void Executor::Connect(ActorId client, OutputSink& transport) {
  CHECK(!impl_->running);
  impl_->actors.at(static_cast<size_t>(client.index))->transport = &transport;
}

void Executor::SetNetwork(OutputSink& network) {
  CHECK(!impl_->running);
  impl_->network = &network;
}

void Executor::SetJournal(ActorId actor, SqliteJournal& journal) {
  CHECK(!impl_->running);
  impl_->journals.push_back(std::make_unique<JournalThread>(impl_->clock, impl_->logger, journal));
  impl_->actors.at(static_cast<size_t>(actor.index))->journal = impl_->journals.back().get();
}

void Executor::GiveWay(ActorId actor) {
  CHECK(!impl_->running);
  impl_->actors.at(static_cast<size_t>(actor.index))->gives_way = true;
}

InputSink& Executor::inbox(ActorId actor) {
  return *impl_->actors.at(static_cast<size_t>(actor.index));
}

void Executor::Start() {
  CHECK(!impl_->running);
  impl_->running = true;
  for (const auto& journal : impl_->journals) journal->Start();
  for (const auto& actor : impl_->actors) actor->Start();
}

void Executor::Stop() { impl_->Stop(); }

std::vector<ActorStats> Executor::stats() const {
  std::vector<ActorStats> all;
  for (const auto& actor : impl_->actors) all.push_back(actor->stats());
  return all;
}

JournalStats Executor::journal_stats() const {
  return impl_->journals.empty() ? JournalStats() : impl_->journals.front()->stats();
}

}  // namespace berth::env::os
