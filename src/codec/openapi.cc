#include "codec/openapi.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "api/custom_definition.h"
#include "api/json.h"
#include "api/kinds.h"
#include "api/object.h"
#include "api/schema.h"
#include "base/check.h"
#include "base/hash.h"
#include "codec/json.h"
#include "codec/openapi_protobuf.h"

namespace berth::codec {
namespace {

using api::Field;
using api::Json;
using api::JsonArray;
using api::JsonObject;
using api::Kind;
using api::KindId;
using api::Shape;
using api::Type;
using api::TypeId;
using api::Value;

constexpr std::string_view kTitle = "Kubernetes";
constexpr std::string_view kPreserve = "x-kubernetes-preserve-unknown-fields";
constexpr std::string_view kNullable = "nullable";
constexpr std::string_view kSwagger = "2.0";
constexpr std::string_view kVersion = "v1.36.3";
constexpr std::string_view kMeta = "io.k8s.apimachinery.pkg.apis.meta.v1.";

// The struct-like values that have schemas of their own, or "".
std::string ValueSchemaName(Value value) {
  switch (value) {
    case Value::kTime:
      return std::string(kMeta) + "Time";
    case Value::kMicroTime:
      return std::string(kMeta) + "MicroTime";
    case Value::kQuantity:
      return "io.k8s.apimachinery.pkg.api.resource.Quantity";
    case Value::kIntOrString:
      return "io.k8s.apimachinery.pkg.util.intstr.IntOrString";
    default:
      return "";
  }
}

// What upstream calls the values that the table keeps as they are: of those that are whole objects,
// and of what schemas in definitions hold.
std::string RawSchemaName(const Field& field) {
  constexpr std::string_view kExtensions =
      "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.";
  if (field.has(api::kAtomic)) return "io.k8s.apimachinery.pkg.runtime.RawExtension";
  if (field.name == "fieldsV1") return std::string(kMeta) + "FieldsV1";
  if (field.name.starts_with("additional"))
    return fmt::format("{}JSONSchemaPropsOrBool", kExtensions);
  if (field.name == "items") return fmt::format("{}JSONSchemaPropsOrArray", kExtensions);
  if (field.name == "dependencies")
    return fmt::format("{}JSONSchemaPropsOrStringArray", kExtensions);
  return fmt::format("{}JSON", kExtensions);
}

JsonObject RawSchema(const Field& field) {
  if (field.has(api::kAtomic) || field.name == "fieldsV1") return {{"type", "object"}};
  return {{"description", "Any value of JSON that may stand there."}};
}

JsonObject ValueSchema(Value value) {
  switch (value) {
    case Value::kString:
      return {{"type", "string"}};
    case Value::kBytes:
      return {{"type", "string"}, {"format", "byte"}};
    case Value::kTime:
    case Value::kMicroTime:
      return {{"type", "string"}, {"format", "date-time"}};
    case Value::kBool:
      return {{"type", "boolean"}};
    case Value::kInt32:
      return {{"type", "integer"}, {"format", "int32"}};
    case Value::kInt64:
      return {{"type", "integer"}, {"format", "int64"}};
    case Value::kNumber:
      return {{"type", "number"}, {"format", "double"}};
    case Value::kQuantity:
      return {{"oneOf",
               JsonArray({JsonObject({{"type", "string"}}), JsonObject({{"type", "number"}})})}};
    case Value::kIntOrString:
      return {{"format", "int-or-string"},
              {"oneOf",
               JsonArray({JsonObject({{"type", "integer"}}), JsonObject({{"type", "string"}})})}};
    case Value::kRaw:
    case Value::kObject:
      return {{"type", "object"}};
  }
  return {};
}

JsonObject Reference(std::string_view name) {
  return {{"$ref", fmt::format("#/components/schemas/{}", name)}};
}

// References stand in allOf where something stands beside them.
JsonObject InAllOf(JsonObject schema) {
  const Json* reference = schema.if_contains("$ref");
  if (reference == nullptr) return schema;
  schema["allOf"] = JsonArray({JsonObject({{"$ref", *reference}})});
  api::RemoveMember(schema, "$ref");
  return schema;
}

// What a value of Go is before anything is written to it; null: one that has nothing for that.
Json ZeroOf(Value value) {
  switch (value) {
    case Value::kString:
      return "";
    case Value::kBool:
      return false;
    case Value::kInt32:
    case Value::kInt64:
    case Value::kNumber:
      return 0;
    case Value::kObject:
      return JsonObject();
    default:
      return nullptr;
  }
}

JsonArray WordsIn(std::string_view words) {
  JsonArray each;
  for (size_t at = 0; at <= words.size();) {
    const size_t end = std::min(words.find(' ', at), words.size());
    each.emplace_back(words.substr(at, end - at));
    at = end + 1;
  }
  return each;
}

void AddLimit(JsonObject& schema, std::string_view word, int64_t limit) {
  if (limit != api::kNoMinimum && limit != api::kNoMaximum) schema[word] = limit;
}

// One value of a field: a reference or a scalar's schema, with what holds of each value.
JsonObject ValueSchemaOf(const Field& field) {
  std::string name = ValueSchemaName(field.value);
  if (field.value == Value::kObject) name = api::TypeAt(field.type).name;
  if (field.value == Value::kRaw) name = RawSchemaName(field);
  JsonObject schema = name.empty() ? ValueSchema(field.value) : Reference(name);
  const api::Constraints& limits = api::BuiltinSchema().constraints(field);
  if (!limits.pattern.empty()) schema["pattern"] = limits.pattern;
  AddLimit(schema, "minimum", limits.minimum);
  AddLimit(schema, "maximum", limits.maximum);
  AddLimit(schema, "minLength", limits.length_min);
  AddLimit(schema, "maxLength", limits.length_max);
  const std::string_view words = limits.supported.empty() ? api::WordsOf(field) : limits.supported;
  if (!words.empty()) schema["enum"] = WordsIn(words);
  return schema;
}

// One value of a list or map. Those of Go have their zero for a default.
JsonObject ItemSchema(const Field& field, bool of_go) {
  JsonObject schema = ValueSchemaOf(field);
  if (Json zero = ZeroOf(field.value); of_go && !zero.is_null())
    schema["default"] = std::move(zero);
  return schema.size() == 1 ? schema : InAllOf(std::move(schema));
}

// How lists and maps are merged.
void AddMerging(const Field& field, JsonObject& schema) {
  if (!field.list_keys.empty()) schema["x-kubernetes-list-map-keys"] = WordsIn(field.list_keys);
  if (field.shape == Shape::kList) {
    schema["x-kubernetes-list-type"] =
        field.has(api::kListMap) ? "map" : (field.has(api::kListSet) ? "set" : "atomic");
  }
  if (!field.merge_key.empty()) schema["x-kubernetes-patch-merge-key"] = field.merge_key;
  if (field.has(api::kPatchMerge)) {
    schema["x-kubernetes-patch-strategy"] =
        field.has(api::kRetainKeys) ? "merge,retainKeys" : "merge";
  } else if (field.has(api::kRetainKeys)) {
    schema["x-kubernetes-patch-strategy"] = "retainKeys";
  } else if (field.has(api::kPatchReplace)) {
    schema["x-kubernetes-patch-strategy"] = "replace";
  }
  if (field.has(api::kAtomic) && field.value != Value::kRaw) {
    schema["x-kubernetes-map-type"] = "atomic";
  }
  if (field.has(api::kGranular)) schema["x-kubernetes-map-type"] = "granular";
}

JsonObject FieldSchema(const Field& field, bool of_go) {
  JsonObject schema;
  const api::Constraints& limits = api::BuiltinSchema().constraints(field);
  const auto item = [&] { return ItemSchema(field, of_go); };
  switch (field.shape) {
    case Shape::kOne:
      schema = ValueSchemaOf(field);
      if (Json zero = ZeroOf(field.value); field.has(api::kAlways) && !zero.is_null())
        schema["default"] = std::move(zero);
      break;
    case Shape::kList:
      schema = {{"type", "array"}, {"items", item()}};
      AddLimit(schema, "minItems", limits.count_min);
      AddLimit(schema, "maxItems", limits.count_max);
      break;
    case Shape::kMap:
      schema = {{"type", "object"}, {"additionalProperties", item()}};
      AddLimit(schema, "maxProperties", limits.count_max);
      break;
    case Shape::kMapOfLists:
      schema = {{"type", "object"},
                {"additionalProperties", JsonObject({{"type", "array"}, {"items", item()}})}};
      break;
  }
  if (!field.default_json.empty()) schema["default"] = ParseJson(field.default_json).value();
  AddMerging(field, schema);
  // Beside those of fields a description stands at upstream.
  return InAllOf(std::move(schema));
}

JsonObject GroupVersionKind(const Kind& kind) {
  return {{"group", kind.group}, {"kind", kind.name}, {"version", kind.version}};
}

JsonObject TypeSchema(TypeId id) {
  const Type type = api::TypeAt(id);
  const bool of_go = type.name.starts_with("io.k8s.");
  JsonObject properties;
  JsonArray required;
  for (const Field& field : type.fields) {
    properties[field.name] = FieldSchema(field, of_go);
    if (field.name == "creationTimestamp" && type.go_name() == "ObjectMeta") {
      properties[field.name].get_object()["description"] =
          "CreationTimestamp is a timestamp of when the server stored the object first.";
    }
    if (field.has(api::kMandatory)) required.emplace_back(field.name);
  }
  JsonObject schema = {{"type", "object"}};
  if (!properties.empty()) schema["properties"] = std::move(properties);
  if (!required.empty()) schema["required"] = std::move(required);
  if (type.atomic) schema["x-kubernetes-map-type"] = "atomic";
  if (id < api::kKindsCount && static_cast<KindId>(id) != KindId::kPodTemplateSpec) {
    schema["x-kubernetes-group-version-kind"] =
        JsonArray({GroupVersionKind(api::KindOf(static_cast<KindId>(id)))});
  }
  return schema;
}

// The schemas of some types and of all that they contain.
JsonObject Schemas(std::vector<TypeId> pending) {
  std::set<TypeId> types(pending.begin(), pending.end());
  std::set<Value> values;
  std::map<std::string, JsonObject> raw;
  while (!pending.empty()) {
    const Type type = api::TypeAt(pending.back());
    pending.pop_back();
    for (const Field& field : type.fields) {
      values.insert(field.value);
      if (field.value == Value::kRaw) raw.emplace(RawSchemaName(field), RawSchema(field));
      if (field.type != api::kNoType && types.insert(field.type).second) {
        pending.push_back(field.type);
      }
    }
  }
  std::vector<std::pair<std::string, JsonObject>> schemas;
  for (const TypeId id : types) schemas.emplace_back(api::TypeAt(id).name, TypeSchema(id));
  for (const Value value : values) {
    std::string name = ValueSchemaName(value);
    if (!name.empty()) schemas.emplace_back(std::move(name), ValueSchema(value));
  }
  for (auto& [name, schema] : raw) schemas.emplace_back(name, std::move(schema));
  std::ranges::sort(schemas, {}, &std::pair<std::string, JsonObject>::first);
  JsonObject result;
  for (auto& [name, schema] : schemas) result.emplace(name, std::move(schema));
  return result;
}

// The name of a kind's schema: of users' kinds the group backwards, then version and kind.
std::string SchemaName(const Kind& kind) {
  if (kind.defined == nullptr) return std::string(api::TypeOf(kind.id).name);
  std::string name;
  std::string_view group = kind.group;
  while (!group.empty()) {
    const size_t dot = group.rfind('.');
    name += group.substr(dot == std::string_view::npos ? 0 : dot + 1);
    name += '.';
    group = group.substr(0, dot == std::string_view::npos ? 0 : dot);
  }
  return name + fmt::format("{}.{}", kind.version, kind.name);
}

// Calls `visit` with the schemas right within a schema.
template <typename Visit>
void ForEachWithin(JsonObject& schema, const Visit& visit) {
  for (const std::string_view word : {"items", "additionalProperties"}) {
    Json* inner = schema.if_contains(word);
    if (inner != nullptr && inner->is_object()) visit(inner->get_object());
  }
  if (Json* members = schema.if_contains("properties");
      members != nullptr && members->is_object()) {
    for (auto& [name, member] : members->get_object()) {
      if (member.is_object()) visit(member.get_object());
    }
  }
  if (Json* all = schema.if_contains("allOf"); all != nullptr && all->is_array()) {
    for (Json& part : all->get_array()) {
      if (part.is_object()) visit(part.get_object());
    }
  }
}

// Clients that don't know the extension go by the two types.
void AddBothTypes(JsonObject& schema) {
  const Json* either = schema.if_contains("x-kubernetes-int-or-string");
  if (either != nullptr && *either == true && !schema.contains("anyOf")) {
    schema["anyOf"] =
        JsonArray({JsonObject({{"type", "integer"}}), JsonObject({{"type", "string"}})});
  }
  ForEachWithin(schema, AddBothTypes);
}

// What all objects have.
JsonObject DefinedMembers() {
  JsonObject properties;
  const auto describe = [](std::string_view what) {
    return JsonObject{{"description", what}, {"type", "string"}};
  };
  properties["apiVersion"] =
      describe("APIVersion defines the group and version that this object is written in.");
  properties["kind"] = describe("Kind is what this object is.");
  JsonObject metadata = InAllOf(Reference(std::string(kMeta) + "ObjectMeta"));
  metadata["description"] = "Standard object's metadata: what names it, and what the server keeps.";
  properties["metadata"] = std::move(metadata);
  return properties;
}

void AddDefinedMembers(JsonObject& schema) {
  JsonObject& properties = api::MemberObject(schema, "properties");
  for (auto& [name, member] : DefinedMembers()) properties[name] = member;
}

bool Says(const JsonObject& schema, std::string_view word) {
  const Json* const said = schema.if_contains(word);
  return said != nullptr && *said == true;
}

// What objects within an object have, too, and must have.
void AddEmbeddedMembers(JsonObject& schema, bool also_open) {
  ForEachWithin(schema, [&](JsonObject& inner) { AddEmbeddedMembers(inner, also_open); });
  if (!Says(schema, "x-kubernetes-embedded-resource")) return;
  if (!also_open && Says(schema, kPreserve)) return;
  AddDefinedMembers(schema);
  Json& required = schema["required"];
  if (!required.is_array()) required = JsonArray();
  for (const std::string_view name : {"kind", "apiVersion"}) {
    if (std::ranges::find(required.get_array(), Json(name)) == required.get_array().end())
      required.get_array().emplace_back(name);
  }
}

JsonObject OwnSchema(const Kind& kind) {
  return kind.defined->openapi.is_object() ? kind.defined->openapi.get_object() : JsonObject();
}

// A user's schema, with what all objects have.
JsonObject DefinedSchema(const Kind& kind) {
  JsonObject schema = OwnSchema(kind);
  AddBothTypes(schema);
  AddEmbeddedMembers(schema, true);
  AddDefinedMembers(schema);
  schema["x-kubernetes-group-version-kind"] = JsonArray({GroupVersionKind(kind)});
  return schema;
}

std::string ListName(const Kind& kind) {
  return kind.defined != nullptr ? std::string(kind.defined->definition->list_kind())
                                 : fmt::format("{}List", kind.name);
}

std::string ListSchemaName(const Kind& kind) {
  const std::string one = SchemaName(kind);
  CHECK(one.ends_with(kind.name));
  return one.substr(0, one.size() - kind.name.size()) + ListName(kind);
}

JsonObject ListSchema(const Kind& kind) {
  JsonObject items = Reference(SchemaName(kind));
  JsonObject metadata = InAllOf(Reference(std::string(kMeta) + "ListMeta"));
  if (!kind.custom) {
    // As in all that is made of Go's types.
    items = InAllOf(std::move(items));
    items["default"] = JsonObject();
    metadata["default"] = JsonObject();
  }
  const JsonObject text = {{"type", "string"}};
  return {{"type", "object"},
          {"required", JsonArray({"items"})},
          {"properties", JsonObject({{"apiVersion", text},
                                     {"items", JsonObject({{"type", "array"}, {"items", items}})},
                                     {"kind", text},
                                     {"metadata", metadata}})},
          {"x-kubernetes-group-version-kind",
           JsonArray({JsonObject(
               {{"group", kind.group}, {"kind", ListName(kind)}, {"version", kind.version}})})}};
}

JsonObject Parameter(std::string_view name, std::string_view where, std::string_view type) {
  JsonObject parameter = {{"name", name},
                          {"in", where},
                          {"schema", JsonObject({{"type", type}, {"uniqueItems", true}})}};
  if (where == "path") parameter["required"] = true;
  return parameter;
}

JsonObject Content(std::string_view schema) {
  return {{"application/json", JsonObject({{"schema", Reference(schema)}})},
          {"application/yaml", JsonObject({{"schema", Reference(schema)}})}};
}

struct Verb {
  std::string_view method;
  std::string_view action;
  bool writes = false;
};

// One operation on `kind` (the Scale of a scale subresource).
JsonObject Operation(const Verb& verb, const Kind& kind) {
  const std::string schema = verb.action == "list" ? ListSchemaName(kind) : SchemaName(kind);
  JsonArray parameters;
  if (verb.writes) {
    parameters.emplace_back(Parameter("dryRun", "query", "string"));
    parameters.emplace_back(Parameter("fieldManager", "query", "string"));
    parameters.emplace_back(Parameter("fieldValidation", "query", "string"));
  }
  if (verb.method == "patch") parameters.emplace_back(Parameter("force", "query", "boolean"));
  const JsonObject answer = {{"description", "OK"}, {"content", Content(schema)}};
  JsonObject operation = {{"parameters", std::move(parameters)},
                          {"responses", JsonObject({{"200", answer}})},
                          {"x-kubernetes-action", verb.action},
                          {"x-kubernetes-group-version-kind", GroupVersionKind(kind)}};
  if (verb.method == "patch") {
    JsonObject content;
    for (const std::string_view type :
         {"application/apply-patch+yaml", "application/json-patch+json",
          "application/merge-patch+json", "application/strategic-merge-patch+json"}) {
      if (kind.custom && type.contains("strategic")) continue;
      content.emplace(type, JsonObject({{"schema", Reference(std::string(kMeta) + "Patch")}}));
    }
    operation["requestBody"] = JsonObject({{"content", std::move(content)}, {"required", true}});
  } else if (verb.writes) {
    operation["requestBody"] = JsonObject({{"content", Content(schema)}, {"required", true}});
  }
  return operation;
}

JsonObject PathItem(const std::vector<Verb>& verbs, const Kind& kind, bool namespaced, bool named) {
  JsonObject item;
  for (const Verb& verb : verbs) item.emplace(verb.method, Operation(verb, kind));
  JsonArray parameters;
  if (named) parameters.emplace_back(Parameter("name", "path", "string"));
  if (namespaced) parameters.emplace_back(Parameter("namespace", "path", "string"));
  item["parameters"] = std::move(parameters);
  return item;
}

void AddPaths(const Kind& kind, JsonObject& paths) {
  const std::string base = "/" + std::string(kind.base_path().substr(1));
  const std::string inside = kind.namespaced
                                 ? fmt::format("{}/namespaces/{{namespace}}/{}", base, kind.plural)
                                 : fmt::format("{}/{}", base, kind.plural);
  const std::string item = inside + "/{name}";
  const bool scoped = kind.namespaced;
  if (!kind.stored) {
    paths[inside] = PathItem({{"post", "post", true}}, kind, scoped, false);
    return;
  }
  std::vector<Verb> collection = {{"get", "list"}, {"post", "post", true}};
  if (kind.has_deletecollection) collection.push_back({"delete", "deletecollection"});
  paths[inside] = PathItem(collection, kind, scoped, false);
  const std::vector<Verb> edit = {{"get", "get"}, {"put", "put", true}, {"patch", "patch", true}};
  std::vector<Verb> whole = edit;
  whole.push_back({"delete", "delete"});
  paths[item] = PathItem(whole, kind, scoped, true);
  if (kind.namespaced) {
    paths[fmt::format("{}/{}", base, kind.plural)] =
        PathItem({{"get", "list"}}, kind, false, false);
  }
  if (kind.has_status) paths[item + "/status"] = PathItem(edit, kind, scoped, true);
  if (kind.has_scale) {
    paths[item + "/scale"] = PathItem(edit, api::KindOf(KindId::kScale), scoped, true);
  }
  if (kind.id == KindId::kPod) {
    for (const std::string_view part : {"/ephemeralcontainers", "/resize"}) {
      paths[fmt::format("{}{}", item, part)] = PathItem(edit, kind, true, true);
    }
    const Verb create = {"post", "post", true};
    paths[item + "/binding"] = PathItem({create}, api::KindOf(KindId::kBinding), true, true);
    paths[item + "/eviction"] = PathItem({create}, api::KindOf(KindId::kEviction), true, true);
  }
}

// The kinds of each group version that has resources, by its path ("api/v1", "apis/apps/v1", ...),
// in order of its text.
std::map<std::string, std::vector<const Kind*>> GroupVersions(std::span<const Kind* const> kinds) {
  std::map<std::string, std::vector<const Kind*>> versions;
  for (const Kind* kind : kinds) {
    if (kind->stored) versions[kind->base_path().substr(1)].push_back(kind);
  }
  return versions;
}

// Whether the path is a kind's, as kind.base_path() has it with a slash before.
bool IsAt(const Kind& kind, std::string_view path) {
  return path.ends_with(kind.version) && kind.base_path().substr(1) == path;
}

// What the document of these kinds depends on. The rest of it never changes.
uint64_t HashOfDefined(std::span<const Kind* const> kinds) {
  Hasher hasher;
  for (const Kind* kind : kinds) {
    hasher.Add(kind->plural).Add(kind->name).Add(kind->namespaced).Add(kind->has_status);
    hasher.Add(kind->has_scale).Add(kind->is_served());
    if (kind->defined == nullptr) continue;
    hasher.Add(kind->defined->definition->list_kind()).Add(PrintJson(kind->defined->openapi));
  }
  return hasher.value();
}

// Clients that go by version 2 take what isn't named for wrong where anything is named, and a null
// where a type is: of such values nothing is said, and nobody is required to give a null.
void SayLess(JsonObject& schema) {
  if (Says(schema, kPreserve) || Says(schema, kNullable)) {
    for (const std::string_view word : {"items", "properties", "type"})
      api::RemoveMember(schema, word);
  }
  const Json* const properties = schema.if_contains("properties");
  Json* const required = schema.if_contains("required");
  if (required != nullptr && required->is_array() && properties != nullptr) {
    JsonArray kept;
    for (const Json& name : required->get_array()) {
      const Json* const member =
          name.is_string() ? api::FindMember(*properties, name.get_string()) : nullptr;
      const bool nullable =
          member != nullptr && member->is_object() && Says(member->get_object(), kNullable);
      if (!nullable) kept.push_back(name);
    }
    *required = std::move(kept);
    if (required->get_array().empty()) api::RemoveMember(schema, "required");
  }
  ForEachWithin(schema, SayLess);
}

// What version 2 says of a user's kind; of one that is open at its root next to nothing.
JsonObject DefinedVersion2(const Kind& kind) {
  JsonObject schema = {{"type", "object"}};
  if (!kind.defined->schema.preserves_unknown) {
    schema = OwnSchema(kind);
    SayLess(schema);
    AddEmbeddedMembers(schema, false);
    AddDefinedMembers(schema);
  }
  schema["x-kubernetes-group-version-kind"] = JsonArray({GroupVersionKind(kind)});
  return schema;
}

// Version 2 keeps schemas elsewhere, lets something stand beside a reference, and combines none.
// Nor does it say defaults, which clients of it would take for required.
void ToVersion2(JsonObject& schema) {
  constexpr std::string_view kOld = "#/components/schemas/";
  if (const Json* all = schema.if_contains("allOf"); all != nullptr && all->is_array() &&
                                                     all->get_array().size() == 1 &&
                                                     api::FindMember(all->get_array()[0], "$ref")) {
    const Json reference = all->get_array()[0].at("$ref");
    api::RemoveMember(schema, "allOf");
    schema["$ref"] = reference;
  }
  for (const std::string_view word : {"allOf", "oneOf", "anyOf", "not", "nullable", "default"})
    api::RemoveMember(schema, word);
  if (Json* reference = schema.if_contains("$ref");
      reference != nullptr && reference->is_string() &&
      std::string_view(reference->get_string()).starts_with(kOld)) {
    *reference = "#/definitions/" + std::string(reference->get_string()).substr(kOld.size());
  }
  ForEachWithin(schema, ToVersion2);
}

Json Version2(std::span<const Kind* const> kinds) {
  std::vector<TypeId> types;
  JsonObject defined;
  for (const Kind* kind : kinds) {
    if (kind->defined != nullptr) {
      defined[SchemaName(*kind)] = DefinedVersion2(*kind);
    } else if (!kind->plural.empty()) {
      types.push_back(static_cast<TypeId>(kind->id));
    }
  }
  JsonObject definitions = Schemas(std::move(types));
  for (auto& [name, schema] : defined) definitions[name] = std::move(schema);
  for (auto& [name, schema] : definitions) ToVersion2(schema.get_object());
  // They have both; the message of a schema has one.
  for (const Value value : {Value::kQuantity, Value::kIntOrString}) {
    if (Json* schema = definitions.if_contains(ValueSchemaName(value)))
      schema->get_object()["type"] = "string";
  }
  return JsonObject({{"swagger", kSwagger},
                     {"info", JsonObject({{"title", kTitle}, {"version", kVersion}})},
                     {"paths", JsonObject()},
                     {"definitions", std::move(definitions)}});
}

}  // namespace

std::optional<std::string> OpenApiDocument(std::span<const Kind* const> kinds,
                                           std::string_view path) {
  JsonObject paths;
  std::vector<TypeId> types;
  JsonObject defined;
  JsonObject lists;
  for (const Kind* served : kinds) {
    const Kind& kind = *served;
    if (kind.plural.empty() || !IsAt(kind, path)) continue;
    AddPaths(kind, paths);
    if (kind.stored) lists[ListSchemaName(kind)] = ListSchema(kind);
    if (kind.defined != nullptr) {
      defined[SchemaName(kind)] = DefinedSchema(kind);
      // For what its metadata contains.
      types.push_back(static_cast<TypeId>(KindId::kNamespace));
      if (kind.has_scale) types.push_back(static_cast<TypeId>(KindId::kScale));
      continue;
    }
    types.push_back(static_cast<TypeId>(kind.id));
    if (kind.has_scale) types.push_back(static_cast<TypeId>(KindId::kScale));
    if (kind.id == KindId::kPod) {
      types.push_back(static_cast<TypeId>(KindId::kBinding));
      types.push_back(static_cast<TypeId>(KindId::kEviction));
    }
  }
  if (types.empty()) return std::nullopt;
  types.push_back(static_cast<TypeId>(KindId::kDeleteOptions));
  types.push_back(static_cast<TypeId>(KindId::kStatus));
  JsonObject schemas = Schemas(std::move(types));
  for (auto& [name, schema] : defined) schemas[name] = std::move(schema);
  for (auto& [name, schema] : lists) schemas[name] = std::move(schema);
  schemas[std::string(kMeta) + "Patch"] = JsonObject({{"type", "object"}});
  api::SortMembers(schemas);
  const JsonObject document = {{"openapi", "3.0.0"},
                               {"info", JsonObject({{"title", kTitle}, {"version", kVersion}})},
                               {"paths", std::move(paths)},
                               {"components", JsonObject({{"schemas", std::move(schemas)}})}};
  return PrintJson(document);
}

std::string OpenApiIndex(std::span<const Kind* const> kinds) {
  JsonObject paths;
  for (const auto& [path, of_path] : GroupVersions(kinds)) {
    // A user may have any number of versions, and the documents of native kinds change with berth.
    const bool defined =
        std::ranges::any_of(of_path, [](const Kind* kind) { return kind->defined != nullptr; });
    const uint64_t hash =
        defined ? HashOfDefined(of_path) : HashOf(OpenApiDocument(of_path, path).value());
    paths.emplace(path, JsonObject({{"serverRelativeURL",
                                     fmt::format("/openapi/v3/{}?hash={:016X}", path, hash)}}));
  }
  return PrintJson(JsonObject({{"paths", std::move(paths)}}));
}

std::string OpenApiV2(std::span<const Kind* const> kinds) { return PrintJson(Version2(kinds)); }

std::string OpenApiV2Protobuf(std::span<const Kind* const> kinds) {
  return OpenApiV2Message(Version2(kinds));
}

}  // namespace berth::codec
