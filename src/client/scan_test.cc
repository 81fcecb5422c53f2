// Goal: slicing finds what a parser would find in good JSON, and damaged text is told from good
// text or left to the decoder, never read out of bounds. Method: tables, and every prefix of good
// documents.
#include "client/scan.h"

#include <gtest/gtest.h>

namespace berth::client {
namespace {

constexpr std::string_view kPod =
    R"( {"kind":"Pod","metadata":{"labels":{"name":"no","a\"}":"b\\"},"name":"p","namespace":"ns",)"
    R"("uid":"u","resourceVersion":"7"},"spec":{"list":[1,[2,{"x":"]"}],-3.5e7,null,true]},"last":"\u00e4"})";

TEST(Scan, FindsMembersAtTheirLevel) {
  EXPECT_EQ(StringMember(kPod, "kind"), "Pod");
  EXPECT_EQ(Member(kPod, "metadata", "name"), R"("p")");
  EXPECT_EQ(Member(kPod, "name"), "");
  EXPECT_EQ(Member(kPod, "spec", "list"), R"([1,[2,{"x":"]"}],-3.5e7,null,true])");
  EXPECT_EQ(StringMember(kPod, "last"), "ä");
  const auto identity = ReadIdentity(kPod);
  ASSERT_TRUE(identity.has_value());
  EXPECT_EQ(*identity, (Identity{"ns", "p", "u", "7"}));
}

TEST(Scan, CutsArrays) {
  ArrayScanner array(Member(kPod, "spec", "list"));
  std::vector<std::string_view> items;
  while (array.Next()) items.push_back(array.value());
  EXPECT_FALSE(array.failed());
  EXPECT_EQ(items,
            (std::vector<std::string_view>{"1", R"([2,{"x":"]"}])", "-3.5e7", "null", "true"}));
}

TEST(Scan, EveryPrefixOfADocumentIsDamagedNotMisread) {
  for (size_t size = 0; size < kPod.size(); ++size) {
    const std::string prefix(kPod.substr(0, size));
    ObjectScanner scanner(prefix);
    while (scanner.Next()) {
    }
    EXPECT_TRUE(scanner.failed()) << size;
    (void)ReadIdentity(prefix);
  }
}

TEST(Scan, DamagedTextFails) {
  for (const std::string_view text : {"", "[]", "{", "{\"a\"}", "{\"a\":}", "{\"a\":1,}",
                                      "{\"a\":1 \"b\":2}", "{a:1}", "{\"a\":\"x}", "{,\"a\":1}"}) {
    ObjectScanner scanner(text);
    while (scanner.Next()) {
    }
    EXPECT_TRUE(scanner.failed()) << text;
  }
  for (const std::string_view text : {"", "{}", "[", "[1,", "[1 2]", "[,1]", "[\"x]"}) {
    ArrayScanner scanner(text);
    while (scanner.Next()) {
    }
    EXPECT_TRUE(scanner.failed()) << text;
  }
}

TEST(Scan, UnquoteResolvesEscapes) {
  EXPECT_EQ(Unquote(R"("a\"\\\/\b\f\n\r\tz")"), "a\"\\/\b\f\n\r\tz");
  EXPECT_EQ(Unquote(R"("\u0041\u20ac\ud83d\ude00")"), "A€😀");
  EXPECT_EQ(Unquote(R"("\ud83d")"), "\xEF\xBF\xBD");
  for (const std::string_view text :
       {"", "\"", "x", "\"\\\"", "\"\\x\"", "\"\\u12\"", "\"\\u12g4\""}) {
    EXPECT_EQ(Unquote(text), std::nullopt) << text;
  }
}

TEST(Scan, IdentityNeedsAName) {
  EXPECT_EQ(ReadIdentity("{}"), std::nullopt);
  EXPECT_EQ(ReadIdentity(R"({"metadata":{}})"), std::nullopt);
  EXPECT_EQ(ReadIdentity(R"({"metadata":{"name":5}})"), std::nullopt);
  EXPECT_EQ(ReadIdentity(R"({"metadata":7})"), std::nullopt);
}

}  // namespace
}  // namespace berth::client
