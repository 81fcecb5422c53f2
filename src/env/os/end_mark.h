#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace berth::env::os {

// How far a journal has acknowledged writes, in a small file beside it, JOURNAL-end. SQLite can't
// tell a write-ahead log that was cut or removed from one that ended there; this file can.
//
// It is written after each group, without a fsync. A kill of the process loses nothing of either. A
// loss of power takes of this file at most what the system had not written back, which makes it an
// older, weaker promise. Of the journal it takes nothing that was appended with Durability::kDisk:
// then this file never promises more than the journal has, whatever of it survives. It may take
// what was appended with Durability::kProcess, and then this file may promise too much: `durable`
// and `boot` tell whether that is why. Not thread-safe.
class EndMark {
 public:
  struct End {
    uint64_t revision = 0;  // The last that was acknowledged.
    bool durable = true;    // Whether acknowledged meant: survives a loss of power.
    std::string boot;       // Of the machine that wrote it; of at most 36 bytes.
    bool operator==(const End&) const = default;
  };

  explicit EndMark(const std::filesystem::path& journal);
  ~EndMark();
  EndMark(const EndMark&) = delete;
  EndMark& operator=(const EndMark&) = delete;

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

  // What the file says; nothing when there is none. kDamaged: it is no end of a journal, or was
  // changed.
  [[nodiscard]] Result<std::optional<End>> Read() const;

  // Makes the file, or another in its place, durable when this returns. False: the disk has no room
  // for it, and nothing was changed.
  Result<bool> Make(const End& end);

  // REQUIRES: Make() made it. Costs one small write into the page cache.
  Status Advance(uint64_t revision);

 private:
  [[nodiscard]] std::unexpected<Error> Failure(std::string_view what, int number) const;

  const std::filesystem::path path_;
  End end_;
  int file_ = -1;
};

// What tells this run of the machine from others; empty where the system does not say.
std::string BootId();

}  // namespace berth::env::os
