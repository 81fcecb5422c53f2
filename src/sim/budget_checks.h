#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "api/types.h"
#include "api/workloads.h"
#include "base/time.h"
#include "env/actor.h"
#include "sim/truth.h"

namespace berth::sim {

// That nobody spends more of a PodDisruptionBudget than there is: an eviction by the subresource is
// charged, once, and to what the budget had left; and what its controller says is left is not more
// than the pods bear out. A value. It judges durable changes, and is told all of them.
class BudgetChecks {
 public:
  // What is wrong with a change, in sentences. REQUIRES: `truth` has taken it, as `change` says.
  [[nodiscard]] std::vector<std::string> OnCommit(Instant now, const env::JournalRecord& record,
                                                  const Truth::Change& change, const Truth& truth);
  // What a budget does not say of its pods although nothing moves any more. `wanted` are the pods
  // that each must keep, by namespace/name.
  [[nodiscard]] std::vector<std::string> AtRest(const std::map<std::string, int64_t>& wanted,
                                                const Truth& truth) const;
  [[nodiscard]] uint64_t charged() const { return charged_; }  // Evictions.

 private:
  // A pod that was ready and is not, by no eviction: a controller may not have heard of it.
  struct Loss {
    Instant at;
    std::string namespace_name;
    api::StringMap labels;
  };
  void OnBudget(Instant now, const std::string& key, const env::JournalRecord& record,
                const Truth& truth, std::vector<std::string>& findings);
  void OnPod(Instant now, const Truth::Change& change, std::vector<std::string>& findings);

  std::map<std::string, api::PodDisruptionBudget> budgets_;  // By namespace/name.
  std::deque<Loss> losses_;                                  // Of the last minutes.
  uint64_t charged_ = 0;
};

}  // namespace berth::sim
