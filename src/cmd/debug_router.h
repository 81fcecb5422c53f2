#pragma once

#include <memory>
#include <unordered_set>
#include <utility>
#include <vector>

#include "env/port.h"
#include "net/bearer_token.h"

namespace berth::cmd {

// Stands between the HTTPS server and the actors: requests under /debug/ and for /metrics of an
// operator go to the scheduler, all others to the API server, which serves nothing there: by RBAC
// it answers 401, 403 or 404. An operator is who has the token, or a verified certificate of the
// group system:masters; where there is no API server, anyone else is answered 401 or 403 here.
// Called by the HTTPS server's thread alone.
class DebugRouter final : public env::InputSink {
 public:
  struct Targets {
    env::InputSink* api = nullptr;    // Null: everything is the scheduler's.
    env::InputSink* debug = nullptr;  // Null: its paths are not served: 404.
    env::OutputSink* network = nullptr;
  };

  // `token` may be null: certificates alone count then.
  DebugRouter(Targets targets, std::shared_ptr<net::BearerToken> token)
      : targets_(targets), token_(std::move(token)) {}

  void Post(std::vector<env::Input> batch) override;

 private:
  // What is wrong with the request: a status, or 0.
  [[nodiscard]] int Refusal(const env::RequestArrived& request) const;

  // Immutable after construction.
  const Targets targets_;
  const std::shared_ptr<net::BearerToken> token_;

  // Of the scheduler's, as long as their client may still leave.
  std::unordered_set<uint64_t> exchanges_;
};

}  // namespace berth::cmd
