#include "config/reader.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>

#include "api/duration.h"
#include "codec/json.h"
#include "config/contains.h"

namespace berth::config {
namespace {

// What an error shows of a value: no more than one looks at.
std::string Shown(const api::Json& value) {
  constexpr size_t kShownMax = 80;
  std::string text = codec::PrintJson(value);
  if (text.size() <= kShownMax) return text;
  text.resize(codec::ValidUtf8Prefix(std::string_view(text).substr(0, kShownMax)));
  return fmt::format("{}...", text);
}

}  // namespace

std::string Join(std::string_view path, std::string_view name) {
  return path.empty() ? std::string(name) : fmt::format("{}.{}", path, name);
}

std::string AtLine(const Lines& lines, std::string_view field) {
  while (true) {
    const auto found = lines.find(field);
    if (found != lines.end()) return fmt::format("line {}: ", found->second);
    const size_t end = field.find_last_of(".[");
    if (end == std::string_view::npos) return "";
    field = field.substr(0, end);
  }
}

void Reader::Add(std::string_view path, std::string_view problem) {
  problems_.push_back(
      fmt::format("{}{}{}{}", AtLine(lines_, path), path, path.empty() ? "" : ": ", problem));
}

void Reader::Wrong(const std::string& path, std::string_view wanted, const api::Json& value) {
  Add(path, fmt::format("must be {}, not {}", wanted, Shown(value)));
}

void Reader::AddUnknown(const api::JsonObject& object, const std::string& path,
                        const std::vector<std::string_view>& known) {
  for (const auto& member : object) {
    if (Contains(known, std::string_view(member.key()))) continue;
    const std::string field = Join(path, member.key());
    problems_.push_back(fmt::format("{}unknown field \"{}\"; there are {}", AtLine(lines_, field),
                                    field, fmt::join(known, ", ")));
  }
}

void Reader::Read(const api::Json& value, const std::string& path, bool& out) {
  if (!value.is_bool()) return Wrong(path, "true or false", value);
  out = value.get_bool();
}

void Reader::ReadInteger(const api::Json& value, const std::string& path, int64_t bound,
                         int64_t& out) {
  const int64_t* given = value.if_int64();
  if (given == nullptr || *given > bound || *given < -bound - 1)
    return Wrong(path, fmt::format("an integer from {} to {}", -bound - 1, bound), value);
  out = *given;
}

void Reader::Read(const api::Json& value, const std::string& path, int32_t& out) {
  int64_t wide = out;
  ReadInteger(value, path, std::numeric_limits<int32_t>::max(), wide);
  out = static_cast<int32_t>(wide);
}

void Reader::Read(const api::Json& value, const std::string& path, int64_t& out) {
  ReadInteger(value, path, std::numeric_limits<int64_t>::max(), out);
}

void Reader::Read(const api::Json& value, const std::string& path, double& out) {
  if (!value.is_number()) return Wrong(path, "a number", value);
  out = value.to_number<double>();
}

void Reader::Read(const api::Json& value, const std::string& path, std::string& out) {
  if (!value.is_string()) return Wrong(path, "a text", value);
  out = value.get_string();
}

void Reader::Read(const api::Json& value, const std::string& path, Duration& out) {
  const std::string_view text = value.is_string() ? std::string_view(value.get_string()) : "";
  const bool negative = text.starts_with('-');
  const Result<Duration> read =
      api::ParseDuration(negative || text.starts_with('+') ? text.substr(1) : text);
  if (!read) return Wrong(path, "a time, as 15s or 1m30s", value);
  out = negative ? Duration{} - *read : *read;
}

void Reader::Read(const api::Json& value, const std::string& /*path*/, api::Json& out) {
  out = value;
}

template <class T>
void Reader::ReadArgs(const api::Json& value, const std::string& path, PluginConfig& out) {
  T args;
  if (!value.is_object()) return Wrong(path, "an object", value);
  const api::JsonObject& object = value.get_object();
  const auto says = [&](std::string_view field, std::string_view wanted) {
    const api::Json* given = object.if_contains(field);
    if (given == nullptr || (given->is_string() && given->get_string() == wanted)) return;
    Wrong(Join(path, field), wanted, *given);
  };
  says("apiVersion", kSchedulerVersion);
  says("kind", fmt::format("{}Args", out.name));
  ReadMembers(object, path, args, {"apiVersion", "kind"});
  out.args = std::move(args);
}

void Reader::Read(const api::Json& value, const std::string& path, PluginConfig& out) {
  if (!value.is_object()) return Wrong(path, "an object", value);
  const api::JsonObject& object = value.get_object();
  if (const api::Json* name = object.if_contains("name"); name != nullptr && !name->is_null())
    Read(*name, Join(path, "name"), out.name);
  AddUnknown(object, path, {"name", "args"});
  const api::Json* given = object.if_contains("args");
  const api::Json args = given == nullptr || given->is_null() ? api::JsonObject() : *given;
  const std::string at = Join(path, "args");
  if (out.name == "DefaultPreemption") {
    ReadArgs<DefaultPreemptionArgs>(args, at, out);
  } else if (out.name == "DynamicResources") {
    ReadArgs<DynamicResourcesArgs>(args, at, out);
  } else if (out.name == "InterPodAffinity") {
    ReadArgs<InterPodAffinityArgs>(args, at, out);
  } else if (out.name == "NodeAffinity") {
    ReadArgs<NodeAffinityArgs>(args, at, out);
  } else if (out.name == "NodeResourcesBalancedAllocation") {
    ReadArgs<NodeResourcesBalancedAllocationArgs>(args, at, out);
  } else if (out.name == "NodeResourcesFit") {
    ReadArgs<NodeResourcesFitArgs>(args, at, out);
  } else if (out.name == "PodTopologySpread") {
    ReadArgs<PodTopologySpreadArgs>(args, at, out);
  } else if (out.name == "VolumeBinding") {
    ReadArgs<VolumeBindingArgs>(args, at, out);
  }
}

}  // namespace berth::config
