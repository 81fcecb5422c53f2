#include "cli/workload_text.h"

#include <fmt/format.h>

#include "api/json.h"
#include "api/quota.h"
#include "cli/answer.h"
#include "cli/holders_text.h"
#include "codec/json.h"

namespace berth::cli {
namespace {

std::string Lack(const api::JsonObject& lack) {
  std::string text = fmt::format("  {} {} of flavor {} more is needed", Text(lack, "more"),
                                 Text(lack, "resource"), Text(lack, "flavor"));
  if (!lack.contains("level")) return text + "\n";
  text += fmt::format(": {} {} has {}, of which {} are used\n", Text(lack, "levelKind"),
                      Text(lack, "level"), Text(lack, "has"), Text(lack, "used"));
  size_t shown = 0;
  for (const api::JsonObject* holder : ObjectsIn(lack, "holders")) {
    ++shown;
    text += fmt::format("    {} {} workload {}, priority {}{}\n", Text(*holder, "amount"),
                        Text(*holder, "promised") == "true" ? "promised to" : "by",
                        Text(*holder, "workload"), Text(*holder, "priority"),
                        Text(*holder, "leaves") == "true" ? ", which leaves" : "");
  }
  const std::string count = Text(lack, "holdersCount");
  if (!count.empty() && count != fmt::format("{}", shown))
    text += fmt::format("    ... by {} workloads altogether\n", count);
  return text;
}

std::string Holds(const api::JsonObject& object) {
  std::string text;
  for (const api::JsonObject* part : ObjectsIn(object, "holds")) {
    text += fmt::format("  {} pods of {} have {} of flavor {}{}\n", Text(*part, "count"),
                        Text(*part, "podSet"), AmountsOf(*part), Text(*part, "flavor"),
                        Text(*part, "flavorMissing") == "true"
                            ? ", a ResourceFlavor that doesn't exist any more"
                            : "");
  }
  return text;
}

// "1 pod", "2 pods"
std::string Pods(const std::string& count) {
  return fmt::format("{} pod{}", count, count == "1" ? "" : "s");
}

// 0 when there is no such count.
size_t CountIn(const api::JsonObject& object, std::string_view key) {
  const api::Json* value = object.if_contains(key);
  if (value == nullptr || !value->is_int64() || value->get_int64() < 0) return 0;
  return static_cast<size_t>(value->get_int64());
}

std::string PodsWaiting(const api::JsonObject& waits) {
  std::string pods;
  size_t shown = 0;
  if (const api::Json* keys = waits.if_contains("pods"); keys != nullptr && keys->is_array()) {
    for (const api::Json& key : keys->get_array()) {
      if (!key.is_string()) continue;
      pods += fmt::format("{}{}", shown++ == 0 ? "" : ", ", std::string_view(key.get_string()));
    }
  }
  std::string text =
      fmt::format("  {} of its pods wait(s) for a node: {}{}\n", Text(waits, "count"), pods,
                  CountIn(waits, "count") > shown ? ", ..." : "");
  if (waits.contains("promised")) {
    text += fmt::format("    promised {}{}\n", Text(waits, "promised"),
                        CountIn(waits, "leaving") > 0 ? ", once who is there has left"
                                                      : ", where its room is kept for it");
  }
  if (waits.contains("message")) text += fmt::format("    {}\n", Text(waits, "message"));
  return text + NodeHoldersText(waits, "them");
}

// Where its pods are, and what those wait for that are nowhere.
std::string Places(const api::JsonObject& object) {
  std::string text;
  size_t shown = 0;
  for (const api::JsonObject* place : ObjectsIn(object, "places")) {
    const bool pods = place->contains("pods");
    text += fmt::format("{} {}", shown++ == 0 ? "" : ",", Text(*place, "node"));
    if (pods) text += " " + Pods(Text(*place, "pods"));
    if (place->contains("leaving"))
      text += fmt::format(", of which {} leave(s)", Text(*place, "leaving"));
    if (place->contains("kept"))
      text += fmt::format("{} {} kept for pods to come", pods ? " and" : "", Text(*place, "kept"));
  }
  const auto count = CountIn(object, "placesCount");
  if (!text.empty()) {
    text = fmt::format("  on {} node(s):{}{}\n", count, text,
                       count > shown ? fmt::format(", and {} more", count - shown) : "");
  }
  if (const api::JsonObject* waits = Part(object, "podsWaiting")) text += PodsWaiting(*waits);
  if (object.contains("placesLost")) {
    text += fmt::format(
        "  {} of its places others have, and the pods that had them are not there again yet\n",
        Text(object, "placesLost"));
  }
  return text;
}

// Why it was evicted last.
std::string PastEviction(const api::JsonObject& object) {
  const api::JsonObject* evicted = Part(object, "evicted");
  if (evicted == nullptr) return "";
  std::string text = "  it was evicted";
  if (evicted->contains("for")) text += fmt::format(" for workload {}", Text(*evicted, "for"));
  if (evicted->contains("at")) text += fmt::format(" at {}", Text(*evicted, "at"));
  return text + fmt::format(": {}: {}\n", Text(*evicted, "reason"), Text(*evicted, "message"));
}

// What else its objects say: its end, what is missing of what it was admitted with.
std::string Progress(const api::JsonObject& object) {
  std::string text;
  if (const api::JsonObject* end = Part(object, "finished")) {
    text += fmt::format("  it is finished: {}: {}\n", Text(*end, "reason"), Text(*end, "message"));
    const std::string reason = Text(*end, "reason");
    if (reason != "Succeeded" && reason != "Failed" && Text(object, "jobGone") != "true")
      text += "  its Job is held while it is there: delete the workload to have another made\n";
  }
  if (const api::JsonObject* waits = Part(object, "notAdmitted")) {
    text += fmt::format("  it is not admitted yet: {}: {}\n", Text(*waits, "reason"),
                        Text(*waits, "message"));
  }
  for (const api::JsonObject* check : ObjectsIn(object, "checks")) {
    const std::string message = Text(*check, "message");
    text += fmt::format("  admission check {} is {}{}\n", Text(*check, "name"),
                        Text(*check, "state"), message.empty() ? "" : ": " + message);
  }
  if (Text(object, "clusterQueueMissing") == "true") {
    text += fmt::format(
        "  ClusterQueue {}, of which it was admitted, doesn't exist: its quota counts nowhere; "
        "create the queue, or set spec.active of the workload to false and to true again\n",
        Text(object, "clusterQueue"));
  }
  if (object.contains("reclaimable")) {
    text += fmt::format("  {} of its pods have nothing to do any more, and their quota is free\n",
                        Text(object, "reclaimable"));
  }
  if (object.contains("readyBefore")) {
    text += fmt::format(
        "  not all of its pods are ready: if they aren't by {} it is evicted, and tried again "
        "later (waitForPodsReady)\n",
        Text(object, "readyBefore"));
  }
  return text;
}

std::string Refused(const api::JsonObject& object) {
  const api::JsonObject* refused = Part(object, "refused");
  if (refused == nullptr) return "";
  std::string text =
      fmt::format("  {} was refused by the API server ({}): {}", Text(*refused, "what"),
                  Text(*refused, "code"), Text(*refused, "message"));
  if (refused->contains("again"))
    text += fmt::format("; tried again at {}", Text(*refused, "again"));
  return text + "\n";
}

std::string PodsLeft(const api::JsonObject& object) {
  const std::string count = Text(object, "podsLeft");
  return count == "1" ? "1 is left" : count + " are left";
}

// What the end of one waits for that is being deleted, or whose Job is gone.
std::string End(const api::JsonObject& object) {
  std::string text;
  const bool gone = Text(object, "jobGone") == "true";
  const bool done = Text(object, "stage") == "finished";
  if (gone) text += "  its Job is gone";
  if (gone && !done)
    text += ": what it has is given back when none of the Job's pods runs; " + PodsLeft(object);
  if (gone) text += "\n";
  if (!object.contains("deletedAt")) return text;
  text += fmt::format("  it is being deleted since {}\n", Text(object, "deletedAt"));
  const api::Json* finalizers = object.if_contains("finalizers");
  if (finalizers == nullptr || !finalizers->is_array()) return text;
  for (const api::Json& one : finalizers->get_array()) {
    if (!one.is_string()) continue;
    const std::string_view finalizer = one.get_string();
    if (finalizer != api::kInUseFinalizer) {
      text += fmt::format("  it waits for who takes {} off its finalizers\n", finalizer);
    } else if (!gone) {
      text += fmt::format(
          "  it waits for its Job to be suspended with the template that it came "
          "with, or to end, and for its pods, of which {}: berth controllers see "
          "to it\n",
          PodsLeft(object));
    }
  }
  return text;
}

std::string StageLine(const api::JsonObject& object) {
  std::string text =
      fmt::format("workload {}: {}", Text(object, "workload"), Text(object, "stage"));
  if (object.contains("position")) {
    text += fmt::format(", number {} of {} that wait", Text(object, "position"),
                        Text(object, "waitingCount"));
  }
  const std::string queue = Text(object, "clusterQueue");
  if (!queue.empty()) {
    text +=
        fmt::format(" in ClusterQueue {} through LocalQueue {}", queue, Text(object, "localQueue"));
  }
  return text +
         fmt::format(", priority {}, since {}\n", Text(object, "priority"), Text(object, "since"));
}

}  // namespace

std::string DelayText(const api::JsonObject& object) {
  const bool later = object.contains("notBefore");
  if (!later && !object.contains("waitsFor")) return "";
  std::string text = "it is not tried";
  if (later) text += fmt::format(" before {}", Text(object, "notBefore"));
  if (object.contains("waitsFor"))
    text += fmt::format("{} it waits for {}", later ? ";" : ":", Text(object, "waitsFor"));
  return text;
}

Result<std::string> WhyWorkloadText(int status, std::string_view body) {
  const Result<api::JsonObject> answer = ObjectAnswered(status, body);
  if (!answer) return std::unexpected(answer.error());
  const api::JsonObject& object = *answer;
  if (status != 200) {
    return Fail(ErrorCode::kRefused, fmt::format("{} (HTTP {})", Text(object, "message"), status));
  }
  std::string text = StageLine(object);
  const std::string stage = Text(object, "stage");
  text += End(object);
  if (Text(object, "active") == "false" && stage != "finished" && stage != "deleting")
    text += "  its spec.active is false: it wants no quota\n";
  text += Progress(object) + Refused(object);
  text += PastEviction(object);
  if (const std::string delay = DelayText(object); !delay.empty()) text += "  " + delay + "\n";
  if (object.contains("message")) text += fmt::format("  {}\n", Text(object, "message"));
  for (const api::JsonObject* lack : ObjectsIn(object, "lacks")) text += Lack(*lack);
  text += NodeHoldersText(object, "its pods");
  for (const api::JsonObject* leaves : ObjectsIn(object, "leaving")) {
    text += fmt::format("  workload {}, priority {}, {} for it\n", Text(*leaves, "workload"),
                        Text(*leaves, "priority"),
                        Text(*leaves, "told") == "true" ? "leaves" : "is to leave");
  }
  text += Holds(object) + Places(object);
  if (const api::Json* notes = object.if_contains("notes"); notes != nullptr && notes->is_array()) {
    for (const api::Json& note : notes->get_array()) {
      if (note.is_string()) text += fmt::format("  {}\n", std::string_view(note.get_string()));
    }
  }
  if (object.contains("evictedFor"))
    text += fmt::format("  it is evicted for workload {}\n", Text(object, "evictedFor"));
  if (object.contains("sparedUntil")) {
    text += fmt::format(
        "  its eviction was refused by the server: others are evicted instead where that helps, "
        "and "
        "it is tried again at {}\n",
        Text(object, "sparedUntil"));
  }
  if (stage == "quotaReserved" && !object.contains("notAdmitted") && !object.contains("checks"))
    text += "  it is not admitted yet: see status.admissionChecks, which are not all Ready\n";
  return text;
}

std::string RefusedWorkloadText(std::string_view workload) {
  const Result<api::Json> json = codec::ParseJson(workload);
  if (!json || !json->is_object()) return "";
  const api::JsonObject* metadata = Part(json->get_object(), "metadata");
  const api::JsonObject* status = Part(json->get_object(), "status");
  if (metadata == nullptr || status == nullptr) return "";
  for (const api::JsonObject* condition : ObjectsIn(*status, "conditions")) {
    if (Text(*condition, "type") != "QuotaReserved" || Text(*condition, "status") != "False")
      continue;
    return fmt::format("workload {}/{}: {}, not known to the scheduler\n  {}\n",
                       Text(*metadata, "namespace"), Text(*metadata, "name"),
                       Text(*condition, "reason"), Text(*condition, "message"));
  }
  return "";
}

std::string UidOf(std::string_view object) {
  const Result<api::Json> json = codec::ParseJson(object);
  if (!json || !json->is_object()) return "";
  const api::JsonObject* metadata = Part(json->get_object(), "metadata");
  return metadata == nullptr ? "" : Text(*metadata, "uid");
}

std::string FirstNameOf(std::string_view list) {
  const Result<api::Json> json = codec::ParseJson(list);
  if (!json || !json->is_object()) return "";
  for (const api::JsonObject* item : ObjectsIn(json->get_object(), "items")) {
    if (const api::JsonObject* metadata = Part(*item, "metadata")) return Text(*metadata, "name");
  }
  return "";
}

}  // namespace berth::cli
