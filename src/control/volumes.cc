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

Volumes::Volumes(client::Client& client, BindWithin bind_within)
    : bind_within_(std::move(bind_within)),
      claims_watch_(client.Watch(
          {.resource = {.group = "", .version = "v1", .plural = "persistentvolumeclaims"}})),
      volumes_watch_(client.Watch(
          {.resource = {.group = "", .version = "v1", .plural = "persistentvolumes"}})),
      classes_watch_(client.Watch(
          {.resource = {.group = "storage.k8s.io", .version = "v1", .plural = "storageclasses"}})),
      csi_nodes_watch_(client.Watch(
          {.resource = {.group = "storage.k8s.io", .version = "v1", .plural = "csinodes"}})),
      attachments_watch_(client.Watch({.resource = {.group = "storage.k8s.io",
                                                    .version = "v1",
                                                    .plural = "volumeattachments"}})),
      drivers_watch_(client.Watch(
          {.resource = {.group = "storage.k8s.io", .version = "v1", .plural = "csidrivers"}})),
      capacities_watch_(client.Watch(
          {.resource = {
               .group = "storage.k8s.io", .version = "v1", .plural = "csistoragecapacities"}})) {}

bool Volumes::Watches(client::WatchId watch) const {
  return watch == claims_watch_ || watch == volumes_watch_ || watch == classes_watch_ ||
         IsOfEngine(watch);
}

bool Volumes::IsOfEngine(client::WatchId watch) const {
  return watch == csi_nodes_watch_ || watch == attachments_watch_ || watch == drivers_watch_ ||
         watch == capacities_watch_;
}

std::optional<Json> Volumes::Read(const client::ObjectEvent& event) {
  if (event.change == client::Change::kDeleted) return std::nullopt;
  Result<Json> object = codec::ParseJson(event.object.view());
  return object ? std::optional(*std::move(object)) : std::nullopt;
}

std::optional<model::StorageFact> Volumes::FactOf(const client::ObjectEvent& event,
                                                  const std::optional<Json>& object,
                                                  model::Vocabulary& vocabulary) {
  const std::string_view plural = event.watch == claims_watch_        ? "persistentvolumeclaims"
                                  : event.watch == volumes_watch_     ? "persistentvolumes"
                                  : event.watch == classes_watch_     ? "storageclasses"
                                  : event.watch == csi_nodes_watch_   ? "csinodes"
                                  : event.watch == drivers_watch_     ? "csidrivers"
                                  : event.watch == attachments_watch_ ? "volumeattachments"
                                                                      : "csistoragecapacities";
  const std::string name = event.namespace_name.empty() ? event.name : KeyOf(event);
  std::optional<model::StorageFact> fact;
  if (event.change == client::Change::kDeleted) {
    fact = translate::StorageGone(plural, name, vocabulary);
  } else if (object) {
    fact = translate::StorageFactOf(plural, *object, vocabulary);
  }
  if (!fact || assumed_.empty()) return fact;
  if (event.watch != claims_watch_ && event.watch != volumes_watch_) return fact;
  return Overlaid({.volume = event.watch == volumes_watch_, .name = name}, *std::move(fact));
}

// ---- Observing ---------------------------------------------------------------------------------

void Volumes::Observe(const client::ObjectEvent& event, const std::optional<Json>& object) {
  changed_ = true;
  if (event.watch == claims_watch_) {
    const std::string key = KeyOf(event);
    if (object) return ObserveClaim(key, *object);
    const auto at = claims_.find(key);
    if (event.change == client::Change::kDeleted && at != claims_.end() &&
        at->second.uid == event.uid) {
      claims_.erase(at);
    }
    return;
  }
  if (event.watch == volumes_watch_) {
    if (object) return ObserveVolume(event.name, *object);
    return ForgetVolume(event.name);
  }
  classes_.erase(event.name);
  if (object) ObserveClass(event.name, *object);
}

void Volumes::ObserveClaim(const std::string& key, const Json& claim) {
  Claim facts{.uid = std::string(TextAt(claim, "metadata.uid")),
              .version = std::string(TextAt(claim, "metadata.resourceVersion")),
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
  claims_[key] = std::move(facts);
}

void Volumes::ObserveVolume(const std::string& name, const Json& volume) {
  ForgetVolume(name);
  Volume& facts = volumes_[name];
  facts.uid = TextAt(volume, "metadata.uid");
  facts.version = TextAt(volume, "metadata.resourceVersion");
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
  Demand demand;
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

void Volumes::Add(const std::string& key, Demand demand, bool placed, Demands& demands) {
  if (!demands.waits.empty()) return;
  if (!placed) demands.waits = std::move(demand.waits);
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
  Honour(spec);
  if (!terms.empty() && !nobody) spec.required_node_affinity = std::move(terms);
  return {};
}

void Volumes::Honour(api::PodSpec& spec) {
  std::erase_if(spec.unsupported, [](const std::string& path) {
    return path == kClaimVolume || path == kEphemeralVolume;
  });
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

// ---- What is taken for so ----------------------------------------------------------------------

Volumes::Key Volumes::KeyOfWant(const Held::Want& want) {
  return want.volume.empty() ? Key{.volume = false, .name = want.claim}
                             : Key{.volume = true, .name = want.volume};
}

model::StorageFact Volumes::With(const Assumed& assumed) {
  model::StorageFact fact = assumed.observed;
  if (auto* volume = std::get_if<model::Volume>(&fact.row); volume != nullptr) {
    volume->claim = assumed.name;
    volume->claim_uid = assumed.claim_uid;
  } else {
    std::get<model::VolumeClaim>(fact.row).selected_node = assumed.name;
  }
  return fact;
}

bool Volumes::Assume(const Key& key, const std::string& pod, const Assumed& assumed) {
  const auto [at, fresh] = assumed_.try_emplace(key, assumed);
  at->second.pods.insert(pod);
  if (fresh) facts_.push_back(With(at->second));
  return !fresh;
}

void Volumes::EndAssumed(const Held& held) {
  for (const Held::Want& want : held.wants) {
    const auto at = assumed_.find(KeyOfWant(want));
    if (at == assumed_.end() || at->second.pods.erase(held.attempt.pod.uid) == 0) continue;
    EndIfNobodys(at->first);
  }
}

// A write that is on its way may still come true.
void Volumes::EndIfNobodys(const Key& key) {
  const auto at = assumed_.find(key);
  if (at == assumed_.end() || !at->second.pods.empty() || IsAsked(key)) return;
  facts_.push_back(std::move(at->second.observed));
  assumed_.erase(at);
}

model::StorageFact Volumes::Overlaid(const Key& key, model::StorageFact fact) {
  const auto at = assumed_.find(key);
  if (at == assumed_.end()) return fact;
  Assumed& assumed = at->second;
  const auto* volume = std::get_if<model::Volume>(&fact.row);
  const auto* claim = std::get_if<model::VolumeClaim>(&fact.row);
  const bool says = volume != nullptr ? volume->claim.valid()
                                      : claim->selected_node.valid() || claim->volume.valid();
  if (fact.gone || says) {
    assumed_.erase(at);
    return fact;
  }
  assumed.observed = std::move(fact);
  return With(assumed);
}

// ---- Bindings that wait for volumes ------------------------------------------------------------

void Volumes::Hold(Binder::Attempt attempt, const Given& given, const model::State& state,
                   const Sending& sending) {
  const std::string uid = attempt.pod.uid;
  const auto [at, fresh] = held_.try_emplace(uid);
  CHECK(fresh);
  Held& held = at->second;
  held.attempt = std::move(attempt);
  const auto within = bind_within_.find(held.attempt.scheduler_name);
  held.within = within != bind_within_.end() ? within->second : kBindWithin;
  held.until = sending.now + held.within;
  changed_ = true;
  for (const auto& [claim, volume] : given) {
    const Held::Want want{
        .claim = std::string(state.NameOf(claim)),
        .volume = volume.valid() ? std::string(state.NameOf(volume)) : std::string()};
    held.wants.push_back(want);
    const Key key = KeyOfWant(want);
    const model::VolumeClaim& row = *state.volumes().claim(claim);
    Assumed assumed{.observed = {.name = claim, .row = row},
                    .name = state.nodes().name(state.FindNode(held.attempt.node)),
                    .claim_uid = row.uid};
    if (volume.valid()) {
      const model::Volume& its = *state.volumes().volume(volume);
      assumed.observed = {.name = volume, .row = its};
      assumed.name = claim;
      if (its.claim == claim && its.claim_uid == row.uid) continue;
    } else if (row.selected_node.valid()) {
      continue;
    }
    if (!Assume(key, uid, assumed)) Write(want, held, sending);
  }
}

// What has changed since it was seen is not written over.
void Volumes::Write(const Held::Want& want, Held& held, const Sending& sending) {
  const auto claim = claims_.find(want.claim);
  const auto volume = volumes_.find(want.volume);
  if (claim == claims_.end() || (!want.volume.empty() && volume == volumes_.end())) return;
  const size_t slash = want.claim.find('/');
  const std::string namespace_name = want.claim.substr(0, slash);
  const std::string name = want.claim.substr(slash + 1);
  const auto head = [](const auto& object) {
    return fmt::format(R"("uid":{},"resourceVersion":{})", client::JsonString(object.uid),
                       client::JsonString(object.version));
  };
  client::Request request;
  if (want.volume.empty()) {
    request = client::Patch(
        {.group = "", .version = "v1", .plural = "persistentvolumeclaims"},
        {.namespace_name = namespace_name, .name = name}, client::PatchType::kMerge,
        fmt::format(R"({{"metadata":{{{},"annotations":{{"{}":{}}}}}}})", head(claim->second),
                    api::kSelectedNode, client::JsonString(held.attempt.node)));
  } else {
    // Of a volume that was meant for the claim by whoever made it, it isn't said that it was bound
    // by us.
    const std::string bound =
        volume->second.claim == want.claim
            ? std::string()
            : fmt::format(R"(,"annotations":{{"{}":"yes"}})", api::kBoundByController);
    request = client::Patch(
        {.group = "", .version = "v1", .plural = "persistentvolumes"}, {.name = want.volume},
        client::PatchType::kMerge,
        fmt::format(R"({{"metadata":{{{}{}}},"spec":{{"claimRef":{{"apiVersion":"v1",)"
                    R"("kind":"PersistentVolumeClaim","namespace":{},"name":{},{}}}}}}})",
                    head(volume->second), bound, client::JsonString(namespace_name),
                    client::JsonString(name), head(claim->second)));
  }
  request.priority = client::Priority::kHigh;
  const uint64_t call = sending.client.Call(sending.now, std::move(request), sending.out).value;
  calls_.emplace(call, Call{.uid = held.attempt.pod.uid, .key = KeyOfWant(want)});
  ++asked_[KeyOfWant(want)];
  held.calls.insert(call);
}

std::optional<client::WatchId> Volumes::WatchOf(env::CallId call) const {
  const auto at = calls_.find(call.value);
  if (at == calls_.end()) return std::nullopt;
  return at->second.key.volume ? volumes_watch_ : claims_watch_;
}

void Volumes::OnCallDone(const client::CallDone& done) {
  changed_ = true;
  const auto at = calls_.find(done.call.value);
  CHECK(at != calls_.end());
  const Call call = std::move(at->second);
  calls_.erase(at);
  if (const auto asked = asked_.find(call.key); --asked->second == 0) asked_.erase(asked);
  EndIfNobodys(call.key);
  const auto held = held_.find(call.uid);
  // Of a binding that was given up meanwhile, and maybe decided anew.
  if (held == held_.end() || held->second.calls.erase(done.call.value) == 0) return;
  if (done.outcome == client::Outcome::kDone) return;
  const client::ApiStatus status = client::StatusOf(done.response);
  held->second.failed = true;
  held->second.code = status.code;
  held->second.message = client::WhyOf(done);
}

std::optional<bool> Volumes::IsThere(const Claim& claim, std::string_view node,
                                     const model::State& state) const {
  const auto volume = volumes_.find(claim.volume);
  if (!claim.bound || volume == volumes_.end()) return std::nullopt;
  return MayBeUsedOn(volume->second.places, node, state);
}

bool Volumes::IsReady(const Held& held, const model::State& state) const {
  return std::ranges::all_of(held.wants, [&](const Held::Want& want) {
    const auto claim = claims_.find(want.claim);
    return claim != claims_.end() &&
           IsThere(claim->second, held.attempt.node, state).value_or(false);
  });
}

// A claim is gone, got a volume elsewhere, or was taken off the node: there no volume can be made.
// Or the volume that it was to get is gone, or another's.
std::string Volumes::WhyLost(const Held::Want& want, std::string_view node,
                             const model::State& state) const {
  const auto claim = claims_.find(want.claim);
  const std::string_view name = std::string_view(want.claim).substr(want.claim.find('/') + 1);
  if (claim == claims_.end() || claim->second.deleted)
    return fmt::format(R"(failed to check binding: persistentvolumeclaim "{}" not found)", name);
  if (!IsThere(claim->second, node, state).value_or(true))
    return fmt::format(
        R"(pv "{}" node affinity doesn't match node "{}": no matching NodeSelectorTerms)",
        claim->second.volume, node);
  if (claim->second.bound || IsAsked(KeyOfWant(want))) return {};
  if (want.volume.empty()) {
    if (claim->second.selected_node == node) return {};
    return fmt::format(R"(provisioning failed for PVC "{}")", name);
  }
  const auto volume = volumes_.find(want.volume);
  if (volume != volumes_.end() && volume->second.claim == want.claim &&
      volume->second.claim_uid == claim->second.uid) {
    return {};
  }
  return fmt::format(R"(ClaimRef got reset for pv "{}")", want.volume);
}

std::string Volumes::WhyLost(Instant now, const Held& held, const model::State& state) const {
  if (held.failed) return held.message;
  for (const Held::Want& want : held.wants) {
    const std::string why = WhyLost(want, held.attempt.node, state);
    if (!why.empty()) return fmt::format("binding volumes: {}", why);
  }
  if (now < held.until) return {};
  return fmt::format(
      "binding volumes: context deadline exceeded: claims were not bound within {} s",
      held.within.seconds());
}

Volumes::Ended Volumes::Take(Instant now, const model::State& state) {
  Ended ended;
  if (!std::exchange(changed_, false) && now < wake_at()) return ended;
  for (auto at = held_.begin(); at != held_.end();) {
    Held& held = at->second;
    const bool ready = IsReady(held, state);
    std::string why = ready ? std::string() : WhyLost(now, held, state);
    if (!ready && why.empty()) {
      ++at;
      continue;
    }
    EndAssumed(held);
    if (ready) {
      ended.ready.push_back(std::move(held.attempt));
    } else {
      ended.refused.push_back(
          {.attempt = std::move(held.attempt), .code = held.code, .message = std::move(why)});
    }
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
  EndAssumed(at->second);
  Binder::Attempt attempt = std::move(at->second.attempt);
  held_.erase(at);
  return attempt;
}

std::vector<Binder::Attempt> Volumes::WithdrawNode(std::string_view node) {
  std::vector<std::string> pods;
  for (const auto& [uid, held] : held_) {
    if (held.attempt.node == node) pods.push_back(uid);
  }
  return WithdrawThese(pods);
}

std::vector<Binder::Attempt> Volumes::WithdrawAll() {
  std::vector<std::string> pods;
  for (const auto& [uid, held] : held_) pods.push_back(uid);
  return WithdrawThese(pods);
}

std::vector<Binder::Attempt> Volumes::WithdrawThese(const std::vector<std::string>& pods) {
  std::vector<Binder::Attempt> attempts;
  for (const std::string& uid : pods) attempts.push_back(*Withdraw(uid));
  return attempts;
}

// What claims, volumes and classes say follows from what the client holds, which is hashed there;
// versions are not, but for their order.
void Volumes::AddTo(Hasher& hasher) const {
  hasher.Add(claims_.size());
  for (const auto& [key, claim] : claims_) {
    hasher.Add(key).Add(claim.uid).AddVersion(claim.version).Add(claim.volume);
    hasher.Add(claim.class_name).Add(claim.selected_node).Add(claim.bound).Add(claim.deleted);
  }
  hasher.Add(volumes_.size());
  for (const auto& [name, volume] : volumes_) {
    hasher.Add(name).AddVersion(volume.version).Add(volume.places.size()).Add(volume.free);
    hasher.Add(volume.claim).Add(volume.claim_uid);
  }
  hasher.Add(classes_.size());
  for (const auto& [name, facts] : classes_)
    hasher.Add(name).Add(facts.provisioner).Add(facts.waits).Add(facts.topologies.size());
  hasher.Add(held_.size());
  for (const auto& [uid, held] : held_) {
    hasher.Add(uid).Add(held.attempt.node).Add(held.until.ns).Add(held.failed);
    hasher.Add(held.code).Add(held.wants.size());
    for (const Held::Want& want : held.wants) hasher.Add(want.claim).Add(want.volume);
  }
  hasher.Add(assumed_.size());
  for (const auto& [key, assumed] : assumed_) {
    hasher.Add(key.volume).Add(key.name).Add(assumed.claim_uid);
    hasher.Add(assumed.name.value).Add(assumed.pods.size());
  }
  hasher.Add(changed_);
  hasher.AddEach(calls_, [](Hasher& one, const auto& entry) {
    const auto& [id, call] = entry;
    one.AddCall(id).Add(call.uid).Add(call.key.volume).Add(call.key.name);
  });
}

}  // namespace berth::control
