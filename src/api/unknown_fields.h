#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

// Private to api/: the unknown fields that a walk over a document meets, as upstream's strict
// decoding says them. The walk tells where it is.
namespace berth::api {

class UnknownFields {
 public:
  // Goes down to a member or an item; Return() takes what it gave.
  size_t Descend(std::string_view name);
  size_t Descend(size_t index);
  void Return(size_t size) { path_.resize(size); }

  // The member here is none.
  void Add(std::string_view name);
  [[nodiscard]] std::vector<std::string> Take() { return std::move(problems_); }

 private:
  std::string path_;
  std::vector<std::string> problems_;
};

}  // namespace berth::api
