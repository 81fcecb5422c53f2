#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "base/time.h"
#include "cycle/shortfalls.h"
#include "model/ids.h"
#include "model/plan.h"
#include "model/workloads.h"

namespace berth::cycle {

// Where workloads wait for quota: one line per ClusterQueue, there or not, in the order priority,
// larger first; who waits longer; uid. Those of a line that are of one shape are tried, refused and
// woken as one, for a look at one of them comes out as one at any other: of lines of ten thousands
// a handful is looked at. Kueue: SchedulingEquivalenceHash.
//
// O(log workloads) a change of one; waking a line is O(its shapes). Single-threaded.
class WorkloadLines {
 public:
  // A copy of what decides its place: rows change while it stands there.
  struct Place {
    int32_t priority = 0;
    Instant queued_at;
    std::string uid;
    model::WorkloadId workload;
    [[nodiscard]] bool operator<(const Place& other) const;
  };
  struct Slots {
    model::ClassId class_id;
    uint32_t count = 0;
    uint32_t done = 0;
    uint32_t missing_max = 0;
    model::TopologyWish topology = {};
    bool ours = true;
    int32_t priority = 0;  // Of its pods.
    bool preempts = false;
    auto operator<=>(const Slots&) const = default;
  };
  // What a look depends on.
  struct Key {
    int32_t priority = 0;
    Instant queued_at;        // Where it decides whom it may evict; else zero.
    model::WorkloadId alone;  // Something was decided of it, so it is like no other; or invalid.
    std::vector<Slots> slots;
    auto operator<=>(const Key&) const = default;
  };
  struct Shape {
    model::NameId line;
    Key key;
    std::set<Place> places;
    bool refused = false;
    std::optional<model::WorkloadRefusal> refusal;  // Of the last look, if there was one.
    Shortfall shortfall;                            // Likewise.
    // What those that are not the first were told of it.
    std::optional<model::WorkloadRefusal> told;
    [[nodiscard]] const Place& first() const { return *places.begin(); }
  };

  // REQUIRES: it stands in no line.
  void Put(model::NameId line, Place place, Key key);
  // Nothing, where it stands in none.
  void Remove(model::WorkloadId workload);
  [[nodiscard]] bool contains(model::WorkloadId workload) const {
    return workload.value < standing_.size() && standing_[workload.value].shape != kNone;
  }
  [[nodiscard]] const Place& place_of(model::WorkloadId workload) const {
    return standing_[workload.value].place;
  }
  [[nodiscard]] const Shape& shape_of(model::WorkloadId workload) const {
    return shapes_[standing_[workload.value].shape];
  }

  // Those of its shape, until their line is woken. What was told of it before stays.
  void Refuse(model::WorkloadId workload, model::WorkloadRefusal refusal, Shortfall shortfall);
  void SetTold(model::WorkloadId workload, std::optional<model::WorkloadRefusal> told);
  // It is like no other from now on, and to be looked at.
  void SetAlone(model::WorkloadId workload);
  void Wake(model::NameId line);
  // Those refused shapes which found no places and for which again(shape) holds; the lines where
  // there are some. O(shapes that found no places x log shapes), however many others wait.
  template <typename Again>
  std::vector<model::NameId> WakePlaceless(Again again);

  // Of each shape that is to be looked at, or was refused, the first; the first of them first.
  using Firsts = std::map<Place, uint32_t>;
  struct Line {
    Firsts untried;
    Firsts refused;
  };
  [[nodiscard]] const std::map<model::NameId, Line>& lines() const { return lines_; }
  [[nodiscard]] const Line* Find(model::NameId line) const;
  [[nodiscard]] const Shape& shape(uint32_t index) const { return shapes_[index]; }
  // All that stand there, in order. O(those x log those).
  [[nodiscard]] std::vector<model::WorkloadId> MembersOf(model::NameId line) const;

  void AddTo(Hasher& hasher) const;

 private:
  static constexpr uint32_t kNone = 0xffffffff;
  struct Standing {
    uint32_t shape = kNone;
    Place place;
  };
  // Changes who is of the shape, and so perhaps its first.
  template <typename Change>
  void ChangePlaces(uint32_t index, const Change& change);
  void Drop(uint32_t index);
  void SetRefused(uint32_t index, bool refused);

  std::vector<Standing> standing_;  // By WorkloadId.
  std::deque<Shape> shapes_;        // None is moved when one more comes.
  std::vector<uint32_t> free_shapes_;
  std::map<std::pair<model::NameId, Key>, uint32_t> shape_of_key_;
  std::map<model::NameId, Line> lines_;  // Those with workloads.
  std::set<uint32_t> placeless_;         // Refused ones with quota and no places.
};

template <typename Again>
std::vector<model::NameId> WorkloadLines::WakePlaceless(Again again) {
  std::vector<uint32_t> found;
  for (const uint32_t index : placeless_) {
    if (again(std::as_const(shapes_[index]))) found.push_back(index);
  }
  std::vector<model::NameId> woken;
  for (const uint32_t index : found) {
    Line& line = lines_.find(shapes_[index].line)->second;
    line.untried.insert(line.refused.extract(shapes_[index].first()));
    SetRefused(index, false);
    woken.push_back(shapes_[index].line);
  }
  return woken;
}

}  // namespace berth::cycle
