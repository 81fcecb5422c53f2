#include "control/spread_defaults.h"

#include <fmt/format.h>

#include "api/json.h"
#include "api/object.h"
#include "codec/json.h"
#include "control/event_key.h"

namespace berth::control {
namespace {

client::WatchOptions Watched(std::string group, std::string plural) {
  return {.resource = {.group = std::move(group), .version = "v1", .plural = std::move(plural)}};
}

api::StringMap SelectorOfService(std::string_view json) {
  const Result<api::Json> service = codec::ParseJson(json);
  return service ? api::StringMapAt(*service, "spec.selector") : api::StringMap();
}

// Nothing where it can't be read.
template <typename T>
std::optional<api::LabelSelector> SelectorIn(const Result<T>& read) {
  return read ? std::optional(read->selector) : std::nullopt;
}

}  // namespace

SpreadDefaults::SpreadDefaults(client::Client& client)
    : services_watch_(client.Watch(Watched("", "services"))),
      controllers_watch_(client.Watch(Watched("", "replicationcontrollers"))),
      replica_sets_watch_(client.Watch(Watched("apps", "replicasets"))),
      stateful_sets_watch_(client.Watch(Watched("apps", "statefulsets"))) {}

bool SpreadDefaults::Watches(client::WatchId watch) const {
  return watch == services_watch_ || watch == controllers_watch_ || watch == replica_sets_watch_ ||
         watch == stateful_sets_watch_;
}

std::vector<client::ObjectEvent> SpreadDefaults::Observe(const client::ObjectEvent& event,
                                                         codec::Decoder& decoder) {
  using translate::SpreadOwner;
  const bool gone = event.change == client::Change::kDeleted;
  const std::string_view json = event.object.view();
  if (event.watch == services_watch_) {
    const bool other = rules_.SetService(event.namespace_name, event.name,
                                         gone ? api::StringMap() : SelectorOfService(json));
    return other ? PodsOf(event.namespace_name) : std::vector<client::ObjectEvent>();
  }
  SpreadOwner kind = SpreadOwner::kReplicaSet;
  std::optional<api::LabelSelector> selector;
  if (event.watch == controllers_watch_) {
    kind = SpreadOwner::kReplicationController;
    if (!gone) selector = SelectorIn(decoder.ReplicationController(json));
  } else if (event.watch == stateful_sets_watch_) {
    kind = SpreadOwner::kStatefulSet;
    if (!gone) selector = SelectorIn(decoder.StatefulSet(json));
  } else if (!gone) {
    selector = SelectorIn(decoder.ReplicaSet(json));
  }
  const bool other = rules_.SetOwner(kind, event.namespace_name, event.name, std::move(selector));
  return other ? PodsOf({kind, KeyOf(event)}) : std::vector<client::ObjectEvent>();
}

std::vector<client::ObjectEvent> SpreadDefaults::PodsOf(const std::string& namespace_name) const {
  std::vector<client::ObjectEvent> events;
  const std::string prefix = fmt::format("{}/", namespace_name);
  for (auto at = pods_.lower_bound(prefix); at != pods_.end() && at->first.starts_with(prefix);
       ++at)
    events.push_back(at->second.event);
  return events;
}

std::vector<client::ObjectEvent> SpreadDefaults::PodsOf(const Owner& owner) const {
  std::vector<client::ObjectEvent> events;
  const auto keys = by_owner_.find(owner);
  if (keys == by_owner_.end()) return events;
  for (const std::string& key : keys->second) events.push_back(pods_.at(key).event);
  return events;
}

std::optional<api::LabelSelector> SpreadDefaults::SelectorFor(const client::ObjectEvent& event,
                                                              const api::Pod& pod) {
  Forget(event);
  const std::string key = KeyOf(event);
  std::optional<Owner> owner = translate::SpreadOwnerOf(pod.meta);
  if (owner.has_value()) by_owner_[*owner].insert(key);
  pods_.insert_or_assign(key, Pod{.event = event, .owner = std::move(owner)});
  return rules_.SelectorFor(pod);
}

void SpreadDefaults::Forget(const client::ObjectEvent& pod) {
  const auto at = pods_.find(KeyOf(pod));
  if (at == pods_.end()) return;
  if (at->second.owner.has_value()) {
    const auto keys = by_owner_.find(*at->second.owner);
    keys->second.erase(at->first);
    if (keys->second.empty()) by_owner_.erase(keys);
  }
  pods_.erase(at);
}

// The pods kept are those that were told of.
void SpreadDefaults::AddTo(Hasher& hasher) const {
  rules_.AddTo(hasher);
  hasher.Add(pods_.size());
  for (const auto& [key, pod] : pods_) hasher.Add(key).Add(pod.event.uid);
}

}  // namespace berth::control
