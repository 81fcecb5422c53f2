#include "control/debug_workload_pods.h"

#include <algorithm>
#include <map>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "control/debug_places.h"
#include "control/debug_workload.h"
#include "control/scheduler.h"
#include "translate/text.h"

namespace berth::control {
namespace {

using api::JsonArray;
using api::JsonObject;
using model::PodId;
using model::WorkloadId;

struct OnNode {
  uint32_t pods = 0;
  uint32_t leaving = 0;
  uint32_t kept = 0;
};

class Pods {
 public:
  Pods(const model::State& state, WorkloadId id) : state_(state) {
    for (const model::SlotTable::Place& place : state.slots().PlacesOf(id)) {
      if (place.pod.valid()) {
        Add(place.pod);
      } else if (place.claim.valid()) {
        ++nodes_[state.NameOf(place.slot.node)].kept;
        ++count_;
      }
    }
    // Those of a job are of its oldest workload.
    const model::OwnerId job = state.workloads().at(id).job;
    if (job.valid() && state.slots().WorkloadsOf(job).front() == id) {
      for (const PodId pod : state.slots().SeekersOf(job)) Add(pod);
    }
    std::ranges::sort(waiting_, {},
                      [&](PodId pod) { return state.KeyOf(state.pods().at(pod).key); });
  }

  [[nodiscard]] const std::map<std::string_view, OnNode>& nodes() const { return nodes_; }
  [[nodiscard]] const std::vector<PodId>& waiting() const { return waiting_; }
  // Its pods, and the places that are kept for more.
  [[nodiscard]] uint32_t count() const { return count_; }

 private:
  void Add(PodId pod) {
    ++count_;
    const model::ClaimId claim = state_.ClaimOf(pod);
    if (!claim.valid() || state_.ledger().claim(claim).state == model::ClaimState::kReserved) {
      waiting_.push_back(pod);
      return;
    }
    const model::Claim& charged = state_.ledger().claim(claim);
    OnNode& at = nodes_[state_.NameOf(state_.nodes().name(charged.account.node()))];
    ++at.pods;
    if (charged.state == model::ClaimState::kReleasing) ++at.leaving;
  }

  const model::State& state_;
  std::map<std::string_view, OnNode> nodes_;
  std::vector<PodId> waiting_;
  uint32_t count_ = 0;
};

JsonArray PlacesJson(const Pods& pods) {
  JsonArray places;
  for (const auto& [node, at] : pods.nodes()) {
    if (places.size() == kPlacesShown) break;
    JsonObject one = {{"node", node}};
    if (at.pods > 0) one["pods"] = at.pods;
    if (at.leaving > 0) one["leaving"] = at.leaving;
    if (at.kept > 0) one["kept"] = at.kept;
    places.emplace_back(std::move(one));
  }
  return places;
}

// What else keeps the pod from being placed, as its condition tells it: gates of others, what can't
// be honoured, a binding that was refused. Empty: nothing that is told.
std::string ToldOf(const Scheduler& scheduler, PodId pod) {
  const model::State& state = scheduler.engine().state();
  const std::string uid(state.UidOf(state.OwnerOf(pod)));
  if (const std::string* left = scheduler.left_alone(uid)) return *left;
  const auto waiting = scheduler.status().waiting(uid);
  return waiting ? std::string(waiting->message.view()) : std::string();
}

JsonObject WaitingJson(const Scheduler& scheduler, std::span<const PodId> waiting) {
  const cycle::Engine& engine = scheduler.engine();
  const model::State& state = engine.state();
  JsonObject object = {{"count", waiting.size()}};
  JsonArray shown;
  for (const PodId pod : waiting.first(std::min(waiting.size(), kHoldersShown)))
    shown.emplace_back(state.KeyOf(state.pods().at(pod).key));
  object["pods"] = std::move(shown);
  const PodId first = waiting.front();
  const cycle::Explanation why = engine.Explain(first);
  if (why.promised) {
    object["promised"] = state.NameOf(why.node);
    object["leaving"] = why.leaving.size();
  }
  const bool tried = !state.pods().at(first).gated &&
                     scheduler.left_alone(state.UidOf(state.OwnerOf(first))) == nullptr;
  if (why.would_fit || !tried) {
    if (const std::string told = ToldOf(scheduler, first); !told.empty()) object["message"] = told;
    return object;
  }
  object["message"] = translate::FailedSchedulingText(why.refusal, state);
  if (!why.promised) AddNodeHolders(engine, first, why.refusal, object);
  return object;
}

// Of all that it is charged for, as many as are neither there nor have a place.
uint32_t MissingOf(const model::State& state, WorkloadId id, uint32_t count) {
  const model::Workload& row = state.workloads().at(id);
  // Only of one that was given places is it known that they are gone.
  const bool leaves = row.claimant.valid() || StageOf(row.status) == model::WorkloadStage::kEvicted;
  if (ChargedTo(row).slots.empty() || row.write != model::WriteStage::kNone || leaves) return 0;
  std::map<uint32_t, uint32_t> charged;
  for (const model::QuotaCharge& charge : ChargedTo(row).charges)
    charged[charge.pod_set] = charge.count;
  uint32_t needed = 0;
  for (const auto& [pod_set, pods] : charged) needed += pods;
  return needed - std::min(needed, count);
}

}  // namespace

void AddPodsOf(const Scheduler& scheduler, WorkloadId id, JsonObject& object) {
  const model::State& state = scheduler.engine().state();
  const Pods pods(state, id);
  if (!pods.nodes().empty()) {
    object["places"] = PlacesJson(pods);
    object["placesCount"] = pods.nodes().size();
  }
  if (!pods.waiting().empty()) object["podsWaiting"] = WaitingJson(scheduler, pods.waiting());
  if (const uint32_t missing = MissingOf(state, id, pods.count()); missing > 0)
    object["placesLost"] = missing;
}

}  // namespace berth::control
