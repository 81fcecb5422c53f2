// The write path on any document: the first byte chooses the kind, the rest is a document or, after
// a zero byte, a document and a patch. Nothing may crash; what conforms once conforms again
// unchanged; defaults are a fixed point.

#include <cstdint>
#include <string_view>

#include "api/defaults.h"
#include "api/fields.h"
#include "api/patch.h"
#include "api/table.h"
#include "api/validate.h"
#include "base/check.h"
#include "codec/json.h"

namespace {

using namespace berth;

void WriteNew(api::KindId kind, api::Json object) {
  if (!api::Conform(kind, object)) return;
  const std::string once = codec::PrintJson(object);
  CHECK(api::Conform(kind, object).has_value());
  CHECK_EQ(codec::PrintJson(object), once);
  api::ApplyDefaults(kind, object);
  const std::string defaulted = codec::PrintJson(object);
  api::ApplyDefaults(kind, object);
  CHECK_EQ(codec::PrintJson(object), defaulted);
  api::PrepareForCreate(kind, object);
  static_cast<void>(api::ValidateCreate(kind, object));
  static_cast<void>(api::CellsOf(kind, object, Instant()));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const auto kind = static_cast<api::KindId>(data[0] % api::kKindsCount);
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  const size_t cut = text.find('\0');
  const Result<api::Json> document = codec::ParseJson(text.substr(0, cut));
  if (!document) return 0;
  WriteNew(kind, *document);
  if (cut == std::string_view::npos) return 0;
  const Result<api::Json> patch = codec::ParseJson(text.substr(cut + 1));
  if (!patch) return 0;
  for (const api::PatchType type :
       {api::PatchType::kJson, api::PatchType::kMerge, api::PatchType::kStrategic}) {
    Result<api::Json> patched = api::ApplyPatch(type, kind, *document, *patch);
    if (!patched) continue;
    api::PrepareForUpdate(kind, *document, *patched, api::Subresource::kNone);
    static_cast<void>(api::ValidateUpdate(kind, *document, *patched));
  }
  const api::Json between = api::MergePatchBetween(*document, *patch);
  static_cast<void>(api::ApplyMergePatch(*document, between));
  return 0;
}
