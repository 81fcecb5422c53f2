#include "testing/datadriven.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace berth::testing {
namespace {

std::vector<std::string> ReadLines(const std::string& path) {
  std::ifstream file(path);
  EXPECT_TRUE(file.good()) << path << " can't be read";
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

std::string Join(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

std::vector<std::string> Words(const std::string& line) {
  std::istringstream stream(line);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

constexpr const char* kRule = "----";

// Takes the expected output that starts at `at`, and moves `at` behind it.
std::string TakeExpected(const std::vector<std::string>& lines, size_t& at) {
  std::vector<std::string> expected;
  if (at < lines.size() && lines[at] == kRule) {
    for (++at; at < lines.size() && lines[at] != kRule; ++at) expected.push_back(lines[at]);
    if (at < lines.size()) ++at;
    return Join(expected);
  }
  for (; at < lines.size() && !lines[at].empty(); ++at) expected.push_back(lines[at]);
  return Join(expected);
}

std::string Framed(std::string output) {
  if (!output.empty() && output.back() != '\n') output += '\n';
  const bool blank_inside = output.starts_with("\n") || output.find("\n\n") != std::string::npos;
  if (!blank_inside) return output;
  return std::string(kRule) + "\n" + output + kRule + "\n";
}

}  // namespace

std::string Directive::Value(const std::string& key, const std::string& otherwise) const {
  for (const std::string& argument : arguments) {
    if (argument.starts_with(key + "=")) return argument.substr(key.size() + 1);
  }
  return otherwise;
}

bool Directive::Has(const std::string& argument) const {
  return std::ranges::find(arguments, argument) != arguments.end();
}

void RunGoldenFile(const std::string& path,
                   const std::function<std::string(const Directive&)>& handle) {
  const bool rewrite = std::getenv("BERTH_REWRITE") != nullptr;
  const std::vector<std::string> lines = ReadLines(path);
  std::string rewritten;
  size_t at = 0;
  while (at < lines.size()) {
    if (lines[at].empty() || lines[at].starts_with("#")) {
      rewritten += lines[at++] + "\n";
      continue;
    }
    Directive directive;
    directive.position = path + ":" + std::to_string(at + 1);
    directive.arguments = Words(lines[at]);
    directive.command = directive.arguments.front();
    directive.arguments.erase(directive.arguments.begin());
    rewritten += lines[at++] + "\n";
    std::vector<std::string> input;
    for (; at < lines.size() && lines[at] != kRule; ++at) input.push_back(lines[at]);
    directive.input = Join(input);
    rewritten += directive.input + kRule + "\n";
    if (!directive.input.empty()) directive.input.pop_back();
    if (at < lines.size()) ++at;
    const std::string expected = TakeExpected(lines, at);
    std::string actual = handle(directive);
    if (!actual.empty() && actual.back() != '\n') actual += '\n';
    rewritten += Framed(actual);
    if (!rewrite) {
      EXPECT_EQ(expected, actual) << directive.position << ": " << directive.command;
    }
  }
  if (rewrite) std::ofstream(path) << rewritten;
}

std::vector<std::string> GoldenFiles(const std::string& folder) {
  std::vector<std::string> files;
  if (!std::filesystem::exists(folder)) return files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".txt") files.push_back(entry.path().string());
  }
  std::ranges::sort(files);
  return files;
}

}  // namespace berth::testing
