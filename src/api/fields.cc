#include "api/fields.h"

#include <fmt/format.h>

namespace berth::api {

Result<std::vector<std::string>> Conform(KindId /*kind*/, Json& /*document*/) {
  return std::vector<std::string>();
}

std::string StrictDecodingError(std::span<const std::string> problems) {
  return fmt::format("strict decoding error: {}", fmt::join(problems, ", "));
}

}  // namespace berth::api
