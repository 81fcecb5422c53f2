#include "explore/requests.h"

#include <fmt/format.h>

#include <utility>

#include "base/bytes.h"

namespace berth::explore {

env::HttpRequest Request(env::Method method, std::string target, std::string body,
                         std::string_view type) {
  env::HttpRequest request{
      .method = method, .target = std::move(target), .headers = {}, .body = {}};
  if (!body.empty()) {
    request.headers.push_back({.name = "content-type", .value = std::string(type)});
    request.body = Bytes(std::move(body));
  }
  return request;
}

std::string CollectionOf(Action::Kind kind) {
  const auto of_quota = [](std::string_view rest) {
    return fmt::format("{}{}", kQuotaTarget, rest);
  };
  switch (kind) {
    case Action::Kind::kNode:
      return std::string(kNodesTarget);
    case Action::Kind::kBudget:
      return std::string(kBudgetsTarget);
    case Action::Kind::kClass:
      return std::string(kClassesTarget);
    case Action::Kind::kGroup:
      return std::string(kGroupsTarget);
    case Action::Kind::kJob:
      return std::string(kJobsTarget);
    case Action::Kind::kGroupQueue:
      return std::string(kGroupQueuesTarget);
    case Action::Kind::kQueue:
      return of_quota("clusterqueues");
    case Action::Kind::kLocalQueue:
      return of_quota("namespaces/default/localqueues");
    case Action::Kind::kCohort:
      return of_quota("cohorts");
    case Action::Kind::kFlavor:
      return of_quota("resourceflavors");
    case Action::Kind::kWorkload:
      return of_quota("namespaces/default/workloads");
    case Action::Kind::kTopology:
      return of_quota("topologies");
    case Action::Kind::kCheck:
      return of_quota("admissionchecks");
    case Action::Kind::kPod:
    case Action::Kind::kOwner:
      break;
  }
  return std::string(kPodsTarget);
}

}  // namespace berth::explore
