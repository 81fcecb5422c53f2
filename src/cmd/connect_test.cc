// Goal: who can't reach an API server learns why: which file is not there, that nobody listens, or
// that the certificate is another's. Method: a server of this process, and ports without one.
#include "cmd/connect.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "net/certificates.h"
#include "net/server.h"
#include "testing/files.h"

namespace berth::cmd {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

Instant Now() {
  return Instant{
      std::chrono::nanoseconds(std::chrono::system_clock::now().time_since_epoch()).count()};
}

std::string Trouble(Endpoint endpoint) {
  endpoint.where = "there";
  endpoint.transport.host = "127.0.0.1";
  const Result<env::HttpResponse> answer =
      Ask(endpoint, {.target = "/version"}, Duration::Seconds(10));
  return answer ? "an answer" : answer.error().message;
}

struct Nobody final : env::InputSink {
  void Post(std::vector<env::Input>) override {}
};

TEST(Connect, NamesTheFileThatKubeconfigNames) {
  const berth::testing::TempFolder folder("connect");
  const std::string absent = (folder.path() / "absent").string();
  setenv("HOME", folder.path().c_str(), 1);
  setenv("KUBECONFIG", absent.c_str(), 1);
  const Result<Endpoint> named = FindEndpoint({});
  ASSERT_FALSE(named.has_value());
  EXPECT_EQ(named.error().message, "KUBECONFIG=" + absent + ": no such file");
  setenv("KUBECONFIG", "", 1);
  const Result<Endpoint> unset = FindEndpoint({});
  ASSERT_FALSE(unset.has_value());
  EXPECT_THAT(unset.error().message, HasSubstr("no kubeconfig: give --kubeconfig"));
}

TEST(Connect, TellsNobodyListensFromAnotherCertificate) {
  const Result<net::Pki> pki = net::MakePki("127.0.0.1", Now());
  const Result<net::Pki> other = net::MakePki("127.0.0.1", Now());
  ASSERT_TRUE(pki.has_value() && other.has_value());
  auto server = net::HttpsServer::Listen({.host = "127.0.0.1", .port = 0, .identity = pki->server});
  ASSERT_TRUE(server.has_value()) << server.error().message;
  Nobody nobody;
  (*server)->Start(nobody);
  Endpoint endpoint;
  endpoint.transport.port = (*server)->port();
  endpoint.transport.authority_pem = other->authority.certificate_pem;
  EXPECT_THAT(Trouble(endpoint), AllOf(HasSubstr("there: its certificate is not the expected one"),
                                       Not(HasSubstr("no certificate authority is given"))));
  endpoint.transport.authority_pem.clear();
  EXPECT_THAT(Trouble(endpoint), AllOf(HasSubstr("its certificate is not the expected one"),
                                       HasSubstr("no certificate authority is given")));
  endpoint.transport.authority_pem = pki->authority.certificate_pem;
  endpoint.transport.server_name = "elsewhere.example";
  EXPECT_THAT(Trouble(endpoint), HasSubstr("its certificate is not the expected one: "));
  (*server)->Stop();
  server->reset();
  EXPECT_EQ(Trouble(endpoint), "there: can't connect: Connection refused");
}

TEST(Connect, TellsAServerWithoutTls) {
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  ASSERT_EQ(bind(listener, reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(listen(listener, 1), 0);
  ASSERT_EQ(getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size), 0);
  std::thread plain([&] {
    const int peer = accept(listener, nullptr, nullptr);
    constexpr std::string_view kAnswer = "HTTP/1.1 400 Bad Request\r\n\r\n";
    char hello[1024];
    if (read(peer, hello, sizeof(hello)) > 0 && write(peer, kAnswer.data(), kAnswer.size()) < 0) {
      ADD_FAILURE() << "no answer";
    }
    close(peer);
  });
  Endpoint endpoint;
  endpoint.transport.port = ntohs(address.sin_port);
  EXPECT_THAT(Trouble(endpoint), HasSubstr("there: no TLS: "));
  plain.join();
  close(listener);
}

}  // namespace
}  // namespace berth::cmd
