#include "apiserver/waiting_writes.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "apiserver/webhook_target.h"
#include "base/check.h"
#include "base/limits.h"
#include "base/prng.h"

namespace berth::apiserver {

namespace {

// Beside texts: maps, headers, names.
constexpr int64_t kUsualBytes = 1024;

Verdict VerdictOf(const Webhook& webhook, std::string_view uid, const env::HttpResponse& response) {
  return ReadAnswer({.webhook = webhook.name,
                     .version = webhook.review_version,
                     .uid = uid,
                     .mutates = webhook.mutates},
                    response);
}

int64_t BytesOf(const WaitingWrite& write, const std::vector<WantedCall>& wanted) {
  size_t sum = write.arrived.request.body.size() + write.arrived.request.target.size();
  for (const HeardVerdict& heard : write.heard) sum += heard.about.size() + heard.verdict.bytes();
  for (size_t i = 0; i < write.progress.next; ++i) sum += write.progress.targets[i]->json.size();
  // What is sent has the text once more.
  for (const WantedCall& call : wanted) sum += 2 * call.text.size();
  return static_cast<int64_t>(sum) + kUsualBytes;
}

}  // namespace

Outcome<std::optional<WaitingWrite>> WaitingWrites::Wait(Instant now, WaitingWrite write,
                                                         const std::vector<WantedCall>& wanted,
                                                         const store::Store& store,
                                                         env::Outbox& out) {
  CHECK(!wanted.empty());
  const env::ExchangeId exchange = write.arrived.exchange;
  CHECK(!writes_.contains(exchange.value));
  const Instant end = write.now + kTimeMax;
  CHECK(now < end);
  const int64_t bytes = BytesOf(write, wanted);
  if (static_cast<int64_t>(writes_.size()) >= limits::kWaitingWritesMax ||
      bytes_ + bytes > limits::kWaitingBytesMax) {
    return TooManyRequests("too many requests wait for admission webhooks, please try again later",
                           1);
  }
  Entry entry{.write = std::move(write), .bytes = bytes};
  for (const WantedCall& want : wanted) {
    const uint64_t number = ++last_call_;
    Prng prng(Hasher().Add(entry.write.seed).Add(number).value());
    const Webhook& webhook = *want.webhook;
    std::expected<env::Endpoint, std::string> to = ResolveWebhook(webhook, store, prng);
    if (!to) {
      entry.write.heard.push_back({.key = webhook.key,
                                   .about = want.about,
                                   .verdict = LostCall(WebhookUrl(webhook), to.error())});
      continue;
    }
    std::string uid = NewUid(prng);
    out.emplace_back(env::SendRequest{
        .call = {number},
        .request = {.method = env::Method::kPost,
                    .target = WebhookTarget(webhook),
                    .headers = {{"content-type", "application/json"},
                                {"accept", "application/json"},
                                {"user-agent", "berth"}},
                    .body = Bytes(ReviewBody(webhook.review_version, uid, want.text.view()))},
        .timeout = std::min(webhook.timeout, end - now),
        .to = std::make_shared<const env::Endpoint>(std::move(*to))});
    calls_.emplace(number, Call{.exchange = exchange,
                                .webhook = want.webhook,
                                .about = want.about,
                                .uid = std::move(uid)});
    ++entry.calls_count;
  }
  if (entry.calls_count == 0) return std::optional(std::move(entry.write));
  bytes_ += entry.bytes;
  ends_.emplace(end.ns, exchange.value);
  writes_.emplace(exchange.value, std::move(entry));
  return std::nullopt;
}

std::optional<WaitingWrite> WaitingWrites::Hear(const env::Response& response) {
  return Hear(response.call, &response.response, "");
}

std::optional<WaitingWrite> WaitingWrites::Hear(const env::CallFailed& failed) {
  return Hear(failed.call, nullptr, failed.why.empty() ? "EOF" : std::string_view(failed.why));
}

std::optional<WaitingWrite> WaitingWrites::Hear(env::CallId call, const env::HttpResponse* response,
                                                std::string_view why) {
  const auto found = calls_.find(call.value);
  if (found == calls_.end()) return std::nullopt;  // Cancelled meanwhile.
  Call known = std::move(found->second);
  calls_.erase(found);
  const auto entry = writes_.find(known.exchange.value);
  CHECK(entry != writes_.end());
  const Webhook& webhook = *known.webhook;
  Verdict verdict = response == nullptr ? LostCall(WebhookUrl(webhook), why)
                                        : VerdictOf(webhook, known.uid, *response);
  if (bytes_ + static_cast<int64_t>(verdict.bytes()) > limits::kWaitingBytesMax)
    verdict = LostCall(WebhookUrl(webhook), "too much is kept of answers of webhooks");
  const auto bytes = static_cast<int64_t>(verdict.bytes());
  entry->second.write.heard.push_back(
      {.key = webhook.key, .about = std::move(known.about), .verdict = std::move(verdict)});
  entry->second.bytes += bytes;
  bytes_ += bytes;
  CHECK_GT(entry->second.calls_count, 0);
  if (--entry->second.calls_count > 0) return std::nullopt;
  return Take(entry);
}

WaitingWrite WaitingWrites::Take(std::map<uint64_t, Entry>::iterator entry) {
  WaitingWrite write = std::move(entry->second.write);
  bytes_ -= entry->second.bytes;
  CHECK_GE(bytes_, 0);
  CHECK_EQ(ends_.erase({(write.now + kTimeMax).ns, entry->first}), size_t{1});
  writes_.erase(entry);
  return write;
}

void WaitingWrites::Cancel(env::ExchangeId exchange, env::Outbox& out) {
  std::erase_if(calls_, [&](const auto& call) {
    if (call.second.exchange != exchange) return false;
    out.emplace_back(env::CancelCall{.call = {call.first}});
    return true;
  });
}

void WaitingWrites::Abandon(env::ExchangeId exchange, env::Outbox& out) {
  const auto entry = writes_.find(exchange.value);
  if (entry == writes_.end()) return;
  Cancel(exchange, out);
  Take(entry);
}

std::vector<WaitingWrite> WaitingWrites::Expire(Instant now, env::Outbox& out) {
  std::vector<WaitingWrite> ended;
  while (wake_at() <= now) {
    const uint64_t exchange = ends_.begin()->second;
    Cancel({exchange}, out);
    ended.push_back(Take(writes_.find(exchange)));
  }
  return ended;
}

Instant WaitingWrites::wake_at() const {
  return ends_.empty() ? Instant::Never() : Instant{ends_.begin()->first};
}

void AddWrite(const WaitingWrite& write, Hasher& hasher) {
  const env::HttpRequest& request = write.arrived.request;
  hasher.Add(write.arrived.exchange.value);
  hasher.Add(write.now.ns).Add(write.seed).Add(write.identity.user);
  hasher.Add(request.method).Add(request.target).Add(request.body.view());
  for (const env::Header& header : request.headers) hasher.Add(header.name).Add(header.value);
  for (const HeardVerdict& heard : write.heard) {
    hasher.Add(heard.key).Add(heard.about.view());
    heard.verdict.AddTo(hasher);
  }
  hasher.Add(write.progress.begun).Add(write.progress.next).Add(write.progress.metadata);
  for (const store::ObjectRef& target : write.progress.targets) hasher.Add(target->revision);
}

void WaitingWrites::AddTo(Hasher& hasher) const {
  hasher.Add(writes_.size()).AddHistory(last_call_);
  for (const auto& [exchange, entry] : writes_) AddWrite(entry.write, hasher);
  for (const auto& [number, call] : calls_)
    hasher.Add(number).Add(call.exchange.value).Add(call.webhook->key).Add(call.about.view());
}

}  // namespace berth::apiserver
