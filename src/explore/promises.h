#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/hash.h"
#include "env/actor.h"
#include "model/state.h"
#include "sim/checkers.h"

namespace berth::explore {

// What must be true of preemptions, seen from outside: by what the scheduler has said and heard and
// what was carried out of it, not by what it keeps. A value of the Stage.
class Promises {
 public:
  // I-NOM: from the instant that a nomination of a pod to a node was said or heard, until that pod
  // is deleted, bound, or un-nominated, the scheduler binds nobody of the same or a lower priority
  // there with whom it no longer fits. A nomination or an eviction that fails ends what was known
  // of all: a promise may then be taken back.
  void OnSent(const env::SendRequest& sent);
  void OnHeard(const sim::Truth& truth, const env::Input& input);
  void OnRestart();
  // After a step of the scheduler: the binding that it sent in it into a room that is promised.
  [[nodiscard]] std::optional<std::string> OnStep(const sim::Truth& truth);

  // A version of a pod has become durable.
  void OnPod(std::string_view document);
  // A deletion that the scheduler sent is about to be carried out. Says what is wrong with it: it
  // names no uid; no pod was nominated to the victim's node first (I-NOM-2); the scheduler has
  // heard already that it was; or it is one more than `most`, and as many again for each promise
  // that ended because its node was lost or because another of higher priority got its room.
  struct Deletion {
    std::string_view target;
    std::string_view body;
    bool heard = true;    // The scheduler will hear that it was carried out.
    bool orphan = false;  // It crashed since: the one that is there now may have done it, too.
  };
  [[nodiscard]] std::optional<std::string> OnEviction(const sim::Truth& truth,
                                                      const Deletion& deletion, uint32_t most);
  [[nodiscard]] uint32_t evictions() const { return static_cast<uint32_t>(evicted_.size()); }
  // A node has gone; the pods are as they are.
  void OnNodeLost(const sim::Truth& truth, std::string_view node);
  void AddTo(Hasher& hasher, const sim::Truth& truth) const;

 private:
  struct Promise {
    std::string node;
    // The watch has told of it, so that a version without it ends it.
    bool heard = false;
    // Ended by the scheduler: versions from before may still be heard.
    bool over = false;
  };
  struct Said {
    std::string uid;
    std::string node;
  };
  void OnPodHeard(const sim::Truth& truth, std::string_view frame);

  std::set<std::string> nominated_;          // Nodes that a pod was ever nominated to.
  std::set<std::string> evicted_;            // Uids.
  std::set<std::string> heard_;              // Of those, what the scheduler knows or will.
  std::map<std::string, Promise> promises_;  // By uid.
  std::set<uint64_t> preempting_;            // Calls on the way, that nominate or evict.
  // In this step.
  std::vector<Said> bindings_;
  std::vector<Said> withdrawn_;
  uint32_t explained_ = 0;  // Promises that ended by a lost node or for another.
};

// I-NOM: where a pod of ours is promised a node, everything that is promised and held there fits,
// so nobody was given what is another's. Nominations of others count for nothing. Empty when it is
// so.
[[nodiscard]] std::string OverPromised(const model::State& state);

}  // namespace berth::explore
