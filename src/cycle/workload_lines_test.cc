// Goal: workloads that a look can't tell apart are tried, refused and woken as one, and nobody else
// is. Method: random changes of lines against a plain list of who waits; and plans of small worlds.
#include "cycle/workload_lines.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "cycle/test_quota.h"

namespace berth::cycle {
namespace {

using model::NameId;
using model::WorkloadId;

// Who waits, as plain rows: nothing is shared, everything is looked for.
class NaiveLines {
 public:
  struct Row {
    uint32_t workload = 0;
    NameId line;
    WorkloadLines::Place place;
    WorkloadLines::Key key;
    bool refused = false;
  };
  void Put(const Row& row) {
    Row added = row;
    // Whoever is like those that were refused is refused.
    for (const auto& [w, other] : rows_) {
      if (other.line == row.line && other.key == row.key) added.refused = other.refused;
    }
    rows_[row.workload] = added;
  }
  void Refuse(uint32_t workload) {
    const Row of = rows_.at(workload);
    for (auto& [w, row] : rows_) {
      if (row.line == of.line && row.key == of.key) row.refused = true;
    }
  }
  void SetAlone(uint32_t workload) {
    Row& row = rows_.at(workload);
    const bool was = row.key.alone.valid();
    row.key.alone = WorkloadId{workload};
    if (!was) row.refused = false;
  }
  void Wake(NameId line) {
    for (auto& [w, row] : rows_) {
      if (row.line == line) row.refused = false;
    }
  }
  [[nodiscard]] std::vector<WorkloadId> MembersOf(NameId line) const {
    std::vector<const Row*> members;
    for (const auto& [w, row] : rows_) {
      if (row.line == line) members.push_back(&row);
    }
    std::ranges::sort(members, [](const Row* a, const Row* b) { return Order(*a) < Order(*b); });
    std::vector<WorkloadId> ids;
    for (const Row* row : members) ids.push_back(WorkloadId{row->workload});
    return ids;
  }
  [[nodiscard]] std::optional<WorkloadId> First(NameId line, bool refused) const {
    for (const WorkloadId id : MembersOf(line)) {
      if (rows_.at(id.value).refused == refused) return id;
    }
    return std::nullopt;
  }
  std::map<uint32_t, Row> rows_;

 private:
  static std::tuple<int32_t, Instant, std::string> Order(const Row& row) {
    return {-row.place.priority, row.place.queued_at, row.place.uid};
  }
};

std::optional<WorkloadId> FirstOf(const WorkloadLines::Firsts& firsts) {
  if (firsts.empty()) return std::nullopt;
  return firsts.begin()->first.workload;
}

RC_GTEST_PROP(WorkloadLinesProperty, LinesAreAsIfEverybodyWereLookedFor, ()) {
  WorkloadLines lines;
  NaiveLines naive;
  const int steps = *rc::gen::inRange(1, 80);
  for (int i = 0; i < steps; ++i) {
    const auto w = *rc::gen::inRange<uint32_t>(0, 12);
    const NameId line{*rc::gen::inRange<uint32_t>(0, 2)};
    const bool stands = naive.rows_.contains(w);
    switch (*rc::gen::inRange(0, 6)) {
      case 0:
        lines.Remove(WorkloadId{w});
        naive.rows_.erase(w);
        break;
      case 1:
        if (!stands) break;
        lines.Refuse(WorkloadId{w}, {.unfit = model::Unfit::kWaiting}, {});
        naive.Refuse(w);
        break;
      case 2:
        if (!stands) break;
        // One that was refused is alone already, or is to be looked at.
        if (naive.rows_.at(w).refused) break;
        lines.SetAlone(WorkloadId{w});
        naive.SetAlone(w);
        break;
      case 3:
        lines.Wake(line);
        naive.Wake(line);
        break;
      default: {
        if (stands) break;
        NaiveLines::Row row{.workload = w, .line = line};
        row.place = {.priority = *rc::gen::inRange(0, 2),
                     .queued_at = Instant::FromSeconds(*rc::gen::inRange(0, 3)),
                     .uid = std::to_string(w),
                     .workload = WorkloadId{w}};
        row.key.priority = row.place.priority;
        row.key.slots = {{.class_id = model::ClassId{*rc::gen::inRange<uint32_t>(0, 2)}}};
        lines.Put(line, row.place, row.key);
        naive.Put(row);
      }
    }
    for (const NameId name : {NameId{0}, NameId{1}}) {
      RC_ASSERT(lines.MembersOf(name) == naive.MembersOf(name));
      const WorkloadLines::Line* of = lines.Find(name);
      RC_ASSERT((of == nullptr) == naive.MembersOf(name).empty());
      if (of == nullptr) continue;
      RC_ASSERT(FirstOf(of->untried) == naive.First(name, false));
      RC_ASSERT(FirstOf(of->refused) == naive.First(name, true));
    }
    for (const auto& [id, row] : naive.rows_)
      RC_ASSERT(lines.shape_of(WorkloadId{id}).refused == row.refused);
  }
}

// ---- In a cycle --------------------------------------------------------------------------------

TEST(AdmissionShapesTest, EqualsAreRefusedTogetherAndTold) {
  QuotaWorld world;
  world.Put(QueueSpec{.name = "q"});
  world.Starts({.name = "holds", .count = 3});
  for (const char* name : {"a", "b", "c"}) world.Put(WorkloadSpec{.name = name, .count = 2});
  world.Put(WorkloadSpec{.name = "other", .count = 3});
  // One look at the three; the cycle would end after one head.
  EXPECT_EQ(world.Cycle(),
            "default/a lacks 1000; default/b lacks 1000; default/c lacks 1000; "
            "default/other lacks 2000; ");
  world.Put(WorkloadSpec{.name = "late", .count = 2});
  EXPECT_EQ(world.Cycle(), "default/late lacks 1000; ");
  EXPECT_EQ(world.Cycle(), "");
  world.Remove("holds");
  EXPECT_EQ(world.Cycle(),
            "default/a: q spot 2000; default/b: q spot 2000; "
            "default/c lacks 2000; default/other lacks 3000; ");
}

// As upstream's hash has it: a version with more pods, of which as many more are done, is tried.
TEST(AdmissionShapesTest, WhereOtherPodsAreDoneTheyAreNoEquals) {
  QuotaWorld world;
  world.Put(QueueSpec{.name = "q"});
  world.Starts({.name = "holds", .count = 3});
  world.Put(WorkloadSpec{.name = "a", .count = 2});
  world.Cycle();
  const uint64_t before = world.engine.admissions().heads_decided();
  model::WorkloadUpsert facts = world.FactsOf(WorkloadSpec{.name = "a", .count = 2});
  world.engine.Apply(facts);
  world.Cycle();
  EXPECT_EQ(world.engine.admissions().heads_decided(), before);
  facts.slots[0].done = 1;
  world.engine.Apply(facts);
  world.Cycle();
  EXPECT_EQ(world.engine.admissions().heads_decided(), before + 1);
}

// What is missing changes with every end: only who would be the next is told how much.
TEST(AdmissionShapesTest, ThoseBehindTheFirstAreNotToldOfEachAmount) {
  QuotaWorld world;
  world.Put(QueueSpec{.name = "q"});
  world.Starts({.name = "one"});
  world.Starts({.name = "two"});
  for (const char* name : {"a", "b"}) world.Put(WorkloadSpec{.name = name, .count = 4});
  EXPECT_EQ(world.Cycle(), "default/a lacks 2000; default/b lacks 2000; ");
  world.Remove("one");
  EXPECT_EQ(world.Cycle(), "default/a lacks 1000; ");
  // Who asks is told what is true now.
  EXPECT_EQ(world.Why(world.state().FindWorkload("u-b")), "lacks 1000");
  world.Put(QueueSpec{.name = "q", .flavors = {{"spot", 3000}}});
  EXPECT_EQ(world.Cycle(), "default/a wants 4000 of 3000; default/b wants 4000 of 3000; ");
}

// The older one may evict whom the younger one may not, where the policy goes by age: it is looked
// at though it comes when the younger one was refused.
TEST(AdmissionShapesTest, WhereEvictionsGoByAgeThoseOfAnotherAgeAreNoEquals) {
  using model::EvictionPolicy;
  QuotaWorld world;
  QueueSpec queue{.name = "q", .flavors = {{"spot", 2000}}};
  world.Put(queue);
  world.Starts({.name = "holds", .count = 2, .created = 10});
  world.Put(WorkloadSpec{.name = "young", .count = 2, .created = 15});
  EXPECT_EQ(world.Cycle(), "default/young lacks 2000; ");
  // The policy changes while it waits.
  queue.preemption.within_queue = EvictionPolicy::kLowerOrNewerEqualPriority;
  world.Put(queue);
  EXPECT_EQ(world.Cycle(), "");
  world.Put(WorkloadSpec{.name = "old", .count = 2, .created = 5});
  EXPECT_EQ(world.Cycle(),
            "evict default/holds for default/old; default/old waits for 1 to leave; ");
  EXPECT_EQ(world.Cycle(), "");
  // And back.
  queue.preemption.within_queue = EvictionPolicy::kNever;
  world.Put(queue);
  EXPECT_EQ(world.Cycle(), "default/old lacks 2000; ");
}

// Whom others leave for is tried by itself: its equals find no quota, and it gets what it was
// promised.
TEST(AdmissionShapesTest, WhoIsPromisedItsQuotaIsLikeNoOther) {
  QuotaWorld world;
  world.Put(QueueSpec{.name = "q", .flavors = {{"spot", 2000}}, .preemption = kEvicts});
  world.Starts({.name = "holds", .count = 2});
  for (const char* name : {"a", "b"})
    world.Put(WorkloadSpec{.name = name, .count = 2, .priority = 1});
  EXPECT_EQ(world.Cycle(),
            "evict default/holds for default/a; default/a waits for 1 to leave; "
            "default/b lacks 2000; ");
  world.IsTold({.name = "holds", .count = 2});
  EXPECT_EQ(world.Cycle(), "");
  world.Remove("holds");
  EXPECT_EQ(world.Cycle(), "default/a: q spot 2000; ");
}

// Those that were told to be behind another are told why they wait once they are first, and when
// their queue is not strict any more.
TEST(AdmissionShapesTest, InAStrictQueueEachEqualIsToldWhoBarsIt) {
  QuotaWorld world;
  QueueSpec queue{.name = "q", .flavors = {{"spot", 2000}}, .strict = true};
  world.Put(queue);
  world.Starts({.name = "holds"});
  for (const char* name : {"a", "b", "c"}) world.Put(WorkloadSpec{.name = name, .count = 2});
  EXPECT_EQ(world.Cycle(),
            "default/a lacks 1000; default/b behind default/a; default/c behind default/a; ");
  world.Put(WorkloadSpec{.name = "d", .count = 2});
  EXPECT_EQ(world.Cycle(), "default/d behind default/a; ");
  world.Remove("a");
  EXPECT_EQ(world.Cycle(),
            "default/b lacks 1000; default/c behind default/b; default/d behind default/b; ");
  queue.strict = false;
  world.Put(queue);
  EXPECT_EQ(world.Cycle(), "default/c lacks 1000; default/d lacks 1000; ");
  queue.strict = true;
  world.Put(queue);
  EXPECT_EQ(world.Cycle(), "default/c behind default/b; default/d behind default/b; ");
}

}  // namespace
}  // namespace berth::cycle
