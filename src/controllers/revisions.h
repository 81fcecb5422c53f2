#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "api/workloads.h"
#include "controllers/objects.h"
#include "controllers/write.h"

// The templates that a StatefulSet or DaemonSet has had, as ControllerRevisions: one for each,
// numbered, the newest being the highest. `kubectl rollout undo` reads them.
namespace berth::controllers {

struct RevisionRef {
  const Head* head = nullptr;
  const api::ControllerRevision* revision = nullptr;
};

struct RevisionFacts {
  std::vector<RevisionRef> owned;    // Whose controller the owner is.
  std::vector<RevisionRef> orphans;  // Of its namespace, without a controller.
  // The name that a new one would have is that of another template or owner.
  bool name_taken = false;
};

// What a revision is made for.
struct RevisionOwner {
  const Head& head;
  const api::StringMap& annotations;
  const api::LabelSelector& selector;
  const api::PodTemplate& pod_template;
  int64_t collisions = 0;       // status.collisionCount
  std::string_view hash_label;  // Of a revision: the hash in its name.
};

struct Revisions {
  std::vector<RevisionRef> all;  // By number, the newest last.
  // That of the owner's template; nothing: it is being made.
  RevisionRef update;
  bool collided = false;

  // Nothing: there is none of that name.
  [[nodiscard]] RevisionRef Named(std::string_view name) const;
};

// Adopts and releases; makes one for the owner's template where there is none, and the newest of an
// older one that is wanted again. Nothing is written for an owner that is being deleted, but
// releases.
[[nodiscard]] Revisions PlanRevisions(const RevisionOwner& owner, const RevisionFacts& facts,
                                      Writes& writes);

// Deletes the oldest of those that nobody names in `live` beyond `limit`.
void PlanHistory(const std::vector<RevisionRef>& revisions, const std::set<std::string>& live,
                 int64_t limit, Writes& writes);

// The hash in the name of a template's revision or ReplicaSet.
[[nodiscard]] std::string TemplateHash(const api::PodTemplate& pod_template, int64_t collisions);
[[nodiscard]] std::string RevisionName(const Head& owner, const api::PodTemplate& pod_template,
                                       int64_t collisions);

}  // namespace berth::controllers
