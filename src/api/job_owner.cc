#include "api/job_owner.h"

#include <algorithm>

#include "api/quota.h"
#include "api/well_known.h"

namespace berth::api {

std::string_view JobUidOf(const std::vector<OwnerReference>& owners, const StringMap& labels) {
  if (owners.empty()) {
    const auto of_pod = Find(labels, kControllerUidLabel);
    return of_pod ? *of_pod : Find(labels, kJobUidLabel).value_or("");
  }
  const auto controller = std::ranges::find(owners, true, &OwnerReference::controller);
  if (controller == owners.end()) return {};
  const bool is_job = controller->kind == "Job" && controller->api_version.starts_with("batch/");
  return is_job ? std::string_view(controller->uid) : std::string_view();
}

}  // namespace berth::api
