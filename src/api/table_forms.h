#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "api/json.h"
#include "api/kinds.h"
#include "api/schema.h"
#include "base/time.h"

// Private to api/: how the rows of a kind's table are made, and what those of several kinds share.
namespace berth::api {

// A kind's columns and the cells of an object's row.
struct TableForm {
  KindId kind;
  std::span<const Column> columns;
  JsonArray (*cells)(const Json& object, Instant now);
};

// By what the kinds are for.
[[nodiscard]] std::span<const TableForm> WorkloadForms();
[[nodiscard]] std::span<const TableForm> ServiceForms();
[[nodiscard]] std::span<const TableForm> StorageForms();
[[nodiscard]] std::span<const TableForm> PolicyForms();

inline constexpr Column kName = {"Name", "string", "name", 0};
inline constexpr Column kAge = {"Age", "string", "", 0};
constexpr Column TextColumn(std::string_view name, int32_t priority = 0) {
  return {name, "string", "", priority};
}
constexpr Column NumberColumn(std::string_view name) { return {name, "integer", "", 0}; }
constexpr Column FlagColumn(std::string_view name) { return {name, "boolean", "", 0}; }

// The time at a path; nothing when there is none that can be read.
[[nodiscard]] std::optional<Instant> TimeAt(const Json& object, std::string_view path);
// How long ago, in words; "<unknown>" for nothing.
[[nodiscard]] std::string Since(std::optional<Instant> time, Instant now);
[[nodiscard]] std::string AgeOf(const Json& object, Instant now);
[[nodiscard]] std::string OrNone(std::string_view text, std::string_view otherwise = "<none>");
[[nodiscard]] Json NameCell(const Json& object);
// The same of a class, with " (default)" where that annotation is "true".
[[nodiscard]] Json ClassNameCell(const Json& object, std::string_view default_annotation);

// `a=b,c=d`, or <none>.
[[nodiscard]] std::string LabelsText(const Json& object, std::string_view path);
// A spec's selector as text, or <none>.
[[nodiscard]] std::string SelectorText(const Json& object, std::string_view path);
// Texts of a list, with commas between.
[[nodiscard]] std::string Joined(const JsonArray& texts);

// The wide columns of what makes pods: names and images of a pod spec's containers.
void AddContainerCells(const Json& object, std::string_view containers_path, JsonArray& cells);

}  // namespace berth::api
