#pragma once

#include <functional>
#include <string>
#include <vector>

namespace berth::testing {

// One command of a golden file.
struct Directive {
  std::string command;                 // The first word.
  std::vector<std::string> arguments;  // The words after it, on its line.
  std::string input;                   // The lines up to ----, without the last line's end.
  std::string position;                // file:line, for messages.

  // The value of an argument written key=value, or `otherwise`.
  [[nodiscard]] std::string Value(const std::string& key, const std::string& otherwise = "") const;
  [[nodiscard]] bool Has(const std::string& argument) const;
};

// Runs a golden file: a conversation of directives and what the code answers, in the form
//
//   # a comment
//   command argument key=value
//   input lines
//   ----
//   expected output
//   <blank line>
//
// `handle` gives the output of each directive; a difference fails the current test with both texts.
// With the environment variable BERTH_REWRITE (`dev test --rewrite`) the file is rewritten with
// what the code answered, for review as a diff. An output that holds blank lines is written between
// two lines of ---- instead.
void RunGoldenFile(const std::string& path,
                   const std::function<std::string(const Directive&)>& handle);

// The *.txt files of a folder, sorted by name.
std::vector<std::string> GoldenFiles(const std::string& folder);

}  // namespace berth::testing
