#include "env/recorded_actor.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <variant>

#include "base/check.h"

namespace berth::env {
namespace {

constexpr int kCallBits = 50;
static_assert(kCallsOfALife == uint64_t{1} << kCallBits);
constexpr uint64_t kCallMask = (uint64_t{1} << kCallBits) - 1;
// Of so many lives before nothing can be on its way any more.
constexpr uint64_t kLives = 64;

CallId Outside(CallId call, uint64_t life) {
  CHECK_LE(call.value, kCallMask);
  return {((life % kLives) << kCallBits) | call.value};
}

// The exchange of a request for /metrics.
std::optional<ExchangeId> AsksForMetrics(const Input& input) {
  const auto* arrived = std::get_if<RequestArrived>(&input);
  if (arrived == nullptr) return std::nullopt;
  const std::string_view target = arrived->request.target;
  if (target.substr(0, target.find('?')) != "/metrics") return std::nullopt;
  return arrived->exchange;
}

void AddMetrics(std::string_view text, ExchangeId exchange, Outbox& out, size_t first) {
  for (size_t i = first; i < out.size(); ++i) {
    auto* respond = std::get_if<Respond>(&out[i]);
    if (respond == nullptr || respond->exchange != exchange || respond->response.status != 200)
      continue;
    std::string body(respond->response.body.view());
    body += text;
    respond->response.body = Bytes(std::move(body));
  }
}

}  // namespace

RecordedActor::RecordedActor(std::unique_ptr<Actor> actor, StepSink& sink, Restarts restarts)
    : actor_(std::move(actor)), sink_(sink), restarts_(std::move(restarts)) {
  CHECK(actor_ != nullptr);
}

void RecordedActor::Step(Instant now, Input input, Outbox& out) {
  if (!IsOfThisLife(input)) return;
  const size_t first = out.size();
  const std::optional<ExchangeId> metrics = AsksForMetrics(input);
  const auto* arrived = std::get_if<RequestArrived>(&input);
  if (arrived != nullptr && arrived->exchange == restarts_.stop) asked_from_outside_ = true;
  StepActor(now, std::move(input), out);
  if (metrics) AddMetrics(sink_.MetricsText(), *metrics, out, first);
  if (restarts_.make) RestartWhenDue(now, out);
}

Instant RecordedActor::wake_at() const {
  const Instant at = actor_->wake_at();
  return asked_to_stop_ ? std::min(at, *asked_to_stop_ + restarts_.patience) : at;
}

// Gives its call the name that it has in this life.
bool RecordedActor::IsOfThisLife(Input& input) const {
  if (!restarts_.make) return true;
  return std::visit(
      [this](auto& in) {
        if constexpr (requires { in.call; }) {
          if ((in.call.value >> kCallBits) != life_ % kLives) return false;
          in.call.value &= kCallMask;
        }
        return true;
      },
      input);
}

void RecordedActor::StepActor(Instant now, Input input, Outbox& out) {
  const size_t first = out.size();
  if (restarts_.make) NoteEnd(input);
  if (sink_.state() != StepSink::State::kOpen) {
    actor_->Step(now, std::move(input), out);
  } else {
    Input copy = RecordedPart(input);
    actor_->Step(now, std::move(input), out);
    const auto begin = out.begin() + static_cast<ptrdiff_t>(first);
    sink_.Take({.now = now, .input = std::move(copy), .outputs = Outbox(begin, out.end())});
  }
  if (restarts_.make) Note(out, first);
}

// Of a call that the input is the last of.
void RecordedActor::NoteEnd(const Input& input) {
  if (const auto* failed = std::get_if<CallFailed>(&input)) calls_.erase(failed->call.value);
  if (const auto* ended = std::get_if<StreamEnded>(&input)) calls_.erase(ended->call.value);
  const auto* response = std::get_if<Response>(&input);
  if (response == nullptr) return;
  const auto call = calls_.find(response->call.value);
  if (call != calls_.end() && (!call->second || response->response.status != 200))
    calls_.erase(call);
}

// Its calls get the names that they have outside; that it has stopped is not told there.
void RecordedActor::Note(Outbox& out, size_t first) {
  for (size_t i = first; i < out.size(); ++i) {
    if (auto* send = std::get_if<SendRequest>(&out[i])) {
      calls_.emplace(send->call.value, send->stream);
      send->call = Outside(send->call, life_);
    } else if (auto* cancel = std::get_if<CancelCall>(&out[i])) {
      calls_.erase(cancel->call.value);
      cancel->call = Outside(cancel->call, life_);
    }
  }
  if (!asked_to_stop_ || asked_from_outside_) return;
  const auto is_stopped = [this](const Output& output) {
    const auto* respond = std::get_if<Respond>(&output);
    return respond != nullptr && respond->exchange == restarts_.stop;
  };
  const auto begin = out.begin() + static_cast<ptrdiff_t>(first);
  const auto end = std::remove_if(begin, out.end(), is_stopped);
  stopped_ = stopped_ || end != out.end();
  out.erase(end, out.end());
}

void RecordedActor::RestartWhenDue(Instant now, Outbox& out) {
  if (asked_from_outside_) return;
  if (!asked_to_stop_) {
    if (sink_.state() != StepSink::State::kFull) return;
    if (restarted_ && now - *restarted_ < restarts_.apart_min) return;
    asked_to_stop_ = now;
    StepActor(
        now,
        RequestArrived{
            .exchange = restarts_.stop,
            .peer = {},
            .request = {.method = Method::kPost, .target = "/stop", .headers = {}, .body = {}}},
        out);
  }
  if (!stopped_ && now - *asked_to_stop_ < restarts_.patience) return;
  for (const auto& [call, stream] : calls_) out.emplace_back(CancelCall{Outside({call}, life_)});
  calls_.clear();
  ++life_;
  restarted_ = now;
  stopped_ = false;
  asked_to_stop_.reset();
  Life fresh = restarts_.make();
  CHECK(fresh.actor != nullptr);
  actor_ = std::move(fresh.actor);
  sink_.BeginAnew(std::move(fresh.header));
}

}  // namespace berth::env
