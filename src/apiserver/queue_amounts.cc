#include "apiserver/queue_amounts.h"

#include <fmt/format.h>

#include <array>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/object.h"
#include "api/quantity.h"
#include "apiserver/objects.h"

namespace berth::apiserver {
namespace {

using api::Json;
using api::Quantity;

constexpr std::string_view kRoot = "root";
constexpr std::string_view kCapability = "spec.capability";
constexpr std::string_view kDeserved = "spec.deserved";
constexpr std::string_view kGuarantee = "spec.guarantee.resource";
// More than queues may be deep, so a circle that is stored ends.
constexpr int kLevelsMax = 64;

using Amounts = std::map<std::string, Quantity, std::less<>>;

Amounts AmountsAt(const Json& queue, std::string_view member) {
  Amounts amounts;
  for (const auto& [resource, value] : api::ObjectAt(queue, member)) {
    if (value.is_int64()) {
      amounts.emplace(resource, api::QuantityOf(value.get_int64()));
    } else if (const auto amount = api::ParseQuantity(api::TextOf(value))) {
      amounts.emplace(resource, *amount);
    }
  }
  return amounts;
}

// All queues but the root, by name, `queue` as it is to be.
class Tree {
 public:
  Tree(const store::Store& store, const Json& queue) {
    store.WalkHead({.table = static_cast<store::Table>(api::KindId::kQueue)},
                   [&](const store::ObjectRef& one) {
                     if (one->name != kRoot) queues_.insert_or_assign(one->name, Load(*one));
                     return true;
                   });
    queues_.insert_or_assign(std::string(NameOf(queue)), queue);
    for (const auto& [name, one] : queues_)
      children_[std::string(api::TextAt(one, "spec.parent"))].push_back(&one);
  }

  static std::string_view NameOf(const Json& queue) { return api::TextAt(queue, "metadata.name"); }

  // Null: it is the root, or not there.
  [[nodiscard]] const Json* ParentOf(const Json& queue) const {
    const auto parent = queues_.find(api::TextAt(queue, "spec.parent"));
    return parent == queues_.end() ? nullptr : &parent->second;
  }
  [[nodiscard]] std::vector<const Json*> ChildrenOf(const Json& queue) const {
    const auto children = children_.find(NameOf(queue));
    return children == children_.end() ? std::vector<const Json*>() : children->second;
  }

  // Of the nearest above it that has one.
  [[nodiscard]] std::optional<Quantity> CapabilityAbove(const Json& queue,
                                                        std::string_view resource) const {
    const Json* above = ParentOf(queue);
    for (int level = 0; above != nullptr && level < kLevelsMax; ++level) {
      const Amounts amounts = AmountsAt(*above, kCapability);
      const auto found = amounts.find(resource);
      if (found != amounts.end() && found->second.sign() > 0) return found->second;
      above = ParentOf(*above);
    }
    return std::nullopt;
  }
  // The largest of those that the ones below it have, each the topmost of its branch.
  [[nodiscard]] Quantity CapabilityBelow(const Json& queue, std::string_view resource,
                                         int level = 0) const {
    Quantity most;
    for (const Json* child : ChildrenOf(queue)) {
      const Amounts amounts = AmountsAt(*child, kCapability);
      const auto found = amounts.find(resource);
      const bool has = found != amounts.end() && found->second.sign() > 0;
      if (!has && level >= kLevelsMax) continue;
      const Quantity of = has ? found->second : CapabilityBelow(*child, resource, level + 1);
      if (Compare(of, most) > 0) most = of;
    }
    return most;
  }
  [[nodiscard]] Amounts SumOfChildren(const Json& queue, std::string_view member) const {
    Amounts sum;
    for (const Json* child : ChildrenOf(queue)) {
      for (const auto& [resource, amount] : AmountsAt(*child, member)) {
        Quantity& of = sum[resource];
        // What is too much to be added is too much.
        of = api::Add(of, amount).value_or(of);
      }
    }
    return sum;
  }

 private:
  std::map<std::string, Json, std::less<>> queues_;
  std::map<std::string, std::vector<const Json*>, std::less<>> children_;
};

class Checker {
 public:
  Checker(const Tree& tree, const Json& queue) : tree_(tree), queue_(queue) {}

  api::FieldErrors Run() {
    CheckCapability();
    for (const std::string_view member : {kGuarantee, kDeserved}) {
      if (const Json* parent = tree_.ParentOf(queue_)) CheckSum(*parent, member);
      CheckSum(queue_, member);
    }
    return std::move(errors_);
  }

 private:
  void Add(std::string_view field, std::string_view resource, const Quantity& value,
           std::string detail) {
    errors_.push_back(api::InvalidField(fmt::format("{}.{}", field, resource), api::ToString(value),
                                        std::move(detail)));
  }

  void CheckCapability() {
    const std::string_view name = Tree::NameOf(queue_);
    for (const auto& [resource, own] : AmountsAt(queue_, kCapability)) {
      const auto above = tree_.CapabilityAbove(queue_, resource);
      if (above && Compare(own, *above) > 0) {
        Add(kCapability, resource, own,
            fmt::format("queue {} capability[{}]={} exceeds its ancestor's capability={}", name,
                        resource, api::ToString(own), api::ToString(*above)));
      }
      const Quantity below = tree_.CapabilityBelow(queue_, resource);
      if (Compare(own, below) < 0) {
        Add(kCapability, resource, own,
            fmt::format("queue {} capability[{}]={} is smaller than its descendants' max "
                        "capability={}",
                        name, resource, api::ToString(own), api::ToString(below)));
      }
    }
  }

  void CheckSum(const Json& parent, std::string_view member) {
    const std::string_view what = member == kGuarantee ? "guarantee" : "deserved";
    const Amounts limits = AmountsAt(parent, member);
    for (const auto& [resource, sum] : tree_.SumOfChildren(parent, member)) {
      const auto found = limits.find(resource);
      const Quantity limit = found == limits.end() ? Quantity{} : found->second;
      if (Compare(sum, limit) <= 0) continue;
      Add(member, resource, sum,
          fmt::format("sum of children's {0}[{1}] ({2}) exceeds {0}[{1}] ({3}) of their parent "
                      "queue {4}",
                      what, resource, api::ToString(sum), api::ToString(limit),
                      Tree::NameOf(parent)));
    }
  }

  const Tree& tree_;
  const Json& queue_;
  api::FieldErrors errors_;
};

bool SaysTheSame(const Json& a, const Json& b) {
  for (const std::string_view member : {kCapability, kDeserved, kGuarantee}) {
    if (!api::SameJson(Json(api::ObjectAt(a, member)), Json(api::ObjectAt(b, member))))
      return false;
  }
  return api::TextAt(a, "spec.parent") == api::TextAt(b, "spec.parent");
}

}  // namespace

api::FieldErrors QueueAmountErrors(const store::Store& store, const Json* old, const Json& queue) {
  if (Tree::NameOf(queue) == kRoot || (old != nullptr && SaysTheSame(*old, queue))) return {};
  const Tree tree(store, queue);
  return Checker(tree, queue).Run();
}

}  // namespace berth::apiserver
