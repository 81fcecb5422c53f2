#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "base/time.h"
#include "model/reason.h"

namespace berth::control {

// Counts by upper bounds that double, as Prometheus' ExponentialBuckets(first, 2, N); `sum` is in
// the same unit.
template <size_t N>
struct Histogram {
  std::array<uint64_t, N + 1> counts{};  // Each of its own bucket; the last is above all bounds.
  int64_t sum = 0;

  void Add(int64_t value, int64_t first, uint64_t times = 1) {
    size_t bucket = 0;
    for (int64_t bound = first; bucket < N && value > bound; bound *= 2) ++bucket;
    counts[bucket] += times;
    sum += value * static_cast<int64_t>(times);
  }
};

// What becomes of attempts to place pods, for the metrics that kube-scheduler has. Only shown:
// nothing follows from it. Times are those of steps: a decision begins with the step that it is
// made in, and ends with the step that hears of its binding. A copyable value; at most an entry per
// pod that waits. Cost per call: O(log of those).
class SchedulingMetrics {
 public:
  static constexpr int64_t kAttemptFirstNs = 1'000'000;  // kube-scheduler's bounds.
  static constexpr int64_t kSliFirstNs = 10'000'000;
  static constexpr int64_t kExtensionPointFirstNs = 100'000;
  struct OfProfile {
    uint64_t scheduled = 0;
    uint64_t unschedulable = 0;
    uint64_t errors = 0;
    Histogram<15> durations;  // Of attempts that were scheduled, in ns.
    // From the decision until its binding may be sent (volumes are bound meanwhile), and from then,
    // its turn in the client's queue included, to its answer or to what a read told; in ns.
    Histogram<12> pre_bind;
    Histogram<12> bind;
    Histogram<12> bind_failed;
  };

  // It may be placed from now on, if that is new.
  void Waits(Instant now, std::string_view uid);
  void Decided(Instant now, std::string_view uid);
  void FoundNoNode(std::string_view uid, std::string_view profile, model::ReasonMask reasons);
  void Refused(std::string_view profile) { ++Of(profile).errors; }
  void BindSent(Instant now, std::string_view uid, std::string_view profile);
  // Refused or of unknown fate, in which case Bound may follow.
  void BindFailed(Instant now, std::string_view uid, std::string_view profile);
  void Bound(Instant now, std::string_view uid, std::string_view profile);
  void Forget(std::string_view uid);

  [[nodiscard]] const std::map<std::string, OfProfile, std::less<>>& profiles() const {
    return profiles_;
  }
  // From when a pod may be placed to its binding, in ns, by attempts; the last has all from
  // kAttemptsMost on.
  [[nodiscard]] const std::map<uint32_t, Histogram<20>>& sli() const { return sli_; }
  [[nodiscard]] const Histogram<5>& attempts() const { return attempts_; }
  static constexpr uint32_t kAttemptsMost = 15;
  // Pods that may be placed: that came, and that were told that no node would have them.
  [[nodiscard]] uint64_t came() const { return came_; }
  [[nodiscard]] uint64_t refused() const { return refused_; }
  // Of those that wait, how many were last refused for which reasons, by profile. O(those).
  using Refusals = std::map<std::pair<std::string, model::ReasonMask>, uint64_t>;
  [[nodiscard]] Refusals CountRefused() const;

 private:
  struct Entry {
    Instant since;
    Instant decided;    // Of the attempt that is under way.
    Instant sent = {};  // Likewise, its binding. Never: it has failed.
    uint32_t attempts = 0;
    model::ReasonMask reasons = 0;  // Of the last one that found no node.
    std::string profile = {};       // Likewise.
  };
  OfProfile& Of(std::string_view profile);

  std::map<std::string, Entry, std::less<>> waiting_;  // By uid.
  std::map<std::string, OfProfile, std::less<>> profiles_;
  std::map<uint32_t, Histogram<20>> sli_;
  Histogram<5> attempts_;
  uint64_t came_ = 0;
  uint64_t refused_ = 0;
};

}  // namespace berth::control
