#include "net/server.h"

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <pthread.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <cerrno>
#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <thread>
#include <utility>

#include "base/check.h"
#include "net/gzip.h"
#include "net/http_parser.h"
#include "net/tls.h"
#include "net/tls_pipe.h"

namespace berth::net {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;
using SteadyTime = std::chrono::steady_clock::time_point;

constexpr size_t kReadBytes = 16 * 1024;          // One record of TLS.
constexpr size_t kWriteBytes = 64 * 1024;         // Frames are joined up to this.
constexpr size_t kScratchBytesMax = 1024 * 1024;  // What sessions share is kept up to this.
constexpr size_t kPipelinedBytesMax = 64 * 1024;
// An exchange's number: slot of the connection, count of the server.
constexpr int kExchangeSlotShift = 40;
constexpr unsigned char kTlsHandshake = 0x16;
constexpr auto kSweepInterval = std::chrono::milliseconds(500);
constexpr auto kLingerTime = std::chrono::milliseconds(500);
constexpr auto kLimitLogInterval = std::chrono::seconds(60);

std::chrono::nanoseconds ToChrono(Duration duration) {
  return std::chrono::nanoseconds(duration.ns);
}

env::HttpResponse ErrorResponse(int status) {
  const char* reason = "BadRequest";
  std::string message = "malformed HTTP request";
  if (status == 413) {
    reason = "RequestEntityTooLarge";
    message = fmt::format("Request entity too large: limit is {}", limits::kRequestBodyBytesMax);
  } else if (status == 431) {
    reason = "RequestHeaderFieldsTooLarge";
    message = "request header fields are too large";
  }
  return {.status = status,
          .headers = {{"content-type", "application/json"}},
          .body = Bytes(fmt::format(
              R"({{"kind":"Status","apiVersion":"v1","metadata":{{}},"status":"Failure",)"
              R"("message":"{}","reason":"{}","code":{}}})",
              message, reason, status))};
}

std::vector<std::string> NameEntries(X509_NAME* name, int kind) {
  std::vector<std::string> values;
  for (int at = -1; (at = X509_NAME_get_index_by_NID(name, kind, at)) >= 0;) {
    const ASN1_STRING* text = X509_NAME_ENTRY_get_data(X509_NAME_get_entry(name, at));
    unsigned char* utf8 = nullptr;
    const int size = ASN1_STRING_to_UTF8(&utf8, text);
    if (size < 0) continue;
    values.emplace_back(reinterpret_cast<const char*>(utf8), static_cast<size_t>(size));
    OPENSSL_free(utf8);
  }
  return values;
}

// Who a verified certificate says the client is.
env::Peer PeerOf(SSL* ssl) {
  env::Peer peer;
  X509* certificate = SSL_get1_peer_certificate(ssl);
  if (certificate == nullptr) return peer;
  if (SSL_get_verify_result(ssl) == X509_V_OK) {
    X509_NAME* subject = X509_get_subject_name(certificate);
    const std::vector<std::string> names = NameEntries(subject, NID_commonName);
    if (!names.empty()) {
      peer.user = names.back();
      peer.groups = NameEntries(subject, NID_organizationName);
    }
  }
  X509_free(certificate);
  return peer;
}

class Session;

}  // namespace

struct HttpsServer::Impl {
  Impl(ServerOptions o, asio::ssl::context c)
      : options(std::move(o)), tls(std::move(c)), acceptor(io), sweeper(io) {}

  Status Bind();
  void Accept();
  void OnAccept(const error_code& error, tcp::socket socket);
  void MakeRoom();
  void LogLimit();
  void ShedUnsent(const Session& newest);
  void ShedComing(const Session& newest);
  template <typename BytesOf, typename TimeOf>
  uint64_t CutSlowest(const Session& newest, const int64_t& sum, int64_t max, BytesOf bytes_of,
                      TimeOf time_of);
  void LogSlow(uint64_t cut_count, const char* what, int64_t max);
  void Sweep();
  void Deliver(std::vector<env::Output>& batch);
  void Arrived(env::Input input);
  void Flush();
  std::shared_ptr<Session> Find(env::ExchangeId exchange);
  void Log(env::LogLevel level, std::string text) const {
    if (options.log) options.log(level, std::move(text));
  }

  // Immutable after construction.
  const ServerOptions options;

  asio::io_context io{1};
  asio::ssl::context tls;  // The io thread's own, once it runs.
  const internal::TlsPipeMethod tls_method;
  tcp::acceptor acceptor;
  asio::steady_timer sweeper;
  std::thread thread;
  env::InputSink* inbox = nullptr;
  uint16_t port = 0;
  bool stopped = false;

  // The io thread's own, once it runs.
  std::vector<std::shared_ptr<Session>> slots;
  std::vector<size_t> free_slots;
  uint64_t next_exchange = 1;
  std::vector<env::Input> arrived;
  bool flush_posted = false;
  // What sessions write and send, one after the other: a session has bytes of its own only while
  // its client does not take them.
  std::string plain;
  std::string sealed;
  std::string date;
  std::chrono::steady_clock::time_point limit_logged;
  uint64_t limit_unlogged_count = 0;  // Connections closed at the limit since then.
  int64_t unsent_bytes = 0;           // Of whole answers under way.
  int64_t coming_bytes = 0;           // Of requests that are not whole yet.
  std::chrono::steady_clock::time_point slow_logged;

  std::atomic<uint64_t> accepted_count = 0;
  std::atomic<uint64_t> refused_count = 0;
  std::atomic<uint64_t> requests_count = 0;
  std::atomic<uint64_t> malformed_count = 0;
  std::atomic<uint64_t> slow_count = 0;
  std::atomic<int64_t> open_count = 0;
};

namespace {

// One connection. All of it on the io thread.
//
//   handshake -> reading <-> answering -> closed
//
// A read is always under way (unless too much is pipelined), so that a client that goes is noticed
// in every state.
class Session final : public std::enable_shared_from_this<Session> {
 public:
  Session(HttpsServer::Impl& server, tcp::socket socket, size_t slot)
      : server_(server),
        slot_(slot),
        socket_(std::move(socket)),
        tls_(server.tls.native_handle(), server.tls_method),
        parser_({.header_bytes = static_cast<uint32_t>(server.options.header_bytes_max),
                 .body_bytes = static_cast<uint64_t>(server.options.body_bytes_max)}) {}

  void Start();
  void Respond(env::Respond respond);
  // The frame waits for Write().
  void Send(Bytes frame);
  void End(bool abort);
  void Write();
  void CloseIfOverdue(SteadyTime now);
  void Close();
  [[nodiscard]] env::ExchangeId exchange() const { return exchange_; }
  // Nothing of a request has ever come.
  [[nodiscard]] bool silent() const { return !spoken_; }
  [[nodiscard]] SteadyTime opened() const { return opened_; }
  // Of a whole answer that is not all taken.
  [[nodiscard]] int64_t unsent_bytes() const { return unsent_bytes_; }
  // When the client last took something of it.
  [[nodiscard]] SteadyTime taken_at() const { return taken_at_; }
  // Of a request that is not whole.
  [[nodiscard]] int64_t coming_bytes() const { return coming_bytes_; }
  // When the client last sent something of it.
  [[nodiscard]] SteadyTime sent_at() const { return sent_at_; }

 private:
  void HoldAnswer(int64_t bytes);
  void HoldRequest(int64_t bytes);
  void Peek();
  void RefusePlain();
  void OnOpen();
  void Read();
  void OnRead(const error_code& error, size_t bytes);
  void OnPlain(size_t bytes);
  void Parse();
  void Dispatch();
  void Refuse(int status);
  void Compress(env::HttpResponse& response);
  void FillChunks(std::string& plain);
  void FillPacked(std::string& plain);
  void FillWhole(std::string& plain);
  void Push(std::string_view sealed);
  void PushEnd();
  void OnPushed(const error_code& error);
  void OnWritten();
  void FinishExchange();
  void SetDeadline(Duration timeout) {
    deadline_ = std::chrono::steady_clock::now() + ToChrono(timeout);
  }

  HttpsServer::Impl& server_;
  const size_t slot_;
  tcp::socket socket_;
  internal::TlsPipe tls_;
  RequestParser parser_;
  env::Peer peer_;
  std::array<char, kReadBytes> read_buffer_{};
  std::string in_;  // Read and not parsed.
  const SteadyTime opened_ = std::chrono::steady_clock::now();
  SteadyTime deadline_ = SteadyTime::max();
  bool spoken_ = false;

  env::ExchangeId exchange_;  // 0: none.
  bool reading_ = false;
  bool closed_ = false;
  bool continue_sent_ = false;

  // The answer under way.
  bool writing_ = false;   // Bytes wait for the client to take them, or more for its turn.
  bool written_ = false;   // What is under way is of the answer.
  bool answered_ = false;  // Its head is queued.
  bool chunked_ = false;
  bool streaming_ = false;   // More frames may come.
  bool body_wanted_ = true;  // Not the answer to a HEAD.
  bool gzip_wanted_ = false;
  bool close_after_ = false;
  std::string head_;
  std::deque<Bytes> frames_;
  size_t front_offset_ = 0;  // Bytes of the first frame that are written; else whole ones are.
  std::unique_ptr<Gzipper> packer_;  // Of a whole answer that goes compressed.
  uint64_t draining_ = 0;            // Bytes of frames that are under way.
  int64_t unsent_bytes_ = 0;
  SteadyTime taken_at_;
  int64_t coming_bytes_ = 0;
  SteadyTime sent_at_;
  bool last_chunk_due_ = false;
  std::string out_;     // Sealed: what the client has not taken.
  std::string behind_;  // Sealed meanwhile: it follows `out_`.
};

void Session::Start() {
  error_code ignored;
  socket_.set_option(tcp::no_delay(true), ignored);
  SetDeadline(server_.options.handshake_timeout);
  socket_.async_wait(tcp::socket::wait_read, [self = shared_from_this()](const error_code& error) {
    if (error) return self->Close();
    self->Peek();
  });
}

// A client that speaks plain HTTP, or anything else that is not TLS, is told so in plain HTTP.
void Session::Peek() {
  if (closed_) return;
  unsigned char first = 0;
  const ssize_t count = recv(socket_.native_handle(), &first, 1, MSG_PEEK | MSG_DONTWAIT);
  if (count == 0) return Close();
  if (count == 1 && first != kTlsHandshake) return RefusePlain();
  Read();
}

void Session::RefusePlain() {
  server_.malformed_count.fetch_add(1, std::memory_order_relaxed);
  out_ = "HTTP/1.0 400 Bad Request\r\n\r\nthis port speaks HTTPS only\n";
  asio::async_write(
      socket_, asio::buffer(out_), [self = shared_from_this()](const error_code&, size_t) {
        error_code ignored;
        self->socket_.shutdown(tcp::socket::shutdown_send, ignored);
        // Closing with bytes unread would reset the connection before the client has
        // the answer.
        char sink[4096];
        while (recv(self->socket_.native_handle(), sink, sizeof(sink), MSG_DONTWAIT) > 0) {
        }
        self->deadline_ = std::chrono::steady_clock::now() + kLingerTime;
      });
}

void Session::OnOpen() {
  peer_ = PeerOf(tls_.native());
  // Who has asked nothing yet gets no longer than who has asked half.
  SetDeadline(std::min(server_.options.request_timeout, server_.options.idle_timeout));
}

void Session::Read() {
  if (closed_ || reading_ || in_.size() > kPipelinedBytesMax + kReadBytes) return;
  reading_ = true;
  socket_.async_read_some(asio::buffer(read_buffer_),
                          [self = shared_from_this()](const error_code& error, size_t bytes) {
                            self->OnRead(error, bytes);
                          });
}

void Session::OnRead(const error_code& error, size_t bytes) {
  using State = internal::TlsPipe::State;
  reading_ = false;
  if (closed_) return;
  if (error) return Close();
  const bool was_open = tls_.state() != State::kHandshake;
  const size_t before = in_.size();
  server_.sealed.clear();
  const State state = tls_.Receive({read_buffer_.data(), bytes}, in_, server_.sealed);
  Push(server_.sealed);
  if (closed_) return;
  if (!was_open && state != State::kHandshake && state != State::kBroken) OnOpen();
  const size_t plain_bytes = in_.size() - before;
  if (plain_bytes > 0) OnPlain(plain_bytes);
  if (state == State::kEnded || state == State::kBroken) return Close();
  if (exchange_.value == 0 || in_.size() < kPipelinedBytesMax) Read();
}

// So many bytes of `in_` are new.
void Session::OnPlain(size_t bytes) {
  const bool was_idle = exchange_.value == 0 && coming_bytes_ == 0 && in_.size() == bytes;
  spoken_ = true;
  if (close_after_ && exchange_.value == 0) {
    in_.clear();  // Refused: what still comes is of no interest.
    return;
  }
  if (was_idle) SetDeadline(server_.options.request_timeout);
  if (exchange_.value == 0) {
    HoldRequest(coming_bytes_ + static_cast<int64_t>(bytes));
    Parse();
  }
}

void Session::Parse() {
  size_t offset = 0;
  while (offset < in_.size() && parser_.state() == ParseState::kNeedMore) {
    const size_t taken = parser_.Put(std::string_view(in_).substr(offset));
    offset += taken;
    if (taken == 0) break;
  }
  in_.erase(0, offset);
  switch (parser_.state()) {
    case ParseState::kNeedMore:
      if (parser_.expects_continue() && !continue_sent_ && !writing_) {
        continue_sent_ = true;
        head_ = "HTTP/1.1 100 Continue\r\n\r\n";
        Write();
      }
      return;
    case ParseState::kComplete:
      return Dispatch();
    case ParseState::kMalformed:
      return Refuse(400);
    case ParseState::kHeaderTooLarge:
      return Refuse(431);
    case ParseState::kBodyTooLarge:
      return Refuse(413);
  }
}

void Session::Dispatch() {
  HoldRequest(0);
  env::HttpRequest request = parser_.Take();
  body_wanted_ = !parser_.is_head();
  gzip_wanted_ = AcceptsGzip(env::FindHeader(request.headers, "accept-encoding").value_or(""));
  close_after_ = !parser_.keep_alive();
  continue_sent_ = false;
  answered_ = false;
  exchange_ = {(static_cast<uint64_t>(slot_) << kExchangeSlotShift) | server_.next_exchange};
  if (++server_.next_exchange >> kExchangeSlotShift != 0) server_.next_exchange = 1;
  deadline_ = SteadyTime::max();  // The actor answers when it does; a stalled write sets it again.
  server_.requests_count.fetch_add(1, std::memory_order_relaxed);
  server_.Arrived(
      env::RequestArrived{.exchange = exchange_, .peer = peer_, .request = std::move(request)});
}

void Session::Refuse(int status) {
  HoldRequest(0);
  server_.malformed_count.fetch_add(1, std::memory_order_relaxed);
  close_after_ = true;
  in_.clear();
  const env::HttpResponse response = ErrorResponse(status);
  head_ += ResponseHead(response, static_cast<int64_t>(response.body.size()), server_.date, true);
  chunked_ = false;
  frames_.push_back(response.body);
  Write();
}

// What is long goes compressed, and so in chunks: nobody knows how long it will be.
void Session::Compress(env::HttpResponse& response) {
  if (response.body.size() <= kGzipBytesMin || parser_.is_http10()) return;
  packer_ = Gzipper::Make();
  if (packer_ == nullptr) return;
  chunked_ = true;
  response.headers.push_back({"content-encoding", "gzip"});
  response.headers.push_back({"vary", "Accept-Encoding"});
}

void Session::Respond(env::Respond respond) {
  if (answered_) return;
  answered_ = true;
  streaming_ = respond.stream;
  const int status = respond.response.status;
  const bool may_have_body = body_wanted_ && status >= 200 && status != 204 && status != 304;
  // Without chunks only the end of the connection can end a body of unknown length.
  chunked_ = respond.stream && !parser_.is_http10();
  close_after_ = close_after_ || (respond.stream && parser_.is_http10());
  if (gzip_wanted_ && may_have_body && !respond.stream) Compress(respond.response);
  const int64_t length =
      chunked_ || respond.stream ? -1 : static_cast<int64_t>(respond.response.body.size());
  head_ += ResponseHead(respond.response, length, server_.date, close_after_);
  if (!may_have_body) {
    streaming_ = false;
    chunked_ = false;
  } else if (!respond.response.body.empty()) {
    frames_.push_back(std::move(respond.response.body));
    if (!respond.stream) HoldAnswer(static_cast<int64_t>(frames_.back().size()));
  }
  Write();
}

// Its last answer is gone; `bytes` of another are here.
void Session::HoldAnswer(int64_t bytes) {
  server_.unsent_bytes += bytes - unsent_bytes_;
  unsent_bytes_ = bytes;
  taken_at_ = std::chrono::steady_clock::now();
  if (server_.unsent_bytes > server_.options.unsent_bytes_max) server_.ShedUnsent(*this);
}

// So much of a request is here that is not whole.
void Session::HoldRequest(int64_t bytes) {
  server_.coming_bytes += bytes - coming_bytes_;
  coming_bytes_ = bytes;
  if (bytes == 0) return;
  sent_at_ = std::chrono::steady_clock::now();
  if (server_.coming_bytes > server_.options.coming_bytes_max) server_.ShedComing(*this);
}

void Session::Send(Bytes frame) {
  if (!answered_ || !streaming_ || frame.empty()) return;
  frames_.push_back(std::move(frame));
}

void Session::End(bool abort) {
  if (!streaming_) return;
  if (abort) {
    exchange_ = {};  // The actor ended it; it needs no word of that.
    return Close();
  }
  streaming_ = false;
  last_chunk_due_ = chunked_;
  Write();
}

// One chunk of as many frames as go together.
void Session::FillChunks(std::string& plain) {
  size_t size = 0;
  size_t count = 0;
  while (count < frames_.size() && (size == 0 || size + frames_[count].size() <= kWriteBytes)) {
    size += frames_[count++].size();
  }
  if (size > 0) plain += fmt::format("{:x}\r\n", size);
  for (size_t i = 0; i < count; ++i) {
    plain += frames_.front().view();
    frames_.pop_front();
  }
  if (size > 0) plain += "\r\n";
  draining_ += size;
  if (frames_.empty() && last_chunk_due_) {
    plain += "0\r\n\r\n";
    last_chunk_due_ = false;
  }
}

// A chunk of what comes of the next part of the answer that makes any.
void Session::FillPacked(std::string& plain) {
  std::string packed;
  while (packed.empty() && packer_ != nullptr) {
    const std::string_view rest = frames_.front().view().substr(front_offset_);
    const std::string_view part = rest.substr(0, kWriteBytes);
    const bool last = part.size() == rest.size();
    packer_->Add(part, last, packed);
    front_offset_ += part.size();
    if (!last) continue;
    frames_.pop_front();
    front_offset_ = 0;
    packer_.reset();
  }
  plain += fmt::format("{:x}\r\n", packed.size());
  plain += packed;
  plain += packer_ == nullptr ? "\r\n0\r\n\r\n" : "\r\n";
}

void Session::FillWhole(std::string& plain) {
  while (!frames_.empty() && plain.size() < kWriteBytes) {
    const std::string_view rest = frames_.front().view().substr(front_offset_);
    const std::string_view part = rest.substr(0, kWriteBytes);
    plain += part;
    front_offset_ += part.size();
    if (part.size() < rest.size()) continue;
    frames_.pop_front();
    front_offset_ = 0;
  }
}

// As much as goes at once; nothing while what went before is under way.
void Session::Write() {
  if (closed_ || writing_) return;
  std::string& plain = server_.plain;
  plain.assign(head_);
  head_.clear();
  if (packer_ != nullptr) {
    FillPacked(plain);
  } else if (chunked_) {
    FillChunks(plain);
  } else {
    FillWhole(plain);
  }
  if (plain.empty()) {
    if (answered_ && !streaming_) FinishExchange();
    return;
  }
  server_.sealed.clear();
  const bool sealed = tls_.Seal(plain, server_.sealed);
  if (plain.capacity() > kScratchBytesMax) plain = {};
  if (!sealed) return Close();
  written_ = true;
  Push(server_.sealed);
  if (server_.sealed.capacity() > kScratchBytesMax) server_.sealed = {};
  if (closed_) return;
  if (writing_) return SetDeadline(server_.options.write_timeout);
  OnWritten();
}

// Sends what is sealed; what the client does not take at once waits.
void Session::Push(std::string_view sealed) {
  if (writing_) {
    behind_ += sealed;
    return;
  }
  while (!sealed.empty()) {
    const ssize_t count =
        send(socket_.native_handle(), sealed.data(), sealed.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) break;
    if (count < 0) return Close();
    sealed.remove_prefix(static_cast<size_t>(count));
  }
  if (sealed.empty()) return;
  writing_ = true;
  out_ = sealed;
  asio::async_write(
      socket_, asio::buffer(out_),
      [self = shared_from_this()](const error_code& error, size_t) { self->OnPushed(error); });
}

// Tells the client, if it listens, that the answer before this was whole.
void Session::PushEnd() {
  if (closed_ || writing_) return;
  std::string sealed;
  tls_.SealEnd(sealed);
  Push(sealed);
}

void Session::OnPushed(const error_code& error) {
  writing_ = false;
  if (closed_) return;
  if (error) return Close();
  out_ = {};
  Push(std::exchange(behind_, {}));
  if (closed_ || writing_) return;
  if (written_) return OnWritten();
  Write();
}

void Session::OnWritten() {
  written_ = false;
  deadline_ = SteadyTime::max();
  if (unsent_bytes_ > 0) taken_at_ = std::chrono::steady_clock::now();
  if (draining_ > 0) {
    server_.Arrived(
        env::StreamDrained{.exchange = exchange_, .bytes = std::exchange(draining_, 0)});
  }
  if (!head_.empty() || !frames_.empty() || last_chunk_due_) {
    // Others have their turn first.
    writing_ = true;
    asio::post(server_.io, [self = shared_from_this()] { self->OnPushed({}); });
    return;
  }
  if (exchange_.value != 0) {
    if (answered_ && !streaming_) FinishExchange();
    return;
  }
  if (close_after_) {
    // A refused request: the client may still be sending; give it time to read the answer.
    deadline_ = std::chrono::steady_clock::now() + kLingerTime;
    PushEnd();
    error_code ignored;
    socket_.shutdown(tcp::socket::shutdown_send, ignored);
    return;
  }
  SetDeadline(server_.options.request_timeout);  // A go-ahead was sent: the body is due.
}

void Session::FinishExchange() {
  HoldAnswer(0);
  exchange_ = {};
  answered_ = false;
  chunked_ = false;
  if (close_after_) {
    PushEnd();
    return Close();
  }
  if (in_.capacity() > kPipelinedBytesMax && in_.empty()) in_.shrink_to_fit();
  SetDeadline(in_.empty() ? server_.options.idle_timeout : server_.options.request_timeout);
  if (!in_.empty()) Parse();
  Read();
}

void Session::CloseIfOverdue(SteadyTime now) {
  if (deadline_ <= now) Close();
}

void Session::Close() {
  if (closed_) return;
  closed_ = true;
  HoldAnswer(0);
  HoldRequest(0);
  frames_.clear();
  packer_.reset();
  if (exchange_.value != 0) server_.Arrived(env::ExchangeAbandoned{exchange_});
  exchange_ = {};
  error_code ignored;
  socket_.shutdown(tcp::socket::shutdown_both, ignored);
  socket_.close(ignored);
  server_.open_count.fetch_sub(1, std::memory_order_relaxed);
  server_.free_slots.push_back(slot_);
  server_.slots[slot_].reset();  // Handlers under way still hold this.
}

}  // namespace

Status HttpsServer::Impl::Bind() {
  const auto fail = [&](const char* what, const error_code& error) {
    return Fail(ErrorCode::kUnavailable,
                fmt::format("{} {}:{}: {}", what, options.host, options.port, error.message()));
  };
  error_code error;
  tcp::resolver resolver(io);
  const auto found =
      resolver.resolve(options.host, std::to_string(options.port),
                       tcp::resolver::passive | tcp::resolver::numeric_service, error);
  if (error) return fail("can't resolve", error);
  if (found.empty()) return fail("no address of", error);
  tcp::endpoint endpoint = found.begin()->endpoint();
  // All addresses, of both families where there are both, as Go's listeners take 0.0.0.0 and "::".
  const bool all = endpoint.address().is_unspecified();
  const tcp::endpoint of_both(tcp::v6(), options.port);
  acceptor.open(all ? tcp::v6() : endpoint.protocol(), error);
  if (all && error) {
    acceptor.open(endpoint.protocol(), error);
  } else if (all) {
    endpoint = of_both;
    acceptor.set_option(asio::ip::v6_only(false), error);
  }
  if (error) return fail("can't listen on", error);
  acceptor.set_option(tcp::acceptor::reuse_address(true), error);
  acceptor.bind(endpoint, error);
  if (error) return fail("can't listen on", error);
  acceptor.listen(asio::socket_base::max_listen_connections, error);
  if (error) return fail("can't listen on", error);
  port = acceptor.local_endpoint(error).port();
  return {};
}

void HttpsServer::Impl::Accept() {
  acceptor.async_accept(
      [this](const error_code& error, tcp::socket socket) { OnAccept(error, std::move(socket)); });
}

void HttpsServer::Impl::OnAccept(const error_code& error, tcp::socket socket) {
  if (error == asio::error::operation_aborted || !acceptor.is_open()) return;
  if (error) {
    // Out of descriptors, most likely: the next sweep tries again.
    Log(env::LogLevel::kWarning, "can't accept a connection: " + error.message());
    auto timer = std::make_shared<asio::steady_timer>(io, kSweepInterval);
    timer->async_wait([this, timer](const error_code& aborted) {
      if (!aborted) Accept();
    });
    return;
  }
  if (open_count.load(std::memory_order_relaxed) >= options.connections_max) MakeRoom();
  if (open_count.load(std::memory_order_relaxed) >= options.connections_max) {
    LogLimit();
    refused_count.fetch_add(1, std::memory_order_relaxed);
    error_code ignored;
    socket.close(ignored);
    return Accept();
  }
  accepted_count.fetch_add(1, std::memory_order_relaxed);
  open_count.fetch_add(1, std::memory_order_relaxed);
  size_t slot = slots.size();
  if (!free_slots.empty()) {
    slot = free_slots.back();
    free_slots.pop_back();
  } else {
    slots.emplace_back();
  }
  slots[slot] = std::make_shared<Session>(*this, std::move(socket), slot);
  slots[slot]->Start();
  Accept();
}

// Closes the oldest connection that never asked anything, if there is one: a crowd of them must not
// keep out who has something to ask.
void HttpsServer::Impl::MakeRoom() {
  SteadyTime oldest = std::chrono::steady_clock::now() - ToChrono(options.silence_at_limit);
  std::shared_ptr<Session> found;
  for (const std::shared_ptr<Session>& session : slots) {
    if (session == nullptr || !session->silent() || session->opened() > oldest) continue;
    oldest = session->opened();
    found = session;
  }
  if (found == nullptr) return;
  LogLimit();
  found->Close();
}

// Cuts, of those who hold something, who holds the most bytes for the longest time without moving,
// until the rest is within its bound. Bytes times time: a client that reads is not cut for being
// the first to have begun.
template <typename BytesOf, typename TimeOf>
uint64_t HttpsServer::Impl::CutSlowest(const Session& newest, const int64_t& sum, int64_t max,
                                       BytesOf bytes_of, TimeOf time_of) {
  uint64_t cut_count = 0;
  const SteadyTime now = std::chrono::steady_clock::now();
  const auto cost_of = [&](const Session& session) {
    return bytes_of(session) *
           std::chrono::duration_cast<std::chrono::microseconds>(now - time_of(session)).count();
  };
  while (sum > max) {
    std::shared_ptr<Session> slowest;
    for (const std::shared_ptr<Session>& session : slots) {
      if (session == nullptr || session.get() == &newest || bytes_of(*session) == 0) continue;
      if (slowest == nullptr || cost_of(*session) > cost_of(*slowest)) slowest = session;
    }
    if (slowest == nullptr) break;
    slowest->Close();
    ++cut_count;
  }
  slow_count.fetch_add(cut_count, std::memory_order_relaxed);
  return cut_count;
}

void HttpsServer::Impl::ShedUnsent(const Session& newest) {
  const uint64_t cut_count =
      CutSlowest(newest, unsent_bytes, options.unsent_bytes_max,
                 std::mem_fn(&Session::unsent_bytes), std::mem_fn(&Session::taken_at));
  LogSlow(cut_count,
          "answers of more than {} bytes wait for their clients: who took nothing of the most",
          options.unsent_bytes_max);
}

void HttpsServer::Impl::ShedComing(const Session& newest) {
  const uint64_t cut_count =
      CutSlowest(newest, coming_bytes, options.coming_bytes_max,
                 std::mem_fn(&Session::coming_bytes), std::mem_fn(&Session::sent_at));
  LogSlow(cut_count, "requests of more than {} bytes are not whole: who sent nothing to the most",
          options.coming_bytes_max);
}

void HttpsServer::Impl::LogSlow(uint64_t cut_count, const char* what, int64_t max) {
  const auto now = std::chrono::steady_clock::now();
  if (cut_count == 0 || (slow_logged != SteadyTime() && now - slow_logged < kLimitLogInterval)) {
    return;
  }
  slow_logged = now;
  Log(env::LogLevel::kWarning,
      fmt::format(fmt::runtime(what), max) + " for the longest time is cut");
}

void HttpsServer::Impl::LogLimit() {
  ++limit_unlogged_count;
  const auto now = std::chrono::steady_clock::now();
  if (limit_logged != SteadyTime() && now - limit_logged < kLimitLogInterval) return;
  limit_logged = now;
  Log(env::LogLevel::kWarning,
      fmt::format("all {} connections are taken: {} closed, silent ones first",
                  options.connections_max, std::exchange(limit_unlogged_count, 0)));
}

void HttpsServer::Impl::Sweep() {
  const auto now = std::chrono::steady_clock::now();
  for (size_t i = 0; i < slots.size(); ++i) {
    const std::shared_ptr<Session> session = slots[i];
    if (session != nullptr) session->CloseIfOverdue(now);
  }
  char text[64];
  const time_t seconds = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  tm parts{};
  gmtime_r(&seconds, &parts);
  const size_t size = strftime(text, sizeof(text), "%a, %d %b %Y %H:%M:%S GMT", &parts);
  date.assign(text, size);
  sweeper.expires_after(kSweepInterval);
  sweeper.async_wait([this](const error_code& error) {
    if (!error) Sweep();
  });
}

void HttpsServer::Impl::Arrived(env::Input input) {
  arrived.push_back(std::move(input));
  if (flush_posted) return;
  flush_posted = true;
  // Behind the handlers that are ready now: what they bring goes in one batch.
  asio::post(io, [this] { Flush(); });
}

void HttpsServer::Impl::Flush() {
  flush_posted = false;
  if (inbox != nullptr) inbox->Post(std::exchange(arrived, {}));
}

std::shared_ptr<Session> HttpsServer::Impl::Find(env::ExchangeId exchange) {
  const uint64_t slot = exchange.value >> kExchangeSlotShift;
  if (slot >= slots.size() || slots[slot] == nullptr) return nullptr;
  return slots[slot]->exchange() == exchange ? slots[slot] : nullptr;
}

void HttpsServer::Impl::Deliver(std::vector<env::Output>& batch) {
  // Frames of a batch for the same client go together.
  std::vector<std::shared_ptr<Session>> streams;
  for (env::Output& output : batch) {
    if (auto* respond = std::get_if<env::Respond>(&output)) {
      if (const auto session = Find(respond->exchange)) session->Respond(std::move(*respond));
    } else if (auto* frame = std::get_if<env::Frame>(&output)) {
      if (auto session = Find(frame->exchange)) {
        session->Send(std::move(frame->data));
        streams.push_back(std::move(session));
      }
    } else if (const auto* end = std::get_if<env::EndStream>(&output)) {
      if (const auto session = Find(end->exchange)) session->End(end->abort);
    }
  }
  for (const std::shared_ptr<Session>& session : streams) session->Write();
}

HttpsServer::HttpsServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
HttpsServer::~HttpsServer() { Stop(); }

namespace {

Result<asio::ssl::context> ContextFor(const KeyPair& identity, const std::string& authority_pem) {
  asio::ssl::context context = internal::MakeContext(/*server=*/true);
  if (Status status = internal::UseIdentity(context, identity); !status) {
    return std::unexpected(status.error());
  }
  if (authority_pem.empty()) return context;
  Status status = internal::TrustAuthority(context, authority_pem);
  if (!status) return std::unexpected(status.error());
  context.set_verify_mode(asio::ssl::verify_peer);
  // A certificate of another authority is no reason to hang up: its owner is nobody here, and may
  // have a token.
  SSL_CTX_set_verify(context.native_handle(), SSL_VERIFY_PEER,
                     [](int, X509_STORE_CTX*) { return 1; });
  return context;
}

}  // namespace

Result<std::unique_ptr<HttpsServer>> HttpsServer::Listen(ServerOptions options) {
  Result<asio::ssl::context> context = ContextFor(options.identity, options.client_authority_pem);
  if (!context) return std::unexpected(context.error());
  auto impl = std::make_unique<Impl>(std::move(options), std::move(*context));
  if (Status status = impl->Bind(); !status) return std::unexpected(status.error());
  return std::unique_ptr<HttpsServer>(new HttpsServer(std::move(impl)));
}

uint16_t HttpsServer::port() const { return impl_->port; }

void HttpsServer::Start(env::InputSink& inbox) {
  CHECK(!impl_->thread.joinable());
  impl_->inbox = &inbox;
  impl_->Sweep();
  impl_->Accept();
  impl_->thread = std::thread([this] { impl_->io.run(); });
  pthread_setname_np(impl_->thread.native_handle(), "https-server");
}

void HttpsServer::Stop() {
  if (std::exchange(impl_->stopped, true)) return;
  if (!impl_->thread.joinable()) return;
  asio::post(impl_->io, [this] {
    error_code ignored;
    impl_->acceptor.close(ignored);
    impl_->sweeper.cancel();
    for (size_t i = 0; i < impl_->slots.size(); ++i) {
      const std::shared_ptr<Session> session = impl_->slots[i];
      if (session != nullptr) session->Close();
    }
    asio::post(impl_->io, [this] { impl_->io.stop(); });
  });
  impl_->thread.join();
  impl_->inbox = nullptr;
}

void HttpsServer::Take(std::vector<env::Output> batch) {
  asio::post(impl_->io, [this, batch = std::move(batch)]() mutable { impl_->Deliver(batch); });
}

Status HttpsServer::TrustClients(const std::string& authority_pem) {
  Result<asio::ssl::context> context = ContextFor(impl_->options.identity, authority_pem);
  if (!context) return std::unexpected(context.error());
  // Connections that are there keep theirs: OpenSSL counts who has it.
  asio::post(impl_->io,
             [this, made = std::move(*context)]() mutable { impl_->tls = std::move(made); });
  return {};
}

ServerStats HttpsServer::stats() const {
  return {.accepted_count = impl_->accepted_count.load(std::memory_order_relaxed),
          .refused_count = impl_->refused_count.load(std::memory_order_relaxed),
          .requests_count = impl_->requests_count.load(std::memory_order_relaxed),
          .malformed_count = impl_->malformed_count.load(std::memory_order_relaxed),
          .slow_count = impl_->slow_count.load(std::memory_order_relaxed),
          .open_count = impl_->open_count.load(std::memory_order_relaxed)};
}

}  // namespace berth::net
