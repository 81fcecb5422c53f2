// Goal: kubeconfigs of real clusters are understood, and what is wrong or unsupported in one is
// named by file and field. Method: tables of documents (JSON is YAML) and the error each gives.
#include "client/kubeconfig.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "codec/json.h"

namespace berth::client {
namespace {

Result<ServerConfig> Read(std::string_view text, std::string context = {}) {
  const auto document = codec::ParseJson(text);
  if (!document) return std::unexpected(document.error());
  return ReadKubeconfig(*document, {.path = "/home/u/.kube/config", .context = std::move(context)});
}

std::string WithUser(std::string_view user, std::string_view cluster_extra = "") {
  return fmt::format(
      R"({{"current-context":"c","contexts":[{{"name":"c","context":{{"cluster":"k","user":"u","namespace":"team"}}}}],)"
      R"("clusters":[{{"name":"k","cluster":{{"server":"https://10.0.0.1:6443/k8s/"{}}}}}],"users":[{{"name":"u","user":{}}}]}})",
      cluster_extra, user);
}

TEST(Kubeconfig, ReadsATokenAndInlineCertificates) {
  const auto config = Read(WithUser(
      R"({"token":"t0ken"})",
      R"(,"certificate-authority-data":"LS0tLS1CRUdJTg==","tls-server-name":"kubernetes")"));
  ASSERT_TRUE(config.has_value()) << config.error().message;
  EXPECT_EQ(config->scheme, "https");
  EXPECT_EQ(config->host, "10.0.0.1");
  EXPECT_EQ(config->port, 6443);
  EXPECT_EQ(config->base_path, "/k8s");
  EXPECT_EQ(config->tls_server_name, "kubernetes");
  EXPECT_EQ(config->certificate_authority.data, "-----BEGIN");
  EXPECT_EQ(config->token.data, "t0ken");
  EXPECT_EQ(config->namespace_name, "team");
  EXPECT_EQ(config->context, "c");
}

TEST(Kubeconfig, FilesAreRelativeToTheKubeconfig) {
  const auto config = Read(WithUser(
      R"({"client-certificate":"pki/a.crt","client-key":"/abs/a.key","token":"x","tokenFile":"tok"})",
      R"(,"certificate-authority":"../ca.crt")"));
  ASSERT_TRUE(config.has_value()) << config.error().message;
  EXPECT_EQ(config->client_certificate.file, "/home/u/.kube/pki/a.crt");
  EXPECT_EQ(config->client_key.file, "/abs/a.key");
  EXPECT_EQ(config->certificate_authority.file, "/home/u/.kube/../ca.crt");
  EXPECT_EQ(config->token.file, "/home/u/.kube/tok");
  EXPECT_EQ(config->token.data, "");
}

TEST(Kubeconfig, NamesWhatIsWrong) {
  struct Row {
    std::string text;
    std::string error;
  };
  const std::string f = "/home/u/.kube/config: ";
  const std::vector<Row> rows = {
      {"[]", f + "is not a kubeconfig: no mapping"},
      {"{}", f + "current-context: is not set"},
      {R"({"current-context":5})", "/home/u/.kube/config.current-context: must be a string"},
      {R"({"current-context":"x"})", f + "context \"x\" does not exist"},
      {R"({"current-context":"x","contexts":{}})", f + "contexts: must be a list"},
      {R"({"current-context":"x","contexts":[7]})", f + "contexts[0]: must be a mapping"},
      {R"({"current-context":"x","contexts":[{"name":"x"}]})",
       f + "contexts[0].context: is missing"},
      {R"({"current-context":"x","contexts":[{"name":"x","context":{"cluster":"k"}}]})",
       f + "cluster \"k\" does not exist"},
      {R"({"current-context":"x","contexts":[{"name":"x","context":{"cluster":"k"}}],)"
       R"("clusters":[{"name":"k","cluster":{}}]})",
       f + "clusters[0].cluster.server: is missing"},
      {WithUser(R"({"exec":{"command":"aws"}})"),
       f + "users[0].user.exec: exec credential plugins are not supported; use a token or a client "
           "certificate"},
      {WithUser(R"({"auth-provider":{"name":"gcp"}})"),
       f + "users[0].user.auth-provider: auth-provider plugins are not supported; use a token or a "
           "client certificate"},
      {WithUser(R"({"username":"me"})"),
       f + "users[0].user.username: basic authentication is not supported; use a token or a client "
           "certificate"},
      {WithUser(R"({"as":"me"})"), f + "users[0].user.as: impersonation is not supported"},
      {WithUser(R"({"client-certificate":"a"})"),
       f + "users[0].user: client-key is missing: a client certificate needs its key and a key its "
           "certificate"},
      {WithUser(R"({"client-key-data":"%%%"})"),
       f + "users[0].user.client-key-data: is not base64"},
      {WithUser(R"({"token":"a\nb"})"), f + "users[0].user.token: must be one line"},
      {WithUser(R"({"token":[]})"), f + "users[0].user.token: must be a string"},
      {WithUser("{}", R"(,"proxy-url":"socks5://x")"),
       f + "clusters[0].cluster.proxy-url: proxies are not supported"},
      {WithUser("{}", R"(,"insecure-skip-tls-verify":"yes")"),
       f + "clusters[0].cluster.insecure-skip-tls-verify: must be true or false"},
      {WithUser("{}", R"(,"insecure-skip-tls-verify":true,"certificate-authority":"ca")"),
       f + "clusters[0].cluster: specifying a root certificates file with the insecure flag is not "
           "allowed"},
  };
  for (const Row& row : rows) {
    const auto config = Read(row.text);
    ASSERT_FALSE(config.has_value()) << row.text;
    EXPECT_EQ(config.error().message, row.error);
  }
}

TEST(Kubeconfig, AnotherContextCanBeAskedFor) {
  EXPECT_EQ(Read(WithUser("{}"), "d").error().message,
            "/home/u/.kube/config: context \"d\" does not exist");
  EXPECT_TRUE(Read(WithUser("{}"), "c").has_value());
}

TEST(Kubeconfig, ServerUrls) {
  struct Row {
    std::string url;
    std::string host;
    int port;
    std::string path;
  };
  for (const Row& row : std::vector<Row>{{"https://a", "a", 443, ""},
                                         {"http://a/", "a", 80, ""},
                                         {"https://[::1]:7443/x/", "::1", 7443, "/x"},
                                         {"https://[fe80::1]", "fe80::1", 443, ""},
                                         {"a:8080", "a", 8080, ""}}) {
    const auto config = ParseServerUrl(row.url);
    ASSERT_TRUE(config.has_value()) << row.url;
    EXPECT_EQ(config->host, row.host);
    EXPECT_EQ(config->port, row.port);
    EXPECT_EQ(config->base_path, row.path);
  }
  for (const std::string_view url :
       {"", "ftp://a", "https://", "https://a:0", "https://a:70000", "https://a:", "https://a:b",
        "https://u:p@a", "https://a?x", "https://[::1", "https://[::1]x", "https://a b",
        "https://a\r\nx"}) {
    EXPECT_FALSE(ParseServerUrl(url).has_value()) << url;
  }
}

TEST(Kubeconfig, InsideAPod) {
  const auto config = InCluster("fd00::1", "443");
  ASSERT_TRUE(config.has_value());
  EXPECT_EQ(config->host, "fd00::1");
  EXPECT_EQ(config->token.file, "/var/run/secrets/kubernetes.io/serviceaccount/token");
  EXPECT_EQ(
      InCluster("", "443").error().message,
      "in-cluster configuration: KUBERNETES_SERVICE_HOST is not set: this is no pod of a cluster");
  EXPECT_FALSE(InCluster("a", "x").has_value());
}

}  // namespace
}  // namespace berth::client
