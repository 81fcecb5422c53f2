#pragma once

#include <string>
#include <vector>

#include "api/field_error.h"
#include "api/json.h"
#include "api/schema.h"

// What a server does to documents of a kind that a CustomResourceDefinition describes. They are
// never decoded into structs: they stay as they were sent, but for members that the schema doesn't
// know, and what is wrong with them is said by the schema's validation in the words of
// apiextensions. A schema is all that it goes by. Pure functions; safe on any document.
// An object's apiVersion, kind and metadata are others' business: they are left alone.
namespace berth::api {

// Drops unknown members and puts the others in the schema's order, those of maps in their own.
// Numbers that are whole become integers where those are meant. Returns the strict decoding
// problems (`unknown field "spec.foo"`).
[[nodiscard]] std::vector<std::string> PruneUnknown(const Schema& schema, TypeId type,
                                                    JsonObject& document);

// Sets what is missing and has a default; null counts as missing, and goes where there is none.
void ApplySchemaDefaults(const Schema& schema, TypeId type, JsonObject& document);

// Types, limits, patterns, what is required; then equal items of sets and maps. Not the rules
// (x-kubernetes-validations). REQUIRES: pruned and with its defaults.
[[nodiscard]] FieldErrors CheckSchema(const Schema& schema, TypeId type,
                                      const JsonObject& document);
// The same of a document that replaces `old`, which an older schema may have let in: a value that
// is what it was is let through, as CheckCustomUpdate has it (api/custom_schema.h). Cost: of a
// document with nothing wrong, no more.
[[nodiscard]] FieldErrors CheckSchemaUpdate(const Schema& schema, TypeId type,
                                            const JsonObject& document, const Json& old);

}  // namespace berth::api
