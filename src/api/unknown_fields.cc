#include "api/unknown_fields.h"

#include <fmt/format.h>

#include "api/field_error.h"

namespace berth::api {
namespace {

// Upstream stops listing strict problems here too.
constexpr size_t kProblemsMax = 100;

}  // namespace

size_t UnknownFields::Descend(std::string_view name) {
  const size_t size = path_.size();
  if (size > 0) path_ += '.';
  path_ += name;
  return size;
}

size_t UnknownFields::Descend(size_t index) {
  const size_t size = path_.size();
  path_ += fmt::format("[{}]", index);
  return size;
}

void UnknownFields::Add(std::string_view name) {
  if (problems_.size() >= kProblemsMax) return;
  const size_t size = Descend(name);
  problems_.push_back(fmt::format("unknown field {}", QuoteGo(path_)));
  Return(size);
}

}  // namespace berth::api
