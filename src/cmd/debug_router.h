#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "cmd/decision_times.h"
#include "env/port.h"
#include "net/bearer_token.h"

namespace berth::cmd {

// Stands between the HTTPS server and the actors: requests under /debug/, for /metrics and /configz
// of an operator go to the scheduler. An operator is who has the token, or a verified certificate
// of the group system:masters.
//
// Beside an API server all others are that one's, which serves nothing there: by RBAC it answers
// 401, 403 or 404. /metrics and /configz are the scheduler's for whom that is a 404: who may read
// them and is no operator. Without one, everything is the scheduler's, some paths are open to
// everybody, and of all else a gate (control/access_gate.h) decides; it answers kLetIn of what goes
// on to the scheduler. Where there is no gate either, anyone else is answered 401 or 403 here.
//
// To what the scheduler says at /metrics it adds what no actor can know: what the process takes
// (process_metrics.h), and how long decisions do (decision_times.h).
//
//   HTTPS server ─Post─> router ─> API server or gate ─Take─> router ─> HTTPS server
//                          └─────> scheduler <──────────────────┘
//
// Any thread may call.
class DebugRouter final : public env::InputSink, public env::OutputSink {
 public:
  struct Targets {
    env::InputSink* api = nullptr;    // Null: everything is the scheduler's.
    env::InputSink* gate = nullptr;   // Without an API server only.
    env::InputSink* debug = nullptr;  // Null: its paths are not served: 404.
    env::OutputSink* network = nullptr;
    const DecisionTimes* times = nullptr;  // Null: /metrics tells none.
  };

  // `token` may be null: certificates alone count then.
  // `open_paths`: of a router without an API server; one that ends in * stands for all that begin
  // so.
  DebugRouter(Targets targets, std::shared_ptr<net::BearerToken> token,
              std::vector<std::string> open_paths = {})
      : targets_(targets), token_(std::move(token)), open_paths_(std::move(open_paths)) {}

  void Post(std::vector<env::Input> batch) override;
  void Take(std::vector<env::Output> batch) override;

 private:
  struct Sorted {
    std::vector<env::Input> api;  // Or the gate.
    std::vector<env::Input> debug;
    std::vector<env::Output> refused;
  };
  void Sort(env::Input input, Sorted& sorted);
  void SortRequest(env::RequestArrived request, Sorted& sorted) REQUIRES_LOCK(mutex_);
  void Ask(env::RequestArrived request, Sorted& sorted) REQUIRES_LOCK(mutex_);
  void Remember(env::ExchangeId exchange) REQUIRES_LOCK(mutex_);
  // Whether it answers one that was asked about and is let in, which goes to `debug` then.
  bool TakeOver(const env::Output& output, std::vector<env::Input>& debug) REQUIRES_LOCK(mutex_);
  [[nodiscard]] bool IsOpen(std::string_view target) const;
  // Behind the scheduler's metrics.
  void AddOwnMetrics(env::Output& output) const;
  // What is wrong with the request: a status, or 0.
  [[nodiscard]] int Refusal(const env::RequestArrived& request) const;

  // Immutable after construction.
  const Targets targets_;
  const std::shared_ptr<net::BearerToken> token_;
  const std::vector<std::string> open_paths_;

  Mutex mutex_;
  // Of the scheduler's, as long as their client may still leave.
  std::unordered_set<uint64_t> exchanges_ GUARDED_BY(mutex_);
  // Requests that the API server or the gate is asked about.
  std::unordered_map<uint64_t, env::RequestArrived> asked_ GUARDED_BY(mutex_);
};

}  // namespace berth::cmd
