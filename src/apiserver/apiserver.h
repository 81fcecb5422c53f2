#pragma once

#include <cstdint>
#include <deque>
#include <expected>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/time_zone.h"
#include "apiserver/authorizer.h"
#include "apiserver/definitions.h"
#include "apiserver/discovery.h"
#include "apiserver/event_expiry.h"
#include "apiserver/impersonation.h"
#include "apiserver/problem.h"
#include "apiserver/quotas.h"
#include "apiserver/render.h"
#include "apiserver/request.h"
#include "apiserver/service_tokens.h"
#include "apiserver/waiting_writes.h"
#include "apiserver/watches.h"
#include "apiserver/webhooks.h"
#include "base/hash.h"
#include "base/limits.h"
#include "base/prng.h"
#include "base/result.h"
#include "base/time.h"
#include "env/actor.h"
#include "store/store.h"

namespace berth::apiserver {

// A bearer token and whom it stands for.
struct Token {
  std::string token;
  Identity identity;
};

struct Options {
  uint64_t seed = 0;  // Of uids and generated names.
  std::vector<Token> tokens;
  QuotaCounter quota_counter = QuotaCounter::kServer;
  bool bootstrap_roles = false;  // Make the roles and bindings that a fresh cluster has.
  // Of the tokens of ServiceAccounts; null: there are none.
  std::shared_ptr<const TokenKey> token_key = nullptr;
  std::string host = {};  // Where clients reach the server: an address and a port.
  // Keep default/kubernetes, the Service that the server is known by, and that it is at `host`.
  bool own_service = false;
  // Make the StorageClass "standard" for claims that name none, where there is no class at all.
  bool own_storage_class = false;
  // The time zones that CronJobs may name; null: any.
  std::shared_ptr<const api::TimeZones> zones = nullptr;
  Duration event_ttl = kEventTtl;  // How long an Event stays after its last write; > 0.
  int64_t watches_max = limits::kWatchesMax;
  // How far back a watch resumes, and what it may have unread; for tests.
  int64_t log_events_max = limits::kWatchLogEventsMax;
  int64_t log_bytes_max = limits::kWatchLogBytesMax;
  int64_t watch_unread_max = limits::kWatchUnreadBytesMax;
};

// The API server: kube-apiserver's protocol over the store
// (docs/design/0003-store-and-api-server.md).
//
//   RequestArrived ──> authenticate ──> route ──┬─ read: answered at once, of what is durable
//                                               └─ write: admit, validate, commit against the head
//                                                     │
//         Tick or JournalAppended: AppendJournal <────┘
//                 └──> JournalAppended: answers and watch events go out
//
// A write that webhooks concern is kept until they have said what they think, and is done again
// then, against the head of then (docs/design/0022-webhooks.md).
//
// A large list is written in parts, and a large collection deleted so: one part of each at a Tick,
// so that others are answered between them. Lists wait for each other, for one text at a time is in
// the making.
//
// Nobody is answered before the namespaces and all else that the server makes of itself are
// readable, or there is no room for them.
//
// One append is on its way at a time; what is written meanwhile is the next. A write is answered,
// readable and watched when it is durable, and so is a refusal that rests on one that isn't yet.
// Where the journal has no room, all that wait are answered 507, and the head is what is durable
// again; what the server writes by itself is looked for anew after a while. Reads go on.
//
// Everything a request can do wrong is answered with a Status; nothing a client sends ends the
// process. Not thread-safe; copying forks the server with all its watches.
class ApiServer final : public env::Actor {
 public:
  // kDamaged: the journal's content is not what this version wrote.
  static Result<ApiServer> Make(Options options, const env::JournalContent& content);

  void Step(Instant now, env::Input input, env::Outbox& out) override;
  [[nodiscard]] Instant wake_at() const override;
  void AddTo(Hasher& hasher) const override;

  // For the explorer, in which uids follow from what is made, not from how much was made before.
  void Reseed(uint64_t seed) { prng_ = Prng(seed); }

  // For checkers and statistics.
  [[nodiscard]] const store::Store& store() const { return store_; }
  [[nodiscard]] size_t expiring_events_count() const { return event_expiry_.size(); }
  [[nodiscard]] size_t watches_count() const { return watches_.size(); }
  [[nodiscard]] const WaitingWrites& waiting_writes() const { return waiting_writes_; }

 private:
  // An answer that waits for the revision it rests on to be durable.
  struct PendingAnswer {
    uint64_t revision = 0;
    env::Respond respond;
  };

  // A list that is written in parts.
  struct LongList {
    env::ExchangeId exchange;
    std::vector<env::Header> headers;  // Warnings.
    bool wrote = false;                // It rests on the head.
    ListRenderer list;
  };

  // One handling of a request.
  struct Turn {
    Instant now;
    const env::RequestArrived& arrived;
    env::Outbox& out;
    WaitingWrite* write = nullptr;  // A write that has waited.
    bool later = false;             // The answer comes by itself.
    // What is to take the place of the answer's body.
    std::optional<ListRenderer> list = {};
  };

  ApiServer(Options options, store::Store store);

  void MakeOwn(Instant now);
  // Serves who came before what every cluster has was durable, once it is.
  void Open(Instant now, env::Outbox& out);
  void MakeOwnAccess(Instant now);
  void KeepService(Instant now);
  // Who sends a request: a bearer token's identity, else the peer. Problem: 401 for an unknown
  // token or for nobody, unless the path is public.
  [[nodiscard]] Outcome<Identity> Authenticate(Instant now, const env::HttpRequest& request,
                                               const env::Peer& peer) const;
  [[nodiscard]] std::expected<ServiceTokens::Verified, std::string> VerifyToken(
      Instant now, const ServiceTokens::Asked& asked) const;
  // Whom a request is from in the end, who may do what it wants. Problems: 401, 403.
  [[nodiscard]] Outcome<Identity> Admit(Instant now, const Target& target,
                                        const env::RequestArrived& arrived);
  void ExpireEvents(Instant now);
  void Arrive(Instant now, const env::RequestArrived& arrived, env::Outbox& out);
  void Resume(Instant now, std::optional<WaitingWrite> write, env::Outbox& out);
  void EndLateWrites(Instant now, env::Outbox& out);
  void ContinueLong(Instant now, env::Outbox& out);
  void ContinueList(env::Outbox& out);
  void Abandon(env::ExchangeId exchange, env::Outbox& out);
  void Finish(Turn& turn, uint64_t revision_before, Outcome<env::HttpResponse> response);
  [[nodiscard]] Outcome<env::HttpResponse> Handle(Turn& turn);
  [[nodiscard]] Outcome<env::HttpResponse> HandleAdmitted(Turn& turn, Target target,
                                                          const Identity& identity);
  [[nodiscard]] Outcome<env::HttpResponse> HandleResource(Turn& turn,
                                                          const ResourceRequest& request);
  [[nodiscard]] Outcome<env::HttpResponse> TryWrite(const WriteTools& tools,
                                                    const ResourceRequest& request) const;
  [[nodiscard]] Outcome<env::HttpResponse> Write(Turn& turn, const ResourceRequest& request);
  void Answer(env::ExchangeId exchange, env::HttpResponse response, bool wrote, env::Outbox& out);
  // Sees to the definitions of users' kinds after durable changes of them.
  void RefreshDefinitions(Instant now, env::Outbox& out);
  void Append(env::Outbox& out);
  void Appended(Instant now, uint64_t sequence, env::Outbox& out);
  void Refused(Instant now, uint64_t sequence, env::Outbox& out);

  Options options_;  // Immutable after construction.

  store::Store store_;
  Prng prng_;
  Watches watches_;
  Authorizer authorizer_;  // Made of what the store has durably: not hashed.
  ServiceTokens service_tokens_;
  LastModes last_modes_;
  Definitions definitions_;  // Made of what the store has durably: not hashed.
  Discovery discovery_;      // A cache, made of the tables and definitions: not hashed.
  EventExpiry event_expiry_;
  Webhooks webhooks_;  // Made of what the store has durably: not hashed.
  WaitingWrites waiting_writes_;
  std::deque<PendingAnswer> pending_answers_;
  // Of both one at a time goes on, at each Tick.
  std::deque<LongList> long_lists_;
  std::deque<WaitingWrite> long_deletions_;
  bool started_ = false;
  bool open_ = false;
  uint64_t own_revision_ = 0;               // Of the last that the server made at its start.
  std::vector<env::RequestArrived> early_;  // What came before that was durable.
  // When what the server itself writes is to be looked for: Never() once it is written.
  Instant own_writes_at_{0};
  Instant own_service_at_ = Instant::Never();  // Likewise, of what could not be made.
};

}  // namespace berth::apiserver
