#include "controllers/deployment.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <functional>
#include <numeric>
#include <tuple>

#include "api/selector.h"
#include "base/check.h"
#include "controllers/deployment_status.h"
#include "controllers/revisions.h"

namespace berth::controllers {
namespace {

// Annotations of a Deployment that are its own and don't pass to its ReplicaSets.
bool IsOwnAnnotation(std::string_view key) {
  return key == "kubectl.kubernetes.io/last-applied-configuration" || key == kRevision ||
         key == kRevisionHistory || key == kDesiredReplicas || key == kMaxReplicas ||
         key == "deprecated.deployment.rollback.to";
}

int64_t IntegerOf(const api::StringMap& map, std::string_view key, int64_t otherwise) {
  const auto text = api::Find(map, key);
  int64_t value = 0;
  if (!text.has_value()) return otherwise;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  return error == std::errc() && end == text->data() + text->size() ? value : otherwise;
}

// A ReplicaSet with what is planned for it.
struct Working {
  const OwnedSet* owned = nullptr;
  int64_t replicas = 0;
  api::StringMap annotations;  // To be set.
  bool min_ready = false;      // minReadySeconds is to follow the Deployment's.

  [[nodiscard]] const api::ReplicaSet& set() const { return *owned->set; }
  [[nodiscard]] const Head& head() const { return *owned->head; }
};

Told Scaled(std::string_view set, int64_t from, int64_t to) {
  return {.reason = "ScalingReplicaSet",
          .message = fmt::format("Scaled {} replica set {} from {} to {}",
                                 from < to ? "up" : "down", set, from, to)};
}

class Planner {
 public:
  Planner(const DeploymentFacts& facts, Instant now)
      : facts_(facts),
        deployment_(facts.deployment),
        posts_(FencepostsOf(facts.deployment)),
        conditions_(facts.deployment.conditions),
        now_(now) {}

  Plan Run() {
    // Those that it adopts are counted when they are seen to be its own.
    if (Claim()) return std::move(plan_);
    FindNew();
    NotePause();
    if (facts_.head.deletion.has_value()) {
      Status(false);
    } else if (deployment_.paused || IsScalingEvent()) {
      Sync();
    } else if (deployment_.recreate) {
      Recreate();
    } else {
      RollingUpdate();
    }
    for (const Working& set : sets_) Emit(set);
    return std::move(plan_);
  }

 private:
  // True: this plan adopts some.
  bool Claim();
  void FindNew();
  void NotePause();
  [[nodiscard]] bool IsScalingEvent() const;
  void Sync();
  void RollingUpdate();
  void Recreate();
  // Makes sure that the template's ReplicaSet exists and carries what it should. False: it was
  // created, or can't be, by this plan.
  bool EnsureNew(bool create);
  void CreateNew(int64_t revision);
  void Inherit(Working& set, int64_t revision);
  void SetRevision(std::string revision);
  bool ReconcileNew();
  bool ReconcileOld();
  int64_t CleanUnhealthy(std::vector<Working*>& old, int64_t most);
  int64_t ScaleDownOld(std::vector<Working*>& old);
  void Scale();
  void ScaleProportionally(std::vector<Working*>& active);
  [[nodiscard]] int64_t Fraction(const Working& set) const;
  bool ScaleSet(Working& set, int64_t replicas);
  void Cleanup();
  void Status(bool rollout);
  void Emit(const Working& set);

  [[nodiscard]] Working* fresh() { return new_ < 0 ? nullptr : &sets_[static_cast<size_t>(new_)]; }
  [[nodiscard]] std::vector<Working*> Old();
  [[nodiscard]] std::vector<Working*> Active();
  [[nodiscard]] int64_t Total() const {
    return std::accumulate(sets_.begin(), sets_.end(), int64_t{0},
                           [](int64_t sum, const Working& set) { return sum + set.replicas; });
  }
  [[nodiscard]] int64_t NewReplicas() const;
  [[nodiscard]] int64_t MaxReplicas() const { return deployment_.replicas + posts_.surge; }

  const DeploymentFacts& facts_;
  const api::Deployment& deployment_;
  const Fenceposts posts_;
  std::vector<api::Condition> conditions_;
  const Instant now_;
  std::vector<Working> sets_;  // By creation, then name.
  int new_ = -1;
  std::optional<std::string> revision_;  // To be set on the Deployment.
  bool created_ = false;                 // This plan creates the template's ReplicaSet.
  Plan plan_;
};

bool Planner::Claim() {
  const Result<api::LabelQuery> query = api::QueryOf(deployment_.selector);
  const auto take = [&](const OwnedSet& owned) {
    sets_.push_back({.owned = &owned, .replicas = owned.set->replicas});
  };
  for (const OwnedSet& owned : facts_.owned) {
    if (!query || query->Matches(owned.head->labels)) {
      take(owned);
      continue;
    }
    std::vector<api::OwnerReference> owners = owned.head->owners;
    std::erase_if(owners, [&](const auto& owner) { return owner.uid == facts_.head.uid; });
    Write release = PatchOf(*owned.head);
    release.metadata = R"("ownerReferences":)" + OwnersText(owners);
    plan_.writes.push_back(std::move(release));
  }
  bool adopts = false;
  for (const OwnedSet& orphan : facts_.orphans) {
    if (!query || query->empty() || facts_.head.deletion.has_value()) break;
    if (orphan.head->deletion.has_value() || !query->Matches(orphan.head->labels)) continue;
    std::vector<api::OwnerReference> owners = orphan.head->owners;
    std::erase_if(owners, [&](const auto& owner) { return owner.uid == facts_.head.uid; });
    owners.push_back(ControllerReference(facts_.head));
    Write adopt = PatchOf(*orphan.head);
    adopt.metadata = R"("ownerReferences":)" + OwnersText(owners);
    plan_.writes.push_back(std::move(adopt));
    adopts = true;
  }
  std::ranges::sort(sets_, [](const Working& a, const Working& b) {
    return std::tie(a.head().creation, a.head().name) < std::tie(b.head().creation, b.head().name);
  });
  return adopts;
}

void Planner::FindNew() {
  for (size_t i = 0; i < sets_.size(); ++i) {
    if (sets_[i].set().pod_template.canonical != deployment_.pod_template.canonical) continue;
    new_ = static_cast<int>(i);
    return;
  }
}

void Planner::NotePause() {
  if (!deployment_.progress_deadline_seconds.has_value()) return;
  const api::Condition* known = api::Find(conditions_, kProgressing);
  if (known != nullptr && known->reason == kTimedOut) return;
  const bool noted = known != nullptr && known->reason == "DeploymentPaused";
  if (deployment_.paused && !noted) {
    ReplaceCondition(conditions_,
                     {.type = std::string(kProgressing),
                      .status = "Unknown",
                      .reason = "DeploymentPaused",
                      .message = "Deployment is paused"},
                     now_);
  } else if (!deployment_.paused && noted) {
    ReplaceCondition(conditions_,
                     {.type = std::string(kProgressing),
                      .status = "Unknown",
                      .reason = "DeploymentResumed",
                      .message = "Deployment is resumed"},
                     now_);
  }
}

bool Planner::IsScalingEvent() const {
  return std::ranges::any_of(sets_, [&](const Working& set) {
    const int64_t desired = IntegerOf(set.set().meta.annotations, kDesiredReplicas, -1);
    return set.replicas > 0 && desired >= 0 && desired != deployment_.replicas;
  });
}

std::vector<Working*> Planner::Old() {
  std::vector<Working*> old;
  for (size_t i = 0; i < sets_.size(); ++i) {
    if (static_cast<int>(i) != new_) old.push_back(&sets_[i]);
  }
  return old;
}

std::vector<Working*> Planner::Active() {
  std::vector<Working*> active;
  for (Working& set : sets_) {
    if (set.replicas > 0) active.push_back(&set);
  }
  return active;
}

// ---- The new ReplicaSet ----------------------------------------------------------------------

void Planner::SetRevision(std::string revision) {
  if (api::Find(deployment_.meta.annotations, kRevision) == std::string_view(revision)) return;
  revision_ = std::move(revision);
}

bool Planner::EnsureNew(bool create) {
  int64_t revision = 0;
  for (const Working* old : Old()) {
    revision = std::max(revision, IntegerOf(old->set().meta.annotations, kRevision, 0));
  }
  ++revision;
  Working* set = fresh();
  if (set == nullptr) {
    if (create) CreateNew(revision);
    return false;
  }
  Inherit(*set, revision);
  const auto planned = api::Find(set->annotations, kRevision);
  const auto known = api::Find(set->set().meta.annotations, kRevision);
  SetRevision(std::string(planned.value_or(known.value_or(""))));
  if (deployment_.progress_deadline_seconds.has_value() &&
      api::Find(conditions_, kProgressing) == nullptr) {
    ReplaceCondition(conditions_,
                     {.type = std::string(kProgressing),
                      .status = "True",
                      .reason = "FoundNewReplicaSet",
                      .message = fmt::format("Found new replica set \"{}\"", set->head().name)},
                     now_);
  }
  return true;
}

// Passes the Deployment's annotations and minReadySeconds on; a ReplicaSet that is used again gets
// the newest revision and remembers those it had.
void Planner::Inherit(Working& set, int64_t revision) {
  const api::StringMap& known = set.set().meta.annotations;
  for (const auto& [key, value] : deployment_.meta.annotations) {
    if (IsOwnAnnotation(key) || api::Find(known, key) == std::string_view(value)) continue;
    Put(set.annotations, key, value);
  }
  const int64_t had = IntegerOf(known, kRevision, 0);
  if (had < revision) {
    Put(set.annotations, kRevision, std::to_string(revision));
    if (had > 0) {
      const std::string history(api::Find(known, kRevisionHistory).value_or(""));
      Put(set.annotations, kRevisionHistory,
          history.empty() ? std::to_string(had) : history + "," + std::to_string(had));
    }
  }
  set.min_ready = set.set().min_ready_seconds != deployment_.min_ready_seconds;
}

int64_t Planner::NewReplicas() const {
  if (deployment_.recreate) return deployment_.replicas;
  const int64_t own = new_ < 0 ? 0 : sets_[static_cast<size_t>(new_)].replicas;
  const int64_t total = Total();
  if (total >= MaxReplicas()) return own;
  return own + std::min(MaxReplicas() - total, deployment_.replicas - own);
}

void Planner::CreateNew(int64_t revision) {
  if (facts_.name_taken) return;  // The status counts the collision; the next name follows from it.
  const std::string hash = PodTemplateHash(deployment_);
  Write create =
      CreateOf(api::KindId::kReplicaSet, facts_.head.namespace_name, facts_.head.name + "-" + hash);
  api::StringMap labels = deployment_.pod_template.labels;
  Put(labels, kPodTemplateHash, hash);
  api::StringMap annotations;
  for (const auto& [key, value] : deployment_.meta.annotations) {
    if (!IsOwnAnnotation(key)) Put(annotations, key, value);
  }
  Put(annotations, kRevision, std::to_string(revision));
  Put(annotations, kDesiredReplicas, std::to_string(deployment_.replicas));
  Put(annotations, kMaxReplicas, std::to_string(MaxReplicas()));
  api::StringMap match = deployment_.selector.match_labels;
  Put(match, kPodTemplateHash, hash);
  create.metadata =
      fmt::format(R"("labels":{},"annotations":{},"ownerReferences":{})", MapText(labels),
                  MapText(annotations), OwnersText({ControllerReference(facts_.head)}));
  std::string selector = R"({"matchLabels":)" + MapText(match);
  if (!deployment_.selector.match_expressions.empty()) {
    selector += R"(,"matchExpressions":[)";
    for (const api::Requirement& requirement : deployment_.selector.match_expressions) {
      selector += fmt::format(R"({{"key":{},"operator":{})", client::JsonString(requirement.key),
                              client::JsonString(requirement.op));
      if (!requirement.values.empty()) selector += R"(,"values":)" + ListText(requirement.values);
      selector += "},";
    }
    selector.back() = ']';
  }
  selector += '}';
  std::string pod_metadata = R"("labels":)" + MapText(labels);
  if (!deployment_.pod_template.annotations.empty()) {
    pod_metadata += R"(,"annotations":)" + MapText(deployment_.pod_template.annotations);
  }
  if (!deployment_.pod_template.finalizers.empty()) {
    pod_metadata += R"(,"finalizers":)" + ListText(deployment_.pod_template.finalizers);
  }
  create.body = fmt::format(
      R"("spec":{{"replicas":{},"minReadySeconds":{},"selector":{},"template":{{"metadata":{{{}}},"spec":{}}}}})",
      NewReplicas(), deployment_.min_ready_seconds, selector, pod_metadata,
      deployment_.pod_template.spec.view());
  if (NewReplicas() > 0) create.told = {Scaled(create.name, 0, NewReplicas())};
  created_ = true;
  plan_.writes.push_back(std::move(create));
}

// ---- Rolling update --------------------------------------------------------------------------

bool Planner::ScaleSet(Working& set, int64_t replicas) {
  const bool scaled = set.replicas != replicas;
  set.replicas = replicas;
  const api::StringMap& known = set.set().meta.annotations;
  const auto put = [&](std::string_view key, int64_t value) {
    if (IntegerOf(known, key, -1) != value) Put(set.annotations, key, std::to_string(value));
  };
  put(kDesiredReplicas, deployment_.replicas);
  put(kMaxReplicas, MaxReplicas());
  return scaled;
}

bool Planner::ReconcileNew() {
  Working& set = *fresh();
  if (set.replicas == deployment_.replicas) return false;
  if (set.replicas > deployment_.replicas) return ScaleSet(set, deployment_.replicas);
  return ScaleSet(set, NewReplicas());
}

bool Planner::ReconcileOld() {
  std::vector<Working*> old = Old();
  std::erase_if(old, [](const Working* set) { return set->replicas == 0; });
  if (old.empty()) return false;
  const int64_t min_available = deployment_.replicas - posts_.unavailable;
  const Working& set = *fresh();
  const int64_t new_unavailable = set.replicas - set.set().available_replicas;
  const int64_t most = Total() - min_available - new_unavailable;
  if (most <= 0) return false;
  const int64_t cleaned = CleanUnhealthy(old, most);
  return cleaned + ScaleDownOld(old) > 0;
}

// Pods of old templates that don't work go first: they serve nobody.
int64_t Planner::CleanUnhealthy(std::vector<Working*>& old, int64_t most) {
  int64_t cleaned = 0;
  for (Working* set : old) {
    const int64_t unhealthy = set->replicas - set->set().available_replicas;
    if (cleaned >= most) break;
    if (unhealthy <= 0) continue;
    const int64_t count = std::min(most - cleaned, unhealthy);
    ScaleSet(*set, set->replicas - count);
    cleaned += count;
  }
  return cleaned;
}

int64_t Planner::ScaleDownOld(std::vector<Working*>& old) {
  int64_t available = 0;
  for (const Working& set : sets_) available += set.set().available_replicas;
  const int64_t most = available - (deployment_.replicas - posts_.unavailable);
  int64_t scaled = 0;
  for (Working* set : old) {
    if (scaled >= most) break;
    const int64_t count = std::min(set->replicas, most - scaled);
    if (count == 0) continue;
    ScaleSet(*set, set->replicas - count);
    scaled += count;
  }
  return scaled;
}

void Planner::RollingUpdate() {
  if (!EnsureNew(true)) return Status(true);
  if (!ReconcileNew() && !ReconcileOld() && IsComplete(deployment_)) Cleanup();
  Status(true);
}

void Planner::Recreate() {
  const bool exists = EnsureNew(false);
  bool scaled = false;
  bool running = false;
  for (Working* old : Old()) {
    if (old->replicas > 0) scaled = ScaleSet(*old, 0) || scaled;
    running = running || old->owned->pods_not_over > 0;
  }
  if (scaled || running) return Status(true);
  if (!exists) {
    EnsureNew(true);
    return Status(true);
  }
  if (!ScaleSet(*fresh(), deployment_.replicas) && IsComplete(deployment_)) Cleanup();
  Status(true);
}

// ---- Scaling ---------------------------------------------------------------------------------

void Planner::Sync() {
  EnsureNew(false);
  Scale();
  if (deployment_.paused) Cleanup();
  Status(false);
}

void Planner::Scale() {
  std::vector<Working*> active = Active();
  if (active.size() <= 1) {
    Working* only = active.empty() ? fresh() : active.front();
    if (only == nullptr && !sets_.empty()) only = &sets_.back();
    if (only != nullptr) ScaleSet(*only, deployment_.replicas);
    return;
  }
  const Working* set = fresh();
  const bool saturated =
      set != nullptr && set->replicas == deployment_.replicas &&
      IntegerOf(set->set().meta.annotations, kDesiredReplicas, -1) == deployment_.replicas &&
      set->set().available_replicas == deployment_.replicas;
  if (saturated) {
    for (Working* old : Old()) {
      if (old->replicas > 0) ScaleSet(*old, 0);
    }
    return;
  }
  if (!deployment_.recreate) ScaleProportionally(active);
}

// Deals what is to be added or removed to all ReplicaSets by their share, so that a rollout that is
// under way keeps its mixture; what rounding leaves goes to the largest.
void Planner::ScaleProportionally(std::vector<Working*>& active) {
  const int64_t allowed = deployment_.replicas > 0 ? MaxReplicas() : 0;
  const int64_t to_add = allowed - Total();
  std::ranges::sort(active, [&](const Working* a, const Working* b) {
    if (a->replicas != b->replicas) return a->replicas > b->replicas;
    const auto age = [](const Working* set) {
      return std::tie(set->head().creation, set->head().name);
    };
    return to_add > 0 ? age(a) > age(b) : age(a) < age(b);
  });
  int64_t added = 0;
  std::vector<int64_t> sizes;
  for (const Working* set : active) {
    int64_t share = 0;
    if (to_add != 0 && added != to_add) {
      const int64_t left = to_add - added;
      share = to_add > 0 ? std::min(Fraction(*set), left) : std::max(Fraction(*set), left);
    }
    added += share;
    sizes.push_back(set->replicas + share);
  }
  if (!sizes.empty()) sizes.front() = std::max<int64_t>(0, sizes.front() + to_add - added);
  for (size_t i = 0; i < active.size(); ++i) ScaleSet(*active[i], sizes[i]);
}

int64_t Planner::Fraction(const Working& set) const {
  if (deployment_.replicas == 0) return -set.replicas;
  int64_t before = IntegerOf(set.set().meta.annotations, kMaxReplicas, 0);
  if (before <= 0) before = deployment_.status_replicas;
  if (before <= 0) return 0;
  // Rounded to the nearest, halves up.
  return (2 * set.replicas * MaxReplicas() + before) / (2 * before) - set.replicas;
}

// ---- The rest --------------------------------------------------------------------------------

void Planner::Cleanup() {
  if (!deployment_.revision_history_limit.has_value()) return;
  std::vector<Working*> old = Old();
  std::erase_if(old, [](const Working* set) { return set->head().deletion.has_value(); });
  const auto surplus = static_cast<int64_t>(old.size()) - *deployment_.revision_history_limit;
  std::ranges::stable_sort(old, {}, [](const Working* set) {
    return IntegerOf(set->set().meta.annotations, kRevision, 0);
  });
  for (int64_t i = 0; i < surplus; ++i) {
    const Working& set = *old[static_cast<size_t>(i)];
    if (set.set().status_replicas != 0 || set.replicas != 0 ||
        set.set().meta.generation > set.set().observed_generation) {
      continue;
    }
    plan_.writes.push_back(DeleteOf(set.head(), "Background"));
  }
}

void Planner::Status(bool rollout) {
  const size_t planned = plan_.writes.size();
  StatusFacts status{.deployment = deployment_,
                     .head = facts_.head,
                     .posts = posts_,
                     .conditions = std::move(conditions_),
                     .trouble = facts_.trouble,
                     .collided = new_ < 0 && facts_.name_taken,
                     // How far the rollout is its ReplicaSet tells.
                     .rollout = rollout && !created_};
  for (const Working& set : sets_) status.sets.push_back(set.owned->set);
  status.fresh = new_ < 0 ? nullptr : sets_[static_cast<size_t>(new_)].owned->set;
  PlanDeploymentStatus(std::move(status), now_, plan_);
  if (!revision_.has_value()) return;
  // With the status: written to the object itself an annotation would be a new generation, which
  // is the user's word for a change of what is wanted.
  if (plan_.writes.size() == planned) plan_.writes.push_back(StatusOf(facts_.head, "{}"));
  plan_.writes.back().metadata =
      R"("annotations":)" + MapText({{std::string(kRevision), *revision_}});
}

void Planner::Emit(const Working& set) {
  const bool scaled = set.replicas != set.set().replicas;
  if (!scaled && set.annotations.empty() && !set.min_ready) return;
  Write patch = PatchOf(set.head());
  if (scaled) patch.told = {Scaled(set.head().name, set.set().replicas, set.replicas)};
  if (!set.annotations.empty()) patch.metadata = R"("annotations":)" + MapText(set.annotations);
  std::string spec;
  if (scaled) spec += fmt::format(R"("replicas":{},)", set.replicas);
  if (set.min_ready) {
    spec += fmt::format(R"("minReadySeconds":{},)", deployment_.min_ready_seconds);
  }
  if (!spec.empty()) {
    spec.pop_back();
    patch.body = R"("spec":{)" + spec + "}";
  }
  plan_.writes.push_back(std::move(patch));
}

int64_t Resolve(const api::IntOrPercent& value, int64_t replicas, bool up) {
  if (!value.percent) return std::max<int64_t>(0, value.value);
  const int64_t product = std::max<int64_t>(0, value.value) * replicas;
  return up ? (product + 99) / 100 : product / 100;
}

}  // namespace

Fenceposts FencepostsOf(const api::Deployment& deployment) {
  if (deployment.recreate || deployment.replicas == 0) return {};
  Fenceposts posts{.surge = Resolve(deployment.max_surge, deployment.replicas, true),
                   .unavailable = Resolve(deployment.max_unavailable, deployment.replicas, false)};
  // Both can only come to zero by rounding; a rollout could then never move.
  if (posts.surge == 0 && posts.unavailable == 0) posts.unavailable = 1;
  posts.unavailable = std::min(posts.unavailable, deployment.replicas);
  return posts;
}

std::string PodTemplateHash(const api::Deployment& deployment) {
  return TemplateHash(deployment.pod_template, deployment.collision_count);
}

Plan PlanDeployment(const DeploymentFacts& facts, Instant now) { return Planner(facts, now).Run(); }

}  // namespace berth::controllers
