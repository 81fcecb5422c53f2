#include "env/os/time_zones.h"

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>
#include <utility>

namespace berth::env::os {
namespace {

constexpr uintmax_t kBytesMax = 64 * 1024;

}  // namespace

std::map<std::string, std::string> ReadTimeZones(const std::string& folder) {
  namespace fs = std::filesystem;
  std::map<std::string, std::string> files;
  std::error_code error;
  fs::recursive_directory_iterator at(folder, error);
  for (; !error && at != fs::recursive_directory_iterator(); at.increment(error)) {
    const std::string name = at->path().lexically_relative(folder).string();
    if (name == "posix" || name == "right") {
      at.disable_recursion_pending();
      continue;
    }
    std::error_code unreadable;
    if (!at->is_regular_file(unreadable) || at->file_size(unreadable) > kBytesMax) continue;
    std::ifstream file(at->path(), std::ios::binary);
    std::string content{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    if (content.starts_with("TZif")) files.emplace(name, std::move(content));
  }
  return files;
}

}  // namespace berth::env::os
