#include "store/table.h"

#include <utility>

#include "base/check.h"

namespace berth::store {

namespace {

auto LowerBoundIn(const std::vector<ObjectRef>& chunk, ObjectKey key) {
  return std::lower_bound(
      chunk.begin(), chunk.end(), key,
      [](const ObjectRef& object, const ObjectKey& wanted) { return KeyOf(*object) < wanted; });
}

}  // namespace

size_t FootprintBytes(const StoredObject& object) {
  size_t bytes = sizeof(StoredObject) + 64 + object.namespace_name.size() + object.name.size() +
                 object.uid.size() + object.json.size();
  for (const auto& [key, value] : object.labels) {
    bytes += 2 * sizeof(std::string) + key.size() + value.size();
  }
  for (const std::string& field : object.fields) bytes += sizeof(std::string) + field.size();
  return bytes;
}

// The last chunk whose first key is not after `key`, or the first one.
size_t ObjectTable::ChunkFor(ObjectKey key) const {
  const auto after = std::upper_bound(
      chunks_.begin(), chunks_.end(), key,
      [](const ObjectKey& wanted, const auto& chunk) { return wanted < KeyOf(*chunk->front()); });
  return after == chunks_.begin() ? 0 : static_cast<size_t>(after - chunks_.begin()) - 1;
}

ObjectTable::Chunk& ObjectTable::Own(size_t index) {
  std::shared_ptr<Chunk>& chunk = chunks_[index];
  if (chunk.use_count() > 1) chunk = std::make_shared<Chunk>(*chunk);
  return *chunk;
}

ObjectRef ObjectTable::Find(ObjectKey key) const {
  if (chunks_.empty()) return nullptr;
  const Chunk& chunk = *chunks_[ChunkFor(key)];
  const auto it = LowerBoundIn(chunk, key);
  return it != chunk.end() && KeyOf(**it) == key ? *it : nullptr;
}

void ObjectTable::Put(ObjectRef object) {
  CHECK(object != nullptr);
  const ObjectKey key = KeyOf(*object);
  if (chunks_.empty()) {
    chunks_.push_back(std::make_shared<Chunk>());
    chunks_[0]->push_back(std::move(object));
    size_ = 1;
    return;
  }
  const size_t index = ChunkFor(key);
  Chunk& chunk = Own(index);
  const auto place = LowerBoundIn(chunk, key);
  const auto offset = place - chunk.begin();
  if (place != chunk.end() && KeyOf(**place) == key) {
    chunk[static_cast<size_t>(offset)] = std::move(object);
    return;
  }
  chunk.insert(place, std::move(object));
  ++size_;
  if (chunk.size() <= kChunkMax) return;
  // Names made in order fill the table from left to right: then the left part stays nearly full.
  const bool at_the_end =
      index + 1 == chunks_.size() && static_cast<size_t>(offset) + 1 == chunk.size();
  const auto cut = chunk.begin() + (at_the_end ? kChunkMax - 8 : kChunkMax / 2);
  auto right = std::make_shared<Chunk>(cut, chunk.end());
  chunk.erase(cut, chunk.end());
  chunks_.insert(chunks_.begin() + static_cast<std::ptrdiff_t>(index) + 1, std::move(right));
}

bool ObjectTable::Erase(ObjectKey key) {
  if (chunks_.empty()) return false;
  const size_t index = ChunkFor(key);
  const auto found = LowerBoundIn(*chunks_[index], key);
  if (found == chunks_[index]->end() || KeyOf(**found) != key) return false;
  const auto offset = found - chunks_[index]->begin();
  --size_;
  if (chunks_[index]->size() == 1) {
    chunks_.erase(chunks_.begin() + static_cast<std::ptrdiff_t>(index));
    return true;
  }
  Chunk& chunk = Own(index);
  chunk.erase(chunk.begin() + offset);
  if (chunk.size() < kChunkMax / 4 && index + 1 < chunks_.size() &&
      chunk.size() + chunks_[index + 1]->size() < kChunkMax * 3 / 4) {
    chunk.insert(chunk.end(), chunks_[index + 1]->begin(), chunks_[index + 1]->end());
    chunks_.erase(chunks_.begin() + static_cast<std::ptrdiff_t>(index) + 1);
  }
  return true;
}

ObjectTable::Cursor ObjectTable::LowerBound(ObjectKey key) const {
  if (chunks_.empty()) return {};
  const size_t index = ChunkFor(key);
  const auto it = LowerBoundIn(*chunks_[index], key);
  if (it == chunks_[index]->end()) return {index + 1, 0};
  return {index, static_cast<size_t>(it - chunks_[index]->begin())};
}

}  // namespace berth::store
