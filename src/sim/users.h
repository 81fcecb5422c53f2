#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/hash.h"
#include "base/prng.h"
#include "base/time.h"
#include "client/client.h"
#include "env/actor.h"
#include "sim/faults.h"

namespace berth::sim {

// How large a simulated cluster is and how much its users do.
struct LoadOptions {
  int64_t nodes = 8;
  int64_t node_cpu_milli = 8'000;
  int64_t deployments = 8;
  int64_t jobs = 8;
  int64_t pods = 24;  // Without a controller.
  // Scalings, deletions, re-creations, cordons, labels, after the creations.
  int64_t operations = 60;
  Duration length = Duration::Seconds(180);
  FaultPlan faults;  // Only the re-creations are the users' own.
};

// One request of a user.
struct Operation {
  enum class Verb : uint8_t { kCreate, kDelete, kPatch, kBind, kEvict };
  Instant at;  // Not before; relative to the start.
  Verb verb = Verb::kCreate;
  client::Resource resource;
  std::string namespace_name;
  std::string name;
  std::string body;            // Of kBind: the name of the node; of kEvict: a label of the pods.
  int64_t grace_seconds = -1;  // For kDelete; -1 means the default.
};

// What users do when it is not drawn: each of them one thing after another, once. What the API
// server refuses stays refused; a write of unknown fate is said again.
using Script = std::vector<std::vector<Operation>>;

// The people and pipelines of a simulated cluster: they make Deployments, Jobs and pods, scale,
// delete and re-create them, guard them with budgets and evict from them, cordon, label and delete
// nodes. What they want in the end depends on
// the seed alone, never on what went wrong: each object's operations run in order, and each is
// repeated, after reading where its fate is unknown, until it is done. At the end everything that
// they left fits the cluster but the pods made never to fit.
class Users final : public env::Actor {
 public:
  Users(uint64_t seed, const LoadOptions& options);
  Users(uint64_t seed, Script script);

  void Step(Instant now, env::Input input, env::Outbox& out) override;
  [[nodiscard]] Instant wake_at() const override;
  void AddTo(Hasher& hasher) const override;

  // One more round of a drawn load: each Deployment is scaled and scaled back, some of the pods are
  // made again. What is wanted in the end stays. REQUIRES: finished().
  void Repeat(Instant now);

  [[nodiscard]] bool finished() const { return finished_chains_ == chains_.size(); }
  // Names of nodes, by index.
  static std::string NodeName(int64_t index);
  // What must be true in the end: pods that have to run, by "namespace/prefix".
  struct Wanted {
    std::map<std::string, int64_t> deployments;  // namespace/name -> replicas ready.
    std::vector<std::string> jobs;               // namespace/name, complete.
    std::vector<std::string> pods;               // namespace/name, bound.
    std::vector<std::string> hopeless;           // namespace/name, pending for ever.
    // namespace/name of a budget -> pods that it wants ready.
    std::map<std::string, int64_t> budgets;
  };
  [[nodiscard]] const Wanted& wanted() const { return wanted_; }
  [[nodiscard]] const FaultCounts& counts() const { return counts_; }

 private:
  // The operations of one object, in order.
  struct Chain {
    std::vector<Operation> operations;
    size_t next = 0;
    env::CallId call;          // Under way; 0 when none.
    bool reading = false;      // The call is a GET that resolves an unknown or conflicting outcome.
    client::ObjectRef victim;  // Of kEvict, once one was chosen.
    uint32_t refusals = 0;     // Of kEvict, by its budget.
    Instant not_before;
  };

  Chain& ChainOf(const client::Resource& resource, const std::string& namespace_name,
                 const std::string& name);
  void Plan(const LoadOptions& options);
  void PlanDeployments(const LoadOptions& options);
  void PlanBudget(const LoadOptions& options, int64_t deployment, int64_t replicas);
  void PlanJobs(const LoadOptions& options);
  void PlanPods(const LoadOptions& options);
  void PlanNodes(const LoadOptions& options);
  Instant Somewhen(const LoadOptions& options);
  void Start(Instant now, Chain& chain, env::Outbox& out);
  void OnDone(Instant now, const client::CallDone& done, env::Outbox& out);
  void OnEviction(Instant now, const client::CallDone& done, Chain& chain);
  [[nodiscard]] client::ObjectRef ChooseVictim(std::string_view list);
  void OnScripted(Instant now, const client::CallDone& done, Chain& chain);
  void Advance(Instant now, Chain& chain);

  bool scripted_ = false;  // Immutable.
  Prng prng_;
  client::Client client_;
  std::vector<client::Event> events_;
  std::map<std::string, size_t> chain_index_;
  std::vector<Chain> chains_;
  std::map<uint64_t, size_t> chain_by_call_;
  size_t finished_chains_ = 0;
  Instant started_;
  bool running_ = false;
  Wanted wanted_;
  FaultCounts counts_;
};

}  // namespace berth::sim
