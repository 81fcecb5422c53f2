#include "api/patch.h"

namespace berth::api {

Result<Json> ApplyPatch(PatchType /*type*/, KindId /*kind*/, const Json& document,
                        const Json& patch) {
  return ApplyMergePatch(document, patch);
}
Result<Json> ApplyJsonPatch(const Json& document, const Json& /*patch*/) { return document; }
Json ApplyMergePatch(const Json& document, const Json& patch) {
  const JsonObject* changes = patch.if_object();
  if (changes == nullptr) return patch;
  Json result = document;
  if (!result.is_object()) result.emplace_object();
  JsonObject& members = result.get_object();
  for (const auto& [key, value] : *changes) {
    if (value.is_null()) {
      const auto at = members.find(key);
      if (at != members.end()) members.stable_erase(at);
      continue;
    }
    members[key] = ApplyMergePatch(members[key], value);
  }
  return result;
}
Result<Json> ApplyStrategicPatch(KindId /*kind*/, const Json& document, const Json& patch) {
  return ApplyMergePatch(document, patch);
}
Json MergePatchBetween(const Json& /*from*/, const Json& to) { return to; }

}  // namespace berth::api
