#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "base/hash.h"
#include "base/time.h"
#include "client/client.h"
#include "control/reviews.h"
#include "env/actor.h"

namespace berth::control {

struct AccessGateOptions {
  // How the API server is reached that tokens are put to, and that rights are.
  client::Options authentication = {};
  client::Options authorization = {};
  // For how long answers hold: of tokens, of what is allowed, of what is not.
  Duration token_holds = Duration::Seconds(10);
  Duration allowed_holds = Duration::Seconds(10);
  Duration refused_holds = Duration::Seconds(10);
};

// The status by which a gate lets a request in: whoever put it passes it on. No answer has it.
inline constexpr int kLetIn = 100;

// Calls from this number on go to the server of the rights, those below it to that of the tokens.
inline constexpr uint64_t kAuthorizationFirstCall = uint64_t{1} << 48;

// Decides who may read /metrics, /configz and /debug/ as kube-scheduler does, by asking the API
// server (Kubernetes' "delegated" authentication and authorization):
//
//   certificate ──────────────────────────────────────┐
//   bearer token ──TokenReview──> user, or 401        ├──> SubjectAccessReview ──> kLetIn, or 403
//   neither ──> system:anonymous ─────────────────────┘    of the path and the verb
//
// The group system:masters may all. Where the API server does not answer, a token is answered 401
// and an access 500, within ten seconds each and never from what held once. A server for requests,
// and a client of two API servers. Bounded: requests that would wait for a review beside as many as
// may are answered 429, and what is known already never waits. Who shows nothing has the fewest of
// these places, and a token that nobody has looked up yet not all, so neither keeps out who is
// known. Who acts as another (impersonation) is refused: kube-scheduler would go by who asks.
class AccessGate final : public env::Actor {
 public:
  // Of who has shown a certificate, or a token that is somebody's; of unknown tokens; of nothing.
  static constexpr size_t kWaitingMax = 256;
  static constexpr size_t kUnknownWaitingMax = 192;
  static constexpr size_t kAnonymousWaitingMax = 64;
  static constexpr size_t kTokenBytesMax = 16 * 1024;
  static constexpr size_t kPathBytesMax = 2 * 1024;

  explicit AccessGate(const AccessGateOptions& options);

  void Step(Instant now, env::Input input, env::Outbox& out) override;
  [[nodiscard]] Instant wake_at() const override;
  void AddTo(Hasher& hasher) const override;
  [[nodiscard]] size_t waiting() const { return waiting_.size(); }

 private:
  // A request that waits for a review.
  struct Waiting {
    std::string verb;
    std::string path;
    std::string token;    // While that is not known to be whose; else empty.
    Requester requester;  // Else.
    std::string access;   // The review of it that is under way; empty: that of the token is.
    bool anonymous = false;
  };
  // How many may wait beside such a one, it included.
  [[nodiscard]] static size_t PlacesOf(const Waiting& waiting) {
    if (waiting.anonymous) return kAnonymousWaitingMax;
    return waiting.token.empty() ? kWaitingMax : kUnknownWaitingMax;
  }

  void Take(Instant now, const env::RequestArrived& arrived, env::Outbox& out);
  // Of who asks; it is answered, or waits.
  void Authenticate(Instant now, env::ExchangeId exchange, Waiting waiting, env::Outbox& out);
  void Authorize(Instant now, env::ExchangeId exchange, Waiting waiting, env::Outbox& out);
  void OnToken(Instant now, const Reviews::Ended& ended, env::Outbox& out);
  void OnAccess(const Reviews::Ended& ended, env::Outbox& out);
  void Tell(std::string_view kind, const std::string& trouble, env::Outbox& out);

  Reviews tokens_;
  Reviews access_;
  std::map<uint64_t, Waiting> waiting_;  // By exchange.
  std::string told_;                     // The last trouble: the same again is not told.
};

}  // namespace berth::control
