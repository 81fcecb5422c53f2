#pragma once

#include <optional>
#include <string>
#include <vector>

#include "api/quota.h"
#include "api/workloads.h"

// A Job's template and what may change of it while nothing of the Job runs: what its pods carry,
// and where they may run. Pure functions.
namespace berth::controllers {

struct PodSettings {
  api::StringMap labels;
  api::StringMap annotations;
  api::StringMap selector;
  std::vector<api::Toleration> tolerations;
  std::vector<std::string> gates;
};

// What the Job's user asked for, as its Workload keeps it.
[[nodiscard]] PodSettings SettingsOf(const api::WorkloadPodSet& set);

// Adds what an admission check wants of the pods; of tolerations those that are not there yet.
// Nothing is added when it contradicts what is there: that is told then, in Kueue's words.
[[nodiscard]] std::optional<std::string> Add(const api::PodSetUpdate& update,
                                             PodSettings& settings);

// Labels of a template without those that the server gives it.
[[nodiscard]] api::StringMap OwnLabels(const api::StringMap& labels);

// The template as its pods are made of it, without what the server puts in.
[[nodiscard]] std::string TemplateText(const api::PodTemplate& pod_template);

// The member "template" of a merge patch of the Job's spec, with a comma before; empty: nothing is
// to change. `spec` is the template's. The labels that the server gave stay.
[[nodiscard]] std::string TemplatePatch(const api::PodTemplate& from, const api::PodSpec& spec,
                                        const PodSettings& to);

}  // namespace berth::controllers
