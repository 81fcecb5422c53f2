#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/limits.h"
#include "base/result.h"
#include "base/time.h"
#include "env/port.h"
#include "net/certificates.h"

namespace berth::net {

struct ServerOptions {
  std::string host = "127.0.0.1";  // An address, or a name that resolves to one.
  uint16_t port = 0;               // 0: any free one.
  KeyPair identity;
  // Clients whose certificates this authority signed are known by common name and organisations;
  // others are let in as nobody. Empty: all are.
  std::string client_authority_pem;

  int64_t connections_max = limits::kConnectionsMax;
  int64_t header_bytes_max = limits::kRequestHeaderBytesMax;
  int64_t body_bytes_max = limits::kRequestBodyBytesMax;
  Duration handshake_timeout = Duration::Seconds(10);
  // From a request's first byte to its last, and from the handshake to the first request.
  Duration request_timeout = Duration::Seconds(60);
  Duration idle_timeout = Duration::Seconds(180);  // Between requests.
  // How long a connection may be silent before it makes room at the limit: longer than a handshake
  // over a slow path takes.
  Duration silence_at_limit = Duration::Seconds(2);
  Duration write_timeout = Duration::Seconds(60);  // For the client to take 64 KiB.
  int64_t unsent_bytes_max = limits::kUnsentBytesMax;
  int64_t coming_bytes_max = limits::kComingBytesMax;

  // Told what goes wrong beside single connections; called on the server's thread.
  std::function<void(env::LogLevel, std::string)> log;
};

struct ServerStats {
  uint64_t accepted_count = 0;
  uint64_t refused_count = 0;  // Over connections_max.
  uint64_t requests_count = 0;
  uint64_t malformed_count = 0;  // Answered 400, 413 or 431 here.
  uint64_t slow_count = 0;       // Cut to make room for answers or requests of others.
  int64_t open_count = 0;
};

// An HTTPS server (HTTP/1.1, TLS 1.2 and 1.3) that turns requests into RequestArrived and answers
// by Respond, Frame and EndStream.
//
// One thread does all of its I/O; no client waits for another one. A connection carries one
// exchange at a time, further requests on it wait. Frames queue per exchange without a bound of its
// own: the actor bounds them by what StreamDrained reports. Whole answers, and requests that
// are not whole yet, are bounded in sum: over that the connections are cut that hold the most for
// the longest time (bytes times the time since the client took or sent anything). A client that
// goes, or does not keep the timeouts, ends its exchange with ExchangeAbandoned. What is not
// HTTP is answered 400 and cut, without reaching the actor; so are bodies and heads over their
// limits (413, 431). At the limit of connections the oldest that never asked anything is closed for
// a new one; when there is none, the new one is closed at once. Both are logged, once a minute at
// most.
class HttpsServer final : public env::OutputSink {
 public:
  // Binds and listens; nothing is accepted before Start.
  static Result<std::unique_ptr<HttpsServer>> Listen(ServerOptions options);
  // Stops.
  ~HttpsServer() override;
  HttpsServer(const HttpsServer&) = delete;
  HttpsServer& operator=(const HttpsServer&) = delete;

  [[nodiscard]] uint16_t port() const;

  // Requests go to `inbox`, which must outlive Stop().
  void Start(env::InputSink& inbox);
  // Closes all connections and ends the thread. Outputs that come later go nowhere. Safe to call
  // twice.
  void Stop();

  void Take(std::vector<env::Output> batch) override;

  // Of connections that come from here on, the authority of clients (ServerOptions). Any thread may
  // call, between Start and Stop. Errors: it can't be read.
  Status TrustClients(const std::string& authority_pem);

  // Any thread may ask.
  [[nodiscard]] ServerStats stats() const;

  struct Impl;  // Of server.cc alone.

 private:
  explicit HttpsServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace berth::net
