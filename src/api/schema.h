#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "api/kinds.h"

// The schema table: every field of the kinds that berth speaks and of all that they contain, made
// by tools/schema/make from Kubernetes' OpenAPI documents. Constant data; safe from any thread.
namespace berth::api {

enum class Shape : uint8_t { kOne, kList, kMap, kMapOfLists };  // Maps have text keys.

enum class Value : uint8_t {
  kString,
  kBytes,  // Base64.
  kTime,
  kMicroTime,
  kBool,
  kInt32,
  kInt64,
  kNumber,
  kQuantity,
  kIntOrString,
  kRaw,  // Any JSON.
  kObject,
};

using FieldFlags = uint16_t;
inline constexpr FieldFlags kRequired = 1;
inline constexpr FieldFlags kPointer = 2;  // A scalar whose zero is written and means something.
inline constexpr FieldFlags kAlways = 4;   // Written even when zero or empty.
// Strategic merge merges the list instead of replacing it.
inline constexpr FieldFlags kPatchMerge = 8;
inline constexpr FieldFlags kRetainKeys = 16;
inline constexpr FieldFlags kListMap = 32;  // A list of objects that `list_keys` tell apart.
inline constexpr FieldFlags kListSet = 64;
inline constexpr FieldFlags kAtomic = 128;  // A map or object that is replaced as a whole.

// Strategic merge replaces the object instead of merging it.
inline constexpr FieldFlags kPatchReplace = 256;

using TypeId = uint16_t;
inline constexpr TypeId kNoType = 0xffff;

struct Field {
  std::string_view name;
  Shape shape;
  Value value;  // Of each item, for lists and maps.
  TypeId type;  // Of kObject, else kNoType.
  FieldFlags flags;
  std::string_view merge_key;     // Strategic merge patch's, or empty.
  std::string_view list_keys;     // Of kListMap: names separated by blanks.
  std::string_view default_json;  // As OpenAPI states it, or empty.

  [[nodiscard]] bool has(FieldFlags flag) const { return (flags & flag) != 0; }
};

struct Type {
  std::string_view name;          // "io.k8s.api.core.v1.PodSpec"
  std::span<const Field> fields;  // Sorted by name.

  [[nodiscard]] std::string_view go_name() const;  // "PodSpec"
  [[nodiscard]] std::string go_qualified() const;  // "v1.PodSpec"
};

[[nodiscard]] size_t TypesCount();
// REQUIRES: id < TypesCount().
[[nodiscard]] Type TypeAt(TypeId id);
[[nodiscard]] Type TypeOf(KindId kind);
// The field, or null. `last`, where it is known, is the type's field that the search may begin
// after: documents mostly have their members in the fields' order. Cost: linear in the type's
// fields (tens).
[[nodiscard]] const Field* FindField(const Type& type, std::string_view name,
                                     const Field* last = nullptr);

}  // namespace berth::api
