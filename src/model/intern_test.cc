#include "model/intern.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>
#include <string>

#include "model/ids.h"

namespace berth::model {
namespace {

// Goal: equal content has one id, ids of live content never move or mix, freed ids are only given
// to new content. Method: random histories against a twin of std::map; short alphabets so that
// content repeats and probe runs collide.
RC_GTEST_PROP(InternTableTest, BehavesAsAMapWithReferenceCounts, ()) {
  StringTable<NameId> table;
  struct Entry {
    NameId id;
    int holders = 0;
    bool pinned = false;
  };
  std::map<std::string, Entry> twin;
  const auto steps = *rc::gen::inRange(0, 300);
  for (int i = 0; i < steps; ++i) {
    const int action = *rc::gen::inRange(0, 4);
    const std::string text = std::to_string(*rc::gen::inRange(0, 60)) +
                             std::string(*rc::gen::inRange<size_t>(0, 3), 'x');
    if (action == 0) {
      const NameId id = table.Intern(text);
      if (twin.contains(text)) RC_ASSERT(twin[text].id == id);
      twin[text].id = id;
      twin[text].pinned = true;
    } else if (action == 1) {
      const NameId id = table.Acquire(text);
      if (twin.contains(text)) RC_ASSERT(twin[text].id == id);
      twin[text].id = id;
      ++twin[text].holders;
    } else if (action == 2 && twin.contains(text) && twin[text].holders > 0) {
      table.Release(twin[text].id);
      if (--twin[text].holders == 0 && !twin[text].pinned) twin.erase(text);
    } else {
      RC_ASSERT(table.Find(text).valid() == twin.contains(text));
    }
    RC_ASSERT(table.live() == twin.size());
  }
  for (const auto& [text, entry] : twin) {
    RC_ASSERT(table.Find(text) == entry.id);
    RC_ASSERT(table.View(entry.id) == text);
  }
}

// Goal: memory follows what is live, not what ever was (a cluster makes pods for ever). Method: far
// more strings pass through than are held at once; the ids stay few.
TEST(InternTableTest, IdsAndTextOfReleasedStringsAreReused) {
  StringTable<OwnerId> table;
  for (int i = 0; i < 20'000; ++i) {
    table.Acquire("uid-of-some-length-" + std::to_string(i));
    if (i >= 100) table.Release(table.Find("uid-of-some-length-" + std::to_string(i - 100)));
  }
  EXPECT_EQ(table.live(), 100u);
  EXPECT_LT(table.size(), 110u);
  EXPECT_EQ(table.View(table.Find("uid-of-some-length-19999")), "uid-of-some-length-19999");
}

}  // namespace
}  // namespace berth::model
