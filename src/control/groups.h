#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/groups.h"
#include "base/hash.h"
#include "base/time.h"
#include "client/client.h"
#include "control/status_pump.h"
#include "env/actor.h"
#include "model/groups.h"
#include "model/vocabulary.h"

namespace berth::control {

[[nodiscard]] client::Resource PodGroups();

// PodGroups as observed, and what their status is to say. The only writer of it: PodGroup has no
// status subresource, so each write is a patch of the object (control/status_pump.h). A phase is
// written at once; counts and conditions not more often than the interval.
//
// A copyable value. Cost per call: O(log groups).
class Groups {
 public:
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

  explicit Groups(StatusOptions options) : pump_(options) {}

  // A version of an object; to be called for each. What it means as a fact.
  [[nodiscard]] model::GroupUpsert Observe(api::PodGroup group, model::Vocabulary& vocabulary);
  void Forget(std::string_view uid);
  // What a PriorityClass stands for; nothing: it is gone. The facts that follow anew.
  [[nodiscard]] std::vector<model::GroupUpsert> ObserveClass(std::string_view name,
                                                             std::optional<int32_t> value,
                                                             model::Vocabulary& vocabulary);
  // What to change in a group that is not taken as it is given, as its condition says it: for its
  // PriorityClass doesn't exist, or its minResources are more than is kept for a group. Empty:
  // nothing.
  [[nodiscard]] std::string NoteOn(std::string_view uid) const;
  // Ignored for groups that were never observed.
  void Want(std::string_view uid, Wanted wanted);

  void Pump(Instant now, client::Client& client, env::Outbox& out) { pump_.Pump(now, client, out); }
  // False: the call was none of these.
  bool OnCallDone(Instant now, const client::CallDone& done) { return pump_.OnCallDone(now, done); }
  [[nodiscard]] Instant wake_at() const { return pump_.wake_at(); }
  [[nodiscard]] const StatusCounters& counters() const { return pump_.counters(); }

  void AddTo(Hasher& hasher) const;

 private:
  struct Subject {
    api::PodGroup group;         // As observed.
    bool class_missing = false;  // It names a PriorityClass that doesn't exist.
    std::optional<Wanted> wanted;

    [[nodiscard]] std::string note() const;
    [[nodiscard]] const api::ObjectMeta& meta() const { return group.meta; }
    // REQUIRES: something is wanted.
    [[nodiscard]] api::Condition condition() const;
    [[nodiscard]] StatusNeed need() const;
    [[nodiscard]] client::Request WriteOf(Instant now) const;
    void AddTo(Hasher& hasher) const;
  };
  [[nodiscard]] bool LacksClass(const api::PodGroup& group) const;
  [[nodiscard]] model::GroupUpsert FactsOf(const api::PodGroup& group,
                                           model::Vocabulary& vocabulary) const;

  StatusPump<Subject> pump_;                             // By uid.
  std::map<std::string, int32_t, std::less<>> classes_;  // By name.
};

}  // namespace berth::control
