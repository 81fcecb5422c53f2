#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/json.h"
#include "api/object.h"
#include "base/time.h"
#include "codec/decode.h"
#include "codec/json.h"
#include "cycle/engine.h"
#include "cycle/why.h"
#include "kueue.h"
#include "model/state.h"
#include "place/affinity.h"
#include "place/evaluate.h"
#include "place/formulas.h"
#include "place/preempt.h"
#include "place/spread.h"
#include "reading.h"
#include "translate/default_spread.h"
#include "translate/facts.h"
#include "translate/text.h"
#include "translate/volume_facts.h"
#include "volcano.h"

// Goal: berth gives the answers of the genuine kube-scheduler plugins. Method: each state of the
// vectors goes the way of production, from JSON through decoding and translation into the model;
// every expectation about a plugin that is built here is compared, on the plain path, on the column
// path and with a whole cycle of the engine. What is left out is named in kLeftOut, and counted with
// its reason; a state or a pod that is neither compared nor left out by name is a difference, and
// so is a folder that holds other files or counts than its index.json tells of.
namespace berth {
namespace {

constexpr int kSkipped = 77;  // As ctest knows it.
constexpr int kFailuresShownMax = 20;

// Whose verdicts are given here; and no plugin's.
const std::set<std::string_view> kPlugins = {"",
                                             "NodeUnschedulable",
                                             "NodeName",
                                             "TaintToleration",
                                             "NodeAffinity",
                                             "NodePorts",
                                             "NodeResourcesFit",
                                             "PodTopologySpread",
                                             "InterPodAffinity",
                                             "NodeDeclaredFeatures",
                                             "VolumeRestrictions",
                                             "NodeVolumeLimits",
                                             "VolumeBinding",
                                             "VolumeZone"};

// Plugins whose verdicts and scores are not compared, and why.
constexpr std::pair<std::string_view, std::string_view> kLeftOut[] = {
    {"DynamicResources", "claims of devices are not built"}};

// Empty for what must be compared.
std::string_view WhyLeftOut(std::string_view plugin) {
  const auto* const found =
      std::ranges::find(kLeftOut, plugin, [](const auto& entry) { return entry.first; });
  return found == std::end(kLeftOut) ? std::string_view() : found->second;
}

// Lists of objects that volumes hang on, and what their resources are called.
constexpr std::pair<std::string_view, std::string_view> kStorageLists[] = {
    {"persistentVolumeClaims", "persistentvolumeclaims"},
    {"persistentVolumes", "persistentvolumes"},
    {"storageClasses", "storageclasses"},
    {"csiDrivers", "csidrivers"},
    {"csiNodes", "csinodes"},
    {"csiStorageCapacities", "csistoragecapacities"},
    {"volumeAttachments", "volumeattachments"}};

struct Tally {
  int64_t passed = 0;
  int64_t failed = 0;
};

// Of a file, or of all.
struct Counts {
  int64_t states = 0;
  int64_t pods = 0;
};

// A pod that has a node would never reach the scheduler: it stands for the NodeName filter.
void Pin(model::PodUpsert& facts, model::Vocabulary& vocabulary) {
  if (facts.node.empty()) return;
  facts.pin = {.kind = model::PinKind::kNodeName, .node = vocabulary.names.Intern(facts.node)};
  facts.node.clear();
}

void SpreadByDefault(const api::Pod& pod, const translate::DefaultSpread& rules,
                     model::Vocabulary& vocabulary, model::PodUpsert& facts) {
  if (!pod.spec->spread_constraints.empty()) return;
  if (const auto selector = rules.SelectorFor(pod))
    translate::SpreadByDefault(pod, *selector, vocabulary, facts);
}

class Report {
 public:
  void Case(size_t pods) {
    ++cases_[family];
    ++counts_.states;
    counts_.pods += static_cast<int64_t>(pods);
  }
  void ComparedPod() { ++compared_; }
  void LeftOutPod(std::string_view reason) {
    ++left_out_;
    ++reasons_[fmt::format("pods: {}", reason)];
  }
  // Of a pod of which others are compared.
  void LeftOutDecision(std::string_view reason) {
    ++reasons_[fmt::format("decisions: {}", reason)];
  }

  template <typename T>
  void Check(std::string_view kind, const T& got, const T& want) {
    Tally& tally = tallies_[family][std::string(kind)];
    if (got == want) {
      ++tally.passed;
      return;
    }
    ++tally.failed;
    if (++shown_ > kFailuresShownMax) return;
    fmt::print("{}: {}\n  want {}\n  got  {}\n", where, kind, Text(want), Text(got));
  }
  void Broken(std::string_view what) { Check<std::string>("reads", std::string(what), "no error"); }

  [[nodiscard]] const Counts& counts() const { return counts_; }

  // The program's status.
  [[nodiscard]] int Finish() const {
    int64_t failed = 0;
    for (const auto& [name, kinds] : tallies_) {
      const auto count = cases_.find(name);
      fmt::print("{}: {} states\n", name.empty() ? "no family" : name,
                 count == cases_.end() ? 0 : count->second);
      for (const auto& [kind, tally] : kinds) {
        fmt::print("  {:<28} {:>7} of {:>7}{}\n", kind, tally.passed, tally.passed + tally.failed,
                   tally.failed == 0 ? "" : "  FAILED");
        failed += tally.failed;
      }
    }
    for (const auto& [what, count] : reasons_) fmt::print("left out: {} {}\n", count, what);
    fmt::print("{} states with {} pods: {} compared, {} left out\n", counts_.states, counts_.pods,
               compared_, left_out_);
    const int64_t lost = counts_.pods - compared_ - left_out_;
    if (lost != 0) fmt::print("{} pods were neither compared nor left out by name\n", lost);
    if (compared_ == 0) fmt::print("no pod was compared\n");
    const bool good = failed == 0 && lost == 0 && compared_ > 0;
    fmt::print("{}\n", good ? "all as expected" : fmt::format("{} differences", failed));
    return good ? 0 : 1;
  }

  std::string family;
  std::string where;

 private:
  static std::string Text(const std::string& s) { return s; }
  static std::string Text(int64_t n) { return fmt::format("{}", n); }
  static std::string Text(const std::set<std::string>& s) {
    return fmt::format("[{}]", fmt::join(s, ", "));
  }

  std::map<std::string, int64_t> cases_;
  Counts counts_;
  int64_t compared_ = 0;
  int64_t left_out_ = 0;
  std::map<std::string, int64_t> reasons_;
  std::map<std::string, std::map<std::string, Tally>> tallies_;
  int shown_ = 0;
};

// ---- Reading -------------------------------------------------------------------------------

std::set<std::string> StringsAt(const api::JsonObject& object, std::string_view key) {
  std::set<std::string> out;
  for (const api::Json& item : ArrayAt(object, key)) out.emplace(item.as_string());
  return out;
}

std::string Joined(const api::JsonObject& object, std::string_view key) {
  std::vector<std::string> out;
  for (const api::Json& item : ArrayAt(object, key)) out.emplace_back(item.as_string());
  return fmt::format("{}", fmt::join(out, "; "));
}

// ---- One pod on one state --------------------------------------------------------------------

class PodCheck {
 public:
  PodCheck(cycle::Engine& engine, const translate::DefaultSpread& spread,
           const api::JsonObject& expect, Report& report)
      : engine_(engine),
        spread_(spread),
        state_(&engine.state()),
        evaluator_(engine.evaluator()),
        expect_(expect),
        report_(report) {}

  void Run(const api::Pod& pod) {
    if (const std::string plugin = ForeignPlugin(); !plugin.empty()) {
      const std::string_view why = WhyLeftOut(plugin);
      if (!why.empty()) return report_.LeftOutPod(why);
      return report_.Broken(fmt::format("a verdict of {}, which is not known here", plugin));
    }
    auto facts = translate::PodFacts(pod, engine_.vocabulary());
    if (!facts) return report_.Broken(facts.error().message);
    SpreadByDefault(pod, spread_, engine_.vocabulary(), *facts);
    Pin(*facts, engine_.vocabulary());
    facts_ = *facts;
    with_pod_ = engine_;
    with_pod_.Apply(facts_);
    // Pods of domains are counted once a pod asks, and others' terms select it once it is there.
    class_ = with_pod_.state().pods().at(with_pod_.state().FindPod(facts_.uid)).class_id;
    if (model::LooksBeyond(with_pod_.state().vocabulary().classes.at(class_)))
      state_ = &with_pod_.state();
    Filters();
    FastPath();
    Scores();
    Decision();
    report_.ComparedPod();
  }

 private:
  // The first plugin with a verdict that is not built here; empty for none.
  [[nodiscard]] std::string ForeignPlugin() const {
    const auto foreign = [](const api::JsonObject& verdict) {
      const std::string plugin = StringAt(verdict, "plugin");
      return kPlugins.contains(plugin) ? std::string() : plugin;
    };
    if (std::string plugin = foreign(expect_.at("preFilter").as_object()); !plugin.empty()) {
      return plugin;
    }
    const api::Json* filter = expect_.if_contains("filter");
    if (filter == nullptr) return {};
    for (const auto& [node, verdict] : filter->as_object()) {
      if (std::string plugin = foreign(verdict.as_object()); !plugin.empty()) return plugin;
    }
    return {};
  }

  [[nodiscard]] std::vector<model::NodeId> Nodes() const {
    std::vector<model::NodeId> nodes;
    for (uint32_t row = 0; row < state_->nodes().size(); ++row) {
      if (state_->nodes().used(model::NodeId{row}) && state_->nodes().present(model::NodeId{row})) {
        nodes.push_back(model::NodeId{row});
      }
    }
    return nodes;
  }

  [[nodiscard]] model::Verdict Verdict(model::NodeId n) const {
    const model::PodId pod = state_->FindPod(facts_.uid);
    const model::Viewer viewer{.owner = pod.valid() ? state_->OwnerOf(pod) : model::OwnerId{},
                               .priority = facts_.priority};
    return evaluator_.Filter(*state_, class_, n, &viewer, facts_.pin);
  }

  [[nodiscard]] std::string VerdictText(const model::Verdict& verdict) const {
    if (verdict.fits()) return "ok";
    if (verdict.kind == model::ReasonKind::kNotNamed) return "absent";
    return fmt::format("{} {}: {}", translate::PluginOf(verdict.kind),
                       verdict.unresolvable ? "UnschedulableAndUnresolvable" : "Unschedulable",
                       fmt::join(translate::VerdictTexts(*state_, class_, verdict), "; "));
  }

  static std::string ExpectedText(const api::JsonObject& verdict) {
    if (verdict.contains("ok")) return "ok";
    if (verdict.contains("absent")) return "absent";
    return fmt::format("{} {}: {}", StringAt(verdict, "plugin"), StringAt(verdict, "code"),
                       Joined(verdict, "reasons"));
  }

  void Filters() {
    std::set<std::string> feasible;
    const api::Json* filter = expect_.if_contains("filter");
    const api::JsonObject& pre_filter = expect_.at("preFilter").as_object();
    for (const model::NodeId n : Nodes()) {
      const model::Verdict verdict = Verdict(n);
      const std::string name(state_->NameOf(state_->nodes().name(n)));
      if (verdict.fits()) feasible.insert(name);
      if (filter == nullptr) {
        report_.Check("prefilter verdicts", VerdictText(verdict), ExpectedText(pre_filter));
      } else {
        report_.Check("filter verdicts", VerdictText(verdict),
                      ExpectedText(filter->as_object().at(name).as_object()));
      }
    }
    report_.Check("feasible sets", feasible, StringsAt(expect_, "feasible"));
  }

  // The column path and materialised selectors say what the plain path says.
  void FastPath() {
    place::Evaluation all;
    evaluator_.EvaluateAll(with_pod_.state(), class_, all);
    for (const model::NodeId n : Nodes()) {
      const model::Verdict plain = evaluator_.FilterAlone(*state_, class_, n, nullptr);
      report_.Check("columns agree: filters", std::string(translate::ToString(all.kinds[n.value])),
                    std::string(translate::ToString(plain.kind)));
      if (!plain.fits()) continue;
      const model::NodeScore score = evaluator_.Score(*state_, class_, n);
      report_.Check("columns agree: scores", ScoreText(all.scores[n.value]), ScoreText(score));
    }
  }

  static std::string ScoreText(const model::NodeScore& s) {
    return fmt::format("{} {} {}", s.local, s.taints_raw, s.affinity_raw);
  }

  void Scores() {
    const api::Json* scores = expect_.if_contains("scores");
    if (scores == nullptr) return;
    place::Extremes extremes;
    std::map<std::string, model::NodeId> feasible;
    std::vector<model::NodeId> fitting;
    for (const model::NodeId n : Nodes()) {
      if (!Verdict(n).fits()) continue;
      fitting.push_back(n);
      feasible.emplace(state_->NameOf(state_->nodes().name(n)), n);
      const model::NodeScore score = evaluator_.Score(*state_, class_, n);
      extremes.taints_max = std::max(extremes.taints_max, score.taints_raw);
      extremes.affinity_max = std::max(extremes.affinity_max, score.affinity_raw);
    }
    std::vector<int32_t> spread;
    place::ScoreSpread(with_pod_.state(), class_, fitting, {}, spread);
    std::vector<int32_t> affinity;
    place::ScoreAffinity(with_pod_.state(), class_, fitting, affinity);
    for (const auto& [name, expected] : scores->as_object()) {
      const auto found = feasible.find(std::string(name));
      if (found == feasible.end()) continue;  // Reported with the feasible set.
      const model::NodeId n = found->second;
      const model::NodeScore score = evaluator_.Score(*state_, class_, n);
      const place::SpreadParts parts = evaluator_.Parts(*state_, class_, n);
      const api::JsonObject& by_plugin = expected.as_object();
      One(by_plugin, "ImageLocality", {parts.images, parts.images});
      One(by_plugin, "NodeResourcesFit", {parts.fit, parts.fit});
      if (One(by_plugin, "NodeResourcesBalancedAllocation", {parts.balanced, parts.balanced})) {
        report_.Check<int64_t>("BalancedAllocation is skipped", parts.balanced_counts ? 0 : 1, 0);
      } else {
        report_.Check<int64_t>("BalancedAllocation is skipped", parts.balanced_counts ? 0 : 1, 1);
      }
      One(by_plugin, "TaintToleration",
          {score.taints_raw, place::NormalTaints(score.taints_raw, extremes.taints_max)});
      One(by_plugin, "NodeAffinity",
          {score.affinity_raw, place::NormalAffinity(score.affinity_raw, extremes.affinity_max)});
      const model::ScoreWeights& weights = state_->RulesOf(class_).weights;
      int64_t total = evaluator_.Total(weights, score, extremes);
      const auto place = static_cast<size_t>(std::ranges::find(fitting, n) - fitting.begin());
      const api::Json* affinity_wanted = by_plugin.if_contains("InterPodAffinity");
      report_.Check<int64_t>(
          "InterPodAffinity normal", affinity.empty() ? 0 : affinity[place],
          affinity_wanted == nullptr ? 0 : affinity_wanted->as_array()[1].as_int64());
      if (!affinity.empty()) total += weights.pod_affinity * affinity[place];
      if (!spread.empty()) {
        total += weights.spread * spread[place];
        report_.Check("PodTopologySpread normal", int64_t{spread[place]},
                      by_plugin.at("PodTopologySpread").as_array()[1].as_int64());
      }
      CheckTotal(by_plugin, total);
    }
  }

  struct RawAndNormal {
    int64_t raw = 0;
    int64_t normal = 0;
  };
  bool One(const api::JsonObject& by_plugin, std::string_view plugin, RawAndNormal got) {
    const api::Json* expected = by_plugin.if_contains(plugin);
    if (expected == nullptr) return false;
    const api::JsonArray& numbers = expected->as_array();
    report_.Check(fmt::format("{} raw", Short(plugin)), got.raw, numbers[0].as_int64());
    report_.Check(fmt::format("{} normal", Short(plugin)), got.normal, numbers[1].as_int64());
    return true;
  }
  static std::string_view Short(std::string_view plugin) {
    return plugin == "NodeResourcesBalancedAllocation" ? "BalancedAllocation" : plugin;
  }

  // The total without the plugins that are left out.
  void CheckTotal(const api::JsonObject& by_plugin, int64_t total) {
    int64_t others = 0;
    for (const auto& [plugin, numbers] : by_plugin) {
      const std::string_view name = plugin;
      if (name == "total" || name == "ImageLocality" || name == "NodeResourcesFit" ||
          name == "TaintToleration" || name == "NodeAffinity" || name == "InterPodAffinity" ||
          name == "NodeResourcesBalancedAllocation" || name == "PodTopologySpread") {
        continue;
      }
      const int64_t score = numbers.as_array()[1].as_int64() * numbers.as_array()[2].as_int64();
      if (score == 0) continue;
      others += score;
      left_out_ = WhyLeftOut(name);
      if (left_out_.empty())
        report_.Broken(fmt::format("a score of {}, which is not known here", name));
    }
    report_.Check("totals", total, by_plugin.at("total").as_int64() - others);
  }

  // A whole cycle: the node is one of the best, or the message is upstream's.
  void Decision() {
    cycle::Engine engine = engine_;
    engine.Apply(facts_);
    const model::Plan plan = engine.Cycle(Instant{});
    const std::set<std::string> best = StringsAt(expect_, "best");
    std::string fit_error = StringAt(expect_, "fitError");
    if (!fit_error.empty()) {
      // What comes behind the nodes' reasons.
      const size_t claims = fit_error.find(" no new claims to deallocate");
      if (claims != std::string::npos) fit_error.resize(claims);
      constexpr std::string_view kNotFound = " not found";
      if (fit_error.ends_with(". not found")) fit_error.resize(fit_error.size() - kNotFound.size());
      std::string got = "bound";
      if (plan.binds.empty() && plan.refused.size() == 1) {
        got =
            translate::FailedSchedulingText(plan.refusals[plan.refused[0].refusal], engine.state());
      }
      report_.Check("messages", got, fit_error);
      return;
    }
    if (!left_out_.empty()) return report_.LeftOutDecision(left_out_);
    std::string node = "none";
    if (plan.binds.size() == 1) node = engine.state().NameOf(plan.binds[0].node_name);
    const bool good = best.contains(node);
    report_.Check("decisions", good ? std::string("one of the best") : node,
                  std::string("one of the best"));
  }

 private:
  cycle::Engine& engine_;
  const translate::DefaultSpread& spread_;
  const model::State* state_;  // With the pod, where it has to be told of it.
  const place::Evaluator& evaluator_;
  const api::JsonObject& expect_;
  Report& report_;
  model::PodUpsert facts_;
  model::ClassId class_;
  cycle::Engine with_pod_;
  std::string_view left_out_;  // Why another node may be the best.
};

// ---- Preemption ------------------------------------------------------------------------------

// Whom a pod may evict, by the search alone; where no pod is being deleted in a whole cycle of the
// engine, too: else its decision may be another by intent (docs/DEVIATIONS.md). That one who waits
// for victims on its nominated node evicts nobody is asked of a whole cycle alone.
class PreemptionCheck {
 public:
  PreemptionCheck(cycle::Engine engine, bool some_terminate, const api::JsonObject& expect,
                  Report& report)
      : engine_(std::move(engine)),
        some_terminate_(some_terminate),
        expect_(expect),
        report_(report) {}

  void Run(const api::Pod& pod) {
    const api::JsonObject& wanted = expect_.at("preemption").as_object();
    auto facts = translate::PodFacts(pod, engine_.vocabulary());
    if (!facts) return report_.Broken(facts.error().message);
    Pin(*facts, engine_.vocabulary());
    engine_.Apply(*facts);
    state_ = engine_.state();
    state_.SortNames();
    pod_ = state_.FindPod(facts->uid);
    // Who is promised the room of who leaves is berth's own rule.
    if (!some_terminate_) Decision(wanted);
    const bool eligible = wanted.at("eligible").as_bool();
    if (!eligible && facts->preempts) return Decision(wanted);
    const place::Preemption got = place::FindPreemption(state_, evaluator_, pod_, scratch_, kAll);
    if (eligible) Nodes(wanted);
    if (!ArrayAt(wanted, "best").empty()) {
      const std::string node = got.node.valid() ? NodeName(got.node) : "none";
      const bool good = StringsAt(wanted, "best").contains(node);
      report_.Check("preemption: nodes chosen", good ? std::string("one of the best") : node,
                    std::string("one of the best"));
      return;
    }
    model::Refusal refusal = cycle::WhyNot(state_, evaluator_, pod_).refusal;
    refusal.preemption = got.refusal;
    report_.Check("whole messages", translate::FailedSchedulingText(refusal, state_),
                  StringAt(expect_, "fitError"));
  }

 private:
  static constexpr place::Evictions kAll = place::Evictions::kOfWhoLeavesToo;

  // Who is evicted, or why nobody is.
  void Decision(const api::JsonObject& wanted) {
    const model::Plan plan = engine_.Cycle(Instant{});
    std::string got = "nothing";
    if (plan.preemptions.size() == 1) {
      got = engine_.state().NameOf(plan.preemptions[0].node_name);
      if (StringsAt(wanted, "best").contains(got)) got = "one of the best";
    } else if (plan.refused.size() == 1) {
      got =
          translate::FailedSchedulingText(plan.refusals[plan.refused[0].refusal], engine_.state());
    }
    report_.Check("preemption: decisions", got,
                  ArrayAt(wanted, "best").empty() ? StringAt(expect_, "fitError")
                                                  : std::string("one of the best"));
  }

  [[nodiscard]] std::string NodeName(model::NodeId n) const {
    return std::string(state_.NameOf(state_.nodes().name(n)));
  }

  // What every node answers, as upstream's lists say it.
  void Nodes(const api::JsonObject& wanted) {
    const std::set<std::string> potential = StringsAt(wanted, "potentialNodes");
    for (uint32_t row = 0; row < state_.nodes().size(); ++row) {
      const std::string name = NodeName(model::NodeId{row});
      const place::NodePreemption got =
          place::FindPreemptionOn(state_, evaluator_, pod_, {model::NodeId{row}, kAll}, scratch_);
      report_.Check("preemption: answers of nodes", Text(got),
                    potential.contains(name) ? Wanted(wanted, name) : "not helpful");
    }
  }

  [[nodiscard]] std::string Text(const place::NodePreemption& got) const {
    std::vector<std::string_view> victims;
    switch (got.answer) {
      case place::PreemptionAnswer::kNotHelpful:
        return "not helpful";
      case place::PreemptionAnswer::kNoVictims:
        return "No preemption victims found for incoming pod";
      case place::PreemptionAnswer::kRefused:
        return fmt::format(
            "{}",
            fmt::join(translate::VerdictTexts(state_, state_.pods().at(pod_).class_id, got.verdict),
                      "; "));
      case place::PreemptionAnswer::kHelps:
        break;
    }
    for (const model::PodId victim : got.preemption.victims)
      victims.push_back(state_.KeyOf(state_.pods().at(victim).key));
    return fmt::format("evicts {}, {} beyond budgets", fmt::join(victims, " "),
                       got.preemption.pdb_violations);
  }

  static std::string Wanted(const api::JsonObject& wanted, const std::string& node) {
    if (const api::Json* candidates = wanted.if_contains("candidates")) {
      if (const api::Json* candidate = candidates->as_object().if_contains(node)) {
        std::string victims = Joined(candidate->as_object(), "victims");
        std::erase(victims, ';');
        return fmt::format("evicts {}, {} beyond budgets", victims,
                           candidate->at("numPDBViolations").as_int64());
      }
    }
    return Joined(wanted.at("notCandidates").as_object().at(node).as_object(), "reasons");
  }

  cycle::Engine engine_;
  const bool some_terminate_;
  model::State state_{{}};  // As the engine decides on it.
  const place::Evaluator evaluator_;
  const api::JsonObject& expect_;
  Report& report_;
  place::PreemptionScratch scratch_;
  model::PodId pod_;
};

// ---- Cases and files ---------------------------------------------------------------------------

bool BuildPod(const api::Json& json, cycle::Engine& engine, Report& report) {
  auto pod = codec::DecodePod(codec::PrintJson(json));
  if (!pod) return report.Broken(pod.error().message), false;
  auto facts = translate::PodFacts(*pod, engine.vocabulary());
  if (!facts) return report.Broken(facts.error().message), false;
  // Pods that hold a promise stay where they are while another is placed.
  facts->ours = facts->nominated.empty();
  engine.Apply(*facts);
  return true;
}

// The state of a case; false when an object of it can't be read, which is reported.
bool Build(const api::JsonObject& objects, cycle::Engine& engine, Report& report) {
  codec::Decoder decoder;
  for (const api::Json& json : ArrayAt(objects, "nodes")) {
    const auto node = decoder.Node(codec::PrintJson(json));
    if (!node) return report.Broken(node.error().message), false;
    engine.Apply(translate::NodeFacts(*node, engine.vocabulary()));
  }
  for (const api::Json& json : ArrayAt(objects, "namespaces")) {
    const auto read = decoder.Namespace(codec::PrintJson(json));
    if (!read) return report.Broken(read.error().message), false;
    engine.Apply(model::NamespaceUpsert{.name = read->meta.name, .labels = read->meta.labels});
  }
  for (const char* list : {"pods", "nominatedPods"}) {
    for (const api::Json& json : ArrayAt(objects, list)) {
      if (!BuildPod(json, engine, report)) return false;
    }
  }
  for (const auto& [list, plural] : kStorageLists) {
    for (const api::Json& json : ArrayAt(objects, list)) {
      const auto fact = translate::StorageFactOf(plural, json, engine.vocabulary());
      if (fact) engine.Apply(*fact);
    }
  }
  for (const api::Json& json : ArrayAt(objects, "podDisruptionBudgets")) {
    const auto budget = decoder.PodDisruptionBudget(codec::PrintJson(json));
    if (!budget) return report.Broken(budget.error().message), false;
    engine.Apply(translate::BudgetFacts(*budget));
  }
  return true;
}

// Whom pods without constraints are spread among; false when an object can't be read.
bool ReadDefaults(const api::JsonObject& objects, translate::DefaultSpread& out, Report& report) {
  using translate::SpreadOwner;
  codec::Decoder decoder;
  for (const api::Json& json : ArrayAt(objects, "services")) {
    out.SetService(api::TextAt(json, "metadata.namespace"), api::TextAt(json, "metadata.name"),
                   api::StringMapAt(json, "spec.selector"));
  }
  const auto owners = [&](const char* list, SpreadOwner kind, auto decode) {
    return std::ranges::all_of(ArrayAt(objects, list), [&](const api::Json& json) {
      const auto read = decode(codec::PrintJson(json));
      if (!read) return report.Broken(read.error().message), false;
      out.SetOwner(kind, read->meta.namespace_name, read->meta.name, read->selector);
      return true;
    });
  };
  return owners("replicationControllers", SpreadOwner::kReplicationController,
                [&](const std::string& json) { return decoder.ReplicationController(json); }) &&
         owners("replicaSets", SpreadOwner::kReplicaSet,
                [&](const std::string& json) { return decoder.ReplicaSet(json); }) &&
         owners("statefulSets", SpreadOwner::kStatefulSet,
                [&](const std::string& json) { return decoder.StatefulSet(json); });
}

void RunCase(const api::JsonObject& test, Report& report) {
  report.family = StringAt(test, "family");
  report.where = StringAt(test, "name");
  const api::JsonArray& all_pending = ArrayAt(test, "pending");
  report.Case(all_pending.size());
  if (all_pending.empty()) return report.Broken("no pod to place");
  cycle::Engine engine({.compat = true});
  cycle::Engine evicting({.preemption = true, .compat = true});
  const api::JsonObject& objects = test.at("objects").as_object();
  if (!Build(objects, engine, report) || !Build(objects, evicting, report)) return;
  translate::DefaultSpread spread;
  if (!ReadDefaults(objects, spread, report)) return;
  const bool some_terminate =
      std::ranges::any_of(ArrayAt(objects, "pods"), [](const api::Json& pod) {
        return pod.at("metadata").as_object().contains("deletionTimestamp");
      });
  int64_t index = 0;
  for (const api::Json& pending : all_pending) {
    report.where = fmt::format("{} pod {}", StringAt(test, "name"), index++);
    const auto pod = codec::DecodePod(codec::PrintJson(pending.at("pod")));
    if (!pod) {
      report.Broken(pod.error().message);
      continue;
    }
    const api::JsonObject& expect = pending.at("expect").as_object();
    PodCheck(engine, spread, expect, report).Run(*pod);
    // None is tried for who is refused before nodes are asked.
    if (expect.contains("preemption") && expect.contains("filter"))
      PreemptionCheck(evicting, some_terminate, expect, report).Run(*pod);
  }
}

bool RunFile(const std::filesystem::path& path, Report& report) {
  std::ifstream in(path);
  std::string line;
  for (int64_t number = 1; std::getline(in, line); ++number) {
    if (line.empty()) continue;
    const auto json = codec::ParseJson(line);
    if (!json || !json->is_object()) {
      fmt::print(stderr, "{}:{}: {}\n", path.string(), number,
                 json ? "not an object" : json.error().message);
      return false;
    }
    report.where = fmt::format("{}:{}", path.string(), number);
    try {
      RunCase(json->as_object(), report);
    } catch (
        const std::exception& e) {  // A member that the format has is absent or of another type.
      report.Broken(fmt::format("the state is not of the format: {}", e.what()));
    }
  }
  return true;
}

struct FileCounts {
  Counts counts;
  int64_t bytes = 0;
};

// What the index tells otherwise: a folder that lost a file, or a file that lost lines, must not pass
// for the whole. Members that don't tell of a file are of no concern here.
std::vector<std::string> DifferencesFromIndex(const api::JsonObject& index,
                                              const std::map<std::string, FileCounts>& files) {
  std::vector<std::string> out;
  std::set<std::string> named;
  for (const auto& member : index) {
    if (!member.value().is_object()) continue;
    const api::JsonObject& entry = member.value().as_object();
    std::string name(member.key());
    if (!name.ends_with(".jsonl")) name += ".jsonl";
    const auto found = files.find(name);
    const FileCounts got = found == files.end() ? FileCounts{} : found->second;
    for (const auto& [what, count] : {std::pair{"cases", got.counts.states},
                                      {"pending", got.counts.pods},
                                      {"bytes", got.bytes}}) {
      const api::Json* told = entry.if_contains(what);
      if (told == nullptr) continue;
      named.insert(name);
      if (found != files.end() && told->as_int64() != count) {
        out.push_back(
            fmt::format("{}: {} {}, but {} in index.json", name, count, what, told->as_int64()));
      }
    }
    if (named.contains(name) && found == files.end())
      out.push_back(fmt::format("{} is in index.json, but not in the folder", name));
  }
  for (const auto& [name, unused] : files) {
    if (!named.empty() && !named.contains(name))
      out.push_back(fmt::format("{} is in the folder, but not in index.json", name));
  }
  return out;
}

// States a line, of the *.jsonl of the folder, which are some.
int RunStates(const std::filesystem::path& folder,
              const std::vector<std::filesystem::path>& paths) {
  Report report;
  std::map<std::string, FileCounts> files;
  for (const auto& path : paths) {
    const Counts before = report.counts();
    if (!RunFile(path, report)) return 2;
    files[path.filename().string()] = {
        .counts = {.states = report.counts().states - before.states,
                   .pods = report.counts().pods - before.pods},
        .bytes = static_cast<int64_t>(std::filesystem::file_size(path))};
  }
  int status = report.Finish();
  const auto index = ReadObject(folder / "index.json");
  if (!index) {
    fmt::print("no index.json: whether files or states are missing is not known\n");
    return status;
  }
  for (const std::string& difference : DifferencesFromIndex(*index, files)) {
    fmt::print("FAILED: {}\n", difference);
    status = 1;
  }
  return status;
}

// `asked_for`: a folder that the user named must be there.
int RunFolder(const std::filesystem::path& folder, bool asked_for) {
  const auto absent = [&](const std::string& what) {
    fmt::print("{}: {}{}\n", asked_for ? "error" : "SKIPPED", what,
               asked_for ? "" : ": vectors are not part of the repository (docs/VECTORS.md)");
    return asked_for ? 2 : kSkipped;
  };
  std::error_code error;
  if (!std::filesystem::is_directory(folder, error)) {
    return absent(fmt::format("there is no folder {} of vectors", folder.string()));
  }
  if (std::filesystem::exists(folder / "index.json", error) && !ReadObject(folder / "index.json")) {
    fmt::print("error: {} holds no object\n", (folder / "index.json").string());
    return 2;
  }
  if (HoldsKueueVectors(folder)) return RunKueueVectors(folder);
  if (HoldsVolcanoVectors(folder)) return RunVolcanoVectors(folder);
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".jsonl") files.push_back(entry.path());
  }
  if (files.empty()) return absent(fmt::format("no *.jsonl in {}", folder.string()));
  std::ranges::sort(files);
  return RunStates(folder, files);
}

int Run(const std::filesystem::path& folder, bool asked_for) {
  try {
    return RunFolder(folder, asked_for);
  } catch (const std::exception& e) {  // An index that is not of the format.
    fmt::print("error: {}: {}\n", folder.string(), e.what());
    return 2;
  }
}

// The folders of the three schedulers beneath one, or that one itself.
int RunBeneath(const std::filesystem::path& root, bool asked_for) {
  constexpr std::array<const char*, 3> kFolders = {"kube-scheduler", "kueue", "volcano"};
  std::error_code error;
  if (std::ranges::none_of(
          kFolders, [&](const char* of) { return std::filesystem::exists(root / of, error); })) {
    return Run(root, asked_for);
  }
  int status = kSkipped;
  for (const char* of : kFolders) {
    const int one = Run(root / of, /*asked_for=*/false);
    if (one == kSkipped) continue;
    status = status == kSkipped ? one : std::max(status, one);
  }
  return status;
}

}  // namespace
}  // namespace berth

// usage: berth_vectors [FOLDER], else $BERTH_VECTORS, else the shared folder beside the project. Each
// is a folder of vectors, or holds those of the three schedulers.
int main(int argc, char** argv) {
  const char* from_environment = std::getenv("BERTH_VECTORS");
  if (argc > 2) {
    fmt::print(stderr, "usage: berth_vectors [FOLDER]\n");
    return 2;
  }
  if (argc == 2) return berth::RunBeneath(argv[1], /*asked_for=*/true);
  if (from_environment != nullptr) return berth::RunBeneath(from_environment, /*asked_for=*/true);
  return berth::RunBeneath(BERTH_VECTORS_DEFAULT, /*asked_for=*/false);
}
