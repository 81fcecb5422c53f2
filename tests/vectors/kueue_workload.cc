#include "kueue_workload.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/timestamp.h"
#include "control/upkeep.h"
#include "control/workload_conditions.h"
#include "model/workload_stage.h"
#include "quota/order.h"
#include "reading.h"
#include "translate/quota_facts.h"

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

void LostReservation(const Case& test) {
  const auto stage = [&](const char* key) {
    for (uint8_t i = 0; i < model::kWorkloadStagesCount; ++i) {
      if (ToString(model::WorkloadStage{i}) == StringAt(test.input, key))
        return model::WorkloadStage{i};
    }
    throw std::runtime_error("unknown status " + StringAt(test.input, key));
  };
  ExpectSame("lost", model::LosesReservation(stage("previousStatus"), stage("newStatus")),
             test.want.at("result").as_bool());
}

void NeedsSecondPass(const Case& test) {
  ExpectSame("second pass", model::NeedsSecondPass(StatusIn(ObjectAt(test.input, "workload"))),
             test.want.at("result").as_bool());
}

// Nothing delays it here, and each object is asked itself: one that was evicted meanwhile needs none.
void SecondPassDue(const Case& test) {
  if (StringAt(test.options, "clockStep") == "0s") throw NotApplicable("a delay of second passes");
  std::map<std::string, std::vector<bool>> due;  // By key; no uid tells those of one key apart.
  for (const Json& json : ArrayAt(test.input, "workloads")) {
    due[KeyOf(json.as_object())].push_back(model::NeedsSecondPass(StatusIn(json.as_object())));
  }
  if (const JsonObject& updated = ObjectAt(test.input, "updateWorkload"); !updated.empty())
    due[KeyOf(updated)] = {model::NeedsSecondPass(StatusIn(updated))};
  std::string got;
  for (const auto& [key, each] : due) {
    if (std::ranges::find(each, true) != each.end()) got += key + " ";
  }
  std::vector<std::string> ready;
  for (const Json& key : ArrayAt(test.want, "ready")) ready.emplace_back(key.as_string());
  std::ranges::sort(ready);
  std::string want;
  for (const std::string& key : ready) want += key + " ";
  if (got != want) throw Mismatch(fmt::format("want {}, got {}", want, got));
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
