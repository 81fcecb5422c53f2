#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "base/time.h"
#include "client/request.h"

// The places that calls under way take, so that calls that hang keep nobody else waiting.
//
// Calls that may hang together are a flow (the word of API priority and fairness): one kind of
// request in one namespace, as a webhook there sees it. A call hangs when it has been under way for
// kHangsAfter, and its flow from then on, until a second has gone by in which no call of it did and
// one was answered. Calls of a flow that hangs leave the window, which all share, for places of
// their own apart; further ones are parked until they get one of these, and stand before nobody.
// Each class has its part of these places: half of them, a quarter and a quarter.
//
// A value, as the client that has it. Not thread-safe.
namespace berth::client {

class CallPlaces {
 public:
  // What Kubernetes' service level objective gives a write (99 % within 1 s).
  static constexpr Duration kHangsAfter = Duration::Seconds(1);
  // A flow of which nothing is under way is known to hang for so long: those that failed come back.
  static constexpr Duration kKnownFor = Duration::Minutes(1);

  // So many places are apart; one flow has two thirds of its class's. None: nothing ever hangs.
  explicit CallPlaces(size_t apart_max) : apart_max_(apart_max) {}

  [[nodiscard]] size_t in_window() const {
    return places_.size() - std::accumulate(apart_.begin(), apart_.end(), size_t{0});
  }
  [[nodiscard]] size_t under_way() const { return places_.size(); }
  [[nodiscard]] size_t parked() const { return parked_; }
  [[nodiscard]] bool Hangs(const Request& request) const;

  // A call leaves: apart when its flow hangs, or else in the window.
  void Take(Instant now, uint64_t call, const Request& request);
  // REQUIRES: its flow hangs.
  void Park(uint64_t call, const Request& request);
  // A parked call leaves, or is wanted no more. O(parked). REQUIRES: it is parked.
  void Unpark(uint64_t call, const Request& request);
  // Whose turn it is among the parked ones of a class: of the flows that have the fewest places the
  // one that was called first. None while there is no place. O(flows that hang).
  [[nodiscard]] std::optional<uint64_t> NextParked(Priority priority) const;
  // The call is over, answered or not. Those that were parked in a flow that hangs no longer, in
  // their order: they are as any again, and no longer parked.
  [[nodiscard]] std::vector<uint64_t> Free(Instant now, uint64_t call, bool answered);

  // Time goes by: which calls hang. They move apart as far as there is room. O(flows that hang).
  void NoteTime(Instant now);
  // When NoteTime() may find the next.
  [[nodiscard]] Instant next_at() const;

  void AddTo(Hasher& hasher) const;

 private:
  using Flow = std::pair<Priority, std::string>;
  struct Place {
    Flow flow;
    Instant since;
    bool hangs = false;
    bool apart = false;
  };
  struct Known {
    bool hangs = false;  // The flow does.
    Instant calm_since;  // None of its calls does, if so.
    size_t hang = 0;     // Its calls that do.
    size_t apart = 0;    // Its calls there.
    std::deque<uint64_t> parked;
  };

  [[nodiscard]] static Flow FlowFor(const Request& request);
  [[nodiscard]] size_t ApartMax(Priority priority) const;
  [[nodiscard]] bool HasRoom(Priority priority, const Known& flow) const;
  void MoveApart(Place& place, Known& flow);

  size_t apart_max_;
  std::map<uint64_t, Place> places_;
  std::set<std::pair<Instant, uint64_t>> young_;  // Those of places_ that don't hang, oldest first.
  std::set<uint64_t> stuck_;                      // That do, and are in the window.
  std::map<Flow, Known> flows_;                   // That hang, or have calls apart.
  std::array<size_t, kPriorities> apart_{};       // The sums over the flows.
  size_t parked_ = 0;                             // As that.
};

}  // namespace berth::client
