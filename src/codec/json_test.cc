// Goal: JSON text and documents convert without loss, and bad text is refused with its place.
// Method: tables, with Go's messages; round trips over generated documents.

#include "codec/json.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <array>
#include <string>
#include <vector>

#include "codec/json_parsers.h"

namespace berth::codec {
namespace {

using api::Json;

std::string Reprint(std::string_view text) {
  const Result<Json> value = ParseJson(text);
  return value ? PrintJson(*value) : "error: " + value.error().message;
}

TEST(JsonTest, KeepsOrderIntegersAndStrings) {
  EXPECT_EQ(Reprint(R"( { "b" : 1 , "a" : [ true , null , "x" ] } )"),
            R"({"b":1,"a":[true,null,"x"]})");
  EXPECT_EQ(Reprint("9223372036854775807"), "9223372036854775807");
  EXPECT_EQ(Reprint("-9223372036854775808"), "-9223372036854775808");
  EXPECT_EQ(Reprint("18446744073709551615"), "18446744073709551615");
  EXPECT_EQ(Reprint("18446744073709551616"), "18446744073709552000");
  EXPECT_EQ(Reprint("1.50"), "1.5");
  EXPECT_EQ(Reprint("1e21"), "1e+21");
  EXPECT_EQ(Reprint("1e-7"), "1e-7");
  EXPECT_EQ(Reprint("-1.5e-09"), "-1.5e-9");
  EXPECT_EQ(Reprint("1e-10"), "1e-10");
  EXPECT_EQ(Reprint("1e-400"), "0");
  EXPECT_EQ(Reprint("-0e0"), "0");
  EXPECT_EQ(Reprint("-0"), "0");
  EXPECT_EQ(Reprint("1.0"), "1");
  EXPECT_EQ(Reprint(R"("\u0041\n\/\ud83d\ude00\ud800é")"),
            "\"A\\n/\xF0\x9F\x98\x80\xEF\xBF\xBD\xC3\xA9\"");
  EXPECT_EQ(Reprint(R"("\u0001\u001f")"), R"("\u0001\u001f")");
  EXPECT_EQ(Reprint(R"("<&>")"), R"("<&>")");
}

TEST(JsonTest, SaysWhatIsWrongAndWhere) {
  const std::vector<std::pair<std::string_view, std::string_view>> rows = {
      {"", "unexpected end of JSON input (line 1, column 1, offset 0)"},
      {"{", "unexpected end of JSON input (line 1, column 2, offset 1)"},
      {"{\n  \"a\": x}",
       "invalid character 'x' looking for beginning of value (line 2, column 8, offset 9)"},
      {"{a}",
       "invalid character 'a' looking for beginning of object key string (line 1, column 2, offset "
       "1)"},
      {"{\"a\" 1}", "invalid character '1' after object key (line 1, column 6, offset 5)"},
      {"{\"a\":1 2}",
       "invalid character '2' after object key:value pair (line 1, column 8, offset 7)"},
      {"[1 2]", "invalid character '2' after array element (line 1, column 4, offset 3)"},
      {"[1,]", "invalid character ']' looking for beginning of value (line 1, column 4, offset 3)"},
      {"tru", "unexpected end of JSON input (line 1, column 4, offset 3)"},
      {"trux",
       "invalid character 'x' in literal true (expecting 'e') (line 1, column 4, offset 3)"},
      {"1 1", "invalid character '1' after top-level value (line 1, column 3, offset 2)"},
      {"01", "invalid character '1' after top-level value (line 1, column 2, offset 1)"},
      {"1.", "unexpected end of JSON input (line 1, column 3, offset 2)"},
      {"-x", "invalid character 'x' in numeric literal (line 1, column 2, offset 1)"},
      {"\"a\nb\"", "invalid character '\\n' in string literal (line 1, column 3, offset 2)"},
      {"\"\\q\"", "invalid character 'q' in string escape code (line 1, column 3, offset 2)"},
      {"\"\\u00g0\"",
       "invalid character 'g' in \\u hexadecimal character escape (line 1, column 6, offset 5)"},
      {"1e999",
       "cannot unmarshal number 1e999 into a value of type float64 (line 1, column 1, offset 0)"},
  };
  for (const auto& [text, message] : rows) {
    SCOPED_TRACE(text);
    const Result<Json> value = ParseJson(text);
    ASSERT_FALSE(value.has_value());
    EXPECT_EQ(value.error().message, message);
  }
}

TEST(JsonTest, LimitsNesting) {
  const auto nested = [](size_t depth) {
    return std::string(depth, '[') + std::string(depth, ']');
  };
  EXPECT_TRUE(ParseJson(nested(128)).has_value());
  const Result<Json> deeper = ParseJson(nested(129));
  ASSERT_FALSE(deeper.has_value());
  EXPECT_EQ(deeper.error().code, ErrorCode::kTooLarge);
  EXPECT_FALSE(ParseJson(std::string(1'000'000, '[')).has_value());
}

TEST(JsonTest, ReportsDuplicateKeysAndKeepsTheLast) {
  const Result<ParsedJson> parsed =
      ParseJsonReporting(R"({"a":1,"spec":{"c":[{"x":1,"x":2}],"c2":0},"a":3})");
  ASSERT_TRUE(parsed.has_value());
  EXPECT_EQ(parsed->duplicates, (std::vector<std::string>{"spec.c[0].x", "a"}));
  EXPECT_EQ(PrintJson(parsed->value), R"({"a":3,"spec":{"c":[{"x":2}],"c2":0}})");
  // As Go's maps have it: nothing of the first one is left.
  const std::string_view twice = R"({"m":{"a":1,"b":2},"m":{"c":3}})";
  EXPECT_EQ(PrintJson(ParseJson(twice).value()), R"({"m":{"a":1,"b":2,"c":3}})");
  EXPECT_EQ(PrintJson(ParseJson(twice, {.merges_duplicates = false}).value()), R"({"m":{"c":3}})");
}

TEST(JsonTest, BytesThatAreNoTextBecomeReplacementCharacters) {
  EXPECT_EQ(Reprint("\"a\xC0\x80z\""), "\"a\xEF\xBF\xBD\xEF\xBF\xBDz\"");
  EXPECT_EQ(Reprint("\"\xF0\x9F\""), "\"\xEF\xBF\xBD\xEF\xBF\xBD\"");
  EXPECT_EQ(Reprint("\"\xED\xA0\x80\"").size(), 11U);
}

TEST(JsonTest, DuplicateObjectsMerge) {
  EXPECT_EQ(Reprint(R"({"d":{"a":1,"b":{"c":1}},"d":{"b":{"e":2},"a":3}})"),
            R"({"d":{"a":3,"b":{"c":1,"e":2}}})");
}

TEST(JsonTest, PrintsForPeople) {
  EXPECT_EQ(PrintJsonPretty(ParseJson(R"({"a":[1,{}],"b":{"c":"d"}})").value()),
            "{\n  \"a\": [\n    1,\n    {}\n  ],\n  \"b\": {\n    \"c\": \"d\"\n  }\n}");
}

// The scan takes eight bytes at once: every place of every kind of byte in and around a word.
TEST(JsonTest, EscapesWhereverTheByteStands) {
  for (const char special : {'"', '\\', '\n', '\x01', '\x1f', '\x7f', '!', '\xc3'}) {
    for (size_t place = 0; place < 20; ++place) {
      std::string text(20, 'a');
      text[place] = special;
      std::string slow = "\"";
      for (const char c : text) {
        if (c == '"' || c == '\\') slow += '\\';
        if (c == '\n') {
          slow += "\\n";
        } else if (c == '\xc3') {
          slow += "\uFFFD";  // Alone it begins no character.
        } else if (c == '\x01' || c == '\x1f') {
          slow += c == '\x01' ? "\\u0001" : "\\u001f";
        } else {
          slow += c;
        }
      }
      std::string fast;
      AppendJsonString(text, fast);
      EXPECT_EQ(fast, slow + "\"");
    }
  }
}

// Paths and queries of requests are quoted in answers, and hold any bytes.
TEST(JsonTest, PrintsUtf8WhateverTheBytesAre) {
  const auto print = [](std::string_view text) {
    std::string out;
    AppendJsonString(text, out);
    return out;
  };
  EXPECT_EQ(print("\xff\xfe"), "\"\uFFFD\uFFFD\"");
  EXPECT_EQ(print("a\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80z"),
            "\"a\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80z\"");
  EXPECT_EQ(print("abcdefg\xe2\x82"), "\"abcdefg\uFFFD\uFFFD\"");
  EXPECT_EQ(print("\xed\xa0\x80\""), "\"\uFFFD\uFFFD\uFFFD\\\"\"");
  EXPECT_TRUE(rc::check("bytes", [&](const std::string& bytes) {
    const std::string out = print(bytes);
    RC_ASSERT(ValidUtf8Prefix(out) == out.size());
    // As the parser mends what it reads.
    RC_ASSERT(ParseJson(out).value() == ParseJson(PrintJson(Json(bytes))).value());
  }));
}

TEST(JsonTest, TextRoundTripsThroughPrintAndParse) {
  EXPECT_TRUE(rc::check("strings", [](const std::string& bytes) {
    const std::string text = bytes.substr(0, ValidUtf8Prefix(bytes));
    const Json value = {{text, text}};
    const Result<Json> again = ParseJson(PrintJson(value));
    RC_ASSERT(again.has_value());
    RC_ASSERT(*again == value);
  }));
  EXPECT_TRUE(rc::check("doubles", [](double number) {
    const Result<Json> again = ParseJson(PrintJson(Json(number)));
    RC_ASSERT(again.has_value());
    RC_ASSERT(again->to_number<double>() == number);
  }));
  EXPECT_TRUE(rc::check("each character stands at each place of a word", [] {
    std::string text(*rc::gen::inRange<size_t>(0, 20), 'a');
    const std::string odd = *rc::gen::element<std::string>(
        "\"", "\\", std::string(1, '\0'), "\n", "\x1f", " ", "~", "\x7f", "é", "\"\"", "!", "#");
    text.insert(*rc::gen::inRange<size_t>(0, text.size() + 1), odd);
    text.insert(0, odd);
    std::string naive = "\"";
    for (const char c : text) {
      const auto byte = static_cast<unsigned char>(c);
      if (c == '"' || c == '\\') {
        naive += {'\\', c};
      } else if (c == '\n') {
        naive += "\\n";
      } else if (byte < 0x20) {
        naive += byte == 0 ? "\\u0000" : "\\u001f";
      } else {
        naive += c;
      }
    }
    naive += '"';
    RC_ASSERT(PrintJson(Json(text)) == naive);
    RC_ASSERT(ParseJson(naive).value() == Json(text));
  }));
  EXPECT_TRUE(rc::check("any bytes do no harm", [](const std::string& bytes) {
    static_cast<void>(ParseJson(bytes));
    static_cast<void>(ParseJson("{\"" + bytes + "\":[" + bytes + "]}"));
  }));
}

// Any document, as deep as a pod.
Json AnyJson(int depth) {
  switch (*rc::gen::inRange(0, depth > 0 ? 8 : 6)) {
    case 0:
      return nullptr;
    case 1:
      return *rc::gen::arbitrary<bool>();
    case 2:
      return *rc::gen::arbitrary<int64_t>();
    case 3:
      return *rc::gen::arbitrary<uint64_t>();
    case 4:
      return *rc::gen::arbitrary<double>();
    case 5: {
      const auto text = *rc::gen::arbitrary<std::string>();
      return Json(text.substr(0, ValidUtf8Prefix(text)));
    }
    case 6: {
      api::JsonArray array;
      for (int i = *rc::gen::inRange(0, 5); i > 0; --i) array.push_back(AnyJson(depth - 1));
      return array;
    }
    default: {
      api::JsonObject object;
      for (int i = *rc::gen::inRange(0, 25); i > 0; --i) {
        object["k" + std::to_string(*rc::gen::inRange(0, 100))] = AnyJson(depth - 1);
      }
      return object;
    }
  }
}

// What the quick parser takes it reads as the other does, and all that we print it takes, but for
// doubles and keys with escapes.
TEST(JsonTest, BothParsersReadAlike) {
  EXPECT_TRUE(rc::check([] {
    const std::string text = PrintJson(AnyJson(4));
    std::array<unsigned char, 64> buffer{};
    api::JsonArena arena(buffer.data(), buffer.size());
    const Result<Json> read = ParseJson(text, {}, api::JsonMemory(&arena));
    RC_ASSERT(read.has_value());
    RC_ASSERT(PrintJson(*read) == text);
    RC_ASSERT(PrintJson(ParseAnyJson(text, {}, {}).value().value) == text);
  }));
  EXPECT_TRUE(rc::check([] {
    // Printed text with a few bytes changed, taken out or said twice.
    std::string text = PrintJson(AnyJson(4));
    for (int i = *rc::gen::inRange(0, 4); i > 0; --i) {
      const size_t at = *rc::gen::inRange<size_t>(0, text.size());
      const size_t count = *rc::gen::inRange<size_t>(0, 12);
      const std::string piece = text.substr(at, count);
      const int what = *rc::gen::inRange(0, 4);
      if (what == 0) text.erase(at, count);
      if (what == 1) text.insert(*rc::gen::inRange<size_t>(0, text.size()), piece);
      if (what >= 2) text.insert(at, 1, *rc::gen::elementOf(std::string(R"( "\{}[],:-01eE.ku\n)")));
    }
    const std::optional<Json> quick = ParsePlainJson(text, limits::kNestingMax, {});
    const Result<ParsedJson> other = ParseAnyJson(text, {}, {});
    if (quick) {
      RC_ASSERT(other.has_value());
      RC_ASSERT(other->duplicates.empty());
      RC_ASSERT(*quick == other->value);
      RC_ASSERT(PrintJson(*quick) == PrintJson(other->value));
    }
    RC_ASSERT(ParseJsonReporting(text).has_value() == other.has_value());
  }));
  const auto is_plain = [](std::string_view text) {
    return ParsePlainJson(text, limits::kNestingMax, {}).has_value();
  };
  EXPECT_TRUE(is_plain(R"( {"a":1,"b":[-0,18446744073709551615,"\u00e4"],"c":null} )"));
  EXPECT_TRUE(is_plain(std::string(128, '[') + std::string(128, ']')));
  for (const std::string& text :
       {std::string("{"), std::string("{} x"), std::string(R"({"a":0.1})"),
        std::string(R"({"a":1,"b":2,"a":3})"), std::string(R"({"\u0061":1,"a":2})"),
        std::string("\"\xff\""), std::string(R"("\ud800")"),
        std::string(129, '[') + std::string(129, ']')}) {
    EXPECT_FALSE(is_plain(text)) << text;
  }
  std::string many = "{";
  for (int i = 0; i < 100; ++i) many += "\"k" + std::to_string(i) + "\":0,";
  EXPECT_TRUE(is_plain(many + "\"k\":0}"));
  EXPECT_FALSE(is_plain(many + "\"k37\":0}"));
  EXPECT_EQ(ParseJsonReporting(many + "\"k37\":0}").value().duplicates,
            std::vector<std::string>{"k37"});
}

}  // namespace
}  // namespace berth::codec
