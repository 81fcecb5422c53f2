#pragma once

#include <cstdint>
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
#include "model/delta.h"
#include "model/ledger.h"

namespace berth::control {

// The indices of a device mask, ascending, with commas.
[[nodiscard]] std::string GpuIndexText(model::DeviceSlots devices);

// Carries out bindings and finds out what became of them.
//
// One attempt per pod uid exists at a time:
//
//   Bind --> POST binding --Done, Refused, never sent--> BindOutcome
//                 |
//                 +--Conflict, Gone, Unknown--> BindOutcome, then GET pod --> learn it, BindRead
//                                                             ^     |
//                                                             +-----+
//                                          the read failed: again after 1 s, 2 s, ... 10 s
//
// A binding is never sent twice: what an attempt of unknown fate did is read (D01, D04). The facts
// go to the engine, which decides anew. A copyable value.
class Binder {
 public:
  struct Attempt {
    client::ObjectRef pod;
    std::string scheduler_name;
    std::string node;
    model::DeviceSlots devices;
    bool by_extender = false;  // Who has another voice in the log.
    bool sent_again = false;   // Test code only: the planted repetition happened.
  };
  struct Counters {
    uint64_t sent = 0;
    uint64_t done = 0;
    uint64_t conflicts = 0;
    uint64_t gone = 0;
    uint64_t refused = 0;
    uint64_t unknown = 0;
    uint64_t withdrawn = 0;  // Taken back before they were sent.
    uint64_t not_sent = 0;   // The client gave up on sending them.
    uint64_t reads = 0;
  };
  // What an ended call means.
  struct Result {
    std::optional<model::BindOutcome> outcome;
    Attempt attempt;
    // Of the binding, also once the pod was read for it; without a message where all went well.
    client::ApiStatus status;
    // The pod was read: learn `object` (empty: it was not found), then apply BindRead.
    bool read = false;
    Bytes object;
  };

  // With `planted_repeat`, a binding of unknown fate is sent once more: the defect that the
  // simulator must find. With `planted_twice`, a pod may have two bindings on their way: what comes
  // of other defects.
  explicit Binder(bool planted_repeat = false, bool planted_twice = false)
      : planted_repeat_(planted_repeat), planted_twice_(planted_twice) {}

  void Bind(Instant now, Attempt attempt, client::Client& client, env::Outbox& out);
  // The same, by a call that somebody else has sent: its end is told to OnCallDone.
  void Expect(env::CallId call, Attempt attempt);
  // Takes back one that was expected and came to nothing.
  Attempt TakeBack(env::CallId call);

  // Takes back a binding that still waits to be sent. Nothing when there is none or it is on its
  // way.
  std::optional<Attempt> Withdraw(std::string_view uid, client::Client& client);
  // The same for all bindings to a node.
  std::vector<Attempt> WithdrawNode(std::string_view node, client::Client& client);

  // Repeats the reads that failed and whose backoff is over.
  void Pump(Instant now, client::Client& client, env::Outbox& out);
  // When Pump() is next wanted. Never() for nothing.
  [[nodiscard]] Instant wake_at() const {
    return failed_reads_.empty() ? Instant::Never() : failed_reads_.begin()->first.first;
  }

  // Nothing when the call is not one of these.
  std::optional<Result> OnCallDone(Instant now, const client::CallDone& done,
                                   client::Client& client, env::Outbox& out);

  [[nodiscard]] bool busy(std::string_view uid) const { return call_of_.contains(uid); }
  [[nodiscard]] size_t size() const { return call_of_.size(); }
  [[nodiscard]] const Counters& counters() const { return counters_; }
  void AddTo(Hasher& hasher) const;

 private:
  struct Open {
    Attempt attempt;
    bool reading = false;
    uint32_t reads_failed = 0;
    client::ApiStatus status;  // Of the binding for which it is read.
  };

  void Read(Instant now, Open open, client::Client& client, env::Outbox& out);

  bool planted_repeat_;                                   // Immutable after construction.
  bool planted_twice_;                                    // Likewise.
  std::map<uint64_t, Open> open_;                         // By call.
  std::map<std::string, uint64_t, std::less<>> call_of_;  // By pod uid; 0: in failed_reads_.
  std::map<std::pair<Instant, std::string>, Open> failed_reads_;  // By when to try again, and uid.
  Counters counters_;
};

}  // namespace berth::control
