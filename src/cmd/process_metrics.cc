#include "cmd/process_metrics.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <charconv>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>

namespace berth::cmd {
namespace {

std::string TextOf(const char* path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// When the machine was started, in seconds; 0: it is not known.
uint64_t BootSeconds() {
  constexpr std::string_view kKey = "\nbtime ";
  const std::string text = TextOf("/proc/stat");
  const size_t at = text.find(kKey);
  uint64_t seconds = 0;
  if (at != std::string::npos)
    std::from_chars(text.data() + at + kKey.size(), text.data() + text.size(), seconds);
  return seconds;
}

uint64_t DescriptorsCount() {
  std::error_code error;
  uint64_t count = 0;
  for (std::filesystem::directory_iterator it("/proc/self/fd", error), end; !error && it != end;
       it.increment(error))
    ++count;
  return count == 0 ? 0 : count - 1;  // One is of this look.
}

void Add(std::string& out, std::string_view name, std::string_view type, std::string_view help,
         const std::string& value) {
  out += fmt::format("# HELP {0} {2}\n# TYPE {0} {1}\n{0} {3}\n", name, type, help, value);
}

// Hundredths of a second, as there are on Linux.
std::string Seconds(uint64_t ticks, uint64_t ticks_per_second) {
  return fmt::format("{}.{:02}", ticks / ticks_per_second,
                     ticks % ticks_per_second * 100 / ticks_per_second);
}

}  // namespace

bool ReadProcessStat(std::string_view text, ProcessStat& out) {
  // Behind the name: the state is field 3 of proc(5).
  const size_t name_end = text.rfind(')');
  if (name_end == std::string_view::npos) return false;
  text.remove_prefix(name_end + 1);
  constexpr int kUserTime = 14;
  constexpr int kSystemTime = 15;
  constexpr int kStart = 22;
  constexpr int kVirtual = 23;
  constexpr int kResident = 24;
  out = {};
  int field = 2;
  while (field < kResident) {
    const size_t begin = text.find_first_not_of(' ');
    if (begin == std::string_view::npos) return false;
    text.remove_prefix(begin);
    const std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(word.size());
    ++field;
    if (field != kUserTime && field != kSystemTime && field < kStart) continue;
    uint64_t value = 0;
    const auto [rest, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (error != std::errc{} || rest == word.data()) return false;
    if (field == kUserTime || field == kSystemTime) out.cpu_ticks += value;
    if (field == kStart) out.start_ticks = value;
    if (field == kVirtual) out.virtual_bytes = value;
    if (field == kResident) out.resident_pages = value;
  }
  return true;
}

std::string ProcessMetrics() {
  std::string out;
  ProcessStat stat;
  const long ticks = sysconf(_SC_CLK_TCK);
  const long page = sysconf(_SC_PAGESIZE);
  if (ticks > 0 && page > 0 && ReadProcessStat(TextOf("/proc/self/stat"), stat)) {
    const auto per_second = static_cast<uint64_t>(ticks);
    Add(out, "process_cpu_seconds_total", "counter", "User and system time of processors.",
        Seconds(stat.cpu_ticks, per_second));
    Add(out, "process_resident_memory_bytes", "gauge", "Memory that it has.",
        std::to_string(stat.resident_pages * static_cast<uint64_t>(page)));
    Add(out, "process_virtual_memory_bytes", "gauge", "Addresses that it has.",
        std::to_string(stat.virtual_bytes));
    if (const uint64_t boot = BootSeconds(); boot != 0) {
      Add(out, "process_start_time_seconds", "gauge", "When it was started, since 1970.",
          Seconds(boot * per_second + stat.start_ticks, per_second));
    }
  }
  if (const uint64_t count = DescriptorsCount(); count != 0)
    Add(out, "process_open_fds", "gauge", "Descriptors that are open.", std::to_string(count));
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0)
    Add(out, "process_max_fds", "gauge", "Descriptors that may be open.",
        std::to_string(limit.rlim_cur));
  return out;
}

}  // namespace berth::cmd
