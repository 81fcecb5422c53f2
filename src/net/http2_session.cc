#include "net/http2_session.h"

#include <fmt/format.h>
#include <nghttp2/nghttp2.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <span>
#include <unordered_map>
#include <utility>

#include "base/check.h"

namespace berth::net {
namespace {

using End = Http2Answer::End;

constexpr int32_t kStreamWindowBytes = 4 << 20;
constexpr int32_t kConnectionWindowBytes = 64 << 20;

// Of a request: what is larger the server is to refuse.
constexpr size_t kSentHeaderBytesMax = 1 << 20;

constexpr int kConnection = 0;  // The stream that the connection's own frames name.

std::string_view View(const uint8_t* data, size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

// As Go's http2.StreamError has it.
std::string StreamError(int32_t stream, uint32_t code, bool by_peer) {
  return fmt::format("stream error: stream ID {}; {}{}", stream, nghttp2_http2_strerror(code),
                     by_peer ? "; received from peer" : "");
}

nghttp2_nv Field(std::string_view name, std::string_view value) {
  // nghttp2 writes to neither.
  return {.name = const_cast<uint8_t*>(reinterpret_cast<const uint8_t*>(name.data())),
          .value = const_cast<uint8_t*>(reinterpret_cast<const uint8_t*>(value.data())),
          .namelen = name.size(),
          .valuelen = value.size(),
          .flags = NGHTTP2_NV_FLAG_NONE};
}

// Headers that HTTP/2 has no place for or says itself.
bool IsOfTheConnection(std::string_view name) {
  return name == "host" || name == "content-length" || name == "connection" ||
         name == "transfer-encoding" || name == "keep-alive" || name == "upgrade";
}

}  // namespace

struct Http2Session::Impl {
  struct Exchange {
    Http2Answer answer;
    Bytes body;  // Of the request.
    size_t body_at = 0;
    uint64_t header_bytes = 0;
    uint64_t body_bytes = 0;
    bool stream = false;
    bool touched = false;
    bool reset_by_peer = false;
  };

  explicit Impl(ParseLimits l) : limits(l) {}

  Exchange* Find(int32_t stream) {
    const auto found = exchanges.find(stream);
    return found == exchanges.end() ? nullptr : &found->second;
  }
  void Touch(int32_t stream, Exchange& exchange) {
    if (!std::exchange(exchange.touched, true)) touched.push_back(stream);
  }
  void Finish(int32_t stream, Exchange& exchange, End end, std::string why) {
    if (exchange.answer.end != End::kOpen) return;
    exchange.answer.end = end;
    exchange.answer.why = std::move(why);
    Touch(stream, exchange);
  }

  int OnHeader(int32_t stream, std::string_view name, std::string_view value);
  void OnFrame(const nghttp2_frame& frame);
  void OnData(int32_t stream, std::string_view data);
  void OnClosed(int32_t stream, uint32_t code);
  void OnNotSent(const nghttp2_frame& frame, int error);
  // Copies what is next of a request's body; how much.
  ssize_t ReadBody(int32_t stream, std::span<uint8_t> into, uint32_t& flags);

  const ParseLimits limits;
  nghttp2_session* session = nullptr;
  std::unordered_map<int32_t, Exchange> exchanges;
  std::vector<int32_t> touched;
  size_t partly_sent = 0;  // Exchanges whose request's body is not sent to its end.
  bool settled = false;
};

int Http2Session::Impl::OnHeader(int32_t stream, std::string_view name, std::string_view value) {
  Exchange* exchange = Find(stream);
  if (exchange == nullptr) return 0;
  exchange->header_bytes += name.size() + value.size();
  if (exchange->header_bytes > limits.header_bytes) {
    Finish(stream, *exchange, End::kBroken, "the answer's headers are too large");
    return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;  // Resets the stream.
  }
  if (exchange->answer.head_done) return 0;  // Trailers.
  if (name == ":status") {
    std::from_chars(value.data(), value.data() + value.size(), exchange->answer.head.status);
  } else {
    exchange->answer.head.headers.push_back({std::string(name), std::string(value)});
  }
  return 0;
}

void Http2Session::Impl::OnFrame(const nghttp2_frame& frame) {
  settled =
      settled || (frame.hd.type == NGHTTP2_SETTINGS && (frame.hd.flags & NGHTTP2_FLAG_ACK) == 0);
  const int32_t stream = frame.hd.stream_id;
  Exchange* exchange = Find(stream);
  if (exchange == nullptr) return;
  if (frame.hd.type == NGHTTP2_RST_STREAM) exchange->reset_by_peer = true;
  if (frame.hd.type != NGHTTP2_HEADERS && frame.hd.type != NGHTTP2_DATA) return;
  Http2Answer& answer = exchange->answer;
  if (frame.hd.type == NGHTTP2_HEADERS && !answer.head_done) {
    // 103 Early Hints and its like announce the answer.
    if (answer.head.status / 100 == 1) {
      answer.head = {};
      return;
    }
    answer.head_done = true;
    Touch(stream, *exchange);
  }
  if ((frame.hd.flags & NGHTTP2_FLAG_END_STREAM) != 0 && answer.head_done)
    Finish(stream, *exchange, End::kComplete, "");
}

void Http2Session::Impl::OnData(int32_t stream, std::string_view data) {
  Exchange* exchange = Find(stream);
  if (exchange == nullptr || exchange->answer.end != End::kOpen) return;
  exchange->body_bytes += data.size();
  if (!exchange->stream && exchange->body_bytes > limits.body_bytes) {
    return Finish(stream, *exchange, End::kTooLarge,
                  fmt::format("the answer has more than {} bytes", limits.body_bytes));
  }
  exchange->answer.body.append(data);
  Touch(stream, *exchange);
}

void Http2Session::Impl::OnClosed(int32_t stream, uint32_t code) {
  Exchange* exchange = Find(stream);
  if (exchange == nullptr || exchange->answer.end != End::kOpen) return;
  // Who has begun to answer has looked at it, whatever it says.
  const bool refused = code == NGHTTP2_REFUSED_STREAM && !exchange->answer.head_done;
  Finish(stream, *exchange, refused ? End::kRefused : End::kBroken,
         StreamError(stream, code, exchange->reset_by_peer));
}

// nghttp2 dropped a request by itself: its headers are larger than it sends.
void Http2Session::Impl::OnNotSent(const nghttp2_frame& frame, int error) {
  Exchange* exchange = Find(frame.hd.stream_id);
  if (frame.hd.type != NGHTTP2_HEADERS || exchange == nullptr) return;
  Finish(frame.hd.stream_id, *exchange, End::kBroken, nghttp2_strerror(error));
}

ssize_t Http2Session::Impl::ReadBody(int32_t stream, std::span<uint8_t> into, uint32_t& flags) {
  Exchange* exchange = Find(stream);
  if (exchange == nullptr) return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
  const std::string_view rest = exchange->body.view().substr(exchange->body_at);
  const size_t taken = std::min(into.size(), rest.size());
  if (taken > 0) std::memcpy(into.data(), rest.data(), taken);
  exchange->body_at += taken;
  if (taken == rest.size()) {
    flags |= NGHTTP2_DATA_FLAG_EOF;
    --partly_sent;
  }
  return static_cast<ssize_t>(taken);
}

namespace {

Http2Session::Impl& Of(void* data) { return *static_cast<Http2Session::Impl*>(data); }

void SetCallbacks(nghttp2_session_callbacks* callbacks) {
  nghttp2_session_callbacks_set_on_header_callback(
      callbacks,
      [](nghttp2_session*, const nghttp2_frame* frame, const uint8_t* name, size_t name_size,
         const uint8_t* value, size_t value_size, uint8_t, void* data) {
        return Of(data).OnHeader(frame->hd.stream_id, View(name, name_size),
                                 View(value, value_size));
      });
  nghttp2_session_callbacks_set_on_frame_recv_callback(
      callbacks, [](nghttp2_session*, const nghttp2_frame* frame, void* data) {
        Of(data).OnFrame(*frame);
        return 0;
      });
  nghttp2_session_callbacks_set_on_data_chunk_recv_callback(
      callbacks,
      [](nghttp2_session*, uint8_t, int32_t stream, const uint8_t* bytes, size_t size, void* data) {
        Of(data).OnData(stream, View(bytes, size));
        return 0;
      });
  nghttp2_session_callbacks_set_on_stream_close_callback(
      callbacks, [](nghttp2_session*, int32_t stream, uint32_t code, void* data) {
        Of(data).OnClosed(stream, code);
        return 0;
      });
  nghttp2_session_callbacks_set_on_frame_not_send_callback(
      callbacks, [](nghttp2_session*, const nghttp2_frame* frame, int error, void* data) {
        Of(data).OnNotSent(*frame, error);
        return 0;
      });
}

}  // namespace

Http2Session::Http2Session(ParseLimits limits) : impl_(std::make_unique<Impl>(limits)) {
  nghttp2_session_callbacks* callbacks = nullptr;
  nghttp2_option* option = nullptr;
  CHECK_EQ(nghttp2_session_callbacks_new(&callbacks), 0);
  CHECK_EQ(nghttp2_option_new(&option), 0);
  SetCallbacks(callbacks);
  nghttp2_option_set_max_send_header_block_length(option, kSentHeaderBytesMax);
  CHECK_EQ(nghttp2_session_client_new2(&impl_->session, callbacks, impl_.get(), option), 0);
  nghttp2_option_del(option);
  nghttp2_session_callbacks_del(callbacks);
  const std::array<nghttp2_settings_entry, 3> settings = {{
      {NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
      {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, kStreamWindowBytes},
      {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, limits.header_bytes},
  }};
  CHECK_EQ(
      nghttp2_submit_settings(impl_->session, NGHTTP2_FLAG_NONE, settings.data(), settings.size()),
      0);
  CHECK_EQ(nghttp2_session_set_local_window_size(impl_->session, NGHTTP2_FLAG_NONE, kConnection,
                                                 kConnectionWindowBytes),
           0);
}

Http2Session::~Http2Session() { nghttp2_session_del(impl_->session); }

bool Http2Session::settled() const { return impl_->settled; }

int64_t Http2Session::room() const {
  constexpr int64_t kStreamsMax = 1000;  // Of a server that names no bound.
  if (goes_away()) return 0;
  const int64_t most =
      nghttp2_session_get_remote_settings(impl_->session, NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS);
  const int64_t taken = static_cast<int64_t>(impl_->exchanges.size());
  return std::max<int64_t>(0, (impl_->settled ? std::min(most, kStreamsMax) : 1) - taken);
}

bool Http2Session::goes_away() const {
  return nghttp2_session_check_request_allowed(impl_->session) == 0;
}

int32_t Http2Session::Send(const Http2Request& request) {
  const env::HttpRequest& sent = request.request;
  const std::string path = std::string(request.path_prefix) + sent.target;
  const std::string authorization = "Bearer " + std::string(request.token);
  const std::string length = std::to_string(sent.body.size());
  std::vector<nghttp2_nv> fields = {
      Field(":method", ToString(sent.method)),
      Field(":scheme", "https"),
      Field(":authority", request.authority),
      Field(":path", path),
  };
  for (const env::Header& header : sent.headers) {
    if (!IsOfTheConnection(header.name)) fields.push_back(Field(header.name, header.value));
  }
  if (!request.token.empty()) fields.push_back(Field("authorization", authorization));
  const bool has_body = !sent.body.empty();
  if (has_body || sent.method != env::Method::kGet)
    fields.push_back(Field("content-length", length));
  const nghttp2_data_provider body{
      .source = {},
      .read_callback = [](nghttp2_session*, int32_t id, uint8_t* into, size_t size, uint32_t* flags,
                          nghttp2_data_source*,
                          void* data) { return Of(data).ReadBody(id, {into, size}, *flags); }};
  const int32_t stream = nghttp2_submit_request(impl_->session, nullptr, fields.data(),
                                                fields.size(), has_body ? &body : nullptr, nullptr);
  CHECK_GT(stream, 0);
  Impl::Exchange& exchange = impl_->exchanges[stream];
  exchange.body = sent.body;
  if (has_body) ++impl_->partly_sent;
  exchange.stream = request.stream;
  return stream;
}

void Http2Session::Forget(int32_t stream) {
  if (impl_->Find(stream) == nullptr) return;
  if (IsPartlySent(stream)) --impl_->partly_sent;
  impl_->exchanges.erase(stream);
  // An answer before the whole request is sent is a refusal; the rest need not be sent.
  const bool sent = nghttp2_session_get_stream_local_close(impl_->session, stream) != 0;
  const bool answered = nghttp2_session_get_stream_remote_close(impl_->session, stream) != 0;
  if (sent && answered) return;
  // Out of memory alone keeps it from being queued.
  CHECK_EQ(nghttp2_submit_rst_stream(impl_->session, NGHTTP2_FLAG_NONE, stream, NGHTTP2_CANCEL), 0);
}

bool Http2Session::IsPartlySent(int32_t stream) const {
  const Impl::Exchange* exchange = impl_->Find(stream);
  return exchange != nullptr && exchange->body_at < exchange->body.size();
}

bool Http2Session::any_partly_sent() const { return impl_->partly_sent > 0; }

void Http2Session::Ping() {
  CHECK_EQ(nghttp2_submit_ping(impl_->session, NGHTTP2_FLAG_NONE, nullptr), 0);
}

Status Http2Session::Put(std::string_view bytes) {
  const ssize_t taken = nghttp2_session_mem_recv(
      impl_->session, reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
  if (taken < 0) return berth::Fail(ErrorCode::kInvalid, nghttp2_strerror(static_cast<int>(taken)));
  return {};
}

Status Http2Session::AppendOutput(std::string& out) {
  for (;;) {
    const uint8_t* bytes = nullptr;
    const ssize_t size = nghttp2_session_mem_send(impl_->session, &bytes);
    if (size < 0) {
      return berth::Fail(ErrorCode::kInvalid, nghttp2_strerror(static_cast<int>(size)));
    }
    if (size == 0) break;
    out.append(View(bytes, static_cast<size_t>(size)));
  }
  if (nghttp2_session_want_read(impl_->session) == 0 &&
      nghttp2_session_want_write(impl_->session) == 0) {
    return berth::Fail(ErrorCode::kInvalid, "the connection has ended");
  }
  return {};
}

std::vector<int32_t> Http2Session::TakeTouched() {
  std::vector<int32_t> streams;
  streams.reserve(impl_->touched.size());
  for (const int32_t stream : std::exchange(impl_->touched, {})) {
    Impl::Exchange* exchange = impl_->Find(stream);
    if (exchange == nullptr) continue;
    exchange->touched = false;
    streams.push_back(stream);
  }
  return streams;
}

Http2Answer& Http2Session::AnswerOf(int32_t stream) {
  Impl::Exchange* exchange = impl_->Find(stream);
  CHECK(exchange != nullptr);
  return exchange->answer;
}

}  // namespace berth::net
