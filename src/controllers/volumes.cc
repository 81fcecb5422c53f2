#include "controllers/volumes.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <tuple>

#include "api/node_match.h"
#include "api/well_known.h"

namespace berth::controllers {
namespace {

using client::JsonString;

constexpr std::string_view kClaimKind = R"("kind":"PersistentVolumeClaim","apiVersion":"v1")";

// As volumes name it: drivers are called as domains are.
constexpr std::string_view kSimulatedDriver = "simulated.berth.dev";

// A look at what isn't seen. Its version is that of who asks.
Write ReadFor(const Head& head, api::KindId kind, std::string_view namespace_name,
              const std::string& name) {
  return {.verb = Verb::kRead,
          .kind = kind,
          .namespace_name = std::string(namespace_name),
          .name = name,
          .resource_version = head.resource_version};
}

bool Includes(const std::vector<std::string>& all, const std::vector<std::string>& some) {
  return std::ranges::all_of(
      some, [&](const std::string& one) { return std::ranges::find(all, one) != all.end(); });
}

// Whether the volume's reference means the claim, and no other of its name.
bool IsFor(const VolumeFacts& volume, const Head& claim) {
  return volume.claim.has_value() && volume.claim->name == claim.name &&
         volume.claim->namespace_name == claim.namespace_name &&
         (volume.claim->uid.empty() || volume.claim->uid == claim.uid);
}

// ---- Claims -------------------------------------------------------------------------------------

class ClaimPlanner {
 public:
  ClaimPlanner(const Objects& objects, Slot slot, const std::string& gone_at)
      : objects_(objects),
        head_(objects.head(slot)),
        claim_(*objects.claim(slot)),
        gone_at_(gone_at) {}

  Plan Run() {
    if (claim_.volume.empty()) {
      if (claim_.bind_completed) {
        Lose("ClaimLost",
             "Bound claim has lost reference to PersistentVolume. Data on the volume "
             "is lost!");
      } else if (!head_.deletion.has_value()) {
        FindVolume();
      }
      return std::move(plan_);
    }
    const Slot slot = objects_.Find(api::KindId::kPersistentVolume, {}, claim_.volume);
    if (slot != kNoSlot) {
      WithVolume(objects_.head(slot), *objects_.volume(slot));
    } else if (claim_.bind_completed && claim_.phase != "Lost") {
      if (gone_at_ == head_.resource_version) {
        Lose("ClaimLost", "Bound claim has lost its PersistentVolume. Data on the volume is lost!");
      } else {
        plan_.writes.push_back(ReadFor(head_, api::KindId::kPersistentVolume, {}, claim_.volume));
      }
    }
    return std::move(plan_);
  }

 private:
  void Tell(bool warning, std::string_view reason, std::string message) {
    plan_.told.push_back(
        {.warning = warning, .reason = std::string(reason), .message = std::move(message)});
  }
  void Lose(std::string_view reason, std::string message) {
    if (claim_.phase == "Lost") return;
    Write write = StatusOf(head_, R"({"phase":"Lost","accessModes":null,"capacity":null})");
    write.told = {{.warning = true, .reason = std::string(reason), .message = std::move(message)}};
    plan_.writes.push_back(std::move(write));
  }

  // The claim names its volume.
  void WithVolume(const Head& head, const VolumeFacts& volume) {
    if (IsFor(volume, head_)) return Bind(head, volume);
    if (claim_.bind_completed && volume.claim.has_value()) {
      return Lose("ClaimMisbound",
                  "Two claims are bound to the same volume, this one is bound incorrectly");
    }
    if (volume.claim.has_value()) return;
    const std::string_view unfit = Unfit(volume);
    if (claim_.bind_completed || unfit.empty()) return Bind(head, volume);
    Tell(true, "VolumeMismatch",
         fmt::format("Cannot bind to requested volume \"{}\": {}", head.name, unfit));
  }
  // Why a volume that the claim names won't do; empty: it will.
  [[nodiscard]] std::string_view Unfit(const VolumeFacts& volume) const {
    if (volume.capacity < claim_.request) return "requested PV is too small";
    if (volume.class_name != claim_.class_name.value_or(""))
      return "storageClassName does not match";
    if (volume.volume_mode != claim_.volume_mode) return "incompatible volumeMode";
    if (!Includes(volume.modes, claim_.modes)) return "incompatible accessMode";
    return {};
  }

  // One step on the way to each other.
  void Bind(const Head& head, const VolumeFacts& volume) {
    if (!volume.claim.has_value() || volume.claim->uid != head_.uid) {
      Write patch = PatchOf(head);
      if (!volume.claim.has_value())
        patch.metadata = fmt::format(R"("annotations":{{"{}":"yes"}})", api::kBoundByController);
      patch.body = fmt::format(
          R"("spec":{{"claimRef":{{{},"namespace":{},"name":{},"uid":{},"resourceVersion":{}}}}})",
          kClaimKind, JsonString(head_.namespace_name), JsonString(head_.name),
          JsonString(head_.uid), JsonString(head_.resource_version));
      plan_.writes.push_back(std::move(patch));
      return;
    }
    if (!claim_.bind_completed || claim_.volume.empty()) {
      Write patch = PatchOf(head_);
      patch.metadata = fmt::format(R"("annotations":{{"{}":"yes")", api::kBindCompleted);
      if (claim_.volume.empty()) {
        patch.metadata += fmt::format(R"(,"{}":"yes")", api::kBoundByController);
        patch.body = R"("spec":{"volumeName":)" + JsonString(head.name) + "}";
      }
      patch.metadata += "}";
      plan_.writes.push_back(std::move(patch));
      return;
    }
    std::string status = BoundStatusOf(volume);
    if (status != claim_.status_text) plan_.writes.push_back(StatusOf(head_, std::move(status)));
  }

  void FindVolume() {
    if (!claim_.class_name.has_value()) {
      if (const std::optional<std::string> name = objects_.DefaultStorageClass()) {
        Write patch = PatchOf(head_);
        patch.body = R"("spec":{"storageClassName":)" + JsonString(*name) + "}";
        plan_.writes.push_back(std::move(patch));
        return;
      }
    }
    const std::string name = claim_.class_name.value_or("");
    const Slot slot = objects_.Find(api::KindId::kStorageClass, {}, name);
    const StorageClassFacts* storage_class =
        slot == kNoSlot ? nullptr : objects_.storage_class(slot);
    const bool waits =
        storage_class != nullptr && storage_class->waits && claim_.selected_node.empty();
    const Slot best = BestVolume(waits);
    if (best != kNoSlot) return Bind(objects_.head(best), *objects_.volume(best));
    if (waits) {
      return Tell(false, "WaitForFirstConsumer",
                  "waiting for first consumer to be created before binding");
    }
    if (name.empty()) {
      return Tell(false, "FailedBinding",
                  "no persistent volumes available for this claim and no storage class is set");
    }
    if (storage_class == nullptr) {
      return Tell(true, "ProvisioningFailed",
                  fmt::format("storageclass.storage.k8s.io \"{}\" not found", name));
    }
    Provision(name, *storage_class);
  }

  // Of a claim whose node was chosen first: whether the volume is there, or everywhere.
  [[nodiscard]] bool IsThere(const VolumeFacts& volume) const {
    if (claim_.selected_node.empty() || volume.places.empty()) return true;
    const Slot node = objects_.Find(api::KindId::kNode, {}, claim_.selected_node);
    return node != kNoSlot && api::MatchesAny(volume.places, *objects_.node(node));
  }

  // What is for this claim already; else the smallest that fits, of those with the fewest modes.
  [[nodiscard]] Slot BestVolume(bool waits) const {
    for (const Slot slot : objects_.VolumesOf(head_)) {
      const VolumeFacts& volume = *objects_.volume(slot);
      if (IsFor(volume, head_) && Unfit(volume).empty()) return slot;
    }
    Slot best = kNoSlot;
    const auto order = [&](Slot slot) {
      const VolumeFacts& volume = *objects_.volume(slot);
      return std::tuple(volume.modes.size(), volume.capacity,
                        std::string_view(objects_.head(slot).name));
    };
    if (waits) return best;
    for (const Slot slot : objects_.FreeVolumes()) {
      const VolumeFacts& volume = *objects_.volume(slot);
      const Head& head = objects_.head(slot);
      if (volume.phase != "Available" || head.deletion.has_value()) continue;
      if (!Unfit(volume).empty() || !IsThere(volume)) continue;
      if (claim_.selector.has_value() && !claim_.selector->Matches(head.labels)) continue;
      if (best == kNoSlot || order(slot) < order(best)) best = slot;
    }
    return best;
  }

  void Provision(const std::string& class_name, const StorageClassFacts& storage_class) {
    const std::string& provisioner = storage_class.provisioner;
    if (provisioner.starts_with("kubernetes.io/") && storage_class.waits)
      return GiveNodeUp("no volume that was made before is left there");
    if (provisioner.starts_with("kubernetes.io/")) {
      return Tell(true, "ProvisioningFailed",
                  fmt::format("no volume plugin matched name: {}", provisioner));
    }
    if (claim_.provisioner != provisioner) {
      Write patch = PatchOf(head_);
      patch.metadata =
          fmt::format(R"("annotations":{{"{}":{},"{}":{}}})", api::kStorageProvisionerBeta,
                      JsonString(provisioner), api::kStorageProvisioner, JsonString(provisioner));
      plan_.writes.push_back(std::move(patch));
      return;
    }
    if (provisioner != api::kSimulatedProvisioner) {
      return Tell(
          false, "ExternalProvisioning",
          fmt::format("Waiting for a volume to be created either by the external provisioner '{}' "
                      "or manually by the system administrator. If volume creation is delayed, "
                      "please verify that the provisioner is running and correctly registered.",
                      provisioner));
    }
    if (claim_.selector.has_value()) {
      return Tell(true, "ProvisioningFailed",
                  fmt::format("failed to provision volume with StorageClass \"{}\": claim Selector "
                              "is not supported",
                              class_name));
    }
    MakeVolume(class_name, storage_class);
  }

  // A volume of the simulated provisioner, for this claim; where the class waits for a pod, on that
  // pod's node.
  void MakeVolume(const std::string& class_name, const StorageClassFacts& storage_class) {
    std::string affinity;
    if (storage_class.waits) {
      const Slot node = objects_.Find(api::KindId::kNode, {}, claim_.selected_node);
      const auto host = node == kNoSlot
                            ? std::nullopt
                            : api::Find(objects_.head(node).labels, api::kHostnameLabel);
      if (!host.has_value()) {
        return GiveNodeUp(
            fmt::format("failed to get target node: node \"{}\" not found", claim_.selected_node));
      }
      affinity = fmt::format(
          R"(,"nodeAffinity":{{"required":{{"nodeSelectorTerms":[{{"matchExpressions":[)"
          R"({{"key":"{}","operator":"In","values":[{}]}}]}}]}}}})",
          api::kHostnameLabel, JsonString(*host));
    }
    const std::string name = "pvc-" + head_.uid;
    Write create = CreateOf(api::KindId::kPersistentVolume, {}, name);
    create.metadata = fmt::format(R"("annotations":{{"{}":"{}"}})", api::kProvisionedBy,
                                  api::kSimulatedProvisioner);
    create.body = fmt::format(
        R"("spec":{{"capacity":{{"storage":{}}},"accessModes":{},"volumeMode":{},)"
        R"("storageClassName":{},"persistentVolumeReclaimPolicy":{},"claimRef":{{{},)"
        R"("namespace":{},"name":{},"uid":{}}},"csi":{{"driver":"{}","volumeHandle":{}}}{}{}}})",
        JsonString(claim_.request_text), ListText(claim_.modes), JsonString(claim_.volume_mode),
        JsonString(class_name), JsonString(storage_class.policy), kClaimKind,
        JsonString(head_.namespace_name), JsonString(head_.name), JsonString(head_.uid),
        kSimulatedDriver, JsonString(name), affinity,
        storage_class.mount_options.empty() ? std::string()
                                            : R"(,"mountOptions":)" + storage_class.mount_options);
    create.told = {{.reason = "ProvisioningSucceeded",
                    .message = fmt::format("Successfully provisioned volume {}", name)}};
    plan_.writes.push_back(std::move(create));
  }
  // The scheduler is to choose another node.
  void GiveNodeUp(std::string why) {
    Write patch = PatchOf(head_);
    patch.metadata = fmt::format(R"("annotations":{{"{}":null}})", api::kSelectedNode);
    patch.told = {{.warning = true, .reason = "ProvisioningFailed", .message = std::move(why)}};
    plan_.writes.push_back(std::move(patch));
  }

  const Objects& objects_;
  const Head& head_;
  const ClaimFacts& claim_;
  const std::string& gone_at_;
  Plan plan_;
};

// ---- Volumes ------------------------------------------------------------------------------------

void SetPhase(const Head& head, const VolumeFacts& volume, std::string_view phase, Plan& plan) {
  if (volume.phase == phase) return;
  plan.writes.push_back(StatusOf(head, fmt::format(R"({{"phase":"{}","message":null}})", phase)));
}

// Nobody can delete what a person made.
void Fail(const Head& head, std::string message, Plan& plan) {
  Write write =
      StatusOf(head, fmt::format(R"({{"phase":"Failed","message":{}}})", JsonString(message)));
  write.told = {{.warning = true, .reason = "VolumeFailedDelete", .message = std::move(message)}};
  plan.writes.push_back(std::move(write));
}

// Its claim is gone.
void Reclaim(const Head& head, const VolumeFacts& volume, Plan& plan) {
  if (volume.phase != "Released" && volume.phase != "Failed")
    return SetPhase(head, volume, "Released", plan);
  if (volume.phase == "Failed" || head.deletion.has_value()) return;
  if (volume.policy == "Delete") {
    if (volume.provisioner == api::kSimulatedProvisioner) {
      plan.writes.push_back(DeleteSeen(head, {}));
    } else if (volume.provisioner.empty()) {
      Fail(head,
           fmt::format("error getting deleter volume plugin for volume \"{}\": no deletable volume "
                       "plugin matched",
                       head.name),
           plan);
    }
  } else if (volume.policy == "Recycle") {
    Fail(head, "No recycler plugin found for the volume!", plan);
  }
}

// Its claim took another volume.
void Unbind(const Head& head, const VolumeFacts& volume, Plan& plan) {
  Write patch = PatchOf(head);
  if (volume.bound_by_controller) {
    patch.metadata = fmt::format(R"("annotations":{{"{}":null}})", api::kBoundByController);
    patch.body = R"("spec":{"claimRef":null})";
  } else {
    patch.body = R"("spec":{"claimRef":{"uid":null,"resourceVersion":null}})";
  }
  plan.writes.push_back(std::move(patch));
}

}  // namespace

Plan PlanClaim(const Objects& objects, Slot slot, const std::string& gone_at) {
  return ClaimPlanner(objects, slot, gone_at).Run();
}

Plan PlanEphemeralClaims(const Objects& objects, Slot pod) {
  Plan plan;
  const Head& head = objects.head(pod);
  if (head.deletion.has_value() || objects.pod(pod)->terminal()) return plan;
  for (const EphemeralClaim& claim : objects.pod(pod)->ephemeral) {
    std::string name = EphemeralClaimName(head.name, claim.volume);
    const Slot found = objects.Find(api::KindId::kPersistentVolumeClaim, head.namespace_name, name);
    if (found != kNoSlot) {
      if (Controls(head, objects.head(found))) continue;
      plan.told.push_back(
          {.warning = true,
           .reason = "FailedBinding",
           .message = fmt::format("ephemeral volume controller: PVC {0}/{1} was not created for "
                                  "pod {0}/{2} (pod is not owner)",
                                  head.namespace_name, name, head.name)});
      continue;
    }
    Write create =
        CreateOf(api::KindId::kPersistentVolumeClaim, head.namespace_name, std::move(name));
    create.metadata = R"("ownerReferences":)" + OwnersText({ControllerReference(head)});
    if (!claim.metadata.empty()) create.metadata += "," + claim.metadata;
    create.body = R"("spec":)" + claim.spec;
    plan.writes.push_back(std::move(create));
  }
  return plan;
}

Plan PlanVolume(const Objects& objects, Slot slot, const std::string& gone_at) {
  Plan plan;
  const Head& head = objects.head(slot);
  const VolumeFacts& volume = *objects.volume(slot);
  if (!volume.claim.has_value() || volume.claim->uid.empty()) {
    SetPhase(head, volume, "Available", plan);
    return plan;
  }
  const Slot bound = objects.Find(volume.claim->uid);
  const ClaimFacts* claim = bound == kNoSlot ? nullptr : objects.claim(bound);
  if (claim == nullptr) {
    if (gone_at != head.resource_version && volume.phase != "Released" &&
        volume.phase != "Failed") {
      plan.writes.push_back(ReadFor(head, api::KindId::kPersistentVolumeClaim,
                                    volume.claim->namespace_name, volume.claim->name));
    } else {
      Reclaim(head, volume, plan);
    }
    return plan;
  }
  const std::string& named = claim->volume;
  if (named.empty() || named == head.name) {
    SetPhase(head, volume, "Bound", plan);
  } else if (!volume.provisioner.empty() && volume.policy == "Delete") {
    Reclaim(head, volume, plan);
  } else {
    Unbind(head, volume, plan);
  }
  return plan;
}

}  // namespace berth::controllers
