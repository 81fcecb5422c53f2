#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

// Sets of completion indexes as Jobs write them: "0-3,7".
namespace berth::controllers {

// Disjoint, ascending, not touching ranges [first, last]: cost of every operation is in ranges, so
// a Job of 100,000 indexes that completes in order stays small.
class IndexSet {
 public:
  // Reads what can be read; what is malformed ends it, as in Kubernetes.
  static IndexSet Parse(std::string_view text, int64_t completions);

  void Add(int64_t index);
  [[nodiscard]] bool Contains(int64_t index) const;
  [[nodiscard]] int64_t size() const;
  // How many of them are in the other as well.
  [[nodiscard]] int64_t CountIn(const IndexSet& other) const;
  [[nodiscard]] std::string ToString() const;
  // The first `count` indexes below `completions` that are in neither set.
  [[nodiscard]] std::vector<int64_t> FirstMissing(const IndexSet& also, int64_t count,
                                                  int64_t completions) const;
  bool operator==(const IndexSet&) const = default;

 private:
  std::vector<std::pair<int64_t, int64_t>> ranges_;
};

}  // namespace berth::controllers
