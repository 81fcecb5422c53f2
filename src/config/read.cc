#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "codec/yaml.h"
#include "config/complete.h"
#include "config/reader.h"

namespace berth::config {
namespace {

std::string_view TextOf(const api::Json& document, std::string_view name) {
  const api::Json* value = document.get_object().if_contains(name);
  return value != nullptr && value->is_string() ? std::string_view(value->get_string()) : "";
}

constexpr std::string_view kSchedulerGroup = "kubescheduler.config.k8s.io/";

// Which of the two it is to be: berth's own where it says so by one of its two words.
bool IsBerths(const api::Json& document) {
  return TextOf(document, "kind") == kBerthKind ||
         TextOf(document, "apiVersion").starts_with("config.berth.dev/");
}

// What is wrong about what the document says that it is, and of which of the two words.
struct KindFault {
  std::string_view field;
  std::string problem;
};
std::optional<KindFault> FaultOf(const api::Json& document) {
  const std::string_view version = TextOf(document, "apiVersion");
  const std::string_view kind = TextOf(document, "kind");
  const bool of_berth = IsBerths(document);
  const std::string_view wanted_version = of_berth ? kBerthVersion : kSchedulerVersion;
  const std::string_view wanted_kind = of_berth ? kBerthKind : kSchedulerKind;
  if (version.empty())
    return KindFault{"apiVersion", fmt::format("apiVersion is missing: {}", wanted_version)};
  if (kind.empty()) return KindFault{"kind", fmt::format("kind is missing: {}", wanted_kind)};
  if (version == wanted_version && kind == wanted_kind) return std::nullopt;
  if (kind == kSchedulerKind && version.starts_with(kSchedulerGroup)) {
    return KindFault{
        "apiVersion",
        fmt::format("apiVersion {} is no longer served by Kubernetes 1.36: write {}, where plugins "
                    "of several points are enabled by multiPoint and scoring strategies are "
                    "arguments of NodeResourcesFit",
                    version, kSchedulerVersion)};
  }
  const std::string_view field = kind == wanted_kind ? "apiVersion" : "kind";
  if (of_berth) {
    return KindFault{field, fmt::format("is a {} of {}, not a {} of {}", kind, version, wanted_kind,
                                        wanted_version)};
  }
  return KindFault{field,
                   fmt::format("is a {} of {}, not a {} of {}, nor a {} of {}", kind, version,
                               kSchedulerKind, kSchedulerVersion, kBerthKind, kBerthVersion)};
}

// That of the word; of one that is missing that of what stands first in the document.
std::string AtWord(const Lines& lines, std::string_view field) {
  if (std::string at = AtLine(lines, field); !at.empty() || lines.empty()) return at;
  const auto first =
      std::ranges::min_element(lines, {}, [](const auto& one) { return one.second; });
  return fmt::format("line {}: ", first->second);
}

Problems Worded(const api::FieldErrors& errors, const Lines& lines) {
  Problems out;
  out.reserve(errors.size());
  for (const api::FieldError& error : api::ListedOf(errors))
    out.push_back(fmt::format("{}{}", AtLine(lines, error.field), api::ToString(error)));
  return out;
}

// Reads one document into `out`, which has its defaults.
template <class T>
Problems ReadInto(const api::Json& document, const Lines& lines, T& out) {
  Reader reader(lines);
  reader.Read(document, "", out);
  return reader.Take();
}

Problems ReadScheduler(const api::Json& document, const Lines& lines, const FeatureGates& gates,
                       SchedulerConfiguration& out) {
  Problems problems = ReadInto(document, lines, out);
  if (!problems.empty()) return problems;
  Complete(out, gates);
  return Worded(Validate(out, gates), lines);
}

Problems ReadBerth(const api::Json& document, const Lines& lines, BerthConfiguration& out) {
  Problems problems = ReadInto(document, lines, out);
  if (!problems.empty()) return problems;
  return Worded(Validate(out), lines);
}

// The documents of a file, each an object, with the lines of their fields.
std::expected<codec::ParsedYaml, Problems> ParseFile(std::string_view text) {
  const auto fail = [](std::string problem) {
    return std::unexpected(Problems{std::move(problem)});
  };
  if (text.size() > kConfigurationBytesMax)
    return fail(fmt::format("larger than {} bytes", kConfigurationBytesMax));
  constexpr codec::YamlLimits kLimits = {
      .nesting_max = 64, .nodes_max = 100'000, .documents_max = 3, .lines = true};
  auto parsed = codec::ParseYamlReporting(text, kLimits);
  if (!parsed) return fail(parsed.error().message);
  const auto is_object = [](const api::Json& document) { return document.is_object(); };
  if (parsed->documents.empty() || !std::ranges::all_of(parsed->documents, is_object))
    return fail(fmt::format("must be a {} ({}), a {} ({}), or both", kSchedulerKind,
                            kSchedulerVersion, kBerthKind, kBerthVersion));
  return *std::move(parsed);
}

}  // namespace

std::expected<ConfigurationFile, Problems> ReadConfigurationFile(std::string_view text,
                                                                 const FeatureGates& gates) {
  auto parsed = ParseFile(text);
  if (!parsed) return std::unexpected(std::move(parsed.error()));
  ConfigurationFile out;
  Problems problems = std::move(parsed->duplicates);
  const auto add = [&](Problems more) {
    for (std::string& problem : more) problems.push_back(std::move(problem));
  };
  for (size_t i = 0; i < parsed->documents.size(); ++i) {
    const api::Json& document = parsed->documents[i];
    const Lines& lines = parsed->lines[i];
    if (const std::optional<KindFault> fault = FaultOf(document)) {
      add({AtWord(lines, fault->field) + fault->problem});
    } else if (IsBerths(document) ? out.berth.has_value() : out.scheduler.has_value()) {
      add({fmt::format("{}holds several documents of {}; it must be one", AtWord(lines, "kind"),
                       IsBerths(document) ? kBerthKind : kSchedulerKind)});
    } else if (IsBerths(document)) {
      add(ReadBerth(document, lines, out.berth.emplace()));
    } else {
      add(ReadScheduler(document, lines, gates, out.scheduler.emplace()));
    }
  }
  if (!problems.empty()) return std::unexpected(std::move(problems));
  return out;
}

std::expected<SchedulerConfiguration, Problems> ReadSchedulerConfiguration(
    std::string_view text, const FeatureGates& gates) {
  auto file = ReadConfigurationFile(text, gates);
  if (!file) return std::unexpected(std::move(file.error()));
  if (!file->scheduler)
    return std::unexpected(Problems{fmt::format("must be a {}", kSchedulerKind)});
  return *std::move(file->scheduler);
}

}  // namespace berth::config
