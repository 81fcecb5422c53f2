// Any text: an expression of CEL, or a problem that names a place.

#include <cstdint>
#include <string_view>

#include "api/cel_syntax.h"
#include "base/check.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace berth;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const api::CelSyntax syntax = api::ParseCel(text);
  CHECK(syntax.problem.empty() || syntax.problem.starts_with("ERROR: <input>:"));
  return 0;
}
