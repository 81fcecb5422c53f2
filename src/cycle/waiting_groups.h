#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/hash.h"
#include "base/time.h"
#include "model/groups.h"
#include "model/ids.h"
#include "model/plan.h"
#include "model/state.h"

namespace berth::cycle {

// The groups that wait for places for some of their members at once, in the order of pods:
// priority, larger first; creation, older first; uid.
//
// One that was tried in vain waits blocked until it is woken, and then lets others go first until
// its unschedulable backoff is over. O(groups in line) a change, a move
// each.
class WaitingGroups {
 public:
  // Puts it in line, or moves it to where its row says; a blocked one is to be tried again.
  void Put(const model::State& state, model::GroupId group, int32_t priority);
  void Remove(model::GroupId group);
  [[nodiscard]] bool contains(model::GroupId group) const {
    return group.value < entries_.size() && entries_[group.value].mode != Mode::kAbsent;
  }

  // Who is to be tried next; invalid for none. `now` ends backoffs.
  [[nodiscard]] model::GroupId Next(Instant now);
  // It was tried in vain, and waits until it is woken.
  void Block(model::GroupId group, model::Refusal refusal);
  // Lets it be tried again.
  void Wake(const model::State& state, model::GroupId group, int32_t priority);
  // Blocked, in the order of attempts.
  [[nodiscard]] std::span<const model::GroupId> blocked() const { return blocked_; }
  [[nodiscard]] bool is_blocked(model::GroupId group) const {
    return contains(group) && entries_[group.value].mode == Mode::kBlocked;
  }
  [[nodiscard]] bool backs_off(model::GroupId group) const {
    return contains(group) && entries_[group.value].mode == Mode::kBackingOff;
  }
  // Why it waits, as of the last attempt; nothing of nodes before the first.
  [[nodiscard]] const model::Refusal& refusal(model::GroupId group) const {
    return entries_[group.value].refusal;
  }
  [[nodiscard]] bool idle() const { return active_.empty() && backing_off_.empty(); }
  // Whether the group, which is in line, stands before the pod.
  [[nodiscard]] bool Before(const model::State& state, model::GroupId group,
                            model::PodId pod) const;

  void AddTo(Hasher& hasher) const;

 private:
  enum class Mode : uint8_t { kAbsent, kActive, kBackingOff, kBlocked };
  // A copy of what decides its place: rows change while it stands there.
  struct Place {
    int64_t window = 0;  // Of its backoff, in seconds, while that counts.
    int32_t priority = 0;
    Instant creation;
    std::string uid;
    model::GroupId group;
    [[nodiscard]] bool operator<(const Place& other) const;
  };
  struct Entry {
    Mode mode = Mode::kAbsent;
    Place place;
    model::Refusal refusal;
  };
  void Enter(const model::State& state, model::GroupId group, Mode mode, int32_t priority);
  void Leave(model::GroupId group);
  [[nodiscard]] std::vector<Place>& ListOf(Mode mode) {
    return mode == Mode::kActive ? active_ : backing_off_;
  }

  std::vector<Entry> entries_;      // By GroupId.
  std::vector<Place> active_;       // Ascending.
  std::vector<Place> backing_off_;  // Ascending.
  std::vector<model::GroupId> blocked_;
};

}  // namespace berth::cycle
