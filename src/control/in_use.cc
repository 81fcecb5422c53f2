#include "control/in_use.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "control/status_text.h"

namespace berth::control {
namespace {

bool HasFinalizer(const api::ObjectMeta& meta) {
  return std::ranges::find(meta.finalizers, api::kInUseFinalizer) != meta.finalizers.end();
}

std::string KeyOf(api::KindId kind, std::string_view name) {
  return fmt::format("{}/{}", api::KindOf(kind).plural, name);
}

bool IsKept(api::KindId kind) {
  return kind == api::KindId::kClusterQueue || kind == api::KindId::kResourceFlavor ||
         kind == api::KindId::kTopology || kind == api::KindId::kAdmissionCheck;
}

}  // namespace

StatusNeed InUse::Subject::need() const {
  // What is being deleted can't get it any more.
  const bool wrong = head.deletion_time ? HasFinalizer(head) && !used : !HasFinalizer(head);
  return wrong ? StatusNeed::kNow : StatusNeed::kNone;
}

client::Request InUse::Subject::WriteOf(Instant /*now*/) const {
  std::vector<std::string> finalizers;
  for (const std::string& finalizer : head.finalizers) {
    if (finalizer != api::kInUseFinalizer) finalizers.push_back(client::JsonString(finalizer));
  }
  if (!head.deletion_time) finalizers.push_back(client::JsonString(api::kInUseFinalizer));
  return client::Patch(
      KueueResource(std::string(api::KindOf(kind).plural)), {.name = head.name},
      client::PatchType::kMerge,
      fmt::format(R"({{"metadata":{{"uid":{},"resourceVersion":{},"finalizers":[{}]}}}})",
                  client::JsonString(head.uid), client::JsonString(head.resource_version),
                  fmt::join(finalizers, ",")));
}

void InUse::Subject::AddTo(Hasher& hasher) const {
  hasher.Add(kind).Add(head.uid).AddVersion(head.resource_version);
  hasher.Add(head.deletion_time.has_value()).Add(used).Add(head.finalizers.size());
  for (const std::string& finalizer : head.finalizers) hasher.Add(finalizer);
}

// ---- What is observed ------------------------------------------------------------------------

void InUse::Note(api::KindId kind, const api::ObjectMeta& meta) {
  const std::string key = KeyOf(kind, meta.name);
  Subject& subject = objects_.At(key);
  if (subject.head.uid != meta.uid || !meta.deletion_time) {
    leaving_.erase(key);
    unasked_.erase(key);
    subject.used = true;
  }
  subject.kind = kind;
  subject.head = meta;
  if (meta.deletion_time && HasFinalizer(meta) && leaving_.insert(key).second) {
    stale_ = true;
    if (kind == api::KindId::kClusterQueue) unasked_.insert(key);
  }
  objects_.Reconsider(key);
}

void InUse::Observe(const api::ClusterQueue& queue) {
  Named named;
  for (const api::ResourceGroup& group : queue.resource_groups) {
    for (const api::FlavorQuotas& quotas : group.flavors) named.flavors.insert(quotas.flavor);
  }
  for (const api::RequiredCheck& check : queue.checks) named.checks.insert(check.name);
  Named& known = named_by_[queue.meta.name];
  stale_ |= known != named;
  known = std::move(named);
  Note(api::KindId::kClusterQueue, queue.meta);
}

void InUse::Observe(const api::ResourceFlavor& flavor) {
  std::string& known = topology_of_[flavor.meta.name];
  stale_ |= known != flavor.topology;
  known = flavor.topology;
  Note(api::KindId::kResourceFlavor, flavor.meta);
}

void InUse::Observe(const api::Topology& topology) { Note(api::KindId::kTopology, topology.meta); }

void InUse::Observe(const api::AdmissionCheck& check) {
  Note(api::KindId::kAdmissionCheck, check.meta);
}

void InUse::Forget(api::KindId kind, std::string_view name) {
  if (!IsKept(kind)) return;
  const std::string key = KeyOf(kind, name);
  objects_.Forget(key);
  leaving_.erase(key);
  unasked_.erase(key);
  const auto drop = [&](auto& from) {
    const auto at = from.find(name);
    if (at == from.end()) return;
    from.erase(at);
    stale_ = true;
  };
  if (kind == api::KindId::kClusterQueue) drop(named_by_);
  if (kind == api::KindId::kResourceFlavor) drop(topology_of_);
}

// ---- Who is used -----------------------------------------------------------------------------

bool InUse::IsBeingDeleted(api::KindId kind, std::string_view name) const {
  const Subject* subject = objects_.Find(KeyOf(kind, name));
  return subject != nullptr && subject->head.deletion_time.has_value();
}

bool InUse::KeepsQueues() const {
  return std::ranges::any_of(leaving_, [&](const std::string& key) {
    const Subject& subject = *objects_.Find(key);
    return subject.kind == api::KindId::kClusterQueue && subject.used;
  });
}

void InUse::SetHeld(const std::set<std::string, std::less<>>& cluster_queues) {
  unasked_.clear();
  for (const std::string& key : leaving_) {
    Subject& subject = *objects_.Find(key);
    if (subject.kind != api::KindId::kClusterQueue) continue;
    subject.used = cluster_queues.contains(subject.head.name);
    objects_.Reconsider(key);
  }
}

void InUse::WorkOut() {
  stale_ = false;
  if (leaving_.empty()) return;
  std::set<std::string> used;
  for (const auto& [queue, named] : named_by_) {
    for (const std::string& name : named.flavors)
      used.insert(KeyOf(api::KindId::kResourceFlavor, name));
    for (const std::string& name : named.checks)
      used.insert(KeyOf(api::KindId::kAdmissionCheck, name));
  }
  for (const auto& [flavor, topology] : topology_of_)
    used.insert(KeyOf(api::KindId::kTopology, topology));
  for (const std::string& key : leaving_) {
    Subject& subject = *objects_.Find(key);
    if (subject.kind == api::KindId::kClusterQueue) continue;
    subject.used = used.contains(key);
    objects_.Reconsider(key);
  }
}

void InUse::Pump(Instant now, client::Client& client, env::Outbox& out) {
  if (!listed_) return;
  if (stale_) WorkOut();
  objects_.Pump(now, client, out);
}

bool InUse::OnCallDone(Instant now, const client::CallDone& done) {
  return objects_.OnCallDone(now, done);
}

Instant InUse::wake_at() const {
  if (!listed_) return Instant::Never();
  return stale_ && !leaving_.empty() ? Instant{} : objects_.wake_at();
}

// Of the rest follows who leaves.
void InUse::AddTo(Hasher& hasher) const {
  objects_.AddTo(hasher);
  hasher.Add(unasked_.size());
  for (const std::string& key : unasked_) hasher.Add(key);
  hasher.Add(named_by_.size());
  for (const auto& [queue, named] : named_by_) {
    hasher.Add(queue);
    for (const auto* names : {&named.flavors, &named.checks}) {
      hasher.Add(names->size());
      for (const std::string& name : *names) hasher.Add(name);
    }
  }
  hasher.Add(topology_of_.size());
  for (const auto& [flavor, topology] : topology_of_) hasher.Add(flavor).Add(topology);
  hasher.Add(listed_).Add(stale_);
}

}  // namespace berth::control
