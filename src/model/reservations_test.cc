// Goal: what a workload is charged of its queue follows from what its object says and from what was
// decided, whatever order they come in. Method: conversations, audited after each fact.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "model/audit.h"
#include "model/state.h"

namespace berth::model {
namespace {

class ReservationsTest : public ::testing::Test {
 protected:
  ReservationsTest() {
    flavor_ = state_.vocabulary().names.Intern("spot");
    amounts_ = state_.vocabulary().bundles.Intern(std::vector<ResourceAmount>{{kCpu, 1000}});
    Apply(QueueUpsert{
        .name = "cq",
        .uid = "u-cq",
        .quotas = {{.flavor = flavor_, .resource = kCpu, .quota = {.nominal = 10'000}}}});
    Apply(LocalQueueUpsert{.uid = "u-lq", .key = "ns/lq", .cluster_queue = "cq"});
  }
  void Apply(const Delta& delta) {
    state_.Apply(delta);
    const std::vector<std::string> found = Audit(state_);
    EXPECT_TRUE(found.empty()) << found.front();
  }
  // A workload that waits.
  static WorkloadUpsert Waiting(const std::string& uid = "u-a", const std::string& key = "ns/a") {
    return {.uid = uid, .key = key, .local_queue = "ns/lq"};
  }
  WorkloadUpsert Reserved(const std::string& uid = "u-a", const std::string& key = "ns/a") {
    WorkloadUpsert facts = Waiting(uid, key);
    facts.status.reserved = facts.status.admitted = true;
    facts.reserved = Amounts();
    return facts;
  }
  Reservation Amounts() {
    return {.cluster_queue = state_.vocabulary().names.Intern("cq"),
            .charges = {{.pod_set = 0, .flavor = flavor_, .count = 3, .amounts = amounts_}}};
  }
  void Decide(const std::string& uid = "u-a") {
    state_.Reserve(state_.FindWorkload(uid), Amounts());
  }
  // "used, of which goes": of the queue, in thousandths.
  [[nodiscard]] std::string Used() const {
    const QueueId q = state_.FindQueue(QueueKind::kClusterQueue, "cq");
    const uint32_t account = state_.queues().AccountOf(q, flavor_);
    const QuotaTree& tree = state_.ledger().quota();
    const Amount goes =
        tree.used(QuotaView::kNow, kCpu, account) - tree.used(QuotaView::kFuture, kCpu, account);
    return fmt::format("{}, {}", tree.used(QuotaView::kPhysical, kCpu, account), goes);
  }
  [[nodiscard]] bool IsPromised() const {
    return state_.workloads().at(state_.FindWorkload("u-a")).promised != Reservation{};
  }
  [[nodiscard]] uint64_t Ended(Cause cause) const {
    return state_.ledger().ended_by_cause()[static_cast<size_t>(cause)];
  }
  [[nodiscard]] bool Waits(const std::string& uid = "u-a") const {
    return WaitsFrom(state_.workloads().at(state_.FindWorkload(uid))) != Instant::Never();
  }

  State state_;
  NameId flavor_;
  BundleId amounts_;
};

TEST_F(ReservationsTest, WhatTheObjectSaysIsCharged) {
  Apply(Waiting());
  EXPECT_EQ(Used(), "0, 0");
  EXPECT_TRUE(Waits());
  Apply(Reserved());
  EXPECT_EQ(Used(), "3000, 0");
  EXPECT_FALSE(Waits());
  WorkloadUpsert evicted = Reserved();
  evicted.status.evicted_for = EvictedFor::kOther;
  Apply(evicted);
  EXPECT_EQ(Used(), "3000, 3000") << "who is told to go has it until nothing of it runs";
  Apply(Waiting());
  EXPECT_EQ(Used(), "0, 0");
  EXPECT_TRUE(Waits());
}

TEST_F(ReservationsTest, NothingIsChargedOnceFinished) {
  Apply(Reserved());
  WorkloadUpsert finished = Reserved();
  finished.status.finished = true;
  Apply(finished);
  EXPECT_EQ(Used(), "0, 0");
  EXPECT_EQ(Ended(Cause::kOwnerFinished), 1u);
  EXPECT_FALSE(Waits());
  WorkloadUpsert unreserved = Waiting();
  unreserved.status.finished = true;
  Apply(unreserved);
  EXPECT_FALSE(Waits())
      << "terminal is final (https://github.com/kubernetes-sigs/kueue/issues/5561)";
}

TEST_F(ReservationsTest, AQueueThatIsNotKnownYetIsCharged) {
  WorkloadUpsert facts = Reserved();
  facts.reserved.cluster_queue = state_.vocabulary().names.Intern("later");
  Apply(facts);
  const QueueId q = state_.FindQueue(QueueKind::kClusterQueue, "later");
  ASSERT_TRUE(q.valid());
  Apply(QueueUpsert{.name = "later",
                    .uid = "u-later",
                    .quotas = {{.flavor = flavor_, .resource = kCpu, .quota = {.nominal = 5000}}}});
  const uint32_t account = state_.queues().AccountOf(q, flavor_);
  EXPECT_EQ(state_.ledger().quota().LeftFor(QuotaView::kNow, kCpu, account).amount, 2000);
  Apply(WorkloadRemove{.uid = "u-a"});
  EXPECT_EQ(state_.ledger().quota().LeftFor(QuotaView::kNow, kCpu, account).amount, 5000);
  Apply(QueueRemove{.name = "later", .uid = "u-later"});
  EXPECT_FALSE(state_.FindQueue(QueueKind::kClusterQueue, "later").valid());
}

TEST_F(ReservationsTest, ADecisionIsChargedOnce) {
  Apply(Waiting());
  Decide();
  EXPECT_EQ(Used(), "3000, 0");
  EXPECT_FALSE(Waits());
  Apply(Waiting());  // An older version, or a change of something else.
  EXPECT_EQ(Used(), "3000, 0");
  Apply(Reserved());
  EXPECT_EQ(Used(), "3000, 0");
  Apply(ReservationOutcome{.uid = "u-a", .outcome = WriteOutcome::kDone, .at = {}});
  EXPECT_EQ(Used(), "3000, 0");
  Apply(Waiting());
  EXPECT_EQ(Used(), "0, 0") << "it was given back";
}

TEST_F(ReservationsTest, OutcomesReturnItToWhoDecides) {
  struct Row {
    WriteOutcome outcome;
    std::string used;
    bool waits;
    std::string used_after_read;
    bool waits_after_read;
    bool promised_after_read;
  };
  const std::vector<Row> rows = {
      {WriteOutcome::kDone, "3000, 0", false, "0, 0", true, true},
      {WriteOutcome::kConflict, "3000, 0", false, "0, 0", true, true},
      {WriteOutcome::kUnknown, "3000, 0", false, "0, 0", true, true},
      {WriteOutcome::kGone, "0, 0", false, "0, 0", true, false},
      {WriteOutcome::kRefused, "0, 0", true, "0, 0", true, false},
      {WriteOutcome::kNotSent, "0, 0", true, "0, 0", true, true},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(static_cast<int>(row.outcome));
    Apply(Waiting());
    Decide();
    Apply(ReservationOutcome{.uid = "u-a", .outcome = row.outcome, .at = Instant::FromSeconds(5)});
    EXPECT_EQ(Used(), row.used);
    EXPECT_EQ(Waits(), row.waits);
    Apply(ReservationRead{.uid = "u-a"});
    EXPECT_EQ(Used(), row.used_after_read);
    EXPECT_EQ(Waits(), row.waits_after_read);
    EXPECT_EQ(IsPromised(), row.promised_after_read) << "to be decided again before others";
    const Workload& workload = state_.workloads().at(state_.FindWorkload("u-a"));
    EXPECT_EQ(WaitsFrom(workload),
              row.outcome == WriteOutcome::kRefused ? Instant::FromSeconds(6) : Instant{});
    Apply(WorkloadRemove{.uid = "u-a"});
  }
}

TEST_F(ReservationsTest, AnUnknownWriteThatCameTrueStays) {
  Apply(Waiting());
  Decide();
  Apply(ReservationOutcome{.uid = "u-a", .outcome = WriteOutcome::kUnknown, .at = {}});
  Apply(Reserved());
  Apply(ReservationRead{.uid = "u-a"});
  EXPECT_EQ(Used(), "3000, 0");
  EXPECT_EQ(Ended(Cause::kReadUnbound), 0u);
}

TEST_F(ReservationsTest, OutcomesOfAnotherLifeMeanNothing) {
  Apply(Waiting());
  Decide();
  Apply(Waiting("u-b"));  // Made again under the name.
  EXPECT_EQ(Used(), "0, 0");
  EXPECT_EQ(Ended(Cause::kOwnerReplaced), 1u);
  Decide("u-b");
  Apply(ReservationOutcome{.uid = "u-a", .outcome = WriteOutcome::kRefused, .at = {}});
  Apply(WorkloadRemove{.uid = "u-a"});
  EXPECT_EQ(Used(), "3000, 0");
}

TEST_F(ReservationsTest, WhatItHasAlreadyNeedsNoMoreRoom) {
  WorkloadUpsert most = Reserved();
  most.reserved.charges.front().count = limits::kSlotsMax - 3;
  ASSERT_TRUE(state_.HasRoomFor(most));
  Apply(most);
  WorkloadUpsert other = Reserved("u-b", "ns/b");
  other.reserved.charges.front().count = 4;
  EXPECT_FALSE(state_.HasRoomFor(other));
  most.reserved.charges.front().count = limits::kSlotsMax;
  EXPECT_TRUE(state_.HasRoomFor(most));
  most.reserved.charges.front().count = limits::kSlotsMax + 1;
  EXPECT_FALSE(state_.HasRoomFor(most));
  most.status.finished = true;
  EXPECT_TRUE(state_.HasRoomFor(most)) << "what is finished gives back";
  Apply(most);
  EXPECT_EQ(Used(), "0, 0");
}

TEST_F(ReservationsTest, WhatMakesItTriedAgainIsTold) {
  const auto queues = [&] {
    std::string text;
    for (const QueueName& queue : state_.relieved_queues())
      text += fmt::format("back to {} ", state_.NameOf(queue.name));
    for (const QueueName& queue : state_.changed_queues())
      text += fmt::format("{} ", state_.NameOf(queue.name));
    return text;
  };
  Apply(Waiting());
  EXPECT_EQ(queues(), "");
  EXPECT_EQ(state_.changed_workloads().size(), 1u);
  Apply(Waiting());
  EXPECT_EQ(state_.changed_workloads().size(), 0u) << "a status that means nothing here";
  Apply(Reserved());
  EXPECT_EQ(queues(), "") << "taking frees nothing";
  Apply(Waiting());
  EXPECT_EQ(queues(), "back to cq ");
  QueueUpsert queue{
      .name = "cq",
      .uid = "u-cq",
      .quotas = {{.flavor = flavor_, .resource = kCpu, .quota = {.nominal = 10'000}}}};
  Apply(queue);
  EXPECT_EQ(queues(), "") << "its status was written";
  queue.parent = "all";
  Apply(queue);
  EXPECT_EQ(queues(), "cq cq ");
  Apply(FlavorUpsert{.name = "spot", .uid = "u-spot"});
  EXPECT_EQ(queues(), "cq all ");
  Apply(FlavorUpsert{.name = "spot", .uid = "u-spot"});
  EXPECT_EQ(queues(), "") << "a change of nothing that counts";
  Apply(LocalQueueUpsert{.uid = "u-lq", .key = "ns/lq", .cluster_queue = "cq"});
  EXPECT_EQ(state_.changed_workloads().size(), 0u);
  Apply(LocalQueueUpsert{.uid = "u-lq", .key = "ns/lq", .cluster_queue = "other"});
  EXPECT_EQ(state_.changed_workloads().size(), 1u);
  const LocalQueueId local = state_.local_queues().FindKey(state_.FindKey("ns/lq"));
  EXPECT_EQ(state_.NameOf(state_.local_queues().at(local).cluster_queue), "other");
  Apply(LocalQueueRemove{.uid = "u-lq"});
  EXPECT_EQ(state_.changed_workloads().size(), 1u);
}

}  // namespace
}  // namespace berth::model
