#include "apiserver/objects.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <iterator>
#include <utility>

#include "api/custom_definition.h"
#include "api/defaults.h"
#include "api/field_error.h"
#include "api/fields.h"
#include "api/object.h"
#include "api/text.h"
#include "api/versions.h"
#include "apiserver/managed.h"
#include "apiserver/render.h"
#include "base/check.h"
#include "base/limits.h"
#include "codec/json.h"
#include "codec/protobuf.h"
#include "codec/yaml.h"

namespace berth::apiserver {

namespace {

// What most documents fit in.
constexpr size_t kUsualBytes = 4096;
constexpr std::string_view kSpecKey = ",\"spec\":";
constexpr std::string_view kManagedKey = ",\"managedFields\":";

// A user's kind of which no more is known.
constexpr api::Kind kDefined{
    .id = api::KindId::kCustomResource, .custom = true, .storage = api::KindId::kCustomResource};

// Moves the named members to the front, in that order; the others follow in theirs.
template <size_t N>
void PutFirst(api::JsonObject& object, const std::array<std::string_view, N>& names) {
  std::array<api::JsonObject::value_type*, N> first{};
  std::vector<api::JsonObject::value_type*> others;
  for (auto& item : object) {
    const auto at = std::ranges::find_if(
        names, [&](std::string_view name) { return api::SameText(name, item.key()); });
    if (at == names.end()) {
      others.push_back(&item);
    } else {
      first.at(static_cast<size_t>(at - names.begin())) = &item;
    }
  }
  api::JsonObject ordered(object.storage());
  ordered.reserve(object.size());
  for (auto* item : first) {
    if (item != nullptr) ordered.emplace(item->key(), std::move(item->value()));
  }
  for (auto* item : others) ordered.emplace(item->key(), std::move(item->value()));
  object = std::move(ordered);
}

template <size_t N>
bool InOrder(const api::JsonObject& object, const std::array<std::string_view, N>& names) {
  size_t at = 0;
  for (const auto& item : object) {
    while (at < N && !api::SameText(names.at(at), item.key())) ++at;
    if (at == N) return false;
    ++at;
  }
  return true;
}

// What a document's text begins with, up to the value of metadata.
void AppendHead(const api::Kind& type, std::string& out) {
  out += R"({"kind":")";
  out += type.name;
  out += R"(","apiVersion":")";
  if (!type.group.empty()) (out += type.group) += '/';
  out += type.version;
  out += R"(","metadata":)";
}

void AppendKey(std::string_view name, std::string& out) {
  out += ',';
  codec::AppendJsonString(name, out);
  out += ':';
}

// Where a document's text is cut to leave its managedFields out, or to leave its spec out when it
// has none.
size_t BeforeManaged(const store::StoredObject& object) {
  if (object.managed.begin != object.managed.end) return object.managed.begin - kManagedKey.size();
  return object.spec.begin - kSpecKey.size();
}

// Where the text has metadata.managedFields.
store::TextRange LocateManaged(std::string_view json) {
  const std::string_view metadata = MetadataText(json);
  const auto offset = static_cast<size_t>(metadata.data() - json.data());
  const std::string_view key = kManagedKey.substr(1);
  int depth = 0;
  bool quoted = false;
  for (size_t i = 0; i < metadata.size(); ++i) {
    const char c = metadata[i];
    if (quoted) {
      if (c == '\\') ++i;
      if (c == '"') quoted = false;
    } else if (c == '"') {
      if (depth == 1 && metadata.substr(i).starts_with(key)) {
        // The last member.
        return {.begin = static_cast<uint32_t>(offset + i + key.size()),
                .end = static_cast<uint32_t>(offset + metadata.size() - 1)};
      }
      quoted = true;
    } else if (c == '{' || c == '[') {
      ++depth;
    } else if (c == '}' || c == ']') {
      --depth;
    }
  }
  return {};
}

void AppendMetadata(const api::JsonObject& metadata, std::string_view managed, Printed& printed) {
  std::string& out = printed.text;
  const auto mark = [&](size_t begin) {
    printed.managed = {.begin = static_cast<uint32_t>(begin),
                       .end = static_cast<uint32_t>(out.size())};
  };
  out += '{';
  for (const auto& [key, value] : metadata) {
    if (out.back() != '{') out += ',';
    codec::AppendJsonString(key, out);
    out += ':';
    const size_t begin = out.size();
    codec::AppendJson(value, out);
    if (api::SameText("managedFields", key)) mark(begin);
  }
  if (!managed.empty()) {
    CHECK_EQ(printed.managed.end, uint32_t{0});
    out += kManagedKey;
    const size_t begin = out.size();
    out += managed;
    mark(begin);
  }
  out += '}';
}

// The first bytes of a body, as upstream shows them.
std::string Summarize(std::string_view data) {
  constexpr size_t kShown = 30;
  if (data.empty()) return "<empty>";
  const std::string_view shown = data.substr(0, kShown);
  std::string text;
  if (data.front() == '{') {
    text = shown.substr(0, codec::ValidUtf8Prefix(shown));
  } else {
    for (const char c : shown) text += fmt::format("{:02x}", static_cast<unsigned char>(c));
  }
  return data.size() > kShown ? text + " ..." : text;
}

std::unexpected<Problem> Unrecognized(std::string_view kind, std::string_view why,
                                      std::string_view body) {
  return BadRequest(fmt::format("the object provided is unrecognized (must be of type {}): {} ({})",
                                kind, why, Summarize(body)));
}

std::string_view Trimmed(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

// Takes what is before a semicolon that stands in no quotes.
std::string_view TakeParameter(std::string_view& rest) {
  bool quoted = false;
  size_t end = 0;
  for (; end < rest.size() && (quoted || rest[end] != ';'); ++end) {
    if (rest[end] == '"') quoted = !quoted;
  }
  const std::string_view parameter = Trimmed(rest.substr(0, end));
  rest.remove_prefix(std::min(end + 1, rest.size()));
  return parameter;
}

// The media type that a header names. A header whose parameters are none, or say two things, names
// no type that is known.
std::string_view MediaTypeOf(std::string_view content_type) {
  std::string_view rest = content_type;
  const std::string_view type = TakeParameter(rest);
  std::vector<std::pair<std::string_view, std::string_view>> parameters;
  while (!rest.empty()) {
    const std::string_view parameter = TakeParameter(rest);
    if (parameter.empty() && rest.empty()) break;
    const size_t equals = parameter.find('=');
    if (equals == 0 || equals >= parameter.size() - 1) return content_type;
    parameters.emplace_back(parameter.substr(0, equals), parameter.substr(equals + 1));
    const auto& [name, value] = parameters.back();
    const auto other =
        std::ranges::find(parameters, name, [](const auto& one) { return one.first; });
    if (other->second != value) return content_type;
  }
  return type;
}

// RFC 2045, section 5.1: media types are the same in capitals.
bool IsMediaType(std::string_view type, std::string_view wanted) {
  return std::ranges::equal(type, wanted, [](unsigned char a, char b) {
    return static_cast<char>(std::tolower(a)) == b;
  });
}

// `Pod in version "v1" cannot be handled as a ConfigMap: <why>`.
std::unexpected<Problem> CannotBeHandled(std::string_view sent_kind, const api::Kind& kind,
                                         std::string_view why) {
  return BadRequest(fmt::format("{} in version \"{}\" cannot be handled as a {}: {}", sent_kind,
                                kind.version, kind.name, why));
}

// An object of a custom kind has to say what it is.
Outcome<void> CheckCustomType(const api::Json& object, const api::Kind& kind,
                              std::string_view body) {
  const std::string_view version = api::TextAt(object, "apiVersion");
  const std::string_view name = api::TextAt(object, "kind");
  const std::string expected = kind.api_version();
  if (name.empty()) {
    return Unrecognized(kind.name, fmt::format("Object 'Kind' is missing in '{}'", body), body);
  }
  if (version != expected) {
    return BadRequest(
        fmt::format("the API version in the data ({}) does not match the expected API version ({})",
                    version, expected));
  }
  if (name == kind.name) return {};
  const std::string_view object_name = api::TextAt(object, "metadata.name");
  const api::FieldErrors errors = {
      api::InvalidField("kind", name, fmt::format("must be {}", kind.name))};
  std::unexpected<Problem> problem = Invalid({.kind = kind, .name = object_name}, errors);
  // Upstream names the kind that was said.
  problem.error().kind = name;
  problem.error().message =
      api::InvalidMessage(fmt::format("{}.{}", name, kind.group), object_name, errors);
  return problem;
}

std::unexpected<Problem> NoSuchKind(const api::Kind& kind, std::string_view version,
                                    std::string_view name) {
  return BadRequest(fmt::format("{} in version \"{}\" cannot be handled as a {}: {}", name,
                                version.substr(version.find('/') + 1), kind.name,
                                NotRegistered(version, name)));
}

// Checks what the body says that it is, where it says anything.
Outcome<void> CheckType(const api::Json& object, const api::Kind& kind, std::string_view body) {
  for (const std::string_view key : {"apiVersion", "kind"}) {
    const api::Json* value = api::FindMember(object, key);
    if (value == nullptr || value->is_string()) continue;
    return Unrecognized(kind.name,
                        fmt::format("couldn't get version/kind; json parse error: json: cannot "
                                    "unmarshal {} into Go struct field .{} of type string",
                                    JsonTypeName(*value), key),
                        body);
  }
  if (kind.custom) return CheckCustomType(object, kind, body);
  const std::string_view version = api::TextAt(object, "apiVersion");
  const std::string_view name = api::TextAt(object, "kind");
  const std::string expected = kind.api_version();
  const bool old_eviction = kind.id == api::KindId::kEviction && version == "policy/v1beta1";
  const std::string_view said_version = version.empty() ? std::string_view(expected) : version;
  const std::string_view said_name = name.empty() ? kind.name : name;
  if (!old_eviction && api::FindKind(said_version, said_name) == nullptr) {
    return NoSuchKind(kind, said_version, said_name);
  }
  if (said_version != expected && !old_eviction) {
    return BadRequest(
        fmt::format("the API version in the data ({}) does not match the expected API version ({})",
                    version, expected));
  }
  if (said_name != kind.name) {
    return CannotBeHandled(
        name, kind,
        fmt::format("converting ({}.{}) to ({}.{}): unknown conversion", kind.version, name,
                    kind.group.empty() ? "core" : kind.group, kind.name));
  }
  return {};
}

// The member that a path begins with, and what of the path its name takes. A name may have dots of
// its own: the longest that fits is it, of so many that nobody can make this take long.
struct Step {
  api::JsonObject::const_iterator member;
  size_t size = 0;
};
Step StepOf(const api::JsonObject& members, std::string_view path) {
  constexpr int kTriesMax = 8;
  Step step{.member = members.end()};
  size_t end = 0;
  for (int tries = 0; tries < kTriesMax && end < path.size(); ++tries) {
    end = std::min(path.find_first_of(".[", end + 1), path.size());
    const auto found = members.find(path.substr(0, end));
    if (found != members.end()) step = {.member = found, .size = end};
  }
  return step;
}

// Where in a document a field stands: the place of each step among its siblings. Of one that is
// there twice it is the first place.
std::vector<size_t> PlaceOf(const api::Json& document, std::string_view path) {
  std::vector<size_t> place;
  const api::Json* at = &document;
  while (!path.empty()) {
    if (path.starts_with('.')) path.remove_prefix(1);
    if (const api::JsonArray* items = at->if_array(); items != nullptr && path.starts_with('[')) {
      size_t index = 0;
      const char* last = path.data() + path.size();
      const char* end = std::from_chars(path.data() + 1, last, index).ptr;
      place.push_back(index);
      if (index >= items->size() || end == last) break;
      at = &(*items)[index];
      path.remove_prefix(static_cast<size_t>(end - path.data()) + 1);
      continue;
    }
    const api::JsonObject* members = at->if_object();
    if (members == nullptr) break;
    const Step step = StepOf(*members, path);
    if (step.size == 0) break;
    place.push_back(static_cast<size_t>(step.member - members->begin()));
    at = &step.member->value();
    path.remove_prefix(step.size);
  }
  return place;
}

// Puts problems in the order in which the document has what they are about.
void SortProblems(const api::Json& document, std::vector<std::string>& problems) {
  struct Placed {
    std::vector<size_t> place;
    std::string problem;
  };
  std::vector<Placed> placed;
  for (std::string& problem : problems) {
    // `unknown field "spec.x"`
    const size_t quote = problem.find('"');
    const std::string_view path = std::string_view(problem).substr(quote + 1);
    placed.push_back({.place = PlaceOf(document, path.substr(0, path.size() - 1)),
                      .problem = std::move(problem)});
  }
  std::ranges::stable_sort(placed, {}, &Placed::place);
  problems.clear();
  for (Placed& item : placed) problems.push_back(std::move(item.problem));
}

// Whether a path is one of those, or leads into one: `unknown field "spec.x"`.
bool IsWithinUnknown(std::string_view path, const std::vector<std::string>& unknown) {
  return std::ranges::any_of(unknown, [&](std::string_view problem) {
    const size_t quote = problem.find('"');
    const std::string_view known = problem.substr(quote + 1, problem.size() - quote - 2);
    return path.starts_with(known) &&
           (path.size() == known.size() || path[known.size()] == '.' || path[known.size()] == '[');
  });
}

// What is wrong with a body in YAML, whose keys are sorted before it is decoded.
Outcome<Body> WithYamlProblems(const api::Kind& kind, FieldValidation validation, Body body,
                               const RawBody& raw, std::vector<std::string>& unknown) {
  if (!kind.custom) SortByPath(unknown);
  if (validation == FieldValidation::kStrict && !(raw.duplicates.empty() && unknown.empty())) {
    if (!raw.duplicates.empty()) {
      std::string twice = "yaml: unmarshal errors:";
      for (const std::string& line : raw.duplicates) twice += fmt::format("\n  {}", line);
      unknown.insert(unknown.begin(), std::move(twice));
    }
    return CannotBeHandled(kind.name, kind, api::StrictDecodingError(unknown));
  }
  body.warnings = raw.duplicates;
  std::ranges::move(unknown, std::back_inserter(body.warnings));
  return body;
}

}  // namespace

void SortByPath(std::vector<std::string>& problems) {
  // Of indexes by their numbers; what ends a name comes before what goes on with it.
  const auto before = [](std::string_view a, std::string_view b) {
    size_t at = 0;
    while (at < a.size() && at < b.size() && a[at] == b[at]) ++at;
    const auto digits = [&](std::string_view text) {
      size_t count = 0;
      while (at + count < text.size() && text[at + count] >= '0' && text[at + count] <= '9')
        ++count;
      return count;
    };
    const size_t bracket = a.substr(0, at).find_last_not_of("0123456789");
    const bool index = bracket != std::string_view::npos && a[bracket] == '[';
    if (index && digits(a) != digits(b)) return digits(a) < digits(b);
    const auto rank = [&](std::string_view text) {
      if (at >= text.size() || text[at] == '"') return 0;
      if (text[at] == '.' || text[at] == '[') return 1;
      return 2 + static_cast<unsigned char>(text[at]);
    };
    return rank(a) < rank(b);
  };
  std::ranges::stable_sort(problems, before);
}

std::vector<store::ObjectRef> ObjectsIn(const store::Store& store, api::KindId kind,
                                        std::string_view namespace_name) {
  std::vector<store::ObjectRef> objects;
  store.WalkHead(
      {.table = static_cast<store::Table>(kind), .namespace_name = std::string(namespace_name)},
      [&](const store::ObjectRef& object) {
        objects.push_back(object);
        return true;
      });
  return objects;
}

Outcome<void> CheckNamespace(const ResourceRequest& request, const api::Json& object) {
  const std::string_view sent = api::TextAt(object, "metadata.namespace");
  if (!request.kind->namespaced || sent.empty() || sent == request.namespace_name) return {};
  return BadRequest(
      "the namespace of the provided object does not match the namespace sent on the request");
}

std::string_view JsonTypeName(const api::Json& value) {
  switch (value.kind()) {
    case boost::json::kind::array:
      return "array";
    case boost::json::kind::string:
      return "string";
    case boost::json::kind::bool_:
      return "bool";
    case boost::json::kind::object:
      return "object";
    case boost::json::kind::null:
      return "null";
    default:
      return "number";
  }
}

std::string NotRegistered(std::string_view version, std::string_view name) {
  return fmt::format(
      "no kind {} is registered for version {} in scheme \"pkg/runtime/scheme.go:111\"",
      api::QuoteGo(name), api::QuoteGo(version));
}

store::Store::Options StoreOptions() {
  store::Store::Options options;
  for (const api::Kind& kind : api::Kinds()) {
    options.tables.push_back(kind.stored && kind.storage == kind.id
                                 ? kind.group_resource()
                                 : fmt::format("-{}", kind.name));
  }
  return options;
}

api::Json ParseStored(std::string_view json, api::JsonMemory memory) {
  Result<api::Json> parsed = codec::ParseJson(json, {}, std::move(memory));
  CHECK(parsed.has_value());
  return std::move(*parsed);
}

api::Json Load(const store::StoredObject& object, api::JsonMemory memory) {
  return ParseStored(object.json.view(), std::move(memory));
}

store::Table TableOf(const api::Kind& kind) {
  return kind.defined != nullptr ? kind.defined->definition->number()
                                 : static_cast<store::Table>(kind.storage);
}

const api::Kind& StorageOf(const api::Kind& kind) {
  return kind.defined != nullptr ? kind.defined->definition->storage().kind
                                 : api::KindOf(kind.storage);
}

void ConvertTo(const api::Kind& kind, api::Json& document) {
  if (kind.defined == nullptr) return api::Convert(kind.storage, kind.id, document);
  // The versions differ in name and schema; what this one doesn't know goes unsaid.
  api::JsonObject& members = document.get_object();
  api::Member(members, "apiVersion") = kind.api_version();
  const std::vector<std::string> unknown = api::PruneCustom(kind.defined->schema, members);
  api::ApplyCustomDefaults(kind.defined->schema, members);
}

api::Json ToStorage(const api::Kind& kind, api::Json object, const api::Json* stored) {
  if (kind.defined == nullptr) return api::ToStored(kind.id, std::move(object), stored);
  const api::Kind& storage = StorageOf(kind);
  // What the version that is stored says of it holds for all that read it.
  if (storage.api_version() == kind.api_version()) return object;
  ConvertTo(storage, object);
  return object;
}

api::Json LoadAs(const api::Kind& kind, const store::StoredObject& object, api::JsonMemory memory) {
  api::Json document = Load(object, std::move(memory));
  ConvertTo(kind, document);
  return document;
}

bool HasSpecAside(const store::StoredObject& object) {
  return object.table == static_cast<store::Table>(api::KindId::kPod) &&
         object.spec.begin != object.spec.end;
}

std::string_view SpecText(const store::StoredObject& object) {
  CHECK(HasSpecAside(object));
  return object.json.view().substr(object.spec.begin, object.spec.end - object.spec.begin);
}

api::Json LoadWithoutSpec(const store::StoredObject& object, api::JsonMemory memory) {
  CHECK(HasSpecAside(object));
  const std::string_view json = object.json.view();
  std::string text(json.substr(0, BeforeManaged(object)));
  // Metadata comes before the spec, with its comma, which goes too.
  const size_t rest = std::max<size_t>(text.size(), object.managed.end);
  text += json.substr(rest, object.spec.begin - kSpecKey.size() - rest);
  text += json.substr(object.spec.end);
  return ParseStored(text, std::move(memory));
}

Printed PrintAgain(api::Json& object, uint64_t revision) {
  const std::string version(api::TextAt(object, "apiVersion"));
  const size_t slash = version.find('/');
  CHECK_NE(slash, std::string::npos);
  const std::string name(api::TextAt(object, "kind"));
  const api::Kind kind{.id = api::KindId::kCustomResource,
                       .group = std::string_view(version).substr(0, slash),
                       .version = std::string_view(version).substr(slash + 1),
                       .name = name,
                       .custom = true,
                       .storage = api::KindId::kCustomResource};
  return PrintCanonical(kind, object, revision);
}

api::Json LoadUnmanaged(const api::Kind& kind, const store::StoredObject& object,
                        api::JsonMemory memory) {
  if (object.managed.begin == object.managed.end) return LoadAs(kind, object, std::move(memory));
  const std::string_view json = object.json.view();
  std::string text(json.substr(0, BeforeManaged(object)));
  text += json.substr(object.managed.end);
  api::Json document = ParseStored(text, std::move(memory));
  ConvertTo(kind, document);
  return document;
}

std::string_view ManagedText(const store::StoredObject& object) {
  return object.json.view().substr(object.managed.begin, object.managed.end - object.managed.begin);
}

Printed PrintCanonical(const api::Kind& kind, api::Json& object, uint64_t revision, Aside aside,
                       Twin* twin) {
  CHECK(object.is_object());
  api::JsonObject& top = object.get_object();
  Printed printed;
  std::string& out = printed.text;
  out.reserve(kUsualBytes);
  AppendHead(kind, out);
  const size_t metadata_at = out.size();
  if (aside.metadata.empty()) {
    api::JsonObject& metadata = api::MemberObject(top, "metadata");
    if (revision != 0) api::Member(metadata, "resourceVersion") = std::to_string(revision);
    if (!InOrder(metadata, api::kMetadataOrder)) PutFirst(metadata, api::kMetadataOrder);
    AppendMetadata(metadata, aside.managed, printed);
  } else {
    CHECK_EQ(revision, uint64_t{0});
    out += aside.metadata;
  }
  if (twin != nullptr) {
    AppendHead(api::KindOf(twin->kind), twin->text);
    twin->text += std::string_view(out).substr(metadata_at);
  }
  if (const api::Json* member = top.if_contains("spec"); member != nullptr) {
    out += kSpecKey;
    printed.spec.begin = static_cast<uint32_t>(out.size());
    if (aside.spec.empty()) {
      codec::AppendJson(*member, out);
    } else {
      out += aside.spec;
    }
    printed.spec.end = static_cast<uint32_t>(out.size());
  }
  for (const auto& [key, value] : top) {
    const std::string_view name = key;
    if (name == "kind" || name == "apiVersion" || name == "metadata" || name == "spec") continue;
    AppendKey(name, out);
    const size_t value_at = out.size();
    codec::AppendJson(value, out);
    // Core events always say who reports.
    if (twin == nullptr || (value.is_string() && value.get_string().empty())) continue;
    AppendKey(api::EventMember(twin->kind, name), twin->text);
    twin->text += std::string_view(out).substr(value_at);
  }
  out += '}';
  if (twin != nullptr) twin->text += '}';
  // It is kept for long.
  out.shrink_to_fit();
  return printed;
}

store::StoredObject MakeStored(const api::Kind& kind, const api::Json& object, Bytes json,
                               uint64_t revision) {
  return {.table = TableOf(kind),
          .namespace_name = std::string(api::TextAt(object, "metadata.namespace")),
          .name = std::string(api::TextAt(object, "metadata.name")),
          .uid = std::string(api::TextAt(object, "metadata.uid")),
          .revision = revision,
          .labels = api::StringMapAt(object, "metadata.labels"),
          .fields = kind.id == api::KindId::kCustomResource
                        ? std::vector<std::string>()
                        : api::SelectableTexts(kind.storage, object),
          .json = std::move(json)};
}

store::StoredObject PrintStored(const api::Kind& kind, api::Json& object, uint64_t revision) {
  Printed printed = PrintCanonical(kind, object, revision);
  store::StoredObject stored = MakeStored(kind, object, Bytes(std::move(printed.text)), revision);
  stored.spec = printed.spec;
  stored.managed = printed.managed;
  return stored;
}

Result<store::StoredObject> DecodeStored(store::Table table, const env::JournalRecord& record) {
  Result<api::Json> object = codec::ParseJson(record.value.view());
  if (!object) return std::unexpected(object.error());
  // What users define is only known when all has been read.
  const bool defined = table >= api::kKindsCount;
  const api::Kind& type = defined ? kDefined : api::KindOf(static_cast<api::KindId>(table));
  if (defined ? !api::TextAt(*object, "apiVersion").contains('/')
              : api::TextAt(*object, "kind") != type.name ||
                    api::TextAt(*object, "apiVersion") != type.api_version()) {
    return Fail(ErrorCode::kDamaged,
                defined ? std::string("no apiVersion of a group")
                        : fmt::format("not a {} of {}", type.name, type.api_version()));
  }
  if (api::TextAt(*object, "metadata.resourceVersion") != std::to_string(record.revision)) {
    return Fail(ErrorCode::kDamaged, "another resourceVersion than its revision");
  }
  if (api::TextAt(*object, "metadata.uid").empty()) return Fail(ErrorCode::kDamaged, "no uid");
  store::StoredObject stored = MakeStored(type, *object, record.value, record.revision);
  stored.table = table;
  stored.managed = LocateManaged(record.value.view());
  return stored;
}

std::optional<api::Json> TakeManaged(api::Json& object) {
  api::Json* metadata = api::FindMember(object, "metadata");
  if (metadata == nullptr || !metadata->is_object()) return std::nullopt;
  api::Json* managed = metadata->get_object().if_contains("managedFields");
  if (managed == nullptr || !managed->is_array()) return std::nullopt;
  std::optional<api::Json> taken = std::move(*managed);
  api::RemoveMember(metadata->get_object(), "managedFields");
  return taken;
}

Outcome<RawBody> ParseBody(const ResourceRequest& request, std::string_view kind_name,
                           api::JsonMemory memory) {
  const std::string_view body = request.http->body.view();
  if (body.size() > static_cast<size_t>(limits::kRequestBodyBytesMax)) {
    return TooLarge(fmt::format("limit is {}", limits::kRequestBodyBytesMax));
  }
  const std::string_view type = MediaTypeOf(request.header("content-type"));
  if (IsMediaType(type, "application/yaml")) {
    Result<codec::ParsedYaml> parsed = codec::ParseYamlReporting(body);
    if (!parsed) {
      return Unrecognized(kind_name, parsed.error().message, body);
    }
    if (parsed->documents.empty()) {
      return Unrecognized(
          kind_name, "couldn't get version/kind; json parse error: unexpected end of JSON input",
          body);
    }
    return RawBody{.value = std::move(parsed->documents.front()),
                   .duplicates = std::move(parsed->duplicates),
                   .yaml = true};
  }
  // Users' kinds have no messages.
  if (IsMediaType(type, "application/vnd.kubernetes.protobuf") && !request.kind->custom) {
    Result<api::Json> parsed = codec::ParseProtobuf(body, std::move(memory));
    if (!parsed) return Unrecognized(kind_name, parsed.error().message, body);
    return RawBody{.value = std::move(*parsed), .duplicates = {}};
  }
  if (!type.empty() && !IsMediaType(type, "application/json")) {
    return UnsupportedMediaType(
        "application/json, application/yaml, application/vnd.kubernetes.protobuf");
  }
  Result<codec::ParsedJson> parsed = codec::ParseJsonReporting(body, {}, std::move(memory));
  if (!parsed) {
    return Unrecognized(
        kind_name,
        fmt::format("couldn't get version/kind; json parse error: {}", parsed.error().message),
        body);
  }
  return RawBody{.value = std::move(parsed->value), .duplicates = std::move(parsed->duplicates)};
}

Outcome<Body> DecodeBody(const ResourceRequest& request, const api::Kind& kind,
                         FieldValidation validation, api::JsonMemory memory) {
  Outcome<RawBody> raw = ParseBody(request, kind.name, std::move(memory));
  if (!raw) return std::unexpected(std::move(raw.error()));
  const std::string_view text = request.http->body.view();
  if (raw->value.is_null()) raw->value.emplace_object();
  if (!raw->value.is_object()) {
    return Unrecognized(
        kind.name,
        fmt::format(
            "couldn't get version/kind; json parse error: json: cannot unmarshal {} into Go "
            "value of type struct {{ APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; "
            "Kind string \"json:\\\"kind,omitempty\\\"\" }}",
            JsonTypeName(raw->value)),
        text);
  }
  if (Outcome<void> checked = CheckType(raw->value, kind, text); !checked) {
    return std::unexpected(std::move(checked.error()));
  }
  // What the path says needn't be said again.
  api::Member(raw->value.get_object(), "kind") = kind.name;
  api::Member(raw->value.get_object(), "apiVersion") = kind.api_version();
  Body body{.object = std::move(raw->value), .warnings = {}};
  if (kind.id == api::KindId::kPod) {
    const api::Json* overhead = api::FindPath(std::as_const(body.object), "spec.overhead");
    body.empty_overhead =
        overhead != nullptr && overhead->is_object() && overhead->get_object().empty();
  }
  // Where both happen, their order is the document's, which is lost with the unknown members.
  const bool both =
      !raw->duplicates.empty() && !raw->yaml && validation != FieldValidation::kIgnore;
  const api::Json whole = both ? body.object : api::Json();
  Result<ConformedApart> conformed = ConformApart(kind, body.object);
  if (!conformed) return CannotBeHandled(kind.name, kind, conformed.error().message);
  body.managed = std::move(conformed->managed);
  std::vector<std::string>& unknown = conformed->problems;
  if (validation == FieldValidation::kIgnore) return body;
  if (raw->yaml) return WithYamlProblems(kind, validation, std::move(body), *raw, unknown);
  for (const std::string& path : raw->duplicates) {
    // What a type doesn't know is passed over there, however often.
    if (kind.custom || !IsWithinUnknown(path, unknown))
      body.warnings.push_back(fmt::format("duplicate field \"{}\"", path));
  }
  for (std::string& problem : unknown) body.warnings.push_back(std::move(problem));
  // Of custom kinds members are met twice before any is looked up.
  if (both && !kind.custom) SortProblems(whole, body.warnings);
  if (validation == FieldValidation::kStrict && !body.warnings.empty()) {
    return CannotBeHandled(kind.name, kind, api::StrictDecodingError(body.warnings));
  }
  return body;
}

Outcome<WriteOptions> ParseWriteOptions(const Query& query, std::string_view options) {
  WriteOptions result;
  api::FieldErrors errors;
  result.manager = query.Text("fieldManager");
  CheckManager("fieldManager", result.manager, errors);
  if (const std::vector<std::string_view> values = query.All("dryRun"); !values.empty()) {
    constexpr std::array<std::string_view, 1> kSupported = {"All"};
    if (std::ranges::any_of(values, [](std::string_view value) { return value != "All"; })) {
      errors.push_back(api::NotSupportedField("dryRun", "", kSupported));
      // A list to upstream, and shown as one.
      api::JsonArray shown;
      for (const std::string_view value : values) shown.emplace_back(value);
      errors.back().value = codec::PrintJson(shown);
    }
    result.dry_run = true;
  }
  const std::string_view validation = query.Text("fieldValidation");
  if (validation == "Strict") {
    result.validation = FieldValidation::kStrict;
  } else if (validation == "Ignore") {
    result.validation = FieldValidation::kIgnore;
  } else if (!validation.empty() && validation != "Warn") {
    constexpr std::array<std::string_view, 4> kSupported = {"", "Ignore", "Strict", "Warn"};
    errors.push_back(api::NotSupportedField("fieldValidation", validation, kSupported));
  }
  if (!errors.empty()) return InvalidOptions(options, errors);
  return result;
}

}  // namespace berth::apiserver
