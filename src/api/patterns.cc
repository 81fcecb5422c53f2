#include "api/patterns.h"

#include <algorithm>
#include <array>

namespace berth::api {
namespace {

bool IsLower(char c) { return c >= 'a' && c <= 'z'; }
bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsLetter(char c) { return IsLower(c) || (c >= 'A' && c <= 'Z'); }
bool IsLowerOrDigit(char c) { return IsLower(c) || IsDigit(c); }
bool IsAlphanumeric(char c) { return IsLetter(c) || IsDigit(c); }

// [a-z0-9]([-a-z0-9]*[a-z0-9])?
bool IsLabel(std::string_view text) {
  return !text.empty() && IsLowerOrDigit(text.front()) && IsLowerOrDigit(text.back()) &&
         std::ranges::all_of(text, [](char c) { return IsLowerOrDigit(c) || c == '-'; });
}

// Labels with dots between them, of any length.
bool IsSubdomain(std::string_view text) {
  while (true) {
    const size_t dot = text.find('.');
    if (!IsLabel(text.substr(0, dot))) return false;
    if (dot == std::string_view::npos) return true;
    text.remove_prefix(dot + 1);
  }
}

// A letter, then letters, digits and hyphens, no hyphen last; in capitals or not.
bool IsKindName(std::string_view text) {
  return !text.empty() && IsLetter(text.front()) && IsAlphanumeric(text.back()) &&
         std::ranges::all_of(text, [](char c) { return IsAlphanumeric(c) || c == '-'; });
}

bool IsReason(std::string_view text) {
  const auto inside = [](char c) { return IsAlphanumeric(c) || c == '_' || c == ',' || c == ':'; };
  return !text.empty() && IsLetter(text.front()) && std::ranges::all_of(text, inside) &&
         (IsAlphanumeric(text.back()) || text.back() == '_');
}

// `name` or `prefix/name`, of any length.
bool IsQualified(std::string_view text) {
  if (const size_t slash = text.find('/'); slash != std::string_view::npos) {
    if (!IsSubdomain(text.substr(0, slash))) return false;
    text.remove_prefix(slash + 1);
  }
  const auto inside = [](char c) { return IsAlphanumeric(c) || c == '-' || c == '_' || c == '.'; };
  return !text.empty() && IsAlphanumeric(text.front()) && IsAlphanumeric(text.back()) &&
         std::ranges::all_of(text, inside);
}

void SkipSign(std::string_view& text) {
  if (text.starts_with('+') || text.starts_with('-')) text.remove_prefix(1);
}

// ([0-9]+(\.[0-9]*)?)|(\.[0-9]+)
bool SkipDecimal(std::string_view& text) {
  const auto skip_digits = [&] {
    const size_t count = std::min(text.find_first_not_of("0123456789"), text.size());
    text.remove_prefix(count);
    return count;
  };
  const size_t before = skip_digits();
  if (!text.starts_with('.')) return before > 0;
  text.remove_prefix(1);
  return skip_digits() + before > 0;
}

bool IsQuantity(std::string_view text) {
  SkipSign(text);
  if (!SkipDecimal(text)) return false;
  if (text.empty()) return true;
  if (text.size() == 1) return std::string_view("numkMGTPE").contains(text[0]);
  if (text.size() == 2 && text[1] == 'i') return std::string_view("KMGTPE").contains(text[0]);
  if (text[0] != 'e' && text[0] != 'E') return false;
  text.remove_prefix(1);
  SkipSign(text);
  return SkipDecimal(text) && text.empty();
}

struct Pattern {
  std::string_view text;
  Matcher matches;
};
constexpr std::array<Pattern, 6> kPatterns = {{
    {"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", IsLabel},
    {"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$", IsSubdomain},
    {"^(?i)[a-z]([-a-z0-9]*[a-z0-9])?$", IsKindName},
    {"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$", IsReason},
    {"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-"
     "9_.]*)?[A-Za-z0-9])$",
     IsQualified},
    {kQuantityPattern, IsQuantity},
}};

}  // namespace

Matcher FindMatcher(std::string_view pattern) {
  const auto* const found = std::ranges::find(kPatterns, pattern, &Pattern::text);
  return found == kPatterns.end() ? nullptr : found->matches;
}

}  // namespace berth::api
