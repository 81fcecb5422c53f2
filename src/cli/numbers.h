#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>

// Numbers on a command line, for each program that has one.
namespace berth::cli {

// Checks that an option's text is a whole number in decimal, within both. The parser alone would
// take one that is negative or too large for another one, and 010 for 8.
[[nodiscard]] CLI::Validator WholeNumber(uint64_t least = 0, uint64_t most = UINT64_MAX);

// Parses a program's command line. Where the program is to end at once, its exit status: 0 for the
// help, ExitStatus::kUsage for what makes no sense, which is told on stderr.
[[nodiscard]] std::optional<int> ParseOrExit(CLI::App& app, int argc, char** argv);

}  // namespace berth::cli
