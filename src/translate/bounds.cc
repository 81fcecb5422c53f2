#include "translate/bounds.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <vector>

#include "base/limits.h"
#include "model/spread.h"

namespace berth::translate {
namespace {

// What selectors ask for.
struct Asked {
  size_t requirements = 0;
  size_t values = 0;

  void Add(const std::vector<api::Requirement>& all) {
    requirements += all.size();
    for (const api::Requirement& one : all) values += one.values.size();
  }
  void Add(const api::LabelSelector& selector) {
    requirements += selector.match_labels.size();
    Add(selector.match_expressions);
  }
  void Add(const api::NodeSelectorTerm& term) {
    ++requirements;
    Add(term.match_expressions);
    Add(term.match_fields);
  }
  void Add(const api::PodAffinityTerm& term) {
    values += term.namespaces.size();
    if (term.label_selector) Add(*term.label_selector);
    if (term.namespace_selector) Add(*term.namespace_selector);
  }
  void Add(const api::PodAffinity& affinity) {
    for (const api::PodAffinityTerm& term : affinity.required) Add(term);
    for (const api::PreferredPodAffinityTerm& one : affinity.preferred) Add(one.term);
  }
  [[nodiscard]] bool beyond() const {
    return requirements > limits::kRequirementsMax || values > limits::kRequirementValuesMax;
  }
};

Asked AskedBy(const api::PodSpec& spec) {
  Asked asked{.requirements = spec.node_selector.size()};
  if (spec.required_node_affinity) {
    for (const api::NodeSelectorTerm& term : *spec.required_node_affinity) asked.Add(term);
  }
  for (const api::PreferredTerm& one : spec.preferred_node_affinity) asked.Add(one.term);
  asked.Add(spec.pod_affinity);
  asked.Add(spec.pod_anti_affinity);
  for (const api::TopologySpreadConstraint& one : spec.spread_constraints) {
    asked.requirements += one.match_label_keys.size();
    if (one.label_selector) asked.Add(*one.label_selector);
  }
  return asked;
}

size_t CountTerms(const api::PodSpec& spec) {
  return spec.pod_affinity.required.size() + spec.pod_affinity.preferred.size() +
         spec.pod_anti_affinity.required.size() + spec.pod_anti_affinity.preferred.size();
}

size_t CountHostPorts(const api::PodSpec& spec) {
  size_t count = 0;
  for (const auto* containers : {&spec.init_containers, &spec.containers}) {
    for (const api::Container& container : *containers) {
      count += static_cast<size_t>(std::ranges::count_if(
          container.ports, [](const auto& port) { return port.host_port > 0; }));
    }
  }
  return count;
}

// A disk of several monitors counts for each.
size_t CountOf(const api::PodVolume& volume) { return std::max<size_t>(volume.monitors.size(), 1); }

size_t CountVolumes(const api::PodSpec& spec) {
  size_t count = 0;
  for (const api::PodVolume& volume : spec.volumes) count += CountOf(volume);
  return count;
}

}  // namespace

std::string WhyBeyond(const api::PodSpec& spec) {
  const auto at_most = [](std::string_view field, size_t count, std::string_view what) {
    return fmt::format("{}: must have at most {} {}", field, count, what);
  };
  if (spec.spread_constraints.size() > model::kSpreadConstraintsMax)
    return at_most("spec.topologySpreadConstraints", model::kSpreadConstraintsMax, "items");
  if (CountTerms(spec) > limits::kAffinityTermsMax) {
    return at_most("spec.affinity", limits::kAffinityTermsMax,
                   "terms of podAffinity and podAntiAffinity together");
  }
  if (AskedBy(spec).beyond()) {
    return fmt::format(
        "spec: its selectors of nodes and pods must have at most {} requirements and {} values "
        "together",
        limits::kRequirementsMax, limits::kRequirementValuesMax);
  }
  if (CountHostPorts(spec) > limits::kHostPortsMax)
    return at_most("spec.containers", limits::kHostPortsMax, "host ports");
  if (CountVolumes(spec) > limits::kPodVolumesMax)
    return at_most("spec.volumes", limits::kPodVolumesMax, "claims, and disks by their monitors");
  return {};
}

api::PodSpec Within(const api::PodSpec& spec) {
  api::PodSpec out = spec;
  out.node_selector.clear();
  out.required_node_affinity.reset();
  out.preferred_node_affinity.clear();
  out.pod_affinity = {};
  out.pod_anti_affinity = {};
  out.spread_constraints.clear();
  size_t ports_left = limits::kHostPortsMax;
  for (auto* containers : {&out.init_containers, &out.containers}) {
    for (api::Container& container : *containers) {
      std::erase_if(container.ports, [&](const api::ContainerPort& port) {
        if (port.host_port <= 0 || ports_left == 0) return true;
        --ports_left;
        return false;
      });
    }
  }
  size_t volumes_left = limits::kPodVolumesMax;
  std::erase_if(out.volumes, [&](const api::PodVolume& volume) {
    if (CountOf(volume) > volumes_left) return true;
    volumes_left -= CountOf(volume);
    return false;
  });
  return out;
}

bool IsBeyond(const api::LabelSelector& selector) {
  Asked asked;
  asked.Add(selector);
  return asked.beyond();
}

}  // namespace berth::translate
