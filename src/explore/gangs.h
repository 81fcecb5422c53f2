#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/hash.h"
#include "env/actor.h"
#include "sim/gang_checks.h"
#include "sim/truth.h"

namespace berth::explore {

// What must be true of decisions about PodGroups, seen from outside: all or nothing. Of a group a
// binding leaves in the same step as those without which it would have fewer members on nodes than
// it needs, and none leaves for a group that the scheduler has not heard of, whose queue it knows
// to be closed or not there, or beyond what that queue may have. A value of the Stage; a fresh one
// when the scheduler starts again.
class Gangs {
 public:
  void OnSent(const env::SendRequest& sent);
  void OnHeard(const env::Input& input);
  // After a step of the scheduler, of the objects as it has heard of them: what is wrong with the
  // bindings that it sent in it.
  [[nodiscard]] std::optional<std::string> OnStep(const sim::Truth& heard);
  void AddTo(Hasher& hasher) const;

 private:
  // The queue on the group's way up that would be used beyond what it may; empty: none.
  [[nodiscard]] std::string Overfull(const sim::Truth& heard, const sim::GroupFacts& group) const;

  // Uids of pods whose binding was sent, but those that surely came to nothing.
  std::set<std::string> sent_;
  std::map<uint64_t, std::string> calls_;  // Bindings on their way: uids.
  std::vector<std::string> step_;          // Uids, in this step.
};

}  // namespace berth::explore
