#include "control/leader_election.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "api/json.h"
#include "api/names.h"
#include "base/check.h"
#include "client/identity.h"
#include "codec/json.h"

namespace berth::control {
namespace {

using api::Json;
using api::JsonObject;

const client::Resource kLeases{.group = "coordination.k8s.io", .version = "v1", .plural = "leases"};
// Who released a lease leaves one that is over at once, as client-go does.
constexpr int64_t kReleasedSeconds = 1;
// The longest wait to acquire is 1 + 1.2 times the retry period.
constexpr int64_t kJitterTenths = 12;
constexpr Duration kTimeoutMin = Duration::Seconds(1);

client::Options ClientOptions(const LeaderElectionOptions& options) {
  client::Options client = options.client;
  client.user_agent += "/leader-election";
  client.first_call = kElectionFirstCall;
  // Without a connection it is asked again as soon as a try is due.
  client.backoff_max = std::min(client.backoff_max, options.retry_period);
  client.backoff_initial = std::min(client.backoff_initial, client.backoff_max);
  return client;
}

Error Unreadable(std::string_view what) {
  return {.code = ErrorCode::kInvalid, .message = fmt::format("{} is not as a Lease has it", what)};
}

// A member that is text, or absent or null: then it is empty.
Result<std::string> TextOf(const JsonObject& spec, std::string_view name) {
  const Json* member = spec.if_contains(name);
  if (member == nullptr || member->is_null()) return std::string();
  if (!member->is_string()) return std::unexpected(Unreadable(fmt::format("spec.{}", name)));
  return std::string(member->as_string());
}

Result<int64_t> NumberOf(const JsonObject& spec, std::string_view name) {
  const Json* member = spec.if_contains(name);
  if (member == nullptr || member->is_null()) return 0;
  if (!member->is_int64()) return std::unexpected(Unreadable(fmt::format("spec.{}", name)));
  return member->as_int64();
}

// The longest that a lease can be left alone for, whatever it says.
constexpr int64_t kSecondsMax = 24 * 60 * 60;

Duration DurationOf(const LeaseRecord& record, Duration otherwise) {
  if (record.duration_seconds <= 0) return otherwise;
  return Duration::Seconds(std::min(record.duration_seconds, kSecondsMax));
}

}  // namespace

std::string ProblemOf(const LeaderElectionOptions& options) {
  const auto text = [](Duration duration) { return fmt::format("{} ms", duration.milliseconds()); };
  if (options.lease_duration < Duration::Seconds(1))
    return "--leader-elect-lease-duration must be at least 1 s: a Lease counts in seconds";
  if (options.renew_deadline <= Duration{})
    return "--leader-elect-renew-deadline must be more than 0";
  if (options.retry_period <= Duration{}) return "--leader-elect-retry-period must be more than 0";
  if (options.lease_duration <= options.renew_deadline) {
    return fmt::format(
        "--leader-elect-lease-duration ({}) must be more than --leader-elect-renew-deadline ({})",
        text(options.lease_duration), text(options.renew_deadline));
  }
  if (options.renew_deadline.ns <= options.retry_period.ns / 10 * kJitterTenths) {
    return fmt::format(
        "--leader-elect-renew-deadline ({}) must be more than 1.2 times "
        "--leader-elect-retry-period ({})",
        text(options.renew_deadline), text(options.retry_period));
  }
  // Both become parts of a path.
  if (const auto wrong = api::CheckDns1123Label(options.namespace_name); !wrong.empty()) {
    return fmt::format("--leader-elect-resource-namespace \"{}\": {}", options.namespace_name,
                       wrong.front());
  }
  if (const auto wrong = api::CheckDns1123Subdomain(options.name); !wrong.empty())
    return fmt::format("--leader-elect-resource-name \"{}\": {}", options.name, wrong.front());
  return "";
}

Result<LeaseRecord> ReadLeaseRecord(std::string_view document) {
  const Result<Json> json = codec::ParseJson(document);
  if (!json) return std::unexpected(json.error());
  const Json* metadata = json->is_object() ? json->as_object().if_contains("metadata") : nullptr;
  if (metadata == nullptr || !metadata->is_object())
    return std::unexpected(Unreadable("the document"));
  const Json* spec = json->as_object().if_contains("spec");
  if (spec == nullptr || spec->is_null()) return LeaseRecord{};
  if (!spec->is_object()) return std::unexpected(Unreadable("spec"));
  const JsonObject& members = spec->as_object();
  LeaseRecord record;
  const std::pair<std::string_view, std::string*> texts[] = {{"holderIdentity", &record.holder},
                                                             {"acquireTime", &record.acquire_time},
                                                             {"renewTime", &record.renew_time}};
  for (const auto& [name, to] : texts) {
    Result<std::string> text = TextOf(members, name);
    if (!text) return std::unexpected(text.error());
    *to = *std::move(text);
  }
  const std::pair<std::string_view, int64_t*> numbers[] = {
      {"leaseDurationSeconds", &record.duration_seconds},
      {"leaseTransitions", &record.transitions}};
  for (const auto& [name, to] : numbers) {
    const Result<int64_t> number = NumberOf(members, name);
    if (!number) return std::unexpected(number.error());
    *to = *number;
  }
  return record;
}

LeaderElection::LeaderElection(LeaderElectionOptions options)
    : options_(std::move(options)), client_(ClientOptions(options_)), prng_(options_.client.seed) {
  CHECK(!options_.identity.empty());
  CHECK(ProblemOf(options_).empty());
}

std::string LeaderElection::Name() const {
  return fmt::format("lease {}/{}", options_.namespace_name, options_.name);
}

// The same again is not told.
void LeaderElection::Tell(env::LogLevel level, const std::string& text, env::Outbox& out) {
  if (told_ == text) return;
  told_ = text;
  out.emplace_back(env::Log{.level = level, .text = fmt::format("{}: {}", Name(), text)});
}

// ---- The loop --------------------------------------------------------------------------------

void LeaderElection::Handle(Instant now, const env::Input& input, env::Outbox& out) {
  // First of all: who was stopped past its deadline must not act on what it hears now.
  if (leads_ && now >= Deadline() && !options_.planted_trusts_itself)
    Lose("it could not be renewed in time", out);
  std::vector<client::Event> events;
  client_.Handle(now, input, out, events);
  for (const client::Event& event : events) {
    if (const auto* done = std::get_if<client::CallDone>(&event)) OnCallDone(now, *done, out);
  }
  if (std::holds_alternative<env::Tick>(input)) OnTick(now, out);
}

void LeaderElection::OnTick(Instant now, env::Outbox& out) {
  if (phase_ != Phase::kWaiting || (!stands_ && !releases_) || now < at_) return;
  from_memory_ = known_ && record_.holder == options_.identity;
  if (from_memory_) return Write(now, out);
  if (releases_) {
    phase_ = Phase::kOver;
    return;
  }
  Read(now, out);
}

void LeaderElection::Release(Instant now, env::Outbox& out) {
  if (releases_ || phase_ == Phase::kOver) return;
  releases_ = true;
  leads_ = false;
  if (phase_ == Phase::kWaiting) at_ = now;
  OnTick(now, out);
}

Instant LeaderElection::wake_at() const {
  Instant at = client_.wake_at();
  if (phase_ == Phase::kWaiting && (stands_ || releases_)) at = std::min(at, at_);
  if (leads_ && !options_.planted_trusts_itself) at = std::min(at, Deadline());
  return at;
}

void LeaderElection::Wait(Instant now) {
  phase_ = Phase::kWaiting;
  at_ = now;
  if (releases_) return;
  // A slow answer must not make renewals rarer: the deadline counts from when one left.
  if (leads_) {
    at_ = std::max(now, sent_at_ + options_.retry_period);
    return;
  }
  at_ = now + options_.retry_period;
  const int64_t jitter = options_.retry_period.ns / 10 * kJitterTenths;
  at_ = at_ + Duration{prng_.Between(0, std::max<int64_t>(jitter, 0))};
}

// ---- Reading and writing ---------------------------------------------------------------------

void LeaderElection::Read(Instant now, env::Outbox& out) {
  client::Request request =
      client::Get(kLeases, {.namespace_name = options_.namespace_name, .name = options_.name});
  request.timeout = std::max(kTimeoutMin, Duration{options_.renew_deadline.ns / 2});
  request.patience = Duration{};  // It is tried again here.
  request.retry_throttled = false;
  phase_ = Phase::kReading;
  sent_at_ = now;
  call_ = client_.Call(now, std::move(request), out).value;
}

void LeaderElection::Write(Instant now, env::Outbox& out) {
  std::string document = Document(now);
  client::Request request =
      document_.empty()
          ? client::Create(kLeases, options_.namespace_name, std::move(document))
          : client::Update(kLeases,
                           {.namespace_name = options_.namespace_name, .name = options_.name},
                           std::move(document));
  request.timeout = std::max(kTimeoutMin, Duration{options_.renew_deadline.ns / 2});
  request.patience = Duration{};
  request.retry_throttled = false;
  phase_ = Phase::kWriting;
  sent_at_ = now;
  call_ = client_.Call(now, std::move(request), out).value;
}

// The lease as it is to be: what others wrote beside the record stays.
std::string LeaderElection::Document(Instant now) const {
  const bool ours = record_.holder == options_.identity;
  const std::string time = client::MicroTime(now);
  JsonObject object;
  if (!document_.empty()) {
    const Result<Json> json = codec::ParseJson(document_);
    CHECK(json.has_value());  // It was read before.
    object = json->as_object();
  } else {
    object["apiVersion"] = "coordination.k8s.io/v1";
    object["kind"] = "Lease";
    object["metadata"] =
        JsonObject{{"name", options_.name}, {"namespace", options_.namespace_name}};
  }
  Json& spec = object["spec"];
  if (!spec.is_object()) spec = JsonObject{};
  JsonObject& members = spec.as_object();
  members["holderIdentity"] = releases_ ? "" : options_.identity;
  // Rounded up: others must not wait for less than this one acts by.
  constexpr int64_t kSecond = Duration::Seconds(1).ns;
  members["leaseDurationSeconds"] =
      releases_ ? kReleasedSeconds : (options_.lease_duration.ns + kSecond - 1) / kSecond;
  const bool keeps = ours && !releases_ && !record_.acquire_time.empty();
  members["acquireTime"] = keeps ? record_.acquire_time : time;
  members["renewTime"] = time;
  const bool counts =
      !ours && !document_.empty() && record_.transitions < std::numeric_limits<int32_t>::max();
  members["leaseTransitions"] = record_.transitions + (counts ? 1 : 0);
  return codec::PrintJson(object);
}

void LeaderElection::OnCallDone(Instant now, const client::CallDone& done, env::Outbox& out) {
  if (done.call.value != call_) return;
  call_ = 0;
  if (phase_ == Phase::kReading) return OnRead(now, done, out);
  if (phase_ == Phase::kWriting) OnWritten(now, done, out);
}

bool LeaderElection::HeldByAnother(Instant now) const {
  if (record_.holder.empty() || record_.holder == options_.identity) return false;
  return now < changed_at_ + DurationOf(record_, options_.lease_duration);
}

void LeaderElection::OnRead(Instant now, const client::CallDone& done, env::Outbox& out) {
  if (done.outcome == client::Outcome::kGone) {
    // Who held it last may have renewed it just before, and act on as long as that gave it: nobody
    // tells it.
    if (leads_) {
      Lose("it was deleted", out);
    } else if (!document_.empty()) {
      free_at_ = now + DurationOf(record_, options_.lease_duration);
    }
    Forget();
  } else if (done.outcome == client::Outcome::kDone) {
    const Result<LeaseRecord> record = ReadLeaseRecord(done.response.body.view());
    if (!record) {
      Tell(env::LogLevel::kError, record.error().message, out);
      return Wait(now);
    }
    Observe(now, *record, done.response.body.view());
    const bool ours = record_.holder == options_.identity;
    if (leads_ && !ours)
      Lose(record_.holder.empty() ? "it was released"
                                  : fmt::format("it was taken by {}", record_.holder),
           out);
  } else {
    Tell(env::LogLevel::kWarning, fmt::format("it can't be read: {}", client::WhyOf(done)), out);
    return Wait(now);
  }
  if (releases_) {
    Wait(now);
    return OnTick(now, out);
  }
  if (document_.empty() && now < free_at_) {
    Tell(env::LogLevel::kInfo, "standing by, it was deleted", out);
    return Wait(now);
  }
  if (HeldByAnother(now)) {
    Tell(env::LogLevel::kInfo, fmt::format("standing by, {} leads", record_.holder), out);
    return Wait(now);
  }
  from_memory_ = false;
  Write(now, out);
}

void LeaderElection::OnWritten(Instant now, const client::CallDone& done, env::Outbox& out) {
  const Instant sent_at = sent_at_;
  if (done.outcome == client::Outcome::kDone) {
    const Result<LeaseRecord> record = ReadLeaseRecord(done.response.body.view());
    if (record) {
      Observe(now, *record, done.response.body.view());
      if (releases_ && record_.holder.empty()) {
        phase_ = Phase::kOver;
        Tell(env::LogLevel::kInfo, "released", out);
        return;
      }
      if (!releases_ && record_.holder == options_.identity) {
        renewed_at_ = sent_at;
        if (now < Deadline()) Lead(now, out);
      }
    } else {
      known_ = false;
    }
    Wait(now);
    if (releases_) OnTick(now, out);
    return;
  }
  known_ = false;
  const bool moved =
      done.outcome == client::Outcome::kConflict || done.outcome == client::Outcome::kGone;
  if (releases_) {
    phase_ = Phase::kOver;
    Tell(env::LogLevel::kWarning, "it was not given back: others wait until it is over", out);
    return;
  }
  if (moved && from_memory_) return Read(now, out);
  // What doesn't take a new lease is its namespace.
  const bool nowhere = document_.empty() && done.outcome == client::Outcome::kGone;
  if (!moved || nowhere) {
    Tell(env::LogLevel::kWarning,
         fmt::format("it can't be {}: {}", leads_ ? "renewed" : "acquired", client::WhyOf(done)),
         out);
  }
  Wait(now);
}

// What changes beside the record, and who changes it, says nothing of the holder.
void LeaderElection::Observe(Instant now, const LeaseRecord& record, std::string_view document) {
  const auto identity = client::ReadIdentity(document);
  const std::string uid = identity ? identity->uid : "";
  if (record_ != record || uid_ != uid || document_.empty()) changed_at_ = now;
  record_ = record;
  uid_ = uid;
  document_ = document;
  known_ = true;
}

// Of a lease that is gone.
void LeaderElection::Forget() {
  record_ = {};
  document_.clear();
  uid_.clear();
  known_ = false;
}

void LeaderElection::Lead(Instant now, env::Outbox& out) {
  if (leads_) return;
  (void)now;
  leads_ = true;
  ++terms_;
  Tell(env::LogLevel::kInfo, fmt::format("{} leads", options_.identity), out);
}

void LeaderElection::Lose(const std::string& why, env::Outbox& out) {
  leads_ = false;
  Tell(env::LogLevel::kWarning, fmt::format("lost: {}", why), out);
}

// The draws to come only move timers.
void LeaderElection::AddTo(Hasher& hasher) const {
  client_.AddTo(hasher);
  hasher.AddHistory(prng_.fingerprint());
  hasher.Add(phase_).Add(stands_).Add(releases_).Add(leads_).Add(from_memory_).AddCall(call_);
  hasher.Add(sent_at_.ns).Add(at_.ns).Add(record_.holder).Add(record_.duration_seconds);
  hasher.Add(record_.acquire_time).Add(record_.renew_time).Add(record_.transitions);
  hasher.AddDocument(document_)
      .Add(uid_)
      .Add(known_)
      .Add(changed_at_.ns)
      .Add(free_at_.ns)
      .Add(renewed_at_.ns);
}

}  // namespace berth::control
