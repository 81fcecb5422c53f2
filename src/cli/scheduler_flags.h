#pragma once

#include <string>
#include <vector>

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
  std::string client_ca_file;  // Empty: that of the kubeconfig.
  // --authentication-kubeconfig was given, as where kube-scheduler is run: who starts it so expects
  // its port to be open.
  bool in_its_place = false;
  // Flags that were given and change nothing, each with why: to be told at the start.
  std::vector<std::string> without_effect;
};

// Adds them to the command. What can't be honoured is a usage error that says why. The flags
// outlive the parser.
void AddSchedulerFlags(CLI::App* run, SchedulerFlags& flags);

// `-v`, `-v N`, `-v=N`, `--v=N`, `--verbose`: verbose from 4 on, and without a number.
void AddVerbosity(CLI::App* run, bool& verbose);

}  // namespace berth::cli
