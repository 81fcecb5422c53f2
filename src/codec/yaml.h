#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "api/json.h"
#include "base/limits.h"
#include "base/result.h"

// YAML text to api::Json with the rules that Kubernetes' users rely on (sigs.k8s.io/yaml: YAML 1.1
// booleans and integers, JSON's data model). Pure functions; safe from any thread.
namespace berth::codec {

struct YamlLimits {
  int64_t nesting_max = limits::kNestingMax;
  // Nodes after aliases are expanded: what an alias bomb can cost.
  int64_t nodes_max = 1'000'000;
  int64_t documents_max = 10'000;
  bool lines = false;  // ParseYamlReporting says where fields stand.
};

// The documents of a stream, empty ones left out. Error: where (line and column, from 1) and what.
// Duplicate keys (also of a merge after them), keys that are no scalars or null, unknown tags and
// !!binary, unknown or recursive aliases, control characters are errors. Keys are resolved as
// values are, and then said as Go says them: `yes: a` has the key "true".
[[nodiscard]] Result<std::vector<api::Json>> ParseYaml(std::string_view text,
                                                       YamlLimits limits = {});

// By path, as `spec.containers[0].name`: the line, from 1, of a field's key or an item's begin.
// What comes by an alias or a merge has none of its own.
using YamlLines = std::map<std::string, int64_t, std::less<>>;

struct ParsedYaml {
  std::vector<api::Json> documents;
  // Keys that a map has more than once, in the order met: `line 9: key "a" already set in map`. The
  // last one's value stands.
  std::vector<std::string> duplicates;
  std::vector<YamlLines> lines;  // Of each document, when asked for.
};
// The same for callers that take a document whose keys stand twice.
[[nodiscard]] Result<ParsedYaml> ParseYamlReporting(std::string_view text, YamlLimits limits = {});

// Block style; strings are quoted where they would read back as something else; keys are in the
// order in which upstream prints them. Round-trips through ParseYaml, but for that order.
[[nodiscard]] std::string PrintYaml(const api::Json& value);

}  // namespace berth::codec
