#pragma once

#include <string>
#include <vector>

#include "api/groups.h"
#include "api/quota.h"
#include "model/flavors.h"
#include "model/queues.h"
#include "model/vocabulary.h"
#include "model/workload_stage.h"
#include "model/workloads.h"

// Kueue's objects and Volcano's queues to the model's facts, as translate/facts.h. Cost: O(size of
// the object).
namespace berth::translate {

// Quotas of resources beyond limits::kResourceKindsMax are left out; their names are added to
// `left_out`, each once. A policy that is not known is as Kueue's default: it evicts nobody. Of a
// flavor's resource that is given twice the last quota stands.
[[nodiscard]] model::QueueUpsert QueueFacts(const api::ClusterQueue& queue,
                                            model::Vocabulary& vocabulary,
                                            std::vector<std::string>* left_out = nullptr);
[[nodiscard]] model::QueueUpsert QueueFacts(const api::Cohort& cohort,
                                            model::Vocabulary& vocabulary,
                                            std::vector<std::string>* left_out = nullptr);

// Of Volcano's. A resource of which it says nothing it has as its parent has it.
[[nodiscard]] model::QueueUpsert QueueFacts(const api::Queue& queue, model::Vocabulary& vocabulary,
                                            std::vector<std::string>* left_out = nullptr);

// Of its taints those that keep pods out: NoSchedule and NoExecute.
[[nodiscard]] model::FlavorUpsert FlavorFacts(const api::ResourceFlavor& flavor,
                                              model::Vocabulary& vocabulary);

[[nodiscard]] model::TopologyWish TopologyWishOf(const api::TopologyRequest& request,
                                                 model::Vocabulary& vocabulary);
[[nodiscard]] model::TopologyUpsert TopologyFacts(const api::Topology& topology,
                                                  model::Vocabulary& vocabulary);

// What its conditions and the rest of its status come to. Conditions of unknown type, and ones that
// are neither True nor False, say nothing.
[[nodiscard]] model::WorkloadStatus WorkloadStatusOf(const api::Workload& workload);

}  // namespace berth::translate
