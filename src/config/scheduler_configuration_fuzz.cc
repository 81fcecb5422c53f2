// Any bytes are a configuration or problems. A configuration can be explained and printed, and what
// is printed means the same.

#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "config/effects.h"
#include "config/scheduler_configuration.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace berth::config;
  std::string text(reinterpret_cast<const char*>(data), size);
  // Few bytes of chance spell the head.
  if (!text.empty() && text.front() != 'a')
    text = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n" + text;
  const auto read = ReadSchedulerConfiguration(text);
  if (!read) {
    CHECK(!read.error().empty());
    return 0;
  }
  const std::string printed = PrintSchedulerConfiguration(*read);
  const auto again = ReadSchedulerConfiguration(printed);
  CHECK(again.has_value());
  CHECK(PrintSchedulerConfiguration(*again) == printed);
  CHECK_EQ(Refusals(Explain(*again)).size(), Refusals(Explain(*read)).size());
  return 0;
}
