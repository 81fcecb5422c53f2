#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "api/types.h"
#include "base/result.h"

// Label selectors and field selectors as they stand in URLs and specs. Values; matching allocates
// nothing.
namespace berth::api {

enum class SelectorOperator : uint8_t {
  kIn,
  kNotIn,
  kEquals,
  kDoubleEquals,
  kNotEquals,
  kExists,
  kDoesNotExist,
  kGreaterThan,
  kLessThan,
};

struct LabelRequirement {
  std::string key;
  SelectorOperator op = SelectorOperator::kExists;
  std::vector<std::string> values;  // Sorted, unique.

  [[nodiscard]] bool Matches(const StringMap& labels) const;
  bool operator==(const LabelRequirement&) const = default;
};

// All requirements must hold; none of them means everything matches. Sorted by key.
struct LabelQuery {
  std::vector<LabelRequirement> requirements;
  // Matches nothing, as a nil selector of a spec does.
  bool nothing = false;

  [[nodiscard]] bool Matches(const StringMap& labels) const;
  [[nodiscard]] bool empty() const { return !nothing && requirements.empty(); }
  bool operator==(const LabelQuery&) const = default;
};

// `a=b,c!=d,e in (f,g),h notin (i),j,!k,l>1,m<2`, with upstream's grammar and error texts.
[[nodiscard]] Result<LabelQuery> ParseLabelQuery(std::string_view text);
[[nodiscard]] std::string ToString(const LabelQuery& query);

// The query of a spec's selector: an empty one matches everything. Errors: an unknown operator, or
// values that don't fit it.
[[nodiscard]] Result<LabelQuery> QueryOf(const LabelSelector& selector);
[[nodiscard]] LabelQuery QueryOf(const StringMap& labels);

struct FieldRequirement {
  std::string field;
  std::string value;
  bool equals = true;
  bool operator==(const FieldRequirement&) const = default;
};

// `metadata.name=a,status.phase!=Running`: all must hold. Sorted by text, as upstream has them.
// Which fields a kind supports is api/kinds.h's business.
struct FieldQuery {
  std::vector<FieldRequirement> requirements;

  // `fields` holds every selectable field; one that it lacks counts as empty.
  [[nodiscard]] bool Matches(const StringMap& fields) const;
  [[nodiscard]] bool empty() const { return requirements.empty(); }
  bool operator==(const FieldQuery&) const = default;
};

[[nodiscard]] Result<FieldQuery> ParseFieldQuery(std::string_view text);
[[nodiscard]] std::string ToString(const FieldQuery& query);

}  // namespace berth::api
