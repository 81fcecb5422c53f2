#include "translate/default_spread.h"

#include <fmt/format.h>

#include <algorithm>

namespace berth::translate {
namespace {

// The later one's values stand, as upstream merges; of Services that select one pod they are equal.
void Merge(api::StringMap& into, const api::StringMap& from) {
  for (const auto& [key, value] : from) {
    const auto at = std::ranges::lower_bound(into, key, {}, &api::StringMap::value_type::first);
    if (at != into.end() && at->first == key) {
      at->second = value;
    } else {
      into.emplace(at, key, value);
    }
  }
}

}  // namespace

bool DefaultSpread::SetService(std::string_view namespace_name, std::string_view name,
                               api::StringMap selector) {
  auto of = services_.find(namespace_name);
  if (selector.empty()) {
    if (of == services_.end()) return false;
    const auto at = of->second.find(name);
    if (at == of->second.end()) return false;
    of->second.erase(at);
    if (of->second.empty()) services_.erase(of);
    return true;
  }
  if (of == services_.end()) of = services_.try_emplace(std::string(namespace_name)).first;
  Service& service = of->second[std::string(name)];
  if (service.selector == selector) return false;
  service.query = api::QueryOf(selector);
  service.selector = std::move(selector);
  return true;
}

bool DefaultSpread::SetOwner(SpreadOwner kind, std::string_view namespace_name,
                             std::string_view name, std::optional<api::LabelSelector> selector) {
  const std::pair key(kind, fmt::format("{}/{}", namespace_name, name));
  if (!selector.has_value()) return owners_.erase(key) > 0;
  const auto [at, fresh] = owners_.try_emplace(key);
  if (!fresh && at->second == *selector) return false;
  at->second = *std::move(selector);
  return true;
}

std::optional<std::pair<SpreadOwner, std::string>> SpreadOwnerOf(const api::ObjectMeta& pod) {
  const auto owner = std::ranges::find(pod.owners, true, &api::OwnerReference::controller);
  if (owner == pod.owners.end()) return std::nullopt;
  const auto of = [&](SpreadOwner kind) {
    return std::pair(kind, fmt::format("{}/{}", pod.namespace_name, owner->name));
  };
  if (owner->api_version == "v1" && owner->kind == "ReplicationController")
    return of(SpreadOwner::kReplicationController);
  if (owner->api_version != "apps/v1") return std::nullopt;
  if (owner->kind == "ReplicaSet") return of(SpreadOwner::kReplicaSet);
  if (owner->kind == "StatefulSet") return of(SpreadOwner::kStatefulSet);
  return std::nullopt;
}

std::optional<api::LabelSelector> DefaultSpread::SelectorFor(const api::Pod& pod) const {
  api::LabelSelector selector;
  if (const auto of = services_.find(pod.meta.namespace_name); of != services_.end()) {
    for (const auto& [name, service] : of->second) {
      if (service.query.Matches(pod.meta.labels)) Merge(selector.match_labels, service.selector);
    }
  }
  if (const auto owner = SpreadOwnerOf(pod.meta); owner.has_value()) {
    if (const auto at = owners_.find(*owner); at != owners_.end()) {
      if (owner->first == SpreadOwner::kReplicationController) {
        Merge(selector.match_labels, at->second.match_labels);
      } else {
        for (const auto& [key, value] : at->second.match_labels)
          selector.match_expressions.push_back({.key = key, .op = "In", .values = {value}});
        const auto& asked = at->second.match_expressions;
        selector.match_expressions.insert(selector.match_expressions.end(), asked.begin(),
                                          asked.end());
      }
    }
  }
  if (selector.match_labels.empty() && selector.match_expressions.empty()) return std::nullopt;
  return selector;
}

void DefaultSpread::AddTo(Hasher& hasher) const {
  const auto add = [&](const api::StringMap& map) {
    hasher.Add(map.size());
    for (const auto& [key, value] : map) hasher.Add(key).Add(value);
  };
  hasher.Add(services_.size()).Add(owners_.size());
  for (const auto& [of, services] : services_) {
    hasher.Add(of).Add(services.size());
    for (const auto& [name, service] : services) {
      hasher.Add(name);
      add(service.selector);
    }
  }
  for (const auto& [key, selector] : owners_) {
    hasher.Add(key.first).Add(key.second);
    add(selector.match_labels);
    hasher.Add(selector.match_expressions.size());
    for (const api::Requirement& r : selector.match_expressions) {
      hasher.Add(r.key).Add(r.op).Add(r.values.size());
      for (const std::string& value : r.values) hasher.Add(value);
    }
  }
}

}  // namespace berth::translate
