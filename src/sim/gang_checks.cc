#include "sim/gang_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "api/quantity.h"
#include "api/types.h"
#include "base/check.h"
#include "codec/decode.h"
#include "control/scheduler.h"
#include "sim/group_queues.h"

namespace berth::sim {
namespace {

bool Ours(const Truth::PodFacts& pod) {
  const std::vector<std::string> names = control::SchedulerOptions().scheduler_names;
  return std::ranges::find(names, pod.scheduler_name) != names.end();
}

GroupFacts FactsOf(const std::string& key, std::string_view document) {
  const Result<api::PodGroup> group = codec::Decoder().PodGroup(document);
  CHECK(group.has_value());
  GroupFacts facts{.key = key,
                   .uid = group->meta.uid,
                   .min_member = group->min_member,
                   .phase = group->phase.empty() ? "Pending" : group->phase,
                   .queue = group->queue.empty() ? "default" : group->queue};
  for (const auto& [name, text] : group->min_resources)
    facts.kept.push_back({name, api::ParseScaled(text, name == "cpu" ? -3 : 0).value()});
  return facts;
}

// What of it none of its members on nodes has, or so many more as it needs would take.
api::ResourceList AskedOf(const Truth& truth, const GroupFacts& group, const GroupCounts& counts) {
  api::ResourceList asked = group.kept;
  for (const auto& [key, pod] : truth.pods()) {
    if (pod.group != group.key || pod.node_name.empty() || pod.terminal()) continue;
    for (api::ResourceAmount& a : asked) a.amount -= api::Find(pod.requests, a.name).value_or(0);
  }
  if (counts.waiting.empty()) return asked;
  for (const api::ResourceAmount& a : counts.waiting.front()->requests) {
    const int64_t all = a.amount * counts.needed(group);
    const auto known = std::ranges::find(asked, a.name, &api::ResourceAmount::name);
    if (known == asked.end()) {
      asked.push_back({a.name, all});
    } else {
      known->amount = std::max(known->amount, all);
    }
  }
  return asked;
}

bool Waits(std::string_view phase) { return phase == "Pending" || phase == "Inqueue"; }

// No more pods that ask for as much fit the node beside those that are there.
int64_t PlacesOn(const Truth& truth, const std::string& name, const Truth::PodFacts& pod) {
  const Truth::NodeFacts& node = truth.nodes().at(name);
  // A node with a taint or a cordon takes none of the pods that simulations and scenarios make.
  const std::string_view document = node.document.view();
  if (document.contains("\"unschedulable\":true") || document.contains("\"taints\":[")) return 0;
  Truth::Usage one;
  one.Charge(pod, 1);
  const auto used = truth.usage().find(name);
  int64_t places = std::numeric_limits<int64_t>::max();
  for (const auto& [resource, amount] : one.amounts) {
    if (amount == 0) continue;
    int64_t free = api::Find(node.allocatable, resource).value_or(0);
    if (used != truth.usage().end()) {
      const auto taken = used->second.amounts.find(resource);
      if (taken != used->second.amounts.end()) free -= taken->second;
    }
    places = std::min(places, std::max<int64_t>(free, 0) / amount);
  }
  return places;
}

// Whether one stands for all; more than amounts of a node decides about others.
bool Equal(const std::vector<const Truth::PodFacts*>& pods) {
  return std::ranges::all_of(pods, [&](const Truth::PodFacts* pod) {
    return pod->device_milli == 0 && pod->requests == pods.front()->requests;
  });
}

// What the phase of a group should be, by what it is: it says what the group has been. With `room`
// its queue has what it asks for.
std::string_view PhaseOf(const GroupFacts& group, const GroupCounts& counts, bool room) {
  if (counts.on_nodes > 0 && counts.on_nodes >= group.min_member)
    return counts.live > 0 ? "Running" : "Completed";
  // It ran, and has too few.
  if (group.phase == "Running" || group.phase == "Unknown") return "Unknown";
  if (group.phase == "Completed" && counts.to_come == 0) return "Completed";
  // Without room it may have been let in when there was some.
  return room || group.phase == "Inqueue" ? "Inqueue" : "Pending";
}

}  // namespace

std::vector<GroupFacts> GroupsOf(const Truth& truth) {
  std::vector<GroupFacts> groups;
  for (auto at = truth.others().lower_bound(std::string(kGroupsPrefix));
       at != truth.others().end() && at->first.starts_with(kGroupsPrefix); ++at) {
    groups.push_back(FactsOf(at->first.substr(kGroupsPrefix.size()), at->second.view()));
  }
  return groups;
}

GroupCounts CountsOf(const Truth& truth, std::string_view group) {
  GroupCounts counts;
  for (const auto& [key, pod] : truth.pods()) {
    if (pod.group != group) continue;
    const bool placed = !pod.node_name.empty();
    if (placed || pod.terminal()) ++counts.on_nodes;
    if (!pod.terminal()) ++counts.live;
    if (!pod.terminal() && (placed || (pod.active() && !pod.gated && Ours(pod)))) ++counts.to_come;
    if ((placed && pod.active()) || pod.phase == "Succeeded") ++counts.ready;
    if (!placed && pod.active() && !pod.gated && Ours(pod)) counts.waiting.push_back(&pod);
  }
  return counts;
}

bool StandsAlone(const Truth& truth, const Truth::PodFacts& pod) {
  if (pod.group.empty()) return true;
  const auto document = truth.others().find(std::string(kGroupsPrefix) + pod.group);
  if (document == truth.others().end()) return false;
  const GroupFacts group = FactsOf(pod.group, document->second.view());
  return CountsOf(truth, pod.group).needed(group) == 0 && group.phase != "Pending" &&
         !QueueIsBarred(truth, group.queue) &&
         QueueHas(truth, group.queue, pod.requests, /*but_for=*/pod.group);
}

void GangChecks::Count(const std::string& key, const Truth& truth) {
  for (const auto& [name, pod] : truth.pods()) {
    if (pod.group == key && (!pod.node_name.empty() || pod.terminal())) been_[key].insert(pod.uid);
  }
  const int64_t on_nodes = CountsOf(truth, key).on_nodes;
  const auto group = groups_.find(key);
  if (group == groups_.end() || on_nodes == 0) return;
  if (on_nodes >= group->second.min_member) past_[group->second.uid].ran = true;
}

void GangChecks::OnGroup(const env::JournalRecord& record, const Truth& truth,
                         std::vector<std::string>& findings) {
  const std::string key = record.key.substr(kGroupsPrefix.size());
  if (const auto before = groups_.find(key); before != groups_.end() && record.value.empty()) {
    past_.erase(before->second.uid);
    groups_.erase(before);
    return;
  }
  if (record.value.empty()) return;
  const GroupFacts& group = groups_[key] = FactsOf(key, record.value.view());
  Past& past = past_[group.uid];
  const std::string phase = std::exchange(past.phase, group.phase);
  Count(key, truth);
  const bool began = group.phase == "Running" && phase != "Running";
  if (began && std::ssize(been_[key]) < std::max<int64_t>(group.min_member, 1)) {
    findings.push_back(fmt::format("group {} is Running, and never had {} members on nodes", key,
                                   group.min_member));
  }
  const bool over = phase == "Running" || phase == "Unknown" || phase == "Completed";
  if (over && Waits(group.phase) && !(phase == "Completed" && past.renewed)) {
    findings.push_back(fmt::format("group {} went from {} to {}", key, phase, group.phase));
  }
}

std::vector<std::string> GangChecks::OnCommit(const env::JournalRecord& record,
                                              const Truth::Change& change, const Truth& truth) {
  std::vector<std::string> findings;
  if (record.key.starts_with(kGroupsPrefix)) OnGroup(record, truth, findings);
  if (!change.pod_after || change.pod_after->group.empty()) return findings;
  const std::string& key = change.pod_after->group;
  Count(key, truth);
  const bool is_new = !change.pod_before || change.pod_before->uid != change.pod_after->uid;
  if (const auto at = groups_.find(key); at != groups_.end()) {
    Past& past = past_[at->second.uid];
    if (is_new) past.renewed = true;
    if (CountsOf(truth, key).live == 0) past.renewed = false;
  }
  return findings;
}

bool GangChecks::MayBeReleased(const Truth::PodFacts& pod) const {
  if (pod.group.empty()) return false;
  const auto group = groups_.find(pod.group);
  return group == groups_.end() || Waits(group->second.phase);
}

std::vector<std::string> GangChecks::AtRest(const Truth& truth) const {
  std::vector<std::string> findings;
  for (const GroupFacts& group : GroupsOf(truth)) {
    const GroupCounts counts = CountsOf(truth, group.key);
    const bool ran = past_.at(group.uid).ran;
    if (!ran && Waits(group.phase) && counts.on_nodes > 0) {
      findings.push_back(
          fmt::format("at rest, group {} has {} of the {} members on nodes that it "
                      "needs, and never ran",
                      group.key, counts.on_nodes, group.min_member));
    }
    const int64_t needed = counts.needed(group);
    const auto waiting = static_cast<int64_t>(counts.waiting.size());
    const bool room = !QueueIsBarred(truth, group.queue) &&
                      QueueHas(truth, group.queue, AskedOf(truth, group, counts), group.key);
    if (room && needed > 0 && waiting >= needed && Equal(counts.waiting)) {
      int64_t places = 0;
      for (const auto& [name, node] : truth.nodes())
        places += std::min(PlacesOn(truth, name, *counts.waiting.front()), needed);
      if (places >= needed) {
        findings.push_back(
            fmt::format("at rest, group {} needs {} more members on nodes, {} wait and {} fit",
                        group.key, needed, waiting, places));
      }
    }
    const std::string_view phase = PhaseOf(group, counts, room);
    if (group.phase != phase) {
      findings.push_back(
          fmt::format("at rest, group {} is {} and should be {}", group.key, group.phase, phase));
    }
  }
  return findings;
}

// groups_ are objects, which are hashed as such.
void GangChecks::AddTo(Hasher& hasher) const {
  hasher.Add(past_.size());
  for (const auto& [uid, past] : past_) {
    hasher.Add(std::string_view(uid)).Add(past.ran).Add(past.renewed);
    hasher.Add(std::string_view(past.phase));
  }
  hasher.Add(been_.size());
  for (const auto& [key, uids] : been_) {
    hasher.Add(std::string_view(key)).Add(uids.size());
    for (const std::string& uid : uids) hasher.Add(std::string_view(uid));
  }
}

}  // namespace berth::sim
