#pragma once

#include <optional>
#include <string>
#include <vector>

#include "api/kinds.h"
#include "api/selector.h"
#include "apiserver/problem.h"
#include "apiserver/request.h"
#include "store/object.h"
#include "store/store.h"

namespace berth::apiserver {

// Which objects of a kind a request is about: namespace, name, labels and fields. A value; matching
// allocates nothing, but for fields of kinds that users define.
class Selection {
 public:
  // Problems: 400 for selectors that don't parse or name fields that the kind lacks, in upstream's
  // words.
  static Outcome<Selection> Parse(const ResourceRequest& request);

  [[nodiscard]] bool Matches(const store::StoredObject& object) const;
  // Matches whatever is in the namespace.
  [[nodiscard]] bool all_in_namespace() const {
    return labels_.empty() && fields_.empty() && name_.empty();
  }
  // Matches whatever is in the table.
  [[nodiscard]] bool all() const { return all_in_namespace() && !namespace_; }
  // The range of the store to walk.
  [[nodiscard]] store::Range range() const;
  // Equal texts select the same objects.
  [[nodiscard]] std::string ToText() const;

 private:
  struct FieldTest {
    enum class Where : uint8_t { kName, kNamespace, kField, kNowhere };
    Where where = Where::kNowhere;
    size_t index = 0;  // Into StoredObject::fields.
    std::string value;
    bool equals = true;
  };

  store::Table table_ = 0;
  const api::Kind* defined_ = nullptr;  // A user's kind, whose fields are looked up.
  std::optional<std::string> namespace_;
  std::string name_;
  api::LabelQuery labels_;
  std::vector<FieldTest> fields_;
  std::string text_;
};

}  // namespace berth::apiserver
