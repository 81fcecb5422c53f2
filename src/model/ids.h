#pragma once

#include <cstdint>
#include <limits>

#include "base/ids.h"

// Strong ids of the model. All are dense and given in arrival order, so none may decide anything
// (STYLE 20).
namespace berth::model {

using NameId = Id<struct NameTag>;    // Vocabulary::names: label keys and values, node names, taint
                                      // keys, models.
using OwnerId = Id<struct OwnerTag>;  // State::owners: the uid of an object that holds claims.
using KeyId = Id<struct KeyTag>;      // State::keys: "namespace/name" of a pod, group,
                                      // workload or LocalQueue.

using ResourceId = Id<struct ResourceTag>;
using BundleId = Id<struct BundleTag>;
using LabelListId = Id<struct LabelListTag>;
using TaintListId = Id<struct TaintListTag>;
using TolerationListId = Id<struct TolerationListTag>;
using NameListId = Id<struct NameListTag>;
using SelectorId = Id<struct SelectorTag>;
using PreferenceListId = Id<struct PreferenceListTag>;
using PodSelectorId = Id<struct PodSelectorTag>;  // Vocabulary::pod_selectors.
using SpreadListId = Id<struct SpreadListTag>;
using VolumeListId = Id<struct VolumeListTag>;
using ClassId = Id<struct ClassTag>;
using ResourceGroupsId = Id<struct ResourceGroupsTag>;

using NodeId = Id<struct NodeTag>;              // Row of NodeTable: one per node *name*.
using PodId = Id<struct PodTag>;                // Row of PodTable: one per pod uid.
using GroupId = Id<struct GroupTag>;            // Row of GroupTable: one per group uid.
using WorkloadId = Id<struct WorkloadTag>;      // Row of WorkloadTable: one per workload uid.
using LocalQueueId = Id<struct LocalQueueTag>;  // Row of LocalQueueTable: one per uid.
using PodLabelsId = Id<struct PodLabelsTag>;    // BudgetTable: a namespace and labels.
using BudgetId = Id<struct BudgetTag>;          // Row of BudgetTable: one per key.
using ClaimId = Id<struct ClaimTag>;
using QueueId = Id<struct QueueTag>;  // Row of QueueTable: one per kind and name.

// Milli-units for cpu and GPUs, whole units (bytes, items) for the rest. Amounts that come from
// outside are within [0, limits::kAmountMax]; sums and differences of them may be negative and
// can't overflow.
using Amount = int64_t;

// A sum of amounts that none may clamp.
__extension__ using WideAmount = __int128;

// A capacity without bound. Its own value: sums of it are never formed.
inline constexpr Amount kUnlimited = std::numeric_limits<Amount>::max();

}  // namespace berth::model
