#include "place/volumes.h"

#include <algorithm>
#include <vector>

#include "cycle/engine.h"
#include "cycle/promise_holders.h"

// Who is looked at again when volumes, or what they hang on, are otherwise; of Engine.
namespace berth::cycle {

using model::PodId;

// The lines that wait whose volumes hang on something that moved: for whatever they wait, they may
// be refused for another reason now.
std::vector<LineId> Engine::WaitingForVolumes() const {
  std::vector<LineId> waiting;
  lines_.WaitingFor(~model::ReasonMask{0}, waiting);
  std::erase_if(waiting,
                [&](LineId id) { return !state_.VolumesMoved(lines_.line(id).pin.volumes); });
  return waiting;
}

// Likewise those who are promised a node.
std::vector<PodId> Engine::HoldersForVolumes() const {
  return HoldersOfPromises(state_, [&](PodId holder) {
    return state_.VolumesMoved(state_.pods().at(holder).pin.volumes) && IsJudged(holder);
  });
}

// Before the pod stands there. Whoever is decided on next in this cycle finds them taken.
void Engine::GiveVolumes(PodId pod, model::NodeId node) {
  if (!state_.pods().at(pod).pin.volumes.valid()) return;
  auto given = place::VolumesGivenOn(state_, pod, node);
  if (given && !given->empty()) state_.GiveVolumes(pod, *std::move(given));
}

void Engine::NoteVolumes() {
  if (lift_pending_ || !state_.volumes_moved()) return;
  lift_pending_ =
      !groups_.blocked().empty() || !WaitingForVolumes().empty() || !HoldersForVolumes().empty();
}

// Whoever waits for volumes may have them on any node, whichever was touched. Whether anything
// moved.
bool Engine::WakeVolumes(Instant now) {
  if (!state_.volumes_moved()) return false;
  const std::vector<PodId> holders = HoldersForVolumes();
  holders_.insert(holders_.end(), holders.begin(), holders.end());
  for (const LineId id : WaitingForVolumes()) {
    Woke(id, Counters::kWokenForVolumes);
    lines_.Wake(state_, id, now, Line::kWide);
  }
  state_.TakeMovedVolumes();
  return true;
}

}  // namespace berth::cycle
