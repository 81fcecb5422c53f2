#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "api/custom_schema.h"
#include "api/json.h"

// Private to api/: which values of an object of a user's kind an update leaves as they were, and
// which old value a new one goes on from (upstream's CRDValidationRatcheting).
namespace berth::api {

// Items of a list that may be told from each other: those of a map by its keys. Of other lists only
// the whole is what it was, or is not. The lists and the schema must live on.
class OldItems {
 public:
  OldItems(const CustomSchema& schema, const Json* old, int64_t& steps);
  // The old item of the same keys, or null. Cost: O(log n) and the keys' texts.
  [[nodiscard]] const Json* Of(const Json& item, int64_t& steps) const;

 private:
  const CustomSchema& schema_;
  std::map<std::string, const Json*> items_;
};

// What a member of the object was, or null: none, or one that the schema has no word of.
[[nodiscard]] const Json* OldMember(const CustomSchema& schema, const Json* old,
                                    std::string_view name);

// Whether the value is what it was. Members that the schema has no word of are nobody's to compare:
// what has one counts as changed. A list of type map may be in another order. Takes of `steps` what
// it looks at; with none left nothing is unchanged.
[[nodiscard]] bool IsUnchanged(const CustomSchema& schema, const Json& value, const Json& old,
                               int64_t& steps);

}  // namespace berth::api
