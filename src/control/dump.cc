#include "control/dump.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "control/say.h"
#include "control/scheduler.h"
#include "env/log_keys.h"
#include "model/audit.h"
#include "model/lifecycle.h"

namespace berth::control {
namespace {

constexpr auto kInfo = env::LogLevel::kInfo;

std::string AmountsOf(const model::State& state, model::NodeId node) {
  const model::AccountTable& table = state.ledger().nodes();
  std::string text;
  for (uint32_t r = 0; r < table.resources(); ++r) {
    const model::ResourceId id{r};
    if (table.capacity(id, node.value) == 0 && table.free(id, node.value) == 0) continue;
    text +=
        fmt::format("{}{} {}/{}", text.empty() ? "" : ", ", state.vocabulary().resources.Name(id),
                    table.free(id, node.value), table.capacity(id, node.value));
  }
  return text;
}

// Of who is charged: its key; its uid, when it is gone.
std::string_view NameOfOwner(const model::State& state, model::OwnerId owner) {
  const std::string_view uid = state.UidOf(owner);
  if (const model::PodId pod = state.FindPod(uid); pod.valid())
    return state.KeyOf(state.pods().at(pod).key);
  if (const model::WorkloadId workload = state.FindWorkload(uid); workload.valid())
    return state.KeyOf(state.workloads().at(workload).key);
  return uid;
}

struct ClaimLine {
  std::string_view owner;
  std::string_view uid;
  std::string_view state;
  std::string amounts;
};

std::vector<ClaimLine> ClaimsOn(const model::State& state, model::NodeId node) {
  constexpr std::array<std::string_view, 3> kStates = {"held", "reserved", "releasing"};
  const model::AccountTable& table = state.ledger().nodes();
  std::vector<ClaimLine> lines;
  for (const model::ClaimId first :
       {table.first_claim(node.value), table.first_reserved(node.value)}) {
    for (model::ClaimId id = first; id.valid(); id = state.ledger().claim(id).next_in_account) {
      const model::Claim& claim = state.ledger().claim(id);
      ClaimLine line{.owner = NameOfOwner(state, claim.owner),
                     .uid = state.UidOf(claim.owner),
                     .state = kStates.at(static_cast<size_t>(claim.state)),
                     .amounts = {}};
      for (const model::ResourceAmount& amount : state.vocabulary().bundles.View(claim.bundle)) {
        line.amounts +=
            fmt::format("{}{} {}", line.amounts.empty() ? "" : ", ",
                        state.vocabulary().resources.Name(amount.resource), amount.amount);
      }
      lines.push_back(std::move(line));
    }
  }
  std::ranges::sort(lines, {}, [](const ClaimLine& line) {
    return std::pair(line.owner, std::pair(line.uid, line.state));
  });
  return lines;
}

void TellMore(size_t count, std::string_view of, env::Outbox& out) {
  if (count > kDumpLinesMax)
    Say(out, kInfo, fmt::format("dump: {} more {} are left out", count - kDumpLinesMax, of));
}

void DumpNodes(const model::State& state, env::Outbox& out) {
  std::vector<std::pair<std::string_view, model::NodeId>> names;
  for (uint32_t row = 0; row < state.nodes().size(); ++row) {
    const model::NodeId node{row};
    if (state.nodes().used(node)) names.emplace_back(state.NameOf(state.nodes().name(node)), node);
  }
  std::ranges::sort(names);
  size_t claims = 0;
  for (const auto& [name, node] : names) {
    Say(out, kInfo,
        env::WithKeys("dump: node",
                      {{"node", name},
                       {"present", state.nodes().present(node) ? "true" : "false"},
                       {"schedulable", state.nodes().unschedulable(node) ? "false" : "true"},
                       {"free", AmountsOf(state, node)}}));
    for (const ClaimLine& line : ClaimsOn(state, node)) {
      if (++claims > kDumpLinesMax) continue;
      Say(out, kInfo,
          env::WithKeys("dump: claim", {{"node", name},
                                        {"owner", line.owner},
                                        {"uid", line.uid},
                                        {"state", line.state},
                                        {"amounts", line.amounts}}));
    }
  }
  TellMore(claims, "claims", out);
}

// Pods that have no node.
void DumpQueue(const Scheduler& scheduler, env::Outbox& out) {
  const model::State& state = scheduler.engine().state();
  std::vector<std::pair<std::string_view, model::PodId>> keys;
  for (uint32_t row = 0; row < state.pods().size(); ++row) {
    const model::PodId pod{row};
    if (!state.pods().used(pod) || state.pods().at(pod).node.valid()) continue;
    if (state.pods().at(pod).terminal) continue;
    keys.emplace_back(state.KeyOf(state.pods().at(pod).key), pod);
  }
  std::ranges::sort(keys);
  for (const auto& [key, id] : std::span(keys).first(std::min(keys.size(), kDumpLinesMax))) {
    const model::Pod& pod = state.pods().at(id);
    const std::string_view uid = state.UidOf(pod.uid);
    const std::string* alone = scheduler.left_alone(uid);
    Say(out, kInfo,
        env::WithKeys("dump: pod",
                      {{"pod", key},
                       {"uid", uid},
                       {"stage", model::ToString(model::StageOf(pod))},
                       {"priority", fmt::format("{}", pod.priority)},
                       {"nominatedNode", pod.nominated.valid() ? state.NameOf(pod.nominated) : ""},
                       {"note", alone == nullptr ? "" : *alone}}));
  }
  TellMore(keys.size(), "pods", out);
}

}  // namespace

void Dump(const Scheduler& scheduler, env::Outbox& out) {
  const model::State& state = scheduler.engine().state();
  Say(out, kInfo,
      env::WithKeys("dump: begins", {{"nodes", fmt::format("{}", state.nodes().present_count())},
                                     {"pods", fmt::format("{}", state.pods().live())},
                                     {"claims", fmt::format("{}", state.ledger().claims_live())},
                                     {"leads", scheduler.may_write() ? "true" : "false"}}));
  DumpNodes(state, out);
  DumpQueue(scheduler, out);
  const std::vector<std::string> findings = model::Audit(state);
  for (const std::string& finding : findings)
    Say(out, env::LogLevel::kError, fmt::format("dump: audit of the ledger: {}", finding));
  Say(out, kInfo, env::WithKeys("dump: ends", {{"findings", fmt::format("{}", findings.size())}}));
}

}  // namespace berth::control
