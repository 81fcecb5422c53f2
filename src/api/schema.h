#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>

#include "api/kinds.h"

// The schema table: every field of the kinds that berth speaks and of all that they contain, made
// by tools/schema/make from Kubernetes' OpenAPI documents and the definitions of custom kinds.
// Constant data; safe from any thread.
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
inline constexpr FieldFlags kMandatory = 1;
inline constexpr FieldFlags kPointer = 2;  // A scalar whose zero is written and means something.
inline constexpr FieldFlags kAlways = 4;   // Written even when zero or empty.
// Strategic merge merges the list instead of replacing it.
inline constexpr FieldFlags kPatchMerge = 8;
inline constexpr FieldFlags kRetainKeys = 16;
inline constexpr FieldFlags kListMap = 32;  // A list of objects that `list_keys` tell apart.
inline constexpr FieldFlags kListSet = 64;
inline constexpr FieldFlags kAtomic = 128;    // A map or object that is replaced as a whole.
inline constexpr FieldFlags kGranular = 512;  // An object that is not, though its type is atomic.
inline constexpr FieldFlags kNull = 1024;     // Written as null where there is nothing.

// Strategic merge replaces the object instead of merging it.
inline constexpr FieldFlags kPatchReplace = 256;

using TypeId = uint16_t;
inline constexpr TypeId kNoType = 0xffff;

inline constexpr int64_t kNoMinimum = std::numeric_limits<int64_t>::min();
inline constexpr int64_t kNoMaximum = std::numeric_limits<int64_t>::max();

// What a definition wants of a field's values beside their type. Those of a list or map hold for
// each item, but for the count.
struct Constraints {
  std::string_view pattern;    // A regular expression of Go, or empty.
  std::string_view supported;  // Of an enum: words, of which one may be empty, with blanks between.
  int64_t minimum, maximum;
  int64_t length_min, length_max;  // In characters.
  int64_t count_min, count_max;    // Of items or members.
  // What its rules (x-kubernetes-validations) answer when they fail, separated by line breaks; of
  // the value, and of each item.
  std::string_view validations;
  std::string_view item_validations;
};

struct Field {
  std::string_view name;
  Shape shape;
  Value value;  // Of each item, for lists and maps.
  TypeId type;  // Of kObject, else kNoType.
  FieldFlags flags;
  std::string_view merge_key;     // Strategic merge patch's, or empty.
  std::string_view list_keys;     // Of kListMap: names separated by blanks.
  std::string_view default_json;  // As OpenAPI states it, or empty.
  uint16_t constraints = 0;       // A row of the schema's; the first says nothing.

  [[nodiscard]] bool has(FieldFlags flag) const { return (flags & flag) != 0; }
};

struct Type {
  std::string_view name;          // "io.k8s.api.core.v1.PodSpec"
  std::span<const Field> fields;  // Sorted by name.
  std::string_view validations;   // Of a root, as those of Constraints.
  bool atomic = false;            // Its objects are replaced as a whole.

  [[nodiscard]] std::string_view go_name() const;  // "PodSpec"
  [[nodiscard]] std::string go_qualified() const;  // "v1.PodSpec"
};

// What Go calls a field: the types of it and of its items, and the embedded struct that it stands
// in, which Go's decoder has in its paths. Empty: what follows from the field, or none.
struct GoNames {
  std::string_view type;
  std::string_view item_type;
  std::string_view embedded;
};

struct TypeRow {
  std::string_view name;
  uint16_t first;
  uint16_t count;
  std::string_view validations = {};
  bool atomic = false;
};

// Types that refer to each other by index. A view of rows that outlive it.
class Schema {
 public:
  constexpr Schema(std::span<const TypeRow> types, std::span<const Field> fields,
                   std::span<const Constraints> constraints)
      : types_(types), fields_(fields), constraints_(constraints) {}

  [[nodiscard]] size_t size() const { return types_.size(); }
  // REQUIRES: id < size().
  [[nodiscard]] Type at(TypeId id) const;
  // REQUIRES: a field of this schema's.
  [[nodiscard]] const Constraints& constraints(const Field& field) const;

 private:
  std::span<const TypeRow> types_;
  std::span<const Field> fields_;
  std::span<const Constraints> constraints_;
};

// REQUIRES: a field of the built-in schema. Cost: logarithmic in the fields that have any.
[[nodiscard]] GoNames GoNamesOf(const Field& field);

// Of which words the values of such a field are, as documents tell it: with blanks between, the
// first may be empty. What refuses others is not this but validation. Empty: of any. REQUIRES and
// cost: as above.
[[nodiscard]] std::string_view WordsOf(const Field& field);

// The compiled one. Its first types are the kinds', in order of KindId.
[[nodiscard]] const Schema& BuiltinSchema();

[[nodiscard]] size_t TypesCount();
// REQUIRES: id < TypesCount().
[[nodiscard]] Type TypeAt(TypeId id);
[[nodiscard]] Type TypeOf(KindId kind);
// The field, or null. `last`, where it is known, is the type's field that the search may begin
// after: documents mostly have their members in the fields' order. Cost: linear in the type's
// fields (tens).
[[nodiscard]] const Field* FindField(const Type& type, std::string_view name,
                                     const Field* last = nullptr);

// A column of a table, as `kubectl get` shows it.
struct Column {
  std::string_view name;
  std::string_view type;    // "string", "integer", "boolean", "date".
  std::string_view format;  // "name" for the first one, else empty.
  int32_t priority = 0;     // 0: always shown; 1: with -o wide.
};

// The columns of a custom kind, and for each the path of its cell ("Name" is one of them):
// ".spec.queue", ".status.conditions[?(@.type=='Finished')].status".
struct ColumnSource {
  uint16_t kind;
  std::string_view path;
};
struct CustomColumns {
  std::span<const Column> columns;
  std::span<const ColumnSource> sources;
};
[[nodiscard]] CustomColumns CustomColumnsOf(KindId kind);

}  // namespace berth::api
