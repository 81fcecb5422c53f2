// `dev explore`: walks scenarios in every order and prints what was found.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "cli/numbers.h"
#include "cmd/parallel.h"
#include "explore/explorer.h"
#include "explore/random.h"
#include "explore/stage.h"
#include "explore/words.h"
#include "sim/run.h"

namespace {

using berth::Result;
using berth::cli::WholeNumber;
using berth::explore::Counted;
using berth::explore::ExploreOptions;
using berth::explore::Report;
using berth::explore::Scenario;
using berth::explore::Stage;

struct Arguments {
  std::vector<std::string> files;
  std::string replay;
  std::string plant;
  std::string dot;
  std::string commit;
  uint64_t states = 0;
  uint64_t random = 0;
  uint64_t first = 1;
  unsigned jobs = 1;
  bool planted = false;
  bool brute = false;
  bool table = false;
  bool crash = false;  // The walk with a crash that the file says besides, and it alone.
};

// What is told of one scenario.
struct Told {
  int status = 0;  // For exit: 0 clean, 1 violated, 2 can't be done.
  std::string text;

  template <typename... Args>
  void Print(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(text), format, std::forward<Args>(args)...);
  }
};

// Null: it can't be read. `brute`: lists of what never changes are walked as all others.
std::shared_ptr<const Scenario> Read(const std::string& file, bool brute) {
  std::ifstream in(file);
  if (!in) {
    fmt::print(stderr, "{}: can't be read\n", file);
    return nullptr;
  }
  std::stringstream text;
  text << in.rdbuf();
  Result<Scenario> scenario = berth::explore::ParseScenario(text.str(), file);
  if (!scenario) {
    fmt::print(stderr, "{}\n", scenario.error().message);
    return nullptr;
  }
  if (brute) scenario->unchanging.clear();
  return std::make_shared<const Scenario>(std::move(*scenario));
}

struct Walked {
  Report report;
  double seconds = 0;
};

Result<Walked> Walk(const std::shared_ptr<const Scenario>& scenario,
                    const ExploreOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  Result<Report> report = berth::explore::Explore(scenario, options);
  if (!report) return std::unexpected(report.error());
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  return Walked{.report = std::move(*report), .seconds = took.count()};
}

void Print(const Scenario& scenario, const Walked& walked, Told& told) {
  const Report& report = walked.report;
  told.Print("{} ({}): {}\n", scenario.name, fmt::join(scenario.cases, ", "),
             report.violation ? "VIOLATED"
             : report.whole() ? "walked whole, clean"
                              : "clean as far as it was walked");
  told.Print("  {}, {}, {}, {} pruned, {} merged, {}, depth {}, at most {}\n",
             Counted(report.states, "distinct state"), Counted(report.transitions, "transition"),
             Counted(report.choices, "choice"), report.pruned, report.merged,
             Counted(report.ends, "end"), report.depth, Counted(report.bindings, "binding"));
  told.Print("  {:.1f} s, {:.0f} states/s, {:.0f} transitions/s\n", walked.seconds,
             static_cast<double>(report.states) / walked.seconds,
             static_cast<double>(report.transitions) / walked.seconds);
  if (report.depth_cuts > 0) {
    told.Print("  not gone on from {}: the bound of {} in a row\n",
               Counted(report.depth_cuts, "state"), Counted(scenario.bounds.depth, "choice"));
  }
  if (report.states_cut) told.Print("  the walk ended at the bound of states\n");
}

// A row of docs/RACES.md.
void PrintRow(const Scenario& scenario, const Report& report, Told& told) {
  told.Print("| {} | {} | {} | {} | {} |\n", scenario.name, report.states, report.transitions,
             report.depth, report.whole() ? "whole" : "cut");
}

int Tell(const std::shared_ptr<const Scenario>& scenario, const Arguments& arguments,
         const berth::sim::PlantedBugs& bugs, const std::vector<uint32_t>& path, Told& told) {
  const Result<std::string> story = berth::explore::TellStory(scenario, bugs, path);
  if (!story) {
    fmt::print(stderr, "{}\n", story.error().message);
    return 2;
  }
  told.text += *story;
  if (arguments.dot.empty()) return 0;
  const Result<std::string> drawn = berth::explore::DrawStory(scenario, bugs, path);
  std::ofstream out(arguments.dot);
  if (!drawn || !(out << *drawn)) {
    fmt::print(stderr, "{}: can't be written\n", arguments.dot);
    return 2;
  }
  return 0;
}

// Plays the scenario with the production controllers and kubelets, and compares with the walk.
int PlayOne(const Scenario& scenario, const Arguments& arguments, const ExploreOptions& options,
            const berth::explore::Known& known, Told& told) {
  if (!berth::explore::CanPlay(scenario)) {
    told.Print("  not played: it has what only the explorer can do\n");
    return 0;
  }
  const berth::explore::Played played = berth::explore::PlayRandom(
      scenario, {.first = arguments.first, .seeds = arguments.random, .bugs = options.bugs}, known);
  uint64_t faults = 0;
  for (const uint64_t fired : played.faults.fired) faults += fired;
  told.Print(
      "  played {} with controllers and kubelets, {}, {}; {} of {} that began as the walk came to "
      "an end it knows{}\n",
      Counted(played.plays, "time"), Counted(faults, "fault"), Counted(played.ends.size(), "end"),
      played.known, played.compared, played.failed.empty() ? ", clean" : "");
  for (const auto& [seed, what] : played.failed) {
    told.Print("  VIOLATED by seed {}: {}\n  again: dev explore {} --random 1 --first {}{}\n", seed,
               what, scenario.file, seed,
               arguments.commit.empty() ? "" : " (at " + arguments.commit + ")");
  }
  return played.failed.empty() ? 0 : 1;
}

// Whether the walk is as whole as the file says.
bool AsWholeAsSaid(const Scenario& scenario, const Report& report) {
  return scenario.whole_states == 0 || report.violation ||
         (report.whole() && report.states <= scenario.whole_states);
}

int WalkOne(const std::shared_ptr<const Scenario>& scenario, const Arguments& arguments,
            ExploreOptions options, Told& told) {
  if (options.states_max > 0)
    options.states_max = std::max(options.states_max, scenario->whole_states + 1);
  berth::explore::Known known;
  const auto outcome = [&](const Stage& stage) {
    return berth::explore::Outcome(*scenario, stage.truth(), stage.evictions());
  };
  if (arguments.random > 0) {
    const Result<Stage> start = Stage::Make(scenario, options.bugs);
    if (start) known.start = outcome(*start);
    options.at_end = [&](const Stage& stage) { known.ends.insert(outcome(stage)); };
  }
  const Result<Walked> walked = Walk(scenario, options);
  if (!walked) {
    fmt::print(stderr, "{}\n", walked.error().message);
    return 2;
  }
  if (arguments.table && !walked->report.violation) {
    PrintRow(*scenario, walked->report, told);
    return AsWholeAsSaid(*scenario, walked->report) ? 0 : 1;
  }
  Print(*scenario, *walked, told);
  known.whole = walked->report.whole();
  if (!AsWholeAsSaid(*scenario, walked->report)) {
    told.Print("  NOT WHOLE within {}\n", Counted(scenario->whole_states, "state"));
    return 1;
  }
  if (!walked->report.violation) {
    return arguments.random > 0 ? PlayOne(*scenario, arguments, options, known, told) : 0;
  }
  const auto& violation = *walked->report.violation;
  told.Print("  {}\n", violation.what);
  Tell(scenario, arguments, options.bugs, violation.path, told);
  told.Print("  again: dev explore {}{}{} --replay {}{}\n", scenario->file,
             arguments.plant.empty() ? "" : " --plant " + arguments.plant,
             arguments.crash ? " --crash" : "", berth::explore::PathText(violation.path),
             arguments.commit.empty() ? "" : " (at " + arguments.commit + ")");
  return 1;
}

// Each defect that the file names must be found within the states that it states.
int WalkPlanted(const std::shared_ptr<const Scenario>& scenario, Told& told) {
  int missed = 0;
  for (const auto& plant : scenario->plants) {
    const berth::sim::NamedBug* bug = berth::sim::FindPlanted(plant.name);
    const Result<Walked> walked = Walk(scenario, {.bugs = bug->bugs, .states_max = plant.states});
    if (!walked) return 2;
    const Report& report = walked->report;
    const bool found = report.violation && report.violation->what.contains(bug->sign);
    if (!found) ++missed;
    told.Print("{:<24} {:<32} {} within {} of {}{}\n", scenario->name, plant.name,
               found ? "found" : "NOT FOUND", report.states, Counted(plant.states, "state"),
               report.violation ? ": " + report.violation->what : "");
  }
  return missed == 0 ? 0 : 1;
}

// Tells a path again, or walks.
int RunOne(const std::shared_ptr<const Scenario>& scenario, const Arguments& arguments,
           const ExploreOptions& options, Told& told) {
  if (arguments.planted) return WalkPlanted(scenario, told);
  if (arguments.replay.empty()) return WalkOne(scenario, arguments, options, told);
  const auto path = berth::explore::ParsePath(arguments.replay);
  if (path) return Tell(scenario, arguments, options.bugs, *path, told);
  fmt::print(stderr, "{}\n", path.error().message);
  return 2;
}

// All that is asked about the scenario of one file.
Told RunFile(const std::string& file, const Arguments& arguments, const ExploreOptions& options) {
  Told told;
  const std::shared_ptr<const Scenario> scenario = Read(file, arguments.brute);
  if (scenario == nullptr) return {.status = 2, .text = {}};
  if (arguments.crash && !scenario->again) {
    fmt::print(stderr, "{}: no line says that it is walked again with a crash\n", file);
    return {.status = 2, .text = {}};
  }
  if (!arguments.crash) told.status = RunOne(scenario, arguments, options, told);
  const bool both = arguments.replay.empty() && !arguments.planted;
  if (arguments.crash || (both && scenario->again)) {
    Arguments with_crash = arguments;
    with_crash.crash = true;
    const auto again = std::make_shared<const Scenario>(berth::explore::WithCrash(*scenario));
    told.status = std::max(told.status, RunOne(again, with_crash, options, told));
  }
  return told;
}

// Tells of each file in the order of the files, as soon as those before it are done.
int RunFiles(const Arguments& arguments, const ExploreOptions& options) {
  berth::Mutex mutex;
  // Under `mutex`: clang has no way to say so of local variables.
  std::vector<std::optional<Told>> told(arguments.files.size());
  size_t printed = 0;
  int worst = 0;
  berth::cmd::ForEachInParallel(arguments.files.size(), arguments.jobs, [&](uint64_t i) {
    Told one = RunFile(arguments.files[i], arguments, options);
    const berth::MutexLock lock(mutex);
    worst = std::max(worst, one.status);
    told[i] = std::move(one);
    for (; printed < told.size() && told[printed]; ++printed) {
      std::fputs(std::exchange(told[printed]->text, {}).c_str(), stdout);
    }
    std::fflush(stdout);
  });
  return worst;
}

int Run(const Arguments& arguments) {
  ExploreOptions options{.bugs = {}, .reduce = !arguments.brute, .states_max = arguments.states};
  if (!arguments.plant.empty()) {
    const berth::sim::NamedBug* bug = berth::sim::FindPlanted(arguments.plant);
    if (bug == nullptr) {
      fmt::print(stderr, "no defect is called {}\n", arguments.plant);
      return 2;
    }
    options.bugs = bug->bugs;
  }
  return RunFiles(arguments, options);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app(
      "Walks scenarios: every order of what can happen in a small cluster, with checkers after "
      "each "
      "step. A violation is told as a story.");
  Arguments arguments;
  app.add_option("scenarios", arguments.files, "scenario files")->required();
  app.add_flag("--planted", arguments.planted,
               "walk with each defect that the file names: it must be found");
  app.add_option("--plant", arguments.plant, "walk with this defect");
  auto* replay = app.add_option("--replay", arguments.replay,
                                "tell what happens along this path, as a walk printed it");
  app.add_option("--dot", arguments.dot, "write the path to this file, for graphviz");
  app.add_option("--states", arguments.states,
                 "end after so many distinct states, where the file does not say that more are "
                 "whole")
      ->transform(WholeNumber());
  app.add_option("--random", arguments.random,
                 "play each scenario so many times with the real controllers and kubelets too")
      ->transform(WholeNumber());
  app.add_option("--first", arguments.first, "the first of the seeds to play")
      ->transform(WholeNumber());
  arguments.jobs = std::max(1U, std::thread::hardware_concurrency());
  app.add_option("--jobs", arguments.jobs, "scenarios at once")->transform(WholeNumber(1, 64));
  app.add_flag("--brute", arguments.brute, "leave out no order, to compare");
  app.add_flag("--table", arguments.table, "print a row per scenario, as docs/RACES.md has it");
  app.add_flag("--crash", arguments.crash,
               "walk with a crash, as the file says besides, and not without");
  app.add_option("--commit", arguments.commit, "printed with what replays a violation");
  if (const std::optional<int> status = berth::cli::ParseOrExit(app, argc, argv)) return *status;
  if (replay->count() > 0 && arguments.files.size() != 1) {
    fmt::print(stderr, "--replay takes one scenario\n");
    return 2;
  }
  return Run(arguments);
}
