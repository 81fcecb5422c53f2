#include "env/os/end_mark.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <utility>

#include "base/check.h"
#include "base/hash.h"

namespace berth::env::os {
namespace {

constexpr std::string_view kRevision = "revision ";
constexpr std::string_view kDurability = "durability ";
constexpr std::string_view kBoot = "boot ";
constexpr size_t kBootBytesMax = 36;
constexpr size_t kBytesMax = 256;  // More than an end has.

// All ends are of one length, which is less than a sector's: one is replaced whole or not at all.
std::string Print(const EndMark::End& end) {
  std::string text =
      fmt::format("berth journal end 1\n{}{:020}\n{}{:7}\n{}{:36}\n", kRevision, end.revision,
                  kDurability, end.durable ? "disk" : "process", kBoot, end.boot);
  text += fmt::format("checksum {:016x}\n", HashOf(text));
  return text;
}

// The rest of the line behind `name`, without blanks at its end.
std::string_view Value(std::string_view text, std::string_view name) {
  const size_t at = text.find(name);
  if (at == std::string_view::npos) return {};
  std::string_view value = text.substr(at + name.size());
  value = value.substr(0, value.find('\n'));
  return value.substr(0, value.find_last_not_of(' ') + 1);
}

bool WriteAll(int file, std::string_view text) {
  return pwrite(file, text.data(), text.size(), 0) == static_cast<ssize_t>(text.size());
}

}  // namespace

EndMark::EndMark(const std::filesystem::path& journal) : path_(journal.string() + "-end") {}

EndMark::~EndMark() {
  if (file_ >= 0) close(file_);
}

std::unexpected<Error> EndMark::Failure(std::string_view what, int number) const {
  return Fail(ErrorCode::kUnavailable,
              fmt::format("{}: {}: {}", path_.string(), what, std::strerror(number)));
}

Result<std::optional<EndMark::End>> EndMark::Read() const {
  std::ifstream in(path_, std::ios::binary);
  if (!in) {
    if (errno == ENOENT) return std::optional<End>();
    return Failure("can't be read", errno);
  }
  std::array<char, kBytesMax> bytes{};
  in.read(bytes.data(), bytes.size());
  if (in.bad()) return Failure("can't be read", EIO);
  const std::string_view text(bytes.data(), static_cast<size_t>(in.gcount()));
  End end;
  const std::string_view revision = Value(text, kRevision);
  std::from_chars(revision.data(), revision.data() + revision.size(), end.revision);
  end.durable = Value(text, kDurability) == "disk";
  end.boot = Value(text, kBoot);
  if (end.boot.size() > kBootBytesMax || Print(end) != text) {
    return Fail(ErrorCode::kDamaged,
                fmt::format("{} is damaged and was left as it is", path_.string()));
  }
  return std::optional(std::move(end));
}

Result<bool> EndMark::Make(const End& end) {
  CHECK(end.boot.size() <= kBootBytesMax);
  const std::string draft = fmt::format("{}.{}.new", path_.string(), getpid());
  const auto refused = [this](int number) -> Result<bool> {
    if (number == ENOSPC || number == EDQUOT) return false;
    return Failure("can't be made", number);
  };
  const int file = open(draft.c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600);
  if (file < 0) return refused(errno);
  errno = ENOSPC;  // Of a write that was cut short.
  const bool written = WriteAll(file, Print(end)) && fsync(file) == 0;
  if (!written || rename(draft.c_str(), path_.c_str()) != 0) {
    const int number = errno;
    close(file);
    unlink(draft.c_str());
    return refused(number);
  }
  if (file_ >= 0) close(file_);
  file_ = file;
  end_ = end;
  const std::filesystem::path folder = path_.has_parent_path() ? path_.parent_path() : ".";
  const int directory = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory < 0) return Failure("can't be made", errno);
  const int synced = fsync(directory);
  const int number = errno;
  close(directory);
  if (synced != 0) return Failure("can't be made", number);
  return true;
}

Status EndMark::Advance(uint64_t revision) {
  CHECK(file_ >= 0);
  CHECK(revision >= end_.revision);
  end_.revision = revision;
  if (!WriteAll(file_, Print(end_))) return Failure("can't be written", errno);
  return {};
}

std::string BootId() {
  std::ifstream in("/proc/sys/kernel/random/boot_id");
  std::string id;
  in >> id;
  return id.substr(0, kBootBytesMax);
}

}  // namespace berth::env::os
