#include "translate/quota_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "api/quantity.h"
#include "base/check.h"

namespace berth::translate {
namespace {

using model::FlavorReasonKind;

// As a quantity of the resource is printed: bytes in powers of two.
std::string AmountText(model::ResourceId r, model::Amount amount,
                       const model::Vocabulary& vocabulary) {
  const std::string_view name = vocabulary.resources.Name(r);
  auto quantity = api::ParseQuantity(fmt::format("{}{}", amount, r == model::kCpu ? "m" : ""));
  CHECK(quantity.has_value());
  if (r == model::kMemory || r == model::kEphemeralStorage || name.starts_with("hugepages-"))
    quantity->format = api::QuantityFormat::kBinarySi;
  return api::ToString(*quantity);
}

std::string_view EffectText(model::TaintEffect effect) {
  switch (effect) {
    case model::TaintEffect::kNoSchedule:
      return "NoSchedule";
    case model::TaintEffect::kPreferNoSchedule:
      return "PreferNoSchedule";
    case model::TaintEffect::kNoExecute:
      break;
  }
  return "NoExecute";
}

}  // namespace

std::string FlavorReasonText(const model::FlavorReason& reason,
                             const model::Vocabulary& vocabulary) {
  const auto name = [&](model::NameId id) {
    return id.valid() ? vocabulary.names.View(id) : std::string_view();
  };
  const std::string_view flavor = name(reason.flavor);
  const auto resource = [&] { return vocabulary.resources.Name(reason.resource); };
  const auto amount = [&](model::Amount of) { return AmountText(reason.resource, of, vocabulary); };
  switch (reason.kind) {
    case FlavorReasonKind::kNotCovered:
      return fmt::format("resource {} unavailable in ClusterQueue", resource());
    case FlavorReasonKind::kGone:
      return fmt::format("flavor {} not found", flavor);
    case FlavorReasonKind::kNotAllowed:
      return fmt::format(
          "skipping flavor {} due to WorkloadAllowedResourceFlavorAnnotation annotation", flavor);
    case FlavorReasonKind::kNoTopology:
      return fmt::format("Flavor \"{}\" does not support TopologyAwareScheduling", flavor);
    case FlavorReasonKind::kTopologyGone:
      return fmt::format("Flavor \"{}\" information missing in TAS cache", flavor);
    case FlavorReasonKind::kNoLevel:
      return fmt::format("Flavor \"{}\" does not contain the requested level", flavor);
    case FlavorReasonKind::kTopologyOnly:
      return fmt::format("Flavor \"{}\" supports only TopologyAwareScheduling", flavor);
    case FlavorReasonKind::kTaint:
      return fmt::format("untolerated taint {{{} {} {} <nil>}} in flavor {}",
                         name(reason.taint.key), name(reason.taint.value),
                         EffectText(reason.taint.effect), flavor);
    case FlavorReasonKind::kAffinity:
      return fmt::format("flavor {} doesn't match node affinity", flavor);
    case FlavorReasonKind::kHeldOther:
      return fmt::format("could not assign {} flavor since the original workload is assigned: {}",
                         flavor, name(reason.held));
    case FlavorReasonKind::kExceedsMost:
      return fmt::format(
          "insufficient quota for {} in flavor {}, previously considered podsets requests ({}) + "
          "current podset request ({}) > maximum capacity ({})",
          resource(), flavor, amount(reason.assumed), amount(reason.amount), amount(reason.most));
    case FlavorReasonKind::kShort:
      break;
  }
  return fmt::format("insufficient unused quota for {} in flavor {}, {} more needed", resource(),
                     flavor, amount(reason.amount));
}

std::string_view ToString(model::Unfit unfit) {
  switch (unfit) {
    case model::Unfit::kNone:
      break;
    case model::Unfit::kWaiting:
      return "WaitingForQuota";
    case model::Unfit::kExceeds:
      return "ExceedsMaxQuota";
    case model::Unfit::kNoMatch:
      return "NoMatchingFlavor";
  }
  return "";
}

std::string TopologyFaultText(model::TopologyFault fault, std::span<const model::NameId> flavors,
                              const model::Vocabulary& vocabulary) {
  switch (fault) {
    case model::TopologyFault::kNone:
      return "";
    case model::TopologyFault::kNoInformation:
      return "workload requires Topology, but there is no TAS cache information";
    case model::TopologyFault::kNoFlavor:
      return "no TAS flavor assigned";
    case model::TopologyFault::kSeveralFlavors:
      break;
  }
  std::vector<std::string_view> names;
  for (const model::NameId flavor : flavors) names.push_back(vocabulary.names.View(flavor));
  std::ranges::sort(names);
  return fmt::format("more than one TAS flavor assigned: {}", fmt::join(names, ", "));
}

}  // namespace berth::translate
