#include "controllers/objects.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "api/job_owner.h"
#include "base/check.h"
#include "codec/json.h"
#include "controllers/services.h"

namespace berth::controllers {
namespace {

constexpr std::string_view kDeletionCost = "controller.kubernetes.io/pod-deletion-cost";
constexpr std::string_view kIndexFailures = "batch.kubernetes.io/job-index-failure-count";
constexpr std::string_view kIndexFailuresIgnored =
    "batch.kubernetes.io/job-index-ignored-failure-count";
constexpr std::string_view kCompletionIndex = "batch.kubernetes.io/job-completion-index";
// The only ConfigMap whose content a controller reads.
constexpr std::string_view kRootCaConfigMap = "kube-root-ca.crt";

PodPhase PhaseOf(std::string_view phase) {
  if (phase == "Running") return PodPhase::kRunning;
  if (phase == "Succeeded") return PodPhase::kSucceeded;
  if (phase == "Failed") return PodPhase::kFailed;
  if (phase == "Unknown") return PodPhase::kUnknown;
  return PodPhase::kPending;
}

std::optional<int64_t> IntegerIn(const api::StringMap& map, std::string_view key) {
  const auto text = api::Find(map, key);
  int64_t value = 0;
  if (!text.has_value()) return std::nullopt;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (error != std::errc() || end != text->data() + text->size()) return std::nullopt;
  return value;
}

const std::set<Slot>& Lookup(const std::map<std::string, std::set<Slot>, std::less<>>& index,
                             std::string_view key) {
  static const std::set<Slot> kEmpty;
  const auto at = index.find(key);
  return at == index.end() ? kEmpty : at->second;
}

void Erase(std::map<std::string, std::set<Slot>, std::less<>>& index, const std::string& key,
           Slot slot) {
  const auto at = index.find(key);
  if (at == index.end()) return;
  at->second.erase(slot);
  if (at->second.empty()) index.erase(at);
}

std::string LabelKey(std::string_view namespace_name,
                     const std::pair<std::string, std::string>& label) {
  std::string key(namespace_name);
  return key.append("\n").append(label.first).append("=").append(label.second);
}

api::LabelQuery QueryOrNothing(const api::LabelSelector& selector) {
  Result<api::LabelQuery> query = api::QueryOf(selector);
  if (query) return std::move(*query);
  return {.nothing = true};
}

template <typename T>
const T* At(const std::map<Slot, T>& map, Slot slot) {
  const auto at = map.find(slot);
  return at == map.end() ? nullptr : &at->second;
}

// Whether the indexes hold both in the same places. Most updates are of status alone.
bool SameLinks(const Head& a, const Head& b) {
  return a.uid == b.uid && a.kind == b.kind && a.namespace_name == b.namespace_name &&
         a.name == b.name && a.owners == b.owners && a.labels == b.labels;
}

// Under which an object is found among those of its KindId and namespace.
std::string NameKeyOf(const Head& head) {
  return head.defined.empty() ? head.name : head.defined + "/" + head.name;
}

std::string_view KindName(api::KindId kind, std::string_view defined) {
  return defined.empty() ? api::KindOf(kind).name : defined;
}

std::string MembersKey(std::string_view namespace_name, std::string_view group) {
  return std::string(namespace_name).append("/").append(group);
}

// What a group is made of is in them.
api::StringMap VolcanosAnnotations(const api::Pod& pod) {
  api::StringMap annotations;
  if (pod.spec->scheduler_name != api::kVolcanoScheduler) return annotations;
  std::ranges::copy_if(
      pod.meta.annotations, std::back_inserter(annotations),
      [](const auto& entry) { return entry.first.find("volcano.sh/") != std::string::npos; });
  return annotations;
}

// Takes a view out of its result, and the head out of the view.
template <typename T>
Result<Head> Taken(api::KindId kind, Result<T> view, auto& into) {
  if (!view) return std::unexpected(view.error());
  return HeadOf(kind, into.template emplace<T>(std::move(*view)).meta);
}

}  // namespace

const api::OwnerReference* Head::controller() const {
  const auto at = std::ranges::find(owners, true, &api::OwnerReference::controller);
  return at == owners.end() ? nullptr : &*at;
}

bool Head::HasFinalizer(std::string_view finalizer) const {
  return std::ranges::find(finalizers, finalizer) != finalizers.end();
}

bool MayOwn(const Head& owner, const Head& dependent) {
  return owner.namespace_name.empty() || owner.namespace_name == dependent.namespace_name;
}

bool Controls(const Head& owner, const Head& dependent) {
  const api::OwnerReference* controller = dependent.controller();
  return controller != nullptr && controller->uid == owner.uid && MayOwn(owner, dependent);
}

std::string_view QueueNameOf(const Head& head) {
  return api::Find(head.labels, api::kQueueNameLabel).value_or("");
}

std::string_view JobUidOf(const Head& workload) {
  return api::JobUidOf(workload.owners, workload.labels);
}

namespace {

// What a podFailurePolicy looks at.
void NoteFailure(const api::Pod& pod, PodFacts& facts) {
  for (const auto* statuses : {&pod.container_statuses, &pod.init_container_statuses}) {
    for (const api::ContainerStatus& status : *statuses) {
      if (status.state == api::ContainerState::kTerminated)
        facts.exit_codes.emplace_back(status.name, status.exit_code);
    }
  }
  for (const api::PodCondition& condition : pod.conditions) {
    facts.conditions.emplace_back(condition.type, condition.status);
  }
  std::ranges::sort(facts.conditions);
}

Instant EndOf(const api::Pod& pod) {
  Instant last;
  const bool ended = std::ranges::all_of(pod.container_statuses, [&](const auto& status) {
    last = std::max(last, status.finished);
    return status.state == api::ContainerState::kTerminated && status.finished.ns != 0;
  });
  if (ended && last.ns != 0) return last;
  for (const api::PodCondition& condition : pod.conditions) {
    if (condition.type == "Ready" && condition.status == "False" && condition.transition.ns != 0)
      return condition.transition;
  }
  if (pod.meta.deletion_time.has_value()) {
    return *pod.meta.deletion_time - Duration::Seconds(pod.meta.deletion_grace_seconds.value_or(0));
  }
  return pod.meta.creation_time;
}

}  // namespace

PodFacts FactsOf(const api::Pod& pod) {
  PodFacts facts{
      .node = pod.node_name,
      .phase = PhaseOf(pod.phase),
      .started = pod.start_time,
      .deletion_cost = IntegerIn(pod.meta.annotations, kDeletionCost).value_or(0),
      .completion_index = IntegerIn(pod.meta.annotations, kCompletionIndex),
      .index_failures = IntegerIn(pod.meta.annotations, kIndexFailures).value_or(0),
      .index_failures_ignored = IntegerIn(pod.meta.annotations, kIndexFailuresIgnored).value_or(0),
      .group = api::GroupOf(pod),
      .names_group = !api::NamedGroup(pod.meta.annotations).empty(),
      .group_annotations = VolcanosAnnotations(pod),
      .spec = pod.spec};
  facts.claims = pod.spec->claims;
  for (const std::string& volume : pod.spec->ephemeral_volumes)
    facts.claims.push_back(EphemeralClaimName(pod.meta.name, volume));
  if (!pod.pod_ip.empty()) facts.ips = {pod.pod_ip};
  facts.ips.insert(facts.ips.end(), pod.other_pod_ips.begin(), pod.other_pod_ips.end());
  for (const api::PodCondition& condition : pod.conditions) {
    if (condition.type == "Ready") facts.ready_changed = condition.transition;
    if (condition.status != "True") continue;
    if (condition.type == "Ready") {
      facts.ready = true;
      facts.ready_since = condition.transition;
    }
    if (condition.type == "DisruptionTarget") {
      facts.disrupted = true;
      // Kubelets mark long before they end a pod.
      if (condition.reason != "TerminationByKubelet") facts.disrupted_since = condition.transition;
    }
  }
  if (facts.phase == PodPhase::kFailed) NoteFailure(pod, facts);
  for (const api::ContainerStatus& status : pod.container_statuses)
    facts.restarts += status.restart_count;
  facts.finished = EndOf(pod);
  return facts;
}

Head HeadOf(api::KindId kind, api::ObjectMeta meta) {
  const client::Version version = client::Version::Parse(meta.resource_version);
  return {.kind = kind,
          .namespace_name = std::move(meta.namespace_name),
          .name = std::move(meta.name),
          .uid = std::move(meta.uid),
          .resource_version = std::move(meta.resource_version),
          .version = version,
          .creation = meta.creation_time,
          .deletion = meta.deletion_time,
          .labels = std::move(meta.labels),
          .owners = std::move(meta.owners),
          .finalizers = std::move(meta.finalizers)};
}

Result<Head> Objects::DecodePod(std::string_view json, Decoded& decoded) {
  Result<api::Pod> pod = decoder_.Pod(json);
  if (!pod) return std::unexpected(pod.error());
  PodFacts& facts = decoded.emplace<PodFacts>(FactsOf(*pod));
  if (!pod->spec->ephemeral_volumes.empty()) {
    const Result<api::Json> object = codec::ParseJson(json);
    if (!object) return std::unexpected(object.error());
    facts.ephemeral = ReadEphemeralClaims(*object);
  }
  return HeadOf(api::KindId::kPod, std::move(pod->meta));
}

Result<Head> Objects::DecodeJob(std::string_view json, Decoded& decoded) {
  Result<api::Job> job = decoder_.Job(json);
  if (!job) return std::unexpected(job.error());
  auto& views = decoded.emplace<JobViews>();
  Head head = HeadOf(api::KindId::kJob, job->meta);
  if (!QueueNameOf(head).empty() || job->suspend) {
    Result<Shared<api::PodSpec>> spec = DecodeTemplate(job->pod_template);
    if (!spec) return std::unexpected(spec.error());
    views.spec = std::move(*spec);
  }
  views.job = std::move(*job);
  return head;
}

Result<Head> Objects::DecodeDaemonSet(std::string_view json, Decoded& decoded) {
  Result<api::DaemonSet> set = decoder_.DaemonSet(json);
  if (!set) return std::unexpected(set.error());
  Result<Shared<api::PodSpec>> spec = DecodeTemplate(set->pod_template);
  if (!spec) return std::unexpected(spec.error());
  Head head = HeadOf(api::KindId::kDaemonSet, set->meta);
  decoded = DaemonViews{.set = std::move(*set), .spec = std::move(*spec)};
  return head;
}

Result<Shared<api::PodSpec>> Objects::DecodeTemplate(const api::PodTemplate& pod_template) {
  const std::string_view spec = pod_template.spec.view();
  std::string document = R"({"metadata":{},"spec":)";
  document.append(spec.empty() ? "{}" : spec).append("}");
  Result<api::Pod> pod = decoder_.Pod(document);
  if (!pod) return std::unexpected(pod.error());
  return std::move(pod->spec);
}

Result<Head> Objects::Decode(api::KindId kind, std::string_view json, Decoded& decoded) {
  switch (kind) {
    case api::KindId::kPod:
      return DecodePod(json, decoded);
    case api::KindId::kDeployment:
      return Taken(kind, decoder_.Deployment(json), decoded);
    case api::KindId::kReplicaSet:
      return Taken(kind, decoder_.ReplicaSet(json), decoded);
    case api::KindId::kReplicationController:
      return Taken(kind, decoder_.ReplicationController(json), decoded);
    case api::KindId::kStatefulSet:
      return Taken(kind, decoder_.StatefulSet(json), decoded);
    case api::KindId::kDaemonSet:
      return DecodeDaemonSet(json, decoded);
    case api::KindId::kControllerRevision:
      return Taken(kind, decoder_.ControllerRevision(json), decoded);
    case api::KindId::kCronJob:
      return Taken(kind, decoder_.CronJob(json), decoded);
    case api::KindId::kJob:
      return DecodeJob(json, decoded);
    case api::KindId::kPersistentVolume:
      return Read(kind, json, &ReadVolume, decoded);
    case api::KindId::kPersistentVolumeClaim:
      return Read(kind, json, &ReadClaim, decoded);
    case api::KindId::kStorageClass:
      return Read(kind, json, &ReadStorageClass, decoded);
    case api::KindId::kClusterRole:
      return DecodeRole(json, decoded);
    case api::KindId::kCustomResourceDefinition:
      return Read(kind, json, &ReadDefinition, decoded);
    case api::KindId::kService:
      return Read(kind, json, &ReadService, decoded);
    case api::KindId::kEndpoints:
      return Read(kind, json, &ReadEndpoints, decoded);
    case api::KindId::kEndpointSlice:
      return Read(kind, json, &ReadSlice, decoded);
    case api::KindId::kNode: {
      Result<api::Node> node = decoder_.Node(json);
      if (node) node->images = {};  // Several times the rest of a node, and nobody here asks.
      return Taken(kind, std::move(node), decoded);
    }
    case api::KindId::kNamespace:
      return Taken(kind, decoder_.Namespace(json), decoded);
    case api::KindId::kLease:
      return Taken(kind, decoder_.Lease(json), decoded);
    case api::KindId::kConfigMap:
      return Taken(kind, decoder_.ConfigMap(json), decoded);
    case api::KindId::kPodDisruptionBudget:
      return Taken(kind, decoder_.PodDisruptionBudget(json), decoded);
    case api::KindId::kPodGroup:
      return Taken(kind, decoder_.PodGroup(json), decoded);
    case api::KindId::kQueue:
      return Taken(kind, decoder_.Queue(json), decoded);
    case api::KindId::kWorkload:
      return Taken(kind, decoder_.Workload(json), decoded);
    case api::KindId::kResourceFlavor:
      return Taken(kind, decoder_.ResourceFlavor(json), decoded);
    case api::KindId::kPriorityClass:
      return Taken(kind, decoder_.PriorityClass(json), decoded);
    case api::KindId::kWorkloadPriorityClass:
      return Taken(kind, decoder_.WorkloadPriorityClass(json), decoded);
    default: {
      const Result<api::ObjectHead> head = decoder_.Head(json);
      if (!head) return std::unexpected(head.error());
      return HeadOf(kind, head->meta);
    }
  }
}

Result<Head> Objects::DecodeRole(std::string_view json, Decoded& decoded) {
  Result<RoleFacts> role = ReadRole(json);
  if (!role) return std::unexpected(role.error());
  decoded = std::move(*role);
  const Result<api::ObjectHead> head = decoder_.Head(json);
  if (!head) return std::unexpected(head.error());
  return HeadOf(api::KindId::kClusterRole, head->meta);
}

template <typename T>
Result<Head> Objects::Read(api::KindId kind, std::string_view json, T (*read)(const api::Json&),
                           Decoded& decoded) {
  const Result<api::ObjectHead> head = decoder_.Head(json);
  if (!head) return std::unexpected(head.error());
  const Result<api::Json> object = codec::ParseJson(json);
  if (!object) return std::unexpected(object.error());
  decoded = read(*object);
  return HeadOf(kind, head->meta);
}

void Objects::Keep(Slot slot, Decoded& decoded) {
  std::visit([&](auto& view) { KeepView(slot, std::move(view)); }, decoded);
}

template <typename T>
void Objects::KeepView(Slot slot, T view) {
  if constexpr (requires { QueryOrNothing(view.selector); })
    selectors_[slot] = QueryOrNothing(view.selector);
  Table<T>()[slot] = std::move(view);
}

void Objects::KeepView(Slot slot, JobViews views) {
  template_specs_.erase(slot);
  if (views.spec.has_value()) template_specs_[slot] = std::move(*views.spec);
  KeepView<api::Job>(slot, std::move(views.job));
}

void Objects::KeepView(Slot slot, DaemonViews views) {
  template_specs_[slot] = std::move(views.spec);
  KeepView<api::DaemonSet>(slot, std::move(views.set));
}

void Objects::KeepView(Slot slot, api::ConfigMap map) {
  if (heads_[slot].name == kRootCaConfigMap) Table<api::ConfigMap>()[slot] = std::move(map);
}

void Objects::KeepView(Slot slot, api::PodDisruptionBudget budget) {
  KeepSelector(
      slot, budget.selector ? QueryOrNothing(*budget.selector) : api::LabelQuery{.nothing = true});
  Table<api::PodDisruptionBudget>()[slot] = std::move(budget);
}

// The group is counted in its queue by what it says of its phase.
void Objects::KeepView(Slot slot, api::PodGroup group) {
  UncountGroup(slot);
  ++CountOf(groups_in_[std::string(QueueOf(group))], group.phase);
  Table<api::PodGroup>()[slot] = std::move(group);
}

void Objects::UncountGroup(Slot slot) {
  const auto known = Table<api::PodGroup>().find(slot);
  if (known == Table<api::PodGroup>().end()) return;
  const auto at = groups_in_.find(QueueOf(known->second));
  --CountOf(at->second, known->second.phase);
  if (at->second == api::GroupCounts{}) groups_in_.erase(at);
}

void Objects::KeepView(Slot slot, ServiceFacts service) {
  KeepSelector(slot, service.selects && !service.external ? api::QueryOf(service.selector)
                                                          : api::LabelQuery{.nothing = true});
  Table<ServiceFacts>()[slot] = std::move(service);
}

void Objects::KeepView(Slot slot, VolumeFacts volume) {
  UnlinkVolume(slot);
  if (volume.claim.has_value()) {
    volumes_of_[MembersKey(volume.claim->namespace_name, volume.claim->name)].insert(slot);
  } else {
    free_volumes_.insert(slot);
  }
  Table<VolumeFacts>()[slot] = std::move(volume);
}

void Objects::UnlinkVolume(Slot slot) {
  free_volumes_.erase(slot);
  const VolumeFacts* known = volume(slot);
  if (known != nullptr && known->claim.has_value())
    Erase(volumes_of_, MembersKey(known->claim->namespace_name, known->claim->name), slot);
}

void Objects::KeepSelector(Slot slot, api::LabelQuery query) {
  const auto [known, fresh] = selectors_.try_emplace(slot);
  if (!fresh && known->second == query) return;
  known->second = std::move(query);
  std::set<Slot>& pods = selected_[slot];
  pods.clear();
  if (known->second.nothing) return;
  for (const Slot pod : In(api::KindId::kPod, heads_[slot].namespace_name)) {
    if (known->second.Matches(heads_[pod].labels)) pods.insert(pod);
  }
}

void Objects::LinkToSelecting(Slot pod) {
  const Head& head = heads_[pod];
  const auto link = [&](api::KindId kind) {
    for (const Slot slot : In(kind, head.namespace_name)) {
      if (selectors_[slot].Matches(head.labels)) selected_[slot].insert(pod);
    }
  };
  if (has_budgets()) link(api::KindId::kPodDisruptionBudget);
  if (has_services()) link(api::KindId::kService);
}

void Objects::UnlinkFromSelecting(Slot pod) {
  const auto unlink = [&](api::KindId kind) {
    for (const Slot slot : In(kind, heads_[pod].namespace_name)) selected_[slot].erase(pod);
  };
  if (has_budgets()) unlink(api::KindId::kPodDisruptionBudget);
  if (has_services()) unlink(api::KindId::kService);
}

bool Objects::IsScaled(Slot known, const Decoded& decoded) const {
  if (const auto* next = std::get_if<api::Deployment>(&decoded)) {
    const api::Deployment* before = deployment(known);
    return before == nullptr || before->replicas != next->replicas;
  }
  if (const auto* next = std::get_if<api::StatefulSet>(&decoded))
    return Table<api::StatefulSet>().at(known).replicas != next->replicas;
  if (const auto* next = std::get_if<api::ReplicationController>(&decoded))
    return Table<api::ReplicationController>().at(known).replicas != next->replicas;
  const auto* next = std::get_if<api::ReplicaSet>(&decoded);
  if (next == nullptr) return false;
  const api::ReplicaSet* before = replica_set(known);
  return before == nullptr || before->replicas != next->replicas;
}

bool Objects::IsRegrouped(Slot known, const Head& head, const Decoded& decoded) const {
  const Head& before = heads_[known];
  if (before.owners != head.owners) return true;
  if (const auto* pod = std::get_if<PodFacts>(&decoded)) {
    const PodFacts& was = Table<PodFacts>().at(known);
    return was.group != pod->group || was.names_group != pod->names_group ||
           was.terminal() != pod->terminal() || before.labels != head.labels ||
           was.group_annotations != pod->group_annotations;
  }
  if (const auto* set = std::get_if<api::ReplicaSet>(&decoded)) {
    const api::ReplicaSet& was = Table<api::ReplicaSet>().at(known);
    return was.replicas != set->replicas || was.meta.annotations != set->meta.annotations;
  }
  if (const auto* views = std::get_if<JobViews>(&decoded)) {
    const api::Job& was = Table<api::Job>().at(known);
    return was.meta.annotations != views->job.meta.annotations ||
           was.pod_template != views->job.pod_template || was.suspend != views->job.suspend ||
           before.labels != head.labels;
  }
  // Of the status of a group only its writer knows something.
  const auto* group = std::get_if<api::PodGroup>(&decoded);
  if (group == nullptr) return false;
  const api::PodGroup& was = Table<api::PodGroup>().at(known);
  return was.min_member != group->min_member || was.min_resources != group->min_resources ||
         was.queue != group->queue || was.priority_class != group->priority_class ||
         was.meta.annotations != group->meta.annotations || before.labels != head.labels;
}

bool Objects::IsRepublished(Slot known, const Head& head, const PodFacts& pod) const {
  const Head& before = heads_[known];
  const PodFacts& was = Table<PodFacts>().at(known);
  if (was.ips.empty() && pod.ips.empty()) return false;
  return was.ips != pod.ips || was.ready != pod.ready || was.terminal() != pod.terminal() ||
         was.node != pod.node || before.deletion != head.deletion || before.labels != head.labels;
}

bool IsReady(const api::Node& node) {
  return std::ranges::any_of(node.conditions, [](const api::NodeCondition& condition) {
    return condition.type == "Ready" && condition.status == "True";
  });
}

Result<Difference> Objects::Observe(api::KindId kind, std::string_view json,
                                    const std::string& defined) {
  Decoded decoded;
  Result<Head> head = Decode(kind, json, decoded);
  if (!head) return std::unexpected(head.error());
  if (head->uid.empty() || head->name.empty()) {
    return Fail(ErrorCode::kInvalid, "an object without name or uid");
  }
  head->digest = HashOf(json);
  head->defined = defined;
  Difference difference;
  const Slot known = Find(head->uid);
  if (known != kNoSlot && (heads_[known].kind != kind || heads_[known].defined != defined)) {
    return Fail(ErrorCode::kInvalid,
                fmt::format("{} {}/{} has the uid of {} {}/{}, {}", KindName(kind, defined),
                            head->namespace_name, head->name,
                            KindName(heads_[known].kind, heads_[known].defined),
                            heads_[known].namespace_name, heads_[known].name, head->uid));
  }
  if (known != kNoSlot) {
    const client::Version& seen = heads_[known].version;
    if (head->version.OlderThan(seen) || head->version == seen) return difference;
    if (kind == api::KindId::kPod) {
      difference.node_before = Table<PodFacts>()[known].node;
      difference.group_before = Table<PodFacts>()[known].group;
    }
    if (kind == api::KindId::kPodGroup)
      difference.queue_before = QueueOf(Table<api::PodGroup>()[known]);
    if (const VolumeFacts* was = volume(known)) difference.claim_before = was->claim;
    difference.slot = known;
    difference.scaled = IsScaled(known, decoded);
    const auto* machine = std::get_if<api::Node>(&decoded);
    difference.turned =
        machine != nullptr && IsReady(*machine) != IsReady(Table<api::Node>()[known]);
    difference.refitted =
        machine != nullptr && (machine->taints != Table<api::Node>()[known].taints ||
                               machine->meta.labels != heads_[known].labels);
    difference.regrouped = IsRegrouped(known, *head, decoded);
    const auto* member = std::get_if<PodFacts>(&decoded);
    difference.republished = member != nullptr && IsRepublished(known, *head, *member);
    const bool same_links = SameLinks(heads_[known], *head) &&
                            (member == nullptr || member->group == difference.group_before);
    if (!same_links) Unlink(known);
    difference.before = std::exchange(heads_[known], std::move(*head));
    if (same_links) {
      // A pod gets its node after its links.
      if (member != nullptr && difference.node_before != member->node) {
        Erase(pods_on_, difference.node_before, known);
        if (!member->node.empty()) pods_on_[member->node].insert(known);
      }
      Keep(known, decoded);
      return difference;
    }
  } else {
    // The name's former bearer is gone, though nobody has told so yet.
    const Slot former = Find(kind, head->namespace_name, NameKeyOf(*head));
    if (former != kNoSlot) {
      difference = Remove(std::string(heads_[former].uid));
      difference.removed = false;
    }
    difference.slot = Place(std::move(*head));
    difference.created = true;
    const auto* pod = std::get_if<PodFacts>(&decoded);
    difference.republished = pod != nullptr && !pod->ips.empty();
  }
  Keep(difference.slot, decoded);
  Link(difference.slot);
  return difference;
}

Slot Objects::Place(Head head) {
  if (free_.empty()) {
    free_.push_back(static_cast<Slot>(heads_.size()));
    heads_.emplace_back();
  }
  const Slot slot = free_.back();
  free_.pop_back();
  heads_[slot] = std::move(head);
  return slot;
}

void Objects::Link(Slot slot) {
  const Head& head = heads_[slot];
  by_uid_[head.uid] = slot;
  by_name_[{head.kind, head.namespace_name, NameKeyOf(head)}] = slot;
  for (const api::OwnerReference& owner : head.owners) dependents_[owner.uid].insert(slot);
  if (head.kind == api::KindId::kWorkload) {
    if (const std::string_view job = JobUidOf(head); !job.empty())
      workloads_for_[std::string(job)].insert(slot);
  }
  if (head.kind == api::KindId::kControllerRevision && head.controller() == nullptr)
    orphan_revisions_[head.namespace_name].insert(slot);
  if (head.kind == api::KindId::kEndpointSlice)
    slices_of_[MembersKey(head.namespace_name, ServiceNameOf(head))].insert(slot);
  if (head.kind != api::KindId::kPod) return;
  const std::string& node = Table<PodFacts>()[slot].node;
  if (!node.empty()) pods_on_[node].insert(slot);
  const std::string& group = Table<PodFacts>()[slot].group;
  if (!group.empty()) members_[MembersKey(head.namespace_name, group)].insert(slot);
  LinkToSelecting(slot);
  if (head.controller() != nullptr) return;
  orphan_pods_[head.namespace_name].insert(slot);
  for (const auto& label : head.labels) {
    orphan_labels_[LabelKey(head.namespace_name, label)].insert(slot);
  }
}

void Objects::Unlink(Slot slot) {
  const Head& head = heads_[slot];
  by_uid_.erase(head.uid);
  by_name_.erase({head.kind, head.namespace_name, NameKeyOf(head)});
  for (const api::OwnerReference& owner : head.owners) Erase(dependents_, owner.uid, slot);
  if (head.kind == api::KindId::kWorkload) Erase(workloads_for_, std::string(JobUidOf(head)), slot);
  if (head.kind == api::KindId::kControllerRevision)
    Erase(orphan_revisions_, head.namespace_name, slot);
  if (head.kind == api::KindId::kEndpointSlice)
    Erase(slices_of_, MembersKey(head.namespace_name, ServiceNameOf(head)), slot);
  if (head.kind != api::KindId::kPod) return;
  Erase(pods_on_, Table<PodFacts>()[slot].node, slot);
  Erase(members_, MembersKey(head.namespace_name, Table<PodFacts>()[slot].group), slot);
  UnlinkFromSelecting(slot);
  if (head.controller() != nullptr) return;
  Erase(orphan_pods_, head.namespace_name, slot);
  for (const auto& label : head.labels) {
    Erase(orphan_labels_, LabelKey(head.namespace_name, label), slot);
  }
}

void Objects::EraseViews(Slot slot) {
  UncountGroup(slot);
  UnlinkVolume(slot);
  selectors_.erase(slot);
  selected_.erase(slot);
  template_specs_.erase(slot);
  std::apply([&](auto&... tables) { (tables.erase(slot), ...); }, tables_);
}

Difference Objects::Remove(std::string_view uid) {
  Difference difference;
  const Slot slot = Find(uid);
  if (slot == kNoSlot) return difference;
  if (heads_[slot].kind == api::KindId::kPod) {
    difference.node_before = Table<PodFacts>()[slot].node;
    difference.group_before = Table<PodFacts>()[slot].group;
  }
  if (heads_[slot].kind == api::KindId::kPodGroup)
    difference.queue_before = QueueOf(Table<api::PodGroup>()[slot]);
  if (const VolumeFacts* was = volume(slot)) difference.claim_before = was->claim;
  Unlink(slot);
  EraseViews(slot);
  difference.slot = slot;
  difference.removed = true;
  difference.before = std::move(heads_[slot]);
  heads_[slot] = Head{};
  free_.push_back(slot);
  return difference;
}

Slot Objects::Find(std::string_view uid) const {
  const auto at = by_uid_.find(uid);
  return at == by_uid_.end() ? kNoSlot : at->second;
}

Slot Objects::Find(api::KindId kind, std::string_view namespace_name, std::string_view name) const {
  const auto at = by_name_.find(std::tuple(kind, namespace_name, name));
  return at == by_name_.end() ? kNoSlot : at->second;
}

const PodFacts* Objects::pod(Slot slot) const { return View<PodFacts>(slot); }

const DefinitionFacts* Objects::definition(Slot slot) const { return View<DefinitionFacts>(slot); }
const DefinitionFacts* Objects::definition(std::string_view name) const {
  return At(Table<DefinitionFacts>(), Find(api::KindId::kCustomResourceDefinition, {}, name));
}

std::optional<KindNames> Objects::KindNamesOf(const Head& head) const {
  if (head.defined.empty()) {
    const api::Kind& kind = api::KindOf(head.kind);
    return KindNames{.api_version = kind.api_version(), .kind = std::string(kind.name)};
  }
  const DefinitionFacts* found = definition(head.defined);
  if (found == nullptr || found->version.empty()) return std::nullopt;
  return KindNames{.api_version = found->group + "/" + found->version, .kind = found->kind};
}

const Head* Objects::DefinitionOf(const api::OwnerReference& reference) const {
  for (const auto& [slot, definition] : Table<DefinitionFacts>()) {
    if (definition.Means(reference.api_version, reference.kind)) return &heads_[slot];
  }
  return nullptr;
}

void Objects::NoteListed(const std::string& defined, bool listed) {
  if (listed) {
    listed_.insert(defined);
  } else {
    listed_.erase(defined);
  }
}
const api::Deployment* Objects::deployment(Slot slot) const { return View<api::Deployment>(slot); }
const api::ReplicaSet* Objects::replica_set(Slot slot) const { return View<api::ReplicaSet>(slot); }
const api::ReplicaSet* Objects::replicas_of(Slot slot) const {
  const api::ReplicaSet* set = replica_set(slot);
  return set != nullptr ? set : View<api::ReplicationController>(slot);
}
const api::StatefulSet* Objects::stateful_set(Slot slot) const {
  return View<api::StatefulSet>(slot);
}
const api::DaemonSet* Objects::daemon_set(Slot slot) const { return View<api::DaemonSet>(slot); }
const api::ControllerRevision* Objects::revision(Slot slot) const {
  return View<api::ControllerRevision>(slot);
}
const api::CronJob* Objects::cron_job(Slot slot) const { return View<api::CronJob>(slot); }
const api::Job* Objects::job(Slot slot) const { return View<api::Job>(slot); }
const api::Node* Objects::node(Slot slot) const { return View<api::Node>(slot); }
const api::Namespace* Objects::namespace_of(Slot slot) const { return View<api::Namespace>(slot); }
const api::Lease* Objects::lease(Slot slot) const { return View<api::Lease>(slot); }
const api::ConfigMap* Objects::config_map(Slot slot) const { return View<api::ConfigMap>(slot); }
const api::PodDisruptionBudget* Objects::budget(Slot slot) const {
  return View<api::PodDisruptionBudget>(slot);
}
const RoleFacts* Objects::role(Slot slot) const { return View<RoleFacts>(slot); }

const VolumeFacts* Objects::volume(Slot slot) const { return View<VolumeFacts>(slot); }
const ClaimFacts* Objects::claim(Slot slot) const { return View<ClaimFacts>(slot); }
const StorageClassFacts* Objects::storage_class(Slot slot) const {
  return View<StorageClassFacts>(slot);
}
const ServiceFacts* Objects::service(Slot slot) const { return View<ServiceFacts>(slot); }
const EndpointsFacts* Objects::endpoints(Slot slot) const { return View<EndpointsFacts>(slot); }
const SliceFacts* Objects::slice(Slot slot) const { return View<SliceFacts>(slot); }
const api::PodGroup* Objects::group(Slot slot) const { return View<api::PodGroup>(slot); }
const api::Queue* Objects::group_queue(Slot slot) const { return View<api::Queue>(slot); }
api::GroupCounts Objects::GroupsIn(std::string_view queue) const {
  const auto at = groups_in_.find(queue);
  return at == groups_in_.end() ? api::GroupCounts{} : at->second;
}

const api::Workload* Objects::workload(Slot slot) const { return View<api::Workload>(slot); }
const api::ResourceFlavor* Objects::flavor(Slot slot) const {
  return View<api::ResourceFlavor>(slot);
}
const api::PriorityClass* Objects::priority_class(Slot slot) const {
  return View<api::PriorityClass>(slot);
}
const api::WorkloadPriorityClass* Objects::workload_class(Slot slot) const {
  return View<api::WorkloadPriorityClass>(slot);
}

const Shared<api::PodSpec>& Objects::template_spec(Slot owner) const {
  static const Shared<api::PodSpec> kNone;
  const Shared<api::PodSpec>* spec = At(template_specs_, owner);
  return spec == nullptr ? kNone : *spec;
}

const std::set<Slot>& Objects::SelectedBy(Slot selecting) const {
  static const std::set<Slot> kNone;
  const auto at = selected_.find(selecting);
  return at == selected_.end() ? kNone : at->second;
}

const std::set<Slot>& Objects::VolumesOf(const Head& claim) const {
  return Lookup(volumes_of_, MembersKey(claim.namespace_name, claim.name));
}

std::optional<std::string> Objects::DefaultStorageClass() const {
  const Head* best = nullptr;
  for (const auto& [slot, storage_class] : Table<StorageClassFacts>()) {
    if (!storage_class.is_default) continue;
    const Head& head = heads_[slot];
    const bool better = best == nullptr || head.creation > best->creation ||
                        (head.creation == best->creation && head.name < best->name);
    if (better) best = &head;
  }
  if (best == nullptr) return std::nullopt;
  return best->name;
}

const std::set<Slot>& Objects::SlicesOf(std::string_view namespace_name,
                                        std::string_view service) const {
  return Lookup(slices_of_, MembersKey(namespace_name, service));
}

const std::set<Slot>& Objects::DependentsOf(std::string_view owner_uid) const {
  return Lookup(dependents_, owner_uid);
}

const std::set<Slot>& Objects::WorkloadsFor(std::string_view job_uid) const {
  return Lookup(workloads_for_, job_uid);
}

const std::set<Slot>& Objects::PodsOn(std::string_view node) const {
  return Lookup(pods_on_, node);
}

const std::set<Slot>& Objects::MembersOf(std::string_view namespace_name,
                                         std::string_view group) const {
  return Lookup(members_, MembersKey(namespace_name, group));
}

std::vector<Slot> Objects::OrphanPods(std::string_view namespace_name,
                                      const api::LabelSelector& selector) const {
  const std::set<Slot>& slots =
      selector.match_labels.empty()
          ? Lookup(orphan_pods_, namespace_name)
          : Lookup(orphan_labels_, LabelKey(namespace_name, selector.match_labels.front()));
  return {slots.begin(), slots.end()};
}

const std::set<Slot>& Objects::OrphanRevisions(std::string_view namespace_name) const {
  return Lookup(orphan_revisions_, namespace_name);
}

const api::LabelQuery* Objects::selector(Slot slot) const { return At(selectors_, slot); }

std::vector<Slot> Objects::In(api::KindId kind, std::string_view namespace_name) const {
  std::vector<Slot> slots;
  for (auto at = by_name_.lower_bound(std::tuple(kind, namespace_name, std::string_view()));
       at != by_name_.end() && std::get<0>(at->first) == kind &&
       std::get<1>(at->first) == namespace_name;
       ++at) {
    slots.push_back(at->second);
  }
  return slots;
}

std::vector<Slot> Objects::All(api::KindId kind) const {
  std::vector<Slot> slots;
  for (auto at = by_name_.lower_bound(std::tuple(kind, std::string_view(), std::string_view()));
       at != by_name_.end() && std::get<0>(at->first) == kind; ++at) {
    slots.push_back(at->second);
  }
  return slots;
}

std::vector<Slot> Objects::AllDefined(std::string_view defined) const {
  std::vector<Slot> slots = All(api::KindId::kCustomResource);
  std::erase_if(slots, [&](Slot slot) { return heads_[slot].defined != defined; });
  return slots;
}

// Heads, views and indexes follow from the kinds and the documents.
void Objects::AddTo(Hasher& hasher) const {
  hasher.Add(listed_.size());
  for (const std::string& defined : listed_) hasher.Add(defined);
  hasher.Add(by_uid_.size());
  for (const auto& [uid, slot] : by_uid_) {
    hasher.Add(uid).Add(slot).Add(heads_[slot].kind).Add(heads_[slot].digest);
  }
  hasher.Add(free_.size());
  for (const Slot slot : free_) hasher.Add(slot);
}

}  // namespace berth::controllers
