#include "apiserver/event_expiry.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "api/kinds.h"
#include "api/object.h"
#include "api/timestamp.h"
#include "apiserver/objects.h"
#include "base/check.h"

namespace berth::apiserver {

namespace {

constexpr auto kEvents = static_cast<store::Table>(api::KindId::kEvent);

// The latest time that the Event names.
Instant LastTimeOf(const store::StoredObject& object) {
  const api::Json event = Load(object);
  Instant last{0};
  for (const std::string_view path : {"metadata.creationTimestamp", "firstTimestamp",
                                      "lastTimestamp", "eventTime", "series.lastObservedTime"}) {
    const Result<Instant> time = api::ParseTimestamp(api::TextAt(event, path));
    if (time) last = std::max(last, *time);
  }
  return last;
}

}  // namespace

EventExpiry::EventExpiry(Duration ttl) : ttl_(ttl) { CHECK_GT(ttl.ns, 0); }

void EventExpiry::Recover(Instant now, const store::Store& store) {
  entries_.clear();
  std::map<uint64_t, store::ObjectRef> by_revision;
  store.Walk({.table = kEvents}, [&](const store::ObjectRef& object) {
    by_revision.emplace(object->revision, object);
    return true;
  });
  Instant written{0};
  for (const auto& [revision, object] : by_revision) {
    written = std::clamp(LastTimeOf(*object), written, std::max(written, now));
    Add(object, written);
  }
}

void EventExpiry::Observe(Instant now, store::RevisionRange visible, const store::Store& store) {
  // More at once than the log holds.
  if (visible.first <= store.compacted_revision()) return Recover(now, store);
  for (uint64_t revision = visible.first; revision <= visible.last; ++revision) {
    const store::Event& event = store.EventAt(revision);
    if (event.object->table != kEvents) continue;
    if (event.previous != nullptr) {
      CHECK_EQ(entries_.erase(event.previous->revision), size_t{1});
    }
    if (!event.deleted) Add(event.object, now);
  }
}

void EventExpiry::Add(const store::ObjectRef& object, Instant written) {
  const Instant due = written + ttl_;
  CHECK(entries_.emplace(object->revision, Entry{.object = object, .due = due}).second);
  Hasher hasher;
  hasher.Add(history_hash_).Add(object->revision).Add(due.ns);
  history_hash_ = hasher.value();
}

std::vector<store::ObjectRef> EventExpiry::Due(Instant now, size_t most,
                                               const store::Store& store) const {
  std::vector<store::ObjectRef> due;
  for (const auto& [revision, entry] : entries_) {
    if (entry.due > now || due.size() == most) break;
    const store::ObjectRef head = store.FindHead(kEvents, store::KeyOf(*entry.object));
    if (head != nullptr && head->revision == revision) due.push_back(entry.object);
  }
  return due;
}

Instant EventExpiry::wake_at() const {
  return entries_.empty() ? Instant::Never() : entries_.begin()->second.due;
}

void EventExpiry::AddTo(Hasher& hasher) const {
  hasher.Add(ttl_.ns).Add(history_hash_).Add(entries_.size());
}

}  // namespace berth::apiserver
