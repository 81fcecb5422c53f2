#include "explore/scenario.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "api/quota.h"
#include "base/check.h"
#include "explore/scenario_lines.h"
#include "explore/scenario_quota.h"
#include "explore/unchanging.h"
#include "sim/run.h"

namespace berth::explore {
namespace {

constexpr size_t kNodesMax = 5;
constexpr size_t kPodsMax = 20;
// How a file calls them, by Action::Kind.
constexpr std::array<std::string_view, 15> kKinds = {
    "pod",    "node",   "budget",   "class",    "owner", "podgroup",   "queue", "localqueue",
    "cohort", "flavor", "workload", "topology", "check", "groupqueue", "job"};
constexpr std::array<std::string_view, kFatesCount> kFates = {"done",  "unheard", "conflict",
                                                              "error", "refused", "lost"};

class Parser {
 public:
  Parser(std::string_view text, std::string_view file) : lines_(text, file) {
    scenario_.file = std::string(file);
  }

  Result<Scenario> Run() {
    while (true) {
      const Result<bool> more = lines_.Next();
      if (!more) return std::unexpected(more.error());
      if (!*more) break;
      if (Status read = Dispatch(); !read) return std::unexpected(read.error());
    }
    if (scenario_.name.empty()) return lines_.Bad("no line names the scenario");
    if (scenario_.cases.empty()) return lines_.Bad("no line names a case");
    if (scenario_.users.empty()) return lines_.Bad("no user acts");
    if (scenario_.fates.empty() && scenario_.bounds.failures > 0) {
      return lines_.Bad("failures of writes are allowed and no line says which");
    }
    if (scenario_.again && scenario_.bounds.crashes > 0)
      return lines_.Bad("again adds a crash, and there is one");
    if (scenario_.starts && !scenario_.kubelets)
      return lines_.Bad("kubelets start pods, and there are none");
    if ((scenario_.indexed || scenario_.slow_jobs) && !scenario_.joint)
      return lines_.Bad("jobs make pods where the scenario is joint");
    scenario_.unchanging = UnchangingKinds(scenario_);
    return std::move(scenario_);
  }

 private:
  Status Dispatch() {
    if (lines_.indented()) {
      if (!in_user_) return lines_.Bad("an indented line that follows no user");
      return ReadAction(scenario_.users.back().actions, 0);
    }
    in_user_ = false;
    const std::string& word = lines_.words()[0];
    if (word == "scenario") return ReadName();
    if (word == "case") return ReadCase();
    if (word == "class") return ReadClass();
    if (word == "queue") return ReadQueue();
    if (word == "topology") return ReadTopology();
    if (word == "flavor") return ReadFlavor();
    if (word == "node" || word == "pod" || word == "budget" || word == "podgroup" ||
        word == "cohort" || word == "check" || word == "workload" || word == "groupqueue" ||
        word == "job") {
      lines_.words().insert(lines_.words().begin(), "create");
      return ReadAction(scenario_.set_up, 0);
    }
    if (word == "taint" || word == "cordon" || word == "delete")
      return ReadAction(scenario_.set_up, 0);
    if (word == "user") return ReadUser();
    if (word == "owner") return ReadOwner();
    if (word == "kubelets") return ReadKubelets();
    if (word == "starts") return Flag(scenario_.starts, true);
    if (word == "jobs") return Flag(scenario_.jobs, true);
    if (word == "group-controller") {
      if (!scenario_.owners.empty()) return lines_.Bad("group-controller comes before owners");
      return Flag(scenario_.group_controller, true);
    }
    if (word == "in-use") return Flag(scenario_.in_use, true);
    if (word == "indexed") return Flag(scenario_.indexed, true);
    if (word == "slow-jobs") return Flag(scenario_.slow_jobs, true);
    if (word == "unhealthy") return Flag(scenario_.unhealthy, true);
    if (word == "joint") {
      scenario_.jobs = true;
      return Flag(scenario_.joint, true);
    }
    if (word == "disruption") return Flag(scenario_.disruption, true);
    if (word == "collector") return Flag(scenario_.collector, true);
    if (word == "unsettled") return Flag(scenario_.settled, false);
    if (word == "writes") return ReadFates();
    if (word == "bound") return ReadBounds();
    if (word == "again") return ReadAgain();
    if (word == "expect") return ReadExpect();
    if (word == "plant") return ReadPlant();
    return lines_.Bad(fmt::format("unknown actor or directive \"{}\"", word));
  }

  Status Flag(bool& flag, bool value) {
    if (lines_.words().size() > 1)
      return lines_.Bad(fmt::format("{} takes nothing", lines_.words()[0]));
    if (flag == value) return lines_.Bad(fmt::format("{} is said twice", lines_.words()[0]));
    flag = value;
    return {};
  }

  Status ReadKubelets() {
    if (scenario_.kubelets) return lines_.Bad("kubelets is said twice");
    scenario_.kubelets = true;
    for (size_t i = 1; i < lines_.words().size(); ++i) {
      if (!nodes_.contains(lines_.words()[i])) {
        return lines_.Bad(fmt::format("unknown node \"{}\"", lines_.words()[i]));
      }
      scenario_.kubelet_nodes.insert(lines_.words()[i]);
    }
    return {};
  }

  Status ReadName() {
    if (lines_.words().size() != 2) return lines_.Bad("scenario takes one name");
    if (!scenario_.name.empty()) return lines_.Bad("the scenario has a name already");
    if (Status good = lines_.CheckName(lines_.words()[1]); !good) return good;
    scenario_.name = lines_.words()[1];
    return {};
  }

  Status ReadCase() {
    if (lines_.words().size() != 3)
      return lines_.Bad("case takes an id and what is said of it, quoted");
    const std::string& id = lines_.words()[1];
    const bool good =
        id.size() >= 2 && id.size() <= 4 && id[0] >= 'A' && id[0] <= 'Z' &&
        std::all_of(id.begin() + 1, id.end(), [](char c) { return c >= '0' && c <= '9'; });
    if (!good) return lines_.Bad(fmt::format("\"{}\" is no id of a case", id));
    scenario_.cases.push_back(id);
    scenario_.quotes.push_back(lines_.words()[2]);
    return {};
  }

  // The members of a pod's spec.
  Result<std::string> PodSpec(const Options& options) {
    const Result<std::string> requests = lines_.Amounts(options, {"cpu", "memory"});
    if (!requests) return std::unexpected(requests.error());
    const Result<uint64_t> grace = lines_.Number(options, "grace", 30, 3600);
    if (!grace) return std::unexpected(grace.error());
    std::string spec = fmt::format(
        R"("containers":[{{"name":"c","image":"i","resources":{{"requests":{{{}}}}}}}],"terminationGracePeriodSeconds":{})",
        *requests, *grace);
    if (const auto at = options.find("priority"); at != options.end()) {
      if (!classes_.contains(at->second)) {
        return lines_.Bad(fmt::format("unknown class \"{}\"", at->second));
      }
      spec += fmt::format(R"(,"priorityClassName":"{}")", at->second);
    }
    if (const auto at = options.find("node"); at != options.end()) {
      if (!nodes_.contains(at->second))
        return lines_.Bad(fmt::format("unknown node \"{}\"", at->second));
      spec += fmt::format(R"(,"nodeName":"{}")", at->second);
    }
    if (const auto at = options.find("scheduler"); at != options.end()) {
      if (Status good = lines_.CheckName(at->second); !good) return std::unexpected(good.error());
      spec += fmt::format(R"(,"schedulerName":"{}")", at->second);
    }
    return spec;
  }

  Status ReadClass() {
    if (lines_.words().size() < 3) return lines_.Bad("class takes a name and value=NUMBER");
    if (Status good = lines_.CheckName(lines_.words()[1]); !good) return good;
    if (!classes_.insert(lines_.words()[1]).second) return lines_.Bad("the class is there already");
    Result<std::string> body = ClassBody(lines_.words()[1], 2);
    if (!body) return std::unexpected(body.error());
    scenario_.classes.push_back(std::move(*body));
    return {};
  }

  Result<std::string> ClassBody(std::string_view name, size_t first) {
    const Result<Options> options = lines_.ReadOptions(first, {"value", "preempts"});
    if (!options) return std::unexpected(options.error());
    const Result<uint64_t> value = lines_.Number(*options, "value", 0, 1'000'000'000);
    if (!value) return std::unexpected(value.error());
    const auto preempts = options->find("preempts");
    const bool never = preempts != options->end();
    if (never && preempts->second != "never") return lines_.Bad("preempts takes never");
    return fmt::format(R"({{"metadata":{{"name":"{}"}},"value":{}{}}})", name, *value,
                       never ? R"(,"preemptionPolicy":"Never")" : "");
  }

  Status ReadUser() {
    if (lines_.words().size() != 2) return lines_.Bad("user takes one name");
    if (Status good = lines_.CheckName(lines_.words()[1]); !good) return good;
    const bool known = std::ranges::any_of(
        scenario_.users, [&](const User& user) { return user.name == lines_.words()[1]; });
    if (known) return lines_.Bad("the user is there already");
    scenario_.users.push_back({.name = lines_.words()[1], .actions = {}});
    in_user_ = true;
    return {};
  }

  Status ReadOwner() {
    if (lines_.words().size() < 3) return lines_.Bad("owner takes a name and replicas=NUMBER");
    Owner owner{.name = lines_.words()[1], .replicas = 0, .pod = {}, .at_once = false};
    if (Status good = lines_.CheckName(owner.name); !good) return good;
    for (const Owner& other : scenario_.owners) {
      if (other.name == owner.name) return lines_.Bad("the owner is there already");
    }
    if (lines_.words().back() == "at-once") {
      owner.at_once = true;
      lines_.words().pop_back();
    }
    const Result<Options> options = lines_.ReadOptions(
        2, {"replicas", "cpu", "memory", "priority", "grace", "label", "group", "node"});
    if (!options) return std::unexpected(options.error());
    if (options->contains("node") && !scenario_.group_controller)
      return lines_.Bad("the pods of an owner are placed by the scheduler");
    const Result<uint64_t> replicas = lines_.Number(*options, "replicas", 1, 8);
    if (!replicas) return std::unexpected(replicas.error());
    owner.replicas = static_cast<uint32_t>(*replicas);
    const Result<std::string> label = Label(*options);
    if (!label) return std::unexpected(label.error());
    owner.label = *label;
    const Result<std::string> group = Group(*options);
    if (!group) return std::unexpected(group.error());
    owner.group = *group;
    const Result<std::string> spec = PodSpec(*options);
    if (!spec) return std::unexpected(spec.error());
    owner.pod = *spec;
    scenario_.owners.push_back(std::move(owner));
    return {};
  }

  Status ReadFates() {
    for (size_t i = 1; i < lines_.words().size(); ++i) {
      const auto at = std::ranges::find(kFates, lines_.words()[i]);
      if (at == kFates.end() || at == kFates.begin()) {
        return lines_.Bad(fmt::format("unknown outcome \"{}\" of a write", lines_.words()[i]));
      }
      const auto fate = static_cast<Fate>(at - kFates.begin());
      if (std::ranges::find(scenario_.fates, fate) != scenario_.fates.end()) {
        return lines_.Bad(fmt::format("{} is said twice", lines_.words()[i]));
      }
      scenario_.fates.push_back(fate);
    }
    return scenario_.fates.empty() ? lines_.Bad("writes takes outcomes") : Status();
  }

  Status ReadBounds() {
    const Result<Options> options =
        lines_.ReadOptions(1, {"depth", "failures", "crashes", "timers", "states"});
    if (!options) return std::unexpected(options.error());
    Bounds& bounds = scenario_.bounds;
    const auto read = [&](std::string_view key, auto& into, uint64_t max) -> Status {
      const Result<uint64_t> number = lines_.Number(*options, key, into, max);
      if (!number) return std::unexpected(number.error());
      into = static_cast<std::remove_reference_t<decltype(into)>>(*number);
      return {};
    };
    if (Status good = read("depth", bounds.depth, kEndlessChoices - 1); !good) return good;
    if (Status good = read("failures", bounds.failures, 3); !good) return good;
    if (Status good = read("crashes", bounds.crashes, 1); !good) return good;
    if (Status good = read("timers", bounds.timers, 3); !good) return good;
    return read("states", bounds.states, 100'000'000);
  }

  Status ReadAgain() {
    const std::vector<std::string>& words = lines_.words();
    if (scenario_.again) return lines_.Bad("again is said twice");
    if (words.size() < 2 || words[1] != "crashes=1")
      return lines_.Bad("again takes crashes=1 and states=NUMBER");
    const Result<Options> options = lines_.ReadOptions(2, {"states"});
    if (!options) return std::unexpected(options.error());
    const Result<uint64_t> whole = lines_.Number(*options, "states", 0, 100'000'000);
    if (!whole) return std::unexpected(whole.error());
    scenario_.again = Again{.whole_states = *whole};
    return {};
  }

  Status ReadExpect() {
    const Result<Options> options =
        lines_.ReadOptions(1, {"evictions", "preemptions", "displaced", "states"});
    if (!options) return std::unexpected(options.error());
    if (options->empty()) {
      return lines_.Bad(
          "expect takes evictions=NUMBER, preemptions=NUMBER, displaced=NUMBER or states=NUMBER");
    }
    if (options->contains("displaced")) {
      const Result<uint64_t> most = lines_.Number(*options, "displaced", 0, 100);
      if (!most) return std::unexpected(most.error());
      scenario_.displaced = static_cast<uint32_t>(*most);
    }
    if (options->contains("preemptions")) {
      const Result<uint64_t> most = lines_.Number(*options, "preemptions", 0, 100);
      if (!most) return std::unexpected(most.error());
      scenario_.preemptions = static_cast<uint32_t>(*most);
    }
    if (options->contains("evictions")) {
      if (scenario_.evictions) return lines_.Bad("evictions is said twice");
      const Result<uint64_t> most = lines_.Number(*options, "evictions", 0, 100);
      if (!most) return std::unexpected(most.error());
      scenario_.evictions = static_cast<uint32_t>(*most);
    }
    if (!options->contains("states")) return {};
    if (scenario_.whole_states > 0) return lines_.Bad("states is said twice");
    const Result<uint64_t> whole = lines_.Number(*options, "states", 0, 100'000'000);
    if (!whole) return std::unexpected(whole.error());
    scenario_.whole_states = *whole;
    return {};
  }

  Status ReadPlant() {
    if (lines_.words().size() != 3) return lines_.Bad("plant takes a name and states=NUMBER");
    if (sim::FindPlanted(lines_.words()[1]) == nullptr) {
      return lines_.Bad(fmt::format("unknown defect \"{}\"", lines_.words()[1]));
    }
    const Result<Options> options = lines_.ReadOptions(2, {"states"});
    if (!options) return std::unexpected(options.error());
    const Result<uint64_t> states = lines_.Number(*options, "states", 0, 100'000'000);
    if (!states) return std::unexpected(states.error());
    scenario_.plants.push_back({.name = lines_.words()[1], .states = *states});
    return {};
  }

  // VERB KIND NAME [key=value ...]
  Status ReadAction(std::vector<Action>& into, size_t first) {
    const std::vector<std::string>& words = lines_.words();
    if (words.size() < first + 3) return lines_.Bad("an event takes a verb, a kind and a name");
    const std::string& verb = words[first];
    const auto kind = std::ranges::find(kKinds, words[first + 1]);
    if (kind == kKinds.end())
      return lines_.Bad(fmt::format("unknown kind \"{}\"", words[first + 1]));
    Action action{.verb = Action::Verb::kCreate,
                  .kind = static_cast<Action::Kind>(kind - kKinds.begin()),
                  .name = words[first + 2],
                  .body = {},
                  .text = {},
                  .line = lines_.number()};
    for (size_t i = first; i < words.size(); ++i) {
      action.text += (i == first ? "" : " ") + words[i];
    }
    if (Status good = lines_.CheckName(action.name); !good) return good;
    Status read =
        verb == "create" ? ReadCreate(action, first + 3) : ReadChange(action, verb, first + 3);
    if (!read) return read;
    into.push_back(std::move(action));
    return {};
  }

  Status ReadCreate(Action& action, size_t first) {
    switch (action.kind) {
      case Action::Kind::kPod:
        return ReadCreatePod(action, first);
      case Action::Kind::kNode:
        return ReadCreateNode(action, first);
      case Action::Kind::kBudget:
        return ReadCreateBudget(action, first);
      case Action::Kind::kClass: {
        if (!classes_.contains(action.name)) return NotMade(action);
        Result<std::string> body = ClassBody(action.name, first);
        if (!body) return std::unexpected(body.error());
        action.body = std::move(*body);
        return {};
      }
      case Action::Kind::kGroup:
        return ReadCreateGroup(action, first);
      case Action::Kind::kQueue:
      case Action::Kind::kLocalQueue:
      case Action::Kind::kCohort:
      case Action::Kind::kFlavor:
      case Action::Kind::kWorkload:
      case Action::Kind::kTopology:
      case Action::Kind::kCheck:
        return quota_.ReadCreate(action, first);
      case Action::Kind::kGroupQueue:
        return ReadCreateGroupQueue(action, first);
      case Action::Kind::kJob:
        return ReadCreateJob(action, first);
      case Action::Kind::kOwner: {
        if (!scenario_.group_controller) return UnknownEvent(action);
        if (!Made(action)) return NotMade(action);
        const Result<Options> none = lines_.ReadOptions(first, {});
        return none ? Status() : Status(std::unexpected(none.error()));
      }
    }
    return UnknownEvent(action);
  }

  // The group of a pod; empty when none is said. It needn't be there.
  Result<std::string> Group(const Options& options) {
    const auto at = options.find("group");
    if (at == options.end()) return std::string();
    if (Status good = lines_.CheckName(at->second); !good) return std::unexpected(good.error());
    scenario_.groups = true;
    return at->second;
  }

  Result<uint64_t> MinMember(const Options& options) {
    if (!options.contains("min")) return lines_.Bad("a podgroup takes min=NUMBER");
    return lines_.Number(options, "min", 0, 20);
  }

  Status ReadCreateGroup(Action& action, size_t first) {
    if (scenario_.group_controller) return UnknownEvent(action);
    const Result<Options> options =
        lines_.ReadOptions(first, {"min", "priority", "queue", "keeps"});
    if (!options) return std::unexpected(options.error());
    const Result<uint64_t> least = MinMember(*options);
    if (!least) return std::unexpected(least.error());
    std::string priority;
    if (const auto at = options->find("priority"); at != options->end()) {
      if (!classes_.contains(at->second)) {
        return lines_.Bad(fmt::format("unknown class \"{}\"", at->second));
      }
      priority = fmt::format(R"(,"priorityClassName":"{}")", at->second);
    }
    std::string queue;
    if (const auto at = options->find("queue"); at != options->end()) {
      if (Status good = lines_.CheckName(at->second); !good) return good;
      queue = fmt::format(R"(,"queue":"{}")", at->second);
    }
    if (const auto at = options->find("keeps"); at != options->end()) {
      if (!InRange("cpu", at->second)) return lines_.Bad("keeps takes an amount of cpu");
      queue += fmt::format(R"(,"minResources":{{"cpu":"{}"}})", at->second);
    }
    groups_.insert(action.name);
    scenario_.groups = true;
    action.body = fmt::format(
        R"({{"apiVersion":"scheduling.volcano.sh/v1beta1","kind":"PodGroup","metadata":{{"name":"{}"}},"spec":{{"minMember":{}{}{}}}}})",
        action.name, *least, priority, queue);
    return {};
  }

  // `"capability":{...}` of so much cpu; empty when none is said.
  Result<std::string> Capability(const Options& options) {
    const Result<std::string> cpu = lines_.Amounts(options, {"cpu"});
    if (!cpu || cpu->empty()) return cpu;
    return fmt::format(R"("capability":{{{}}})", *cpu);
  }

  Status ReadCreateGroupQueue(Action& action, size_t first) {
    const Result<Options> options = lines_.ReadOptions(first, {"cpu", "parent"});
    if (!options) return std::unexpected(options.error());
    Result<std::string> spec = Capability(*options);
    if (!spec) return std::unexpected(spec.error());
    if (const auto at = options->find("parent"); at != options->end()) {
      if (Status good = lines_.CheckName(at->second); !good) return good;
      *spec += fmt::format(R"({}"parent":"{}")", spec->empty() ? "" : ",", at->second);
    }
    group_queues_.insert(action.name);
    action.body = fmt::format(
        R"({{"apiVersion":"scheduling.volcano.sh/v1beta1","kind":"Queue","metadata":{{"name":"{}"}},"spec":{{{}}}}})",
        action.name, *spec);
    return {};
  }

  // Upstream a controller writes the state, when a Command says so.
  Status ReadGroupQueueChange(Action& action, const std::string& verb, const Options& options) {
    if (verb == "update" && Only(options, "cpu")) {
      const Result<std::string> capability = Capability(options);
      if (!capability) return std::unexpected(capability.error());
      action.body = fmt::format(R"({{"spec":{{{}}}}})", *capability);
      return {};
    }
    if (!options.empty() || (verb != "close" && verb != "open")) return UnknownEvent(action);
    return PatchStatus(action, "state", verb == "close" ? "Closed" : "Open");
  }

  // ---- Jobs -----------------------------------------------------------------------------------

  // Its pods fail for good.
  Status ReadCreateJob(Action& action, size_t first) {
    if (!scenario_.group_controller) return UnknownEvent(action);
    const Result<Options> options = lines_.ReadOptions(
        first, {"queue", "count", "completions", "cpu", "memory", "grace", "node"});
    if (!options) return std::unexpected(options.error());
    const Result<uint64_t> count = lines_.Number(*options, "count", 1, 8);
    if (!count) return std::unexpected(count.error());
    const Result<uint64_t> completions = lines_.Number(*options, "completions", *count, 8);
    if (!completions) return std::unexpected(completions.error());
    const Result<std::string> spec = PodSpec(*options);
    if (!spec) return std::unexpected(spec.error());
    const Result<std::string> labels = QueueLabel(*options);
    if (!labels) return std::unexpected(labels.error());
    jobs_.insert(action.name);
    action.body = fmt::format(
        R"({{"metadata":{{"name":"{0}","labels":{1}}},"spec":{{"parallelism":{2},"completions":{4},"backoffLimit":0,"template":{{"spec":{{"restartPolicy":"Never",{3}}}}}}}}})",
        action.name, *labels, *count, *spec, *completions);
    return {};
  }

  Result<std::string> QueueLabel(const Options& options) {
    const auto at = options.find("queue");
    const bool none = at == options.end() || at->second == "none";
    if (!none) {
      if (Status good = lines_.CheckName(at->second); !good) return std::unexpected(good.error());
    }
    return fmt::format(R"({{"{}":{}}})", api::kQueueNameLabel,
                       none ? "null" : fmt::format(R"("{}")", at->second));
  }

  Status ReadJobChange(Action& action, const std::string& verb, const Options& options) {
    if (verb == "update" && Only(options, "queue")) {
      const Result<std::string> labels = QueueLabel(options);
      if (!labels) return std::unexpected(labels.error());
      action.body = fmt::format(R"({{"metadata":{{"labels":{}}}}})", *labels);
      return {};
    }
    if (verb == "scale" && Only(options, "count")) {
      const Result<uint64_t> count = lines_.Number(options, "count", 1, 8);
      if (!count) return std::unexpected(count.error());
      action.body = fmt::format(R"({{"spec":{{"parallelism":{}}}}})", *count);
      return {};
    }
    if (verb == "delete" && (options.empty() || Only(options, "cascade")))
      return ReadJobDeletion(action, options);
    if (verb == "forge" && Only(options, "in")) {
      const std::string& in = options.find("in")->second;
      if (in != "default" && in != "elsewhere") return lines_.Bad("in takes default or elsewhere");
      action.verb = Action::Verb::kForge;
      action.body = fmt::format(R"({{"namespace":"{}"}})", in);
      return {};
    }
    if (!options.empty() || (verb != "evict" && verb != "drop")) return UnknownEvent(action);
    action.verb = verb == "evict" ? Action::Verb::kTell : Action::Verb::kDrop;
    action.body = R"({"type":"Evicted","reason":"Preempted","message":"A user says so"})";
    return {};
  }

  // As kubectl deletes it, where nothing else is said.
  Status ReadJobDeletion(Action& action, const Options& options) {
    const auto at = options.find("cascade");
    const std::string cascade = at == options.end() ? "background" : at->second;
    std::string_view policy;
    if (cascade == "background") policy = "Background";
    if (cascade == "foreground") policy = "Foreground";
    if (cascade == "orphan") policy = "Orphan";
    if (policy.empty()) return lines_.Bad("cascade takes background, foreground or orphan");
    action.verb = Action::Verb::kDelete;
    action.body = fmt::format(R"({{"propagationPolicy":"{}"}})", policy);
    return {};
  }

  // ---- Quota ----------------------------------------------------------------------------------

  // A ClusterQueue, the LocalQueue of its name, and before the first of them the flavor.
  Status ReadQueue() {
    scenario_.quota = true;
    if (const auto flavor = quota_.OnlyFlavor()) scenario_.set_up.push_back(*flavor);
    lines_.words().insert(lines_.words().begin(), "create");
    if (Status read = ReadAction(scenario_.set_up, 0); !read) return read;
    lines_.words().resize(3);
    lines_.words()[1] = "localqueue";
    return ReadAction(scenario_.set_up, 0);
  }

  // What follows has its labels.
  Status ReadTopology() {
    if (!nodes_.empty() || scenario_.quota)
      return lines_.Bad("a topology comes before nodes and queues");
    lines_.words().insert(lines_.words().begin(), "create");
    return ReadAction(scenario_.set_up, 0);
  }

  // What follows says which nodes are of it, and how much there is of it.
  Status ReadFlavor() {
    if (!nodes_.empty() || scenario_.quota)
      return lines_.Bad("a flavor comes before nodes and queues");
    lines_.words().insert(lines_.words().begin(), "create");
    return ReadAction(scenario_.set_up, 0);
  }

  // The value of a label; empty when none is said.
  Result<std::string> Label(const Options& options) {
    const auto at = options.find("label");
    if (at == options.end()) return std::string();
    if (Status good = lines_.CheckName(at->second); !good) return std::unexpected(good.error());
    return at->second;
  }

  // Members of a budget's spec; `null` for the one of both that is not said.
  Result<std::string> Limits(const Options& options) {
    if (options.contains("min") == options.contains("max")) {
      return lines_.Bad("a budget takes min=NUMBER or max=NUMBER");
    }
    const std::string_view key = options.contains("min") ? "min" : "max";
    const Result<uint64_t> number = lines_.Number(options, key, 0, 20);
    if (!number) return std::unexpected(number.error());
    return fmt::format(R"("minAvailable":{},"maxUnavailable":{})",
                       key == "min" ? fmt::format("{}", *number) : "null",
                       key == "max" ? fmt::format("{}", *number) : "null");
  }

  Status ReadCreateBudget(Action& action, size_t first) {
    const Result<Options> options = lines_.ReadOptions(first, {"min", "max", "label"});
    if (!options) return std::unexpected(options.error());
    const Result<std::string> limits = Limits(*options);
    if (!limits) return std::unexpected(limits.error());
    const Result<std::string> label = Label(*options);
    if (!label) return std::unexpected(label.error());
    if (label->empty()) return lines_.Bad("a budget takes label=VALUE");
    budgets_.insert(action.name);
    action.body = fmt::format(
        R"({{"metadata":{{"name":"{}"}},"spec":{{"selector":{{"matchLabels":{{"example":"{}"}}}},{}}}}})",
        action.name, *label, *limits);
    return {};
  }

  Status ReadCreateNode(Action& action, size_t first) {
    const std::vector<std::string> keys = quota_.node_keys();  // What `allowed` is views of.
    std::vector<std::string_view> allowed = {"cpu", "memory", "pods"};
    allowed.insert(allowed.end(), keys.begin(), keys.end());
    const Result<Options> options = lines_.ReadOptions(first, allowed);
    if (!options) return std::unexpected(options.error());
    const Result<std::string> labels = quota_.LabelsOfNode(action.name, *options);
    if (!labels) return std::unexpected(labels.error());
    Options all = *options;
    all.emplace("memory", "64Gi");
    all.emplace("pods", "110");
    if (!all.contains("cpu")) return lines_.Bad("a node takes cpu=AMOUNT");
    const Result<std::string> amounts = lines_.Amounts(all, {"cpu", "memory", "pods"});
    if (!amounts) return std::unexpected(amounts.error());
    nodes_.insert(action.name);
    if (nodes_.size() > kNodesMax) return lines_.Bad("too many nodes");
    action.body = fmt::format(
        R"({{"metadata":{{"name":"{0}"{2}}},"status":{{"allocatable":{{{1}}},"capacity":{{{1}}},"conditions":[{{"type":"Ready","status":"True"}}]}}}})",
        action.name, *amounts, *labels);
    return {};
  }

  Status ReadCreatePod(Action& action, size_t first) {
    const Result<Options> options = lines_.ReadOptions(
        first,
        {"cpu", "memory", "priority", "grace", "node", "scheduler", "finalizer", "label", "group"});
    if (!options) return std::unexpected(options.error());
    const Result<std::string> spec = PodSpec(*options);
    if (!spec) return std::unexpected(spec.error());
    pods_.insert(action.name);
    if (pods_.size() > kPodsMax) return lines_.Bad("too many pods");
    std::string finalizers;
    if (const auto at = options->find("finalizer"); at != options->end()) {
      if (Status good = lines_.CheckName(at->second); !good) return good;
      finalizers = fmt::format(R"(,"finalizers":["example.com/{}"])", at->second);
    }
    const Result<std::string> label = Label(*options);
    if (!label) return std::unexpected(label.error());
    const std::string labels =
        label->empty() ? "" : fmt::format(R"(,"labels":{{"example":"{}"}})", *label);
    const Result<std::string> group = Group(*options);
    if (!group) return std::unexpected(group.error());
    action.body = fmt::format(R"({{"metadata":{{"name":"{}"{}{}{}}},"spec":{{{}}}}})", action.name,
                              finalizers, labels, MemberOf(*group), *spec);
    return {};
  }

  // OWNER-NUMBER, where owners are objects; WORKLOAD-NUMBER, where their Jobs make pods.
  [[nodiscard]] bool IsOfOwner(std::string_view pod) const {
    const size_t dash = pod.rfind('-');
    if (dash == std::string_view::npos) return false;
    const std::string_view name = pod.substr(0, dash);
    const Action workload{.kind = Action::Kind::kWorkload, .name = std::string(name)};
    if (scenario_.joint && quota_.Made(workload)) return true;
    if (!scenario_.group_controller) return false;
    return jobs_.contains(name) ||
           std::ranges::find(scenario_.owners, name, &Owner::name) != scenario_.owners.end();
  }

  [[nodiscard]] bool Made(const Action& action) const {
    switch (action.kind) {
      case Action::Kind::kPod:
        return pods_.contains(action.name) || IsOfOwner(action.name);
      case Action::Kind::kNode:
        return nodes_.contains(action.name);
      case Action::Kind::kBudget:
        return budgets_.contains(action.name);
      case Action::Kind::kClass:
        return classes_.contains(action.name);
      case Action::Kind::kOwner:
        return std::ranges::find(scenario_.owners, action.name, &Owner::name) !=
               scenario_.owners.end();
      case Action::Kind::kGroup:
        // That of an owner is called after it.
        return groups_.contains(action.name) ||
               (scenario_.group_controller &&
                std::ranges::find(scenario_.owners, action.name, &Owner::name) !=
                    scenario_.owners.end());
      case Action::Kind::kQueue:
      case Action::Kind::kLocalQueue:
      case Action::Kind::kCohort:
      case Action::Kind::kFlavor:
      case Action::Kind::kWorkload:
      case Action::Kind::kTopology:
      case Action::Kind::kCheck:
        return quota_.Made(action);
      case Action::Kind::kGroupQueue:
        return group_queues_.contains(action.name);
      case Action::Kind::kJob:
        return jobs_.contains(action.name);
    }
    return false;
  }
  Status NotMade(const Action& action) const {
    return lines_.Bad(fmt::format("no line above makes {} \"{}\"",
                                  kKinds[static_cast<size_t>(action.kind)], action.name));
  }

  // What happens to an object that some line makes.
  Status ReadChange(Action& action, const std::string& verb, size_t first) {
    if (!Made(action)) return NotMade(action);
    if (action.kind == Action::Kind::kGroup && verb == "see") {
      action.verb = Action::Verb::kSee;
      const Result<Options> none = lines_.ReadOptions(first, {});
      return none ? Status() : Status(std::unexpected(none.error()));
    }
    if (action.kind == Action::Kind::kGroup && verb == "delete" &&
        lines_.words().back() == "seen") {
      action.verb = Action::Verb::kDelete;
      action.as_seen = true;
      return lines_.words().size() == first + 1 ? Status() : UnknownEvent(action);
    }
    const std::vector<std::string> keys = quota_.quota_keys();
    std::vector<std::string_view> allowed = {"grace",    "label", "node",     "min",   "max",
                                             "replicas", "cpu",   "priority", "check", "state",
                                             "count",    "queue", "cascade",  "in"};
    allowed.insert(allowed.end(), keys.begin(), keys.end());
    const Result<Options> options = lines_.ReadOptions(first, allowed);
    if (!options) return std::unexpected(options.error());
    action.verb = Action::Verb::kPatch;
    if (action.kind == Action::Kind::kJob) return ReadJobChange(action, verb, *options);
    const bool graceful = action.kind == Action::Kind::kPod || action.kind == Action::Kind::kNode;
    if (verb == "delete" && (options->empty() || (graceful && Only(*options, "grace")))) {
      action.verb = Action::Verb::kDelete;
      const Result<uint64_t> grace = lines_.Number(*options, "grace", 0, 3600);
      if (!grace) return std::unexpected(grace.error());
      if (options->contains("grace")) {
        action.body = fmt::format(R"({{"gracePeriodSeconds":{}}})", *grace);
      }
      return {};
    }
    if (action.kind == Action::Kind::kPod) return ReadPodChange(action, verb, *options);
    if (action.kind == Action::Kind::kNode) return ReadNodeChange(action, verb, *options);
    if (verb == "scale" && action.kind == Action::Kind::kOwner && Only(*options, "replicas")) {
      const Result<uint64_t> replicas = lines_.Number(*options, "replicas", 0, 8);
      if (!replicas) return std::unexpected(replicas.error());
      action.replicas = static_cast<uint32_t>(*replicas);
      action.body = fmt::format(R"({{"spec":{{"replicas":{}}}}})", *replicas);
      return {};
    }
    if (verb == "update" && action.kind == Action::Kind::kGroup && Only(*options, "min")) {
      const Result<uint64_t> least = MinMember(*options);
      if (!least) return std::unexpected(least.error());
      action.body = fmt::format(R"({{"spec":{{"minMember":{}}}}})", *least);
      return {};
    }
    if (action.kind == Action::Kind::kGroupQueue)
      return ReadGroupQueueChange(action, verb, *options);
    if (action.kind >= Action::Kind::kQueue) {
      return quota_.ReadChange(action, verb, *options, nodes_);
    }
    if (action.kind != Action::Kind::kBudget || verb != "update") return UnknownEvent(action);
    const Result<std::string> limits = Limits(*options);
    if (!limits) return std::unexpected(limits.error());
    if (options->size() > 1) return UnknownEvent(action);
    action.body = fmt::format(R"({{"spec":{{{}}}}})", *limits);
    return {};
  }

  Status UnknownEvent(const Action& action) const {
    return lines_.Bad(fmt::format("unknown event \"{}\"", action.text));
  }

  Status ReadLabel(Action& action, const Options& options) {
    const std::string& label = options.find("label")->second;
    if (Status good = lines_.CheckName(label); !good) return good;
    action.body = fmt::format(R"({{"metadata":{{"labels":{{"example":"{}"}}}}}})", label);
    return {};
  }

  Status ReadNodeChange(Action& action, const std::string& verb, const Options& options) {
    if (verb == "update" && Only(options, "label")) return ReadLabel(action, options);
    if (!options.empty()) return UnknownEvent(action);
    if (verb == "cordon" || verb == "uncordon") {
      action.body = fmt::format(R"({{"spec":{{"unschedulable":{}}}}})", verb == "cordon");
    } else if (verb == "taint") {
      action.body = R"({"spec":{"taints":[{"key":"example.com/away","effect":"NoSchedule"}]}})";
    } else if (verb == "untaint") {
      action.body = R"({"spec":{"taints":null}})";
    } else if (verb == "fail" || verb == "recover") {
      action.verb = Action::Verb::kPatchStatus;
      action.body =
          fmt::format(R"({{"status":{{"conditions":[{{"type":"Ready","status":"{}"}}]}}}})",
                      verb == "fail" ? "False" : "True");
    } else {
      return UnknownEvent(action);
    }
    return {};
  }

  Status ReadPodChange(Action& action, const std::string& verb, const Options& options) {
    if (verb == "update" && Only(options, "label")) return ReadLabel(action, options);
    if (verb == "evict" && options.empty()) {
      action.verb = Action::Verb::kEvict;
      action.body = fmt::format(
          R"({{"apiVersion":"policy/v1","kind":"Eviction","metadata":{{"name":"{}"}}}})",
          action.name);
      return {};
    }
    if (verb == "release" && options.empty()) {
      action.body = R"({"metadata":{"finalizers":null}})";
      return {};
    }
    if ((verb == "bind" || verb == "nominate") && Only(options, "node")) {
      const std::string& node = options.find("node")->second;
      if (!nodes_.contains(node)) return lines_.Bad(fmt::format("unknown node \"{}\"", node));
      if (verb == "nominate") return PatchStatus(action, "nominatedNodeName", node);
      action.verb = Action::Verb::kBind;
      action.body =
          fmt::format(R"({{"metadata":{{"name":"{}"}},"target":{{"kind":"Node","name":"{}"}}}})",
                      action.name, node);
      return {};
    }
    if (verb == "withdraw" && options.empty()) return PatchStatus(action, "nominatedNodeName", "");
    if (verb == "finish" && options.empty()) return PatchStatus(action, "phase", "Succeeded");
    if (verb == "fail" && options.empty()) return PatchStatus(action, "phase", "Failed");
    return UnknownEvent(action);
  }

  static Status PatchStatus(Action& action, std::string_view member, std::string_view value) {
    action.verb = Action::Verb::kPatchStatus;
    action.body = fmt::format(R"({{"status":{{"{}":{}}}}})", member,
                              value.empty() ? "null" : fmt::format("\"{}\"", value));
    return {};
  }

  Lines lines_;
  Scenario scenario_;
  QuotaWords quota_{lines_, scenario_};
  bool in_user_ = false;
  std::set<std::string, std::less<>> nodes_;
  std::set<std::string, std::less<>> pods_;
  std::set<std::string, std::less<>> budgets_;
  std::set<std::string, std::less<>> classes_;
  std::set<std::string, std::less<>> groups_;
  std::set<std::string, std::less<>> group_queues_;
  std::set<std::string, std::less<>> jobs_;
};

}  // namespace

std::string MemberOf(std::string_view group) {
  if (group.empty()) return {};
  return fmt::format(R"(,"annotations":{{"scheduling.k8s.io/group-name":"{}"}})", group);
}

std::string_view ToString(Fate fate) { return kFates[static_cast<size_t>(fate)]; }

Scenario WithCrash(Scenario scenario) {
  CHECK(scenario.again.has_value());
  scenario.name += ", with a crash";
  scenario.bounds.crashes = 1;
  scenario.whole_states = scenario.again->whole_states;
  scenario.again.reset();
  scenario.plants.clear();
  return scenario;
}

Result<Scenario> ParseScenario(std::string_view text, std::string_view file) {
  return Parser(text, file).Run();
}

}  // namespace berth::explore
