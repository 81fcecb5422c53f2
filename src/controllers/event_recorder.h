#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "base/hash.h"
#include "base/time.h"
#include "client/client.h"
#include "client/request.h"
#include "controllers/objects.h"
#include "controllers/write.h"

// Writes what controllers did as Events of the owners (`kubectl describe`, `kubectl get events`).
//
// An Event costs a durable write, so they are held as client-go's recorder holds them, for each
// object: an Event that was told before raises the count of the first; ten that differ by their
// message alone within ten minutes become one; and after a burst of 25 there is one more write each
// five minutes, whatever happens. Beyond that, what is told while a write of the same Event is on
// its way is told by the next one. Nothing waits for Events: a write that fails is forgotten, and
// so is what waits of an object, or an Event, beyond the limits below.
namespace berth::controllers {

class EventRecorder {
 public:
  static constexpr int64_t kBurst = 25;
  static constexpr Duration kRefill = Duration::Minutes(5);
  static constexpr size_t kSimilarMax = 10;
  static constexpr Duration kSimilarWithin = Duration::Minutes(10);
  static constexpr size_t kObjectsMax = 4096;
  static constexpr size_t kEntriesMax = 64;  // Of an object.
  // On their way at once: a few, for pods and statuses use the same connections.
  static constexpr size_t kInFlightMax = 8;

  // `kind` is the object's; `component` is who tells, e.g. "job-controller".
  void Tell(Instant now, const Head& object, const KindNames& kind, std::string_view component,
            Told told);

  // Sends what is due. Call it after each step.
  void Send(Instant now, client::Client& client, env::Outbox& out);

  // True when the call was one of Send's.
  bool OnCallDone(const client::CallDone& done);

  void AddTo(Hasher& hasher) const;

  [[nodiscard]] size_t objects() const { return rows_.size(); }
  [[nodiscard]] size_t entries() const;
  [[nodiscard]] size_t due() const { return due_.size(); }

 private:
  // One Event in the making: its document and what the server has of it.
  struct Entry {
    std::string component;
    Told told;
    std::string name;
    int64_t count = 0;
    Instant first;
    Instant last;
    bool made = false;  // The server has it: it is patched from now on.
    bool in_flight = false;
    uint64_t due = 0;  // Its place in due_; 0 when it has none.
  };
  struct Similar {
    std::set<std::string> messages;
    Instant last;
  };
  struct Row {
    KindNames kind;
    client::ObjectRef object;
    Instant told;
    Instant spent;  // When the burst is whole again.
    std::map<std::string, Similar> similar;
    std::map<std::string, Entry> entries;
    int64_t in_flight = 0;
  };
  struct Place {
    std::string uid;
    std::string entry;
  };

  Row& RowOf(Instant now, const Head& object, const KindNames& kind);
  [[nodiscard]] static std::string KeyOf(Instant now, Row& row, Told& told);
  [[nodiscard]] static bool MaySpend(Instant now, Row& row);
  [[nodiscard]] static client::Request RequestOf(const Row& row, const Entry& entry);
  void Wait(Entry& entry, Place place);
  void Shrink(Row& row);
  static void AddTo(Hasher& hasher, const Entry& entry);
  static void AddTo(Hasher& hasher, const Row& row);
  Entry* Find(const Place& place, Row*& row);

  std::map<std::string, Row, std::less<>> rows_;  // By the object's uid.
  std::set<std::pair<Instant, std::string>> by_age_;
  std::map<uint64_t, Place> due_;  // One for each entry that is due, in the order they became so.
  uint64_t last_due_ = 0;
  std::map<uint64_t, Place> calls_;
  uint64_t serial_ = 0;
};

}  // namespace berth::controllers
