// How the demo shows where it stands.
#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "cli/demo.h"

namespace berth::cli {
namespace {

constexpr size_t kReasonsShown = 3;
constexpr int64_t kBarWidth = 40;

// "12,345".
std::string Grouped(int64_t count) {
  std::string text = fmt::format("{}", count);
  for (size_t at = text.size(); at > 3; at -= 3) text.insert(at - 3, 1, ',');
  return text;
}

std::string Time(Duration duration) {
  const auto ms = static_cast<double>(duration.ns) / 1e6;
  if (ms < 10) return fmt::format("{:.1f} ms", ms);
  if (ms < 1000) return fmt::format("{:.0f} ms", ms);
  return fmt::format("{:.1f} s", ms / 1000);
}

int64_t Percent(const DemoProgress& progress) {
  return progress.cpu_milli_total == 0 ? 0
                                       : progress.cpu_milli_placed * 100 / progress.cpu_milli_total;
}

std::string Bar(int64_t part, int64_t whole) {
  const int64_t filled =
      whole == 0 ? 0 : std::clamp<int64_t>(part * kBarWidth / whole, 0, kBarWidth);
  return std::string(static_cast<size_t>(filled), '#');
}

std::vector<std::pair<std::string, int64_t>> TopReasons(const DemoProgress& progress) {
  std::vector<std::pair<std::string, int64_t>> sorted(progress.reasons.begin(),
                                                      progress.reasons.end());
  std::ranges::stable_sort(sorted, std::greater<>(), &std::pair<std::string, int64_t>::second);
  if (sorted.size() > kReasonsShown) sorted.resize(kReasonsShown);
  return sorted;
}

void AddTeams(const DemoProgress& progress, std::vector<std::string>& lines) {
  int64_t most = 1;
  for (const auto& [team, counts] : progress.teams)
    most = std::max(most, counts.first + counts.second);
  for (const char* team : kDemoTeams) {
    const auto found = progress.teams.find(team);
    const auto [running, waiting] =
        found == progress.teams.end() ? std::pair<int64_t, int64_t>() : found->second;
    lines.push_back(fmt::format("  {:<9} running {:>5}   waiting {:>5}   {}{}", team, running,
                                waiting, Bar(running, most),
                                std::string(Bar(waiting, most).size(), '.')));
  }
}

}  // namespace

std::string DemoLine(const DemoProgress& progress) {
  if (progress.clearing) {
    return fmt::format("deleting the load of an earlier demo: {} pods left\n",
                       progress.pods_seen - progress.gone);
  }
  return fmt::format(
      "{:>4} s  workloads {}/{}  jobs done {}/{}  pods: waiting {}, starting {}, running {}, "
      "succeeded {}, failed {}  cpu {} %\n",
      progress.elapsed.seconds(), progress.workloads_submitted, progress.workloads_planned,
      progress.jobs_finished, progress.jobs, progress.waiting, progress.starting, progress.running,
      progress.succeeded, progress.failed, Percent(progress));
}

std::string DemoBlock(const DemoProgress& progress, size_t columns) {
  std::vector<std::string> lines;
  lines.push_back(fmt::format("  {:>4} s    {} nodes   workloads {}/{}   jobs finished {}/{}{}",
                              progress.elapsed.seconds(), progress.nodes,
                              progress.workloads_submitted, progress.workloads_planned,
                              progress.jobs_finished, progress.jobs,
                              progress.clearing ? "   deleting the load of an earlier demo" : ""));
  lines.push_back(fmt::format("  cpu       [{:<{}}] {:>3} %   {} of {} cores requested",
                              Bar(progress.cpu_milli_placed, progress.cpu_milli_total), kBarWidth,
                              Percent(progress), Grouped(progress.cpu_milli_placed / 1000),
                              Grouped(progress.cpu_milli_total / 1000)));
  lines.push_back(
      fmt::format("  pods      waiting {}   starting {}   running {}   succeeded {}   failed {}",
                  Grouped(progress.waiting), Grouped(progress.starting), Grouped(progress.running),
                  Grouped(progress.succeeded), Grouped(progress.failed)));
  lines.push_back(fmt::format("  bound     p50 {}   p99 {}   after a pod was first seen",
                              Time(progress.bind_p50), Time(progress.bind_p99)));
  AddTeams(progress, lines);
  const auto reasons = TopReasons(progress);
  for (size_t i = 0; i < kReasonsShown; ++i) {
    lines.push_back(i < reasons.size()
                        ? fmt::format("  {:<9} {:>5} pods: {}", i == 0 ? "waiting" : "",
                                      reasons[i].second, reasons[i].first)
                        : std::string());
  }
  std::string text;
  for (const std::string& line : lines) {
    // All of it is ASCII but a reason, and that is what the API server let in.
    text += line.substr(0, columns);
    text += '\n';
  }
  return text;
}

std::string DemoSummary(const DemoProgress& progress) {
  std::string text = fmt::format("demo {} in {} s on {} nodes: {} workloads, {} pods\n",
                                 progress.complete ? "has run" : "did not come to its end",
                                 progress.elapsed.seconds(), progress.nodes,
                                 progress.workloads_submitted, Grouped(progress.pods_seen));
  text += fmt::format("  jobs      {} of {} finished{}\n", progress.jobs_finished, progress.jobs,
                      progress.complete && progress.jobs_finished < progress.jobs
                          ? "; the other asks for more than any node has, as planned"
                          : "");
  text += fmt::format(
      "  pods      {} succeeded, {} failed as planned, {} running, {} waiting{}{}\n",
      Grouped(progress.succeeded), progress.failed, Grouped(progress.running), progress.waiting,
      progress.starting > 0 ? fmt::format(", {} starting", progress.starting) : "",
      progress.gone > 0 ? fmt::format(", {} deleted by updates and scaling", Grouped(progress.gone))
                        : "");
  text += fmt::format("  bound     p50 {}, p99 {} after a pod was first seen\n",
                      Time(progress.bind_p50), Time(progress.bind_p99));
  for (const auto& [reason, pods] : TopReasons(progress))
    text += fmt::format("  waiting   {} pod{}: {}\n", pods, pods == 1 ? "" : "s", reason);
  if (progress.requests_failed > 0)
    text += fmt::format("  {} requests failed\n", progress.requests_failed);
  return text;
}

}  // namespace berth::cli
