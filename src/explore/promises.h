#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "base/hash.h"
#include "model/state.h"
#include "sim/checkers.h"

namespace berth::explore {

// What must be true of preemptions, seen from the API: what is carried out of the scheduler's
// evictions, not what it meant. A value of the Stage.
class Promises {
 public:
  // A version of a pod has become durable.
  void OnPod(std::string_view document);
  // A deletion that the scheduler sent is about to be carried out. Says what is wrong with it: it
  // names no uid; no pod was nominated to the victim's node first (I-NOM-2); the scheduler has
  // heard already that it was; or it is one more than `most`.
  struct Deletion {
    std::string_view target;
    std::string_view body;
    bool heard = true;  // The scheduler will hear that it was carried out.
  };
  [[nodiscard]] std::optional<std::string> OnEviction(const sim::Truth& truth,
                                                      const Deletion& deletion, uint32_t most);
  [[nodiscard]] uint32_t evictions() const { return static_cast<uint32_t>(evicted_.size()); }
  void AddTo(Hasher& hasher) const;

 private:
  std::set<std::string> nominated_;  // Nodes that a pod was ever nominated to.
  std::set<std::string> evicted_;    // Uids.
  std::set<std::string> heard_;      // Of those, what the scheduler knows or will.
};

// I-NOM: where a pod of ours is promised a node, everything that is promised and held there fits,
// so nobody was given what is another's. Nominations of others count for nothing. Empty when it is
// so.
[[nodiscard]] std::string OverPromised(const model::State& state);

}  // namespace berth::explore
