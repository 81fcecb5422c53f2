#include "net/http_parser.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <optional>

#include "base/check.h"

namespace berth::net {
namespace {

namespace http = boost::beast::http;
using boost::beast::error_code;

env::Method ToMethod(http::verb verb) {
  switch (verb) {
    case http::verb::get:
      return env::Method::kGet;
    case http::verb::post:
      return env::Method::kPost;
    case http::verb::put:
      return env::Method::kPut;
    case http::verb::patch:
      return env::Method::kPatch;
    case http::verb::delete_:
      return env::Method::kDelete;
    case http::verb::head:
      return env::Method::kHead;
    default:
      return env::Method::kOther;
  }
}

std::vector<env::Header> ToHeaders(const http::fields& fields) {
  std::vector<env::Header> headers;
  for (const auto& field : fields) {
    const auto name = field.name_string();
    const auto value = field.value();
    env::Header header{.name = std::string(name.data(), name.size()),
                       .value = std::string(value.data(), value.size())};
    std::ranges::transform(header.name, header.name.begin(), [](char c) {
      return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    });
    headers.push_back(std::move(header));
  }
  return headers;
}

ParseState ToState(const error_code& error) {
  if (!error || error == http::error::need_more) return ParseState::kNeedMore;
  if (error == http::error::header_limit) return ParseState::kHeaderTooLarge;
  if (error == http::error::body_limit) return ParseState::kBodyTooLarge;
  return ParseState::kMalformed;
}

// RFC 9112, section 6.3: a length that can be read in two ways lets a request hide in the body of
// another. Chunks are the only coding taken, said once and beside no length.
bool HasOneLength(const http::request<http::string_body>& message) {
  const size_t codings = message.count(http::field::transfer_encoding);
  if (codings == 0) return true;
  const bool chunked = boost::beast::iequals(message[http::field::transfer_encoding], "chunked");
  const bool has_length = message.count(http::field::content_length) > 0;
  return codings == 1 && chunked && !has_length && message.version() >= 11;
}

// What a target asks for, past the scheme and the host of its absolute form (RFC 9112, section
// 3.2.2), which names us however it is spelt: nothing is chosen by host here. Empty when it is
// neither a path, nor absolute, nor "*".
std::string PathOf(std::string_view target) {
  if (target.starts_with('/') || target == "*") return std::string(target);
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (!boost::beast::iequals(target.substr(0, scheme.size()), scheme)) continue;
    const std::string_view rest = target.substr(scheme.size());
    const size_t end = std::min(rest.find_first_of("/?#"), rest.size());
    if (end == 0 || rest.substr(0, end).find('@') != rest.npos) return "";
    const std::string_view path = rest.substr(end);
    return path.starts_with('/') ? std::string(path) : "/" + std::string(path);
  }
  return "";
}

// Feeds a parser of either kind; says how many bytes it took.
template <typename Parser>
size_t Feed(Parser& parser, std::string_view bytes, ParseState& state) {
  if (state != ParseState::kNeedMore || bytes.empty()) return 0;
  error_code error;
  const size_t taken = parser.put(boost::asio::buffer(bytes.data(), bytes.size()), error);
  state = ToState(error);
  if (state == ParseState::kNeedMore && parser.is_done()) state = ParseState::kComplete;
  return taken;
}

}  // namespace

struct RequestParser::Impl {
  explicit Impl(ParseLimits l) : limits(l) { Renew(); }
  void Renew() {
    parser.emplace();
    parser->header_limit(limits.header_bytes);
    parser->body_limit(limits.body_bytes);
    parser->eager(true);
    state = ParseState::kNeedMore;
  }
  // What Beast lets pass and a server must refuse.
  void CheckHead() {
    const auto& message = parser->get();
    const auto target = message.target();
    const bool has_target = !PathOf({target.data(), target.size()}).empty();
    const bool has_host = message.version() < 11 || message.count(http::field::host) == 1;
    if (!has_target || !has_host || !HasOneLength(message)) state = ParseState::kMalformed;
  }

  ParseLimits limits;
  std::optional<http::request_parser<http::string_body>> parser;
  ParseState state = ParseState::kNeedMore;
  bool head_checked = false;
  bool keep_alive = false;
  bool is_head = false;
  bool is_http10 = false;
};

RequestParser::RequestParser(ParseLimits limits) : impl_(std::make_unique<Impl>(limits)) {}
RequestParser::~RequestParser() = default;
RequestParser::RequestParser(RequestParser&&) noexcept = default;
RequestParser& RequestParser::operator=(RequestParser&&) noexcept = default;

size_t RequestParser::Put(std::string_view bytes) {
  const size_t taken = Feed(*impl_->parser, bytes, impl_->state);
  const bool head_done = impl_->parser->is_header_done();
  const bool fine = impl_->state == ParseState::kNeedMore || impl_->state == ParseState::kComplete;
  if (head_done && fine) impl_->CheckHead();
  // Beast wants to see a head whole and would wait for its end past the limit.
  if (!head_done && impl_->state == ParseState::kNeedMore &&
      bytes.size() - taken > impl_->limits.header_bytes) {
    impl_->state = ParseState::kHeaderTooLarge;
  }
  return taken;
}

ParseState RequestParser::state() const { return impl_->state; }

bool RequestParser::expects_continue() const {
  if (impl_->state != ParseState::kNeedMore || !impl_->parser->is_header_done()) return false;
  const auto& message = impl_->parser->get();
  return boost::beast::iequals(message[http::field::expect], "100-continue");
}

env::HttpRequest RequestParser::Take() {
  CHECK_EQ(impl_->state, ParseState::kComplete);
  auto& message = impl_->parser->get();
  const auto target = message.target();
  env::HttpRequest request{.method = ToMethod(message.method()),
                           .target = PathOf({target.data(), target.size()}),
                           .headers = ToHeaders(message.base()),
                           .body = Bytes(std::move(message.body()))};
  impl_->keep_alive = message.keep_alive();
  impl_->is_head = message.method() == http::verb::head;
  impl_->is_http10 = message.version() < 11;
  impl_->Renew();
  return request;
}

bool RequestParser::keep_alive() const { return impl_->keep_alive; }
bool RequestParser::is_head() const { return impl_->is_head; }
bool RequestParser::is_http10() const { return impl_->is_http10; }

struct ResponseParser::Impl {
  explicit Impl(ParseLimits l) : limits(l) { Renew(env::Method::kGet, false); }
  void Renew(env::Method, bool stream) {
    parser.emplace();
    parser->header_limit(limits.header_bytes);
    if (stream) {
      parser->body_limit(boost::none);
    } else {
      parser->body_limit(limits.body_bytes);
    }
    parser->eager(true);
    state = ParseState::kNeedMore;
  }

  ParseLimits limits;
  std::optional<http::response_parser<http::string_body>> parser;
  ParseState state = ParseState::kNeedMore;
};

ResponseParser::ResponseParser(ParseLimits limits) : impl_(std::make_unique<Impl>(limits)) {}
ResponseParser::~ResponseParser() = default;
ResponseParser::ResponseParser(ResponseParser&&) noexcept = default;
ResponseParser& ResponseParser::operator=(ResponseParser&&) noexcept = default;

void ResponseParser::Expect(env::Method method, bool stream) { impl_->Renew(method, stream); }

size_t ResponseParser::Put(std::string_view bytes) {
  const size_t taken = Feed(*impl_->parser, bytes, impl_->state);
  if (!impl_->parser->is_header_done() && impl_->state == ParseState::kNeedMore &&
      bytes.size() - taken > impl_->limits.header_bytes) {
    impl_->state = ParseState::kHeaderTooLarge;
  }
  return taken;
}

void ResponseParser::PutEnd() {
  if (impl_->state != ParseState::kNeedMore) return;
  error_code error;
  if (impl_->parser->is_header_done()) impl_->parser->put_eof(error);
  const bool whole = !error && impl_->parser->is_done();
  impl_->state = whole ? ParseState::kComplete : ParseState::kMalformed;
}

ParseState ResponseParser::state() const { return impl_->state; }
bool ResponseParser::header_done() const { return impl_->parser->is_header_done(); }
int ResponseParser::status() const { return static_cast<int>(impl_->parser->get().result_int()); }
bool ResponseParser::keep_alive() const { return impl_->parser->keep_alive(); }

env::HttpResponse ResponseParser::Head() const {
  CHECK(impl_->parser->is_header_done());
  return env::HttpResponse{
      .status = status(), .headers = ToHeaders(impl_->parser->get().base()), .body = {}};
}

std::string ResponseParser::TakeBody() {
  return std::exchange(impl_->parser->get().body(), std::string());
}

std::string_view ReasonPhrase(int status) {
  if (status < 100 || status > 599) return "Unknown";
  const auto phrase = http::obsolete_reason(http::int_to_status(static_cast<unsigned>(status)));
  if (status == 422) return "Unprocessable Entity";
  if (phrase.empty() || phrase == "<unknown-status>") return "Unknown";
  return {phrase.data(), phrase.size()};
}

std::string ResponseHead(const env::HttpResponse& response, int64_t length, std::string_view date,
                         bool close) {
  std::string head =
      fmt::format("HTTP/1.1 {} {}\r\n", response.status, ReasonPhrase(response.status));
  for (const env::Header& header : response.headers) {
    // A line break in a value would be a header of its own.
    CHECK(header.name.find_first_of("\r\n") == std::string::npos);
    if (header.value.find_first_of("\r\n") != std::string::npos) continue;
    head.append(header.name).append(": ").append(header.value).append("\r\n");
  }
  head.append("date: ").append(date).append("\r\n");
  if (length >= 0) {
    head += fmt::format("content-length: {}\r\n", length);
  } else {
    head += "transfer-encoding: chunked\r\n";
  }
  if (close) head += "connection: close\r\n";
  head += "\r\n";
  return head;
}

}  // namespace berth::net
