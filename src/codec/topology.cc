#include "codec/topology.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "api/topology_columns.h"
#include "base/limits.h"
#include "codec/decode_reader.h"
#include "codec/json.h"

namespace berth::codec {
namespace {

// What the kind's schema lets an assignment have.
constexpr size_t kLevelsMax = 16;

std::string Quoted(std::string_view text) {
  std::string out;
  AppendJsonString(text, out);
  return out;
}

std::string ColumnText(std::span<const api::TopologyDomain> domains, size_t level) {
  std::vector<std::string_view> values;
  values.reserve(domains.size());
  for (const api::TopologyDomain& domain : domains) values.emplace_back(domain.values[level]);
  const std::string_view first = values.front();
  const api::CommonEnds ends = api::CommonEndsOf(values);
  if (ends.universal) return R"({"universal":)" + Quoted(first) + "}";
  std::string text = R"({"individual":{)";
  if (ends.prefix > 0) text += R"("prefix":)" + Quoted(first.substr(0, ends.prefix)) + ",";
  if (ends.suffix > 0) {
    text += R"("suffix":)" + Quoted(first.substr(first.size() - ends.suffix)) + ",";
  }
  text += R"("roots":[)";
  for (const std::string_view value : values) {
    AppendJsonString(value.substr(ends.prefix, value.size() - ends.prefix - ends.suffix), text);
    text += ',';
  }
  text.back() = ']';
  return text + "}}";
}

std::string CountsText(std::span<const api::TopologyDomain> domains) {
  const bool universal = std::ranges::all_of(domains, [&](const api::TopologyDomain& domain) {
    return domain.count == domains.front().count;
  });
  if (universal) return fmt::format(R"({{"universal":{}}})", domains.front().count);
  std::string text = R"({"individual":[)";
  for (const api::TopologyDomain& domain : domains) text += fmt::format("{},", domain.count);
  text.back() = ']';
  return text + "}";
}

}  // namespace

std::string TopologyAssignmentText(const api::TopologyAssignment& assignment) {
  std::string text = R"({"levels":[)";
  for (const std::string& level : assignment.levels) text += Quoted(level) + ",";
  if (!assignment.levels.empty()) text.pop_back();
  text += R"(],"slices":[)";
  const std::span<const api::TopologyDomain> all = assignment.domains;
  for (size_t begin = 0; begin < all.size(); begin += api::kSliceDomainsMax) {
    const auto domains = all.subspan(begin, std::min(api::kSliceDomainsMax, all.size() - begin));
    if (begin > 0) text += ',';
    text += fmt::format(R"({{"domainCount":{},"valuesPerLevel":[)", domains.size());
    for (size_t level = 0; level < assignment.levels.size(); ++level) {
      if (level > 0) text += ',';
      text += ColumnText(domains, level);
    }
    text += R"(],"podCounts":)" + CountsText(domains) + "}";
  }
  return text + "]}";
}

std::string PlacementText(const api::Placement& placement) {
  std::string text = R"({"clusterQueue":)" + Quoted(placement.cluster_queue) + R"(,"podSets":[)";
  for (const api::PodSetPlacement& pods : placement.pod_sets) {
    if (&pods != &placement.pod_sets.front()) text += ',';
    text += R"({"name":)" + Quoted(pods.name) + R"(,"topologyAssignment":)" +
            TopologyAssignmentText(pods.topology);
    if (!pods.devices.empty()) {
      text += R"(,"devices":[)";
      for (const std::string& devices : pods.devices) text += Quoted(devices) + ",";
      text.back() = ']';
    }
    text += '}';
  }
  return text + "]}";
}

namespace reader {
namespace {

using Domains = std::span<api::TopologyDomain>;

// Values of one level: one that all domains have, or one of each with what they share cut off.
void ReadColumn(Errors& errors, std::string_view field, const Element& element, Domains domains) {
  std::optional<std::string> universal;
  std::string prefix;
  std::string suffix;
  std::vector<std::string> roots;
  ForMembers(errors, field, element, [&](std::string_view key, const Element& value) {
    if (key == "universal") {
      Read(errors, field, value, universal.emplace());
    } else if (key == "individual") {
      ForMembers(errors, field, value, [&](std::string_view name, const Element& part) {
        if (name == "prefix") Read(errors, field, part, prefix);
        if (name == "suffix") Read(errors, field, part, suffix);
        if (name == "roots") Read(errors, field, part, roots);
      });
    }
  });
  if (universal) {
    for (api::TopologyDomain& domain : domains) domain.values.push_back(*universal);
    return;
  }
  if (roots.size() != domains.size()) return errors.Add(field, "one for all domains or of each");
  for (size_t i = 0; i < domains.size(); ++i)
    domains[i].values.emplace_back(prefix).append(roots[i]).append(suffix);
}

void ReadCounts(Errors& errors, std::string_view field, const Element& element, Domains domains) {
  std::optional<int64_t> universal;
  std::vector<int64_t> individual;
  ForMembers(errors, field, element, [&](std::string_view key, const Element& value) {
    if (key == "universal") Read(errors, field, value, universal);
    if (key == "individual") Read(errors, field, value, individual);
  });
  if (universal) individual.assign(domains.size(), *universal);
  if (individual.size() != domains.size())
    return errors.Add(field, "one for all domains or of each");
  for (size_t i = 0; i < domains.size(); ++i) domains[i].count = individual[i];
}

void ReadSlice(Errors& errors, const std::string& field, const Element& element,
               api::TopologyAssignment& out) {
  int64_t count = 0;
  std::vector<Element> columns;
  std::optional<Element> counts;
  ForMembers(errors, field, element, [&](std::string_view key, const Element& value) {
    if (key == "domainCount") {
      Read(errors, field + ".domainCount", value, count);
    } else if (key == "valuesPerLevel") {
      ForItems(errors, field + ".valuesPerLevel", value,
               [&](const Element& column) { columns.push_back(column); });
    } else if (key == "podCounts") {
      counts = value;
    }
  });
  const auto room = limits::kSlotsMax - static_cast<int64_t>(out.domains.size());
  if (count < 0 || count > room) return errors.Add(field + ".domainCount", "as many as fit");
  if (columns.size() != out.levels.size() || !counts)
    return errors.Add(field, "of values of each level and of counts");
  const size_t begin = out.domains.size();
  out.domains.resize(begin + static_cast<size_t>(count));
  const Domains domains = Domains(out.domains).subspan(begin);
  for (const Element& column : columns)
    ReadColumn(errors, field + ".valuesPerLevel", column, domains);
  ReadCounts(errors, field + ".podCounts", *counts, domains);
}

}  // namespace

void ReadTopologyAssignment(Errors& errors, std::string_view field, const Element& element,
                            api::TopologyAssignment& out) {
  std::optional<Element> slices;
  ForMembers(errors, field, element, [&](std::string_view key, const Element& value) {
    if (key == "levels") Read(errors, fmt::format("{}.levels", field), value, out.levels);
    if (key == "slices") slices = value;
  });
  if (out.levels.size() > kLevelsMax)
    return errors.Add(fmt::format("{}.levels", field), fmt::format("at most {}", kLevelsMax));
  if (!slices) return;
  const std::string name = fmt::format("{}.slices", field);
  ForItems(errors, name, *slices, [&](const Element& slice) {
    if (!errors.first) ReadSlice(errors, name, slice, out);
  });
}

void ReadPlacement(Errors& errors, const Element& root, api::Placement& out) {
  ForMembers(errors, "placement", root, [&](std::string_view key, const Element& value) {
    if (key == "clusterQueue") Read(errors, "placement.clusterQueue", value, out.cluster_queue);
    if (key != "podSets") return;
    ForItems(errors, "placement.podSets", value, [&](const Element& item) {
      api::PodSetPlacement& pods = out.pod_sets.emplace_back();
      ForMembers(errors, "placement.podSets", item,
                 [&](std::string_view name, const Element& part) {
                   if (name == "name") Read(errors, "placement.podSets.name", part, pods.name);
                   if (name == "topologyAssignment") {
                     ReadTopologyAssignment(errors, "placement.podSets.topologyAssignment", part,
                                            pods.topology);
                   }
                   if (name == "devices")
                     Read(errors, "placement.podSets.devices", part, pods.devices);
                 });
    });
  });
}

}  // namespace reader
}  // namespace berth::codec
