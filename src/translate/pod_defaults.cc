#include "translate/pod_defaults.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "api/requests.h"
#include "translate/objections.h"

namespace berth::translate {
namespace {

constexpr std::string_view kAboveMax = "requests must not be above the limitRange max";
constexpr std::string_view kBelowMin = "requests must not be below the limitRange min";

// Of both: `choose` of what both name, all that one does.
template <typename Choose>
api::ResourceList Merge(api::ResourceList list, const api::ResourceList& other, Choose choose) {
  for (api::ResourceAmount& amount : list) {
    if (const auto found = api::Find(other, amount.name))
      amount.amount = choose(amount.amount, *found);
  }
  AddMissing(list, other);
  return list;
}

api::ResourceList Least(const api::ResourceList& a, const api::ResourceList& b) {
  return Merge(a, b, [](int64_t x, int64_t y) { return std::min(x, y); });
}

api::ResourceList Most(const api::ResourceList& a, const api::ResourceList& b) {
  return Merge(a, b, [](int64_t x, int64_t y) { return std::max(x, y); });
}

void AddContainers(const std::vector<api::Container>& containers, const api::ResourceList& max,
                   const api::ResourceList& min, std::string_view path, Objections& objections) {
  for (size_t i = 0; i < containers.size(); ++i) {
    const api::Container& container = containers[i];
    const std::string at = fmt::format("{}[{}]", path, i);
    objections.AddBeyond(Most(container.requests, container.limits), max, at, kAboveMax);
    objections.AddBeyond(min, Least(container.requests, container.limits), at, kBelowMin);
  }
}

void AddScheduling(const api::RuntimeClass& of, api::PodSpec& spec) {
  // Of another value pods are refused.
  api::StringMap selector = spec.node_selector;
  for (const auto& label : of.node_selector) {
    if (!api::Find(spec.node_selector, label.first)) selector.push_back(label);
  }
  std::ranges::sort(selector);
  spec.node_selector = std::move(selector);
  for (const api::Toleration& toleration : of.tolerations) {
    if (std::ranges::find(spec.tolerations, toleration) == spec.tolerations.end())
      spec.tolerations.push_back(toleration);
  }
}

}  // namespace

void AddMissing(api::ResourceList& list, const api::ResourceList& more) {
  // Looked for in a list that is in order still.
  const size_t before = list.size();
  for (const api::ResourceAmount& amount : more) {
    const auto known = list.begin() + static_cast<std::ptrdiff_t>(before);
    const auto at =
        std::ranges::lower_bound(list.begin(), known, amount.name, {}, &api::ResourceAmount::name);
    if (at == known || at->name != amount.name) list.push_back(amount);
  }
  std::ranges::sort(list, {}, &api::ResourceAmount::name);
}

bool PodDefaults::Put(const api::LimitRange& of) {
  namespaces_[of.meta.namespace_name].by_name[of.meta.name] = of.items;
  return Sum(of.meta.namespace_name);
}

bool PodDefaults::RemoveRange(std::string_view namespace_name, std::string_view name) {
  const auto at = namespaces_.find(namespace_name);
  if (at == namespaces_.end()) return false;
  if (const auto range = at->second.by_name.find(name); range != at->second.by_name.end())
    at->second.by_name.erase(range);
  const bool changed = Sum(namespace_name);
  if (at->second.by_name.empty()) namespaces_.erase(at);
  return changed;
}

// The narrowest bounds; of defaults the first.
bool PodDefaults::Sum(std::string_view namespace_name) {
  Namespace& of = namespaces_.find(namespace_name)->second;
  Ranges all;
  for (const auto& [name, items] : of.by_name) {
    for (const api::LimitRangeItem& item : items) {
      if (item.type != "Container" && item.type != "Pod") continue;
      Range& range = item.type == "Pod" ? all.pod : all.container;
      range.max = Least(range.max, item.max);
      range.min = Most(range.min, item.min);
      AddMissing(range.defaults, item.defaults);
      AddMissing(range.default_requests, item.default_requests);
    }
  }
  return std::exchange(of.all, all) != all;
}

bool PodDefaults::Put(const api::RuntimeClass& of) {
  api::RuntimeClass now = of;
  now.meta = {};
  const auto [at, fresh] = classes_.try_emplace(of.meta.name);
  const bool same = at->second == now;
  at->second = std::move(now);
  // One that gives nothing is as none.
  return !same;
}

bool PodDefaults::RemoveClass(std::string_view name) {
  const auto at = classes_.find(name);
  if (at == classes_.end()) return false;
  const bool gave = at->second != api::RuntimeClass{};
  classes_.erase(at);
  return gave;
}

const PodDefaults::Ranges* PodDefaults::FindRanges(std::string_view namespace_name) const {
  const auto at = namespaces_.find(namespace_name);
  return at == namespaces_.end() ? nullptr : &at->second.all;
}

void PodDefaults::Complete(std::string_view namespace_name, Shared<api::PodSpec>& spec) const {
  const Ranges* ranges = FindRanges(namespace_name);
  const auto of = classes_.find(spec->runtime_class_name);
  if (ranges == nullptr && of == classes_.end()) return;
  api::PodSpec& made = spec.Edit();
  if (of != classes_.end()) {
    if (made.overhead.empty()) made.overhead = of->second.overhead;
    AddScheduling(of->second, made);
  }
  if (ranges == nullptr) return;
  for (std::vector<api::Container>* containers : {&made.init_containers, &made.containers}) {
    for (api::Container& container : *containers) {
      AddMissing(container.requests, container.limits);
      AddMissing(container.limits, ranges->container.defaults);
      AddMissing(container.requests, ranges->container.default_requests);
    }
  }
}

std::optional<std::string> PodDefaults::WhyOutside(
    std::string_view namespace_name, const std::vector<api::WorkloadPodSet>& pod_sets) const {
  const Ranges* ranges = FindRanges(namespace_name);
  if (ranges == nullptr) return std::nullopt;
  Objections objections;
  for (size_t i = 0; i < pod_sets.size(); ++i) {
    const std::string path = fmt::format("spec.podSets[{}].template.spec", i);
    const auto& [max, min, defaults, default_requests] = ranges->container;
    const api::PodSpec& spec = *pod_sets[i].spec;
    AddContainers(spec.init_containers, max, min, path + ".initContainers", objections);
    AddContainers(spec.containers, max, min, path + ".containers", objections);
    api::Pod pod;
    pod.spec = pod_sets[i].spec;
    if (!spec.overhead.empty()) pod.spec.Edit().overhead.clear();
    const api::ResourceList requests = api::PendingRequests(pod);
    objections.AddBeyond(requests, ranges->pod.max, path, kAboveMax);
    objections.AddBeyond(ranges->pod.min, requests, path, kBelowMin);
  }
  return objections.Text();
}

void PodDefaults::AddTo(Hasher& hasher) const {
  const auto add = [&](const api::ResourceList& list) {
    hasher.Add(list.size());
    for (const api::ResourceAmount& amount : list) hasher.Add(amount.name).Add(amount.amount);
  };
  hasher.Add(namespaces_.size()).Add(classes_.size());
  for (const auto& [name, of] : namespaces_) {
    hasher.Add(name).Add(of.by_name.size());
    for (const Range* range : {&of.all.container, &of.all.pod}) {
      add(range->max);
      add(range->min);
      add(range->defaults);
      add(range->default_requests);
    }
  }
  for (const auto& [name, of] : classes_) {
    hasher.Add(name);
    add(of.overhead);
  }
}

}  // namespace berth::translate
