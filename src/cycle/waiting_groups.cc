#include "cycle/waiting_groups.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "base/check.h"

namespace berth::cycle {

using model::GroupId;
using model::State;

bool WaitingGroups::Place::operator<(const Place& other) const {
  // Who is of higher priority is less.
  return std::tie(window, other.priority, creation, uid) <
         std::tie(other.window, priority, other.creation, other.uid);
}

bool WaitingGroups::Before(const State& state, GroupId group, model::PodId pod) const {
  const Place& x = entries_[group.value].place;
  const model::Pod& y = state.pods().at(pod);
  if (x.priority != y.priority) return x.priority > y.priority;
  if (x.creation != y.creation) return x.creation < y.creation;
  return x.uid < state.UidOf(y.uid);
}

void WaitingGroups::Put(const State& state, GroupId group, int32_t priority) {
  Leave(group);
  if (group.value >= entries_.size()) entries_.resize(group.value + 1);
  // Next() ends it when it is over.
  const bool backs_off = state.groups().at(group).backoff_until > Instant{};
  Enter(state, group, backs_off ? Mode::kBackingOff : Mode::kActive, priority);
}

void WaitingGroups::Remove(GroupId group) {
  Leave(group);
  if (group.value < entries_.size()) entries_[group.value] = Entry{};
}

void WaitingGroups::Wake(const State& state, GroupId group, int32_t priority) {
  if (is_blocked(group)) Put(state, group, priority);
}

void WaitingGroups::Enter(const State& state, GroupId group, Mode mode, int32_t priority) {
  Entry& entry = entries_[group.value];
  entry.mode = mode;
  const model::Group& row = state.groups().at(group);
  entry.place = {.window = mode == Mode::kBackingOff ? row.backoff_until.seconds() : 0,
                 .priority = priority,
                 .creation = row.creation,
                 .uid = std::string(state.UidOf(row.uid)),
                 .group = group};
  std::vector<Place>& list = ListOf(mode);
  list.insert(std::ranges::upper_bound(list, entry.place, std::less<>()), entry.place);
}

void WaitingGroups::Leave(GroupId group) {
  if (!contains(group)) return;
  Entry& entry = entries_[group.value];
  if (entry.mode == Mode::kBlocked) {
    std::erase(blocked_, group);
  } else {
    std::vector<Place>& list = ListOf(entry.mode);
    const auto at = std::ranges::lower_bound(list, entry.place, std::less<>());
    CHECK(at != list.end() && at->group == group);
    list.erase(at);
  }
  entry.mode = Mode::kAbsent;
}

GroupId WaitingGroups::Next(Instant now) {
  while (!backing_off_.empty() && backing_off_.front().window <= now.seconds()) {
    Place place = backing_off_.front();
    backing_off_.erase(backing_off_.begin());
    place.window = 0;
    entries_[place.group.value].mode = Mode::kActive;
    entries_[place.group.value].place = place;
    active_.insert(std::ranges::upper_bound(active_, place, std::less<>()), std::move(place));
  }
  if (!active_.empty()) return active_.front().group;
  return backing_off_.empty() ? GroupId{} : backing_off_.front().group;
}

void WaitingGroups::Block(GroupId group, model::Refusal refusal) {
  Leave(group);
  entries_[group.value].mode = Mode::kBlocked;
  entries_[group.value].refusal = std::move(refusal);
  blocked_.push_back(group);
}

void WaitingGroups::AddTo(Hasher& hasher) const {
  hasher.Add(entries_.size());
  for (const Entry& entry : entries_) {
    hasher.Add(entry.mode).Add(entry.place.window);
    entry.refusal.AddTo(hasher);
  }
  hasher.Add(blocked_.size());
  for (const GroupId group : blocked_) hasher.Add(group.value);
}

}  // namespace berth::cycle
