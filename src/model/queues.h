#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/hash.h"
#include "model/ids.h"
#include "model/ledger.h"
#include "model/quota_tree.h"

// The tree of queues: which there are, and which account of the ledger has what quota of them
// (docs/design/0009-queue-tree.md).
namespace berth::model {

enum class QueueKind : uint8_t {
  kCohort,
  kClusterQueue,  // Its parent is a cohort.
  kQueue,         // Volcano's: its parent is one, and its quota is of the whole (QuotaTree).
};
inline constexpr size_t kQueueKindsCount = 3;
[[nodiscard]] constexpr QueueKind ParentKindOf(QueueKind kind) {
  return kind == QueueKind::kQueue ? QueueKind::kQueue : QueueKind::kCohort;
}

// Volcano's: where every queue is that names no parent, whether there is an object of that name or
// not; and the queue of those who name none, who are the root's own where there is no such object.
inline constexpr std::string_view kRootQueue = "root";
inline constexpr std::string_view kDefaultQueue = "default";

// Good whether there is such a queue or not.
struct QueueName {
  QueueKind kind = QueueKind::kClusterQueue;
  NameId name;
  auto operator<=>(const QueueName&) const = default;
};

struct QueueQuota {
  NameId flavor;  // Invalid: of no flavor.
  ResourceId resource;
  Quota quota;
  bool operator==(const QueueQuota&) const = default;
};

// Whose claims on quota may be evicted for another's: Kueue's policies.
enum class EvictionPolicy : uint8_t {
  kNever,
  kLowerPriority,
  kLowerOrNewerEqualPriority,
  kAny,
};

// For whom a queue's workloads may evict others.
struct QueuePreemption {
  EvictionPolicy within_queue = EvictionPolicy::kNever;
  EvictionPolicy reclaim = EvictionPolicy::kNever;  // Of others that use more than they have.
  bool borrows = false;  // It may evict others of lower priority to use more than it has itself:
  int32_t borrows_from_priority_max =
      std::numeric_limits<int32_t>::max();  // Those of at most that.
  bool operator==(const QueuePreemption&) const = default;
};

// Which of the flavors of a group of resources is taken: Kueue's fungibility. Without more, the
// first that fits or can be made to.
struct QueueFungibility {
  bool next_before_borrowing = false;  // Later flavors are tried before one is taken by borrowing;
  bool next_before_preempting = true;  // before one for which others are evicted.
  bool preempts_before_borrows = false;  // Of those tried, which is better.
  bool operator==(const QueueFungibility&) const = default;
};

// An admission check that a ClusterQueue asks for.
struct QueueCheck {
  NameId name;
  std::vector<NameId> flavors;  // Of those alone that get one of them; empty: of all.
  // Who passes it may find other nodes than there were: places come after it, not with quota.
  bool brings_nodes = true;
  bool operator==(const QueueCheck&) const = default;
};

// A cohort or queue as it is. Whoever is named as parent is there from then on, without quota until
// its own object is known.
struct QueueUpsert {
  QueueKind kind = QueueKind::kClusterQueue;
  std::string name;
  std::string uid;
  std::string parent;                   // Empty: none.
  std::vector<QueueQuota> quotas = {};  // One of a flavor and resource.
  QueuePreemption preemption = {};
  ResourceGroupsId groups = {};  // Of a ClusterQueue; their flavors have quota above.
  QueueFungibility fungibility = {};
  bool strict_fifo = false;  // Who finds no quota bars those behind it.
  bool stopped = false;      // Nothing more is admitted; of Volcano's: it is closed.
  bool deleting = false;     // Why it is stopped.
  // Nor while some of the admission checks that it asks for are not there, or nobody does them.
  bool lacks_checks = false;
  std::vector<QueueCheck> checks = {};
  int32_t weight = 1;  // Of a Volcano queue, among its siblings.
};

// The object is gone. With a uid, only if it is still that one.
struct QueueRemove {
  QueueKind kind = QueueKind::kClusterQueue;
  std::string name;
  std::string uid;
};

struct Queue {
  static constexpr uint32_t kNoAccount = QuotaTree::kNoRow;
  NameId name;  // Invalid in a free row.
  QueueKind kind = QueueKind::kCohort;
  bool in_cycle = false;        // Who follows the parents comes back here: it is linked to none.
  OwnerId uid;                  // Invalid: there is no such object.
  QueueId parent;               // That it names.
  uint32_t children_count = 0;  // That name it, in a cycle itself.
  uint32_t first_account = kNoAccount;
  // Those that name it, in no order.
  QueueId first_child;
  QueueId next_sibling;
  QueueId previous_sibling;
  uint32_t height = 0;  // Levels below it that are linked to it.
  QueuePreemption preemption;
  ResourceGroupsId groups;
  QueueFungibility fungibility;
  bool strict_fifo = false;
  bool stopped = false;
  bool deleting = false;
  bool lacks_checks = false;
  std::vector<QueueCheck> checks;
  int32_t weight = 1;
};

// A queue's account of one flavor: a row of Ledger::tree() and Ledger::quota().
struct QueueAccount {
  QueueId queue;  // Invalid in a free row.
  NameId flavor;
  uint32_t next = Queue::kNoAccount;  // Of the queue.
  uint32_t children_count = 0;        // Linked to it.
  uint32_t defined_count = 0;         // Resources that it has quota of.
  bool pinned = false;                // Kept with its queue, whatever is charged to it.
};

// Rows by kind and name, as children and claims refer to them: a row lives as long as its object, a
// queue that names it, or an account; an account as long as it has quota, one linked to it, or
// claims, and that of a Volcano queue as long as its object. Both are used again. Links of the
// ledger's quota follow the parents that are named, but in a cycle, whose queues are roots.
//
// O(1) by name; a change of quota is O(quotas + resources), of a parent O(accounts x resources x
// levels + the cycle that it makes or breaks), and where a queue was the highest of its siblings,
// O(siblings). Single-threaded.
class QueueTable {
 public:
  // Rows, free ones too.
  [[nodiscard]] uint32_t size() const { return static_cast<uint32_t>(rows_.size()); }
  [[nodiscard]] uint32_t live() const {
    return static_cast<uint32_t>(rows_.size() - free_rows_.size());
  }
  [[nodiscard]] bool used(QueueId q) const {
    return q.value < rows_.size() && rows_[q.value].name.valid();
  }
  [[nodiscard]] const Queue& at(QueueId q) const { return rows_[q.value]; }
  [[nodiscard]] QueueId Find(QueueKind kind, NameId name) const;
  [[nodiscard]] QueueName NameOf(QueueId q) const { return {at(q).kind, at(q).name}; }
  // Whether there is such an object and no cycle above it. O(levels).
  [[nodiscard]] bool active(QueueId q) const;
  // The highest queue whose quota it may share. O(levels).
  [[nodiscard]] QueueId RootOf(QueueId q) const;
  // Whether the fact says nothing new. O(quotas + accounts x resources).
  [[nodiscard]] bool IsAs(QueueId q, const QueueUpsert& facts, NameId parent, OwnerId uid,
                          const Ledger& ledger) const;

  // One past the largest account ever given, as Ledger::tree().size().
  [[nodiscard]] uint32_t accounts_size() const { return static_cast<uint32_t>(accounts_.size()); }
  [[nodiscard]] uint32_t accounts_live() const {
    return static_cast<uint32_t>(accounts_.size() - free_accounts_.size());
  }
  [[nodiscard]] const QueueAccount& account(uint32_t row) const { return accounts_[row]; }
  // Whether it is a Volcano queue's, which is of no flavor.
  [[nodiscard]] bool IsOfMembers(uint32_t account) const {
    const QueueAccount& row = accounts_[account];
    return at(row.queue).kind == QueueKind::kQueue && !row.flavor.valid();
  }
  // Queue::kNoAccount when it has none. O(flavors of the queue).
  [[nodiscard]] uint32_t AccountOf(QueueId q, NameId flavor) const;

  // Whether the rows and accounts that the fact may need are within limits; errs on the
  // safe side. O(quotas + levels).
  [[nodiscard]] bool HasRoomFor(const QueueUpsert& facts, QueueId q, QueueId parent) const;

  // For State: names are interned, `uid` is acquired, and what is returned is to be released.
  [[nodiscard]] OwnerId Put(const QueueUpsert& facts, NameId name, NameId parent, OwnerId uid,
                            Ledger& ledger);
  [[nodiscard]] OwnerId Remove(QueueId q, Ledger& ledger);
  // The queue of that name, there or not: one that is not is dropped again with its last account,
  // so it is to get one.
  [[nodiscard]] QueueId FindOrAdd(QueueKind kind, NameId name);
  // Its account of the flavor, and those above it.
  [[nodiscard]] uint32_t EnsureAccount(QueueId q, NameId flavor, Ledger& ledger);
  // As long as it is pinned, the queue of that name is there and has an account of no flavor.
  void Pin(QueueKind kind, NameId name, bool pinned, Ledger& ledger);
  // Claims of the account ended.
  void DropUnused(uint32_t account, Ledger& ledger);

  void AddTo(Hasher& hasher) const;

 private:
  uint32_t AddAccount(QueueId q, NameId flavor, Ledger& ledger);
  void SetQuotas(QueueId q, std::span<const QueueQuota> quotas, Ledger& ledger);
  void SetParent(QueueId q, QueueId parent, Ledger& ledger);
  void LeaveCycle(QueueId q, Ledger& ledger);
  [[nodiscard]] bool ClosesCycle(QueueId q) const;
  void EnterCycle(QueueId q, Ledger& ledger);
  void Attach(QueueId q, Ledger& ledger);
  void Detach(QueueId q, Ledger& ledger);
  void RaiseAbove(QueueId q);
  void LowerFrom(QueueId parent, uint32_t height_of_gone);
  void DropQueue(QueueId q);
  void AddChild(QueueId parent, QueueId q);
  void RemoveChild(QueueId parent, QueueId q);

  std::vector<Queue> rows_;
  std::vector<QueueId> free_rows_;
  std::array<std::vector<QueueId>, kQueueKindsCount> row_of_name_;
  std::vector<QueueAccount> accounts_;
  std::vector<uint32_t> free_accounts_;
};

}  // namespace berth::model
