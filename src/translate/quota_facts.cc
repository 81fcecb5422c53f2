#include "translate/quota_facts.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "api/well_known.h"
#include "base/limits.h"
#include "translate/lists.h"

namespace berth::translate {
namespace {

using model::NameId;
using model::ResourceId;

// Of a Volcano queue: its definition's.
constexpr int64_t kWeightMax = 65535;

// ---- Queues --------------------------------------------------------------------------------

// Resources by name, as far as there is room for their kinds.
class Resources {
 public:
  Resources(model::ResourceTable& table, std::vector<std::string>* left_out)
      : table_(table), left_out_(left_out) {}

  std::optional<ResourceId> Find(const std::string& name) {
    const Result<ResourceId> id = table_.Intern(name);
    if (id) return *id;
    if (left_out_ != nullptr && std::ranges::find(*left_out_, name) == left_out_->end())
      left_out_->push_back(name);
    return std::nullopt;
  }

 private:
  model::ResourceTable& table_;
  std::vector<std::string>* left_out_;
};

std::vector<model::QueueQuota> QuotasOf(std::span<const api::ResourceGroup> groups,
                                        model::Vocabulary& vocabulary, Resources& resources) {
  std::vector<model::QueueQuota> quotas;
  for (const api::ResourceGroup& group : groups) {
    for (const api::FlavorQuotas& flavor : group.flavors) {
      const NameId name = vocabulary.names.Intern(flavor.flavor);
      for (const api::ResourceQuota& quota : flavor.resources) {
        const std::optional<ResourceId> resource = resources.Find(quota.resource);
        if (!resource) continue;
        quotas.push_back(
            {.flavor = name,
             .resource = *resource,
             .quota = {.nominal = quota.nominal,
                       .borrowing_limit = quota.borrowing_limit.value_or(model::kUnlimited),
                       .lending_limit = quota.lending_limit.value_or(model::kUnlimited)}});
      }
    }
  }
  return quotas;
}

model::ResourceGroupsId InternGroups(std::span<const api::ResourceGroup> groups,
                                     model::Vocabulary& vocabulary, Resources& resources) {
  std::vector<std::vector<ResourceId>> covered(groups.size());
  std::vector<std::vector<NameId>> flavors(groups.size());
  std::vector<model::ResourceGroup> out;
  for (size_t i = 0; i < groups.size(); ++i) {
    for (const std::string& name : groups[i].covered) {
      if (const auto resource = resources.Find(name)) covered[i].push_back(*resource);
    }
    for (const api::FlavorQuotas& flavor : groups[i].flavors)
      flavors[i].push_back(vocabulary.names.Intern(flavor.flavor));
    out.push_back({.resources = covered[i], .flavors = flavors[i]});
  }
  return vocabulary.resource_groups.Intern(out);
}

model::EvictionPolicy PolicyOf(std::string_view policy) {
  if (policy == "LowerPriority") return model::EvictionPolicy::kLowerPriority;
  if (policy == "LowerOrNewerEqualPriority")
    return model::EvictionPolicy::kLowerOrNewerEqualPriority;
  if (policy == "Any") return model::EvictionPolicy::kAny;
  return model::EvictionPolicy::kNever;
}

model::QueuePreemption PreemptionOf(const api::ClusterQueuePreemption& policies) {
  using Priority = std::numeric_limits<int32_t>;
  const int64_t most = policies.borrow_priority_threshold.value_or(Priority::max());
  return {.within_queue = PolicyOf(policies.within_cluster_queue),
          .reclaim = PolicyOf(policies.reclaim_within_cohort),
          .borrows = PolicyOf(policies.borrow_within_cohort) != model::EvictionPolicy::kNever,
          .borrows_from_priority_max =
              static_cast<int32_t>(std::clamp<int64_t>(most, Priority::min(), Priority::max()))};
}

model::QueueFungibility FungibilityOf(const api::ClusterQueue& queue) {
  return {.next_before_borrowing = queue.when_can_borrow == "TryNextFlavor",
          .next_before_preempting = queue.when_can_preempt != "MayStopSearch",
          .preempts_before_borrows = queue.fungibility_preference == "PreemptionOverBorrowing"};
}

std::vector<model::QueueCheck> ChecksOf(const api::ClusterQueue& queue,
                                        model::Vocabulary& vocabulary) {
  std::vector<model::QueueCheck> checks;
  for (const api::RequiredCheck& check : queue.checks) {
    model::QueueCheck& out = checks.emplace_back();
    out.name = vocabulary.names.Intern(check.name);
    for (const std::string& flavor : check.flavors)
      out.flavors.push_back(vocabulary.names.Intern(flavor));
  }
  return checks;
}

// ---- Workloads -----------------------------------------------------------------------------

bool Says(const api::Condition* condition, std::string_view status) {
  return condition != nullptr && condition->status == status;
}

model::EvictedFor EvictedForOf(std::string_view reason) {
  if (reason == "PodsReadyTimeout") return model::EvictedFor::kPodsNotReady;
  if (reason == "AdmissionCheck") return model::EvictedFor::kCheck;
  return model::EvictedFor::kOther;
}

void ReadPlacements(const api::Workload& workload, model::WorkloadStatus& out) {
  if (!workload.admission) return;
  for (const api::PodSetAssignment& pods : workload.admission->pod_sets) {
    if (!pods.topology) {
      out.awaits_topology = out.awaits_topology || pods.topology_delayed;
      continue;
    }
    const auto stands_on = [&](const std::string& node) {
      return std::ranges::any_of(pods.topology->domains, [&](const api::TopologyDomain& domain) {
        return !domain.values.empty() && domain.values.back() == node;
      });
    };
    out.on_unhealthy_node =
        out.on_unhealthy_node || std::ranges::any_of(workload.unhealthy_nodes, stands_on);
  }
}

}  // namespace

model::QueueUpsert QueueFacts(const api::ClusterQueue& queue, model::Vocabulary& vocabulary,
                              std::vector<std::string>* left_out) {
  Resources resources(vocabulary.resources, left_out);
  return {.kind = model::QueueKind::kClusterQueue,
          .name = queue.meta.name,
          .uid = queue.meta.uid,
          .parent = queue.cohort,
          .quotas = QuotasOf(queue.resource_groups, vocabulary, resources),
          .preemption = PreemptionOf(queue.preemption),
          .groups = InternGroups(queue.resource_groups, vocabulary, resources),
          .fungibility = FungibilityOf(queue),
          .strict_fifo = queue.strict_fifo,
          // One that is being deleted admits nothing more, either.
          .stopped = queue.stop != api::StopPolicy::kNone || queue.meta.deletion_time.has_value(),
          .deleting = queue.meta.deletion_time.has_value(),
          .checks = ChecksOf(queue, vocabulary)};
}

model::QueueUpsert QueueFacts(const api::Cohort& cohort, model::Vocabulary& vocabulary,
                              std::vector<std::string>* left_out) {
  Resources resources(vocabulary.resources, left_out);
  return {.kind = model::QueueKind::kCohort,
          .name = cohort.meta.name,
          .uid = cohort.meta.uid,
          .parent = cohort.parent,
          .quotas = QuotasOf(cohort.resource_groups, vocabulary, resources)};
}

// Guarantee G, deserved D and capability C as one quota: D, of which G is not lent, and C - D
// beyond it. Of the root C is what there is, and the rest says nothing.
model::QueueUpsert QueueFacts(const api::Queue& queue, model::Vocabulary& vocabulary,
                              std::vector<std::string>* left_out) {
  Resources resources(vocabulary.resources, left_out);
  const bool root = queue.meta.name == model::kRootQueue;
  model::QueueUpsert facts{
      .kind = model::QueueKind::kQueue,
      .name = queue.meta.name,
      .uid = queue.meta.uid,
      .parent = root ? "" : std::string(model::kRootQueue),
      // One that is being deleted starts nothing more, either.
      .stopped = !api::IsOpen(queue) || queue.meta.deletion_time.has_value(),
      .deleting = queue.meta.deletion_time.has_value(),
      .weight = static_cast<int32_t>(std::clamp<int64_t>(queue.weight, 1, kWeightMax))};
  if (!root && !queue.parent.empty()) facts.parent = queue.parent;
  std::set<std::string> names;
  for (const api::ResourceList* list : {&queue.capability, &queue.deserved, &queue.guarantee}) {
    if (root && list != &queue.capability) continue;
    for (const api::ResourceAmount& a : *list) names.insert(a.name);
  }
  for (const std::string& name : names) {
    const std::optional<ResourceId> resource = resources.Find(name);
    if (!resource) continue;
    const auto of = [&](const api::ResourceList& list) { return api::Find(list, name); };
    const std::optional<int64_t> capability = of(queue.capability);
    if (root) {
      facts.quotas.push_back({.resource = *resource, .quota = {.nominal = *capability}});
      continue;
    }
    const int64_t most = capability.value_or(limits::kQuotaMax);
    const int64_t guarantee = std::min(of(queue.guarantee).value_or(0), most);
    const int64_t deserved = std::clamp(of(queue.deserved).value_or(0), guarantee, most);
    facts.quotas.push_back(
        {.resource = *resource,
         .quota = {.nominal = deserved,
                   .borrowing_limit = capability ? most - deserved : model::kUnlimited,
                   .lending_limit = deserved - guarantee}});
  }
  return facts;
}

model::FlavorUpsert FlavorFacts(const api::ResourceFlavor& flavor, model::Vocabulary& vocabulary) {
  std::vector<model::Taint> taints = TaintsOf(flavor.node_taints, vocabulary);
  std::erase_if(taints, [](const model::Taint& taint) {
    return taint.effect == model::TaintEffect::kPreferNoSchedule;
  });
  return {.name = flavor.meta.name,
          .uid = flavor.meta.uid,
          .labels = LabelsOf(flavor.node_labels, vocabulary),
          .taints = taints.empty() ? model::TaintListId{} : vocabulary.taints.Intern(taints),
          .tolerations = InternTolerations(flavor.tolerations, vocabulary),
          .topology = flavor.topology};
}

model::TopologyWish TopologyWishOf(const api::TopologyRequest& request,
                                   model::Vocabulary& vocabulary) {
  const auto name = [&](const std::string& text) {
    return text.empty() ? model::NameId{} : vocabulary.names.Intern(text);
  };
  // One that says nothing asks for nothing.
  const bool asked = !request.required.empty() || !request.preferred.empty() ||
                     request.unconstrained || !request.slices.empty();
  model::TopologyWish wish{.asked = asked,
                           .required = name(request.required),
                           .preferred = name(request.preferred),
                           .unconstrained = request.unconstrained,
                           .group = name(request.group)};
  for (const api::TopologySlice& slice : request.slices) {
    const int64_t size = std::clamp(slice.size, int64_t{1}, limits::kSlotsMax);
    wish.slices.push_back({.level = name(slice.level), .size = static_cast<uint32_t>(size)});
  }
  return wish;
}

model::TopologyUpsert TopologyFacts(const api::Topology& topology, model::Vocabulary& vocabulary) {
  model::TopologyUpsert facts{.name = topology.meta.name, .uid = topology.meta.uid};
  for (const std::string& level : topology.levels)
    facts.levels.push_back(vocabulary.names.Intern(level));
  facts.by_node = !topology.levels.empty() && topology.levels.back() == api::kHostnameLabel;
  return facts;
}

model::WorkloadStatus WorkloadStatusOf(const api::Workload& workload) {
  const api::Condition* reserved = Find(workload.conditions, "QuotaReserved");
  const api::Condition* evicted = Find(workload.conditions, "Evicted");
  model::WorkloadStatus out{
      .created = workload.meta.creation_time,
      .active = workload.active,
      .finished = Says(Find(workload.conditions, "Finished"), "True"),
      .reserved = Says(reserved, "True"),
      .reserved_at = Says(reserved, "True") ? reserved->transition : Instant{},
      .admitted = Says(Find(workload.conditions, "Admitted"), "True"),
      .on_hold = Says(reserved, "False") && reserved->reason == "OnHold",
      .held_back = Says(Find(workload.conditions, "Requeued"), "False"),
      .requeue_at = workload.requeue_at.value_or(Instant{}),
      .checks_ready = !workload.checks.empty() &&
                      std::ranges::all_of(workload.checks, [](const api::CheckState& check) {
                        return check.state == "Ready";
                      })};
  if (Says(evicted, "True")) {
    out.evicted_for = EvictedForOf(evicted->reason);
    out.evicted_at = evicted->transition;
  }
  ReadPlacements(workload, out);
  return out;
}

}  // namespace berth::translate
