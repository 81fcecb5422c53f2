#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "api/quota.h"
#include "base/time.h"
#include "model/plan.h"
#include "model/state.h"
#include "translate/quota_text.h"

// The conditions of a Workload after what the scheduler decided of it, in Kueue's words; those of
// other types stay. The transition time moves only with the status, as Kubernetes has it. Pure
// functions; O(conditions).
namespace berth::control {

// When a condition is said, and of which generation of the object.
struct Said {
  Instant now;
  int64_t generation = 0;
};
// In place of the one of its type.
void Put(std::vector<api::Condition>& conditions, api::Condition condition, const Said& said);

// It has quota. `admitted`: nothing more is checked, so it may run.
[[nodiscard]] std::vector<api::Condition> ConditionsOfReserved(const api::Workload& workload,
                                                               const api::Admission& admission,
                                                               bool admitted, Instant now);

// It waits for quota.
[[nodiscard]] std::vector<api::Condition> ConditionsOfWaiting(const api::Workload& workload,
                                                              const translate::WaitText& why,
                                                              Instant now);

// Why it is evicted for another: the reason of Preempted, and the message of that and of Evicted.
struct EvictionText {
  std::string reason;
  std::string message;
  bool operator==(const EvictionText&) const = default;
};
// `job_uid`: of the claimant's job; empty: not known. REQUIRES: it has a claimant, and both queues
// are active.
[[nodiscard]] EvictionText EvictionOf(const model::Workload& row, std::string_view job_uid,
                                      const model::State& state);
[[nodiscard]] std::vector<api::Condition> ConditionsOfEvicted(const api::Workload& workload,
                                                              const EvictionText& why, Instant now);

// Why it is evicted though it got quota: its pods find no places when it is to be admitted.
inline constexpr std::string_view kNoPlace = "PlacementFailed";
inline constexpr std::string_view kNodeFailures = "NodeFailures";

// It has the places that it lacked, with which it is admitted.
[[nodiscard]] std::vector<api::Condition> ConditionsOfAdmitted(const api::Workload& workload,
                                                               Instant now);
// Why one that has quota gives it up: in one word, and in a sentence.
struct GivenUp {
  std::string reason;
  std::string message;
};
// REQUIRES: it has a refusal.
[[nodiscard]] GivenUp GivenUpOf(const model::PassDecision& decision, const model::State& state);
// It gives up its quota for `reason`.
[[nodiscard]] std::vector<api::Condition> ConditionsOfGivenUp(const api::Workload& workload,
                                                              std::string reason,
                                                              std::string message, Instant now);

// Whether the object says already that it waits for that reason; and in those words.
[[nodiscard]] bool SaysReason(const api::Workload& workload, std::string_view reason);
[[nodiscard]] bool SaysSo(const api::Workload& workload, const translate::WaitText& why);

}  // namespace berth::control
