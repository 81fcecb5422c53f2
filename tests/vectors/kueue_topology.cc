#include "kueue_topology.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/well_known.h"
#include "codec/decode.h"
#include "codec/json.h"
#include "controllers/topology.h"
#include "cycle/topology.h"
#include "reading.h"
#include "translate/facts.h"
#include "translate/quota_facts.h"
#include "translate/quota_text.h"

// Goal: pods are placed in topologies where Kueue places them, and are told why not in its words.
// Method: nodes and pods go the way of objects through decoding and translation; what others use is
// pods that stand there; the placement is asked for, or that of pods whose node failed.
namespace berth::kueue {
namespace {

using cycle::FlavorTopology;

constexpr std::string_view kTopology = "default";

// A pod with these requests, in Kueue's units.
JsonObject SpecOf(const JsonObject& set) {
  JsonObject requests;
  for (const auto& request : ObjectAt(set, "singlePodRequests")) {
    const int64_t amount = request.value().to_number<int64_t>();
    requests[request.key()] = fmt::format("{}{}", amount, request.key() == "cpu" ? "m" : "");
  }
  JsonObject spec{{"containers",
                   JsonArray{JsonObject{{"name", "c"}, {"resources", {{"requests", requests}}}}}}};
  for (const char* key : {"tolerations", "nodeSelector"}) {
    if (const Json* member = set.if_contains(key)) spec[key] = *member;
  }
  if (const Json* affinity = set.if_contains("nodeAffinity"))
    spec["affinity"] = JsonObject{{"nodeAffinity", *affinity}};
  return spec;
}

// The gates that change what is placed where, and are off.
void RefuseAlphaGates(const JsonObject& gates) {
  for (const char* gate : {"TASBalancedPlacement", "TASRespectNodeAffinityPreferred",
                           "ElasticJobsViaWorkloadSlicesWithTAS"}) {
    const Json* on = gates.if_contains(gate);
    if (on != nullptr && on->as_bool()) throw NotApplicable(fmt::format("placement by {}", gate));
  }
  for (const char* gate : {"TASProfileMixed", "TASMultiLayerTopology"}) {
    const Json* on = gates.if_contains(gate);
    if (on != nullptr && !on->as_bool())
      throw NotApplicable(fmt::format("placement without {}", gate));
  }
}

class World {
 public:
  explicit World(const Case& test) {
    model::Vocabulary& v = c_.state().vocabulary();
    model::TopologyUpsert topology{.name = std::string(kTopology), .uid = "t", .levels = {}};
    for (const Json& level : ArrayAt(test.input, "levels"))
      topology.levels.push_back(c_.Name(std::string_view(level.as_string())));
    topology.by_node = topology.levels.back() == c_.Name(api::kHostnameLabel);
    c_.state().Apply(topology);
    model::FlavorUpsert flavor{
        .name = "flavor", .uid = "f", .labels = {}, .topology = std::string(kTopology)};
    for (const auto& label : ObjectAt(test.input, "flavorNodeLabels"))
      flavor.labels.push_back({.key = c_.Name(label.key()),
                               .value = c_.Name(std::string_view(label.value().as_string()))});
    c_.state().Apply(flavor);
    for (const Json& node : ArrayAt(test.input, "nodes"))
      c_.state().Apply(translate::NodeFacts(ViewOf(&codec::Decoder::Node, node.as_object()), v));
    for (const Json& pod : ArrayAt(test.input, "pods")) PutPod(pod.as_object());
    for (const char* key : {"priorOwnUsage", "priorFlavorUsage"}) {
      for (const Json& usage : ArrayAt(test.input, key)) PutUsage(usage.as_object());
    }
    topology_.emplace(c_.state(), evaluator_, *c_.state().flavors().Find(c_.Name("flavor")));
  }
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  struct Set {
    model::ClassId class_id;
    model::TopologyWish wish;
    uint32_t count = 0;
  };
  Set SetOf(const JsonObject& set) {
    const auto pod = codec::DecodePod(
        codec::PrintJson(JsonObject{{"metadata", {{"name", "p"}}}, {"spec", SpecOf(set)}}));
    if (!pod) throw std::runtime_error(pod.error().message);
    const auto spec = translate::ClassOf(*pod, c_.state().vocabulary());
    if (!spec) throw std::runtime_error(spec.error().message);
    Set out{.class_id = c_.state().vocabulary().classes.Intern(*spec),
            .wish = {},
            .count = static_cast<uint32_t>(set.at("count").as_int64())};
    JsonObject request = ObjectAt(set, "topologyRequest");
    if (set.contains("podSetGroupName")) request["podSetGroupName"] = set.at("podSetGroupName");
    const JsonObject workload{{"spec", {{"podSets", {{{"topologyRequest", request}}}}}}};
    const auto view = codec::Decoder().Workload(codec::PrintJson(workload));
    if (!view) throw std::runtime_error(view.error().message);
    out.wish = translate::TopologyWishOf(*view->pod_sets[0].topology, c_.state().vocabulary());
    out.wish.asked = set.contains("topologyRequest");
    return out;
  }

  FlavorTopology& topology() { return *topology_; }
  Cluster& cluster() { return c_; }

  [[nodiscard]] std::string TextOf(const model::TopologyRefusal& refusal) {
    return translate::TopologyRefusalText(refusal, c_.state().vocabulary());
  }
  [[nodiscard]] std::string TextOf(const std::vector<cycle::TopologyShare>& shares) {
    std::string text;
    for (const cycle::TopologyShare& share : shares) {
      for (const model::NameId value : share.values)
        text.append(c_.state().NameOf(value)).append("/");
      text += fmt::format("={} ", share.count);
    }
    return text;
  }

 private:
  void PutPod(const JsonObject& object) {
    const auto pod = codec::DecodePod(codec::PrintJson(object));
    if (!pod) throw std::runtime_error(pod.error().message);
    auto facts = translate::PodFacts(*pod, c_.state().vocabulary());
    if (!facts) throw std::runtime_error(facts.error().message);
    facts->uid = fmt::format("pod-{}", ++pods_);
    facts->key = facts->uid;
    c_.state().Apply(*std::move(facts));
  }
  // Of a domain: pods on the first node there is in it.
  void PutUsage(const JsonObject& usage) {
    const model::State& state = c_.state();
    std::string node;
    for (uint32_t row = state.nodes().size(); row-- > 0;) {
      const auto labels = state.labels().View(state.nodes().labels(model::NodeId{row}));
      const auto is = [&](const Json& value) {
        return std::ranges::any_of(labels, [&](const model::Label& label) {
          return state.NameOf(label.value) == std::string_view(value.as_string());
        });
      };
      if (std::ranges::all_of(ArrayAt(usage, "values"), is))
        node = state.NameOf(state.nodes().name(model::NodeId{row}));
    }
    for (int64_t i = usage.at("count").as_int64(); i > 0; --i) {
      JsonObject spec = SpecOf(usage);
      spec["nodeName"] = node;
      PutPod({{"metadata", {{"name", "p"}}}, {"spec", spec}, {"status", {{"phase", "Running"}}}});
    }
  }

  Cluster c_;
  const place::Evaluator evaluator_;
  std::optional<FlavorTopology> topology_;
  int64_t pods_ = 0;
};

std::string WantText(const Json& assignment) {
  std::string text;
  if (!assignment.is_object()) return text;
  for (const Json& domain : ArrayAt(assignment.as_object(), "domains")) {
    for (const Json& value : ArrayAt(domain.as_object(), "values"))
      text.append(std::string_view(value.as_string())).append("/");
    text += fmt::format("={} ", domain.as_object().at("count").as_int64());
  }
  return text;
}

void ExpectText(std::string_view what, const std::string& got, const std::string& want) {
  if (got != want) throw Mismatch(fmt::format("{}\n  want {}\n  got  {}", what, want, got));
}

// Where the pods of the set stand, as the workload's object says.
std::vector<cycle::TopologyShare> StandsIn(Cluster& c, const JsonObject& workload,
                                           std::string_view set) {
  const api::Workload view = ViewOf(&codec::Decoder::Workload, workload);
  std::vector<cycle::TopologyShare> stands;
  if (!view.admission) return stands;
  for (const api::PodSetAssignment& assignment : view.admission->pod_sets) {
    if (assignment.name != set || !assignment.topology) continue;
    for (const api::TopologyDomain& domain : assignment.topology->domains) {
      cycle::TopologyShare& share = stands.emplace_back();
      share.count = static_cast<uint32_t>(domain.count);
      for (const std::string& value : domain.values) share.values.push_back(c.Name(value));
    }
  }
  return stands;
}

std::vector<model::NameId> FailedIn(Cluster& c, const JsonObject& workload) {
  std::vector<model::NameId> failed;
  for (const Json& node : ArrayAt(ObjectAt(workload, "status"), "unhealthyNodes"))
    failed.push_back(c.Name(StringAt(node.as_object(), "name")));
  return failed;
}

bool OwnedByOnePod(const JsonObject& workload) {
  const JsonArray& owners = ArrayAt(ObjectAt(workload, "metadata"), "ownerReferences");
  return owners.size() == 1 && StringAt(owners[0].as_object(), "kind") == "Pod" &&
         !ObjectAt(ObjectAt(workload, "metadata"), "annotations")
              .contains("kueue.x-k8s.io/is-group-workload");
}

}  // namespace

void FindTopologyAssignments(const Case& test) {
  RefuseAlphaGates(test.gates);
  const JsonObject& workload = ObjectAt(test.input, "workload");
  if (OwnedByOnePod(workload)) throw NotApplicable("workloads of single pods");
  World world(test);
  const JsonArray& json = ArrayAt(test.input, "podSets");
  std::vector<World::Set> sets;
  for (const Json& set : json) sets.push_back(world.SetOf(set.as_object()));
  std::vector<const model::TopologyWish*> wishes;
  for (const World::Set& set : sets) wishes.push_back(&set.wish);
  const JsonArray& want = ArrayAt(test.want, "podSets");
  const std::vector<model::NameId> failed = FailedIn(world.cluster(), workload);
  for (const std::vector<size_t>& together : cycle::TogetherOf(wishes)) {
    std::vector<FlavorTopology::PodSet> asked;
    for (const size_t i : together)
      asked.push_back({sets[i].class_id, sets[i].count, &sets[i].wish});
    const auto stands =
        StandsIn(world.cluster(), workload, StringAt(json[together[0]].as_object(), "name"));
    const FlavorTopology::Places places =
        failed.empty() ? world.topology().Place(asked, {})
                       : world.topology().Replace(asked[0], stands, failed, {});
    for (size_t k = 0; k < together.size(); ++k) {
      const JsonObject& of = want[together[k]].as_object();
      ExpectText("why not", places ? "" : world.TextOf(places.error()),
                 StringAt(of, "failureReason"));
      if (places)
        ExpectText("domains", world.TextOf((*places)[k]), WantText(of.at("topologyAssignment")));
    }
  }
}

void ReplaceUnhealthyNode(const Case& test) {
  World world(test);
  JsonObject json = test.input;
  World::Set set = world.SetOf(json);
  const JsonObject& workload = ObjectAt(test.input, "workload");
  const std::vector<model::NameId> failed = FailedIn(world.cluster(), workload);
  const FlavorTopology::Places places = world.topology().Replace(
      {set.class_id, set.count, &set.wish},
      StandsIn(world.cluster(), workload, StringAt(test.input, "podSetName")), failed, {});
  ExpectText("why not", places ? "" : world.TextOf(places.error()),
             StringAt(test.want, "failureReason"));
  if (places)
    ExpectText("domains", world.TextOf((*places)[0]), WantText(test.want.at("topologyAssignment")));
}

// The nodes whose failure concerns the workload.
void UsedNodes(const Case& test) {
  const JsonObject& json = ObjectAt(test.input, "workload");
  const api::Workload workload = ViewOf(&codec::Decoder::Workload, json);
  std::set<std::string> got;
  if (workload.admission) {
    for (const api::PodSetAssignment& pods : workload.admission->pod_sets) {
      if (!pods.topology) continue;
      for (const api::TopologyDomain& domain : pods.topology->domains) {
        if (controllers::HasPlaceOn(workload, domain.values.back()))
          got.insert(domain.values.back());
      }
    }
  }
  std::set<std::string> want;
  for (const Json& name : ArrayAt(test.want, "result")) want.emplace(name.as_string());
  if (got != want)
    throw Mismatch(fmt::format("want {}, got {}", fmt::join(want, " "), fmt::join(got, " ")));
}

}  // namespace berth::kueue
