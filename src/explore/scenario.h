#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"

// Scenario files: a small cluster, who acts in it and the bounds within which every order of events
// is walked (docs/design/0008-explorer.md).
namespace berth::explore {

// What became of a write of the scheduler when it arrived.
enum class Fate : uint8_t {
  kDone,
  kDoneUnheard,  // Carried out; the answer is lost.
  kConflict,     // 409, nothing done.
  kError,        // 500, nothing done.
  kRefused,      // 403, nothing done.
  kLost,         // The request is lost.
};
inline constexpr size_t kFatesCount = 6;
[[nodiscard]] std::string_view ToString(Fate fate);

// One request of a user.
struct Action {
  enum class Verb : uint8_t {
    kCreate,
    kDelete,
    kPatch,
    kPatchStatus,
    kBind,
    kEvict,
    kTell,
    kAnswer,
    kSee,
    kForge,  // Of a Job: in that namespace a Workload is made that names it as its owner.
    kDrop,   // Likewise: its Workload is deleted.
  };
  enum class Kind : uint8_t {
    kPod,
    kNode,
    kBudget,
    kClass,
    kOwner,
    kGroup,
    kQueue,  // A ClusterQueue.
    kLocalQueue,
    kCohort,
    kFlavor,
    kWorkload,
    kTopology,
    kCheck,       // An AdmissionCheck.
    kGroupQueue,  // Of Volcano.
    kJob,
  };
  Verb verb = Verb::kCreate;
  Kind kind = Kind::kPod;
  std::string name;
  // JSON; of kTell a condition that its status gets, of kAnswer the state of one of its checks, of
  // kForge in which namespace.
  std::string body;
  uint32_t replicas = 0;  // Of an owner that is scaled.
  std::string text;       // As the file has it.
  uint32_t line = 0;
  bool as_seen = false;  // Of kDelete: only if it is the object that was seen last.
};

// Its actions happen in this order, with anything of the others between them.
struct User {
  std::string name;
  std::vector<Action> actions;
};

// A ReplicaSet that makes up for each pod that it lacks.
struct Owner {
  std::string name;
  uint32_t replicas = 0;
  std::string label;     // Of its pods; empty: none.
  std::string group;     // That they are members of; empty: none.
  std::string pod;       // Members of the pods' spec, JSON.
  std::string uid;       // Of its object, where there is one.
  bool at_once = false;  // Nothing happens between a deletion and its replacement.
};

// The same once more, with a crash.
struct Again {
  uint64_t whole_states = 0;  // As Scenario's.
};

// A defect of production code (sim::FindPlanted) that walking this scenario must find.
struct Plant {
  std::string name;
  uint64_t states = 0;  // Within so many distinct states.
};

// What is not at rest after so many choices in a row may go on for ever: time passes, so no state
// need come back. A violation where the file sets no bound of its own.
inline constexpr uint32_t kEndlessChoices = 1000;

struct Bounds {
  uint32_t depth = 0;     // Choices in a row that are walked; 0: all (kEndlessChoices).
  uint32_t failures = 0;  // Writes that get another fate than kDone.
  uint32_t crashes = 0;   // Of the scheduler, 0 or 1.
  uint32_t timers = 0;    // Timers that fire although something else could happen.
  uint64_t states = 1'000'000;
};

struct Scenario {
  std::string file;
  std::string name;
  std::vector<std::string> cases;    // Ids of the upstream cases that it covers.
  std::vector<std::string> quotes;   // What is said of each.
  std::vector<Action> set_up;        // Done first, one by one; the scheduler acts when all are.
  std::vector<std::string> classes;  // PriorityClasses, JSON.
  std::vector<User> users;
  std::vector<Owner> owners;
  bool kubelets = false;                // Pods that are deleted end some time later, ...
  std::set<std::string> kubelet_nodes;  // ... on these nodes; empty: on all.
  bool starts = false;                  // Kubelets start what is bound, or refuse it.
  bool disruption = false;              // The status of budgets is kept.
  bool groups = false;                  // Members of PodGroups are placed together.
  // Nobody schedules: pods of owners, which are objects, get PodGroups, and Jobs run once their
  // Workloads are admitted.
  bool group_controller = false;
  bool quota = false;  // Workloads get quota of ClusterQueues.
  bool jobs = false;   // Workloads that are evicted give it back some time later.
  // They get it together with places for their pods, which jobs make once they are admitted.
  bool joint = false;
  bool in_use = false;      // Queues and flavors that are in use are kept by their finalizer.
  bool indexed = false;     // Pods of jobs have completion indexes.
  bool slow_jobs = false;   // What jobs' controller decided of a topology arrives some time later.
  bool unhealthy = false;   // Workloads are told of which of their nodes can't be used.
  bool collector = false;   // Pods of nodes that are gone are deleted some time later.
  bool settled = true;      // The scheduler has seen and done all there is, before users act.
  std::vector<Fate> fates;  // That a write may have besides kDone.
  Bounds bounds;
  // How many pods the scheduler may evict at most on any path; nothing: it has no reason to.
  std::optional<uint32_t> evictions;
  // Likewise of workloads, for the quota that they have.
  uint32_t preemptions = 0;
  // Likewise, for their nodes; nothing: that is not counted.
  std::optional<uint32_t> displaced;
  // Within how many distinct states the walk is whole; 0: that is not said.
  uint64_t whole_states = 0;
  std::optional<Again> again;
  // Of these kinds (UnchangingKinds) lists are read as soon as they are asked for, in one order.
  std::set<std::string, std::less<>> unchanging;
  std::vector<Plant> plants;
};

// What its line `again` says of it, as a scenario of its own. REQUIRES: it has one.
[[nodiscard]] Scenario WithCrash(Scenario scenario);

// What follows in the metadata of a pod that is a member of the group; empty for none.
[[nodiscard]] std::string MemberOf(std::string_view group);

// Reads a file; docs/design/0008-explorer.md has the grammar. Strict: an unknown word, actor, event
// or key, a value out of range, a name that is not declared or declared twice is an error that
// reads "FILE:LINE: what". Cost: O(text).
[[nodiscard]] Result<Scenario> ParseScenario(std::string_view text, std::string_view file);

}  // namespace berth::explore
