#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "api/types.h"
#include "base/bytes.h"
#include "base/hash.h"
#include "base/time.h"
#include "client/client.h"
#include "control/queues.h"
#include "env/actor.h"

namespace berth::control {

// Why a pod has no node, as its condition PodScheduled tells it.
struct Waiting {
  std::string_view
      reason;  // Unschedulable, SchedulerError, SchedulingGated: cluster autoscalers key on these.
  Bytes message;  // Shared by all pods of one refusal.
};

inline constexpr std::string_view kUnschedulable = "Unschedulable";
inline constexpr std::string_view kSchedulerError = "SchedulerError";
inline constexpr std::string_view kSchedulingGated = "SchedulingGated";

// Tells users what the scheduler does: the condition PodScheduled=False of pods that wait, their
// nominatedNodeName, and events, as kube-scheduler writes them. The only writer of the status of
// pods that wait: condition and nomination go in one patch, so that neither refuses the other.
//
// Whether a patch is due is a function of what is wanted and what was last observed: nothing is
// written twice, and nothing that a conflict turned back is lost. A write is fenced by uid and
// resourceVersion; after a conflict the pod's next version is waited for. A write of unknown fate,
// or one in conflict with no version that was observed, makes the pod due for reads
// (TakeReads), and for no write, until one succeeds or a newer version is observed. A condition is
// written at once unless the last one was written within `interval`; an event goes with it. A
// nomination is written at once, and so is the first reason that is wanted after one is withdrawn:
// why the promise was taken back. Events and patches use a bounded part of the client's window and
// queue, so they never stand before a binding; events that find their queue full are counted and
// dropped.
//
// What the server refuses is written again after `interval`, twice that and so on up to
// kRefusedWaitMax, whatever its message says by then: messages count nodes and change all the time,
// and who has no right to write one has none to write another. Another reason begins anew, at once,
// where the wait is at its longest: reasons that come and go don't keep it short. A promise is not
// kept waiting, for it holds room that others could have.
//
// An API server forgets events after an hour: that a pod waits still is told again after
// `tell_again`, also where an earlier life of the scheduler told it.
//
// A copyable value. Cost per call: O(log pods that wait).
class StatusWriter {
 public:
  struct Options {
    std::string instance = "berth";  // reportingInstance is "<scheduler name>-<instance>".
    Duration interval = Duration::Seconds(10);
    Duration tell_again = {};  // Zero: never.
    bool tell_leader = false;  // Of the lease, as kube-scheduler.
    // Conditions on their way at once; the same again for events, and for reads.
    size_t calls_max = 64;
    size_t events_max = 20'000;  // Waiting to be sent: 7 s of bindings at 3,000/s.
  };
  struct Counters {
    uint64_t conditions = 0;  // Patches that were done.
    uint64_t conflicts = 0;
    uint64_t events = 0;  // Written.
    uint64_t events_dropped = 0;
    uint64_t failures = 0;      // Conditions and events that were refused or of unknown fate.
    uint64_t reads_failed = 0;  // Reads after a write that told nothing.
  };

  static constexpr Duration kRefusedWaitMax = Duration::Minutes(5);

  explicit StatusWriter(Options options) : options_(std::move(options)) {}

  // A pod of ours that has no node, as observed. To be called for each of its versions.
  void Observe(const api::Pod& pod);
  // It is gone, or has a node: nothing is to be told of its waiting any more.
  void Forget(std::string_view uid);
  // What its condition should say from now on. Ignored for pods that were never observed.
  void Want(std::string_view uid, const Waiting& waiting);
  // What its nominatedNodeName should be from now on, empty for none; nothing: as it is.
  void WantNomination(std::string_view uid, std::optional<std::string_view> node);
  // The nomination, or its end, was taken by the server and is not in the object: it is not written
  // again at once.
  void NominationLost(Instant now, std::string_view uid);
  // Whether no write of ours of the pod's nomination is under way or of unknown fate: what was
  // observed of it stands until somebody else changes it.
  [[nodiscard]] bool NominationSettled(std::string_view uid) const;
  // It was bound.
  struct Placed {
    client::ObjectRef pod;
    std::string_view scheduler_name;
    std::string_view node;
  };
  void Scheduled(Instant now, const Placed& placed);
  // It was evicted for the preemptor, a pod or a Workload.
  void Preempted(Instant now, const Placed& victim, const client::ObjectRef& preemptor,
                 bool by_workload);
  // It was evicted, since its gang was not completed in time.
  void Released(Instant now, const Placed& member, std::string_view gang);
  void CohortIsAtFault(Instant now, const CohortFault& fault);
  // The replica of this identity leads, by the lease.
  void BecameLeader(Instant now, const client::ObjectRef& lease, std::string_view identity);

  // Sends what is due and fits.
  void Pump(Instant now, client::Client& client, env::Outbox& out);
  // The events alone, which need not wait for more: nothing that comes changes them.
  void SendEvents(Instant now, client::Client& client, env::Outbox& out);
  // What an ended call means for who decides.
  struct Result {
    std::string uid = {};
    // What the patch nominated it to, empty for nothing any more; nothing: it left that alone. The
    // two below are of patches that did not.
    std::optional<std::string> nomination = {};
    int32_t refused = 0;  // HTTP status of the refusal; 0: it was not refused.
    Bytes object = {};    // Done: the pod as it is now, to be learned.
  };
  // Nothing when the call was none of these.
  std::optional<Result> OnCallDone(Instant now, const client::CallDone& done);

  // A pod whose last write is of unknown fate, or met another version that was not heard of.
  struct Read {
    client::ObjectRef pod;
    uint64_t write = 0;  // The call whose fate it is about.
  };
  // Those that are due and fit beside those on their way, `calls_max` in all: each is to be read,
  // what was read to be observed, and then OnRead. A read that fails is due again after a backoff.
  std::vector<Read> TakeReads(Instant now);
  void OnRead(Instant now, const Read& read, client::Outcome outcome);

  // When Pump() is next wanted. Never() while calls are on their way whose answers will ask for it.
  [[nodiscard]] Instant wake_at() const;
  [[nodiscard]] const Counters& counters() const { return counters_; }
  [[nodiscard]] size_t pods() const { return notes_.size(); }
  // What the pod is wanted to say; nothing when it waits for nothing that is known.
  [[nodiscard]] std::optional<Waiting> waiting(std::string_view uid) const;

  void AddTo(Hasher& hasher) const;

 private:
  struct Note {
    client::ObjectRef pod;
    std::string scheduler_name;
    // As observed.
    int64_t generation = 0;
    std::string status;
    std::string reason;
    std::string message;
    Instant transition;
    std::string nominated;
    // As wanted; an empty reason: nothing.
    std::string_view wanted_reason;
    Bytes wanted_message;
    std::optional<std::string> wanted_nominated;  // Nothing: as it is.
    std::optional<std::string> sent_nominated;    // By the last write.
    bool withdrawn = false;                       // Its nomination; nothing was told since.
    bool conflicted = false;                      // The last write met another version.
    Bytes told_message;                           // Of the last FailedScheduling event.
    uint64_t call = 0;                            // Under way; 0: none.
    std::string sent_version;                     // What the last write was fenced by.
    std::string spent_version;           // Not written to again: the next version is on its way.
    uint64_t unknown = 0;                // The write whose pod is to be read; 0: none.
    uint32_t reads_failed = 0;           // In a row.
    Instant not_before;                  // Earliest next write of a condition.
    Instant nomination_not_before;       // Likewise, of a nomination.
    uint32_t refusals = 0;               // By the server, in a row.
    Instant refused_until;               // Earliest next write of anything but a promise.
    std::string_view sent_reason;        // By the last write of a condition, while refused.
    Instant due = Instant::Never();      // Its place in due_.
    Instant tell_at = Instant::Never();  // Its place in tell_again_.
    Instant read = Instant::Never();     // Its place in reads_.
  };

  void DropDue(const std::string& uid, Note& note);
  void Reconsider(const std::string& uid, Note& note);
  [[nodiscard]] static bool ConditionDiffers(const Note& note);
  [[nodiscard]] static bool NominationDiffers(const Note& note);
  void Send(Instant now, const std::string& uid, Note& note, client::Client& client,
            env::Outbox& out);
  void TellEvent(Instant now, Note& note);
  void TellAt(Instant at, Note& note);
  void TellAgain(Instant now);
  // Of a normal event that the controller tells.
  [[nodiscard]] client::EventFacts EventOf(Instant now, const client::ObjectRef& object,
                                           std::string_view controller);
  void ReadLater(Instant now, const std::string& uid, Note& note, env::CallId write);
  void ForgetReads(const std::string& uid, Note& note);
  [[nodiscard]] Duration RefusedWait(Duration first, uint32_t refusals) const;
  void Queue(client::EventFacts facts);

  Options options_;  // Immutable after construction.
  std::map<std::string, Note, std::less<>> notes_;
  std::set<std::pair<Instant, std::string>> due_;
  std::map<uint64_t, std::string> calls_;  // Call -> uid.
  std::set<uint64_t> event_calls_;
  std::deque<client::EventFacts> events_;
  // When to read the pod of which uid. What is on its way is not here.
  std::set<std::pair<Instant, std::string>> reads_;
  // When to tell again of which uid; zero: the next Pump() says.
  std::set<std::pair<Instant, std::string>> tell_again_;
  std::set<uint64_t> reading_;  // The writes whose reads are on their way.
  uint64_t serial_ = 0;
  Counters counters_;
};

}  // namespace berth::control
