#pragma once

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "net/client.h"
#include "net/http_parser.h"

// Private to net/: what the connections of an HttpsClient and the client itself know of each other.
// All of it is on the client's thread.
namespace berth::net {

using SteadyTime = std::chrono::steady_clock::time_point;
using TlsStream = boost::asio::ssl::stream<boost::asio::ip::tcp::socket>;

constexpr size_t kClientReadBytes = 32 * 1024;

// Why a call was not sent.
constexpr const char* kCallLate = "context deadline exceeded";
constexpr const char* kCallNoLonger = "it must not be sent any more";

// A call from its SendRequest to its last input.
struct Call {
  env::CallId id;
  env::HttpRequest request;
  bool stream = false;
  bool once = false;
  bool repeated = false;  // Sent once more already.
  bool renewed = false;   // The same, with another token.
  std::string token;      // That it was sent with.
  std::shared_ptr<const env::Endpoint> to;
  Instant not_after;
  SteadyTime deadline;  // Of the answer.
  SteadyTime due;       // When it is looked at: what comes first, until it is sent.
};

class Carrier;
class Http1Connection;
class Http2Connection;

// A server and the connections to it.
struct Pool {
  Pool(env::Endpoint e, boost::asio::ssl::context c) : to(std::move(e)), tls(std::move(c)) {}

  // Immutable once it is in use.
  const env::Endpoint to;
  boost::asio::ssl::context tls;
  bool own = false;           // The server of the options, who gets the credentials.
  bool offers_http2 = false;  // Its connections do.

  std::vector<std::shared_ptr<Http1Connection>> idle;
  std::vector<std::shared_ptr<Http2Connection>> http2;  // Open ones, with or without room.
  std::deque<Call> waiting;
  std::deque<Call> waiting_streams;  // Until it is known what the server speaks.
  int opening = 0;                   // Connections of which that is not known yet.
  bool speaks_http1 = false;         // As the last one told.
  int busy_count = 0;                // Calls that are no open stream and have a connection.
  uint64_t ended_count = 0;          // Of such calls, as they ended.
  uint64_t used_at = 0;              // By the count of calls.
};

// A connection that carries calls, each from when it is given one until it tells the client how it
// ended.
class Carrier : public std::enable_shared_from_this<Carrier> {
 public:
  virtual ~Carrier() = default;
  Carrier(const Carrier&) = delete;
  Carrier& operator=(const Carrier&) = delete;

  struct Progress {
    SteadyTime due;
    bool sent = false;       // Bytes of it were handed to the connection.
    bool streaming = false;  // It is an open stream: answered in time.
  };
  // REQUIRES: it carries the call.
  [[nodiscard]] virtual Progress ProgressOf(env::CallId call) const = 0;
  // A call was cancelled or timed out; nobody is told of its answer.
  virtual void Abandon(env::CallId call) = 0;
  // With all that it carries, of which nobody is told.
  virtual void Close() = 0;

  [[nodiscard]] const std::shared_ptr<Pool>& pool() const { return pool_; }

 protected:
  explicit Carrier(std::shared_ptr<Pool> pool) : pool_(std::move(pool)) {}

  const std::shared_ptr<Pool> pool_;
};

struct HttpsClient::Impl {
  explicit Impl(ClientOptions o)
      : options(std::move(o)), resolver(io), timer(io), guard(io.get_executor()) {}

  void Run();
  void Handle(std::vector<env::Output>& batch);
  void Cancel(env::CallId id);
  void SetTimer();
  void OnTimer();

  void Begin(Call call);
  // Whether it may not be sent any more.
  [[nodiscard]] bool IsTooLate(const Call& call) const;
  // Where a call goes; null: nowhere, and it was failed.
  std::shared_ptr<Pool> PoolOf(const Call& call);
  bool MakeRoomForPool();
  // Whether a call, or a stream, can't go now.
  [[nodiscard]] bool IsToWait(const Pool& pool, bool stream) const;
  // To a connection that is open, or a new one.
  void Give(const std::shared_ptr<Pool>& pool, Call call);
  void Open(const std::shared_ptr<Pool>& pool, Call call);
  // A call is the connection's from here on.
  void NoteGiven(env::CallId id, const std::shared_ptr<Carrier>& connection);
  [[nodiscard]] ParseLimits AnswerLimits(const Pool& pool) const;
  void EraseWaiting(env::CallId id);

  // What connections tell.
  // It is sent: from here on its answer is waited for.
  void NoteSent(Call& call);
  // A call is an open stream from here on.
  void NoteStreaming(const std::shared_ptr<Pool>& pool);
  // A call has had its last input, or is begun anew.
  void End(const Call& call, bool streaming, Pool& pool);
  // The first that waits; nothing: nobody does.
  std::optional<Call> TakeWaiting(Pool& pool);
  // A connection has no call any more and can take one.
  void Reuse(const std::shared_ptr<Http1Connection>& connection);
  // There may be room for those that wait.
  void ServeWaiting(const std::shared_ptr<Pool>& pool);
  // It is no more.
  void Forget(const std::shared_ptr<Carrier>& connection);
  void Fail(env::CallId call, env::CallFailure failure, std::string why);
  void Tell(std::string text);
  void Post(env::Input input);
  // The token for a request that brings no credentials; empty: none.
  [[nodiscard]] std::string TokenFor(const Pool& pool, const env::HttpRequest& request) const;
  // Tokens end while calls are on their way: whether an answer says so, and there is another token.
  [[nodiscard]] bool RefusedWithOldToken(const Call& call, int status) const;

  // Immutable after construction.
  const ClientOptions options;
  std::shared_ptr<Pool> own;  // Null without a server of its own.

  boost::asio::io_context io{1};
  boost::asio::ip::tcp::resolver resolver;
  boost::asio::steady_timer timer;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> guard;
  std::thread thread;
  env::InputSink* inbox = nullptr;
  bool stopped = false;

  mutable Mutex mutex;
  std::string trouble GUARDED_BY(mutex) = "no connection in time";

  // The io thread's own, once it runs.
  std::unordered_map<uint64_t, std::shared_ptr<Carrier>> calls;  // Under way, by call.
  std::set<std::shared_ptr<Carrier>> open;
  std::map<env::Endpoint, std::shared_ptr<Pool>> pools;  // Of endpoints.
  uint64_t calls_count = 0;
  std::set<std::pair<SteadyTime, uint64_t>> deadlines;
  std::vector<env::Input> posted;
  bool flush_posted = false;
};

// An error of a connection as Go says it: "connection refused".
std::string GoWords(const boost::system::error_code& error);
std::string HostAndPort(const std::string& host, uint16_t port);
// Whether a read failed because the other end closed.
bool IsEnd(const boost::system::error_code& error);

}  // namespace berth::net
