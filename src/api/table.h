#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "api/json.h"
#include "api/kinds.h"
#include "base/time.h"

// Server-side printing: the columns of `kubectl get`, as upstream's printers make them. Pure
// functions.
namespace berth::api {

struct Column {
  std::string_view name;
  std::string_view type;    // "string", "integer", "boolean".
  std::string_view format;  // "name" for the first one, else empty.
  int32_t priority = 0;     // 0: always shown; 1: with -o wide.
};

// Kinds that are not stored have the columns Name and Created At.
[[nodiscard]] std::span<const Column> ColumnsOf(KindId kind);
// A row's cells, one per column: strings, integers or nulls. `now` is what ages count from.
[[nodiscard]] JsonArray CellsOf(KindId kind, const Json& object, Instant now);

// A row's conditions: that a pod has completed. Empty for most.
[[nodiscard]] JsonArray RowConditionsOf(KindId kind, const Json& object);

}  // namespace berth::api
