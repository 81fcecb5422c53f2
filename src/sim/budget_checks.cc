#include "sim/budget_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "api/selector.h"
#include "base/check.h"
#include "codec/decode.h"

namespace berth::sim {
namespace {

constexpr std::string_view kEvicted = R"("reason":"EvictionByEvictionAPI")";
// Longer than any watch of the simulator is behind.
constexpr Duration kHeardAfter = Duration::Minutes(2);

std::string NamespaceOf(const std::string& key) { return key.substr(0, key.find('/')); }

bool Guards(const std::string& key, const api::PodDisruptionBudget& budget,
            const std::string& namespace_name, const api::StringMap& labels) {
  if (NamespaceOf(key) != namespace_name || !budget.selector) return false;
  const Result<api::LabelQuery> query = api::QueryOf(*budget.selector);
  return query.has_value() && query->Matches(labels);
}

bool Lists(const api::PodDisruptionBudget& budget, std::string_view pod) {
  return std::ranges::find(budget.disrupted_pods, pod, &api::DisruptedPod::name) !=
         budget.disrupted_pods.end();
}

// Pods that are ready, and neither on their way nor counted out already.
int64_t ReadyPods(const std::string& key, const api::PodDisruptionBudget& budget,
                  const Truth& truth) {
  return std::ranges::count_if(truth.pods(), [&](const auto& entry) {
    const auto& [pod_key, pod] = entry;
    return pod.ready && !pod.deleting && Guards(key, budget, NamespaceOf(pod_key), pod.labels) &&
           !Lists(budget, pod_key.substr(pod_key.find('/') + 1));
  });
}

bool Counts(const Truth::PodFacts& pod) { return pod.ready && !pod.deleting; }

}  // namespace

std::vector<std::string> BudgetChecks::OnCommit(Instant now, const env::JournalRecord& record,
                                                const Truth::Change& change, const Truth& truth) {
  std::vector<std::string> findings;
  if (record.key.starts_with(kBudgetsPrefix)) {
    const std::string key = record.key.substr(kBudgetsPrefix.size());
    if (record.value.empty()) {
      budgets_.erase(key);
    } else {
      OnBudget(now, key, record, truth, findings);
    }
  }
  if (change.pod_before) OnPod(now, change, findings);
  return findings;
}

void BudgetChecks::OnBudget(Instant now, const std::string& key, const env::JournalRecord& record,
                            const Truth& truth, std::vector<std::string>& findings) {
  Result<api::PodDisruptionBudget> decoded =
      codec::Decoder().PodDisruptionBudget(record.value.view());
  CHECK(decoded.has_value());
  api::PodDisruptionBudget& before = budgets_[key];
  const api::PodDisruptionBudget& after = *decoded;
  const int64_t evicted = std::ranges::count_if(
      after.disrupted_pods, [&](const api::DisruptedPod& pod) { return !Lists(before, pod.name); });
  if (evicted > 0) {
    charged_ += static_cast<uint64_t>(evicted);
    const int64_t charged = before.disruptions_allowed - after.disruptions_allowed;
    if (charged != evicted || after.disruptions_allowed < 0) {
      findings.push_back(fmt::format("budget {} had {} disruptions left and is charged {} for {}",
                                     key, before.disruptions_allowed, charged, evicted));
    }
  } else if (after.disruptions_allowed > 0 &&
             after.disruptions_allowed != before.disruptions_allowed) {
    std::erase_if(losses_, [&](const Loss& loss) { return loss.at + kHeardAfter < now; });
    const int64_t ready = ReadyPods(key, after, truth);
    const int64_t lost = std::ranges::count_if(losses_, [&](const Loss& loss) {
      return Guards(key, after, loss.namespace_name, loss.labels);
    });
    if (after.disruptions_allowed > ready + lost - after.desired_healthy) {
      findings.push_back(
          fmt::format("budget {} allows {} disruptions: of its pods {} are ready, {} were a moment "
                      "ago, and {} must be",
                      key, after.disruptions_allowed, ready, lost, after.desired_healthy));
    }
  }
  before = std::move(*decoded);
}

void BudgetChecks::OnPod(Instant now, const Truth::Change& change,
                         std::vector<std::string>& findings) {
  const Truth::PodFacts& before = *change.pod_before;
  const bool same = change.pod_after && change.pod_after->uid == before.uid;
  if (!Counts(before) || (same && Counts(*change.pod_after))) return;
  const std::string namespace_name = NamespaceOf(before.key);
  const bool evicted = same && change.pod_after->document.view().contains(kEvicted) &&
                       !before.document.view().contains(kEvicted);
  bool guarded = false;
  for (const auto& [key, budget] : budgets_) {
    if (!evicted || !Guards(key, budget, namespace_name, before.labels)) continue;
    guarded = true;
    if (Lists(budget, before.key.substr(before.key.find('/') + 1))) continue;
    findings.push_back(
        fmt::format("pod {} is evicted, and its budget {} is not charged", before.key, key));
  }
  // A budget that is made later is told of it no sooner than of any other loss.
  if (!guarded) {
    losses_.push_back({.at = now, .namespace_name = namespace_name, .labels = before.labels});
  }
}

std::vector<std::string> BudgetChecks::AtRest(const std::map<std::string, int64_t>& wanted,
                                              const Truth& truth) const {
  std::vector<std::string> findings;
  for (const auto& [key, desired] : wanted) {
    const auto at = budgets_.find(key);
    if (at == budgets_.end()) {
      findings.push_back(fmt::format("at rest, budget {} is gone", key));
      continue;
    }
    const api::PodDisruptionBudget& budget = at->second;
    const int64_t ready = ReadyPods(key, budget, truth);
    const int64_t allowed = std::max<int64_t>(ready - desired, 0);
    if (budget.current_healthy == ready && budget.desired_healthy == desired &&
        budget.disruptions_allowed == allowed && budget.disrupted_pods.empty()) {
      continue;
    }
    findings.push_back(fmt::format(
        "at rest, budget {} says {} of {} pods are ready and {} may go, {} on their way: {} are "
        "ready, {} must be",
        key, budget.current_healthy, budget.desired_healthy, budget.disruptions_allowed,
        budget.disrupted_pods.size(), ready, desired));
  }
  return findings;
}

}  // namespace berth::sim
