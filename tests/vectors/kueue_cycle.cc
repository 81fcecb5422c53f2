#include "kueue_cycle.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <regex>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "api/selector.h"
#include "api/timestamp.h"
#include "control/queues.h"
#include "control/upkeep.h"
#include "control/workload_conditions.h"
#include "cycle/engine.h"
#include "cycle/second_pass.h"
#include "quota/reach.h"
#include "reading.h"
#include "translate/facts.h"
#include "translate/quota_facts.h"
#include "translate/quota_text.h"
#include "translate/workload_facts.h"

// Goal: of those that wait, a cycle gives quota to whom Kueue gives it, evicts whom it evicts, and
// tells the others what it tells them. Method: objects go the way of the scheduler's, through
// decoding and translation into the engine; one round of its lines is one cycle of Kueue's. What it
// decided is compared as objects: admissions, conditions, and who is looked at again at once.
namespace berth::kueue {
namespace {

// What Kueue does by gates that are off where nobody turns them on.
constexpr std::array<std::pair<const char*, const char*>, 3> kForeignGates = {
    {{"ElasticJobsViaWorkloadSlices", "elastic Jobs"},
     {"MultiKueueOrchestratedPreemption", "MultiKueue"},
     {"ConcurrentAdmission", "concurrent admission"}}};

// And what it does not do where they are turned off.
constexpr std::array<std::pair<const char*, const char*>, 3> kGatesThatAreOn = {
    {{"TASRecomputeAssignmentWithinSchedulingCycle",
      "one look a cycle at whom others leave no room"},
     {"TASFailedNodeReplacementFailFast", "failed nodes that are looked at again and again"},
     {"TopologyAwareScheduling", "flavors whose topologies say nothing"}}};

using Conditions = std::map<std::string, std::tuple<std::string, std::string, std::string>>;
using Keys = std::map<std::string, std::set<std::string>>;  // Of workloads by ClusterQueue.

// What our words are for what upstream says nothing of, or says otherwise for its cycle is another.
constexpr std::string_view kNoLongerFits =
    "Workload no longer fits after processing another workload";

// Amounts that are too large to be counted are told as each says it.
std::string WithoutLargest(const std::string& text) {
  static const std::regex kLargest("(at least [0-9.]+[A-Za-z]*|9223372036854775807m?)");
  return std::regex_replace(text, kLargest, "the largest");
}

Conditions ConditionsIn(const std::vector<api::Condition>& conditions) {
  Conditions out;
  for (const api::Condition& c : conditions)
    out[c.type] = {c.status, c.reason, WithoutLargest(c.message)};
  return out;
}

std::string Text(const Conditions& conditions) {
  std::string text;
  for (const auto& [type, said] : conditions) {
    text += fmt::format("\n    {}={} {}: {}", type, std::get<0>(said), std::get<1>(said),
                        std::get<2>(said));
  }
  return text;
}

std::string Text(const Keys& keys) {
  std::string text;
  for (const auto& [queue, workloads] : keys) {
    for (const std::string& workload : workloads) text += fmt::format(" {}:{}", queue, workload);
  }
  return text.empty() ? " none" : text;
}

std::string Text(const api::Admission& admission) {
  std::string text = admission.cluster_queue;
  for (const api::PodSetAssignment& pods : admission.pod_sets) {
    text += fmt::format(" [{} x{}", pods.name, pods.count.value_or(0));
    // What is asked for as nothing is given by no flavor here.
    for (const auto& [resource, flavor] : pods.flavors) {
      if (api::Find(pods.usage, resource).value_or(0) > 0)
        text += fmt::format(" {}:{}", resource, flavor);
    }
    for (const api::ResourceAmount& a : pods.usage) {
      if (a.amount > 0) text += fmt::format(" {}={}", a.name, a.amount);
    }
    if (pods.topology_delayed) text += " places later";
    if (pods.topology) {
      text += fmt::format(" by {}:", fmt::join(pods.topology->levels, "/"));
      for (const api::TopologyDomain& domain : pods.topology->domains)
        text += fmt::format(" {}={}", fmt::join(domain.values, "/"), domain.count);
    }
    text += "]";
  }
  return text;
}

Keys KeysIn(const JsonObject& want, std::string_view key) {
  Keys keys;
  for (const auto& queue : ObjectAt(want, key)) {
    for (const Json& workload : queue.value().as_array())
      keys[std::string(queue.key())].insert(std::string(workload.as_string()));
  }
  return keys;
}

class Cycles {
 public:
  explicit Cycles(const Case& test) : now_(api::ParseTimestamp(test.now).value()) {
    const Json* partial = test.gates.if_contains("PartialAdmission");
    partial_admission_ = partial == nullptr || partial->as_bool();
    for (const JsonObject* from : {&test.fixtures, &test.input}) {
      for (const Json& json : ArrayAt(*from, "namespaces")) PutNamespace(json.as_object());
      for (const char* key : {"clusterQueues", "additionalClusterQueues"}) {
        for (const Json& json : ArrayAt(*from, key)) cluster_queues_.push_back(json.as_object());
      }
    }
    model::Vocabulary& vocabulary = engine_.vocabulary();
    for (const JsonObject* from : {&test.fixtures, &test.input}) {
      for (const Json& json : ArrayAt(*from, "topologies")) {
        engine_.Apply(translate::TopologyFacts(ViewOf(&codec::Decoder::Topology, json.as_object()),
                                               vocabulary));
      }
      for (const Json& json : ArrayAt(*from, "resourceFlavors")) {
        engine_.Apply(translate::FlavorFacts(
            ViewOf(&codec::Decoder::ResourceFlavor, json.as_object()), vocabulary));
      }
      for (const Json& json : ArrayAt(*from, "nodes")) PutNode(json.as_object());
      for (const Json& json : ArrayAt(*from, "pods")) PutPod(json.as_object());
    }
    std::map<std::string, std::string, std::less<>> controllers;  // Of checks.
    for (const Json& json : ArrayAt(test.input, "admissionChecks")) {
      const api::AdmissionCheck check = ViewOf(&codec::Decoder::AdmissionCheck, json.as_object());
      controllers[check.meta.name] = check.controller;
    }
    for (const JsonObject& json : cluster_queues_) {
      model::QueueUpsert facts =
          translate::QueueFacts(ViewOf(&codec::Decoder::ClusterQueue, json), vocabulary);
      for (model::QueueCheck& check : facts.checks) {
        const auto known = controllers.find(vocabulary.names.View(check.name));
        check.brings_nodes = known == controllers.end() || control::BringsNodes(known->second);
      }
      engine_.Apply(facts);
    }
    for (const Json& json : ArrayAt(test.input, "cohorts")) {
      engine_.Apply(
          translate::QueueFacts(ViewOf(&codec::Decoder::Cohort, json.as_object()), vocabulary));
    }
    for (const JsonObject* from : {&test.fixtures, &test.input}) {
      for (const char* key : {"localQueues", "additionalLocalQueues"}) {
        for (const Json& json : ArrayAt(*from, key)) PutLocalQueue(json.as_object());
      }
    }
    for (const Json& json : ArrayAt(test.input, "objects"))
      pod_rules_.defaults.Put(ViewOf(&codec::Decoder::LimitRange, json.as_object()));
    for (const Json& json : ArrayAt(test.input, "workloads")) PutWorkload(json.as_object());
  }

  // One head of each queue.
  void Run() {
    plan_ = engine_.Cycle(now_);
    for (const model::ReserveDecision& d : plan_.reservations) {
      const model::Workload& row = Row(d.workload);
      Note& note = notes_.at(KeyIn(d.workload));
      note.admission = translate::AdmissionOf(row, engine_.state().vocabulary());
      const bool admitted = !cycle::LacksPlaces(row.slots, row.decided, /*joint=*/false) &&
                            control::ChecksAreReady(note.workload, *note.admission,
                                                    rules_[note.admission->cluster_queue]);
      note.workload.conditions =
          control::ConditionsOfReserved(note.workload, *note.admission, admitted, now_);
    }
    for (const model::PassDecision& d : plan_.passes) Pass(d);
    for (const model::EvictDecision& d : plan_.evictions) {
      const model::Workload& row = Row(d.workload);
      const std::string claimant = KeyIn(row.claimant);
      Note& note = notes_.at(KeyIn(d.workload));
      const std::string job(
          api::Find(notes_.at(claimant).workload.meta.labels, api::kJobUidLabel).value_or(""));
      control::EvictionText text = control::EvictionOf(row, job, engine_.state());
      const std::string& uid = notes_.at(claimant).workload.meta.uid;
      text.message.replace(text.message.find(uid), uid.size(), notes_.at(claimant).uid);
      note.workload.conditions = control::ConditionsOfEvicted(note.workload, text, now_);
    }
    for (const model::WorkloadId id : plan_.workloads) {
      const auto refusal = engine_.admissions().WhyWaits(id);
      if (!refusal) continue;
      Note& note = notes_.at(KeyIn(id));
      note.bar = refusal->bar;
      note.told = true;
      note.workload.conditions = control::ConditionsOfWaiting(
          note.workload, translate::WorkloadRefusalText(*refusal, Row(id), engine_.state()), now_);
    }
  }

  // The write of each reservation, and of places, is refused.
  void RefuseWrites() {
    std::vector<model::WorkloadId> decided;
    for (const model::ReserveDecision& d : plan_.reservations) decided.push_back(d.workload);
    for (const model::PassDecision& d : plan_.passes) decided.push_back(d.workload);
    for (const model::WorkloadId id : decided) {
      Note& note = notes_.at(KeyIn(id));
      note.admission = note.held ? note.workload.admission : std::nullopt;
      note.workload.conditions = note.before;
      engine_.Apply(model::ReservationOutcome{
          .uid = note.workload.meta.uid, .outcome = model::WriteOutcome::kRefused, .at = now_});
    }
  }

  void Delete(const std::string& key) {
    engine_.Apply(model::WorkloadRemove{.uid = notes_.at(key).workload.meta.uid});
    notes_.erase(key);
  }

  // Without those that ran before; those whose nodes failed are left in, if `replaced`.
  void CheckNewAssignments(const JsonObject& want, bool replaced) {
    std::erase_if(notes_, [&](const auto& of) {
      const api::Condition* admitted = api::Find(of.second.before, "Admitted");
      return admitted != nullptr && admitted->status == "True" &&
             !(replaced && !of.second.workload.unhealthy_nodes.empty());
    });
    CheckAssignments(want);
  }

  // What upstream tells in events conditions tell here.
  void CheckEvents(const JsonObject& want) const {
    const bool texts = ArrayAt(ObjectAt(want, "eventCompare"), "ignoredFields").empty();
    std::set<std::string> wanted;
    for (const Json& json : ArrayAt(want, "events")) {
      const JsonObject& event = json.as_object();
      const std::string reason = StringAt(event, "reason");
      // Of writes that fail nothing is told, and whom one evicts the evicted say.
      if (reason == "SecondPassFailed" || reason == "PreemptedWorkload") continue;
      // Of these the words of the event are other ones than the condition's.
      const bool of_write =
          reason == "QuotaReserved" || reason == "Admitted" || reason == "Preempted";
      wanted.insert(fmt::format("{} {}{}", StringAt(event, "key"), reason,
                                texts && !of_write ? ": " + StringAt(event, "message") : ""));
    }
    std::set<std::string> got;
    for (const auto& [key, note] : notes_) {
      const Conditions before = ConditionsIn(note.before);
      for (const auto& [type, said] : ConditionsIn(note.workload.conditions)) {
        const auto& [status, reason, message] = said;
        const auto known = before.find(type);
        const bool holds = status == "True";
        const bool begins =
            holds && (known == before.end() || std::get<0>(known->second) != "True");
        const bool waits = type == "QuotaReserved" && !holds && note.told;
        if (!begins && !waits) continue;
        std::string name = waits ? reason : type == "Evicted" ? "EvictedDueTo" + reason : type;
        if (texts && (waits || type == "Evicted")) name += ": " + message;
        got.insert(fmt::format("{} {}", key, name));
      }
    }
    if (got != wanted)
      throw Mismatch(fmt::format("told\n  want {}\n  got  {}", fmt::join(wanted, "\n       "),
                                 fmt::join(got, "\n       ")));
  }

  void CheckAssignments(const JsonObject& want) const {
    std::map<std::string, std::string> wanted;
    for (const auto& one : want) {
      JsonObject workload;
      workload["status"] = JsonObject{{"admission", one.value()}};
      wanted[std::string(one.key())] =
          Text(ViewOf(&codec::Decoder::Workload, workload).admission.value());
    }
    std::map<std::string, std::string> got;
    for (const auto& [key, note] : notes_) {
      if (note.admission) got[key] = Text(*note.admission);
    }
    if (got == wanted) return;
    std::string text = "assignments\n  want";
    for (const auto& [key, of] : wanted) text += fmt::format("\n    {} {}", key, of);
    text += "\n  got ";
    for (const auto& [key, of] : got) text += fmt::format("\n    {} {}", key, of);
    throw Mismatch(text);
  }

  void CheckWorkloads(const JsonArray& want) const {
    for (const Json& json : want) {
      const std::string key = KeyOf(json.as_object());
      if (!notes_.contains(key)) throw Mismatch(key + " is gone");
      Conditions wanted =
          ConditionsIn(ViewOf(&codec::Decoder::Workload, json.as_object()).conditions);
      // It is tried again beside those served, before anything is told.
      const auto waits = wanted.find("QuotaReserved");
      if (waits != wanted.end() && std::get<2>(waits->second) == kNoLongerFits) continue;
      // Of what keeps a whole queue waiting upstream's scheduler says nothing to those in it.
      if (waits == wanted.end() && notes_.at(key).bar != model::QueueBar::kNone) continue;
      const Conditions got = ConditionsIn(notes_.at(key).workload.conditions);
      if (got != wanted)
        throw Mismatch(fmt::format("{}\n  want{}\n  got {}", key, Text(wanted), Text(got)));
    }
  }

  // Who waits to be looked at, and who for a change.
  void CheckQueues(const JsonObject& want) const {
    Keys left;
    Keys inadmissible;
    // Who found no places beside those served before it was told so, and gets another flavor when it
    // is looked at again.
    cycle::Engine later = engine_;
    later.Cycle(now_);
    for (const JsonObject& json : cluster_queues_) {
      const std::string name = StringAt(ObjectAt(json, "metadata"), "name");
      const bool strict = StringAt(ObjectAt(json, "spec"), "queueingStrategy") != "BestEffortFIFO";
      const model::NameId id = engine_.state().vocabulary().names.Find(name);
      // Of a strict queue upstream looks at the first in each cycle, whether anything changed or not.
      for (const model::WorkloadId w : engine_.admissions().LineOf(id)) {
        const auto refusal = engine_.admissions().WhyWaits(w);
        const bool waits =
            refusal && !refusal->promised && !strict && !GetsOther(later.state(), w, *refusal);
        (waits ? inadmissible : left)[name].insert(KeyIn(w));
      }
    }
    for (const auto& [key, note] : notes_) {
      if (!note.id.valid()) left[cluster_queue_of_.at(LocalQueueOf(note.workload))].insert(key);
      if (!note.id.valid()) continue;
      // After a write that failed it waits for a time, where upstream's whole cycle does.
      if (Row(note.id).errors > 0 && !note.held)
        left[cluster_queue_of_.at(LocalQueueOf(note.workload))].insert(key);
      const auto refusal = engine_.admissions().WhyWaits(note.id);
      if (refusal && refusal->bar == model::QueueBar::kNamespace)
        inadmissible[cluster_queue_of_.at(LocalQueueOf(note.workload))].insert(key);
    }
    for (const auto& [what, got] : {std::pair("left", left), {"inadmissibleLeft", inadmissible}}) {
      const Keys wanted = KeysIn(want, what);
      if (got == wanted) continue;
      throw Mismatch(fmt::format("{}\n  want{}\n  got {}", what, Text(wanted), Text(got)));
    }
  }

 private:
  struct Note {
    api::Workload workload;
    std::string uid;  // As it was given.
    std::vector<api::Condition> before;
    std::optional<api::Admission> admission;  // While it holds quota.
    model::WorkloadId id;                     // Invalid: it could not be read.
    model::QueueBar bar = model::QueueBar::kNone;
    bool held = false;  // It had quota before.
    bool told = false;  // Why it waits.
  };

  // Places of one that has quota, or why it gives that up.
  void Pass(const model::PassDecision& d) {
    const model::Workload& row = Row(d.workload);
    Note& note = notes_.at(KeyIn(d.workload));
    if (!d.refusal) {
      translate::PutTopologies(row.decided, row, engine_.state().vocabulary(), *note.admission);
      if (d.pass == model::Pass::kPlace)
        note.workload.conditions = control::ConditionsOfAdmitted(note.workload, now_);
      return;
    }
    const control::GivenUp why = control::GivenUpOf(d, engine_.state());
    note.workload.conditions =
        control::ConditionsOfGivenUp(note.workload, why.reason, why.message, now_);
  }

  // A topology down to nodes is used where their label kubernetes.io/hostname is their name, as
  // kubelets give it; some of these have another name.
  void PutNode(JsonObject json) {
    JsonObject& meta = json["metadata"].as_object();
    const std::string host = StringAt(ObjectAt(meta, "labels"), "kubernetes.io/hostname");
    if (!host.empty()) meta["name"] = host;
    engine_.Apply(translate::NodeFacts(ViewOf(&codec::Decoder::Node, json), engine_.vocabulary()));
  }

  // One that stands on a node.
  void PutPod(const JsonObject& json) {
    auto pod = codec::DecodePod(codec::PrintJson(json));
    if (!pod) throw std::runtime_error(pod.error().message);
    if (pod->meta.uid.empty()) pod->meta.uid = "pod-" + KeyOf(json);
    const auto facts = translate::PodFacts(*pod, engine_.vocabulary());
    if (!facts) throw std::runtime_error(facts.error().message);
    engine_.Apply(*facts);
  }

  void PutNamespace(const JsonObject& json) {
    const JsonObject& meta = ObjectAt(json, "metadata");
    namespaces_[StringAt(meta, "name")] = LabelsOf(meta);
  }

  void PutLocalQueue(const JsonObject& json) {
    const api::LocalQueue queue = ViewOf(&codec::Decoder::LocalQueue, json);
    model::LocalQueueUpsert facts{
        .uid = "lq-" + KeyOf(json), .key = KeyOf(json), .cluster_queue = queue.cluster_queue};
    for (const JsonObject& of : cluster_queues_) {
      const api::ClusterQueue cluster_queue = ViewOf(&codec::Decoder::ClusterQueue, of);
      if (cluster_queue.meta.name != queue.cluster_queue) continue;
      rules_[cluster_queue.meta.name] = control::RulesOf(cluster_queue);
      if (!cluster_queue.namespace_selector ||
          !api::QueryOf(*cluster_queue.namespace_selector)
               .value()
               .Matches(namespaces_[queue.meta.namespace_name])) {
        facts.bar = model::LocalQueueBar::kNamespace;
      }
    }
    cluster_queue_of_[KeyOf(json)] = queue.cluster_queue;
    engine_.Apply(facts);
  }

  void PutWorkload(const JsonObject& json) {
    Note note{.workload = ViewOf(&codec::Decoder::Workload, json),
              .uid = {},
              .before = {},
              .admission = {},
              .id = {}};
    // Where no workload may start with fewer pods, none says so.
    for (api::WorkloadPodSet& pods : note.workload.pod_sets) {
      if (!partial_admission_) pods.min_count.reset();
    }
    // Some are given that of others.
    note.uid = StringAt(ObjectAt(json, "metadata"), "uid");
    note.workload.meta.uid = note.uid + "@" + KeyOf(json);
    note.before = note.workload.conditions;
    const auto facts =
        translate::WorkloadFacts(note.workload, engine_.vocabulary(), nullptr, pod_rules_);
    if (!facts) {
      note.workload.conditions = control::ConditionsOfWaiting(
          note.workload, {.reason = "Misconfigured", .message = facts.error().message}, now_);
      notes_.emplace(KeyOf(json), std::move(note));
      return;
    }
    engine_.Apply(*facts);
    note.id = engine_.state().FindWorkload(note.workload.meta.uid);
    note.held = ChargedTo(Row(note.id)).cluster_queue.valid();
    if (note.held) note.admission = note.workload.admission;
    keys_[note.id] = KeyOf(json);
    notes_.emplace(KeyOf(json), std::move(note));
  }

  static bool GetsOther(const model::State& state, model::WorkloadId workload,
                        const model::WorkloadRefusal& refusal) {
    const std::vector<model::QuotaCharge>& gets = state.workloads().at(workload).decided.charges;
    return std::ranges::any_of(gets, [&](const model::QuotaCharge& charge) {
      return std::ranges::find(refusal.reasons, charge.flavor, &model::FlavorReason::flavor) ==
             refusal.reasons.end();
    });
  }
  [[nodiscard]] const model::Workload& Row(model::WorkloadId id) const {
    return engine_.state().workloads().at(id);
  }
  [[nodiscard]] const std::string& KeyIn(model::WorkloadId id) const { return keys_.at(id); }
  static std::string LocalQueueOf(const api::Workload& workload) {
    return workload.meta.namespace_name + "/" + workload.queue;
  }
  static cycle::Engine::Options OneRound() {
    cycle::Engine::Options options;
    options.attempts_per_cycle_max = 1;
    // What is due was seen to be before the cycle that a case tells of.
    options.second_pass_delay = {};
    return options;
  }

  cycle::Engine engine_{OneRound()};
  Instant now_;
  bool partial_admission_ = true;
  translate::PodRules pod_rules_;
  std::map<std::string, api::StringMap> namespaces_;  // Their labels.
  std::vector<JsonObject> cluster_queues_;
  std::map<std::string, std::string> cluster_queue_of_;  // By the key of a LocalQueue.
  std::map<std::string, control::QueueRules> rules_;     // Of ClusterQueues.
  std::map<std::string, Note> notes_;
  std::map<model::WorkloadId, std::string> keys_;
  model::Plan plan_;
};

bool OptionIs(const Case& test, std::string_view option) {
  const Json* found = test.options.if_contains(option);
  return found != nullptr && found->is_bool() && found->as_bool();
}

bool GateIsOn(const Case& test, std::string_view gate) {
  const Json* found = test.gates.if_contains(gate);
  return found != nullptr && found->as_bool();
}

}  // namespace

void OneCycle(const Case& test) {
  if (OptionIs(test, "fairSharing")) throw NotApplicable("fair sharing");
  for (const auto& [gate, what] : kForeignGates) {
    if (GateIsOn(test, gate)) throw NotApplicable(what);
  }
  Cycles cycles(test);
  cycles.Run();
  if (test.options.contains("statusPatchError")) cycles.RefuseWrites();
  cycles.CheckAssignments(ObjectAt(test.want, "assignments"));
  cycles.CheckWorkloads(ArrayAt(test.want, "workloads"));
  cycles.CheckQueues(test.want);
}

void TopologyCycle(const Case& test) {
  for (const auto& [gate, what] : kGatesThatAreOn) {
    if (test.gates.contains(gate) && !GateIsOn(test, gate)) throw NotApplicable(what);
  }
  if (test.options.contains("resourceTransformations"))
    throw NotApplicable("resources that a configuration leaves out or turns into others");
  Cycles cycles(test);
  cycles.Run();
  if (test.options.contains("statusPatchError")) cycles.RefuseWrites();
  cycles.CheckEvents(test.want);
  const bool objects = test.want.contains("workloads");
  if (objects) cycles.CheckWorkloads(ArrayAt(test.want, "workloads"));
  cycles.CheckQueues(test.want);
  cycles.CheckNewAssignments(ObjectAt(test.want, "newAssignments"), /*replaced=*/!objects);
}

// Which checks a workload is to pass.
void AdmissionChecks(const Case& test) {
  const control::QueueRules rules =
      control::RulesOf(ViewOf(&codec::Decoder::ClusterQueue, ObjectAt(test.input, "clusterQueue")));
  const api::Workload workload =
      ViewOf(&codec::Decoder::Workload, ObjectAt(test.input, "workload"));
  std::set<std::string> want;
  for (const Json& name : ArrayAt(test.want, "admissionChecks"))
    want.insert(std::string(name.as_string()));
  std::set<std::string> got;
  for (std::string& name :
       control::ChecksFor(rules, workload.admission ? &*workload.admission : nullptr))
    got.insert(std::move(name));
  if (got != want) throw Mismatch(fmt::format("want {}, got {}", want.size(), got.size()));
}

// What the condition Admitted becomes, by the object alone.
void AdmittedCondition(const Case& test) {
  const api::Workload workload =
      ViewOf(&codec::Decoder::Workload, ObjectAt(test.input, "workload"));
  control::QueueRules rules;  // That asks for the checks that there are.
  for (const api::CheckState& check : workload.checks) rules.checks.push_back({.name = check.name});
  api::Workload with = workload;
  if (!with.admission) with.admission.emplace();
  const control::QueuesOf queues = {.cluster_queue = &rules};
  const control::Due due = control::UpkeepOf(with, queues).due;
  ExpectSame("change", due == control::Due::kAdmit, test.want.at("change").as_bool());
  if (due != control::Due::kAdmit) return;
  const std::string body =
      "{" +
      control::UpkeepBody(due, with, queues, api::ParseTimestamp("2026-08-20T12:00:00Z").value()) +
      "}";
  const JsonObject got = {{"status", codec::ParseJson(body).value()}};
  const JsonObject want = {{"status", {{"conditions", test.want.at("conditions")}}}};
  const auto reasons = [](const JsonObject& object) {
    Conditions conditions = ConditionsIn(ViewOf(&codec::Decoder::Workload, object).conditions);
    for (auto& [type, said] : conditions) std::get<2>(said).clear();
    return conditions;
  };
  if (reasons(got) != reasons(want))
    throw Mismatch(fmt::format("want{}\n  got {}", Text(reasons(want)), Text(reasons(got))));
}

// When a check lets a workload be tried again.
void RetryTime(const Case& test) {
  JsonObject workload;
  workload["status"] = JsonObject{{"admissionChecks", test.input.at("checkStates")}};
  const auto got = control::RetryAt(ViewOf(&codec::Decoder::Workload, workload).checks);
  const std::string want = StringAt(test.want, "retryTime");
  const std::optional<Instant> wanted =
      want.empty() ? std::nullopt : std::optional(api::ParseTimestamp(want).value());
  ExpectSame("retry time", got == wanted, true);
}

// What a workload's demand keeps others from.
void ResourcesToReserve(const Case& test) {
  const Amounts usage = AmountsIn(ObjectAt(test.input, "assignmentUsage"));
  Amounts got = usage;
  if (StringAt(test.input, "assignmentMode") != "Fit") {
    got.clear();
    Cluster c;
    const JsonObject& queue = ObjectAt(test.fixtures, "clusterQueue");
    const std::string name = StringAt(ObjectAt(queue, "metadata"), "name");
    c.Put(QueueKind::kClusterQueue, queue);
    c.Charge("w", name, AmountsIn(ObjectAt(test.input, "clusterQueueUsage")));
    const model::QueueId q = c.state().FindQueue(QueueKind::kClusterQueue, name);
    const bool borrows = test.input.at("borrowing").as_int64() > 0;
    for (const auto& [flavor, resources] : usage) {
      for (const auto& [resource, amount] : resources) {
        const int64_t kept =
            quota::KeptFor(c.state().ledger().quota(), c.Resource(resource),
                           c.state().queues().AccountOf(q, c.Name(flavor)), amount, borrows);
        if (kept > 0) got[flavor][resource] = kept;
      }
    }
  }
  Expect("reserved", got, AmountsIn(ObjectAt(test.want, "reserved")));
}

void LastSchedulingContext(const Case& test) {
  Cycles cycles(test);
  cycles.Run();
  cycles.CheckWorkloads(ArrayAt(test.want, "workloadsAfterFirstCycle"));
  for (const Json& key : ArrayAt(test.input, "deleteWorkloadsAfterFirstCycle"))
    cycles.Delete(std::string(key.as_string()));
  cycles.Run();
  cycles.CheckAssignments(ObjectAt(test.want, "assignmentsAfterSecondCycle"));
}

}  // namespace berth::kueue
