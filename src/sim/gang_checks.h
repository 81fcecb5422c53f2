#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/hash.h"
#include "env/actor.h"
#include "sim/truth.h"

namespace berth::sim {

// A PodGroup as the objects have it.
struct GroupFacts {
  std::string key;  // namespace/name
  std::string uid;
  int64_t min_member = 0;
  std::string phase;
  std::string queue;
  api::ResourceList kept;  // That it asks its queue to keep for it.
};

// What its members are, by plain counts over the objects.
struct GroupCounts {
  int64_t on_nodes = 0;  // Those that have a node, or ended.
  int64_t live = 0;      // That did not end.
  int64_t to_come = 0;   // Of those, who have a node or that the scheduler is to place.
  int64_t ready = 0;     // That have a node and stay there, or did what they were to do.
  std::vector<const Truth::PodFacts*> waiting = {};  // That the scheduler is to place.
  [[nodiscard]] int64_t needed(const GroupFacts& group) const {
    return std::max<int64_t>(group.min_member - ready, 0);
  }
};

[[nodiscard]] std::vector<GroupFacts> GroupsOf(const Truth& truth);
[[nodiscard]] GroupCounts CountsOf(const Truth& truth, std::string_view group);

// Whether the pod waits for a place by itself: it names no group, or one that is there, has as many
// as it needs, and whose queue lets one more in.
[[nodiscard]] bool StandsAlone(const Truth& truth, const Truth::PodFacts& pod);

// That members of a PodGroup are placed together or not at all, and that its phase says what
// became of them. A value. It judges durable changes, and is told all of them.
class GangChecks {
 public:
  // What is wrong with a change, in sentences: a group that ran, or completed and has no new
  // member, waits again (P13, P24); it is running before as many as it needs have been on nodes
  // (P16), whatever group bore its name then: of a pod that is gone nobody may have heard.
  // REQUIRES: `truth` has taken it, as `change` says.
  [[nodiscard]] std::vector<std::string> OnCommit(const env::JournalRecord& record,
                                                  const Truth::Change& change, const Truth& truth);
  // What is wrong when nothing is left to happen: a group that never ran has some of the members
  // that it needs on nodes, and not all; equal members that it needs fit, have quota of their queue
  // and wait; its phase is not what its members and its queue make it of the one before.
  [[nodiscard]] std::vector<std::string> AtRest(const Truth& truth) const;
  // Whether its group is one that does not say that it ran, or is gone, which the scheduler may be
  // yet to hear.
  [[nodiscard]] bool MayBeReleased(const Truth::PodFacts& pod) const;

  void AddTo(Hasher& hasher) const;

 private:
  // What a group has been, by uid.
  struct Past {
    bool ran = false;      // As many as it needs were on nodes at once.
    bool renewed = false;  // A member came since all had ended.
    std::string phase;
  };
  void OnGroup(const env::JournalRecord& record, const Truth& truth,
               std::vector<std::string>& findings);
  void Count(const std::string& group, const Truth& truth);

  std::map<std::string, GroupFacts> groups_;  // By key; those that are there.
  std::map<std::string, Past> past_;          // By uid; of those that are there.
  // By key: the uids of its members that ever had a node. What the scheduler sees of them need not
  // have been so at one time: a read is ahead of the watch.
  std::map<std::string, std::set<std::string>> been_;
};

}  // namespace berth::sim
