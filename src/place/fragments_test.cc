#include "place/fragments.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cmath>

// Goal: the fragment of a node is the paper's, and its score the published quantisation. Method: a
// twin that goes through the typical pods one by one; the sigmoid of the C library as the twin of
// the thresholds.
namespace berth::place {
namespace {

TypicalPod Share(int64_t cpu, uint32_t milli, int64_t count,
                 std::vector<model::NameId> models = {}) {
  return {
      .cpu_milli = cpu, .gpu = {.share_milli = milli}, .models = std::move(models), .count = count};
}
TypicalPod Whole(int64_t cpu, uint32_t devices, int64_t count) {
  return {.cpu_milli = cpu, .gpu = {.devices_count = devices}, .count = count};
}

int64_t FragmentTwin(const std::vector<TypicalPod>& typical, const Leftover& node) {
  int64_t sum = 0;
  int64_t total = 0;
  for (const int32_t milli : node.devices_milli) total += milli;
  for (const TypicalPod& pod : typical) {
    const int64_t each = pod.gpu.share_milli > 0 ? pod.gpu.share_milli : 1000;
    const int64_t devices = std::max<int64_t>(pod.gpu.devices_count, 1);
    const bool allowed =
        pod.models.empty() || std::ranges::find(pod.models, node.gpu_model) != pod.models.end();
    const bool runs =
        !pod.gpu.none() && allowed && pod.cpu_milli <= node.cpu_milli &&
        std::ranges::count_if(node.devices_milli, [&](int32_t m) { return m >= each; }) >= devices;
    int64_t useless = total;
    if (runs) {
      useless = 0;
      for (const int32_t milli : node.devices_milli) useless += milli < each ? milli : 0;
    }
    sum += pod.count * useless;
  }
  return sum;
}

TEST(FragmentTest, CountsWhatATypicalPodCantUse) {
  const std::vector<TypicalPod> typical = {
      Share(1000, 400, 3), Whole(2000, 1, 1), {.cpu_milli = 1, .count = 1}};
  const FragmentTable table(typical);
  Leftover node{.cpu_milli = 4000, .devices_milli = {1000, 300}};
  // The share and the whole pod run and leave the 300; the pod without GPU leaves all.
  EXPECT_EQ(table.Fragment(node), 3 * 300 + 1 * 300 + 1300);
  node.cpu_milli = 1500;
  EXPECT_EQ(table.Fragment(node), 3 * 300 + 1300 + 1300) << "the whole pod lacks cpu";
  node.devices_milli = {};
  EXPECT_EQ(table.Fragment(node), 0);
}

TEST(FragmentTest, IsWhatGoingThroughThePodsSays) {
  EXPECT_TRUE(rc::check([] {
    std::vector<TypicalPod> typical;
    const int kinds = *rc::gen::inRange(1, 12);
    for (int i = 0; i < kinds; ++i) {
      const int64_t cpu = *rc::gen::element<int64_t>(0, 1000, 2000, 4000);
      const int64_t count = *rc::gen::inRange<int64_t>(1, 9);
      std::vector<model::NameId> models;
      if (*rc::gen::inRange(0, 3) == 0) models = {model::NameId{1}, model::NameId{3}};
      switch (*rc::gen::inRange(0, 3)) {
        case 0:
          typical.push_back(Share(cpu, *rc::gen::element(200u, 500u, 700u), count, models));
          break;
        case 1:
          typical.push_back(Whole(cpu, *rc::gen::element(1u, 2u, 4u), count));
          break;
        default:
          typical.push_back({.cpu_milli = cpu, .count = count});
      }
    }
    const FragmentTable table(typical);
    Leftover node{.cpu_milli = *rc::gen::element<int64_t>(0, 999, 1000, 3000, 9000),
                  .gpu_model = model::NameId{*rc::gen::inRange(0u, 4u)}};
    const int devices = *rc::gen::inRange(0, 9);
    for (int d = 0; d < devices; ++d) {
      node.devices_milli[static_cast<size_t>(d)] = *rc::gen::element(0, 199, 200, 500, 999, 1000);
    }
    RC_ASSERT(table.Fragment(node) == FragmentTwin(typical, node));
  }));
}

TEST(FragmentTest, ScoreIsTheFlooredSigmoid) {
  const std::vector<TypicalPod> typical = {Share(1000, 400, 7), Whole(2000, 1, 3)};
  const FragmentTable table(typical);
  EXPECT_EQ(table.Score(0), 50);
  EXPECT_EQ(table.Score(-1), 49);
  EXPECT_EQ(table.Score(INT64_MIN / 2), 0);
  EXPECT_EQ(table.Score(INT64_MAX / 2), 99);
  EXPECT_TRUE(rc::check([&] {
    const int64_t drop = *rc::gen::inRange<int64_t>(-80'000, 80'001);
    const double exact = 100 / (1 + std::exp(-static_cast<double>(drop) / 10'000.0));
    const double below = std::floor(exact);
    RC_PRE(exact - below > 1e-9 && below + 1 - exact > 1e-9);
    RC_ASSERT(table.Score(drop) == static_cast<int64_t>(below));
  }));
}

TEST(FragmentTest, ExpIsTheExponential) {
  for (double x = -30; x <= 30; x += 0.37) {
    EXPECT_NEAR(Exp(x) / std::exp(x), 1, 1e-14) << x;
  }
  EXPECT_EQ(Exp(0), 1);
}

TEST(FragmentTest, WithoutTypicalPodsAllNodesAreAlike) {
  const FragmentTable table;
  EXPECT_TRUE(table.empty());
  EXPECT_EQ(table.Fragment({.cpu_milli = 1000, .devices_milli = {1000}}), 0);
}

TEST(MostPopularTest, KeepsKindsUntilNineteenTwentieths) {
  std::vector<TypicalPod> pods(90, Whole(1, 1, 1));
  pods.insert(pods.end(), 5, Share(1, 500, 1));
  pods.insert(pods.end(), 4, Share(1, 400, 1));
  pods.push_back(Share(1, 300, 1));
  const auto kept = MostPopular(pods);
  ASSERT_EQ(kept.size(), 2u) << "90 + 5 of 100 are enough";
  EXPECT_EQ(kept[0].count, 90);
  EXPECT_EQ(kept[1].gpu.share_milli, 500u);
  pods.push_back(Share(1, 300, 1));
  EXPECT_EQ(MostPopular(pods).size(), 3u) << "95 of 101 are not";
}

TEST(MostPopularTest, TiesEndInTheLargerDemand) {
  const std::vector<TypicalPod> pods = {Share(1, 300, 1), Share(2, 300, 1), Whole(1, 2, 1),
                                        Whole(1, 1, 1)};
  const auto kept = MostPopular(pods);
  ASSERT_EQ(kept.size(), 4u);
  EXPECT_EQ(kept[0].gpu.devices_count, 2u);
  EXPECT_EQ(kept[1].gpu.devices_count, 1u);
  EXPECT_EQ(kept[2].cpu_milli, 2);
}

}  // namespace
}  // namespace berth::place
