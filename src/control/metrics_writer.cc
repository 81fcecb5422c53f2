#include "control/metrics_writer.h"

namespace berth::control {

void MetricsWriter::Family(std::string_view name, std::string_view type, std::string_view help) {
  text_ += fmt::format("# HELP {} {}\n# TYPE {} {}\n", name, help, name, type);
}

void MetricsWriter::Value(std::string_view series, uint64_t value) {
  text_ += fmt::format("{} {}\n", series, value);
}

void MetricsWriter::Decimal(std::string_view series, int64_t value, int64_t scale) {
  text_ += fmt::format("{} {}\n", series, DecimalOf(value, scale));
}

void MetricsWriter::Counter(std::string_view name, std::string_view help, uint64_t value) {
  Family(name, "counter", help);
  Value(name, value);
}

void MetricsWriter::Gauge(std::string_view name, std::string_view help, uint64_t value) {
  Family(name, "gauge", help);
  Value(name, value);
}

void MetricsWriter::Buckets(std::string_view name, std::string_view labels,
                            std::span<const int64_t> bounds, std::span<const uint64_t> counts,
                            std::pair<int64_t, int64_t> sum_and_scale) {
  const auto [sum, scale] = sum_and_scale;
  const std::string_view comma = labels.empty() ? "" : ",";
  uint64_t count = 0;
  for (size_t i = 0; i < counts.size(); ++i) {
    count += counts[i];
    const std::string bound = i == bounds.size() ? "+Inf" : DecimalOf(bounds[i], scale);
    Value(fmt::format("{}_bucket{{{}{}le=\"{}\"}}", name, labels, comma, bound), count);
  }
  const std::string braces = labels.empty() ? "" : fmt::format("{{{}}}", labels);
  Decimal(fmt::format("{}_sum{}", name, braces), sum, scale);
  Value(fmt::format("{}_count{}", name, braces), count);
}

std::string MetricsWriter::Escaped(std::string_view value) {
  std::string text;
  text.reserve(value.size());
  for (const char c : value) {
    if (c == '"' || c == '\\' || c == '\n') text += '\\';
    text += c == '\n' ? 'n' : c;
  }
  return text;
}

std::string MetricsWriter::DecimalOf(int64_t value, int64_t scale) {
  std::string text = std::to_string(value / scale);
  int64_t rest = value % scale;
  if (rest != 0) text += '.';
  while (rest != 0) {
    rest *= 10;
    text += static_cast<char>('0' + rest / scale);
    rest %= scale;
  }
  return text;
}

}  // namespace berth::control
