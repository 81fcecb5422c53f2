#include "api/quantity.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <optional>
#include <utility>

#include "base/check.h"

namespace berth::api {
namespace {

constexpr std::string_view kFormatError =
    "quantities must match the regular expression "
    "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
constexpr std::string_view kSuffixError = "unable to parse quantity's suffix";
constexpr int32_t kNano = -9;
constexpr int kDigitsMax = 38;  // 10^38 < 2^127.
constexpr int64_t kExponentMax = 1000;

struct Suffix {
  std::string_view text;
  int32_t exponent;
};
constexpr std::array<Suffix, 10> kDecimalSuffixes = {{{"n", -9},
                                                      {"u", -6},
                                                      {"m", -3},
                                                      {"", 0},
                                                      {"k", 3},
                                                      {"M", 6},
                                                      {"G", 9},
                                                      {"T", 12},
                                                      {"P", 15},
                                                      {"E", 18}}};
constexpr std::array<Suffix, 6> kBinarySuffixes = {
    {{"Ki", 10}, {"Mi", 20}, {"Gi", 30}, {"Ti", 40}, {"Pi", 50}, {"Ei", 60}}};

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// The pieces of a quantity's text, as upstream cuts them.
struct Pieces {
  bool positive = true;
  std::string_view whole;  // Digits before the point, without leading zeros.
  std::string_view fraction;
  std::string_view suffix;
};

std::optional<Pieces> Split(std::string_view text) {
  Pieces pieces;
  size_t at = 0;
  const auto digits = [&] {
    const size_t start = at;
    while (at < text.size() && IsDigit(text[at])) ++at;
    return text.substr(start, at - start);
  };
  if (at < text.size() && (text[at] == '-' || text[at] == '+')) {
    pieces.positive = text[at] == '+';
    ++at;
  }
  while (at < text.size() && text[at] == '0') ++at;
  pieces.whole = digits();
  if (at < text.size() && text[at] == '.') {
    ++at;
    pieces.fraction = digits();
  }
  const size_t suffix_start = at;
  const size_t letters_end = text.find_first_not_of("eEinumkKMGTP", at);
  at = std::min(letters_end, text.size());
  if (at < text.size() && (text[at] == '-' || text[at] == '+')) ++at;
  digits();
  if (at != text.size()) return std::nullopt;
  pieces.suffix = text.substr(suffix_start);
  return pieces;
}

struct Scale {
  int64_t exponent = 0;  // Of ten, or of two for the binary format.
  QuantityFormat format = QuantityFormat::kDecimalSi;
};

std::optional<Scale> InterpretSuffix(std::string_view suffix) {
  for (const Suffix& known : kDecimalSuffixes) {
    if (known.text == suffix) return Scale{known.exponent, QuantityFormat::kDecimalSi};
  }
  for (const Suffix& known : kBinarySuffixes) {
    if (known.text == suffix) return Scale{known.exponent, QuantityFormat::kBinarySi};
  }
  if (suffix.size() < 2 || (suffix[0] != 'e' && suffix[0] != 'E')) return std::nullopt;
  std::string_view number = suffix.substr(1);
  if (number[0] == '+') number.remove_prefix(1);
  int64_t exponent = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), exponent);
  if (error != std::errc() || end != number.data() + number.size()) return std::nullopt;
  if (suffix[1] == '+' && number.starts_with('-')) return std::nullopt;
  return Scale{exponent, QuantityFormat::kDecimalExponent};
}

Int128 PowerOfTen(int32_t exponent) {
  CHECK(exponent >= 0);
  CHECK_LE(exponent, kDigitsMax);
  Int128 power = 1;
  for (int32_t i = 0; i < exponent; ++i) power *= 10;
  return power;
}

int DigitsCount(Int128 value) {
  int count = 0;
  for (; value > std::numeric_limits<int64_t>::max() || value < std::numeric_limits<int64_t>::min();
       value /= 10) {
    ++count;
  }
  // Nearly all are small, and dividing 128 bits is slow.
  for (auto small = static_cast<int64_t>(value); small != 0; small /= 10) ++count;
  return count;
}

void Normalize(Quantity& quantity) {
  if (quantity.mantissa == 0) {
    quantity.exponent = 0;
    return;
  }
  constexpr Int128 kSmall = std::numeric_limits<int64_t>::max();
  const auto is_large = [&] { return quantity.mantissa > kSmall || quantity.mantissa < -kSmall; };
  while (is_large() && quantity.mantissa % 10 == 0) {
    quantity.mantissa /= 10;
    ++quantity.exponent;
  }
  if (is_large()) return;
  // Nearly all are small, and dividing 128 bits is slow.
  auto small = static_cast<int64_t>(quantity.mantissa);
  for (; small % 10 == 0; small /= 10) ++quantity.exponent;
  quantity.mantissa = small;
}

// Divides by 10^digits, away from zero.
Int128 DivideRoundingAway(Int128 value, int32_t digits) {
  if (value == 0) return 0;
  const Int128 one = value > 0 ? 1 : -1;
  if (digits > kDigitsMax) return one;
  const Int128 divisor = PowerOfTen(digits);
  return value / divisor + (value % divisor != 0 ? one : 0);
}

// |mantissa| * 2^bits, or nothing when it passes 128 bits.
std::optional<Int128> ShiftLeft(Int128 mantissa, int64_t bits) {
  Int128 product = 0;
  const Int128 factor = static_cast<Int128>(1) << bits;
  if (__builtin_mul_overflow(mantissa, factor, &product)) return std::nullopt;
  return product;
}

// The digits as a number and how many of them were dropped from the end (all zeros), or nothing
// past 38 digits.
std::optional<Quantity> ReadDigits(const Pieces& pieces) {
  Quantity quantity;
  int count = 0;
  int64_t zeros = 0;
  for (const std::string_view part : {pieces.whole, pieces.fraction}) {
    for (const char c : part) {
      if (c == '0') {
        ++zeros;
        continue;
      }
      if (quantity.mantissa != 0) {
        if (zeros > kDigitsMax || count + zeros > kDigitsMax) return std::nullopt;
        quantity.mantissa *= PowerOfTen(static_cast<int32_t>(zeros));
        count += static_cast<int>(zeros);
      }
      zeros = 0;
      if (++count > kDigitsMax) return std::nullopt;
      quantity.mantissa = quantity.mantissa * 10 + (c - '0');
    }
  }
  if (quantity.mantissa == 0) return quantity;
  const int64_t exponent = zeros - static_cast<int64_t>(pieces.fraction.size());
  if (exponent > kExponentMax || exponent < -kExponentMax) return std::nullopt;
  quantity.exponent = static_cast<int32_t>(exponent);
  return quantity;
}

constexpr Int128 kBinaryMax = std::numeric_limits<int64_t>::max();

// Applies a binary suffix: exact where it can be, capped at 2^63-1, rounded up to nano.
void ApplyBinary(Quantity& quantity, int64_t bits) {
  if (quantity.mantissa == 0) return;
  // 2^60 * 10^-9 has no more than 10 whole digits to spare: a longer fraction is cut to what can
  // still matter.
  if (quantity.exponent < -kDigitsMax) {
    quantity.mantissa = DivideRoundingAway(quantity.mantissa, -kDigitsMax - quantity.exponent);
    quantity.exponent = -kDigitsMax;
  }
  const Int128 unit = quantity.exponent < 0 ? PowerOfTen(-quantity.exponent) : 1;
  const bool capped = quantity.exponent + DigitsCount(quantity.mantissa) > 20;
  if (capped) {
    quantity.mantissa = kBinaryMax;
    quantity.exponent = 0;
    Normalize(quantity);
    return;
  }
  Int128 whole = quantity.mantissa / unit;
  Int128 rest = quantity.mantissa % unit;
  if (quantity.exponent > 0) {
    whole = quantity.mantissa * PowerOfTen(quantity.exponent);
    rest = 0;
  }
  const std::optional<Int128> whole_shifted = ShiftLeft(whole, bits);
  if (!whole_shifted || *whole_shifted > kBinaryMax) {
    quantity = {kBinaryMax, 0, quantity.format};
    Normalize(quantity);
    return;
  }
  if (rest == 0) {
    quantity.mantissa = *whole_shifted;
    quantity.exponent = 0;
    Normalize(quantity);
    return;
  }
  // rest / unit * 2^bits in nanos, bit by bit so that it stays within 128 bits (rest < unit <=
  // 10^38 < 2^127).
  Int128 nanos = *whole_shifted * 1'000'000'000;
  Int128 scaled = 0;
  for (int64_t i = 0; i < bits; ++i) {
    scaled *= 2;
    if (rest >= unit - rest) {
      rest -= unit - rest;
      ++scaled;
    } else {
      rest *= 2;
    }
  }
  nanos += scaled * 1'000'000'000;
  Int128 digit_value = 100'000'000;
  for (; digit_value > 0 && rest != 0; digit_value /= 10) {
    int digit = 0;
    Int128 next = 0;
    for (int i = 0; i < 10; ++i) {  // next = rest * 10 mod unit, digit = rest * 10 / unit.
      if (next >= unit - rest) {
        next -= unit - rest;
        ++digit;
      } else {
        next += rest;
      }
    }
    nanos += digit * digit_value;
    rest = next;
  }
  if (rest != 0) ++nanos;
  quantity.mantissa = std::min(nanos, kBinaryMax * 1'000'000'000);
  quantity.exponent = kNano;
  Normalize(quantity);
}

// The digits times what the suffix stands for, rounded up to nano.
Quantity InUnits(Quantity quantity, const Scale& scale) {
  quantity.format = scale.format;
  if (scale.format == QuantityFormat::kBinarySi) {
    ApplyBinary(quantity, scale.exponent);
    if (quantity.mantissa != 0 && Compare(quantity, QuantityOf(1)) < 0) {
      quantity.format = QuantityFormat::kDecimalSi;
    }
  } else if (quantity.mantissa != 0) {
    quantity.exponent += static_cast<int32_t>(scale.exponent);
    if (quantity.exponent < kNano) {
      quantity.mantissa = DivideRoundingAway(quantity.mantissa, kNano - quantity.exponent);
      quantity.exponent = kNano;
    }
    Normalize(quantity);
  }
  return quantity;
}

// Whether upstream's parser keeps the text as the printed form instead of canonicalising it.
bool KeepsText(const Pieces& pieces, const Scale& scale) {
  const std::string_view whole = pieces.whole.empty() ? "0" : pieces.whole;
  const auto length = static_cast<int64_t>(whole.size() + pieces.fraction.size());
  const std::string shifted = std::string(whole) + std::string(pieces.fraction);
  if (scale.format == QuantityFormat::kBinarySi) {
    if (!pieces.fraction.empty()) return false;
    const auto spare = 15 - length - static_cast<int64_t>(scale.exponent) * 3 / 10;
    return spare > 0 && std::stoll(shifted) % 8 != 0;
  }
  const int64_t exponent = scale.exponent - static_cast<int64_t>(pieces.fraction.size());
  return length <= 18 && exponent >= kNano && exponent % 3 == 0 && !shifted.ends_with("000") &&
         shifted[0] != '0';
}

struct Parsed {
  Quantity quantity;
  Pieces pieces;
  Scale scale;
};

Result<Parsed> Parse(std::string_view text) {
  if (text.empty()) return Fail(ErrorCode::kInvalid, std::string(kFormatError));
  const std::optional<Pieces> pieces = Split(text);
  if (!pieces) return Fail(ErrorCode::kInvalid, std::string(kFormatError));
  const std::optional<Scale> scale = InterpretSuffix(pieces->suffix);
  if (!scale) return Fail(ErrorCode::kInvalid, std::string(kSuffixError));
  std::optional<Quantity> digits = ReadDigits(*pieces);
  const auto beyond = [](int64_t exponent) {
    return exponent > kExponentMax || exponent < -kExponentMax;
  };
  // Zeros at the end of the digits count as exponent, too: what is printed must read back.
  if (!digits || beyond(scale->exponent) ||
      (scale->format != QuantityFormat::kBinarySi &&
       digits->exponent + scale->exponent > kExponentMax)) {
    return Fail(ErrorCode::kTooLarge,
                fmt::format("unable to parse numeric part of quantity: more than {} digits, or an "
                            "exponent beyond {}",
                            kDigitsMax, kExponentMax));
  }
  Quantity quantity = InUnits(*digits, *scale);
  if (!pieces->positive) quantity.mantissa = -quantity.mantissa;
  return Parsed{quantity, *pieces, *scale};
}

// What Parse() finds too large: its first digits, rounded up, and an exponent within bounds. Beyond
// these lies nothing that scaled() tells apart. REQUIRES: Parse() found the form to be good.
Quantity NearestHeld(std::string_view text) {
  const std::optional<Pieces> pieces = Split(text);
  CHECK(pieces.has_value());
  std::optional<Scale> scale = InterpretSuffix(pieces->suffix);
  CHECK(scale.has_value());
  std::string digits = std::string(pieces->whole) + std::string(pieces->fraction);
  digits.erase(0, digits.find_first_not_of('0'));
  const size_t kept = std::min(digits.size(), size_t{kDigitsMax});
  Quantity quantity;
  for (const char c : std::string_view(digits).substr(0, kept))
    quantity.mantissa = quantity.mantissa * 10 + (c - '0');
  if (digits.find_first_not_of('0', kept) != std::string::npos) ++quantity.mantissa;
  // An exponent in the text may be any that 64 bits hold.
  Int128 exponent = static_cast<Int128>(digits.size() - kept) - pieces->fraction.size();
  if (scale->format != QuantityFormat::kBinarySi) exponent += std::exchange(scale->exponent, 0);
  quantity.exponent =
      static_cast<int32_t>(std::clamp<Int128>(exponent, -kExponentMax, kExponentMax));
  quantity = InUnits(quantity, *scale);
  if (!pieces->positive) quantity.mantissa = -quantity.mantissa;
  return quantity;
}

std::string Print(Int128 value) { return fmt::format("{}", value); }

std::string PrintBinary(const Quantity& quantity) {
  Int128 amount = quantity.mantissa * PowerOfTen(quantity.exponent);
  size_t suffix = 0;
  while (suffix < kBinarySuffixes.size() && amount % 1024 == 0) {
    amount /= 1024;
    ++suffix;
  }
  return Print(amount) + (suffix == 0 ? "" : std::string(kBinarySuffixes.at(suffix - 1).text));
}

}  // namespace

int64_t Quantity::scaled(int32_t scale) const {
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  if (mantissa == 0) return 0;
  const int64_t limit = mantissa > 0 ? kMax : -kMax;
  const int32_t shift = exponent - scale;
  if (shift < 0) {
    const Int128 value = DivideRoundingAway(mantissa, -shift);
    if (value > kMax || value < -kMax) return limit;
    return static_cast<int64_t>(value);
  }
  Int128 value = mantissa;
  for (int32_t i = 0; i < shift; ++i) {
    if (value > kMax / 10 || value < -kMax / 10) return limit;
    value *= 10;
  }
  if (value > kMax || value < -kMax) return limit;
  return static_cast<int64_t>(value);
}

std::strong_ordering Compare(const Quantity& a, const Quantity& b) {
  if (a.sign() != b.sign()) return a.sign() <=> b.sign();
  if (a.sign() == 0) return std::strong_ordering::equal;
  const int length_a = DigitsCount(a.mantissa) + a.exponent;
  const int length_b = DigitsCount(b.mantissa) + b.exponent;
  if (length_a != length_b) return a.sign() > 0 ? length_a <=> length_b : length_b <=> length_a;
  // Of equal length: the one with the larger exponent has fewer digits, so scaling it up stays
  // within 38.
  Int128 left = a.mantissa;
  Int128 right = b.mantissa;
  if (a.exponent > b.exponent) left *= PowerOfTen(a.exponent - b.exponent);
  if (b.exponent > a.exponent) right *= PowerOfTen(b.exponent - a.exponent);
  return left < right
             ? std::strong_ordering::less
             : (left > right ? std::strong_ordering::greater : std::strong_ordering::equal);
}

Result<Quantity> Add(const Quantity& a, const Quantity& b) {
  if (a.mantissa == 0) return b;
  if (b.mantissa == 0) return a;
  const Quantity& high = a.exponent >= b.exponent ? a : b;
  const Quantity& low = a.exponent >= b.exponent ? b : a;
  const int32_t shift = high.exponent - low.exponent;
  if (shift + DigitsCount(high.mantissa) > kDigitsMax - 1 ||
      DigitsCount(low.mantissa) > kDigitsMax - 1) {
    return Fail(ErrorCode::kTooLarge, fmt::format("sum of {} and {} has more than {} digits",
                                                  ToString(a), ToString(b), kDigitsMax));
  }
  Quantity sum{high.mantissa * PowerOfTen(shift) + low.mantissa, low.exponent, a.format};
  Normalize(sum);
  return sum;
}

Quantity QuantityOf(int64_t whole) {
  Quantity quantity{whole, 0, QuantityFormat::kDecimalSi};
  Normalize(quantity);
  return quantity;
}

Result<int64_t> ParseScaled(std::string_view text, int32_t scale) {
  CHECK(scale == 0 || scale == -3);
  size_t at = 0;
  int64_t number = 0;
  // 9 digits times 2^30, and 12 digits times 1000, stay within int64.
  for (; at < text.size() && at <= 12 && IsDigit(text[at]); ++at) {
    number = number * 10 + (text[at] - '0');
  }
  const std::string_view suffix = text.substr(at);
  const bool milli = scale == -3;
  if (at > 0 && at <= 9) {
    if (suffix.empty()) return milli ? number * 1000 : number;
    if (suffix == "m") return milli ? number : (number + 999) / 1000;
    if (suffix == "Ki" && !milli) return number << 10;
    if (suffix == "Mi" && !milli) return number << 20;
    if (suffix == "Gi" && !milli) return number << 30;
    if (suffix == "k" && !milli) return number * 1000;
    if (suffix == "M" && !milli) return number * 1'000'000;
    if (suffix == "G" && !milli) return number * 1'000'000'000;
  }
  if (at > 0 && at <= 12 && suffix.empty()) return milli ? number * 1000 : number;
  const Result<Quantity> quantity = ParseQuantity(text);
  if (quantity) return quantity->scaled(scale);
  if (quantity.error().code != ErrorCode::kTooLarge) return std::unexpected(quantity.error());
  return NearestHeld(text).scaled(scale);
}

Result<Quantity> ParseQuantity(std::string_view text) {
  const Result<Parsed> parsed = Parse(text);
  if (!parsed) return std::unexpected(parsed.error());
  return parsed->quantity;
}

std::string ToString(const Quantity& quantity) {
  if (quantity.mantissa == 0) return "0";
  QuantityFormat format = quantity.format;
  if (format == QuantityFormat::kBinarySi) {
    const bool small =
        Compare(quantity, QuantityOf(1024)) < 0 && Compare(quantity, QuantityOf(-1024)) > 0;
    const bool prints =
        quantity.is_whole() && quantity.exponent + DigitsCount(quantity.mantissa) <= kDigitsMax;
    if (small || !prints) format = QuantityFormat::kDecimalSi;
  }
  if (format == QuantityFormat::kBinarySi) return PrintBinary(quantity);
  // The exponent goes down to a multiple of three; past the largest suffix the mantissa takes the
  // rest as zeros.
  int32_t exponent = quantity.exponent - ((quantity.exponent % 3) + 3) % 3;
  if (format == QuantityFormat::kDecimalSi) exponent = std::min(exponent, int32_t{18});
  std::string out = Print(quantity.mantissa);
  out.append(static_cast<size_t>(quantity.exponent - exponent), '0');
  if (format == QuantityFormat::kDecimalExponent) {
    return exponent == 0 ? out : fmt::format("{}e{}", out, exponent);
  }
  const auto* suffix = std::ranges::find(kDecimalSuffixes, exponent, &Suffix::exponent);
  CHECK(suffix != kDecimalSuffixes.end());
  return out + std::string(suffix->text);
}

Result<std::string> CanonicalQuantity(std::string_view text) {
  const Result<Parsed> parsed = Parse(text);
  if (!parsed) return std::unexpected(parsed.error());
  const bool keeps = parsed->quantity.mantissa != 0 && KeepsText(parsed->pieces, parsed->scale);
  return keeps ? std::string(text) : ToString(parsed->quantity);
}

}  // namespace berth::api
