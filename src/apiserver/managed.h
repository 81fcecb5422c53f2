#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/field_error.h"
#include "api/fields.h"
#include "api/json.h"
#include "api/managed_fields.h"
#include "apiserver/writes.h"
#include "store/object.h"

// Which writes are tracked in metadata.managedFields, and as whose
// (docs/design/0016-server-side-apply.md).
namespace berth::apiserver {

// Conforms a document (api/fields.h) and takes its managedFields out, which are conformed too.
struct ConformedApart {
  std::vector<std::string> problems;
  std::optional<api::Json> managed;
};
[[nodiscard]] Result<ConformedApart> ConformApart(const api::Kind& kind, api::Json& object,
                                                  api::Decoder decoder = api::Decoder::kJson);

// Whether a PATCH is an apply, by its content type.
[[nodiscard]] bool IsApply(const ResourceRequest& request);

// What is wrong with a manager's name, which stands in a field.
void CheckManager(std::string_view field, std::string_view manager, api::FieldErrors& errors);
// The same of the managedFields that a write leaves, where they are anybody's but the server's:
// behind what else is wrong with the metadata.
void CheckManagers(const WriteContext& context, std::string_view managed, api::FieldErrors& errors);

// Takes the entries out of versions that a kind doesn't have, as upstream; whether there were any.
bool DropUnknownVersions(const api::Kind& kind, api::ManagedFields& managed);

// The manager, version, subresource and time of the request's entry.
[[nodiscard]] api::FieldWriter WriterOf(const WriteContext& context);

// The text of managedFields after a write of the request's kind: what an apply has found, or what
// an update makes of them. `old` is null before a creation. Empty for none.
[[nodiscard]] std::string ManagedAfter(const WriteContext& context, const store::StoredObject* old,
                                       const api::Json& before, const api::Json& after);

// Equal but for times.
[[nodiscard]] bool SameManaged(std::string_view before, std::string_view after);

// What is stored of them; none for what is no managedFields.
[[nodiscard]] api::ManagedFields StoredManaged(std::string_view text);

}  // namespace berth::apiserver
