#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
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
#include "place/volumes.h"

namespace berth::control {

// What the PersistentVolumeClaims of pods mean for their placement
// (https://kubernetes.io/docs/concepts/storage/storage-classes/#volume-binding-mode).
//
// Which nodes can have a pod's volumes is the engine's to find (place/volumes.h), from the objects
// that FactOf() reads. Before a pod whose claims wait for it is bound, its claims get volumes as
// kube-scheduler has it (VolumeBinding's Reserve and PreBind):
//
//   one that was made before    the claim is written on the volume (spec.claimRef)
//   one that is to be made      the node is written on the claim (selected-node)
//
// and the binding waits here, for a time, until the volume controller has bound them; the
// engine knows it as on its way. What is to be written the engine is told at once as if it had been
// seen, so that no other pod gets the same, until the object says so itself or the write is known
// to have failed: nothing else that happens to the object ends it (E09). The answer to a write is
// learned as a watch's event is (client::Client::Learn), so what is written next is fenced by what
// was decided on. The binding is refused, and tried again later, when a write fails, a claim
// doesn't take the node, is bound to a volume that can't be used there, or is gone, its volume
// becomes another's, or nothing comes of it in time. A copyable value.
class Volumes {
 public:
  // How long a binding waits for its volumes (VolumeBinding's bindTimeoutSeconds), by scheduler
  // name; of others kBindWithin.
  using BindWithin = std::map<std::string, Duration, std::less<>>;
  static constexpr Duration kBindWithin = Duration::Minutes(10);
  // Terms of node affinity that a template may come to with those of its volumes.
  static constexpr size_t kTermsMax = 64;

  Volumes(client::Client& client, BindWithin bind_within);

  [[nodiscard]] bool Watches(client::WatchId watch) const;
  // The event's object, as the two below take it; nothing: it is gone, or can't be read.
  [[nodiscard]] static std::optional<api::Json> Read(const client::ObjectEvent& event);
  // What the engine is to know of it; nothing: it can't be read.
  [[nodiscard]] std::optional<model::StorageFact> FactOf(const client::ObjectEvent& event,
                                                         const std::optional<api::Json>& object,
                                                         model::Vocabulary& vocabulary);
  // Whether the engine alone asks for it.
  [[nodiscard]] bool IsOfEngine(client::WatchId watch) const;
  // Takes a claim, volume or class for what is seen.
  void Observe(const client::ObjectEvent& event, const std::optional<api::Json>& object);

  // Takes the pod's claims off what can't be honoured.
  static void Honour(api::PodSpec& spec);

  // Of pods that are yet to come, as their template in the namespace says: narrows its node
  // affinity to where its volumes are. What it waits for instead, in kube-scheduler's words and the
  // claim's name; empty: nothing, as one that is `placed`. Where its own claims, those of ephemeral
  // volumes, will have their volumes nobody knows: they wait for that.
  [[nodiscard]] std::string Resolve(std::string_view namespace_name, bool placed,
                                    api::PodSpec& spec) const;
  // Whether it may change what claims of that name ask for: it is it, a volume or a class.
  [[nodiscard]] bool Concerns(const client::ObjectEvent& event, std::string_view namespace_name,
                              const std::vector<std::string>& claims) const;

  using Given = std::vector<model::GivenVolume>;
  struct Sending {
    Instant now;
    client::Client& client;
    env::Outbox& out;
  };
  // Holds the binding back. REQUIRES: it is not held; `given` is of VolumesGivenOn(), not empty.
  void Hold(Binder::Attempt attempt, const Given& given, const model::State& state,
            const Sending& sending);
  // Bindings that can be sent now, and those that came to nothing, with why and the code of a write
  // that was refused. The state knows the nodes.
  struct Refused {
    Binder::Attempt attempt;
    int code = 0;
    std::string message;
  };
  struct Ended {
    std::vector<Binder::Attempt> ready;
    std::vector<Refused> refused;
  };
  // A node is otherwise than before.
  void NoteNodes() { changed_ = true; }
  [[nodiscard]] Ended Take(Instant now, const model::State& state);
  [[nodiscard]] Instant wake_at() const;
  // By which watch the object is known that the call writes, if it is one of Hold()'s. What comes
  // back of a write that was done is to be learned before OnCallDone.
  [[nodiscard]] std::optional<client::WatchId> WatchOf(env::CallId call) const;
  // REQUIRES: WatchOf() knows it.
  void OnCallDone(const client::CallDone& done);
  // Takes a binding back that is held. Nothing when there is none.
  std::optional<Binder::Attempt> Withdraw(std::string_view uid);
  std::vector<Binder::Attempt> WithdrawNode(std::string_view node);
  std::vector<Binder::Attempt> WithdrawAll();
  // What the engine is to know by what was held or ended since the last time.
  [[nodiscard]] std::vector<model::StorageFact> TakeFacts() { return std::exchange(facts_, {}); }

  void AddTo(Hasher& hasher) const;

 private:
  using Terms = std::vector<api::NodeSelectorTerm>;

  struct Claim {
    std::string uid;
    std::string version;
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
    std::string uid;
    std::string version;
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
  struct Held {
    Binder::Attempt attempt;
    Duration within;
    Instant until;
    struct Want {
      std::string claim;
      std::string volume;  // Empty: one is to be made.
    };
    std::vector<Want> wants;
    std::set<uint64_t> calls;  // Its writes that are on their way.
    bool failed = false;       // One had no effect, or an unknown one.
    int code = 0;              // Its answer's; 0: there was none.
    std::string message;       // Likewise.
  };
  // What a claim or volume is taken for, though no watch has told it yet.
  struct Assumed {
    model::StorageFact observed;
    model::NameId name;          // Of the claim that the volume names, or the node of the claim.
    std::string claim_uid;       // Of a volume.
    std::set<std::string> pods;  // Who hold on to it, by uid.
  };
  // A claim's or a volume's name.
  struct Key {
    bool volume = false;
    std::string name;
    auto operator<=>(const Key&) const = default;
  };

  void ObserveClaim(const std::string& key, const api::Json& object);
  void ForgetVolume(const std::string& name);
  void ObserveVolume(const std::string& name, const api::Json& object);
  void ObserveClass(const std::string& name, const api::Json& object);
  [[nodiscard]] static Key KeyOfWant(const Held::Want& want);
  [[nodiscard]] static model::StorageFact With(const Assumed& assumed);
  // Whether it is held already by others.
  bool Assume(const Key& key, const std::string& pod, const Assumed& assumed);
  void EndAssumed(const Held& held);
  void EndIfNobodys(const Key& key);
  std::vector<Binder::Attempt> WithdrawThese(const std::vector<std::string>& pods);
  [[nodiscard]] model::StorageFact Overlaid(const Key& key, model::StorageFact fact);
  void Write(const Held::Want& want, Held& held, const Sending& sending);
  // What one claim asks of a node; or what it waits for.
  struct Demand {
    Terms terms;
    bool prepared = false;  // Of volumes that were made before; `terms` don't say where they are.
    std::string waits;
  };
  // What all claims of a pod ask for.
  struct Demands {
    Terms terms;
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
  // Whether the claim's volume can be used on the node; nothing: it has none that is seen.
  [[nodiscard]] std::optional<bool> IsThere(const Claim& claim, std::string_view node,
                                            const model::State& state) const;
  [[nodiscard]] bool IsReady(const Held& held, const model::State& state) const;
  // Why nothing will come of it; empty: something may.
  [[nodiscard]] std::string WhyLost(Instant now, const Held& held, const model::State& state) const;
  [[nodiscard]] std::string WhyLost(const Held::Want& want, std::string_view node,
                                    const model::State& state) const;
  [[nodiscard]] bool IsAsked(const Key& key) const { return asked_.contains(key); }

  BindWithin bind_within_;
  client::WatchId claims_watch_;  // Immutable after construction, as those below.
  client::WatchId volumes_watch_;
  client::WatchId classes_watch_;
  client::WatchId csi_nodes_watch_;
  client::WatchId attachments_watch_;
  client::WatchId drivers_watch_;
  client::WatchId capacities_watch_;
  std::map<std::string, Claim, std::less<>> claims_;  // By namespace/name.
  std::map<std::string, Volume, std::less<>> volumes_;
  std::map<std::string, std::set<std::string>, std::less<>> meant_;  // Volumes, by their claim.
  std::map<std::string, StorageClass, std::less<>> classes_;
  std::map<std::string, Held, std::less<>> held_;  // By pod uid.
  std::map<Key, Assumed> assumed_;
  std::vector<model::StorageFact> facts_;
  struct Call {
    std::string uid;
    Key key;
  };
  std::map<uint64_t, Call> calls_;
  std::map<Key, uint32_t> asked_;  // Calls, by what they write.
  bool changed_ = false;           // Whether Take() may find something that it did not before.
};

}  // namespace berth::control
