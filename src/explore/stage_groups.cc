#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "explore/requests.h"
#include "explore/stage.h"
#include "explore/words.h"

// Owners, and who makes PodGroups for their pods.
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
  for (const GroupMaker::Pending& pending : group_maker_->pending()) {
    const auto method = static_cast<uint64_t>(pending.request.method);
    add(Turn::kWrite, index++, pending.key + pending.request.target, method);
  }
}

Footprint Stage::ArriveOfGroups(uint32_t index) {
  const GroupMaker::Pending call = group_maker_->pending()[index];
  const bool ends_group =
      call.request.method == env::Method::kDelete && call.request.target.starts_with(kGroupsTarget);
  const std::vector<std::string> wrong =
      ends_group ? group_maker_->JudgeEnd(call.request.target) : std::vector<std::string>{};
  const env::HttpResponse answer = Serve(call.request, {});
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
