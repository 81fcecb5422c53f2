// Goal: times are printed as Go prints them. Method: a table; each reads back as the same.
#include "config/print.h"

#include <gtest/gtest.h>

#include <limits>
#include <utility>

namespace berth::config {
namespace {

TEST(PrintTest, TimesAsGoHasThem) {
  for (const auto& [ns, text] : {
           std::pair{int64_t{0}, "0s"},
           std::pair{int64_t{1}, "1ns"},
           std::pair{int64_t{1'500}, "1.5µs"},
           std::pair{int64_t{250'000'000}, "250ms"},
           std::pair{int64_t{1'000'000'000}, "1s"},
           std::pair{int64_t{90'050'000'000}, "1m30.05s"},
           std::pair{int64_t{3'600'000'000'000}, "1h0m0s"},
           std::pair{int64_t{-1'000'000}, "-1ms"},
           std::pair{std::numeric_limits<int64_t>::min(), "-2562047h47m16.854775808s"},
       }) {
    EXPECT_EQ(GoText(Duration{ns}), text);
  }
}

}  // namespace
}  // namespace berth::config
