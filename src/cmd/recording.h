#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "client/client.h"
#include "cmd/configuration.h"
#include "control/extenders.h"
#include "control/leader_election.h"
#include "control/operated_scheduler.h"
#include "control/scheduler.h"

namespace berth::cmd {

// What `berth run` makes its scheduler of: what a recording has to say for one that does the same.
struct SchedulerSetup {
  Configuration configuration = {};
  std::vector<std::string> scheduler_names = {};  // Empty: those of the configuration.
  bool quota = false;
  std::vector<control::ExtenderOptions> extenders = {};  // Of the configuration.
  client::Options client = {};
  std::optional<control::LeaderElectionOptions> leader = {};  // Nothing: it is alone.
  std::string configz = {};
};

[[nodiscard]] control::SchedulerOptions OptionsOf(const SchedulerSetup& setup);
[[nodiscard]] std::unique_ptr<control::OperatedScheduler> MakeScheduler(
    const SchedulerSetup& setup);

// The header of a recording (env/recording.h): the setup, as JSON, with the berth and the time that
// it was made by. No credentials are in it: a document of --config without what keys it holds.
struct RecordingHeader {
  std::string version;
  std::string commit;
  Instant started_at;
  SchedulerSetup setup;
};
// `document`: the text of the file of --config, empty for none; `gate_values`: of --feature-gates.
struct ConfigurationSource {
  std::string document = {};
  std::vector<std::string> gate_values = {};
};
// Of the configuration's file, as it is recorded. Errors: it can't be read, or is another one by
// now than `read`.
[[nodiscard]] Result<ConfigurationSource> SourceOf(const std::string& path,
                                                   std::vector<std::string> gate_values,
                                                   const Configuration& read);
[[nodiscard]] std::string PrintHeader(const SchedulerSetup& setup,
                                      const ConfigurationSource& source, Instant now);
// Errors name the member.
[[nodiscard]] Result<RecordingHeader> ReadHeader(const std::string& text);

}  // namespace berth::cmd
