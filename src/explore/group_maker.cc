#include "explore/group_maker.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "api/groups.h"
#include "api/quota.h"
#include "base/check.h"
#include "client/request.h"
#include "codec/scan.h"
#include "controllers/job.h"
#include "controllers/left_workloads.h"
#include "controllers/pod_groups.h"
#include "controllers/workloads.h"
#include "explore/job_checks.h"
#include "explore/requests.h"
#include "explore/reservations.h"

namespace berth::explore {
namespace {

constexpr std::array<api::KindId, GroupMaker::kListsCount> kKinds = {
    api::KindId::kReplicaSet, api::KindId::kPod, api::KindId::kPodGroup, api::KindId::kJob,
    api::KindId::kWorkload};
constexpr std::array<std::string_view, GroupMaker::kListsCount> kPrefixes = {
    sim::kReplicaSetsPrefix, sim::kPodsPrefix, sim::kGroupsPrefix, kJobsPrefix, kWorkloadsPrefix};
constexpr std::string_view kOfGroup = "group ";
constexpr std::string_view kOfJob = "job ";
constexpr std::string_view kOfWorkload = "workload ";
constexpr std::string_view kOfObject = "object ";

std::string UidIn(std::string_view document) {
  return codec::StringMember(codec::Member(document, "metadata"), "uid");
}

std::string_view Last(std::string_view path) { return path.substr(path.rfind('/') + 1); }

// The owner whose group it is called after.
std::string_view OwnerOf(std::string_view group) {
  return group.starts_with(api::kMadeGroupPrefix) ? group.substr(api::kMadeGroupPrefix.size())
                                                  : std::string_view();
}

env::HttpRequest HttpOf(const controllers::Write& write, std::string_view name) {
  const client::Request request =
      controllers::RequestOf(write, name, controllers::ResourceOf(write.kind));
  return Request(request.method, request.target, std::string(request.body.view()),
                 request.content_type);
}

// The document of the ReplicaSet of that uid; empty: there is none.
std::string_view SetOf(const sim::Truth& truth, std::string_view uid) {
  for (const auto& [key, document] : truth.others()) {
    if (key.starts_with(sim::kReplicaSetsPrefix) && UidIn(document.view()) == uid)
      return document.view();
  }
  return {};
}

bool IsIn(const sim::Truth::PodFacts& pod, std::string_view group) {
  return pod.active() && Last(pod.group) == group &&
         pod.document.view().contains(api::kGroupAnnotation);
}

}  // namespace

// ---- What it hears ---------------------------------------------------------------------------

void GroupMaker::OnCommitted(const env::JournalRecord& record) {
  for (size_t list = 0; list < kListsCount; ++list) {
    if (!record.key.starts_with(kPrefixes[list])) continue;
    if (!record.value.empty()) uids_[record.key] = UidIn(record.value.view());
    NoteWanted(record);
    untold_[list].push_back({.uid = uids_[record.key], .document = record.value});
    if (record.value.empty()) uids_.erase(record.key);
  }
}

// An owner that is gone wants none.
void GroupMaker::NoteWanted(const env::JournalRecord& record) {
  if (record.key.starts_with(sim::kGroupsPrefix)) {
    const std::string group(Last(record.key));
    if (record.value.empty()) {
      wanted_since_.erase(group);
    } else {
      wanted_since_.emplace(group, !wants_none_.contains(std::string(OwnerOf(group))));
    }
  }
  if (!record.key.starts_with(sim::kReplicaSetsPrefix)) return;
  const std::string& uid = uids_[record.key];
  const std::string_view spec = codec::Member(record.value.view(), "spec");
  const bool none = record.value.empty() || codec::Member(spec, "replicas") == "0";
  none ? void(wants_none_.insert(uid)) : void(wants_none_.erase(uid));
  const auto group = wanted_since_.find(std::string(api::kMadeGroupPrefix) + uid);
  if (none && group != wanted_since_.end()) group->second = false;
}

void GroupMaker::Hear(size_t list) {
  const Told told = untold_[list].front();
  untold_[list].erase(untold_[list].begin());
  if (told.document.empty()) {
    buried_.erase(told.uid);
    return Forget(told.uid);
  }
  if (!buried_.contains(told.uid)) See(kKinds[list], told.document.view());
}

void GroupMaker::See(api::KindId kind, std::string_view document) {
  std::string taken;
  if (planted_ == sim::Tampering::kForeignTaken && kind == api::KindId::kWorkload) {
    constexpr std::string_view kElsewhere = R"("namespace":"elsewhere")";
    taken = document;
    if (const size_t at = taken.find(kElsewhere); at != std::string::npos) {
      taken.replace(at, kElsewhere.size(), R"("namespace":"default")");
      foreign_.insert(UidIn(taken));
    }
    document = taken;
  }
  const Result<controllers::Difference> difference = objects_.Observe(kind, document);
  CHECK(difference.has_value());
  if (difference->slot == controllers::kNoSlot) return;
  const std::string& uid = objects_.head(difference->slot).uid;
  if (difference->before.uid != uid) known_.erase(difference->before.uid);
  known_[uid] = Bytes(std::string(document));
}

void GroupMaker::Forget(const std::string& uid) {
  objects_.Remove(uid);
  known_.erase(uid);
}

void GroupMaker::Bury(const std::string& uid) {
  if (objects_.Find(uid) == controllers::kNoSlot) return;
  buried_.insert(uid);
  Forget(uid);
}

// ---- What it decides -------------------------------------------------------------------------

bool GroupMaker::Pending::of_object() const { return key.starts_with(kOfObject); }

std::vector<std::string> GroupMaker::Due() const {
  std::set<std::string> keys;
  for (const auto& [uid, document] : known_) {
    const controllers::Head& head = objects_.head(objects_.Find(uid));
    keys.insert(std::string(kOfObject) + uid);
    const std::string group = head.kind == api::KindId::kPod
                                  ? api::MadeGroupName(head.owners, head.uid)
                                  : (head.kind == api::KindId::kPodGroup ? head.name : "");
    if (const std::string_view owner = OwnerOf(group); !owner.empty())
      keys.insert(std::string(kOfGroup) + controllers::GroupId("default", owner));
    if (head.kind == api::KindId::kJob) {
      keys.insert(std::string(kOfJob) + uid);
      keys.insert(std::string(kOfWorkload) + uid);
    } else if (head.kind == api::KindId::kWorkload && !JobUidOf(head).empty()) {
      keys.insert(std::string(kOfWorkload).append(JobUidOf(head)));
    }
  }
  std::vector<std::string> due;
  for (const std::string& key : keys) {
    if (!IsBusy(key) && !PlanFor(key).writes.empty()) due.push_back(key);
  }
  return due;
}

bool GroupMaker::IsBusy(const std::string& key) const {
  return std::ranges::find(pending_, key, &Pending::key) != pending_.end();
}

controllers::Plan GroupMaker::PlanFor(const std::string& key) const {
  if (key.starts_with(kOfObject)) return PlanForObject(key.substr(kOfObject.size()));
  if (key.starts_with(kOfJob)) return PlanForJob(key.substr(kOfJob.size()));
  if (key.starts_with(kOfWorkload)) return PlanForWorkload(key.substr(kOfWorkload.size()));
  const std::string id = key.substr(kOfGroup.size());
  const auto read = owner_read_.find(key);
  std::string version = read == owner_read_.end() ? "" : read->second;
  if (planted_ == sim::Tampering::kGroupEndedUnread) {
    const controllers::Slot group = objects_.Find(
        api::KindId::kPodGroup, "default", std::string(api::kMadeGroupPrefix).append(Last(id)));
    if (group != controllers::kNoSlot) version = objects_.head(group).resource_version;
  }
  controllers::Plan plan = controllers::PlanPodGroup(objects_, id, version);
  Plant(std::string(Last(id)), plan);
  return plan;
}

controllers::Plan GroupMaker::PlanForObject(const std::string& uid) const {
  const controllers::Slot slot = objects_.Find(uid);
  controllers::Plan plan = PlanCollection(objects_, slot, absent_);
  const auto reads = [](const controllers::Write& write) {
    return write.verb == controllers::Verb::kRead;
  };
  if (planted_ != sim::Tampering::kOwnerGoneUnread || std::ranges::none_of(plan.writes, reads))
    return plan;
  plan.writes.clear();
  if (!objects_.head(slot).deletion.has_value())
    plan.writes.push_back(controllers::DeleteSeen(objects_.head(slot), {}));
  return plan;
}

// As Controllers::PlanForJob, ...
controllers::Plan GroupMaker::PlanForJob(const std::string& uid) const {
  const controllers::Slot slot = objects_.Find(uid);
  const controllers::Head& head = objects_.head(slot);
  std::vector<controllers::PodRef> pods;
  for (const controllers::Slot dependent : objects_.DependentsOf(uid)) {
    const controllers::PodRef pod = objects_.pod_ref(dependent);
    if (pod.facts != nullptr && Controls(head, *pod.head)) pods.push_back(pod);
  }
  const api::Job& job = *objects_.job(slot);
  std::vector<controllers::PodRef> orphans;
  for (const controllers::Slot orphan : objects_.OrphanPods(head.namespace_name, job.selector))
    orphans.push_back(objects_.pod_ref(orphan));
  for (std::vector<controllers::PodRef>* each : {&pods, &orphans})
    std::ranges::sort(*each, {}, [](const controllers::PodRef& pod) { return pod.head->name; });
  const bool freely = planted_ == sim::Tampering::kHeldIgnored;
  return controllers::PlanJob({.job = job,
                               .head = head,
                               .owned = std::move(pods),
                               .orphans = std::move(orphans),
                               .trouble = {},
                               .held = !freely && !controllers::MayRun(objects_, slot)},
                              now_);
}

// ... and Controllers::PlanForWorkload.
controllers::Plan GroupMaker::PlanForWorkload(const std::string& uid) const {
  const controllers::Slot job = objects_.Find(uid);
  const bool busy = IsBusy(std::string(kOfJob) + uid);
  controllers::Plan plan = job == controllers::kNoSlot
                               ? controllers::PlanLeftWorkloads(objects_, uid, absent_, busy, now_)
                               : PlanWorkload(objects_, job, busy, {}, now_);
  PlantInWorkload(uid, plan);
  return plan;
}

void GroupMaker::PlantInWorkload(const std::string& job_uid, controllers::Plan& plan) const {
  if (planted_ == sim::Tampering::kFailureUntold) {
    std::erase_if(plan.writes, [](const controllers::Write& write) {
      return write.body.contains(R"("type":"Finished","status":"True")") &&
             write.body.contains(R"("reason":"Failed")");
    });
  }
  if (planted_ == sim::Tampering::kWorkloadsKept) {
    std::erase_if(plan.writes, [](const controllers::Write& write) {
      return write.kind == api::KindId::kWorkload &&
             write.metadata.starts_with(R"("finalizers":null)");
    });
  }
  if (planted_ == sim::Tampering::kForeignTaken) {
    for (controllers::Write& write : plan.writes) {
      if (foreign_.contains(write.uid)) write.namespace_name = "elsewhere";
    }
  }
  if (planted_ != sim::Tampering::kPodsUnasked) return;
  for (const controllers::Slot slot : objects_.WorkloadsFor(job_uid)) {
    const controllers::Head& head = objects_.head(slot);
    const controllers::Slot job = objects_.Find(job_uid);
    const bool left = job != controllers::kNoSlot && QueueNameOf(objects_.head(job)).empty();
    if (head.deletion.has_value() && head.HasFinalizer(api::kInUseFinalizer)) {
      plan.writes = {controllers::WithoutFinalizer(head, api::kInUseFinalizer)};
    } else if (!head.deletion.has_value() && left) {
      plan.writes = {controllers::DeleteSeen(head, {})};
    }
  }
}

void GroupMaker::Plant(const std::string& uid, controllers::Plan& plan) const {
  const auto makes = [](const controllers::Write& write) {
    return write.verb == controllers::Verb::kCreate;
  };
  const auto names = [](const controllers::Write& write) {
    return write.kind == api::KindId::kPod;
  };
  const bool named = std::ranges::none_of(plan.writes, names);
  if (planted_ == sim::Tampering::kEmptyGroupsEnded) EndEmpty(uid, plan);
  if (planted_ == sim::Tampering::kNamedPodsSkipped && named) std::erase_if(plan.writes, makes);
  if (planted_ == sim::Tampering::kEmptyGroupsKept) {
    std::erase_if(plan.writes, [](const controllers::Write& write) {
      return write.verb == controllers::Verb::kRead || write.verb == controllers::Verb::kDelete;
    });
  }
  if (planted_ != sim::Tampering::kGroupByOwnerName) return;
  // The pods name a group of another owner of the same name, where there is one.
  const controllers::Slot owner = objects_.Find(uid);
  for (const controllers::Slot slot : objects_.All(api::KindId::kPodGroup)) {
    const controllers::Head& other = objects_.head(slot);
    const api::OwnerReference* of = other.controller();
    if (owner == controllers::kNoSlot || of == nullptr || of->uid == uid ||
        of->name != objects_.head(owner).name)
      continue;
    std::erase_if(plan.writes, makes);
    for (controllers::Write& write : plan.writes) {
      if (names(write))
        write.metadata = R"("annotations":)" +
                         controllers::MapText({{std::string(api::kGroupAnnotation), other.name}});
    }
  }
}

// A group that nobody is in ends, whatever its owner wants.
void GroupMaker::EndEmpty(const std::string& uid, controllers::Plan& plan) const {
  const std::string name = std::string(api::kMadeGroupPrefix) + uid;
  const controllers::Slot group = objects_.Find(api::KindId::kPodGroup, "default", name);
  if (group == controllers::kNoSlot || !objects_.MembersOf("default", name).empty()) return;
  plan.writes = {controllers::DeleteSeen(objects_.head(group), {})};
}

void GroupMaker::Decide(const std::string& key) {
  for (controllers::Write& write : PlanFor(key).writes) {
    // What is generated is numbered, so that users can say which they mean.
    const std::string name =
        write.generate ? fmt::format("{}{}", write.name, made_[write.name]++) : write.name;
    env::HttpRequest request = HttpOf(write, name);
    pending_.push_back({.key = key, .write = std::move(write), .request = std::move(request)});
  }
}

// ---- What becomes of it: as controllers/calls.cc ---------------------------------------------

env::HttpRequest GroupMaker::ReadOf(const controllers::Write& write) {
  controllers::Write read = write;
  read.verb = controllers::Verb::kRead;
  read.body = {};
  return HttpOf(read, read.name);
}

void GroupMaker::OnAnswer(size_t index, const env::HttpResponse& answer,
                          const env::HttpResponse* read) {
  const Pending call = pending_[index];
  pending_.erase(pending_.begin() + static_cast<ptrdiff_t>(index));
  if (call.write.verb == controllers::Verb::kRead) return OnRead(call, answer);
  if (answer.status == 409) {
    CHECK(read != nullptr);
    return OnRead(call, *read);
  }
  if (answer.status == 404) return Bury(call.write.uid);
  const std::string_view body = answer.body.view();
  const bool is_it = UidIn(body) == call.write.uid;
  const bool stays = codec::Member(body, "metadata").contains("deletionTimestamp");
  if (call.write.verb == controllers::Verb::kDelete && (!is_it || !stays))
    return Bury(call.write.uid);
  if (!buried_.contains(UidIn(body))) See(call.write.kind, body);
}

void GroupMaker::OnRead(const Pending& call, const env::HttpResponse& answer) {
  if (answer.status == 404) return KnowGone(call);
  const std::string uid = UidIn(answer.body.view());
  if (!call.write.uid.empty() && uid != call.write.uid) KnowGone(call);
  if (!buried_.contains(uid)) See(call.write.kind, answer.body.view());
  if (call.write.verb == controllers::Verb::kRead && call.key.starts_with(kOfGroup))
    owner_read_[call.key] = call.write.resource_version;
}

void GroupMaker::KnowGone(const Pending& call) {
  if (call.write.uid.empty()) return;
  const std::string_view object =
      call.of_object() ? std::string_view(call.key).substr(kOfObject.size()) : std::string_view();
  const controllers::Slot dependent = objects_.Find(object);
  if (dependent != controllers::kNoSlot && object != call.write.uid)
    controllers::NoteAbsence(objects_, objects_.head(dependent), call.write, absent_);
  const bool of_workload = call.key.starts_with(kOfWorkload) &&
                           call.write.kind == api::KindId::kJob &&
                           call.write.verb == controllers::Verb::kRead;
  if (of_workload) absent_.insert(controllers::JobAbsence(call.write));
  const controllers::Slot known = objects_.Find(call.write.uid);
  if (known != controllers::kNoSlot &&
      objects_.head(known).namespace_name == call.write.namespace_name)
    Bury(call.write.uid);
}

// Whether an object is known by a newer version than another's is in the documents.
void GroupMaker::AddTo(Hasher& hasher) const {
  const auto add_text = [](Hasher& one, const std::string& text) {
    one.Add(std::string_view(text));
  };
  hasher.AddEach(known_,
                 [](Hasher& one, const auto& entry) { one.AddDocument(entry.second.view()); });
  for (const std::vector<Told>& list : untold_) {
    hasher.Add(list.size());
    for (const Told& told : list)
      hasher.Add(std::string_view(told.uid)).AddDocument(told.document.view());
  }
  hasher.AddEach(pending_, [](Hasher& one, const Pending& call) {
    one.Add(std::string_view(call.key)).Add(call.request.method);
    one.Add(std::string_view(call.request.target)).AddDocument(call.request.body.view());
    one.AddVersion(std::string_view(call.write.resource_version));
  });
  hasher.AddEach(owner_read_, [](Hasher& one, const auto& entry) {
    one.Add(std::string_view(entry.first)).AddVersion(std::string_view(entry.second));
  });
  hasher.AddEach(wants_none_, add_text);
  hasher.AddEach(wanted_since_, [](Hasher& one, const auto& entry) {
    one.Add(std::string_view(entry.first)).Add(entry.second);
  });
  hasher.AddEach(made_, [](Hasher& one, const auto& entry) {
    one.Add(std::string_view(entry.first)).Add(entry.second);
  });
  hasher.AddEach(buried_, add_text).AddEach(absent_, add_text);
}

// ---- Checks ----------------------------------------------------------------------------------

std::vector<std::string> GroupMaker::JudgeEnd(std::string_view target) const {
  const std::string group(Last(target.substr(0, target.find('?'))));
  const auto wanted = wanted_since_.find(group);
  if (wanted == wanted_since_.end() || !wanted->second) return {};
  return {fmt::format("group {} is deleted, and its owner has wanted pods all the time", group)};
}

std::vector<std::string> GroupsAtRest(const sim::Truth& truth) {
  std::vector<std::string> findings;
  const auto there = [&](std::string_view group) {
    return truth.others().contains(fmt::format("{}default/{}", sim::kGroupsPrefix, group));
  };
  for (const auto& [key, pod] : truth.pods()) {
    const std::string_view spec = codec::Member(pod.document.view(), "spec");
    const bool is_member = codec::StringMember(spec, "schedulerName") == api::kVolcanoScheduler;
    if (!pod.active() || pod.owner_uid.empty() || !is_member) continue;
    const std::string group = std::string(api::kMadeGroupPrefix) + pod.owner_uid;
    if (!IsIn(pod, group))
      findings.push_back(fmt::format("at rest, pod {} is in no group of its owner", key));
    if (!there(group))
      findings.push_back(fmt::format("at rest, pod {} waits for a group that is not there", key));
  }
  for (const auto& [key, document] : truth.others()) {
    if (!key.starts_with(sim::kGroupsPrefix)) continue;
    const std::string_view group = Last(key);
    const std::string_view set = SetOf(truth, OwnerOf(group));
    const bool wanted =
        !set.empty() && codec::Member(codec::Member(set, "spec"), "replicas") != "0";
    const bool used = std::ranges::any_of(
        truth.pods(), [&](const auto& entry) { return IsIn(entry.second, group); });
    if (!wanted && !used)
      findings.push_back(fmt::format("at rest, group {} is there for nobody", group));
  }
  return findings;
}

}  // namespace berth::explore
