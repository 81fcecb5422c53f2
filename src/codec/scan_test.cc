// Goal: slicing finds what a parser would find in good JSON, and damaged text is told from good
// text or left to the decoder, never read out of bounds. Method: tables, and every prefix of good
// documents.
#include "codec/scan.h"

#include <gtest/gtest.h>

namespace berth::codec {
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

TEST(Scan, AnObjectInsideIsReadInTheSamePass) {
  ObjectScanner root(kPod);
  ASSERT_TRUE(root.Next());
  ASSERT_TRUE(root.Next());
  ASSERT_EQ(root.key(), "metadata");
  ObjectScanner inner(root.rest());
  std::string keys;
  while (inner.Next()) keys += std::string(inner.key()) + " ";
  EXPECT_FALSE(inner.failed());
  EXPECT_EQ(keys, "labels name namespace uid resourceVersion ");
  EXPECT_TRUE(inner.behind().starts_with(R"(,"spec":)")) << inner.behind();
  ASSERT_TRUE(root.Next());
  EXPECT_EQ(root.key(), "spec");
}

TEST(Scan, StringsOfAnyLengthEndAtTheirQuote) {
  for (size_t size = 0; size < 40; ++size) {
    for (const std::string_view end : {"", "\\\\", "\\\"", "\xa2\x21\x23", "ä"}) {
      const std::string text = "{\"" + std::string(size, 'x') + std::string(end) + "\":1}";
      ObjectScanner scanner(text);
      ASSERT_TRUE(scanner.Next()) << text;
      EXPECT_EQ(scanner.key(), std::string(size, 'x') + std::string(end));
      EXPECT_EQ(scanner.value(), "1");
    }
  }
}

TEST(Scan, ABrokenValueIsFoundWhenItIsAskedFor) {
  ObjectScanner scanner(R"({"a":{"b":1)");
  ASSERT_TRUE(scanner.Next());
  EXPECT_FALSE(scanner.failed());
  EXPECT_EQ(scanner.value(), "");
  EXPECT_TRUE(scanner.failed());
  EXPECT_FALSE(scanner.Next());
}

}  // namespace
}  // namespace berth::codec
