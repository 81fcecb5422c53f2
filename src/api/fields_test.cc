// Goal: documents take the form that upstream stores, and what upstream refuses to decode is
// refused in its words. Method: tables of documents with the genuine server's answers; every type
// of the table once.

#include "api/fields.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <set>
#include <string>
#include <vector>

#include "api/object.h"
#include "api/schema.h"

namespace berth::api {
namespace {

std::string Conformed(KindId kind, std::string_view text) {
  Json document = boost::json::parse(text);
  const Result<std::vector<std::string>> problems = Conform(kind, document);
  if (!problems) return problems.error().message;
  std::string out = boost::json::serialize(document);
  for (const std::string& problem : *problems) out += "\n" + problem;
  return out;
}

TEST(SchemaTest, TheTableIsSortedClosedAndRootedInTheKinds) {
  for (TypeId id = 0; id < static_cast<TypeId>(TypesCount()); ++id) {
    const Type type = TypeAt(id);
    std::string_view last;
    for (const Field& field : type.fields) {
      EXPECT_LT(last, field.name) << type.name;
      last = field.name;
      EXPECT_EQ(field.value == Value::kObject, field.type != kNoType) << type.name << field.name;
      if (field.type != kNoType) {
        EXPECT_LT(field.type, TypesCount());
      }
      if (field.has(kPatchMerge) && field.value == Value::kObject) {
        ASSERT_NE(FindField(TypeAt(field.type), field.merge_key), nullptr) << field.name;
      }
    }
  }
  for (const Kind& kind : Kinds()) EXPECT_EQ(TypeOf(kind.id).go_name(), kind.name);
}

TEST(SchemaTest, FieldsAreFoundWithTheirFacts) {
  const Type spec = TypeAt(FindField(TypeOf(KindId::kPod), "spec")->type);
  EXPECT_EQ(spec.go_qualified(), "v1.PodSpec");
  EXPECT_EQ(FindField(spec, "containers")->merge_key, "name");
  EXPECT_TRUE(FindField(spec, "containers")->has(kPatchMerge));
  EXPECT_TRUE(FindField(spec, "volumes")->has(kRetainKeys));
  EXPECT_EQ(FindField(spec, "topologySpreadConstraints")->list_keys,
            "topologyKey whenUnsatisfiable");
  EXPECT_TRUE(FindField(spec, "priority")->has(kPointer));
  EXPECT_EQ(FindField(spec, "nosuch"), nullptr);
}

TEST(ConformTest, StoresWhatUpstreamStores) {
  EXPECT_EQ(
      Conformed(KindId::kConfigMap,
                R"({"metadata":{"name":"a","labels":{"z":"1","b":null},"creationTimestamp":null},)"
                R"("apiVersion":"v1","kind":"ConfigMap",
                         "data":{},"immutable":false})"),
      R"({"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a","labels":{"b":"","z":"1"}},)"
      R"("immutable":false})");
  EXPECT_EQ(
      Conformed(KindId::kPod,
                R"({"spec":{"hostNetwork":false,"priority":0,"nodeName":"","tolerations":[],
                         "containers":[{"name":"c","image":"","resources":{"requests":{"memory":"1024Mi",)"
                R"("cpu":1.5}}}],
                         "overhead":{"cpu":null}}})"),
      R"({"metadata":{},"spec":{"containers":[{"name":"c","resources":{"requests":{"cpu":"1500m",)"
      R"("memory":"1Gi"}}}],)"
      R"("overhead":{"cpu":"0"},"priority":0},"status":{}})");
  EXPECT_EQ(
      Conformed(
          KindId::kLease,
          R"({"spec":{"renewTime":"2026-01-02T03:04:05.000000+01:00","leaseTransitions":0}})"),
      R"({"metadata":{},"spec":{"leaseTransitions":0,"renewTime":"2026-01-02T02:04:05.000000Z"}})");
  EXPECT_EQ(Conformed(KindId::kDeployment,
                      R"({"spec":{"replicas":0,"strategy":{"rollingUpdate":{"maxSurge":"25%"}},)"
                      R"("template":{"spec":{"containers":null}}}})"),
            R"({"metadata":{},"spec":{"replicas":0,"selector":null,)"
            R"("strategy":{"rollingUpdate":{"maxSurge":"25%"}},)"
            R"("template":{"metadata":{},"spec":{"containers":null}}},"status":{}})");
  EXPECT_EQ(Conformed(KindId::kConfigMap, "null"), R"({"metadata":{}})");
}

TEST(ConformTest, WhatGoWritesAsNullIsNullWhereThereIsNothing) {
  EXPECT_EQ(Conformed(KindId::kRole, "{}"), R"({"metadata":{},"rules":null})");
  EXPECT_EQ(Conformed(KindId::kRole, R"({"rules":[{"resources":["pods"]}]})"),
            R"({"metadata":{},"rules":[{"resources":["pods"],"verbs":null}]})");
  EXPECT_EQ(
      Conformed(KindId::kNamespace, R"({"status":{"conditions":[{"type":"A","status":"B"}]}})"),
      R"({"metadata":{},"spec":{},"status":{"conditions":[)"
      R"({"lastTransitionTime":null,"status":"B","type":"A"}]}})");
  // An empty list is one until it is stored.
  Json role = boost::json::parse(R"({"rules":[]})");
  ASSERT_TRUE(Conform(KindId::kRole, role).has_value());
  EXPECT_EQ(boost::json::serialize(role), R"({"metadata":{},"rules":[]})");
  ForgetEmptyLists(KindOf(KindId::kRole), role);
  EXPECT_EQ(boost::json::serialize(role), R"({"metadata":{},"rules":null})");
}

TEST(ConformTest, IsAFixedPoint) {
  const std::string once = Conformed(
      KindId::kPod,
      R"({"spec":{"containers":[{"ports":[{"containerPort":0}],"env":[{"name":""}]}]},"metadata":{"b":1}})");
  const std::string document = once.substr(0, once.find('\n'));
  EXPECT_EQ(Conformed(KindId::kPod, document), document);
}

TEST(ConformTest, NamesUnknownFieldsInDocumentOrder) {
  EXPECT_EQ(
      Conformed(
          KindId::kPod,
          R"({"spec":{"containers":[{"name":"c","imagee":"x","resources":{"request":{}}}],"foo":1,)"
          R"("Restartpolicy":"x"},"metadata":{"Name":"n"}})"),
      "{\"metadata\":{},\"spec\":{\"containers\":[{\"name\":\"c\",\"resources\":{}}]},\"status\":{}"
      "}\n"
      "unknown field \"spec.containers[0].imagee\"\nunknown field "
      "\"spec.containers[0].resources.request\"\n"
      "unknown field \"spec.foo\"\nunknown field \"spec.Restartpolicy\"\nunknown field "
      "\"metadata.Name\"");
  EXPECT_EQ(
      StrictDecodingError(std::vector<std::string>{"unknown field \"a\"", "duplicate field \"b\""}),
      "strict decoding error: unknown field \"a\", duplicate field \"b\"");
}

TEST(ConformTest, RefusesWrongTypesInGosWords) {
  const std::vector<std::pair<std::string_view, std::string_view>> rows = {
      {R"({"spec":{"nodeName":5}})",
       "json: cannot unmarshal number into Go struct field PodSpec.spec.nodeName of type string"},
      {R"({"spec":{"nodeName":true}})",
       "json: cannot unmarshal bool into Go struct field PodSpec.spec.nodeName of type string"},
      {R"({"spec":{"priority":3000000000}})",
       "json: cannot unmarshal number 3000000000 into Go struct field PodSpec.spec.priority of "
       "type int32"},
      {R"({"spec":{"terminationGracePeriodSeconds":1.5}})",
       "json: cannot unmarshal number 1.5 into Go struct field "
       "PodSpec.spec.terminationGracePeriodSeconds of type int64"},
      {R"({"spec":{"terminationGracePeriodSeconds":1.0}})",
       "json: cannot unmarshal number 1.0 into Go struct field "
       "PodSpec.spec.terminationGracePeriodSeconds of type int64"},
      {R"({"spec":{"terminationGracePeriodSeconds":"x"}})",
       "json: cannot unmarshal string into Go struct field "
       "PodSpec.spec.terminationGracePeriodSeconds of type int64"},
      {R"({"spec":{"nodeSelector":[]}})",
       "json: cannot unmarshal array into Go struct field PodSpec.spec.nodeSelector of type "
       "map[string]string"},
      {R"({"spec":{"tolerations":{}}})",
       "json: cannot unmarshal object into Go struct field PodSpec.spec.tolerations of type "
       "[]v1.Toleration"},
      {R"({"spec":{"containers":"x"}})",
       "json: cannot unmarshal string into Go struct field PodSpec.spec.containers of type "
       "[]v1.Container"},
      {R"({"metadata":{"labels":{"a":5}}})",
       "json: cannot unmarshal number into Go struct field ObjectMeta.metadata.labels of type "
       "string"},
      {R"({"metadata":"x"})",
       "json: cannot unmarshal string into Go struct field Pod.metadata of type v1.ObjectMeta"},
      {R"({"spec":{"containers":[{"resources":{"requests":{"cpu":"1x"}}}]}})",
       "quantities must match the regular expression "
       "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"},
      {R"({"metadata":{"deletionTimestamp":"x"}})",
       "parsing time \"x\" as \"2006-01-02T15:04:05Z07:00\": cannot parse \"x\" as \"2006\""},
      {"[]", "json: cannot unmarshal array into Go value of type v1.Pod"},
  };
  for (const auto& [text, message] : rows) {
    SCOPED_TRACE(text);
    EXPECT_EQ(Conformed(KindId::kPod, text), message);
  }
  EXPECT_EQ(Conformed(KindId::kSecret, R"({"data":{"a":"####"}})"),
            "illegal base64 data at input byte 0");
  EXPECT_EQ(Conformed(KindId::kSecret, R"({"data":{"a":"YQ=="}})"),
            R"({"metadata":{},"data":{"a":"YQ=="}})");
}

TEST(ConformTest, NamesGosOwnTypesAndEmbeddedStructs) {
  const std::vector<std::pair<std::string_view, std::string_view>> rows = {
      {R"({"spec":{"restartPolicy":5}})",
       "json: cannot unmarshal number into Go struct field PodSpec.spec.restartPolicy of type "
       "v1.RestartPolicy"},
      {R"({"spec":{"overhead":[]}})",
       "json: cannot unmarshal array into Go struct field PodSpec.spec.overhead of type "
       "v1.ResourceList"},
      {R"({"spec":{"volumes":[{"emptyDir":"x"}]}})",
       "json: cannot unmarshal string into Go struct field "
       "Volume.spec.volumes.VolumeSource.emptyDir "
       "of type v1.EmptyDirVolumeSource"},
      {R"({"spec":{"containers":[{"readinessProbe":{"httpGet":{"path":1}}}]}})",
       "json: cannot unmarshal number into Go struct field "
       "HTTPGetAction.spec.containers.readinessProbe.ProbeHandler.httpGet.path of type string"},
      // A type that decodes itself ends it, and is what is told.
      {R"({"spec":{"nodeName":5,"overhead":{"cpu":[]}}})",
       "quantities must match the regular expression "
       "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"},
  };
  for (const auto& [text, message] : rows) {
    SCOPED_TRACE(text);
    EXPECT_EQ(Conformed(KindId::kPod, text), message);
  }
  EXPECT_EQ(Conformed(KindId::kSecret, R"({"data":{"a":["x"]}})"),
            "json: cannot unmarshal string into Go struct field Secret.data of type uint8");
  EXPECT_EQ(Conformed(KindId::kSecret, R"({"data":{"a":[1,256]}})"),
            "json: cannot unmarshal number 256 into Go struct field Secret.data of type uint8");
  EXPECT_EQ(Conformed(KindId::kSecret, R"({"data":{"a":[-1]}})"),
            "json: cannot unmarshal number -1 into Go struct field Secret.data of type uint8");
}

// To Go's decoder a list of numbers is bytes, and an empty list none.
TEST(ConformTest, BytesMayBeWrittenAsNumbers) {
  const auto kept = [](std::string_view list, Decoder decoder) {
    Json secret = boost::json::parse(fmt::format(R"({{"data":{{"a":{}}}}})", list));
    const auto problems = Conform(KindOf(KindId::kSecret), secret, decoder);
    return problems ? std::string(TextAt(secret, "data.a")) : problems.error().message;
  };
  EXPECT_EQ(kept("[]", Decoder::kJson), "");
  EXPECT_EQ(kept("[1,2,255]", Decoder::kJson), "AQL/");
  EXPECT_EQ(kept("[null,2]", Decoder::kJson), "AAI=");
  EXPECT_EQ(kept("[]", Decoder::kConverter), "");
  // The converter cuts numbers.
  EXPECT_EQ(kept("[7,null,258,-1,1.0]", Decoder::kConverter), "BwAC/wE=");
  EXPECT_EQ(kept("[1.5]", Decoder::kConverter), "cannot convert float64 to uint8");
  EXPECT_EQ(kept(R"([1,"x"])", Decoder::kConverter), "unrecognized type: uint8");
}

TEST(ConformTest, TheConverterHasItsOwnWordsAndCutsIntegers) {
  const auto converted = [](std::string_view text) {
    Json document = boost::json::parse(text);
    const auto problems = Conform(KindOf(KindId::kPod), document, Decoder::kConverter);
    if (!problems) return problems.error().message;
    std::string out = boost::json::serialize(document);
    for (const std::string& problem : *problems) out += "\n" + problem;
    return out;
  };
  const std::vector<std::pair<std::string_view, std::string_view>> rows = {
      {R"({"spec":[]})", "cannot restore struct from: slice"},
      {R"({"spec":{"nodeSelector":1.5}})", "cannot restore map from float64"},
      {R"({"spec":{"tolerations":"x"}})", "cannot restore slice from string"},
      {R"({"spec":{"nodeName":5}})", "cannot convert int64 to string"},
      {R"({"spec":{"restartPolicy":5}})", "cannot convert int64 to v1.RestartPolicy"},
      {R"({"spec":{"nodeName":true}})", "unrecognized type: string"},
      {R"({"spec":{"priority":"x"}})", "unrecognized type: int32"},
      {R"({"spec":{"priority":1.5}})", "cannot convert float64 to int32"},
      {R"({"spec":{"hostNetwork":1}})", "unrecognized type: bool"},
      {R"({"spec":{"containers":[{"readinessProbe":{"httpGet":{"port":true}}}]}})",
       "json: cannot unmarshal bool into Go value of type int32"},
      {R"({"metadata":{},"spec":{"containers":null,"priority":1099511627777},"status":{}})",
       R"({"metadata":{},"spec":{"containers":null,"priority":1},"status":{}})"},
      {R"({"spec":{"containers":null,"b":1,"a":1}})",
       "{\"metadata\":{},\"spec\":{\"containers\":null},\"status\":{}}\n"
       "unknown field \"spec.a\"\nunknown field \"spec.b\""},
  };
  for (const auto& [text, message] : rows) {
    SCOPED_TRACE(text);
    EXPECT_EQ(converted(text), message);
  }
}

TEST(SameJsonTest, ComparesMembersByKeyItemsByPlaceNumbersByValue) {
  const Json one = {{"a", 1}, {"b", {1, 2}}, {"c", {{"d", "x"}}}};
  EXPECT_TRUE(SameJson(one, Json({{"c", {{"d", "x"}}}, {"a", uint64_t{1}}, {"b", {1, 2}}})));
  EXPECT_FALSE(SameJson(one, Json({{"a", 1}, {"b", {2, 1}}, {"c", {{"d", "x"}}}})));
  EXPECT_FALSE(SameJson(one, Json({{"a", 1}, {"b", {1, 2}}, {"c", {{"e", "x"}}}})));
  EXPECT_FALSE(SameJson(one, Json({{"a", 1}, {"b", {1, 2}}})));
  EXPECT_FALSE(SameJson(one, Json({{"a", 1}, {"b", {1, 2, 3}}, {"c", {{"d", "x"}}}})));
  EXPECT_FALSE(SameJson(Json(JsonObject()), Json(JsonArray())));
  EXPECT_FALSE(SameJson(Json(nullptr), Json(JsonObject())));
}

}  // namespace
}  // namespace berth::api
