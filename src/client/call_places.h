#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "base/time.h"

// The places that calls under way take, so that calls that hang keep nobody else waiting.
//
// Calls that may hang together are a flow (the word of API priority and fairness): one kind of
// request in one namespace, as a webhook there sees it. A flow hangs while one of its calls has
// been under way for kHangsAfter. From then on its calls take places of their own, apart from the
// window that all share, and wait for one of these, parked, where they stand before nobody.
//
// A value, as the client that has it. Not thread-safe.
namespace berth::client {

class CallPlaces {
 public:
  // What Kubernetes' service level objective gives a write (scalability SLOs: 99 % within 1 s).
  static constexpr Duration kHangsAfter = Duration::Seconds(1);
  // Apart, in all and of one flow. kube-apiserver has 100 streams for a connection, so a transport
  // needs a second one for them, or connections of their own.
  static constexpr size_t kApartMax = 96;
  static constexpr size_t kApartOfFlowMax = 64;

  [[nodiscard]] size_t in_window() const { return places_.size() - apart_; }
  [[nodiscard]] size_t under_way() const { return places_.size(); }
  [[nodiscard]] size_t parked() const { return parked_; }
  // Whether any flow does; until then no flow needs to be named.
  [[nodiscard]] bool any_hangs() const { return !flows_.empty(); }
  [[nodiscard]] bool Hangs(const std::string& flow) const;
  // REQUIRES: the flow hangs.
  [[nodiscard]] bool HasRoomApart(const std::string& flow) const;

  // A call leaves: apart when its flow hangs, or else in the window.
  void Take(Instant now, uint64_t call, std::string flow);
  // A call's turn came, and its flow has no room. REQUIRES: the flow hangs.
  void Park(uint64_t call, const std::string& flow);
  // A parked call is wanted no more. O(parked). REQUIRES: it is parked.
  void Forget(uint64_t call, const std::string& flow);
  // The call is over. Who was parked and may leave now, in their order: from here they are no
  // longer parked. O(flows that hang).
  [[nodiscard]] std::vector<uint64_t> Free(uint64_t call);

  // Time goes by: which flows hang. What of them is in the window moves apart, while there is room.
  void NoteTime(Instant now);
  // When NoteTime() may find the next.
  [[nodiscard]] Instant next_at() const;

  void AddTo(Hasher& hasher) const;

 private:
  struct Place {
    std::string flow;
    Instant since;
    bool hangs = false;
    bool apart = false;
  };
  // A flow is known from when it hangs to when none of its calls does and none is apart.
  struct Flow {
    size_t hang = 0;   // Its calls that do.
    size_t apart = 0;  // Its calls there.
    std::deque<uint64_t> parked;
  };

  std::map<uint64_t, Place> places_;
  std::set<std::pair<Instant, uint64_t>> young_;  // Those of places_ that don't hang, oldest first.
  std::map<std::string, Flow> flows_;
  size_t apart_ = 0;   // The sum over the flows.
  size_t parked_ = 0;  // As that.
};

}  // namespace berth::client
