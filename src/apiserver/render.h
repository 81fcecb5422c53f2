#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/kinds.h"
#include "api/table.h"
#include "apiserver/problem.h"
#include "apiserver/request.h"
#include "base/bytes.h"
#include "base/hash.h"
#include "base/time.h"
#include "env/http.h"
#include "store/object.h"

// How objects, lists and watch events are written for a client: which media type and shape it asked
// for, and the text of it.
namespace berth::apiserver {

enum class Form : uint8_t { kObject, kTable, kMetadata };
enum class Syntax : uint8_t { kJson, kPrettyJson, kYaml };
enum class TableObjects : uint8_t { kMetadata, kObject, kNone };

// What a client wants to read. Equal shapes read equal bytes.
struct Shape {
  // The kind of the request's path, which may be a view of what is stored.
  const api::Kind* kind = &api::KindOf(api::KindId::kPod);
  Form form = Form::kObject;
  Syntax syntax = Syntax::kJson;
  TableObjects table_objects = TableObjects::kMetadata;
  bool meta_v1beta1 = false;  // Table and PartialObjectMetadata in meta.k8s.io/v1beta1.

  bool operator==(const Shape&) const = default;
};

// What kind of answer is negotiated; they offer different media types.
enum class AnswerKind : uint8_t { kOne, kList, kWatch };

// Picks the shape by the Accept header and the query. Problem: 406, as upstream words it; 400 for a
// bad includeObject.
[[nodiscard]] Outcome<Shape> Negotiate(const ResourceRequest& request, AnswerKind answer);

// Pretty JSON is for people: asked for by `pretty`, or guessed from the user agent.
[[nodiscard]] bool WantsPretty(const env::HttpRequest& http, const Query& query);

// One object in the shape, without a line break. `json` is a stored document of shape.kind's
// storage kind.
[[nodiscard]] std::string RenderObject(const Shape& shape, std::string_view json, Instant now);

// A list in the making. It shares the stored documents until they are written, and is written in
// parts of some milliseconds, so that nobody waits for a large one: Add() all, Start(), Continue()
// until all is written, Finish(). A copyable value.
class ListRenderer {
 public:
  ListRenderer(const Shape& shape, Instant now) : shape_(shape), now_(now) {}
  void Add(const Bytes& json);
  // `metadata` is the members of ListMeta: `"resourceVersion":"5"`.
  void Start(std::string_view metadata);
  // Writes a part, which is all of a small list. Whether all is written now. REQUIRES: started.
  bool Continue();
  // The answer. REQUIRES: all is written.
  [[nodiscard]] env::HttpResponse Finish() &&;
  void AddTo(Hasher& hasher) const;

 private:
  [[nodiscard]] std::string Frame(std::string_view metadata) const;
  void Write(std::string_view json);

  Shape shape_;
  Instant now_;
  api::CellAllowance cells_;
  std::vector<Bytes> items_;
  size_t items_bytes_ = 0;
  size_t next_ = 0;   // The item to be written.
  std::string out_;   // What is written.
  std::string tail_;  // What follows the items.
};

// `{"type":"ADDED","object":...}` and a line break.
void AppendWatchEvent(std::string_view type, const Shape& shape, std::string_view json, Instant now,
                      std::string& out);
void AppendBookmark(const Shape& shape, uint64_t revision, bool initial_events_end,
                    std::string& out);

// A problem as the answer to a request, in the syntax that it asks for.
[[nodiscard]] env::HttpResponse ProblemResponse(const env::HttpRequest& http,
                                                const Problem& problem);
// An answer with the object's text in the shape's syntax. `json` is finished JSON.
[[nodiscard]] env::HttpResponse Answer(int status, Syntax syntax, std::string json);

// An answer with one stored document in the shape. Shares the bytes where nothing is to be changed.
[[nodiscard]] env::HttpResponse AnswerStored(int status, const Shape& shape, const Bytes& json,
                                             Instant now);

// The value of the member `metadata` within a stored document's text. REQUIRES: a document that the
// server stored.
[[nodiscard]] std::string_view MetadataText(std::string_view json);
// The text with another metadata.resourceVersion. REQUIRES: a document that the server stored.
[[nodiscard]] std::string WithRevision(std::string_view json, uint64_t revision);

}  // namespace berth::apiserver
