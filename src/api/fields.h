#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "api/json.h"
#include "api/kinds.h"
#include "base/result.h"

// What a server that decodes documents into typed structs does to them: unknown fields go, types
// are checked, values take their canonical form. Driven by the schema table. Pure functions.
namespace berth::api {

// The order of an object's metadata: what names it and its version come first, so that those who
// look for nothing else needn't read on.
inline constexpr std::array<std::string_view, 14> kMetadataOrder = {
    "name",
    "generateName",
    "namespace",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "labels",
    "annotations",
    "ownerReferences",
    "finalizers",
    "managedFields",
};

// What decodes a document: Go's decoder of JSON, or the converter that upstream takes for the
// result of a strategic merge patch or an apply, whose words are others and which cuts integers
// short.
enum class Decoder : uint8_t { kJson, kConverter };

// Turns a document into what upstream would store of it: unknown and null members are dropped,
// quantities and times are in canonical form, empty values that upstream doesn't write are dropped,
// members stand in the schema's order, those of the object's own metadata in kMetadataOrder, and
// some are null where there is nothing (kNull).
// Returns the strict decoding problems in upstream's words (`unknown field "spec.foo"`), in
// document order; the caller decides by the request's fieldValidation what to do about them. An
// Error is a value that can't be decoded, worded as Go's decoder has it
// (`json: cannot unmarshal string into Go struct field PodSpec.spec.hostNetwork of type bool`); the
// document is then half done.
[[nodiscard]] Result<std::vector<std::string>> Conform(const Kind& kind, Json& document,
                                                       Decoder decoder = Decoder::kJson);
[[nodiscard]] Result<std::vector<std::string>> Conform(KindId kind, Json& document);

// An empty list is not told from none when it is stored: those that are null where there is nothing
// become so. REQUIRES: the document is conformed.
void ForgetEmptyLists(const Kind& kind, Json& document);

// `strict decoding error: unknown field "spec.a", duplicate field "spec.b"`.
[[nodiscard]] std::string StrictDecodingError(std::span<const std::string> problems);

}  // namespace berth::api
