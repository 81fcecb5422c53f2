#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/hash.h"
#include "base/prng.h"
#include "base/time.h"
#include "env/actor.h"

namespace berth::sim {

// The simulated durable log: what is appended becomes durable after a delay, in order. At a crash
// the append under way is there or not, by chance; what was acknowledged always is.
class Journal {
 public:
  explicit Journal(uint64_t seed) : prng_(seed) {}

  void Append(Instant now, env::AppendJournal append);
  [[nodiscard]] Instant next_at() const;
  // REQUIRES: next_at() is not Never().
  struct Done {
    env::JournalAppended appended;
    std::vector<env::JournalRecord> records;  // What has become durable.
  };
  Done Pop();
  // There is no room for the append that would be durable next. REQUIRES: as Pop.
  env::JournalRefused Refuse();
  // What a new server finds: the live records in key order.
  struct Recovered : env::JournalContent {
    std::vector<env::JournalRecord> survivors;  // Unacknowledged, but found.
  };
  Recovered Recover();

  void AddTo(Hasher& hasher) const;

 private:
  struct Pending {
    Instant at;
    env::AppendJournal append;
  };
  void Apply(const env::AppendJournal& append);

  Prng prng_;
  Instant last_;
  std::vector<Pending> pending_;
  std::map<std::string, env::JournalRecord> live_;
  uint64_t revision_ = 0;
};

}  // namespace berth::sim
