#include "cli/why_text.h"

#include <fmt/format.h>

#include "api/json.h"
#include "cli/answer.h"
#include "cli/holders_text.h"
#include "codec/json.h"

namespace berth::cli {
namespace {

bool True(const api::JsonObject& object, std::string_view key) {
  return Text(object, key) == "true";
}

// What no node says the message does.
std::string ReasonLine(const api::Json& reason) {
  if (!reason.is_object()) return "";
  const api::JsonObject& object = reason.get_object();
  const std::string nodes = Text(object, "nodes");
  if (nodes == "0") return "";
  std::string line = fmt::format("  {:>6} {}  {}\n", nodes, nodes == "1" ? "node " : "nodes",
                                 Text(object, "text"));
  const std::string unblock = Text(object, "unblock");
  if (!unblock.empty()) line += fmt::format("                unblocked by: {}\n", unblock);
  return line;
}

std::string Reasons(const api::JsonObject& object) {
  std::string text;
  if (const api::Json* reasons = object.if_contains("reasons");
      reasons != nullptr && reasons->is_array()) {
    for (const api::Json& reason : reasons->get_array()) text += ReasonLine(reason);
  }
  return text;
}

std::string Placed(const api::JsonObject& object) {
  std::string text = fmt::format("  on node {}", Text(object, "node"));
  if (object.contains("devices")) text += fmt::format(", GPU devices {}", Text(object, "devices"));
  text += True(object, "nodeMissing") ? ", which does not exist (any more)\n" : "\n";
  if (!True(object, "decidedHere"))
    return text + "  placed there by someone else, or before this scheduler started\n";
  return text + fmt::format("  the best of {} nodes that fit, with score {}\n",
                            Text(object, "feasibleNodes"), Text(object, "score"));
}

std::string Promise(const api::JsonObject& promise) {
  std::string text =
      fmt::format("  promised {}: {}\n", Text(promise, "node"), Text(promise, "text"));
  for (const api::JsonObject* leaver : ObjectsIn(promise, "leaving")) {
    const std::string until = Text(*leaver, "until");
    const bool overdue = Text(*leaver, "state") == "overdue";
    text += fmt::format("    pod {} {}{}{}{}\n", Text(*leaver, "pod"),
                        overdue                               ? "does not leave"
                        : Text(*leaver, "state") == "leaving" ? "leaves"
                                                              : "is to leave",
                        True(*leaver, "forIt") ? " for it" : "",
                        until.empty() ? overdue ? ", though its workload is evicted" : ""
                        : overdue     ? ", though its grace was over at "
                                      : ", at the latest at ",
                        until);
  }
  return text;
}

std::string NoEvictionHelps(const api::JsonObject& preemption) {
  if (preemption.contains("bar"))
    return fmt::format("  it preempts nobody: {}\n", Text(preemption, "bar"));
  std::string text = fmt::format("  no eviction helps, on {} nodes:\n", Text(preemption, "nodes"));
  const auto line = [&](const std::string& nodes, std::string_view what) {
    if (nodes.empty() || nodes == "0") return;
    text += fmt::format("  {:>6} {}  {}\n", nodes, nodes == "1" ? "node " : "nodes", what);
  };
  line(Text(preemption, "notHelpful"), "would still refuse it if they were empty");
  line(Text(preemption, "noVictims"), "hold no pod of lower priority");
  for (const api::JsonObject* reason : ObjectsIn(preemption, "reasons")) {
    line(Text(*reason, "nodes"),
         fmt::format("{}, even without all pods of lower priority", Text(*reason, "text")));
  }
  return text;
}

std::string Evicted(const api::JsonObject& object) {
  std::string text;
  if (const api::JsonObject* eviction = Part(object, "eviction")) {
    const std::string until = Text(*eviction, "until");
    const std::string why =
        eviction->contains("group")
            ? fmt::format(", since PodGroup {} was not completed in time", Text(*eviction, "group"))
            : fmt::format(" for pod {}, which is more important", Text(*eviction, "for"));
    text += fmt::format("  it {}{}{}{}\n",
                        Text(*eviction, "state") == "leaving" ? "leaves" : "is to leave", why,
                        until.empty() ? "" : ", at the latest at ", until);
  }
  if (object.contains("sparedUntil")) {
    text += fmt::format("  its eviction was refused or failed: nobody evicts it before {}\n",
                        Text(object, "sparedUntil"));
  }
  return text;
}

std::string MayEvict(const api::JsonObject& all) {
  std::string pods;
  for (const api::JsonObject* some : ObjectsIn(all, "pods")) {
    pods += fmt::format("{}{} of priority {}", pods.empty() ? "" : ", ", Text(*some, "count"),
                        Text(*some, "priority"));
  }
  if (pods.empty()) return "  its priority may evict no pod at all\n";
  const std::string nodes = Text(all, "nodes");
  return fmt::format("  pods that its priority may evict, on {} node{}: {}; they hold {}\n", nodes,
                     nodes == "1" ? "" : "s", pods, Text(all, "text"));
}

// Once all that leaves a node has left, it has room, but for somebody else.
std::string HeldBy(const api::JsonObject& held) {
  const std::string nodes = Text(held, "nodes");
  std::string text = fmt::format("  kept out of {} node{} by what others are promised there:\n",
                                 nodes, nodes == "1" ? "" : "s");
  for (const api::JsonObject* promise : ObjectsIn(held, "promises")) {
    const std::string until = Text(*promise, "until");
    text += fmt::format("    node {} is for pod {}, until it is there or gives it up{}\n",
                        Text(*promise, "node"), Text(*promise, "pod"),
                        until.empty() ? "" : "; who leaves for it is gone by " + until);
  }
  return text;
}

std::string Preempting(const api::JsonObject& object) {
  std::string text;
  if (const api::JsonObject* promise = Part(object, "promise")) text += Promise(*promise);
  if (const api::JsonObject* lost = Part(object, "lostPromise")) {
    text += fmt::format("  its promise of node {} was taken back: {}\n", Text(*lost, "node"),
                        Text(*lost, "text"));
  }
  if (const api::JsonObject* held = Part(object, "heldBy")) text += HeldBy(*held);
  if (const api::JsonObject* why = Part(object, "preemption")) text += NoEvictionHelps(*why);
  if (const api::JsonObject* all = Part(object, "mayEvict")) text += MayEvict(*all);
  return text;
}

// Who has what it waits for.
std::string Holders(const api::JsonObject& object, std::string_view whose) {
  const std::string of_queue = HoldersText(object, "queueHolders");
  return NodeHoldersText(object, whose) +
         (of_queue.empty() ? of_queue : "  what it lacks of its queue is used:\n" + of_queue);
}

std::string Waiting(const api::JsonObject& object) {
  std::string text;
  if (True(object, "asksExtenders")) {
    text += "  extenders are asked to which of the nodes that it fits it may go\n";
  } else if (True(object, "wouldFit")) {
    text += "  a node fits, or can be made to fit: it is about to be tried\n";
  }
  text += Reasons(object) + Holders(object, "it");
  text += Preempting(object);
  if (object.contains("notBefore"))
    text += fmt::format("  not tried again before {}\n", Text(object, "notBefore"));
  if (object.contains("refusedCode")) {
    text += fmt::format("  the API server refused its last binding with {}\n",
                        Text(object, "refusedCode"));
  }
  const std::string attempts = Text(object, "attempts");
  const bool blocked = !True(object, "wouldFit") && !object.contains("notBefore");
  // They count anew from each promise.
  if (attempts == "0")
    return text + fmt::format("  pods alike that wait: {}\n", Text(object, "waitingAlike"));
  text += fmt::format("  tried {} time{}{}; pods alike that wait: {}\n", attempts,
                      attempts == "1" ? "" : "s",
                      blocked ? ", and again when the cluster changes so that it could fit" : "",
                      Text(object, "waitingAlike"));
  return text;
}

// "2 waiting, 1 bound"
std::string Counts(const api::JsonObject* counts) {
  std::string text;
  if (counts == nullptr) return "no member";
  for (const auto& member : *counts) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", Text(*counts, member.key()),
                        std::string_view(member.key()));
  }
  return text.empty() ? "no member" : text;
}

std::string Member(const api::JsonObject& member) {
  std::string text = fmt::format("  pod {}: {}", Text(member, "pod"), Text(member, "state"));
  if (member.contains("node")) text += fmt::format(", on node {}", Text(member, "node"));
  text += "\n";
  std::string more = Evicted(member);
  if (const api::JsonObject* promise = Part(member, "promise")) more += Promise(*promise);
  // What is said of a pod stands two columns further in.
  while (!more.empty()) {
    const size_t end = more.find('\n') + 1;
    text += "  " + more.substr(0, end);
    more.erase(0, end);
  }
  return text;
}

// What to look at after a 404: the scheduler has no such pod, or who answered is no scheduler.
std::string_view Hint(std::string_view message) {
  if (message.starts_with("podgroup "))
    return "\n  look with `kubectl get podgroup -n NAMESPACE`: it is absent, or of another name";
  if (SaysUnknownPod(404, message)) {
    return "\n  look with `kubectl get pod -n NAMESPACE NAME -o yaml`: it is absent, or was "
           "refused (its conditions and events say why)";
  }
  return kNoScheduler;
}

}  // namespace

bool SaysUnknownPod(int status, std::string_view body) {
  return status == 404 && body.find("is not known to the scheduler") != body.npos;
}

std::string FinishedText(std::string_view pod) {
  const Result<api::Json> document = codec::ParseJson(pod);
  if (!document || !document->is_object()) return "";
  const auto part = [&](std::string_view name) {
    const api::Json* value = document->get_object().if_contains(name);
    return value != nullptr && value->is_object() ? value->get_object() : api::JsonObject();
  };
  const api::JsonObject status = part("status");
  const std::string phase = Text(status, "phase");
  if (phase != "Succeeded" && phase != "Failed") return "";
  const std::string node = Text(part("spec"), "nodeName");
  const std::string reason = Text(status, "reason");
  return fmt::format("pod {}/{}: has finished{}{}\n  {}{}{}; the scheduler keeps no pod that has\n",
                     Text(part("metadata"), "namespace"), Text(part("metadata"), "name"),
                     node.empty() ? "" : " on node ", node, phase, reason.empty() ? "" : ", ",
                     reason);
}

std::string SelectorOf(std::string_view owner) {
  const Result<api::Json> document = codec::ParseJson(owner);
  const api::Json* spec =
      document && document->is_object() ? document->get_object().if_contains("spec") : nullptr;
  const api::Json* selector =
      spec != nullptr && spec->is_object() ? spec->get_object().if_contains("selector") : nullptr;
  const api::Json* labels = selector != nullptr && selector->is_object()
                                ? selector->get_object().if_contains("matchLabels")
                                : nullptr;
  if (labels == nullptr || !labels->is_object()) return "";
  std::string text;
  for (const auto& member : labels->get_object()) {
    if (!member.value().is_string()) return "";
    if (!text.empty()) text += ",";
    text += fmt::format("{}={}", std::string_view(member.key()),
                        std::string_view(member.value().get_string()));
  }
  return text;
}

std::string OwnerText(std::string_view kind, std::string_view name, std::string_view pods) {
  std::string text = fmt::format("\n  {} is a {}", name, kind);
  const Result<api::Json> document = codec::ParseJson(pods);
  const api::Json* items =
      document && document->is_object() ? document->get_object().if_contains("items") : nullptr;
  if (items == nullptr || !items->is_array()) return text;
  std::string names;
  for (const api::Json& pod : items->get_array()) {
    const api::Json* metadata =
        pod.is_object() ? pod.get_object().if_contains("metadata") : nullptr;
    if (metadata == nullptr || !metadata->is_object()) continue;
    if (!names.empty()) names += ", ";
    names += Text(metadata->get_object(), "name");
  }
  if (names.empty()) return text + " without pods";
  const api::Json* meta = document->get_object().if_contains("metadata");
  const bool more =
      meta != nullptr && meta->is_object() && !Text(meta->get_object(), "continue").empty();
  return text + fmt::format("; ask of its pods: {}{}", names, more ? ", ..." : "");
}

namespace {

Result<api::JsonObject> AnswerOf(int status, std::string_view body) {
  Result<api::JsonObject> object = ObjectAnswered(status, body);
  if (!object || status == 200) return object;
  const std::string message = Text(*object, "message");
  return Fail(ErrorCode::kRefused,
              fmt::format("{} (HTTP {}){}", message, status, status == 404 ? Hint(message) : ""));
}

}  // namespace

Result<std::string> WhyGroupText(int status, std::string_view body) {
  const Result<api::JsonObject> answer = AnswerOf(status, body);
  if (!answer) return std::unexpected(answer.error());
  const api::JsonObject& object = *answer;
  std::string text = fmt::format("podgroup {}: {}, needs {} members at once; it has {}\n",
                                 Text(object, "podgroup"), Text(object, "phase"),
                                 Text(object, "minMember"), Counts(Part(object, "members")));
  if (object.contains("note")) text += fmt::format("  {}\n", Text(object, "note"));
  if (const api::Json* keys = object.if_contains("workloads");
      keys != nullptr && keys->is_array()) {
    for (const api::Json& key : keys->get_array()) {
      if (key.is_string())
        text += fmt::format("  pods of workload {} are to come, which waits itself\n",
                            std::string_view(key.get_string()));
    }
  }
  if (object.contains("member"))
    text += fmt::format("  pod {} waits by itself:\n", Text(object, "member"));
  if (object.contains("message")) text += fmt::format("  {}\n", Text(object, "message"));
  if (object.contains("member")) {
    text += Waiting(object);
  } else {
    if (True(object, "wouldFit"))
      text += "  there is room for all that it needs, or it can be made: it is about to be tried\n";
    text += Reasons(object) + Holders(object, "its pods") + Preempting(object);
    if (object.contains("priorityOfGroupOnly"))
      text += fmt::format(
          "  its priorityClassName, of {}, has it go before others; to have its pods evict others, "
          "name the class in their spec.priorityClassName\n",
          Text(object, "priorityOfGroupOnly"));
  }
  for (const api::JsonObject* member : ObjectsIn(object, "pods")) text += Member(*member);
  return text;
}

Result<std::string> WhyText(int status, std::string_view body) {
  const Result<api::JsonObject> answer = AnswerOf(status, body);
  if (!answer) return std::unexpected(answer.error());
  const api::JsonObject& object = *answer;
  std::string stage = Text(object, "stage");
  if (stage == "foreign") stage = "not placed by this scheduler";
  std::string text = fmt::format("pod {}: {}\n", Text(object, "pod"), stage);
  if (object.contains("message")) text += fmt::format("  {}\n", Text(object, "message"));
  if (object.contains("node")) return text + Placed(object) + Evicted(object);
  return text + (object.contains("attempts") ? Waiting(object) : Preempting(object));
}

}  // namespace berth::cli
