#include "explore/scenario.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "api/names.h"
#include "api/quantity.h"
#include "sim/run.h"

namespace berth::explore {
namespace {

constexpr size_t kNodesMax = 5;
constexpr size_t kPodsMax = 20;
constexpr size_t kLineBytesMax = 1000;
// How a file calls them, by Action::Kind.
constexpr std::array<std::string_view, 11> kKinds = {"pod",    "node",     "budget",  "class",
                                                     "owner",  "podgroup", "queue",   "localqueue",
                                                     "cohort", "flavor",   "workload"};
constexpr std::string_view kQuotaVersion = "kueue.x-k8s.io/v1beta2";
// That all quota of a scenario is of.
constexpr std::string_view kFlavor = "spot";
constexpr std::array<std::string_view, kFatesCount> kFates = {"done",  "unheard", "conflict",
                                                              "error", "refused", "lost"};

// Words of a line; a word may hold a quoted part, or be one.
struct Line {
  uint32_t number = 0;
  bool indented = false;
  std::string_view text;
  std::vector<std::string> words;
};

using Options = std::map<std::string, std::string, std::less<>>;

// The most that a line may say of a resource, far from what the model would clamp.
std::string_view MostOf(std::string_view resource) {
  if (resource == "cpu") return "1M";
  return resource == "memory" ? "1Ti" : "1k";
}

bool InRange(std::string_view resource, std::string_view text) {
  const Result<api::Quantity> amount = api::ParseQuantity(text);
  if (!amount || amount->sign() < 0) return false;
  return api::Compare(*amount, *api::ParseQuantity(MostOf(resource))) <= 0;
}

class Parser {
 public:
  Parser(std::string_view text, std::string_view file) : text_(text) {
    scenario_.file = std::string(file);
  }

  Result<Scenario> Run() {
    while (!text_.empty()) {
      if (Status read = ReadLine(); !read) return std::unexpected(read.error());
    }
    line_.number = std::max(line_.number, 1u);
    if (scenario_.name.empty()) return Bad("no line names the scenario");
    if (scenario_.cases.empty()) return Bad("no line names a case");
    if (scenario_.users.empty()) return Bad("no user acts");
    if (scenario_.fates.empty() && scenario_.bounds.failures > 0) {
      return Bad("failures of writes are allowed and no line says which");
    }
    if (scenario_.starts && !scenario_.kubelets)
      return Bad("kubelets start pods, and there are none");
    return std::move(scenario_);
  }

 private:
  std::unexpected<Error> Bad(std::string_view what) const {
    return Fail(ErrorCode::kInvalid, fmt::format("{}:{}: {}", scenario_.file, line_.number, what));
  }

  Status ReadLine() {
    const size_t end = std::min(text_.find('\n'), text_.size());
    line_ = {.number = line_.number + 1,
             .indented = text_.starts_with(' ') || text_.starts_with('\t'),
             .text = text_.substr(0, end),
             .words = {}};
    text_.remove_prefix(std::min(end + 1, text_.size()));
    if (line_.text.size() > kLineBytesMax) return Bad("the line is too long");
    if (Status split = Split(); !split) return split;
    return line_.words.empty() ? Status() : Dispatch();
  }

  Status Split() {
    std::string word;
    bool quoted = false;
    bool any = false;
    for (const char c : line_.text) {
      if (static_cast<unsigned char>(c) < ' ' && c != '\t') {
        return Bad("a control character");
      }
      if (c == '"') {
        quoted = !quoted;
        any = true;
      } else if (!quoted && c == '#') {
        break;
      } else if (!quoted && (c == ' ' || c == '\t')) {
        if (any) line_.words.push_back(std::exchange(word, {}));
        any = false;
      } else {
        word += c;
        any = true;
      }
    }
    if (quoted) return Bad("a quotation without an end");
    if (any) line_.words.push_back(std::move(word));
    return {};
  }

  Status Dispatch() {
    if (line_.indented) {
      if (!in_user_) return Bad("an indented line that follows no user");
      return ReadAction(scenario_.users.back().actions, 0);
    }
    in_user_ = false;
    const std::string& word = line_.words[0];
    if (word == "scenario") return ReadName();
    if (word == "case") return ReadCase();
    if (word == "class") return ReadClass();
    if (word == "queue") return ReadQueue();
    if (word == "node" || word == "pod" || word == "budget" || word == "podgroup" ||
        word == "cohort" || word == "workload") {
      line_.words.insert(line_.words.begin(), "create");
      return ReadAction(scenario_.set_up, 0);
    }
    if (word == "taint" || word == "cordon") return ReadAction(scenario_.set_up, 0);
    if (word == "user") return ReadUser();
    if (word == "owner") return ReadOwner();
    if (word == "kubelets") return ReadKubelets();
    if (word == "starts") return Flag(scenario_.starts, true);
    if (word == "jobs") return Flag(scenario_.jobs, true);
    if (word == "joint") {
      scenario_.jobs = true;
      return Flag(scenario_.joint, true);
    }
    if (word == "disruption") return Flag(scenario_.disruption, true);
    if (word == "collector") return Flag(scenario_.collector, true);
    if (word == "unsettled") return Flag(scenario_.settled, false);
    if (word == "writes") return ReadFates();
    if (word == "bound") return ReadBounds();
    if (word == "expect") return ReadExpect();
    if (word == "plant") return ReadPlant();
    return Bad(fmt::format("unknown actor or directive \"{}\"", word));
  }

  Status Flag(bool& flag, bool value) {
    if (line_.words.size() > 1) return Bad(fmt::format("{} takes nothing", line_.words[0]));
    if (flag == value) return Bad(fmt::format("{} is said twice", line_.words[0]));
    flag = value;
    return {};
  }

  Status ReadKubelets() {
    if (scenario_.kubelets) return Bad("kubelets is said twice");
    scenario_.kubelets = true;
    for (size_t i = 1; i < line_.words.size(); ++i) {
      if (!nodes_.contains(line_.words[i])) {
        return Bad(fmt::format("unknown node \"{}\"", line_.words[i]));
      }
      scenario_.kubelet_nodes.insert(line_.words[i]);
    }
    return {};
  }

  Status ReadName() {
    if (line_.words.size() != 2) return Bad("scenario takes one name");
    if (!scenario_.name.empty()) return Bad("the scenario has a name already");
    if (Status good = CheckName(line_.words[1]); !good) return good;
    scenario_.name = line_.words[1];
    return {};
  }

  Status ReadCase() {
    if (line_.words.size() != 3) return Bad("case takes an id and what is said of it, quoted");
    const std::string& id = line_.words[1];
    const bool good =
        id.size() >= 2 && id.size() <= 4 && id[0] >= 'A' && id[0] <= 'Z' &&
        std::all_of(id.begin() + 1, id.end(), [](char c) { return c >= '0' && c <= '9'; });
    if (!good) return Bad(fmt::format("\"{}\" is no id of a case", id));
    scenario_.cases.push_back(id);
    scenario_.quotes.push_back(line_.words[2]);
    return {};
  }

  Status CheckName(std::string_view name) {
    const bool good = !name.empty() && name.size() <= 40 && name.front() != '-' &&
                      name.back() != '-' && std::ranges::all_of(name, [](char c) {
                        return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
                      });
    if (!good) return Bad(fmt::format("\"{}\" is no name of an object", name));
    return {};
  }

  // The words from `first` on as key=value, of `allowed` keys only.
  Result<Options> ReadOptions(size_t first, std::initializer_list<std::string_view> allowed) {
    Options options;
    for (size_t i = first; i < line_.words.size(); ++i) {
      const std::string& word = line_.words[i];
      const size_t equals = word.find('=');
      if (equals == std::string::npos || equals + 1 == word.size()) {
        return Bad(fmt::format("\"{}\" is not of the form key=value", word));
      }
      const std::string key = word.substr(0, equals);
      if (std::ranges::find(allowed, key) == allowed.end()) {
        return Bad(fmt::format("unknown key \"{}\"", key));
      }
      if (!options.emplace(key, word.substr(equals + 1)).second) {
        return Bad(fmt::format("{} is said twice", key));
      }
    }
    return options;
  }

  Result<uint64_t> Number(const Options& options, std::string_view key, uint64_t otherwise,
                          uint64_t max) {
    const auto at = options.find(key);
    if (at == options.end()) return otherwise;
    uint64_t number = 0;
    const std::string& text = at->second;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || end != text.data() + text.size() || number > max) {
      return Bad(fmt::format("{} must be a number from 0 to {}, not \"{}\"", key, max, text));
    }
    return number;
  }

  // `"cpu":"1","memory":"1Gi"` of those that are there.
  Result<std::string> Amounts(const Options& options,
                              std::initializer_list<std::string_view> resources) {
    std::string json;
    for (const std::string_view resource : resources) {
      const auto at = options.find(resource);
      if (at == options.end()) continue;
      if (!InRange(resource, at->second)) {
        return Bad(fmt::format("{} must be a quantity from 0 to {}, not \"{}\"", resource,
                               MostOf(resource), at->second));
      }
      json += fmt::format("{}\"{}\":\"{}\"", json.empty() ? "" : ",", resource, at->second);
    }
    return json;
  }

  // The members of a pod's spec.
  Result<std::string> PodSpec(const Options& options) {
    const Result<std::string> requests = Amounts(options, {"cpu", "memory"});
    if (!requests) return std::unexpected(requests.error());
    const Result<uint64_t> grace = Number(options, "grace", 30, 3600);
    if (!grace) return std::unexpected(grace.error());
    std::string spec = fmt::format(
        R"("containers":[{{"name":"c","image":"i","resources":{{"requests":{{{}}}}}}}],"terminationGracePeriodSeconds":{})",
        *requests, *grace);
    if (const auto at = options.find("priority"); at != options.end()) {
      if (!classes_.contains(at->second)) {
        return Bad(fmt::format("unknown class \"{}\"", at->second));
      }
      spec += fmt::format(R"(,"priorityClassName":"{}")", at->second);
    }
    if (const auto at = options.find("node"); at != options.end()) {
      if (!nodes_.contains(at->second)) return Bad(fmt::format("unknown node \"{}\"", at->second));
      spec += fmt::format(R"(,"nodeName":"{}")", at->second);
    }
    if (const auto at = options.find("scheduler"); at != options.end()) {
      if (Status good = CheckName(at->second); !good) return std::unexpected(good.error());
      spec += fmt::format(R"(,"schedulerName":"{}")", at->second);
    }
    return spec;
  }

  Status ReadClass() {
    if (line_.words.size() < 3) return Bad("class takes a name and value=NUMBER");
    if (Status good = CheckName(line_.words[1]); !good) return good;
    if (!classes_.insert(line_.words[1]).second) return Bad("the class is there already");
    Result<std::string> body = ClassBody(line_.words[1], 2);
    if (!body) return std::unexpected(body.error());
    scenario_.classes.push_back(std::move(*body));
    return {};
  }

  Result<std::string> ClassBody(std::string_view name, size_t first) {
    const Result<Options> options = ReadOptions(first, {"value", "preempts"});
    if (!options) return std::unexpected(options.error());
    const Result<uint64_t> value = Number(*options, "value", 0, 1'000'000'000);
    if (!value) return std::unexpected(value.error());
    const auto preempts = options->find("preempts");
    const bool never = preempts != options->end();
    if (never && preempts->second != "never") return Bad("preempts takes never");
    return fmt::format(R"({{"metadata":{{"name":"{}"}},"value":{}{}}})", name, *value,
                       never ? R"(,"preemptionPolicy":"Never")" : "");
  }

  Status ReadUser() {
    if (line_.words.size() != 2) return Bad("user takes one name");
    if (Status good = CheckName(line_.words[1]); !good) return good;
    const bool known = std::ranges::any_of(
        scenario_.users, [&](const User& user) { return user.name == line_.words[1]; });
    if (known) return Bad("the user is there already");
    scenario_.users.push_back({.name = line_.words[1], .actions = {}});
    in_user_ = true;
    return {};
  }

  Status ReadOwner() {
    if (line_.words.size() < 3) return Bad("owner takes a name and replicas=NUMBER");
    Owner owner{.name = line_.words[1], .replicas = 0, .pod = {}, .at_once = false};
    if (Status good = CheckName(owner.name); !good) return good;
    for (const Owner& other : scenario_.owners) {
      if (other.name == owner.name) return Bad("the owner is there already");
    }
    if (line_.words.back() == "at-once") {
      owner.at_once = true;
      line_.words.pop_back();
    }
    const Result<Options> options =
        ReadOptions(2, {"replicas", "cpu", "memory", "priority", "grace", "label", "group"});
    if (!options) return std::unexpected(options.error());
    const Result<uint64_t> replicas = Number(*options, "replicas", 1, 8);
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
    for (size_t i = 1; i < line_.words.size(); ++i) {
      const auto at = std::ranges::find(kFates, line_.words[i]);
      if (at == kFates.end() || at == kFates.begin()) {
        return Bad(fmt::format("unknown outcome \"{}\" of a write", line_.words[i]));
      }
      const auto fate = static_cast<Fate>(at - kFates.begin());
      if (std::ranges::find(scenario_.fates, fate) != scenario_.fates.end()) {
        return Bad(fmt::format("{} is said twice", line_.words[i]));
      }
      scenario_.fates.push_back(fate);
    }
    return scenario_.fates.empty() ? Bad("writes takes outcomes") : Status();
  }

  Status ReadBounds() {
    const Result<Options> options =
        ReadOptions(1, {"depth", "failures", "crashes", "timers", "states"});
    if (!options) return std::unexpected(options.error());
    Bounds& bounds = scenario_.bounds;
    const auto read = [&](std::string_view key, auto& into, uint64_t max) -> Status {
      const Result<uint64_t> number = Number(*options, key, into, max);
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

  Status ReadExpect() {
    const Result<Options> options = ReadOptions(1, {"evictions", "preemptions", "states"});
    if (!options) return std::unexpected(options.error());
    if (options->empty())
      return Bad("expect takes evictions=NUMBER, preemptions=NUMBER or states=NUMBER");
    if (options->contains("preemptions")) {
      const Result<uint64_t> most = Number(*options, "preemptions", 0, 100);
      if (!most) return std::unexpected(most.error());
      scenario_.preemptions = static_cast<uint32_t>(*most);
    }
    if (options->contains("evictions")) {
      if (scenario_.evictions) return Bad("evictions is said twice");
      const Result<uint64_t> most = Number(*options, "evictions", 0, 100);
      if (!most) return std::unexpected(most.error());
      scenario_.evictions = static_cast<uint32_t>(*most);
    }
    if (!options->contains("states")) return {};
    if (scenario_.whole_states > 0) return Bad("states is said twice");
    const Result<uint64_t> whole = Number(*options, "states", 0, 100'000'000);
    if (!whole) return std::unexpected(whole.error());
    scenario_.whole_states = *whole;
    return {};
  }

  Status ReadPlant() {
    if (line_.words.size() != 3) return Bad("plant takes a name and states=NUMBER");
    if (sim::FindPlanted(line_.words[1]) == nullptr) {
      return Bad(fmt::format("unknown defect \"{}\"", line_.words[1]));
    }
    const Result<Options> options = ReadOptions(2, {"states"});
    if (!options) return std::unexpected(options.error());
    const Result<uint64_t> states = Number(*options, "states", 0, 100'000'000);
    if (!states) return std::unexpected(states.error());
    scenario_.plants.push_back({.name = line_.words[1], .states = *states});
    return {};
  }

  // VERB KIND NAME [key=value ...]
  Status ReadAction(std::vector<Action>& into, size_t first) {
    const std::vector<std::string>& words = line_.words;
    if (words.size() < first + 3) return Bad("an event takes a verb, a kind and a name");
    const std::string& verb = words[first];
    const auto kind = std::ranges::find(kKinds, words[first + 1]);
    if (kind == kKinds.end()) return Bad(fmt::format("unknown kind \"{}\"", words[first + 1]));
    Action action{.verb = Action::Verb::kCreate,
                  .kind = static_cast<Action::Kind>(kind - kKinds.begin()),
                  .name = words[first + 2],
                  .body = {},
                  .text = {},
                  .line = line_.number};
    for (size_t i = first; i < words.size(); ++i) {
      action.text += (i == first ? "" : " ") + words[i];
    }
    if (Status good = CheckName(action.name); !good) return good;
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
        return ReadCreateQueue(action, first);
      case Action::Kind::kLocalQueue:
        return ReadCreateLocalQueue(action, first);
      case Action::Kind::kCohort:
        return ReadCreateCohort(action, first);
      case Action::Kind::kWorkload:
        return ReadCreateWorkload(action, first);
      case Action::Kind::kOwner:
      case Action::Kind::kFlavor:
        break;
    }
    return UnknownEvent(action);
  }

  // The group of a pod; empty when none is said. It needn't be there.
  Result<std::string> Group(const Options& options) {
    const auto at = options.find("group");
    if (at == options.end()) return std::string();
    if (Status good = CheckName(at->second); !good) return std::unexpected(good.error());
    scenario_.groups = true;
    return at->second;
  }

  Result<uint64_t> MinMember(const Options& options) {
    if (!options.contains("min")) return Bad("a podgroup takes min=NUMBER");
    return Number(options, "min", 0, 20);
  }

  Status ReadCreateGroup(Action& action, size_t first) {
    const Result<Options> options = ReadOptions(first, {"min", "priority"});
    if (!options) return std::unexpected(options.error());
    const Result<uint64_t> least = MinMember(*options);
    if (!least) return std::unexpected(least.error());
    std::string priority;
    if (const auto at = options->find("priority"); at != options->end()) {
      if (!classes_.contains(at->second)) {
        return Bad(fmt::format("unknown class \"{}\"", at->second));
      }
      priority = fmt::format(R"(,"priorityClassName":"{}")", at->second);
    }
    groups_.insert(action.name);
    scenario_.groups = true;
    action.body = fmt::format(
        R"({{"apiVersion":"scheduling.volcano.sh/v1beta1","kind":"PodGroup","metadata":{{"name":"{}"}},"spec":{{"minMember":{}{}}}}})",
        action.name, *least, priority);
    return {};
  }

  // ---- Quota ----------------------------------------------------------------------------------

  // A ClusterQueue, the LocalQueue of its name, and before the first of them the flavor.
  Status ReadQueue() {
    if (!std::exchange(scenario_.quota, true)) {
      scenario_.set_up.push_back({.verb = Action::Verb::kCreate,
                                  .kind = Action::Kind::kFlavor,
                                  .name = std::string(kFlavor),
                                  .body = Object("ResourceFlavor", kFlavor, "{}"),
                                  .text = {},
                                  .line = line_.number});
    }
    line_.words.insert(line_.words.begin(), "create");
    if (Status read = ReadAction(scenario_.set_up, 0); !read) return read;
    line_.words.resize(3);
    line_.words[1] = "localqueue";
    return ReadAction(scenario_.set_up, 0);
  }

  static std::string Object(std::string_view kind, std::string_view name, std::string_view spec) {
    return fmt::format(R"({{"apiVersion":"{}","kind":"{}","metadata":{{"name":"{}"}},"spec":{}}})",
                       kQuotaVersion, kind, name, spec);
  }

  // `"resourceGroups":[...]` of so much cpu.
  Result<std::string> QuotaOf(const Options& options) {
    const auto at = options.find("cpu");
    if (at == options.end() || !InRange("cpu", at->second)) {
      return Bad(fmt::format("cpu must be a quantity from 0 to {}", MostOf("cpu")));
    }
    return fmt::format(
        R"("resourceGroups":[{{"coveredResources":["cpu"],"flavors":[{{"name":"{}","resources":[{{"name":"cpu","nominalQuota":"{}"}}]}}]}}])",
        kFlavor, at->second);
  }

  // One of the policies that a file may name; empty when none is said.
  Result<std::string> PolicyOf(const Options& options, std::string_view key) {
    const auto at = options.find(key);
    if (at == options.end()) return std::string("Never");
    if (at->second == "lower") return std::string("LowerPriority");
    if (at->second == "newer" && key == "within") return std::string("LowerOrNewerEqualPriority");
    if (at->second == "any" && key == "reclaim") return std::string("Any");
    return Bad(fmt::format("{} takes lower or {}, not \"{}\"", key,
                           key == "within" ? "newer" : "any", at->second));
  }

  Status ReadCreateQueue(Action& action, size_t first) {
    const bool strict = line_.words.back() == "strict";
    if (strict) line_.words.pop_back();
    const Result<Options> options = ReadOptions(first, {"cpu", "cohort", "within", "reclaim"});
    if (!options) return std::unexpected(options.error());
    const Result<std::string> quota = QuotaOf(*options);
    if (!quota) return std::unexpected(quota.error());
    const Result<std::string> within = PolicyOf(*options, "within");
    if (!within) return std::unexpected(within.error());
    const Result<std::string> reclaim = PolicyOf(*options, "reclaim");
    if (!reclaim) return std::unexpected(reclaim.error());
    std::string cohort;
    if (const auto at = options->find("cohort"); at != options->end()) {
      if (Status good = CheckName(at->second); !good) return good;
      cohort = fmt::format(R"("cohortName":"{}",)", at->second);
    }
    made_.insert({action.kind, action.name});
    action.body = Object(
        "ClusterQueue", action.name,
        fmt::format(
            R"({{"namespaceSelector":{{}},"queueingStrategy":"{}",{}"preemption":{{"withinClusterQueue":"{}","reclaimWithinCohort":"{}"}},{}}})",
            strict ? "StrictFIFO" : "BestEffortFIFO", cohort, *within, *reclaim, *quota));
    return {};
  }

  Status ReadCreateLocalQueue(Action& action, size_t first) {
    if (Status none = ReadNothing(first); !none) return none;
    if (!made_.contains({Action::Kind::kQueue, action.name})) return NotMade(action);
    made_.insert({action.kind, action.name});
    action.body =
        Object("LocalQueue", action.name, fmt::format(R"({{"clusterQueue":"{}"}})", action.name));
    return {};
  }

  Status ReadCreateCohort(Action& action, size_t first) {
    const Result<Options> options = ReadOptions(first, {"parent"});
    if (!options) return std::unexpected(options.error());
    std::string parent;
    if (const auto at = options->find("parent"); at != options->end()) {
      if (Status good = CheckName(at->second); !good) return good;
      parent = fmt::format(R"("parentName":"{}")", at->second);
    }
    made_.insert({action.kind, action.name});
    action.body = Object("Cohort", action.name, fmt::format("{{{}}}", parent));
    return {};
  }

  Status ReadCreateWorkload(Action& action, size_t first) {
    const Result<Options> options = ReadOptions(first, {"queue", "cpu", "priority", "count"});
    if (!options) return std::unexpected(options.error());
    const auto queue = options->find("queue");
    if (queue == options->end()) return Bad("a workload takes queue=NAME");
    if (!made_.contains({Action::Kind::kQueue, queue->second}))
      return Bad(fmt::format("unknown queue \"{}\"", queue->second));
    const Result<std::string> requests = Amounts(*options, {"cpu"});
    if (!requests) return std::unexpected(requests.error());
    const Result<uint64_t> priority = Number(*options, "priority", 0, 1'000'000'000);
    if (!priority) return std::unexpected(priority.error());
    const Result<uint64_t> count = Number(*options, "count", 1, 100);
    if (!count) return std::unexpected(count.error());
    made_.insert({action.kind, action.name});
    scenario_.quota = true;
    action.body = Object(
        "Workload", action.name,
        fmt::format(
            R"({{"queueName":"{}","priority":{},"podSets":[{{"name":"main","count":{},"template":{{"spec":{{"restartPolicy":"Never","containers":[{{"name":"c","image":"i","resources":{{"requests":{{{}}}}}}}]}}}}}}]}})",
            queue->second, *priority, *count, *requests));
    if (scenario_.joint) {
      action.body.insert(
          action.body.find(R"(},"spec")"),
          fmt::format(
              R"(,"ownerReferences":[{{"apiVersion":"batch/v1","kind":"Job","name":"{0}","uid":"job-{0}","controller":true}}])",
              action.name));
    }
    return {};
  }

  Status ReadNothing(size_t first) {
    const Result<Options> options = ReadOptions(first, {});
    return options ? Status() : Status(std::unexpected(options.error()));
  }

  // What happens to what quota is about, but for deletions.
  Status ReadQuotaChange(Action& action, const std::string& verb, const Options& options) {
    const bool workload = action.kind == Action::Kind::kWorkload;
    if (verb == "update" && action.kind == Action::Kind::kQueue && Only(options, "cpu")) {
      const Result<std::string> quota = QuotaOf(options);
      if (!quota) return std::unexpected(quota.error());
      action.body = fmt::format(R"({{"spec":{{{}}}}})", *quota);
      return {};
    }
    if (verb == "update" && workload && Only(options, "priority")) {
      const Result<uint64_t> priority = Number(options, "priority", 0, 1'000'000'000);
      if (!priority) return std::unexpected(priority.error());
      action.body = fmt::format(R"({{"spec":{{"priority":{}}}}})", *priority);
      return {};
    }
    if (!options.empty()) return UnknownEvent(action);
    const bool stoppable =
        action.kind == Action::Kind::kQueue || action.kind == Action::Kind::kLocalQueue;
    if (stoppable && (verb == "stop" || verb == "resume")) {
      action.body =
          fmt::format(R"({{"spec":{{"stopPolicy":"{}"}}}})", verb == "stop" ? "Hold" : "None");
      return {};
    }
    if (!workload) return UnknownEvent(action);
    if (verb == "deactivate" || verb == "activate") {
      action.body = fmt::format(R"({{"spec":{{"active":{}}}}})", verb == "activate");
      return {};
    }
    action.verb = Action::Verb::kTell;
    if (verb == "finish") {
      action.body = R"({"type":"Finished","reason":"Succeeded","message":"It is done"})";
    } else if (verb == "evict") {
      action.body = R"({"type":"Evicted","reason":"NodeFailures","message":"Its nodes failed"})";
    } else {
      return UnknownEvent(action);
    }
    return {};
  }

  // The value of a label; empty when none is said.
  Result<std::string> Label(const Options& options) {
    const auto at = options.find("label");
    if (at == options.end()) return std::string();
    if (Status good = CheckName(at->second); !good) return std::unexpected(good.error());
    return at->second;
  }

  // Members of a budget's spec; `null` for the one of both that is not said.
  Result<std::string> Limits(const Options& options) {
    if (options.contains("min") == options.contains("max")) {
      return Bad("a budget takes min=NUMBER or max=NUMBER");
    }
    const std::string_view key = options.contains("min") ? "min" : "max";
    const Result<uint64_t> number = Number(options, key, 0, 20);
    if (!number) return std::unexpected(number.error());
    return fmt::format(R"("minAvailable":{},"maxUnavailable":{})",
                       key == "min" ? fmt::format("{}", *number) : "null",
                       key == "max" ? fmt::format("{}", *number) : "null");
  }

  Status ReadCreateBudget(Action& action, size_t first) {
    const Result<Options> options = ReadOptions(first, {"min", "max", "label"});
    if (!options) return std::unexpected(options.error());
    const Result<std::string> limits = Limits(*options);
    if (!limits) return std::unexpected(limits.error());
    const Result<std::string> label = Label(*options);
    if (!label) return std::unexpected(label.error());
    if (label->empty()) return Bad("a budget takes label=VALUE");
    budgets_.insert(action.name);
    action.body = fmt::format(
        R"({{"metadata":{{"name":"{}"}},"spec":{{"selector":{{"matchLabels":{{"example":"{}"}}}},{}}}}})",
        action.name, *label, *limits);
    return {};
  }

  Status ReadCreateNode(Action& action, size_t first) {
    const Result<Options> options = ReadOptions(first, {"cpu", "memory", "pods"});
    if (!options) return std::unexpected(options.error());
    Options all = *options;
    all.emplace("memory", "64Gi");
    all.emplace("pods", "110");
    if (!all.contains("cpu")) return Bad("a node takes cpu=AMOUNT");
    const Result<std::string> amounts = Amounts(all, {"cpu", "memory", "pods"});
    if (!amounts) return std::unexpected(amounts.error());
    nodes_.insert(action.name);
    if (nodes_.size() > kNodesMax) return Bad("too many nodes");
    action.body = fmt::format(
        R"({{"metadata":{{"name":"{0}"}},"status":{{"allocatable":{{{1}}},"capacity":{{{1}}},"conditions":[{{"type":"Ready","status":"True"}}]}}}})",
        action.name, *amounts);
    return {};
  }

  Status ReadCreatePod(Action& action, size_t first) {
    const Result<Options> options = ReadOptions(
        first,
        {"cpu", "memory", "priority", "grace", "node", "scheduler", "finalizer", "label", "group"});
    if (!options) return std::unexpected(options.error());
    const Result<std::string> spec = PodSpec(*options);
    if (!spec) return std::unexpected(spec.error());
    pods_.insert(action.name);
    if (pods_.size() > kPodsMax) return Bad("too many pods");
    std::string finalizers;
    if (const auto at = options->find("finalizer"); at != options->end()) {
      if (Status good = CheckName(at->second); !good) return good;
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

  [[nodiscard]] bool Made(const Action& action) const {
    switch (action.kind) {
      case Action::Kind::kPod:
        return pods_.contains(action.name);
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
        return groups_.contains(action.name);
      case Action::Kind::kQueue:
      case Action::Kind::kLocalQueue:
      case Action::Kind::kCohort:
      case Action::Kind::kFlavor:
      case Action::Kind::kWorkload:
        return made_.contains({action.kind, action.name});
    }
    return false;
  }
  Status NotMade(const Action& action) const {
    return Bad(fmt::format("no line above makes {} \"{}\"",
                           kKinds[static_cast<size_t>(action.kind)], action.name));
  }

  // What happens to an object that some line makes.
  Status ReadChange(Action& action, const std::string& verb, size_t first) {
    if (!Made(action)) return NotMade(action);
    const Result<Options> options =
        ReadOptions(first, {"grace", "label", "node", "min", "max", "replicas", "cpu", "priority"});
    if (!options) return std::unexpected(options.error());
    const bool graceful = action.kind == Action::Kind::kPod || action.kind == Action::Kind::kNode;
    if (verb == "delete" && (options->empty() || (graceful && Only(*options, "grace")))) {
      action.verb = Action::Verb::kDelete;
      const Result<uint64_t> grace = Number(*options, "grace", 0, 3600);
      if (!grace) return std::unexpected(grace.error());
      if (options->contains("grace")) {
        action.body = fmt::format(R"({{"gracePeriodSeconds":{}}})", *grace);
      }
      return {};
    }
    action.verb = Action::Verb::kPatch;
    if (action.kind == Action::Kind::kPod) return ReadPodChange(action, verb, *options);
    if (action.kind == Action::Kind::kNode) return ReadNodeChange(action, verb, *options);
    if (verb == "scale" && action.kind == Action::Kind::kOwner && Only(*options, "replicas")) {
      const Result<uint64_t> replicas = Number(*options, "replicas", 0, 8);
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
    if (action.kind >= Action::Kind::kQueue) return ReadQuotaChange(action, verb, *options);
    if (action.kind != Action::Kind::kBudget || verb != "update") return UnknownEvent(action);
    const Result<std::string> limits = Limits(*options);
    if (!limits) return std::unexpected(limits.error());
    if (options->size() > 1) return UnknownEvent(action);
    action.body = fmt::format(R"({{"spec":{{{}}}}})", *limits);
    return {};
  }

  [[nodiscard]] static bool Only(const Options& options, std::string_view key) {
    return options.size() == 1 && options.contains(key);
  }
  Status UnknownEvent(const Action& action) const {
    return Bad(fmt::format("unknown event \"{}\"", action.text));
  }

  Status ReadLabel(Action& action, const Options& options) {
    const std::string& label = options.find("label")->second;
    if (Status good = CheckName(label); !good) return good;
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
      if (!nodes_.contains(node)) return Bad(fmt::format("unknown node \"{}\"", node));
      if (verb == "nominate") return PatchStatus(action, "nominatedNodeName", node);
      action.verb = Action::Verb::kBind;
      action.body =
          fmt::format(R"({{"metadata":{{"name":"{}"}},"target":{{"kind":"Node","name":"{}"}}}})",
                      action.name, node);
      return {};
    }
    if (verb == "withdraw" && options.empty()) return PatchStatus(action, "nominatedNodeName", "");
    if (verb == "finish" && options.empty()) return PatchStatus(action, "phase", "Succeeded");
    return UnknownEvent(action);
  }

  static Status PatchStatus(Action& action, std::string_view member, std::string_view value) {
    action.verb = Action::Verb::kPatchStatus;
    action.body = fmt::format(R"({{"status":{{"{}":{}}}}})", member,
                              value.empty() ? "null" : fmt::format("\"{}\"", value));
    return {};
  }

  std::string_view text_;
  Line line_;
  bool in_user_ = false;
  std::set<std::string, std::less<>> nodes_;
  std::set<std::string, std::less<>> pods_;
  std::set<std::string, std::less<>> budgets_;
  std::set<std::string, std::less<>> classes_;
  std::set<std::string, std::less<>> groups_;
  std::set<std::pair<Action::Kind, std::string>> made_;  // Of what quota is about.
  Scenario scenario_;
};

}  // namespace

std::string MemberOf(std::string_view group) {
  if (group.empty()) return {};
  return fmt::format(R"(,"annotations":{{"scheduling.k8s.io/group-name":"{}"}})", group);
}

std::string_view ToString(Fate fate) { return kFates[static_cast<size_t>(fate)]; }

Result<Scenario> ParseScenario(std::string_view text, std::string_view file) {
  return Parser(text, file).Run();
}

}  // namespace berth::explore
