#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cycle/engine.h"

// Test code: short ways to say facts.
namespace berth::cycle {

struct TestNode {
  std::string name;
  std::string uid;  // Empty: "uid-" and the name.
  int64_t cpu = 4000;
  int64_t memory = int64_t{16} << 30;
  int64_t pods = 110;
  int64_t gpus = 0;
  std::string model;
  std::vector<std::pair<std::string, std::string>> labels;
  struct Taint {
    std::string key;
    model::TaintEffect effect = model::TaintEffect::kNoSchedule;
  };
  std::vector<Taint> taints;
  bool unschedulable = false;
  std::vector<std::pair<std::string, int64_t>> images;  // With sizes in MiB.
};

struct TestPod {
  std::string name;
  std::string uid;  // Empty: "uid-" and the name.
  int64_t cpu = 100;
  int64_t memory = 0;
  int32_t priority = 0;
  int64_t created = 0;  // Seconds.
  uint32_t gpu_milli = 0;
  std::vector<std::string> models;
  std::vector<std::pair<std::string, std::string>> selector;
  struct Preference {
    std::string key;
    std::string value;
    uint32_t weight = 1;
  };
  std::vector<Preference> prefers;
  std::vector<std::string> tolerates;  // Keys, any effect.
  std::string pin;
  std::string node;
  std::string nominated;
  bool gated = false;
  bool terminating = false;
  bool marked = false;    // As the victim of a preemption.
  int64_t deadline = 0;   // Seconds; of its deletion.
  bool never = false;     // Its preemptionPolicy.
  bool finished = false;  // It succeeded.
  bool foreign = false;
  std::string group;
  std::string role;
  uint32_t host_port = 0;  // Of any IP; 0: none.
  std::vector<std::pair<std::string, std::string>> labels;
  struct Spread {
    std::string key;  // Of nodes.
    std::string app;  // Pods whose label "app" is that count.
    uint32_t max_skew = 1;
    bool hard = true;
    uint32_t min_domains = 1;
    bool honors_taints = false;
    bool by_default = false;
  };
  std::vector<Spread> spread;
  struct Affinity {
    model::AffinityKind kind = model::AffinityKind::kRequired;
    std::string key;   // Of nodes.
    std::string app;   // Pods whose label "app" is that.
    std::string team;  // Of namespaces whose label "team" is that; empty: of "default".
    uint32_t weight = 1;
  };
  std::vector<Affinity> affinity;
  std::vector<std::string> images;
  std::vector<std::string> claims;      // Names of PersistentVolumeClaims.
  std::vector<std::string> own_claims;  // Of ephemeral volumes, by the volume's name.
  std::vector<std::string> disks;       // GCE persistent disks, not read-only.
  std::string profile;                  // Its scheduler's name.
  bool careless = false;            // Asks for none of the amounts and ports that it is charged.
  bool asks = false;                // Extenders are asked about it.
  bool asks_about_victims = false;  // Likewise, of whom it evicts.
  uint64_t looks = 1;               // To them.
};

struct TestGroup {
  std::string name;
  std::string uid;  // Empty: "uid-" and the name.
  int32_t min_member = 1;
  std::vector<std::pair<std::string, int32_t>> roles;
  std::optional<int32_t> priority;
  int64_t created = 0;  // Seconds.
};

inline model::NodeUpsert FactsOf(model::Vocabulary& v, const TestNode& node) {
  model::NodeUpsert facts{.name = node.name,
                          .uid = node.uid.empty() ? "uid-" + node.name : node.uid};
  facts.allocatable = {
      {model::kCpu, node.cpu}, {model::kMemory, node.memory}, {model::kPods, node.pods}};
  if (node.gpus > 0) facts.allocatable.push_back({model::kGpuMilli, node.gpus * 1000});
  if (!node.model.empty()) facts.gpu_model = v.names.Intern(node.model);
  for (const auto& [key, value] : node.labels) {
    facts.labels.push_back({v.names.Intern(key), v.names.Intern(value)});
  }
  for (const TestNode::Taint& t : node.taints) {
    facts.taints.push_back({v.names.Intern(t.key), v.names.Intern(""), t.effect});
  }
  facts.unschedulable = node.unschedulable;
  for (const auto& [name, size] : node.images)
    facts.images.push_back({.name = v.names.Intern(name), .size = size << 20});
  return facts;
}

inline model::AffinityListId AffinityOf(model::Vocabulary& v, const TestPod& pod) {
  if (pod.affinity.empty()) return {};
  std::vector<model::AffinityTerm> terms;
  std::optional<model::PodSelector> all;
  const auto intern = [&](const model::PodSelector& selector) {
    return v.pod_selectors.Intern(model::PodSelectorText(selector));
  };
  for (const TestPod::Affinity& one : pod.affinity) {
    model::PodSelector selector{.requirements = {{.key = "app", .values = {one.app}}}};
    if (one.team.empty()) {
      selector.namespaces = {"default"};
    } else {
      selector.of_namespace = {{.key = "team", .values = {one.team}}};
    }
    terms.push_back({.selector = intern(selector),
                     .key = v.names.Intern(one.key),
                     .kind = one.kind,
                     .weight = one.weight});
    if (one.kind != model::AffinityKind::kRequired) terms.back().counted = terms.back().selector;
    if (one.kind != model::AffinityKind::kRequired) continue;
    if (all.has_value()) {
      all->also.push_back(selector);
    } else {
      all = selector;
    }
  }
  if (all.has_value())
    terms.push_back(
        {.selector = intern(*all), .key = {}, .kind = model::AffinityKind::kAllRequired});
  return v.affinities.Intern(terms);
}

inline model::SpreadListId SpreadOf(model::Vocabulary& v, const TestPod& pod) {
  std::vector<model::SpreadConstraint> spread;
  for (const TestPod::Spread& one : pod.spread) {
    const model::PodSelector selector{.namespaces = {"default"},
                                      .requirements = {{.key = "app", .values = {one.app}}}};
    spread.push_back(
        {.selector = v.pod_selectors.Intern(model::PodSelectorText(selector)),
         .key = v.names.Intern(one.key),
         .max_skew = one.max_skew,
         .min_domains = one.min_domains,
         .hard = one.hard ? 1u : 0u,
         .honors_taints = one.honors_taints ? 1u : 0u,
         .selects_itself = selector.Selects(model::PodLabelsText("default", pod.labels)) ? 1u : 0u,
         .by_default = one.by_default ? 1u : 0u});
  }
  return spread.empty() ? model::SpreadListId{} : v.spreads.Intern(spread);
}

inline model::ClassId ClassOf(model::Vocabulary& v, const TestPod& pod) {
  model::ClassSpec spec;
  std::vector<model::HostPort> ports;
  if (pod.host_port != 0)
    ports.push_back({.port = pod.host_port, .protocol = v.names.Intern("TCP")});
  model::BundleId asked;
  if (pod.careless)
    asked = v.bundles.Intern(std::vector<model::ResourceAmount>{{model::kGpuMilli, pod.gpu_milli}});
  spec.requests =
      v.bundles.Intern(std::vector<model::ResourceAmount>{{model::kCpu, pod.cpu},
                                                          {model::kMemory, pod.memory},
                                                          {model::kPods, 1},
                                                          {model::kGpuMilli, pod.gpu_milli}},
                       ports, asked);
  spec.scoring = v.bundles.Intern(std::vector<model::ResourceAmount>{
      {model::kCpu, pod.cpu == 0 ? 100 : pod.cpu},
      {model::kMemory, pod.memory == 0 ? 200 << 20 : pod.memory}});
  if (pod.gpu_milli < 1000) {
    spec.gpu.share_milli = pod.gpu_milli;
  } else {
    spec.gpu.devices_count = pod.gpu_milli / 1000;
  }
  if (!pod.models.empty()) {
    std::vector<model::NameId> models;
    for (const std::string& m : pod.models) models.push_back(v.names.Intern(m));
    std::ranges::sort(models);
    spec.models = v.name_lists.Intern(models);
  }
  const auto in = [&](const std::string& key, const std::string& value) {
    return model::Requirement{.key = v.names.Intern(key), .values = {v.names.Intern(value)}};
  };
  if (!pod.selector.empty()) {
    model::SelectorSpec selector;
    for (const auto& [key, value] : pod.selector) selector.all.push_back(in(key, value));
    spec.selector = v.selectors.Intern(selector);
  }
  if (!pod.images.empty()) {
    std::vector<model::NameId> images;
    for (const std::string& image : pod.images) images.push_back(v.names.Intern(image));
    std::ranges::sort(images);
    spec.images = v.name_lists.Intern(images);
    spec.containers_count = static_cast<uint32_t>(images.size());
  }
  std::vector<model::Preference> preferences;
  for (const TestPod::Preference& p : pod.prefers) {
    const model::SelectorSpec term{.has_terms = true,
                                   .terms = {{.requirements = {in(p.key, p.value)}}}};
    preferences.push_back({v.selectors.Intern(term), p.weight});
  }
  if (!preferences.empty()) spec.preferences = v.preferences.Intern(preferences);
  std::vector<model::Toleration> tolerations;
  for (const std::string& key : pod.tolerates) {
    tolerations.push_back({.key = v.names.Intern(key), .op = model::TolerationOp::kExists});
  }
  if (!tolerations.empty()) spec.tolerations = v.tolerations.Intern(tolerations);
  spec.spread = SpreadOf(v, pod);
  spec.affinity = AffinityOf(v, pod);
  if (!pod.profile.empty()) spec.profile = v.names.Intern(pod.profile);
  return v.classes.Intern(spec);
}

inline model::PodUpsert FactsOf(model::Vocabulary& v, const TestPod& pod) {
  model::PodUpsert facts{.uid = pod.uid.empty() ? "uid-" + pod.name : pod.uid,
                         .key = "default/" + pod.name,
                         .class_id = ClassOf(v, pod),
                         .node = pod.node,
                         .nominated = pod.nominated,
                         .creation = Instant::FromSeconds(pod.created),
                         .priority = pod.priority,
                         .ours = !pod.foreign,
                         .gated = pod.gated,
                         .terminating = pod.terminating,
                         .terminal = pod.finished};
  facts.labels = model::PodLabelsText("default", pod.labels);
  facts.preempts = !pod.never;
  facts.asks = pod.asks && pod.node.empty();
  facts.asks_about_victims = pod.asks_about_victims;
  facts.looks = facts.asks ? pod.looks : 0;
  facts.disrupted = pod.marked;
  facts.deletion_deadline = Instant::FromSeconds(pod.deadline);
  facts.succeeded = pod.finished;
  if (!pod.group.empty()) facts.group = "default/" + pod.group;
  if (!pod.role.empty()) facts.role = v.names.Intern(pod.role);
  if (!pod.pin.empty())
    facts.pin = {.kind = model::PinKind::kAffinity, .node = v.names.Intern(pod.pin)};
  std::vector<model::PodVolume> volumes;
  for (const std::string& claim : pod.claims)
    volumes.push_back({.name = v.names.Intern("default/" + claim)});
  for (const std::string& volume : pod.own_claims) {
    volumes.push_back({.kind = model::VolumeKind::kOwnClaim,
                       .name = v.names.Intern("default/" + pod.name + "-" + volume),
                       .volume = v.names.Intern(volume),
                       .pod = v.names.Intern(facts.uid)});
  }
  for (const std::string& disk : pod.disks)
    volumes.push_back({.kind = model::VolumeKind::kGcePd, .name = v.names.Intern(disk)});
  if (!volumes.empty()) facts.pin.volumes = v.volume_lists.Intern(volumes);
  return facts;
}

inline model::GroupUpsert FactsOf(model::Vocabulary& v, const TestGroup& group) {
  model::GroupUpsert facts{.uid = group.uid.empty() ? "uid-" + group.name : group.uid,
                           .key = "default/" + group.name,
                           .min_member = group.min_member,
                           .priority = group.priority,
                           .creation = Instant::FromSeconds(group.created)};
  for (const auto& [role, count] : group.roles)
    facts.min_of_roles.push_back({.role = v.names.Intern(role), .count = count});
  return facts;
}

// A queue of groups that may have so much, and no more.
inline model::QueueUpsert QueueOfGroups(const std::string& name, int64_t cpu) {
  return {.kind = model::QueueKind::kQueue,
          .name = name,
          .uid = name,
          .parent = "root",
          .quotas = {{.flavor = {},
                      .resource = model::kCpu,
                      .quota = {.borrowing_limit = cpu, .lending_limit = 0}}}};
}

}  // namespace berth::cycle
