#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "cycle/test_quota.h"

// Test code: workloads whose pods stand by a topology.
namespace berth::cycle {

inline constexpr const char* kHost = "kubernetes.io/hostname";

// Racks of nodes, a queue "q" with a flavor of them, and what the objects of workloads say.
class TopologyWorld : public QuotaWorld {
 public:
  explicit TopologyWorld(bool joint = true,
                         const std::vector<std::string>& levels = {"rack", kHost},
                         const model::Faults& faults = {}, Duration delay = {})
      : QuotaWorld(Engine::Options{
            .joint_placement = joint, .second_pass_delay = delay, .faults = faults}) {
    PutQueue(8000);
    model::TopologyUpsert topology{.name = "t", .uid = "u-t", .levels = {}};
    for (const std::string& level : levels) topology.levels.push_back(Name(level));
    topology.by_node = levels.back() == kHost;
    engine.Apply(topology);
    engine.Apply(model::FlavorUpsert{.name = "spot", .uid = "u-spot", .topology = "t"});
  }
  void PutQueue(int64_t cpu, model::QueuePreemption preemption = {}) {
    QuotaWorld::Put(QueueSpec{.name = "q", .flavors = {{"spot", cpu}}, .preemption = preemption});
  }
  // From now on the queue asks for that check.
  void AskFor(const std::string& check, bool brings_nodes = true) {
    model::Vocabulary& v = engine.vocabulary();
    model::QueueUpsert facts{.name = "q", .uid = "u-q"};
    const std::vector<model::NameId> flavors = {Name("spot")};
    facts.quotas = {{.flavor = flavors[0], .resource = model::kCpu, .quota = {.nominal = 8000}}};
    const std::vector<model::ResourceId> resources = {model::kCpu};
    const std::vector<model::ResourceGroup> groups = {{.resources = resources, .flavors = flavors}};
    facts.groups = v.resource_groups.Intern(groups);
    if (!check.empty())
      facts.checks = {{.name = Name(check), .flavors = {}, .brings_nodes = brings_nodes}};
    engine.Apply(facts);
  }
  model::NameId Name(const std::string& text) { return engine.vocabulary().names.Intern(text); }
  void Node(const std::string& name, const std::string& rack, int64_t cpu = 1000,
            bool ready = true) {
    model::NodeUpsert facts = cycle::FactsOf(
        engine.vocabulary(),
        TestNode{.name = name, .cpu = cpu, .labels = {{"rack", rack}, {kHost, name}}});
    facts.ready = ready;
    engine.Apply(facts);
  }
  void NodeGone(const std::string& name) {
    engine.Apply(model::NodeRemove{.name = name, .uid = ""});
  }

  using QuotaWorld::Put;
  // `required`: a level; empty: it does not ask.
  void Put(const WorkloadSpec& spec, const std::string& required) {
    model::WorkloadUpsert& o = objects[spec.name] = FactsOf(spec);
    o.slots[0].topology.asked = !required.empty();
    if (!required.empty()) o.slots[0].topology.required = Name(required);
    Tell(spec.name);
  }
  // `size` pods each stand together in a domain of the level.
  void PutSliced(const WorkloadSpec& spec, const std::string& level, uint32_t size) {
    model::WorkloadUpsert& o = objects[spec.name] = FactsOf(spec);
    o.slots[0].topology.asked = true;
    o.slots[0].topology.slices = {{.level = Name(level), .size = size}};
    Tell(spec.name);
  }
  // What its object says is told.
  void Tell(const std::string& name) {
    model::WorkloadUpsert& o = objects.at(name);
    o.status.on_unhealthy_node = false;
    o.status.awaits_topology = false;
    for (const model::TopologyPlaces& places : o.reserved.topologies) {
      o.status.awaits_topology = o.status.awaits_topology || places.shares.empty();
      for (const model::TopologyShare& share : places.shares) {
        if (std::ranges::find(o.unhealthy, share.values.back()) != o.unhealthy.end())
          o.status.on_unhealthy_node = true;
      }
    }
    engine.Apply(o);
  }
  // Its reservation is written.
  void Reserved(const std::string& name, bool admitted = true) {
    model::WorkloadUpsert& o = objects.at(name);
    o.reserved = RowOf(name).decided;
    o.reserved.counts.clear();
    o.status.reserved = true;
    o.status.reserved_at = now;
    o.status.admitted = admitted;
    Tell(name);
  }
  // The check `c`, which was pending, is ready.
  void ChecksPass(const std::string& name) {
    model::WorkloadUpsert& o = objects.at(name);
    o.checks_pending = false;
    o.checks = {Name("c")};
    o.status.checks_ready = true;
    Tell(name);
  }
  // What was decided of it since is written.
  void Passed(const model::PassDecision& pass) {
    const std::string name(state().UidOf(pass.uid).substr(2));
    model::WorkloadUpsert& o = objects.at(name);
    if (pass.evicts()) {
      o.status.evicted_for = model::EvictedFor::kOther;
      o.unhealthy.clear();
      o.checks.clear();
    } else {
      o.reserved = RowOf(name).decided;
      o.reserved.counts.clear();
      if (pass.pass == model::Pass::kPlace) o.status.admitted = true;
      std::erase_if(o.unhealthy, [&](model::NameId node) {
        return std::ranges::find(pass.failed, node) != pass.failed.end();
      });
    }
    Tell(name);
  }
  std::string Pass() {
    const model::Plan plan = engine.Cycle(now);
    std::string text;
    for (const model::PassDecision& pass : plan.passes) text += TextOf(pass);
    for (const model::PassDecision& pass : plan.passes) Passed(pass);
    for (const std::string& line : model::Audit(state())) text += line;
    return text;
  }
  void Fails(const std::string& name, const std::string& node) {
    objects.at(name).unhealthy.push_back(Name(node));
    Tell(name);
  }
  void Starts(const WorkloadSpec& spec, const std::string& required) {
    Put(spec, required);
    engine.Cycle(now);
    Reserved(spec.name);
  }
  [[nodiscard]] int64_t FreeCpu(const std::string& node) const {
    return state().ledger().nodes().free(model::kCpu, state().FindNode(node).value);
  }
  void Pod(const std::string& of, const std::string& name, const std::string& on,
           bool bound = false) {
    model::PodUpsert facts = cycle::FactsOf(
        engine.vocabulary(),
        TestPod{.name = name, .cpu = 1000, .selector = {{kHost, on}}, .node = bound ? on : ""});
    facts.job = "u-job-" + of;
    engine.Apply(facts);
  }

  std::map<std::string, model::WorkloadUpsert> objects;
};

}  // namespace berth::cycle
