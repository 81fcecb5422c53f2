#include "api/schema.h"

#include <algorithm>
#include <array>

#include "api/text.h"
#include "base/check.h"

namespace berth::api {
namespace {

using FieldRow = Field;

struct TypeRow {
  std::string_view name;
  uint16_t first;
  uint16_t count;
};

#include "api/schema_table.inc"

static_assert(kTypes.size() < kNoType);
static_assert(kTypes.size() >= kKindsCount, "the first types are the kinds', in order of KindId");

}  // namespace

std::string_view Type::go_name() const { return name.substr(name.rfind('.') + 1); }

std::string Type::go_qualified() const {
  const size_t dot = name.rfind('.');
  const size_t before = name.rfind('.', dot - 1);
  return std::string(name.substr(before + 1));
}

size_t TypesCount() { return kTypes.size(); }

Type TypeAt(TypeId id) {
  CHECK_LT(id, kTypes.size());
  const TypeRow& row = kTypes[id];
  return {row.name, std::span<const Field>(kFields).subspan(row.first, row.count)};
}

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

}  // namespace berth::api
