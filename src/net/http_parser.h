#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "env/http.h"

// HTTP/1.1 messages as text (RFC 9112), on top of Beast's parser, which no other file of berth
// sees.
namespace berth::net {

enum class ParseState : uint8_t {
  kNeedMore,
  kComplete,
  kMalformed,       // Answer 400 and close.
  kHeaderTooLarge,  // Answer 431 and close.
  kBodyTooLarge,    // Answer 413 and close.
};

struct ParseLimits {
  uint32_t header_bytes = 0;
  uint64_t body_bytes = 0;
};

// Takes one request after the other from the bytes of a connection. Refuses what could be read in
// two ways (both kinds of length, a transfer coding other than chunked, spaces before colons, a
// request of HTTP/1.1 without Host). Not thread-safe.
class RequestParser {
 public:
  explicit RequestParser(ParseLimits limits);
  ~RequestParser();
  RequestParser(RequestParser&&) noexcept;
  RequestParser& operator=(RequestParser&&) noexcept;

  // Takes a prefix of `bytes` and says how long it was; the rest must come again, with more behind
  // it.
  size_t Put(std::string_view bytes);
  [[nodiscard]] ParseState state() const;

  // The head has been read whole and the sender waits for a go-ahead before it sends the body.
  [[nodiscard]] bool expects_continue() const;

  // REQUIRES: state() == kComplete. Readies the parser for the next request.
  env::HttpRequest Take();
  // Of the request taken last.
  [[nodiscard]] bool keep_alive() const;
  [[nodiscard]] bool is_head() const;
  [[nodiscard]] bool is_http10() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Takes one response after the other. Not thread-safe.
class ResponseParser {
 public:
  explicit ResponseParser(ParseLimits limits);
  ~ResponseParser();
  ResponseParser(ResponseParser&&) noexcept;
  ResponseParser& operator=(ResponseParser&&) noexcept;

  // Forgets what it has and expects the answer to a request of method `method`. With `stream` the
  // body has no limit.
  void Expect(env::Method method, bool stream);
  size_t Put(std::string_view bytes);
  // The connection has ended, which ends a body without a length.
  void PutEnd();
  [[nodiscard]] ParseState state() const;
  [[nodiscard]] bool header_done() const;
  [[nodiscard]] int status() const;
  [[nodiscard]] bool keep_alive() const;

  // REQUIRES: header_done(). The head, with an empty body.
  [[nodiscard]] env::HttpResponse Head() const;
  // What has come of the body since it was last taken.
  std::string TakeBody();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// The head of a response up to and with its empty line. `length` < 0: chunked.
std::string ResponseHead(const env::HttpResponse& response, int64_t length, std::string_view date,
                         bool close);

// The standard phrase of a status code, or "Unknown".
std::string_view ReasonPhrase(int status);

}  // namespace berth::net
