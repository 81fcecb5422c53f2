#include "cli/numbers.h"

#include <fmt/format.h>

#include <charconv>

#include "cli/command_line.h"

namespace berth::cli {
namespace {

// What is wrong; empty: the text is the number without zeros before it.
std::string CheckNumber(std::string& text, uint64_t least, uint64_t most) {
  const bool digits = !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
  uint64_t number = 0;
  const std::errc error = std::from_chars(text.data(), text.data() + text.size(), number).ec;
  const bool negative = text.size() > 1 && text[0] == '-' &&
                        text.find_first_not_of("0123456789", 1) == std::string::npos;
  if (!digits && !negative) return fmt::format("{} is no whole number", text);
  if (negative || error != std::errc() || number < least || number > most) {
    return fmt::format("{} is not in range {} to {}", text, least, most);
  }
  text = fmt::to_string(number);
  return "";
}

}  // namespace

CLI::Validator WholeNumber(uint64_t least, uint64_t most) {
  return CLI::Validator(
      [least, most](std::string& text) { return CheckNumber(text, least, most); },
      most == UINT64_MAX ? std::string() : fmt::format("INT in [{} - {}]", least, most));
}

std::optional<int> ParseOrExit(CLI::App& app, int argc, char** argv) {
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kOk : kUsage;
  }
  return std::nullopt;
}

}  // namespace berth::cli
