#pragma once

#include <simdjson.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/quota.h"
#include "api/types.h"
#include "api/workloads.h"
#include "base/result.h"
#include "base/time.h"
#include "codec/spec_memo.h"

// Private to codec/: reading simdjson's tree into typed views. Every reader takes an Errors, keeps
// the first failure there and goes on with nothing, so that the code of a struct is one list of its
// fields.
namespace berth::codec::reader {

using Element = simdjson::dom::element;
using Object = simdjson::dom::object;
using Array = simdjson::dom::array;

struct Errors {
  std::optional<Error> first;

  void Add(std::string_view field, std::string_view what);
};

// Calls `visit(key, value)` for each member that is not null. A null element has none.
template <typename Visit>
void ForMembers(Errors& errors, std::string_view field, const Element& element, Visit visit) {
  Object object;
  if (element.get(object) != simdjson::SUCCESS) {
    if (!element.is_null()) errors.Add(field, "an object");
    return;
  }
  for (const auto& [key, value] : object) {
    if (!value.is_null()) visit(std::string_view(key), value);
  }
}

// Calls `visit(value)` for each item.
template <typename Visit>
void ForItems(Errors& errors, std::string_view field, const Element& element, Visit visit) {
  Array array;
  if (element.get(array) != simdjson::SUCCESS) {
    if (!element.is_null()) errors.Add(field, "an array");
    return;
  }
  for (const Element& item : array) visit(item);
}

// Sorts by key; of equal keys the last one stands, as in every JSON decoder of Kubernetes.
template <typename List, typename Projection>
void SortUnique(List& list, Projection key) {
  const auto not_before = [&](const auto& a, const auto& b) {
    return !(std::invoke(key, a) < std::invoke(key, b));
  };
  if (std::ranges::adjacent_find(list, not_before) == list.end()) return;
  std::ranges::stable_sort(list, {}, key);
  size_t kept = 0;
  for (size_t i = 0; i < list.size(); ++i) {
    if (i + 1 < list.size() && std::invoke(key, list[i]) == std::invoke(key, list[i + 1])) continue;
    if (kept != i) list[kept] = std::move(list[i]);
    ++kept;
  }
  list.resize(kept);
}

void Read(Errors& errors, std::string_view field, const Element& element, std::string& out);
void Read(Errors& errors, std::string_view field, const Element& element, bool& out);
void Read(Errors& errors, std::string_view field, const Element& element, int64_t& out);
void Read(Errors& errors, std::string_view field, const Element& element, Instant& out);
void Read(Errors& errors, std::string_view field, const Element& element, api::StringMap& out);
void Read(Errors& errors, std::string_view field, const Element& element, api::ResourceList& out);
void Read(Errors& errors, std::string_view field, const Element& element, api::IntOrPercent& out);
void Read(Errors& errors, std::string_view field, const Element& element, api::ObjectMeta& out);
void Read(Errors& errors, std::string_view field, const Element& element, api::Requirement& out);
void Read(Errors& errors, std::string_view field, const Element& element, api::LabelSelector& out);
void Read(Errors& errors, std::string_view field, const Element& element, api::Toleration& out);
void Read(Errors& errors, std::string_view field, const Element& element, api::Taint& out);
void Read(Errors& errors, std::string_view field, const Element& element, api::Condition& out);

// An amount of the resource in the unit in which it is counted, not clamped. An Error names both
// field and resource.
void ReadAmount(Errors& errors, std::string_view field, std::string_view resource,
                const Element& element, int64_t& out);
// What containers request or are limited to, clamped as others; less than nothing is nothing: no
// server of pods takes that, but templates of pods may say it.
void ReadAsked(Errors& errors, std::string_view field, const Element& element,
               api::ResourceList& out);
// A ResourceList whose amounts are clamped to `most`.
void ReadAmounts(Errors& errors, std::string_view field, const Element& element, int64_t most,
                 api::ResourceList& out);

template <typename T>
void Read(Errors& errors, std::string_view field, const Element& element, std::optional<T>& out) {
  Read(errors, field, element, out.emplace());
}

template <typename T>
void Read(Errors& errors, std::string_view field, const Element& element, std::vector<T>& out) {
  ForItems(errors, field, element,
           [&](const Element& item) { Read(errors, field, item, out.emplace_back()); });
}

// What does not fit together is an error, as are more domains than a scheduler holds pods.
void ReadTopologyAssignment(Errors& errors, std::string_view field, const Element& element,
                            api::TopologyAssignment& out);

void ReadPlacement(Errors& errors, const Element& root, api::Placement& out);
void ReadPodSetUpdates(Errors& errors, const Element& root, std::vector<api::PodSetUpdate>& out);

// Calls `spec(key, value)` and `status(key, value)` for the members of those two, and reads
// metadata.
template <typename Spec, typename State>
void ReadObject(Errors& errors, const Element& root, api::ObjectMeta& meta, Spec spec,
                State status) {
  ForMembers(errors, "object", root, [&](std::string_view key, const Element& value) {
    if (key == "metadata") {
      Read(errors, key, value, meta);
    } else if (key == "spec") {
      ForMembers(errors, key, value, spec);
    } else if (key == "status") {
      ForMembers(errors, key, value, status);
    }
  });
}

// The element as compact JSON; with `sorted`, members in the order of their keys and without null
// ones.
void AppendText(const Element& element, bool sorted, std::string& out);

void ReadPod(Errors& errors, const Element& element, api::Pod& out);
void ReadPodSpec(Errors& errors, const Element& element, api::Pod& out);
void ReadNode(Errors& errors, const Element& element, api::Node& out);

void ReadDeployment(Errors& errors, const Element& root, api::Deployment& out);
void ReadReplicaSet(Errors& errors, const Element& root, api::ReplicaSet& out);
void ReadReplicationController(Errors& errors, const Element& root,
                               api::ReplicationController& out);
void ReadStatefulSet(Errors& errors, const Element& root, api::StatefulSet& out);
void ReadControllerRevision(Errors& errors, const Element& root, api::ControllerRevision& out);
void ReadDaemonSet(Errors& errors, const Element& root, api::DaemonSet& out);
void ReadCronJob(Errors& errors, const Element& root, api::CronJob& out);
void ReadJob(Errors& errors, const Element& root, api::Job& out);

void ReadResourceFlavor(Errors& errors, const Element& root, api::ResourceFlavor& out);
void ReadClusterQueue(Errors& errors, const Element& root, api::ClusterQueue& out);
void ReadCohort(Errors& errors, const Element& root, api::Cohort& out);
void ReadLocalQueue(Errors& errors, const Element& root, api::LocalQueue& out);
void ReadAdmissionCheck(Errors& errors, const Element& root, api::AdmissionCheck& out);
void ReadTopology(Errors& errors, const Element& root, api::Topology& out);
void ReadWorkloadPriorityClass(Errors& errors, const Element& root,
                               api::WorkloadPriorityClass& out);
// Equal specs of templates are shared with those that `specs` remembers.
void ReadWorkload(Errors& errors, const Element& root, SpecMemo& specs, api::Workload& out);

}  // namespace berth::codec::reader
