#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "apiserver/webhook_calls.h"
#include "base/hash.h"
#include "base/time.h"
#include "env/actor.h"
#include "store/store.h"

namespace berth::apiserver {

// A write that did nothing yet, but parts of a collection's deletion, and asked webhooks. Made
// again with the same time and seed it comes to the same, as far as the head is the same.
struct WaitingWrite {
  env::RequestArrived arrived;
  Identity identity;
  Instant now;  // When it arrived.
  uint64_t seed = 0;
  std::vector<HeardVerdict> heard;
  CollectionProgress progress = {};
};

void AddWrite(const WaitingWrite& write, Hasher& hasher);

// The writes that wait for webhooks, and the calls that they wait for. A copyable value. Not
// thread-safe.
//
// Bounds: limits::kWaitingWritesMax and kWaitingBytesMax. Each write ends within kTimeMax: with its
// last answer, by Abandon, or by Expire.
class WaitingWrites {
 public:
  // Upstream's time for a request.
  static constexpr Duration kTimeMax = Duration::Seconds(60);

  // Calls what is wanted. Nothing: the write waits. Else it is given back, for no call could be
  // sent, and what came of that was heard. Problem: 429. REQUIRES: a write of that exchange isn't
  // here; `now` is before its time is over.
  [[nodiscard]] Outcome<std::optional<WaitingWrite>> Wait(Instant now, WaitingWrite write,
                                                          const std::vector<WantedCall>& wanted,
                                                          const store::Store& store,
                                                          env::Outbox& out);

  // An answer, or that there is none. The write when it was the last that it waited for.
  [[nodiscard]] std::optional<WaitingWrite> Hear(const env::Response& response);
  [[nodiscard]] std::optional<WaitingWrite> Hear(const env::CallFailed& failed);

  // The client has gone.
  void Abandon(env::ExchangeId exchange, env::Outbox& out);
  // Ends the writes whose time is over.
  [[nodiscard]] std::vector<WaitingWrite> Expire(Instant now, env::Outbox& out);
  // When the next one's is.
  [[nodiscard]] Instant wake_at() const;

  [[nodiscard]] size_t size() const { return writes_.size(); }
  [[nodiscard]] size_t calls_count() const { return calls_.size(); }
  void AddTo(Hasher& hasher) const;

 private:
  struct Entry {
    WaitingWrite write;
    int64_t bytes = 0;
    int calls_count = 0;
  };
  struct Call {
    env::ExchangeId exchange;
    WebhookRef webhook;
    Bytes about;
    std::string uid;
  };

  std::optional<WaitingWrite> Hear(env::CallId call, const env::HttpResponse* response,
                                   std::string_view why);
  WaitingWrite Take(std::map<uint64_t, Entry>::iterator entry);
  void Cancel(env::ExchangeId exchange, env::Outbox& out);

  std::map<uint64_t, Entry> writes_;             // By exchange.
  std::set<std::pair<int64_t, uint64_t>> ends_;  // When each write's time is over, in ns.
  std::map<uint64_t, Call> calls_;               // By CallId.
  uint64_t last_call_ = 0;
  int64_t bytes_ = 0;
};

}  // namespace berth::apiserver
