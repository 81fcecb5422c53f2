// Goal: what the process takes is told by the names of Prometheus' clients. Method: lines of
// proc(5), and this process.
#include "cmd/process_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::cmd {
namespace {

using ::testing::ContainsRegex;

TEST(ProcessMetrics, ReadWhatProcSaysWhateverTheNameIs) {
  const std::string tail = " S 1 2 3 4 5 6 7 8 9 10 250 50 1 1 20 0 4 0 777 4096000 25 99 1";
  for (const char* name : {"(berth)", "(a b)", "(x) S 9 (y)"}) {
    ProcessStat stat;
    ASSERT_TRUE(ReadProcessStat(std::string("12 ") + name + tail, stat)) << name;
    EXPECT_EQ(stat.cpu_ticks, 300U);
    EXPECT_EQ(stat.start_ticks, 777U);
    EXPECT_EQ(stat.virtual_bytes, 4'096'000U);
    EXPECT_EQ(stat.resident_pages, 25U);
  }
  ProcessStat stat;
  for (const char* text : {"", "12 (berth", "12 (berth) S 1 2", "12 (berth)"})
    EXPECT_FALSE(ReadProcessStat(text, stat)) << text;
  EXPECT_FALSE(ReadProcessStat("1 (b) S 1 2 3 4 5 6 7 8 9 10 x 50 1 1 20 0 4 0 777 4 5", stat));
}

TEST(ProcessMetrics, AreOfThisProcess) {
  const std::string text = ProcessMetrics();
  EXPECT_THAT(text, ContainsRegex("\nprocess_cpu_seconds_total [0-9]+\\.[0-9][0-9]\n"));
  EXPECT_THAT(text, ContainsRegex("\nprocess_resident_memory_bytes [1-9][0-9]{5,}\n"));
  EXPECT_THAT(text, ContainsRegex("\nprocess_start_time_seconds 1[0-9]{9}\\.[0-9][0-9]\n"));
  EXPECT_THAT(text, ContainsRegex("\nprocess_open_fds [1-9][0-9]*\n"));
  EXPECT_THAT(text, ContainsRegex("\nprocess_max_fds [1-9][0-9]*\n"));
}

}  // namespace
}  // namespace berth::cmd
