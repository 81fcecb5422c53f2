// Goal: the OpenAPI documents hold what kubectl looks for. Method: each document is walked as
// kubectl does: operations by kind, schemas by kind, references that resolve.

#include "codec/openapi.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/kinds.h"
#include "api/object.h"
#include "codec/json.h"

namespace berth::codec {
namespace {

using api::Json;

std::vector<const api::Kind*> Served() {
  std::vector<const api::Kind*> kinds;
  for (const api::Kind& kind : api::Kinds()) kinds.push_back(&kind);
  return kinds;
}

void CollectReferences(const Json& value, std::set<std::string>& references) {
  if (value.is_array()) {
    for (const Json& item : value.get_array()) CollectReferences(item, references);
  }
  if (!value.is_object()) return;
  for (const auto& [key, member] : value.get_object()) {
    // A definition's schema has a member of that name.
    if (key == "$ref" && member.is_string()) references.emplace(member.get_string());
    CollectReferences(member, references);
  }
}

bool PatchTakesFieldValidation(const Json& document, const api::Kind& kind) {
  for (const auto& [path, item] : document.at("paths").get_object()) {
    const Json* patch = item.get_object().if_contains("patch");
    if (patch == nullptr ||
        api::TextAt(patch->at("x-kubernetes-group-version-kind"), "kind") != kind.name)
      continue;
    for (const Json& parameter : patch->at("parameters").get_array()) {
      if (parameter.at("name") == "fieldValidation" && parameter.at("in") == "query") return true;
    }
  }
  return false;
}

TEST(OpenApiTest, EveryStoredKindCanBePatchedWithFieldValidation) {
  const Json index = ParseJson(OpenApiIndex(Served())).value();
  for (const api::Kind& kind : api::Kinds()) {
    if (!kind.stored) continue;
    SCOPED_TRACE(kind.name);
    const std::string path = kind.base_path().substr(1);
    const Json& entry = index.at("paths").at(path);
    EXPECT_TRUE(
        api::TextAt(entry, "serverRelativeURL").starts_with("/openapi/v3/" + path + "?hash="));
    const Json document = ParseJson(OpenApiDocument(Served(), path).value()).value();
    EXPECT_TRUE(PatchTakesFieldValidation(document, kind));
  }
  EXPECT_FALSE(OpenApiDocument(Served(), "apis/nosuch/v1").has_value());
}

TEST(OpenApiTest, ReferencesResolveAndSchemasCarryTheirKindAndMergeKeys) {
  const Json document = ParseJson(OpenApiDocument(Served(), "api/v1").value()).value();
  const api::JsonObject& schemas = document.at("components").at("schemas").get_object();
  std::set<std::string> references;
  CollectReferences(document, references);
  EXPECT_GT(references.size(), 100U);
  for (const std::string& reference : references) {
    EXPECT_TRUE(schemas.contains(reference.substr(std::string("#/components/schemas/").size())))
        << reference;
  }
  const Json& pod = schemas.at("io.k8s.api.core.v1.Pod");
  EXPECT_EQ(api::TextAt(pod.at("x-kubernetes-group-version-kind").at(0), "kind"), "Pod");
  const Json& containers =
      schemas.at("io.k8s.api.core.v1.PodSpec").at("properties").at("containers");
  EXPECT_EQ(containers.at("x-kubernetes-patch-merge-key"), "name");
  EXPECT_EQ(containers.at("x-kubernetes-list-map-keys"), Json(api::JsonArray({"name"})));
  EXPECT_EQ(OpenApiDocument(Served(), "api/v1"), OpenApiDocument(Served(), "api/v1"));
}

// The schema in the document of that path, of a kind or of what it contains.
Json SchemaIn(const std::string& path, const std::string& name) {
  const Json document = ParseJson(OpenApiDocument(Served(), path).value()).value();
  return document.at("components").at("schemas").at(name);
}

// The facts are a genuine server's.
TEST(OpenApiTest, SchemasSayWhatIsRequiredWhichWordsThereAreAndWhatGoesWithoutSaying) {
  const Json container = SchemaIn("api/v1", "io.k8s.api.core.v1.Container");
  EXPECT_EQ(container.at("required"), Json(api::JsonArray({"name"})));
  const Json& members = container.at("properties");
  EXPECT_EQ(members.at("imagePullPolicy").at("enum"),
            Json(api::JsonArray({"Always", "IfNotPresent", "Never"})));
  EXPECT_EQ(members.at("name").at("default"), "");
  EXPECT_EQ(members.at("args").at("items").at("default"), "");
  EXPECT_EQ(members.at("env").at("items").at("default"), Json(api::JsonObject()));
  EXPECT_FALSE(members.at("image").get_object().contains("default"));
  const Json service = SchemaIn("api/v1", "io.k8s.api.core.v1.ServiceSpec").at("properties");
  EXPECT_EQ(service.at("ipFamilies").at("items").at("enum"),
            Json(api::JsonArray({"", "IPv4", "IPv6"})));
  const Json slice = SchemaIn("apis/discovery.k8s.io/v1", "io.k8s.api.discovery.v1.EndpointSlice");
  EXPECT_EQ(slice.at("properties").at("addressType").at("enum"),
            Json(api::JsonArray({"FQDN", "IPv4", "IPv6"})));
  const Json limits = SchemaIn("api/v1", "io.k8s.api.core.v1.ResourceRequirements")
                          .at("properties")
                          .at("limits")
                          .at("additionalProperties");
  EXPECT_TRUE(limits.get_object().contains("$ref"));
  EXPECT_TRUE(members.at("lifecycle").get_object().contains("allOf"));
  EXPECT_EQ(SchemaIn("apis/rbac.authorization.k8s.io/v1", "io.k8s.api.rbac.v1.RoleRef")
                .at("x-kubernetes-map-type"),
            "atomic");
}

// The facts are a genuine server's.
TEST(OpenApiTest, ListsHaveSchemasAndAreWhatListsAnswer) {
  const Json list = SchemaIn("apis/apps/v1", "io.k8s.api.apps.v1.DeploymentList");
  EXPECT_EQ(list, ParseJson(R"({"type":"object","required":["items"],"properties":{
      "apiVersion":{"type":"string"},
      "items":{"type":"array","items":{"default":{},
          "allOf":[{"$ref":"#/components/schemas/io.k8s.api.apps.v1.Deployment"}]}},
      "kind":{"type":"string"},
      "metadata":{"default":{},
          "allOf":[{"$ref":"#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta"}]}},
      "x-kubernetes-group-version-kind":
          [{"group":"apps","kind":"DeploymentList","version":"v1"}]})")
                      .value());
  const Json custom =
      SchemaIn("apis/kueue.x-k8s.io/v1beta2", "io.x-k8s.kueue.v1beta2.ClusterQueueList");
  EXPECT_EQ(
      custom.at("properties").at("items").at("items"),
      ParseJson(R"({"$ref":"#/components/schemas/io.x-k8s.kueue.v1beta2.ClusterQueue"})").value());
  const Json document = ParseJson(OpenApiDocument(Served(), "apis/apps/v1").value()).value();
  const Json& paths = document.at("paths");
  for (const char* path :
       {"/apis/apps/v1/deployments", "/apis/apps/v1/namespaces/{namespace}/deployments"}) {
    EXPECT_EQ(api::TextAt(paths.at(path), "get.responses.200.content.application/json.schema.$ref"),
              "#/components/schemas/io.k8s.api.apps.v1.DeploymentList")
        << path;
  }
  // Each kind that is stored has one.
  std::map<std::string, std::string> documents;
  for (const api::Kind& kind : api::Kinds()) {
    if (!kind.stored) continue;
    std::string& text = documents[kind.base_path().substr(1)];
    if (text.empty()) text = OpenApiDocument(Served(), kind.base_path().substr(1)).value();
    EXPECT_TRUE(text.contains(fmt::format("\"kind\":\"{}List\"", kind.name))) << kind.name;
  }
}

// The facts are a genuine server's.
TEST(OpenApiTest, ValuesOfAnyFormHaveTheirNames) {
  const auto refers = [](const Json& schema, std::string_view name) {
    return PrintJson(schema).contains(fmt::format("\"$ref\":\"#/components/schemas/{}\"", name));
  };
  const Json revision = SchemaIn("apis/apps/v1", "io.k8s.api.apps.v1.ControllerRevision");
  EXPECT_TRUE(
      refers(revision.at("properties").at("data"), "io.k8s.apimachinery.pkg.runtime.RawExtension"));
  EXPECT_EQ(SchemaIn("apis/apps/v1", "io.k8s.apimachinery.pkg.runtime.RawExtension"),
            ParseJson(R"({"type":"object"})").value());
  const std::string meta = "io.k8s.apimachinery.pkg.apis.meta.v1.";
  EXPECT_TRUE(
      refers(SchemaIn("api/v1", meta + "ManagedFieldsEntry").at("properties").at("fieldsV1"),
             meta + "FieldsV1"));
  const std::string extensions = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.";
  const Json schema =
      SchemaIn("apis/apiextensions.k8s.io/v1", extensions + "JSONSchemaProps").at("properties");
  EXPECT_TRUE(refers(schema.at("default"), extensions + "JSON"));
  EXPECT_TRUE(refers(schema.at("enum").at("items"), extensions + "JSON"));
  EXPECT_TRUE(refers(schema.at("items"), extensions + "JSONSchemaPropsOrArray"));
  EXPECT_TRUE(refers(schema.at("additionalProperties"), extensions + "JSONSchemaPropsOrBool"));
  EXPECT_TRUE(refers(schema.at("dependencies").at("additionalProperties"),
                     extensions + "JSONSchemaPropsOrStringArray"));
}

TEST(OpenApiTest, CustomKindsHaveTheirLimitsAndNoStrategicPatch) {
  const std::string path = "apis/kueue.x-k8s.io/v1beta2";
  const Json document = ParseJson(OpenApiDocument(Served(), path).value()).value();
  const api::JsonObject& schemas = document.at("components").at("schemas").get_object();
  std::set<std::string> references;
  CollectReferences(document, references);
  for (const std::string& reference : references) {
    EXPECT_TRUE(schemas.contains(reference.substr(std::string("#/components/schemas/").size())))
        << reference;
  }
  const Json& spec = schemas.at("io.x-k8s.kueue.v1beta2.ClusterQueue.spec").at("properties");
  EXPECT_EQ(spec.at("stopPolicy"),
            Json(api::JsonObject({{"type", "string"},
                                  {"enum", api::JsonArray({"None", "Hold", "HoldAndDrain"})},
                                  {"default", "None"}})));
  EXPECT_EQ(spec.at("resourceGroups").at("maxItems"), 16);
  EXPECT_EQ(spec.at("cohortName").at("maxLength"), 253);
  const Json& patch =
      document.at("paths").at("/" + path + "/clusterqueues/{name}").at("patch").at("requestBody");
  EXPECT_TRUE(patch.at("content").get_object().contains("application/merge-patch+json"));
  EXPECT_FALSE(patch.at("content").get_object().contains("application/strategic-merge-patch+json"));
}

TEST(OpenApiTest, Version2HasTheSameSchemasUnderItsOwnReferences) {
  const Json document = ParseJson(OpenApiV2(Served())).value();
  EXPECT_EQ(api::TextAt(document, "swagger"), "2.0");
  const api::JsonObject& definitions = document.at("definitions").get_object();
  EXPECT_TRUE(definitions.contains("io.k8s.api.core.v1.Pod"));
  std::set<std::string> references;
  CollectReferences(document, references);
  EXPECT_GT(references.size(), 100U);
  for (const std::string& reference : references) {
    EXPECT_TRUE(definitions.contains(reference.substr(std::string("#/definitions/").size())))
        << reference;
  }
  const Json& port = definitions.at("io.k8s.api.core.v1.ContainerPort").at("properties");
  EXPECT_EQ(port.at("protocol").at("enum"), Json(api::JsonArray({"SCTP", "TCP", "UDP"})));
  EXPECT_FALSE(port.at("protocol").get_object().contains("default"));
  // A member that is called so stays.
  EXPECT_TRUE(definitions.at("io.k8s.api.core.v1.LimitRangeItem")
                  .at("properties")
                  .get_object()
                  .contains("default"));
}

// A message's fields that are texts or messages, by number, in their order; others are passed over.
std::vector<std::pair<uint64_t, std::string_view>> FieldsOf(std::string_view message) {
  const auto take_varint = [&] {
    uint64_t value = 0;
    for (int shift = 0; !message.empty(); shift += 7) {
      const auto byte = static_cast<unsigned char>(message.front());
      message.remove_prefix(1);
      value |= uint64_t{byte & 0x7fU} << shift;
      if (byte < 0x80) break;
    }
    return value;
  };
  std::vector<std::pair<uint64_t, std::string_view>> fields;
  while (!message.empty()) {
    const uint64_t tag = take_varint();
    if ((tag & 7) == 0) take_varint();
    if ((tag & 7) == 1) message.remove_prefix(8);
    if ((tag & 7) != 2) continue;
    const uint64_t size = take_varint();
    EXPECT_LE(size, message.size());
    fields.emplace_back(tag >> 3, message.substr(0, size));
    message.remove_prefix(std::min<size_t>(size, message.size()));
  }
  return fields;
}

// The field of that number; empty: there is none.
std::string_view FieldOf(std::string_view message, uint64_t number) {
  for (const auto& [each, bytes] : FieldsOf(message)) {
    if (each == number) return bytes;
  }
  return {};
}

// Of messages {name = 1, value = 2} in the fields of that number, the value of the name.
std::string_view NamedIn(std::string_view message, uint64_t number, std::string_view name) {
  for (const auto& [each, bytes] : FieldsOf(message)) {
    if (each == number && FieldOf(bytes, 1) == name) return FieldOf(bytes, 2);
  }
  return {};
}

// The numbers are those that a genuine server's document has.
TEST(OpenApiTest, Version2AsProtobufHasAllSchemas) {
  const std::string text = OpenApiV2Protobuf(Served());
  const Json document = ParseJson(OpenApiV2(Served())).value();
  EXPECT_EQ(FieldOf(text, 1), "2.0");
  EXPECT_EQ(FieldOf(FieldOf(text, 2), 1), "Kubernetes");
  const std::string_view definitions = FieldOf(text, 9);
  size_t count = 0;
  for (const auto& [name, schema] : document.at("definitions").get_object()) {
    const std::string_view message = NamedIn(definitions, 1, name);
    ASSERT_FALSE(message.empty()) << name;
    EXPECT_EQ(FieldOf(FieldOf(message, 22), 1), api::TextAt(schema, "type")) << name;
    const Json* properties = api::FindMember(schema, "properties");
    EXPECT_EQ(FieldsOf(FieldOf(message, 25)).size(),
              properties == nullptr ? 0 : properties->get_object().size())
        << name;
    ++count;
  }
  EXPECT_EQ(FieldsOf(definitions).size(), count);
  const std::string_view pod = NamedIn(definitions, 1, "io.k8s.api.core.v1.Pod");
  EXPECT_EQ(FieldOf(NamedIn(pod, 31, "x-kubernetes-group-version-kind"), 2),
            R"([{"group":"","kind":"Pod","version":"v1"}])");
  const std::string_view spec = FieldOf(NamedIn(definitions, 1, "io.k8s.api.core.v1.PodSpec"), 25);
  EXPECT_EQ(FieldOf(FieldOf(NamedIn(spec, 1, "nodeName"), 22), 1), "string");
  EXPECT_EQ(FieldOf(NamedIn(spec, 1, "affinity"), 1), "#/definitions/io.k8s.api.core.v1.Affinity");
  const std::string_view containers = NamedIn(spec, 1, "containers");
  EXPECT_EQ(FieldOf(FieldOf(FieldOf(containers, 23), 1), 1),
            "#/definitions/io.k8s.api.core.v1.Container");
  EXPECT_EQ(FieldOf(NamedIn(containers, 31, "x-kubernetes-list-map-keys"), 2), R"(["name"])");
  EXPECT_EQ(FieldOf(FieldOf(FieldOf(FieldOf(NamedIn(spec, 1, "nodeSelector"), 21), 1), 22), 1),
            "string");
}

}  // namespace
}  // namespace berth::codec
