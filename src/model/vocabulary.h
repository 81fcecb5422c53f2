#pragma once

#include "base/hash.h"
#include "model/classes.h"
#include "model/ids.h"
#include "model/lists.h"
#include "model/pod_labels.h"
#include "model/resource_groups.h"
#include "model/resources.h"
#include "model/selectors.h"
#include "model/spread.h"
#include "model/volumes.h"

namespace berth::model {

// Everything interned that facts are told in. translate/ adds to it while it turns objects into
// facts, and can do no more; ids stay good for the life of the State.
struct Vocabulary {
  StringTable<NameId> names;
  ResourceTable resources;
  BundleTable bundles;
  TaintTable taints;
  TolerationTable tolerations;
  NameListTable name_lists;
  PreferenceTable preferences;
  SelectorTable selectors;
  StringTable<PodSelectorId> pod_selectors;  // PodSelectorText
  SpreadTable spreads;
  VolumeListTable volume_lists;
  ClassTable classes;
  ResourceGroupsTable resource_groups;

  void AddTo(Hasher& hasher) const {
    names.AddTo(hasher);
    resources.AddTo(hasher);
    bundles.AddTo(hasher);
    taints.AddTo(hasher);
    tolerations.AddTo(hasher);
    name_lists.AddTo(hasher);
    preferences.AddTo(hasher);
    selectors.AddTo(hasher);
    pod_selectors.AddTo(hasher);
    spreads.AddTo(hasher);
    volume_lists.AddTo(hasher);
    classes.AddTo(hasher);
    resource_groups.AddTo(hasher);
  }
};

}  // namespace berth::model
