#pragma once

#include <optional>

#include "api/quota.h"
#include "base/result.h"
#include "model/vocabulary.h"
#include "model/workloads.h"
#include "translate/pod_defaults.h"
#include "translate/priority_classes.h"

// Workloads and LocalQueues to the model's facts, and what was decided of them back to objects, as
// translate/facts.h. Cost: O(size of the object).
namespace berth::translate {

// What admission gives those that are made of a template, and refuses them for.
struct PodRules {
  PriorityClasses classes;
  PodDefaults defaults;
};

// Pods that are done with what they were to do (status.reclaimablePods) are neither asked for nor
// charged. Charges of pod sets that are not there are left out. What containers limit and don't
// request is requested, as it will be of their pods, and so is what `rules` give them (K027, K056).
//
// Fails with kInvalid or kTooLarge where a template of its does, as PodFacts(), it has no pod sets,
// or one that waits requests more than it may use or LimitRanges allow; but what has quota, or is
// finished, is told without those slots. Counts are as they are, be they of more pods than a
// scheduler holds.
//
// `placement`: what its annotation says; read if it is of its admission, and has a place for each
// of its pods, or for none of a pod set. Where the assignment to a topology tells nodes it is
// these, and of the annotation the devices of those that it tells, too: the two are written one
// after the other. Null: nothing.
//
// `rules`: of its pods. Of what they have by a PriorityClass the Workload's own priority tells,
// unless that is of a WorkloadPriorityClass; whether they may evict others the class tells in any
// case.
[[nodiscard]] Result<model::WorkloadUpsert> WorkloadFacts(const api::Workload& workload,
                                                          model::Vocabulary& vocabulary,
                                                          const api::Placement* placement = nullptr,
                                                          const PodRules& rules = {});

// Which group pods of the pod set will be in, and as what: the one that their template names, or
// else, of Volcano's scheduler, the one that is made for the pods of the workload's Job
// (api/groups.h).
void PutGang(const api::Workload& workload, const api::WorkloadPodSet& pods,
             model::Vocabulary& vocabulary, model::WorkloadSlots& slots);

// status.admission of what was decided, with amounts as upstream prints them.
[[nodiscard]] api::Admission AdmissionOf(const model::Workload& workload,
                                         const model::Vocabulary& vocabulary);

// Into what its status.admission is, where the reservation says that its pods stand by topologies.
void PutTopologies(const model::Reservation& reservation, const model::Workload& workload,
                   const model::Vocabulary& vocabulary, api::Admission& admission);

// The annotation of what was decided; nothing where no pod got a place but by a topology that tells
// its node.
[[nodiscard]] std::optional<api::Placement> PlacementOf(const model::Workload& workload,
                                                        const model::Vocabulary& vocabulary);

}  // namespace berth::translate
