#include <fmt/format.h>

#include <optional>
#include <string>

#include "base/check.h"
#include "explore/requests.h"
#include "explore/stage.h"
#include "explore/workload_models.h"

// What those do who run Workloads, and who check them.
namespace berth::explore {
namespace {

constexpr std::string_view kWorkloadsTarget =
    "/apis/kueue.x-k8s.io/v1beta2/namespaces/default/workloads/";

std::string NameOf(const std::string& key) { return key.substr(key.rfind('/') + 1); }

}  // namespace

void Stage::AddWorkloads(std::vector<Choice>& choices) const {
  if (!scenario_->jobs && !scenario_->unhealthy) return;
  uint32_t index = 0;
  for (const auto& [key, bytes] : truth().others()) {
    const uint32_t at = index++;
    if (!key.starts_with(kWorkloadsPrefix)) continue;
    const std::string_view document = bytes.view();
    const auto add = [&](Turn turn) {
      choices.push_back(
          {.turn = turn,
           .index = at,
           .key = Hasher().Add(turn).Add(Fate::kDone).Add(std::string_view(key)).Add(0).value()});
    };
    if (scenario_->jobs && HasToLetGo(document)) add(Turn::kLetGo);
    if (scenario_->joint && PodToMake(truth(), document)) add(Turn::kMakePod);
    if (scenario_->joint && PodToLetIn(truth(), document)) add(Turn::kLetIn);
    if (scenario_->unhealthy && UnhealthyStatus(truth(), document)) add(Turn::kMark);
  }
}

Footprint Stage::TakeOfWorkload(Turn turn, const std::string& key) {
  const Bytes document = truth().others().at(key);
  const std::string status = std::string(kWorkloadsTarget) + NameOf(key) + "/status";
  switch (turn) {
    case Turn::kLetGo: {
      if (scenario_->joint) {
        for (const std::string& pod : PodsOfJob(truth(), document.view()))
          DeletePod(pod, /*at_once=*/!scenario_->kubelets);
      }
      CHECK_EQ(Patch(status, ReleasedStatus(document.view(), now_)).status, 200);
      return kTouchesPods;
    }
    case Turn::kMakePod: {
      const std::string pod = *PodToMake(truth(), document.view());
      CHECK_EQ(Post(std::string(kPodsTarget), pod).status, 201);
      return kTouchesPods;
    }
    case Turn::kLetIn: {
      const LetIn let_in = *PodToLetIn(truth(), document.view());
      const std::string pod = fmt::format("{}/{}", kPodsTarget, NameOf(let_in.key));
      CHECK_EQ(Patch(pod, let_in.body).status, 200);
      return kTouchesPods | kTouchesNodes;
    }
    default:
      CHECK(turn == Turn::kMark);
      CHECK_EQ(Patch(status, *UnhealthyStatus(truth(), document.view())).status, 200);
      return kTouchesPods | kTouchesNodes;
  }
}

// A user says something in a Workload's status, beside what that says when it does.
env::HttpResponse Stage::ActOnStatus(const Action& action, const std::string& object) {
  const auto workload =
      truth().others().find(fmt::format("{}default/{}", kWorkloadsPrefix, action.name));
  if (workload == truth().others().end()) return {.status = 404, .headers = {}, .body = {}};
  const std::string_view document = workload->second.view();
  const std::optional<std::string> status = action.verb == Action::Verb::kAnswer
                                                ? AnsweredStatus(document, action.body, now_)
                                                : ToldStatus(document, action.body, now_);
  if (!status) return {.status = 404, .headers = {}, .body = {}};
  return Patch(object + "/status", *status);
}

}  // namespace berth::explore
