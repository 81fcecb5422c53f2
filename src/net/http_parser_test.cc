// Goal: no bytes are a request to berth that a proxy before it would cut otherwise, and what berth
// refuses it refuses before a body is taken for the next request. Method: heads of requests with a
// body and a second request behind them.
#include "net/http_parser.h"

#include <gtest/gtest.h>

namespace berth::net {
namespace {

constexpr std::string_view kSecond = "GET /version HTTP/1.1\r\nHost: x\r\n\r\n";

ParseState StateAfter(const std::string& bytes) {
  RequestParser parser({.header_bytes = 4096, .body_bytes = 4096});
  for (size_t offset = 0; offset < bytes.size() && parser.state() == ParseState::kNeedMore;) {
    const size_t taken = parser.Put(std::string_view(bytes).substr(offset));
    if (taken == 0) break;
    offset += taken;
  }
  return parser.state();
}

TEST(RequestParser, TakesOnlyLengthsThatCanBeReadInOneWay) {
  const struct {
    const char* fields;
    const char* body;
    ParseState state;
  } rows[] = {
      {"Transfer-Encoding: chunked\r\n", "1\r\na\r\n0\r\n\r\n", ParseState::kComplete},
      {"transfer-encoding: Chunked\r\n", "0\r\n\r\n", ParseState::kComplete},
      {"Content-Length: 1\r\n", "a", ParseState::kComplete},
      {"", "", ParseState::kComplete},
      {"Transfer-Encoding: gzip\r\n", "", ParseState::kMalformed},
      {"Transfer-Encoding: gzip\r\nContent-Length: 1\r\n", "a", ParseState::kMalformed},
      {"Content-Length: 1\r\nTransfer-Encoding: gzip\r\n", "a", ParseState::kMalformed},
      {"Transfer-Encoding: gzip, chunked\r\n", "0\r\n\r\n", ParseState::kMalformed},
      {"Transfer-Encoding: chunked, gzip\r\n", "0\r\n\r\n", ParseState::kMalformed},
      {"Transfer-Encoding: chunked, chunked\r\n", "0\r\n\r\n", ParseState::kMalformed},
      {"Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n",
       ParseState::kMalformed},
      {"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n",
       ParseState::kMalformed},
      {"Transfer-Encoding: identity\r\n", "", ParseState::kMalformed},
      {"Transfer-Encoding:\r\n", "", ParseState::kMalformed},
      {"Transfer-Encoding: \x0b"
       "chunked\r\n",
       "0\r\n\r\n", ParseState::kMalformed},
      {"Transfer-Encoding: chunked\r\nContent-Length: 1\r\n", "0\r\n\r\n", ParseState::kMalformed},
      {"Content-Length: 1\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n", ParseState::kMalformed},
      {"Content-Length: 1\r\nContent-Length: 2\r\n", "aa", ParseState::kMalformed},
  };
  for (const auto& row : rows) {
    const std::string request =
        std::string("POST / HTTP/1.1\r\nHost: x\r\n") + row.fields + "\r\n" + row.body;
    EXPECT_EQ(StateAfter(request + std::string(kSecond)), row.state) << row.fields;
  }
}

TEST(RequestParser, TakesTheAbsoluteFormOfATarget) {
  const struct {
    const char* target;
    const char* path;  // Null: refused.
  } rows[] = {
      {"/api?a=b", "/api?a=b"},
      {"*", "*"},
      {"http://x/api/v1?watch=1", "/api/v1?watch=1"},
      {"HTTPS://x:7443/api", "/api"},
      {"https://[::1]:7443", "/"},
      {"http://x?a=b", "/?a=b"},
      {"http://", nullptr},
      {"http:///api", nullptr},
      {"http://u:p@x/api", nullptr},
      {"ftp://x/api", nullptr},
      {"x:7443", nullptr},
      {"api", nullptr},
  };
  for (const auto& row : rows) {
    RequestParser parser({.header_bytes = 4096, .body_bytes = 4096});
    parser.Put(std::string("GET ") + row.target + " HTTP/1.1\r\nHost: x\r\n\r\n");
    ASSERT_EQ(parser.state(), row.path ? ParseState::kComplete : ParseState::kMalformed)
        << row.target;
    if (row.path) {
      EXPECT_EQ(parser.Take().target, row.path);
    }
  }
}

TEST(RequestParser, TakesNoChunksFromHttp10) {
  EXPECT_EQ(StateAfter("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
            ParseState::kMalformed);
  EXPECT_EQ(StateAfter("POST / HTTP/1.0\r\nContent-Length: 1\r\n\r\na"), ParseState::kComplete);
}

}  // namespace
}  // namespace berth::net
