#include "explore/promises.h"

#include <fmt/format.h>

#include <limits>
#include <vector>

#include "explore/words.h"

namespace berth::explore {

void Promises::OnPod(std::string_view document) {
  const std::string node = MemberIn(document, "nominatedNodeName");
  if (!node.empty()) nominated_.insert(node);
}

std::optional<std::string> Promises::OnEviction(const sim::Truth& truth, const Deletion& deletion,
                                                uint32_t most) {
  const std::string_view target = deletion.target.substr(0, deletion.target.find('?'));
  const std::string name(target.substr(target.rfind('/') + 1));
  const std::string uid = MemberIn(deletion.body, "uid");
  if (uid.empty()) return fmt::format("pod {} is evicted without its uid", name);
  const auto at = truth.pods().find("default/" + name);
  // Gone, or another of its name: the fence holds.
  if (at == truth.pods().end() || at->second.uid != uid) return std::nullopt;
  const sim::Truth::PodFacts& victim = at->second;
  evicted_.insert(uid);
  if (heard_.contains(uid))
    return fmt::format("pod {} (uid {}) is evicted a second time", name, uid);
  if (deletion.heard) heard_.insert(uid);
  if (!nominated_.contains(victim.node_name)) {
    return fmt::format("pod {} is evicted before any pod was nominated to its node {}", name,
                       victim.node_name);
  }
  if (evicted_.size() > most) {
    return fmt::format("pod {} is evicted, the {}. one: {} are enough", name, evicted_.size(),
                       most);
  }
  return std::nullopt;
}

void Promises::AddTo(Hasher& hasher) const {
  for (const std::set<std::string>* each : {&nominated_, &evicted_, &heard_}) {
    hasher.Add(each->size());
    for (const std::string& text : *each) hasher.Add(std::string_view(text));
  }
}

std::string OverPromised(const model::State& state) {
  const model::NodeTable& nodes = state.nodes();
  const model::BundleTable& bundles = state.vocabulary().bundles;
  const model::Viewer everything{.owner = {}, .priority = std::numeric_limits<int32_t>::min()};
  for (uint32_t row = 0; row < nodes.size(); ++row) {
    const model::NodeId node{row};
    if (!nodes.used(node) || !nodes.present(node)) continue;
    // What others nominate is a fact, whether it fits or not.
    std::vector<model::BundleId> foreign;
    bool ours = false;
    for (model::ClaimId id = state.ledger().nodes().first_reserved(row); id.valid();
         id = state.ledger().claim(id).next_in_account) {
      const model::PodId holder = state.pods().FindUid(state.ledger().claim(id).owner);
      if (holder.valid() && state.pods().at(holder).ours) {
        ours = true;
      } else {
        foreign.push_back(state.ledger().claim(id).bundle);
      }
    }
    if (!ours) continue;  // Nodes shrink, and others bind.
    for (const model::ResourceId resource : {model::kCpu, model::kMemory, model::kPods}) {
      model::Amount left =
          state.ledger().Future(model::AccountId::OfNode(node), resource, everything, bundles);
      for (const model::BundleId bundle : foreign) left += bundles.AmountOf(bundle, resource);
      if (left >= 0) continue;
      return fmt::format("node {} is promised to more than fit: {} of {} too much",
                         state.NameOf(nodes.name(node)), -left,
                         state.vocabulary().resources.Name(resource));
    }
  }
  return {};
}

}  // namespace berth::explore
