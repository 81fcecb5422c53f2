#pragma once

#include <string>
#include <vector>

#include "api/custom_schema.h"
#include "api/field_error.h"
#include "api/json.h"

// Private to api/: whole objects within objects of users' kinds (x-kubernetes-embedded-resource).
namespace berth::api {

struct Embedded {
  std::string path;  // "spec.items[0]".
  JsonObject* resource;
};

// Those of a document, by the members of its schema. Costs nothing but a look at the schema where
// that has none.
[[nodiscard]] std::vector<Embedded> FindEmbedded(const CustomSchema& schema, JsonObject& document);

// What upstream has against them: each has an apiVersion and a kind, and metadata that are fine.
// Their other members are the schema's.
[[nodiscard]] FieldErrors CheckEmbedded(const CustomSchema& schema, const Json& document);

}  // namespace berth::api
