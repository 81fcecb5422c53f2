#pragma once

#include <string>

#include "api/types.h"

// How much of a pod is looked at. An object has room for tens of thousands of selectors, ports and
// volumes, and any user may make one: each is compared with nodes, or with the labels of all pods,
// on the thread that renews the lease. kube-scheduler takes them all, at its users' cost. Bounds:
// limits::kAffinityTermsMax and those below it.
namespace berth::translate {

// Why a pod with this spec can't be placed: the field and how much it may have. Empty: it can.
// O(spec).
[[nodiscard]] std::string WhyBeyond(const api::PodSpec& spec);

// Of a pod to which somebody gave a node all the same: without selectors and terms, which nobody
// heeds then, and with the first of its ports and volumes. O(spec).
[[nodiscard]] api::PodSpec Within(const api::PodSpec& spec);

// Whether a selector of pods asks for more than is compared with all of them.
[[nodiscard]] bool IsBeyond(const api::LabelSelector& selector);

}  // namespace berth::translate
