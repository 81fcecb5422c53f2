#include "kueue_flavors.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/requests.h"
#include "codec/decode.h"
#include "codec/json.h"
#include "cycle/class_cache.h"
#include "cycle/slots.h"
#include "cycle/wanted_places.h"
#include "model/queues.h"
#include "place/evaluate.h"
#include "quota/flavors.h"
#include "reading.h"
#include "translate/facts.h"
#include "translate/quota_facts.h"
#include "translate/quota_text.h"
#include "translate/workload_facts.h"

// Goal: a workload gets the flavors that Kueue gives it, and is told why not in its words. Method:
// pod templates go the way of pods through decoding and translation, flavors and queues their own;
// what evictions could do is what the case says.
namespace berth::kueue {
namespace {

using quota::FlavorMode;

// What the model calls a pod of the template.
struct Template {
  model::ClassSpec spec;
  std::vector<model::ResourceAmount> requests;
};

Template TemplateOf(Cluster& c, const JsonObject& spec) {
  const auto pod = codec::DecodePod(codec::PrintJson(
      JsonObject{{"metadata", {{"name", "p"}, {"namespace", "n"}}}, {"spec", spec}}));
  if (!pod) throw std::runtime_error(pod.error().message);
  const auto spec_of = translate::ClassOf(*pod, c.state().vocabulary());
  if (!spec_of) throw std::runtime_error(spec_of.error().message);
  Template out{.spec = *spec_of, .requests = {}};
  for (const api::ResourceAmount& of : api::PendingRequests(*pod)) {
    if (of.name != "pods") out.requests.push_back({c.Resource(of.name), of.amount});
  }
  return out;
}

void PutFlavor(Cluster& c, const JsonObject& object) {
  c.state().Apply(translate::FlavorFacts(ViewOf(&codec::Decoder::ResourceFlavor, object),
                                         c.state().vocabulary()));
}

void PutFlavors(Cluster& c, const Json& flavors) {
  if (flavors.is_array()) {
    for (const Json& flavor : flavors.as_array()) PutFlavor(c, flavor.as_object());
    return;
  }
  for (const auto& flavor : flavors.as_object()) PutFlavor(c, flavor.value().as_object());
}

void PutTopologies(Cluster& c, const JsonArray& topologies) {
  for (const Json& json : topologies) {
    c.state().Apply(translate::TopologyFacts(ViewOf(&codec::Decoder::Topology, json.as_object()),
                                             c.state().vocabulary()));
  }
}

// Everything that is there before flavors are assigned.
void PutAll(Cluster& c, const Case& test) {
  for (const JsonObject* from : {&test.fixtures, &test.input}) {
    if (const Json* flavors = from->if_contains("resourceFlavors")) PutFlavors(c, *flavors);
    PutTopologies(c, ArrayAt(*from, "topologies"));
    for (const char* key : {"clusterQueue", "secondaryClusterQueue", "otherClusterQueue"}) {
      if (from->contains(key)) c.Put(QueueKind::kClusterQueue, ObjectAt(*from, key));
    }
    c.PutAll(ArrayAt(*from, "siblingClusterQueues"), ArrayAt(*from, "cohorts"));
  }
  for (const Json& flavor : ArrayAt(test.fixtures, "deletedAfterSnapshot"))
    c.state().Apply(model::FlavorRemove{.name = std::string(flavor.as_string())});
  for (const char* key : {"clusterQueue", "secondaryClusterQueue", "otherClusterQueue"}) {
    const Amounts used = AmountsIn(ObjectAt(test.input, std::string(key) + "Usage"));
    if (used.empty()) continue;
    c.Charge(key, StringAt(ObjectAt(ObjectAt(test.input, key), "metadata"), "name"), used);
  }
  for (const auto& queue : ObjectAt(test.input, "siblingClusterQueueUsage"))
    c.Charge(queue.key(), queue.key(), AmountsIn(queue.value().as_object()));
}

// The workload of a case, with what the request's spans look at.
class Workload {
 public:
  Workload(Cluster& c, const Case& test) : c_(c), json_(PodSetsOf(test)) {
    sets_.resize(json_.size());
    templates_.resize(json_.size());
    levels_.resize(json_.size());
    held_.resize(json_.size());
    for (size_t i = 0; i < json_.size(); ++i) Read(i, test);
    const JsonObject& queue =
        ObjectAt(test.input.contains("clusterQueue") ? test.input : test.fixtures, "clusterQueue");
    request_.queue = c.state().FindQueue(QueueKind::kClusterQueue,
                                         StringAt(ObjectAt(queue, "metadata"), "name"));
    request_.pod_sets = sets_;
    request_.grows = test.input.contains("replacedWorkloadSlice");
    const Json* fair = test.options.if_contains("fairSharing");
    request_.fair_sharing = fair != nullptr && fair->as_bool();
    if (!test.input.contains("allowedFlavors")) return;
    for (const Json& flavor : ArrayAt(test.input, "allowedFlavors"))
      allowed_.push_back(c.Name(std::string_view(flavor.as_string())));
    request_.allowed = allowed_;
  }
  Workload(const Workload&) = delete;
  Workload& operator=(const Workload&) = delete;

  [[nodiscard]] const JsonArray& json() const { return json_; }
  [[nodiscard]] const quota::FlavorRequest& request() const { return request_; }
  [[nodiscard]] std::string NameOf(size_t i) const {
    return StringAt(json_[i].as_object(), "name");
  }
  [[nodiscard]] size_t size() const { return sets_.size(); }

 private:
  static JsonArray PodSetsOf(const Case& test) {
    if (test.input.contains("podSet")) return {test.input.at("podSet")};
    return ArrayAt(test.input.contains("podSets") ? test.input : test.fixtures, "podSets");
  }

  void Read(size_t i, const Case& test) {
    const JsonObject& json = json_[i].as_object();
    quota::PodSet& set = sets_[i];
    templates_[i] = TemplateOf(c_, ObjectAt(ObjectAt(json, "template"), "spec"));
    set.count = static_cast<uint32_t>(json.at("count").as_int64() - Reclaimable(i, test));
    set.requests = templates_[i].requests;
    set.selector = templates_[i].spec.selector;
    set.tolerations = templates_[i].spec.tolerations;
    const JsonObject& topology = ObjectAt(json, "topologyRequest");
    const std::string group = StringAt(topology, "podSetGroupName");
    if (!group.empty()) set.group = c_.Name(group);
    for (const char* key : {"required", "preferred"}) {
      if (topology.contains(key)) levels_[i].push_back(c_.Name(StringAt(topology, key)));
    }
    set.levels = levels_[i];
    set.asks_topology = !levels_[i].empty() || topology.contains("unconstrained");
    for (const auto& member : topology) {
      if (member.key().starts_with("podSetSlice") || member.key().starts_with("podsetSlice"))
        throw NotBuilt("slices of topologies");
    }
    const JsonArray& replaced =
        ArrayAt(ObjectAt(test.input, "replacedWorkloadSlice"), "totalRequests");
    if (i >= replaced.size()) return;
    const JsonObject& old = replaced[i].as_object();
    for (const auto& flavor : ObjectAt(old, "flavors")) {
      const Json* amount = ObjectAt(old, "requests").if_contains(flavor.key());
      held_[i].push_back({.resource = c_.Resource(flavor.key()),
                          .flavor = c_.Name(std::string_view(flavor.value().as_string())),
                          .amount = amount == nullptr ? 0 : amount->to_number<int64_t>()});
    }
    set.held = held_[i];
  }

  [[nodiscard]] int64_t Reclaimable(size_t i, const Case& test) const {
    const Json* gate = test.gates.if_contains("ReclaimablePods");
    if (gate != nullptr && !gate->as_bool()) return 0;
    for (const Json& json : ArrayAt(test.input, "reclaimablePods")) {
      if (StringAt(json.as_object(), "name") == NameOf(i))
        return json.as_object().at("count").as_int64();
    }
    return 0;
  }

  Cluster& c_;
  JsonArray json_;
  std::vector<quota::PodSet> sets_;
  std::vector<Template> templates_;
  std::vector<std::vector<model::NameId>> levels_;
  std::vector<std::vector<quota::HeldAmount>> held_;
  std::vector<model::NameId> allowed_;
  quota::FlavorRequest request_;
};

// As the case says; of all else workloads of the queue would have to go.
quota::OutlookFor OutlookIn(Cluster& c, const Case& test) {
  return [&c, &test](const quota::Demand& demand) -> quota::EvictionOutlook {
    const model::NameId flavor = c.state().queues().account(demand.account).flavor;
    const JsonObject& said =
        ObjectAt(ObjectAt(ObjectAt(test.input, "preemptionOracle"), c.state().NameOf(flavor)),
                 c.state().vocabulary().resources.Name(demand.resource));
    const std::string possibility = StringAt(said, "preemptionPossibility");
    if (possibility.empty()) return {.mode = FlavorMode::kPreempt};
    return {.mode = possibility == "NoCandidates" ? FlavorMode::kNoVictims
                    : possibility == "Reclaim"    ? FlavorMode::kReclaim
                                                  : FlavorMode::kPreempt,
            .borrow = static_cast<uint32_t>(said.at("borrowingLevelAfterPreemption").as_int64())};
  };
}

std::string_view ModeText(FlavorMode mode) {
  switch (mode) {
    case FlavorMode::kNone:
      return "NoFit";
    case FlavorMode::kNoVictims:
    case FlavorMode::kPreempt:
    case FlavorMode::kReclaim:
      return "Preempt";
    case FlavorMode::kFit:
      break;
  }
  return "Fit";
}

std::string_view PossibilityText(FlavorMode mode) {
  switch (mode) {
    case FlavorMode::kNoVictims:
      return "NoCandidates";
    case FlavorMode::kPreempt:
      return "Preempt";
    case FlavorMode::kReclaim:
      return "Reclaim";
    case FlavorMode::kNone:
    case FlavorMode::kFit:
      break;
  }
  return "";
}

void ExpectText(std::string_view what, std::string_view got, std::string_view want) {
  if (got != want) throw Mismatch(fmt::format("{}\n  want {}\n  got  {}", what, want, got));
}

std::set<std::string> TextsOf(const std::vector<model::FlavorReason>& reasons,
                              const model::Vocabulary& vocabulary) {
  std::set<std::string> texts;
  for (const model::FlavorReason& reason : reasons)
    texts.insert(translate::FlavorReasonText(reason, vocabulary));
  return texts;
}

std::set<std::string> TextsIn(const JsonArray& list) {
  std::set<std::string> texts;
  for (const Json& text : list) texts.insert(std::string(text.as_string()));
  return texts;
}

// One line with all that is compared of it.
std::string AttemptText(const quota::FlavorTrial& attempt, const model::Vocabulary& vocabulary) {
  return fmt::format("{} {} {} [{}] {} {}", vocabulary.names.View(attempt.flavor),
                     ModeText(attempt.mode), attempt.borrow,
                     fmt::join(TextsOf(attempt.reasons, vocabulary), "; "),
                     translate::ToString(attempt.unfit), PossibilityText(attempt.mode));
}

std::string AttemptTextIn(const JsonObject& attempt) {
  return fmt::format("{} {} {} [{}] {} {}", StringAt(attempt, "flavor"), StringAt(attempt, "mode"),
                     attempt.at("borrow").as_int64(),
                     fmt::join(TextsIn(ArrayAt(attempt, "reasons")), "; "),
                     StringAt(attempt, "noFitReason"), StringAt(attempt, "preemptionPossibility"));
}

// That only tell of flavors that were not tried once another fitted.
bool TellsOfOthersOnly(const JsonObject& attempt) {
  return StringAt(attempt, "mode") == "NoFit" &&
         std::ranges::all_of(ArrayAt(attempt, "reasons"), [](const Json& reason) {
           return std::string_view(reason.as_string()).find(" does not provide resource ") !=
                  std::string_view::npos;
         });
}

// Where something fits, upstream's lists have more than was tried; else less may be there.
void ExpectAttempts(const std::vector<quota::FlavorTrial>& attempts, const JsonArray& want,
                    const model::Vocabulary& vocabulary) {
  if (want.empty()) return;
  std::map<std::string, std::string> got;
  bool fits = false;
  for (const quota::FlavorTrial& attempt : attempts) {
    got[std::string(vocabulary.names.View(attempt.flavor))] = AttemptText(attempt, vocabulary);
    fits = fits || attempt.mode == FlavorMode::kFit;
  }
  std::map<std::string, const JsonObject*> wanted;
  for (const Json& json : want) wanted[StringAt(json.as_object(), "flavor")] = &json.as_object();
  if (!fits) {
    for (const auto& [flavor, attempt] : wanted)
      ExpectText("attempt", got[flavor], AttemptTextIn(*attempt));
    return;
  }
  for (const auto& [flavor, text] : got) {
    const auto found = wanted.find(flavor);
    if (found == wanted.end()) throw Mismatch("attempt of no use: " + text);
    const bool fit = text.starts_with(flavor + " Fit");
    if (fit && TellsOfOthersOnly(*found->second)) continue;
    ExpectText("attempt", text, AttemptTextIn(*found->second));
  }
}

Amounts DemandsIn(const quota::FlavorAssignment& assignment, const model::State& state) {
  Amounts out;
  for (const quota::Demand& demand : assignment.demands) {
    if (demand.amount == 0) continue;
    out[std::string(state.NameOf(state.queues().account(demand.account).flavor))]
       [std::string(state.vocabulary().resources.Name(demand.resource))] = demand.amount;
  }
  return out;
}

void ExpectChoices(Cluster& c, const quota::PodSetFlavors& got, const JsonObject& want,
                   bool with_amounts) {
  const model::Vocabulary& vocabulary = c.state().vocabulary();
  std::map<std::string, std::string> choices;
  for (const quota::FlavorChoice& choice : got.choices) {
    const std::string resource(vocabulary.resources.Name(choice.resource));
    choices[resource] = fmt::format("{} {} {}", vocabulary.names.View(choice.flavor),
                                    ModeText(choice.mode), int64_t{choice.next} - 1);
    if (const Json* amount = ObjectAt(want, "requests").if_contains(resource);
        with_amounts && amount != nullptr) {
      ExpectSame("request of " + resource, choice.amount, AmountOf(resource, *amount));
    }
  }
  std::map<std::string, std::string> wanted;
  for (const auto& [resource, json] : ObjectAt(want, "flavors")) {
    const JsonObject& choice = json.as_object();
    wanted[std::string(resource)] =
        fmt::format("{} {} {}", StringAt(choice, "flavor"), StringAt(choice, "mode"),
                    choice.at("triedFlavorIdx").as_int64());
  }
  ExpectText("flavors", fmt::format("{}", choices), fmt::format("{}", wanted));
}

void ExpectPodSet(Cluster& c, const quota::FlavorAssignment& assignment, size_t i,
                  const Workload& workload, const JsonObject& want) {
  const model::Vocabulary& vocabulary = c.state().vocabulary();
  const quota::PodSetFlavors& got = assignment.pod_sets[i];
  const quota::GroupFlavors& group = assignment.groups[got.group];
  const std::string fault =
      translate::TopologyFaultText(got.fault, got.topology_flavors, vocabulary);
  if (!fault.empty() || want.contains("statusError")) {
    ExpectText("error", fault, StringAt(ObjectAt(want, "statusError"), "message"));
    return;
  }
  ExpectSame("count", workload.request().pod_sets[i].count, want.at("count").as_int64());
  ExpectChoices(c, got, want, /*with_amounts=*/!workload.request().grows);
  ExpectText("reasons", fmt::format("{}", TextsOf(group.reasons, vocabulary)),
             fmt::format("{}", TextsIn(ArrayAt(want, "statusReasons"))));
  ExpectAttempts(group.trials, ArrayAt(want, "flavorAttempts"), vocabulary);
}

// A workload with those pod sets, for whose pods a placer is asked.
model::WorkloadId PutWorkload(Cluster& c, const JsonArray& pod_sets) {
  JsonObject json;
  json["metadata"] = {{"name", "w"}, {"namespace", "n"}, {"uid", "u-n/w"}};
  json["spec"] = {{"podSets", pod_sets}};
  const auto facts =
      translate::WorkloadFacts(ViewOf(&codec::Decoder::Workload, json), c.state().vocabulary());
  if (!facts) throw std::runtime_error(facts.error().message);
  c.state().Apply(*facts);
  return c.state().FindWorkload("u-n/w");
}

quota::FlavorAssignment Assign(Cluster& c, const Case& test, const Workload& workload) {
  for (const Json& json : ArrayAt(test.fixtures, "nodes")) {
    c.state().Apply(translate::NodeFacts(ViewOf(&codec::Decoder::Node, json.as_object()),
                                         c.state().vocabulary()));
  }
  const model::WorkloadId id = PutWorkload(c, workload.json());
  const place::Evaluator evaluator;
  cycle::ClassCaches caches(/*bytes_max=*/0);
  cycle::ClassPlaces counted;
  place::PreemptionScratch scratch;
  cycle::SlotPlacer placer(c.state(), evaluator, caches, counted, scratch, {});
  cycle::WantedPlaces wanted(c.state(), placer, id,
                             c.state().queues().at(workload.request().queue).name);
  const auto misplaced = [&](const quota::FlavorAssignment& flavors, quota::Room room) {
    return wanted.Misplaced(flavors, room);
  };
  const uint64_t before = HashOfLedger(c);
  quota::FlavorAssignment out =
      quota::AssignFlavors(c.state(), workload.request(), OutlookIn(c, test), misplaced);
  ExpectSame("the ledger after", before == HashOfLedger(c), true);
  return out;
}

}  // namespace

void AssignFlavors(const Case& test) {
  Cluster c;
  PutAll(c, test);
  const Workload workload(c, test);
  const quota::FlavorAssignment got = Assign(c, test, workload);
  ExpectText("mode", ModeText(got.mode), StringAt(test.want, "representativeMode"));
  const JsonObject& want = ObjectAt(test.want, "assignment");
  ExpectSame("borrowing", got.borrow, want.at("borrowing").as_int64());
  ExpectText("reason", translate::ToString(got.unfit), StringAt(want, "noFitReason"));
  Expect("usage", DemandsIn(got, c.state()), AmountsIn(ObjectAt(ObjectAt(want, "usage"), "quota")));
  std::map<std::string, JsonObject> wanted;
  for (const Json& pods : ArrayAt(want, "podSets"))
    wanted[StringAt(pods.as_object(), "name")] = pods.as_object();
  for (size_t i = 0; i < workload.size(); ++i) {
    const bool tried = got.pod_sets[i].group != quota::PodSetFlavors::kNotTried;
    ExpectSame(workload.NameOf(i) + " tried", tried, wanted.contains(workload.NameOf(i)));
    if (tried) ExpectPodSet(c, got, i, workload, wanted.at(workload.NameOf(i)));
  }
}

void AllowedFlavors(const Case& test) {
  Cluster c;
  PutAll(c, test);
  const Workload workload(c, test);
  const quota::FlavorAssignment got = Assign(c, test, workload);
  ExpectText("mode", ModeText(got.mode), StringAt(test.want, "representativeMode"));
  if (got.mode != FlavorMode::kFit) return;
  ExpectText("flavor", c.state().NameOf(got.pod_sets[0].choices.at(0).flavor),
             StringAt(test.want, "flavor"));
}

void ChosenFlavors(const Case& test) {
  Cluster c;
  PutAll(c, test);
  const Workload workload(c, test);
  const quota::FlavorAssignment got = Assign(c, test, workload);
  ExpectText("mode", ModeText(got.mode), StringAt(test.want, "mode"));
  std::map<std::string, std::string> flavors;
  for (const quota::FlavorChoice& choice : got.pod_sets[0].choices) {
    flavors[std::string(c.state().vocabulary().resources.Name(choice.resource))] =
        c.state().NameOf(choice.flavor);
  }
  std::map<std::string, std::string> want;
  for (const auto& [resource, flavor] : ObjectAt(test.want, "flavors"))
    want[std::string(resource)] = std::string(flavor.as_string());
  ExpectText("flavors", fmt::format("{}", flavors), fmt::format("{}", want));
}

void NoFitReason(const Case& test) {
  Cluster c;
  PutAll(c, test);
  const Workload workload(c, test);
  const quota::FlavorAssignment got = Assign(c, test, workload);
  ExpectText("reason", translate::ToString(got.unfit), StringAt(test.want, "noFitReason"));
  const JsonObject& want = ObjectAt(test.want, "flavorAttemptReasons");
  for (const quota::GroupFlavors& group : got.groups) {
    for (const quota::FlavorTrial& attempt : group.trials) {
      const std::string_view flavor = c.state().NameOf(attempt.flavor);
      if (want.contains(flavor))
        ExpectText(flavor, translate::ToString(attempt.unfit), StringAt(want, flavor));
    }
  }
}

void TopologyFlavors(const Case& test) {
  Cluster c;
  PutAll(c, test);
  const Workload workload(c, test);
  const quota::FlavorAssignment got = Assign(c, test, workload);
  const JsonObject& errors = ObjectAt(test.want, "podSetErrors");
  const JsonObject& flavors = ObjectAt(test.want, "podSetFlavors");
  for (size_t i = 0; i < workload.size(); ++i) {
    const quota::PodSetFlavors& pods = got.pod_sets[i];
    ExpectText(
        "error of " + workload.NameOf(i),
        translate::TopologyFaultText(pods.fault, pods.topology_flavors, c.state().vocabulary()),
        StringAt(ObjectAt(errors, workload.NameOf(i)), "message"));
    ExpectChoices(c, pods, {{"flavors", ObjectAt(flavors, workload.NameOf(i))}},
                  /*with_amounts=*/false);
  }
}

void IsPreferred(const Case& test) {
  const auto candidate = [&](const char* key) {
    static const std::map<std::string, FlavorMode> kModes = {
        {"noFit", FlavorMode::kNone},
        {"noPreemptionCandidates", FlavorMode::kNoVictims},
        {"preempt", FlavorMode::kPreempt},
        {"reclaim", FlavorMode::kReclaim},
        {"fit", FlavorMode::kFit}};
    const JsonObject& json = ObjectAt(test.input, key);
    return quota::FlavorCandidate{
        .mode = kModes.at(StringAt(json, "preemptionMode")),
        .borrow = static_cast<uint32_t>(json.at("borrowingLevel").as_int64())};
  };
  ExpectSame("preferred",
             quota::IsBetter(
                 candidate("a"), candidate("b"),
                 QueueWith("flavorFungibility", test.input.at("flavorFungibility")).fungibility),
             test.want.at("preferred").as_bool());
}

// Without the gate a look is never the one before, and its shape not known.
void LastAssignmentOutdated(const Case& test) {
  const Json* gate = test.gates.if_contains("FlavorFungibilityPreserveScanProgress");
  const bool known = gate == nullptr || gate->as_bool();
  const auto shape = [&](const std::string& hash) {
    return known && !hash.empty() && hash != "unknown" ? HashOf(hash) : 0;
  };
  const JsonObject& last = ObjectAt(test.input, "last");
  const int64_t cycle = test.input.at("currentSchedulingCycle").as_int64();
  const quota::ScanStamp then{.cycle = known ? last.at("schedulingCycle").as_int64() : cycle - 2,
                              .generation = last.at("clusterQueueGeneration").as_int64(),
                              .shape = shape(StringAt(last, "schedulingHash"))};
  const quota::ScanStamp now{.cycle = cycle,
                             .generation = test.input.at("currentCQGeneration").as_int64(),
                             .shape = shape(StringAt(test.input, "currentSchedulingHash"))};
  ExpectSame("outdated", quota::IsOutdated(then, now), test.want.at("outdated").as_bool());
}

void PendingFlavors(const Case& test) {
  quota::FlavorAssignment assignment;
  for (const Json& pods : ArrayAt(ObjectAt(test.input, "state"), "lastTriedFlavorIdx")) {
    quota::PodSetFlavors& to = assignment.pod_sets.emplace_back();
    for (const auto& tried : pods.as_object())
      to.choices.push_back({.next = static_cast<uint32_t>(tried.value().as_int64() + 1)});
  }
  ExpectSame("more flavors", assignment.has_more(), test.want.at("pendingFlavors").as_bool());
}

}  // namespace berth::kueue
