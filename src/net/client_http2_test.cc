// Goal: over HTTP/2 calls share a connection, and what comes of each is as exact as over HTTP/1.1:
// what the server has not looked at, what was lost, what was late. Method: a TLS server around
// nghttp2's own side that plays a script: what it does about each request.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <functional>
#include <memory>
#include <optional>
#include <thread>

#include "base/mutex.h"
#include "net/certificates.h"
#include "net/client.h"
#include "net/test_http2_peer.h"
#include "net/test_listener.h"
#include "net/tls.h"
#include "testing/token_file.h"

namespace berth::net {
namespace {

using berth::testing::TokenFile;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using ::testing::UnorderedElementsAre;
using Request = Http2Peer::Request;

class Http2Server {
 public:
  struct Connection {
    Http2Peer& peer;
    int number = 0;       // From 1.
    bool cut = false;     // Set: it ends without another byte.
    bool silent = false;  // Set: nothing is read or written any more.
  };
  // Called with each request that has come whole.
  using Script = std::function<void(Connection&, const Request&)>;
  struct Ways {
    uint32_t streams_max = 100;
    int mute = 0;         // The connection that gets no handshake; 0: none.
    int older_from = 0;   // From this on it speaks HTTP/1.1; 0: none does.
    Script on_read = {};  // Called when anything was read, without a request.
  };

  Http2Server(const KeyPair& identity, Script script, Ways ways)
      : script_(std::move(script)), ways_(std::move(ways)) {
    EXPECT_TRUE(internal::UseIdentity(context_, identity));
    SSL_CTX_set_alpn_select_cb(
        context_.native_handle(),
        [](SSL*, const unsigned char** out, unsigned char* size, const unsigned char* offered,
           unsigned offered_size, void* server) {
          const Http2Server& self = *static_cast<Http2Server*>(server);
          if (self.ways_.older_from > 0 && self.count_ >= self.ways_.older_from)
            return SSL_TLSEXT_ERR_NOACK;
          constexpr std::string_view kHttp2 = "\x02h2";
          unsigned char* chosen = nullptr;
          if (SSL_select_next_proto(
                  &chosen, size, reinterpret_cast<const unsigned char*>(kHttp2.data()),
                  kHttp2.size(), offered, offered_size) != OPENSSL_NPN_NEGOTIATED) {
            return SSL_TLSEXT_ERR_NOACK;
          }
          *out = chosen;
          return SSL_TLSEXT_ERR_OK;
        },
        this);
    thread_ = std::thread([this] { Accept(); });
  }
  ~Http2Server() { Stop(); }
  Http2Server(const Http2Server&) = delete;
  Http2Server& operator=(const Http2Server&) = delete;

  void Stop() {
    if (!thread_.joinable()) return;
    shutdown(listener_.socket, SHUT_RDWR);
    thread_.join();
    for (const int each : sockets_) shutdown(each, SHUT_RDWR);
    for (std::thread& each : threads_) each.join();
    for (const int each : sockets_) close(each);
    close(listener_.socket);
  }
  [[nodiscard]] uint16_t port() const { return listener_.port; }
  [[nodiscard]] int connections() const { return count_; }

 private:
  void Accept() {
    for (;;) {
      const int connection = accept(listener_.socket, nullptr, nullptr);
      if (connection < 0) return;
      sockets_.push_back(connection);
      threads_.emplace_back([this, connection, number = ++count_] { Serve(connection, number); });
    }
  }
  void Serve(int socket, int number) {
    if (number == ways_.mute) return;
    SSL* ssl = SSL_new(context_.native_handle());
    SSL_set_fd(ssl, socket);
    Http2Peer peer(ways_.streams_max);
    Connection connection{.peer = peer, .number = number};
    const bool accepted = SSL_accept(ssl) == 1;
    if (accepted && ways_.older_from > 0 && number >= ways_.older_from) {
      TalkOlder(ssl);
    } else if (accepted) {
      Talk(ssl, connection);
    }
    SSL_free(ssl);
    if (!connection.silent) shutdown(socket, SHUT_RDWR);
  }
  void Talk(SSL* ssl, Connection& connection) {
    for (;;) {
      const std::string out = connection.peer.Output();
      if (!out.empty() && SSL_write(ssl, out.data(), static_cast<int>(out.size())) <= 0) return;
      char buffer[16384];
      const int size = SSL_read(ssl, buffer, sizeof(buffer));
      if (size <= 0 || !connection.peer.Put({buffer, static_cast<size_t>(size)})) return;
      const MutexLock lock(mutex_);
      for (const Request& request : connection.peer.TakeRequests()) script_(connection, request);
      if (ways_.on_read) ways_.on_read(connection, {});
      if (connection.cut || connection.silent) return;
    }
  }

  // Of requests without a body.
  static void TalkOlder(SSL* ssl) {
    std::string read;
    char buffer[16384];
    for (int size = 0; (size = SSL_read(ssl, buffer, sizeof(buffer))) > 0;) {
      read.append(buffer, static_cast<size_t>(size));
      if (!read.ends_with("\r\n\r\n")) continue;
      constexpr std::string_view kAnswer = "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nolder";
      if (SSL_write(ssl, kAnswer.data(), static_cast<int>(kAnswer.size())) <= 0) return;
      read.clear();
    }
  }

  const Script script_;
  const Ways ways_;
  boost::asio::ssl::context context_ = internal::MakeContext(true);
  const Listener listener_ = ListenHere();
  std::atomic<int> count_ = 0;
  std::vector<int> sockets_;  // The accepting thread's until it is joined; as the next.
  std::vector<std::thread> threads_;
  Mutex mutex_;  // One script at a time.
  std::thread thread_;
};

// What came of calls, a line each: "1: 200 ok", "2: not sent: why", "3: ... wait".
class Answers final : public env::InputSink {
 public:
  void Post(std::vector<env::Input> batch) override {
    const MutexLock lock(mutex_);
    for (env::Input& input : batch) lines_.push_back(LineOf(input));
    changed_.NotifyAll();
  }
  // The next so many, in the order in which they came.
  std::vector<std::string> Next(size_t count) {
    const MutexLock lock(mutex_);
    while (lines_.size() < count) changed_.Wait(mutex_);
    std::vector<std::string> taken(lines_.begin(), lines_.begin() + static_cast<ptrdiff_t>(count));
    lines_.erase(lines_.begin(), lines_.begin() + static_cast<ptrdiff_t>(count));
    return taken;
  }
  std::string Next() { return Next(1)[0]; }

 private:
  static std::string LineOf(const env::Input& input) {
    if (const auto* response = std::get_if<env::Response>(&input)) {
      return fmt::format("{}: {} {}", response->call.value, response->response.status,
                         response->response.body.view());
    }
    if (const auto* data = std::get_if<env::StreamData>(&input))
      return fmt::format("{}: data {}", data->call.value, data->data.view());
    if (const auto* ended = std::get_if<env::StreamEnded>(&input))
      return fmt::format("{}: ended", ended->call.value);
    const auto& failed = std::get<env::CallFailed>(input);
    const char* const kinds[] = {"not sent", "lost", "late"};
    return fmt::format("{}: {}: {}", failed.call.value, kinds[static_cast<int>(failed.failure)],
                       failed.why);
  }

  Mutex mutex_;
  CondVar changed_;
  std::vector<std::string> lines_ GUARDED_BY(mutex_);
};

// As the server answers that has nothing else in mind.
void Echo(Http2Server::Connection& connection, const Request& request) {
  connection.peer.Answer(request.stream, "200",
                         fmt::format("{} on {}", request.headers.at(":path"), connection.number));
}

class ClientHttp2Test : public ::testing::Test {
 protected:
  ClientHttp2Test() {
    // The server may write to a client that has gone.
    EXPECT_NE(std::signal(SIGPIPE, SIG_IGN), SIG_ERR);
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    pki_ = MakePki("127.0.0.1", Instant{std::chrono::nanoseconds(now).count()}).value();
    options_.host = "127.0.0.1";
    options_.authority_pem = pki_.authority.certificate_pem;
  }
  ~ClientHttp2Test() override { End(); }
  // Of whose script or pings use what the test has, before that is gone.
  void End() {
    if (client_) client_->Stop();
    if (server_) server_->Stop();
  }
  void Start(Http2Server::Script script, Http2Server::Ways ways = {}) {
    server_ = std::make_unique<Http2Server>(pki_.server, std::move(script), std::move(ways));
    options_.port = server_->port();
    client_ = HttpsClient::Make(options_).value();
    client_->Start(answers_);
  }
  static env::SendRequest Call(uint64_t id, const std::string& body = "") {
    env::SendRequest send;
    send.call = {id};
    send.request.method = body.empty() ? env::Method::kGet : env::Method::kPost;
    send.request.target = fmt::format("/{}", id);
    send.request.body = Bytes(body);
    send.timeout = Duration::Seconds(20);
    return send;
  }
  static env::SendRequest Watch(uint64_t id) {
    env::SendRequest send = Call(id);
    send.stream = true;
    return send;
  }
  void Send(std::vector<env::Output> batch) { client_->Take(std::move(batch)); }
  // One call, and what came of it.
  std::string Ask(env::Output send) {
    Send({std::move(send)});
    return answers_.Next();
  }

  Pki pki_;
  ClientOptions options_;
  Answers answers_;
  std::unique_ptr<Http2Server> server_;
  std::unique_ptr<HttpsClient> client_;
};

TEST_F(ClientHttp2Test, CallsShareAConnection) {
  std::vector<int32_t> held;
  Start([&](Http2Server::Connection& connection, const Request& request) {
    held.push_back(request.stream);
    if (held.size() < 3) return;
    for (; !held.empty(); held.pop_back())
      connection.peer.Answer(held.back(), "200", std::to_string(connection.number));
  });
  Send({Call(1), Call(2, "{}"), Call(3)});
  EXPECT_THAT(answers_.Next(3), UnorderedElementsAre("1: 200 1", "2: 200 1", "3: 200 1"));
  EXPECT_EQ(server_->connections(), 1);
}

TEST_F(ClientHttp2Test, NoMoreCallsAreUnderWayThanTheOptionsSay) {
  options_.connections_max = 2;
  std::vector<int32_t> held;
  Start([&](Http2Server::Connection& connection, const Request& request) {
    held.push_back(request.stream);
    EXPECT_LE(held.size(), 2U);
    if (held.size() < 2) return;
    for (; !held.empty(); held.pop_back()) connection.peer.Answer(held.back(), "200", "");
  });
  Send({Call(1), Call(2), Call(3), Call(4)});
  answers_.Next(4);
}

TEST_F(ClientHttp2Test, NothingElseIsOfferedWhereItIsOff) {
  options_.http2 = false;
  Start(Echo);
  // The server speaks nothing else.
  EXPECT_THAT(Ask(Call(1)), StartsWith("1: lost"));
}

TEST_F(ClientHttp2Test, AStreamIsToldAsItComesAndCallsGoBesideIt) {
  int32_t watch = 0;
  Start([&](Http2Server::Connection& connection, const Request& request) {
    if (watch == 0) {
      watch = request.stream;
      connection.peer.Head(watch, "200");
      return;
    }
    connection.peer.Data(watch, request.body, request.body == "last");
    Echo(connection, request);
  });
  EXPECT_EQ(Ask(Watch(1)), "1: 200 ");
  Send({Call(2, "one")});
  EXPECT_THAT(answers_.Next(2), UnorderedElementsAre("1: data one", "2: 200 /2 on 1"));
  Send({Call(3, "last")});
  EXPECT_THAT(answers_.Next(3), UnorderedElementsAre("1: data last", "1: ended", "3: 200 /3 on 1"));
}

TEST_F(ClientHttp2Test, AnotherConnectionIsOpenedWhenTheServerTakesNoMoreOnOne) {
  Start(
      [&](Http2Server::Connection& connection, const Request& request) {
        if (request.headers.at(":path") == "/1") {
          connection.peer.Head(request.stream, "200");
        } else {
          Echo(connection, request);
        }
      },
      {.streams_max = 1});
  EXPECT_EQ(Ask(Watch(1)), "1: 200 ");
  EXPECT_EQ(Ask(Call(2)), "2: 200 /2 on 2");
  EXPECT_EQ(Ask(Call(3)), "3: 200 /3 on 2");
}

TEST_F(ClientHttp2Test, NoMoreIsSentThanTheServerTakes) {
  std::atomic<int> refused{0};
  Start(
      [&](Http2Server::Connection& connection, const Request& request) {
        refused += static_cast<int>(connection.peer.resets().size());
        Echo(connection, request);
      },
      {.streams_max = 2});
  Send({Call(1, "{}"), Call(2, "{}"), Call(3, "{}"), Call(4, "{}"), Call(5, "{}")});
  for (const std::string& line : answers_.Next(5)) EXPECT_THAT(line, HasSubstr(": 200 "));
  EXPECT_EQ(refused, 0);
}

// It has three under way when it says that it takes one.
TEST_F(ClientHttp2Test, AServerThatComesToTakeFewerGetsNoMoreUntilItHas) {
  std::vector<int32_t> held;
  Start(
      [&](Http2Server::Connection& connection, const Request& request) {
        if (connection.number > 1) return Echo(connection, request);
        held.push_back(request.stream);
        if (held.size() < 3) return;
        connection.peer.Allow(1);
        connection.peer.Answer(held.front(), "200", "first");
      },
      {.streams_max = 3, .on_read = [&](Http2Server::Connection& connection, const Request&) {
         if (!connection.peer.resets().empty()) connection.peer.Answer(held.back(), "200", "last");
       }});
  Send({Call(1), Call(2), Call(3)});
  EXPECT_EQ(answers_.Next(), "1: 200 first");
  EXPECT_EQ(Ask(Call(4)), "4: 200 /4 on 2");
  EXPECT_EQ(Ask(env::CancelCall{{2}}), "3: 200 last");
  End();
}

// As after a downgrade, or behind another proxy.
TEST_F(ClientHttp2Test, AServerThatIsReplacedByAnOlderOneIsSpokenToByItsProtocol) {
  Start(
      [](Http2Server::Connection& connection, const Request& request) {
        Echo(connection, request);
        connection.peer.GoAway(request.stream);
      },
      {.older_from = 2});
  EXPECT_EQ(Ask(Call(1)), "1: 200 /1 on 1");
  EXPECT_EQ(Ask(Call(2)), "2: 200 older");
  EXPECT_EQ(Ask(Call(3)), "3: 200 older");
}

// Of the second, which is opened for want of room on the first.
TEST_F(ClientHttp2Test, WhoWaitsForAConnectionThatHangsTakesTheRoomThatIsFreedElsewhere) {
  options_.ping_after = Duration::Milliseconds(20);
  std::optional<int32_t> held;
  Start(
      [&](Http2Server::Connection& connection, const Request& request) {
        if (request.headers.at(":path") == "/1") {
          held = request.stream;
        } else {
          Echo(connection, request);
        }
      },
      {.streams_max = 1,
       .mute = 2,
       // A ping comes: by then the others wait.
       .on_read = [&](Http2Server::Connection& connection, const Request&) {
         if (held && server_->connections() == 2)
           connection.peer.Answer(*std::exchange(held, std::nullopt), "200", "held");
       }});
  Send({Call(1)});
  Send({Call(2), Call(3)});
  EXPECT_THAT(answers_.Next(2), ElementsAre("1: 200 held", "3: 200 /3 on 1"));
  End();
}

TEST_F(ClientHttp2Test, AConnectionThatDoesNotComeAboutIsGivenUpAndTheNextTriesAnew) {
  options_.open_timeout = Duration::Milliseconds(50);
  Start(Echo, {.mute = 1});
  Send({Call(1), Call(2)});
  EXPECT_THAT(answers_.Next(2),
              ElementsAre("1: not sent: dial tcp: i/o timeout", "2: 200 /2 on 2"));
}

TEST_F(ClientHttp2Test, WhoIsCancelledLeavesItsHandshakeToTheNext) {
  Start(Echo);
  Send({Call(1), Call(2), env::CancelCall{{1}}});
  EXPECT_EQ(answers_.Next(), "2: 200 /2 on 1");
  EXPECT_EQ(Ask(Call(3)), "3: 200 /3 on 1");
}

TEST_F(ClientHttp2Test, AnAnswerThatIsNoneIsLostAtOnce) {
  Start([](Http2Server::Connection& connection, const Request& request) {
    if (request.headers.at(":path") != "/1") return Echo(connection, request);
    connection.peer.Head(request.stream, "200", {{"content-length", "3"}});
    connection.peer.Data(request.stream, "four", true);
  });
  EXPECT_EQ(Ask(Call(1)), "1: lost: stream error: stream ID 1; PROTOCOL_ERROR");
  EXPECT_EQ(Ask(Call(2)), "2: 200 /2 on 1");
}

TEST_F(ClientHttp2Test, TheRestOfABodyDoesNotLeaveTooLate) {
  constexpr Instant kStrikes = Instant::FromSeconds(10);
  std::atomic<int> asked{0};
  options_.clock = [&] {
    constexpr int kUntilItIsFramed = 3;  // Begun, its due time reckoned, framed.
    return Instant{asked++ < kUntilItIsFramed ? 0 : kStrikes.ns};
  };
  std::atomic<int> whole{0};
  Start([&](Http2Server::Connection& connection, const Request& request) {
    if (!request.body.empty()) ++whole;
    Echo(connection, request);
  });
  env::SendRequest bounded = Call(1, std::string(200'000, 'x'));
  bounded.not_after = kStrikes;
  EXPECT_EQ(Ask(std::move(bounded)), "1: lost: it must not be sent any more");
  EXPECT_EQ(Ask(Call(2)), "2: 200 /2 on 1");
  EXPECT_EQ(whole, 0);
}

TEST_F(ClientHttp2Test, ACallThatIsRefusedForAnOldTokenIsSentOnceMoreWithTheNewOne) {
  TokenFile file("old");
  options_.bearer_token = BearerToken::FromFile(file.path()).value();
  file.Write("new");
  Start([](Http2Server::Connection& connection, const Request& request) {
    const std::string& token = request.headers.at("authorization");
    connection.peer.Answer(request.stream, token == "Bearer new" ? "200" : "401", token);
  });
  EXPECT_EQ(Ask(Call(1, "{}")), "1: 200 Bearer new");
}

TEST_F(ClientHttp2Test, WhatTheServerHasNotLookedAtIsSentOnceMoreEvenAWrite) {
  int refused = 0;
  Start([&](Http2Server::Connection& connection, const Request& request) {
    if (request.body == "always" || (request.body == "first" && refused++ == 0)) {
      connection.peer.Reset(request.stream, NGHTTP2_REFUSED_STREAM);
    } else {
      Echo(connection, request);
    }
  });
  EXPECT_EQ(Ask(Call(1, "first")), "1: 200 /1 on 1");
  EXPECT_THAT(Ask(Call(2, "always")), AllOf(StartsWith("2: not sent: "), HasSubstr("REFUSED")));
  env::SendRequest once = Call(3, "always");
  once.once = true;
  EXPECT_THAT(Ask(std::move(once)), StartsWith("3: not sent: "));
}

TEST_F(ClientHttp2Test, AServerThatGoesAwayEndsWhatItHasAndGetsNoMore) {
  int32_t first = 0;
  Start([&](Http2Server::Connection& connection, const Request& request) {
    if (connection.number > 1) return Echo(connection, request);
    if (first == 0) {
      first = request.stream;
      return;
    }
    connection.peer.GoAway(first);
    connection.peer.Answer(first, "200", "still");
  });
  Send({Call(1, "{}"), Call(2, "{}")});
  EXPECT_THAT(answers_.Next(2), UnorderedElementsAre("1: 200 still", "2: 200 /2 on 2"));
  EXPECT_EQ(Ask(Call(3)), "3: 200 /3 on 2");
}

TEST_F(ClientHttp2Test, WhenAConnectionEndsWritesAreLostAndUnansweredGetsSentAgain) {
  Start([&](Http2Server::Connection& connection, const Request& request) {
    if (request.headers.at(":path") == "/4" && connection.number == 1) connection.cut = true;
    if (connection.number == 1 && request.headers.at(":path") != "/1") return;
    Echo(connection, request);
  });
  EXPECT_EQ(Ask(Call(1)), "1: 200 /1 on 1");
  Send({Call(2, "{}"), Call(3), Call(4)});
  EXPECT_THAT(answers_.Next(3),
              UnorderedElementsAre(StartsWith("2: lost: "), "3: 200 /3 on 2", "4: 200 /4 on 2"));
}

TEST_F(ClientHttp2Test, WhatEndsOnANewConnectionIsLost) {
  Start([](Http2Server::Connection& connection, const Request&) { connection.cut = true; });
  EXPECT_THAT(Ask(Call(1)), StartsWith("1: lost: "));
}

TEST_F(ClientHttp2Test, AnAnswerThatIsCutIsLost) {
  Start([](Http2Server::Connection& connection, const Request& request) {
    if (request.headers.at(":path") == "/1") {
      connection.peer.Head(request.stream, "200");
      connection.peer.Data(request.stream, "half", false);
    } else if (request.headers.at(":path") == "/2") {
      connection.peer.Head(request.stream, "200");
      connection.peer.Reset(request.stream, NGHTTP2_INTERNAL_ERROR);
    } else {
      connection.cut = true;
    }
  });
  Send({Call(1)});
  EXPECT_THAT(Ask(Call(2)),
              AllOf(StartsWith("2: lost: stream error"), HasSubstr("INTERNAL_ERROR")));
  Send({Call(3, "{}")});
  EXPECT_THAT(answers_.Next(2),
              UnorderedElementsAre(StartsWith("1: lost: "), StartsWith("3: lost")));
}

TEST_F(ClientHttp2Test, ALateCallLeavesTheConnectionToTheOthers) {
  Start([](Http2Server::Connection& connection, const Request& request) {
    if (request.headers.at(":path") != "/1") Echo(connection, request);
  });
  env::SendRequest late = Call(1, "{}");
  late.timeout = Duration::Milliseconds(50);
  EXPECT_EQ(Ask(std::move(late)), "1: late: context deadline exceeded");
  EXPECT_EQ(Ask(Call(2)), "2: 200 /2 on 1");
}

TEST_F(ClientHttp2Test, ACancelledCallIsResetAndLeavesTheConnection) {
  Start([](Http2Server::Connection& connection, const Request& request) {
    if (request.headers.at(":path") == "/1") return connection.peer.Head(request.stream, "200");
    connection.peer.Answer(request.stream, "200",
                           fmt::format("{} reset", connection.peer.resets().size()));
  });
  EXPECT_EQ(Ask(Watch(1)), "1: 200 ");
  Send({env::CancelCall{{1}}});
  EXPECT_EQ(Ask(Call(2)), "2: 200 1 reset");
}

TEST_F(ClientHttp2Test, ASilentServerIsGivenUp) {
  options_.ping_after = Duration::Milliseconds(50);
  options_.ping_timeout = Duration::Milliseconds(50);
  Start([](Http2Server::Connection& connection, const Request& request) {
    if (connection.number > 1) return Echo(connection, request);
    connection.silent = true;
  });
  EXPECT_EQ(Ask(Call(1, "{}")), "1: lost: http2: client connection lost");
  EXPECT_EQ(Ask(Call(2)), "2: 200 /2 on 2");
}

TEST_F(ClientHttp2Test, AQuietServerThatAnswersPingsIsKept) {
  options_.ping_after = Duration::Milliseconds(20);
  options_.ping_timeout = Duration::Seconds(20);
  Start([](Http2Server::Connection& connection, const Request& request) {
    if (request.headers.at(":path") != "/1") Echo(connection, request);
  });
  env::SendRequest late = Call(1);
  late.timeout = Duration::Milliseconds(200);
  EXPECT_THAT(Ask(std::move(late)), StartsWith("1: late"));
  EXPECT_EQ(Ask(Call(2)), "2: 200 /2 on 1");
}

TEST_F(ClientHttp2Test, AnAnswerOverTheLimitIsLostAndTheConnectionKept) {
  options_.body_bytes_max = 1000;
  Start([](Http2Server::Connection& connection, const Request& request) {
    connection.peer.Answer(request.stream, "200",
                           request.headers.at(":path") == "/1" ? std::string(1001, 'x') : "ok");
  });
  EXPECT_EQ(Ask(Call(1)), "1: lost: the answer has more than 1000 bytes");
  EXPECT_EQ(Ask(Call(2)), "2: 200 ok");
}

TEST_F(ClientHttp2Test, ATokenIsSentAndWhatMustNotLeaveAnyMoreIsNot) {
  constexpr Instant kStrikes = Instant::FromSeconds(10);
  std::atomic<int64_t> now{0};
  options_.bearer_token = std::make_shared<BearerToken>("secret");
  options_.clock = [&] { return Instant{now.load()}; };
  Start([&](Http2Server::Connection& connection, const Request& request) {
    connection.peer.Answer(request.stream, "200", request.headers.at("authorization"));
  });
  env::SendRequest in_time = Call(1, "{}");
  in_time.not_after = kStrikes;
  EXPECT_EQ(Ask(std::move(in_time)), "1: 200 Bearer secret");
  now = kStrikes.ns;
  env::SendRequest late = Call(2, "{}");
  late.not_after = kStrikes;
  EXPECT_EQ(Ask(std::move(late)), "2: not sent: it must not be sent any more");
  EXPECT_EQ(Ask(Call(3)), "3: 200 Bearer secret");
}

// Its time runs out between when it is begun and when its bytes go.
TEST_F(ClientHttp2Test, WhetherItMayLeaveIsLookedAtWhenItLeaves) {
  constexpr Instant kStrikes = Instant::FromSeconds(10);
  std::atomic<int> asked{0};
  options_.clock = [&] {
    // Begun, its due time reckoned: of a call of the second batch these are in time.
    constexpr int kBeforeItLeaves = 2;
    return Instant{asked++ < kBeforeItLeaves ? 0 : kStrikes.ns};
  };
  std::atomic<int> seen{0};
  Start([&](Http2Server::Connection& connection, const Request& request) {
    ++seen;
    Echo(connection, request);
  });
  EXPECT_EQ(Ask(Call(1)), "1: 200 /1 on 1");
  env::SendRequest bounded = Call(2, "{}");
  bounded.not_after = kStrikes;
  EXPECT_EQ(Ask(std::move(bounded)), "2: not sent: it must not be sent any more");
  EXPECT_EQ(Ask(Call(3)), "3: 200 /3 on 1");
  EXPECT_EQ(seen, 2);
}

}  // namespace
}  // namespace berth::net
