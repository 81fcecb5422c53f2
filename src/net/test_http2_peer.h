#pragma once

#include <gtest/gtest.h>
#include <nghttp2/nghttp2.h>

#include <array>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

// The server's side of a connection of HTTP/2 for tests: nghttp2's own, in memory.
namespace berth::net {

class Http2Peer {
 public:
  struct Request {
    int32_t stream = 0;
    std::map<std::string, std::string> headers;  // With method and path as ":method", ":path".
    std::string body;
  };

  explicit Http2Peer(uint32_t streams_max = 100) {
    nghttp2_session_callbacks* callbacks = nullptr;
    nghttp2_session_callbacks_new(&callbacks);
    SetCallbacks(callbacks);
    nghttp2_session_server_new(&session_, callbacks, this);
    nghttp2_session_callbacks_del(callbacks);
    Allow(streams_max);
  }
  ~Http2Peer() { nghttp2_session_del(session_); }
  Http2Peer(const Http2Peer&) = delete;
  Http2Peer& operator=(const Http2Peer&) = delete;

  // Takes what a client sent; false: it is no HTTP/2.
  bool Put(std::string_view bytes) {
    return nghttp2_session_mem_recv(session_, reinterpret_cast<const uint8_t*>(bytes.data()),
                                    bytes.size()) >= 0;
  }
  std::string Output() {
    std::string out;
    for (;;) {
      const uint8_t* bytes = nullptr;
      const ssize_t size = nghttp2_session_mem_send(session_, &bytes);
      if (size <= 0) return out;
      out.append(reinterpret_cast<const char*>(bytes), static_cast<size_t>(size));
    }
  }
  // Since it was last asked: those that came whole, and those whose headers came.
  std::vector<Request> TakeRequests() { return std::exchange(requests_, {}); }
  std::vector<int32_t> TakeBegun() { return std::exchange(begun_, {}); }
  // Streams that the client reset, and why.
  [[nodiscard]] const std::map<int32_t, uint32_t>& resets() const { return resets_; }

  // So many streams may be open from now on.
  void Allow(uint32_t streams_max) {
    const std::array<nghttp2_settings_entry, 1> settings = {
        {{NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, streams_max}}};
    nghttp2_submit_settings(session_, NGHTTP2_FLAG_NONE, settings.data(), settings.size());
  }
  // More of the answer may come by Data.
  void Head(int32_t stream, std::string_view status,
            const std::vector<std::pair<std::string, std::string>>& headers = {},
            bool interim = false) {
    std::vector<nghttp2_nv> fields = {Field(":status", status)};
    for (const auto& [name, value] : headers) fields.push_back(Field(name, value));
    if (interim) {
      nghttp2_submit_headers(session_, NGHTTP2_FLAG_NONE, stream, nullptr, fields.data(),
                             fields.size(), nullptr);
      return;
    }
    const nghttp2_data_provider body{
        .source = {},
        .read_callback = [](nghttp2_session*, int32_t id, uint8_t* into, size_t size,
                            uint32_t* flags, nghttp2_data_source*,
                            void* data) { return Of(data).ReadBody(id, {into, size}, *flags); }};
    nghttp2_submit_response(session_, stream, fields.data(), fields.size(), &body);
  }
  void Data(int32_t stream, std::string_view data, bool end) {
    Body& body = bodies_[stream];
    body.data += data;
    body.end = end;
    nghttp2_session_resume_data(session_, stream);
  }
  void Answer(int32_t stream, std::string_view status, std::string_view body) {
    Data(stream, body, /*end=*/true);
    Head(stream, status);
  }
  void Trailers(int32_t stream) { bodies_[stream].trailers = true; }
  void Reset(int32_t stream, uint32_t code) {
    nghttp2_submit_rst_stream(session_, NGHTTP2_FLAG_NONE, stream, code);
  }
  // What came after stream `last` was not looked at.
  void GoAway(int32_t last) {
    nghttp2_submit_goaway(session_, NGHTTP2_FLAG_NONE, last, NGHTTP2_NO_ERROR, nullptr, 0);
  }

 private:
  struct Body {
    std::string data;
    bool end = false;
    bool trailers = false;
  };

  static Http2Peer& Of(void* data) { return *static_cast<Http2Peer*>(data); }
  static std::string Text(const uint8_t* data, size_t size) {
    return {reinterpret_cast<const char*>(data), size};
  }
  static nghttp2_nv Field(std::string_view name, std::string_view value) {
    return {.name = const_cast<uint8_t*>(reinterpret_cast<const uint8_t*>(name.data())),
            .value = const_cast<uint8_t*>(reinterpret_cast<const uint8_t*>(value.data())),
            .namelen = name.size(),
            .valuelen = value.size(),
            .flags = NGHTTP2_NV_FLAG_NONE};
  }
  ssize_t ReadBody(int32_t stream, std::span<uint8_t> into, uint32_t& flags) {
    Body& body = bodies_[stream];
    if (body.data.empty() && !body.end) return NGHTTP2_ERR_DEFERRED;
    const size_t taken = body.data.copy(reinterpret_cast<char*>(into.data()), into.size());
    body.data.erase(0, taken);
    if (!body.data.empty() || !body.end) return static_cast<ssize_t>(taken);
    flags |= NGHTTP2_DATA_FLAG_EOF;
    if (body.trailers) {
      flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
      const nghttp2_nv trailer = Field("grpc-status", "0");
      nghttp2_submit_trailer(session_, stream, &trailer, 1);
    }
    return static_cast<ssize_t>(taken);
  }
  static void SetCallbacks(nghttp2_session_callbacks* callbacks) {
    nghttp2_session_callbacks_set_on_header_callback(
        callbacks,
        [](nghttp2_session*, const nghttp2_frame* frame, const uint8_t* name, size_t name_size,
           const uint8_t* value, size_t value_size, uint8_t, void* data) {
          Of(data).coming_[frame->hd.stream_id].headers[Text(name, name_size)] =
              Text(value, value_size);
          return 0;
        });
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(
        callbacks, [](nghttp2_session*, uint8_t, int32_t stream, const uint8_t* bytes, size_t size,
                      void* data) {
          Of(data).coming_[stream].body += Text(bytes, size);
          return 0;
        });
    nghttp2_session_callbacks_set_on_frame_recv_callback(
        callbacks, [](nghttp2_session*, const nghttp2_frame* frame, void* data) {
          Http2Peer& peer = Of(data);
          const int32_t stream = frame->hd.stream_id;
          if (frame->hd.type == NGHTTP2_RST_STREAM)
            peer.resets_[stream] = frame->rst_stream.error_code;
          if (frame->hd.type == NGHTTP2_HEADERS) peer.begun_.push_back(stream);
          const bool ends = (frame->hd.type == NGHTTP2_HEADERS || frame->hd.type == NGHTTP2_DATA) &&
                            (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0;
          if (!ends) return 0;
          Request request = std::move(peer.coming_[stream]);
          peer.coming_.erase(stream);
          request.stream = stream;
          peer.requests_.push_back(std::move(request));
          return 0;
        });
  }

  nghttp2_session* session_ = nullptr;
  std::map<int32_t, Request> coming_;
  std::vector<Request> requests_;
  std::vector<int32_t> begun_;
  std::map<int32_t, Body> bodies_;
  std::map<int32_t, uint32_t> resets_;
};

}  // namespace berth::net
