#include "api/validate_assignment.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "api/object.h"

namespace berth::api::rules {
namespace {

// The value of a domain at one level: that of all of them, or what it has between what they begin
// and end with.
std::string ValueOf(const Json& column, size_t domain) {
  if (const Json* universal = FindMember(column, "universal"))
    return std::string(TextOf(*universal));
  const JsonArray& roots = ArrayAt(column, "individual.roots");
  return fmt::format("{}{}{}", TextAt(column, "individual.prefix"), TextOf(roots.at(domain)),
                     TextAt(column, "individual.suffix"));
}

int64_t PodsOf(const Json& slice) {
  if (FindPath(slice, "podCounts.universal") != nullptr)
    return IntegerAt(slice, "domainCount") * IntegerAt(slice, "podCounts.universal");
  int64_t pods = 0;
  for (const Json& count : ArrayAt(slice, "podCounts.individual")) pods += count.get_int64();
  return pods;
}

// Domains by their values, each after its length: what values hold separates nothing.
class Seen {
 public:
  // Whether the slice tells of none that was told of; else that is in `again`.
  bool Add(const Json& slice, std::string& again) {
    const auto domains = static_cast<size_t>(IntegerAt(slice, "domainCount"));
    const JsonArray& columns = ArrayAt(slice, "valuesPerLevel");
    for (size_t i = 0; i < domains; ++i) {
      std::string name;
      std::string key;
      for (const Json& column : columns) {
        const std::string value = ValueOf(column, i);
        name += (name.empty() ? "" : "/") + value;
        key += fmt::format("{}:{}", value.size(), value);
      }
      if (seen_.insert(std::move(key)).second) continue;
      again = std::move(name);
      return false;
    }
    return true;
  }

 private:
  std::set<std::string> seen_;
};

}  // namespace

void CheckTopologyAssignment(FieldErrors& errors, const Path& path, const Json& assignment,
                             const PodsToPlace& pods) {
  const JsonArray& slices = ArrayAt(assignment, "slices");
  Seen seen;
  int64_t placed = 0;
  bool twice = false;
  for (size_t i = 0; i < slices.size(); ++i) {
    placed += PodsOf(slices[i]);
    std::string again;
    // The first that is told again is enough.
    if (twice || seen.Add(slices[i], again)) continue;
    twice = true;
    const Path slice = path.At("slices", i);
    errors.push_back(DuplicateField(slice.At("valuesPerLevel").text(), again));
  }
  if (placed <= pods.count && placed >= pods.count - pods.reclaimable) return;
  AddInvalid(errors, path.At("slices"), Json(placed),
             fmt::format("must be as many pods as the pod set has: {}", pods.count));
}

}  // namespace berth::api::rules
