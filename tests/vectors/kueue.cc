#include "kueue.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <exception>
#include <iterator>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "api/json.h"
#include "kueue_cycle.h"
#include "kueue_flavors.h"
#include "kueue_lines.h"
#include "kueue_model.h"
#include "kueue_preempt.h"
#include "kueue_quota.h"
#include "kueue_requests.h"
#include "kueue_topology.h"
#include "kueue_workload.h"
#include "reading.h"

// Goal: berth decides what Kueue decides. Method: each case of a table goes to the function that
// runs it, in the files beside this one; here they are found, counted and told. What can't be read
// is told and counted, too: it is neither passed nor left out.
namespace berth::kueue {
namespace {

constexpr int kShownMax = 20;

// A case's input with what it refers to in place.
Json Resolved(const Json& json, const JsonObject& definitions) {
  if (json.is_array()) {
    JsonArray out;
    for (const Json& item : json.as_array()) out.push_back(Resolved(item, definitions));
    return out;
  }
  if (!json.is_object()) return json;
  if (const Json* ref = json.as_object().if_contains("$ref"))
    return definitions.at(ref->as_string());
  JsonObject out;
  for (const auto& member : json.as_object())
    out[member.key()] = Resolved(member.value(), definitions);
  return out;
}

using Table = void (*)(const Case&);

constexpr std::pair<std::string_view, Table> kTables[] = {
    {"TestAddClusterQueueOrphans", ManagerScript},
    {"TestAddLocalQueueOrphans", ManagerScript},
    {"TestAddOrUpdateWorkloadCarriesLastAssignment", ScanOfNewVersion},
    {"TestAddWorkload", AddedWorkload},
    {"TestAdjustResources", AdjustedResources},
    {"TestAdmissionChecksForWorkload", AdmissionChecks},
    {"TestAssignFlavors", AssignFlavors},
    {"TestAssignFlavorsWithAllowedFlavors", AllowedFlavors},
    {"TestAssignFlavors_LeaderWorkerSetTASFlavor", TopologyFlavors},
    {"TestAssignmentClusterQueueState", PendingFlavors},
    {"TestAvailable", Available},
    {"TestBackoffWaitingTimeExpired", BackoffExpired},
    {"TestBestEffortFIFORequeueIfNotPresent", RequeuedByReason},
    {"TestCandidatesOrdering", CandidatesOrdering},
    {"TestClusterQueueImpl", ClusterQueueSteps},
    {"TestClusterQueueIsPreemptor", LineScript},
    {"TestClusterQueueReadiness", QueueReadiness},
    {"TestClusterQueueUsage", ClusterQueueUsage},
    {"TestCohortCycles", Script},
    {"TestCohortLendable", CohortLendable},
    {"TestDeleteAndForgetWorkload", ManagerScript},
    {"TestDeleteCohortUpdatesAncestorSubtreeQuota", Script},
    {"TestDeleteLocalQueue", ManagerScript},
    {"TestDeleteWorkload", ManagerScript},
    {"TestDeletedFlavors", AssignFlavors},
    {"TestEntryOrdering", EntryOrdering},
    {"TestExtractPodSetCounts", CountsOfPodSets},
    {"TestExtractPodSetCountsFromWorkload", CountsOfPodSets},
    {"TestFIFOClusterQueue", LineScript},
    {"TestFilterChecksForAdmission", AdmissionChecks},
    {"TestFindTopologyAssignments", FindTopologyAssignments},
    {"TestFindTopologyAssignmentsMultiLayerReplacement", ReplaceUnhealthyNode},
    {"TestFromQuotaReservedOrAdmittedToPending", LostReservation},
    {"TestGetMaxRetryTime", RetryTime},
    {"TestGetPendingWorkloadsInfo", PendingInOrder},
    {"TestGetQueueOrderTimestamp", QueueOrderTimestamp},
    {"TestHeads", Heads},
    {"TestHierarchical", ChosenFlavors},
    {"TestHierarchicalPreemptions", Preemption},
    {"TestIsBorrowingOn", IsBorrowingOn},
    {"TestIsExplicitlyRequestingTAS", AsksForTopology},
    {"TestIsNoFitDueToCapacityAndLimits", NoFitReason},
    {"TestIsOnHold", IsOnHold},
    {"TestIsPreferred", IsPreferred},
    {"TestLastAssignmentOutdated", LastAssignmentOutdated},
    {"TestLastSchedulingContext", LastSchedulingContext},
    {"TestLimitReclaimablePodsToPodSetSizes", LimitedReclaimable},
    {"TestLocalQueueUsage", LocalQueueUsage},
    {"TestNeedsSecondPass", NeedsSecondPass},
    {"TestNewInfo", TotalRequests},
    {"TestPendingInLocalQueueCountsInflight", LineScript},
    {"TestPendingResources", LineScript},
    {"TestPreemption", Preemption},
    {"TestPreemptionMessage", PreemptionMessage},
    {"TestPriorityInfo", PriorityInfo},
    {"TestPushOrUpdateGenerationChanged", ChangedVersion},
    {"TestPushOrUpdateRespectsInadmissibleHashes", InadmissibleShapes},
    {"TestPushOrUpdateSkipsInflightWorkload", LineScript},
    {"TestQueueInadmissibleWorkloads", FlushedTrees},
    {"TestQueueInadmissibleWorkloadsDuringScheduling", LineScript},
    {"TestQueueSecondPassIfNeeded", SecondPassDue},
    {"TestReclaimBeforePriorityPreemption", ChosenFlavors},
    {"TestReclaimablePodsAreEqual", EqualReclaimable},
    {"TestRecordInadmissibleHash", InadmissibleShapes},
    {"TestRequeueAndUpdate", RequeuedOutcome},
    {"TestRequeueHashTriggerByReason", ShapeOfReason},
    {"TestRequeueWorkloadStrictFIFO", RequeuedByManager},
    {"TestRequeueWorkloadsCohortCycle", ManagerScript},
    {"TestResourceUsage", ResourceUsage},
    {"TestResourcesToReserve", ResourcesToReserve},
    {"TestSatisfiesPreemptionPolicy", SatisfiesPreemptionPolicy},
    {"TestSchedule", OneCycle},
    {"TestScheduleConcurrentAdmission", OneCycle},
    {"TestScheduleForFairSharing", OneCycle},
    {"TestScheduleForTAS", TopologyCycle},
    {"TestScheduleForTASCohorts", TopologyCycle},
    {"TestScheduleForTASPreemption", TopologyCycle},
    {"TestScheduleRecomputePreemptionTargets", OneCycle},
    {"TestSchedulingHash", SchedulingShape},
    {"TestSetConditionAndUpdate", OneCondition},
    {"TestSetQuotaReservation", QuotaReservation},
    {"TestSetRequeueState", RequeueState},
    {"TestSnapshotAddRemoveWorkload", Snapshot},
    {"TestSnapshotAddRemoveWorkloadWithLendingLimit", Snapshot},
    {"TestStatus", PendingOfLocalQueue},
    {"TestStrictFIFO", FirstPopped},
    {"TestStrictFIFORequeueIfNotPresent", RequeuedByReason},
    {"TestSyncAdmittedCondition", AdmittedCondition},
    {"TestUpdateClusterQueue", ManagerScript},
    {"TestUpdateLocalQueue", ManagerScript},
    {"TestUpdateReclaimablePods", ReclaimedPods},
    {"TestUpdateWithRebuild", RebuiltRequests},
    {"TestUpdateWorkload", UpdatedWorkload},
    {"TestUsedNodes", UsedNodes},
    {"TestValidateLimitRange", ValidLimitRange},
    {"TestValidateResources", ValidResources},
    {"TestWorkloadPriorityClassChanged", PriorityClassOfHolder},
    {"Test_Delete", LineScript},
    {"Test_DeleteFromLocalQueue", LineScript},
    {"Test_Pop", LineScript},
    {"Test_PushOrUpdate", PushedTwice},
};

const std::map<std::string_view, Table>& Tables() {
  static const std::map<std::string_view, Table> kByName(std::begin(kTables), std::end(kTables));
  return kByName;
}

// Whole tables of what nobody asks of berth, and why.
std::string_view NotAsked(std::string_view suite) {
  static const std::map<std::string_view, std::string_view> kReasons = {
      {"TestApplyPodSetCounts", "Jobs that are scaled"},
      {"TestCachePodsReadyForAllAdmittedWorkloads", "admission that waits for pods to be ready"},
      {"TestDominantResourceShare", "fair sharing"},
      {"TestEvictionPendingLatency", "metrics of Kueue"},
      {"TestFairPreemptions", "fair sharing"},
      {"TestFsAdmission", "fair sharing of admission"},
      {"TestGetNoFitReason", "metrics of Kueue"},
      {"TestHeadsRespectLocalQueueWeightForPreexistingWorkloads", "fair sharing of admission"},
      {"TestMakeClusterQueueOrdering", "fair sharing"},
      {"TestPodSetsCounts_HasFewerReplicasThan", "Jobs that are scaled"},
      {"TestPreciseWeightedShareSerialized", "fair sharing"},
      {"TestPropagateResourceRequests", "status.resourceRequests"},
      {"TestScheduleForAFS", "fair sharing of admission"},
      {"TestScheduleForPreserveFlavorScanProgress", "fair sharing"},
      {"TestSecondPassSkipsWaitForPodsReadyBlock", "admission that waits for pods to be ready"},
      {"TestShouldApplyEntryPenalty", "fair sharing of admission"},
      {"TestShouldSkipClusterNomination", "MultiKueue"},
      {"TestTotalExecutionTime", "how long workloads ran"},
      {"TestUpdateLocalQueueWeightReheapifies", "fair sharing of admission"},
      {"TestUpdateLocalQueueWeightReheapifiesMultipleWorkloads", "fair sharing of admission"},
      {"TestUpdateLocalQueueWeightZeroReheapifies", "fair sharing of admission"},
      {"TestUpdateUnadmittedWorkload", "metrics of Kueue"},
      {"TestWithPreprocessedDRAResources", "devices that are claimed"},
      {"TestWithPreprocessedDRAResourcesReplacesExtendedResources", "devices that are claimed"},
  };
  const auto found = kReasons.find(suite);
  return found == kReasons.end() ? "" : found->second;
}

// What became of the cases of a table, or of all.
enum class Fate : uint8_t { kPassed, kFailed, kNotApplicable, kNotBuilt, kUnread };
constexpr std::array<std::string_view, 5> kFates = {"passed", "failed", "not applicable",
                                                    "not built yet", "unread"};
struct Tally {
  std::array<int64_t, kFates.size()> counts{};

  [[nodiscard]] int64_t& operator[](Fate fate) { return counts[static_cast<size_t>(fate)]; }
  [[nodiscard]] int64_t total() const {
    int64_t sum = 0;
    for (const int64_t count : counts) sum += count;
    return sum;
  }
  // Passed and failed always, others where there are some.
  [[nodiscard]] std::string Text(int width) const {
    std::string text;
    for (size_t i = 0; i < counts.size(); ++i) {
      if (i > 1 && counts[i] == 0) continue;
      text += fmt::format("{}{:>{}} {}", i == 0 ? "" : ", ", counts[i], width, kFates[i]);
    }
    return text;
  }
};

class Report {
 public:
  void Count(Fate fate) {
    ++suite_[fate];
    ++all_[fate];
  }
  // By reason, of those that are left out.
  void Skip(Fate fate, std::string_view reason, int64_t count = 1) {
    suite_[fate] += count;
    all_[fate] += count;
    skipped_[{fate, std::string(reason)}] += count;
  }
  void Tell(Fate fate, std::string_view text) {
    Count(fate);
    if (++shown_ <= kShownMax) fmt::print("{}\n", text);
  }
  [[nodiscard]] int64_t total() const { return suite_.total(); }
  [[nodiscard]] int64_t all() const { return all_.total(); }
  void EndSuite(std::string_view name) {
    fmt::print("  {:<58} {}\n", name, suite_.Text(4));
    suite_ = {};
  }
  // The program's status.
  [[nodiscard]] int Finish() {
    for (const auto& [what, count] : skipped_) {
      fmt::print("{}: {} cases: {}\n", kFates[static_cast<size_t>(what.first)], count, what.second);
    }
    fmt::print("{}\n", all_.Text(0));
    const bool good = all_[Fate::kFailed] == 0 && all_[Fate::kUnread] == 0;
    return good && all_[Fate::kPassed] > 0 ? 0 : 1;
  }

 private:
  Tally suite_;
  Tally all_;
  std::map<std::pair<Fate, std::string>, int64_t> skipped_;
  int shown_ = 0;
};

// A member that is not of the format may change what the case means. Of those of input and options
// a file tells itself, where its cases stand in a table.
void CheckMembers(const JsonObject& test, const JsonObject& file) {
  static constexpr std::array<std::string_view, 8> kMembers = {
      "name", "line", "featureGates", "options", "now", "input", "steps", "want"};
  static constexpr std::array<std::string_view, 16> kOfScripts = {"admission",
                                                                  "admissionFairSharing",
                                                                  "apiObjects",
                                                                  "clusterQueue",
                                                                  "counts",
                                                                  "currentCQGeneration",
                                                                  "currentSchedulingCycle",
                                                                  "currentSchedulingHash",
                                                                  "last",
                                                                  "namespaceSelector",
                                                                  "namespaces",
                                                                  "note",
                                                                  "podSets",
                                                                  "podsReadyRequeuingTimestamp",
                                                                  "wl",
                                                                  "workload"};
  const auto check = [](const auto& known, std::string_view name, bool told) {
    if (!told && std::ranges::find(known, name) == known.end())
      throw std::runtime_error(fmt::format("unknown member {}", name));
  };
  for (const auto& member : test) check(kMembers, member.key(), false);
  std::string told;
  for (const auto& of : ObjectAt(file, "goFields")) {
    if (of.value().is_string()) told += std::string(of.value().as_string()) + '\n';
  }
  for (const char* section : {"input", "options"}) {
    for (const auto& member : ObjectAt(test, section)) {
      const std::string_view name = member.key();
      check(kOfScripts, name, told.find(name) != std::string::npos);
    }
  }
}

void RunCase(const std::string& suite, const JsonObject& file, const Json& json, Report& report) {
  std::string name = "a case";
  try {
    const JsonObject& definitions = ObjectAt(file, "definitions");
    const JsonObject& test = json.as_object();
    name = StringAt(test, "name");
    CheckMembers(test, file);
    const Case resolved{.fixtures = Resolved(ObjectAt(file, "fixtures"), definitions).as_object(),
                        .input = Resolved(ObjectAt(test, "input"), definitions).as_object(),
                        .steps = Resolved(ArrayAt(test, "steps"), definitions).as_array(),
                        .want = Resolved(ObjectAt(test, "want"), definitions).as_object(),
                        .options = ObjectAt(test, "options"),
                        .gates = ObjectAt(test, "featureGates"),
                        .now = StringAt(test, "now")};
    Tables().at(suite)(resolved);
    report.Count(Fate::kPassed);
  } catch (const NotApplicable& e) {
    report.Skip(Fate::kNotApplicable, e.what());
  } catch (const NotBuilt& e) {
    report.Skip(Fate::kNotBuilt, e.what());
  } catch (const Mismatch& e) {
    report.Tell(Fate::kFailed, fmt::format("{}: {}: {}", suite, name, e.what()));
  } catch (const std::exception& e) {  // A member that is not as the format says.
    report.Tell(Fate::kUnread, fmt::format("{}: {}: can't be read: {}", suite, name, e.what()));
  }
}

int64_t CasesOf(const JsonObject& suite) {
  const Json* cases = suite.if_contains("cases");
  return cases != nullptr && cases->is_int64() ? cases->as_int64() : 0;
}

// A table that is cut must not pass for the whole one, nor one that can't be read for none.
void RunSuite(const std::filesystem::path& folder, const JsonObject& suite, Report& report) {
  const std::string name = StringAt(suite, "suite");
  if (!std::filesystem::exists(folder / StringAt(suite, "file"))) {
    return report.Skip(Fate::kUnread, fmt::format("{} is not there", StringAt(suite, "file")),
                       std::max<int64_t>(1, CasesOf(suite)));
  }
  if (const std::string_view why = NotAsked(name); !why.empty())
    return report.Skip(Fate::kNotApplicable, why, CasesOf(suite));
  if (!Tables().contains(name)) {
    return report.Skip(Fate::kUnread, fmt::format("no table is known as {}", name),
                       std::max<int64_t>(1, CasesOf(suite)));
  }
  const auto file = ReadObject(folder / StringAt(suite, "file"));
  if (!file) {
    return report.Skip(Fate::kUnread, fmt::format("{} holds no object", StringAt(suite, "file")),
                       std::max<int64_t>(1, CasesOf(suite)));
  }
  for (const Json& test : ArrayAt(*file, "cases")) RunCase(name, *file, test, report);
  if (report.total() != CasesOf(suite)) {
    report.Tell(Fate::kUnread, fmt::format("{}: the index tells of {} cases, the file has {}", name,
                                           CasesOf(suite), report.total()));
  }
}

}  // namespace
}  // namespace berth::kueue

namespace berth {

bool HoldsKueueVectors(const std::filesystem::path& folder) {
  const auto index = ReadObject(folder / "index.json");
  return index && StringAt(*index, "project") == "kubernetes-sigs/kueue";
}

int RunKueueVectors(const std::filesystem::path& folder) {
  const auto index = ReadObject(folder / "index.json");
  if (!index) return 2;
  kueue::Report report;
  for (const api::Json& json : ArrayAt(*index, "suites")) {
    const std::string name = json.is_object() ? StringAt(json.as_object(), "suite") : "";
    if (name.empty()) {
      report.Skip(kueue::Fate::kUnread, "an entry of the index names no table");
      continue;
    }
    kueue::RunSuite(folder, json.as_object(), report);
    report.EndSuite(name);
  }
  // An entry that is lost is none of the above.
  const api::Json* total = index->if_contains("totalCases");
  if (total != nullptr && total->as_int64() != report.all()) {
    report.Skip(kueue::Fate::kUnread,
                fmt::format("the index tells of {} in all", total->as_int64()));
  }
  return report.Finish();
}

}  // namespace berth
