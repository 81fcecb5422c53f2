#include "net/client_http2.h"

#include <openssl/err.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>
#include <chrono>
#include <map>
#include <utility>
#include <vector>

#include "base/check.h"

namespace berth::net {

namespace asio = boost::asio;
using boost::system::error_code;
using env::CallFailure;
using env::CallId;
using AnswerEnd = Http2Answer::End;

namespace {

constexpr int kOk = 200;
constexpr const char* kEnd = "EOF";
constexpr const char* kPeerIsGone = "http2: client connection lost";

std::chrono::nanoseconds Of(Duration duration) { return std::chrono::nanoseconds(duration.ns); }

}  // namespace

Http2Connection::Http2Connection(HttpsClient::Impl& client, std::shared_ptr<Pool> pool,
                                 TlsStream stream)
    : Carrier(std::move(pool)),
      client_(client),
      stream_(std::move(stream)),
      session_(client.AnswerLimits(*pool_)),
      life_(client.io) {}

void Http2Connection::Start() {
  read_at_ = std::chrono::steady_clock::now();
  FlushSoon();
  Read();
  WatchLife(Life::kQuiet);
}

bool Http2Connection::has_room() const {
  return session_.room() > static_cast<int64_t>(queued_.size());
}

void Http2Connection::Send(Call call) {
  queued_.push_back(std::move(call));
  FlushSoon();
}

Carrier::Progress Http2Connection::ProgressOf(CallId call) const {
  const auto stream = streams_.find(call.value);
  if (stream != streams_.end()) {
    const Exchange& exchange = exchanges_.at(stream->second);
    return {.due = exchange.call.due, .sent = true, .streaming = exchange.streaming};
  }
  const auto queued = std::ranges::find(queued_, call, &Call::id);
  CHECK(queued != queued_.end());
  return {.due = queued->due};
}

void Http2Connection::Abandon(CallId call) {
  const auto stream = streams_.find(call.value);
  if (stream != streams_.end()) {
    Take(stream->second);
    FlushSoon();
  } else {
    const auto queued = std::ranges::find(queued_, call, &Call::id);
    CHECK(queued != queued_.end());
    client_.End(*queued, /*streaming=*/false, *pool_);
    queued_.erase(queued);
  }
  GiveAway();
  client_.ServeWaiting(pool_);
}

void Http2Connection::FlushSoon() {
  if (std::exchange(flush_posted_, true)) return;
  asio::post(client_.io, [self = Self()] {
    self->flush_posted_ = false;
    self->Flush();
  });
}

void Http2Connection::Flush() {
  // Framed now, what is queued would wait, and might be too late when its bytes go.
  if (closed_ || writing_) return;
  ResetLate();
  SendQueued();
  Write();
}

// The server can't have carried them out: it waits for their ends.
void Http2Connection::ResetLate() {
  if (!session_.any_partly_sent()) return;
  std::vector<int32_t> late;
  for (const auto& [stream, exchange] : exchanges_) {
    if (session_.IsPartlySent(stream) && client_.IsTooLate(exchange.call)) late.push_back(stream);
  }
  std::ranges::sort(late);
  for (const int32_t stream : late) {
    const Exchange exchange = Take(stream);
    client_.Fail(exchange.call.id, CallFailure::kLost, kCallNoLonger);
  }
  if (!late.empty()) client_.ServeWaiting(pool_);
}

void Http2Connection::SendQueued() {
  bool dropped = false;
  while (!queued_.empty() && session_.room() > 0) {
    Call call = std::move(queued_.front());
    queued_.pop_front();
    if (client_.IsTooLate(call)) {
      client_.End(call, /*streaming=*/false, *pool_);
      client_.Fail(call.id, CallFailure::kNotSent, kCallNoLonger);
      dropped = true;
      continue;
    }
    call.token = client_.TokenFor(*pool_, call.request);
    const int32_t stream = session_.Send({.request = call.request,
                                          .authority = pool_->to.host_header,
                                          .path_prefix = client_.options.path_prefix,
                                          .token = call.token,
                                          .stream = call.stream});
    streams_[call.id.value] = stream;
    Exchange& exchange = exchanges_[stream];
    exchange.call = std::move(call);
    client_.NoteSent(exchange.call);
  }
  if (dropped) client_.ServeWaiting(pool_);
}

void Http2Connection::Write() {
  out_.clear();
  const Status status = session_.AppendOutput(out_);
  DeliverTouched();  // What the session itself reset.
  if (!status && out_.empty()) return Break("http2: " + status.error().message);
  if (out_.empty()) return;
  writing_ = true;
  write_at_ = std::chrono::steady_clock::now();
  asio::async_write(stream_, asio::buffer(out_), [self = Self()](const error_code& error, size_t) {
    self->writing_ = false;
    if (error) return self->Break("write: " + GoWords(error));
    self->Flush();
  });
}

void Http2Connection::Read() {
  stream_.async_read_some(
      asio::buffer(read_buffer_),
      [self = Self()](const error_code& error, size_t bytes) { self->OnRead(error, bytes); });
}

void Http2Connection::OnRead(const error_code& error, size_t bytes) {
  if (closed_) return;
  if (error) {
    ERR_clear_error();
    return Break(IsEnd(error) ? kEnd : "read: " + GoWords(error));
  }
  read_at_ = std::chrono::steady_clock::now();
  const Status status = session_.Put({read_buffer_.data(), bytes});
  if (opening_ && session_.settled()) {
    opening_ = false;
    --pool_->opening;
  }
  DeliverTouched();
  if (!status) return Break("http2: " + status.error().message);
  GiveAway();
  client_.ServeWaiting(pool_);
  if (closed_) return;
  FlushSoon();
  Read();
}

void Http2Connection::DeliverTouched() {
  const std::vector<int32_t> touched = session_.TakeTouched();
  for (const int32_t stream : touched) Deliver(stream);
  if (!touched.empty()) client_.ServeWaiting(pool_);
}

void Http2Connection::Deliver(int32_t stream) {
  Exchange& exchange = exchanges_.at(stream);
  Http2Answer& answer = session_.AnswerOf(stream);
  exchange.answering = exchange.answering || answer.head_done;
  answered_ = answered_ || answer.head_done;
  if (exchange.call.stream && !exchange.streaming && answer.head_done &&
      answer.head.status == kOk) {
    exchange.streaming = true;
    client_.NoteStreaming(pool_);
    client_.Post(env::Response{.call = exchange.call.id, .response = answer.head});
  }
  std::string data = std::exchange(answer.body, {});
  if (exchange.streaming && !data.empty()) {
    client_.Post(env::StreamData{.call = exchange.call.id, .data = Bytes(std::move(data))});
  } else if (exchange.body.empty()) {
    exchange.body = std::move(data);
  } else {
    exchange.body += data;
  }
  if (answer.end != AnswerEnd::kOpen) DeliverEnd(stream, std::move(answer));
}

void Http2Connection::DeliverEnd(int32_t stream, Http2Answer answer) {
  Exchange exchange = Take(stream);
  const CallId id = exchange.call.id;
  if (exchange.streaming) return client_.Post(env::StreamEnded{id});
  if (answer.end == AnswerEnd::kRefused) return SendAnew(std::move(exchange.call), answer.why);
  if (answer.end != AnswerEnd::kComplete)
    return client_.Fail(id, CallFailure::kLost, std::move(answer.why));
  if (client_.RefusedWithOldToken(exchange.call, answer.head.status)) {
    exchange.call.renewed = true;
    return client_.Begin(std::move(exchange.call));
  }
  answer.head.body = Bytes(std::move(exchange.body));
  client_.Post(env::Response{.call = id, .response = std::move(answer.head)});
}

void Http2Connection::SendAnew(Call call, const std::string& why) {
  if (call.repeated || call.once) return client_.Fail(call.id, CallFailure::kNotSent, why);
  call.repeated = true;
  client_.Begin(std::move(call));
}

Http2Connection::Exchange Http2Connection::Take(int32_t stream) {
  const auto found = exchanges_.find(stream);
  CHECK(found != exchanges_.end());
  Exchange exchange = std::move(found->second);
  exchanges_.erase(found);
  streams_.erase(exchange.call.id.value);
  session_.Forget(stream);
  client_.End(exchange.call, exchange.streaming, *pool_);
  return exchange;
}

void Http2Connection::GiveAway() {
  if (closed_) return;
  std::deque<Call> given;
  while (static_cast<int64_t>(queued_.size()) > session_.room()) {
    given.push_front(std::move(queued_.back()));
    queued_.pop_back();
  }
  for (Call& call : given) {
    client_.End(call, /*streaming=*/false, *pool_);
    client_.Begin(std::move(call));
  }
  if (exchanges_.empty() && queued_.empty() && session_.room() == 0) Close();
}

// The connection has failed.
void Http2Connection::Break(const std::string& why) {
  if (closed_) return;
  Detach();
  // In the order in which they came.
  std::map<int32_t, Exchange> exchanges;
  for (auto& [stream, exchange] : exchanges_) exchanges.emplace(stream, std::move(exchange));
  exchanges_.clear();
  std::deque<Call> queued = std::exchange(queued_, {});
  for (const auto& [stream, exchange] : exchanges)
    client_.End(exchange.call, exchange.streaming, *pool_);
  for (const Call& call : queued) client_.End(call, /*streaming=*/false, *pool_);
  for (auto& [stream, exchange] : exchanges) {
    Call& call = exchange.call;
    const bool may_repeat = answered_ && !exchange.answering && !call.repeated && !call.once &&
                            call.request.method == env::Method::kGet;
    if (exchange.streaming) {
      client_.Post(env::StreamEnded{call.id});
    } else if (may_repeat) {
      call.repeated = true;
      client_.Begin(std::move(call));
    } else {
      client_.Fail(call.id, CallFailure::kLost,
                   exchange.answering && why == kEnd ? "unexpected EOF" : why);
    }
  }
  for (Call& call : queued) client_.Begin(std::move(call));
  client_.ServeWaiting(pool_);
}

void Http2Connection::Close() {
  if (closed_) return;
  Detach();
  for (const auto& [stream, exchange] : exchanges_)
    client_.End(exchange.call, exchange.streaming, *pool_);
  for (const Call& call : queued_) client_.End(call, /*streaming=*/false, *pool_);
  exchanges_.clear();
  queued_.clear();
  client_.ServeWaiting(pool_);
}

// Looks whether the other end is still there when nothing has come for a while: without a word
// from it TCP tells after a quarter of an hour.
void Http2Connection::WatchLife(Life life) {
  const Duration after =
      life == Life::kQuiet ? client_.options.ping_after : client_.options.ping_timeout;
  const SteadyTime asked_at = std::chrono::steady_clock::now();
  life_.expires_at((life == Life::kQuiet ? read_at_ : asked_at) + Of(after));
  life_.async_wait([self = Self(), life, asked_at](const error_code& error) {
    if (error || self->closed_) return;
    const SteadyTime now = std::chrono::steady_clock::now();
    const auto patience = Of(self->client_.options.ping_timeout);
    // Who writes and doesn't read is no better.
    if (self->writing_ && now - self->write_at_ > patience) return self->Break(kPeerIsGone);
    if (life == Life::kAsked) {
      if (self->read_at_ < asked_at) return self->Break(kPeerIsGone);
      return self->WatchLife(Life::kQuiet);
    }
    if (now - self->read_at_ < Of(self->client_.options.ping_after))
      return self->WatchLife(Life::kQuiet);
    self->session_.Ping();
    self->FlushSoon();
    self->WatchLife(Life::kAsked);
  });
}

void Http2Connection::Detach() {
  closed_ = true;
  life_.cancel();
  if (std::exchange(opening_, false)) --pool_->opening;
  error_code ignored;
  stream_.next_layer().shutdown(asio::socket_base::shutdown_both, ignored);
  stream_.next_layer().close(ignored);
  client_.Forget(shared_from_this());
}

}  // namespace berth::net
