#pragma once

#include <cstdint>
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

// The answer of /openapi/v2: a valid document that names no path and no kind. kubectl asks for it
// (as protobuf only) when version 3 does not know a kind, and takes an error for the end of the
// command; a kind that is not in it is left to the server.
enum class OpenApiV2Form : uint8_t { kJson, kProtobuf };
[[nodiscard]] std::string OpenApiV2(OpenApiV2Form form);

}  // namespace berth::codec
