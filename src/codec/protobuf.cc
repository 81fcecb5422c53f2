#include "codec/protobuf.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "api/base64.h"
#include "api/kinds.h"
#include "api/object.h"
#include "api/schema.h"
#include "api/timestamp.h"
#include "base/time.h"
#include "codec/json.h"

namespace berth::codec {
namespace {

using api::Json;
using api::JsonArray;
using api::JsonObject;

enum class Label : uint8_t { kOne, kList, kMap };
enum class Value : uint8_t {
  kString,
  kBytes,
  kBool,
  kVarint,
  kDouble,
  kMessage,
  kTime,
  kMicroTime,
  kQuantity,
  kIntOrString,
  kRaw,     // Embedded JSON.
  kEither,  // One of several forms, of which the last that is there counts.
  kItems,   // A list in a message of its own.
};

struct FieldRow {
  std::string_view name;  // Empty: its members stand in the message that it is in.
  uint32_t number;
  Label label;
  Value value;
  uint16_t message;
};
struct MessageRow {
  std::string_view name;
  uint16_t first, count;
};

#include "codec/protobuf_table.inc"

constexpr std::string_view kMagic("k8s\0", 4);
constexpr int kDepthMax = 100;

std::unexpected<Error> Bad(std::string_view why) {
  return Fail(ErrorCode::kInvalid, fmt::format("protobuf: {}", why));
}

// A field as it is on the wire.
struct Wire {
  uint32_t number = 0;
  uint64_t integer = 0;    // Of varints and fixed widths.
  std::string_view bytes;  // Of what has a length.
  bool has_length = false;
  bool is_fixed64 = false;
};

class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}

  [[nodiscard]] bool done() const { return rest_.empty(); }

  std::optional<uint64_t> Varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64 && !rest_.empty(); shift += 7) {
      const auto byte = static_cast<unsigned char>(rest_.front());
      rest_.remove_prefix(1);
      value |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if ((byte & 0x80) == 0) return value;
    }
    return std::nullopt;
  }

  Result<Wire> Next() {
    const std::optional<uint64_t> tag = Varint();
    if (!tag || *tag >> 3 == 0 || *tag >> 3 > UINT32_MAX) return Bad("a tag is cut or wrong");
    Wire wire{.number = static_cast<uint32_t>(*tag >> 3)};
    switch (*tag & 7) {
      case 0: {
        const std::optional<uint64_t> integer = Varint();
        if (!integer) return Bad("a number is cut");
        wire.integer = *integer;
        return wire;
      }
      case 1:
        wire.is_fixed64 = true;
        return Fixed(wire, 8);
      case 2: {
        const std::optional<uint64_t> size = Varint();
        if (!size || *size > rest_.size()) return Bad("a length is beyond the end");
        wire.has_length = true;
        wire.bytes = rest_.substr(0, *size);
        rest_.remove_prefix(*size);
        return wire;
      }
      case 5:
        return Fixed(wire, 4);
      default:
        return Bad("a field is of no known wire type");
    }
  }

 private:
  Result<Wire> Fixed(Wire wire, size_t size) {
    if (rest_.size() < size) return Bad("a number is cut");
    for (size_t i = 0; i < size; ++i)
      wire.integer |= static_cast<uint64_t>(static_cast<unsigned char>(rest_[i])) << (8 * i);
    rest_.remove_prefix(size);
    return wire;
  }

  std::string_view rest_;
};

// The fields of a small message of numbers and texts, of which the last of a number counts.
struct Parts {
  std::array<uint64_t, 5> integers{};
  std::array<std::string_view, 5> texts;
  bool empty = true;
};

Result<Parts> ReadParts(std::string_view bytes) {
  Parts parts;
  Reader reader(bytes);
  while (!reader.done()) {
    const Result<Wire> wire = reader.Next();
    if (!wire) return std::unexpected(wire.error());
    parts.empty = false;
    if (wire->number >= parts.integers.size()) continue;
    parts.integers.at(wire->number) = wire->integer;
    parts.texts.at(wire->number) = wire->bytes;
  }
  return parts;
}

bool IsUtf8(std::string_view text) { return ValidUtf8Prefix(text) == text.size(); }

const FieldRow* FindRow(const MessageRow& message, uint32_t number) {
  for (const FieldRow& field : std::span(kFields).subspan(message.first, message.count)) {
    if (field.number == number) return &field;
  }
  return nullptr;
}

class Parser {
 public:
  explicit Parser(api::JsonMemory memory) : memory_(std::move(memory)) {}

  Status Message(const MessageRow& message, std::string_view bytes, JsonObject& out) {
    if (++depth_ > kDepthMax) return Bad("messages nest too deep");
    Reader reader(bytes);
    const bool omits_zeros = message.name.ends_with(".JSONSchemaProps");
    while (!reader.done()) {
      const Result<Wire> wire = reader.Next();
      if (!wire) return Within(message, wire.error());
      const FieldRow* field = FindRow(message, wire->number);
      if (field == nullptr) continue;
      if (omits_zeros && IsZero(*field, *wire)) continue;
      if (Status status = Field(*field, *wire, out); !status)
        return Within(message, status.error());
    }
    --depth_;
    return {};
  }

 private:
  // Of schemas nobody checks again which texts and flags say nothing. (Their numbers are only
  // written where they mean something.)
  static bool IsZero(const FieldRow& field, const Wire& wire) {
    if (field.label != Label::kOne) return false;
    if (field.value == Value::kString) return wire.has_length && wire.bytes.empty();
    return field.value == Value::kBool && wire.integer == 0;
  }

  static std::unexpected<Error> Within(const MessageRow& message, const Error& error) {
    if (error.message.contains(" (in ")) return std::unexpected(error);
    return Fail(ErrorCode::kInvalid, fmt::format("{} (in {})", error.message,
                                                 message.name.substr(message.name.rfind('.') + 1)));
  }

  Status Field(const FieldRow& field, const Wire& wire, JsonObject& out) {
    if (field.name.empty()) return Message(kMessages.at(field.message), wire.bytes, out);
    switch (field.label) {
      case Label::kOne:
        break;
      case Label::kList: {
        Json& list = api::Member(out, field.name);
        if (!list.is_array()) list.emplace_array();
        // Numbers may come packed, several in one.
        if (field.value == Value::kVarint && wire.has_length)
          return Packed(wire.bytes, list.get_array());
        Result<Json> item = Item(field, wire);
        if (!item) return std::unexpected(item.error());
        list.get_array().push_back(std::move(*item));
        return {};
      }
      case Label::kMap:
        return Entry(field, wire.bytes, out);
    }
    Result<Json> item = Item(field, wire);
    if (!item) return std::unexpected(item.error());
    Json& member = api::Member(out, field.name);
    member = std::move(*item);
    return {};
  }

  static Status Packed(std::string_view bytes, JsonArray& list) {
    Reader reader(bytes);
    while (!reader.done()) {
      const std::optional<uint64_t> value = reader.Varint();
      if (!value) return Bad("a number is cut");
      list.emplace_back(static_cast<int64_t>(*value));
    }
    return {};
  }

  // {key = 1, value = 2}
  Status Entry(const FieldRow& field, std::string_view bytes, JsonObject& out) {
    std::string key;
    Wire value{.has_length = true};
    Reader reader(bytes);
    while (!reader.done()) {
      const Result<Wire> wire = reader.Next();
      if (!wire) return std::unexpected(wire.error());
      if (wire->number == 1) key = wire->bytes;
      if (wire->number == 2) value = *wire;
    }
    if (!IsUtf8(key)) return Bad("a key is no UTF-8");
    Result<Json> item = Item(field, value);
    if (!item) return std::unexpected(item.error());
    api::Member(api::MemberObject(out, field.name), key) = std::move(*item);
    return {};
  }

  Result<Json> Text(std::string_view bytes) {
    if (!IsUtf8(bytes)) return Bad("a text is no UTF-8");
    return Json(boost::json::string(bytes, memory_));
  }

  Result<Json> Item(const FieldRow& field, const Wire& wire) {
    const bool scalar = field.value == Value::kBool || field.value == Value::kVarint ||
                        field.value == Value::kDouble;
    if (scalar == wire.has_length)
      return Bad(fmt::format("{} is of another wire type", field.name));
    switch (field.value) {
      case Value::kString:
        return Text(wire.bytes);
      case Value::kBytes:
        return Json(api::EncodeBase64(wire.bytes), memory_);
      case Value::kBool:
        return Json(wire.integer != 0);
      case Value::kVarint:
        return Json(static_cast<int64_t>(wire.integer));
      case Value::kDouble:
        return Number(field, wire);
      case Value::kMessage: {
        Json object(JsonObject{}, memory_);
        Status status = Message(kMessages.at(field.message), wire.bytes, object.get_object());
        if (!status) return std::unexpected(status.error());
        return object;
      }
      case Value::kEither:
      case Value::kItems:
        return Alternative(field, wire.bytes);
      default:
        return Small(field.value, wire.bytes);
    }
  }

  static Result<Json> Number(const FieldRow& field, const Wire& wire) {
    if (!wire.is_fixed64) return Bad(fmt::format("{} is of another wire type", field.name));
    Json number = std::bit_cast<double>(wire.integer);
    api::SettleNumber(number);
    return number;
  }

  Result<Json> Alternative(const FieldRow& field, std::string_view bytes) {
    const MessageRow& message = kMessages.at(field.message);
    JsonObject members(memory_);
    if (Status status = Message(message, bytes, members); !status)
      return std::unexpected(status.error());
    if (field.value == Value::kItems) {
      Json* items = members.if_contains("items");
      return items != nullptr ? std::move(*items) : Json(JsonArray(memory_));
    }
    // A schema before the flag that allows one.
    for (const std::string_view name : {"schema", "jSONSchemas", "property", "allows"}) {
      if (Json* found = members.if_contains(name)) return std::move(*found);
    }
    return Json(nullptr);
  }

  Result<Json> Small(Value value, std::string_view bytes) {
    const Result<Parts> parts = ReadParts(bytes);
    if (!parts) return std::unexpected(parts.error());
    switch (value) {
      case Value::kTime:
      case Value::kMicroTime:
        return Moment(value, *parts);
      case Value::kQuantity:
        return Text(parts->texts[1]);
      case Value::kIntOrString:
        if (parts->integers[1] == 0)
          return Json(static_cast<int64_t>(static_cast<int32_t>(parts->integers[2])));
        return Text(parts->texts[3]);
      default: {
        if (parts->texts[1].empty()) return Json(nullptr);
        Result<Json> embedded = ParseJson(parts->texts[1], {}, memory_);
        if (!embedded) return Bad(fmt::format("embedded JSON: {}", embedded.error().message));
        return embedded;
      }
    }
  }

  // An empty message is no time.
  static Result<Json> Moment(Value value, const Parts& parts) {
    if (parts.empty) return Json(nullptr);
    const auto seconds = static_cast<int64_t>(parts.integers[1]);
    const auto nanos = static_cast<int64_t>(parts.integers[2]);
    // Until the year 2262: what an Instant can tell.
    constexpr int64_t kSecondsMax = 9'000'000'000;
    if (seconds < -kSecondsMax || seconds > kSecondsMax || nanos < 0 || nanos >= 1'000'000'000)
      return Bad("a time is out of range");
    const Instant instant = Instant::FromSeconds(seconds) + Duration::Nanoseconds(nanos);
    return Json(value == Value::kTime ? api::PrintTimestamp(instant)
                                      : api::PrintMicroTime(instant));
  }

  api::JsonMemory memory_;
  int depth_ = 0;
};

// The message of a kind: that of its schema.
const MessageRow* MessageOf(std::string_view api_version, std::string_view kind) {
  const api::Kind* found = api::FindKind(api_version, kind);
  // Options are sent in the group of what they are about.
  if (found == nullptr && kind == "DeleteOptions")
    found = &api::KindOf(api::KindId::kDeleteOptions);
  if (found == nullptr) return nullptr;
  const std::string_view name = api::TypeOf(found->id).name;
  const auto* const row = std::ranges::find(kMessages, name, &MessageRow::name);
  return row == kMessages.end() ? nullptr : row;
}

}  // namespace

Result<Json> ParseProtobuf(std::string_view bytes, api::JsonMemory memory) {
  if (!bytes.starts_with(kMagic)) return Bad("it doesn't begin with k8s and a zero");
  // runtime.Unknown: typeMeta = 1 {apiVersion = 1, kind = 2}, raw = 2.
  const Result<Parts> unknown = ReadParts(bytes.substr(kMagic.size()));
  if (!unknown) return std::unexpected(unknown.error());
  const Result<Parts> type = ReadParts(unknown->texts[1]);
  if (!type) return std::unexpected(type.error());
  const std::string_view api_version = type->texts[1];
  const std::string_view kind = type->texts[2];
  if (!IsUtf8(api_version) || !IsUtf8(kind)) return Bad("a text is no UTF-8");
  const MessageRow* message = MessageOf(api_version, kind);
  if (message == nullptr)
    return Bad(fmt::format("no kind {:?} of {:?} has a protobuf form here", kind, api_version));
  Json document(JsonObject{}, memory);
  JsonObject& members = document.get_object();
  members["kind"] = kind;
  members["apiVersion"] = api_version;
  Parser parser(std::move(memory));
  Status status = parser.Message(*message, unknown->texts[2], members);
  if (!status) return std::unexpected(status.error());
  return document;
}

}  // namespace berth::codec
