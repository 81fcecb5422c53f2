#pragma once

#include <cstdint>
#include <vector>

#include "base/time.h"
#include "env/actor.h"
#include "sim/network.h"

namespace berth::sim {

// Defects of whole processes, planted into what they send and hear: what a checker sees of a defect
// is its messages, and the products need no switch for it.
enum class Tampering : uint8_t {
  kNone,
  // Of the scheduler.
  kBindWithoutUid,
  kBindWithoutDevices,
  kBindingNotDone,      // Of pods without a controller: the server only says that it was done.
  kHopelessPodDeleted,  // A pod without a controller that fits nowhere is deleted, not told so.
  kQuotaUnfenced,       // What is written of workloads names no version.
  kFailuresKept,        // Which nodes of a workload failed is told still when it gets others.
  kOneFlavorRead,       // Of a workload's flavors the one of memory is lost when it is read.
  kChecksKept,          // What checks said of a workload stands when it is evicted for that.
  kPlacesLeftOut,       // What is written of a workload gives it quota, and no places.
  kPassWithoutPlaces,   // Who is to be evicted for its nodes keeps its quota, without places.
  kChecksUnheard,       // Every queue is taken for one that asks for no checks.
  kQueuesKept,          // That a queue is in use no more: the server only says that it was done.
  kStrictUnheard,       // Every queue is taken for one in which others may pass.
  kTooFewUntold,     // That a group which ran has too few: the server only says that it was done.
  kRetryIgnored,     // Who is to try a check again is not evicted: the server only says that it is.
  kReturnUnwritten,  // The same of what says that a workload is held back no more.
  kMarkOfAnother,    // Who is evicted is marked with another pod's status.
  kDeafScheduler,    // Hears nothing from its watches after some time.
  kPolicyUnheard,    // Takes every pod for one that may preempt.
  // Of kubelets.
  kAdmittedAgain,
  kAddressChanged,
  kRestartsForgotten,
  kRunningPodFailed,   // Pods without a controller.
  kRunningPodDeleted,  // Likewise.
  // Of the controllers.
  kPodNotDeleted,
  kRanksTrusted,         // Pods of a rank are taken to stand at its place.
  kLatePodsKept,         // A pod goes on where its workload has no place any more.
  kReplacementsEnded,    // Pods that wait for the place of a node that failed are ended.
  kFailedNodesUsed,      // Pods are let onto nodes that failed.
  kEndingPodBlamesNode,  // A node on which a pod of a Job ends is told to have failed.
  kSilentNodeBlamed,     // So is one that is silent, although pods of the Job go on there.
  kGroupEndedUnread,     // A group is ended by what was seen of its owner.
  kNamedPodsSkipped,     // A group that is gone is not made again for pods that name it.
  kGroupByOwnerName,     // Pods name the group of whichever owner has the name of theirs.
  kEmptyGroupsEnded,     // One that nobody is in is ended, whatever its owner wants.
  kOwnerGoneUnread,      // An owner that was not heard of is taken for gone.
  kHeldIgnored,          // Jobs make their pods before they are admitted.
  kFailureUntold,        // That a Job failed ends no Workload.
  kWorkloadsKept,        // What keeps a Workload from being gone is never taken off.
  kPodsUnasked,          // It is taken off, whatever pods go on by what the Workload holds.
  kForeignTaken,         // Workloads of another namespace are taken for those of this one.
  kEmptyGroupsKept,      // A group that nobody is in is kept.
  kDeletionUnfenced,     // What is deleted is whatever bears the name.
  kBudgetOverstated,     // One disruption more than there is.
  // Of what users asked for.
  kScaledToMore,
  kJobSuspended,
  // Of the API server: what an eviction costs the budget, ...
  kEvictionUncharged,
  kEvictionChargedTwice,
  // ... and when it starts again.
  kBindingsLost,
};

// What leaves a party.
void TamperSent(Tampering tampering, Party party, env::HttpRequest& request);
// What reaches a party. False: it never does.
[[nodiscard]] bool TamperHeard(Tampering tampering, Duration since_start, Party party,
                               env::Input& input);
// What reaches a party as the answer to a read of one object.
void TamperRead(Tampering tampering, env::Input& input);
// What a server writes to its journal.
void TamperWritten(Tampering tampering, std::vector<env::JournalRecord>& records);
// What a server finds when it starts again.
void TamperRecovered(Tampering tampering, std::vector<env::JournalRecord>& records);

}  // namespace berth::sim
