#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/pod_defaults.h"
#include "api/quota.h"
#include "api/types.h"
#include "base/hash.h"
#include "base/shared.h"

namespace berth::translate {

// LimitRanges and RuntimeClasses as they are, and what pods get by them: the same as admission
// gives those that are made of a template (apiserver/limit_ranges.h, runtime_classes.h), and Kueue
// counts (pkg/workload: EffectivePodSpecs). A copyable value.
class PodDefaults {
 public:
  // Whether it says something else of pods than before.
  bool Put(const api::LimitRange& of);
  bool Put(const api::RuntimeClass& of);
  bool RemoveRange(std::string_view namespace_name, std::string_view name);
  bool RemoveClass(std::string_view name);

  // A template's spec as its pods in the namespace will have it. What containers lack of requests
  // is what limits them, as they are decoded, and then what LimitRanges say; so are limits that are
  // missing. Of several LimitRanges the first by name counts. Where the template has no overhead it
  // is that of its RuntimeClass, whose nodes and tolerations it gets besides. A class that isn't
  // there gives nothing: the pods will be refused, which is said of them.
  // Cost: where there is nothing to give, two lookups; else O(spec).
  void Complete(std::string_view namespace_name, Shared<api::PodSpec>& spec) const;

  // Why LimitRanges allow no pods of the pod sets, in Kueue's words; nothing where they do. Of pods
  // as a whole their overhead does not count. Allowed is what Kueue lets pass: a maximum for limits
  // where there are none, and any ratio of limits to requests.
  // REQUIRES: the pod sets are completed. Cost: O(containers x resources).
  [[nodiscard]] std::optional<std::string> WhyOutside(
      std::string_view namespace_name, const std::vector<api::WorkloadPodSet>& pod_sets) const;

  void AddTo(Hasher& hasher) const;

 private:
  // What all LimitRanges of a namespace say of one type together.
  struct Range {
    api::ResourceList max;
    api::ResourceList min;
    api::ResourceList defaults;
    api::ResourceList default_requests;
    bool operator==(const Range&) const = default;
  };
  struct Ranges {
    Range container;
    Range pod;
    bool operator==(const Ranges&) const = default;
  };
  struct Namespace {
    std::map<std::string, std::vector<api::LimitRangeItem>, std::less<>> by_name;
    Ranges all;
  };
  bool Sum(std::string_view namespace_name);
  [[nodiscard]] const Ranges* FindRanges(std::string_view namespace_name) const;

  std::map<std::string, Namespace, std::less<>> namespaces_;  // Those with LimitRanges.
  std::map<std::string, api::RuntimeClass, std::less<>> classes_;
};

// Adds what a list lacks.
void AddMissing(api::ResourceList& list, const api::ResourceList& more);

}  // namespace berth::translate
