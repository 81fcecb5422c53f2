#include "net/client_http1.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>

#include <boost/asio/connect.hpp>
#include <boost/asio/write.hpp>
#include <utility>

#include "base/check.h"
#include "net/client_http2.h"
#include "net/tls.h"

namespace berth::net {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;
using env::CallFailure;

namespace {

bool IsAddress(const std::string& host) {
  unsigned char bytes[16];
  return inet_pton(AF_INET, host.c_str(), bytes) == 1 ||
         inet_pton(AF_INET6, host.c_str(), bytes) == 1;
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

}  // namespace

Http1Connection::Http1Connection(HttpsClient::Impl& client, std::shared_ptr<Pool> pool)
    : Carrier(std::move(pool)),
      client_(client),
      stream_(client.io, pool_->tls),
      open_timer_(client.io),
      parser_(client.AnswerLimits(*pool_)) {}

void Http1Connection::Connect(Call call) {
  call_ = std::move(call);
  if (pool_->own) LimitOpening();
  client_.resolver.async_resolve(pool_->to.host, std::to_string(pool_->to.port),
                                 tcp::resolver::numeric_service,
                                 [self = Self()](const error_code& error, const auto& found) {
                                   self->OnResolved(error, found);
                                 });
}

// Calls wait for what it finds out, so its own call's patience is no measure.
void Http1Connection::LimitOpening() {
  open_timer_.expires_after(std::chrono::nanoseconds(client_.options.open_timeout.ns));
  open_timer_.async_wait([self = Self()](const error_code& error) {
    if (error || self->closed_ || !self->opening_) return;
    self->client_.Tell("no connection in time");
    self->Break("dial tcp: i/o timeout");
  });
}

void Http1Connection::OnResolved(const error_code& error,
                                 const tcp::resolver::results_type& found) {
  if (closed_) return;
  if (error) {
    client_.Tell(fmt::format("{} can't be resolved: {}", pool_->to.host, error.message()));
    return Break(fmt::format("dial tcp: lookup {}: no such host", pool_->to.host));
  }
  asio::async_connect(
      stream_.next_layer(), found, [self = Self()](const error_code& failed, const tcp::endpoint&) {
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
bool Http1Connection::ExpectServer() {
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

void Http1Connection::Handshake() {
  error_code ignored;
  stream_.next_layer().set_option(tcp::no_delay(true), ignored);
  if (pool_->to.plain) return Begin();
  if (!ExpectServer()) return Break("tls: no name for a certificate");
  stream_.async_handshake(asio::ssl::stream_base::client, [self = Self()](const error_code& error) {
    if (self->closed_) return;
    if (error) return self->FailHandshake(error);
    self->Begin();
  });
}

void Http1Connection::Begin() {
  if (ChoseHttp2()) return HandOn();
  pool_->speaks_http1 = true;
  WriteRequest();
  Read();
  NoteOpened();
}

bool Http1Connection::ChoseHttp2() {
  if (!pool_->offers_http2) return false;
  const unsigned char* chosen = nullptr;
  unsigned size = 0;
  SSL_get0_alpn_selected(stream_.native_handle(), &chosen, &size);
  return std::string_view(reinterpret_cast<const char*>(chosen), size) == "h2";
}

// It is the next one that finds out how many calls the server takes.
void Http1Connection::HandOn() {
  opening_ = false;
  pool_->speaks_http1 = false;
  const auto next = std::make_shared<Http2Connection>(client_, pool_, std::move(stream_));
  closed_ = true;
  client_.open.erase(shared_from_this());
  client_.open.insert(next);
  pool_->http2.push_back(next);
  next->Start();
  Call call = std::move(*call_);
  call_.reset();
  client_.calls[call.id.value] = next;
  next->Send(std::move(call));
  open_timer_.cancel();
}

// Others may have waited to learn what the server speaks.
void Http1Connection::NoteOpened() {
  if (!std::exchange(opening_, false)) return;
  open_timer_.cancel();
  --pool_->opening;
  client_.ServeWaiting(pool_);
}

void Http1Connection::FailHandshake(const error_code& error) {
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

void Http1Connection::Send(Call call) {
  CHECK(!opening_ && !call_.has_value());
  call_ = std::move(call);
  used_ = true;
  WriteRequest();
}

void Http1Connection::WriteRequest() {
  if (client_.IsTooLate(*call_)) return Break(kCallNoLonger);
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
  call_->token = client_.TokenFor(*pool_, request);
  if (!call_->token.empty())
    out_.append("authorization: Bearer ").append(call_->token).append("\r\n");
  if (!request.body.empty() || request.method != env::Method::kGet) {
    out_ += fmt::format("content-length: {}\r\n", request.body.size());
  }
  out_.append("\r\n").append(request.body.view());
  parser_.Expect(request.method, call_->stream);
  sent_ = true;
  client_.NoteSent(*call_);
  answering_ = false;
  writing_ = true;
  auto written = [self = Self()](const error_code& error, size_t) {
    self->writing_ = false;
    if (error && !self->closed_) self->Break("write: " + GoWords(error));
  };
  if (pool_->to.plain) {
    asio::async_write(stream_.next_layer(), asio::buffer(out_), std::move(written));
  } else {
    asio::async_write(stream_, asio::buffer(out_), std::move(written));
  }
}

void Http1Connection::Read() {
  if (closed_ || reading_) return;
  reading_ = true;
  auto read = [self = Self()](const error_code& error, size_t bytes) {
    self->OnRead(error, bytes);
  };
  if (pool_->to.plain) {
    stream_.next_layer().async_read_some(asio::buffer(read_buffer_), std::move(read));
  } else {
    stream_.async_read_some(asio::buffer(read_buffer_), std::move(read));
  }
}

void Http1Connection::OnRead(const error_code& error, size_t bytes) {
  reading_ = false;
  if (closed_) return;
  if (error) {
    ERR_clear_error();
    // The end of the connection may be the end of a body without a length.
    if (call_ && answering_) {
      parser_.PutEnd();
      if (parser_.state() == ParseState::kComplete) return Deliver();
    }
    return Break(!IsEnd(error) ? "read: " + GoWords(error) : answering_ ? "unexpected EOF" : "EOF");
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
    return Break(
        fmt::format("the answer has more than {} bytes", client_.AnswerLimits(*pool_).body_bytes));
  }
  if (parser_.state() != ParseState::kNeedMore && parser_.state() != ParseState::kComplete)
    return Break("malformed HTTP response");
  Deliver();
  Read();
}

size_t Http1Connection::Parse(std::string_view bytes) {
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

void Http1Connection::OnHead() {
  if (streaming_ || !call_->stream || !parser_.header_done() || parser_.status() != 200) return;
  streaming_ = true;
  client_.NoteStreaming(pool_);
  client_.Post(env::Response{.call = call_->id, .response = parser_.Head()});
}

void Http1Connection::Deliver() {
  OnHead();
  const bool complete = parser_.state() == ParseState::kComplete;
  if (streaming_) {
    std::string data = parser_.TakeBody();
    if (!data.empty())
      client_.Post(env::StreamData{.call = call_->id, .data = Bytes(std::move(data))});
    if (complete) client_.Post(env::StreamEnded{call_->id});
  } else if (complete && client_.RefusedWithOldToken(*call_, parser_.status())) {
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

// The call has had its last input.
void Http1Connection::Finish() {
  // An answer before the whole request is sent is a refusal; the rest of the request is still on
  // its way.
  const bool keep = parser_.keep_alive() && in_.empty() && !writing_;
  client_.End(*call_, streaming_, *pool_);
  call_.reset();
  sent_ = false;
  streaming_ = false;
  if (!keep) return Close();
  client_.Reuse(Self());
}

bool Http1Connection::MayRepeat(const Call& call) const {
  return sent_ && used_ && !answering_ && !call.repeated && !call.once &&
         (call.request.method == env::Method::kGet || call.to != nullptr);
}

// The connection has failed.
void Http1Connection::Break(std::string why) {
  if (closed_) return;
  if (call_) {
    Call call = std::move(*call_);
    call_.reset();
    client_.End(call, streaming_, *pool_);
    if (streaming_) {
      client_.Post(env::StreamEnded{call.id});
    } else if (MayRepeat(call)) {
      call.repeated = true;
      Close();
      return client_.Open(pool_, std::move(call));
    } else {
      client_.Fail(call.id, sent_ ? CallFailure::kLost : CallFailure::kNotSent, std::move(why));
    }
  }
  Close();
}

Carrier::Progress Http1Connection::ProgressOf(env::CallId call) const {
  CHECK(call_ && call_->id == call);
  return {.due = call_->due, .sent = sent_, .streaming = streaming_};
}

void Http1Connection::Abandon(env::CallId call) {
  CHECK(call_ && call_->id == call);
  // Others may wait for what this one finds out.
  std::optional<Call> next = opening_ ? client_.TakeWaiting(*pool_) : std::nullopt;
  if (!next) return Close();
  client_.End(*call_, streaming_, *pool_);
  call_ = std::move(next);
  client_.NoteGiven(call_->id, shared_from_this());
}

void Http1Connection::Close() {
  if (closed_) return;
  closed_ = true;
  if (call_) client_.End(*call_, streaming_, *pool_);
  call_.reset();
  open_timer_.cancel();
  if (std::exchange(opening_, false)) --pool_->opening;
  error_code ignored;
  stream_.next_layer().shutdown(tcp::socket::shutdown_both, ignored);
  stream_.next_layer().close(ignored);
  client_.Forget(shared_from_this());
}

}  // namespace berth::net
