// Goal: no request ends the server, hangs or is answered with what is nobody's; and what was
// answered is there after a crash. Method: requests made of the schema and of chance
// (any_requests.h), a hundred thousand, to servers whose journal is read again at the end.
#include <gtest/gtest.h>

#include <cstdio>
#include <map>
#include <string>

#include "api/kinds.h"
#include "apiserver/any_requests.h"
#include "apiserver/server_fixture.h"
#include "base/prng.h"
#include "codec/json.h"

namespace berth::apiserver {
namespace {

constexpr uint64_t kSeeds = 200;
constexpr int kRequestsOfSeed = 500;

// All that is stored, by kind.
std::string AllOf(ServerFixture& server) {
  std::string all;
  for (const api::Kind& kind : api::Kinds()) {
    if (!kind.stored) continue;
    const env::HttpResponse list =
        server.Call(env::Method::kGet, fmt::format("{}/{}", kind.base_path(), kind.plural));
    all += list.body.view();
    all += "\n";
  }
  return all;
}

std::string_view Fault(const env::HttpResponse& answer) {
  if (answer.status < 200 || answer.status > 599) return "no status of HTTP";
  const auto type = env::FindHeader(answer.headers, "content-type").value_or("");
  // A watch begins with nothing.
  const bool whole = type.starts_with("application/json") && !answer.body.view().empty();
  if (whole && !codec::ParseJson(answer.body.view())) return "broken JSON";
  if (answer.status >= 400 && answer.body.view().empty()) return "a refusal without words";
  return "";
}

TEST(AnyRequests, AreAnsweredAndLeaveNothingBroken) {
  std::map<int, int> statuses;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    Prng prng(seed);
    AnyRequests requests([&](uint32_t count) { return static_cast<uint32_t>(prng.Below(count)); });
    ServerFixture server({.seed = seed, .bootstrap_roles = true, .own_service = true});
    for (int i = 0; i < kRequestsOfSeed; ++i) {
      const AnyRequest request = requests.Next();
      const env::ExchangeId exchange =
          server.Send(request.method, request.target, request.body, request.headers);
      server.Settle();
      // A webhook that does not answer, if it came to one.
      if (!server.Answered(exchange)) server.Advance(Duration::Minutes(1));
      ASSERT_TRUE(server.Answered(exchange)) << "seed " << seed << ": " << request.text();
      const env::HttpResponse answer = server.Take(exchange);
      ++statuses[answer.status];
      if (answer.status == 201) requests.HasMade();
      ASSERT_EQ(Fault(answer), "") << "seed " << seed << ": " << request.text() << "\n"
                                   << answer.status << " " << answer.body.view();
      if (i % 50 == 0) server.Advance(Duration::Seconds(1));
    }
    server.Settle();
    ServerFixture again({.seed = seed}, server.journal(), server.now());
    EXPECT_EQ(AllOf(again), AllOf(server)) << "seed " << seed;
  }
  std::string counts;
  for (const auto& [status, count] : statuses) counts += fmt::format("{}: {}  ", status, count);
  std::printf("%s\n", counts.c_str());
  EXPECT_GT(statuses[201] + statuses[200], 0);
}

}  // namespace
}  // namespace berth::apiserver
