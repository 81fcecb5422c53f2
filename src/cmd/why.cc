// `berth why`: asks a scheduler at /debug/why and shows its answer.
#include <fmt/format.h>

#include <cstdio>

#include "cli/why_text.h"
#include "client/request.h"
#include "cmd/commands.h"
#include "cmd/connect.h"

namespace berth::cmd {
namespace {

Status TakeAddress(const std::string& text, Endpoint& endpoint) {
  const std::string url = text.starts_with("https://") ? text : "https://" + text;
  const Result<client::ServerConfig> server = client::ParseServerUrl(url);
  if (!server) return std::unexpected(server.error());
  if (endpoint.transport.server_name.empty() && server->host != endpoint.transport.host) {
    endpoint.transport.server_name = server->host;
  }
  endpoint.transport.host = server->host;
  endpoint.transport.port = server->port;
  endpoint.base_path.clear();
  endpoint.where = url;
  return {};
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
  if (!options.why_address.empty()) {
    const Status taken = TakeAddress(options.why_address, *endpoint);
    if (!taken) return Failed("--why-address " + taken.error().message);
  }
  env::HttpRequest request;
  request.target = "/debug/why?pod=" + client::PercentEncode(name + "/" + options.pod);
  const Result<env::HttpResponse> answer =
      Ask(*endpoint, std::move(request), Duration::Seconds(30));
  if (!answer) return Failed(answer.error().message);
  if (options.json && answer->status == 200) {
    fmt::print("{}\n", answer->body.view());
    return cli::kOk;
  }
  const Result<std::string> text = cli::WhyText(answer->status, answer->body.view());
  if (!text) return Failed(text.error().message);
  fmt::print("{}", *text);
  return cli::kOk;
}

}  // namespace berth::cmd
