#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <optional>
#include <utility>

#include "api/custom_definition.h"
#include "api/defaults.h"
#include "api/fields.h"
#include "api/object.h"
#include "api/patch.h"
#include "apiserver/managed.h"
#include "apiserver/writes.h"
#include "base/check.h"
#include "base/limits.h"
#include "codec/json.h"

namespace berth::apiserver {

namespace {

using api::Json;
using api::JsonArray;
using api::JsonObject;
using api::KindId;
using api::PatchType;

std::optional<PatchType> PatchTypeOf(std::string_view content_type) {
  const std::string_view type = content_type.substr(0, content_type.find(';'));
  if (type == "application/json-patch+json") return PatchType::kJson;
  if (type == "application/merge-patch+json") return PatchType::kMerge;
  if (type == "application/strategic-merge-patch+json") return PatchType::kStrategic;
  return std::nullopt;
}

std::unexpected<Problem> UnsupportedPatchType() {
  auto problem = UnsupportedMediaType("");
  problem.error().message = "415: Unsupported Media Type";
  problem.error().has_details = true;
  return problem;
}

// Upstream stops listing strict problems here too.
constexpr size_t kPatchProblemsMax = 100;

constexpr const char* kImmutable = "field is immutable";

struct ParsedPatch {
  PatchType type = PatchType::kMerge;
  Json value;
  std::vector<std::string> problems;  // Keys that it has twice, members that operations have not.
};

std::unexpected<Problem> BadPatch(std::string_view why) {
  return BadRequest(fmt::format("error decoding patch: {}", why));
}

// The members of a JSON patch's operations that none has, among what else is said of operations.
void AddUnknownMembers(ParsedPatch& patch) {
  constexpr std::array<std::string_view, 4> kMembers = {"op", "path", "from", "value"};
  if (!patch.value.is_array()) return;
  const JsonArray& operations = patch.value.get_array();
  for (size_t i = 0; i < operations.size() && patch.problems.size() < kPatchProblemsMax; ++i) {
    if (!operations[i].is_object()) continue;
    for (const auto& [name, value] : operations[i].get_object()) {
      if (std::ranges::find(kMembers, std::string_view(name)) != kMembers.end()) continue;
      patch.problems.push_back(fmt::format("json patch unknown field {}",
                                           api::QuoteGo(fmt::format("[{}].{}", i, name))));
    }
  }
  const auto operation = [](std::string_view problem) {
    size_t index = 0;
    const std::string_view rest = problem.substr(problem.find('[') + 1);
    std::from_chars(rest.data(), rest.data() + rest.size(), index);
    return index;
  };
  std::ranges::stable_sort(patch.problems, {}, operation);
}

Outcome<ParsedPatch> ParsePatch(const ResourceRequest& request, const api::JsonMemory& memory) {
  const std::optional<PatchType> type = PatchTypeOf(request.header("content-type"));
  CHECK(type.has_value());
  if (request.query.Find("force")) {
    return InvalidOptions(
        "PatchOptions", {api::ForbiddenField("force", "may not be specified for non-apply patch")});
  }
  const std::string_view body = request.http->body.view();
  if (body.size() > static_cast<size_t>(limits::kRequestBodyBytesMax)) {
    return TooLarge(fmt::format("limit is {}", limits::kRequestBodyBytesMax));
  }
  Result<codec::ParsedJson> parsed =
      codec::ParseJsonReporting(body, {.merges_duplicates = false}, memory);
  if (!parsed && *type == PatchType::kStrategic) return BadRequest(parsed.error().message);
  if (!parsed) return BadPatch(parsed.error().message);
  ParsedPatch patch{.type = *type, .value = std::move(parsed->value), .problems = {}};
  const std::string_view of = *type == PatchType::kJson ? "json patch " : "";
  for (const std::string& path : parsed->duplicates)
    patch.problems.push_back(fmt::format("{}duplicate field \"{}\"", of, path));
  if (*type == PatchType::kJson) AddUnknownMembers(patch);
  return patch;
}

// Uses the patch's value up.
Outcome<Json> ApplyParsed(ParsedPatch& patch, KindId kind, const Json& document) {
  Result<Json> patched = api::ApplyPatch(patch.type, kind, document, std::move(patch.value));
  if (patched) return std::move(*patched);
  switch (patched.error().code) {
    case ErrorCode::kTooLarge:
      return TooLarge(patched.error().message);
    case ErrorCode::kInvalid:
      if (patch.type == PatchType::kStrategic) return BadRequest(patched.error().message);
      return BadPatch(patched.error().message);
    default:
      break;
  }
  if (patch.type == PatchType::kStrategic) return Unclassified(patched.error().message);
  // Upstream hides why.
  return std::unexpected(
      Problem{.code = 422,
              .reason = "Invalid",
              .message = "the server rejected our request due to an error in our request"});
}

// `"" is invalid: patch: Invalid value: "{...}": <why>`: what upstream says of a result that does
// not decode, or, of a strategic merge patch, the patch.
std::unexpected<Problem> BadResult(std::string_view shown, std::string why) {
  const api::FieldErrors errors = {api::InvalidField("patch", shown, std::move(why))};
  Problem problem{.code = 422,
                  .reason = "Invalid",
                  .message = fmt::format(" \"\" is invalid: {}", api::ToString(errors[0]))};
  problem.causes.push_back(
      {.reason = "FieldValueInvalid", .message = api::BodyOf(errors[0]), .field = "patch"});
  return std::unexpected(std::move(problem));
}

// Whether what a result says of its kind gives way to what the path says.
bool TakesKind(PatchType type, const Json* said) {
  return said == nullptr || (type == PatchType::kStrategic && said->is_string());
}

// A kind that isn't decoded has to say what it is. `bad` says why a result can't be read.
template <typename Bad>
Outcome<void> CheckCustomResult(const api::Kind& kind, const Json& patched, const Bad& bad) {
  for (const std::string_view key : {"apiVersion", "kind"}) {
    const Json* said = api::FindMember(patched, key);
    if (said == nullptr || said->is_null() || said->is_string()) continue;
    return bad(
        fmt::format("couldn't get version/kind; json parse error: json: cannot unmarshal {} into "
                    "Go struct field .{} of type string",
                    JsonTypeName(*said), key));
  }
  const std::string_view name = api::TextAt(patched, "kind");
  const std::string_view version = api::TextAt(patched, "apiVersion");
  if (name.empty())
    return bad(fmt::format("Object 'Kind' is missing in '{}'", codec::PrintJson(patched)));
  if (version.empty())
    return InternalError("Object 'apiVersion' is missing in 'object has no apiVersion field'");
  if (std::ranges::count(version, '/') > 1)
    return bad(fmt::format("unexpected GroupVersion string: {}", version));
  api::FieldErrors errors;
  if (name != kind.name)
    errors.push_back(api::InvalidField("kind", name, fmt::format("must be {}", kind.name)));
  if (version != kind.api_version()) {
    errors.push_back(
        api::InvalidField("apiVersion", version, fmt::format("must be {}", kind.api_version())));
  }
  if (errors.empty()) return {};
  const std::string_view object_name = api::TextAt(patched, "metadata.name");
  std::unexpected<Problem> problem = Invalid({.kind = kind, .name = object_name}, errors);
  // Upstream tells of the kind that was said.
  const size_t slash = version.find('/');
  const std::string_view group = slash == std::string_view::npos ? "" : version.substr(0, slash);
  problem.error().kind = name;
  problem.error().group = group;
  problem.error().message = api::InvalidMessage(
      group.empty() ? std::string(name) : fmt::format("{}.{}", name, group), object_name, errors);
  return problem;
}

// Makes the result an object of its kind again: types, unknown fields, defaults.
// `document` is what was patched.
Outcome<Json> ConformResult(WriteContext& context, const ParsedPatch& patch, const Json& document,
                            Json patched) {
  const api::Kind& kind = *context.request.kind;
  const bool strategic = patch.type == PatchType::kStrategic;
  const auto bad = [&](std::string why) {
    Outcome<ParsedPatch> parsed = ParsePatch(context.request, context.memory);
    if (!parsed) return BadResult("", std::move(why));
    return BadResult(
        strategic ? api::PrintGo(parsed->value)
                  : codec::PrintJson(ApplyParsed(*parsed, kind.id, document).value_or(Json())),
        std::move(why));
  };
  if (!patched.is_object()) return bad("not an object");
  // Which kind it is, the path says: what a strategic patch says of it does not count, and a result
  // of the others may be without a kind.
  if (kind.custom) {
    if (Outcome<void> said = CheckCustomResult(kind, patched, bad); !said)
      return std::unexpected(std::move(said.error()));
  }
  JsonObject& members = patched.get_object();
  if (TakesKind(patch.type, members.if_contains("kind"))) members["kind"] = kind.name;
  if (strategic && TakesKind(patch.type, members.if_contains("apiVersion"))) {
    members["apiVersion"] = kind.api_version();
  }
  const std::string_view name = api::TextAt(patched, "kind");
  const std::string_view version = api::TextAt(patched, "apiVersion");
  if (!kind.custom && members["kind"].is_string() && api::FindKind(version, name) == nullptr) {
    return bad(NotRegistered(version, name));
  }
  if (name != kind.name || version != kind.api_version()) {
    return bad(fmt::format("the patch may not change kind or apiVersion ({}, {})", name, version));
  }
  Json conformed = std::move(patched);
  Result<ConformedApart> apart =
      ConformApart(kind, conformed, strategic ? api::Decoder::kConverter : api::Decoder::kJson);
  if (!apart) return bad(apart.error().message);
  context.managed_sent = std::move(apart->managed);
  std::vector<std::string>& unknown = apart->problems;
  // The result of a patch of a document that is not one of structs has sorted keys.
  if (!strategic && !kind.custom) SortByPath(unknown);
  std::vector<std::string> problems = patch.problems;
  problems.insert(problems.end(), unknown.begin(), unknown.end());
  if (!problems.empty() && context.options.validation == FieldValidation::kStrict) {
    return bad(api::StrictDecodingError(problems));
  }
  if (context.options.validation == FieldValidation::kWarn) context.warnings = std::move(problems);
  // An update of the status takes the spec from the old version, whatever it would be here.
  if (context.request.subpart == Subpart::kStatus && api::ObjectAt(conformed, "spec").empty()) {
    api::ApplyDefaultsWithoutSpec(kind, conformed);
  } else {
    api::ApplyDefaults(kind, conformed);
  }
  return conformed;
}

// Whether a patch of a status can't look at the spec, which the update takes from the old version
// anyway. That of a Service has defaults that follow from it.
bool LeavesSpec(const ResourceRequest& request, const ParsedPatch& patch) {
  const JsonObject* members = patch.value.if_object();
  return request.kind->id != KindId::kService && request.subpart == Subpart::kStatus &&
         patch.type != PatchType::kJson && members != nullptr && !members->contains("spec");
}

// Whether a patch looks at managedFields, which stay aside otherwise.
bool ConcernsManaged(const ParsedPatch& patch) {
  if (patch.type != PatchType::kJson) {
    return api::ObjectAt(patch.value, "metadata").contains("managedFields");
  }
  if (!patch.value.is_array()) return false;
  constexpr std::string_view kPath = "/metadata/managedFields";
  return std::ranges::any_of(patch.value.get_array(), [&](const Json& operation) {
    const auto concerns = [&](std::string_view path) {
      return path.starts_with(kPath) || path == "/metadata" || path.empty();
    };
    return concerns(api::TextAt(operation, "path")) ||
           (operation.is_object() && operation.get_object().contains("from") &&
            concerns(api::TextAt(operation, "from")));
  });
}

Json WithoutSpec(const Json& document) {
  Json result(document.storage());
  JsonObject& members = result.emplace_object();
  for (const auto& item : document.get_object()) {
    if (std::string_view(item.key()) != "spec") members.emplace(item.key(), item.value());
  }
  return result;
}

// ---- Scale -------------------------------------------------------------------------------------

// The status of a Scale: how many there are, and the text of what selects them.
JsonObject ScaleStatus(int64_t replicas, std::string_view selector) {
  JsonObject status{{"replicas", replicas}};
  if (!selector.empty()) status["selector"] = selector;
  return status;
}

int64_t CountAt(const Json& document, std::string_view path) {
  const Json* value = api::FindDotted(document, path);
  return value != nullptr && value->is_int64() ? value->get_int64() : 0;
}

JsonObject DefinedScaleStatus(const api::CustomVersion& version, const Json& document) {
  const Json* selector =
      version.selector_path.empty() ? nullptr : api::FindDotted(document, version.selector_path);
  return ScaleStatus(CountAt(document, version.status_replicas_path),
                     selector != nullptr && selector->is_string()
                         ? std::string_view(selector->get_string())
                         : std::string_view());
}

// What stands, as upstream has it, for the number of an object of a user's kind that has none, when
// its scale is patched.
constexpr int64_t kNoReplicas = INT32_MIN;

// Of a user's kind there may be no number.
bool LacksReplicas(const api::Kind& kind, const Json& document) {
  return kind.defined != nullptr && api::FindDotted(document, ReplicasPath(kind)) == nullptr;
}

WriteResult ReplaceScale(WriteContext& context, const store::ObjectRef& old, const Json& scale) {
  if (Outcome<void> named = CheckNameAndNamespace(context, scale); !named) {
    return std::unexpected(std::move(named.error()));
  }
  const Json* replicas = api::FindPath(scale, "spec.replicas");
  if (replicas != nullptr && !replicas->is_int64()) {
    return BadRequest(
        "Scale in version \"v1\" cannot be handled as a Scale: json: cannot unmarshal into Go "
        "struct "
        "field ScaleSpec.spec.replicas of type int32");
  }
  const int64_t wanted = replicas == nullptr ? 0 : replicas->get_int64();
  const api::Kind& kind = *context.request.kind;
  if (kind.defined != nullptr && wanted == kNoReplicas) {
    return BadRequest(
        fmt::format("the spec replicas field \".{}\" cannot be empty", ReplicasPath(kind)));
  }
  const Subject subject{.kind = api::KindOf(KindId::kScale), .name = context.request.name};
  // Of a user's kind the object says what is wrong with it.
  if ((wanted < 0 && kind.defined == nullptr) || wanted > INT32_MAX) {
    return Invalid(subject, {api::InvalidField("spec.replicas", wanted,
                                               wanted < 0 ? "must be greater than or equal to 0"
                                                          : "must be a 32-bit integer")});
  }
  const Json before = LoadUnmanaged(kind, *old, context.memory);
  Json object(before, before.storage());
  api::SetDotted(object, ReplicasPath(kind), wanted);
  const std::string_view version = api::TextAt(scale, "metadata.resourceVersion");
  api::SetPath(object, "metadata.resourceVersion", Text(version));
  if (const std::string_view uid = api::TextAt(scale, "metadata.uid"); !uid.empty()) {
    api::SetPath(object, "metadata.uid", Text(uid));
  }
  const Outcome<Written> written = Replace(context, old, before, std::move(object));
  if (!written) return std::unexpected(written.error());
  store::StoredObject changed = *old;
  changed.json = written->json;
  return Answer(200, context.shape.syntax, ScaleJson(kind, changed));
}

}  // namespace

std::string_view ReplicasPath(const api::Kind& kind) {
  return kind.defined != nullptr ? std::string_view(kind.defined->replicas_path) : "spec.replicas";
}

Outcome<void> CheckPatchType(const ResourceRequest& request) {
  if (IsApply(request)) return {};
  const std::optional<PatchType> type = PatchTypeOf(request.header("content-type"));
  if (request.kind->custom && type.value_or(PatchType::kStrategic) == PatchType::kStrategic) {
    return UnsupportedMediaType(
        "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml");
  }
  if (!type) return UnsupportedPatchType();
  return {};
}

Outcome<void> CheckIdentity(const WriteContext& context, const store::StoredObject& old,
                            const Json& before, Json& patched) {
  const ResourceRequest& request = context.request;
  if (Outcome<void> named = CheckNameAndNamespace(context, patched); !named) return named;
  if (request.kind->namespaced && api::TextAt(patched, "metadata.namespace").empty()) {
    api::SetPath(patched, "metadata.namespace", Text(request.namespace_name));
  }
  if (api::TextAt(patched, "metadata.uid").empty()) {
    api::SetPath(patched, "metadata.uid", Text(old.uid));
  }
  if (api::TextAt(patched, "metadata.resourceVersion") == "0") {
    api::RemovePath(patched, "metadata.resourceVersion");
  }
  const std::string_view version = api::TextAt(patched, "metadata.resourceVersion");
  if (Outcome<void> fine = CheckVersionText(patched); !fine) return fine;
  if (!version.empty() && version != std::to_string(old.revision)) return Stale(request.subject());
  api::FieldErrors errors;
  const std::string_view uid = api::TextAt(patched, "metadata.uid");
  // Upstream asks the metadata, then the kind, of which most ask the metadata again.
  constexpr std::array kOnce = {KindId::kPersistentVolume, KindId::kEndpointSlice,
                                KindId::kCsiNode};
  const bool once = std::ranges::find(kOnce, request.kind->id) != kOnce.end();
  if (uid != old.uid) {
    errors.assign(once ? 1 : 2, api::InvalidField("metadata.uid", uid, kImmutable));
  }
  for (const std::string_view path :
       {"metadata.deletionTimestamp", "metadata.deletionGracePeriodSeconds"}) {
    const Json* value = api::FindPath(patched, path);
    const Json* had = api::FindPath(before, path);
    if (value == nullptr || (had != nullptr && api::SameJson(*had, *value))) continue;
    errors.push_back(
        value->is_int64()
            ? api::InvalidField(std::string(path), value->get_int64(), kImmutable)
            : api::InvalidField(std::string(path), api::TextAt(patched, path), kImmutable));
  }
  if (!errors.empty()) return Invalid(request.subject(), errors);
  return {};
}

WriteResult Patch(WriteContext& context) {
  const api::Kind& kind = *context.request.kind;
  Outcome<ParsedPatch> patch = ParsePatch(context.request, context.memory);
  const Outcome<store::ObjectRef> old = FindTarget(context);
  // A body is only looked into when there is something to patch.
  if (!patch && (old || patch.error().code != 400)) {
    return std::unexpected(std::move(patch.error()));
  }
  if (!old) return std::unexpected(old.error());
  const bool managed = ConcernsManaged(*patch);
  // Webhooks are shown all.
  const bool leaves_spec = LeavesSpec(context.request, *patch) && context.webhooks == nullptr;
  const bool aside = leaves_spec && HasSpecAside(**old) && !managed;
  Json before = aside     ? LoadWithoutSpec(**old, context.memory)
                : managed ? LoadAs(kind, **old, context.memory)
                          : LoadUnmanaged(kind, **old, context.memory);
  const Json slim = leaves_spec && !aside ? WithoutSpec(before) : Json();
  const Json& document = slim.is_null() ? before : slim;
  Outcome<Json> patched = ApplyParsed(*patch, kind.id, document);
  if (!patched) return std::unexpected(std::move(patched.error()));
  Outcome<Json> object = ConformResult(context, *patch, document, std::move(*patched));
  if (!object) return std::unexpected(std::move(object.error()));
  if (managed) api::RemovePath(before, "metadata.managedFields");
  if (Outcome<void> same = CheckIdentity(context, **old, document, *object); !same) {
    return std::unexpected(std::move(same.error()));
  }
  if (aside) {
    before.get_object().emplace("spec",
                                api::SelectableSpec(kind.id, (*old)->fields, context.memory));
  }
  const Outcome<Written> written = Replace(context, *old, before, std::move(*object),
                                           aside ? SpecText(**old) : std::string_view());
  if (!written) return std::unexpected(written.error());
  return Respond(context, 200, written->json);
}

Json ScaleOf(const api::Kind& kind, const Json& document) {
  JsonObject metadata;
  for (const std::string_view key :
       {"name", "namespace", "uid", "resourceVersion", "creationTimestamp"}) {
    metadata[key] = api::TextAt(document, fmt::format("metadata.{}", key));
  }
  api::LabelSelector selector;
  // A ReplicationController's is a plain map.
  selector.match_labels = api::TextAt(document, "kind") == "ReplicationController"
                              ? api::StringMapAt(document, "spec.selector")
                              : api::StringMapAt(document, "spec.selector.matchLabels");
  for (const Json& expression : api::ArrayAt(document, "spec.selector.matchExpressions")) {
    api::Requirement requirement{.key = std::string(api::TextAt(expression, "key")),
                                 .op = std::string(api::TextAt(expression, "operator")),
                                 .values = {}};
    for (const Json& value : api::ArrayAt(expression, "values")) {
      if (value.is_string()) requirement.values.emplace_back(value.get_string());
    }
    selector.match_expressions.push_back(std::move(requirement));
  }
  const Result<api::LabelQuery> query = api::QueryOf(selector);
  JsonObject status =
      kind.defined != nullptr
          ? DefinedScaleStatus(*kind.defined, document)
          : ScaleStatus(api::IntegerAt(document, "status.replicas"),
                        query && !query->empty() ? api::ToString(*query) : std::string());
  JsonObject spec;
  // Zero is not written, as upstream leaves it out.
  if (const int64_t replicas = CountAt(document, ReplicasPath(kind)); replicas != 0) {
    spec["replicas"] = replicas;
  }
  return JsonObject{{"kind", "Scale"},
                    {"apiVersion", "autoscaling/v1"},
                    {"metadata", std::move(metadata)},
                    {"spec", std::move(spec)},
                    {"status", std::move(status)}};
}

std::string ScaleJson(const api::Kind& kind, const store::StoredObject& object) {
  return codec::PrintJson(ScaleOf(kind, LoadAs(kind, object)));
}

Outcome<std::string> ShownScale(const api::Kind& kind, const store::StoredObject& object) {
  const Json document = LoadAs(kind, object);
  if (LacksReplicas(kind, document)) {
    return InternalError(
        fmt::format("the spec replicas field \".{}\" does not exist", ReplicasPath(kind)));
  }
  return codec::PrintJson(ScaleOf(kind, document));
}

WriteResult UpdateScale(WriteContext& context) {
  Outcome<Body> body = DecodeBody(context.request, api::KindOf(KindId::kScale),
                                  context.options.validation, context.memory);
  if (!body) return std::unexpected(std::move(body.error()));
  context.warnings = std::move(body->warnings);
  const Outcome<store::ObjectRef> old = FindTarget(context);
  if (!old) return std::unexpected(old.error());
  return ReplaceScale(context, *old, body->object);
}

WriteResult PatchScale(WriteContext& context) {
  Outcome<ParsedPatch> patch = ParsePatch(context.request, context.memory);
  if (!patch) return std::unexpected(std::move(patch.error()));
  const Outcome<store::ObjectRef> old = FindTarget(context);
  if (!old) return std::unexpected(old.error());
  const bool strategic = patch->type == PatchType::kStrategic;
  const std::string shown = strategic ? api::PrintGo(patch->value) : std::string();
  const api::Kind& kind = *context.request.kind;
  const Json document = LoadAs(kind, **old);
  Json before = ScaleOf(kind, document);
  if (LacksReplicas(kind, document)) api::SetPath(before, "spec.replicas", kNoReplicas);
  Outcome<Json> patched = ApplyParsed(*patch, KindId::kScale, before);
  if (!patched) return std::unexpected(std::move(patched.error()));
  Json scale = *patched;
  const Result<std::vector<std::string>> fine =
      api::Conform(api::KindOf(KindId::kScale), scale,
                   strategic ? api::Decoder::kConverter : api::Decoder::kJson);
  if (!fine) {
    return BadResult(strategic ? shown : codec::PrintJson(*patched), fine.error().message);
  }
  return ReplaceScale(context, *old, scale);
}

}  // namespace berth::apiserver
