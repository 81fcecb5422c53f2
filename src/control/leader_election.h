#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/hash.h"
#include "base/prng.h"
#include "base/result.h"
#include "base/time.h"
#include "client/client.h"
#include "env/actor.h"

namespace berth::control {

// The calls of an election are those from the first of these on, below the second: the process may
// give them connections of their own. Calls of an actor's other clients begin far below, or above.
inline constexpr uint64_t kElectionFirstCall = uint64_t{1} << 48;
inline constexpr uint64_t kElectionCallsEnd = uint64_t{1} << 49;

// One of several replicas leads: the one that a Lease names
// (https://kubernetes.io/docs/concepts/architecture/leases/#leader-election). As client-go's leader
// election writes and reads it, so that a replica of either kind keeps the other out.
struct LeaderElectionOptions {
  std::string identity;  // Unique among all that may hold the lease. Not empty.
  std::string namespace_name = "kube-system";
  std::string name = "kube-scheduler";
  // How long others leave a lease alone that they don't see change.
  Duration lease_duration = Duration::Seconds(15);
  // How long after the last renewal that came true its holder still acts.
  Duration renew_deadline = Duration::Seconds(10);
  // From one attempt to renew it to the next; between those to acquire it up to 2.2 times as long.
  Duration retry_period = Duration::Seconds(2);
  client::Options client = {};  // Its requests never wait behind others of the actor.
  // Test code only: the defect "the leader acts until it is told that it is none".
  bool planted_trusts_itself = false;
};

// What is wrong with them, by the names of the flags; empty: nothing. As upstream: lease > renew >
// 1.2 x retry, all above zero.
[[nodiscard]] std::string ProblemOf(const LeaderElectionOptions& options);

// The record that a Lease holds.
struct LeaseRecord {
  std::string holder;  // Empty: nobody, it was released.
  int64_t duration_seconds = 0;
  std::string acquire_time;  // As it was written: nobody's clock is compared with ours.
  std::string renew_time;
  int64_t transitions = 0;
  bool operator==(const LeaseRecord&) const = default;
};
// Of a Lease's document. An error when it is none or a member is of another type.
[[nodiscard]] Result<LeaseRecord> ReadLeaseRecord(std::string_view document);

// Acquires, renews and releases the lease.
//
//             the lease is free: released, ours, or not seen
//             to change for its duration, were it deleted
//   waiting ──GET──> reading ──PUT, POST──> writing ──2xx──> leads, waiting
//      ^                │ another's            │ 409, 404: read again; else later
//      └────────────────┴──────────────────────┘
//   leads ── renew_deadline since the last renewal was sent, another's name in it, no lease ──>
//            does not lead
//
// A lease is judged by how long ago this replica saw it change, by its own clock: the times in it
// are never compared with a clock (clocks may differ by any amount, only not in rate). Its
// own lead is counted from when the renewal left, others count from when they see it: there are
// lease_duration - renew_deadline between the end of the one and the start of the other.
//
// An actor embeds it: a copyable value, with a client of its own. Cost per call: O(1).
class LeaderElection {
 public:
  explicit LeaderElection(LeaderElectionOptions options);

  // From now on it tries to lead. Until then it only watches its own clock.
  void Stand() { stands_ = true; }
  // Takes each input of the actor, before anything else does. leads() may change here alone.
  void Handle(Instant now, const env::Input& input, env::Outbox& out);
  // Leads no more, and gives the lease back, once what is on its way has ended.
  void Release(Instant now, env::Outbox& out);

  [[nodiscard]] bool leads() const { return leads_; }
  // Of what it decides no write may leave at this instant or later, unless the lease is renewed by
  // then. REQUIRES: leads.
  [[nodiscard]] Instant leads_until() const {
    return options_.planted_trusts_itself ? Instant::Never() : Deadline();
  }
  // Released, or there was nothing to release: nothing more is done.
  [[nodiscard]] bool over() const { return phase_ == Phase::kOver; }
  // Who holds the lease, as it was seen last.
  [[nodiscard]] const std::string& holder() const { return record_.holder; }
  [[nodiscard]] const LeaderElectionOptions& options() const { return options_; }
  // Empty: it was not seen.
  [[nodiscard]] const std::string& lease_uid() const { return uid_; }
  // How often it began to lead.
  [[nodiscard]] uint64_t terms() const { return terms_; }
  // When Handle(Tick) is wanted. Never() for nothing.
  [[nodiscard]] Instant wake_at() const;
  void AddTo(Hasher& hasher) const;

 private:
  enum class Phase : uint8_t { kWaiting, kReading, kWriting, kOver };

  void OnTick(Instant now, env::Outbox& out);
  void OnCallDone(Instant now, const client::CallDone& done, env::Outbox& out);
  void OnRead(Instant now, const client::CallDone& done, env::Outbox& out);
  void OnWritten(Instant now, const client::CallDone& done, env::Outbox& out);
  void Read(Instant now, env::Outbox& out);
  void Write(Instant now, env::Outbox& out);
  void Wait(Instant now);
  void Observe(Instant now, const LeaseRecord& record, std::string_view document);
  void Forget();
  void Lead(Instant now, env::Outbox& out);
  void Lose(const std::string& why, env::Outbox& out);
  void Tell(env::LogLevel level, const std::string& text, env::Outbox& out);
  [[nodiscard]] Instant Deadline() const { return renewed_at_ + options_.renew_deadline; }
  [[nodiscard]] bool HeldByAnother(Instant now) const;
  [[nodiscard]] std::string Document(Instant now) const;
  [[nodiscard]] std::string Name() const;

  LeaderElectionOptions options_;  // Immutable after construction.
  client::Client client_;
  Prng prng_;
  Phase phase_ = Phase::kWaiting;
  bool stands_ = false;
  bool releases_ = false;  // Gives the lease back next.
  bool leads_ = false;
  bool from_memory_ = false;  // What is written was not read just before.
  uint64_t call_ = 0;         // Under way; 0: none.
  Instant sent_at_;           // It.
  Instant at_{0};             // kWaiting: when to try again.
  LeaseRecord record_;        // As seen last; of no lease: empty.
  std::string document_;      // The whole of it, with its version; empty: there is none.
  std::string uid_;
  bool known_ = false;  // What record_ says is what the server has, as far as is known.
  Instant free_at_;     // Until then one that is gone is left alone: it was held.
  Instant changed_at_;  // When record_ was seen to change, by our clock.
  Instant renewed_at_;  // When the last renewal that came true left.
  uint64_t terms_ = 0;
  std::string told_;  // The last line of the log.
};

}  // namespace berth::control
