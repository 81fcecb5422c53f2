#include "cycle/workload_lines.h"

#include <algorithm>
#include <tuple>

#include "base/check.h"

namespace berth::cycle {

using model::NameId;
using model::WorkloadId;

bool WorkloadLines::Place::operator<(const Place& other) const {
  return std::tie(other.priority, queued_at, uid) < std::tie(priority, other.queued_at, other.uid);
}

template <typename Change>
void WorkloadLines::ChangePlaces(uint32_t index, const Change& change) {
  Shape& shape = shapes_[index];
  Line& line = lines_[shape.line];
  Firsts& firsts = shape.refused ? line.refused : line.untried;
  if (!shape.places.empty()) firsts.erase(shape.first());
  change(shape.places);
  if (!shape.places.empty()) firsts.emplace(shape.first(), index);
}

void WorkloadLines::Put(NameId line, Place place, Key key) {
  const WorkloadId workload = place.workload;
  CHECK(!contains(workload));
  if (workload.value >= standing_.size()) standing_.resize(workload.value + 1);
  const auto [at, fresh] = shape_of_key_.try_emplace({line, key});
  if (fresh) {
    if (free_shapes_.empty()) {
      at->second = static_cast<uint32_t>(shapes_.size());
      shapes_.emplace_back();
    } else {
      at->second = free_shapes_.back();
      free_shapes_.pop_back();
    }
    shapes_[at->second].line = line;
    shapes_[at->second].key = std::move(key);
  }
  standing_[workload.value] = {.shape = at->second, .place = place};
  std::set<Place>& places = shapes_[at->second].places;
  if (!places.empty() && *places.begin() < place) {
    // Most come behind all others.
    places.insert(places.end(), std::move(place));
    return;
  }
  ChangePlaces(at->second, [&](std::set<Place>& of) { of.insert(std::move(place)); });
}

void WorkloadLines::Remove(WorkloadId workload) {
  if (!contains(workload)) return;
  const Standing standing = std::exchange(standing_[workload.value], {});
  Shape& shape = shapes_[standing.shape];
  if (shape.first().workload != workload) {
    shape.places.erase(standing.place);
    return;
  }
  ChangePlaces(standing.shape, [&](std::set<Place>& places) { places.erase(standing.place); });
  if (shapes_[standing.shape].places.empty()) Drop(standing.shape);
}

// What its line's lists say of it is for who calls this.
void WorkloadLines::SetRefused(uint32_t index, bool refused) {
  Shape& shape = shapes_[index];
  shape.refused = refused;
  if (refused && !shape.refusal->places.empty()) {
    placeless_.insert(index);
  } else {
    placeless_.erase(index);
  }
}

void WorkloadLines::Drop(uint32_t index) {
  placeless_.erase(index);
  const Shape shape = std::exchange(shapes_[index], {});
  shape_of_key_.erase({shape.line, shape.key});
  free_shapes_.push_back(index);
  const auto line = lines_.find(shape.line);
  if (line->second.untried.empty() && line->second.refused.empty()) lines_.erase(line);
}

void WorkloadLines::Refuse(WorkloadId workload, model::WorkloadRefusal refusal,
                           Shortfall shortfall) {
  const uint32_t index = standing_[workload.value].shape;
  Shape& shape = shapes_[index];
  Line& line = lines_.find(shape.line)->second;
  shape.refusal = std::move(refusal);
  shape.shortfall = shortfall;
  if (!shape.refused) line.refused.insert(line.untried.extract(shape.first()));
  SetRefused(index, true);
}

void WorkloadLines::SetTold(WorkloadId workload, std::optional<model::WorkloadRefusal> told) {
  shapes_[standing_[workload.value].shape].told = std::move(told);
}

void WorkloadLines::SetAlone(WorkloadId workload) {
  const Shape& before = shape_of(workload);
  Key key = before.key;
  key.alone = workload;
  const NameId line = before.line;
  Place place = place_of(workload);
  Remove(workload);
  Put(line, std::move(place), std::move(key));
}

void WorkloadLines::Wake(NameId name) {
  const auto at = lines_.find(name);
  if (at == lines_.end()) return;
  Line& line = at->second;
  for (const auto& [place, index] : line.refused) SetRefused(index, false);
  if (line.untried.size() < line.refused.size()) std::swap(line.untried, line.refused);
  line.untried.merge(line.refused);
  line.refused.clear();
}

const WorkloadLines::Line* WorkloadLines::Find(NameId line) const {
  const auto at = lines_.find(line);
  return at == lines_.end() ? nullptr : &at->second;
}

std::vector<WorkloadId> WorkloadLines::MembersOf(NameId name) const {
  std::vector<const Place*> places;
  if (const Line* line = Find(name)) {
    for (const Firsts* firsts : {&line->untried, &line->refused}) {
      for (const auto& [first, index] : *firsts) {
        for (const Place& place : shapes_[index].places) places.push_back(&place);
      }
    }
  }
  std::ranges::sort(places, [](const Place* a, const Place* b) { return *a < *b; });
  std::vector<WorkloadId> members;
  for (const Place* place : places) members.push_back(place->workload);
  return members;
}

void WorkloadLines::AddTo(Hasher& hasher) const {
  hasher.Add(standing_.size());
  for (const Standing& standing : standing_) {
    hasher.Add(standing.shape != kNone);
    if (standing.shape == kNone) continue;
    const Shape& shape = shapes_[standing.shape];
    hasher.Add(shape.line.value).Add(standing.place.priority).Add(standing.place.queued_at.ns);
    hasher.Add(shape.key.alone.value).Add(shape.refused);
    hasher.Add(shape.refusal.has_value()).Add(shape.told.has_value());
    if (shape.refusal) shape.refusal->AddTo(hasher);
    if (shape.told) shape.told->AddTo(hasher);
  }
}

}  // namespace berth::cycle
