#pragma once

#include <cstdint>
#include <span>

#include "api/json.h"
#include "api/kinds.h"
#include "api/schema.h"
#include "base/time.h"

// Server-side printing: the columns of `kubectl get`, as upstream's printers make them. Pure
// functions.
namespace berth::api {

// Kinds that are not stored have the columns Name and Created At.
[[nodiscard]] std::span<const Column> ColumnsOf(const Kind& kind);
[[nodiscard]] std::span<const Column> ColumnsOf(KindId kind);
// A row's cells, one per column: strings, integers or nulls. `now` is what ages count from.
[[nodiscard]] JsonArray CellsOf(const Kind& kind, const Json& object, Instant now);
[[nodiscard]] JsonArray CellsOf(KindId kind, const Json& object, Instant now);

// A row's conditions: that a pod has completed. Empty for most.
[[nodiscard]] JsonArray RowConditionsOf(KindId kind, const Json& object);

}  // namespace berth::api
