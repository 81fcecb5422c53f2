#include "control/debug.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/json.h"
#include "codec/json.h"
#include "control/debug_ledger.h"
#include "control/debug_metrics.h"
#include "control/debug_places.h"
#include "control/debug_queues.h"
#include "control/debug_workload.h"
#include "control/probes.h"
#include "control/resource_metrics.h"
#include "control/scheduler.h"
#include "gang/readiness.h"
#include "translate/text.h"

namespace berth::control {
namespace {

using api::Json;
using api::JsonArray;
using api::JsonObject;

env::HttpResponse Answer(int status, std::string_view type, std::string body) {
  return {.status = status,
          .headers = {{"content-type", std::string(type)}},
          .body = Bytes(std::move(body))};
}

env::HttpResponse AnswerJson(const JsonObject& object) {
  return Answer(200, "application/json", codec::PrintJson(object) + "\n");
}

env::HttpResponse Problem(int status, std::string_view reason, std::string_view message) {
  JsonObject object;
  object["kind"] = "Status";
  object["apiVersion"] = "v1";
  object["status"] = "Failure";
  object["message"] = message;
  object["reason"] = reason;
  object["code"] = status;
  return Answer(status, "application/json", codec::PrintJson(object) + "\n");
}

std::optional<int> Hex(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return std::nullopt;
}

std::string PercentDecode(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size()) {
      const auto high = Hex(text[i + 1]);
      const auto low = Hex(text[i + 2]);
      if (high && low) {
        out.push_back(static_cast<char>(*high * 16 + *low));
        i += 2;
        continue;
      }
    }
    out.push_back(text[i] == '+' ? ' ' : text[i]);
  }
  return out;
}

// The value of a query parameter; empty when there is none.
std::string Parameter(std::string_view target, std::string_view name) {
  const size_t question = target.find('?');
  if (question == std::string_view::npos) return "";
  std::string_view rest = target.substr(question + 1);
  while (!rest.empty()) {
    const size_t end = rest.find('&');
    const std::string_view pair = rest.substr(0, end);
    const size_t equals = pair.find('=');
    if (equals != std::string_view::npos && pair.substr(0, equals) == name) {
      return PercentDecode(pair.substr(equals + 1));
    }
    if (end == std::string_view::npos) break;
    rest.remove_prefix(end + 1);
  }
  return "";
}

// ---- /debug/why ------------------------------------------------------------------------------

std::string AmountText(const model::State& state, model::ResourceId resource,
                       model::Amount amount) {
  const std::string_view name = state.vocabulary().resources.Name(resource);
  if (resource == model::kCpu) {
    return amount % 1000 == 0 ? fmt::format("{} {}", amount / 1000, name)
                              : fmt::format("{}m {}", amount, name);
  }
  if (resource == model::kMemory || resource == model::kEphemeralStorage) {
    constexpr int64_t kMebibyte = 1024 * 1024;
    if (amount >= kMebibyte) {
      return fmt::format("{}Mi {}", (amount + kMebibyte - 1) / kMebibyte, name);
    }
  }
  return fmt::format("{} {}", amount, name);
}

constexpr std::string_view kMoreDevices =
    "a node with more GPU devices: even empty, these have too few";

// What would lift a reason of the pod's volumes; empty for one of something else.
std::string_view UnblockVolumes(model::ReasonKind kind) {
  using enum model::ReasonKind;
  switch (kind) {
    case kClaimMissing:
    case kClaimAwaited:
    case kVolumeMissing:
      return "the object that is named";
    case kClaimLost:
    case kClaimDeleted:
    case kClaimForeign:
      return "another claim of that name";
    case kClaimUnbound:
      return "a volume for the claim";
    case kDiskConflict:
      return "the end of a pod that has the disk on one of these nodes";
    case kClaimInUse:
      return "the end of the pod that has the claim";
    case kVolumeLimit:
      return "a volume that is detached from one of these nodes";
    case kVolumeNode:
    case kVolumeZone:
      return "a node where the pod's volumes can be used";
    case kNoVolume:
      return "a volume that fits the claim, or a node where one can be made";
    case kNoStorage:
      return "a node where storage is left for the claim";
    case kVolumeGone:
      return "the volume that the claim is bound to";
    default:
      return "";
  }
}

// What would lift a reason of where other pods are; empty for one of something else.
std::string_view UnblockOtherPods(model::ReasonKind kind) {
  using enum model::ReasonKind;
  switch (kind) {
    case kPorts:
      return "the end of a pod that has the host port on one of these nodes";
    case kSpread:
      return "a pod that is counted and leaves one of these nodes' domains, or comes to one that "
             "has the fewest";
    case kSpreadLabel:
      return "the labels that the pod's topologySpreadConstraints name, on one of these nodes";
    case kPodAffinity:
      return "a pod that this one is to be with, in one of these nodes' domains, and the label "
             "that says of which domain each is";
    case kPodAntiAffinity:
      return "the end of a pod that this one is not to be with, in one of these nodes' domains";
    case kExistingAntiAffinity:
      return "the end of a pod that is not to be with this one, in one of these nodes' domains";
    default:
      return "";
  }
}

// What would lift the reason on one of its nodes.
std::string Unblock(const model::Reason& reason, const model::State& state) {
  using enum model::ReasonKind;
  switch (reason.kind) {
    case kInsufficient:
      if (reason.unresolvable) {
        if (reason.resource == model::kGpuMilli) return std::string(kMoreDevices);
        return fmt::format("a node with more {}: even empty, these have too little",
                           state.vocabulary().resources.Name(reason.resource));
      }
      return fmt::format("{} more on one of {} nodes",
                         AmountText(state, reason.resource, reason.deficit), reason.nodes_count);
    case kDevices:
      if (reason.unresolvable) return std::string(kMoreDevices);
      return "GPU devices that become free on one of these nodes";
    case kGpuModel:
      return "a node of an allowed GPU model";
    case kTaint:
      return "a toleration of the taint, or its removal from a node";
    case kUnschedulable:
      return "uncordoning one of these nodes";
    case kAddedAffinity:
      return "a node with labels that the scheduler's profile asks for (addedAffinity)";
    case kAffinity:
    case kAffinityConflict:
    case kNotNamed:
    case kNodeName:
      return "a node with labels that the pod's node selector and affinity ask for";
    case kFeatures:
      return "a node that declares the features the pod needs";
    case kNodeMissing:
      return "the node that the pod names";
    case kGated:
      return "the removal of its scheduling gates";
    case kBackoff:
      return "time";
    default:
      if (auto text = UnblockVolumes(reason.kind); !text.empty()) return std::string(text);
      return std::string(UnblockOtherPods(reason.kind));
  }
}

JsonObject ReasonJson(const model::Reason& reason, const model::State& state) {
  JsonObject object;
  object["kind"] = translate::ToString(reason.kind);
  object["text"] = translate::ReasonText(reason, state);
  object["nodes"] = reason.nodes_count;
  if (reason.resource.valid()) {
    object["resource"] = state.vocabulary().resources.Name(reason.resource);
    object["deficit"] = reason.deficit;
  }
  object["unresolvable"] = reason.unresolvable;
  if (const std::string unblock = Unblock(reason, state); !unblock.empty()) {
    object["unblock"] = unblock;
  }
  return object;
}

JsonObject AmountsJson(std::span<const model::ResourceAmount> amounts, const model::State& state) {
  JsonObject object;
  for (const model::ResourceAmount& amount : amounts)
    object[state.vocabulary().resources.Name(amount.resource)] = amount.amount;
  return object;
}

std::string AmountsText(std::span<const model::ResourceAmount> amounts, const model::State& state) {
  std::string text;
  for (const model::ResourceAmount& amount : amounts) {
    if (amount.resource == model::kPods) continue;  // Every pod is one.
    if (!text.empty()) text += ", ";
    text += AmountText(state, amount.resource, amount.amount);
  }
  return text;
}

// What the pod holds reserved, who is on the way out for it, and until when.
JsonObject PromiseJson(const cycle::Explanation& why, model::PodId pod, const model::State& state) {
  JsonObject object;
  object["node"] = state.NameOf(why.node);
  const auto amounts = state.vocabulary().bundles.View(state.pods().at(pod).charge);
  object["reserves"] = AmountsJson(amounts, state);
  object["text"] = AmountsText(amounts, state);
  if (!why.devices.none()) object["devices"] = GpuIndexText(why.devices);
  JsonArray leaving;
  for (const cycle::Leaver& leaver : why.leaving) {
    JsonObject one;
    one["pod"] = state.KeyOf(leaver.pod);
    one["forIt"] = leaver.for_it;
    one["state"] = leaver.overdue ? "overdue" : leaver.deleting ? "leaving" : "to be evicted";
    if (leaver.until > Instant{}) one["until"] = client::SecondsTime(leaver.until);
    leaving.emplace_back(std::move(one));
  }
  object["leaving"] = std::move(leaving);
  return object;
}

// Why no preemption helps: of all nodes, how many for which reason.
JsonObject PreemptionJson(const model::PreemptionRefusal& refusal, const model::State& state) {
  JsonObject object;
  if (refusal.bar != model::PreemptionBar::kNone) {
    object["bar"] = refusal.bar == model::PreemptionBar::kPolicy ? "its preemptionPolicy is Never"
                    : refusal.bar == model::PreemptionBar::kExtenders
                        ? "extenders permit no node's victims"
                        : "others are still to leave what it is promised";
    return object;
  }
  object["nodes"] = refusal.nodes_count;
  object["notHelpful"] = refusal.not_helpful;
  object["noVictims"] = refusal.no_victims;
  JsonArray reasons;
  for (const model::Reason& reason : refusal.reasons)
    reasons.emplace_back(ReasonJson(reason, state));
  object["reasons"] = std::move(reasons);
  return object;
}

JsonObject MayEvictJson(const cycle::MayEvict& all, const model::State& state) {
  JsonObject object;
  object["nodes"] = all.nodes_count;
  JsonArray pods;
  for (const auto& [priority, count] : all.pods_by_priority) {
    JsonObject one;
    one["priority"] = priority;
    one["count"] = count;
    pods.emplace_back(std::move(one));
  }
  object["pods"] = std::move(pods);
  object["amounts"] = AmountsJson(all.amounts, state);
  object["text"] = AmountsText(all.amounts, state);
  return object;
}

// Whose promises keep it out of which nodes.
JsonObject HeldByJson(const cycle::HeldBy& held, const model::State& state) {
  JsonObject object;
  object["nodes"] = held.nodes_count;
  JsonArray promises;
  for (const cycle::HeldBy::Promise& promise : held.promises) {
    JsonObject one;
    one["node"] = state.NameOf(promise.node);
    one["pod"] = state.KeyOf(promise.pod);
    if (promise.until > Instant{}) one["until"] = client::SecondsTime(promise.until);
    promises.emplace_back(std::move(one));
  }
  object["promises"] = std::move(promises);
  return object;
}

// Who has what it waits for. Of one that is promised it who leaves is told.
void AddHolders(JsonObject& object, const model::Refusal& refusal, model::PodId asker,
                const cycle::Engine& engine) {
  const bool promised = refusal.gang && refusal.gang->promised;
  if (!promised && !engine.state().PromiseOf(asker).valid())
    AddNodeHolders(engine, asker, refusal, object);
  AddQueueHolders(engine, refusal, object);
}

void AddPlace(JsonObject& object, const cycle::Explanation& why, const model::State& state) {
  if (!why.node.valid()) return;
  object["node"] = state.NameOf(why.node);
  if (!why.devices.none()) object["devices"] = GpuIndexText(why.devices);
  const model::NodeId node = state.FindNode(state.NameOf(why.node));
  if (!node.valid() || !state.nodes().present(node)) object["nodeMissing"] = true;
  object["decidedHere"] = why.decided_here;
  if (!why.decided_here) return;
  object["score"] = why.score;
  object["feasibleNodes"] = why.feasible_count;
}

void AddWait(JsonObject& object, const cycle::Explanation& why, model::PodId pod,
             const cycle::Engine& engine) {
  const model::State& state = engine.state();
  object["attempts"] = why.attempts;
  object["waitingAlike"] = why.class_waiting_count;
  object["wouldFit"] = why.would_fit;
  if (why.not_before > Instant{}) object["notBefore"] = client::MicroTime(why.not_before);
  if (why.refused_code != 0) object["refusedCode"] = why.refused_code;
  if (why.asked) object["asksExtenders"] = true;
  if (why.would_fit) return;
  object["message"] = translate::FailedSchedulingText(why.refusal, state);
  if (const auto& gang = why.refusal.gang) {
    object["group"] = JsonObject{
        {"name", state.KeyOf(gang->group)}, {"needed", gang->needed}, {"found", gang->found}};
  }
  JsonArray reasons;
  for (const model::Reason& reason : why.refusal.reasons) {
    reasons.emplace_back(ReasonJson(reason, state));
  }
  object["reasons"] = std::move(reasons);
  if (why.refusal.preemption) object["preemption"] = PreemptionJson(*why.refusal.preemption, state);
  AddHolders(object, why.refusal, pod, engine);
}

// For whom it goes, or why nobody evicts it.
void AddEviction(JsonObject& object, const cycle::Explanation& why, const model::Pod& row,
                 const model::State& state) {
  if (why.evicted_for.valid()) {
    JsonObject eviction;
    eviction[row.released ? "group" : "for"] = state.KeyOf(why.evicted_for);
    eviction["state"] = row.terminating ? "leaving" : "to be evicted";
    if (row.deletion_deadline > Instant{})
      eviction["until"] = client::SecondsTime(row.deletion_deadline);
    object["eviction"] = std::move(eviction);
  }
  if (row.spared_until > Instant{} && !row.terminating)
    object["sparedUntil"] = client::SecondsTime(row.spared_until);
}

void AddPromise(JsonObject& object, const cycle::Explanation& why, model::PodId pod,
                const model::State& state) {
  if (why.promised) object["promise"] = PromiseJson(why, pod, state);
  if (why.lost.why != model::ReasonKind::kNone) {
    JsonObject lost;
    lost["node"] = state.NameOf(why.lost.node);
    lost["kind"] = translate::ToString(why.lost.why);
    lost["text"] = translate::ReasonText({.kind = why.lost.why}, state);
    object["lostPromise"] = std::move(lost);
  }
  if (why.held_by.nodes_count > 0) object["heldBy"] = HeldByJson(why.held_by, state);
  if (why.may_evict) object["mayEvict"] = MayEvictJson(*why.may_evict, state);
}

env::HttpResponse WhyWorkload(const Scheduler& scheduler, const std::string& key) {
  const std::optional<JsonObject> object = WhyWorkloadJson(scheduler, key);
  if (object) return AnswerJson(*object);
  return Problem(404, "NotFound",
                 fmt::format("workload \"{}\" is not known to the scheduler{}", key,
                             scheduler.synced() ? "" : ", which is still reading the cluster"));
}

env::HttpResponse Why(const Scheduler& scheduler, const std::string& key) {
  if (key.find('/') == std::string::npos) {
    return Problem(400, "BadRequest", "the parameter \"pod\" must be NAMESPACE/NAME");
  }
  const model::State& state = scheduler.engine().state();
  const model::PodId pod = state.FindPodByKey(key);
  const UnreadPod* unread = scheduler.unread(key);
  if (!pod.valid() && unread != nullptr) {
    JsonObject object;
    object["pod"] = key;
    object["uid"] = unread->event.uid;
    object["stage"] = "not accepted";
    object["message"] = unread->message;
    return AnswerJson(object);
  }
  if (!pod.valid()) {
    return Problem(404, "NotFound",
                   fmt::format("pod \"{}\" is not known to the scheduler{}", key,
                               scheduler.synced() ? "" : ", which is still reading the cluster"));
  }
  const cycle::Explanation why = scheduler.engine().Explain(pod);
  const std::string uid(state.UidOf(state.OwnerOf(pod)));
  JsonObject object;
  object["pod"] = key;
  object["uid"] = uid;
  object["stage"] = model::ToString(why.stage);
  if (!why.promised) AddPlace(object, why, state);
  if (why.stage == model::PodStage::kPending) AddWait(object, why, pod, scheduler.engine());
  AddPromise(object, why, pod, state);
  AddEviction(object, why, state.pods().at(pod), state);
  if (const std::string* left = scheduler.left_alone(uid)) object["message"] = *left;
  if (!object.contains("message")) {
    if (const auto waiting = scheduler.status().waiting(uid)) {
      object["message"] = waiting->message.view();
    }
  }
  return AnswerJson(object);
}

// ---- Of a PodGroup -----------------------------------------------------------------------------

// In order of MemberKind.
constexpr std::array<std::string_view, model::kMemberKindsCount> kMemberKinds = {
    "apart", "waiting", "decided", "bound", "leaving", "succeeded", "failed"};
// Of a gang of thousands a few tell what the others would.
constexpr size_t kMembersShown = 20;

// Who waits comes first, in the order of names.
std::vector<model::PodId> MembersOf(const model::State& state, model::KeyId group) {
  std::vector<model::PodId> members;
  state.groups().ForMembers(group, [&](model::PodId pod) { members.push_back(pod); });
  std::ranges::sort(members, {}, [&](model::PodId pod) {
    const bool waits = state.groups().KindOf(pod) == model::MemberKind::kWaiting;
    return std::pair(!waits, state.KeyOf(state.pods().at(pod).key));
  });
  return members;
}

// What it is to the group, where it stands or is to, and who leaves for it.
JsonObject MemberJson(const Scheduler& scheduler, model::PodId pod) {
  const model::State& state = scheduler.engine().state();
  const cycle::Explanation why = scheduler.engine().Explain(pod);
  JsonObject object;
  object["pod"] = state.KeyOf(state.pods().at(pod).key);
  object["state"] = kMemberKinds.at(static_cast<size_t>(state.groups().KindOf(pod)));
  if (why.promised) {
    object["promise"] = PromiseJson(why, pod, state);
  } else if (why.node.valid()) {
    object["node"] = state.NameOf(why.node);
  }
  AddEviction(object, why, state.pods().at(pod), state);
  return object;
}

// Who was refused: the first of the class that the refusal is of, of those that wait, or the first.
model::PodId RefusedOf(const model::State& state, std::span<const model::PodId> members,
                       const model::Refusal& refusal) {
  for (const model::PodId pod : members) {
    const bool waits = state.groups().KindOf(pod) == model::MemberKind::kWaiting;
    if (waits && state.pods().at(pod).class_id == refusal.class_id) return pod;
  }
  return members.front();
}

// Why they wait where the group does not: it has all that it needs at once, and each of the others
// waits by itself; or the server refuses what was decided. `members`: who waits comes first.
void AddMemberWait(JsonObject& object, const Scheduler& scheduler, model::GroupId group,
                   std::span<const model::PodId> members) {
  const cycle::Engine& engine = scheduler.engine();
  const model::GroupTable& groups = engine.state().groups();
  const auto waits = [&](model::PodId pod) {
    return groups.KindOf(pod) == model::MemberKind::kWaiting;
  };
  const auto refused = std::ranges::find_if(members, [&](model::PodId pod) {
    return waits(pod) && engine.state().pods().at(pod).refused_code != 0;
  });
  const bool alone = gang::NeedOf(engine.state(), group).needed == 0;
  if (refused == members.end() && !alone) {
    object["wouldFit"] = true;
    return;
  }
  const model::PodId pod = refused == members.end() ? members.front() : *refused;
  object["member"] = engine.state().KeyOf(engine.state().pods().at(pod).key);
  AddWait(object, engine.Explain(pod), pod, engine);
}

// Why its members wait: what the one that was refused would be told, who holds what that one
// waits for, and whom its priority may evict. `members`: who waits comes first.
void AddGroupWait(JsonObject& object, const Scheduler& scheduler, model::GroupId group,
                  std::span<const model::PodId> members) {
  const model::State& state = scheduler.engine().state();
  const std::optional<model::Refusal> refusal = scheduler.engine().WhyGroupWaits(group);
  if (!refusal) return AddMemberWait(object, scheduler, group, members);
  object["wouldFit"] = false;
  object["message"] = translate::FailedSchedulingText(*refusal, state);
  if (refusal->gang) {
    object["needed"] = refusal->gang->needed;
    object["found"] = refusal->gang->found;
  }
  JsonArray reasons;
  // What a gang lacks beside nodes the message says.
  for (const model::Reason& reason : refusal->reasons) {
    if (reason.nodes_count > 0) reasons.emplace_back(ReasonJson(reason, state));
  }
  object["reasons"] = std::move(reasons);
  if (refusal->preemption) object["preemption"] = PreemptionJson(*refusal->preemption, state);
  const model::PodId refused = RefusedOf(state, members, *refusal);
  AddHolders(object, *refusal, refused, scheduler.engine());
  const cycle::Explanation why = scheduler.engine().Explain(refused);
  if (why.held_by.nodes_count > 0) object["heldBy"] = HeldByJson(why.held_by, state);
  if (why.may_evict) object["mayEvict"] = MayEvictJson(*why.may_evict, state);
  const std::optional<int32_t> priority = state.groups().at(group).priority;
  if (priority && *priority > state.pods().at(refused).priority)
    object["priorityOfGroupOnly"] = *priority;
}

env::HttpResponse WhyGroup(const Scheduler& scheduler, const std::string& key) {
  const model::State& state = scheduler.engine().state();
  const model::GroupId group = state.groups().FindKey(state.FindKey(key));
  if (!group.valid()) {
    return Problem(404, "NotFound",
                   fmt::format("podgroup \"{}\" is not known to the scheduler{}", key,
                               scheduler.synced() ? "" : ", which is still reading the cluster"));
  }
  const model::Group& row = state.groups().at(group);
  const model::MemberCounts counts = state.groups().CountsOf(row.key);
  JsonObject object;
  object["podgroup"] = key;
  object["uid"] = state.UidOf(row.uid);
  object["phase"] = model::ToString(PhaseOf(row, counts));
  object["minMember"] = row.min_member;
  object["attempts"] = row.attempts;
  JsonObject members;
  for (size_t kind = 0; kind < kMemberKinds.size(); ++kind) {
    const uint32_t count = counts[static_cast<model::MemberKind>(kind)];
    if (count > 0) members[kMemberKinds.at(kind)] = count;
  }
  object["members"] = std::move(members);
  if (const std::string note = scheduler.groups().NoteOn(state.UidOf(row.uid)); !note.empty())
    object["note"] = note;
  JsonArray workloads;
  for (const model::WorkloadId id : WaitingOfGroup(state, key))
    workloads.emplace_back(state.KeyOf(state.workloads().at(id).key));
  if (!workloads.empty()) object["workloads"] = std::move(workloads);
  const std::vector<model::PodId> pods = MembersOf(state, row.key);
  if (counts[model::MemberKind::kWaiting] > 0) AddGroupWait(object, scheduler, group, pods);
  JsonArray shown;
  for (const model::PodId pod : std::span(pods).first(std::min(pods.size(), kMembersShown)))
    shown.emplace_back(MemberJson(scheduler, pod));
  object["pods"] = std::move(shown);
  return AnswerJson(object);
}

// ---- /debug/ledger ---------------------------------------------------------------------------

env::HttpResponse Ledger(const Scheduler& scheduler, std::string_view target) {
  for (const std::string_view kind : {"node", "queue", "workload"}) {
    const std::string name = Parameter(target, kind);
    if (name.empty()) continue;
    const std::optional<JsonObject> object = kind == "node"    ? LedgerOfNode(scheduler, name)
                                             : kind == "queue" ? LedgerOfQueue(scheduler, name)
                                                               : LedgerOfWorkload(scheduler, name);
    if (object) return AnswerJson(*object);
    return Problem(404, "NotFound", fmt::format("{} \"{}\" is not known", kind, name));
  }
  return AnswerJson(LedgerJson(scheduler));
}

}  // namespace

env::HttpResponse AnswerDebug(const Scheduler& scheduler, const env::HttpRequest& request) {
  const std::string_view target = request.target;
  const std::string_view path = target.substr(0, target.find('?'));
  // Of a HEAD the transport leaves out the body.
  if (request.method != env::Method::kGet && request.method != env::Method::kHead) {
    return Problem(405, "MethodNotAllowed", "only GET and HEAD are served here");
  }
  if (path == "/debug/why" && !Parameter(target, "workload").empty())
    return WhyWorkload(scheduler, Parameter(target, "workload"));
  if (path == "/debug/why" && !Parameter(target, "podgroup").empty())
    return WhyGroup(scheduler, Parameter(target, "podgroup"));
  if (path == "/debug/why") return Why(scheduler, Parameter(target, "pod"));
  if (path == "/debug/ledger") return Ledger(scheduler, target);
  if (path == "/debug/queues") return AnswerJson(QueuesJson(scheduler));
  if (path == "/metrics") return Answer(200, kMetricsType, MetricsText(scheduler));
  if (path == "/metrics/resources")
    return Answer(200, kResourceMetricsType, ResourceMetricsText(scheduler));
  if (std::optional<env::HttpResponse> probe = AnswerProbe(scheduler, target))
    return *std::move(probe);
  return Problem(404, "NotFound", fmt::format("nothing is served at {}", path));
}

}  // namespace berth::control
