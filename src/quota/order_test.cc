#include "quota/order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace berth::quota {
namespace {

// Goal: each criterion decides where those before it tie, and nothing else does. Method: contenders
// that each lead by one criterion alone and trail by all behind it, in every order of arrival. K057:
// what is compared are values, which nothing changes meanwhile, and the uid ends all ties.
TEST(OrderTest, EachCriterionEndsTheTiesOfTheOnesBefore) {
  const auto at = [](int64_t second) { return Instant::FromSeconds(second); };
  std::vector<Contender> contenders = {
      {.promised = true, .borrow = 9, .priority = 0, .queued_at = at(9), .uid = "a"},
      {.borrow = 0, .priority = 0, .queued_at = at(9), .uid = "b"},
      {.borrow = 1, .priority = 5, .queued_at = at(9), .uid = "c"},
      {.borrow = 1, .priority = 4, .queued_at = at(1), .uid = "e"},
      {.borrow = 1, .priority = 4, .queued_at = at(2), .uid = "d"},
      {.borrow = 1, .priority = 4, .queued_at = at(2), .uid = "f"}};
  std::vector<size_t> arrival = {0, 1, 2, 3, 4, 5};
  do {
    std::vector<Contender> order;
    for (const size_t i : arrival) order.push_back(contenders[i]);
    std::ranges::sort(order, IsServedBefore);
    std::string text;
    for (const Contender& contender : order) text += contender.uid;
    ASSERT_EQ(text, "abcedf");
  } while (std::ranges::next_permutation(arrival).found);
}

}  // namespace
}  // namespace berth::quota
