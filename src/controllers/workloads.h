#pragma once

#include <string>
#include <string_view>

#include "base/time.h"
#include "controllers/objects.h"
#include "controllers/topology.h"
#include "controllers/write.h"

// Workloads of Jobs with a queue name (https://kueue.sigs.k8s.io/docs/concepts/workload/): what a
// Job asks of its queue, and the only way it comes to run.
//
//        Job suspended              Job runs                            Job suspended
//   no Workload ──> pending ──> Admitted ──> Evicted ──suspend──> restored, nothing of it runs ──┐
//                      ^                        │                                                │
//                      └──────────── no quota, no admission: one status patch <──────────────────┘
//   Workload deleted ──suspend──> restored, nothing of it runs ──> its finalizer goes; a new one
//   Job Complete or Failed ──> Finished, after which nothing of the Workload is written but that.
namespace berth::controllers {

// What Kueue calls it: job-<name>-<5 digits of a hash of kind, group, name and uid>.
[[nodiscard]] std::string WorkloadNameOf(const Head& job);

// A function of the Job, of the Workload that it controls, its pods, and the flavors, nodes and
// priority classes that these name:
// - a Job that isn't admitted is suspended; one that is admitted runs with the node selector and
//   tolerations of its flavors, and what admission checks want of its pods (podSetUpdates), put in
//   by the write that lets it run; where these contradict each other or the template, it fails to
//   start, as upstream's does;
// - pods of one that is placed by topology are created gated, and each is let go to its place;
//   status.unhealthyNodes says which nodes of its places can't be used any more;
// - an evicted one gets its template back as the pod set has it, and quota is given back only when
//   nothing of it runs any more (https://github.com/kubernetes-sigs/kueue/issues/10076);
// - the Workload says what the Job asks: changed while it holds no quota, else made anew;
// - it has the finalizer kueue.x-k8s.io/resource-in-use before the Job gets anything by it, for it
//   alone knows what the Job came with; that goes when the Job has got it back and nothing of it
//   runs, when the Job is done, or when it is deleted and no pod of it is left that isn't over;
// - a Workload of another Job of that name is left to the collector.
// `busy`: writes of the Job's own controller are under way, so pods may be coming. `read`: what was
// read for the Workload; the reads that this asks for carry its version.
// REQUIRES: the slot holds a Job. Cost: O(pods of the Job).
[[nodiscard]] Plan PlanWorkload(const Objects& objects, Slot job, bool busy, const ReadSince& read,
                                Instant now);

// Whether pods of the Job may be made: it is in no queue, or its Workload is admitted, not evicted,
// and has quota for as many as the Job asks for, which may have grown since. Where no webhook
// suspends a Job as it is created, it would have pods before it has a Workload.
// REQUIRES: the slot holds a Job. Cost: O(pods of the Job).
[[nodiscard]] bool MayRun(const Objects& objects, Slot job);

}  // namespace berth::controllers
