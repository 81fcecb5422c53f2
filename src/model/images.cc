#include "model/images.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/check.h"

namespace berth::model {

void ImageTable::Set(NodeId node, std::span<const NodeImage> images) {
  if (node.value >= of_node_.size()) {
    if (images.empty()) return;
    of_node_.resize(node.value + 1);
  }
  std::vector<NodeImage> told(images.begin(), images.end());
  std::ranges::stable_sort(told, {}, &NodeImage::name);
  const auto repeated = std::ranges::unique(told, {}, &NodeImage::name);
  told.erase(repeated.begin(), repeated.end());
  if (told == Of(node)) return;

  ++changes_;
  const std::span<const Held> had = HeldBy(node);
  const std::vector<Held> before(had.begin(), had.end());
  // What stays is counted twice meanwhile, so that it is not forgotten and found again.
  std::vector<Held> held;
  held.reserve(told.size());
  for (const NodeImage& image : told) {
    const Build build{.name = image.name.value, .size = image.size};
    held.push_back({.name = image.name, .build = builds_.Acquire(std::span(&build, 1))});
    Add(held.back(), image.size);
  }
  const HeldListId list = held.empty() ? HeldListId{} : lists_.Acquire(held);
  if (const HeldListId old = std::exchange(of_node_[node.value], list); old.valid())
    lists_.Release(old);
  for (const Held& image : before) Drop(image);
  std::vector<Held> changed;
  std::ranges::set_symmetric_difference(before, held, std::back_inserter(changed));
  for (const Held& image : changed) stamps_[image.name.value] = changes_;
}

void ImageTable::Add(const Held& held, Amount size) {
  if (held.name.value >= images_.size()) {
    images_.resize(held.name.value + 1);
    stamps_.resize(held.name.value + 1);
  }
  Image& image = images_[held.name.value];
  image.size = image.nodes_count++ == 0 ? size : std::max(image.size, size);
}

void ImageTable::Drop(const Held& held) {
  const Amount size = builds_.View(held.build)[0].size;
  builds_.Release(held.build);
  Image& image = images_[held.name.value];
  CHECK_GT(image.nodes_count, 0u);
  if (--image.nodes_count == 0) {
    image.size = 0;
    return;
  }
  if (size != image.size || builds_.contains(held.build)) return;
  bool first = true;
  for (uint32_t i = 0; i < builds_.size(); ++i) {
    if (!builds_.contains(BuildId{i})) continue;
    const Build& build = builds_.View(BuildId{i})[0];
    if (build.name != held.name.value) continue;
    image.size = std::exchange(first, false) ? build.size : std::max(image.size, build.size);
  }
  CHECK(!first);
}

std::span<const ImageTable::Held> ImageTable::HeldBy(NodeId node) const {
  if (node.value >= of_node_.size() || !of_node_[node.value].valid()) return {};
  return lists_.View(of_node_[node.value]);
}

bool ImageTable::Has(NodeId node, NameId name) const {
  return std::ranges::binary_search(HeldBy(node), name, {}, &Held::name);
}

std::vector<NodeImage> ImageTable::Of(NodeId node) const {
  std::vector<NodeImage> images;
  for (const Held& held : HeldBy(node))
    images.push_back({.name = held.name, .size = builds_.View(held.build)[0].size});
  return images;
}

void ImageTable::AddTo(Hasher& hasher) const {
  builds_.AddTo(hasher);
  lists_.AddTo(hasher);
  for (uint32_t row = 0; row < of_node_.size(); ++row) {
    if (of_node_[row].valid()) hasher.Add(row).Add(of_node_[row].value);
  }
}

}  // namespace berth::model
