#include "client/call_places.h"

#include <algorithm>

#include "base/check.h"

namespace berth::client {

bool CallPlaces::Hangs(const std::string& flow) const {
  const auto it = flows_.find(flow);
  return it != flows_.end() && it->second.hang > 0;
}

bool CallPlaces::HasRoomApart(const std::string& flow) const {
  return apart_ < kApartMax && flows_.at(flow).apart < kApartOfFlowMax;
}

void CallPlaces::Take(Instant now, uint64_t call, std::string flow) {
  const bool apart = Hangs(flow);
  if (apart) {
    ++flows_.at(flow).apart;
    ++apart_;
  }
  young_.emplace(now, call);
  const bool fresh =
      places_.emplace(call, Place{.flow = std::move(flow), .since = now, .apart = apart}).second;
  CHECK(fresh);
}

void CallPlaces::Park(uint64_t call, const std::string& flow) {
  flows_.at(flow).parked.push_back(call);
  ++parked_;
}

void CallPlaces::Forget(uint64_t call, const std::string& flow) {
  std::deque<uint64_t>& parked = flows_.at(flow).parked;
  const auto it = std::ranges::find(parked, call);
  CHECK(it != parked.end());
  parked.erase(it);
  --parked_;
}

std::vector<uint64_t> CallPlaces::Free(uint64_t call) {
  const auto it = places_.find(call);
  CHECK(it != places_.end());
  const Place& place = it->second;
  if (!place.hangs) young_.erase({place.since, call});
  const auto of = flows_.find(place.flow);
  if (of != flows_.end()) {
    if (place.hangs) --of->second.hang;
    if (place.apart) {
      --of->second.apart;
      --apart_;
    }
  }
  places_.erase(it);
  std::vector<uint64_t> back;
  size_t room = kApartMax - std::min(kApartMax, apart_);
  for (auto flow = flows_.begin(); flow != flows_.end();) {
    auto& [hang, apart, parked] = flow->second;
    size_t room_of_flow = kApartOfFlowMax - std::min(kApartOfFlowMax, apart);
    while (!parked.empty() && (hang == 0 || (room > 0 && room_of_flow > 0))) {
      if (hang > 0) {
        --room;
        --room_of_flow;
      }
      back.push_back(parked.front());
      parked.pop_front();
      --parked_;
    }
    flow = hang == 0 && apart == 0 ? flows_.erase(flow) : std::next(flow);
  }
  return back;
}

void CallPlaces::NoteTime(Instant now) {
  while (next_at() <= now) {
    const uint64_t call = young_.begin()->second;
    young_.erase(young_.begin());
    Place& place = places_.at(call);
    place.hangs = true;
    Flow& flow = flows_[place.flow];
    ++flow.hang;
    if (place.apart || apart_ >= kApartMax) continue;
    place.apart = true;
    ++flow.apart;
    ++apart_;
  }
}

Instant CallPlaces::next_at() const {
  return young_.empty() ? Instant::Never() : young_.begin()->first + kHangsAfter;
}

// The rest follows from these.
void CallPlaces::AddTo(Hasher& hasher) const {
  hasher.Add(places_.size());
  hasher.AddEach(places_, [](Hasher& one, const auto& entry) {
    const auto& [call, place] = entry;
    one.AddCall(call).Add(place.since.ns).Add(place.hangs).Add(place.apart);
  });
  hasher.Add(flows_.size());
  for (const auto& [name, flow] : flows_) {
    hasher.Add(std::string_view(name)).Add(flow.parked.size());
    for (const uint64_t call : flow.parked) hasher.AddCall(call);
  }
}

}  // namespace berth::client
