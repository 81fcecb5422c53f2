#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/types.h"

namespace berth::translate {

// What is wrong with an object's resources, field by field, in upstream's words.
class Objections {
 public:
  // The field's amounts are beyond these: `path: Invalid value: ["cpu"]: says`, of those that are.
  // What either does not name is not compared.
  void AddBeyond(const api::ResourceList& amounts, const api::ResourceList& most,
                 std::string_view path, std::string_view says);
  // All of them; nothing where all is well.
  [[nodiscard]] std::optional<std::string> Text() const;

 private:
  std::vector<std::string> objections_;
};

}  // namespace berth::translate
