#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>

#include "api/object.h"
#include "api/owners.h"
#include "api/table_forms.h"
#include "api/text.h"

// The tables of what makes pods, beside those of table.cc.
namespace berth::api {
namespace {

constexpr std::array kReplicationControllerColumns = {
    kName, NumberColumn("Desired"),     NumberColumn("Current"), NumberColumn("Ready"),
    kAge,  TextColumn("Containers", 1), TextColumn("Images", 1), TextColumn("Selector", 1)};
constexpr std::array kStatefulSetColumns = {kName, TextColumn("Ready"), kAge,
                                            TextColumn("Containers", 1), TextColumn("Images", 1)};
constexpr std::array kDaemonSetColumns = {kName,
                                          NumberColumn("Desired"),
                                          NumberColumn("Current"),
                                          NumberColumn("Ready"),
                                          NumberColumn("Up-to-date"),
                                          NumberColumn("Available"),
                                          TextColumn("Node Selector"),
                                          kAge,
                                          TextColumn("Containers", 1),
                                          TextColumn("Images", 1),
                                          TextColumn("Selector", 1)};
constexpr std::array kCronJobColumns = {kName,
                                        TextColumn("Schedule"),
                                        TextColumn("Timezone"),
                                        FlagColumn("Suspend"),
                                        NumberColumn("Active"),
                                        TextColumn("Last Schedule"),
                                        kAge,
                                        TextColumn("Containers", 1),
                                        TextColumn("Images", 1),
                                        TextColumn("Selector", 1)};
constexpr std::array kControllerRevisionColumns = {kName, TextColumn("Controller"),
                                                   TextColumn("Revision"), kAge};
constexpr std::array kPodTemplateColumns = {kName, TextColumn("Containers"), TextColumn("Images"),
                                            TextColumn("Pod Labels")};

constexpr std::string_view kContainers = "spec.template.spec.containers";

JsonArray ReplicationControllerCells(const Json& object, Instant now) {
  JsonArray cells = {NameCell(object), Json(IntegerAt(object, "spec.replicas", 1)),
                     Json(IntegerAt(object, "status.replicas")),
                     Json(IntegerAt(object, "status.readyReplicas")), Json(AgeOf(object, now))};
  AddContainerCells(object, kContainers, cells);
  cells.emplace_back(LabelsText(object, "spec.selector"));
  return cells;
}

JsonArray StatefulSetCells(const Json& object, Instant now) {
  JsonArray cells = {NameCell(object),
                     Json(fmt::format("{}/{}", IntegerAt(object, "status.readyReplicas"),
                                      IntegerAt(object, "spec.replicas", 1))),
                     Json(AgeOf(object, now))};
  AddContainerCells(object, kContainers, cells);
  return cells;
}

JsonArray DaemonSetCells(const Json& object, Instant now) {
  JsonArray cells = {NameCell(object),
                     Json(IntegerAt(object, "status.desiredNumberScheduled")),
                     Json(IntegerAt(object, "status.currentNumberScheduled")),
                     Json(IntegerAt(object, "status.numberReady")),
                     Json(IntegerAt(object, "status.updatedNumberScheduled")),
                     Json(IntegerAt(object, "status.numberAvailable")),
                     Json(LabelsText(object, "spec.template.spec.nodeSelector")),
                     Json(AgeOf(object, now))};
  AddContainerCells(object, kContainers, cells);
  cells.emplace_back(SelectorText(object, "spec.selector"));
  return cells;
}

JsonArray CronJobCells(const Json& object, Instant now) {
  const std::optional<Instant> last = TimeAt(object, "status.lastScheduleTime");
  JsonArray cells = {NameCell(object),
                     Json(TextAt(object, "spec.schedule")),
                     Json(OrNone(TextAt(object, "spec.timeZone"))),
                     Json(FlagAt(object, "spec.suspend") ? "True" : "False"),
                     Json(static_cast<int64_t>(ArrayAt(object, "status.active").size())),
                     Json(last ? Since(last, now) : OrNone("")),
                     Json(AgeOf(object, now))};
  AddContainerCells(object, "spec.jobTemplate.spec.template.spec.containers", cells);
  cells.emplace_back(SelectorText(object, "spec.jobTemplate.spec.selector"));
  return cells;
}

// The owner that controls the object: "statefulset.apps/name".
std::string ControllerText(const Json& object) {
  const Json* owner = ControllerOf(object);
  if (owner == nullptr) return OrNone("");
  std::string kind = Lower(TextAt(*owner, "kind"));
  const std::string_view version = TextAt(*owner, "apiVersion");
  const size_t slash = version.find('/');
  if (slash != std::string_view::npos) kind += fmt::format(".{}", version.substr(0, slash));
  return fmt::format("{}/{}", kind, TextAt(*owner, "name"));
}

JsonArray ControllerRevisionCells(const Json& object, Instant now) {
  return {NameCell(object), Json(ControllerText(object)), Json(IntegerAt(object, "revision")),
          Json(AgeOf(object, now))};
}

JsonArray PodTemplateCells(const Json& object, Instant /*now*/) {
  JsonArray cells = {NameCell(object)};
  AddContainerCells(object, "template.spec.containers", cells);
  cells.emplace_back(LabelsText(object, "template.metadata.labels"));
  return cells;
}

constexpr std::array<TableForm, 6> kForms = {{
    {KindId::kReplicationController, kReplicationControllerColumns, &ReplicationControllerCells},
    {KindId::kStatefulSet, kStatefulSetColumns, &StatefulSetCells},
    {KindId::kDaemonSet, kDaemonSetColumns, &DaemonSetCells},
    {KindId::kCronJob, kCronJobColumns, &CronJobCells},
    {KindId::kControllerRevision, kControllerRevisionColumns, &ControllerRevisionCells},
    {KindId::kPodTemplate, kPodTemplateColumns, &PodTemplateCells},
}};

}  // namespace

std::span<const TableForm> WorkloadForms() { return kForms; }

}  // namespace berth::api
