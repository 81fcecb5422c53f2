#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "api/json.h"

// Sets of fields of a document, as metadata.managedFields tell them (FieldsV1 of
// sigs.k8s.io/structured-merge-diff): which fields, items and members somebody manages. Values;
// pure functions; safe from any thread.
namespace berth::api {

// A step of a path, as FieldsV1 writes it: `f:name` a field or member, `k:{"name":"a"}` the item of
// a list that these keys tell, `v:"x"` the item of a set with this value, `i:0` an index. Keys and
// values are compact JSON, keys in order of their names.
using PathElement = std::string;

// Upstream's order: fields, keys, values, indexes; numbers before texts, by value. Cost: that of
// comparing the texts; values with fractions or escapes are parsed.
[[nodiscard]] int ComparePathElements(std::string_view a, std::string_view b);
// As messages say it: `.name`, `[name="a"]`, `[="x"]`, `[0]`.
[[nodiscard]] std::string PathElementText(std::string_view element);

struct FieldSetNode {
  PathElement element;
  bool member = false;  // Whether the path that ends here is in the set itself.
  std::vector<FieldSetNode> children;
  bool operator==(const FieldSetNode&) const = default;
};

// A tree of elements, siblings in order. Each node is a member or leads to one.
struct FieldSet {
  std::vector<FieldSetNode> nodes;

  [[nodiscard]] bool empty() const { return nodes.empty(); }
  bool operator==(const FieldSet&) const = default;
};

// Adds a path; its parents are not added.
void InsertPath(FieldSet& set, const std::vector<PathElement>& path);
[[nodiscard]] bool HasPath(const FieldSet& set, const std::vector<PathElement>& path);
// The node of an element among siblings, or null. Cost: logarithmic.
[[nodiscard]] const FieldSetNode* FindNode(const std::vector<FieldSetNode>& siblings,
                                           std::string_view element);
// Adds a node to siblings that are sorted once all are there; one without members leaves things as
// they are.
void AddNode(std::vector<FieldSetNode>& siblings, FieldSetNode node);
// Puts siblings in order and joins those of one element. Cost: O(n log n), n where they are sorted.
void SortNodes(std::vector<FieldSetNode>& siblings);

// Cost of each: linear in the nodes of both.
[[nodiscard]] FieldSet Union(const FieldSet& a, const FieldSet& b);
[[nodiscard]] FieldSet Intersection(const FieldSet& a, const FieldSet& b);
// The paths of `a` that are not in `b`. Taking a parent away leaves its children.
[[nodiscard]] FieldSet Difference(const FieldSet& a, const FieldSet& b);
// Takes a field (a dotted path of names) away, and leaves what is below it.
void RemovePath(FieldSet& set, std::string_view path);
// Takes a field (a dotted path of names, `metadata.labels`) away with everything below it.
void RemoveTree(FieldSet& set, std::string_view path);

// Each path, those of one level before those below it, as messages say it (`.spec.replicas`).
void ForEachPath(const FieldSet& set,
                 const std::function<void(const std::vector<PathElement>&)>& visit);
[[nodiscard]] std::string PathText(const std::vector<PathElement>& path);

// FieldsV1: `{"f:spec":{".":{},"f:replicas":{}}}`.
void AppendFieldsV1(const FieldSet& set, std::string& out);
// Elements of a kind that is not known are left out, as upstream does. False: no FieldsV1.
[[nodiscard]] bool FieldSetFrom(const Json& fields_v1, FieldSet& set);

// The element of an item with these keys or this value; scalars only.
void AppendScalar(const Json& value, std::string& out);
// A text as a JSON string.
void AppendQuoted(std::string_view text, std::string& out);

}  // namespace berth::api
