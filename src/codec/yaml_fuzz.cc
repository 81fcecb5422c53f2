// Any bytes: the parser ends with documents or an error, and what it made prints as YAML that reads
// back the same, but for the order of keys, which printing sorts.

#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "codec/yaml.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace berth;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const codec::YamlLimits limits = {.nesting_max = 64, .nodes_max = 10'000, .documents_max = 100};
  const Result<std::vector<api::Json>> documents = codec::ParseYaml(text, limits);
  if (!documents) return 0;
  for (const api::Json& document : *documents) {
    const Result<std::vector<api::Json>> again = codec::ParseYaml(codec::PrintYaml(document));
    CHECK(again.has_value());
    CHECK_EQ(again->size(), size_t{1});
    CHECK(again->front() == document);
  }
  return 0;
}
