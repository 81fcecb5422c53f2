// Goal: what a pod's annotations say of its simulated containers is read, or told to be wrong.
// Method: annotations by hand.
#include "api/run_plan.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace berth::api {
namespace {

TEST(RunPlan, ReadsExitCodesAndNamesWhatItCannotRead) {
  const auto codes = RunPlanOf({{"berth.dev/exit-code", "1,0"}});
  EXPECT_EQ(codes->exit_code(0), 1);
  EXPECT_EQ(codes->exit_code(1), 0);
  EXPECT_EQ(codes->exit_code(9), 0);
  EXPECT_EQ(RunPlanOf({})->exit_code(3), 0);
  for (const char* bad : {"", "x", "256", "-1", "1,", "1, 0"}) {
    const auto plan = RunPlanOf({{"berth.dev/exit-code", bad}});
    ASSERT_FALSE(plan.has_value()) << bad;
    EXPECT_NE(plan.error().message.find("berth.dev/exit-code"), std::string::npos);
  }
}

TEST(RunPlan, WarnsOfWhatItCannotReadOrDoesNotKnow) {
  EXPECT_EQ(AnnotationWarnings({{"a", "b"},
                                {"berth.dev/exit-code", "1,0"},
                                {"berth.dev/gpu-index", "0,3"},
                                {"berth.dev/run-for", "90s"}}),
            std::vector<std::string>());
  EXPECT_EQ(
      AnnotationWarnings({{"berth.dev/exit-code", "x"},
                          {"berth.dev/gpu-index", "0,"},
                          {"berth.dev/run-for", "soon"},
                          {"berth.dev/runfor", "90s"}}),
      (std::vector<std::string>{
          "metadata.annotations[berth.dev/exit-code]: the pod will fail: annotation "
          "berth.dev/exit-code: \"x\" is no exit code between 0 and 255",
          "metadata.annotations[berth.dev/gpu-index]: \"0,\" is no list of devices, as 0,3: it is "
          "ignored",
          "metadata.annotations[berth.dev/run-for]: the pod will fail: annotation "
          "berth.dev/run-for: invalid duration \"soon\"",
          "metadata.annotations[berth.dev/runfor]: berth knows no such annotation of pods"}));
}

}  // namespace
}  // namespace berth::api
