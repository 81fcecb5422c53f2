#include "controllers/workloads.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "api/quota.h"
#include "api/topology_annotations.h"
#include "api/well_known.h"
#include "base/check.h"
#include "client/workload_status.h"
#include "codec/decode.h"
#include "controllers/job_template.h"
#include "controllers/pods.h"
#include "controllers/sha1.h"
#include "controllers/topology.h"
#include "controllers/workload_priority.h"

namespace berth::controllers {
namespace {

// On a Job that was stopped with what its Workload gave it: the uid of that Workload.
constexpr std::string_view kInjectedAnnotation = "berth.dev/injected";
constexpr std::string_view kPodSetName = "main";
constexpr std::string_view kAdmitted = "Admitted";
constexpr std::string_view kEvicted = "Evicted";
constexpr std::string_view kFinished = "Finished";
constexpr std::string_view kPodsReady = "PodsReady";
constexpr std::string_view kWaitForStart = "WaitForStart";
constexpr std::string_view kWaitForRecovery = "WaitForRecovery";
constexpr std::string_view kRecovered = "Recovered";
constexpr const char* kNotReady = "Not all pods are ready or succeeded";
constexpr std::string_view kQuotaReserved = "QuotaReserved";
constexpr std::string_view kRequeued = "Requeued";
// While an object that is none of ours has the Workload's name.
constexpr Duration kNameTakenEvery = Duration::Seconds(30);
// How long after an admission its flavor may be seen.
constexpr Duration kFlavorComesWithin = Duration::Seconds(5);
constexpr size_t kNameMax = 253;
constexpr size_t kHashDigits = 5;

// The condition that says how the Job ended; nullptr: it didn't.
const api::Condition* EndOf(const api::Job& job) {
  for (const std::string_view type : {"Complete", "Failed"}) {
    if (IsTrue(job.conditions, type)) return api::Find(job.conditions, type);
  }
  return nullptr;
}

int64_t CountOf(const api::Job& job) {
  return std::min(job.parallelism, job.completions.value_or(job.parallelism));
}

// How many pods of its only set run by the Workload: as many as it was given where fewer than all
// are enough, else all.
int64_t CountGivenTo(const api::Workload& workload) {
  const api::WorkloadPodSet& asked = workload.pod_sets.front();
  const bool in_part =
      asked.min_count && workload.admission && !workload.admission->pod_sets.empty();
  return in_part ? workload.admission->pod_sets.front().count.value_or(asked.count) : asked.count;
}

// How few pods the Job may be started with.
std::optional<int64_t> MinCountOf(const api::Job& job) {
  const auto text = api::Find(job.meta.annotations, api::kMinParallelismAnnotation);
  if (!text) return std::nullopt;
  int64_t count = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), count);
  if (error != std::errc() || end != text->data() + text->size()) return std::nullopt;
  // As many as there are leaves nothing to search.
  if (count <= 0 || count >= CountOf(job)) return std::nullopt;
  return count;
}

// For how many seconds its Workload may be admitted.
std::optional<int64_t> LimitOf(const Head& job) {
  const auto text = api::Find(job.labels, api::kMaxExecutionLabel);
  int32_t seconds = 0;
  if (!text) return std::nullopt;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), seconds);
  const bool is_number = error == std::errc() && end == text->data() + text->size();
  return is_number && seconds > 0 ? std::optional<int64_t>(seconds) : std::nullopt;
}

// Of those pods that run at first, as many as no pod is to follow any more.
int64_t ReclaimableOf(const api::Job& job) {
  if (job.parallelism == 1 || job.succeeded == 0) return 0;
  const int64_t remaining = job.completions.value_or(job.parallelism) - job.succeeded;
  return std::clamp<int64_t>(job.parallelism - remaining, 0, CountOf(job));
}

// The Workloads that the Job controls; the first is the one that counts.
std::vector<Slot> WorkloadsOf(const Objects& objects, const Head& job) {
  std::vector<Slot> slots;
  for (const Slot slot : objects.WorkloadsFor(job.uid)) {
    if (Controls(job, objects.head(slot))) slots.push_back(slot);
  }
  if (slots.size() < 2) return slots;
  const std::string name = WorkloadNameOf(job);
  std::ranges::sort(slots, {}, [&](Slot slot) {
    const Head& one = objects.head(slot);
    return std::tuple(one.name != name, one.creation, std::string_view(one.uid));
  });
  return slots;
}

// ---- Priority --------------------------------------------------------------------------------

struct Priority {
  std::string group;  // Of the class.
  std::string kind;
  std::string name;  // Empty: no class.
  int64_t value = 0;
};

// The class that counts where none is named: of several the lowest, as admission of pods has it.
const api::PriorityClass* DefaultClass(const Objects& objects) {
  const api::PriorityClass* found = nullptr;
  for (const Slot slot : objects.All(api::KindId::kPriorityClass)) {
    const api::PriorityClass* one = objects.priority_class(slot);
    if (one->global_default && (found == nullptr || one->value < found->value)) found = one;
  }
  return found;
}

// Nothing: its class isn't there.
std::optional<Priority> PriorityOf(const Objects& objects, const Head& head,
                                   const api::PodSpec& spec) {
  if (const auto own = api::Find(head.labels, api::kWorkloadPriorityLabel); own && !own->empty()) {
    const Slot slot = objects.Find(api::KindId::kWorkloadPriorityClass, {}, *own);
    if (slot == kNoSlot) return std::nullopt;
    return Priority{std::string(kOwnClassGroup), "WorkloadPriorityClass", std::string(*own),
                    objects.workload_class(slot)->value};
  }
  const api::PriorityClass* found = nullptr;
  if (spec.priority_class_name.empty()) {
    found = DefaultClass(objects);
    if (found == nullptr) return Priority{};
  } else {
    const Slot slot = objects.Find(api::KindId::kPriorityClass, {}, spec.priority_class_name);
    if (slot == kNoSlot) return std::nullopt;
    found = objects.priority_class(slot);
  }
  return Priority{"scheduling.k8s.io", "PriorityClass", found->meta.name, found->value};
}

std::string PriorityText(const Priority& priority) {
  std::string text;
  if (!priority.name.empty()) {
    text = fmt::format(R"("priorityClassRef":{{"group":"{}","kind":"{}","name":{}}},)",
                       priority.group, priority.kind, client::JsonString(priority.name));
  }
  return text + fmt::format(R"("priority":{})", priority.value);
}

// How many pods have a place.
int64_t PlacesIn(const api::TopologyAssignment& topology) {
  int64_t places = 0;
  for (const api::TopologyDomain& domain : topology.domains) places += domain.count;
  return places;
}

// ---- The plan --------------------------------------------------------------------------------

class Planner {
 public:
  Planner(const Objects& objects, Slot slot, bool busy, const ReadSince& read, Instant now)
      : objects_(objects),
        head_(objects.head(slot)),
        job_(*objects.job(slot)),
        spec_(*objects.template_spec(slot)),
        busy_(busy),
        read_(read),
        now_(now) {}

  Plan Run();

 private:
  void FindOwn();
  void Make();
  void LackClass();
  bool Contradicts();
  void TellIgnored(Write& write) const;
  void LackFlavor(const std::string& name);
  void Stop(std::string why);
  void Remake();
  void Follow();
  void Start();
  void LetGo();
  void Leave();
  void Protect();
  void LetEnd();
  void Release(const api::Condition& evicted);
  bool SetPodsReady(std::vector<api::Condition>& conditions) const;
  void Report();
  void KeepInTopology();
  void Displace(std::string_view wrong);
  void ReadFirst(api::KindId kind, std::string namespace_name, std::string name);
  void Finish(std::string_view reason, std::string message);
  void Status(const std::vector<api::Condition>& conditions, std::string more, Told told);
  [[nodiscard]] std::string Injected() const;
  [[nodiscard]] bool IsMarked() const;
  bool IsRestored();
  bool IsUngated();
  [[nodiscard]] bool Idle() const;
  [[nodiscard]] bool HasNoPods() const;
  [[nodiscard]] bool Matches() const;
  [[nodiscard]] std::string PodSetText() const;
  [[nodiscard]] std::optional<PodSettings> SettingsWith(const api::PodSetAssignment& assignment);
  [[nodiscard]] bool AddFlavor(const std::string& name, PodSettings& settings);
  [[nodiscard]] bool AddChecks(const std::string& pod_set, PodSettings& settings);
  [[nodiscard]] Write JobPatch(std::string members, Told told) const;
  // True when it changes more than times.
  bool Set(std::vector<api::Condition>& conditions, std::string_view type, bool status,
           std::string_view reason, std::string message) const;

  [[nodiscard]] bool Is(std::string_view type) const { return IsTrue(own_->conditions, type); }
  // What the Job says may be what its Workload gave it.
  [[nodiscard]] bool given() const { return reserved() || IsMarked(); }
  // It holds quota, or what is left of having held it.
  [[nodiscard]] bool reserved() const { return Is(kQuotaReserved) || own_->admission.has_value(); }
  [[nodiscard]] const api::WorkloadPodSet& pod_set() const { return own_->pod_sets.front(); }
  // Its priority is of that class, or of none as well.
  [[nodiscard]] bool IsOf(const Priority& priority) const {
    return own_->priority_class == priority.name && own_->priority_class_group == priority.group;
  }
  [[nodiscard]] std::string title() const {
    return own_head_->namespace_name + "/" + own_head_->name;
  }

  const Objects& objects_;
  const Head& head_;
  const api::Job& job_;
  const api::PodSpec& spec_;
  const bool busy_;
  const ReadSince& read_;
  const Instant now_;
  const Head* own_head_ = nullptr;  // Of the Job's Workload, if there is one.
  const api::Workload* own_ = nullptr;
  Plan plan_;
};

Plan Planner::Run() {
  FindOwn();
  const bool leaves = own_ != nullptr && own_head_->deletion.has_value();
  if (head_.deletion.has_value()) {
    // Nothing is made or restored for one that goes; its pods may stay a while.
    if (leaves && HasNoPods()) LetEnd();
  } else if (leaves) {
    Leave();
  } else if (const api::Condition* end = EndOf(job_)) {
    if (own_ != nullptr && !Is(kFinished)) {
      Finish(end->type == "Complete" ? "Succeeded" : "Failed", end->message);
    } else if (own_ != nullptr) {
      LetEnd();
    }
  } else if (QueueNameOf(head_).empty()) {
    // It was taken out of its queue.
    if (own_ != nullptr && !Is(kFinished) && Idle() && (!given() || IsRestored()))
      plan_.writes.push_back(DeleteSeen(*own_head_, {}));
  } else if (own_ == nullptr) {
    Make();
  } else if (Is(kFinished)) {
    // What follows in its place, if anything, asks for what the Job came with.
    Stop(fmt::format("Workload {} is over", title()));
    if (job_.suspend && IsRestored() && Idle()) LetEnd();
  } else if (!own_head_->HasFinalizer(api::kInUseFinalizer)) {
    Protect();
  } else if (Is(kEvicted) && reserved()) {
    LetGo();
  } else if (job_.suspend && IsMarked()) {
    IsRestored();
  } else if (!Matches()) {
    Remake();
  } else if (!Is(kAdmitted) || !reserved()) {
    job_.suspend ? Follow() : Stop("Not admitted by its queue");
  } else {
    job_.suspend ? Start() : Report();
    if (!job_.suspend) KeepInTopology();
  }
  return std::move(plan_);
}

// The Workload that the Job controls; of several, which only others make, one is left.
void Planner::FindOwn() {
  const std::vector<Slot> slots = WorkloadsOf(objects_, head_);
  if (slots.empty()) return;
  own_head_ = &objects_.head(slots.front());
  own_ = objects_.workload(slots.front());
  for (const Slot slot : std::span(slots).subspan(1)) {
    const Head& extra = objects_.head(slot);
    if (!extra.deletion.has_value()) {
      plan_.writes.push_back(DeleteSeen(extra, {}));
    } else if (extra.HasFinalizer(api::kInUseFinalizer)) {
      // Nothing was started for it.
      plan_.writes.push_back(WithoutFinalizer(extra, api::kInUseFinalizer));
    }
  }
}

// Nothing of the Job runs, nor is about to.
bool Planner::Idle() const {
  return job_.suspend && job_.active == 0 && job_.terminating == 0 && HasNoPods();
}

// Nor of one that is being deleted, whose status nobody may write any more, and which may leave its
// pods behind.
bool Planner::HasNoPods() const {
  return !busy_ && !HasLivePods(objects_, head_.namespace_name, head_.uid);
}

std::string Planner::PodSetText() const {
  std::string text =
      fmt::format(R"("podSets":[{{"name":"{}","count":{})", kPodSetName, CountOf(job_));
  if (const auto least = MinCountOf(job_)) text += fmt::format(R"(,"minCount":{})", *least);
  text += TopologyRequestText(api::TopologyRequestOf(job_.pod_template.annotations));
  return text + R"(,"template":)" + TemplateText(job_.pod_template) + "}]";
}

void Planner::Make() {
  if (!job_.suspend) return Stop("It has no Workload");
  if (!Idle() || !IsUngated()) return;
  if (Contradicts()) return;
  const std::optional<Priority> priority = PriorityOf(objects_, head_, spec_);
  if (!priority) return LackClass();
  const std::string name = WorkloadNameOf(head_);
  if (objects_.Find(api::KindId::kWorkload, head_.namespace_name, name) != kNoSlot)
    return plan_.WakeAt(now_ + kNameTakenEvery);
  Write write = CreateOf(api::KindId::kWorkload, head_.namespace_name, name);
  write.metadata = R"("labels":)" + MapText({{std::string(api::kJobUidLabel), head_.uid}}) +
                   R"(,"ownerReferences":)" + OwnersText({ControllerReference(head_)}) +
                   R"(,"finalizers":)" + ListText({std::string(api::kInUseFinalizer)});
  write.body = fmt::format(R"("spec":{{{},"queueName":{},{},)", PodSetText(),
                           client::JsonString(QueueNameOf(head_)), PriorityText(*priority));
  if (const auto limit = LimitOf(head_))
    write.body += fmt::format(R"("maximumExecutionTimeSeconds":{},)", *limit);
  write.body += R"("active":true})";
  write.told.push_back(
      {.reason = "CreatedWorkload",
       .message = fmt::format("Created Workload {}/{}", head_.namespace_name, name)});
  TellIgnored(write);
  plan_.writes.push_back(std::move(write));
}

// Its user is told at its Job: there is no Workload yet whose condition could say it.
void Planner::LackClass() {
  const auto own = api::Find(head_.labels, api::kWorkloadPriorityLabel);
  const bool is_own = own && !own->empty();
  plan_.told.push_back(
      {.warning = true,
       .reason = "FailedCreate",
       .message = fmt::format("Error creating: {} {} doesn't exist, which {} names: create it, or "
                              "name another",
                              is_own ? "WorkloadPriorityClass" : "PriorityClass",
                              is_own ? std::string(*own) : spec_.priority_class_name,
                              is_own ? fmt::format("its label {}", api::kWorkloadPriorityLabel)
                                     : "its spec.template.spec.priorityClassName")});
}

// What no Workload could say, and berth's own server refuses: a server without a webhook takes it.
// Told at the Job, whose Workload isn't made then.
bool Planner::Contradicts() {
  const api::FieldErrors errors =
      api::CheckTopologyAnnotations(job_.pod_template.annotations, CountOf(job_));
  if (errors.empty()) return false;
  std::string message = "Error creating: the Job can't be placed as its annotations say";
  for (const api::FieldError& error : errors) message += "; " + ToString(error);
  plan_.told.push_back({.warning = true, .reason = "FailedCreate", .message = std::move(message)});
  return true;
}

// Of what its own server refuses, too, and a Workload can be made without.
void Planner::TellIgnored(Write& write) const {
  const auto limit = api::Find(head_.labels, api::kMaxExecutionLabel);
  if (limit && !LimitOf(head_)) {
    write.told.push_back(
        {.warning = true,
         .reason = "Ignored",
         .message = fmt::format("The label {} is ignored, and the Job may run for ever: \"{}\" is "
                                "no number of seconds from 1 on",
                                api::kMaxExecutionLabel, *limit)});
  }
  const auto least = api::Find(job_.meta.annotations, api::kMinParallelismAnnotation);
  if (!least || MinCountOf(job_)) return;
  write.told.push_back(
      {.warning = true,
       .reason = "Ignored",
       .message = fmt::format("The annotation {} is ignored, and the Job starts with all of its "
                              "pods or none: \"{}\" is no number from 1 to {}",
                              api::kMinParallelismAnnotation, *least, CountOf(job_) - 1)});
}

Write Planner::JobPatch(std::string members, Told told) const {
  Write write = PatchOf(head_);
  write.body = R"("spec":{)" + std::move(members) + "}";
  if (!told.reason.empty()) write.told.push_back(std::move(told));
  return write;
}

// The template comes back by a write of its own: it can't change while the Job may run.
void Planner::Stop(std::string why) {
  if (job_.suspend) return;
  plan_.writes.push_back(
      JobPatch(R"("suspend":true)", {.reason = "Stopped", .message = std::move(why)}));
  if (own_ == nullptr || Injected().empty()) return;
  plan_.writes.back().metadata = fmt::format(R"("annotations":{{"{}":{}}})", kInjectedAnnotation,
                                             client::JsonString(own_head_->uid));
}

// The members of the Job's spec that give it back what it came with, each with a comma before.
std::string Planner::Injected() const {
  if (own_->pod_sets.empty()) return {};
  std::string members = TemplatePatch(job_.pod_template, spec_, SettingsOf(pod_set()));
  if (pod_set().min_count && job_.parallelism < pod_set().count)
    members += fmt::format(R"(,"parallelism":{})", pod_set().count);
  return members;
}

// It was stopped with what its Workload gave it. That may hold nothing any more by now, and what
// the Job says is not its user's wish.
bool Planner::IsMarked() const {
  return api::Find(job_.meta.annotations, kInjectedAnnotation) == own_head_->uid;
}

// Whether the Job has the template that it came with; else it gets it back.
bool Planner::IsRestored() {
  const std::string members = Injected();
  if (members.empty() && !IsMarked()) return true;
  // Its controller takes the start time away; until then the template can't change.
  if (job_.start_time.has_value()) return false;
  Write write = JobPatch(members.empty() ? members : members.substr(1), {});
  if (IsMarked())
    write.metadata = fmt::format(R"("annotations":{{"{}":null}})", kInjectedAnnotation);
  plan_.writes.push_back(std::move(write));
  return false;
}

// Whether the template is without the gate that it got by a Workload which nobody could ask any
// more what there was before: a next one would take it for its user's.
bool Planner::IsUngated() {
  PodSettings settings{.labels = OwnLabels(job_.pod_template.labels),
                       .annotations = job_.pod_template.annotations,
                       .selector = spec_.node_selector,
                       .tolerations = spec_.tolerations,
                       .gates = spec_.scheduling_gates};
  if (std::erase(settings.gates, kTopologyGate) == 0) return true;
  if (!job_.start_time.has_value()) {
    plan_.writes.push_back(
        JobPatch(TemplatePatch(job_.pod_template, spec_, settings).substr(1), {}));
  }
  return false;
}

// ---- What the Workload says --------------------------------------------------------------------

// Whether the Workload asks for what the Job is. Of one that holds quota the Job may have got
// another placement, and fewer pods.
bool Planner::Matches() const {
  if (own_->pod_sets.size() != 1 || own_->queue != QueueNameOf(head_)) return false;
  const api::WorkloadPodSet& set = pod_set();
  // Of one that runs it may be what an admission check wants of pods.
  const bool its_users = !reserved() || job_.suspend;
  if (its_users && set.topology != api::TopologyRequestOf(job_.pod_template.annotations))
    return false;
  if (!reserved()) {
    return set.count == CountOf(job_) && set.min_count == MinCountOf(job_) && *set.spec == spec_ &&
           set.labels == OwnLabels(job_.pod_template.labels) &&
           set.annotations == job_.pod_template.annotations;
  }
  // Fewer pods than it asks for it gets by the write that lets it run.
  const bool asks = job_.suspend && CountOf(job_) == set.count;
  if (!asks && CountOf(job_) != CountGivenTo(*own_)) return false;
  api::PodSpec placed = *set.spec;
  placed.node_selector = spec_.node_selector;
  placed.tolerations = spec_.tolerations;
  placed.scheduling_gates = spec_.scheduling_gates;
  return placed == spec_;
}

// The Workload is of another shape than the Job. One that holds quota can't change: it goes, and
// with it the quota, when nothing of the Job runs any more.
void Planner::Remake() {
  if (!job_.suspend) return Stop("It is not what its Workload asks for");
  if (!reserved() && !Contradicts()) return Follow();
  if (!Idle() || (reserved() && !IsRestored())) return;
  Write write = DeleteSeen(*own_head_, {});
  write.told.push_back(
      {.reason = "DeletedWorkload", .message = "Deleted Workload of another shape " + title()});
  plan_.writes.push_back(std::move(write));
}

// A Workload without quota says what the Job says; with it, what its priority class says, and which
// WorkloadPriorityClass that is. Without a class its priority is whatever was set.
void Planner::Follow() {
  const std::optional<Priority> priority = PriorityOf(objects_, head_, spec_);
  std::string members;
  const bool shape = !Matches();
  if (shape) {
    members =
        fmt::format(R"({},"queueName":{},)", PodSetText(), client::JsonString(QueueNameOf(head_)));
  }
  // Of one that holds quota none may come or go, and a PriorityClass stays.
  const bool of_workloads =
      priority && priority->group == kOwnClassGroup && own_->priority_class_group == kOwnClassGroup;
  if (priority && !IsOf(*priority) && (!reserved() || of_workloads)) {
    members += priority->name.empty() ? R"("priorityClassRef":null,"priority":0,)"
                                      : PriorityText(*priority) + ",";
  } else if (priority && !priority->name.empty() && IsOf(*priority) &&
             own_->priority != priority->value) {
    members += fmt::format(R"("priority":{},)", priority->value);
  }
  if (const auto limit = LimitOf(head_); limit != own_->max_execution && !reserved()) {
    members += fmt::format(R"("maximumExecutionTimeSeconds":{},)",
                           limit ? std::to_string(*limit) : "null");
  }
  if (members.empty()) return;
  members.pop_back();
  Write write = PatchOf(*own_head_);
  write.body = R"("spec":{)" + members + "}";
  write.told.push_back({.reason = "UpdatedWorkload", .message = "Updated Workload " + title()});
  if (shape) TellIgnored(write);
  plan_.writes.push_back(std::move(write));
}

bool Planner::Set(std::vector<api::Condition>& conditions, std::string_view type, bool status,
                  std::string_view reason, std::string message) const {
  return SetCondition(conditions,
                      {.type = std::string(type),
                       .status = status ? "True" : "False",
                       .reason = std::string(reason),
                       .message = std::move(message),
                       .observed_generation = own_->meta.generation},
                      now_);
}

void Planner::Status(const std::vector<api::Condition>& conditions, std::string more, Told told) {
  plan_.writes.push_back(StatusOf(
      *own_head_, fmt::format(R"({{"conditions":{}{}}})",
                              ConditionsText(conditions, ConditionTimes::kTransition), more)));
  if (!told.reason.empty()) plan_.writes.back().told.push_back(std::move(told));
}

// ---- Running ---------------------------------------------------------------------------------

// Who admitted it may have seen the flavor before we do.
void Planner::LackFlavor(const std::string& name) {
  const api::Condition* admitted = api::Find(own_->conditions, kAdmitted);
  const Instant due = admitted->transition + kFlavorComesWithin;
  if (now_ < due) return plan_.WakeAt(due);
  plan_.told.push_back(
      {.warning = true,
       .reason = "FailedStart",
       .message = fmt::format("Error starting: ResourceFlavor {} doesn't exist, of which Workload "
                              "{} has its quota: create it, or set spec.active of the Workload to "
                              "false and to true again for another",
                              name, title())});
}

// The flavor's nodes are where its pods run. False: it isn't seen yet, or the pods ask for other
// nodes, and the Workload is finished.
bool Planner::AddFlavor(const std::string& name, PodSettings& settings) {
  const Slot slot = objects_.Find(api::KindId::kResourceFlavor, {}, name);
  if (slot == kNoSlot) {
    LackFlavor(name);
    return false;
  }
  const api::ResourceFlavor& flavor = *objects_.flavor(slot);
  for (const auto& [key, value] : flavor.node_labels) {
    const auto asked = api::Find(settings.selector, key);
    if (asked && *asked != value) {
      Finish("FailedToStart",
             fmt::format("ResourceFlavor {} is of nodes with {}={}, its pods ask for {}={}", name,
                         key, value, key, *asked));
      return false;
    }
    Put(settings.selector, key, value);
  }
  for (const api::Toleration& toleration : flavor.tolerations) {
    if (std::ranges::find(settings.tolerations, toleration) == settings.tolerations.end())
      settings.tolerations.push_back(toleration);
  }
  return true;
}

// What admission checks want of the pods of a set. False: they contradict each other, the flavors
// or the template, and the Workload is finished.
bool Planner::AddChecks(const std::string& pod_set, PodSettings& settings) {
  for (const api::CheckState& check : own_->checks) {
    if (check.updates.empty()) continue;
    const auto updates = codec::Decoder().PodSetUpdates(check.updates);
    std::optional<std::string> wrong;
    if (!updates) wrong = updates.error().message;
    for (size_t i = 0; updates && i < updates->size() && !wrong; ++i) {
      if ((*updates)[i].name == pod_set) wrong = Add((*updates)[i], settings);
    }
    if (!wrong) continue;
    Finish("FailedToStart", fmt::format("in admission check \"{}\": {}", check.name, *wrong));
    return false;
  }
  return true;
}

// What pods with these flavors get; nothing when they can't have it.
std::optional<PodSettings> Planner::SettingsWith(const api::PodSetAssignment& assignment) {
  PodSettings settings = SettingsOf(pod_set());
  // Its user may have put it there, too.
  if (assignment.topology &&
      std::ranges::find(settings.gates, kTopologyGate) == settings.gates.end())
    settings.gates.emplace_back(kTopologyGate);
  for (const auto& [resource, name] : assignment.flavors) {
    if (!AddFlavor(name, settings)) return std::nullopt;
  }
  if (!AddChecks(assignment.name, settings)) return std::nullopt;
  return settings;
}

void Planner::Start() {
  if (!own_->admission || own_->admission->pod_sets.size() != 1) return;
  const api::PodSetAssignment& assignment = own_->admission->pod_sets.front();
  const std::optional<PodSettings> settings = SettingsWith(assignment);
  if (!settings) return;
  std::string members = TemplatePatch(job_.pod_template, spec_, *settings);
  // Its controller takes the start time away; until then the template can't change.
  if (!members.empty() && job_.start_time.has_value()) return;
  const int64_t count = assignment.count.value_or(pod_set().count);
  if (pod_set().min_count && CountOf(job_) != count)
    members += fmt::format(R"(,"parallelism":{})", count);
  plan_.writes.push_back(
      JobPatch(R"("suspend":false)" + members,
               {.reason = "Started",
                .message = "Admitted by ClusterQueue " + own_->admission->cluster_queue}));
}

// Whether all of its pods are ready or done, and if not, whether they once were since it was
// admitted. What succeeded counts before its Job has counted it: it was ready, and is not now.
bool Planner::SetPodsReady(std::vector<api::Condition>& conditions) const {
  const api::Condition* before = api::Find(own_->conditions, kPodsReady);
  const auto was = [&](std::string_view reason) {
    return before != nullptr && before->reason == reason;
  };
  const auto done = job_.succeeded + static_cast<int64_t>(job_.uncounted_succeeded.size());
  if (done + job_.ready >= CountOf(job_)) {
    const bool again = was(kWaitForRecovery) || was(kRecovered);
    return Set(conditions, kPodsReady, true, again ? kRecovered : "Started",
               "All pods reached readiness and the workload is running");
  }
  if (Is(kPodsReady) || was(kWaitForRecovery)) {
    return Set(conditions, kPodsReady, false, kWaitForRecovery,
               "At least one pod has failed, waiting for recovery");
  }
  return Set(conditions, kPodsReady, false, kWaitForStart, kNotReady);
}

// While it runs: how its pods are, and what it needs no more.
void Planner::Report() {
  std::vector<api::Condition> conditions = own_->conditions;
  const bool changed = SetPodsReady(conditions);
  std::string more;
  const int64_t before = own_->reclaimable.empty() ? 0 : own_->reclaimable.front().second;
  if (const int64_t count = ReclaimableOf(job_); count > before) {
    more = fmt::format(R"(,"reclaimablePods":[{{"name":"{}","count":{}}}])", kPodSetName, count);
  }
  if (changed || !more.empty()) Status(conditions, more, {});
  if (plan_.writes.empty()) Follow();
}

// Its pods are let go to the places that they have in a topology, and which of their nodes can't be
// used any more is told to who placed them.
void Planner::KeepInTopology() {
  if (!own_->admission || own_->admission->pod_sets.size() != 1) return;
  const api::PodSetAssignment& assignment = own_->admission->pod_sets.front();
  if (!assignment.topology) return Displace("has no topologyAssignment any more");
  const int64_t count = assignment.count.value_or(pod_set().count);
  const int64_t done = own_->reclaimable.empty() ? 0 : own_->reclaimable.front().second;
  if (const int64_t places = PlacesIn(*assignment.topology); places < count - done)
    return Displace(
        fmt::format("has a topologyAssignment of {} pods and not of {}", places, count));
  std::vector<PodRef> pods;
  for (const Slot slot : objects_.DependentsOf(head_)) {
    const PodRef pod = objects_.pod_ref(slot);
    if (pod.facts != nullptr) pods.push_back(pod);
  }
  const bool is_read = read_.version == own_head_->resource_version;
  auto [unhealthy, unheard] =
      UnhealthyNodesOf(*own_, objects_, pods, is_read ? read_ : ReadSince{});
  std::vector<std::string> told = own_->unhealthy_nodes;
  std::ranges::sort(told);
  // What else is written of it comes first, on this version.
  if (unhealthy != told && plan_.writes.empty()) {
    plan_.writes.push_back(
        StatusOf(*own_head_, R"({"unhealthyNodes":)" + UnhealthyNodesText(unhealthy) + "}"));
  }
  for (const std::string& node : unheard) ReadFirst(api::KindId::kNode, {}, node);
  Writes ends = EndStranded(*assignment.topology, pods);
  if (!ends.empty() && !(is_read && read_.workload)) {
    ReadFirst(api::KindId::kWorkload, own_head_->namespace_name, own_head_->name);
    ends.clear();
  }
  for (Write& write : ends) plan_.writes.push_back(std::move(write));
  // Nor is a pod let go to where nobody knows what is.
  unhealthy.insert(unhealthy.end(), unheard.begin(), unheard.end());
  for (Write& write : LetIntoTopology(*assignment.topology, unhealthy, std::move(pods)))
    plan_.writes.push_back(std::move(write));
}

// It was started by a topology, and somebody took away where pods of it are to stand: those that
// come would be gated for ever. It is placed anew, as when its nodes had failed.
void Planner::Displace(std::string_view wrong) {
  const auto gates = [](const api::PodSpec& spec) {
    return std::ranges::find(spec.scheduling_gates, kTopologyGate) != spec.scheduling_gates.end();
  };
  if (!plan_.writes.empty() || !gates(spec_) || gates(*pod_set().spec)) return;
  std::vector<api::Condition> conditions = own_->conditions;
  const std::string why = fmt::format(
      "its pods are placed by a topology, and its status.admission {}: it is placed anew", wrong);
  Set(conditions, kEvicted, true, "NodeFailures", why);
  Status(conditions, client::ResetOfEvicted(*own_, now_),
         {.warning = true, .reason = "EvictedDueToNodeFailures", .message = why});
}

// An object that it is to be known of before more is done.
void Planner::ReadFirst(api::KindId kind, std::string namespace_name, std::string name) {
  plan_.writes.push_back({.verb = Verb::kRead,
                          .kind = kind,
                          .namespace_name = std::move(namespace_name),
                          .name = std::move(name),
                          .uid = kind == api::KindId::kWorkload ? own_head_->uid : "",
                          .resource_version = own_head_->resource_version});
}

// ---- The end ---------------------------------------------------------------------------------

// Evicted, and with quota still.
void Planner::LetGo() {
  const api::Condition& evicted = *api::Find(own_->conditions, kEvicted);
  if (!job_.suspend) return Stop(evicted.message);
  if (Idle() && IsRestored()) Release(evicted);
}

// Its Workload is being deleted: the Job gets back what it came with, which nobody else knows, and
// what it has is held until nothing of it runs any more. What it says while it holds nothing is its
// user's. Out of its queue it runs on until its end.
void Planner::Leave() {
  if (EndOf(job_) != nullptr) return LetEnd();
  if (!job_.suspend) {
    if (!QueueNameOf(head_).empty()) Stop(fmt::format("Workload {} is being deleted", title()));
    return;
  }
  if (Idle() && (!given() || IsRestored())) LetEnd();
}

// Before the Job gets anything, what it came with is kept from being lost: an earlier version made
// Workloads without this, and anyone may take it away.
void Planner::Protect() {
  std::vector<std::string> finalizers = own_head_->finalizers;
  finalizers.emplace_back(api::kInUseFinalizer);
  Write write = PatchOf(*own_head_);
  write.metadata = R"("finalizers":)" + ListText(finalizers);
  plan_.writes.push_back(std::move(write));
}

void Planner::LetEnd() {
  if (own_head_->HasFinalizer(api::kInUseFinalizer))
    plan_.writes.push_back(WithoutFinalizer(*own_head_, api::kInUseFinalizer));
}

// Gives quota back. What preempted it, or took its nodes or the start of its group, leaves it free
// to be tried again; who evicted it for other reasons says when.
void Planner::Release(const api::Condition& evicted) {
  std::vector<api::Condition> conditions = own_->conditions;
  const bool again = evicted.reason == "Preempted" || evicted.reason == "NodeFailures" ||
                     evicted.reason == "WaitingForGang";
  const bool admitted = Is(kAdmitted);
  Set(conditions, kRequeued, again, evicted.reason, evicted.message);
  Set(conditions, kQuotaReserved, false, "PendingEvaluation", evicted.message);
  if (admitted)
    Set(conditions, kAdmitted, false, "NoReservation", "The workload has no reservation");
  if (api::Find(conditions, kPodsReady) != nullptr)
    Set(conditions, kPodsReady, false, kWaitForStart, kNotReady);
  Status(conditions, R"(,"admission":null)" + client::ExecutionText(*own_, now_), {});
}

void Planner::Finish(std::string_view reason, std::string message) {
  std::vector<api::Condition> conditions = own_->conditions;
  if (message.empty()) message = reason;
  Set(conditions, kFinished, true, reason, std::move(message));
  Status(
      conditions, {},
      {.reason = "FinishedWorkload", .message = fmt::format("Workload {} is finished", title())});
}

}  // namespace

std::string WorkloadNameOf(const Head& job) {
  const api::Kind& kind = api::KindOf(job.kind);
  const std::string hash =
      Sha1Hex(fmt::format("{}\n{}\n{}\n{}", kind.name, kind.group, job.name, job.uid));
  const std::string name = "job-" + job.name;
  return name.substr(0, kNameMax - 1 - kHashDigits) + "-" + hash.substr(0, kHashDigits);
}

Plan PlanWorkload(const Objects& objects, Slot job, bool busy, const ReadSince& read, Instant now) {
  CHECK(objects.job(job) != nullptr);
  return Planner(objects, job, busy, read, now).Run();
}

bool MayRun(const Objects& objects, Slot job) {
  const Head& head = objects.head(job);
  if (QueueNameOf(head).empty()) return true;
  const std::vector<Slot> slots = WorkloadsOf(objects, head);
  if (slots.empty()) return false;
  const api::Workload& own = *objects.workload(slots.front());
  if (objects.head(slots.front()).deletion.has_value()) return false;
  if (!IsTrue(own.conditions, kAdmitted) || IsTrue(own.conditions, kEvicted)) return false;
  return own.pod_sets.size() == 1 && CountOf(*objects.job(job)) <= CountGivenTo(own);
}

}  // namespace berth::controllers
