#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "apiserver/apiserver.h"
#include "base/check.h"
#include "base/hash.h"

// For tests and benchmarks: a server with a journal that acknowledges when told to, and a client
// that reads what it is sent.
namespace berth::apiserver {

// Signs by a hash: whoever has the text can do it.
inline std::shared_ptr<const TokenKey> FakeTokenKey() {
  const auto sign = [](std::string_view text) { return fmt::format("{:016x}", HashOf(text)); };
  return std::make_shared<const TokenKey>(TokenKey{
      .public_half =
          [] { return TokenKey::Public{.id = "key", .modulus = "modulus", .exponent = "e"}; },
      .sign = sign,
      .verify = [sign](std::string_view text,
                       std::string_view signature) { return sign(text) == signature; }});
}

class ServerFixture {
 public:
  explicit ServerFixture(Options options = {}, std::vector<env::JournalRecord> records = {},
                         Instant now = Instant::FromSeconds(1'800'000'000))
      : now_(now), server_(Make(std::move(options), records)), journal_(std::move(records)) {
    Settle();
  }

  struct Stream {
    std::string text;
    uint64_t undrained = 0;
    bool open = false;
    bool aborted = false;
  };

  // Sends a request and settles everything it causes; the answer, or nothing while a watch is open.
  env::HttpResponse Call(env::Method method, std::string target, std::string body = "",
                         std::vector<env::Header> headers = {}) {
    const env::ExchangeId exchange =
        Send(method, std::move(target), std::move(body), std::move(headers));
    Settle();
    return Take(exchange);
  }

  env::ExchangeId Send(env::Method method, std::string target, std::string body = "",
                       std::vector<env::Header> headers = {}) {
    const env::ExchangeId exchange{++exchanges_};
    // Whose writes are not tracked, unless a test says who it is.
    if (!env::FindHeader(headers, "user-agent")) headers.push_back({"user-agent", "berth"});
    Feed(env::RequestArrived{.exchange = exchange,
                             .peer = peer_,
                             .request = {.method = method,
                                         .target = std::move(target),
                                         .headers = std::move(headers),
                                         .body = Bytes(std::move(body))}});
    return exchange;
  }

  env::HttpResponse Take(env::ExchangeId exchange) {
    const auto it = answers_.find(exchange.value);
    CHECK(it != answers_.end());
    env::HttpResponse response = std::move(it->second);
    answers_.erase(it);
    return response;
  }
  [[nodiscard]] bool Answered(env::ExchangeId exchange) const {
    return answers_.contains(exchange.value);
  }

  void Feed(env::Input input) {
    env::Outbox out;
    server_.Step(now_, std::move(input), out);
    for (env::Output& output : out) Take(std::move(output));
  }

  // The journal has what was last given to it. REQUIRES: append_waiting().
  void Acknowledge() {
    const uint64_t sequence = append_.value();
    append_.reset();
    Feed(env::JournalAppended{.sequence = sequence});
  }

  // The journal has no room for it. REQUIRES: append_waiting().
  void Refuse() {
    const uint64_t sequence = append_.value();
    append_.reset();
    journal_.resize(journaled_);
    Feed(env::JournalRefused{.sequence = sequence});
  }

  // Acknowledges appends and lets due timers run until nothing is left to do.
  void Settle() {
    while (true) {
      if (append_) {
        Acknowledge();
      } else if (server_.wake_at() <= now_) {
        Feed(env::Tick{});
      } else if (!Drain()) {
        return;
      }
    }
  }

  // Time passes, and nothing is done.
  void Wait(Duration time) { now_ = now_ + time; }
  void Advance(Duration time) {
    now_ = now_ + time;
    Settle();
  }

  ApiServer& server() { return server_; }
  Stream& stream(env::ExchangeId exchange) { return streams_[exchange.value]; }
  [[nodiscard]] const std::vector<env::JournalRecord>& journal() const { return journal_; }
  [[nodiscard]] Instant now() const { return now_; }
  [[nodiscard]] bool append_waiting() const { return append_.has_value(); }
  // What the server wants of others, in order, as it was sent; answer by Feed.
  [[nodiscard]] std::vector<env::SendRequest> TakeCalls() { return std::exchange(calls_, {}); }
  [[nodiscard]] const std::vector<env::CallId>& cancelled() const { return cancelled_; }
  // Who the transport says is at the other end.
  void set_peer(env::Peer peer) { peer_ = std::move(peer); }
  void set_draining(bool draining) { draining_ = draining; }
  // Without it frames are counted, not kept.
  void set_keeping(bool keeping) { keeping_ = keeping; }
  [[nodiscard]] uint64_t frame_bytes() const { return frame_bytes_; }

 private:
  static ApiServer Make(Options options, const std::vector<env::JournalRecord>& records) {
    Result<ApiServer> server = ApiServer::Make(std::move(options), {.records = records});
    CHECK(server.has_value());
    return std::move(*server);
  }

  void Take(env::Output output) {
    if (auto* respond = std::get_if<env::Respond>(&output)) {
      if (respond->stream) streams_[respond->exchange.value].open = true;
      answers_[respond->exchange.value] = std::move(respond->response);
    } else if (auto* frame = std::get_if<env::Frame>(&output)) {
      Stream& stream = streams_[frame->exchange.value];
      if (keeping_) stream.text += frame->data.view();
      frame_bytes_ += frame->data.size();
      stream.undrained += frame->data.size();
    } else if (auto* end = std::get_if<env::EndStream>(&output)) {
      streams_[end->exchange.value].open = false;
      streams_[end->exchange.value].aborted = end->abort;
    } else if (auto* send = std::get_if<env::SendRequest>(&output)) {
      calls_.push_back(std::move(*send));
    } else if (const auto* cancel = std::get_if<env::CancelCall>(&output)) {
      cancelled_.push_back(cancel->call);
    } else if (auto* append = std::get_if<env::AppendJournal>(&output)) {
      CHECK(!append_);
      append_ = append->sequence;
      if (keeping_) {
        journaled_ = journal_.size();
        journal_.insert(journal_.end(), append->records.begin(), append->records.end());
      }
    }
  }

  bool Drain() {
    bool any = false;
    if (!draining_) return false;
    for (auto& [exchange, stream] : streams_) {
      if (stream.undrained == 0 || !stream.open) continue;
      any = true;
      Feed(env::StreamDrained{.exchange = {exchange}, .bytes = std::exchange(stream.undrained, 0)});
    }
    return any;
  }

  Instant now_;
  ApiServer server_;
  env::Peer peer_{.user = "admin", .groups = {"system:masters"}};
  uint64_t exchanges_ = 0;
  std::map<uint64_t, env::HttpResponse> answers_;
  std::map<uint64_t, Stream> streams_;
  std::optional<uint64_t> append_;
  std::vector<env::JournalRecord> journal_;
  size_t journaled_ = 0;  // Records before the append that waits.
  std::vector<env::SendRequest> calls_;
  std::vector<env::CallId> cancelled_;
  bool draining_ = true;
  bool keeping_ = true;
  uint64_t frame_bytes_ = 0;
};

}  // namespace berth::apiserver
