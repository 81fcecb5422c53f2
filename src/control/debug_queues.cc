#include "control/debug_queues.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "client/request.h"
#include "control/debug_workload.h"
#include "control/scheduler.h"
#include "cycle/admissions.h"
#include "model/workload_stage.h"
#include "translate/quota_text.h"
#include "translate/text.h"

namespace berth::control {
namespace {

using api::JsonArray;
using api::JsonObject;
using model::QueueId;
using model::QuotaView;

JsonObject QuotaJson(const model::State& state, uint32_t account, model::ResourceId r) {
  const model::QuotaTree& tree = state.ledger().quota();
  const std::string_view resource = state.vocabulary().resources.Name(r);
  const auto text = [&](model::Amount amount) {
    return translate::ResourceAmountText(resource, amount);
  };
  const model::Quota& quota = tree.quota(r, account);
  const model::Amount has = tree.subtree(r, account);
  const model::Amount used = tree.used(QuotaView::kPhysical, r, account);
  const model::Amount all = tree.used(QuotaView::kNow, r, account);
  const model::Amount left =
      std::max(model::Amount{0}, tree.LeftFor(QuotaView::kPhysical, r, account).amount);
  JsonObject object;
  const model::NameId flavor = state.queues().account(account).flavor;
  object["flavor"] = state.NameOf(flavor);
  if (state.flavors().Find(flavor) == nullptr) object["flavorMissing"] = true;
  object["resource"] = resource;
  object["nominal"] = text(quota.nominal);
  if (quota.borrowing_limit != model::kUnlimited)
    object["borrowingLimit"] = text(quota.borrowing_limit);
  if (quota.lending_limit != model::kUnlimited) object["lendingLimit"] = text(quota.lending_limit);
  object["has"] = text(has);
  object["used"] = text(used);
  if (const auto leaving = all - tree.used(QuotaView::kFuture, r, account); leaving > 0)
    object["leaving"] = text(leaving);
  if (all > used) object["promised"] = text(all - used);
  if (used > has) object["borrowed"] = text(used - has);
  if (has - used > left) object["lent"] = text(has - used - left);
  object["left"] = text(left);
  return object;
}

// Of a Volcano queue: what its own limits and those above it leave.
JsonObject ShareJson(const model::State& state, uint32_t account, model::ResourceId r) {
  const model::QuotaTree& tree = state.ledger().quota();
  const std::string_view resource = state.vocabulary().resources.Name(r);
  const auto text = [&](model::Amount amount) {
    return translate::ResourceAmountText(resource, amount);
  };
  const model::Quota& quota = tree.quota(r, account);
  const bool root = tree.parent(account) == model::QuotaTree::kNoRow;
  JsonObject object;
  object["resource"] = resource;
  if (!root && quota.nominal > 0) object["deserved"] = text(quota.nominal);
  if (!root && quota.lending_limit < quota.nominal)
    object["guarantee"] = text(quota.nominal - quota.lending_limit);
  const bool bounded = tree.defined(r, account) && quota.borrowing_limit != model::kUnlimited;
  if (bounded) object["has"] = text(quota.nominal + quota.borrowing_limit);
  if (root && tree.defined(r, account)) object["has"] = text(quota.nominal);
  const model::Amount used = tree.used(QuotaView::kPhysical, r, account);
  const model::Amount all = tree.used(QuotaView::kNow, r, account);
  object["used"] = text(used);
  if (const auto leaving = all - tree.used(QuotaView::kFuture, r, account); leaving > 0)
    object["leaving"] = text(leaving);
  if (all > used) object["promised"] = text(all - used);
  const model::Amount left = std::min(tree.LeftFor(QuotaView::kPhysical, r, account).amount,
                                      tree.LeftFor(QuotaView::kFuture, r, account).amount);
  if (left != model::kUnlimited) object["left"] = text(std::max(model::Amount{0}, left));
  return object;
}

// Those that are used, or that there is quota of.
JsonArray QuotasJson(const model::State& state, QueueId q) {
  JsonArray quotas;
  const model::QuotaTree& tree = state.ledger().quota();
  std::vector<std::pair<std::string_view, uint32_t>> accounts;
  for (uint32_t a = state.queues().at(q).first_account; a != model::Queue::kNoAccount;
       a = state.queues().account(a).next) {
    const model::NameId flavor = state.queues().account(a).flavor;
    accounts.emplace_back(flavor.valid() ? state.NameOf(flavor) : "", a);
  }
  std::ranges::sort(accounts);
  for (const auto& [flavor, account] : accounts) {
    for (uint32_t i = 0; i < tree.resources(); ++i) {
      const model::ResourceId r{i};
      const bool any = tree.defined(r, account) || tree.subtree(r, account) > 0 ||
                       tree.used(QuotaView::kNow, r, account) > 0;
      if (!any) continue;
      quotas.emplace_back(state.queues().IsOfMembers(account) ? ShareJson(state, account, r)
                                                              : QuotaJson(state, account, r));
    }
  }
  return quotas;
}

// Those that wait and stand in no line, for they are held back or their queue does not take them
// now, by ClusterQueue, in the order of a line.
using Apart = std::map<model::NameId, std::vector<model::WorkloadId>>;

Apart FindApart(const cycle::Engine& engine) {
  const model::State& state = engine.state();
  Apart apart;
  for (uint32_t i = 0; i < state.workloads().size(); ++i) {
    const model::WorkloadId id{i};
    if (!state.workloads().used(id)) continue;
    const model::Workload& row = state.workloads().at(id);
    if (StageOf(row.status) != model::WorkloadStage::kPending || !row.status.active ||
        row.write != model::WriteStage::kNone) {
      continue;
    }
    const model::LocalQueueId local = state.local_queues().FindKey(row.local_queue);
    if (local.valid()) apart[state.local_queues().at(local).cluster_queue].push_back(id);
  }
  for (auto& [queue, ids] : apart) {
    const std::vector<model::WorkloadId> line = engine.admissions().LineOf(queue);
    const std::set<model::WorkloadId> in_line(line.begin(), line.end());
    std::erase_if(ids, [&](model::WorkloadId id) { return in_line.contains(id); });
    std::ranges::sort(ids, {}, [&](model::WorkloadId id) {
      const model::Workload& row = state.workloads().at(id);
      return std::tuple(-int64_t{row.priority}, model::QueuedAt(row.status, true),
                        state.UidOf(row.uid));
    });
  }
  return apart;
}

JsonObject WaitingJson(const Scheduler& scheduler, model::WorkloadId id) {
  const cycle::Engine& engine = scheduler.engine();
  const model::State& state = engine.state();
  const model::Workload& row = state.workloads().at(id);
  JsonObject object;
  object["workload"] = state.KeyOf(row.key);
  object["priority"] = row.priority;
  object["since"] = client::SecondsTime(model::QueuedAt(row.status, true));
  if (const auto refusal = engine.admissions().WhyWaitsNow(state, id)) {
    const translate::WaitText text = translate::WorkloadRefusalText(*refusal, row, state);
    object["reason"] = text.reason;
    object["message"] = text.message;
  } else if (const Quota* quota = scheduler.quota(); quota != nullptr) {
    if (const Workloads::Refusal* refused = quota->WhyRefused(state.UidOf(row.uid))) {
      object["message"] = fmt::format("{} was refused by the API server ({}): {}", refused->what,
                                      refused->code, refused->message);
    }
  }
  return object;
}

// Groups of a Volcano queue; of the default one, when nobody made it, at the root.
std::vector<model::GroupId> GroupsIn(const cycle::Engine& engine, QueueId q) {
  const model::State& state = engine.state();
  const model::NameId name = state.queues().at(q).name;
  if (state.NameOf(name) != model::kRootQueue) return engine.GroupsWaitingIn(name);
  const QueueId implied = state.FindQueue(model::QueueKind::kQueue, model::kDefaultQueue);
  if (implied.valid() && state.queues().at(implied).uid.valid()) return {};
  return engine.GroupsWaitingIn(state.vocabulary().names.Find(model::kDefaultQueue));
}

void AddGroups(const cycle::Engine& engine, QueueId q, JsonObject& object) {
  const model::State& state = engine.state();
  const std::vector<model::GroupId> line = GroupsIn(engine, q);
  JsonArray waiting;
  for (const model::GroupId id : std::span(line).first(std::min(line.size(), kWaitingShown))) {
    const model::Group& row = state.groups().at(id);
    JsonObject waits;
    waits["group"] = state.KeyOf(row.key);
    waits["priority"] = row.priority.value_or(0);
    waits["since"] = client::SecondsTime(row.creation);
    if (const auto refusal = engine.WhyGroupWaits(id))
      waits["message"] = translate::FailedSchedulingText(*refusal, state);
    waiting.emplace_back(std::move(waits));
  }
  object["waitingCount"] = line.size();
  object["waiting"] = std::move(waiting);
}

void AddWorkloads(const Scheduler& scheduler, const Apart& apart, model::NameId queue,
                  JsonObject& object) {
  std::vector<model::WorkloadId> ids = scheduler.engine().admissions().LineOf(queue);
  const size_t in_line = ids.size();
  if (const auto others = apart.find(queue); others != apart.end())
    ids.insert(ids.end(), others->second.begin(), others->second.end());
  JsonArray waiting;
  for (size_t i = 0; i < std::min(ids.size(), kWaitingShown); ++i) {
    JsonObject one = WaitingJson(scheduler, ids[i]);
    if (i >= in_line) {
      const model::Workload& row = scheduler.engine().state().workloads().at(ids[i]);
      for (auto& [key, value] : DelayJson(scheduler, row)) one[key] = std::move(value);
    }
    waiting.emplace_back(std::move(one));
  }
  object["waitingCount"] = ids.size();
  object["waiting"] = std::move(waiting);
}

// Whether workloads can get quota through the ClusterQueue while it isn't stopped.
bool IsActive(const model::State& state, QueueId q) {
  const model::QueueBar bar = cycle::BarOf(state, q);
  return bar == model::QueueBar::kNone || bar == model::QueueBar::kClusterQueueStopped;
}

// Why members of a queue of Volcano, which exists, are let in no more, but for its own state.
std::optional<Readiness> InactivityOf(const model::State& state, QueueId q) {
  std::string_view closed;
  for (QueueId above = q; above.valid(); above = state.queues().at(above).parent) {
    const model::Queue& row = state.queues().at(above);
    if (row.in_cycle) {
      return Readiness{.reason = "QueueCycle",
                       .message =
                           "Queues above it name each other as parents; change a "
                           "spec.parent."};
    }
    if (!row.uid.valid() && state.NameOf(row.name) != model::kRootQueue) {
      return Readiness{.reason = "ParentMissing",
                       .message = fmt::format("Queue {} above it doesn't exist; create it, or name "
                                              "another in spec.parent.",
                                              state.NameOf(row.name))};
    }
    if (row.stopped && above != q) closed = state.NameOf(row.name);
  }
  if (closed.empty()) return std::nullopt;
  return Readiness{.reason = "QueueClosed",
                   .message = fmt::format("Queue {} above it is closed; open it.", closed)};
}

// Why nobody gets quota there.
std::optional<Readiness> InactivityOf(const Scheduler& scheduler, QueueId q) {
  const model::State& state = scheduler.engine().state();
  const model::Queue& row = state.queues().at(q);
  const std::string_view name = state.NameOf(row.name);
  if (row.kind == model::QueueKind::kQueue)
    return row.uid.valid() ? InactivityOf(state, q) : std::nullopt;
  if (scheduler.quota() == nullptr) return std::nullopt;
  const Queues& queues = scheduler.quota()->queues();
  const std::optional<Readiness> readiness = row.kind == model::QueueKind::kCohort
                                                 ? queues.ReadinessOfCohort(name)
                                                 : queues.ReadinessNow(name);
  return readiness && !readiness->active ? readiness : std::nullopt;
}

JsonObject QueueJson(const Scheduler& scheduler, const Apart& apart, QueueId q) {
  const cycle::Engine& engine = scheduler.engine();
  const model::State& state = engine.state();
  const model::Queue& row = state.queues().at(q);
  const bool cohort = row.kind == model::QueueKind::kCohort;
  JsonObject object;
  const bool of_groups = row.kind == model::QueueKind::kQueue;
  object["kind"] = cohort ? "Cohort" : of_groups ? "Queue" : "ClusterQueue";
  object["name"] = state.NameOf(row.name);
  if (row.parent.valid()) object["parent"] = state.NameOf(state.queues().at(row.parent).name);
  const bool implied = of_groups && state.NameOf(row.name) == model::kRootQueue;
  object["exists"] = implied || row.uid.valid();
  object["active"] = cohort || implied ? !row.in_cycle
                     : of_groups       ? state.queues().active(q)
                                       : IsActive(state, q);
  const std::optional<Readiness> inactive = InactivityOf(scheduler, q);
  if (inactive)
    object["inactive"] = JsonObject{{"reason", inactive->reason}, {"message", inactive->message}};
  object["quotas"] = QuotasJson(state, q);
  if (cohort) return object;
  object["strict"] = row.strict_fifo;
  const bool deleting = inactive && inactive->reason == "Terminating";
  object["stopped"] = row.stopped && !deleting;
  if (deleting) {
    object["deleting"] = true;
    object["active"] = false;
  }
  if (of_groups) {
    AddGroups(engine, q, object);
    return object;
  }
  AddWorkloads(scheduler, apart, row.name, object);
  return object;
}

// Volcano's, of which nobody made anything.
bool IsIdleRoot(const model::State& state, QueueId q) {
  const model::Queue& row = state.queues().at(q);
  return row.kind == model::QueueKind::kQueue && !row.uid.valid() && row.children_count == 0 &&
         state.groups().live() == 0;
}

}  // namespace

JsonObject QueuesJson(const Scheduler& scheduler) {
  const cycle::Engine& engine = scheduler.engine();
  const model::QueueTable& queues = engine.state().queues();
  // Cohorts before queues, by name; a cycle begins where its first name is.
  const auto in_order = [&](std::vector<QueueId> ids) {
    std::ranges::sort(ids, {}, [&](QueueId q) {
      return std::pair(queues.at(q).kind != model::QueueKind::kCohort,
                       engine.state().NameOf(queues.at(q).name));
    });
    return ids;
  };
  std::vector<QueueId> all;
  std::vector<QueueId> roots;
  for (uint32_t i = 0; i < queues.size(); ++i) {
    if (!queues.used(QueueId{i}) || IsIdleRoot(engine.state(), QueueId{i})) continue;
    all.emplace_back(i);
    if (!queues.at(QueueId{i}).parent.valid()) roots.emplace_back(i);
  }
  const Apart apart = FindApart(engine);
  JsonArray out;
  std::set<QueueId> seen;
  const auto add_below = [&](QueueId top) {
    std::vector<QueueId> todo = {top};
    while (!todo.empty()) {
      const QueueId q = todo.back();
      todo.pop_back();
      if (!seen.insert(q).second) continue;
      out.emplace_back(QueueJson(scheduler, apart, q));
      std::vector<QueueId> children;
      for (QueueId c = queues.at(q).first_child; c.valid(); c = queues.at(c).next_sibling)
        children.push_back(c);
      children = in_order(std::move(children));
      todo.insert(todo.end(), children.rbegin(), children.rend());
    }
  };
  for (const QueueId q : in_order(std::move(roots))) add_below(q);
  for (const QueueId q : in_order(std::move(all))) add_below(q);
  JsonObject object;
  object["queues"] = std::move(out);
  return object;
}

}  // namespace berth::control
