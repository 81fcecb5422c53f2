// Goal: a set of rows is what was put in and not taken out, whatever came between. Method: random
// steps beside std::set; what is not in it is not taken out.
#include "model/row_set.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <set>

namespace berth::model {
namespace {

RC_GTEST_PROP(RowSetTest, IsWhatWasPutInAndNotTakenOut, ()) {
  RowSet set;
  std::set<uint32_t> expected;
  const int steps = *rc::gen::inRange(0, 200);
  for (int i = 0; i < steps; ++i) {
    const uint32_t row = *rc::gen::inRange(0u, 12u);
    if (expected.insert(row).second) {
      set.Add(row);
    } else {
      expected.erase(row);
      set.Remove(row);
    }
    RC_ASSERT(set.empty() == expected.empty());
    RC_ASSERT(set.rows().size() == expected.size());
    RC_ASSERT(std::set<uint32_t>(set.rows().begin(), set.rows().end()) == expected);
  }
}

TEST(RowSetDeathTest, WhatIsNotInItIsNotTakenOut) {
  RowSet set;
  set.Add(3);
  EXPECT_DEATH(set.Remove(2), "");
  EXPECT_DEATH(set.Remove(9), "");
}

}  // namespace
}  // namespace berth::model
