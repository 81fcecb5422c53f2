#include "api/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "api/custom_definition.h"
#include "api/defaults.h"
#include "api/field_error.h"
#include "api/go_text.h"
#include "api/json_path.h"
#include "api/object.h"
#include "api/selector.h"
#include "api/table_forms.h"
#include "api/text.h"
#include "api/timestamp.h"

namespace berth::api {
namespace {

constexpr std::array kPodColumns = {kName,
                                    TextColumn("Ready"),
                                    TextColumn("Status"),
                                    TextColumn("Restarts"),
                                    kAge,
                                    TextColumn("IP", 1),
                                    TextColumn("Node", 1),
                                    TextColumn("Nominated Node", 1),
                                    TextColumn("Readiness Gates", 1)};
constexpr std::array kNodeColumns = {kName,
                                     TextColumn("Status"),
                                     TextColumn("Roles"),
                                     kAge,
                                     TextColumn("Version"),
                                     TextColumn("Internal-IP", 1),
                                     TextColumn("External-IP", 1),
                                     TextColumn("OS-Image", 1),
                                     TextColumn("Kernel-Version", 1),
                                     TextColumn("Container-Runtime", 1)};
constexpr std::array kDeploymentColumns = {
    kName, TextColumn("Ready"),         TextColumn("Up-to-date"), TextColumn("Available"),
    kAge,  TextColumn("Containers", 1), TextColumn("Images", 1),  TextColumn("Selector", 1)};
constexpr std::array kReplicaSetColumns = {
    kName, NumberColumn("Desired"),     NumberColumn("Current"), NumberColumn("Ready"),
    kAge,  TextColumn("Containers", 1), TextColumn("Images", 1), TextColumn("Selector", 1)};
constexpr std::array kJobColumns = {
    kName, TextColumn("Status"),        TextColumn("Completions"), TextColumn("Duration"),
    kAge,  TextColumn("Containers", 1), TextColumn("Images", 1),   TextColumn("Selector", 1)};
constexpr std::array kEventColumns = {
    TextColumn("Last Seen"),    TextColumn("Type"),
    TextColumn("Reason"),       TextColumn("Object"),
    TextColumn("Subobject", 1), TextColumn("Source", 1),
    TextColumn("Message"),      TextColumn("First Seen", 1),
    TextColumn("Count", 1),     Column{"Name", "string", "name", 1},
};
constexpr std::array kNamespaceColumns = {kName, TextColumn("Status"), kAge};
constexpr std::array kConfigMapColumns = {kName, TextColumn("Data"), kAge};
constexpr std::array kSecretColumns = {kName, TextColumn("Type"), TextColumn("Data"), kAge};
constexpr std::array kServiceAccountColumns = {kName, kAge};
constexpr std::array kLeaseColumns = {kName, TextColumn("Holder"), kAge};
constexpr std::array kPriorityClassColumns = {kName, NumberColumn("Value"),
                                              FlagColumn("Global-Default"), kAge,
                                              TextColumn("PreemptionPolicy")};
constexpr std::array kBudgetColumns = {kName, TextColumn("Min Available"),
                                       TextColumn("Max Unavailable"),
                                       NumberColumn("Allowed Disruptions"), kAge};
constexpr std::array kPlainColumns = {kName, Column{"Created At", "date", "", 0}};

// A number, or a text as it is; "N/A" for neither.
Json CountOrPercent(const Json* value) {
  if (value == nullptr || value->is_null()) return Json("N/A");
  return value->is_int64() ? Json(std::to_string(value->get_int64())) : *value;
}

// Whether the list `conditions` holds the type with status True.
bool HasCondition(const Json& object, std::string_view type) {
  return std::ranges::any_of(ArrayAt(object, "status.conditions"), [&](const Json& condition) {
    return TextAt(condition, "type") == type && TextAt(condition, "status") == "True";
  });
}

// What a pod's row says of its containers.
struct PodSummary {
  std::string reason;
  int64_t restarts = 0;
  std::optional<Instant> last_restart;
  int64_t ready = 0;
  int64_t total = 0;

  void CountRestarts(const Json& status) {
    restarts += IntegerAt(status, "restartCount");
    const std::optional<Instant> ended = TimeAt(status, "lastState.terminated.finishedAt");
    if (ended && (!last_restart || *last_restart < *ended)) last_restart = ended;
  }
};

std::string TerminatedReason(const Json& terminated) {
  const std::string_view reason = TextAt(terminated, "reason");
  if (!reason.empty()) return std::string(reason);
  const int64_t signal = IntegerAt(terminated, "signal");
  return signal != 0 ? fmt::format("Signal:{}", signal)
                     : fmt::format("ExitCode:{}", IntegerAt(terminated, "exitCode"));
}

bool IsSidecar(const Json& pod, std::string_view name) {
  return std::ranges::any_of(ArrayAt(pod, "spec.initContainers"), [&](const Json& container) {
    return TextAt(container, "name") == name && TextAt(container, "restartPolicy") == "Always";
  });
}

// Sums up the init containers; whether one of them still holds the pod back. `sidecars` counts only
// those.
bool SummarizeInit(const Json& pod, PodSummary& all, PodSummary& sidecars) {
  const size_t total = ArrayAt(pod, "spec.initContainers").size();
  size_t index = 0;
  for (const Json& status : ArrayAt(pod, "status.initContainerStatuses")) {
    const bool sidecar = IsSidecar(pod, TextAt(status, "name"));
    all.CountRestarts(status);
    if (sidecar) sidecars.CountRestarts(status);
    const Json* terminated = FindPath(status, "state.terminated");
    const std::string_view waiting = TextAt(status, "state.waiting.reason");
    if (terminated != nullptr && IntegerAt(*terminated, "exitCode") == 0) {
      ++index;
      continue;
    }
    if (sidecar && FlagAt(status, "started")) {
      if (FlagAt(status, "ready")) ++all.ready;
      ++index;
      continue;
    }
    if (terminated != nullptr) {
      all.reason = "Init:" + TerminatedReason(*terminated);
    } else if (!waiting.empty() && waiting != "PodInitializing") {
      all.reason = fmt::format("Init:{}", waiting);
    } else {
      all.reason = fmt::format("Init:{}/{}", index, total);
    }
    return true;
  }
  return false;
}

void SummarizeContainers(const Json& pod, PodSummary& summary) {
  bool has_running = false;
  std::string error_reason;
  const JsonArray& statuses = ArrayAt(pod, "status.containerStatuses");
  for (size_t i = statuses.size(); i > 0; --i) {
    const Json& status = statuses[i - 1];
    summary.CountRestarts(status);
    const std::string_view waiting = TextAt(status, "state.waiting.reason");
    const Json* terminated = FindPath(status, "state.terminated");
    if (!waiting.empty()) {
      summary.reason = waiting;
    } else if (terminated != nullptr) {
      summary.reason = TerminatedReason(*terminated);
      if (IntegerAt(*terminated, "exitCode") != 0) error_reason = summary.reason;
    } else if (FlagAt(status, "ready") && FindPath(status, "state.running") != nullptr) {
      has_running = true;
      ++summary.ready;
    }
  }
  if (summary.reason != "Completed") return;
  if (has_running && HasCondition(pod, "Ready")) {
    summary.reason = "Running";
  } else if (!error_reason.empty()) {
    summary.reason = error_reason;
  } else if (has_running) {
    summary.reason = "NotReady";
  }
}

PodSummary Summarize(const Json& pod) {
  PodSummary summary;
  const std::string_view phase = TextAt(pod, "status.phase");
  summary.reason = phase;
  if (const auto reason = TextAt(pod, "status.reason"); !reason.empty()) summary.reason = reason;
  for (const Json& condition : ArrayAt(pod, "status.conditions")) {
    if (TextAt(condition, "type") == "PodScheduled" &&
        TextAt(condition, "reason") == "SchedulingGated") {
      summary.reason = "SchedulingGated";
    }
  }
  summary.total = static_cast<int64_t>(ArrayAt(pod, "spec.containers").size());
  for (const Json& container : ArrayAt(pod, "spec.initContainers")) {
    if (TextAt(container, "restartPolicy") == "Always") ++summary.total;
  }
  PodSummary sidecars;
  const bool initializing = SummarizeInit(pod, summary, sidecars);
  if (!initializing || HasCondition(pod, "Initialized")) {
    summary.restarts = sidecars.restarts;
    summary.last_restart = sidecars.last_restart;
    SummarizeContainers(pod, summary);
  }
  if (FindPath(pod, "metadata.deletionTimestamp") != nullptr) {
    if (TextAt(pod, "status.reason") == "NodeLost") {
      summary.reason = "Unknown";
    } else if (phase != "Failed" && phase != "Succeeded") {
      summary.reason = "Terminating";
    }
  }
  return summary;
}

JsonArray PodCells(const Json& pod, Instant now) {
  const PodSummary summary = Summarize(pod);
  std::string restarts = std::to_string(summary.restarts);
  if (summary.restarts != 0 && summary.last_restart) {
    restarts += fmt::format(" ({} ago)", Since(summary.last_restart, now));
  }
  const JsonArray& ips = ArrayAt(pod, "status.podIPs");
  const JsonArray& gates = ArrayAt(pod, "spec.readinessGates");
  const auto passed = std::ranges::count_if(
      gates, [&](const Json& gate) { return HasCondition(pod, TextAt(gate, "conditionType")); });
  return {Json(TextAt(pod, "metadata.name")),
          Json(fmt::format("{}/{}", summary.ready, summary.total)),
          Json(summary.reason),
          Json(restarts),
          Json(AgeOf(pod, now)),
          Json(OrNone(ips.empty() ? std::string_view() : TextAt(ips[0], "ip"))),
          Json(OrNone(TextAt(pod, "spec.nodeName"))),
          Json(OrNone(TextAt(pod, "status.nominatedNodeName"))),
          Json(gates.empty() ? std::string("<none>") : fmt::format("{}/{}", passed, gates.size()))};
}

std::string NodeStatus(const Json& node) {
  std::string status = "Unknown";
  for (const Json& condition : ArrayAt(node, "status.conditions")) {
    if (TextAt(condition, "type") != "Ready") continue;
    status = TextAt(condition, "status") == "True" ? "Ready" : "NotReady";
  }
  if (FlagAt(node, "spec.unschedulable")) status += ",SchedulingDisabled";
  return status;
}

std::string NodeRoles(const Json& node) {
  constexpr std::string_view kPrefix = "node-role.kubernetes.io/";
  std::vector<std::string> roles;
  for (const auto& [key, value] : StringMapAt(node, "metadata.labels")) {
    if (key.starts_with(kPrefix) && key.size() > kPrefix.size()) {
      roles.push_back(key.substr(kPrefix.size()));
    } else if (key == "kubernetes.io/role" && !value.empty()) {
      roles.push_back(value);
    }
  }
  std::ranges::sort(roles);
  roles.erase(std::ranges::unique(roles).begin(), roles.end());
  return OrNone(fmt::format("{}", fmt::join(roles, ",")));
}

std::string NodeAddress(const Json& node, std::string_view type) {
  for (const Json& address : ArrayAt(node, "status.addresses")) {
    if (TextAt(address, "type") == type) return std::string(TextAt(address, "address"));
  }
  return "<none>";
}

JsonArray NodeCells(const Json& node, Instant now) {
  const auto info = [&](std::string_view field) {
    return TextAt(node, fmt::format("status.nodeInfo.{}", field));
  };
  std::string kernel = OrNone(info("kernelVersion"), "<unknown>");
  if (!info("architecture").empty()) kernel += fmt::format(" ({})", info("architecture"));
  return {Json(TextAt(node, "metadata.name")),
          Json(NodeStatus(node)),
          Json(NodeRoles(node)),
          Json(AgeOf(node, now)),
          Json(info("kubeletVersion")),
          Json(NodeAddress(node, "InternalIP")),
          Json(NodeAddress(node, "ExternalIP")),
          Json(OrNone(info("osImage"), "<unknown>")),
          Json(kernel),
          Json(OrNone(info("containerRuntimeVersion"), "<unknown>"))};
}

// The wide columns of a Deployment and its like: containers, images and the selector.
void AddTemplateCells(const Json& object, JsonArray& cells) {
  AddContainerCells(object, "spec.template.spec.containers", cells);
  cells.emplace_back(SelectorText(object, "spec.selector"));
}

JsonArray DeploymentCells(const Json& object, Instant now) {
  JsonArray cells = {Json(TextAt(object, "metadata.name")),
                     Json(fmt::format("{}/{}", IntegerAt(object, "status.readyReplicas"),
                                      IntegerAt(object, "spec.replicas", 1))),
                     Json(IntegerAt(object, "status.updatedReplicas")),
                     Json(IntegerAt(object, "status.availableReplicas")), Json(AgeOf(object, now))};
  AddTemplateCells(object, cells);
  return cells;
}

JsonArray ReplicaSetCells(const Json& object, Instant now) {
  JsonArray cells = {Json(TextAt(object, "metadata.name")),
                     Json(IntegerAt(object, "spec.replicas", 1)),
                     Json(IntegerAt(object, "status.replicas")),
                     Json(IntegerAt(object, "status.readyReplicas")), Json(AgeOf(object, now))};
  AddTemplateCells(object, cells);
  return cells;
}

std::string JobStatus(const Json& job) {
  if (HasCondition(job, "Complete")) return "Complete";
  if (HasCondition(job, "Failed")) return "Failed";
  if (FindPath(job, "metadata.deletionTimestamp") != nullptr) return "Terminating";
  for (const std::string_view type : {"Suspended", "FailureTarget", "SuccessCriteriaMet"}) {
    if (HasCondition(job, type)) return std::string(type);
  }
  return "Running";
}

JsonArray JobCells(const Json& job, Instant now) {
  const int64_t succeeded = IntegerAt(job, "status.succeeded");
  const int64_t parallelism = IntegerAt(job, "spec.parallelism");
  std::string completions = fmt::format("{}/1", succeeded);
  if (FindPath(job, "spec.completions") != nullptr) {
    completions = fmt::format("{}/{}", succeeded, IntegerAt(job, "spec.completions"));
  } else if (parallelism > 1) {
    completions += fmt::format(" of {}", parallelism);
  }
  std::string duration;
  if (const std::optional<Instant> start = TimeAt(job, "status.startTime")) {
    duration = HumanDuration(TimeAt(job, "status.completionTime").value_or(now) - *start);
  }
  JsonArray cells = {Json(TextAt(job, "metadata.name")), Json(JobStatus(job)), Json(completions),
                     Json(duration), Json(AgeOf(job, now))};
  AddTemplateCells(job, cells);
  return cells;
}

std::string_view Trim(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\n\v\f";
  const size_t start = text.find_first_not_of(kBlanks);
  if (start == std::string_view::npos) return {};
  return text.substr(start, text.find_last_not_of(kBlanks) - start + 1);
}

// Stored events are core events.
JsonArray EventCells(const Json& event, Instant now) {
  const auto first_of = [&](std::string_view a, std::string_view b) {
    return TextAt(event, a).empty() ? TextAt(event, b) : TextAt(event, a);
  };
  std::optional<Instant> first = TimeAt(event, "firstTimestamp");
  if (!first) first = TimeAt(event, "eventTime");
  std::optional<Instant> last = TimeAt(event, "lastTimestamp");
  if (!last) last = first;
  int64_t count = IntegerAt(event, "count");
  if (FindPath(event, "series") != nullptr) {
    last = TimeAt(event, "series.lastObservedTime");
    count = IntegerAt(event, "series.count");
  } else if (count == 0) {
    count = 1;
  }
  std::string target = Lower(TextAt(event, "involvedObject.kind"));
  if (const auto name = TextAt(event, "involvedObject.name"); !name.empty()) {
    target += fmt::format("/{}", name);
  }
  std::string source(first_of("source.component", "reportingComponent"));
  if (const auto host = first_of("source.host", "reportingInstance"); !host.empty()) {
    source += fmt::format(", {}", host);
  }
  return {Json(Since(last, now)),
          Json(TextAt(event, "type")),
          Json(TextAt(event, "reason")),
          Json(target),
          Json(TextAt(event, "involvedObject.fieldPath")),
          Json(source),
          Json(Trim(TextAt(event, "message"))),
          Json(Since(first, now)),
          Json(count),
          Json(TextAt(event, "metadata.name"))};
}

// As upstream's conversion on the machines that it runs on: cut, and the least there is of what is
// too large.
int64_t CutToInteger(double number) {
  constexpr double kBeyond = 9223372036854775808.0;
  return number >= -kBeyond && number < kBeyond ? static_cast<int64_t>(number) : INT64_MIN;
}

std::string AsText(const Json& value) {
  if (value.is_string()) return std::string(value.get_string());
  if (value.is_null()) return "<no value>";
  return value.is_structured() ? PrintGoJson(value) : PrintGo(value);
}

std::string AsAge(std::string_view text, Instant now) {
  if (text.empty() || text == "null") return "<unknown>";
  const Result<Instant> time = ParseTimestamp(text);
  return time ? HumanDuration(now - *time) : "<invalid>";
}

// A cell of a column that a definition has: what isn't of its type is not shown, but as text
// anything is.
Json CustomCell(const Column& column, const Json* value, Instant now) {
  if (value == nullptr) return nullptr;
  if (column.type == "string") return Json(AsText(*value));
  if (column.type == "integer")
    return value->is_double() ? Json(CutToInteger(value->get_double()))
                              : (value->is_int64() ? *value : Json(nullptr));
  if (column.type == "number") return value->is_number() ? *value : Json(nullptr);
  if (column.type == "boolean") return value->is_bool() ? *value : Json(nullptr);
  if (column.type != "date" || !value->is_string()) return nullptr;
  return Json(AsAge(value->get_string(), now));
}

const TableForm* FindForm(KindId kind) {
  for (const auto forms : {WorkloadForms(), ServiceForms(), StorageForms(), PolicyForms()}) {
    const auto found = std::ranges::find(forms, kind, &TableForm::kind);
    if (found != forms.end()) return &*found;
  }
  return nullptr;
}

JsonArray CustomCells(KindId kind, const Json& object, Instant now) {
  const CustomColumns custom = CustomColumnsOf(kind);
  JsonArray cells;
  int64_t steps = CellAllowance().steps;
  for (size_t i = 0; i < custom.columns.size(); ++i) {
    cells.push_back(
        CustomCell(custom.columns[i], FindJsonPath(object, custom.sources[i].path, steps), now));
  }
  return cells;
}

JsonArray DefinedCells(const CustomVersion& version, const Json& object, Instant now,
                       CellAllowance& allowance) {
  // The name comes first, and costs nothing.
  JsonArray cells = {Json(TextAt(object, "metadata.name"))};
  for (size_t i = 1; i < version.columns.size(); ++i) {
    if (allowance.bytes <= 0 || allowance.steps <= 0) {
      cells.emplace_back(nullptr);
      continue;
    }
    const Json* value = FindJsonPath(object, version.cells[i], allowance.steps);
    const Json& cell = cells.emplace_back(CustomCell(version.columns[i], value, now));
    if (cell.is_string()) allowance.bytes -= static_cast<int64_t>(cell.get_string().size());
  }
  return cells;
}

}  // namespace

std::optional<Instant> TimeAt(const Json& object, std::string_view path) {
  const std::string_view text = TextAt(object, path);
  if (text.empty()) return std::nullopt;
  const Result<Instant> time = ParseTimestamp(text);
  return time ? std::optional(*time) : std::nullopt;
}

std::string Since(std::optional<Instant> time, Instant now) {
  return time ? HumanDuration(now - *time) : "<unknown>";
}

std::string AgeOf(const Json& object, Instant now) {
  return Since(TimeAt(object, "metadata.creationTimestamp"), now);
}

std::string OrNone(std::string_view text, std::string_view otherwise) {
  return std::string(text.empty() ? otherwise : text);
}

Json NameCell(const Json& object) { return Json(TextAt(object, "metadata.name")); }

Json ClassNameCell(const Json& object, std::string_view default_annotation) {
  const Json* marked = FindMember(ObjectAt(object, "metadata.annotations"), default_annotation);
  const bool is_default = marked != nullptr && *marked == "true";
  return Json(fmt::format("{}{}", TextAt(object, "metadata.name"), is_default ? " (default)" : ""));
}

std::string LabelsText(const Json& object, std::string_view path) {
  StringMap labels = StringMapAt(object, path);
  std::ranges::sort(labels);
  std::string text;
  for (const auto& [key, value] : labels) {
    fmt::format_to(std::back_inserter(text), "{}{}={}", text.empty() ? "" : ",", key, value);
  }
  return OrNone(text);
}

std::string SelectorText(const Json& object, std::string_view path) {
  const Json* found = FindPath(object, path);
  if (found == nullptr) return OrNone("");
  const Result<LabelQuery> query = QueryOf(LabelSelectorOf(*found));
  return query ? OrNone(ToString(*query)) : std::string("<error>");
}

std::string Joined(const JsonArray& texts) {
  std::string joined;
  for (const Json& text : texts) {
    if (!text.is_string()) continue;
    if (!joined.empty()) joined += ',';
    joined += std::string_view(text.get_string());
  }
  return joined;
}

void AddContainerCells(const Json& object, std::string_view containers_path, JsonArray& cells) {
  std::string names;
  std::string images;
  for (const Json& container : ArrayAt(object, containers_path)) {
    if (!names.empty()) {
      names += ',';
      images += ',';
    }
    names += TextAt(container, "name");
    images += TextAt(container, "image");
  }
  cells.emplace_back(names);
  cells.emplace_back(images);
}

std::span<const Column> ColumnsOf(const Kind& kind) {
  return kind.defined != nullptr ? kind.defined->columns : ColumnsOf(kind.id);
}

JsonArray CellsOf(const Kind& kind, const Json& object, Instant now, CellAllowance& allowance) {
  return kind.defined != nullptr ? DefinedCells(*kind.defined, object, now, allowance)
                                 : CellsOf(kind.id, object, now);
}

std::span<const Column> ColumnsOf(KindId kind) {
  if (KindOf(kind).custom) return CustomColumnsOf(kind).columns;
  switch (kind) {
    case KindId::kPod:
      return kPodColumns;
    case KindId::kNode:
      return kNodeColumns;
    case KindId::kDeployment:
      return kDeploymentColumns;
    case KindId::kReplicaSet:
      return kReplicaSetColumns;
    case KindId::kJob:
      return kJobColumns;
    case KindId::kEvent:
    case KindId::kEventsEvent:
      return kEventColumns;
    case KindId::kNamespace:
      return kNamespaceColumns;
    case KindId::kConfigMap:
      return kConfigMapColumns;
    case KindId::kSecret:
      return kSecretColumns;
    case KindId::kServiceAccount:
      return kServiceAccountColumns;
    case KindId::kLease:
      return kLeaseColumns;
    case KindId::kPriorityClass:
      return kPriorityClassColumns;
    case KindId::kPodDisruptionBudget:
      return kBudgetColumns;
    default:
      break;
  }
  const TableForm* form = FindForm(kind);
  return form == nullptr ? kPlainColumns : form->columns;
}

JsonArray CellsOf(KindId kind, const Json& object, Instant now) {
  if (KindOf(kind).custom) return CustomCells(kind, object, now);
  const Json name(TextAt(object, "metadata.name"));
  const Json age(AgeOf(object, now));
  const auto count = [&](std::string_view path) {
    return static_cast<int64_t>(ObjectAt(object, path).size());
  };
  switch (kind) {
    case KindId::kPod:
      return PodCells(object, now);
    case KindId::kNode:
      return NodeCells(object, now);
    case KindId::kDeployment:
      return DeploymentCells(object, now);
    case KindId::kReplicaSet:
      return ReplicaSetCells(object, now);
    case KindId::kJob:
      return JobCells(object, now);
    case KindId::kEvent:
      return EventCells(object, now);
    case KindId::kEventsEvent: {
      Json core = object;
      ConvertEvent(KindId::kEventsEvent, KindId::kEvent, core);
      return EventCells(core, now);
    }
    case KindId::kNamespace:
      return {name, Json(TextAt(object, "status.phase")), age};
    case KindId::kConfigMap:
      return {name, Json(count("data") + count("binaryData")), age};
    case KindId::kSecret:
      return {name, Json(TextAt(object, "type")), Json(count("data")), age};
    case KindId::kServiceAccount:
      return {name, age};
    case KindId::kLease:
      return {name, Json(TextAt(object, "spec.holderIdentity")), age};
    case KindId::kPriorityClass:
      return {name, Json(IntegerAt(object, "value")), Json(FlagAt(object, "globalDefault")), age,
              Json(TextAt(object, "preemptionPolicy"))};
    case KindId::kPodDisruptionBudget:
      return {name, CountOrPercent(FindPath(object, "spec.minAvailable")),
              CountOrPercent(FindPath(object, "spec.maxUnavailable")),
              Json(IntegerAt(object, "status.disruptionsAllowed")), age};
    default:
      break;
  }
  if (const TableForm* form = FindForm(kind)) return form->cells(object, now);
  return {name, Json(TextAt(object, "metadata.creationTimestamp"))};
}

JsonArray RowConditionsOf(KindId kind, const Json& object) {
  const std::string_view phase = TextAt(object, "status.phase");
  if (kind != KindId::kPod || (phase != "Succeeded" && phase != "Failed")) return {};
  const bool succeeded = phase == "Succeeded";
  const JsonObject condition = {
      {"type", "Completed"},
      {"status", "True"},
      {"reason", phase},
      {"message", succeeded ? "The pod has completed successfully." : "The pod failed."}};
  return JsonArray({condition});
}

}  // namespace berth::api
