#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "controllers/controllers.h"

// Kinds that users define: their objects own and are owned as any others, so the collector has to
// see them. What there is to watch the CustomResourceDefinitions say, which are watched themselves.
namespace berth::controllers {
namespace {

// Whether the reference is to an object of the definition, by kind and group.
bool Names(const api::OwnerReference& owner, const DefinitionFacts& definition) {
  return owner.kind == definition.kind && definition.Means(owner.api_version, owner.kind);
}

}  // namespace

void Controllers::FollowDefinitions(Instant now, env::Outbox& out) {
  for (const std::string& defined : std::exchange(definitions_changed_, {})) {
    // It may be served in a version that some references name.
    const DefinitionFacts* definition = objects_.definition(defined);
    if (definition != nullptr && objects_.listed(defined)) EnqueueOwnedBy(now, *definition);
  }
  for (const std::string& defined : std::exchange(definitions_ended_, {}))
    ForgetDefined(now, defined);
  std::vector<std::string> left;
  for (const auto& [defined, followed] : followed_) {
    const Slot slot = objects_.Find(api::KindId::kCustomResourceDefinition, {}, defined);
    const bool gone = slot == kNoSlot || objects_.head(slot).uid != followed.uid;
    if (gone || objects_.definition(slot)->resource() != followed.resource) left.push_back(defined);
  }
  for (const std::string& defined : left) Unfollow(now, defined, out);
  for (const auto& [slot, definition] : objects_.definitions()) {
    const Head& head = objects_.head(slot);
    if (definition.native || definition.version.empty() || followed_.contains(head.name)) continue;
    const client::Resource resource = definition.resource();
    const client::WatchId watch =
        client_.Watch({.resource = resource, .may_be_absent = true, .metadata_only = true});
    watches_[watch] = {.kind = api::KindId::kCustomResource, .defined = head.name};
    followed_[head.name] = {.uid = head.uid, .resource = resource, .watch = watch};
  }
}

// The server lets no definition go before its objects; of one that was not served any more nobody
// has told.
void Controllers::ForgetDefined(Instant now, const std::string& defined) {
  for (const Slot object : objects_.AllDefined(defined)) {
    const std::string uid = objects_.head(object).uid;
    NoteGone(uid);
    Forget(now, uid);
  }
}

void Controllers::Unfollow(Instant now, const std::string& defined, env::Outbox& out) {
  const auto at = followed_.find(defined);
  client_.StopWatch(now, at->second.watch, out);
  watches_.erase(at->second.watch);
  objects_.NoteListed(defined, false);
  followed_.erase(at);
}

void Controllers::OnDefinedListed(Instant now, const std::string& defined,
                                  const client::WatchState& watch) {
  if (watch.absent() || objects_.listed(defined)) return;
  objects_.NoteListed(defined, true);
  // What the list-watch of another version knew.
  for (const Slot slot : objects_.AllDefined(defined)) {
    const Head& head = objects_.head(slot);
    const std::string key = client::KnownSet::Key(head.namespace_name, head.name);
    if (!watch.known().Contains(key, head.uid)) Forget(now, std::string(head.uid));
  }
  const DefinitionFacts* definition = objects_.definition(defined);
  if (definition == nullptr) return;
  // Of these owners nothing could be said until now.
  EnqueueOwnedBy(now, *definition);
}

void Controllers::EnqueueOwnedBy(Instant now, const DefinitionFacts& definition) {
  objects_.ForEach([&](const Head& head) {
    const auto names = [&](const api::OwnerReference& owner) { return Names(owner, definition); };
    if (std::ranges::none_of(head.owners, names)) return;
    Enqueue(now, {Part::kCollector, head.uid});
    if (head.kind == api::KindId::kPod) EnqueueBudgets(now, head, {.before = head});
  });
}

void Controllers::NoteGone(std::string_view uid) {
  const Slot owner = objects_.Find(uid);
  if (owner == kNoSlot) return;
  const Head& head = objects_.head(owner);
  const DefinitionFacts* definition = objects_.definition(head.defined);
  const auto followed = followed_.find(head.defined);
  const std::string read_as = followed == followed_.end()
                                  ? std::string()
                                  : fmt::format("{}/{}", followed->second.resource.group,
                                                followed->second.resource.version);
  // The definition may be gone before what is known of its objects.
  const auto means = [&](const api::OwnerReference& reference) {
    return reference.api_version == read_as ||
           (definition != nullptr && definition->Means(reference.api_version, reference.kind));
  };
  for (const Slot slot : objects_.DependentsOf(head)) {
    const Head& dependent = objects_.head(slot);
    for (const api::OwnerReference& reference : dependent.owners) {
      if (reference.uid == uid && reference.name == head.name && means(reference))
        absent_.insert(AbsenceKey(dependent.namespace_name, reference));
    }
  }
}

}  // namespace berth::controllers
