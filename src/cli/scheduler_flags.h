#pragma once

#include <string>
#include <vector>

#include "base/time.h"

namespace CLI {  // NOLINT(readability-identifier-naming): CLI11's own.
class App;
}

namespace berth::cli {

// What `berth run` takes of kube-scheduler's command line beside its own.
struct SchedulerFlags {
  std::string check_config;                // Say what becomes of this file, and end. Empty: run.
  std::string write_config_to;             // Write the completed configuration there, and end.
  std::vector<std::string> feature_gates;  // Values of --feature-gates, in their order.
  std::string tls_cert_file;               // Empty, as the key: a certificate of its own.
  std::string tls_private_key_file;
  std::string client_ca_file;  // Empty: that which the cluster names, else none.
  // Who puts tokens and rights to the API server; empty: the scheduler's own.
  std::string authentication_kubeconfig;
  std::string authorization_kubeconfig;
  // Whether the authority of clients is not looked up in the cluster, and whether berth starts
  // without it when that fails.
  bool skip_lookup = false;
  bool tolerate_lookup_failure = true;
  // For how long answers hold; 0: not at all.
  Duration token_holds = Duration::Seconds(10);
  Duration allowed_holds = Duration::Seconds(10);
  Duration refused_holds = Duration::Seconds(10);
  bool json_log = false;  // The log is JSON, a line an object.
  // Flags that were given and change nothing, each with why: to be told at the start.
  std::vector<std::string> without_effect;
};

// Adds them to the command. What can't be honoured is a usage error that says why. The flags
// outlive the parser.
void AddSchedulerFlags(CLI::App* run, SchedulerFlags& flags);

// `-v`, `-v N`, `-v=N`, `--v=N`, `--verbose`: verbose from 4 on, and without a number.
void AddVerbosity(CLI::App* run, bool& verbose);

}  // namespace berth::cli
