#pragma once

#include <filesystem>

#include "base/result.h"

namespace berth::env::os {

// Tells a write-ahead log of SQLite that ends in an unfinished group, which is what a crash leaves,
// from one that is broken in the middle, where SQLite would drop all groups after the break in
// silence. An absent or empty log is fine. Format: https://www.sqlite.org/fileformat2.html,
// section 4.
//
// A group is written only when the one before it is durable. So after a frame that does not match
// its checksum there may be frames of the same group, up to its commit frame; any frame after that
// proves the break to be damage: kDamaged. A log that was cut at the end of a group can't be told
// from one that ended there (end_mark.h can). Cost: reads the file once, about 1 GB/s.
Status CheckWal(const std::filesystem::path& path);

}  // namespace berth::env::os
