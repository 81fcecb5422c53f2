#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/hash.h"
#include "base/limits.h"
#include "base/result.h"
#include "env/actor.h"
#include "store/object.h"
#include "store/table.h"

namespace berth::store {

// One change, as watchers see it. A put without `previous` adds; a delete's object is the last
// state, with the revision of the deletion.
struct Event {
  ObjectRef object;
  ObjectRef previous;
  bool deleted = false;

  [[nodiscard]] uint64_t revision() const { return object->revision; }
};

// Revisions first..last, both included; empty when first > last.
struct RevisionRange {
  uint64_t first = 1;
  uint64_t last = 0;
};

// What a walk covers.
struct Range {
  Table table = 0;
  std::optional<std::string> namespace_name = {};  // All namespaces when absent.
  // Only what comes after this key; the continue token's content. Both empty: from the start.
  std::string after_namespace = {};
  std::string after_name = {};
};

// Called in key order; false ends the walk.
using Visit = std::function<bool(const ObjectRef&)>;

// The versioned objects of a cluster, as a value: no I/O, no clock.
//
//   Put/Delete ──> head ──TakeAppend──> journal ──MarkDurable──> visible: reads, log, watches
//
// Two views. The head is what the next write is compared with. The durable view is what readers and
// watchers may see: a write enters it when the journal has it, in revision order, so no revision is
// ever seen with two meanings. One counter numbers all writes. The log keeps the last visible
// events, bounded in number and bytes; with it any revision since compacted_revision() can be
// listed exactly, and watched from.
//
// A copy is independent and shares what neither has changed since. Not thread-safe.
class Store {
 public:
  struct Options {
    // The journal's name of each table, stable for ever: "pods", "deployments.apps".
    std::vector<std::string> tables;
    size_t log_events_max = limits::kWatchLogEventsMax;
    size_t log_bytes_max = limits::kWatchLogBytesMax;
  };

  explicit Store(Options options);

  // ---- Tables --------------------------------------------------------------------------------

  // The table of that name, or nothing. Cost: linear in the tables.
  [[nodiscard]] std::optional<Table> TableNamed(std::string_view name) const;
  // "pods", "deployments.apps". REQUIRES: the table exists.
  [[nodiscard]] std::string_view NameOf(Table table) const { return options_.tables[table]; }
  // A table more. Tables stay for ever; a later journal has to name it from the start. REQUIRES:
  // none has that name.
  Table AddTable(std::string name);

  // ---- Head ----------------------------------------------------------------------------------

  // The revision that the next Put or Delete must carry.
  [[nodiscard]] uint64_t next_revision() const { return head_revision_ + 1; }

  // The newest version, null when absent or deleted. O(log n).
  [[nodiscard]] ObjectRef FindHead(Table table, ObjectKey key) const;

  void WalkHead(const Range& range, const Visit& visit) const;

  // Creates the object or replaces its version. REQUIRES: object.revision == next_revision().
  void Put(StoredObject object);

  // Ends the object; `last` is its final state. REQUIRES: it exists, last.revision ==
  // next_revision().
  void Delete(StoredObject last);

  // ---- Journal -------------------------------------------------------------------------------

  [[nodiscard]] bool append_in_flight() const { return in_flight_ > 0; }
  [[nodiscard]] bool has_unsent() const { return pending_.size() > in_flight_; }

  // All writes not yet sent, as one append. REQUIRES: has_unsent() and not append_in_flight().
  env::AppendJournal TakeAppend();

  // The journal has the append of that sequence. Returns what became visible. REQUIRES: it is the
  // one in flight.
  RevisionRange MarkDurable(uint64_t sequence);

  // The journal has not got the append of that sequence, nor will it: the head is what is durable
  // again, without what was written after it, too, and the revisions are given anew. REQUIRES: it
  // is the one in flight.
  void Discard(uint64_t sequence);

  // ---- Durable view --------------------------------------------------------------------------

  [[nodiscard]] uint64_t durable_revision() const { return durable_revision_; }
  // Events after this revision are in the log; lists at this revision or a later visible one are
  // exact.
  [[nodiscard]] uint64_t compacted_revision() const { return compacted_revision_; }

  [[nodiscard]] ObjectRef Find(Table table, ObjectKey key) const {
    return tables_[table].Find(key);
  }
  [[nodiscard]] size_t Count(Table table) const { return tables_[table].size(); }

  void Walk(const Range& range, const Visit& visit) const;

  // The walk as it was at `revision`. Costs O(events since) on top. REQUIRES: compacted_revision()
  // <= revision <= durable_revision().
  void WalkAt(uint64_t revision, const Range& range, const Visit& visit) const;

  // REQUIRES: compacted_revision() < revision <= durable_revision().
  [[nodiscard]] const Event& EventAt(uint64_t revision) const;

  // Drops all events up to `revision`: a watch from before answers 410. For tests and faults.
  void CompactTo(uint64_t revision);

  // ---- Recovery ------------------------------------------------------------------------------

  // Makes the stored form of a document; the owner of the kinds knows labels and fields.
  using Decode = std::function<Result<StoredObject>(Table, const env::JournalRecord&)>;

  // Everything is durable and the log is empty. Revisions go on after the last that the journal
  // was given. kDamaged names the key of a record that can't be right.
  static Result<Store> Recover(Options options, const env::JournalContent& content,
                               const Decode& decode);

  [[nodiscard]] std::string JournalKey(const StoredObject& object) const;

  void AddTo(Hasher& hasher) const;

 private:
  // Objects that differ from a table, each with the revision of its last change; null stands for
  // absent.
  struct Difference {
    ObjectRef object;
    uint64_t revision = 0;
  };
  struct OwnKey {
    std::string namespace_name;
    std::string name;
  };
  struct KeyLess {
    using is_transparent = void;
    static ObjectKey View(const OwnKey& key) { return {key.namespace_name, key.name}; }
    static ObjectKey View(ObjectKey key) { return key; }
    bool operator()(const auto& a, const auto& b) const { return View(a) < View(b); }
  };
  using Overlay = std::map<OwnKey, Difference, KeyLess>;
  void Commit(Event event);
  void AppendToLog(Event event);
  static void WalkOver(const ObjectTable& table, const Overlay& overlay, const Range& range,
                       const Visit& visit);
  Status RecoverOne(const env::JournalRecord& record, const Decode& decode);

  Options options_;  // Immutable after construction, but for the tables that are added.

  std::vector<ObjectTable> tables_;  // The durable view.
  std::vector<Overlay> head_;        // Per table, what the head has beyond it.
  std::deque<Event> pending_;  // Committed, not durable; the first in_flight_ are on their way.
  size_t in_flight_ = 0;
  uint64_t sequence_ = 0;
  uint64_t head_revision_ = 0;
  uint64_t durable_revision_ = 0;

  std::deque<Event> log_;  // Revisions compacted_revision_ + 1 .. durable_revision_.
  size_t log_bytes_ = 0;
  uint64_t compacted_revision_ = 0;

  uint64_t history_hash_ = 0;  // Of every commit so far, in order: it stands for the content.
};

}  // namespace berth::store
