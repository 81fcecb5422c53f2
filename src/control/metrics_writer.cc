#include "control/metrics_writer.h"

namespace berth::control {

void MetricsWriter::Family(std::string_view name, std::string_view type, std::string_view help) {
  text_ += fmt::format("# HELP {} {}\n# TYPE {} {}\n", name, help, name, type);
}

void MetricsWriter::Value(std::string_view series, uint64_t value) {
  text_ += fmt::format("{} {}\n", series, value);
}

void MetricsWriter::Counter(std::string_view name, std::string_view help, uint64_t value) {
  Family(name, "counter", help);
  Value(name, value);
}

void MetricsWriter::Gauge(std::string_view name, std::string_view help, uint64_t value) {
  Family(name, "gauge", help);
  Value(name, value);
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
