#include "codec/openapi_protobuf.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <string_view>

#include "api/object.h"
#include "codec/json.h"

namespace berth::codec {
namespace {

using api::Json;
using api::JsonArray;
using api::JsonObject;

enum class Wire : uint8_t { kVarint = 0, kFixed64 = 1, kLengthDelimited = 2 };

void AppendVarint(std::string& out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  out += static_cast<char>(value);
}

void AppendTag(std::string& out, uint32_t number, Wire wire) {
  AppendVarint(out, (uint64_t{number} << 3) | static_cast<uint64_t>(wire));
}

// A text, or a message within a message.
void AppendBytes(std::string& out, uint32_t number, std::string_view bytes) {
  AppendTag(out, number, Wire::kLengthDelimited);
  AppendVarint(out, bytes.size());
  out += bytes;
}

// What is at its zero value is not there, here and in the two below.
void AppendInteger(std::string& out, uint32_t number, int64_t value) {
  if (value == 0) return;
  AppendTag(out, number, Wire::kVarint);
  AppendVarint(out, static_cast<uint64_t>(value));
}

void AppendDouble(std::string& out, uint32_t number, double value) {
  if (value == 0) return;
  AppendTag(out, number, Wire::kFixed64);
  const auto bits = std::bit_cast<uint64_t>(value);
  for (int shift = 0; shift < 64; shift += 8) out += static_cast<char>(bits >> shift);
}

// Any {value = 1, yaml = 2}; JSON is YAML.
std::string Any(const Json& value) {
  std::string out;
  AppendBytes(out, 2, PrintJson(value));
  return out;
}

std::string Schema(const Json& schema);

// NamedSchema {name = 1, value = 2}, NamedAny alike.
std::string Named(std::string_view name, std::string_view value) {
  std::string out;
  AppendBytes(out, 1, name);
  AppendBytes(out, 2, value);
  return out;
}

// Properties {additional_properties = 1}, Definitions alike.
std::string Schemas(const Json& named) {
  std::string out;
  if (!named.is_object()) return out;
  for (const auto& [name, schema] : named.get_object())
    AppendBytes(out, 1, Named(name, Schema(schema)));
  return out;
}

enum class Form : uint8_t {
  kText,
  kTexts,
  kInteger,
  kDouble,
  kFlag,
  kAny,
  kAnys,
  kType,
  kItems,
  kAdditional,
  kSchemas,
  kProperties
};

struct Member {
  std::string_view name;
  uint32_t number;
  Form form;
};

// Of the message Schema.
constexpr std::array<Member, 28> kMembers = {{{"$ref", 1, Form::kText},
                                              {"format", 2, Form::kText},
                                              {"title", 3, Form::kText},
                                              {"description", 4, Form::kText},
                                              {"default", 5, Form::kAny},
                                              {"multipleOf", 6, Form::kDouble},
                                              {"maximum", 7, Form::kDouble},
                                              {"exclusiveMaximum", 8, Form::kFlag},
                                              {"minimum", 9, Form::kDouble},
                                              {"exclusiveMinimum", 10, Form::kFlag},
                                              {"maxLength", 11, Form::kInteger},
                                              {"minLength", 12, Form::kInteger},
                                              {"pattern", 13, Form::kText},
                                              {"maxItems", 14, Form::kInteger},
                                              {"minItems", 15, Form::kInteger},
                                              {"uniqueItems", 16, Form::kFlag},
                                              {"maxProperties", 17, Form::kInteger},
                                              {"minProperties", 18, Form::kInteger},
                                              {"required", 19, Form::kTexts},
                                              {"enum", 20, Form::kAnys},
                                              {"additionalProperties", 21, Form::kAdditional},
                                              {"type", 22, Form::kType},
                                              {"items", 23, Form::kItems},
                                              {"allOf", 24, Form::kSchemas},
                                              {"properties", 25, Form::kProperties},
                                              {"discriminator", 26, Form::kText},
                                              {"readOnly", 27, Form::kFlag},
                                              {"example", 30, Form::kAny}}};
constexpr uint32_t kExtension = 31;

// What has another type than it should is left out.
void AppendMember(std::string& out, const Member& member, const Json& value) {
  const auto each = [&](const auto& append) {
    if (const JsonArray* items = value.if_array()) std::ranges::for_each(*items, append);
  };
  std::string part;
  switch (member.form) {
    case Form::kText:
      if (value.is_string()) AppendBytes(out, member.number, value.get_string());
      return;
    case Form::kTexts:
      return each([&](const Json& item) {
        if (item.is_string()) AppendBytes(out, member.number, item.get_string());
      });
    case Form::kInteger:
      if (value.is_int64()) AppendInteger(out, member.number, value.get_int64());
      return;
    case Form::kDouble:
      if (value.is_number()) AppendDouble(out, member.number, value.to_number<double>());
      return;
    case Form::kFlag:
      if (value.is_bool()) AppendInteger(out, member.number, value.get_bool() ? 1 : 0);
      return;
    case Form::kAny:
      return AppendBytes(out, member.number, Any(value));
    case Form::kAnys:
      return each([&](const Json& item) { AppendBytes(out, member.number, Any(item)); });
    case Form::kType:  // TypeItem {value = 1}
      if (value.is_string()) AppendBytes(part, 1, value.get_string());
      break;
    case Form::kItems:  // ItemsItem {schema = 1}
      if (value.is_object()) AppendBytes(part, 1, Schema(value));
      break;
    case Form::kAdditional:  // AdditionalPropertiesItem, one of {schema = 1, boolean = 2}
      if (value.is_object()) AppendBytes(part, 1, Schema(value));
      if (value.is_bool()) AppendInteger(part, 2, value.get_bool() ? 1 : 0);
      break;
    case Form::kSchemas:
      return each([&](const Json& item) { AppendBytes(out, member.number, Schema(item)); });
    case Form::kProperties:
      part = Schemas(value);
      break;
  }
  if (!part.empty()) AppendBytes(out, member.number, part);
}

std::string Schema(const Json& schema) {
  std::string out;
  if (!schema.is_object()) return out;
  for (const Member& member : kMembers) {
    if (const Json* value = schema.get_object().if_contains(member.name))
      AppendMember(out, member, *value);
  }
  for (const auto& [name, value] : schema.get_object()) {
    if (std::string_view(name).starts_with("x-"))
      AppendBytes(out, kExtension, Named(name, Any(value)));
  }
  return out;
}

}  // namespace

std::string OpenApiV2Message(const Json& document) {
  // Document {swagger = 1, info = 2 {title = 1, version = 2}, definitions = 9}.
  std::string info;
  AppendBytes(info, 1, api::TextAt(document, "info.title"));
  AppendBytes(info, 2, api::TextAt(document, "info.version"));
  std::string out;
  AppendBytes(out, 1, api::TextAt(document, "swagger"));
  AppendBytes(out, 2, info);
  if (const Json* definitions = api::FindMember(document, "definitions"))
    AppendBytes(out, 9, Schemas(*definitions));
  return out;
}

}  // namespace berth::codec
