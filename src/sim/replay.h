#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "api/json.h"
#include "api/types.h"
#include "base/hash.h"
#include "base/prng.h"
#include "base/result.h"
#include "base/time.h"
#include "cycle/engine.h"
#include "model/delta.h"
#include "model/policy.h"
#include "place/fragments.h"
#include "sim/trace.h"

// The fill protocol of Weng et al. (ATC 2023) over an openb trace: pods sorted by name, shuffled
// with a seed, re-sampled with replacement until their GPU demand is a multiple of the cluster's,
// placed one by one and never removed; what fits nowhere is dropped. Reported is what is allocated
// once 90, 100, 110 and 130 % of the cluster's GPUs have been asked for.
namespace berth::sim {

struct ReplayOptions {
  model::Policy policy = model::Policy::kSpread;
  uint64_t seed = 42;  // Of the order, the re-sampling and kRandom.
  Ratio arrived{.part = 13,
                .whole = 10};  // How much demand arrives, in parts of the GPUs that there are.
};

// Between two arrivals in virtual time: so little that nothing which goes by time, such as telling
// waiting pods anew, happens in a replay of limits::kPodsMax pods. The protocol knows no time.
inline constexpr Duration kArrivalEvery = Duration::Microseconds(1);

// One pod that arrives.
struct Arrival {
  uint32_t pod = 0;     // Index in the trace.
  uint32_t repeat = 0;  // 0 for the pod itself, then 1, 2... for each time it was drawn again.
};

// Who arrives, in order: as few as reach the demand. Fails when there are no GPUs, no demand for
// them, or too many pods would be needed. O(pods log pods + arrivals).
[[nodiscard]] Result<std::vector<Arrival>> FillOrder(std::span<const TraceNode> nodes,
                                                     std::span<const TracePod> pods,
                                                     const ReplayOptions& options);

// "openb-pod-0017", and "openb-pod-0017-2" when it was drawn for the second time again.
[[nodiscard]] std::string NameOf(const TracePod& pod, uint32_t repeat);

// The objects that a trace's rows stand for: typed for the engine alone, documents for the whole
// stack; both say the same. A pod's models are required node affinity, its GPUs the extended
// resource berth.dev/gpu-milli.
[[nodiscard]] api::Node NodeOf(const TraceNode& node);
[[nodiscard]] api::Pod PodOf(const TracePod& pod, uint32_t repeat);
[[nodiscard]] api::Json NodeDocument(const TraceNode& node);
[[nodiscard]] api::Json PodDocument(const TracePod& pod, uint32_t repeat);

// An engine that ranks nodes as the replay wants it. What kFgd takes for the load's typical pods
// are those of the trace itself.
[[nodiscard]] cycle::Engine::Options EngineOptions(const ReplayOptions& options,
                                                   std::span<const TracePod> pods);

// Amounts of one resource over the cluster.
struct Allocation {
  int64_t allocated = 0;
  int64_t capacity = 0;
  bool operator==(const Allocation&) const = default;
};

// The cluster once so much demand has arrived.
struct Level {
  int64_t arrived_percent = 0;
  int64_t arrived = 0;  // Pods.
  int64_t placed = 0;
  // Pods by the reason that most nodes give, in upstream's words.
  std::map<std::string, int64_t> pending;
  Allocation gpu_milli;
  Allocation cpu_milli;
  Allocation memory_bytes;
  bool operator==(const Level&) const = default;
};

struct ReplayReport {
  std::string policy;
  uint64_t seed = 0;
  int64_t nodes_count = 0;
  std::vector<Level> levels;   // Those of 90, 100, 110 and 130 % that were reached, and the end.
  uint64_t decision_hash = 0;  // Of (arrival, node, devices) in the order decided.
  int64_t decisions = 0;       // Pods that were placed or refused.
  int64_t decisions_per_second = 0;  // Set by who holds a clock.
  int64_t rows_skipped = 0;          // Bad rows of the trace. Set by who read it.
  bool operator==(const ReplayReport&) const = default;
};

[[nodiscard]] std::string_view ToString(model::Policy policy);
[[nodiscard]] Result<model::Policy> ParsePolicy(std::string_view text);
[[nodiscard]] api::Json ToJson(const ReplayReport& report);

// The reason that most nodes give in a FailedScheduling message ("0/3 nodes are available: 2
// Insufficient cpu, ..."), ties by its words; a message of another form as it is.
[[nodiscard]] std::string MainReason(std::string_view message);

// Keeps the report while pods arrive and are decided; the same for the engine alone and for the
// whole stack.
class ReplayRecorder {
 public:
  // REQUIRES: arrivals point into pods; both outlive it.
  ReplayRecorder(const ReplayOptions& options, std::span<const TraceNode> nodes,
                 std::span<const TracePod> pods, std::span<const Arrival> arrivals);

  // The next arrival was decided. To be called for each of them in order.
  struct Decision {
    std::string_view node;  // Empty: it waits.
    uint32_t devices_mask = 0;
    std::string_view reason;  // Why it waits.
  };
  void Decided(const Decision& decision);

  [[nodiscard]] size_t decided() const { return next_; }
  [[nodiscard]] size_t arrivals() const { return arrivals_.size(); }
  // The report as of now; once all are decided its last level is the end.
  [[nodiscard]] ReplayReport Report() const;

 private:
  [[nodiscard]] Level Now(int64_t percent) const;

  const ReplayOptions options_;
  const std::span<const TracePod> pods_;
  const std::span<const Arrival> arrivals_;
  int64_t nodes_count_ = 0;
  Level level_;
  int64_t arrived_gpu_milli_ = 0;
  size_t next_ = 0;
  std::vector<Level> reached_;
  Hasher hasher_;
};

// What a replay works through.
struct FillInputs {
  std::vector<TraceNode> nodes;
  std::vector<TracePod> pods;
  std::vector<Arrival> arrivals;
};

// The protocol on the engine alone: no API, no store, no clock. Step() in slices shows progress.
class EngineReplay {
 public:
  // Fails as FillOrder does.
  [[nodiscard]] static Result<EngineReplay> Make(std::vector<TraceNode> nodes,
                                                 std::vector<TracePod> pods,
                                                 const ReplayOptions& options);

  // Decides up to `count` more pods, one cycle each; false once all are decided.
  bool Step(size_t count);
  [[nodiscard]] size_t decided() const { return recorder_.decided(); }
  [[nodiscard]] size_t arrivals() const { return recorder_.arrivals(); }
  [[nodiscard]] ReplayReport Report() const { return recorder_.Report(); }
  [[nodiscard]] const cycle::Engine& engine() const { return engine_; }

 private:
  EngineReplay(std::unique_ptr<const FillInputs> inputs, const ReplayOptions& options,
               cycle::Engine engine);
  void Decide(const Arrival& arrival);
  void Rest();

  std::unique_ptr<const FillInputs> inputs_;  // On the heap: the recorder points into it.
  ReplayRecorder recorder_;
  cycle::Engine engine_;
  std::vector<model::PodUpsert> facts_;  // By trace pod: translated once, then named anew.
  Instant now_;
};

}  // namespace berth::sim
