// Goal: a right that is missing is told of by verb and resource, once in a while and not for each
// object, and every refusal is counted. Method: ended calls, one by one.
#include "control/refused_writes.h"

#include <gtest/gtest.h>

namespace berth::control {
namespace {

constexpr const char* kForbidden =
    R"({"kind":"Status","code":403,"message":"pods \"p\" is forbidden: User \"x\" cannot patch resource \"pods/status\""})";

client::CallDone Done(env::Method method, std::string target, int status,
                      client::Outcome outcome = client::Outcome::kRefused) {
  return {.call = {1},
          .outcome = outcome,
          .response = {.status = status, .headers = {}, .body = Bytes(std::string(kForbidden))},
          .failure = {},
          .why = {},
          .method = method,
          .target = std::move(target)};
}

TEST(RefusedWrites, AreToldOncePerKindAndCounted) {
  RefusedWrites writes;
  const client::CallDone status =
      Done(env::Method::kPatch, "/api/v1/namespaces/ns/pods/p/status", 403);
  const client::CallDone event =
      Done(env::Method::kPost, "/apis/events.k8s.io/v1/namespaces/ns/events", 403);
  Instant now = Instant::FromSeconds(1'000);
  EXPECT_EQ(writes.Note(now, status),
            "patch pods/status: refused (403): pods \"p\" is forbidden: User \"x\" cannot patch "
            "resource \"pods/status\"");
  EXPECT_EQ(writes.Note(now, status), std::nullopt);
  EXPECT_TRUE(writes.Note(now, event)->starts_with("create events: refused (403): "));
  now = now + RefusedWrites::kTellEvery;
  EXPECT_NE(writes.Note(now, status), std::nullopt);
  EXPECT_EQ(writes.Note(now, status), std::nullopt);
  ASSERT_EQ(writes.counts().size(), 2U);
  EXPECT_EQ(writes.counts().at({"patch", "pods/status"}).refused, 4U);
  EXPECT_EQ(writes.counts().at({"create", "events"}).refused, 1U);
}

TEST(RefusedWrites, WhatNeedsNobodysHelpIsNotTold) {
  RefusedWrites writes;
  const Instant now = Instant::FromSeconds(1'000);
  const std::string pod = "/api/v1/namespaces/ns/pods/p";
  EXPECT_EQ(writes.Note(now, Done(env::Method::kGet, pod, 403)), std::nullopt);
  EXPECT_EQ(writes.Note(now, Done(env::Method::kDelete, pod, 429)), std::nullopt);
  EXPECT_EQ(writes.Note(now, Done(env::Method::kDelete, pod, 0)), std::nullopt);
  EXPECT_EQ(writes.Note(now, Done(env::Method::kDelete, pod, 409, client::Outcome::kConflict)),
            std::nullopt);
  EXPECT_EQ(writes.Note(now, Done(env::Method::kDelete, pod, 404, client::Outcome::kGone)),
            std::nullopt);
  EXPECT_TRUE(writes.counts().empty());
  // That a connection is lost is told of the server, not of each kind.
  client::CallDone lost = Done(env::Method::kDelete, pod, 0, client::Outcome::kUnknown);
  lost.failure = env::CallFailure::kLost;
  EXPECT_EQ(writes.Note(now, lost), std::nullopt);
  EXPECT_EQ(writes.counts().at({"delete", "pods"}).unknown, 1U);
}

// A webhook that is down fails each write so.
TEST(RefusedWrites, WhatTheServerFailsToDoIsTold) {
  RefusedWrites writes;
  const client::CallDone binding = Done(env::Method::kPost, "/api/v1/namespaces/ns/pods/p/binding",
                                        500, client::Outcome::kUnknown);
  EXPECT_TRUE(writes.Note(Instant::FromSeconds(1'000), binding)
                  ->starts_with("create pods/binding: failed (500): "));
  EXPECT_EQ(writes.Note(Instant::FromSeconds(1'001), binding), std::nullopt);
  EXPECT_EQ(writes.counts().at({"create", "pods/binding"}).unknown, 2U);
  client::CallDone status = Done(env::Method::kPatch, "/api/v1/namespaces/ns/pods/p/status", 0,
                                 client::Outcome::kUnknown);
  status.failure = env::CallFailure::kTimeout;
  EXPECT_EQ(writes.Note(Instant::FromSeconds(1'000), status),
            "patch pods/status: failed (0): no answer in time");
  EXPECT_EQ(writes.Note(Instant::FromSeconds(1'001), status), std::nullopt);
}

}  // namespace
}  // namespace berth::control
