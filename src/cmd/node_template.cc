#include "cmd/node_template.h"

#include <fmt/format.h>

#include <map>

#include "cmd/manifest.h"
#include "codec/decode.h"
#include "codec/json.h"

namespace berth::cmd {
namespace {

// The quantities of a list of resources, as they are written; numbers count as their text.
api::StringMap Quantities(const api::JsonObject& object, std::string_view key) {
  std::map<std::string, std::string> sorted;
  const api::Json* status = object.if_contains("status");
  const api::Json* list =
      status != nullptr && status->is_object() ? status->get_object().if_contains(key) : nullptr;
  if (list == nullptr || !list->is_object()) return {};
  for (const auto& member : list->get_object()) {
    const api::Json& value = member.value();
    sorted[std::string(member.key())] =
        value.is_string() ? std::string(value.get_string()) : codec::PrintJson(value);
  }
  return {sorted.begin(), sorted.end()};
}

}  // namespace

Result<std::vector<nodes::NodeSpec>> MakeNodeSpecs(const std::string& path, int64_t count) {
  if (path.empty()) return nodes::MakeNodes({}, count);
  const auto fail = [&](const std::string& text) {
    return Fail(ErrorCode::kInvalid, fmt::format("{}: {}", path, text));
  };
  const Result<api::Json> manifest = ReadManifest(path, "Node manifest");
  if (!manifest) return std::unexpected(manifest.error());
  const api::JsonObject& object = manifest->get_object();
  if (!object.contains("kind") || object.at("kind") != "Node") return fail("is not of kind Node");
  const Result<api::Node> node = codec::DecodeNode(codec::PrintJson(*manifest));
  if (!node) return fail(node.error().message);
  nodes::NodeTemplate pattern;
  if (!node->meta.name.empty()) pattern.prefix = node->meta.name + "-";
  pattern.labels = node->meta.labels;
  pattern.annotations = node->meta.annotations;
  pattern.taints = node->taints;
  if (!node->capacity.empty()) pattern.capacity = Quantities(object, "capacity");
  std::vector<nodes::NodeSpec> specs = nodes::MakeNodes(pattern, count);
  for (nodes::NodeSpec& spec : specs) spec.allocatable = Quantities(object, "allocatable");
  return specs;
}

}  // namespace berth::cmd
