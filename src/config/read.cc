#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>

#include "codec/yaml.h"
#include "config/complete.h"
#include "config/reader.h"

namespace berth::config {
namespace {

// What the document says that it is: empty when it is what is read here.
std::string KindProblem(const api::Json& document) {
  const auto text = [&](std::string_view name) -> std::string_view {
    const api::Json* value = document.get_object().if_contains(name);
    return value != nullptr && value->is_string() ? std::string_view(value->get_string()) : "";
  };
  const std::string_view version = text("apiVersion");
  const std::string_view kind = text("kind");
  if (version.empty()) return fmt::format("apiVersion is missing: {}", kSchedulerVersion);
  if (kind.empty()) return fmt::format("kind is missing: {}", kSchedulerKind);
  if (version == kSchedulerVersion && kind == kSchedulerKind) return "";
  constexpr std::string_view kGroup = "kubescheduler.config.k8s.io/";
  if (kind == kSchedulerKind && version.starts_with(kGroup)) {
    return fmt::format(
        "apiVersion {} is no longer served by Kubernetes 1.36: write {}, where plugins of several "
        "points are enabled by multiPoint and scoring strategies are arguments of NodeResourcesFit",
        version, kSchedulerVersion);
  }
  return fmt::format("is a {} of {}, not a {} of {}", kind, version, kSchedulerKind,
                     kSchedulerVersion);
}

Problems Worded(const api::FieldErrors& errors, const Lines& lines) {
  Problems out;
  out.reserve(errors.size());
  for (const api::FieldError& error : api::ListedOf(errors))
    out.push_back(fmt::format("{}{}", AtLine(lines, error.field), api::ToString(error)));
  return out;
}

}  // namespace

std::expected<SchedulerConfiguration, Problems> ReadSchedulerConfiguration(
    std::string_view text, const FeatureGates& gates) {
  const auto fail = [](std::string problem) {
    return std::unexpected(Problems{std::move(problem)});
  };
  if (text.size() > kConfigurationBytesMax)
    return fail(fmt::format("larger than {} bytes", kConfigurationBytesMax));
  constexpr codec::YamlLimits kLimits = {
      .nesting_max = 64, .nodes_max = 100'000, .documents_max = 2, .lines = true};
  auto parsed = codec::ParseYamlReporting(text, kLimits);
  if (!parsed) return fail(parsed.error().message);
  if (parsed->documents.size() > 1)
    return fail(fmt::format("holds several documents; it must be one {}", kSchedulerKind));
  if (parsed->documents.empty() || !parsed->documents.front().is_object())
    return fail(fmt::format("must be a {}", kSchedulerKind));
  const api::Json& document = parsed->documents.front();
  if (std::string problem = KindProblem(document); !problem.empty()) return fail(problem);
  Reader reader(parsed->lines);
  SchedulerConfiguration out;
  reader.Read(document, "", out);
  Problems problems = std::move(parsed->duplicates);
  for (std::string& problem : reader.Take()) problems.push_back(std::move(problem));
  if (!problems.empty()) return std::unexpected(std::move(problems));
  Complete(out, gates);
  const api::FieldErrors errors = Validate(out, gates);
  if (!errors.empty()) return std::unexpected(Worded(errors, parsed->lines));
  return out;
}

}  // namespace berth::config
