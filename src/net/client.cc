#include "net/client.h"

#include <fmt/format.h>
#include <pthread.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <chrono>
#include <thread>
#include <utility>

#include "base/check.h"
#include "base/limits.h"
#include "net/client_http1.h"
#include "net/client_http2.h"
#include "net/client_impl.h"
#include "net/gathering.h"
#include "net/tls.h"

namespace berth::net {

namespace asio = boost::asio;
using boost::system::error_code;
using env::CallFailure;
using env::CallId;

namespace {

// As an endpoint says whom to trust, and as whom to come.
Result<asio::ssl::context> ContextFor(const env::Endpoint& to) {
  asio::ssl::context context = internal::MakeContext(/*server=*/false);
  if (to.authority_pem.empty()) {
    error_code error;
    context.set_default_verify_paths(error);
  } else if (Status status = internal::TrustAuthority(context, to.authority_pem); !status) {
    return std::unexpected(status.error());
  }
  if (!to.certificate_pem.empty()) {
    const Status status = internal::UseIdentity(
        context, {.certificate_pem = to.certificate_pem, .key_pem = to.key_pem});
    if (!status) return std::unexpected(status.error());
  }
  context.set_verify_mode(to.insecure ? asio::ssl::verify_none : asio::ssl::verify_peer);
  return context;
}

}  // namespace

std::string GoWords(const error_code& error) {
  std::string text = error.message();
  if (!text.empty() && text[0] >= 'A' && text[0] <= 'Z') text[0] = static_cast<char>(text[0] + 32);
  return text;
}

std::string HostAndPort(const std::string& host, uint16_t port) {
  const bool v6 = host.find(':') != std::string::npos;
  return fmt::format("{}{}{}:{}", v6 ? "[" : "", host, v6 ? "]" : "", port);
}

bool IsEnd(const error_code& error) {
  return error == asio::error::eof || error == asio::ssl::error::stream_truncated;
}

void HttpsClient::Impl::Post(env::Input input) {
  posted.push_back(std::move(input));
  if (flush_posted) return;
  flush_posted = true;
  asio::post(io, [this] {
    flush_posted = false;
    inbox->Post(std::exchange(posted, {}));
  });
}

void HttpsClient::Impl::Tell(std::string text) {
  const MutexLock lock(mutex);
  trouble = std::move(text);
}

void HttpsClient::Impl::Fail(CallId call, CallFailure failure, std::string why) {
  Post(env::CallFailed{.call = call, .failure = failure, .why = std::move(why)});
}

void HttpsClient::Impl::Handle(std::vector<env::Output>& batch) {
  for (env::Output& output : batch) {
    if (auto* send = std::get_if<env::SendRequest>(&output)) {
      const SteadyTime now = std::chrono::steady_clock::now();
      Begin(Call{.id = send->call,
                 .request = std::move(send->request),
                 .stream = send->stream,
                 .once = send->once,
                 .repeated = false,
                 .renewed = false,
                 .token = {},
                 .to = std::move(send->to),
                 .not_after = send->not_after,
                 .deadline = now + std::chrono::nanoseconds(send->timeout.ns),
                 .due = {}});
    } else if (const auto* cancel = std::get_if<env::CancelCall>(&output)) {
      Cancel(cancel->call);
    }
  }
  SetTimer();
}

// Whether there is room for one endpoint more.
bool HttpsClient::Impl::MakeRoomForPool() {
  if (static_cast<int64_t>(pools.size()) < limits::kEndpointsMax) return true;
  auto oldest = pools.end();
  for (auto pool = pools.begin(); pool != pools.end(); ++pool) {
    if (pool->second->busy_count > 0 || !pool->second->waiting.empty()) continue;
    if (oldest == pools.end() || pool->second->used_at < oldest->second->used_at) oldest = pool;
  }
  if (oldest == pools.end()) return false;
  const std::shared_ptr<Pool> unused = oldest->second;
  pools.erase(oldest);
  while (!unused->idle.empty()) {
    const std::shared_ptr<Http1Connection> connection = unused->idle.back();
    connection->Close();
  }
  return true;
}

std::shared_ptr<Pool> HttpsClient::Impl::PoolOf(const Call& call) {
  if (call.to == nullptr) {
    if (own == nullptr) Fail(call.id, CallFailure::kNotSent, "no server");
    return own;
  }
  const auto found = pools.find(*call.to);
  if (found != pools.end()) return found->second;
  Result<asio::ssl::context> context = ContextFor(*call.to);
  if (!context) {
    Fail(call.id, CallFailure::kNotSent, context.error().message);
    return nullptr;
  }
  if (!MakeRoomForPool()) {
    Fail(call.id, CallFailure::kNotSent,
         fmt::format("{} other servers are being called", limits::kEndpointsMax));
    return nullptr;
  }
  return pools.emplace(*call.to, std::make_shared<Pool>(*call.to, std::move(*context)))
      .first->second;
}

void HttpsClient::Impl::Run() {
  if (options.gather_calls_min == 0 || own == nullptr) {
    io.run();
    return;
  }
  Gathering gathering(options.gather_calls_min, options.gather_at_most);
  while (!io.stopped()) {
    io.run_one();
    io.poll();
    // An endpoint's answers, as an extender's, are steps of one decision: none of them waits.
    const bool others =
        std::ranges::any_of(pools, [](const auto& entry) { return entry.second->busy_count > 0; });
    const Duration wait = gathering.Next(others ? 0 : own->busy_count, own->ended_count);
    if (wait > Duration{}) std::this_thread::sleep_for(std::chrono::nanoseconds(wait.ns));
  }
}

bool HttpsClient::Impl::IsTooLate(const Call& call) const {
  if (call.not_after == Instant::Never()) return false;
  CHECK(options.clock != nullptr);
  return options.clock() >= call.not_after;
}

void HttpsClient::Impl::NoteSent(Call& call) {
  deadlines.erase({call.due, call.id.value});
  call.due = call.deadline;
  deadlines.emplace(call.due, call.id.value);
}

void HttpsClient::Impl::Begin(Call call) {
  if (IsTooLate(call)) return Fail(call.id, CallFailure::kNotSent, kCallNoLonger);
  const std::shared_ptr<Pool> pool = PoolOf(call);
  if (pool == nullptr) return;
  pool->used_at = ++calls_count;
  call.due = call.deadline;
  if (call.not_after != Instant::Never()) {
    const SteadyTime now = std::chrono::steady_clock::now();
    const std::chrono::nanoseconds left((call.not_after - options.clock()).ns);
    if (left < call.due - now) call.due = now + left;
  }
  deadlines.emplace(call.due, call.id.value);
  if (IsToWait(*pool, call.stream)) {
    (call.stream ? pool->waiting_streams : pool->waiting).push_back(std::move(call));
  } else {
    Give(pool, std::move(call));
  }
  SetTimer();
}

bool HttpsClient::Impl::IsToWait(const Pool& pool, bool stream) const {
  const auto has_room = [](const auto& connection) { return connection->has_room(); };
  if (pool.offers_http2 && !pool.speaks_http1 && pool.opening > 0 && pool.idle.empty() &&
      std::ranges::none_of(pool.http2, has_room)) {
    return true;
  }
  // Streams don't wait for calls: those that are open hold their places for ever.
  return !stream && pool.busy_count >= options.connections_max;
}

void HttpsClient::Impl::Give(const std::shared_ptr<Pool>& pool, Call call) {
  for (const std::shared_ptr<Http2Connection>& connection : pool->http2) {
    if (!connection->has_room()) continue;
    NoteGiven(call.id, connection);
    return connection->Send(std::move(call));
  }
  if (!pool->idle.empty()) {
    const std::shared_ptr<Http1Connection> connection = pool->idle.back();
    pool->idle.pop_back();
    NoteGiven(call.id, connection);
    return connection->Send(std::move(call));
  }
  Open(pool, std::move(call));
}

void HttpsClient::Impl::Open(const std::shared_ptr<Pool>& pool, Call call) {
  const auto connection = std::make_shared<Http1Connection>(*this, pool);
  open.insert(connection);
  ++pool->opening;
  deadlines.emplace(call.due, call.id.value);
  NoteGiven(call.id, connection);
  connection->Connect(std::move(call));
}

void HttpsClient::Impl::NoteGiven(CallId id, const std::shared_ptr<Carrier>& connection) {
  ++connection->pool()->busy_count;
  calls[id.value] = connection;
}

ParseLimits HttpsClient::Impl::AnswerLimits(const Pool& pool) const {
  return {.header_bytes = static_cast<uint32_t>(limits::kRequestHeaderBytesMax),
          .body_bytes = std::min(pool.to.answer_bytes_max, options.body_bytes_max)};
}

void HttpsClient::Impl::ServeWaiting(const std::shared_ptr<Pool>& pool) {
  const auto serve = [&](std::deque<Call>& waiting, bool stream) {
    while (!waiting.empty() && !stopped && !IsToWait(*pool, stream)) {
      Call call = std::move(waiting.front());
      waiting.pop_front();
      Give(pool, std::move(call));
    }
  };
  serve(pool->waiting_streams, true);
  serve(pool->waiting, false);
}

std::optional<Call> HttpsClient::Impl::TakeWaiting(Pool& pool) {
  std::deque<Call>& from = pool.waiting_streams.empty() ? pool.waiting : pool.waiting_streams;
  if (from.empty()) return std::nullopt;
  std::optional<Call> call = std::move(from.front());
  from.pop_front();
  return call;
}

void HttpsClient::Impl::NoteStreaming(const std::shared_ptr<Pool>& pool) {
  --pool->busy_count;
  ServeWaiting(pool);
}

void HttpsClient::Impl::End(const Call& call, bool streaming, Pool& pool) {
  calls.erase(call.id.value);
  deadlines.erase({call.due, call.id.value});
  if (!streaming) {
    --pool.busy_count;
    ++pool.ended_count;
  }
  CHECK_GE(pool.busy_count, 0);
}

void HttpsClient::Impl::Reuse(const std::shared_ptr<Http1Connection>& connection) {
  const std::shared_ptr<Pool> pool = connection->pool();
  // A stream that has ended may leave one more than there are calls for.
  if (static_cast<int>(pool->idle.size()) >= options.connections_max) return connection->Close();
  pool->idle.push_back(connection);
  ServeWaiting(pool);
}

void HttpsClient::Impl::Forget(const std::shared_ptr<Carrier>& connection) {
  const std::shared_ptr<Pool> pool = connection->pool();
  open.erase(connection);
  std::erase(pool->idle, connection);
  std::erase(pool->http2, connection);
  // Its place is free for a call that waits.
  ServeWaiting(pool);
}

std::string HttpsClient::Impl::TokenFor(const Pool& pool, const env::HttpRequest& request) const {
  if (!pool.own || !options.bearer_token || env::FindHeader(request.headers, "authorization"))
    return "";
  return options.bearer_token->Current();
}

bool HttpsClient::Impl::RefusedWithOldToken(const Call& call, int status) const {
  constexpr int kUnauthorized = 401;
  return status == kUnauthorized && !call.token.empty() && !call.renewed &&
         options.bearer_token->Renew(call.token);
}

void HttpsClient::Impl::Cancel(CallId id) {
  const auto found = calls.find(id.value);
  if (found != calls.end()) {
    const std::shared_ptr<Carrier> connection = found->second;
    return connection->Abandon(id);
  }
  EraseWaiting(id);
}

// A call that waits for a connection; its deadline goes with it.
void HttpsClient::Impl::EraseWaiting(CallId id) {
  const auto erase_from = [&](std::deque<Call>& waiting) {
    const auto call = std::ranges::find(waiting, id, &Call::id);
    if (call == waiting.end()) return false;
    deadlines.erase({call->due, id.value});
    waiting.erase(call);
    return true;
  };
  if (own != nullptr && (erase_from(own->waiting) || erase_from(own->waiting_streams))) return;
  for (const auto& [to, pool] : pools) {
    if (erase_from(pool->waiting)) return;
  }
}

void HttpsClient::Impl::SetTimer() {
  if (deadlines.empty()) return;
  const SteadyTime next = deadlines.begin()->first;
  if (timer.expiry() == next) return;
  timer.expires_at(next);
  timer.async_wait([this](const error_code& error) {
    if (!error) OnTimer();
  });
}

void HttpsClient::Impl::OnTimer() {
  const SteadyTime now = std::chrono::steady_clock::now();
  while (!deadlines.empty() && deadlines.begin()->first <= now) {
    const CallId id{deadlines.begin()->second};
    deadlines.erase(deadlines.begin());
    const auto found = calls.find(id.value);
    if (found == calls.end()) {
      EraseWaiting(id);
      Fail(id, CallFailure::kNotSent, kCallLate);
      continue;
    }
    const std::shared_ptr<Carrier> connection = found->second;
    const Carrier::Progress progress = connection->ProgressOf(id);
    if (progress.streaming) continue;  // Answered in time.
    Fail(id, progress.sent ? CallFailure::kTimeout : CallFailure::kNotSent, kCallLate);
    connection->Abandon(id);
  }
  timer.expires_at(SteadyTime::min());
  SetTimer();
}

HttpsClient::HttpsClient(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
HttpsClient::~HttpsClient() { Stop(); }

Result<std::unique_ptr<HttpsClient>> HttpsClient::Make(ClientOptions options) {
  env::Endpoint to{.host = options.host,
                   .port = options.port,
                   .server_name = options.server_name.empty() ? options.host : options.server_name,
                   .authority_pem = options.authority_pem,
                   .host_header = HostAndPort(options.host, options.port),
                   .insecure = options.insecure,
                   .certificate_pem = options.identity.certificate_pem,
                   .key_pem = options.identity.key_pem,
                   .answer_bytes_max = options.body_bytes_max};
  Result<asio::ssl::context> context = ContextFor(to);
  if (!context) return std::unexpected(context.error());
  auto impl = std::make_unique<Impl>(std::move(options));
  if (!impl->options.host.empty()) {
    impl->own = std::make_shared<Pool>(std::move(to), std::move(*context));
    impl->own->own = true;
    if (impl->options.http2) {
      impl->own->offers_http2 = true;
      internal::OfferHttp2(impl->own->tls);
    }
  }
  return std::unique_ptr<HttpsClient>(new HttpsClient(std::move(impl)));
}

void HttpsClient::Start(env::InputSink& inbox) {
  CHECK(!impl_->thread.joinable());
  impl_->inbox = &inbox;
  impl_->thread = std::thread([this] { impl_->Run(); });
  pthread_setname_np(impl_->thread.native_handle(), "https-client");
}

void HttpsClient::Stop() {
  if (!impl_->thread.joinable()) return;
  asio::post(impl_->io, [this] {
    impl_->stopped = true;
    impl_->timer.cancel();
    const auto open = impl_->open;
    for (const auto& connection : open) connection->Close();
    impl_->io.stop();
  });
  impl_->thread.join();
}

std::string HttpsClient::trouble() const {
  const MutexLock lock(impl_->mutex);
  return impl_->trouble;
}

void HttpsClient::Take(std::vector<env::Output> batch) {
  asio::post(impl_->io, [this, batch = std::move(batch)]() mutable { impl_->Handle(batch); });
}

}  // namespace berth::net
