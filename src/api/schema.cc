#include "api/schema.h"

#include <algorithm>
#include <array>

#include "api/text.h"
#include "base/check.h"

namespace berth::api {
namespace {

using FieldRow = Field;

struct GoRow {
  uint16_t field;  // Its row.
  std::string_view type;
  std::string_view item_type;
  std::string_view embedded;
};

struct WordsRow {
  uint16_t field;  // Its row.
  std::string_view words;
};

#include "api/schema_table.inc"

static_assert(kTypes.size() < kNoType);
static_assert(kTypes.size() >= kKindsCount, "the first types are the kinds', in order of KindId");
static_assert(kColumns.size() == kColumnSources.size());

constexpr Schema kBuiltin(kTypes, kFields, kConstraints);

}  // namespace

std::string_view Type::go_name() const { return name.substr(name.rfind('.') + 1); }

std::string Type::go_qualified() const {
  const size_t dot = name.rfind('.');
  const size_t before = name.rfind('.', dot - 1);
  return std::string(name.substr(before + 1));
}

Type Schema::at(TypeId id) const {
  CHECK_LT(id, types_.size());
  const TypeRow& row = types_[id];
  return {row.name, fields_.subspan(row.first, row.count), row.validations, row.atomic};
}

const Constraints& Schema::constraints(const Field& field) const {
  CHECK_LT(field.constraints, constraints_.size());
  return constraints_[field.constraints];
}

GoNames GoNamesOf(const Field& field) {
  const auto row = &field - kFields.data();
  const auto* const at = std::ranges::lower_bound(kGoRows, row, {}, &GoRow::field);
  if (at == kGoRows.end() || at->field != row) return {};
  return {.type = at->type, .item_type = at->item_type, .embedded = at->embedded};
}

std::string_view WordsOf(const Field& field) {
  const auto row = &field - kFields.data();
  const auto* const at = std::ranges::lower_bound(kWordsRows, row, {}, &WordsRow::field);
  return at == kWordsRows.end() || at->field != row ? std::string_view() : at->words;
}

const Schema& BuiltinSchema() { return kBuiltin; }

size_t TypesCount() { return kBuiltin.size(); }

Type TypeAt(TypeId id) { return kBuiltin.at(id); }

Type TypeOf(KindId kind) { return TypeAt(static_cast<TypeId>(kind)); }

const Field* FindField(const Type& type, std::string_view name, const Field* last) {
  if (name.empty()) return nullptr;
  const Field* const begin = type.fields.data();
  const Field* const end = begin + type.fields.size();
  const Field* const first = last == nullptr ? begin : last + 1;
  const auto is_it = [name](const Field& field) { return SameText(field.name, name); };
  // Types have few fields, whose names mostly differ in length: quicker than halving.
  const Field* at = std::find_if(first, end, is_it);
  if (at != end) return at;
  at = std::find_if(begin, first, is_it);
  return at != first ? at : nullptr;
}

CustomColumns CustomColumnsOf(KindId kind) {
  const auto range = std::ranges::equal_range(kColumnSources, static_cast<uint16_t>(kind), {},
                                              &ColumnSource::kind);
  const auto first = static_cast<size_t>(range.begin() - kColumnSources.begin());
  return {std::span(kColumns).subspan(first, range.size()),
          std::span(kColumnSources).subspan(first, range.size())};
}

}  // namespace berth::api
