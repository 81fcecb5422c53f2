// Goal: the client stays exact with servers that close kept connections, answer before they have
// read, or send rubbish. Method: a TLS server of a few lines that plays a script: per connection,
// what it answers to each read; an empty answer
// closes.
#include "net/client.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "net/certificates.h"
#include "net/test_listener.h"
#include "net/tls.h"
#include "testing/token_file.h"

namespace berth::net {
namespace {

using berth::testing::TokenFile;
using ::testing::ElementsAre;

constexpr char kOk[] = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

constexpr char kThenClose[] = "<close>";

class ScriptedServer {
 public:
  using Script = std::vector<std::vector<std::string>>;
  // Called with "connection" when one has come, and with "request" when one was read.
  using Hook = std::function<void(std::string_view)>;

  // Without an identity it speaks plain HTTP. Whom `clients` signed it knows, and nobody else.
  ScriptedServer(const KeyPair& identity, Script script, const std::string& clients = "",
                 Hook hook = {})
      : script_(std::move(script)),
        hook_(std::move(hook)),
        plain_(identity.certificate_pem.empty()) {
    EXPECT_TRUE(plain_ || internal::UseIdentity(context_, identity));
    if (!clients.empty()) {
      EXPECT_TRUE(internal::TrustAuthority(context_, clients));
      context_.set_verify_mode(boost::asio::ssl::verify_peer |
                               boost::asio::ssl::verify_fail_if_no_peer_cert);
    }
    thread_ = std::thread([this] { Run(); });
  }
  ~ScriptedServer() {
    shutdown(listener_.socket, SHUT_RDWR);  // A connection that never came must not hang the test.
    thread_.join();
    for (const int each : kept_) close(each);
    close(listener_.socket);
  }
  [[nodiscard]] uint16_t port() const { return listener_.port; }
  // Of each request so far.
  [[nodiscard]] std::vector<std::string> tokens() {
    const std::lock_guard lock(mutex_);
    return tokens_;
  }

 private:
  void Note(std::string_view request) {
    if (hook_) hook_("request");
    constexpr std::string_view kHeader = "authorization: Bearer ";
    const size_t at = request.find(kHeader);
    if (at == std::string_view::npos) return;
    const std::string_view token = request.substr(at + kHeader.size());
    const std::lock_guard lock(mutex_);
    tokens_.emplace_back(token.substr(0, token.find('\r')));
  }
  void Run() {
    for (const std::vector<std::string>& answers : script_) {
      const int connection = accept(listener_.socket, nullptr, nullptr);
      if (connection < 0) return;
      if (hook_) hook_("connection");
      SSL* ssl = plain_ ? nullptr : SSL_new(context_.native_handle());
      if (ssl != nullptr) SSL_set_fd(ssl, connection);
      bool keep = ssl == nullptr || SSL_accept(ssl) == 1;
      for (const std::string& answer : answers) {
        if (!keep) break;
        char buffer[4096];
        const int size_read = ssl != nullptr
                                  ? SSL_read(ssl, buffer, sizeof(buffer))
                                  : static_cast<int>(read(connection, buffer, sizeof(buffer)));
        if (size_read > 0) Note({buffer, static_cast<size_t>(size_read)});
        keep = size_read > 0 && !answer.empty();
        if (!keep) break;
        const bool last = answer.ends_with(kThenClose);
        const size_t size = answer.size() - (last ? sizeof(kThenClose) - 1 : 0);
        if (ssl != nullptr) {
          SSL_write(ssl, answer.data(), static_cast<int>(size));
        } else {
          EXPECT_EQ(write(connection, answer.data(), size), static_cast<ssize_t>(size));
        }
        keep = !last;
      }
      SSL_free(ssl);
      if (keep) {
        kept_.push_back(connection);
      } else {
        close(connection);
      }
    }
  }

  Script script_;
  Hook hook_;
  bool plain_;
  boost::asio::ssl::context context_ = internal::MakeContext(true);
  const Listener listener_ = ListenHere();
  std::vector<int> kept_;
  std::mutex mutex_;
  std::vector<std::string> tokens_;  // Under mutex_.
  std::thread thread_;
};

// Waits for one answer at a time.
struct Asker final : env::InputSink {
  void Post(std::vector<env::Input> batch) override {
    const std::lock_guard lock(mutex);
    for (env::Input& input : batch) {
      if (const auto* response = std::get_if<env::Response>(&input)) {
        lines.push_back(std::to_string(response->response.status) + " " +
                        std::string(response->response.body.view()));
      } else if (const auto* failed = std::get_if<env::CallFailed>(&input)) {
        lines.push_back("failed " + std::to_string(static_cast<int>(failed->failure)));
        why = failed->why;
      }
    }
    changed.notify_all();
  }
  std::string Next() {
    std::unique_lock lock(mutex);
    changed.wait_for(lock, std::chrono::seconds(10), [&] { return !lines.empty(); });
    if (lines.empty()) return "nothing";
    std::string line = lines.front();
    lines.erase(lines.begin());
    return line;
  }
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::string> lines;
  std::string why;  // Of the last that failed.
};

class ScriptedTest : public ::testing::Test {
 protected:
  ScriptedTest() {
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    pki_ = MakePki("127.0.0.1", Instant{std::chrono::nanoseconds(now).count()}).value();
  }
  // Plays `script` to a client that sends `bodies` one after the other (GET when empty) and gives
  // what each got.
  std::vector<std::string> Play(ScriptedServer::Script script,
                                const std::vector<std::string>& bodies,
                                const std::shared_ptr<BearerToken>& token = nullptr) {
    Asker asker;
    ScriptedServer server(pki_.server, std::move(script));
    ClientOptions options;
    options.host = "127.0.0.1";
    options.port = server.port();
    options.authority_pem = pki_.authority.certificate_pem;
    options.bearer_token = token;
    options.gather_calls_min = gather_calls_min_;
    const auto client = HttpsClient::Make(options).value();
    client->Start(asker);
    std::vector<std::string> got;
    for (size_t i = 0; i < bodies.size(); ++i) {
      env::SendRequest send;
      send.call = {i + 1};
      send.request.method = bodies[i].empty() ? env::Method::kGet : env::Method::kPost;
      send.request.target = "/";
      send.request.body = Bytes(bodies[i]);
      send.timeout = Duration::Seconds(2);
      std::vector<env::Output> batch;
      batch.emplace_back(std::move(send));
      client->Take(std::move(batch));
      got.push_back(asker.Next());
      why_.push_back(asker.why);
    }
    client->Stop();
    tokens_ = server.tokens();
    return got;
  }
  // Calls `to`, of which the port is the server's, once for each body.
  std::vector<std::string> Call(ScriptedServer::Script script, env::Endpoint to,
                                const std::vector<std::string>& bodies) {
    Asker asker;
    ScriptedServer server(to.plain ? KeyPair{} : pki_.server, std::move(script), clients_);
    ClientOptions options;
    options.body_bytes_max = body_bytes_max_;
    options.bearer_token = std::make_shared<BearerToken>("secret");
    const auto client = HttpsClient::Make(options).value();
    client->Start(asker);
    if (to.port == 0) to.port = server.port();
    std::vector<std::string> got;
    for (size_t i = 0; i < bodies.size(); ++i) {
      env::SendRequest send;
      send.call = {i + 1};
      send.request.method = env::Method::kPost;
      send.request.target = "/";
      send.request.body = Bytes(bodies[i]);
      send.timeout = Duration::Seconds(2);
      send.to = std::make_shared<const env::Endpoint>(to);
      send.once = once_;
      std::vector<env::Output> batch;
      batch.emplace_back(std::move(send));
      client->Take(std::move(batch));
      got.push_back(asker.Next());
      if (got.back().starts_with("failed")) got.back() += " " + asker.why;
    }
    client->Stop();
    tokens_ = server.tokens();
    return got;
  }
  // A write that must have left before a clock strikes, which it does at `strikes`: "start",
  // "connection" or "request". What came of it, and after it of one without such a bound.
  std::vector<std::string> PlayUntil(ScriptedServer::Script script, std::string_view strikes,
                                     const std::shared_ptr<BearerToken>& token = nullptr) {
    constexpr Instant kStrikes = Instant::FromSeconds(10);
    std::atomic<int64_t> now{strikes == "start" ? kStrikes.ns : 0};
    Asker asker;
    ScriptedServer server(pki_.server, std::move(script), "", [&](std::string_view what) {
      if (what == strikes) now = kStrikes.ns;
    });
    ClientOptions options;
    options.host = "127.0.0.1";
    options.port = server.port();
    options.authority_pem = pki_.authority.certificate_pem;
    options.bearer_token = token;
    options.clock = [&] { return Instant{now.load()}; };
    const auto client = HttpsClient::Make(options).value();
    client->Start(asker);
    std::vector<std::string> got;
    for (const bool bounded : {true, false}) {
      env::SendRequest send;
      send.call = {got.size() + 1};
      send.request.method = env::Method::kPost;
      send.request.target = "/";
      if (bounded) send.not_after = kStrikes;
      std::vector<env::Output> batch;
      batch.emplace_back(std::move(send));
      client->Take(std::move(batch));
      got.push_back(asker.Next());
    }
    client->Stop();
    tokens_ = server.tokens();
    return got;
  }
  [[nodiscard]] env::Endpoint Local() const {
    return {.host = "127.0.0.1",
            .port = 0,
            .server_name = "localhost",
            .authority_pem = pki_.authority.certificate_pem,
            .host_header = "localhost"};
  }
  Pki pki_;
  int gather_calls_min_ = 0;
  uint64_t body_bytes_max_ = 1000;  // What the client of Call takes.
  std::string clients_;  // Who signed whom the server of Call knows; empty: it takes anybody.
  bool once_ = false;    // Whether Call sends each once.
  std::vector<std::string> tokens_;  // That the server was shown.
  std::vector<std::string> why_;     // What Play got failed.
};

constexpr char kUnauthorized[] = "HTTP/1.1 401 Unauthorized\r\ncontent-length: 2\r\n\r\nno";

TEST_F(ScriptedTest, AGetOnAKeptConnectionThatEndsIsSentOnceMore) {
  EXPECT_THAT(Play({{kOk, ""}, {kOk}}, {"", ""}), ElementsAre("200 ok", "200 ok"));
}

TEST_F(ScriptedTest, WhatIsGatheredIsToldAsAnyOther) {
  gather_calls_min_ = 1;
  EXPECT_THAT(Play({{kOk, kOk, ""}, {kOk}}, {"", "x", ""}),
              ElementsAre("200 ok", "200 ok", "200 ok"));
}

TEST_F(ScriptedTest, AWriteIsNeverRepeated) {
  EXPECT_THAT(Play({{kOk, ""}}, {"", "body"}), ElementsAre("200 ok", "failed 1"));
}

TEST_F(ScriptedTest, AGetOnANewConnectionThatEndsIsLost) {
  EXPECT_THAT(Play({{""}}, {""}), ElementsAre("failed 1"));
}

TEST_F(ScriptedTest, AConnectionWhoseRequestWasAnsweredUnreadIsNotUsedAgain) {
  // More than the buffers of both sockets hold, so that most of it is still to be written.
  const std::string large(32 * 1024 * 1024, 'x');
  EXPECT_THAT(Play({{"HTTP/1.1 413 Too Large\r\ncontent-length: 1\r\n\r\n!"}, {kOk}}, {large, ""}),
              ElementsAre("413 !", "200 ok"));
}

TEST_F(ScriptedTest, AnswersThatAreCutOrNoHttpAreLost) {
  EXPECT_THAT(Play({{"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nshort<close>"},
                    {"SSH-2.0-what\r\n\r\n"},
                    {kOk}},
                   {"a", "b", ""}),
              ElementsAre("failed 1", "failed 1", "200 ok"));
}

TEST_F(ScriptedTest, InterimAnswersAnnounceTheAnswer) {
  EXPECT_THAT(Play({{std::string("HTTP/1.1 100 Continue\r\n\r\n") + kOk}}, {"a"}),
              ElementsAre("200 ok"));
}

TEST_F(ScriptedTest, ABodyWithoutALengthEndsWithTheConnection) {
  EXPECT_THAT(Play({{"HTTP/1.1 200 OK\r\n\r\nuntil the end<close>"}}, {""}),
              ElementsAre("200 until the end"));
}

TEST_F(ScriptedTest, ATokenIsReadAgainWhenItsTimeHasCome) {
  TokenFile file("first");
  const auto token = BearerToken::FromFile(file.path(), Duration{0}).value();
  file.Write("second");
  EXPECT_THAT(Play({{kOk}}, {""}, token), ElementsAre("200 ok"));
  EXPECT_THAT(tokens_, ElementsAre("second"));
}

TEST_F(ScriptedTest, ACallThatIsRefusedForAnOldTokenIsSentOnceMoreWithTheNewOne) {
  TokenFile file("first");
  const auto token = BearerToken::FromFile(file.path(), Duration::Minutes(60)).value();
  file.Write("second");
  // A write too: who is refused has changed nothing.
  EXPECT_THAT(Play({{kUnauthorized, kOk}}, {"body"}, token), ElementsAre("200 ok"));
  EXPECT_THAT(tokens_, ElementsAre("first", "second"));
  file.Write("third");
  EXPECT_THAT(Play({{kUnauthorized, kUnauthorized}}, {""}, token), ElementsAre("401 no"));
  EXPECT_THAT(tokens_, ElementsAre("second", "third"));
}

TEST_F(ScriptedTest, ARefusalStandsWhenThereIsNoOtherToken) {
  TokenFile file("first");
  const auto token = BearerToken::FromFile(file.path(), Duration::Minutes(60)).value();
  EXPECT_THAT(Play({{kUnauthorized}}, {""}, token), ElementsAre("401 no"));
  file.Write("");
  EXPECT_THAT(Play({{kUnauthorized}}, {""}, token), ElementsAre("401 no"));
  // As a block of YAML ends it: a line end would break the request.
  const auto fixed = std::make_shared<BearerToken>("fixed\n");
  EXPECT_EQ(fixed->Current(), "fixed");
  EXPECT_THAT(Play({{kUnauthorized}}, {""}, fixed), ElementsAre("401 no"));
  EXPECT_FALSE(BearerToken::FromFile(file.path()).has_value());
  EXPECT_FALSE(BearerToken::FromFile("/nosuch/token").has_value());
}

// D12: a write of who led must not leave once another may lead. The server plays one answer for
// each request that reaches it.
TEST_F(ScriptedTest, WhatMustNotLeaveAnyMoreIsNotSent) {
  // Its sender was stopped before it was handed over.
  EXPECT_THAT(PlayUntil({{kOk}}, "start"), ElementsAre("failed 0", "200 ok"));
  // Its connection took too long: that is given up, though it came about.
  EXPECT_THAT(PlayUntil({{kOk}, {kOk}}, "connection"), ElementsAre("failed 0", "200 ok"));
  // It was sent in time, and answered late.
  EXPECT_THAT(PlayUntil({{kOk, kOk}}, "request"), ElementsAre("200 ok", "200 ok"));
}

TEST_F(ScriptedTest, WhatMustNotLeaveAnyMoreIsNotRepeatedWithANewToken) {
  TokenFile file("first");
  const auto token = BearerToken::FromFile(file.path(), Duration::Minutes(60)).value();
  file.Write("second");
  EXPECT_THAT(PlayUntil({{kUnauthorized, kOk}}, "request", token),
              ElementsAre("failed 0", "200 ok"));
  EXPECT_THAT(tokens_, ElementsAre("first", "second"));
}

// Takes connections, and says nothing.
class SilentServer {
 public:
  SilentServer() = default;
  ~SilentServer() { close(listener_.socket); }
  SilentServer(const SilentServer&) = delete;
  SilentServer& operator=(const SilentServer&) = delete;
  [[nodiscard]] uint16_t port() const { return listener_.port; }

 private:
  const Listener listener_ = ListenHere();
};

// It waits for a connection that does not come: its sender hears of that when its time is over, not
// when its answer would be due.
TEST_F(ScriptedTest, WhatWaitsEndsWhenItMustNotLeaveAnyMore) {
  Asker asker;
  const SilentServer server;
  ClientOptions options;
  options.host = "127.0.0.1";
  options.port = server.port();
  options.authority_pem = pki_.authority.certificate_pem;
  options.clock = [] { return Instant{}; };
  const auto client = HttpsClient::Make(options).value();
  client->Start(asker);
  env::SendRequest send;
  send.call = {1};
  send.request.method = env::Method::kPost;
  send.request.target = "/";
  send.timeout = Duration::Minutes(60);
  send.not_after = Instant{} + Duration::Milliseconds(1);
  std::vector<env::Output> batch;
  batch.emplace_back(std::move(send));
  client->Take(std::move(batch));
  EXPECT_EQ(asker.Next(), "failed 0");
  client->Stop();
}

TEST_F(ScriptedTest, EndpointsAreCalledByNameAndShownNoCredentials) {
  EXPECT_THAT(Call({{kOk, kOk}}, Local(), {"a", "b"}), ElementsAre("200 ok", "200 ok"));
  EXPECT_THAT(tokens_, ::testing::IsEmpty());
}

TEST_F(ScriptedTest, ACallOfAnEndpointOnAKeptConnectionThatEndsIsSentOnceMore) {
  EXPECT_THAT(Call({{kOk, ""}, {kOk}}, Local(), {"a", "b"}), ElementsAre("200 ok", "200 ok"));
}

TEST_F(ScriptedTest, WhatIsToBeSentOnceIsNotSentAgain) {
  once_ = true;
  EXPECT_THAT(Call({{kOk, ""}, {kOk}}, Local(), {"a", "b"}), ElementsAre("200 ok", "failed 1 EOF"));
}

TEST_F(ScriptedTest, EndpointsWithoutTlsAreCalledWithoutIt) {
  env::Endpoint plain = Local();
  plain.plain = true;
  EXPECT_THAT(Call({{kOk, kOk}}, plain, {"a", "b"}), ElementsAre("200 ok", "200 ok"));
  EXPECT_THAT(Call({{""}}, plain, {"a"}), ElementsAre("failed 1 EOF"));
  EXPECT_THAT(Call({{kOk, ""}, {kOk}}, plain, {"a", "b"}), ElementsAre("200 ok", "200 ok"));
  plain.port = 1;
  EXPECT_THAT(Call({}, plain, {"a"}),
              ElementsAre("failed 0 dial tcp 127.0.0.1:1: connect: connection refused"));
}

TEST_F(ScriptedTest, AnEndpointIsTrustedAsItSays) {
  env::Endpoint unknown = Local();
  unknown.authority_pem =
      MakePki("127.0.0.1", Instant::FromSeconds(1'800'000'000)).value().authority.certificate_pem;
  EXPECT_THAT(Call({{kOk}}, unknown, {"a"}),
              ElementsAre(::testing::HasSubstr("certificate signed by unknown authority")));
  unknown.insecure = true;
  EXPECT_THAT(Call({{kOk}}, unknown, {"a"}), ElementsAre("200 ok"));
  env::Endpoint other = Local();
  other.server_name = "other";
  EXPECT_THAT(Call({{kOk}}, other, {"a"}), ElementsAre(::testing::StartsWith("failed 0 tls")));
}

TEST_F(ScriptedTest, AnEndpointIsShownTheCertificateThatItNames) {
  clients_ = pki_.authority.certificate_pem;
  EXPECT_THAT(Call({{kOk}}, Local(), {"a"}), ElementsAre(::testing::StartsWith("failed ")));
  env::Endpoint known = Local();
  known.certificate_pem = pki_.admin.certificate_pem;
  known.key_pem = pki_.admin.key_pem;
  EXPECT_THAT(Call({{kOk}}, known, {"a"}), ElementsAre("200 ok"));
  known.key_pem = "nonsense";
  EXPECT_THAT(Call({}, known, {"a"}), ElementsAre(::testing::StartsWith("failed 0 private key")));
}

TEST_F(ScriptedTest, RedirectsOfEndpointsAreAnswersAsAny) {
  EXPECT_THAT(
      Call({{"HTTP/1.1 307 Go\r\nlocation: https://127.0.0.1:1/\r\ncontent-length: 0\r\n\r\n"}},
           Local(), {"a"}),
      ElementsAre("307 "));
}

TEST_F(ScriptedTest, WhatKeepsAnEndpointFromAnsweringIsSaidAsGoSaysIt) {
  EXPECT_THAT(Call({{""}}, Local(), {"a"}), ElementsAre("failed 1 EOF"));
  EXPECT_THAT(Call({{"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nshort<close>"}}, Local(), {"a"}),
              ElementsAre("failed 1 unexpected EOF"));
  EXPECT_THAT(
      Call({{"HTTP/1.1 200 OK\r\ncontent-length: 1073741824\r\n\r\n      "}}, Local(), {"a"}),
      ElementsAre("failed 1 the answer has more than 1000 bytes"));
  EXPECT_THAT(Call({{"SSH-2.0-what\r\n\r\n"}}, Local(), {"a"}),
              ElementsAre("failed 1 malformed HTTP response"));
  env::Endpoint nobody = Local();
  nobody.port = 1;
  EXPECT_THAT(Call({}, nobody, {"a"}),
              ElementsAre("failed 0 dial tcp 127.0.0.1:1: connect: connection refused"));
  env::Endpoint bad = Local();
  bad.authority_pem = "nonsense";
  EXPECT_THAT(Call({}, bad, {"a"}),
              ElementsAre(::testing::StartsWith("failed 0 certificate authority")));
}

// Goal: an endpoint fills no memory: what it may answer is bounded while it comes. Method: lengths
// that it announces and does not send, and bodies that grow, around its own limit and the client's;
// the server of the client may give a list that is larger than what endpoints may.
TEST_F(ScriptedTest, AnEndpointsAnswerIsBoundedWhileItComes) {
  const auto announced = [](uint64_t bytes) {
    return fmt::format("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n<close>", bytes);
  };
  constexpr uint64_t kMax = env::Endpoint::kAnswerBytesMax;
  body_bytes_max_ = ClientOptions{}.body_bytes_max;
  EXPECT_THAT(Call({{announced(kMax + 1)}}, Local(), {"a"}),
              ElementsAre(fmt::format("failed 1 the answer has more than {} bytes", kMax)));
  EXPECT_THAT(Call({{announced(kMax)}}, Local(), {"a"}), ElementsAre("failed 1 unexpected EOF"));
  EXPECT_THAT(Play({{announced(kMax + 1)}}, {"a"}), ElementsAre("failed 1"));
  EXPECT_THAT(why_, ElementsAre("unexpected EOF"));

  env::Endpoint small = Local();
  small.answer_bytes_max = 5;
  const auto until_the_end = [](const std::string& body) {
    return "HTTP/1.1 200 OK\r\n\r\n" + body + "<close>";
  };
  EXPECT_THAT(Call({{until_the_end("12345")}}, small, {"a"}), ElementsAre("200 12345"));
  EXPECT_THAT(Call({{until_the_end("123456")}}, small, {"a"}),
              ElementsAre("failed 1 the answer has more than 5 bytes"));
  body_bytes_max_ = 3;
  EXPECT_THAT(Call({{until_the_end("123")}}, small, {"a"}), ElementsAre("200 123"));
  EXPECT_THAT(Call({{until_the_end("1234")}}, small, {"a"}),
              ElementsAre("failed 1 the answer has more than 3 bytes"));
}

TEST_F(ScriptedTest, ACallThatGoesNowhereFails) {
  Asker asker;
  const auto client = HttpsClient::Make({}).value();
  client->Start(asker);
  std::vector<env::Output> batch;
  batch.emplace_back(env::SendRequest{.call = {1}, .request = {}});
  client->Take(std::move(batch));
  EXPECT_EQ(asker.Next(), "failed 0");
  EXPECT_EQ(asker.why, "no server");
}

}  // namespace
}  // namespace berth::net
