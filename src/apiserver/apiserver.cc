#include "apiserver/apiserver.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "api/custom_definition.h"
#include "api/duration.h"
#include "api/field_error.h"
#include "api/fields.h"
#include "api/object.h"
#include "api/text.h"
#include "api/well_known.h"
#include "apiserver/access.h"
#include "apiserver/attributes.h"
#include "apiserver/bootstrap_roles.h"
#include "apiserver/impersonation.h"
#include "apiserver/objects.h"
#include "apiserver/own_service.h"
#include "apiserver/reads.h"
#include "apiserver/render.h"
#include "apiserver/writes.h"
#include "base/check.h"

namespace berth::apiserver {

namespace {

using api::Json;
using api::JsonArray;
using api::JsonObject;
using api::KindId;

// Writes of this many objects go to the journal without waiting for a pause: a group commit's
// latency stays small under load.
constexpr size_t kGroupMax = 1024;
// How long the server waits with writes of its own after one for which there was no room.
constexpr Duration kOwnWritesRetry = Duration::Seconds(5);
constexpr Duration kOwnServiceRetry = Duration::Seconds(10);
// Lists that are written in parts, and collections deleted so: what they hold is a pointer an
// object, 50 MB for as many lists of 50,000. What comes beyond takes its time at once.
constexpr size_t kLongMax = 64;

store::Store::Options StoreOptionsOf(const Options& options, const env::JournalContent& content) {
  store::Store::Options result = StoreOptions();
  for (std::string& name : DefinedTables(content)) {
    if (std::ranges::find(result.tables, name) == result.tables.end())
      result.tables.push_back(std::move(name));
  }
  result.log_events_max = static_cast<size_t>(options.log_events_max);
  result.log_bytes_max = static_cast<size_t>(options.log_bytes_max);
  return result;
}

// Whoever is known is of this group.
void NoteKnown(Identity& identity) {
  constexpr std::string_view kKnown = "system:authenticated";
  if (std::ranges::find(identity.groups, kKnown) == identity.groups.end())
    identity.groups.emplace_back(kKnown);
}

// The token of an Authorization header: `Bearer TOKEN`, however the first word is written, and
// whatever follows. Empty: it has none.
std::string_view BearerOf(std::string_view header) {
  header.remove_prefix(std::min(header.find_first_not_of(" \t"), header.size()));
  const size_t blank = header.find(' ');
  if (blank == header.npos || api::Lower(header.substr(0, blank)) != "bearer") return "";
  const std::string_view rest = header.substr(blank + 1);
  return rest.substr(0, rest.find(' '));
}

// What a request says of its time is only read: answers don't take that long. Of watches and of
// what speaks to containers it isn't even that.
Outcome<void> CheckTimeout(const Target& target, const Attributes& wanted) {
  const std::string text(Query::Parse(target.query).Text("timeout"));
  const std::string_view part = wanted.subresource;
  const bool is_long = wanted.verb == "watch" || part == "attach" || part == "exec" ||
                       part == "proxy" || part == "log" || part == "portforward";
  if (text.empty() || is_long) return {};
  const std::string problem = api::GoDurationProblem(text);
  if (problem.empty()) return {};
  return BadRequest("invalid timeout specified in the request URL - " + problem);
}

Json Named(std::string_view name) { return JsonObject{{"metadata", JsonObject{{"name", name}}}}; }

Json SystemClass(std::string_view name, int64_t value, std::string_view description) {
  Json object = Named(name);
  object.get_object()["value"] = value;
  object.get_object()["description"] = description;
  return object;
}

bool HasAny(const store::Store& store, KindId kind) {
  bool any = false;
  store.WalkHead({.table = static_cast<store::Table>(kind)}, [&](const store::ObjectRef&) {
    any = true;
    return false;
  });
  return any;
}

// Its volumes are made where the first pod goes that wants one.
Json OwnStorageClass() {
  return JsonObject{
      {"metadata",
       JsonObject{{"name", "standard"}, {"annotations", JsonObject{{api::kDefaultClass, "true"}}}}},
      {"provisioner", api::kSimulatedProvisioner},
      {"volumeBindingMode", "WaitForFirstConsumer"}};
}

// What who uses a version is to be told; empty: nothing.
std::string DeprecationOf(const api::Kind& kind) {
  if (kind.is_old()) {
    return fmt::format("This version is deprecated. Use {} instead.",
                       api::KindOf(kind.storage).version);
  }
  if (kind.id == KindId::kEndpoints)
    return "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice";
  if (kind.defined == nullptr || !kind.defined->deprecated) return "";
  if (!kind.defined->deprecation.empty()) return kind.defined->deprecation;
  std::string text = fmt::format("{} {} is deprecated", kind.api_version(), kind.name);
  for (const api::CustomVersion& version : kind.defined->definition->versions()) {
    if (!version.served || version.deprecated) continue;
    return text + fmt::format("; use {} {}", version.kind.api_version(), kind.name);
  }
  return text;
}

}  // namespace

ApiServer::ApiServer(Options options, store::Store store)
    : options_(std::move(options)),
      store_(std::move(store)),
      prng_(options_.seed),
      watches_(options_.watch_unread_max),
      service_tokens_(options_.token_key, options_.host),
      event_expiry_(options_.event_ttl) {}

Result<ApiServer> ApiServer::Make(Options options, const env::JournalContent& content) {
  Result<store::Store> store =
      store::Store::Recover(StoreOptionsOf(options, content), content, &DecodeStored);
  if (!store) return std::unexpected(store.error());
  ApiServer server(std::move(options), std::move(*store));
  const std::vector<store::Table> none_changed = server.definitions_.Refresh(server.store_);
  CHECK(none_changed.empty());
  server.authorizer_.Recover(server.store_);
  server.webhooks_.Recover(server.store_);
  return server;
}

// What every cluster has from the start, and what the server owes to what others wrote.
void ApiServer::MakeOwn(Instant now) {
  own_writes_at_ = Instant::Never();
  // A crash may have come between a definition and what the server writes of it.
  definitions_.Review(now, store_);
  const auto missing = [&](KindId kind, std::string_view name) {
    return store_.FindHead(static_cast<store::Table>(kind), {.namespace_name = "", .name = name}) ==
           nullptr;
  };
  for (const std::string_view name : {"default", "kube-node-lease", "kube-public", "kube-system"}) {
    if (missing(KindId::kNamespace, name)) {
      CreateOwn(now, store_, prng_, KindId::kNamespace, Named(name));
    }
  }
  if (missing(KindId::kPriorityClass, "system-cluster-critical")) {
    CreateOwn(now, store_, prng_, KindId::kPriorityClass,
              SystemClass("system-cluster-critical", 2'000'000'000,
                          "Used for system critical pods that must run in the cluster, but can be "
                          "moved to another node if necessary."));
  }
  if (missing(KindId::kPriorityClass, "system-node-critical")) {
    CreateOwn(now, store_, prng_, KindId::kPriorityClass,
              SystemClass("system-node-critical", 2'000'001'000,
                          "Used for system critical pods that must not be moved from their current "
                          "node."));
  }
  if (options_.own_service) KeepService(now);
  if (options_.own_storage_class && !HasAny(store_, KindId::kStorageClass))
    CreateOwn(now, store_, prng_, KindId::kStorageClass, OwnStorageClass());
  if (options_.bootstrap_roles) MakeOwnAccess(now);
  if (!open_) own_revision_ = store_.next_revision() - 1;
}

void ApiServer::Open(Instant now, env::Outbox& out) {
  if (std::exchange(open_, true)) return;
  for (const env::RequestArrived& arrived : std::exchange(early_, {})) Arrive(now, arrived, out);
}

void ApiServer::KeepService(Instant now) {
  const bool kept = KeepOwnService(now, store_, prng_, options_.host);
  own_service_at_ = kept ? Instant::Never() : now + kOwnServiceRetry;
}

// What somebody has changed of it stays.
void ApiServer::MakeOwnAccess(Instant now) {
  for (BootstrapObject& role : BootstrapRoles()) {
    const std::string_view space = api::TextAt(role.object, "metadata.namespace");
    const std::string_view name = api::TextAt(role.object, "metadata.name");
    if (store_.FindHead(static_cast<store::Table>(role.kind),
                        {.namespace_name = space, .name = name}) != nullptr) {
      continue;
    }
    // As of a request: rules that are not there are null.
    CHECK(api::Conform(api::KindOf(role.kind), role.object).value().empty());
    CreateOwn(now, store_, prng_, role.kind, std::move(role.object));
  }
}

void ApiServer::RefreshDefinitions(Instant now, env::Outbox& out) {
  definitions_.Review(now, store_);
  for (const store::Table table : definitions_.Refresh(store_)) watches_.EndAll(table, out);
  discovery_.Forget();
}

void ApiServer::Step(Instant now, env::Input input, env::Outbox& out) {
  if (!std::exchange(started_, true)) event_expiry_.Recover(now, store_);
  if (own_writes_at_ <= now) MakeOwn(now);
  if (own_service_at_ <= now) KeepService(now);
  if (own_revision_ <= store_.durable_revision()) Open(now, out);
  if (auto* arrived = std::get_if<env::RequestArrived>(&input)) {
    if (open_) {
      Arrive(now, *arrived, out);
    } else {
      early_.push_back(std::move(*arrived));
    }
  } else if (const auto* appended = std::get_if<env::JournalAppended>(&input)) {
    Appended(now, appended->sequence, out);
  } else if (const auto* refused = std::get_if<env::JournalRefused>(&input)) {
    Refused(now, refused->sequence, out);
  } else if (const auto* drained = std::get_if<env::StreamDrained>(&input)) {
    watches_.Drained(now, drained->exchange, drained->bytes, store_, out);
  } else if (const auto* abandoned = std::get_if<env::ExchangeAbandoned>(&input)) {
    Abandon(abandoned->exchange, out);
  } else if (const auto* response = std::get_if<env::Response>(&input)) {
    Resume(now, waiting_writes_.Hear(*response), out);
  } else if (const auto* failed = std::get_if<env::CallFailed>(&input)) {
    Resume(now, waiting_writes_.Hear(*failed), out);
  } else if (std::holds_alternative<env::Tick>(input)) {
    EndLateWrites(now, out);
    ContinueLong(now, out);
    ExpireEvents(now);
    if (store_.has_unsent() && !store_.append_in_flight()) Append(out);
  }
  watches_.Tick(now, store_, out);
}

void ApiServer::ExpireEvents(Instant now) {
  // They are the server's own writes, too.
  if (store_.append_in_flight() || own_writes_at_ != Instant::Never()) return;
  constexpr auto kMost = static_cast<size_t>(kEventsExpiredAtOnceMax);
  for (const store::ObjectRef& event : event_expiry_.Due(now, kMost, store_)) {
    DeleteAsItStands(store_, event);
  }
}

Instant ApiServer::wake_at() const {
  if (store_.has_unsent() && !store_.append_in_flight()) return Instant{0};
  if (!long_lists_.empty() || !long_deletions_.empty()) return Instant{0};
  const Instant next = std::min({watches_.wake_at(), waiting_writes_.wake_at(), own_service_at_});
  if (store_.append_in_flight()) return next;
  const bool own = own_writes_at_ != Instant::Never();
  return std::min(next, own ? own_writes_at_ : event_expiry_.wake_at());
}

// One group at a time. The next goes when the journal has this one and what waits in the inbox has
// been looked at: fewer and larger groups cost less, and a write is seldom later for it.
void ApiServer::Append(env::Outbox& out) { out.emplace_back(store_.TakeAppend()); }

void ApiServer::Appended(Instant now, uint64_t sequence, env::Outbox& out) {
  const store::RevisionRange visible = store_.MarkDurable(sequence);
  while (!pending_answers_.empty() && pending_answers_.front().revision <= visible.last) {
    out.emplace_back(std::move(pending_answers_.front().respond));
    pending_answers_.pop_front();
  }
  event_expiry_.Observe(now, visible, store_);
  authorizer_.Observe(visible, store_);
  webhooks_.Observe(visible, store_);
  watches_.Publish(now, visible, store_, out);
  constexpr auto kDefinitions = static_cast<store::Table>(KindId::kCustomResourceDefinition);
  // What the log has dropped already may have been of them.
  const uint64_t kept = std::max(visible.first, store_.compacted_revision() + 1);
  bool concerns = kept > visible.first;
  bool of_service = concerns;
  for (uint64_t revision = kept; revision <= visible.last; ++revision) {
    const store::StoredObject& object = *store_.EventAt(revision).object;
    const store::Table table = object.table;
    concerns = concerns || table == kDefinitions ||
               (table >= api::kKindsCount && definitions_.HoldsEnd(table));
    of_service = of_service || IsOwnService(object);
  }
  if (concerns) RefreshDefinitions(now, out);
  if (of_service && options_.own_service) KeepService(now);
  if (own_revision_ <= store_.durable_revision()) Open(now, out);
}

void ApiServer::Refused(Instant now, uint64_t sequence, env::Outbox& out) {
  store_.Discard(sequence);
  own_writes_at_ = now + kOwnWritesRetry;
  const env::HttpResponse response = ToResponse(
      NoRoom("no space left on the server's disk: nothing was written; reads are served, and "
             "writes again once there is room")
          .error());
  for (PendingAnswer& answer : pending_answers_) {
    answer.respond.response = response;
    out.emplace_back(std::move(answer.respond));
  }
  pending_answers_.clear();
  Open(now, out);
}

std::expected<ServiceTokens::Verified, std::string> ApiServer::VerifyToken(
    Instant now, const ServiceTokens::Asked& asked) const {
  std::expected<ServiceTokens::Verified, std::string> verified = std::unexpected("");
  const auto own = std::ranges::find(options_.tokens, asked.token, &Token::token);
  if (own == options_.tokens.end()) {
    verified = service_tokens_.Verify(now, store_, asked);
  } else if (asked.audiences.empty() ||
             std::ranges::find(asked.audiences, ServiceTokens::kIssuer) != asked.audiences.end()) {
    verified = ServiceTokens::Verified{.identity = own->identity,
                                       .audiences = {std::string(ServiceTokens::kIssuer)}};
  }
  if (verified) NoteKnown(verified->identity);
  return verified;
}

Outcome<Identity> ApiServer::Authenticate(Instant now, const env::HttpRequest& request,
                                          const env::Peer& peer) const {
  Identity identity{.user = peer.user, .groups = peer.groups};
  const std::string_view header = env::FindHeader(request.headers, "authorization").value_or("");
  if (const std::string_view token = BearerOf(header); !token.empty()) {
    auto verified = VerifyToken(now, {.token = token, .audiences = {}});
    if (!verified) return Unauthorized();
    identity = std::move(verified->identity);
  }
  if (!identity.user.empty()) {
    NoteKnown(identity);
    return identity;
  }
  const std::string_view target = request.target;
  if (!Discovery::IsPublic(target.substr(0, target.find('?')))) return Unauthorized();
  return Identity{.user = "system:anonymous", .groups = {"system:unauthenticated"}};
}

Outcome<Identity> ApiServer::Admit(Instant now, const Target& target,
                                   const env::RequestArrived& arrived) {
  const env::HttpRequest& http = arrived.request;
  Outcome<Identity> identity = Authenticate(now, http, arrived.peer);
  if (!identity) return identity;
  const bool acts = std::ranges::any_of(http.headers, [](const env::Header& header) {
    return header.name.starts_with("impersonate-");
  });
  if (!acts && IsMaster(*identity)) return identity;
  const Attributes wanted = AttributesOf(target, http.method);
  if (acts) {
    const Requester requester{.identity = *identity, .authorizer = authorizer_};
    Outcome<std::optional<Identity>> other = Impersonate(requester, wanted, http, last_modes_);
    if (!other) return std::unexpected(std::move(other.error()));
    if (*other) identity = std::move(**other);
  }
  // Without roles nobody could ask whether the server is well.
  if (!wanted.of_resource && http.method == env::Method::kGet && Discovery::IsPublic(wanted.path))
    return identity;
  if (Outcome<void> allowed = authorizer_.Check(*identity, wanted); !allowed)
    return std::unexpected(std::move(allowed.error()));
  return identity;
}

void ApiServer::Arrive(Instant now, const env::RequestArrived& arrived, env::Outbox& out) {
  Turn turn{.now = now, .arrived = arrived, .out = out};
  const uint64_t before = store_.next_revision();
  Finish(turn, before, Handle(turn));
}

// Does a write again that has all that it waited for.
void ApiServer::Resume(Instant now, std::optional<WaitingWrite> write, env::Outbox& out) {
  if (!write) return;
  const env::RequestArrived arrived = write->arrived;
  const Identity identity = write->identity;
  Turn turn{.now = now, .arrived = arrived, .out = out, .write = &*write};
  const uint64_t before = store_.next_revision();
  Finish(turn, before, HandleAdmitted(turn, ParseTarget(arrived.request.target), identity));
}

void ApiServer::EndLateWrites(Instant now, env::Outbox& out) {
  for (const WaitingWrite& late : waiting_writes_.Expire(now, out)) {
    Answer(late.arrived.exchange, ProblemResponse(late.arrived.request, TookTooLong().error()),
           false, out);
  }
}

// The next part of the list and of the deletion that are first in line.
void ApiServer::ContinueLong(Instant now, env::Outbox& out) {
  ContinueList(out);
  if (long_deletions_.empty()) return;
  WaitingWrite write = std::move(long_deletions_.front());
  long_deletions_.pop_front();
  Resume(now, std::move(write), out);
}

void ApiServer::ContinueList(env::Outbox& out) {
  if (long_lists_.empty() || !long_lists_.front().list.Continue()) return;
  LongList done = std::move(long_lists_.front());
  long_lists_.pop_front();
  env::HttpResponse response = std::move(done.list).Finish();
  response.headers.insert(response.headers.begin(), done.headers.begin(), done.headers.end());
  Answer(done.exchange, std::move(response), done.wrote, out);
}

// The client has gone.
void ApiServer::Abandon(env::ExchangeId exchange, env::Outbox& out) {
  watches_.Abandon(exchange);
  std::erase_if(early_,
                [&](const env::RequestArrived& early) { return early.exchange == exchange; });
  waiting_writes_.Abandon(exchange, out);
  std::erase_if(long_lists_, [&](const LongList& list) { return list.exchange == exchange; });
  std::erase_if(long_deletions_,
                [&](const WaitingWrite& write) { return write.arrived.exchange == exchange; });
}

void ApiServer::Finish(Turn& turn, uint64_t revision_before, Outcome<env::HttpResponse> response) {
  if (turn.later) return;
  const env::HttpRequest& request = turn.arrived.request;
  const bool mutating = request.method != env::Method::kGet;
  const bool wrote = mutating || store_.next_revision() != revision_before;
  if (turn.list && response) {
    long_lists_.push_back({.exchange = turn.arrived.exchange,
                           .headers = std::move(response->headers),
                           .wrote = wrote,
                           .list = std::move(*turn.list)});
    while (long_lists_.size() > kLongMax) ContinueList(turn.out);
    return;
  }
  Answer(turn.arrived.exchange,
         response ? std::move(*response) : ProblemResponse(request, response.error()), wrote,
         turn.out);
}

// What rests on the head waits for the head to be durable.
void ApiServer::Answer(env::ExchangeId exchange, env::HttpResponse response, bool wrote,
                       env::Outbox& out) {
  env::Respond respond{.exchange = exchange, .response = std::move(response), .stream = false};
  const uint64_t head = store_.next_revision() - 1;
  if (!wrote || head == store_.durable_revision()) {
    out.emplace_back(std::move(respond));
    return;
  }
  pending_answers_.push_back({.revision = head, .respond = std::move(respond)});
  if (pending_answers_.size() >= kGroupMax && store_.has_unsent() && !store_.append_in_flight())
    Append(out);
}

Outcome<env::HttpResponse> ApiServer::Handle(Turn& turn) {
  const env::HttpRequest& http = turn.arrived.request;
  if (!IsWellEscaped(http.target)) return MalformedRequest();
  Target target = ParseTarget(http.target);
  if (target.query.contains("timeout")) {
    if (Outcome<void> timeout = CheckTimeout(target, AttributesOf(target, http.method)); !timeout)
      return std::unexpected(std::move(timeout.error()));
  }
  const Outcome<Identity> identity = Admit(turn.now, target, turn.arrived);
  if (!identity) return std::unexpected(identity.error());
  return HandleAdmitted(turn, std::move(target), *identity);
}

Outcome<env::HttpResponse> ApiServer::HandleAdmitted(Turn& turn, Target target,
                                                     const Identity& identity) {
  const env::HttpRequest& http = turn.arrived.request;
  if (auto answer = service_tokens_.Answer(target, http)) return std::move(*answer);
  if (std::optional<Outcome<env::HttpResponse>> answer =
          discovery_.Answer(target, http, definitions_)) {
    return std::move(*answer);
  }
  Outcome<ResourceRequest> request = ParseResource(std::move(target), http, definitions_);
  if (!request) return std::unexpected(request.error());
  const Requester requester{.identity = identity, .authorizer = authorizer_};
  request->requester = &requester;
  if (request->kind->posted || request->subpart == Subpart::kToken) return Write(turn, *request);
  Outcome<env::HttpResponse> response = HandleResource(turn, *request);
  std::string warning = DeprecationOf(*request->kind);
  if (warning.empty()) return response;
  // The first of all warnings.
  if (response) {
    response->headers.insert(response->headers.begin(), WarningHeader(warning));
  } else if (const Problem& problem = response.error();
             request->kind->custom || (!(problem.code == 415 && request->verb == Verb::kPatch) &&
                                       !(problem.code == 406 && problem.has_details))) {
    // Not of what no handler was found for; a handler of patches takes their types only. Users'
    // kinds have one handler for all.
    std::vector<std::string>& warnings = response.error().warnings;
    warnings.insert(warnings.begin(), std::move(warning));
  }
  return response;
}

Outcome<env::HttpResponse> ApiServer::HandleResource(Turn& turn, const ResourceRequest& request) {
  const Instant now = turn.now;
  if (request.no_containers) {
    const bool known =
        store_.Find(TableOf(*request.kind),
                    {.namespace_name = request.namespace_name, .name = request.name}) != nullptr;
    if (!known) return NotFound(request.subject());
    return std::unexpected(*request.no_containers);
  }
  switch (request.verb) {
    case Verb::kGet:
      return Get(now, store_, request);
    case Verb::kList: {
      Outcome<ListRenderer> list = List(now, store_, request);
      if (!list) return std::unexpected(std::move(list.error()));
      if (list->Continue()) return std::move(*list).Finish();
      turn.list = std::move(*list);
      return env::HttpResponse{};
    }
    case Verb::kWatch:
      break;
    default:
      return Write(turn, request);
  }
  Outcome<WatchStart> start = ParseWatch(now, request, prng_);
  if (!start) return std::unexpected(std::move(start.error()));
  if (static_cast<int64_t>(watches_.size()) >= options_.watches_max) {
    return TooManyRequests(
        fmt::format("too many watches: the server serves at most {}", options_.watches_max), 1);
  }
  turn.later = true;
  watches_.Start(now, turn.arrived.exchange, std::move(*start), store_, turn.out);
  return env::HttpResponse{};
}

// One try of what may have to wait for webhooks.
Outcome<env::HttpResponse> ApiServer::TryWrite(const WriteTools& tools,
                                               const ResourceRequest& request) const {
  if (request.kind->posted) {
    return Review(tools, request,
                  [&](const ServiceTokens::Asked& asked) { return VerifyToken(tools.now, asked); });
  }
  if (request.subpart == Subpart::kToken) return service_tokens_.Create(tools, request);
  WriteTools own = tools;
  own.kind_ends = request.kind->defined != nullptr && definitions_.IsEnding(*request.kind);
  return HandleWrite(own, request);
}

// A write that webhooks concern is of the time when it arrived, and draws from its own seed: each
// try comes to the same.
Outcome<env::HttpResponse> ApiServer::Write(Turn& turn, const ResourceRequest& request) {
  const bool whole = turn.write == nullptr && !webhooks_.Concern(request);
  if (whole && request.verb != Verb::kDeleteCollection) {
    return TryWrite({.now = turn.now,
                     .store = store_,
                     .prng = prng_,
                     .quota_counter = options_.quota_counter,
                     .zones = options_.zones.get()},
                    request);
  }
  WaitingWrite write = turn.write != nullptr ? std::move(*turn.write)
                                             : WaitingWrite{.arrived = turn.arrived,
                                                            .identity = request.requester->identity,
                                                            .now = turn.now,
                                                            .seed = whole ? 0 : prng_.Next(),
                                                            .heard = {}};
  while (turn.now < write.now + WaitingWrites::kTimeMax) {
    write.progress.paused = false;
    write.progress.unpaused = long_deletions_.size() >= kLongMax;
    WebhookCalls calls(webhooks_, write.heard);
    Prng prng(write.seed);
    Outcome<env::HttpResponse> response =
        TryWrite({.now = write.now,
                  .store = store_,
                  .prng = prng,
                  .quota_counter = options_.quota_counter,
                  .webhooks = webhooks_.Concern(request) ? &calls : nullptr,
                  .progress = &write.progress,
                  .zones = options_.zones.get()},
                 request);
    if (calls.wanted().empty() && !write.progress.paused) {
      turn.list = std::move(write.progress.answer);
      return response;
    }
    calls.Prune(write.heard);
    if (write.progress.paused) {
      turn.later = true;
      long_deletions_.push_back(std::move(write));
      return env::HttpResponse{};
    }
    Outcome<std::optional<WaitingWrite>> back =
        waiting_writes_.Wait(turn.now, std::move(write), calls.wanted(), store_, turn.out);
    if (!back) return std::unexpected(std::move(back.error()));
    turn.later = !back->has_value();
    if (turn.later) return env::HttpResponse{};
    write = std::move(**back);
  }
  return TookTooLong();
}

void ApiServer::AddTo(Hasher& hasher) const {
  hasher.Add(options_.seed)
      .Add(started_)
      .Add(open_)
      .Add(own_writes_at_.ns)
      .Add(own_service_at_.ns)
      .Add(prng_.fingerprint());
  store_.AddTo(hasher);
  watches_.AddTo(hasher);
  event_expiry_.AddTo(hasher);
  waiting_writes_.AddTo(hasher);
  last_modes_.AddTo(hasher);
  hasher.Add(early_.size());
  for (const env::RequestArrived& early : early_) {
    hasher.Add(early.exchange.value).Add(early.request.method).Add(early.request.target);
    hasher.Add(early.request.body.view());
  }
  hasher.Add(long_lists_.size()).Add(long_deletions_.size());
  for (const LongList& long_list : long_lists_) {
    hasher.Add(long_list.exchange.value).Add(long_list.wrote);
    long_list.list.AddTo(hasher);
  }
  for (const WaitingWrite& write : long_deletions_) AddWrite(write, hasher);
  hasher.Add(pending_answers_.size());
  for (const PendingAnswer& answer : pending_answers_) {
    const env::HttpResponse& response = answer.respond.response;
    hasher.Add(answer.revision).Add(answer.respond.exchange.value).Add(answer.respond.stream);
    hasher.Add(response.status).Add(response.body.view()).Add(response.headers.size());
    for (const env::Header& header : response.headers) hasher.Add(header.name).Add(header.value);
  }
}

}  // namespace berth::apiserver
