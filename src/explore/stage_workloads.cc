#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "codec/scan.h"
#include "explore/requests.h"
#include "explore/stage.h"
#include "explore/words.h"
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
    // One that it decided of is not decided of again before all of that has arrived.
    const bool busy = std::ranges::find(late_, key, &Late::workload) != late_.end();
    if (scenario_->jobs && !busy && HasToLetGo(document)) add(Turn::kLetGo);
    if (scenario_->joint && PodToMake(truth(), document, scenario_->indexed)) add(Turn::kMakePod);
    if (scenario_->slow_jobs) {
      if (!busy && !DecidedOf(document).empty()) add(Turn::kDecide);
      continue;
    }
    if (scenario_->joint && !DecidedOf(document).empty()) add(Turn::kLetIn);
    if (scenario_->unhealthy && UnhealthyStatus(truth(), document, bugs_.tampering))
      add(Turn::kMark);
  }
  for (uint32_t i = 0; i < late_.size(); ++i) {
    const env::HttpRequest& request = late_[i].request;
    const std::string_view target = request.target;
    choices.push_back(
        {.turn = Turn::kLate,
         .index = i,
         .key = Hasher().Add(Turn::kLate).Add(request.method).Add(target).Add(0).value()});
  }
}

// As the controller plans it: which nodes can't be used is told where nothing else is to be written
// of the Workload; the rest are writes of pods.
std::vector<env::HttpRequest> Stage::DecidedOf(std::string_view document) const {
  std::vector<env::HttpRequest> requests;
  const std::optional<std::string> unhealthy =
      scenario_->slow_jobs && scenario_->unhealthy
          ? UnhealthyStatus(truth(), document, bugs_.tampering)
          : std::nullopt;
  if (unhealthy) {
    const std::string_view metadata = codec::Member(document, "metadata");
    std::string body = *unhealthy;
    body.insert(1, fmt::format(R"("metadata":{{"uid":"{}","resourceVersion":"{}"}},)",
                               codec::StringMember(metadata, "uid"),
                               codec::StringMember(metadata, "resourceVersion")));
    requests.push_back(
        Request(env::Method::kPatch,
                fmt::format("{}{}/status", kWorkloadsTarget, codec::StringMember(metadata, "name")),
                std::move(body), "application/merge-patch+json"));
  }
  std::ranges::move(TopologyWrites(truth(), document, bugs_.tampering),
                    std::back_inserter(requests));
  return requests;
}

// Whether it is done is for the fences to say.
Footprint Stage::ArriveLate(uint32_t index) {
  const Late late = late_[index];
  late_.erase(late_.begin() + index);
  const int status = Serve(late.request, {}).status;
  Told(fmt::format("the API server answers {}", status));
  if (status == 400 || status == 422)
    checkers_.Report(now_, fmt::format("what a Job's controller writes to {} is not valid",
                                       late.request.target));
  return kTouchesPods | kTouchesNodes;
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
      const std::string pod = *PodToMake(truth(), document.view(), scenario_->indexed);
      CHECK_EQ(Post(std::string(kPodsTarget), pod).status, 201);
      return kTouchesPods;
    }
    case Turn::kLetIn: {
      const std::vector<env::HttpRequest> requests = DecidedOf(document.view());
      Report(WrittenInVain(truth(), document.view(), requests));
      const int done = Serve(requests.front(), {}).status;
      CHECK_EQ(done, 200);
      return kTouchesPods | kTouchesNodes;
    }
    case Turn::kDecide: {
      std::vector<env::HttpRequest> requests = DecidedOf(document.view());
      Report(WrittenInVain(truth(), document.view(), requests));
      for (env::HttpRequest& request : requests) {
        Told("it sends its " + Words(request));
        late_.push_back({.workload = key, .request = std::move(request)});
      }
      return kTouchesPods | kTouchesNodes;
    }
    default:
      CHECK(turn == Turn::kMark);
      CHECK_EQ(Patch(status, *UnhealthyStatus(truth(), document.view(), bugs_.tampering)).status,
               200);
      Report(ToldInVain(truth(), document.view(), truth().others().at(key).view()));
      return kTouchesPods | kTouchesNodes;
  }
}

// A user says something in a Workload's status, beside what that says when it does.
env::HttpResponse Stage::ActOnStatus(const Action& action, const std::string& object) {
  const bool of_job = action.kind == Action::Kind::kJob;
  const std::string name = of_job ? job_checks_.WorkloadOf(action.name) : action.name;
  const auto workload = truth().others().find(fmt::format("{}default/{}", kWorkloadsPrefix, name));
  if (workload == truth().others().end()) return {.status = 404, .headers = {}, .body = {}};
  const std::string_view document = workload->second.view();
  const std::optional<std::string> status = action.verb == Action::Verb::kAnswer
                                                ? AnsweredStatus(document, action.body, now_)
                                                : ToldStatus(document, action.body, now_);
  if (!status) return {.status = 404, .headers = {}, .body = {}};
  return Patch((of_job ? std::string(kWorkloadsTarget) + name : object) + "/status", *status);
}

}  // namespace berth::explore
