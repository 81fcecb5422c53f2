#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "api/time_zone.h"
#include "api/workloads.h"
#include "base/time.h"
#include "controllers/objects.h"
#include "controllers/replica_set.h"
#include "controllers/write.h"

// Makes Jobs by a schedule (https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/).
// Schedules are of the CronJob's time zone, UTC without one: where that is not known it makes no
// Jobs, and an Event says so.
namespace berth::controllers {

struct JobRef {
  const Head* head = nullptr;
  const api::Job* job = nullptr;
};

struct CronJobFacts {
  const api::CronJob& cron;
  const Head& head;
  const api::TimeZones& zones;
  std::vector<JobRef> jobs;  // Whose controller it is, sorted by name.
  // Of the Jobs that its status names and that are not among these: those that are there, and
  // whether one is known to be gone.
  std::vector<JobRef> others = {};
  std::function<bool(const Write& read)> absent = {};
  // There is a Job of the name that the one that is due would have, JobNameOf(), whoever made it.
  bool name_taken = false;
  std::optional<Trouble> trouble;
};

// A function of the facts: of what was missed only the last is made up for. A Job that went missing
// is read before it is told of. A Job is known as that
// of its time by its name and annotation, so none is made twice whatever became of the status.
[[nodiscard]] Plan PlanCronJob(const CronJobFacts& facts, Instant now);

// The name of the Job that is due last; empty: none is.
[[nodiscard]] std::string JobNameOf(const api::CronJob& cron, const api::TimeZones& zones,
                                    Instant now);

}  // namespace berth::controllers
