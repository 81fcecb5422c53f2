#include "cmd/leader_options.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <string>
#include <type_traits>

#include "env/os/entropy.h"

namespace berth::cmd {
namespace {

std::string HostName() {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0) return "berth";
  return name.data();
}

}  // namespace

config::LeaderElection Combined(config::LeaderElection configured,
                                const cli::LeaderElectOptions& options) {
  const auto put = [](auto& to, const auto& given) {
    if (given != std::remove_cvref_t<decltype(given)>{}) to = given;
  };
  configured.leader_elect = options.elect.value_or(configured.leader_elect);
  put(configured.lease_duration, options.lease_duration);
  put(configured.renew_deadline, options.renew_deadline);
  put(configured.retry_period, options.retry_period);
  put(configured.resource_name, options.resource_name);
  put(configured.resource_namespace, options.resource_namespace);
  return configured;
}

std::string NewIdentity() {
  return fmt::format("{}_{:016x}{:016x}", HostName(), env::os::Seed(), env::os::Seed());
}

Result<control::LeaderElectionOptions> LeaderOptions(const config::LeaderElection& election,
                                                     const client::Options& client) {
  control::LeaderElectionOptions leader{.identity = NewIdentity(),
                                        .namespace_name = election.resource_namespace,
                                        .name = election.resource_name,
                                        .lease_duration = election.lease_duration,
                                        .renew_deadline = election.renew_deadline,
                                        .retry_period = election.retry_period,
                                        .client = client};
  leader.client.seed = env::os::Seed();
  if (const std::string problem = control::ProblemOf(leader); !problem.empty())
    return Fail(ErrorCode::kInvalid, problem);
  return leader;
}

}  // namespace berth::cmd
