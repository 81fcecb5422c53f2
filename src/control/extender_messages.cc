#include "control/extender_messages.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "api/json.h"
#include "base/hash.h"
#include "codec/json.h"

namespace berth::control {
namespace {

using api::Json;
using api::JsonObject;

std::unexpected<Error> Wrong(std::string_view member, std::string_view wanted) {
  return Fail(ErrorCode::kInvalid, fmt::format("{} is not {}", member, wanted));
}

// Letters of ASCII alone, of which the names are made.
bool SameName(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
  return std::ranges::equal(a, b, {}, lower, lower);
}

// The member that counts; null: there is none, or it says nothing.
const Json* Member(const JsonObject& object, std::string_view name) {
  const Json* found = nullptr;
  for (const auto& member : object) {
    if (SameName(member.key(), name) && !member.value().is_null()) found = &member.value();
  }
  return found;
}

Result<Json> ParseObject(std::string_view text) {
  Result<Json> parsed = codec::ParseJson(text);
  if (!parsed) return parsed;
  if (!parsed->is_object()) return Wrong("the answer", "an object");
  return parsed;
}

Status ReadText(const JsonObject& object, std::string_view name, std::string& out) {
  const Json* value = Member(object, name);
  if (value == nullptr) return {};
  if (!value->is_string()) return Wrong(name, "a string");
  out = std::string_view(value->get_string());
  return {};
}

Status ReadWords(const JsonObject& object, std::string_view name,
                 std::map<std::string, std::string>& out) {
  const Json* value = Member(object, name);
  if (value == nullptr) return {};
  if (!value->is_object()) return Wrong(name, "an object");
  for (const auto& member : value->get_object()) {
    if (!member.value().is_string() && !member.value().is_null())
      return Wrong(fmt::format("{}.{}", name, std::string_view(member.key())), "a string");
    out[std::string(member.key())] =
        member.value().is_string() ? std::string(std::string_view(member.value().get_string()))
                                   : std::string();
  }
  return {};
}

Status ReadNames(const Json& value, std::vector<std::string>& out) {
  if (!value.is_array()) return Wrong("NodeNames", "an array");
  for (const Json& name : value.get_array()) {
    if (!name.is_string()) return Wrong("an element of NodeNames", "a string");
    out.emplace_back(std::string_view(name.get_string()));
  }
  return {};
}

Status ReadDocuments(const Json& value, std::vector<std::string>& out) {
  if (!value.is_object()) return Wrong("Nodes", "an object");
  const Json* items = Member(value.get_object(), "items");
  if (items == nullptr) return {};
  if (!items->is_array()) return Wrong("Nodes.items", "an array");
  for (const Json& item : items->get_array()) {
    if (!item.is_object()) return Wrong("an element of Nodes.items", "an object");
    const Json* metadata = Member(item.get_object(), "metadata");
    if (metadata == nullptr || !metadata->is_object())
      return Wrong("metadata of Nodes.items", "an object");
    std::string& name = out.emplace_back();
    if (const Status read = ReadText(metadata->get_object(), "name", name); !read) return read;
  }
  return {};
}

// `append_pod(i, k, out)`: the k-th victim of the i-th node.
std::string VictimsText(std::span<const ShownVictims> nodes, auto append_pod) {
  std::string out = "{";
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (i > 0) out += ',';
    codec::AppendJsonString(nodes[i].node, out);
    out += R"(:{"Pods":[)";
    for (size_t k = 0; k < nodes[i].uids.size(); ++k) {
      if (k > 0) out += ',';
      append_pod(i, k, out);
    }
    out += fmt::format(R"(],"NumPDBViolations":{}}})", nodes[i].pdb_violations);
  }
  return out + "}";
}

Status ReadVictims(const JsonObject& object, ShownVictims& out) {
  if (const Json* pods = Member(object, "Pods"); pods != nullptr) {
    if (!pods->is_array()) return Wrong("Pods", "an array");
    for (const Json& pod : pods->get_array()) {
      if (!pod.is_object()) return Wrong("an element of Pods", "an object");
      if (const Status read = ReadText(pod.get_object(), "UID", out.uids.emplace_back()); !read)
        return read;
    }
  }
  const Json* violations = Member(object, "NumPDBViolations");
  if (violations == nullptr) return {};
  if (!violations->is_int64()) return Wrong("NumPDBViolations", "a whole number");
  constexpr int64_t kMost = std::numeric_limits<uint32_t>::max();
  out.pdb_violations =
      static_cast<uint32_t>(std::clamp(violations->get_int64(), int64_t{0}, kMost));
  return {};
}

}  // namespace

std::string ExtenderPreemptionArgs(std::string_view pod, std::span<const ShownVictims> nodes) {
  const auto by_uid = [&](size_t i, size_t k, std::string& out) {
    out += R"({"UID":)";
    codec::AppendJsonString(nodes[i].uids[k], out);
    out += '}';
  };
  return fmt::format(R"({{"Pod":{},"NodeNameToVictims":null,"NodeNameToMetaVictims":{}}})", pod,
                     VictimsText(nodes, by_uid));
}

std::string ExtenderPreemptionArgs(std::string_view pod, std::span<const ShownVictims> nodes,
                                   std::span<const std::vector<Bytes>> documents) {
  const auto whole = [&](size_t i, size_t k, std::string& out) { out += documents[i][k].view(); };
  return fmt::format(R"({{"Pod":{},"NodeNameToVictims":{},"NodeNameToMetaVictims":null}})", pod,
                     VictimsText(nodes, whole));
}

std::string ExtenderArgs(std::string_view pod, std::span<const std::string> names) {
  std::string out = fmt::format(R"({{"Pod":{},"Nodes":null,"NodeNames":[)", pod);
  for (size_t i = 0; i < names.size(); ++i) {
    if (i > 0) out += ',';
    codec::AppendJsonString(names[i], out);
  }
  return out + "]}";
}

std::string ExtenderArgs(std::string_view pod, std::span<const Bytes> documents) {
  size_t size = pod.size() + 100;
  for (const Bytes& document : documents) size += document.size() + 1;
  std::string out;
  out.reserve(size);
  out.append(R"({"Pod":)").append(pod).append(R"(,"Nodes":{"metadata":{},"items":[)");
  for (size_t i = 0; i < documents.size(); ++i) {
    if (i > 0) out += ',';
    out += documents[i].view();
  }
  return out + R"(]},"NodeNames":null})";
}

std::string ExtenderBindingArgs(const client::ObjectRef& pod, std::string_view node) {
  std::string out = R"({"PodName":)";
  codec::AppendJsonString(pod.name, out);
  out += R"(,"PodNamespace":)";
  codec::AppendJsonString(pod.namespace_name, out);
  out += R"(,"PodUID":)";
  codec::AppendJsonString(pod.uid, out);
  out += R"(,"Node":)";
  codec::AppendJsonString(node, out);
  return out + "}";
}

Result<FilterAnswer> ReadFilterAnswer(std::string_view text, bool by_names) {
  const Result<Json> parsed = ParseObject(text);
  if (!parsed) return std::unexpected(parsed.error());
  const JsonObject& object = parsed->get_object();
  FilterAnswer out;
  Status read = ReadText(object, "Error", out.error);
  if (read) read = ReadWords(object, "FailedNodes", out.failed);
  if (read) read = ReadWords(object, "FailedAndUnresolvableNodes", out.unresolvable);
  if (!read) return std::unexpected(read.error());
  const Json* names = Member(object, "NodeNames");
  const Json* nodes = Member(object, "Nodes");
  if (by_names && names != nullptr) {
    read = ReadNames(*names, out.nodes);
  } else if (nodes != nullptr) {
    read = ReadDocuments(*nodes, out.nodes);
  }
  if (!read) return std::unexpected(read.error());
  return out;
}

Result<std::vector<ShownVictims>> ReadPreemptionAnswer(std::string_view text) {
  const Result<Json> parsed = ParseObject(text);
  if (!parsed) return std::unexpected(parsed.error());
  std::vector<ShownVictims> out;
  const Json* nodes = Member(parsed->get_object(), "NodeNameToMetaVictims");
  if (nodes == nullptr) return out;
  if (!nodes->is_object()) return Wrong("NodeNameToMetaVictims", "an object");
  for (const auto& member : nodes->get_object()) {
    if (member.value().is_null()) continue;
    if (!member.value().is_object())
      return Wrong(fmt::format("NodeNameToMetaVictims.{}", std::string_view(member.key())),
                   "an object");
    ShownVictims& one = out.emplace_back(ShownVictims{.node = std::string(member.key())});
    if (const Status read = ReadVictims(member.value().get_object(), one); !read)
      return std::unexpected(read.error());
  }
  return out;
}

Result<std::vector<HostPriority>> ReadPriorities(std::string_view text) {
  const Result<Json> parsed = codec::ParseJson(text);
  if (!parsed) return std::unexpected(parsed.error());
  std::vector<HostPriority> out;
  if (parsed->is_null()) return out;
  if (!parsed->is_array()) return Wrong("the answer", "an array");
  for (const Json& entry : parsed->get_array()) {
    if (!entry.is_object()) return Wrong("an element of the answer", "an object");
    HostPriority& one = out.emplace_back();
    if (const Status read = ReadText(entry.get_object(), "Host", one.host); !read)
      return std::unexpected(read.error());
    const Json* score = Member(entry.get_object(), "Score");
    if (score == nullptr) continue;
    if (!score->is_int64()) return Wrong("Score", "a whole number");
    one.score = score->get_int64();
  }
  return out;
}

Result<std::string> ReadBindingAnswer(std::string_view text) {
  const Result<Json> parsed = ParseObject(text);
  if (!parsed) return std::unexpected(parsed.error());
  std::string error;
  if (const Status read = ReadText(parsed->get_object(), "Error", error); !read)
    return std::unexpected(read.error());
  return error;
}

uint64_t LooksOf(std::string_view pod) {
  Result<Json> parsed = codec::ParseJson(pod);
  if (!parsed || !parsed->is_object()) return HashOf(pod);
  JsonObject& object = parsed->get_object();
  object.erase("status");
  if (Json* metadata = object.if_contains("metadata"); metadata && metadata->is_object()) {
    for (const std::string_view key : {"resourceVersion", "managedFields", "generation"})
      metadata->get_object().erase(key);
  }
  return HashOf(codec::PrintJson(*parsed));
}

}  // namespace berth::control
