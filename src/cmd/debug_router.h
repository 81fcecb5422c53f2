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
#include "env/port.h"
#include "net/bearer_token.h"

namespace berth::cmd {

// Stands between the HTTPS server and the actors: requests under /debug/ and for /metrics of an
// operator go to the scheduler, all others to the API server, which serves nothing there: by RBAC
// it answers 401, 403 or 404. /metrics is the scheduler's for whom that is a 404: who may read it
// and is no operator. An operator is who has the token, or a verified certificate of the group
// system:masters; where there is no API server, anyone else is answered 401 or 403 here, but for
// the paths that are open.
//
//   HTTPS server ─Post─> router ─> API server ─Take─> router ─> HTTPS server
//                          └─────> scheduler <──────────┘
//
// Any thread may call. Without an API server nothing needs to be taken.
class DebugRouter final : public env::InputSink, public env::OutputSink {
 public:
  struct Targets {
    env::InputSink* api = nullptr;    // Null: everything is the scheduler's.
    env::InputSink* debug = nullptr;  // Null: its paths are not served: 404.
    env::OutputSink* network = nullptr;
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
    std::vector<env::Input> api;
    std::vector<env::Input> debug;
    std::vector<env::Output> refused;
  };
  void Sort(env::Input input, Sorted& sorted);
  void SortRequest(env::RequestArrived request, Sorted& sorted) REQUIRES_LOCK(mutex_);
  void Remember(env::ExchangeId exchange) REQUIRES_LOCK(mutex_);
  // Whether it answers one that was asked about and is let in, which goes to `debug` then.
  bool TakeOver(const env::Output& output, std::vector<env::Input>& debug) REQUIRES_LOCK(mutex_);
  [[nodiscard]] bool IsOpen(std::string_view target) const;
  // What is wrong with the request: a status, or 0.
  [[nodiscard]] int Refusal(const env::RequestArrived& request) const;

  // Immutable after construction.
  const Targets targets_;
  const std::shared_ptr<net::BearerToken> token_;
  const std::vector<std::string> open_paths_;

  Mutex mutex_;
  // Of the scheduler's, as long as their client may still leave.
  std::unordered_set<uint64_t> exchanges_ GUARDED_BY(mutex_);
  // Requests for /metrics that the API server is asked about.
  std::unordered_map<uint64_t, env::RequestArrived> asked_ GUARDED_BY(mutex_);
};

}  // namespace berth::cmd
