#pragma once

namespace berth::model {

// Planted bugs: each re-creates an upstream defect (docs/REGRESSIONS.md), so that the tests that
// guard against it can be seen to fail. All off by default; only test code turns one on, through
// State::Options or cycle::Engine::Options.
struct Faults {
  bool keep_claim_of_deleted_pod = false;  // D03: the node looks full for ever.
  bool ledger_by_name = false;             // N02, C02: another pod of the same name shares state.
  // C14: what happens between two cycles of one batch is not looked at.
  bool lose_event_while_evaluated = false;
  bool wake_index_misses_freed = false;  // C06: freed amounts wake nobody.
  bool narrow_from_too_late = false;     // A woken line is not looked for on the node that woke it.
  bool miss_removal_of_terminating = false;  // A pod that is deleted with grace is never gone.
  bool miss_uncordon = false;                // A node that is schedulable again is not noticed.
  bool drop_touched_holder = false;  // A holder is not tried again when its node is touched.
  bool operator==(const Faults&) const = default;
};

}  // namespace berth::model
