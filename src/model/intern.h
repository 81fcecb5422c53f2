#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/check.h"
#include "base/hash.h"

namespace berth::model {

// Gives equal sequences of T one dense id.
//
// Three flat arrays, so that copying costs a memcpy: one buffer of elements, one entry per id, one
// open-addressed index (linear probing, load under 1/2). Intern and Find cost O(length) expected.
// Not thread-safe.
//
// An id that was only ever interned stays for the life of the table. One that was acquired is
// freed, and may be given again to other content, when it was released as often as acquired; the
// buffer is compacted once half of it is garbage.
template <typename T, typename IdT>
class InternTable {
  static_assert(std::has_unique_object_representations_v<T>,
                "content is hashed and compared as bytes");

 public:
  // Content handed in must not lie in this table's own buffer.
  IdT Intern(std::span<const T> items) {
    const IdT id = FindOrAdd(items);
    entries_[id.value].pinned = 1;
    return id;
  }

  IdT Acquire(std::span<const T> items) {
    const IdT id = FindOrAdd(items);
    ++entries_[id.value].holders;
    return id;
  }

  void Release(IdT id) {
    CHECK(contains(id));
    Entry& entry = entries_[id.value];
    CHECK_GT(entry.holders, 0u);
    if (--entry.holders == 0 && entry.pinned == 0) Free(id);
  }

  // The id of `items`, invalid when they are not in the table.
  [[nodiscard]] IdT Find(std::span<const T> items) const {
    if (slots_.empty()) return IdT{};
    for (uint32_t slot = HashOfItems(items) & mask();; slot = (slot + 1) & mask()) {
      if (slots_[slot] == IdT::kNone) return IdT{};
      if (std::ranges::equal(View(IdT{slots_[slot]}), items)) return IdT{slots_[slot]};
    }
  }

  // Valid until the next change of the table. REQUIRES: contains(id).
  [[nodiscard]] std::span<const T> View(IdT id) const {
    CHECK_LT(id.value, entries_.size());
    const Entry& entry = entries_[id.value];
    return std::span<const T>(items_).subspan(entry.offset, entry.length);
  }

  [[nodiscard]] bool contains(IdT id) const {
    return id.value < entries_.size() && entries_[id.value].used != 0;
  }
  // One past the largest id ever given: the length of a column indexed by these ids.
  [[nodiscard]] uint32_t size() const { return static_cast<uint32_t>(entries_.size()); }
  [[nodiscard]] uint32_t live() const {
    return static_cast<uint32_t>(entries_.size() - free_.size());
  }
  [[nodiscard]] uint32_t holders(IdT id) const { return entries_[id.value].holders; }

  void AddTo(Hasher& hasher) const {
    hasher.Add(entries_.size());
    for (const Entry& entry : entries_) {
      hasher.Add(entry.used).Add(entry.pinned).Add(entry.holders);
      if (entry.used == 0) continue;
      hasher.Add(Bytes(std::span<const T>(items_).subspan(entry.offset, entry.length)));
    }
    for (const uint32_t id : free_) hasher.Add(id);
  }

 private:
  struct Entry {
    uint32_t offset = 0;
    uint32_t length = 0;
    uint32_t hash = 0;
    uint32_t holders = 0;
    uint8_t pinned = 0;
    uint8_t used = 0;
  };
  static constexpr uint32_t kSlotsMin = 16;

  static std::string_view Bytes(std::span<const T> items) {
    return {reinterpret_cast<const char*>(items.data()), items.size_bytes()};
  }
  static uint32_t HashOfItems(std::span<const T> items) {
    return static_cast<uint32_t>(HashOf(Bytes(items)));
  }
  [[nodiscard]] uint32_t mask() const { return static_cast<uint32_t>(slots_.size()) - 1; }

  IdT FindOrAdd(std::span<const T> items) {
    if (const IdT found = Find(items); found.valid()) return found;
    CHECK_LT(items_.size() + items.size(), std::numeric_limits<uint32_t>::max());
    if ((live() + 1) * 2 > slots_.size()) Rehash();
    IdT id{static_cast<uint32_t>(entries_.size())};
    if (free_.empty()) {
      entries_.emplace_back();
    } else {
      id.value = free_.back();
      free_.pop_back();
    }
    entries_[id.value] = Entry{.offset = static_cast<uint32_t>(items_.size()),
                               .length = static_cast<uint32_t>(items.size()),
                               .hash = HashOfItems(items),
                               .holders = 0,
                               .pinned = 0,
                               .used = 1};
    items_.insert(items_.end(), items.begin(), items.end());
    Place(id);
    return id;
  }

  void Place(IdT id) {
    uint32_t slot = entries_[id.value].hash & mask();
    while (slots_[slot] != IdT::kNone) slot = (slot + 1) & mask();
    slots_[slot] = id.value;
  }

  void Rehash() {
    size_t wanted = kSlotsMin;
    while (wanted < (size_t{live()} + 1) * 4) wanted *= 2;
    slots_.assign(wanted, IdT::kNone);
    for (uint32_t i = 0; i < entries_.size(); ++i) {
      if (entries_[i].used != 0) Place(IdT{i});
    }
  }

  void Free(IdT id) {
    Entry& entry = entries_[id.value];
    uint32_t hole = entry.hash & mask();
    while (slots_[hole] != id.value) hole = (hole + 1) & mask();
    // Moves later members of the probe run into the hole, so that no tombstones are needed.
    for (uint32_t slot = (hole + 1) & mask(); slots_[slot] != IdT::kNone;
         slot = (slot + 1) & mask()) {
      const uint32_t home = entries_[slots_[slot]].hash & mask();
      if (((slot - home) & mask()) < ((slot - hole) & mask())) continue;
      slots_[hole] = slots_[slot];
      hole = slot;
    }
    slots_[hole] = IdT::kNone;
    garbage_ += entry.length;
    entry = Entry{};
    free_.push_back(id.value);
    if (garbage_ > items_.size() / 2 && garbage_ > 4096) Compact();
  }

  void Compact() {
    std::vector<T> kept;
    kept.reserve(items_.size() - garbage_);
    for (Entry& entry : entries_) {
      if (entry.used == 0) continue;
      const auto from = items_.begin() + entry.offset;
      entry.offset = static_cast<uint32_t>(kept.size());
      kept.insert(kept.end(), from, from + entry.length);
    }
    items_ = std::move(kept);
    garbage_ = 0;
  }

  std::vector<T> items_;
  std::vector<Entry> entries_;
  std::vector<uint32_t> slots_;
  std::vector<uint32_t> free_;
  size_t garbage_ = 0;
};

// InternTable of strings.
template <typename IdT>
class StringTable {
 public:
  IdT Intern(std::string_view text) { return table_.Intern(text); }
  IdT Acquire(std::string_view text) { return table_.Acquire(text); }
  void Release(IdT id) { table_.Release(id); }
  [[nodiscard]] IdT Find(std::string_view text) const { return table_.Find(text); }
  // Valid until the next change of the table.
  [[nodiscard]] std::string_view View(IdT id) const {
    const std::span<const char> chars = table_.View(id);
    return {chars.data(), chars.size()};
  }
  [[nodiscard]] bool contains(IdT id) const { return table_.contains(id); }
  [[nodiscard]] uint32_t size() const { return table_.size(); }
  [[nodiscard]] uint32_t live() const { return table_.live(); }
  [[nodiscard]] uint32_t holders(IdT id) const { return table_.holders(id); }
  void AddTo(Hasher& hasher) const { table_.AddTo(hasher); }

 private:
  InternTable<char, IdT> table_;
};

}  // namespace berth::model
