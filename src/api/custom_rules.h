#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/field_error.h"
#include "api/json.h"
#include "api/schema.h"

// The rules that definitions of custom kinds state as expressions (x-kubernetes-validations), as
// functions: each is found by what it answers when it fails. Pure; safe on any thread.
namespace berth::api {

// What a rule says of a value.
struct Verdict {
  bool fine = true;
  std::string_view missing = {};  // The member for want of which it can't be told.
};
// `before` is the value that this one replaces, null when there was none: what only holds for
// changes is fine then.
using Rule = Verdict (*)(const Json& self, const Json* before);

// Null when no function is written for it.
[[nodiscard]] Rule FindRule(std::string_view message);

// Whether a type or what it contains has any.
[[nodiscard]] bool HasRules(const Schema& schema, TypeId type);

// What the rules of a whole document answer, in apiextensions' words. `old` is null for a new one.
// Of a value that is what it was, which an older definition may have let in, `warnings` gets it
// instead.
[[nodiscard]] FieldErrors CheckRules(const Schema& schema, TypeId type, const Json& document,
                                     const Json* old, std::vector<std::string>& warnings);

}  // namespace berth::api
