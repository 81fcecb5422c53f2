#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "api/json.h"
#include "api/selector.h"
#include "api/types.h"
#include "base/hash.h"
#include "base/time.h"
#include "client/client.h"
#include "control/binder.h"
#include "env/actor.h"
#include "model/delta.h"
#include "model/state.h"
#include "model/vocabulary.h"

namespace berth::control {

// What the PersistentVolumeClaims of pods mean for their placement
// (https://kubernetes.io/docs/concepts/storage/storage-classes/#volume-binding-mode).
//
//   all claims bound        the pod goes where its volumes are: their node affinity becomes its own
//   a claim that waits for  the pod is placed as if it had none; before it is bound, the node is
//   its first consumer      written on the claim, and the binding waits until that has a volume;
//                           where nobody makes volumes, it goes where one that fits was made before
//   a volume names it       the pod goes where that is: the claim is bound to it
//   else                    the pod waits, and is told for which claim
//
// Which nodes can have the volumes beside those of others, and by their zones, is the engine's to
// find (place/volumes.h), from the objects that FactOf() reads.
//
// A pod with claims is kept as it was last seen, and read again when one of them changes. A binding
// that waits for volumes is held back here, at most kBindWithin; the engine knows it as on its way.
// It is given up, as one that was never sent, when the claim doesn't take the node, is bound to a
// volume that can't be used there, or is gone. A copyable value.
class Volumes {
 public:
  static constexpr Duration kBindWithin = Duration::Minutes(10);
  // Terms of node affinity that a pod may come to with those of its volumes.
  static constexpr size_t kTermsMax = 64;

  explicit Volumes(client::Client& client);

  [[nodiscard]] bool Watches(client::WatchId watch) const;
  // The event's object, as the two below take it; nothing: it is gone, or can't be read.
  [[nodiscard]] static std::optional<api::Json> Read(const client::ObjectEvent& event);
  // What the engine is to know of it; nothing: it can't be read.
  [[nodiscard]] std::optional<model::StorageFact> FactOf(const client::ObjectEvent& event,
                                                         const std::optional<api::Json>& object,
                                                         model::Vocabulary& vocabulary) const;
  // Whether it says only what nodes attach, which the engine alone asks for.
  [[nodiscard]] bool IsOfNodes(client::WatchId watch) const;
  // Takes a claim, volume or class for what is seen. The pods that are to be read again.
  [[nodiscard]] std::vector<client::ObjectEvent> Observe(const client::ObjectEvent& event,
                                                         const std::optional<api::Json>& object);
  // The pod is gone.
  void Forget(const client::ObjectEvent& pod);

  // Narrows the pod's node affinity to where its volumes are, and takes the claims off what can't
  // be honoured. What it waits for instead, in kube-scheduler's words and the claim's name; empty:
  // nothing, as of a pod that is `placed`: has its node, or a binding on its way.
  [[nodiscard]] std::string Resolve(const client::ObjectEvent& event, bool placed, api::Pod& pod);

  // The same of pods that are yet to come, as their template in the namespace says. Where their own
  // claims, those of ephemeral volumes, will have their volumes nobody knows: they wait for that.
  [[nodiscard]] std::string Resolve(std::string_view namespace_name, bool placed,
                                    api::PodSpec& spec) const;
  // Whether it may change what claims of that name ask for: it is it, a volume or a class.
  [[nodiscard]] bool Concerns(const client::ObjectEvent& event, std::string_view namespace_name,
                              const std::vector<std::string>& claims) const;

  [[nodiscard]] bool holds(std::string_view uid) const { return held_.contains(uid); }
  // Whether volumes are to be found for the pod's claims before it is bound.
  [[nodiscard]] bool NeedsNode(std::string_view uid) const { return unplaced_.contains(uid); }
  // Holds the binding back. REQUIRES: NeedsNode().
  void Hold(Instant now, Binder::Attempt attempt, client::Client& client, env::Outbox& out);
  // Bindings that can be sent now, and those that came to nothing. The state knows the nodes.
  struct Ended {
    std::vector<Binder::Attempt> ready;
    std::vector<Binder::Attempt> given_up;
  };
  [[nodiscard]] Ended Take(Instant now, const model::State& state);
  [[nodiscard]] Instant wake_at() const;
  // True when the call was one of Hold()'s.
  bool OnCallDone(const client::CallDone& done);
  // Takes a binding back that is held. Nothing when there is none.
  std::optional<Binder::Attempt> Withdraw(std::string_view uid);
  std::vector<Binder::Attempt> WithdrawNode(std::string_view node);
  std::vector<Binder::Attempt> WithdrawAll();

  void AddTo(Hasher& hasher) const;

 private:
  using Terms = std::vector<api::NodeSelectorTerm>;

  struct Claim {
    std::string uid;
    std::string version;
    std::string controller;  // Its uid.
    std::string volume;
    std::string class_name;
    std::string selected_node;
    bool bound = false;
    bool deleted = false;
    // What a volume has to be.
    int64_t request = 0;
    std::vector<std::string> modes;
    std::string volume_mode;
    std::optional<api::LabelQuery> selector;
  };
  struct Volume {
    Terms places;       // Where it is; empty: anywhere.
    bool free = false;  // Nobody's.
    // The claim that it names, by namespace/name, and by its uid unless that is left open. What
    // follows counts where it names one or is free.
    std::string claim;
    std::string claim_uid;
    std::string class_name;
    int64_t capacity = 0;
    std::vector<std::string> modes;
    std::string volume_mode;
    api::StringMap labels;
  };
  struct StorageClass {
    std::string provisioner;
    bool waits = false;  // For the first consumer.
    Terms topologies;    // Where its volumes may be; empty: anywhere.
  };
  struct Pod {
    client::ObjectEvent event;
    std::vector<std::string> claims;
    size_t ephemeral_count = 0;  // The last so many are to be the pod's own.
  };
  struct Held {
    Binder::Attempt attempt;
    Instant until;
    std::vector<std::string> claims;
    bool failed = false;
  };

  void Keep(const client::ObjectEvent& event, const api::Pod& pod);
  void ObserveClaim(const std::string& key, const api::Json& object);
  void ForgetVolume(const std::string& name);
  void ObserveVolume(const std::string& name, const api::Json& object);
  void ObserveClass(const std::string& name, const api::Json& object);
  [[nodiscard]] std::vector<client::ObjectEvent> UsersOf(const std::string& claim) const;
  // What one claim asks of a node, and whether it has no volume yet; or what it waits for.
  struct Demand {
    Terms terms;
    bool unplaced = false;
    bool prepared = false;  // Of volumes that were made before; `terms` don't say where they are.
    std::string waits;
  };
  // What all claims of a pod ask for.
  struct Demands {
    Terms terms;
    std::vector<std::string> unplaced;
    std::vector<std::string> prepared;
    std::string waits;
  };
  static void Add(const std::string& key, Demand demand, bool placed, Demands& demands);
  // Ends what is asked for with where the claims' prepared volumes are.
  void AddPlaces(bool placed, Demands& demands) const;
  // Writes all that into the spec; what the pod waits for instead.
  [[nodiscard]] std::string Narrow(Demands demands, bool placed, api::PodSpec& spec) const;
  // Of a class whose volumes nobody makes, and whose claims wait for their pods.
  [[nodiscard]] bool IsPrepared(const std::string& class_name) const;
  [[nodiscard]] static bool Suits(const Volume& volume, const Claim& claim);
  [[nodiscard]] static bool Fits(const Volume& volume, const Claim& claim);
  [[nodiscard]] bool ArePlacedAt(const std::vector<std::string>& claims, const Terms& place) const;
  // Where the volumes that name the claim are; nothing: none does.
  [[nodiscard]] std::optional<Terms> MeantPlaces(const std::string& key, const Claim& claim) const;
  [[nodiscard]] Demand DemandOf(const std::string& key) const;
  // Of an ephemeral volume's claim, which has to be the pod's.
  [[nodiscard]] Demand OwnDemandOf(const std::string& key, const client::ObjectEvent& pod) const;
  // Whether the claim's volume can be used on the node; nothing: it has none that is seen.
  [[nodiscard]] std::optional<bool> IsThere(const Claim& claim, std::string_view node,
                                            const model::State& state) const;
  [[nodiscard]] bool IsReady(const Held& held, const model::State& state) const;
  [[nodiscard]] bool IsLost(const Held& held, const model::State& state) const;

  client::WatchId claims_watch_;  // Immutable after construction, as the four below.
  client::WatchId volumes_watch_;
  client::WatchId classes_watch_;
  client::WatchId csi_nodes_watch_;
  client::WatchId attachments_watch_;
  std::map<std::string, Claim, std::less<>> claims_;  // By namespace/name.
  std::map<std::string, Volume, std::less<>> volumes_;
  std::map<std::string, std::set<std::string>, std::less<>> meant_;  // Volumes, by their claim.
  std::map<std::string, StorageClass, std::less<>> classes_;
  std::map<std::string, Pod, std::less<>> pods_;  // By namespace/name; those with claims.
  std::map<std::string, std::set<std::string>, std::less<>> users_;        // Pods, by claim.
  std::map<std::string, std::vector<std::string>, std::less<>> unplaced_;  // Claims, by pod uid.
  std::map<std::string, Held, std::less<>> held_;                          // By pod uid.
  struct Call {
    std::string uid;
    std::string claim;
  };
  std::map<uint64_t, Call> calls_;
};

}  // namespace berth::control
