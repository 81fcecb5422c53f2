#include "api/formats.h"

#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <string>

#include "api/duration.h"
#include "api/names.h"
#include "api/net_formats.h"
#include "api/text.h"
#include "api/timestamp.h"
#include "api/validate_common.h"

namespace berth::api {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool IsHex(char c) { return IsDigit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }

bool AreHex(std::string_view text) { return std::ranges::all_of(text, IsHex); }

// Padded base64, of something.
bool IsByte(std::string_view text) {
  if (text.empty() || text.size() % 4 != 0) return false;
  const size_t padding = text.ends_with("==") ? 2 : (text.ends_with('=') ? 1 : 0);
  return std::ranges::all_of(text.substr(0, text.size() - padding), [](char c) {
    return IsDigit(c) || IsLetter(c) || c == '+' || c == '/';
  });
}

bool IsDate(std::string_view text) {
  constexpr size_t kSize = 10;
  return text.size() == kSize && ParseTimestamp(fmt::format("{}T00:00:00Z", text)).has_value();
}

bool IsTime(std::string_view text) {
  std::string upper(text);
  for (char& c : upper) {
    if (c == 't' || c == 'z') c = static_cast<char>(c - 'a' + 'A');
  }
  return ParseTimestamp(upper).has_value();
}

// Numbers of an address may have zeros in front, which count for nothing.
std::string WithoutZeros(std::string_view address) {
  if (address.find('.') == std::string_view::npos) return std::string(address);
  std::string out;
  for (size_t i = 0; i < address.size(); ++i) {
    const bool starts = i == 0 || !IsHex(address[i - 1]);
    size_t next = i;
    while (starts && next + 1 < address.size() && address[next] == '0' &&
           IsDigit(address[next + 1])) {
      ++next;
    }
    i = next;
    out += address[i];
  }
  return out;
}

bool IsAddress(std::string_view text, char separator) {
  return text.find(separator) != std::string_view::npos &&
         rules::FamilyOf(WithoutZeros(text)) != rules::IpFamily::kNone;
}

// Groups of `digits` hexadecimal digits between separators, for 6, 8 or 20 bytes.
bool IsHardware(std::string_view text, char separator, size_t digits) {
  size_t groups = 1;
  size_t length = 0;
  for (const char c : text) {
    if (c == separator) {
      if (length != digits) return false;
      ++groups;
      length = 0;
    } else if (!IsHex(c)) {
      return false;
    } else {
      ++length;
    }
  }
  const size_t bytes = groups * digits / 2;
  return length == digits && (bytes == 6 || bytes == 8 || bytes == 20);
}

bool IsMac(std::string_view text) {
  return IsHardware(text, ':', 2) || IsHardware(text, '-', 2) || IsHardware(text, '.', 4);
}

// `version`: its digit, or '\0' for any. Each of the dashes may be missing.
bool IsUuid(std::string_view text, char version) {
  constexpr std::array<size_t, 5> kGroups = {8, 4, 4, 4, 12};
  for (size_t i = 0; i < kGroups.size(); ++i) {
    if (i > 0 && text.starts_with('-')) text.remove_prefix(1);
    if (text.size() < kGroups[i] || !AreHex(text.substr(0, kGroups[i]))) return false;
    if (i == 2 && version != '\0' && text[0] != version) return false;
    constexpr std::string_view kVariants = "89abAB";
    const bool has_variant = version == '4' || version == '5';
    if (i == 3 && has_variant && kVariants.find(text[0]) == std::string_view::npos) return false;
    text.remove_prefix(kGroups[i]);
  }
  return text.empty();
}

// A unit by one of its names, or by how the last of them starts.
bool IsUnit(std::string_view word) {
  constexpr auto kNames = std::to_array<std::string_view>(
      {"ns", "us", "µs", "ms", "s", "m", "h", "hr", "d", "w", "wk"});
  constexpr auto kStarts = std::to_array<std::string_view>(
      {"nano", "micro", "milli", "sec", "min", "hour", "day", "week"});
  const std::string lower = Lower(word);
  return std::ranges::find(kNames, lower) != kNames.end() ||
         std::ranges::any_of(kStarts, [&](std::string_view start) {
           return std::string_view(lower).starts_with(start);
         });
}

// Go's durations, or a count and a unit somewhere: "2 weeks".
bool IsDuration(std::string_view text) {
  const bool has_sign = text.starts_with('-') || text.starts_with('+');
  if (ParseDuration(text.substr(has_sign ? 1 : 0))) return true;
  size_t at = 0;
  const auto skip = [&](const auto& wanted) {
    const size_t start = at;
    while (at < text.size() && wanted(text[at])) ++at;
    return text.substr(start, at - start);
  };
  while (at < text.size()) {
    skip([](char c) { return !IsDigit(c); });
    const std::string_view count = skip(IsDigit);
    skip([](char c) { return std::string_view(" \t\n\f\r").find(c) != std::string_view::npos; });
    // The sign of micro is two bytes.
    const std::string_view word = skip([](char c) {
      return IsLetter(c) || std::string_view("µ").find(c) != std::string_view::npos;
    });
    if (!count.empty() && !word.empty() && IsUnit(word)) return true;
  }
  return false;
}

bool IsHexColor(std::string_view text) {
  if (text.starts_with('#')) text.remove_prefix(1);
  return (text.size() == 3 || text.size() == 6) && AreHex(text);
}

// Three, two and four digits, with dashes or blanks between, or nothing.
bool IsSocialSecurity(std::string_view text) {
  constexpr std::array<size_t, 3> kGroups = {3, 2, 4};
  for (size_t i = 0; i < kGroups.size(); ++i) {
    if (i > 0 && (text.starts_with('-') || text.starts_with(' '))) text.remove_prefix(1);
    if (text.size() < kGroups[i] || !std::ranges::all_of(text.substr(0, kGroups[i]), IsDigit)) {
      return false;
    }
    text.remove_prefix(kGroups[i]);
  }
  return text.empty();
}

// Nine digits and one to check them by, or X, which is ten.
bool IsIsbn10(std::string_view text) {
  if (text.size() != 10 || !std::ranges::all_of(text.substr(0, 9), IsDigit)) return false;
  if (!IsDigit(text[9]) && text[9] != 'X') return false;
  int sum = 10 * (text[9] == 'X' ? 10 : text[9] - '0');
  for (int i = 0; i < 9; ++i) sum += (i + 1) * (text[static_cast<size_t>(i)] - '0');
  return sum % 11 == 0;
}

bool IsIsbn13(std::string_view text) {
  if (text.size() != 13 || !std::ranges::all_of(text, IsDigit)) return false;
  int sum = 0;
  for (size_t i = 0; i < 13; ++i) sum += (i % 2 == 0 ? 1 : 3) * (text[i] - '0');
  return sum % 10 == 0;
}

// Without what books have between their digits.
std::string BookDigits(std::string_view text) {
  std::string digits(text);
  std::erase_if(digits, [](char c) { return std::string_view(" \t\n\f\r-").contains(c); });
  return digits;
}

// Numbers of issuers, whose last digit checks the others (ISO/IEC 7812); what else stands between
// them counts for nothing.
bool IsCreditCard(std::string_view text) {
  static const RE2 kIssuers(
      "4[0-9]{12}(?:[0-9]{3})?|5[1-5][0-9]{14}|6(?:011|5[0-9][0-9])[0-9]{12}|3[47][0-9]{13}|"
      "3(?:0[0-5]|[68][0-9])[0-9]{11}|(?:2131|1800|35[0-9]{3})[0-9]{11}");
  std::string digits(text);
  std::erase_if(digits, [](char c) { return !IsDigit(c); });
  if (!RE2::FullMatch(digits, kIssuers)) return false;
  int sum = 0;
  for (size_t i = 0; i < digits.size(); ++i) {
    const int digit = digits[digits.size() - 1 - i] - '0';
    sum += i % 2 == 0 ? digit : digit * 2 / 10 + digit * 2 % 10;
  }
  return sum % 10 == 0;
}

// "rgb(255, 0, 10)".
bool IsRgbColor(std::string_view text) {
  static const RE2 kPattern(R"(rgb\((?:\s*(?:0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])\s*,){2})"
                            R"(\s*(?:0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])\s*\))");
  return RE2::FullMatch({text.data(), text.size()}, kPattern);
}

using Check = bool (*)(std::string_view text);
struct Format {
  std::string_view name;
  Check check;
};
constexpr auto kFormats = std::to_array<Format>({
    {"byte", IsByte},
    {"date", IsDate},
    {"datetime", IsTime},
    {"duration", IsDuration},
    {"ipv4", [](std::string_view text) { return IsAddress(text, '.'); }},
    {"ipv6", [](std::string_view text) { return IsAddress(text, ':'); }},
    {"cidr",
     [](std::string_view text) { return rules::ParseCidr(WithoutZeros(text)).has_value(); }},
    {"mac", IsMac},
    {"uuid", [](std::string_view text) { return IsUuid(text, '\0'); }},
    {"uuid3", [](std::string_view text) { return IsUuid(text, '3'); }},
    {"uuid4", [](std::string_view text) { return IsUuid(text, '4'); }},
    {"uuid5", [](std::string_view text) { return IsUuid(text, '5'); }},
    {"bsonobjectid", [](std::string_view text) { return text.size() == 24 && AreHex(text); }},
    {"hexcolor", IsHexColor},
    {"ssn", IsSocialSecurity},
    {"uri", IsRequestUri},
    {"email", IsMailAddress},
    {"hostname", IsHostName},
    {"isbn",
     [](std::string_view text) {
       const std::string digits = BookDigits(text);
       return IsIsbn10(digits) || IsIsbn13(digits);
     }},
    {"isbn10", [](std::string_view text) { return IsIsbn10(BookDigits(text)); }},
    {"isbn13", [](std::string_view text) { return IsIsbn13(BookDigits(text)); }},
    {"creditcard", IsCreditCard},
    {"rgbcolor", IsRgbColor},
    {"k8sshortname", [](std::string_view text) { return CheckDns1123Label(text).empty(); }},
    {"k8slongname", [](std::string_view text) { return CheckDns1123Subdomain(text).empty(); }},
});

}  // namespace

bool FitsFormat(std::string_view format, std::string_view text) {
  std::string name(format);
  std::erase(name, '-');
  const auto* const row = std::ranges::find(kFormats, name, &Format::name);
  return row == kFormats.end() || row->check(text);
}

bool IsKnownFormat(std::string_view type, std::string_view format) {
  constexpr std::array<std::string_view, 26> kOfTexts = {
      "bsonobjectid", "uri",        "email",    "hostname",     "ipv4",       "ipv6", "cidr",
      "mac",          "uuid",       "uuid3",    "uuid4",        "uuid5",      "isbn", "isbn10",
      "isbn13",       "creditcard", "ssn",      "hexcolor",     "rgbcolor",   "byte", "password",
      "date",         "duration",   "datetime", "k8sshortname", "k8slongname"};
  if (type == "integer") return format == "int32" || format == "int64";
  if (type == "number") return format == "float" || format == "double";
  if (!type.empty() && type != "string") return false;
  std::string plain(format);
  std::erase(plain, '-');
  return std::ranges::find(kOfTexts, plain) != kOfTexts.end();
}

}  // namespace berth::api
