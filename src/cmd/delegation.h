#pragma once

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
// then. Nothing else stands in: the kubeconfig's authority vouches for servers, and in many clusters
// it is not that of clients. A look-up takes five seconds at most. Errors: the file can't be read;
// the look-up failed and may not (--authentication-tolerate-lookup-failure=false).
struct ClientAuthority {
  std::string pem;      // Empty: no certificate counts.
  std::string trouble;  // Not empty: it is to be looked up again.
};
[[nodiscard]] Result<ClientAuthority> FindClientAuthority(const cli::SchedulerFlags& flags,
                                                          const Endpoint& scheduler);

// The authority in that ConfigMap. Errors: it is no such ConfigMap, or has none.
[[nodiscard]] Result<std::string> ReadClientAuthority(std::string_view config_map);

// Sends the calls of an access gate to the server that they are for. Any thread may call.
class CallSplitter final : public env::OutputSink {
 public:
  CallSplitter(env::OutputSink& authentication, env::OutputSink& authorization)
      : authentication_(authentication), authorization_(authorization) {}
  void Take(std::vector<env::Output> batch) override;

 private:
  env::OutputSink& authentication_;
  env::OutputSink& authorization_;
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
