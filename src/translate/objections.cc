#include "translate/objections.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace berth::translate {

void Objections::AddBeyond(const api::ResourceList& amounts, const api::ResourceList& most,
                           std::string_view path, std::string_view says) {
  std::vector<std::string> names;
  for (const api::ResourceAmount& amount : amounts) {
    const auto bound = api::Find(most, amount.name);
    if (bound && *bound < amount.amount) names.push_back(fmt::format("\"{}\"", amount.name));
  }
  if (names.empty()) return;
  objections_.push_back(
      fmt::format("{}: Invalid value: [{}]: {}", path, fmt::join(names, ","), says));
}

std::optional<std::string> Objections::Text() const {
  if (objections_.empty()) return std::nullopt;
  if (objections_.size() == 1) return objections_.front();
  return fmt::format("[{}]", fmt::join(objections_, ", "));
}

}  // namespace berth::translate
