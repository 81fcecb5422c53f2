#pragma once

#include <concepts>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace berth {

// What a hash that merges calls things by, whose own numbers tell only in which order they came.
class HashNames {
 public:
  virtual ~HashNames() = default;
  // Of an object's resourceVersion, by how many of that object are newer.
  [[nodiscard]] virtual uint64_t OfVersion(uint64_t version) const = 0;
  // Of a list's or a bookmark's, by how many of each object of that kind ("pods") are newer.
  [[nodiscard]] virtual uint64_t OfPosition(uint64_t version, std::string_view kind) const = 0;
  // Of a call that is under way, by what it asks for.
  [[nodiscard]] virtual uint64_t OfCall(uint64_t call) const = 0;
  virtual void NameCall(uint64_t call, uint64_t name) = 0;

 protected:
  HashNames() = default;
  HashNames(const HashNames&) = default;
  HashNames& operator=(const HashNames&) = default;
};

// A 64-bit hash that is the same on every machine and run, for comparing whole states and traces
// ("unseed", STYLE 22) and for tables whose order nobody sees. Not for hostile input.
//
// With names it merges (docs/design/0008-explorer.md): two states that differ in their past alone
// get the same hash. Without, everything counts, and the members below do as Add does.
class Hasher {
 public:
  Hasher() = default;
  explicit Hasher(HashNames* names) : names_(names) {}
  // Null unless it merges.
  [[nodiscard]] HashNames* names() const { return names_; }
  [[nodiscard]] bool merges() const { return names_ != nullptr; }

  // What changes nothing that comes: counts of what happened, numbers to be given next.
  template <typename T>
  Hasher& AddHistory(T value) {
    return merges() ? *this : Add(value);
  }
  Hasher& AddVersion(uint64_t version) {
    return Add(merges() ? names_->OfVersion(version) : version);
  }
  Hasher& AddPosition(uint64_t version, std::string_view kind) {
    return Add(merges() ? names_->OfPosition(version, kind) : version);
  }
  // As text.
  Hasher& AddVersion(std::string_view text);
  Hasher& AddPosition(std::string_view text, std::string_view kind);
  Hasher& AddCall(uint64_t call) { return Add(merges() ? names_->OfCall(call) : call); }
  // JSON that holds resourceVersions: of an object, a list or an event of a watch.
  Hasher& AddDocument(std::string_view json);
  // Elements whose order tells of the past only. `add` takes a Hasher and an element.
  template <typename Range, typename AddOne>
  Hasher& AddEach(const Range& range, AddOne add) {
    if (!merges()) {
      for (const auto& element : range) add(*this, element);
      return *this;
    }
    uint64_t sum = 0;
    for (const auto& element : range) {
      Hasher one(names_);
      add(one, element);
      sum += one.value();
    }
    return Add(sum);
  }

  template <typename T>
    requires std::integral<T> || std::is_enum_v<T>
  Hasher& Add(T value) {
    Mix(static_cast<uint64_t>(value));
    return *this;
  }
  Hasher& Add(std::string_view bytes) {
    Mix(bytes.size());
    while (bytes.size() >= 8) {
      uint64_t word = 0;
      std::memcpy(&word, bytes.data(), 8);
      Mix(word);
      bytes.remove_prefix(8);
    }
    uint64_t tail = 0;
    // An empty view may point nowhere, which memcpy doesn't take.
    if (!bytes.empty()) std::memcpy(&tail, bytes.data(), bytes.size());
    Mix(tail);
    return *this;
  }
  [[nodiscard]] uint64_t value() const {
    uint64_t h = state_;
    h ^= h >> 32;
    h *= 0xd6e8feb86659fd93ull;
    h ^= h >> 32;
    return h;
  }

 private:
  void Mix(uint64_t word) {
    state_ = (state_ ^ word) * 0x9fb21c651e98df25ull;
    state_ ^= state_ >> 35;
  }

  uint64_t state_ = 0x2545f4914f6cdd1dull;
  HashNames* names_ = nullptr;
};

inline uint64_t HashOf(std::string_view bytes) { return Hasher().Add(bytes).value(); }

}  // namespace berth
