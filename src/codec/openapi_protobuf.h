#pragma once

#include <string>

#include "api/json.h"

// Private to codec/.
namespace berth::codec {

// A document of OpenAPI version 2 as a message openapi.v2.Document of gnostic
// (openapiv2/OpenAPIv2.proto): its version, info and definitions. Of a schema it has what the
// message has: neither oneOf nor anyOf, what begins with `x-` as YAML.
[[nodiscard]] std::string OpenApiV2Message(const api::Json& document);

}  // namespace berth::codec
