#include "net/client.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <pthread.h>

#include <array>
#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <chrono>
#include <deque>
#include <map>
#include <set>
#include <thread>
#include <unordered_map>
#include <utility>

#include "base/check.h"
#include "base/limits.h"
#include "base/mutex.h"
#include "net/http_parser.h"
#include "net/tls.h"

namespace berth::net {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;
using env::CallFailure;
using env::CallId;
using SteadyTime = std::chrono::steady_clock::time_point;

constexpr size_t kReadBytes = 32 * 1024;

bool IsAddress(const std::string& host) {
  unsigned char bytes[16];
  return inet_pton(AF_INET, host.c_str(), bytes) == 1 ||
         inet_pton(AF_INET6, host.c_str(), bytes) == 1;
}

// A call from its SendRequest to its last input.
struct Call {
  CallId id;
  env::HttpRequest request;
  bool stream = false;
  bool once = false;
  bool repeated = false;  // Sent once more already.
  bool renewed = false;   // The same, with another token.
  std::string token;      // That it was sent with.
  std::shared_ptr<const env::Endpoint> to;
  Instant not_after;
  SteadyTime deadline;  // Of the answer.
  SteadyTime due;       // When it is looked at: what comes first, until it is sent.
};

class Connection;

// A server and the connections to it.
struct Pool {
  Pool(env::Endpoint e, asio::ssl::context c) : to(std::move(e)), tls(std::move(c)) {}

  // Immutable after construction.
  const env::Endpoint to;
  asio::ssl::context tls;
  bool own = false;  // The server of the options, who gets the credentials.

  std::vector<std::shared_ptr<Connection>> idle;
  std::deque<Call> waiting;
  int busy_count = 0;    // Connections with a call that is no open stream.
  uint64_t used_at = 0;  // By the count of calls.
};

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

// An error of a connection as Go says it: "connection refused".
std::string GoWords(const error_code& error) {
  std::string text = error.message();
  if (!text.empty() && text[0] >= 'A' && text[0] <= 'Z') text[0] = static_cast<char>(text[0] + 32);
  return text;
}

std::string HostAndPort(const std::string& host, uint16_t port) {
  const bool v6 = host.find(':') != std::string::npos;
  return fmt::format("{}{}{}:{}", v6 ? "[" : "", host, v6 ? "]" : "", port);
}

constexpr const char* kLate = "context deadline exceeded";
constexpr const char* kNoLonger = "it must not be sent any more";

}  // namespace

struct HttpsClient::Impl {
  explicit Impl(ClientOptions o)
      : options(std::move(o)), resolver(io), timer(io), guard(io.get_executor()) {}

  void Run();
  void Handle(std::vector<env::Output>& batch);
  void Begin(Call call);
  // Whether it may not be sent any more.
  [[nodiscard]] bool IsTooLate(const Call& call) const;
  // Where a call goes; null: nowhere, and it was failed.
  std::shared_ptr<Pool> PoolOf(const Call& call);
  bool MakeRoomForPool();
  void Cancel(CallId id);
  void EraseWaiting(CallId id);
  void Open(const std::shared_ptr<Pool>& pool, Call call);
  // A connection has no call any more and can take one.
  void Reuse(const std::shared_ptr<Connection>& connection);
  void Forget(Connection& connection);
  void Fail(CallId call, CallFailure failure, std::string why);
  void Tell(std::string text);
  void Post(env::Input input);
  // It is sent: from here on its answer is waited for.
  void NoteSent(Call& call);
  void SetTimer();
  void OnTimer();

  // Immutable after construction.
  const ClientOptions options;
  std::shared_ptr<Pool> own;  // Null without a server of its own.

  asio::io_context io{1};
  tcp::resolver resolver;
  asio::steady_timer timer;
  asio::executor_work_guard<asio::io_context::executor_type> guard;
  std::thread thread;
  env::InputSink* inbox = nullptr;
  bool stopped = false;

  mutable Mutex mutex;
  std::string trouble GUARDED_BY(mutex) = "no connection in time";

  // The io thread's own, once it runs.
  std::unordered_map<uint64_t, std::shared_ptr<Connection>> calls;  // Under way, by call.
  std::set<std::shared_ptr<Connection>> open;
  std::map<env::Endpoint, std::shared_ptr<Pool>> pools;  // Of endpoints.
  uint64_t calls_count = 0;
  std::set<std::pair<SteadyTime, uint64_t>> deadlines;
  std::vector<env::Input> posted;
  bool flush_posted = false;
};

namespace {

// One connection, with at most one call at a time. All of it on the io thread.
class Connection final : public std::enable_shared_from_this<Connection> {
 public:
  Connection(HttpsClient::Impl& client, std::shared_ptr<Pool> pool)
      : client_(client),
        pool_(std::move(pool)),
        stream_(client.io, pool_->tls),
        parser_({.header_bytes = static_cast<uint32_t>(limits::kRequestHeaderBytesMax),
                 .body_bytes = client.options.body_bytes_max}) {}

  // Connects, then sends `call`.
  void Connect(Call call);
  // REQUIRES: idle.
  void Send(Call call);
  void Abandon();  // Its call was cancelled or timed out.
  [[nodiscard]] bool sent() const { return sent_; }
  [[nodiscard]] const Call& call() const { return *call_; }
  [[nodiscard]] bool streaming() const { return streaming_; }
  [[nodiscard]] const std::shared_ptr<Pool>& pool() const { return pool_; }

 private:
  void OnResolved(const error_code& error, const tcp::resolver::results_type& found);
  void Handshake();
  void Begin();
  bool ExpectServer();
  void FailHandshake(const error_code& error);
  void WriteRequest();
  void Read();
  void OnRead(const error_code& error, size_t bytes);
  // Returns how many of the bytes were taken.
  size_t Parse(std::string_view bytes);
  void OnHead();
  void Deliver();
  [[nodiscard]] bool RefusedWithOldToken() const;
  void Finish();
  [[nodiscard]] bool MayRepeat(const Call& call) const;
  void Break(std::string why);
  void Close();

  HttpsClient::Impl& client_;
  const std::shared_ptr<Pool> pool_;
  asio::ssl::stream<tcp::socket> stream_;
  ResponseParser parser_;
  std::optional<Call> call_;
  std::array<char, kReadBytes> read_buffer_{};
  std::string in_;
  std::string out_;
  bool ready_ = false;      // Connected and verified.
  bool used_ = false;       // Has carried a call before this one.
  bool sent_ = false;       // Bytes of the call were handed to the connection.
  bool answering_ = false;  // A byte of the answer has come.
  bool streaming_ = false;
  bool reading_ = false;
  bool writing_ = false;
  bool closed_ = false;
};

void Connection::Connect(Call call) {
  call_ = std::move(call);
  client_.resolver.async_resolve(
      pool_->to.host, std::to_string(pool_->to.port), tcp::resolver::numeric_service,
      [self = shared_from_this()](const error_code& error, const auto& found) {
        self->OnResolved(error, found);
      });
}

void Connection::OnResolved(const error_code& error, const tcp::resolver::results_type& found) {
  if (closed_) return;
  if (error) {
    client_.Tell(fmt::format("{} can't be resolved: {}", pool_->to.host, error.message()));
    return Break(fmt::format("dial tcp: lookup {}: no such host", pool_->to.host));
  }
  asio::async_connect(
      stream_.next_layer(), found,
      [self = shared_from_this()](const error_code& failed, const tcp::endpoint&) {
        if (self->closed_) return;
        if (failed) {
          self->client_.Tell("can't connect: " + failed.message());
          const env::Endpoint& to = self->pool_->to;
          return self->Break(fmt::format("dial tcp {}: connect: {}", HostAndPort(to.host, to.port),
                                         GoWords(failed)));
        }
        self->Handshake();
      });
}

// What the server's certificate must show.
bool Connection::ExpectServer() {
  SSL* ssl = stream_.native_handle();
  const std::string& name = pool_->to.server_name;
  const bool address = IsAddress(name);
  // SSL_set_tlsext_host_name without its cast of C.
  if (!address && SSL_ctrl(ssl, SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name,
                           const_cast<char*>(name.c_str())) != 1) {
    return false;
  }
  if (pool_->to.insecure) return true;
  return address ? X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), name.c_str()) == 1
                 : SSL_set1_host(ssl, name.c_str()) == 1;
}

void Connection::Handshake() {
  error_code ignored;
  stream_.next_layer().set_option(tcp::no_delay(true), ignored);
  if (pool_->to.plain) return Begin();
  if (!ExpectServer()) return Break("tls: no name for a certificate");
  stream_.async_handshake(asio::ssl::stream_base::client,
                          [self = shared_from_this()](const error_code& error) {
                            if (self->closed_) return;
                            if (error) return self->FailHandshake(error);
                            self->Begin();
                          });
}

void Connection::Begin() {
  ready_ = true;
  WriteRequest();
  Read();
}

std::string VerdictInGoWords(long verdict) {
  switch (verdict) {
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_CERT_SIGNATURE_FAILURE:
      return "x509: certificate signed by unknown authority";
    case X509_V_ERR_CERT_HAS_EXPIRED:
    case X509_V_ERR_CERT_NOT_YET_VALID:
      return "x509: certificate has expired or is not yet valid";
    default:
      return fmt::format("x509: {}", X509_verify_cert_error_string(verdict));
  }
}

void Connection::FailHandshake(const error_code& error) {
  const long verdict = SSL_get_verify_result(stream_.native_handle());
  std::string why = "tls: " + internal::TlsErrorText(error);
  if (verdict == X509_V_OK) {
    client_.Tell("no TLS: " + internal::TlsErrorText(error));
  } else {
    why = fmt::format("tls: failed to verify certificate: {}", VerdictInGoWords(verdict));
    client_.Tell(fmt::format("its certificate is not the expected one: {}{}",
                             X509_verify_cert_error_string(verdict),
                             pool_->to.authority_pem.empty()
                                 ? " (no certificate authority is given; the system's were asked)"
                                 : ""));
  }
  ERR_clear_error();
  Break(std::move(why));
}

void Connection::Send(Call call) {
  CHECK(ready_ && !call_.has_value());
  call_ = std::move(call);
  used_ = true;
  WriteRequest();
}

void Connection::WriteRequest() {
  if (client_.IsTooLate(*call_)) return Break(kNoLonger);
  const ClientOptions& options = client_.options;
  const env::HttpRequest& request = call_->request;
  out_.clear();
  out_.append(ToString(request.method)).append(" ");
  if (pool_->own) out_.append(options.path_prefix);
  out_.append(request.target);
  out_.append(" HTTP/1.1\r\nhost: ").append(pool_->to.host_header).append("\r\n");
  for (const env::Header& header : request.headers) {
    if (header.name == "host" || header.name == "content-length" || header.name == "connection")
      continue;
    out_.append(header.name).append(": ").append(header.value).append("\r\n");
  }
  call_->token.clear();
  if (pool_->own && options.bearer_token && !env::FindHeader(request.headers, "authorization")) {
    call_->token = options.bearer_token->Current();
    if (!call_->token.empty()) {
      out_.append("authorization: Bearer ").append(call_->token).append("\r\n");
    }
  }
  if (!request.body.empty() || request.method != env::Method::kGet) {
    out_ += fmt::format("content-length: {}\r\n", request.body.size());
  }
  out_.append("\r\n").append(request.body.view());
  parser_.Expect(request.method, call_->stream);
  sent_ = true;
  client_.NoteSent(*call_);
  answering_ = false;
  writing_ = true;
  auto written = [self = shared_from_this()](const error_code& error, size_t) {
    self->writing_ = false;
    if (error && !self->closed_) self->Break("write: " + GoWords(error));
  };
  if (pool_->to.plain) {
    asio::async_write(stream_.next_layer(), asio::buffer(out_), std::move(written));
  } else {
    asio::async_write(stream_, asio::buffer(out_), std::move(written));
  }
}

void Connection::Read() {
  if (closed_ || reading_) return;
  reading_ = true;
  auto read = [self = shared_from_this()](const error_code& error, size_t bytes) {
    self->OnRead(error, bytes);
  };
  if (pool_->to.plain) {
    stream_.next_layer().async_read_some(asio::buffer(read_buffer_), std::move(read));
  } else {
    stream_.async_read_some(asio::buffer(read_buffer_), std::move(read));
  }
}

void Connection::OnRead(const error_code& error, size_t bytes) {
  reading_ = false;
  if (closed_) return;
  if (error) {
    ERR_clear_error();
    // The end of the connection may be the end of a body without a length.
    if (call_ && answering_) {
      parser_.PutEnd();
      if (parser_.state() == ParseState::kComplete) return Deliver();
    }
    const bool ended = error == asio::error::eof || error == asio::ssl::error::stream_truncated;
    return Break(!ended ? "read: " + GoWords(error) : answering_ ? "unexpected EOF" : "EOF");
  }
  if (!call_) return Close();  // Nobody asked.
  answering_ = true;
  const std::string_view fresh(read_buffer_.data(), bytes);
  if (in_.empty()) {
    // Mostly all of it is taken, and nothing has to be kept.
    in_.append(fresh.substr(Parse(fresh)));
  } else {
    in_.append(fresh);
    in_.erase(0, Parse(in_));
  }
  if (parser_.state() == ParseState::kBodyTooLarge) {
    return Break(fmt::format("the answer has more than {} bytes", client_.options.body_bytes_max));
  }
  if (parser_.state() != ParseState::kNeedMore && parser_.state() != ParseState::kComplete)
    return Break("malformed HTTP response");
  Deliver();
  Read();
}

size_t Connection::Parse(std::string_view bytes) {
  size_t offset = 0;
  while (offset < bytes.size() && parser_.state() == ParseState::kNeedMore) {
    const size_t taken = parser_.Put(bytes.substr(offset));
    offset += taken;
    // 100 Continue and its like announce the answer.
    if (parser_.state() == ParseState::kComplete && parser_.status() / 100 == 1) {
      parser_.Expect(call_->request.method, call_->stream);
      continue;
    }
    if (taken == 0) break;
  }
  return offset;
}

void Connection::OnHead() {
  if (streaming_ || !call_->stream || !parser_.header_done() || parser_.status() != 200) return;
  streaming_ = true;
  --pool_->busy_count;
  client_.Post(env::Response{.call = call_->id, .response = parser_.Head()});
}

void Connection::Deliver() {
  OnHead();
  const bool complete = parser_.state() == ParseState::kComplete;
  if (streaming_) {
    std::string data = parser_.TakeBody();
    if (!data.empty())
      client_.Post(env::StreamData{.call = call_->id, .data = Bytes(std::move(data))});
    if (complete) client_.Post(env::StreamEnded{call_->id});
  } else if (complete && RefusedWithOldToken()) {
    Call again = *call_;
    again.renewed = true;
    Finish();
    return client_.Begin(std::move(again));
  } else if (complete) {
    env::HttpResponse response = parser_.Head();
    response.body = Bytes(parser_.TakeBody());
    client_.Post(env::Response{.call = call_->id, .response = std::move(response)});
  }
  if (complete) Finish();
}

// Tokens end while calls are on their way.
bool Connection::RefusedWithOldToken() const {
  constexpr int kUnauthorized = 401;
  return parser_.status() == kUnauthorized && !call_->token.empty() && !call_->renewed &&
         client_.options.bearer_token->Renew(call_->token);
}

// The call has had its last input.
void Connection::Finish() {
  // An answer before the whole request is sent is a refusal; the rest of the request is still on
  // its way.
  const bool keep = parser_.keep_alive() && in_.empty() && !writing_;
  client_.calls.erase(call_->id.value);
  client_.deadlines.erase({call_->due, call_->id.value});
  if (!streaming_) --pool_->busy_count;
  call_.reset();
  sent_ = false;
  streaming_ = false;
  if (!keep) return Close();
  client_.Reuse(shared_from_this());
}

bool Connection::MayRepeat(const Call& call) const {
  return sent_ && used_ && !answering_ && !call.repeated && !call.once &&
         (call.request.method == env::Method::kGet || call.to != nullptr);
}

// The connection has failed.
void Connection::Break(std::string why) {
  if (closed_) return;
  if (call_) {
    Call call = std::move(*call_);
    call_.reset();
    client_.calls.erase(call.id.value);
    client_.deadlines.erase({call.due, call.id.value});
    if (streaming_) {
      client_.Post(env::StreamEnded{call.id});
    } else {
      --pool_->busy_count;
      if (MayRepeat(call)) {
        call.repeated = true;
        Close();
        return client_.Open(pool_, std::move(call));
      }
      client_.Fail(call.id, sent_ ? CallFailure::kLost : CallFailure::kNotSent, std::move(why));
    }
  }
  Close();
}

void Connection::Abandon() {
  if (call_ && !streaming_) --pool_->busy_count;
  call_.reset();
  Close();
}

void Connection::Close() {
  if (closed_) return;
  closed_ = true;
  error_code ignored;
  stream_.next_layer().shutdown(tcp::socket::shutdown_both, ignored);
  stream_.next_layer().close(ignored);
  client_.Forget(*this);
}

}  // namespace

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
    const std::shared_ptr<Connection> connection = unused->idle.back();
    connection->Abandon();
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
  while (!io.stopped()) {
    io.run_one();
    io.poll();
    if (own->busy_count >= options.gather_calls_min)
      std::this_thread::sleep_for(std::chrono::nanoseconds(options.gather_for.ns));
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
  if (IsTooLate(call)) return Fail(call.id, CallFailure::kNotSent, kNoLonger);
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
  if (!pool->idle.empty()) {
    const std::shared_ptr<Connection> connection = pool->idle.back();
    pool->idle.pop_back();
    ++pool->busy_count;
    calls[call.id.value] = connection;
    return connection->Send(std::move(call));
  }
  // Streams don't wait: those that are open hold their connections for ever.
  if (!call.stream && pool->busy_count >= options.connections_max)
    return pool->waiting.push_back(std::move(call));
  Open(pool, std::move(call));
}

void HttpsClient::Impl::Open(const std::shared_ptr<Pool>& pool, Call call) {
  const auto connection = std::make_shared<Connection>(*this, pool);
  open.insert(connection);
  ++pool->busy_count;
  deadlines.emplace(call.due, call.id.value);
  calls[call.id.value] = connection;
  connection->Connect(std::move(call));
}

void HttpsClient::Impl::Reuse(const std::shared_ptr<Connection>& connection) {
  Pool& pool = *connection->pool();
  if (pool.waiting.empty()) {
    // A stream that has ended may leave one more than there are calls for.
    if (static_cast<int>(pool.idle.size()) < options.connections_max) {
      pool.idle.push_back(connection);
    } else {
      connection->Abandon();
    }
    return;
  }
  Call call = std::move(pool.waiting.front());
  pool.waiting.pop_front();
  ++pool.busy_count;
  calls[call.id.value] = connection;
  connection->Send(std::move(call));
}

void HttpsClient::Impl::Forget(Connection& connection) {
  const std::shared_ptr<Connection> self = connection.shared_from_this();
  const std::shared_ptr<Pool> pool = self->pool();
  open.erase(self);
  std::erase(pool->idle, self);
  // Its place is free for a call that waits.
  if (pool->waiting.empty() || pool->busy_count >= options.connections_max || stopped) return;
  Call call = std::move(pool->waiting.front());
  pool->waiting.pop_front();
  Open(pool, std::move(call));
}

void HttpsClient::Impl::Cancel(CallId id) {
  const auto found = calls.find(id.value);
  if (found != calls.end()) {
    const std::shared_ptr<Connection> connection = found->second;
    deadlines.erase({connection->call().due, id.value});
    calls.erase(found);
    return connection->Abandon();
  }
  EraseWaiting(id);
}

// A call that waits for a connection; its deadline goes with it.
void HttpsClient::Impl::EraseWaiting(CallId id) {
  const auto erase_from = [&](Pool& pool) {
    for (auto call = pool.waiting.begin(); call != pool.waiting.end(); ++call) {
      if (call->id != id) continue;
      deadlines.erase({call->due, id.value});
      pool.waiting.erase(call);
      return true;
    }
    return false;
  };
  if (own != nullptr && erase_from(*own)) return;
  for (const auto& [to, pool] : pools) {
    if (erase_from(*pool)) return;
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
      Fail(id, CallFailure::kNotSent, kLate);
      continue;
    }
    const std::shared_ptr<Connection> connection = found->second;
    if (connection->streaming()) continue;  // Answered in time.
    calls.erase(found);
    Fail(id, connection->sent() ? CallFailure::kTimeout : CallFailure::kNotSent, kLate);
    connection->Abandon();
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
                   .key_pem = options.identity.key_pem};
  Result<asio::ssl::context> context = ContextFor(to);
  if (!context) return std::unexpected(context.error());
  auto impl = std::make_unique<Impl>(std::move(options));
  if (!impl->options.host.empty()) {
    impl->own = std::make_shared<Pool>(std::move(to), std::move(*context));
    impl->own->own = true;
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
    if (impl_->own != nullptr) impl_->own->waiting.clear();
    for (const auto& [to, pool] : impl_->pools) pool->waiting.clear();
    impl_->timer.cancel();
    const auto open = impl_->open;
    for (const auto& connection : open) connection->Abandon();
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
