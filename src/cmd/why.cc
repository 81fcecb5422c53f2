// `berth why`: asks a scheduler at /debug/why and shows its answer.
#include <fmt/format.h>

#include <cstdio>

#include "cli/why_text.h"
#include "client/request.h"
#include "cmd/commands.h"
#include "cmd/connect.h"
#include "net/certificates.h"

namespace berth::cmd {
namespace {

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

// The pod as the API server of `endpoint` has it, when it has finished; empty otherwise.
std::string Finished(const Endpoint& endpoint, const std::string& namespace_name,
                     const std::string& pod) {
  env::HttpRequest request;
  request.target = fmt::format("/api/v1/namespaces/{}/pods/{}",
                               client::PercentEncode(namespace_name), client::PercentEncode(pod));
  const Result<env::HttpResponse> answer = Ask(endpoint, std::move(request), Duration::Seconds(30));
  return answer && answer->status == 200 ? cli::FinishedText(answer->body.view()) : "";
}

int Failed(const std::string& text) {
  fmt::print(stderr, "berth why: {}\n", text);
  return cli::kFailed;
}

}  // namespace

int Why(const cli::WhyOptions& options) {
  Result<Endpoint> endpoint = FindEndpoint(options.connect);
  if (!endpoint) return Failed(endpoint.error().message);
  std::string name =
      options.namespace_name.empty() ? endpoint->namespace_name : options.namespace_name;
  if (name.empty()) name = "default";
  const Endpoint api = *endpoint;
  if (!options.why_address.empty()) {
    const Status taken = TakeAddress(options.why_address, *endpoint);
    if (!taken) return Failed("--why-address " + taken.error().message);
  }
  if (!options.why_ca.empty()) {
    const Status taken = TakeAuthority(options.why_ca, *endpoint);
    if (!taken) return Failed("--why-ca " + taken.error().message);
  }
  env::HttpRequest request;
  request.target = "/debug/why?pod=" + client::PercentEncode(name + "/" + options.pod);
  const Result<env::HttpResponse> answer =
      Ask(*endpoint, std::move(request), Duration::Seconds(30));
  if (!answer) {
    const bool authority_may_lack = !options.why_address.empty() && options.why_ca.empty();
    return Failed(
        answer.error().message +
        (authority_may_lack
             ? "\n  without --why-ca the kubeconfig's authority must have signed it; for a "
               "`berth run` give the file of its --secure-ca"
             : ""));
  }
  if (options.json && answer->status == 200) {
    fmt::print("{}\n", answer->body.view());
    return cli::kOk;
  }
  if (!options.json && cli::SaysUnknownPod(answer->status, answer->body.view())) {
    const std::string finished = Finished(api, name, options.pod);
    if (!finished.empty()) {
      fmt::print("{}", finished);
      return cli::kOk;
    }
  }
  const Result<std::string> text = cli::WhyText(answer->status, answer->body.view());
  if (!text) return Failed(text.error().message);
  fmt::print("{}", *text);
  return cli::kOk;
}

}  // namespace berth::cmd
