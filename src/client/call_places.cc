#include "client/call_places.h"

#include <algorithm>

#include "base/check.h"

namespace berth::client {

CallPlaces::Flow CallPlaces::FlowFor(const Request& request) {
  return {request.priority, FlowOf(request)};
}

bool CallPlaces::Hangs(const Request& request) const {
  if (flows_.empty()) return false;
  const auto it = flows_.find(FlowFor(request));
  return it != flows_.end() && it->second.hangs;
}

size_t CallPlaces::ApartMax(Priority priority) const {
  return priority == Priority::kHigh ? apart_max_ - apart_max_ / 2 : apart_max_ / 4;
}

bool CallPlaces::HasRoom(Priority priority, const Known& flow) const {
  const size_t places = ApartMax(priority);
  return apart_[static_cast<size_t>(priority)] < places && flow.apart < places - places / 3;
}

void CallPlaces::MoveApart(Place& place, Known& flow) {
  place.apart = true;
  ++flow.apart;
  ++apart_[static_cast<size_t>(place.flow.first)];
}

void CallPlaces::Take(Instant now, uint64_t call, const Request& request) {
  Place place{.flow = FlowFor(request), .since = now};
  if (const auto flow = flows_.find(place.flow); flow != flows_.end() && flow->second.hangs)
    MoveApart(place, flow->second);
  young_.emplace(now, call);
  CHECK(places_.emplace(call, std::move(place)).second);
}

void CallPlaces::Park(uint64_t call, const Request& request) {
  flows_.at(FlowFor(request)).parked.push_back(call);
  ++parked_;
}

void CallPlaces::Unpark(uint64_t call, const Request& request) {
  std::deque<uint64_t>& parked = flows_.at(FlowFor(request)).parked;
  const auto it = std::ranges::find(parked, call);
  CHECK(it != parked.end());
  parked.erase(it);
  --parked_;
}

std::optional<uint64_t> CallPlaces::NextParked(Priority priority) const {
  if (parked_ == 0) return std::nullopt;
  const Known* next = nullptr;
  for (const auto& [name, flow] : flows_) {
    if (name.first != priority || flow.parked.empty() || !HasRoom(priority, flow)) continue;
    const auto rank = [](const Known& of) { return std::pair(of.apart, of.parked.front()); };
    if (next == nullptr || rank(flow) < rank(*next)) next = &flow;
  }
  return next == nullptr ? std::nullopt : std::optional(next->parked.front());
}

std::vector<uint64_t> CallPlaces::Free(Instant now, uint64_t call, bool answered) {
  NoteTime(now);  // Whether it hung is to be known.
  const auto it = places_.find(call);
  CHECK(it != places_.end());
  const Place place = std::move(it->second);
  places_.erase(it);
  if (!place.hangs) young_.erase({place.since, call});
  stuck_.erase(call);
  const auto of = flows_.find(place.flow);
  if (of == flows_.end()) return {};
  Known& flow = of->second;
  if (place.apart) {
    --flow.apart;
    --apart_[static_cast<size_t>(place.flow.first)];
  }
  std::vector<uint64_t> back;
  if (place.hangs) {
    if (--flow.hang == 0) flow.calm_since = now;
  } else if (answered && flow.hangs && flow.hang == 0 && now >= flow.calm_since + kHangsAfter) {
    flow.hangs = false;
    parked_ -= flow.parked.size();
    back.assign(flow.parked.begin(), flow.parked.end());
    flow.parked.clear();
  }
  if (!flow.hangs && flow.apart == 0) flows_.erase(of);
  return back;
}

void CallPlaces::NoteTime(Instant now) {
  while (!young_.empty() && next_at() <= now) {
    const uint64_t call = young_.begin()->second;
    young_.erase(young_.begin());
    Place& place = places_.at(call);
    place.hangs = true;
    Known& flow = flows_[place.flow];
    flow.hangs = true;
    ++flow.hang;
    if (!place.apart) stuck_.insert(call);
  }
  std::erase_if(stuck_, [&](uint64_t call) {
    Place& place = places_.at(call);
    Known& flow = flows_.at(place.flow);
    if (!HasRoom(place.flow.first, flow)) return false;
    MoveApart(place, flow);
    return true;
  });
  std::erase_if(flows_, [&](const auto& entry) {
    const Known& flow = entry.second;
    return flow.hang == 0 && flow.apart == 0 && flow.parked.empty() &&
           now >= flow.calm_since + kKnownFor;
  });
}

Instant CallPlaces::next_at() const {
  if (apart_max_ == 0 || young_.empty()) return Instant::Never();
  return young_.begin()->first + kHangsAfter;
}

// The rest follows from these.
void CallPlaces::AddTo(Hasher& hasher) const {
  hasher.Add(places_.size());
  hasher.AddEach(places_, [](Hasher& one, const auto& entry) {
    const auto& [call, place] = entry;
    one.AddCall(call).Add(place.hangs).Add(place.apart).Add(place.hangs ? 0 : place.since.ns);
  });
  hasher.Add(flows_.size());
  for (const auto& [name, flow] : flows_) {
    hasher.Add(name.first).Add(std::string_view(name.second)).Add(flow.hangs);
    hasher.Add(flow.hang == 0 ? flow.calm_since.ns : 0).Add(flow.parked.size());
    for (const uint64_t call : flow.parked) hasher.AddCall(call);
  }
}

}  // namespace berth::client
