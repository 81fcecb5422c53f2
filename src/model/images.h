#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/hash.h"
#include "model/ids.h"
#include "model/intern.h"

namespace berth::model {

// An image that a node has.
struct NodeImage {
  NameId name;
  Amount size = 0;  // Bytes.
  bool operator==(const NodeImage&) const = default;
};

// Which nodes have which images. A node that has none costs nothing.
//
// Nodes may tell different sizes of one name (another architecture, a tag that was moved): the
// largest that any of them tells counts, so that it does not hang on who told first.
class ImageTable {
 public:
  struct Image {
    Amount size = 0;
    uint32_t nodes_count = 0;  // 0: no node has it.
    bool operator==(const Image&) const = default;
  };

  // What the node has from now on; of a name that stands twice the first counts. O(images of the
  // node x log of it); where the last that told the largest size of an image goes and others have
  // it, also O(all images).
  void Set(NodeId node, std::span<const NodeImage> images);

  [[nodiscard]] Image At(NameId name) const {
    return name.value < images_.size() ? images_[name.value] : Image{};
  }
  [[nodiscard]] bool Has(NodeId node, NameId name) const;
  // Grows whenever a node comes to have the image, has it no longer, or tells another size of it.
  [[nodiscard]] uint64_t stamp(NameId name) const {
    return name.value < stamps_.size() ? stamps_[name.value] : 0;
  }
  // As the node told, sorted by name id.
  [[nodiscard]] std::vector<NodeImage> Of(NodeId node) const;

  void AddTo(Hasher& hasher) const;

 private:
  // An image as some nodes have it: as many as hold it in the table.
  struct Build {
    uint64_t name = 0;  // NameId, as wide as the size.
    Amount size = 0;
    bool operator==(const Build&) const = default;
  };
  using BuildId = Id<struct BuildTag>;
  struct Held {
    NameId name;
    BuildId build;
    auto operator<=>(const Held&) const = default;
  };
  using HeldListId = Id<struct HeldListTag>;

  [[nodiscard]] std::span<const Held> HeldBy(NodeId node) const;
  void Add(const Held& held, Amount size);
  void Drop(const Held& held);

  InternTable<Build, BuildId> builds_;
  InternTable<Held, HeldListId> lists_;  // Sorted by name: nodes that were set up alike share one.
  std::vector<HeldListId> of_node_;      // Up to the last node that had any.
  std::vector<Image> images_;            // By name; up to the last that a node had.
  std::vector<uint64_t> stamps_;         // Likewise. For caches: no part of what is known.
  uint64_t changes_ = 0;
};

}  // namespace berth::model
