#include "sim/network.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "sim/extender.h"

namespace berth::sim {
namespace {

// A message takes between these; wide enough that messages sent seconds apart rarely, and messages
// sent milliseconds apart often, overtake each other.
constexpr Duration kDelayMin = Duration::Microseconds(50);
constexpr Duration kDelayMax = Duration::Milliseconds(5);
constexpr Duration kBehindMax = Duration::Seconds(8);

bool IsWrite(const env::HttpRequest& request) { return request.method != env::Method::kGet; }

env::HttpResponse StatusAnswer(int code, std::string_view reason, std::string_view message) {
  env::HttpResponse response;
  response.status = code;
  response.headers.push_back({.name = "content-type", .value = "application/json"});
  response.body =
      Bytes(std::string(R"({"kind":"Status","apiVersion":"v1","metadata":{},)") +
            R"("status":"Failure","message":")" + std::string(message) + R"(","reason":")" +
            std::string(reason) + R"(","code":)" + std::to_string(code) + "}");
  return response;
}

struct InputHasher {
  void operator()(const env::Tick&) const {}
  void operator()(const env::Response& in) const {
    hasher.Add(in.call.value).Add(in.response.status);
    AddHeaders(in.response.headers);
    hasher.Add(in.response.body.view());
  }
  void operator()(const env::StreamData& in) const {
    hasher.Add(in.call.value).Add(in.data.view());
  }
  void operator()(const env::StreamEnded& in) const { hasher.Add(in.call.value); }
  void operator()(const env::CallFailed& in) const { hasher.Add(in.call.value).Add(in.failure); }
  void operator()(const env::RequestArrived& in) const {
    hasher.Add(in.exchange.value).Add(in.peer.user).Add(in.peer.groups.size());
    for (const std::string& group : in.peer.groups) hasher.Add(group);
    hasher.Add(in.request.method).Add(in.request.target);
    AddHeaders(in.request.headers);
    hasher.Add(in.request.body.view());
  }
  void operator()(const env::ExchangeAbandoned& in) const { hasher.Add(in.exchange.value); }
  void operator()(const env::StreamDrained& in) const {
    hasher.Add(in.exchange.value).Add(in.bytes);
  }
  void operator()(const env::JournalAppended& in) const { hasher.Add(in.sequence); }
  void operator()(const env::JournalRefused& in) const { hasher.Add(in.sequence); }

  void AddHeaders(const std::vector<env::Header>& headers) const {
    hasher.Add(headers.size());
    for (const env::Header& header : headers) hasher.Add(header.name).Add(header.value);
  }

  Hasher& hasher;
};

}  // namespace

void AddTo(Hasher& hasher, const env::Input& input) {
  hasher.Add(input.index());
  std::visit(InputHasher{hasher}, input);
}

std::string_view ToString(Party party) {
  switch (party) {
    case Party::kScheduler:
      return "scheduler";
    case Party::kControllers:
      return "controllers";
    case Party::kNodes:
      return "nodes";
    case Party::kUsers:
      return "users";
    case Party::kStandby:
      return "standby";
  }
  return "nobody";
}

void Network::Send(Instant now, Party party, env::SendRequest request, const FaultPlan& faults) {
  const env::ExchangeId id{next_exchange_++};
  CHECK(by_call_.emplace(std::pair(party, request.call), id).second);
  Exchange& exchange = exchanges_[id];
  exchange.party = party;
  exchange.call = request.call;
  exchange.stream = request.stream;
  const bool reachable = request.to != nullptr || server_up_;
  if (!reachable || now >= request.not_after) {
    PostToClient(now, id, exchange,
                 env::CallFailed{.call = request.call, .failure = env::CallFailure::kNotSent});
    return;
  }
  if (request.to != nullptr) return SendToExtender(now, id, request, faults);
  if (std::optional<env::HttpResponse> injected = InjectedAnswer(request, faults)) {
    PostToClient(now, id, exchange,
                 env::Response{.call = request.call, .response = std::move(*injected)});
    return;
  }
  Post(now + request.timeout, {.delivery = {}, .exchange = id, .is_timeout = true});
  if (IsWrite(request.request) && Fires(Fault::kTimeoutNotApplied, faults)) return;
  if (IsWrite(request.request) && Fires(Fault::kTimeoutApplied, faults)) exchange.deaf = true;
  env::RequestArrived arrived{.exchange = id, .peer = {}, .request = std::move(request.request)};
  arrived.peer.user = "system:" + std::string(ToString(party));
  arrived.peer.groups = {"system:masters", "system:authenticated"};
  PostToServer(now, id, exchange, std::move(arrived));
}

// It is no server of this world, so nothing but the answer is delivered.
void Network::SendToExtender(Instant now, env::ExchangeId id, const env::SendRequest& request,
                             const FaultPlan& faults) {
  Exchange& exchange = exchanges_.at(id);
  std::optional<env::HttpResponse> answer = InjectedAnswer(request, faults);
  Post(now + request.timeout, {.delivery = {}, .exchange = id, .is_timeout = true});
  if (!answer &&
      (Fires(Fault::kTimeoutNotApplied, faults) || Fires(Fault::kTimeoutApplied, faults)))
    return;
  if (!answer) {
    const bool refuses = Fires(Fault::kConflict, faults);
    answer = {
        .status = 200, .headers = {}, .body = Bytes(ExtenderAnswer(request.request, refuses))};
  }
  exchange.answered = true;
  PostToClient(now, id, exchange,
               env::Response{.call = request.call, .response = *std::move(answer)});
}

std::optional<env::HttpResponse> Network::InjectedAnswer(const env::SendRequest& request,
                                                         const FaultPlan& faults) {
  if (request.stream) {
    if (Fires(Fault::kWatchGone, faults)) {
      return StatusAnswer(410, "Expired", "too old resource version");
    }
    return std::nullopt;
  }
  if (IsWrite(request.request) && Fires(Fault::kConflict, faults)) {
    return StatusAnswer(409, "Conflict", "the object has been modified; injected");
  }
  if (Fires(Fault::kThrottled, faults)) {
    // As kube-apiserver's own filters, before anybody looks at the request.
    env::HttpResponse busy;
    busy.status = 429;
    busy.headers = {{.name = "retry-after", .value = "1"}};
    busy.body = Bytes(std::string("Too many requests, please try again later.\n"));
    return busy;
  }
  if (Fires(Fault::kServerError, faults)) {
    return StatusAnswer(500, "InternalError", "injected");
  }
  return std::nullopt;
}

void Network::Cancel(Instant now, Party party, env::CallId call) {
  const auto at = by_call_.find({party, call});
  if (at == by_call_.end()) return;
  const env::ExchangeId id = at->second;
  Exchange& exchange = exchanges_.at(id);
  DropEvents(id, /*to_server=*/false, /*to_client=*/true);
  if (exchange.arrived) PostToServer(now, id, exchange, env::ExchangeAbandoned{.exchange = id});
  by_call_.erase(at);
  exchanges_.erase(id);
}

void Network::Respond(Instant now, env::Respond respond) {
  const auto at = exchanges_.find(respond.exchange);
  if (at == exchanges_.end()) return;
  Exchange& exchange = at->second;
  CHECK(!exchange.answered);
  if (exchange.deaf) {
    counts_.Add(Fault::kTimeoutApplied);
    return;  // The timeout that was posted with the request will tell the client.
  }
  exchange.answered = true;
  if (!respond.stream) exchange.stream = false;
  const env::CallId call = exchange.call;
  PostToClient(now, respond.exchange, exchange,
               env::Response{.call = call, .response = std::move(respond.response)});
}

void Network::Frame(Instant now, env::Frame frame, const FaultPlan& faults) {
  const auto at = exchanges_.find(frame.exchange);
  if (at == exchanges_.end() || at->second.severed) return;
  Exchange& exchange = at->second;
  if (Fires(Fault::kWatchDropped, faults)) {
    counts_.Add(Fault::kWatchDropped);
    DropEvents(frame.exchange, /*to_server=*/false, /*to_client=*/true);
    exchange.severed = true;
    PostToClient(now, frame.exchange, exchange, env::StreamEnded{.call = exchange.call});
    PostToServer(now, frame.exchange, exchange, env::ExchangeAbandoned{.exchange = frame.exchange});
    return;
  }
  if (Fires(Fault::kWatchDelayed, faults)) {
    counts_.Add(Fault::kWatchDelayed);
    exchange.behind_until = now + Duration{prng_.Between(0, kBehindMax.ns)};
  }
  const bool twice = Fires(Fault::kWatchDuplicated, faults);
  if (twice) {
    counts_.Add(Fault::kWatchDuplicated);
    PostToClient(now, frame.exchange, exchange,
                 env::StreamData{.call = exchange.call, .data = frame.data});
  }
  const uint64_t bytes = frame.data.size();
  PostToClient(now, frame.exchange, exchange,
               env::StreamData{.call = exchange.call, .data = std::move(frame.data)});
  PostToServer(exchange.client_side_last, frame.exchange, exchange,
               env::StreamDrained{.exchange = frame.exchange, .bytes = bytes});
}

void Network::EndStream(Instant now, env::EndStream end) {
  const auto at = exchanges_.find(end.exchange);
  if (at == exchanges_.end() || at->second.severed) return;
  at->second.severed = true;
  const env::CallId call = at->second.call;
  PostToClient(now, end.exchange, at->second, env::StreamEnded{.call = call});
}

void Network::ClientDied(Instant now, Party party) {
  std::vector<env::ExchangeId> of_party;
  for (const auto& [id, exchange] : exchanges_) {
    if (exchange.party == party) of_party.push_back(id);
  }
  for (const env::ExchangeId id : of_party) {
    Exchange& exchange = exchanges_.at(id);
    DropEvents(id, /*to_server=*/false, /*to_client=*/true);
    // What was already handed to the network may still be carried out.
    if (!exchange.arrived && prng_.Chance({1, 2})) DropEvents(id, true, false);
    if (exchange.arrived) {
      PostToServer(now, id, exchange, env::ExchangeAbandoned{.exchange = id});
    }
    by_call_.erase({party, exchange.call});
    exchanges_.erase(id);
  }
}

void Network::ServerDied(Instant now) {
  std::vector<env::ExchangeId> all;
  for (const auto& [id, exchange] : exchanges_) all.push_back(id);
  for (const env::ExchangeId id : all) {
    Exchange& exchange = exchanges_.at(id);
    const bool arrived = exchange.arrived;
    DropEvents(id, /*to_server=*/true, /*to_client=*/false);
    if (exchange.answered) {
      // An answer on its way still arrives; a stream breaks after it.
      if (exchange.stream && !exchange.severed) {
        exchange.severed = true;
        PostToClient(now, id, exchange, env::StreamEnded{.call = exchange.call});
      }
      continue;
    }
    Fail(now, id, arrived ? env::CallFailure::kLost : env::CallFailure::kNotSent);
  }
  // Whatever else was on its way to the dead server concerns exchanges that clients have let go of.
  std::erase_if(events_, [&](const auto& entry) {
    if (!entry.second.delivery.to.server) return false;
    Forget(entry.first, entry.second);
    return true;
  });
}

Instant Network::next_at() const {
  return events_.empty() ? Instant::Never() : events_.begin()->first.first;
}

std::pair<Instant, std::optional<Delivery>> Network::Pop() {
  CHECK(!events_.empty());
  const auto first = events_.begin();
  const Instant at = first->first.first;
  Forget(first->first, first->second);
  Event event = std::move(first->second);
  events_.erase(first);
  const auto found = exchanges_.find(event.exchange);
  if (event.is_timeout) {
    if (found == exchanges_.end() || found->second.answered) return {at, std::nullopt};
    Exchange exchange = found->second;
    by_call_.erase({exchange.party, exchange.call});
    exchanges_.erase(found);
    DropEvents(event.exchange, /*to_server=*/false, /*to_client=*/true);
    if (exchange.arrived) {
      Post(at + Delay(), {.delivery = {.to = {.server = true, .party = {}},
                                       .input = env::ExchangeAbandoned{.exchange = event.exchange}},
                          .exchange = event.exchange});
    }
    return {at, Delivery{.to = {.server = false, .party = exchange.party},
                         .input = env::CallFailed{.call = exchange.call,
                                                  .failure = env::CallFailure::kTimeout}}};
  }
  // Nothing reaches a client after the end of its call.
  if (found == exchanges_.end() && !event.delivery.to.server) return {at, std::nullopt};
  if (found != exchanges_.end()) {
    Exchange& exchange = found->second;
    if (std::holds_alternative<env::RequestArrived>(event.delivery.input)) exchange.arrived = true;
    const bool ends = std::holds_alternative<env::CallFailed>(event.delivery.input) ||
                      std::holds_alternative<env::StreamEnded>(event.delivery.input) ||
                      (std::holds_alternative<env::Response>(event.delivery.input) &&
                       (!exchange.stream ||
                        std::get<env::Response>(event.delivery.input).response.status != 200));
    if (ends) {
      by_call_.erase({exchange.party, exchange.call});
      exchanges_.erase(found);
    }
  }
  return {at, std::move(event.delivery)};
}

void Network::Fail(Instant now, env::ExchangeId id, env::CallFailure failure) {
  Exchange& exchange = exchanges_.at(id);
  PostToClient(now, id, exchange, env::CallFailed{.call = exchange.call, .failure = failure});
  exchange.answered = true;
}

void Network::Post(Instant at, Event event) {
  const EventKey key(at, next_sequence_++);
  if (!event.is_timeout) underway_[event.exchange].insert(key);
  events_.emplace(key, std::move(event));
}

void Network::Forget(const EventKey& key, const Event& event) {
  const auto keys = underway_.find(event.exchange);
  if (keys == underway_.end()) return;
  keys->second.erase(key);
  if (keys->second.empty()) underway_.erase(keys);
}

void Network::PostToClient(Instant now, env::ExchangeId id, Exchange& exchange, env::Input input) {
  const Instant at = std::max({now + Delay(), exchange.client_side_last, exchange.behind_until});
  exchange.client_side_last = at;
  Post(at,
       {.delivery = {.to = {.server = false, .party = exchange.party}, .input = std::move(input)},
        .exchange = id});
}

void Network::PostToServer(Instant now, env::ExchangeId id, Exchange& exchange, env::Input input) {
  const Instant at = std::max(now + Delay(), exchange.server_side_last);
  exchange.server_side_last = at;
  Post(at,
       {.delivery = {.to = {.server = true, .party = exchange.party}, .input = std::move(input)},
        .exchange = id});
}

void Network::DropEvents(env::ExchangeId id, bool to_server, bool to_client) {
  const auto keys = underway_.find(id);
  if (keys == underway_.end()) return;
  std::erase_if(keys->second, [&](const EventKey& key) {
    const auto event = events_.find(key);
    if (!(event->second.delivery.to.server ? to_server : to_client)) return false;
    events_.erase(event);
    return true;
  });
  if (keys->second.empty()) underway_.erase(keys);
}

bool Network::Fires(Fault fault, const FaultPlan& faults) {
  const Ratio chance = faults[fault];
  if (chance.part == 0) return false;
  if (!prng_.Chance(chance)) return false;
  // Counted where it takes effect, when that is later.
  if (fault != Fault::kTimeoutApplied && fault != Fault::kWatchDropped &&
      fault != Fault::kWatchDelayed && fault != Fault::kWatchDuplicated) {
    counts_.Add(fault);
  }
  return true;
}

Duration Network::Delay() { return Duration{prng_.Between(kDelayMin.ns, kDelayMax.ns)}; }

void Network::AddTo(Hasher& hasher) const {
  hasher.Add(prng_.fingerprint()).Add(server_up_).Add(next_exchange_).Add(next_sequence_);
  hasher.Add(exchanges_.size());
  for (const auto& [id, exchange] : exchanges_) {
    hasher.Add(id.value).Add(exchange.party).Add(exchange.call.value).Add(exchange.stream);
    hasher.Add(exchange.arrived).Add(exchange.answered).Add(exchange.deaf);
    hasher.Add(exchange.severed).Add(exchange.behind_until.ns);
    hasher.Add(exchange.client_side_last.ns).Add(exchange.server_side_last.ns);
  }
  hasher.Add(by_call_.size());
  for (const auto& [key, id] : by_call_) hasher.Add(key.first).Add(key.second.value).Add(id.value);
  hasher.Add(events_.size());
  for (const auto& [key, event] : events_) {
    hasher.Add(key.first.ns).Add(key.second).Add(event.exchange.value).Add(event.is_timeout);
    hasher.Add(event.delivery.to.server).Add(event.delivery.to.party);
    sim::AddTo(hasher, event.delivery.input);
  }
}

}  // namespace berth::sim
