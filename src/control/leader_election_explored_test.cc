// Goal: of two replicas at most one acts at a time (D12: a scheduler that has lost its lease goes on
// binding), in each order of what a clock, a network and an API server can do to them within some
// seconds. Method: exhaustive exploration of two elections and a server with one Lease: in each
// state every request may be carried out, be lost, or be given up and carried out later; every
// answer may be late or lost; time goes on for both, or for one while the other is paused. A replica
// that acts is one that leads after it took an input.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "control/test_lease.h"

namespace berth::control {
namespace {

constexpr size_t kReplicas = 2;

struct Bounds {
  int64_t seconds = 0;
  int faults =
      0;  // Requests and answers that are lost or given up, pauses, deletions of the lease.
};

// In whole seconds, so that few of them show all: a lease of 4, given up after 3.
LeaderElectionOptions Short(std::string identity, bool planted) {
  LeaderElectionOptions options = ElectionOf(std::move(identity));
  options.lease_duration = Duration::Seconds(4);
  options.renew_deadline = Duration::Seconds(3);
  options.retry_period = Duration::Seconds(1);
  options.planted_trusts_itself = planted;
  return options;
}

struct World {
  explicit World(bool planted)
      : replicas{LeaseReplica(Short("a", planted)), LeaseReplica(Short("b", planted))} {}

  std::array<LeaseReplica, kReplicas> replicas;
  std::array<std::optional<env::Response>, kReplicas> answers = {};  // On their way.
  std::vector<env::HttpRequest> late = {};  // Nobody waits for these any more.
  LeaseServer server = {};
  Instant now = Instant::FromSeconds(1'800'000'000);
  int faults = 0;

  [[nodiscard]] uint64_t Hash() const {
    Hasher hasher;
    hasher.Add(now.ns).Add(faults).Add(server.document).Add(server.version).Add(server.uid);
    for (size_t i = 0; i < kReplicas; ++i) {
      replicas[i].election.AddTo(hasher);
      hasher.Add(replicas[i].now.ns).Add(replicas[i].sent.has_value());
      hasher.Add(answers[i].has_value());
      if (answers[i]) hasher.Add(answers[i]->response.status).Add(answers[i]->response.body.view());
    }
    hasher.Add(late.size());
    for (const env::HttpRequest& request : late) hasher.Add(request.body.view());
    return hasher.value();
  }
};

class Exploration {
 public:
  Exploration(Bounds bounds, bool planted) : bounds_(bounds), planted_(planted) {}

  // What went wrong first; empty: nothing.
  std::string Run() {
    World first(planted_);
    start_ = first.now;
    TickAll(first, kReplicas);
    Explore(first);
    if (problem_.empty()) return "";
    return fmt::format("{}:\n{}", problem_, fmt::join(told_, "\n"));
  }
  [[nodiscard]] size_t states() const { return seen_.size(); }
  [[nodiscard]] uint64_t terms() const { return terms_; }

 private:
  // What this replica does on this input: two must not act at once.
  void Step(World& world, size_t i, const env::Input& input) {
    LeaseReplica& replica = world.replicas[i];
    replica.now = world.now;
    replica.Step(input);
    replica.logs.clear();
    terms_ = std::max(terms_, replica.election.terms());
    if (!replica.election.leads()) return;
    for (size_t other = 0; other < kReplicas; ++other) {
      if (other == i) continue;
      // Whatever it hears next, at this moment or when it wakes.
      LeaseReplica copy = world.replicas[other];
      copy.now = world.now;
      copy.Tick();
      if (copy.election.leads() && problem_.empty()) {
        problem_ = fmt::format("both lead {} s after the start, with {} faults",
                               (world.now - start_).seconds(), world.faults);
      }
    }
  }

  void TickAll(World& world, size_t paused) {
    for (size_t i = 0; i < kReplicas; ++i) {
      if (i != paused && world.replicas[i].election.wake_at() <= world.now)
        Step(world, i, env::Tick{});
    }
  }

  // After a step, which `way_` ends with.
  void Follow(const World& world, std::string step) {
    way_.push_back(std::move(step));
    if (!problem_.empty() && told_.empty()) told_ = way_;
    Explore(world);
    way_.pop_back();
  }

  void Explore(const World& world) {
    if (!problem_.empty() || !seen_.insert(world.Hash()).second) return;
    for (size_t i = 0; i < kReplicas; ++i) {
      ExploreRequest(world, i);
      ExploreAnswer(world, i);
    }
    for (size_t i = 0; i < world.late.size(); ++i) {
      World next = world;
      next.server.Answer(next.late[i]);
      next.late.erase(next.late.begin() + static_cast<std::ptrdiff_t>(i));
      Follow(next, "a request that was given up is carried out");
    }
    ExploreTime(world);
    // Of one that is gone before a replica has ever read it, that one can't know.
    const auto knows = [](const LeaseReplica& replica) {
      return !replica.election.holder().empty();
    };
    if (world.faults < bounds_.faults && std::ranges::all_of(world.replicas, knows)) {
      World next = world;
      ++next.faults;
      next.server.document.clear();
      Follow(next, "the lease is deleted");
    }
  }

  void ExploreRequest(const World& world, size_t i) {
    if (!world.replicas[i].sent) return;
    World carried_out = world;
    const env::SendRequest request = carried_out.replicas[i].Take();
    carried_out.answers[i] =
        env::Response{.call = request.call, .response = carried_out.server.Answer(request.request)};
    Follow(carried_out,
           fmt::format("{}: {} is carried out", "ab"[i], ToString(request.request.method)));
    if (world.faults == bounds_.faults) return;
    for (const bool late : {false, true}) {
      World lost = world;
      ++lost.faults;
      lost.replicas[i].Take();
      if (late) lost.late.push_back(request.request);
      Step(lost, i,
           env::CallFailed{
               .call = request.call,
               .failure = late ? env::CallFailure::kTimeout : env::CallFailure::kNotSent});
      Follow(lost, fmt::format("{}: {} is {}", "ab"[i], ToString(request.request.method),
                               late ? "given up" : "not sent"));
    }
  }

  void ExploreAnswer(const World& world, size_t i) {
    if (!world.answers[i]) return;
    World heard = world;
    const env::Response answer = *std::exchange(heard.answers[i], std::nullopt);
    Step(heard, i, answer);
    Follow(heard, fmt::format("{}: hears {}", "ab"[i], answer.response.status));
    if (world.faults == bounds_.faults) return;
    World lost = world;
    ++lost.faults;
    lost.answers[i].reset();
    Step(lost, i, env::CallFailed{.call = answer.call, .failure = env::CallFailure::kLost});
    Follow(lost, fmt::format("{}: the answer is lost", "ab"[i]));
  }

  // A second for all, or for all but one, which is paused: what has come waits for it.
  void ExploreTime(const World& world) {
    if (world.now - start_ >= Duration::Seconds(bounds_.seconds)) return;
    for (size_t paused = 0; paused <= kReplicas; ++paused) {
      if (paused < kReplicas && world.faults == bounds_.faults) continue;
      World next = world;
      next.faults += paused < kReplicas ? 1 : 0;
      next.now = next.now + Duration::Seconds(1);
      TickAll(next, paused);
      Follow(next,
             fmt::format("a second{}",
                         paused < kReplicas ? fmt::format(", {} is paused", "ab"[paused]) : ""));
    }
  }

  const Bounds bounds_;
  const bool planted_;
  Instant start_;
  std::set<uint64_t> seen_;
  std::string problem_;
  std::vector<std::string> way_;
  std::vector<std::string> told_;
  uint64_t terms_ = 0;
};

TEST(LeaderElectionExplored, TwoNeverActAtOnce) {
  Exploration exploration({.seconds = 5, .faults = 1}, /*planted=*/false);
  EXPECT_EQ(exploration.Run(), "");
  EXPECT_GT(exploration.states(), 10'000u);
  EXPECT_GE(exploration.terms(), 2u) << "the lease changed hands";
  RecordProperty("states", static_cast<int>(exploration.states()));
}

// The planted bug: the leader acts until it is told that it is none.
TEST(LeaderElectionExplored, ALeaderThatTrustsItselfIsFound) {
  Exploration exploration({.seconds = 12, .faults = 4}, /*planted=*/true);
  EXPECT_NE(exploration.Run(), "");
}

}  // namespace
}  // namespace berth::control
