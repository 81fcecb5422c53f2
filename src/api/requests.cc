#include "api/requests.h"

#include <algorithm>
#include <optional>
#include <span>
#include <string>

#include "base/limits.h"

namespace berth::api {
namespace {

// Combines two sorted lists; a name that one lacks counts as 0 there.
template <typename Combine>
ResourceList Merge(const ResourceList& a, const ResourceList& b, Combine combine) {
  ResourceList out;
  out.reserve(a.size() + b.size());
  size_t i = 0;
  size_t j = 0;
  while (i < a.size() || j < b.size()) {
    const bool from_a = j == b.size() || (i < a.size() && a[i].name <= b[j].name);
    const bool from_b = i == a.size() || (j < b.size() && b[j].name <= a[i].name);
    const std::string& name = from_a ? a[i].name : b[j].name;
    out.push_back({name, combine(from_a ? a[i].amount : 0, from_b ? b[j].amount : 0)});
    if (from_a) ++i;
    if (from_b) ++j;
  }
  return out;
}

ResourceList Sum(const ResourceList& a, const ResourceList& b) {
  if (a.empty()) return b;
  return Merge(a, b, [](int64_t x, int64_t y) { return std::min(x + y, limits::kAmountMax); });
}

ResourceList Most(const ResourceList& a, const ResourceList& b) {
  if (b.empty()) return a;
  return Merge(a, b, [](int64_t x, int64_t y) { return std::max(x, y); });
}

void Set(ResourceList& list, const ResourceAmount& amount) {
  const auto at = std::ranges::lower_bound(list, amount.name, {}, &ResourceAmount::name);
  if (at != list.end() && at->name == amount.name) {
    at->amount = amount.amount;
  } else {
    list.insert(at, amount);
  }
}

// The most of what is asked, actual and allocated.
ResourceList Resizing(const ResourceList& asked, const std::optional<ResourceList>& actual,
                      const std::optional<ResourceList>& allocated, bool infeasible) {
  ResourceList most = infeasible ? ResourceList() : asked;
  if (actual.has_value()) most = Most(most, *actual);
  if (allocated.has_value()) most = Most(most, *allocated);
  return most;
}

class Counter {
 public:
  Counter(const Pod& pod, const RequestOptions& options)
      : pod_(pod), options_(options), infeasible_(pod.resize == "Infeasible") {}

  [[nodiscard]] ResourceList OfContainers() const {
    ResourceList steady;
    for (const Container& container : pod_.spec->containers) {
      steady = Sum(steady, Of(container, pod_.container_statuses));
    }
    ResourceList sidecars;
    ResourceList starting;
    for (const Container& container : pod_.spec->init_containers) {
      if (container.restart_always) {
        const ResourceList own = Of(container, pod_.init_container_statuses);
        steady = Sum(steady, own);
        sidecars = Sum(sidecars, own);
      } else {
        // An init container runs once: its status says nothing of what it will use.
        starting = Most(starting, Sum(sidecars, Of(container, {})));
      }
    }
    return Most(steady, starting);
  }

  [[nodiscard]] ResourceList OfPodLevel() const {
    if (!options_.running || !pod_.pod_actual.has_value()) return *pod_.spec->pod_requests;
    return Resizing(*pod_.spec->pod_requests, pod_.pod_actual, pod_.pod_allocated, infeasible_);
  }

 private:
  [[nodiscard]] ResourceList Of(const Container& container,
                                std::span<const ContainerStatus> statuses) const {
    ResourceList amounts = container.requests;
    if (options_.running) {
      const auto status = std::ranges::find(statuses, container.name, &ContainerStatus::name);
      if (status != statuses.end() && status->actual.has_value()) {
        amounts = Resizing(amounts, status->actual, status->allocated, infeasible_);
      }
    }
    if (options_.stand_in_cpu && !Find(amounts, kCpuName)) {
      Set(amounts, {std::string(kCpuName), kDefaultCpuMilli});
    }
    if (options_.stand_in_memory && !Find(amounts, kMemoryName)) {
      Set(amounts, {std::string(kMemoryName), kDefaultMemoryBytes});
    }
    return amounts;
  }

  const Pod& pod_;
  const RequestOptions& options_;
  const bool infeasible_;
};

// Pod-level resources that Kubernetes supports; others in spec.resources say nothing.
bool PodLevel(std::string_view name) {
  return name == kCpuName || name == kMemoryName || name.starts_with(kHugePagesPrefix);
}

}  // namespace

ResourceList RequestsOf(const Pod& pod, const RequestOptions& options) {
  const Counter counter(pod, options);
  ResourceList requests = counter.OfContainers();
  if (!options.without_pod_level && pod.spec->pod_requests.has_value()) {
    for (const ResourceAmount& amount : counter.OfPodLevel()) {
      if (PodLevel(amount.name)) Set(requests, amount);
    }
  }
  return Sum(requests, pod.spec->overhead);
}

ResourceList PendingRequests(const Pod& pod) { return RequestsOf(pod, {}); }

ResourceList PendingScoring(const Pod& pod) {
  return RequestsOf(pod,
                    {.stand_in_cpu = true, .stand_in_memory = true, .without_pod_level = true});
}

ResourceList BoundRequests(const Pod& pod) { return RequestsOf(pod, {.running = true}); }

ResourceList BoundScoring(const Pod& pod) {
  const bool pod_level =
      pod.spec->pod_requests.has_value() &&
      std::ranges::any_of(*pod.spec->pod_requests, [](const auto& a) { return PodLevel(a.name); });
  if (!pod_level) {
    return RequestsOf(pod, {.running = true, .stand_in_cpu = true, .stand_in_memory = true});
  }
  const ResourceList requests = BoundRequests(pod);
  return RequestsOf(pod, {.running = true,
                          .stand_in_cpu = !Find(requests, kCpuName).has_value(),
                          .stand_in_memory = !Find(requests, kMemoryName).has_value()});
}

}  // namespace berth::api
