#include "controllers/job.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "api/json.h"
#include "api/names.h"
#include "codec/json.h"
#include "controllers/indexes.h"
#include "controllers/job_policy.h"

namespace berth::controllers {
namespace {

// Uids that a status may hold uncounted, so that it stays small.
constexpr size_t kUncountedMax = 500;
constexpr Duration kBackoff = Duration::Seconds(10);
constexpr Duration kBackoffMax = Duration::Minutes(10);
constexpr std::string_view kComplete = "Complete";
constexpr std::string_view kFailed = "Failed";
constexpr std::string_view kFailureTarget = "FailureTarget";
constexpr std::string_view kSuccessCriteriaMet = "SuccessCriteriaMet";
constexpr std::string_view kSuspended = "Suspended";
constexpr std::string_view kIndexFailures = "batch.kubernetes.io/job-index-failure-count";
constexpr std::string_view kIndexFailuresIgnored =
    "batch.kubernetes.io/job-index-ignored-failure-count";

bool Tracked(const PodRef& pod) { return pod.head->HasFinalizer(kTrackingFinalizer); }

bool Contains(const std::vector<std::string>& uids, const std::string& uid) {
  return std::ranges::binary_search(uids, uid);
}

Duration BackoffAfter(int64_t doublings) {
  return std::min(kBackoff * (int64_t{1} << std::min<int64_t>(doublings, 10)), kBackoffMax);
}

class JobPlanner {
 public:
  JobPlanner(const JobFacts& facts, Instant now, std::optional<FailureRecord>& remembered)
      : facts_(facts), job_(facts.job), after_(facts.job), now_(now), remembered_(remembered) {}

  Plan Run();

 private:
  void Sort();
  void MoveCounted(std::vector<std::string>& uncounted, int64_t& count);
  void FindFailedIndexes();
  void FindEnded();
  void NoteEnd(const PodRef& pod);
  void Remember(int64_t failures_before);
  void LetGo();
  [[nodiscard]] bool CountsAsFailed(const PodRef& pod) const;
  [[nodiscard]] bool IsLastOfIndex(const PodRef& pod) const;
  [[nodiscard]] bool BackoffLimitExceeded() const;
  void JudgeEnd();
  bool JudgeFailures();
  void End(std::string_view type, std::string_view reason, std::string message);
  void Finish();
  void DeleteActive();
  void Suspend();
  void StartClock();
  void Balance();
  [[nodiscard]] int64_t Wanted() const;
  void Shrink(int64_t surplus);
  void Grow(int64_t missing);
  void GrowIndexes(int64_t count);
  [[nodiscard]] Instant BackoffEnd() const;
  [[nodiscard]] Instant BackoffEndOf(int64_t index) const;
  void AddFailureCounts(int64_t index, api::StringMap& annotations) const;
  [[nodiscard]] Write NewPod(std::optional<int64_t> index) const;
  [[nodiscard]] std::string IndexedSpec(int64_t index) const;
  void Remove(const PodRef& pod);
  void Status();
  [[nodiscard]] std::optional<Told> Turn() const;
  void Expire();

  [[nodiscard]] int64_t Succeeded() const {
    if (job_.indexed) return completed_.size();
    return after_.succeeded + static_cast<int64_t>(after_.uncounted_succeeded.size());
  }
  [[nodiscard]] int64_t Failures() const {
    return after_.failed + static_cast<int64_t>(after_.uncounted_failed.size());
  }
  [[nodiscard]] int64_t completions() const { return job_.completions.value_or(1); }
  [[nodiscard]] bool counts_by_index() const {
    return job_.indexed && job_.backoff_limit_per_index.has_value();
  }
  // Of the Job as it is seen.
  [[nodiscard]] bool over() const {
    return IsTrue(job_.conditions, kComplete) || IsTrue(job_.conditions, kFailed);
  }
  [[nodiscard]] bool ending() const {
    return IsTrue(job_.conditions, kFailureTarget) || IsTrue(job_.conditions, kSuccessCriteriaMet);
  }
  [[nodiscard]] std::optional<int64_t> IndexOf(const PodRef& pod) const {
    const std::optional<int64_t> index = pod.facts->completion_index;
    return index && *index >= 0 && *index < completions() ? index : std::nullopt;
  }

  const JobFacts& facts_;
  const api::Job& job_;
  api::Job after_;  // The status that is to be written.
  const Instant now_;
  std::optional<FailureRecord>& remembered_;
  // When those ended that are not remembered yet.
  std::vector<Instant> failures_ended_;
  std::vector<Instant> successes_ended_;
  std::vector<PodRef> pods_;
  std::vector<PodRef> active_;
  int64_t terminating_ = 0;
  IndexSet completed_;
  IndexSet failed_;
  // By index: the failed pod that carries its count until another does.
  std::map<int64_t, PodRef> last_failed_;
  bool moving_ = false;  // Pods are created or removed: the status follows.
  Plan plan_;
};

Plan JobPlanner::Run() {
  if (!job_.managed_by.empty() && job_.managed_by != "kubernetes.io/job-controller") return {};
  Sort();
  // What it adopts is counted when it has the finalizer.
  const bool adopts = !pods_.empty() && std::ranges::any_of(facts_.orphans, [&](const PodRef& pod) {
    return pod.head == pods_.back().head;
  });
  if (adopts) return std::move(plan_);
  if (over()) {
    LetGo();
    Expire();
    remembered_.reset();
    return std::move(plan_);
  }
  std::ranges::sort(after_.uncounted_succeeded);
  std::ranges::sort(after_.uncounted_failed);
  MoveCounted(after_.uncounted_succeeded, after_.succeeded);
  MoveCounted(after_.uncounted_failed, after_.failed);
  FindFailedIndexes();
  const int64_t failures_before = Failures();
  FindEnded();
  Remember(failures_before);
  LetGo();
  if (facts_.head.deletion.has_value()) {
    Status();
    return std::move(plan_);
  }
  JudgeEnd();
  if (IsTrue(after_.conditions, kFailureTarget) || IsTrue(after_.conditions, kSuccessCriteriaMet)) {
    DeleteActive();
    Finish();
  } else if (job_.suspend) {
    Suspend();
  } else if (!facts_.held) {
    StartClock();
    Balance();
  }
  Status();
  return std::move(plan_);
}

void JobPlanner::Sort() {
  completed_ = IndexSet::Parse(job_.completed_indexes, completions());
  pods_ =
      over()
          ? facts_.owned
          : ClaimPods(
                {.selector = job_.selector, .owner = facts_.head, .finalizer = kTrackingFinalizer},
                facts_.owned, facts_.orphans, plan_.writes);
  for (const PodRef& pod : pods_) {
    if (pod.active()) active_.push_back(pod);
    if (pod.head->deletion.has_value() && !pod.facts->terminal()) ++terminating_;
  }
}

// A uid whose pod has lost its finalizer, or is gone, is counted.
void JobPlanner::MoveCounted(std::vector<std::string>& uncounted, int64_t& count) {
  std::set<std::string_view> held;
  for (const PodRef& pod : pods_) {
    if (Tracked(pod)) held.insert(pod.head->uid);
  }
  count += static_cast<int64_t>(
      std::erase_if(uncounted, [&](const std::string& uid) { return !held.contains(uid); }));
}

// A pod that is being deleted counts as failed: it might never come to say so itself.
bool JobPlanner::CountsAsFailed(const PodRef& pod) const {
  if (pod.facts->phase == PodPhase::kFailed) return true;
  if (job_.replace_failed_only) return false;
  return pod.head->deletion.has_value() && pod.facts->phase != PodPhase::kSucceeded;
}

// With a limit for each index: those that reached it, and whose pods tell of the failures so far.
void JobPlanner::FindFailedIndexes() {
  if (!counts_by_index()) return;
  failed_ = IndexSet::Parse(job_.failed_indexes, completions());
  IndexSet done = completed_;
  for (const PodRef& pod : pods_) {
    const std::optional<int64_t> index = IndexOf(pod);
    if (!index || !Tracked(pod)) continue;
    if (pod.facts->phase == PodPhase::kSucceeded) done.Add(*index);
    if (!CountsAsFailed(pod)) continue;
    const FailureVerdict verdict = JudgeFailure(job_.failure_rules, pod);
    if (verdict.action == api::FailureAction::kFailIndex ||
        (verdict.counts() && pod.facts->index_failures >= *job_.backoff_limit_per_index)) {
      failed_.Add(*index);
    }
  }
  if (ending()) return;
  for (const PodRef& pod : active_) {
    if (const std::optional<int64_t> index = IndexOf(pod)) done.Add(*index);
  }
  const auto rank = [](const PodRef& pod) {
    return std::tuple(pod.facts->index_failures + pod.facts->index_failures_ignored,
                      pod.facts->finished, std::string_view(pod.head->name));
  };
  for (const PodRef& pod : pods_) {
    const std::optional<int64_t> index = IndexOf(pod);
    if (!index || !Tracked(pod) || !CountsAsFailed(pod)) continue;
    if (done.Contains(*index) || failed_.Contains(*index)) continue;
    const auto [at, fresh] = last_failed_.emplace(*index, pod);
    if (!fresh && rank(at->second) < rank(pod)) at->second = pod;
  }
}

bool JobPlanner::IsLastOfIndex(const PodRef& pod) const {
  const std::optional<int64_t> index = IndexOf(pod);
  const auto at = index ? last_failed_.find(*index) : last_failed_.end();
  return at != last_failed_.end() && at->second.head == pod.head;
}

void JobPlanner::FindEnded() {
  const bool failing = IsTrue(job_.conditions, kFailureTarget);
  const bool done = IsTrue(job_.conditions, kSuccessCriteriaMet);
  std::vector<std::string> succeeded;
  std::vector<std::string> failed;
  for (const PodRef& pod : pods_) {
    const std::string& uid = pod.head->uid;
    if (!Tracked(pod) || Contains(after_.uncounted_succeeded, uid) ||
        Contains(after_.uncounted_failed, uid)) {
      if (!remembered_.has_value() && (Tracked(pod) || pod.facts->terminal())) NoteEnd(pod);
      continue;
    }
    const size_t total = after_.uncounted_succeeded.size() + after_.uncounted_failed.size() +
                         succeeded.size() + failed.size();
    if (total >= kUncountedMax) break;
    const std::optional<int64_t> index = pod.facts->completion_index;
    const bool indexed = index.has_value() && *index >= 0 && *index < completions();
    if (pod.facts->phase == PodPhase::kSucceeded) {
      if (!job_.indexed) {
        succeeded.push_back(uid);
        NoteEnd(pod);
      } else if (indexed) {
        if (!completed_.Contains(*index)) NoteEnd(pod);
        completed_.Add(*index);
      }
    } else if ((CountsAsFailed(pod) && !done) || (failing && pod.head->deletion.has_value())) {
      const bool counts = JudgeFailure(job_.failure_rules, pod).counts() && !IsLastOfIndex(pod);
      if ((job_.indexed && !indexed) || !counts) continue;
      failed.push_back(uid);
      NoteEnd(pod);
    }
  }
  const auto merge = [](std::vector<std::string>& into, const std::vector<std::string>& from) {
    into.insert(into.end(), from.begin(), from.end());
    std::ranges::sort(into);
  };
  merge(after_.uncounted_succeeded, succeeded);
  merge(after_.uncounted_failed, failed);
}

void JobPlanner::NoteEnd(const PodRef& pod) {
  if (pod.facts->phase == PodPhase::kSucceeded) {
    successes_ended_.push_back(pod.facts->finished);
  } else if (JudgeFailure(job_.failure_rules, pod).counts()) {
    failures_ended_.push_back(pod.facts->finished);
  }
}

// A status that was not written is planned again, with the same ends: what was added to the counts
// then is known by their sum.
void JobPlanner::Remember(int64_t failures_before) {
  FailureRecord next = remembered_.value_or(FailureRecord{});
  auto added = static_cast<int64_t>(failures_ended_.size());
  if (!successes_ended_.empty()) {
    const Instant success = *std::ranges::max_element(successes_ended_);
    std::erase_if(failures_ended_, [&](Instant end) { return end <= success; });
    added = static_cast<int64_t>(failures_ended_.size());
    next = {};
  } else if (remembered_.has_value()) {
    added = std::max<int64_t>(0, Failures() - std::max(remembered_->counted, failures_before));
  }
  next.failures += added;
  for (const Instant end : failures_ended_) next.last = std::max(next.last, end);
  next.counted = Failures();
  remembered_ = next;
  if (next.counted == 0) remembered_.reset();
}

// Takes the finalizer from pods that the written status accounts for, and from those that none
// will.
void JobPlanner::LetGo() {
  const bool gone = facts_.head.deletion.has_value() || over();
  const bool done = IsTrue(job_.conditions, kSuccessCriteriaMet);
  const IndexSet written = IndexSet::Parse(job_.completed_indexes, completions());
  for (const PodRef& pod : pods_) {
    if (!Tracked(pod)) continue;
    const auto named = [&](const std::vector<std::string>& uids) {
      return std::ranges::find(uids, pod.head->uid) != uids.end();
    };
    const std::optional<int64_t> index = pod.facts->completion_index;
    const bool unknown_index =
        job_.indexed && (!index.has_value() || *index < 0 || *index >= completions());
    bool go = gone || named(job_.uncounted_succeeded) || named(job_.uncounted_failed);
    if (job_.indexed && pod.facts->phase == PodPhase::kSucceeded) {
      go = go || unknown_index || written.Contains(*index);
    }
    go = go || (unknown_index && CountsAsFailed(pod));
    go = go || (done && pod.head->deletion.has_value());
    go = go || (CountsAsFailed(pod) && !IsLastOfIndex(pod) &&
                !JudgeFailure(job_.failure_rules, pod).counts());
    if (go) plan_.writes.push_back(WithoutTracking(*pod.head));
  }
}

// Containers that the kubelet restarts count as failures too.
bool JobPlanner::BackoffLimitExceeded() const {
  if (Failures() > job_.backoff_limit) return true;
  if (job_.pod_template.restart_policy != "OnFailure") return false;
  int64_t restarts = 0;
  for (const PodRef& pod : pods_) {
    if (pod.facts->phase == PodPhase::kRunning || pod.facts->phase == PodPhase::kPending) {
      restarts += pod.facts->restarts;
    }
  }
  return job_.backoff_limit == 0 ? restarts > 0 : restarts >= job_.backoff_limit;
}

void JobPlanner::End(std::string_view type, std::string_view reason, std::string message) {
  SetCondition(after_.conditions,
               {.type = std::string(type),
                .status = "True",
                .reason = std::string(reason),
                .message = std::move(message)},
               now_);
}

void JobPlanner::JudgeEnd() {
  if (IsTrue(after_.conditions, kFailureTarget) || IsTrue(after_.conditions, kSuccessCriteriaMet)) {
    return;
  }
  if (JudgeFailures()) return;
  if (BackoffLimitExceeded()) {
    return End(kFailureTarget, "BackoffLimitExceeded",
               "Job has reached the specified backoff limit");
  }
  if (job_.active_deadline_seconds.has_value() && job_.start_time.has_value() && !job_.suspend) {
    const Instant deadline = *job_.start_time + Duration::Seconds(*job_.active_deadline_seconds);
    if (deadline <= now_) {
      return End(kFailureTarget, "DeadlineExceeded",
                 "Job was active longer than specified deadline");
    }
    plan_.WakeAt(deadline);
  }
  if (job_.max_failed_indexes && failed_.size() > *job_.max_failed_indexes) {
    return End(kFailureTarget, "MaxFailedIndexesExceeded",
               "Job has exceeded the specified maximal number of failed indexes");
  }
  if (failed_.size() > 0 && failed_.size() + completed_.size() >= completions())
    return End(kFailureTarget, "FailedIndexes", "Job has failed indexes");
  if (job_.indexed && job_.success_rules) {
    const auto met = SuccessMet(*job_.success_rules, completed_, completions());
    if (met) return End(kSuccessCriteriaMet, "SuccessPolicy", *met);
  }
  const bool complete = job_.completions.has_value()
                            ? Succeeded() >= *job_.completions
                            : Succeeded() > 0 && active_.empty() && terminating_ == 0;
  if (complete) {
    End(kSuccessCriteriaMet, "CompletionsReached", "Reached expected number of succeeded pods");
  }
}

// Whether a pod failed in a way that fails the Job.
bool JobPlanner::JudgeFailures() {
  if (job_.failure_rules.empty()) return false;
  for (const PodRef& pod : pods_) {
    if (!CountsAsFailed(pod)) continue;
    FailureVerdict verdict = JudgeFailure(job_.failure_rules, pod);
    if (verdict.action != api::FailureAction::kFailJob) continue;
    End(kFailureTarget, "PodFailurePolicy", std::move(verdict.why));
    return true;
  }
  return false;
}

// The last word is spoken when no pod runs any more and each one is counted.
void JobPlanner::Finish() {
  const bool settled = active_.empty() && terminating_ == 0 && after_.uncounted_succeeded.empty() &&
                       after_.uncounted_failed.empty() && std::ranges::none_of(pods_, Tracked);
  if (!settled) return;
  const bool success = IsTrue(after_.conditions, kSuccessCriteriaMet);
  const api::Condition why =
      *api::Find(after_.conditions, success ? kSuccessCriteriaMet : kFailureTarget);
  End(success ? kComplete : kFailed, why.reason, why.message);
  if (success) after_.completion_time = now_;
  // Its pods may have ended before the write that says it began arrived.
  if (!after_.start_time.has_value()) after_.start_time = now_;
}

void JobPlanner::DeleteActive() {
  for (const PodRef& pod : active_) plan_.writes.push_back(DeleteOf(*pod.head, "Background"));
}

// Takes a pod away that shall not count: first its finalizer, then the pod.
void JobPlanner::Remove(const PodRef& pod) {
  plan_.writes.push_back(Tracked(pod) ? WithoutTracking(*pod.head)
                                      : DeleteOf(*pod.head, "Background"));
  moving_ = true;
}

void JobPlanner::Suspend() {
  for (const PodRef& pod : active_) Remove(pod);
  SetCondition(after_.conditions,
               {.type = std::string(kSuspended),
                .status = "True",
                .reason = "JobSuspended",
                .message = "Job suspended"},
               now_);
  after_.start_time.reset();
}

void JobPlanner::StartClock() {
  if (IsTrue(after_.conditions, kSuspended)) {
    SetCondition(after_.conditions,
                 {.type = std::string(kSuspended),
                  .status = "False",
                  .reason = "JobResumed",
                  .message = "Job resumed"},
                 now_);
    after_.start_time.reset();
  }
  if (after_.start_time.has_value()) return;
  after_.start_time = now_;
  if (job_.active_deadline_seconds.has_value()) {
    plan_.WakeAt(now_ + Duration::Seconds(*job_.active_deadline_seconds));
  }
}

int64_t JobPlanner::Wanted() const {
  const auto active = static_cast<int64_t>(active_.size());
  // A work queue starts no more pods once one has succeeded: the others know when they are done.
  if (!job_.completions.has_value()) {
    return Succeeded() > 0 ? std::min(active, job_.parallelism) : job_.parallelism;
  }
  return std::max<int64_t>(0, std::min(job_.parallelism, *job_.completions - Succeeded()));
}

void JobPlanner::Balance() {
  if (job_.indexed) {
    // One pod an index, the oldest; none for indexes that are done or out of range.
    std::ranges::sort(active_, [](const PodRef& a, const PodRef& b) {
      return std::tie(a.head->creation, a.head->uid) < std::tie(b.head->creation, b.head->uid);
    });
    std::set<int64_t> seen;
    std::erase_if(active_, [&](const PodRef& pod) {
      const int64_t index = pod.facts->completion_index.value_or(-1);
      const bool keep = index >= 0 && index < completions() && !completed_.Contains(index) &&
                        seen.insert(index).second;
      if (!keep) Remove(pod);
      return !keep;
    });
  }
  const int64_t difference = Wanted() - static_cast<int64_t>(active_.size());
  if (difference < 0) return Shrink(-difference);
  const int64_t waits_for = job_.replace_failed_only ? terminating_ : 0;
  if (difference > waits_for) Grow(difference - waits_for);
}

void JobPlanner::Shrink(int64_t surplus) {
  const int64_t count = std::min(surplus, kPodsBurst);
  SortForDeletion(active_, count, [](std::string_view) { return int64_t{0}; }, now_);
  for (int64_t i = 0; i < count; ++i) {
    Remove(active_[static_cast<size_t>(i)]);
  }
}

// When the next pod may start: each failure since the last success doubles the wait.
Instant JobPlanner::BackoffEnd() const {
  if (!remembered_.has_value() || remembered_->failures == 0) return {};
  return remembered_->last + BackoffAfter(remembered_->failures - 1);
}

void JobPlanner::Grow(int64_t missing) {
  const Instant ready = counts_by_index() ? Instant{} : BackoffEnd();
  if (ready > now_) return plan_.WakeAt(ready);
  const int64_t count = std::min(missing, facts_.trouble.has_value() ? 1 : kPodsBurst);
  if (job_.indexed) return GrowIndexes(count);
  moving_ = true;
  plan_.writes.insert(plan_.writes.end(), static_cast<size_t>(count), NewPod(std::nullopt));
}

void JobPlanner::GrowIndexes(int64_t count) {
  IndexSet taken = failed_;
  for (const PodRef& pod : active_) taken.Add(*pod.facts->completion_index);
  if (job_.replace_failed_only) {
    for (const PodRef& pod : pods_) {
      const std::optional<int64_t> index = IndexOf(pod);
      if (index && pod.head->deletion.has_value() && !pod.facts->terminal()) taken.Add(*index);
    }
  }
  for (const int64_t index : completed_.FirstMissing(taken, count, completions())) {
    const Instant ready = BackoffEndOf(index);
    if (ready > now_) {
      plan_.WakeAt(ready);
      continue;
    }
    moving_ = true;
    plan_.writes.push_back(NewPod(index));
  }
}

// When the next pod of an index may start that counts its failures itself.
Instant JobPlanner::BackoffEndOf(int64_t index) const {
  const auto at = last_failed_.find(index);
  if (at == last_failed_.end()) return {};
  const PodFacts& facts = *at->second.facts;
  return facts.finished + BackoffAfter(facts.index_failures + facts.index_failures_ignored);
}

void JobPlanner::AddFailureCounts(int64_t index, api::StringMap& annotations) const {
  int64_t failures = 0;
  int64_t ignored = 0;
  if (const auto at = last_failed_.find(index); at != last_failed_.end()) {
    const PodFacts& facts = *at->second.facts;
    const bool counts = JudgeFailure(job_.failure_rules, at->second).counts();
    failures = facts.index_failures + (counts ? 1 : 0);
    ignored = facts.index_failures_ignored + (counts ? 0 : 1);
  }
  Put(annotations, kIndexFailures, std::to_string(failures));
  if (ignored > 0) Put(annotations, kIndexFailuresIgnored, std::to_string(ignored));
}

Write JobPlanner::NewPod(std::optional<int64_t> index) const {
  PodExtras extras{.finalizers = {std::string(kTrackingFinalizer)}};
  std::string base = facts_.head.name + "-";
  if (index.has_value()) {
    Put(extras.labels, kCompletionIndexKey, std::to_string(*index));
    Put(extras.annotations, kCompletionIndexKey, std::to_string(*index));
    if (counts_by_index()) AddFailureCounts(*index, extras.annotations);
    extras.spec = IndexedSpec(*index);
    base += std::to_string(*index) + "-";
  }
  Write write = PodOf(job_.pod_template, facts_.head.namespace_name,
                      ControllerReference(facts_.head), extras);
  write.name = api::GeneratedNameBase(base);
  write.generate = true;
  return write;
}

// Tells each container its index, and the pod its host name.
std::string JobPlanner::IndexedSpec(int64_t index) const {
  constexpr std::string_view kVariable = "JOB_COMPLETION_INDEX";
  const Result<api::Json> parsed = codec::ParseJson(job_.pod_template.spec.view());
  if (!parsed || !parsed->is_object()) return std::string(job_.pod_template.spec.view());
  api::Json spec = *parsed;
  const api::Json variable = {
      {"name", kVariable},
      {"valueFrom",
       {{"fieldRef",
         {{"fieldPath", fmt::format("metadata.annotations['{}']", kCompletionIndexKey)}}}}}};
  for (const std::string_view list : {"containers", "initContainers"}) {
    api::Json* containers = spec.as_object().if_contains(list);
    if (containers == nullptr || !containers->is_array()) continue;
    for (api::Json& container : containers->as_array()) {
      if (!container.is_object()) continue;
      api::Json& env = container.as_object()["env"];
      if (!env.is_array()) env.emplace_array();
      const bool known = std::ranges::any_of(env.as_array(), [&](const api::Json& entry) {
        const api::JsonObject* members = entry.if_object();
        return members != nullptr && members->contains("name") &&
               members->at("name") == api::Json(kVariable);
      });
      if (!known) env.as_array().push_back(variable);
    }
  }
  if (!spec.as_object().contains("hostname")) {
    spec.as_object()["hostname"] = fmt::format("{}-{}", facts_.head.name, index);
  }
  return codec::PrintJson(spec);
}

void JobPlanner::Expire() {
  if (!job_.ttl_seconds_after_finished.has_value() || facts_.head.deletion.has_value()) return;
  const api::Condition* end =
      api::Find(job_.conditions, IsTrue(job_.conditions, kComplete) ? kComplete : kFailed);
  const Instant due = end->transition + Duration::Seconds(*job_.ttl_seconds_after_finished);
  if (due > now_) return plan_.WakeAt(due);
  plan_.writes.push_back(DeleteOf(facts_.head, "Foreground"));
}

std::string TimeText(const std::optional<Instant>& time) {
  return time.has_value() ? fmt::format(R"("{}")", client::SecondsTime(*time)) : "null";
}

void JobPlanner::Status() {
  after_.active = static_cast<int64_t>(active_.size());
  after_.terminating = terminating_;
  after_.ready = std::ranges::count_if(active_, [](const PodRef& pod) { return pod.facts->ready; });
  if (job_.indexed) {
    after_.completed_indexes = completed_.ToString();
    after_.succeeded = completed_.size();
  }
  if (counts_by_index()) after_.failed_indexes = failed_.ToString();
  if (after_ == job_) return;
  // What is written next would be overtaken by the pods that are under way.
  const bool counts_only = after_.conditions == job_.conditions &&
                           after_.start_time == job_.start_time &&
                           after_.failed_indexes == job_.failed_indexes &&
                           after_.uncounted_succeeded == job_.uncounted_succeeded &&
                           after_.uncounted_failed == job_.uncounted_failed;
  if (moving_ && counts_only && !facts_.trouble.has_value()) return;
  std::string status = fmt::format(
      R"({{"active":{},"ready":{},"terminating":{},"succeeded":{},"failed":{},"startTime":{},)"
      R"("uncountedTerminatedPods":{{"succeeded":{},"failed":{}}})",
      after_.active, after_.ready, after_.terminating, after_.succeeded, after_.failed,
      TimeText(after_.start_time), ListText(after_.uncounted_succeeded),
      ListText(after_.uncounted_failed));
  if (job_.indexed) status += fmt::format(R"(,"completedIndexes":"{}")", after_.completed_indexes);
  if (counts_by_index()) status += fmt::format(R"(,"failedIndexes":"{}")", after_.failed_indexes);
  if (after_.completion_time.has_value()) {
    status += R"(,"completionTime":)" + TimeText(after_.completion_time);
  }
  if (after_.conditions != job_.conditions) {
    status += R"(,"conditions":)" + ConditionsText(after_.conditions, ConditionTimes::kProbe);
  }
  plan_.writes.push_back(StatusOf(facts_.head, status + "}"));
  if (std::optional<Told> turn = Turn()) plan_.writes.back().told.push_back(std::move(*turn));
}

// What the conditions of the status come to, of which there is an Event.
std::optional<Told> JobPlanner::Turn() const {
  const auto turned = [&](std::string_view type) {
    return IsTrue(after_.conditions, type) != IsTrue(job_.conditions, type);
  };
  if (turned(kComplete)) return Told{.reason = "Completed", .message = "Job completed"};
  if (turned(kFailed)) {
    const api::Condition& failed = *api::Find(after_.conditions, kFailed);
    return Told{.warning = true, .reason = failed.reason, .message = failed.message};
  }
  if (!turned(kSuspended)) return std::nullopt;
  return job_.suspend ? Told{.reason = "Suspended", .message = "Job suspended"}
                      : Told{.reason = "Resumed", .message = "Job resumed"};
}

}  // namespace

Write WithoutTracking(const Head& pod) { return WithoutFinalizer(pod, kTrackingFinalizer); }

Plan PlanJob(const JobFacts& facts, Instant now, std::optional<FailureRecord>& remembered) {
  return JobPlanner(facts, now, remembered).Run();
}

Plan PlanJob(const JobFacts& facts, Instant now) {
  std::optional<FailureRecord> nothing;
  return PlanJob(facts, now, nothing);
}

}  // namespace berth::controllers
