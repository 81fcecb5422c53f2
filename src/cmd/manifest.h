#pragma once

#include <string>
#include <string_view>

#include "api/json.h"
#include "base/result.h"

namespace berth::cmd {

// The one object that the file holds, YAML or JSON. `what`: what it is to be, for errors, which
// name the file.
[[nodiscard]] Result<api::Json> ReadManifest(const std::string& path, std::string_view what);

}  // namespace berth::cmd
