#include "apiserver/quotas.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "api/object.h"
#include "api/usage.h"
#include "apiserver/objects.h"

namespace berth::apiserver {

namespace {

using api::Amounts;
using api::Json;
using api::JsonObject;
using api::KindId;

constexpr auto kQuotas = static_cast<store::Table>(KindId::kResourceQuota);

// The kind of a table's objects, as far as counting goes: of users' kinds the names alone, which
// the table's name has.
api::Kind KindOfTable(const store::Store& store, store::Table table) {
  if (table < api::kKindsCount) return api::KindOf(static_cast<KindId>(table));
  const std::string_view name = store.NameOf(table);
  const size_t dot = name.find('.');
  return {.id = KindId::kCustomResource,
          .group = name.substr(dot + 1),
          .plural = name.substr(0, dot),
          .namespaced = true,
          .storage = KindId::kCustomResource};
}

bool IsCounted(const api::Kind& kind) { return kind.namespaced && kind.storage != KindId::kEvent; }

bool TakesOfAny(const api::Kind& kind, const JsonObject& hard) {
  return std::ranges::any_of(hard, [&](const auto& item) { return TakesOf(kind, item.key()); });
}

// The resources that the kind takes, as upstream lists them.
std::string Taken(const api::Kind& kind, const JsonObject& hard) {
  std::vector<std::string_view> names;
  for (const auto& [resource, amount] : hard) {
    if (TakesOf(kind, resource)) names.push_back(resource);
  }
  std::ranges::sort(names);
  return fmt::format("{}", fmt::join(names, ","));
}

void Mask(Amounts& amounts, const JsonObject& hard) {
  std::erase_if(amounts, [&](const auto& item) { return !hard.contains(item.first); });
}

// What an object takes of a quota. A document is needed of kinds with usage of their own only.
Amounts Share(const Json& quota, const api::Kind& kind, const Json& object) {
  if (!api::InScope(quota, kind.id, object)) return {};
  Amounts usage = api::UsageOf(kind, object);
  Mask(usage, api::ObjectAt(quota, "spec.hard"));
  return usage;
}

Amounts ShareOf(const Json& quota, const api::Kind& kind, const store::ObjectRef& object) {
  if (object == nullptr) return {};
  return Share(quota, kind, api::HasUsageOfItsOwn(kind.id) ? Load(*object) : Json());
}

// The tables whose objects can take of a resource.
void AddTables(const store::Store& store, std::string_view resource,
               std::set<store::Table>& tables) {
  constexpr std::string_view kCount = "count/";
  if (resource.starts_with(kCount)) {
    const auto table = store.TableNamed(resource.substr(kCount.size()));
    if (table && IsCounted(KindOfTable(store, *table))) tables.insert(*table);
    return;
  }
  for (const KindId id :
       {KindId::kPod, KindId::kService, KindId::kPersistentVolumeClaim, KindId::kConfigMap,
        KindId::kSecret, KindId::kReplicationController, KindId::kResourceQuota}) {
    if (api::TakesOf(api::KindOf(id), resource)) tables.insert(static_cast<store::Table>(id));
  }
}

// What the objects of its namespace take of a quota, counted one by one. What nothing served takes
// of is left out, as upstream does.
Amounts Count(const store::Store& store, const Json& quota) {
  const JsonObject& hard = api::ObjectAt(quota, "spec.hard");
  std::set<store::Table> tables;
  for (const auto& [resource, amount] : hard) AddTables(store, resource, tables);
  Amounts used;
  for (const store::Table table : tables) {
    const api::Kind kind = KindOfTable(store, table);
    for (const auto& [resource, amount] : hard) {
      if (api::TakesOf(kind, resource)) used.emplace(resource, api::Quantity());
    }
    store.WalkHead(
        {.table = table, .namespace_name = std::string(api::TextAt(quota, "metadata.namespace"))},
        [&](const store::ObjectRef& object) {
          api::AddAmounts(used, ShareOf(quota, kind, object));
          return true;
        });
  }
  return used;
}

// What a quota says is used, where its status is of its spec and tells of all that the kind takes.
std::optional<Amounts> ToldUse(const Json& quota, const api::Kind& kind) {
  const JsonObject& hard = api::ObjectAt(quota, "spec.hard");
  if (!api::SameJson(Json(hard), Json(api::ObjectAt(quota, "status.hard")))) return std::nullopt;
  Amounts used = api::AmountsOf(api::ObjectAt(quota, "status.used"));
  for (const auto& [resource, amount] : hard) {
    if (api::TakesOf(kind, resource) && !used.contains(resource)) return std::nullopt;
  }
  return used;
}

void PutStatus(store::Store& store, Json quota, const Amounts& used) {
  JsonObject status;
  status["hard"] = api::ObjectAt(quota, "spec.hard");
  status["used"] = api::PrintAmounts(used);
  if (api::SameJson(Json(status), Json(api::ObjectAt(quota, "status")))) return;
  quota.get_object()["status"] = std::move(status);
  const api::Kind& kind = api::KindOf(KindId::kResourceQuota);
  const uint64_t revision = store.next_revision();
  Bytes json(PrintCanonical(kind, quota, revision).text);
  store.Put(MakeStored(kind, quota, std::move(json), revision));
}

// An object before and after a commit, either null.
struct Change {
  const store::ObjectRef& before;
  const store::ObjectRef& after;
};

void ChargeOne(store::Store& store, const store::ObjectRef& stored, const api::Kind& kind,
               const Change& change, QuotaCounter counter) {
  Json quota = Load(*stored);
  if (!TakesOfAny(kind, api::ObjectAt(quota, "spec.hard"))) return;
  const Amounts before = ShareOf(quota, kind, change.before);
  const Amounts after = ShareOf(quota, kind, change.after);
  if (api::SameAmounts(before, after)) return;
  std::optional<Amounts> used = ToldUse(quota, kind);
  if (used) {
    api::AddAmounts(*used, after);
    api::SubtractAmounts(*used, before);
  }
  const bool sound =
      used && std::ranges::all_of(*used, [](const auto& item) { return item.second.sign() >= 0; });
  if (!sound && counter == QuotaCounter::kNobody) return;
  if (!sound) used = Count(store, quota);
  PutStatus(store, std::move(quota), *used);
}

// Whether a quota may have to be told of a change of the object.
bool IsCharged(const store::Store& store, const store::StoredObject& object) {
  if (object.table == kQuotas) return true;
  if (object.namespace_name.empty()) return false;
  bool any = false;
  store.WalkHead({.table = kQuotas, .namespace_name = object.namespace_name},
                 [&](const store::ObjectRef& /*quota*/) {
                   any = true;
                   return false;
                 });
  return any && IsCounted(KindOfTable(store, object.table));
}

void Charge(store::Store& store, const store::StoredObject& object, const Change& change,
            QuotaCounter counter) {
  const std::vector<store::ObjectRef> quotas =
      ObjectsIn(store, KindId::kResourceQuota, object.namespace_name);
  const api::Kind kind = KindOfTable(store, object.table);
  const bool stays = change.before != nullptr && change.after != nullptr;
  for (const store::ObjectRef& quota : quotas) {
    if (object.table == kQuotas && quota->name == object.name) {
      if (counter == QuotaCounter::kNobody) continue;
      Json document = Load(*quota);
      const Amounts used = Count(store, document);
      PutStatus(store, std::move(document), used);
    } else if (!stays || api::HasUsageOfItsOwn(kind.id)) {
      ChargeOne(store, quota, kind, change, counter);
    }
  }
}

// Whether a change may be refused for what it takes.
bool Handles(const QuotaWrite& write) {
  if (!IsCounted(write.kind)) return false;
  if (write.old == nullptr) return true;
  if (write.kind.id == KindId::kPod)
    return write.resizes || api::HasDeadline(*write.old) != api::HasDeadline(write.object);
  return api::HasUsageOfItsOwn(write.kind.id);
}

// What the write takes besides.
Amounts Added(const Json& quota, const QuotaWrite& write) {
  Amounts added = Share(quota, write.kind, write.object);
  if (write.old != nullptr) api::SubtractAmounts(added, Share(quota, write.kind, *write.old));
  std::erase_if(added, [](const auto& item) { return item.second.sign() <= 0; });
  return added;
}

// Why a quota has no room for the write, or "".
std::string WhyNot(const store::Store& store, const Json& quota, std::string_view name,
                   const QuotaWrite& write) {
  const Amounts added = Added(quota, write);
  if (added.empty()) return "";
  const std::optional<Amounts> told = ToldUse(quota, write.kind);
  const Amounts used = told ? *told : Count(store, quota);
  Amounts requested;
  Amounts had;
  Amounts limited;
  const Amounts hard = api::AmountsOf(api::ObjectAt(quota, "spec.hard"));
  for (const auto& [resource, amount] : added) {
    const auto limit = hard.find(resource);
    if (limit == hard.end()) continue;
    Amounts sum = {{resource, used.contains(resource) ? used.at(resource) : api::Quantity()}};
    const api::Quantity before = sum.begin()->second;
    api::AddAmounts(sum, {{resource, amount}});
    if (Compare(sum.begin()->second, limit->second) <= 0) continue;
    requested.emplace(resource, amount);
    had.emplace(resource, before);
    limited.emplace(resource, limit->second);
  }
  if (limited.empty()) return "";
  return fmt::format("exceeded quota: {}, requested: {}, used: {}, limited: {}", name,
                     api::JoinAmounts(requested), api::JoinAmounts(had), api::JoinAmounts(limited));
}

}  // namespace

Outcome<void> CheckQuotas(const store::Store& store, const QuotaWrite& write,
                          QuotaCounter counter) {
  if (!Handles(write)) return {};
  const std::vector<store::ObjectRef> stored =
      ObjectsIn(store, KindId::kResourceQuota, write.namespace_name);
  if (stored.empty()) return {};
  const Subject subject{.kind = write.kind, .name = write.name};
  std::vector<Json> quotas;
  for (const store::ObjectRef& quota : stored) {
    Json document = Load(*quota);
    const JsonObject& hard = api::ObjectAt(document, "spec.hard");
    if (!TakesOfAny(write.kind, hard) || !api::InScope(document, write.kind.id, write.object))
      continue;
    if (write.kind.id == KindId::kPod) {
      if (const std::string why = api::WhyUncounted(write.object, hard); !why.empty())
        return Forbidden(subject, fmt::format("failed quota: {}: {}", quota->name, why));
    }
    if (counter == QuotaCounter::kNobody && !ToldUse(document, write.kind)) {
      return Forbidden(subject, fmt::format("status unknown for quota: {}, resources: {}",
                                            quota->name, Taken(write.kind, hard)));
    }
    quotas.push_back(std::move(document));
  }
  for (const Json& quota : quotas) {
    const std::string why = WhyNot(store, quota, api::TextAt(quota, "metadata.name"), write);
    if (!why.empty()) return Forbidden(subject, why);
  }
  return {};
}

void PutCharged(store::Store& store, store::StoredObject next, QuotaCounter counter) {
  if (!IsCharged(store, next)) return store.Put(std::move(next));
  const store::ObjectRef before = store.FindHead(next.table, store::KeyOf(next));
  const store::Table table = next.table;
  const std::string space = next.namespace_name;
  const std::string name = next.name;
  store.Put(std::move(next));
  const store::ObjectRef after = store.FindHead(table, {.namespace_name = space, .name = name});
  Charge(store, *after, {.before = before, .after = after}, counter);
}

void DeleteCharged(store::Store& store, store::StoredObject last, QuotaCounter counter) {
  if (!IsCharged(store, last)) return store.Delete(std::move(last));
  const store::ObjectRef before = store.FindHead(last.table, store::KeyOf(last));
  store.Delete(std::move(last));
  Charge(store, *before, {.before = before, .after = nullptr}, counter);
}

}  // namespace berth::apiserver
