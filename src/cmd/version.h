#pragma once

#include <string>

namespace berth::cmd {

// "0.1.0", and the commit that it was built of: "unknown" outside of a checkout.
[[nodiscard]] std::string Version();
[[nodiscard]] std::string Commit();

}  // namespace berth::cmd
