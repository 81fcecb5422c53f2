#include "config/profile.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>
#include <ranges>
#include <set>
#include <utility>

#include "base/check.h"
#include "config/contains.h"

namespace berth::config {
namespace {

// Where a plugin that isn't there is disabled: itself, or all.
std::optional<size_t> DisabledAt(const PluginSet& set, std::string_view name) {
  for (size_t i = 0; i < set.disabled.size(); ++i) {
    if (set.disabled[i].name == name || set.disabled[i].name == "*") return i;
  }
  return std::nullopt;
}

bool DisablesAll(const PluginSet& set) { return Contains(set.disabled, "*", &Plugin::name); }

struct Merged {
  std::vector<Plugin> plugins;
  std::vector<Cause> causes;  // Of each.
};

// The defaults with what multiPoint makes of them. Of one that it enables twice, the last counts in
// the default's place, and the other is there, too.
Merged Merge(const PluginSet& set, const FeatureGates& gates) {
  Merged out;
  std::map<std::string_view, size_t> enabled;
  for (size_t i = 0; i < set.enabled.size(); ++i) enabled[set.enabled[i].name] = i;
  std::set<size_t> placed;
  for (const DefaultPlugin& plugin : DefaultPlugins(gates)) {
    if (DisabledAt(set, plugin.name)) continue;
    const auto again = enabled.find(plugin.name);
    if (again == enabled.end()) {
      out.plugins.push_back({.name = std::string(plugin.name), .weight = plugin.weight});
      out.causes.push_back(Cause::kDefault);
      continue;
    }
    placed.insert(again->second);
    out.plugins.push_back(set.enabled[again->second]);
    out.causes.push_back(Cause::kMultiPoint);
  }
  for (size_t i = 0; i < set.enabled.size(); ++i) {
    if (placed.contains(i)) continue;
    out.plugins.push_back(set.enabled[i]);
    out.causes.push_back(Cause::kMultiPoint);
  }
  return out;
}

bool Scores(Point point) { return point == Point::kScore || point == Point::kPlacementScore; }

std::string Missing(std::string_view name) {
  const std::string_view instead = InsteadOf(name);
  if (!instead.empty()) return fmt::format("there is no such plugin any more: take {}", instead);
  return "there is no such plugin: berth runs those that kube-scheduler brings along";
}

// Enabled plugins that are known, once each.
class Checker {
 public:
  Checker(std::string_view path, api::FieldErrors& errors) : path_(path), errors_(errors) {}

  // `point`: none for multiPoint.
  void Check(const PluginSet& set, std::string_view set_name, std::optional<Point> point) {
    std::set<std::string_view> seen;
    for (size_t i = 0; i < set.enabled.size(); ++i) {
      const std::string& name = set.enabled[i].name;
      const std::string field = fmt::format("{}.plugins.{}.enabled[{}].name", path_, set_name, i);
      const PluginRow* row = FindPlugin(name);
      if (row == nullptr) {
        errors_.push_back(api::InvalidField(field, name, Missing(name)));
      } else if (point && !row->acts_at(*point)) {
        errors_.push_back(api::InvalidField(field, name, "the plugin doesn't act there"));
      } else if (!seen.insert(name).second) {
        errors_.push_back(api::DuplicateField(field, name));
      }
      const int32_t weight = set.enabled[i].weight;
      if (weight < 0) {
        errors_.push_back(
            api::InvalidField(fmt::format("{}.plugins.{}.enabled[{}].weight", path_, set_name, i),
                              weight, "must be greater than or equal to 0"));
      }
    }
  }

 private:
  std::string_view path_;
  api::FieldErrors& errors_;
};

int32_t WeightOf(const Plugin& plugin) { return plugin.weight == 0 ? 1 : plugin.weight; }

// What acts at one point.
std::vector<EffectivePlugin> ExpandPoint(Point point, const PluginSet& set, const Merged& merged) {
  const auto make = [&](const Plugin& plugin, Cause cause) {
    return EffectivePlugin{
        .name = plugin.name, .weight = Scores(point) ? WeightOf(plugin) : 0, .cause = cause};
  };
  const auto acts = [&](const Plugin& plugin) {
    const PluginRow* row = FindPlugin(plugin.name);
    return row != nullptr && row->acts_at(point);
  };
  const bool all_disabled = DisablesAll(set);
  const auto overrides = [&](const Plugin& plugin) {
    // Which is disabled as well comes last, as one that was not there.
    return !all_disabled && Contains(merged.plugins, plugin.name, &Plugin::name) &&
           !DisabledAt(set, plugin.name);
  };
  std::vector<EffectivePlugin> out;
  std::set<std::string_view> placed;
  const auto place = [&](const Plugin& plugin, Cause cause) {
    if (acts(plugin) && placed.insert(plugin.name).second) out.push_back(make(plugin, cause));
  };
  for (const Plugin& plugin : set.enabled) {
    if (overrides(plugin)) place(plugin, Cause::kPoint);
  }
  for (size_t i = 0; i < merged.plugins.size(); ++i) {
    const Plugin& plugin = merged.plugins[i];
    if (DisabledAt(set, plugin.name)) continue;
    place(plugin, merged.causes[i]);
  }
  for (const Plugin& plugin : set.enabled) place(plugin, Cause::kPoint);
  return out;
}

// The default plugins that are not where they could be.
std::vector<Absent> AbsentOf(const Plugins& plugins, const EffectiveProfile& profile,
                             const FeatureGates& gates) {
  std::vector<Absent> out;
  for (const DefaultPlugin& plugin : DefaultPlugins(gates)) {
    for (const Point point : AllPoints()) {
      if (!FindPlugin(plugin.name)->acts_at(point) ||
          Contains(profile.AtPoint(point), plugin.name, &EffectivePlugin::name)) {
        continue;
      }
      const std::optional<size_t> here =
          DisabledAt(plugins.at[static_cast<size_t>(point)], plugin.name);
      const std::optional<size_t> all = DisabledAt(plugins.multi_point, plugin.name);
      CHECK(here.has_value() || all.has_value());
      out.push_back({.name = std::string(plugin.name),
                     .point = point,
                     .field = here ? fmt::format("plugins.{}.disabled[{}]", NameOf(point), *here)
                                   : fmt::format("plugins.multiPoint.disabled[{}]", *all)});
    }
  }
  return out;
}

std::string_view WordOf(Cause cause) {
  if (cause == Cause::kDefault) return "";
  return cause == Cause::kMultiPoint ? " (multiPoint)" : " (here)";
}

}  // namespace

PluginSet MergedMultiPoint(const Plugins& plugins, const FeatureGates& gates) {
  return {.enabled = Merge(plugins.multi_point, gates).plugins,
          .disabled = plugins.multi_point.disabled};
}

EffectiveProfile Expand(const Profile& profile, const FeatureGates& gates, std::string_view path,
                        api::FieldErrors& errors) {
  Checker checker(path, errors);
  const Plugins& plugins = profile.plugins;
  checker.Check(plugins.multi_point, "multiPoint", std::nullopt);
  EffectiveProfile out;
  out.scheduler_name = profile.scheduler_name.value_or("");
  const Merged merged = Merge(plugins.multi_point, gates);
  for (const Point point : AllPoints()) {
    const PluginSet& set = plugins.at[static_cast<size_t>(point)];
    checker.Check(set, NameOf(point), point);
    out.at[static_cast<size_t>(point)] = ExpandPoint(point, set, merged);
  }
  const size_t sorters = out.AtPoint(Point::kQueueSort).size();
  if (sorters != 1) {
    errors.push_back(api::InvalidField(fmt::format("{}.plugins.queueSort", path),
                                       static_cast<int64_t>(sorters),
                                       "exactly one plugin must sort the queue"));
  }
  if (out.AtPoint(Point::kBind).empty()) {
    errors.push_back(
        api::RequiredField(fmt::format("{}.plugins.bind", path), "at least one plugin must bind"));
  }
  out.absent = AbsentOf(plugins, out, gates);
  return out;
}

EffectiveProfile Expand(const Profile& profile, const FeatureGates& gates) {
  api::FieldErrors errors;
  EffectiveProfile out = Expand(profile, gates, "", errors);
  CHECK(errors.empty());
  return out;
}

std::string Text(const EffectiveProfile& profile) {
  std::string out;
  for (const Point point : AllPoints()) {
    const std::vector<EffectivePlugin>& plugins = profile.AtPoint(point);
    if (plugins.empty()) continue;
    std::vector<std::string> words;
    words.reserve(plugins.size());
    for (const EffectivePlugin& plugin : plugins) {
      const std::string weight = Scores(point) ? fmt::format("={}", plugin.weight) : "";
      words.push_back(fmt::format("{}{}{}", plugin.name, weight, WordOf(plugin.cause)));
    }
    out += fmt::format("{}: {}\n", NameOf(point), fmt::join(words, ", "));
  }
  for (const Absent& absent : profile.absent)
    out += fmt::format("no {} at {}: {}\n", absent.name, NameOf(absent.point), absent.field);
  return out;
}

}  // namespace berth::config
