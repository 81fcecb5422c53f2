#pragma once

#include <utility>
#include <vector>

#include "base/hash.h"
#include "model/ids.h"

namespace berth::model {

// Pods that were promised a node which is not there, by its name; nearly always none. At a restart,
// all nominated pods that are listed before their nodes.
//
// A pod is listed under one name at most. All is O(1), but Take: O(what it returns). Memory grows
// with the largest ids that were ever listed.
class Homeless {
 public:
  // Lists the pod under the name, last; one that is listed there keeps its place.
  void Put(PodId pod, NameId name) {
    if (Of(pod) == name) return;
    Remove(pod);
    if (pod.value >= links_.size()) links_.resize(pod.value + 1);
    if (name.value >= ends_.size()) ends_.resize(name.value + 1);
    Ends& ends = ends_[name.value];
    links_[pod.value] = {.name = name, .previous = ends.last, .next = PodId{}};
    (ends.last.valid() ? links_[ends.last.value].next : ends.first) = pod;
    ends.last = pod;
  }

  void Remove(PodId pod) {
    if (!Of(pod).valid()) return;
    const Links links = std::exchange(links_[pod.value], Links{});
    Ends& ends = ends_[links.name.value];
    (links.previous.valid() ? links_[links.previous.value].next : ends.first) = links.next;
    (links.next.valid() ? links_[links.next.value].previous : ends.last) = links.previous;
  }

  // The pods of the name in the order in which they were listed; they are listed no more.
  [[nodiscard]] std::vector<PodId> Take(NameId name) {
    std::vector<PodId> pods;
    if (name.value >= ends_.size()) return pods;
    while (ends_[name.value].first.valid()) {
      pods.push_back(ends_[name.value].first);
      Remove(pods.back());
    }
    return pods;
  }

  // Ways back and ends follow from the rest.
  void AddTo(Hasher& hasher) const {
    hasher.Add(links_.size());
    for (const Links& links : links_) hasher.Add(links.name.value).Add(links.next.value);
  }

 private:
  struct Links {
    NameId name;  // Invalid: not listed.
    PodId previous;
    PodId next;
  };
  struct Ends {
    PodId first;
    PodId last;
  };
  [[nodiscard]] NameId Of(PodId pod) const {
    return pod.value < links_.size() ? links_[pod.value].name : NameId{};
  }

  std::vector<Links> links_;  // By PodId.
  std::vector<Ends> ends_;    // By NameId.
};

}  // namespace berth::model
