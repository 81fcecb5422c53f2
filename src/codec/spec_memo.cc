#include "codec/spec_memo.h"

#include <algorithm>
#include <utility>

#include "base/hash.h"
#include "codec/scan.h"

namespace berth::codec {
namespace {

// How many characters of a node's name the text begins with. All of them stand for themselves.
size_t NameSize(std::string_view text) {
  size_t size = 0;
  while (size < text.size() && ((text[size] >= 'a' && text[size] <= 'z') || text[size] == '-' ||
                                (text[size] >= '0' && text[size] <= '9') || text[size] == '.')) {
    ++size;
  }
  return size;
}

struct Cut {
  size_t size = 0;        // Of the spec's text.
  std::string_view node;  // Its node's name, where it stands; empty when there is none.
};

// Nothing when the place of the node's name is not plain to see.
std::optional<Cut> CutSpec(std::string_view text) {
  Cut cut;
  bool placed = false;
  ObjectScanner scanner(text);
  while (scanner.Next()) {
    if (scanner.key().find('\\') != std::string_view::npos) return std::nullopt;
    if (scanner.key() != "nodeName") continue;
    const std::string_view value = scanner.value();
    if (placed || value.size() < 3 || value.front() != '"') return std::nullopt;
    placed = true;
    cut.node = value.substr(1, value.size() - 2);
    if (NameSize(cut.node) != cut.node.size()) return std::nullopt;
  }
  if (scanner.failed()) return std::nullopt;
  cut.size = text.size() - scanner.behind().size();
  return cut;
}

}  // namespace

std::optional<SpecPlace> FindSpec(std::string_view pod) {
  constexpr std::string_view kMember = R"(,"spec":)";
  ObjectScanner scanner(pod);
  while (scanner.Next()) {
    if (scanner.key() != "spec") continue;
    const size_t value = pod.size() - scanner.rest().size();
    if (value < kMember.size() || pod.substr(value - kMember.size(), kMember.size()) != kMember) {
      return std::nullopt;
    }
    return SpecPlace{.comma = value - kMember.size(), .value = value};
  }
  return std::nullopt;
}

std::optional<SpecMemo::Known> SpecMemo::Find(std::string_view text) {
  if (text.size() < kHeadBytes) return std::nullopt;
  const uint64_t hash = HashOf(text.substr(0, kHeadBytes));
  for (size_t i = 0; i < hashes_.size(); ++i) {
    if (hashes_[i] != hash) continue;
    Entry& entry = entries_[i];
    if (!text.starts_with(entry.head)) continue;
    Known known{.spec = entry.spec, .node_name = {}, .size = entry.head.size()};
    if (!entry.tail.empty()) {
      const std::string_view rest = text.substr(entry.head.size());
      const size_t size = NameSize(rest);
      if (size == 0 || !rest.substr(size).starts_with(entry.tail)) continue;
      known.node_name = rest.substr(0, size);
      known.size += size + entry.tail.size();
    }
    entry.found = true;
    if (Missed& missed = MissedOf(hash); missed.hash == hash) missed.left = 0;
    return known;
  }
  return std::nullopt;
}

void SpecMemo::Learn(std::string_view text, api::Pod& pod) {
  if (text.size() < kHeadBytes) return;
  const uint64_t hash = HashOf(text.substr(0, kHeadBytes));
  Missed& missed = MissedOf(hash);
  if (missed.hash != hash) {
    missed = {.hash = hash};
    return;
  }
  if (missed.left > 0) {
    --missed.left;
    return;
  }
  const std::optional<Cut> cut = CutSpec(text);
  if (!cut || cut->size > kTextBytesMax || cut->node != pod.node_name) return;
  Entry entry{.head = std::string(text.substr(0, cut->size)), .tail = {}, .spec = pod.spec};
  if (!cut->node.empty()) {
    const auto begin = static_cast<size_t>(cut->node.data() - text.data());
    entry.tail = entry.head.substr(begin + cut->node.size());
    entry.head.resize(begin);
  }
  if (entry.head.size() < kHeadBytes) return;
  for (size_t i = 0; i < hashes_.size(); ++i) {
    if (hashes_[i] == hash && entries_[i].spec == pod.spec) entry.spec = entries_[i].spec;
  }
  pod.spec = entry.spec;
  entries_[PlaceFor(hash)] = std::move(entry);
}

size_t SpecMemo::PlaceFor(uint64_t hash) {
  const auto same = static_cast<size_t>(std::ranges::count(hashes_, hash));
  if (same >= kSameHeadMax) {
    size_t skipped = turn_++ % same;
    size_t place = 0;
    while (hashes_[place] != hash || skipped-- > 0) ++place;
    Missed& missed = MissedOf(hash);
    missed.step = entries_[place].found ? 0 : std::clamp(2 * missed.step, 1u, kPassedMax);
    missed.left = missed.step;
    return place;
  }
  if (entries_.size() < kSpecsMax) {
    hashes_.push_back(hash);
    entries_.emplace_back();
    return entries_.size() - 1;
  }
  const size_t place = turn_++ % kSpecsMax;
  hashes_[place] = hash;
  return place;
}

}  // namespace berth::codec
