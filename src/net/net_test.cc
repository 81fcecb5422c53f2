// Goal: requests and answers cross HTTPS unchanged, streams flow and end, and nothing a client does
// (leaving, dawdling, sending rubbish) harms the server or other clients; the client tells its
// failures apart exactly. Method: a real server and a real client on 127.0.0.1, an actor in between
// that obeys its target, and raw sockets for what no client would send.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <thread>

#include "base/prng.h"
#include "net/certificates.h"
#include "net/client.h"
#include "net/server.h"

namespace berth::net {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

Instant Now() {
  return Instant{
      std::chrono::nanoseconds(std::chrono::system_clock::now().time_since_epoch()).count()};
}

class Lines {
 public:
  void Add(std::string line) {
    const std::lock_guard lock(mutex_);
    lines_.push_back(std::move(line));
    changed_.notify_all();
  }
  std::vector<std::string> Wait(size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, std::chrono::seconds(20), [&] { return lines_.size() >= count; });
    return lines_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> lines_;
};

// The server's actor: answers by target.
struct Origin final : env::InputSink {
  void Post(std::vector<env::Input> batch) override {
    std::vector<env::Output> out;
    for (env::Input& input : batch) {
      if (auto* request = std::get_if<env::RequestArrived>(&input)) {
        Answer(*request, out);
      } else if (std::holds_alternative<env::ExchangeAbandoned>(input)) {
        lines.Add("abandoned");
      } else if (const auto* drained = std::get_if<env::StreamDrained>(&input)) {
        drained_bytes += drained->bytes;
      }
    }
    server->Take(std::move(out));
  }
  void Answer(env::RequestArrived& arrived, std::vector<env::Output>& out) {
    const std::string& target = arrived.request.target;
    const env::ExchangeId id = arrived.exchange;
    if (target.starts_with("/echo")) {
      out.emplace_back(env::Respond{id, {201, {{"x-seen", target}}, arrived.request.body}, false});
    } else if (target == "/who") {
      std::string who = arrived.peer.user;
      for (const std::string& group : arrived.peer.groups) who += "," + group;
      who += "|" +
             std::string(env::FindHeader(arrived.request.headers, "authorization").value_or("-"));
      out.emplace_back(env::Respond{id, {200, {}, Bytes(who)}, false});
    } else if (target.starts_with("/stream")) {
      out.emplace_back(env::Respond{id, {200, {}, Bytes("head ")}, true});
      for (int i = 0; i < 3; ++i) out.emplace_back(env::Frame{id, Bytes("frame ")});
      if (target != "/stream/open") out.emplace_back(env::EndStream{id, target == "/stream/cut"});
    } else if (target == "/flood") {
      out.emplace_back(env::Respond{id, {200, {}, Bytes()}, true});
      const Bytes frame(std::string(100'000, 'f'));
      for (int i = 0; i < 300; ++i) out.emplace_back(env::Frame{id, frame});
    } else if (target == "/large") {
      out.emplace_back(env::Respond{id, {200, {}, Bytes(std::string(8'000'000, 'x'))}, false});
    } else if (target == "/larger") {
      std::string body;
      body.resize(80'000'000, 'x');
      out.emplace_back(env::Respond{id, {200, {}, Bytes(std::move(body))}, false});
    } else if (target == "/gone") {
      out.emplace_back(env::Respond{id, {410, {}, Bytes("too old")}, false});
    }
    lines.Add(std::string(ToString(arrived.request.method)) + " " + target);
  }
  HttpsServer* server = nullptr;
  Lines lines;
  std::atomic<uint64_t> drained_bytes = 0;
};

struct Asker final : env::InputSink {
  void Post(std::vector<env::Input> batch) override {
    for (env::Input& input : batch) {
      if (const auto* response = std::get_if<env::Response>(&input)) {
        lines.Add(std::to_string(response->call.value) + ": " +
                  std::to_string(response->response.status) + " " +
                  std::string(response->response.body.view().substr(0, 200)));
      } else if (const auto* data = std::get_if<env::StreamData>(&input)) {
        streamed_bytes += data->data.size();
        const std::lock_guard lock(mutex);
        streamed[data->call.value] += data->data.view().substr(0, 100);
      } else if (const auto* end = std::get_if<env::StreamEnded>(&input)) {
        lines.Add(std::to_string(end->call.value) + " ended");
      } else if (const auto* failed = std::get_if<env::CallFailed>(&input)) {
        lines.Add(std::to_string(failed->call.value) + " failed " +
                  std::to_string(static_cast<int>(failed->failure)));
      }
    }
  }
  std::string Streamed(uint64_t call) {
    const std::lock_guard lock(mutex);
    return streamed[call];
  }
  Lines lines;
  std::mutex mutex;
  std::map<uint64_t, std::string> streamed;
  std::atomic<uint64_t> streamed_bytes = 0;
};

// A connection of TLS on a socket that is connected already.
class TlsSocket {
 public:
  explicit TlsSocket(int descriptor, int version_max = TLS1_3_VERSION)
      : descriptor_(descriptor),
        context_(SSL_CTX_new(TLS_client_method())),
        tls_(SSL_new(context_)) {
    SSL_set_max_proto_version(tls_, version_max);
    SSL_set_fd(tls_, descriptor_);
    EXPECT_EQ(SSL_connect(tls_), 1);
  }
  ~TlsSocket() {
    SSL_free(tls_);
    SSL_CTX_free(context_);
    close(descriptor_);
  }
  TlsSocket(const TlsSocket&) = delete;
  TlsSocket& operator=(const TlsSocket&) = delete;

  void Send(const std::string& bytes) {
    EXPECT_GT(SSL_write(tls_, bytes.data(), static_cast<int>(bytes.size())), 0);
  }
  void AskForNewKeys() { EXPECT_EQ(SSL_key_update(tls_, SSL_KEY_UPDATE_REQUESTED), 1); }
  // With the next read.
  void Renegotiate() { EXPECT_EQ(SSL_renegotiate(tls_), 1); }
  // The server has closed, with nothing left to read before.
  [[nodiscard]] bool Closed() const {
    char byte = 0;
    const ssize_t count = recv(descriptor_, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return count == 0 || (count < 0 && errno != EAGAIN);
  }
  void WaitUntilReadable() const {
    char byte = 0;
    EXPECT_EQ(recv(descriptor_, &byte, 1, MSG_PEEK), 1);
  }
  // How many bytes x come until the server closes, or that there are so many.
  size_t ReadAll(size_t enough = SIZE_MAX) {
    size_t sum = 0;
    char buffer[16 * 1024];
    for (int count = 0; sum < enough && (count = SSL_read(tls_, buffer, sizeof(buffer))) > 0;) {
      sum += static_cast<size_t>(std::count(buffer, buffer + count, 'x'));
    }
    return sum;
  }

 private:
  int descriptor_;
  SSL_CTX* context_;
  SSL* tls_;
};

class NetTest : public ::testing::Test {
 protected:
  void Serve(const std::function<void(ServerOptions&)>& change = {}) {
    Result<Pki> made = MakePki("127.0.0.1", Now());
    ASSERT_TRUE(made.has_value()) << made.error().message;
    pki = *made;
    ServerOptions options;
    options.identity = pki.server;
    options.client_authority_pem = pki.authority.certificate_pem;
    options.log = [this](env::LogLevel, std::string text) { log.Add(std::move(text)); };
    if (change) change(options);
    auto listening = HttpsServer::Listen(options);
    ASSERT_TRUE(listening.has_value()) << listening.error().message;
    server = std::move(*listening);
    origin.server = server.get();
    server->Start(origin);
  }
  void Connect(const std::function<void(ClientOptions&)>& change = {}) {
    ClientOptions options;
    options.host = "127.0.0.1";
    options.port = server ? server->port() : uint16_t{1};
    options.authority_pem = pki.authority.certificate_pem;
    if (change) change(options);
    auto made = HttpsClient::Make(options);
    ASSERT_TRUE(made.has_value()) << made.error().message;
    client = std::move(*made);
    client->Start(asker);
  }
  void Send(uint64_t call, std::string target, std::string body = "", bool stream = false,
            Duration timeout = Duration::Seconds(30)) {
    env::SendRequest send{.call = {call}, .request = {}, .stream = stream, .timeout = timeout};
    send.request.method = body.empty() ? env::Method::kGet : env::Method::kPost;
    send.request.target = std::move(target);
    send.request.body = Bytes(std::move(body));
    std::vector<env::Output> batch;
    batch.emplace_back(std::move(send));
    client->Take(std::move(batch));
  }
  // A socket that is connected to the server, of the caller.
  int Dial() {
    const int descriptor = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(server->port());
    inet_pton(AF_INET, "127.0.0.1", &address.sin_addr);
    EXPECT_EQ(connect(descriptor, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    return descriptor;
  }
  // Sends bytes on a bare socket and gives back what comes until the server closes.
  std::string Raw(const std::string& bytes) {
    const int descriptor = Dial();
    EXPECT_EQ(send(descriptor, bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
    std::string answer;
    char buffer[4096];
    for (ssize_t count = 0; (count = recv(descriptor, buffer, sizeof(buffer), 0)) > 0;) {
      answer.append(buffer, static_cast<size_t>(count));
    }
    close(descriptor);
    return answer;
  }
  // Sends bytes over TLS and gives back what comes until the server closes; "timeout" at the end
  // when it has not in 10 s.
  std::string RawTls(const std::string& bytes) {
    SSL_CTX* context = SSL_CTX_new(TLS_client_method());
    SSL* tls = SSL_new(context);
    const int descriptor = Dial();
    const timeval wait{.tv_sec = 10, .tv_usec = 0};
    setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait));
    SSL_set_fd(tls, descriptor);
    EXPECT_EQ(SSL_connect(tls), 1);
    if (!bytes.empty()) {
      EXPECT_GT(SSL_write(tls, bytes.data(), static_cast<int>(bytes.size())), 0);
    }
    std::string answer;
    char buffer[4096];
    errno = 0;
    for (int count = 0; (count = SSL_read(tls, buffer, sizeof(buffer))) > 0;) {
      answer.append(buffer, static_cast<size_t>(count));
    }
    if (errno == EAGAIN) answer += "timeout";
    told_end = SSL_get_shutdown(tls) == SSL_RECEIVED_SHUTDOWN;
    SSL_free(tls);
    SSL_CTX_free(context);
    close(descriptor);
    return answer;
  }
  ~NetTest() override {
    if (client) client->Stop();
    if (server) server->Stop();
  }

  Pki pki;
  bool told_end = false;  // The last RawTls() ended as TLS ends, not by the connection alone.
  Lines log;
  Origin origin;
  Asker asker;
  std::unique_ptr<HttpsServer> server;
  std::unique_ptr<HttpsClient> client;
};

TEST_F(NetTest, AnswersComeBackWholeAndConnectionsAreKept) {
  Serve();
  Connect([](ClientOptions& options) { options.connections_max = 2; });
  for (uint64_t i = 1; i <= 200; ++i) Send(i, "/echo", "body " + std::to_string(i));
  const std::vector<std::string> got = asker.lines.Wait(200);
  ASSERT_EQ(got.size(), 200U);
  for (const std::string& line : got) {
    const std::string call = line.substr(0, line.find(':'));
    EXPECT_EQ(line.substr(call.size()), ": 201 body " + call);
  }
  EXPECT_EQ(server->stats().accepted_count, 2U);
}

// All that were needed at once are kept for the next time as many are: a new one costs a handshake.
TEST_F(NetTest, NoConnectionIsClosedWhileItMayBeWantedAgain) {
  constexpr size_t kAtOnce = 48;
  Serve();
  Connect([](ClientOptions& options) { options.connections_max = kAtOnce; });
  for (size_t round = 0; round < 3; ++round) {
    for (size_t i = 1; i <= kAtOnce; ++i) Send(round * kAtOnce + i, "/echo", "body");
    ASSERT_EQ(asker.lines.Wait((round + 1) * kAtOnce).size(), (round + 1) * kAtOnce);
  }
  EXPECT_LE(server->stats().accepted_count, kAtOnce);
}

TEST_F(NetTest, StreamsAreDeliveredInOrderAndTheirEndsTold) {
  Serve();
  Connect();
  Send(1, "/stream", "", true);
  Send(2, "/stream/cut", "", true);
  Send(3, "/gone", "", true);
  Send(4, "/stream", "", false);
  const std::vector<std::string> got = asker.lines.Wait(6);
  EXPECT_THAT(got, ::testing::UnorderedElementsAre(
                       "1: 200 ", "1 ended", ::testing::AnyOf("2: 200 ", "2 failed 1"),
                       ::testing::_, "3: 410 too old", "4: 200 head frame frame frame "));
  EXPECT_EQ(asker.Streamed(1), "head frame frame frame ");
}

TEST_F(NetTest, ALeavingClientAbandonsItsStream) {
  Serve();
  Connect();
  Send(1, "/stream/open", "", true);
  asker.lines.Wait(1);
  std::vector<env::Output> cancel;
  cancel.emplace_back(env::CancelCall{{1}});
  client->Take(std::move(cancel));
  EXPECT_THAT(origin.lines.Wait(2), ElementsAre("GET /stream/open", "abandoned"));
  Send(2, "/echo");
  EXPECT_THAT(asker.lines.Wait(2), ElementsAre("1: 200 ", "2: 201 "));
}

TEST_F(NetTest, FramesAreReportedDrainedOnlyAsTheClientTakesThem) {
  Serve();
  Connect();
  Send(1, "/flood", "", true);
  for (int i = 0;
       i < 1000 && (origin.drained_bytes < 30'000'000 || asker.streamed_bytes < 30'000'000); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_EQ(origin.drained_bytes, 30'000'000U);
  EXPECT_EQ(asker.streamed_bytes, 30'000'000U);
}

TEST_F(NetTest, ASlowWatcherDelaysNobodyAndIsNotDrained) {
  Serve();
  // A watcher that never reads: enough of TLS to ask, then silence, is what `openssl s_client`
  // stopped would do.
  Connect();
  const std::string command =
      "(printf 'GET /flood HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n'; sleep 1) | openssl s_client -quiet "
      "-connect 127.0.0.1:" +
      std::to_string(server->port()) + " 2>/dev/null | sleep 1 >/dev/null";
  std::thread watcher([&] { EXPECT_GE(std::system(command.c_str()), 0); });
  origin.lines.Wait(1);
  for (uint64_t i = 1; i <= 50; ++i) Send(i, "/echo", "b");
  EXPECT_EQ(asker.lines.Wait(50).size(), 50U);
  EXPECT_LT(origin.drained_bytes, 30'000'000U);
  watcher.join();
}

// Method: clients that ask for a large answer and take none of it, then one that does. How much of
// theirs the kernel takes, and when, decides which of them is cut.
TEST_F(NetTest, AnswersThatNobodyTakesAreBoundedInSumAndWhoReadsIsServed) {
  constexpr size_t kAnswerBytes = 8'000'000;  // More than sockets hold.
  Serve([](ServerOptions& options) { options.unsent_bytes_max = 5 * kAnswerBytes / 2; });
  std::vector<std::unique_ptr<TlsSocket>> lazy;
  for (size_t i = 0; i < 5; ++i) {
    lazy.push_back(std::make_unique<TlsSocket>(Dial()));
    lazy.back()->Send("GET /large HTTP/1.1\r\nHost: x\r\n\r\n");
  }
  // What they asked, and that three were cut.
  EXPECT_EQ(origin.lines.Wait(8).size(), 8U);
  Connect();
  Send(1, "/large");
  const std::vector<std::string> got = asker.lines.Wait(1);
  ASSERT_EQ(got.size(), 1U);
  EXPECT_THAT(got[0], StartsWith("1: 200 xxx"));
  EXPECT_EQ(server->stats().slow_count, 4U);
  EXPECT_EQ(std::ranges::count_if(lazy,
                                  [](const std::unique_ptr<TlsSocket>& each) {
                                    return each->ReadAll(kAnswerBytes) == kAnswerBytes;
                                  }),
            1)
      << "the one that was not cut goes on";
  EXPECT_THAT(log.Wait(1), ElementsAre(HasSubstr("wait for their clients")));
}

// Method: one who has a tenth of what another has, and has it for somewhat longer, when a third one's is too much.
TEST_F(NetTest, WhoHoldsMuchIsCutBeforeWhoHoldsLittleALittleLonger) {
  Serve([](ServerOptions& options) { options.unsent_bytes_max = 100'000'000; });
  Connect();
  const auto begin = std::chrono::steady_clock::now();
  TlsSocket little(Dial());
  little.Send("GET /large HTTP/1.1\r\nHost: x\r\n\r\n");
  TlsSocket much(Dial());
  much.Send("GET /larger HTTP/1.1\r\nHost: x\r\n\r\n");
  little.WaitUntilReadable();
  much.WaitUntilReadable();
  size_t sent = 0;
  const auto echo = [&] {
    Send(++sent, "/echo", "b");
    EXPECT_EQ(asker.lines.Wait(sent).size(), sent);
  };
  for (int i = 0; i < 10; ++i) echo();
  const auto asked = std::chrono::steady_clock::now();
  while (std::chrono::steady_clock::now() - asked < asked - begin) echo();
  TlsSocket third(Dial());
  third.Send("GET /larger HTTP/1.1\r\nHost: x\r\n\r\n");
  third.WaitUntilReadable();
  EXPECT_EQ(little.ReadAll(8'000'000), 8'000'000U);
  EXPECT_LT(much.ReadAll(80'000'000), 80'000'000U);
  EXPECT_EQ(server->stats().slow_count, 1U);
}

// Before anybody has said who he is.
TEST_F(NetTest, RequestsThatAreNotWholeAreBoundedInSumAndWhoSendsIsServed) {
  constexpr size_t kBodyBytes = 1'000'000;
  Serve([](ServerOptions& options) { options.coming_bytes_max = 7 * kBodyBytes / 2; });
  const std::string half = "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 1000001\r\n\r\n" +
                           std::string(kBodyBytes, 'x');
  std::vector<std::unique_ptr<TlsSocket>> lazy;
  for (size_t i = 0; i < 6; ++i) {
    lazy.push_back(std::make_unique<TlsSocket>(Dial()));
    lazy.back()->Send(half);
  }
  EXPECT_THAT(log.Wait(1), ElementsAre(HasSubstr("are not whole")));
  // The last to send is served whoever waits.
  lazy.back()->Send("x");
  EXPECT_THAT(origin.lines.Wait(1), ElementsAre("POST /echo"));
  EXPECT_GE(server->stats().slow_count, 2U);
  Connect();
  Send(1, "/echo", "body");
  EXPECT_THAT(asker.lines.Wait(1), ElementsAre("1: 201 body"));
}

TEST_F(NetTest, ClientCertificatesTellWhoAsksAndForeignOnesDoNot) {
  Serve();
  Connect([this](ClientOptions& options) {
    options.identity = pki.admin;
    options.bearer_token = std::make_shared<BearerToken>("secret");
  });
  Send(1, "/who");
  EXPECT_THAT(asker.lines.Wait(1), ElementsAre("1: 200 berth-admin,system:masters|Bearer secret"));
  const Result<Pki> other = MakePki("127.0.0.1", Now());
  ASSERT_TRUE(other.has_value());
  client->Stop();
  Connect([&](ClientOptions& options) { options.identity = other->admin; });
  Send(2, "/who");
  EXPECT_THAT(asker.lines.Wait(2).back(), "2: 200 |-");
}

// As Go's listeners: 0.0.0.0 is all addresses, of both families.
TEST_F(NetTest, AllAddressesAreThoseOfBothFamilies) {
  uint64_t call = 0;
  for (const char* host : {"0.0.0.0", "::"}) {
    Serve([host](ServerOptions& options) { options.host = host; });
    for (const char* to : {"127.0.0.1", "::1"}) {
      const bool v6 = std::string_view(to) == "::1";
      const int probe = socket(v6 ? AF_INET6 : AF_INET, SOCK_STREAM, 0);
      sockaddr_in6 loopback{.sin6_family = AF_INET6, .sin6_addr = in6addr_loopback};
      const bool there =
          !v6 || (probe >= 0 &&
                  bind(probe, reinterpret_cast<const sockaddr*>(&loopback), sizeof(loopback)) == 0);
      if (probe >= 0) close(probe);
      if (!there) continue;  // This machine has no addresses of the family.
      Connect([to](ClientOptions& options) {
        options.host = to;
        options.server_name = "127.0.0.1";
      });
      Send(++call, "/echo", "x");
      EXPECT_EQ(asker.lines.Wait(call).back(), std::to_string(call) + ": 201 x")
          << host << " " << to;
      client->Stop();
    }
    server->Stop();
  }
}

TEST_F(NetTest, WhoseCertificatesCountCanBeLearntLater) {
  Serve([](ServerOptions& options) { options.client_authority_pem.clear(); });
  const auto as_admin = [this](ClientOptions& options) { options.identity = pki.admin; };
  Connect(as_admin);
  Send(1, "/who");
  EXPECT_THAT(asker.lines.Wait(1), ElementsAre("1: 200 |-"));
  EXPECT_FALSE(server->TrustClients("nonsense").has_value());
  ASSERT_TRUE(server->TrustClients(pki.authority.certificate_pem).has_value());
  // The connection that is there stays what it is.
  Send(2, "/who");
  EXPECT_THAT(asker.lines.Wait(2).back(), "2: 200 |-");
  client->Stop();
  Connect(as_admin);
  Send(3, "/who");
  EXPECT_THAT(asker.lines.Wait(3).back(), "3: 200 berth-admin,system:masters|-");
}

TEST_F(NetTest, AServerOfAnotherAuthorityOrNameIsNotTalkedTo) {
  Serve();
  const Result<Pki> other = MakePki("127.0.0.1", Now());
  ASSERT_TRUE(other.has_value());
  Connect(
      [&](ClientOptions& options) { options.authority_pem = other->authority.certificate_pem; });
  Send(1, "/echo");
  EXPECT_THAT(asker.lines.Wait(1), ElementsAre("1 failed 0"));
  client->Stop();
  Connect([&](ClientOptions& options) { options.server_name = "elsewhere.example"; });
  Send(2, "/echo");
  EXPECT_THAT(asker.lines.Wait(2).back(), "2 failed 0");
  client->Stop();
  Connect([&](ClientOptions& options) {
    options.server_name = "elsewhere.example";
    options.insecure = true;
  });
  Send(3, "/echo", "x");
  EXPECT_THAT(asker.lines.Wait(3).back(), "3: 201 x");
}

TEST_F(NetTest, FailuresAreToldApart) {
  Connect();  // Nobody listens.
  Send(1, "/echo", "x");
  EXPECT_THAT(asker.lines.Wait(1), ElementsAre("1 failed 0"));
  client->Stop();
  Serve();
  Connect([](ClientOptions& options) { options.connections_max = 1; });
  Send(2, "/silent", "x", false, Duration::Milliseconds(200));
  Send(3, "/echo", "x", false,
       Duration::Milliseconds(50));  // Never gets the one connection in time.
  EXPECT_THAT(asker.lines.Wait(3), ElementsAre("1 failed 0", "3 failed 0", "2 failed 2"));
  Send(4, "/silent", "x");
  origin.lines.Wait(3);
  server->Stop();
  EXPECT_THAT(asker.lines.Wait(4).back(), "4 failed 1");
}

TEST_F(NetTest, AServerThatClosedAnIdleConnectionCostsNoCall) {
  Serve([](ServerOptions& options) { options.idle_timeout = Duration::Milliseconds(1); });
  Connect();
  for (uint64_t i = 1; i <= 2; ++i) {
    Send(i, "/echo");
    EXPECT_THAT(asker.lines.Wait(i).back(), std::to_string(i) + ": 201 ");
    std::this_thread::sleep_for(std::chrono::milliseconds(600));
  }
}

TEST_F(NetTest, RandomBytesGetAnAnswerOrACloseAndTheServerLives) {
  Serve([](ServerOptions& options) { options.handshake_timeout = Duration::Milliseconds(100); });
  EXPECT_THAT(Raw("GET / HTTP/1.1\r\nHost: x\r\n\r\n"), StartsWith("HTTP/1.0 400 Bad Request"));
  Prng prng(3);
  for (int i = 0; i < 40; ++i) {
    std::string bytes(1 + prng.Below(400), '\0');
    for (char& byte : bytes) byte = static_cast<char>(prng.Below(256));
    if (i % 2 == 0) bytes[0] = 0x16;
    Raw(bytes);
  }
  Connect();
  Send(1, "/echo", "alive");
  EXPECT_THAT(asker.lines.Wait(1), ElementsAre("1: 201 alive"));
}

TEST_F(NetTest, BodiesAndHeadsOverTheirLimitsAreRefused) {
  Serve();
  Connect();
  Send(1, "/echo", std::string(3 * 1024 * 1024 + 1, 'x'));
  EXPECT_THAT(asker.lines.Wait(1).back(), HasSubstr("limit is 3145728"));
  Send(2, "/echo/" + std::string(70'000, 'p'));
  EXPECT_THAT(asker.lines.Wait(2).back(), StartsWith("2: 431 "));
  Send(3, "/echo", std::string(3 * 1024 * 1024, 'x'));
  EXPECT_THAT(asker.lines.Wait(3).back(), StartsWith("3: 201 xxx"));
}

TEST_F(NetTest, ConnectionsOverTheLimitAreClosed) {
  Serve([](ServerOptions& options) { options.connections_max = 1; });
  Connect();
  Send(1, "/stream/open", "", true);
  asker.lines.Wait(1);
  Send(2, "/echo");
  EXPECT_THAT(asker.lines.Wait(2).back(), "2 failed 0");
  EXPECT_EQ(server->stats().refused_count, 1U);
  // Told once, not per connection.
  Send(3, "/echo");
  EXPECT_THAT(asker.lines.Wait(3).back(), "3 failed 0");
  EXPECT_THAT(log.Wait(1), ElementsAre("all 1 connections are taken: 1 closed, silent ones first"));
}

TEST_F(NetTest, ASilentConnectionMakesRoomAtTheLimit) {
  Serve([](ServerOptions& options) {
    options.connections_max = 1;
    options.silence_at_limit = Duration::Milliseconds(50);
  });
  std::string came = "nothing";
  std::thread silent([&] { came = RawTls(""); });
  while (server->stats().accepted_count < 1) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  Connect();
  Send(1, "/echo", "x");
  EXPECT_THAT(asker.lines.Wait(1), ElementsAre("1: 201 x"));
  silent.join();
  EXPECT_EQ(came, "");
  EXPECT_EQ(server->stats().refused_count, 0U);
}

TEST_F(NetTest, WhoAsksNothingAfterTheHandshakeIsCutAsWhoAsksHalf) {
  Serve([](ServerOptions& options) {
    options.request_timeout = Duration::Milliseconds(200);
    options.idle_timeout = Duration::Seconds(600);
  });
  EXPECT_EQ(RawTls(""), "");
  EXPECT_EQ(RawTls("GET / HT"), "");
}

// The time runs from a request's first byte, however many follow one by one.
TEST_F(NetTest, ABodyThatDribblesIsCutInTime) {
  Serve([](ServerOptions& options) { options.request_timeout = Duration::Milliseconds(200); });
  TlsSocket dribbling(Dial());
  dribbling.Send("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n");
  size_t sent = 0;
  for (; sent < 1000 && !dribbling.Closed(); ++sent) {
    dribbling.Send("x");
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_LT(sent, 1000U) << "it was cut before it was whole";
}

TEST_F(NetTest, ABodyOfUnknownCodingIsNotTakenForTheNextRequest) {
  Serve();
  const std::string answer = RawTls(
      "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip\r\n\r\n"
      "GET /echo/hidden HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 400 Bad Request\r\n"));
  EXPECT_THAT(answer, HasSubstr("connection: close"));
  EXPECT_EQ(answer.find("HTTP/1.1", 1), std::string::npos) << answer;
  EXPECT_EQ(server->stats().requests_count, 0U);
}

// Without the word of TLS that it was all, an answer could have been cut by anybody on the way.
TEST_F(NetTest, AnAnswerThatEndsItsConnectionIsWholeByTls) {
  Serve();
  EXPECT_THAT(RawTls("GET /echo HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"),
              StartsWith("HTTP/1.1 201 Created\r\n"));
  EXPECT_TRUE(told_end);
  EXPECT_THAT(RawTls("no HTTP\r\n\r\n"), StartsWith("HTTP/1.1 400 Bad Request\r\n"));
  EXPECT_TRUE(told_end);
  EXPECT_THAT(RawTls("GET /stream HTTP/1.0\r\n\r\n"), HasSubstr("frame frame"));
  EXPECT_TRUE(told_end);
  RawTls("GET /stream/cut HTTP/1.0\r\n\r\n");
  EXPECT_FALSE(told_end);
}

// What comes in chunks, together; the head is before it.
std::string Unchunked(std::string_view answer) {
  std::string body;
  answer = answer.substr(answer.find("\r\n\r\n") + 4);
  for (;;) {
    const size_t line = answer.find("\r\n");
    const size_t size = std::stoul(std::string(answer.substr(0, line)), nullptr, 16);
    body += answer.substr(line + 2, size);
    if (size == 0) return body;
    answer = answer.substr(line + 2 + size + 2);
  }
}

TEST_F(NetTest, ALongAnswerGoesCompressedInParts) {
  Serve();
  const std::string ask = "GET /large HTTP/1.1\r\nHost: x\r\nAccept-Encoding: gzip\r\n";
  const std::string answer = RawTls(ask + "Connection: close\r\n\r\n");
  EXPECT_TRUE(told_end);
  EXPECT_THAT(answer, HasSubstr("content-encoding: gzip\r\n"));
  EXPECT_THAT(answer, HasSubstr("transfer-encoding: chunked\r\n"));
  std::string body = Unchunked(answer);
  EXPECT_LT(body.size(), 100'000U);
  std::string whole(8'000'001, ' ');
  z_stream stream{};
  ASSERT_EQ(inflateInit2(&stream, 15 + 16), Z_OK);
  stream.next_in = reinterpret_cast<Bytef*>(body.data());
  stream.avail_in = static_cast<uInt>(body.size());
  stream.next_out = reinterpret_cast<Bytef*>(whole.data());
  stream.avail_out = static_cast<uInt>(whole.size());
  EXPECT_EQ(inflate(&stream, Z_FINISH), Z_STREAM_END);
  EXPECT_EQ(stream.total_out, 8'000'000U);
  inflateEnd(&stream);
  // The next one on the connection is whole, and who knows no chunks gets it as it is.
  EXPECT_THAT(RawTls(ask + "\r\nGET /echo HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"),
              HasSubstr("0\r\n\r\nHTTP/1.1 201 Created"));
  const std::string old = RawTls("GET /large HTTP/1.0\r\nAccept-Encoding: gzip\r\n\r\n");
  EXPECT_THAT(old, HasSubstr("content-length: 8000000\r\n"));
}

// What waits for a client that takes it late comes in order, and other answers meanwhile.
TEST_F(NetTest, AnswersAndFramesTakenLateAreWhole) {
  Serve();
  TlsSocket late(Dial());
  late.Send(
      "GET /large HTTP/1.1\r\nHost: x\r\n\r\n"
      "GET /large HTTP/1.1\r\nHost: x\r\nConnection: close\r\n");
  late.WaitUntilReadable();
  late.AskForNewKeys();
  late.Send("\r\n");
  Connect();
  for (uint64_t i = 1; i <= 20; ++i) Send(i, "/echo", "b");
  EXPECT_EQ(asker.lines.Wait(20).size(), 20U);
  EXPECT_EQ(late.ReadAll(), 16'000'000U);
}

// TLS's own word to a client goes behind what waits for it: sent before, or not at all, it would
// make what follows no TLS.
TEST_F(NetTest, ARefusalToRenegotiateKeepsItsPlaceAmongWhatWaits) {
  Serve();
  TlsSocket late(Dial(), TLS1_2_VERSION);
  late.Send("GET /large HTTP/1.1\r\nHost: x\r\n\r\n");
  late.WaitUntilReadable();
  late.Renegotiate();
  ERR_clear_error();
  EXPECT_GT(late.ReadAll(), 0U);
  EXPECT_EQ(ERR_GET_REASON(ERR_peek_error()), SSL_R_NO_RENEGOTIATION);
}

}  // namespace
}  // namespace berth::net
