#include "api/fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>

#include "api/base64.h"
#include "api/custom_definition.h"
#include "api/embedded.h"
#include "api/field_error.h"
#include "api/object.h"
#include "api/quantity.h"
#include "api/schema.h"
#include "api/structural.h"
#include "api/timestamp.h"

namespace berth::api {
namespace {

// Upstream stops listing strict problems here too.
constexpr size_t kProblemsMax = 100;

std::string_view ScalarName(Value value) {
  switch (value) {
    case Value::kString:
      return "string";
    case Value::kBytes:
      return "[]uint8";
    case Value::kTime:
      return "v1.Time";
    case Value::kMicroTime:
      return "v1.MicroTime";
    case Value::kBool:
      return "bool";
    case Value::kInt32:
      return "int32";
    case Value::kInt64:
      return "int64";
    case Value::kNumber:
      return "float64";
    case Value::kQuantity:
      return "resource.Quantity";
    case Value::kIntOrString:
      return "intstr.IntOrString";
    case Value::kRaw:
    case Value::kObject:
      return "";
  }
  return "";
}

std::string ItemTypeName(const Field& field) {
  if (const GoNames names = GoNamesOf(field); !names.item_type.empty()) {
    return std::string(names.item_type);
  }
  return field.type == kNoType ? std::string(ScalarName(field.value))
                               : TypeAt(field.type).go_qualified();
}

std::string FieldTypeName(const Field& field) {
  if (const GoNames names = GoNamesOf(field); !names.type.empty()) return std::string(names.type);
  std::string item = ItemTypeName(field);
  switch (field.shape) {
    case Shape::kOne:
      return item;
    case Shape::kList:
      return "[]" + item;
    case Shape::kMap:
      return "map[string]" + item;
    case Shape::kMapOfLists:
      return "map[string][]" + item;
  }
  return item;
}

// What Go's decoder calls the JSON it met; numbers stand with their text where the number itself is
// the trouble.
std::string FoundName(const Json& value, bool show_number) {
  switch (value.kind()) {
    case boost::json::kind::null:
      return "null";
    case boost::json::kind::bool_:
      return "bool";
    case boost::json::kind::string:
      return "string";
    case boost::json::kind::array:
      return "array";
    case boost::json::kind::object:
      return "object";
    case boost::json::kind::double_: {
      if (!show_number) return "number";
      const double number = value.get_double();
      return std::floor(number) == number && std::fabs(number) < 1e15
                 ? fmt::format("number {:.1f}", number)
                 : fmt::format("number {}", number);
    }
    default:
      return show_number ? "number " + boost::json::serialize(value) : "number";
  }
}

// What Go's reflection calls a value that was decoded without a type.
std::string_view GoKindOf(const Json& value) {
  switch (value.kind()) {
    case boost::json::kind::null:
      return "invalid";
    case boost::json::kind::bool_:
      return "bool";
    case boost::json::kind::int64:
      return "int64";
    case boost::json::kind::uint64:
    case boost::json::kind::double_:
      return "float64";
    case boost::json::kind::string:
      return "string";
    case boost::json::kind::array:
      return "slice";
    case boost::json::kind::object:
      return "map";
  }
  return "";
}

// What the converter of unstructured objects says of a value that a scalar can't take: Go converts
// between the kinds of numbers, and from integers to strings, which is then refused by name.
std::string Unconvertible(const Field& field, const Json& value) {
  const bool to_number =
      field.value == Value::kInt32 || field.value == Value::kInt64 || field.value == Value::kNumber;
  const bool convertible =
      value.is_int64() ? field.value == Value::kString : value.is_number() && to_number;
  if (convertible) {
    return fmt::format("cannot convert {} to {}", GoKindOf(value), ItemTypeName(field));
  }
  return fmt::format("unrecognized type: {}", ScalarName(field.value));
}

bool IsZero(const Json& value) {
  switch (value.kind()) {
    case boost::json::kind::null:
      return true;
    case boost::json::kind::bool_:
      return !value.get_bool();
    case boost::json::kind::int64:
      return value.get_int64() == 0;
    case boost::json::kind::uint64:
      return value.get_uint64() == 0;
    case boost::json::kind::double_:
      return value.get_double() == 0;
    case boost::json::kind::string:
      return value.get_string().empty();
    case boost::json::kind::array:
      return value.get_array().empty();
    case boost::json::kind::object:
      return value.get_object().empty();
  }
  return false;
}

class Conformer {
 public:
  explicit Conformer(Decoder decoder) : converts_(decoder == Decoder::kConverter) {
    path_.reserve(kUsualDepth);
  }

  Status ConformRoot(const Type& type, JsonObject& object) {
    ConformObject(type, object, Place::kRoot);
    if (failure_) return std::unexpected(*failure_);
    return {};
  }

  // Of an object whose other members are not decoded.
  Status ConformMetadata(const Type& type, JsonObject& metadata) {
    prefix_ = "metadata.";
    ConformObject(type, metadata, Place::kMetadata);
    if (failure_) return std::unexpected(*failure_);
    return {};
  }

  [[nodiscard]] std::vector<std::string> TakeProblems() {
    if (converts_) std::ranges::sort(problems_);
    return std::move(problems_);
  }

 private:
  // A step of the path to the value at hand: a member, or an item of a list.
  struct Step {
    std::string_view name;
    int64_t index = -1;
    const Field* field = nullptr;  // Of a member that the schema knows.
    bool is_key = false;           // Of a map, which Go's decoder doesn't tell.
  };
  // A member and where it belongs: by its order, then by its name.
  struct Member {
    int64_t order;
    const Field* field;
    Json* value;
  };

  static constexpr size_t kUsualDepth = 16;

  // Which object of the document is at hand: some have an order of their own.
  enum class Place : uint8_t { kRoot, kMetadata, kOther };

  static int64_t OrderOf(const Field& field, Place place) {
    constexpr std::array<std::string_view, 3> kRootOrder = {"kind", "apiVersion", "metadata"};
    if (place == Place::kRoot) return IndexIn(kRootOrder, field.name);
    return place == Place::kMetadata ? IndexIn(kMetadataOrder, field.name) : 0;
  }
  static int64_t IndexIn(std::span<const std::string_view> names, std::string_view name) {
    return std::ranges::find(names, name) - names.begin();
  }

  void ConformObject(const Type& type, JsonObject& object, Place place) {
    // A document that was conformed before is left as it stands.
    bool tidy = true;
    std::pair<int64_t, const Field*> last{-1, nullptr};
    int64_t always_count = 0;
    for (auto& [key, value] : object) {
      const Field* field = FindField(type, key, last.second);
      if (field == nullptr) AddUnknown(key);
      if (field == nullptr || (value.is_null() && !field->has(kNull))) {
        tidy = false;
        continue;
      }
      if (IsAlways(*field)) ++always_count;
      if (value.is_null()) {
        const std::pair order(OrderOf(*field, place), field);
        tidy = tidy && last < order;
        last = order;
        continue;
      }
      path_.push_back({field->name, -1, field});
      if (place == Place::kRoot && field->name == "metadata" && value.is_object()) {
        ConformObject(TypeAt(field->type), value.get_object(), Place::kMetadata);
      } else {
        ConformField(type, *field, value);
      }
      path_.pop_back();
      if (stops_) return;
      const std::pair order(OrderOf(*field, place), field);
      tidy = tidy && last < order && !Omits(*field, value);
      last = order;
    }
    if (!tidy || always_count < std::ranges::count_if(type.fields, IsAlways)) {
      Rebuild(type, object, place);
    }
  }

  static bool IsAlways(const Field& field) {
    return field.has(kNull) || (field.has(kAlways) && field.shape == Shape::kOne);
  }

  // Drops unknown, null and empty members and puts the others in order. REQUIRES: they are
  // conformed.
  void Rebuild(const Type& type, JsonObject& object, Place place) {
    AddAlways(type, object);
    std::vector<Member> members;
    members.reserve(object.size());
    const Field* field = nullptr;
    for (auto& [key, value] : object) {
      field = FindField(type, key, field);
      if (field == nullptr) continue;
      if (value.is_null() ? !field->has(kNull) : Omits(*field, value)) continue;
      members.push_back({OrderOf(*field, place), field, &value});
    }
    // Field pointers of one type stand in the order of their names.
    std::ranges::sort(members, [](const Member& a, const Member& b) {
      return std::pair(a.order, a.field) < std::pair(b.order, b.field);
    });
    JsonObject ordered(object.storage());
    ordered.reserve(members.size());
    for (const Member& member : members) {
      ordered.emplace(member.field->name, std::move(*member.value));
    }
    object = std::move(ordered);
  }

  static bool Omits(const Field& field, const Json& value) {
    if (field.has(kPointer | kAlways | kMandatory | kNull)) return false;
    if (field.shape == Shape::kOne &&
        (field.value == Value::kObject || field.value == Value::kRaw ||
         field.value == Value::kIntOrString)) {
      return false;
    }
    if (field.value == Value::kQuantity && field.shape == Shape::kOne) return false;
    return IsZero(value);
  }

  void AddAlways(const Type& type, JsonObject& object) {
    for (const Field& field : type.fields) {
      if (!IsAlways(field)) continue;
      const Json* present = object.if_contains(field.name);
      if (present != nullptr && !present->is_null()) continue;
      Json value(object.storage());
      if (field.has(kNull)) {
        // It is.
      } else if (field.value == Value::kObject) {
        ConformObject(TypeAt(field.type), value.emplace_object(), Place::kOther);
      } else if (field.value == Value::kString || field.value == Value::kBytes) {
        value.emplace_string();
      } else if (field.value == Value::kBool) {
        value = false;
      } else if (field.value == Value::kInt32 || field.value == Value::kInt64) {
        value = 0;
      } else {
        continue;
      }
      object[field.name] = std::move(value);
    }
  }

  void ConformField(const Type& owner, const Field& field, Json& value) {
    switch (field.shape) {
      case Shape::kOne:
        ConformItem(owner, field, value);
        return;
      case Shape::kList:
        ConformList(owner, field, value);
        return;
      case Shape::kMap:
      case Shape::kMapOfLists:
        ConformMap(owner, field, value);
        return;
    }
  }

  void ConformList(const Type& owner, const Field& field, Json& value) {
    if (!value.is_array()) {
      if (converts_) {
        return Stop(fmt::format("cannot restore slice from {}", GoKindOf(value)));
      }
      Mismatch(owner, FoundName(value, false), FieldTypeName(field));
      return;
    }
    JsonArray& array = value.get_array();
    for (size_t i = 0; i < array.size() && !stops_; ++i) {
      path_.push_back({{}, static_cast<int64_t>(i)});
      ConformItem(owner, field, array[i]);
      path_.pop_back();
    }
  }

  void ConformMap(const Type& owner, const Field& field, Json& value) {
    if (!value.is_object()) {
      if (converts_) return Stop(fmt::format("cannot restore map from {}", GoKindOf(value)));
      Mismatch(owner, FoundName(value, false), FieldTypeName(field));
      return;
    }
    JsonObject& map = value.get_object();
    bool sorted = true;
    std::string_view last;
    for (auto& [key, item] : map) {
      sorted = sorted && last <= std::string_view(key);
      last = key;
      path_.push_back({.name = key, .is_key = true});
      if (field.shape == Shape::kMapOfLists) {
        ConformList(owner, field, item);
      } else {
        ConformItem(owner, field, item);
      }
      path_.pop_back();
      if (stops_) return;
    }
    if (!sorted) SortMembers(map);
  }

  // One value of the field's item type. A null in a list or map is the type's zero.
  void ConformItem(const Type& owner, const Field& field, Json& value) {
    if (field.value == Value::kObject) {
      if (value.is_null()) value.emplace_object();
      if (!value.is_object()) {
        if (converts_) {
          return Stop(fmt::format("cannot restore struct from: {}", GoKindOf(value)));
        }
        Mismatch(owner, FoundName(value, false), ItemTypeName(field));
        return;
      }
      ConformObject(TypeAt(field.type), value.get_object(), Place::kOther);
      return;
    }
    ConformScalar(owner, field, value);
  }

  void ConformScalar(const Type& owner, const Field& field, Json& value) {
    const auto mismatch = [&] {
      if (converts_) return Stop(Unconvertible(field, value));
      Mismatch(owner, FoundName(value, false), ItemTypeName(field));
    };
    switch (field.value) {
      case Value::kString:
        if (value.is_null()) value.emplace_string();
        if (!value.is_string()) mismatch();
        return;
      case Value::kBool:
        if (value.is_null()) value = false;
        if (!value.is_bool()) mismatch();
        return;
      case Value::kInt32:
      case Value::kInt64:
        ConformInteger(owner, field, value);
        return;
      case Value::kNumber:
        if (!value.is_number()) mismatch();
        return;
      case Value::kIntOrString:
        if (value.is_string()) return;
        if (!value.is_number() || !InRange(value, true)) {
          NestedMismatch(owner, FoundName(value, value.is_number()), "int32");
        }
        return;
      case Value::kQuantity:
        ConformQuantity(owner, field, value);
        return;
      case Value::kTime:
      case Value::kMicroTime:
        ConformTime(owner, field, value);
        return;
      case Value::kBytes:
        if (value.is_null()) value.emplace_string();
        ConformBytes(owner, field, value);
        return;
      case Value::kRaw:
      case Value::kObject:
        return;
    }
  }

  // To Go bytes are a list of numbers, too.
  void ConformByteList(const Type& owner, Json& value) {
    std::string bytes;
    for (Json& item : value.get_array()) {
      if (item.is_null()) item = 0;
      if (converts_) SettleNumber(item);
      const bool cut = converts_ && item.is_int64();
      if (!cut && !(item.is_int64() && item.get_int64() >= 0 && item.get_int64() <= 0xff))
        return NoByte(owner, item);
      bytes.push_back(static_cast<char>(item.get_int64()));
    }
    value.emplace_string() = EncodeBase64(bytes);
  }

  void NoByte(const Type& owner, const Json& item) {
    if (!converts_) return Mismatch(owner, FoundName(item, item.is_number()), "uint8");
    Stop(item.is_number() ? "cannot convert float64 to uint8" : "unrecognized type: uint8");
  }

  void ConformBytes(const Type& owner, const Field& field, Json& value) {
    if (value.is_array()) return ConformByteList(owner, value);
    if (!value.is_string()) {
      if (converts_) return Stop(fmt::format("cannot restore slice from {}", GoKindOf(value)));
      return Mismatch(owner, FoundName(value, false), ItemTypeName(field));
    }
    if (Base64Size(value.get_string())) return;
    std::string why =
        fmt::format("illegal base64 data at input byte {}", Base64ErrorOffset(value.get_string()));
    if (converts_) return Stop("error decoding from json: " + why);
    Fail(std::move(why));
  }

  static bool InRange(const Json& value, bool narrow) {
    if (!value.is_int64()) return false;
    const int64_t number = value.get_int64();
    return !narrow || (number >= std::numeric_limits<int32_t>::min() &&
                       number <= std::numeric_limits<int32_t>::max());
  }

  void ConformInteger(const Type& owner, const Field& field, Json& value) {
    if (value.is_null()) value = 0;
    if (converts_) return ConvertInteger(field, value);
    if (!value.is_number()) {
      Mismatch(owner, FoundName(value, false), ItemTypeName(field));
    } else if (!InRange(value, field.value == Value::kInt32)) {
      Mismatch(owner, FoundName(value, true), ItemTypeName(field));
    }
  }

  // As Go converts numbers: to what the type has room for.
  void ConvertInteger(const Field& field, Json& value) {
    constexpr double kExactMax = 9007199254740992.0;  // 2^53
    if (value.is_double() && std::floor(value.get_double()) == value.get_double() &&
        std::fabs(value.get_double()) <= kExactMax) {
      value = static_cast<int64_t>(value.get_double());
    }
    if (!value.is_int64()) return Stop(Unconvertible(field, value));
    if (field.value == Value::kInt32) value = static_cast<int32_t>(value.get_int64());
  }

  void ConformQuantity(const Type& owner, const Field& field, Json& value) {
    if (value.is_null()) {
      value = "0";
      return;
    }
    std::string number;
    std::string_view text;
    if (value.is_string()) {
      text = value.get_string();
      while (!text.empty() && IsBlank(text.front())) text.remove_prefix(1);
      while (!text.empty() && IsBlank(text.back())) text.remove_suffix(1);
    } else if (value.is_double()) {
      number = fmt::format("{}", value.get_double());
      text = number;
    } else if (value.is_number()) {
      number = boost::json::serialize(value);
      text = number;
    } else {
      // Upstream hands any other JSON to the quantity parser as text.
      static_cast<void>(owner);
      static_cast<void>(field);
      text = "x";
    }
    Result<std::string> canonical = CanonicalQuantity(text);
    if (!canonical) {
      Stop(canonical.error().message);
      return;
    }
    if (text != *canonical || !value.is_string()) value = *canonical;
  }

  static bool IsBlank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

  // Whether a time that was read without complaint is sure to be printed as it stands: years that
  // an Instant holds, UTC, and as many digits of the second as are printed.
  static bool IsCanonicalTime(std::string_view text, bool micro) {
    const bool shaped = micro ? text.size() == 27 && text[19] == '.' : text.size() == 20;
    return shaped && text.back() == 'Z' && (text.starts_with("19") || text.starts_with("20"));
  }

  void ConformTime(const Type& owner, const Field& field, Json& value) {
    if (!value.is_string()) {
      // Go's time types decode through a string of their own.
      NestedMismatch(owner, FoundName(value, false), "string");
      return;
    }
    const bool micro = field.value == Value::kMicroTime;
    const Result<Instant> time =
        micro ? ParseMicroTime(value.get_string()) : ParseTimestamp(value.get_string());
    if (!time) {
      Stop(time.error().message);
      return;
    }
    if (IsCanonicalTime(value.get_string(), micro)) return;
    const std::string canonical = micro ? PrintMicroTime(*time) : PrintTimestamp(*time);
    if (std::string_view(value.get_string()) != canonical) value = canonical;
  }

  void AddUnknown(std::string_view key) {
    if (problems_.size() >= kProblemsMax) return;
    path_.push_back({key});
    problems_.push_back(fmt::format("unknown field {}", QuoteGo(prefix_ + PathText(true))));
    path_.pop_back();
  }

  [[nodiscard]] std::string PathText(bool with_indexes) const {
    std::string text;
    for (const Step& step : path_) {
      if (step.index >= 0) {
        if (with_indexes) text += fmt::format("[{}]", step.index);
        continue;
      }
      if (step.is_key && !with_indexes) continue;
      if (!text.empty()) text += '.';
      if (!with_indexes && step.field != nullptr) {
        const std::string_view embedded = GoNamesOf(*step.field).embedded;
        if (!embedded.empty()) text += fmt::format("{}.", embedded);
      }
      text += step.name;
    }
    return text;
  }

  [[nodiscard]] std::string MismatchText(const Type& owner, std::string_view found,
                                         std::string_view wanted) const {
    return fmt::format("json: cannot unmarshal {} into Go struct field {}.{} of type {}", found,
                       owner.go_name(), PathText(false), wanted);
  }

  void Mismatch(const Type& owner, std::string_view found, std::string_view wanted) {
    Fail(MismatchText(owner, found, wanted));
  }

  // Of a type that decodes itself.
  void NestedMismatch(const Type& owner, std::string_view found, std::string_view wanted) {
    Stop(converts_
             ? fmt::format("json: cannot unmarshal {} into Go value of type {}", found, wanted)
             : MismatchText(owner, found, wanted));
  }

  // Go's decoder goes on after a value of a wrong type, whose error is the result unless another
  // one ends it.
  void Fail(std::string message) {
    if (!failure_) failure_ = Error{ErrorCode::kInvalid, std::move(message)};
  }

  // What ends it: an error of a type that decodes itself, and any of the converter.
  void Stop(std::string message) {
    if (stops_) return;
    failure_ = Error{ErrorCode::kInvalid, std::move(message)};
    stops_ = true;
  }

  const bool converts_;
  std::vector<Step> path_;
  std::string prefix_;  // Of paths in problems.
  std::vector<std::string> problems_;
  std::optional<Error> failure_;
  bool stops_ = false;
};

}  // namespace

namespace {

void SortAll(Json& value) {
  if (value.is_array()) {
    for (Json& item : value.get_array()) SortAll(item);
  } else if (value.is_object()) {
    for (auto& item : value.get_object()) SortAll(item.value());
    SortMembers(value.get_object());
  }
}

// Metadata that Go holds as a map and decodes by way of a text: what is told of is the first thing
// that is wrong in order of the names.
Status ConformMapped(Conformer& conformer, const Type& type, Json& metadata) {
  Status status = conformer.ConformMetadata(type, metadata.get_object());
  if (status) return status;
  SortAll(metadata);
  Status first = Conformer(Decoder::kJson).ConformMetadata(type, metadata.get_object());
  return first ? std::move(status) : std::move(first);
}

// The metadata of objects within an object of a user's kind, which are decoded as all metadata is.
Status ConformEmbedded(const CustomSchema& schema, const Type& type, JsonObject& document,
                       std::vector<std::string>& problems) {
  constexpr std::string_view kLead = "unknown field \"";
  for (const Embedded& found : FindEmbedded(schema, document)) {
    for (const std::string_view member : {"apiVersion", "kind"}) {
      const Json* text = FindMember(std::as_const(*found.resource), member);
      if (text == nullptr || text->is_string()) continue;
      return Fail(ErrorCode::kInvalid,
                  fmt::format("{}.{}: Invalid value: {}: must be a string", found.path, member,
                              boost::json::serialize(*text)));
    }
    Json* metadata = found.resource->if_contains("metadata");
    if (metadata == nullptr) continue;
    const std::string sent = boost::json::serialize(*metadata);
    const auto refuse = [&](std::string_view why) {
      Json said = boost::json::parse(sent);
      SortAll(said);
      return Fail(ErrorCode::kInvalid, fmt::format("{}.metadata: Invalid value: {}: {}", found.path,
                                                   boost::json::serialize(said), why));
    };
    if (metadata->is_null()) metadata->emplace_object();
    if (!metadata->is_object()) {
      return refuse(fmt::format("json: cannot unmarshal {} into Go value of type {}",
                                FoundName(*metadata, false), type.go_qualified()));
    }
    Conformer conformer(Decoder::kJson);
    if (Status status = ConformMapped(conformer, type, *metadata); !status)
      return refuse(status.error().message);
    SortMembers(metadata->get_object());
    for (std::string& problem : conformer.TakeProblems()) {
      if (problem.starts_with(kLead)) problem.insert(kLead.size(), found.path + ".");
      problems.push_back(std::move(problem));
    }
  }
  return {};
}

// An object of a custom kind keeps its shape; its metadata is decoded as all metadata is. What is
// unknown is told as upstream meets it: of the metadata, of the object, of metadata within it, each
// in order of the names.
Result<std::vector<std::string>> ConformCustom(const Kind& kind, JsonObject& document) {
  std::vector<std::string> pruned =
      kind.defined != nullptr
          ? PruneCustom(kind.defined->schema, document)
          : PruneUnknown(BuiltinSchema(), static_cast<TypeId>(kind.id), document);
  const Type type = TypeAt(FindField(TypeOf(KindId::kPod), "metadata")->type);
  Json& metadata = Member(document, "metadata");
  if (metadata.is_null()) metadata.emplace_object();
  if (!metadata.is_object()) {
    return Fail(ErrorCode::kInvalid,
                fmt::format("json: cannot unmarshal {} into Go value of type {}",
                            FoundName(metadata, false), type.go_qualified()));
  }
  Conformer conformer(Decoder::kJson);
  if (Status status = ConformMapped(conformer, type, metadata); !status)
    return std::unexpected(status.error());
  std::vector<std::string> problems = conformer.TakeProblems();
  std::vector<std::string> embedded;
  if (kind.defined != nullptr) {
    Status status = ConformEmbedded(kind.defined->schema, type, document, embedded);
    if (!status) return std::unexpected(status.error());
  }
  std::ranges::sort(problems);
  for (std::vector<std::string>* more : {&pruned, &embedded}) {
    std::ranges::sort(*more);
    std::ranges::move(*more, std::back_inserter(problems));
  }
  return problems;
}

}  // namespace

Result<std::vector<std::string>> Conform(KindId kind, Json& document) {
  return Conform(KindOf(kind), document);
}

Result<std::vector<std::string>> Conform(const Kind& kind, Json& document, Decoder decoder) {
  // A user's kind is to Go what any document is.
  const Type type =
      kind.defined != nullptr ? Type{.name = "v1.unstructured.Unstructured"} : TypeOf(kind.id);
  if (document.is_null()) document.emplace_object();
  if (!document.is_object()) {
    return Fail(ErrorCode::kInvalid,
                fmt::format("json: cannot unmarshal {} into Go value of type {}",
                            FoundName(document, false), type.go_qualified()));
  }
  if (kind.custom) return ConformCustom(kind, document.get_object());
  Conformer conformer(decoder);
  if (Status status = conformer.ConformRoot(type, document.get_object()); !status) {
    return std::unexpected(status.error());
  }
  return conformer.TakeProblems();
}

namespace {

bool HasEmptyList(const Json& value) {
  if (const JsonArray* array = value.if_array()) {
    return array->empty() || std::ranges::any_of(*array, HasEmptyList);
  }
  const JsonObject* object = value.if_object();
  return object != nullptr && std::ranges::any_of(*object, [](const auto& member) {
           return HasEmptyList(member.value());
         });
}

void NullEmptyLists(const Type& type, Json& value) {
  if (value.is_array()) {
    for (Json& item : value.get_array()) NullEmptyLists(type, item);
    return;
  }
  if (!value.is_object()) return;
  for (auto& [key, member] : value.get_object()) {
    const Field* field = FindField(type, key);
    if (field == nullptr) continue;
    if (field->has(kNull) && member.is_array() && member.get_array().empty()) member = nullptr;
    if (field->type != kNoType && field->shape != Shape::kMap) {
      NullEmptyLists(TypeAt(field->type), member);
    }
  }
}

}  // namespace

void ForgetEmptyLists(const Kind& kind, Json& document) {
  if (!kind.custom && HasEmptyList(document)) NullEmptyLists(TypeOf(kind.id), document);
}

std::string StrictDecodingError(std::span<const std::string> problems) {
  return fmt::format("strict decoding error: {}", fmt::join(problems, ", "));
}

}  // namespace berth::api
