#pragma once

#include <string>

#include "base/result.h"
#include "cli/command_line.h"
#include "client/client.h"
#include "config/scheduler_configuration.h"
#include "control/leader_election.h"

namespace berth::cmd {

// What the configuration says of leader election, or the command line, which goes before it as for
// kube-scheduler.
[[nodiscard]] config::LeaderElection Combined(config::LeaderElection configured,
                                              const cli::LeaderElectOptions& options);

// That no other process has, nor this one had: the host's name, which is a pod's own, and a random
// number, as upstream's.
[[nodiscard]] std::string NewIdentity();

// With a new identity. `client`: how the scheduler reaches the API server.
[[nodiscard]] Result<control::LeaderElectionOptions> LeaderOptions(
    const config::LeaderElection& election, const client::Options& client);

}  // namespace berth::cmd
