#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

// Keys of a line of the log, within its text: what is looked for by machines (docs/OPERATIONS.md,
// "The log"). A log in JSON has a member for each, one in text shows them as key="value".
namespace berth::env {

// At the start of a line with keys, and between its text, keys and values; WithKeys takes it out of
// what it joins. A line that begins with anything else has no keys, whatever of users' it quotes.
inline constexpr char kKeysMark = '\x1f';

using LogKeys = std::vector<std::pair<std::string_view, std::string_view>>;

// The text with keys behind it. Names of keys are camelCase, as upstream's.
[[nodiscard]] inline std::string WithKeys(
    std::string_view text,
    std::initializer_list<std::pair<std::string_view, std::string_view>> keys) {
  std::string out(1, kKeysMark);
  const auto add = [&out](std::string_view part) {
    for (const char c : part) {
      if (c != kKeysMark) out += c;
    }
  };
  add(text);
  for (const auto& [key, value] : keys) {
    for (const std::string_view part : {key, value}) {
      out += kKeysMark;
      add(part);
    }
  }
  return out;
}

struct KeyedText {
  std::string_view text;
  LogKeys keys;
};

// Takes it apart again; the views are of `line`. A mark without a value behind its key ends it.
[[nodiscard]] inline KeyedText SplitKeys(std::string_view line) {
  if (!line.starts_with(kKeysMark)) return {.text = line, .keys = {}};
  line.remove_prefix(1);
  const auto take = [&line] {
    const size_t end = line.find(kKeysMark);
    const std::string_view part = line.substr(0, end);
    line = end == std::string_view::npos ? std::string_view() : line.substr(end + 1);
    return std::pair(part, end != std::string_view::npos);
  };
  auto [text, more] = take();
  KeyedText out{.text = text, .keys = {}};
  while (more) {
    const auto [key, has_value] = take();
    if (!has_value) break;
    const auto [value, goes_on] = take();
    out.keys.emplace_back(key, value);
    more = goes_on;
  }
  return out;
}

}  // namespace berth::env
