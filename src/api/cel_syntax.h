#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

// Private to api/: whether texts are expressions of CEL (the Common Expression Language), by its
// grammar (https://github.com/google/cel-spec/blob/master/doc/langdef.md) with the options that
// Kubernetes has: optional syntax, no names in backquotes, the macros of its libraries. No types:
// what is well-formed may be wrong yet.
namespace berth::api {

struct CelSyntax {
  // What is wrong first, as cel-go shows it: "ERROR: <input>:1:9: Syntax error: ...", with the
  // line and a mark below it. Empty: nothing.
  std::string problem;
  bool names_old_self = false;  // Whether it looks at `oldSelf`.
};

// Cost: linear in the text, and so is the stack in kCelDepthMax.
[[nodiscard]] CelSyntax ParseCel(std::string_view text);

// cel-go's bounds.
inline constexpr size_t kCelSizeMax = 100'000;
inline constexpr int kCelDepthMax = 250;

}  // namespace berth::api
