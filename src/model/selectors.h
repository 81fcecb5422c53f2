#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/hash.h"
#include "model/ids.h"
#include "model/intern.h"
#include "model/lists.h"

namespace berth::model {

enum class SelectorOp : uint32_t { kIn, kNotIn, kExists, kDoesNotExist, kGt, kLt };

// One requirement on a label, or with `field` on the node's name.
struct Requirement {
  NameId key;
  SelectorOp op = SelectorOp::kIn;
  bool field = false;          // metadata.name; `key` is not read.
  std::vector<NameId> values;  // Sorted. For kGt and kLt exactly one, a decimal integer.
  auto operator<=>(const Requirement&) const = default;
};

// A conjunction. One without requirements matches nothing, as upstream; so does one marked `never`
// (a term that upstream fails to parse, such as Gt with a word).
struct SelectorTerm {
  std::vector<Requirement> requirements;
  bool never = false;
  bool operator==(const SelectorTerm&) const = default;
};

// nodeSelector and requiredDuringScheduling node affinity in one: every requirement of `all`, and,
// if `has_terms`, one of the terms (none then matches nothing). A preferred term is a SelectorSpec
// with that one term.
struct SelectorSpec {
  std::vector<Requirement> all;
  bool has_terms = false;
  std::vector<SelectorTerm> terms;
  bool operator==(const SelectorSpec&) const = default;
};

// Distinct selectors, each pre-matched to a bitset of nodes.
//
// A selector's bitset exists once Materialise was called for it; State keeps materialised ones
// current: a node whose labels change costs one match per materialised selector, one that does not
// change costs nothing.
class SelectorTable {
 public:
  // Equal specs (after sorting requirements and values) get equal ids. O(size of spec).
  SelectorId Intern(const SelectorSpec& spec);

  // What was interned, sorted. O(size of spec).
  [[nodiscard]] SelectorSpec At(SelectorId id) const;

  // Whether a node with these labels and this name matches. O(requirements x log labels).
  [[nodiscard]] bool Matches(SelectorId id, std::span<const Label> labels, NameId node_name,
                             const StringTable<NameId>& names) const;

  // Whether something with just these labels matches what the selector says of their keys: other
  // requirements do not count, and where one of the terms has none that does, no term does.
  // O(requirements x log labels).
  [[nodiscard]] bool MatchesKeysOf(SelectorId id, std::span<const Label> labels,
                                   const StringTable<NameId>& names) const;

  // Bit n of word n / 64: node row n matches. Empty when not materialised.
  [[nodiscard]] std::span<const uint64_t> Bits(SelectorId id) const;
  [[nodiscard]] bool Test(SelectorId id, NodeId node) const {
    return ((bits_[size_t{row_of_[id.value]} * stride_ + node.value / 64] >> (node.value % 64)) &
            1) != 0;
  }
  [[nodiscard]] bool materialised(SelectorId id) const {
    return id.value < row_of_.size() && row_of_[id.value] != kNotMaterialised;
  }
  [[nodiscard]] uint32_t size() const { return table_.size(); }

  void AddTo(Hasher& hasher) const;

 private:
  friend class State;  // Matches nodes: the bits are its own.
  // Leaves all bits clear; State sets them.
  void Materialise(SelectorId id, uint32_t nodes_count);
  void Resize(uint32_t nodes_count);
  void Set(SelectorId id, NodeId node, bool value);
  [[nodiscard]] std::span<const SelectorId> materialised_ids() const { return materialised_; }

  static constexpr uint32_t kNotMaterialised = 0xffffffff;

  InternTable<uint32_t, SelectorId> table_;  // Encoded specs.
  std::vector<uint32_t> row_of_;             // By selector: row in bits_.
  std::vector<SelectorId> materialised_;     // By row.
  std::vector<uint64_t> bits_;
  uint32_t stride_ = 0;  // Words per row.
};

}  // namespace berth::model
