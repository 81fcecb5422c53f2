// Goal: a BerthConfiguration is read strictly. Method: files with one thing wrong each.
#include "cmd/configuration.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>

namespace berth::cmd {
namespace {

std::string Read(const std::string& text) {
  const std::string path = testing::TempDir() + "berth-configuration.yaml";
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
    const std::string path = testing::TempDir() + "berth-pods-ready.yaml";
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
           std::pair{" soon\n", "waitForPodsReady must be an object, not \"soon\""},
           std::pair{" {timeout: 30}\n",
                     "waitForPodsReady.timeout must be a time above 0, as 30m or 1h30m, not 30"},
           std::pair{" {recoveryTimeout: 0s}\n",
                     "waitForPodsReady.recoveryTimeout must be a time above 0, as 30m or 1h30m, "
                     "not \"0s\""},
           std::pair{" {blockAdmission: true}\n",
                     "unknown field \"waitForPodsReady.blockAdmission\"; there are timeout, "
                     "recoveryTimeout, requeuingStrategy"},
           std::pair{" {requeuingStrategy: {backoffBaseSeconds: 0}}\n",
                     "waitForPodsReady.requeuingStrategy.backoffBaseSeconds must be an integer "
                     "from 1 to 2147483647, not 0"},
           std::pair{" {requeuingStrategy: {timestamp: Now}}\n",
                     "waitForPodsReady.requeuingStrategy.timestamp must be Eviction or Creation, "
                     "not \"Now\""},
       }) {
    EXPECT_EQ(Read(fmt::format("{}waitForPodsReady:{}", kHead, text)), error);
  }
}

TEST(ConfigurationTest, WhatIsWrongIsNamed) {
  EXPECT_EQ(Read(fmt::format("{}placement: both\n", kHead)),
            "placement must be joint or separate, not \"both\"");
  EXPECT_EQ(Read(fmt::format("{}place: joint\n", kHead)),
            "unknown field \"place\"; there are apiVersion, kind, placement, waitForPodsReady");
  EXPECT_EQ(Read("kind: BerthConfiguration\n"), "apiVersion is missing");
  EXPECT_EQ(Read("apiVersion: v1\nkind: BerthConfiguration\n"),
            "apiVersion must be config.berth.dev/v1alpha1, not \"v1\"");
  EXPECT_EQ(Read("- a\n"), "holds not one BerthConfiguration");
  EXPECT_FALSE(ReadConfiguration("/nowhere/berth.yaml").has_value());
}

}  // namespace
}  // namespace berth::cmd
