#include "model/flavors.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "model/state.h"

namespace berth::model {
namespace {

uint64_t HashOfState(const State& state) {
  Hasher hasher;
  state.AddTo(hasher);
  return hasher.value();
}

// Goal: a flavor is known by its name as long as its object is there, and whole: a fact applied
// twice, and a removal that comes late, change nothing. Method: one is put, put again, re-created.
TEST(FlavorsTest, ANameIsKnownAsLongAsItsObjectIs) {
  State state;
  const NameId spot = state.vocabulary().names.Intern("spot");
  const NameId zone = state.vocabulary().names.Intern("zone");
  const FlavorUpsert facts{
      .name = "spot", .uid = "u1", .labels = {{.key = zone, .value = spot}}, .topology = "racks"};
  EXPECT_EQ(state.flavors().Find(spot), nullptr);
  state.Apply(facts);
  const Flavor* found = state.flavors().Find(spot);
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(state.NameOf(found->topology), "racks");
  EXPECT_EQ(state.flavors().FindTopology(found->topology), nullptr);
  const uint64_t before = HashOfState(state);
  state.Apply(facts);
  state.Apply(FlavorRemove{.name = "spot", .uid = "u0"});
  state.Apply(FlavorRemove{.name = "other"});
  EXPECT_EQ(HashOfState(state), before);
  state.Apply(FlavorUpsert{.name = "spot", .uid = "u2"});
  EXPECT_FALSE(state.flavors().Find(spot)->topology.valid());
  EXPECT_TRUE(state.flavors().Find(spot)->labels.empty());
  state.Apply(FlavorRemove{.name = "spot", .uid = "u1"});
  EXPECT_NE(state.flavors().Find(spot), nullptr);
  state.Apply(FlavorRemove{.name = "spot", .uid = "u2"});
  EXPECT_EQ(state.flavors().Find(spot), nullptr);
}

// Goal: likewise of topologies, beside flavors of the same names.
TEST(FlavorsTest, TopologiesAreKnownApart) {
  State state;
  const NameId racks = state.vocabulary().names.Intern("racks");
  const NameId level = state.vocabulary().names.Intern("rack");
  state.Apply(TopologyUpsert{.name = "racks", .uid = "u1", .levels = {level}});
  EXPECT_EQ(state.flavors().Find(racks), nullptr);
  ASSERT_NE(state.flavors().FindTopology(racks), nullptr);
  EXPECT_EQ(state.flavors().FindTopology(racks)->levels, std::vector<NameId>{level});
  state.Apply(TopologyRemove{.name = "racks", .uid = "u0"});
  EXPECT_EQ(state.flavors().topologies_count(), 1u);
  state.Apply(TopologyRemove{.name = "racks"});
  EXPECT_EQ(state.flavors().FindTopology(racks), nullptr);
}

// Goal: equal lists of resource groups are one, others are told apart by where a group ends, and a
// copy says the same. Method: the same ids in other groups, and in a copy after its origin is gone.
TEST(FlavorsTest, ListsOfResourceGroupsAreInterned) {
  const std::vector<ResourceId> resources = {ResourceId{4}, ResourceId{1}, ResourceId{7}};
  const std::vector<NameId> flavors = {NameId{9}, NameId{2}};
  const std::span<const ResourceId> r(resources);
  const std::span<const NameId> f(flavors);
  ResourceGroupsTable copy;
  ResourceGroupsId apart;
  {
    ResourceGroupsTable table;
    const ResourceGroup one[] = {{.resources = r, .flavors = f}};
    const ResourceGroup two[] = {{.resources = r.first(2), .flavors = f.first(1)},
                                 {.resources = r.last(1), .flavors = f.last(1)}};
    const ResourceGroupsId whole = table.Intern(one);
    apart = table.Intern(two);
    EXPECT_NE(whole, apart);
    EXPECT_EQ(table.Intern(one), whole);
    EXPECT_EQ(table.count(whole), 1u);
    EXPECT_EQ(table.count(table.Intern({})), 0u);
    EXPECT_EQ(table.count(ResourceGroupsId{}), 0u);
    copy = table;
  }
  ASSERT_EQ(copy.count(apart), 2u);
  EXPECT_TRUE(std::ranges::equal(copy.at(apart, 0).resources, r.first(2)));
  EXPECT_TRUE(std::ranges::equal(copy.at(apart, 0).flavors, f.first(1)));
  EXPECT_TRUE(std::ranges::equal(copy.at(apart, 1).resources, r.last(1)));
  EXPECT_TRUE(std::ranges::equal(copy.at(apart, 1).flavors, f.last(1)));
}

// Goal: of a selector only what is said of a flavor's own label keys counts, and one term that says
// nothing of them lets it through. Method: requirements of few keys are drawn; those of other keys
// are left out by hand, and the rest is asked in full.
RC_GTEST_PROP(FlavorsTest, ASelectorIsAskedOfTheKeysThatAreThere, ()) {
  Vocabulary v;
  const auto name = [&](const char* kind, int i) {
    return v.names.Intern(kind + std::to_string(i));
  };
  std::vector<Label> labels;
  for (int key = 0; key < 3; ++key) {
    if (*rc::gen::inRange(0, 2) == 0) continue;
    labels.push_back({.key = name("k", key), .value = name("v", *rc::gen::inRange(0, 2))});
  }
  std::ranges::sort(labels);
  const auto requirement = [&] {
    Requirement r{.key = name("k", *rc::gen::inRange(0, 3)),
                  .op = *rc::gen::element(SelectorOp::kIn, SelectorOp::kNotIn, SelectorOp::kExists,
                                          SelectorOp::kDoesNotExist)};
    r.field = *rc::gen::inRange(0, 6) == 0;
    if (r.op == SelectorOp::kIn || r.op == SelectorOp::kNotIn)
      r.values = {name("v", *rc::gen::inRange(0, 2))};
    return r;
  };
  const auto requirements = [&] {
    std::vector<Requirement> out;
    for (int i = *rc::gen::inRange(0, 3); i > 0; --i) out.push_back(requirement());
    return out;
  };
  SelectorSpec spec{.all = requirements()};
  spec.has_terms = *rc::gen::inRange(0, 2) == 0;
  for (int i = spec.has_terms ? *rc::gen::inRange(0, 3) : 0; i > 0; --i)
    spec.terms.push_back({.requirements = requirements(), .never = *rc::gen::inRange(0, 6) == 0});

  SelectorSpec cut = spec;
  const auto drop = [&](std::vector<Requirement>& list) {
    std::erase_if(list, [&](const Requirement& r) {
      return r.field ||
             std::ranges::none_of(labels, [&](const Label& l) { return l.key == r.key; });
    });
    return list.empty();
  };
  drop(cut.all);
  bool free = cut.terms.empty();
  for (SelectorTerm& term : cut.terms) free = drop(term.requirements) || free;
  if (free) {
    cut.has_terms = false;
    cut.terms.clear();
  }
  RC_ASSERT(v.selectors.MatchesKeysOf(v.selectors.Intern(spec), labels, v.names) ==
            v.selectors.Matches(v.selectors.Intern(cut), labels, NameId{}, v.names));
}

}  // namespace
}  // namespace berth::model
