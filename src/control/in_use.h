#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>

#include "api/kinds.h"
#include "api/quota.h"
#include "base/hash.h"
#include "base/time.h"
#include "client/client.h"
#include "control/status_pump.h"
#include "env/actor.h"

namespace berth::control {

// Keeps what is in use from being gone at once, by Kueue's finalizer: a ClusterQueue while
// workloads hold quota in it, a ResourceFlavor or AdmissionCheck while a ClusterQueue names it, a
// Topology while a ResourceFlavor does. Others get the finalizer, too, and lose it when they are to
// be deleted. Who names a flavor that is being deleted counts as any; nothing else waits for it.
//
// Each write is a merge patch of the finalizers, fenced by uid and resourceVersion, so that those
// of others are as they were. Whether one is due is a function of what was observed last.
//
// A copyable value. Cost per call: O(log objects); O(all ClusterQueues and flavors with what they
// name) where something of these changed while an object that has the finalizer is being deleted.
class InUse {
 public:
  explicit InUse(StatusOptions options) : objects_(options) {}

  // A version of an object; to be called for each.
  void Observe(const api::ClusterQueue& queue);
  void Observe(const api::ResourceFlavor& flavor);
  void Observe(const api::Topology& topology);
  void Observe(const api::AdmissionCheck& check);
  // It is gone. Ignored for other kinds than those above.
  void Forget(api::KindId kind, std::string_view name);
  // Everything that exists was observed once. Before that nothing is written.
  void Listed() { listed_ = true; }

  // Whether it is being deleted. False of kinds that are not observed.
  [[nodiscard]] bool IsBeingDeleted(api::KindId kind, std::string_view name) const;
  // Whether a ClusterQueue that is being deleted waits for SetHeld to be called once at least.
  [[nodiscard]] bool AsksWhoHolds() const { return !unasked_.empty(); }
  // Whether one is kept: SetHeld is to be called again when workloads change.
  [[nodiscard]] bool KeepsQueues() const;
  // The ClusterQueues in which workloads hold quota, or are about to.
  void SetHeld(const std::set<std::string, std::less<>>& cluster_queues);

  void Pump(Instant now, client::Client& client, env::Outbox& out);
  // False: the call was none of these.
  bool OnCallDone(Instant now, const client::CallDone& done);
  [[nodiscard]] Instant wake_at() const;
  [[nodiscard]] const StatusCounters& counters() const { return objects_.counters(); }

  void AddTo(Hasher& hasher) const;

 private:
  struct Subject {
    api::KindId kind = api::KindId::kClusterQueue;
    api::ObjectMeta head;
    bool used = true;  // As far as is known of one that is being deleted.

    [[nodiscard]] const api::ObjectMeta& meta() const { return head; }
    [[nodiscard]] StatusNeed need() const;
    [[nodiscard]] client::Request WriteOf(Instant now) const;
    void AddTo(Hasher& hasher) const;
  };
  // What a ClusterQueue names.
  struct Named {
    std::set<std::string, std::less<>> flavors;
    std::set<std::string, std::less<>> checks;
    bool operator==(const Named&) const = default;
  };

  void Note(api::KindId kind, const api::ObjectMeta& meta);
  void WorkOut();

  StatusPump<Subject> objects_;    // By plural/name.
  std::set<std::string> leaving_;  // Keys of those that are being deleted and have the finalizer.
  std::set<std::string> unasked_;  // ClusterQueues of them.
  std::map<std::string, Named, std::less<>> named_by_;           // By ClusterQueue.
  std::map<std::string, std::string, std::less<>> topology_of_;  // By flavor; empty: none.
  bool listed_ = false;
  bool stale_ = true;  // Who is used is to be worked out anew.
};

}  // namespace berth::control
