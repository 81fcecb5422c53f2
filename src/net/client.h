#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "env/port.h"
#include "net/bearer_token.h"
#include "net/certificates.h"

namespace berth::net {

// An API server to talk to.
struct ClientOptions {
  std::string host;  // Empty: there is none, and calls name their endpoints.
  uint16_t port = 443;
  std::string path_prefix;  // Of a server behind a proxy: put before every target. Empty, or "/..."
                            // without a slash at the end.
  std::string authority_pem;  // Who may have signed the server. Empty: the system's authorities.
  bool insecure = false;      // Takes any certificate of the server.
  std::string server_name;    // What the server's certificate must name; empty: `host`.
  KeyPair identity;           // A client certificate; empty: none.
  // For requests that bring no credentials of their own. Null: none.
  std::shared_ptr<BearerToken> bearer_token;
  int connections_max = 16;  // For calls; every open stream has one of its own beside them. The
                             // same for each endpoint. All are kept until the server closes them.
                             // Over HTTP/2, where calls share a connection, so many at once.
  bool http2 = true;         // Spoken to `host` where it can. Endpoints get HTTP/1.1.
  Duration open_timeout = Duration::Seconds(10);  // To connect to `host`, TLS included.
  // Over HTTP/2: after how long without a byte the server is asked whether it is there, and how
  // long it has to give a sign.
  Duration ping_after = Duration::Seconds(30);
  Duration ping_timeout = Duration::Seconds(15);
  // Of one answer; a list of 150,000 pods fits. Endpoints have limits of their own within this.
  uint64_t body_bytes_max = uint64_t{1} << 30;
  // While at least so many calls to `host` are under way, what comes is gathered for a while and
  // handled together (net/gathering.h), but for calls to endpoints. 0: never.
  int gather_calls_min = 0;
  Duration gather_at_most = Duration::Milliseconds(16);  // By so much an answer may come later.
  // The clock of the actor whose calls these are. Needed for calls with a `not_after` alone. Any
  // thread may call it.
  std::function<Instant()> clock = {};
};

// Carries SendRequest and CancelCall of one actor to an API server over HTTPS, or to the endpoints
// that they name, over HTTP where they say so, and posts what comes back. Where the server of the
// options speaks HTTP/2, its calls share a connection; until that is known they wait for it.
// Endpoints get no credentials but the certificate that they name; redirects are answers as any.
//
// One thread does all of its I/O. Connections are kept and used again; calls that find none free
// wait in order. The failure of a call is told apart exactly:
//   kNotSent  No byte of it was handed to a connection: no connection came about, or it waited past
//             its timeout or its `not_after` for one. That is looked at right before the bytes go.
//             Or the server said that it had not looked at it (HTTP/2: RFC 9113, 8.7), and did so
//             again if it was sent again.
//   kLost     It was sent, and the connection ended without a whole answer, or with one that is
//             not HTTP.
//   kTimeout  It was sent, and no whole answer came in time.
// Three exceptions repeat a call, once, the second of them once more. One that the server has not
// looked at is sent again, if it is not to be sent once. One that was answered 401 is sent again
// when the token has changed since (and `not_after` lets it): it was not carried out. A GET, or a
// call of an endpoint, on a kept connection that ended without a byte of answer is sent once more
// on a new one: the server may have closed it for idleness meanwhile; not if it is to be sent once.
//
// At most limits::kEndpointsMax endpoints are known at once; of those without calls the one that
// was used longest ago is forgotten for a new one.
class HttpsClient final : public env::OutputSink {
 public:
  // Errors: certificates or keys that can't be read.
  static Result<std::unique_ptr<HttpsClient>> Make(ClientOptions options);
  // Stops.
  ~HttpsClient() override;
  HttpsClient(const HttpsClient&) = delete;
  HttpsClient& operator=(const HttpsClient&) = delete;

  // Answers go to `inbox`, which must outlive Stop().
  void Start(env::InputSink& inbox);
  // Ends the thread; calls under way get no answer any more. Safe to call twice.
  void Stop();

  void Take(std::vector<env::Output> batch) override;

  // What kept the last connection that failed from coming about, for people: nobody listens, or its
  // certificate is not the expected one. Thread-safe.
  [[nodiscard]] std::string trouble() const;

  struct Impl;  // Of client_impl.h.

 private:
  explicit HttpsClient(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace berth::net
