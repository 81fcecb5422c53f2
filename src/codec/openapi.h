#pragma once

#include <optional>
#include <string>
#include <string_view>

// OpenAPI v3 in JSON, from the schema table: what kubectl needs to create, apply and explain. Pure
// functions; documents are made anew at each call (a few milliseconds), so keep them.
namespace berth::codec {

// The answer of /openapi/v3: every group version with its document's address, which carries the
// document's hash.
[[nodiscard]] std::string OpenApiIndex();
// The document of "api/v1", "apis/apps/v1", ...; nothing for another path.
[[nodiscard]] std::optional<std::string> OpenApiDocument(std::string_view path);

}  // namespace berth::codec
