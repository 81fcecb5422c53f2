#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/hash.h"
#include "base/prng.h"
#include "base/time.h"
#include "client/call_places.h"
#include "client/request.h"
#include "client/watch.h"
#include "env/actor.h"

// The Kubernetes client that an actor embeds: list-watches and calls with outcomes.
//
// It is a value: copying it forks it, AddTo() hashes it, and it holds no callback. The actor hands
// it the inputs it gets and gets events back; requests leave through the actor's outbox.
//
//   void Step(Instant now, env::Input input, env::Outbox& out) {
//     // Takes Tick, Response, StreamData, StreamEnded, CallFailed.
//     client_.Handle(now, input, out, events_);
//     for (client::Event& event : events_) ...
//   }
//   Instant wake_at() const { return std::min(client_.wake_at(), mine_); }
namespace berth::client {

// A call has ended; reported exactly once per Call() that was not cancelled.
struct CallDone {
  env::CallId call = {};
  Outcome outcome = Outcome::kUnknown;
  env::HttpResponse response = {};  // Status 0 when there was none.
  std::optional<env::CallFailure> failure = {};
  std::string why = {};  // Of the failure; may be empty.
  // What was asked; the target is empty of one that was never sent.
  env::Method method = env::Method::kGet;
  std::string target = {};
};
// Why it is not kDone, for people: the server's message, or what stood in the way to it.
[[nodiscard]] std::string WhyOf(const CallDone& done);

// After a WatchTrouble that there was no answer: all list-watches have one again.
struct ServerAnswers {};

using Event = std::variant<ObjectEvent, Synced, WatchTrouble, CallDone, ServerAnswers>;

struct Options {
  std::string user_agent = "berth";
  // Put before every path: a server URL's own path. Without a slash at its end.
  std::string base_path = {};
  std::string host = {};  // HOST:PORT, for metrics alone.
  uint64_t seed = 1;      // Of the jitter.
  // Calls on their way at once. The classes below kHigh may fill three quarters and half of it, so
  // that a burst of events never stands before a binding. 128 at 10 ms a write are 12,800 writes/s.
  int64_t calls_in_flight_max = 128;
  // Beside it, of calls that hang (call_places.h). REQUIRES: the transport has room for both, as
  // what waits there would seem to hang.
  int64_t calls_apart_max = 0;
  // Calls that wait for a place in the window. One more is answered kRefused, unsent. Of flows that
  // hang as many wait as are called for.
  int64_t calls_queued_max = 65'536;
  Duration backoff_initial = Duration::Milliseconds(200);
  Duration backoff_max = Duration::Seconds(30);
  // A list's page; kube-apiserver serves larger ones at the price of memory.
  int64_t page_limit = 500;
  // A watch is renewed after a time between this and twice this, as client-go's.
  Duration watch_timeout = Duration::Seconds(300);
  // Ids of calls start here, so that two clients in one actor don't meet.
  uint64_t first_call = 1;
  // Test code only: the defect "watch resumed after 410 without relist"
  // (docs/design/0004-simulator.md).
  bool planted_resume_after_gone = false;
};

// How long attempts of calls took that were answered, by client-go's bounds
// (rest_client_request_duration_seconds): from the step that sent to the one that heard.
struct AnswerTimes {
  static constexpr std::array<int64_t, 12> kBoundsMs = {
      5, 25, 100, 250, 500, 1'000, 2'000, 4'000, 8'000, 15'000, 30'000, 60'000};
  std::array<uint64_t, kBoundsMs.size() + 1> counts{};  // Each of its own bucket.
  int64_t sum_ns = 0;

  void Add(Duration took);
};

class Client {
 public:
  // How many attempts were answered, by status and method; without an answer: by status 0.
  using AnswerCounts = std::map<std::pair<int, env::Method>, uint64_t>;

  explicit Client(Options options);

  // Starts a list-watch. It begins with the next Handle(), for which wake_at() asks. The id may be
  // one of a list-watch that was stopped.
  WatchId Watch(WatchOptions options);
  // Ends a list-watch: nothing more is told of it, nor that its objects are gone.
  void StopWatch(Instant now, WatchId watch, env::Outbox& out);

  // Queues a call and sends it if the window has room.
  //
  // One that is answered 429, and takes that for throttling, is repeated after the time that its
  // Retry-After asks for, or a backoff. Where the server itself is busy others wait, too, for at
  // most 32 s: all with a Retry-After, else those of its class and below it. It says so in plain
  // text (API priority and fairness; one user's calls are one flow). A Status is what a webhook or
  // a limit of events says of one write: of events the others wait, as all may be limited; else
  // nobody does.
  env::CallId Call(Instant now, Request request, env::Outbox& out);

  // Forgets a call that waits to be sent, or to be sent again: true, nothing came of it (a write is
  // repeated only after an attempt without effect), and nothing is reported of it. False, and
  // nothing changed, when it is under way or over.
  bool CancelQueued(env::CallId call);

  // An attempt that is under way will be the call's last: its end is reported, whatever it is.
  void DontRepeat(env::CallId call);

  // From here on no write leaves, until AllowWrites(): those that wait to be sent, or to be sent
  // again, and each that is called for meanwhile end as never sent; those that are under way are
  // not repeated. Reads go on. How many writes are under way. O(calls).
  size_t StopWrites();
  void AllowWrites() { writes_stopped_ = false; }
  // Of the writes that leave from here on no byte does at `until` or later, wherever they wait
  // (SendRequest::not_after): so StopWrites() then has stopped those, too, that were on their way
  // to a connection.
  void LetWritesLeaveUntil(Instant until) { writes_leave_until_ = until; }
  [[nodiscard]] Instant writes_leave_until() const { return writes_leave_until_; }
  [[nodiscard]] size_t writes_in_flight() const;  // O(calls).

  // Lists again from the beginning, whatever the list-watch is doing: once watch().relisting() is
  // over, what is known is at least as new as the server was at this call.
  void Relist(Instant now, WatchId watch, env::Outbox& out);

  // Takes one input and appends what it means. Inputs of calls that are not this client's are left
  // alone. Cost of a watch event: a few hundred nanoseconds plus one copy of the object's bytes.
  void Handle(Instant now, const env::Input& input, env::Outbox& out, std::vector<Event>& events);

  // What a GET of one object showed, as if the list-watch had: older events of it that are still on
  // their way will tell nothing, and the watch goes on where it was. Nothing happens while the
  // list-watch has not synced, or when the object is not newer than what is known.
  void Learn(Instant now, WatchId watch, std::string_view object, std::vector<Event>& events);

  // When Handle(Tick) is wanted. Never() when nothing is due.
  [[nodiscard]] Instant wake_at() const;

  // Whether every watch has been listed once, and the one: events until then describe a past that
  // is still being read.
  [[nodiscard]] bool synced() const;
  [[nodiscard]] bool synced(WatchId watch) const;
  [[nodiscard]] bool absent(WatchId watch) const;

  [[nodiscard]] size_t calls_queued() const;
  // Without those of flows that hang.
  [[nodiscard]] size_t calls_queued(Priority priority) const;
  [[nodiscard]] size_t calls_in_flight() const { return places_.under_way(); }
  // For metrics; as all that is only shown, it is not part of the hash.
  [[nodiscard]] const AnswerCounts& answers() const { return answers_; }
  [[nodiscard]] const std::map<env::Method, AnswerTimes>& answer_times() const {
    return answer_times_;
  }
  [[nodiscard]] const Options& options() const { return options_; }
  [[nodiscard]] const WatchState& watch(WatchId id) const { return watches_[id.value]; }
  // Those that were ever begun: their ids are below it.
  [[nodiscard]] uint32_t watches_count() const { return static_cast<uint32_t>(watches_.size()); }

  void AddTo(Hasher& hasher) const;

 private:
  enum class Place : uint8_t { kQueued, kParked, kInFlight, kDelayed };
  struct Pending {
    Request request;
    Place place = Place::kQueued;
    Instant give_up;        // After this nothing is retried.
    uint32_t attempts = 0;  // Sent so often.
    Instant at;             // For kDelayed: when it is queued again.
    Instant sent = {};      // For kInFlight; only shown, and not part of the hash.
  };

  void EndUnsent(uint64_t id);
  void NameCalls(HashNames& names) const;
  [[nodiscard]] bool FrontMoves(size_t queue) const;
  // Whether one of the class, queued or parked, may go now.
  [[nodiscard]] bool ItsTurn(size_t queue) const;
  // And which; parks what hangs before it.
  [[nodiscard]] std::optional<uint64_t> NextOf(size_t queue);
  [[nodiscard]] bool MayLeave(uint64_t id, uint64_t fresh) const;
  void OnTick(Instant now, env::Outbox& out, std::vector<Event>& events);
  void OnResponse(Instant now, const env::Response& response, std::vector<Event>& events);
  void OnFailed(Instant now, const env::CallFailed& failed, std::vector<Event>& events);
  void Retry(Instant now, uint64_t id, Duration delay);
  // Nothing of the class or below it leaves before that.
  void Hold(Priority priority, Instant until);
  void Finish(uint64_t id, CallDone done, std::vector<Event>& events);
  // Sends what there is room for, up to a call that waits for a Tick, unless it is `fresh`.
  void Pump(Instant now, env::Outbox& out, uint64_t fresh = 0);
  void Send(Instant now, uint64_t id, Pending& pending, env::Outbox& out);
  // A call is under way no longer.
  void Free(Instant now, uint64_t id, bool answered);
  WatchState* WatchOf(env::CallId call);
  // Why list-watches got no answer is told once, not by each of them.
  void NoteNoAnswer(const env::CallFailed& failed, std::span<Event> told);
  void NoteAnswer(std::vector<Event>& events);
  // Runs one step of a list-watch and carries out what it asks for.
  template <typename Step>
  void StepWatch(Instant now, env::Outbox& out, std::vector<Event>& events, Step step);
  void Reached(Instant now);
  [[nodiscard]] Duration Backoff(uint32_t failures);
  [[nodiscard]] env::HttpRequest Wire(env::Method method, const std::string& target,
                                      std::string_view accept) const;

  Options options_;
  WatchLimits limits_;  // Immutable after construction.
  Prng prng_;
  uint64_t next_call_ = 1;
  std::vector<WatchState> watches_;
  std::map<uint64_t, Pending> pending_;
  std::array<std::deque<uint64_t>, kPriorities> queues_;
  CallPlaces places_;  // Of those under way.
  std::set<std::pair<Instant, uint64_t>> delayed_;
  // Of each class nothing is sent before this: it was throttled, or one above it.
  std::array<Instant, kPriorities> throttled_until_{};
  // Nothing is sent before this: the server can't be reached.
  Instant hold_until_{0};
  uint64_t probe_ = 0;              // The one call that finds out whether the server is back.
  uint32_t unreachable_ = 0;        // Attempts in a row that found no connection.
  std::vector<CallDone> overflow_;  // Calls that were not even queued, to be reported.
  bool writes_stopped_ = false;
  Instant writes_leave_until_ = Instant::Never();
  AnswerCounts answers_;
  std::map<env::Method, AnswerTimes> answer_times_;
  std::string no_answer_;  // What was told last of why there was none; only shown.
};

}  // namespace berth::client
