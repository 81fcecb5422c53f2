#include <algorithm>
#include <array>
#include <span>
#include <string_view>

#include "sim/run.h"

namespace berth::sim {
namespace {

constexpr auto kPlantedRaces = std::to_array<NamedBug>({
    {.name = "promise-dropped-when-looked-at",
     .bugs = {.promise_dropped_when_looked_at = true},
     .sign = "whose room is promised to"},
    {.name = "promise-known-once-written",
     .bugs = {.promise_known_once_written = true},
     .sign = "ledger audit"},
    {.name = "victims-chosen-again",
     .bugs = {.victims_chosen_again = true},
     .sign = "is evicted a second time"},
    {.name = "reservation-forgotten-on-restart",
     .bugs = {.reservation_forgotten_on_restart = true},
     .sign = "ledger against objects"},
    {.name = "promise-of-deleted-pod-kept",
     .bugs = {.promise_of_deleted_pod_kept = true},
     .sign = "ledger audit"},
    {.name = "promise-kept-after-binding-elsewhere",
     .bugs = {.promise_kept_after_binding_elsewhere = true},
     .sign = "more than one claim"},
    {.name = "nomination-to-gone-node-kept",
     .bugs = {.nomination_to_gone_node_kept = true},
     .sign = "and not promised it"},
    {.name = "wake-up-consumed-while-preempting",
     .bugs = {.wake_up_consumed_while_preempting = true},
     .sign = "a wake-up was missed"},
    {.name = "in-flight-pod-queued-again",
     .bugs = {.in_flight_pod_queued_again = true},
     .sign = "is repeated before the fate of the former one was read"},
    {.name = "failure-handled-by-name",
     .bugs = {.failure_handled_by_name = true},
     .sign = "is overcommitted by a binding"},
    {.name = "pods-dropped-with-their-node",
     .bugs = {.pods_dropped_with_their_node = true},
     .sign = "ledger audit: pod"},
    {.name = "overdue-victim-waited-for",
     .bugs = {.overdue_victim_waited_for = true},
     .sign = "nobody is evicted"},
    {.name = "refused-eviction-waited-for",
     .bugs = {.refused_eviction_waited_for = true},
     .sign = "nobody is evicted"},
    {.name = "victim-bound", .bugs = {.victim_bound = true}, .sign = "whose room is promised to"},
    {.name = "holder-not-looked-at-again",
     .bugs = {.holder_not_looked_at = true},
     .sign = "is promised to more than fit"},
    {.name = "promise-decided-anew",
     .bugs = {.promise_decided_anew = true},
     .sign = "leads back to where it was"},
    {.name = "promise-kept-where-node-refuses",
     .bugs = {.promise_kept_where_refused = true},
     .sign = "nobody is evicted"},
    {.name = "revoked-holder-not-tried-again",
     .bugs = {.revoked_holder_not_tried = true},
     .sign = "nobody is evicted"},
    {.name = "bound-pod-waits",
     .bugs = {.bound_pod_waits = true},
     .sign = "ledger against objects"},
    {.name = "group-cleaned-by-name",
     .bugs = {.group_cleaned_by_name = true},
     .sign = "ledger against objects: group"},
    {.name = "half-a-gang-kept", .bugs = {.half_gang_kept = true}, .sign = "is to be bound with"},
    {.name = "gang-reservation-dropped-between-cycles",
     .bugs = {.gang_reservation_dropped = true},
     .sign = "it is not at rest, and may go on so"},
    {.name = "woken-gang-not-tried",
     .bugs = {.woken_gang_not_tried = true},
     .sign = "a wake-up was missed"},
    {.name = "revoked-room-wakes-nobody",
     .bugs = {.unfelt = model::Unfelt::kRevoked},
     .sign = "a wake-up was missed"},
    {.name = "foreign-binding-wakes-nobody",
     .bugs = {.unfelt = model::Unfelt::kBoundElsewhere},
     .sign = "a wake-up was missed"},
    {.name = "withdrawn-nomination-wakes-nobody",
     .bugs = {.unfelt = model::Unfelt::kWithdrawn},
     .sign = "a wake-up was missed"},
    {.name = "quota-promise-dropped-when-looked-at",
     .bugs = {.quota_promise_dropped = true},
     .sign = "leads back to where it was"},
    {.name = "evicted-for-nobody",
     .bugs = {.evicted_for_nobody = true},
     .sign = "and nobody waits for it"},
    {.name = "lost-quota-kept", .bugs = {.lost_quota_kept = true}, .sign = "as it is not"},
    {.name = "slots-forgotten",
     .bugs = {.slots_forgotten = true},
     .sign = "is admitted, and pods of it wait"},
    {.name = "reservation-unfenced",
     .bugs = {.tampering = Tampering::kQuotaUnfenced},
     .sign = "and does not wait for it"},
    {.name = "victim-marked-with-anothers-status",
     .bugs = {.tampering = Tampering::kMarkOfAnother},
     .sign = "is not valid"},
});

}  // namespace

std::span<const NamedBug> PlantedRaces() { return kPlantedRaces; }

const NamedBug* FindPlanted(std::string_view name) {
  for (const auto& bugs : {AllPlantedBugs(), PlantedRaces()}) {
    const auto at = std::ranges::find(bugs, name, &NamedBug::name);
    if (at != bugs.end()) return &*at;
  }
  return nullptr;
}

}  // namespace berth::sim
