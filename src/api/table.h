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

// What the cells of one answer may take. A column of a user's kind may show any part of an object,
// and a definition has as many columns as fit into it. So an answer's cells have of texts as many
// bytes as the objects that they are of, and some more; what comes then is empty, but the name.
// Steps of JSON paths likewise.
struct CellAllowance {
  int64_t bytes = int64_t{4} * 1024 * 1024;
  int64_t steps = 1'000'000;
  // One more row, of an object of so many bytes.
  void AddRow(size_t object_bytes) {
    bytes += static_cast<int64_t>(object_bytes);
    steps += static_cast<int64_t>(object_bytes) / 4;
  }
};

// Kinds that are not stored have the columns Name and Created At.
[[nodiscard]] std::span<const Column> ColumnsOf(const Kind& kind);
[[nodiscard]] std::span<const Column> ColumnsOf(KindId kind);
// A row's cells, one per column: strings, integers or nulls. `now` is what ages count from.
[[nodiscard]] JsonArray CellsOf(const Kind& kind, const Json& object, Instant now,
                                CellAllowance& allowance);
[[nodiscard]] JsonArray CellsOf(KindId kind, const Json& object, Instant now);

// A row's conditions: that a pod has completed. Empty for most.
[[nodiscard]] JsonArray RowConditionsOf(KindId kind, const Json& object);

}  // namespace berth::api
