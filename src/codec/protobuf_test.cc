// Goal: what clients send as protobuf is read as the JSON that they would have sent. Method:
// messages written by hand with the field numbers of the .proto files, next to their JSON; then
// any bytes.
#include "codec/protobuf.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "api/kinds.h"
#include "codec/json.h"

namespace berth::codec {
namespace {

std::string Varint(uint64_t value) {
  std::string out;
  for (; value >= 0x80; value >>= 7) out += static_cast<char>((value & 0x7f) | 0x80);
  return out + static_cast<char>(value);
}
std::string Number(uint64_t field, uint64_t value) { return Varint(field << 3) + Varint(value); }
std::string Bytes(uint64_t field, std::string_view bytes) {
  return Varint(field << 3 | 2) + Varint(bytes.size()) + std::string(bytes);
}
std::string Entry(uint64_t field, std::string_view key, std::string_view value) {
  return Bytes(field, Bytes(1, key) + Bytes(2, value));
}
std::string Envelope(std::string_view version, std::string_view kind, std::string_view raw) {
  return std::string("k8s\0", 4) + Bytes(1, Bytes(1, version) + Bytes(2, kind)) + Bytes(2, raw) +
         Bytes(3, "") + Bytes(4, "");
}
std::string Read(std::string_view bytes) {
  const Result<api::Json> document = ParseProtobuf(bytes);
  return document ? PrintJson(*document) : document.error().message;
}

TEST(Protobuf, ReadsObjectsAsTheirJson) {
  // metadata = 1 {name = 1, creationTimestamp = 8 {}, labels = 11}, data = 2, binaryData = 3.
  const std::string meta =
      Bytes(1, "a") + Bytes(8, "") + Entry(11, "k", "v") + Number(7, 3) + Bytes(99, "later");
  EXPECT_EQ(Read(Envelope("v1", "ConfigMap",
                          Bytes(1, meta) + Entry(2, "x", "1") +
                              Entry(3, "b", std::string_view("\x00\x01", 2)))),
            R"({"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a",)"
            R"("creationTimestamp":null,"labels":{"k":"v"},"generation":3},"data":{"x":"1"},)"
            R"("binaryData":{"b":"AAE="}})");
  EXPECT_EQ(Read(Envelope("v1", "ConfigMap", Bytes(1, Bytes(8, Number(1, 1'800'000'000))))),
            R"({"kind":"ConfigMap","apiVersion":"v1",)"
            R"("metadata":{"creationTimestamp":"2027-01-15T08:00:00Z"}})");
}

TEST(Protobuf, MembersOfInlinedMessagesStandWhereJsonHasThem) {
  // spec = 2 {volumes = 1 {name = 1, volumeSource = 2 {emptyDir = 2 {sizeLimit = 2}}},
  //   containers = 2 {name = 1, resources = 8 {requests = 2},
  //     livenessProbe = 10 {handler = 1 {httpGet = 2 {port = 2}}}}}
  const std::string volume = Bytes(1, "v") + Bytes(2, Bytes(2, Bytes(2, Bytes(1, "1Gi"))));
  const std::string probe = Bytes(1, Bytes(2, Bytes(2, Number(1, 0) + Number(2, 80))));
  const std::string container =
      Bytes(1, "c") + Bytes(8, Entry(2, "cpu", Bytes(1, "100m"))) + Bytes(10, probe);
  EXPECT_EQ(Read(Envelope("v1", "Pod", Bytes(2, Bytes(1, volume) + Bytes(2, container)))),
            R"({"kind":"Pod","apiVersion":"v1","spec":{"volumes":[{"name":"v",)"
            R"("emptyDir":{"sizeLimit":"1Gi"}}],"containers":[{"name":"c",)"
            R"("resources":{"requests":{"cpu":"100m"}},)"
            R"("livenessProbe":{"httpGet":{"port":80}}}]}})");
}

TEST(Protobuf, SchemasOfDefinitionsAreReadInAllTheirForms) {
  // spec = 2 {versions = 7 {schema = 4 {openAPIV3Schema = 1 {...}}}}; of a schema: type = 5,
  // default = 8 {raw = 1}, maximum = 9, items = 24 {schema = 1}, properties = 29,
  // additionalProperties = 30 {allows = 1, schema = 2}, preserve-unknown-fields = 38.
  const std::string ten("\x49\x00\x00\x00\x00\x00\x00\x24\x40", 9);
  const std::string schema =
      Bytes(1, "") + Number(37, 0) +
      Entry(29, "n", Bytes(1, "") + Bytes(5, "integer") + Bytes(8, Bytes(1, "7")) + ten) +
      Entry(29, "l", Bytes(24, Bytes(1, Bytes(5, "string")))) +
      Entry(29, "m", Bytes(30, Number(1, 1) + Bytes(2, Bytes(5, "string")))) +
      Entry(29, "o", Bytes(30, Number(1, 1))) + Number(38, 1);
  EXPECT_EQ(Read(Envelope("apiextensions.k8s.io/v1", "CustomResourceDefinition",
                          Bytes(2, Bytes(7, Bytes(4, Bytes(1, schema)))))),
            R"({"kind":"CustomResourceDefinition","apiVersion":"apiextensions.k8s.io/v1",)"
            R"("spec":{"versions":[{"schema":{"openAPIV3Schema":{"properties":{)"
            R"("n":{"type":"integer","default":7,"maximum":10},"l":{"items":{"type":"string"}},)"
            R"("m":{"additionalProperties":{"type":"string"}},)"
            R"("o":{"additionalProperties":true}},)"
            R"("x-kubernetes-preserve-unknown-fields":true}}}]}})");
}

TEST(Protobuf, WhatIsNoMessageIsRefusedWithWhereItIs) {
  EXPECT_EQ(Read("{}"), "protobuf: it doesn't begin with k8s and a zero");
  EXPECT_EQ(Read(Envelope("v1", "Nothing", "")),
            "protobuf: no kind \"Nothing\" of \"v1\" has a protobuf form here");
  EXPECT_EQ(Read(Envelope("v1", "ConfigMap", "\x0a\x7f")),
            "protobuf: a length is beyond the end (in ConfigMap)");
  EXPECT_EQ(Read(Envelope("v1", "ConfigMap", Bytes(1, Number(1, 1)))),
            "protobuf: name is of another wire type (in ObjectMeta)");
  EXPECT_EQ(Read(Envelope("v1", "ConfigMap", Bytes(1, Bytes(1, "\xff")))),
            "protobuf: a text is no UTF-8 (in ObjectMeta)");
  std::string deep;
  for (int i = 0; i < 1000; ++i) deep = Bytes(28, deep);
  EXPECT_EQ(Read(Envelope("apiextensions.k8s.io/v1", "CustomResourceDefinition",
                          Bytes(2, Bytes(7, Bytes(4, Bytes(1, deep))))))
                .substr(0, 34),
            "protobuf: messages nest too deep (");
}

RC_GTEST_PROP(Protobuf, AnyBytesDoNoHarm, (const std::string& raw)) {
  for (const api::Kind& kind : api::Kinds())
    static_cast<void>(ParseProtobuf(Envelope(kind.api_version(), kind.name, raw)));
  static_cast<void>(ParseProtobuf(raw));
}

}  // namespace
}  // namespace berth::codec
