#pragma once

#include <filesystem>

#include "base/result.h"

namespace berth::env::os {

// Keeps other processes from the file that SQLite is about to be given, while it is looked at
// first: holds those bytes of it that SQLite locks, so that either side sees the other.
//
// Must end before SQLite opens the file: SQLite would take it for another process, and its closing
// drops all locks of this process on the file. Not thread-safe.
class FileLock {
 public:
  // Errors, with a phrase that follows the file's name: kConflict (another process has it),
  // kUnavailable (no permission). A file system without locks gives one that locks nothing: SQLite
  // says what it thinks of it.
  static Result<FileLock> Take(const std::filesystem::path& path);
  ~FileLock();
  FileLock(FileLock&& other) noexcept;
  FileLock& operator=(FileLock&&) = delete;

 private:
  explicit FileLock(int file) : file_(file) {}
  int file_;
};

}  // namespace berth::env::os
