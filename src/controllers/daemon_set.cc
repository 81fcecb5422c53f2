#include "controllers/daemon_set.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string>
#include <tuple>

#include "api/json.h"
#include "api/names.h"
#include "api/node_match.h"
#include "codec/json.h"
#include "controllers/stateful_set.h"

namespace berth::controllers {
namespace {

constexpr std::string_view kTemplateGeneration = "deprecated.daemonset.template.generation";

struct Tolerated {
  std::string_view key;
  std::string_view effect;
};
constexpr std::array<Tolerated, 6> kTolerated = {{
    {"node.kubernetes.io/not-ready", "NoExecute"},
    {"node.kubernetes.io/unreachable", "NoExecute"},
    {"node.kubernetes.io/disk-pressure", "NoSchedule"},
    {"node.kubernetes.io/memory-pressure", "NoSchedule"},
    {"node.kubernetes.io/pid-pressure", "NoSchedule"},
    {"node.kubernetes.io/unschedulable", "NoSchedule"},
}};
constexpr Tolerated kHostNetwork{"node.kubernetes.io/network-unavailable", "NoSchedule"};

std::vector<Tolerated> AddedTo(const api::PodSpec& spec) {
  std::vector<Tolerated> added(kTolerated.begin(), kTolerated.end());
  if (spec.host_network) added.push_back(kHostNetwork);
  return added;
}

class Planner {
 public:
  Planner(const DaemonSetFacts& facts, Instant now)
      : facts_(facts), set_(facts.set), head_(facts.head), now_(now) {
    tolerations_ = facts.spec.tolerations;
    for (const Tolerated& added : AddedTo(facts.spec)) {
      tolerations_.push_back({.key = std::string(added.key),
                              .op = "Exists",
                              .value = {},
                              .effect = std::string(added.effect),
                              .seconds = std::nullopt});
    }
  }

  Plan Run();

 private:
  // What a node is to a pod of the set.
  struct Fit {
    bool runs = false;
    bool goes_on = false;
  };
  // The pods of a node that aren't being deleted and haven't ended.
  struct Pair {
    const PodRef* old = nullptr;
    const PodRef* fresh = nullptr;
    bool excess = false;
  };

  [[nodiscard]] Fit FitOf(const api::Node& node) const;
  [[nodiscard]] bool IsUpdated(const PodRef& pod) const;
  [[nodiscard]] bool IsAvailableNow(const PodRef* pod) const {
    return pod != nullptr && IsAvailable(*pod, set_.min_ready_seconds, now_);
  }
  [[nodiscard]] Pair PairOf(const std::vector<PodRef>& pods) const;
  void Manage();
  void KeepOn(const api::Node& node, const Fit& fit, std::vector<PodRef>& pods);
  void EndFailed(const PodRef& pod, std::string_view node);
  void RollOn();
  void RollBySurge();
  void Emit();
  void Status();
  [[nodiscard]] std::string SpecFor(std::string_view node) const;
  void Delete(const PodRef& pod) { deletions_.push_back(&pod); }
  [[nodiscard]] const std::vector<PodRef>& PodsOn(std::string_view node) const;

  const DaemonSetFacts& facts_;
  const api::DaemonSet& set_;
  const Head& head_;
  const Instant now_;
  std::vector<api::Toleration> tolerations_;
  std::string hash_;
  bool collided_ = false;
  std::map<std::string, std::vector<PodRef>, std::less<>>
      pods_;  // By node; bound ones first, then by age.
  std::map<std::string_view, Fit> fits_;
  int64_t desired_ = 0;
  int64_t surge_ = 0;
  int64_t unavailable_ = 0;
  std::vector<std::string_view> creations_;  // Nodes.
  std::vector<const PodRef*> deletions_;
  Plan plan_;
};

Plan Planner::Run() {
  std::vector<PodRef> pods = ClaimPods({.selector = set_.selector, .owner = head_}, facts_.owned,
                                       facts_.orphans, plan_.writes);
  std::ranges::sort(pods, {}, [](const PodRef& pod) {
    return std::tuple(pod.facts->node.empty(), pod.head->creation,
                      std::string_view(pod.head->name));
  });
  for (const PodRef& pod : pods) {
    plan_.WakeAt(AvailableAt(pod, set_.min_ready_seconds, now_));
    if (const std::string_view node = TargetOf(pod); !node.empty())
      pods_[std::string(node)].push_back(pod);
  }
  const Revisions revisions = PlanRevisions({.head = head_,
                                             .annotations = set_.meta.annotations,
                                             .selector = set_.selector,
                                             .pod_template = set_.pod_template,
                                             .collisions = set_.collision_count,
                                             .hash_label = kRevisionHashLabel},
                                            facts_.revisions, plan_.writes);
  collided_ = revisions.collided;
  if (revisions.update.head != nullptr)
    hash_ = api::Find(revisions.update.head->labels, kRevisionHashLabel).value_or("");
  for (const api::Node* node : facts_.nodes) {
    const Fit fit = FitOf(*node);
    fits_[node->meta.name] = fit;
    if (fit.runs) ++desired_;
  }
  if (!hash_.empty() && !head_.deletion.has_value()) {
    Manage();
    if (!set_.on_delete && creations_.empty() && deletions_.empty()) RollOn();
    Emit();
    std::set<std::string> live{revisions.update.head->name};
    for (const PodRef& pod : pods) {
      const auto own = api::Find(pod.head->labels, kRevisionHashLabel);
      for (const RevisionRef& ref : revisions.all) {
        if (own && api::Find(ref.head->labels, kRevisionHashLabel) == *own)
          live.insert(ref.head->name);
      }
    }
    PlanHistory(revisions.all, live, set_.revision_history_limit, plan_.writes);
  }
  Status();
  return std::move(plan_);
}

Planner::Fit Planner::FitOf(const api::Node& node) const {
  if (!api::MatchesNode(facts_.spec, node)) return {};
  const bool stays = api::ToleratesAll(tolerations_, node, "NoExecute");
  return {.runs = stays && api::ToleratesAll(tolerations_, node, "NoSchedule"), .goes_on = stays};
}

bool Planner::IsUpdated(const PodRef& pod) const {
  return api::Find(pod.head->labels, kRevisionHashLabel) == std::string_view(hash_);
}

const std::vector<PodRef>& Planner::PodsOn(std::string_view node) const {
  static const std::vector<PodRef> kNone;
  const auto at = pods_.find(node);
  return at == pods_.end() ? kNone : at->second;
}

void Planner::Manage() {
  for (const api::Node* node : facts_.nodes) {
    const auto at = pods_.find(node->meta.name);
    const Fit fit = fits_[node->meta.name];
    if (at != pods_.end()) {
      KeepOn(*node, fit, at->second);
    } else if (fit.runs) {
      creations_.push_back(node->meta.name);
    }
  }
  // Of nodes that are gone: who was never bound would wait for ever.
  for (const auto& [node, pods] : pods_) {
    if (fits_.contains(node)) continue;
    for (const PodRef& pod : pods) {
      if (!pod.head->deletion.has_value() && pod.facts->node.empty()) Delete(pod);
    }
  }
}

void Planner::KeepOn(const api::Node& node, const Fit& fit, std::vector<PodRef>& pods) {
  std::vector<PodRef> running;
  for (const PodRef& pod : pods) {
    if (pod.head->deletion.has_value()) continue;
    if (!fit.goes_on) {
      Delete(pod);
    } else if (pod.facts->terminal()) {
      EndFailed(pod, node.meta.name);
    } else {
      running.push_back(pod);
    }
  }
  if (!fit.goes_on) return;
  const auto original = [&](const PodRef& wanted) -> const PodRef& {
    return *std::ranges::find(pods, wanted.head, &PodRef::head);
  };
  if (set_.max_surge.value == 0) {
    for (size_t i = 1; i < running.size(); ++i) Delete(original(running[i]));
    return;
  }
  if (running.empty() && fit.runs) creations_.push_back(node.meta.name);
  // The oldest of either template: the old one stays while it serves and the new one doesn't yet.
  const PodRef* fresh = nullptr;
  const PodRef* old = nullptr;
  for (const PodRef& pod : running) {
    const PodRef& kept = original(pod);
    const PodRef*& first = IsUpdated(pod) ? fresh : old;
    if (first == nullptr) {
      first = &kept;
    } else {
      Delete(kept);
    }
  }
  if (old == nullptr || fresh == nullptr) return;
  if (!old->facts->ready || IsAvailableNow(fresh)) Delete(*old);
}

void Planner::EndFailed(const PodRef& pod, std::string_view node) {
  const bool failed = pod.facts->phase == PodPhase::kFailed;
  const Instant due = pod.head->creation + kEndedStays;
  if (failed && due > now_) return plan_.WakeAt(due);
  plan_.told.push_back(
      {.warning = failed,
       .reason = failed ? "FailedDaemonPod" : "SucceededDaemonPod",
       .message = fmt::format("Found {} daemon pod {}/{} on node {}, will try to {} it",
                              failed ? "failed" : "succeeded", head_.namespace_name, pod.head->name,
                              node, failed ? "kill" : "delete")});
  Delete(pod);
}

// ---- Rolling update --------------------------------------------------------------------------

Planner::Pair Planner::PairOf(const std::vector<PodRef>& pods) const {
  Pair pair;
  for (const PodRef& pod : pods) {
    if (!pod.active()) continue;
    const PodRef*& place = IsUpdated(pod) ? pair.fresh : pair.old;
    pair.excess = pair.excess || place != nullptr;
    place = &pod;
  }
  return pair;
}

int64_t Resolved(const api::IntOrPercent& value, int64_t of) {
  if (!value.percent) return value.value;
  return (value.value * of + 99) / 100;
}

void Planner::RollOn() {
  surge_ = Resolved(set_.max_surge, desired_);
  unavailable_ = Resolved(set_.max_unavailable, desired_);
  // Both come to zero only by rounding, and it would then never move.
  if (desired_ > 0 && surge_ == 0 && unavailable_ == 0) unavailable_ = 1;
  if (surge_ > 0) return RollBySurge();
  int64_t unavailable = 0;
  std::vector<const PodRef*> candidates;
  for (const auto& [node, pods] : pods_) {
    const Pair pair = PairOf(pods);
    const bool one = (pair.old == nullptr) != (pair.fresh == nullptr);
    if (pair.excess || !one) {
      ++unavailable;
    } else if (pair.fresh != nullptr) {
      if (!IsAvailableNow(pair.fresh)) ++unavailable;
    } else if (!IsAvailableNow(pair.old)) {
      // It serves nobody.
      ++unavailable;
      Delete(*pair.old);
    } else {
      candidates.push_back(pair.old);
    }
  }
  const auto room = static_cast<size_t>(std::max<int64_t>(0, unavailable_ - unavailable));
  for (size_t i = 0; i < std::min(room, candidates.size()); ++i) Delete(*candidates[i]);
}

void Planner::RollBySurge() {
  int64_t surging = 0;
  int64_t available = 0;
  std::vector<std::string_view> candidates;
  std::vector<const PodRef*> misplaced;
  for (const auto& [node, pods] : pods_) {
    const Pair pair = PairOf(pods);
    if (pair.excess) {
      ++surging;
      continue;
    }
    if (IsAvailableNow(pair.old != nullptr ? pair.old : pair.fresh)) ++available;
    if (pair.old == nullptr) continue;
    if (pair.fresh != nullptr) {
      if (!IsAvailableNow(pair.fresh)) ++surging;
      continue;
    }
    const auto fit = fits_.find(node);
    const bool serves = IsAvailableNow(pair.old);
    if (fit == fits_.end() || !fit->second.runs) {
      if (serves) misplaced.push_back(pair.old);
      if (!serves) Delete(*pair.old);
    } else if (!serves) {
      creations_.push_back(node);
    } else {
      candidates.push_back(node);
    }
  }
  // Who serves on a node that it doesn't fit any more stays until another serves instead.
  const auto surplus = static_cast<size_t>(std::max<int64_t>(0, available - desired_));
  for (size_t i = 0; i < std::min(surplus, misplaced.size()); ++i) Delete(*misplaced[i]);
  const auto room = static_cast<size_t>(std::max<int64_t>(0, surge_ - surging));
  for (size_t i = 0; i < std::min(room, candidates.size()); ++i)
    creations_.push_back(candidates[i]);
}

// ---- What is written -------------------------------------------------------------------------

// The template bound to a node: of its own affinity to nodes the preferences stay.
std::string Planner::SpecFor(std::string_view node) const {
  const Result<api::Json> parsed = codec::ParseJson(set_.pod_template.spec.view());
  if (!parsed || !parsed->is_object()) return std::string(set_.pod_template.spec.view());
  api::Json document = *parsed;
  const auto member = [](api::JsonObject& object, std::string_view key) -> api::JsonObject& {
    api::Json& value = object[key];
    if (!value.is_object()) value.emplace_object();
    return value.as_object();
  };
  api::JsonObject& spec = document.as_object();
  member(member(spec, "affinity"),
         "nodeAffinity")["requiredDuringSchedulingIgnoredDuringExecution"] = {
      {"nodeSelectorTerms",
       api::JsonArray{api::JsonObject{
           {"matchFields", api::JsonArray{api::JsonObject{{"key", "metadata.name"},
                                                          {"operator", "In"},
                                                          {"values", api::JsonArray{node}}}}}}}}};
  api::Json& tolerations = spec["tolerations"];
  if (!tolerations.is_array()) tolerations.emplace_array();
  for (const Tolerated& added : AddedTo(facts_.spec)) {
    tolerations.as_array().push_back(
        {{"key", added.key}, {"operator", "Exists"}, {"effect", added.effect}});
  }
  return codec::PrintJson(document);
}

void Planner::Emit() {
  int64_t left = kPodsBurst;
  for (const PodRef* pod : deletions_) {
    if (left-- > 0) plan_.writes.push_back(DeleteOf(*pod->head));
  }
  left = facts_.trouble.has_value() ? 1 : kPodsBurst;
  for (const std::string_view node : creations_) {
    if (left-- <= 0) break;
    PodExtras extras{.labels = {}, .annotations = {}, .finalizers = {}, .spec = SpecFor(node)};
    Put(extras.labels, kRevisionHashLabel, hash_);
    if (const auto generation = api::Find(set_.meta.annotations, kTemplateGeneration))
      Put(extras.labels, "pod-template-generation", std::string(*generation));
    Write create =
        PodOf(set_.pod_template, head_.namespace_name, ControllerReference(head_), extras);
    create.name = api::GeneratedNameBase(head_.name + "-");
    create.generate = true;
    plan_.writes.push_back(std::move(create));
  }
}

void Planner::Status() {
  api::DaemonSet after = set_;
  if (collided_) ++after.collision_count;
  // What is updated is known when there is a revision of the template.
  if (!hash_.empty()) after.observed_generation = set_.meta.generation;
  after.desired_scheduled = desired_;
  after.current_scheduled = after.misscheduled = after.ready = 0;
  after.updated_scheduled = after.available = 0;
  for (const auto& [node, fit] : fits_) {
    const std::vector<PodRef>& pods = PodsOn(node);
    if (pods.empty()) continue;
    if (!fit.runs) {
      ++after.misscheduled;
      continue;
    }
    const PodRef& oldest = pods.front();
    ++after.current_scheduled;
    if (oldest.facts->ready) ++after.ready;
    if (IsAvailableNow(&oldest)) ++after.available;
    if (!hash_.empty() && IsUpdated(oldest)) ++after.updated_scheduled;
  }
  after.unavailable = desired_ - after.available;
  if (after == set_) return;
  const auto zero_is_none = [](int64_t value) {
    return value == 0 ? std::string("null") : std::to_string(value);
  };
  plan_.writes.push_back(StatusOf(
      head_, fmt::format(R"({{"currentNumberScheduled":{},"desiredNumberScheduled":{},)"
                         R"("numberMisscheduled":{},"numberReady":{},"updatedNumberScheduled":{},)"
                         R"("numberAvailable":{},"numberUnavailable":{},"observedGeneration":{},)"
                         R"("collisionCount":{}}})",
                         after.current_scheduled, after.desired_scheduled, after.misscheduled,
                         after.ready, zero_is_none(after.updated_scheduled),
                         zero_is_none(after.available), zero_is_none(after.unavailable),
                         after.observed_generation, zero_is_none(after.collision_count))));
}

}  // namespace

std::string_view TargetOf(const PodRef& pod) {
  if (!pod.facts->node.empty()) return pod.facts->node;
  const auto& terms = pod.facts->spec->required_node_affinity;
  if (!terms) return {};
  for (const api::NodeSelectorTerm& term : *terms) {
    for (const api::Requirement& field : term.match_fields) {
      if (field.key == "metadata.name" && field.op == "In" && field.values.size() == 1)
        return field.values.front();
    }
  }
  return {};
}

Plan PlanDaemonSet(const DaemonSetFacts& facts, Instant now) { return Planner(facts, now).Run(); }

}  // namespace berth::controllers
