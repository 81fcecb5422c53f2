// Any text is a kubeconfig or is refused with a message; nothing crashes.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "client/kubeconfig.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto config = berth::client::ParseKubeconfig(text, {.path = "dir/config"});
  if (config) {
    CHECK(!config->host.empty());
    CHECK_NE(config->port, 0);
  } else {
    CHECK(!config.error().message.empty());
  }
  return 0;
}
