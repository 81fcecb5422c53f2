#include "kueue_requests.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <limits>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "reading.h"
#include "translate/quota_facts.h"
#include "translate/workload_facts.h"

// Goal: a workload asks for, and is charged, what Kueue counts. Method: its object goes through
// decoding and translation, and what came of it is summed up.
namespace berth::kueue {
namespace {

// What a pod set asks for or is charged, all its pods together.
struct PodSetSum {
  std::string name;
  int64_t count = 0;
  std::map<std::string, int64_t> amounts;  // Without zeros.
  std::map<std::string, std::string> flavors;
  bool operator==(const PodSetSum&) const = default;
};

std::string Text(const std::vector<PodSetSum>& sums) {
  std::string text;
  for (const PodSetSum& sum : sums)
    text += fmt::format(" [{} x{} {} {}]", sum.name, sum.count, sum.amounts, sum.flavors);
  return text;
}

class Facts {
 public:
  explicit Facts(const JsonObject& workload, const translate::PodRules& rules = {}) {
    const auto facts = translate::WorkloadFacts(ViewOf(&codec::Decoder::Workload, workload),
                                                vocabulary_, nullptr, rules);
    if (!facts) throw Mismatch(facts.error().message);
    facts_ = *facts;
  }

  // What it holds, if it has quota; else what it asks for.
  [[nodiscard]] std::vector<PodSetSum> Sums() const {
    std::vector<PodSetSum> sums;
    for (const model::WorkloadSlots& slots : facts_.slots) {
      PodSetSum& sum = sums.emplace_back();
      sum.name = vocabulary_.names.View(slots.name);
      if (facts_.status.reserved) continue;
      sum.count = slots.count;
      Add(sum, vocabulary_.classes.at(slots.class_id).requests, slots.count, {});
    }
    for (const model::QuotaCharge& charge : facts_.reserved.charges) {
      PodSetSum& sum = sums.at(charge.pod_set);
      sum.count = charge.count;
      Add(sum, charge.amounts, charge.count, vocabulary_.names.View(charge.flavor));
    }
    return sums;
  }
  [[nodiscard]] const model::WorkloadUpsert& upsert() const { return facts_; }

 private:
  void Add(PodSetSum& sum, model::BundleId amounts, int64_t count, std::string_view flavor) const {
    for (const model::ResourceAmount& a : vocabulary_.bundles.View(amounts)) {
      if (a.resource == model::kPods || a.amount == 0) continue;
      const std::string resource(vocabulary_.resources.Name(a.resource));
      // Upstream's sums end at the most that there is.
      int64_t all = 0;
      const bool beyond = __builtin_mul_overflow(a.amount, count, &all) ||
                          __builtin_add_overflow(sum.amounts[resource], all, &all);
      sum.amounts[resource] = beyond ? std::numeric_limits<int64_t>::max() : all;
      if (!flavor.empty()) sum.flavors[resource] = flavor;
    }
  }

  model::Vocabulary vocabulary_;
  model::WorkloadUpsert facts_;
};

std::vector<PodSetSum> SumsIn(const JsonArray& wanted) {
  std::vector<PodSetSum> sums;
  for (const Json& json : wanted) {
    const JsonObject& of = json.as_object();
    PodSetSum& sum = sums.emplace_back();
    sum.name = StringAt(of, "name");
    sum.count = of.at("count").as_int64();
    for (const auto& amount : ObjectAt(of, "requests")) {
      if (amount.value().as_int64() != 0) sum.amounts[amount.key()] = amount.value().as_int64();
    }
    for (const auto& flavor : ObjectAt(of, "flavors")) {
      if (sum.amounts.contains(flavor.key()))
        sum.flavors[flavor.key()] = std::string(flavor.value().as_string());
    }
  }
  return sums;
}

// What no flavor gives is charged to nobody.
void DropUncharged(std::vector<PodSetSum>& sums) {
  for (PodSetSum& sum : sums) {
    std::erase_if(sum.amounts, [&](const auto& of) { return !sum.flavors.contains(of.first); });
    if (sum.amounts.empty()) sum.count = 0;
  }
}

void CheckSums(const JsonObject& workload, const JsonArray& wanted) {
  const Facts facts(workload);
  const std::vector<PodSetSum> got = facts.Sums();
  std::vector<PodSetSum> want = SumsIn(wanted);
  if (facts.upsert().status.reserved) DropUncharged(want);
  if (got != want)
    throw Mismatch(fmt::format("requests\n  want{}\n  got {}", Text(want), Text(got)));
}

// Of pod sets so named, each with more pods than any of the lists tells of.
JsonObject WithReclaimable(const Json* list, const Json* other) {
  constexpr int64_t kMany = 100;
  std::map<std::string, int64_t> names;
  for (const Json* of : {list, other}) {
    if (of == nullptr || !of->is_array()) continue;
    for (const Json& json : of->as_array()) names.try_emplace(StringAt(json.as_object(), "name"));
  }
  names.try_emplace("main");
  JsonArray pod_sets;
  for (const auto& [name, none] : names)
    pod_sets.push_back(JsonObject{{"name", name}, {"count", kMany}});
  return {{"spec", {{"podSets", pod_sets}}},
          {"status", {{"reclaimablePods", list == nullptr ? Json(JsonArray{}) : *list}}}};
}

void NeedsDefaultOptions(const Case& test, std::string_view key) {
  const JsonObject& options = ObjectAt(test.options, key);
  if (options.contains("preprocessedDRAResources") || options.contains("preserveTotalRequests"))
    throw NotApplicable("devices that are claimed");
  if (!options.empty())
    throw NotApplicable("resources that a configuration leaves out or turns into others");
}

}  // namespace

void TotalRequests(const Case& test) {
  NeedsDefaultOptions(test, "infoOptions");
  if (const Json* gate = test.gates.if_contains("ReclaimablePods"); gate && !gate->as_bool())
    throw NotApplicable("without reclaimablePods");
  const JsonObject& info = ObjectAt(test.want, "info");
  CheckSums(ObjectAt(test.input, "workload"), ArrayAt(info, "totalRequests"));
}

// The version before leaves nothing behind.
void RebuiltRequests(const Case& test) {
  NeedsDefaultOptions(test, "initialInfoOptions");
  NeedsDefaultOptions(test, "updateInfoOptions");
  CheckSums(ObjectAt(test.input, "updated"), ArrayAt(test.want, "totalRequests"));
}

// By flavor what has one; what has none is asked for alone.
void ResourceUsage(const Case& test) {
  JsonArray assignments;
  JsonArray pod_sets;
  Amounts unassigned;
  for (const Json& json : ArrayAt(ObjectAt(test.input, "info"), "totalRequests")) {
    const JsonObject& of = json.as_object();
    const std::string name = fmt::format("set-{}", pod_sets.size());
    JsonObject usage;
    for (const auto& amount : ObjectAt(of, "requests")) {
      const std::string_view unit = amount.key() == "cpu" ? "m" : "";
      usage[amount.key()] = fmt::format("{}{}", amount.value().as_int64(), unit);
      if (!ObjectAt(of, "flavors").contains(amount.key()))
        unassigned["none"][amount.key()] += amount.value().as_int64();
    }
    pod_sets.push_back(JsonObject{{"name", name}, {"count", 1}});
    assignments.push_back(JsonObject{{"name", name},
                                     {"count", 1},
                                     {"flavors", ObjectAt(of, "flavors")},
                                     {"resourceUsage", usage}});
  }
  if (pod_sets.empty()) pod_sets.push_back(JsonObject{{"name", "main"}, {"count", 1}});
  Amounts got;
  const Facts facts(
      {{"spec", {{"podSets", pod_sets}}},
       {"status",
        {{"admission", {{"clusterQueue", "cq"}, {"podSetAssignments", assignments}}},
         {"conditions", JsonArray{JsonObject{{"type", "QuotaReserved"}, {"status", "True"}}}}}}});
  for (const PodSetSum& sum : facts.Sums()) {
    for (const auto& [resource, amount] : sum.amounts)
      got[sum.flavors.at(resource)][resource] += amount;
  }
  const JsonObject& result = ObjectAt(test.want, "result");
  Expect("assigned", got, AmountsIn(ObjectAt(result, "assigned")));
  Expect("unassigned", unassigned, AmountsIn({{"none", ObjectAt(result, "unassigned")}}));
}

namespace {

// Requests that are missing are what limits them before they are what a LimitRange says, as servers
// of pods have it, and Kueue since then.
void NeedsDefaultsLast(const Case& test) {
  if (ArrayAt(test.input, "limitRanges").empty()) return;
  const auto limits_alone = [](const JsonObject& of) {
    const JsonObject& resources = ObjectAt(of, "resources");
    return !ObjectAt(resources, "limits").empty() && ObjectAt(resources, "requests").empty();
  };
  const JsonObject& workload = ObjectAt(test.input, "workload");
  for (const Json& json : ArrayAt(ObjectAt(workload, "spec"), "podSets")) {
    const JsonObject& spec = ObjectAt(ObjectAt(json.as_object(), "template"), "spec");
    bool found = limits_alone(spec);
    for (const Json& container : ArrayAt(spec, "containers"))
      found = found || limits_alone(container.as_object());
    if (found) throw NotApplicable("limits alone beside a LimitRange, as Kueue had it once");
  }
}

translate::PodRules RulesIn(const Case& test) {
  translate::PodRules rules;
  for (const Json& json : ArrayAt(test.input, "limitRanges")) {
    // What they allow is another table's.
    api::LimitRange range = ViewOf(&codec::Decoder::LimitRange, json.as_object());
    for (api::LimitRangeItem& item : range.items) {
      item.max.clear();
      item.min.clear();
    }
    rules.defaults.Put(range);
  }
  for (const Json& json : ArrayAt(test.input, "runtimeClasses"))
    rules.defaults.Put(ViewOf(&codec::Decoder::RuntimeClass, json.as_object()));
  if (const Json* range = test.input.if_contains("limitRange"))
    rules.defaults.Put(ViewOf(&codec::Decoder::LimitRange, range->as_object()));
  return rules;
}

}  // namespace

// As the wanted object asks itself.
void AdjustedResources(const Case& test) {
  NeedsDefaultsLast(test);
  const std::vector<PodSetSum> got = Facts(ObjectAt(test.input, "workload"), RulesIn(test)).Sums();
  const std::vector<PodSetSum> want = Facts(ObjectAt(test.want, "workload")).Sums();
  if (got != want)
    throw Mismatch(fmt::format("requests\n  want{}\n  got {}", Text(want), Text(got)));
}

namespace {

// What is wrong with the workload's resources, in upstream's words.
void CheckResources(const Case& test, std::string_view head, const translate::PodRules& rules) {
  model::Vocabulary vocabulary;
  std::vector<std::string> wanted;
  for (const Json& json : ArrayAt(test.want, "errors")) {
    const JsonObject& error = json.as_object();
    const std::string field = StringAt(error, "field");
    // A list of names, of which the dump left the quotes out.
    std::string bad = StringAt(error, "badValue");
    bad = fmt::format("[\"{}\"]", bad.substr(1, bad.size() - 2));
    for (size_t at = bad.find(' '); at != std::string::npos; at = bad.find(' ', at + 3))
      bad.replace(at, 1, "\",\"");
    wanted.push_back(
        fmt::format("{}: Invalid value: {}: {}", field, bad, StringAt(error, "detail")));
  }
  const auto facts =
      translate::WorkloadFacts(ViewOf(&codec::Decoder::Workload, ObjectAt(test.input, "workload")),
                               vocabulary, nullptr, rules);
  std::string want;
  if (!wanted.empty()) {
    want = head;
    want += wanted.size() == 1 ? wanted.front() : fmt::format("[{}]", fmt::join(wanted, ", "));
  }
  const std::string got = facts ? "" : facts.error().message;
  if (got != want) throw Mismatch(fmt::format("error\n  want {}\n  got  {}", want, got));
}

}  // namespace

void ValidResources(const Case& test) { CheckResources(test, "resources validation failed: ", {}); }

void ValidLimitRange(const Case& test) {
  CheckResources(test, "resources didn't satisfy LimitRange constraints: ", RulesIn(test));
}

void CountsOfPodSets(const Case& test) {
  JsonObject workload = ObjectAt(test.input, "workload");
  if (workload.empty()) workload["spec"] = JsonObject{{"podSets", ArrayAt(test.input, "podSets")}};
  std::map<std::string, int64_t> got;
  // Without pods no server takes it.
  if (!ArrayAt(ObjectAt(workload, "spec"), "podSets").empty()) {
    for (const PodSetSum& sum : Facts(workload).Sums()) got[sum.name] = sum.count;
  }
  std::map<std::string, int64_t> want;
  for (const auto& of : ObjectAt(test.want, "result")) want[of.key()] = of.value().as_int64();
  if (got != want) throw Mismatch(fmt::format("counts\n  want {}\n  got  {}", want, got));
}

void AsksForTopology(const Case& test) {
  bool asks = false;
  for (const Json& json : ArrayAt(test.input, "podSets")) {
    JsonObject pod_set = json.as_object();
    pod_set["count"] = 1;
    const Facts facts({{"spec", {{"podSets", JsonArray{pod_set}}}}});
    asks = asks || facts.upsert().slots.front().topology.asked;
  }
  ExpectSame("asks for a topology", asks, test.want.at("result").as_bool());
}

// Two lists that are equal leave the same pods to run.
void EqualReclaimable(const Case& test) {
  const Json* a = test.input.if_contains("a");
  const Json* b = test.input.if_contains("b");
  ExpectSame("equal", Facts(WithReclaimable(a, b)).Sums() == Facts(WithReclaimable(b, a)).Sums(),
             test.want.at("result").as_bool());
}

// More pods than there are leave as many to run as all of them.
void LimitedReclaimable(const Case& test) {
  JsonObject workload = ObjectAt(test.fixtures, "workload");
  const auto with = [&](const Json* list) {
    workload["status"] =
        JsonObject{{"reclaimablePods", list == nullptr || list->is_null() ? JsonArray{} : *list}};
    return Facts(workload).Sums();
  };
  const auto got = with(test.input.if_contains("reclaimablePods"));
  const auto want = with(test.want.if_contains("result"));
  if (got != want) throw Mismatch(fmt::format("pods\n  want{}\n  got {}", Text(want), Text(got)));
}

// Whether a look can't tell them apart: what the key of a shape is made of.
void SchedulingShape(const Case& test) {
  for (const auto& gate : test.gates) {
    if (gate.key() != "SchedulingEquivalenceHashing")
      throw NotApplicable(fmt::format("{}, a gate that is off", std::string_view(gate.key())));
  }
  model::Vocabulary vocabulary;
  const auto facts = [&](const char* key) {
    const auto read = translate::WorkloadFacts(
        ViewOf(&codec::Decoder::Workload, ObjectAt(test.input, key)), vocabulary);
    if (!read) throw Mismatch(read.error().message);
    return *read;
  };
  const model::WorkloadUpsert a = facts("wl1");
  const model::WorkloadUpsert b = facts("wl2");
  ExpectSame("same", a.slots == b.slots && a.priority == b.priority,
             test.want.at("same").as_bool());
}

void PriorityInfo(const Case& test) {
  const Json* gate = test.gates.if_contains("PriorityBoost");
  if (gate != nullptr && gate->as_bool() && test.want.at("boost").as_int64() != 0)
    throw NotApplicable("PriorityBoost, a gate that is off");
  JsonObject workload = ObjectAt(test.input, "workload");
  JsonObject& spec = workload["spec"].is_object() ? workload["spec"].as_object()
                                                  : workload["spec"].emplace_object();
  spec["podSets"] = JsonArray{JsonObject{{"name", "main"}, {"count", 1}}};
  ExpectSame("priority", Facts(workload).upsert().priority, test.want.at("effective").as_int64());
}

}  // namespace berth::kueue
