#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "model/flavor_reason.h"
#include "model/plan.h"
#include "model/state.h"
#include "model/topology_refusal.h"
#include "model/vocabulary.h"
#include "model/workloads.h"

// Why a workload waits for quota, in Kueue's words.
namespace berth::translate {

// As a quantity of the resource is printed: cpu from thousandths, bytes in powers of two.
[[nodiscard]] std::string ResourceAmountText(std::string_view resource, int64_t amount);

// What a workload waits for, as its condition QuotaReserved=False tells it.
struct WaitText {
  std::string reason;
  std::string message;
  bool operator==(const WaitText&) const = default;
};
[[nodiscard]] WaitText WorkloadRefusalText(const model::WorkloadRefusal& refusal,
                                           const model::Workload& workload,
                                           const model::State& state);

// What its user, or who runs the queue, can change to have it admitted, where Kueue's words don't
// say; empty where it only has to wait. "set spec.topologyName of the
// ResourceFlavor"
[[nodiscard]] std::string AdviceText(const model::WorkloadRefusal& refusal,
                                     const model::Vocabulary& vocabulary);
// As its condition tells it: why it waits, and what to change.
[[nodiscard]] WaitText WithAdvice(WaitText why, const model::WorkloadRefusal& refusal,
                                  const model::Vocabulary& vocabulary);

// The reason where its pods are of a group that could not start with them.
inline constexpr std::string_view kWaitingForGang = "WaitingForGang";
// Of one that has quota: whom it is to be admitted with; invalid: nobody that has quota.
[[nodiscard]] std::string AwaitedText(model::KeyId awaited, const model::State& state);
// The reason where there is quota, and no place in a topology.
inline constexpr std::string_view kNoPlaceInTopology = "TopologyPlacementFailed";
// "only 1 of 2 pods of pod set main find nodes: ...", or Kueue's words for a topology.
[[nodiscard]] std::string PlacesRefusalText(const model::PlacesRefusal& refusal,
                                            const model::Workload& workload,
                                            const model::State& state);

// The reason of the condition Preempted.
[[nodiscard]] std::string_view ToString(model::VictimReason reason);

// Why it is evicted for another, as its conditions Evicted and Preempted tell it. What is empty is
// told as UNKNOWN.
struct PreemptionWords {
  std::string_view uid;  // Of the workload that it is evicted for.
  std::string_view job_uid;
  std::optional<model::VictimReason> reason;
  std::string_view preemptor_path;  // Of queues, as QueuePath has it.
  std::string_view preemptee_path;
};
[[nodiscard]] std::string PreemptionText(const PreemptionWords& words);

// "/root/cohort/queue". REQUIRES: the queue is active.
[[nodiscard]] std::string QueuePath(model::QueueId queue, const model::State& state);

// "insufficient unused quota for cpu in flavor spot, 1 more needed"
[[nodiscard]] std::string FlavorReasonText(const model::FlavorReason& reason,
                                           const model::Vocabulary& vocabulary);

// The reason of the condition QuotaReserved, as "WaitingForQuota"; of none empty.
[[nodiscard]] std::string_view ToString(model::Unfit unfit);

// "more than one TAS flavor assigned: a, b". `flavors`: those that have a topology, in any order.
[[nodiscard]] std::string TopologyFaultText(model::TopologyFault fault,
                                            std::span<const model::NameId> flavors,
                                            const model::Vocabulary& vocabulary);

// "topology "racks" allows to fit only 3 out of 4 pod(s)"
[[nodiscard]] std::string TopologyRefusalText(const model::TopologyRefusal& refusal,
                                              const model::Vocabulary& vocabulary);

}  // namespace berth::translate
