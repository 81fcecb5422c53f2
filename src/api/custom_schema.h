#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "api/field_error.h"
#include "api/json.h"

namespace re2 {
class RE2;
}

// The structural schema of a CustomResourceDefinition's version (openAPIV3Schema), and what a
// server does by it (docs/design/0017-custom-resources.md; k8s.io/apiextensions-apiserver
// pkg/apiserver/schema). Pure functions, safe on any document. An object's apiVersion, kind and
// metadata are others' business: they are left alone.
namespace berth::api {

// A node of the schema. Immutable once parsed; copies share patterns.
struct CustomSchema {
  enum class Type : uint8_t { kAny, kObject, kArray, kString, kInteger, kNumber, kBoolean };
  enum class ListType : uint8_t { kAsWhole, kSet, kMap };

  Type type = Type::kAny;
  std::string format;
  bool nullable = false;
  bool int_or_string = false;
  bool preserves_unknown = false;
  bool embeds_resource = false;  // Has apiVersion, kind and metadata of its own.
  std::optional<Json> default_value;
  bool has_defaults = false;  // It, or what it contains.

  std::vector<std::string> names;        // Of the properties, sorted.
  std::vector<CustomSchema> properties;  // In the order of names.
  std::vector<CustomSchema> items;       // Of an array: one, or none known.
  std::vector<CustomSchema> additional;  // Of a map: one, or none.
  bool additional_any = false;           // additionalProperties: true.
  std::vector<std::string> required;

  std::optional<double> minimum, maximum, multiple_of;
  bool exclusive_minimum = false, exclusive_maximum = false;
  std::optional<int64_t> length_min, length_max, count_min, count_max;
  std::string pattern;
  std::shared_ptr<const re2::RE2> matcher;
  std::vector<Json> supported;  // The values of an enum, and the texts of those with no parts.
  std::shared_ptr<const std::set<std::string>> supported_scalars;
  ListType list_type = ListType::kAsWhole;
  bool map_as_whole = false;  // Of an object: an apply replaces it.
  std::vector<std::string> list_keys;
  std::vector<CustomSchema> all_of, any_of, one_of, none_of;

  // The property of that name, or null.
  [[nodiscard]] const CustomSchema* Property(std::string_view name) const;
};

// What checks of one request may take in sum: a value by a schema is a step, and so are some bytes
// that a pattern runs over, or some members that are looked for. The largest object that has a few
// patterns for each of its values takes half of it; all of it is 0.3 s, measured.
inline constexpr int64_t kCheckStepsMax = 4'000'000;

// What a definition's schema comes to.
struct ParsedSchema {
  CustomSchema root;
  std::vector<std::string> unenforced;  // Where rules stand that nobody runs here.
};

// Reads an openAPIV3Schema that stands at `path` of the definition. `errors` gets what is not
// structural or can't be read, in upstream's words; the schema is of no use then. `steps` is what
// the checks of its defaults may take, and what they leave.
[[nodiscard]] ParsedSchema ParseCustomSchema(const Json& schema, std::string_view path,
                                             FieldErrors& errors, int64_t& steps);

// Drops unknown members and puts the others in the order of their names; numbers that are whole
// become integers where those are meant. Returns the strict decoding problems.
[[nodiscard]] std::vector<std::string> PruneCustom(const CustomSchema& schema,
                                                   JsonObject& document);
// Sets what is missing and has a default; null counts as missing where it isn't allowed. Once the
// defaults make the document longer than limits::kObjectBytesMax no more are set.
void ApplyCustomDefaults(const CustomSchema& schema, JsonObject& document);
// Types, limits, patterns, formats, combined schemas, what is required; then equal items of sets
// and maps. REQUIRES: pruned and with its defaults. It ends with as many errors as are listed, and
// with one that says so when it has no steps left; `steps` gets what it leaves.
[[nodiscard]] FieldErrors CheckCustomSchema(const CustomSchema& schema, const JsonObject& document,
                                            int64_t& steps);
[[nodiscard]] FieldErrors CheckCustomSchema(const CustomSchema& schema, const JsonObject& document);
// The same of a document that replaces `old`, which was stored when the schema may have been
// another: a value that is what it was is let through, whatever is wrong with it. Items of a list
// are known by their keys where it is a map, and not at all elsewhere: such a list is what it was,
// or it isn't. (CRDValidationRatcheting; apiextensions-apiserver pkg/apiserver/validation.)
[[nodiscard]] FieldErrors CheckCustomUpdate(const CustomSchema& schema, const JsonObject& document,
                                            const Json& old);
// The same of a change that is of the status alone.
[[nodiscard]] FieldErrors CheckCustomStatus(const CustomSchema& schema, const JsonObject& document,
                                            const Json& old);
// How a value of an enum stands in supported_scalars.
[[nodiscard]] std::string ScalarText(const Json& value);

}  // namespace berth::api
