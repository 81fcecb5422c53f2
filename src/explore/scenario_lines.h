#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace berth::explore {

// key=value of a line.
using Options = std::map<std::string, std::string, std::less<>>;

// The lines of a scenario file, one after the other, as words; and what is wrong with one, with its
// file and line. A word may hold a quoted part, or be one.
class Lines {
 public:
  static constexpr size_t kToTheEnd = SIZE_MAX;
  Lines(std::string_view text, std::string_view file) : text_(text), file_(file) {}

  // Goes on to the next line with words. False: there is none.
  Result<bool> Next();

  [[nodiscard]] uint32_t number() const { return number_; }
  [[nodiscard]] bool indented() const { return indented_; }
  [[nodiscard]] std::vector<std::string>& words() { return words_; }
  [[nodiscard]] const std::vector<std::string>& words() const { return words_; }

  [[nodiscard]] std::unexpected<Error> Bad(std::string_view what) const;
  [[nodiscard]] Status CheckName(std::string_view name) const;
  // The words from `first` to before `last`, which may be past the end, as key=value; with
  // `allowed`, of those keys only.
  [[nodiscard]] Result<Options> ReadPairs(size_t first, size_t last = kToTheEnd) const;
  [[nodiscard]] Result<Options> ReadOptions(size_t first,
                                            const std::vector<std::string_view>& allowed,
                                            size_t last = kToTheEnd) const;
  [[nodiscard]] Result<uint64_t> Number(const Options& options, std::string_view key,
                                        uint64_t otherwise, uint64_t max) const;
  // `"cpu":"1","memory":"1Gi"` of those that are there.
  [[nodiscard]] Result<std::string> Amounts(const Options& options,
                                            const std::vector<std::string_view>& resources) const;

 private:
  Status Split(std::string_view line);

  std::string_view text_;
  std::string file_;
  uint32_t number_ = 0;
  bool indented_ = false;
  std::vector<std::string> words_;
};

[[nodiscard]] bool Only(const Options& options, std::string_view key);
// The most that a line may say of a resource, far from what the model would clamp.
[[nodiscard]] std::string_view MostOf(std::string_view resource);
[[nodiscard]] bool InRange(std::string_view resource, std::string_view text);

}  // namespace berth::explore
