#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace berth::cmd {

// What the process takes, by the names and in the units of Prometheus' clients
// (https://prometheus.io/docs/instrumenting/writing_clientlibs/#process-metrics): its start, time of
// processors, memory and descriptors; as text of /metrics. What can't be read is left out. Reads
// /proc: some 50 us.
[[nodiscard]] std::string ProcessMetrics();

// Of a /proc/PID/stat, in ticks of the clock and pages.
struct ProcessStat {
  uint64_t cpu_ticks = 0;    // User and system.
  uint64_t start_ticks = 0;  // Since the machine was started.
  uint64_t virtual_bytes = 0;
  uint64_t resident_pages = 0;
};
// False: it is none. The name in it may hold anything, also ')' and spaces.
[[nodiscard]] bool ReadProcessStat(std::string_view text, ProcessStat& out);

}  // namespace berth::cmd
