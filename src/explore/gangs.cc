#include "explore/gangs.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <variant>

#include "explore/words.h"
#include "sim/gang_checks.h"
#include "sim/group_queues.h"

namespace berth::explore {

void Gangs::OnSent(const env::SendRequest& sent) {
  const std::string_view target =
      std::string_view(sent.request.target).substr(0, sent.request.target.find('?'));
  if (sent.request.method != env::Method::kPost || !target.ends_with("/binding")) return;
  const std::string uid = MemberIn(sent.request.body.view(), "uid");
  calls_[sent.call.value] = uid;
  sent_.insert(uid);
  step_.push_back(uid);
}

void Gangs::OnHeard(const env::Input& input) {
  if (const auto* failed = std::get_if<env::CallFailed>(&input)) {
    const auto call = calls_.find(failed->call.value);
    if (call == calls_.end()) return;
    // What is lost may have been done: it is read.
    if (failed->failure == env::CallFailure::kNotSent) sent_.erase(call->second);
    calls_.erase(call);
  }
  const auto* response = std::get_if<env::Response>(&input);
  if (response == nullptr) return;
  const int status = response->response.status;
  if (const auto call = calls_.find(response->call.value); call != calls_.end()) {
    if (status >= 400 && status < 500) sent_.erase(call->second);
    calls_.erase(call);
    return;
  }
  // A pod that was read and has no node.
  const std::string_view body = response->response.body.view();
  if (status == 200 && body.contains(R"("kind":"Pod",)") && !body.contains(R"("nodeName")"))
    sent_.erase(MemberIn(body, "uid"));
}

std::optional<std::string> Gangs::OnStep(const sim::Truth& heard) {
  const std::vector<std::string> uids = std::exchange(step_, {});
  if (uids.empty()) return std::nullopt;
  const std::vector<sim::GroupFacts> groups = sim::GroupsOf(heard);
  for (const std::string& uid : uids) {
    const auto bound = std::ranges::find_if(
        heard.pods(), [&](const auto& entry) { return entry.second.uid == uid; });
    if (bound == heard.pods().end() || bound->second.group.empty()) continue;
    const std::string& key = bound->second.group;
    const auto group = std::ranges::find(groups, key, &sim::GroupFacts::key);
    if (group == groups.end())
      return fmt::format("pod {} is to be bound, whose group {} is not there", bound->first, key);
    const sim::GroupCounts counts = sim::CountsOf(heard, key);
    const int64_t decided = std::ranges::count_if(
        counts.waiting, [&](const sim::Truth::PodFacts* pod) { return sent_.contains(pod->uid); });
    if (sim::QueueIsBarred(heard, group->queue))
      return fmt::format("pod {} is to be bound, and queue {} lets nobody start", bound->first,
                         group->queue);
    if (const std::string full = Overfull(heard, *group); !full.empty())
      return fmt::format("pod {} is to be bound, with which queue {} has more than it may",
                         bound->first, full);
    if (decided >= counts.needed(*group)) continue;
    return fmt::format("pod {} is to be bound with {} of the {} members that group {} needs",
                       bound->first, counts.ready + decided, group->min_member, key);
  }
  return std::nullopt;
}

// With all whose binding was sent.
std::string Gangs::Overfull(const sim::Truth& heard, const sim::GroupFacts& group) const {
  const auto first = heard.others().lower_bound(std::string(sim::kGroupQueuesPrefix));
  if (first == heard.others().end() || !first->first.starts_with(sim::kGroupQueuesPrefix))
    return {};
  sim::Truth then = heard;
  for (const auto& [key, pod] : heard.pods()) {
    if (!pod.node_name.empty() || !sent_.contains(pod.uid) || !pod.active()) continue;
    std::string document(pod.document.view());
    const size_t spec = document.find("\"spec\":{");
    if (spec == std::string::npos) continue;
    document.insert(spec + 8, "\"nodeName\":\"sent\",");
    then.Apply({.key = std::string(sim::kPodsPrefix) + key, .value = Bytes(document)});
  }
  return sim::OverfullQueue(then, group.queue);
}

// What is on its way is hashed as such.
void Gangs::AddTo(Hasher& hasher) const {
  hasher.Add(sent_.size());
  for (const std::string& uid : sent_) hasher.Add(std::string_view(uid));
}

}  // namespace berth::explore
