#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "apiserver/apiserver.h"
#include "base/hash.h"
#include "base/result.h"
#include "base/time.h"
#include "control/scheduler.h"
#include "env/actor.h"
#include "explore/gangs.h"
#include "explore/group_maker.h"
#include "explore/job_checks.h"
#include "explore/promises.h"
#include "explore/reservations.h"
#include "explore/scenario.h"
#include "explore/workload_checks.h"
#include "sim/checkers.h"
#include "sim/world.h"

namespace berth::explore {

// What may happen next.
enum class Turn : uint8_t {
  kUser,     // The next action of a user.
  kReplace,  // An owner makes a pod that it lacks.
  kFinish,   // A kubelet ends a pod that is being deleted.
  kStart,    // A kubelet starts a pod that is bound, or refuses it.
  kCount,    // The status of a budget is written, as the pods are.
  kCollect,  // A pod whose node or owner is gone, or whose owner has too many, is deleted.
  kLetGo,    // A workload that is evicted gives its quota back.
  kMakePod,  // The Job of a workload that is admitted makes a pod.
  kLetIn,    // One of its pods is let into its topology, or ended where that is no place any more.
  kDecide,   // Its Job's controller decides what to write of them, and where it can't stand, ...
  kLate,     // ... and one of these writes arrives.
  kMark,     // A workload is told which of the nodes of its places can't be used.
  kHear,     // Who makes PodGroups hears what one of its lists tells next, ...
  kPlan,     // ... decides of one of them, or of an object that lost its owner, ...
  kWrite,    // ... and what it writes, or asks, arrives and is answered.
  kAdmit,    // A Workload that waits gets quota, where nobody schedules.
  kArrive,   // A request of the scheduler reaches the API server, and becomes what its fate says.
  kAnswer,   // An answer, or the loss of one, reaches the scheduler.
  kWatch,    // What a watch tells next reaches it.
  kTick,     // It acts.
  kTimer,    // Time passes, up to when it wants to act.
  kCrash,    // It starts again from nothing.
};

struct Choice {
  Turn turn = Turn::kTick;
  Fate fate = Fate::kDone;  // Of kArrive.
  uint32_t index = 0;       // Of the user, owner, pod, budget, request or watch.
  uint64_t key = 0;         // The same in every state in which it is the same thing to happen.
};

// What a choice, and the checks of it, read and changed: two that share none of these can change
// places, and lead to the same. docs/design/0008-explorer.md states the relation; explorer_test.cc
// compares with brute force.
using Footprint = uint8_t;
inline constexpr Footprint kTouchesScheduler = 1;
inline constexpr Footprint kTouchesPods = 2;   // In the API: all but nodes, and their watches.
inline constexpr Footprint kTouchesNodes = 4;  // Likewise, nodes.
inline constexpr Footprint kTouchesBounds = 8;
inline constexpr Footprint kTouchesAll = 0xff;

// A scenario under way, as a value: the production API server and scheduler, atomic owners and
// kubelets, and what is on its way between them. What happens next is for the caller to choose.
//
// The API server's journal answers at once, so a request is carried out in one step; the answer and
// what watches tell of it wait until they are chosen, each watch in order. Time stands still but
// for kTimer.
class Stage {
 public:
  // Sets the scenario up. An action of the set-up that the API server refuses is an error that
  // names its line.
  static Result<Stage> Make(std::shared_ptr<const Scenario> scenario, const sim::PlantedBugs& bugs);

  // All that may happen; always in the same order. Empty: this is how it ends.
  // What is asked of what never changes, if anything is: then that is the only choice.
  [[nodiscard]] std::optional<Choice> NextOfUnchanging() const;
  [[nodiscard]] std::vector<Choice> Choices() const;
  // Makes it happen, and says what it touched. REQUIRES: it is one of Choices().
  Footprint Take(const Choice& choice);

  // The checks of a state as such. To be called once for each that is new.
  void Check(bool at_rest);
  [[nodiscard]] const std::vector<std::string>& violations() const {
    return checkers_.violations();
  }

  // Of two states of equal hash the same can come.
  [[nodiscard]] uint64_t Hash() const;

  // In words; of the state before it is taken.
  [[nodiscard]] std::string Tell(const Choice& choice) const;
  // What parties said and sent since they were last asked, in words. Kept only `while_telling`.
  void SetTelling(bool telling) { telling_ = telling; }
  [[nodiscard]] std::vector<std::string> TakeTold() { return std::exchange(told_, {}); }

  [[nodiscard]] const control::Scheduler& scheduler() const { return scheduler_; }
  [[nodiscard]] const sim::Truth& truth() const { return checkers_.truth(); }
  [[nodiscard]] uint64_t bindings() const { return checkers_.bindings(); }
  [[nodiscard]] uint32_t evictions() const {
    return promises_.evictions() + reservations_.preemptions();
  }

 private:
  // A request of the scheduler that is on its way, or whose answer is.
  struct Call {
    env::CallId call;
    uint32_t twin = 0;  // Tells those of one target apart.
    std::shared_ptr<const env::HttpRequest> request;
    bool stream = false;
    bool orphan = false;               // The scheduler that sent it has crashed.
    std::optional<env::Input> answer;  // Once it has arrived.
  };
  // A watch that is open at the server.
  struct Watch {
    env::CallId call;
    env::ExchangeId exchange;
    std::string target;               // Without the query.
    std::vector<env::Input> waiting;  // In order.
  };
  // What was decided of a workload, and is on its way.
  struct Late {
    std::string workload;  // Its key.
    env::HttpRequest request;
  };
  // Which version of which object a revision is.
  struct Version {
    uint64_t object = 0;  // Hashes of its key, ...
    uint64_t kind = 0;    // ... and of its kind's plural.
    uint64_t revision = 0;
  };
  class Names;

  Stage(std::shared_ptr<const Scenario> scenario, const sim::PlantedBugs& bugs);
  Status SetUp();
  void Settle();

  [[nodiscard]] std::vector<Choice> Events() const;
  void AddArrivals(std::vector<Choice>& choices) const;
  [[nodiscard]] uint32_t TwinOf(std::string_view target) const;
  [[nodiscard]] bool HasKubelet(const std::string& node) const;
  [[nodiscard]] uint32_t ActivePods(const Owner& owner) const;
  [[nodiscard]] bool Lacks(const Owner& owner) const;
  [[nodiscard]] bool Unwanted(const sim::Truth::PodFacts& pod) const;
  void AddPods(std::vector<Choice>& choices) const;
  void AddBudgets(std::vector<Choice>& choices) const;
  void AddWorkloads(std::vector<Choice>& choices) const;

  env::HttpResponse Serve(env::HttpRequest request, std::optional<env::CallId> call);
  void ServerStep(env::Input input, std::vector<env::Respond>& answers);
  void OnCommitted(const env::JournalRecord& record);
  env::HttpResponse Act(const Action& action);
  env::HttpResponse ActOnStatus(const Action& action, const std::string& object);
  env::HttpResponse Post(const std::string& target, const std::string& body);
  env::HttpResponse Patch(const std::string& target, const std::string& body);
  void FollowUp(Action::Kind kind, const std::string& object, bool ready);
  env::HttpResponse DeleteSeen(const std::string& object);
  void Replace(const Owner& owner);
  void ReplaceAtOnce();
  void DeletePod(const std::string& key, bool at_once);
  void StartPod(const std::string& key);
  void CountBudget(const std::string& key);
  Footprint TakeOfWorkload(Turn turn, const std::string& key);
  [[nodiscard]] std::vector<env::HttpRequest> DecidedOf(std::string_view document) const;
  Footprint ArriveLate(uint32_t index);
  void AddGroups(std::vector<Choice>& choices) const;
  [[nodiscard]] std::string TellOfGroups(const Choice& choice) const;
  Footprint TakeOfGroups(const Choice& choice);
  Footprint ArriveOfGroups(uint32_t index);
  env::HttpResponse ActOnOwner(const Action& action);
  env::HttpResponse MakeOwner(Owner owner);
  env::HttpResponse Forge(const Action& action);
  env::HttpResponse Drop(const std::string& job);
  void Admit(const std::string& key);
  [[nodiscard]] std::string UidOf(const std::string& owner) const;
  [[nodiscard]] std::string NameOfNextPod(size_t owner);
  Footprint Arrive(size_t index, Fate fate);
  void CheckEviction(const Call& call, bool heard);
  Footprint StepScheduler(env::Input input);
  void Crash();
  void Told(std::string text) {
    if (telling_) told_.push_back(std::move(text));
  }
  void CompareWithObjects(bool at_rest);
  void Report(const std::vector<std::string>& findings);
  [[nodiscard]] bool HasToHear() const;

  std::shared_ptr<const Scenario> scenario_;
  sim::PlantedBugs bugs_;                    // Immutable.
  std::map<std::string, std::string> seen_;  // By target: the uid that somebody saw there.
  Instant now_;
  apiserver::ApiServer server_;
  control::Scheduler scheduler_;
  sim::Checkers checkers_;
  Promises promises_;
  Gangs gangs_;
  Reservations reservations_;
  WorkloadChecks workload_checks_;
  bool by_scheduler_ = false;                             // What is carried out now, ...
  JobChecks::Writer writer_ = JobChecks::Writer::kOther;  // ... and by whom, likewise.
  std::vector<Call> calls_;
  std::vector<Watch> watches_;
  std::vector<Late> late_;
  std::optional<GroupMaker> group_maker_;  // Where it is there, no scheduler is.
  JobChecks job_checks_;
  std::vector<uint32_t> next_action_;      // By user.
  std::vector<Owner> owners_;              // Those that are there.
  std::vector<uint32_t> made_;             // By owner: pods so far.
  std::map<std::string, uint32_t> lives_;  // By what was created: how often.
  std::vector<Version> versions_;          // By revision, ascending.
  uint32_t failures_ = 0;
  uint32_t crashes_ = 0;
  uint32_t early_timers_ = 0;
  uint64_t next_exchange_ = 1;
  bool telling_ = false;
  std::vector<std::string> told_;
};

}  // namespace berth::explore
