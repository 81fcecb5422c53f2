#include "api/json_path.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>

#include "api/object.h"

namespace berth::api {
namespace {

// Of a path: a name of it is looked for in some ten nanoseconds.
constexpr int64_t kCharactersPerStep = 4;

// Takes a name that ends at a dot or bracket off the path.
std::string TakeName(std::string_view& path) {
  std::string name;
  while (!path.empty() && path.front() != '.' && path.front() != '[') {
    if (path.front() == '\\' && path.size() > 1) path.remove_prefix(1);
    name += path.front();
    path.remove_prefix(1);
  }
  return name;
}

// The content of `'...'` or `"..."`, or nothing.
std::optional<std::string_view> Quoted(std::string_view text) {
  if (text.size() < 2 || text.front() != text.back()) return std::nullopt;
  if (text.front() != '\'' && text.front() != '"') return std::nullopt;
  return text.substr(1, text.size() - 2);
}

// What is between the brackets that the path begins with, which are taken off; nothing when they
// don't close.
std::optional<std::string_view> TakeBrackets(std::string_view& path) {
  char quote = 0;
  for (size_t i = 1; i < path.size(); ++i) {
    const char c = path[i];
    if (quote != 0) {
      if (c == quote) quote = 0;
    } else if (c == '\'' || c == '"') {
      quote = c;
    } else if (c == ']') {
      const std::string_view inside = path.substr(1, i - 1);
      path.remove_prefix(i + 1);
      return inside;
    }
  }
  return std::nullopt;
}

// The first item of which `?(@.member=='text')` holds.
const Json* PickByText(const JsonArray& items, std::string_view filter, int64_t& steps) {
  constexpr std::string_view kBegin = "?(@.";
  if (!filter.starts_with(kBegin) || !filter.ends_with(')')) return nullptr;
  filter = filter.substr(kBegin.size(), filter.size() - kBegin.size() - 1);
  const size_t equals = filter.find("==");
  if (equals == std::string_view::npos) return nullptr;
  std::string_view member = filter.substr(0, equals);
  std::string_view wanted = filter.substr(equals + 2);
  while (member.ends_with(' ')) member.remove_suffix(1);
  while (wanted.starts_with(' ')) wanted.remove_prefix(1);
  const std::optional<std::string_view> text = Quoted(wanted);
  if (!text) return nullptr;
  const int64_t each = 1 + static_cast<int64_t>(member.size()) / kCharactersPerStep;
  for (const Json& item : items) {
    if (steps <= 0) return nullptr;
    steps -= each;
    const Json* value = FindDotted(item, member);
    if (value != nullptr && value->is_string() && std::string_view(value->get_string()) == *text)
      return &item;
  }
  return nullptr;
}

// One member, or null; JSON null is one.
const Json* MemberOf(const Json& at, std::string_view name) {
  return at.is_object() ? at.get_object().if_contains(name) : nullptr;
}

const Json* Pick(const Json& at, std::string_view inside, int64_t& steps) {
  if (const auto name = Quoted(inside)) return MemberOf(at, *name);
  const JsonArray* items = at.if_array();
  if (items == nullptr || items->empty()) return nullptr;
  if (inside == "*") return &items->front();
  if (inside.starts_with('?')) return PickByText(*items, inside, steps);
  size_t index = 0;
  const auto [end, error] = std::from_chars(inside.data(), inside.data() + inside.size(), index);
  const bool fine = error == std::errc() && end == inside.data() + inside.size();
  return fine && index < items->size() ? &(*items)[index] : nullptr;
}

}  // namespace

const Json* FindJsonPath(const Json& document, std::string_view path, int64_t& steps) {
  steps -= 1 + static_cast<int64_t>(path.size()) / kCharactersPerStep;
  const Json* at = &document;
  while (!path.empty() && at != nullptr && steps > 0) {
    if (path.front() == '[') {
      const std::optional<std::string_view> inside = TakeBrackets(path);
      at = inside ? Pick(*at, *inside, steps) : nullptr;
      continue;
    }
    if (path.front() == '.') path.remove_prefix(1);
    const std::string name = TakeName(path);
    if (!name.empty()) at = MemberOf(*at, name);
  }
  return steps > 0 ? at : nullptr;
}

}  // namespace berth::api
