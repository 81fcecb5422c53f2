#include "apiserver/selection.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "apiserver/objects.h"

namespace berth::apiserver {

namespace {

constexpr std::string_view kName = "metadata.name";
constexpr std::string_view kNamespace = "metadata.namespace";

}  // namespace

Outcome<Selection> Selection::Parse(const ResourceRequest& request) {
  Selection selection;
  const api::Kind& kind = *request.kind;
  selection.table_ = TableOf(kind);
  if (kind.namespaced && !request.namespace_name.empty()) {
    selection.namespace_ = request.namespace_name;
  }
  selection.name_ = request.name;
  Result<api::LabelQuery> labels = api::ParseLabelQuery(request.query.Text("labelSelector"));
  if (!labels) return BadRequest(labels.error().message);
  selection.labels_ = std::move(*labels);
  Result<api::FieldQuery> fields = api::ParseFieldQuery(request.query.Text("fieldSelector"));
  if (!fields) return BadRequest(fields.error().message);
  const Status resolved = api::ResolveFieldQuery(kind, *fields);
  if (!resolved) return BadRequest(resolved.error().message);
  if (kind.defined != nullptr) selection.defined_ = &kind;
  const std::vector<std::string_view> names = api::SelectableNames(kind);
  for (const api::FieldRequirement& requirement : fields->requirements) {
    FieldTest test{.value = requirement.value, .equals = requirement.equals};
    const auto it = std::ranges::find(names, requirement.field);
    if (requirement.field == kName) {
      test.where = FieldTest::Where::kName;
    } else if (requirement.field == kNamespace) {
      test.where = FieldTest::Where::kNamespace;
    } else if (it != names.end()) {
      test.where = FieldTest::Where::kField;
      test.index = static_cast<size_t>(it - names.begin());
    }
    selection.fields_.push_back(std::move(test));
  }
  selection.text_ =
      fmt::format("{}\n{}\n{}\n{}\n{}", selection.table_, selection.namespace_.value_or("\t"),
                  request.name, api::ToString(selection.labels_), api::ToString(*fields));
  return selection;
}

bool Selection::Matches(const store::StoredObject& object) const {
  if (namespace_ && object.namespace_name != *namespace_) return false;
  if (!name_.empty() && object.name != name_) return false;
  if (!labels_.Matches(object.labels)) return false;
  // A definition may come to name fields that were not told when the object was stored.
  const bool asks = std::ranges::any_of(
      fields_, [](const FieldTest& test) { return test.where == FieldTest::Where::kField; });
  const std::vector<std::string> texts = defined_ != nullptr && asks
                                             ? api::SelectableTexts(*defined_, Load(object))
                                             : std::vector<std::string>();
  const std::vector<std::string>& values = defined_ != nullptr ? texts : object.fields;
  return std::ranges::all_of(fields_, [&](const FieldTest& test) {
    std::string_view value;
    switch (test.where) {
      case FieldTest::Where::kName:
        value = object.name;
        break;
      case FieldTest::Where::kNamespace:
        value = object.namespace_name;
        break;
      case FieldTest::Where::kField:
        if (test.index < values.size()) value = values[test.index];
        break;
      case FieldTest::Where::kNowhere:
        break;
    }
    return (value == test.value) == test.equals;
  });
}

store::Range Selection::range() const { return {.table = table_, .namespace_name = namespace_}; }

std::string Selection::ToText() const { return text_; }

}  // namespace berth::apiserver
