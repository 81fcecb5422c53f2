#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "base/prng.h"
#include "base/time.h"
#include "env/actor.h"
#include "sim/faults.h"

namespace berth::sim {

// The clients of the simulated API server.
enum class Party : uint8_t { kScheduler, kControllers, kNodes, kUsers, kStandby };
inline constexpr size_t kPartiesCount = 5;
// The two replicas of the scheduler; the second is in worlds with replicas only.
[[nodiscard]] constexpr bool IsScheduler(Party party) {
  return party == Party::kScheduler || party == Party::kStandby;
}
[[nodiscard]] std::string_view ToString(Party party);

// Where an input is to be delivered: to the server or to one client.
struct Address {
  bool server = false;
  Party party = Party::kScheduler;
  auto operator<=>(const Address&) const = default;
};

struct Delivery {
  Address to;
  env::Input input;
};

// Adds every byte of it.
void AddTo(Hasher& hasher, const env::Input& input);

// The simulated transport between clients, the API server and an extender: the same messages as the
// real ones carry, each with a delay of its own, so that answers and streams overtake each other
// while every connection keeps its order (pods and nodes are independently ordered streams, as over
// real connections). Injects the faults of messages.
//
// A value: copying it copies everything that is on the way. Cost: O(log messages) each.
class Network {
 public:
  explicit Network(uint64_t seed) : prng_(seed) {}

  // Takes a client's outputs. `faults` says which may fire.
  void Send(Instant now, Party party, env::SendRequest request, const FaultPlan& faults);
  void Cancel(Instant now, Party party, env::CallId call);

  // Takes the server's outputs.
  void Respond(Instant now, env::Respond respond);
  void Frame(Instant now, env::Frame frame, const FaultPlan& faults);
  void EndStream(Instant now, env::EndStream end);

  // A client has died: what it had sent may still arrive, nothing reaches its successor.
  void ClientDied(Instant now, Party party);
  // The server has died: calls end as lost (or as not sent if they had not arrived), streams end.
  void ServerDied(Instant now);
  // While the server is down requests fail as not sent.
  void SetServerUp(bool up) { server_up_ = up; }

  // The time of the next delivery; Never() when nothing is on the way.
  [[nodiscard]] Instant next_at() const;
  // Takes what is next; nothing when it turned out moot. REQUIRES: next_at() is not Never().
  std::pair<Instant, std::optional<Delivery>> Pop();

  [[nodiscard]] const FaultCounts& counts() const { return counts_; }
  FaultCounts& counts() { return counts_; }
  void AddTo(Hasher& hasher) const;

 private:
  struct Exchange {
    Party party = Party::kScheduler;
    env::CallId call;
    bool stream = false;
    bool arrived = false;      // At the server.
    bool answered = false;     // A Respond was sent back.
    bool deaf = false;         // Its answer is lost on the way (timeout with the write applied).
    bool severed = false;      // The stream is cut: its end is on its way to the client.
    Instant server_side_last;  // Keeps the order towards the server, ...
    Instant client_side_last;  // ... and towards the client.
    Instant behind_until;      // A delayed watch catches up then.
  };
  struct Event {
    Delivery delivery;
    env::ExchangeId exchange;
    bool is_timeout = false;
  };

  using EventKey = std::pair<Instant, uint64_t>;  // When, and which of that time.
  void Post(Instant at, Event event);
  void PostToClient(Instant now, env::ExchangeId id, Exchange& exchange, env::Input input);
  void PostToServer(Instant now, env::ExchangeId id, Exchange& exchange, env::Input input);
  void Fail(Instant now, env::ExchangeId id, env::CallFailure failure);
  void Forget(const EventKey& key, const Event& event);
  void DropEvents(env::ExchangeId id, bool to_server, bool to_client);
  bool Fires(Fault fault, const FaultPlan& faults);
  Duration Delay();
  void SendToExtender(Instant now, env::ExchangeId id, const env::SendRequest& request,
                      const FaultPlan& faults);
  std::optional<env::HttpResponse> InjectedAnswer(const env::SendRequest& request,
                                                  const FaultPlan& faults);

  Prng prng_;
  FaultCounts counts_;
  bool server_up_ = true;
  uint64_t next_exchange_ = 1;
  uint64_t next_sequence_ = 1;
  std::map<env::ExchangeId, Exchange> exchanges_;
  std::map<std::pair<Party, env::CallId>, env::ExchangeId> by_call_;
  std::map<EventKey, Event> events_;
  // What is on its way of each exchange, without timeouts.
  std::map<env::ExchangeId, std::set<EventKey>> underway_;
};

}  // namespace berth::sim
