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

namespace berth::cmd {
namespace {

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
  endpoint = SchedulerAt(api, options.scheduler);
  if (!endpoint) return Failed(endpoint.error().message);
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
      AskScheduler(*endpoint, options.scheduler, std::move(request));
  if (!answer) return Failed(answer.error().message);
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
