#include "explore/scenario_lines.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "api/quantity.h"

namespace berth::explore {
namespace {

constexpr size_t kLineBytesMax = 1000;

}  // namespace

bool Only(const Options& options, std::string_view key) {
  return options.size() == 1 && options.contains(key);
}

std::string_view MostOf(std::string_view resource) {
  if (resource == "cpu") return "1M";
  return resource == "memory" ? "1Ti" : "1k";
}

bool InRange(std::string_view resource, std::string_view text) {
  const Result<api::Quantity> amount = api::ParseQuantity(text);
  if (!amount || amount->sign() < 0) return false;
  return api::Compare(*amount, *api::ParseQuantity(MostOf(resource))) <= 0;
}

std::unexpected<Error> Lines::Bad(std::string_view what) const {
  return Fail(ErrorCode::kInvalid, fmt::format("{}:{}: {}", file_, std::max(number_, 1u), what));
}

Result<bool> Lines::Next() {
  words_.clear();
  while (words_.empty()) {
    if (text_.empty()) return false;
    const std::string_view line = text_.substr(0, text_.find('\n'));
    text_.remove_prefix(std::min(line.size() + 1, text_.size()));
    ++number_;
    indented_ = line.starts_with(' ') || line.starts_with('\t');
    if (line.size() > kLineBytesMax) return Bad("the line is too long");
    if (Status split = Split(line); !split) return std::unexpected(split.error());
  }
  return true;
}

Status Lines::Split(std::string_view line) {
  std::string word;
  bool quoted = false;
  bool any = false;
  for (const char c : line) {
    if (static_cast<unsigned char>(c) < ' ' && c != '\t') {
      return Bad("a control character");
    }
    if (c == '"') {
      quoted = !quoted;
      any = true;
    } else if (!quoted && c == '#') {
      break;
    } else if (!quoted && (c == ' ' || c == '\t')) {
      if (any) words_.push_back(std::exchange(word, {}));
      any = false;
    } else {
      word += c;
      any = true;
    }
  }
  if (quoted) return Bad("a quotation without an end");
  if (any) words_.push_back(std::move(word));
  return {};
}

Status Lines::CheckName(std::string_view name) const {
  const bool good = !name.empty() && name.size() <= 40 && name.front() != '-' &&
                    name.back() != '-' && std::ranges::all_of(name, [](char c) {
                      return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
                    });
  if (!good) return Bad(fmt::format("\"{}\" is no name of an object", name));
  return {};
}

Result<Options> Lines::ReadPairs(size_t first, size_t last) const {
  Options options;
  for (size_t i = first; i < std::min(last, words_.size()); ++i) {
    const std::string& word = words_[i];
    const size_t equals = word.find('=');
    if (equals == std::string::npos || equals + 1 == word.size()) {
      return Bad(fmt::format("\"{}\" is not of the form key=value", word));
    }
    const std::string key = word.substr(0, equals);
    if (!options.emplace(key, word.substr(equals + 1)).second) {
      return Bad(fmt::format("{} is said twice", key));
    }
  }
  return options;
}

Result<Options> Lines::ReadOptions(size_t first, const std::vector<std::string_view>& allowed,
                                   size_t last) const {
  Result<Options> options = ReadPairs(first, last);
  if (!options) return options;
  for (const auto& [key, value] : *options) {
    if (std::ranges::find(allowed, key) == allowed.end())
      return Bad(fmt::format("unknown key \"{}\"", key));
  }
  return options;
}

Result<uint64_t> Lines::Number(const Options& options, std::string_view key, uint64_t otherwise,
                               uint64_t max) const {
  const auto at = options.find(key);
  if (at == options.end()) return otherwise;
  uint64_t number = 0;
  const std::string& text = at->second;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number > max) {
    return Bad(fmt::format("{} must be a number from 0 to {}, not \"{}\"", key, max, text));
  }
  return number;
}

Result<std::string> Lines::Amounts(const Options& options,
                                   const std::vector<std::string_view>& resources) const {
  std::string json;
  for (const std::string_view resource : resources) {
    const auto at = options.find(resource);
    if (at == options.end()) continue;
    if (!InRange(resource, at->second)) {
      return Bad(fmt::format("{} must be a quantity from 0 to {}, not \"{}\"", resource,
                             MostOf(resource), at->second));
    }
    json += fmt::format("{}\"{}\":\"{}\"", json.empty() ? "" : ",", resource, at->second);
  }
  return json;
}

}  // namespace berth::explore
