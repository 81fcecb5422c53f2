#include "api/validate_claims.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>
#include <string>
#include <string_view>

#include "api/object.h"

namespace berth::api::rules {
namespace {

// As upstream's internal type is shown.
Json Shown(const Json& claim) {
  const auto value = [&](std::string_view member) {
    const Json* found = FindMember(claim, member);
    return found == nullptr ? Json() : *found;
  };
  return Json(JsonObject{{"Name", TextAt(claim, "name")},
                         {"ResourceClaimName", value("resourceClaimName")},
                         {"ResourceClaimTemplateName", value("resourceClaimTemplateName")}});
}

void CheckPodClaim(FieldErrors& errors, const Path& path, const Json& claim,
                   std::set<std::string_view>& names) {
  const std::string_view name = TextAt(claim, "name");
  if (name.empty()) {
    AddRequired(errors, path.At("name"));
  } else if (!names.insert(name).second) {
    errors.push_back(DuplicateField(path.At("name").text(), name));
  } else {
    AddInvalid(errors, path.At("name"), name, CheckDns1123Label(name));
  }
  const Json* one = FindMember(claim, "resourceClaimName");
  const Json* made = FindMember(claim, "resourceClaimTemplateName");
  if (one != nullptr && made != nullptr) {
    AddInvalid(errors, path, Shown(claim),
               "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be "
               "specified");
  }
  if (one == nullptr && made == nullptr) {
    AddInvalid(errors, path, Shown(claim),
               "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`");
  }
  for (const std::string_view member : {"resourceClaimName", "resourceClaimTemplateName"}) {
    if (const Json* named = FindMember(claim, member))
      AddInvalid(errors, path.At(member), TextOf(*named), CheckDns1123Subdomain(TextOf(*named)));
  }
}

}  // namespace

void CheckPodClaims(FieldErrors& errors, const Path& spec_path, const Json& spec) {
  const JsonArray& claims = ArrayAt(spec, "resourceClaims");
  std::set<std::string_view> names;
  for (size_t i = 0; i < claims.size(); ++i)
    CheckPodClaim(errors, spec_path.At("resourceClaims", i), claims[i], names);
}

void CheckUsedClaims(FieldErrors& errors, const Path& resources_path, const Json& resources,
                     const Json& spec) {
  const JsonArray& used = ArrayAt(resources, "claims");
  if (used.empty()) return;
  std::set<std::string_view> known;
  for (const Json& claim : ArrayAt(spec, "resourceClaims")) {
    if (const std::string_view name = TextAt(claim, "name"); !name.empty()) known.insert(name);
  }
  // A claim as a whole, or "claim/request".
  std::set<std::string> seen;
  for (size_t i = 0; i < used.size(); ++i) {
    const Path path = resources_path.At("claims", i);
    const std::string name(TextAt(used[i], "name"));
    const std::string_view request = TextAt(used[i], "request");
    if (name.empty()) {
      AddRequired(errors, path);
      continue;
    }
    if (seen.contains(name)) {
      errors.push_back(DuplicateField(path.text(), name));
    } else {
      if (!request.empty())
        AddInvalid(errors, path.At("request"), request, CheckDns1123Label(request));
      const std::string key = request.empty() ? name : fmt::format("{}/{}", name, request);
      const std::string part = name + "/";
      if (seen.contains(key)) {
        errors.push_back(DuplicateField(path.text(), key));
      } else if (request.empty()) {
        for (auto other = seen.lower_bound(part); other != seen.end(); ++other) {
          if (!other->starts_with(part)) break;
          errors.push_back(DuplicateField(path.text(), name));
        }
      }
      seen.insert(key);
    }
    if (known.contains(name)) continue;
    FieldError unknown = NotFoundField(path.text(), name);
    unknown.detail = "must be one of the names in pod.spec.resourceClaims";
    unknown.detail +=
        known.empty() ? " which is empty" : fmt::format(": {}", fmt::join(known, ", "));
    errors.push_back(std::move(unknown));
  }
}

}  // namespace berth::api::rules
