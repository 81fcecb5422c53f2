#pragma once

#include <filesystem>
#include <fstream>
#include <string>

#include "testing/files.h"

namespace berth::testing {

// A file that a token is in.
class TokenFile {
 public:
  explicit TokenFile(const std::string& token) { Write(token); }
  void Write(const std::string& token) { std::ofstream(path_, std::ios::trunc) << token << "\n"; }
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  const TempFolder folder_{"token"};
  const std::filesystem::path path_ = folder_.path() / "token";
};

}  // namespace berth::testing
