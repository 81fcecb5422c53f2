#include "control/queues.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <concepts>
#include <span>
#include <utility>
#include <vector>

#include "base/check.h"
#include "client/known_set.h"
#include "control/status_text.h"
#include "translate/quota_text.h"

namespace berth::control {
namespace {

constexpr std::string_view kActive = "Active";
// A message is to be read, and its length is limited to 32 KiB.
constexpr size_t kNamesShownMax = 8;

client::Resource ResourceOf(const api::ClusterQueue& /*queue*/) {
  return KueueResource("clusterqueues");
}
client::Resource ResourceOf(const api::LocalQueue& /*queue*/) {
  return KueueResource("localqueues");
}

// ---- What is wrong ---------------------------------------------------------------------------

Readiness Ready() {
  return {.active = true, .reason = "Ready", .message = "Workloads are admitted."};
}

std::string StopText(api::StopPolicy stop) {
  return fmt::format("spec.stopPolicy is {}; set it to None to have workloads admitted.",
                     stop == api::StopPolicy::kHold ? "Hold" : "HoldAndDrain");
}

// Each name once, in the order in which they are given.
class Names {
 public:
  Names() = default;
  explicit Names(std::vector<std::string> names) : names_(std::move(names)) {}
  void Add(std::string name) {
    if (std::ranges::find(names_, name) == names_.end()) names_.push_back(std::move(name));
  }
  [[nodiscard]] bool empty() const { return names_.empty(); }
  // "a, b and 3 more"
  [[nodiscard]] std::string Text() const {
    const size_t shown = std::min(names_.size(), kNamesShownMax);
    std::string text = fmt::format("{}", fmt::join(std::span(names_).first(shown), ", "));
    if (shown < names_.size()) text += fmt::format(" and {} more", names_.size() - shown);
    return text;
  }

 private:
  std::vector<std::string> names_;
};

// The first reason is the condition's; the message has all.
class Faults {
 public:
  void Add(std::string_view reason, std::string_view sentence) {
    if (reason_.empty()) reason_ = reason;
    if (!message_.empty()) message_ += ' ';
    message_ += sentence;
  }
  // Nothing when there are no names.
  void Add(std::string_view reason, std::string_view what, const Names& names,
           std::string_view advice) {
    if (!names.empty()) Add(reason, fmt::format("{}: {}; {}.", what, names.Text(), advice));
  }
  [[nodiscard]] Readiness Result() const {
    if (reason_.empty()) return Ready();
    return {.active = false, .reason = reason_, .message = message_};
  }

 private:
  std::string reason_;
  std::string message_;
};

struct FlavorNames {
  Names missing;
  Names missing_topologies;
};
FlavorNames NamesOfFlavors(const api::ClusterQueue& queue, const QueueReferences& references) {
  FlavorNames out;
  for (const api::ResourceGroup& group : queue.resource_groups) {
    for (const api::FlavorQuotas& quotas : group.flavors) {
      const auto flavor = references.topology_of.find(quotas.flavor);
      if (flavor == references.topology_of.end()) {
        out.missing.Add(quotas.flavor);
      } else if (!flavor->second.empty() && !references.topologies.contains(flavor->second)) {
        out.missing_topologies.Add(
            fmt::format("{} (of ResourceFlavor {})", flavor->second, quotas.flavor));
      }
    }
  }
  return out;
}

struct CheckNames {
  Names missing;
  Names unserved;  // Nobody ever said whether they are active.
  Names inactive;
};
CheckNames NamesOfChecks(const api::ClusterQueue& queue, const QueueReferences& references) {
  CheckNames out;
  for (const api::RequiredCheck& required : queue.checks) {
    const auto check = references.checks.find(required.name);
    if (check == references.checks.end()) {
      out.missing.Add(required.name);
    } else if (!check->second.told) {
      out.unserved.Add(fmt::format("{} (of {})", required.name, check->second.controller));
    } else if (!check->second.active) {
      out.inactive.Add(required.name);
    }
  }
  return out;
}

// The cohorts of the cycle that who follows the parents comes to, if there is one, from its first
// by name on.
Names CycleAbove(std::string_view cohort, const QueueReferences& references) {
  std::vector<std::string_view> path;
  std::set<std::string_view> met;
  while (!cohort.empty() && met.insert(cohort).second) {
    path.push_back(cohort);
    const auto parent = references.parents.find(cohort);
    cohort = parent == references.parents.end() ? std::string_view() : parent->second;
  }
  if (cohort.empty()) return Names();
  path.erase(path.begin(), std::ranges::find(path, cohort));
  std::ranges::rotate(path, std::ranges::min_element(path));
  return Names(std::vector<std::string>(path.begin(), path.end()));
}

void AddCycle(Faults& faults, std::string_view cohort, const QueueReferences& references) {
  faults.Add("CohortCycle", "Cohorts that are below themselves", CycleAbove(cohort, references),
             "change spec.parentName of one of them");
}

// What is wrong with each cohort that is below itself, by name. O(cohorts x log cohorts).
std::map<std::string_view, std::string> CyclesOf(const QueueReferences& references) {
  std::map<std::string_view, std::string> out;
  std::set<std::string_view> met;
  for (const auto& [name, parent] : references.parents) {
    std::vector<std::string_view> path;
    std::string_view cohort = name;
    while (!cohort.empty() && met.insert(cohort).second) {
      path.push_back(cohort);
      const auto at = references.parents.find(cohort);
      cohort = at == references.parents.end() ? std::string_view() : at->second;
    }
    // Else it ends, or leads to where others led.
    const auto begin = std::ranges::find(path, cohort);
    if (begin == path.end()) continue;
    Faults faults;
    AddCycle(faults, cohort, references);
    const std::string text =
        faults.Result().message + " Until then nobody gets quota of these, or of what is below.";
    for (auto at = begin; at != path.end(); ++at) out.emplace(*at, text);
  }
  return out;
}

// Whether that is news.
template <typename Value>
bool Put(std::map<std::string, Value, std::less<>>& values, const std::string& name, Value value) {
  const auto [it, fresh] = values.try_emplace(name, value);
  if (fresh || it->second == value) return fresh;
  it->second = std::move(value);
  return true;
}

// What readiness follows from.
void AddSpec(const api::ClusterQueue& queue, Hasher& hasher) {
  hasher.Add(queue.cohort).Add(queue.stop).Add(queue.meta.deletion_time.has_value());
  for (const api::ResourceGroup& group : queue.resource_groups) {
    for (const api::FlavorQuotas& quotas : group.flavors) hasher.Add(quotas.flavor);
  }
  for (const api::RequiredCheck& check : queue.checks) hasher.Add(check.name);
}
void AddSpec(const api::LocalQueue& queue, Hasher& hasher) {
  hasher.Add(queue.cluster_queue).Add(queue.stop);
}

template <typename Pump>
void WantIn(Pump& pump, std::string_view key, WorkloadCounts counts, QueueUsage usage) {
  auto* subject = pump.Find(key);
  if (subject == nullptr || (subject->counts == counts && subject->usage == usage)) return;
  subject->counts = counts;
  subject->usage = std::move(usage);
  pump.Reconsider(key);
}

// ---- Statuses --------------------------------------------------------------------------------

api::Condition ConditionOf(const Readiness& readiness, const api::ObjectMeta& meta) {
  return {.type = std::string(kActive),
          .status = readiness.active ? "True" : "False",
          .reason = readiness.reason,
          .message = readiness.message,
          .observed_generation = meta.generation};
}

bool SaysTheSame(const api::Condition& a, const api::Condition& b) {
  return a.status == b.status && a.reason == b.reason && a.message == b.message &&
         a.observed_generation == b.observed_generation;
}

template <typename Queue>
bool ConditionDiffers(const Queue& queue, const std::optional<Readiness>& readiness) {
  if (!readiness) return false;
  const api::Condition* said = Find(queue.conditions, kActive);
  return said == nullptr || !SaysTheSame(*said, ConditionOf(*readiness, queue.meta));
}

template <typename Queue>
bool CountsDiffer(const Queue& queue, const std::optional<WorkloadCounts>& counts) {
  const WorkloadCounts said{
      .pending = queue.pending, .reserving = queue.reserving, .admitted = queue.admitted};
  return counts && *counts != said;
}

template <typename Queue>
bool UsageDiffers(const Queue& queue, const QueueUsage& usage) {
  return queue.flavors_reserved != usage.reserving || queue.flavors_used != usage.admitted;
}

// `borrows`: whether the status has room for that.
std::string UsagesText(const api::FlavorUsages& usages, bool borrows) {
  if (usages.empty()) return "null";
  std::string text;
  for (const api::FlavorUsage& usage : usages) {
    std::string resources;
    for (const api::ResourceUsage& of : usage.resources) {
      const auto amount = [&](int64_t value) {
        return client::JsonString(translate::ResourceAmountText(of.resource, value));
      };
      resources += fmt::format(R"({}{{"name":{},"total":{})", resources.empty() ? "" : ",",
                               client::JsonString(of.resource), amount(of.total));
      if (borrows) resources += R"(,"borrowed":)" + amount(of.borrowed);
      resources += '}';
    }
    text += fmt::format(R"({}{{"name":{},"resources":[{}]}})", text.empty() ? "[" : ",",
                        client::JsonString(usage.flavor), resources);
  }
  return text + ']';
}

void AddUsages(const api::FlavorUsages& usages, Hasher& hasher) {
  hasher.Add(usages.size());
  for (const api::FlavorUsage& usage : usages) {
    hasher.Add(usage.flavor).Add(usage.resources.size());
    for (const api::ResourceUsage& of : usage.resources)
      hasher.Add(of.resource).Add(of.total).Add(of.borrowed);
  }
}

// All conditions, since a merge patch replaces the list: those of others as they were. What stays
// true keeps the time at which it became so.
std::string ConditionsText(const std::vector<api::Condition>& before, api::Condition ours,
                           Instant now) {
  const api::Condition* said = Find(before, kActive);
  const bool stays = said != nullptr && said->status == ours.status;
  ours.transition = stays ? said->transition : now;
  std::string text = "[";
  for (const api::Condition& condition : before) {
    if (condition.type != kActive) text += ConditionText(condition) + ',';
  }
  return text + ConditionText(ours) + ']';
}

}  // namespace

template <typename Queue>
StatusNeed Queues::Subject<Queue>::need() const {
  if (ConditionDiffers(queue, readiness)) return StatusNeed::kNow;
  const bool differs = CountsDiffer(queue, counts) || (counts && UsageDiffers(queue, usage));
  return differs ? StatusNeed::kSoon : StatusNeed::kNone;
}

template <typename Queue>
client::Request Queues::Subject<Queue>::WriteOf(Instant now) const {
  std::string body = StatusPatchStart(queue.meta);
  if (counts) {
    body += fmt::format(R"("pendingWorkloads":{},"reservingWorkloads":{},"admittedWorkloads":{})",
                        counts->pending, counts->reserving, counts->admitted);
  }
  if (counts && UsageDiffers(queue, usage)) {
    constexpr bool kBorrows = std::same_as<Queue, api::ClusterQueue>;
    body +=
        fmt::format(R"(,"flavorsReservation":{},"flavorsUsage":{})",
                    UsagesText(usage.reserving, kBorrows), UsagesText(usage.admitted, kBorrows));
  }
  if (ConditionDiffers(queue, readiness)) {
    if (counts) body += ',';
    body += R"("conditions":)" +
            ConditionsText(queue.conditions, ConditionOf(*readiness, queue.meta), now);
  }
  body += "}}";
  return client::Patch(ResourceOf(queue),
                       {.namespace_name = queue.meta.namespace_name,
                        .name = queue.meta.name,
                        .subresource = "status"},
                       client::PatchType::kMerge, std::move(body));
}

template <typename Queue>
void Queues::Subject<Queue>::AddTo(Hasher& hasher) const {
  hasher.Add(queue.meta.uid).AddVersion(queue.meta.resource_version).Add(queue.meta.generation);
  AddSpec(queue, hasher);
  hasher.Add(queue.pending).Add(queue.reserving).Add(queue.admitted);
  for (const api::FlavorUsages* usages :
       {&queue.flavors_reserved, &queue.flavors_used, &usage.reserving, &usage.admitted}) {
    AddUsages(*usages, hasher);
  }
  for (const api::Condition& c : queue.conditions) {
    hasher.Add(c.type).Add(c.status).Add(c.reason).Add(c.message).Add(c.transition.ns);
    hasher.Add(c.observed_generation);
  }
  hasher.Add(readiness.has_value());
  if (readiness) hasher.Add(readiness->active).Add(readiness->reason).Add(readiness->message);
  hasher.Add(counts.has_value());
  if (counts) hasher.Add(counts->pending).Add(counts->reserving).Add(counts->admitted);
}

// ---- Readiness -------------------------------------------------------------------------------

Readiness ReadinessOf(const api::ClusterQueue& queue, const QueueReferences& references) {
  if (queue.meta.deletion_time) {
    return {.active = false,
            .reason = "Terminating",
            .message =
                "The ClusterQueue is being deleted; nothing more is admitted, and it goes "
                "once no workload holds quota in it."};
  }
  const FlavorNames flavors = NamesOfFlavors(queue, references);
  const CheckNames checks = NamesOfChecks(queue, references);
  Faults faults;
  if (queue.stop != api::StopPolicy::kNone) faults.Add("Stopped", StopText(queue.stop));
  faults.Add("FlavorNotFound", "ResourceFlavors that don't exist", flavors.missing,
             "create them, or take them out of spec.resourceGroups");
  faults.Add("AdmissionCheckNotFound", "AdmissionChecks that don't exist", checks.missing,
             "create them, or take them out of spec.admissionChecksStrategy");
  faults.Add("AdmissionCheckInactive", "AdmissionChecks that no controller serves", checks.unserved,
             "start their controllers, or take them out of spec.admissionChecksStrategy");
  faults.Add("AdmissionCheckInactive", "AdmissionChecks that are not active", checks.inactive,
             "their conditions Active say why");
  faults.Add("TopologyNotFound", "Topologies that don't exist", flavors.missing_topologies,
             "create them");
  AddCycle(faults, queue.cohort, references);
  return faults.Result();
}

Readiness Queues::ReadinessOfLocal(const api::LocalQueue& queue) const {
  if (queue.stop != api::StopPolicy::kNone)
    return {.active = false, .reason = "Stopped", .message = StopText(queue.stop)};
  if (queue.cluster_queue.empty()) {
    return {.active = false,
            .reason = "ClusterQueueDoesNotExist",
            .message =
                "spec.clusterQueue is empty; set it to the ClusterQueue that workloads are "
                "to get quota of."};
  }
  const Subject<api::ClusterQueue>* target = cluster_queues_.Find(queue.cluster_queue);
  if (target == nullptr) {
    return {.active = false,
            .reason = "ClusterQueueDoesNotExist",
            .message = fmt::format("ClusterQueue {} does not exist; create it, or use another "
                                   "LocalQueue.",
                                   queue.cluster_queue)};
  }
  if (!target->readiness->active) {
    return {.active = false,
            .reason = "ClusterQueueIsInactive",
            .message = fmt::format("ClusterQueue {} is not active: {}", queue.cluster_queue,
                                   target->readiness->message)};
  }
  return Ready();
}

std::optional<Readiness> Queues::ReadinessNow(std::string_view cluster_queue) const {
  const Subject<api::ClusterQueue>* subject = cluster_queues_.Find(cluster_queue);
  if (subject == nullptr) return std::nullopt;
  return ReadinessOf(subject->queue, references_);
}

Readiness Queues::ReadinessOfCohort(std::string_view cohort) const {
  Faults faults;
  AddCycle(faults, cohort, references_);
  return faults.Result();
}

bool Queues::LacksChecks(const api::ClusterQueue& queue) const {
  const CheckNames checks = NamesOfChecks(queue, references_);
  return !checks.missing.empty() || !checks.unserved.empty() || !checks.inactive.empty();
}

bool BringsNodes(std::string_view controller) {
  return controller == "kueue.x-k8s.io/provisioning-request" ||
         controller == "kueue.x-k8s.io/multikueue";
}

bool Queues::CheckBringsNodes(std::string_view check) const {
  const auto known = references_.checks.find(check);
  return known == references_.checks.end() || BringsNodes(known->second.controller);
}

std::vector<api::ClusterQueue> Queues::QueuesAsking(std::string_view check) const {
  std::vector<api::ClusterQueue> asking;
  cluster_queues_.ForEach([&](const std::string& /*name*/, const auto& subject) {
    if (std::ranges::find(subject.queue.checks, check, &api::RequiredCheck::name) !=
        subject.queue.checks.end()) {
      asking.push_back(subject.queue);
    }
  });
  return asking;
}

void Queues::WorkOutAll() {
  stale_ = false;
  cluster_queues_.ForEach([&](const std::string& name, Subject<api::ClusterQueue>& subject) {
    subject.readiness = ReadinessOf(subject.queue, references_);
    cluster_queues_.Reconsider(name);
  });
  local_queues_.ForEach([&](const std::string& key, Subject<api::LocalQueue>& subject) {
    subject.readiness = ReadinessOfLocal(subject.queue);
    local_queues_.Reconsider(key);
  });
  WorkOutCycles();
}

// One that is over is told again when it comes back.
void Queues::WorkOutCycles() {
  std::map<std::string, std::string> told;
  for (const auto& [name, text] : CyclesOf(references_)) {
    const std::string& uid = cohort_uids_.find(name)->second;
    const auto before = cycles_told_.find(uid);
    if (before == cycles_told_.end() || before->second != text)
      cohort_faults_.push_back({.name = std::string(name), .uid = uid, .message = text});
    told.emplace(uid, text);
  }
  cycles_told_ = std::move(told);
}

std::vector<CohortFault> Queues::TakeCohortFaults() { return std::exchange(cohort_faults_, {}); }

// ---- What is observed ------------------------------------------------------------------------

void Queues::Observe(api::ClusterQueue queue) {
  const std::string name = queue.meta.name;
  Subject<api::ClusterQueue>& subject = cluster_queues_.At(name);
  subject.queue = std::move(queue);
  // LocalQueues tell of it.
  if (!stale_ && subject.readiness != ReadinessOf(subject.queue, references_)) stale_ = true;
  cluster_queues_.Reconsider(name);
}

void Queues::Observe(api::LocalQueue queue) {
  const std::string key = client::KnownSet::Key(queue.meta.namespace_name, queue.meta.name);
  Subject<api::LocalQueue>& subject = local_queues_.At(key);
  subject.queue = std::move(queue);
  if (!stale_) subject.readiness = ReadinessOfLocal(subject.queue);
  local_queues_.Reconsider(key);
}

void Queues::Observe(const api::Cohort& cohort) {
  stale_ |= Put(references_.parents, cohort.meta.name, cohort.parent);
  stale_ |= Put(cohort_uids_, cohort.meta.name, cohort.meta.uid);
}

void Queues::Observe(const api::ResourceFlavor& flavor) {
  stale_ |= Put(references_.topology_of, flavor.meta.name, flavor.topology);
}

void Queues::Observe(const api::Topology& topology) {
  stale_ |= references_.topologies.insert(topology.meta.name).second;
}

void Queues::Observe(const api::AdmissionCheck& check) {
  const api::Condition* active = Find(check.conditions, kActive);
  stale_ |= Put(references_.checks, check.meta.name,
                CheckFacts{.controller = check.controller,
                           .told = active != nullptr,
                           .active = active != nullptr && active->status == "True"});
}

void Queues::Forget(api::KindId kind, std::string_view namespace_name, std::string_view name) {
  stale_ |= kind != api::KindId::kLocalQueue;
  const std::string key(name);
  switch (kind) {
    case api::KindId::kClusterQueue:
      return cluster_queues_.Forget(name);
    case api::KindId::kLocalQueue:
      return local_queues_.Forget(client::KnownSet::Key(namespace_name, name));
    case api::KindId::kCohort:
      references_.parents.erase(key);
      cohort_uids_.erase(key);
      return;
    case api::KindId::kResourceFlavor:
      references_.topology_of.erase(key);
      return;
    case api::KindId::kTopology:
      references_.topologies.erase(key);
      return;
    case api::KindId::kAdmissionCheck:
      references_.checks.erase(key);
      return;
    default:
      CHECK(false);
  }
}

void Queues::Listed() { listed_ = true; }

const api::ClusterQueue* Queues::FindClusterQueue(std::string_view name) const {
  const Subject<api::ClusterQueue>* subject = cluster_queues_.Find(name);
  return subject == nullptr ? nullptr : &subject->queue;
}

void Queues::WantClusterQueue(std::string_view name, WorkloadCounts counts, QueueUsage usage) {
  WantIn(cluster_queues_, name, counts, std::move(usage));
}

void Queues::WantLocalQueue(std::string_view namespace_name, std::string_view name,
                            WorkloadCounts counts, QueueUsage usage) {
  WantIn(local_queues_, client::KnownSet::Key(namespace_name, name), counts, std::move(usage));
}

void Queues::Pump(Instant now, client::Client& client, env::Outbox& out) {
  if (!listed_) return;
  if (stale_) WorkOutAll();
  cluster_queues_.Pump(now, client, out);
  local_queues_.Pump(now, client, out);
}

bool Queues::OnCallDone(Instant now, const client::CallDone& done) {
  return cluster_queues_.OnCallDone(now, done) || local_queues_.OnCallDone(now, done);
}

Instant Queues::wake_at() const {
  if (!listed_) return Instant::Never();
  if (stale_) return Instant{};
  return std::min(cluster_queues_.wake_at(), local_queues_.wake_at());
}

StatusCounters Queues::counters() const {
  const StatusCounters& a = cluster_queues_.counters();
  const StatusCounters& b = local_queues_.counters();
  return {.writes = a.writes + b.writes,
          .conflicts = a.conflicts + b.conflicts,
          .failures = a.failures + b.failures};
}

void Queues::AddTo(Hasher& hasher) const {
  cluster_queues_.AddTo(hasher);
  local_queues_.AddTo(hasher);
  for (const auto* names : {&references_.parents, &references_.topology_of}) {
    hasher.Add(names->size());
    for (const auto& [name, other] : *names) hasher.Add(name).Add(other);
  }
  hasher.Add(references_.checks.size());
  for (const auto& [name, check] : references_.checks)
    hasher.Add(name).Add(check.controller).Add(check.told).Add(check.active);
  hasher.Add(references_.topologies.size());
  for (const std::string& name : references_.topologies) hasher.Add(name);
  hasher.Add(cohort_uids_.size()).Add(cycles_told_.size()).Add(cohort_faults_.size());
  for (const auto& [name, uid] : cohort_uids_) hasher.Add(name).Add(uid);
  for (const auto& [uid, text] : cycles_told_) hasher.Add(uid).Add(text);
  hasher.Add(listed_).Add(stale_);
}

}  // namespace berth::control
