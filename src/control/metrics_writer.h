#pragma once

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "control/scheduling_metrics.h"

namespace berth::control {

// Writes the text of /metrics, in Prometheus' format (its "text-based format", version 0.0.4). A
// series is named with its labels.
class MetricsWriter {
 public:
  // Before its series. `type`: counter, gauge or histogram.
  void Family(std::string_view name, std::string_view type, std::string_view help);
  void Value(std::string_view series, uint64_t value);
  // value / scale.
  void Decimal(std::string_view series, int64_t value, int64_t scale);
  void Counter(std::string_view name, std::string_view help, uint64_t value);
  void Gauge(std::string_view name, std::string_view help, uint64_t value);
  // The series of a histogram whose bounds double from `first`; `scale` of its unit is one.
  template <size_t N>
  void Buckets(std::string_view name, std::string_view labels, const Histogram<N>& histogram,
               std::pair<int64_t, int64_t> first_and_scale);
  // Likewise, of a histogram of any bounds, in units of `scale`; `counts` has one more, above all.
  void Buckets(std::string_view name, std::string_view labels, std::span<const int64_t> bounds,
               std::span<const uint64_t> counts, std::pair<int64_t, int64_t> sum_and_scale);
  std::string Take() { return std::move(text_); }
  // A label's value as it stands between quotes, of what may hold anything.
  [[nodiscard]] static std::string Escaped(std::string_view value);

 private:
  // value / scale with as many digits as it takes.
  static std::string DecimalOf(int64_t value, int64_t scale);

  std::string text_;
};

template <size_t N>
void MetricsWriter::Buckets(std::string_view name, std::string_view labels,
                            const Histogram<N>& histogram,
                            std::pair<int64_t, int64_t> first_and_scale) {
  const auto [first, scale] = first_and_scale;
  std::array<int64_t, N> bounds{};
  for (size_t i = 0; i < N; ++i) bounds[i] = first << i;
  Buckets(name, labels, bounds, histogram.counts, {histogram.sum, scale});
}

}  // namespace berth::control
