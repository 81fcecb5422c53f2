// Goal: names, timestamps, kinds and document helpers behave as Kubernetes' do. Method: tables.

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <string>
#include <vector>

#include "api/duration.h"
#include "api/field_error.h"
#include "api/kinds.h"
#include "api/names.h"
#include "api/object.h"
#include "api/timestamp.h"

namespace berth::api {
namespace {

TEST(NamesTest, ShapesAreUpstreams) {
  EXPECT_TRUE(IsDns1123Label("a-1"));
  EXPECT_FALSE(IsDns1123Label("-a"));
  EXPECT_FALSE(IsDns1123Label(std::string(64, 'a')));
  EXPECT_EQ(CheckDns1123Label("a.b"), Messages{"must not contain dots"});
  EXPECT_TRUE(IsDns1123Subdomain("a.b-c.d"));
  EXPECT_FALSE(IsDns1123Subdomain("a..b"));
  EXPECT_FALSE(IsDns1123Subdomain(""));
  EXPECT_EQ(CheckDns1123Subdomain(std::string(254, 'a')),
            Messages{"must be no more than 253 characters"});
  EXPECT_TRUE(IsQualifiedName("example.com/My_name"));
  EXPECT_EQ(CheckQualifiedName("/x"), Messages{"prefix part must be non-empty"});
  EXPECT_EQ(CheckQualifiedName("a/").size(), 2U);
  EXPECT_EQ(CheckQualifiedName("a/b/c").size(), 1U);
  EXPECT_TRUE(IsLabelValue(""));
  EXPECT_FALSE(IsLabelValue("-"));
  EXPECT_TRUE(CheckConfigMapKey("a_B.c").empty());
  EXPECT_EQ(CheckConfigMapKey(".."), Messages{"must not be '..'"});
  EXPECT_EQ(CheckPathSegment("a/b"), Messages{"may not contain '/'"});
  EXPECT_EQ(CheckPortName("http"), Messages{});
  EXPECT_EQ(GeneratedNameBase(std::string(80, 'a')).size() + kGeneratedSuffixLength, 63U);
  EXPECT_EQ(GeneratedSuffix(0), "bbbbb");
}

TEST(TimestampTest, ZIsReadAsAnOffsetOfNothing) {
  // The offset keeps the short way of reading most times out of it.
  const auto same = [](const std::string& time) {
    const Result<Instant> plain = ParseTimestamp(time + "Z");
    const Result<Instant> offset = ParseTimestamp(time + "+00:00");
    ASSERT_EQ(plain.has_value(), offset.has_value()) << time;
    if (plain) {
      EXPECT_EQ(plain->ns, offset->ns) << time;
    }
  };
  const std::string time = "2024-02-29T23:59:59";
  same(time);
  for (size_t i = 0; i < time.size(); ++i) {
    for (const char c : {'0', '1', '2', '3', '6', '9', '-', ':', 'T', 'x', '/'}) {
      std::string other = time;
      other[i] = c;
      same(other);
      same(other + "0");
    }
  }
  for (const char* const edge :
       {"1677-09-21T00:12:43", "1677-12-31T23:59:59", "1678-01-01T00:00:00", "1900-02-29T00:00:00",
        "1969-12-31T23:59:59", "2000-02-29T00:00:00", "2100-02-29T00:00:00", "2023-04-31T00:00:00",
        "2261-12-31T23:59:59", "2262-04-11T23:47:16", "9999-12-31T23:59:59"}) {
    same(edge);
  }
}

TEST(TimestampTest, ReadsEveryRfc3339FormAndPrintsUtc) {
  EXPECT_EQ(PrintTimestamp(ParseTimestamp("2026-01-02T03:04:05Z").value()), "2026-01-02T03:04:05Z");
  EXPECT_EQ(PrintMicroTime(ParseTimestamp("2026-01-02T03:04:05.123456789+02:30").value()),
            "2026-01-02T00:34:05.123456Z");
  EXPECT_EQ(ParseTimestamp("1970-01-01T00:00:01Z")->ns, 1'000'000'000);
  EXPECT_EQ(PrintTimestamp(ParseTimestamp("1969-12-31T23:59:59.5Z").value()),
            "1969-12-31T23:59:59Z");
  EXPECT_EQ(PrintTimestamp(ParseTimestamp("2024-02-29T23:59:59-01:00").value()),
            "2024-03-01T00:59:59Z");
  EXPECT_TRUE(rc::check("seconds round trip", [] {
    const auto seconds = *rc::gen::inRange<int64_t>(-9'000'000'000, 9'000'000'000);
    const Instant time = Instant::FromSeconds(seconds);
    RC_ASSERT(ParseTimestamp(PrintTimestamp(time)).value() == time);
  }));
}

TEST(TimestampTest, MicroTimesHaveSixDigits) {
  for (const std::string_view fine : {"2026-01-01T00:00:00.123456Z", "2026-01-01T00:00:00,123456Z",
                                      "2026-01-01T01:00:00.123456+01:00"}) {
    EXPECT_EQ(PrintMicroTime(ParseMicroTime(fine).value()), "2026-01-01T00:00:00.123456Z") << fine;
  }
  struct Case {
    std::string_view fraction, rest, element;
  };
  for (const Case& row : {Case{"Z", "Z", ".000000"}, Case{".1Z", ".1Z", ".000000"},
                          Case{".12345xZ", ".12345xZ", ".000000"}, Case{"", "", ".000000"},
                          Case{".123456", "", "Z07:00"}, Case{".123456789Z", "789Z", "Z07:00"}}) {
    const std::string text = fmt::format("2026-01-01T00:00:00{}", row.fraction);
    EXPECT_EQ(ParseMicroTime(text).error().message,
              fmt::format("parsing time \"{}\" as \"2006-01-02T15:04:05.000000Z07:00\": cannot "
                          "parse \"{}\" as \"{}\"",
                          text, row.rest, row.element));
  }
}

TEST(TimestampTest, RefusesInGosWords) {
  EXPECT_EQ(
      ParseTimestamp("now").error().message,
      "parsing time \"now\" as \"2006-01-02T15:04:05Z07:00\": cannot parse \"now\" as \"2006\"");
  EXPECT_EQ(ParseTimestamp("2026-13-01T00:00:00Z").error().message,
            "parsing time \"2026-13-01T00:00:00Z\": month out of range");
  EXPECT_EQ(ParseTimestamp("2026-02-29T00:00:00Z").error().message,
            "parsing time \"2026-02-29T00:00:00Z\": day out of range");
  EXPECT_EQ(ParseTimestamp("2026-02-28T00:00:00Zx").error().message,
            "parsing time \"2026-02-28T00:00:00Zx\": extra text: \"x\"");
}

TEST(TimestampTest, AgesReadAsKubectlsDo) {
  const auto age = [](int64_t seconds) { return HumanDuration(Duration::Seconds(seconds)); };
  EXPECT_EQ(age(-5), "<invalid>");
  EXPECT_EQ(age(-1), "0s");
  EXPECT_EQ(age(119), "119s");
  EXPECT_EQ(age(120), "2m");
  EXPECT_EQ(age(133), "2m13s");
  EXPECT_EQ(age(3600), "60m");
  EXPECT_EQ(age(3 * 3600 + 300), "3h5m");
  EXPECT_EQ(age(47 * 3600), "47h");
  EXPECT_EQ(age(52 * 3600), "2d4h");
  EXPECT_EQ(age(40 * 86'400), "40d");
  EXPECT_EQ(age(765 * 86'400), "2y35d");
  EXPECT_EQ(age(3000LL * 86'400), "8y");
}

TEST(KindsTest, AreFoundByResourceAndByKind) {
  EXPECT_EQ(FindResource("apps", "v1", "deployments")->id, KindId::kDeployment);
  EXPECT_EQ(FindResource("", "v1", "deployments"), nullptr);
  EXPECT_EQ(FindResource("", "v1", ""), nullptr);
  EXPECT_EQ(FindKind("batch/v1", "Job")->id, KindId::kJob);
  EXPECT_EQ(FindKind("v1", "Job"), nullptr);
  EXPECT_EQ(KindOf(KindId::kEventsEvent).storage, KindId::kEvent);
  EXPECT_EQ(KindOf(KindId::kDeployment).group_kind(), "Deployment.apps");
  EXPECT_EQ(KindOf(KindId::kPod).base_path(), "/api/v1");
  EXPECT_EQ(KindOf(KindId::kLease).api_version(), "coordination.k8s.io/v1");
}

TEST(KindsTest, FieldSelectorsAreCheckedPerKind) {
  const auto refusal = [](KindId kind, std::string_view text) {
    FieldQuery query = ParseFieldQuery(text).value();
    const Status status = ResolveFieldQuery(kind, query);
    return status ? ToString(query) : status.error().message;
  };
  EXPECT_EQ(refusal(KindId::kPod, "spec.foo=1"), "field label not supported: spec.foo");
  EXPECT_EQ(refusal(KindId::kPod, "spec.host=n1"), "spec.nodeName=n1");
  EXPECT_EQ(
      refusal(KindId::kConfigMap, "data.a=1"),
      "\"data.a\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\"");
  EXPECT_EQ(refusal(KindId::kJob, "a=1"), "field label \"a\" not supported for Job");
  EXPECT_EQ(refusal(KindId::kEventsEvent, "regarding.name=x"), "involvedObject.name=x");
  EXPECT_EQ(refusal(KindId::kEventsEvent, "involvedObject.name=x"),
            "field label not supported: involvedObject.name");
}

TEST(KindsTest, SelectableValuesAreSortedTexts) {
  const Json pod = {{"metadata", {{"name", "a"}, {"namespace", "b"}}},
                    {"spec", {{"nodeName", "n1"}}},
                    {"status", {{"phase", "Running"}}}};
  const StringMap values = SelectableValues(KindId::kPod, pod);
  EXPECT_EQ(Find(values, "spec.nodeName"), "n1");
  EXPECT_EQ(Find(values, "spec.hostNetwork"), "false");
  EXPECT_EQ(Find(values, "status.podIP"), "");
}

TEST(ObjectTest, PathsReadAndWriteWithoutCeremony) {
  Json document = {{"a", {{"b", 1}}}, {"n", nullptr}};
  EXPECT_EQ(IntegerAt(document, "a.b"), 1);
  EXPECT_EQ(FindPath(document, "a.b.c"), nullptr);
  EXPECT_EQ(FindPath(document, "n"), nullptr);
  SetPath(document, "n.x.y", "z");
  EXPECT_EQ(TextAt(document, "n.x.y"), "z");
  EXPECT_TRUE(RemovePath(document, "n.x.y"));
  EXPECT_FALSE(RemovePath(document, "n.x.y"));
  EXPECT_FALSE(RemovePath(document, "q.x"));
  EXPECT_TRUE(ArrayAt(document, "a").empty());
}

TEST(FieldErrorTest, PrintsInUpstreamsForm) {
  const FieldErrors errors = {InvalidField("spec.a", "x", "bad"), RequiredField("spec.b", ""),
                              InvalidField("spec.a", "x", "bad"),
                              InvalidField("spec.c", int64_t{-1}, "no"),
                              TooManyField("spec.d", 3, 1)};
  EXPECT_EQ(InvalidMessage("Pod", "p", errors),
            "Pod \"p\" is invalid: [spec.a: Invalid value: \"x\": bad, spec.b: Required value, "
            "spec.c: Invalid value: -1: no, "
            "spec.d: Too many: 3: must have at most 1 item]");
  EXPECT_EQ(InvalidMessage("Pod", "p", {}), "Pod \"p\" is invalid");
  EXPECT_EQ(QuoteGo("a\"\n\x01"), "\"a\\\"\\n\\x01\"");
}

TEST(FieldErrorTest, ListsAsManyAsAnAnswerMayHave) {
  const FieldErrors many(2'500, InvalidField("spec.a", "x", "bad"));
  EXPECT_EQ(ListedOf(many).size(), kFieldErrorsListedMax);
  EXPECT_EQ(InvalidMessage("Pod", "p", many),
            "Pod \"p\" is invalid: [spec.a: Invalid value: \"x\": bad, and 1500 or more others]");
  const FieldErrors long_ones(10, InvalidField("spec.a", std::string(200'000, 'x'), "bad"));
  EXPECT_EQ(ListedOf(long_ones).size(), 2U);
  EXPECT_EQ(ListedOf(FieldErrors(1, InvalidField("a", std::string(600'000, 'x'), ""))).size(), 1U);
}

TEST(Duration, WhatIsNoneIsToldInGosWords) {
  for (const char* const fine : {"0", "-1s", "+0", "1h2m3.5s", ".5s", "5.s"})
    EXPECT_EQ(GoDurationProblem(fine), "") << fine;
  for (const char* const bad : {"", "x", "-", " 1s", ".s", "99999999999h"})
    EXPECT_EQ(GoDurationProblem(bad), fmt::format("time: invalid duration \"{}\"", bad));
  EXPECT_EQ(GoDurationProblem("5"), "time: missing unit in duration \"5\"");
  EXPECT_EQ(GoDurationProblem("1.5.s"), "time: missing unit in duration \"1.5.s\"");
  EXPECT_EQ(GoDurationProblem("1sx"), "time: unknown unit \"sx\" in duration \"1sx\"");
}

TEST(Duration, ReadsDurationsAsGoWritesThem) {
  EXPECT_EQ(ParseDuration("1h2m3.5s")->ns, 3'723'500'000'000);
  EXPECT_EQ(ParseDuration("250ms")->ns, 250'000'000);
  EXPECT_EQ(ParseDuration("0")->ns, 0);
  EXPECT_EQ(ParseDuration(".5s")->ns, 500'000'000);
  for (const char* bad : {"", "5", "1x", "-1s", "s", "1.s.", "9999999999999h", "1e3s"}) {
    EXPECT_FALSE(ParseDuration(bad).has_value()) << bad;
  }
}

}  // namespace
}  // namespace berth::api
