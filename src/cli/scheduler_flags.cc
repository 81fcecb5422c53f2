#include "cli/scheduler_flags.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <string_view>

#include "api/duration.h"

namespace berth::cli {
namespace {

constexpr const char* kGroup = "Of kube-scheduler";

// A flag that is taken and changes nothing.
struct Accepted {
  const char* name;
  const char* why;
};

constexpr const char* kProfiling = "there is no /debug/pprof";
constexpr const char* kWindow = "the number of calls under way is bounded, not their rate";
constexpr const char* kHttp = "HTTP/1.1 is served";

constexpr const char* kNoProxy = "no proxy in front of it is asked who its callers are";

constexpr Accepted kAccepted[] = {
    {"--requestheader-allowed-names", kNoProxy},
    {"--requestheader-client-ca-file", kNoProxy},
    {"--requestheader-extra-headers-prefix", kNoProxy},
    {"--requestheader-group-headers", kNoProxy},
    {"--requestheader-uid-headers", kNoProxy},
    {"--requestheader-username-headers", kNoProxy},
    {"--permit-address-sharing", "no other process shares the port"},
    {"--permit-port-sharing", "no other process shares the port"},
    {"--show-hidden-metrics-for-version", "no metric is hidden"},
    {"--allow-metric-labels", "no label has values that are not bounded"},
    {"--allow-metric-labels-manifest", "no label has values that are not bounded"},
    {"--disabled-metrics", "all metrics are served"},
    {"--log-flush-frequency", "each line is written at once"},
    {"--log-json-info-buffer-size", "each line is written at once"},
    {"--log-json-split-stream", "all lines go to one stream"},
    {"--log-text-info-buffer-size", "each line is written at once"},
    {"--log-text-split-stream", "all lines go to one stream"},
    {"--vmodule", "the log has one level for all"},
    {"--cert-dir", "a certificate that is made is kept in memory"},
    {"--profiling", kProfiling},
    {"--contention-profiling", kProfiling},
    {"--kube-api-qps", kWindow},
    {"--kube-api-burst", kWindow},
    {"--kube-api-content-type", "JSON is spoken"},
    {"--http2-max-streams-per-connection", kHttp},
    {"--disable-http2-serving", kHttp},
    {"--pod-max-in-unschedulable-pods-duration",
     "a pod is tried again when what it waits for changes; all are looked at every 30 s"},
};

// A flag that can't be honoured but for some values, which are what holds anyway.
struct Bounded {
  const char* name;
  std::vector<std::string_view> fine;
  const char* why;
};

std::vector<Bounded> BoundedFlags() {
  return {
      {"--tls-min-version",
       {"VersionTLS12", "VersionTLS11", "VersionTLS10"},
       "TLS 1.2 and 1.3 are served: VersionTLS12"},
      {"--tls-cipher-suites",
       {},
       "not supported: those of TLS 1.3 and the strong ones of 1.2 are served"},
      {"--tls-sni-cert-key",
       {},
       "not supported: one certificate is served, that of --tls-cert-file"},
      {"--master", {}, "not supported: the kubeconfig names the server"},
      {"--emulated-version", {"1.36", "kube=1.36"}, "berth does as 1.36"},
  };
}

// A time, or 0 for none.
void AddTime(CLI::App* run, const std::string& name, Duration& time, const std::string& what) {
  run->add_option_function<std::string>(
         name, [](const std::string&) {}, what)
      ->check([&time](const std::string& given) {
        const Result<Duration> parsed = api::ParseDuration(given);
        if (!parsed) return parsed.error().message;
        time = *parsed;
        return std::string();
      })
      ->type_name("DURATION")
      ->group(kGroup);
}

// Who may read what, as the API server says.
void AddAccess(CLI::App* run, SchedulerFlags& flags) {
  run->add_option("--client-ca-file", flags.client_ca_file,
                  "PEM file with the authority of clients of --secure-port [the cluster's]")
      ->group(kGroup);
  run->add_option("--authentication-kubeconfig", flags.authentication_kubeconfig,
                  "by which TokenReviews are put [--kubeconfig]")
      ->group(kGroup);
  run->add_option("--authorization-kubeconfig", flags.authorization_kubeconfig,
                  "by which SubjectAccessReviews are put [--kubeconfig]")
      ->group(kGroup);
  run->add_flag("--authentication-skip-lookup", flags.skip_lookup,
                "don't look for the authority of clients in the cluster [false]")
      ->group(kGroup);
  run->add_flag("--authentication-tolerate-lookup-failure", flags.tolerate_lookup_failure,
                "start without it when it is not found [true]")
      ->group(kGroup);
  AddTime(run, "--authentication-token-webhook-cache-ttl", flags.token_holds,
          "how long the answer of a TokenReview holds [10s]");
  AddTime(run, "--authorization-webhook-cache-authorized-ttl", flags.allowed_holds,
          "how long it holds that an access is allowed [10s]");
  AddTime(run, "--authorization-webhook-cache-unauthorized-ttl", flags.refused_holds,
          "how long it holds that it is not [10s]");
}

}  // namespace

void AddSchedulerFlags(CLI::App* run, SchedulerFlags& flags) {
  run->add_option("--check-config", flags.check_config,
                  "say what each setting of this file becomes, and whether berth can run by it")
      ->type_name("FILE");
  run->add_option("--write-config-to", flags.write_config_to,
                  "write the configuration with its defaults to this file, and end")
      ->group(kGroup);
  // One value each: their commas are the gates' own.
  run->add_option("--feature-gates", flags.feature_gates,
                  "NAME=true|false,... of Kubernetes 1.36; those that decide nothing here are told")
      ->allow_extra_args(false)
      ->group(kGroup);
  CLI::Option* certificate =
      run->add_option("--tls-cert-file", flags.tls_cert_file,
                      "PEM file with the certificate of --secure-port [a new one]")
          ->group(kGroup);
  CLI::Option* key =
      run->add_option("--tls-private-key-file", flags.tls_private_key_file, "PEM file with its key")
          ->group(kGroup);
  certificate->needs(key);
  key->needs(certificate);
  AddAccess(run, flags);
  run->add_option_function<std::string>(
         "--logging-format",
         [&flags](const std::string& format) { flags.json_log = format == "json"; },
         "text, or json, a line an object [text]")
      ->check(CLI::IsMember({"text", "json"}))
      ->group(kGroup);
  for (const Accepted& flag : kAccepted) {
    run->add_option_function<std::string>(
           flag.name,
           [&flags, &flag](const std::string&) {
             flags.without_effect.push_back(
                 fmt::format("{} has no effect: {}", flag.name, flag.why));
           },
           "accepted, without effect")
        ->expected(0, 1)
        ->group(kGroup);
  }
  for (Bounded& flag : BoundedFlags()) {
    run->add_option_function<std::string>(
           flag.name, [](const std::string&) {}, flag.why)
        ->check([flag](const std::string& given) {
          for (const std::string_view fine : flag.fine) {
            if (given == fine) return std::string();
          }
          return fmt::format("{}: {}", given, flag.why);
        })
        ->group(kGroup);
  }
}

void AddVerbosity(CLI::App* run, bool& verbose) {
  run->add_option_function<std::string>(
         "-v,--v,--verbose",
         [&verbose](const std::string& given) {
           std::string_view text = given;
           if (text.starts_with('=')) text.remove_prefix(1);
           int level = 4;
           std::from_chars(text.data(), text.data() + text.size(), level);
           verbose = text != "false" && level >= 4;
         },
         "log more; with a number from 4 on")
      ->check([](const std::string& given) {
        const std::string_view text =
            given.starts_with('=') ? std::string_view(given).substr(1) : std::string_view(given);
        const bool number = text.find_first_not_of("0123456789") == std::string_view::npos;
        return number || text == "true" || text == "false" ? std::string()
                                                           : fmt::format("{}: no level", text);
      })
      ->expected(0, 1)
      ->type_name("[N]");
}

}  // namespace berth::cli
