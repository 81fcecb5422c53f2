#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "base/hash.h"
#include "model/classes.h"
#include "model/ids.h"
#include "model/intern.h"
#include "model/ledger.h"
#include "model/lists.h"

namespace berth::place {

// A kind of pod that a cluster sees often, for the measure of fragmentation.
struct TypicalPod {
  model::Amount cpu_milli = 0;
  model::GpuDemand gpu;
  std::vector<model::NameId> models;  // Allowed GPU models, sorted; empty allows all.
  int64_t count = 0;
  [[nodiscard]] bool SameKind(const TypicalPod& other) const {
    return cpu_milli == other.cpu_milli && gpu == other.gpu && models == other.models;
  }
};

// The most popular kinds of `pods` that make up 95 % of them, most popular first. Equal kinds in
// the input are added up; ties end in the larger demand of GPUs, then of cpu, then in the order of
// the input. O(pods x kinds).
[[nodiscard]] std::vector<TypicalPod> MostPopular(std::span<const TypicalPod> pods);

// What one node has left, as fragmentation sees it.
struct Leftover {
  model::Amount cpu_milli = 0;
  std::array<int32_t, model::kDevicesMax> devices_milli{};  // 0 beyond the devices that exist.
  model::NameId gpu_model;
};

// Fragmentation of GPUs after Weng et al., "Beware of Fragmentation: Scheduling GPU-Sharing
// Workloads with Fragmentation Gradient Descent", USENIX ATC 2023: the GPU that a node has left but
// a typical pod can't use, in expectation over typical pods.
//
// Integer throughout: popularity stays a count, so a fragment is in milli x pods and exact; the
// score's sigmoid is a table of thresholds made once. A value: copyable, immutable after
// construction.
class FragmentTable {
 public:
  FragmentTable() : FragmentTable(std::span<const TypicalPod>()) {}
  explicit FragmentTable(std::span<const TypicalPod> typical);

  // Sum over typical pods of count x (all that is left, if the pod can't run there or needs no GPU,
  // else what is left on devices too full for it). O(groups x devices); a group is a demand of GPUs
  // (13 for the 35 typical pods of the openb trace).
  [[nodiscard]] int64_t Fragment(const Leftover& node) const;

  // floor(100 x sigmoid(drop / (pods x 1000))) for a fragment that falls by `drop`: 0..99, 50 at 0.
  // O(log 100).
  [[nodiscard]] int64_t Score(int64_t drop) const;

  [[nodiscard]] bool empty() const { return pods_count_ == 0; }
  void AddTo(Hasher& hasher) const;
  bool operator==(const FragmentTable&) const = default;

 private:
  struct Group {
    model::GpuDemand gpu;
    uint32_t models_first = 0;
    uint32_t models_count = 0;
    uint32_t cpus_first = 0;
    uint32_t cpus_count = 0;
    int64_t count = 0;
    bool operator==(const Group&) const = default;
  };
  struct CpuStep {
    model::Amount cpu_milli = 0;
    int64_t count_up_to = 0;  // Pods of the group that need at most this much cpu.
    bool operator==(const CpuStep&) const = default;
  };

  std::vector<Group> groups_;
  std::vector<model::NameId> models_;
  std::vector<CpuStep> cpus_;
  int64_t pods_count_ = 0;
  int64_t without_gpu_count_ = 0;
  std::array<int64_t, 100> thresholds_{};  // [k]: the least drop that scores k.
};

// e^x by fixed operations (argument reduction by ln 2, then a Taylor polynomial), so that it is the
// same on every machine. Relative error under 1e-14 for |x| <= 700.
[[nodiscard]] double Exp(double x);

}  // namespace berth::place
