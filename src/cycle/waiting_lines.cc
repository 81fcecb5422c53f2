#include "cycle/waiting_lines.h"

#include <algorithm>
#include <utility>

#include "base/backoff.h"
#include "base/check.h"
#include "model/backoff.h"

namespace berth::cycle {

using model::PodId;
using model::State;

namespace {

// kube-scheduler orders its backoff queue by whole seconds, and by priority within one.
int64_t Window(Instant until) { return until.seconds(); }

bool SameKey(const Line& a, const Line& b) {
  return a.class_id == b.class_id && a.pin == b.pin && a.kind == b.kind && a.queued == b.queued &&
         a.group == b.group && a.priority == b.priority;
}

// Whether it is to be beside others. Then it may be in vain to evict all whom a more important pod
// may, with those whom it needs among them, and not to evict fewer.
bool NeedsOthers(const State& state, model::ClassId id) {
  const model::AffinityListId affinity = state.vocabulary().classes.at(id).affinity;
  return affinity.valid() &&
         std::ranges::any_of(state.vocabulary().affinities.View(affinity),
                             [](const model::AffinityTerm& term) {
                               return term.kind == model::AffinityKind::kRequired;
                             });
}

// Of others there are a few for each class.
bool HasOwnKey(const Line& line) {
  return line.pin != model::Pin{} || line.group.valid() || line.priority.has_value();
}

bool SayTheSame(const std::vector<model::Reason>& a, const std::vector<model::Reason>& b) {
  return std::ranges::equal(a, b, [](model::Reason x, model::Reason y) {
    x.deficit = y.deficit = 0;
    x.unresolvable = y.unresolvable = false;
    return x == y;
  });
}

// Whether users are told the same: how much is missing is told by Explain alone.
bool SaysTheSame(const model::Refusal& a, const model::Refusal& b) {
  if (a.nodes_count != b.nodes_count || !SayTheSame(a.reasons, b.reasons)) return false;
  if (!a.preemption || !b.preemption) return a.preemption == b.preemption;
  const model::PreemptionRefusal& x = *a.preemption;
  const model::PreemptionRefusal& y = *b.preemption;
  return x.bar == y.bar && x.nodes_count == y.nodes_count && x.not_helpful == y.not_helpful &&
         x.no_victims == y.no_victims && SayTheSame(x.reasons, y.reasons);
}

}  // namespace

// ---- Pods of a line --------------------------------------------------------------------------

bool WaitingLines::PodBefore(const State& state, PodId a, PodId b) {
  return Before(state, {.pod = a, .queued = state.pods().at(a).queued},
                {.pod = b, .queued = state.pods().at(b).queued});
}

bool WaitingLines::Before(const State& state, const Turn& a, const Turn& b) {
  const model::Pod& x = state.pods().at(a.pod);
  const model::Pod& y = state.pods().at(b.pod);
  if (x.priority != y.priority) return x.priority > y.priority;
  if (a.queued != b.queued) return a.queued;
  if (x.creation != y.creation) return x.creation < y.creation;
  return state.UidOf(x.uid) < state.UidOf(y.uid);
}

PodId WaitingLines::Meld(const State& state, PodId a, PodId b) {
  if (!a.valid()) return b;
  if (!b.valid()) return a;
  if (Before(state, {.pod = b}, {.pod = a})) std::swap(a, b);  // Of one line.
  Links& parent = links_[a.value];
  Links& child = links_[b.value];
  child.next = parent.child;
  child.previous = a;
  if (parent.child.valid()) links_[parent.child.value].previous = b;
  parent.child = b;
  return a;
}

// Two passes over a list of siblings: pairs left to right, then all right to left.
PodId WaitingLines::MeldChildren(const State& state, PodId first) {
  PodId pairs;  // Linked by `next`, last pair first.
  while (first.valid()) {
    const PodId a = first;
    const PodId b = links_[a.value].next;
    first = b.valid() ? links_[b.value].next : PodId{};
    links_[a.value].next = links_[a.value].previous = PodId{};
    if (b.valid()) links_[b.value].next = links_[b.value].previous = PodId{};
    const PodId pair = Meld(state, a, b);
    links_[pair.value].next = pairs;
    pairs = pair;
  }
  PodId root;
  while (pairs.valid()) {
    const PodId pair = pairs;
    pairs = std::exchange(links_[pair.value].next, PodId{});
    root = Meld(state, root, pair);
  }
  return root;
}

void WaitingLines::HeapRemove(const State& state, Line& line, PodId pod) {
  Links& links = links_[pod.value];
  const PodId rest = MeldChildren(state, std::exchange(links.child, PodId{}));
  if (line.head == pod) {
    line.head = rest;
    return;
  }
  Links& left = links_[links.previous.value];
  (left.child == pod ? left.child : left.next) = links.next;
  if (links.next.valid()) links_[links.next.value].previous = links.previous;
  links.next = links.previous = PodId{};
  line.head = Meld(state, line.head, rest);
}

void WaitingLines::Put(const State& state, PodId pod, LineKind kind) {
  const model::Pod& row = state.pods().at(pod);
  Line like{.class_id = state.vocabulary().classes.plain(row.class_id),
            .pin = row.pin,
            .kind = kind,
            .queued = row.queued};
  if (kind == LineKind::kPreempting) {
    like.group = row.group;
    if (NeedsOthers(state, like.class_id)) like.priority = row.priority;
  }
  if (pod.value >= line_of_.size()) {
    const size_t size = state.pods().size();
    // With room for the next: else the second that waits beside many that never did moves all.
    if (size > line_of_.capacity()) {
      line_of_.reserve(size + size / 2);
      links_.reserve(size + size / 2);
    }
    line_of_.resize(size);
    links_.resize(size);
  }
  const bool was_here = contains(pod) && SameKey(lines_[line_of_[pod.value].value], like);
  // A line that it had to itself ends, and with it what was told.
  const bool told =
      was_here && links_[pod.value].untold == 0 && lines_[line_of_[pod.value].value].size > 1;
  if (contains(pod)) Remove(state, pod);
  const LineId id = FindOrAddLine(state, like);
  Line& line = lines_[id.value];
  line_of_[pod.value] = id;
  links_[pod.value] = Links{};
  line.head = Meld(state, line.head, pod);
  ++line.size;
  ++pods_count_;
  if (!told) SetUntold(id, pod);
  if (line.size == 1) {
    Enter(state, id, Line::Mode::kActive);
  } else if (line.mode != Line::Mode::kBlocked) {
    Resift(state, id);
  } else if (row.priority > line.failed_priority) {
    // It may look past reservations that stopped the one that failed.
    line.narrow_from = Line::kWide;
    Leave(state, id);
    Enter(state, id, Line::Mode::kActive);
  }
}

void WaitingLines::Remove(const State& state, PodId pod) {
  if (!contains(pod)) return;
  const LineId id = std::exchange(line_of_[pod.value], LineId{});
  Line& line = lines_[id.value];
  DropUntold(line, pod);
  const bool was_head = line.head == pod;
  HeapRemove(state, line, pod);
  --line.size;
  --pods_count_;
  if (line.size == 0) {
    Leave(state, id);
    FreeLine(state, id);
  } else if (was_head && line.mode != Line::Mode::kBlocked) {
    // A new head has a backoff of its own; stale order is put right by Next.
    Resift(state, id);
  }
}

// ---- Lines -----------------------------------------------------------------------------------

// Where the id of the line with this key stands.
LineId& WaitingLines::LineFor(const State& state, const Line& like) {
  if (!HasOwnKey(like)) {
    const size_t of_class = static_cast<size_t>(like.kind) * 2 + (like.queued ? 1 : 0);
    const size_t at = size_t{like.class_id.value} * kLineKindsCount * 2 + of_class;
    if (at >= unpinned_lines_.size()) {
      unpinned_lines_.resize(size_t{state.vocabulary().classes.size()} * kLineKindsCount * 2);
    }
    return unpinned_lines_[at];
  }
  const PinnedKey key = PinnedKeyOf(like);
  PinnedKeyId key_id = pinned_keys_.Find(std::span(&key, 1));
  if (!key_id.valid()) key_id = pinned_keys_.Acquire(std::span(&key, 1));
  if (key_id.value >= line_of_pinned_.size()) line_of_pinned_.resize(key_id.value + 1);
  return line_of_pinned_[key_id.value];
}

WaitingLines::PinnedKey WaitingLines::PinnedKeyOf(const Line& line) {
  return {.class_id = line.class_id,
          .pin = line.pin.kind,
          .kind = line.kind,
          .queued = line.queued,
          .by_priority = line.priority.has_value(),
          .node = line.pin.node,
          .volumes = line.pin.volumes,
          .asker = line.pin.asker,
          .group = line.group,
          .priority = line.priority.value_or(0)};
}

LineId WaitingLines::FindOrAddLine(const State& state, const Line& like) {
  LineId& found = LineFor(state, like);
  if (found.valid()) return found;
  LineId id{static_cast<uint32_t>(lines_.size())};
  if (free_lines_.empty()) {
    lines_.emplace_back();
  } else {
    id = free_lines_.back();
    free_lines_.pop_back();
  }
  lines_[id.value] = like;
  found = id;
  return id;
}

void WaitingLines::FreeLine(const State& state, LineId id) {
  Line& line = lines_[id.value];
  LineFor(state, line) = LineId{};
  if (HasOwnKey(line)) {
    const PinnedKey key = PinnedKeyOf(line);
    pinned_keys_.Release(pinned_keys_.Find(std::span(&key, 1)));
  }
  line = Line{};
  free_lines_.push_back(id);
}

bool WaitingLines::LineBefore(const State& state, LineId a, LineId b, bool backing_off) const {
  const PodId x = lines_[a.value].head;
  const PodId y = lines_[b.value].head;
  if (backing_off) {
    const int64_t wx = Window(state.pods().at(x).backoff_until);
    const int64_t wy = Window(state.pods().at(y).backoff_until);
    if (wx != wy) return wx < wy;
  }
  return Before(state, {.pod = x, .queued = lines_[a.value].queued},
                {.pod = y, .queued = lines_[b.value].queued});
}

void WaitingLines::SiftUp(const State& state, std::vector<LineId>& heap, uint32_t place,
                          bool backing_off) {
  while (place > 0) {
    const uint32_t parent = (place - 1) / 2;
    if (!LineBefore(state, heap[place], heap[parent], backing_off)) break;
    std::swap(heap[place], heap[parent]);
    lines_[heap[place].value].place = place;
    place = parent;
  }
  lines_[heap[place].value].place = place;
}

void WaitingLines::SiftDown(const State& state, std::vector<LineId>& heap, uint32_t place,
                            bool backing_off) {
  const auto size = static_cast<uint32_t>(heap.size());
  for (;;) {
    uint32_t least = place;
    for (const uint32_t child : {2 * place + 1, 2 * place + 2}) {
      if (child < size && LineBefore(state, heap[child], heap[least], backing_off)) least = child;
    }
    if (least == place) break;
    std::swap(heap[place], heap[least]);
    lines_[heap[place].value].place = place;
    place = least;
  }
  lines_[heap[place].value].place = place;
}

void WaitingLines::Resift(const State& state, LineId id) {
  const bool backing_off = lines_[id.value].mode == Line::Mode::kBackingOff;
  std::vector<LineId>& heap = backing_off ? backing_off_ : active_;
  SiftUp(state, heap, lines_[id.value].place, backing_off);
  SiftDown(state, heap, lines_[id.value].place, backing_off);
}

model::Amount WaitingLines::KeyOf(const Line& line, model::ReasonMask reasons) {
  return (reasons & MaskOf(model::ReasonKind::kInsufficient)) != 0 ? line.cpu : -1;
}

void WaitingLines::SetMask(Line& line, LineId id, model::ReasonMask reasons) {
  const Sized before{.cpu = KeyOf(line, blocked_masks_[line.place]), .id = id};
  const Sized now{.cpu = KeyOf(line, reasons), .id = id};
  blocked_masks_[line.place] = reasons;
  if (before == now) return;
  by_cpu_.erase(std::ranges::lower_bound(by_cpu_, before));
  by_cpu_.insert(std::ranges::lower_bound(by_cpu_, now), now);
}

void WaitingLines::Enter(const State& state, LineId id, Line::Mode mode,
                         model::ReasonMask reasons) {
  Line& line = lines_[id.value];
  line.mode = mode;
  if (mode == Line::Mode::kBlocked) {
    line.place = static_cast<uint32_t>(blocked_.size());
    const model::BundleTable& bundles = state.vocabulary().bundles;
    const model::BundleId asked =
        bundles.Asked(state.vocabulary().classes.at(line.class_id).requests);
    line.cpu = bundles.AmountOf(asked, model::kCpu);
    const Sized sized{.cpu = KeyOf(line, reasons), .id = id};
    by_cpu_.insert(std::ranges::lower_bound(by_cpu_, sized), sized);
    line.blocked_priority = state.pods().at(line.head).priority;
    const auto at = std::ranges::lower_bound(blocked_priorities_, line.blocked_priority, {},
                                             &PriorityCount::priority);
    if (at != blocked_priorities_.end() && at->priority == line.blocked_priority) {
      ++at->count;
    } else {
      blocked_priorities_.insert(at, {.priority = line.blocked_priority, .count = 1});
    }
    blocked_.push_back(id);
    blocked_masks_.push_back(reasons);
    blocked_pins_.push_back(line.pin.kind == model::PinKind::kNone ? model::NameId{}
                                                                   : line.pin.node);
    return;
  }
  std::vector<LineId>& heap = mode == Line::Mode::kActive ? active_ : backing_off_;
  heap.push_back(id);
  SiftUp(state, heap, static_cast<uint32_t>(heap.size()) - 1, mode == Line::Mode::kBackingOff);
}

void WaitingLines::Leave(const State& state, LineId id) {
  const Line& line = lines_[id.value];
  const uint32_t place = line.place;
  if (line.mode == Line::Mode::kBlocked) {
    const Sized sized{.cpu = KeyOf(line, blocked_masks_[place]), .id = id};
    by_cpu_.erase(std::ranges::lower_bound(by_cpu_, sized));
    const auto at = std::ranges::lower_bound(blocked_priorities_, line.blocked_priority, {},
                                             &PriorityCount::priority);
    if (--at->count == 0) blocked_priorities_.erase(at);
    blocked_[place] = blocked_.back();
    blocked_masks_[place] = blocked_masks_.back();
    blocked_pins_[place] = blocked_pins_.back();
    lines_[blocked_[place].value].place = place;
    blocked_.pop_back();
    blocked_masks_.pop_back();
    blocked_pins_.pop_back();
    return;
  }
  const bool backing_off = line.mode == Line::Mode::kBackingOff;
  std::vector<LineId>& heap = backing_off ? backing_off_ : active_;
  CHECK(heap[place] == id);
  const LineId last = heap.back();
  heap.pop_back();
  if (last == id) return;
  heap[place] = last;
  lines_[last.value].place = place;
  SiftUp(state, heap, place, backing_off);
  SiftDown(state, heap, lines_[last.value].place, backing_off);
}

LineId WaitingLines::Next(const State& state, Instant now) {
  const auto backoff_over = [&](LineId id) {
    return Window(state.pods().at(lines_[id.value].head).backoff_until) <= Window(now);
  };
  while (!backing_off_.empty() && backoff_over(backing_off_.front())) {
    const LineId id = backing_off_.front();
    Leave(state, id);
    Enter(state, id, Line::Mode::kActive);
  }
  if (!active_.empty()) return active_.front();
  return backing_off_.empty() ? LineId{} : backing_off_.front();
}

void WaitingLines::Block(const State& state, LineId id, model::ReasonMask reasons,
                         uint64_t cycle_number) {
  Leave(state, id);
  Enter(state, id, Line::Mode::kBlocked, reasons);
  Line& line = lines_[id.value];
  line.failed_priority = state.pods().at(line.head).priority;
  line.blocked_cycle = cycle_number;
  if (line.untold.valid()) lines_to_tell_.push_back(id);
}

bool WaitingLines::Report(LineId id, model::Refusal refusal, Instant until, uint64_t position) {
  Line& line = lines_[id.value];
  const bool first = line.report_until == Instant{};
  line.others_behind = line.others_behind || (!first && !SaysTheSame(line.refusal, refusal));
  line.refusal = std::move(refusal);
  line.report_until = until;
  line.report_position = position;
  line.refresh_at = std::max(line.refresh_at, until);
  return line.others_behind;
}

void WaitingLines::Refresh(LineId id, model::Refusal refusal, Instant now, uint64_t position) {
  Line& line = lines_[id.value];
  if (line.others_behind || !SaysTheSame(line.refusal, refusal)) MarkAllUntold(id);
  line.others_behind = false;
  line.refusal = std::move(refusal);
  line.report_position = position;
  line.refreshes = now - line.refresh_at > kRefreshIntervalMax ? 0 : line.refreshes + 1;
  line.refresh_at = now + Doubled(kRefreshInterval, line.refreshes + 1, kRefreshIntervalMax);
}

void WaitingLines::Wake(const State& state, LineId id, Instant now, uint64_t narrow_from) {
  Line& line = lines_[id.value];
  if (line.mode != Line::Mode::kBlocked) return;
  line.waits_for = blocked_masks_[line.place];
  line.narrow_from = narrow_from;
  Leave(state, id);
  // Nobody goes before who has quota already.
  const Instant until = state.pods().at(line.head).backoff_until;
  const bool backs_off = !line.queued && Window(until) > Window(now);
  Enter(state, id, backs_off ? Line::Mode::kBackingOff : Line::Mode::kActive);
}

void WaitingLines::Touched(const Lift& lift, std::vector<LineId>& out) const {
  const auto end = std::ranges::upper_bound(by_cpu_, lift.cpu_most, {}, &Sized::cpu);
  for (auto at = by_cpu_.begin(); at != end; ++at) {
    const uint32_t place = lines_[at->id.value].place;
    if (!lift.any && (blocked_masks_[place] & lift.reasons) == 0) continue;
    if (blocked_pins_[place].valid() && blocked_pins_[place] != lift.node) continue;
    out.push_back(at->id);
  }
}

void WaitingLines::WaitingFor(model::ReasonMask reasons, std::vector<LineId>& out) const {
  for (const LineId id : blocked_) {
    if ((blocked_masks_[lines_[id.value].place] & reasons) != 0) out.push_back(id);
  }
}

bool WaitingLines::AsksWithin(model::Amount above, model::Amount most) const {
  const auto at = std::ranges::upper_bound(by_cpu_, above, {}, &Sized::cpu);
  return at != by_cpu_.end() && at->cpu <= most;
}

// ---- Who was told ------------------------------------------------------------------------------

void WaitingLines::MarkUntold(PodId pod) {
  if (links_[pod.value].untold == 0) SetUntold(line_of_[pod.value], pod);
}

void WaitingLines::MarkAllUntold(LineId id) {
  std::vector<PodId> open = {lines_[id.value].head};
  while (!open.empty()) {
    const PodId pod = open.back();
    open.pop_back();
    MarkUntold(pod);
    for (PodId child = links_[pod.value].child; child.valid(); child = links_[child.value].next) {
      open.push_back(child);
    }
  }
}

void WaitingLines::SetUntold(LineId id, PodId pod) {
  Line& line = lines_[id.value];
  Links& links = links_[pod.value];
  links.untold = 1;
  links.untold_next = line.untold;
  links.untold_previous = PodId{};
  if (line.untold.valid()) links_[line.untold.value].untold_previous = pod;
  line.untold = pod;
  if (line.mode == Line::Mode::kBlocked) lines_to_tell_.push_back(id);
}

void WaitingLines::DropUntold(Line& line, PodId pod) {
  Links& links = links_[pod.value];
  if (links.untold == 0) return;
  if (links.untold_previous.valid()) {
    links_[links.untold_previous.value].untold_next = links.untold_next;
  } else {
    line.untold = links.untold_next;
  }
  if (links.untold_next.valid())
    links_[links.untold_next.value].untold_previous = links.untold_previous;
  links.untold = 0;
  links.untold_next = links.untold_previous = PodId{};
}

PodId WaitingLines::TakeUntold(LineId id) {
  Line& line = lines_[id.value];
  const PodId pod = line.untold;
  if (pod.valid()) DropUntold(line, pod);
  return pod;
}

namespace {

void AddIds(Hasher& hasher, const std::vector<LineId>& ids) {
  hasher.Add(ids.size());
  for (const LineId id : ids) hasher.Add(id.value);
}

}  // namespace

// Left out: what follows from the lines (unpinned_lines_, line_of_pinned_, pinned_keys_,
// blocked_pins_, by_cpu_, blocked_priorities_) and the links' way back (previous, untold_previous).
void WaitingLines::AddTo(Hasher& hasher, const State& state, uint64_t cycles) const {
  const model::TouchLog& log = state.touches();
  hasher.Add(pods_count_).Add(lines_.size());
  for (const Line& line : lines_) {
    hasher.Add(line.class_id.value).Add(line.pin.kind).Add(line.pin.node.value);
    hasher.Add(line.pin.volumes.value).Add(line.pin.asker.value);
    hasher.Add(line.kind).Add(line.queued).Add(line.group.value);
    hasher.Add(line.head.value).Add(line.size);
    if (hasher.merges()) {
      hasher.Add(line.blocked_cycle == cycles).Add(line.report_position == log.end());
      // Where it was woken from counts while it is awake.
      const bool narrow = line.narrow_from != Line::kWide && line.mode != Line::Mode::kBlocked;
      hasher.Add(narrow);
      if (narrow) log.AddRest(hasher, line.narrow_from);
    }
    hasher.Add(line.mode).Add(line.place).Add(line.failed_priority).AddHistory(line.blocked_cycle);
    hasher.Add(line.untold.value).AddHistory(line.narrow_from).Add(line.waits_for);
    hasher.Add(line.report_until.ns).AddHistory(line.report_position).Add(line.others_behind);
    hasher.Add(line.refreshes).Add(line.refresh_at.ns);
    line.refusal.AddTo(hasher);
  }
  AddIds(hasher, free_lines_);
  AddIds(hasher, line_of_);
  hasher.Add(links_.size());
  for (const Links& l : links_) {
    hasher.Add(l.child.value).Add(l.next.value).Add(l.untold).Add(l.untold_next.value);
  }
  AddIds(hasher, active_);
  AddIds(hasher, backing_off_);
  AddIds(hasher, blocked_);
  for (const model::ReasonMask mask : blocked_masks_) hasher.Add(mask);
  AddIds(hasher, lines_to_tell_);
}

}  // namespace berth::cycle
