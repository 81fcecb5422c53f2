#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/custom_schema.h"
#include "api/json.h"
#include "api/schema.h"

// Private to api/: which values of an object of a custom kind an update leaves as they were, and
// which old value a new one goes on from (upstream's CRDValidationRatcheting).
namespace berth::api {

// What a schema says of a value, as far as that is asked here: a part of a user's schema, or of a
// field of the table. A view: what it was made of must live on.
class SchemaNode {
 public:
  explicit SchemaNode(const CustomSchema& schema) : custom_(&schema) {}
  // The whole value of a field.
  SchemaNode(const Schema& schema, const Field& field) : SchemaNode(schema, field, field.shape) {}

  // Of a member of the object, or nothing: the schema has no word of it.
  [[nodiscard]] std::optional<SchemaNode> Member(std::string_view name) const;
  // Of the items of a list whose items may be told from each other; nothing for others.
  [[nodiscard]] std::optional<SchemaNode> KeyedItem() const;
  // What tells such items apart.
  [[nodiscard]] std::vector<std::string_view> ItemKeys() const;

 private:
  SchemaNode(const Schema& schema, const Field& field, Shape shape)
      : schema_(&schema), field_(&field), shape_(shape) {}

  const CustomSchema* custom_ = nullptr;
  // Or a field's value, or a part of that.
  const Schema* schema_ = nullptr;
  const Field* field_ = nullptr;
  Shape shape_ = Shape::kOne;
};

// Items of a list that may be told from each other: those of a map by its keys. Of other lists only
// the whole is what it was, or is not. The lists and the schema must live on.
class OldItems {
 public:
  OldItems(const SchemaNode& list, const Json* old, int64_t& steps);
  // The old item of the same keys, or null. Cost: O(log n) and the keys' texts.
  [[nodiscard]] const Json* Of(const Json& item, int64_t& steps) const;

 private:
  std::vector<std::string_view> keys_;
  std::map<std::string, const Json*> items_;
};

// What a member of the object was, or null: none, or one that the schema has no word of.
[[nodiscard]] const Json* OldMember(const CustomSchema& schema, const Json* old,
                                    std::string_view name);

// Whether the value is what it was. Members that the schema has no word of are nobody's to compare:
// what has one counts as changed. A list of type map may be in another order. Takes of `steps` what
// it looks at; with none left nothing is unchanged.
[[nodiscard]] bool IsUnchanged(const SchemaNode& schema, const Json& value, const Json& old,
                               int64_t& steps);

}  // namespace berth::api
