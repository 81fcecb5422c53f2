#include "env/os/file_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace berth::env::os {
namespace {

// https://www.sqlite.org/src/file/src/os.h: pending, reserved and 510 shared bytes.
constexpr off_t kFirstByte = 0x40000000;
constexpr off_t kBytes = 512;

}  // namespace

Result<FileLock> FileLock::Take(const std::filesystem::path& path) {
  const int file = open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (file < 0) {
    const bool forbidden = errno == EACCES || errno == EROFS || errno == EPERM;
    return Fail(ErrorCode::kUnavailable,
                forbidden ? std::string("no permission to write")
                          : fmt::format("can't be opened: {}", std::strerror(errno)));
  }
  FileLock lock(file);
  struct flock range{};
  range.l_type = F_WRLCK;
  range.l_whence = SEEK_SET;
  range.l_start = kFirstByte;
  range.l_len = kBytes;
  if (fcntl(file, F_OFD_SETLK, &range) != 0 && (errno == EAGAIN || errno == EACCES)) {
    return Fail(ErrorCode::kConflict, "in use by another process");
  }
  return lock;
}

FileLock::FileLock(FileLock&& other) noexcept : file_(std::exchange(other.file_, -1)) {}

FileLock::~FileLock() {
  if (file_ >= 0) close(file_);
}

}  // namespace berth::env::os
