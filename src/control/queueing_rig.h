#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <functional>
#include <ostream>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "control/test_rig.h"
#include "model/profile.h"

// For tests of who is woken by what: a row is a pod that waits for one plugin, and an event.
// Another pod, the bystander, waits for a label that no node has. After the event it is counted who
// was tried. What finds a pod no node wakes nobody: here a hint is the filter itself, asked of the
// node that was touched. But what volumes hang on is of no node: whoever's claims are of it is
// tried, on all nodes, and it may be in vain.
namespace berth::control {

struct NodeShape {
  std::string name = "n";
  int cpu = 1;
  int memory = 8;  // Gi
  int pods = 110;
  std::string labels = {};  // "key":"value",...
  std::string taints = {};  // Objects.
  bool unschedulable = false;
  std::string features = {};  // Strings.
};

struct PodShape {
  std::string name = "w";  // The one that waits.
  std::string node = {};   // Where it is; empty: it waits.
  int cpu_milli = 100;
  std::string labels = {};
  std::string spec = {};  // Members, each after a comma.
  int priority = 0;
};

// Where it happens, where that is not the default profile without preemption.
struct Setting {
  bool preempts = false;
  std::vector<model::OptionalFilter> without = {};
};

// A cluster that is told of by watches, one version after another.
class Cluster {
 public:
  explicit Cluster(const Setting& setting = {}) : rig_(OptionsOf(setting)) {
    rig_.Start({}, {});
    Pod({.name = "bystander", .spec = R"(,"nodeSelector":{"of":"nobody"})"});
  }

  void Node(const NodeShape& shape) {
    Tell({"nodes", shape.name, "",
          fmt::format(R"("spec":{{"unschedulable":{},"taints":[{}]}},"status":{{"allocatable":)"
                      R"({{"cpu":"{}","memory":"{}Gi","pods":"{}"}},"declaredFeatures":[{}]}})",
                      shape.unschedulable, shape.taints, shape.cpu, shape.memory, shape.pods,
                      shape.features),
          shape.labels});
  }
  void Pod(const PodShape& shape) {
    const bool fresh = known_.insert("pods/" + shape.name).second;
    rig_.Event("pods", fresh ? "ADDED" : "MODIFIED", JsonOf(shape));
  }
  void PodGone(const PodShape& shape) { rig_.Event("pods", "DELETED", JsonOf(shape)); }
  void Claim(const std::string& name, std::string_view spec, bool bound = false,
             std::string_view mode = "ReadWriteOnce") {
    Tell({"persistentvolumeclaims", name, "ns",
          fmt::format(R"("spec":{{"accessModes":["{}"],"resources":{{"requests":)"
                      R"({{"storage":"5Gi"}}}}{}}},"status":{{"phase":"{}"}})",
                      mode, spec, bound ? "Bound" : "Pending"),
          "", bound ? R"("pv.kubernetes.io/bind-completed":"yes")" : ""});
  }
  // Bound to a volume of the name "v-" and its own.
  void BoundClaim(const std::string& name, std::string_view mode = "ReadWriteOnce") {
    Claim(name, fmt::format(R"(,"volumeName":"v-{}")", name), /*bound=*/true, mode);
  }
  // Of the volume "v" that is made for the pod alone; its class is "late".
  void OwnClaim(const PodShape& pod) {
    Tell({.plural = "persistentvolumeclaims",
          .name = pod.name + "-v",
          .ns = "ns",
          .body = R"("spec":{"accessModes":["ReadWriteOnce"],"storageClassName":"late",)"
                  R"("resources":{"requests":{"storage":"5Gi"}}},"status":{"phase":"Pending"})",
          .owners = fmt::format(R"({{"apiVersion":"v1","kind":"Pod","name":"{0}","uid":"u-{0}",)"
                                R"("controller":true}})",
                                pod.name)});
  }
  void Volume(const std::string& name, std::string_view spec, std::string_view labels = "",
              std::string_view size = "9Gi") {
    Tell(
        {"persistentvolumes", name, "",
         fmt::format(R"("spec":{{"accessModes":["ReadWriteOnce"],"capacity":{{"storage":"{}"}}{}}})"
                     R"(,"status":{{"phase":"Available"}})",
                     size, spec),
         labels});
  }
  void StorageClass(std::string_view more, std::string_view provisioner = "d",
                    const std::string& name = "late") {
    Tell({"storageclasses", name, "",
          fmt::format(R"("provisioner":"{}","volumeBindingMode":"WaitForFirstConsumer"{})",
                      provisioner, more)});
  }
  void Driver(bool tells_capacity) {
    Tell(
        {"csidrivers", "d", "", fmt::format(R"("spec":{{"storageCapacity":{}}})", tells_capacity)});
  }
  void Limit(int count, const std::string& node = "n") {
    Tell({"csinodes", node, "",
          fmt::format(R"("spec":{{"drivers":[{{"name":"d","nodeID":"{}","allocatable":)"
                      R"({{"count":{}}}}}]}})",
                      node, count)});
  }
  void Capacity(std::string_view most, const std::string& name = "c",
                std::string_view of = "late") {
    Tell({"csistoragecapacities", name, "ns",
          fmt::format(R"("storageClassName":"{}","nodeTopology":{{}},"capacity":"{}")", of, most)});
  }
  void Attachment(std::string_view volume, std::string_view node = "n") {
    Tell({"volumeattachments", "a", "",
          fmt::format(R"("spec":{{"attacher":"d","nodeName":"{}","source":)"
                      R"({{"persistentVolumeName":"{}"}}}})",
                      node, volume)});
  }
  void Gone(const std::string& plural, const std::string& name,
            const std::string& namespace_name = "") {
    known_.erase(plural + "/" + name);
    rig_.Event(plural, "DELETED", Json({plural, name, namespace_name}));
  }
  // What the API server answers to whom the room of others was promised, until these are deleted.
  void Evict(const PodShape& preemptor, const std::vector<PodShape>& victims) {
    const env::SendRequest nomination = rig_.TakeOf("/pods/" + preemptor.name + "/status");
    ASSERT_NE(nomination.call.value, 0u) << Why();
    rig_.Answer(nomination, 200, JsonOf(preemptor, R"(,"nominatedNodeName":"n")"));
    rig_.Settle();
    for (const PodShape& victim : victims) {
      rig_.Answer(rig_.TakeOf("/pods/" + victim.name + "/status"), 200, JsonOf(victim));
      rig_.Settle();
    }
    for (const PodShape& victim : victims) {
      const env::SendRequest deletion = rig_.TakeOf("/pods/" + victim.name);
      ASSERT_EQ(deletion.request.method, env::Method::kDelete);
      rig_.Answer(deletion, 200, "{}");
      rig_.Settle();
    }
  }

  [[nodiscard]] const cycle::Engine& engine() const { return rig_.scheduler.engine(); }
  [[nodiscard]] bool IsPlaced() { return rig_.StageOf("u-w") >= model::PodStage::kInFlight; }
  [[nodiscard]] std::string Why() { return rig_.Get("/debug/why?pod=ns/w"); }
  [[nodiscard]] std::string Metrics() { return rig_.Get("/metrics"); }
  // Whether the plugin refuses anyone who waits.
  [[nodiscard]] bool Refuses(std::string_view plugin) {
    return Metrics().contains(fmt::format(R"(scheduler_unschedulable_pods{{plugin="{}")", plugin));
  }
  void Wait() { rig_.Pass(Duration::Seconds(1)); }

 private:
  static SchedulerOptions OptionsOf(const Setting& setting) {
    SchedulerOptions options;
    options.volumes = true;
    options.engine.preemption = setting.preempts;
    model::ProfileOptions profile{.scheduler_name = "default-scheduler"};
    for (const model::OptionalFilter filter : setting.without) profile.rules.Disable(filter);
    if (!setting.without.empty()) options.engine.profiles = {profile};
    return options;
  }
  std::string JsonOf(const PodShape& shape, const std::string& status = "") {
    return PodJson({.name = shape.name,
                    .uid = "u-" + shape.name,
                    .version = ++version_,
                    .node = shape.node,
                    .cpu_milli = shape.cpu_milli,
                    .extra_meta = fmt::format(R"(,"labels":{{{}}})", shape.labels),
                    .extra_spec = shape.spec,
                    .extra_status = status,
                    .priority = shape.priority});
  }
  struct Object {
    std::string plural;
    std::string name;
    std::string_view ns = {};
    std::string_view body = {};
    std::string_view labels = {};
    std::string_view annotations = {};
    std::string owners = {};  // Objects.
  };
  std::string Json(const Object& object) {
    const auto& [plural, name, ns, body, labels, annotations, owners] = object;
    return fmt::format(
        R"({{"metadata":{{"name":"{0}",{1}"uid":"u-{2}-{0}","resourceVersion":"{3}",)"
        R"("labels":{{{4}}},"annotations":{{{5}}},"ownerReferences":[{6}]}}{7}{8}}})",
        name, ns.empty() ? "" : fmt::format(R"("namespace":"{}",)", ns), plural, ++version_, labels,
        annotations, owners, body.empty() ? "" : ",", body);
  }
  void Tell(const Object& object) {
    const bool fresh = known_.insert(object.plural + "/" + object.name).second;
    rig_.Event(object.plural, fresh ? "ADDED" : "MODIFIED", Json(object));
  }

  Rig rig_;
  int version_ = 200;
  std::set<std::string> known_;
};

enum class Wakes : uint8_t {
  kNobody,
  kTheOneThatWaits,
  kTheHolder,  // Its node was promised to it: it takes it, and no node is looked for.
  kInVain,     // It is tried, and finds none.
};

struct Row {
  std::string_view plugin;
  std::string_view event;  // As kube-scheduler's metrics name it, and what it does.
  std::function<void(Cluster&)> before;
  std::function<void(Cluster&)> happens;
  Wakes wakes = Wakes::kTheOneThatWaits;
  Setting setting = {};
  std::string_view told_as = {};  // The plugin that is told to refuse it; empty: the row's.
};
inline void PrintTo(const Row& row, std::ostream* out) { *out << row.plugin << ": " << row.event; }

inline void CheckRow(const Row& row) {
  Cluster cluster(row.setting);
  row.before(cluster);
  ASSERT_FALSE(cluster.IsPlaced()) << "it waits";
  EXPECT_TRUE(cluster.Refuses(row.told_as.empty() ? row.plugin : row.told_as)) << cluster.Why();
  const cycle::Counters before = cluster.engine().counters();
  row.happens(cluster);
  cluster.Wait();
  const cycle::Counters after = cluster.engine().counters();
  const bool holds = row.wakes == Wakes::kTheHolder;
  EXPECT_EQ(cluster.IsPlaced(), holds || row.wakes == Wakes::kTheOneThatWaits) << cluster.Why();
  const uint64_t tried = holds || row.wakes == Wakes::kNobody ? 0 : 1;
  EXPECT_EQ(after.attempts - before.attempts, tried) << "who was tried";
  EXPECT_EQ(cluster.engine().CountMissedWakes(), 0u);
  EXPECT_EQ(after.missed_wakes, 0u);
}

inline std::string NameOf(const ::testing::TestParamInfo<Row>& info) {
  std::string name;
  for (const char c : fmt::format("{}_{}", info.param.plugin, info.param.event))
    name += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  return name;
}

// ---- Situations ------------------------------------------------------------------------------

inline const std::string kTaint = R"({"key":"k","value":"v","effect":"NoSchedule"})";

inline std::string ZoneOf(std::string_view zone) { return fmt::format(R"("zone":"{}")", zone); }

}  // namespace berth::control
