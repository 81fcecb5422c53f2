#include "model/homeless.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <map>

namespace berth::model {
namespace {

uint64_t HashOfAll(const Homeless& homeless) {
  Hasher hasher;
  homeless.AddTo(hasher);
  return hasher.value();
}

// Goal: pods come out by name, once, in the order in which they were listed. Method: model-based;
// the twin is a list of (pod, name), and a list made of it anew has the same hash.
RC_GTEST_PROP(HomelessTest, IsAListOfPodsPerName, ()) {
  Homeless homeless;
  std::vector<std::pair<PodId, NameId>> twin;
  const auto drop = [&](PodId pod) {
    std::erase_if(twin, [&](const auto& entry) { return entry.first == pod; });
  };
  const int steps = *rc::gen::inRange(0, 200);
  for (int i = 0; i < steps; ++i) {
    const PodId pod{*rc::gen::inRange(0u, 8u)};
    const NameId name{*rc::gen::inRange(0u, 4u)};
    switch (*rc::gen::inRange(0, 4)) {
      case 0:
        homeless.Remove(pod);
        drop(pod);
        break;
      case 1: {
        std::vector<PodId> expected;
        for (const auto& [p, n] : twin) {
          if (n == name) expected.push_back(p);
        }
        RC_ASSERT(homeless.Take(name) == expected);
        for (const PodId p : expected) drop(p);
        break;
      }
      default:
        homeless.Put(pod, name);
        if (std::ranges::find(twin, std::pair(pod, name)) == twin.end()) {
          drop(pod);
          twin.emplace_back(pod, name);
        }
    }
    Homeless anew;
    anew.Put(PodId{7}, NameId{9});  // As long as it can be.
    anew.Remove(PodId{7});
    for (const auto& [p, n] : twin) anew.Put(p, n);
    Homeless same = homeless;
    same.Put(PodId{7}, NameId{3});
    anew.Put(PodId{7}, NameId{3});
    RC_ASSERT(HashOfAll(same) == HashOfAll(anew));
  }
}

}  // namespace
}  // namespace berth::model
