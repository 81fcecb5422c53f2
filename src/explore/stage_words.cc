#include <fmt/format.h>

#include <array>
#include <iterator>
#include <string>
#include <string_view>

#include "explore/stage.h"
#include "explore/words.h"

// What happens, in words.
namespace berth::explore {

std::string Stage::TellOfGroups(const Choice& choice) const {
  if (choice.turn == Turn::kHear) {
    constexpr std::array<std::string_view, GroupMaker::kListsCount> kLists = {
        "ReplicaSets", "pods", "PodGroups", "Jobs", "Workloads"};
    return fmt::format("who writes of them hears what comes next of {}", kLists[choice.index]);
  }
  if (choice.turn == Turn::kPlan)
    return fmt::format("what to do about {} is decided", group_maker_->Due()[choice.index]);
  const GroupMaker::Pending& call = group_maker_->pending()[choice.index];
  return fmt::format("the {} for {} arrives", Words(call.request), call.key);
}

std::string Stage::Tell(const Choice& choice) const {
  const auto last = [](const std::string& key) { return key.substr(key.rfind('/') + 1); };
  const auto pod_at = [&] { return last(std::next(truth().pods().begin(), choice.index)->first); };
  const auto other_at = [&] {
    return last(std::next(truth().others().begin(), choice.index)->first);
  };
  switch (choice.turn) {
    case Turn::kUser: {
      const User& user = scenario_->users[choice.index];
      return fmt::format("{}: {}", user.name, user.actions[next_action_[choice.index]].text);
    }
    case Turn::kReplace:
      return fmt::format("{} makes up for a pod", scenario_->owners[choice.index].name);
    case Turn::kFinish:
      return fmt::format("the kubelet ends pod {}", pod_at());
    case Turn::kStart:
      return fmt::format("the kubelet looks at pod {}", pod_at());
    case Turn::kCount:
      return fmt::format("budget {}'s pods are counted", other_at());
    case Turn::kLetGo:
      return fmt::format("workload {} lets go of its quota", other_at());
    case Turn::kMakePod:
      return fmt::format("the Job of workload {} makes a pod", other_at());
    case Turn::kLetIn:
      return fmt::format("a pod of workload {} is let into its topology, or ended", other_at());
    case Turn::kDecide:
      return fmt::format("what to do about pods and nodes of workload {} is decided", other_at());
    case Turn::kLate:
      return fmt::format("the {} of a Job's controller arrives",
                         Words(late_[choice.index].request));
    case Turn::kMark:
      return fmt::format("workload {} is told which of its nodes can't be used", other_at());
    case Turn::kCollect:
      return fmt::format("pod {} is deleted, which no node or owner wants any more", pod_at());
    case Turn::kHear:
    case Turn::kPlan:
    case Turn::kWrite:
      return TellOfGroups(choice);
    case Turn::kAdmit:
      return fmt::format("workload {} is admitted", other_at());
    case Turn::kArrive: {
      constexpr std::array<std::string_view, kFatesCount> kBecomes = {
          "arrives and is carried out", "arrives and is carried out; the answer is lost",
          "is refused with 409",        "is refused with 500",
          "is refused with 403",        "is lost on the way"};
      const Call& call = calls_[choice.index];
      return fmt::format("the {} {}{}", Words(*call.request),
                         call.orphan ? "of the scheduler that crashed " : "",
                         kBecomes[static_cast<size_t>(choice.fate)]);
    }
    case Turn::kAnswer: {
      const Call& call = calls_[choice.index];
      return fmt::format("the scheduler hears {} of its {}", Words(*call.answer),
                         Words(*call.request));
    }
    case Turn::kWatch:
      return fmt::format("the watch of {} tells the scheduler {}",
                         last(watches_[choice.index].target),
                         Words(watches_[choice.index].waiting.front()));
    case Turn::kTick:
      return "the scheduler acts";
    case Turn::kTimer:
      return fmt::format("{:.3f} s pass",
                         static_cast<double>((scheduler_.wake_at() - now_).ns) / 1e9);
    case Turn::kCrash:
      return "the scheduler crashes and starts again";
  }
  return {};
}

}  // namespace berth::explore
