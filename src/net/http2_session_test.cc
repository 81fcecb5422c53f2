// Goal: requests and answers pass whole however the bytes are cut, and each end of an answer is told
// as what it is. Method: the session against nghttp2's server in memory.
#include "net/http2_session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "net/test_http2_peer.h"

namespace berth::net {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using End = Http2Answer::End;

class Http2SessionTest : public ::testing::Test {
 protected:
  // Passes bytes both ways, `step` at once, until there are none.
  void Exchange(size_t step = 1 << 20) {
    for (;;) {
      std::string out;
      ended = !session.AppendOutput(out);
      for (size_t at = 0; at < out.size(); at += step) EXPECT_TRUE(peer.Put(out.substr(at, step)));
      const std::string in = peer.Output();
      for (size_t at = 0; at < in.size(); at += step) EXPECT_TRUE(session.Put(in.substr(at, step)));
      if (out.empty() && in.empty()) return;
    }
  }
  int32_t Send(const std::string& target, const std::string& body = "", bool stream = false) {
    env::HttpRequest request;
    request.method = body.empty() ? env::Method::kGet : env::Method::kPost;
    request.target = target;
    request.headers = {{"accept", "application/json"}, {"connection", "keep-alive"}};
    request.body = Bytes(body);
    return session.Send({.request = request,
                         .authority = "api:6443",
                         .path_prefix = "/cluster",
                         .token = "secret",
                         .stream = stream});
  }
  // One that the server has read whole.
  Http2Peer::Request Arrived() {
    const auto requests = peer.TakeRequests();
    EXPECT_EQ(requests.size(), 1U);
    return requests.empty() ? Http2Peer::Request{} : requests[0];
  }

  static constexpr size_t kBodyBytes = 1000;
  Http2Session session{{.header_bytes = 2000, .body_bytes = kBodyBytes}};
  Http2Peer peer{3};
  bool ended = false;  // The session says that the connection is at its end.
};

TEST_F(Http2SessionTest, ARequestArrivesWithWhatTheConnectionAdds) {
  for (const size_t step : {size_t{1}, size_t{7}, size_t{1} << 20}) {
    const int32_t stream = Send("/api/v1/pods?limit=500", "{}");
    Exchange(step);
    const Http2Peer::Request request = Arrived();
    EXPECT_EQ(request.stream, stream);
    EXPECT_EQ(request.body, "{}");
    EXPECT_THAT(request.headers,
                ElementsAre(Pair(":authority", "api:6443"), Pair(":method", "POST"),
                            Pair(":path", "/cluster/api/v1/pods?limit=500"),
                            Pair(":scheme", "https"), Pair("accept", "application/json"),
                            Pair("authorization", "Bearer secret"), Pair("content-length", "2")));
    peer.Head(stream, "201", {{"retry-after", "1"}});
    peer.Data(stream, "created", true);
    Exchange(step);
    EXPECT_THAT(session.TakeTouched(), ElementsAre(stream));
    const Http2Answer& answer = session.AnswerOf(stream);
    EXPECT_EQ(answer.end, End::kComplete);
    EXPECT_EQ(answer.head.status, 201);
    EXPECT_EQ(env::FindHeader(answer.head.headers, "retry-after"), "1");
    EXPECT_EQ(answer.body, "created");
    session.Forget(stream);
  }
}

TEST_F(Http2SessionTest, ALargeBodyPassesTheWindows) {
  const std::string body(5 << 20, 'x');
  const int32_t stream = Send("/", body, /*stream=*/true);
  Exchange();
  EXPECT_EQ(Arrived().body, body);
  const std::string answer(12 << 20, 'y');
  peer.Answer(stream, "200", answer);
  Exchange();
  EXPECT_EQ(session.AnswerOf(stream).body, answer);
  EXPECT_EQ(session.AnswerOf(stream).end, End::kComplete);
}

TEST_F(Http2SessionTest, WhatComesOfAStreamIsToldAsItComes) {
  Exchange();
  const int32_t watch = Send("/watch", "", /*stream=*/true);
  const int32_t other = Send("/other");
  Exchange();
  peer.Head(watch, "200");
  Exchange();
  EXPECT_THAT(session.TakeTouched(), ElementsAre(watch));
  EXPECT_TRUE(session.AnswerOf(watch).head_done);
  EXPECT_EQ(session.AnswerOf(watch).end, End::kOpen);
  peer.Data(watch, "one", false);
  peer.Answer(other, "200", "ok");
  Exchange();
  EXPECT_THAT(session.TakeTouched(), ::testing::UnorderedElementsAre(watch, other));
  EXPECT_EQ(std::exchange(session.AnswerOf(watch).body, {}), "one");
  peer.Data(watch, std::string(2 * kBodyBytes, 'w'), true);
  Exchange();
  EXPECT_THAT(session.TakeTouched(), ElementsAre(watch));
  EXPECT_EQ(session.AnswerOf(watch).body.size(), 2 * kBodyBytes) << "a stream has no limit";
  EXPECT_EQ(session.AnswerOf(watch).end, End::kComplete);
}

TEST_F(Http2SessionTest, InterimAnswersAndTrailersAreNotTheAnswer) {
  const int32_t stream = Send("/");
  Exchange();
  peer.Head(stream, "103", {{"link", "style"}}, /*interim=*/true);
  Exchange();
  EXPECT_THAT(session.TakeTouched(), IsEmpty());
  peer.Trailers(stream);
  peer.Answer(stream, "200", "ok");
  Exchange();
  const Http2Answer& answer = session.AnswerOf(stream);
  EXPECT_EQ(answer.head.status, 200);
  EXPECT_THAT(answer.head.headers, IsEmpty());
  EXPECT_EQ(answer.body, "ok");
  EXPECT_EQ(answer.end, End::kComplete);
}

TEST_F(Http2SessionTest, EndsAreToldApart) {
  Exchange();
  const int32_t refused = Send("/refused");
  const int32_t broken = Send("/broken");
  const int32_t large = Send("/large");
  Exchange();
  peer.Reset(refused, NGHTTP2_REFUSED_STREAM);
  peer.Reset(broken, NGHTTP2_INTERNAL_ERROR);
  peer.Answer(large, "200", std::string(kBodyBytes + 1, 'x'));
  Exchange();
  EXPECT_EQ(session.AnswerOf(refused).end, End::kRefused);
  EXPECT_EQ(session.AnswerOf(broken).end, End::kBroken);
  EXPECT_EQ(session.AnswerOf(broken).why,
            "stream error: stream ID 3; INTERNAL_ERROR; received from peer");
  EXPECT_EQ(session.AnswerOf(large).end, End::kTooLarge);
  EXPECT_EQ(session.AnswerOf(large).why, "the answer has more than 1000 bytes");
}

TEST_F(Http2SessionTest, WhoHasBegunToAnswerHasLookedAtTheRequest) {
  const int32_t stream = Send("/", "{}");
  Exchange();
  peer.Head(stream, "201");
  Exchange();
  peer.Reset(stream, NGHTTP2_REFUSED_STREAM);
  Exchange();
  EXPECT_EQ(session.AnswerOf(stream).end, End::kBroken);
}

TEST_F(Http2SessionTest, WhatIsNoAnswerIsResetHereAndTold) {
  const int32_t stream = Send("/");
  Exchange();
  peer.Head(stream, "200", {{"content-length", "3"}});
  peer.Data(stream, "four", true);
  Exchange();
  EXPECT_THAT(session.TakeTouched(), ElementsAre(stream));
  EXPECT_EQ(session.AnswerOf(stream).end, End::kBroken);
  EXPECT_EQ(session.AnswerOf(stream).why, "stream error: stream ID 1; PROTOCOL_ERROR");
}

TEST_F(Http2SessionTest, ABodyIsPartlySentWhileTheWindowsAreFull) {
  const int32_t stream = Send("/", std::string(100'000, 'x'));
  std::string out;
  ASSERT_TRUE(session.AppendOutput(out));
  EXPECT_TRUE(session.IsPartlySent(stream));
  ASSERT_TRUE(peer.Put(out));
  Exchange();
  EXPECT_FALSE(session.IsPartlySent(stream));
}

TEST_F(Http2SessionTest, HeadersWithoutBoundAreNotKept) {
  const int32_t stream = Send("/");
  Exchange();
  peer.Head(stream, "200", {{"x", std::string(3000, 'x')}});
  peer.Data(stream, "ok", true);
  Exchange();
  EXPECT_EQ(session.AnswerOf(stream).end, End::kBroken);
  EXPECT_THAT(session.AnswerOf(stream).why, HasSubstr("headers are too large"));
}

TEST_F(Http2SessionTest, RequestsOfWhichNobodyTakesTheHeadersAreBroken) {
  const int32_t stream = Send("/" + std::string(2 << 20, 'x'));
  Exchange();
  EXPECT_EQ(session.AnswerOf(stream).end, End::kBroken);
  EXPECT_THAT(peer.TakeBegun(), IsEmpty());
}

TEST_F(Http2SessionTest, RoomIsWhatTheServerSays) {
  EXPECT_EQ(session.room(), 1) << "until it has said";
  EXPECT_FALSE(session.settled());
  Exchange();
  EXPECT_TRUE(session.settled());
  EXPECT_EQ(session.room(), 3);
  const int32_t first = Send("/1");
  Send("/2");
  Send("/3");
  EXPECT_EQ(session.room(), 0);
  Exchange();
  peer.Answer(first, "200", "");
  Exchange();
  session.Forget(first);
  EXPECT_EQ(session.room(), 1);
}

TEST_F(Http2SessionTest, WhatTheServerWillNotLookAtIsRefusedWhenItGoesAway) {
  Exchange();
  const int32_t first = Send("/1");
  const int32_t second = Send("/2");
  Exchange();
  peer.GoAway(first);
  Exchange();
  EXPECT_TRUE(session.goes_away());
  EXPECT_EQ(session.room(), 0);
  EXPECT_EQ(session.AnswerOf(second).end, End::kRefused);
  EXPECT_EQ(session.AnswerOf(first).end, End::kOpen);
  peer.Answer(first, "200", "ok");
  Exchange();
  EXPECT_EQ(session.AnswerOf(first).end, End::kComplete);
}

TEST_F(Http2SessionTest, TheServerIsToldOfARequestThatIsForgotten) {
  const int32_t stream = Send("/watch", "", /*stream=*/true);
  Exchange();
  session.Forget(stream);
  Exchange();
  EXPECT_THAT(peer.resets(), ElementsAre(Pair(stream, uint32_t{NGHTTP2_CANCEL})));
  peer.Answer(stream, "200", "late");
  Exchange();
  EXPECT_THAT(session.TakeTouched(), IsEmpty());
}

TEST_F(Http2SessionTest, AnAnswerBeforeTheRequestIsReadEndsIt) {
  const int32_t stream = Send("/", std::string(1 << 20, 'x'));
  std::string out;
  ASSERT_TRUE(session.AppendOutput(out));
  ASSERT_TRUE(peer.Put(out.substr(0, 200)));
  ASSERT_THAT(peer.TakeBegun(), ElementsAre(stream));
  peer.Answer(stream, "413", "no");
  ASSERT_TRUE(session.Put(peer.Output()));
  EXPECT_EQ(session.AnswerOf(stream).end, End::kComplete);
  session.Forget(stream);
  ASSERT_TRUE(peer.Put(out.substr(200)));
  Exchange();
  EXPECT_THAT(peer.resets(), ElementsAre(Pair(stream, uint32_t{NGHTTP2_CANCEL})));
}

TEST_F(Http2SessionTest, APingIsAnswered) {
  Exchange();
  session.Ping();
  std::string out;
  ASSERT_TRUE(session.AppendOutput(out));
  ASSERT_TRUE(peer.Put(out));
  EXPECT_FALSE(peer.Output().empty());
}

TEST_F(Http2SessionTest, WhatIsNoHttp2EndsTheConnection) {
  Exchange();
  const Status put = session.Put("HTTP/1.1 400 Bad Request\r\n\r\nthis is no frame at all");
  std::string out;
  while (put && session.AppendOutput(out)) {
    if (std::exchange(out, {}).empty()) FAIL() << "it goes on";
  }
}

}  // namespace
}  // namespace berth::net
