#include "control/probes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "control/scheduler.h"

namespace berth::control {
namespace {

struct Check {
  std::string_view name;
  std::string failure;  // Empty: it passes.
};

// Longer than a server takes to come to know a role.
constexpr Duration kRefusedMax = Duration::Minutes(1);

std::string FailureOfSync(const Scheduler& scheduler) {
  if (!scheduler.synced()) return "the cluster is still being listed";
  const client::Client& client = scheduler.client();
  for (uint32_t i = 0; i < client.watches_count(); ++i) {
    const client::WatchState& watch = client.watch({i});
    if (watch.refused_for() < kRefusedMax) continue;
    return fmt::format("the API server has refused to watch {} for {} s",
                       watch.options().resource.plural, watch.refused_for().seconds());
  }
  return "";
}

std::vector<Check> ChecksOf(const Scheduler& scheduler, std::string_view probe) {
  std::vector<Check> checks;
  if (probe != "livez" && scheduler.election() != nullptr)
    checks.push_back({.name = "leaderElection", .failure = {}});
  if (probe == "readyz") {
    checks.push_back({.name = "sched-handler-sync", .failure = FailureOfSync(scheduler)});
    checks.push_back(
        {.name = "shutdown", .failure = scheduler.stopping() ? "process is shutting down" : ""});
  }
  if (checks.empty()) checks.push_back({.name = "ping", .failure = {}});
  return checks;
}

// The values of "exclude", and whether "verbose" is there.
struct Query {
  std::set<std::string, std::less<>> excluded;
  bool verbose = false;
};

Query QueryOf(std::string_view text) {
  constexpr std::string_view kExclude = "exclude=";
  Query query;
  while (!text.empty()) {
    const size_t end = std::min(text.find('&'), text.size());
    const std::string_view one = text.substr(0, end);
    if (one.starts_with(kExclude)) query.excluded.emplace(one.substr(kExclude.size()));
    if (one.substr(0, one.find('=')) == "verbose") query.verbose = true;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return query;
}

env::HttpResponse Text(int status, std::string body) {
  return {.status = status,
          .headers = {{"content-type", "text/plain; charset=utf-8"},
                      {"x-content-type-options", "nosniff"}},
          .body = Bytes(std::move(body))};
}

// Anybody may ask: why a check fails is told to who asks for it alone.
env::HttpResponse AnswerAll(std::string_view probe, const std::vector<Check>& checks, Query query) {
  std::string lines;
  bool failed = false;
  for (const auto& [name, failure] : checks) {
    if (query.excluded.erase(std::string(name)) > 0) {
      lines += fmt::format("[+]{} excluded: ok\n", name);
    } else if (failure.empty()) {
      lines += fmt::format("[+]{} ok\n", name);
    } else {
      lines += fmt::format("[-]{} failed: reason withheld\n", name);
      failed = true;
    }
  }
  if (!query.excluded.empty()) {
    lines += fmt::format("warn: some health checks cannot be excluded: no matches for \"{}\"\n",
                         fmt::join(query.excluded, "\",\""));
  }
  if (failed) return Text(500, fmt::format("{}{} check failed\n", lines, probe));
  if (!query.verbose) return Text(200, "ok");
  return Text(200, fmt::format("{}{} check passed\n", lines, probe));
}

}  // namespace

std::optional<env::HttpResponse> AnswerProbe(const Scheduler& scheduler, std::string_view target) {
  const size_t question = std::min(target.find('?'), target.size());
  std::string_view path = target.substr(0, question);
  for (const std::string_view probe : {"healthz", "livez", "readyz"}) {
    if (!path.substr(std::min<size_t>(1, path.size())).starts_with(probe)) continue;
    const std::string_view rest = path.substr(1 + probe.size());
    const std::vector<Check> checks = ChecksOf(scheduler, probe);
    if (rest.empty())
      return AnswerAll(probe, checks,
                       QueryOf(target.substr(std::min(question + 1, target.size()))));
    if (!rest.starts_with('/')) return std::nullopt;
    const auto check = std::ranges::find(checks, rest.substr(1), &Check::name);
    if (check == checks.end()) return std::nullopt;
    if (check->failure.empty()) return Text(200, "ok");
    return Text(500, fmt::format("internal server error: {}\n", check->failure));
  }
  return std::nullopt;
}

}  // namespace berth::control
