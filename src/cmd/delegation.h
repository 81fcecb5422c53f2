#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/scheduler_flags.h"
#include "cmd/connect.h"
#include "env/os/executor.h"
#include "env/port.h"
#include "net/client.h"

// How `berth run` lets the API server decide who may read what of its port
// (control/access_gate.h).
namespace berth::cmd {

// Whose certificates count at the port: the authority in --client-ca-file; else that which the
// cluster names in the ConfigMap kube-system/extension-apiserver-authentication, as for
// kube-scheduler; else nobody's, and `trouble` says why it can't be looked up: callers have tokens
// then. Nothing else stands in: the kubeconfig's authority vouches for servers, and in many
// clusters it is not that of clients. A look-up takes five seconds at most. Errors: the file can't
// be read; the look-up failed and may not (--authentication-tolerate-lookup-failure=false).
struct ClientAuthority {
  std::string pem;      // Empty: no certificate counts.
  std::string trouble;  // Not empty: it is to be looked up again.
};
[[nodiscard]] Result<ClientAuthority> FindClientAuthority(const cli::SchedulerFlags& flags,
                                                          const Endpoint& scheduler);

// The authority in that ConfigMap. Errors: it is no such ConfigMap, or has none.
[[nodiscard]] Result<std::string> ReadClientAuthority(std::string_view config_map);

// Sends the calls of an actor to the connections that they are for: those of a range of numbers to
// some, all else to others, in each life of the actor (env/recorded_actor.h). Any thread may call.
class CallSplitter final : public env::OutputSink {
 public:
  // From `first` on, below `end`.
  struct Range {
    uint64_t first = 0;
    uint64_t end = UINT64_MAX;
  };
  CallSplitter(Range range, env::OutputSink& inside, env::OutputSink& outside)
      : range_(range), inside_(inside), outside_(outside) {}
  void Take(std::vector<env::Output> batch) override;

 private:
  // Immutable after construction.
  Range range_;
  env::OutputSink& inside_;
  env::OutputSink& outside_;
};

// An access gate with its connections.
class Delegation {
 public:
  // Reads the kubeconfigs that the flags name; without them both servers are the scheduler's.
  static Result<std::unique_ptr<Delegation>> Make(const cli::SchedulerFlags& flags,
                                                  const Endpoint& scheduler);
  // Before the executor starts. It must outlive Stop().
  void Join(env::os::Executor& executor);
  // REQUIRES: Join.
  [[nodiscard]] env::InputSink& inbox() { return *inbox_; }
  void Start();
  void Stop();

 private:
  Delegation() = default;

  std::unique_ptr<env::Actor> gate_;  // Until it has joined.
  std::unique_ptr<net::HttpsClient> authentication_;
  std::unique_ptr<net::HttpsClient> authorization_;  // Null: the same.
  std::unique_ptr<CallSplitter> splitter_;
  env::InputSink* inbox_ = nullptr;
};

}  // namespace berth::cmd
