#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "base/bytes.h"
#include "base/hash.h"
#include "base/time.h"
#include "env/http.h"

// The one seam between berth's logic and the world (ARCHITECTURE.md, "Time and threads").
//
// An actor is a single-threaded state machine: the executor hands it one input at a time and
// carries its outputs out. It never blocks, reads no clock, draws no randomness but from a seed it
// was given, and holds no callback or pointer between steps, so its whole state is one value that
// the simulator copies and hashes. Production runs each actor on a thread of its own (env/os); the
// simulator runs all on one.
namespace berth::env {

// ---- As a client ---------------------------------------------------------------------------

// Names a request for its caller. Chosen by the caller, never reused in its life.
struct CallId {
  uint64_t value = 0;
  constexpr auto operator<=>(const CallId&) const = default;
};

// A server other than the one that a transport is connected to.
struct Endpoint {
  // Of one answer's body: 5,000 nodes of 20 KiB, as an extender gives them back, fit.
  static constexpr uint64_t kAnswerBytesMax = uint64_t{128} << 20;

  std::string host;  // Where to connect: a name or an address.
  uint16_t port = 443;
  std::string server_name;           // What its certificate must name: a name or an address.
  std::string authority_pem;         // Who may have signed that. Empty: the system's authorities.
  std::string host_header;           // What the request says that it is for.
  bool plain = false;                // Without TLS, of which the rest is.
  bool insecure = false;             // Takes any certificate.
  std::string certificate_pem = {};  // As whom, with its key; empty: as nobody.
  std::string key_pem = {};
  uint32_t lane = 0;  // Calls of another one share no connection with these.
  uint64_t answer_bytes_max = kAnswerBytesMax;  // Within what the transport takes of any server.
  auto operator<=>(const Endpoint&) const = default;
};

// Output: send a request to the API server, or to an endpoint. The answer is one Response or one
// CallFailed; after a Response to a `stream` call with status 200, StreamData follows until
// StreamEnded.
struct SendRequest {
  CallId call;
  HttpRequest request;
  bool stream = false;
  // The executor reports CallFailed{kTimeout} when there is no Response by then. A stream, once it
  // is answered, has no deadline.
  Duration timeout = Duration::Seconds(30);
  std::shared_ptr<const Endpoint> to = nullptr;  // Null: the server of the transport.
  // By the clock of Step: no byte of it leaves at this instant or later, however long it waited for
  // a connection or its sender for a processor; then it ends as CallFailed{kNotSent}.
  Instant not_after = Instant::Never();
  bool once = false;  // Never sent again: it is no question, and its fate is found out otherwise.
};

// Output: forget a call. Nothing more is reported of it; whether it was carried out is not known.
struct CancelCall {
  CallId call;
};

// Input. For a stream call with status 200 the body is empty.
struct Response {
  CallId call;
  HttpResponse response;
};

// Input: the next bytes of a stream. Cut anywhere: a frame may span two of them or share one.
struct StreamData {
  CallId call;
  Bytes data;
};

// Input: the server ended a stream, or the connection broke. A watch resumes from what it has seen
// either way.
struct StreamEnded {
  CallId call;
};

enum class CallFailure : uint8_t {
  kNotSent,  // No connection, or its time was over: the server has not seen the request.
  kLost,     // The connection broke after the request left: its fate is unknown.
  kTimeout,  // No answer in time: its fate is unknown.
};

// Input.
struct CallFailed {
  CallId call;
  CallFailure failure = CallFailure::kLost;
  std::string why = {};  // What stood in the way, in Go's words; may be empty.
};

// ---- As a server ---------------------------------------------------------------------------

// Names one request for the server that got it. Given by the transport, unique in the process's
// life.
struct ExchangeId {
  uint64_t value = 0;
  constexpr auto operator<=>(const ExchangeId&) const = default;
};

// Input. Answered by exactly one Respond, unless ExchangeAbandoned comes first.
struct RequestArrived {
  ExchangeId exchange;
  Peer peer;
  HttpRequest request;
};

// Input: the client has gone; outputs for the exchange go nowhere from here on.
struct ExchangeAbandoned {
  ExchangeId exchange;
};

// Input: the transport has handed `bytes` of the exchange's frames to the client. The server's flow
// control: sent minus drained is what a slow client has unread.
struct StreamDrained {
  ExchangeId exchange;
  uint64_t bytes = 0;
};

// Output. With `stream`, Frames follow until EndStream.
struct Respond {
  ExchangeId exchange;
  HttpResponse response;
  bool stream = false;
};

// Output: the next frame of a streaming answer; the same Bytes may go to many exchanges.
struct Frame {
  ExchangeId exchange;
  Bytes data;
};

// Output. With `abort` the connection is cut, so that the client sees an unfinished answer.
struct EndStream {
  ExchangeId exchange;
  bool abort = false;
};

// ---- Durable log ---------------------------------------------------------------------------

// One change of one stored object: `value` replaces what `key` held, or ends it when empty.
struct JournalRecord {
  std::string key;
  uint64_t revision = 0;
  Bytes value;
  bool operator==(const JournalRecord&) const = default;
};

// What a log holds when it is opened: of each live key the last record, or every record that was
// ever appended, in order.
struct JournalContent {
  std::vector<JournalRecord> records;
  // The highest that was ever appended: a log may forget the records of keys that have ended.
  uint64_t last_revision = 0;
};

// Output: make the records durable, all or none, after every append before it. Answered by
// JournalAppended or JournalRefused.
struct AppendJournal {
  uint64_t sequence = 0;
  std::vector<JournalRecord> records;
};

// Input: durable. An append of unknown fate ends the process: what was acknowledged must stay true.
struct JournalAppended {
  uint64_t sequence = 0;
};

// Input: there is no room for the append, and nothing of it is in the log. What is appended after
// it is tried on its own: who builds one append on another has one on its way at a time.
struct JournalRefused {
  uint64_t sequence = 0;
};

// ---- Time, log -------------------------------------------------------------------------------

// Input: wake_at() has come and no other input is waiting.
struct Tick {};

enum class LogLevel : uint8_t { kDebug, kInfo, kWarning, kError };

// Output: a line for the operator.
struct Log {
  LogLevel level = LogLevel::kInfo;
  std::string text;
};

using Input = std::variant<Tick, Response, StreamData, StreamEnded, CallFailed, RequestArrived,
                           ExchangeAbandoned, StreamDrained, JournalAppended, JournalRefused>;
using Output = std::variant<SendRequest, CancelCall, Respond, Frame, EndStream, AppendJournal, Log>;
using Outbox = std::vector<Output>;

class Actor {
 public:
  virtual ~Actor() = default;

  // Takes one input and appends what is to be carried out, in order. `now` never goes back.
  virtual void Step(Instant now, Input input, Outbox& out) = 0;

  // When the actor wants a Tick if nothing else happens; Never() for none. An instant that is not
  // after `now` asks for a Tick as soon as no other input waits: that is how inputs are batched
  // ("record the event, let the cycle act").
  [[nodiscard]] virtual Instant wake_at() const = 0;

  // Adds the whole state: two actors of equal hash behave the same from here on.
  virtual void AddTo(Hasher& hasher) const = 0;

 protected:
  Actor() = default;
  Actor(const Actor&) = default;
  Actor& operator=(const Actor&) = default;
};

}  // namespace berth::env
