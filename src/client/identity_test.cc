// Goal: the identity of an object is read whatever stands around it, and damage never makes up one.
// Method: a document with traps, each of its prefixes, and a table of what is no identity.
#include "client/identity.h"

#include <gtest/gtest.h>

namespace berth::client {
namespace {

constexpr std::string_view kPod =
    R"( {"kind":"Pod","metadata":{"labels":{"name":"no","a\"}":"b\\"},"name":"p","namespace":"ns",)"
    R"("uid":"u","resourceVersion":"7"},"spec":{"list":[1,[2,{"x":"]"}],-3.5e7,null,true]},"last":"\u00e4"})";

TEST(Identity, IsReadFromMetadata) {
  const auto identity = ReadIdentity(kPod);
  ASSERT_TRUE(identity.has_value());
  EXPECT_EQ(*identity, (Identity{"ns", "p", "u", "7"}));
}

TEST(Identity, IsReadWhenAllOfMetadataIsThere) {
  const size_t end = kPod.find(R"(,"spec")");
  for (size_t size = 0; size < kPod.size(); ++size) {
    EXPECT_EQ(ReadIdentity(kPod.substr(0, size)).has_value(), size >= end) << size;
  }
}

TEST(Identity, NeedsAName) {
  for (const std::string_view text :
       {"{}", R"({"metadata":{}})", R"({"metadata":{"name":5}})", R"({"metadata":7})",
        R"({"metadata":{"name":"a","uid":"x\q"}})", R"({"metadata":{"name":"a" "uid":"u"}})",
        R"({"metadata":["name","a"]})", R"(["metadata",{"name":"a"}])"}) {
    EXPECT_EQ(ReadIdentity(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace berth::client
