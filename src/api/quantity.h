#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

// Kubernetes' resource amounts: "500m", "1.5Gi", "2e6" (the fixed-point numbers of
// k8s.io/apimachinery's resource package).
namespace berth::api {

__extension__ using Int128 = __int128;

enum class QuantityFormat : uint8_t { kDecimalExponent, kDecimalSi, kBinarySi };

// mantissa * 10^exponent, the mantissa without trailing decimal zeros (zero is {0, 0}); the
// exponent is at least -9, because parsing rounds up to nano. The format only matters for printing.
struct Quantity {
  Int128 mantissa = 0;
  int32_t exponent = 0;
  QuantityFormat format = QuantityFormat::kDecimalSi;

  [[nodiscard]] int sign() const { return mantissa > 0 ? 1 : mantissa < 0 ? -1 : 0; }
  // The amount in units of 10^scale, rounded away from zero and saturated to int64; whole() for
  // bytes and counts, milli() for cpu.
  [[nodiscard]] int64_t scaled(int32_t scale) const;
  [[nodiscard]] int64_t whole() const { return scaled(0); }
  [[nodiscard]] int64_t milli() const { return scaled(-3); }
  // Whether the amount is a whole number.
  [[nodiscard]] bool is_whole() const { return exponent >= 0; }
};

// By amount; formats don't count.
[[nodiscard]] std::strong_ordering Compare(const Quantity& a, const Quantity& b);
// The sum in a's format (b's when a is zero), or kTooLarge beyond 38 digits.
[[nodiscard]] Result<Quantity> Add(const Quantity& a, const Quantity& b);
[[nodiscard]] Quantity QuantityOf(int64_t whole);

// Accepts what upstream accepts, with upstream's error texts. Amounts under a nano are rounded up
// to it; binary amounts are capped at 2^63-1. More than 38 significant digits or an exponent beyond
// +-1000 is refused as kTooLarge, where upstream computes with numbers of any size.
[[nodiscard]] Result<Quantity> ParseQuantity(std::string_view text);

// ParseQuantity(text)->scaled(scale) for scale 0 or -3, without the detour for the common forms
// (digits, one of "m", "k", "M", "G", "Ki", "Mi", "Gi", "Ti"). For those who count, not print: what
// is too large for a Quantity has an amount, too, rounded and saturated as others.
[[nodiscard]] Result<int64_t> ParseScaled(std::string_view text, int32_t scale);

// The canonical form: no fraction, the largest suffix that keeps the mantissa whole.
[[nodiscard]] std::string ToString(const Quantity& quantity);

// What upstream prints after reading `text`: the text itself where its parser keeps it (like
// "1.500"), else the canonical form.
[[nodiscard]] Result<std::string> CanonicalQuantity(std::string_view text);

}  // namespace berth::api
