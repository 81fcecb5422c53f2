#include "model/ledger.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <optional>

#include "model/naive_quota.h"
#include "model/transaction.h"

namespace berth::model {
namespace {

constexpr uint32_t kNodes = 3;
constexpr uint32_t kTree = 2;
constexpr Quota kRootQuota{.nominal = 300};
constexpr Quota kLeafQuota{.nominal = 700, .borrowing_limit = 100, .lending_limit = 500};

// A ledger beside a plain list of claims, from which every number is summed anew.
struct Twin {
  Twin() {
    ledger.Resize(kFixedResourcesCount, kNodes, kTree);
    for (uint32_t n = 0; n < kNodes; ++n) {
      ledger.SetCapacity(NodeId{n}, kCpu, 1000);
      ledger.SetCapacity(NodeId{n}, kMemory, 500);
      ledger.SetDevices(NodeId{n}, 4);
    }
    ledger.mutable_quota().Link(1, 0);
    ledger.mutable_quota().SetQuota(kCpu, 0, kRootQuota);
    ledger.mutable_quota().SetQuota(kCpu, 1, kLeafQuota);
    for (Amount cpu : {0, 1, 100, 350}) {
      bundles_known.push_back(
          bundles.Intern(std::vector<ResourceAmount>{{kCpu, cpu}, {kMemory, cpu / 2}}));
    }
    for (const std::vector<HostPort>& ports : Asked()) {
      bundles_known.push_back(
          bundles.Intern(std::vector<ResourceAmount>{{kCpu, 100}, {kMemory, 50}}, ports));
    }
  }

  // One of any IP, which two of one IP each conflict with that don't conflict with each other.
  static std::vector<std::vector<HostPort>> Asked() {
    const HostPort any{.port = 80, .protocol = NameId{0}};
    const HostPort one{.port = 80, .protocol = NameId{0}, .ip = NameId{2}};
    const HostPort other{.port = 80, .protocol = NameId{0}, .ip = NameId{3}};
    const HostPort udp{.port = 80, .protocol = NameId{1}};
    return {{any}, {one}, {other, udp}, {{.port = 81, .protocol = NameId{0}}, one}};
  }

  Claim Draw() const {
    const bool tree = *rc::gen::inRange(0, 5) == 0;
    const auto state = static_cast<ClaimState>(*rc::gen::inRange(0, 3));
    Claim claim{.owner = OwnerId{*rc::gen::inRange(0u, 6u)},
                .account = tree ? AccountId::OfTree(*rc::gen::inRange(0u, kTree))
                                : AccountId::OfNode(NodeId{*rc::gen::inRange(0u, kNodes)}),
                .bundle = bundles_known[*rc::gen::inRange(size_t{0}, bundles_known.size())],
                .priority = *rc::gen::inRange(0, 3),
                .state = state};
    claim.scoring = claim.bundle;
    if (tree) claim.count = *rc::gen::inRange(1u, 4u);
    if (!tree && *rc::gen::inRange(0, 3) == 0) {
      claim.devices = {.mask = static_cast<uint16_t>(*rc::gen::inRange(1, 16)), .milli_each = 300};
    }
    return claim;
  }

  Amount Sum(AccountId a, ResourceId r, ClaimState state, const Viewer* viewer = nullptr) const {
    return SumOf(claims, a, r, state, viewer);
  }
  Amount SumOf(const std::map<uint32_t, Claim>& of, AccountId a, ResourceId r, ClaimState state,
               const Viewer* viewer = nullptr) const {
    Amount sum = 0;
    for (const auto& [id, c] : of) {
      if (c.account != a || c.state != state) continue;
      if (viewer != nullptr && (c.owner == viewer->owner || c.priority < viewer->priority))
        continue;
      sum += bundles.AmountOf(c.bundle, r) * c.count;
    }
    return sum;
  }

  // What is left to an account of the tree, without what the owner reserved there.
  Amount Left(const std::map<uint32_t, Claim>& of, QuotaView view, AccountId a, ResourceId r,
              std::optional<OwnerId> owner) const {
    std::vector<NaiveQuota::Row> rows(kTree);
    rows[1].parent = 0;
    if (r == kCpu) rows[0].quota = kRootQuota;
    if (r == kCpu) rows[1].quota = kLeafQuota;
    for (const auto& [id, c] : of) {
      if (!c.account.is_tree()) continue;
      if (c.account == a && c.owner == owner && c.state == ClaimState::kReserved) continue;
      if (view == QuotaView::kPhysical && c.state == ClaimState::kReserved) continue;
      if (view == QuotaView::kFuture && c.state == ClaimState::kReleasing) continue;
      rows[c.account.row()].claims[static_cast<size_t>(view)] +=
          bundles.AmountOf(c.bundle, r) * c.count;
    }
    return NaiveQuota(rows).LeftFor(view, a.row());
  }

  void CompareTree(AccountId a, ResourceId r) const {
    const AccountTable& table = ledger.table(a);
    RC_ASSERT(table.held(r, a.row()) == Sum(a, r, ClaimState::kHeld));
    RC_ASSERT(table.releasing(r, a.row()) == Sum(a, r, ClaimState::kReleasing));
    RC_ASSERT(table.free(r, a.row()) == kUnlimited);
    for (uint32_t owner = 0; owner < 6; ++owner) {
      const OwnerId id{owner};
      const Viewer viewer{.owner = id, .priority = static_cast<int32_t>(owner % 3)};
      RC_ASSERT(ledger.Now(a, r, viewer, bundles) == Left(claims, QuotaView::kNow, a, r, id));
      RC_ASSERT(ledger.Future(a, r, viewer, bundles) == Left(claims, QuotaView::kFuture, a, r, id));
    }
  }

  void Compare(AccountId a) const {
    const AccountTable& table = ledger.table(a);
    for (const ResourceId r : {kCpu, kMemory}) {
      const Amount capacity = table.capacity(r, a.row());
      const Amount held = Sum(a, r, ClaimState::kHeld);
      const Amount releasing = Sum(a, r, ClaimState::kReleasing);
      RC_ASSERT(table.held(r, a.row()) == held);
      RC_ASSERT(table.releasing(r, a.row()) == releasing);
      for (uint32_t owner = 0; owner < 6; ++owner) {
        const Viewer viewer{.owner = OwnerId{owner}, .priority = static_cast<int32_t>(owner % 3)};
        const Amount reserved = Sum(a, r, ClaimState::kReserved, &viewer);
        RC_ASSERT(ledger.Now(a, r, viewer, bundles) == capacity - held - releasing - reserved);
        RC_ASSERT(ledger.Future(a, r, viewer, bundles) == capacity - held - reserved);
      }
      RC_ASSERT(table.scored(r, a.row()) == held + releasing);
    }
  }

  void CompareDevices(NodeId n) const {
    for (uint32_t d = 0; d < kDevicesMax; ++d) {
      int32_t free = d < 4 ? kDeviceMilli : 0;
      for (const auto& [id, c] : claims) {
        if (c.account != AccountId::OfNode(n) || c.state == ClaimState::kReserved) continue;
        if (((c.devices.mask >> d) & 1) != 0) free -= c.devices.milli_each;
      }
      RC_ASSERT(ledger.nodes().device_free(n.value, d) == free);
    }
  }

  // Every claim of the node against every port asked for.
  void ComparePorts(NodeId n) const {
    using enum Ledger::PortView;
    for (const std::vector<HostPort>& asked : Asked()) {
      for (uint32_t owner = 0; owner <= 6; ++owner) {
        const Viewer viewer{.owner = OwnerId{owner}, .priority = static_cast<int32_t>(owner % 3)};
        const Viewer* const asks = owner < 6 ? &viewer : nullptr;
        uint32_t now = 0;
        uint32_t future = 0;
        for (const auto& [id, c] : claims) {
          if (c.account != AccountId::OfNode(n)) continue;
          const uint32_t conflicts = CountConflicts(asked, bundles.Ports(c.bundle));
          const bool seen =
              asks != nullptr && c.owner != viewer.owner && c.priority >= viewer.priority;
          const bool reserved = c.state == ClaimState::kReserved;
          if (reserved && !seen) continue;
          now += conflicts;
          future += c.state == ClaimState::kReleasing ? 0 : conflicts;
        }
        RC_ASSERT(ledger.PortConflicts(kNow, n, asked, asks, bundles) == now);
        RC_ASSERT(ledger.PortConflicts(kFuture, n, asked, asks, bundles) == future);
      }
    }
  }

  void CompareAll() const {
    for (uint32_t n = 0; n < kNodes; ++n) {
      Compare(AccountId::OfNode(NodeId{n}));
      CompareDevices(NodeId{n});
      ComparePorts(NodeId{n});
    }
    int64_t slots = 0;
    for (const auto& [id, c] : claims) slots += c.account.is_tree() ? c.count : 0;
    RC_ASSERT(ledger.slots_charged() == slots);
    for (const ResourceId r : {kCpu, kMemory}) {
      for (uint32_t t = 0; t < kTree; ++t) CompareTree(AccountId::OfTree(t), r);
    }
    RC_ASSERT(ledger.claims_live() == claims.size());
  }

  uint64_t Hash() const {
    Hasher hasher;
    ledger.AddTo(hasher);
    return hasher.value();
  }

  BundleTable bundles;
  std::vector<BundleId> bundles_known;
  TouchLog touches;
  Ledger ledger;
  std::map<uint32_t, Claim> claims;  // By ClaimId.
};

// The claim that was added, or what one was changed to.
std::optional<Claim> DrawOperation(Twin& twin, Transaction& t) {
  const int action = *rc::gen::inRange(0, 3);
  if (action == 0 || twin.claims.empty()) {
    const Claim claim = twin.Draw();
    const ClaimId id = t.Add(claim);
    RC_ASSERT(!twin.claims.contains(id.value));
    twin.claims[id.value] = claim;
    return claim;
  }
  const auto at =
      std::next(twin.claims.begin(), *rc::gen::inRange<std::ptrdiff_t>(0, std::ssize(twin.claims)));
  if (action == 1) {
    t.End(ClaimId{at->first});
    twin.claims.erase(at);
    return std::nullopt;
  }
  Claim claim = twin.Draw();
  claim.owner = at->second.owner;
  t.Change(ClaimId{at->first}, claim);
  at->second = claim;
  return claim;
}

// Goal: after any history of transactions (adds, ends, resizes and moves, checkpoints, rollbacks,
// commits) every amount, `now` and `future` are what a plain sum over the claims gives, and a
// rollback restores the ledger bit for bit. Method: model-based; the twin is a map of claims that
// is copied at each checkpoint.
RC_GTEST_PROP(LedgerTest, AgreesWithAPlainSumOverClaimsThroughAnyHistory, ()) {
  Twin twin;
  const int transactions = *rc::gen::inRange(1, 12);
  for (int i = 0; i < transactions; ++i) {
    const auto claims_before = twin.claims;
    const uint64_t hash_before = twin.Hash();
    {
      Transaction t(twin.ledger, twin.touches, twin.bundles, Unfelt::kNothing);
      const int first = *rc::gen::inRange(0, 6);
      for (int k = 0; k < first; ++k) DrawOperation(twin, t);
      const auto claims_middle = twin.claims;
      const uint64_t hash_middle = twin.Hash();
      const Transaction::Checkpoint middle = t.checkpoint();
      const int second = *rc::gen::inRange(0, 6);
      for (int k = 0; k < second; ++k) DrawOperation(twin, t);
      twin.CompareAll();
      if (*rc::gen::inRange(0, 3) == 0) {
        t.RollbackTo(middle);
        twin.claims = claims_middle;
        RC_ASSERT(twin.Hash() == hash_middle);
        twin.CompareAll();
      }
      if (*rc::gen::inRange(0, 3) != 0) {
        t.Commit(Cause::kObserved);
        twin.CompareAll();
        continue;
      }
    }
    twin.claims = claims_before;
    RC_ASSERT(twin.Hash() == hash_before);
    twin.CompareAll();
  }
}

// The owners who took room of the account, and their priority, by what was put last there.
std::map<OwnerId, int32_t> TakersOf(const std::vector<Claim>& put, AccountId account) {
  std::map<OwnerId, int32_t> takers;
  for (const Claim& c : put) {
    if (c.account == account && c.state != ClaimState::kReleasing) takers[c.owner] = c.priority;
  }
  return takers;
}

// What they took more for a viewer of the claim's priority, where their own is higher.
Amount TakenByMoreImportant(const Twin& twin, const std::map<uint32_t, Claim>& before,
                            const std::vector<Claim>& put, const Claim& of, ResourceId r) {
  const std::map<OwnerId, int32_t> takers = TakersOf(put, of.account);
  const auto charged = [&](const std::map<uint32_t, Claim>& claims, OwnerId owner) {
    Amount sum = 0;
    for (const auto& [id, c] : claims) {
      const bool seen = c.state == ClaimState::kHeld ||
                        (c.state == ClaimState::kReserved && c.priority >= of.priority);
      if (c.owner == owner && c.account == of.account && seen)
        sum += twin.bundles.AmountOf(c.bundle, r);
    }
    return sum;
  };
  Amount sum = 0;
  for (const auto& [owner, priority] : takers) {
    if (priority > of.priority) sum += charged(twin.claims, owner) - charged(before, owner);
  }
  return sum;
}

// What is charged to the account where those who took room of it don't fit together, beside what is
// held and what is promised to others that the most important of them heeds.
std::optional<Amount> ChargeOfAll(const Twin& twin, const std::map<uint32_t, Claim>& before,
                                  const std::vector<Claim>& put, AccountId account, ResourceId r) {
  const std::map<OwnerId, int32_t> takers = TakersOf(put, account);
  int32_t most = std::numeric_limits<int32_t>::min();
  for (const auto& [owner, priority] : takers) most = std::max(most, priority);
  const auto charged = [&](const std::map<uint32_t, Claim>& claims) {
    Amount sum = 0;
    for (const auto& [id, c] : claims) {
      const bool seen =
          c.state == ClaimState::kHeld ||
          (c.state == ClaimState::kReserved && (c.priority >= most || takers.contains(c.owner)));
      if (c.account == account && seen) sum += twin.bundles.AmountOf(c.bundle, r);
    }
    return sum;
  };
  if (charged(twin.claims) <= twin.ledger.table(account).capacity(r, account.row()))
    return std::nullopt;
  return charged(twin.claims) - charged(before);
}

// Goal: what a decision charges to amounts that are negative. Method: model-based; each sum over
// the claims of before and after, for each claim that was put and each of its resources.
RC_GTEST_PROP(LedgerTest, NetChargesAreTheDifferenceOfPlainSums, ()) {
  Twin twin;
  {
    Transaction t(twin.ledger, twin.touches, twin.bundles, Unfelt::kNothing);
    for (int k = *rc::gen::inRange(0, 25); k > 0; --k) DrawOperation(twin, t);
    t.Commit(Cause::kObserved);
  }
  const auto before = twin.claims;
  std::vector<Claim> put;
  Transaction t(twin.ledger, twin.touches, twin.bundles, Unfelt::kNothing);
  for (int k = *rc::gen::inRange(0, 12); k > 0; --k) {
    if (const std::optional<Claim> claim = DrawOperation(twin, t)) put.push_back(*claim);
  }
  std::optional<Amount> most;
  for (const Claim& c : put) {
    for (const ResourceAmount& a : twin.bundles.View(c.bundle)) {
      if (c.account.is_tree()) {
        for (const QuotaView view : {QuotaView::kPhysical, QuotaView::kFuture}) {
          const Amount left = twin.Left(twin.claims, view, c.account, a.resource, std::nullopt);
          const Amount was = twin.Left(before, view, c.account, a.resource, std::nullopt);
          if (left < 0) most = std::max(most.value_or(was - left), was - left);
        }
        continue;
      }
      const Viewer viewer{.owner = OwnerId{}, .priority = c.priority};
      const auto grown = [&](ClaimState state, const Viewer* of) {
        return twin.SumOf(twin.claims, c.account, a.resource, state, of) -
               twin.SumOf(before, c.account, a.resource, state, of);
      };
      const Amount held = grown(ClaimState::kHeld, nullptr);
      if (twin.ledger.table(c.account).free(a.resource, c.account.row()) < 0) {
        most = std::max(most.value_or(held + grown(ClaimState::kReleasing, nullptr)),
                        held + grown(ClaimState::kReleasing, nullptr));
      }
      const Amount others = c.state == ClaimState::kReleasing
                                ? 0
                                : TakenByMoreImportant(twin, before, put, c, a.resource);
      const Amount future = twin.ledger.Future(c.account, a.resource, viewer, twin.bundles);
      if (future >= 0) continue;
      std::optional<Amount> charged = held + grown(ClaimState::kReserved, &viewer) - others;
      if (future + others >= 0) charged = ChargeOfAll(twin, before, put, c.account, a.resource);
      if (charged) most = std::max(most.value_or(*charged), *charged);
    }
  }
  RC_ASSERT(t.NetCharge() == most.value_or(0));
}

// One ledger, whose claims are put one by one.
class LedgerTest : public ::testing::Test {
 protected:
  ClaimId Put(const Claim& claim, Cause cause) {
    Transaction t(ledger, touches, bundles, Unfelt::kNothing);
    const ClaimId id = t.Add(claim);
    t.Commit(cause);
    return id;
  }
  BundleTable bundles;
  TouchLog touches;
  Ledger ledger;
};

class CommitTest : public LedgerTest {
 protected:
  CommitTest() {
    ledger.Resize(kFixedResourcesCount, 2, 0);
    ledger.SetCapacity(NodeId{0}, kCpu, 1000);
  }
  Claim Of(uint32_t owner, Amount cpu, ClaimState state = ClaimState::kHeld, int32_t priority = 0) {
    return {.owner = OwnerId{owner},
            .account = AccountId::OfNode(NodeId{0}),
            .bundle = bundles.Intern(std::vector<ResourceAmount>{{kCpu, cpu}}),
            .priority = priority,
            .state = state};
  }
};

// Goal: no decision makes physical free or future worse where it is negative (ARCHITECTURE.md, "The
// ledger"), by allowed, refused and crossing. Method: observed facts may overcommit; a decision on
// top of them dies.
TEST_F(CommitTest, ADecisionMayFillANodeButNotOvercommitIt) {
  Put(Of(1, 1000), Cause::kDecided);
  EXPECT_DEATH(Put(Of(2, 1), Cause::kDecided), "NetCharge");
}

// The same of ports.
TEST_F(CommitTest, ADecisionMayTakeAPortButNotOneThatIsTaken) {
  const auto with_port = [&](uint32_t owner, uint32_t port, ClaimState state) {
    Claim claim = Of(owner, 0, state);
    const HostPort ports[] = {{.port = port, .protocol = NameId{0}}};
    claim.bundle = bundles.Intern(std::vector<ResourceAmount>{{kCpu, 100}}, ports);
    return claim;
  };
  Put(with_port(1, 80, ClaimState::kHeld), Cause::kDecided);
  Put(with_port(2, 81, ClaimState::kHeld), Cause::kDecided);
  EXPECT_DEATH(Put(with_port(3, 80, ClaimState::kHeld), Cause::kDecided), "PortConflicts");
  Put(with_port(3, 80, ClaimState::kReserved), Cause::kDecided);
  const ClaimId bound = Put(with_port(4, 80, ClaimState::kHeld), Cause::kObserved);
  // What is taken twice already may leave by a decision.
  Transaction t(ledger, touches, bundles, Unfelt::kNothing);
  t.Change(bound, with_port(4, 80, ClaimState::kReleasing));
  t.Commit(Cause::kDecided);
}

TEST_F(CommitTest, AForeignBindMayOvercommitAndThenNoDecisionMayAdd) {
  Put(Of(1, 1500), Cause::kObserved);
  EXPECT_EQ(ledger.nodes().free(kCpu, 0), -500);
  EXPECT_DEATH(Put(Of(2, 1), Cause::kDecided), "NetCharge");
  // A decision that makes the negative amount better is allowed: it swaps a large claim for a
  // smaller one.
  const ClaimId foreign = ledger.first_of_owner(OwnerId{1});
  Transaction t(ledger, touches, bundles, Unfelt::kNothing);
  t.End(foreign);
  t.Add(Of(2, 1200));
  t.Commit(Cause::kRevoked);
  EXPECT_EQ(ledger.nodes().free(kCpu, 0), -200);
}

TEST_F(CommitTest, AReservationMayCountOnWhatIsReleasingButNotTwice) {
  Put(Of(1, 800, ClaimState::kReleasing), Cause::kObserved);
  Put(Of(2, 900, ClaimState::kReserved), Cause::kDecided);
  const Viewer other{.owner = OwnerId{3}};
  EXPECT_EQ(ledger.Now(AccountId::OfNode(NodeId{0}), kCpu, other, bundles),
            -700);  // now may go negative
  EXPECT_EQ(ledger.Future(AccountId::OfNode(NodeId{0}), kCpu, other, bundles), 100);
  // The holder sees its own promise as room; what is releasing is still there, so not now.
  EXPECT_EQ(ledger.Now(AccountId::OfNode(NodeId{0}), kCpu, {.owner = OwnerId{2}}, bundles), 200);
  EXPECT_DEATH(Put(Of(3, 200, ClaimState::kReserved), Cause::kDecided), "NetCharge");
}

TEST_F(CommitTest, AHigherPriorityLooksPastReservationsOfLowerOnes) {
  Put(Of(1, 900, ClaimState::kReserved, 5), Cause::kObserved);
  const AccountId node = AccountId::OfNode(NodeId{0});
  EXPECT_EQ(ledger.Now(node, kCpu, {.owner = OwnerId{2}, .priority = 5}, bundles), 100);
  EXPECT_EQ(ledger.Now(node, kCpu, {.owner = OwnerId{2}, .priority = 6}, bundles), 1000);
}

// Goal: what was only tried wakes nobody and spoils no cache. Method: try each kind of change, undo
// it in both ways, and look at the touch log.
TEST_F(CommitTest, ATrialThatIsUndoneTouchesNothing) {
  const ClaimId id = Put(Of(1, 10), Cause::kDecided);
  const uint64_t before = touches.end();
  {
    Transaction t(ledger, touches, bundles, Unfelt::kNothing);
    t.Add(Of(2, 20));
    t.RollbackTo({});
    t.Change(id, Of(1, 10, ClaimState::kReleasing));
    t.End(id);
  }
  EXPECT_EQ(touches.end(), before);
  Transaction t(ledger, touches, bundles, Unfelt::kNothing);
  t.End(id);
  t.Commit(Cause::kRevoked);
  EXPECT_EQ(touches.end(), before + 1);
  EXPECT_EQ(touches.at(before).kinds, uint32_t{kTouchFreed});
}

// Whoever may count on its room then was kept from it by the promise.
TEST_F(CommitTest, APromiseThatIsKeptFreesSomethingWhereItsOwnerLeaves) {
  for (const auto& [state, kinds] :
       {std::pair(ClaimState::kHeld, uint32_t{kTouchTaken | kTouchKept}),
        std::pair(ClaimState::kReleasing, uint32_t{kTouchFreed | kTouchTaken})}) {
    const ClaimId id = Put(Of(1, 10, ClaimState::kReserved), Cause::kObserved);
    const uint64_t before = touches.end();
    Transaction t(ledger, touches, bundles, Unfelt::kNothing);
    t.Change(id, Of(1, 10, state));
    t.Commit(Cause::kDecided);
    ASSERT_EQ(touches.end(), before + 1);
    EXPECT_EQ(touches.at(before).kinds, kinds);
  }
}

// On other devices than those that were promised.
TEST_F(CommitTest, APromiseThatIsKeptFreesTheDevicesThatItLeaves) {
  ledger.SetDevices(NodeId{0}, 2);
  constexpr DeviceSlots kFirst{.mask = 1, .milli_each = 300};
  constexpr DeviceSlots kSecond{.mask = 2, .milli_each = 300};
  for (const auto& [promised, kinds] :
       {std::pair(DeviceSlots{}, uint32_t{kTouchTaken | kTouchKept}),
        std::pair(kFirst, uint32_t{kTouchTaken | kTouchKept}),
        std::pair(kSecond, uint32_t{kTouchFreed | kTouchTaken})}) {
    Claim claim = Of(1, 10, ClaimState::kReserved);
    claim.devices = promised;
    const ClaimId id = Put(claim, Cause::kObserved);
    const uint64_t before = touches.end();
    Transaction t(ledger, touches, bundles, Unfelt::kNothing);
    claim = Of(1, 10, ClaimState::kHeld);
    claim.devices = kFirst;
    t.Change(id, claim);
    t.Commit(Cause::kDecided);
    ASSERT_EQ(touches.end(), before + 1);
    EXPECT_EQ(touches.at(before).kinds, kinds);
  }
}

// Goal: the same of quota, by allowed, refused and crossing. Method: a queue of 10 that may borrow
// 2 of the 5 of its parent, filled by decisions, overdrawn by facts.
class QuotaCommitTest : public LedgerTest {
 protected:
  QuotaCommitTest() {
    ledger.Resize(kFixedResourcesCount, 0, 2);
    ledger.mutable_quota().Link(1, 0);
    ledger.mutable_quota().SetQuota(kCpu, 0, {.nominal = 5});
    ledger.mutable_quota().SetQuota(kCpu, 1, {.nominal = 10, .borrowing_limit = 2});
  }
  Claim Of(uint32_t owner, Amount cpu, ClaimState state = ClaimState::kHeld) {
    return {.owner = OwnerId{owner},
            .account = AccountId::OfTree(1),
            .bundle = bundles.Intern(std::vector<ResourceAmount>{{kCpu, cpu}}),
            .state = state};
  }
};

TEST_F(QuotaCommitTest, ADecisionMayBorrowButNotBeyondTheLimit) {
  Put(Of(1, 12), Cause::kDecided);
  EXPECT_EQ(ledger.quota().borrowed(QuotaView::kNow, kCpu, 1), 2);
  EXPECT_DEATH(Put(Of(2, 1), Cause::kDecided), "NetCharge");
}

TEST_F(QuotaCommitTest, AFactMayOverdrawAndThenDecisionsMayOnlyLessenIt) {
  const ClaimId foreign = Put(Of(1, 20), Cause::kObserved);
  EXPECT_DEATH(Put(Of(2, 1), Cause::kDecided), "NetCharge");
  Transaction t(ledger, touches, bundles, Unfelt::kNothing);
  t.End(foreign);
  t.Add(Of(2, 19));
  EXPECT_EQ(t.NetCharge(), -1);
  t.Commit(Cause::kDecided);
  EXPECT_EQ(ledger.quota().LeftFor(QuotaView::kPhysical, kCpu, 1).amount, -7);
}

// What a preemption frees is nobody's but the preemptor's, and not even its own before it is free.
TEST_F(QuotaCommitTest, QuotaThatIsReleasingIsPromisedOnceAndHeldByNobodyYet) {
  Put(Of(1, 12, ClaimState::kReleasing), Cause::kObserved);
  const ClaimId promise = Put(Of(2, 9, ClaimState::kReserved), Cause::kDecided);
  const AccountId queue = AccountId::OfTree(1);
  EXPECT_EQ(ledger.Future(queue, kCpu, {.owner = OwnerId{3}, .priority = 9}, bundles), 3);
  EXPECT_EQ(ledger.Now(queue, kCpu, {.owner = OwnerId{2}}, bundles), 0);
  EXPECT_DEATH(Put(Of(3, 4, ClaimState::kReserved), Cause::kDecided), "NetCharge");
  const auto admit = [&] {
    Transaction t(ledger, touches, bundles, Unfelt::kNothing);
    t.Change(promise, Of(2, 9));
    t.Commit(Cause::kDecided);
  };
  EXPECT_DEATH(admit(), "NetCharge");
  Transaction gone(ledger, touches, bundles, Unfelt::kNothing);
  gone.End(ledger.first_of_owner(OwnerId{1}));
  gone.Commit(Cause::kOwnerDeleted);
  admit();
  EXPECT_EQ(ledger.Now(queue, kCpu, {.owner = OwnerId{3}}, bundles), 3);
}

TEST_F(CommitTest, EveryEndIsCountedUnderItsCause) {
  const ClaimId id = Put(Of(1, 10), Cause::kDecided);
  Transaction t(ledger, touches, bundles, Unfelt::kNothing);
  t.End(id);
  t.Commit(Cause::kWriteRefused);
  EXPECT_EQ(ledger.ended_by_cause()[static_cast<size_t>(Cause::kWriteRefused)], 1u);
}

}  // namespace
}  // namespace berth::model
