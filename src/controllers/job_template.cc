#include "controllers/job_template.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "client/request.h"
#include "controllers/write.h"

namespace berth::controllers {
namespace {

bool IsOfServer(std::string_view key) {
  constexpr std::string_view kPrefix = "batch.kubernetes.io/";
  if (key.starts_with(kPrefix)) key.remove_prefix(kPrefix.size());
  return key == "controller-uid" || key == "job-name";
}

std::string TolerationText(const api::Toleration& toleration) {
  std::string text;
  const auto add = [&](std::string_view key, const std::string& value) {
    if (!value.empty()) text += fmt::format(R"("{}":{},)", key, client::JsonString(value));
  };
  add("key", toleration.key);
  add("operator", toleration.op);
  add("value", toleration.value);
  add("effect", toleration.effect);
  if (toleration.seconds) text += fmt::format(R"("tolerationSeconds":{},)", *toleration.seconds);
  if (!text.empty()) text.pop_back();
  return "{" + text + "}";
}

std::string TolerationsText(const std::vector<api::Toleration>& tolerations) {
  if (tolerations.empty()) return "null";
  std::string text = "[";
  for (const api::Toleration& toleration : tolerations) text += TolerationText(toleration) + ",";
  text.back() = ']';
  return text;
}

std::string GatesText(const std::vector<std::string>& gates) {
  if (gates.empty()) return "null";
  std::string text = "[";
  for (const std::string& gate : gates) text += R"({"name":)" + client::JsonString(gate) + "},";
  text.back() = ']';
  return text;
}

// A merge patch that makes one map of the other.
std::string MapPatch(const api::StringMap& from, const api::StringMap& to) {
  if (to.empty()) return "null";
  std::string text = "{";
  for (const auto& [key, value] : to) {
    if (api::Find(from, key) != std::string_view(value))
      text += client::JsonString(key) + ":" + client::JsonString(value) + ",";
  }
  for (const auto& [key, value] : from) {
    if (!api::Find(to, key)) text += client::JsonString(key) + ":null,";
  }
  text.back() = '}';
  return text;
}

// The first key that both have with different values.
std::optional<std::string> ConflictOf(std::string_view what, const api::StringMap& there,
                                      const api::StringMap& wanted) {
  for (const auto& [key, value] : wanted) {
    const auto had = api::Find(there, key);
    if (!had || *had == value) continue;
    return fmt::format(
        "invalid admission check PodSetUpdate: conflict for {}: conflict for key={}, value1={}, "
        "value2={}",
        what, key, *had, value);
  }
  return std::nullopt;
}

void PutAll(const api::StringMap& wanted, api::StringMap& there) {
  for (const auto& [key, value] : wanted) Put(there, key, value);
}

}  // namespace

PodSettings SettingsOf(const api::WorkloadPodSet& set) {
  return {.labels = set.labels,
          .annotations = set.annotations,
          .selector = set.spec->node_selector,
          .tolerations = set.spec->tolerations,
          .gates = set.spec->scheduling_gates};
}

std::optional<std::string> Add(const api::PodSetUpdate& update, PodSettings& settings) {
  for (const auto& wrong : {ConflictOf("annotations", settings.annotations, update.annotations),
                            ConflictOf("labels", settings.labels, update.labels),
                            ConflictOf("nodeSelector", settings.selector, update.node_selector)}) {
    if (wrong) return wrong;
  }
  PutAll(update.labels, settings.labels);
  PutAll(update.annotations, settings.annotations);
  PutAll(update.node_selector, settings.selector);
  for (const api::Toleration& toleration : update.tolerations) {
    if (std::ranges::find(settings.tolerations, toleration) == settings.tolerations.end())
      settings.tolerations.push_back(toleration);
  }
  return std::nullopt;
}

api::StringMap OwnLabels(const api::StringMap& labels) {
  api::StringMap own = labels;
  std::erase_if(own, [](const auto& label) { return IsOfServer(label.first); });
  return own;
}

std::string TemplateText(const api::PodTemplate& pod_template) {
  const api::StringMap labels = OwnLabels(pod_template.labels);
  std::string metadata;
  if (!labels.empty()) metadata += R"("labels":)" + MapText(labels);
  if (!pod_template.annotations.empty()) {
    if (!metadata.empty()) metadata += ",";
    metadata += R"("annotations":)" + MapText(pod_template.annotations);
  }
  return fmt::format(R"({{"metadata":{{{}}},"spec":{}}})", metadata, pod_template.spec.view());
}

std::string TemplatePatch(const api::PodTemplate& from, const api::PodSpec& spec,
                          const PodSettings& to) {
  api::StringMap labels = to.labels;
  for (const auto& [key, value] : from.labels) {
    if (IsOfServer(key)) Put(labels, key, value);
  }
  std::string metadata;
  if (from.labels != labels) metadata += R"("labels":)" + MapPatch(from.labels, labels) + ",";
  if (from.annotations != to.annotations)
    metadata += R"("annotations":)" + MapPatch(from.annotations, to.annotations) + ",";
  std::string members;
  if (spec.node_selector != to.selector)
    members += R"("nodeSelector":)" + MapPatch(spec.node_selector, to.selector) + ",";
  if (spec.tolerations != to.tolerations)
    members += R"("tolerations":)" + TolerationsText(to.tolerations) + ",";
  if (spec.scheduling_gates != to.gates)
    members += R"("schedulingGates":)" + GatesText(to.gates) + ",";
  std::string text;
  for (const auto& [name, part] : {std::pair("metadata", metadata), std::pair("spec", members)}) {
    if (part.empty()) continue;
    text += fmt::format(R"("{}":{{{}}},)", name, std::string_view(part).substr(0, part.size() - 1));
  }
  if (text.empty()) return text;
  text.pop_back();
  return R"(,"template":{)" + text + "}";
}

}  // namespace berth::controllers
