#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/quota.h"
#include "base/bytes.h"
#include "base/hash.h"
#include "base/time.h"
#include "client/client.h"
#include "control/upkeep.h"
#include "control/workload_conditions.h"
#include "env/actor.h"
#include "model/delta.h"
#include "translate/quota_text.h"

namespace berth::control {

// Workloads as observed, and what their status is to say of their quota: that it is reserved, and
// of which flavors, or why it is not. The only writer of that; jobs' controllers write the rest.
//
// A write is a merge patch of the status, fenced by uid and resourceVersion, one at a time of an
// object: what a version says is never written over one that was not seen. A reservation is sent
// once; when it is in conflict or of unknown fate the object is read, which says what became of it
// (https://github.com/kubernetes-sigs/kueue/issues/5561 is what comes of writing what was decided
// on an older version). Why one waits is written at once the first time, then not more often than
// the intervals, and again a while later when it was refused. Who can't be given its quota, since
// that was refused, waits for that, until something else is told. An eviction is written on the
// version that is known when it is sent, if it is wanted still.
//
// What was decided of one that has quota (cycle/second_pass.h) is written as a reservation is, on
// the version that it was decided on, all of it in one patch.
//
// A copyable value. Cost per call: O(log workloads).
class Workloads {
 public:
  struct Options {
    Duration interval = Duration::Seconds(10);        // Of the same reason in other words;
    Duration reason_interval = Duration::Seconds(1);  // of another, once in an interval.
    size_t calls_max = 64;                            // On their way at once.
    std::optional<PodsReadyRules> pods_ready = {};    // Nothing: as of QueuesOf.
    bool asks_everybody = false;  // For tests: news of a queue are told all workloads.
  };
  // What is written of a workload that has quota: the places that its pods get, or why it gives up
  // its quota.
  struct Pass {
    model::Pass pass = model::Pass::kNone;
    api::Admission admission = {};         // As it is to be.
    std::vector<std::string> failed = {};  // kReplace: nodes that need nothing done any more.
    std::string why = {};                  // Not empty: it is evicted, for that;
    std::string reason = {};               // in one word.
  };
  // A write that the server refused: "its admission", what it said, and from when on it may be
  // tried again; Never(): that is decided anew.
  struct Refusal {
    std::string_view what;
    int64_t code = 0;
    std::string message;
    Instant again = Instant::Never();
  };
  // Of a workload by uid: whether it is to be evicted still. Asked before each sending.
  using IsEvicted = std::function<bool(std::string_view uid)>;
  // What an ended call means. What was answered is to be learned, before the outcome is applied.
  struct Result {
    std::string uid = {};
    std::optional<model::WriteOutcome> outcome;  // Of a reservation.
    bool read = false;         // After one: what was read was learned, or is gone.
    bool stays = false;        // Its eviction was refused.
    Bytes object;              // The workload as it is now; empty: nothing is known.
    std::string refusal = {};  // Of a reservation that was refused: what the server said.
  };
  struct Counters {
    uint64_t placements = 0;
    uint64_t reservations = 0;
    uint64_t waits = 0;
    uint64_t evictions = 0;
    uint64_t upkeep = 0;
    uint64_t passes = 0;
    uint64_t conflicts = 0;
    uint64_t failures = 0;
  };

  explicit Workloads(Options options) : options_(options) {}

  // What a version of an object means for what was decided of it, and was not sent yet.
  enum class News : uint8_t {
    kNone,
    // It says what was written ahead, for what was decided, and nothing else: until that is written
    // too, the object is as it was.
    kPlaced,
    kWithdraws,  // That was decided on another.
  };
  // A version of an object; to be called for each. `lacks_places`: as of QueuesOf.
  [[nodiscard]] News Observe(api::Workload workload, bool lacks_places = false);
  void Forget(std::string_view uid);
  // What queues ask of their workloads; those that are not told of ask nothing, and nothing is due
  // of workloads but what the calls below say. Where that is news: O(workloads of the queue x log
  // workloads), of a ClusterQueue those that it admitted and those of its LocalQueues.
  void SetClusterQueue(const std::string& name, QueueRules rules);
  void DropClusterQueue(const std::string& name);
  void SetLocalQueue(const std::string& key, std::string cluster_queue, bool drains);
  void DropLocalQueue(const std::string& key);

  // Its quota is reserved: to be written. It is admitted, so that it may run, when nothing more is
  // to be checked.
  // Ignored, as what is below, for workloads that were never observed.
  // `placement`: of its pods; the text of the annotation, empty for none. It is written before the
  // reservation, so that there is no admission without, and alone counts for nothing; one that was
  // left there is taken away before. `lacks_places`: as of QueuesOf.
  void Reserve(std::string_view uid, api::Admission admission, std::string placement,
               bool lacks_places);
  // What was decided of it is to be written, and its placement before as above.
  void Put(std::string_view uid, Pass pass, std::string placement);
  // Why nothing is decided of places that it awaits, until something is. `awaits_mates`: as of
  // QueuesOf.
  void HoldUp(std::string_view uid, std::string why, bool awaits_mates = false);
  // What HoldUp said, while that is so; empty: nothing.
  [[nodiscard]] std::string_view WhyHeldUp(std::string_view uid) const;
  // The last write of it that was refused, if none was done since and it waits for nothing else;
  // else null.
  [[nodiscard]] const Refusal* WhyRefused(std::string_view uid) const;
  // As it was observed last; null for none.
  [[nodiscard]] const api::Workload* Find(std::string_view uid) const;
  // Each, as it was observed last, in the order of uids.
  template <typename Visit>
  void ForEach(Visit visit) const {
    for (const auto& [uid, note] : notes_) visit(note.workload);
  }
  // The ClusterQueues in which one holds quota, as far as their objects say. O(workloads).
  [[nodiscard]] std::set<std::string, std::less<>> QueuesHeld() const;
  // Why it waits; an empty reason: that is not told.
  void Want(std::string_view uid, translate::WaitText waiting);
  // It is to be told that it goes, once it holds quota, until its object says so.
  void Evict(std::string_view uid, EvictionText eviction);
  // What became of it is to be read, whatever the last answer said.
  void Reread(std::string_view uid);

  void Pump(Instant now, const IsEvicted& is_evicted, client::Client& client, env::Outbox& out);
  // When all of its pods are to be ready, as of ReadyBefore.
  [[nodiscard]] std::optional<Instant> PodsReadyBefore(const api::Workload& workload) const {
    if (!options_.pods_ready) return std::nullopt;
    return ReadyBefore(workload, *options_.pods_ready);
  }
  // Nothing: the call was none of these.
  std::optional<Result> OnCallDone(Instant now, const client::CallDone& done);
  [[nodiscard]] Instant wake_at() const;
  // The uid of the job that it is of; empty: not known.
  [[nodiscard]] std::string_view JobOf(std::string_view uid) const;
  [[nodiscard]] const Counters& counters() const { return counters_; }

  void AddTo(Hasher& hasher) const;

 private:
  enum class Call : uint8_t { kNone, kPlace, kReserve, kPass, kWait, kRead, kEvict, kUpkeep };
  struct LocalQueue {
    std::string cluster_queue;
    bool drains = false;
    bool operator==(const LocalQueue&) const = default;
  };
  struct Note {
    api::Workload workload;                     // As observed.
    bool lacks_places = false;                  // As observed.
    std::optional<api::Admission> reservation;  // To be written;
    bool reservation_lacks = false;             // Places.
    std::optional<Pass> pass;                   // Or this is to be.
    std::string placement;                      // Before that; empty: nothing stays there.
    translate::WaitText waiting;                // As wanted.
    std::string held_up;                        // As of QueuesOf.
    bool awaits_mates = false;                  // Likewise.
    std::optional<EvictionText> eviction;       // To be written.
    std::optional<Refusal> refused;             // As of WhyRefused.
    Call kind = Call::kNone;                    // Of the call under way.
    uint64_t call = 0;                          // 0: none.
    bool unresolved = false;                    // What became of the last write is to be read.
    uint32_t reads_failed = 0;                  // In a row.
    uint32_t writes_failed = 0;                 // In a row, on this version.
    Instant write_not_before;
    std::string sent_version;   // What the last write was fenced by.
    std::string spent_version;  // Not written to again: the next is on its way.
    Instant read_not_before;
    Instant wait_not_before;
    Instant reason_not_before;  // Where its condition has another reason.
    Instant evict_not_before;
    Instant upkeep_not_before;
    Instant due = Instant::Never();
  };
  // An eviction that fails so often in a row counts as refused.
  static constexpr uint32_t kFailuresMax = 8;
  static void NoteFailures(Instant now, Note& note, client::Outcome outcome);
  [[nodiscard]] Instant DueOf(const Note& note) const;
  [[nodiscard]] QueuesOf QueuesOfNote(const Note& note) const;
  struct Queues {
    std::string local_queue;    // By key.
    std::string cluster_queue;  // That it is admitted to; empty: none.
    bool operator==(const Queues&) const = default;
  };
  [[nodiscard]] static Queues QueuesNamedBy(const api::Workload& workload);
  void ChangeIndex(const std::string& uid, const Queues& before, const Queues& now);
  void ReconsiderAll();
  void ReconsiderOfLocalQueue(const std::string& key);
  void ReconsiderOfClusterQueue(const std::string& name);
  [[nodiscard]] Upkeep UpkeepOfNote(const Note& note) const;
  [[nodiscard]] Instant DueBeforeItsEnd(const Note& note) const;
  [[nodiscard]] static bool IsDecided(const Note& note);
  [[nodiscard]] static bool GoesBefore(const Upkeep& upkeep, const Note& note);
  [[nodiscard]] static std::string PassBody(Instant now, const api::Workload& w, const Pass& pass);
  [[nodiscard]] std::string BodyOf(Instant now, Note& note, const Upkeep& upkeep,
                                   const QueuesOf& queues);
  [[nodiscard]] static bool DiffersByPlacement(const Note& note, const api::Workload& now);
  [[nodiscard]] static bool IsToBePlaced(const Note& note);
  void Reconsider(const std::string& uid, Note& note);
  void Send(Instant now, const std::string& uid, Note& note, client::Client& client,
            env::Outbox& out);
  static void OnRefused(Instant now, Note& note, Call kind, const env::HttpResponse& response);
  void OnPlaced(Note& note, client::Outcome outcome, Result& result);
  void OnDecided(Note& note, client::Outcome outcome, Result& result);
  void OnRead(Instant now, Note& note, client::Outcome outcome, Result& result);
  void OnTold(Instant now, Note& note, Call kind, client::Outcome outcome, Result& result);

  Options options_;                                 // Immutable after construction.
  std::map<std::string, Note, std::less<>> notes_;  // By uid.
  std::set<std::pair<Instant, std::string>> due_;
  std::map<uint64_t, std::string> calls_;                          // Call -> uid.
  std::map<std::string, QueueRules, std::less<>> cluster_queues_;  // By name.
  std::map<std::string, LocalQueue, std::less<>> local_queues_;    // By key.
  // Who names a queue, there or not: uids of notes, and keys of local_queues_. Never empty.
  using NamesBy = std::map<std::string, std::set<std::string>, std::less<>>;
  NamesBy of_local_queue_;
  NamesBy admitted_to_;
  NamesBy leads_to_;  // LocalQueues, by name of the ClusterQueue.
  Counters counters_;
};

}  // namespace berth::control
