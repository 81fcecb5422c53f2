// Goal: a CustomResourceDefinition makes its kind a resource like any other, for as long as it is
// there. Method: the server stepped by hand: definitions and objects of them written, read, watched
// and deleted, with a restart in between.
#include "apiserver/definitions.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "api/object.h"
#include "apiserver/server_fixture.h"
#include "codec/json.h"
#include "testing/allocations.h"

namespace berth::apiserver {
namespace {

using api::Json;
using env::Method;

constexpr const char* kDefinitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
constexpr const char* kOne =
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/crontabs.stable.example.com";
constexpr const char* kCronTabs = "/apis/stable.example.com/v1/namespaces/default/crontabs";

std::string Definition(std::string_view more = "", std::string_view names = "") {
  return fmt::format(
      R"({{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition",
      "metadata":{{"name":"crontabs.stable.example.com"}},
      "spec":{{"group":"stable.example.com","scope":"Namespaced",
      "names":{{"plural":"crontabs","singular":"crontab","kind":"CronTab","shortNames":["ct"]{1}}},
      "versions":[{{"name":"v1","served":true,"storage":true,
      "subresources":{{"status":{{}},"scale":{{"specReplicasPath":".spec.replicas",
      "statusReplicasPath":".status.replicas","labelSelectorPath":".status.selector"}}}},
      "additionalPrinterColumns":[{{"name":"Spec","type":"string","jsonPath":".spec.cron"}},
      {{"name":"Replicas","type":"integer","jsonPath":".spec.replicas"}}],
      "selectableFields":[{{"jsonPath":".spec.cron"}}],
      "schema":{{"openAPIV3Schema":{{"type":"object","properties":{{
      "spec":{{"type":"object","required":["cron"],"properties":{{
      "cron":{{"type":"string","pattern":"^[0-9* ]+$"}},
      "image":{{"type":"string","default":"cron:1"}},
      "replicas":{{"type":"integer","minimum":1,"maximum":10}}}}}},
      "status":{{"type":"object","properties":{{"replicas":{{"type":"integer"}},
      "selector":{{"type":"string"}}}}}}}}}}}}}}{0}]}}}})",
      more, names);
}

std::string CronTab(std::string_view name, std::string_view spec = R"("cron":"* *")",
                    std::string_view meta = "") {
  return fmt::format(
      R"({{"apiVersion":"stable.example.com/v1","kind":"CronTab","metadata":{{"name":"{}"{}}},"spec":{{{}}}}})",
      name, meta, spec);
}

class DefinitionsTest : public ::testing::Test {
 protected:
  Json Read(std::string_view path) {
    return codec::ParseJson(server_.Call(Method::kGet, std::string(path)).body.view()).value();
  }
  // The status, and the message of a Status.
  std::string Do(Method method, const std::string& path, const std::string& body = "",
                 std::string_view type = "application/json") {
    const env::HttpResponse answer =
        server_.Call(method, path, body, {{"content-type", std::string(type)}});
    const Json json = codec::ParseJson(answer.body.view()).value_or(Json());
    const std::string_view message =
        api::TextAt(json, "kind") == "Status" ? api::TextAt(json, "message") : "";
    return fmt::format("{}{}{}", answer.status, message.empty() ? "" : " ", message);
  }
  std::string Condition(std::string_view path, std::string_view type) {
    const Json object = Read(path);
    for (const Json& one : api::ArrayAt(object, "status.conditions")) {
      if (api::TextAt(one, "type") == type)
        return fmt::format("{} {}", api::TextAt(one, "status"), api::TextAt(one, "reason"));
    }
    return "none";
  }

  ServerFixture server_;
};

TEST_F(DefinitionsTest, AKindIsServedOnceItsDefinitionIsEstablished) {
  EXPECT_EQ(Do(Method::kGet, kCronTabs), "404");
  EXPECT_EQ(Do(Method::kPost, kDefinitions, Definition()), "201");
  EXPECT_EQ(Condition(kOne, "NamesAccepted"), "True NoConflicts");
  EXPECT_EQ(Condition(kOne, "Established"), "True InitialNamesAccepted");
  EXPECT_EQ(api::TextAt(Read(kOne), "status.acceptedNames.kind"), "CronTab");
  EXPECT_EQ(Do(Method::kPost, kCronTabs, CronTab("a")), "201");
  const Json made = Read(std::string(kCronTabs) + "/a");
  EXPECT_EQ(api::TextAt(made, "spec.image"), "cron:1") << "the default";
  EXPECT_EQ(api::IntegerAt(made, "metadata.generation"), 1);
  EXPECT_EQ(api::TextAt(Read(kCronTabs), "kind"), "CronTabList");
  const Json found = Read("/apis/stable.example.com/v1");
  EXPECT_EQ(api::TextAt(api::ArrayAt(found, "resources").at(0), "name"), "crontabs");
}

// What a genuine server publishes of the same schemas.
TEST_F(DefinitionsTest, Version2OfOpenApiSaysNothingOfWhatIsOpenOrNullable) {
  const auto published = [&](std::string_view plural, std::string_view kind,
                             std::string_view schema, std::string_view document) {
    EXPECT_EQ(
        Do(Method::kPost, kDefinitions,
           fmt::format(R"({{"metadata":{{"name":"{0}.stable.example.com"}},"spec":{{"group":)"
                       R"("stable.example.com","scope":"Namespaced","names":{{"plural":"{0}",)"
                       R"("kind":"{1}"}},"versions":[{{"name":"v1","served":true,"storage":true,)"
                       R"("schema":{{"openAPIV3Schema":{2}}}}}]}}}})",
                       plural, kind, schema)),
        "201");
    const Json read = Read(document);
    const Json* schemas = api::FindPath(read, "components.schemas");
    if (schemas == nullptr) schemas = api::FindPath(read, "definitions");
    Json found = schemas->at(fmt::format("com.example.stable.v1.{}", kind));
    api::RemoveMember(found.get_object(), "x-kubernetes-group-version-kind");
    return found;
  };
  constexpr const char* kV2 = "/openapi/v2";
  constexpr const char* kV3 = "/openapi/v3/apis/stable.example.com/v1";
  EXPECT_EQ(
      codec::PrintJson(published("openones", "OpenOne",
                                 R"({"type":"object","description":"told","required":["spec"],)"
                                 R"("x-kubernetes-preserve-unknown-fields":true,)"
                                 R"("properties":{"spec":{"type":"object"}}})",
                                 kV2)),
      R"({"type":"object"})");
  const Json closed = published(
      "closedones", "ClosedOne",
      R"({"type":"object","properties":{"spec":{"type":"object","required":["a","b"],)"
      R"("allOf":[{"required":["d"]}],"properties":{"a":{"type":"string","nullable":true},)"
      R"("b":{"type":"string"},"c":{"type":"object","nullable":true,"description":"cc",)"
      R"("properties":{"x":{"type":"string"}}},"d":{"type":"array","items":{"type":"object",)"
      R"("x-kubernetes-preserve-unknown-fields":true}},"e":{"type":"object",)"
      R"("x-kubernetes-embedded-resource":true,"x-kubernetes-preserve-unknown-fields":true}}},)"
      R"("other":{"type":"object","required":["a"],"properties":{"a":{"type":"string",)"
      R"("nullable":true}}}}})",
      kV2);
  EXPECT_EQ(codec::PrintJson(closed.at("properties").at("spec")),
            R"({"properties":{"a":{},"b":{"type":"string"},"c":{"description":"cc"},)"
            R"("d":{"items":{"x-kubernetes-preserve-unknown-fields":true},"type":"array"},)"
            R"("e":{"x-kubernetes-embedded-resource":true,)"
            R"("x-kubernetes-preserve-unknown-fields":true}},"required":["b"],"type":"object"})");
  EXPECT_EQ(codec::PrintJson(closed.at("properties").at("other")),
            R"({"properties":{"a":{}},"type":"object"})");
  EXPECT_TRUE(closed.at("properties").get_object().contains("metadata"));
  // Objects within objects have what all have.
  constexpr std::string_view kEmbedded =
      R"({"type":"object","properties":{"spec":{"type":"object","required":["spec"],)"
      R"("x-kubernetes-embedded-resource":true,"properties":{"spec":{"type":"object"}}},)"
      R"("open":{"type":"object","x-kubernetes-embedded-resource":true,)"
      R"("x-kubernetes-preserve-unknown-fields":true}}})";
  const Json third = published("embeddedones", "EmbeddedOne", kEmbedded, kV3);
  EXPECT_EQ(codec::PrintJson(third.at("properties").at("spec").at("required")),
            R"(["spec","kind","apiVersion"])");
  EXPECT_EQ(codec::PrintJson(third.at("properties").at("open").at("required")),
            R"(["kind","apiVersion"])");
  const Json second = published("embeddedtwos", "EmbeddedTwo", kEmbedded, kV2);
  EXPECT_EQ(codec::PrintJson(second.at("properties").at("spec").at("required")),
            R"(["spec","kind","apiVersion"])");
  EXPECT_EQ(second.at("properties").at("spec").at("properties").at("metadata").at("$ref"),
            "#/definitions/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta");
}

TEST_F(DefinitionsTest, ObjectsArePrunedAndValidated) {
  Do(Method::kPost, kDefinitions, Definition());
  EXPECT_EQ(Do(Method::kPost, kCronTabs, CronTab("a", R"("cron":"x")")),
            "422 CronTab.stable.example.com \"a\" is invalid: spec.cron: Invalid value: \"x\": "
            "spec.cron in body should match '^[0-9* ]+$'");
  EXPECT_EQ(Do(Method::kPost, kCronTabs, CronTab("a", R"("replicas":11)")),
            "422 CronTab.stable.example.com \"a\" is invalid: [spec.replicas: Invalid value: 11: "
            "spec.replicas in body should be less than or equal to 10, spec.cron: Required value]");
  EXPECT_EQ(Do(Method::kPost, kCronTabs, CronTab("a", R"("cron":"*","more":1)")), "201");
  EXPECT_EQ(api::FindPath(Read(std::string(kCronTabs) + "/a"), "spec.more"), nullptr);
  EXPECT_EQ(Do(Method::kPost, std::string(kCronTabs) + "?fieldValidation=Strict",
               CronTab("b", R"("cron":"*","more":1)")),
            "400 CronTab in version \"v1\" cannot be handled as a CronTab: strict decoding error: "
            "unknown field \"spec.more\"");
  EXPECT_EQ(Do(Method::kPatch, std::string(kCronTabs) + "/a", R"({"spec":{"replicas":0}})",
               "application/merge-patch+json"),
            "422 CronTab.stable.example.com \"a\" is invalid: spec.replicas: Invalid value: 0: "
            "spec.replicas in body should be greater than or equal to 1");
}

TEST_F(DefinitionsTest, StatusScaleColumnsAndFieldsAreTheDefinitions) {
  Do(Method::kPost, kDefinitions, Definition());
  Do(Method::kPost, kCronTabs, CronTab("a", R"("cron":"*","replicas":3)"));
  Do(Method::kPost, kCronTabs, CronTab("b", R"("cron":"1")"));
  const std::string a = std::string(kCronTabs) + "/a";
  EXPECT_EQ(Do(Method::kPatch, a + "/status", R"({"status":{"replicas":2,"selector":"a=b"}})",
               "application/merge-patch+json"),
            "200");
  EXPECT_EQ(api::IntegerAt(Read(a), "metadata.generation"), 1) << "a status is no generation";
  const Json scale = Read(a + "/scale");
  EXPECT_EQ(api::IntegerAt(scale, "spec.replicas"), 3);
  EXPECT_EQ(api::IntegerAt(scale, "status.replicas"), 2);
  EXPECT_EQ(api::TextAt(scale, "status.selector"), "a=b");
  EXPECT_EQ(Do(Method::kPatch, a + "/scale", R"({"spec":{"replicas":5}})",
               "application/merge-patch+json"),
            "200");
  EXPECT_EQ(api::IntegerAt(Read(a), "spec.replicas"), 5);
  const env::HttpResponse table = server_.Call(
      Method::kGet, kCronTabs, "", {{"accept", "application/json;as=Table;v=v1;g=meta.k8s.io"}});
  EXPECT_NE(table.body.view().find(R"("cells":["a","*",5])"), std::string_view::npos)
      << table.body.view();
  const Json picked = Read(std::string(kCronTabs) + "?fieldSelector=spec.cron%3D1");
  ASSERT_EQ(api::ArrayAt(picked, "items").size(), 1u);
  EXPECT_EQ(api::TextAt(api::ArrayAt(picked, "items").at(0), "metadata.name"), "b");
  EXPECT_EQ(Do(Method::kGet, std::string(kCronTabs) + "?fieldSelector=spec.image%3D1"),
            "400 field label not supported: spec.image");
}

TEST_F(DefinitionsTest, ADeletedDefinitionTakesItsObjectsAlongAndEndsTheirWatches) {
  Do(Method::kPost, kDefinitions, Definition());
  Do(Method::kPost, kCronTabs, CronTab("a"));
  Do(Method::kPost, kCronTabs, CronTab("b", R"("cron":"*")", R"(,"finalizers":["x.y/z"])"));
  const env::ExchangeId watch =
      server_.Send(Method::kGet, std::string(kCronTabs) + "?watch=true&resourceVersion=0");
  server_.Settle();
  EXPECT_EQ(Do(Method::kDelete, kOne), "200");
  EXPECT_EQ(Condition(kOne, "Terminating"), "True InstanceDeletionInProgress");
  EXPECT_EQ(Do(Method::kPost, kCronTabs, CronTab("c")),
            "403 crontabs.stable.example.com \"c\" is forbidden: create not allowed while custom "
            "resource definition is terminating");
  EXPECT_EQ(Do(Method::kGet, std::string(kCronTabs) + "/a").substr(0, 3), "404");
  EXPECT_EQ(Do(Method::kGet, std::string(kCronTabs) + "/b"), "200") << "its finalizer holds it";
  EXPECT_TRUE(server_.stream(watch).open);
  EXPECT_EQ(Do(Method::kPatch, std::string(kCronTabs) + "/b", R"({"metadata":{"finalizers":null}})",
               "application/merge-patch+json"),
            "200");
  EXPECT_EQ(Do(Method::kGet, kOne).substr(0, 3), "404");
  EXPECT_EQ(Do(Method::kGet, kCronTabs), "404");
  EXPECT_FALSE(server_.stream(watch).open);
  EXPECT_NE(server_.stream(watch).text.find(R"("type":"DELETED")"), std::string::npos);
  EXPECT_EQ(Do(Method::kPost, kDefinitions, Definition()), "201");
  EXPECT_EQ(api::ArrayAt(Read(kCronTabs), "items").size(), 0u);
}

// The server's own write of an object knows where its managedFields are.
TEST_F(DefinitionsTest, WhatADeletedDefinitionWaitsForCanBeChanged) {
  const auto as_kubectl = [&](Method method, const std::string& path, const std::string& body,
                              std::string_view type) {
    return server_
        .Call(method, path, body,
              {{"content-type", std::string(type)}, {"user-agent", "kubectl/v1.36"}})
        .status;
  };
  EXPECT_EQ(as_kubectl(Method::kPost, kDefinitions, Definition(), "application/json"), 201);
  EXPECT_EQ(as_kubectl(Method::kPatch, kOne, R"({"metadata":{"labels":{"a":"b"}}})",
                       "application/merge-patch+json"),
            200);
  EXPECT_EQ(api::ArrayAt(Read(kOne), "metadata.managedFields").size(), 1u);
  const std::string one = std::string(kCronTabs) + "/a";
  EXPECT_EQ(
      as_kubectl(Method::kPost, kCronTabs,
                 CronTab("a", R"("cron":"*")", R"(,"finalizers":["x.y/z"])"), "application/json"),
      201);
  Do(Method::kDelete, kOne);
  EXPECT_EQ(Do(Method::kGet, one), "200");
  EXPECT_EQ(as_kubectl(Method::kPatch, one, R"({"metadata":{"labels":{"a":"b"}}})",
                       "application/merge-patch+json"),
            200);
  EXPECT_EQ(api::ArrayAt(Read(one), "metadata.managedFields").size(), 1u);
  EXPECT_EQ(as_kubectl(Method::kPatch, one, R"({"metadata":{"finalizers":null}})",
                       "application/merge-patch+json"),
            200);
  EXPECT_EQ(Do(Method::kGet, kOne).substr(0, 3), "404");
}

TEST_F(DefinitionsTest, ARestartServesTheSame) {
  Do(Method::kPost, kDefinitions, Definition());
  Do(Method::kPost, kCronTabs, CronTab("a"));
  const std::string before(server_.Call(Method::kGet, std::string(kCronTabs) + "/a").body.view());
  ServerFixture again({}, server_.journal());
  EXPECT_EQ(again.Call(Method::kGet, std::string(kCronTabs) + "/a").body.view(), before);
  // The crash came before anything was written of the definition's acceptance.
  std::vector<env::JournalRecord> records;
  for (const env::JournalRecord& record : server_.journal()) {
    records.push_back(record);
    if (record.key.ends_with("crontabs.stable.example.com")) break;
  }
  ServerFixture late({}, records);
  EXPECT_EQ(late.Call(Method::kGet, kCronTabs).status, 200);
}

TEST_F(DefinitionsTest, NamesThatAreTakenAreNotServed) {
  Do(Method::kPost, kDefinitions, Definition());
  std::string other = Definition("", R"(,"listKind":"OtherList")");
  const auto replace = [&](std::string_view from, std::string_view to) {
    for (size_t at = 0; (at = other.find(from, at)) != std::string::npos; at += to.size())
      other.replace(at, from.size(), to);
  };
  replace("crontabs", "others");
  replace("\"crontab\"", "\"other\"");
  EXPECT_EQ(Do(Method::kPost, kDefinitions, other), "201");
  const std::string path = std::string(kDefinitions) + "/others.stable.example.com";
  EXPECT_EQ(Condition(path, "NamesAccepted"), "False KindConflict") << "the last counts";
  EXPECT_EQ(Condition(path, "Established"), "False NotAccepted");
  // Those that nobody has are accepted, each by itself.
  EXPECT_EQ(api::TextAt(Read(path), "status.acceptedNames.plural"), "others");
  EXPECT_EQ(api::TextAt(Read(path), "status.acceptedNames.kind"), "");
  EXPECT_EQ(Do(Method::kDelete, kOne), "200");
  EXPECT_EQ(Condition(path, "Established"), "True InitialNamesAccepted")
      << "the names are free again";
  // Who is established stays so, with the names that it has.
  EXPECT_EQ(Do(Method::kPost, kDefinitions, Definition()), "201");
  EXPECT_EQ(Condition(kOne, "Established"), "False NotAccepted");
  EXPECT_EQ(Do(Method::kPatch, path, R"({"spec":{"names":{"shortNames":["crontab"]}}})",
               "application/merge-patch+json"),
            "200");
  EXPECT_EQ(Condition(path, "NamesAccepted"), "False ShortNamesConflict");
  EXPECT_EQ(Condition(path, "Established"), "True InitialNamesAccepted");
  EXPECT_EQ(api::TextsAt(Read(path), "status.acceptedNames.shortNames"),
            std::vector<std::string>{"ct"});
}

TEST_F(DefinitionsTest, OnlyADeletionPutsTheFinalizer) {
  Do(Method::kPost, kDefinitions, Definition());
  EXPECT_TRUE(api::ArrayAt(Read(kOne), "metadata.finalizers").empty());
  Do(Method::kPost, kCronTabs, CronTab("a", R"("cron":"*")", R"(,"finalizers":["x.y/z"])"));
  const Json answer = codec::ParseJson(server_.Call(Method::kDelete, kOne).body.view()).value();
  EXPECT_EQ(api::ArrayAt(answer, "metadata.finalizers").size(), 1U);
  EXPECT_EQ(api::IntegerAt(answer, "metadata.generation"), 1);
  EXPECT_EQ(api::FindPath(answer, "metadata.deletionGracePeriodSeconds"), nullptr);
  EXPECT_EQ(api::TextAt(api::ArrayAt(answer, "status.conditions")[2], "reason"),
            "InstanceDeletionPending");
  EXPECT_EQ(Condition(kOne, "Terminating"), "True InstanceDeletionInProgress");
}

// What an older version stored, which didn't look, goes on, and says what isn't kept.
TEST_F(DefinitionsTest, AStoredSchemaThatCantBeEnforcedSaysSo) {
  Do(Method::kPost, kDefinitions, Definition());
  std::vector<env::JournalRecord> records = server_.journal();
  for (env::JournalRecord& record : records) {
    std::string text(record.value.view());
    const std::string_view from = "^[0-9* ]+$";
    for (size_t at = 0; (at = text.find(from, at)) != std::string::npos;)
      text.replace(at, from.size(), "(((((a{99}){99}){99}){99}");
    record.value = Bytes(std::move(text));
  }
  ServerFixture again({}, std::move(records));
  const Json read = codec::ParseJson(again.Call(Method::kGet, kOne).body.view()).value();
  const Json& condition = api::ArrayAt(read, "status.conditions")[2];
  EXPECT_EQ(api::TextAt(condition, "type"), "NonStructuralSchema");
  EXPECT_EQ(api::TextAt(condition, "status"), "True");
  EXPECT_TRUE(api::TextAt(condition, "message")
                  .starts_with("spec.validation.openAPIV3Schema.properties[spec].properties[cron]."
                               "pattern: Invalid value: \"(((((a{99}"))
      << api::TextAt(condition, "message");
  EXPECT_EQ(again.Call(Method::kGet, kCronTabs).status, 200);
  // A schema that can be is not spoken of.
  EXPECT_EQ(again
                .Call(Method::kPatch, kOne,
                      R"([{"op":"remove","path":"/spec/versions/0/schema/)"
                      R"(openAPIV3Schema/properties/spec/properties/cron/pattern"}])",
                      {{"content-type", "application/json-patch+json"}})
                .status,
            200);
  const Json mended = codec::ParseJson(again.Call(Method::kGet, kOne).body.view()).value();
  EXPECT_EQ(api::ArrayAt(mended, "status.conditions").size(), 2U);
}

// A definition is large: what one of them costs is not to grow by the others'.
TEST_F(DefinitionsTest, AWriteOfOneReadsNoOthers) {
  std::string properties;
  for (int i = 0; i < 200; ++i)
    properties += fmt::format(R"({}"p{}":{{"type":"string"}})", i == 0 ? "" : ",", i);
  const auto make = [&](int number) {
    return Do(Method::kPost, kDefinitions,
              fmt::format(R"({{"apiVersion":"apiextensions.k8s.io/v1",
              "kind":"CustomResourceDefinition","metadata":{{"name":"d{0}s.x.io"}},
              "spec":{{"group":"x.io","scope":"Namespaced","names":{{"plural":"d{0}s",
              "kind":"D{0}"}},"versions":[{{"name":"v1","served":true,"storage":true,"schema":
              {{"openAPIV3Schema":{{"type":"object","properties":{{{1}}}}}}}}}]}}}})",
                          number, properties));
  };
  const auto cost = [&](std::string_view label) {
    const int64_t before = testing::AllocationsCount();
    EXPECT_EQ(Do(Method::kPatch, std::string(kDefinitions) + "/d0s.x.io",
                 fmt::format(R"({{"metadata":{{"labels":{{"a":"{}"}}}}}})", label),
                 "application/merge-patch+json"),
              "200");
    return testing::AllocationsCount() - before;
  };
  ASSERT_EQ(make(0), "201");
  ASSERT_EQ(make(1), "201");
  const int64_t with_few = cost("1");
  for (int i = 2; i < 40; ++i) ASSERT_EQ(make(i), "201");
  EXPECT_LE(cost("2"), 2 * with_few);
  EXPECT_EQ(Do(Method::kGet, "/apis/x.io/v1/namespaces/default/d39s"), "200");
}

TEST_F(DefinitionsTest, VersionsAreToldAsTheyAreAskedFor) {
  constexpr std::string_view kSecond =
      R"(,{"name":"v2","served":true,"storage":false,"schema":{"openAPIV3Schema":{"type":"object",
      "properties":{"spec":{"type":"object","properties":{"cron":{"type":"string"},
      "zone":{"type":"string","default":"UTC"}}}}}}})";
  EXPECT_EQ(Do(Method::kPost, kDefinitions, Definition(kSecond)), "201");
  Do(Method::kPost, kCronTabs, CronTab("a"));
  const std::string second = "/apis/stable.example.com/v2/namespaces/default/crontabs";
  const Json told = Read(second + "/a");
  EXPECT_EQ(api::TextAt(told, "apiVersion"), "stable.example.com/v2");
  EXPECT_EQ(api::TextAt(told, "spec.zone"), "UTC");
  EXPECT_EQ(api::FindPath(told, "spec.image"), nullptr) << "v2 doesn't know it";
  const Json group = Read("/apis/stable.example.com");
  EXPECT_EQ(api::TextAt(group, "preferredVersion.version"), "v2");
  std::string body = CronTab("b", R"("cron":"*","zone":"CET")");
  body.replace(body.find("/v1"), 3, "/v2");
  EXPECT_EQ(Do(Method::kPost, second, body), "201");
  EXPECT_EQ(api::TextAt(Read(std::string(kCronTabs) + "/b"), "apiVersion"),
            "stable.example.com/v1");
}

TEST_F(DefinitionsTest, ADefinitionOfANativeKindIsStoredAndChangesNothing) {
  const std::string native =
      R"({"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition",
      "metadata":{"name":"workloads.kueue.x-k8s.io"},"spec":{"group":"kueue.x-k8s.io",
      "scope":"Namespaced","names":{"plural":"workloads","kind":"Workload","singular":"workload"},
      "versions":[{"name":"v1beta2","served":true,"storage":true,"schema":{"openAPIV3Schema":
      {"type":"object"}}}]}})";
  const env::HttpResponse answer =
      server_.Call(Method::kPost, kDefinitions, native, {{"content-type", "application/json"}});
  EXPECT_EQ(answer.status, 201);
  EXPECT_NE(env::FindHeader(answer.headers, "warning").value_or("").find("served by berth itself"),
            std::string_view::npos);
  const std::string path = std::string(kDefinitions) + "/workloads.kueue.x-k8s.io";
  EXPECT_EQ(Condition(path, "Established"), "True InitialNamesAccepted");
  EXPECT_EQ(Do(Method::kDelete, path), "200");
  EXPECT_EQ(Do(Method::kGet, path).substr(0, 3), "404");
  EXPECT_EQ(Do(Method::kGet, "/apis/kueue.x-k8s.io/v1beta2/workloads"), "200");
}

TEST_F(DefinitionsTest, WhatCantBeServedIsRefused) {
  std::string wrong = Definition();
  wrong.replace(wrong.find("crontabs.stable"), 15, "others.stable1");
  EXPECT_NE(
      Do(Method::kPost, kDefinitions, wrong).find("must be spec.names.plural+\".\"+spec.group"),
      std::string::npos)
      << Do(Method::kPost, kDefinitions, wrong);
  std::string pattern = Definition();
  pattern.replace(pattern.find("^[0-9* ]+$"), 10, "[");
  EXPECT_NE(Do(Method::kPost, kDefinitions, pattern).find("must be a valid regular expression"),
            std::string::npos);
  std::string stored = Definition();
  stored.replace(stored.find("\"storage\":true"), 14, "\"storage\":false");
  EXPECT_NE(Do(Method::kPost, kDefinitions, stored)
                .find("must have exactly one version marked as storage version"),
            std::string::npos);
  std::string deep = R"({"type":"string"})";
  for (int i = 0; i < 200; ++i) deep = fmt::format(R"({{"type":"array","items":{}}})", deep);
  std::string nested = Definition();
  const std::string image = R"({"type":"string","default":"cron:1"})";
  nested.replace(nested.find(image), image.size(), deep);
  EXPECT_EQ(Do(Method::kPost, kDefinitions, nested).substr(0, 1), "4");
}

}  // namespace
}  // namespace berth::apiserver
