// Any bytes are a time zone or are refused with a message; one that is read can be asked anything,
// and a walk through it ends and goes forth.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "api/cron.h"
#include "api/time_zone.h"
#include "base/check.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using berth::Instant;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  berth::Result<berth::api::TimeZone> zone = berth::api::TimeZone::Parse(text);
  // Rules alone are found sooner than those behind a header.
  if (!zone) zone = berth::api::TimeZone::OfRule(text);
  if (!zone) {
    CHECK(!zone.error().message.empty());
    return 0;
  }
  for (const int64_t at :
       {INT64_MIN / 1'000'000'000, int64_t{0}, int64_t{1'800'000'000}, INT64_MAX / 1'000'000'000}) {
    CHECK_LE(std::abs(zone->OffsetAt(at)), int64_t{26} * 3'600);
  }
  const auto schedule = berth::api::CronSchedule::Parse("13 2 */3 * *").value();
  const Instant after = Instant::FromSeconds(1'774'000'000);
  CHECK_GT(schedule.Next(after, *zone), after);
  return 0;
}
