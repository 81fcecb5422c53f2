#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "api/quota.h"
#include "base/hash.h"
#include "codec/decode.h"
#include "cycle/engine.h"
#include "env/actor.h"
#include "model/state.h"
#include "sim/truth.h"

namespace berth::explore {

using NodeLabels = std::map<std::string, api::StringMap>;  // By the name of the node.

// What must be true of workloads whatever they wait for, seen from outside: each stands in at most
// one place (I1 of the reference), what is written of one was decided on what was heard of it last
// and never once it is over (I3, I5), and pods that have places move only when that is due, and
// only those for which it is (I7), and to where they ask to stand. Quota is judged by Reservations.
//
// A value of the Stage, which tells it all that the scheduler hears and sends, and all that becomes
// durable.
class WorkloadChecks {
 public:
  void OnHeard(const env::Input& input);
  // What leaves the scheduler: what is wrong with it, in sentences.
  [[nodiscard]] std::vector<std::string> OnSent(const env::HttpRequest& request) const;
  // What is wrong with a change.
  [[nodiscard]] std::vector<std::string> OnCommit(const env::JournalRecord& record,
                                                  bool by_scheduler);
  // How many the scheduler has evicted for their nodes.
  [[nodiscard]] uint32_t displaced() const { return displaced_; }
  // A scheduler that starts has heard nothing.
  void OnRestart() { heard_.clear(); }
  // What is wrong when nothing is left to happen at `now`: what is due of a workload by its object
  // alone, and was not done.
  [[nodiscard]] std::vector<std::string> AtRest(const sim::Truth& truth, Instant now) const;

  void AddTo(Hasher& hasher) const;

 private:
  struct Heard {
    std::string uid;
    uint64_t version = 0;
    bool finished = false;
    bool gone = false;
  };
  void Hear(std::string_view object, bool gone);
  void JudgeShapes(const std::string& key, const api::Workload& before, const api::Workload& after,
                   std::vector<std::string>& findings) const;

  codec::Decoder decoder_;
  std::map<std::string, api::Workload> workloads_;  // By key; those that are there.
  std::map<std::string, Heard> heard_;              // By key.
  NodeLabels labels_;                               // As they are, or were last.
  uint32_t displaced_ = 0;
};

// Who stands in a line and has quota, or is about to, or stands in lines twice, or in one although
// it does not wait. `lines`: of each ClusterQueue, who stands in its line.
[[nodiscard]] std::vector<std::string> StandingWrong(
    const model::State& state, std::span<const std::vector<model::WorkloadId>> lines);
// Of a scheduler that has acted on all that it heard. O(queues + workloads).
[[nodiscard]] std::vector<std::string> StandingWrong(const cycle::Engine& engine);

}  // namespace berth::explore
