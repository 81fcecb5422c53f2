#include "api/topology_annotations.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <boost/json/parse.hpp>
#include <charconv>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "api/names.h"
#include "api/object.h"

namespace berth::api {
namespace {

constexpr std::string_view kRequired = "kueue.x-k8s.io/podset-required-topology";
constexpr std::string_view kPreferred = "kueue.x-k8s.io/podset-preferred-topology";
constexpr std::string_view kUnconstrained = "kueue.x-k8s.io/podset-unconstrained-topology";
constexpr std::string_view kSliceLevel = "kueue.x-k8s.io/podset-slice-required-topology";
constexpr std::string_view kSliceSize = "kueue.x-k8s.io/podset-slice-size";
constexpr std::string_view kSlices = "kueue.x-k8s.io/podset-slice-required-topology-constraints";
constexpr std::string_view kGroup = "kueue.x-k8s.io/podset-group-name";
constexpr std::string_view kIndexLabel = "batch.kubernetes.io/job-completion-index";
constexpr size_t kSlicesMax = 3;

std::string TextOf(const StringMap& annotations, std::string_view key) {
  return std::string(Find(annotations, key).value_or(std::string_view()));
}

bool Has(const StringMap& annotations, std::string_view key) {
  return Find(annotations, key).has_value();
}

// Nothing: it is none of 32 bits.
std::optional<int64_t> NumberIn(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  int32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

// Go's texts of them. Nothing: it is neither.
std::optional<bool> TruthOf(std::string_view text) {
  constexpr std::array<std::string_view, 6> kTrue = {"1", "t", "T", "true", "TRUE", "True"};
  constexpr std::array<std::string_view, 6> kFalse = {"0", "f", "F", "false", "FALSE", "False"};
  if (std::ranges::find(kTrue, text) != kTrue.end()) return true;
  if (std::ranges::find(kFalse, text) != kFalse.end()) return false;
  return std::nullopt;
}

// Nothing: it is no list of levels and sizes.
std::optional<std::vector<TopologySlice>> SlicesIn(std::string_view text) {
  boost::system::error_code error;
  const Json list = boost::json::parse(text, error);
  if (error || !list.is_array()) return std::nullopt;
  std::vector<TopologySlice> slices;
  for (const Json& item : list.get_array()) {
    const Json* level = FindMember(item, "topology");
    const Json* size = FindMember(item, "size");
    const bool told = level != nullptr && level->is_string() && size != nullptr && size->is_int64();
    if (!told || !std::in_range<int32_t>(size->get_int64())) return std::nullopt;
    slices.push_back({.level = std::string(level->get_string()), .size = size->get_int64()});
  }
  return slices;
}

// ---- What is wrong ---------------------------------------------------------------------------

class Checker {
 public:
  Checker(const StringMap& annotations, int64_t count) : annotations_(annotations), count_(count) {}

  FieldErrors Run() {
    CheckLevels();
    CheckTruth();
    CheckSlice();
    CheckSlices();
    CheckGroup();
    return std::move(errors_);
  }

 private:
  [[nodiscard]] bool Has(std::string_view key) const { return api::Has(annotations_, key); }
  [[nodiscard]] std::string Text(std::string_view key) const { return TextOf(annotations_, key); }
  static std::string FieldOf(std::string_view key) {
    return fmt::format("{}[{}]", kTemplateAnnotations, key);
  }
  void Forbid(std::string_view key, std::string detail) {
    errors_.push_back(ForbiddenField(FieldOf(key), std::move(detail)));
  }
  void Invalid(std::string_view key, std::string detail) {
    errors_.push_back(InvalidField(FieldOf(key), Text(key), std::move(detail)));
  }
  // Each of two that can't be together is told once, at the second.
  void Exclude(std::string_view key, std::string_view other) {
    if (Has(key) && Has(other))
      Forbid(key, fmt::format("may not be set beside {}: remove one of them", other));
  }
  void CheckLevel(const std::string& field, std::string_view level) {
    for (std::string& message : CheckQualifiedName(level))
      errors_.push_back(InvalidField(field, level, std::move(message)));
  }

  void CheckLevels() {
    Exclude(kPreferred, kRequired);
    Exclude(kUnconstrained, Has(kRequired) ? kRequired : kPreferred);
    for (const std::string_view key : {kRequired, kPreferred, kSliceLevel}) {
      if (Has(key)) CheckLevel(FieldOf(key), Text(key));
    }
  }

  void CheckTruth() {
    if (Has(kUnconstrained) && !TruthOf(Text(kUnconstrained)))
      Invalid(kUnconstrained, R"(must be "true" or "false")");
  }

  void CheckSlice() {
    if (Has(kSliceLevel) && !Has(kSliceSize)) {
      errors_.push_back(RequiredField(
          FieldOf(kSliceSize), fmt::format("must be set beside {}: how many pods stand together in "
                                           "one domain of that level",
                                           kSliceLevel)));
    }
    if (!Has(kSliceSize)) return;
    if (!Has(kSliceLevel)) {
      Forbid(kSliceSize, fmt::format("may not be set without {}: set that, the level of which one "
                                     "domain holds each slice, or remove this one",
                                     kSliceLevel));
    }
    const std::optional<int64_t> size = NumberIn(Text(kSliceSize));
    if (!size || *size < 1) {
      Invalid(kSliceSize, "must be a whole number from 1 on");
    } else if (*size > count_) {
      Invalid(kSliceSize, fmt::format("must not be greater than the number of pods, {}", count_));
    }
  }

  void CheckSlices() {
    if (!Has(kSlices)) return;
    Exclude(kSlices, kSliceLevel);
    Exclude(kSlices, kSliceSize);
    const auto slices = SlicesIn(Text(kSlices));
    if (!slices || slices->empty() || slices->size() > kSlicesMax) {
      return Invalid(kSlices,
                     fmt::format(R"(must be a list of 1 to {} levels with their sizes, as )"
                                 R"([{{"topology":"rack","size":4}}])",
                                 kSlicesMax));
    }
    std::set<std::string_view> levels;
    for (size_t i = 0; i < slices->size(); ++i) CheckSliceAt(*slices, i, levels);
  }

  void CheckSliceAt(const std::vector<TopologySlice>& slices, size_t i,
                    std::set<std::string_view>& levels) {
    const TopologySlice& slice = slices[i];
    const std::string field = fmt::format("{}[{}]", FieldOf(kSlices), i);
    const auto bad_size = [&](std::string detail) {
      errors_.push_back(InvalidField(field + ".size", slice.size, std::move(detail)));
    };
    CheckLevel(field + ".topology", slice.level);
    if (!levels.insert(slice.level).second)
      errors_.push_back(DuplicateField(field + ".topology", slice.level));
    if (slice.size < 1) return bad_size("must be greater than or equal to 1");
    if (i == 0) {
      if (slice.size > count_)
        bad_size(fmt::format("must not be greater than the number of pods, {}", count_));
    } else if (slices[i - 1].size % slice.size != 0) {
      bad_size(fmt::format("must divide the size before it, {}", slices[i - 1].size));
    }
  }

  void CheckGroup() {
    if (!Has(kGroup)) return;
    const std::string name = Text(kGroup);
    const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
    if (!name.empty() && std::ranges::all_of(name, is_digit))
      Invalid(kGroup, "must not be a number");
    for (const std::string_view key : {kSliceLevel, kSliceSize, kSlices}) Exclude(kGroup, key);
    if (!Has(kRequired) && !Has(kPreferred)) {
      Forbid(kGroup, fmt::format("may not be set without {} or {}: set one of them, or remove this "
                                 "one",
                                 kRequired, kPreferred));
    }
  }

  const StringMap& annotations_;
  const int64_t count_;
  FieldErrors errors_;
};

}  // namespace

std::optional<TopologyRequest> TopologyRequestOf(const StringMap& annotations) {
  TopologyRequest request;
  request.required = TextOf(annotations, kRequired);
  if (request.required.empty()) request.preferred = TextOf(annotations, kPreferred);
  request.unconstrained = TruthOf(TextOf(annotations, kUnconstrained)).value_or(false);
  const std::string level = TextOf(annotations, kSliceLevel);
  const int64_t size = NumberIn(TextOf(annotations, kSliceSize)).value_or(0);
  if (size > 0 && !level.empty()) {
    request.slices.push_back({.level = level, .size = size});
  } else if (Has(annotations, kSlices)) {
    request.slices = SlicesIn(TextOf(annotations, kSlices)).value_or(std::vector<TopologySlice>());
  }
  if (request == TopologyRequest{}) return std::nullopt;
  request.group = TextOf(annotations, kGroup);
  request.pod_index_label = kIndexLabel;
  return request;
}

FieldErrors CheckTopologyAnnotations(const StringMap& annotations, int64_t count) {
  const bool any = std::ranges::any_of(annotations, [](const auto& item) {
    return item.first.starts_with("kueue.x-k8s.io/podset-");
  });
  if (!any) return {};
  return Checker(annotations, count).Run();
}

}  // namespace berth::api
