#pragma once

#include <fmt/format.h>

#include <cstdint>
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
  void Counter(std::string_view name, std::string_view help, uint64_t value);
  void Gauge(std::string_view name, std::string_view help, uint64_t value);
  // The series of a histogram whose bounds double from `first`; `scale` of its unit is one.
  template <size_t N>
  void Buckets(std::string_view name, std::string_view labels, const Histogram<N>& histogram,
               std::pair<int64_t, int64_t> first_and_scale);
  std::string Take() { return std::move(text_); }

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
  const std::string_view comma = labels.empty() ? "" : ",";
  uint64_t count = 0;
  for (size_t i = 0; i <= N; ++i) {
    count += histogram.counts[i];
    const std::string bound = i == N ? "+Inf" : DecimalOf(first << i, scale);
    Value(fmt::format("{}_bucket{{{}{}le=\"{}\"}}", name, labels, comma, bound), count);
  }
  const std::string braces = labels.empty() ? "" : fmt::format("{{{}}}", labels);
  text_ += fmt::format("{}_sum{} {}\n", name, braces, DecimalOf(histogram.sum, scale));
  Value(fmt::format("{}_count{}", name, braces), count);
}

}  // namespace berth::control
