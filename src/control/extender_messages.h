#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "client/request.h"

// What goes to an extender and comes back, as JSON (k8s.io/kube-scheduler/extender/v1). Pure
// functions, linear in the texts.
namespace berth::control {

// ExtenderArgs, of filter and prioritize: the pod's document, and names of nodes or their
// documents.
[[nodiscard]] std::string ExtenderArgs(std::string_view pod, std::span<const std::string> names);
[[nodiscard]] std::string ExtenderArgs(std::string_view pod, std::span<const Bytes> documents);
// ExtenderBindingArgs.
[[nodiscard]] std::string ExtenderBindingArgs(const client::ObjectRef& pod, std::string_view node);

// Pods that are to be evicted from a node.
struct ShownVictims {
  std::string node = {};
  std::vector<std::string> uids = {};
  uint32_t pdb_violations = 0;  // Victims beyond what their budgets allow.
  bool operator==(const ShownVictims&) const = default;
};
// ExtenderPreemptionArgs, the nodes in their order: victims by uid, or as their documents, each in
// the place of its uid.
[[nodiscard]] std::string ExtenderPreemptionArgs(std::string_view pod,
                                                 std::span<const ShownVictims> nodes);
[[nodiscard]] std::string ExtenderPreemptionArgs(std::string_view pod,
                                                 std::span<const ShownVictims> nodes,
                                                 std::span<const std::vector<Bytes>> documents);

// Members are found as Go finds them: whatever the case of their letters; of two the last one
// counts, and null says nothing. Others are skipped. Errors say which member is wrong.

// ExtenderFilterResult.
struct FilterAnswer {
  std::vector<std::string> nodes = {};                   // That passed, in its order; may repeat.
  std::map<std::string, std::string> failed = {};        // Node -> in its words why.
  std::map<std::string, std::string> unresolvable = {};  // Likewise: evictions change nothing.
  std::string error = {};                                // Not empty: the rest means nothing.
  bool operator==(const FilterAnswer&) const = default;
};
// `by_names`: who is sent names answers with them, or with documents; others with documents.
[[nodiscard]] Result<FilterAnswer> ReadFilterAnswer(std::string_view text, bool by_names);

// ExtenderPreemptionResult, by name of node. A node that is null is left out; violations are never
// less than none.
[[nodiscard]] Result<std::vector<ShownVictims>> ReadPreemptionAnswer(std::string_view text);

// HostPriorityList.
struct HostPriority {
  std::string host = {};
  int64_t score = 0;
  bool operator==(const HostPriority&) const = default;
};
[[nodiscard]] Result<std::vector<HostPriority>> ReadPriorities(std::string_view text);

// ExtenderBindingResult: what went wrong; empty: nothing.
[[nodiscard]] Result<std::string> ReadBindingAnswer(std::string_view text);

// What an extender sees of a pod that its decision may hang on, as a hash: all but the status and
// what is written with every change.
[[nodiscard]] uint64_t LooksOf(std::string_view pod);

}  // namespace berth::control
