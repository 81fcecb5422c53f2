// Goal: pods go to few domains, close to each other, as asked for, and never to more than there is
// room for. Method: tables on small trees; and random trees, rooms and requests, where a placement
// is checked against what was asked for, and a refusal against the rooms of each domain. That the
// choices are Kueue's is shown by its vectors (docs/VECTORS.md).
#include "topo/place.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <string>
#include <vector>

namespace berth::topo {
namespace {

using model::NameId;

// A tree of names of digits: "12" is domain 1, and in it 2.
struct Names {
  std::vector<std::string> texts;
  NameId Of(const std::string& text) {
    const auto at = std::ranges::find(texts, text);
    if (at != texts.end()) return NameId{static_cast<uint32_t>(at - texts.begin())};
    texts.push_back(text);
    return NameId{static_cast<uint32_t>(texts.size() - 1)};
  }
};

struct Nodes {
  explicit Nodes(const std::vector<std::string>& paths)
      : tree(static_cast<uint32_t>(paths.front().size()), Values(paths),
             [this](NameId name) { return std::string_view(names.texts[name.value]); }) {}
  std::vector<NameId> Values(const std::vector<std::string>& paths) {
    std::vector<NameId> values;
    for (const std::string& path : paths) {
      for (const char value : path) values.push_back(names.Of(std::string(1, value)));
    }
    return values;
  }
  // Of a leaf.
  std::string Text(uint32_t leaf) {
    std::string text;
    for (const NameId value : tree.PathOf({tree.lowest(), leaf})) text += names.texts[value.value];
    return text;
  }
  Names names;
  Tree tree;
};

TEST(Tree, DomainsAreInTheOrderOfTheirPaths) {
  Nodes nodes({"21", "12", "11", "12", "3z"});
  EXPECT_EQ(nodes.tree.size(0), 3U);
  EXPECT_EQ(nodes.tree.size(1), 4U);
  std::vector<std::string> leaves;
  for (uint32_t i = 0; i < 4; ++i) leaves.push_back(nodes.Text(i));
  EXPECT_EQ(leaves, (std::vector<std::string>{"11", "12", "21", "3z"}));
  EXPECT_EQ(nodes.tree.leaf_of(0), 2U);
  EXPECT_EQ(nodes.tree.leaf_of(1), 1U);
  EXPECT_EQ(nodes.tree.leaf_of(3), 1U);
  EXPECT_EQ(nodes.tree.first_child({0, 0}), 0U);
  EXPECT_EQ(nodes.tree.end_child({0, 0}), 2U);
  EXPECT_EQ(nodes.tree.first_child({0, 2}), 3U);
  EXPECT_EQ(nodes.tree.Above({1, 2}, 0), (DomainId{0, 1}));
  EXPECT_EQ(nodes.tree.Above({1, 2}, 1), (DomainId{1, 2}));
}

TEST(Tree, OfNoNodesHasNoDomains) {
  const Tree tree(2, {}, [](NameId) { return std::string_view(); });
  EXPECT_EQ(tree.size(0), 0U);
  const auto placed = Place(tree, {}, {.count = 1, .slices = {}});
  ASSERT_FALSE(placed.has_value());
  EXPECT_EQ(placed.error().kind, Misfit::Kind::kNoDomains);
}

// "11=2 12=1", the leader's domain in brackets; of a refusal "1/2".
std::string Placed(Nodes& nodes, const std::vector<Room>& rooms, const Request& request) {
  const auto placed = Place(nodes.tree, rooms, request);
  if (!placed) {
    std::vector<std::string> fills;
    for (const Fill& fill : placed.error().fills)
      fills.push_back(fmt::format("{}/{}", fill.fits, fill.wanted));
    return fmt::format("{}", fmt::join(fills, " "));
  }
  std::vector<std::string> parts;
  for (const Share& share : placed->pods)
    parts.push_back(fmt::format("{}={}", nodes.Text(share.leaf), share.count));
  if (placed->leader) parts.push_back(fmt::format("[{}]", nodes.Text(*placed->leader)));
  return fmt::format("{}", fmt::join(parts, " "));
}

std::vector<Room> Rooms(const std::vector<uint32_t>& pods) {
  std::vector<Room> rooms;
  for (const uint32_t count : pods) rooms.push_back({.pods = count});
  return rooms;
}

TEST(Place, GoesWhereTheRequestSays) {
  Nodes nodes({"11", "12", "21", "22"});
  const std::vector<Slice> pairs = {{.level = 1, .size = 2}};
  const std::vector<Slice> racks = {{.level = 0, .size = 4}, {.level = 1, .size = 2}};
  struct Row {
    std::vector<uint32_t> rooms;
    Request request;
    std::string want;
  };
  using enum Reach;
  const std::vector<Row> rows = {
      // The smallest domain that holds all, and in it few domains.
      {{3, 3, 2, 1}, {kRequired, 0, 3, {}, false}, "21=2 22=1"},
      {{3, 3, 2, 1}, {kRequired, 0, 4, {}, false}, "11=3 12=1"},
      {{3, 3, 2, 1}, {kRequired, 1, 2, {}, false}, "21=2"},
      {{3, 3, 2, 1}, {kRequired, 0, 7, {}, false}, "6/7"},
      {{3, 3, 2, 1}, {kPreferred, 1, 5, {}, false}, "11=3 12=2"},
      {{3, 3, 2, 1}, {kPreferred, 0, 8, {}, false}, "11=3 12=3 21=2"},
      {{3, 3, 2, 1}, {kPreferred, 0, 10, {}, false}, "9/10"},
      // One that holds all, else the fullest first.
      {{3, 3, 2, 1}, {kUnconstrained, 1, 2, {}, false}, "21=2"},
      {{3, 3, 2, 1}, {kUnconstrained, 1, 4, {}, false}, "11=1 21=2 22=1"},
      {{0, 0, 0, 1}, {kUnconstrained, 1, 2, {}, false}, "1/2"},
      // Slices stay whole.
      {{3, 3, 4, 1}, {kRequired, 0, 4, pairs, false}, "21=4"},
      {{3, 3, 1, 1}, {kRequired, 0, 4, pairs, false}, "11=2 12=2"},
      {{3, 1, 1, 1}, {kRequired, 0, 4, pairs, false}, "1/2"},
      {{3, 3, 3, 3}, {kPreferred, 0, 8, racks, false}, "11=2 12=2 21=2 22=2"},
      {{3, 1, 3, 3}, {kPreferred, 0, 8, racks, false}, "1/2 3/4"},
  };
  for (size_t i = 0; i < rows.size(); ++i)
    EXPECT_EQ(Placed(nodes, Rooms(rows[i].rooms), rows[i].request), rows[i].want) << "row " << i;
}

// It goes where the others fit still, though another domain would hold it beside more of them.
TEST(Place, ALeaderLeavesRoomToTheOthers) {
  Nodes nodes({"11", "12", "21"});
  const Request request{
      .reach = Reach::kRequired, .level = 0, .count = 6, .slices = {}, .leader = true};
  EXPECT_EQ(Placed(nodes,
                   {{.pods = 4, .leader = true, .beside_leader = 3},
                    {.pods = 2, .leader = true, .beside_leader = 2},
                    {.pods = 9}},
                   request),
            "11=4 12=2 [12]");
  EXPECT_EQ(Placed(nodes, {{.pods = 4}, {.pods = 2}, {.pods = 9}}, request), "6/6");
}

// ---- Any trees ---------------------------------------------------------------------------------

struct Drawn {
  std::vector<std::string> paths;
  std::vector<Room> rooms;
  std::vector<Slice> slices;
  Request request;
};

Drawn Draw() {
  Drawn drawn;
  const int levels = *rc::gen::inRange(1, 4);
  for (int i = *rc::gen::inRange(1, 8); i > 0; --i) {
    std::string& path = drawn.paths.emplace_back();
    for (int level = 0; level < levels; ++level)
      path += static_cast<char>('0' + *rc::gen::inRange(0, 3));
  }
  Request& request = drawn.request;
  request.reach = *rc::gen::element(Reach::kRequired, Reach::kPreferred, Reach::kUnconstrained);
  request.level = *rc::gen::inRange<uint32_t>(0, static_cast<uint32_t>(levels));
  request.count = *rc::gen::inRange(1U, 9U);
  uint32_t size = 1;
  for (auto level = static_cast<uint32_t>(levels); level-- > request.level;) {
    if (*rc::gen::inRange(0, 3) != 0) continue;
    size *= *rc::gen::inRange(1U, 3U);
    drawn.slices.insert(drawn.slices.begin(), {.level = level, .size = size});
  }
  request.count = (request.count + size - 1) / size * size;
  request.leader = *rc::gen::inRange(0, 3) == 0;
  return drawn;
}

// What a placement has to be, whichever it is.
void CheckPlacement(const Tree& tree, const Drawn& drawn, const Placement& placement) {
  const Request& request = drawn.request;
  uint32_t sum = 0;
  std::map<DomainId, uint32_t> by_level;
  for (const Share& share : placement.pods) {
    sum += share.count;
    const Room& room = drawn.rooms[share.leaf];
    RC_ASSERT(share.count > 0);
    RC_ASSERT(share.count <= (placement.leader == share.leaf ? room.beside_leader : room.pods));
    for (uint32_t level = 0; level < tree.levels(); ++level)
      by_level[tree.Above({tree.lowest(), share.leaf}, level)] += share.count;
  }
  RC_ASSERT(sum == request.count);
  RC_ASSERT(placement.leader.has_value() == request.leader);
  if (placement.leader) RC_ASSERT(drawn.rooms[*placement.leader].leader);
  for (const auto& [domain, count] : by_level) {
    for (const Slice& slice : request.slices)
      if (slice.level == domain.level) RC_ASSERT(count % slice.size == 0);
    if (request.reach == Reach::kRequired && domain.level == request.level)
      RC_ASSERT(count == request.count);
  }
}

TEST(Place, PlacementsAreWhatWasAskedFor) {
  EXPECT_TRUE(rc::check("placements are what was asked for", [] {
    Drawn drawn = Draw();
    const Nodes nodes(drawn.paths);
    const Tree& tree = nodes.tree;
    for (uint32_t i = 0; i < tree.size(tree.lowest()); ++i) {
      Room& room = drawn.rooms.emplace_back(Room{.pods = *rc::gen::inRange(0U, 5U)});
      room.leader = *rc::gen::inRange(0, 2) == 0;
      if (room.leader)
        room.beside_leader = room.pods - std::min(room.pods, *rc::gen::inRange(0U, 3U));
    }
    drawn.request.slices = drawn.slices;
    const auto placed = Place(tree, drawn.rooms, drawn.request);
    if (placed) return CheckPlacement(tree, drawn, *placed);
    RC_ASSERT(placed.error().kind != Misfit::Kind::kNoDomains);
    if (drawn.request.leader || !drawn.slices.empty()) return;
    // No domain of the level holds them all, nor do all together if they may stand in several.
    std::vector<uint64_t> sums(tree.size(drawn.request.level));
    for (uint32_t i = 0; i < drawn.rooms.size(); ++i)
      sums[tree.Above({tree.lowest(), i}, drawn.request.level).index] += drawn.rooms[i].pods;
    if (drawn.request.reach == Reach::kRequired) {
      RC_ASSERT(std::ranges::max(sums) < drawn.request.count);
    } else {
      RC_ASSERT(std::accumulate(sums.begin(), sums.end(), uint64_t{0}) < drawn.request.count);
    }
  }));
}

}  // namespace
}  // namespace berth::topo
