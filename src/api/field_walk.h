#pragma once

#include <optional>
#include <string>
#include <vector>

#include "api/custom_schema.h"
#include "api/field_set.h"
#include "api/json.h"
#include "api/schema.h"

// Documents and sets of their fields, by a schema (sigs.k8s.io/structured-merge-diff's typed
// values). What is a list map, a set, a map or a whole follows from the schema; what it does not
// describe is deduced: objects by member, lists as a whole. Pure functions; safe on any document.
// Cost: linear in the documents, with a logarithm in the items of a list.
namespace berth::api {

// A document's type. A view of the schema.
struct TypedBy {
  const Schema& schema;
  TypeId type;  // kNoType: as `custom` says, or else all of it is deduced.
  // Whether Go decodes it into structs, which always have some members (kAlways), empty or not.
  bool decoded = true;
  const CustomSchema* custom = nullptr;  // Of a kind that users define.
};

// What a document says: each scalar, each whole, each item and member, each that is empty.
[[nodiscard]] FieldSet FieldSetOf(const TypedBy& typed, const Json& document);

// No path is in two of them.
struct FieldChanges {
  FieldSet removed;
  FieldSet modified;
  FieldSet added;

  [[nodiscard]] bool none() const { return removed.empty() && modified.empty() && added.empty(); }
};
// `before` is null for nothing, as before a creation.
[[nodiscard]] FieldChanges CompareFields(const TypedBy& typed, const Json& before,
                                         const Json& after);

// `live` with what `applied` says: maps, structs and items of list maps are merged, everything else
// takes the applied value. Items stand in the applied order, those that only `live` has between
// them. REQUIRES: CheckApplied(applied) is empty.
[[nodiscard]] Json MergeApplied(const TypedBy& typed, const Json& live, const Json& applied);

// The document without the fields of the set. What is left of nothing is null.
[[nodiscard]] Json WithoutFields(const TypedBy& typed, const Json& document, const FieldSet& set);

// The set and each field of a struct on the way to its members.
[[nodiscard]] FieldSet WithNamedParents(const TypedBy& typed, const FieldSet& set);

// What keeps a document from being applied: fields that the schema doesn't have, values of another
// type, items without or with equal keys. In upstream's words, with their paths
// (`.spec.foo: field not declared in schema`).
[[nodiscard]] std::vector<std::string> CheckApplied(const TypedBy& typed, const Json& applied);
// Whether a whole document can be looked at by the schema: the same, but for equal items.
[[nodiscard]] bool IsTyped(const TypedBy& typed, const Json& document);

}  // namespace berth::api
