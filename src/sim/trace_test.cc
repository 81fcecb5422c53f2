#include "sim/trace.h"

#include <gtest/gtest.h>

#include <string>

// Goal: good rows are read, bad ones are named by line and column and never crash or vanish.
// Method: one row per rule, good and bad.
namespace berth::sim {
namespace {

constexpr std::string_view kPodsHeader = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec\n";

Result<Trace<TracePod>> Pods(std::string_view rows, bool skip_bad = false) {
  return ParseTracePods(std::string(kPodsHeader) + std::string(rows),
                        {.file_name = "p.csv", .skip_bad = skip_bad});
}

TEST(TraceTest, ReadsRowsByColumnName) {
  const auto pods = ParseTracePods(
      "\xef\xbb\xbfgpu_milli,qos,name,memory_mib,num_gpu,cpu_milli\r\n500,LS,a,2048,1,"
      "1500\r\n\r\n1000,BE,\"b\",1,8,0",
      {.file_name = "p.csv"});
  ASSERT_TRUE(pods.has_value()) << pods.error().message;
  ASSERT_EQ(pods->rows.size(), 2u);
  EXPECT_EQ(pods->rows[0], (TracePod{.name = "a",
                                     .cpu_milli = 1500,
                                     .memory_mib = 2048,
                                     .gpus_count = 1,
                                     .gpu_milli_each = 500}));
  EXPECT_EQ(pods->rows[1].gpu_milli(), 8000);
}

TEST(TraceTest, ModelsAreASortedSet) {
  const auto pods = Pods("a,1,1,1,1000,T4|A10|T4\nb,1,1,0,0,T4\n");
  ASSERT_TRUE(pods.has_value()) << pods.error().message;
  EXPECT_EQ(pods->rows[0].gpu_models, (std::vector<std::string>{"A10", "T4"}));
  EXPECT_TRUE(pods->rows[1].gpu_models.empty()) << "a pod without GPUs runs anywhere";
}

TEST(TraceTest, ReadsNodes) {
  const auto nodes = ParseTraceNodes(
      "sn,cpu_milli,memory_mib,gpu,model\nn1,64000,262144,2,P100\nn2,8000,1024,0,\n",
      {.file_name = "n.csv"});
  ASSERT_TRUE(nodes.has_value()) << nodes.error().message;
  EXPECT_EQ(nodes->rows[0], (TraceNode{"n1", 64000, 262144, 2, "P100"}));
  EXPECT_EQ(nodes->rows[1], (TraceNode{"n2", 8000, 1024, 0, ""}));
}

struct BadRow {
  const char* row;
  const char* message;
};

TEST(TraceTest, NamesLineAndColumnOfWhatIsBad) {
  const BadRow rows[] = {
      {"a,x,1,0,0,", "p.csv:2:3: cpu_milli: want an integer from 0 to 1000000000, got \"x\""},
      {"a,-1,1,0,0,", "p.csv:2:3: cpu_milli: want an integer from 0 to 1000000000, got \"-1\""},
      {"a,1,99999999999999999999,0,0,",
       "p.csv:2:5: memory_mib: want an integer from 0 to 16777216, got \"99999999999999999999\""},
      {"a,1,1,17,1000,", "p.csv:2:7: num_gpu: want an integer from 0 to 16, got \"17\""},
      {"a,1,1,1,1001,", "p.csv:2:9: gpu_milli: want an integer from 0 to 1000, got \"1001\""},
      {"a,1,1,1,0,", "p.csv:2:9: gpu_milli: must not be 0 for a pod with a GPU"},
      {"a,1,1,2,500,", "p.csv:2:9: gpu_milli: must be 1000 for a pod with several GPUs"},
      {"A,1,1,0,0,",
       "p.csv:2:1: name: want a name of lower case letters, digits, '-' and '.', got \"A\""},
      {",1,1,0,0,",
       "p.csv:2:1: name: want a name of lower case letters, digits, '-' and '.', got \"\""},
      {"a,1,1,1,1000,T4|",
       "p.csv:2:14: gpu_spec: want a GPU model that can be a label's value, got \"\""},
      {"a,1,1", "p.csv:2:6: the row ends before \"num_gpu\""},
      {"a,1,1,1,1000", "p.csv:2:13: the row ends before \"gpu_spec\""},
      {"a,1,1,0,0,,7,8", "p.csv:2:12: the row has 8 fields, the header has 6"},
      {"a,1 ,1,0,0,", "p.csv:2:3: cpu_milli: want an integer from 0 to 1000000000, got \"1 \""},
      {"a,1,,0,0,", "p.csv:2:5: memory_mib: want an integer from 0 to 16777216, got \"\""},
      {"a,1,1e3,0,0,", "p.csv:2:5: memory_mib: want an integer from 0 to 16777216, got \"1e3\""},
      {"\"a,1", "p.csv:2:1: quoted field does not end on its line"},
      {"\"a\"b,1", "p.csv:2:4: text after a quoted field"},
      {"a\x01,1,1,0,0,",
       "p.csv:2:1: name: want a name of lower case letters, digits, '-' and '.', got \"a\\x01\""},
  };
  for (const BadRow& bad : rows) {
    const auto pods = Pods(bad.row);
    ASSERT_FALSE(pods.has_value()) << bad.row;
    EXPECT_EQ(pods.error().message, bad.message);
    const auto rest = Pods(std::string("ok-1,1,1,0,0,\n") + bad.row + "\nok-2,1,1,0,0,\n", true);
    ASSERT_TRUE(rest.has_value()) << rest.error().message;
    EXPECT_EQ(rest->rows.size(), 2u) << bad.row;
    EXPECT_EQ(rest->skipped.size(), 1u) << bad.row;
    EXPECT_TRUE(rest->skipped[0].starts_with("p.csv:3:")) << rest->skipped[0];
  }
}

TEST(TraceTest, ANameIsThereOnce) {
  const auto pods = Pods("a,1,1,0,0,\na,2,2,0,0,\n");
  ASSERT_FALSE(pods.has_value());
  EXPECT_EQ(pods.error().message, "p.csv:3:1: name: \"a\" is there twice");
}

TEST(TraceTest, AHeaderMustBeThereAndWhole) {
  for (const bool skip_bad : {false, true}) {
    const TraceOptions options{.file_name = "p.csv", .skip_bad = skip_bad};
    EXPECT_EQ(ParseTracePods("", options).error().message,
              "p.csv:1:1: the file is empty: want a header line");
    EXPECT_EQ(ParseTracePods("name,cpu_milli\n", options).error().message,
              "p.csv:1:1: the header lacks the column memory_mib");
    EXPECT_EQ(ParseTracePods("\r\n\n", options).error().message,
              "p.csv:1:1: the file is empty: want a header line");
    EXPECT_EQ(ParseTracePods("name,qos,cpu_milli,cpu_milli\n", options).error().message,
              "p.csv:1:20: the header has the column cpu_milli twice");
    EXPECT_EQ(ParseTraceNodes("\n\nname,gpu\n", {.file_name = "n.csv"}).error().message,
              "n.csv:3:1: the header lacks the column sn");
  }
}

}  // namespace
}  // namespace berth::sim
