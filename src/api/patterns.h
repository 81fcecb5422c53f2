#pragma once

#include <string_view>

// The regular expressions that definitions of kinds use, as functions: no expression is run on
// what users send, so none can take long. Keyed by the expression's text.
namespace berth::api {

using Matcher = bool (*)(std::string_view);

// What a definition wants of a quantity's text: less than ParseQuantity does.
inline constexpr std::string_view kQuantityPattern =
    "^(\\+|-)?(([0-9]+(\\.[0-9]*)?)|(\\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\\+|-)?(([0-9]+(\\.["
    "0-9]*)?)|(\\.[0-9]+))))?$";

// Whether the whole of a text matches; null for a pattern that no function is written for. Cost of
// a match: linear in the text.
[[nodiscard]] Matcher FindMatcher(std::string_view pattern);

}  // namespace berth::api
