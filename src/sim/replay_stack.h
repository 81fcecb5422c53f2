#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "apiserver/apiserver.h"
#include "base/result.h"
#include "control/scheduler.h"
#include "sim/replay.h"
#include "sim/trace.h"

namespace berth::sim {

// The fill protocol through the whole stack: nodes and pods are created at the production API
// server, the production scheduler watches, decides and binds, and what became of each pod is read
// from a watch of the production client. Messages arrive at once and in order, appends are durable
// at once, time is virtual; there are no nodes' leases and no controllers. The next pod is created
// when the last was bound or its condition says why it waits, so the decisions are those of
// EngineReplay for the same options.
//
// Deterministic; single-threaded; holds some 10 KB per pod.
class StackReplay {
 public:
  // Registers the nodes. Fails as FillOrder does, and when the API server refuses a node.
  [[nodiscard]] static Result<StackReplay> Make(std::vector<TraceNode> nodes,
                                                std::vector<TracePod> pods,
                                                const ReplayOptions& options);
  StackReplay(StackReplay&&) noexcept;
  StackReplay& operator=(StackReplay&&) noexcept;
  ~StackReplay();

  // Creates up to `count` more pods and has them decided; false once all are. Fails when the API
  // server refuses a pod or the scheduler says nothing of it.
  [[nodiscard]] Result<bool> Step(size_t count);
  [[nodiscard]] size_t decided() const;
  [[nodiscard]] size_t arrivals() const;
  [[nodiscard]] ReplayReport Report() const;

  [[nodiscard]] const apiserver::ApiServer& server() const;
  [[nodiscard]] const control::Scheduler& scheduler() const;

 private:
  class Stack;
  explicit StackReplay(std::unique_ptr<Stack> stack);

  std::unique_ptr<Stack> stack_;  // On the heap: its parts point at each other.
};

}  // namespace berth::sim
