#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/groups.h"
#include "base/hash.h"
#include "base/time.h"
#include "client/client.h"
#include "env/actor.h"
#include "model/groups.h"
#include "model/vocabulary.h"

namespace berth::control {

[[nodiscard]] client::Resource PodGroups();

// PodGroups as observed, and what their status is to say. The only writer of it: PodGroup has no
// status subresource, so each write is a merge patch of the object, fenced by uid and
// resourceVersion.
//
// Whether a patch is due is a function of what is wanted and what was last observed, so nothing is
// written twice. A phase is written at once; counts and conditions not more often than `interval`.
// After a write the next version is waited for, which says what became of it; one of unknown fate,
// or in conflict with a version that does not come, is written again a while later, since its fence
// lets it come true once at most.
//
// A copyable value. Cost per call: O(log groups).
class Groups {
 public:
  struct Options {
    Duration interval = Duration::Seconds(1);
    size_t calls_max = 16;  // On their way at once.
  };
  // What a status is to say.
  struct Wanted {
    model::GroupPhase phase = model::GroupPhase::kPending;
    int64_t running = 0;
    int64_t succeeded = 0;
    int64_t failed = 0;
    // Why its members wait; both empty: they don't. `reason` is of Volcano's: NotEnoughResources,
    // NotEnoughTasks, NotEnoughPodsOfTask.
    std::string reason;
    std::string message;
    bool scheduled = false;  // As many as it needs have or get nodes.
    bool operator==(const Wanted&) const = default;
  };
  struct Counters {
    uint64_t writes = 0;
    uint64_t conflicts = 0;
    uint64_t failures = 0;
  };

  explicit Groups(Options options) : options_(options) {}

  // A version of an object; to be called for each. What it means as a fact.
  [[nodiscard]] model::GroupUpsert Observe(api::PodGroup group, model::Vocabulary& vocabulary);
  void Forget(std::string_view uid);
  // What a PriorityClass stands for; nothing: it is gone. The facts that follow anew.
  [[nodiscard]] std::vector<model::GroupUpsert> ObserveClass(std::string_view name,
                                                             std::optional<int32_t> value,
                                                             model::Vocabulary& vocabulary);
  // Ignored for groups that were never observed.
  void Want(std::string_view uid, Wanted wanted);

  void Pump(Instant now, client::Client& client, env::Outbox& out);
  // False: the call was none of these.
  bool OnCallDone(Instant now, const client::CallDone& done);
  [[nodiscard]] Instant wake_at() const;
  [[nodiscard]] const Counters& counters() const { return counters_; }

  void AddTo(Hasher& hasher) const;

 private:
  struct Note {
    api::PodGroup group;  // As observed.
    std::optional<Wanted> wanted;
    uint64_t call = 0;          // Under way; 0: none.
    std::string spent_version;  // Not written to again, before then: the next is on its way.
    Instant spent_until = Instant::Never();
    std::string sent_version;  // What the last write was fenced by.
    Instant not_before;        // Of counts and conditions.
    Instant phase_not_before;  // Of a phase.
    Instant due = Instant::Never();
  };
  [[nodiscard]] model::GroupUpsert FactsOf(const api::PodGroup& group,
                                           model::Vocabulary& vocabulary) const;
  void Reconsider(const std::string& uid, Note& note);
  void Send(Instant now, const std::string& uid, Note& note, client::Client& client,
            env::Outbox& out);

  Options options_;                                      // Immutable after construction.
  std::map<std::string, Note, std::less<>> notes_;       // By uid.
  std::map<std::string, int32_t, std::less<>> classes_;  // By name.
  std::set<std::pair<Instant, std::string>> due_;
  std::map<uint64_t, std::string> calls_;  // Call -> uid.
  Counters counters_;
};

}  // namespace berth::control
