#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "apiserver/render.h"
#include "apiserver/selection.h"
#include "base/bytes.h"
#include "base/hash.h"
#include "base/time.h"
#include "env/actor.h"
#include "store/store.h"

namespace berth::apiserver {

// How a watch begins and what it carries.
struct WatchStart {
  Shape shape;
  Selection selection;
  // With `listing` the present objects come first, as ADDED; else events after `after` follow, or
  // those that are yet to come.
  bool listing = false;
  std::optional<uint64_t> after = {};
  bool bookmarks = false;
  bool initial_events_end = false;  // A marked bookmark follows the listing.
  Instant deadline;
};

// All watches of the server.
//
//   listing ──> behind <──> live ──> ended
//
// A live watch gets each commit group's events at once, encoded once for all watches that ask for
// the same. A watch whose client has more than the limit unread falls behind: nothing more is
// sent, or buffered, until the client has read; then it continues from the store's log. One whose
// place in the log is gone is cut, and relists. So what a slow client costs is bounded by
// that limit and one frame.
//
// A copyable value; not thread-safe. Cost of a commit group: the events, times the distinct shapes
// and selections, plus one output per watch that is told of something.
class Watches {
 public:
  // Aimed at: a frame ends with the event that passes it.
  static constexpr size_t kFrameBytes = 64 * 1024;

  explicit Watches(int64_t unread_max) : unread_max_(static_cast<uint64_t>(unread_max)) {}

  [[nodiscard]] size_t size() const { return watches_.size(); }

  // Answers the exchange with a stream and sends what there is to send.
  void Start(Instant now, env::ExchangeId exchange, WatchStart start, const store::Store& store,
             env::Outbox& out);
  // These revisions have become visible.
  void Publish(Instant now, store::RevisionRange range, const store::Store& store,
               env::Outbox& out);
  void Drained(Instant now, env::ExchangeId exchange, uint64_t bytes, const store::Store& store,
               env::Outbox& out);
  void Abandon(env::ExchangeId exchange);
  // Ends all watches of a table, whose kinds are about to change: clients list anew.
  void EndAll(store::Table table, env::Outbox& out);
  // Sends bookmarks and ends watches that are due.
  void Tick(Instant now, const store::Store& store, env::Outbox& out);
  [[nodiscard]] Instant wake_at() const;

  void AddTo(Hasher& hasher) const;

 private:
  enum class Phase : uint8_t { kListing, kBehind, kLive };

  struct Watch {
    Phase phase = Phase::kBehind;
    std::string group;  // Key of its group.
    // The next revision to look at; the listing's revision while listing; of a live watch where it
    // began to be live.
    uint64_t next = 0;
    std::string after_namespace;  // Where the listing stands.
    std::string after_name;
    bool bookmarks = false;
    bool initial_events_end = false;
    uint64_t unread = 0;
    Instant deadline;
    Instant next_bookmark;
  };

  // Watches that read the same bytes.
  struct Group {
    Shape shape;
    Selection selection;
    store::Table table = 0;
    std::set<uint64_t> live;
    size_t members = 0;
  };

  void SetPhase(uint64_t exchange, Watch& watch, Phase phase);
  void Send(uint64_t exchange, Watch& watch, Bytes frame, env::Outbox& out);
  // Continues a watch that lists or is behind, as far as its client reads. False: it has ended.
  bool Advance(Instant now, uint64_t exchange, const store::Store& store, env::Outbox& out);
  bool AdvanceListing(Instant now, uint64_t exchange, const store::Store& store, env::Outbox& out);
  bool AdvanceBehind(Instant now, uint64_t exchange, const store::Store& store, env::Outbox& out);
  void Cut(uint64_t exchange, uint64_t revision, const store::Store& store, env::Outbox& out);
  void Remove(uint64_t exchange);
  void SetTimer(uint64_t exchange, const Watch& watch);
  void ClearTimer(uint64_t exchange, const Watch& watch);
  static void AppendEvent(const Group& group, const store::Event& event, Instant now,
                          std::string& out);

  uint64_t unread_max_;  // Immutable after construction.

  std::map<uint64_t, Watch> watches_;  // By exchange.
  std::map<std::string, Group> groups_;
  std::set<uint64_t> behind_;  // Those in that phase, by exchange.
  std::set<std::pair<Instant, uint64_t>> timers_;
};

}  // namespace berth::apiserver
