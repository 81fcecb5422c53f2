// Goal: selectors parse, match and fail as upstream's. Method: tables of texts, with the genuine
// server's error messages.

#include "api/selector.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <string>
#include <vector>

namespace berth::api {
namespace {

const StringMap kLabels = {{"app", "web"}, {"gen", "7"}, {"tier", ""}};

TEST(SelectorTest, MatchesAsUpstream) {
  struct Row {
    std::string_view text;
    bool matches;
  };
  const std::vector<Row> rows = {
      {"", true},
      {"app=web", true},
      {"app==web", true},
      {"app = web", true},
      {"app!=web", false},
      {"none!=web", true},
      {"app in (web,db)", true},
      {"app in (db)", false},
      {"app notin (db)", true},
      {"none notin (db)", true},
      {"app", true},
      {"!app", false},
      {"!none", true},
      {"gen>6", true},
      {"gen>7", false},
      {"gen<8,gen>1", true},
      {"app>1", false},
      {"tier=", true},
      {"tier in ()", true},
      {"tier in (,x)", true},
      {"app in (,x)", false},
      {"app=web,gen=8", false},
      {"in=x", false},
      {"app in (in,notin,web)", true},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.text);
    const Result<LabelQuery> query = ParseLabelQuery(row.text);
    ASSERT_TRUE(query.has_value()) << query.error().message;
    EXPECT_EQ(query->Matches(kLabels), row.matches);
  }
}

TEST(SelectorTest, RefusesWithUpstreamsWords) {
  const std::vector<std::pair<std::string_view, std::string_view>> rows = {
      {"state in running", "unable to parse requirement: found 'running' expected: '('"},
      {"state in (a", "unable to parse requirement: found '', expected: ',' or ')'"},
      {"state===x", "unable to parse requirement: found '=', expected: identifier"},
      {"!", "unable to parse requirement: found '', expected: identifier"},
      {",", "found ',', expected: !, identifier, or 'end of string'"},
      {"a,", "found '', expected: identifier after ','"},
      {"a b", "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"},
      {"a=b c", "found 'c', expected: ',' or 'end of string'"},
      {"state>abc",
       "unable to parse requirement: values[0]: Invalid value: \"abc\": for 'Gt', 'Lt' operators, "
       "the value must be an integer"},
      {"a=-b-",
       "unable to parse requirement: values[0][a]: Invalid value: \"-b-\": a valid label must be "
       "an empty string or consist of "
       "alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
       "character (e.g. 'MyValue',  or "
       "'my_value',  or '12345', regex used for validation is "
       "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"},
      {"-x=a",
       "unable to parse requirement: <nil>: Invalid value: \"-x\": name part must consist of "
       "alphanumeric characters, '-', '_' or "
       "'.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  "
       "or '123-abc', regex used for "
       "validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"},
  };
  for (const auto& [text, message] : rows) {
    SCOPED_TRACE(text);
    const Result<LabelQuery> query = ParseLabelQuery(text);
    ASSERT_FALSE(query.has_value());
    EXPECT_EQ(query.error().message, message);
  }
}

TEST(SelectorTest, PrintingRoundTrips) {
  for (const std::string_view text :
       {"a=b", "a==b,c!=d", "a in (x,y),b notin (z)", "!a,b", "a>1,b<2", "a="}) {
    EXPECT_EQ(ToString(ParseLabelQuery(text).value()), text);
  }
}

TEST(SelectorTest, SpecSelectorsBecomeQueries) {
  const LabelSelector selector = {{{"app", "web"}},
                                  {{"gen", "In", {"9", "7"}}, {"x", "DoesNotExist", {}}}};
  EXPECT_TRUE(QueryOf(selector).value().Matches(kLabels));
  EXPECT_FALSE(QueryOf(selector).value().Matches({{"app", "web"}}));
  EXPECT_TRUE(QueryOf(LabelSelector()).value().Matches({}));
  EXPECT_EQ(QueryOf(LabelSelector{{}, {{"a", "Like", {}}}}).error().message,
            "\"Like\" is not a valid label selector operator");
}

TEST(FieldQueryTest, ParsesMatchesAndRefuses) {
  const StringMap fields = {
      {"metadata.name", "a,b"}, {"spec.nodeName", ""}, {"status.phase", "Running"}};
  EXPECT_TRUE(ParseFieldQuery("status.phase=Running,spec.nodeName=").value().Matches(fields));
  EXPECT_TRUE(ParseFieldQuery("metadata.name==a\\,b").value().Matches(fields));
  EXPECT_TRUE(ParseFieldQuery("status.phase!=Failed,,").value().Matches(fields));
  EXPECT_FALSE(ParseFieldQuery("status.phase!=Running").value().Matches(fields));
  EXPECT_EQ(ParseFieldQuery("abc").error().message,
            "invalid selector: 'abc'; can't understand 'abc'");
  EXPECT_EQ(ParseFieldQuery("a=b=c").error().message,
            "invalid field selector: unescaped character in value: 61");
  EXPECT_EQ(ParseFieldQuery("a=b\\x").error().message,
            "invalid field selector: invalid escape sequence: \\x");
  EXPECT_EQ(ToString(ParseFieldQuery("b!=c\\=,a=x").value()), "a=x,b!=c\\=");
}

TEST(SelectorTest, NoTextCrashesTheParsers) {
  EXPECT_TRUE(rc::check("any text", [](const std::string& text) {
    static_cast<void>(ParseLabelQuery(text));
    static_cast<void>(ParseFieldQuery(text));
  }));
  EXPECT_TRUE(rc::check("selector-like text", [] {
    const auto text =
        *rc::gen::container<std::string>(rc::gen::elementOf(std::string("ab=!(),<> in\\")));
    const Result<LabelQuery> query = ParseLabelQuery(text);
    if (query) RC_ASSERT(ParseLabelQuery(ToString(*query)).has_value());
    static_cast<void>(ParseFieldQuery(text));
  }));
}

}  // namespace
}  // namespace berth::api
