// Goal: what cel-go takes for an expression is taken for one, and what it refuses for its syntax is
// refused, in its shape. Method: expressions that the genuine server took and refused; bounds.

#include "api/cel_syntax.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace berth::api {
namespace {

TEST(CelSyntaxTest, ExpressionsAreTaken) {
  const std::vector<std::string_view> texts = {
      "self.a > 'x'",
      "self.n > 1 && self.n < 5 || !(self.a == \"b\")",
      "!!true == false",
      "--1 == 1 && !(-1 > 2) && 1 - -1 == 2",
      "self.l.all(x, x.size() <= 5) && self.l.exists_one(y, y == 'a')",
      "self.l.map(x, x != '', x + 'b').filter(x, x.startsWith('a')).size() == 0",
      "self.m.all(k, v, k != v)",
      "has(self.a) && has(self.a.b) && !has(oldSelf.c)",
      "self[?'a'].orValue('b') == self.?a.optMap(x, x + 'c').orValue('')",
      "[1, 2, 3,] == [1, ?optional.none()] || [] == [,]",
      "{'a': 1, 'b': 2,} == {} || {?'a': optional.of(1)} != {,}",
      "self.a ? self.b : self.c ? 1 : 2 == 3",
      "(self.a ? true : false) ? 1 == 1 : 2 == 2",
      "1.5 + .5 + 1e3 + 1.5E-3 == 0.1 && 0x1F == 31 && 12u == 0xCu",
      "-9223372036854775808 < 9223372036854775807 && 18446744073709551615u > 0u",
      R"('\n\t\'\"\\\x41\101\u00e9\U0001F600\?\`' == "a'b")",
      R"(r'\d+' == R"\w" && b'\xff' == br'\x' && self.a.matches('^[a-z]+$'))",
      "'''a'b\nc''' == \"\"\"\"x\"\"\" || \"\" == ''",
      "self.a // a comment\n == 'b'",
      "a.b.C{f: 1, ?g: optional.of(2),} == .x.y && size(.z(1)) > 0",
      "self.__namespace__ == self.in_ && self.namespace == 'a'",
      "quantity('1Gi').isLessThan(quantity('2Gi'))",
      "x in [1] && 'a' in {'a': 1}"};
  for (const std::string_view text : texts) EXPECT_EQ(ParseCel(text).problem, "") << text;
}

TEST(CelSyntaxTest, WhatIsNoneIsRefusedWhereItBreaksOff) {
  constexpr const char* kOperands =
      " expecting {'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, "
      "NUM_UINT, STRING, BYTES, IDENTIFIER}";
  struct Row {
    std::string_view text, where, why, mark;
    bool operands = false;
  };
  const std::vector<Row> rows = {
      {"self.a >", "1:9", "Syntax error: mismatched input '<EOF>'", "........^", true},
      {"self.a ==== \"x\"", "1:10", "Syntax error: extraneous input '=='", ".........^", true},
      {"1 +* 2 == 3", "1:4", "Syntax error: extraneous input '*'", "...^", true},
      {"self.", "1:6", "Syntax error: no viable alternative at input '.'", ".....^"},
      {"(self.a", "1:8", "Syntax error: missing ')' at '<EOF>'", ".......^"},
      {"self.l.all(x, x == \"a\"", "1:23", "Syntax error: missing ')' at '<EOF>'",
       "......................^"},
      {"a b", "1:3", "Syntax error: extraneous input 'b' expecting <EOF>", "..^"},
      {"true;", "1:5", "Syntax error: token recognition error at: ';'", "....^"},
      {"'abc", "1:1", "Syntax error: token recognition error at: ''abc'", "^"},
      {"\"\\q\"==\"a\"", "1:1", "Syntax error: token recognition error at: '\"\\q'", "^"},
      {"é == 'a", "1:1", "Syntax error: token recognition error at: 'é'", "＾"},
      {"self.l.all(1, true)", "1:12", "argument must be a simple name", "...........^"},
      {"self.l.filter(a.b, true)", "1:16", "argument is not an identifier", "...............^"},
      {"self.m.all(k, k, true)", "1:15", "duplicate variable name: k", "..............^"},
      {"has(self)", "1:5", "invalid argument to has() macro", "....^"},
      {"has(self.a())", "1:11", "invalid argument to has() macro", "..........^"},
      {"if == 1", "1:1", "reserved identifier: if", "^"},
      {"9223372036854775808 > 0", "1:1", "invalid int literal", "^"},
      {"18446744073709551616u > 0u", "1:1", "invalid uint literal", "^"}};
  for (const Row& row : rows) {
    const std::string expected = "ERROR: <input>:" + std::string(row.where) + ": " +
                                 std::string(row.why) + (row.operands ? kOperands : "") + "\n | " +
                                 std::string(row.text) + "\n | " + std::string(row.mark);
    EXPECT_EQ(ParseCel(row.text).problem, expected);
  }
  for (const std::string_view text : {"",
                                      "in == 1",
                                      "a.b.",
                                      "a..b",
                                      "[1",
                                      "{1}",
                                      "{a: }",
                                      "a[",
                                      "a[]",
                                      "f(,)",
                                      "f(1,)",
                                      "a ? b",
                                      "a ? b ? c : d : e",
                                      "-!a",
                                      "0x",
                                      "1u2",
                                      "'\\ud800'",
                                      "b'\\u0041' == b''",
                                      "a.`b`",
                                      "x{1: 2}",
                                      "&& a",
                                      "a &&",
                                      "a = b",
                                      "a & b",
                                      "'a\nb'",
                                      "\"a'"}) {
    EXPECT_NE(ParseCel(text).problem, "") << text;
  }
}

TEST(CelSyntaxTest, ALineOfSeveralIsShownAlone) {
  const std::string problem = ParseCel("a &&\n\tb ||").problem;
  EXPECT_TRUE(problem.starts_with("ERROR: <input>:2:6: Syntax error: mismatched input '<EOF>'"));
  EXPECT_TRUE(problem.ends_with("\n |  b ||\n | .....^")) << problem;
}

TEST(CelSyntaxTest, ItSaysWhoLooksAtWhatWas) {
  EXPECT_TRUE(ParseCel("self == oldSelf").names_old_self);
  EXPECT_TRUE(ParseCel("has(oldSelf.a)").names_old_self);
  EXPECT_FALSE(ParseCel("self.oldSelf == 'oldSelf'").names_old_self);
}

TEST(CelSyntaxTest, DeepAndLongOnesEnd) {
  const auto nested = [](size_t depth) {
    return std::string(depth, '(') + "1" + std::string(depth, ')');
  };
  EXPECT_EQ(ParseCel(nested(kCelDepthMax - 1)).problem, "");
  EXPECT_TRUE(ParseCel(nested(kCelDepthMax)).problem.contains("recursion limit exceeded: 250"));
  EXPECT_TRUE(ParseCel(nested(100'000)).problem.contains("size exceeds limit"));
  EXPECT_NE(ParseCel(std::string(99'999, '!')).problem, "");
  EXPECT_NE(ParseCel(std::string(99'999, '[')).problem, "");
  EXPECT_EQ(ParseCel(std::string(99'998, '-') + "1").problem, "");
  EXPECT_TRUE(ParseCel(std::string(kCelSizeMax + 1, '1')).problem.contains("size exceeds limit"));
}

}  // namespace
}  // namespace berth::api
