#include "explore/scenario_quota.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "api/groups.h"
#include "api/well_known.h"

namespace berth::explore {
namespace {

constexpr std::string_view kVersion = "kueue.x-k8s.io/v1beta2";
constexpr std::string_view kFlavor = "spot";
// The nodes of the flavor, where it has a topology.
constexpr std::string_view kFlavorLabel = "flavor";
// The level of nodes themselves, as lines call it.
constexpr std::string_view kHost = "host";
constexpr size_t kLevelsMax = 3;
// Of which there is quota, and which pods of workloads ask for.
constexpr auto kResources = std::to_array<std::string_view>({"cpu", "memory"});
// The pod set that a line begins with.
constexpr std::string_view kMain = "main";
constexpr auto kPodSetKeys = std::to_array<std::string_view>(
    {"cpu", "memory", "count", "min", "required", "preferred", "slice", "group"});
// What can't be the key of a flavor's label, beside levels.
constexpr auto kTakenKeys = std::to_array<std::string_view>(
    {"cpu", "memory", "pods", "count", "min", "required", "preferred", "slice", "group", "queue",
     "priority", "finalizer", "topology", "host", "flavor"});
constexpr auto kCheckStates = std::to_array<std::pair<std::string_view, std::string_view>>(
    {{"pending", "Pending"}, {"ready", "Ready"}, {"retry", "Retry"}, {"rejected", "Rejected"}});

std::string Object(std::string_view kind, std::string_view name, std::string_view spec) {
  return fmt::format(R"({{"apiVersion":"{}","kind":"{}","metadata":{{"name":"{}"}},"spec":{}}})",
                     kVersion, kind, name, spec);
}

std::string_view LabelOf(std::string_view level) {
  return level == kHost ? api::kHostnameLabel : level;
}

}  // namespace

bool QuotaWords::Made(const Action& action) const {
  return made_.contains({action.kind, action.name});
}

Status QuotaWords::UnknownEvent(const Action& action) const {
  return lines_.Bad(fmt::format("unknown event \"{}\"", action.text));
}

Status QuotaWords::ReadNothing(size_t first) const {
  const Result<Options> options = lines_.ReadOptions(first, {});
  return options ? Status() : Status(std::unexpected(options.error()));
}

// ---- What is made ----------------------------------------------------------------------------

std::optional<Action> QuotaWords::OnlyFlavor() {
  if (!flavors_.empty()) return std::nullopt;
  Action action{.verb = Action::Verb::kCreate,
                .kind = Action::Kind::kFlavor,
                .name = std::string(kFlavor),
                .body = Object("ResourceFlavor", kFlavor, "{}"),
                .text = {},
                .line = lines_.number()};
  if (!topology_.empty()) {
    action.body = Object("ResourceFlavor", kFlavor,
                         fmt::format(R"({{"nodeLabels":{{"{}":"{}"}},"topologyName":"{}"}})",
                                     kFlavorLabel, kFlavor, topology_));
  }
  made_.insert({action.kind, action.name});
  flavors_.push_back(action.name);
  bodies_[action.name] = action.body;
  return action;
}

Status QuotaWords::ReadCreate(Action& action, size_t first) {
  switch (action.kind) {
    case Action::Kind::kQueue:
      return ReadQueue(action, first);
    case Action::Kind::kLocalQueue:
      return ReadLocalQueue(action, first);
    case Action::Kind::kCohort:
      return ReadCohort(action, first);
    case Action::Kind::kTopology:
      return ReadTopology(action, first);
    case Action::Kind::kFlavor:
      return ReadFlavor(action, first);
    case Action::Kind::kCheck:
      return ReadCheck(action, first);
    case Action::Kind::kWorkload:
      return ReadWorkload(action, first);
    case Action::Kind::kPod:
    case Action::Kind::kNode:
    case Action::Kind::kBudget:
    case Action::Kind::kClass:
    case Action::Kind::kOwner:
    case Action::Kind::kGroup:
    case Action::Kind::kGroupQueue:
    case Action::Kind::kJob:
      break;
  }
  return UnknownEvent(action);
}

std::vector<std::string> QuotaWords::quota_keys() const {
  std::vector<std::string> keys;
  for (const std::string& flavor : flavors_) {
    for (const std::string_view resource : kResources)
      keys.push_back(makes_flavors_ ? fmt::format("{}.{}", flavor, resource)
                                    : std::string(resource));
  }
  return keys;
}

// `"resourceGroups":[...]`: flavors that have the same resources are a group.
Result<std::string> QuotaWords::QuotaOf(const Options& options) const {
  struct Group {
    std::vector<std::string_view> resources;
    std::string flavors;
  };
  std::vector<Group> groups;
  const std::vector<std::string> keys = quota_keys();
  for (size_t i = 0; i < flavors_.size(); ++i) {
    Group has;
    std::string amounts;
    for (size_t r = 0; r < kResources.size(); ++r) {
      const auto at = options.find(keys[i * kResources.size() + r]);
      if (at == options.end()) continue;
      if (!InRange(kResources[r], at->second))
        return lines_.Bad(fmt::format("{} must be a quantity from 0 to {}, not \"{}\"", at->first,
                                      MostOf(kResources[r]), at->second));
      has.resources.push_back(kResources[r]);
      amounts += fmt::format(R"({}{{"name":"{}","nominalQuota":"{}"}})", amounts.empty() ? "" : ",",
                             kResources[r], at->second);
    }
    if (has.resources.empty()) continue;
    auto group = std::ranges::find(groups, has.resources, &Group::resources);
    const bool shares = std::ranges::any_of(groups, [&](const Group& other) {
      return std::ranges::find_first_of(other.resources, has.resources) != other.resources.end();
    });
    if (group == groups.end() && shares)
      return lines_.Bad(
          fmt::format("{} has some of the resources of another flavor, and not all", flavors_[i]));
    if (group == groups.end()) group = groups.insert(group, has);
    group->flavors += fmt::format(R"({}{{"name":"{}","resources":[{}]}})",
                                  group->flavors.empty() ? "" : ",", flavors_[i], amounts);
  }
  if (groups.empty()) return lines_.Bad(fmt::format("a queue takes {}=AMOUNT", keys.front()));
  std::string text;
  for (const Group& group : groups) {
    text +=
        fmt::format(R"({}{{"coveredResources":["{}"],"flavors":[{}]}})", text.empty() ? "" : ",",
                    fmt::join(group.resources, R"(",")"), group.flavors);
  }
  return fmt::format(R"("resourceGroups":[{}])", text);
}

// One of the policies that a file may name; empty when none is said.
Result<std::string> QuotaWords::PolicyOf(const Options& options, std::string_view key) const {
  const auto at = options.find(key);
  if (at == options.end()) return std::string("Never");
  if (at->second == "lower") return std::string("LowerPriority");
  if (at->second == "newer" && key == "within") return std::string("LowerOrNewerEqualPriority");
  if (at->second == "any" && key == "reclaim") return std::string("Any");
  return lines_.Bad(fmt::format("{} takes lower or {}, not \"{}\"", key,
                                key == "within" ? "newer" : "any", at->second));
}

// `"admissionChecksStrategy":{...},` of those named, with commas between; empty for none. CHECK, or
// CHECK:FLAVOR of who gets that flavor.
Result<std::string> QuotaWords::ChecksOf(const Options& options) const {
  const auto at = options.find("checks");
  if (at == options.end()) return std::string();
  std::string checks;
  for (std::string_view rest = at->second; !rest.empty();) {
    const std::string_view word = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(word.size() + 1, rest.size()));
    const std::string name(word.substr(0, word.find(':')));
    if (!made_.contains({Action::Kind::kCheck, name}))
      return lines_.Bad(fmt::format("unknown check \"{}\"", name));
    std::string only;
    if (name.size() < word.size()) {
      const std::string flavor(word.substr(name.size() + 1));
      if (!made_.contains({Action::Kind::kFlavor, flavor}))
        return lines_.Bad(fmt::format("unknown flavor \"{}\"", flavor));
      only = fmt::format(R"(,"onFlavors":["{}"])", flavor);
    }
    checks += fmt::format(R"({}{{"name":"{}"{}}})", checks.empty() ? "" : ",", name, only);
  }
  return fmt::format(R"("admissionChecksStrategy":{{"admissionChecks":[{}]}},)", checks);
}

Status QuotaWords::ReadQueue(Action& action, size_t first) {
  const bool strict = lines_.words().back() == "strict";
  if (strict) lines_.words().pop_back();
  const std::vector<std::string> keys = quota_keys();
  std::vector<std::string_view> allowed = {"cohort", "within", "reclaim", "checks"};
  allowed.insert(allowed.end(), keys.begin(), keys.end());
  const Result<Options> options = lines_.ReadOptions(first, allowed);
  if (!options) return std::unexpected(options.error());
  const Result<std::string> quota = QuotaOf(*options);
  if (!quota) return std::unexpected(quota.error());
  const Result<std::string> within = PolicyOf(*options, "within");
  if (!within) return std::unexpected(within.error());
  const Result<std::string> reclaim = PolicyOf(*options, "reclaim");
  if (!reclaim) return std::unexpected(reclaim.error());
  const Result<std::string> checks = ChecksOf(*options);
  if (!checks) return std::unexpected(checks.error());
  std::string cohort;
  if (const auto at = options->find("cohort"); at != options->end()) {
    if (Status good = lines_.CheckName(at->second); !good) return good;
    cohort = fmt::format(R"("cohortName":"{}",)", at->second);
  }
  made_.insert({action.kind, action.name});
  action.body = Object(
      "ClusterQueue", action.name,
      fmt::format(
          R"({{"namespaceSelector":{{}},"queueingStrategy":"{}",{}{}"preemption":{{"withinClusterQueue":"{}","reclaimWithinCohort":"{}"}},{}}})",
          strict ? "StrictFIFO" : "BestEffortFIFO", cohort, *checks, *within, *reclaim, *quota));
  return {};
}

Status QuotaWords::ReadLocalQueue(Action& action, size_t first) {
  if (Status none = ReadNothing(first); !none) return none;
  if (!made_.contains({Action::Kind::kQueue, action.name}))
    return lines_.Bad(fmt::format("no line above makes localqueue \"{}\"", action.name));
  made_.insert({action.kind, action.name});
  action.body =
      Object("LocalQueue", action.name, fmt::format(R"({{"clusterQueue":"{}"}})", action.name));
  return {};
}

Status QuotaWords::ReadCohort(Action& action, size_t first) {
  const Result<Options> options = lines_.ReadOptions(first, {"parent"});
  if (!options) return std::unexpected(options.error());
  std::string parent;
  if (const auto at = options->find("parent"); at != options->end()) {
    if (Status good = lines_.CheckName(at->second); !good) return good;
    parent = fmt::format(R"("parentName":"{}")", at->second);
  }
  made_.insert({action.kind, action.name});
  action.body = Object("Cohort", action.name, fmt::format("{{{}}}", parent));
  return {};
}

// One that a line above makes; or the same again, once it was deleted.
Status QuotaWords::ReadFlavor(Action& action, size_t first) {
  if (Made(action) && lines_.indented()) {
    if (Status none = ReadNothing(first); !none) return none;
    action.body = bodies_[action.name];
    return {};
  }
  if (lines_.indented()) return UnknownEvent(action);
  if (Made(action)) return lines_.Bad("the flavor is there already");
  Result<Options> labels = lines_.ReadPairs(first);
  if (!labels) return std::unexpected(labels.error());
  std::string topology;
  if (const auto at = labels->find("topology"); at != labels->end()) {
    if (at->second != topology_)
      return lines_.Bad(fmt::format("unknown topology \"{}\"", at->second));
    topology = fmt::format(R"(,"topologyName":"{}")", at->second);
    labels->erase(at);
    if (labels->empty()) return lines_.Bad("a flavor of a topology takes KEY=VALUE of its nodes");
  }
  for (const auto& [key, value] : *labels) {
    if (Status good = lines_.CheckName(key); !good) return good;
    if (Status good = lines_.CheckName(value); !good) return good;
    const bool taken = std::ranges::find(kTakenKeys, key) != kTakenKeys.end() ||
                       std::ranges::find(levels_, key) != levels_.end();
    if (taken) return lines_.Bad(fmt::format("{} means something else already", key));
    keys_.insert(key);
  }
  made_.insert({action.kind, action.name});
  makes_flavors_ = true;
  flavors_.push_back(action.name);
  action.body = Object("ResourceFlavor", action.name,
                       fmt::format(R"({{"nodeLabels":{{{}}}{}}})", LabelsIn(*labels), topology));
  bodies_[action.name] = action.body;
  return {};
}

// `"KEY":"VALUE"` of those labels of flavors that are there.
std::string QuotaWords::LabelsIn(const Options& options) const {
  std::string labels;
  for (const std::string& key : keys_) {
    const auto at = options.find(key);
    if (at == options.end()) continue;
    labels += fmt::format(R"({}"{}":"{}")", labels.empty() ? "" : ",", key, at->second);
  }
  return labels;
}

// One that may bring nodes, if it doesn't say that it brings none.
Status QuotaWords::ReadCheck(Action& action, size_t first) {
  const Result<Options> options = lines_.ReadOptions(first, {"nodes"});
  if (!options) return std::unexpected(options.error());
  std::string_view controller = "kueue.x-k8s.io/provisioning-request";
  if (const auto at = options->find("nodes"); at != options->end()) {
    if (at->second != "none") return lines_.Bad("nodes is none, or isn't said");
    controller = "example.com/checks";
  }
  made_.insert({action.kind, action.name});
  action.body = Object("AdmissionCheck", action.name,
                       fmt::format(R"({{"controllerName":"{}"}})", controller));
  return {};
}

// ---- Topologies ------------------------------------------------------------------------------

Status QuotaWords::ReadTopology(Action& action, size_t first) {
  const bool again = Made(action);
  std::vector<std::string> levels(lines_.words().begin() + static_cast<ptrdiff_t>(first),
                                  lines_.words().end());
  if (again && levels.empty()) levels = levels_;
  if (!again && !topology_.empty()) return lines_.Bad("there is a topology already");
  if (!again && !flavors_.empty()) return lines_.Bad("a topology comes before flavors");
  if (levels.empty() || levels.size() > kLevelsMax)
    return lines_.Bad(fmt::format("a topology takes 1 to {} levels", kLevelsMax));
  std::string text;
  for (const std::string& level : levels) {
    if (Status good = lines_.CheckName(level); !good) return good;
    if (level == kHost && &level != &levels.back())
      return lines_.Bad("host is the lowest level of a topology");
    if (std::ranges::count(levels, level) > 1)
      return lines_.Bad(fmt::format("{} is said twice", level));
    text += fmt::format(R"({}{{"nodeLabel":"{}"}})", text.empty() ? "" : ",", LabelOf(level));
  }
  made_.insert({action.kind, action.name});
  topology_ = action.name;
  levels_ = std::move(levels);
  action.body = Object("Topology", action.name, fmt::format(R"({{"levels":[{}]}})", text));
  return {};
}

std::vector<std::string> QuotaWords::node_keys() const {
  std::vector<std::string> keys = levels_;
  std::erase(keys, kHost);
  keys.insert(keys.end(), keys_.begin(), keys_.end());
  return keys;
}

Result<std::string> QuotaWords::LabelsOfNode(const std::string& name,
                                             const Options& options) const {
  for (const std::string& key : node_keys()) {
    const auto at = options.find(key);
    if (at == options.end() && keys_.contains(key)) continue;
    if (at == options.end()) return lines_.Bad(fmt::format("a node takes {}=NAME", key));
    if (Status good = lines_.CheckName(at->second); !good) return std::unexpected(good.error());
  }
  std::string labels = LabelsIn(options);
  const auto add = [&](std::string_view key, std::string_view value) {
    labels += fmt::format(R"({}"{}":"{}")", labels.empty() ? "" : ",", key, value);
  };
  if (!topology_.empty()) {
    add(api::kHostnameLabel, name);
    if (!makes_flavors_) add(kFlavorLabel, kFlavor);
    for (const std::string& level : levels_) {
      if (level != kHost) add(level, options.find(level)->second);
    }
  }
  return labels.empty() ? labels : fmt::format(R"(,"labels":{{{}}})", labels);
}

// `"topologyRequest":{...},` of the level and slices that are named; empty for none.
Result<std::string> QuotaWords::TopologyRequestOf(const Options& options) const {
  const bool required = options.contains("required");
  if (required && options.contains("preferred"))
    return lines_.Bad("a workload takes required=LEVEL or preferred=LEVEL");
  std::string request;
  if (required || options.contains("preferred")) {
    const std::string_view key = required ? "required" : "preferred";
    const std::string& level = options.find(key)->second;
    if (std::ranges::find(levels_, level) == levels_.end())
      return lines_.Bad(fmt::format("unknown level \"{}\"", level));
    request = fmt::format(R"("{}":"{}")", key, LabelOf(level));
  }
  const Result<std::string> slice = SliceOf(options);
  if (!slice) return slice;
  if (!slice->empty()) request += (request.empty() ? "" : ",") + *slice;
  return request.empty() ? request : fmt::format(R"("topologyRequest":{{{}}},)", request);
}

// LEVEL:COUNT
Result<std::string> QuotaWords::SliceOf(const Options& options) const {
  const auto at = options.find("slice");
  if (at == options.end()) return std::string();
  const std::string level = at->second.substr(0, at->second.find(':'));
  if (std::ranges::find(levels_, level) == levels_.end())
    return lines_.Bad(fmt::format("unknown level \"{}\"", level));
  const Options size = {
      {"slice", at->second.substr(std::min(level.size() + 1, at->second.size()))}};
  const Result<uint64_t> number = lines_.Number(size, "slice", 1, 100);
  if (!number) return std::unexpected(number.error());
  if (*number == 0) return lines_.Bad("slice takes LEVEL:COUNT of at least 1");
  return fmt::format(R"("podSetSliceRequiredTopology":"{}","podSetSliceSize":{})", LabelOf(level),
                     *number);
}

// ---- Workloads -------------------------------------------------------------------------------

// Pods that are alike.
Result<std::string> QuotaWords::PodSetOf(std::string_view name, const Options& options) const {
  const Result<std::string> requests =
      lines_.Amounts(options, {kResources.begin(), kResources.end()});
  if (!requests) return std::unexpected(requests.error());
  const Result<uint64_t> count = lines_.Number(options, "count", 1, 100);
  if (!count) return std::unexpected(count.error());
  std::string least;
  if (options.contains("min")) {
    const Result<uint64_t> min = lines_.Number(options, "min", 1, *count);
    if (!min) return std::unexpected(min.error());
    if (*min == 0) return lines_.Bad("min must be at least 1");
    least = fmt::format(R"("minCount":{},)", *min);
  }
  const Result<std::string> topology = TopologyRequestOf(options);
  if (!topology) return std::unexpected(topology.error());
  for (const std::string& key : keys_) {
    const auto at = options.find(key);
    if (at == options.end()) continue;
    if (Status good = lines_.CheckName(at->second); !good) return std::unexpected(good.error());
  }
  std::string group;
  if (const auto at = options.find("group"); at != options.end()) {
    if (!scenario_.joint) return lines_.Bad("pods are of a group where the scenario is joint");
    if (Status good = lines_.CheckName(at->second); !good) return std::unexpected(good.error());
    scenario_.groups = true;
    group = fmt::format(R"("metadata":{{"annotations":{{"{}":"{}"}}}},)", api::kGroupAnnotation,
                        at->second);
  }
  const std::string labels = LabelsIn(options);
  const std::string selector =
      labels.empty() ? "" : fmt::format(R"("nodeSelector":{{{}}},)", labels);
  return fmt::format(
      R"({{"name":"{}","count":{},{}{}"template":{{{}"spec":{{{}"restartPolicy":"Never","containers":[{{"name":"c","image":"i","resources":{{"requests":{{{}}}}}}}]}}}}}})",
      name, *count, least, *topology, group, selector, *requests);
}

// `,{...}` of each `+ NAME key=value ...` from `first` on.
Result<std::string> QuotaWords::MorePodSets(size_t first) const {
  const std::vector<std::string>& words = lines_.words();
  std::vector<std::string_view> allowed(kPodSetKeys.begin(), kPodSetKeys.end());
  allowed.insert(allowed.end(), keys_.begin(), keys_.end());
  std::set<std::string_view> names = {kMain};
  std::string sets;
  while (first < words.size()) {
    if (first + 1 == words.size()) return lines_.Bad("+ takes the name of a pod set");
    const std::string& name = words[first + 1];
    if (Status good = lines_.CheckName(name); !good) return std::unexpected(good.error());
    if (!names.insert(name).second)
      return lines_.Bad(fmt::format("pod set {} is there already", name));
    const auto next =
        std::find(words.begin() + static_cast<ptrdiff_t>(first) + 2, words.end(), "+");
    const auto last = static_cast<size_t>(next - words.begin());
    const Result<Options> options = lines_.ReadOptions(first + 2, allowed, last);
    if (!options) return std::unexpected(options.error());
    const Result<std::string> set = PodSetOf(name, *options);
    if (!set) return set;
    sets += "," + *set;
    first = last;
  }
  return sets;
}

Status QuotaWords::ReadWorkload(Action& action, size_t first) {
  const auto more_sets = std::ranges::find(lines_.words(), "+");
  const auto last = static_cast<size_t>(more_sets - lines_.words().begin());
  std::vector<std::string_view> allowed = {"queue", "priority", "finalizer"};
  allowed.insert(allowed.end(), kPodSetKeys.begin(), kPodSetKeys.end());
  allowed.insert(allowed.end(), keys_.begin(), keys_.end());
  const Result<Options> options = lines_.ReadOptions(first, allowed, last);
  if (!options) return std::unexpected(options.error());
  const auto queue = options->find("queue");
  if (queue == options->end()) return lines_.Bad("a workload takes queue=NAME");
  if (!made_.contains({Action::Kind::kQueue, queue->second}))
    return lines_.Bad(fmt::format("unknown queue \"{}\"", queue->second));
  const Result<uint64_t> priority = lines_.Number(*options, "priority", 0, 1'000'000'000);
  if (!priority) return std::unexpected(priority.error());
  const Result<std::string> main = PodSetOf(kMain, *options);
  if (!main) return std::unexpected(main.error());
  const Result<std::string> others = MorePodSets(last);
  if (!others) return std::unexpected(others.error());
  made_.insert({action.kind, action.name});
  scenario_.quota = true;
  action.body = Object("Workload", action.name,
                       fmt::format(R"({{"queueName":"{}","priority":{},"podSets":[{}{}]}})",
                                   queue->second, *priority, *main, *others));
  std::string more;
  if (const auto at = options->find("finalizer"); at != options->end()) {
    if (Status good = lines_.CheckName(at->second); !good) return good;
    more = fmt::format(R"(,"finalizers":["example.com/{}"])", at->second);
  }
  if (scenario_.joint) {
    more += fmt::format(
        R"(,"ownerReferences":[{{"apiVersion":"batch/v1","kind":"Job","name":"{0}","uid":"job-{0}","controller":true}}])",
        action.name);
  }
  action.body.insert(action.body.find(R"(},"spec")"), more);
  return {};
}

// ---- What happens to it ----------------------------------------------------------------------

Status QuotaWords::ReadChange(Action& action, const std::string& verb, const Options& options,
                              const Names& nodes) const {
  if (action.kind == Action::Kind::kWorkload)
    return ReadWorkloadChange(action, verb, options, nodes);
  if (verb == "update" && action.kind == Action::Kind::kQueue) {
    for (const std::vector<std::string> keys = quota_keys(); const auto& [key, value] : options) {
      if (std::ranges::find(keys, key) == keys.end()) return UnknownEvent(action);
    }
    const Result<std::string> quota = QuotaOf(options);
    if (!quota) return std::unexpected(quota.error());
    action.body = fmt::format(R"({{"spec":{{{}}}}})", *quota);
    return {};
  }
  if (!options.empty()) return UnknownEvent(action);
  const bool stoppable =
      action.kind == Action::Kind::kQueue || action.kind == Action::Kind::kLocalQueue;
  if (stoppable && (verb == "stop" || verb == "drain" || verb == "resume")) {
    action.body =
        fmt::format(R"({{"spec":{{"stopPolicy":"{}"}}}})",
                    verb == "stop" ? "Hold" : (verb == "drain" ? "HoldAndDrain" : "None"));
    return {};
  }
  if (action.kind != Action::Kind::kFlavor) return UnknownEvent(action);
  if (verb == "taint") {
    action.body = R"({"spec":{"nodeTaints":[{"key":"example.com/away","effect":"NoSchedule"}]}})";
  } else if (verb == "untaint") {
    action.body = R"({"spec":{"nodeTaints":null}})";
  } else {
    return UnknownEvent(action);
  }
  return {};
}

Status QuotaWords::ReadWorkloadChange(Action& action, const std::string& verb,
                                      const Options& options, const Names& nodes) const {
  if (verb == "update" && Only(options, "priority")) {
    const Result<uint64_t> priority = lines_.Number(options, "priority", 0, 1'000'000'000);
    if (!priority) return std::unexpected(priority.error());
    action.body = fmt::format(R"({{"spec":{{"priority":{}}}}})", *priority);
    return {};
  }
  if (verb == "answer") return ReadAnswer(action, options);
  if (verb == "mark") return ReadMark(action, options, nodes);
  if (verb == "reclaim" && Only(options, "count")) {
    const Result<uint64_t> count = lines_.Number(options, "count", 0, 100);
    if (!count) return std::unexpected(count.error());
    action.verb = Action::Verb::kPatchStatus;
    action.body =
        fmt::format(R"({{"status":{{"reclaimablePods":[{{"name":"main","count":{}}}]}}}})", *count);
    return {};
  }
  if (!options.empty()) return UnknownEvent(action);
  if (verb == "unmark") {
    action.verb = Action::Verb::kPatchStatus;
    action.body = R"({"status":{"unhealthyNodes":null}})";
    return {};
  }
  if (verb == "deactivate" || verb == "activate") {
    action.body = fmt::format(R"({{"spec":{{"active":{}}}}})", verb == "activate");
    return {};
  }
  if (verb == "release") {
    action.body = R"({"metadata":{"finalizers":null}})";
    return {};
  }
  return ReadTold(action, verb, options);
}

Status QuotaWords::ReadTold(Action& action, const std::string& verb, const Options& options) const {
  action.verb = Action::Verb::kTell;
  if (options.empty() && verb == "finish") {
    action.body = R"({"type":"Finished","reason":"Succeeded","message":"It is done"})";
  } else if (options.empty() && verb == "evict") {
    action.body = R"({"type":"Evicted","reason":"NodeFailures","message":"Its nodes failed"})";
  } else if (options.empty() && verb == "replace") {
    action.body = R"({"type":"Evicted","reason":"PodsReplaced","message":"Some of its pods are"})";
  } else if (options.empty() && (verb == "hold" || verb == "resume")) {
    action.body = fmt::format(
        R"({{"type":"QuotaReserved","status":"False","reason":"{}","message":"Its owner says so"}})",
        verb == "hold" ? "OnHold" : "Pending");
  } else if (options.empty() && verb == "requeue") {
    action.body = R"({"type":"Requeued","reason":"PodsReplaced","message":"Its pods are there"})";
  } else {
    return UnknownEvent(action);
  }
  return {};
}

Status QuotaWords::ReadAnswer(Action& action, const Options& options) const {
  const auto check = options.find("check");
  const auto state = options.find("state");
  if (options.size() != 2 || check == options.end() || state == options.end())
    return UnknownEvent(action);
  if (!made_.contains({Action::Kind::kCheck, check->second}))
    return lines_.Bad(fmt::format("unknown check \"{}\"", check->second));
  const auto known = std::ranges::find(kCheckStates, state->second,
                                       &std::pair<std::string_view, std::string_view>::first);
  if (known == kCheckStates.end())
    return lines_.Bad(
        fmt::format("state takes pending, ready, retry or rejected, not \"{}\"", state->second));
  action.verb = Action::Verb::kAnswer;
  action.body = fmt::format(R"({{"name":"{}","state":"{}"}})", check->second, known->second);
  return {};
}

Status QuotaWords::ReadMark(Action& action, const Options& options, const Names& nodes) const {
  if (!Only(options, "node")) return UnknownEvent(action);
  const std::string& node = options.find("node")->second;
  if (!nodes.contains(node)) return lines_.Bad(fmt::format("unknown node \"{}\"", node));
  action.verb = Action::Verb::kPatchStatus;
  action.body = fmt::format(R"({{"status":{{"unhealthyNodes":[{{"name":"{}"}}]}}}})", node);
  return {};
}

}  // namespace berth::explore
