#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "cli/command_line.h"
#include "cmd/commands.h"
#include "testing/files.h"

// Goal: `berth replay openb` names what is wrong with its files, or runs the rest and says how much
// it left out. Method: small files in a folder of the test's own; exit code, stdout, stderr and
// report are read.
namespace berth::cmd {
namespace {

using ::testing::HasSubstr;

constexpr std::string_view kNodes =
    "sn,cpu_milli,memory_mib,gpu,model\nn1,8000,8192,2,M1\nn2,8000,8192,0,\n";
constexpr std::string_view kPods =
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec\n"
    "a,1000,1024,1,500,\nb,1000,1024,1,1000,M1\nc,9000,1,1,1000,\n";

class ReplayCommand : public ::testing::Test {
 protected:
  std::string File(const std::string& name, std::string_view text) {
    std::ofstream(folder_ / name, std::ios::binary) << text;
    return folder_ / name;
  }
  struct Ran {
    int code = 0;
    std::string out;
    std::string err;
  };
  static Ran Run(const cli::ReplayOptions& options) {
    ::testing::internal::CaptureStdout();
    ::testing::internal::CaptureStderr();
    Ran ran{.code = Replay(options)};
    ran.out = ::testing::internal::GetCapturedStdout();
    ran.err = ::testing::internal::GetCapturedStderr();
    return ran;
  }
  Ran RunWith(const std::string& nodes, const std::string& pods) {
    return Run({.nodes_csv = nodes, .pods_csv = pods, .engine_only = true});
  }

  const berth::testing::TempFolder temporary_{"replay"};
  const std::filesystem::path& folder_ = temporary_.path();
};

TEST_F(ReplayCommand, NamesAFileThatCantBeRead) {
  const std::string good = File("nodes.csv", kNodes);
  const Ran absent = RunWith(good, folder_ / "none.csv");
  EXPECT_EQ(absent.code, cli::kFailed);
  EXPECT_THAT(absent.err, HasSubstr("none.csv: can't be read: No such file or directory"));
  const Ran directory = RunWith(folder_, good);
  EXPECT_EQ(directory.code, cli::kFailed);
  EXPECT_THAT(directory.err, HasSubstr(folder_.string() + ": is a directory"));
  const Ran empty = RunWith(File("empty.csv", ""), good);
  EXPECT_EQ(empty.code, cli::kFailed);
  EXPECT_THAT(empty.err, HasSubstr("empty.csv:1:1: the file is empty: want a header line"));
  const Ran swapped = RunWith(File("pods.csv", kPods), good);
  EXPECT_THAT(swapped.err, HasSubstr("pods.csv:1:1: the header lacks the column sn"));
}

TEST_F(ReplayCommand, SaysWhereARowIsBadAndRunsTheRestWhenAsked) {
  const std::string nodes = File("nodes.csv", kNodes);
  const std::string pods = File("pods.csv", std::string(kPods) + "d,-1,1,0,0,\ne,1,1,1,1000\n");
  const Ran strict = RunWith(nodes, pods);
  EXPECT_EQ(strict.code, cli::kFailed);
  EXPECT_THAT(strict.err, HasSubstr("pods.csv:5:3: cpu_milli: want an integer"));
  const std::string report = folder_ / "report.json";
  const Ran skipping = Run({.nodes_csv = nodes,
                            .pods_csv = pods,
                            .report = report,
                            .engine_only = true,
                            .skip_bad = true});
  EXPECT_EQ(skipping.code, cli::kOk) << skipping.err;
  EXPECT_THAT(skipping.err, HasSubstr("skipped: " + pods + ":6:13: the row ends before"));
  EXPECT_THAT(skipping.err, HasSubstr("pods.csv: 2 bad rows skipped, 3 rows read"));
  EXPECT_THAT(skipping.out, HasSubstr("without 2 bad rows"));
  const std::string json = berth::testing::ReadTestFile(report);
  EXPECT_THAT(json, HasSubstr("\"rows_skipped\": 2"));
  EXPECT_THAT(json, HasSubstr("\"gpu_capacity_milli\": 2000"));
}

// Before the run, which may take minutes.
TEST_F(ReplayCommand, SaysAtOnceThatAReportCannotBeWritten) {
  const std::string nodes = File("nodes.csv", kNodes);
  const std::string pods = File("pods.csv", kPods);
  const auto run = [&](const std::string& report) {
    return Run({.nodes_csv = nodes, .pods_csv = pods, .report = report, .engine_only = true});
  };
  for (const auto& [report, why] : {
           std::pair{folder_ / "none" / "report.json", "No such file or directory"},
           std::pair{folder_ / "nodes.csv" / "report.json", "Not a directory"},
           std::pair{folder_, "Is a directory"},
       }) {
    const Ran ran = run(report);
    EXPECT_EQ(ran.code, cli::kFailed) << report;
    EXPECT_THAT(ran.err, HasSubstr(report.string()));
    EXPECT_THAT(ran.err, HasSubstr(why));
    EXPECT_EQ(ran.out, "");
  }
  EXPECT_EQ(run(folder_ / "report.json").code, cli::kOk);
  EXPECT_EQ(run(folder_ / "report.json").code, cli::kOk);
}

TEST_F(ReplayCommand, RunsTheWholeStackUnlessAskedForTheEngineAlone) {
  const std::string nodes = File("nodes.csv", kNodes);
  const std::string pods = File("pods.csv", kPods);
  const auto hash = [](const std::string& out) { return out.substr(out.find("hash ")); };
  const Ran alone = RunWith(nodes, pods);
  const Ran whole = Run({.nodes_csv = nodes, .pods_csv = pods});
  EXPECT_EQ(whole.code, cli::kOk) << whole.err;
  EXPECT_EQ(hash(whole.out), hash(alone.out));
}

TEST_F(ReplayCommand, TellsOfATraceWithoutGpus) {
  const std::string nodes = File("nodes.csv", "sn,cpu_milli,memory_mib,gpu,model\nn,1,1,0,\n");
  const Ran ran = RunWith(nodes, File("pods.csv", kPods));
  EXPECT_EQ(ran.code, cli::kFailed);
  EXPECT_THAT(ran.err, HasSubstr("the nodes have no GPUs to fill"));
}

}  // namespace
}  // namespace berth::cmd
