#include "api/validate_time_zone.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "api/object.h"

namespace berth::api {

void CheckTimeZone(const TimeZones& zones, const Json* old, const Json& object,
                   FieldErrors& errors) {
  constexpr std::string_view kField = "spec.timeZone";
  const Json* zone = FindPath(object, kField);
  const Json* before = old == nullptr ? nullptr : FindPath(*old, kField);
  if (zone == nullptr || !zone->is_string() || (before != nullptr && *before == *zone)) return;
  const std::string_view name = TextAt(object, kField);
  const auto told = std::ranges::find(errors, kField, &FieldError::field);
  if (told != errors.end() || zones.Find(name) != nullptr) return;
  const auto is_later = [](const FieldError& error) {
    return error.field.starts_with("spec.") && error.field != "spec.schedule" &&
           error.field != "spec.startingDeadlineSeconds";
  };
  errors.insert(std::ranges::find_if(errors, is_later),
                InvalidField(std::string(kField), name, fmt::format("unknown time zone {}", name)));
}

}  // namespace berth::api
