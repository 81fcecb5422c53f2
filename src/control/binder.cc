#include "control/binder.h"

#include <fmt/format.h>

#include <utility>

#include "base/check.h"
#include "model/backoff.h"
#include "translate/facts.h"

namespace berth::control {
namespace {

model::WriteOutcome WriteOutcomeOf(const client::CallDone& done) {
  switch (done.outcome) {
    case client::Outcome::kDone:
      return model::WriteOutcome::kDone;
    case client::Outcome::kConflict:
      return model::WriteOutcome::kConflict;
    case client::Outcome::kGone:
      return model::WriteOutcome::kGone;
    case client::Outcome::kRefused:
      return done.failure == env::CallFailure::kNotSent ? model::WriteOutcome::kNotSent
                                                        : model::WriteOutcome::kRefused;
    case client::Outcome::kUnknown:
      return model::WriteOutcome::kUnknown;
  }
  return model::WriteOutcome::kUnknown;
}

client::Request BindRequest(const Binder::Attempt& attempt) {
  std::vector<std::pair<std::string, std::string>> annotations;
  if (!attempt.devices.none()) {
    annotations.emplace_back(translate::kGpuIndexAnnotation, GpuIndexText(attempt.devices));
  }
  return client::Bind(attempt.pod, attempt.node, annotations);
}

}  // namespace

std::string GpuIndexText(model::DeviceSlots devices) {
  std::string text;
  for (uint32_t device = 0; device < model::kDevicesMax; ++device) {
    if ((devices.mask >> device & 1) == 0) continue;
    fmt::format_to(std::back_inserter(text), "{}{}", text.empty() ? "" : ",", device);
  }
  return text;
}

void Binder::Bind(Instant now, Attempt attempt, client::Client& client, env::Outbox& out) {
  CHECK(planted_twice_ || !busy(attempt.pod.uid));
  const env::CallId call = client.Call(now, BindRequest(attempt), out);
  Expect(call, std::move(attempt));
}

void Binder::Expect(env::CallId call, Attempt attempt) {
  ++counters_.sent;
  call_of_[attempt.pod.uid] = call.value;
  open_[call.value] = {.attempt = std::move(attempt), .reading = false};
}

Binder::Attempt Binder::TakeBack(env::CallId call) {
  const auto open = open_.find(call.value);
  CHECK(open != open_.end());
  Attempt attempt = std::move(open->second.attempt);
  open_.erase(open);
  call_of_.erase(attempt.pod.uid);
  return attempt;
}

void Binder::Read(Instant now, Open open, client::Client& client, env::Outbox& out) {
  const client::ObjectRef& pod = open.attempt.pod;
  client::Request request =
      client::Get(client::Pods(), {.namespace_name = pod.namespace_name, .name = pod.name});
  request.priority = client::Priority::kHigh;
  const env::CallId call = client.Call(now, std::move(request), out);
  ++counters_.reads;
  call_of_[pod.uid] = call.value;
  open.reading = true;
  open_[call.value] = std::move(open);
}

void Binder::Pump(Instant now, client::Client& client, env::Outbox& out) {
  while (wake_at() <= now) {
    Open open = std::move(failed_reads_.begin()->second);
    failed_reads_.erase(failed_reads_.begin());
    Read(now, std::move(open), client, out);
  }
}

std::optional<Binder::Attempt> Binder::Withdraw(std::string_view uid, client::Client& client) {
  const auto of = call_of_.find(uid);
  if (of == call_of_.end() || of->second == 0) return std::nullopt;
  const auto open = open_.find(of->second);
  CHECK(open != open_.end());
  if (open->second.reading || !client.CancelQueued({of->second})) return std::nullopt;
  Attempt attempt = std::move(open->second.attempt);
  open_.erase(open);
  call_of_.erase(of);
  ++counters_.withdrawn;
  return attempt;
}

std::vector<Binder::Attempt> Binder::WithdrawNode(std::string_view node, client::Client& client) {
  std::vector<std::string> uids;
  for (const auto& [call, open] : open_) {
    if (open.attempt.node == node) uids.push_back(open.attempt.pod.uid);
  }
  std::vector<Attempt> attempts;
  for (const std::string& uid : uids) {
    if (auto attempt = Withdraw(uid, client)) attempts.push_back(std::move(*attempt));
  }
  return attempts;
}

std::optional<Binder::Result> Binder::OnCallDone(Instant now, const client::CallDone& done,
                                                 client::Client& client, env::Outbox& out) {
  const auto it = open_.find(done.call.value);
  if (it == open_.end()) return std::nullopt;
  Open open = std::move(it->second);
  open_.erase(it);
  call_of_.erase(open.attempt.pod.uid);
  Result result{.outcome = std::nullopt,
                .attempt = open.attempt,
                .status = client::StatusOf(done.response),
                .read = false,
                .object = {}};
  if (open.reading) {
    result.status = open.status;
    if (done.outcome != client::Outcome::kDone && done.outcome != client::Outcome::kGone) {
      const Instant again = now + model::Backoff(++open.reads_failed);
      call_of_[open.attempt.pod.uid] = 0;
      failed_reads_.emplace(std::pair(again, open.attempt.pod.uid), std::move(open));
      return result;
    }
    result.read = true;
    if (done.outcome == client::Outcome::kDone) result.object = done.response.body;
    return result;
  }
  if (done.outcome == client::Outcome::kUnknown && planted_repeat_ && !open.attempt.sent_again) {
    open.attempt.sent_again = true;
    Bind(now, std::move(open.attempt), client, out);
    return result;
  }
  result.outcome = model::BindOutcome{.uid = open.attempt.pod.uid,
                                      .outcome = WriteOutcomeOf(done),
                                      .code = done.response.status,
                                      .at = now};
  if (result.status.message.empty() && done.outcome != client::Outcome::kDone)
    result.status.message = client::WhyOf(done);
  open.status = result.status;
  switch (done.outcome) {
    case client::Outcome::kDone:
      ++counters_.done;
      break;
    case client::Outcome::kGone:
      ++counters_.gone;
      Read(now, std::move(open), client, out);
      break;
    case client::Outcome::kRefused:
      ++(done.failure == env::CallFailure::kNotSent ? counters_.not_sent : counters_.refused);
      break;
    case client::Outcome::kConflict:
      ++counters_.conflicts;
      Read(now, std::move(open), client, out);
      break;
    case client::Outcome::kUnknown:
      ++counters_.unknown;
      Read(now, std::move(open), client, out);
      break;
  }
  return result;
}

// call_of_ follows from the other two.
void Binder::AddTo(Hasher& hasher) const {
  const auto add = [](Hasher& to, const Open& open) {
    const Attempt& attempt = open.attempt;
    to.Add(attempt.pod.namespace_name).Add(attempt.pod.name).Add(attempt.pod.uid);
    to.Add(attempt.pod.resource_version).Add(attempt.scheduler_name).Add(attempt.node);
    to.Add(attempt.devices.mask).Add(attempt.devices.milli_each).Add(attempt.sent_again);
    to.Add(open.reading).Add(open.reads_failed);
    to.Add(open.status.code).Add(open.status.message);
  };
  hasher.Add(planted_repeat_).Add(planted_twice_).Add(open_.size());
  hasher.AddEach(open_, [&](Hasher& one, const auto& entry) {
    one.AddCall(entry.first);
    add(one, entry.second);
  });
  hasher.Add(failed_reads_.size());
  for (const auto& [at, open] : failed_reads_) {
    hasher.Add(at.first.ns).Add(at.second);
    add(hasher, open);
  }
}

}  // namespace berth::control
