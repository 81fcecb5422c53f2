#pragma once

#include <span>
#include <string>
#include <string_view>

#include "model/flavor_reason.h"
#include "model/vocabulary.h"

// Why a workload waits for quota, in Kueue's words.
namespace berth::translate {

// "insufficient unused quota for cpu in flavor spot, 1 more needed"
[[nodiscard]] std::string FlavorReasonText(const model::FlavorReason& reason,
                                           const model::Vocabulary& vocabulary);

// The reason of the condition QuotaReserved, as "WaitingForQuota"; of none empty.
[[nodiscard]] std::string_view ToString(model::Unfit unfit);

// "more than one TAS flavor assigned: a, b". `flavors`: those that have a topology, in any order.
[[nodiscard]] std::string TopologyFaultText(model::TopologyFault fault,
                                            std::span<const model::NameId> flavors,
                                            const model::Vocabulary& vocabulary);

}  // namespace berth::translate
