#include "controllers/indexes.h"

#include <algorithm>
#include <charconv>
#include <iterator>

namespace berth::controllers {
namespace {

bool TakeNumber(std::string_view& text, int64_t& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || value < 0) return false;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return true;
}

}  // namespace

IndexSet IndexSet::Parse(std::string_view text, int64_t completions) {
  IndexSet set;
  while (!text.empty()) {
    int64_t first = 0;
    if (!TakeNumber(text, first)) break;
    int64_t last = first;
    if (text.starts_with('-')) {
      text.remove_prefix(1);
      if (!TakeNumber(text, last)) break;
    }
    const int64_t before = set.ranges_.empty() ? -1 : set.ranges_.back().second;
    if (first <= before || last < first || first >= completions) break;
    last = std::min(last, completions - 1);
    if (first == before + 1 && before >= 0) {
      set.ranges_.back().second = last;
    } else {
      set.ranges_.emplace_back(first, last);
    }
    if (!text.starts_with(',')) break;
    text.remove_prefix(1);
  }
  return set;
}

void IndexSet::Add(int64_t index) {
  // The first range that does not end before the index's left neighbour.
  auto at = std::ranges::lower_bound(ranges_, index - 1, {}, &std::pair<int64_t, int64_t>::second);
  if (at == ranges_.end() || at->first > index + 1) {
    ranges_.insert(at, {index, index});
    return;
  }
  at->first = std::min(at->first, index);
  at->second = std::max(at->second, index);
  const auto next = std::next(at);
  if (next != ranges_.end() && next->first <= at->second + 1) {
    at->second = std::max(at->second, next->second);
    ranges_.erase(next);
  }
}

bool IndexSet::Contains(int64_t index) const {
  const auto at =
      std::ranges::lower_bound(ranges_, index, {}, &std::pair<int64_t, int64_t>::second);
  return at != ranges_.end() && at->first <= index;
}

int64_t IndexSet::size() const {
  int64_t total = 0;
  for (const auto& [first, last] : ranges_) total += last - first + 1;
  return total;
}

int64_t IndexSet::CountIn(const IndexSet& other) const {
  int64_t total = 0;
  auto at = other.ranges_.begin();
  for (const auto& [first, last] : ranges_) {
    while (at != other.ranges_.end() && at->second < first) ++at;
    for (auto both = at; both != other.ranges_.end() && both->first <= last; ++both)
      total += std::min(last, both->second) - std::max(first, both->first) + 1;
  }
  return total;
}

std::string IndexSet::ToString() const {
  std::string text;
  for (const auto& [first, last] : ranges_) {
    if (!text.empty()) text += ',';
    text += std::to_string(first);
    // Two in a row are written apart.
    if (last > first) text += (last == first + 1 ? "," : "-") + std::to_string(last);
  }
  return text;
}

std::vector<int64_t> IndexSet::FirstMissing(const IndexSet& also, int64_t count,
                                            int64_t completions) const {
  std::vector<int64_t> missing;
  for (int64_t index = 0; index < completions && static_cast<int64_t>(missing.size()) < count;) {
    const auto skip = [&](const IndexSet& set) {
      const auto at =
          std::ranges::lower_bound(set.ranges_, index, {}, &std::pair<int64_t, int64_t>::second);
      if (at == set.ranges_.end() || at->first > index) return false;
      index = at->second + 1;
      return true;
    };
    if (skip(*this) || skip(also)) continue;
    missing.push_back(index++);
  }
  return missing;
}

}  // namespace berth::controllers
