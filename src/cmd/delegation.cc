#include "cmd/delegation.h"

#include <fmt/format.h>

#include <utility>
#include <variant>

#include "cmd/pem.h"
#include "codec/json.h"
#include "control/access_gate.h"
#include "env/os/entropy.h"
#include "env/recorded_actor.h"

namespace berth::cmd {
namespace {

constexpr std::string_view kConfigMap =
    "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication";
constexpr Duration kLookUpTimeout = Duration::Seconds(5);
// A review is small: more of an answer is not read.
constexpr uint64_t kReviewBytesMax = 1024 * 1024;
constexpr int kConnectionsMax = 4;

// What the kubeconfig of the flag says; an empty path: what the scheduler has.
Result<Endpoint> EndpointOf(const char* flag, const std::string& path, const Endpoint& scheduler) {
  if (path.empty()) return scheduler;
  Result<Endpoint> endpoint = FindEndpoint({.kubeconfig = path, .context = {}});
  if (!endpoint)
    return Fail(endpoint.error().code, fmt::format("{}: {}", flag, endpoint.error().message));
  return endpoint;
}

Result<Endpoint> Authentication(const cli::SchedulerFlags& flags, const Endpoint& scheduler) {
  return EndpointOf("--authentication-kubeconfig", flags.authentication_kubeconfig, scheduler);
}

Result<std::unique_ptr<net::HttpsClient>> ConnectionsTo(const Endpoint& endpoint) {
  net::ClientOptions transport = endpoint.transport;
  transport.connections_max = kConnectionsMax;
  transport.body_bytes_max = kReviewBytesMax;
  return net::HttpsClient::Make(std::move(transport));
}

client::Options ClientOptions(const Endpoint& endpoint) {
  client::Options options;
  options.user_agent = "berth-scheduler/access";
  options.base_path = endpoint.base_path;
  options.seed = env::os::Seed();
  return options;
}

Result<std::string> LookUp(const Endpoint& endpoint) {
  const Result<env::HttpResponse> answer = Ask(endpoint,
                                               {.method = env::Method::kGet,
                                                .target = std::string(kConfigMap),
                                                .headers = {{"accept", "application/json"}},
                                                .body = {}},
                                               kLookUpTimeout);
  if (!answer) return std::unexpected(answer.error());
  if (answer->status != 200) {
    const std::string told = client::StatusOf(*answer).message;
    return Fail(ErrorCode::kUnavailable,
                told.empty() ? fmt::format("the API server answers {}", answer->status) : told);
  }
  return ReadClientAuthority(answer->body.view());
}

}  // namespace

Result<std::string> ReadClientAuthority(std::string_view config_map) {
  const Result<api::Json> json = codec::ParseJson(config_map);
  if (!json) return std::unexpected(json.error());
  const api::Json* data = json->is_object() ? json->as_object().if_contains("data") : nullptr;
  const api::Json* file = data != nullptr && data->is_object()
                              ? data->as_object().if_contains("client-ca-file")
                              : nullptr;
  if (file == nullptr || !file->is_string() || file->as_string().empty())
    return Fail(ErrorCode::kNotFound, "it has no client-ca-file");
  return std::string(file->as_string());
}

Result<ClientAuthority> FindClientAuthority(const cli::SchedulerFlags& flags,
                                            const Endpoint& scheduler) {
  if (!flags.client_ca_file.empty()) {
    Result<std::string> text = ReadPem("--client-ca-file", flags.client_ca_file);
    if (!text) return std::unexpected(text.error());
    return ClientAuthority{.pem = *std::move(text), .trouble = {}};
  }
  if (flags.skip_lookup) return ClientAuthority{};
  const Result<Endpoint> endpoint = Authentication(flags, scheduler);
  if (!endpoint) return std::unexpected(endpoint.error());
  Result<std::string> found = LookUp(*endpoint);
  if (found) return ClientAuthority{.pem = *std::move(found), .trouble = {}};
  if (flags.tolerate_lookup_failure) {
    return ClientAuthority{
        .pem = {},
        .trouble = fmt::format("ConfigMap kube-system/extension-apiserver-authentication: {}: no "
                               "certificates of clients count until it can be read, but tokens",
                               found.error().message)};
  }
  return Fail(found.error().code,
              fmt::format("ConfigMap kube-system/extension-apiserver-authentication: {}; give "
                          "--client-ca-file, --authentication-skip-lookup or "
                          "--authentication-tolerate-lookup-failure",
                          found.error().message));
}

void CallSplitter::Take(std::vector<env::Output> batch) {
  std::vector<env::Output> inside;
  std::vector<env::Output> outside;
  for (env::Output& output : batch) {
    uint64_t call = 0;
    if (const auto* send = std::get_if<env::SendRequest>(&output)) call = send->call.value;
    if (const auto* cancel = std::get_if<env::CancelCall>(&output)) call = cancel->call.value;
    call %= env::kCallsOfALife;
    (range_.first <= call && call < range_.end ? inside : outside).push_back(std::move(output));
  }
  if (!outside.empty()) outside_.Take(std::move(outside));
  if (!inside.empty()) inside_.Take(std::move(inside));
}

Result<std::unique_ptr<Delegation>> Delegation::Make(const cli::SchedulerFlags& flags,
                                                     const Endpoint& scheduler) {
  const Result<Endpoint> authentication = Authentication(flags, scheduler);
  if (!authentication) return std::unexpected(authentication.error());
  const Result<Endpoint> authorization =
      EndpointOf("--authorization-kubeconfig", flags.authorization_kubeconfig, scheduler);
  if (!authorization) return std::unexpected(authorization.error());
  std::unique_ptr<Delegation> out(new Delegation());  // NOLINT: its constructor is private.
  Result<std::unique_ptr<net::HttpsClient>> connections = ConnectionsTo(*authentication);
  if (!connections) return std::unexpected(connections.error());
  out->authentication_ = *std::move(connections);
  if (flags.authentication_kubeconfig != flags.authorization_kubeconfig) {
    connections = ConnectionsTo(*authorization);
    if (!connections) return std::unexpected(connections.error());
    out->authorization_ = *std::move(connections);
  }
  out->splitter_ = std::make_unique<CallSplitter>(
      CallSplitter::Range{.first = control::kAuthorizationFirstCall},
      out->authorization_ ? *out->authorization_ : *out->authentication_, *out->authentication_);
  out->gate_ = std::make_unique<control::AccessGate>(
      control::AccessGateOptions{.authentication = ClientOptions(*authentication),
                                 .authorization = ClientOptions(*authorization),
                                 .token_holds = flags.token_holds,
                                 .allowed_holds = flags.allowed_holds,
                                 .refused_holds = flags.refused_holds});
  return out;
}

void Delegation::Join(env::os::Executor& executor) {
  const env::os::ActorId actor = executor.Add("access", {}, std::move(gate_));
  executor.Connect(actor, *splitter_);
  inbox_ = &executor.inbox(actor);
}

void Delegation::Start() {
  authentication_->Start(*inbox_);
  if (authorization_) authorization_->Start(*inbox_);
}

void Delegation::Stop() {
  authentication_->Stop();
  if (authorization_) authorization_->Stop();
}

}  // namespace berth::cmd
