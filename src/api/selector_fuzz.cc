// Any text: a label query, a field query, or errors. What parses prints as text that means the
// same.

#include <cstdint>
#include <string_view>

#include "api/selector.h"
#include "api/timestamp.h"
#include "base/check.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace berth;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const api::StringMap labels = {{"a", "b"}, {"n", "7"}};
  if (const Result<api::LabelQuery> query = api::ParseLabelQuery(text)) {
    const Result<api::LabelQuery> again = api::ParseLabelQuery(api::ToString(*query));
    CHECK(again.has_value());
    CHECK_EQ(again->Matches(labels), query->Matches(labels));
  }
  if (const Result<api::FieldQuery> query = api::ParseFieldQuery(text)) {
    const Result<api::FieldQuery> again = api::ParseFieldQuery(api::ToString(*query));
    CHECK(again.has_value());
    CHECK_EQ(again->Matches(labels), query->Matches(labels));
  }
  if (const Result<Instant> time = api::ParseTimestamp(text)) {
    CHECK(api::ParseTimestamp(api::PrintMicroTime(*time)).has_value());
  }
  return 0;
}
