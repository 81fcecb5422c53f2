#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/quota.h"
#include "base/hash.h"
#include "codec/decode.h"
#include "env/actor.h"
#include "explore/fitting.h"
#include "model/state.h"
#include "model/workload_stage.h"
#include "sim/truth.h"

namespace berth::explore {

// Of the journal's keys: "workloads.kueue.x-k8s.io/NAMESPACE/NAME".
using sim::kWorkloadsPrefix;

// What must be true of quota, seen from outside: it is reserved once and for who waits for it, it
// is never taken back but by who runs the workload, what is over stays as it is, and what others
// were evicted for is for nobody who may not take it (invariants I2 to I5 and I8 of the reference).
// What is in use is not gone, and what is in use no more can go (I11).
// Quota has no limits but its sum in the cohort, and cohorts have none of their own.
//
// A value of the Stage. It judges durable changes, and is told all of them.
class Reservations {
 public:
  // What leaves the scheduler, which knows `state`: what is wrong with it.
  [[nodiscard]] std::vector<std::string> OnSent(const env::HttpRequest& request,
                                                const model::State& state) const;
  // What is wrong with a change, in sentences.
  [[nodiscard]] std::vector<std::string> OnCommit(const env::JournalRecord& record,
                                                  bool by_scheduler, const model::State& state);
  // It remembers nothing of what it promised.
  void OnRestart() { promised_.clear(); }
  struct Rest {
    Instant now;
    bool joint = false;  // Quota comes with places on nodes.
  };
  // What is wrong when nothing is left to happen.
  [[nodiscard]] std::vector<std::string> AtRest(const model::State& state, const sim::Truth& truth,
                                                const Rest& rest) const;
  // What is wrong with what it charges to workloads, of those of which it knows all there is and
  // has nothing under way: once what their objects say, and nothing that they gave back (I2).
  [[nodiscard]] std::vector<std::string> Charged(const model::State& state) const;
  // Workloads that the scheduler evicted.
  [[nodiscard]] uint32_t preemptions() const { return preemptions_; }

  void AddTo(Hasher& hasher) const;

 private:
  struct Queue {
    std::string cohort;
    std::vector<api::ResourceGroup> groups;
    Amounts quota;
    Amounts quota_most;  // That it ever had: the scheduler may not have heard of less.
    bool strict = false;
    bool stopped = false;
    bool operator==(const Queue&) const = default;
  };
  struct Workload {
    std::string uid;
    std::string queue;  // LocalQueues are called as what they lead to.
    int64_t priority = 0;
    std::vector<AskedSet> sets;
    Amounts granted;  // By its admission, of those pods that are not done.
    // Where its pods are to stand by a topology: how many of a set on a node.
    PlacesByNode places;
    model::WorkloadStatus status;
    bool operator==(const Workload&) const = default;
  };

  void JudgeOrder(const Workload& workload, const model::State& state,
                  std::vector<std::string>& findings) const;
  void OnQueue(const env::JournalRecord& record);
  void JudgeKept(const env::JournalRecord& record, std::vector<std::string>& findings);
  [[nodiscard]] std::string HolderIn(const std::string& queue) const;
  [[nodiscard]] std::vector<std::string> LeavesAtRest() const;
  void OnWorkload(const env::JournalRecord& record, bool by_scheduler, const model::State& state,
                  std::vector<std::string>& findings);
  void Judge(const std::string& key, const Workload& before, const Workload& after,
             const model::State& state, std::vector<std::string>& findings) const;
  void JudgeReservation(const std::string& key, const Workload& workload, const model::State& state,
                        std::vector<std::string>& findings) const;
  [[nodiscard]] std::string RootOf(const std::string& queue) const;
  [[nodiscard]] Amounts QuotaOf(const std::string& root, Amounts Queue::* member) const;
  [[nodiscard]] Amounts ReservedIn(const std::string& root) const;
  [[nodiscard]] Rooms RoomsBesidePlaces(const sim::Truth& truth) const;
  [[nodiscard]] bool Finds(const Workload& workload, const Amounts& left, const Rooms* rooms,
                           bool joint) const;
  [[nodiscard]] bool MayBeServed(const Workload& workload, Instant now) const;

  codec::Decoder decoder_;
  std::map<std::string, Queue> queues_;         // By name; those that are there.
  std::map<std::string, bool> local_queues_;    // By name: whether it is stopped.
  std::map<std::string, std::string> parents_;  // Of cohorts.
  Flavors flavors_;                             // By name; those that are there.
  std::map<std::string, Workload> workloads_;   // By key; those that are there.
  // By uid: the key of who waits for what others were evicted for.
  std::map<std::string, std::string> promised_;
  uint32_t preemptions_ = 0;
  // Keys of ClusterQueues and flavors that the finalizer keeps: whether they are being deleted.
  std::map<std::string, bool> kept_;
};

}  // namespace berth::explore
