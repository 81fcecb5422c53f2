#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "api/requests.h"
#include "api/types.h"
#include "cycle/engine.h"
#include "place/evaluate.h"
#include "translate/facts.h"
#include "translate/text.h"

// Goal: what filters and preferred affinity say of interned facts is what they mean of the objects.
// Method: a twin that reads the objects' own strings, on random pods and nodes over a small
// alphabet, so that names and values meet often.
namespace berth::sim {
namespace {

// ---- The twin: Kubernetes' words, one at a time -----------------------------------------------

std::optional<int64_t> Integer(const std::string& text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || *end != '\0') return std::nullopt;
  return value;
}

bool Meets(const api::Requirement& r, std::optional<std::string_view> label) {
  const bool listed = label.has_value() && std::ranges::find(r.values, *label) != r.values.end();
  if (r.op == "In") return listed;
  if (r.op == "NotIn") return !listed;
  if (r.op == "Exists") return label.has_value();
  if (r.op == "DoesNotExist") return !label.has_value();
  const auto left = label.has_value() ? Integer(std::string(*label)) : std::nullopt;
  const auto right = Integer(r.values[0]);
  if (!left.has_value() || !right.has_value()) return false;
  return r.op == "Gt" ? *left > *right : *left < *right;
}

bool Matches(const api::NodeSelectorTerm& term, const api::Node& node) {
  if (term.match_expressions.empty() && term.match_fields.empty()) return false;
  for (const api::Requirement& r : term.match_expressions) {
    const bool number = r.op == "Gt" || r.op == "Lt";
    if (number && !Integer(r.values[0]).has_value()) return false;
    if (!Meets(r, api::Find(node.meta.labels, r.key))) return false;
  }
  return std::ranges::all_of(term.match_fields,
                             [&](const auto& r) { return Meets(r, node.meta.name); });
}

bool Tolerated(const api::Pod& pod, const api::Taint& taint) {
  return std::ranges::any_of(pod.spec->tolerations, [&](const api::Toleration& t) {
    if (!t.effect.empty() && t.effect != taint.effect) return false;
    if (!t.key.empty() && t.key != taint.key) return false;
    return t.op == "Exists" || t.value == taint.value;
  });
}

// The names that PreFilter leaves in the race.
std::optional<std::set<std::string>> Race(const api::Pod& pod) {
  if (!pod.spec->required_node_affinity.has_value()) return std::nullopt;
  std::set<std::string> names;
  for (const api::NodeSelectorTerm& term : *pod.spec->required_node_affinity) {
    bool named = false;
    std::set<std::string> allowed = {"n0", "n1", "n2", "n3", "n4", "n5"};
    for (const api::Requirement& r : term.match_fields) {
      if (r.op != "In") continue;
      named = true;
      std::erase_if(allowed, [&](const auto& name) { return name != r.values[0]; });
    }
    if (!named) return std::nullopt;
    names.merge(allowed);
  }
  return names;
}

// The first plugin that refuses; empty when none does. `used` is what runs on the node.
std::string Refuses(const api::Pod& pod, const api::Node& node, const std::vector<api::Pod>& used) {
  if (const auto race = Race(pod)) {
    if (race->empty()) return "AffinityConflict";
    if (!race->contains(node.meta.name)) return "NotNamed";
  }
  if (node.unschedulable &&
      !Tolerated(pod, {.key = "node.kubernetes.io/unschedulable", .effect = "NoSchedule"})) {
    return "Unschedulable";
  }
  for (const api::Taint& taint : node.taints) {
    if (taint.effect != "PreferNoSchedule" && !Tolerated(pod, taint)) return "Taint";
  }
  for (const auto& [key, value] : pod.spec->node_selector) {
    if (api::Find(node.meta.labels, key) != value) return "Affinity";
  }
  if (pod.spec->required_node_affinity.has_value() &&
      std::ranges::none_of(*pod.spec->required_node_affinity,
                           [&](const auto& t) { return Matches(t, node); })) {
    return "Affinity";
  }
  if (api::Find(node.allocatable, "pods").value_or(0) < static_cast<int64_t>(used.size()) + 1)
    return "Insufficient";
  for (const api::ResourceAmount& want : api::PendingRequests(pod)) {
    int64_t free = api::Find(node.allocatable, want.name).value_or(0);
    for (const api::Pod& other : used)
      free -= api::Find(api::BoundRequests(other), want.name).value_or(0);
    if (want.amount > 0 && want.amount > free) return "Insufficient";
  }
  if (pod.spec->containers[0].restarts_all &&
      std::ranges::find(node.declared_features, "RestartAllContainersOnContainerExits") ==
          node.declared_features.end()) {
    return "Features";
  }
  return "None";
}

// ---- Random objects
// ------------------------------------------------------------------------------

template <typename... T>
std::string Pick(T... choices) {
  return *rc::gen::elementOf(std::vector<std::string>{choices...});
}
bool OneIn(int n) { return *rc::gen::inRange(0, n) == 0; }

api::Requirement Expression() {
  api::Requirement r{.key = Pick("a", "b"),
                     .op = Pick("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")};
  if (r.op == "In" || r.op == "NotIn") r.values = {Pick("1", "x"), Pick("5", "y")};
  if (r.op == "Gt" || r.op == "Lt") r.values = {Pick("1", "5", "x")};
  return r;
}

api::NodeSelectorTerm Term() {
  api::NodeSelectorTerm term;
  const int expressions = *rc::gen::inRange(0, 3);
  for (int i = 0; i < expressions; ++i) term.match_expressions.push_back(Expression());
  const int fields = OneIn(2) ? *rc::gen::inRange(0, 3) : 0;
  for (int i = 0; i < fields; ++i) {
    term.match_fields.push_back(
        {"metadata.name", Pick("In", "In", "NotIn"), {Pick("n0", "n1", "n2")}});
  }
  return term;
}

api::ResourceList Amounts(int64_t most) {
  api::ResourceList list;
  for (const char* name : {"cpu", "example.com/gpu", "memory"}) {
    if (!OneIn(3)) list.push_back({name, *rc::gen::inRange<int64_t>(0, most)});
  }
  return list;
}

api::Pod DrawPod(int number) {
  api::Pod pod;
  pod.meta.name = fmt::format("p{}", number);
  pod.meta.uid = pod.meta.name;
  api::PodSpec& spec = pod.spec.Edit();
  spec.containers.resize(1);
  spec.containers[0].requests = Amounts(6);
  spec.containers[0].restarts_all = OneIn(5);
  if (OneIn(3)) spec.node_selector = {{Pick("a", "b"), Pick("1", "5")}};
  if (OneIn(2)) {
    spec.required_node_affinity.emplace();
    const int terms = *rc::gen::inRange(1, 4);
    for (int i = 0; i < terms; ++i) spec.required_node_affinity->push_back(Term());
  }
  const int preferred = *rc::gen::inRange(0, 3);
  for (int i = 0; i < preferred; ++i) {
    spec.preferred_node_affinity.push_back(
        {.weight = *rc::gen::inRange<int64_t>(1, 101), .term = Term()});
  }
  const int tolerations = *rc::gen::inRange(0, 3);
  for (int i = 0; i < tolerations; ++i) {
    api::Toleration t{.key = Pick("k", "l", "node.kubernetes.io/unschedulable"),
                      .op = Pick("", "Equal", "Exists"),
                      .effect = Pick("", "NoSchedule", "NoExecute", "PreferNoSchedule")};
    if (t.op != "Exists") t.value = Pick("", "v");
    if (t.op == "Exists" && OneIn(4)) t.key.clear();
    spec.tolerations.push_back(t);
  }
  return pod;
}

api::Node DrawNode(int number) {
  api::Node node;
  node.meta.name = fmt::format("n{}", number);
  node.meta.uid = node.meta.name;
  for (const char* key : {"a", "b"}) {
    if (!OneIn(3)) node.meta.labels.emplace_back(key, Pick("1", "5", "9", "x", "y"));
  }
  node.unschedulable = OneIn(6);
  const int taints = OneIn(2) ? *rc::gen::inRange(0, 3) : 0;
  for (int i = 0; i < taints; ++i) {
    node.taints.push_back({.key = Pick("k", "l"),
                           .value = Pick("", "v"),
                           .effect = Pick("NoSchedule", "NoExecute", "PreferNoSchedule")});
  }
  node.allocatable = Amounts(16);
  node.allocatable.push_back({"pods", *rc::gen::inRange(0, 4)});
  if (!OneIn(3)) node.declared_features = {"RestartAllContainersOnContainerExits"};
  return node;
}

TEST(PlacementTest, InternedFactsMeanWhatTheObjectsSay) {
  EXPECT_TRUE(rc::check([] {
    cycle::Engine engine;
    std::vector<api::Node> nodes;
    std::vector<std::vector<api::Pod>> used;
    const int nodes_count = *rc::gen::inRange(1, 6);
    for (int i = 0; i < nodes_count; ++i) {
      nodes.push_back(DrawNode(i));
      engine.Apply(translate::NodeFacts(nodes.back(), engine.vocabulary()));
      used.emplace_back();
      const int pods = *rc::gen::inRange(0, 3);
      for (int p = 0; p < pods; ++p) {
        api::Pod pod = DrawPod(i * 10 + p);
        pod.node_name = nodes.back().meta.name;
        engine.Apply(translate::PodFacts(pod, engine.vocabulary()).value());
        used.back().push_back(pod);
      }
    }
    const api::Pod pod = DrawPod(99);
    const model::PodUpsert facts = translate::PodFacts(pod, engine.vocabulary()).value();
    if (OneIn(2)) engine.Apply(facts);  // Its selectors are materialised then.
    const model::State& state = engine.state();
    for (size_t i = 0; i < nodes.size(); ++i) {
      const model::NodeId n = state.FindNode(nodes[i].meta.name);
      const model::Verdict verdict =
          engine.evaluator().Filter(state, facts.class_id, n, nullptr, facts.pin);
      RC_ASSERT(std::string(translate::ToString(verdict.kind)) == Refuses(pod, nodes[i], used[i]));
      if (!verdict.fits()) continue;
      int32_t weight = 0;
      for (const api::PreferredTerm& p : pod.spec->preferred_node_affinity) {
        if (Matches(p.term, nodes[i])) weight += static_cast<int32_t>(p.weight);
      }
      int32_t taints = 0;
      for (const api::Taint& taint : nodes[i].taints) {
        if (taint.effect == "PreferNoSchedule" && !Tolerated(pod, taint)) ++taints;
      }
      const model::NodeScore score = engine.evaluator().Score(state, facts.class_id, n);
      RC_ASSERT(score.affinity_raw == weight);
      RC_ASSERT(score.taints_raw == taints);
    }
  }));
}

}  // namespace
}  // namespace berth::sim
