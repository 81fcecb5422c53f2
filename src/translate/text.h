#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/plan.h"
#include "model/reason.h"
#include "model/state.h"

// Typed reasons in Kubernetes' words: what users search for, and what tools parse.
namespace berth::translate {

// The name of a kind as it stands in JSON answers, e.g. "Insufficient".
[[nodiscard]] std::string_view ToString(model::ReasonKind kind);

// The upstream plugin whose reason it is, e.g. "NodeResourcesFit"; empty for berth's own.
[[nodiscard]] std::string_view PluginOf(model::ReasonKind kind);

// The text of one reason, without its count, e.g. "Insufficient cpu".
[[nodiscard]] std::string ReasonText(const model::Reason& reason, const model::State& state);

// All texts of one node's verdict in upstream's order: pods, cpu, memory, ephemeral storage, then
// the others by name.
[[nodiscard]] std::vector<std::string> VerdictTexts(const model::State& state, model::ClassId c,
                                                    const model::Verdict& verdict);

// "0/5 nodes are available: 2 Insufficient cpu, 3 node(s) had untolerated taint(s)." Reasons of one
// text are added up; lines are sorted with their counts, as strings. Without nodes, upstream's own
// text. Then what each plugin says that looked for a way to make room, which a profile may do
// without: "no new claims to deallocate, " (resource claims) and PreemptionText.
[[nodiscard]] std::string FailedSchedulingText(const model::Refusal& refusal,
                                               const model::State& state);

// "preemption: 0/5 nodes are available: 2 No preemption victims found for incoming pod, 3
// Preemption is not helpful for scheduling."
[[nodiscard]] std::string PreemptionText(const model::PreemptionRefusal& refusal,
                                         const model::State& state);

// "Its promise of node n1 was taken back: the node is gone.": what follows, after a space, while
// the pod was promised nothing else. REQUIRES: there was one.
[[nodiscard]] std::string LostPromiseText(const model::LostPromise& lost,
                                          const model::State& state);

}  // namespace berth::translate
