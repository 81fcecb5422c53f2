#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "base/hash.h"
#include "base/limits.h"
#include "base/time.h"
#include "store/store.h"

namespace berth::apiserver {

// How long an Event stays after its last write: kube-apiserver's --event-ttl.
inline constexpr Duration kEventTtl = Duration::Minutes(60);
// Events that end in one go: their deletions are one group of the journal, and requests come
// between two groups.
inline constexpr int64_t kEventsExpiredAtOnceMax = 512;
static_assert(kEventsExpiredAtOnceMax * 8 <= limits::kWatchLogEventsMax,
              "a group must not push out what watches are about to read");

// Which Events have outlived their time: kube-apiserver forgets an Event an hour after its last
// write (--event-ttl). One entry an Event, whatever is written; an object is not copied for it.
//
// A copyable value; not thread-safe. All is O(log n) an Event but Recover.
class EventExpiry {
 public:
  // REQUIRES: ttl > 0.
  explicit EventExpiry(Duration ttl);

  // Takes over what the durable view holds. When each was written is told by its
  // own times, as far as they agree with the order of revisions and are not in the future; so an
  // Event with nonsense in them ends one time to live from now. O(bytes of all Events).
  void Recover(Instant now, const store::Store& store);

  // Learns of what has become visible.
  void Observe(Instant now, store::RevisionRange visible, const store::Store& store);

  // The Events that are due, oldest first, at most `most`, without those that the head has another
  // version of, or none. They stay until Observe sees their end.
  [[nodiscard]] std::vector<store::ObjectRef> Due(Instant now, size_t most,
                                                  const store::Store& store) const;
  // When the next is due.
  [[nodiscard]] Instant wake_at() const;

  [[nodiscard]] size_t size() const { return entries_.size(); }
  void AddTo(Hasher& hasher) const;

 private:
  struct Entry {
    store::ObjectRef object;
    Instant due;
  };

  void Add(const store::ObjectRef& object, Instant written);

  Duration ttl_;  // Immutable after construction.

  // By revision of the last write. Dues rise with revisions, as the clock does: where it stepped
  // back an Event waits for the one before it.
  std::map<uint64_t, Entry> entries_;
  uint64_t history_hash_ = 0;  // Of every Add so far: with the store's it stands for the entries.
};

}  // namespace berth::apiserver
