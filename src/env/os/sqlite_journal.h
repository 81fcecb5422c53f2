#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "env/actor.h"

namespace berth::env::os {

enum class Durability : uint8_t {
  kDisk,     // An append survives loss of power: fdatasync before it is acknowledged.
  kProcess,  // An append survives kill -9 of the process, not loss of power.
};

// What becomes of a journal that lacks writes which it has acknowledged.
enum class LostWrites : uint8_t { kRefuse, kAccept };

// What became of an append.
enum class Appended : uint8_t {
  kDurable,
  kNoRoom,  // The disk is full: nothing of it is in the journal, which is as it was before.
};

struct JournalOptions {
  Durability durability = Durability::kDisk;
  LostWrites lost_writes = LostWrites::kRefuse;
  // The bytes that are free on the disk where a file is; empty: as the system says. For disks of
  // tests.
  std::function<int64_t(const std::filesystem::path& path)> free_bytes = {};
};

// What a journal held when it was opened: the live records in the order of their revisions. Its
// last revision may be of a record that was lost.
struct Recovered : JournalContent {
  // Tells of acknowledged writes that are not there, and of a disk that is full; mostly empty.
  std::string warning;
};

// The durable log of the API server: one SQLite file in WAL mode, held by one process.
//
// The file keeps, of each live key, the last record with a checksum, and one row that counts and
// sums the checksums of all rows: a row that is lost, stale or changed is noticed when the file is
// opened. So is a write-ahead log that is broken before its last group, and, by the end that is
// marked beside the journal (end_mark.h), one that was cut, removed or never copied. An open
// journal is three files; a closed one is its file alone, and whole. A damaged file, one that lacks
// acknowledged writes, one of another format, one in use by another process and one that is not
// berth's are refused, and left as they were. Not thread-safe.
class SqliteJournal {
 public:
  // Opens or makes `path`; the folder must exist. On success `recovered` holds what was in it.
  // REQUIRES: this process does not have it open; POSIX locks are a process's, and looking at the
  // file a second time would let go of the first one's. On a disk without room a journal that there
  // is opens, and refuses what is appended until there is some; none is made.
  // Errors: kDamaged, kUnavailable (in use, no permission, no folder), kRefused (another format, or
  // not a berth file).
  static Result<std::unique_ptr<SqliteJournal>> Open(const std::filesystem::path& path,
                                                     JournalOptions options, Recovered& recovered);
  ~SqliteJournal();
  SqliteJournal(const SqliteJournal&) = delete;
  SqliteJournal& operator=(const SqliteJournal&) = delete;

  // Makes all records of the group durable in one transaction, in order: all or none. After an
  // error the journal must not be used. The write-ahead log is copied back into the file, and given
  // back, before the room for that ends: what is live needs twice its size and some MiB. The last
  // MiB is for changes and removals: what adds keys is refused before.
  Result<Appended> Append(std::span<const AppendJournal> group);

 private:
  struct Impl;
  explicit SqliteJournal(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace berth::env::os
