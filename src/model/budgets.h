#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "model/ids.h"
#include "model/intern.h"
#include "model/pod_labels.h"

// Disruption budgets, and which pods they cover.
namespace berth::model {

// A PodDisruptionBudget as preemption reads it.
struct BudgetUpsert {
  std::string key;  // "namespace/name"
  std::string uid;
  std::vector<PodRequirement> selector;  // All must hold. None: the budget covers no pod.
  int64_t allowed = 0;                   // status.disruptionsAllowed
  std::vector<std::string> disrupted;    // Names of status.disruptedPods, which count already.
  bool operator==(const BudgetUpsert&) const = default;
};

// The object is gone. With a uid, only if it is still that one.
struct BudgetRemove {
  std::string key;
  std::string uid;
};

// The budgets, and for each list of labels that a pod has those that cover it. Without budgets it
// costs nothing but the interned lists. Budgets have rows, which are used again.
//
// What a budget allows is told by its status, which lags behind what is decided here. So a decided
// eviction is charged to every budget that covers the victim (Charge), from the decision until the
// status can have counted it: until the pod's removal is observed, or the first fact of the budget
// after its deletion was. A status that was written before the deletion and arrives after it lets
// one charge go too early: as much as upstream errs always.
class BudgetTable {
 public:
  struct Budget {
    BudgetUpsert facts;
    // Pods whose eviction was decided here and is not in the status yet. In the order decided.
    std::vector<PodId> charged;
    // How many more evictions it allows; negative when a status came down.
    [[nodiscard]] int64_t remaining() const {
      return facts.allowed - static_cast<int64_t>(charged.size());
    }
    // Whether the pod of that name counts as disrupted already.
    [[nodiscard]] bool disrupted(std::string_view pod_name) const;
  };

  [[nodiscard]] bool empty() const { return by_key_.empty(); }
  [[nodiscard]] uint32_t live() const { return static_cast<uint32_t>(by_key_.size()); }
  // Rows, free ones too.
  [[nodiscard]] uint32_t size() const { return static_cast<uint32_t>(rows_.size()); }
  [[nodiscard]] const Budget& at(BudgetId id) const { return rows_[id.value]; }
  // Live ones, in order of their keys.
  [[nodiscard]] std::span<const BudgetId> by_key() const { return by_key_; }
  [[nodiscard]] BudgetId Find(std::string_view key) const;

  // The budgets that cover pods with these labels, ascending.
  [[nodiscard]] std::span<const BudgetId> Covering(PodLabelsId labels) const {
    if (labels.value >= covering_.size() || !covering_[labels.value].valid()) return {};
    return lists_.View(covering_[labels.value]);
  }
  // The same for one, worked out anew: for the audit.
  [[nodiscard]] bool Covers(BudgetId id, std::string_view labels_text) const;
  [[nodiscard]] const StringTable<PodLabelsId>& labels() const { return labels_; }
  [[nodiscard]] std::string_view LabelsText(PodLabelsId labels) const {
    return labels_.View(labels);
  }

  void AddTo(Hasher& hasher) const;

 private:
  friend class State;
  friend class TrialBudgets;
  using BudgetListId = Id<struct BudgetListTag>;

  // O(length of the text), and with a text that no pod has yet O(budgets of its namespace).
  PodLabelsId AcquireLabels(std::string_view text);
  void ReleaseLabels(PodLabelsId labels);
  // With a new budget or selector O(lists of labels).
  void Put(const BudgetUpsert& facts);
  void Remove(const BudgetRemove& facts);
  void Charge(PodId pod, PodLabelsId labels);
  // The pod's eviction is charged nowhere any more.
  void Uncharge(PodId pod);
  // The charges of one budget that its status counts now.
  void EndCharges(std::string_view key, const auto& counted) {
    std::erase_if(rows_[Find(key).value].charged, counted);
  }

  [[nodiscard]] size_t PlaceOf(std::string_view key) const;
  void CoverLabels(PodLabelsId labels);
  void CoverWith(BudgetId id);
  void SetCovering(PodLabelsId labels, std::span<const BudgetId> list);

  std::vector<Budget> rows_;  // A free one has no key.
  std::vector<BudgetId> free_rows_;
  std::vector<BudgetId> by_key_;
  StringTable<PodLabelsId> labels_;
  // By PodLabelsId, as long as there ever were budgets. Few lists are distinct.
  std::vector<BudgetListId> covering_;
  InternTable<BudgetId, BudgetListId> lists_;
};

// What the evictions of a trial are charged until it ends, so that they don't spend the same twice.
class TrialBudgets {
 public:
  explicit TrialBudgets(BudgetTable& table) : table_(table) {}
  ~TrialBudgets() { End(); }
  TrialBudgets(const TrialBudgets&) = delete;
  TrialBudgets& operator=(const TrialBudgets&) = delete;
  // Of a pod that is charged nothing yet.
  void Charge(PodId pod, PodLabelsId labels);
  // The pod's eviction is charged nowhere.
  void Uncharge(PodId pod);
  void End();

 private:
  struct Uncharged {
    BudgetId budget;
    size_t place = 0;
    PodId pod;
  };
  BudgetTable& table_;
  std::vector<PodId> charged_;
  std::vector<Uncharged> uncharged_;
};

}  // namespace berth::model
