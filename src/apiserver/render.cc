#include "apiserver/render.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <span>
#include <utility>
#include <vector>

#include "api/custom_definition.h"
#include "api/field_error.h"
#include "api/object.h"
#include "api/table.h"
#include "api/versions.h"
#include "apiserver/objects.h"
#include "base/check.h"
#include "codec/json.h"
#include "codec/yaml.h"

namespace berth::apiserver {

namespace {

// ---- Negotiation -----------------------------------------------------------------------------

struct MediaType {
  std::string type;  // Lower case, without parameters.
  std::string as;
  std::string version;
  std::string group;
  int64_t quality_milli = 1000;
};

std::string_view Trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

// Takes the next piece up to a separator off `text`.
std::string_view NextPiece(std::string_view& text, char separator) {
  const size_t end = text.find(separator);
  const std::string_view piece = text.substr(0, end);
  text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
  return Trim(piece);
}

// "0.9" as 900; anything odd counts as 1000.
int64_t ParseQuality(std::string_view text) {
  if (text.starts_with("0")) {
    int64_t milli = 0;
    int64_t unit = 100;
    if (text.size() > 1 && text[1] != '.') return 1000;
    for (const char c : text.substr(std::min<size_t>(2, text.size()))) {
      if (c < '0' || c > '9') return 1000;
      milli += (c - '0') * unit;
      unit /= 10;
    }
    return milli;
  }
  return 1000;
}

MediaType ParseMediaType(std::string_view text) {
  MediaType media;
  media.type = NextPiece(text, ';');
  std::ranges::transform(media.type, media.type.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  while (!text.empty()) {
    const std::string_view parameter = NextPiece(text, ';');
    const size_t equals = parameter.find('=');
    if (equals == std::string_view::npos) continue;
    const std::string_view key = parameter.substr(0, equals);
    const std::string_view value = parameter.substr(equals + 1);
    if (key == "as") media.as = value;
    if (key == "v") media.version = value;
    if (key == "g") media.group = value;
    if (key == "q") media.quality_milli = ParseQuality(value);
  }
  return media;
}

std::vector<MediaType> ParseAccept(std::string_view header) {
  std::vector<MediaType> result;
  while (!header.empty()) {
    const std::string_view piece = NextPiece(header, ',');
    if (!piece.empty()) result.push_back(ParseMediaType(piece));
  }
  std::ranges::stable_sort(result, [](const MediaType& a, const MediaType& b) {
    return a.quality_milli > b.quality_milli;
  });
  return result;
}

bool IsJson(const MediaType& media) {
  return media.type == "application/json" || media.type == "*/*";
}

constexpr std::string_view kWatchTypes = "application/json;stream=watch";
constexpr std::string_view kObjectTypes = "application/json, application/yaml";

std::unexpected<Problem> NothingAcceptable(AnswerKind answer) {
  auto problem = NotAcceptable(fmt::format(
      "406: Not Acceptable\n\nAvailable representations: {}{}{}", kObjectTypes,
      answer == AnswerKind::kOne ? "" : ", ", answer == AnswerKind::kOne ? "" : kWatchTypes));
  problem.error().has_details = true;
  return problem;
}

// Whether the media type asks for something this server can't give as an answer of that kind; else
// the shape is filled in.
bool Fits(const MediaType& media, AnswerKind answer, Shape& shape) {
  const bool yaml = media.type == "application/yaml";
  if (!IsJson(media) && (!yaml || answer == AnswerKind::kWatch)) return false;
  shape.form = Form::kObject;
  shape.meta_v1beta1 = false;
  if (!media.as.empty()) {
    if (media.group != "meta.k8s.io") return false;
    if (media.version != "v1" && media.version != "v1beta1") return false;
    shape.meta_v1beta1 = media.version == "v1beta1";
    if (media.as == "Table") {
      shape.form = Form::kTable;
    } else if (media.as == "PartialObjectMetadata") {
      // A list asked for as one object is refused by the caller.
      shape.form = Form::kMetadata;
    } else if (media.as == "PartialObjectMetadataList" && answer != AnswerKind::kOne) {
      shape.form = Form::kMetadata;
    } else {
      return false;
    }
  }
  shape.syntax = yaml ? Syntax::kYaml : Syntax::kJson;
  return true;
}

// ---- Rendering -------------------------------------------------------------------------------

std::string_view MetaVersion(const Shape& shape) {
  return shape.meta_v1beta1 ? "meta.k8s.io/v1beta1" : "meta.k8s.io/v1";
}

// An event and what is made of it fit; more comes from the heap.
constexpr size_t kArenaBytes = 16 * 1024;

std::string AsRequested(const api::Kind& kind, std::string_view json) {
  if (!IsConverted(kind)) return std::string(json);
  std::array<unsigned char, kArenaBytes> buffer;
  api::JsonArena arena(buffer.data(), buffer.size());
  if (kind.defined == nullptr) {
    api::Json object = ParseStored(json, api::JsonMemory(&arena));
    ConvertTo(kind, object);
    return PrintCanonical(kind, object, 0).text;
  }
  // What versions of a user's kind say of metadata is the same, and it is most of a small object.
  const std::string_view metadata = MetadataText(json);
  std::string rest = R"({"metadata":{})";
  rest += json.substr(static_cast<size_t>(metadata.data() - json.data()) + metadata.size());
  api::Json object = ParseStored(rest, api::JsonMemory(&arena));
  ConvertTo(kind, object);
  return PrintCanonical(kind, object, 0, {.metadata = metadata}).text;
}

// Of a DaemonSet upstream shows the metadata of its internal form, in which the count of its
// templates is no annotation.
void AppendInternalMetadata(std::string_view json, std::string& out) {
  api::Json metadata = ParseStored(MetadataText(json));
  if (api::Json* annotations = api::FindMember(metadata, "annotations")) {
    api::RemoveMember(annotations->get_object(), "deprecated.daemonset.template.generation");
    if (annotations->get_object().empty()) api::RemoveMember(metadata.get_object(), "annotations");
  }
  codec::AppendJson(metadata, out);
}

void AppendMetadataObject(const Shape& shape, std::string_view json, std::string& out) {
  out += R"({"kind":"PartialObjectMetadata","apiVersion":")";
  out += MetaVersion(shape);
  out += R"(","metadata":)";
  if (shape.kind->id == api::KindId::kDaemonSet) {
    AppendInternalMetadata(json, out);
  } else {
    out += MetadataText(json);
  }
  out += '}';
}

void AppendColumns(const api::Kind& kind, std::string& out) {
  out += "\"columnDefinitions\":[";
  const std::span<const api::Column> columns = api::ColumnsOf(kind);
  for (size_t i = 0; i < columns.size(); ++i) {
    const api::Column& column = columns[i];
    if (out.back() != '[') out += ',';
    out += "{\"name\":";
    codec::AppendJsonString(column.name, out);
    out += ",\"type\":";
    codec::AppendJsonString(column.type, out);
    out += ",\"format\":";
    codec::AppendJsonString(column.format, out);
    out += ",\"description\":";
    codec::AppendJsonString(
        kind.defined != nullptr ? std::string_view(kind.defined->descriptions[i]) : column.name,
        out);
    out += fmt::format(",\"priority\":{}}}", column.priority);
  }
  out += ']';
}

// A table in the making.
struct Rows {
  Instant now;
  api::CellAllowance& allowance;
};

void AppendRow(const Shape& shape, std::string_view json, const Rows& rows, std::string& out) {
  std::array<unsigned char, kArenaBytes> buffer;
  api::JsonArena arena(buffer.data(), buffer.size());
  api::Json object = ParseStored(json, api::JsonMemory(&arena));
  std::string converted;
  if (IsConverted(*shape.kind)) {
    ConvertTo(*shape.kind, object);
    // What versions of a user's kind say of metadata is the same.
    const bool same =
        shape.kind->defined != nullptr && shape.table_objects != TableObjects::kObject;
    if (!same) converted = PrintCanonical(*shape.kind, object, 0).text;
    if (!same) json = converted;
  }
  rows.allowance.AddRow(json.size());
  out += "{\"cells\":";
  codec::AppendJson(api::Json(api::CellsOf(*shape.kind, object, rows.now, rows.allowance)), out);
  switch (shape.table_objects) {
    case TableObjects::kNone:
      break;
    case TableObjects::kObject:
      out += ",\"object\":";
      out += json;
      break;
    case TableObjects::kMetadata:
      out += ",\"object\":";
      AppendMetadataObject(shape, json, out);
      break;
  }
  out += '}';
}

// The value of "resourceVersion" in a document's metadata; nothing in one that was never stored.
std::optional<std::string_view> RevisionText(std::string_view json) {
  constexpr std::string_view kKey = "\"resourceVersion\":\"";
  const std::string_view metadata = MetadataText(json);
  const size_t at = metadata.find(kKey);
  if (at == std::string_view::npos) return std::nullopt;
  const size_t start = at + kKey.size();
  return metadata.substr(start, metadata.find('"', start) - start);
}

// A table of one row, or of none.
void AppendTable(const Shape& shape, std::string_view metadata, std::string_view row,
                 std::string& out) {
  out += R"({"kind":"Table","apiVersion":")";
  out += MetaVersion(shape);
  out += "\",\"metadata\":{";
  out += metadata;
  out += "},";
  AppendColumns(*shape.kind, out);
  out += ",\"rows\":[";
  out += row;
  out += "]}";
}

// ---- Syntax ----------------------------------------------------------------------------------

// An answer's text, of finished JSON.
std::string InSyntax(Syntax syntax, std::string json) {
  switch (syntax) {
    case Syntax::kJson:
      json += '\n';
      return json;
    case Syntax::kPrettyJson:
      return codec::PrintJsonPretty(ParseStored(json)) + "\n";
    case Syntax::kYaml:
      return codec::PrintYaml(ParseStored(json));
  }
  return json;
}

env::HttpResponse TextAnswer(int status, Syntax syntax, std::string text) {
  const std::string_view type = syntax == Syntax::kYaml ? "application/yaml" : "application/json";
  return {.status = status,
          .headers = {{"content-type", std::string(type)}},
          .body = Bytes(std::move(text))};
}

// How the items of a list stand in its text.
struct ListText {
  std::string_view brackets;  // Of a list of none, with what goes with it.
  size_t blank_before;        // A blank before them that goes, too.
  std::string_view before, between, after;
  // What stands around the one item of {"items": [item]}.
  size_t item_before, item_after;
};

ListText TextOf(Syntax syntax) {
  constexpr std::string_view kPrettyBefore = "{\n  \"items\": [\n";
  constexpr std::string_view kPrettyAfter = "\n  ]\n}\n";
  switch (syntax) {
    case Syntax::kJson:
      break;
    case Syntax::kPrettyJson:
      return {.brackets = "[]",
              .blank_before = 0,
              .before = "[\n",
              .between = ",\n",
              .after = "\n  ]",
              .item_before = kPrettyBefore.size(),
              .item_after = kPrettyAfter.size()};
    case Syntax::kYaml:
      return {.brackets = "[]\n",
              .blank_before = 1,
              .before = "\n",
              .between = "",
              .after = "",
              .item_before = std::string_view("items:\n").size(),
              .item_after = 0};
  }
  return {.brackets = "[]",
          .blank_before = 0,
          .before = "[",
          .between = ",",
          .after = "]",
          .item_before = 0,
          .item_after = 0};
}

// What one part of a list comes to, in bytes of stored documents: one that is copied and one that
// is parsed and printed, some 5 ms each.
constexpr size_t kCopiedBytesMax = size_t{4} * 1024 * 1024;
constexpr size_t kPrintedBytesMax = size_t{256} * 1024;
constexpr size_t kItemBytes = 64;  // What one is beside its bytes.

}  // namespace

Outcome<Shape> Negotiate(const ResourceRequest& request, AnswerKind answer) {
  Shape shape{.kind = request.kind};
  const std::string_view accept = request.header("accept");
  // What nearly every client asks for is the shape as it is.
  bool found = accept.empty() || accept == "application/json";
  for (const MediaType& media : ParseAccept(found ? std::string_view() : accept)) {
    if (!Fits(media, answer, shape)) continue;
    if (answer == AnswerKind::kList && media.as == "PartialObjectMetadata") {
      return NotAcceptable(
          fmt::format("you requested PartialObjectMetadata, but the requested object is a list "
                      "(*core.{}List)",
                      request.kind->name));
    }
    found = true;
    break;
  }
  if (!found && answer == AnswerKind::kWatch &&
      accept.find("application/yaml") != std::string_view::npos) {
    return NotAcceptable(
        fmt::format("only the following media types are accepted: {}", kWatchTypes));
  }
  if (!found && request.kind->custom)
    return NotAcceptable(
        fmt::format("only the following media types are accepted: {}", kObjectTypes));
  if (!found) return NothingAcceptable(answer);
  if (shape.syntax == Syntax::kJson && answer != AnswerKind::kWatch &&
      WantsPretty(*request.http, request.query)) {
    shape.syntax = Syntax::kPrettyJson;
  }
  if (shape.form != Form::kTable) return shape;
  const std::string_view include = request.query.Text("includeObject");
  if (include == "None") {
    shape.table_objects = TableObjects::kNone;
  } else if (include == "Object") {
    shape.table_objects = TableObjects::kObject;
  } else if (!include.empty() && include != "Metadata") {
    return BadRequest(fmt::format(
        "Unable to convert to Table as requested: includeObject: Invalid value: {}: must be "
        "'Metadata', 'Object', 'None', or empty",
        api::QuoteGo(include)));
  }
  return shape;
}

bool WantsPretty(const env::HttpRequest& http, const Query& query) {
  if (query.Find("pretty")) return ParseFlagParameter(query, "pretty");
  const std::string_view agent = env::FindHeader(http.headers, "user-agent").value_or("");
  return agent.starts_with("curl") || agent.starts_with("Wget") || agent.starts_with("Mozilla/5.0");
}

std::string_view MetadataText(std::string_view json) {
  constexpr std::string_view kKey = "\"metadata\":";
  const size_t at = json.find(kKey);
  CHECK_NE(at, std::string_view::npos);
  const size_t start = at + kKey.size();
  int depth = 0;
  bool quoted = false;
  for (size_t i = start; i < json.size(); ++i) {
    const char c = json[i];
    if (quoted) {
      if (c == '\\') ++i;
      if (c == '"') quoted = false;
    } else if (c == '"') {
      quoted = true;
    } else if (c == '{') {
      ++depth;
    } else if (c == '}' && --depth == 0) {
      return json.substr(start, i + 1 - start);
    }
  }
  CHECK(false);
  return {};
}

std::string WithRevision(std::string_view json, uint64_t revision) {
  const std::optional<std::string_view> revised = RevisionText(json);
  CHECK(revised.has_value());
  const std::string_view old = *revised;
  const auto start = static_cast<size_t>(old.data() - json.data());
  std::string out;
  out.reserve(json.size() + 20);
  out += json.substr(0, start);
  out += std::to_string(revision);
  out += json.substr(start + old.size());
  return out;
}

std::string RenderObject(const Shape& shape, std::string_view json, Instant now) {
  std::string out;
  switch (shape.form) {
    case Form::kObject:
      return AsRequested(*shape.kind, json);
    case Form::kMetadata:
      AppendMetadataObject(shape, json, out);
      return out;
    case Form::kTable: {
      std::string row;
      api::CellAllowance cells;
      AppendRow(shape, json, {.now = now, .allowance = cells}, row);
      const std::optional<std::string_view> revision = RevisionText(json);
      AppendTable(shape, revision ? fmt::format("\"resourceVersion\":\"{}\"", *revision) : "", row,
                  out);
      return out;
    }
  }
  return out;
}

void ListRenderer::Add(const Bytes& json) {
  items_bytes_ += json.size();
  items_.push_back(json);
}

// The list without its items, as JSON.
std::string ListRenderer::Frame(std::string_view metadata) const {
  const api::Kind& kind = *shape_.kind;
  std::string out;
  if (shape_.form == Form::kTable) {
    AppendTable(shape_, metadata, "", out);
    // Upstream's table of kinds without columns of their own is null where it is empty.
    const bool null = items_.empty() && api::ColumnsOf(kind).back().name == "Created At";
    if (null) out.replace(out.rfind("[]"), 2, "null");
    return out;
  }
  const bool partial = shape_.form == Form::kMetadata;
  // A list of what isn't decoded always says whether it goes on.
  const bool silent = kind.custom && !partial && !metadata.contains("\"continue\":");
  // Upstream's lists of metadata are null while they are empty.
  return fmt::format(R"({{"kind":"{}","apiVersion":"{}","metadata":{{{}{}}},"items":{}}})",
                     partial ? std::string("PartialObjectMetadataList") : kind.list_name(),
                     partial ? std::string(MetaVersion(shape_)) : kind.api_version(),
                     silent ? R"("continue":"",)" : "", metadata,
                     partial && items_.empty() ? "null" : "[]");
}

void ListRenderer::Start(std::string_view metadata) {
  out_ = InSyntax(shape_.syntax, Frame(metadata));
  if (items_.empty()) return;
  // Nothing of what follows the items has brackets.
  const size_t items = out_.rfind("[]");
  CHECK_NE(items, std::string::npos);
  const ListText text = TextOf(shape_.syntax);
  tail_ = std::string(text.after) + out_.substr(items + text.brackets.size());
  out_.resize(items - text.blank_before);
  if (shape_.form == Form::kObject) {
    // Room that is never written to costs nothing.
    const size_t blanks = shape_.syntax == Syntax::kJson ? 0 : items_bytes_ / 4 + tail_.size();
    out_.reserve(out_.size() + items_bytes_ + items_.size() + tail_.size() + blanks);
  }
  out_ += text.before;
}

// One item.
void ListRenderer::Write(std::string_view json) {
  const ListText text = TextOf(shape_.syntax);
  if (next_ > 0) out_ += text.between;
  std::string item;
  switch (shape_.form) {
    case Form::kTable:
      AppendRow(shape_, json, {.now = now_, .allowance = cells_}, item);
      json = item;
      break;
    case Form::kMetadata:
      AppendMetadataObject(shape_, json, item);
      json = item;
      break;
    case Form::kObject:
      if (IsConverted(*shape_.kind)) {
        item = AsRequested(*shape_.kind, json);
        json = item;
      }
      break;
  }
  // Only kinds of definitions repeat kind and apiVersion in the items of a list.
  const bool named = shape_.form != Form::kObject || shape_.kind->custom;
  const size_t from = named ? 1 : json.find("\"metadata\":");
  CHECK_NE(from, std::string_view::npos);
  if (shape_.syntax == Syntax::kJson) {
    out_ += '{';
    out_ += json.substr(from);
    return;
  }
  const std::string printed =
      InSyntax(shape_.syntax, fmt::format(R"({{"items":[{{{}]}})", json.substr(from)));
  out_ += std::string_view(printed).substr(text.item_before,
                                           printed.size() - text.item_before - text.item_after);
}

bool ListRenderer::Continue() {
  const size_t most = shape_.form == Form::kObject && shape_.syntax == Syntax::kJson
                          ? kCopiedBytesMax
                          : kPrintedBytesMax;
  for (size_t done = 0; next_ < items_.size() && done < most; ++next_) {
    const Bytes item = std::exchange(items_[next_], {});
    Write(item.view());
    done += item.size() + kItemBytes;
  }
  if (next_ < items_.size()) return false;
  out_ += std::exchange(tail_, {});
  return true;
}

env::HttpResponse ListRenderer::Finish() && {
  CHECK_EQ(next_, items_.size());
  return TextAnswer(200, shape_.syntax, std::move(out_));
}

void ListRenderer::AddTo(Hasher& hasher) const {
  hasher.Add(shape_.kind->name).Add(shape_.form).Add(shape_.syntax).Add(shape_.table_objects);
  hasher.Add(now_.ns).Add(next_).Add(out_).Add(tail_).Add(items_.size());
  for (const Bytes& item : items_) hasher.Add(item.view());
}

void AppendWatchEvent(std::string_view type, const Shape& shape, std::string_view json, Instant now,
                      std::string& out) {
  constexpr size_t kAroundBytes = 40;
  out.reserve(out.size() + json.size() + kAroundBytes);
  out += "{\"type\":\"";
  out += type;
  out += "\",\"object\":";
  if (shape.form == Form::kObject && !IsConverted(*shape.kind)) {
    out += json;
  } else {
    out += RenderObject(shape, json, now);
  }
  out += "}\n";
}

void AppendBookmark(const Shape& shape, uint64_t revision, bool initial_events_end,
                    std::string& out) {
  const std::string metadata = fmt::format(
      R"("metadata":{{"resourceVersion":"{}"{}}})", revision,
      initial_events_end ? R"(,"annotations":{"k8s.io/initial-events-end":"true"})" : "");
  out += R"({"type":"BOOKMARK","object":)";
  const api::Kind& kind = *shape.kind;
  switch (shape.form) {
    case Form::kObject:
      out += fmt::format(R"({{"kind":"{}","apiVersion":"{}",{}}})", kind.name, kind.api_version(),
                         metadata);
      break;
    case Form::kMetadata:
      out += fmt::format(R"({{"kind":"PartialObjectMetadata","apiVersion":"{}",{}}})",
                         MetaVersion(shape), metadata);
      break;
    case Form::kTable: {
      // The bookmark's own metadata stands in the row's object; the row has a cell per column.
      std::string cells;
      for (size_t i = 0; i < api::ColumnsOf(*shape.kind).size(); ++i) {
        cells += i == 0 ? "\"\"" : ",null";
      }
      const std::string row = fmt::format(
          R"({{"cells":[{}],"object":{{"kind":"PartialObjectMetadata","apiVersion":"{}",{}}}}})",
          cells, MetaVersion(shape), metadata);
      AppendTable(shape, fmt::format("\"resourceVersion\":\"{}\"", revision), row, out);
      break;
    }
  }
  out += "}\n";
}

env::HttpResponse Answer(int status, Syntax syntax, std::string json) {
  return TextAnswer(status, syntax, InSyntax(syntax, std::move(json)));
}

env::HttpResponse ProblemResponse(const env::HttpRequest& http, const Problem& problem) {
  env::HttpResponse response = ToResponse(problem);
  Shape shape;
  const std::vector<MediaType> accepted =
      ParseAccept(env::FindHeader(http.headers, "accept").value_or(""));
  const auto first = std::ranges::find_if(
      accepted, [&](const MediaType& media) { return Fits(media, AnswerKind::kOne, shape); });
  if (problem.text || first == accepted.end() || shape.syntax != Syntax::kYaml) return response;
  for (env::Header& header : response.headers) {
    if (header.name == "content-type") header.value = "application/yaml";
  }
  response.body = Bytes(codec::PrintYaml(ParseStored(StatusJson(problem))));
  return response;
}

env::HttpResponse AnswerStored(int status, const Shape& shape, const Bytes& json, Instant now) {
  const bool as_stored =
      shape.form == Form::kObject && shape.syntax == Syntax::kJson && !IsConverted(*shape.kind);
  if (!as_stored) return Answer(status, shape.syntax, RenderObject(shape, json.view(), now));
  return {.status = status, .headers = {{"content-type", "application/json"}}, .body = json};
}

}  // namespace berth::apiserver
