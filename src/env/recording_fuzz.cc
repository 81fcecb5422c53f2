// Goal: no bytes in place of a recording crash berth, and none take much more memory than they are.
// Method: the first byte says whether the rest is a file, or the items of a block, to which no
// checksum bars the way; what is read as a step is written and read again as the same.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "base/check.h"
#include "env/recording.h"

namespace {

void ReadItems(std::string_view items) {
  while (!items.empty()) {
    const auto item = berth::env::TakeItem(items);
    if (!item) return;
    const auto* step = std::get_if<berth::env::StepRead>(&*item);
    if (step == nullptr) continue;
    std::string again;
    berth::env::AppendRead(*step, again);
    std::string_view rest = again;
    const auto once_more = berth::env::TakeItem(rest);
    CHECK(once_more.has_value());
    CHECK(rest.empty());
    CHECK(berth::env::Describe(step->input) ==
          berth::env::Describe(std::get<berth::env::StepRead>(*once_more).input));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view rest(reinterpret_cast<const char*>(data + 1), size - 1);
  if (data[0] % 2 == 0) {
    ReadItems(rest);
    return 0;
  }
  auto reader = berth::env::RecordingReader::Open(rest);
  if (!reader) return 0;
  for (;;) {
    const auto item = reader->Next();
    if (!item || !*item) return 0;
  }
}
