#include "controllers/cron_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "api/cron.h"
#include "api/timestamp.h"

namespace berth::controllers {
namespace {

constexpr std::string_view kScheduledAt = "batch.kubernetes.io/cronjob-scheduled-timestamp";
// So many starts that were missed are told of.
constexpr int kManyMissed = 100;

// "Complete" or "Failed"; empty: it isn't over.
std::string_view EndOf(const api::Job& job) {
  for (const std::string_view type : {"Complete", "Failed"}) {
    const api::Condition* condition = api::Find(job.conditions, type);
    if (condition != nullptr && condition->status == "True") return type;
  }
  return {};
}

std::optional<Instant> ScheduledAt(const api::Job& job) {
  const auto text = api::Find(job.meta.annotations, kScheduledAt);
  if (!text) return std::nullopt;
  const Result<Instant> at = api::ParseTimestamp(*text);
  return at ? std::optional(*at) : std::nullopt;
}

// In which it is scheduled, and whose clock its Jobs' times are told by: null where it isn't known.
const api::TimeZone* ZoneOf(const api::CronJob& cron, const api::TimeZones& zones) {
  return zones.Find(cron.time_zone ? std::string_view(*cron.time_zone) : "UTC");
}

struct Schedule {
  api::CronSchedule times;
  const api::TimeZone* zone = nullptr;

  [[nodiscard]] Instant Next(Instant after) const { return times.Next(after, *zone); }
  [[nodiscard]] std::optional<Instant> Last(Instant after, Instant until) const {
    return times.Last(after, until, *zone);
  }
};

// A zone in the schedule's own text goes before that of the field. REQUIRES: that is known.
Result<Schedule> ScheduleOf(const api::CronJob& cron, const api::TimeZones& zones) {
  Result<api::CronSchedule> times = api::CronSchedule::Parse(cron.schedule);
  if (!times) return std::unexpected(times.error());
  const api::TimeZone* zone =
      times->zone().empty() ? ZoneOf(cron, zones) : zones.Find(times->zone());
  if (zone == nullptr) {
    return Fail(ErrorCode::kInvalid,
                fmt::format("provided bad location {0}: unknown time zone {0}", times->zone()));
  }
  return Schedule{.times = std::move(*times), .zone = zone};
}

// From when on starts count.
Instant EarliestOf(const api::CronJob& cron, Instant now) {
  const Instant earliest = cron.last_schedule.value_or(cron.meta.creation_time);
  if (!cron.starting_deadline_seconds) return earliest;
  return std::max(earliest, now - Duration::Seconds(*cron.starting_deadline_seconds));
}

std::optional<Instant> DueOf(const api::CronJob& cron, const api::TimeZones& zones, Instant now) {
  if (ZoneOf(cron, zones) == nullptr) return std::nullopt;
  const Result<Schedule> schedule = ScheduleOf(cron, zones);
  if (!schedule) return std::nullopt;
  return schedule->Last(EarliestOf(cron, now), now);
}

std::string NameAt(const api::CronJob& cron, Instant at) {
  return fmt::format("{}-{}", cron.meta.name, at.seconds() / 60);
}

class Planner {
 public:
  Planner(const CronJobFacts& facts, Instant now)
      : facts_(facts), cron_(facts.cron), after_(facts.cron), now_(now) {}

  Plan Run() {
    Look();
    LookForMissing();
    if (!plan_.writes.empty()) return std::move(plan_);
    if (!facts_.head.deletion.has_value()) {
      Clean();
      Start();
    }
    Status();
    return std::move(plan_);
  }

 private:
  void Look();
  void LookForMissing();
  void Clean();
  void CleanOf(std::string_view end, const std::optional<int64_t>& limit);
  void Start();
  void Create(Instant at);
  void Delete(const Head& job);
  void Status();
  void Warn(std::string reason, std::string message) {
    plan_.told.push_back(
        {.warning = true, .reason = std::move(reason), .message = std::move(message)});
  }
  void Tell(std::string reason, std::string message) {
    plan_.told.push_back({.reason = std::move(reason), .message = std::move(message)});
  }
  void Keep(const JobRef& ref) {
    active_.push_back(&ref);
    after_.active.push_back({.name = ref.head->name, .uid = ref.head->uid});
  }
  [[nodiscard]] bool WasActive(const std::string& uid) const {
    return std::ranges::find(cron_.active, uid, &api::ActiveJob::uid) != cron_.active.end();
  }

  const CronJobFacts& facts_;
  const api::CronJob& cron_;
  api::CronJob after_;  // The status that is to be written.
  const Instant now_;
  std::vector<const JobRef*> active_;
  Plan plan_;
};

// What became of the Jobs.
void Planner::Look() {
  after_.active.clear();
  for (const JobRef& ref : facts_.jobs) {
    const std::string_view end = EndOf(*ref.job);
    const std::optional<Instant> at = ScheduledAt(*ref.job);
    if (at && (!after_.last_schedule || *after_.last_schedule < *at)) after_.last_schedule = at;
    if (end.empty()) {
      // What somebody else made of the template runs beside.
      if (!at && !WasActive(ref.head->uid)) {
        Warn("UnexpectedJob",
             "Saw a job that the controller did not create or forgot: " + ref.head->name);
        continue;
      }
      Keep(ref);
      continue;
    }
    if (WasActive(ref.head->uid)) {
      Tell("SawCompletedJob",
           fmt::format("Saw completed job: {}, condition: {}", ref.head->name, end));
    }
    const std::optional<Instant>& completed = ref.job->completion_time;
    if (end == "Complete" && completed &&
        (!after_.last_success || *after_.last_success < *completed))
      after_.last_success = completed;
  }
}

// Who was active and is no Job of this one's any more: gone, given up by it, or not seen yet.
void Planner::LookForMissing() {
  for (const api::ActiveJob& job : cron_.active) {
    const auto is_it = [&](const JobRef& ref) { return ref.head->uid == job.uid; };
    if (std::ranges::any_of(facts_.jobs, is_it)) continue;
    if (const auto other = std::ranges::find_if(facts_.others, is_it);
        other != facts_.others.end()) {
      Keep(*other);
      continue;
    }
    Write read{.verb = Verb::kRead,
               .kind = api::KindId::kJob,
               .namespace_name = facts_.head.namespace_name,
               .name = job.name,
               .uid = job.uid};
    if (job.name.empty() || job.uid.empty() || facts_.absent(read)) {
      Tell("MissingJob", "Active job went missing: " + job.name);
    } else {
      plan_.writes.push_back(std::move(read));
    }
  }
  if (!plan_.writes.empty()) plan_.told.clear();
}

void Planner::Clean() {
  CleanOf("Complete", cron_.successful_history_limit);
  CleanOf("Failed", cron_.failed_history_limit);
}

void Planner::CleanOf(std::string_view end, const std::optional<int64_t>& limit) {
  if (!limit) return;
  std::vector<const JobRef*> over;
  for (const JobRef& ref : facts_.jobs) {
    if (EndOf(*ref.job) == end && !ref.head->deletion.has_value()) over.push_back(&ref);
  }
  std::ranges::sort(over, {}, [](const JobRef* ref) {
    return std::tuple(ref->job->start_time.value_or(Instant::Never()),
                      std::string_view(ref->head->name));
  });
  const auto surplus = static_cast<int64_t>(over.size()) - *limit;
  for (int64_t i = 0; i < surplus; ++i) Delete(*over[static_cast<size_t>(i)]->head);
}

void Planner::Delete(const Head& job) {
  Write write = DeleteOf(job, "Background");
  write.told.push_back({.reason = "SuccessfulDelete", .message = "Deleted job " + job.name});
  plan_.writes.push_back(std::move(write));
}

void Planner::Start() {
  if (ZoneOf(cron_, facts_.zones) == nullptr) {
    return Warn("UnknownTimeZone",
                fmt::format("invalid timeZone: \"{0}\": unknown time zone {0}", *cron_.time_zone));
  }
  if (cron_.suspend) return;
  const Result<Schedule> schedule = ScheduleOf(cron_, facts_.zones);
  if (!schedule) {
    return Warn("UnparseableSchedule", fmt::format("unparseable schedule: \"{}\" : {}",
                                                   cron_.schedule, schedule.error().message));
  }
  // What a Job tells of counts even when the status doesn't say it yet.
  api::CronJob seen = cron_;
  seen.last_schedule = after_.last_schedule;
  const Instant earliest = EarliestOf(seen, now_);
  const std::optional<Instant> due = schedule->Last(earliest, now_);
  plan_.WakeAt(schedule->Next(due.value_or(earliest)));
  if (!due) return;
  plan_.WakeAt(schedule->Next(now_));
  if (facts_.name_taken) return;
  if (cron_.concurrency == api::Concurrency::kForbid && !active_.empty()) {
    return Tell("JobAlreadyActive",
                "Not starting job because prior execution is running and concurrency policy is "
                "Forbid");
  }
  int missed = 0;
  for (Instant at = schedule->Next(earliest); at < *due && missed <= kManyMissed; ++missed)
    at = schedule->Next(at);
  if (missed >= kManyMissed) {
    Warn("TooManyMissedTimes",
         "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check "
         "clock skew");
  }
  if (cron_.concurrency == api::Concurrency::kReplace) {
    for (const JobRef* ref : active_) {
      if (!ref->head->deletion.has_value()) Delete(*ref->head);
    }
    // What it ends itself goes missing to nobody.
    active_.clear();
    after_.active.clear();
  }
  Create(*due);
}

void Planner::Create(Instant at) {
  Write write = CreateOf(api::KindId::kJob, facts_.head.namespace_name, NameAt(cron_, at));
  api::StringMap annotations = cron_.job_annotations;
  Put(annotations, kScheduledAt, ZoneOf(cron_, facts_.zones)->Print(at));
  if (!cron_.job_labels.empty()) write.metadata = R"("labels":)" + MapText(cron_.job_labels) + ",";
  write.metadata += R"("annotations":)" + MapText(annotations) + R"(,"ownerReferences":)" +
                    OwnersText({ControllerReference(facts_.head)});
  write.body = R"("spec":)" + std::string(cron_.job_spec.view());
  write.told.push_back({.reason = "SuccessfulCreate", .message = "Created job " + write.name});
  plan_.writes.push_back(std::move(write));
}

void Planner::Status() {
  if (after_ == cron_) return;
  std::string active;
  for (const JobRef* ref : active_) {
    active += fmt::format(R"({}{{"apiVersion":"batch/v1","kind":"Job","name":"{}",)"
                          R"("namespace":"{}","uid":"{}","resourceVersion":"{}"}})",
                          active.empty() ? "" : ",", ref->head->name, ref->head->namespace_name,
                          ref->head->uid, ref->head->resource_version);
  }
  std::string status =
      active.empty() ? std::string(R"({"active":null)") : R"({"active":[)" + active + "]";
  const auto add = [&](std::string_view key, const std::optional<Instant>& time) {
    if (time) status += fmt::format(R"(,"{}":"{}")", key, api::PrintTimestamp(*time));
  };
  add("lastScheduleTime", after_.last_schedule);
  add("lastSuccessfulTime", after_.last_success);
  plan_.writes.push_back(StatusOf(facts_.head, status + "}"));
}

}  // namespace

std::string JobNameOf(const api::CronJob& cron, const api::TimeZones& zones, Instant now) {
  const std::optional<Instant> due = DueOf(cron, zones, now);
  return due ? NameAt(cron, *due) : std::string();
}

Plan PlanCronJob(const CronJobFacts& facts, Instant now) { return Planner(facts, now).Run(); }

}  // namespace berth::controllers
