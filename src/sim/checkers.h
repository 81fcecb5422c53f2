#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "api/types.h"
#include "base/hash.h"
#include "base/time.h"
#include "codec/decode.h"
#include "env/actor.h"
#include "sim/network.h"

namespace berth::sim {

// What is true: the objects as the journal has them, decoded, whatever any client believes.
class Truth {
 public:
  struct PodFacts {
    std::string key;  // namespace/name
    std::string uid;
    std::string node_name;
    std::string phase;
    std::string scheduler_name;
    bool gated = false;
    bool deleting = false;
    bool ready = false;
    std::string owner_uid;
    std::string owner_kind;
    int64_t cpu_milli = 0;
    int64_t memory = 0;
  };
  struct NodeFacts {
    std::string uid;
    int64_t cpu_milli = 0;
    int64_t memory = 0;
    int64_t pods = 0;
    bool unschedulable = false;
    bool tainted = false;
  };
  struct Usage {
    int64_t cpu_milli = 0;
    int64_t memory = 0;
    int64_t pods = 0;
  };

  // Takes one durable change. The pod as it was before is returned, when it was a pod's change and
  // there was one.
  struct Change {
    std::optional<PodFacts> pod_before;
    std::optional<PodFacts> pod_after;
  };
  Change Apply(const env::JournalRecord& record);

  [[nodiscard]] const std::map<std::string, PodFacts>& pods() const { return pods_; }
  [[nodiscard]] const std::map<std::string, NodeFacts>& nodes() const { return nodes_; }
  // What bound, not terminal pods ask of a node, by its name.
  [[nodiscard]] const std::map<std::string, Usage>& usage() const { return usage_; }
  // Other kinds: the latest document by kind's plural and key.
  [[nodiscard]] const std::map<std::string, Bytes>& others() const { return others_; }

 private:
  static PodFacts FactsOf(const std::string& key, const api::Pod& pod);
  void Charge(const PodFacts& pod, int64_t sign);

  codec::Decoder decoder_;
  std::map<std::string, PodFacts> pods_;
  std::map<std::string, NodeFacts> nodes_;
  std::map<std::string, Usage> usage_;
  std::map<std::string, Bytes> others_;
};

// The invariants that hold after every step, whatever went wrong (reference: kube-scheduler
// invariants 1, 2, 4 and 7). A violation is kept as a sentence; the run ends at the first.
class Checkers {
 public:
  // Durable changes, in order.
  void OnCommit(Instant now, const env::JournalRecord& record);
  // A request that leaves the scheduler, and what reaches it: at most one binding is accepted for a
  // pod, and none is repeated before its fate was read.
  void OnSent(Instant now, Party party, const env::SendRequest& request);
  void OnDelivered(Instant now, Party party, const env::Input& input);
  void OnSchedulerRestarted();

  void Report(Instant now, const std::string& what);
  [[nodiscard]] const std::vector<std::string>& violations() const { return violations_; }
  [[nodiscard]] const Truth& truth() const { return truth_; }
  [[nodiscard]] uint64_t commits() const { return commits_; }
  [[nodiscard]] uint64_t bindings() const { return bindings_; }

 private:
  void CheckPod(Instant now, const Truth::PodFacts& before, const Truth::PodFacts& after);
  void OnFailed(const env::CallFailed& failed);
  void CheckCapacity(Instant now, const std::string& node);

  Truth truth_;
  std::vector<std::string> violations_;
  std::set<std::string> bound_uids_;
  // By pod uid: bindings sent whose outcome the scheduler has not learnt. Learnt by an answer, or
  // by reading the pod.
  std::map<std::string, uint64_t> open_bindings_;
  std::map<uint64_t, std::string> uid_by_call_;
  uint64_t commits_ = 0;
  uint64_t bindings_ = 0;
};

}  // namespace berth::sim
