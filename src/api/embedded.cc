#include "api/embedded.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "api/names.h"
#include "api/object.h"
#include "api/text.h"
#include "api/validate_common.h"

namespace berth::api {
namespace {

bool HasEmbedded(const CustomSchema& schema) {
  return schema.embeds_resource || std::ranges::any_of(schema.properties, HasEmbedded) ||
         std::ranges::any_of(schema.additional, HasEmbedded) ||
         std::ranges::any_of(schema.items, HasEmbedded);
}

class Finder {
 public:
  void Members(const CustomSchema& schema, JsonObject& object, const std::string& path) {
    for (auto& [key, value] : object) {
      const CustomSchema* member = schema.Property(key);
      if (member == nullptr && !schema.additional.empty()) member = &schema.additional.front();
      if (member == nullptr) continue;
      Value(*member, value, path.empty() ? std::string(key) : fmt::format("{}.{}", path, key));
    }
  }

  [[nodiscard]] std::vector<Embedded> Take() { return std::move(found_); }

 private:
  void Value(const CustomSchema& schema, Json& value, const std::string& path) {
    if (value.is_object()) {
      if (schema.embeds_resource) {
        found_.push_back({.path = path, .resource = &value.get_object()});
      }
      Members(schema, value.get_object(), path);
    } else if (value.is_array() && !schema.items.empty()) {
      JsonArray& items = value.get_array();
      for (size_t i = 0; i < items.size(); ++i) {
        Value(schema.items.front(), items[i], fmt::format("{}[{}]", path, i));
      }
    }
  }

  std::vector<Embedded> found_;
};

void CheckType(FieldErrors& errors, const JsonObject& resource) {
  for (const std::string_view member : {"apiVersion", "kind"}) {
    const rules::Path path(member);
    const Json* value = FindMember(resource, member);
    if (value == nullptr) {
      rules::AddRequired(errors, path);
      continue;
    }
    const std::string_view text =
        value->is_string() ? std::string_view(value->get_string()) : std::string_view();
    if (text.empty()) {
      rules::AddInvalid(errors, path, text, {"must not be empty"});
    } else if (member == "apiVersion") {
      if (std::ranges::count(text, '/') > 1) {
        rules::AddInvalid(errors, path, text,
                          {fmt::format("unexpected GroupVersion string: {}", text)});
      }
    } else if (const Messages why = CheckDns1035Label(Lower(text)); !why.empty()) {
      rules::AddInvalid(errors, path, text,
                        {fmt::format("may have mixed case, but should otherwise match: {}",
                                     fmt::join(why, ","))});
    }
  }
}

// A name is no must, and what is put behind a generated one may make it fine.
void CheckMetadata(FieldErrors& errors, const JsonObject& resource) {
  const Json* metadata = FindMember(resource, "metadata");
  if (metadata == nullptr || !metadata->is_object()) return;
  Json holder = JsonObject{{"metadata", *metadata}};
  if (TextAt(holder, "metadata.name").empty()) SetPath(holder, "metadata.name", Json("name"));
  const std::string_view prefix = TextAt(holder, "metadata.generateName");
  if (prefix == "." || prefix == "..") RemovePath(holder, "metadata.generateName");
  const bool namespaced = !TextAt(holder, "metadata.namespace").empty();
  rules::CheckCustomMeta(errors, holder, namespaced, CheckPathSegment);
}

}  // namespace

std::vector<Embedded> FindEmbedded(const CustomSchema& schema, JsonObject& document) {
  if (!HasEmbedded(schema)) return {};
  Finder finder;
  finder.Members(schema, document, "");
  return finder.Take();
}

FieldErrors CheckEmbedded(const CustomSchema& schema, const Json& document) {
  FieldErrors errors;
  if (!document.is_object() || !HasEmbedded(schema)) return errors;
  JsonObject copy = document.get_object();
  for (const Embedded& found : FindEmbedded(schema, copy)) {
    FieldErrors own;
    CheckType(own, *found.resource);
    CheckMetadata(own, *found.resource);
    for (FieldError& error : own) {
      error.field = fmt::format("{}.{}", found.path, error.field);
      errors.push_back(std::move(error));
    }
  }
  return errors;
}

}  // namespace berth::api
