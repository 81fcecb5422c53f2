#include "model/images.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

// Goal: how many nodes have an image, and of which size it is. Method: model-based; a map of what
// each node told last, walked for each question.
namespace berth::model {
namespace {

using Told = std::map<NameId, Amount>;

RC_GTEST_PROP(ImageTableTest, SaysOfEachImageWhatItsNodesTell, ()) {
  ImageTable table;
  std::map<uint32_t, Told> nodes;
  for (int step = *rc::gen::inRange(0, 80); step > 0; --step) {
    const uint32_t node = *rc::gen::inRange(0u, 4u);
    std::vector<NodeImage> images;
    for (int i = *rc::gen::inRange(0, 5); i > 0; --i) {
      images.push_back(
          {.name = NameId{*rc::gen::inRange(0u, 5u)}, .size = *rc::gen::inRange(-1, 3)});
    }
    Told told;
    for (const NodeImage& image : images) told.emplace(image.name, image.size);
    std::vector<uint64_t> stamps;
    for (uint32_t i = 0; i < 6; ++i) stamps.push_back(table.stamp(NameId{i}));
    table.Set(NodeId{node}, images);
    const Told before = std::exchange(nodes[node], told);
    for (uint32_t i = 0; i < 6; ++i) {
      const auto of = [&](const Told& its) {
        const auto at = its.find(NameId{i});
        return at == its.end() ? std::nullopt : std::optional(at->second);
      };
      RC_ASSERT((table.stamp(NameId{i}) > stamps[i]) == (of(before) != of(told)));
    }
    for (uint32_t i = 0; i < 6; ++i) {
      const NameId name{i};
      ImageTable::Image expected;
      for (const auto& [row, its] : nodes) {
        const auto at = its.find(name);
        RC_ASSERT(table.Has(NodeId{row}, name) == (at != its.end()));
        if (at == its.end()) continue;
        expected.size =
            expected.nodes_count++ == 0 ? at->second : std::max(expected.size, at->second);
      }
      RC_ASSERT(table.At(name) == expected);
    }
    for (const auto& [row, its] : nodes) {
      Told of;
      for (const NodeImage& image : table.Of(NodeId{row})) of.emplace(image.name, image.size);
      RC_ASSERT(of == its);
    }
  }
}

TEST(ImageTableTest, TheLargestSizeThatANodeTellsCounts) {
  ImageTable table;
  const NameId name{3};
  const auto told = [](Amount size) {
    return std::vector<NodeImage>{{.name = NameId{3}, .size = size}};
  };
  EXPECT_EQ(table.At(name), ImageTable::Image{});
  table.Set(NodeId{0}, told(5));
  table.Set(NodeId{1}, told(7));
  table.Set(NodeId{2}, told(7));
  EXPECT_EQ(table.At(name), (ImageTable::Image{.size = 7, .nodes_count = 3}));
  table.Set(NodeId{1}, told(5));
  EXPECT_EQ(table.At(name), (ImageTable::Image{.size = 7, .nodes_count = 3}));
  table.Set(NodeId{2}, {});
  EXPECT_EQ(table.At(name), (ImageTable::Image{.size = 5, .nodes_count = 2}));
  table.Set(NodeId{0}, {});
  table.Set(NodeId{1}, {});
  EXPECT_EQ(table.At(name), ImageTable::Image{});
}

}  // namespace
}  // namespace berth::model
