// Any bytes as the API server's answer to a review: a verdict or an error, the same each time, and
// who is let in has a name that can be asked about.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "codec/json.h"
#include "control/reviews.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace berth;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const auto read : {control::ReadTokenReview, control::ReadAccessReview}) {
    const Result<control::Verdict> verdict = read(text);
    CHECK(verdict == read(text));
    if (!verdict) CHECK(!verdict.error().message.empty());
    if (!verdict || !verdict->yes || verdict->requester.name.empty()) continue;
    const std::string review = control::AccessReviewOf(verdict->requester, "get", text);
    CHECK(codec::ParseJson(review).has_value());
  }
  const std::string review = control::TokenReviewOf(text);
  CHECK(codec::ParseJson(review).has_value());
  return 0;
}
