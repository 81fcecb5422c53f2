#include "model/groups.h"

#include <utility>

#include "model/lifecycle.h"

namespace berth::model {

void Group::AddTo(Hasher& hasher) const {
  hasher.Add(uid.value).Add(key.value).Add(min_member).Add(creation.ns).Add(phase);
  hasher.Add(priority.has_value()).Add(priority.value_or(0));
  hasher.Add(queue.value).Add(min_resources.value).Add(let_in).Add(futile);
  hasher.Add(attempts).Add(backoff_until.ns).Add(min_of_roles.size());
  for (const RoleMinimum& m : min_of_roles) hasher.Add(m.role.value).Add(m.count);
}

MemberKind MemberKindOf(const Pod& pod) {
  switch (StageOf(pod)) {
    case PodStage::kPending:
      return MemberKind::kWaiting;
    case PodStage::kInFlight:
    case PodStage::kAccepted:
    case PodStage::kUnresolved:
      return MemberKind::kDecided;
    case PodStage::kBound:
      return pod.released ? MemberKind::kLeaving : MemberKind::kBound;
    case PodStage::kTerminating:
      return pod.node.valid() ? MemberKind::kLeaving : MemberKind::kApart;
    case PodStage::kFinished:
      return pod.succeeded ? MemberKind::kSucceeded : MemberKind::kFailed;
    case PodStage::kForeign:
    case PodStage::kGated:
    case PodStage::kLost:
      break;
  }
  return MemberKind::kApart;
}

GroupPhase PhaseOf(const Group& group, const MemberCounts& counts) {
  const auto needed = static_cast<uint32_t>(group.min_member);
  const uint32_t ended = counts[MemberKind::kSucceeded] + counts[MemberKind::kFailed];
  const uint32_t on_nodes = counts[MemberKind::kBound] + counts[MemberKind::kLeaving];
  const uint32_t to_come = counts[MemberKind::kWaiting] + counts[MemberKind::kDecided];
  if (group.phase == GroupPhase::kCompleted && on_nodes + to_come == 0) return group.phase;
  if (ended + on_nodes > 0 && ended + on_nodes >= needed)
    return on_nodes + to_come == 0 ? GroupPhase::kCompleted : GroupPhase::kRunning;
  switch (group.phase) {
    case GroupPhase::kRunning:
    case GroupPhase::kUnknown:
      return GroupPhase::kUnknown;
    case GroupPhase::kPending:
    case GroupPhase::kInqueue:
    case GroupPhase::kCompleted:
      break;
  }
  const bool in = group.let_in || group.phase == GroupPhase::kInqueue;
  return in ? GroupPhase::kInqueue : GroupPhase::kPending;
}

std::string_view ToString(GroupPhase phase) {
  constexpr std::string_view kNames[] = {"Pending", "Inqueue", "Running", "Unknown", "Completed"};
  return kNames[static_cast<size_t>(phase)];
}

MemberCounts GroupTable::CountsOf(KeyId key) const {
  return key.value < members_.size() ? members_[key.value].counts : MemberCounts{};
}

NameId GroupTable::SetQueue(GroupId group, NameId queue) {
  if (group.value >= in_queue_.size()) in_queue_.resize(group.value + 1);
  const NameId before = at(group).queue;
  if (before == queue) return before;
  InQueue& links = in_queue_[group.value];
  if (before.valid()) {
    GroupId& from = links.previous.valid() ? in_queue_[links.previous.value].next
                                           : first_of_queue_[before.value];
    from = links.next;
    if (links.next.valid()) in_queue_[links.next.value].previous = links.previous;
  }
  links = InQueue{};
  mutable_at(group).queue = queue;
  if (!queue.valid()) return before;
  if (queue.value >= first_of_queue_.size()) first_of_queue_.resize(queue.value + 1);
  links.next = std::exchange(first_of_queue_[queue.value], group);
  if (links.next.valid()) in_queue_[links.next.value].previous = group;
  return before;
}

bool GroupTable::Note(PodId pod, KeyId group, MemberKind kind) {
  if (pod.value >= links_.size()) {
    if (!group.valid()) return false;
    links_.resize(pod.value + 1);
  }
  Links& links = links_[pod.value];
  if (links.group == group && (links.kind == kind || !group.valid())) return false;
  if (links.group.valid()) --members_[links.group.value].counts.of[static_cast<size_t>(links.kind)];
  if (links.group != group) {
    if (links.group.valid()) {
      PodId& from = links.previous.valid() ? links_[links.previous.value].next
                                           : members_[links.group.value].first;
      from = links.next;
      if (links.next.valid()) links_[links.next.value].previous = links.previous;
    }
    links = Links{.group = group};
    if (group.valid()) {
      if (group.value >= members_.size()) members_.resize(group.value + 1);
      links.next = members_[group.value].first;
      if (links.next.valid()) links_[links.next.value].previous = pod;
      members_[group.value].first = pod;
    }
  }
  links.kind = kind;
  if (group.valid()) ++members_[group.value].counts.of[static_cast<size_t>(kind)];
  return true;
}

}  // namespace berth::model
