#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "api/types.h"
#include "base/bytes.h"

namespace berth::store {

// The dense index of a kind's table in the store; the order of Options::tables.
using Table = uint16_t;

// Part of a text, in bytes; empty where begin == end.
struct TextRange {
  uint32_t begin = 0;
  uint32_t end = 0;
};

// One version of one object: what the server looks at without parsing, beside the document itself.
// Immutable once stored; shared by tables, log, readers and forks.
struct StoredObject {
  Table table = 0;
  std::string namespace_name;  // Empty for cluster-scoped kinds.
  std::string name;
  std::string uid;
  uint64_t revision = 0;  // The same number as metadata.resourceVersion in `json`.
  api::StringMap labels;
  // Values of the kind's selectable fields, in the order of api::SelectableNames.
  std::vector<std::string> fields;
  Bytes json;  // Canonical, compact.
  // Where `json` has its member spec; empty when nobody has looked.
  TextRange spec = {};
  // The value of metadata.managedFields; empty where there is none.
  TextRange managed = {};
};
using ObjectRef = std::shared_ptr<const StoredObject>;

// Orders objects of one table; views, so that lookups don't copy.
struct ObjectKey {
  std::string_view namespace_name;
  std::string_view name;
  auto operator<=>(const ObjectKey&) const = default;
};

inline ObjectKey KeyOf(const StoredObject& object) { return {object.namespace_name, object.name}; }

// What one version costs in memory, within a tenth for pods and nodes: strings beyond the
// small-string buffer are counted as their length.
[[nodiscard]] size_t FootprintBytes(const StoredObject& object);

}  // namespace berth::store
