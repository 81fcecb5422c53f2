#include "control/volumes.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "api/node_match.h"
#include "api/object.h"
#include "api/owners.h"
#include "api/quantity.h"
#include "api/storage_class.h"
#include "api/well_known.h"
#include "base/check.h"
#include "client/known_set.h"
#include "codec/json.h"
#include "control/event_key.h"
#include "translate/volume_facts.h"

namespace berth::control {
namespace {

using api::AnnotationOf;
using api::ArrayAt;
using api::Json;
using api::RequirementsAt;
using api::TextAt;
using api::TextsAt;

constexpr std::string_view kClaimVolume = "spec.volumes.persistentVolumeClaim";
constexpr std::string_view kEphemeralVolume = "spec.volumes.ephemeral";
constexpr std::string_view kNodeNameField = "metadata.name";

std::string ControllerUidOf(const Json& object) {
  const Json* controller = api::ControllerOf(object);
  return controller == nullptr ? std::string() : std::string(TextAt(*controller, "uid"));
}

void Append(std::vector<api::Requirement>& list, const std::vector<api::Requirement>& more) {
  list.insert(list.end(), more.begin(), more.end());
}

// Who fits one term of each; of none, everybody does.
std::vector<api::NodeSelectorTerm> Both(const std::vector<api::NodeSelectorTerm>& a,
                                        const std::vector<api::NodeSelectorTerm>& b) {
  if (a.empty()) return b;
  if (b.empty()) return a;
  std::vector<api::NodeSelectorTerm> both;
  for (const api::NodeSelectorTerm& one : a) {
    for (const api::NodeSelectorTerm& other : b) {
      // A term without requirements fits nobody.
      if (one == api::NodeSelectorTerm{} || other == api::NodeSelectorTerm{}) continue;
      api::NodeSelectorTerm& term = both.emplace_back(one);
      Append(term.match_expressions, other.match_expressions);
      Append(term.match_fields, other.match_fields);
    }
  }
  if (both.empty()) both.emplace_back();
  return both;
}

bool MayBeUsedOn(const std::vector<api::NodeSelectorTerm>& places, std::string_view node,
                 const model::State& state) {
  if (places.empty()) return true;
  const model::NodeId id = state.FindNode(node);
  if (!id.valid()) return false;
  api::Node facts;
  facts.meta.name = node;
  for (const model::Label& label : state.labels().View(state.nodes().labels(id)))
    facts.meta.labels.emplace_back(state.NameOf(label.key), state.NameOf(label.value));
  std::ranges::sort(facts.meta.labels);
  return api::MatchesAny(places, facts);
}

int64_t BytesAt(const Json& object, api::JsonPath path) {
  return api::ParseScaled(TextAt(object, path), 0).value_or(0);
}

// Of terms that are one requirement each, of one label, one comes: local volumes name a host each.
void AddTerms(const std::vector<api::NodeSelectorTerm>& more,
              std::vector<api::NodeSelectorTerm>& terms) {
  const auto is_plain = [](const api::NodeSelectorTerm& term) {
    return term.match_fields.empty() && term.match_expressions.size() == 1 &&
           term.match_expressions[0].op == "In";
  };
  for (const api::NodeSelectorTerm& term : more) {
    const auto alike = std::ranges::find_if(terms, [&](const api::NodeSelectorTerm& known) {
      return is_plain(known) && is_plain(term) &&
             known.match_expressions[0].key == term.match_expressions[0].key;
    });
    if (alike == terms.end()) {
      terms.push_back(term);
      continue;
    }
    std::vector<std::string>& values = alike->match_expressions[0].values;
    for (const std::string& value : term.match_expressions[0].values) {
      if (std::ranges::find(values, value) == values.end()) values.push_back(value);
    }
  }
}

}  // namespace

Volumes::Volumes(client::Client& client)
    : claims_watch_(client.Watch(
          {.resource = {.group = "", .version = "v1", .plural = "persistentvolumeclaims"}})),
      volumes_watch_(client.Watch(
          {.resource = {.group = "", .version = "v1", .plural = "persistentvolumes"}})),
      classes_watch_(client.Watch(
          {.resource = {.group = "storage.k8s.io", .version = "v1", .plural = "storageclasses"}})),
      csi_nodes_watch_(client.Watch(
          {.resource = {.group = "storage.k8s.io", .version = "v1", .plural = "csinodes"}})),
      attachments_watch_(client.Watch(
          {.resource = {
               .group = "storage.k8s.io", .version = "v1", .plural = "volumeattachments"}})) {}

bool Volumes::Watches(client::WatchId watch) const {
  return watch == claims_watch_ || watch == volumes_watch_ || watch == classes_watch_ ||
         IsOfNodes(watch);
}

bool Volumes::IsOfNodes(client::WatchId watch) const {
  return watch == csi_nodes_watch_ || watch == attachments_watch_;
}

std::optional<Json> Volumes::Read(const client::ObjectEvent& event) {
  if (event.change == client::Change::kDeleted) return std::nullopt;
  Result<Json> object = codec::ParseJson(event.object.view());
  return object ? std::optional(*std::move(object)) : std::nullopt;
}

std::optional<model::StorageFact> Volumes::FactOf(const client::ObjectEvent& event,
                                                  const std::optional<Json>& object,
                                                  model::Vocabulary& vocabulary) const {
  const std::string_view plural = event.watch == claims_watch_      ? "persistentvolumeclaims"
                                  : event.watch == volumes_watch_   ? "persistentvolumes"
                                  : event.watch == classes_watch_   ? "storageclasses"
                                  : event.watch == csi_nodes_watch_ ? "csinodes"
                                                                    : "volumeattachments";
  if (event.change == client::Change::kDeleted)
    return translate::StorageGone(plural, event.namespace_name.empty() ? event.name : KeyOf(event),
                                  vocabulary);
  if (!object) return std::nullopt;
  return translate::StorageFactOf(plural, *object, vocabulary);
}

// ---- Observing ---------------------------------------------------------------------------------

std::vector<client::ObjectEvent> Volumes::Observe(const client::ObjectEvent& event,
                                                  const std::optional<Json>& object) {
  const bool gone = event.change == client::Change::kDeleted;
  if (event.watch == claims_watch_) {
    const std::string key = KeyOf(event);
    if (object) {
      ObserveClaim(key, *object);
    } else if (!gone) {
      return UsersOf(key);
    } else if (const auto at = claims_.find(key);
               at != claims_.end() && at->second.uid == event.uid) {
      claims_.erase(at);
    }
    return UsersOf(key);
  }
  std::vector<client::ObjectEvent> users;
  const auto add = [&](const std::string& claim) {
    for (client::ObjectEvent& pod : UsersOf(claim)) users.push_back(std::move(pod));
  };
  if (event.watch == volumes_watch_) {
    std::set<std::string> classes;
    std::set<std::string> named;
    const auto note = [&] {
      const auto known = volumes_.find(event.name);
      if (known == volumes_.end()) return;
      if (known->second.free && IsPrepared(known->second.class_name))
        classes.insert(known->second.class_name);
      if (!known->second.claim.empty()) named.insert(known->second.claim);
    };
    note();
    ForgetVolume(event.name);
    if (object) ObserveVolume(event.name, *object);
    note();
    for (const auto& [claim, pods] : users_) {
      const auto at = claims_.find(claim);
      if (at == claims_.end()) continue;
      const bool may_get_it =
          !at->second.bound && (classes.contains(at->second.class_name) || named.contains(claim));
      if (at->second.volume == event.name || may_get_it) add(claim);
    }
    return users;
  }
  classes_.erase(event.name);
  if (object) ObserveClass(event.name, *object);
  for (const auto& [claim, pods] : users_) {
    const auto at = claims_.find(claim);
    if (at != claims_.end() && !at->second.bound && at->second.class_name == event.name) add(claim);
  }
  return users;
}

std::vector<client::ObjectEvent> Volumes::UsersOf(const std::string& claim) const {
  std::vector<client::ObjectEvent> events;
  const auto at = users_.find(claim);
  if (at == users_.end()) return events;
  for (const std::string& pod : at->second) events.push_back(pods_.at(pod).event);
  return events;
}

void Volumes::ObserveClaim(const std::string& key, const Json& claim) {
  Claim facts{.uid = std::string(TextAt(claim, "metadata.uid")),
              .version = std::string(TextAt(claim, "metadata.resourceVersion")),
              .controller = ControllerUidOf(claim),
              .volume = std::string(TextAt(claim, "spec.volumeName")),
              .class_name = std::string(api::StorageClassNameOf(claim).value_or("")),
              .selected_node = std::string(AnnotationOf(claim, api::kSelectedNode)),
              // Whatever it says: only the controller that binds writes "yes".
              .bound = !AnnotationOf(claim, api::kBindCompleted).empty() &&
                       TextAt(claim, "status.phase") != "Lost",
              .deleted = !TextAt(claim, "metadata.deletionTimestamp").empty(),
              .request = BytesAt(claim, "spec.resources.requests.storage"),
              .modes = TextsAt(claim, "spec.accessModes"),
              .volume_mode = std::string(TextAt(claim, "spec.volumeMode")),
              .selector = {}};
  if (const Json* selector = api::FindPath(claim, "spec.selector"); selector != nullptr) {
    Result<api::LabelQuery> query = api::QueryOf(api::LabelSelectorOf(*selector));
    facts.selector = query ? std::move(*query) : api::LabelQuery{.nothing = true};
  }
  const auto known = claims_.find(key);
  // The answer to a write may have come before the watch told of what was before it.
  if (known != claims_.end() && known->second.uid == facts.uid &&
      client::Version::Parse(facts.version)
          .OlderThan(client::Version::Parse(known->second.version))) {
    return;
  }
  claims_[key] = std::move(facts);
}

void Volumes::ObserveVolume(const std::string& name, const Json& volume) {
  Volume& facts = volumes_[name];
  for (const Json& term : ArrayAt(volume, "spec.nodeAffinity.required.nodeSelectorTerms")) {
    facts.places.push_back({.match_expressions = RequirementsAt(term, "matchExpressions"),
                            .match_fields = RequirementsAt(term, "matchFields")});
  }
  if (!TextAt(volume, "metadata.deletionTimestamp").empty()) return;
  if (const Json* claim = api::FindPath(volume, "spec.claimRef"); claim != nullptr) {
    facts.claim = client::KnownSet::Key(TextAt(*claim, "namespace"), TextAt(*claim, "name"));
    facts.claim_uid = TextAt(*claim, "uid");
    meant_[facts.claim].insert(name);
  } else {
    facts.free = TextAt(volume, "status.phase") == "Available";
  }
  facts.class_name = api::StorageClassNameOf(volume).value_or("");
  facts.capacity = BytesAt(volume, "spec.capacity.storage");
  facts.modes = TextsAt(volume, "spec.accessModes");
  facts.volume_mode = TextAt(volume, "spec.volumeMode");
  for (const auto& [key, value] : api::ObjectAt(volume, "metadata.labels")) {
    if (value.is_string()) facts.labels.emplace_back(key, value.as_string());
  }
}

void Volumes::ForgetVolume(const std::string& name) {
  const auto known = volumes_.find(name);
  if (known == volumes_.end()) return;
  if (const auto meant = meant_.find(known->second.claim); meant != meant_.end()) {
    meant->second.erase(name);
    if (meant->second.empty()) meant_.erase(meant);
  }
  volumes_.erase(known);
}

bool Volumes::IsPrepared(const std::string& class_name) const {
  const auto found = classes_.find(class_name);
  return found != classes_.end() && found->second.waits &&
         found->second.provisioner.starts_with("kubernetes.io/");
}

void Volumes::ObserveClass(const std::string& name, const Json& object) {
  StorageClass& facts = classes_[name];
  facts.provisioner = TextAt(object, "provisioner");
  facts.waits = api::WaitsForFirstConsumer(object);
  for (const Json& topology : ArrayAt(object, "allowedTopologies")) {
    api::NodeSelectorTerm& term = facts.topologies.emplace_back();
    for (const Json& item : ArrayAt(topology, "matchLabelExpressions")) {
      term.match_expressions.push_back(
          {.key = std::string(TextAt(item, "key")), .op = "In", .values = TextsAt(item, "values")});
    }
  }
}

void Volumes::Keep(const client::ObjectEvent& event, const api::Pod& pod) {
  const std::string key = KeyOf(event);
  if (const auto known = pods_.find(key); known != pods_.end()) Forget(known->second.event);
  Pod& row = pods_[key];
  row.event = event;
  for (const std::string& claim : pod.spec->claims)
    row.claims.push_back(client::KnownSet::Key(event.namespace_name, claim));
  for (const std::string& volume : pod.spec->ephemeral_volumes)
    row.claims.push_back(client::KnownSet::Key(event.namespace_name, event.name + "-" + volume));
  row.ephemeral_count = pod.spec->ephemeral_volumes.size();
  for (const std::string& claim : row.claims) users_[claim].insert(key);
}

void Volumes::Forget(const client::ObjectEvent& pod) {
  const auto known = pods_.find(KeyOf(pod));
  if (known == pods_.end() || known->second.event.uid != pod.uid) return;
  for (const std::string& claim : known->second.claims) {
    const auto users = users_.find(claim);
    if (users == users_.end()) continue;
    users->second.erase(known->first);
    if (users->second.empty()) users_.erase(users);
  }
  // The event may be the one that is kept.
  unplaced_.erase(pod.uid);
  pods_.erase(known);
}

// ---- What claims ask for -----------------------------------------------------------------------

// The binder takes one that names the claim before all others; of several anyone.
std::optional<Volumes::Terms> Volumes::MeantPlaces(const std::string& key,
                                                   const Claim& claim) const {
  const auto meant = meant_.find(key);
  if (meant == meant_.end()) return std::nullopt;
  std::optional<Terms> places;
  for (const std::string& name : meant->second) {
    const Volume& volume = volumes_.find(name)->second;
    if (!volume.claim_uid.empty() && volume.claim_uid != claim.uid) continue;
    if (!Suits(volume, claim)) continue;
    if (volume.places.empty()) return Terms();
    if (!places) places.emplace();
    AddTerms(volume.places, *places);
  }
  return places;
}

Volumes::Demand Volumes::DemandOf(const std::string& key) const {
  const std::string name = key.substr(key.find('/') + 1);
  const auto at = claims_.find(key);
  if (at == claims_.end())
    return {.waits = fmt::format("persistentvolumeclaim \"{}\" not found", name)};
  const Claim& claim = at->second;
  if (claim.deleted)
    return {.waits = fmt::format("persistentvolumeclaim \"{}\" is being deleted", name)};
  if (claim.bound) {
    const auto volume = volumes_.find(claim.volume);
    if (volume != volumes_.end()) return {.terms = volume->second.places};
    return {.waits = fmt::format("node(s) unavailable due to one or more pvc(s) bound to "
                                 "non-existent pv(s) (claim \"{}\", volume \"{}\")",
                                 name, claim.volume)};
  }
  const auto found = classes_.find(claim.class_name);
  // Of a claim with a node and a volume that are not each other's yet the node counts.
  const bool unplaced = claim.volume.empty() || !claim.selected_node.empty();
  if (found == classes_.end() || !found->second.waits || !unplaced) {
    return {.waits = fmt::format("pod has unbound immediate PersistentVolumeClaims (claim \"{}\")",
                                 name)};
  }
  Demand demand{.terms = {}, .unplaced = true, .waits = {}};
  if (std::optional<Terms> places = MeantPlaces(key, claim)) {
    // On whichever node the claim was put before.
    demand.terms = std::move(*places);
    return demand;
  }
  if (!IsPrepared(claim.class_name)) {
    demand.terms = found->second.topologies;
  } else if (claim.selected_node.empty()) {
    demand.prepared = true;
    if (std::ranges::none_of(volumes_,
                             [&](const auto& entry) { return Fits(entry.second, claim); })) {
      demand.waits = fmt::format(
          "node(s) didn't find available persistent volumes to bind (claim \"{}\", and no "
          "volume is made for class \"{}\")",
          name, claim.class_name);
    }
  }
  if (!claim.selected_node.empty()) {
    api::NodeSelectorTerm term;
    term.match_fields = {
        {.key = std::string(kNodeNameField), .op = "In", .values = {claim.selected_node}}};
    demand.terms = Both(demand.terms, {term});
  }
  return demand;
}

Volumes::Demand Volumes::OwnDemandOf(const std::string& key, const client::ObjectEvent& pod) const {
  const std::string name = key.substr(key.find('/') + 1);
  const auto at = claims_.find(key);
  if (at == claims_.end()) {
    return {.waits = fmt::format("waiting for ephemeral volume controller to create the "
                                 "persistentvolumeclaim \"{}\"",
                                 name)};
  }
  if (at->second.controller != pod.uid) {
    return {.waits = fmt::format("PVC {0}/{1} was not created for pod {0}/{2} (pod is not owner)",
                                 pod.namespace_name, name, pod.name)};
  }
  return DemandOf(key);
}

void Volumes::Add(const std::string& key, Demand demand, bool placed, Demands& demands) {
  if (!demands.waits.empty()) return;
  if (!placed) demands.waits = std::move(demand.waits);
  if (demand.unplaced) demands.unplaced.push_back(key);
  const bool known = std::ranges::find(demands.prepared, key) != demands.prepared.end();
  if (demand.prepared && !known) demands.prepared.push_back(key);
  demands.terms = Both(demands.terms, demand.terms);
}

bool Volumes::Suits(const Volume& volume, const Claim& claim) {
  const auto has = [&](const std::string& mode) {
    return std::ranges::find(volume.modes, mode) != volume.modes.end();
  };
  return volume.class_name == claim.class_name && volume.capacity >= claim.request &&
         volume.volume_mode == claim.volume_mode && std::ranges::all_of(claim.modes, has);
}

bool Volumes::Fits(const Volume& volume, const Claim& claim) {
  return volume.free && Suits(volume, claim) &&
         (!claim.selector.has_value() || claim.selector->Matches(volume.labels));
}

// Whether each claim can have one of the volumes of that place or of everywhere: those that ask for
// least first, each the smallest.
bool Volumes::ArePlacedAt(const std::vector<std::string>& claims, const Terms& place) const {
  std::vector<const Claim*> wanting;
  for (const std::string& key : claims) wanting.push_back(&claims_.find(key)->second);
  std::ranges::stable_sort(wanting, {}, &Claim::request);
  std::set<std::string_view> taken;
  return std::ranges::all_of(wanting, [&](const Claim* claim) {
    const std::pair<const std::string, Volume>* best = nullptr;
    for (const auto& entry : volumes_) {
      const Volume& volume = entry.second;
      if ((!volume.places.empty() && volume.places != place) || taken.contains(entry.first) ||
          !Fits(volume, *claim)) {
        continue;
      }
      if (best == nullptr || volume.capacity < best->second.capacity) best = &entry;
    }
    return best != nullptr && taken.insert(best->first).second;
  });
}

void Volumes::AddPlaces(bool placed, Demands& demands) const {
  if (placed || demands.prepared.empty() || !demands.waits.empty()) return;
  std::vector<Terms> places;
  for (const auto& [name, volume] : volumes_) {
    const bool fits = std::ranges::any_of(demands.prepared, [&](const std::string& key) {
      return Fits(volume, claims_.find(key)->second);
    });
    if (fits && !volume.places.empty() && std::ranges::find(places, volume.places) == places.end())
      places.push_back(volume.places);
  }
  if (ArePlacedAt(demands.prepared, {})) return;
  Terms any;
  for (const Terms& place : places) {
    if (ArePlacedAt(demands.prepared, place)) AddTerms(place, any);
  }
  if (any.empty()) {
    demands.waits = fmt::format(
        "node(s) didn't find available persistent volumes to bind (none has one for each of {} "
        "claims)",
        demands.prepared.size());
  }
  demands.terms = Both(demands.terms, any);
}

std::string Volumes::Narrow(Demands demands, bool placed, api::PodSpec& spec) const {
  const bool nobody =
      spec.required_node_affinity.has_value() && spec.required_node_affinity->empty();
  AddPlaces(placed, demands);
  if (!demands.waits.empty()) return demands.waits;
  Terms terms = Both(spec.required_node_affinity.value_or(Terms()), demands.terms);
  if (terms.size() > kTermsMax && !placed) {
    return fmt::format("its volumes' node affinity has more than {} terms with its own", kTermsMax);
  }
  std::erase_if(spec.unsupported, [](const std::string& path) {
    return path == kClaimVolume || path == kEphemeralVolume;
  });
  spec.volumes_placed = true;
  if (!terms.empty() && !nobody) spec.required_node_affinity = std::move(terms);
  return {};
}

std::string Volumes::Resolve(const client::ObjectEvent& event, bool placed, api::Pod& pod) {
  if (pod.spec->claims.empty() && pod.spec->ephemeral_volumes.empty()) return {};
  Keep(event, pod);
  Demands demands;
  const Pod& row = pods_.at(KeyOf(event));
  for (size_t i = 0; i < row.claims.size(); ++i) {
    const std::string& key = row.claims[i];
    const bool own = i + row.ephemeral_count >= row.claims.size();
    Add(key, own ? OwnDemandOf(key, event) : DemandOf(key), placed, demands);
  }
  std::vector<std::string> unplaced = demands.unplaced;
  std::string waits = Narrow(std::move(demands), placed, pod.spec.Edit());
  if (waits.empty() && !unplaced.empty()) unplaced_[event.uid] = std::move(unplaced);
  return waits;
}

std::string Volumes::Resolve(std::string_view namespace_name, bool placed,
                             api::PodSpec& spec) const {
  if (!spec.ephemeral_volumes.empty() && !placed) {
    return "where the volumes of its ephemeral claims will be is not known before its pods are "
           "there";
  }
  Demands demands;
  for (const std::string& claim : spec.claims) {
    const std::string key = client::KnownSet::Key(namespace_name, claim);
    Add(key, DemandOf(key), placed, demands);
  }
  return Narrow(std::move(demands), placed, spec);
}

bool Volumes::Concerns(const client::ObjectEvent& event, std::string_view namespace_name,
                       const std::vector<std::string>& claims) const {
  if (event.watch != claims_watch_) return true;
  return event.namespace_name == namespace_name &&
         std::ranges::find(claims, event.name) != claims.end();
}

// ---- Bindings that wait for volumes ------------------------------------------------------------

void Volumes::Hold(Instant now, Binder::Attempt attempt, client::Client& client, env::Outbox& out) {
  const std::string uid = attempt.pod.uid;
  CHECK(NeedsNode(uid));
  CHECK(!held_.contains(uid));
  Held& held = held_[uid];
  held.claims = unplaced_.at(uid);
  held.until = now + kBindWithin;
  for (const std::string& key : held.claims) {
    const auto claim = claims_.find(key);
    if (claim == claims_.end() || claim->second.selected_node == attempt.node) continue;
    const size_t slash = key.find('/');
    client::Request request = client::Patch(
        {.group = "", .version = "v1", .plural = "persistentvolumeclaims"},
        {.namespace_name = key.substr(0, slash), .name = key.substr(slash + 1)},
        client::PatchType::kMerge,
        fmt::format(R"({{"metadata":{{"uid":{},"resourceVersion":{},"annotations":{{"{}":{}}}}}}})",
                    client::JsonString(claim->second.uid),
                    client::JsonString(claim->second.version), api::kSelectedNode,
                    client::JsonString(attempt.node)));
    request.priority = client::Priority::kHigh;
    calls_.emplace(client.Call(now, std::move(request), out).value, Call{.uid = uid, .claim = key});
  }
  held.attempt = std::move(attempt);
}

bool Volumes::OnCallDone(const client::CallDone& done) {
  const auto at = calls_.find(done.call.value);
  if (at == calls_.end()) return false;
  const Call call = std::move(at->second);
  calls_.erase(at);
  if (done.outcome == client::Outcome::kDone) {
    if (const Result<Json> claim = codec::ParseJson(done.response.body.view()))
      ObserveClaim(call.claim, *claim);
  } else if (const auto held = held_.find(call.uid); held != held_.end()) {
    held->second.failed = true;
  }
  return true;
}

std::optional<bool> Volumes::IsThere(const Claim& claim, std::string_view node,
                                     const model::State& state) const {
  const auto volume = volumes_.find(claim.volume);
  if (!claim.bound || volume == volumes_.end()) return std::nullopt;
  return MayBeUsedOn(volume->second.places, node, state);
}

bool Volumes::IsReady(const Held& held, const model::State& state) const {
  return std::ranges::all_of(held.claims, [&](const std::string& key) {
    const auto claim = claims_.find(key);
    return claim != claims_.end() &&
           IsThere(claim->second, held.attempt.node, state).value_or(false);
  });
}

// A claim is gone, got a volume elsewhere, or was taken off the node: there no volume can be made.
bool Volumes::IsLost(const Held& held, const model::State& state) const {
  const bool asked = std::ranges::any_of(
      calls_, [&](const auto& call) { return call.second.uid == held.attempt.pod.uid; });
  return held.failed || std::ranges::any_of(held.claims, [&](const std::string& key) {
           const auto claim = claims_.find(key);
           if (claim == claims_.end() || claim->second.deleted ||
               !IsThere(claim->second, held.attempt.node, state).value_or(true)) {
             return true;
           }
           return !asked && !claim->second.bound &&
                  claim->second.selected_node != held.attempt.node;
         });
}

Volumes::Ended Volumes::Take(Instant now, const model::State& state) {
  Ended ended;
  for (auto at = held_.begin(); at != held_.end();) {
    const bool ready = IsReady(at->second, state);
    if (!ready && !IsLost(at->second, state) && now < at->second.until) {
      ++at;
      continue;
    }
    (ready ? ended.ready : ended.given_up).push_back(std::move(at->second.attempt));
    at = held_.erase(at);
  }
  return ended;
}

Instant Volumes::wake_at() const {
  Instant at = Instant::Never();
  for (const auto& [uid, held] : held_) at = std::min(at, held.until);
  return at;
}

std::optional<Binder::Attempt> Volumes::Withdraw(std::string_view uid) {
  const auto at = held_.find(uid);
  if (at == held_.end()) return std::nullopt;
  Binder::Attempt attempt = std::move(at->second.attempt);
  held_.erase(at);
  return attempt;
}

std::vector<Binder::Attempt> Volumes::WithdrawNode(std::string_view node) {
  std::vector<Binder::Attempt> attempts;
  for (auto at = held_.begin(); at != held_.end();) {
    if (at->second.attempt.node != node) {
      ++at;
      continue;
    }
    attempts.push_back(std::move(at->second.attempt));
    at = held_.erase(at);
  }
  return attempts;
}

std::vector<Binder::Attempt> Volumes::WithdrawAll() {
  std::vector<Binder::Attempt> attempts;
  for (auto& [uid, held] : held_) attempts.push_back(std::move(held.attempt));
  held_.clear();
  return attempts;
}

// What claims, volumes and classes say follows from what the client holds, which is hashed there;
// versions are not, but for their order.
void Volumes::AddTo(Hasher& hasher) const {
  hasher.Add(claims_.size());
  for (const auto& [key, claim] : claims_) {
    hasher.Add(key).Add(claim.uid).AddVersion(claim.version).Add(claim.volume);
    hasher.Add(claim.controller);
    hasher.Add(claim.class_name).Add(claim.selected_node).Add(claim.bound).Add(claim.deleted);
  }
  hasher.Add(volumes_.size());
  for (const auto& [name, volume] : volumes_) {
    hasher.Add(name).Add(volume.places.size()).Add(volume.free);
    hasher.Add(volume.claim).Add(volume.claim_uid);
  }
  hasher.Add(classes_.size());
  for (const auto& [name, facts] : classes_)
    hasher.Add(name).Add(facts.provisioner).Add(facts.waits).Add(facts.topologies.size());
  hasher.Add(pods_.size());
  for (const auto& [key, pod] : pods_) hasher.Add(key).Add(pod.event.uid);
  hasher.Add(unplaced_.size());
  for (const auto& [uid, claims] : unplaced_) hasher.Add(uid).Add(claims.size());
  hasher.Add(held_.size());
  for (const auto& [uid, held] : held_)
    hasher.Add(uid).Add(held.attempt.node).Add(held.until.ns).Add(held.failed);
  hasher.Add(calls_.size());
  for (const auto& [id, call] : calls_) hasher.AddCall(id).Add(call.uid).Add(call.claim);
}

}  // namespace berth::control
