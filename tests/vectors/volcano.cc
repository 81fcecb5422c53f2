#include "volcano.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <initializer_list>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "api/json.h"
#include "api/quantity.h"
#include "codec/decode.h"
#include "codec/json.h"
#include "cycle/engine.h"
#include "reading.h"
#include "translate/facts.h"
#include "translate/quota_facts.h"

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

// What of Volcano's configuration decides: plugins that are there, and what they are asked.
class Session {
 public:
  explicit Session(const JsonObject& conf) {
    for (const Json& action : ArrayAt(conf, "actions")) actions_.emplace_back(action.as_string());
    for (const Json& tier : ArrayAt(conf, "tiers")) {
      for (const Json& json : tier.as_array()) {
        const JsonObject& plugin = json.as_object();
        plugins_.insert(StringAt(plugin, "name"));
        for (const Json& flag : ArrayAt(plugin, "enabled")) flags_.emplace(flag.as_string());
      }
    }
  }
  [[nodiscard]] const std::vector<std::string>& actions() const { return actions_; }
  [[nodiscard]] bool Does(std::string_view action) const {
    return std::ranges::find(actions_, action) != actions_.end();
  }
  [[nodiscard]] bool Has(const std::string& plugin) const { return plugins_.contains(plugin); }
  // Nobody is a victim whom no plugin names as one.
  [[nodiscard]] bool preempts() const {
    return Does("preempt") && flags_.contains("enablePreemptable");
  }
  // Whether queues are held to what they may have.
  [[nodiscard]] bool bounds_queues() const { return Has("capacity") || Has("proportion"); }

 private:
  std::vector<std::string> actions_;
  std::set<std::string> plugins_;
  std::set<std::string> flags_;
};

std::string GroupOf(const JsonObject& pod) {
  const JsonObject& meta = ObjectAt(pod, "metadata");
  return StringAt(meta, "namespace") + "/" +
         StringAt(ObjectAt(meta, "annotations"), "scheduling.k8s.io/group-name");
}

bool Waits(const JsonObject& pod) { return StringAt(ObjectAt(pod, "spec"), "nodeName").empty(); }

bool AsksForSomething(const JsonObject& pod) {
  return std::ranges::any_of(ArrayAt(ObjectAt(pod, "spec"), "containers"), [](const Json& c) {
    return !ObjectAt(ObjectAt(c.as_object(), "resources"), "requests").empty();
  });
}

std::map<std::string, std::string> QueuesOfGroups(const JsonObject& input) {
  std::map<std::string, std::string> queue_of;
  for (const Json& group : ArrayAt(input, "podGroups")) {
    const JsonObject& meta = ObjectAt(group.as_object(), "metadata");
    queue_of[StringAt(meta, "namespace") + "/" + StringAt(meta, "name")] =
        StringAt(ObjectAt(group.as_object(), "spec"), "queue");
  }
  return queue_of;
}

// By queue, the groups of pods without a node: for whose turn it is shares decide.
std::map<std::string, std::set<std::string>> GroupsThatWait(const JsonObject& input) {
  std::map<std::string, std::string> queue_of = QueuesOfGroups(input);
  std::map<std::string, std::set<std::string>> waiting;
  for (const Json& pod : ArrayAt(input, "pods")) {
    const std::string group = GroupOf(pod.as_object());
    if (Waits(pod.as_object())) waiting[queue_of[group]].insert(group);
  }
  return waiting;
}

// Whether all that pods of some queue ask for is more than that may have, so that somebody may have
// to leave for quota.
bool AnyAsksForMoreThanItMay(const JsonObject& input) {
  const auto amount = [](std::string_view resource, const Json& quantity) {
    const auto parsed =
        api::ParseScaled(std::string(quantity.as_string()), resource == "cpu" ? -3 : 0);
    if (!parsed) throw std::runtime_error(parsed.error().message);
    return *parsed;
  };
  std::map<std::string, std::string> queue_of = QueuesOfGroups(input);
  std::map<std::pair<std::string, std::string>, int64_t> asked;
  for (const Json& pod : ArrayAt(input, "pods")) {
    for (const Json& container : ArrayAt(ObjectAt(pod.as_object(), "spec"), "containers")) {
      const JsonObject& resources = ObjectAt(container.as_object(), "resources");
      for (const auto& [resource, quantity] : ObjectAt(resources, "requests")) {
        asked[{queue_of[GroupOf(pod.as_object())], std::string(resource)}] +=
            amount(resource, quantity);
      }
    }
  }
  return std::ranges::any_of(ArrayAt(input, "queues"), [&](const Json& json) {
    const JsonObject& queue = json.as_object();
    const std::string name = StringAt(ObjectAt(queue, "metadata"), "name");
    const JsonObject& most = ObjectAt(ObjectAt(queue, "spec"), "capability");
    return std::ranges::any_of(most, [&](const auto& of) {
      return asked[{name, std::string(of.key())}] > amount(of.key(), of.value());
    });
  });
}

// What weighs each score where nothing is said.
void CheckArguments(const JsonObject& plugin) {
  static const std::map<std::string, int64_t, std::less<>> kWeights = {
      {"leastrequested.weight", 1},    {"mostrequested.weight", 0},  {"nodeaffinity.weight", 2},
      {"podaffinity.weight", 2},       {"imagelocality.weight", 1},  {"balancedresource.weight", 1},
      {"podtopologyspread.weight", 2}, {"tainttoleration.weight", 3}};
  for (const auto& [name, value] : ObjectAt(plugin, "arguments")) {
    const auto known = kWeights.find(std::string_view(name));
    if (StringAt(plugin, "name") != "nodeorder" || known == kWeights.end())
      throw NotBuilt{fmt::format("arguments of plugin {}", StringAt(plugin, "name"))};
    if (!value.is_int64() || value.as_int64() != known->second) throw NotBuilt{"weights of scores"};
  }
}

// What of Volcano's configuration a cycle of the engine is: members of a gang together, all filters,
// the default scores, priority.
void CheckConfiguration(const JsonObject& test, const Session& session) {
  static const std::set<std::string, std::less<>> kPlugins = {
      "gang",        "predicates", "nodeorder",  "priority",
      "conformance", "drf",        "proportion", "capacity"};
  static const std::set<std::vector<std::string>> kActions = {
      {"allocate"}, {"enqueue", "allocate"}, {"preempt"}, {"allocate", "preempt"},
      {"backfill"}, {"allocate", "backfill"}};
  if (!kActions.contains(session.actions()) || test.contains("sessions"))
    throw NotBuilt{"actions " + fmt::format("{}", fmt::join(session.actions(), ", "))};
  for (const Json& tier : ArrayAt(ObjectAt(test, "conf"), "tiers")) {
    for (const Json& json : tier.as_array()) {
      const std::string name = StringAt(json.as_object(), "name");
      if (!kPlugins.contains(name)) throw NotBuilt{"plugin " + name};
      CheckArguments(json.as_object());
    }
  }
  for (const auto& [option, value] : ObjectAt(test, "options")) {
    if (option != "percentageOfNodesToFind") throw NotBuilt{fmt::format("option {}", option)};
  }
}

// Who gets what there is, and whose turn it is, by more than priority and age.
void CheckShares(const JsonObject& input, const Session& session) {
  const std::map<std::string, std::set<std::string>> waiting = GroupsThatWait(input);
  const bool several =
      std::ranges::any_of(waiting, [](const auto& of_queue) { return of_queue.second.size() > 1; });
  // The plugin proportion bounds each queue by its weight.
  if (session.Has("proportion") && ArrayAt(input, "queues").size() > 1)
    throw NotBuilt{"weights of queues"};
  if (session.Has("drf") && several) throw NotBuilt{"shares of jobs"};
  if (session.Has("capacity") && waiting.size() > 1) throw NotBuilt{"shares of queues"};
  if (session.preempts() && !session.Has("priority"))
    throw NotBuilt{"evictions that priority does not decide"};
  if (session.preempts() && session.bounds_queues() && AnyAsksForMoreThanItMay(input))
    throw NotBuilt{"evictions for what a queue may have"};
  // Who asks for nothing is bound by backfill, after all others.
  bool something = false;
  bool nothing = false;
  for (const Json& pod : ArrayAt(input, "pods")) {
    if (!Waits(pod.as_object())) continue;
    (AsksForSomething(pod.as_object()) ? something : nothing) = true;
  }
  const bool all = session.Does("preempt") && !session.Does("allocate");
  if ((nothing && something) || (nothing && !all && !session.Does("backfill")) ||
      (something && !all && !session.Does("allocate"))) {
    throw NotBuilt{"pods with and without requests by different actions"};
  }
}

// What no plugin asks for is as if it were not said: without the one for gangs each member is placed
// by itself, without the one for priority age alone orders, and who holds no queue to what it may
// have lets it have all.
JsonObject AsAskedFor(JsonObject input, const Session& session) {
  const auto without = [&](const char* kind, std::initializer_list<const char*> fields) {
    if (!input.contains(kind)) return;
    for (Json& object : input[kind].as_array()) {
      if (!object.as_object().contains("spec")) continue;
      for (const char* field : fields) object.as_object()["spec"].as_object().erase(field);
    }
  };
  if (!session.Has("gang")) without("podGroups", {"minMember", "minTaskMember"});
  if (!session.bounds_queues()) without("queues", {"capability", "deserved"});
  if (session.Has("priority")) return input;
  without("podGroups", {"priorityClassName"});
  without("pods", {"priority"});
  return input;
}

void CheckObjects(const JsonObject& input, const Session& session) {
  static const std::set<std::string, std::less<>> kKinds = {"podGroups", "pods", "nodes", "queues",
                                                            "priorityClasses"};
  for (const auto& [kind, objects] : input) {
    const bool none = (objects.is_array() && objects.as_array().empty()) ||
                      (objects.is_object() && objects.as_object().empty());
    if (!none && !kKinds.contains(std::string_view(kind)))
      throw NotBuilt{fmt::format("{}", std::string_view(kind))};
  }
  static const std::set<std::string, std::less<>> kOfQueues = {"weight", "capability", "deserved",
                                                               "parent"};
  for (const Json& queue : ArrayAt(input, "queues")) {
    for (const auto& [field, value] : ObjectAt(queue.as_object(), "spec")) {
      if (!kOfQueues.contains(std::string_view(field)))
        throw NotBuilt{fmt::format("{} of queues", std::string_view(field))};
    }
  }
  for (const Json& pod : ArrayAt(input, "pods")) {
    const JsonObject& meta = ObjectAt(pod.as_object(), "metadata");
    if (session.preempts() &&
        StringAt(ObjectAt(meta, "labels"), "volcano.sh/preemptable") == "false")
      throw NotBuilt{"pods that are not to be preempted"};
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
  for (const Json& json : ArrayAt(input, "queues")) {
    auto queue = Unwrap(decoder.Queue(codec::PrintJson(json)));
    if (queue.meta.uid.empty()) queue.meta.uid = "queue-" + queue.meta.name;
    engine.Apply(translate::QueueFacts(queue, engine.vocabulary()));
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
  const Session session(ObjectAt(test, "conf"));
  CheckConfiguration(test, session);
  const JsonObject input = AsAskedFor(ObjectAt(test, "input"), session);
  CheckObjects(input, session);
  CheckShares(input, session);
  const JsonObject& want = ObjectAt(test, "want");
  if (!want.contains("binds") && !want.contains("bindsNum")) throw NotBuilt{"other expectations"};
  // A session that only preempts binds nobody, where a cycle binds whom it has room for.
  const bool only_preempts = session.Does("preempt") && !session.Does("allocate");
  cycle::Engine engine({.preemption = session.preempts()});
  Load(input, engine);
  const auto [binds, evicted] = Decide(engine);
  std::set<std::string> evicted_there;
  for (const Json& pod : ArrayAt(want, "evicted")) evicted_there.emplace(pod.as_string());
  if (evicted != evicted_there) {
    throw std::runtime_error(fmt::format("evicts {}, expected {}", fmt::join(evicted, " "),
                                         fmt::join(evicted_there, " ")));
  }
  if (only_preempts) return;
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
  int64_t told_count = 0;
  int shown = 0;
  for (const Json& json : ArrayAt(*index, "files")) {
    const JsonObject& suite = json.as_object();
    const std::string name = StringAt(suite, "file");
    const int64_t cases = suite.at("cases").as_int64();
    told_count += cases;
    if (StringAt(suite, "format") != "session" && std::filesystem::exists(folder / name)) {
      lacking[StringAt(suite, "group")] += cases;
      continue;
    }
    const auto file = ReadObject(folder / name);
    if (!file) {
      fmt::print(stderr, "{} can't be read\n", name);
      return 2;
    }
    // A file that lost cases must not pass for the whole one.
    if (const auto there = std::ssize(ArrayAt(*file, "cases")); there != cases) {
      fmt::print(stderr, "{}: the index tells of {} cases, the file has {}\n", name, cases, there);
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
  const Json* total = index->if_contains("totalCases");
  if (total != nullptr && total->as_int64() != told_count) {
    fmt::print("FAILED: the index names {} cases, and tells of {} in all\n", told_count,
               total->as_int64());
    return 1;
  }
  return failed_count == 0 && passed_count > 0 ? 0 : 1;
}

}  // namespace berth
