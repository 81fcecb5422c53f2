#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "codec/scan.h"
#include "explore/requests.h"
#include "explore/stage.h"
#include "explore/words.h"
#include "explore/workload_models.h"

// Owners and Jobs, and who makes PodGroups for their pods, or lets them run.
namespace berth::explore {

std::string Stage::UidOf(const std::string& owner) const {
  const auto there = std::ranges::find(owners_, owner, &Owner::name);
  const bool object = there != owners_.end() && !there->uid.empty();
  return object ? there->uid : "owner-" + owner;
}

// Where owners are objects their pods are called as those of a StatefulSet: names come back.
std::string Stage::NameOfNextPod(size_t owner) {
  const std::string& name = scenario_->owners[owner].name;
  ++made_[owner];
  if (!group_maker_) return fmt::format("{}-{}", name, made_[owner]);
  made_[owner] = 1;
  uint32_t ordinal = 0;
  while (truth().pods().contains(fmt::format("default/{}-{}", name, ordinal))) ++ordinal;
  return fmt::format("{}-{}", name, ordinal);
}

env::HttpResponse Stage::MakeOwner(Owner owner) {
  env::HttpResponse response = Post(
      std::string(kSetsTarget),
      fmt::format(
          R"({{"metadata":{{"name":"{0}"}},"spec":{{"replicas":{1},"selector":{{"matchLabels":{{"of":"{0}"}}}},"template":{{"metadata":{{"labels":{{"of":"{0}"}}}},"spec":{{{2}}}}}}}}})",
          owner.name, owner.replicas, owner.pod));
  if (response.status != 201) return response;
  owner.uid = MemberIn(response.body.view(), "uid", R"("metadata":{)");
  owners_.push_back(std::move(owner));
  return response;
}

env::HttpResponse Stage::ActOnOwner(const Action& action) {
  const auto owner = std::ranges::find(owners_, action.name, &Owner::name);
  const std::string object = fmt::format("{}/{}", kSetsTarget, action.name);
  env::HttpResponse done{.status = 200, .headers = {}, .body = {}};
  if (action.verb == Action::Verb::kCreate) {
    if (owner != owners_.end()) return {.status = 409, .headers = {}, .body = {}};
    return MakeOwner(*std::ranges::find(scenario_->owners, action.name, &Owner::name));
  }
  if (owner == owners_.end()) return done;
  if (action.verb == Action::Verb::kPatch) {
    owner->replicas = action.replicas;
    return group_maker_ ? Patch(object, action.body) : done;
  }
  owners_.erase(owner);
  return group_maker_ ? Serve(Request(env::Method::kDelete, object, ""), {}) : done;
}

void Stage::AddGroups(std::vector<Choice>& choices) const {
  const auto add = [&](Turn turn, uint32_t index, std::string_view what, uint64_t number = 0) {
    choices.push_back({.turn = turn,
                       .index = index,
                       .key = Hasher().Add(turn).Add(Fate::kDone).Add(what).Add(number).value()});
  };
  for (uint32_t list = 0; list < GroupMaker::kListsCount; ++list) {
    if (group_maker_->HasToHear(list)) add(Turn::kHear, list, "", list);
  }
  uint32_t index = 0;
  for (const std::string& key : group_maker_->Due()) add(Turn::kPlan, index++, key);
  index = 0;
  for (const auto& [key, document] : truth().others()) {
    const uint32_t at = index++;
    if (key.starts_with(kWorkloadsPrefix) && AdmittedStatus(document.view(), now_))
      add(Turn::kAdmit, at, key);
  }
  index = 0;
  for (const GroupMaker::Pending& pending : group_maker_->pending()) {
    const auto method = static_cast<uint64_t>(pending.request.method);
    add(Turn::kWrite, index++, pending.key + pending.request.target, method);
  }
}

env::HttpResponse Stage::Forge(const Action& action) {
  const std::string in = codec::StringMember(action.body, "namespace");
  if (in != "default")
    Post("/api/v1/namespaces", fmt::format(R"({{"metadata":{{"name":"{}"}}}})", in));
  const std::string there = MemberIn(
      Serve(Request(env::Method::kGet, fmt::format("{}/{}", kJobsTarget, action.name), ""), {})
          .body.view(),
      "uid", R"("metadata":{)");
  env::HttpResponse response = Post(
      fmt::format("{}namespaces/{}/workloads", kQuotaTarget, in),
      fmt::format(
          R"({{"apiVersion":"kueue.x-k8s.io/v1beta2","kind":"Workload","metadata":{{"name":"forged","ownerReferences":[{{"apiVersion":"batch/v1","kind":"Job","name":"{}","uid":"{}","controller":true}}]}},"spec":{{"queueName":"q","active":true,"podSets":[{{"name":"main","count":1,"template":{{"spec":{{"containers":[{{"name":"c","image":"i"}}]}}}}}}]}}}})",
          action.name, there));
  CHECK_EQ(response.status, 201);
  return response;
}

// Whoever it was made for.
env::HttpResponse Stage::Drop(const std::string& job) {
  const std::string workload = job_checks_.WorkloadOf(job);
  if (workload.empty()) return {.status = 404, .headers = {}, .body = {}};
  return Serve(
      Request(env::Method::kDelete, CollectionOf(Action::Kind::kWorkload) + "/" + workload, ""),
      {});
}

void Stage::Admit(const std::string& key) {
  const std::string_view path = std::string_view(key).substr(kWorkloadsPrefix.size());
  const size_t slash = path.find('/');
  const env::HttpResponse done =
      Patch(fmt::format("{}namespaces/{}/workloads/{}/status", kQuotaTarget, path.substr(0, slash),
                        path.substr(slash + 1)),
            *AdmittedStatus(truth().others().at(key).view(), now_));
  CHECK_EQ(done.status, 200);
}

Footprint Stage::TakeOfGroups(const Choice& choice) {
  if (choice.turn == Turn::kWrite) return ArriveOfGroups(choice.index);
  if (choice.turn == Turn::kHear) {
    group_maker_->Hear(choice.index);
  } else if (choice.turn == Turn::kPlan) {
    group_maker_->Decide(group_maker_->Due()[choice.index]);
  } else {
    Admit(std::next(truth().others().begin(), choice.index)->first);
  }
  return kTouchesPods;
}

Footprint Stage::ArriveOfGroups(uint32_t index) {
  const GroupMaker::Pending call = group_maker_->pending()[index];
  const bool ends_group =
      call.request.method == env::Method::kDelete && call.request.target.starts_with(kGroupsTarget);
  const std::vector<std::string> wrong =
      ends_group ? group_maker_->JudgeEnd(call.request.target) : std::vector<std::string>{};
  writer_ = call.of_object() ? JobChecks::Writer::kCollector : JobChecks::Writer::kController;
  const env::HttpResponse answer = Serve(call.request, {});
  writer_ = JobChecks::Writer::kOther;
  Told(fmt::format("the API server answers {}", answer.status));
  if (ends_group && answer.status == 200) Report(wrong);
  if (answer.status == 400 || answer.status == 422) {
    checkers_.Report(now_, fmt::format("the controllers' {} is not valid: {}", Words(call.request),
                                       answer.body.view()));
  }
  env::HttpResponse read;
  if (answer.status == 409) read = Serve(GroupMaker::ReadOf(call.write), {});
  group_maker_->OnAnswer(index, answer, answer.status == 409 ? &read : nullptr);
  return kTouchesPods;
}

}  // namespace berth::explore
