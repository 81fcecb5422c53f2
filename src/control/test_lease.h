#pragma once

#include <fmt/format.h>

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/json.h"
#include "base/time.h"
#include "client/identity.h"
#include "codec/json.h"
#include "control/leader_election.h"
#include "env/actor.h"

// Test code: replicas that elect a leader, and a server with one Lease, by hand.
namespace berth::control {

inline LeaderElectionOptions ElectionOf(std::string identity, uint64_t seed = 1) {
  LeaderElectionOptions options;
  options.identity = std::move(identity);
  options.client.seed = seed;
  return options;
}

// The Lease of a server, with its version as the fence of writes.
struct LeaseServer {
  std::string document;  // Empty: there is none.
  int version = 10;
  int uid = 0;

  void Put(std::string_view spec) {
    ++version;
    if (document.empty()) ++uid;
    document = fmt::format(
        R"({{"kind":"Lease","apiVersion":"coordination.k8s.io/v1","metadata":{{"name":"kube-scheduler",)"
        R"("namespace":"kube-system","uid":"u{}","resourceVersion":"{}","labels":{{"of":"others"}}}},"spec":{}}})",
        uid, version, spec);
  }
  [[nodiscard]] LeaseRecord record() const { return *ReadLeaseRecord(document); }
  env::HttpResponse Answer(const env::HttpRequest& request) {
    const auto with = [](int status, std::string body) {
      return env::HttpResponse{.status = status, .headers = {}, .body = Bytes(std::move(body))};
    };
    const std::string gone = R"({"kind":"Status","code":404,"message":"not found"})";
    if (request.method == env::Method::kGet)
      return document.empty() ? with(404, gone) : with(200, document);
    const bool creates = request.method == env::Method::kPost;
    if (!creates && document.empty()) return with(404, gone);
    if (creates && !document.empty()) return with(409, R"({"kind":"Status","code":409})");
    const auto sent = *codec::ParseJson(request.body.view());
    if (!creates) {
      const auto identity = client::ReadIdentity(request.body.view());
      if (identity->resource_version != std::to_string(version))
        return with(409, R"({"kind":"Status","code":409})");
    }
    Put(codec::PrintJson(sent.at("spec")));
    return with(creates ? 201 : 200, document);
  }
};

// One replica.
struct LeaseReplica {
  explicit LeaseReplica(LeaderElectionOptions options) : election(std::move(options)) {
    election.Stand();
  }
  void Step(const env::Input& input) {
    env::Outbox out;
    election.Handle(now, input, out);
    for (env::Output& output : out) {
      if (auto* send = std::get_if<env::SendRequest>(&output)) sent = std::move(*send);
      if (auto* log = std::get_if<env::Log>(&output)) logs.push_back(log->text);
    }
  }
  void Tick() { Step(env::Tick{}); }
  env::SendRequest Take() { return *std::exchange(sent, std::nullopt); }
  void AnswerFrom(LeaseServer& server) {
    const env::SendRequest request = Take();
    Step(env::Response{.call = request.call, .response = server.Answer(request.request)});
  }
  void Answer(int status, std::string body = "{}") {
    Step(env::Response{
        .call = Take().call,
        .response = {.status = status, .headers = {}, .body = Bytes(std::move(body))}});
  }
  // Its clock goes on by so much, and the server answers at once what it asks.
  void Run(LeaseServer& server, Duration length) {
    const Instant end = now + length;
    for (;;) {
      while (sent) AnswerFrom(server);
      if (election.wake_at() > end) break;
      now = std::max(now, election.wake_at());
      Tick();
    }
    now = end;
  }

  Instant now = Instant::FromSeconds(1'800'000'000);
  LeaderElection election;
  std::optional<env::SendRequest> sent;
  std::vector<std::string> logs;
};

}  // namespace berth::control
