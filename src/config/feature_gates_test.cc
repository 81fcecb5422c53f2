// Goal: gates are taken as Kubernetes' programs take them. Method: values of the flag, and what is
// on then. (What is wrong with values: testdata/problems.txt.)
#include "config/feature_gates.h"

#include <gtest/gtest.h>

namespace berth::config {
namespace {

TEST(FeatureGatesTest, StandAtTheirDefaultsOrAsSwitched) {
  const FeatureGates none;
  EXPECT_TRUE(none.on("NodeDeclaredFeatures"));
  EXPECT_FALSE(none.on("GangScheduling"));
  EXPECT_TRUE(none.switched().empty());
  const auto some = FeatureGates::Parse(
      {"NodeDeclaredFeatures=false, GangScheduling = T", "kube:StorageCapacityScoring=1,,", ""});
  ASSERT_TRUE(some.has_value());
  EXPECT_FALSE(some->on("NodeDeclaredFeatures"));
  EXPECT_TRUE(some->on("GangScheduling"));
  EXPECT_TRUE(some->on("StorageCapacityScoring"));
  EXPECT_EQ(some->switched().size(), 3U);
}

TEST(FeatureGatesTest, TheLastOneCounts) {
  const auto gates =
      FeatureGates::Parse({"GangScheduling=true,GangScheduling=false", "WatchListClient=false"});
  ASSERT_TRUE(gates.has_value());
  EXPECT_FALSE(gates->on("GangScheduling"));
  EXPECT_FALSE(gates->on("WatchListClient"));
}

TEST(FeatureGatesTest, AllOfAStageButThoseThatAreNamed) {
  const auto gates = FeatureGates::Parse({"GangScheduling=false,AllAlpha=true,AllBeta=false"});
  ASSERT_TRUE(gates.has_value());
  EXPECT_FALSE(gates->on("GangScheduling"));
  EXPECT_TRUE(gates->on("StorageCapacityScoring"));
  EXPECT_FALSE(gates->on("NodeDeclaredFeatures"));
  // Of no stage that was named.
  EXPECT_TRUE(gates->on("DynamicResourceAllocation"));
}

TEST(FeatureGatesTest, WhatIsLockedMayBeSaidAsItIs) {
  EXPECT_TRUE(FeatureGates::Parse({"DynamicResourceAllocation=true"}).has_value());
  EXPECT_FALSE(FeatureGates::Parse({"DynamicResourceAllocation=false"}).has_value());
  EXPECT_EQ(FindGate(""), nullptr);
  EXPECT_EQ(FindGate("zzz"), nullptr);
  ASSERT_NE(FindGate("GangScheduling"), nullptr);
  EXPECT_EQ(FindGate("GangScheduling")->stage, GateStage::kAlpha);
}

}  // namespace
}  // namespace berth::config
