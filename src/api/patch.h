#pragma once

#include <cstdint>

#include "api/json.h"
#include "api/kinds.h"
#include "base/result.h"

// Patches of documents: JSON patch (RFC 6902), merge patch (RFC 7386), strategic merge patch
// (Kubernetes). Pure functions.
namespace berth::api {

enum class PatchType : uint8_t { kJson, kMerge, kStrategic };

// A patch may have this many operations, as upstream's limit.
inline constexpr size_t kJsonPatchOperationsMax = 10'000;
// And its copies may add this many bytes.
inline constexpr int64_t kJsonPatchCopyBytesMax = 3 * 1024 * 1024;
// And its insertions and removals may shift this many items and members: a tenth of a second.
inline constexpr int64_t kJsonPatchShiftsMax = 200'000'000;

// The patched document, not yet conformed or validated. Errors: kInvalid for a patch that is none
// (400), kRefused for one that can't be applied to this document (422), kTooLarge past the limits
// (413).
[[nodiscard]] Result<Json> ApplyPatch(PatchType type, KindId kind, const Json& document,
                                      Json patch);

[[nodiscard]] Result<Json> ApplyJsonPatch(const Json& document, const Json& patch);
// Never fails: any document is a merge patch.
[[nodiscard]] Json ApplyMergePatch(const Json& document, const Json& patch);
// Lists merge by the schema table's patch strategies and keys; directives: $patch (replace,
// delete), $retainKeys, $deleteFromPrimitiveList/<field>, $setElementOrder/<field>. A null changes
// nothing. Whole numbers may be written as 1.0 or 1e0; in a merge patch or an object they may not,
// as upstream. What the patch adds moves over, where it lives in the document's memory.
[[nodiscard]] Result<Json> ApplyStrategicPatch(KindId kind, const Json& document, Json patch);

// The smallest merge patch that turns `from` into `to`. (A member of `to` that is null can't be
// expressed.)
[[nodiscard]] Json MergePatchBetween(const Json& from, const Json& to);

}  // namespace berth::api
