// Goal: no bytes of a connection crash the request parser, and how they are cut never changes what
// they mean. Method: the same bytes at once and one by one must give the same requests and the same
// end.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "net/http_parser.h"

namespace {

using berth::net::ParseState;
using berth::net::RequestParser;

std::vector<berth::env::HttpRequest> Parse(std::string_view bytes, size_t step, ParseState& end) {
  RequestParser parser({.header_bytes = 4096, .body_bytes = 4096});
  std::vector<berth::env::HttpRequest> requests;
  std::string in;
  for (size_t at = 0; at < bytes.size(); at += step) {
    in += bytes.substr(at, step);
    for (;;) {
      const size_t taken = parser.Put(in);
      in.erase(0, taken);
      if (parser.state() == ParseState::kComplete) {
        requests.push_back(parser.Take());
      } else if (taken == 0) {
        break;
      }
    }
    if (parser.state() != ParseState::kNeedMore) break;
  }
  end = parser.state();
  return requests;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  ParseState whole_end{};
  ParseState cut_end{};
  const auto whole = Parse(bytes, size + 1, whole_end);
  const auto cut = Parse(bytes, 1, cut_end);
  // Cut, an error may show before the bytes that would have ended the head; what was taken is the
  // same.
  CHECK_EQ(whole.size(), cut.size());
  for (size_t i = 0; i < whole.size(); ++i) CHECK(whole[i] == cut[i]);
  return 0;
}
