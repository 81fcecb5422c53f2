#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/field_set.h"
#include "api/field_walk.h"
#include "api/json.h"
#include "api/kinds.h"
#include "base/result.h"
#include "base/time.h"

// metadata.managedFields: who manages which fields of an object, and what an apply does to it
// (docs/design/0016-server-side-apply.md). Pure functions.
namespace berth::api {

// At most this many managers of updates are told apart; the oldest are told as one.
inline constexpr size_t kUpdateManagersMax = 10;
inline constexpr std::string_view kLastAppliedAnnotation =
    "kubectl.kubernetes.io/last-applied-configuration";

struct ManagedEntry {
  std::string manager;
  bool applied = false;  // The operation: Apply, else Update.
  std::string api_version;
  std::string subresource;  // "status", "scale", "resize"..., or empty.
  std::string time;         // RFC 3339; empty when nobody said.
  FieldSet fields;
};
using ManagedFields = std::vector<ManagedEntry>;

// kInvalid, in upstream's words, when it is none: another operation, no version, no FieldsV1.
[[nodiscard]] Result<ManagedFields> ParseManagedFields(const Json& array);
// The member's value; empty for none.
[[nodiscard]] std::string PrintManagedFields(const ManagedFields& managed);
// The same of entries as somebody wrote them, which may be several of one manager. REQUIRES: they
// are conformed.
[[nodiscard]] std::string PrintManagedFields(const JsonArray& entries);
// What clients write to have it begun anew: an empty list, or one empty entry.
[[nodiscard]] bool ResetsManagedFields(const Json& array);

// A write, as its entry will say.
struct FieldWriter {
  std::string manager;  // "unknown" when nobody says.
  std::string api_version;
  std::string subresource;
  std::string time;    // RFC 3339. Of a scale it is not told, as upstream.
  bool force = false;  // Of an apply: it takes what others manage.
  // Of an apply: there were managers, though those that are given may be none.
  bool managed_before = false;
};

// What a kind is compared by. A view of it.
struct TrackedType {
  TypedBy typed;
  std::vector<std::string_view> resets;  // Fields that the write does not change: "status".
};
[[nodiscard]] TrackedType TrackedTypeOf(const Kind& kind, std::string_view subresource);

// The fields that a write changed are the writer's, and nobody else's any more.
[[nodiscard]] ManagedFields TrackUpdate(const TrackedType& type, const FieldWriter& writer,
                                        ManagedFields managed, const Json& before,
                                        const Json& after);

struct FieldConflict {
  std::string manager;  // As messages say it: `"kubectl" using apps/v1`.
  std::vector<PathElement> path;
};

struct Applied {
  std::vector<FieldConflict> conflicts;  // Nothing is applied when there are any.
  Json object;                           // Not conformed; as it was when `changed` is not set.
  bool changed = false;
  ManagedFields managed;
};

// What was applied before and is not any more goes, unless somebody else manages it.
// REQUIRES: CheckApplied(applied) is empty.
[[nodiscard]] Applied TrackApply(const TrackedType& type, const FieldWriter& writer,
                                 ManagedFields managed, const Json& live, const Json& applied);

// Equal but for times.
[[nodiscard]] bool SameButTimes(const ManagedFields& a, const ManagedFields& b);

}  // namespace berth::api
