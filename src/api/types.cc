#include "api/types.h"

#include <algorithm>

namespace berth::api {
namespace {

template <typename List, typename Projection>
auto FindSorted(const List& list, std::string_view key, Projection projection) {
  const auto at = std::ranges::lower_bound(list, key, {}, projection);
  return at != list.end() && projection(*at) == key ? &*at : nullptr;
}

}  // namespace

std::optional<std::string_view> Find(const StringMap& map, std::string_view key) {
  const auto* entry =
      FindSorted(map, key, [](const auto& item) { return std::string_view(item.first); });
  if (entry == nullptr) return std::nullopt;
  return std::string_view(entry->second);
}

std::optional<int64_t> Find(const ResourceList& list, std::string_view name) {
  const auto* entry = FindSorted(
      list, name, [](const ResourceAmount& item) { return std::string_view(item.name); });
  if (entry == nullptr) return std::nullopt;
  return entry->amount;
}

}  // namespace berth::api
