// Goal: who may read what is decided as kube-scheduler decides it: 401, 403 or let in, by what the
// API server says, which is asked once in a while and whose absence lets nobody in and stops
// nothing. Method: the test plays an API server with a table of tokens and rights, by hand.
#include "control/access_gate.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "api/json.h"
#include "codec/json.h"

namespace berth::control {
namespace {

constexpr std::string_view kPrometheus = "system:serviceaccount:monitoring:prometheus";

// A gate, its API server and its clients.
struct Rig {
  explicit Rig(const AccessGateOptions& options = {}) : gate(options) {}

  void Step(env::Input input) {
    env::Outbox out;
    gate.Step(now, std::move(input), out);
    for (env::Output& output : out) {
      if (auto* send = std::get_if<env::SendRequest>(&output)) sent.push_back(std::move(*send));
      if (auto* log = std::get_if<env::Log>(&output)) logs.push_back(log->text);
      if (auto* respond = std::get_if<env::Respond>(&output))
        answers[respond->exchange.value] = std::move(respond->response);
    }
  }
  void Ask(uint64_t exchange, std::string target, std::vector<env::Header> headers = {},
           env::Peer peer = {}, env::Method method = env::Method::kGet) {
    Step(env::RequestArrived{.exchange = {exchange},
                             .peer = std::move(peer),
                             .request = {.method = method,
                                         .target = std::move(target),
                                         .headers = std::move(headers),
                                         .body = {}}});
  }
  void AskAs(uint64_t exchange, const std::string& token, std::string target = "/metrics") {
    Ask(exchange, std::move(target), {{"authorization", "Bearer " + token}});
  }
  void Answer(const env::SendRequest& request, int status, std::string body) {
    Step(env::Response{
        .call = request.call,
        .response = {.status = status, .headers = {}, .body = Bytes(std::move(body))}});
  }
  env::SendRequest Take() {
    env::SendRequest request = std::move(sent.front());
    sent.pop_front();
    return request;
  }
  // The API server answers what it is asked.
  void Serve() {
    while (!sent.empty()) {
      const env::SendRequest request = Take();
      asked.emplace_back(request.request.target);
      const api::Json spec = codec::ParseJson(request.request.body.view())->at("spec");
      if (request.request.target == "/apis/authentication.k8s.io/v1/tokenreviews") {
        EXPECT_LT(request.call.value, kAuthorizationFirstCall);
        const auto user = users.find(std::string(spec.at("token").as_string()));
        Answer(
            request, 201,
            user == users.end()
                ? R"({"status":{"authenticated":false,"error":"unknown","user":{}}})"
                : fmt::format(R"({{"status":{{"authenticated":true,"user":{}}}}})", user->second));
      } else {
        EXPECT_EQ(request.request.target, "/apis/authorization.k8s.io/v1/subjectaccessreviews");
        EXPECT_GE(request.call.value, kAuthorizationFirstCall);
        reviewed = spec;
        const api::JsonObject& what = spec.at("nonResourceAttributes").as_object();
        const bool may = rights.contains(fmt::format(
            "{} {} {}", std::string(spec.at("user").as_string()),
            std::string(what.at("verb").as_string()), std::string(what.at("path").as_string())));
        Answer(request, 201, fmt::format(R"({{"status":{{"allowed":{}{}}}}})", may, reason));
      }
    }
  }
  // Time passes, and what the gate sends is answered by nobody, or as lost.
  void Pass(Duration duration) {
    const Instant end = now + duration;
    for (;;) {
      while (lost && !sent.empty()) {
        ++losses;
        Step(env::CallFailed{.call = Take().call, .failure = *lost});
      }
      if (gate.wake_at() > end) break;
      now = std::max(now, gate.wake_at());
      Step(env::Tick{});
    }
    now = end;
  }
  int StatusOf(uint64_t exchange) {
    return answers.contains(exchange) ? answers.at(exchange).status : 0;
  }
  std::string BodyOf(uint64_t exchange) { return std::string(answers.at(exchange).body.view()); }

  Instant now = Instant::FromSeconds(1'800'000'000);
  AccessGate gate;
  std::deque<env::SendRequest> sent;
  std::vector<std::string> asked;  // Targets.
  std::vector<std::string> logs;
  std::map<uint64_t, env::HttpResponse> answers;
  api::Json reviewed;
  std::optional<env::CallFailure> lost;
  int losses = 0;
  std::map<std::string, std::string> users = {
      {"good", fmt::format(R"({{"username":"{}","uid":"u1","groups":["system:serviceaccounts"],)"
                           R"("extra":{{"pod":["p"]}}}})",
                           kPrometheus)},
      {"dev", R"({"username":"dev","groups":["developers","system:authenticated"]})"},
      {"root", R"({"username":"root","groups":["system:masters"]})"}};
  std::set<std::string> rights = {fmt::format("{} get /metrics", kPrometheus)};
  std::string reason;
};

TEST(AccessGate, LetsInWhomTheApiServerKnowsAndAllows) {
  Rig rig;
  rig.AskAs(1, "good", "/metrics?x=y");
  EXPECT_EQ(rig.StatusOf(1), 0) << "it waits for the API server";
  rig.Serve();
  EXPECT_EQ(rig.StatusOf(1), kLetIn);
  EXPECT_EQ(codec::PrintJson(rig.reviewed.at("groups")),
            R"(["system:serviceaccounts","system:authenticated"])");
  EXPECT_EQ(codec::PrintJson(rig.reviewed.at("extra")), R"({"pod":["p"]})");
  EXPECT_EQ(rig.reviewed.at("uid").as_string(), "u1");
  rig.AskAs(2, "dev");
  rig.Serve();
  EXPECT_EQ(rig.StatusOf(2), 403);
  EXPECT_EQ(rig.BodyOf(2),
            R"({"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":)"
            R"("forbidden: User \"dev\" cannot get path \"/metrics\"","reason":"Forbidden",)"
            R"("details":{},"code":403})");
  rig.AskAs(3, "bad");
  rig.Serve();
  EXPECT_EQ(rig.StatusOf(3), 401);
  EXPECT_EQ(rig.BodyOf(3), R"({"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure",)"
                           R"("message":"Unauthorized","reason":"Unauthorized","code":401})");
  rig.AskAs(4, "good", "/debug/why");
  rig.Serve();
  EXPECT_EQ(rig.StatusOf(4), 403) << "a right is of one path";
  rig.Ask(5, "/metrics", {{"authorization", "bEARER  good"}}, {}, env::Method::kDelete);
  rig.Serve();
  EXPECT_EQ(rig.StatusOf(5), 403) << "and of one verb";
  EXPECT_EQ(rig.gate.waiting(), 0U);
}

TEST(AccessGate, WhoShowsNothingIsAnonymousAndWhoShowsACertificateIsThat) {
  Rig rig;
  rig.Ask(1, "/metrics");
  rig.Serve();
  EXPECT_EQ(rig.StatusOf(1), 403);
  EXPECT_NE(rig.BodyOf(1).find(R"(User \"system:anonymous\" cannot get)"), std::string::npos);
  rig.rights.insert("system:anonymous get /open");
  rig.Ask(2, "/open", {{"authorization", "Basic Zm9v"}});
  rig.Serve();
  EXPECT_EQ(rig.StatusOf(2), kLetIn);
  rig.rights.insert("carl get /metrics");
  rig.Ask(3, "/metrics", {{"authorization", "Bearer bad"}}, {.user = "carl", .groups = {"staff"}});
  rig.Serve();
  EXPECT_EQ(rig.StatusOf(3), kLetIn) << "a certificate goes before a token";
  EXPECT_EQ(codec::PrintJson(rig.reviewed.at("groups")), R"(["staff","system:authenticated"])");
  rig.asked.clear();
  rig.Ask(4, "/debug/why", {}, {.user = "ann", .groups = {"system:masters"}});
  EXPECT_EQ(rig.StatusOf(4), kLetIn);
  rig.AskAs(5, "root", "/debug/why");
  rig.Serve();
  EXPECT_EQ(rig.StatusOf(5), kLetIn);
  EXPECT_EQ(rig.asked, std::vector<std::string>{"/apis/authentication.k8s.io/v1/tokenreviews"})
      << "of masters no right is asked for";
}

TEST(AccessGate, WhatItWasToldHoldsTenSecondsAndNoLonger) {
  Rig rig;
  rig.AskAs(1, "good");
  rig.AskAs(2, "bad");
  rig.AskAs(3, "dev");
  rig.Serve();
  EXPECT_EQ(rig.asked.size(), 5U);
  rig.users.clear();
  rig.rights.clear();
  rig.Pass(Duration::Milliseconds(9'999));
  rig.AskAs(4, "good");
  rig.AskAs(5, "bad");
  rig.AskAs(6, "dev");
  EXPECT_EQ(rig.StatusOf(4), kLetIn);
  EXPECT_EQ(rig.StatusOf(5), 401);
  EXPECT_EQ(rig.StatusOf(6), 403);
  EXPECT_TRUE(rig.sent.empty());
  rig.Pass(Duration::Milliseconds(1));
  rig.AskAs(7, "good");
  EXPECT_EQ(rig.sent.size(), 1U);
  rig.Serve();
  EXPECT_EQ(rig.StatusOf(7), 401) << "a token that was taken back";
  Rig without({.token_holds = Duration{}, .allowed_holds = Duration{}});
  without.AskAs(1, "good");
  without.Serve();
  without.AskAs(2, "good");
  without.Serve();
  EXPECT_EQ(without.asked.size(), 4U);
}

TEST(AccessGate, ManyOfOneTokenAreOneReview) {
  Rig rig;
  for (uint64_t i = 1; i <= 20; ++i) rig.AskAs(i, "good");
  EXPECT_EQ(rig.sent.size(), 1U);
  rig.Step(env::ExchangeAbandoned{{7}});
  rig.Serve();
  EXPECT_EQ(rig.asked.size(), 2U);
  EXPECT_EQ(rig.answers.size(), 19U);
  EXPECT_FALSE(rig.answers.contains(7)) << "it has gone";
  for (const auto& [exchange, answer] : rig.answers) EXPECT_EQ(answer.status, kLetIn);
}

// A restart of the API server costs one of its clients a repetition, not an alarm.
TEST(AccessGate, AReviewThatWasLostIsPutAgain) {
  Rig rig;
  rig.AskAs(1, "good");
  rig.Step(env::CallFailed{.call = rig.Take().call, .failure = env::CallFailure::kLost});
  EXPECT_EQ(rig.StatusOf(1), 0);
  rig.Pass(Duration::Milliseconds(500));
  rig.Answer(rig.Take(), 503, "");
  rig.Pass(Duration::Milliseconds(750));
  rig.Serve();
  EXPECT_EQ(rig.StatusOf(1), kLetIn);
  EXPECT_TRUE(rig.logs.empty());
}

TEST(AccessGate, WhileTheApiServerIsAwayNobodyIsLetInAndNothingHangs) {
  for (const auto failure :
       {env::CallFailure::kNotSent, env::CallFailure::kLost, env::CallFailure::kTimeout}) {
    Rig rig;
    rig.lost = failure;
    rig.AskAs(1, "good");
    rig.Ask(2, "/metrics");
    rig.Pass(Duration::Seconds(11));
    EXPECT_EQ(rig.StatusOf(1), 401);
    EXPECT_EQ(rig.StatusOf(2), 500);
    EXPECT_EQ(rig.BodyOf(2), fmt::format("Internal Server Error: \"/metrics\": {}\n",
                                         client::TextOf(failure, "")));
    EXPECT_LE(rig.losses, 10) << "five attempts each";
    EXPECT_EQ(rig.gate.waiting(), 0U);
    EXPECT_EQ(rig.gate.wake_at(), Instant::Never());
    EXPECT_EQ(rig.logs.size(), 2U);
    // That there was no answer is not kept.
    rig.lost.reset();
    rig.sent.clear();
    rig.Pass(Duration::Seconds(1));
    rig.AskAs(3, "good");
    rig.Serve();
    EXPECT_EQ(rig.StatusOf(3), kLetIn);
  }
  Rig silent;
  silent.AskAs(1, "good");
  silent.Pass(Duration::Milliseconds(9'999));
  EXPECT_EQ(silent.StatusOf(1), 0);
  silent.Pass(Duration::Milliseconds(1));
  EXPECT_EQ(silent.StatusOf(1), 401);
}

TEST(AccessGate, WhoLacksTheRightToAskIsToldInTheLogOnce) {
  Rig rig;
  for (uint64_t i = 1; i <= 3; ++i) {
    rig.AskAs(i, "good");
    rig.Answer(rig.Take(), 403,
               R"({"kind":"Status","code":403,"message":"tokenreviews is forbidden"})");
    EXPECT_EQ(rig.StatusOf(i), 401);
  }
  EXPECT_EQ(rig.logs,
            std::vector<std::string>{"TokenReview can't be had: tokenreviews is forbidden"});
}

TEST(AccessGate, AnswersThatAreNoneLetNobodyIn) {
  for (const std::string_view body :
       {"", "[]", "{", R"({"status":[]})", R"({"status":{"authenticated":"true"}})",
        R"({"status":{"authenticated":true}})", R"({"status":{"authenticated":true,"user":{}}})",
        R"({"status":{"authenticated":true,"user":{"username":"a","groups":[1]}}})",
        R"({"status":{"authenticated":true,"user":{"username":"a","extra":[]}}})"}) {
    Rig rig;
    rig.AskAs(1, "good");
    rig.Answer(rig.Take(), 201, std::string(body));
    EXPECT_EQ(rig.StatusOf(1), 401) << body;
  }
  for (const auto& [body, status] : std::vector<std::pair<std::string_view, int>>{
           {"{}", 403},
           {R"({"status":{}})", 403},
           {R"({"status":{"allowed":false,"denied":true,"reason":"no"}})", 403},
           {R"({"status":{"allowed":true,"denied":true}})", 500},
           {R"({"status":{"allowed":"true"}})", 500},
           {"x", 500}}) {
    Rig rig;
    rig.Ask(1, "/metrics");
    rig.Answer(rig.Take(), 201, std::string(body));
    EXPECT_EQ(rig.StatusOf(1), status) << body;
  }
  const std::string large =
      fmt::format(R"({{"status":{{"authenticated":true,"user":{{"username":"{}"}}}}}})",
                  std::string(70'000, 'a'));
  EXPECT_EQ(ReadTokenReview(large).error().message,
            "status has 70000 bytes, and 65536 are read at most");
}

TEST(AccessGate, WhatIsAskedAtOnceIsBounded) {
  Rig rig;
  for (uint64_t i = 1; i <= 1'000; ++i) rig.AskAs(i, fmt::format("guess-{}", i));
  EXPECT_EQ(rig.gate.waiting(), AccessGate::kUnknownWaitingMax);
  EXPECT_EQ(rig.StatusOf(1'000), 429);
  EXPECT_EQ(env::FindHeader(rig.answers.at(1'000).headers, "retry-after"), "1");
  rig.Serve();
  EXPECT_EQ(rig.gate.waiting(), 0U);
  // Also those that wait for one review.
  Rig of_one;
  for (uint64_t i = 1; i <= 1'000; ++i) of_one.AskAs(i, "good");
  EXPECT_EQ(of_one.gate.waiting(), AccessGate::kUnknownWaitingMax);
  EXPECT_EQ(of_one.StatusOf(1'000), 429);
  of_one.Serve();
  EXPECT_EQ(of_one.StatusOf(1), kLetIn);
  EXPECT_EQ(of_one.gate.waiting(), 0U);
  // Those that left don't free what is under way for them.
  Rig leaving;
  for (uint64_t i = 1; i <= 1'000; ++i) {
    leaving.AskAs(i, fmt::format("guess-{}", i));
    leaving.Step(env::ExchangeAbandoned{{i}});
  }
  EXPECT_LE(leaving.sent.size(), Reviews::kUnderWayMax);
  EXPECT_EQ(leaving.StatusOf(1'000), 429);
  rig.AskAs(2'000, std::string(20'000, 't'));
  EXPECT_EQ(rig.StatusOf(2'000), 401);
  rig.Ask(2'001, "/" + std::string(3'000, 'p'));
  EXPECT_EQ(rig.StatusOf(2'001), 414);
  rig.Ask(2'002, "/metrics", {}, {}, env::Method::kOther);
  EXPECT_EQ(rig.StatusOf(2'002), 405);
  rig.Ask(2'003, "/metrics", {{"authorization", "Bearer root"}, {"impersonate-user", "dev"}});
  EXPECT_EQ(rig.StatusOf(2'003), 403);
  EXPECT_TRUE(rig.sent.empty());
}

// Floods of who shows nothing, and of guessed tokens, while the API server hangs.
TEST(AccessGate, WhoIsKnownHasPlacesThatFloodsDoNotTake) {
  Rig rig;
  rig.AskAs(1, "good");
  rig.Serve();
  ASSERT_EQ(rig.StatusOf(1), kLetIn);
  // Each asks for another path, and half of them leave: their reviews go on.
  for (uint64_t i = 1'000; i < 2'000; ++i) {
    rig.Ask(i, fmt::format("/{}", i));
    if (i % 2 == 0) rig.Step(env::ExchangeAbandoned{{i}});
  }
  EXPECT_LE(rig.gate.waiting(), AccessGate::kAnonymousWaitingMax);
  EXPECT_LE(rig.sent.size(), AccessGate::kAnonymousWaitingMax);
  EXPECT_EQ(rig.StatusOf(1'999), 429);
  // What is known is answered, a token is looked up.
  rig.AskAs(2, "good");
  EXPECT_EQ(rig.StatusOf(2), kLetIn);
  rig.AskAs(3, "dev");
  EXPECT_EQ(rig.StatusOf(3), 0);
  for (uint64_t i = 2'000; i < 3'000; ++i) rig.AskAs(i, fmt::format("guess-{}", i));
  EXPECT_EQ(rig.StatusOf(2'999), 429);
  rig.AskAs(4, "good");
  EXPECT_EQ(rig.StatusOf(4), kLetIn);
  // Of a known token another right is asked for, and a certificate's.
  rig.AskAs(5, "good", "/configz");
  EXPECT_EQ(rig.StatusOf(5), 0);
  rig.Ask(6, "/metrics", {}, {.user = "dev", .groups = {}});
  EXPECT_EQ(rig.StatusOf(6), 0);
  rig.Serve();
  EXPECT_EQ(rig.StatusOf(3), 403);
  EXPECT_EQ(rig.StatusOf(5), 403);
  EXPECT_EQ(rig.StatusOf(6), 403);
  EXPECT_EQ(rig.gate.waiting(), 0U);
}

// Nobody asks any more: a token is not held longer than what is known of it.
TEST(Reviews, WhatHasEndedIsForgotten) {
  Reviews reviews({.kind = Reviews::Kind::kToken});
  Instant now = Instant::FromSeconds(1'800'000'000);
  env::Outbox out;
  std::vector<Reviews::Ended> ended;
  ASSERT_TRUE(reviews.Put(now, "secret", "{}", out));
  reviews.Handle(now,
                 env::Response{.call = std::get<env::SendRequest>(out.at(0)).call,
                               .response = {.status = 201, .body = Bytes("{}")}},
                 out, ended);
  EXPECT_EQ(reviews.kept(), 1U);
  EXPECT_EQ(reviews.wake_at(), now + Duration::Seconds(10));
  now = reviews.wake_at();
  reviews.Handle(now, env::Tick{}, out, ended);
  EXPECT_EQ(reviews.kept(), 0U);
  EXPECT_EQ(reviews.wake_at(), Instant::Never());
}

TEST(Reviews, OfManyAnswersThoseThatEndLastAreKept) {
  Reviews reviews({.kind = Reviews::Kind::kAccess});
  const Instant begin = Instant::FromSeconds(1'800'000'000);
  for (size_t i = 0; i < 2 * Reviews::kKeptMax; ++i) {
    const Instant now = begin + Duration::Milliseconds(static_cast<int64_t>(i));
    env::Outbox out;
    ASSERT_TRUE(reviews.Put(now, fmt::format("{}", i), "{}", out));
    std::vector<Reviews::Ended> ended;
    reviews.Handle(now,
                   env::Response{.call = std::get<env::SendRequest>(out.at(0)).call,
                                 .response = {.status = 201, .body = Bytes("{}")}},
                   out, ended);
    ASSERT_EQ(ended.size(), 1U);
  }
  EXPECT_EQ(reviews.kept(), Reviews::kKeptMax);
  EXPECT_EQ(reviews.Known(begin, "0"), nullptr);
  EXPECT_NE(reviews.Known(begin, fmt::format("{}", 2 * Reviews::kKeptMax - 1)), nullptr);
}

}  // namespace
}  // namespace berth::control
