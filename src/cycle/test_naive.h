#pragma once

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "cycle/engine.h"
#include "cycle/waiting_lines.h"
#include "model/lifecycle.h"
#include "place/volumes.h"

// The naive scheduler: every pod against every node, no caches; and plans checked by it.
namespace berth::cycle {

inline constexpr const char* kHostname = "kubernetes.io/hostname";

struct NaiveBest {
  model::NodeId node;
  int64_t score = 0;
  uint32_t feasible_count = 0;
};

inline bool NaiveFits(const model::State& state, const place::Evaluator& evaluator,
                      model::PodId pod, model::NodeId n, bool volumes_aside = false) {
  const model::Pod& row = state.pods().at(pod);
  const model::Viewer viewer{.owner = row.uid, .priority = row.priority};
  model::Pin pin = row.pin;
  if (volumes_aside) pin.volumes = {};
  return evaluator.Filter(state, row.class_id, n, &viewer, pin).fits();
}

// Ties end in the name, or in a hash of the salt and the name.
inline NaiveBest NaiveChoice(const model::State& state, const Engine::Options& options,
                             model::PodId pod) {
  const place::Evaluator& evaluator = options.evaluator;
  const model::ClassId c = state.pods().at(pod).class_id;
  place::Extremes extremes;
  std::vector<model::NodeId> fitting;
  NaiveBest best;
  for (uint32_t i = 0; i < state.nodes().size(); ++i) {
    if (!NaiveFits(state, evaluator, pod, model::NodeId{i}, /*volumes_aside=*/true)) continue;
    ++best.feasible_count;
    if (!NaiveFits(state, evaluator, pod, model::NodeId{i})) continue;
    fitting.push_back(model::NodeId{i});
    const model::NodeScore score = evaluator.Score(state, c, model::NodeId{i});
    extremes.taints_max = std::max(extremes.taints_max, score.taints_raw);
    extremes.affinity_max = std::max(extremes.affinity_max, score.affinity_raw);
  }
  std::vector<int64_t> others;
  evaluator.ScoreByOthers(state, c, fitting, {}, others);
  for (size_t i = 0; i < fitting.size(); ++i) {
    const model::NodeId n = fitting[i];
    const int64_t total =
        evaluator.Total(state.RulesOf(c).weights, evaluator.Score(state, c, n), extremes) +
        (others.empty() ? 0 : others[i]);
    const auto place = [&](model::NodeId node) {
      const std::string_view name = state.NameOf(state.nodes().name(node));
      return std::pair(options.salt ? Hasher().Add(*options.salt).Add(name).value() : 0, name);
    };
    if (!best.node.valid() || total > best.score ||
        (total == best.score && place(n) < place(best.node))) {
      best.node = n;
      best.score = total;
    }
  }
  return best;
}

inline bool IsPending(const model::State& state, model::PodId pod) {
  return state.pods().used(pod) && StageOf(state.pods().at(pod)) == model::PodStage::kPending;
}

// Whether a pod lets others go first: it, or one that differs in images at most and goes before it,
// failed a moment ago.
inline bool BacksOff(const model::State& state, model::PodId pod, Instant now) {
  const model::Pod& row = state.pods().at(pod);
  for (uint32_t i = 0; i < state.pods().size(); ++i) {
    const model::PodId other{i};
    if (!IsPending(state, other)) continue;
    const model::Pod& its = state.pods().at(other);
    const model::ClassTable& classes = state.vocabulary().classes;
    if (classes.plain(its.class_id) != classes.plain(row.class_id) || its.pin != row.pin) continue;
    if (other != pod && !WaitingLines::PodBefore(state, other, pod)) continue;
    if (its.backoff_until.seconds() > now.seconds()) return true;
  }
  return row.not_before > now;
}

// Checks a plan against the state before it: each decision in turn is what the naive scheduler
// would do, and nobody who could have gone first was passed over. Leaves `state` as the plan leaves
// the engine's.
inline void CheckPlan(model::State& state, const Engine::Options& options, const model::Plan& plan,
                      Instant now) {
  for (const model::BindDecision& bind : plan.binds) {
    const model::ClaimId claim = state.ClaimOf(bind.pod);
    if (claim.valid() &&
        state.ledger().claim(claim).account == model::AccountId::OfNode(bind.node)) {
      // A holder on the node it was promised: that it fits there is all that is asked.
      RC_ASSERT(NaiveFits(state, options.evaluator, bind.pod, bind.node));
    } else {
      const NaiveBest best = NaiveChoice(state, options, bind.pod);
      if (options.evaluator.policy() == model::Policy::kRandom) {
        // Any that fits, and the number of those says that none was left out of the draw.
        RC_ASSERT(NaiveFits(state, options.evaluator, bind.pod, bind.node));
      } else {
        RC_ASSERT(best.node == bind.node);
        RC_ASSERT(best.score == bind.score);
      }
      RC_ASSERT(best.feasible_count == bind.feasible_count);
      for (uint32_t i = 0; i < state.pods().size(); ++i) {
        const model::PodId other{i};
        if (!IsPending(state, other) || other == bind.pod ||
            !WaitingLines::PodBefore(state, other, bind.pod))
          continue;
        if (BacksOff(state, other, now)) continue;
        RC_ASSERT(!NaiveChoice(state, options, other).node.valid());
      }
    }
    if (auto given = place::VolumesGivenOn(state, bind.pod, bind.node))
      state.GiveVolumes(bind.pod, *std::move(given));
    state.Assume(bind.pod, bind.node, bind.devices);
  }
  state.TakeGivenVolumes();
  if (plan.more) return;
  for (uint32_t i = 0; i < state.pods().size(); ++i) {
    if (!IsPending(state, model::PodId{i}) || state.pods().at(model::PodId{i}).not_before > now)
      continue;
    // No missed wake-up: what still waits fits nowhere.
    RC_ASSERT(!NaiveChoice(state, options, model::PodId{i}).node.valid());
  }
}

// Of a plan with promises: nobody is evicted for who is not more important, or twice for one. What
// still waits fits nowhere.
inline void CheckPromises(const model::State& state, const model::Plan& plan, Instant now,
                          std::map<std::string, std::string>& evicted_for) {
  for (const model::PreemptDecision& decision : plan.preemptions) {
    const std::string pod(state.UidOf(decision.pod_uid));
    for (const model::PreemptDecision::Victim& victim : decision.victims) {
      const std::string uid(state.UidOf(victim.uid));
      RC_ASSERT(state.pods().at(victim.pod).priority < state.pods().at(decision.pod).priority);
      RC_ASSERT(!state.pods().at(victim.pod).terminating);
      evicted_for[uid] = pod;
    }
  }
  if (plan.more) return;
  for (uint32_t i = 0; i < state.pods().size(); ++i) {
    if (!IsPending(state, model::PodId{i}) || state.pods().at(model::PodId{i}).not_before > now)
      continue;
    RC_ASSERT(!NaiveChoice(state, {}, model::PodId{i}).node.valid());
  }
}

// One that scores otherwise and evicts nobody, and one that asks for little.
inline std::vector<model::ProfileOptions> TwoProfiles() {
  model::ProfileOptions packing{
      .scheduler_name = "packing",
      .rules = {.weights = {.taints = 0, .affinity = 7, .fit = 5, .balanced = 0, .images = 3},
                .strategy = model::FitStrategy::kMostAllocated,
                .hard_affinity_weight = 30,
                .ignores_others_preferences = true,
                .preempts = false},
      .fit = {{.name = "cpu", .weight = 3}, {.name = "berth.dev/gpu-milli", .weight = 2}}};
  model::ProfileOptions careless{.scheduler_name = "careless",
                                 .rules = {.weights = {.pod_affinity = 0, .images = 0}},
                                 .balanced = {"cpu", "memory", "berth.dev/gpu-milli"}};
  for (const auto filter :
       {model::OptionalFilter::kNodeUnschedulable, model::OptionalFilter::kTaintToleration,
        model::OptionalFilter::kNodeAffinity, model::OptionalFilter::kInterPodAffinity,
        model::OptionalFilter::kVolumeRestrictions, model::OptionalFilter::kVolumeBinding})
    careless.rules.Disable(filter);
  return {packing, careless};
}

}  // namespace berth::cycle
