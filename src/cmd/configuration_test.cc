// Goal: a BerthConfiguration is read strictly, and a KubeSchedulerConfiguration becomes what a
// scheduler is started with. Method: files, many with one thing wrong each.
#include "cmd/configuration.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "api/json.h"
#include "codec/json.h"

namespace berth::cmd {
namespace {

std::string Read(const std::string& text) {
  const std::string path = ::testing::TempDir() + "berth-configuration.yaml";
  std::ofstream(path) << text;
  const Result<Configuration> read = ReadConfiguration(path);
  std::filesystem::remove(path);
  if (read) return read->joint_placement ? "joint" : "separate";
  return read.error().message.substr(path.size() + 2);
}

constexpr const char* kHead = "apiVersion: config.berth.dev/v1alpha1\nkind: BerthConfiguration\n";

TEST(ConfigurationTest, SaysHowWorkloadsArePlaced) {
  EXPECT_EQ(Read(kHead), "joint");
  EXPECT_EQ(Read(fmt::format("{}placement: separate\n", kHead)), "separate");
  EXPECT_EQ(Read(fmt::format("{}placement: joint\n", kHead)), "joint");
  EXPECT_EQ(ReadConfiguration("").value(), Configuration{});
}

TEST(ConfigurationTest, SaysForHowLongPodsMayNotBeReady) {
  const auto rules = [](const std::string& text) {
    const std::string path = ::testing::TempDir() + "berth-pods-ready.yaml";
    std::ofstream(path) << kHead << "waitForPodsReady:" << text;
    const Result<Configuration> read = ReadConfiguration(path);
    std::filesystem::remove(path);
    EXPECT_TRUE(read.has_value()) << read.error().message;
    return read ? read->pods_ready : control::PodsReadyRules{};
  };
  EXPECT_EQ(rules(" {}\n"), control::PodsReadyRules{});
  EXPECT_EQ(rules("\n  timeout: 5m\n"),
            (control::PodsReadyRules{.timeout = Duration::Minutes(5),
                                     .recovery_timeout = Duration::Minutes(5)}));
  EXPECT_EQ(rules("\n  recoveryTimeout: 90s\n  timeout: 1h30m\n  requeuingStrategy:\n"
                  "    timestamp: Creation\n    backoffBaseSeconds: 10\n"
                  "    backoffMaxSeconds: 60\n    backoffLimitCount: 0\n"),
            (control::PodsReadyRules{.timeout = Duration::Minutes(90),
                                     .recovery_timeout = Duration::Seconds(90),
                                     .requeues_by_eviction = false,
                                     .backoff_base = Duration::Seconds(10),
                                     .backoff_most = Duration::Seconds(60),
                                     .backoffs_max = 0}));
  for (const auto& [text, error] : {
           std::pair{" soon\n", "waitForPodsReady: must be an object, not \"soon\""},
           std::pair{" {timeout: 30}\n",
                     "waitForPodsReady.timeout: must be a time, as 15s or 1m30s, not 30"},
           std::pair{" {recoveryTimeout: 0s}\n",
                     "waitForPodsReady.recoveryTimeout: Invalid value: \"0s\": must be greater "
                     "than zero"},
           std::pair{" {blockAdmission: true}\n",
                     "unknown field \"waitForPodsReady.blockAdmission\"; there are timeout, "
                     "recoveryTimeout, requeuingStrategy"},
           std::pair{" {requeuingStrategy: {backoffBaseSeconds: 0}}\n",
                     "waitForPodsReady.requeuingStrategy.backoffBaseSeconds: Invalid value: 0: "
                     "must be at least 1"},
           std::pair{" {requeuingStrategy: {timestamp: Now}}\n",
                     "waitForPodsReady.requeuingStrategy.timestamp: Unsupported value: \"Now\": "
                     "supported values: \"Creation\", \"Eviction\""},
       }) {
    EXPECT_EQ(Read(fmt::format("{}waitForPodsReady:{}", kHead, text)),
              fmt::format("line 3: {}", error));
  }
}

TEST(ConfigurationTest, WhatIsWrongIsNamed) {
  EXPECT_EQ(Read(fmt::format("{}placement: both\n", kHead)),
            "line 3: placement: Unsupported value: \"both\": supported values: \"joint\", "
            "\"separate\"");
  EXPECT_EQ(Read("kind: BerthConfiguration\n"),
            "line 1: apiVersion is missing: config.berth.dev/v1alpha1");
  EXPECT_EQ(Read("apiVersion: v1\nkind: BerthConfiguration\n"),
            "line 1: is a BerthConfiguration of v1, not a BerthConfiguration of "
            "config.berth.dev/v1alpha1");
  for (const char* no_object : {"- a\n", "", "a: 1\n---\n- b\n"}) {
    EXPECT_EQ(Read(no_object),
              "must be a KubeSchedulerConfiguration (kubescheduler.config.k8s.io/v1), a "
              "BerthConfiguration (config.berth.dev/v1alpha1), or both");
  }
  EXPECT_FALSE(ReadConfiguration("/nowhere/berth.yaml").has_value());
}

TEST(ConfigurationTest, AllThatIsWrongIsToldAtOnce) {
  const std::string path = ::testing::TempDir() + "berth-wrong.yaml";
  std::ofstream(path) << kHead << "place: joint\ncompat: maybe\n---\n"
                      << "apiVersion: kubescheduler.config.k8s.io/v1\n"
                      << "kind: KubeSchedulerConfiguration\nparallelism: -1\n";
  const Result<Configuration> read = ReadConfiguration(path);
  std::filesystem::remove(path);
  ASSERT_FALSE(read.has_value());
  EXPECT_EQ(read.error().message,
            fmt::format("{0}: line 4: compat: must be true or false, not \"maybe\"\n"
                        "{0}: line 3: unknown field \"place\"; there are apiVersion, kind, "
                        "compat, placement, waitForPodsReady\n"
                        "{0}: line 8: parallelism: Invalid value: -1: should be an integer value "
                        "greater than zero",
                        path));
}

// A file with that text, for as long as it lives.
class File {
 public:
  explicit File(const std::string& text) : path_(::testing::TempDir() + "berth-scheduler.yaml") {
    std::ofstream(path_) << text;
  }
  ~File() { std::filesystem::remove(path_); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

constexpr const char* kScheduler =
    "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n";

TEST(SchedulerConfigurationTest, TheKindDecides) {
  const File file(fmt::format("{}profiles:\n- schedulerName: a\n- schedulerName: b\n", kScheduler));
  const Result<Configuration> read = ReadConfiguration(file.path());
  ASSERT_TRUE(read.has_value()) << read.error().message;
  ASSERT_TRUE(read->scheduler.has_value());
  EXPECT_TRUE(CheckSupported(file.path(), *read).has_value());
  control::SchedulerOptions options;
  options.engine.preemption = false;
  Put(*read, options);
  EXPECT_EQ(options.scheduler_names, (std::vector<std::string>{"a", "b"}));
  EXPECT_TRUE(options.engine.preemption);
  // Of quota it says nothing: that stands as without a file.
  control::SchedulerOptions usual;
  Put(Configuration{}, usual);
  EXPECT_EQ(options.engine.joint_placement, usual.engine.joint_placement);
  EXPECT_EQ(options.quota_options.workloads.pods_ready, usual.quota_options.workloads.pods_ready);
}

TEST(SchedulerConfigurationTest, SaysForHowLongWhoFailsIsSpared) {
  constexpr int64_t kForEver = int64_t{10} * 365 * 24 * 60 * 60;
  for (const auto& [initial, max, wanted] : std::initializer_list<std::array<int64_t, 3>>{
           {2, 60, 60}, {2, INT64_MAX, kForEver}, {2, kForEver + 1, kForEver}}) {
    const File file(fmt::format("{}podInitialBackoffSeconds: {}\npodMaxBackoffSeconds: {}\n",
                                kScheduler, initial, max));
    const Result<Configuration> read = ReadConfiguration(file.path());
    ASSERT_TRUE(read.has_value()) << read.error().message;
    control::SchedulerOptions options;
    Put(*read, options);
    EXPECT_EQ(options.engine.backoff.initial, Duration::Seconds(initial));
    EXPECT_EQ(options.engine.backoff.max, Duration::Seconds(wanted));
  }
}

TEST(SchedulerConfigurationTest, StandsBesideBerthsOwn) {
  for (const bool first : {true, false}) {
    const std::string scheduler = fmt::format("{}profiles: [{{schedulerName: a}}]\n", kScheduler);
    const std::string berth = fmt::format("{}compat: true\n", kHead);
    const File file(fmt::format("{}---\n{}", first ? scheduler : berth, first ? berth : scheduler));
    const Result<Configuration> read = ReadConfiguration(file.path());
    ASSERT_TRUE(read.has_value()) << read.error().message;
    control::SchedulerOptions options;
    Put(*read, options);
    EXPECT_EQ(options.scheduler_names, (std::vector<std::string>{"a"}));
    EXPECT_TRUE(options.engine.compat);
    const Explanation told = ExplainConfiguration(file.path(), {});
    EXPECT_TRUE(told.supported);
    EXPECT_THAT(told.text, ::testing::HasSubstr("honoured        compat: true\n"));
    EXPECT_THAT(told.text, ::testing::HasSubstr("profiles[0].schedulerName"));
    const std::string printed = config::PrintSchedulerConfiguration(*read->scheduler) + "---\n" +
                                config::PrintBerthConfiguration(*read->berth);
    const Result<Configuration> again = ParseConfiguration(printed, "printed", {});
    ASSERT_TRUE(again.has_value()) << again.error().message;
    EXPECT_TRUE(again->compat);
    EXPECT_EQ(again->pods_ready, read->pods_ready);
    EXPECT_EQ(again->scheduler->profiles.size(), 1U);
  }
  const File twice(fmt::format("{0}---\n{0}", kHead));
  EXPECT_THAT(ReadConfiguration(twice.path()).error().message,
              ::testing::HasSubstr(
                  "line 5: holds several documents of BerthConfiguration; it must be one"));
}

TEST(SchedulerConfigurationTest, WithoutDefaultPreemptionNobodyEvicts) {
  const File file(fmt::format(
      "{}profiles: [{{plugins: {{postFilter: {{disabled: [{{name: '*'}}]}}}}}}]\n", kScheduler));
  const Result<Configuration> read = ReadConfiguration(file.path());
  ASSERT_TRUE(read.has_value()) << read.error().message;
  ASSERT_TRUE(CheckSupported(file.path(), *read).has_value());
  control::SchedulerOptions options;
  options.engine.preemption = true;
  Put(*read, options);
  EXPECT_FALSE(options.engine.preemption);
  EXPECT_EQ(options.scheduler_names, (std::vector<std::string>{"default-scheduler"}));
}

TEST(SchedulerConfigurationTest, TheSchedulerIsToldWhatProfilesSay) {
  const File file(
      fmt::format("{}profiles:\n- schedulerName: a\n- schedulerName: b\n"
                  "  plugins: {{score: {{disabled: [{{name: ImageLocality}}]}}}}\n"
                  "  pluginConfig:\n"
                  "  - {{name: NodeResourcesFit, args: {{ignoredResources: [a.com/x]}}}}\n"
                  "  - {{name: VolumeBinding, args: {{bindTimeoutSeconds: 5}}}}\n",
                  kScheduler));
  const Result<Configuration> read = ReadConfiguration(file.path());
  ASSERT_TRUE(read.has_value()) << read.error().message;
  ASSERT_TRUE(CheckSupported(file.path(), *read).has_value());
  control::SchedulerOptions options;
  Put(*read, options);
  ASSERT_EQ(options.engine.profiles.size(), 1U);
  EXPECT_EQ(options.engine.profiles.front().scheduler_name, "b");
  EXPECT_EQ(options.engine.profiles.front().rules.weights.images, 0);
  ASSERT_EQ(options.pod_profiles.size(), 1U);
  EXPECT_EQ(options.pod_profiles.at("b").ignored_resources, std::vector<std::string>{"a.com/x"});
  ASSERT_EQ(options.bind_within.size(), 1U);
  EXPECT_EQ(options.bind_within.at("b"), Duration::Seconds(5));
}

TEST(SchedulerConfigurationTest, AllProblemsAreTold) {
  const File file(fmt::format("{}a: 1\nb: 2\n", kScheduler));
  const Result<Configuration> read = ReadConfiguration(file.path());
  ASSERT_FALSE(read.has_value());
  const std::string& text = read.error().message;
  EXPECT_TRUE(text.contains("berth-scheduler.yaml: line 3: unknown field \"a\"")) << text;
  EXPECT_TRUE(text.contains("\n" + file.path() + ": line 4: unknown field \"b\"")) << text;
  const File old(
      "apiVersion: kubescheduler.config.k8s.io/v1beta3\nkind: KubeSchedulerConfiguration\n");
  EXPECT_TRUE(ReadConfiguration(old.path()).error().message.contains("no longer served"));
}

TEST(SchedulerConfigurationTest, WhatIsNotSupportedIsNamed) {
  const File file(
      fmt::format("{}extenders: [{{urlPrefix: 'http://e', httpTimeout: -1s}}]\n", kScheduler));
  const Result<Configuration> read = ReadConfiguration(file.path());
  ASSERT_TRUE(read.has_value());
  const Status supported = CheckSupported(file.path(), *read);
  ASSERT_FALSE(supported.has_value());
  EXPECT_EQ(supported.error().message,
            fmt::format("{}: extenders[0].httpTimeout: -1s: not supported: must not be below 0",
                        file.path()));
  const Explanation explained = ExplainConfiguration(file.path(), {});
  EXPECT_FALSE(explained.supported);
  EXPECT_TRUE(explained.text.contains("not supported   extenders[0].httpTimeout: -1s"))
      << explained.text;
  EXPECT_TRUE(explained.text.contains("berth does not run by it: 1 not supported"));
}

TEST(SchedulerConfigurationTest, GatesAreAskedForWithoutAFile) {
  const Result<Configuration> fine = ReadConfiguration("", {"SchedulerAsyncPreemption=false"});
  ASSERT_TRUE(fine.has_value());
  EXPECT_TRUE(CheckSupported("", *fine).has_value());
  control::SchedulerOptions options;
  Put(*fine, options);
  EXPECT_EQ(options.scheduler_names, control::SchedulerOptions().scheduler_names);
  const Result<Configuration> gang = ReadConfiguration("", {"GangScheduling=true"});
  ASSERT_TRUE(gang.has_value());
  EXPECT_FALSE(CheckSupported("", *gang).has_value());
  EXPECT_EQ(ReadConfiguration("", {"Nothing=true"}).error().message,
            "--feature-gates: unrecognized feature gate: Nothing");
}

TEST(SchedulerConfigurationTest, AFileIsExplained) {
  const File file(kScheduler);
  const Explanation explained = ExplainConfiguration(file.path(), {});
  EXPECT_TRUE(explained.supported) << explained.text;
  EXPECT_TRUE(
      explained.text.contains("honoured        profiles[0].schedulerName: default-scheduler"));
  EXPECT_TRUE(explained.text.contains("\nplugins of default-scheduler\n"));
  EXPECT_TRUE(explained.text.contains("berth can run by it"));
  const Explanation refused = ExplainConfiguration(file.path(), {}, "it needs --quota");
  EXPECT_FALSE(refused.supported);
  EXPECT_TRUE(refused.text.contains(": berth does not run by it: it needs --quota\n"));
  const File berths(kHead);
  EXPECT_TRUE(ExplainConfiguration(berths.path(), {}).supported);
  const Explanation gang = ExplainConfiguration(berths.path(), {"GangScheduling=true"});
  EXPECT_FALSE(gang.supported);
  EXPECT_THAT(gang.text, ::testing::HasSubstr("GangScheduling"));
  EXPECT_FALSE(ExplainConfiguration("/nowhere/berth.yaml", {}).supported);
}

// kube-scheduler shows what it was started by, with the flags and defaults in it.
TEST(SchedulerConfigurationTest, ConfigzHasDefaultsAndWhatFlagsSay) {
  const config::LeaderElection election{.leader_elect = true, .resource_name = "mine"};
  const std::string shown = ConfigzText({}, {"a", "b"}, election, "/k");
  const Result<api::Json> json = codec::ParseJson(shown);
  ASSERT_TRUE(json.has_value()) << shown;
  EXPECT_EQ(json->at("apiVersion").as_string(), "kubescheduler.config.k8s.io/v1");
  EXPECT_EQ(json->at("kind").as_string(), "KubeSchedulerConfiguration");
  EXPECT_EQ(json->at("parallelism").as_int64(), 16);
  EXPECT_EQ(json->at("leaderElection").at("resourceName").as_string(), "mine");
  EXPECT_EQ(json->at("leaderElection").at("leaseDuration").as_string(), "15s");
  EXPECT_EQ(json->at("clientConnection").at("kubeconfig").as_string(), "/k");
  ASSERT_EQ(json->at("profiles").as_array().size(), 2U);
  EXPECT_EQ(json->at("profiles").at(1).at("schedulerName").as_string(), "b");
  const File file(fmt::format("{}podMaxBackoffSeconds: 7\n", kScheduler));
  const std::string given = ConfigzText(*ReadConfiguration(file.path()), {"x"}, election, "");
  const Result<api::Json> of_file = codec::ParseJson(given);
  ASSERT_TRUE(of_file.has_value()) << given;
  EXPECT_EQ(of_file->at("podMaxBackoffSeconds").as_int64(), 7);
  EXPECT_EQ(of_file->at("profiles").at(0).at("schedulerName").as_string(), "default-scheduler");
}

}  // namespace
}  // namespace berth::cmd
