#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "env/actor.h"

namespace berth::env::os {

enum class Durability : uint8_t {
  kDisk,     // An append survives loss of power: fdatasync before it is acknowledged.
  kProcess,  // An append survives kill -9 of the process, not loss of power.
};

// What a journal held when it was opened: the live records, of each key the last, in the order of
// their revisions.
struct Recovered {
  std::vector<JournalRecord> records;
  uint64_t last_revision = 0;  // Of all records ever appended, the ended ones too.
};

// The durable log of the API server: one SQLite file in WAL mode, held by one process.
//
// The file keeps, of each live key, the last record with a checksum, and one row that counts and
// sums the checksums of all rows: a row that is lost, stale or changed is noticed when the file is
// opened. So is a write-ahead log that is broken before its last group. A damaged file, one of a
// newer format, one in use by another process and one that is not berth's are refused, and left as
// they were. Not thread-safe.
class SqliteJournal {
 public:
  // Opens or makes `path`; the folder must exist. On success `recovered` holds what was in it.
  // Errors: kDamaged, kUnavailable (in use, no permission, no folder), kRefused (newer, or not a
  // berth file).
  static Result<std::unique_ptr<SqliteJournal>> Open(const std::filesystem::path& path,
                                                     Durability durability, Recovered& recovered);
  ~SqliteJournal();
  SqliteJournal(const SqliteJournal&) = delete;
  SqliteJournal& operator=(const SqliteJournal&) = delete;

  // Makes all records of the group durable in one transaction, in order: all or none. After an
  // error the journal must not be used.
  Status Append(std::span<const AppendJournal> group);

 private:
  struct Impl;
  explicit SqliteJournal(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace berth::env::os
