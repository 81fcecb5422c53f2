// `berth why`: asks a scheduler at /debug/why and shows its answer.
#include <fmt/format.h>

#include <cstdio>
#include <string>
#include <utility>

#include "cli/why_text.h"
#include "cli/workload_text.h"
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

// What the API server of `endpoint` answers with 200; empty otherwise.
std::string Read(const Endpoint& endpoint, std::string target) {
  env::HttpRequest request;
  request.target = std::move(target);
  const Result<env::HttpResponse> answer = Ask(endpoint, std::move(request), Duration::Seconds(30));
  return answer && answer->status == 200 ? std::string(answer->body.view()) : "";
}

// Of a name that is not a pod's, but of what makes pods: what it is, and its pods.
std::string Owner(const Endpoint& endpoint, const std::string& namespace_name,
                  const std::string& name) {
  constexpr std::pair<const char*, const char*> kOwners[] = {
      {"Deployment", "/apis/apps/v1/namespaces/{}/deployments/{}"},
      {"ReplicaSet", "/apis/apps/v1/namespaces/{}/replicasets/{}"},
      {"Job", "/apis/batch/v1/namespaces/{}/jobs/{}"}};
  const std::string space = client::PercentEncode(namespace_name);
  for (const auto& [kind, path] : kOwners) {
    const std::string owner =
        Read(endpoint, fmt::format(fmt::runtime(path), space, client::PercentEncode(name)));
    if (owner.empty()) continue;
    const std::string selector = cli::SelectorOf(owner);
    return cli::OwnerText(
        kind, name,
        selector.empty() ? ""
                         : Read(endpoint, fmt::format("/api/v1/namespaces/{}/pods?limit=5&"
                                                      "labelSelector={}",
                                                      space, client::PercentEncode(selector))));
  }
  return "";
}

// The Workload of a Job; empty when there is none.
std::string WorkloadOf(const Endpoint& endpoint, const std::string& namespace_name,
                       const std::string& job) {
  const std::string space = client::PercentEncode(namespace_name);
  const std::string uid =
      cli::UidOf(Read(endpoint, fmt::format("/apis/batch/v1/namespaces/{}/jobs/{}", space,
                                            client::PercentEncode(job))));
  if (uid.empty()) return "";
  return cli::FirstNameOf(
      Read(endpoint, fmt::format("/apis/kueue.x-k8s.io/v1beta2/namespaces/{}/workloads?limit=1&"
                                 "labelSelector={}",
                                 space, client::PercentEncode("kueue.x-k8s.io/job-uid=" + uid))));
}

// Of a Workload that the scheduler does not know: what its object says of that; else empty.
std::string RefusedWorkload(const Endpoint& endpoint, const std::string& namespace_name,
                            const std::string& name) {
  return cli::RefusedWorkloadText(Read(
      endpoint, fmt::format("/apis/kueue.x-k8s.io/v1beta2/namespaces/{}/workloads/{}",
                            client::PercentEncode(namespace_name), client::PercentEncode(name))));
}

// Of what /debug/why is asked.
const char* ParameterOf(cli::WhyOptions::Kind kind) {
  switch (kind) {
    case cli::WhyOptions::Kind::kPod:
      return "pod";
    case cli::WhyOptions::Kind::kGroup:
      return "podgroup";
    case cli::WhyOptions::Kind::kWorkload:
    case cli::WhyOptions::Kind::kJob:
      break;
  }
  return "workload";
}

Result<std::string> TextOf(cli::WhyOptions::Kind kind, const env::HttpResponse& answer) {
  return kind == cli::WhyOptions::Kind::kGroup
             ? cli::WhyGroupText(answer.status, answer.body.view())
             : cli::WhyWorkloadText(answer.status, answer.body.view());
}

int Failed(const std::string& text) {
  fmt::print(stderr, "berth why: {}\n", text);
  return cli::kFailed;
}

int Print(const Result<std::string>& text) {
  if (!text) return Failed(text.error().message);
  fmt::print("{}", *text);
  return cli::kOk;
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
  std::string object = options.name;
  if (options.kind == cli::WhyOptions::Kind::kJob) {
    object = WorkloadOf(api, name, options.name);
    if (object.empty()) {
      const std::string owner = Owner(api, name, options.name);
      return Failed(
          fmt::format("no Workload is there for Job {} of namespace {}: it has no queue name, does "
                      "not exist, or its events say why none could be made{}",
                      options.name, name, owner));
    }
  }
  env::HttpRequest request;
  request.target = fmt::format("/debug/why?{}={}", ParameterOf(options.kind),
                               client::PercentEncode(name + "/" + object));
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
  const bool of_workload = options.kind == cli::WhyOptions::Kind::kWorkload ||
                           options.kind == cli::WhyOptions::Kind::kJob;
  if (of_workload && answer->status == 404) {
    const std::string refused = RefusedWorkload(api, name, object);
    if (!refused.empty()) {
      fmt::print("{}", refused);
      return cli::kOk;
    }
  }
  if (options.kind != cli::WhyOptions::Kind::kPod) return Print(TextOf(options.kind, *answer));
  std::string owner;
  if (!options.json && cli::SaysUnknownPod(answer->status, answer->body.view())) {
    const std::string pod =
        Read(api, fmt::format("/api/v1/namespaces/{}/pods/{}", client::PercentEncode(name),
                              client::PercentEncode(options.name)));
    const std::string finished = cli::FinishedText(pod);
    if (!finished.empty()) {
      fmt::print("{}", finished);
      return cli::kOk;
    }
    if (pod.empty()) owner = Owner(api, name, options.name);
  }
  const Result<std::string> text = cli::WhyText(answer->status, answer->body.view());
  if (!text) return Failed(text.error().message + owner);
  fmt::print("{}", *text);
  return cli::kOk;
}

}  // namespace berth::cmd
