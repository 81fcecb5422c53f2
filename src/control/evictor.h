#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "base/hash.h"
#include "base/time.h"
#include "client/client.h"
#include "env/actor.h"

namespace berth::control {

// Carries out the evictions of preemptions.
//
//   Evict --> PATCH status: DisruptionTarget --Done--> DELETE by uid --Done--> told
//                 |        ^                             |       ^
//                 +Unknown-+ after a back-off            +Unknown+
//                 |                                      |
//                 +--Refused--> PreemptionRefused <------+   (Gone: the watch tells)
//
// Both writes are fenced by the uid and do nothing the second time, so one of unknown fate, or in
// conflict, is repeated and not read; before each it is asked whether the eviction is still wanted,
// which ends it when the watch tells that another has the pod's name. A pod is
// evicted once for one preemptor. A copyable value. Cost per call: O(log victims).
class Evictor {
 public:
  struct Victim {
    client::ObjectRef pod;
    std::string node;
    std::string scheduler_name;  // Of the preemptor.
    std::string preemptor;       // Its uid.
  };
  struct Counters {
    uint64_t evicted = 0;  // Deletions that were accepted.
    uint64_t refused = 0;
    uint64_t unknown = 0;  // Of unknown fate, or in conflict.
    uint64_t spared = 0;   // No longer wanted when their turn came.
  };
  // What an ended call means.
  struct Result {
    Victim victim;
    bool evicted = false;
    int32_t refused = 0;  // HTTP status; 0: it was not refused.
  };

  // With `planted_again`, what was done is done again: a defect that the explorer must find.
  explicit Evictor(bool planted_again = false) : planted_again_(planted_again) {}

  // Nothing when it is under way for that preemptor, or was done.
  void Evict(const Victim& victim);
  // It is gone, or being deleted.
  void Forget(std::string_view uid);

  // Sends what is due and `wanted(uid, preemptor)`.
  void Pump(Instant now, const std::function<bool(const Victim&)>& wanted, client::Client& client,
            env::Outbox& out);
  // Nothing when the call is not one of these.
  std::optional<Result> OnCallDone(Instant now, const client::CallDone& done);

  // When Pump() is next wanted. Never() for nothing, or while as many calls as may be are open.
  [[nodiscard]] Instant wake_at() const;
  [[nodiscard]] const Counters& counters() const { return counters_; }
  [[nodiscard]] size_t size() const { return entries_.size(); }
  void AddTo(Hasher& hasher) const;

 private:
  enum class Stage : uint8_t { kMark, kDelete, kDone };
  struct Entry {
    Victim victim;
    Stage stage = Stage::kMark;
    uint64_t call = 0;  // 0: none is open.
    uint32_t failures = 0;
    Instant due = Instant::Never();
  };
  void Schedule(const std::string& uid, Entry& entry, Instant at);
  void Send(Instant now, const std::string& uid, Entry& entry, client::Client& client,
            env::Outbox& out);

  bool planted_again_;                                 // Immutable after construction.
  std::map<std::string, Entry, std::less<>> entries_;  // By uid.
  std::set<std::pair<Instant, std::string>> due_;
  std::map<uint64_t, std::string> calls_;  // Call -> uid.
  Counters counters_;
};

}  // namespace berth::control
