#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "base/backoff.h"
#include "base/check.h"
#include "base/hash.h"
#include "base/time.h"
#include "client/client.h"
#include "env/actor.h"

namespace berth::control {

// Whether a status says what is wanted, and how soon it has to.
enum class StatusNeed : uint8_t { kNone, kSoon, kNow };

struct StatusOptions {
  Duration interval = Duration::Seconds(1);  // Between writes of an object that need not be now.
  size_t calls_max = 16;                     // On their way at once.
};

struct StatusCounters {
  uint64_t writes = 0;
  uint64_t conflicts = 0;
  uint64_t failures = 0;
};

// The statuses of objects of one kind, whose only writer this is. Each write is a merge patch,
// fenced by uid and resourceVersion.
//
// Whether a write is due is a function of what is wanted and what was last observed, so nothing is
// written twice. After a write the next version is waited for, which says what became of it; one of
// unknown fate, or in conflict with a version that does not come, is written again a while later,
// since its fence lets it come true once at most. So is one that is refused, each time after twice
// as long, until one is done.
//
// A Subject is what is known of one object and what its status is to say:
//   const api::ObjectMeta& meta() const;         of the last version that was observed
//   StatusNeed need() const;
//   client::Request WriteOf(Instant now) const;  REQUIRES: a need
//   void AddTo(Hasher& hasher) const;
//
// A copyable value. Cost per call: O(log objects).
template <typename Subject>
class StatusPump {
 public:
  explicit StatusPump(StatusOptions options) : options_(options) {}

  // Null when there is none of that key, which is whatever names the objects.
  [[nodiscard]] Subject* Find(std::string_view key) {
    const auto it = notes_.find(key);
    return it == notes_.end() ? nullptr : &it->second.subject;
  }
  [[nodiscard]] const Subject* Find(std::string_view key) const {
    const auto it = notes_.find(key);
    return it == notes_.end() ? nullptr : &it->second.subject;
  }
  // Made when there is none.
  [[nodiscard]] Subject& At(const std::string& key) { return notes_[key].subject; }
  // In the order of their keys: visit(key, subject).
  template <typename Visit>
  void ForEach(Visit visit) {
    for (auto& [key, note] : notes_) visit(key, note.subject);
  }
  template <typename Visit>
  void ForEach(Visit visit) const {
    for (const auto& [key, note] : notes_) visit(key, note.subject);
  }

  // To be called after each change of a subject, which must be there.
  void Reconsider(std::string_view key);
  void Forget(std::string_view key);

  void Pump(Instant now, client::Client& client, env::Outbox& out);
  // False: the call was none of these.
  bool OnCallDone(Instant now, const client::CallDone& done);
  [[nodiscard]] Instant wake_at() const {
    if (due_.empty() || calls_.size() >= options_.calls_max) return Instant::Never();
    return due_.begin()->first;
  }
  [[nodiscard]] const StatusCounters& counters() const { return counters_; }

  void AddTo(Hasher& hasher) const;

 private:
  // Of a write that was refused, is of unknown fate, or was in conflict with no version that came.
  static constexpr Duration kAgain = Duration::Seconds(10);
  // Of one that the server refuses again and again.
  static constexpr Duration kRefusedWaitMax = Duration::Minutes(5);

  struct Note {
    Subject subject;
    uint64_t call = 0;          // Under way; 0: none.
    std::string spent_version;  // Not written to again, before then: the next is on its way.
    Instant spent_until = Instant::Never();
    std::string sent_version;  // What the last write was fenced by.
    Instant not_before;        // Of what is needed soon, and of what is needed now.
    Instant now_not_before;
    uint32_t refusals = 0;  // By the server, in a row.
    Instant due = Instant::Never();
  };
  using Notes = std::map<std::string, Note, std::less<>>;

  void Reconsider(const std::string& key, Note& note);

  StatusOptions options_;  // Immutable after construction.
  Notes notes_;
  std::set<std::pair<Instant, std::string>> due_;
  std::map<uint64_t, std::string> calls_;  // Call -> key.
  StatusCounters counters_;
};

template <typename Subject>
void StatusPump<Subject>::Reconsider(std::string_view key) {
  const auto it = notes_.find(key);
  CHECK(it != notes_.end());
  Reconsider(it->first, it->second);
}

template <typename Subject>
void StatusPump<Subject>::Reconsider(const std::string& key, Note& note) {
  due_.erase({note.due, key});
  note.due = Instant::Never();
  const bool spent = note.spent_version == note.subject.meta().resource_version;
  if (note.call != 0 || (spent && note.spent_until == Instant::Never())) return;
  const StatusNeed need = note.subject.need();
  if (need == StatusNeed::kNone) return;
  note.due = need == StatusNeed::kNow ? note.now_not_before : note.not_before;
  if (spent) note.due = std::max(note.due, note.spent_until);
  due_.emplace(note.due, key);
}

template <typename Subject>
void StatusPump<Subject>::Forget(std::string_view key) {
  const auto it = notes_.find(key);
  if (it == notes_.end()) return;
  due_.erase({it->second.due, it->first});
  notes_.erase(it);
}

template <typename Subject>
void StatusPump<Subject>::Pump(Instant now, client::Client& client, env::Outbox& out) {
  while (calls_.size() < options_.calls_max && !due_.empty() && due_.begin()->first <= now) {
    const std::string key = due_.begin()->second;
    Note& note = notes_.find(key)->second;
    due_.erase(due_.begin());
    note.due = Instant::Never();
    note.call = client.Call(now, note.subject.WriteOf(now), out).value;
    note.sent_version = note.subject.meta().resource_version;
    note.not_before = now + options_.interval;
    calls_.emplace(note.call, key);
    ++counters_.writes;
  }
}

template <typename Subject>
bool StatusPump<Subject>::OnCallDone(Instant now, const client::CallDone& done) {
  const auto call = calls_.find(done.call.value);
  if (call == calls_.end()) return false;
  const auto it = notes_.find(call->second);
  calls_.erase(call);
  if (it == notes_.end() || it->second.call != done.call.value) return true;
  Note& note = it->second;
  note.call = 0;
  switch (done.outcome) {
    case client::Outcome::kDone:
    case client::Outcome::kGone:
      note.spent_version = note.sent_version;
      note.spent_until = Instant::Never();
      note.refusals = 0;
      break;
    case client::Outcome::kConflict:
      ++counters_.conflicts;
      note.spent_version = note.sent_version;
      note.spent_until = now + kAgain;
      break;
    case client::Outcome::kRefused:
    case client::Outcome::kUnknown: {
      ++counters_.failures;
      // What was never sent the server has not refused.
      const bool refused = done.outcome == client::Outcome::kRefused && done.response.status != 0;
      if (refused) ++note.refusals;
      note.not_before = note.now_not_before =
          now + (refused ? Doubled(kAgain, note.refusals, kRefusedWaitMax) : kAgain);
      break;
    }
  }
  Reconsider(it->first, note);
  return true;
}

// due_ follows from the notes.
template <typename Subject>
void StatusPump<Subject>::AddTo(Hasher& hasher) const {
  hasher.Add(notes_.size());
  for (const auto& [key, note] : notes_) {
    hasher.Add(key);
    note.subject.AddTo(hasher);
    hasher.AddCall(note.call).AddVersion(note.spent_version).AddVersion(note.sent_version);
    hasher.Add(note.spent_until.ns).Add(note.not_before.ns).Add(note.now_not_before.ns);
    hasher.Add(note.refusals).Add(note.due.ns);
  }
  hasher.Add(calls_.size());
  hasher.AddEach(calls_, [](Hasher& one, const auto& entry) {
    one.AddCall(entry.first).Add(std::string_view(entry.second));
  });
}

}  // namespace berth::control
