#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/hash.h"
#include "base/time.h"
#include "model/ids.h"
#include "model/object_table.h"
#include "model/pods.h"

// Gangs: pods that are placed together or not at all (docs/design/0010-gangs.md).
namespace berth::model {

// How many of one role a group needs; roles are the names of a job's tasks.
struct RoleMinimum {
  NameId role;
  int32_t count = 0;  // Above 0.
  auto operator<=>(const RoleMinimum&) const = default;
};

// What its object says of a group's life (PodGroup of scheduling.volcano.sh).
enum class GroupPhase : uint8_t { kPending, kInqueue, kRunning, kUnknown, kCompleted };

struct GroupUpsert {
  std::string uid;
  std::string key;                        // "namespace/name"; pods name it so.
  std::vector<RoleMinimum> min_of_roles;  // Each role once; any order.
  int32_t min_member = 0;                 // Not negative.
  std::optional<int32_t> priority;        // Nothing: that of its most important member.
  Instant creation;
  GroupPhase phase = GroupPhase::kPending;
  std::string queue = "default";  // Of Volcano's (model/queues.h).
  BundleId min_resources = {};    // What its queue is to have for it before it is placed.
};

// The object of that uid is gone.
struct GroupRemove {
  std::string uid;
};

struct Group {
  OwnerId uid;  // Invalid in a free row.
  KeyId key;
  std::vector<RoleMinimum> min_of_roles;  // Ascending.
  int32_t min_member = 0;
  std::optional<int32_t> priority;
  Instant creation;
  GroupPhase phase = GroupPhase::kPending;
  NameId queue;
  BundleId min_resources;
  // Decided: forgotten by a restart.
  bool let_in = false;    // Its queue has room for it, which its object does not say yet.
  bool futile = false;    // Nodes can't hold it even if they are empty: nothing is kept for it.
  uint32_t attempts = 0;  // Cycles that found no room for it, since its members last changed.
  Instant backoff_until;  // Others go first until then.

  void AddTo(Hasher& hasher) const;
};

// What a pod is to the group that it names.
enum class MemberKind : uint8_t {
  kApart,    // Gated, another scheduler's, or deleted before it had a node.
  kWaiting,  // To be placed.
  kDecided,  // It gets a node, as far as we know.
  kBound,    // It has one.
  kLeaving,  // Being deleted, or released, still on its node.
  kSucceeded,
  kFailed,
};
inline constexpr size_t kMemberKindsCount = 7;
[[nodiscard]] MemberKind MemberKindOf(const Pod& pod);

struct MemberCounts {
  uint32_t of[kMemberKindsCount] = {};
  [[nodiscard]] uint32_t operator[](MemberKind kind) const { return of[static_cast<size_t>(kind)]; }
  // Those that have or get a node, and those that did what they were to do.
  [[nodiscard]] uint32_t ready() const {
    return (*this)[MemberKind::kDecided] + (*this)[MemberKind::kBound] +
           (*this)[MemberKind::kSucceeded];
  }
  bool operator==(const MemberCounts&) const = default;
};
[[nodiscard]] constexpr bool IsReady(MemberKind kind) {
  return kind == MemberKind::kDecided || kind == MemberKind::kBound ||
         kind == MemberKind::kSucceeded;
}

// What a group's object should say of its life, of what it says and what its members are observed
// to be. As Volcano's, but: a member that is being deleted counts until it is gone (P12), who
// completed stays so until a new member comes (P13), with members that wait nothing is completed
// (P14), nothing counts before it is observed (P16), and who ran and has too few is Unknown and
// never Pending again (P24). Pending becomes Inqueue when the queue lets it in.
[[nodiscard]] GroupPhase PhaseOf(const Group& group, const MemberCounts& counts);
[[nodiscard]] std::string_view ToString(GroupPhase phase);
// Whether its queue keeps for it what it asks for: from when it is let in until its object says
// that it ran, or is over; but as long as its members could not have places at all. Members alone
// don't tell: before that is written they may be too few again, and what others were promised
// meanwhile would be missing.
[[nodiscard]] inline bool IsKeptFor(const Group& group) {
  return (group.let_in || group.phase == GroupPhase::kInqueue) && !group.futile;
}

// What keeps a group from being let in by its queue, or its members from being placed, whatever
// room there is.
enum class GroupBar : uint8_t {
  kNone,
  kQueueMissing,   // There is no queue of that name.
  kQueueClosed,    // It, or one above it, is closed: who runs goes on.
  kParentMissing,  // One above it is not there.
  kQueueCycle,     // Those above it name each other as parents.
};

// Rows by uid, and who names them by key: pods come before, stay after, and belong to whichever
// object bears the name now. What an older one had ended with its uid (P01 of docs/REGRESSIONS.md).
// O(1) by uid, key, row, queue and pod.
class GroupTable : public ObjectTable<Group, GroupId> {
 public:
  // Of those who name the key; zero for a key that nobody names.
  [[nodiscard]] MemberCounts CountsOf(KeyId key) const;
  // Calls visit(pod) for each of its members, in any order. It may change all but who is one.
  template <typename Visit>
  void ForMembers(KeyId key, Visit visit) const {
    PodId pod = key.value < members_.size() ? members_[key.value].first : PodId{};
    for (; pod.valid(); pod = links_[pod.value].next) visit(pod);
  }
  // The group that the pod was last noted with; invalid for none.
  [[nodiscard]] KeyId GroupOf(PodId pod) const {
    return pod.value < links_.size() ? links_[pod.value].group : KeyId{};
  }
  [[nodiscard]] MemberKind KindOf(PodId pod) const { return links_[pod.value].kind; }

  // Calls visit(group) for each that is in the queue of that name, in any order. It may change all
  // but which queue a group is in.
  template <typename Visit>
  void ForQueue(NameId queue, Visit visit) const {
    GroupId id = queue.value < first_of_queue_.size() ? first_of_queue_[queue.value] : GroupId{};
    for (; id.valid(); id = in_queue_[id.value].next) visit(id);
  }

  // For State.
  // Returns the queue that it was in. An invalid one, for none, before its row goes.
  NameId SetQueue(GroupId group, NameId queue);
  // The pod names this group (none: an invalid key) and is that to it. Whether anything changed.
  bool Note(PodId pod, KeyId group, MemberKind kind);

 private:
  struct Links {
    KeyId group;
    PodId next;
    PodId previous;
    MemberKind kind = MemberKind::kApart;
  };
  struct Members {
    PodId first;
    MemberCounts counts;
  };
  struct InQueue {
    GroupId next;
    GroupId previous;
  };
  // Functions of the pods and rows; the order of lists decides nothing, so AddTo leaves all out.
  std::vector<Members> members_;         // By KeyId.
  std::vector<Links> links_;             // By PodId.
  std::vector<GroupId> first_of_queue_;  // By NameId.
  std::vector<InQueue> in_queue_;        // By GroupId.
};

}  // namespace berth::model
