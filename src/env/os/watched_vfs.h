#pragma once

#include <sqlite3.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace berth::env::os {

// For tests: while it lives, the files that SQLite opens tell `watch` what is done to them, with
// their path: "write" before and "written" after bytes are written, "sync" before a sync. One at a
// time, and no file may be open when it ends. `watch` is called on the threads that use the files.
class WatchedVfs {
 public:
  using Watch = std::function<void(std::string_view what, const std::string& path)>;

  explicit WatchedVfs(Watch watch)
      : watch_(std::move(watch)), real_(sqlite3_vfs_find(nullptr)), vfs_(*real_) {
    vfs_.zName = "watched";
    vfs_.pNext = nullptr;
    vfs_.pAppData = this;
    vfs_.xOpen = Open;
    sqlite3_vfs_register(&vfs_, 1);
  }
  ~WatchedVfs() {
    sqlite3_vfs_unregister(&vfs_);
    sqlite3_vfs_register(real_, 1);
  }
  // From here on so many writes find room on the disk.
  void LimitWrites(int64_t count) { writes_left_ = count; }
  void LiftLimit() { writes_left_ = INT64_MAX; }
  // From here on the files that are opened, and grow, have so many bytes in sum.
  void LimitBytes(int64_t bytes) { bytes_max_ = bytes; }
  [[nodiscard]] int64_t free_bytes() const {
    int64_t used = 0;
    for (const auto& [path, size] : sizes_) used += size;
    return bytes_max_ - used;
  }

  WatchedVfs(const WatchedVfs&) = delete;
  WatchedVfs& operator=(const WatchedVfs&) = delete;

 private:
  // What SQLite calls for an open file; owned by the file until it is closed.
  struct File : sqlite3_io_methods {
    const sqlite3_io_methods* real = nullptr;
    WatchedVfs* vfs = nullptr;
    std::string path;
  };
  static const File& Opened(const sqlite3_file* file) {
    return *static_cast<const File*>(file->pMethods);
  }

  static int Open(sqlite3_vfs* vfs, sqlite3_filename path, sqlite3_file* file, int flags,
                  int* flags_out) {
    auto* self = static_cast<WatchedVfs*>(vfs->pAppData);
    const int code = self->real_->xOpen(self->real_, path, file, flags, flags_out);
    if (code != SQLITE_OK || file->pMethods == nullptr || path == nullptr) return code;
    auto opened = std::make_unique<File>(File{*file->pMethods, file->pMethods, self, path});
    opened->xWrite = Write;
    opened->xSync = Sync;
    opened->xTruncate = Truncate;
    sqlite3_int64 size = 0;
    if (file->pMethods->xFileSize(file, &size) == SQLITE_OK) self->sizes_[path] = size;
    opened->xClose = Close;
    file->pMethods = opened.release();
    return code;
  }
  static int Write(sqlite3_file* file, const void* bytes, int count, sqlite3_int64 at) {
    const File& opened = Opened(file);
    opened.vfs->watch_("write", opened.path);
    if (opened.vfs->writes_left_-- <= 0) return SQLITE_FULL;
    int64_t& size = opened.vfs->sizes_[opened.path];
    const int64_t end = std::max<int64_t>(size, at + count);
    if (end - size > opened.vfs->free_bytes()) return SQLITE_FULL;
    size = end;
    const int code = opened.real->xWrite(file, bytes, count, at);
    opened.vfs->watch_("written", opened.path);
    return code;
  }
  static int Truncate(sqlite3_file* file, sqlite3_int64 size) {
    const File& opened = Opened(file);
    opened.vfs->sizes_[opened.path] = size;
    return opened.real->xTruncate(file, size);
  }
  static int Sync(sqlite3_file* file, int flags) {
    const File& opened = Opened(file);
    opened.vfs->watch_("sync", opened.path);
    return opened.real->xSync(file, flags);
  }
  static int Close(sqlite3_file* file) {
    const std::unique_ptr<const File> opened(&Opened(file));
    file->pMethods = opened->real;
    return opened->real->xClose(file);
  }

  const Watch watch_;
  std::atomic<int64_t> writes_left_ = INT64_MAX;
  int64_t bytes_max_ = INT64_MAX;
  std::map<std::string, int64_t> sizes_;
  sqlite3_vfs* const real_;
  sqlite3_vfs vfs_;
};

}  // namespace berth::env::os
