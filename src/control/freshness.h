#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/hash.h"
#include "base/time.h"
#include "client/client.h"
#include "env/actor.h"

namespace berth::control {

// What a client's list-watches know is made at least as new as the server was at Begin(), so that
// who begins to lead can't decide on what the last leader's writes have changed already (D11).
//
//   Begin: of each list-watch  GET collection?limit=1 ──> the version that it has now
//          the watch has told all up to it ──> fresh
//          it has not within kPatience: it is listed again, and fresh once that list has ended
//
// Versions of one collection ascend, so a watch that has told a later one has told all before it.
// Where nothing changes no watch tells of it for a minute (bookmarks): hence the list. A copyable
// value. Cost per call: O(list-watches) while it stands, else O(1).
class FreshnessBarrier {
 public:
  static constexpr Duration kPatience = Duration::Seconds(1);

  void Begin(Instant now, client::Client& client, env::Outbox& out);
  // Nothing is waited for any more.
  void Abort() { behind_.clear(); }
  // Whether anything is still to be made fresh.
  [[nodiscard]] bool stands() const { return !behind_.empty(); }

  // False: the call was none of these. `out`: where what keeps it standing is told, once.
  bool OnCallDone(Instant now, const client::CallDone& done, const client::Client& client,
                  env::Outbox& out);
  // To be called after each input of the client.
  void Pump(Instant now, client::Client& client, env::Outbox& out);
  [[nodiscard]] Instant wake_at() const;
  void AddTo(Hasher& hasher) const;

 private:
  struct Behind {
    client::WatchId watch;
    uint64_t call = 0;        // That asks for the version; 0: none is under way.
    std::string version;      // What is to be reached; empty: not known yet.
    Instant at = Instant{0};  // When to ask, or to list, if it is not reached by then.
    bool absent = false;      // The server doesn't know it, or doesn't show it.
    bool lists = false;       // It is listed again.
  };
  void Ask(Instant now, Behind& behind, client::Client& client, env::Outbox& out);
  [[nodiscard]] static bool IsFresh(const Behind& behind, const client::Client& client);

  std::vector<Behind> behind_;
  std::string told_;  // The last line of the log.
};

}  // namespace berth::control
