#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/groups.h"
#include "api/types.h"
#include "api/well_known.h"
#include "api/workloads.h"
#include "base/result.h"
#include "base/shared.h"
#include "model/delta.h"
#include "model/vocabulary.h"
#include "translate/pod_profile.h"

// Kubernetes objects to the model's facts. Names, amounts and selectors are interned in
// `vocabulary`; the facts are good for the State that owns it. Cost: O(size of the object), a few
// microseconds.
namespace berth::translate {

// GPUs as berth counts them: under 1000 a share of one device, multiples of 1000 whole devices.
inline constexpr std::string_view kGpuMilliResource = "berth.dev/gpu-milli";
// On a node: what kind its devices are. In node selectors and required node affinity: which are
// allowed.
inline constexpr std::string_view kGpuModelLabel = "berth.dev/gpu-model";
using api::kGpuIndexAnnotation;

// On a member, as annotation or label: its role, which spec.minTaskMember counts.
inline constexpr std::string_view kRoleKey = "volcano.sh/task-spec";

[[nodiscard]] model::NameId RoleOf(const api::StringMap& annotations, const api::StringMap& labels,
                                   model::Vocabulary& vocabulary);

// What of a pod's facts follows from its spec, and from its status only where that says what its
// containers have in truth.
struct SpecFacts {
  model::ClassId class_id;
  model::BundleId charge;
  model::BundleId charge_scoring;
  model::Pin pin;
  model::GpuDemand gpu;
};

// `ours` is left true: which scheduler a pod belongs to is the caller's to say.
//
// A single node name in required node affinity becomes a pin and leaves the class, so that the pods
// of a DaemonSet share one.
//
// Fails with kInvalid on GPU amounts that are neither a share nor whole devices, and with kTooLarge
// when a pod that waits asks for more kinds of resource than a pod or all pods may name; nothing is
// interned then. A pod that stands on a node is charged what can be held instead, and the names of
// the rest are added to `left_out`. `rules`: of its scheduler name.
[[nodiscard]] Result<model::PodUpsert> PodFacts(const api::Pod& pod, model::Vocabulary& vocabulary,
                                                std::vector<std::string>* left_out = nullptr,
                                                const PodProfile& rules = {});

// Gives the facts of a pod that waits, without topology spread constraints of its own, those that
// it has by default, of the pods of its namespace that the selector selects: those of the rules, or
// Kubernetes' own, over hosts with a skew of 3 and zones with 5, as it prefers.
void SpreadByDefault(const api::Pod& pod, const api::LabelSelector& selector,
                     model::Vocabulary& vocabulary, model::PodUpsert& facts,
                     const PodProfile& rules = {});

// PodFacts() for many pods of one vocabulary. What follows from a spec alone is remembered of the
// specs that were seen last, and found again when pods share them (api::Pod). It is no state:
// copies start fresh, and the facts are those of PodFacts() by the rules that it was made with.
class PodTranslator {
 public:
  PodTranslator() = default;
  explicit PodTranslator(PodProfiles rules) : rules_(std::move(rules)) {}
  PodTranslator(const PodTranslator& other) : rules_(other.rules_) {}
  PodTranslator& operator=(const PodTranslator& other);

  // REQUIRES: the vocabulary of the calls before.
  [[nodiscard]] Result<model::PodUpsert> Facts(const api::Pod& pod, model::Vocabulary& vocabulary,
                                               std::vector<std::string>* left_out = nullptr);

  // Of the pod's scheduler name.
  [[nodiscard]] const PodProfile& RulesOf(const api::Pod& pod) const;

 private:
  static constexpr size_t kSpecsMax = 128;

  PodProfiles rules_;
  PodProfile usual_;
  std::vector<std::pair<Shared<api::PodSpec>, SpecFacts>> known_;
  size_t oldest_ = 0;  // What is replaced next.
};

// Within what is counted.
[[nodiscard]] int32_t PriorityOf(int64_t priority);
// Whether such pods may evict others.
[[nodiscard]] bool Preempts(const api::PodSpec& spec);

// Taints of unknown effect are left out, as upstream ignores them. So are resources beyond
// limits::kResourceKindsMax; their names are added to `left_out`.
[[nodiscard]] model::NodeUpsert NodeFacts(const api::Node& node, model::Vocabulary& vocabulary,
                                          std::vector<std::string>* left_out = nullptr);

// A selector that can't be understood covers no pod, as upstream; so does an empty one.
[[nodiscard]] model::BudgetUpsert BudgetFacts(const api::PodDisruptionBudget& budget);

// `priority`: that its priorityClassName stands for; nothing: it names none that exists. Counts
// below 1 of a role ask for nothing; a phase that is not known is as none.
[[nodiscard]] model::GroupUpsert GroupFacts(const api::PodGroup& group,
                                            std::optional<int32_t> priority,
                                            model::Vocabulary& vocabulary);
// The resources of minResources of which it asks for more than is kept for a group
// (limits::kAmountMax), with the quantities that it gives; in their order.
[[nodiscard]] api::StringMap BeyondBounds(const api::PodGroup& group);

// The devices that kGpuIndexAnnotation names ("0,3"), as a mask; nothing when it is no such list.
[[nodiscard]] std::optional<uint16_t> ParseDevices(std::string_view text);

// The Job that the object is of (api/job_owner.h), by namespace and uid. Empty for none.
[[nodiscard]] std::string JobOf(const api::ObjectMeta& meta);

// One that can't be understood matches nothing, as upstream.
[[nodiscard]] model::SelectorTerm SelectorTermOf(const api::NodeSelectorTerm& term,
                                                 model::Vocabulary& vocabulary);

// The class alone, for what-if questions and tests.
[[nodiscard]] Result<model::ClassSpec> ClassOf(const api::Pod& pod, model::Vocabulary& vocabulary);

}  // namespace berth::translate
