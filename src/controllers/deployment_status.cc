#include "controllers/deployment_status.h"

#include <fmt/format.h>

#include <algorithm>

namespace berth::controllers {
namespace {

// As Progressing is renewed with each step forward, its update time tells the last one.
void Renew(std::vector<api::Condition>& conditions, api::Condition condition, Instant now) {
  condition.type = kProgressing;
  condition.updated = now;
  condition.transition = now;
  const api::Condition* known = api::Find(conditions, kProgressing);
  if (known != nullptr && known->status == condition.status) {
    condition.transition = known->transition;
  }
  RemoveCondition(conditions, kProgressing);
  conditions.push_back(std::move(condition));
}

bool Progressed(const api::Deployment& before, const api::Deployment& after) {
  return after.updated_replicas > before.updated_replicas ||
         after.status_replicas - after.updated_replicas <
             before.status_replicas - before.updated_replicas ||
         after.ready_replicas > before.ready_replicas ||
         after.available_replicas > before.available_replicas;
}

std::string Subject(const StatusFacts& facts) {
  if (facts.fresh != nullptr) return fmt::format("ReplicaSet \"{}\"", facts.fresh->meta.name);
  return fmt::format("Deployment \"{}\"", facts.deployment.meta.name);
}

void JudgeProgress(StatusFacts& facts, const api::Deployment& after, Instant now, Plan& plan) {
  const api::Condition* known = api::Find(facts.conditions, kProgressing);
  const bool was_complete = after.status_replicas == after.updated_replicas && known != nullptr &&
                            known->reason == "NewReplicaSetAvailable";
  if (!after.progress_deadline_seconds.has_value()) RemoveCondition(facts.conditions, kProgressing);
  if (!after.progress_deadline_seconds.has_value() || was_complete) return;
  if (IsComplete(after)) {
    ReplaceCondition(facts.conditions,
                     {.type = std::string(kProgressing),
                      .status = "True",
                      .reason = "NewReplicaSetAvailable",
                      .message = Subject(facts) + " has successfully progressed."},
                     now);
    return;
  }
  if (Progressed(facts.deployment, after)) {
    Renew(facts.conditions,
          {.status = "True",
           .reason = "ReplicaSetUpdated",
           .message = Subject(facts) + " is progressing."},
          now);
    known = api::Find(facts.conditions, kProgressing);
  }
  if (known == nullptr || known->reason == kTimedOut) return;
  const Instant deadline = known->updated + Duration::Seconds(*after.progress_deadline_seconds);
  if (deadline < now) {
    ReplaceCondition(facts.conditions,
                     {.type = std::string(kProgressing),
                      .status = "False",
                      .reason = std::string(kTimedOut),
                      .message = Subject(facts) + " has timed out progressing."},
                     now);
    return;
  }
  plan.WakeAt(deadline + Duration::Seconds(1));
}

void JudgeAvailability(StatusFacts& facts, const api::Deployment& after, Instant now) {
  const bool enough = after.available_replicas >= after.replicas - facts.posts.unavailable;
  ReplaceCondition(facts.conditions,
                   {.type = "Available",
                    .status = enough ? "True" : "False",
                    .reason = enough ? "MinimumReplicasAvailable" : "MinimumReplicasUnavailable",
                    .message = enough ? "Deployment has minimum availability."
                                      : "Deployment does not have minimum availability."},
                   now);
}

// What keeps pods from being created: the server's refusal of the new ReplicaSet, or that
// ReplicaSet's own trouble.
void JudgeFailure(StatusFacts& facts, Instant now) {
  if (facts.trouble.has_value()) {
    if (facts.deployment.progress_deadline_seconds.has_value()) {
      ReplaceCondition(facts.conditions,
                       {.type = std::string(kProgressing),
                        .status = "False",
                        .reason = "ReplicaSetCreateError",
                        .message = "Failed to create new replica set: " + *facts.trouble},
                       now);
    }
    return;
  }
  const api::Condition* failure = nullptr;
  for (const api::ReplicaSet* set : facts.sets) {
    const api::Condition* found = api::Find(set->conditions, "ReplicaFailure");
    if (found != nullptr && (failure == nullptr || set == facts.fresh)) failure = found;
  }
  if (failure == nullptr) {
    RemoveCondition(facts.conditions, "ReplicaFailure");
  } else {
    // It began when the ReplicaSet says so.
    ReplaceCondition(facts.conditions, *failure, failure->transition);
  }
}

api::Deployment After(const StatusFacts& facts) {
  api::Deployment after = facts.deployment;
  after.status_replicas = 0;
  after.updated_replicas = facts.fresh == nullptr ? 0 : facts.fresh->status_replicas;
  after.ready_replicas = 0;
  after.available_replicas = 0;
  after.terminating_replicas = 0;
  int64_t asked = 0;
  for (const api::ReplicaSet* set : facts.sets) {
    asked += set->replicas;
    after.status_replicas += set->status_replicas;
    after.ready_replicas += set->ready_replicas;
    after.available_replicas += set->available_replicas;
    after.terminating_replicas += set->terminating_replicas;
  }
  // Upstream counts in 32 bits, and so does the field.
  const auto missing = static_cast<int32_t>(asked - after.available_replicas);
  after.unavailable_replicas = std::max(0, missing);
  after.observed_generation = after.meta.generation;
  if (facts.collided) ++after.collision_count;
  return after;
}

}  // namespace

bool IsComplete(const api::Deployment& deployment) {
  return deployment.updated_replicas == deployment.replicas &&
         deployment.status_replicas == deployment.replicas &&
         deployment.available_replicas == deployment.replicas &&
         deployment.observed_generation >= deployment.meta.generation;
}

void PlanDeploymentStatus(StatusFacts facts, Instant now, Plan& plan) {
  api::Deployment after = After(facts);
  JudgeAvailability(facts, after, now);
  if (facts.rollout) JudgeProgress(facts, after, now, plan);
  JudgeFailure(facts, now);
  after.conditions = facts.conditions;
  if (after == facts.deployment) return;
  std::string status = fmt::format(
      R"({{"observedGeneration":{},"replicas":{},"updatedReplicas":{},"readyReplicas":{},)"
      R"("availableReplicas":{},"unavailableReplicas":{},"terminatingReplicas":{})",
      after.observed_generation, after.status_replicas, after.updated_replicas,
      after.ready_replicas, after.available_replicas, after.unavailable_replicas,
      after.terminating_replicas);
  if (facts.collided) status += fmt::format(R"(,"collisionCount":{})", after.collision_count);
  if (after.conditions != facts.deployment.conditions) {
    status += R"(,"conditions":)" + ConditionsText(after.conditions, ConditionTimes::kUpdate);
  }
  plan.writes.push_back(StatusOf(facts.head, status + "}"));
}

}  // namespace berth::controllers
