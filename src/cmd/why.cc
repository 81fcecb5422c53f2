// `berth why`: asks a scheduler at /debug/why and shows its answer.
#include <fmt/format.h>

#include <cstdio>
#include <string>
#include <utility>

#include "cli/refusals_text.h"
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

std::string ReadJob(const Endpoint& endpoint, const std::string& namespace_name,
                    const std::string& name) {
  return Read(endpoint,
              fmt::format("/apis/batch/v1/namespaces/{}/jobs/{}",
                          client::PercentEncode(namespace_name), client::PercentEncode(name)));
}

std::string ReadWorkload(const Endpoint& endpoint, const std::string& namespace_name,
                         const std::string& name) {
  return Read(endpoint,
              fmt::format("/apis/kueue.x-k8s.io/v1beta2/namespaces/{}/workloads/{}",
                          client::PercentEncode(namespace_name), client::PercentEncode(name)));
}

// The Workload of a Job; empty when there is none.
std::string WorkloadOf(const Endpoint& endpoint, const std::string& namespace_name,
                       const std::string& job) {
  const std::string uid = cli::UidOf(ReadJob(endpoint, namespace_name, job));
  if (uid.empty()) return "";
  return cli::FirstNameOf(
      Read(endpoint, fmt::format("/apis/kueue.x-k8s.io/v1beta2/namespaces/{}/workloads?limit=1&"
                                 "labelSelector={}",
                                 client::PercentEncode(namespace_name),
                                 client::PercentEncode("kueue.x-k8s.io/job-uid=" + uid))));
}

// The warnings about an object.
std::string ReadWarnings(const Endpoint& endpoint, const std::string& namespace_name,
                         const std::string& object) {
  const std::string uid = cli::UidOf(object);
  if (uid.empty()) return "";
  return Read(endpoint,
              fmt::format("/api/v1/namespaces/{}/events?fieldSelector={}",
                          client::PercentEncode(namespace_name),
                          client::PercentEncode("type=Warning,involvedObject.uid=" + uid)));
}

// What the server refuses of a Job or its Workload to those who control them. Either may be empty.
std::string Refusals(const Endpoint& endpoint, const std::string& namespace_name, std::string job,
                     const std::string& workload) {
  const std::string of_workload =
      workload.empty() ? "" : ReadWorkload(endpoint, namespace_name, workload);
  if (job.empty()) job = cli::JobOf(of_workload);
  if (job.empty()) return "";
  const std::string of_job = ReadJob(endpoint, namespace_name, job);
  const std::string job_events = ReadWarnings(endpoint, namespace_name, of_job);
  const std::string workload_events = ReadWarnings(endpoint, namespace_name, of_workload);
  return cli::RefusalsText({.job = of_job,
                            .workload = of_workload,
                            .events_of_job = job_events,
                            .events_of_workload = workload_events});
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

int Failed(const std::string& text) {
  fmt::print(stderr, "berth why: {}\n", text);
  return cli::kFailed;
}

int Print(const Result<std::string>& text) {
  if (!text) return Failed(text.error().message);
  fmt::print("{}", *text);
  return cli::kOk;
}

struct Asked {
  std::string namespace_name;
  std::string workload;
  std::string job;  // Empty: that which controls the Workload.
};

// What the scheduler says of a Workload, or where it does not know it its object, and what
// controllers were refused.
int PrintWorkload(const Endpoint& endpoint, const Asked& asked, const env::HttpResponse& answer) {
  Result<std::string> text = cli::WhyWorkloadText(answer.status, answer.body.view());
  if (answer.status == 404) {
    std::string refused =
        cli::RefusedWorkloadText(ReadWorkload(endpoint, asked.namespace_name, asked.workload));
    if (!refused.empty()) text = std::move(refused);
  }
  if (text) *text += Refusals(endpoint, asked.namespace_name, asked.job, asked.workload);
  if (text && !text->ends_with('\n')) *text += '\n';
  return Print(text);
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
      const std::string refusals = Refusals(api, name, options.name, "");
      return Failed(fmt::format(
          "no Workload is there for Job {} of namespace {}: it has no queue name, does "
          "not exist, or its events say why none could be made{}{}{}",
          options.name, name, Owner(api, name, options.name), refusals.empty() ? "" : "\n",
          refusals.substr(0, refusals.size() - (refusals.empty() ? 0 : 1))));
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
  if (options.kind == cli::WhyOptions::Kind::kGroup)
    return Print(cli::WhyGroupText(answer->status, answer->body.view()));
  if (options.kind != cli::WhyOptions::Kind::kPod) {
    const bool by_job = options.kind == cli::WhyOptions::Kind::kJob;
    return PrintWorkload(
        api, {.namespace_name = name, .workload = object, .job = by_job ? options.name : ""},
        *answer);
  }
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
