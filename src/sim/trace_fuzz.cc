#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "sim/trace.h"

// Any bytes are a trace or an error that names a place; with skip_bad the rest is kept.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const bool skip_bad : {false, true}) {
    const berth::sim::TraceOptions options{.file_name = "f.csv", .skip_bad = skip_bad};
    const auto nodes = berth::sim::ParseTraceNodes(text, options);
    if (!nodes) CHECK(nodes.error().message.starts_with("f.csv:"));
    const auto pods = berth::sim::ParseTracePods(text, options);
    if (!pods) CHECK(pods.error().message.starts_with("f.csv:"));
    if (nodes && !skip_bad) CHECK(nodes->skipped.empty());
  }
  return 0;
}
