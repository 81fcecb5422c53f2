#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/types.h"
#include "base/shared.h"

// Private to codec/. The pods of a workload have the same spec text but for their node's name, and
// most changes of a pod leave its spec alone: what a text said is remembered, and found again by
// comparing bytes, which takes a fiftieth of reading it.
namespace berth::codec {

// Where a pod's spec stands in its document.
struct SpecPlace {
  size_t comma = 0;  // Before the member, which is not the first.
  size_t value = 0;
};

// Nothing when there is none, or it is not written as API servers write it.
[[nodiscard]] std::optional<SpecPlace> FindSpec(std::string_view pod);

// At most kSpecsMax texts of kTextBytesMax bytes. Nothing that is found here differs from what
// reading it again would give.
class SpecMemo {
 public:
  struct Known {
    Shared<api::PodSpec> spec;
    std::string_view node_name;  // In the text.
    size_t size = 0;             // Of the text.
  };

  // What the spec says that `text` begins with.
  [[nodiscard]] std::optional<Known> Find(std::string_view text);

  // Remembers what was read of the spec that `text` begins with, which is good JSON, if it is the
  // second time that this might have helped. `pod` then shares its spec with those of equal ones.
  // Of specs that begin alike and are not found again, as those of a DaemonSet's pods, up to
  // kPassedMax are passed over for each that is remembered.
  void Learn(std::string_view text, api::Pod& pod);

 private:
  static constexpr size_t kSpecsMax = 128;
  static constexpr size_t kTextBytesMax = 8 * 1024;
  // Texts are told apart by a hash of so many bytes at first, and shorter ones not remembered.
  static constexpr size_t kHeadBytes = 256;
  // Specs that begin alike, as those of an indexed Job's pods, displace one another first.
  static constexpr size_t kSameHeadMax = 16;
  static constexpr uint32_t kPassedMax = 64;

  struct Entry {
    std::string head;  // Up to the node's name, or all of the text.
    std::string tail;  // From behind the node's name; empty when there is none.
    Shared<api::PodSpec> spec;
    bool found = false;  // Since it was remembered.
  };
  // Of texts that were not found lately.
  struct Missed {
    uint64_t hash = 0;
    uint32_t step = 0;  // How many are passed over once one was remembered: ...
    uint32_t left = 0;  // ... of those, the ones to come.
  };

  [[nodiscard]] Missed& MissedOf(uint64_t hash) { return missed_[hash % missed_.size()]; }
  // Where a text of this hash is to be remembered.
  size_t PlaceFor(uint64_t hash);

  std::vector<uint64_t> hashes_;  // Of the entries' first bytes.
  std::vector<Entry> entries_;
  size_t turn_ = 0;  // Counts what was replaced.
  std::array<Missed, 256> missed_ = {};
};

}  // namespace berth::codec
