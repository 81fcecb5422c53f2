#include "volcano.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "api/json.h"
#include "codec/decode.h"
#include "codec/json.h"
#include "cycle/engine.h"
#include "reading.h"
#include "translate/facts.h"

// Goal: gangs get the places that Volcano gives them. Method: the objects of a session become
// facts, the engine runs until nothing is left to do, and what it binds is compared. Sessions that
// need what is not built are counted with that.
namespace berth {
namespace {

using api::Json;
using api::JsonArray;
using api::JsonObject;

constexpr int kFailuresShownMax = 20;

// What is not built keeps a case from being run.
struct NotBuilt {
  std::string lacks;
};

// What of Volcano's configuration a cycle of the engine is: members of a gang together, all filters,
// the default scores, priority.
void CheckConfiguration(const JsonObject& test) {
  static const std::set<std::string, std::less<>> kPlugins = {
      "gang",        "predicates", "nodeorder",  "priority",
      "conformance", "drf",        "proportion", "capacity"};
  const JsonObject& conf = ObjectAt(test, "conf");
  const JsonArray& actions = ArrayAt(conf, "actions");
  if (actions.size() != 1 || (actions[0] != "allocate" && actions[0] != "preempt") ||
      test.contains("sessions")) {
    throw NotBuilt{"actions other than one allocate or one preempt"};
  }
  bool gang = false;
  bool shares_of_jobs = false;
  bool shares_of_queues = false;
  for (const Json& tier : ArrayAt(conf, "tiers")) {
    for (const Json& json : tier.as_array()) {
      const JsonObject& plugin = json.as_object();
      const std::string name = StringAt(plugin, "name");
      if (!kPlugins.contains(name)) throw NotBuilt{"plugin " + name};
      if (!ObjectAt(plugin, "arguments").empty()) throw NotBuilt{"arguments of plugins"};
      gang = gang || name == "gang";
      shares_of_jobs = shares_of_jobs || name == "drf";
      shares_of_queues = shares_of_queues || name == "proportion" || name == "capacity";
    }
  }
  if (!gang) throw NotBuilt{"groups that are no gangs"};
  const JsonObject& input = ObjectAt(test, "input");
  if (shares_of_jobs && ArrayAt(input, "podGroups").size() > 1) throw NotBuilt{"shares of jobs"};
  if (shares_of_queues && ArrayAt(input, "queues").size() > 1) throw NotBuilt{"shares of queues"};
  for (const auto& [option, value] : ObjectAt(test, "options")) {
    if (option != "percentageOfNodesToFind") throw NotBuilt{fmt::format("option {}", option)};
  }
}

void CheckObjects(const JsonObject& input) {
  static const std::set<std::string, std::less<>> kKinds = {"podGroups", "pods", "nodes", "queues",
                                                            "priorityClasses"};
  for (const auto& [kind, objects] : input) {
    const bool none = (objects.is_array() && objects.as_array().empty()) ||
                      (objects.is_object() && objects.as_object().empty());
    if (!none && !kKinds.contains(std::string_view(kind)))
      throw NotBuilt{fmt::format("{}", std::string_view(kind))};
  }
  std::set<std::string> queues;
  for (const Json& queue : ArrayAt(input, "queues")) {
    queues.insert(StringAt(ObjectAt(queue.as_object(), "metadata"), "name"));
    for (const auto& [field, value] : ObjectAt(queue.as_object(), "spec")) {
      if (field != "weight") throw NotBuilt{fmt::format("{} of queues", std::string_view(field))};
    }
  }
  for (const Json& pod : ArrayAt(input, "pods")) {
    const JsonObject& meta = ObjectAt(pod.as_object(), "metadata");
    if (StringAt(ObjectAt(meta, "labels"), "volcano.sh/preemptable") == "false")
      throw NotBuilt{"pods that are not to be preempted"};
  }
  for (const Json& group : ArrayAt(input, "podGroups")) {
    if (!queues.contains(StringAt(ObjectAt(group.as_object(), "spec"), "queue")))
      throw NotBuilt{"queues that are not there"};
  }
}

template <typename T>
T Unwrap(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().message);
  return *std::move(result);
}

// What nobody gave a priority has that of its group: the controller of Volcano's jobs, and
// admission, write it into pods, where upstream's tests leave it to the group.
std::map<std::string, int32_t> PrioritiesOf(const JsonObject& input) {
  std::map<std::string, int32_t> classes;
  for (const Json& json : ArrayAt(input, "priorityClasses")) {
    const JsonObject& of = json.as_object();
    classes.emplace(StringAt(ObjectAt(of, "metadata"), "name"),
                    static_cast<int32_t>(of.at("value").as_int64()));
  }
  std::map<std::string, int32_t> priorities;
  for (const Json& json : ArrayAt(input, "podGroups")) {
    const JsonObject& meta = ObjectAt(json.as_object(), "metadata");
    const auto known =
        classes.find(StringAt(ObjectAt(json.as_object(), "spec"), "priorityClassName"));
    if (known != classes.end())
      priorities.emplace(StringAt(meta, "namespace") + "/" + StringAt(meta, "name"), known->second);
  }
  return priorities;
}

void Load(const JsonObject& input, cycle::Engine& engine) {
  codec::Decoder decoder;
  const std::map<std::string, int32_t> priorities = PrioritiesOf(input);
  for (const Json& json : ArrayAt(input, "nodes")) {
    auto node = Unwrap(decoder.Node(codec::PrintJson(json)));
    node.meta.uid = node.meta.name;
    engine.Apply(translate::NodeFacts(node, engine.vocabulary()));
  }
  for (const Json& json : ArrayAt(input, "podGroups")) {
    auto group = Unwrap(decoder.PodGroup(codec::PrintJson(json)));
    if (group.meta.uid.empty()) group.meta.uid = "group-" + group.meta.name;
    const auto of_class = priorities.find(group.meta.namespace_name + "/" + group.meta.name);
    const auto priority =
        of_class == priorities.end() ? std::nullopt : std::optional(of_class->second);
    engine.Apply(translate::GroupFacts(group, priority, engine.vocabulary()));
  }
  for (const Json& json : ArrayAt(input, "pods")) {
    const auto pod = Unwrap(decoder.Pod(codec::PrintJson(json)));
    if (!pod.spec->unsupported.empty()) throw NotBuilt{pod.spec->unsupported.front()};
    model::PodUpsert facts = Unwrap(translate::PodFacts(pod, engine.vocabulary()));
    const auto of_group = priorities.find(facts.group);
    const bool silent = !ObjectAt(json.as_object(), "spec").contains("priority");
    if (silent && of_group != priorities.end()) facts.priority = of_group->second;
    engine.Apply(facts);
  }
}

struct Decided {
  std::map<std::string, std::string> binds;
  std::set<std::string> evicted;
};

Decided Decide(cycle::Engine& engine) {
  Decided decided;
  const model::State& state = engine.state();
  const auto key_of = [&](model::PodId pod) {
    return std::string(state.KeyOf(state.pods().at(pod).key));
  };
  const Instant now = Instant::FromSeconds(1);
  for (int i = 0; i < 100 && engine.wake_at() <= now; ++i) {
    const model::Plan plan = engine.Cycle(now);
    for (const model::BindDecision& bind : plan.binds)
      decided.binds.emplace(key_of(bind.pod), state.NameOf(bind.node_name));
    for (const model::PreemptDecision& preemption : plan.preemptions) {
      for (const model::PreemptDecision::Victim& victim : preemption.victims)
        decided.evicted.insert(key_of(victim.pod));
    }
  }
  return decided;
}

std::string Print(const std::map<std::string, std::string>& binds) {
  std::string text;
  for (const auto& [pod, node] : binds) text += fmt::format(" {} -> {}", pod, node);
  return text.empty() ? " nothing" : text;
}

void RunCase(const JsonObject& test) {
  CheckConfiguration(test);
  const JsonObject& input = ObjectAt(test, "input");
  CheckObjects(input);
  const JsonObject& want = ObjectAt(test, "want");
  if (!want.contains("binds") && !want.contains("bindsNum")) throw NotBuilt{"other expectations"};
  // A session that only preempts binds nobody, where a cycle binds whom it has room for.
  const bool preempts = ArrayAt(ObjectAt(test, "conf"), "actions")[0] == "preempt";
  cycle::Engine engine({.preemption = preempts});
  Load(input, engine);
  const auto [binds, evicted] = Decide(engine);
  std::set<std::string> evicted_there;
  for (const Json& pod : ArrayAt(want, "evicted")) evicted_there.emplace(pod.as_string());
  if (evicted != evicted_there) {
    throw std::runtime_error(fmt::format("evicts {}, expected {}", fmt::join(evicted, " "),
                                         fmt::join(evicted_there, " ")));
  }
  if (preempts) return;
  if (const Json* count = want.if_contains("bindsNum"); count != nullptr) {
    if (binds.size() != static_cast<size_t>(count->as_int64()))
      throw std::runtime_error("binds" + Print(binds));
    return;
  }
  std::map<std::string, std::string> expected;
  for (const auto& [pod, node] : ObjectAt(want, "binds"))
    expected.emplace(std::string_view(pod), std::string_view(node.as_string()));
  if (binds != expected)
    throw std::runtime_error(fmt::format("binds{}, expected{}", Print(binds), Print(expected)));
}

}  // namespace

bool HoldsVolcanoVectors(const std::filesystem::path& folder) {
  const auto index = ReadObject(folder / "index.json");
  return index && StringAt(ObjectAt(*index, "source"), "project") == "volcano-sh/volcano";
}

int RunVolcanoVectors(const std::filesystem::path& folder) {
  const auto index = ReadObject(folder / "index.json");
  if (!index) return 2;
  std::map<std::string, int64_t> lacking;
  int64_t passed_count = 0;
  int64_t failed_count = 0;
  int shown = 0;
  for (const Json& json : ArrayAt(*index, "files")) {
    const JsonObject& suite = json.as_object();
    const std::string name = StringAt(suite, "file");
    if (StringAt(suite, "format") != "session") {
      lacking[StringAt(suite, "group")] += suite.at("cases").as_int64();
      continue;
    }
    const auto file = ReadObject(folder / name);
    if (!file) {
      fmt::print(stderr, "{} can't be read\n", name);
      return 2;
    }
    int64_t passed = 0;
    int64_t failed = 0;
    for (const Json& test : ArrayAt(*file, "cases")) {
      try {
        RunCase(test.as_object());
        ++passed;
      } catch (const NotBuilt& e) {
        ++lacking[e.lacks];
      } catch (const std::exception& e) {  // A mismatch, or a member that is not of the format.
        ++failed;
        if (++shown <= kFailuresShownMax)
          fmt::print("{}: {}: {}\n", name, StringAt(test.as_object(), "name"), e.what());
      }
    }
    if (passed + failed > 0)
      fmt::print("  {:<60} {:>3} passed, {:>3} failed\n", name, passed, failed);
    passed_count += passed;
    failed_count += failed;
  }
  int64_t skipped = 0;
  for (const auto& [what, count] : lacking) {
    fmt::print("{}: {} cases not built yet\n", what, count);
    skipped += count;
  }
  fmt::print("{} passed, {} failed, {} not built yet\n", passed_count, failed_count, skipped);
  return failed_count == 0 && passed_count > 0 ? 0 : 1;
}

}  // namespace berth
