#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "env/http.h"
#include "net/http_parser.h"

namespace berth::net {

// What has come of the answer to one request.
struct Http2Answer {
  enum class End : uint8_t {
    kOpen,      // More may come.
    kComplete,  // It is whole.
    kRefused,   // The server has not looked at the request and never will (RFC 9113, 8.7).
    kBroken,    // It ended before it was whole, or is none.
    kTooLarge,  // It was cut at the limit of bodies.
  };
  env::HttpResponse head;  // Without its body.
  bool head_done = false;
  std::string body;  // What has come since it was last taken.
  End end = End::kOpen;
  std::string why;  // It was refused or broke; as Go says it.
};

// A request, and what the connection adds to it.
struct Http2Request {
  const env::HttpRequest& request;
  std::string_view authority;
  std::string_view path_prefix;
  std::string_view token;  // Empty: none is added.
  bool stream = false;     // Its answer's body has no limit.
};

// The client's side of one connection of HTTP/2 (RFC 9113), without the connection: requests become
// bytes, and bytes answers. Requests are numbered by their streams. Not thread-safe.
class Http2Session {
 public:
  explicit Http2Session(ParseLimits limits);
  ~Http2Session();
  Http2Session(const Http2Session&) = delete;
  Http2Session& operator=(const Http2Session&) = delete;

  // Whether the server has said by its SETTINGS how many requests it takes.
  [[nodiscard]] bool settled() const;
  // How many requests more it takes now; until it has said so, one.
  [[nodiscard]] int64_t room() const;
  // It takes none any more: the server has said that it goes away, or all numbers are used up.
  [[nodiscard]] bool goes_away() const;

  // Begins a request; its first bytes are in the next AppendOutput. REQUIRES: room() > 0
  int32_t Send(const Http2Request& request);
  // Forgets a request, and tells the server unless it is done with it.
  void Forget(int32_t stream);
  // Whether bytes of its body have still to become output: what the server's windows don't let.
  [[nodiscard]] bool IsPartlySent(int32_t stream) const;
  // Whether it is so of any. O(1).
  [[nodiscard]] bool any_partly_sent() const;
  // Asks for a sign of life: some bytes will come.
  void Ping();

  // Takes what came. Errors: it is no HTTP/2, and the connection of no use any more.
  Status Put(std::string_view bytes);
  // Adds what is to be written. Errors: the connection is at its end: nothing more will come.
  Status AppendOutput(std::string& out);

  // The requests about which something came since this was last asked, each once, oldest news
  // first.
  std::vector<int32_t> TakeTouched();
  // REQUIRES: sent, and not forgotten.
  [[nodiscard]] Http2Answer& AnswerOf(int32_t stream);

  struct Impl;

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace berth::net
