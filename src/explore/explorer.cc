#include "explore/explorer.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <set>
#include <utility>

#include "base/check.h"

namespace berth::explore {
namespace {

// A choice that need not be taken here: whatever comes of it comes of another order, too.
struct Sleeper {
  uint64_t key = 0;
  Footprint touched = 0;
  auto operator<=>(const Sleeper&) const = default;
};
using Sleeping = std::vector<Sleeper>;  // Ascending.

bool Contains(const Sleeping& sleeping, uint64_t key) {
  return std::ranges::find(sleeping, key, &Sleeper::key) != sleeping.end();
}

bool Independent(Footprint a, Footprint b) { return (a & b) == 0; }

// Those that are still asleep when something else has happened.
Sleeping After(const Sleeping& sleeping, Footprint touched) {
  Sleeping after;
  for (const Sleeper& each : sleeping) {
    if (Independent(each.touched, touched)) after.push_back(each);
  }
  return after;
}

// "12.345678 s: what" -> "what".
std::string WithoutTime(const std::string& violation) {
  const size_t at = violation.find(": ");
  return at == std::string::npos ? violation : violation.substr(at + 2);
}

// Whatever is bounded (users, time, failures, crashes, what owners make) counts in the hash, so
// what led back can be done again and again.
constexpr std::string_view kCircle = "what happens leads back to where it was, and may go on so";
constexpr std::string_view kEndless =
    "after 1000 choices in a row it is not at rest, and may go on so";

class Search {
 public:
  Search(std::shared_ptr<const Scenario> scenario, const ExploreOptions& options)
      : scenario_(std::move(scenario)), options_(options) {
    states_max_ = options.states_max != 0 ? options.states_max : scenario_->bounds.states;
  }

  Result<Report> Run() {
    Result<Stage> start = Stage::Make(scenario_, options_.bugs);
    if (!start) return std::unexpected(start.error());
    const uint64_t hash = start->Hash();
    Enter(std::move(*start), hash, {});
    while (!frames_.empty() && !done_) {
      Frame& top = frames_.back();
      if (top.next == top.choices.size()) {
        on_path_.erase(on_path_.find(top.hash));
        frames_.pop_back();
        if (!frames_.empty()) path_.pop_back();
        continue;
      }
      TakeNext(top);
    }
    return std::move(report_);
  }

 private:
  struct Frame {
    Stage stage;
    uint64_t hash = 0;  // Of it.
    std::vector<Choice> choices;
    std::vector<bool> leave_out;  // By choice: explored before, or asleep.
    size_t next = 0;
    Sleeping sleeping;
  };
  // What is known of a state that was reached.
  struct Seen {
    Sleeping sleeping;  // What was left out there.
    uint32_t depth = 0;
  };

  void TakeNext(Frame& top) {
    const size_t index = top.next++;
    if (top.leave_out[index]) return;
    const Choice choice = top.choices[index];
    // Nobody needs it any more once the last is taken.
    const bool last = std::ranges::find(top.leave_out.begin() + static_cast<ptrdiff_t>(top.next),
                                        top.leave_out.end(), false) == top.leave_out.end();
    Stage after = last ? std::move(top.stage) : top.stage;
    const Footprint touched = after.Take(choice);
    ++report_.transitions;
    Sleeping sleeping = options_.reduce ? After(top.sleeping, touched) : Sleeping();
    if (options_.reduce) {
      const Sleeper taken{.key = choice.key, .touched = touched};
      top.sleeping.insert(std::ranges::upper_bound(top.sleeping, taken), taken);
    }
    path_.push_back(static_cast<uint32_t>(index));
    const size_t frames_before = frames_.size();
    if (Failed(after)) {
      Found(after);
    } else {
      const uint64_t hash = after.Hash();
      if (on_path_.contains(hash) && MayGoOn(hash)) {
        Found(std::string(kCircle));
      } else {
        Enter(std::move(after), hash, std::move(sleeping));  // Invalidates `top`.
      }
    }
    if (frames_.size() == frames_before) path_.pop_back();
  }

  // Whether what led back to the state of that hash, on the path, may do so again and again: not
  // where a watch has something to tell all the while, or an answer is there, that is never heard.
  [[nodiscard]] bool MayGoOn(uint64_t hash) const {
    const auto from = std::ranges::find(frames_, hash, &Frame::hash);
    const auto circle = std::ranges::subrange(from, frames_.end());
    return std::ranges::none_of(from->choices, [&](const Choice& waits) {
      if (waits.turn != Turn::kWatch && waits.turn != Turn::kAnswer) return false;
      return std::ranges::all_of(circle, [&](const Frame& frame) {
        const bool there =
            std::ranges::find(frame.choices, waits.key, &Choice::key) != frame.choices.end();
        return there && frame.choices[frame.next - 1].key != waits.key;
      });
    });
  }

  [[nodiscard]] static bool Failed(const Stage& stage) { return !stage.violations().empty(); }

  // Goes on from a state unless it is known to lead nowhere new.
  void Enter(Stage stage, uint64_t hash, Sleeping sleeping) {
    const auto depth = static_cast<uint32_t>(path_.size());
    const auto [at, is_new] = See(hash, depth, sleeping);
    if (!is_new && std::ranges::includes(sleeping, at->second.sleeping)) {
      ++report_.merged;  // All that was left out there is asleep here, too.
      return;
    }
    std::vector<Choice> choices = stage.Choices();
    std::vector<bool> leave_out(choices.size());
    if (is_new) {
      ++report_.states;
      report_.depth = std::max(report_.depth, depth);
      report_.bindings = std::max(report_.bindings, stage.bindings());
      stage.Check(choices.empty());
      if (Failed(stage)) return Found(stage);
      if (report_.states >= states_max_) {
        report_.states_cut = true;
        done_ = true;
        return;
      }
      for (size_t i = 0; i < choices.size(); ++i) {
        leave_out[i] = Contains(sleeping, choices[i].key);
        if (leave_out[i]) ++report_.pruned;
      }
    } else {
      ++report_.merged;
      // What was left out before and is not asleep now.
      const Sleeping before = std::exchange(at->second.sleeping, {});
      std::ranges::set_intersection(before, sleeping, std::back_inserter(at->second.sleeping));
      bool any = false;
      for (size_t i = 0; i < choices.size(); ++i) {
        leave_out[i] = !Contains(before, choices[i].key) || Contains(sleeping, choices[i].key);
        any = any || !leave_out[i];
      }
      if (!any) return;
    }
    if (choices.empty()) {
      ++report_.ends;
      report_.end_hashes.insert(hash);
      if (options_.at_end) options_.at_end(stage);
      return;
    }
    if (scenario_->bounds.depth == 0 && depth >= kEndlessChoices)
      return Found(std::string(kEndless));
    if (scenario_->bounds.depth > 0 && depth >= scenario_->bounds.depth) {
      ++report_.depth_cuts;
      return;
    }
    report_.choices += is_new ? choices.size() : 0;
    on_path_.insert(hash);
    frames_.push_back({.stage = std::move(stage),
                       .hash = hash,
                       .choices = std::move(choices),
                       .leave_out = std::move(leave_out),
                       .next = 0,
                       .sleeping = std::move(sleeping)});
  }

  // A state that was reached on a longer path is new once a bound has cut: it may have cut there.
  std::pair<std::map<uint64_t, Seen>::iterator, bool> See(uint64_t hash, uint32_t depth,
                                                          const Sleeping& sleeping) {
    if (!options_.merge) return {seen_.end(), true};
    const auto [at, is_new] = seen_.try_emplace(hash, Seen{.sleeping = sleeping, .depth = depth});
    if (is_new || depth >= at->second.depth) return {at, is_new};
    at->second.depth = depth;
    if (report_.depth_cuts == 0) return {at, false};
    at->second.sleeping = sleeping;
    return {at, true};
  }

  void Found(const Stage& stage) {
    for (const std::string& violation : stage.violations()) Found(WithoutTime(violation));
  }
  void Found(const std::string& what) {
    report_.violations.insert(what);
    if (!report_.violation) report_.violation = Violation{.what = what, .path = path_};
    if (options_.stop) done_ = true;
  }

  std::shared_ptr<const Scenario> scenario_;
  ExploreOptions options_;
  uint64_t states_max_ = 0;
  std::vector<Frame> frames_;
  std::vector<uint32_t> path_;
  std::map<uint64_t, Seen> seen_;
  std::multiset<uint64_t> on_path_;  // Of the states of frames_.
  Report report_;
  bool done_ = false;
};

// Walks a path by the keys of its choices. Nothing when one of them is not there, or the violation
// is not what comes of it.
class Shrinker {
 public:
  Shrinker(const Stage& start, std::string what) : start_(start), what_(std::move(what)) {}

  std::vector<uint32_t> Shrink(const std::vector<uint32_t>& path) {
    if (what_ == kEndless) return path;  // No shorter one shows it.
    std::vector<uint64_t> keys = KeysOf(path);
    if (const auto shorter = Walk(keys)) path_ = *shorter;
    // Each by itself, from the end, until none can go.
    for (bool any = true; any;) {
      any = false;
      for (size_t i = keys.size(); i-- > 0;) {
        std::vector<uint64_t> fewer = keys;
        fewer.erase(fewer.begin() + static_cast<ptrdiff_t>(i));
        const auto walked = Walk(fewer);
        if (!walked) continue;
        keys = std::move(fewer);
        keys.resize(walked->size());
        path_ = *walked;
        i = std::min(i, keys.size());
        any = true;
      }
    }
    return path_.empty() ? path : path_;
  }

 private:
  std::vector<uint64_t> KeysOf(const std::vector<uint32_t>& path) const {
    std::vector<uint64_t> keys;
    Stage stage = start_;
    for (const uint32_t index : path) {
      const Choice choice = stage.Choices().at(index);
      keys.push_back(choice.key);
      stage.Take(choice);
    }
    return keys;
  }

  [[nodiscard]] bool Shows(Stage& stage, bool at_rest) const {
    stage.Check(at_rest);
    return std::ranges::any_of(stage.violations(), [&](const std::string& violation) {
      return WithoutTime(violation) == what_;
    });
  }

  // The numbers of the choices, up to the violation.
  [[nodiscard]] std::optional<std::vector<uint32_t>> Walk(const std::vector<uint64_t>& keys) const {
    std::vector<uint32_t> path;
    Stage stage = start_;
    std::set<uint64_t> passed = {stage.Hash()};
    for (const uint64_t key : keys) {
      const std::vector<Choice> choices = stage.Choices();
      const auto at = std::ranges::find(choices, key, &Choice::key);
      if (at == choices.end()) return std::nullopt;
      path.push_back(static_cast<uint32_t>(at - choices.begin()));
      stage.Take(*at);
      const bool circle = !passed.insert(stage.Hash()).second;
      if (Shows(stage, stage.Choices().empty()) || (circle && what_ == kCircle)) return path;
      if (!stage.violations().empty()) return std::nullopt;
    }
    return std::nullopt;
  }

  const Stage& start_;
  std::string what_;
  std::vector<uint32_t> path_;
};

// A step of a story.
struct Step {
  std::string what;
  std::vector<std::string> told;
};

struct Story {
  std::vector<Step> steps;
  std::vector<std::string> violations;
};

Result<Story> Follow(const std::shared_ptr<const Scenario>& scenario, const sim::PlantedBugs& bugs,
                     const std::vector<uint32_t>& path) {
  Result<Stage> made = Stage::Make(scenario, bugs);
  if (!made) return std::unexpected(made.error());
  Stage stage = std::move(*made);
  stage.SetTelling(true);
  Story story;
  std::set<uint64_t> passed = {stage.Hash()};
  for (const uint32_t index : path) {
    const std::vector<Choice> choices = stage.Choices();
    if (index >= choices.size()) {
      return Fail(ErrorCode::kInvalid, fmt::format("step {} is choice {} of {}",
                                                   story.steps.size() + 1, index, choices.size()));
    }
    std::string what = stage.Tell(choices[index]);
    stage.Take(choices[index]);
    story.steps.push_back({.what = std::move(what), .told = stage.TakeTold()});
    if (!passed.insert(stage.Hash()).second) story.violations.emplace_back(kCircle);
    stage.Check(stage.Choices().empty());
  }
  if (path.size() >= kEndlessChoices) story.violations.emplace_back(kEndless);
  for (const std::string& violation : stage.violations()) {
    story.violations.push_back(WithoutTime(violation));
  }
  return story;
}

std::string Quoted(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + "\"";
}

}  // namespace

Result<Report> Explore(const std::shared_ptr<const Scenario>& scenario,
                       const ExploreOptions& options) {
  Result<Report> report = Search(scenario, options).Run();
  if (!report || !report->violation) return report;
  const Result<Stage> start = Stage::Make(scenario, options.bugs);
  CHECK(start.has_value());
  Violation& violation = *report->violation;
  violation.path = Shrinker(*start, violation.what).Shrink(violation.path);
  return report;
}

Result<std::string> TellStory(const std::shared_ptr<const Scenario>& scenario,
                              const sim::PlantedBugs& bugs, const std::vector<uint32_t>& path) {
  const Result<Story> story = Follow(scenario, bugs, path);
  if (!story) return std::unexpected(story.error());
  std::string text;
  for (size_t i = 0; i < story->steps.size(); ++i) {
    text += fmt::format("{:>4}. {}\n", i + 1, story->steps[i].what);
    for (const std::string& told : story->steps[i].told) text += fmt::format("        {}\n", told);
  }
  for (const std::string& violation : story->violations)
    text += fmt::format("  >>  {}\n", violation);
  return text;
}

Result<std::string> DrawStory(const std::shared_ptr<const Scenario>& scenario,
                              const sim::PlantedBugs& bugs, const std::vector<uint32_t>& path) {
  const Result<Story> story = Follow(scenario, bugs, path);
  if (!story) return std::unexpected(story.error());
  std::string text = fmt::format(
      "digraph {} {{\n  node [shape=box];\n  s0 [label=\"the start\"];\n", Quoted(scenario->name));
  for (size_t i = 0; i < story->steps.size(); ++i) {
    text += fmt::format("  s{} [label={}];\n  s{} -> s{} [label={}];\n", i + 1,
                        Quoted(fmt::format("{}", i + 1)), i, i + 1, Quoted(story->steps[i].what));
  }
  for (size_t i = 0; i < story->violations.size(); ++i) {
    text += fmt::format("  v{} [label={}, color=red];\n  s{} -> v{};\n", i,
                        Quoted(story->violations[i]), story->steps.size(), i);
  }
  return text + "}\n";
}

std::string PathText(const std::vector<uint32_t>& path) {
  return fmt::format("{}", fmt::join(path, "."));
}

Result<std::vector<uint32_t>> ParsePath(std::string_view text) {
  std::vector<uint32_t> path;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (true) {
    uint32_t number = 0;
    const auto [next, error] = std::from_chars(at, end, number);
    if (error != std::errc()) break;
    path.push_back(number);
    if (next == end) return path;
    if (*next != '.') break;
    at = next + 1;
  }
  return Fail(ErrorCode::kInvalid,
              fmt::format("a path is numbers with dots between them, not \"{}\"", text));
}

}  // namespace berth::explore
