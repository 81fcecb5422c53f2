#include "model/workload_stage.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace berth::model {
namespace {

// All that there can be, but for times that make no difference.
std::vector<WorkloadStatus> AllStatuses() {
  std::vector<WorkloadStatus> all;
  for (uint32_t bits = 0; bits < 1u << 9; ++bits) {
    const auto bit = [&](uint32_t i) { return ((bits >> i) & 1) != 0; };
    for (uint8_t evicted_for = 0; evicted_for < 4; ++evicted_for) {
      for (int64_t second = 1; second <= 3; ++second) {
        all.push_back({.active = bit(0),
                       .finished = bit(1),
                       .reserved = bit(2),
                       .admitted = bit(3),
                       .on_hold = bit(4),
                       .evicted_for = EvictedFor{evicted_for},
                       .held_back = bit(5),
                       .requeue_at = Instant::FromSeconds(second),
                       .checks_ready = bit(6),
                       .awaits_topology = bit(7),
                       .on_unhealthy_node = bit(8)});
      }
    }
  }
  return all;
}

// Goal: a workload that is finished or evicted, or has no quota, is never placed again, whatever
// else its object says; only one without quota, that is wanted, is tried. Method: all statuses.
TEST(WorkloadStageTest, WhoIsOverIsNotPlacedAgain) {
  const Instant now = Instant::FromSeconds(2);
  for (const WorkloadStatus& status : AllStatuses()) {
    const bool over =
        status.finished || status.evicted_for != EvictedFor::kNothing || !status.reserved;
    const bool due = status.on_unhealthy_node ||
                     (status.checks_ready && status.awaits_topology && !status.admitted);
    ASSERT_EQ(NeedsSecondPass(status), !over && due);
    ASSERT_EQ(IsQueued(status, now), !status.finished && !status.reserved && status.active &&
                                         !status.on_hold && !status.held_back &&
                                         status.requeue_at <= now);
  }
}

// Goal: terminal is final, and nothing else is. Method: all pairs of stages.
TEST(WorkloadStageTest, NothingLeavesFinished) {
  for (uint8_t from = 0; from < kWorkloadStagesCount; ++from) {
    for (uint8_t to = 0; to < kWorkloadStagesCount; ++to) {
      const bool leaves = WorkloadStage{from} == WorkloadStage::kFinished && from != to;
      EXPECT_EQ(MayJump(WorkloadStage{from}, WorkloadStage{to}), !leaves);
    }
  }
}

// Goal: the stage is that of what weighs most. Method: each thing on top of the ones before.
TEST(WorkloadStageTest, WhatWeighsMostIsTheStage) {
  WorkloadStatus status;
  EXPECT_EQ(StageOf(status), WorkloadStage::kPending);
  status.evicted_for = EvictedFor::kOther;  // And let go.
  EXPECT_EQ(StageOf(status), WorkloadStage::kPending);
  status = {.reserved = true};
  EXPECT_EQ(StageOf(status), WorkloadStage::kReserved);
  status.admitted = true;
  EXPECT_EQ(StageOf(status), WorkloadStage::kAdmitted);
  status.evicted_for = EvictedFor::kOther;
  EXPECT_EQ(StageOf(status), WorkloadStage::kEvicted);
  status.finished = true;
  EXPECT_EQ(StageOf(status), WorkloadStage::kFinished);
}

// Goal: who was evicted waits until it is told so, and until its time; its age is that of its
// eviction only where that was its own doing. Method: each alone, and on the instant.
TEST(WorkloadStageTest, WhoWasEvictedWaitsItsTime) {
  const Instant at = Instant::FromSeconds(10);
  WorkloadStatus status{.created = Instant::FromSeconds(1), .evicted_at = Instant::FromSeconds(5)};
  EXPECT_TRUE(BackoffIsOver(status, at));
  status.requeue_at = at;
  EXPECT_TRUE(BackoffIsOver(status, at));
  status.requeue_at = Instant::FromSeconds(11);
  EXPECT_FALSE(BackoffIsOver(status, at));
  status.requeue_at = {};
  status.held_back = true;
  EXPECT_FALSE(BackoffIsOver(status, at));

  for (const bool by_eviction : {false, true}) {
    status.evicted_for = EvictedFor::kOther;
    EXPECT_EQ(QueuedAt(status, by_eviction), status.created);
    status.evicted_for = EvictedFor::kCheck;
    EXPECT_EQ(QueuedAt(status, by_eviction), status.evicted_at);
    status.evicted_for = EvictedFor::kPodsNotReady;
    EXPECT_EQ(QueuedAt(status, by_eviction), by_eviction ? status.evicted_at : status.created);
  }
}

}  // namespace
}  // namespace berth::model
