#include "api/storage_class.h"

#include "api/object.h"
#include "api/well_known.h"

namespace berth::api {

std::optional<std::string_view> StorageClassNameOf(const Json& object) {
  const Json* name = FindMember(ObjectAt(object, "metadata.annotations"), kStorageClassAnnotation);
  if (name == nullptr || !name->is_string()) name = FindPath(object, "spec.storageClassName");
  if (name == nullptr || !name->is_string()) return std::nullopt;
  return std::string_view(name->get_string());
}

bool WaitsForFirstConsumer(const Json& storage_class) {
  return TextAt(storage_class, "volumeBindingMode") == "WaitForFirstConsumer";
}

bool IsDefaultStorageClass(const Json& storage_class) {
  return AnnotationOf(storage_class, kDefaultClass) == "true" ||
         AnnotationOf(storage_class, kDefaultClassBeta) == "true";
}

}  // namespace berth::api
