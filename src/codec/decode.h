#pragma once

#include <memory>
#include <string_view>

#include "api/groups.h"
#include "api/pod_defaults.h"
#include "api/quota.h"
#include "api/types.h"
#include "api/workloads.h"
#include "base/result.h"

// JSON documents to the typed views of api/types.h, api/workloads.h, api/groups.h, api/quota.h and
// api/pod_defaults.h, by simdjson.
namespace berth::codec {

// Holds the parser's buffers, so that decoding many documents allocates only what the views hold,
// and remembers up to 128 specs of pods by their text (1 MiB of it at most), so that of a known
// spec's pods only the rest is read; they share the spec, as pod sets of Workloads do. It is no
// state: copies start fresh, all are equal, and nothing decoded depends on what was decoded before.
// One thread at a time.
//
// Fields that a view lacks are skipped, so any version of a kind decodes. An Error names the field
// and says what is wrong: malformed JSON, a value of another type than the view needs, a quantity
// that is none or negative. Numbers may stand where Kubernetes takes quantities as numbers. Cost:
// linear; a pod of 2.5 KB takes a few microseconds, of a known spec half of them
// (codec/decode_bench.cc).
class Decoder {
 public:
  Decoder();
  ~Decoder();
  Decoder(const Decoder&);
  Decoder& operator=(const Decoder&);
  Decoder(Decoder&&) noexcept;
  Decoder& operator=(Decoder&&) noexcept;
  bool operator==(const Decoder&) const { return true; }

  [[nodiscard]] Result<api::ObjectHead> Head(std::string_view json);
  [[nodiscard]] Result<api::Pod> Pod(std::string_view json);
  // What can be read of one that Pod() refuses, to tell whose it is; the rest is as if it were not
  // there.
  [[nodiscard]] api::Pod PodInPart(std::string_view json);
  [[nodiscard]] Result<api::Node> Node(std::string_view json);
  [[nodiscard]] Result<api::Deployment> Deployment(std::string_view json);
  [[nodiscard]] Result<api::ReplicaSet> ReplicaSet(std::string_view json);
  [[nodiscard]] Result<api::ReplicationController> ReplicationController(std::string_view json);
  [[nodiscard]] Result<api::StatefulSet> StatefulSet(std::string_view json);
  [[nodiscard]] Result<api::ControllerRevision> ControllerRevision(std::string_view json);
  [[nodiscard]] Result<api::DaemonSet> DaemonSet(std::string_view json);
  [[nodiscard]] Result<api::CronJob> CronJob(std::string_view json);
  [[nodiscard]] Result<api::Job> Job(std::string_view json);
  [[nodiscard]] Result<api::Namespace> Namespace(std::string_view json);
  [[nodiscard]] Result<api::ServiceAccount> ServiceAccount(std::string_view json);
  [[nodiscard]] Result<api::ConfigMap> ConfigMap(std::string_view json);
  [[nodiscard]] Result<api::PriorityClass> PriorityClass(std::string_view json);
  [[nodiscard]] Result<api::LimitRange> LimitRange(std::string_view json);
  [[nodiscard]] Result<api::RuntimeClass> RuntimeClass(std::string_view json);
  [[nodiscard]] Result<api::Lease> Lease(std::string_view json);
  [[nodiscard]] Result<api::PodDisruptionBudget> PodDisruptionBudget(std::string_view json);
  [[nodiscard]] Result<api::PodGroup> PodGroup(std::string_view json);
  [[nodiscard]] Result<api::Queue> Queue(std::string_view json);
  [[nodiscard]] Result<api::ResourceFlavor> ResourceFlavor(std::string_view json);
  [[nodiscard]] Result<api::ClusterQueue> ClusterQueue(std::string_view json);
  [[nodiscard]] Result<api::Cohort> Cohort(std::string_view json);
  [[nodiscard]] Result<api::LocalQueue> LocalQueue(std::string_view json);
  [[nodiscard]] Result<api::AdmissionCheck> AdmissionCheck(std::string_view json);
  [[nodiscard]] Result<api::Topology> Topology(std::string_view json);
  [[nodiscard]] Result<api::WorkloadPriorityClass> WorkloadPriorityClass(std::string_view json);
  [[nodiscard]] Result<api::Workload> Workload(std::string_view json);
  // A topologyAssignment alone, as TopologyAssignmentText writes it.
  [[nodiscard]] Result<api::TopologyAssignment> TopologyAssignment(std::string_view json);
  // The podSetUpdates of an admission check alone.
  [[nodiscard]] Result<std::vector<api::PodSetUpdate>> PodSetUpdates(std::string_view json);
  // A placement, as PlacementText writes it.
  [[nodiscard]] Result<api::Placement> Placement(std::string_view json);

 private:
  struct Buffers;
  [[nodiscard]] Buffers& buffers();

  std::unique_ptr<Buffers> buffers_;
};

// The same with a parser of its own, for callers that decode now and then.
[[nodiscard]] Result<api::ObjectHead> DecodeHead(std::string_view json);
[[nodiscard]] Result<api::Pod> DecodePod(std::string_view json);
[[nodiscard]] Result<api::Node> DecodeNode(std::string_view json);

}  // namespace berth::codec
