#include "apiserver/managed.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <optional>
#include <utility>

#include "api/custom_definition.h"
#include "api/kinds.h"
#include "api/object.h"
#include "api/timestamp.h"
#include "apiserver/objects.h"
#include "base/limits.h"
#include "codec/json.h"

namespace berth::apiserver {

namespace {

using api::KindId;
using api::ManagedFields;

constexpr size_t kSubresourceBytesMax = 256;  // As upstream.

std::string_view SubresourceText(Subpart subpart) {
  switch (subpart) {
    case Subpart::kStatus:
      return "status";
    case Subpart::kScale:
      return "scale";
    case Subpart::kFinalize:
      return "finalize";
    case Subpart::kEphemeralContainers:
      return "ephemeralcontainers";
    case Subpart::kResize:
      return "resize";
    default:
      return "";
  }
}

// What the query says, else the user agent up to its version, in characters that can be printed.
std::string ManagerOf(const WriteContext& context) {
  if (!context.options.manager.empty()) return context.options.manager;
  const std::string_view agent = context.request.header("user-agent");
  std::string manager;
  for (const char c : agent.substr(0, agent.find('/'))) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) continue;
    if (manager.size() == kManagerBytesMax) break;
    manager += c;
  }
  return manager.substr(0, codec::ValidUtf8Prefix(manager));
}

// Those of berth's programs that write by the thousand: bindings and statuses, of which nobody asks
// whose they are. The first is who doesn't say which one it is.
constexpr std::array<std::string_view, 3> kUntracked = {"berth", "berth-nodes", "berth-scheduler"};

// Events of any of them are written once, and nobody else touches them.
bool IsTracked(KindId storage, std::string_view manager) {
  if (storage == KindId::kEvent && manager == "berth-controllers") return false;
  return std::ranges::find(kUntracked, manager) == kUntracked.end();
}

// What a scale says of an object. One of zero says nothing, though what the number stands in is
// there: nobody manages that.
api::Json AsScale(const api::Kind& kind, const api::Json& object) {
  const std::string_view path = ReplicasPath(kind);
  api::Json scale = api::JsonObject();
  if (const size_t dot = path.rfind('.'); dot != std::string_view::npos)
    api::SetDotted(scale, path.substr(0, dot), api::JsonObject());
  const api::Json* replicas = api::FindDotted(object, path);
  if (replicas != nullptr && *replicas != 0) api::SetDotted(scale, path, *replicas);
  return scale;
}

// Whether anybody manages what stands at a dotted path.
bool IsManaged(const ManagedFields& managed, std::string_view names) {
  std::vector<api::PathElement> path;
  while (!names.empty()) {
    const size_t dot = names.find('.');
    path.push_back(fmt::format("f:{}", names.substr(0, dot)));
    names = dot == std::string_view::npos ? "" : names.substr(dot + 1);
  }
  return std::ranges::any_of(
      managed, [&](const api::ManagedEntry& entry) { return api::HasPath(entry.fields, path); });
}

constexpr std::string_view kInternalTraffic = "spec.internalTrafficPolicy";

// A Service that became an ExternalName keeps its internalTrafficPolicy upstream, though no answer
// shows it: where somebody manages one that isn't there.
bool KeepsUnseen(const api::Kind& kind, const ManagedFields& managed, const api::Json& service) {
  return kind.id == api::KindId::kService && api::TextAt(service, "spec.type") == "ExternalName" &&
         api::FindPath(service, kInternalTraffic) == nullptr &&
         IsManaged(managed, kInternalTraffic);
}

// The Service with what it keeps.
api::Json WithKept(api::Json service) {
  if (api::FindPath(std::as_const(service), kInternalTraffic) == nullptr)
    api::SetPath(service, kInternalTraffic, Text("Cluster"));
  return service;
}

// What an update that is no scale's makes of them.
ManagedFields Updated(const WriteContext& context, const api::FieldWriter& writer,
                      ManagedFields managed, const api::Json& before, const api::Json& after) {
  const api::TrackedType type = api::TrackedTypeOf(*context.request.kind, writer.subresource);
  if (!KeepsUnseen(*context.request.kind, managed, before))
    return api::TrackUpdate(type, writer, std::move(managed), before, after);
  // Whoever replaces the whole without naming it takes it away.
  const bool replaces = context.request.verb == Verb::kUpdate && writer.subresource.empty();
  return api::TrackUpdate(type, writer, std::move(managed), WithKept(before),
                          replaces ? after : WithKept(after));
}

}  // namespace

Result<ConformedApart> ConformApart(const api::Kind& kind, api::Json& object,
                                    api::Decoder decoder) {
  // An empty list says something, and is no more once the document is conformed.
  const api::Json* const sent = api::FindPath(std::as_const(object), "metadata.managedFields");
  const bool empty = sent != nullptr && sent->is_array() && sent->get_array().empty();
  Result<std::vector<std::string>> problems = api::Conform(kind, object, decoder);
  if (!problems) return std::unexpected(std::move(problems.error()));
  ConformedApart conformed{.problems = std::move(*problems), .managed = TakeManaged(object)};
  if (empty) conformed.managed.emplace(api::JsonArray());
  return conformed;
}

// Characters beyond ASCII are taken for ones that can be printed.
void CheckManager(std::string_view field, std::string_view manager, api::FieldErrors& errors) {
  if (manager.size() > kManagerBytesMax) {
    errors.push_back(api::TooLongField(std::string(field), kManagerBytesMax));
  }
  for (size_t i = 0; i < manager.size(); ++i) {
    const auto c = static_cast<unsigned char>(manager[i]);
    if (c >= 0x20 && c != 0x7f) continue;
    errors.push_back(
        api::InvalidField(std::string(field), manager,
                          fmt::format("invalid character U+{:04X} (at position {})", c, i)));
  }
}

void CheckManagers(const WriteContext& context, std::string_view managed,
                   api::FieldErrors& errors) {
  if (!context.managed_sent || managed.empty()) return;
  const api::Json entries = ParseStored(managed);
  api::FieldErrors found;
  for (size_t i = 0; i < entries.get_array().size(); ++i) {
    const api::Json& entry = entries.get_array()[i];
    const std::string at = fmt::format("metadata.managedFields[{}]", i);
    CheckManager(at + ".manager", api::TextAt(entry, "manager"), found);
    if (api::TextAt(entry, "subresource").size() > kSubresourceBytesMax)
      found.push_back(api::TooLongField(at + ".subresource", kSubresourceBytesMax));
  }
  const auto rest = std::ranges::find_if_not(
      errors, [](const api::FieldError& error) { return error.field.starts_with("metadata"); });
  errors.insert(rest, std::make_move_iterator(found.begin()), std::make_move_iterator(found.end()));
}

bool DropUnknownVersions(const api::Kind& kind, api::ManagedFields& managed) {
  const std::string own = kind.api_version();
  const auto unknown = [&](const api::ManagedEntry& entry) {
    const std::string_view version = entry.api_version;
    if (version == own) return false;
    if (kind.defined == nullptr) {
      const api::Kind* found = api::FindKind(version, kind.name);
      return found == nullptr || found->group != kind.group;
    }
    const api::CustomDefinition& definition = *kind.defined->definition;
    const size_t slash = version.find('/');
    return version.substr(0, slash) != definition.group() || slash == std::string_view::npos ||
           definition.Version(version.substr(slash + 1)) == nullptr;
  };
  return std::erase_if(managed, unknown) > 0;
}

bool IsApply(const ResourceRequest& request) {
  const std::string_view type = request.header("content-type");
  return type.substr(0, type.find(';')) == "application/apply-patch+yaml";
}

api::FieldWriter WriterOf(const WriteContext& context) {
  return {
      .manager = ManagerOf(context),
      .api_version = context.request.kind->api_version(),
      .subresource = std::string(SubresourceText(context.request.subpart)),
      .time = context.request.subpart == Subpart::kScale ? "" : api::PrintTimestamp(context.now)};
}

ManagedFields StoredManaged(std::string_view text) {
  if (text.empty()) return {};
  const Result<api::Json> array = codec::ParseJson(text);
  if (!array) return {};
  return api::ParseManagedFields(*array).value_or(ManagedFields());
}

std::string ManagedAfter(const WriteContext& context, const store::StoredObject* old,
                         const api::Json& before, const api::Json& after) {
  if (context.managed_applied) return *context.managed_applied;
  const std::string_view text = old == nullptr ? std::string_view() : ManagedText(*old);
  const api::Kind& kind = *context.request.kind;
  const api::FieldWriter writer = WriterOf(context);
  // A subresource leaves them to what is stored.
  std::optional<ManagedFields> managed;
  if (context.managed_sent && writer.subresource.empty()) {
    if (api::ResetsManagedFields(*context.managed_sent)) {
      managed.emplace();
    } else if (context.managed_sent->get_array().size() <=
               static_cast<size_t>(limits::kManagersSentMax)) {
      if (Result<ManagedFields> sent = api::ParseManagedFields(*context.managed_sent))
        managed = std::move(*sent);
    }
  }
  if (!managed && !IsTracked(kind.storage, writer.manager)) return std::string(text);
  if (!managed) managed = StoredManaged(text);
  if (managed->empty() && old != nullptr) return "";
  // Where kinds have versions of their own upstream then gives up, and keeps none.
  if (DropUnknownVersions(kind, *managed) && kind.custom) return "";
  if (!IsTracked(kind.storage, writer.manager)) return api::PrintManagedFields(*managed);
  // Of what a user's schema can't look at upstream keeps none.
  if (kind.defined != nullptr && !api::IsTyped(api::TrackedTypeOf(kind, "").typed, after))
    return "";
  if (context.request.subpart != Subpart::kScale) {
    managed = Updated(context, writer, std::move(*managed), before, after);
  } else if (IsManaged(*managed, ReplicasPath(kind))) {
    // A scale that nobody manages stays so, as an object does.
    const api::TrackedType type = api::TrackedTypeOf(kind, writer.subresource);
    managed = api::TrackUpdate(type, writer, std::move(*managed), AsScale(kind, before),
                               AsScale(kind, after));
  }
  return api::PrintManagedFields(*managed);
}

bool SameManaged(std::string_view before, std::string_view after) {
  if (before == after) return true;
  if (before.empty() || after.empty()) return false;
  return api::SameButTimes(StoredManaged(before), StoredManaged(after));
}

}  // namespace berth::apiserver
