#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "api/kinds.h"

// OpenAPI v3 and v2, from the schema table and users' definitions, of the kinds that are served:
// what kubectl needs to create, apply and explain. Pure functions; documents are made anew at each
// call (a few milliseconds, v2 some tens), so keep them.
namespace berth::codec {

// The answer of /openapi/v3: every group version with its document's address, which carries a hash
// of what the document is made of.
[[nodiscard]] std::string OpenApiIndex(std::span<const api::Kind* const> kinds);
// The document of "api/v1", "apis/apps/v1", ...; nothing for another path.
[[nodiscard]] std::optional<std::string> OpenApiDocument(std::span<const api::Kind* const> kinds,
                                                         std::string_view path);

// The answer of /openapi/v2 in JSON: the schemas of all kinds, and no paths.
[[nodiscard]] std::string OpenApiV2(std::span<const api::Kind* const> kinds);
// The same as protobuf, of gnostic's messages: what kubectl reads of version 2.
[[nodiscard]] std::string OpenApiV2Protobuf(std::span<const api::Kind* const> kinds);

}  // namespace berth::codec
