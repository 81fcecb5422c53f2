#pragma once

#include <span>
#include <vector>

#include "api/types.h"
#include "model/lists.h"
#include "model/vocabulary.h"

// Private to translate/: small lists that several kinds of object have.
namespace berth::translate {

[[nodiscard]] std::vector<model::Label> LabelsOf(const api::StringMap& labels,
                                                 model::Vocabulary& vocabulary);

// In the object's order, without those of unknown effect, as upstream ignores them.
[[nodiscard]] std::vector<model::Taint> TaintsOf(std::span<const api::Taint> taints,
                                                 model::Vocabulary& vocabulary);

// Without those of unknown operator or effect; invalid when none is left.
[[nodiscard]] model::TolerationListId InternTolerations(
    std::span<const api::Toleration> tolerations, model::Vocabulary& vocabulary);

// The ports of its node that a pod takes: of those of its containers that run all the time.
[[nodiscard]] std::vector<model::HostPort> HostPortsOf(const api::PodSpec& spec,
                                                       model::Vocabulary& vocabulary);

}  // namespace berth::translate
