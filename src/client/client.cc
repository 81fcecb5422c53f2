#include "client/client.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace berth::client {
namespace {

// All may leave. No call has this id.
constexpr uint64_t kTick = UINT64_MAX;

constexpr size_t Index(Priority priority) { return static_cast<size_t>(priority); }

// How many calls may be in the window before a class of calls has to wait.
size_t ShareOf(size_t queue, size_t window) {
  if (queue == Index(Priority::kHigh)) return window;
  if (queue == Index(Priority::kNormal)) return window - window / 4;
  return std::max<size_t>(window / 2, 1);
}

bool IsWrite(const Request& request) { return request.method != env::Method::kGet; }

// For how long one answer keeps other calls back, at most: kube-apiserver itself never asks for
// more (maxRetryAfter of its priority levels); whoever else does speaks of its call.
constexpr Duration kHoldMax = Duration::Seconds(32);

// What a Retry-After header asks for, if there is one, and not for nothing. Dates are not used by
// Kubernetes.
std::optional<Duration> RetryAfter(const env::HttpResponse& response) {
  const auto header = env::FindHeader(response.headers, "retry-after");
  if (!header || header->empty()) return std::nullopt;
  int64_t seconds = 0;
  for (const char c : *header) {
    if (c < '0' || c > '9') return std::nullopt;
    seconds = std::min<int64_t>(seconds * 10 + (c - '0'), 3'600);
  }
  if (seconds == 0) return std::nullopt;
  return Duration::Seconds(seconds);
}

// Whether it is the server that has too much to do: it says so in plain text, before anybody has
// looked at the request. A Status is what somebody says of this one request, as a webhook.
bool ServerIsBusy(const env::HttpResponse& response) {
  return !response.body.view().starts_with('{');
}

WatchLimits LimitsOf(const Options& options) {
  return {.page_limit = options.page_limit,
          .watch_timeout = options.watch_timeout,
          .backoff_initial = options.backoff_initial,
          .backoff_max = options.backoff_max,
          .planted_resume_after_gone = options.planted_resume_after_gone};
}

}  // namespace

std::string WhyOf(const CallDone& done) {
  if (done.failure) return TextOf(*done.failure, done.why);
  std::string told = StatusOf(done.response).message;
  return told.empty() ? fmt::format("the API server answers {}", done.response.status) : told;
}

void AnswerTimes::Add(Duration took) {
  size_t bucket = 0;
  while (bucket < kBoundsMs.size() && took.ns > kBoundsMs[bucket] * 1'000'000) ++bucket;
  ++counts[bucket];
  sum_ns += took.ns;
}

Client::Client(Options options)
    : options_(std::move(options)),
      limits_(LimitsOf(options_)),
      prng_(options_.seed),
      next_call_(options_.first_call),
      places_(static_cast<size_t>(options_.calls_apart_max)) {
  CHECK_GT(options_.calls_in_flight_max, 0);
  CHECK_GE(options_.calls_apart_max, 0);
  CHECK_GT(options_.page_limit, 0);
  CHECK_GT(options_.first_call, 0u);
}

WatchId Client::Watch(WatchOptions options) {
  const auto stopped = std::ranges::find_if(watches_, &WatchState::stopped);
  const WatchId id{static_cast<uint32_t>(stopped - watches_.begin())};
  if (stopped == watches_.end()) {
    watches_.emplace_back(id, std::move(options));
  } else {
    *stopped = WatchState(id, std::move(options));
  }
  return id;
}

void Client::StopWatch(Instant now, WatchId watch, env::Outbox& out) {
  std::vector<Event> events;
  StepWatch(now, out, events, [&](WatchContext& context) { watches_[watch.value].Stop(context); });
  CHECK(events.empty());
}

env::CallId Client::Call(Instant now, Request request, env::Outbox& out) {
  const uint64_t id = next_call_++;
  const bool full =
      calls_queued() - places_.parked() >= static_cast<size_t>(options_.calls_queued_max);
  if (full || (writes_stopped_ && IsWrite(request))) {
    EndUnsent(id);
    return {id};
  }
  const size_t queue = Index(request.priority);
  const Instant give_up = now + request.patience;
  pending_.emplace(id, Pending{.request = std::move(request),
                               .place = Place::kQueued,
                               .give_up = give_up,
                               .attempts = 0,
                               .at = {}});
  queues_[queue].push_back(id);
  Pump(now, out, id);
  return {id};
}

bool Client::CancelQueued(env::CallId call) {
  const auto it = pending_.find(call.value);
  if (it == pending_.end() || it->second.place == Place::kInFlight) return false;
  if (it->second.place == Place::kDelayed) {
    delayed_.erase({it->second.at, call.value});
  } else if (it->second.place == Place::kParked) {
    places_.Unpark(call.value, it->second.request);
  } else {
    std::deque<uint64_t>& queue = queues_[Index(it->second.request.priority)];
    queue.erase(std::find(queue.begin(), queue.end(), call.value));
  }
  pending_.erase(it);
  return true;
}

void Client::EndUnsent(uint64_t id) {
  overflow_.push_back({.call = {id},
                       .outcome = Outcome::kRefused,
                       .response = {.status = 0, .headers = {}, .body = {}},
                       .failure = env::CallFailure::kNotSent});
}

size_t Client::StopWrites() {
  writes_stopped_ = true;
  std::vector<env::CallId> waiting;
  size_t under_way = 0;
  for (auto& [id, pending] : pending_) {
    if (!IsWrite(pending.request)) continue;
    if (pending.place == Place::kInFlight) {
      pending.give_up = Instant{0};
      ++under_way;
    } else {
      waiting.push_back({id});
    }
  }
  for (const env::CallId call : waiting) {
    CHECK(CancelQueued(call));
    EndUnsent(call.value);
  }
  return under_way;
}

size_t Client::writes_in_flight() const {
  return static_cast<size_t>(std::ranges::count_if(pending_, [](const auto& entry) {
    return entry.second.place == Place::kInFlight && IsWrite(entry.second.request);
  }));
}

void Client::Relist(Instant now, WatchId watch, env::Outbox& out) {
  std::vector<Event> events;
  StepWatch(now, out, events,
            [&](WatchContext& context) { watches_[watch.value].Relist(context); });
  CHECK(events.empty());
}

void Client::DontRepeat(env::CallId call) {
  const auto it = pending_.find(call.value);
  if (it != pending_.end()) it->second.give_up = Instant{0};
}

env::HttpRequest Client::Wire(env::Method method, const std::string& target,
                              std::string_view accept) const {
  env::HttpRequest request{
      .method = method, .target = options_.base_path + target, .headers = {}, .body = {}};
  request.headers.push_back({"accept", std::string(accept)});
  request.headers.push_back({"user-agent", options_.user_agent});
  return request;
}

// ---- Calls -----------------------------------------------------------------------------------

bool Client::MayLeave(uint64_t id, uint64_t fresh) const {
  return fresh == kTick || id == fresh || !pending_.at(id).request.waits_for_tick;
}

// The first that waits has a place, or is of a flow that hangs: that one leaves the queue, whatever
// there is room for.
bool Client::FrontMoves(size_t queue) const {
  if (queues_[queue].empty()) return false;
  const size_t window = static_cast<size_t>(options_.calls_in_flight_max);
  return places_.in_window() < ShareOf(queue, window) ||
         places_.Hangs(pending_.at(queues_[queue].front()).request);
}

bool Client::ItsTurn(size_t queue) const {
  return FrontMoves(queue) || places_.NextParked(Priority{static_cast<uint8_t>(queue)});
}

std::optional<uint64_t> Client::NextOf(size_t queue) {
  while (FrontMoves(queue)) {
    const uint64_t id = queues_[queue].front();
    Pending& pending = pending_.at(id);
    if (!places_.Hangs(pending.request)) break;
    queues_[queue].pop_front();
    pending.place = Place::kParked;
    places_.Park(id, pending.request);
  }
  const auto parked = places_.NextParked(Priority{static_cast<uint8_t>(queue)});
  const bool front = FrontMoves(queue);
  // What hangs tells late whether the server is back.
  if (parked && (unreachable_ == 0 || !front)) return parked;
  return front ? std::optional(queues_[queue].front()) : std::nullopt;
}

void Client::Pump(Instant now, env::Outbox& out, uint64_t fresh) {
  places_.NoteTime(now);
  if (now < hold_until_) return;
  for (size_t i = 0; i < kPriorities; ++i) {
    if (now < throttled_until_[i]) return;  // Nor what is below it.
    while (const std::optional<uint64_t> id = NextOf(i)) {
      if (!MayLeave(*id, fresh)) return;
      Pending& pending = pending_.at(*id);
      const bool hangs = pending.place == Place::kParked;
      if (hangs) {
        places_.Unpark(*id, pending.request);
      } else {
        queues_[i].pop_front();
      }
      Send(now, *id, pending, out);
      // One call finds out whether the server can be reached again; another, if that may hang.
      if (unreachable_ > 0) {
        probe_ = *id;
        hold_until_ = hangs ? now + CallPlaces::kHangsAfter : Instant::Never();
        return;
      }
    }
  }
}

void Client::Send(Instant now, uint64_t id, Pending& pending, env::Outbox& out) {
  pending.place = Place::kInFlight;
  pending.sent = now;
  ++pending.attempts;
  const Request& request = pending.request;
  places_.Take(now, id, request);
  env::HttpRequest wire = Wire(request.method, request.target, "application/json");
  if (!request.content_type.empty()) wire.headers.push_back({"content-type", request.content_type});
  wire.body = request.body;
  out.emplace_back(
      env::SendRequest{.call = {id},
                       .request = std::move(wire),
                       .stream = false,
                       .timeout = request.timeout,
                       .not_after = IsWrite(request) ? writes_leave_until_ : Instant::Never()});
}

void Client::Free(Instant now, uint64_t id, bool answered) {
  const std::vector<uint64_t> back = places_.Free(now, id, answered);
  // In front: they have waited longest.
  for (auto it = back.rbegin(); it != back.rend(); ++it) {
    Pending& pending = pending_.at(*it);
    pending.place = Place::kQueued;
    queues_[Index(pending.request.priority)].push_front(*it);
  }
}

void Client::Finish(uint64_t id, CallDone done, std::vector<Event>& events) {
  const auto it = pending_.find(id);
  done.method = it->second.request.method;
  done.target = std::move(it->second.request.target);
  pending_.erase(it);
  events.emplace_back(std::move(done));
}

void Client::Retry(Instant now, uint64_t id, Duration delay) {
  Pending& pending = pending_.at(id);
  pending.place = Place::kDelayed;
  pending.at = now + delay;
  delayed_.emplace(pending.at, id);
}

void Client::Hold(Priority priority, Instant until) {
  for (size_t i = Index(priority); i < kPriorities; ++i)
    throttled_until_[i] = std::max(throttled_until_[i], until);
}

void Client::Reached(Instant now) {
  if (unreachable_ > 0) hold_until_ = now;
  unreachable_ = 0;
  probe_ = 0;
}

Duration Client::Backoff(uint32_t failures) { return BackoffDelay(limits_, failures, prng_); }

void Client::OnResponse(Instant now, const env::Response& response, std::vector<Event>& events) {
  const auto it = pending_.find(response.call.value);
  if (it == pending_.end() || it->second.place != Place::kInFlight) return;
  Free(now, it->first, /*answered=*/true);
  Reached(now);
  const Pending& pending = it->second;
  const int status = response.response.status;
  ++answers_[{status, pending.request.method}];
  answer_times_[pending.request.method].Add(now - pending.sent);
  const bool read = !IsWrite(pending.request);
  if (status == 429 && pending.request.retry_throttled) {
    // Nothing was done.
    const std::optional<Duration> asked = RetryAfter(response.response);
    const Duration delay = asked.value_or(Backoff(pending.attempts));
    const Instant until = now + std::min(delay, kHoldMax);
    const Priority priority = pending.request.priority;
    if (ServerIsBusy(response.response)) {
      Hold(asked ? Priority::kHigh : priority, until);
    } else if (priority == Priority::kLow) {
      Hold(priority, until);  // EventRateLimit may be of all events.
    }
    if (now + delay <= pending.give_up) {
      Retry(now, it->first, delay);
      return;
    }
  }
  if (status >= 500 && read) {
    const Duration delay = RetryAfter(response.response).value_or(Backoff(pending.attempts));
    if (now + delay <= pending.give_up) {
      Retry(now, it->first, delay);
      return;
    }
  }
  Finish(it->first,
         {.call = response.call,
          .outcome = OutcomeOf(status),
          .response = response.response,
          .failure = std::nullopt},
         events);
}

void Client::OnFailed(Instant now, const env::CallFailed& failed, std::vector<Event>& events) {
  const auto it = pending_.find(failed.call.value);
  if (it == pending_.end() || it->second.place != Place::kInFlight) return;
  Free(now, it->first, /*answered=*/false);
  const Pending& pending = it->second;
  ++answers_[{0, pending.request.method}];
  const bool unsent = failed.failure == env::CallFailure::kNotSent;
  if (!unsent) {
    Reached(now);
  } else if (unreachable_ == 0 || probe_ == it->first) {
    // All wait: without a connection every other attempt would fail like this one. Those that left
    // together count once.
    ++unreachable_;
    probe_ = 0;
    hold_until_ = now + Backoff(unreachable_);
  }
  const bool again = unsent || !IsWrite(pending.request);
  if (again) {
    const Duration delay = Backoff(pending.attempts);
    if (now + delay <= pending.give_up) {
      Retry(now, it->first, delay);
      return;
    }
  }
  Finish(it->first,
         {.call = failed.call,
          .outcome = unsent ? Outcome::kRefused : Outcome::kUnknown,
          .response = {.status = 0, .headers = {}, .body = {}},
          .failure = failed.failure,
          .why = failed.why},
         events);
}

// ---- Inputs ----------------------------------------------------------------------------------

WatchState* Client::WatchOf(env::CallId call) {
  for (WatchState& watch : watches_) {
    if (watch.owns(call)) return &watch;
  }
  return nullptr;
}

void Client::NoteNoAnswer(const env::CallFailed& failed, std::span<Event> told) {
  const std::string text = TextOf(failed.failure, failed.why);
  for (Event& event : told) {
    if (auto* trouble = std::get_if<WatchTrouble>(&event))
      trouble->repeated = trouble->repeated || text == no_answer_;
  }
  no_answer_ = text;
}

void Client::NoteAnswer(std::vector<Event>& events) {
  if (no_answer_.empty() || std::ranges::any_of(watches_, &WatchState::unanswered)) return;
  no_answer_.clear();
  for (WatchState& watch : watches_) watch.ForgetTrouble();
  events.emplace_back(ServerAnswers{});
}

template <typename Step>
void Client::StepWatch(Instant now, env::Outbox& out, std::vector<Event>& events, Step step) {
  std::vector<WatchEvent> told;
  std::vector<WatchContext::Send> sends;
  std::vector<env::CallId> cancels;
  WatchContext context{.now = now,
                       .limits = limits_,
                       .prng = prng_,
                       .next_call = next_call_,
                       .events = told,
                       .sends = sends,
                       .cancels = cancels};
  step(context);
  for (const env::CallId call : cancels) out.emplace_back(env::CancelCall{call});
  for (const WatchContext::Send& send : sends) {
    out.emplace_back(env::SendRequest{.call = send.call,
                                      .request = Wire(env::Method::kGet, send.target, send.accept),
                                      .stream = send.stream});
  }
  for (WatchEvent& event : told) {
    std::visit([&](auto& value) { events.emplace_back(std::move(value)); }, event);
  }
}

void Client::Learn(Instant now, WatchId watch, std::string_view object,
                   std::vector<Event>& events) {
  env::Outbox none;
  StepWatch(now, none, events,
            [&](WatchContext& context) { watches_[watch.value].Learn(context, object); });
  CHECK(none.empty());
}

void Client::OnTick(Instant now, env::Outbox& out, std::vector<Event>& events) {
  StepWatch(now, out, events, [&](WatchContext& context) {
    for (WatchState& watch : watches_) watch.OnTick(context);
  });
  while (!delayed_.empty() && delayed_.begin()->first <= now) {
    const uint64_t id = delayed_.begin()->second;
    delayed_.erase(delayed_.begin());
    Pending& pending = pending_.at(id);
    pending.place = Place::kQueued;
    // In front: it has waited longest.
    queues_[Index(pending.request.priority)].push_front(id);
  }
  Pump(now, out, kTick);
}

void Client::Handle(Instant now, const env::Input& input, env::Outbox& out,
                    std::vector<Event>& events) {
  for (CallDone& done : overflow_) events.emplace_back(std::move(done));
  overflow_.clear();
  if (std::holds_alternative<env::Tick>(input)) {
    OnTick(now, out, events);
    return;
  }
  if (const auto* response = std::get_if<env::Response>(&input)) {
    if (WatchState* watch = WatchOf(response->call)) {
      ++answers_[{response->response.status, env::Method::kGet}];
      StepWatch(now, out, events,
                [&](WatchContext& context) { watch->OnResponse(context, response->response); });
      NoteAnswer(events);
      return;
    }
    OnResponse(now, *response, events);
    Pump(now, out);
    return;
  }
  if (const auto* failed = std::get_if<env::CallFailed>(&input)) {
    if (WatchState* watch = WatchOf(failed->call)) {
      ++answers_[{0, env::Method::kGet}];
      const size_t before = events.size();
      StepWatch(now, out, events,
                [&](WatchContext& context) { watch->OnFailed(context, *failed); });
      NoteNoAnswer(*failed, std::span(events).subspan(before));
      return;
    }
    OnFailed(now, *failed, events);
    Pump(now, out);
    return;
  }
  if (const auto* data = std::get_if<env::StreamData>(&input)) {
    if (WatchState* watch = WatchOf(data->call)) {
      StepWatch(now, out, events,
                [&](WatchContext& context) { watch->OnData(context, data->data.view()); });
    }
    return;
  }
  if (const auto* ended = std::get_if<env::StreamEnded>(&input)) {
    if (WatchState* watch = WatchOf(ended->call)) {
      StepWatch(now, out, events, [&](WatchContext& context) { watch->OnEnded(context); });
    }
  }
}

Instant Client::wake_at() const {
  if (!overflow_.empty()) return Instant{0};
  Instant at = Instant::Never();
  for (const WatchState& watch : watches_) at = std::min(at, watch.wake_at());
  if (!delayed_.empty()) at = std::min(at, delayed_.begin()->first);
  for (size_t i = 0; i < kPriorities; ++i) {
    const bool turn = ItsTurn(i);
    if (!turn && queues_[i].empty()) continue;
    at = std::min(at, std::max(hold_until_, turn ? throttled_until_[i] : places_.next_at()));
  }
  return at;
}

bool Client::synced() const {
  return std::all_of(watches_.begin(), watches_.end(),
                     [](const WatchState& watch) { return watch.synced(); });
}

bool Client::synced(WatchId watch) const { return watches_[watch.value].synced(); }
bool Client::absent(WatchId watch) const { return watches_[watch.value].absent(); }

size_t Client::calls_queued() const {
  return queues_[0].size() + queues_[1].size() + queues_[2].size() + delayed_.size() +
         places_.parked();
}

size_t Client::calls_queued(Priority priority) const { return queues_[Index(priority)].size(); }

// A call's patience is in `give_up`; `delayed_` follows from the calls; what overflowed differs in
// the call alone.
void Client::NameCalls(HashNames& names) const {
  for (const WatchState& watch : watches_) watch.NameCall(names);
  for (const auto& [id, pending] : pending_) {
    const Request& request = pending.request;
    Hasher name(&names);
    name.Add(request.method).Add(request.target).AddDocument(request.body.view());
    names.NameCall(id, name.value());
  }
}

// Draws still to come only move timers a little: a hash that merges leaves the generator out.
void Client::AddTo(Hasher& hasher) const {
  if (hasher.merges()) NameCalls(*hasher.names());
  hasher.AddHistory(prng_.fingerprint()).AddHistory(next_call_).Add(watches_.size());
  for (const WatchState& watch : watches_) watch.AddTo(hasher);
  hasher.Add(pending_.size());
  hasher.AddEach(pending_, [](Hasher& one, const auto& entry) {
    const auto& [id, pending] = entry;
    const Request& request = pending.request;
    one.AddCall(id).Add(pending.place).Add(pending.give_up.ns).Add(pending.attempts);
    one.Add(pending.at.ns).Add(request.method).Add(request.target).Add(request.content_type);
    one.AddDocument(request.body.view()).Add(request.priority).Add(request.timeout.ns);
    one.Add(request.retry_throttled).Add(request.waits_for_tick);
  });
  for (const auto& queue : queues_) {
    hasher.Add(queue.size());
    for (const uint64_t id : queue) hasher.AddCall(id);
  }
  hasher.Add(overflow_.size());
  for (const CallDone& done : overflow_) hasher.AddCall(done.call.value);
  hasher.Add(writes_stopped_).Add(writes_leave_until_.ns).Add(hold_until_.ns);
  places_.AddTo(hasher);
  for (const Instant until : throttled_until_) hasher.Add(until.ns);
  hasher.Add(unreachable_).AddCall(probe_);
}

}  // namespace berth::client
