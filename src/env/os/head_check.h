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

// Cost of each: 100 bytes read, or up to two pages of the rollback journal.

// The head of the file: kDamaged (too short, not SQLite's), kRefused (not of application
// `application_id`, or of a newer format than `format_version`). What comes after the head is not
// looked at.
Status CheckHead(const std::filesystem::path& path, uint32_t application_id,
                 uint32_t format_version);

// The rollback journal `path`-journal of a file that passed CheckHead. Ours exist while the file
// changes between its two modes, which touches only its head: one that would write anything else,
// or change the length of the file, was not left by us. kDamaged.
Status CheckRollback(const std::filesystem::path& path);

}  // namespace berth::env::os
