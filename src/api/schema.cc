#include "api/schema.h"

#include <algorithm>
#include <array>

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

const Field* FindField(const Type& type, std::string_view name) {
  if (name.empty()) return nullptr;
  // Types have few fields, whose names differ in length or first character: quicker than halving.
  const auto at = std::ranges::find_if(type.fields, [name](const Field& field) {
    return field.name.size() == name.size() && field.name[0] == name[0] && field.name == name;
  });
  return at != type.fields.end() ? &*at : nullptr;
}

}  // namespace berth::api
