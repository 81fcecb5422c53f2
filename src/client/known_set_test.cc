// Goal: the known set tells appearances, changes, re-creations and disappearances exactly. Method:
// random histories of lists and watch events against a naive twin that keeps whole lists.
#include "client/known_set.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <map>
#include <set>

namespace berth::client {
namespace {

Identity Make(int name, int uid, int version) {
  return {.namespace_name = "ns",
          .name = fmt::format("n{}", name),
          .uid = fmt::format("u{}", uid),
          .resource_version = std::to_string(version)};
}

// What a careful reader would do with a pencil: name -> uid, version, what was shown since the list
// began, and what of it the list has shown.
struct Twin {
  struct Entry {
    std::string uid;
    int version = 0;
  };
  std::map<std::string, Entry> known;
  std::set<std::string> shown;
  std::set<std::string> listed;

  KnownSet::Seen Observe(const Identity& identity, bool from_list) {
    const std::string key = identity.namespace_name + "/" + identity.name;
    const int version = std::stoi(identity.resource_version);
    const auto it = known.find(key);
    if (from_list) listed.insert(key);
    if (it == known.end()) {
      known[key] = {.uid = identity.uid, .version = version};
      shown.insert(key);
      return KnownSet::Seen::kAdded;
    }
    if (version < it->second.version && (!from_list || shown.contains(key)))
      return KnownSet::Seen::kStale;
    shown.insert(key);
    const Entry old = std::exchange(it->second, {.uid = identity.uid, .version = version});
    if (old.uid != identity.uid) return KnownSet::Seen::kRecreated;
    return old.version == version ? KnownSet::Seen::kSame : KnownSet::Seen::kChanged;
  }
};

RC_GTEST_PROP(KnownSet, AgreesWithItsTwin, ()) {
  KnownSet set;
  Twin twin;
  const int steps = *rc::gen::inRange(0, 60);
  for (int i = 0; i < steps; ++i) {
    const int action = *rc::gen::inRange(0, 12);
    const Identity identity =
        Make(*rc::gen::inRange(0, 5), *rc::gen::inRange(0, 3), *rc::gen::inRange(1, 30));
    const std::string key = "ns/" + identity.name;
    if (action < 6) {
      const bool from_list = action < 3;
      const std::string old_uid = twin.known.contains(key) ? twin.known[key].uid : "";
      const KnownSet::Result result = set.Observe(identity, from_list);
      const KnownSet::Seen expected = twin.Observe(identity, from_list);
      RC_ASSERT(static_cast<int>(result.seen) == static_cast<int>(expected));
      if (expected == KnownSet::Seen::kRecreated) RC_ASSERT(result.old_uid == old_uid);
    } else if (action < 8) {
      const auto it = twin.known.find(key);
      const bool expected = it != twin.known.end() && it->second.uid == identity.uid;
      RC_ASSERT(set.Remove(identity) == expected);
      if (expected) {
        twin.known.erase(key);
        twin.listed.erase(key);
      }
    } else if (action >= 10) {
      // As if the list's end had come already, where that tells nothing.
      const auto it = twin.known.find(key);
      const bool expected = it != twin.known.end() && it->second.uid == identity.uid &&
                            std::to_string(it->second.version) == identity.resource_version;
      RC_ASSERT(set.Confirm(identity) == expected);
      if (expected) twin.Observe(identity, true);
    } else if (action == 8) {
      set.BeginList();
      twin.shown.clear();
      twin.listed.clear();
    } else {
      const int version = *rc::gen::inRange(1, 30);
      std::vector<std::string> gone;
      for (const auto& [name, entry] : twin.known) {
        const bool newer = twin.shown.contains(name) && entry.version > version;
        if (!twin.listed.contains(name) && !newer) gone.push_back(name + "=" + entry.uid);
      }
      std::vector<std::string> told;
      for (const KnownSet::Object& object : set.EndList(Version::Parse(std::to_string(version)))) {
        told.push_back(object.key + "=" + object.uid);
        twin.known.erase(object.key);
      }
      RC_ASSERT(told == gone);
    }
    RC_ASSERT(set.size() == twin.known.size());
  }
}

TEST(Version, NumbersCompareAndOthersDoNot) {
  EXPECT_TRUE(Version::Parse("9").OlderThan(Version::Parse("10")));
  EXPECT_FALSE(Version::Parse("10").OlderThan(Version::Parse("10")));
  EXPECT_FALSE(Version::Parse("a9").OlderThan(Version::Parse("b10")));
  EXPECT_FALSE(Version::Parse("9").OlderThan(Version::Parse("x")));
  EXPECT_FALSE(Version::Parse("").numeric);
  EXPECT_FALSE(Version::Parse("007").numeric);
  EXPECT_TRUE(Version::Parse("0").numeric);
  EXPECT_FALSE(Version::Parse("99999999999999999999").numeric);
  EXPECT_EQ(Version::Parse("x"), Version::Parse("x"));
  EXPECT_FALSE(Version::Parse("x") == Version::Parse("y"));
}

}  // namespace
}  // namespace berth::client
