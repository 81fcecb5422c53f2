// Goal: no bytes of a webhook's answer crash the reader, and each is a verdict: a failure, a refusal
// with a code of one, or an allowance whose patch is a list. Method: any bytes, as each kind of
// webhook would send them.
#include <cstdint>
#include <string>
#include <string_view>

#include "apiserver/admission_review.h"
#include "base/check.h"
#include "codec/json.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace berth;
  using namespace berth::apiserver;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const std::string_view version : {"v1", "v1beta1"}) {
    for (const bool mutates : {false, true}) {
      const Verdict verdict =
          ReadAnswer({.webhook = "a.b.c", .version = version, .uid = "u", .mutates = mutates},
                     {.status = 200, .headers = {}, .body = Bytes(std::string(text))});
      if (verdict.failed()) continue;
      if (!verdict.allowed) {
        CHECK_GE(verdict.refusal.code, 400);
        CHECK_LE(verdict.refusal.code, 599);
      }
      static_cast<void>(StatusJson(verdict.refusal));
      if (verdict.patch.empty()) continue;
      CHECK(mutates);
      CHECK(verdict.allowed);
      CHECK(codec::ParseJson(verdict.patch).value().is_array());
    }
  }
  return 0;
}
