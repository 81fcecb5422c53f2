#include "cmd/connect.h"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <optional>

#include "base/mutex.h"
#include "net/certificates.h"

namespace berth::cmd {
namespace {

std::string Environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

Result<std::string> Read(const client::Source& source) {
  if (!source.file.empty()) return net::ReadFile(source.file);
  return source.data;
}

Result<client::ServerConfig> FindServer(const cli::ConnectOptions& options) {
  std::string path = options.kubeconfig;
  if (path.empty()) {
    // A list of files to merge is more than berth does: the first that exists counts.
    const std::string names = Environment("KUBECONFIG");
    std::string list = names;
    while (!list.empty() && path.empty()) {
      const size_t colon = list.find(':');
      const std::string each = list.substr(0, colon);
      list = colon == std::string::npos ? "" : list.substr(colon + 1);
      if (std::filesystem::exists(each)) path = each;
    }
    if (path.empty() && !names.empty()) {
      return Fail(ErrorCode::kNotFound, fmt::format("KUBECONFIG={}: no such file", names));
    }
  }
  const std::string home = Environment("HOME");
  if (path.empty() && !home.empty() && std::filesystem::exists(home + "/.kube/config"))
    path = home + "/.kube/config";
  if (!path.empty()) {
    const Result<std::string> text = net::ReadFile(path);
    if (!text) return std::unexpected(text.error());
    return client::ParseKubeconfig(*text, {.path = path, .context = options.context});
  }
  const std::string host = Environment("KUBERNETES_SERVICE_HOST");
  if (host.empty()) {
    return Fail(ErrorCode::kNotFound, "no kubeconfig: give --kubeconfig, or set KUBECONFIG");
  }
  return client::InCluster(host, Environment("KUBERNETES_SERVICE_PORT"));
}

// Waits for one answer.
class Waiter final : public env::InputSink {
 public:
  void Post(std::vector<env::Input> batch) override {
    const MutexLock lock(mutex_);
    for (env::Input& input : batch) {
      if (auto* response = std::get_if<env::Response>(&input))
        response_ = std::move(response->response);
      if (const auto* failed = std::get_if<env::CallFailed>(&input)) failure_ = failed->failure;
    }
    changed_.NotifyAll();
  }
  // `client` is asked for what kept a connection from coming about.
  Result<env::HttpResponse> Wait(const std::string& where, const net::HttpsClient& client) {
    const MutexLock lock(mutex_);
    while (!response_ && !failure_) changed_.Wait(mutex_);
    if (response_) return std::move(*response_);
    switch (*failure_) {
      case env::CallFailure::kNotSent:
        return Fail(ErrorCode::kUnavailable, fmt::format("{}: {}", where, client.trouble()));
      case env::CallFailure::kLost:
        return Fail(ErrorCode::kUnknown, where + ": the connection broke");
      case env::CallFailure::kTimeout:
        return Fail(ErrorCode::kUnknown, where + ": no answer in time");
    }
    return Fail(ErrorCode::kUnknown, where);
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  std::optional<env::HttpResponse> response_ GUARDED_BY(mutex_);
  std::optional<env::CallFailure> failure_ GUARDED_BY(mutex_);
};

// The kubeconfig's authority vouches for the API server, not for who else listens: --why-ca does.
Status TakeAuthority(const std::string& path, Endpoint& endpoint) {
  Result<std::string> text = net::ReadFile(path);
  if (!text || !text->contains("BEGIN CERTIFICATE")) {
    return Fail(ErrorCode::kInvalid, path + ": can't be read as certificates in PEM");
  }
  endpoint.transport.authority_pem = std::move(*text);
  endpoint.transport.insecure = false;
  return {};
}

Status TakeAddress(const std::string& text, Endpoint& endpoint) {
  const std::string url = text.starts_with("https://") ? text : "https://" + text;
  const Result<client::ServerConfig> server = client::ParseServerUrl(url);
  if (!server) return std::unexpected(server.error());
  endpoint.transport.server_name = server->host;
  endpoint.transport.host = server->host;
  endpoint.transport.port = server->port;
  endpoint.base_path.clear();
  endpoint.where = url;
  return {};
}

}  // namespace

Result<Endpoint> FindEndpoint(const cli::ConnectOptions& options) {
  const Result<client::ServerConfig> server = FindServer(options);
  if (!server) return std::unexpected(server.error());
  const std::string where = fmt::format("{}://{}:{}", server->scheme, server->host, server->port);
  if (server->scheme != "https") {
    return Fail(ErrorCode::kRefused, fmt::format("{}: only https is spoken", where));
  }
  Endpoint endpoint{.transport = {},
                    .base_path = server->base_path,
                    .namespace_name = server->namespace_name,
                    .where = where};
  net::ClientOptions& transport = endpoint.transport;
  transport.host = server->host;
  transport.port = server->port;
  transport.insecure = server->insecure_skip_tls_verify;
  transport.server_name = server->tls_server_name;
  transport.http2 = Environment("DISABLE_HTTP2").empty();  // As client-go has it.
  const std::pair<const client::Source*, std::string*> wanted[] = {
      {&server->certificate_authority, &transport.authority_pem},
      {&server->client_certificate, &transport.identity.certificate_pem},
      {&server->client_key, &transport.identity.key_pem}};
  for (const auto& [source, text] : wanted) {
    Result<std::string> read = Read(*source);
    if (!read) return std::unexpected(read.error());
    *text = std::move(*read);
  }
  if (!server->token.file.empty()) {
    Result<std::shared_ptr<net::BearerToken>> token =
        net::BearerToken::FromFile(server->token.file);
    if (!token) return std::unexpected(token.error());
    transport.bearer_token = std::move(*token);
  } else if (!server->token.data.empty()) {
    transport.bearer_token = std::make_shared<net::BearerToken>(server->token.data);
  }
  return endpoint;
}

Result<Endpoint> SchedulerAt(const Endpoint& api, const cli::SchedulerAddress& address) {
  Endpoint endpoint = api;
  if (!address.where.empty()) {
    const Status taken = TakeAddress(address.where, endpoint);
    if (!taken) return Fail(taken.error().code, "--why-address " + taken.error().message);
  }
  if (!address.authority.empty()) {
    const Status taken = TakeAuthority(address.authority, endpoint);
    if (!taken) return Fail(taken.error().code, "--why-ca " + taken.error().message);
  }
  return endpoint;
}

Result<env::HttpResponse> AskScheduler(const Endpoint& scheduler,
                                       const cli::SchedulerAddress& address,
                                       env::HttpRequest request) {
  Result<env::HttpResponse> answer = Ask(scheduler, std::move(request), Duration::Seconds(30));
  if (answer || address.where.empty() || !address.authority.empty()) return answer;
  return Fail(answer.error().code,
              answer.error().message +
                  "\n  without --why-ca the kubeconfig's authority must have signed it; for a "
                  "`berth run` give the file of its --secure-ca");
}

Result<env::HttpResponse> Ask(const Endpoint& endpoint, env::HttpRequest request,
                              Duration timeout) {
  net::ClientOptions transport = endpoint.transport;
  transport.path_prefix = endpoint.base_path;
  auto client = net::HttpsClient::Make(std::move(transport));
  if (!client) {
    return Fail(client.error().code, fmt::format("credentials of the kubeconfig for {}: {}",
                                                 endpoint.where, client.error().message));
  }
  Waiter waiter;
  (*client)->Start(waiter);
  std::vector<env::Output> batch;
  batch.emplace_back(env::SendRequest{
      .call = {1}, .request = std::move(request), .stream = false, .timeout = timeout});
  (*client)->Take(std::move(batch));
  Result<env::HttpResponse> answer = waiter.Wait(endpoint.where, **client);
  (*client)->Stop();
  return answer;
}

}  // namespace berth::cmd
