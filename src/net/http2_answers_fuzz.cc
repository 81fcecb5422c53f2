// Goal: no bytes of a server crash the session, and how they are cut never changes what they mean.
// Method: three requests are under way; the same bytes at once and one by one must give the same
// answers, and each that ends is told.
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "net/http2_session.h"

namespace {

using berth::net::Http2Answer;
using berth::net::Http2Session;

// A server's SETTINGS, without any: what it sends first.
constexpr std::string_view kSettings("\0\0\0\4\0\0\0\0\0", 9);

// A session with three requests under way, and their numbers.
std::vector<int32_t> Begin(Http2Session& session) {
  std::vector<int32_t> streams;
  std::string out;
  CHECK(session.Put(kSettings));
  for (const bool stream : {false, true, false}) {
    berth::env::HttpRequest request;
    request.target = "/";
    if (!stream) request.method = berth::env::Method::kPost;
    if (!stream) request.body = berth::Bytes("{}");
    streams.push_back(session.Send(
        {.request = request, .authority = "a", .path_prefix = "", .token = "", .stream = stream}));
  }
  CHECK(session.AppendOutput(out));
  return streams;
}

constexpr berth::net::ParseLimits kLimits = {.header_bytes = 4096, .body_bytes = 4096};

std::map<int32_t, Http2Answer> Answers(std::string_view bytes, size_t step) {
  Http2Session session(kLimits);
  std::map<int32_t, Http2Answer> answers;
  for (const int32_t stream : Begin(session)) answers[stream] = {};
  for (size_t at = 0; at < bytes.size(); at += step) {
    if (!session.Put(bytes.substr(at, step))) break;
  }
  for (auto& [stream, answer] : answers) answer = session.AnswerOf(stream);
  return answers;
}

// As a connection does it: what is to be written is taken each time, and each end is told.
void CheckThatEndsAreTold(std::string_view bytes, size_t step) {
  Http2Session session(kLimits);
  std::set<int32_t> open;
  for (const int32_t stream : Begin(session)) open.insert(stream);
  for (size_t at = 0; at < bytes.size(); at += step) {
    std::string out;
    const bool good = session.Put(bytes.substr(at, step)).has_value();
    const bool goes_on = session.AppendOutput(out).has_value();
    for (const int32_t stream : session.TakeTouched()) {
      if (session.AnswerOf(stream).end == Http2Answer::End::kOpen) continue;
      session.Forget(stream);
      open.erase(stream);
    }
    for (const int32_t stream : open)
      CHECK(session.AnswerOf(stream).end == Http2Answer::End::kOpen);
    if (!good || !goes_on) return;
  }
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
  CheckThatEndsAreTold(bytes, 1);
  CheckThatEndsAreTold(bytes, size + 1);
  return 0;
}
