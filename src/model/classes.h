#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/check.h"
#include "base/hash.h"
#include "model/ids.h"
#include "model/intern.h"

namespace berth::model {

// What a pod asks of GPU devices: a share of one device, or a number of whole ones.
struct GpuDemand {
  uint32_t share_milli = 0;    // 1..999, or 0.
  uint32_t devices_count = 0;  // Whole devices; 0 with a share.
  [[nodiscard]] bool none() const { return share_milli == 0 && devices_count == 0; }
  [[nodiscard]] int64_t total_milli() const {
    return int64_t{share_milli} + int64_t{devices_count} * 1000;
  }
  auto operator<=>(const GpuDemand&) const = default;
};

// The set of fields that filters and scores read: two pods of one class are placed alike. Invalid
// ids mean "none".
struct ClassSpec {
  BundleId requests;  // What a claim of the class charges, with 1 pod and the GPU milli.
  BundleId scoring;  // cpu and memory as scores count them: 100m and 200 MiB where a container asks
                     // for nothing.
  SelectorId selector;           // nodeSelector and required node affinity.
  SelectorId added;              // What the profile requires of nodes besides (addedAffinity).
  PreferenceListId preferences;  // Preferred node affinity, the profile's too.
  TolerationListId tolerations;
  NameListId features;  // Node features that the pod's spec needs.
  NameListId models;    // Allowed GPU models; none allows all.
  NameId profile;       // schedulerName.
  // The node names that required node affinity leaves in the race when each of its terms names
  // some; an empty list: the terms conflict. A single name is a Pin instead.
  NameListId names;
  SpreadListId spread;      // topologySpreadConstraints.
  AffinityListId affinity;  // Pod affinity and anti-affinity; of bound pods, too.
  // The selectors of somebody's pod affinity that select the pod. State adds them, for they come
  // and go with others' pods; a bound pod has none.
  PodSelectorListId selected_by;
  NameListId images;  // Of containers and volumes, sorted: one that two have stands there twice.
  uint32_t containers_count = 0;  // Of init containers, too; 0 without images.
  GpuDemand gpu;
  auto operator<=>(const ClassSpec&) const = default;
};
static_assert(sizeof(ClassSpec) == 17 * sizeof(uint32_t));

// Whether what a node answers hangs on pods of other nodes.
[[nodiscard]] constexpr bool LooksBeyond(const ClassSpec& spec) {
  return spec.spread.valid() || spec.affinity.valid() || spec.selected_by.valid();
}

// Distinct classes. A pin to a node name, and volumes, are not part of the class: they overlay it
// (PodFacts::pin).
class ClassTable {
 public:
  ClassId Intern(const ClassSpec& spec) {
    const ClassId id = table_.Intern(std::span<const ClassSpec>(&spec, 1));
    if (id.value < plain_.size()) return id;
    CHECK_EQ(plain_.size(), size_t{id.value});
    plain_.push_back(id);
    if (spec.images.valid()) {
      ClassSpec without = spec;
      without.images = NameListId{};
      without.containers_count = 0;
      const ClassId plain = Intern(without);
      plain_[id.value] = plain;
    }
    return id;
  }
  // The class without its images: no filter goes by them, so where no score does either, what is
  // known of one class is known of all that differ in their images alone.
  [[nodiscard]] ClassId plain(ClassId id) const { return plain_[id.value]; }
  // Valid until the next Intern.
  [[nodiscard]] const ClassSpec& at(ClassId id) const { return table_.View(id)[0]; }
  [[nodiscard]] uint32_t size() const { return table_.size(); }
  void AddTo(Hasher& hasher) const { table_.AddTo(hasher); }

 private:
  InternTable<ClassSpec, ClassId> table_;
  std::vector<ClassId> plain_;  // By class; follows from it.
};

}  // namespace berth::model
