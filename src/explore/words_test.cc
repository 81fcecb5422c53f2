// Goal: what is printed is English. Method: a table.
#include "explore/words.h"

#include <gtest/gtest.h>

namespace berth::explore {
namespace {

TEST(WordsTest, OneIsNotMany) {
  EXPECT_EQ(Counted(0, "state"), "0 states");
  EXPECT_EQ(Counted(1, "state"), "1 state");
  EXPECT_EQ(Counted(2, "state"), "2 states");
}

}  // namespace
}  // namespace berth::explore
