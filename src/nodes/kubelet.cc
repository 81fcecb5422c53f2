#include "nodes/kubelet.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "base/hash.h"
#include "client/request.h"
#include "codec/json.h"

namespace berth::nodes {
namespace {

using api::ContainerState;
using client::AppendJsonString;
using client::SecondsTime;

// A run this long makes the next restart come at once, as Kubernetes resets its back-off.
constexpr Duration kBackoffReset = Duration::Minutes(10);
constexpr int64_t kStoppedExitCode = 143;  // 128 + SIGTERM.

// How the containers of a pod stand, as the status that is to be written says it.
struct Containers {
  ContainerState state = ContainerState::kWaiting;
  std::string_view reason;
  Instant started;
  Instant finished;
  Instant last_started;  // Of the run that `finished` ended, when another is under way or due.
  int64_t exit_code = 0;
  int64_t restarts = 0;
  bool ready = false;
};

class StatusText {
 public:
  StatusText(const api::Pod& pod, const PodOnNode& on_node, Instant now)
      : pod_(pod), on_node_(on_node), now_(now) {
    text_.reserve(kTextBytes);
    text_ = "{";
    if (pod.meta.generation > 0) {
      Add(R"("observedGeneration":)");
      AddNumber(pod.meta.generation);
      Add(",");
    }
  }

  void Phase(std::string_view phase) { Add(R"("phase":")", phase, R"(",)"); }
  void Cause(std::string_view reason, std::string_view message) {
    text_ += R"("reason":)";
    AppendJsonString(text_, reason);
    text_ += R"(,"message":)";
    AppendJsonString(text_, message);
    text_ += ',';
  }
  void Address() {
    const std::string_view host = on_node_.host_ip;
    Add(R"("hostIP":")", host, R"(","hostIPs":[{"ip":")", host, R"("}],)");
    const std::string_view ip = pod_.spec->host_network ? on_node_.host_ip : on_node_.pod_ip;
    if (!ip.empty()) Add(R"("podIP":")", ip, R"(","podIPs":[{"ip":")", ip, R"("}],)");
  }
  void Start() {
    const Instant start = pod_.start_time.ns != 0 ? pod_.start_time : now_;
    Add(R"("startTime":")", Time(start), R"(",)");
  }
  void Conditions(bool network, bool initialized, bool ready, std::string_view unready_reason) {
    text_ += R"("conditions":[)";
    Condition("PodReadyToStartContainers", network, {});
    Condition("Initialized", initialized, initialized ? std::string_view() : unready_reason);
    Condition("Ready", ready, ready ? std::string_view() : unready_reason);
    Condition("ContainersReady", ready, ready ? std::string_view() : unready_reason);
    if (Scheduled() == nullptr) Condition("PodScheduled", true, {});
    text_.back() = ']';
    text_ += ',';
  }
  // The statuses of all containers. Init containers have run before the others start.
  void Statuses(const Containers& containers) {
    if (!pod_.spec->init_containers.empty()) {
      text_ += R"("initContainerStatuses":[)";
      for (const api::Container& container : pod_.spec->init_containers) {
        One(container, container.restart_always ? containers : Ran(containers));
      }
      text_.back() = ']';
      text_ += ',';
    }
    text_ += R"("containerStatuses":[)";
    for (const api::Container& container : pod_.spec->containers) One(container, containers);
    if (text_.back() == ',') text_.pop_back();
    text_ += "],";
  }
  std::string Take() {
    text_.back() = '}';
    return std::move(text_);
  }

 private:
  // A pod of one container takes about 900 bytes.
  static constexpr size_t kTextBytes = 1024;

  template <typename... Parts>
  void Add(const Parts&... parts) {
    (text_.append(std::string_view(parts)), ...);
  }
  void AddNumber(int64_t number) {
    std::array<char, 20> digits{};
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
    text_.append(digits.data(), end);
  }
  void AddHex(uint64_t number) {
    for (int shift = 60; shift >= 0; shift -= 4)
      text_ += "0123456789abcdef"[(number >> shift) & 15];
  }
  // Good until the next call. Most times of a status are one.
  [[nodiscard]] std::string_view Time(Instant time) {
    if (printed_text_.empty() || printed_ != time) {
      printed_ = time;
      printed_text_ = SecondsTime(time);
    }
    return printed_text_;
  }

  [[nodiscard]] const api::PodCondition* Known(std::string_view type) const {
    const auto at = std::ranges::find(pod_.conditions, type, &api::PodCondition::type);
    return at == pod_.conditions.end() ? nullptr : &*at;
  }
  [[nodiscard]] const api::PodCondition* Scheduled() const { return Known("PodScheduled"); }

  void Condition(std::string_view type, bool value, std::string_view reason) {
    const std::string_view status = value ? "True" : "False";
    const api::PodCondition* known = Known(type);
    const bool kept = known != nullptr && known->status == status && known->transition.ns != 0;
    // Members in the order in which berth's own server keeps them, which saves it the sorting.
    text_ += R"({"lastTransitionTime":")";
    Add(Time(kept ? known->transition : now_), "\"");
    // A null takes away what an earlier status said.
    if (!reason.empty()) {
      Add(R"(,"reason":")", reason, "\"");
    } else if (known != nullptr && !known->reason.empty()) {
      text_ += R"(,"message":null,"reason":null)";
    }
    Add(R"(,"status":")", status, R"(","type":")", type, R"("},)");
  }

  [[nodiscard]] Containers Ran(const Containers& containers) const {
    if (containers.state == ContainerState::kWaiting && containers.finished.ns == 0) {
      return {.state = ContainerState::kWaiting, .reason = "PodInitializing"};
    }
    const Instant at = pod_.start_time.ns != 0 ? pod_.start_time : now_;
    return {.state = ContainerState::kTerminated,
            .reason = "Completed",
            .started = at,
            .finished = at,
            .ready = true};
  }

  void ContainerId(const api::Container& container, int64_t restarts) {
    Hasher hasher;
    hasher.Add(pod_.meta.uid).Add(container.name).Add(restarts);
    Add(R"("containerID":"berth://)");  // As the node's containerRuntimeVersion.
    for (int part = 0; part < 4; ++part) AddHex(hasher.Add(part).value());
    Add(R"(",)");
  }

  void Terminated(const api::Container& container, const Containers& c, int64_t restarts) {
    Add(R"({"terminated":{)");
    ContainerId(container, restarts);
    Add(R"("exitCode":)");
    AddNumber(c.exit_code);
    Add(R"(,"finishedAt":")", Time(c.finished), R"(","reason":")");
    Add(c.exit_code == 0 ? "Completed" : "Error", R"(","startedAt":")", Time(c.started), R"("}})");
  }

  void State(const api::Container& container, const Containers& c) {
    switch (c.state) {
      case ContainerState::kRunning:
        Add(R"({"running":{"startedAt":")", Time(c.started), R"("}})");
        return;
      case ContainerState::kTerminated:
        Terminated(container, c, c.restarts);
        return;
      case ContainerState::kNone:
      case ContainerState::kWaiting:
        Add(R"({"waiting":{"reason":")", c.reason, R"("}})");
        return;
    }
  }

  void One(const api::Container& container, const Containers& c) {
    const bool made = c.state != ContainerState::kWaiting || c.finished.ns != 0;
    text_ += '{';
    if (made) ContainerId(container, c.restarts);
    text_ += R"("image":)";
    AppendJsonString(text_, container.image);
    text_ += R"(,"imageID":")";
    if (made) {
      Add("sha256:");
      AddHex(HashOf(container.image));
    }
    text_ += R"(","lastState":)";
    if (c.state != ContainerState::kTerminated && c.finished.ns != 0) {
      Containers last = c;
      last.started = c.last_started.ns != 0 ? c.last_started : c.finished;
      // A container that waits has not been restarted yet; one that runs has.
      Terminated(container, last, c.restarts - (c.state == ContainerState::kRunning ? 1 : 0));
    } else {
      text_ += "{}";
    }
    text_ += R"(,"name":)";
    AppendJsonString(text_, container.name);
    Add(R"(,"ready":)", c.ready ? "true" : "false", R"(,"restartCount":)");
    AddNumber(c.restarts);
    Add(R"(,"started":)", c.state == ContainerState::kRunning ? "true" : "false", R"(,"state":)");
    State(container, c);
    text_ += "},";
  }

  const api::Pod& pod_;
  const PodOnNode& on_node_;
  const Instant now_;
  std::string text_;
  Instant printed_;
  std::string printed_text_;
};

const api::ContainerStatus* FirstStatus(const api::Pod& pod) {
  return pod.container_statuses.empty() ? nullptr : &pod.container_statuses.front();
}

PodStep WriteStatus(std::string status, Instant started = {}) {
  return {.action = PodAction::kStatus, .status = std::move(status), .started = started};
}

PodStep Sleep(Instant until) { return {.wake = until}; }

PodStep Run(const api::Pod& pod, const PodOnNode& on_node, const api::RunPlan& plan,
            Containers before, Instant now) {
  StatusText text(pod, on_node, now);
  text.Phase("Running");
  text.Address();
  text.Start();
  const bool ready = plan.ready_after.ns == 0;
  text.Conditions(true, true, ready, "ContainersNotReady");
  before.state = ContainerState::kRunning;
  before.started = now;
  before.ready = ready;
  text.Statuses(before);
  return WriteStatus(text.Take(), now);
}

bool IsOfJob(const api::Pod& pod) {
  return std::ranges::any_of(pod.meta.owners, [](const api::OwnerReference& owner) {
    return owner.controller && owner.kind == "Job" && owner.api_version == "batch/v1";
  });
}

struct End {
  bool succeeded = false;
  int64_t exit_code = 0;
  std::string_view reason;
  std::string_view message;
};

PodStep Terminate(const api::Pod& pod, const PodOnNode& on_node, const End& end, Instant now) {
  StatusText text(pod, on_node, now);
  text.Phase(end.succeeded ? "Succeeded" : "Failed");
  if (!end.reason.empty()) text.Cause(end.reason, end.message);
  text.Address();
  text.Start();
  text.Conditions(false, true, false, end.succeeded ? "PodCompleted" : "PodFailed");
  const api::ContainerStatus* known = FirstStatus(pod);
  const Instant started = known != nullptr && known->started.ns != 0 ? known->started : now;
  text.Statuses({.state = ContainerState::kTerminated,
                 .started = started,
                 .finished = now,
                 .exit_code = end.exit_code,
                 .restarts = known != nullptr ? known->restart_count : 0});
  return WriteStatus(text.Take());
}

// A container came to its end: the pod's end, or a restart.
PodStep Exit(const api::Pod& pod, const PodOnNode& on_node, const api::RunPlan& plan, Instant now) {
  const api::ContainerStatus& known = *FirstStatus(pod);
  const int64_t code = plan.exit_code(known.restart_count);
  const bool restarts = pod.spec->restart_policy == "Always" ||
                        (pod.spec->restart_policy == "OnFailure" && code != 0);
  if (!restarts) {
    return Terminate(pod, on_node, {.succeeded = code == 0, .exit_code = code}, now);
  }
  const Duration ran = now - known.started;
  Containers containers{.state = ContainerState::kWaiting,
                        .reason = "CrashLoopBackOff",
                        .started = known.started,
                        .finished = now,
                        .last_started = known.started,
                        .exit_code = code,
                        .restarts = known.restart_count};
  if (RestartDelay(known.restart_count + 1).ns == 0 || ran >= kBackoffReset) {
    ++containers.restarts;
    return Run(pod, on_node, plan, containers, now);
  }
  StatusText text(pod, on_node, now);
  text.Phase("Running");
  text.Address();
  text.Start();
  text.Conditions(true, true, false, "ContainersNotReady");
  text.Statuses(containers);
  return WriteStatus(text.Take());
}

PodStep BecomeReady(const api::Pod& pod, const PodOnNode& on_node, Instant now) {
  const api::ContainerStatus& known = *FirstStatus(pod);
  StatusText text(pod, on_node, now);
  text.Conditions(true, true, true, {});
  text.Statuses({.state = ContainerState::kRunning,
                 .started = known.started,
                 .finished = known.finished,
                 .exit_code = known.exit_code,
                 .restarts = known.restart_count,
                 .ready = true});
  return WriteStatus(text.Take());
}

bool IsReady(const api::Pod& pod) {
  return std::ranges::any_of(pod.conditions, [](const api::PodCondition& condition) {
    return condition.type == "Ready" && condition.status == "True";
  });
}

PodStep WhileRunning(const api::Pod& pod, const PodOnNode& on_node, const api::RunPlan& plan,
                     Instant now) {
  const api::ContainerStatus& known = *FirstStatus(pod);
  const Instant started = on_node.started.ns != 0 ? on_node.started : known.started;
  Instant wake = Instant::Never();
  if (plan.run_for.has_value()) {
    const Instant end = started + *plan.run_for;
    if (end <= now) return Exit(pod, on_node, plan, now);
    wake = end;
  }
  // The node's lifecycle controller takes the condition away while the kubelet is not heard of.
  if (!known.ready || !IsReady(pod)) {
    const Instant ready = started + plan.ready_after;
    if (ready <= now) return BecomeReady(pod, on_node, now);
    wake = std::min(wake, ready);
  }
  return Sleep(wake);
}

PodStep WhileCrashed(const api::Pod& pod, const PodOnNode& on_node, const api::RunPlan& plan,
                     Instant now) {
  const api::ContainerStatus& known = *FirstStatus(pod);
  const Instant restart = known.finished + RestartDelay(known.restart_count + 1);
  if (restart > now) return Sleep(restart);
  return Run(pod, on_node, plan,
             {.finished = known.finished,
              .last_started = known.started,
              .exit_code = known.exit_code,
              .restarts = known.restart_count + 1},
             now);
}

PodStep WhileCreating(const api::Pod& pod, const PodOnNode& on_node, const KubeletTiming& timing,
                      const api::RunPlan& plan, Instant now) {
  const Instant start = on_node.seen + plan.start_after;
  if (start <= now) return Run(pod, on_node, plan, {}, now);
  if (WasAdmitted(pod) || plan.start_after < timing.creating_shown_from) return Sleep(start);
  StatusText text(pod, on_node, now);
  text.Phase("Pending");
  text.Address();
  text.Start();
  text.Conditions(false, pod.spec->init_containers.empty(), false, "ContainersNotReady");
  text.Statuses({.state = ContainerState::kWaiting, .reason = "ContainerCreating"});
  return WriteStatus(text.Take());
}

// The member of an object at a path of keys; none where a part of it is missing.
const api::Json* MemberAt(const api::Json& value, std::initializer_list<std::string_view> path) {
  const api::Json* at = &value;
  for (const std::string_view key : path) {
    const api::JsonObject* object = at->if_object();
    at = object == nullptr ? nullptr : object->if_contains(key);
    if (at == nullptr) return nullptr;
  }
  return at;
}

// The pod is to go. Its last status is written only where somebody waits for it: for a pod without
// finalizers it would be gone with the next write.
PodStep WhileStopping(const api::Pod& pod, const PodOnNode& on_node, const KubeletTiming& timing,
                      Instant now) {
  const bool started = pod.phase == "Running";
  if (started) {
    const Instant grace_end = *pod.meta.deletion_time;
    const Instant asked =
        grace_end - Duration::Seconds(pod.meta.deletion_grace_seconds.value_or(0));
    // What can't be read can't ask for time.
    const Result<api::RunPlan> plan = api::RunPlanOf(pod.meta.annotations);
    const Duration takes = std::max(timing.stop_delay, plan ? plan->stop_after : Duration{});
    const Instant end = std::min(grace_end, asked + on_node.stop_sleep + takes);
    if (end > now) return Sleep(end);
  }
  if (!pod.meta.finalizers.empty() && !IsTerminal(pod)) {
    return Terminate(pod, on_node, {.exit_code = kStoppedExitCode}, now);
  }
  return {.action = PodAction::kDelete};
}

}  // namespace

bool IsTerminal(const api::Pod& pod) { return pod.phase == "Succeeded" || pod.phase == "Failed"; }

bool WasAdmitted(const api::Pod& pod) { return pod.start_time.ns != 0; }

Duration PreStopSleep(std::string_view pod) {
  if (!pod.contains(R"("preStop")")) return {};
  const Result<api::Json> document = codec::ParseJson(pod);
  if (!document) return {};
  const api::Json* containers = MemberAt(*document, {"spec", "containers"});
  if (containers == nullptr || !containers->is_array()) return {};
  Duration longest;
  for (const api::Json& container : containers->get_array()) {
    const api::Json* seconds = MemberAt(container, {"lifecycle", "preStop", "sleep", "seconds"});
    if (seconds == nullptr || !seconds->is_int64()) continue;
    longest = std::max(longest, Duration::Seconds(seconds->get_int64()));
  }
  return longest;
}

Duration RestartDelay(int64_t restart) {
  if (restart <= 1) return {};
  constexpr int64_t kDoublings = 5;  // 10 s * 2^5 passes 5 minutes.
  const int64_t seconds = int64_t{10} << std::min(restart - 2, kDoublings);
  return std::min(Duration::Seconds(seconds), Duration::Minutes(5));
}

PodStep Decide(const api::Pod& pod, const PodOnNode& on_node, const KubeletTiming& timing,
               Instant now) {
  if (pod.meta.deletion_time.has_value()) {
    // The final deletion has been taken; what finalizers keep is not the kubelet's.
    const bool final = pod.meta.deletion_grace_seconds.value_or(0) == 0;
    if (final && IsTerminal(pod) && !pod.meta.finalizers.empty()) return {};
    return WhileStopping(pod, on_node, timing, now);
  }
  if (IsTerminal(pod)) return {};
  if (on_node.pod_ip.empty()) return {.action = PodAction::kAdmit};
  Result<api::RunPlan> plan = api::RunPlanOf(pod.meta.annotations);
  if (!plan) {
    return Terminate(
        pod, on_node,
        {.exit_code = 1, .reason = "InvalidAnnotation", .message = plan.error().message}, now);
  }
  if (!plan->run_for.has_value() && timing.job_run_for.ns != 0 && IsOfJob(pod)) {
    plan->run_for = timing.job_run_for;
  }
  Instant deadline = Instant::Never();
  if (pod.spec->active_deadline_seconds.has_value() && WasAdmitted(pod)) {
    deadline = pod.start_time + Duration::Seconds(*pod.spec->active_deadline_seconds);
    if (deadline <= now) {
      return Terminate(pod, on_node,
                       {.exit_code = 137,
                        .reason = "DeadlineExceeded",
                        .message = "Pod was active on the node longer than the specified deadline"},
                       now);
    }
  }
  const api::ContainerStatus* known = FirstStatus(pod);
  const bool running = known != nullptr && known->state == ContainerState::kRunning;
  const bool crashed = known != nullptr && !running && known->finished.ns != 0;
  PodStep step;
  if (running) {
    step = WhileRunning(pod, on_node, *plan, now);
  } else if (crashed) {
    step = WhileCrashed(pod, on_node, *plan, now);
  } else {
    step = WhileCreating(pod, on_node, timing, *plan, now);
  }
  if (step.action == PodAction::kNothing) step.wake = std::min(step.wake, deadline);
  return step;
}

std::string RefusedStatus(const api::Pod& pod, const PodOnNode& on_node, std::string_view reason,
                          std::string_view message, Instant now) {
  StatusText text(pod, on_node, now);
  text.Phase("Failed");
  text.Cause(reason, message);
  text.Start();
  return text.Take();
}

}  // namespace berth::nodes
