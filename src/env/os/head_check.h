#pragma once

#include <cstdint>
#include <filesystem>

#include "base/result.h"

namespace berth::env::os {

// What must hold of a database file and of the rollback journal beside it before SQLite may open
// them. SQLite repairs while it opens: beside a file of no pages (0 bytes, and 1, which it counts
// as 0) it deletes the logs; from a rollback journal that looks unfinished it writes pages back,
// cuts the file to the length that is noted there, and deletes it. Where that is no repair but
// damage, these refuse. They open files for reading only. Formats:
// https://www.sqlite.org/fileformat2.html, sections 1.3 and 3.

// Cost: ReadHead reads 100 bytes, CheckRollback up to a page of the file and more than one of the
// rollback journal.

// What the head of a file says.
struct Head {
  uint32_t page_bytes = 0;
  uint32_t application_id = 0;
  uint32_t format_version = 0;
  bool has_log = false;  // Who reads it has to look into the write-ahead log beside it.
};

// kDamaged: too short, or not SQLite's. What comes after the head is not looked at.
Result<Head> ReadHead(const std::filesystem::path& path);

// kRefused, with a phrase that follows the file's name: not of application `application_id`, or of
// another format than `format_version`. Format 0 passes: none that berth made ever had it.
Status CheckOwner(const Head& head, uint32_t application_id, uint32_t format_version);

// The rollback journal `path`-journal of a file with such a head. Ours exist while the file
// changes between its two modes, which touches only its head: one that would write anything else,
// or change the length of the file, was not left by us. kDamaged.
Status CheckRollback(const std::filesystem::path& path, const Head& of);

}  // namespace berth::env::os
