#include "cli/refusals_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "api/json.h"
#include "cli/answer.h"
#include "codec/json.h"

namespace berth::cli {
namespace {

// Pauses after refusals double up to that (controllers/calls.cc); upstream's do likewise.
constexpr int kPauseMaxMinutes = 17;

// An empty object for what is none.
api::JsonObject ObjectOf(std::string_view json) {
  Result<api::Json> document = codec::ParseJson(json);
  return document && document->is_object() ? std::move(document->get_object()) : api::JsonObject{};
}

std::optional<int64_t> NumberIn(const api::JsonObject* object, std::string_view key) {
  const api::Json* value = object == nullptr ? nullptr : object->if_contains(key);
  if (value == nullptr) return std::nullopt;
  if (value->is_int64()) return value->get_int64();
  if (value->is_uint64()) return static_cast<int64_t>(value->get_uint64());
  return std::nullopt;
}

bool Is(const api::JsonObject& object, std::string_view condition) {
  const api::JsonObject* status = Part(object, "status");
  if (status == nullptr) return false;
  return std::ranges::any_of(ObjectsIn(*status, "conditions"), [&](const api::JsonObject* one) {
    return Text(*one, "type") == condition && Text(*one, "status") == "True";
  });
}

// How things stand with them, as far as it decides what is still refused.
struct Standing {
  bool queued = false;  // It has a Workload.
  bool admitted = false;
  bool finished = false;  // The Workload says so.
  bool suspended = false;
  bool done = false;  // The Job is.
  bool has_pods = false;
  bool lacks_pods = false;
};

Standing StandingOf(const api::JsonObject& job, const api::JsonObject& workload) {
  Standing standing;
  standing.queued = !workload.empty();
  standing.admitted = Is(workload, "Admitted") && !Is(workload, "Evicted");
  standing.finished = Is(workload, "Finished");
  standing.done = Is(job, "Complete") || Is(job, "Failed");
  const api::JsonObject* spec = Part(job, "spec");
  const api::JsonObject* status = Part(job, "status");
  standing.suspended = spec != nullptr && Text(*spec, "suspend") == "true";
  const int64_t active = NumberIn(status, "active").value_or(0);
  const int64_t succeeded = NumberIn(status, "succeeded").value_or(0);
  int64_t wanted = NumberIn(spec, "parallelism").value_or(1);
  if (const auto completions = NumberIn(spec, "completions")) {
    wanted = std::min(wanted, *completions - succeeded);
  } else if (succeeded > 0) {
    wanted = 0;
  }
  standing.has_pods = active > 0;
  standing.lacks_pods = active < wanted;
  return standing;
}

struct Refused {
  std::string_view reason;
  bool of_workload = false;  // The Event is about it.
  std::string_view what;
  bool (*lasts)(const Standing& standing);
};

constexpr Refused kRefused[] = {
    {"FailedStart", false, "starting its Job",
     [](const Standing& s) { return s.admitted && s.suspended && !s.done; }},
    {"FailedStop", false, "suspending its Job",
     [](const Standing& s) { return s.queued && !s.admitted && !s.suspended && !s.done; }},
    {"FailedCreate", false, "creating pods of its Job",
     [](const Standing& s) { return !s.suspended && !s.done && s.lacks_pods; }},
    {"FailedDelete", false, "deleting pods of its Job",
     [](const Standing& s) { return s.has_pods && (s.suspended || s.done); }},
    {"FailedUpdate", false, "writing what its Job is to say",
     [](const Standing& s) { return !s.done; }},
    {"FailedUpdate", true, "writing its status", [](const Standing& s) { return !s.finished; }}};

// Of a Job without a Workload.
constexpr Refused kWorkload = {"FailedCreate", false, "making a Workload of it",
                               [](const Standing& s) { return !s.queued && !s.done; }};
constexpr std::string_view kWorkloads = "workload-controller";

std::string ComponentOf(const api::JsonObject& event) {
  const api::JsonObject* source = Part(event, "source");
  const std::string component = source == nullptr ? "" : Text(*source, "component");
  return component.empty() ? Text(event, "reportingComponent") : component;
}

std::string TimeOf(const api::JsonObject& event) {
  const std::string last = Text(event, "lastTimestamp");
  return last.empty() || last == "null" ? Text(event, "eventTime") : last;
}

// The last one of that reason; times of one form are in the order of their texts.
const api::JsonObject* LastOf(const std::vector<const api::JsonObject*>& events,
                              std::string_view reason, bool of_workloads) {
  const api::JsonObject* last = nullptr;
  for (const api::JsonObject* event : events) {
    if (Text(*event, "reason") != reason) continue;
    if (reason == "FailedCreate" && (ComponentOf(*event) == kWorkloads) != of_workloads) continue;
    if (last == nullptr || TimeOf(*last) <= TimeOf(*event)) last = event;
  }
  return last;
}

std::string Line(std::string_view what, const api::JsonObject& event) {
  std::string message = Text(event, "message");
  // "Error creating: " is said already.
  if (const size_t end = message.find(": "); message.starts_with("Error ") && end != message.npos)
    message.erase(0, end + 2);
  const std::string count = Text(event, "count");
  return fmt::format(
      "  {} was refused{}, last told at {}: {}; it is tried again, after {} minutes at most\n",
      what, count.empty() || count == "1" ? "" : fmt::format(" {} times", count), TimeOf(event),
      message, kPauseMaxMinutes);
}

}  // namespace

std::string RefusalsText(const JobDocuments& documents) {
  const api::JsonObject job = ObjectOf(documents.job);
  const api::JsonObject workload = ObjectOf(documents.workload);
  const api::JsonObject of_job = ObjectOf(documents.events_of_job);
  const api::JsonObject of_workload = ObjectOf(documents.events_of_workload);
  if (job.empty()) return "";
  const Standing standing = StandingOf(job, workload);
  std::string text;
  const auto add = [&](const Refused& refused, bool of_workloads) {
    if (!refused.lasts(standing)) return;
    const auto events = ObjectsIn(refused.of_workload ? of_workload : of_job, "items");
    if (const api::JsonObject* last = LastOf(events, refused.reason, of_workloads))
      text += Line(refused.what, *last);
  };
  add(kWorkload, /*of_workloads=*/true);
  for (const Refused& refused : kRefused) add(refused, /*of_workloads=*/false);
  return text;
}

std::string JobOf(std::string_view workload) {
  const api::JsonObject object = ObjectOf(workload);
  const api::JsonObject* metadata = Part(object, "metadata");
  if (metadata == nullptr) return "";
  for (const api::JsonObject* owner : ObjectsIn(*metadata, "ownerReferences")) {
    if (Text(*owner, "kind") == "Job" && Text(*owner, "controller") == "true")
      return Text(*owner, "name");
  }
  return "";
}

}  // namespace berth::cli
