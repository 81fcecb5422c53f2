#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/hash.h"
#include "base/time.h"
#include "controllers/collector.h"
#include "controllers/objects.h"
#include "controllers/write.h"
#include "env/actor.h"
#include "env/http.h"
#include "sim/tamper.h"
#include "sim/truth.h"

namespace berth::explore {

// Who makes PodGroups for the pods of owners, who runs Jobs and asks for their quota, and who
// collects what has lost its owner: the plans of controllers/ (PlanPodGroup, PlanJob, PlanWorkload,
// PlanLeftWorkloads, PlanCollection), made of lists that lag, each by itself. What is decided of a
// group or an object is on its way for some time, each write by itself, and nothing more is decided
// of it meanwhile; a write that arrives is answered at once, and its answer heard.
//
// What is due is asked of the plans: which change makes one due, controllers::Controllers decides,
// and that is not walked.
class GroupMaker {
 public:
  // ReplicaSets, pods, PodGroups, Jobs and Workloads.
  static constexpr size_t kListsCount = 5;
  struct Pending {
    std::string key;  // What it was decided of.
    controllers::Write write;
    env::HttpRequest request;
    // By who collects what has lost its owner.
    [[nodiscard]] bool of_object() const;
  };

  GroupMaker(sim::Tampering planted, Instant now) : planted_(planted), now_(now) {}

  // Of an object of a list it is told later.
  void OnCommitted(const env::JournalRecord& record);
  [[nodiscard]] bool HasToHear(size_t list) const { return !untold_[list].empty(); }
  // REQUIRES: HasToHear().
  void Hear(size_t list);

  // Of what something is due that is not under way, in order.
  [[nodiscard]] std::vector<std::string> Due() const;
  void Decide(const std::string& key);
  [[nodiscard]] const std::vector<Pending>& pending() const { return pending_; }
  // What is asked for next of a write that met a conflict.
  [[nodiscard]] static env::HttpRequest ReadOf(const controllers::Write& write);
  // Its answer; of a write that met a conflict (409) `read` answers ReadOf().
  void OnAnswer(size_t index, const env::HttpResponse& answer, const env::HttpResponse* read);

  // What is wrong with the deletion of a group, before it is done: its owner has wanted pods ever
  // since it was made, so nothing that was read of it then said otherwise.
  [[nodiscard]] std::vector<std::string> JudgeEnd(std::string_view target) const;

  void AddTo(Hasher& hasher) const;

 private:
  struct Told {
    std::string uid;
    Bytes document;  // Empty: it is gone.
  };
  [[nodiscard]] controllers::Plan PlanFor(const std::string& key) const;
  [[nodiscard]] controllers::Plan PlanForObject(const std::string& uid) const;
  [[nodiscard]] controllers::Plan PlanForJob(const std::string& uid) const;
  [[nodiscard]] controllers::Plan PlanForWorkload(const std::string& uid) const;
  [[nodiscard]] bool IsBusy(const std::string& key) const;
  void Plant(const std::string& uid, controllers::Plan& plan) const;
  void PlantInWorkload(const std::string& job_uid, controllers::Plan& plan) const;
  void EndEmpty(const std::string& uid, controllers::Plan& plan) const;
  void NoteWanted(const env::JournalRecord& record);
  void See(api::KindId kind, std::string_view document);
  void Bury(const std::string& uid);
  void Forget(const std::string& uid);
  void KnowGone(const Pending& call);
  void OnRead(const Pending& call, const env::HttpResponse& answer);

  sim::Tampering planted_;  // Immutable after construction.
  Instant now_;             // Likewise: time stands still.
  controllers::Objects objects_;
  std::map<std::string, Bytes> known_;       // The same, by uid: what the hash is of.
  std::map<std::string, std::string> uids_;  // By key of the journal.
  std::array<std::vector<Told>, kListsCount> untold_;
  std::vector<Pending> pending_;
  std::set<std::string> buried_;
  std::set<std::string> foreign_;                  // Planted: taken for those of this namespace.
  std::map<std::string, std::string> owner_read_;  // By key, see PlanPodGroup().
  controllers::Absences absent_;
  std::set<std::string> wants_none_;          // Owners, by uid.
  std::map<std::string, bool> wanted_since_;  // By group, that is there: by its owner.
  std::map<std::string, uint32_t> made_;      // By what was generated: how often.
};

// What is wrong with the groups of owners' pods when nothing is left to happen: a pod has none, or
// that of another owner; or a group is there for nobody.
[[nodiscard]] std::vector<std::string> GroupsAtRest(const sim::Truth& truth);

}  // namespace berth::explore
