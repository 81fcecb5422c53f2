#include "codec/openapi.h"

namespace berth::codec {

std::string OpenApiIndex() { return R"({"paths":{}})"; }
std::optional<std::string> OpenApiDocument(std::string_view /*path*/) { return std::nullopt; }

}  // namespace berth::codec
