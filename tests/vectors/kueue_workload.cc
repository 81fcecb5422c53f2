#include "kueue_workload.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/quota.h"
#include "api/timestamp.h"
#include "control/upkeep.h"
#include "control/workload_conditions.h"
#include "controllers/objects.h"
#include "controllers/workloads.h"
#include "cycle/engine.h"
#include "model/workload_stage.h"
#include "quota/order.h"
#include "reading.h"
#include "translate/quota_facts.h"
#include "translate/workload_facts.h"

// Goal: what a Workload's object says is read as Kueue reads it. Method: objects become facts of the
// model by decoding and translation; the predicates are asked.
namespace berth::kueue {
namespace {

Instant TimeAt(const JsonObject& object, std::string_view key) {
  const std::string text = StringAt(object, key);
  return text.empty() ? Instant{} : api::ParseTimestamp(text).value();
}

model::WorkloadStatus StatusIn(const JsonObject& workload) {
  return translate::WorkloadStatusOf(ViewOf(&codec::Decoder::Workload, workload));
}

quota::Contender ContenderIn(const JsonObject& workload, bool by_eviction) {
  const Json* priority = ObjectAt(workload, "spec").if_contains("priority");
  return {.priority = priority == nullptr ? 0 : static_cast<int32_t>(priority->as_int64()),
          .queued_at = model::QueuedAt(StatusIn(workload), by_eviction)};
}

std::string TextOf(const api::Condition& c) {
  return fmt::format("{}={} {}: {} of generation {} at {}", c.type, c.status, c.reason, c.message,
                     c.observed_generation, c.transition.seconds());
}

// Those of the types that are wanted; upstream writes others in other calls.
void ExpectConditions(const std::vector<api::Condition>& got, const JsonArray& wanted) {
  const JsonObject object = {{"status", {{"conditions", wanted}}}};
  for (const api::Condition& want : ViewOf(&codec::Decoder::Workload, object).conditions) {
    const api::Condition* found = api::Find(got, want.type);
    const std::string text = found == nullptr ? "nothing" : TextOf(*found);
    if (text != TextOf(want))
      throw Mismatch(fmt::format("condition\n  want {}\n  got  {}", TextOf(want), text));
  }
}

bool GateIs(const Case& test, std::string_view gate, bool value) {
  const Json* found = test.gates.if_contains(gate);
  return found != nullptr && found->as_bool() == value;
}

}  // namespace

void BackoffExpired(const Case& test) {
  ExpectSame("expired",
             model::BackoffIsOver(StatusIn(ObjectAt(test.input, "workload")),
                                  api::ParseTimestamp(test.now).value()),
             test.want.at("expired").as_bool());
}

void IsOnHold(const Case& test) {
  ExpectSame("on hold", StatusIn(ObjectAt(test.input, "workload")).on_hold,
             test.want.at("result").as_bool());
}

namespace {

// A workload of one pod at that stage, with quota from when it got some.
JsonObject WorkloadAt(const std::string& stage) {
  static const std::map<std::string, std::vector<std::string>> kConditions = {
      {"pending", {}},
      {"quotaReserved", {"QuotaReserved"}},
      {"admitted", {"QuotaReserved", "Admitted"}},
      {"evicted", {"QuotaReserved", "Admitted", "Evicted"}},
      {"finished", {"QuotaReserved", "Admitted", "Finished"}}};
  JsonArray conditions;
  for (const std::string& type : kConditions.at(stage))
    conditions.push_back(JsonObject{{"type", type}, {"status", "True"}});
  JsonObject workload = {{"metadata", {{"name", "w"}, {"namespace", "ns"}}},
                         {"spec", {{"podSets", {JsonObject{{"name", "main"}, {"count", 1}}}}}},
                         {"status", {{"conditions", conditions}}}};
  if (!conditions.empty()) {
    workload["status"].as_object()["admission"] = {
        {"clusterQueue", "cq"},
        {"podSetAssignments",
         {JsonObject{{"name", "main"},
                     {"count", 1},
                     {"flavors", JsonObject{{"cpu", "f"}}},
                     {"resourceUsage", JsonObject{{"cpu", "1"}}}}}}};
  }
  return workload;
}

}  // namespace

// Of what is observed one after the other: its quota is given back, and it waits for some.
void LostReservation(const Case& test) {
  Cluster c;
  const auto holds_after = [&](const std::string& stage) {
    const auto facts = translate::WorkloadFacts(
        ViewOf(&codec::Decoder::Workload, WorkloadAt(stage)), c.state().vocabulary());
    if (!facts) throw std::runtime_error(facts.error().message);
    c.state().Apply(*facts);
    const model::Workload& row = c.state().workloads().at(c.state().FindWorkload(facts->uid));
    return std::pair(!ChargedTo(row).charges.empty(), StageOf(row.status));
  };
  const auto [held, before] = holds_after(StringAt(test.input, "previousStatus"));
  const auto [holds, after] = holds_after(StringAt(test.input, "newStatus"));
  ExpectSame("lost", held && !holds && after == model::WorkloadStage::kPending,
             test.want.at("result").as_bool());
}

void NeedsSecondPass(const Case& test) {
  ExpectSame("second pass", model::NeedsSecondPass(StatusIn(ObjectAt(test.input, "workload"))),
             test.want.at("result").as_bool());
}

// Whether all of the tree are looked at again once one that holds quota is of the new version. Who is
// asked may evict nobody, and so gets nothing by how important others are.
void PriorityClassOfHolder(const Case& test) {
  cycle::Engine engine;
  const JsonObject queue = {{"metadata", {{"name", "cq"}, {"uid", "cq"}}}, {"spec", JsonObject{}}};
  engine.Apply(
      translate::QueueFacts(ViewOf(&codec::Decoder::ClusterQueue, queue), engine.vocabulary()));
  engine.Apply(model::LocalQueueUpsert{.uid = "lq", .key = "ns/lq", .cluster_queue = "cq"});
  const auto put = [&](JsonObject workload, const char* name) {
    workload["metadata"] = JsonObject{{"name", name}, {"namespace", "ns"}, {"uid", name}};
    engine.Apply(
        translate::WorkloadFacts(ViewOf(&codec::Decoder::Workload, workload), engine.vocabulary())
            .value());
    return engine.state().FindWorkload(name);
  };
  const auto hold = [&](JsonObject workload) {
    const JsonObject assigned = {{"name", "main"},
                                 {"count", 1},
                                 {"flavors", JsonObject{{"cpu", "f"}}},
                                 {"resourceUsage", JsonObject{{"cpu", "1"}}}};
    workload["status"] = JsonObject{
        {"admission", {{"clusterQueue", "cq"}, {"podSetAssignments", JsonArray{assigned}}}},
        {"conditions", JsonArray{JsonObject{{"type", "QuotaReserved"}, {"status", "True"}}}}};
    put(workload, "holder");
  };
  hold(ObjectAt(test.input, "oldWorkload"));
  JsonObject other = {{"spec", {{"queueName", "lq"}}}};
  other["spec"].as_object()["podSets"] =
      ArrayAt(ObjectAt(ObjectAt(test.input, "oldWorkload"), "spec"), "podSets");
  JsonObject& pods = other["spec"].as_object()["podSets"].as_array().at(0).as_object();
  pods["template"] = JsonObject{
      {"spec",
       {{"containers",
         JsonArray{JsonObject{{"name", "c"}, {"resources", {{"requests", {{"cpu", "1"}}}}}}}}}}};
  const model::WorkloadId waits = put(other, "waits");
  engine.Cycle(Instant{});
  const auto to_be_tried = [&] { return engine.admissions().IsToBeTried(engine.state(), waits); };
  ExpectSame("to be tried before", to_be_tried(), false);
  hold(ObjectAt(test.input, "newWorkload"));
  ExpectSame("changed", to_be_tried(), test.want.at("changed").as_bool());
}

// Each object is asked itself, and no uid tells those of one key apart. There is no topology to find
// places in; but who is decided of then is who is looked at.
void SecondPassDue(const Case& test) {
  cycle::Engine engine;
  engine.Apply(model::QueueUpsert{
      .kind = QueueKind::kClusterQueue, .name = "tas-main", .uid = "tas-main", .parent = {}});
  std::map<model::WorkloadId, std::string> keys;
  std::multimap<std::string, std::string> uids;  // By key.
  const auto put = [&](const JsonObject& json, const std::string& uid) {
    api::Workload workload = ViewOf(&codec::Decoder::Workload, json);
    workload.meta.uid = workload.meta.name = uid;
    engine.Apply(translate::WorkloadFacts(workload, engine.vocabulary()).value());
    keys[engine.state().FindWorkload(uid)] = KeyOf(json);
  };
  for (const Json& json : ArrayAt(test.input, "workloads")) {
    const std::string key = KeyOf(json.as_object());
    put(json.as_object(), uids.emplace(key, fmt::format("w{}", uids.size()))->second);
  }
  const Instant now = api::ParseTimestamp(test.now).value();
  engine.Cycle(now);
  if (const JsonObject& updated = ObjectAt(test.input, "updateWorkload"); !updated.empty()) {
    const auto [first, last] = uids.equal_range(KeyOf(updated));
    for (auto at = first; at != last; ++at) put(updated, at->second);
  }
  const bool later = StringAt(test.options, "clockStep") != "0s";
  const model::Plan plan = engine.Cycle(later ? now + Duration::Seconds(1) : now);
  std::set<std::string> got;
  for (const model::PassDecision& of : plan.passes) got.insert(keys.at(of.workload));
  for (const model::PassHeldUp& of : plan.held_up) got.insert(keys.at(of.workload));
  std::set<std::string> want;
  for (const Json& key : ArrayAt(test.want, "ready")) want.emplace(key.as_string());
  if (got != want)
    throw Mismatch(fmt::format("want {}, got {}", fmt::join(want, " "), fmt::join(got, " ")));
}

void RequeueState(const Case& test) {
  const api::Workload workload =
      ViewOf(&codec::Decoder::Workload, ObjectAt(test.input, "workload"));
  const control::RequeueState got = control::RequeueAfter(
      workload, TimeAt(test.input, "waitUntil"), test.input.at("incrementCount").as_bool());
  const Json& count = test.want.at("count");
  ExpectSame("count", got.count, count.is_null() ? 0 : count.as_int64());
  ExpectSame("requeueAt", got.requeue_at->seconds(), TimeAt(test.want, "requeueAt").seconds());
  ExpectSame("updated",
             got.count != workload.requeue_count || got.requeue_at != workload.requeue_at,
             test.want.at("updated").as_bool());
}

void QuotaReservation(const Case& test) {
  const api::Workload workload =
      ViewOf(&codec::Decoder::Workload, ObjectAt(test.input, "workload"));
  JsonObject with;
  with["status"] = JsonObject{{"admission", ObjectAt(test.input, "admission")}};
  const api::Admission admission = ViewOf(&codec::Decoder::Workload, with).admission.value();
  const JsonObject& want = ObjectAt(ObjectAt(test.want, "workload"), "status");
  ExpectConditions(control::ConditionsOfReserved(workload, admission, /*admitted=*/true,
                                                 api::ParseTimestamp(test.now).value()),
                   ArrayAt(want, "conditions"));
}

// Of a write that fails nothing is kept.
void OneCondition(const Case& test) {
  JsonObject object;
  object["metadata"] = JsonObject{{"generation", test.input.at("workloadGeneration")}};
  object["status"] = ObjectAt(test.input, "oldStatus");
  const api::Workload workload = ViewOf(&codec::Decoder::Workload, object);
  std::vector<api::Condition> conditions = workload.conditions;
  const bool fails = test.options.contains("statusPatchError");
  if (!fails) {
    control::Put(conditions,
                 {.type = StringAt(test.input, "condType"),
                  .status = StringAt(test.input, "condStatus"),
                  .reason = StringAt(test.input, "reason"),
                  .message = StringAt(test.input, "message")},
                 {.now = Instant{}, .generation = workload.meta.generation});
  }
  const JsonArray& want = ArrayAt(ObjectAt(test.want, "status"), "conditions");
  ExpectConditions(conditions, want);
  ExpectSame("conditions", static_cast<int64_t>(conditions.size()),
             static_cast<int64_t>(want.size()));
}

namespace {

// How many pods of one pod set are told to be done; 0: nothing is told.
int64_t ToldDone(const JsonObject& status) {
  const JsonArray& told = ArrayAt(status, "reclaimablePods");
  return told.empty() ? 0 : told.front().as_object().at("count").as_int64();
}

// What is written of a Workload that told so much, once so many pods of its Job are done. A Job has
// one pod set, whatever that is called.
JsonObject WrittenOnceDone(int64_t told, int64_t done) {
  constexpr int64_t kPods = 9;
  const auto meta = [](std::string_view name) {
    return JsonObject{{"name", name}, {"namespace", "ns"}, {"uid", name}, {"resourceVersion", "1"}};
  };
  const JsonObject pods = {{"spec", {{"containers", {JsonObject{{"name", "c"}}}}}}};
  JsonObject job = {
      {"metadata", meta("job")},
      {"spec",
       {{"suspend", false}, {"parallelism", kPods}, {"completions", kPods}, {"template", pods}}},
      {"status", {{"succeeded", done}}}};
  job["metadata"].as_object()["labels"] = JsonObject{{std::string(api::kQueueNameLabel), "q"}};
  JsonObject workload = {
      {"metadata", meta("workload")},
      {"spec",
       {{"queueName", "q"},
        {"podSets", {JsonObject{{"name", "main"}, {"count", kPods}, {"template", pods}}}}}},
      {"status",
       {{"admission",
         {{"clusterQueue", "cq"},
          {"podSetAssignments", {JsonObject{{"name", "main"}, {"count", kPods}}}}}},
        {"conditions",
         {JsonObject{{"type", "QuotaReserved"}, {"status", "True"}},
          JsonObject{{"type", "Admitted"}, {"status", "True"}}}}}}};
  JsonObject& own = workload["metadata"].as_object();
  own["finalizers"] = JsonArray{std::string(api::kInUseFinalizer)};
  own["ownerReferences"] = JsonArray{JsonObject{{"apiVersion", "batch/v1"},
                                                {"kind", "Job"},
                                                {"name", "job"},
                                                {"uid", "job"},
                                                {"controller", true}}};
  if (told > 0) {
    workload["status"].as_object()["reclaimablePods"] =
        JsonArray{JsonObject{{"name", "main"}, {"count", told}}};
  }
  controllers::Objects objects;
  for (const auto& [kind, object] :
       {std::pair(api::KindId::kJob, job), {api::KindId::kWorkload, workload}}) {
    if (const auto seen = objects.Observe(kind, codec::PrintJson(object)); !seen)
      throw std::runtime_error(seen.error().message);
  }
  JsonObject written;
  for (const controllers::Write& write :
       controllers::PlanWorkload(objects, objects.Find("job"), /*busy=*/false, {}, Instant{})
           .writes) {
    const Json body = codec::ParseJson("{" + write.body + "}").value();
    for (const auto& member : ObjectAt(body.as_object(), "status"))
      written[member.key()] = member.value();
  }
  return written;
}

}  // namespace

// Of a write that fails nothing is kept.
void ReclaimedPods(const Case& test) {
  const int64_t before = ToldDone(ObjectAt(test.input, "oldStatus"));
  const JsonObject written = WrittenOnceDone(before, ToldDone(test.input));
  const int64_t told = written.contains("reclaimablePods") ? ToldDone(written) : before;
  const bool fails = test.options.contains("statusPatchError");
  ExpectSame("done", fails ? before : told, ToldDone(ObjectAt(test.want, "status")));
}

void QueueOrderTimestamp(const Case& test) {
  const model::WorkloadStatus status = StatusIn(ObjectAt(test.input, "workload"));
  const JsonObject& want = ObjectAt(test.want, "timestampByOrdering");
  for (const bool by_eviction : {false, true}) {
    const Instant at = TimeAt(want, by_eviction ? "Eviction" : "Creation");
    ExpectSame("timestamp", (model::QueuedAt(status, by_eviction) - at).seconds(), 0);
  }
}

// Without the gate for those others leave for, nobody is promised anything.
void EntryOrdering(const Case& test) {
  if (GateIs(test, "PrioritySortingWithinCohort", false))
    throw NotApplicable("an order without priorities");
  const bool by_eviction = StringAt(ObjectAt(test.options, "workloadOrdering"),
                                    "podsReadyRequeuingTimestamp") == "Eviction";
  std::vector<std::pair<quota::Contender, std::string>> entries;
  for (const Json& json : ArrayAt(test.input, "entries")) {
    const JsonObject& workload = ObjectAt(json.as_object(), "workload");
    quota::Contender contender = ContenderIn(workload, by_eviction);
    contender.borrow = static_cast<uint32_t>(json.as_object().at("borrowing").as_int64());
    contender.promised = GateIs(test, "PrioritizePreemptorWorkloads", true) &&
                         json.as_object().at("isPreemptor").as_bool();
    entries.emplace_back(contender, StringAt(ObjectAt(workload, "metadata"), "name"));
  }
  std::ranges::stable_sort(entries, [](const auto& a, const auto& b) {
    return quota::IsServedBefore(a.first, b.first);
  });
  std::string got;
  for (const auto& [contender, name] : entries) got += name + " ";
  std::string want;
  for (const Json& name : ArrayAt(test.want, "order")) want += std::string(name.as_string()) + " ";
  if (got != want) throw Mismatch(fmt::format("want {}, got {}", want, got));
}

// Without an ordering of its own a queue counts evictions.
void FirstPopped(const Case& test) {
  const bool by_eviction = StringAt(ObjectAt(test.options, "workloadOrdering"),
                                    "podsReadyRequeuingTimestamp") != "Creation";
  const bool second = quota::IsServedBefore(ContenderIn(ObjectAt(test.input, "w2"), by_eviction),
                                            ContenderIn(ObjectAt(test.input, "w1"), by_eviction));
  if ((second ? "w2" : "w1") != StringAt(test.want, "firstPopped"))
    throw Mismatch(second ? "w2 is first" : "w1 is first");
}

}  // namespace berth::kueue
