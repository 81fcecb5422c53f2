// Goal: a BerthConfiguration is read strictly. Method: files with one thing wrong each.
#include "cmd/configuration.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

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

TEST(ConfigurationTest, WhatIsWrongIsNamed) {
  EXPECT_EQ(Read(fmt::format("{}placement: both\n", kHead)),
            "placement must be joint or separate, not \"both\"");
  EXPECT_EQ(Read(fmt::format("{}place: joint\n", kHead)),
            "unknown field \"place\"; there are apiVersion, kind, placement");
  EXPECT_EQ(Read("kind: BerthConfiguration\n"), "apiVersion is missing");
  EXPECT_EQ(Read("apiVersion: v1\nkind: BerthConfiguration\n"),
            "apiVersion must be config.berth.dev/v1alpha1, not \"v1\"");
  EXPECT_EQ(Read("- a\n"), "holds not one BerthConfiguration");
  EXPECT_FALSE(ReadConfiguration("/nowhere/berth.yaml").has_value());
}

}  // namespace
}  // namespace berth::cmd
