#include "env/os/head_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <fstream>
#include <string>
#include <string_view>
#include <system_error>

#include "env/os/big_endian.h"

namespace berth::env::os {
namespace {

constexpr size_t kHeadBytes = 100;
constexpr std::string_view kMagic("SQLite format 3\0", 16);
constexpr size_t kPageBytesAt = 16;
constexpr size_t kVersionsAt = 18;  // Of the format, for who writes and for who reads.
constexpr char kWithLog = 2;
constexpr size_t kUserVersionAt = 60;
constexpr size_t kApplicationIdAt = 68;

constexpr std::string_view kRollbackMagic("\xd9\xd5\x05\xf9\x20\xa1\x63\xd7");
constexpr size_t kRollbackHeadBytes = 28;
constexpr uint64_t kSectorBytesMax = 65'536;

// Up to `count` bytes; fewer where the file ends.
std::string ReadStart(const std::filesystem::path& path, size_t count) {
  std::ifstream in(path, std::ios::binary);
  std::string bytes(count, '\0');
  in.read(bytes.data(), static_cast<std::streamsize>(count));
  bytes.resize(static_cast<size_t>(in.gcount()));
  return bytes;
}

uint32_t PageBytes(std::string_view head) {
  const uint32_t value = BigEndian(head, kPageBytesAt) >> 16;
  return value == 1 ? 65'536 : value;
}

// Where a change between the two modes may differ: the versions for who writes and who reads, the
// change counter, and what says by whom and when it was counted.
bool MayDiffer(size_t at) {
  return at == 18 || at == 19 || (at >= 24 && at < 28) || (at >= 92 && at < 100);
}

// The sum that SQLite keeps of a page in a rollback journal.
uint32_t SumOf(std::string_view page, uint32_t nonce) {
  uint32_t sum = nonce;
  for (size_t at = page.size(); at > 200;) {
    at -= 200;
    sum += static_cast<unsigned char>(page[at]);
  }
  return sum;
}

std::unexpected<Error> Stray(std::string_view why) {
  return Fail(ErrorCode::kDamaged,
              fmt::format("the rollback journal beside it is not its own: {}", why));
}

}  // namespace

Result<Head> ReadHead(const std::filesystem::path& path) {
  const std::string head = ReadStart(path, kHeadBytes);
  if (head.empty()) return Fail(ErrorCode::kDamaged, "it is empty");
  if (head.size() < kHeadBytes) {
    return Fail(ErrorCode::kDamaged, fmt::format("it has only {} bytes", head.size()));
  }
  if (!head.starts_with(kMagic)) return Fail(ErrorCode::kDamaged, "its head is not a database's");
  const uint32_t page_bytes = PageBytes(head);
  if (page_bytes < 512 || (page_bytes & (page_bytes - 1)) != 0) {
    return Fail(ErrorCode::kDamaged, fmt::format("its head says pages of {} bytes", page_bytes));
  }
  return Head{.page_bytes = page_bytes,
              .application_id = BigEndian(head, kApplicationIdAt),
              .format_version = BigEndian(head, kUserVersionAt),
              .has_log = head[kVersionsAt] == kWithLog && head[kVersionsAt + 1] == kWithLog};
}

Status CheckOwner(const Head& head, uint32_t application_id, uint32_t format_version) {
  if (head.application_id != application_id) {
    return Fail(ErrorCode::kRefused, "is not a file of berth");
  }
  if (head.format_version > format_version) {
    return Fail(ErrorCode::kRefused,
                fmt::format("has format {}, made by a newer berth; this one reads format {}",
                            head.format_version, format_version));
  }
  if (head.format_version > 0 && head.format_version < format_version) {
    return Fail(ErrorCode::kRefused,
                fmt::format("has format {}, made by an older berth; this one reads format {}: move "
                            "it away, or use the berth that made it",
                            head.format_version, format_version));
  }
  return {};
}

Status CheckRollback(const std::filesystem::path& path, const Head& of) {
  const std::filesystem::path rollback = path.string() + "-journal";
  const std::string head = ReadStart(rollback, kRollbackHeadBytes);
  // SQLite takes neither for a journal that was in use, and leaves both.
  if (head.empty() || head.front() == '\0') return {};
  if (head.size() < kRollbackHeadBytes || !head.starts_with(kRollbackMagic)) {
    return Stray("its head is none");
  }
  const uint32_t records = BigEndian(head, 8);
  const uint32_t nonce = BigEndian(head, 12);
  const uint64_t pages = BigEndian(head, 16);
  const uint64_t sector_bytes = BigEndian(head, 20);
  const uint32_t page_bytes = BigEndian(head, 24);
  if (page_bytes != of.page_bytes) return Stray("other pages");
  std::error_code error;
  const uint64_t file_bytes = std::filesystem::file_size(path, error);
  if (error || pages * page_bytes != file_bytes) {
    return Stray(fmt::format("of a file of {} pages of {} bytes", pages, page_bytes));
  }
  if (sector_bytes < kRollbackHeadBytes || sector_bytes > kSectorBytesMax) {
    return Stray("sectors that no disk has");
  }
  const uint64_t record_bytes = uint64_t{page_bytes} + 8;
  const std::string text = ReadStart(rollback, sector_bytes + record_bytes + 1);
  if (text.size() > sector_bytes + record_bytes) return Stray("more than one page");
  // What was not written whole, is not written back.
  if (records == 0 || text.size() < sector_bytes + record_bytes) return {};
  const std::string_view record = std::string_view(text).substr(sector_bytes);
  const uint32_t page_number = BigEndian(record, 0);
  const std::string_view page = record.substr(4, page_bytes);
  if (page_number == 0 || BigEndian(record, 4 + page_bytes) != SumOf(page, nonce)) return {};
  if (page_number != 1) return Stray(fmt::format("it has page {}", page_number));
  const std::string now = ReadStart(path, page_bytes);
  for (size_t at = 0; at < page_bytes; ++at) {
    if (page[at] != now[at] && !MayDiffer(at)) return Stray("it has another first page");
  }
  return {};
}

}  // namespace berth::env::os
