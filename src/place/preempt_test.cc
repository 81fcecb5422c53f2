#include "place/preempt.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "model/audit.h"

// Goal: the victims and the node are those of the rule, whatever bounds and columns find them with.
// Method: random small clusters with budgets, devices, reservations, pods that leave and nodes that
// refuse, beside a twin that sums up every pod for every question; all subsets where the rule
// promises a least.
namespace berth::place {
namespace {

using model::Amount;
using Names = std::vector<std::string>;

constexpr int32_t kPriority = 10;  // Of the preemptor.

struct TestPod {
  std::string name;
  int32_t priority = 0;
  int64_t start = 0;  // Seconds; 0: unknown.
  int node = 0;
  Amount cpu = 0;
  Amount memory = 0;
  uint16_t devices = 0;
  uint16_t milli_each = 0;
  int label = 0;
  bool terminating = false;
  bool nominated = false;  // Holds no room but a promise.
  bool marked = false;
  int port = 0;  // 0: none; 1: of any IP; else of an IP of its own.
};

struct TestNode {
  Amount cpu = 0;
  Amount memory = 0;
  Amount pods = 0;
  uint32_t devices = 0;
  bool cordoned = false;
  bool featured = true;
};

struct TestBudget {
  int label = 0;
  int64_t allowed = 0;
  Names disrupted;
};

struct Cluster {
  std::vector<TestNode> nodes;
  std::vector<TestPod> pods;
  std::vector<TestBudget> budgets;
  Amount cpu = 0;  // What the preemptor asks for.
  Amount memory = 0;
  model::GpuDemand gpu;
  int port = 0;
};

std::string NodeName(size_t n) { return fmt::format("n{}", n); }

// ---- The state ---------------------------------------------------------------------------------

std::vector<model::HostPort> PortsOf(model::Vocabulary& v, int port) {
  if (port == 0) return {};
  return {{.port = 80,
           .protocol = v.names.Intern("TCP"),
           .ip = port == 1 ? model::NameId{} : v.names.Intern(fmt::format("10.0.0.{}", port))}};
}

model::ClassId ClassOf(model::Vocabulary& v, const Cluster& c) {
  std::vector<model::ResourceAmount> amounts = {
      {model::kCpu, c.cpu}, {model::kMemory, c.memory}, {model::kPods, 1}};
  if (!c.gpu.none()) amounts.push_back({model::kGpuMilli, c.gpu.total_milli()});
  model::ClassSpec spec{.requests = v.bundles.Intern(amounts, PortsOf(v, c.port)), .gpu = c.gpu};
  const model::NameId feature[] = {v.names.Intern("feature")};
  spec.features = v.name_lists.Intern(feature);
  return v.classes.Intern(spec);
}

model::PodUpsert FactsOf(model::Vocabulary& v, const TestPod& pod) {
  const model::ResourceAmount amounts[] = {
      {model::kCpu, pod.cpu},
      {model::kMemory, pod.memory},
      {model::kPods, 1},
      {model::kGpuMilli, Amount{std::popcount(pod.devices)} * pod.milli_each}};
  model::PodUpsert facts{.uid = "u" + pod.name,
                         .key = "ns/" + pod.name,
                         .class_id = v.classes.Intern({}),
                         .charge = v.bundles.Intern(amounts, PortsOf(v, pod.port))};
  (pod.nominated ? facts.nominated : facts.node) = NodeName(static_cast<size_t>(pod.node));
  const std::pair<std::string, std::string> label[] = {{"app", std::to_string(pod.label)}};
  facts.labels = model::PodLabelsText("ns", label);
  facts.start = Instant::FromSeconds(pod.start);
  facts.priority = pod.priority;
  facts.devices = {.mask = pod.devices, .milli_each = pod.milli_each};
  facts.terminating = pod.terminating;
  facts.disrupted = pod.marked;
  return facts;
}

model::State StateOf(const Cluster& c) {
  model::State state;
  model::Vocabulary& v = state.vocabulary();
  for (size_t n = 0; n < c.nodes.size(); ++n) {
    const TestNode& node = c.nodes[n];
    model::NodeUpsert facts{.name = NodeName(n), .uid = "u" + NodeName(n)};
    facts.allocatable = {{model::kCpu, node.cpu},
                         {model::kMemory, node.memory},
                         {model::kPods, node.pods},
                         {model::kGpuMilli, Amount{1000} * node.devices}};
    if (node.featured) facts.features = {v.names.Intern("feature")};
    facts.unschedulable = node.cordoned;
    state.Apply(facts);
  }
  for (const TestPod& pod : c.pods) state.Apply(FactsOf(v, pod));
  for (size_t i = 0; i < c.budgets.size(); ++i) {
    const TestBudget& budget = c.budgets[i];
    state.Apply(
        model::BudgetUpsert{.key = fmt::format("ns/b{}", i),
                            .selector = {{.key = "app", .values = {std::to_string(budget.label)}}},
                            .allowed = budget.allowed,
                            .disrupted = budget.disrupted});
  }
  state.Apply(model::PodUpsert{
      .uid = "up", .key = "ns/p", .class_id = ClassOf(v, c), .priority = kPriority});
  state.SortNames();
  return state;
}

// ---- The twin ----------------------------------------------------------------------------------

using PodList = std::vector<const TestPod*>;

// Whether its port is nobody's of those, or promised to others of its priority or more.
bool PortFree(const Cluster& c, int n, const PodList& kept) {
  const auto conflict = [&](const TestPod& pod) {
    return c.port != 0 && pod.port != 0 && (c.port == 1 || pod.port == 1 || c.port == pod.port);
  };
  for (const TestPod& pod : c.pods) {
    const bool promised = pod.nominated && !pod.terminating && pod.node == n;
    if (promised && pod.priority >= kPriority && conflict(pod)) return false;
  }
  return std::ranges::none_of(kept, [&](const TestPod* pod) { return conflict(*pod); });
}

// Whether the preemptor fits beside `kept` and what others of its priority or more are promised.
bool Fits(const Cluster& c, int n, const PodList& kept) {
  if (!PortFree(c, n, kept)) return false;
  const TestNode& node = c.nodes[static_cast<size_t>(n)];
  Amount cpu = c.cpu;
  Amount memory = c.memory;
  Amount pods = 1;
  Amount milli = c.gpu.total_milli();
  std::vector<int> device(16);
  const auto charge = [&](const TestPod& pod) {
    cpu += pod.cpu;
    memory += pod.memory;
    pods += 1;
    milli += Amount{std::popcount(pod.devices)} * pod.milli_each;
    for (size_t d = 0; d < 16; ++d) {
      // A nomination does not say which devices.
      if (((pod.devices >> d) & 1) != 0 && !pod.nominated) device[d] += pod.milli_each;
    }
  };
  for (const TestPod* pod : kept) charge(*pod);
  for (const TestPod& pod : c.pods) {
    if (pod.nominated && !pod.terminating && pod.node == n && pod.priority >= kPriority)
      charge(pod);
  }
  if (c.cpu > 0 && cpu > node.cpu) return false;
  if (c.memory > 0 && memory > node.memory) return false;
  if (pods > node.pods) return false;
  if (!c.gpu.none() && milli > Amount{1000} * node.devices) return false;
  if (c.gpu.none()) return true;
  const int each = c.gpu.share_milli > 0 ? static_cast<int>(c.gpu.share_milli) : 1000;
  uint32_t good = 0;
  for (size_t d = 0; d < node.devices; ++d) good += 1000 - device[d] >= each ? 1 : 0;
  return good >= std::max(c.gpu.devices_count, 1u);
}

struct Candidate {
  std::string answer;
  Names victims;
  int64_t violations = 0;
  std::tuple<int64_t, int64_t, int64_t, size_t, int64_t> cost;
};

bool MoreImportant(const TestPod* a, const TestPod* b) {
  constexpr int64_t kLate = std::numeric_limits<int64_t>::max();
  return std::tuple(-int64_t{a->priority}, a->start == 0 ? kLate : a->start, a->marked, a->name) <
         std::tuple(-int64_t{b->priority}, b->start == 0 ? kLate : b->start, b->marked, b->name);
}

// The rule of section 2.7, word for word.
Candidate AskTwin(const Cluster& c, int n, Evictions evictions) {
  const TestNode& node = c.nodes[static_cast<size_t>(n)];
  PodList kept;
  PodList lower;
  PodList all;
  for (const TestPod& pod : c.pods) {
    if (pod.node != n || pod.nominated) continue;
    all.push_back(&pod);
    if (pod.terminating && evictions != Evictions::kOfWhoLeavesToo) continue;
    (pod.priority < kPriority ? lower : kept).push_back(&pod);
  }
  const bool too_small = c.cpu > node.cpu || c.memory > node.memory ||
                         c.gpu.total_milli() > Amount{1000} * node.devices;
  if (node.cordoned || (too_small && PortFree(c, n, all))) return {.answer = "not helpful"};
  Cluster without_devices = c;  // Whether amounts alone fit as things are.
  without_devices.gpu = {};
  for (TestNode& other : without_devices.nodes) other.devices = 0;
  const bool amounts_fit = [&] {
    if (!Fits(without_devices, n, all)) return false;
    Amount milli = c.gpu.total_milli();
    for (const TestPod* pod : all) milli += Amount{std::popcount(pod->devices)} * pod->milli_each;
    for (const TestPod& pod : c.pods) {
      if (pod.nominated && !pod.terminating && pod.node == n && pod.priority >= kPriority)
        milli += Amount{std::popcount(pod.devices)} * pod.milli_each;
    }
    return c.gpu.none() || milli <= Amount{1000} * node.devices;
  }();
  if (!node.featured && amounts_fit) return {.answer = "not helpful"};
  if (!Fits(c, n, kept) || !node.featured)
    return {.answer = lower.empty() ? "no victims" : "refused"};
  std::ranges::sort(lower, MoreImportant);
  std::vector<int64_t> left;
  for (const TestBudget& budget : c.budgets) left.push_back(budget.allowed);
  PodList violating;
  PodList others;
  for (const TestPod* pod : lower) {
    bool violates = false;
    for (size_t b = 0; b < c.budgets.size(); ++b) {
      if (c.budgets[b].label != pod->label) continue;
      if (std::ranges::find(c.budgets[b].disrupted, pod->name) != c.budgets[b].disrupted.end())
        continue;
      if (--left[b] < 0) violates = true;
    }
    (violates ? violating : others).push_back(pod);
  }
  Candidate candidate{.answer = "helps"};
  PodList victims;
  for (const PodList& list : {violating, others}) {
    for (const TestPod* pod : list) {
      kept.push_back(pod);
      if (Fits(c, n, kept)) continue;
      kept.pop_back();
      victims.push_back(pod);
    }
  }
  for (const TestPod* pod : victims)
    candidate.violations += std::ranges::find(violating, pod) != violating.end() ? 1 : 0;
  std::ranges::sort(victims, MoreImportant);
  int64_t sum = 0;
  for (const TestPod* pod : victims) {
    candidate.victims.push_back(pod->name);
    sum += pod->priority + (int64_t{1} << 31);
  }
  constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();
  const int64_t highest = victims.empty() ? kLeast : victims[0]->priority;
  const int64_t late = victims.empty() || victims[0]->start == 0
                           ? std::numeric_limits<int64_t>::max()
                           : victims[0]->start;
  candidate.cost = {candidate.violations, highest, sum, victims.size(), -late};
  return candidate;
}

// ---- Properties --------------------------------------------------------------------------------

int Draw(int from, int to) { return *rc::gen::inRange(from, to); }
bool OneIn(int n) { return Draw(0, n) == 0; }

Cluster DrawCluster() {
  Cluster c;
  c.cpu = Draw(0, 6);
  c.memory = Draw(0, 4);
  const bool gpus = OneIn(2);
  if (gpus && OneIn(2)) c.gpu.share_milli = static_cast<uint32_t>(Draw(1, 10)) * 100;
  if (gpus && c.gpu.share_milli == 0) c.gpu.devices_count = static_cast<uint32_t>(Draw(1, 3));
  const bool ports = OneIn(3);
  if (ports) c.port = Draw(0, 4);
  const int nodes = Draw(1, 5);
  for (int n = 0; n < nodes; ++n) {
    c.nodes.push_back({.cpu = Draw(2, 12),
                       .memory = Draw(2, 8),
                       .pods = Draw(1, 8),
                       .devices = gpus ? static_cast<uint32_t>(Draw(0, 4)) : 0,
                       .cordoned = OneIn(8),
                       .featured = !OneIn(8)});
  }
  const int pods = Draw(0, nodes * 6);
  for (int i = 0; i < pods; ++i) {
    TestPod pod{.name = fmt::format("p{}", i),
                .priority = Draw(7, 12),
                .start = Draw(0, 4),
                .node = Draw(0, nodes),
                .cpu = Draw(0, 5),
                .memory = Draw(0, 3),
                .label = Draw(0, 3),
                .terminating = OneIn(8),
                .nominated = OneIn(8),
                .marked = OneIn(4),
                .port = ports ? Draw(0, 4) : 0};
    if (gpus && OneIn(2)) {
      pod.devices = static_cast<uint16_t>(Draw(1, 8));
      pod.milli_each = static_cast<uint16_t>(Draw(1, 11) * 100);
    }
    c.pods.push_back(pod);
  }
  const int budgets = OneIn(2) ? 0 : Draw(1, 4);
  for (int i = 0; i < budgets; ++i) {
    TestBudget budget{.label = Draw(0, 3), .allowed = Draw(0, 3)};
    if (OneIn(3)) budget.disrupted.push_back(fmt::format("p{}", Draw(0, 10)));
    c.budgets.push_back(budget);
  }
  return c;
}

std::string Show(const Cluster& c) {
  std::string text = fmt::format("asks {} {} gpu {} {} port {}\n", c.cpu, c.memory,
                                 c.gpu.share_milli, c.gpu.devices_count, c.port);
  for (size_t n = 0; n < c.nodes.size(); ++n) {
    const TestNode& node = c.nodes[n];
    text += fmt::format("n{}: {} {} pods {} devices {} cordoned {} featured {}\n", n, node.cpu,
                        node.memory, node.pods, node.devices, node.cordoned, node.featured);
  }
  for (const TestPod& p : c.pods) {
    text += fmt::format(
        "{} on {}: priority {} start {} {} {} devices {:x} of {} label {} port {}{}{}{}\n", p.name,
        p.node, p.priority, p.start, p.cpu, p.memory, p.devices, p.milli_each, p.label, p.port,
        p.terminating ? " terminating" : "", p.nominated ? " nominated" : "",
        p.marked ? " marked" : "");
  }
  for (const TestBudget& b : c.budgets)
    text += fmt::format("budget of {} allows {}\n", b.label, b.allowed);
  return text;
}

Names VictimNames(const model::State& state, const Preemption& preemption) {
  Names names;
  for (const model::PodId pod : preemption.victims)
    names.emplace_back(state.KeyOf(state.pods().at(pod).key).substr(3));
  return names;
}

void Compare(const Cluster& c, Evictions evictions) {
  const model::State state = StateOf(c);
  const Evaluator evaluator;
  PreemptionScratch scratch;
  const model::PodId pod = state.FindPod("up");
  std::optional<Candidate> best;
  size_t best_node = 0;
  model::PreemptionRefusal refusal{.nodes_count = static_cast<uint32_t>(c.nodes.size())};
  int64_t refused = 0;
  for (size_t n = 0; n < c.nodes.size(); ++n) {
    const Candidate want = AskTwin(c, static_cast<int>(n), evictions);
    const NodePreemption got =
        FindPreemptionOn(state, evaluator, pod, {state.FindNode(NodeName(n)), evictions}, scratch);
    constexpr const char* kAnswers[] = {"helps", "not helpful", "no victims", "refused"};
    if (kAnswers[static_cast<size_t>(got.answer)] != want.answer ||
        VictimNames(state, got.preemption) != want.victims ||
        got.preemption.pdb_violations != want.violations) {
      RC_FAIL(fmt::format(
          "n{}: {} [{}] {}, not {} [{}] {}\n{}", n, kAnswers[static_cast<size_t>(got.answer)],
          fmt::join(VictimNames(state, got.preemption), " "), got.preemption.pdb_violations,
          want.answer, fmt::join(want.victims, " "), want.violations, Show(c)));
    }
    refusal.not_helpful += want.answer == "not helpful" ? 1 : 0;
    refusal.no_victims += want.answer == "no victims" ? 1 : 0;
    refused += want.answer == "refused" ? 1 : 0;
    if (want.answer != "helps") continue;
    if (best.has_value() && best->cost <= want.cost) continue;
    best = want;
    best_node = n;
  }
  const Preemption got = FindPreemption(state, evaluator, pod, scratch, evictions);
  if (!best.has_value()) {
    RC_ASSERT(!got.node.valid());
    RC_ASSERT(got.refusal.nodes_count == refusal.nodes_count);
    RC_ASSERT(got.refusal.not_helpful == refusal.not_helpful);
    RC_ASSERT(got.refusal.no_victims == refusal.no_victims);
    RC_ASSERT((refused > 0) == !got.refusal.reasons.empty());
    return;
  }
  const std::string name =
      got.node.valid() ? std::string(state.NameOf(state.nodes().name(got.node))) : "none";
  if (name != NodeName(best_node) || VictimNames(state, got) != best->victims) {
    RC_FAIL(fmt::format("{} [{}], not {} [{}]\n{}", name, fmt::join(VictimNames(state, got), " "),
                        NodeName(best_node), fmt::join(best->victims, " "), Show(c)));
  }
}

RC_GTEST_PROP(PreemptTest, TheChoiceIsTheRulesOnEveryCluster, ()) {
  for (int i = 0; i < 20; ++i) Compare(DrawCluster(), Evictions::kOfLowerPriority);
}

RC_GTEST_PROP(PreemptTest, AlsoWhenWhoLeavesIsAVictim, ()) {
  for (int i = 0; i < 20; ++i) Compare(DrawCluster(), Evictions::kOfWhoLeavesToo);
}

// Goal: several nodes are told in the order in which one is chosen, and what victims cost that
// others chose is what they cost as its own choice. Method: each node alone.
RC_GTEST_PROP(PreemptTest, SeveralAreTheCheapestInTheirOrder, ()) {
  const Cluster c = DrawCluster();
  const model::State state = StateOf(c);
  const model::PodId pod = state.FindPod("up");
  PreemptionScratch scratch;
  std::vector<PricedPreemption> all;
  for (uint32_t row = 0; row < state.nodes().size(); ++row) {
    const model::NodeId n{row};
    if (!state.nodes().used(n) || !state.nodes().present(n)) continue;
    const NodePreemption there = FindPreemptionOn(state, Evaluator(), pod, {n}, scratch);
    if (there.answer != PreemptionAnswer::kHelps) continue;
    const auto priced = PriceOf(state, Evaluator(), pod, there.preemption, scratch);
    if (!priced) continue;  // Its refusal stands before evictions.
    RC_ASSERT(priced->preemption.victims == there.preemption.victims);
    all.push_back(*priced);
  }
  std::ranges::sort(all, {}, &PricedPreemption::cost);
  for (const size_t most : {size_t{1}, size_t{2}, all.size() + 1}) {
    const std::vector<PricedPreemption> got =
        FindPreemptions(state, Evaluator(), pod, most, scratch);
    RC_ASSERT(got.size() == std::min(most, all.size()));
    for (size_t i = 0; i < got.size(); ++i) {
      RC_ASSERT(got[i].cost == all[i].cost);
      RC_ASSERT(got[i].preemption.victims == all[i].preemption.victims);
    }
  }
}

// Goal: a scratch that followed the state answers as a fresh one. Method: pods come, change and go,
// nodes change size, promises are made and the log is trimmed between two questions, and what is
// summed up is caught up with ahead of some.
RC_GTEST_PROP(PreemptTest, WhatIsRememberedChangesNoAnswer, ()) {
  Cluster c = DrawCluster();
  c.cpu += 2;
  model::State state = StateOf(c);
  const Evaluator evaluator;
  PreemptionScratch warm;
  for (int step = 0; step < 30; ++step) {
    const Cluster other = DrawCluster();
    switch (Draw(0, 5)) {
      case 0:
        state.Apply(model::PodRemove{.uid = fmt::format("up{}", Draw(0, 20))});
        break;
      case 1:
        state.Apply(model::NodeUpsert{
            .name = NodeName(static_cast<size_t>(Draw(0, 5))),
            .uid = "u",
            .allocatable = {{model::kCpu, Draw(4, 16)}, {model::kMemory, 8}, {model::kPods, 9}},
            .features = {state.vocabulary().names.Find("feature")}});
        state.SortNames();
        break;
      case 2:
        state.TrimTouches(2);
        break;
      default:
        for (const TestPod& pod : other.pods) {
          if (OneIn(3)) state.Apply(FactsOf(state.vocabulary(), pod));
        }
    }
    PreemptionScratch fresh;
    const model::PodId pod = state.FindPod("up");
    if (OneIn(2)) CatchUpPreemption(state, evaluator, warm);
    if (OneIn(4)) continue;
    const Evictions evictions = OneIn(4) ? Evictions::kOfWhoLeavesToo : Evictions::kOfLowerPriority;
    const Preemption got = FindPreemption(state, evaluator, pod, warm, evictions);
    const Preemption want = FindPreemption(state, evaluator, pod, fresh, evictions);
    RC_ASSERT(got.node == want.node);
    RC_ASSERT(got.victims == want.victims);
    RC_ASSERT(got.refusal == want.refusal);
    const bool promises = got.node.valid() && evictions == Evictions::kOfLowerPriority && OneIn(4);
    if (promises) (void)state.Promise(pod, got.node, got.devices, got.victims);
  }
}

// Goal: A20: what a node costs is the most important of all its victims, whichever of them is found
// first. Method: on each of two nodes a victim that a budget protects, who is looked at first, and
// a more important one that none does; by the protected ones the wrong node would cost less.
TEST(PreemptTest, TheMostImportantVictimIsOfAllOfThem) {
  Cluster c{.nodes = {{.cpu = 4, .pods = 9}, {.cpu = 4, .pods = 9}},
            .pods = {{.name = "p0", .priority = 1, .node = 0, .cpu = 2, .label = 1},
                     {.name = "p1", .priority = 9, .node = 0, .cpu = 2},
                     {.name = "p2", .priority = 2, .node = 1, .cpu = 2, .label = 1},
                     {.name = "p3", .priority = 5, .node = 1, .cpu = 2}},
            .budgets = {{.label = 1}},
            .cpu = 4};
  const model::State state = StateOf(c);
  PreemptionScratch scratch;
  const Preemption got = FindPreemption(state, Evaluator(), state.FindPod("up"), scratch);
  EXPECT_EQ(got.node, state.FindNode("n1"));
  EXPECT_EQ(VictimNames(state, got), (Names{"p3", "p2"}));
  EXPECT_EQ(got.pdb_violations, 1u);
}

// Goal: A21: who is told to be disrupted already takes nothing of the budget again, wherever it
// stands among the pods. Method: three victims in each order of importance, one of which the status
// names, under a budget that allows one more, or two: of those beyond it there are as many always.
TEST(PreemptTest, WhoIsDisruptedAlreadyIsCountedOnceInEachOrder) {
  for (const int64_t allowed : {1, 2}) {
    std::vector<int32_t> priorities = {1, 2, 3};
    do {
      Cluster c{.nodes = {{.cpu = 3, .pods = 9}},
                .budgets = {{.label = 0, .allowed = allowed, .disrupted = {"p0"}}},
                .cpu = 3};
      for (size_t i = 0; i < priorities.size(); ++i) {
        c.pods.push_back(
            {.name = fmt::format("p{}", i), .priority = priorities[i], .node = 0, .cpu = 1});
      }
      const model::State state = StateOf(c);
      PreemptionScratch scratch;
      const Preemption got = FindPreemption(state, Evaluator(), state.FindPod("up"), scratch);
      EXPECT_EQ(got.victims.size(), 3u);
      EXPECT_EQ(got.pdb_violations, allowed == 1 ? 1u : 0u) << fmt::format("{}", priorities);
    } while (std::ranges::next_permutation(priorities).found);
  }
}

// Goal: a start that is corrected counts at once. Method: the node whose victim began later is
// chosen, before and after.
TEST(PreemptTest, AStartThatIsCorrectedIsNotMissed) {
  Cluster c{.nodes = {{.cpu = 4, .pods = 9}, {.cpu = 4, .pods = 9}},
            .pods = {{.name = "p0", .start = 2, .node = 0, .cpu = 4},
                     {.name = "p1", .start = 5, .node = 1, .cpu = 4}},
            .cpu = 4};
  model::State state = StateOf(c);
  PreemptionScratch scratch;
  const model::PodId pod = state.FindPod("up");
  EXPECT_EQ(FindPreemption(state, Evaluator(), pod, scratch).node, state.FindNode("n1"));
  c.pods[0].start = 9;
  state.Apply(FactsOf(state.vocabulary(), c.pods[0]));
  EXPECT_EQ(FindPreemption(state, Evaluator(), pod, scratch).node, state.FindNode("n0"));
}

// Goal: so does a mark. Method: of equals the marked one goes, which costs one victim, not two.
TEST(PreemptTest, AMarkThatComesIsNotMissed) {
  Cluster c{.nodes = {{.cpu = 4, .pods = 9}},
            .pods = {{.name = "p0", .node = 0, .cpu = 2},
                     {.name = "p1", .node = 0, .cpu = 1},
                     {.name = "p2", .node = 0, .cpu = 1}},
            .cpu = 2};
  model::State state = StateOf(c);
  PreemptionScratch scratch;
  const model::PodId pod = state.FindPod("up");
  EXPECT_EQ(FindPreemption(state, Evaluator(), pod, scratch).victims,
            (std::vector{state.FindPod("up1"), state.FindPod("up2")}));
  c.pods[0].marked = true;
  state.Apply(FactsOf(state.vocabulary(), c.pods[0]));
  EXPECT_EQ(FindPreemption(state, Evaluator(), pod, scratch).victims,
            std::vector{state.FindPod("up0")});
}

// Goal: no victim is one too many, and without budgets the most important victim of the node that
// is chosen is the least important one that any set of victims anywhere can have. Method: all
// subsets of all nodes.
RC_GTEST_PROP(PreemptTest, NoVictimIsSparedByAnotherChoice, ()) {
  Cluster c = DrawCluster();
  if (OneIn(2)) c.budgets.clear();
  const model::State state = StateOf(c);
  PreemptionScratch scratch;
  const Preemption got = FindPreemption(state, Evaluator(), state.FindPod("up"), scratch);
  int64_t least = std::numeric_limits<int64_t>::max();
  for (size_t n = 0; n < c.nodes.size(); ++n) {
    if (c.nodes[n].cordoned || !c.nodes[n].featured) continue;
    PodList kept;
    PodList lower;
    for (const TestPod& pod : c.pods) {
      if (pod.node != static_cast<int>(n) || pod.nominated || pod.terminating) continue;
      (pod.priority < kPriority ? lower : kept).push_back(&pod);
    }
    const bool chosen = got.node == state.FindNode(NodeName(n));
    const Names victims = VictimNames(state, got);
    if (lower.size() > 12) continue;
    for (uint32_t subset = 0; subset < (1u << lower.size()); ++subset) {
      PodList beside = kept;
      int64_t highest = std::numeric_limits<int64_t>::min();
      size_t ours = 0;
      size_t evicted = 0;
      for (size_t i = 0; i < lower.size(); ++i) {
        if (((subset >> i) & 1) == 0) {
          beside.push_back(lower[i]);
          continue;
        }
        ++evicted;
        highest = std::max<int64_t>(highest, lower[i]->priority);
        ours += std::ranges::find(victims, lower[i]->name) != victims.end() ? 1 : 0;
      }
      if (!Fits(c, static_cast<int>(n), beside)) continue;
      least = std::min(least, highest);
      // A proper part of the victims would do.
      if (chosen) RC_ASSERT(!(ours == evicted && evicted < victims.size()));
    }
  }
  if (!c.budgets.empty() || least == std::numeric_limits<int64_t>::max() || !got.node.valid())
    return;
  int64_t highest = std::numeric_limits<int64_t>::min();
  for (const model::PodId pod : got.victims)
    highest = std::max<int64_t>(highest, state.pods().at(pod).priority);
  RC_ASSERT(highest == least);
}

}  // namespace
}  // namespace berth::place
