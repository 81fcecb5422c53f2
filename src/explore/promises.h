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
  // there with whom it no longer fits, beside what it has heard to stay. A nomination that fails
  // ends what was known of its pod, an eviction that fails what was known of its victim's node: a
  // promise may then be taken back.
  void OnSent(const env::SendRequest& sent);
  void OnHeard(const env::Input& input);
  void OnRestart();
  // After a step of the scheduler: the binding that it sent in it into a room that is promised.
  [[nodiscard]] std::optional<std::string> OnStep();

  // A deletion that the scheduler sent is about to be carried out. Says what is wrong with it: the
  // scheduler has heard already that it was; or it is one more than `most`, and as many again for
  // each promise that ended because its node was lost or because another of higher priority got its
  // room.
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
  // The objects as the scheduler has heard of them: pods, nodes and PodGroups.
  [[nodiscard]] const sim::Truth& heard() const { return heard_; }
  void AddTo(Hasher& hasher) const;

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
  // What a call is for, that nominates or evicts.
  struct Preempting {
    std::string uid;   // Whom it nominates; empty: it evicts, ...
    std::string node;  // ... from this node.
  };
  void HearList(std::string_view list);
  void HearAnswer(std::string_view object);
  void HearEvent(std::string_view event);
  void HearPod(std::string_view pod, bool gone);
  void OnFailed(uint64_t call);
  [[nodiscard]] const sim::Truth::PodFacts* FindHeard(std::string_view uid) const;
  [[nodiscard]] const sim::Truth::PodFacts* RobbedBy(const sim::Truth::PodFacts& binds,
                                                     const std::string& node) const;
  [[nodiscard]] bool TakesRoom(const sim::Truth::PodFacts& binds, const std::string& node,
                               const sim::Truth::PodFacts& promised) const;
  [[nodiscard]] sim::Truth::Usage StaysOn(const std::string& node, int64_t priority) const;
  [[nodiscard]] bool Fits(const sim::Truth::Usage& usage, const std::string& node) const;

  sim::Truth heard_;
  std::set<std::string> evicted_;              // Uids.
  std::set<std::string> evictions_heard_;      // Of those, what the scheduler knows or will.
  std::map<std::string, Promise> promises_;    // By uid.
  std::map<uint64_t, Preempting> preempting_;  // By call on the way.
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
