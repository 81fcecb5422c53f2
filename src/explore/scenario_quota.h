#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "explore/scenario.h"
#include "explore/scenario_lines.h"

namespace berth::explore {

// What lines say of quota: queues and cohorts, flavors and the topology of their nodes, admission
// checks, Workloads, and what happens to these. For the parser, which owns the lines and the
// scenario.
class QuotaWords {
 public:
  using Names = std::set<std::string, std::less<>>;
  QuotaWords(Lines& lines, Scenario& scenario) : lines_(lines), scenario_(scenario) {}

  // What makes the flavor that all quota is of; nothing where lines make the flavors.
  [[nodiscard]] std::optional<Action> OnlyFlavor();
  // Keys of labels that lines of nodes give: the levels above the node itself, and those by which
  // flavors tell their nodes.
  [[nodiscard]] std::vector<std::string> node_keys() const;
  // How lines say the quota of a queue: RESOURCE, or FLAVOR.RESOURCE where they make flavors.
  [[nodiscard]] std::vector<std::string> quota_keys() const;
  // What follows in the metadata of a node; empty where it has no labels.
  [[nodiscard]] Result<std::string> LabelsOfNode(const std::string& name,
                                                 const Options& options) const;
  [[nodiscard]] bool Made(const Action& action) const;
  // The words from `first` on, of an action that makes an object.
  Status ReadCreate(Action& action, size_t first);
  // What happens to one that is made, but for its deletion. `nodes`: those that lines make.
  Status ReadChange(Action& action, const std::string& verb, const Options& options,
                    const Names& nodes) const;

 private:
  Status ReadQueue(Action& action, size_t first);
  Status ReadLocalQueue(Action& action, size_t first);
  Status ReadCohort(Action& action, size_t first);
  Status ReadTopology(Action& action, size_t first);
  Status ReadFlavor(Action& action, size_t first);
  Status ReadCheck(Action& action, size_t first);
  Status ReadWorkload(Action& action, size_t first);
  Status ReadWorkloadChange(Action& action, const std::string& verb, const Options& options,
                            const Names& nodes) const;
  Status ReadAnswer(Action& action, const Options& options) const;
  Status ReadMark(Action& action, const Options& options, const Names& nodes) const;
  Status ReadTold(Action& action, const std::string& verb, const Options& options) const;
  [[nodiscard]] Status ReadNothing(size_t first) const;
  [[nodiscard]] Status UnknownEvent(const Action& action) const;
  [[nodiscard]] Result<std::string> QuotaOf(const Options& options) const;
  [[nodiscard]] Result<std::string> PolicyOf(const Options& options, std::string_view key) const;
  [[nodiscard]] Result<std::string> ChecksOf(const Options& options) const;
  [[nodiscard]] Result<std::string> TopologyRequestOf(const Options& options) const;
  [[nodiscard]] Result<std::string> SliceOf(const Options& options) const;
  [[nodiscard]] Result<std::string> PodSetOf(std::string_view name, const Options& options) const;
  [[nodiscard]] Result<std::string> MorePodSets(size_t first) const;
  [[nodiscard]] std::string LabelsIn(const Options& options) const;

  Lines& lines_;
  Scenario& scenario_;
  std::set<std::pair<Action::Kind, std::string>> made_;
  std::string topology_;                       // Empty: none.
  std::vector<std::string> levels_;            // Of it, as lines call them; the widest first.
  bool makes_flavors_ = false;                 // Lines do.
  std::vector<std::string> flavors_;           // In the order in which they are tried.
  std::map<std::string, std::string> bodies_;  // Of flavors, to make them again.
  std::set<std::string> keys_;                 // Of the labels of flavors that lines make.
};

}  // namespace berth::explore
