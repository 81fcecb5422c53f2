#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/json.h"
#include "base/time.h"
#include "codec/yaml.h"
#include "config/fields.h"

// Private to config/: a document into members, strictly.
namespace berth::config {

using Lines = codec::YamlLines;

// The line of a field, or of the nearest thing around it that has one: `line 7: `, or nothing.
[[nodiscard]] std::string AtLine(const Lines& lines, std::string_view field);

// Collects problems instead of ending at the first. What can't be read keeps its default, as what
// is null does.
class Reader {
 public:
  explicit Reader(const Lines& lines) : lines_(lines) {}

  void Read(const api::Json& value, const std::string& path, bool& out);
  void Read(const api::Json& value, const std::string& path, int32_t& out);
  void Read(const api::Json& value, const std::string& path, int64_t& out);
  void Read(const api::Json& value, const std::string& path, double& out);
  void Read(const api::Json& value, const std::string& path, std::string& out);
  void Read(const api::Json& value, const std::string& path, Duration& out);
  void Read(const api::Json& value, const std::string& path, api::Json& out);
  void Read(const api::Json& value, const std::string& path, PluginConfig& out);
  template <class T>
  void Read(const api::Json& value, const std::string& path, std::optional<T>& out) {
    Read(value, path, out.emplace());
  }
  template <class T>
  void Read(const api::Json& value, const std::string& path, std::vector<T>& out);
  template <class T>
  void Read(const api::Json& value, const std::string& path, T& out);

  // Against the field.
  void Add(std::string_view path, std::string_view problem);
  [[nodiscard]] Problems Take() { return std::move(problems_); }

 private:
  template <class T>
  void ReadArgs(const api::Json& value, const std::string& path, PluginConfig& out);
  template <class T>
  void ReadMembers(const api::JsonObject& object, const std::string& path, T& out,
                   std::vector<std::string_view> known);
  void ReadInteger(const api::Json& value, const std::string& path, int64_t bound, int64_t& out);
  void Wrong(const std::string& path, std::string_view wanted, const api::Json& value);
  void AddUnknown(const api::JsonObject& object, const std::string& path,
                  const std::vector<std::string_view>& known);

  const Lines& lines_;
  Problems problems_;
};

[[nodiscard]] std::string Join(std::string_view path, std::string_view name);

template <class T>
void Reader::Read(const api::Json& value, const std::string& path, std::vector<T>& out) {
  if (!value.is_array()) return Wrong(path, "a list", value);
  const api::JsonArray& items = value.get_array();
  for (size_t i = 0; i < items.size(); ++i) {
    T& item = out.emplace_back();
    if (!items[i].is_null()) Read(items[i], fmt::format("{}[{}]", path, i), item);
  }
}

template <class T>
void Reader::ReadMembers(const api::JsonObject& object, const std::string& path, T& out,
                         std::vector<std::string_view> known) {
  auto visit = [&](std::string_view name, auto& member) {
    known.push_back(name);
    const api::Json* value = object.if_contains(name);
    if (value != nullptr && !value->is_null()) Read(*value, Join(path, name), member);
  };
  Fields(visit, out);
  AddUnknown(object, path, known);
}

template <class T>
void Reader::Read(const api::Json& value, const std::string& path, T& out) {
  if (!value.is_object()) return Wrong(path, "an object", value);
  // The document says what it is, and that was looked at.
  std::vector<std::string_view> known;
  if (path.empty()) known = {"apiVersion", "kind"};
  ReadMembers(value.get_object(), path, out, std::move(known));
}

}  // namespace berth::config
