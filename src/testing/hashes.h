#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <set>
#include <string_view>
#include <utility>

#include "base/hash.h"

// Hashes of whole states, for tests that two of equal hash do the same from here on.
namespace berth::testing {

// What `value.AddTo(Hasher&)` adds, alone.
template <typename Value>
[[nodiscard]] uint64_t StateHash(const Value& value) {
  Hasher hasher;
  value.AddTo(hasher);
  return hasher.value();
}

// Tests that a hash holds every thing by which two cases can differ:
//
//   testing::HashesApart<Case> apart([](const Case& one) { return StateHash(Run(one)); });
//   apart.With("label", [](Case& one) { one.label = "b"; });
//
// Fails the current test, with the name of the thing, where a case hashes as an earlier one did;
// and where the plain case, made twice, has two hashes. `Case` is a copyable value.
template <typename Case>
class HashesApart {
 public:
  explicit HashesApart(std::function<uint64_t(const Case&)> hash, Case plain = {})
      : hash_(std::move(hash)), plain_(std::move(plain)), hashes_{hash_(plain_)} {
    EXPECT_TRUE(hashes_.contains(hash_(plain_))) << "the plain case has two hashes";
  }

  // `change(Case&)` changes one thing of the plain case.
  template <typename Change>
  void With(std::string_view what, Change change) {
    Case other = plain_;
    change(other);
    EXPECT_TRUE(hashes_.insert(hash_(other)).second) << what;
  }

 private:
  std::function<uint64_t(const Case&)> hash_;
  Case plain_;
  std::set<uint64_t> hashes_;
};

}  // namespace berth::testing
