#pragma once

#include <cstdint>
#include <string_view>

#include "api/json.h"

namespace berth::api {

// What a JSON path of a definition's column leads to, or null: of several values the first,
// and JSON null where that is one. Steps:
// `.name` (a dot in a name is written `\.`), `['name']`, `[n]`, `[*]`, `[?(@.a.b=='text')]` (also
// with double quotes). Anything else leads nowhere. Safe on any text and document. It takes of
// `steps` what it looks at, and leads nowhere when there are none left.
// Source: Kubernetes' JSONPath (k8s.io/client-go/util/jsonpath), as far as columns use it.
[[nodiscard]] const Json* FindJsonPath(const Json& document, std::string_view path, int64_t& steps);

}  // namespace berth::api
