#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "base/hash.h"
#include "model/ids.h"
#include "model/workloads.h"
#include "quota/flavors.h"

namespace berth::cycle {

// Where looks at flavors ended of workloads that got nothing because others were served before
// them: the next look goes on there, so that who is outrun in one flavor comes to those behind it
// (https://github.com/kubernetes-sigs/kueue/issues/13956). Kueue: LastAssignment.
//
// Kept by workload and forgotten with the look that gives or refuses it quota. A new version of its
// object keeps it as long as it asks for the same; whether it counts is quota::IsOutdated of two
// stamps. Nothing of it is stored: after a restart a look begins at the first flavor.
class FlavorScans {
 public:
  // By pod set.
  using Positions = std::vector<std::vector<quota::ScanPosition>>;

  // All heads are looked at once.
  void BeginRound() { ++round_; }
  // Quota was added or given back somewhere.
  void NoteQuota() { ++generation_; }
  // `row` is of who was outrun; what it would have got were those flavors.
  void Outrun(model::WorkloadId workload, const model::Workload& row,
              const quota::FlavorAssignment& flavors);
  void Forget(model::WorkloadId workload) { ended_.erase(workload); }
  // Null: its next look begins at the first flavor.
  [[nodiscard]] const Positions* Find(model::WorkloadId workload, const model::Workload& row) const;

  void AddTo(Hasher& hasher) const;

 private:
  struct Ended {
    quota::ScanStamp stamp;
    Positions positions;
  };
  [[nodiscard]] quota::ScanStamp StampOf(const model::Workload& row) const;

  int64_t round_ = 0;
  int64_t generation_ = 0;
  std::map<model::WorkloadId, Ended> ended_;
};

}  // namespace berth::cycle
