#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "api/applied_defaults.h"
#include "api/defaults.h"
#include "api/fields.h"
#include "api/managed_fields.h"
#include "api/object.h"
#include "apiserver/managed.h"
#include "apiserver/writes.h"
#include "base/check.h"
#include "base/limits.h"
#include "codec/json.h"
#include "codec/yaml.h"

namespace berth::apiserver {

namespace {

using api::Json;
using api::JsonObject;
using api::KindId;

struct AppliedBody {
  Json value;
  std::vector<std::string> duplicates;  // As messages say them.
};

Outcome<AppliedBody> ParseApplied(const ResourceRequest& request) {
  const std::string_view body = request.http->body.view();
  if (body.size() > static_cast<size_t>(limits::kRequestBodyBytesMax)) {
    return TooLarge(fmt::format("limit is {}", limits::kRequestBodyBytesMax));
  }
  const auto bad = [](std::string_view why) {
    return BadRequest(fmt::format("error decoding YAML: {}", why));
  };
  AppliedBody applied;
  // JSON is YAML, and what most clients send; where keys stand twice is asked of YAML alone.
  Result<codec::ParsedJson> json =
      codec::ParseJsonReporting(body, {.merges_duplicates = false}, api::JsonMemory());
  if (json && json->duplicates.empty()) {
    applied.value = std::move(json->value);
  } else {
    Result<codec::ParsedYaml> yaml = codec::ParseYamlReporting(body);
    if (!yaml) return bad(yaml.error().message);
    if (!yaml->documents.empty()) applied.value = std::move(yaml->documents.front());
    applied.duplicates = std::move(yaml->duplicates);
  }
  if (applied.value.is_null()) applied.value.emplace_object();
  if (!applied.value.is_object()) {
    return bad(
        fmt::format("error unmarshaling JSON: while decoding JSON: json: cannot unmarshal "
                    "{} into Go value of type map[string]interface {{}}",
                    JsonTypeName(applied.value)));
  }
  return applied;
}

// `/v1, Kind=Pod`, as Go prints it.
std::string GoKind(const api::Kind& kind) {
  return fmt::format("{}/{}, Kind={}", kind.group, kind.version, kind.name);
}

Outcome<void> CheckAppliedKind(const Json& applied, const api::Kind& kind) {
  const std::string_view version = api::TextAt(applied, "apiVersion");
  const std::string_view name = api::TextAt(applied, "kind");
  if (version != kind.api_version() || name != kind.name) {
    const size_t slash = version.find('/');
    return BadRequest(
        fmt::format("invalid object type: {}/{}, Kind={}",
                    slash == std::string_view::npos ? "" : version.substr(0, slash),
                    slash == std::string_view::npos ? version : version.substr(slash + 1), name));
  }
  const JsonObject& metadata = api::ObjectAt(applied, "metadata");
  const Json* managed = metadata.if_contains("managedFields");
  if (managed != nullptr && !managed->is_null()) {
    return BadRequest("metadata.managedFields must be nil");
  }
  return {};
}

// What the schema has against the document. Upstream takes it for a failure of its own.
Outcome<void> CheckAppliedFields(const Json& applied, const api::Kind& kind) {
  const std::vector<std::string> problems =
      api::CheckApplied(api::TrackedTypeOf(kind, "").typed, applied);
  if (problems.empty()) return {};
  std::string text;
  if (problems.size() == 1) {
    text = problems[0];
  } else {
    text = "errors:";
    for (const std::string& problem : problems) text += fmt::format("\n  {}", problem);
  }
  return Unclassified(fmt::format("failed to create typed patch object ({}/{}; {}): {}",
                                  api::TextAt(applied, "metadata.namespace"),
                                  api::TextAt(applied, "metadata.name"), GoKind(kind), text));
}

// A scale has one field, wherever its kind keeps it.
std::unexpected<Problem> ConflictOf(const std::vector<api::FieldConflict>& conflicts, bool scale) {
  Problem problem{.code = 409, .reason = "Conflict"};
  for (const api::FieldConflict& conflict : conflicts) {
    problem.causes.push_back({.reason = "FieldManagerConflict",
                              .message = fmt::format("conflict with {}", conflict.manager),
                              .field = scale ? ".spec.replicas" : api::PathText(conflict.path)});
  }
  if (conflicts.size() == 1) {
    problem.message = fmt::format("Apply failed with 1 conflict: conflict with {}: {}",
                                  conflicts[0].manager, problem.causes[0].field);
    return std::unexpected(std::move(problem));
  }
  problem.message = fmt::format("Apply failed with {} conflicts: ", conflicts.size());
  std::string_view manager;
  for (size_t i = 0; i < conflicts.size(); ++i) {
    if (i > 0) problem.message += '\n';
    if (i == 0 || conflicts[i].manager != manager) {
      manager = conflicts[i].manager;
      problem.message += fmt::format("conflicts with {}:\n", manager);
    }
    problem.message += fmt::format("- {}", problem.causes[i].field);
  }
  return std::unexpected(std::move(problem));
}

// A Scale as the object whose replicas it is.
Json ObjectOfScale(const Json& scale, const api::Kind& kind) {
  JsonObject object{{"apiVersion", kind.api_version()}, {"kind", kind.name}};
  if (const Json* metadata = api::FindMember(scale, "metadata")) object["metadata"] = *metadata;
  Json of_kind = std::move(object);
  if (const Json* replicas = api::ObjectAt(scale, "spec").if_contains("replicas")) {
    api::SetDotted(of_kind, ReplicasPath(kind), *replicas);
  }
  return of_kind;
}

// What is stored of what was applied.
Outcome<Json> ConformApplied(WriteContext& context, Json object, bool applied_anything) {
  const api::Kind& kind = *context.request.kind;
  if (!applied_anything) return object;
  const Result<std::vector<std::string>> unknown =
      api::Conform(kind, object, api::Decoder::kConverter);
  if (!unknown) {
    return Unclassified(fmt::format(
        "failed to convert new object ({0}/{1}; {2}) to proper version: unable to convert "
        "unstructured object to {2}: {3}",
        context.request.namespace_name, context.request.name, GoKind(kind),
        unknown.error().message));
  }
  api::ApplyDefaultsToApplied(kind, object);
  return object;
}

// Keys that stand twice: YAML has no such documents, and the last one's value was taken.
Outcome<void> CheckDuplicates(WriteContext& context, const std::vector<std::string>& duplicates) {
  if (duplicates.empty() || context.options.validation == FieldValidation::kIgnore) return {};
  std::string why = "yaml: unmarshal errors:";
  for (const std::string& duplicate : duplicates) why += fmt::format("\n  {}", duplicate);
  if (context.options.validation == FieldValidation::kStrict) {
    return BadRequest(
        fmt::format("error strict decoding YAML: error converting YAML to JSON: {}", why));
  }
  context.warnings.push_back(fmt::format("error converting YAML to JSON: {}", why));
  return {};
}

}  // namespace

WriteResult Apply(WriteContext& context) {
  const ResourceRequest& request = context.request;
  const api::Kind& kind = *request.kind;
  const bool scale = request.subpart == Subpart::kScale;
  if (context.options.manager.empty()) {
    return InvalidOptions("PatchOptions",
                          {api::RequiredField("fieldManager", "is required for apply patch")});
  }
  Outcome<AppliedBody> body = ParseApplied(request);
  if (!body) return std::unexpected(std::move(body.error()));
  const Outcome<store::ObjectRef> old = FindTarget(context);
  if (!old && request.subpart != Subpart::kNone) return std::unexpected(old.error());
  const api::Kind& said = scale ? api::KindOf(KindId::kScale) : kind;
  if (Outcome<void> fine = CheckAppliedKind(body->value, said); !fine) {
    return std::unexpected(std::move(fine.error()));
  }
  if (Outcome<void> fine = CheckAppliedFields(body->value, said); !fine) {
    return std::unexpected(std::move(fine.error()));
  }
  const Json applied = scale ? ObjectOfScale(body->value, kind) : std::move(body->value);
  const Json live = old ? LoadUnmanaged(kind, **old, api::JsonMemory()) : Json();
  api::FieldWriter writer = WriterOf(context);
  writer.force = ParseFlagParameter(request.query, "force");
  api::ManagedFields managed = old ? StoredManaged(ManagedText(**old)) : api::ManagedFields();
  writer.managed_before = !managed.empty();
  DropUnknownVersions(kind, managed);
  api::Applied result = api::TrackApply(api::TrackedTypeOf(kind, writer.subresource), writer,
                                        std::move(managed), live, applied);
  if (!result.conflicts.empty()) return ConflictOf(result.conflicts, scale);
  if (Outcome<void> fine = CheckDuplicates(context, body->duplicates); !fine) {
    return std::unexpected(std::move(fine.error()));
  }
  context.managed_applied = api::PrintManagedFields(result.managed);
  Outcome<Json> object =
      ConformApplied(context, Json(std::move(result.object), context.memory), result.changed);
  if (!object) return std::unexpected(std::move(object.error()));
  if (!old && !api::TextAt(*object, "metadata.uid").empty()) {
    return Conflict(request.subject(),
                    fmt::format("uid mismatch: the provided object specified uid {}, and no "
                                "existing object was found",
                                api::TextAt(*object, "metadata.uid")));
  }
  if (Outcome<void> fine = CheckVersionText(*object); !fine) {
    return std::unexpected(std::move(fine.error()));
  }
  if (!old) {
    if (Outcome<void> named = CheckNameAndNamespace(context, *object); !named) {
      return std::unexpected(std::move(named.error()));
    }
    // Upstream looks at no version of what its update makes.
    api::RemovePath(*object, "metadata.resourceVersion");
    return CreateFrom(context, std::move(*object));
  }
  const Json before = LoadUnmanaged(kind, **old, context.memory);
  if (Outcome<void> same = CheckIdentity(context, **old, before, *object); !same) {
    return std::unexpected(std::move(same.error()));
  }
  const Outcome<Written> written = Replace(context, *old, before, std::move(*object));
  if (!written) return std::unexpected(written.error());
  if (!scale) return Respond(context, 200, written->json);
  store::StoredObject changed = **old;
  changed.json = written->json;
  return Answer(200, context.shape.syntax, ScaleJson(kind, changed));
}

}  // namespace berth::apiserver
