#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/json.h"
#include "api/kinds.h"
#include "apiserver/problem.h"
#include "apiserver/request.h"
#include "base/time.h"
#include "env/actor.h"
#include "store/store.h"

// Documents between requests and the store.
namespace berth::apiserver {

// A JSON string.
[[nodiscard]] inline api::Json Text(std::string_view text) {
  return api::Json(boost::json::string(text));
}

// Where a kind's objects are kept, and the kind that they are kept as: itself, but for views of
// others and versions of a user's definition.
[[nodiscard]] store::Table TableOf(const api::Kind& kind);
[[nodiscard]] const api::Kind& StorageOf(const api::Kind& kind);
// Whether documents are told otherwise than they are stored.
[[nodiscard]] inline bool IsConverted(const api::Kind& kind) {
  return kind.is_view() || kind.defined != nullptr;
}

// The store's options: a table per kind of the table, indexed by KindId.
[[nodiscard]] store::Store::Options StoreOptions();

// A document that the server printed. REQUIRES: it did.
[[nodiscard]] api::Json ParseStored(std::string_view json, api::JsonMemory memory = {});
// A stored document. REQUIRES: a document that the server stored.
[[nodiscard]] api::Json Load(const store::StoredObject& object, api::JsonMemory memory = {});
// The same as `kind` has it, which may be a view of what is stored.
[[nodiscard]] api::Json LoadAs(const api::Kind& kind, const store::StoredObject& object,
                               api::JsonMemory memory = {});
// A document of the storage kind as `kind` has it.
void ConvertTo(const api::Kind& kind, api::Json& document);
// What is to be stored of a document of `kind`, as api::ToStored.
[[nodiscard]] api::Json ToStorage(const api::Kind& kind, api::Json object, const api::Json* stored);

// Most writes of a pod change its status, or its node alone; the spec, half of the document,
// needn't be read and printed for them. It stays text, and what rules and selectors look at stands
// for it:
//
//   stored text ─LoadWithoutSpec─> document + SelectableSpec ─PrintCanonical(.., SpecText)─> text
//
// Whether the object's spec can stand aside so: a pod whose spec has been located.
[[nodiscard]] bool HasSpecAside(const store::StoredObject& object);
// A stored document without its spec and its managedFields. REQUIRES: HasSpecAside(object).
[[nodiscard]] api::Json LoadWithoutSpec(const store::StoredObject& object, api::JsonMemory memory);
// A document as `kind` has it, without its managedFields: those who write seldom look at them, and
// they are as long as a small object.
[[nodiscard]] api::Json LoadUnmanaged(const api::Kind& kind, const store::StoredObject& object,
                                      api::JsonMemory memory);
// The text of metadata.managedFields, a view of the object's; empty when there are none.
[[nodiscard]] std::string_view ManagedText(const store::StoredObject& object);
// The text of the spec, a view of the object's. REQUIRES: HasSpecAside(object).
[[nodiscard]] std::string_view SpecText(const store::StoredObject& object);

// An object's text as another kind has it, which is made along with its own: of the two kinds of
// events, which only call some members otherwise.
struct Twin {
  api::KindId kind;
  std::string text = {};
};

// Texts that are printed for members of a document, where they are not empty: `spec` and `metadata`
// in the place of the member, `managed` for metadata.managedFields, which the document then lacks.
struct Aside {
  std::string_view spec = {};
  std::string_view managed = {};
  std::string_view metadata = {};  // REQUIRES: of a stored text, and that no other version is set.
};

// A document's text and where its spec and its managedFields stand in it.
struct Printed {
  std::string text;
  store::TextRange spec = {};
  store::TextRange managed = {};
};

// The canonical text that is stored: kind, apiVersion, metadata and spec first, metadata's members
// in a fixed order, resourceVersion as given, or with 0 as it is (a dry run gives none out).
// `object` is left with that version and order of metadata. REQUIRES: the kind's form.
[[nodiscard]] Printed PrintCanonical(const api::Kind& kind, api::Json& object, uint64_t revision,
                                     Aside aside = {}, Twin* twin = nullptr);
// The same of a stored document, which says itself what it is.
[[nodiscard]] Printed PrintAgain(api::Json& object, uint64_t revision);

// The stored form of a document and its canonical text.
[[nodiscard]] store::StoredObject MakeStored(const api::Kind& kind, const api::Json& object,
                                             Bytes json, uint64_t revision);
// The same of a document with all that it has, as it is printed.
[[nodiscard]] store::StoredObject PrintStored(const api::Kind& kind, api::Json& object,
                                              uint64_t revision);

// For store::Store::Recover. kDamaged: what is wrong with the document.
[[nodiscard]] Result<store::StoredObject> DecodeStored(store::Table table,
                                                       const env::JournalRecord& record);

enum class FieldValidation : uint8_t { kIgnore, kWarn, kStrict };

// A request's body as a document of a kind.
struct Body {
  api::Json object;
  std::vector<std::string> warnings;  // Unknown and duplicate fields, with FieldValidation::kWarn.
  std::optional<api::Json> managed = {};  // Its metadata.managedFields, which it then lacks.
  bool empty_overhead = false;            // A pod's spec.overhead is {}, which it then lacks.
};

// Takes a list of managedFields out of a document.
[[nodiscard]] std::optional<api::Json> TakeManaged(api::Json& object);

// Parses, checks kind and apiVersion, drops unknown fields and checks types: what upstream's
// decoder does. `kind` is what the path expects. Problems: 400, 413, 415 in upstream's words.
[[nodiscard]] Outcome<Body> DecodeBody(const ResourceRequest& request, const api::Kind& kind,
                                       FieldValidation validation, api::JsonMemory memory);

// The objects of a kind in a namespace, as of the head.
[[nodiscard]] std::vector<store::ObjectRef> ObjectsIn(const store::Store& store, api::KindId kind,
                                                      std::string_view namespace_name);

// Whether a body names the path's namespace, or none.
[[nodiscard]] Outcome<void> CheckNamespace(const ResourceRequest& request, const api::Json& object);

// What Go calls a value of that type.
[[nodiscard]] std::string_view JsonTypeName(const api::Json& value);
// What upstream says of a kind that it doesn't know.
[[nodiscard]] std::string NotRegistered(std::string_view version, std::string_view name);

// The content of a body by its content type, not looked at further: JSON or YAML.
struct RawBody {
  api::Json value;
  std::vector<std::string> duplicates;  // Paths of duplicate keys; of YAML lines that tell of them.
  bool yaml = false;
};
// Puts what is said of unknown fields in the order of a document with sorted keys.
void SortByPath(std::vector<std::string>& problems);
[[nodiscard]] Outcome<RawBody> ParseBody(const ResourceRequest& request, std::string_view kind_name,
                                         api::JsonMemory memory);

// What the options of a write say. Problems: 422 for values that they can't have. `options` names
// them: "CreateOptions".
struct WriteOptions {
  bool dry_run = false;
  FieldValidation validation = FieldValidation::kWarn;
  std::string manager = {};  // fieldManager.
};
inline constexpr size_t kManagerBytesMax = 128;
[[nodiscard]] Outcome<WriteOptions> ParseWriteOptions(const Query& query, std::string_view options);

}  // namespace berth::apiserver
