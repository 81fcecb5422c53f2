#include <fmt/format.h>
#include <gtest/gtest.h>

#include <charconv>
#include <map>
#include <sstream>
#include <string>

#include "cycle/engine.h"
#include "cycle/test_cluster.h"
#include "model/audit.h"
#include "testing/datadriven.h"

// Goal: decisions and their causes, as conversations that a reader can check by hand; the ids
// in the files' comments are of docs/REGRESSIONS.md. Method: testdata/*.txt; every
// directive ends with the audit and the watchdog, whose findings would be printed.
//
//   node NAME [uid= cpu= memory=MIB pods= gpus= model= labels=k:v,k:v taint=KEY:Effect cordoned]
//   node-gone NAME [uid=]
//   pod NAME [uid= cpu= memory= priority= created= gpu= models=a,b selector=k:v prefer=k:v:weight
//             tolerate=KEY pin= node= nominated= gated deleting marked deadline=SECONDS finished
//             foreign never group= role= port=HOST-PORT]
//   group NAME [uid= min= roles=ROLE:COUNT,.. priority= created=]
//   group-gone NAME [uid=]
//   pod-gone NAME [uid=]
//   outcome NAME done|conflict|gone|refused|unknown [uid=]
//   read NAME [uid=]
//   cycle [at=SECONDS] [times=]     without at: a second after the last
//   refused NAME                    its nomination
//   eviction-refused NAME [failed=yes]
//   cluster [preemption]            starts afresh
//   why NAME
//   free NAME
//   ended
//   wake                            when the next cycle is due
namespace berth::cycle {
namespace {

using testing::Directive;

int64_t Number(const Directive& d, const std::string& key, int64_t otherwise) {
  const std::string text = d.Value(key);
  if (text.empty()) return otherwise;
  int64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

std::vector<std::string> Split(const std::string& text, char by) {
  std::vector<std::string> parts;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, by);) parts.push_back(part);
  return parts;
}

class Session {
 public:
  explicit Session(bool preemption = false) : engine_(Engine::Options{.preemption = preemption}) {}

  std::string Handle(const Directive& d) {
    std::string out = Run(d);
    for (const std::string& line : model::Audit(engine_.state())) out += "AUDIT: " + line + "\n";
    if (d.command == "cycle" && engine_.CheckWakes(now_) != 0) out += "MISSED WAKE-UP\n";
    return out;
  }

 private:
  std::string Run(const Directive& d) {
    if (d.command == "node") return ApplyNode(d);
    if (d.command == "pod") return ApplyPod(d);
    if (d.command == "group") return ApplyGroup(d);
    if (d.command == "cycle") return Cycle(d);
    const std::string name = d.arguments.empty() ? "" : d.arguments[0];
    const std::string uid = d.Value("uid", "uid-" + name);
    if (d.command == "node-gone") {
      engine_.Apply(model::NodeRemove{.name = name, .uid = d.Value("uid")});
    } else if (d.command == "group-gone") {
      engine_.Apply(model::GroupRemove{.uid = uid});
    } else if (d.command == "pod-gone") {
      engine_.Apply(model::PodRemove{.uid = uid});
    } else if (d.command == "outcome") {
      static const std::map<std::string, model::WriteOutcome> kOutcomes = {
          {"done", model::WriteOutcome::kDone},
          {"conflict", model::WriteOutcome::kConflict},
          {"gone", model::WriteOutcome::kGone},
          {"refused", model::WriteOutcome::kRefused},
          {"unknown", model::WriteOutcome::kUnknown}};
      engine_.Apply(model::BindOutcome{
          .uid = uid, .outcome = kOutcomes.at(d.arguments[1]), .code = 403, .at = now_});
    } else if (d.command == "refused") {
      engine_.Apply(model::PreemptionRefused{.uid = uid, .code = 403, .at = now_});
    } else if (d.command == "eviction-refused") {
      engine_.Apply(model::EvictionRefused{
          .uid = uid, .code = 403, .failed = d.Value("failed") == "yes", .at = now_});
    } else if (d.command == "read") {
      engine_.Apply(model::BindRead{.uid = uid, .at = now_});
    } else if (d.command == "why") {
      return Why(uid);
    } else if (d.command == "free") {
      return Free(name);
    } else if (d.command == "ended") {
      return Ended();
    } else if (d.command == "wake") {
      const Instant at = engine_.wake_at();
      return at == Instant::Never() ? "never\n"
             : at <= now_           ? "now\n"
                                    : fmt::format("at {} s\n", at.seconds());
    } else {
      return "unknown directive " + d.command + "\n";
    }
    return "";
  }

  std::string ApplyNode(const Directive& d) {
    TestNode node{.name = d.arguments[0],
                  .uid = d.Value("uid"),
                  .cpu = Number(d, "cpu", 4000),
                  .memory = Number(d, "memory", 16000) << 20,
                  .pods = Number(d, "pods", 110),
                  .gpus = Number(d, "gpus", 0),
                  .model = d.Value("model"),
                  .unschedulable = d.Has("cordoned")};
    for (const std::string& label : Split(d.Value("labels"), ',')) {
      node.labels.emplace_back(Split(label, ':')[0], Split(label, ':')[1]);
    }
    if (const auto taint = Split(d.Value("taint"), ':'); taint.size() == 2) {
      node.taints.push_back(
          {.key = taint[0],
           .effect = taint[1] == "PreferNoSchedule" ? model::TaintEffect::kPreferNoSchedule
                     : taint[1] == "NoExecute"      ? model::TaintEffect::kNoExecute
                                                    : model::TaintEffect::kNoSchedule});
    }
    engine_.Apply(FactsOf(engine_.vocabulary(), node));
    return "";
  }

  std::string ApplyPod(const Directive& d) {
    TestPod pod{.name = d.arguments[0],
                .uid = d.Value("uid"),
                .cpu = Number(d, "cpu", 100),
                .memory = Number(d, "memory", 0) << 20,
                .priority = static_cast<int32_t>(Number(d, "priority", 0)),
                .created = Number(d, "created", 0),
                .gpu_milli = static_cast<uint32_t>(Number(d, "gpu", 0)),
                .models = Split(d.Value("models"), ','),
                .pin = d.Value("pin"),
                .node = d.Value("node"),
                .nominated = d.Value("nominated"),
                .gated = d.Has("gated"),
                .terminating = d.Has("deleting"),
                .marked = d.Has("marked"),
                .deadline = Number(d, "deadline", 0),
                .never = d.Has("never"),
                .finished = d.Has("finished"),
                .foreign = d.Has("foreign"),
                .group = d.Value("group"),
                .role = d.Value("role"),
                .host_port = static_cast<uint32_t>(Number(d, "port", 0))};
    if (const auto pair = Split(d.Value("selector"), ':'); pair.size() == 2)
      pod.selector = {{pair[0], pair[1]}};
    if (const auto term = Split(d.Value("prefer"), ':'); term.size() == 3) {
      pod.prefers = {
          {.key = term[0], .value = term[1], .weight = static_cast<uint32_t>(std::stoul(term[2]))}};
    }
    if (d.Has("tolerate") || !d.Value("tolerate").empty()) pod.tolerates = {d.Value("tolerate")};
    engine_.Apply(FactsOf(engine_.vocabulary(), pod));
    return "";
  }

  std::string ApplyGroup(const Directive& d) {
    TestGroup group{.name = d.arguments[0],
                    .uid = d.Value("uid"),
                    .min_member = static_cast<int32_t>(Number(d, "min", 1)),
                    .created = Number(d, "created", 0)};
    if (!d.Value("priority").empty())
      group.priority = static_cast<int32_t>(Number(d, "priority", 0));
    for (const std::string& role : Split(d.Value("roles"), ','))
      group.roles.emplace_back(Split(role, ':')[0], std::stoi(Split(role, ':')[1]));
    engine_.Apply(FactsOf(engine_.vocabulary(), group));
    return "";
  }

  std::string Cycle(const Directive& d) {
    std::string out;
    for (int64_t i = 0; i < Number(d, "times", 1); ++i) {
      now_ = d.Value("at").empty() ? now_ + Duration::Seconds(1)
                                   : Instant::FromSeconds(Number(d, "at", 0));
      out += Print(engine_.Cycle(now_), engine_.state());
    }
    return out.empty() ? "nothing\n" : out;
  }

  std::string Why(const std::string& uid) {
    const model::PodId pod = engine_.state().FindPod(uid);
    if (!pod.valid()) return "no such pod\n";
    const Explanation e = engine_.Explain(pod);
    std::string out(ToString(e.stage));
    if (e.node.valid()) out += fmt::format(", node {}", engine_.state().NameOf(e.node));
    if (e.decided_here)
      out += fmt::format(", chosen of {} with score {}", e.feasible_count, e.score);
    if (e.attempts > 0) out += fmt::format(", {} attempts", e.attempts);
    if (e.not_before > Instant{}) out += fmt::format(", not before {} s", e.not_before.seconds());
    if (e.refused_code != 0) out += fmt::format(", last write refused with {}", e.refused_code);
    if (e.class_waiting_count > 0)
      out += fmt::format(", {} of its kind wait", e.class_waiting_count);
    if (e.stage == model::PodStage::kPending) out += e.would_fit ? ", would fit" : ", fits nowhere";
    return out + WhyOfPromises(e) + "\n";
  }

  std::string WhyOfPromises(const Explanation& e) const {
    const model::State& state = engine_.state();
    std::string out = e.promised ? ", promised" : "";
    for (const Leaver& leaver : e.leaving) {
      out += fmt::format("\n  {} {}{}", state.KeyOf(leaver.pod),
                         leaver.overdue    ? "stays"
                         : leaver.deleting ? "leaves"
                                           : "is to leave",
                         leaver.for_it ? " for it" : "");
      if (leaver.until > Instant{}) out += fmt::format(", due at {} s", leaver.until.seconds());
    }
    if (e.lost.why != model::ReasonKind::kNone) {
      out += fmt::format("\n  lost {}: {}", state.NameOf(e.lost.node),
                         Print(model::Reason{.kind = e.lost.why}, state));
    }
    if (e.held_by.nodes_count > 0)
      out += fmt::format("\n  kept out of {} nodes", e.held_by.nodes_count);
    for (const HeldBy::Promise& promise : e.held_by.promises) {
      out += fmt::format("\n    {} is promised to {}", state.NameOf(promise.node),
                         state.KeyOf(promise.pod));
      if (promise.until > Instant{}) out += fmt::format(" by {} s", promise.until.seconds());
    }
    if (!e.may_evict) return out;
    out += fmt::format("\n  may evict on {} nodes", e.may_evict->nodes_count);
    for (const auto& [priority, pods] : e.may_evict->pods_by_priority)
      out += fmt::format(", {} of priority {}", pods, priority);
    for (const model::ResourceAmount& amount : e.may_evict->amounts) {
      out +=
          fmt::format(", {} {}", amount.amount, state.vocabulary().resources.Name(amount.resource));
    }
    return out;
  }

  std::string Free(const std::string& name) {
    const model::NodeId n = engine_.state().FindNode(name);
    if (!n.valid()) return "no such node\n";
    const model::State& state = engine_.state();
    const model::AccountId a = model::AccountId::OfNode(n);
    const model::Viewer anyone{.priority = INT32_MIN};
    std::string out = fmt::format(
        "cpu {} free, {} now, {} future", state.ledger().nodes().free(model::kCpu, n.value),
        state.ledger().Now(a, model::kCpu, anyone, state.vocabulary().bundles),
        state.ledger().Future(a, model::kCpu, anyone, state.vocabulary().bundles));
    for (uint32_t device = 0; device < state.nodes().devices_count(n); ++device) {
      out += fmt::format("{} {}", device == 0 ? "; devices" : "",
                         state.ledger().nodes().device_free(n.value, device));
    }
    return out + (state.nodes().present(n) ? "\n" : " (the node is gone)\n");
  }

  std::string Ended() {
    static constexpr const char* kNames[model::kCausesCount] = {
        "decided",        "observed",           "owner deleted",
        "owner finished", "owner terminating",  "owner replaced",
        "node replaced",  "nomination cleared", "adopted",
        "write gone",     "write refused",      "read unbound",
        "revoked"};
    std::string out;
    for (size_t i = 0; i < model::kCausesCount; ++i) {
      const uint64_t count = engine_.state().ledger().ended_by_cause()[i];
      if (count > 0) out += fmt::format("{} {}\n", count, kNames[i]);
    }
    return out;
  }

  Engine engine_;
  Instant now_ = Instant::FromSeconds(0);
};

class GoldenTest : public ::testing::TestWithParam<std::string> {};

TEST_P(GoldenTest, DecidesAndSaysWhy) {
  Session session;
  testing::RunGoldenFile(GetParam(), [&](const Directive& d) {
    if (d.command == "cluster") {
      session = Session(d.Has("preemption"));
      return std::string();
    }
    return session.Handle(d);
  });
}

INSTANTIATE_TEST_SUITE_P(Files, GoldenTest,
                         ::testing::ValuesIn(testing::GoldenFiles(BERTH_TESTDATA)),
                         [](const auto& file) {
                           const size_t slash = file.param.rfind('/');
                           return file.param.substr(slash + 1, file.param.size() - slash - 5);
                         });

}  // namespace
}  // namespace berth::cycle
