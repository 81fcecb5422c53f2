#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace berth::api {

// a == b without a call of memcmp, which costs more than to compare a name. Names of members are
// compared by the hundred in every request, and mostly differ in size.
inline bool SameText(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  const auto same = [&]<typename Word>(Word one, size_t at) {
    Word other = 0;
    std::memcpy(&one, a.data() + at, sizeof(Word));
    std::memcpy(&other, b.data() + at, sizeof(Word));
    return one == other;
  };
  const size_t size = a.size();
  if (size > 32) return a == b;
  if (size >= 8) {
    // The last word overlaps the one before it.
    for (size_t at = 0; at + 8 < size; at += 8) {
      if (!same(uint64_t{0}, at)) return false;
    }
    return same(uint64_t{0}, size - 8);
  }
  if (size >= 4) return same(uint32_t{0}, 0) && same(uint32_t{0}, size - 4);
  for (size_t at = 0; at < size; ++at) {
    if (a[at] != b[at]) return false;
  }
  return true;
}

// ASCII letters in lower case.
[[nodiscard]] inline std::string Lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

// How many characters of UTF-8 there are: bytes that go on with one begin none.
[[nodiscard]] inline int64_t CharactersOf(std::string_view text) {
  return std::ranges::count_if(
      text, [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; });
}

// What stands between the separators: one part more than there are of them.
[[nodiscard]] inline std::vector<std::string_view> Split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const size_t at = text.find(separator);
    parts.push_back(text.substr(0, at));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

}  // namespace berth::api
