#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace berth::cmd {

// The file that a flag names. An error names both: it can't be read, or has no PEM in it.
[[nodiscard]] Result<std::string> ReadPem(std::string_view flag, const std::string& path);

}  // namespace berth::cmd
