#pragma once

#include <optional>
#include <string_view>

#include "env/http.h"

namespace berth::control {

class Scheduler;

// Answers GET /healthz, /livez and /readyz as kube-scheduler does: "ok", or 500 with a line for
// each check; ?verbose gives the lines always, ?exclude=NAME leaves a check out, and /readyz/NAME
// is one check alone. Nothing: the path is none of these.
//
//   /healthz  leaderElection     ping where there is no election
//   /livez    ping
//   /readyz   leaderElection, sched-handler-sync (all was listed, and no watch has been refused for
//             a minute), shutdown (it is not to stop)
//
// A standby is ready. leaderElection can't fail here: who can't renew its lease leads no more.
[[nodiscard]] std::optional<env::HttpResponse> AnswerProbe(const Scheduler& scheduler,
                                                           std::string_view target);

}  // namespace berth::control
