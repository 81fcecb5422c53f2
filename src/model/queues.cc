#include "model/queues.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/limits.h"

namespace berth::model {
namespace {

constexpr uint32_t kNoAccount = Queue::kNoAccount;

}  // namespace

QueueId QueueTable::Find(QueueKind kind, NameId name) const {
  const std::vector<QueueId>& rows = row_of_name_[static_cast<size_t>(kind)];
  return name.value < rows.size() ? rows[name.value] : QueueId{};
}

bool QueueTable::active(QueueId q) const {
  if (!used(q) || !at(q).uid.valid()) return false;
  while (q.valid() && !at(q).in_cycle) q = at(q).parent;
  return !q.valid();
}

QueueId QueueTable::RootOf(QueueId q) const {
  while (!at(q).in_cycle && at(q).parent.valid()) q = at(q).parent;
  return q;
}

bool QueueTable::IsAs(QueueId q, const QueueUpsert& facts, NameId parent, OwnerId uid,
                      const Ledger& ledger) const {
  const Queue& row = at(q);
  const NameId parent_now = row.parent.valid() ? at(row.parent).name : NameId{};
  if (row.uid != uid || parent_now != parent || row.preemption != facts.preemption ||
      row.groups != facts.groups || row.fungibility != facts.fungibility ||
      row.strict_fifo != facts.strict_fifo || row.stopped != facts.stopped ||
      row.deleting != facts.deleting || row.lacks_checks != facts.lacks_checks ||
      row.checks != facts.checks || row.weight != facts.weight) {
    return false;
  }
  const QuotaTree& tree = ledger.quota();
  uint32_t defined = 0;
  for (uint32_t a = row.first_account; a != kNoAccount; a = accounts_[a].next)
    defined += accounts_[a].defined_count;
  return defined == facts.quotas.size() &&
         std::ranges::all_of(facts.quotas, [&](const QueueQuota& quota) {
           const uint32_t a = AccountOf(q, quota.flavor);
           return a != kNoAccount && tree.defined(quota.resource, a) &&
                  tree.quota(quota.resource, a) == quota.quota;
         });
}

uint32_t QueueTable::AccountOf(QueueId q, NameId flavor) const {
  uint32_t account = at(q).first_account;
  while (account != kNoAccount && accounts_[account].flavor != flavor)
    account = accounts_[account].next;
  return account;
}

bool QueueTable::HasRoomFor(const QueueUpsert& facts, QueueId q, QueueId parent) const {
  if (live() + 3 > limits::kQueuesMax) return false;  // Itself, its parent, and Volcano's root.
  std::vector<NameId> flavors;
  for (const QueueQuota& quota : facts.quotas) flavors.push_back(quota.flavor);
  // Itself, its parent, and what is above them: each may get an account of each flavor. Those of a
  // cycle that it leaves get each other's, too.
  size_t levels = 2;
  for (QueueId n = parent; n.valid() && !at(n).in_cycle; n = at(n).parent) ++levels;
  for (QueueId n = q; n.valid(); n = at(n).parent) {
    for (uint32_t a = at(n).first_account; a != kNoAccount; a = accounts_[a].next)
      flavors.push_back(accounts_[a].flavor);
    if (!at(q).in_cycle || at(n).parent == q) break;
    ++levels;
  }
  std::ranges::sort(flavors);
  const auto repeated = std::ranges::unique(flavors);
  flavors.erase(repeated.begin(), repeated.end());
  // A Volcano queue has one of none, and the root another.
  return accounts_live() + flavors.size() * levels + levels + 1 <=
         size_t{limits::kQuotaAccountsMax};
}

OwnerId QueueTable::Put(const QueueUpsert& facts, NameId name, NameId parent, OwnerId uid,
                        Ledger& ledger) {
  const QueueId q = FindOrAdd(facts.kind, name);
  const OwnerId uid_before = std::exchange(rows_[q.value].uid, uid);
  SetParent(q, parent.valid() ? FindOrAdd(ParentKindOf(facts.kind), parent) : QueueId{}, ledger);
  SetQuotas(q, facts.quotas, ledger);
  rows_[q.value].preemption = facts.preemption;
  rows_[q.value].groups = facts.groups;
  rows_[q.value].fungibility = facts.fungibility;
  rows_[q.value].strict_fifo = facts.strict_fifo;
  rows_[q.value].stopped = facts.stopped;
  rows_[q.value].deleting = facts.deleting;
  rows_[q.value].lacks_checks = facts.lacks_checks;
  rows_[q.value].checks = facts.checks;
  rows_[q.value].weight = facts.weight;
  return uid_before;
}

OwnerId QueueTable::Remove(QueueId q, Ledger& ledger) {
  CHECK(used(q));
  SetQuotas(q, {}, ledger);
  SetParent(q, QueueId{}, ledger);
  rows_[q.value].weight = 1;
  rows_[q.value].preemption = {};
  rows_[q.value].groups = {};
  rows_[q.value].fungibility = {};
  rows_[q.value].strict_fifo = rows_[q.value].stopped = rows_[q.value].lacks_checks = false;
  rows_[q.value].deleting = false;
  rows_[q.value].checks.clear();
  const OwnerId uid = std::exchange(rows_[q.value].uid, OwnerId{});
  DropQueue(q);
  return uid;
}

QueueId QueueTable::FindOrAdd(QueueKind kind, NameId name) {
  if (const QueueId found = Find(kind, name); found.valid()) return found;
  QueueId q{size()};
  if (free_rows_.empty()) {
    rows_.emplace_back();
  } else {
    q = free_rows_.back();
    free_rows_.pop_back();
  }
  rows_[q.value] = {.name = name, .kind = kind};
  std::vector<QueueId>& rows = row_of_name_[static_cast<size_t>(kind)];
  if (name.value >= rows.size()) rows.resize(name.value + 1);
  rows[name.value] = q;
  return q;
}

uint32_t QueueTable::AddAccount(QueueId q, NameId flavor, Ledger& ledger) {
  auto account = static_cast<uint32_t>(accounts_.size());
  if (free_accounts_.empty()) {
    accounts_.emplace_back();
    ledger.Resize(0, 0, account + 1);
  } else {
    account = free_accounts_.back();
    free_accounts_.pop_back();
  }
  ledger.mutable_quota().SetWhole(account, at(q).kind == QueueKind::kQueue);
  accounts_[account] = {.queue = q, .flavor = flavor, .next = at(q).first_account};
  rows_[q.value].first_account = account;
  return account;
}

uint32_t QueueTable::EnsureAccount(QueueId q, NameId flavor, Ledger& ledger) {
  uint32_t first = kNoAccount;
  uint32_t below = kNoAccount;
  for (QueueId n = q; n.valid(); n = at(n).parent) {
    uint32_t account = AccountOf(n, flavor);
    const bool there = account != kNoAccount;
    if (!there) account = AddAccount(n, flavor, ledger);
    if (below != kNoAccount) {
      ++accounts_[account].children_count;
      ledger.mutable_quota().Link(below, account);
    }
    if (first == kNoAccount) first = account;
    if (there || at(n).in_cycle) break;
    below = account;
  }
  return first;
}

void QueueTable::SetQuotas(QueueId q, std::span<const QueueQuota> quotas, Ledger& ledger) {
  QuotaTree& tree = ledger.mutable_quota();
  for (const QueueQuota& quota : quotas) {
    const uint32_t account = EnsureAccount(q, quota.flavor, ledger);
    if (!tree.defined(quota.resource, account)) ++accounts_[account].defined_count;
    tree.SetQuota(quota.resource, account, quota.quota);
  }
  uint32_t next = kNoAccount;
  for (uint32_t account = at(q).first_account; account != kNoAccount; account = next) {
    next = accounts_[account].next;
    for (uint32_t i = 0; i < tree.resources(); ++i) {
      const ResourceId r{i};
      const auto same = [&](const QueueQuota& quota) {
        return quota.flavor == accounts_[account].flavor && quota.resource == r;
      };
      if (!tree.defined(r, account) || std::ranges::any_of(quotas, same)) continue;
      tree.ClearQuota(r, account);
      --accounts_[account].defined_count;
    }
    DropUnused(account, ledger);
  }
}

void QueueTable::SetParent(QueueId q, QueueId parent, Ledger& ledger) {
  const QueueId from = at(q).parent;
  if (from == parent) return;
  if (at(q).in_cycle) LeaveCycle(q, ledger);
  Detach(q, ledger);
  rows_[q.value].parent = parent;
  if (from.valid()) {
    RemoveChild(from, q);
    LowerFrom(from, at(q).height);
  }
  if (parent.valid()) {
    AddChild(parent, q);
    if (ClosesCycle(q)) {
      EnterCycle(q, ledger);
    } else {
      RaiseAbove(q);
      Attach(q, ledger);
    }
  }
  if (from.valid()) DropQueue(from);
}

void QueueTable::AddChild(QueueId parent, QueueId q) {
  ++rows_[parent.value].children_count;
  const QueueId next = std::exchange(rows_[parent.value].first_child, q);
  rows_[q.value].next_sibling = next;
  if (next.valid()) rows_[next.value].previous_sibling = q;
}

void QueueTable::RemoveChild(QueueId parent, QueueId q) {
  --rows_[parent.value].children_count;
  const QueueId next = std::exchange(rows_[q.value].next_sibling, QueueId{});
  const QueueId previous = std::exchange(rows_[q.value].previous_sibling, QueueId{});
  if (next.valid()) rows_[next.value].previous_sibling = previous;
  (previous.valid() ? rows_[previous.value].next_sibling : rows_[parent.value].first_child) = next;
}

// The others of its cycle are below it then, and it is a root.
void QueueTable::LeaveCycle(QueueId q, Ledger& ledger) {
  const QueueId parent = std::exchange(rows_[q.value].parent, QueueId{});
  rows_[q.value].in_cycle = false;
  for (QueueId n = parent; n.valid() && n != q; n = at(n).parent) {
    rows_[n.value].in_cycle = false;
    RaiseAbove(n);
    Attach(n, ledger);
  }
}

bool QueueTable::ClosesCycle(QueueId q) const {
  QueueId n = at(q).parent;
  while (n.valid() && n != q && !at(n).in_cycle) n = at(n).parent;
  return n == q;
}

void QueueTable::EnterCycle(QueueId q, Ledger& ledger) {
  QueueId n = q;
  do {
    rows_[n.value].in_cycle = true;
    LowerFrom(at(n).parent, at(n).height);
    Detach(n, ledger);
    n = at(n).parent;
  } while (n != q);
}

// `q` has become linked to its parent, or has become higher.
void QueueTable::RaiseAbove(QueueId q) {
  while (!at(q).in_cycle && at(q).parent.valid()) {
    const uint32_t height = at(q).height + 1;
    q = at(q).parent;
    if (at(q).height >= height) return;
    rows_[q.value].height = height;
  }
}

// One of that height is not linked to the parent any more. What is as high among the others settles
// it.
void QueueTable::LowerFrom(QueueId parent, uint32_t height_of_gone) {
  for (QueueId n = parent; n.valid(); n = at(n).parent) {
    const uint32_t before = at(n).height;
    if (height_of_gone + 1 < before) return;
    uint32_t height = 0;
    for (QueueId child = at(n).first_child; child.valid() && height < before;
         child = at(child).next_sibling) {
      if (!at(child).in_cycle) height = std::max(height, at(child).height + 1);
    }
    if (height == before) return;
    rows_[n.value].height = height;
    if (at(n).in_cycle) return;
    height_of_gone = before;
  }
}

void QueueTable::Attach(QueueId q, Ledger& ledger) {
  for (uint32_t a = at(q).first_account; a != kNoAccount; a = accounts_[a].next) {
    const uint32_t above = EnsureAccount(at(q).parent, accounts_[a].flavor, ledger);
    ++accounts_[above].children_count;
    ledger.mutable_quota().Link(a, above);
  }
}

void QueueTable::Detach(QueueId q, Ledger& ledger) {
  for (uint32_t a = at(q).first_account; a != kNoAccount; a = accounts_[a].next) {
    const uint32_t above = ledger.quota().parent(a);
    if (above == kNoAccount) continue;
    ledger.mutable_quota().Link(a, kNoAccount);
    --accounts_[above].children_count;
    DropUnused(above, ledger);
  }
}

void QueueTable::Pin(QueueKind kind, NameId name, bool pinned, Ledger& ledger) {
  if (pinned) {
    accounts_[EnsureAccount(FindOrAdd(kind, name), NameId{}, ledger)].pinned = true;
    return;
  }
  const QueueId q = Find(kind, name);
  const uint32_t account = q.valid() ? AccountOf(q, NameId{}) : kNoAccount;
  if (account == kNoAccount) return;
  accounts_[account].pinned = false;
  DropUnused(account, ledger);
}

void QueueTable::DropUnused(uint32_t account, Ledger& ledger) {
  while (account != kNoAccount) {
    const QueueAccount row = accounts_[account];
    if (!row.queue.valid() || row.pinned || row.defined_count > 0 || row.children_count > 0 ||
        ledger.tree().claims_count(account) > 0) {
      return;
    }
    const uint32_t above = ledger.quota().parent(account);
    ledger.mutable_quota().Link(account, kNoAccount);
    ledger.mutable_quota().SetWhole(account, false);
    Queue& queue = rows_[row.queue.value];
    uint32_t* link = &queue.first_account;
    while (*link != account) link = &accounts_[*link].next;
    *link = row.next;
    accounts_[account] = {};
    free_accounts_.push_back(account);
    DropQueue(row.queue);
    account = above;
    if (account != kNoAccount) --accounts_[account].children_count;
  }
}

void QueueTable::DropQueue(QueueId q) {
  const Queue& row = at(q);
  if (!used(q) || row.uid.valid() || row.children_count > 0 || row.first_account != kNoAccount) {
    return;
  }
  CHECK(!row.parent.valid());
  row_of_name_[static_cast<size_t>(row.kind)][row.name.value] = QueueId{};
  rows_[q.value] = {};
  free_rows_.push_back(q);
}

void QueueTable::AddTo(Hasher& hasher) const {
  hasher.Add(rows_.size());
  for (const Queue& row : rows_) {
    hasher.Add(row.name.value).Add(row.kind).Add(row.uid.value).Add(row.parent.value);
    hasher.Add(row.first_account).Add(row.preemption.within_queue).Add(row.preemption.reclaim);
    hasher.Add(row.preemption.borrows).Add(row.preemption.borrows_from_priority_max);
    hasher.Add(row.groups.value).Add(row.fungibility.next_before_borrowing);
    hasher.Add(row.fungibility.next_before_preempting);
    hasher.Add(row.fungibility.preempts_before_borrows);
    hasher.Add(row.strict_fifo)
        .Add(row.stopped)
        .Add(row.deleting)
        .Add(row.lacks_checks)
        .Add(row.checks.size());
    for (const QueueCheck& check : row.checks) {
      hasher.Add(check.name.value).Add(check.brings_nodes).Add(check.flavors.size());
      for (const NameId flavor : check.flavors) hasher.Add(flavor.value);
    }
    hasher.Add(row.weight);
    // That it is in a cycle, counts, heights and children follow from the rest.
  }
  for (const QueueId q : free_rows_) hasher.Add(q.value);
  hasher.Add(accounts_.size());
  for (const QueueAccount& account : accounts_)
    hasher.Add(account.queue.value).Add(account.flavor.value).Add(account.next).Add(account.pinned);
  for (const uint32_t account : free_accounts_) hasher.Add(account);
  // row_of_name_ is an index.
}

}  // namespace berth::model
