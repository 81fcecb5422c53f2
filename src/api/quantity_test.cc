// Goal: quantities parse, round, compare and print as upstream's do. Method: tables of texts with
// what the genuine parser was seen to make of them, and round-trip and order laws over generated
// amounts.

#include "api/quantity.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <string>
#include <tuple>
#include <vector>

namespace berth::api {
namespace {

struct Row {
  std::string_view text;
  std::string_view canonical;
  int64_t milli;
  int64_t whole;
};

constexpr int64_t kMax = INT64_MAX;

TEST(QuantityTest, ParsesRoundsAndPrintsAsUpstream) {
  const std::vector<Row> rows = {
      {"0", "0", 0, 0},
      {"0Mi", "0", 0, 0},
      {"0.000", "0", 0, 0},
      {".", "0", 0, 0},
      {"-", "0", 0, 0},
      {"1", "1", 1000, 1},
      {"100m", "100m", 100, 1},
      {"0.1", "100m", 100, 1},
      {"0.5", "500m", 500, 1},
      {".5", "500m", 500, 1},
      {"1.5", "1500m", 1500, 2},
      {"1.500", "1.500", 1500, 2},
      {"01", "01", 1000, 1},
      {"1000", "1k", 1'000'000, 1000},
      {"1000m", "1", 1000, 1},
      {"1024Mi", "1Gi", 1'073'741'824'000, 1'073'741'824},
      {"1000Mi", "1000Mi", 1'048'576'000'000, 1'048'576'000},
      {"1.5Gi", "1536Mi", 1'610'612'736'000, 1'610'612'736},
      {"0.5Ki", "512", 512'000, 512},
      {"0.3Ki", "307200m", 307'200, 308},
      {"1e3", "1e3", 1'000'000, 1000},
      {"1E3", "1E3", 1'000'000, 1000},
      {"12e6", "12e6", 12'000'000'000, 12'000'000},
      {"1e4", "10e3", 10'000'000, 10'000},
      {"5e-2", "50e-3", 50, 1},
      {"1n", "1n", 1, 1},
      {"0.1n", "1n", 1, 1},
      {"1.1n", "2n", 1, 1},
      {"1u", "1u", 1, 1},
      {"-1.5", "-1500m", -1500, -2},
      {"-0.1n", "-1n", -1, -1},
      {"-1Gi", "-1Gi", -1'073'741'824'000, -1'073'741'824},
      {"+3", "+3", 3000, 3},
      {"8Ei", "9223372036854775807", kMax, kMax},
      {"7Ei", "7Ei", kMax, 8'070'450'532'247'928'832},
      {"9223372036854775807", "9223372036854775807", kMax, kMax},
      {"9223372036854775808", "9223372036854775808", kMax, kMax},
      {"1E", "1E", kMax, 1'000'000'000'000'000'000},
      {"100E", "100E", kMax, kMax},
      {"0.0000000000000000000000000000000000001Ei", "1n", 1, 1},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.text);
    const Result<Quantity> quantity = ParseQuantity(row.text);
    ASSERT_TRUE(quantity.has_value()) << quantity.error().message;
    EXPECT_EQ(CanonicalQuantity(row.text).value(), row.canonical);
    EXPECT_EQ(quantity->milli(), row.milli);
    EXPECT_EQ(quantity->whole(), row.whole);
    EXPECT_EQ(ParseScaled(row.text, -3).value(), row.milli);
    EXPECT_EQ(ParseScaled(row.text, 0).value(), row.whole);
  }
}

TEST(QuantityTest, RefusesWhatUpstreamRefusesWithItsWords) {
  constexpr std::string_view kFormat =
      "quantities must match the regular expression "
      "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
  constexpr std::string_view kSuffix = "unable to parse quantity's suffix";
  const std::vector<std::pair<std::string_view, std::string_view>> rows = {
      {"", kFormat},      {"1 Gi", kFormat},  {"1x", kFormat},   {"abc", kFormat},
      {"1.2.3", kFormat}, {"1Gi5x", kFormat}, {"1KiB", kFormat}, {"1K", kSuffix},
      {"1ki", kSuffix},   {"1mm", kSuffix},   {"1e", kSuffix},   {"1e+", kSuffix},
      {"1Gi5", kSuffix},  {"1+1", kSuffix},
  };
  for (const auto& [text, message] : rows) {
    SCOPED_TRACE(text);
    const Result<Quantity> quantity = ParseQuantity(text);
    ASSERT_FALSE(quantity.has_value());
    EXPECT_EQ(quantity.error().message, message);
  }
  EXPECT_EQ(ParseQuantity(std::string(60, '7')).error().code, ErrorCode::kTooLarge);
  EXPECT_EQ(ParseQuantity("1e99999").error().code, ErrorCode::kTooLarge);
  EXPECT_EQ(ParseQuantity("10e1000").error().code, ErrorCode::kTooLarge);
  EXPECT_EQ(CanonicalQuantity("10e999"), "10e999");
}

// The API server takes these, so that a pod with one waits for somebody to read it.
TEST(QuantityTest, WhatIsTooLargeForOneHasAnAmountThatIsRoundedAndSaturated) {
  const std::string zeros(40, '0');
  const std::vector<std::tuple<std::string, int64_t, int64_t>> rows = {
      // Text, milli, whole.
      {"100000000000000000000000000000000000000001", kMax, kMax},
      {"-100000000000000000000000000000000000000001", -kMax, -kMax},
      {std::string(60, '7') + "Gi", kMax, kMax},
      {std::string(60, '7') + "e-57", 777'778, 778},
      {"1e1001", kMax, kMax},
      {"-1e1001", -kMax, -kMax},
      {"1e9223372036854775807", kMax, kMax},
      {"1e-1001", 1, 1},
      {"-1e-1001", -1, -1},
      {"1e-9223372036854775808", 1, 1},
      {"0e1001", 0, 0},
      {"0e-1001", 0, 0},
      // What doesn't fit counts as far as it goes: it is rounded up.
      {"1." + zeros + "1", 1001, 2},
      {"-1." + zeros + "1", -1001, -2},
      {"1." + zeros + "1Ki", 1'024'001, 1025},
      {std::string(38, '9') + "9e-38", 10'000, 10},
      // An exponent that the point takes back.
      {"1" + std::string(2000, '0') + "e-1999", 10'000, 10},
      {"0." + std::string(2000, '0') + "1e2002", 10'000, 10},
  };
  for (const auto& [text, milli, whole] : rows) {
    SCOPED_TRACE(text);
    EXPECT_EQ(ParseQuantity(text).error().code, ErrorCode::kTooLarge);
    EXPECT_EQ(ParseScaled(text, -3).value(), milli);
    EXPECT_EQ(ParseScaled(text, 0).value(), whole);
  }
}

TEST(QuantityTest, NumbersOfAnyLengthAreCountedAsOnPaper) {
  EXPECT_TRUE(rc::check("scaled", [] {
    const auto digits = [](int most) {
      std::string text;
      const auto count = *rc::gen::inRange<int>(0, most);
      const auto last = *rc::gen::element('0', '1', '9');  // Many zeros, or none.
      for (int i = 0; i < count; ++i)
        text += static_cast<char>(*rc::gen::inRange<int>('0', last + 1));
      return text;
    };
    const std::string whole = digits(60);
    const std::string fraction = digits(60);
    const auto exponent = *rc::gen::inRange<int>(-70, 70);
    const auto scale = *rc::gen::element<int32_t>(0, -3);
    // The digits, with the point moved to behind what counts.
    std::string number = std::string(200, '0') + whole + fraction + std::string(200, '0');
    const auto point = static_cast<size_t>(200 + static_cast<int>(whole.size()) + exponent - scale);
    const bool rest = number.find_first_not_of('0', point) != std::string::npos;
    number.resize(point);
    number.erase(0, std::min(number.find_first_not_of('0'), number.size()));
    const int64_t counted =
        number.size() > 19
            ? kMax
            : static_cast<int64_t>(std::min<uint64_t>(
                  (number.empty() ? 0 : std::stoull(number)) + (rest ? 1 : 0), uint64_t{kMax}));
    const std::string text = whole + "." + fraction + "e" + std::to_string(exponent);
    RC_ASSERT(ParseScaled(text, scale).value() == counted);
    RC_ASSERT(ParseScaled("-" + text, scale).value() == -counted);
  }));
}

TEST(QuantityTest, PrintingRoundTripsAndIsAFixedPoint) {
  EXPECT_TRUE(rc::check("print . parse", [] {
    const auto mantissa = *rc::gen::arbitrary<int64_t>();
    const std::string suffix = *rc::gen::elementOf(
        std::vector<std::string>{"", "n", "u", "m", "k", "M", "G", "Ki", "Mi", "e3", "e-3", "E"});
    const Result<Quantity> first = ParseQuantity(std::to_string(mantissa) + suffix);
    RC_ASSERT(first.has_value());
    const std::string text = ToString(*first);
    const Result<Quantity> second = ParseQuantity(text);
    RC_ASSERT(second.has_value());
    RC_ASSERT(std::is_eq(Compare(*first, *second)));
    RC_ASSERT(ToString(*second) == text);
  }));
}

TEST(QuantityTest, TheShortWayAgreesWithTheLongOne) {
  EXPECT_TRUE(rc::check("scaled", [] {
    const auto digits = *rc::gen::inRange<int>(0, 16);
    std::string text;
    for (int i = 0; i < digits; ++i) text += static_cast<char>(*rc::gen::inRange('0', ':'));
    text += *rc::gen::elementOf(std::vector<std::string>{"", "m", "k", "M", "G", "Ki", "Mi", "Gi",
                                                         "Ti", "T", "u", "e3", ".5", "x"});
    const int32_t scale = *rc::gen::element(0, -3);
    const Result<Quantity> slow = ParseQuantity(text);
    const Result<int64_t> fast = ParseScaled(text, scale);
    RC_ASSERT(slow.has_value() == fast.has_value());
    if (slow) RC_ASSERT(slow->scaled(scale) == *fast);
  }));
}

TEST(QuantityTest, OrderAgreesWithWideIntegers) {
  EXPECT_TRUE(rc::check("compare and add", [] {
    const auto a = *rc::gen::inRange<int64_t>(-2'000'000'000, 2'000'000'000);
    const auto b = *rc::gen::inRange<int64_t>(-2'000'000'000, 2'000'000'000);
    const auto unit = *rc::gen::elementOf(std::vector<std::string>{"m", "", "k"});
    const int64_t factor = unit == "m" ? 1 : unit == "k" ? 1'000'000 : 1000;
    const Quantity left = ParseQuantity(std::to_string(a) + "m").value();
    const Quantity right = ParseQuantity(std::to_string(b) + unit).value();
    RC_ASSERT(std::is_eq(Compare(left, right)) == (a == b * factor));
    RC_ASSERT(std::is_lt(Compare(left, right)) == (a < b * factor));
    RC_ASSERT(Add(left, right).value().milli() == a + b * factor);
  }));
}

}  // namespace
}  // namespace berth::api
