#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <vector>

#include "store/object.h"

namespace berth::store {

// The objects of one kind, ordered by (namespace, name).
//
// A sorted list of small sorted chunks that copies share until one of them writes: copying costs
// one pointer per ~100 objects, lookup O(log n), insert and erase O(log n + chunk). Not
// thread-safe; copies are independent, and each belongs to the thread of its owner.
class ObjectTable {
 public:
  [[nodiscard]] size_t size() const { return size_; }

  // Null when absent.
  [[nodiscard]] ObjectRef Find(ObjectKey key) const;

  // Adds or replaces the object of its key.
  void Put(ObjectRef object);

  // Returns whether it was there.
  bool Erase(ObjectKey key);

  // Where a walk stands. Valid until the table changes.
  struct Cursor {
    size_t chunk = 0;
    size_t slot = 0;
  };

  // The first object whose key is not before `key`.
  [[nodiscard]] Cursor LowerBound(ObjectKey key) const;

  // The object at the cursor, null at the end.
  [[nodiscard]] const ObjectRef* At(Cursor cursor) const {
    return cursor.chunk < chunks_.size() ? &(*chunks_[cursor.chunk])[cursor.slot] : nullptr;
  }
  void Next(Cursor& cursor) const {
    if (++cursor.slot >= chunks_[cursor.chunk]->size()) cursor = {cursor.chunk + 1, 0};
  }

 private:
  using Chunk = std::vector<ObjectRef>;  // Never empty.
  static constexpr size_t kChunkMax = 128;

  [[nodiscard]] size_t ChunkFor(ObjectKey key) const;
  Chunk& Own(size_t index);

  std::vector<std::shared_ptr<Chunk>> chunks_;
  size_t size_ = 0;
};

}  // namespace berth::store
