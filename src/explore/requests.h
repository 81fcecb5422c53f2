#pragma once

#include <string>
#include <string_view>

#include "env/http.h"
#include "explore/scenario.h"

// Where the objects of a scenario are, and what is asked of the API server about them.
namespace berth::explore {

inline constexpr std::string_view kPodsTarget = "/api/v1/namespaces/default/pods";
inline constexpr std::string_view kNodesTarget = "/api/v1/nodes";
inline constexpr std::string_view kBudgetsTarget =
    "/apis/policy/v1/namespaces/default/poddisruptionbudgets";
inline constexpr std::string_view kGroupsTarget =
    "/apis/scheduling.volcano.sh/v1beta1/namespaces/default/podgroups";
inline constexpr std::string_view kSetsTarget = "/apis/apps/v1/namespaces/default/replicasets";
inline constexpr std::string_view kJobsTarget = "/apis/batch/v1/namespaces/default/jobs";
inline constexpr std::string_view kGroupQueuesTarget = "/apis/scheduling.volcano.sh/v1beta1/queues";
inline constexpr std::string_view kClassesTarget = "/apis/scheduling.k8s.io/v1/priorityclasses";
inline constexpr std::string_view kQuotaTarget = "/apis/kueue.x-k8s.io/v1beta2/";

[[nodiscard]] env::HttpRequest Request(env::Method method, std::string target, std::string body,
                                       std::string_view type = "application/json");
// The target of the kind's list.
[[nodiscard]] std::string CollectionOf(Action::Kind kind);

}  // namespace berth::explore
