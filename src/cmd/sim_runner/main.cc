// `dev sim`: runs seeds of the simulator and prints what was found.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <cstdio>
#include <optional>
#include <string>
#include <thread>

#include "base/mutex.h"
#include "cli/numbers.h"
#include "cmd/parallel.h"
#include "sim/run.h"

namespace {

using berth::cli::WholeNumber;
using berth::cmd::ForEachInParallel;
using berth::sim::FaultCounts;
using berth::sim::RunOptions;
using berth::sim::RunResult;
using berth::sim::RunSeed;

struct Totals {
  FaultCounts counts;
  uint64_t seeds = 0;
  uint64_t commits = 0;
  uint64_t bindings = 0;
  uint64_t evictions = 0;
  uint64_t charged = 0;
  uint64_t terms = 0;
  uint64_t commits_least = UINT64_MAX;
  uint64_t failed = 0;
};

void PrintViolations(const RunResult& result, const RunOptions& options) {
  for (const std::string& violation : result.violations) {
    fmt::print("seed {}: {}\n", result.seed, violation);
  }
  fmt::print("  again: dev sim --seed {}{}{}\n", result.seed, options.replicas ? " --replicas" : "",
             options.extenders ? " --extenders" : "");
}

void PrintTotals(const Totals& totals) {
  fmt::print(
      "{} seeds, {} API writes (at least {} a seed), {} bindings, {} evictions for preemptors, {} "
      "charged to budgets, {} failed\n",
      totals.seeds, totals.commits, totals.seeds == 0 ? 0 : totals.commits_least, totals.bindings,
      totals.evictions, totals.charged, totals.failed);
  if (totals.terms > 0) fmt::print("  {} times a replica began to lead\n", totals.terms);
  for (size_t i = 0; i < berth::sim::kFaultsCount; ++i) {
    fmt::print("  {:<22} {:>9} times\n", ToString(static_cast<berth::sim::Fault>(i)),
               totals.counts.fired[i]);
  }
}

// A fault that never comes is not tested. Few seeds may well draw none.
bool AllFired(const Totals& totals) {
  constexpr uint64_t kSeedsMin = 100;
  if (totals.seeds < kSeedsMin) return true;
  bool all = true;
  for (size_t i = 0; i < berth::sim::kFaultsCount; ++i) {
    if (totals.counts.fired[i] > 0) continue;
    fmt::print("{} never fired\n", ToString(static_cast<berth::sim::Fault>(i)));
    all = false;
  }
  return all;
}

// One seed with its trace.
int RunOne(const RunOptions& options) {
  const uint64_t seed = options.seed;
  const RunResult result = RunSeed(options);
  std::fputs(result.trace.c_str(), stdout);
  fmt::print(
      "seed {}: {} API writes, {} bindings, {} evictions, {} steps, {:.1f} simulated seconds, hash "
      "{:016x}\n",
      seed, result.commits, result.bindings, result.evictions, result.steps,
      static_cast<double>(result.length.ns) / 1e9, result.hash);
  if (result.violations.empty()) return 0;
  PrintViolations(result, options);
  return 1;
}

struct Many {
  uint64_t first = 1;
  uint64_t count = 0;
  bool unseed = true;
  bool replicas = false;
  bool extenders = false;
};

int RunMany(const Many& many, unsigned workers) {
  berth::Mutex mutex;
  Totals totals;  // Under `mutex`: clang has no way to say so of a local variable.
  ForEachInParallel(many.count, workers, [&](uint64_t i) {
    const RunOptions options{
        .seed = many.first + i, .replicas = many.replicas, .extenders = many.extenders};
    RunResult result = RunSeed(options);
    if (many.unseed && options.seed % 16 == 0 && RunSeed(options).hash != result.hash) {
      result.violations.emplace_back("the same seed gave other bytes");
    }
    const berth::MutexLock lock(mutex);
    ++totals.seeds;
    totals.counts += result.counts;
    totals.commits += result.commits;
    totals.bindings += result.bindings;
    totals.evictions += result.evictions;
    totals.charged += result.charged;
    totals.terms += result.terms;
    totals.commits_least = std::min(totals.commits_least, result.commits);
    if (!result.violations.empty()) {
      ++totals.failed;
      PrintViolations(result, options);
    }
    if (totals.seeds % 20 == 0) {
      std::fprintf(stderr, "%lu of %lu seeds\n", totals.seeds, many.count);
    }
  });
  PrintTotals(totals);
  return totals.failed == 0 && AllFired(totals) ? 0 : 1;
}

// What is told of a bug: at which of the seeds it was found. It must be by the violation that it
// stands for.
std::string FindBug(const berth::sim::NamedBug& bug, uint64_t first, uint64_t count, bool& found) {
  std::string text;
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t seed = first + i;
    const RunResult result = RunSeed({.seed = seed, .bugs = bug.bugs, .replicas = bug.replicas});
    if (Found(bug, result)) {
      found = true;
      return text + fmt::format("{:<32} found by seed {}: {}\n", bug.name, seed,
                                result.violations.front());
    }
    if (!result.violations.empty()) {
      text += fmt::format("{:<32} seed {} shows something else: {}\n", bug.name, seed,
                          result.violations.front());
    }
  }
  return text + fmt::format("{:<32} NOT FOUND in {} seeds\n", bug.name, count);
}

int RunPlanted(uint64_t first, uint64_t count, unsigned workers) {
  const auto bugs = berth::sim::AllPlantedBugs();
  std::atomic<int> missed = 0;
  ForEachInParallel(bugs.size(), workers, [&](uint64_t i) {
    bool found = false;
    const std::string text = FindBug(bugs[i], first, count, found);
    if (!found) ++missed;
    std::fputs(text.c_str(), stdout);
    std::fflush(stdout);
  });
  return missed == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Runs the simulator: a whole cluster under one seed, with faults and checkers.");
  uint64_t seeds = 100;
  uint64_t first = 1;
  uint64_t seed = 0;
  bool planted = false;
  bool unseed = true;
  bool replicas = false;
  bool extenders = false;
  unsigned workers = std::max(1u, std::thread::hardware_concurrency());
  app.add_option("--seeds", seeds, "how many seeds to run")->transform(WholeNumber());
  app.add_option("--first", first, "the first of them")->transform(WholeNumber());
  auto* one =
      app.add_option("--seed", seed, "run this one and print its trace")->transform(WholeNumber());
  app.add_option("--jobs", workers, "threads, each with seeds of its own")
      ->transform(WholeNumber(1, 64));
  app.add_flag("--planted", planted, "run the planted bugs instead: each must be found");
  app.add_flag("--unseed,!--no-unseed", unseed, "run every 16th seed twice and compare the bytes");
  app.add_flag("--replicas", replicas,
               "two schedulers, of which one leads; it is paused, stopped and killed");
  app.add_flag("--extenders", extenders,
               "an extender is asked about every pod; it is silent, fails and refuses");
  if (const std::optional<int> status = berth::cli::ParseOrExit(app, argc, argv)) return *status;
  if (planted) return RunPlanted(first, seeds, workers);
  if (one->count() > 0)
    return RunOne({.seed = seed, .trace = true, .replicas = replicas, .extenders = extenders});
  return RunMany({.first = first,
                  .count = seeds,
                  .unseed = unseed,
                  .replicas = replicas,
                  .extenders = extenders},
                 workers);
}
