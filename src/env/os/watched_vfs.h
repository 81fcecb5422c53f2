#pragma once

#include <sqlite3.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace berth::env::os {

// For tests: while it lives, the files that SQLite opens tell `watch` what is done to them, with
// their path: "write" before and "written" after bytes are written, "sync" before a sync. One at a
// time.
class WatchedVfs {
 public:
  using Watch = std::function<void(std::string_view what, const std::string& path)>;

  explicit WatchedVfs(Watch watch) : real_(sqlite3_vfs_find(nullptr)), vfs_(*real_) {
    watch_ = std::move(watch);
    vfs_.zName = "watched";
    vfs_.pNext = nullptr;
    vfs_.pAppData = real_;
    vfs_.xOpen = Open;
    sqlite3_vfs_register(&vfs_, 1);
  }
  ~WatchedVfs() {
    sqlite3_vfs_unregister(&vfs_);
    sqlite3_vfs_register(real_, 1);
  }
  WatchedVfs(const WatchedVfs&) = delete;
  WatchedVfs& operator=(const WatchedVfs&) = delete;

 private:
  struct File {
    const sqlite3_io_methods* real = nullptr;
    sqlite3_io_methods watched{};
    std::string path;
  };

  static int Open(sqlite3_vfs* vfs, sqlite3_filename path, sqlite3_file* file, int flags,
                  int* flags_out) {
    auto* real = static_cast<sqlite3_vfs*>(vfs->pAppData);
    const int code = real->xOpen(real, path, file, flags, flags_out);
    if (code != SQLITE_OK || file->pMethods == nullptr || path == nullptr) return code;
    auto opened = std::make_unique<File>();
    opened->real = file->pMethods;
    opened->watched = *file->pMethods;
    opened->path = path;
    opened->watched.xWrite = Write;
    opened->watched.xSync = Sync;
    opened->watched.xClose = Close;
    file->pMethods = &opened->watched;
    files_[file] = std::move(opened);
    return code;
  }
  static int Write(sqlite3_file* file, const void* bytes, int count, sqlite3_int64 at) {
    const File& opened = *files_.at(file);
    watch_("write", opened.path);
    const int code = opened.real->xWrite(file, bytes, count, at);
    watch_("written", opened.path);
    return code;
  }
  static int Sync(sqlite3_file* file, int flags) {
    const File& opened = *files_.at(file);
    watch_("sync", opened.path);
    return opened.real->xSync(file, flags);
  }
  static int Close(sqlite3_file* file) {
    const auto opened = std::move(files_.at(file));
    files_.erase(file);
    file->pMethods = opened->real;
    return opened->real->xClose(file);
  }

  static inline Watch watch_;
  static inline std::map<sqlite3_file*, std::unique_ptr<File>> files_;

  sqlite3_vfs* real_;
  sqlite3_vfs vfs_;
};

}  // namespace berth::env::os
