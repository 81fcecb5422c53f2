#pragma once

#include <string>
#include <string_view>

#include "api/run_plan.h"
#include "api/types.h"
#include "base/time.h"

// The life of a pod on its node as a function of the pod that is seen: nothing is remembered beside
// it that could not be read from it again, so a kubelet that starts anew goes on where it was.
//
//   bound --admitted--> creating --start-after--> running --run-for--> Succeeded | Failed
//     |                                             ^  |
//     |                                  back-off   |  | restartPolicy
//     |                                             +--+
//     +--refused--> Failed (OutOfcpu, ...)
//   deletionTimestamp, from any of them: --stop-after or grace--> gone (from bound: at once)
//
// The containers of a pod act as one: they start, exit and restart together. Init containers take
// no time; a sidecar ends with the pod.
namespace berth::nodes {

struct KubeletTiming {
  // A pod whose start takes at least this long says ContainerCreating meanwhile; for a shorter one
  // the write would only double the load.
  Duration creating_shown_from = Duration::Milliseconds(500);
  // From the deletion, or the end of the longest preStop hook that sleeps, to the end of the
  // containers, unless the pod asks for longer or the grace period ends before.
  Duration stop_delay;
  // How long each run of the containers of Jobs' pods takes that don't say; until they are stopped
  // if 0, as those of all other pods.
  Duration job_run_for;
};

// What the node holds for one pod.
struct PodOnNode {
  std::string_view node;
  std::string_view host_ip;
  std::string_view pod_ip;  // Empty until it is admitted.
  Instant seen;             // When the node saw the pod first.
  // When its containers were started, in full resolution; 0 when only the status tells, in seconds.
  Instant started;
  // PreStopSleep of its document; matters once the pod is to go.
  Duration stop_sleep;
};

enum class PodAction : uint8_t {
  kNothing,
  kAdmit,   // Needs a place on the node: Admit() or Refuse() comes next.
  kStatus,  // Patch the status with `status`.
  kDelete,  // Delete it with grace 0.
};

struct PodStep {
  PodAction action = PodAction::kNothing;
  std::string status;               // JSON of a strategic merge patch's status member.
  Instant started;                  // With kStatus: containers start now; else 0.
  Instant wake = Instant::Never();  // With kNothing: when to look again.
};

// Whether the pod is over: it holds nothing of its node any more and its status does not change.
[[nodiscard]] bool IsTerminal(const api::Pod& pod);

// Whether its kubelet admitted it already.
[[nodiscard]] bool WasAdmitted(const api::Pod& pod);

// What is to be done for the pod now. REQUIRES: on_node.pod_ip is set if the pod was admitted.
[[nodiscard]] PodStep Decide(const api::Pod& pod, const PodOnNode& on_node,
                             const KubeletTiming& timing, Instant now);

// The status of a pod that its node refuses.
[[nodiscard]] std::string RefusedStatus(const api::Pod& pod, const PodOnNode& on_node,
                                        std::string_view reason, std::string_view message,
                                        Instant now);

// How long the longest preStop hook of a pod's containers sleeps; `pod` is its document. It is read
// from there when the pod is to go, since few have one and nobody else asks. What can't be read
// doesn't sleep.
[[nodiscard]] Duration PreStopSleep(std::string_view pod);

// How long a container waits before its n-th restart: none before the first, then 10 s, doubled
// each time up to 5 minutes.
[[nodiscard]] Duration RestartDelay(int64_t restart);

}  // namespace berth::nodes
