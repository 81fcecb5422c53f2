#pragma once

#include <string>
#include <string_view>

#include "controllers/objects.h"
#include "controllers/write.h"

// PodGroups for the pods of Volcano's scheduler that name none
// (https://volcano.sh/en/docs/podgroup/): one for all pods of a controller, one for each pod without
// one, `podgroup-<uid>` of the controller or the pod (api/groups.h).
namespace berth::controllers {

// On a ReplicaSet or Job: how many of its pods are placed together; 1 without it.
inline constexpr std::string_view kMinMemberAnnotation = "scheduling.volcano.sh/group-min-member";

// Which group a plan is for, whether it is there or not. Two lives of a name differ in nothing that
// a plan may remember: it is made anew of what is there.
[[nodiscard]] std::string GroupId(std::string_view namespace_name, std::string_view owner_uid);

// Whether the owner is a Job in a queue (https://kueue.sigs.k8s.io), not over yet, whose template
// names no group, and its pods are to be in one that is made for them: it is there before they are,
// for quota is given out by whether they could start. False for kinds that are not read.
[[nodiscard]] bool IsGroupedAhead(const Objects& objects, Slot owner);

// A function of the group's owner, of the pods that it is made for and of the object of its name:
// - while such a pod is there, the object is made and says what its youngest pod and its owner ask,
//   and the pods name it; an object that has gone while pods name it is made again. Pods that come
//   before their controller is seen wait for it, since it says how many are placed together;
// - without pods one of IsGroupedAhead() is made and says what the Job and its template ask;
// - without either it is deleted, fenced by uid and version, if made here, no pod that is not
//   over is in it, and its owner is a ReplicaSet of no replicas, or no pod at all and a Job that is
//   suspended: not by a view alone, which may be older than the group, but read. With any other
//   owner it stays until that owner goes, which is the collector's to see.
// `owner_read`: a version of the object, if its owner was read since that was seen. The read that
// this asks for carries that version. Cost: O(pods in the group).
[[nodiscard]] Plan PlanPodGroup(const Objects& objects, std::string_view id,
                                std::string_view owner_read);

}  // namespace berth::controllers
