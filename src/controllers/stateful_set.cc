#include "controllers/stateful_set.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "api/json.h"
#include "client/request.h"
#include "codec/json.h"

namespace berth::controllers {
namespace {

constexpr std::string_view kRevisionNameLabel = "controller.kubernetes.io/hash";

// While another's pod has the name.
constexpr Duration kNameTakenEvery = Duration::Seconds(10);

// A place and who stands there.
struct Place {
  int64_t ordinal = 0;
  std::optional<PodRef> pod;

  [[nodiscard]] bool terminating() const { return pod && pod->head->deletion.has_value(); }
};

bool IsRunningAndReady(const PodRef& pod) {
  return pod.facts->phase == PodPhase::kRunning && pod.facts->ready;
}

// Whether a reference means an object of that kind and name, of whatever uid.
bool IsNamed(const api::OwnerReference& owner, const Head& object) {
  return owner.kind == api::KindOf(object.kind).name && owner.name == object.name;
}

class Planner {
 public:
  Planner(const StatefulSetFacts& facts, Instant now)
      : facts_(facts), set_(facts.set), head_(facts.head), now_(now) {}

  Plan Run();

 private:
  void Sort(const std::vector<PodRef>& pods);
  void KeepReplicas();
  [[nodiscard]] int64_t end_ordinal() const { return set_.first_ordinal + set_.replicas; }
  bool KeepReplica(const Place& place);
  void KeepCondemned();
  void RollOn();
  void Create(int64_t ordinal);
  void CreateClaims(int64_t ordinal);
  bool KeepClaim(const Head& claim, const Head& pod, bool condemned);
  bool KeepClaims(const Place& place, bool condemned);
  [[nodiscard]] bool HasLeavingClaim(int64_t ordinal) const;
  void Delete(const PodRef& pod);
  void Status();

  [[nodiscard]] std::string PodName(int64_t ordinal) const {
    return fmt::format("{}-{}", head_.name, ordinal);
  }
  [[nodiscard]] std::string ClaimName(const api::ClaimTemplate& claim, int64_t ordinal) const {
    return fmt::format("{}-{}-{}", claim.name, head_.name, ordinal);
  }
  [[nodiscard]] std::string SpecOf(const api::PodTemplate& pod_template, int64_t ordinal) const;
  [[nodiscard]] bool IsAvailableNow(const PodRef& pod) const {
    return IsAvailable(pod, set_.min_ready_seconds, now_);
  }
  [[nodiscard]] bool IsUnavailable(const Place& place) const {
    return !place.pod || !IsAvailableNow(*place.pod) || place.terminating();
  }
  [[nodiscard]] Told ToldOf(std::string_view verb, std::string_view reason, int64_t ordinal) const {
    return {.reason = std::string(reason),
            .message = fmt::format("{} Pod {} in StatefulSet {} successful", verb, PodName(ordinal),
                                   head_.name)};
  }
  [[nodiscard]] static std::string_view RevisionOf(const PodRef& pod) {
    return api::Find(pod.head->labels, kRevisionHashLabel).value_or("");
  }

  const StatefulSetFacts& facts_;
  const api::StatefulSet& set_;
  const Head& head_;
  const Instant now_;
  RevisionRef current_;
  RevisionRef update_;
  bool collided_ = false;
  // By ordinal, those where a pod stands: of the others there are as many as a user asks for.
  std::map<int64_t, Place> replicas_;
  std::vector<Place> condemned_;  // The highest ordinal first.
  int64_t created_ = 0;
  Plan plan_;
};

Plan Planner::Run() {
  const auto named = [&](std::vector<PodRef> pods) {
    std::erase_if(pods, [&](const PodRef& pod) { return !OrdinalOf(head_.name, pod.head->name); });
    return pods;
  };
  const std::vector<PodRef> pods =
      ClaimPods({.selector = set_.selector, .owner = head_}, named(facts_.owned),
                named(facts_.orphans), plan_.writes);
  const Revisions revisions = PlanRevisions({.head = head_,
                                             .annotations = set_.meta.annotations,
                                             .selector = set_.selector,
                                             .pod_template = set_.pod_template,
                                             .collisions = set_.collision_count,
                                             .hash_label = kRevisionNameLabel},
                                            facts_.revisions, plan_.writes);
  update_ = revisions.update;
  collided_ = revisions.collided;
  current_ = revisions.Named(set_.current_revision);
  if (current_.head == nullptr) current_ = update_;
  Sort(pods);
  // Without a revision no pod knows what it is made of.
  if (update_.head != nullptr && !head_.deletion.has_value()) KeepReplicas();
  Status();
  if (update_.head != nullptr) {
    std::set<std::string> live{current_.head->name, update_.head->name};
    for (const PodRef& pod : pods) live.emplace(RevisionOf(pod));
    if (!head_.deletion.has_value())
      PlanHistory(revisions.all, live, set_.revision_history_limit, plan_.writes);
  }
  return std::move(plan_);
}

void Planner::Sort(const std::vector<PodRef>& pods) {
  for (const PodRef& pod : pods) {
    const int64_t ordinal = *OrdinalOf(head_.name, pod.head->name);
    if (ordinal >= set_.first_ordinal && ordinal < end_ordinal()) {
      replicas_[ordinal] = {.ordinal = ordinal, .pod = pod};
    } else {
      condemned_.push_back({.ordinal = ordinal, .pod = pod});
    }
    plan_.WakeAt(AvailableAt(pod, set_.min_ready_seconds, now_));
  }
  std::ranges::sort(condemned_, std::greater<>(), &Place::ordinal);
}

void Planner::KeepReplicas() {
  const int64_t most = facts_.trouble.has_value() ? 1 : kPodsBurst;
  for (int64_t ordinal = set_.first_ordinal; ordinal < end_ordinal(); ++ordinal) {
    auto at = replicas_.find(ordinal);
    // None is made any more: on to the next that is there.
    if (at == replicas_.end() && created_ >= most) at = replicas_.upper_bound(ordinal);
    if (at == replicas_.end() && created_ >= most) break;
    const Place place = at == replicas_.end() ? Place{.ordinal = ordinal} : at->second;
    ordinal = place.ordinal;
    if (!KeepReplica(place) && !set_.parallel) return;
  }
  KeepCondemned();
}

// True: the next one's turn.
bool Planner::KeepReplica(const Place& place) {
  if (!place.pod && facts_.taken(PodName(place.ordinal))) {
    plan_.WakeAt(now_ + kNameTakenEvery);
    return false;
  }
  if (!place.pod) {
    if (HasLeavingClaim(place.ordinal)) return false;
    Create(place.ordinal);
    return false;
  }
  const PodRef& pod = *place.pod;
  if (pod.facts->terminal()) {
    const Instant due = pod.head->creation + kEndedStays;
    if (!place.terminating() && due <= now_) Delete(pod);
    if (due > now_) plan_.WakeAt(due);
    return false;
  }
  if (pod.facts->phase == PodPhase::kPending) CreateClaims(place.ordinal);
  if (!set_.parallel && (IsUnavailable(place) || !IsRunningAndReady(pod))) return false;
  if (api::Find(pod.head->labels, kPodNameLabel) != std::string_view(pod.head->name)) {
    Write patch = PatchOf(*pod.head);
    patch.metadata = R"("labels":)" + MapText({{std::string(kPodNameLabel), pod.head->name}});
    patch.told.push_back(ToldOf("Update", "SuccessfulUpdate", place.ordinal));
    plan_.writes.push_back(std::move(patch));
  }
  KeepClaims(place, false);
  return true;
}

void Planner::KeepCondemned() {
  const Place* unhealthy = nullptr;  // The lowest of those that are condemned, if no other is.
  const bool complete = std::cmp_equal(replicas_.size(), set_.replicas);
  const auto healthy = [&](const auto& of) { return !IsUnavailable(of.second); };
  if (complete && std::ranges::all_of(replicas_, healthy)) {
    const auto at = std::find_if(condemned_.rbegin(), condemned_.rend(),
                                 [&](const Place& place) { return IsUnavailable(place); });
    if (at != condemned_.rend()) unhealthy = &*at;
  }
  // Before they go: who takes a claim along is then known.
  bool claims_change = false;
  for (const Place& place : condemned_) claims_change = KeepClaims(place, true) || claims_change;
  if (claims_change) return;
  for (const Place& place : condemned_) {
    if (place.terminating()) {
      if (!set_.parallel) return;
      continue;
    }
    const bool stands = IsRunningAndReady(*place.pod) && IsAvailableNow(*place.pod);
    if (!set_.parallel && !stands && &place != unhealthy) return;
    Delete(*place.pod);
    if (!set_.parallel) return;
  }
  if (!set_.on_delete) RollOn();
}

void Planner::RollOn() {
  const int64_t first = set_.first_ordinal + set_.partition.value_or(0);
  for (int64_t ordinal = end_ordinal() - 1; ordinal >= first; --ordinal) {
    const auto at = replicas_.find(ordinal);
    if (at == replicas_.end()) return;
    const Place& place = at->second;
    if (RevisionOf(*place.pod) != update_.head->name && !place.terminating()) {
      // One that ended goes by itself.
      if (!place.pod->facts->terminal()) Delete(*place.pod);
      return;
    }
    if (IsUnavailable(place)) return;
  }
}

void Planner::Delete(const PodRef& pod) {
  Write write = DeleteOf(*pod.head);
  write.told.push_back(
      ToldOf("Delete", "SuccessfulDelete", *OrdinalOf(head_.name, pod.head->name)));
  plan_.writes.push_back(std::move(write));
}

// ---- New pods --------------------------------------------------------------------------------

std::string Planner::SpecOf(const api::PodTemplate& pod_template, int64_t ordinal) const {
  const Result<api::Json> parsed = codec::ParseJson(pod_template.spec.view());
  if (!parsed || !parsed->is_object()) return std::string(pod_template.spec.view());
  api::Json document = *parsed;
  api::JsonObject& spec = document.as_object();
  spec["hostname"] = PodName(ordinal);
  if (!set_.service_name.empty()) spec["subdomain"] = set_.service_name;
  if (set_.claim_templates.empty()) return codec::PrintJson(document);
  api::JsonArray volumes;
  const auto claims = [&](const api::Json& volume) {
    const api::Json* name = volume.is_object() ? volume.as_object().if_contains("name") : nullptr;
    return name != nullptr && name->is_string() &&
           std::ranges::find(set_.claim_templates, std::string_view(name->as_string()),
                             &api::ClaimTemplate::name) != set_.claim_templates.end();
  };
  for (const api::ClaimTemplate& claim : set_.claim_templates) {
    volumes.push_back({{"name", claim.name},
                       {"persistentVolumeClaim", {{"claimName", ClaimName(claim, ordinal)}}}});
  }
  if (const api::Json* own = spec.if_contains("volumes"); own != nullptr && own->is_array()) {
    for (const api::Json& volume : own->as_array()) {
      if (!claims(volume)) volumes.push_back(volume);
    }
  }
  spec["volumes"] = std::move(volumes);
  return codec::PrintJson(document);
}

void Planner::Create(int64_t ordinal) {
  CreateClaims(ordinal);
  // Below the partition pods are made as they were.
  const int64_t index = ordinal - set_.first_ordinal;
  const bool old = !set_.on_delete && index < set_.partition.value_or(set_.current_replicas);
  const RevisionRef& revision = old ? current_ : update_;
  // The template as it stands where it is the same: what made the revision may have lost nulls.
  const api::PodTemplate& pod_template =
      old && current_.head != update_.head ? revision.revision->pod_template : set_.pod_template;
  PodExtras extras{
      .labels = {}, .annotations = {}, .finalizers = {}, .spec = SpecOf(pod_template, ordinal)};
  Put(extras.labels, kRevisionHashLabel, revision.head->name);
  Put(extras.labels, kPodNameLabel, PodName(ordinal));
  Put(extras.labels, kPodIndexLabel, std::to_string(ordinal));
  Write create = PodOf(pod_template, head_.namespace_name, ControllerReference(head_), extras);
  create.name = PodName(ordinal);
  // As of any pod of a template, though its name is not made up.
  create.metadata += R"(,"generateName":)";
  client::AppendJsonString(create.metadata, head_.name + "-");
  create.told.push_back(ToldOf("Create", "SuccessfulCreate", ordinal));
  plan_.writes.push_back(std::move(create));
  ++created_;
}

void Planner::CreateClaims(int64_t ordinal) {
  for (const api::ClaimTemplate& claim : set_.claim_templates) {
    const std::string name = ClaimName(claim, ordinal);
    if (facts_.claim(name) != nullptr) continue;
    Write create = CreateOf(api::KindId::kPersistentVolumeClaim, head_.namespace_name, name);
    api::StringMap labels = claim.labels;
    for (const auto& [key, value] : set_.selector.match_labels) Put(labels, key, value);
    create.metadata = R"("labels":)" + MapText(labels);
    if (!claim.annotations.empty())
      create.metadata += R"(,"annotations":)" + MapText(claim.annotations);
    if (set_.delete_claims_with_set)
      create.metadata += R"(,"ownerReferences":)" + OwnersText({ControllerReference(head_)});
    create.body = R"("spec":)" + std::string(claim.spec.view());
    create.told.push_back(
        {.reason = "SuccessfulCreate",
         .message = fmt::format("Create Claim {} Pod {} in StatefulSet {} success", name,
                                PodName(ordinal), head_.name)});
    plan_.writes.push_back(std::move(create));
  }
}

// Who takes a claim along: the set with itself, a pod that is scaled away with itself. What others
// control, or a set or pod of the name that is gone, is left to them. True: it has to change.
bool Planner::KeepClaim(const Head& claim, const Head& pod, bool condemned) {
  const bool retains = !set_.delete_claims_with_set && !set_.delete_claims_when_scaled;
  std::vector<api::OwnerReference> owners;
  bool foreign = false;
  bool loose = false;
  bool of_set = false;
  bool of_pod = false;
  for (const api::OwnerReference& owner : claim.owners) {
    if (owner.uid == head_.uid || owner.uid == pod.uid) {
      (owner.uid == head_.uid ? of_set : of_pod) = true;
      loose = loose || !owner.controller;
      continue;
    }
    if (IsNamed(owner, head_) || IsNamed(owner, pod)) return false;
    foreign = foreign || (owner.controller && !retains);
    owners.push_back(owner);
  }
  const bool by_pod = set_.delete_claims_when_scaled && condemned && !foreign;
  const bool by_set = set_.delete_claims_with_set && !by_pod && !foreign;
  if (of_set == by_set && of_pod == by_pod && !loose) return false;
  if (by_pod) owners.push_back(ControllerReference(pod));
  if (by_set) owners.push_back(ControllerReference(head_));
  Write patch = PatchOf(claim);
  patch.metadata = R"("ownerReferences":)" + OwnersText(owners);
  plan_.writes.push_back(std::move(patch));
  return true;
}

bool Planner::KeepClaims(const Place& place, bool condemned) {
  bool changes = false;
  for (const api::ClaimTemplate& claim : set_.claim_templates) {
    const Head* known = facts_.claim(ClaimName(claim, place.ordinal));
    if (known != nullptr && KeepClaim(*known, *place.pod->head, condemned)) changes = true;
  }
  return changes;
}

// Whether a claim that a new pod would use is on its way out: being deleted, or to go with the pod
// that had the name before.
bool Planner::HasLeavingClaim(int64_t ordinal) const {
  return std::ranges::any_of(set_.claim_templates, [&](const api::ClaimTemplate& claim) {
    const Head* known = facts_.claim(ClaimName(claim, ordinal));
    if (known == nullptr) return false;
    if (known->deletion.has_value()) return true;
    return set_.delete_claims_when_scaled &&
           std::ranges::any_of(known->owners, [&](const api::OwnerReference& owner) {
             return owner.kind == "Pod" && owner.name == PodName(ordinal);
           });
  });
}

// ---- Status ----------------------------------------------------------------------------------

void Planner::Status() {
  api::StatefulSet after = set_;
  if (collided_) ++after.collision_count;
  // A generation is observed when its revision is there: who waits for the one reads the other.
  if (update_.head != nullptr) {
    after.observed_generation = set_.meta.generation;
    after.current_revision = current_.head->name;
    after.update_revision = update_.head->name;
  }
  after.status_replicas = after.ready_replicas = after.available_replicas = 0;
  after.current_replicas = after.updated_replicas = 0;
  const auto count = [&](const Place& place) {
    if (!place.pod) return;
    ++after.status_replicas;
    if (IsRunningAndReady(*place.pod)) {
      ++after.ready_replicas;
      if (IsAvailableNow(*place.pod)) ++after.available_replicas;
    }
    if (place.terminating()) return;
    const std::string_view revision = RevisionOf(*place.pod);
    if (revision == after.current_revision) ++after.current_replicas;
    if (revision == after.update_revision) ++after.updated_replicas;
  };
  for (const auto& [ordinal, place] : replicas_) count(place);
  std::ranges::for_each(condemned_, count);
  const bool complete =
      !set_.on_delete && update_.head != nullptr && after.updated_replicas == set_.replicas &&
      after.ready_replicas == set_.replicas && after.status_replicas == set_.replicas;
  if (complete) {
    after.current_replicas = after.updated_replicas;
    after.current_revision = after.update_revision;
  }
  if (after == set_) return;
  std::string revisions;
  if (!after.update_revision.empty()) {
    revisions = fmt::format(R"("currentRevision":"{}","updateRevision":"{}",)",
                            after.current_revision, after.update_revision);
  }
  plan_.writes.push_back(StatusOf(
      head_, fmt::format(R"({{"observedGeneration":{},"replicas":{},"readyReplicas":{},)"
                         R"("availableReplicas":{},"currentReplicas":{},"updatedReplicas":{},{})"
                         R"("collisionCount":{}}})",
                         after.observed_generation, after.status_replicas, after.ready_replicas,
                         after.available_replicas, after.current_replicas, after.updated_replicas,
                         revisions, after.collision_count)));
}

}  // namespace

std::optional<int64_t> OrdinalOf(std::string_view set, std::string_view pod) {
  if (!pod.starts_with(set)) return std::nullopt;
  pod.remove_prefix(set.size());
  if (pod.size() < 2 || pod.front() != '-' || pod[1] < '0' || pod[1] > '9') return std::nullopt;
  pod.remove_prefix(1);
  if (pod.size() > 1 && pod.front() == '0') return std::nullopt;
  int32_t ordinal = 0;
  const auto [end, error] = std::from_chars(pod.data(), pod.data() + pod.size(), ordinal);
  if (error != std::errc() || end != pod.data() + pod.size()) return std::nullopt;
  return ordinal;
}

Plan PlanStatefulSet(const StatefulSetFacts& facts, Instant now) {
  return Planner(facts, now).Run();
}

}  // namespace berth::controllers
