#include "translate/quota_facts.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/limits.h"
#include "model/state.h"

// Goal: Kueue's objects become the facts that quota/ decides by, and mean what Kueue means by them.
// Method: a table row per field and value, told as text; queues also through a State, whose tree is
// asked for the amounts.
namespace berth::translate {
namespace {

using model::kUnlimited;
using model::QueueKind;

class QuotaFactsTest : public ::testing::Test {
 protected:
  std::string_view Name(model::NameId id) { return v.names.View(id); }

  // "spot/cpu=4000 borrows 1000 lends all"
  std::string Text(const model::QueueQuota& quota) {
    const auto amount = [](int64_t n) { return n == kUnlimited ? "all" : std::to_string(n); };
    return fmt::format("{}/{}={} borrows {} lends {}", Name(quota.flavor),
                       v.resources.Name(quota.resource), quota.quota.nominal,
                       amount(quota.quota.borrowing_limit), amount(quota.quota.lending_limit));
  }
  std::vector<std::string> Texts(const std::vector<model::QueueQuota>& quotas) {
    std::vector<std::string> texts;
    for (const model::QueueQuota& quota : quotas) texts.push_back(Text(quota));
    return texts;
  }
  // "cpu memory from spot on-demand"
  std::vector<std::string> GroupTexts(model::ResourceGroupsId id) {
    std::vector<std::string> texts;
    for (uint32_t i = 0; i < v.resource_groups.count(id); ++i) {
      std::string& text = texts.emplace_back();
      const model::ResourceGroup group = v.resource_groups.at(id, i);
      for (const model::ResourceId r : group.resources)
        text += std::string(v.resources.Name(r)) + " ";
      text += "from";
      for (const model::NameId flavor : group.flavors) text += " " + std::string(Name(flavor));
    }
    return texts;
  }

  model::State state;
  model::Vocabulary& v = state.vocabulary();
};

std::vector<api::ResourceGroup> TwoGroups() {
  return {{.covered = {"cpu", "memory"},
           .flavors = {{.flavor = "spot",
                        .resources = {{.resource = "cpu",
                                       .nominal = 4000,
                                       .borrowing_limit = 1000,
                                       .lending_limit = 2000},
                                      {.resource = "memory", .nominal = 7}}},
                       {.flavor = "on-demand",
                        .resources = {{.resource = "cpu", .nominal = 0, .borrowing_limit = 0},
                                      {.resource = "memory", .nominal = 8, .lending_limit = 0}}}}},
          {.covered = {"nvidia.com/gpu"},
           .flavors = {
               {.flavor = "a100", .resources = {{.resource = "nvidia.com/gpu", .nominal = 8}}}}}};
}

TEST_F(QuotaFactsTest, AClusterQueuesQuotasAndGroupsAreItsOwn) {
  const model::QueueUpsert facts = QueueFacts(
      api::ClusterQueue{
          .meta = {.name = "q", .uid = "u"}, .cohort = "c", .resource_groups = TwoGroups()},
      v);
  EXPECT_EQ(facts.kind, QueueKind::kClusterQueue);
  EXPECT_EQ(facts.name, "q");
  EXPECT_EQ(facts.uid, "u");
  EXPECT_EQ(facts.parent, "c");
  EXPECT_EQ(Texts(facts.quotas), (std::vector<std::string>{
                                     "spot/cpu=4000 borrows 1000 lends 2000",
                                     "spot/memory=7 borrows all lends all",
                                     "on-demand/cpu=0 borrows 0 lends all",
                                     "on-demand/memory=8 borrows all lends 0",
                                     "a100/nvidia.com/gpu=8 borrows all lends all",
                                 }));
  EXPECT_EQ(GroupTexts(facts.groups), (std::vector<std::string>{"cpu memory from spot on-demand",
                                                                "nvidia.com/gpu from a100"}));
  EXPECT_EQ(facts.preemption, model::QueuePreemption());
  EXPECT_EQ(facts.fungibility, model::QueueFungibility());
}

TEST_F(QuotaFactsTest, ACohortHasQuotasAndNothingElse) {
  const model::QueueUpsert facts = QueueFacts(
      api::Cohort{
          .meta = {.name = "c", .uid = "u"}, .parent = "top", .resource_groups = TwoGroups()},
      v);
  EXPECT_EQ(facts.kind, QueueKind::kCohort);
  EXPECT_EQ(facts.name, "c");
  EXPECT_EQ(facts.uid, "u");
  EXPECT_EQ(facts.parent, "top");
  EXPECT_EQ(facts.quotas.size(), 5U);
  EXPECT_FALSE(facts.groups.valid());
}

// Quotas are one resource's of one flavor each.
TEST_F(QuotaFactsTest, TheTreeHasWhatTheObjectsSay) {
  const auto with = [](std::vector<api::ResourceQuota> quotas) {
    return std::vector<api::ResourceGroup>{
        {.covered = {"cpu"}, .flavors = {{.flavor = "spot", .resources = std::move(quotas)}}}};
  };
  state.Apply(QueueFacts(
      api::Cohort{.meta = {.name = "c", .uid = "u0"},
                  .resource_groups = with({{.resource = "cpu", .nominal = limits::kQuotaMax}})},
      v));
  const auto left = [&](api::ResourceQuota quota) {
    state.Apply(QueueFacts(api::ClusterQueue{.meta = {.name = "q", .uid = "u1"},
                                             .cohort = "c",
                                             .resource_groups = with({std::move(quota)})},
                           v));
    const uint32_t account = state.queues().AccountOf(
        state.FindQueue(QueueKind::kClusterQueue, "q"), v.names.Find("spot"));
    return state.ledger().quota().LeftFor(model::QuotaView::kNow, model::kCpu, account).amount;
  };
  EXPECT_EQ(left({.resource = "cpu", .nominal = 5, .borrowing_limit = 2}), 7);
  EXPECT_EQ(left({.resource = "cpu", .nominal = 5, .borrowing_limit = 0}), 5);
  EXPECT_EQ(left({.resource = "cpu", .nominal = 5}), limits::kQuotaMax);
}

TEST_F(QuotaFactsTest, WhatAQueueMayEvictIsItsPolicies) {
  using Policy = model::EvictionPolicy;
  struct Row {
    api::ClusterQueuePreemption given;
    model::QueuePreemption want;
  };
  constexpr int32_t kMost = std::numeric_limits<int32_t>::max();
  const std::vector<Row> rows = {
      {{}, {}},
      {{.within_cluster_queue = "LowerPriority"}, {.within_queue = Policy::kLowerPriority}},
      {{.within_cluster_queue = "LowerOrNewerEqualPriority"},
       {.within_queue = Policy::kLowerOrNewerEqualPriority}},
      {{.within_cluster_queue = "Whatever", .reclaim_within_cohort = "Any"},
       {.within_queue = Policy::kNever, .reclaim = Policy::kAny}},
      {{.within_cluster_queue = "", .reclaim_within_cohort = "LowerPriority"},
       {.reclaim = Policy::kLowerPriority}},
      {{.borrow_within_cohort = "LowerPriority"},
       {.borrows = true, .borrows_from_priority_max = kMost}},
      {{.borrow_within_cohort = "LowerPriority", .borrow_priority_threshold = 100},
       {.borrows = true, .borrows_from_priority_max = 100}},
      {{.borrow_within_cohort = "LowerPriority", .borrow_priority_threshold = int64_t{1} << 40},
       {.borrows = true, .borrows_from_priority_max = kMost}},
      {{.borrow_within_cohort = "LowerPriority", .borrow_priority_threshold = -(int64_t{1} << 40)},
       {.borrows = true, .borrows_from_priority_max = std::numeric_limits<int32_t>::min()}},
  };
  for (size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(QueueFacts(api::ClusterQueue{.preemption = rows[i].given}, v).preemption,
              rows[i].want)
        << "row " << i;
  }
}

TEST_F(QuotaFactsTest, WhichFlavorIsTakenIsItsFungibility) {
  struct Row {
    std::string when_can_borrow;
    std::string when_can_preempt;
    std::string preference;
    model::QueueFungibility want;
  };
  const std::vector<Row> rows = {
      {"MayStopSearch", "TryNextFlavor", "", {}},
      {"TryNextFlavor", "TryNextFlavor", "", {.next_before_borrowing = true}},
      {"MayStopSearch", "MayStopSearch", "", {.next_before_preempting = false}},
      {"TryNextFlavor",
       "TryNextFlavor",
       "PreemptionOverBorrowing",
       {.next_before_borrowing = true, .preempts_before_borrows = true}},
      {"TryNextFlavor",
       "TryNextFlavor",
       "BorrowingOverPreemption",
       {.next_before_borrowing = true}},
      {"", "", "", {}},
  };
  for (const Row& row : rows) {
    EXPECT_EQ(QueueFacts(api::ClusterQueue{.when_can_borrow = row.when_can_borrow,
                                           .when_can_preempt = row.when_can_preempt,
                                           .fungibility_preference = row.preference},
                         v)
                  .fungibility,
              row.want)
        << row.when_can_borrow << " " << row.when_can_preempt << " " << row.preference;
  }
}

TEST_F(QuotaFactsTest, ResourcesThatHaveNoRoomAreLeftOutAndNamed) {
  for (int i = 0; v.resources.size() < limits::kResourceKindsMax; ++i)
    ASSERT_TRUE(v.resources.Intern(fmt::format("example.com/{}", i)).has_value());
  const api::ResourceQuota held{.resource = "cpu", .nominal = 1};
  const api::ResourceQuota surplus{.resource = "example.com/surplus", .nominal = 1};
  const std::vector<api::ResourceGroup> groups = {
      {.covered = {"cpu", "example.com/surplus"},
       .flavors = {{.flavor = "a", .resources = {held, surplus}},
                   {.flavor = "b", .resources = {held, surplus}}}}};
  std::vector<std::string> left_out;
  const model::QueueUpsert facts =
      QueueFacts(api::ClusterQueue{.resource_groups = groups}, v, &left_out);
  EXPECT_EQ(Texts(facts.quotas), (std::vector<std::string>{"a/cpu=1 borrows all lends all",
                                                           "b/cpu=1 borrows all lends all"}));
  EXPECT_EQ(GroupTexts(facts.groups), std::vector<std::string>{"cpu from a b"});
  EXPECT_EQ(left_out, std::vector<std::string>{"example.com/surplus"});
  EXPECT_EQ(QueueFacts(api::Cohort{.resource_groups = groups}, v).quotas.size(), 2U);
}

// ---- Flavors and topologies ----------------------------------------------------------------

TEST_F(QuotaFactsTest, AFlavorIsItsNodesLabelsAndTheTaintsThatKeepPodsOut) {
  const model::FlavorUpsert facts =
      FlavorFacts({.meta = {.name = "spot", .uid = "u"},
                   .node_labels = {{"pool", "spot"}, {"zone", "z"}},
                   .node_taints = {{.key = "a", .value = "1", .effect = "NoSchedule"},
                                   {.key = "b", .value = "2", .effect = "PreferNoSchedule"},
                                   {.key = "c", .value = "3", .effect = "NoExecute"},
                                   {.key = "d", .value = "4", .effect = "Whatever"}},
                   .tolerations = {{.key = "gpu", .op = "Exists"}},
                   .topology = "racks"},
                  v);
  EXPECT_EQ(facts.name, "spot");
  EXPECT_EQ(facts.uid, "u");
  EXPECT_EQ(facts.topology, "racks");
  ASSERT_EQ(facts.labels.size(), 2U);
  EXPECT_EQ(Name(facts.labels[0].key), "pool");
  EXPECT_EQ(Name(facts.labels[0].value), "spot");
  ASSERT_TRUE(facts.taints.valid());
  std::string taints;
  for (const model::Taint& taint : v.taints.View(facts.taints))
    taints += std::string(Name(taint.key)) + "=" + std::string(Name(taint.value)) + " ";
  EXPECT_EQ(taints, "a=1 c=3 ");
  ASSERT_TRUE(facts.tolerations.valid());
  ASSERT_EQ(v.tolerations.View(facts.tolerations).size(), 1U);
  EXPECT_EQ(v.tolerations.View(facts.tolerations)[0].op, model::TolerationOp::kExists);
  EXPECT_EQ(Name(v.tolerations.View(facts.tolerations)[0].key), "gpu");
}

TEST_F(QuotaFactsTest, AFlavorWithoutTaintsHasNone) {
  const model::FlavorUpsert facts =
      FlavorFacts({.node_taints = {{.key = "b", .effect = "PreferNoSchedule"}}}, v);
  EXPECT_FALSE(facts.taints.valid());
  EXPECT_FALSE(facts.tolerations.valid());
  EXPECT_EQ(facts.topology, "");
}

TEST_F(QuotaFactsTest, AWishIsWhatATopologyRequestAsksFor) {
  const auto name = [&](std::string_view text) { return v.names.Intern(text); };
  EXPECT_EQ(
      TopologyWishOf({.required = "rack", .group = "g", .slices = {{"host", 4}, {"gpu", 0}}}, v),
      (model::TopologyWish{.asked = true,
                           .required = name("rack"),
                           .group = name("g"),
                           .slices = {{name("host"), 4}, {name("gpu"), 1}}}));
  EXPECT_TRUE(TopologyWishOf({.slices = {{"host", 4}}}, v).asked);
  EXPECT_FALSE(TopologyWishOf({.group = "g"}, v).asked);
  EXPECT_EQ(TopologyWishOf({.preferred = "rack", .unconstrained = true}, v),
            (model::TopologyWish{.asked = true, .preferred = name("rack"), .unconstrained = true}));
}

TEST_F(QuotaFactsTest, ATopologyIsItsLevelsInOrder) {
  const model::TopologyUpsert facts =
      TopologyFacts({.meta = {.name = "racks", .uid = "u"}, .levels = {"rack", "block"}}, v);
  EXPECT_EQ(facts.name, "racks");
  EXPECT_EQ(facts.uid, "u");
  ASSERT_EQ(facts.levels.size(), 2U);
  EXPECT_EQ(Name(facts.levels[0]), "rack");
  EXPECT_EQ(Name(facts.levels[1]), "block");
  EXPECT_FALSE(facts.by_node);
  EXPECT_TRUE(TopologyFacts({.levels = {"rack", "kubernetes.io/hostname"}}, v).by_node);
  EXPECT_FALSE(TopologyFacts({.levels = {"kubernetes.io/hostname", "rack"}}, v).by_node);
  EXPECT_FALSE(TopologyFacts({}, v).by_node);
}

// ---- Workloads -----------------------------------------------------------------------------

constexpr Instant kThen = Instant::FromSeconds(100);

api::Condition Says(std::string_view type, std::string_view status, std::string_view reason = "") {
  return {.type = std::string(type),
          .status = std::string(status),
          .reason = std::string(reason),
          .transition = kThen};
}

std::string_view Text(model::EvictedFor evicted_for) {
  switch (evicted_for) {
    case model::EvictedFor::kNothing:
      return "nothing";
    case model::EvictedFor::kOther:
      return "other";
    case model::EvictedFor::kPodsNotReady:
      return "pods not ready";
    case model::EvictedFor::kCheck:
      break;
  }
  return "check";
}

// Stage, then what is true of it.
std::string Text(const model::WorkloadStatus& status) {
  std::string text(ToString(model::StageOf(status)));
  if (!status.active) text += ", not active";
  if (status.on_hold) text += ", on hold";
  if (status.held_back) text += ", held back";
  if (status.checks_ready) text += ", checks ready";
  if (status.evicted_for != model::EvictedFor::kNothing)
    text += fmt::format(", evicted for {} at {}", Text(status.evicted_for),
                        (status.evicted_at - Instant{}).seconds());
  if (status.requeue_at != Instant{})
    text += fmt::format(", again at {}", (status.requeue_at - Instant{}).seconds());
  return text;
}

TEST(WorkloadStatusTest, ConditionsMeanWhatKueueMeansByThem) {
  struct Row {
    std::vector<api::Condition> conditions;
    std::string_view want;
  };
  const std::vector<Row> rows = {
      {{}, "pending"},
      {{Says("QuotaReserved", "False", "WaitingForQuota")}, "pending"},
      {{Says("QuotaReserved", "Unknown", "OnHold")}, "pending"},
      {{Says("QuotaReserved", "False", "OnHold")}, "pending, on hold"},
      {{Says("QuotaReserved", "True", "OnHold")}, "quotaReserved"},
      {{Says("QuotaReserved", "True"), Says("Admitted", "False")}, "quotaReserved"},
      {{Says("QuotaReserved", "True"), Says("Admitted", "True")}, "admitted"},
      {{Says("Admitted", "True")}, "pending"},
      {{Says("Evicted", "True", "Preempted"), Says("QuotaReserved", "True")},
       "evicted, evicted for other at 100"},
      {{Says("Evicted", "True", "PodsReadyTimeout"), Says("QuotaReserved", "True")},
       "evicted, evicted for pods not ready at 100"},
      {{Says("Evicted", "True", "AdmissionCheck"), Says("QuotaReserved", "False", "Pending")},
       "pending, evicted for check at 100"},
      {{Says("Evicted", "True", "DeactivatedDueToRequeuingLimitExceeded")},
       "pending, evicted for other at 100"},
      {{Says("Evicted", "False", "AdmissionCheck"), Says("QuotaReserved", "True")},
       "quotaReserved"},
      {{Says("Requeued", "False", "PodsReadyTimeout")}, "pending, held back"},
      {{Says("Requeued", "True", "BackoffFinished")}, "pending"},
      {{Says("Finished", "True", "Succeeded"), Says("QuotaReserved", "True"),
        Says("Admitted", "True")},
       "finished"},
      {{Says("Finished", "False")}, "pending"},
      {{Says("PodsReady", "True"), Says("Preempted", "True"), Says("Whatever", "True")}, "pending"},
  };
  for (const Row& row : rows) {
    std::string given;
    for (const api::Condition& c : row.conditions)
      given += fmt::format("{}={} {}; ", c.type, c.status, c.reason);
    EXPECT_EQ(Text(WorkloadStatusOf({.conditions = row.conditions})), row.want) << given;
  }
}

TEST(WorkloadStatusTest, TheRestOfTheStatusCountsToo) {
  const auto with_checks = [](const std::vector<std::string>& states) {
    api::Workload workload;
    for (const std::string& state : states) workload.checks.push_back({.state = state});
    return Text(WorkloadStatusOf(workload));
  };
  EXPECT_EQ(with_checks({}), "pending");
  EXPECT_EQ(with_checks({"Ready"}), "pending, checks ready");
  EXPECT_EQ(with_checks({"Ready", "Ready"}), "pending, checks ready");
  for (const char* state : {"Pending", "Retry", "Rejected", ""})
    EXPECT_EQ(with_checks({"Ready", state}), "pending") << state;
  EXPECT_EQ(Text(WorkloadStatusOf({.active = false})), "pending, not active");
  EXPECT_EQ(Text(WorkloadStatusOf({.requeue_at = Instant::FromSeconds(7)})), "pending, again at 7");
  EXPECT_EQ(WorkloadStatusOf({.meta = {.creation_time = kThen}}).created, kThen);
}

TEST(WorkloadStatusTest, PlacementsAreDueOrOnAnUnhealthyNode) {
  struct Row {
    std::vector<api::PodSetAssignment> pod_sets;
    std::vector<std::string> unhealthy;
    bool awaits = false;
    bool on_unhealthy = false;
  };
  const auto placed = [](std::vector<std::string> domains, bool delayed = false) {
    api::TopologyAssignment topology{.levels = {"rack", "kubernetes.io/hostname"}};
    for (std::string& domain : domains) topology.domains.push_back({{"n2", std::move(domain)}});
    return api::PodSetAssignment{.topology = std::move(topology), .topology_delayed = delayed};
  };
  const api::PodSetAssignment unplaced;
  const api::PodSetAssignment delayed{.topology_delayed = true};
  const std::vector<Row> rows = {
      {{unplaced}, {"n1"}},
      {{delayed}, {}, true, false},
      {{placed({"n1"}), delayed}, {}, true, false},
      {{placed({"n1"}, true)}, {}},
      {{placed({"n1", "n3"})}, {"n2"}},
      {{placed({"n1", "n3"})}, {"n2", "n3"}, false, true},
      {{unplaced, placed({"n1"}), placed({"n2"})}, {"n2"}, false, true},
      {{delayed, placed({"n1"})}, {"n1"}, true, true},
      {{}, {"n1"}},
  };
  for (size_t i = 0; i < rows.size(); ++i) {
    const model::WorkloadStatus status = WorkloadStatusOf(
        {.admission = api::Admission{.cluster_queue = "q", .pod_sets = rows[i].pod_sets},
         .unhealthy_nodes = rows[i].unhealthy});
    EXPECT_EQ(status.awaits_topology, rows[i].awaits) << "row " << i;
    EXPECT_EQ(status.on_unhealthy_node, rows[i].on_unhealthy) << "row " << i;
  }
  EXPECT_FALSE(WorkloadStatusOf({.unhealthy_nodes = {"n1"}}).on_unhealthy_node);
}

}  // namespace
}  // namespace berth::translate
