#include "kueue_lines.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/selector.h"
#include "api/timestamp.h"
#include "control/quota.h"
#include "control/workload_conditions.h"
#include "cycle/engine.h"
#include "reading.h"
#include "translate/workload_facts.h"

// Goal: workloads wait where Kueue has them wait, in its order, and are tried again when it tries
// them again. Method: objects come, change and go as facts of the engine. Where a case says how a
// look at a workload ended, the queues are made such that the engine's own look ends so. A look
// takes no time here: what comes during it in Kueue comes after it.
namespace berth::kueue {
namespace {

using Keys = std::map<std::string, std::set<std::string>>;  // Of workloads by ClusterQueue.
using Strings = std::vector<std::string>;

// What there is quota of, besides what a case says; who asks for nothing else is given it.
constexpr std::string_view kElsewhere = "berth.test/elsewhere";
constexpr std::string_view kFlavor = "elsewhere";
constexpr std::string_view kQueue = "cq";                 // Of cases that name none.
constexpr std::string_view kLetIn = "berth.test/let-in";  // A label of namespaces.
constexpr std::string_view kTree = "berth";               // Of queues that share quota.
constexpr std::string_view kFaster = "faster";            // Who is served before another.
constexpr std::string_view kHolder = "holder";            // Of quota that another needs.
constexpr int64_t kPlenty = 9;

std::string TextOf(const Keys& keys) {
  std::string text;
  for (const auto& [queue, workloads] : keys) {
    for (const std::string& workload : workloads) text += fmt::format(" {}:{}", queue, workload);
  }
  return text.empty() ? " none" : text;
}

std::string TextOf(const Strings& keys) {
  std::string text;
  for (const std::string& key : keys) text += ' ' + key;
  return text.empty() ? " none" : text;
}

template <typename T>
void ExpectKeys(std::string_view what, const T& got, const T& want) {
  if (got != want)
    throw Mismatch(fmt::format("{}\n  want{}\n  got {}", what, TextOf(want), TextOf(got)));
}

Strings StringsIn(const Json* json) {
  Strings out;
  if (json == nullptr || !json->is_array()) return out;
  for (const Json& item : json->as_array()) out.emplace_back(item.as_string());
  return out;
}

std::string LocalQueueOf(const JsonObject& workload) {
  return StringAt(ObjectAt(workload, "metadata"), "namespace") + "/" +
         StringAt(ObjectAt(workload, "spec"), "queueName");
}

// A look at each head a cycle, as upstream has it.
cycle::Engine::Options OneRound() {
  cycle::Engine::Options options;
  options.attempts_per_cycle_max = 1;
  return options;
}

// Quota of something by flavor, in order; each of the queue itself.
struct Scanned {
  std::string resource;
  std::vector<int64_t> quotas;
};
std::string FlavorAt(size_t index) { return fmt::format("scanned-{}", index); }

// With these flavors, which no other group of it has.
JsonObject GroupOf(const Scanned& scanned) {
  JsonArray flavors;
  for (size_t i = 0; i < scanned.quotas.size(); ++i) {
    const JsonObject quota = {{"name", scanned.resource},
                              {"nominalQuota", std::to_string(scanned.quotas[i])}};
    flavors.push_back(JsonObject{{"name", FlavorAt(i)}, {"resources", {quota}}});
  }
  return {{"coveredResources", {scanned.resource}}, {"flavors", flavors}};
}

class Lines {
 public:
  explicit Lines(const Case& test) : Lines(test, cycle::Engine::Options{}) {}
  Lines(const Case& test, const cycle::Engine::Options& options)
      : engine_(options),
        now_(test.now.empty() ? Instant{} : api::ParseTimestamp(test.now).value()) {
    engine_.Apply(model::FlavorUpsert{.name = std::string(kFlavor), .uid = "f"});
    for (const JsonObject* from : {&test.fixtures, &test.input}) {
      for (const Json& json : ArrayAt(*from, "namespaces")) Put(json.as_object());
      for (const Json& json : ArrayAt(*from, "cohorts")) Put(json.as_object());
      for (const Json& json : ArrayAt(*from, "clusterQueues")) Put(json.as_object());
      for (const Json& json : ArrayAt(*from, "localQueues")) Put(json.as_object());
      for (const Json& json : ArrayAt(*from, "apiObjects")) Put(json.as_object());
    }
  }
  // With one ClusterQueue, where all workloads wait.
  static Lines OfOneQueue(const Case& test) { return OfOneQueue(test, cycle::Engine::Options{}); }
  static Lines OfOneQueue(const Case& test, const cycle::Engine::Options& options) {
    Lines lines(test, options);
    lines.one_queue_ = true;
    JsonObject queue = ObjectAt(test.fixtures, "clusterQueue");
    if (queue.empty()) {
      JsonObject spec = ObjectAt(test.options, "clusterQueue");
      if (test.options.contains("queueingStrategy"))
        spec["queueingStrategy"] = test.options.at("queueingStrategy");
      spec["namespaceSelector"] = JsonObject{};
      queue = {{"kind", "ClusterQueue"}, {"metadata", {{"name", kQueue}}}, {"spec", spec}};
    }
    lines.Put(queue);
    return lines;
  }

  void Put(const JsonObject& object) {
    const std::string kind = StringAt(object, "kind");
    if (kind == "Namespace") return PutNamespace(object);
    if (kind == "Workload") return PutWorkload(object);
    if (kind == "LocalQueue") return PutLocalQueue(object);
    if (kind == "ClusterQueue") return PutClusterQueue(object);
    if (kind != "Cohort") throw std::runtime_error("unknown kind " + kind);
    engine_.Apply(
        translate::QueueFacts(ViewOf(&codec::Decoder::Cohort, object), engine_.vocabulary()));
  }
  void DeleteClusterQueue(const std::string& name) {
    engine_.Apply(model::QueueRemove{.kind = QueueKind::kClusterQueue, .name = name});
    cluster_queues_.erase(name);
  }
  void DeleteLocalQueue(const std::string& key) {
    engine_.Apply(model::LocalQueueRemove{.uid = "lq-" + key});
    local_queues_.erase(key);
  }
  void DeleteWorkload(const std::string& key) {
    engine_.Apply(model::WorkloadRemove{.uid = UidOf(key)});
    workloads_.erase(key);
    in_flight_.erase(key);
  }

  // The pods of those that come from now on ask for what they say alone, so that a look gives
  // quota; else each asks for something of its own that there is none of.
  void AskForNothingMore() { plain_ = true; }
  // Those that come from now on ask for the same that there is none of.
  void AskFor(std::string resource) { own_ = std::move(resource); }

  // A look at the workload ended for that reason; false: it waits already, or does not then.
  bool Requeue(const JsonObject& object, const std::string& reason) {
    const std::string key = KeyOf(object);
    if (Waits(key) && !in_flight_.contains(key)) return false;
    in_flight_.erase(key);
    if (reason == "NamespaceMismatch") {
      Put(object);
      JsonObject queue = cluster_queues_.at(ClusterQueueOf(key));
      queue["spec"].as_object()["namespaceSelector"] =
          JsonObject{{"matchLabels", JsonObject{{kLetIn, "true"}}}};
      Put(queue);
    } else if (reason == "FailedAfterNomination") {
      FailToWrite(object);
    } else if (reason == "PendingPreemption" || reason == "PreemptionNoCandidates") {
      LookBesideHolder(object, reason == "PendingPreemption");
    } else if (reason.empty() || reason == "NoFit") {
      Look(object);
    } else if (reason == "PreemptionFailed") {
      LookBesideHolder(object, /*evicts=*/true);
      if (!IsPromised(key)) throw Mismatch(key + " evicts nobody");
      engine_.Apply(
          model::EvictionRefused{.uid = UidOf(fmt::format("{}/{}", kTree, kHolder)), .at = now_});
    } else {
      throw NotApplicable("MultiKueue, concurrent admission");
    }
    if (late_flushes_.erase(key) > 0) FlushAll();
    return Waits(key) && cluster_queues_.contains(ClusterQueueOf(key));
  }
  // It is looked at, and there is no quota for it; those that nobody looked at come after that.
  void Look(const JsonObject& object) {
    const std::string key = KeyOf(object);
    std::vector<JsonObject> others;
    for (const auto& [other, json] : workloads_) {
      if (other != key && engine_.admissions().IsToBeTried(engine_.state(), IdOf(other)))
        others.push_back(json);
    }
    for (const JsonObject& other : others)
      engine_.Apply(model::WorkloadRemove{.uid = UidOf(KeyOf(other))});
    Put(object);
    engine_.Cycle(now_);
    for (const JsonObject& other : others) Put(other);
  }
  // It would get what another of its tree is served before it: the quota of a flavor, behind which
  // there are `more`. REQUIRES: OneRound().
  void LookBesideFaster(const JsonObject& object, size_t before, size_t more) {
    const std::string key = KeyOf(object);
    Scanned scanned{.resource = OwnOf(key), .quotas = std::vector<int64_t>(before + 1, 0)};
    Scanned of_faster = scanned;
    of_faster.quotas.back() = 1;
    scanned.quotas.resize(before + 1 + more, kPlenty);
    Scan(object, scanned);
    const JsonObject queue = {{"metadata", {{"name", kFaster}}},
                              {"spec",
                               {{"cohortName", kTree},
                                {"namespaceSelector", JsonObject{}},
                                {"resourceGroups", JsonArray{GroupOf(of_faster)}}}}};
    engine_.Apply(
        translate::QueueFacts(ViewOf(&codec::Decoder::ClusterQueue, queue), engine_.vocabulary()));
    JsonObject faster = {{"kind", "Workload"},
                         {"metadata", {{"name", kFaster}, {"namespace", kTree}}},
                         {"spec", {{"queueName", kFaster}}}};
    faster["spec"].as_object()["podSets"] = ArrayAt(ObjectAt(object, "spec"), "podSets");
    PutLocalQueue({{"metadata", {{"name", kFaster}, {"namespace", kTree}}},
                   {"spec", {{"clusterQueue", kFaster}}}});
    own_of_[KeyOf(faster)] = scanned.resource;
    Put(object);
    Put(faster);
    if (Admit() != Strings{KeyOf(faster)}) throw Mismatch(key + " is not outrun");
  }
  // All those flavors are tried, and there is no quota of any.
  void LookAtAll(const JsonObject& object, size_t flavors) {
    const std::string key = KeyOf(object);
    Scan(object, {.resource = OwnOf(key), .quotas = std::vector<int64_t>(flavors, 0)});
    Look(object);
  }
  // There is quota of the first flavor, too; of which a cycle gives it some.
  std::string FlavorOnceThereIsQuota(const std::string& key) {
    Scanned scanned = scanned_.value();
    scanned.quotas.front() = kPlenty;
    Scan(workloads_.at(key), scanned);
    engine_.Cycle(now_);
    const model::Reservation& got = Row(key).decided;
    if (got.charges.empty()) return "none";
    return std::string(engine_.state().NameOf(got.charges.front().flavor));
  }
  // What the tree of each queue may use changes.
  void FlushAll() {
    for (const std::string& key : in_flight_) late_flushes_.insert(key);
    ++elsewhere_;
    for (const auto& [name, queue] : std::map(cluster_queues_)) Put(queue);
  }

  // The first that is to be tried; it is being looked at from now on.
  std::optional<std::string> Pop(const std::string& queue) {
    const Strings order = ActiveInOrder(queue);
    if (order.empty()) return std::nullopt;
    in_flight_.insert(order.front());
    return order.front();
  }
  [[nodiscard]] Strings ActiveInOrder(const std::string& queue) const {
    const Keys active = Sides().first;
    Strings order;
    for (const model::WorkloadId id : engine_.admissions().LineOf(NameOf(queue))) {
      const std::string key(engine_.state().KeyOf(engine_.state().workloads().at(id).key));
      const auto found = active.find(queue);
      if (found != active.end() && found->second.contains(key)) order.push_back(key);
    }
    return order;
  }
  [[nodiscard]] Strings LineOf(const std::string& queue) const {
    Strings order;
    const model::NameId name = engine_.state().vocabulary().names.Find(queue);
    if (!name.valid()) return order;
    for (const model::WorkloadId id : engine_.admissions().LineOf(name))
      order.emplace_back(engine_.state().KeyOf(engine_.state().workloads().at(id).key));
    return order;
  }

  // Who is to be tried, and who waits for time or a change. Of a strict queue upstream looks at the
  // first in each cycle, whether anything changed or not; and in a queue that admits nobody nobody
  // is tried.
  [[nodiscard]] std::pair<Keys, Keys> Sides() const {
    cycle::Engine later = engine_;
    later.Cycle(now_);
    Keys active;
    Keys inadmissible;
    for (const auto& [key, json] : workloads_) {
      const std::string queue = ClusterQueueOf(key);
      if (!Waits(key) || in_flight_.contains(key) || !cluster_queues_.contains(queue)) continue;
      (IsActive(key, queue, later) ? active : inadmissible)[queue].insert(key);
    }
    return {active, inadmissible};
  }
  // Of one ClusterQueue.
  [[nodiscard]] std::pair<size_t, size_t> Sizes() const {
    const auto [active, inadmissible] = Sides();
    const auto size = [](const Keys& keys) {
      size_t count = 0;
      for (const auto& [queue, workloads] : keys) count += workloads.size();
      return count;
    };
    return {size(active), size(inadmissible)};
  }
  [[nodiscard]] bool IsPromised(const std::string& key) const {
    return workloads_.contains(key) && Row(key).promised != model::Reservation{};
  }
  // Whether it wants quota, has none, and stands in a LocalQueue.
  [[nodiscard]] bool Waits(const std::string& key) const {
    if (!workloads_.contains(key)) return false;
    const model::WorkloadStatus& status = Row(key).status;
    return StageOf(status) == model::WorkloadStage::kPending && status.active && !status.on_hold &&
           local_queues_.contains(LocalQueueOf(workloads_.at(key)));
  }
  [[nodiscard]] model::QueueBar BarOf(const std::string& key) const {
    cycle::Engine later = engine_;
    later.Cycle(now_);
    const auto refusal = later.admissions().WhyWaits(IdOf(key));
    return refusal ? refusal->bar : model::QueueBar::kNone;
  }
  [[nodiscard]] std::map<std::string, std::string> Assigned() const {
    std::map<std::string, std::string> assigned;
    for (const auto& [key, json] : workloads_) {
      if (Waits(key)) assigned[key] = LocalQueueOf(json);
    }
    return assigned;
  }
  [[nodiscard]] std::set<std::string> MembersOf(const std::string& local_queue) const {
    std::set<std::string> members;
    for (const auto& [key, of] : Assigned()) {
      if (of == local_queue) members.insert(key);
    }
    return members;
  }
  [[nodiscard]] int64_t PendingOf(const std::string& queue) const {
    return control::CountWorkloads(engine_.state()).of_queue[NameOf(queue)].pending;
  }
  [[nodiscard]] int64_t PendingOfLocal(const std::string& key) const {
    return control::CountWorkloads(engine_.state()).of_local[engine_.state().FindKey(key)].pending;
  }
  // Whom a cycle gives quota.
  Strings Admit() {
    Strings got;
    for (const model::ReserveDecision& d : engine_.Cycle(now_).reservations)
      got.emplace_back(engine_.state().KeyOf(engine_.state().workloads().at(d.workload).key));
    return got;
  }
  [[nodiscard]] bool HasLocalQueue(const std::string& key) const {
    return local_queues_.contains(key);
  }

 private:
  void PutNamespace(const JsonObject& json) {
    const JsonObject& meta = ObjectAt(json, "metadata");
    namespaces_[StringAt(meta, "name")] = LabelsOf(meta);
  }

  // With quota of what only these tables ask for.
  void PutClusterQueue(const JsonObject& json) {
    const std::string name = StringAt(ObjectAt(json, "metadata"), "name");
    cluster_queues_[name] = json;
    JsonArray covered = {kElsewhere};
    JsonArray resources = {
        JsonObject{{"name", kElsewhere}, {"nominalQuota", std::to_string(elsewhere_)}}};
    for (const std::string& own : quota_of_) {
      covered.emplace_back(own);
      resources.push_back(JsonObject{{"name", own}, {"nominalQuota", "1"}});
    }
    JsonObject queue = json;
    JsonObject& spec =
        queue["spec"].is_object() ? queue["spec"].as_object() : queue["spec"].emplace_object();
    if (!spec["resourceGroups"].is_array()) spec["resourceGroups"].emplace_array();
    spec["resourceGroups"].as_array().push_back(
        JsonObject{{"coveredResources", covered},
                   {"flavors", {JsonObject{{"name", kFlavor}, {"resources", resources}}}}});
    if (scanned_) {
      spec["resourceGroups"].as_array().push_back(GroupOf(*scanned_));
      if (!spec.contains("cohortName")) spec["cohortName"] = kTree;
    }
    engine_.Apply(
        translate::QueueFacts(ViewOf(&codec::Decoder::ClusterQueue, queue), engine_.vocabulary()));
    for (const auto& [key, local] : std::map(local_queues_)) {
      if (ClusterQueueOfLocal(local) == name) PutLocalQueue(local);
    }
  }

  void PutLocalQueue(const JsonObject& json) {
    const api::LocalQueue queue = ViewOf(&codec::Decoder::LocalQueue, json);
    const std::string key = KeyOf(json);
    local_queues_[key] = json;
    model::LocalQueueUpsert facts{
        .uid = "lq-" + key, .key = key, .cluster_queue = queue.cluster_queue};
    if (const auto of = cluster_queues_.find(queue.cluster_queue); of != cluster_queues_.end()) {
      const api::ClusterQueue view = ViewOf(&codec::Decoder::ClusterQueue, of->second);
      // Of one without a namespace no selector says anything.
      const std::string& space = queue.meta.namespace_name;
      const bool let_in =
          space.empty() ||
          (view.namespace_selector &&
           api::QueryOf(*view.namespace_selector).value().Matches(namespaces_[space]));
      if (!let_in) facts.bar = model::LocalQueueBar::kNamespace;
    }
    engine_.Apply(facts);
  }

  void PutWorkload(const JsonObject& json) {
    const std::string key = KeyOf(json);
    if (one_queue_ && !local_queues_.contains(LocalQueueOf(json))) {
      PutLocalQueue({{"metadata",
                      {{"namespace", StringAt(ObjectAt(json, "metadata"), "namespace")},
                       {"name", StringAt(ObjectAt(json, "spec"), "queueName")}}},
                     {"spec", {{"clusterQueue", cluster_queues_.begin()->first}}}});
    }
    api::Workload view = ViewOf(&codec::Decoder::Workload, json);
    view.meta.uid = UidOf(key);
    // Without pods no server takes it.
    if (view.pod_sets.empty()) view.pod_sets.emplace_back();
    if (!plain_) {
      api::Container more;
      more.requests.push_back({.name = OwnOf(key), .amount = 1});
      for (api::WorkloadPodSet& pods : view.pod_sets) pods.spec.Edit().containers.push_back(more);
    }
    const auto facts = translate::WorkloadFacts(view, engine_.vocabulary());
    if (!facts) throw std::runtime_error(facts.error().message);
    engine_.Apply(*facts);
    workloads_[key] = json;
  }

  // Of what the workload asks for its queue has those quotas.
  void Scan(const JsonObject& object, const Scanned& scanned) {
    scanned_ = scanned;
    for (size_t i = 0; i < scanned.quotas.size(); ++i)
      engine_.Apply(model::FlavorUpsert{.name = FlavorAt(i), .uid = FlavorAt(i)});
    Put(cluster_queues_.at(QueueNameOf(object)));
  }

  // Its quota is to be had, and the write of its reservation is refused.
  void FailToWrite(const JsonObject& object) {
    const std::string key = KeyOf(object);
    GiveQuotaOf(key, object);
    Put(object);
    if (Admit() != Strings{key}) throw Mismatch(key + " gets no quota");
    engine_.Apply(model::ReservationOutcome{
        .uid = UidOf(key), .outcome = model::WriteOutcome::kRefused, .at = now_});
  }

  // What it needs is used by another, who may be evicted for it or not.
  void LookBesideHolder(const JsonObject& object, bool evicts) {
    const std::string key = KeyOf(object);
    const std::string queue = GiveQuotaOf(key, object);
    const JsonObject assigned = {{"name", "main"},
                                 {"count", 1},
                                 {"flavors", JsonObject{{OwnOf(key), kFlavor}}},
                                 {"resourceUsage", JsonObject{{OwnOf(key), "1"}}}};
    JsonObject holder = {{"kind", "Workload"},
                         {"metadata", {{"name", kHolder}, {"namespace", kTree}}},
                         {"spec", {{"queueName", "holders"}, {"priority", evicts ? -1 : 1}}}};
    holder["spec"].as_object()["podSets"] = ArrayAt(ObjectAt(object, "spec"), "podSets");
    holder["status"] = JsonObject{
        {"admission", {{"clusterQueue", queue}, {"podSetAssignments", JsonArray{assigned}}}},
        {"conditions", JsonArray{JsonObject{{"type", "QuotaReserved"}, {"status", "True"}}}}};
    Put(holder);
    Put(object);
    engine_.Cycle(now_);
  }

  // Where it waits, or will.
  std::string GiveQuotaOf(const std::string& key, const JsonObject& object) {
    const std::string queue = QueueNameOf(object);
    quota_of_.insert(OwnOf(key));
    JsonObject json = cluster_queues_.at(queue);
    JsonObject& spec =
        json["spec"].is_object() ? json["spec"].as_object() : json["spec"].emplace_object();
    spec["preemption"] = JsonObject{{"withinClusterQueue", "LowerPriority"}};
    Put(json);
    return queue;
  }

  [[nodiscard]] std::string QueueNameOf(const JsonObject& object) const {
    return one_queue_ ? cluster_queues_.begin()->first
                      : ClusterQueueOfLocal(local_queues_.at(LocalQueueOf(object)));
  }

  [[nodiscard]] bool IsActive(const std::string& key, const std::string& queue,
                              const cycle::Engine& later) const {
    const model::Workload& row = Row(key);
    // After a write that failed it waits for a time, where upstream's whole cycle does.
    if (row.errors > 0) return true;
    const Instant from = WaitsFrom(row);
    if (from > now_) return false;
    const auto refusal = later.admissions().WhyWaits(later.state().FindWorkload(UidOf(key)));
    const bool barred = refusal && refusal->bar != model::QueueBar::kNone &&
                        refusal->bar != model::QueueBar::kBehind;
    if (barred) return false;
    if (from != Instant{} || IsPromised(key)) return true;
    const model::QueueId q = engine_.state().queues().Find(QueueKind::kClusterQueue, NameOf(queue));
    return engine_.state().queues().at(q).strict_fifo ||
           engine_.admissions().IsToBeTried(engine_.state(), IdOf(key));
  }

  static std::string ClusterQueueOfLocal(const JsonObject& local) {
    return StringAt(ObjectAt(local, "spec"), "clusterQueue");
  }
  [[nodiscard]] std::string ClusterQueueOf(const std::string& key) const {
    const auto local = local_queues_.find(LocalQueueOf(workloads_.at(key)));
    return local == local_queues_.end() ? "" : ClusterQueueOfLocal(local->second);
  }
  [[nodiscard]] std::string OwnOf(const std::string& key) {
    const auto [own, fresh] = own_of_.try_emplace(key, own_);
    if (own->second.empty()) own->second = fmt::format("berth.test/own-{}", own_of_.size());
    return own->second;
  }
  static std::string UidOf(const std::string& key) { return "u@" + key; }
  [[nodiscard]] model::WorkloadId IdOf(const std::string& key) const {
    return engine_.state().FindWorkload(UidOf(key));
  }
  [[nodiscard]] const model::Workload& Row(const std::string& key) const {
    return engine_.state().workloads().at(IdOf(key));
  }
  [[nodiscard]] model::NameId NameOf(const std::string& name) const {
    return engine_.state().vocabulary().names.Find(name);
  }

  cycle::Engine engine_;
  Instant now_;
  bool one_queue_ = false;
  bool plain_ = false;
  std::string own_;
  int64_t elsewhere_ = 0;  // Quota of what nobody asks for.
  std::optional<Scanned> scanned_;
  std::set<std::string> quota_of_;
  std::map<std::string, std::string> own_of_;  // What a workload asks for.
  std::map<std::string, api::StringMap> namespaces_;
  std::map<std::string, JsonObject> cluster_queues_;
  std::map<std::string, JsonObject> local_queues_;
  std::map<std::string, JsonObject> workloads_;
  std::set<std::string> in_flight_;     // They are being looked at.
  std::set<std::string> late_flushes_;  // Of those, since which something changed.
};

Keys KeysIn(const Json* json) {
  Keys keys;
  if (json == nullptr || !json->is_object()) return keys;
  for (const auto& queue : json->as_object()) {
    for (const std::string& key : StringsIn(&queue.value())) keys[queue.key()].insert(key);
  }
  return keys;
}

// Of which LocalQueue those are that wait; upstream remembers it of others, too, where berth asks
// the object.
void CheckAssigned(const Lines& lines, const JsonObject& want) {
  std::map<std::string, std::string> wanted;
  for (const auto& of : want) {
    if (lines.Waits(of.key())) wanted[of.key()] = std::string(of.value().as_string());
  }
  const auto text = [](const std::map<std::string, std::string>& map) {
    Strings list;
    for (const auto& [key, queue] : map) list.push_back(fmt::format("{}@{}", key, queue));
    return list;
  };
  ExpectKeys("LocalQueues", text(lines.Assigned()), text(wanted));
}

// Of one ClusterQueue.
std::set<std::string> All(const Keys& keys) {
  return keys.empty() ? std::set<std::string>() : keys.begin()->second;
}
Keys OfOne(const std::set<std::string>& keys) { return Keys{{"", keys}}; }

}  // namespace

void LineScript(const Case& test) {
  Lines lines = Lines::OfOneQueue(test);
  const std::string queue(kQueue);
  for (const Json& json : test.steps) {
    const JsonObject& step = json.as_object();
    const std::string op = StringAt(step, "op");
    const JsonObject& want = ObjectAt(step, "want");
    const JsonObject& workload = ObjectAt(step, "workload");
    const std::string key = StringAt(step, "key");
    if (op == "pushOrUpdate") {
      lines.Put(workload);
    } else if (op == "pop") {
      const auto got = lines.Pop(queue);
      if (want.contains("anyWorkload")) continue;
      ExpectKeys(
          "popped", Strings{got.value_or("nobody")},
          Strings{StringAt(want, "workload").empty() ? "nobody" : StringAt(want, "workload")});
    } else if (op == "delete") {
      lines.DeleteWorkload(key);
    } else if (op == "deleteAllOfLocalQueue") {
      lines.DeleteLocalQueue(key);
    } else if (op == "requeueIfNotPresent") {
      ExpectSame("added", lines.Requeue(workload, StringAt(step, "reason")),
                 want.at("added").as_bool());
    } else if (op == "queueInadmissibleWorkloads") {
      const size_t before = lines.Sizes().second;
      lines.FlushAll();
      ExpectSame("moved", static_cast<int64_t>(before - lines.Sizes().second),
                 want.at("moved").as_int64());
    } else if (op == "active" || op == "inadmissible") {
      const auto [active, inadmissible] = lines.Sides();
      const Strings wanted = StringsIn(want.if_contains("workloads"));
      ExpectKeys(op, OfOne(All(op == "active" ? active : inadmissible)),
                 OfOne({wanted.begin(), wanted.end()}));
    } else if (op == "pendingTotal") {
      ExpectSame(op, lines.PendingOf(queue), want.at("result").as_int64());
    } else if (op == "pendingInLocalQueue") {
      ExpectSame(op, lines.PendingOfLocal(key),
                 want.at("active").as_int64() + want.at("inadmissible").as_int64());
    } else if (op == "isPreemptor") {
      // It is asked of a version, which is the last one then.
      if (lines.Waits(KeyOf(workload))) lines.Put(workload);
      ExpectSame(op, lines.IsPromised(KeyOf(workload)), want.at("result").as_bool());
    } else if (op == "pendingResources") {
      throw NotApplicable("metrics of Kueue");
    } else {
      throw std::runtime_error("unknown step " + op);
    }
  }
}

void PushedTwice(const Case& test) {
  Lines lines = Lines::OfOneQueue(test);
  const JsonObject& workload = ObjectAt(test.input, "workload");
  lines.Put(workload);
  ExpectSame("pending", lines.PendingOf(std::string(kQueue)), 1);
  lines.Put(workload);
  const JsonObject& popped = ObjectAt(test.want, "poppedWorkload");
  const std::string wanted = popped.empty() ? "nobody" : KeyOf(popped);
  std::set<std::string> inadmissible;
  for (const auto& of : ObjectAt(test.want, "inadmissibleWorkloads")) inadmissible.insert(of.key());
  ExpectKeys("inadmissible", OfOne(All(lines.Sides().second)), OfOne(inadmissible));
  ExpectKeys("popped", Strings{lines.Pop(std::string(kQueue)).value_or("nobody")}, Strings{wanted});
}

// The look was at the first version.
void ChangedVersion(const Case& test) {
  Lines lines = Lines::OfOneQueue(test);
  lines.Put(ObjectAt(test.input, "initialWorkload"));
  lines.Pop(std::string(kQueue));
  lines.Requeue(ObjectAt(test.input, "initialWorkload"), "");
  lines.Put(ObjectAt(test.input, "updatedWorkload"));
  const auto [active, inadmissible] = lines.Sizes();
  ExpectSame("active", static_cast<int64_t>(active), test.want.at("activeCount").as_int64());
  ExpectSame("inadmissible", static_cast<int64_t>(inadmissible),
             test.want.at("inadmissibleCount").as_int64());
}

void ClusterQueueSteps(const Case& test) {
  Lines lines = Lines::OfOneQueue(test);
  const auto all = [&](const char* step, const auto& act) {
    for (const Json& json : ArrayAt(test.input, step)) act(json.as_object());
  };
  const auto put = [&](const JsonObject& workload) { lines.Put(workload); };
  all("step1PushOrUpdate", put);
  all("step2RequeueNotImmediate", [&](const JsonObject& workload) { lines.Requeue(workload, ""); });
  all("step3RequeueImmediate", [&](const JsonObject& workload) {
    lines.DeleteWorkload(KeyOf(workload));
    lines.Put(workload);
  });
  all("step4PushOrUpdate", put);
  all("step5Delete", [&](const JsonObject& workload) { lines.DeleteWorkload(KeyOf(workload)); });
  const size_t before = lines.Sizes().second;
  if (test.options.at("queueInadmissibleWorkloads").as_bool()) lines.FlushAll();
  ExpectSame("moved", static_cast<int64_t>(before - lines.Sizes().second),
             test.want.at("inadmissibleWorkloadsRequeued").as_int64());
  const Strings active = StringsIn(test.want.if_contains("activeWorkloads"));
  ExpectKeys("active", OfOne(All(lines.Sides().first)), OfOne({active.begin(), active.end()}));
  ExpectSame("pending",
             lines.PendingOf(
                 StringAt(ObjectAt(ObjectAt(test.fixtures, "clusterQueue"), "metadata"), "name")),
             test.want.at("pending").as_int64());
}

// The last flavor that a look came to, of any resource; -1: the last of all. Nothing: none is told.
std::optional<int64_t> LastTriedIn(const JsonObject& assignment) {
  std::optional<int64_t> last;
  for (const Json& of : ArrayAt(assignment, "lastTriedFlavorIdx")) {
    for (const auto& tried : of.as_object())
      last = std::max(last.value_or(-1), tried.value().as_int64());
  }
  return last;
}

// By whom nothing but the reason is known. Where flavors were left that was a look at whom another
// was served before.
void RequeuedByReason(const Case& test) {
  const int64_t last = LastTriedIn(ObjectAt(test.input, "lastAssignment")).value_or(-1);
  Lines lines = Lines::OfOneQueue(test, OneRound());
  const JsonObject& workload = ObjectAt(test.input, "workload");
  std::string reason = StringAt(test.input, "requeueReason");
  if (last >= 0 && reason.empty()) {
    lines.LookBesideFaster(workload, static_cast<size_t>(last), /*more=*/1);
    ExpectSame("added", lines.Waits(KeyOf(workload)), test.want.at("added").as_bool());
  } else {
    ExpectSame("added", lines.Requeue(workload, reason), test.want.at("added").as_bool());
  }
  ExpectSame("inadmissible", !lines.Sides().second.empty(), test.want.at("inadmissible").as_bool());
  if (const Json* sticky = test.want.if_contains("sticky"))
    ExpectSame("promised", lines.IsPromised(KeyOf(workload)), sticky->as_bool());
  ExpectSame("added again", lines.Requeue(workload, reason),
             test.want.at("secondRequeueAdded").as_bool());
}

// Where the look at a new version begins: the flavor that it gets once there is quota of the first,
// too. The last look at the version before ended at the one that is recorded.
void ScanOfNewVersion(const Case& test) {
  if (const Json* gate = test.gates.if_contains("FlavorFungibilityPreserveScanProgress");
      gate != nullptr && !gate->as_bool()) {
    throw NotApplicable(
        "flavors that each version is tried with anew: a gate that is on, turned off");
  }
  const int64_t last = LastTriedIn(ObjectAt(test.input, "recordedLastAssignment")).value();
  Lines lines(test, OneRound());
  JsonObject workload = ArrayAt(test.fixtures, "workloads").at(0).as_object();
  if (last >= 0) {
    lines.LookBesideFaster(workload, static_cast<size_t>(last), /*more=*/1);
  } else {
    lines.LookAtAll(workload, /*flavors=*/2);
  }
  ExpectSame("inadmissible", !lines.Sides().second.empty(),
             test.options.at("inadmissible").as_bool());
  workload["metadata"].as_object()["labels"] = JsonObject{{"version", "new"}};
  if (test.options.at("changeShape").as_bool()) {
    JsonObject& pods = workload["spec"].as_object()["podSets"].as_array().at(0).as_object();
    pods["count"] = pods.at("count").as_int64() + 1;
  }
  lines.Put(workload);
  const bool carried = test.want.at("carried").as_bool();
  ExpectKeys("flavor", Strings{lines.FlavorOnceThereIsQuota(KeyOf(workload))},
             Strings{FlavorAt(carried ? static_cast<size_t>(last + 1) : 0)});
}

// Whether its equals are refused with it.
void ShapeOfReason(const Case& test) {
  const std::string reason = StringAt(test.input, "requeueReason");
  Lines lines = Lines::OfOneQueue(test, OneRound());
  lines.AskFor("berth.test/same");
  const auto named = [](std::string_view name, std::string_view space) {
    return JsonObject{{"kind", "Workload"},
                      {"metadata", {{"name", name}, {"namespace", space}}},
                      {"spec", {{"queueName", "q"}}}};
  };
  lines.Put({{"kind", "Namespace"},
             {"metadata", {{"name", "let-in"}, {"labels", JsonObject{{kLetIn, "true"}}}}}});
  // Without a reason of its own it gets nothing because another is served before it.
  if (reason.empty()) {
    lines.LookBesideFaster(named("a", "refused"), /*before=*/0, /*more=*/0);
  } else {
    lines.Requeue(named("a", "refused"), reason);
  }
  lines.Put(named("b", "let-in"));
  ExpectSame("refused with it", lines.Sizes().second > 1,
             test.want.at("hashRecordedAsInadmissible").as_bool());
}

// One of each class that is to be refused was looked at.
void InadmissibleShapes(const Case& test) {
  Lines lines = Lines::OfOneQueue(test);
  const auto named = [](std::string_view name) {
    return JsonObject{{"kind", "Workload"}, {"metadata", {{"name", name}}}};
  };
  const auto put = [&](std::string_view name, std::string_view shape) {
    lines.AskFor(fmt::format("berth.test/{}", shape));
    lines.Put(named(name));
  };
  int64_t before = 0;
  for (const Json& hash : ArrayAt(test.input, "inadmissibleHashes")) {
    const std::string name = fmt::format("before-{}", before++);
    put(name, hash.as_string());
    lines.Look(named(name));
  }
  if (test.input.contains("pushHash")) put("pushed", StringAt(test.input, "pushHash"));
  const JsonObject& heap = ObjectAt(test.input, "heapWorkloads");
  std::string looked_at;
  for (const auto& of : heap) {
    if (of.value().as_string() == StringAt(test.input, "hashToRecord")) looked_at = of.key();
    put(of.key(), of.value().as_string());
  }
  if (!looked_at.empty()) lines.Look(named(looked_at));
  const auto [active, inadmissible] = lines.Sizes();
  ExpectSame("active", static_cast<int64_t>(active), test.want.at("active").as_int64());
  ExpectSame("inadmissible", static_cast<int64_t>(inadmissible) - before,
             test.want.at("inadmissible").as_int64());
}

// ---- The manager -------------------------------------------------------------------------------

void ManagerScript(const Case& test) {
  Lines lines(test);
  std::set<std::string> server;  // Workloads that are there, of which no event came yet.
  size_t moved = 0;              // To be told when it is asked for.
  for (const Json& json : test.steps) {
    const JsonObject& step = json.as_object();
    const std::string op = StringAt(step, "op");
    const JsonObject& want = ObjectAt(step, "want");
    const std::string key = StringAt(step, "key");
    if (op.starts_with("add") || op.starts_with("update")) {
      const size_t before = lines.Sizes().second;
      lines.Put(ObjectAt(step, "object"));
      if (op.starts_with("update")) moved += before - lines.Sizes().second;
      ExpectSame(op + " fails", false, want.empty() ? false : want.at("error").as_bool());
    } else if (op == "createInAPIServer") {
      server.insert(KeyOf(ObjectAt(step, "object")));
    } else if (op == "requeueWorkload") {
      const JsonObject& workload = ObjectAt(step, "workload");
      ExpectSame(
          "requeued",
          server.contains(KeyOf(workload)) && lines.Requeue(workload, StringAt(step, "reason")),
          want.at("requeued").as_bool());
    } else if (op == "active" || op == "inadmissible") {
      ExpectKeys(op, op == "active" ? lines.Sides().first : lines.Sides().second,
                 KeysIn(want.if_contains("workloads")));
    } else if (op == "deleteClusterQueue") {
      lines.DeleteClusterQueue(key);
    } else if (op == "deleteLocalQueue") {
      lines.DeleteLocalQueue(key);
    } else if (op == "deleteWorkload" || op == "deleteAndForgetWorkload") {
      lines.DeleteWorkload(key);
    } else if (op == "popAll") {
      ExpectKeys(op, lines.ActiveInOrder(key), StringsIn(want.if_contains("workloads")));
    } else if (op == "localQueueWorkloads") {
      const Strings wanted = StringsIn(want.if_contains("workloads"));
      ExpectKeys(op, OfOne(lines.MembersOf(key)), OfOne({wanted.begin(), wanted.end()}));
    } else if (op == "assignedLocalQueues") {
      CheckAssigned(lines, ObjectAt(want, "workloads"));
    } else if (op == "pendingTotal") {
      ExpectSame(op, lines.PendingOf(key), want.at("result").as_int64());
    } else if (op == "notifyRetryInadmissible") {
      const size_t before = lines.Sizes().second;
      lines.FlushAll();
      moved += before - lines.Sizes().second;
    } else if (op == "processRequeues") {
      ExpectSame("moved", static_cast<int64_t>(std::exchange(moved, 0)),
                 want.at("moved").as_int64());
    } else if (op != "pretendPopCycle") {
      throw std::runtime_error("unknown step " + op);
    }
  }
}

void FlushedTrees(const Case& test) {
  Lines lines(test);
  for (const Json& json : ArrayAt(test.input, "workloads")) lines.Requeue(json.as_object(), "");
  const size_t before = lines.Sizes().second;
  lines.FlushAll();
  ExpectSame("moved", static_cast<int64_t>(before - lines.Sizes().second),
             test.want.at("movedCount").as_int64());
  const auto [active, inadmissible] = lines.Sides();
  ExpectKeys("active", active, KeysIn(test.want.if_contains("active")));
  ExpectKeys("inadmissible", inadmissible, KeysIn(test.want.if_contains("inadmissible")));
}

// What upstream answers is what the workload is told, or that it does not wait.
void AddedWorkload(const Case& test) {
  Lines lines(test);
  const JsonObject& workload = ObjectAt(test.input, "workload");
  lines.Put(workload);
  const std::string key = KeyOf(workload);
  const std::string error = StringAt(ObjectAt(test.want, "error"), "message");
  std::string got;
  switch (lines.BarOf(key)) {
    case model::QueueBar::kNoLocalQueue:
      got = "localQueue doesn't exist or inactive";
      break;
    case model::QueueBar::kNoClusterQueue:
      got = "clusterQueue doesn't exist";
      break;
    default:
      if (!lines.Waits(key)) got = "workload is inadmissible and can't be added to a LocalQueue";
      break;
  }
  ExpectKeys("error", Strings{got}, Strings{error});
  CheckAssigned(lines, ObjectAt(test.want, "assignedLocalQueues"));
}

void UpdatedWorkload(const Case& test) {
  Lines lines(test);
  for (const Json& json : ArrayAt(test.input, "workloads")) lines.Put(json.as_object());
  CheckAssigned(lines, ObjectAt(test.want, "assignedLocalQueuesBefore"));
  const JsonObject& updated = ObjectAt(test.input, "updatedWorkload");
  lines.Put(updated);
  const bool fails = !ObjectAt(test.want, "error").empty();
  ExpectSame("has no LocalQueue", lines.BarOf(KeyOf(updated)) == model::QueueBar::kNoLocalQueue,
             fails);
  CheckAssigned(lines, ObjectAt(test.want, "assignedLocalQueues"));
  for (const auto& of : ObjectAt(test.want, "localQueueWorkloads")) {
    const Strings wanted = StringsIn(&of.value());
    ExpectKeys(of.key(), OfOne(lines.MembersOf(of.key())), OfOne({wanted.begin(), wanted.end()}));
  }
  for (const auto& of : ObjectAt(test.want, "popOrder"))
    ExpectKeys(of.key(), lines.ActiveInOrder(of.key()), StringsIn(&of.value()));
}

void RequeuedByManager(const Case& test) {
  Lines lines(test);
  const JsonObject& workload = ObjectAt(test.input, "workload");
  if (test.options.at("addWorkloadFirst").as_bool()) lines.Put(workload);
  const bool there = test.options.at("workloadInAPIServer").as_bool();
  ExpectSame("requeued", there && lines.Requeue(workload, StringAt(test.input, "requeueReason")),
             test.want.at("requeued").as_bool());
}

// Those that are looked at first get quota. A queue that is not active lacks a flavor.
void Heads(const Case& test) {
  cycle::Engine::Options options;
  options.attempts_per_cycle_max = 1;
  Case changed = test;
  const Strings active = StringsIn(test.fixtures.if_contains("activeClusterQueues"));
  for (Json& json : changed.fixtures["clusterQueues"].as_array()) {
    JsonObject& queue = json.as_object();
    if (std::ranges::find(active, StringAt(ObjectAt(queue, "metadata"), "name")) != active.end())
      continue;
    queue["spec"].as_object()["resourceGroups"] = JsonArray{JsonObject{
        {"coveredResources", {"cpu"}},
        {"flavors",
         {JsonObject{{"name", "missing"},
                     {"resources", {JsonObject{{"name", "cpu"}, {"nominalQuota", "1"}}}}}}}}};
  }
  Lines lines(changed, options);
  lines.AskForNothingMore();
  for (const Json& json : ArrayAt(test.input, "workloads")) lines.Put(json.as_object());
  CheckAssigned(lines, ObjectAt(test.want, "assignedLocalQueues"));
  std::set<std::string> got;
  for (const std::string& key : lines.Admit()) got.insert(key.substr(key.find('/') + 1));
  const Strings wanted = StringsIn(test.want.if_contains("heads"));
  ExpectKeys("heads", OfOne(got), OfOne({wanted.begin(), wanted.end()}));
}

void PendingInOrder(const Case& test) {
  Lines lines(test);
  for (const Json& json : ArrayAt(test.fixtures, "workloads")) lines.Put(json.as_object());
  ExpectKeys("in order", lines.LineOf(StringAt(test.input, "clusterQueue")),
             StringsIn(test.want.if_contains("pendingWorkloadsInOrder")));
}

void PendingOfLocalQueue(const Case& test) {
  Lines lines(test);
  for (const Json& json : ArrayAt(test.fixtures, "workloads")) lines.Put(json.as_object());
  const std::string key = KeyOf(ObjectAt(test.input, "localQueue"));
  ExpectSame("is there", lines.HasLocalQueue(key), ObjectAt(test.want, "error").empty());
  ExpectSame("pending", lines.HasLocalQueue(key) ? lines.PendingOfLocal(key) : 0,
             test.want.at("pendingWorkloads").as_int64());
}

// Where it waits then, what it is told, and that it is told once.
void RequeuedOutcome(const Case& test) {
  const JsonObject& outcome = ObjectAt(test.input, "schedulingOutcome");
  const std::string status = StringAt(outcome, "status");
  if (status == "preemptionGated") throw NotApplicable("MultiKueue");
  const JsonObject& workload = ArrayAt(test.fixtures, "workloads").at(0).as_object();
  Lines lines(test, OneRound());
  if (status == "skipped") {
    lines.LookBesideFaster(workload, /*before=*/0, /*more=*/0);
  } else {
    lines.Requeue(workload,
                  status.empty() ? StringAt(outcome, "requeueReason") : "FailedAfterNomination");
  }
  const auto [active, inadmissible] = lines.Sides();
  ExpectKeys("left", active, KeysIn(test.want.if_contains("left")));
  ExpectKeys("inadmissibleLeft", inadmissible, KeysIn(test.want.if_contains("inadmissibleLeft")));
  api::Workload view = ViewOf(&codec::Decoder::Workload, workload);
  const translate::WaitText why = {.reason = StringAt(outcome, "quotaReservedReason"),
                                   .message = StringAt(outcome, "message")};
  int64_t writes = 0;
  for (int i = 0; i < 2 && !why.reason.empty(); ++i) {
    if (control::SaysSo(view, why)) continue;
    view.conditions = control::ConditionsOfWaiting(view, why, Instant{});
    ++writes;
  }
  ExpectSame("writes", writes, test.want.at("statusUpdates").as_int64());
  const JsonObject wanted = {
      {"status", {{"conditions", ArrayAt(ObjectAt(test.want, "status"), "conditions")}}}};
  const auto texts = [](const std::vector<api::Condition>& conditions) {
    Strings out;
    for (const api::Condition& c : conditions)
      out.push_back(fmt::format("{}={} {}: {}", c.type, c.status, c.reason, c.message));
    std::ranges::sort(out);
    return out;
  };
  ExpectKeys("conditions", texts(view.conditions),
             texts(ViewOf(&codec::Decoder::Workload, wanted).conditions));
}

}  // namespace berth::kueue
