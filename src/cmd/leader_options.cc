#include "cmd/leader_options.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <string>

#include "env/os/entropy.h"

namespace berth::cmd {
namespace {

std::string HostName() {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0) return "berth";
  return name.data();
}

}  // namespace

Result<control::LeaderElectionOptions> LeaderOptions(const cli::LeaderElectOptions& options,
                                                     const client::Options& client) {
  control::LeaderElectionOptions leader{
      .identity = fmt::format("{}_{:016x}{:016x}", HostName(), env::os::Seed(), env::os::Seed()),
      .namespace_name = options.resource_namespace,
      .name = options.resource_name,
      .lease_duration = options.lease_duration,
      .renew_deadline = options.renew_deadline,
      .retry_period = options.retry_period,
      .client = client};
  leader.client.seed = env::os::Seed();
  if (const std::string problem = control::ProblemOf(leader); !problem.empty())
    return Fail(ErrorCode::kInvalid, problem);
  return leader;
}

}  // namespace berth::cmd
