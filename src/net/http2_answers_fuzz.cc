// Goal: no bytes of a server crash the session, and how they are cut never changes what they mean.
// Method: three requests are under way; the same bytes at once and one by one must give the same
// answers.
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "base/check.h"
#include "net/http2_session.h"

namespace {

using berth::net::Http2Answer;
using berth::net::Http2Session;

// A server's SETTINGS, without any: what it sends first.
constexpr std::string_view kSettings("\0\0\0\4\0\0\0\0\0", 9);

std::map<int32_t, Http2Answer> Answers(std::string_view bytes, size_t step) {
  Http2Session session({.header_bytes = 4096, .body_bytes = 4096});
  std::map<int32_t, Http2Answer> answers;
  for (const bool stream : {false, true, false}) {
    berth::env::HttpRequest request;
    request.target = "/";
    if (!stream) request.method = berth::env::Method::kPost;
    if (!stream) request.body = berth::Bytes("{}");
    answers[session.Send(
        {.request = request, .authority = "a", .path_prefix = "", .token = "", .stream = stream})];
  }
  std::string out;
  CHECK(session.AppendOutput(out));
  CHECK(session.Put(kSettings));
  for (size_t at = 0; at < bytes.size(); at += step) {
    if (!session.Put(bytes.substr(at, step))) break;
  }
  for (auto& [stream, answer] : answers) answer = session.AnswerOf(stream);
  session.TakeTouched();
  (void)session.AppendOutput(out);
  for (const auto& [stream, answer] : answers) session.Forget(stream);
  (void)session.AppendOutput(out);
  return answers;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto whole = Answers(bytes, size + 1);
  const auto cut = Answers(bytes, 1);
  for (const auto& [stream, answer] : whole) {
    const Http2Answer& other = cut.at(stream);
    CHECK(answer.head == other.head);
    CHECK(answer.body == other.body);
    CHECK(answer.end == other.end);
  }
  return 0;
}
