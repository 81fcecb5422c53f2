// Goal: a path finds what its steps find one after the other. Method: documents with names that
// begin alike, hold dots, or are too many to be scanned, against the twin for paths of any length, which cuts as it goes.
#include "api/object.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "api/text.h"

namespace berth::api {
namespace {

TEST(FindPath, FindsWhatItsStepsFind) {
  Json document = {{"a", {{"b", 1}, {"bc", {{"d", "x"}}}, {"n", nullptr}, {"b.c", 2}}},
                   {"ab", {{"b", 3}}},
                   {"a.b", {{"bc", 4}}},
                   {"list", {1, 2}},
                   {"many", JsonObject()}};
  for (int i = 0; i < 40; ++i) {
    document.as_object()["many"].as_object()["k" + std::to_string(i)] = {{"v", i}};
  }
  int found = 0;
  for (const std::string_view path :
       {"",       ".",        "a",        "a.",     "ab",      "abc",       "a.b",
        "a.bc",   "a.bc.d",   "a.bc.d.e", "a.n",    "a.n.x",   "a.b.c",     "ab.b",
        "a.bd",   "b",        "list",     "list.0", "many.k7", "many.k7.v", "many.k7.w",
        "many.k", "many.k40", "many.",    "a..b"}) {
    const Json* at = FindPath(document, path);
    EXPECT_EQ(at, FindDotted(document, path)) << path;
    found += at == nullptr ? 0 : 1;
  }
  EXPECT_EQ(found, 12);
}

TEST(SameText, ComparesEveryCharacter) {
  for (size_t size = 0; size < 40; ++size) {
    std::string text(size, 'a');
    EXPECT_TRUE(SameText(text, std::string(size, 'a')));
    EXPECT_FALSE(SameText(text, std::string(size + 1, 'a')));
    for (size_t at = 0; at < size; ++at) {
      text[at] = 'b';
      EXPECT_FALSE(SameText(text, std::string(size, 'a'))) << at << " of " << size;
      text[at] = 'a';
    }
  }
}

}  // namespace
}  // namespace berth::api
