#include "base/hash.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>

namespace berth {
namespace {

std::optional<uint64_t> NumberIn(std::string_view text) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

// "pods" of a document that says "PodList" or "Pod".
std::string PluralIn(std::string_view json) {
  constexpr std::string_view kMember = "\"kind\":\"";
  const size_t at = json.find(kMember);
  if (at == std::string_view::npos) return {};
  json.remove_prefix(at + kMember.size());
  json = json.substr(0, json.find('"'));
  if (json.ends_with("List")) json.remove_suffix(4);
  std::string plural;
  for (const char c : json) {
    plural += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return plural + (plural.ends_with('s') ? "es" : "s");
}

// Where the value of the next member begins whose name is both parts. Looks for a letter that is
// rare, which quotes are not.
size_t EndOfMember(std::string_view json, std::string_view before, std::string_view rare) {
  for (size_t at = json.find(rare); at != std::string_view::npos; at = json.find(rare, at + 1)) {
    if (json.substr(0, at).ends_with(before)) return at + rare.size();
  }
  return std::string_view::npos;
}

// Where the next version begins: resourceVersion's, or that of a condition of a PodGroup, which
// names the version that it was said of.
size_t EndOfMember(std::string_view json) {
  return std::min(EndOfMember(json, "\"resource", "Version\":\""),
                  EndOfMember(json, "\"transition", "ID\":\""));
}

}  // namespace

Hasher& Hasher::AddVersion(std::string_view text) {
  const std::optional<uint64_t> number = merges() ? NumberIn(text) : std::nullopt;
  return number ? AddVersion(*number) : Add(text);
}

Hasher& Hasher::AddPosition(std::string_view text, std::string_view kind) {
  const std::optional<uint64_t> number = merges() ? NumberIn(text) : std::nullopt;
  return number ? AddPosition(*number, kind) : Add(text);
}

Hasher& Hasher::AddDocument(std::string_view json) {
  if (!merges()) return Add(json);
  constexpr std::string_view kBookmark = "{\"type\":\"BOOKMARK\"";
  const bool positions =
      json.starts_with(kBookmark) || (json.contains("List\"") && json.contains("\"items\":["));
  const std::string kind = positions ? PluralIn(json) : std::string();
  for (size_t at = EndOfMember(json); at != std::string_view::npos; at = EndOfMember(json)) {
    Add(json.substr(0, at));
    json.remove_prefix(at);
    const std::string_view version = json.substr(0, json.find('"'));
    positions ? AddPosition(version, kind) : AddVersion(version);
    json.remove_prefix(version.size());
  }
  return Add(json);
}

}  // namespace berth
