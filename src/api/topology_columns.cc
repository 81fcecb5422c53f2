#include "api/topology_columns.h"

#include <algorithm>

#include "base/check.h"

namespace berth::api {
namespace {

// Of a character that began before.
bool IsContinuation(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) == 0x80; }

size_t CommonPrefix(std::string_view a, std::string_view b) {
  return static_cast<size_t>(std::ranges::mismatch(a, b).in1 - a.begin());
}

size_t CommonSuffix(std::string_view a, std::string_view b) {
  const auto [end, other] = std::mismatch(a.rbegin(), a.rend(), b.rbegin(), b.rend());
  return static_cast<size_t>(end - a.rbegin());
}

}  // namespace

CommonEnds CommonEndsOf(std::span<const std::string_view> values) {
  CHECK(!values.empty());
  const std::string_view first = values.front();
  CommonEnds ends{.universal = true, .prefix = first.size(), .suffix = first.size()};
  size_t shortest = first.size();
  for (const std::string_view value : values) {
    ends.universal = ends.universal && value == first;
    shortest = std::min(shortest, value.size());
    ends.prefix = std::min(ends.prefix, CommonPrefix(first, value));
    ends.suffix = std::min(ends.suffix, CommonSuffix(first, value));
  }
  while (ends.prefix > 0 && ends.prefix < first.size() && IsContinuation(first[ends.prefix])) {
    --ends.prefix;
  }
  ends.suffix = std::min(ends.suffix, shortest - ends.prefix);
  while (ends.suffix > 0 && IsContinuation(first[first.size() - ends.suffix])) --ends.suffix;
  return ends;
}

}  // namespace berth::api
