// `berth replay`: reads a trace, runs the fill protocol with progress, and writes the report.
#include "sim/replay.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <string>
#include <system_error>

#include "cmd/commands.h"
#include "codec/json.h"
#include "net/certificates.h"
#include "sim/replay_stack.h"
#include "sim/trace.h"

namespace berth::cmd {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kSkippedToldMax = 20;  // Bad rows told of one by one.
constexpr size_t kSlice = 100;          // Decisions between two looks at the clock.

model::Policy ToPolicy(cli::ReplayPolicy policy) {
  switch (policy) {
    case cli::ReplayPolicy::kBestFit:
      return model::Policy::kBestFit;
    case cli::ReplayPolicy::kFgd:
      return model::Policy::kFgd;
    case cli::ReplayPolicy::kSpread:
      return model::Policy::kSpread;
    case cli::ReplayPolicy::kRandom:
      return model::Policy::kRandom;
  }
  return model::Policy::kSpread;
}

// Reads and parses one file; tells of rows left out.
template <typename Parse>
auto ReadTrace(const std::string& path, bool skip_bad, Parse parse)
    -> decltype(parse("", sim::TraceOptions())) {
  const Result<std::string> text = net::ReadFile(path, SIZE_MAX);
  if (!text) return std::unexpected(text.error());
  auto trace = parse(*text, sim::TraceOptions{.file_name = path, .skip_bad = skip_bad});
  if (trace && !trace->skipped.empty()) {
    const size_t told = std::min(trace->skipped.size(), kSkippedToldMax);
    for (size_t i = 0; i < told; ++i) fmt::print(stderr, "skipped: {}\n", trace->skipped[i]);
    fmt::print(stderr, "{}: {} bad rows skipped, {} rows read\n", path, trace->skipped.size(),
               trace->rows.size());
  }
  return trace;
}

double Percent(const sim::Allocation& allocation) {
  return allocation.capacity == 0 ? 0
                                  : 100.0 * static_cast<double>(allocation.allocated) /
                                        static_cast<double>(allocation.capacity);
}

void PrintSummary(const sim::ReplayReport& report) {
  fmt::print("{:>8} {:>8} {:>8} {:>8} {:>8} {:>8}\n", "arrived", "pods", "placed", "gpu", "cpu",
             "memory");
  for (const sim::Level& level : report.levels) {
    fmt::print("{:>6} % {:>8} {:>8} {:>6.2f} % {:>6.2f} % {:>6.2f} %\n", level.arrived_percent,
               level.arrived, level.placed, Percent(level.gpu_milli), Percent(level.cpu_milli),
               Percent(level.memory_bytes));
  }
  fmt::print("{} with seed {} on {} nodes: {} decisions, {}/s, hash {:016x}\n", report.policy,
             report.seed, report.nodes_count, report.decisions, report.decisions_per_second,
             report.decision_hash);
  if (report.rows_skipped > 0) fmt::print("without {} bad rows\n", report.rows_skipped);
}

// Runs a replay to its end, tells of its progress on stderr, and reports.
template <typename Replay>
Result<sim::ReplayReport> Run(Result<Replay> replay) {
  if (!replay) return std::unexpected(replay.error());
  const bool terminal = isatty(STDERR_FILENO) == 1;
  const auto start = Clock::now();
  auto told = start;
  bool more = true;
  while (more) {
    const Result<bool> stepped = replay->Step(kSlice);
    if (!stepped) return std::unexpected(stepped.error());
    more = *stepped;
    const auto now = Clock::now();
    if (now - told < std::chrono::milliseconds(terminal ? 100 : 2000)) continue;
    told = now;
    fmt::print(stderr, "{}{} of {} pods decided{}", terminal ? "\r" : "", replay->decided(),
               replay->arrivals(), terminal ? "" : "\n");
  }
  if (terminal && told != start) fmt::print(stderr, "\r{:60}\r", "");
  sim::ReplayReport report = replay->Report();
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  report.decisions_per_second =
      static_cast<int64_t>(static_cast<double>(report.decisions) / seconds);
  return report;
}

Result<sim::ReplayReport> Run(const cli::ReplayOptions& options, std::vector<sim::TraceNode> nodes,
                              std::vector<sim::TracePod> pods) {
  const sim::ReplayOptions wanted{
      .policy = ToPolicy(options.policy),
      .seed = options.seed,
      .arrived = {.part = static_cast<uint32_t>(options.arrived_permille), .whole = 1000}};
  if (options.engine_only) {
    return Run(sim::EngineReplay::Make(std::move(nodes), std::move(pods), wanted));
  }
  return Run(sim::StackReplay::Make(std::move(nodes), std::move(pods), wanted));
}

// Whether it looks as if the report could be written: told before a run that takes minutes.
Status CheckReport(const std::filesystem::path& path) {
  const auto fail = [&](int number) {
    return Fail(ErrorCode::kUnavailable,
                fmt::format("{}: can't be written: {}", path.string(), std::strerror(number)));
  };
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) return fail(EISDIR);
  const std::filesystem::path folder = path.has_parent_path() ? path.parent_path() : ".";
  // What is no folder has no "." in it.
  if (access((folder / ".").c_str(), W_OK | X_OK) != 0) return fail(errno);
  return {};
}

int Failed(const std::string& text) {
  fmt::print(stderr, "berth replay: {}\n", text);
  return cli::kFailed;
}

}  // namespace

int Replay(const cli::ReplayOptions& options) {
  const Status writable = options.report.empty() ? Status() : CheckReport(options.report);
  if (!writable) return Failed(writable.error().message);
  auto nodes = ReadTrace(options.nodes_csv, options.skip_bad, sim::ParseTraceNodes);
  if (!nodes) return Failed(nodes.error().message);
  auto pods = ReadTrace(options.pods_csv, options.skip_bad, sim::ParseTracePods);
  if (!pods) return Failed(pods.error().message);
  const size_t skipped = nodes->skipped.size() + pods->skipped.size();
  Result<sim::ReplayReport> report = Run(options, std::move(nodes->rows), std::move(pods->rows));
  if (!report) return Failed(report.error().message);
  report->rows_skipped = static_cast<int64_t>(skipped);
  PrintSummary(*report);
  if (options.report.empty()) return cli::kOk;
  const Status written =
      net::WritePrivateFile(options.report, codec::PrintJsonPretty(sim::ToJson(*report)) + "\n");
  return written ? cli::kOk : Failed(written.error().message);
}

}  // namespace berth::cmd
