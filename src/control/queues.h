#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "api/kinds.h"
#include "api/quota.h"
#include "base/hash.h"
#include "base/time.h"
#include "client/client.h"
#include "control/status_pump.h"
#include "env/actor.h"

namespace berth::control {

// Whether workloads get quota through a queue, as its condition Active tells it.
struct Readiness {
  bool active = false;
  std::string reason;
  std::string message;  // What is wrong, and what to change.
  bool operator==(const Readiness&) const = default;
};

// Workloads of a queue, as its status counts them.
struct WorkloadCounts {
  int64_t pending = 0;
  int64_t reserving = 0;  // Those that are admitted among them.
  int64_t admitted = 0;
  bool operator==(const WorkloadCounts&) const = default;
};

// What they hold of the quota of a queue's flavors, as its status tells it.
struct QueueUsage {
  api::FlavorUsages reserving;  // Those that are admitted among them.
  api::FlavorUsages admitted;
  bool operator==(const QueueUsage&) const = default;
};

// Of an AdmissionCheck, whether whoever does it says that it can.
struct CheckFacts {
  std::string controller;
  bool told = false;  // It has a condition Active.
  bool active = false;
  bool operator==(const CheckFacts&) const = default;
};

// Whether who passes the checks of such a controller may find other nodes than there were before:
// those that a ProvisioningRequest brought, or of another cluster. Places wait for these alone, as
// with Kueue.
[[nodiscard]] bool BringsNodes(std::string_view controller);

// What ClusterQueues refer to, by name.
struct QueueReferences {
  std::map<std::string, std::string, std::less<>> parents;      // Of cohorts; empty: none.
  std::map<std::string, std::string, std::less<>> topology_of;  // Of flavors; empty: none.
  std::map<std::string, CheckFacts, std::less<>> checks;
  std::set<std::string, std::less<>> topologies;
};

[[nodiscard]] Readiness ReadinessOf(const api::ClusterQueue& queue,
                                    const QueueReferences& references);

// What is wrong with a Cohort. Its status has no conditions: it is told by an event.
struct CohortFault {
  std::string name;
  std::string uid;
  std::string message;
};

// Kueue's ClusterQueues and LocalQueues, what they refer to, and what their status is to say. The
// only writer of their conditions Active, counts and usage; other conditions are left as they are.
// Writes go to the status subresource (control/status_pump.h): the condition at once, the rest not
// more often than the interval.
//
// Readiness is a function of what was observed last. It is worked out anew for all queues when
// something that several may refer to changed, once however much did.
//
// A copyable value. Cost: O(log objects) per call, but O(all queues and what they refer to) where
// readiness is worked out for all.
class Queues {
 public:
  explicit Queues(StatusOptions options) : cluster_queues_(options), local_queues_(options) {}

  // A version of an object; to be called for each.
  void Observe(api::ClusterQueue queue);
  void Observe(api::LocalQueue queue);
  void Observe(const api::Cohort& cohort);
  void Observe(const api::ResourceFlavor& flavor);
  void Observe(const api::Topology& topology);
  void Observe(const api::AdmissionCheck& check);
  // It is gone. REQUIRES: a kind of those above. The namespace counts of a LocalQueue only.
  void Forget(api::KindId kind, std::string_view namespace_name, std::string_view name);
  // Everything that exists was observed once. Before that nothing is known to be missing, and
  // nothing is written.
  void Listed();

  // Whether workloads get quota through the ClusterQueue, as of what was observed last; nothing: it
  // was not observed. O(what it names).
  [[nodiscard]] std::optional<Readiness> ReadinessNow(std::string_view cluster_queue) const;
  // The same of a cohort, there or not. O(cohorts above it).
  [[nodiscard]] Readiness ReadinessOfCohort(std::string_view cohort) const;
  // Whether some of the checks that it asks for are missing or not active, as far as was observed.
  [[nodiscard]] bool LacksChecks(const api::ClusterQueue& queue) const;
  // Whether the check may bring nodes; yes of one that is not there.
  [[nodiscard]] bool CheckBringsNodes(std::string_view check) const;
  // The ClusterQueues that ask for the check. O(ClusterQueues x their checks).
  [[nodiscard]] std::vector<api::ClusterQueue> QueuesAsking(std::string_view check) const;

  // As it was observed last; null for none.
  [[nodiscard]] const api::ClusterQueue* FindClusterQueue(std::string_view name) const;

  // Ignored for queues that were never observed. Until then the counts of a status stay, and what
  // it says of quota.
  void WantClusterQueue(std::string_view name, WorkloadCounts counts, QueueUsage usage = {});
  void WantLocalQueue(std::string_view namespace_name, std::string_view name, WorkloadCounts counts,
                      QueueUsage usage = {});

  void Pump(Instant now, client::Client& client, env::Outbox& out);
  // Of cohorts that came to be below themselves, or in another way than was told: each once.
  [[nodiscard]] std::vector<CohortFault> TakeCohortFaults();
  // False: the call was none of these.
  bool OnCallDone(Instant now, const client::CallDone& done);
  [[nodiscard]] Instant wake_at() const;
  [[nodiscard]] StatusCounters counters() const;

  void AddTo(Hasher& hasher) const;

 private:
  // Of a ClusterQueue or a LocalQueue.
  template <typename Queue>
  struct Subject {
    Queue queue;  // As observed.
    std::optional<Readiness> readiness;
    std::optional<WorkloadCounts> counts;
    QueueUsage usage;  // Wanted with the counts.

    [[nodiscard]] const api::ObjectMeta& meta() const { return queue.meta; }
    [[nodiscard]] StatusNeed need() const;
    [[nodiscard]] client::Request WriteOf(Instant now) const;
    void AddTo(Hasher& hasher) const;
  };
  template <typename Queue>
  using Pumps = StatusPump<Subject<Queue>>;

  // REQUIRES: that of its ClusterQueue is known.
  [[nodiscard]] Readiness ReadinessOfLocal(const api::LocalQueue& queue) const;
  void WorkOutAll();
  void WorkOutCycles();

  Pumps<api::ClusterQueue> cluster_queues_;  // By name.
  Pumps<api::LocalQueue> local_queues_;      // By namespace/name.
  QueueReferences references_;
  std::map<std::string, std::string, std::less<>> cohort_uids_;  // By name.
  std::map<std::string, std::string> cycles_told_;               // By uid of the cohort.
  std::vector<CohortFault> cohort_faults_;                       // To be told.
  bool listed_ = false;
  bool stale_ = true;  // Readiness is to be worked out for all. Else everyone's is known.
};

}  // namespace berth::control
