#include "model/selectors.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "base/check.h"

namespace berth::model {
namespace {

// A spec as words: [all count, requirements..., has_terms, term count, (never, requirement count,
// requirements...)...] and a requirement as [op | field << 8, key, value count, values...].
void EncodeRequirements(std::vector<Requirement> requirements, std::vector<uint32_t>& words) {
  for (Requirement& r : requirements) {
    std::ranges::sort(r.values);
    const auto repeated = std::ranges::unique(r.values);
    r.values.erase(repeated.begin(), repeated.end());
    if (r.field) r.key = NameId{};
  }
  std::ranges::sort(requirements);
  words.push_back(static_cast<uint32_t>(requirements.size()));
  for (const Requirement& r : requirements) {
    words.push_back(static_cast<uint32_t>(r.op) | (r.field ? 0x100u : 0u));
    words.push_back(r.key.value);
    words.push_back(static_cast<uint32_t>(r.values.size()));
    for (const NameId value : r.values) words.push_back(value.value);
  }
}

std::optional<int64_t> ParseInteger(std::string_view text) {
  int64_t value = 0;
  // strconv.ParseInt takes a leading plus sign.
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.remove_prefix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

struct NodeView {
  std::span<const Label> labels;
  NameId name;
  const StringTable<NameId>& names;

  [[nodiscard]] NameId ValueOf(NameId key) const {
    const auto found = std::ranges::lower_bound(labels, key, {}, &Label::key);
    return found != labels.end() && found->key == key ? found->value : NameId{};
  }
};

class Reader {
 public:
  explicit Reader(std::span<const uint32_t> words) : words_(words) {}
  uint32_t Next() { return words_[at_++]; }

  // Reads one requirement and says whether the node meets it.
  bool Requirement(const NodeView& node) {
    const uint32_t head = Next();
    const auto op = static_cast<SelectorOp>(head & 0xff);
    const NameId key{Next()};
    const uint32_t values_count = Next();
    const std::span<const uint32_t> values = words_.subspan(at_, values_count);
    at_ += values_count;
    const NameId value = (head & 0x100) != 0 ? node.name : node.ValueOf(key);
    const bool listed = value.valid() && std::ranges::binary_search(values, value.value);
    switch (op) {
      case SelectorOp::kIn:
        return listed;
      case SelectorOp::kNotIn:
        return !listed;
      case SelectorOp::kExists:
        return value.valid();
      case SelectorOp::kDoesNotExist:
        return !value.valid();
      case SelectorOp::kGt:
      case SelectorOp::kLt:
        break;
    }
    if (!value.valid() || values_count != 1) return false;
    const std::optional<int64_t> left = ParseInteger(node.names.View(value));
    const std::optional<int64_t> right = ParseInteger(node.names.View(NameId{values[0]}));
    if (!left.has_value() || !right.has_value()) return false;
    return op == SelectorOp::kGt ? *left > *right : *left < *right;
  }

  // Reads a whole list, and says how many of it are about labels that the node has.
  struct OnKeys {
    bool met = true;  // All of those.
    uint32_t count = 0;
  };
  OnKeys RequirementsOnKeys(const NodeView& node, uint32_t count) {
    OnKeys out;
    for (uint32_t i = 0; i < count; ++i) {
      const bool of_field = (words_[at_] & 0x100) != 0;
      const bool counts = !of_field && node.ValueOf(NameId{words_[at_ + 1]}).valid();
      const bool met = Requirement(node);
      if (!counts) continue;
      ++out.count;
      out.met = out.met && met;
    }
    return out;
  }

  // Reads a whole list, whatever the outcome.
  bool Requirements(const NodeView& node, uint32_t count) {
    bool all = true;
    for (uint32_t i = 0; i < count; ++i) all = Requirement(node) && all;
    return all;
  }

 private:
  std::span<const uint32_t> words_;
  size_t at_ = 0;
};

}  // namespace

SelectorId SelectorTable::Intern(const SelectorSpec& spec) {
  std::vector<uint32_t> words;
  EncodeRequirements(spec.all, words);
  words.push_back(spec.has_terms ? 1 : 0);
  words.push_back(static_cast<uint32_t>(spec.terms.size()));
  for (const SelectorTerm& term : spec.terms) {
    words.push_back(term.never ? 1 : 0);
    EncodeRequirements(term.requirements, words);
  }
  const SelectorId id = table_.Intern(words);
  if (id.value >= row_of_.size()) row_of_.resize(id.value + 1, kNotMaterialised);
  return id;
}

SelectorSpec SelectorTable::At(SelectorId id) const {
  const std::span<const uint32_t> words = table_.View(id);
  size_t at = 0;
  const auto requirements = [&] {
    std::vector<Requirement> list(words[at++]);
    for (Requirement& r : list) {
      r.op = static_cast<SelectorOp>(words[at] & 0xff);
      r.field = (words[at++] & 0x100) != 0;
      r.key = NameId{words[at++]};
      r.values.resize(words[at++]);
      for (NameId& value : r.values) value = NameId{words[at++]};
    }
    return list;
  };
  SelectorSpec spec;
  spec.all = requirements();
  spec.has_terms = words[at++] != 0;
  spec.terms.resize(words[at++]);
  for (SelectorTerm& term : spec.terms) {
    term.never = words[at++] != 0;
    term.requirements = requirements();
  }
  return spec;
}

bool SelectorTable::Matches(SelectorId id, std::span<const Label> labels, NameId node_name,
                            const StringTable<NameId>& names) const {
  const NodeView node{.labels = labels, .name = node_name, .names = names};
  Reader reader(table_.View(id));
  const bool all = reader.Requirements(node, reader.Next());
  const bool has_terms = reader.Next() != 0;
  const uint32_t terms_count = reader.Next();
  if (!all) return false;
  if (!has_terms) return true;
  for (uint32_t i = 0; i < terms_count; ++i) {
    const bool never = reader.Next() != 0;
    const uint32_t count = reader.Next();
    if (reader.Requirements(node, count) && !never && count > 0) return true;
  }
  return false;
}

bool SelectorTable::MatchesKeysOf(SelectorId id, std::span<const Label> labels,
                                  const StringTable<NameId>& names) const {
  const NodeView node{.labels = labels, .name = {}, .names = names};
  Reader reader(table_.View(id));
  if (!reader.RequirementsOnKeys(node, reader.Next()).met) return false;
  reader.Next();  // Without terms, whether there could be some makes no difference.
  const uint32_t terms_count = reader.Next();
  bool matches = terms_count == 0;
  for (uint32_t i = 0; i < terms_count; ++i) {
    const bool never = reader.Next() != 0;
    const Reader::OnKeys term = reader.RequirementsOnKeys(node, reader.Next());
    matches = matches || term.count == 0 || (term.met && !never);
  }
  return matches;
}

std::span<const uint64_t> SelectorTable::Bits(SelectorId id) const {
  if (!materialised(id)) return {};
  return std::span<const uint64_t>(bits_).subspan(size_t{row_of_[id.value]} * stride_, stride_);
}

void SelectorTable::Materialise(SelectorId id, uint32_t nodes_count) {
  if (materialised(id)) return;
  Resize(nodes_count);
  row_of_[id.value] = static_cast<uint32_t>(materialised_.size());
  materialised_.push_back(id);
  bits_.resize(materialised_.size() * stride_);
}

void SelectorTable::Resize(uint32_t nodes_count) {
  const uint32_t words = (nodes_count + 63) / 64;
  if (words <= stride_ && stride_ > 0) return;
  const uint32_t stride = std::max({words, stride_ * 2, 1u});
  std::vector<uint64_t> wider(materialised_.size() * stride);
  for (size_t row = 0; row < materialised_.size(); ++row) {
    std::copy_n(bits_.begin() + static_cast<std::ptrdiff_t>(row * stride_), stride_,
                wider.begin() + static_cast<std::ptrdiff_t>(row * stride));
  }
  bits_ = std::move(wider);
  stride_ = stride;
}

void SelectorTable::Set(SelectorId id, NodeId node, bool value) {
  CHECK(materialised(id));
  uint64_t& word = bits_[size_t{row_of_[id.value]} * stride_ + node.value / 64];
  const uint64_t bit = uint64_t{1} << (node.value % 64);
  word = value ? (word | bit) : (word & ~bit);
}

void SelectorTable::AddTo(Hasher& hasher) const {
  table_.AddTo(hasher);
  for (const SelectorId id : materialised_) hasher.Add(id.value);
  for (const uint64_t word : bits_) hasher.Add(word);
}

}  // namespace berth::model
