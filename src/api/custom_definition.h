#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "api/custom_schema.h"
#include "api/field_error.h"
#include "api/json.h"
#include "api/kinds.h"
#include "api/schema.h"

// CustomResourceDefinitions (apiextensions.k8s.io/v1) and the kinds that they make
// (docs/design/0017-custom-resources.md). Immutable once parsed; safe from any thread.
namespace berth::api {

class CustomDefinition;

// A version of a definition.
struct CustomVersion {
  std::string name;
  bool served = false;
  bool storage = false;
  bool deprecated = false;
  std::string deprecation;  // What to warn with; empty: the usual words.
  CustomSchema schema;
  // Dotted paths of the scale subresource, from the object's root; empty where there is none.
  std::string replicas_path, status_replicas_path, selector_path;
  std::vector<std::string> selectable;    // Dotted paths of the fields that selectors may name.
  std::vector<std::string> column_texts;  // What the columns' views are of.
  std::vector<Column> columns;            // Name first.
  std::vector<std::string> descriptions;  // Of the columns.
  std::vector<std::string> cells;         // The JSON path of each column.
  std::vector<std::string> unenforced;    // Where rules stand that nobody runs.
  Json openapi;                           // The schema as it was given.
  const CustomDefinition* definition = nullptr;
  Kind kind;
};

// One definition. Not copied: kinds are views of it.
class CustomDefinition {
 public:
  // Reads a definition that is conformed and has its defaults. `errors` gets what its schemas say
  // that can't be; it is of no use then.
  // `number` is what the caller knows it by.
  static std::shared_ptr<const CustomDefinition> Parse(const Json& object, FieldErrors& errors,
                                                       uint16_t number = 0);

  CustomDefinition(const CustomDefinition&) = delete;
  CustomDefinition& operator=(const CustomDefinition&) = delete;

  [[nodiscard]] std::string_view name() const { return name_; }  // "crontabs.example.com"
  [[nodiscard]] uint16_t number() const { return number_; }
  [[nodiscard]] std::string_view group() const { return group_; }
  [[nodiscard]] std::string_view list_kind() const { return list_kind_; }
  // In kube-aware order: the newest stable first.
  [[nodiscard]] std::span<const CustomVersion> versions() const { return versions_; }
  [[nodiscard]] const CustomVersion& storage() const;
  [[nodiscard]] const CustomVersion* Version(std::string_view name) const;

 private:
  CustomDefinition() = default;
  // A version as it was given; shared: all have one schema.
  struct Given {
    const Json& version;
    size_t index = 0;
    bool shared = false;
  };
  void ParseVersion(const Given& given, FieldErrors& errors, int64_t& steps);
  void MakeKind(CustomVersion& version);

  std::string name_, group_, plural_, singular_, kind_, list_kind_, short_names_, categories_;
  std::string storage_hash_;
  bool namespaced_ = false;
  uint16_t number_ = 0;
  std::vector<CustomVersion> versions_;
};

// Whether version `a` goes before `b` in lists of versions: v2 before v1 before v1beta1 before
// others, which are in order of their text.
[[nodiscard]] bool IsVersionBefore(std::string_view a, std::string_view b);

// Whether all versions of a definition have the same member. Cost: O(their size).
[[nodiscard]] bool VersionsShare(const Json& definition, std::string_view member);
// Where problems of a version's member are told: what all versions share, upstream has once.
[[nodiscard]] std::string VersionPath(bool shared, std::string_view member, size_t index);
// The kind of the table that a definition is of, or null: berth's own schema serves it.
[[nodiscard]] const Kind* NativeKindOf(const Json& definition);

// What is to be said to who writes a definition: that its kind is served natively, each rule that
// nobody runs.
[[nodiscard]] std::vector<std::string> DefinitionWarnings(const Json& definition);

}  // namespace berth::api
