// Goal: what fits by plain counts fits, and nothing else: quota of flavors that a pod set may have,
// and room on their nodes where it asks to stand.
// Method: one small cluster; a table of what is asked for.
#include "explore/fitting.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace berth::explore {
namespace {

const std::string kHost = "kubernetes.io/hostname";

class FittingTest : public ::testing::Test {
 protected:
  static NodeRoom Node(const std::string& disk, const std::string& rack, int64_t cpu) {
    return {.labels = {{"disk", disk}, {"rack", rack}},
            .free = {{"cpu", cpu}, {"memory", 8}, {"pods", 3}}};
  }
  static AskedSet Set(int64_t count, int64_t cpu, int64_t memory = 0) {
    AskedSet set{.name = "main", .count = count, .least = count};
    set.requests.push_back({.name = "cpu", .amount = cpu});
    if (memory > 0) set.requests.push_back({.name = "memory", .amount = memory});
    return set;
  }
  static AskedSet Required(AskedSet set, const std::string& level) {
    set.topology.emplace().required = level;
    return set;
  }
  static AskedSet Sliced(AskedSet set, const std::string& level, int64_t size) {
    set.topology.emplace().slices = {{.level = level, .size = size}};
    return set;
  }
  [[nodiscard]] bool OfQuota(const std::vector<AskedSet>& sets) const {
    return Fits(sets, {.groups = groups_, .flavors = flavors_, .left = left_});
  }
  [[nodiscard]] bool OnNodes(const std::vector<AskedSet>& sets) const {
    return Fits(
        sets,
        {.groups = groups_, .flavors = flavors_, .left = left_, .rooms = &rooms_, .joint = true});
  }
  void ByTopology() {
    flavors_["fast"].topology = "t";
    flavors_["slow"].topology = "t";
    flavors_["ram"].topology = "t";
  }

  std::vector<api::ResourceGroup> groups_ = {
      {.covered = {"cpu"},
       .flavors = {{.flavor = "fast", .resources = {}}, {.flavor = "slow", .resources = {}}}},
      {.covered = {"memory"}, .flavors = {{.flavor = "ram", .resources = {}}}}};
  Flavors flavors_ = {{"fast", {.labels = {{"disk", "ssd"}}}},
                      {"slow", {.labels = {{"disk", "hdd"}}}},
                      {"ram", {}}};
  Amounts left_ = {{{"fast", "cpu"}, 2}, {{"slow", "cpu"}, 4}, {{"ram", "memory"}, 4}};
  Rooms rooms_ = {{"a", Node("ssd", "r", 1)},
                  {"b", Node("hdd", "r", 2)},
                  {"c", Node("hdd", "s", 2)},
                  {"d", Node("hdd", "s", 1)}};
};

TEST_F(FittingTest, QuotaIsOfOneFlavorForAPodSet) {
  EXPECT_TRUE(OfQuota({Set(4, 1)}));
  EXPECT_FALSE(OfQuota({Set(5, 1)})) << "there are 6, of two flavors";
  EXPECT_TRUE(OfQuota({Set(4, 1), Set(2, 1)})) << "each set has its own";
  EXPECT_FALSE(OfQuota({Set(4, 1), Set(3, 1)}));
  EXPECT_TRUE(OfQuota({Set(4, 1, 1)}));
  EXPECT_FALSE(OfQuota({Set(1, 1, 5)}));
  AskedSet fewer = Set(5, 1);
  fewer.least = 4;
  EXPECT_TRUE(OfQuota({fewer}));
  AskedSet gpu = Set(1, 1);
  gpu.requests.push_back({.name = "gpu", .amount = 1});
  EXPECT_FALSE(OfQuota({gpu})) << "the queue has none";
}

TEST_F(FittingTest, FlavorsAreThoseThatThePodsMayHave) {
  AskedSet on_fast = Set(3, 1);
  on_fast.selector = {{"disk", "ssd"}};
  EXPECT_FALSE(OfQuota({on_fast}));
  on_fast.selector = {{"zone", "z"}};
  EXPECT_TRUE(OfQuota({on_fast})) << "no flavor knows of zones";
  flavors_["slow"].tainted = true;
  EXPECT_FALSE(OfQuota({Set(3, 1)}));
  EXPECT_FALSE(OfQuota({Required(Set(1, 1), "rack")})) << "no flavor has a topology";
  flavors_["fast"].topology = "t";
  EXPECT_TRUE(OfQuota({Required(Set(1, 1), "rack")}));
  EXPECT_FALSE(OfQuota({Set(1, 1)})) << "what is left has one, and it does not ask";
}

TEST_F(FittingTest, NodesAreThoseOfTheFlavors) {
  EXPECT_TRUE(OnNodes({Set(4, 1, 1)}));
  EXPECT_FALSE(OnNodes({Set(2, 2, 1), Set(1, 2, 1)})) << "of the other flavor no node has 2";
  rooms_["b"].free["pods"] = 0;
  EXPECT_FALSE(OnNodes({Set(4, 1)}));
}

TEST_F(FittingTest, PodsStandWhereTheyAskTo) {
  ByTopology();
  EXPECT_TRUE(OnNodes({Required(Set(3, 1), "rack")})) << "in s";
  EXPECT_FALSE(OnNodes({Required(Set(4, 1), "rack")}));
  EXPECT_TRUE(OnNodes({Required(Set(2, 1), kHost)}));
  EXPECT_FALSE(OnNodes({Required(Set(3, 1), kHost)}));
  EXPECT_TRUE(OnNodes({Sliced(Set(4, 1), "rack", 2)}));
  EXPECT_FALSE(OnNodes({Sliced(Set(4, 1), "rack", 4)}));
  EXPECT_FALSE(OnNodes({Required(Set(2, 1), "rack"), Required(Set(3, 1), "rack")}))
      << "there is quota of 4 and of 2";
  left_[{"slow", "cpu"}] = 5;
  EXPECT_TRUE(OnNodes({Required(Set(2, 1), "rack"), Required(Set(3, 1), "rack")}));
}

}  // namespace
}  // namespace berth::explore
