#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "base/hash.h"
#include "base/time.h"
#include "model/ids.h"
#include "model/intern.h"
#include "model/plan.h"
#include "model/pods.h"
#include "model/reason.h"
#include "model/state.h"

namespace berth::cycle {

using LineId = Id<struct LineTag>;

// A line whose reasons keep changing is told anew after 1, 2, 4, ... seconds, at last every 30,
// since all its pods are written to; after a pause as long, again at once.
inline constexpr Duration kRefreshInterval = Duration::Seconds(1);
inline constexpr Duration kRefreshIntervalMax = Duration::Seconds(30);

// What pods of one class may wait for besides a node that fits.
enum class LineKind : uint8_t {
  kPreempting,  // The room of pods of lower priority.
  kNever,       // Nothing: preemptionPolicy Never.
  kHolders,     // What they were promised, until who is there has gone.
};
inline constexpr uint32_t kLineKindsCount = 3;

// Pods that are placed alike wait in one line: one class, one node name if they are pinned, one
// kind, of queued jobs or not, and of one group where they may evict, and of one priority where
// they need others besides; each by itself of which extenders are asked. What is true of the head's
// chances is true of the rest, so a line is tried, blocked and woken as one; but for the nodes that
// holders were promised, which are theirs alone.
struct Line {
  model::ClassId class_id;  // Without images, which no filter knows. Invalid in a free row.
  model::Pin pin;
  LineKind kind = LineKind::kPreempting;
  bool queued = false;  // model::Pod::queued of all of them.
  model::KeyId group;   // Whose members may not evict each other; invalid: they evict nobody, or
                        // are of none.
  std::optional<int32_t> priority;  // Of all of them, where they may evict and are to be beside
                                    // others: more important ones would evict these.
  model::PodId head;                // Root of a pairing heap of its pods.
  uint32_t size = 0;
  enum class Mode : uint8_t { kActive, kBackingOff, kBlocked } mode = Mode::kActive;
  uint32_t place = 0;            // Index in the list of its mode.
  int32_t failed_priority = 0;   // The least priority that a node was last found refusing.
  uint64_t blocked_cycle = 0;    // Blocked: in which cycle.
  model::Amount cpu = 0;         // Blocked: that its class asks for, ...
  int32_t blocked_priority = 0;  // ... and no pod of it is of a higher priority.
  model::PodId untold;  // Blocked or not: first of its pods that was not told yet why it waits.
  // Woken: no node fitted a pod of at most failed_priority when the touch log ended here, so only
  // nodes touched since can.
  static constexpr uint64_t kWide = ~uint64_t{0};
  uint64_t narrow_from = kWide;     // kWide: nothing is known.
  model::ReasonMask waits_for = 0;  // Woken: what it waited for.
  Instant report_until;             // The refusal is not worked out anew before.
  uint64_t report_position = 0;     // It tells of what the touch log holds up to here.
  bool others_behind = false;       // Only its head was told the refusal.
  uint32_t refreshes = 0;           // Without a pause between them; see RefreshReports.
  Instant refresh_at;               // All are not told anew before.
  model::Refusal refusal;           // Why, as of the last report.
};

// Who is tried next.
//
// Order: priority, larger first; pods of queued jobs first, which came with quota; creation, older
// first; uid. Inside a line the head is least in that order, and lines stand in the order of their
// heads. A line whose head was tried in vain a moment ago (unschedulable backoff) lets the others
// go first and is served when no other is left, as kube-scheduler pops from its backoff queue.
//
// Every operation is O(log pods + log lines), amortised; Touch scans the blocked lines' masks,
// about 1 ns each. All columns are flat.
class WaitingLines {
 public:
  // The order in which pods are served.
  [[nodiscard]] static bool PodBefore(const model::State& state, model::PodId a, model::PodId b);

  // Puts the pod in the line that is of it (Line) and of the kind, or moves it there. A blocked
  // line stays blocked unless the pod's priority is above the one that failed.
  void Put(const model::State& state, model::PodId pod, LineKind kind);
  void Remove(const model::State& state, model::PodId pod);
  [[nodiscard]] bool contains(model::PodId pod) const {
    return pod.value < line_of_.size() && line_of_[pod.value].valid();
  }
  [[nodiscard]] LineId line_of(model::PodId pod) const { return line_of_[pod.value]; }

  // The line to serve next; invalid when all are blocked. `now` ends backoffs.
  [[nodiscard]] LineId Next(const model::State& state, Instant now);
  [[nodiscard]] const Line& line(LineId id) const { return lines_[id.value]; }
  [[nodiscard]] uint32_t lines_size() const { return static_cast<uint32_t>(lines_.size()); }

  // The head has no node: the line waits until something that `reasons` names is lifted.
  void Block(const model::State& state, LineId id, model::ReasonMask reasons,
             uint64_t cycle_number);
  // The head was tried and is told this, which will do until then and tells of what the touch log
  // holds up to `position`. True when the other pods were told something else before.
  bool Report(LineId id, model::Refusal refusal, Instant until, uint64_t position);
  // The same without an attempt, for all of its pods: they are to be told what they were not.
  void Refresh(LineId id, model::Refusal refusal, Instant now, uint64_t position);
  // Adds to what a blocked line waits for: a touched node refuses a pod of this priority. One of
  // higher priority might look past what is promised there.
  void AddReasons(LineId id, model::ReasonMask reasons, int32_t priority) {
    Line& line = lines_[id.value];
    SetMask(line, id, blocked_masks_[line.place] | reasons);
    line.failed_priority = std::min(line.failed_priority, priority);
  }
  // Lets it be tried again, on nodes touched from `narrow_from` on. Into backoff order when its
  // head's unschedulable backoff is not over.
  void Wake(const model::State& state, LineId id, Instant now, uint64_t narrow_from);
  // Nothing is known any more of where an awake line can fit.
  void Widen(LineId id) { lines_[id.value].narrow_from = Line::kWide; }

  // What a touch may have lifted, and where.
  struct Lift {
    model::ReasonMask reasons = 0;
    bool any = false;  // Of all lines.
    model::NameId node;
    // A line that asks for more, and waits for amounts already, need not be looked at.
    model::Amount cpu_most = std::numeric_limits<model::Amount>::max();
  };
  // The blocked lines that it concerns: those that wait for any of the reasons and are not pinned
  // to another node. O(log lines + lines that ask for no more than `cpu_most` or wait for no
  // amounts).
  void Touched(const Lift& lift, std::vector<LineId>& out) const;
  // Adds the blocked lines that one of the reasons keeps waiting, on any node.
  void WaitingFor(model::ReasonMask reasons, std::vector<LineId>& out) const;
  // Whether a blocked line that waits for amounts asks for more cpu than `above`, up to `most`.
  // O(log lines).
  [[nodiscard]] bool AsksWithin(model::Amount above, model::Amount most) const;
  // No pod of a blocked line is of a higher priority. REQUIRES: there is a blocked line.
  [[nodiscard]] int32_t HighestBlocked() const { return blocked_priorities_.back().priority; }
  [[nodiscard]] std::span<const LineId> blocked() const { return blocked_; }
  [[nodiscard]] bool idle() const { return active_.empty() && backing_off_.empty(); }
  [[nodiscard]] uint32_t pods_count() const { return pods_count_; }

  // The pod, which must be in a line, is to be told (again) why it waits.
  void MarkUntold(model::PodId pod);
  // Takes the next pod of the line that was not told why it waits since it came; invalid when there
  // is none.
  [[nodiscard]] model::PodId TakeUntold(LineId id);
  // Lines that are blocked and have such pods; checked by the caller, may hold others.
  [[nodiscard]] bool lines_to_tell_empty() const { return lines_to_tell_.empty(); }
  [[nodiscard]] std::vector<LineId>& lines_to_tell() { return lines_to_tell_; }

  // `cycles`: how many there were.
  void AddTo(Hasher& hasher, const model::State& state, uint64_t cycles) const;

 private:
  // Pairing heap links and where a pod stands, by PodId.
  struct Links {
    model::PodId child;
    model::PodId next;
    model::PodId previous;  // Left sibling, or parent for a first child.
    model::PodId untold_next;
    model::PodId untold_previous;
    uint8_t untold = 0;
  };
  // A pod with what its line says of all of it: rows change before the pods are moved.
  struct Turn {
    model::PodId pod;
    bool queued = false;
  };
  [[nodiscard]] static bool Before(const model::State& state, const Turn& a, const Turn& b);

  model::PodId Meld(const model::State& state, model::PodId a, model::PodId b);
  model::PodId MeldChildren(const model::State& state, model::PodId first);
  void HeapRemove(const model::State& state, Line& line, model::PodId pod);
  LineId& LineFor(const model::State& state, const Line& like);
  LineId FindOrAddLine(const model::State& state, const Line& like);
  void FreeLine(const model::State& state, LineId id);
  void SetUntold(LineId id, model::PodId pod);
  void MarkAllUntold(LineId id);
  void DropUntold(Line& line, model::PodId pod);

  [[nodiscard]] bool LineBefore(const model::State& state, LineId a, LineId b,
                                bool backing_off) const;
  void Enter(const model::State& state, LineId id, Line::Mode mode, model::ReasonMask reasons = 0);
  void SetMask(Line& line, LineId id, model::ReasonMask reasons);
  [[nodiscard]] static model::Amount KeyOf(const Line& line, model::ReasonMask reasons);
  void Leave(const model::State& state, LineId id);
  void SiftUp(const model::State& state, std::vector<LineId>& heap, uint32_t place,
              bool backing_off);
  void SiftDown(const model::State& state, std::vector<LineId>& heap, uint32_t place,
                bool backing_off);
  void Resift(const model::State& state, LineId id);

  std::vector<Line> lines_;
  std::vector<LineId> free_lines_;
  std::vector<LineId> unpinned_lines_;  // By ClassId, kind and Line::queued.
  struct PinnedKey {
    model::ClassId class_id;
    model::PinKind pin = model::PinKind::kNone;
    LineKind kind = LineKind::kPreempting;
    bool queued = false;
    bool by_priority = false;
    model::NameId node;
    model::VolumeListId volumes;
    model::OwnerId asker;
    model::KeyId group;
    int32_t priority = 0;
    bool operator==(const PinnedKey&) const = default;
  };
  using PinnedKeyId = Id<struct PinnedKeyTag>;
  [[nodiscard]] static PinnedKey PinnedKeyOf(const Line& line);
  model::InternTable<PinnedKey, PinnedKeyId> pinned_keys_;
  std::vector<LineId> line_of_pinned_;  // By PinnedKeyId.
  std::vector<LineId> line_of_;         // By PodId.
  std::vector<Links> links_;            // By PodId.
  std::vector<LineId> active_;          // Binary heap.
  std::vector<LineId> backing_off_;     // Binary heap.
  std::vector<LineId> blocked_;         // Any order; with the two columns below.
  std::vector<model::ReasonMask> blocked_masks_;
  std::vector<model::NameId> blocked_pins_;
  // The blocked lines once more, ascending: by the cpu that they ask for where they wait for
  // amounts; others first.
  struct Sized {
    model::Amount cpu = 0;
    LineId id;
    auto operator<=>(const Sized&) const = default;
  };
  std::vector<Sized> by_cpu_;
  // How many blocked lines have this Line::blocked_priority; ascending.
  struct PriorityCount {
    int32_t priority = 0;
    uint32_t count = 0;
  };
  std::vector<PriorityCount> blocked_priorities_;
  std::vector<LineId> lines_to_tell_;
  uint32_t pods_count_ = 0;
};

}  // namespace berth::cycle
