#pragma once

#include <cstdint>

namespace berth::model {

// What of a node is given up and wakes nobody who waits for it.
enum class Unfelt : uint8_t {
  kNothing,
  kRevoked,         // A12: a promise that is taken back.
  kBoundElsewhere,  // A17: the claim of a pod that another has bound to another node.
  kWithdrawn,       // A18: a nomination that its pod does not carry any more.
};

// Planted bugs: each re-creates an upstream defect (docs/REGRESSIONS.md), so that the tests that
// guard against it can be seen to fail. All off by default; only test code turns one on, through
// State::Options or cycle::Engine::Options.
struct Faults {
  bool keep_claim_of_deleted_pod = false;  // D03: the node looks full for ever.
  bool ledger_by_name = false;             // N02, C02: another pod of the same name shares state.
  // C14: what happens between two cycles of one batch is not looked at.
  bool lose_event_while_evaluated = false;
  bool wake_index_misses_freed = false;  // C06: freed amounts wake nobody.
  bool deaf_to_spread = false;           // Pods that moved to or from a domain wake nobody.
  bool narrow_from_too_late = false;     // A woken line is not looked for on the node that woke it.
  bool miss_removal_of_terminating = false;  // A pod that is deleted with grace is never gone.
  bool miss_uncordon = false;                // A node that is schedulable again is not noticed.
  bool drop_touched_holder = false;  // A holder is not tried again when its node is touched.
  // A01: who holds a promise loses it when it is tried while its victims leave, and waits a while.
  bool drop_promise_when_tried = false;
  bool promise_when_observed = false;      // A02: a promise is charged once its object tells of it.
  bool keep_promise_of_deleted = false;    // A05: who is gone is still promised its node.
  bool keep_promise_elsewhere = false;     // A06: who is placed elsewhere keeps its promise, too.
  bool keep_void_nominations = false;      // A07: a nomination to a node that is gone stands.
  bool wait_for_overdue = false;           // A09: a victim that does not go is waited for.
  bool deaf_while_preempting = false;      // B05: who waits for victims is woken by nothing else.
  bool forget_nominations = false;         // B08: a nomination found at the start is not believed.
  bool drop_pods_with_their_node = false;  // D09: pods end with the object of their node.
  bool bind_victims = false;               // A15: who is a victim of the plan is bound by it, too.
  bool doubt_promises = false;             // B07: what waiting makes true is decided anew.
  bool keep_promise_where_refused = false;  // A08: of a node that takes its pod no more.
  bool revoked_evict_no_more = false;       // A13: who lost a promise is not tried with evictions.
  // P01: when the last member of a group that is gone goes, so does who bears its name now.
  bool clean_groups_by_name = false;
  bool keep_half_gangs = false;       // What a gang found is kept although the rest has no place.
  bool forget_woken_gangs = false;    // A gang that is woken is not tried again.
  bool forget_quota_waiters = false;  // Who waits for its queue's quota is not tried again.
  // R05: what a gang waits for is promised to it until the next cycle.
  bool drop_gang_promises = false;
  // Q02: what a group needs is kept for it in full, whatever its members have of it already.
  bool reserve_in_full = false;
  // What is kept for a group is less by what a member has that leaves: nobody's, until it is gone.
  bool reserve_less_who_leaves = false;
  bool unmoved_by_others = false;  // D16: who waits here waits on when another has bound it.
  // K081: who waits for what others leave is promised it no more once it was looked at.
  bool drop_quota_promise_when_tried = false;
  bool evict_for_nobody = false;  // K088: whether an eviction is wanted still is not asked.
  bool forget_slots = false;      // What is admitted has no places on nodes until its pods come.
  // A workload that waits for what others leave is promised it no more once it was looked at.
  bool drop_promised_places = false;
  bool keep_lost_quota = false;  // K042: quota whose write came to nothing is charged for ever.
  // K033: quota that is written again, the first write being of unknown fate, is charged twice.
  bool charge_resent_again = false;
  bool charge_all_pods = false;  // K078: who has fewer pods than it asks for is charged for all.
  // K001: that a node failed is marked, and the mark is taken off by what is written later.
  bool second_pass_by_mark = false;
  // K002: what is due is decided on the workload as it was when that became due.
  bool second_pass_replayed = false;
  bool pass_fails_fast = false;  // K015: a second pass waits for nobody who leaves.
  bool stand_on_hold = false;    // K053: who is put on hold stays in its line.
  bool readmit_at_once = false;  // K054: who is held back after an eviction stands in line at once.
  // K016: of several nodes of a workload that failed only the first is looked at.
  bool first_failure_alone = false;
  bool queued_wait_by_age = false;  // Who came with quota goes behind whoever waits longer for it.
  // What a pod leaves of its workload's places is anybody's until it is gone.
  bool leave_places = false;
  bool unready_gets_quota = false;      // Whose group could not start gets quota, and holds it.
  bool unready_keeps_quota = false;     // Likewise, once it has quota.
  bool admitted_without_mates = false;  // Who passed its checks is, though its group can't start.
  bool no_pass_once_admitted = false;   // Whose node fails once it is admitted gets no second pass.
  Unfelt unfelt = Unfelt::kNothing;
  bool operator==(const Faults&) const = default;
};

}  // namespace berth::model
