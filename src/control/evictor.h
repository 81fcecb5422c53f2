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

#include "base/hash.h"
#include "base/time.h"
#include "client/client.h"
#include "env/actor.h"

namespace berth::control {

// Carries out the evictions of preemptions, and of gangs that give back what they have.
//
//   Evict --> PATCH status: DisruptionTarget --Done--> DELETE by uid --Done--> evicted
//                 |        ^                             |       ^
//                 +Unknown-+ after a back-off            +Unknown+
//                 |                                      |
//                 +--Refused, or failed too often--------+--> Result   (Gone: the watch tells)
//
// Both writes are fenced by the uid and change nothing the second time: a mark that is repeated has
// the time of the first, and who is marked already is not marked again. So one of unknown fate, in
// conflict, throttled or not sent is repeated and not read; before each it is asked whether the
// eviction is still wanted, which ends it when the watch tells that another has the pod's name. The
// client repeats nothing, and what waits in it is withdrawn once it is not wanted. A pod is evicted
// once, whoever has its room in the end; not before others that go first, which is asked again when
// something was heard. Who leaves before the answer comes was evicted by a deletion that was
// accepted or is of unknown fate. A copyable value. Cost per call: O(log victims).
class Evictor {
 public:
  struct Victim {
    client::ObjectRef pod;
    std::string node;
    std::string scheduler_name;  // Of the preemptor.
    client::ObjectRef preemptor;
    bool for_workload = false;  // That is what the preemptor is; else a pod.
    std::string gang;           // Released by this PodGroup, for nobody; empty: preempted.
    bool marked = false;        // Its object says so already.
  };
  struct Counters {
    uint64_t evicted = 0;  // Deletions that were accepted, or came true.
    uint64_t refused = 0;
    uint64_t unknown = 0;   // Of unknown fate, or in conflict.
    uint64_t not_sent = 0;  // Or throttled: the server did not look at it.
    uint64_t given_up = 0;  // Evictions that failed too often.
    uint64_t spared = 0;    // No longer wanted when their turn came.
  };
  // What an ended call means for who decides: the victim can't be evicted.
  struct Result {
    enum class End : uint8_t { kNone, kRefused, kFailed };
    End end = End::kNone;
    Victim victim = {};
    int32_t code = 0;  // HTTP status; 0: no answer.
  };
  // How often in a row a write may fail before its eviction is given up: after some 45 s of
  // back-offs. What was not sent is no failure of the victim's.
  static constexpr uint32_t kFailuresMax = 8;

  // With `planted_again`, what was done is done again: a defect that the explorer must find.
  explicit Evictor(bool planted_again = false) : planted_again_(planted_again) {}

  // When it is under way, or was done, only for whom changes.
  void Evict(const Victim& victim);
  // It is gone, or being deleted.
  void Left(std::string_view uid);

  // What is asked of each before it is sent: whether it is wanted still, and whether another goes
  // first (State::GoesAfterOthers).
  struct Asks {
    std::function<bool(const Victim&)> wanted;
    std::function<bool(const Victim&)> goes_after;
  };
  void Pump(Instant now, const Asks& asks, client::Client& client, env::Outbox& out);
  // Something was heard: who waits for another may go now. O(those who wait).
  void AskAgain();
  // Takes back what waits in the client and is not `wanted` any more. To be called at the end of
  // each step, so that whatever leaves is wanted by all that was heard before.
  void Withdraw(const std::function<bool(const Victim&)>& wanted, client::Client& client);
  // Nothing when the call is not one of these.
  std::optional<Result> OnCallDone(Instant now, const client::CallDone& done);
  // Those whose eviction came true since the last time, each once.
  [[nodiscard]] std::vector<Victim> TakeEvicted() { return std::exchange(evicted_, {}); }

  // When Pump() is next wanted. Never() for nothing, or while as many calls as may be are open.
  [[nodiscard]] Instant wake_at() const;
  [[nodiscard]] const Counters& counters() const { return counters_; }
  [[nodiscard]] size_t size() const { return entries_.size(); }
  // REQUIRES: TakeEvicted since the last step.
  void AddTo(Hasher& hasher) const;

 private:
  enum class Stage : uint8_t { kMark, kDelete, kDone };
  struct Entry {
    Victim victim;
    Stage stage = Stage::kMark;
    uint64_t call = 0;         // 0: none is open.
    uint32_t failures = 0;     // In a row, of the write of this stage.
    bool may_be_done = false;  // A deletion of unknown fate was sent.
    bool left = false;         // It is kept for its open call alone.
    Instant marked_at;         // When it was first sent; zero: it was not.
    Instant due = Instant::Never();
  };
  using Entries = std::map<std::string, Entry, std::less<>>;
  void Schedule(const std::string& uid, Entry& entry, Instant at);
  void Send(Instant now, const std::string& uid, Entry& entry, client::Client& client,
            env::Outbox& out);
  void NoteEvicted(const Entry& entry);
  void Drop(Entries::iterator it);
  Result OnAnswer(Instant now, const std::string& uid, const client::CallDone& done);

  bool planted_again_;  // Immutable after construction.
  Entries entries_;     // By uid.
  std::set<std::pair<Instant, std::string>> due_;
  std::map<uint64_t, std::string> calls_;  // Call -> uid.
  std::vector<Victim> evicted_;            // To be taken.
  std::set<std::string> waiting_;          // Uids of those who wait for another.
  Counters counters_;
};

}  // namespace berth::control
