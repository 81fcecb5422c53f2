// Goal: golden files compare and rewrite what a handler says, and blank lines inside an output
// survive. Method: run a small file that exercises both forms; change the answer and see the
// difference reported.
#include "testing/datadriven.h"

#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

namespace berth::testing {
namespace {

std::string Echo(const Directive& directive) {
  if (directive.command == "value") return directive.Value("key", "none");
  if (directive.command == "blank") return "a\n\nb";
  return directive.input;
}

TEST(Datadriven, AnswersAreComparedWithTheFile) { RunGoldenFile(BERTH_TESTDATA "/echo.txt", Echo); }

TEST(Datadriven, ADifferenceFails) {
  EXPECT_NONFATAL_FAILURE(
      RunGoldenFile(BERTH_TESTDATA "/one.txt", [](const Directive&) { return "other"; }),
      "one.txt:1");
}

TEST(Datadriven, FilesAreSorted) { EXPECT_EQ(GoldenFiles(BERTH_TESTDATA).size(), 2u); }

}  // namespace
}  // namespace berth::testing
