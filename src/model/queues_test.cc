#include "model/queues.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "model/audit.h"
#include "model/test_cluster.h"

namespace berth::model {
namespace {

const std::vector<std::string> kClean;

struct Tree {
  explicit Tree() {
    for (const char* flavor : {"red", "blue"}) {
      flavors.push_back(c.state.vocabulary().names.Intern(flavor));
    }
  }
  void Cohort(const std::string& name, const std::string& parent, Amount cpu = -1,
              const std::string& uid = "") {
    Put(QueueKind::kCohort, name, parent, cpu, uid);
  }
  void Queue(const std::string& name, const std::string& parent, Amount cpu = -1,
             const std::string& uid = "") {
    Put(QueueKind::kClusterQueue, name, parent, cpu, uid);
  }
  void Put(QueueKind kind, const std::string& name, const std::string& parent, Amount cpu,
           const std::string& uid) {
    QueueUpsert facts{
        .kind = kind, .name = name, .uid = uid.empty() ? "u-" + name : uid, .parent = parent};
    if (cpu >= 0) facts.quotas.push_back({flavors[0], kCpu, {.nominal = cpu}});
    c.state.Apply(facts);
  }
  [[nodiscard]] QueueId Find(const std::string& name,
                             QueueKind kind = QueueKind::kClusterQueue) const {
    return c.state.FindQueue(kind, name);
  }
  [[nodiscard]] Amount Left(const std::string& name) const {
    const uint32_t account = c.state.queues().AccountOf(Find(name), flavors[0]);
    return c.state.ledger().quota().LeftFor(QuotaView::kNow, kCpu, account).amount;
  }
  // Charged to the queue by a pod that is made for it.
  void Charge(const std::string& queue, const std::string& pod, uint32_t count) {
    c.state.Apply(c.Pod(pod, "default/" + pod));
    const PodId id = c.state.FindPod(pod);
    Transaction t = c.state.Begin();
    t.Add({.owner = c.state.OwnerOf(id),
           .count = count,
           .account = AccountId::OfTree(c.state.queues().AccountOf(Find(queue), flavors[0])),
           .bundle = c.state.pods().at(id).charge,
           .why = ClaimWhy::kAdmitted});
    t.Commit(Cause::kObserved);
  }
  void Remove(const std::string& name, QueueKind kind, const std::string& uid = "") {
    c.state.Apply(QueueRemove{.kind = kind, .name = name, .uid = uid});
  }

  Cluster c;
  std::vector<NameId> flavors;
};

// Goal: rows follow the names that others refer to, and the object of a name is known by its uid.
// Method: a queue before its cohort, both re-created, deletions that come late.
TEST(QueuesTest, ANameStandsAsLongAsSomebodyRefersToIt) {
  Tree t;
  t.Queue("a", "pool", 10);
  const QueueId pool = t.Find("pool", QueueKind::kCohort);
  ASSERT_TRUE(pool.valid());
  EXPECT_FALSE(t.c.state.queues().at(pool).uid.valid());
  EXPECT_EQ(t.Left("a"), 10);
  t.Cohort("pool", "", 5);
  EXPECT_EQ(t.Find("pool", QueueKind::kCohort), pool);
  EXPECT_EQ(t.Left("a"), 15);
  t.Cohort("pool", "", 7, "u-other");
  t.Remove("pool", QueueKind::kCohort, "u-pool");  // Of the one before.
  EXPECT_EQ(t.Left("a"), 17);
  t.Remove("pool", QueueKind::kCohort, "u-other");
  EXPECT_EQ(t.Left("a"), 10);
  EXPECT_EQ(Audit(t.c.state), kClean);
  t.Remove("a", QueueKind::kClusterQueue);
  EXPECT_EQ(t.c.state.queues().live(), 0u);
  EXPECT_EQ(t.c.state.queues().accounts_live(), 0u);
  EXPECT_EQ(Audit(t.c.state), kClean);
}

// Goal: what is charged to a queue stays charged when its object goes, and is there when one of its
// name comes; the last claim takes the row with it. Method: delete and re-create around a claim.
TEST(QueuesTest, ClaimsOutliveTheirQueue) {
  Tree t;
  t.Cohort("pool", "", 0);
  t.Queue("a", "pool", 2000);
  t.Queue("b", "pool", 1000);
  t.Charge("a", "p1", 4);  // 500 each.
  EXPECT_EQ(t.Left("b"), 1000);
  t.Remove("a", QueueKind::kClusterQueue);
  ASSERT_TRUE(t.Find("a").valid());
  EXPECT_FALSE(t.c.state.queues().active(t.Find("a")));
  EXPECT_EQ(t.Left("b"), 1000);  // It is of no cohort any more.
  EXPECT_EQ(t.Left("a"), -2000);
  t.Queue("a", "pool", 500, "u-again");
  EXPECT_EQ(t.Left("b"), -500);
  EXPECT_EQ(Audit(t.c.state), kClean);
  t.Remove("a", QueueKind::kClusterQueue);
  t.c.state.Apply(PodRemove{.uid = "p1"});
  EXPECT_FALSE(t.Find("a").valid());
  EXPECT_EQ(Audit(t.c.state), kClean);
}

// Goal: who is charged what a queue has no quota of is charged all the same, and leaves nothing.
// Method: a charge of another flavor, which borrows from the cohort, before and after it ends.
TEST(QueuesTest, WhatAQueueHasNoQuotaOfCanBeChargedToIt) {
  Tree t;
  t.Cohort("pool", "", 700);
  t.Queue("a", "pool");
  const uint32_t accounts = t.c.state.queues().accounts_live();
  t.c.state.Apply(t.c.Pod("p1"));
  const PodId pod = t.c.state.FindPod("p1");
  Transaction transaction = t.c.state.Begin();
  transaction.Add({.owner = t.c.state.OwnerOf(pod),
                   .account = t.c.state.AccountFor(t.Find("a"), t.flavors[0]),
                   .bundle = t.c.state.pods().at(pod).charge,
                   .why = ClaimWhy::kAdmitted});
  transaction.Commit(Cause::kObserved);
  EXPECT_EQ(t.Left("a"), 200);
  EXPECT_EQ(Audit(t.c.state), kClean);
  t.c.state.Apply(PodRemove{.uid = "p1"});
  EXPECT_EQ(t.c.state.queues().accounts_live(), accounts);
  EXPECT_EQ(Audit(t.c.state), kClean);
}

// Goal: a cycle takes its own out, and nobody else; the rest is as before. Method: cohorts are
// turned to each other one by one, a queue in and out of them.
TEST(QueuesTest, ACycleConcernsItsMembersAlone) {
  Tree t;
  t.Cohort("x", "y", 1);
  t.Cohort("y", "z", 2);
  t.Cohort("z", "", 4);
  t.Queue("in", "x", 10);
  t.Queue("out", "other", 20);
  EXPECT_EQ(t.Left("in"), 17);
  t.Cohort("z", "x", 4);
  for (const char* name : {"x", "y", "z"})
    EXPECT_TRUE(t.c.state.queues().at(t.Find(name, QueueKind::kCohort)).in_cycle) << name;
  EXPECT_FALSE(t.c.state.queues().active(t.Find("in")));
  EXPECT_TRUE(t.c.state.queues().active(t.Find("out")));
  EXPECT_EQ(t.Left("in"), 11);  // What it would have of its cohort, which is a root.
  EXPECT_EQ(Audit(t.c.state), kClean);
  t.Queue("out", "x", 20);
  EXPECT_FALSE(t.c.state.queues().active(t.Find("out")));
  t.Queue("in", "", 10);
  EXPECT_TRUE(t.c.state.queues().active(t.Find("in")));
  t.Cohort("y", "", 2);
  EXPECT_TRUE(t.c.state.queues().active(t.Find("out")));
  EXPECT_EQ(t.Left("out"), 27);
  t.Cohort("self", "self", 1);
  EXPECT_FALSE(t.c.state.queues().active(t.Find("self", QueueKind::kCohort)));
  EXPECT_EQ(Audit(t.c.state), kClean);
  t.Remove("self", QueueKind::kCohort);
  EXPECT_FALSE(t.Find("self", QueueKind::kCohort).valid());
  EXPECT_EQ(Audit(t.c.state), kClean);
}

// Goal: the levels below a queue are counted as parents change, cycles form and break, and siblings
// go. Method: the highest of two subtrees moves, closes a cycle, opens it; the other is left.
TEST(QueuesTest, HeightsFollowTheLinks) {
  Tree t;
  const auto heights = [&] {
    std::string text;
    for (const char* name : {"root", "left", "deep", "right"}) {
      const QueueId q = t.Find(name, QueueKind::kCohort);
      text += q.valid() ? std::to_string(t.c.state.queues().at(q).height) : "-";
    }
    EXPECT_EQ(Audit(t.c.state), kClean);
    return text;
  };
  t.Cohort("root", "");
  t.Queue("a", "root");
  EXPECT_EQ(heights(), "1---");
  t.Cohort("left", "root");
  t.Cohort("right", "root");
  t.Queue("b", "right");
  EXPECT_EQ(heights(), "20-1");
  t.Cohort("deep", "left");
  t.Queue("c", "deep");
  EXPECT_EQ(heights(), "3211");
  t.Cohort("left", "deep");  // A cycle of the two.
  EXPECT_EQ(heights(), "2011");
  t.Cohort("left", "root");
  EXPECT_EQ(heights(), "3211");
  t.Queue("c", "left");
  EXPECT_EQ(heights(), "2101");
  t.Remove("b", QueueKind::kClusterQueue);
  EXPECT_EQ(heights(), "2100");
}

// Goal: any history of queues, quotas, parents, claims and deletions leaves what the facts alone
// say, and a fact applied twice changes nothing. Method: random facts over few names; the audit
// recomputes by names and Kueue's recurrence; a state made of the last facts alone knows the same.
RC_GTEST_PROP(QueuesTest, AnyHistoryIsWhatItsFactsSay, ()) {
  // The root of Volcano's queues is there from the first of them on, and stays.
  const auto has_root = [](Tree& tree) {
    tree.Put(QueueKind::kQueue, "a", "", -1, "");
    tree.Remove("a", QueueKind::kQueue);
  };
  Tree t;
  has_root(t);
  std::map<std::pair<QueueKind, std::string>, QueueUpsert> facts;
  uint32_t pods = 0;
  std::vector<std::string> charged;
  for (int i = *rc::gen::inRange(1, 40); i > 0; --i) {
    const auto kind = static_cast<QueueKind>(*rc::gen::inRange(0, 3));
    const auto name = [] { return std::string(1, *rc::gen::inRange('a', 'e')); };
    QueueUpsert put{.kind = kind, .name = name(), .uid = "u" + std::to_string(i)};
    const int action = *rc::gen::inRange(0, 8);
    if (action == 0) {
      facts.erase({put.kind, put.name});
      t.Remove(put.name, put.kind);
    } else if (action == 1 && !charged.empty()) {
      t.c.state.Apply(PodRemove{.uid = charged.back()});
      charged.pop_back();
    } else if (action < 4) {
      const QueueId q = t.Find(put.name, put.kind);
      if (q.valid() && t.c.state.queues().AccountOf(q, t.flavors[0]) != Queue::kNoAccount) {
        charged.push_back("p" + std::to_string(++pods));
        t.c.state.Apply(t.c.Pod(charged.back(), "default/" + charged.back()));
        const PodId pod = t.c.state.FindPod(charged.back());
        Transaction transaction = t.c.state.Begin();
        transaction.Add(
            {.owner = t.c.state.OwnerOf(pod),
             .count = *rc::gen::inRange(1u, 4u),
             .account = AccountId::OfTree(t.c.state.queues().AccountOf(q, t.flavors[0])),
             .bundle = t.c.state.pods().at(pod).charge,
             .state = static_cast<ClaimState>(*rc::gen::inRange(0, 3)),
             .why = ClaimWhy::kAdmitted});
        transaction.Commit(Cause::kObserved);
      }
    } else {
      if (*rc::gen::inRange(0, 4) != 0) put.parent = name();
      for (const NameId flavor : t.flavors) {
        if (*rc::gen::inRange(0, 2) == 0) continue;
        const auto limit = [] { return *rc::gen::element(kUnlimited, Amount{0}, Amount{300}); };
        put.quotas.push_back({flavor,
                              *rc::gen::element(kCpu, kMemory),
                              {.nominal = *rc::gen::inRange(0, 2000),
                               .borrowing_limit = limit(),
                               .lending_limit = limit()}});
      }
      put.preemption.reclaim = *rc::gen::element(EvictionPolicy::kNever, EvictionPolicy::kAny);
      facts[{put.kind, put.name}] = put;
      t.c.state.Apply(put);
    }
    RC_ASSERT(Audit(t.c.state) == kClean);
  }
  Hasher before;
  t.c.state.AddTo(before);
  for (const auto& [key, fact] : facts) t.c.state.Apply(fact);
  Hasher after;
  t.c.state.AddTo(after);
  RC_ASSERT(before.value() == after.value());
  Tree again;
  has_root(again);
  for (const auto& [key, fact] : facts) again.c.state.Apply(fact);
  while (!charged.empty()) {
    t.c.state.Apply(PodRemove{.uid = charged.back()});
    charged.pop_back();
  }
  RC_ASSERT(Audit(t.c.state) == kClean);
  RC_ASSERT(AuditAgainst(t.c.state, again.c.state) == kClean);
  RC_ASSERT(t.c.state.queues().live() == again.c.state.queues().live());
  RC_ASSERT(t.c.state.queues().accounts_live() == again.c.state.queues().accounts_live());
}

}  // namespace
}  // namespace berth::model
