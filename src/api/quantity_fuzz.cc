// Any text: a quantity or an error. What parses prints as text that reads back as the same amount,
// and the short way agrees. What is a quantity and too large for one has an amount all the same.

#include <cstdint>
#include <string_view>

#include "api/quantity.h"
#include "base/check.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace berth;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const Result<api::Quantity> quantity = api::ParseQuantity(text);
  const bool is_one = quantity || quantity.error().code == ErrorCode::kTooLarge;
  for (const int32_t scale : {0, -3}) {
    const Result<int64_t> fast = api::ParseScaled(text, scale);
    CHECK_EQ(fast.has_value(), is_one);
    if (fast) CHECK(text.starts_with('-') ? *fast <= 0 : *fast >= 0);
    if (quantity) CHECK_EQ(*fast, quantity->scaled(scale));
  }
  if (!quantity) return 0;
  const std::string printed = api::ToString(*quantity);
  const Result<api::Quantity> again = api::ParseQuantity(printed);
  CHECK(again.has_value());
  CHECK(api::Compare(*quantity, *again) == 0);
  // A binary amount that no power of 1024 divides prints without suffix, which reads back as
  // decimal.
  if (again->format == quantity->format) CHECK_EQ(api::ToString(*again), printed);
  CHECK(api::CanonicalQuantity(text).has_value());
  return 0;
}
