#pragma once

#include "base/result.h"
#include "cli/command_line.h"
#include "client/client.h"
#include "control/leader_election.h"

namespace berth::cmd {

// The leader election that the command line asks for, with an identity that no other process has:
// the host's name, which is a pod's own, and a random number, as upstream's. `client`: how the
// scheduler reaches the API server.
[[nodiscard]] Result<control::LeaderElectionOptions> LeaderOptions(
    const cli::LeaderElectOptions& options, const client::Options& client);

}  // namespace berth::cmd
