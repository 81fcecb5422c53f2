#pragma once

#include <optional>
#include <string_view>

#include "api/json.h"
#include "model/delta.h"
#include "model/vocabulary.h"

// Objects of storage to the model's facts. Documents are read as they are, for nothing but what is
// asked of them is known of them here.
namespace berth::translate {

// By the resource's name, e.g. "persistentvolumeclaims": of claims, volumes, storage classes, CSI
// drivers, CSI nodes, capacities and volume attachments; nothing of any other. What can't be
// understood is as if it weren't said. Cost: O(size of the object).
[[nodiscard]] std::optional<model::StorageFact> StorageFactOf(std::string_view plural,
                                                              const api::Json& object,
                                                              model::Vocabulary& vocabulary);
// The same of an object that is gone. `key`: its name, with "namespace/" before it where it has
// one.
[[nodiscard]] std::optional<model::StorageFact> StorageGone(std::string_view plural,
                                                            std::string_view key,
                                                            model::Vocabulary& vocabulary);

}  // namespace berth::translate
