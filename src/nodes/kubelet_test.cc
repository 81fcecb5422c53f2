// Goal: the life of a pod on its node, write by write. Method: a golden conversation: a pod
// document is given, time moves, and each patch that Decide() asks for is applied to the document
// by the code of the API server before the next look.
#include "nodes/kubelet.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "api/duration.h"
#include "api/patch.h"
#include "codec/decode.h"
#include "codec/json.h"
#include "testing/datadriven.h"

namespace berth::nodes {
namespace {

constexpr int64_t kEpoch = 1'000'000'000;

std::string TimeOf(Instant at) {
  return at == Instant::Never()
             ? "never"
             : std::to_string((at - Instant::FromSeconds(kEpoch)).seconds()) + "s";
}

// What the API server's strategic merge patch does to a pod's status: conditions merge by type.
api::Json Patched(const api::Json& document, const std::string& status) {
  const api::Json patch = *codec::ParseJson("{\"status\":" + status + "}");
  api::Json next = api::ApplyMergePatch(document, patch);
  const auto* before = document.at("status").as_object().if_contains("conditions");
  if (before == nullptr || !patch.at("status").as_object().contains("conditions")) return next;
  api::JsonArray& merged = next.as_object()["status"].as_object()["conditions"].as_array();
  for (const api::Json& condition : before->as_array()) {
    const bool known = std::ranges::any_of(
        merged, [&](const api::Json& other) { return other.at("type") == condition.at("type"); });
    if (!known) merged.push_back(condition);
  }
  return next;
}

// "Running ready: Running since 0s, 1 restart"
std::string Summary(const api::Json& document) {
  const Result<api::Pod> pod = codec::DecodePod(codec::PrintJson(document));
  if (!pod) return pod.error().message;
  std::string text = pod->phase;
  if (!pod->status_reason.empty()) text += " " + pod->status_reason;
  for (const api::PodCondition& condition : pod->conditions) {
    if (condition.status == "True") text += " +" + condition.type;
  }
  for (const auto* list : {&pod->init_container_statuses, &pod->container_statuses}) {
    for (const api::ContainerStatus& status : *list) {
      text += "\n  " + status.name + ": ";
      if (status.state == api::ContainerState::kWaiting) text += "waiting";
      if (status.state == api::ContainerState::kRunning)
        text += "running since " + TimeOf(status.started);
      if (status.state == api::ContainerState::kTerminated) text += "terminated";
      if (!status.reason.empty()) text += " " + status.reason;
      if (status.finished.ns != 0) {
        text += ", exit " + std::to_string(status.exit_code) + " at " + TimeOf(status.finished);
      }
      if (status.restart_count > 0) text += ", restarts " + std::to_string(status.restart_count);
    }
  }
  return text + "\n";
}

class Conversation {
 public:
  std::string Handle(const testing::Directive& directive) {
    if (directive.command == "pod") {
      document_ = *codec::ParseJson(directive.input);
      seen_ = now_;
      started_ = {};
      ip_.clear();
      return "";
    }
    if (directive.command == "merge") {
      document_ = api::ApplyMergePatch(document_, *codec::ParseJson(directive.input));
      return "";
    }
    if (directive.command == "timing") {
      timing_.stop_delay = *api::ParseDuration(directive.Value("stop", "0"));
      timing_.job_run_for = *api::ParseDuration(directive.Value("job", "0"));
      return "";
    }
    if (directive.command == "restart-kubelet") {
      seen_ = now_;
      started_ = {};
      return "";
    }
    EXPECT_EQ(directive.command, "at") << directive.position;
    now_ = Instant::FromSeconds(kEpoch + std::stoll(directive.arguments.at(0)));
    return Look(directive.Has("full"));
  }

 private:
  std::string Look(bool full) {
    std::string text;
    for (int i = 0; i < 10; ++i) {
      const Result<api::Pod> pod = codec::DecodePod(codec::PrintJson(document_));
      if (!pod) return pod.error().message;
      if (WasAdmitted(*pod)) ip_ = "10.0.0.2";
      const PodStep step = Decide(*pod,
                                  {.node = "n1",
                                   .host_ip = "172.16.0.2",
                                   .pod_ip = ip_,
                                   .seen = seen_,
                                   .started = started_,
                                   .stop_sleep = PreStopSleep(codec::PrintJson(document_))},
                                  timing_, now_);
      switch (step.action) {
        case PodAction::kNothing:
          return text + "wake " + TimeOf(step.wake);
        case PodAction::kDelete:
          return text + "delete";
        case PodAction::kAdmit:
          ip_ = "10.0.0.2";
          text += "admit\n";
          break;
        case PodAction::kStatus: {
          if (step.started.ns != 0) started_ = step.started;
          document_ = Patched(document_, step.status);
          text += full ? step.status + "\n" : Summary(document_);
        }
      }
    }
    return text + "never comes to rest";
  }

  api::Json document_;
  Instant now_ = Instant::FromSeconds(kEpoch);
  Instant seen_ = Instant::FromSeconds(kEpoch);
  Instant started_;
  std::string ip_;
  KubeletTiming timing_;
};

TEST(Kubelet, LivesOfPods) {
  for (const std::string& file : testing::GoldenFiles(BERTH_TESTDATA)) {
    Conversation conversation;
    testing::RunGoldenFile(file,
                           [&](const auto& directive) { return conversation.Handle(directive); });
  }
}

TEST(Kubelet, RestartsWaitLongerAndLongerUpToFiveMinutes) {
  EXPECT_EQ(RestartDelay(1).seconds(), 0);
  EXPECT_EQ(RestartDelay(2).seconds(), 10);
  EXPECT_EQ(RestartDelay(3).seconds(), 20);
  EXPECT_EQ(RestartDelay(6).seconds(), 160);
  EXPECT_EQ(RestartDelay(7).seconds(), 300);
  EXPECT_EQ(RestartDelay(1'000'000).seconds(), 300);
}

}  // namespace
}  // namespace berth::nodes
