#include "api/table.h"

#include <array>
#include <string>

#include "api/object.h"

namespace berth::api {
namespace {
constexpr std::array<Column, 2> kPlain = {
    {{"Name", "string", "name", 0}, {"Created At", "date", "", 0}}};
}  // namespace

std::span<const Column> ColumnsOf(KindId /*kind*/) { return kPlain; }
JsonArray CellsOf(KindId /*kind*/, const Json& object, Instant /*now*/) {
  return {Json(TextAt(object, "metadata.name")),
          Json(TextAt(object, "metadata.creationTimestamp"))};
}

}  // namespace berth::api
