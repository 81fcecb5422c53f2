#include "model/budgets.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>
#include <set>

#include "model/audit.h"
#include "model/state.h"

// Goal: a pod is covered by the budgets of its namespace whose selector it meets, whichever came
// first; a decided eviction is charged until a status can have counted it. Method: tables, and
// random histories with the audit, which matches anew, after every step.
namespace berth::model {
namespace {

using Labels = std::vector<std::pair<std::string, std::string>>;
using Names = std::vector<std::string>;

struct Cluster {
  Cluster() : class_id(state.vocabulary().classes.Intern(ClassSpec{})) {
    state.Apply(NodeUpsert{.name = "n1", .uid = "n1", .allocatable = {{kPods, 100}}});
  }
  PodUpsert Pod(const std::string& uid, const std::string& name, const Labels& labels) const {
    return {.uid = uid,
            .key = "ns/" + name,
            .class_id = class_id,
            .node = "n1",
            .labels = PodLabelsText("ns", labels)};
  }
  [[nodiscard]] Names Covering(std::string_view uid) const {
    Names keys;
    for (const BudgetId id : state.budgets().Covering(state.pods().at(state.FindPod(uid)).labels))
      keys.push_back(state.budgets().at(id).facts.key);
    return keys;
  }
  [[nodiscard]] int64_t Remaining(std::string_view key) const {
    return state.budgets().at(state.budgets().Find(key)).remaining();
  }

  // The pod is evicted for one that comes.
  void Evict(const std::string& uid) {
    const std::string preemptor = "for-" + uid;
    state.Apply(PodUpsert{
        .uid = preemptor, .key = "ns/" + preemptor, .class_id = class_id, .priority = 10});
    const PodId victims[] = {state.FindPod(uid)};
    CHECK(state.Promise(state.FindPod(preemptor), state.FindNode("n1"), {}, victims));
  }
  void Spare(const std::string& uid) {
    state.Revoke(state.FindPod("for-" + uid), Cause::kRevoked, ReasonKind::kPromiseOutranked);
  }

  State state;
  ClassId class_id;
};

TEST(BudgetTest, SelectorsCoverAsUpstream) {
  struct Row {
    const char* what;
    std::vector<PodRequirement> selector;
    Labels labels;
    bool covers;
  };
  const Labels web = {{"app", "web"}, {"tier", "front"}};
  const Row rows[] = {
      {"an equal value", {{.key = "app", .values = {"web"}}}, web, true},
      {"another value", {{.key = "app", .values = {"db"}}}, web, false},
      {"one of several", {{.key = "tier", .values = {"back", "front"}}}, web, true},
      {"a value is no key", {{.key = "web", .op = SelectorOp::kExists}}, web, false},
      {"a part of a key", {{.key = "ap", .op = SelectorOp::kExists}}, web, false},
      {"no requirement covers nothing", {}, web, false},
      {"all must hold",
       {{.key = "app", .values = {"web"}}, {.key = "tier", .values = {"back"}}},
       web,
       false},
      {"not in", {{.key = "app", .op = SelectorOp::kNotIn, .values = {"db"}}}, web, true},
      {"not in, and absent", {{.key = "x", .op = SelectorOp::kNotIn, .values = {"1"}}}, web, true},
      {"does not exist", {{.key = "x", .op = SelectorOp::kDoesNotExist}}, web, true},
      {"a pod without labels", {{.key = "x", .op = SelectorOp::kDoesNotExist}}, {}, false},
      {"an empty value", {{.key = "app", .values = {""}}}, {{"app", ""}}, true},
  };
  for (const Row& row : rows) {
    Cluster c;
    c.state.Apply(BudgetUpsert{.key = "ns/b", .selector = row.selector});
    c.state.Apply(BudgetUpsert{.key = "nt/b", .selector = row.selector});
    c.state.Apply(c.Pod("u", "p", row.labels));
    EXPECT_EQ(c.Covering("u"), row.covers ? Names{"ns/b"} : Names{}) << row.what;
  }
}

// Method: a victim of two budgets from the decision to its removal, with a status of each in
// between; another of the same workload whose eviction is taken back.
TEST(BudgetTest, ADecidedEvictionIsChargedUntilAStatusCanHaveCountedIt) {
  Cluster c;
  const BudgetUpsert a{.key = "ns/a", .selector = {{.key = "app", .values = {"x"}}}, .allowed = 3};
  BudgetUpsert b = a;
  b.key = "ns/b";
  c.state.Apply(a);
  c.state.Apply(b);
  PodUpsert pod = c.Pod("u1", "p1", {{"app", "x"}});
  c.state.Apply(pod);
  c.state.Apply(c.Pod("u2", "p2", {{"app", "x"}}));
  c.Evict("u1");
  c.Evict("u2");
  EXPECT_EQ(c.Remaining("ns/a"), 1);
  c.Spare("u2");
  EXPECT_EQ(c.Remaining("ns/a"), 2);
  c.state.Apply(a);
  EXPECT_EQ(c.Remaining("ns/a"), 2) << "a status that can't have counted it";
  pod.terminating = true;
  c.state.Apply(pod);
  EXPECT_EQ(c.Remaining("ns/a"), 2) << "no status was seen since";
  c.state.Apply(a);
  EXPECT_EQ(c.Remaining("ns/a"), 3);
  EXPECT_EQ(c.Remaining("ns/b"), 2);
  c.state.Apply(PodRemove{.uid = "u1"});
  EXPECT_EQ(c.Remaining("ns/b"), 3);
  EXPECT_EQ(Names{}, Audit(c.state));
}

// Goal: whose decision is taken back, or who is bound elsewhere, is not evicted and charged to no
// budget. Method: a pod that is decided for n1 becomes a victim there; its binding fails, or another
// scheduler binds it to n2.
TEST(BudgetTest, WhoIsNotEvictedAfterAllIsNotCharged) {
  for (const bool elsewhere : {false, true}) {
    Cluster c;
    c.state.Apply(NodeUpsert{.name = "n2", .uid = "n2", .allocatable = {{kPods, 100}}});
    c.state.Apply(
        BudgetUpsert{.key = "ns/a", .selector = {{.key = "app", .values = {"x"}}}, .allowed = 3});
    PodUpsert pod = c.Pod("u1", "p1", {{"app", "x"}});
    pod.node.clear();
    c.state.Apply(pod);
    c.state.Assume(c.state.FindPod("u1"), c.state.FindNode("n1"), {});
    c.Evict("u1");
    EXPECT_EQ(c.Remaining("ns/a"), 2);
    if (elsewhere) {
      pod.node = "n2";
      c.state.Apply(pod);
    } else {
      c.state.Apply(BindOutcome{.uid = "u1", .outcome = WriteOutcome::kRefused, .code = 403});
    }
    EXPECT_EQ(c.Remaining("ns/a"), 3);
    EXPECT_EQ(Names{}, Audit(c.state));
  }
}

// Goal: whichever of a pod, its labels and a budget comes, changes or goes first. Method: random
// histories over few keys; the audit matches every pod with every budget.
RC_GTEST_PROP(BudgetTest, CoveringIsWhatMatchingAnewSays, ()) {
  Cluster c;
  const auto labels = [] {
    Labels drawn;
    if (*rc::gen::inRange(0, 3) > 0) drawn.emplace_back("app", *rc::gen::inRange(0, 2) ? "a" : "b");
    if (*rc::gen::inRange(0, 3) > 0) drawn.emplace_back("tier", "t");
    return drawn;
  };
  const int steps = *rc::gen::inRange(0, 60);
  for (int i = 0; i < steps; ++i) {
    const std::string number = std::to_string(*rc::gen::inRange(0, 4));
    switch (*rc::gen::inRange(0, 6)) {
      case 0:
      case 1:
        c.state.Apply(c.Pod("u" + number, "p" + number, labels()));
        break;
      case 2:
        c.state.Apply(PodRemove{.uid = "u" + number});
        break;
      case 3:
      case 4: {
        BudgetUpsert budget{.key = (*rc::gen::inRange(0, 4) ? "ns/b" : "nt/b") + number};
        for (const auto& [key, value] : labels()) {
          budget.selector.push_back(
              {.key = key,
               .op = *rc::gen::inRange(0, 3) ? SelectorOp::kIn : SelectorOp::kNotIn,
               .values = {value}});
        }
        c.state.Apply(budget);
        break;
      }
      default:
        c.state.Apply(BudgetRemove{.key = "ns/b" + number});
    }
    if (const PodId pod = c.state.FindPod("u" + number);
        pod.valid() && *rc::gen::inRange(0, 2) == 0) {
      if (c.state.pods().at(pod).evicted_for.valid()) {
        c.Spare("u" + number);
      } else {
        c.Evict("u" + number);
      }
    }
    const Names found = Audit(c.state);
    if (!found.empty()) RC_FAIL(found.front());
  }
}

}  // namespace
}  // namespace berth::model
