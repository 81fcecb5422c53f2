#include "place/fragments.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <tuple>

#include "base/check.h"

namespace berth::place {
namespace {

// The order of groups and steps inside the table; it changes no sum.
auto Kind(const TypicalPod& p) { return std::tie(p.gpu, p.models, p.cpu_milli); }

}  // namespace

std::vector<TypicalPod> MostPopular(std::span<const TypicalPod> pods) {
  std::vector<TypicalPod> kinds;
  int64_t total = 0;
  for (const TypicalPod& pod : pods) {
    total += pod.count;
    const auto known =
        std::ranges::find_if(kinds, [&](const TypicalPod& kind) { return kind.SameKind(pod); });
    if (known != kinds.end()) {
      known->count += pod.count;
    } else {
      kinds.push_back(pod);
    }
  }
  std::ranges::stable_sort(kinds, std::greater<>(), [](const TypicalPod& kind) {
    return std::tuple(kind.count, kind.gpu.total_milli(), kind.cpu_milli);
  });
  int64_t covered = 0;
  size_t kept = 0;
  while (kept < kinds.size() && covered * 100 < total * 95) covered += kinds[kept++].count;
  kinds.resize(kept);
  return kinds;
}

FragmentTable::FragmentTable(std::span<const TypicalPod> typical) {
  std::vector<TypicalPod> pods(typical.begin(), typical.end());
  std::ranges::sort(pods, [](const auto& a, const auto& b) { return Kind(a) < Kind(b); });
  for (size_t i = 0; i < pods.size(); ++i) {
    const TypicalPod& pod = pods[i];
    CHECK_GT(pod.count, 0);
    pods_count_ += pod.count;
    if (pod.gpu.none()) {
      without_gpu_count_ += pod.count;
      continue;
    }
    if (groups_.empty() || i == 0 || pods[i - 1].gpu != pod.gpu ||
        pods[i - 1].models != pod.models) {
      groups_.push_back({.gpu = pod.gpu,
                         .models_first = static_cast<uint32_t>(models_.size()),
                         .models_count = static_cast<uint32_t>(pod.models.size()),
                         .cpus_first = static_cast<uint32_t>(cpus_.size())});
      models_.insert(models_.end(), pod.models.begin(), pod.models.end());
    }
    Group& group = groups_.back();
    group.count += pod.count;
    ++group.cpus_count;
    cpus_.push_back({.cpu_milli = pod.cpu_milli, .count_up_to = group.count});
  }
  // sigmoid(x) >= k / 100 exactly when x >= ln(k / (100 - k)): the least integer drop by bisection,
  // where the sigmoid as computed here is monotone. A drop is at most devices x 1000 x pods.
  const auto reaches = [this](int64_t drop, int64_t k) {
    const double x = static_cast<double>(drop) / static_cast<double>(pods_count_ * 1000);
    return static_cast<int64_t>(100.0 / (1.0 + Exp(-x))) >= k;
  };
  const int64_t bound = int64_t{model::kDevicesMax} * 1000 * std::max<int64_t>(pods_count_, 1);
  for (int64_t k = 0; k < 100; ++k) {
    int64_t low = -bound;
    int64_t high = bound + 1;
    while (pods_count_ > 0 && low < high) {
      const int64_t middle = low + (high - low) / 2;
      if (reaches(middle, k)) {
        high = middle;
      } else {
        low = middle + 1;
      }
    }
    thresholds_[static_cast<size_t>(k)] = low;
  }
}

int64_t FragmentTable::Fragment(const Leftover& node) const {
  int32_t total = 0;
  int32_t largest = 0;
  uint32_t idle = 0;
  for (const int32_t milli : node.devices_milli) {
    total += milli;
    largest = std::max(largest, milli);
    idle += milli == model::kDeviceMilli ? 1 : 0;
  }
  if (total == 0) return 0;
  int64_t fragment = without_gpu_count_ * total;
  for (const Group& group : groups_) {
    const int32_t each = group.gpu.share_milli > 0 ? static_cast<int32_t>(group.gpu.share_milli)
                                                   : model::kDeviceMilli;
    const bool room = group.gpu.share_milli > 0 ? largest >= each : idle >= group.gpu.devices_count;
    const auto models = std::span(models_).subspan(group.models_first, group.models_count);
    int64_t can_run = 0;
    if (room && (models.empty() || std::ranges::binary_search(models, node.gpu_model))) {
      const CpuStep* steps = cpus_.data() + group.cpus_first;
      for (uint32_t i = 0; i < group.cpus_count && steps[i].cpu_milli <= node.cpu_milli; ++i) {
        can_run = steps[i].count_up_to;
      }
    }
    fragment += (group.count - can_run) * total;
    if (can_run == 0) continue;
    int32_t too_full = 0;
    for (const int32_t milli : node.devices_milli) too_full += milli < each ? milli : 0;
    fragment += can_run * too_full;
  }
  return fragment;
}

int64_t FragmentTable::Score(int64_t drop) const {
  const auto above = std::ranges::upper_bound(thresholds_, drop);
  return std::max<int64_t>(above - thresholds_.begin() - 1, 0);
}

void FragmentTable::AddTo(Hasher& hasher) const {
  hasher.Add(pods_count_).Add(without_gpu_count_);
  for (const Group& g : groups_) {
    hasher.Add(g.gpu.share_milli).Add(g.gpu.devices_count).Add(g.count).Add(g.cpus_count);
    hasher.Add(g.models_count);
  }
  for (const model::NameId name : models_) hasher.Add(name.value);
  for (const CpuStep& c : cpus_) hasher.Add(c.cpu_milli).Add(c.count_up_to);
}

double Exp(double x) {
  constexpr double kLn2High =
      6.93147180369123816490e-01;  // ln 2 in two parts, the first with trailing zero bits.
  constexpr double kLn2Low = 1.90821492927058770002e-10;
  const double scaled = x * 1.44269504088896338700e+00;
  const auto n = static_cast<int>(scaled < 0 ? scaled - 0.5 : scaled + 0.5);
  const double r = (x - n * kLn2High) - n * kLn2Low;  // |r| <= ln 2 / 2
  double sum = 1;
  double term = 1;
  for (int i = 1; i <= 18; ++i) {  // 0.35^18 / 18! < 1e-24
    term = term * r / i;
    sum = sum + term;
  }
  return std::ldexp(sum, n);
}

}  // namespace berth::place
