// Any document in place of an object of storage: a fact or none comes of it, the same again, and a
// table takes it without harm.

#include <cstdint>
#include <string_view>

#include "api/json.h"
#include "base/check.h"
#include "base/hash.h"
#include "codec/json.h"
#include "model/volumes.h"
#include "translate/volume_facts.h"

namespace {

constexpr std::string_view kPlurals[] = {
    "persistentvolumeclaims", "persistentvolumes", "storageclasses", "csidrivers", "csinodes",
    "csistoragecapacities",   "volumeattachments"};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace berth;
  const Result<api::Json> parsed =
      codec::ParseJson(std::string_view(reinterpret_cast<const char*>(data), size));
  if (!parsed) return 0;
  const api::Json& object = *parsed;
  model::Vocabulary vocabulary;
  model::VolumeTable table;
  for (const std::string_view plural : kPlurals) {
    const auto fact = translate::StorageFactOf(plural, object, vocabulary);
    CHECK(fact.has_value());
    CHECK(fact->row == translate::StorageFactOf(plural, object, vocabulary)->row);
    table.Apply(*fact);
    CHECK(!table.Apply(*fact));
  }
  Hasher hasher;
  table.AddTo(hasher);
  for (const std::string_view plural : kPlurals) {
    const auto fact = translate::StorageFactOf(plural, object, vocabulary);
    model::StorageFact gone = *fact;
    gone.gone = true;
    table.Apply(gone);
  }
  return 0;
}
