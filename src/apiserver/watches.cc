#include "apiserver/watches.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <vector>

#include "base/check.h"

namespace berth::apiserver {

namespace {

constexpr Duration kBookmarkInterval = Duration::Minutes(1);

std::string GroupKey(const Shape& shape, const Selection& selection) {
  return fmt::format("{}\n{} {} {} {} {}", selection.ToText(), shape.kind->version,
                     static_cast<int>(shape.form), static_cast<int>(shape.syntax),
                     static_cast<int>(shape.table_objects), shape.meta_v1beta1);
}

// What a range of the log holds of one table.
struct Changes {
  std::vector<const store::Event*> events;
  size_t bytes = 0;  // About, as watches are sent them.
};

std::map<store::Table, Changes> ChangesByTable(store::RevisionRange range,
                                               const store::Store& store) {
  constexpr size_t kAroundBytes = 40;
  std::map<store::Table, Changes> changes;
  for (uint64_t revision = range.first; revision <= range.last; ++revision) {
    const store::Event& event = store.EventAt(revision);
    Changes& table = changes[event.object->table];
    table.events.push_back(&event);
    table.bytes += event.object->json.size() + kAroundBytes;
  }
  return changes;
}

Instant TimerOf(Instant deadline, Instant bookmark) { return std::min(deadline, bookmark); }

}  // namespace

void Watches::SetTimer(uint64_t exchange, const Watch& watch) {
  timers_.emplace(TimerOf(watch.deadline, watch.next_bookmark), exchange);
}

void Watches::ClearTimer(uint64_t exchange, const Watch& watch) {
  timers_.erase({TimerOf(watch.deadline, watch.next_bookmark), exchange});
}

void Watches::Start(Instant now, env::ExchangeId exchange, WatchStart start,
                    const store::Store& store, env::Outbox& out) {
  CHECK(!watches_.contains(exchange.value));
  env::HttpResponse response{
      .status = 200, .headers = {{"content-type", "application/json"}}, .body = {}};
  out.emplace_back(
      env::Respond{.exchange = exchange, .response = std::move(response), .stream = true});
  std::string key = GroupKey(start.shape, start.selection);
  const store::Table table = start.selection.range().table;
  Group& group = groups_[key];
  if (group.members++ == 0) {
    group.shape = start.shape;
    group.selection = std::move(start.selection);
    group.table = table;
  }
  Watch watch{
      .phase = start.listing ? Phase::kListing : Phase::kBehind,
      .group = std::move(key),
      .next = start.listing ? store.durable_revision()
                            : start.after.value_or(store.durable_revision()) + 1,
      .after_namespace = {},
      .after_name = {},
      .bookmarks = start.bookmarks,
      .initial_events_end = start.initial_events_end,
      .unread = 0,
      .deadline = start.deadline,
      .next_bookmark = start.bookmarks ? now + kBookmarkInterval : Instant::Never(),
  };
  SetTimer(exchange.value, watch);
  SetPhase(exchange.value, watch, watch.phase);
  watches_.emplace(exchange.value, std::move(watch));
  Advance(now, exchange.value, store, out);
}

void Watches::SetPhase(uint64_t exchange, Watch& watch, Phase phase) {
  watch.phase = phase;
  if (phase == Phase::kBehind) {
    behind_.insert(exchange);
  } else {
    behind_.erase(exchange);
  }
}

void Watches::Send(uint64_t exchange, Watch& watch, Bytes frame, env::Outbox& out) {
  if (frame.empty()) return;
  watch.unread += frame.size();
  out.emplace_back(env::Frame{.exchange = {exchange}, .data = std::move(frame)});
}

// What the change means to those who see only a selection: entering it adds, leaving it deletes.
void Watches::AppendEvent(const Group& group, const store::Event& event, Instant now,
                          std::string& out) {
  const bool was = event.previous != nullptr && group.selection.Matches(*event.previous);
  const bool is = !event.deleted && group.selection.Matches(*event.object);
  if (is) {
    AppendWatchEvent(was ? "MODIFIED" : "ADDED", group.shape, event.object->json.view(), now, out);
  } else if (was) {
    // The last state that matched, at the revision of the change.
    if (event.deleted && group.selection.Matches(*event.object)) {
      AppendWatchEvent("DELETED", group.shape, event.object->json.view(), now, out);
      return;
    }
    AppendWatchEvent("DELETED", group.shape,
                     WithRevision(event.previous->json.view(), event.revision()), now, out);
  }
}

void Watches::Publish(Instant now, store::RevisionRange range, const store::Store& store,
                      env::Outbox& out) {
  // More commits at once than the log holds: those who were live are behind, and will be cut.
  const bool lost = range.first <= store.compacted_revision();
  std::map<store::Table, Changes> changes;
  if (!lost) changes = ChangesByTable(range, store);
  const auto fall_behind = [&](uint64_t exchange, Watch& watch, uint64_t next) {
    watch.next = next;
    SetPhase(exchange, watch, Phase::kBehind);
  };
  for (auto& [key, group] : groups_) {
    if (group.live.empty()) continue;
    if (lost) {
      for (const uint64_t exchange : group.live)
        fall_behind(exchange, watches_.at(exchange), range.first);
      group.live.clear();
      continue;
    }
    std::string text;
    if (const auto found = changes.find(group.table); found != changes.end()) {
      if (group.selection.all()) text.reserve(found->second.bytes);
      for (const store::Event* event : found->second.events) AppendEvent(group, *event, now, text);
    }
    const Bytes frame(std::move(text));
    if (frame.empty()) continue;
    for (auto live = group.live.begin(); live != group.live.end();) {
      const uint64_t exchange = *live;
      Watch& watch = watches_.at(exchange);
      Send(exchange, watch, frame, out);
      if (watch.unread <= unread_max_) {
        ++live;
        continue;
      }
      fall_behind(exchange, watch, range.last + 1);
      live = group.live.erase(live);
    }
  }
  // Those who wait for a revision of the future, or were too slow and have caught up meanwhile.
  const std::vector<uint64_t> behind(behind_.begin(), behind_.end());
  for (const uint64_t exchange : behind) Advance(now, exchange, store, out);
}

void Watches::Drained(Instant now, env::ExchangeId exchange, uint64_t bytes,
                      const store::Store& store, env::Outbox& out) {
  const auto it = watches_.find(exchange.value);
  if (it == watches_.end()) return;
  it->second.unread -= std::min(bytes, it->second.unread);
  if (it->second.phase != Phase::kLive) Advance(now, exchange.value, store, out);
}

void Watches::Remove(uint64_t exchange) {
  const auto it = watches_.find(exchange);
  if (it == watches_.end()) return;
  ClearTimer(exchange, it->second);
  const auto group = groups_.find(it->second.group);
  CHECK(group != groups_.end());
  group->second.live.erase(exchange);
  behind_.erase(exchange);
  if (--group->second.members == 0) groups_.erase(group);
  watches_.erase(it);
}

void Watches::Abandon(env::ExchangeId exchange) { Remove(exchange.value); }

// Its place in the log is gone: the client hears 410 if it still listens, and relists.
void Watches::Cut(uint64_t exchange, uint64_t revision, const store::Store& store,
                  env::Outbox& out) {
  if (watches_.at(exchange).unread > unread_max_) {
    // It does not read, so it would not read that either.
    out.emplace_back(env::EndStream{.exchange = {exchange}, .abort = true});
    Remove(exchange);
    return;
  }
  const auto problem = Expired(
      fmt::format("too old resource version: {} ({})", revision, store.compacted_revision()));
  out.emplace_back(env::Frame{.exchange = {exchange},
                              .data = Bytes(fmt::format("{{\"type\":\"ERROR\",\"object\":{}}}\n",
                                                        StatusJson(problem.error())))});
  out.emplace_back(env::EndStream{.exchange = {exchange}, .abort = false});
  Remove(exchange);
}

void Watches::EndAll(store::Table table, env::Outbox& out) {
  std::vector<uint64_t> ended;
  for (const auto& [exchange, watch] : watches_) {
    if (groups_.at(watch.group).table == table) ended.push_back(exchange);
  }
  for (const uint64_t exchange : ended) {
    out.emplace_back(env::EndStream{.exchange = {exchange}, .abort = false});
    Remove(exchange);
  }
}

bool Watches::Advance(Instant now, uint64_t exchange, const store::Store& store, env::Outbox& out) {
  if (watches_.at(exchange).phase == Phase::kListing &&
      !AdvanceListing(now, exchange, store, out)) {
    return false;
  }
  if (watches_.at(exchange).phase == Phase::kBehind) {
    return AdvanceBehind(now, exchange, store, out);
  }
  return true;
}

bool Watches::AdvanceListing(Instant now, uint64_t exchange, const store::Store& store,
                             env::Outbox& out) {
  Watch& watch = watches_.at(exchange);
  const Group& group = groups_.at(watch.group);
  const uint64_t revision = watch.next;
  while (watch.unread <= unread_max_) {
    if (revision < store.compacted_revision()) {
      Cut(exchange, revision, store, out);
      return false;
    }
    store::Range range = group.selection.range();
    range.after_namespace = watch.after_namespace;
    range.after_name = watch.after_name;
    std::string text;
    bool more = false;
    store.WalkAt(revision, range, [&](const store::ObjectRef& object) {
      if (text.size() >= unread_max_) {
        more = true;
        return false;
      }
      watch.after_namespace = object->namespace_name;
      watch.after_name = object->name;
      if (group.selection.Matches(*object)) {
        AppendWatchEvent("ADDED", group.shape, object->json.view(), now, text);
      }
      return true;
    });
    if (!more && watch.initial_events_end && watch.bookmarks) {
      AppendBookmark(group.shape, revision, true, text);
    }
    Send(exchange, watch, Bytes(std::move(text)), out);
    if (!more) {
      SetPhase(exchange, watch, Phase::kBehind);
      watch.next = revision + 1;
      return true;
    }
  }
  return true;
}

bool Watches::AdvanceBehind(Instant now, uint64_t exchange, const store::Store& store,
                            env::Outbox& out) {
  Watch& watch = watches_.at(exchange);
  Group& group = groups_.at(watch.group);
  while (watch.unread <= unread_max_) {
    if (watch.next > store.durable_revision() + 1) return true;  // The future.
    if (watch.next == store.durable_revision() + 1) {
      SetPhase(exchange, watch, Phase::kLive);
      group.live.insert(exchange);
      return true;
    }
    if (watch.next <= store.compacted_revision()) {
      Cut(exchange, watch.next - 1, store, out);
      return false;
    }
    std::string text;
    while (watch.next <= store.durable_revision() && text.size() < kFrameBytes) {
      const store::Event& event = store.EventAt(watch.next);
      if (event.object->table == group.table) AppendEvent(group, event, now, text);
      ++watch.next;
    }
    Send(exchange, watch, Bytes(std::move(text)), out);
  }
  if (watch.next <= store.compacted_revision()) {
    Cut(exchange, watch.next - 1, store, out);
    return false;
  }
  return true;
}

void Watches::Tick(Instant now, const store::Store& store, env::Outbox& out) {
  while (!timers_.empty() && timers_.begin()->first <= now) {
    const uint64_t exchange = timers_.begin()->second;
    Watch& watch = watches_.at(exchange);
    const Group& group = groups_.at(watch.group);
    if (watch.bookmarks && watch.phase == Phase::kLive) {
      std::string text;
      AppendBookmark(group.shape, store.durable_revision(), false, text);
      Send(exchange, watch, Bytes(std::move(text)), out);
    }
    if (watch.deadline <= now) {
      out.emplace_back(env::EndStream{.exchange = {exchange}, .abort = false});
      Remove(exchange);
      continue;
    }
    ClearTimer(exchange, watch);
    watch.next_bookmark = now + kBookmarkInterval;
    SetTimer(exchange, watch);
  }
}

Instant Watches::wake_at() const {
  return timers_.empty() ? Instant::Never() : timers_.begin()->first;
}

// Groups, timers and who is behind follow from the watches: a group's key tells its shape and
// selection.
void Watches::AddTo(Hasher& hasher) const {
  hasher.Add(watches_.size());
  for (const auto& [exchange, watch] : watches_) {
    hasher.Add(exchange).Add(watch.phase).Add(std::string_view(watch.group));
    hasher.Add(watch.phase == Phase::kLive ? 0 : watch.next);
    hasher.Add(std::string_view(watch.after_namespace)).Add(std::string_view(watch.after_name));
    hasher.Add(watch.bookmarks).Add(watch.initial_events_end).Add(watch.unread);
    hasher.Add(watch.deadline.ns).Add(watch.next_bookmark.ns);
  }
}

}  // namespace berth::apiserver
