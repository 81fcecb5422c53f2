// Goal: each piece of work is done once, whatever the number of threads. Method: counts of calls.
#include "cmd/parallel.h"

#include <gtest/gtest.h>

#include <atomic>
#include <vector>

namespace berth::cmd {
namespace {

TEST(Parallel, EachIsDoneOnceAndAllAreDoneAtTheEnd) {
  for (const unsigned threads : {0U, 1U, 3U}) {
    for (const uint64_t count : {0U, 1U, 2U, 1000U}) {
      std::vector<std::atomic<int>> calls(count);
      ForEachInParallel(count, threads, [&](uint64_t i) { ++calls[i]; });
      for (const std::atomic<int>& each : calls) {
        ASSERT_EQ(each, 1) << threads << " threads, " << count;
      }
    }
  }
}

}  // namespace
}  // namespace berth::cmd
