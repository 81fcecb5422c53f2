#include "sim/group_queues.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "api/groups.h"
#include "api/quantity.h"
#include "base/check.h"
#include "codec/decode.h"

namespace berth::sim {
namespace {

constexpr std::string_view kDefault = "default";
constexpr std::string_view kRoot = "root";
constexpr size_t kLevelsMax = 10;

using Amounts = std::map<std::string, int64_t, std::less<>>;

std::optional<api::Queue> QueueOf(const Truth& truth, std::string_view name) {
  // Of the whole cluster: no namespace.
  const auto at = truth.others().find(std::string(kGroupQueuesPrefix) + "/" + std::string(name));
  if (at == truth.others().end()) return std::nullopt;
  Result<api::Queue> queue = codec::Decoder().Queue(at->second.view());
  CHECK(queue.has_value());
  return *std::move(queue);
}

// It, and those above it.
std::vector<std::string> WayUp(const Truth& truth, std::string_view name) {
  std::vector<std::string> way;
  std::string queue(name);
  while (way.size() < kLevelsMax) {
    way.push_back(queue);
    if (queue == kRoot) break;
    const std::optional<api::Queue> object = QueueOf(truth, queue);
    queue = object && !object->parent.empty() ? object->parent : std::string(kRoot);
  }
  return way;
}

bool IsIn(const Truth& truth, std::string_view queue, std::string_view above) {
  const std::vector<std::string> way = WayUp(truth, queue);
  return std::ranges::find(way, above) != way.end();
}

void Add(Amounts& sum, const api::ResourceList& list) {
  for (const api::ResourceAmount& a : list) sum[a.name] += a.amount;
}

Amounts OfMembers(const Truth& truth, std::string_view group) {
  Amounts sum;
  for (const auto& [key, pod] : truth.pods()) {
    if (pod.group != group || pod.node_name.empty() || pod.terminal()) continue;
    Add(sum, pod.requests);
    ++sum["pods"];
  }
  return sum;
}

// Of all groups of the queue and those below it.
struct Usage {
  Amounts on_nodes;
  Amounts kept;
};
Usage UsageOf(const Truth& truth, std::string_view queue, std::string_view but_for) {
  Usage usage;
  for (auto at = truth.others().lower_bound(std::string(kGroupsPrefix));
       at != truth.others().end() && at->first.starts_with(kGroupsPrefix); ++at) {
    const std::string key = at->first.substr(kGroupsPrefix.size());
    const api::PodGroup group = codec::Decoder().PodGroup(at->second.view()).value();
    if (!IsIn(truth, group.queue.empty() ? kDefault : std::string_view(group.queue), queue))
      continue;
    const Amounts have = OfMembers(truth, key);
    for (const auto& [name, amount] : have) usage.on_nodes[name] += amount;
    if (group.phase != "Inqueue" || key == but_for) continue;
    for (const auto& [name, text] : group.min_resources) {
      const int64_t asked = api::ParseScaled(text, name == "cpu" ? -3 : 0).value();
      const auto known = have.find(name);
      usage.kept[name] += std::max<int64_t>(0, asked - (known == have.end() ? 0 : known->second));
    }
  }
  return usage;
}

}  // namespace

bool QueueIsBarred(const Truth& truth, std::string_view queue) {
  for (const std::string& name : WayUp(truth, queue)) {
    const std::optional<api::Queue> object = QueueOf(truth, name);
    const bool implied = name == kRoot || (name == queue && name == kDefault);
    if (!object && !implied) return true;
    if (object && (!api::IsOpen(*object) || object->meta.deletion_time)) return true;
  }
  return false;
}

bool QueueHas(const Truth& truth, std::string_view queue, const api::ResourceList& amounts,
              std::string_view but_for) {
  for (const std::string& name : WayUp(truth, queue)) {
    const std::optional<api::Queue> object = QueueOf(truth, name);
    if (!object) continue;
    Usage usage = UsageOf(truth, name, but_for);
    for (const api::ResourceAmount& a : amounts) {
      const std::optional<int64_t> most = api::Find(object->capability, a.name);
      if (most && *most - usage.on_nodes[a.name] - usage.kept[a.name] < a.amount) return false;
    }
  }
  return true;
}

std::string OverfullQueue(const Truth& truth, std::string_view queue) {
  for (const std::string& name : WayUp(truth, queue)) {
    const std::optional<api::Queue> object = QueueOf(truth, name);
    if (!object) continue;
    Usage usage = UsageOf(truth, name, "");
    for (const api::ResourceAmount& a : object->capability) {
      if (usage.on_nodes[a.name] > a.amount) return name;
    }
  }
  return {};
}

}  // namespace berth::sim
