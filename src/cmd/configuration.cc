#include "cmd/configuration.h"

#include <fmt/format.h>

#include <string_view>

#include "cmd/manifest.h"
#include "codec/json.h"

namespace berth::cmd {
namespace {

constexpr std::string_view kVersion = "config.berth.dev/v1alpha1";
constexpr std::string_view kKind = "BerthConfiguration";

Status ReadField(std::string_view key, const api::Json& value, Configuration& out) {
  const auto wrong = [&](std::string_view wanted) {
    return Fail(ErrorCode::kInvalid,
                fmt::format("{} must be {}, not {}", key, wanted, codec::PrintJson(value)));
  };
  const std::string_view text = value.is_string() ? std::string_view(value.get_string()) : "";
  if (key == "apiVersion") {
    if (text != kVersion) return wrong(kVersion);
  } else if (key == "kind") {
    if (text != kKind) return wrong(kKind);
  } else if (key == "placement") {
    if (text != "joint" && text != "separate") return wrong("joint or separate");
    out.joint_placement = text == "joint";
  } else {
    return Fail(ErrorCode::kInvalid,
                fmt::format("unknown field \"{}\"; there are apiVersion, kind, placement", key));
  }
  return {};
}

}  // namespace

Result<Configuration> ReadConfiguration(const std::string& path) {
  Configuration out;
  if (path.empty()) return out;
  const auto fail = [&](const std::string& text) {
    return Fail(ErrorCode::kInvalid, fmt::format("{}: {}", path, text));
  };
  const Result<api::Json> manifest = ReadManifest(path, kKind);
  if (!manifest) return std::unexpected(manifest.error());
  const api::JsonObject& object = manifest->get_object();
  for (const std::string_view needed : {"apiVersion", "kind"}) {
    if (!object.contains(needed)) return fail(fmt::format("{} is missing", needed));
  }
  for (const auto& member : object) {
    if (const Status good = ReadField(member.key(), member.value(), out); !good)
      return fail(good.error().message);
  }
  return out;
}

}  // namespace berth::cmd
