// Goal: sets of fields print and read as FieldsV1, in upstream's order, and obey the algebra of
// sets. Method: rows of texts; random sets against a naive twin, which is a set of paths.
#include "api/field_set.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <boost/json/parse.hpp>
#include <set>
#include <utility>
#include <variant>

#include "base/prng.h"
#include "testing/allocations.h"

namespace berth::api {
namespace {

using Path = std::vector<PathElement>;

FieldSet Read(const std::string& text) {
  FieldSet set;
  EXPECT_TRUE(FieldSetFrom(boost::json::parse(text), set)) << text;
  return set;
}

std::string Print(const FieldSet& set) {
  std::string out;
  AppendFieldsV1(set, out);
  return out;
}

TEST(FieldSet, IsReadAndPrintedInUpstreamsOrder) {
  // Fields, keys (numbers by value), values, indexes; unknown elements are left out.
  EXPECT_EQ(Print(Read(R"({"f:b":{},"f:a":{".":{},"f:z":{}}})")),
            R"({"f:a":{".":{},"f:z":{}},"f:b":{}})");
  EXPECT_EQ(Print(Read(R"({"k:{\"port\":443}":{},"k:{\"port\":80}":{},"f:x":{}})")),
            R"({"f:x":{},"k:{\"port\":80}":{},"k:{\"port\":443}":{}})");
  EXPECT_EQ(Print(Read(R"({"k:{\"b\":1,\"a\":\"x\"}":{}})")), R"({"k:{\"a\":\"x\",\"b\":1}":{}})");
  EXPECT_EQ(Print(Read(R"({"v:true":{},"v:\"a\"":{},"v:3":{},"i:1":{}})")),
            R"({"v:3":{},"v:\"a\"":{},"v:true":{},"i:1":{}})");
  EXPECT_EQ(Print(Read(R"({"q:new":{},"f:a":{}})")), R"({"f:a":{}})");
  EXPECT_EQ(Print(Read(R"({"f:a.b/c":{}})")), R"({"f:a.b/c":{}})");
}

TEST(FieldSet, WhatIsNoFieldsV1IsRefused) {
  for (const char* text : {R"("x")", R"([])", R"({"a":{}})", R"({"f":{}})", R"({"f:a":1})",
                           R"({"k:x":{}})", R"({"v:":{}})", R"({"i:x":{}})"}) {
    FieldSet set;
    EXPECT_FALSE(FieldSetFrom(boost::json::parse(text), set)) << text;
  }
}

TEST(FieldSet, PathsAreSaidAsMessagesSayThem) {
  EXPECT_EQ(PathText({"f:spec", "f:containers", R"(k:{"name":"a"})", "f:image"}),
            R"(.spec.containers[name="a"].image)");
  EXPECT_EQ(PathText({"f:ports", R"(k:{"containerPort":80,"protocol":"TCP"})"}),
            R"(.ports[containerPort=80,protocol="TCP"])");
  EXPECT_EQ(PathText({"f:finalizers", R"(v:"x/y")"}), R"(.finalizers[="x/y"])");
  EXPECT_EQ(PathText({"f:a", "i:3"}), ".a[3]");
  // Which no schema has as a key.
  EXPECT_EQ(PathText({"f:a", R"(k:{"name":{}})"}), ".a[name=]");
  EXPECT_EQ(PathText({"f:a", R"(v:[{"b":1},"x"])"}), R"(.a[=[b=1,"x"]])");
}

TEST(FieldSet, ATreeGoesWithAllThatIsBelowIt) {
  FieldSet set = Read(R"({"f:metadata":{"f:labels":{".":{},"f:a":{}}},"f:spec":{"f:x":{}}})");
  RemoveTree(set, "metadata.labels");
  EXPECT_EQ(Print(set), R"({"f:spec":{"f:x":{}}})");
  RemoveTree(set, "spec");
  EXPECT_TRUE(set.empty());
}

Path RandomPath(Prng& prng) {
  const std::vector<PathElement> elements = {
      "f:a", "f:b", R"(k:{"n":"x"})", R"(k:{"n":10})", R"(k:{"n":9})", "v:1", R"(v:"1")"};
  Path path;
  for (int64_t left = prng.Between(1, 3); left > 0; --left) {
    path.push_back(elements[static_cast<size_t>(prng.Between(0, 6))]);
  }
  return path;
}

std::set<Path> PathsOf(const FieldSet& set) {
  std::set<Path> paths;
  ForEachPath(set, [&](const Path& path) { paths.insert(path); });
  return paths;
}

TEST(FieldSet, IsASetOfPaths) {
  Prng prng(7);
  for (int round = 0; round < 500; ++round) {
    FieldSet sets[2];
    std::set<Path> twins[2];
    for (int side = 0; side < 2; ++side) {
      for (int64_t left = prng.Between(0, 12); left > 0; --left) {
        const Path path = RandomPath(prng);
        InsertPath(sets[side], path);
        twins[side].insert(path);
      }
      ASSERT_EQ(PathsOf(sets[side]), twins[side]);
      ASSERT_EQ(PathsOf(Read(Print(sets[side]))), twins[side]);
    }
    std::set<Path> all = twins[0];
    all.insert(twins[1].begin(), twins[1].end());
    std::set<Path> both;
    std::set<Path> rest;
    for (const Path& path : twins[0]) (twins[1].contains(path) ? both : rest).insert(path);
    ASSERT_EQ(PathsOf(Union(sets[0], sets[1])), all);
    ASSERT_EQ(PathsOf(Intersection(sets[0], sets[1])), both);
    ASSERT_EQ(PathsOf(Difference(sets[0], sets[1])), rest);
    for (const Path& path : all) {
      ASSERT_EQ(HasPath(sets[0], path), twins[0].contains(path));
    }
  }
}

// As upstream orders values: numbers, texts, flags.
using Scalar = std::variant<int64_t, std::string, bool>;

Scalar RandomScalar(Prng& prng) {
  static const std::vector<std::string> kTexts = {"", "a", "b", "ab", "a\"", "a\\", "\n", "é", "1"};
  switch (prng.Below(4)) {
    case 0:
      return prng.Chance({1, 2});
    case 1:
      return prng.Chance({1, 2}) ? prng.Between(-3, 12) : prng.Between(INT64_MIN, INT64_MAX);
    default:
      return kTexts[static_cast<size_t>(prng.Below(kTexts.size()))];
  }
}

std::string TextOf(const Scalar& value) {
  std::string out;
  std::visit([&](const auto& each) { AppendScalar(Json(each), out); }, value);
  return out;
}

int SignOf(std::weak_ordering order) { return order < 0 ? -1 : order > 0 ? 1 : 0; }
int SignOf(int order) { return order < 0 ? -1 : order > 0 ? 1 : 0; }

TEST(FieldSet, ElementsCompareAsTheValuesThatTheySay) {
  using Keys = std::vector<std::pair<std::string, Scalar>>;
  Prng prng(3);
  const auto element = [](const Keys& keys) {
    std::string out = "k:{";
    for (const auto& [name, value] : keys) {
      if (out.back() != '{') out += ',';
      AppendQuoted(name, out);
      out += ':' + TextOf(value);
    }
    return out + '}';
  };
  const auto random_keys = [&] {
    Keys keys;
    for (const char* name : {"\"", "a", "b"}) {
      if (prng.Chance({1, 2})) keys.emplace_back(name, RandomScalar(prng));
    }
    return keys;
  };
  for (int round = 0; round < 50'000; ++round) {
    const Keys a = random_keys();
    const Keys b = random_keys();
    ASSERT_EQ(SignOf(ComparePathElements(element(a), element(b))), SignOf(a <=> b))
        << element(a) << " " << element(b);
    const Scalar x = RandomScalar(prng);
    const Scalar y = RandomScalar(prng);
    ASSERT_EQ(SignOf(ComparePathElements("v:" + TextOf(x), "v:" + TextOf(y))), SignOf(x <=> y))
        << TextOf(x) << " " << TextOf(y);
  }
  // Numbers of other forms are numbers all the same.
  EXPECT_LT(ComparePathElements("v:9.5", "v:10"), 0);
  EXPECT_LT(ComparePathElements("v:1", "v:18446744073709551615"), 0);
  EXPECT_LT(ComparePathElements(R"(k:{"n":9.5})", R"(k:{"n":10})"), 0);
}

// Thousands of items are compared millions of times.
TEST(FieldSet, ComparingElementsTakesNoMemory) {
  for (const int form : {0, 1, 2, 3, 4}) {
    std::vector<PathElement> elements;
    for (int i = 0; i < 100; ++i) {
      elements.push_back(form == 0   ? fmt::format(R"(k:{{"port":{},"protocol":"TCP"}})", i)
                         : form == 1 ? fmt::format(R"(k:{{"name":"a-long-name-of-an-item-{}"}})", i)
                         : form == 2 ? fmt::format(R"(v:"example.com/a-finalizer-{}")", i)
                         : form == 3 ? fmt::format("v:{}", i)
                                     : fmt::format("f:data-{}", i));
    }
    const int64_t before = testing::AllocationsCount();
    int64_t less = 0;
    for (const PathElement& a : elements) {
      for (const PathElement& b : elements) less += ComparePathElements(a, b) < 0 ? 1 : 0;
    }
    EXPECT_EQ(testing::AllocationsCount(), before) << elements.front();
    EXPECT_EQ(less, 100 * 99 / 2);
  }
}

}  // namespace
}  // namespace berth::api
