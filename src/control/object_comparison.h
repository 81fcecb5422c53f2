#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "base/time.h"
#include "client/client.h"
#include "env/actor.h"

namespace berth::control {

class Scheduler;

// Compares what the scheduler knows of pods and nodes with the objects themselves, as they are read
// anew, page by page: which of them there are, where pods stand and are nominated, what nodes have
// to give. kube-scheduler's cache debugger compares its cache with its informers, of which it
// doesn't know whether they are right.
//
// While objects change, a list and what watches have told differ for a moment. So it looks twice,
// kPause apart, and tells of what it has found both times. Nothing is decided by it. A copyable
// value. Cost: two lists; 150 B a pod while it is under way.
class ObjectComparison {
 public:
  static constexpr Duration kPause = Duration::Seconds(3);
  static constexpr size_t kToldMax = 100;

  // Nothing, while one is under way.
  void Begin(Instant now, client::Client& client, env::Outbox& out);
  // False: the call was not its own.
  bool OnCallDone(Instant now, const client::CallDone& done, const Scheduler& scheduler,
                  env::Outbox& out);
  // On each Tick.
  void Pump(Instant now, client::Client& client, env::Outbox& out);
  [[nodiscard]] Instant wake_at() const { return at_; }
  [[nodiscard]] bool under_way() const { return call_ != 0 || at_ != Instant::Never(); }
  void AddTo(Hasher& hasher) const;

 private:
  struct PodSeen {
    std::string key;
    std::string node;
    std::string nominated;
    bool terminal = false;
  };
  struct NodeSeen {
    std::string uid;
    bool unschedulable = false;
    std::vector<std::pair<std::string, int64_t>> allocatable;
  };

  void Ask(Instant now, client::Client& client, env::Outbox& out);
  void Read(std::string_view item);
  void Fail(std::string_view why, env::Outbox& out);
  void Finish(Instant now, const Scheduler& scheduler, env::Outbox& out);
  [[nodiscard]] std::set<std::string> Differences(const Scheduler& scheduler) const;
  void ComparePods(const Scheduler& scheduler, std::set<std::string>& differences) const;
  void CompareNodes(const Scheduler& scheduler, std::set<std::string>& differences) const;

  std::map<std::string, PodSeen, std::less<>> pods_;    // By uid.
  std::map<std::string, NodeSeen, std::less<>> nodes_;  // By name.
  std::set<std::string, std::less<>> unread_;           // Nodes that are there and can't be read.
  std::set<std::string> found_;                         // At the first look.
  bool of_nodes_ = false;                               // It lists nodes, the pods are read.
  bool second_ = false;
  uint64_t call_ = 0;
  std::string next_;  // Where the next page begins.
  Instant at_ = Instant::Never();
};

}  // namespace berth::control
