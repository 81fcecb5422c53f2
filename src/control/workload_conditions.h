#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/quota.h"
#include "base/time.h"
#include "model/state.h"
#include "translate/quota_text.h"

// The conditions of a Workload after what the scheduler decided of it, in Kueue's words; those of
// other types stay. The transition time moves only with the status, as Kubernetes has it. Pure
// functions; O(conditions).
namespace berth::control {

// In place of the one of its type.
void Put(std::vector<api::Condition>& conditions, api::Condition condition, Instant now);

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

// Whether the object says already that it waits, and for that.
[[nodiscard]] bool SaysSo(const api::Workload& workload, const translate::WaitText& why);

}  // namespace berth::control
