#include "kueue_workload.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/timestamp.h"
#include "model/workload_stage.h"
#include "quota/order.h"
#include "reading.h"

// Goal: what a Workload's object says is read as Kueue reads it. Method: conditions and members
// become the facts of the model; the predicates are asked.
namespace berth::kueue {
namespace {

Instant TimeAt(const JsonObject& object, std::string_view key) {
  const std::string text = StringAt(object, key);
  return text.empty() ? Instant{} : api::ParseTimestamp(text).value();
}

const JsonObject& ConditionOf(const JsonObject& status, std::string_view type) {
  static const JsonObject kNone;
  for (const Json& condition : ArrayAt(status, "conditions")) {
    if (StringAt(condition.as_object(), "type") == type) return condition.as_object();
  }
  return kNone;
}

// The lowest level's values of an assignment, in the form that lists what is alike once.
std::set<std::string> DomainsIn(const JsonObject& assignment) {
  std::set<std::string> values;
  for (const Json& slice : ArrayAt(assignment, "slices")) {
    const JsonArray& levels = ArrayAt(slice.as_object(), "valuesPerLevel");
    if (levels.empty()) continue;
    const JsonObject& lowest = levels.back().as_object();
    if (lowest.contains("universal")) values.insert(StringAt(lowest, "universal"));
    const JsonObject& individual = ObjectAt(lowest, "individual");
    for (const Json& root : ArrayAt(individual, "roots")) {
      values.insert(StringAt(individual, "prefix") + std::string(root.as_string()) +
                    StringAt(individual, "suffix"));
    }
  }
  return values;
}

void ReadPlacements(const JsonObject& status, model::WorkloadStatus& out) {
  std::set<std::string> unhealthy;
  for (const Json& node : ArrayAt(status, "unhealthyNodes"))
    unhealthy.insert(StringAt(node.as_object(), "name"));
  for (const Json& json : ArrayAt(ObjectAt(status, "admission"), "podSetAssignments")) {
    const JsonObject& pods = json.as_object();
    if (!pods.contains("topologyAssignment")) {
      out.awaits_topology =
          out.awaits_topology || StringAt(pods, "delayedTopologyRequest") == "Pending";
    }
    for (const std::string& domain : DomainsIn(ObjectAt(pods, "topologyAssignment")))
      out.on_unhealthy_node = out.on_unhealthy_node || unhealthy.contains(domain);
  }
}

model::WorkloadStatus StatusIn(const JsonObject& workload) {
  const JsonObject& status = ObjectAt(workload, "status");
  const auto is = [&](std::string_view type, std::string_view value) {
    return StringAt(ConditionOf(status, type), "status") == value;
  };
  model::WorkloadStatus out{.created = TimeAt(ObjectAt(workload, "metadata"), "creationTimestamp"),
                            .finished = is("Finished", "True"),
                            .reserved = is("QuotaReserved", "True"),
                            .admitted = is("Admitted", "True"),
                            .held_back = is("Requeued", "False"),
                            .requeue_at = TimeAt(ObjectAt(status, "requeueState"), "requeueAt")};
  if (is("Evicted", "True")) {
    const std::string reason = StringAt(ConditionOf(status, "Evicted"), "reason");
    out.evicted_for = reason == "PodsReadyTimeout" ? model::EvictedFor::kPodsNotReady
                      : reason == "AdmissionCheck" ? model::EvictedFor::kCheck
                                                   : model::EvictedFor::kOther;
    out.evicted_at = TimeAt(ConditionOf(status, "Evicted"), "lastTransitionTime");
  }
  const JsonArray& checks = ArrayAt(status, "admissionChecks");
  out.checks_ready = !checks.empty() && std::ranges::all_of(checks, [](const Json& check) {
    return StringAt(check.as_object(), "state") == "Ready";
  });
  ReadPlacements(status, out);
  return out;
}

quota::Contender ContenderIn(const JsonObject& workload, bool by_eviction) {
  const Json* priority = ObjectAt(workload, "spec").if_contains("priority");
  return {.priority = priority == nullptr ? 0 : static_cast<int32_t>(priority->as_int64()),
          .queued_at = model::QueuedAt(StatusIn(workload), by_eviction)};
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
    throw NotBuilt("an order without priorities");
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
