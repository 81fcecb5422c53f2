// Goal: preemption comes to rest, whatever becomes of pods, nodes, groups, budgets and extenders:
// no pod has others evicted again and again, and nobody waits for ever who fits, or for a promise
// that does not come true. Method: random histories of a world that carries out what the engine
// decides: bindings come true, nominations are written, victims are marked, then deleted, and go
// after a while; or that is refused. After each cycle a copy with cold caches decided the same, no
// wake-up was missed, the audit found nothing, and each pod can be explained. Then nothing new
// happens, and all is done that is decided, but that one pod that is deleted may never go.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "cycle/engine.h"
#include "cycle/test_cluster.h"
#include "cycle/test_naive.h"
#include "cycle/test_volumes.h"
#include "model/audit.h"

namespace berth::cycle {
namespace {

using model::PodId;

constexpr size_t kPodsMax = 16;
// Longer than anything that the engine waits for.
constexpr Duration kRest = Duration::Minutes(10);

// Uniform whatever rapidcheck's size is: a history is as rich in the first run as in the last.
int Draw(int low, int high) { return *rc::gen::resize(100, rc::gen::inRange(low, high)); }
bool OneIn(int n) { return Draw(0, n) == 0; }
std::string Either(const std::string& a, const std::string& b) { return OneIn(2) ? a : b; }

uint64_t Hash(const auto& value) {
  Hasher hasher;
  value.AddTo(hasher);
  return hasher.value();
}

class World {
 public:
  explicit World(bool compat)
      : engine_({.preemption = true, .queries_max = 3, .compat = compat}),
        looks_beyond_(OneIn(2)),
        has_budgets_(OneIn(2)),
        mixes_priorities_(OneIn(2)) {
    for (int i = 0; i < 4; ++i) kinds_.push_back(DrawKind());
    for (int i = Draw(1, 6); i > 0; --i) AddNode("n" + std::to_string(i));
    for (const char* queue : {"q0", "q1"}) PutQueue(queue);
  }

  void Change() {
    const int what = Draw(0, 15);
    if (what < 4) return AddPod();
    if (what < 10 && !pods_.empty()) return ChangePod(OneOf(pods_));
    if (what == 10) return ChangeNode();
    if (what == 11) return ChangeGroup();
    if (what == 12 && has_budgets_) return PutBudget();
    if (what == 14) return PutQueue(Either("q0", "q1"));
    if (what == 13 && looks_beyond_) engine_.Apply(DrawStorage(engine_.vocabulary(), Draw));
  }

  // Decides, and carries out as much as gets done meanwhile.
  void RunCycle() {
    now_ = now_ + Duration::Milliseconds(Draw(0, 4000));
    CarryOut(Cycle());
  }

  void ComeToRest() {
    quiet_ = true;
    if (!pods_.empty() && OneIn(3)) stuck_ = OneOf(pods_);
    one_stays_ = stuck_.empty() && OneIn(2);
    Instant busy_at = now_;
    int idle_cycles = 0;
    for (int i = 0; engine_.wake_at() <= now_ || now_ - busy_at < kRest; ++i) {
      RC_ASSERT(i < 400);
      const bool leaving = IsAnyoneLeaving();
      const bool done = engine_.wake_at() == Instant::Never() && !leaving;
      now_ = std::clamp(engine_.wake_at(), now_, now_ + (leaving ? Duration::Seconds(5) : kRest));
      const model::Plan plan = Cycle();
      if (done) RC_ASSERT(plan.empty());
      idle_cycles = plan.more && plan.empty() ? idle_cycles + 1 : 0;
      RC_ASSERT(idle_cycles < 20);
      // Extenders are asked anew, and pods are told anew why they wait, now and then.
      const size_t decided = plan.binds.size() + plan.preemptions.size() + plan.nominations.size() +
                             plan.released.size();
      if (leaving || decided > 0) busy_at = now_;
      CarryOut(plan);
    }
    CheckAtRest();
  }

 private:
  struct Object {
    TestPod pod;
    int64_t started = 0;  // Seconds; 0: it did not.
  };

  static std::string OneOf(const auto& known) {
    return std::next(known.begin(), Draw(0, static_cast<int>(known.size())))->first;
  }
  [[nodiscard]] const model::State& state() const { return engine_.state(); }
  std::string NameOf(PodId pod) const {
    return std::string(state().UidOf(state().pods().at(pod).uid).substr(4));
  }
  PodId IdOf(const std::string& name) const { return state().FindPod("uid-" + name); }
  const model::Pod& RowOf(const std::string& name) const { return state().pods().at(IdOf(name)); }
  // ---- What happens ----

  void PutNode(const TestNode& node) { engine_.Apply(FactsOf(engine_.vocabulary(), node)); }
  void AddNode(const std::string& name) {
    TestNode& node = nodes_[name];
    node = {.name = name, .cpu = 100 * Draw(8, 15), .memory = 5000, .pods = Draw(3, 9)};
    node.labels = {{"zone", Either("a", "b")}, {kHostname, name}};
    if (OneIn(3)) node.gpus = Draw(1, 3);
    PutNode(node);
  }
  void ChangeNode() {
    TestNode& node = nodes_.at(OneOf(nodes_));
    const int what = Draw(0, 5);
    // Its pods stay, and it comes back when it changes next.
    if (what == 0) return engine_.Apply(model::NodeRemove{.name = node.name});
    if (what == 1) node.cpu = 100 * Draw(4, 15);
    if (what == 2) node.taints.resize(OneIn(2) ? 1 : 0, {.key = "team"});
    if (what == 3) node.unschedulable = OneIn(3);
    if (what == 4) node.labels.front().second = Either("a", "b");
    PutNode(node);
  }
  void ChangeGroup() {
    const std::string name = Either("g0", "g1");
    if (OneIn(6)) return engine_.Apply(model::GroupRemove{.uid = "uid-" + name});
    TestGroup group{.name = name, .min_member = Draw(1, 4)};
    if (OneIn(4)) group.roles = {{"r0", Draw(1, 3)}};
    if (OneIn(4)) group.roles.push_back({"r1", 1});
    model::GroupUpsert facts = FactsOf(engine_.vocabulary(), group);
    if (OneIn(3)) facts.queue = Either("q0", "q1");
    if (OneIn(2))
      facts.phase = OneIn(2) ? model::GroupPhase::kInqueue : model::GroupPhase::kRunning;
    const model::ResourceAmount asked{.resource = model::kCpu, .amount = 100 * Draw(1, 20)};
    if (OneIn(3)) facts.min_resources = engine_.vocabulary().bundles.Intern({&asked, 1});
    engine_.Apply(facts);
  }
  void PutQueue(const std::string& name) {
    model::QueueUpsert queue = QueueOfGroups(name, 100 * Draw(5, 30));
    queue.stopped = OneIn(8);
    engine_.Apply(queue);
  }
  void PutBudget() {
    model::BudgetUpsert budget{.key = "default/" + Either("b0", "b1"), .uid = "b"};
    budget.selector = {{.key = "app", .values = {Either("a", "b")}}};
    budget.allowed = Draw(0, 3);
    if (!pods_.empty() && OneIn(3)) budget.disrupted = {OneOf(pods_)};
    engine_.Apply(budget);
  }

  // What places a pod, of few kinds a history, so that classes are met again.
  TestPod DrawKind() const {
    TestPod pod{.cpu = 100 * Draw(1, 11)};
    pod.labels = {{"app", Either("a", "b")}};
    if (OneIn(4)) pod.gpu_milli = OneIn(2) ? 300 : 1000;
    if (!looks_beyond_) return pod;
    const std::string key = Either("zone", kHostname);
    const std::string app = Either("a", "b");
    if (OneIn(3)) pod.spread = {{.key = key, .app = app, .max_skew = OneIn(2) ? 1u : 2u}};
    const auto kind = static_cast<model::AffinityKind>(Draw(0, 4));
    if (OneIn(3))
      pod.affinity = {{.kind = kind, .key = Either("zone", kHostname), .app = Either("a", "b")}};
    if (OneIn(4)) pod.host_port = 80;
    if (OneIn(4)) pod.claims.push_back("c" + std::to_string(Draw(0, 3)));
    if (OneIn(6)) pod.disks = {"d"};
    return pod;
  }
  void AddPod() {
    if (pods_.size() == kPodsMax) return;
    const std::string name = "p" + std::to_string(pods_made_++);
    Object& object = pods_[name];
    TestPod& pod = object.pod;
    pod = kinds_[static_cast<size_t>(Draw(0, 4))];
    pod.name = name;
    pod.priority = Draw(0, 5);
    pod.created = Draw(0, 3);
    if (OneIn(3)) {
      pod.node = OneOf(nodes_);
      object.started = Draw(1, 4);
    }
    if (OneIn(8)) pod.nominated = OneOf(nodes_);
    if (OneIn(10)) pod.pin = OneOf(nodes_);
    pod.foreign = OneIn(10);
    pod.never = OneIn(12);
    pod.asks = OneIn(6);
    pod.asks_about_victims = pod.asks && OneIn(2);
    if (OneIn(3)) pod.group = Either("g0", "g1");
    if (OneIn(2)) pod.role = Either("r0", "r1");
    if (!pod.group.empty() && !mixes_priorities_) pod.priority = pod.group == "g0" ? 1 : 3;
    Tell(name);
  }
  void ChangePod(const std::string& name) {
    Object& object = pods_.at(name);
    TestPod& pod = object.pod;
    const bool bound = !pod.node.empty();
    const int what = Draw(0, 6);
    if (what == 0 && (pod.terminating || OneIn(3))) {
      engine_.Apply(model::PodRemove{.uid = "uid-" + name});
      pods_.erase(name);
      return;
    }
    if (what == 1 && bound) return Delete(name, Draw(0, 40));
    if (what == 2 && bound)
      return engine_.Apply(model::EvictionRefused{.uid = "uid-" + name, .code = 403, .at = now_});
    if (what == 3 && bound) object.started = Draw(1, 6);
    if (what == 4 && !bound) pod.nominated = OneIn(2) ? OneOf(nodes_) : "";
    if (what == 5) pod.marked = !pod.marked;
    Tell(name);
  }
  void Delete(const std::string& name, int grace_seconds) {
    TestPod& pod = pods_.at(name).pod;
    pod.terminating = true;
    if (pod.deadline == 0) pod.deadline = now_.seconds() + grace_seconds;
    Tell(name);
  }
  void Tell(const std::string& name) {
    const Object& object = pods_.at(name);
    model::PodUpsert facts = FactsOf(engine_.vocabulary(), object.pod);
    facts.start = Instant::FromSeconds(object.started);
    engine_.Apply(facts);
  }

  // ---- What the engine decides, and what becomes of that ----

  model::Plan Cycle() {
    for (const auto& [name, object] : pods_) WriteNomination(name);  // What follows from facts.
    Engine fork = engine_;
    model::Plan plan = engine_.Cycle(now_);
    const model::Plan again = fork.Cycle(now_);
    RC_ASSERT(Print(plan, engine_.state()) == Print(again, fork.state()));
    RC_ASSERT(Hash(plan) == Hash(again));
    RC_ASSERT(Hash(engine_) == Hash(fork));
    RC_ASSERT(engine_.CountMissedWakes() == 0u);
    if (!plan.more) RC_ASSERT(engine_.CheckWakes(now_) == 0u);
    RC_ASSERT(engine_.counters().missed_wakes == 0u);
    RC_ASSERT(model::Audit(engine_.state()) == std::vector<std::string>());
    for (const auto& [name, object] : pods_)
      RC_ASSERT(engine_.Explain(IdOf(name)).stage == StageOf(RowOf(name)));
    return plan;
  }
  void CarryOut(const model::Plan& plan) {
    // Ids are good until the first fact.
    std::map<std::string, std::string> bound;
    std::vector<std::string> nominated;
    std::vector<model::ExternalVerdict> answers;
    for (const model::BindDecision& bind : plan.binds)
      bound[NameOf(bind.pod)] = state().NameOf(bind.node_name);
    for (const PodId pod : plan.nominations) nominated.push_back(NameOf(pod));
    for (const model::ExternalQuery& query : plan.queries) answers.push_back(DrawAnswer(query));
    // A promise keeps its own node: who goes elsewhere in the zone may be in its way.
    if (looks_beyond_ && !bound.empty()) evicting_decisions_.clear();
    for (const model::PreemptDecision& one : plan.preemptions) {
      // Once, once more for who stays, and once more for what was on its way before. A gang of
      // several priorities loses what its least important member was promised, and may have all of
      // it again, until one eviction begins.
      if (quiet_ && !one.victims.empty() && !mixes_priorities_)
        RC_ASSERT(++evicting_decisions_[NameOf(one.pod)] <= 3);
      for (const auto& victim : one.victims) RC_ASSERT(!bound.contains(NameOf(victim.pod)));
    }
    for (const std::string& pod : nominated) WriteNomination(pod);
    // But of a member of a group: its place was promised to it, and is taken back again next.
    for (const auto& [name, object] : pods_)
      RC_ASSERT(!state().NominationToWrite(IdOf(name)) || !object.pod.group.empty());
    for (const auto& [pod, node] : bound) Bind(pod, node);
    for (const model::ExternalVerdict& answer : answers) engine_.Apply(answer);
    EvictSome();
    if (quiet_ || OneIn(2)) RemoveSome();
  }
  void Bind(const std::string& name, const std::string& node) {
    engine_.Apply(model::BindOutcome{.uid = "uid-" + name, .at = now_});
    pods_.at(name).pod.node = node;
    pods_.at(name).pod.nominated = "";
    pods_.at(name).started = now_.seconds();
    Tell(name);
  }
  void WriteNomination(const std::string& name) {
    const auto node = state().NominationToWrite(IdOf(name));
    if (!node) return;
    const std::string uid = "uid-" + name;
    if (!quiet_ && node->valid() && OneIn(8)) {
      engine_.Apply(model::PreemptionRefused{.uid = uid, .code = 403, .at = now_});
      return WriteNomination(name);
    }
    pods_.at(name).pod.nominated = node->valid() ? state().NameOf(*node) : "";
    Tell(name);
    engine_.Apply(model::NominationStands{.uid = uid});
  }
  // At the end extenders permit whatever they are asked about.
  [[nodiscard]] model::ExternalVerdict DrawAnswer(const model::ExternalQuery& query) const {
    model::ExternalVerdict answer{.uid = std::string(state().UidOf(query.pod_uid)),
                                  .query = query.query,
                                  .about_victims = !query.victims.empty(),
                                  .at = now_};
    if (!quiet_ && OneIn(8)) {
      answer.end = model::ExternalVerdict::End::kFailed;
      return answer;
    }
    for (const model::NodeId node : query.nodes)
      answer.nodes.push_back(
          {.node = state().nodes().name(node), .permitted = quiet_ || !OneIn(3)});
    for (const model::NodeVictims& proposed : query.victims) {
      if (!quiet_ && OneIn(4)) continue;
      model::ExternalVerdict::Victims permitted{.node = proposed.node};
      for (const model::OwnerId victim : proposed.pods)
        permitted.uids.emplace_back(state().UidOf(victim));
      answer.victims.push_back(std::move(permitted));
    }
    return answer;
  }
  // Whether it is evicted, and its deletion did not begin.
  [[nodiscard]] bool IsToBeDeleted(const std::string& name) const {
    return state().IsToLeave(IdOf(name)) && StageOf(RowOf(name)) == model::PodStage::kBound;
  }
  // Who is to leave is marked first, then deleted.
  void EvictSome() {
    for (auto& [name, object] : pods_) {
      if (!IsToBeDeleted(name) || state().GoesAfterOthers(RowOf(name).uid) || OneIn(3)) continue;
      // Whoever preempts says first to which node it is to go.
      const PodId preemptor = state().pods().FindUid(RowOf(name).evicted_for);
      if (preemptor.valid() && state().pods().at(preemptor).promised.valid()) continue;
      if (!std::exchange(object.pod.marked, true)) {
        Tell(name);
        continue;
      }
      Delete(name, Draw(0, 30));
      if (std::exchange(one_stays_, false)) stuck_ = name;
    }
  }
  void RemoveSome() {
    std::erase_if(pods_, [&](const auto& known) {
      const bool gone = known.second.pod.terminating && known.first != stuck_ && OneIn(4);
      if (gone) engine_.Apply(model::PodRemove{.uid = "uid-" + known.first});
      return gone;
    });
  }

  // ---- The end ----

  [[nodiscard]] bool IsAnyoneLeaving() const {
    return std::ranges::any_of(pods_, [&](const auto& known) {
      return IsToBeDeleted(known.first) || (known.second.pod.terminating && known.first != stuck_);
    });
  }
  // Nobody waits who fits, or for what will not come.
  void CheckAtRest() const {
    RC_ASSERT(engine_.awaiting_verdicts() == 0u);
    for (const auto& [name, object] : pods_) {
      if (StageOf(RowOf(name)) != model::PodStage::kPending) continue;
      const Explanation why = engine_.Explain(IdOf(name));
      // But one that is to be beside others may wait behind a more important one of its class, for
      // which these would have to go, too.
      const auto beside = [](const auto& term) {
        return term.kind == model::AffinityKind::kRequired;
      };
      RC_ASSERT(!why.would_fit || std::ranges::any_of(object.pod.affinity, beside));
      // But one whose group is short keeps what others nominated it to, and so does who was not
      // tried since of a node that is not there.
      const model::NodeId node = state().FindNode(object.pod.nominated);
      const bool nominated = node.valid() && state().nodes().present(node);
      RC_ASSERT((!why.promised && !nominated) || !object.pod.group.empty());
    }
  }

  Engine engine_;
  const bool looks_beyond_;  // Where pods fit hangs on others, on ports and on volumes.
  const bool has_budgets_;
  const bool mixes_priorities_;  // In gangs.
  std::vector<TestPod> kinds_;
  Instant now_ = Instant::FromSeconds(1000);
  std::map<std::string, TestNode> nodes_;
  std::map<std::string, Object> pods_;
  int pods_made_ = 0;
  bool quiet_ = false;
  bool one_stays_ = false;  // When quiet: the next that is deleted never goes.
  std::string stuck_;       // It never goes, if it is deleted.
  std::map<std::string, int> evicting_decisions_;  // When quiet: by pod.
};

void PlayHistory(bool compat) {
  World world(compat);
  for (int i = 0; i < 120; ++i) {
    world.Change();
    if (OneIn(3)) world.RunCycle();
  }
  world.ComeToRest();
}

RC_GTEST_PROP(PreemptHistories, ComeToRest, ()) { PlayHistory(/*compat=*/false); }

RC_GTEST_PROP(PreemptHistories, ComeToRestAsUpstream, ()) { PlayHistory(/*compat=*/true); }

}  // namespace
}  // namespace berth::cycle
